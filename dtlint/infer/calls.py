"""What a call gives: the values that torch's factories, casts, modules, optimizers and contexts return.

Tables say which function is of which kind; a few functions say what that kind returns. What stands in no table
returns Unknown.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from dtlint.dtypes.dtype import ALIASES, COMPLEX, FLOATING, INTEGRAL, LEGACY_TENSORS
from dtlint.dtypes.promotion import Operand, result_dtype
from dtlint.infer.names import path_of
from dtlint.infer.scopes import is_module_class
from dtlint.infer.values import (
    UNKNOWN,
    Autocast,
    Constant,
    Dtype,
    Dtypes,
    External,
    GradScaler,
    Items,
    Iteration,
    Key,
    Module,
    NullContext,
    Optimizer,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    options,
)

__all__ = [
    "TENSOR_FUNCTIONS",
    "TENSOR_LAYERS",
    "Arguments",
    "cast_target",
    "dtype_of",
    "external_result",
    "literal_tensor",
    "method_result",
    "modules_of",
    "operator_result",
    "shared_region",
]

Keywords = Mapping[str, Value]


class Arguments:
    """The values given to a call, and where it stands."""

    __slots__ = ("args", "complete", "default", "keywords", "node")

    def __init__(
        self, node: ast.Call, args: list[Value], keywords: dict[str, Value], default: Dtypes, complete: bool = True
    ) -> None:
        self.node, self.args, self.keywords = node, args, keywords
        self.default = default
        """The default dtype; None when the program sets another."""
        self.complete = complete
        """False when there may be more arguments than are seen."""

    def get(self, position: int | None, name: str) -> Value | None:
        """An argument by position or keyword; None when not given."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    @property
    def key(self) -> Key:
        """The identity of an object that this call makes."""
        return f"@{self.node.lineno}:{self.node.col_offset}"


# -- dtypes -----------------------------------------------------------------------------------------------------------


def dtype_of(value: Value | None) -> Dtypes:
    """The dtypes that a `dtype=` argument names: a torch dtype, Python's float, int and bool, or one of a few."""
    if value is None:
        return None
    found: set[str] = set()
    for choice in options(value):
        if isinstance(choice, Dtype):
            found.add(choice.name)
        elif isinstance(choice, External) and choice.name in _PYTHON_TYPES:
            found.add(_PYTHON_TYPES[choice.name])
        else:
            return None
    return frozenset(found)


_PYTHON_TYPES = {
    "builtins.float": "float64",
    "builtins.int": "int64",
    "builtins.bool": "bool",
    "builtins.complex": "complex128",
}
"""`dtype=float` is float64, as in NumPy; seen on torch 2.13."""

_CAST_METHODS = ALIASES | {"bfloat16": "bfloat16", "bool": "bool"}


def cast_target(method: str, arguments: Arguments) -> tuple[bool, Dtypes]:
    """Is the method call a cast, and to which dtypes (None when that is not known)?

    `.to(device)` is none; `.to(other)` and `.type_as(other)` are casts to the other's dtype. What is called a dtype,
    `.to(weight_dtype)`, is one.
    """
    if method in _CAST_METHODS and not arguments.args:
        return True, frozenset({_CAST_METHODS[method]})
    if method == "type_as":
        return True, _dtypes(arguments.get(0, "other"))
    if method == "type":
        given = arguments.get(0, "dtype")
        return given is not None, dtype_of(given) or _legacy(given)
    if method == "to":
        for given in (
            *arguments.args,
            *(arguments.keywords[name] for name in ("dtype", "other") if name in arguments.keywords),
        ):
            if isinstance(given, Tensor):
                return True, given.dtypes
            dtypes = dtype_of(given)
            if dtypes is not None:
                return True, dtypes
        return "dtype" in arguments.keywords or any(map(_is_called_dtype, arguments.node.args)), None
    return False, None


def _is_called_dtype(node: ast.expr) -> bool:
    """Does the program call it a dtype: `dtype`, `x.dtype`, `args.weight_dtype`?"""
    return (path_of(node) or "").endswith("dtype")


def _is_no_dtype(node: ast.expr, value: Value) -> bool:
    """Is an argument of `.to` neither a dtype nor a tensor: a string, a number, or what is called a device?"""
    if isinstance(value, Constant):
        return True
    named = node.func if isinstance(node, ast.Call) else node
    return "device" in (path_of(named) or "").rpartition(".")[2]


