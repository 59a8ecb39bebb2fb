"""How many dimensions a result has, as far as promotion asks: none, a known number, or at least one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const, Many, Number, Ref, Tensor, Tuple, Value
from dtlint.infer.models.ranges import range_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["broadcast", "of_sizes", "with_shape"]

_SAME = frozenset(
    {
        "softmax",
        "log_softmax",
        "dropout",
        "tril",
        "triu",
        "clone",
        "detach",
        "roll",
        "flip",
        "cumsum",
        "cumprod",
        "sort",
    }
    | {"masked_fill", "contiguous", "normalize", "layer_norm", "group_norm", "batch_norm", "instance_norm", "rms_norm"}
    | {"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "type_as"}
    | {"gather", "scatter", "scatter_add", "index_fill", "renorm", "dropout1d", "dropout2d", "dropout3d", "argsort"}
    | {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear"}
    | {"max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "interpolate", "pad"}
    | {"adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "cross", "transpose", "permute", "swapaxes"}
    | {"t", "movedim", "repeat_interleave", "index_select", "to", "cat", "narrow", "scaled_dot_product_attention"}
    | {
        "cumsum_",
        "sigmoid",
        "relu",
        "tanh",
        "gelu",
        "silu",
        "softplus",
        "glu",
        "leaky_relu",
        "elu",
        "mish",
        "hardswish",
    }
    | {"nan_to_num", "logcumsumexp", "cummax", "cummin", "matrix_exp", "bernoulli", "fft", "ifft", "rfft", "irfft"}
    | {
        "Linear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "LayerNorm",
        "GroupNorm",
        "RMSNorm",
    }
    | {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Dropout", "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softmax"}
    | {"MaxPool1d", "MaxPool2d", "AvgPool2d", "AdaptiveAvgPool2d", "LeakyReLU", "ELU", "Hardswish", "Upsample", "Mish"}
)
"""Results with as many dimensions as the first operand."""
_MORE = frozenset({"unsqueeze", "stack", "unfold", "diag_embed", "Embedding", "embedding", "one_hot"})
"""One dimension more than the first operand: of `stack`, than its items."""
_WEIGHTED = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "LayerNorm"}
) | frozenset({"GroupNorm", "RMSNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Embedding"})
"""Layers: their weights stand before the operand."""
_REDUCTIONS = frozenset(
    {"sum", "mean", "prod", "std", "var", "norm", "max", "min", "amax", "amin", "all", "any", "argmax", "argmin"}
    | {"logsumexp", "median", "nanmean", "nansum", "count_nonzero", "mode", "quantile", "nanmedian", "vector_norm"}
)
_LOSSES = frozenset(
    {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"}
    | {"smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss", "cosine_embedding_loss", "margin_ranking_loss"}
    | {"triplet_margin_loss", "gaussian_nll_loss", "poisson_nll_loss", "hinge_embedding_loss", "multi_margin_loss"}
    | {"CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss", "BCELoss", "BCEWithLogitsLoss", "SmoothL1Loss", "HuberLoss"}
    | {"KLDivLoss", "CTCLoss", "CosineEmbeddingLoss", "MarginRankingLoss", "TripletMarginLoss", "GaussianNLLLoss"}
)
"""0-dim unless `reduction` says otherwise."""
_SIZED = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "view", "reshape", "expand", "repeat"}
)
_SIZED_LIKE = frozenset({"new_zeros", "new_ones", "new_empty", "new_full", "expand_as", "view_as", "reshape_as"})
_VECTORS = frozenset({"arange", "linspace", "logspace", "randperm", "flatten_all", "bincount", "hann_window"})
_SCALARS = frozenset({"dot", "trace", "det", "logdet", "vdot", "dist", "scalar_tensor"})


def broadcast(ranks: Sequence[int | None]) -> int | None:
    """The dimensions of an elementwise result: those of the operand with most."""
    if any(rank is None for rank in ranks):
        return -1 if any(rank not in (None, 0) for rank in ranks) else None
    known = [rank for rank in ranks if rank is not None]
    return -1 if -1 in known else max(known, default=None)


def of_sizes(values: Sequence[Value]) -> int | None:
    """The dimensions of what `zeros(*sizes)` makes."""
    if len(values) == 1 and isinstance(values[0], (Tuple, Many, Ref)):
        return len(values[0].items) if isinstance(values[0], Tuple) else None
    if all(_is_whole(value) for value in values):
        return len(values)
    return -1 if len(values) > 1 else None


def _is_whole(value: Value) -> bool:
    return isinstance(value, Number) or (isinstance(value, Const) and type(value.value) is int)


def with_shape(op: str, answer: Value, args: Sequence[Value], keywords: Mapping[str, Value]) -> Value:
    """The table's answer, with what is known of the dimensions, the elements and the device."""
    if isinstance(answer, Tensor):
        last = op.rpartition(".")[2].rstrip("_")
        tensors = [value for value in (*args, *keywords.values()) if isinstance(value, Tensor)]
        device = tensors[0].device if tensors else None
        rank = _rank(op, last, args, keywords, tensors)
        return Tensor(answer.dtypes, answer.symbol, rank, range_of(last, args, keywords), device)
    if isinstance(answer, (Tuple, Many)):
        first = next((value for value in args if isinstance(value, Tensor)), None)
        last = op.rpartition(".")[2]
        keeps = last in ("split", "chunk", "tensor_split", "sort", "topk", "split_with_sizes", "kthvalue", "unique")
        rank = first.rank if first is not None and keeps else None
        if first is not None and last == "unbind" and first.rank is not None and first.rank > 0:
            rank = first.rank - 1
        if first is not None and last in ("max", "min", "median", "mode") and first.rank is not None:
            rank = _reduced(first.rank, args[1:], keywords)
        if last in ("meshgrid", "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "nonzero", "where"):
            rank = -1
        return _each_with_rank(answer, rank, None if first is None else first.device)
    return answer


def _each_with_rank(value: Value, rank: int | None, device: str | None) -> Value:
    if isinstance(value, Tensor):
        return Tensor(value.dtypes, value.symbol, rank, value.range, device)
    if isinstance(value, Tuple):
        return Tuple(tuple(_each_with_rank(item, rank, device) for item in value.items), value.names)
    return Many(_each_with_rank(value.item, rank, device)) if isinstance(value, Many) else value


def _rank(
    op: str, last: str, args: Sequence[Value], keywords: Mapping[str, Value], tensors: Sequence[Tensor]
) -> int | None:
    is_layer = op.startswith("torch.nn.") and not op.startswith("torch.nn.functional.")
    if is_layer and last in _WEIGHTED and len(args) > 1:
        args, tensors = args[1:], tensors[1:]
    first = args[0] if args else next(iter(keywords.values()), None)
    if last in _LOSSES:
        reduction = keywords.get("reduction", Const("mean"))
        return 0 if isinstance(reduction, Const) and reduction.value in ("mean", "sum") else None
    if last in _SIZED and not isinstance(first, Tensor):
        return of_sizes(args[:1] if last in ("full",) else args) if "size" not in keywords else None
    if last in _SIZED and len(args) > 1:
        return of_sizes(args[1:])
    if last in _SIZED_LIKE:
        given = args[1] if len(args) > 1 else None
        return given.rank if isinstance(given, Tensor) else of_sizes(args[1:2] if last == "new_full" else args[1:])
    if last in _VECTORS:
        return 1
    if last in _SCALARS:
        return 0
    if isinstance(first, (Tuple, Many)):
        items = first.items if isinstance(first, Tuple) else (first.item,)
        ranks = [item.rank if isinstance(item, Tensor) else None for item in items]
        rank = broadcast(ranks) if ranks else None
        if last == "stack":
            return -1 if rank in (None, -1) else (rank or 0) + 1
        return (-1 if rank is None else rank) if last in ("cat", "hstack", "vstack") else None
    if not isinstance(first, Tensor):
        return broadcast([one.rank for one in tensors]) if tensors and last not in _REDUCTIONS else None
    rank = first.rank
    if last in _MORE:
        return -1 if rank in (None, -1) else (rank or 0) + 1
    if last in _SAME:
        return rank
    if last in _REDUCTIONS:
        return _reduced(rank, args[1:], keywords)
    if last in ("matmul", "mm", "bmm", "baddbmm", "addmm"):
        return _product([one.rank for one in tensors[-2:]])
    if last == "select":
        return rank - 1 if rank is not None and rank > 0 else None
    if last == "squeeze":
        return None
    if last == "flatten":
        return 1 if len(args) == 1 and not keywords else -1 if rank != 0 else 1
    if last == "Flatten":
        return 2 if len(args) == 1 else -1
    if last in ("numel", "item"):
        return None
    if op.startswith(("torch.add", "torch.Tensor.")) or last in _ELEMENTWISE:
        return broadcast([one.rank for one in tensors])
    return None


_ELEMENTWISE = frozenset(
    {
        "add",
        "sub",
        "mul",
        "div",
        "true_divide",
        "floor_divide",
        "remainder",
        "fmod",
        "pow",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
    }
    | {
        "ge",
        "where",
        "maximum",
        "minimum",
        "abs",
        "neg",
        "exp",
        "log",
        "log2",
        "log10",
        "log1p",
        "expm1",
        "sqrt",
        "rsqrt",
    }
    | {"sin", "cos", "tan", "tanh", "sigmoid", "erf", "erfinv", "floor", "ceil", "round", "trunc", "sign", "square"}
    | {"reciprocal", "clamp", "clamp_min", "clamp_max", "logical_not", "logical_and", "logical_or", "isnan", "isinf"}
    | {"isfinite", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "lerp", "addcmul", "addcdiv", "atan2"}
    | {
        "masked_fill",
        "xlogy",
        "logaddexp",
        "acos",
        "asin",
        "atan",
        "sinh",
        "cosh",
        "frac",
        "hypot",
        "lgamma",
        "digamma",
    }
    | {"float_power", "rsub", "positive", "logit", "relu6", "selu", "celu", "softsign", "hardtanh", "logsigmoid"}
)


def _reduced(rank: int | None, args: Sequence[Value], keywords: Mapping[str, Value]) -> int | None:
    """The dimensions of a reduction: none over all, else one fewer for each `dim`, unless `keepdim`."""
    dim = args[0] if args else keywords.get("dim", keywords.get("axis"))
    if dim is None or (isinstance(dim, Const) and dim.value is None):
        return 0
    keepdim = keywords.get("keepdim", args[1] if len(args) > 1 else Const(False))
    if isinstance(keepdim, Const) and keepdim.value is True:
        return rank
    if rank is None or rank <= 0:
        return None
    gone = len(dim.items) if isinstance(dim, Tuple) else 1
    return rank - gone if rank > gone else 0


def _product(ranks: Sequence[int | None]) -> int | None:
    if len(ranks) < 2 or None in ranks:
        return None
    one, other = ranks
    if one == -1 or other == -1:
        return -1 if max(one or 0, other or 0) > 1 else None
    if one == 1 and other == 1:
        return 0
    return max(one or 0, other or 0) - (1 if 1 in (one, other) else 0)
