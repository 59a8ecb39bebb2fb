"""What torch's functions, methods and layers are, by name: facts for where the operator table is not asked."""

from __future__ import annotations

from functools import lru_cache

__all__ = [
    "ADDING",
    "BOOL_RESULT",
    "DIVIDING",
    "ELEMENTWISE",
    "FLOAT_FACTORIES",
    "FLOAT_RESULT",
    "INT_FACTORIES",
    "INT_RESULT",
    "KEEPING_DIMENSIONS",
    "LIKE",
    "MOVES",
    "NEW",
    "ONE_TENSOR",
    "PAIRING",
    "PAIRING_ALONG",
    "PARTING",
    "SAME_DTYPE",
    "SCALING",
    "SHAPING",
    "SPANS",
    "TAKING_DTYPE",
    "TAKING_TENSORS",
    "TENSORS_ALONE",
    "TENSOR_FUNCTIONS",
    "TENSOR_LAYERS",
    "TWO_TENSORS",
    "tensors_forwarded",
    "tensors_taken",
]

FLOAT_FACTORIES = frozenset(
    {"zeros", "ones", "empty", "rand", "randn", "linspace", "logspace", "eye", "hann_window", "hamming_window"}
)
LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like"})
INT_FACTORIES = frozenset({"randint", "randperm"})
SPANS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("zeros", "empty", "zeros_like", "empty_like"), (0, 0)),
    **dict.fromkeys(("ones", "ones_like"), (1, 1)),
    "eye": (0, 1),
}
"""The least and the greatest number that factories make without being told any."""

