"""What a call gives: the values that torch's factories, casts, modules, optimizers and contexts return.

Tables say which function is of which kind; a few functions say what that kind returns. What stands in no table
returns Unknown.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from dtlint.dtypes.dtype import ALIASES, COMPLEX, DTYPES, FLOATING, LEGACY_TENSORS, Category
from dtlint.infer.arithmetic import (
    FLOATS,
    constant_of,
    dtype_filled,
    dtype_of_category,
    dtype_of_data,
    dtype_of_numbers,
    floated,
    in_place_of,
    keeps_dtype,
    literal_tensor,
    operator_result,
    shared_region,
    span_of,
)
from dtlint.infer.arrays import of_arrays
from dtlint.infer.kinds import (
    ADDING,
    BOOL_RESULT,
    DIVIDING,
    ELEMENTWISE,
    FLOAT_FACTORIES,
    FLOAT_RESULT,
    INT_FACTORIES,
    INT_RESULT,
    KEEPING_DIMENSIONS,
    LIKE,
    MOVES,
    NEW,
    PAIRING,
    PAIRING_ALONG,
    PARTING,
    SAME_DTYPE,
    SCALING,
    SHAPING,
    SPANS,
    TAKING_DTYPE,
    TAKING_TENSORS,
    TENSOR_FUNCTIONS,
)
from dtlint.infer.names import path_of
from dtlint.infer.ops import is_op
from dtlint.infer.scopes import is_module_class
from dtlint.infer.symbols import (
    asked,
    category_of,
    lifted,
    part_of,
    promoted_dtype,
    same_dtype,
    symbol_as_dtype,
    symbol_of,
    tensor_of,
)
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Array,
    Autocast,
    Constant,
    Conversion,
    Device,
    Dtype,
    DtypeOf,
    Dtypes,
    External,
    Function,
    GradScaler,
    Items,
    Iteration,
    Key,
    Module,
    NullContext,
    Optimizer,
    Partial,
    Symbol,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    options,
)

__all__ = [
    "AUTOCAST_DEFAULTS",
    "CASTS",
    "Arguments",
    "cast_target",
    "dtype_of",
    "external_result",
    "literal_tensor",
    "method_result",
    "module_cast",
    "modules_of",
]

Keywords = Mapping[str, Value]


class Arguments:
    """The values given to a call, and where it stands."""

    __slots__ = ("args", "complete", "default", "keywords", "node", "region")

    def __init__(
        self,
        node: ast.Call,
        args: list[Value],
        keywords: dict[str, Value],
        default: Dtypes,
        complete: bool = True,
        region: Autocast | None = None,
    ) -> None:
        self.node, self.args, self.keywords = node, args, keywords
        self.default = default
        """The default dtype; None when the program sets another."""
        self.complete = complete
        """False when there may be more arguments than are seen."""
        self.region = region
        """The autocast region in force."""

    def get(self, position: int | None, name: str) -> Value | None:
        """An argument by position or keyword; None when not given."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    def given_to(self, partial: Partial) -> Arguments:
        """What the callable gets that a partial is made of."""
        args, keywords = [*partial.args, *self.args], {**partial.keywords, **self.keywords}
        return Arguments(self.node, args, keywords, self.default, self.complete, self.region)

    def without(self) -> Arguments:
        """The same call, given nothing."""
        return Arguments(self.node, [], {}, self.default, self.complete, self.region)

    def beginning_with(self, first: Value) -> Arguments:
        """The same, but for the first."""
        args = [first, *self.args[1:]]
        return Arguments(self.node, args, self.keywords, self.default, self.complete, self.region)

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
        elif isinstance(choice, DtypeOf) and choice.dtypes is not None:
            found |= choice.dtypes
        else:
            return None
    return frozenset(found)


def _given_dtype(arguments: Arguments) -> Value | None:
    """The `dtype=` argument; None when it is not given, or given as None."""
    given = arguments.keywords.get("dtype")
    return None if isinstance(given, Constant) and given.value is None else given


_PYTHON_TYPES = {
    "builtins.float": "float64",
    "builtins.int": "int64",
    "builtins.bool": "bool",
    "builtins.complex": "complex128",
}
"""`dtype=float` is float64, as in NumPy; seen on torch 2.13."""

CASTS = ALIASES | {"bfloat16": "bfloat16", "bool": "bool"}
"""Methods that cast a tensor, and to what."""