def _legacy(value: Value | None) -> Dtypes:
    name = value.value if isinstance(value, Constant) else value.name if isinstance(value, External) else None
    dtype = LEGACY_TENSORS.get(name.rpartition(".")[2]) if isinstance(name, str) else None
    return None if dtype is None else frozenset({dtype})


def _dtypes(value: Value | None) -> Dtypes:
    return value.dtypes if isinstance(value, Tensor) else None


# -- functions of torch -----------------------------------------------------------------------------------------------

_FLOAT_FACTORIES = frozenset(
    {"zeros", "ones", "empty", "rand", "randn", "linspace", "logspace", "eye", "hann_window", "hamming_window"}
)
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like", "full_like"})
_INT_FACTORIES = frozenset({"randint", "randperm"})
_SPANS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("zeros", "empty", "zeros_like", "empty_like"), (0, 0)),
    **dict.fromkeys(("ones", "ones_like"), (1, 1)),
    "eye": (0, 1),
}
"""The least and the greatest number that factories make without being told any."""

_ELEMENTWISE = frozenset(
    {"add", "sub", "mul", "subtract", "multiply", "maximum", "minimum", "where", "cat", "stack", "pow"}
)
_SAME_DTYPE = frozenset(
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
_MOVES = frozenset(
    {"clone", "flip", "roll", "squeeze", "unsqueeze", "reshape", "transpose", "permute", "flatten", "detach"}
    | {"view", "expand", "repeat", "contiguous", "cpu", "cuda", "t"}
)
"""The result holds the same numbers."""
_FLOAT_RESULT = frozenset(
    {"exp", "log", "sqrt", "rsqrt", "sigmoid", "tanh", "sin", "cos", "softmax", "log_softmax", "erf", "log1p", "expm1"}
)
"""Keeps a floating dtype, and lifts integers to the default dtype."""
_INT_RESULT = frozenset({"argmax", "argmin", "argsort", "nonzero", "bincount", "count_nonzero"})
_BOOL_RESULT = frozenset(
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
        *("bernoulli", "multinomial", "normal", "bucketize", "searchsorted", "isin", "from_numpy"),
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

_AUTOCASTS = {"torch.amp.autocast": None, "torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu"}
_SCALERS = frozenset(
    {
        "torch.amp.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)
_AUTOCAST_DEFAULTS = {"cuda": "float16", "cpu": "bfloat16", "xpu": "bfloat16", "mps": "float16"}
"""What autocast casts to when no dtype is given: `torch.get_autocast_dtype`."""

_NULL_CONTEXTS = frozenset(
    {"torch.no_grad", "torch.enable_grad", "torch.inference_mode", "torch.set_grad_enabled", "contextlib.nullcontext"}
)
_SAME_MODULE = frozenset(
    {"torch.compile", "torch.nn.DataParallel", "torch.nn.parallel.DistributedDataParallel", "torch.jit.script"}
)
"""What wraps a module and shares its weights."""

_MODEL_MAKERS = re.compile(
    r"timm\.create_model"
    r"|torchvision\.models\.(?:\w+\.)*[a-z]\w*"
    r"|(?:transformers|diffusers)\.(?:\w+\.)*(?:\w*Model|\w+For[A-Z]\w+|\w+LMHeadModel)\.from_(?:pretrained|config)"
)
"""Functions of well-known libraries that return an nn.Module."""


def external_result(name: str, arguments: Arguments) -> Value:
    """What a function or class outside the project returns, by its qualified name."""
    if not name.startswith("torch."):
        if name in _SELECTIONS:
            return _selected(name, arguments)
        return Module(name, arguments.key) if _MODEL_MAKERS.fullmatch(name) else UNKNOWN
    maker = _MAKERS.get(name)
    if maker is not None:
        return maker(name, arguments)
    if name in _SAME_MODULE:
        wrapped = arguments.get(0, "model") or arguments.get(0, "module")
        return wrapped if isinstance(wrapped, Module) else UNKNOWN
    package, _, last = name.rpartition(".")
    if is_module_class(name):
        return Module(name, arguments.key)
    if package == "torch.optim" and last[:1].isupper():
        return Optimizer(arguments.key, modules_of(arguments.get(0, "params")))
    if package in ("torch", "torch.nn.functional", "torch.linalg", "torch.special"):
        return _function_result(last, arguments)
    return UNKNOWN


_SELECTIONS = {
    f"builtins.{name}": 0 for name in ("list", "tuple", "iter", "reversed", "sorted", "set", "enumerate")
} | {"builtins.filter": 1}
"""Built-in functions that give the items of an iterable, or some of them, and which argument that is."""


def _selected(name: str, arguments: Arguments) -> Value:
    given = arguments.args[_SELECTIONS[name]] if len(arguments.args) > _SELECTIONS[name] else UNKNOWN
    if not isinstance(given, Iteration):
        return UNKNOWN
    if name == "builtins.enumerate":
        return Iteration(Items((UNKNOWN, given.item)), of=given.of)
    return Iteration(given.item, of=given.of) if name == "builtins.filter" else given


def _autocast(name: str, arguments: Arguments) -> Value:
    device: object = _AUTOCASTS[name]
    positions = (1, 2) if device is None else (1, 0)  # the old form's first argument is `enabled`
    if device is None:
        device = _constant(arguments.get(0, "device_type"))
    device = device if isinstance(device, str) else None
    dtype = arguments.get(positions[0], "dtype")
    if dtype is None:
        known = _AUTOCAST_DEFAULTS.get(device or "")
    else:
        dtypes = dtype_of(dtype)
        known = next(iter(dtypes)) if dtypes is not None and len(dtypes) == 1 else None
    return Autocast(device, known, _switch(arguments.get(positions[1], "enabled")), arguments.node)


def _scaler(name: str, arguments: Arguments) -> Value:
    return GradScaler(arguments.key, _switch(arguments.keywords.get("enabled")))


def _null_context(name: str, arguments: Arguments) -> Value:
    return NullContext(name)


def _parameter(name: str, arguments: Arguments) -> Value:
    data = arguments.get(0, "data")
    return (
        replace(data, traits=data.traits | Trait.PARAMETER)
        if isinstance(data, Tensor)
        else Tensor(traits=Trait.PARAMETER)
    )


def _tensor(name: str, arguments: Arguments) -> Value:
    given = arguments.keywords.get("dtype")
    data = arguments.node.args[0] if arguments.node.args else None
    literal = literal_tensor(data, arguments.default) if data is not None else Tensor()
    first = arguments.get(0, "data")
    if isinstance(first, Tensor):
        literal = replace(first, origin=None)
    return replace(literal, dtypes=literal.dtypes if given is None else dtype_of(given), origin=arguments.node)


def _legacy_tensor(name: str, arguments: Arguments) -> Value:
    return Tensor(_legacy(External(name)), origin=arguments.node)


_MAKERS: dict[str, Callable[[str, Arguments], Value]] = {
    **dict.fromkeys(_AUTOCASTS, _autocast),
    **dict.fromkeys(_SCALERS, _scaler),
    **dict.fromkeys(_NULL_CONTEXTS, _null_context),
    **dict.fromkeys((f"torch.{name}" for name in LEGACY_TENSORS), _legacy_tensor),
    "torch.nn.Parameter": _parameter,
    "torch.tensor": _tensor,
    "torch.as_tensor": _tensor,
}


def _constant(value: Value | None) -> object:
    return value.value if isinstance(value, Constant) else None


def _switch(value: Value | None) -> bool | None:
    """An `enabled=` argument: on when not given, None when the program decides."""
    if value is None:
        return True
    return bool(value.value) if isinstance(value, Constant) else None


def modules_of(value: Value | None) -> frozenset[Key]:
    """The modules whose parameters an optimizer is given: `m.parameters()`, or lists and groups of those."""
    if isinstance(value, Iteration) and value.of is not None:
        return frozenset({value.of})
    if isinstance(value, Items):
        return frozenset().union(*map(modules_of, value.items))
    if isinstance(value, Table):
        return modules_of(value.items.get("params"))
    return frozenset()


def _function_result(name: str, arguments: Arguments) -> Value:
    """A function of torch or torch.nn.functional, by its last name."""
    given = arguments.keywords.get("dtype")
    chosen = dtype_of(given)
    origin = arguments.node
    span = _span_made(name, arguments)
    traits = Trait.NONE if span is None else Trait.CONSTANT
    if name in _FLOAT_FACTORIES:
        scalar = _is_scalar_shape(arguments)
        return Tensor(arguments.default if given is None else chosen, scalar, traits, origin=origin, span=span)
    if name in _INT_FACTORIES:
        return Tensor(frozenset({"int64"}) if given is None else chosen, traits=traits, origin=origin)
    first = arguments.args[0] if arguments.args else None
    if name in _LIKE:
        return Tensor(_dtypes(first) if given is None else chosen, traits=traits, origin=origin, span=span)
    if name in ("full", "arange"):
        numbers = arguments.args[1:2] if name == "full" else arguments.args
        dtypes = _of_numbers(numbers, arguments.default) if given is None else chosen
        return Tensor(dtypes, traits=traits, origin=origin, span=span)
    if name in _ELEMENTWISE:
        value = operator_result(arguments.args[name == "where" :], arguments.default, origin)
        return (
            replace(value, traits=value.traits | _TRAITS.get(name, Trait.NONE)) if isinstance(value, Tensor) else value
        )
    if isinstance(first, Tensor):
        return _of_tensor(name, first, arguments, chosen if given is not None else None)
    if name in TENSOR_FUNCTIONS:
        return Tensor(under=shared_region(arguments.args), origin=origin)
    return Unknown(first.under) if isinstance(first, Unknown) and first.under else UNKNOWN


def _span_made(name: str, arguments: Arguments) -> tuple[float, float] | None:
    """The span of the constants that a factory makes a tensor of; None where they are not written out."""
    if name in ("full", "full_like"):
        return _span([arguments.get(1, "fill_value")])
    if name == "linspace":
        return _span([arguments.get(0, "start"), arguments.get(1, "end")])
    if name == "arange":
        start, end = ([Constant(0), *arguments.args] if len(arguments.args) == 1 else [*arguments.args, None, None])[:2]
        span = _span([start, end])
        if span is None:
            return None
        # The end is left out: one towards the start is as far as whole numbers come.
        return (span[0], max(span[0], span[1] - 1)) if _span([start]) == (span[0],) * 2 else (span[0] + 1, span[1])
    return _SPANS.get(name)


def _is_scalar_shape(arguments: Arguments) -> bool | None:
    """Do the sizes given to a factory make a 0-dim tensor? None when they are not written out."""
    if not arguments.args:
        return None
    size = arguments.args[0]
    if isinstance(size, Items):
        return not size.items
    return False if isinstance(size, Constant) and isinstance(size.value, int) else None


def _of_tensor(name: str, tensor: Tensor, arguments: Arguments, chosen: Dtypes) -> Value:
    """A function or method of one tensor that is known by name, else Unknown."""
    name = name.rstrip("_")
    if name == "detach":
        tensor = replace(tensor, under=None)
    if name in _SAME_DTYPE:
        span = tensor.span if name in _MOVES else None
        return replace(tensor, traits=tensor.traits | _TRAITS.get(name, Trait.NONE), zero_dim=None, span=span)
    if name in _FLOAT_RESULT:
        return Tensor(chosen or _floated(tensor.dtypes, arguments.default), under=tensor.under, origin=arguments.node)
    if name in _INT_RESULT:
        return Tensor(frozenset({"int64"}), origin=arguments.node)
    if name in _BOOL_RESULT:
        return Tensor(frozenset({"bool"}), origin=arguments.node)
    if name in TENSOR_FUNCTIONS:
        under = shared_region((tensor, *arguments.args))
        return Tensor(under=under, scaled=tensor.scaled, origin=arguments.node)
    return Unknown(tensor.under, tensor.scaled)


_TRAITS = dict.fromkeys(
    ("clamp", "clip", "clamp_min", "clamp_max", "maximum", "minimum", "where"), Trait.CLAMPED
) | dict.fromkeys(("mul", "multiply"), Trait.SCALED)
_TRAITS |= dict.fromkeys(("round", "floor", "ceil", "trunc"), Trait.ROUNDED) | {
    "sign": Trait.CONSTANT,
    "nan_to_num": Trait.CLAMPED,
}


def _floated(dtypes: Dtypes, default: Dtypes) -> Dtypes:
    if dtypes is None:
        return None
    if dtypes <= FLOATING | COMPLEX:
        return dtypes
    return default if dtypes <= INTEGRAL | {"bool"} else None


def _span(values: Sequence[Value | None]) -> tuple[float, float] | None:
    """The least and the greatest of some numbers; None when one is no known number."""
    numbers = [
        number for number in map(_constant, values) if isinstance(number, (int, float)) and abs(number) < math.inf
    ]
    return (min(numbers), max(numbers)) if numbers and len(numbers) == len(values) else None


def _of_numbers(values: list[Value], default: Dtypes) -> Dtypes:
    """The dtype that `arange` and `full` take from their numbers: integers give int64, a float the default dtype."""
    kinds = {_number_dtype(value, default) for value in values}
    if None in kinds or not kinds:
        return None
    return default if kinds & FLOATING else frozenset({"int64"})


def _number_dtype(value: Value, default: Dtypes) -> str | None:
    """The dtype that a Python number has in promotion, or None when the value is no known number."""
    number = value.value if isinstance(value, Constant) else None
    if isinstance(number, bool):
        return "bool"
    if isinstance(number, int):
        return "int64"
    kind = {float: "float", complex: "complex"}.get(type(number))
    if kind is None or default is None or len(default) != 1:
        return None
    (base,) = default
    return base if kind == "float" else {"float64": "complex128", "float16": "complex32"}.get(base, "complex64")


def literal_tensor(node: ast.expr, default: Dtypes) -> Tensor:
    """The tensor that `torch.tensor(node)` makes of a literal number or nest of lists."""
    kinds: set[type] = set()
    numbers: list[Value | None] = []
    nested = isinstance(node, (ast.List, ast.Tuple))
    queue: list[tuple[ast.expr, int]] = [(node, 1)]
    while queue:
        item, sign = queue.pop()
        if isinstance(item, (ast.List, ast.Tuple)):
            queue += [(inner, 1) for inner in item.elts]
        elif isinstance(item, ast.Constant):
            kinds.add(type(item.value))
            numbers.append(
                Constant(item.value if sign > 0 or not isinstance(item.value, (int, float)) else -item.value)
            )
        elif isinstance(item, ast.UnaryOp) and isinstance(item.op, (ast.USub, ast.UAdd)):
            queue.append((item.operand, -sign if isinstance(item.op, ast.USub) else sign))
        elif isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id == "float":
            kinds.add(float)
            numbers.append(None)
        else:
            return Tensor()
    if not kinds <= {bool, int, float}:
        return Tensor()
    dtypes: Dtypes = default if float in kinds or not kinds else frozenset({"int64" if int in kinds else "bool"})
    traits = Trait.NONE if None in numbers else Trait.CONSTANT
    return Tensor(dtypes, zero_dim=not nested, traits=traits, span=_span(numbers))


# -- methods ----------------------------------------------------------------------------------------------------------

_PARAMETER_TENSOR = Tensor(FLOATING, traits=Trait.PARAMETER)
_SHAPING = frozenset(
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
_SCALING = frozenset({"mul", "div", "true_divide", "divide", "multiply"})
_ADDING = frozenset({"add", "sub", "subtract"})
_NEW = frozenset({"new_zeros", "new_ones", "new_full", "new_empty", "new_tensor"})


def method_result(receiver: Value, method: str, arguments: Arguments) -> Value:
    """What a method returns, by what its receiver is."""
    if isinstance(receiver, Tensor):
        return _tensor_method(receiver, method, arguments)
    if isinstance(receiver, Module):
        return _module_method(receiver, method)
    if isinstance(receiver, GradScaler):
        return Unknown(scaled=receiver.key) if method == "scale" else UNKNOWN
    if isinstance(receiver, Unknown) and receiver.under is not None:
        return Unknown(receiver.under, receiver.scaled)
    return UNKNOWN


def _tensor_method(tensor: Tensor, method: str, arguments: Arguments) -> Value:
    is_cast, dtypes = cast_target(method, arguments)
    if is_cast:
        return replace(tensor, dtypes=dtypes, traits=tensor.traits | _kept_whole(tensor), origin=arguments.node)
    if method == "to":  # to a device, unless an argument that is not known is a dtype
        sent = all(map(_is_no_dtype, arguments.node.args, arguments.args))
        return tensor if sent else replace(tensor, dtypes=None)
    name = method.rstrip("_")
    in_place = method.endswith("_") and not method.startswith("_")
    if name in _SHAPING:
        return replace(tensor, zero_dim=None, span=tensor.span if name in _MOVES else None)
    if name in _SCALING or name in _ADDING:
        value = operator_result([tensor, *arguments.args[:1]], arguments.default, arguments.node)
        if not isinstance(value, Tensor):
            return value
        traits = value.traits | Trait.SCALED if name in _SCALING else value.traits
        return replace(value, dtypes=tensor.dtypes if in_place else value.dtypes, traits=traits)
    if name in _NEW:
        given = arguments.keywords.get("dtype")
        return Tensor(tensor.dtypes if given is None else dtype_of(given), origin=arguments.node)
    chosen = dtype_of(arguments.keywords.get("dtype"))
    return _of_tensor(name, tensor, arguments, chosen)


def _kept_whole(tensor: Tensor) -> Trait:
    """A cast leaves whole numbers whole: what may have been a mask, an index or an image still holds its values."""
    known = tensor.dtypes is not None and tensor.dtypes <= FLOATING
    return Trait.NONE if known else Trait.ROUNDED


def _module_method(module: Module, method: str) -> Value:
    if method in _RETURNS_SELF:
        return module
    item = _MODULE_ITERATIONS.get(method)
    return UNKNOWN if item is None else Iteration(item, f"torch.nn.Module.{method}", module.key)


_RETURNS_SELF = frozenset(
    {
        "to",
        "half",
        "float",
        "double",
        "bfloat16",
        "type",
        "cuda",
        "cpu",
        "train",
        "eval",
        "requires_grad_",
        "apply",
        "to_empty",
        "share_memory",
    }
)
_SUBMODULE = Module("torch.nn.Module", "submodule")
_MODULE_ITERATIONS: dict[str, Value] = {
    "parameters": _PARAMETER_TENSOR,
    "named_parameters": Items((UNKNOWN, _PARAMETER_TENSOR)),
    "buffers": Tensor(),
    "named_buffers": Items((UNKNOWN, Tensor())),
    "modules": _SUBMODULE,
    "children": _SUBMODULE,
    "named_modules": Items((UNKNOWN, _SUBMODULE)),
    "named_children": Items((UNKNOWN, _SUBMODULE)),
}


# -- operators --------------------------------------------------------------------------------------------------------


def shared_region(operands: Iterable[Value]) -> Autocast | None:
    """The autocast region that a result of these is still of; None where they come from different ones."""
    regions = [value.under for value in operands if isinstance(value, (Tensor, Unknown)) and value.under is not None]
    return regions[0] if regions and all(region == regions[0] for region in regions) else None


def operator_result(operands: list[Value], default: Dtypes, origin: ast.expr | None) -> Value:
    """An elementwise arithmetic operation on tensors and numbers, by torch's promotion."""
    tensors = [value for value in operands if isinstance(value, Tensor)]
    under = shared_region(operands)
    if not tensors:
        return Unknown(under) if under is not None else UNKNOWN
    known: list[list[Operand]] = []
    every, any_ = tensors[0].traits, Trait.NONE
    for tensor in tensors:
        every &= tensor.traits
        any_ |= tensor.traits
    # A zero point added to what was scaled and rounded leaves it so.
    traits = (every & Trait.CONSTANT) | (any_ & (Trait.CLAMPED | Trait.ROUNDED | Trait.SCALED))
    for value in operands:
        ranks = _ranked(value, default)
        if ranks is None:
            return Tensor(None, traits=traits, under=under, origin=origin)
        known.append(ranks)
    dtypes = _promoted(known)
    return Tensor(dtypes, traits=traits, under=under, origin=origin)


_MOST_COMBINATIONS = 64


def _ranked(value: Value, default: Dtypes) -> list[Operand] | None:
    """The operands that a value can be in promotion; None when that is not known."""
    if isinstance(value, Tensor):
        if value.dtypes is None:
            return None
        ranks = (1, 2) if value.zero_dim is None else (1,) if value.zero_dim else (2,)
        return [(dtype, rank) for dtype in sorted(value.dtypes) for rank in ranks]
    number = _number_dtype(value, default)
    return None if number is None else [(number, 0)]


def _promoted(operands: list[list[Operand]]) -> Dtypes:
    combinations: list[list[Operand]] = [[]]
    for ranks in operands:
        combinations = [[*done, operand] for done in combinations for operand in ranks]
        if len(combinations) > _MOST_COMBINATIONS:
            return None
    results = {result_dtype(combination) for combination in combinations}
    return None if None in results else frozenset(dtype for dtype in results if dtype is not None)
