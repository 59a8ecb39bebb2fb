"""How many dimensions the result of an op has, from those of its operands: a row for each family of ops.

A rank is a number, -2 for "at least two", or None where it is not known. It decides dtypes: an operand without dimensions
takes no part in promotion within its category.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.lattice import at_least, least
from dtlint.infer.domain.values import Const, Dtype, Many, Number, Ref, Tensor, Tuple, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["RANK_CHANGING", "broadcast", "fewer", "is_elementwise", "keeps", "of_parts", "of_result", "of_sizes"]

Rank = int | None


@dataclass(slots=True)
class Asked:
    """A call whose result's dimensions are asked for.

    Attributes:
        args, keywords: its arguments; for a layer, those behind the weight.
        settings: what a layer's constructor was given by name.
    """

    args: Sequence[Value]
    keywords: Mapping[str, Value]
    settings: Mapping[str, Value]

    def get(self, place: int | None, *names: str) -> Value | None:
        """The argument at a place, or by one of its names."""
        if place is not None and place < len(self.args):
            return self.args[place]
        return next((self.keywords[name] for name in names if name in self.keywords), None)

    @property
    def tensors(self) -> list[Tensor]:
        """The operands, in order; not `out`."""
        every = (*self.args, *(value for name, value in self.keywords.items() if name != "out"))
        return [value for value in every if isinstance(value, Tensor)]

    @property
    def first(self) -> Rank:
        """The dimensions of the first operand."""
        value = self.get(0, "input", "self", "x")
        return value.rank if isinstance(value, Tensor) else None

    def rank(self, place: int, *names: str) -> Rank:
        """The dimensions of an operand."""
        value = self.get(place, *names)
        return value.rank if isinstance(value, Tensor) else None


# -- arithmetic of ranks -------------------------------------------------------------------------------------------------


def broadcast(ranks: Sequence[Rank]) -> Rank:
    """The dimensions of an elementwise result: those of the operand with most."""
    most = max(map(least, ranks), default=0)
    return most if ranks and all(rank is not None and rank >= 0 for rank in ranks) else at_least(most)


def _more(rank: Rank, count: int = 1) -> Rank:
    return at_least(least(rank) + count) if rank is None or rank < 0 else rank + count


def fewer(rank: Rank, count: int = 1) -> Rank:
    """What is left of a rank."""
    if rank is None or rank < 0:
        return at_least(least(rank) - count)
    return rank - count if rank >= count else None


def _at_least_one(rank: Rank) -> Rank:
    return at_least(max(least(rank), 1)) if rank is None or rank < 0 else max(rank, 1)


def of_sizes(values: Sequence[Value]) -> Rank:
    """The dimensions of what `zeros(*sizes)` makes."""
    if len(values) == 1 and isinstance(values[0], (Tuple, Many, Ref)):
        return len(values[0].items) if isinstance(values[0], Tuple) else None
    if all(map(_is_whole, values)):
        return len(values)
    return -1 if len(values) > 1 else None


def _is_whole(value: Value | None) -> bool:
    if isinstance(value, Number):
        return value.category is Category.INTEGER
    return isinstance(value, Const) and type(value.value) is int


# -- families ------------------------------------------------------------------------------------------------------------


def _same(call: Asked) -> Rank:
    return call.first


def _same_with_dimensions(call: Asked) -> Rank:
    return -1 if call.first is None else call.first


def _elementwise(call: Asked) -> Rank:
    return broadcast([one.rank for one in call.tensors]) if call.tensors else None


def _always(rank: int) -> Callable[[Asked], Rank]:
    return lambda call: rank


def _of_place(place: int, *names: str) -> Callable[[Asked], Rank]:
    return lambda call: call.rank(place, *names)


def _reduced_by(count: int) -> Callable[[Asked], Rank]:
    return lambda call: fewer(call.first, count)


def _raised_by(count: int) -> Callable[[Asked], Rank]:
    return lambda call: _more(call.first, count)


def _is(value: Value | None, constant: object) -> bool:
    return isinstance(value, Const) and value.value is constant


def reduced(rank: Rank, dim: Value | None, keepdim: Value | None) -> Rank:
    """The dimensions behind a reduction: none over all, else one fewer for each `dim`, unless `keepdim`."""
    if keepdim is not None and not _is(keepdim, False):
        return rank if _is(keepdim, True) else None
    if dim is None or _is(dim, None):
        return 0
    if isinstance(dim, Tuple):
        gone = len(dim.items)
        if gone == 0:
            return None  # all of them, or none: ops differ
    elif _is_whole(dim) or (isinstance(dim, Const) and isinstance(dim.value, str)):
        gone = 1
    else:
        return None
    return 0 if rank is not None and 0 <= rank < gone else fewer(rank, gone)


def _reduction(dim: int, default: Value | None = None) -> Callable[[Asked], Rank]:
    """A reduction whose `dim` is the argument at a place, with `keepdim` behind it."""

    def rank(call: Asked) -> Rank:
        given = call.get(dim, "dim", "axis")
        return reduced(call.first, default if given is None else given, call.get(dim + 1, "keepdim", "keepdims"))

    return rank


def _deviation(call: Asked) -> Rank:
    """`var(dim, unbiased, keepdim)`, `var(unbiased)`, `var(dim, correction=, keepdim=)`."""
    given = call.get(1, "dim", "axis")
    if isinstance(given, Const) and isinstance(given.value, bool):
        return 0
    return reduced(call.first, given, call.get(3, "keepdim", "keepdims"))


def _extreme(call: Asked) -> Rank:
    """`max(x)`; `max(x, dim)`; `max(x, other)`, elementwise."""
    given = call.get(1, "other")
    if isinstance(given, Tensor):
        return broadcast([call.first, given.rank])
    if given is not None and not _is_whole(given) and not isinstance(given, Const):
        return None
    return _reduction(1)(call)


def _quantile(call: Asked) -> Rank:
    inner = _reduction(2)(call)
    given = call.get(1, "q")
    more = given.rank if isinstance(given, Tensor) else 0
    return None if inner is None or more is None or inner < 0 or more < 0 else inner + more


def _matrix_norm(call: Asked) -> Rank:
    if call.get(1, "ord", "p") is None and call.get(2, "dim") is None:
        return reduced(call.first, None, call.get(3, "keepdim"))
    if call.get(2, "dim") is None or _is(call.get(2, "dim"), None):
        keepdim = call.get(3, "keepdim")
        return 0 if call.first in (1, 2) and (keepdim is None or _is(keepdim, False)) else None
    return _reduction(2)(call)


def _matmul(call: Asked) -> Rank:
    ranks = [one.rank for one in call.tensors[:2]]
    if len(ranks) < 2:
        return None
    one, other = ranks
    if one is not None and other is not None and one >= 0 and other >= 0:
        if one == 1 and other == 1:
            return 0
        return max(one, other) - (1 if 1 in (one, other) else 0)
    most, fewest = max(least(one), least(other)), min(least(one), least(other))
    return at_least(most if fewest > 1 else most - 1)  # one dimension of a matrix stays


def _linear(call: Asked) -> Rank:
    weight = call.rank(1, "weight")
    if weight == 2:
        return call.first
    if weight == 1:
        return fewer(call.first)
    return at_least(least(call.first) - 1)


def _inner(call: Asked) -> Rank:
    one, other = call.first, call.rank(1, "other")
    if one == 0 or other == 0:
        return broadcast([one, other])
    return one + other - 2 if one is not None and other is not None and one > 0 and other > 0 else None


def _loss(call: Asked) -> Rank:
    """0 unless `reduction` says otherwise."""
    given = [value.value for value in call.args if isinstance(value, Const) and value.value in _REDUCTION_NAMES]
    for settings in (call.keywords, call.settings):
        if "reduce" in settings or "size_average" in settings:
            return None
        value = settings.get("reduction")
        if value is not None:
            if not isinstance(value, Const):
                return None
            given.append(value.value)
    booleans = [value for value in call.args if isinstance(value, Const) and isinstance(value.value, bool)]
    if (booleans and not given) or len(set(given)) > 1:
        return None
    return 0 if not given or given[0] != "none" else _AS_INPUT


_AS_INPUT = -100
"""The dimensions of a loss that is not reduced."""
_REDUCTION_NAMES = ("mean", "sum", "none", "batchmean")


def _elementwise_loss(call: Asked) -> Rank:
    rank = _loss(call)
    return rank if rank != _AS_INPUT else broadcast([one.rank for one in call.tensors[:2]])


def _class_loss(call: Asked) -> Rank:
    rank = _loss(call)
    return rank if rank != _AS_INPUT else fewer(call.first)


def _other_loss(call: Asked) -> Rank:
    rank = _loss(call)
    return None if rank == _AS_INPUT else rank


def _sized(first: int) -> Callable[[Asked], Rank]:
    """Sizes from a place on: `view(2, 3)`, `zeros((2, 3))`."""

    def rank(call: Asked) -> Rank:
        named = call.get(None, "size", "shape", "sizes", "repeats", "dims")
        given = [named] if named is not None else list(call.args[first:])
        if len(given) == 1 and isinstance(given[0], Dtype):
            return call.first  # view(dtype)
        return of_sizes(given) if given else None

    return rank


def _size_at(place: int, *names: str) -> Callable[[Asked], Rank]:
    """One argument holds all sizes."""

    def rank(call: Asked) -> Rank:
        given = call.get(place, *names)
        return None if given is None else of_sizes([given])

    return rank


def _tile(call: Asked) -> Rank:
    count = _sized(1)(call)
    return broadcast([call.first, count])


def _gathered(index: int) -> Callable[[Asked], Rank]:
    return lambda call: call.rank(index, "index", "indices")


def _take_along(call: Asked) -> Rank:
    dim = call.get(2, "dim")
    if dim is None or _is(dim, None):
        return 1
    return call.first


def _repeat_interleave(call: Asked) -> Rank:
    dim = call.get(2, "dim")
    if dim is None or _is(dim, None):
        return 1
    return _at_least_one(call.first) if _is_whole(dim) else None


def _flatten(call: Asked) -> Rank:
    start, end = call.get(1, "start_dim"), call.get(2, "end_dim")
    if start is None and end is None:
        return 1
    rank = call.first
    if rank is None or rank <= 0:
        return 1 if rank == 0 else -1
    begin = start.value if isinstance(start, Const) else 0 if start is None else None
    stop = end.value if isinstance(end, Const) else -1 if end is None else None
    if type(begin) is not int or type(stop) is not int:
        return -1
    gone = (stop % rank) - (begin % rank)
    return rank - gone if gone >= 0 else -1


def _flatten_layer(call: Asked) -> Rank:
    start, end = call.settings.get("start_dim", Const(1)), call.settings.get("end_dim", Const(-1))
    return _flatten(Asked([*call.args[:1], start, end], {}, {}))


def _unflatten(call: Asked) -> Rank:
    sizes = call.get(2, "sizes")
    return _more(call.first, len(sizes.items) - 1) if isinstance(sizes, Tuple) and sizes.items else -1


def _squeeze(call: Asked) -> Rank:
    if call.first == 0:
        return 0
    dim = call.get(1, "dim")
    gone = len(dim.items) if isinstance(dim, Tuple) else 1 if _is_whole(dim) else None
    return None if gone is None else at_least(least(call.first) - gone)


def _diagonal(call: Asked) -> Rank:
    return {1: 2, 2: 1}.get(call.first or 0, -1)


def _listed(call: Asked) -> Rank:
    """The dimensions of the items of a list; all the same, or broadcast."""
    given = call.get(0, "tensors", "input", "operands")
    if isinstance(given, Tensor):
        return given.rank
    items = given.items if isinstance(given, Tuple) else (given.item,) if isinstance(given, Many) else ()
    ranks = [item.rank if isinstance(item, Tensor) else None for item in items]
    return broadcast(ranks) if ranks else None


def _joined(call: Asked) -> Rank:
    rank = _listed(call)
    return -1 if rank is None or rank == 0 else rank


def _stacked(call: Asked) -> Rank:
    return _more(_listed(call))


def _stacked_in(count: int) -> Callable[[Asked], Rank]:
    def rank(call: Asked) -> Rank:
        inner = _listed(call)
        return at_least(max(least(inner), count)) if inner is None or inner < 0 else max(inner, count)

    return rank


def _atleast(count: int) -> Callable[[Asked], Rank]:
    def rank(call: Asked) -> Rank:
        known = call.first
        return at_least(max(least(known), count)) if known is None or known < 0 else max(known, count)

    return rank


def _masked(call: Asked) -> Rank:
    return broadcast([call.first, call.rank(1, "mask")])


def _one_hot(call: Asked) -> Rank:
    return _more(call.rank(0, "input", "tensor"))


def _similarity(call: Asked) -> Rank:
    ranks = [one.rank for one in call.tensors[:2]]
    rank = broadcast(ranks) if len(ranks) == 2 else None
    return fewer(rank)


def _pair_distance(call: Asked) -> Rank:
    keepdim = call.get(4, "keepdim")
    if keepdim is not None and not _is(keepdim, False):
        return broadcast([one.rank for one in call.tensors[:2]]) if _is(keepdim, True) else None
    return _similarity(call)


def _like_second(call: Asked) -> Rank:
    return call.rank(1, "other")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ACTIVATIONS = """
    relu relu6 gelu silu mish elu selu celu leaky_relu rrelu softplus softsign hardswish hardsigmoid hardtanh logsigmoid
    tanhshrink softshrink hardshrink threshold glu softmax softmin log_softmax gumbel_softmax