def cast_target(method: str, arguments: Arguments) -> tuple[bool, Dtypes]:
    """Is the method call a cast, and to which dtypes (None when that is not known)?

    `.to(device)` is none; `.to(other)` and `.type_as(other)` are casts to the other's dtype. What is called a dtype,
    `.to(weight_dtype)`, is one.
    """
    is_cast, dtypes, _ = _cast(method, arguments)
    return is_cast, dtypes


def module_cast(method: str, arguments: Arguments) -> tuple[bool, Dtypes]:
    """May the method of a module cast its weights, and to which dtypes (None when that is not known)?"""
    is_cast, dtypes, _ = _cast(method, arguments)
    if not is_cast and method == "to":  # to a device, unless an argument that is not known is a dtype
        is_cast = not all(map(_is_no_dtype, arguments.node.args, arguments.args)) or not arguments.complete
    return is_cast or method in _REPLACING, dtypes


_REPLACING = frozenset({"apply", "load_state_dict", "_apply", "to_empty", "register_parameter", "add_module"})
"""Methods of a module that may put other weights in the place of its own."""


def _cast(method: str, arguments: Arguments) -> tuple[bool, Dtypes, Symbol | None]:
    """`cast_target`, and what decides the dtype where it is not known."""
    if method in CASTS and not arguments.args:
        return True, frozenset({CASTS[method]}), None
    if method == "type_as":
        other = arguments.get(0, "other")
        return True, _dtypes(other), symbol_of(other)
    if method == "type":
        given = arguments.get(0, "dtype")
        return given is not None, dtype_of(given) or _legacy(given), symbol_as_dtype(given)
    if method == "to":
        for given in (
            *arguments.args,
            *(arguments.keywords[name] for name in ("dtype", "other") if name in arguments.keywords),
        ):
            if isinstance(given, (Tensor, DtypeOf)):
                return True, given.dtypes, given.symbol
            dtypes = dtype_of(given)
            if dtypes is not None:
                return True, dtypes, None
        named = [
            given for given, node in zip(arguments.args, arguments.node.args, strict=False) if _is_called_dtype(node)
        ]
        named += [arguments.keywords["dtype"]] if "dtype" in arguments.keywords else []
        return bool(named), None, symbol_as_dtype(named[0]) if len(named) == 1 else None
    return False, None, None


def _is_called_dtype(node: ast.expr) -> bool:
    """Does the program call it a dtype: `dtype`, `x.dtype`, `args.weight_dtype`, `self.get_dtype()`?"""
    return (path_of(node.func if isinstance(node, ast.Call) else node) or "").endswith("dtype")


def _is_no_dtype(node: ast.expr, value: Value) -> bool:
    """Is an argument of `.to` neither a dtype nor a tensor: a string, a number, or what is called a device?"""
    if all(isinstance(choice, (Constant, Device)) for choice in options(value)):
        return not any(type(choice.value) in (float, complex) for choice in options(value) if type(choice) is Constant)
    named = node.func if isinstance(node, ast.Call) else node
    return "device" in (path_of(named) or "").rpartition(".")[2]


def _legacy(value: Value | None) -> Dtypes:
    name = value.value if isinstance(value, Constant) else value.name if isinstance(value, External) else None
    dtype = LEGACY_TENSORS.get(name.rpartition(".")[2]) if isinstance(name, str) else None
    return None if dtype is None else frozenset({dtype})


def _dtypes(value: Value | None) -> Dtypes:
    return value.dtypes if isinstance(value, Tensor) else None


# -- functions of torch -----------------------------------------------------------------------------------------------

