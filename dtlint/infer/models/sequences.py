"""torch.nn.utils.rnn: sequences of several lengths, padded or packed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NONE, TOP, Many, Tensor, Tuple, Unknown, Value, choices, reshaped
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_FIELDS = ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
_LENGTHS = Tensor(frozenset({"int64"}), None, 1)


def _packed(data: Tensor) -> Value:
    indices = Unknown(frozenset({"int64"}))
    return Tuple(
        (Tensor(data.dtypes, reshaped(data.symbol), -1, data.range, data.device), _LENGTHS, indices, indices), _FIELDS
    )


@model("torch.nn.utils.rnn.pack_padded_sequence")
def _pack_padded(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "input")
    plain = TOP if value is None else plain_tensors.plain(ctx, value)
    return _packed(plain) if isinstance(plain, Tensor) else TOP


@model("torch.nn.utils.rnn.pack_sequence")
def _pack(ctx: Context, arguments: Arguments) -> Value:
    made = _of_all(ctx, arguments)
    return _packed(made) if isinstance(made, Tensor) else TOP


@model("torch.nn.utils.rnn.pad_packed_sequence")
def _pad_packed(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.get(0, "sequence")
    data = value.items[0] if isinstance(value, Tuple) and value.names == _FIELDS else TOP
    return Tuple((Tensor(data.dtypes, reshaped(data.symbol), -1), _LENGTHS)) if isinstance(data, Tensor) else TOP


@model("torch.nn.utils.rnn.unpad_sequence", "torch.nn.utils.rnn.unpack_sequence")
def _unpad(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else NONE
    if isinstance(value, Tuple) and value.names == _FIELDS:
        value = value.items[0]
    plain = plain_tensors.plain(ctx, value)
    return Many(Tensor(plain.dtypes, reshaped(plain.symbol), -1)) if isinstance(plain, Tensor) else TOP


@model("torch.nn.utils.parameters_to_vector", "torch.nn.utils.rnn.pad_sequence")
def _of_all(ctx: Context, arguments: Arguments) -> Value:
    """Tensors of one dtype in one."""
    first = arguments.args[0] if arguments.args else TOP
    items = ctx.semantics.items(ctx, first, arguments.node)
    held = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else ()
    found = [plain_tensors.plain(ctx, one) for item in held for one in choices(item)]
    joined = join_all(found)
    if not isinstance(joined, (Tensor, Unknown)):
        return Tensor()
    dtypes = joined.dtypes if joined.dtypes is None or len(joined.dtypes) == 1 else None
    return Tensor(dtypes, reshaped(joined.symbol), -1)
