"""Sparse and quantized tensors: what is known of their dtypes, and of what they give back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Tensor, Unknown, Value, reshaped
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.factories import dtype_of_data
from dtlint.infer.models.ops import ask
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_INDICES = frozenset({"int64"})


def _making(name: str, values: int) -> None:
    @model(f"torch.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        """Of the values' dtype, unless another is asked for."""
        given = arguments.keywords.get("dtype", NONE)
        if given != NONE:
            dtype = dtype_of(given)
            return Tensor() if dtype is None else Tensor(dtype.dtypes, reshaped(dtype.symbol), -1)
        value = arguments.get(values, "values")
        if value is None or not arguments.complete:
            return Tensor(None, None, -1)
        plain = plain_tensors.plain(ctx, value)
        dtypes, _ = dtype_of_data(ctx, plain)
        return Tensor(dtypes, plain.symbol if isinstance(plain, (Tensor, Unknown)) else None, -1)


for _name, _place in (
    ("sparse_coo_tensor", 1),
    *((f"sparse_{kind}_tensor", 2) for kind in ("csr", "csc", "bsr", "bsc", "compressed")),
):
    _making(_name, _place)

_KEEPING = (
    "to_sparse",
    "to_sparse_coo",
    "to_sparse_csr",
    "to_sparse_csc",
    "coalesce",
    "sparse_mask",
    "values",
    "_values",
)


def _keeping(name: str) -> None:
    @model(f"torch.Tensor.{name}")
    def keep(ctx: Context, arguments: Arguments) -> Value:
        value = plain_tensors.plain(ctx, arguments.args[0])
        if not isinstance(value, Tensor):
            return value if isinstance(value, Unknown) else TOP
        rank = -1 if name.endswith("values") else value.rank
        return Tensor(value.dtypes, reshaped(value.symbol), rank, device=value.device)


for _name in _KEEPING:
    _keeping(_name)


@model("torch.Tensor.to_dense")
def _to_dense(ctx: Context, arguments: Arguments) -> Value:
    value = plain_tensors.plain(ctx, arguments.args[0])
    given = arguments.get(1, "dtype")
    if given is not None and given != NONE:
        dtype = dtype_of(given)
        return Tensor() if dtype is None else Tensor(dtype.dtypes, dtype.symbol)
    return Tensor(value.dtypes, value.symbol, value.rank) if isinstance(value, Tensor) else TOP


@model("torch.Tensor.indices", "torch.Tensor._indices")
def _indices(ctx: Context, arguments: Arguments) -> Value:
    return Tensor(_INDICES, None, 2)


@model("torch.sparse.mm", "torch.sparse.addmm")
def _product(ctx: Context, arguments: Arguments) -> Value:
    """A product of two dimensions; no region knows of it on the CPU."""
    operands = [plain_tensors.plain(ctx, value) for value in arguments.args]
    alike = {(one.dtypes, one.symbol) if isinstance(one, Tensor) else None for one in operands}
    if len(alike) != 1 or None in alike or ctx.ambient("region") != NONE:
        return Tensor(None, None, 2)
    pair = [Tensor(one.dtypes, reshaped(one.symbol), 2) for one in operands[-2:] if isinstance(one, Tensor)]
    made = ask(ctx, "torch.mm", pair, {})
    return made if isinstance(made, Tensor) else Tensor(None, None, 2)


@model("torch.quantize_per_tensor", "torch.quantize_per_channel", "torch.quantize_per_tensor_dynamic")
def _quantized(ctx: Context, arguments: Arguments) -> Value:
    return TOP


@model("torch.dequantize", "torch.Tensor.dequantize")
def _dequantized(ctx: Context, arguments: Arguments) -> Value:
    return Unknown(frozenset({"float32"}))