_AUTOCASTS = {"torch.amp.autocast": None, "torch.cuda.amp.autocast": "cuda", "torch.cpu.amp.autocast": "cpu"}
_SCALERS = frozenset(
    {
        "torch.amp.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)
AUTOCAST_DEFAULTS = {"cuda": "float16", "cpu": "bfloat16", "mps": "float16"}
"""What autocast casts to when no dtype is given: `torch.get_autocast_dtype`. That of xpu has changed."""

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


@lru_cache(maxsize=16_384)
def _makes_model(name: str) -> bool:
    return _MODEL_MAKERS.fullmatch(name) is not None


def external_result(name: str, arguments: Arguments) -> Value:
    """What a function or class outside the project returns, by its qualified name."""
    if not name.startswith("torch."):
        if name in _SELECTIONS:
            return _selected(name, arguments)
        if name.startswith("einops."):
            return _of_einops(name.rpartition(".")[2], arguments)
        if name == "functools.reduce":
            return _folded(arguments)
        return Module(name, arguments.key) if _makes_model(name) else UNKNOWN
    maker = _MAKERS.get(name)
    if maker is not None:
        return maker(name, arguments)
    if name in _SAME_MODULE:
        wrapped = arguments.get(0, "model") or arguments.get(0, "module")
        return wrapped if isinstance(wrapped, (Module, Function)) else UNKNOWN
    package, _, last = name.rpartition(".")
    if is_module_class(name):
        return Module(name, arguments.key, items=_items_of(name, arguments))
    if package == "torch.optim" and last[:1].isupper():
        return Optimizer(arguments.key, modules_of(arguments.get(0, "params")))
    if name in _UNLIKE:
        return _UNLIKE[name](arguments)
    if package in ("torch", "torch.nn.functional", "torch.linalg", "torch.special"):
        return _function_result(last, arguments, package)
    return UNKNOWN


def _embedded(arguments: Arguments) -> Value:
    """`F.embedding(input, weight)` is `torch.embedding(weight, indices)`."""
    weight, indices = arguments.get(1, "weight"), arguments.get(0, "input")
    if weight is None or indices is None or not arguments.complete:
        return Tensor(origin=arguments.node)
    given = Arguments(arguments.node, [weight, indices], {}, arguments.default, True, arguments.region)
    made = _function_result("embedding", given, "torch")
    return made if isinstance(made, Tensor) else Tensor(origin=arguments.node)


def _promoted(arguments: Arguments) -> Value:
    """`torch.promote_types(x.dtype, torch.float32)`."""
    first, second = arguments.get(0, "type1"), arguments.get(1, "type2")
    return UNKNOWN if first is None or second is None else promoted_dtype((first, second))


def _folded(arguments: Arguments) -> Value:
    """`functools.reduce(torch.promote_types, (x.dtype, y.dtype, torch.float32))`."""
    if len(arguments.args) < 2:
        return UNKNOWN
    function, items, *first = arguments.args
    if not isinstance(function, External) or function.name != "torch.promote_types" or not isinstance(items, Items):
        return UNKNOWN
    return promoted_dtype((*first, *items.items))


_UNLIKE: dict[str, Callable[[Arguments], Value]] = {
    "torch.promote_types": _promoted,
    "torch.nn.functional.embedding": _embedded,
    "torch.embedding_bag": lambda _: UNKNOWN,
    "torch.adaptive_max_pool1d": lambda _: UNKNOWN,
}
"""Functions whose namesakes elsewhere in torch take other arguments, or give something else: the last two give tuples."""


def _items_of(name: str, arguments: Arguments) -> tuple[Value, ...] | None:
    """The modules that a container of torch.nn is made of."""
    if name not in _CONTAINERS or not arguments.complete or not arguments.args:
        return None
    first = arguments.args[0]
    if name == "torch.nn.Sequential":
        items: tuple[Value, ...] = tuple(arguments.args)
    elif isinstance(first, Items):
        items = first.items
    elif isinstance(first, Iteration):
        items = (first.item,)
    else:
        items = tuple(first.items.values()) if isinstance(first, Table) else ()
    return items if items and all(isinstance(item, Module) for item in items) else None


_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})

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


_REDUCTIONS = {"sum": "sum", "mean": "mean", "prod": "prod", "max": "amax", "min": "amin"}
"""What `einops.reduce` is told, and the method of a tensor that it calls."""


def _of_einops(name: str, arguments: Arguments) -> Value:
    """What a function of einops gives. `rearrange` and `repeat` move the values of a tensor, or of a list of such, which is
    stacked; `reduce` calls a method of it."""
    if name == "einsum":
        return _contracted(arguments.args[:-1], arguments)
    if name not in ("rearrange", "repeat", "reduce"):
        return UNKNOWN
    given = arguments.get(0, "tensor") or UNKNOWN
    if isinstance(given, (Items, Iteration)):
        given = _function_result("stack", Arguments(arguments.node, [given], {}, arguments.default), "torch")
    if name != "reduce":
        if isinstance(given, Tensor):
            return method_result(given, "reshape", arguments)
        return given if type(given) is Unknown or isinstance(given, Array) else UNKNOWN
    method = constant_of(arguments.get(2, "reduction"))
    if not isinstance(given, Tensor) or method not in _REDUCTIONS:
        return UNKNOWN
    plain = Arguments(arguments.node, [], {}, arguments.default, region=arguments.region)
    return method_result(given, _REDUCTIONS[str(method)], plain)


