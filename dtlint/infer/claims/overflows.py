"""Where a result leaves float16 though its operands are in it: `x.pow(2)` above 255, `x.exp()` above 11.

It is a recorder: it is told of the operators of functions whose parameters' dtypes are symbols, and keeps those of which the
operand has such a dtype and is not known to be small enough.
"""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.infer.context import Recorder
from dtlint.infer.domain.values import Const, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Value

__all__ = ["Overflow", "Overflows"]

_MAX = DTYPES["float16"].max
_BY_OP = {
    "square": math.sqrt(_MAX),
    "exp": math.log(_MAX),
    "expm1": math.log(_MAX),
    "exp2": math.log2(_MAX),
    "cosh": math.log(2 * _MAX),
    "sinh": math.log(2 * _MAX),
}
"""The magnitude of an operand beyond which the result is."""
_POWERS = frozenset({"pow", "float_power"})
_LONGEST = 60
"""Characters of an operator's text; of a longer one the operator alone is named."""


@dataclass(frozen=True, slots=True)
class Overflow:
    """An operator whose result leaves float16.

    Attributes:
        node: where it stands.
        text: how it is written, on one line.
        above: the magnitude of the operand from which on it does.
    """

    node: ast.expr
    text: str
    above: float


class Overflows(Recorder):
    """Keeps the operators that overflow in float16."""

    def __init__(self) -> None:
        self._found: dict[ast.AST, Overflow] = {}

    def of(self, function: ast.AST) -> Iterator[Overflow]:
        """Those that stand in a function, in order of place."""
        inside = [self._found[node] for node in ast.walk(function) if node in self._found]
        yield from sorted(inside, key=lambda one: (one.node.lineno, one.node.col_offset))

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        node = ctx.site
        operand = args[0] if args else None
        if error is not None or not isinstance(node, (ast.Call, ast.BinOp)) or not isinstance(operand, Tensor):
            return
        if operand.dtypes is not None or operand.symbol is None or "float32" in operand.symbol.met:
            return
        name = op.rpartition(".")[2].strip("_")
        above = _limit(name, args, keywords, node)
        largest = operand.range.high if name.startswith("exp") else operand.range.magnitude
        if above is not None and above < largest:
            self._found[node] = Overflow(node, _text(node), above)


def _limit(op: str, args: Sequence[Value], keywords: Mapping[str, Value], node: ast.Call | ast.BinOp) -> float | None:
    """The magnitude of the first operand beyond which float16 cannot hold the result; None where there is none."""
    if op in _BY_OP:
        return _BY_OP[op]
    other = args[1] if len(args) > 1 else keywords.get("exponent")
    if op in _POWERS and isinstance(other, Const) and isinstance(other.value, (int, float)) and other.value > 1:
        return float(_MAX ** (1 / other.value))
    if op == "mul" and isinstance(node, ast.BinOp) and ast.dump(node.left) == ast.dump(node.right):
        return math.sqrt(_MAX)
    return None


def _text(node: ast.Call | ast.BinOp) -> str:
    text = " ".join(ast.unparse(node).split())
    if len(text) <= _LONGEST:
        return text
    if isinstance(node, ast.BinOp):
        return "**" if isinstance(node.op, ast.Pow) else "*"
    return f"{ast.unparse(node.func).rpartition('.')[2]}(...)"