"""
_ELEMENTWISE = """
    add sub mul div multiply subtract divide true_divide floor_divide remainder fmod pow float_power rsub eq ne lt le gt ge
    equal_to not_equal less less_equal greater greater_equal where maximum minimum fmax fmin abs absolute neg negative exp
    exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh
    atanh arcsinh arccosh arctanh sigmoid erf erfc erfinv floor ceil round trunc fix frac sign sgn square reciprocal clamp
    clamp_min clamp_max clip logical_not logical_and logical_or logical_xor isnan isinf isfinite isposinf isneginf isreal
    bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift lerp addcmul addcdiv atan2 arctan2
    xlogy xlog1py logaddexp logaddexp2 hypot lgamma digamma polygamma mvlgamma logit positive heaviside copysign nextafter
    ldexp gcd lcm angle conj conj_physical real imag resolve_conj resolve_neg deg2rad rad2deg nan_to_num signbit sinc i0 isclose
    rand_like polar complex igamma igammac bernoulli normal
    airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 fill
    modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0 log_softmax softmax
    gammaln gammainc gammaincc psi multigammaln expit entr ndtr ndtri log_ndtr erfcx zeta i0e i1 i1e
"""
_SAME = """
    dropout alpha_dropout feature_alpha_dropout dropout1d dropout2d dropout3d tril triu clone detach roll flip fliplr
    flipud rot90 cumsum cumprod logcumsumexp argsort contiguous normalize batch_norm instance_norm rms_norm
    local_response_norm zeros_like ones_like empty_like full_like rand_like randn_like randint_like scatter scatter_add
    scatter_reduce index_add index_copy index_fill index_reduce index_put renorm lp_pool1d lp_pool2d lp_pool3d
    adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool1d
    max_unpool2d max_unpool3d upsample upsample_nearest upsample_bilinear pad transpose permute swapaxes swapdims
    adjoint t movedim moveaxis index_select to cuda cpu double float half bfloat16 long int short char byte bool type
    narrow narrow_copy matrix_exp fft ifft rfft irfft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 ihfft2 fftn ifftn rfftn
    irfftn hfftn ihfftn fftshift ifftshift inv inverse pinverse cholesky cholesky_ex cholesky_inverse matrix_power
    inv_ex diff cumulative_trapezoid select_scatter slice_scatter diagonal_scatter as_strided_scatter put put_along_dim
    put_ msort permute_copy transpose_copy t_copy alias_copy cholesky_ex channel_shuffle native_channel_shuffle bilinear
    prelu grid_sample positive quantize_per_tensor fake_quantize_per_tensor_affine detach_copy fill_ zero_
    requires_grad_