def _autocast(name: str, arguments: Arguments) -> Value:
    device: object = _AUTOCASTS[name]
    positions = (1, 2) if device is None else (1, 0)  # the old form's first argument is `enabled`
    if device is None:
        device = constant_of(arguments.get(0, "device_type"))
    device = device if isinstance(device, str) else None
    dtype = arguments.get(positions[0], "dtype")
    if dtype is None:
        known = AUTOCAST_DEFAULTS.get(device or "")
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
    trait = Trait.BUFFER if name == "torch.nn.Buffer" else Trait.PARAMETER
    return data.but(traits=data.traits | trait) if isinstance(data, Tensor) else Tensor(traits=trait)


def _tensor(name: str, arguments: Arguments) -> Value:
    given = _given_dtype(arguments)
    data = arguments.node.args[0] if arguments.node.args else None
    literal = literal_tensor(data, arguments.default) if data is not None else Tensor()
    first = arguments.get(0, "data")
    taken: Tensor | None = None
    if isinstance(first, Tensor):
        literal = first.but(origin=None)
    elif (taken := of_arrays(first)) is not None:
        literal = taken
    elif literal.dtypes is None and (category := None if first is None else category_of(first)) is not None:
        literal = Tensor(dtype_of_category(category, arguments.default), zero_dim=True)
    elif literal.dtypes is None and isinstance(first, (Items, Iteration)):
        literal = Tensor(dtype_of_data(first, arguments.default), zero_dim=False)
    if given is None:
        defaulted = literal.dtypes is not None and literal.dtypes == arguments.default
        made = not isinstance(first, Tensor) and taken is None and defaulted
        return literal.but(traits=literal.traits | (Trait.DEFAULTED if made else Trait.NONE), origin=arguments.node)
    return Tensor(
        dtype_of(given),
        literal.zero_dim,
        literal.traits,
        origin=arguments.node,
        span=literal.span,
        symbol=_named(given),
    )


def _from_numpy(name: str, arguments: Arguments) -> Value:
    taken = of_arrays(arguments.get(0, "ndarray"))
    return Tensor(origin=arguments.node) if taken is None else taken.but(origin=arguments.node)


def _default_tensor(name: str, arguments: Arguments) -> Value:
    """`torch.Tensor(data)`: of the default dtype, whatever the numbers are; a tensor that it is given keeps its own."""
    given = arguments.args[0] if arguments.args else None
    if isinstance(given, (Tensor, Unknown)):
        return Tensor(origin=arguments.node)
    return Tensor(arguments.default, origin=arguments.node)


def _named(dtype: Value) -> Symbol | None:
    """What decides a `dtype=` argument that is not known."""
    dtypes = dtype_of(dtype)
    return symbol_as_dtype(dtype) if dtypes is None or len(dtypes) > 1 else None


def _legacy_tensor(name: str, arguments: Arguments) -> Value:
    return Tensor(_legacy(External(name)), origin=arguments.node)


_MAKERS: dict[str, Callable[[str, Arguments], Value]] = {
    **dict.fromkeys(_AUTOCASTS, _autocast),
    **dict.fromkeys(_SCALERS, _scaler),
    **dict.fromkeys(_NULL_CONTEXTS, _null_context),
    **dict.fromkeys((f"torch.{name}" for name in LEGACY_TENSORS), _legacy_tensor),
    "torch.nn.Parameter": _parameter,
    "torch.nn.Buffer": _parameter,
    "torch.tensor": _tensor,
    "torch.as_tensor": _tensor,
    "torch.asarray": _tensor,
    "torch.from_numpy": _from_numpy,
    "torch.Tensor": _default_tensor,
}


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


