"""What becomes of each public function under an assumption: it supports it, or raises, leaves the dtype, overflows; or it could
not be followed to its end, and nothing is promised.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dtlint.source.definitions import public_functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dtlint.infer.facts import ModuleFacts
    from dtlint.rule import Finding, Rule

__all__ = ["Support", "Verdict", "consequence", "entries", "supported"]


class Verdict(Enum):
    """What is to be said of a function, in words; the first that is true of it."""

    RAISES = "raises"
    LEAVES = "leaves the dtype"
    OVERFLOWS = "overflows or loses precision"
    UNFINISHED = "not analysed within its budget"
    SUPPORTS = "supports it, as far as is seen"


@dataclass(frozen=True, slots=True)
class Support:
    """How a public function stands under an assumption.

    Attributes:
        assumption: its name.
        path, line: where the function stands, as the reader sees it.
        function: its name, a method's with its class's.
    """

    assumption: str
    path: str
    line: int
    function: str
    verdict: Verdict


def consequence(rule: Rule, finding: Finding) -> Verdict:
    """What a finding says of the function that leads there."""
    if "raises" in finding.message:
        return Verdict.RAISES
    return Verdict.LEAVES if rule.code.startswith("DT3") else Verdict.OVERFLOWS


def entries(facts: ModuleFacts, node: ast.AST) -> frozenset[ast.AST]:
    """The functions through which a node is reached, as far as it is known: those that stand outermost in the module."""
    found: set[ast.AST] = set()
    for way in facts.ways(node):
        at = way[0].node if way and way[0].module is facts.module else node
        around = [one for one in facts.around.around(at) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        found.update(around[-1:])
    return frozenset(found)


def supported(
    facts: ModuleFacts | None,
    tree: ast.Module,
    verdicts: Mapping[ast.AST, Iterable[Verdict]],
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str, Verdict]]:
    """The public functions of a module that compute with tensors, each with its name and its verdict.

    Args:
        facts: what was found under the assumption; None where that could not be read at all.
        verdicts: what findings say of functions.
    """
    order = list(Verdict)
    names = _qualified(tree)
    for function in public_functions(tree.body):
        told = list(verdicts.get(function, ()))
        if facts is None or function in facts.unfinished:
            told.append(Verdict.UNFINISHED)
        elif not told and not _computes(facts, function):
            continue
        yield function, names[function], min(told or [Verdict.SUPPORTS], key=order.index)


def _computes(facts: ModuleFacts, function: ast.AST) -> bool:
    """Was anything of torch seen to happen in a function?"""
    return any(facts.operations_at(node) for node in facts.around.within(function))


def _qualified(tree: ast.Module) -> dict[ast.AST, str]:
    """The functions of a module and its classes, each with its name as Python qualifies it."""
    found: dict[ast.AST, str] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[part] = f"{prefix}{part.name}"
            elif isinstance(part, ast.ClassDef):
                waiting.append((part, f"{prefix}{part.name}."))
            elif isinstance(part, ast.stmt):
                waiting.append((part, prefix))
    return found
