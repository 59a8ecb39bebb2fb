"""What functions and methods of torch do to the dtype of what they are given, by their names alone.

This is for code in which nobody knows what a value is. Where a value is a tensor for certain, `dtlint.dtypes` knows more.
"""

from __future__ import annotations

__all__ = [
    "CASTS",
    "DTYPE_FREE",
    "FACTORIES",
    "FLOAT32",
    "JOINING",
    "KEEPING",
    "LIKE",
    "MAKING",
    "NO_DTYPE",
    "NO_TENSOR",
    "PRODUCTS",
    "SCALAR",
    "TORCH",
    "UNTOLD",
    "WIDE",
]

TORCH = frozenset({"torch", "th", "F", "nn.functional", "torch.nn.functional", "torch.linalg", "torch.special"})
"""What the functions of torch are found in, as programs write it."""
FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "linspace", "logspace", "eye", "tensor", "normal"}
)
"""Functions that make a tensor of the default dtype, unless they are told another."""
UNTOLD = frozenset({"Tensor", "FloatTensor"})
"""The legacy constructors, `torch.Tensor([0.5])`, whose dtype inference does not know, and which can be told none."""
MAKING = FACTORIES | {"arange"}
"""The same, and what makes numbers in order: of float32, where it is told."""
DTYPE_FREE = frozenset({"arange", "randint", "randperm", "multinomial", "bernoulli"})
"""Functions that make integers mostly, or ones and zeros."""
LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like"})
"""Functions that make a tensor of the dtype of their first."""
CASTS = {"float": "torch.float32", "half": "torch.float16", "double": "torch.float64", "bfloat16": "torch.bfloat16"}
"""Methods that cast, with the dtype."""
FLOAT32 = ("torch.float32", "torch.float")
"""How float32 is written."""
WIDE = frozenset({*FLOAT32, "torch.float64", "torch.double"})
"""How float32 and float64 are written."""
SCALAR = frozenset({"tensor", "as_tensor", "sum", "mean", "item"})
"""What gives a tensor without dimensions more often than not: such a one promotes nothing."""
NO_TENSOR = frozenset(
    {
        *("shape", "device", "dtype", "ndim", "is_cuda", "requires_grad", "grad_fn", "layout", "config", "training"),
        *("itemsize",),
    }
)
"""Attributes that are no tensors."""
NO_DTYPE = frozenset(
    {
        *("size", "dim", "item", "tolist", "numel", "argmax", "argmin", "argsort", "long", "int", "bool", "nonzero"),
        *("len", "range", "isinstance", "is_tensor", "min_int", "max_int", "int32", "ge", "gt", "le", "lt", "eq", "ne"),
        *("isnan", "isinf", "isfinite", "all", "any", "numpy", "cpu_count", "hasattr", "print", "str", "enumerate"),
        *("is_floating_point",),
    }
)
"""Calls whose result has no dtype, or one of its own that is no floating one."""
KEEPING = frozenset(
    {
        *("view", "reshape", "expand", "repeat", "contiguous", "cpu", "cuda", "t", "transpose", "permute", "unsqueeze"),
        *("squeeze", "flatten", "chunk", "split", "unbind", "detach", "clone", "clamp", "exp", "log", "sqrt", "rsqrt"),
        *("pow", "sum", "mean", "softmax", "abs", "sin", "cos", "tanh", "sigmoid", "cumsum", "cumprod", "roll", "flip"),
        *("narrow", "index_select", "gather", "select", "requires_grad_", "add_", "sub_", "mul_", "div_", "copy_"),
        *("expand_as", "view_as", "repeat_interleave", "square", "std", "var", "norm", "max", "min", "amax", "amin"),
        *("log_softmax", "relu", "round", "floor", "ceil", "tile", "movedim", "pin_memory", "triu", "tril"),
        *("masked_fill", "masked_fill_", "clamp_", "normal_", "uniform_", "fill_", "zero_", "interpolate", "pad"),
        *("normalize", "dropout", "relu_", "reciprocal", "neg", "log1p", "expm1", "rearrange", "meshgrid"),
        "affine_grid",
    }
)
"""Methods and functions that give the dtype of their tensor."""
PRODUCTS = frozenset({"matmul", "bmm", "mm", "einsum", "baddbmm", "addmm", "dot"})
"""Those that refuse tensors of two dtypes: what comes out is of the dtype of any of them."""
JOINING = PRODUCTS | {
    *("add", "sub", "mul", "div", "cat", "concat", "concatenate", "stack", "where", "lerp", "hstack", "vstack"),
    *("addcmul", "addcdiv", "maximum", "minimum", "cross", "outer", "kron", "atan2", "hypot", "true_divide"),
    *("multiply", "subtract", "divide"),
}
"""Methods and functions that give the promotion of their tensors, and the products."""