"""
_SAME_LAYERS = """
    RMSNorm Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout ReLU ReLU6 GELU SiLU Mish ELU SELU
    CELU LeakyReLU RReLU PReLU Softplus Softsign Hardswish Hardsigmoid Hardtanh LogSigmoid Tanh Sigmoid Tanhshrink
    Softshrink Hardshrink Threshold GLU Softmax Softmin Softmax2d LogSoftmax LPPool1d LPPool2d LPPool3d
    FractionalMaxPool2d MaxUnpool2d ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
    ReplicationPad1d ReplicationPad2d ReplicationPad3d ConstantPad1d ConstantPad2d ConstantPad3d CircularPad1d
    CircularPad2d CircularPad3d Bilinear MultiheadAttention RNNCell GRUCell LSTMCell RNN GRU LSTM
"""
_SHAPED_LAYERS = """
    Linear LazyLinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d
    LayerNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d LocalResponseNorm
    MaxPool1d MaxPool2d MaxPool3d AvgPool1d AvgPool2d AvgPool3d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d
    AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d Upsample UpsamplingNearest2d UpsamplingBilinear2d PixelShuffle
    PixelUnshuffle ChannelShuffle TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder
"""
"""Layers that refuse a tensor without dimensions."""
_SHAPED = """
    layer_norm group_norm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d
    max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d interpolate
    pixel_shuffle pixel_unshuffle scaled_dot_product_attention