def _function_result(name: str, arguments: Arguments, package: str) -> Value:
    """A function of torch or one of its packages, by its last name."""
    written = arguments.keywords.get("out")
    if written is not None and written != NONE:  # it is what comes back
        return written if isinstance(written, Tensor) else UNKNOWN
    given = _given_dtype(arguments)
    if not arguments.complete and given is None:
        given = UNKNOWN  # `**kwargs` may bring a dtype
    chosen, symbol = (None, None) if given is None else (dtype_of(given), _named(given))
    origin = arguments.node
    span = _span_made(name, arguments)
    traits = Trait.NONE if span is None else Trait.CONSTANT
    first = arguments.args[0] if arguments.args else None
    if name in FLOAT_FACTORIES:
        scalar = _is_scalar_shape(name, arguments)
        if given is None and any(map(_may_be_complex, arguments.args)):
            return Tensor(None, scalar, origin=origin)
        if given is None:
            return Tensor(arguments.default, scalar, traits | Trait.DEFAULTED, origin=origin, span=span)
        return Tensor(chosen, scalar, traits, origin=origin, span=span, symbol=symbol)
    if name in LIKE:
        if given is None:
            chosen, symbol = _dtypes(first), symbol_of(first) if isinstance(first, Tensor) else None
        rank = first.zero_dim if isinstance(first, Tensor) else None
        return Tensor(chosen, rank, traits, origin=origin, span=span, symbol=symbol)
    if name in INT_FACTORIES or name in ("full", "arange"):
        scalar = _is_scalar_shape(name, arguments) if name in ("full", "randint") else False
        if given is not None:
            return Tensor(chosen, scalar, traits, origin=origin, span=span, symbol=symbol)
        if name == "full":
            dtypes = dtype_filled(arguments.args[1:2], arguments.default)
        else:
            numbers: list[Value] = [Constant(0)] if name in INT_FACTORIES else arguments.args
            dtypes = dtype_of_numbers(numbers, arguments.default)
        if dtypes is not None and dtypes == arguments.default:
            traits |= Trait.DEFAULTED
        return Tensor(dtypes, scalar, traits, origin=origin, span=span)
    if name in ELEMENTWISE:
        if name == "where" and len(arguments.args) == 1:
            return UNKNOWN  # a tuple of indices
        value = _elementwise(name, arguments)
        return value.but(traits=value.traits | _TRAITS.get(name, Trait.NONE))
    if type(first) is Unknown and name in TAKING_TENSORS:
        first = tensor_of(first)
        arguments = arguments.beginning_with(first)
    if isinstance(first, Tensor):
        made = _of_tensor(name, first, arguments, given, package)
        if name in DIVIDING and type(made) is not Tensor and "rounding_mode" not in arguments.keywords:
            return Tensor(FLOATS, under=shared_region(arguments.args), origin=origin)
        return made
    if name == "einsum" and first is not None:
        return _contracted(arguments.args[1:], arguments)
    if name in TENSOR_FUNCTIONS:
        return Tensor(under=shared_region(arguments.args), origin=origin)
    return Unknown(first.under) if isinstance(first, Unknown) and first.under else UNKNOWN


def _contracted(operands: Sequence[Value], arguments: Arguments) -> Tensor:
    """What `einsum` gives: of tensors of one floating dtype one of that. Of others it promotes where no index is summed
    over, and raises elsewhere. Under autocast it depends on the sizes whether it is a product of matrices."""
    if len(operands) == 1 and isinstance(operands[0], Items):
        operands = operands[0].items
    made = Tensor(under=shared_region(operands), origin=arguments.node)
    first = operands[0] if operands and arguments.complete and arguments.region is None else None
    if not isinstance(first, Tensor) or not (first.dtypes or FLOATING) <= FLOATING:
        return made
    if all(other is first or same_dtype(first, other) for other in operands[1:]):
        made.dtypes, made.symbol = first.dtypes, first.symbol
    return made


