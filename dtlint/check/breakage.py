"""What breaks in a file's functions where its inputs and weights are of another dtype: the findings of `check --assume`, by
function."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dtlint.catalogue import catalogue
from dtlint.check.judge import judge
from dtlint.check.patience import bounded
from dtlint.check.reader import Reader
from dtlint.dtypes.assumption import ASSUMPTIONS
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from dtlint.infer.interproc.disk import Disk
    from dtlint.source.file import Source

__all__ = ["Breakage", "breakages"]

_ASKED = ("half", "bfloat16", "double")


@dataclass(frozen=True, slots=True)
class Breakage:
    """A finding that rests on an assumption: under which, where, and what."""

    under: tuple[str, ...]
    node: ast.expr | ast.stmt
    code: str
    message: str


def breakages(tree: ast.Module, source: Source, wanted: Sequence[ast.AST], disk: Disk) -> dict[object, list[Breakage]]:
    """What breaks in functions, each by the innermost that it stands in, in order of place.

    Args:
        wanted: the functions.
        disk: what the files are asked of.
    """
    rules = [rule.load() for rule in catalogue().values() if rule.asks()]
    with bounded(source.text.count("\n")):
        judged = judge(tree, source, rules, Reader(disk=disk), [ASSUMPTIONS[name] for name in _ASKED], rules)
    innermost = {id(part): function for function in wanted for part in nodes([function])}
    found: dict[object, list[Breakage]] = {}
    for one in sorted(judged.suspicions, key=lambda one: (one.finding.node.lineno, one.finding.node.col_offset)):
        function = innermost.get(id(one.finding.node))
        if one.under and function is not None:
            said = Breakage(one.under, one.finding.node, one.rule.code, one.finding.message)
            of_function = found.setdefault(function, [])
            same = next((other for other in of_function if (other.node, other.code) == (said.node, said.code)), None)
            if same is None:
                of_function.append(said)
            else:  # it says the same of another dtype
                of_function[of_function.index(same)] = replace(same, under=(*same.under, *said.under))
    return found
