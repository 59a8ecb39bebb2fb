"""What is not in view, where it is asked what would break under an assumption: it changes nothing.

What a caller hands over to be called, an activation or a layer, is of the assumed dtype as all else is, and keeps it. A tensor of
which nothing is known has the dtype of the one that it meets, and one of which it is not known has dimensions, unless it was made
of data of which nothing is known: that may be a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import TOP, Const, Tensor, Unknown, Value
from dtlint.infer.models.shapes import BARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Arguments, Context

__all__ = ["SUPPOSED", "SUPPOSING", "beside_known", "result_of_unseen", "supposed"]

SUPPOSED: tuple[str, object] = ("supposed", True)
"""Says of an operand that its dtype is not known, and was taken for that of what it meets."""
SUPPOSING = "supposing"
"""The ambient that is true where findings rest on this, and not claims."""


_PROMOTING = frozenset(
    {
        "add",
        "sub",
        "rsub",
        "mul",
        "div",
        "true_divide",
        "pow",
        "fmod",
        "remainder",
        "maximum",
        "minimum",
        "lerp",
        "where",
    }
)
"""Ops whose result has the dtype that their operands promote to."""
_ALIKE = frozenset({"matmul", "mm", "bmm", "mv", "linear", "cdist", "dist", "dot", "outer"})
"""Ops that take two tensors of one dtype, and nothing else in their places."""


def supposed(ctx: Context) -> frozenset[str]:
    """The assumed dtype, where findings rest on it; nothing elsewhere."""
    assumed = ctx.ambient("assumed")
    if not isinstance(assumed, Const) or ctx.ambient(SUPPOSING) != Const(True):
        return frozenset()
    return frozenset({str(assumed.value)})


def beside_known(ctx: Context, op: str, args: Sequence[Value]) -> Sequence[Value]:
    """The operands of an op, those of which nothing is known of the dtype of the floating tensor that they meet; and with
    dimensions, unless they are known to have none, or may be a number that was made a tensor."""
    name = op.rpartition(".")[2].strip("_")
    if name in _ALIKE and len(args) > 1 and supposed(ctx):
        args = [*(Tensor() if one == TOP else one for one in args[:2]), *args[2:]]
    if name not in _PROMOTING | _ALIKE or len(args) < 2:
        return args
    tensors = [one for one in args if isinstance(one, Tensor)]
    if not any(_is_open(one.dtypes) or one.rank is None for one in tensors) or not supposed(ctx):
        return args
    met = (one.dtypes for one in tensors if one.dtypes and one.dtypes <= FLOATING)
    dtypes = next((one for one in met if len(one) == 1), None)
    return [_completed(one, dtypes) if isinstance(one, Tensor) else one for one in args]


def _is_open(dtypes: frozenset[str] | None) -> bool:
    """Is nothing known, or no more than that torch made floating numbers of what nothing is known of?"""
    return dtypes is None or dtypes >= FLOATING


def _completed(value: Tensor, dtypes: frozenset[str] | None) -> Tensor:
    rank = -1 if value.rank is None and BARE not in value.extra else value.rank
    if _is_open(value.dtypes) and dtypes is not None:
        return Tensor(dtypes, None, rank, value.range, value.device, value.extra | {SUPPOSED})
    return Tensor(value.dtypes, value.symbol, rank, value.range, value.device, value.extra)


def result_of_unseen(ctx: Context, arguments: Arguments) -> Value:
    """What a call of something unseen gives: what it is given of the assumed dtype, it gives back in it."""
    own = supposed(ctx)
    if not own:
        return TOP
    given = [one for one in (*arguments.args, *arguments.keywords.values()) if isinstance(one, (Tensor, Unknown))]
    if not any(one.dtypes == own for one in given):
        return TOP
    return Tensor(own, None, -1) if len(given) == 1 and isinstance(given[0], Tensor) else Unknown(own)