def _may_be_complex(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.dtypes is not None and bool(value.dtypes & COMPLEX)
    return category_of(value) is Category.COMPLEX


def _elementwise(name: str, arguments: Arguments) -> Tensor:
    """A function that gives the promotion of some operands: always a tensor."""
    operands = _elements(name, arguments)
    if _has_alpha_first(name, arguments.args[1:]):
        return Tensor(under=shared_region(operands), origin=arguments.node)
    value = operator_result(operands, arguments.default, arguments.node)
    if isinstance(value, Tensor):
        return value.but(zero_dim=False) if name in ("cat", "stack") else value
    categories = [category for operand in operands if (category := category_of(operand)) is not None]
    if name == "where" and len(categories) == 2:  # two numbers give a tensor of their own dtype
        category = max(categories)
        traits = Trait.DEFAULTED if category is Category.FLOAT else Trait.NONE
        return Tensor(dtype_of_category(category, arguments.default), traits=traits, origin=arguments.node)
    return Tensor(under=shared_region(operands), origin=arguments.node)


def _has_alpha_first(name: str, operands: Sequence[Value]) -> bool:
    """Is it `add(input, alpha, other)`, as it was called long ago?"""
    return name in ADDING and len(operands) > 1


def _elements(name: str, arguments: Arguments) -> list[Value]:
    """The operands that an elementwise function promotes."""
    if name == "where":
        return arguments.args[1:]
    if name in ("cat", "stack"):
        tensors = arguments.args[0] if arguments.args else None
        if isinstance(tensors, Iteration):
            return [tensors.item]
        return list(tensors.items) if isinstance(tensors, Items) else [UNKNOWN]
    return arguments.args[:2]


def _span_made(name: str, arguments: Arguments) -> tuple[float, float] | None:
    """The span of the constants that a factory makes a tensor of; None where they are not written out."""
    if name in ("full", "full_like"):
        return span_of([arguments.get(1, "fill_value")])
    if name == "linspace":
        return span_of([arguments.get(0, "start"), arguments.get(1, "end")])
    if name == "arange":
        start, end = ([Constant(0), *arguments.args] if len(arguments.args) == 1 else [*arguments.args, None, None])[:2]
        span = span_of([start, end])
        if span is None:
            return None
        # The end is left out: one towards the start is as far as whole numbers come.
        return (span[0], max(span[0], span[1] - 1)) if span_of([start]) == (span[0],) * 2 else (span[0] + 1, span[1])
    return SPANS.get(name)


def _is_scalar_shape(called: str, arguments: Arguments) -> bool | None:
    """Do the sizes given to a factory make a 0-dim tensor? None when they are not written out."""
    size = arguments.get(0, "size")
    if called == "randint":  # behind its bounds
        size = next(
            (value for value in arguments.args[1:3] if isinstance(value, Items)), arguments.keywords.get("size")
        )
        return not size.items if isinstance(size, Items) else None
    if size is None:
        return None
    if len(arguments.args) > 1 and not isinstance(size, Items):
        return False
    if isinstance(size, Items):
        return not size.items
    return False if category_of(size) is not None else None


def _of_tensor(name: str, tensor: Tensor, arguments: Arguments, given: Value | None, owner: str = "torch") -> Value:
    """A function or method of one tensor that is known by name, else Unknown. `given` is the `dtype=` argument."""
    called, name = name, name.rstrip("_")
    if name == "detach":
        tensor = tensor.but(under=None)
    if name == "abs" and tensor.dtypes is not None and tensor.dtypes & COMPLEX:
        return _from_table(called, tensor, arguments, owner) or Tensor(under=tensor.under, origin=arguments.node)
    if name in _CLAMPS and not called.endswith("_") and not _holds_bounds(tensor, arguments):
        made = _from_table(called, tensor, arguments, owner)
        clamped = made if isinstance(made, Tensor) else Tensor(origin=arguments.node)
        return clamped.but(under=tensor.under, traits=tensor.traits | Trait.CLAMPED)
    if name in SAME_DTYPE:
        span = tensor.span if name in MOVES else None
        if name in _CLAMPS:
            tensor = lifted(tensor, _highest_of(_bounds(tensor, arguments)))
        rank = False if tensor.zero_dim is False and name in KEEPING_DIMENSIONS else None
        if tensor.symbol is not None and name not in KEEPING_DIMENSIONS:
            tensor = part_of(tensor)
        traits = tensor.traits | _TRAITS.get(name, Trait.NONE)
        if rank is tensor.zero_dim and span is tensor.span and traits is tensor.traits:
            return tensor
        return tensor.but(traits=traits, zero_dim=rank, span=span)
    if name in INT_RESULT:
        return Tensor(frozenset({"int64"}), origin=arguments.node)
    if name in BOOL_RESULT:
        return Tensor(frozenset({"bool"}), origin=arguments.node)
    under = shared_region((tensor, *arguments.args))
    if given is not None and (name in FLOAT_RESULT or name in TAKING_DTYPE):
        chosen = dtype_of(given)
        if chosen is not None and chosen & COMPLEX and name in _NORMS:
            chosen = None  # that is what they compute in: they give the real dtype
        return Tensor(chosen, under=under, scaled=tensor.scaled, origin=arguments.node, symbol=_named(given))
    if name in FLOAT_RESULT or name in TENSOR_FUNCTIONS:
        made = _from_table(called, tensor, arguments, owner)
        if isinstance(made, Items):
            return made
        if made is None and name in FLOAT_RESULT and arguments.region is None:
            made = Tensor(floated(tensor.dtypes, arguments.default), origin=arguments.node)
        made = Tensor(origin=arguments.node) if made is None else made
        made.under, made.scaled = under, tensor.scaled if name in TENSOR_FUNCTIONS else None
        if keeps_dtype(made, tensor):
            made.cast, made.traits = tensor.cast, made.traits | (tensor.traits & Trait.DEFAULTED)
        return made
    if name in PARTING:
        return Iteration(part_of(tensor) if name == "unbind" else tensor)
    made = None if called.startswith("_") else _from_table(called, tensor, arguments, owner)
    if made is None and (name in PAIRING or (name in PAIRING_ALONG and _is_along(arguments, owner))):
        made = Items((Tensor(under=under, origin=arguments.node), Tensor(frozenset({"int64"}), origin=arguments.node)))
    if isinstance(made, Tensor):
        made.under = under
        if keeps_dtype(made, tensor):
            made.cast = tensor.cast
    return Unknown(tensor.under, tensor.scaled) if made is None else made


def _is_along(arguments: Arguments, owner: str) -> bool:
    """Is a reduction told along which dimension?"""
    dimension = arguments.get(0 if owner == "torch.Tensor" else 1, "dim")
    return dimension is not None and category_of(dimension) is Category.INTEGER


_NORMS = frozenset({"norm", "vector_norm", "matrix_norm"})
_CLAMPS = frozenset({"clamp", "clip", "clamp_min", "clamp_max"})


def _holds_bounds(tensor: Tensor, arguments: Arguments) -> bool:
    """Has the tensor a dtype that holds the bounds it is clamped to, so that it keeps it?"""
    bounds = _bounds(tensor, arguments)
    if any(isinstance(value, Tensor) for value in bounds):
        return all(isinstance(value, Tensor) and same_dtype(tensor, value) for value in bounds if value != NONE)
    if tensor.dtypes is None:  # a bound of which nothing is known may be a tensor
        return tensor.symbol is None or not any(isinstance(value, Unknown) for value in bounds)
    highest = _highest_of(bounds)
    return all(DTYPES[dtype].category >= highest for dtype in tensor.dtypes)


def _bounds(tensor: Tensor, arguments: Arguments) -> list[Value]:
    return [value for value in (*arguments.args[-2:], *arguments.keywords.values()) if value is not tensor]


def _highest_of(bounds: Sequence[Value]) -> Category:
    """The highest category of the numbers among them."""
    return max((category for bound in bounds if (category := category_of(bound)) is not None), default=Category.BOOL)


_PACKAGES = ("torch.nn.functional", "torch", "torch.linalg", "torch.special", "torch.Tensor")
"""Where the table has the functions of torch. Those of one name in two packages are seldom the same: `torch.lu` is not
`torch.linalg.lu`. Of `torch.unique` it has the method alone."""


def _from_table(name: str, tensor: Tensor, arguments: Arguments, owner: str) -> Tensor | Items | None:
    """What the operator table says of a call, where the dtype of its first tensor is known or has a symbol."""
    if not arguments.complete or (tensor.dtypes is None and tensor.symbol is None):
        return None
    args = [tensor, *arguments.args] if owner == "torch.Tensor" else arguments.args
    if owner == "torch.linalg" and name == "norm":
        owner = "torch"  # the same, and better known
    op = _op_of(owner, name)
    if op is None:
        return None
    return asked(op, args, arguments.keywords, arguments.default, arguments.region, arguments.node)


@lru_cache(maxsize=4096)
def _op_of(owner: str, name: str) -> str | None:
    """What the table has a function or method under, be it that of a namesake in another package of torch."""
    owners = (owner, *_PACKAGES) if owner in _PACKAGES else (owner,)
    return next((op for package in owners if is_op(op := f"{package}.{name}")), None)


_TRAITS = dict.fromkeys(
    ("clamp", "clip", "clamp_min", "clamp_max", "maximum", "minimum", "where"), Trait.CLAMPED
) | dict.fromkeys(("mul", "multiply"), Trait.SCALED)
_TRAITS |= dict.fromkeys(("round", "floor", "ceil", "trunc"), Trait.ROUNDED) | {
    "sign": Trait.CONSTANT,
    "nan_to_num": Trait.CLAMPED,
}


# -- methods ----------------------------------------------------------------------------------------------------------

_DROPPING = frozenset({"squeeze", "select", "unbind", "diagonal"})
"""Methods whose result may have no dimension left."""
_PARAMETER_TENSOR = Tensor(FLOATING, traits=Trait.PARAMETER)


def method_result(receiver: Value, method: str, arguments: Arguments) -> Value:
    """What a method returns, by what its receiver is."""
    if isinstance(receiver, Tensor):
        return _tensor_method(receiver, method, arguments)
    if isinstance(receiver, Module):
        return _module_method(receiver, method)
    if isinstance(receiver, Table):
        return _view(receiver, method)
    if isinstance(receiver, GradScaler):
        return Unknown(scaled=receiver.key) if method == "scale" else UNKNOWN
    if isinstance(receiver, Unknown) and receiver.under is not None:
        return Unknown(receiver.under, receiver.scaled)
    return UNKNOWN


def _tensor_method(tensor: Tensor, method: str, arguments: Arguments) -> Value:
    is_cast, dtypes, symbol = _cast(method, arguments)
    if is_cast:
        return tensor.but(
            dtypes=dtypes,
            traits=(tensor.traits | _kept_whole(tensor)) & ~Trait.DEFAULTED,
            origin=arguments.node,
            symbol=symbol if dtypes is None or len(dtypes) > 1 else None,
            cast=Conversion(arguments.node, tensor.dtypes, tensor.symbol),
        )
    if method == "to":  # to a device, unless an argument that is not known is a dtype
        sent = all(map(_is_no_dtype, arguments.node.args, arguments.args))
        return tensor if sent else tensor.but(dtypes=None, symbol=None, cast=None)
    name = method.rstrip("_")
    in_place = method.endswith("_") and not method.startswith("_")
    if method == "view" and (seen := _seen_as(arguments)) is not None:
        return Tensor(dtype_of(seen), tensor.zero_dim, origin=arguments.node, symbol=_named(seen))
    if name in SHAPING:
        if tensor.zero_dim is None and tensor.span is None and name not in _DROPPING:
            return tensor
        shaped = tensor.but(zero_dim=None, span=tensor.span if name in MOVES else None)
        return part_of(shaped) if name in _DROPPING else shaped
    if method == "numpy":
        return Array(tensor.dtypes, False if tensor.zero_dim is False else None, arguments.node)
    if name in SCALING or name in ADDING:
        if _has_alpha_first(name, arguments.args) and not in_place:
            return Tensor(under=tensor.under, origin=arguments.node)
        value = operator_result([tensor, *arguments.args[:1]], arguments.default, arguments.node)
        if not isinstance(value, Tensor):
            return value
        if name in DIVIDING and "rounding_mode" not in arguments.keywords:
            value = lifted(value, Category.FLOAT)
        value = value.but(traits=value.traits | Trait.SCALED) if name in SCALING else value
        return in_place_of(tensor, value) if in_place else value
    if name in NEW:
        given = _given_dtype(arguments)
        if given is None:
            return Tensor(tensor.dtypes, origin=arguments.node, symbol=tensor.symbol)
        return Tensor(dtype_of(given), origin=arguments.node, symbol=_named(given))
    return _of_tensor(method, tensor, arguments, _given_dtype(arguments), "torch.Tensor")


def _seen_as(arguments: Arguments) -> Value | None:
    """The dtype as which `x.view(torch.int16)` reads the bits of a tensor; None where a view is of a shape."""
    given, nodes = arguments.args, arguments.node.args
    if len(given) == 1 and (isinstance(given[0], (Dtype, DtypeOf)) or _is_called_dtype(nodes[0])):
        return given[0]
    return arguments.keywords.get("dtype") if not given else None


def _kept_whole(tensor: Tensor) -> Trait:
    """A cast leaves whole numbers whole: what may have been a mask, an index or an image still holds its values."""
    known = tensor.dtypes is not None and tensor.dtypes <= FLOATING
    return Trait.NONE if known else Trait.ROUNDED


def _module_method(module: Module, method: str) -> Value:
    if method in _RETURNS_SELF:
        return module
    if method == "state_dict":
        return Table({}, rest=Tensor())  # by names that are not known, in any dtypes: counters of BatchNorm are int64
    item = _MODULE_ITERATIONS.get(method)
    return UNKNOWN if item is None else Iteration(item, f"torch.nn.Module.{method}", module.key)


def _view(table: Table, method: str) -> Value:
    """`d.values()`, `d.items()`, of a dict that holds the same under all names: of one that is written out, only the
    entries are kept whose names are known."""
    if table.items or table.rest is None or method not in ("values", "items"):
        return UNKNOWN
    return Iteration(table.rest if method == "values" else Items((UNKNOWN, table.rest)))


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