ELEMENTWISE = frozenset(
    {"add", "sub", "mul", "subtract", "multiply", "maximum", "minimum", "where", "cat", "stack", "pow"}
)
SAME_DTYPE = frozenset(
    {
        "abs",
        "clone",
        "relu",
        "clamp",
        "clip",
        "round",
        "floor",
        "ceil",
        "trunc",
        "neg",
        "flip",
        "roll",
        "squeeze",
        "unsqueeze",
        "reshape",
    }
    | {
        "transpose",
        "permute",
        "flatten",
        "detach",
        "tril",
        "triu",
        "clamp_min",
        "clamp_max",
        "sign",
        "nan_to_num",
        "dropout",
    }
)
"""The result has the first tensor's dtype."""
MOVES = frozenset(
    {"clone", "flip", "roll", "squeeze", "unsqueeze", "reshape", "transpose", "permute", "flatten", "detach"}
    | {"view", "expand", "repeat", "contiguous", "cpu", "cuda", "t"}
)
"""The result holds the same numbers."""
FLOAT_RESULT = frozenset(
    {"exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "softmax", "log_softmax", "erf", "log1p", "expm1"}
)
"""Keeps a floating dtype, and lifts integers to the default dtype."""
INT_RESULT = frozenset({"argmax", "argmin", "argsort", "nonzero", "bincount", "count_nonzero"})
BOOL_RESULT = frozenset(
    {
        "isnan",
        "isinf",
        "isfinite",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_not",
        "isclose",
    }
)

TENSOR_FUNCTIONS = frozenset(
    {
        *("sum", "nansum", "mean", "nanmean", "prod", "std", "var", "norm", "logsumexp", "cumsum", "cumprod"),
        *("amax", "amin", "all", "any", "matmul", "mm", "bmm", "mv", "dot", "addmm", "baddbmm", "addbmm"),
        *("addmv", "addr", "outer", "inner", "einsum", "tensordot", "kron", "cdist", "cross", "trace", "cov"),
        *("addcmul", "addcdiv", "lerp", "square", "reciprocal", "tan", "asin", "acos", "atan", "sinh"),
        *("cosh", "atan2", "erfc", "erfinv", "exp2", "log2", "log10", "logit", "lgamma", "fmod", "remainder"),
        *("floor_divide", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "hypot", "xlogy"),
        *("heaviside", "frac", "take", "take_along_dim", "masked_select", "gather", "index_select"),
        *("masked_fill", "scatter", "scatter_add", "index_add", "index_fill", "diag", "diagonal"),
        *("diag_embed", "tile", "hstack", "vstack", "dstack", "broadcast_to", "rot90", "unflatten", "unfold"),
        *("bernoulli", "multinomial", "normal", "bucketize", "searchsorted", "isin"),
        *("frombuffer", "cosine_similarity", "inv", "det", "pinv", "cholesky", "multi_dot", "vector_norm"),
        *("matrix_norm", "linear", "bilinear", "conv1d", "conv2d", "conv3d", "conv_transpose1d"),
        *("conv_transpose2d", "conv_transpose3d", "embedding", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "gelu", "silu", "mish", "elu"),
        *("selu", "celu", "leaky_relu", "prelu", "relu6", "hardtanh", "hardswish", "hardsigmoid"),
        *("logsigmoid", "softplus", "softsign", "softmin", "gumbel_softmax", "glu", "layer_norm"),
        *("batch_norm", "instance_norm", "group_norm", "rms_norm", "normalize", "dropout1d", "dropout2d"),
        *("dropout3d", "alpha_dropout", "interpolate", "grid_sample", "affine_grid", "pad", "pixel_shuffle"),
        *("pixel_unshuffle", "one_hot", "fold", "scaled_dot_product_attention", "cross_entropy", "nll_loss"),
        *("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy"),
        *("binary_cross_entropy_with_logits", "kl_div", "ctc_loss", "poisson_nll_loss"),
        *("triplet_margin_loss", "margin_ranking_loss", "cosine_embedding_loss", "hinge_embedding_loss"),
        "gaussian_nll_loss",
    }
)
"""Functions of torch and torch.nn.functional, and methods, that give one tensor whatever they are given; of what dtype
is not said here. Those that may give a tuple, like `max`, are not among them."""

TENSOR_LAYERS = frozenset(
    "torch.nn." + name
    for name in (
        *("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d"),
        *("ConvTranspose3d", "Embedding", "EmbeddingBag", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
        *("SyncBatchNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "RMSNorm"),
        *("GroupNorm", "ReLU", "ReLU6", "GELU", "SiLU", "Mish", "ELU", "SELU", "CELU", "LeakyReLU", "PReLU"),
        *("Hardtanh", "Hardswish", "Hardsigmoid", "Sigmoid", "LogSigmoid", "Softplus", "Softsign", "Tanh"),
        *("Tanhshrink", "Softmax", "LogSoftmax", "Softmin", "GLU", "Dropout", "Dropout1d", "Dropout2d"),
        *("Dropout3d", "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d"),
        *("AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "Upsample", "PixelShuffle", "PixelUnshuffle", "Flatten"),
        *("Unflatten", "Fold", "Unfold", "ZeroPad2d", "ReflectionPad2d", "ReplicationPad2d", "ConstantPad2d"),
        *("CosineSimilarity", "PairwiseDistance", "CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss"),
        *("SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "CTCLoss"),
        *("PoissonNLLLoss", "TripletMarginLoss", "MarginRankingLoss", "CosineEmbeddingLoss"),
        *("HingeEmbeddingLoss", "GaussianNLLLoss"),
    )
)
"""Layers of torch.nn whose forward gives one tensor."""


@lru_cache(maxsize=16_384)
def tensors_taken(name: str) -> int:
    """How many of its first arguments a function of torch takes for tensors and nothing else."""
    package, _, last = name.rpartition(".")
    if package not in _PACKAGES or last not in TAKING_TENSORS:
        return 0
    return 2 if last in TWO_TENSORS else 1


def tensors_forwarded(layer: str) -> int:
    """How many of the first arguments of a call a layer of torch.nn, by the name of its class, takes for tensors."""
    if layer not in TENSOR_LAYERS:
        return 0
    return 2 if layer.endswith("Loss") else 1


TWO_TENSORS = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "outer", "cdist", "cosine_similarity", "linear", "conv1d", "conv2d", "conv3d"}
    | {"cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy", "kl_div"}
    | {"binary_cross_entropy_with_logits", "scaled_dot_product_attention", "embedding"}
)
_NO_TENSOR_FIRST = frozenset(
    {"where", "cat", "stack", "hstack", "vstack", "dstack", "einsum", "from_numpy", "frombuffer", "normal", "multi_dot"}
    | {"add", "sub", "mul", "subtract", "multiply", "pow", "bernoulli", "isin", "tensordot", "affine_grid", "xlogy"}
    | {"fmod", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide"}
)
PAIRING = frozenset({"sort", "topk", "kthvalue", "mode", "cummax", "cummin"})
"""They give values, and the indices of these."""
PAIRING_ALONG = frozenset({"max", "min", "median", "nanmedian"})
"""So do these, if they are told a dimension."""
PARTING = frozenset({"chunk", "split", "unbind", "tensor_split"})
"""They give parts of a tensor, which are of its dtype."""
DIVIDING = frozenset({"div", "divide", "true_divide"})
"""They give a floating dtype, unless they are told to round."""

ONE_TENSOR = (
    SAME_DTYPE
    | FLOAT_RESULT
    | TENSOR_FUNCTIONS
    | frozenset({"argmax", "argmin", "argsort", "isnan", "isinf", "isfinite"})
    | PAIRING
    | PARTING
    | DIVIDING
) - _NO_TENSOR_FIRST
"""Functions whose first argument is a tensor, or torch raises: no number, no list, no array."""
TAKING_TENSORS = TWO_TENSORS | ONE_TENSOR
_PACKAGES = frozenset({"torch", "torch.nn.functional", "torch.linalg"})

SHAPING = frozenset(
    {
        "view",
        "reshape",
        "expand",
        "repeat",
        "contiguous",
        "cpu",
        "cuda",
        "t",
        "narrow",
        "chunk",
        "split",
        "unbind",
        "gather",
        "index_select",
    }
    | {
        "masked_fill",
        "fill",
        "requires_grad",
        "pin_memory",
        "view_as",
        "expand_as",
        "reshape_as",
        "movedim",
        "swapaxes",
        "copy",
        "uniform",
    }
    | {
        "normal",
        "zero",
        "select",
        "repeat_interleave",
        "masked_select",
        "index_fill",
        "index_add",
        "scatter",
        "scatter_add",
    }
)
"""Methods whose result has the dtype of their tensor, besides those that are functions too."""
SCALING = frozenset({"mul", "div", "true_divide", "divide", "multiply"})
ADDING = frozenset({"add", "sub", "subtract"})
NEW = frozenset({"new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"})

TENSORS_ALONE = frozenset(
    {"to", "type", "half", "float", "double", "bfloat16", "byte", "char", "short", "int", "long", "cpu", "cuda"}
    | {"contiguous", "detach", "unsqueeze_", "scatter", "gather", "sigmoid", "softmax", "logical_not", "clamp_min"}
    | {"exp", "expm1", "log1p", "tanh"}
)
"""Methods that nothing has but tensors of all that operators give: no array, no number, no data frame. Those that nothing
has at all are proofs: `dtlint.infer.evidence.OF_TENSORS`."""

TAKING_DTYPE = frozenset(
    {"sum", "nansum", "mean", "nanmean", "prod", "cumsum", "cumprod", "softmin", "norm", "vector_norm", "matrix_norm"}
)
"""Their `dtype=` argument is what they give."""
KEEPING_DIMENSIONS = SAME_DTYPE - {"squeeze", "reshape"}
