"""Why a tensor has its dtype: the steps that led there, from the expression that is asked about back to an origin.

The reading (claims.py) has what each expression was. A step's reason is read off its own syntax and off the dtypes of the
tensors in it, so that nothing is said which the reading has not shown.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.calls import Arguments, cast_target

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dtlint.diagnostic import Span
    from dtlint.infer.program.claims import Reading
    from dtlint.infer.values import Dtypes, Tensor

__all__ = ["Step", "shown", "text", "why"]

LONGEST = 12
"""Steps; a chain beyond that helps nobody."""


@dataclass(frozen=True, slots=True)
class Step:
    """One expression on the way to a dtype."""

    path: Path
    span: Span
    expression: str
    dtypes: Dtypes
    reason: str
    """What happens there, as the end of a sentence that begins with the expression."""
    symbolic: str | None = None
    """What decides the dtype where it is not known."""


def why(reading: Reading, node: ast.expr) -> list[Step]:
    """The steps that gave a tensor expression its dtype, the expression first and its origin last."""
    symbol = reading.symbols.get(node)
    if symbol is not None and (node not in reading.tensors or reading.tensors[node][1].dtypes is None):
        return [Step(reading.file(node), reading.span(node), text(reading, node), None, "the caller decides", symbol)]
    steps: list[Step] = []
    seen: set[ast.expr] = set()
    current: ast.expr | None = node
    while current is not None and current in reading.tensors and current not in seen and len(steps) < LONGEST:
        seen.add(current)
        path, value = reading.tensors[current]
        cause, reason = _cause(reading, current, value)
        if not (steps and isinstance(current, ast.Name) and cause is not None):  # a name on the way only passes it on
            steps.append(Step(path, reading.span(current), text(reading, current), value.dtypes, reason))
        current = cause
    return steps


def shown(dtypes: Dtypes) -> str:
    """Dtypes as a person reads them: `float16`, `float16 | float32`."""
    return "an unknown dtype" if dtypes is None else " | ".join(sorted(dtypes))


def _cause(reading: Reading, node: ast.expr, value: Tensor) -> tuple[ast.expr | None, str]:
    """The expression that decided about this one, and how."""
    origin = value.origin
    if origin is not None and origin is not node:
        return origin, "it has had that dtype since"
    if isinstance(node, (ast.Name, ast.Attribute)):
        return None, "as the program gives it"
    operands = [(child, reading.tensors[child][1]) for child in _operands(reading, node)]
    if isinstance(node, ast.Compare):
        return None, "a comparison gives bool"
    if isinstance(node, ast.Call) and _is_cast(node):
        return None, "cast here"
    if isinstance(node, ast.Call) and any(keyword.arg == "dtype" for keyword in node.keywords):
        return None, "the argument `dtype` decides"
    if not operands:
        return None, "made here"
    dtypes = {shown(operand.dtypes) for _, operand in operands}
    same = [child for child, operand in operands if operand.dtypes == value.dtypes]
    if not same:  # what decided is no tensor in sight: weights, autocast, the operation's own rule
        return None, f"{shown(value.dtypes)} is what this operation gives for {' and '.join(sorted(dtypes))}"
    if len(dtypes) == 1:
        return same[0], "keeps the dtype of its operand" if len(operands) == 1 else "its operands have one dtype"
    return same[-1], f"promoted from {' and '.join(sorted(dtypes))}"


def _operands(reading: Reading, node: ast.expr) -> Iterator[ast.expr]:
    """The tensors that an expression is made of, the outermost ones."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.keyword):
            child = child.value
        if not isinstance(child, ast.expr):
            continue
        if child in reading.tensors:
            yield child
        else:
            yield from _operands(reading, child)


def _is_cast(node: ast.Call) -> bool:
    """Is it `x.half()` or `x.to(dtype)`? Which dtype does not matter here."""
    if not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in ("to", "type", "type_as"):
        return True
    return cast_target(node.func.attr, Arguments(node, [], {}, None))[0]


def text(reading: Reading, node: ast.expr) -> str:
    """The source of a tensor expression on one line."""
    source = reading.source(reading.file(node))
    span = source.span(node)
    lines = list(source.lines[span.line - 1 : span.end_line])
    lines[-1] = lines[-1][: span.end_column]
    lines[0] = lines[0][span.column :]
    return " ".join(" ".join(lines).split())