"""
_ELEMENTWISE_LOSSES = """
    mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div poisson_nll_loss
    soft_margin_loss MSELoss L1Loss SmoothL1Loss HuberLoss BCELoss BCEWithLogitsLoss KLDivLoss PoissonNLLLoss SoftMarginLoss
    hinge_embedding_loss HingeEmbeddingLoss
"""
_CLASS_LOSSES = "cross_entropy nll_loss CrossEntropyLoss NLLLoss"
_OTHER_LOSSES = """
    ctc_loss cosine_embedding_loss margin_ranking_loss triplet_margin_loss gaussian_nll_loss multi_margin_loss
    multilabel_margin_loss multilabel_soft_margin_loss triplet_margin_with_distance_loss linear_cross_entropy CTCLoss
    CosineEmbeddingLoss MarginRankingLoss TripletMarginLoss GaussianNLLLoss MultiMarginLoss MultiLabelMarginLoss
    MultiLabelSoftMarginLoss LinearCrossEntropyLoss
"""
_ROWS: tuple[tuple[Callable[[Asked], Rank], str], ...] = (
    (_elementwise, _ELEMENTWISE),
    (_same, _SAME),
    (_same, _SAME_LAYERS),
    (_same_with_dimensions, _SHAPED_LAYERS + _SHAPED),
    (_same, _ACTIVATIONS),
    (_elementwise_loss, _ELEMENTWISE_LOSSES),
    (_class_loss, _CLASS_LOSSES),
    (_other_loss, _OTHER_LOSSES),
    (
        _reduction(1),
        "sum mean prod amax amin all any argmax argmin logsumexp nanmean nansum count_nonzero median nanmedian",
    ),
    (_reduction(2), "norm vector_norm"),
    (_deviation, "std var std_mean var_mean"),
    (_extreme, "max min"),
    (_quantile, "quantile nanquantile"),
    (_matmul, "matmul dot vdot __matmul__"),
    (_always(1), "mv"),
    (_always(2), "mm"),
    (_always(3), "bmm"),
    (_always(0), "trace dist scalar_tensor"),
    (
        _always(1),
        "arange linspace logspace randperm bincount hann_window hamming_window bartlett_window blackman_window",
    ),
    (
        _always(1),
        "hann hamming bartlett blackman cosine exponential gaussian kaiser general_cosine general_hamming nuttall",
    ),
    (_always(1), "kaiser_window ravel masked_select fftfreq rfftfreq pdist histc"),
    (
        _always(2),
        "addmm addbmm addr outer ger argwhere nonzero eye vander diagflat block_diag tril_indices triu_indices",
    ),
    (_always(3), "baddbmm"),
    (_always(1), "addmv"),
    (_linear, "linear"),
    (_inner, "inner"),
    (_reduced_by(1), "trapz trapezoid select diagonal diagonal_copy eigvalsh svdvals fold select_copy"),
    (_reduced_by(2), "det logdet"),
    (_raised_by(1), "unsqueeze diag_embed Embedding one_hot unsqueeze_copy"),
    (_one_hot, "embedding one_hot"),
    (_sized(0), "zeros ones empty rand randn"),
    (_sized(1), "view reshape repeat expand expand_copy broadcast_to new_zeros new_ones new_empty view_copy"),
    (_size_at(0, "size"), "full empty_strided"),
    (_size_at(1, "size"), "new_full new_empty_strided as_strided"),
    (_like_second, "expand_as view_as reshape_as"),
    (_same, "type_as"),
    (_tile, "tile"),
    (_gathered(2), "gather"),
    (_gathered(1), "take"),
    (_take_along, "take_along_dim"),
    (_repeat_interleave, "repeat_interleave"),
    (_flatten, "flatten"),
    (_flatten_layer, "Flatten"),
    (_unflatten, "unflatten"),
    (_squeeze, "squeeze"),
    (_diagonal, "diag"),
    (_joined, "cat concat concatenate"),
    (_stacked, "stack"),
    (_stacked_in(1), "hstack"),
    (_stacked_in(2), "vstack row_stack column_stack"),
    (_stacked_in(3), "dstack"),
    (_atleast(1), "atleast_1d"),
    (_atleast(2), "atleast_2d"),
    (_atleast(3), "atleast_3d"),
    (_masked, "masked_fill masked_scatter"),
    (_similarity, "cosine_similarity"),
    (_pair_distance, "pairwise_distance"),
    (_elementwise, "cross cdist kron"),
    (_of_place(0, "input", "elements"), "isin"),
    (_of_place(0, "input"), "bucketize"),
    (_of_place(1, "input", "self"), "searchsorted"),
    (_of_place(1, "B"), "solve_triangular"),
    (_raised_by(1), "view_as_real"),
    (_reduced_by(1), "view_as_complex"),
)
_RULES: dict[str, Callable[[Asked], Rank]] = {name: rule for rule, text in _ROWS for name in _names(text)}

_UNFOLDED: dict[str, Callable[[Asked], Rank]] = {
    "torch.Tensor.unfold": _raised_by(1),
    "torch.nn.functional.unfold": _reduced_by(1),
    "torch.nn.Unfold": _reduced_by(1),
    "torch.nn.functional.fold": _raised_by(1),
    "torch.nn.Fold": _raised_by(1),
    "torch.nn.functional.cosine_similarity": _similarity,
    "torch.linalg.cross": _elementwise,
    "torch.linalg.diagonal": _reduced_by(1),
    "torch.linalg.norm": _matrix_norm,
    "torch.linalg.vecdot": lambda call: fewer(broadcast([one.rank for one in call.tensors[:2]])),
    "torch.linalg.cond": _reduced_by(2),
    "torch.linalg.matmul": _matmul,
    "torch.linalg.solve": _of_place(1, "B"),
    "torch.linalg.eigvals": _reduced_by(1),
    "torch.nn.functional.normalize": _same,
    "torch.special.logsumexp": _reduction(1),
    "torch.signal.windows.exponential": _always(1),
    "torch.Tensor.exponential_": _same,
}
"""Ops that share their last name with others that have other dimensions."""

RANK_CHANGING = frozenset({"unsqueeze_", "squeeze_", "resize_", "resize_as_", "set_", "as_strided_", "addbmm_"})
"""In place, and with other dimensions than before."""


def _is_known_package(op: str) -> bool:
    return not op.startswith("torch.masked.")


def _stripped(op: str, args: Sequence[Value]) -> Sequence[Value]:
    """The operands of a layer: its weight, or None, stands before them."""
    is_layer = op.startswith("torch.nn.") and op[9:10].isupper()
    return args[1:] if is_layer else args


def of_result(
    op: str, args: Sequence[Value], keywords: Mapping[str, Value], settings: Mapping[str, Value] | None = None
) -> Rank:
    """The dimensions of the one tensor that an op gives."""
    call = Asked(_stripped(op, args), keywords, settings or {})
    last = op.rpartition(".")[2]
    if last.endswith("_") and not last.startswith("_"):
        if last in RANK_CHANGING:
            last = last[:-1]
        elif isinstance(call.get(0, "input", "self", "tensor"), Tensor):
            return call.rank(0, "input", "self", "tensor")
    rule = _UNFOLDED.get(op) or (_RULES.get(last) if _is_known_package(op) else None)
    return None if rule is None else rule(call)


def is_elementwise(op: str) -> bool:
    """Does it broadcast its operands, those without dimensions included?"""
    last = op.rpartition(".")[2]
    return last.startswith("__") or _RULES.get(last.rstrip("_")) in (_elementwise, _elementwise_loss)


_OF_WEIGHTS = frozenset({"Embedding", "EmbeddingBag", "embedding", "Linear", "linear", "cat"})
"""Results that have dimensions, as the operands have whose dtype they are of."""


def keeps(op: str) -> bool:
    """Has the result dimensions just where the operand has some whose dtype it is of?"""
    last = op.rpartition(".")[2].rstrip("_")
    return last in _OF_WEIGHTS or _RULES.get(last) in (_same, _same_with_dimensions, _elementwise)


_PARTS: dict[str, Callable[[Asked], tuple[Rank, ...]]] = {
    "svd": lambda call: (call.first, fewer(call.first), call.first),
    "eigh": lambda call: (fewer(call.first), call.first),
    "eig": lambda call: (fewer(call.first), call.first),
    "slogdet": lambda call: (fewer(call.first, 2),) * 2,
}
_PARTS_ALIKE: dict[str, Callable[[Asked], Rank]] = {
    **dict.fromkeys(
        _names("split chunk tensor_split split_with_sizes sort topk cummax cummin qr frexp dsplit vsplit"), _same
    ),
    **dict.fromkeys(_names("hsplit split_copy unsafe_split unsafe_chunk"), _same),
    "unbind": _reduced_by(1),
    **dict.fromkeys(_names("max min median nanmedian aminmax"), _reduction(1)),
    "mode": _reduction(1, Const(-1)),
    "kthvalue": _reduction(2, Const(-1)),
    **dict.fromkeys(("std_mean", "var_mean"), _deviation),
    **dict.fromkeys(
        _names("LSTM GRU RNN LSTMCell GRUCell RNNCell nonzero where histogram MultiheadAttention"), _always(-1)
    ),
    **dict.fromkeys(_names("multi_head_attention_forward"), _always(-1)),
    **dict.fromkeys((f"{lead}{n}d" for lead in ("MaxPool", "AdaptiveMaxPool") for n in (1, 2, 3)), _same),
    **dict.fromkeys((f"{lead}{n}d" for lead in ("max_pool", "adaptive_max_pool") for n in (1, 2, 3)), _same),
    "atleast_1d": lambda call: -1,
    "atleast_2d": lambda call: -1,
    "atleast_3d": lambda call: -1,
}


def of_parts(
    op: str, args: Sequence[Value], keywords: Mapping[str, Value], settings: Mapping[str, Value] | None = None
) -> tuple[Rank, ...] | Rank:
    """The dimensions of each of several results, or of all of them."""
    call = Asked(_stripped(op, args), keywords, settings or {})
    last = op.rpartition(".")[2].rstrip("_")
    if not _is_known_package(op):
        return None
    parts = _PARTS.get(last)
    if parts is not None:
        return parts(call)
    alike = _PARTS_ALIKE.get(last)
    return None if alike is None else alike(call)
