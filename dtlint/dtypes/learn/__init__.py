"""Learn the operator table from the installed torch: run every op over dtype combinations, and write what they do.

    python -m dtlint.dtypes.learn [--output FILE] [--only OP]...

A development tool: nothing imports it, and it needs the packages torch and expecttest. A full run takes some minutes.
The questions come from the operator database that torch ships for its own tests; each sample of it is asked again with
other dtypes, with 0-dim tensors and Python numbers, with `dtype=` and `out=`. `explain` finds the rules.
"""

from __future__ import annotations

import argparse
import copy
import functools
import inspect
import itertools
import json
import math
import random
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, cast

import torch

from dtlint.dtypes.dtype import ARITHMETIC
from dtlint.dtypes.explain import Error, Many, Observation, explain
from dtlint.dtypes.form import DTYPE, FREE, UNKNOWN, Argument, Form, Parameter, token
from dtlint.dtypes.pattern import ALONE, CODES
from dtlint.dtypes.table import OPS, Table

__all__ = [
    "Call",
    "Op",
    "abstract",
    "abstracted",
    "database",
    "database_ops",
    "disagree",
    "learn",
    "main",
    "names_of",
    "names_of_database",
    "random_question",
    "result_of",
    "written",
]

NOTE = (
    "Learned on the CPU: result dtypes and promotion are the same on every device; kernels that a dtype lacks, and "
    "errors that say so, are the CPU's. The autocast lists of cuda, mps and xpu are read from the dispatcher and "
    "ATen/autocast_mode.h; cpu's policies are observed by running under it."
)

MAIN = ARITHMETIC
SIX = ("bool", "int64", "float16", "bfloat16", "float32", "float64")
FOUR = ("int64", "float16", "float32", "float64")
EXOTIC = tuple(sorted(ALONE))
DEFAULTS = ("float32", "float64")
"""The default dtypes that everything is observed under: two tell the default's dtype from float32."""

NAMESPACES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.special",
    "torch.fft",
    "torch.signal.windows",
    "torch.sparse",
    "torch.masked",
    "torch.Tensor",
)

FREE_PARAMETERS = frozenset(
    {
        "device",
        "layout",
        "pin_memory",
        "generator",
        "memory_format",
        "non_blocking",
        "requires_grad",
        "_stacklevel",
        "cudnn_enable",
    }
)
"""Parameters that say where and how a tensor lies, never what dtype it has."""

DUNDERS = {
    "add": ("__add__", "__radd__", "__iadd__"),
    "sub": ("__sub__", "__rsub__", "__isub__"),
    "mul": ("__mul__", "__rmul__", "__imul__"),
    "div": ("__truediv__", "__rtruediv__", "__itruediv__"),
    "floor_divide": ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    "remainder": ("__mod__", "__rmod__", "__imod__"),
    "pow": ("__pow__", "__rpow__", "__ipow__"),
    "matmul": ("__matmul__", "__rmatmul__", "__imatmul__"),
    "bitwise_and": ("__and__", "__rand__", "__iand__"),
    "bitwise_or": ("__or__", "__ror__", "__ior__"),
    "bitwise_xor": ("__xor__", "__rxor__", "__ixor__"),
    "bitwise_left_shift": ("__lshift__", "__rlshift__", "__ilshift__"),
    "bitwise_right_shift": ("__rshift__", "__rrshift__", "__irshift__"),
    "eq": ("__eq__",),
    "ne": ("__ne__",),
    "lt": ("__lt__",),
    "le": ("__le__",),
    "gt": ("__gt__",),
    "ge": ("__ge__",),
    "neg": ("__neg__",),
    "abs": ("__abs__",),
    "positive": ("__pos__",),
    "bitwise_not": ("__invert__",),
}
"""The operators of Python and the op whose samples ask about them."""

# -- what is asked ------------------------------------------------------------------------------------------------------


@dataclass
class Call:
    """The arguments of one call, as real values."""

    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> list[tuple[object, int | None]]:
        """Where the tensors stand: the argument's place or name, and the place in a list."""
        found: list[tuple[object, int | None]] = []
        for place, value in [*enumerate(self.args), *self.kwargs.items()]:
            if isinstance(value, torch.Tensor):
                found.append((place, None))
            elif isinstance(value, (list, tuple)):
                found += [(place, number) for number, item in enumerate(value) if isinstance(item, torch.Tensor)]
        return found

    def get(self, place: object) -> Any:
        """The argument at a place or of a name."""
        return self.args[place] if isinstance(place, int) else self.kwargs[str(place)]

    def tensor(self, at: tuple[object, int | None]) -> torch.Tensor:
        """The tensor at a place."""
        value = self.get(at[0])
        found = value if at[1] is None else value[at[1]]
        assert isinstance(found, torch.Tensor)
        return found

    def changed(self, values: Mapping[Any, Any]) -> Call:
        """A copy with other arguments; lists are copied, so that their items can be set."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, value in values.items():
            if isinstance(place, tuple):
                holder: Any = args if isinstance(place[0], int) else kwargs
                if place[1] is None:
                    holder[place[0]] = value
                else:
                    holder[place[0]] = list(holder[place[0]])
                    holder[place[0]][place[1]] = value
            elif isinstance(place, int):
                args[place] = value
            else:
                kwargs[str(place)] = value
        return Call(args, kwargs)


def abstract(value: Any) -> Argument:
    """A real argument as the table's questions spell it."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype)[6:], 2 if value.ndim else 1
    if isinstance(value, torch.dtype):
        return str(value)[6:], DTYPE
    if isinstance(value, (list, tuple)):
        return [abstract(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return UNKNOWN if isinstance(value, slice) else _Opaque()


class _Opaque:
    """An argument that is neither operand nor constant, as a device."""


def result_of(value: Any) -> Any:
    """A real result as an observation: dtypes in the place of tensors."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype)[6:]
    if isinstance(value, list):
        items = {result_of(item) for item in value}
        return Many(items.pop()) if len(items) == 1 else None
    if isinstance(value, tuple) and not isinstance(value, torch.Size):
        return tuple(result_of(item) for item in value)
    return None


# -- errors that speak of dtypes ----------------------------------------------------------------------------------------

_SPEAKS_OF_DTYPES = re.compile(
    r"dtype|scalar ?type|not implemented for|data type|[Ii]nteger|[Ii]ntegral|[Ff]loat|complex|[Bb]ool|Half|\bLong\b|\bInt\b|\bByte\b|Double"
    r"|type promotion|Promotion|real-valued|can't be cast",
)
_SPEAKS_OF_VALUES = re.compile(
    r"without overflow|singular|positive-definite|out of (?:bounds|range)|[Ii]ndex \S+ is|must be in the range|shape|sizes?\b"
    r"|dimension|negative|converge|broadcast|elements|non-zero|storage|ZeroDivision|invalid combination of arguments|must be Tensor"
    r"|got an unexpected|INTERNAL ASSERT|probability|argument '\w+' must be|argument '\w+' \(position \d+\) must be|missing"
    r"|only be converted|doesn't apply to|between 0 and|strictly|stride|as a weight|is only supported on",
)


def _error_of(error: BaseException) -> Error | None:
    """What the exception says of dtypes; None when it speaks of something else."""
    text = next(iter(str(error).strip().splitlines()), "").strip()
    if isinstance(error, NotImplementedError) and text.startswith("Could not run"):
        return None
    if not _SPEAKS_OF_DTYPES.search(text) or _SPEAKS_OF_VALUES.search(text) or len(text) > 240:
        return None
    return Error(re.sub(r"^\w*Error: ", "", text))


# -- forms --------------------------------------------------------------------------------------------------------------


def _forms_of_schemas(aten: str, is_method: bool) -> list[Form]:
    """The forms of a built-in function, from the schemas of its overloads. Overloads that differ only in what kind of
    operand a parameter takes are one form."""
    merged: dict[tuple[str, ...], list[Parameter]] = {}
    plain: set[tuple[str, ...]] = set()
    with_out: set[tuple[str, ...]] = set()
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{aten}"):
        types = [str(argument.type) for argument in schema.arguments]
        if "names" in schema.overload_name or "dimname" in schema.overload_name or not _is_dispatched(schema):
            continue
        outs = sum(argument.is_out for argument in schema.arguments)
        if outs > 1 or "List[str]" in types:
            continue
        parameters = [
            _parameter(argument, place, is_method)
            for place, argument in enumerate(schema.arguments)
            if not argument.is_out
        ]
        if is_method:
            parameters.sort(
                key=lambda parameter: parameter.name != "input"
            )  # the receiver, where the schema has it later
            parameters[:1] = [replace(parameters[0], kinds=parameters[0].kinds.replace("n", ""))]
        names = tuple(parameter.name for parameter in parameters)
        if names in merged:
            parameters = [_either(a, b) for a, b in zip(merged[names], parameters, strict=True)]
        merged[names] = parameters
        (with_out if outs else plain).add(names)
    return [
        _finished(parameters, names in with_out and not is_method, names in plain)
        for names, parameters in merged.items()
        if names in plain or not is_method
    ]


def _finished(parameters: list[Parameter], out: bool, optional: bool) -> Form:
    """The form, with `out=` where an overload has it: not to be left away where no other overload is like it."""
    if any(parameter.name == "device" for parameter in parameters):
        parameters = [*parameters, Parameter("requires_grad", "", True, "0", frozenset({FREE}))]
    if out:
        parameters = [*parameters, Parameter("out", "to", True, "N" if optional else None)]
    return Form(tuple(parameters))


def _is_dispatched(schema: Any) -> bool:
    """Is it an op of the dispatcher? Others exist in TorchScript only."""
    try:
        torch._C._dispatch_find_schema_or_throw(schema.name, schema.overload_name)
    except RuntimeError:
        return False
    return True


_KINDS = {
    "Tensor": "t",
    "Optional[Tensor]": "to",
    "List[Tensor]": "T",
    "List[Optional[Tensor]]": "T",
    "number": "n",
    "Optional[number]": "no",
}


def _parameter(argument: Any, place: int, is_method: bool) -> Parameter:
    kinds = "d" if argument.name in ("dtype", "out_dtype") else _KINDS.get(str(argument.type), "")
    if "List[int]" in str(argument.type) and place == (1 if is_method else place) and place < 2:
        kinds = "v"
    name = "input" if argument.name == "self" else argument.name
    default = token(argument.default_value) if argument.has_default_value() else None
    if argument.name == "dtype" and default is not None:
        default = "N"
    seen = frozenset({FREE}) if name in FREE_PARAMETERS else frozenset()
    return Parameter(name, kinds, argument.kwarg_only, default, seen)


def _either(a: Parameter, b: Parameter) -> Parameter:
    """A parameter that takes what either takes."""
    kinds = "".join(kind for kind in "tTndov" if kind in a.kinds + b.kinds)
    default = a.default if a.default == b.default else (a.default or b.default)
    return replace(a, kinds=kinds, keyword=a.keyword and b.keyword, default=default)


def _forms_of_signature(function: Callable[..., Any], calls: Sequence[Call]) -> list[Form]:
    """The form of a function written in Python, what its parameters take going by the calls made of it."""
    signature = inspect.signature(_dispatched(function))
    used: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        try:
            bound = signature.bind(*call.args, **call.kwargs)
        except TypeError:
            continue
        for name, value in bound.arguments.items():
            used[name] |= _kinds_of(value)
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        kinds = "".join(kind for kind in "tTd" if kind in used[parameter.name])
        if parameter.name in ("dtype", "out_dtype"):
            kinds = "d"
        default = None if parameter.default is parameter.empty else token(parameter.default)
        if parameter.kind is parameter.VAR_POSITIONAL:
            kinds, default = ("Tv" if kinds else "v"), None
        seen = frozenset({FREE}) if parameter.name in FREE_PARAMETERS else frozenset()
        parameters.append(Parameter(parameter.name, kinds, parameter.kind is parameter.KEYWORD_ONLY, default, seen))
    return [Form(tuple(parameters))]


def _kinds_of(value: Any) -> set[str]:
    if isinstance(value, torch.Tensor):
        return {"t"}
    if isinstance(value, torch.dtype):
        return {"d"}
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        return {"t", "T"} if all(isinstance(item, torch.Tensor) for item in value) else {"?"}
    return set()


def _dispatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function behind `torch._jit_internal.boolean_dispatch`, which hides its signature."""
    for name, cell in zip(getattr(function.__code__, "co_freevars", ()), function.__closure__ or (), strict=False):
        if name == "if_true" and callable(cell.cell_contents):
            return cast("Callable[..., Any]", cell.cell_contents)
    return cast("Callable[..., Any]", inspect.unwrap(function))


_BINARY_OPERATOR = Form((Parameter("input", "t"), Parameter("other", "tn")))


@dataclass
class Op:
    """One public name, how it is called, and the calls that are made of it."""

    name: str
    function: Callable[..., Any]
    calls: list[Call]
    forms: list[Form]

    @property
    def mutates(self) -> bool:
        """Does it change its arguments?"""
        last = self.name.rpartition(".")[2]
        return (last.endswith("_") and not last.endswith("__")) or bool(
            re.fullmatch(r"__i[a-z]+__", last) and last != "__invert__"
        )


def forms_of(name: str, function: Callable[..., Any], calls: Sequence[Call]) -> list[Form]:
    """The forms of a public name."""
    last = name.rpartition(".")[2]
    if last.startswith("__"):
        unary = last in ("__neg__", "__abs__", "__pos__", "__invert__")
        return [Form(_BINARY_OPERATOR.parameters[: 1 if unary else 2])]
    if inspect.isfunction(function):
        return _forms_of_signature(function, calls)
    return _forms_of_schemas(getattr(function, "__name__", last), name.startswith("torch.Tensor."))


# -- the operator database ----------------------------------------------------------------------------------------------


def resolved(name: str) -> Any:
    """The object of a qualified name, or None."""
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


@cache
def _public_names() -> dict[int, list[str]]:
    """Every public callable of torch by identity."""
    found: dict[int, list[str]] = defaultdict(list)
    for namespace in NAMESPACES:
        holder = resolved(namespace)
        for name in sorted(dir(holder)):
            if (
                not name.startswith("_")
                and callable(getattr(holder, name, None))
                and not isinstance(getattr(holder, name), type)
            ):
                found[id(getattr(holder, name))].append(f"{namespace}.{name}")
    return found


def names_of(info: Any) -> list[str]:
    """The public names that an entry of the database is about: function, method, in-place, operators, aliases."""
    names = list(_public_names().get(id(info.op), ()))
    for base in (info.name, *(alias.name for alias in info.aliases)):
        names.append(f"torch.{base}")
        if "." not in base:
            names += [f"torch.Tensor.{base}", f"torch.Tensor.{base}_"]
            names += [f"torch.Tensor.{dunder}" for dunder in DUNDERS.get(base, ())]
        else:
            names += [f"torch.{base}_"]
    for variant in (info.method_variant, info.inplace_variant):
        names += _public_names().get(id(variant), ())
        if hasattr(variant, "__name__"):
            names.append(f"torch.Tensor.{variant.__name__}")
    names = [name for name in dict.fromkeys(names) if callable(resolved(name)) and not isinstance(resolved(name), type)]
    return [name for name in names if re.fullmatch(r"__\w+__|(?!_)\w+", name.rpartition(".")[2])]


SAMPLES = 160
"""Of so many samples of an op the first of each kind are taken."""


@cache
def database() -> tuple[Any, ...]:
    """The entries of the operator database."""
    from torch.testing._internal.common_methods_invocations import op_db

    return tuple(op_db)


def samples_of(info: Any) -> list[tuple[Call, str]]:
    """The calls that the database makes of an op, one of each kind, and the dtype they were made for."""
    for dtype in ("float32", "int64", "complex64", "bool", "float64", "float16", "bfloat16"):
        if getattr(torch, dtype) in info.dtypes:
            break
    else:
        return []
    torch.manual_seed(0)
    random.seed(0)
    kinds: dict[object, Call] = {}
    try:
        for number, sample in enumerate(info.sample_inputs("cpu", getattr(torch, dtype), requires_grad=False)):
            call = Call([sample.input, *sample.args], dict(sample.kwargs))
            tensors = [call.tensor(at) for at in call.tensors()]
            if any(tensor.layout != torch.strided or not tensor.numel() for tensor in tensors):
                continue  # what has no elements reaches no kernel, and is refused less; sparse tensors are another matter
            for kept in (
                Call(call.args, {name: value for name, value in call.kwargs.items() if "dtype" not in name}),
                call,
            ):
                kinds.setdefault(_kind(kept), kept)
            if number >= SAMPLES:
                break
    except Exception as error:
        print(f"{info.name}: {type(error).__name__}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
    calls = sorted(kinds.values(), key=_plainness)
    return [(call, dtype) for call in calls]


def _kind(call: Call) -> object:
    values = [*enumerate(call.args), *sorted(call.kwargs.items())]
    return tuple((place, _value_kind(value)) for place, value in values), _broadcasts(call)


def _broadcasts(call: Call) -> bool:
    """Is a tensor of another shape than the first? An in-place op takes such calls one way only."""
    return len({call.tensor(at).shape for at in call.tensors()}) > 1


def _value_kind(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.ndim > 0, value.numel() > 0
    if isinstance(value, (list, tuple)):
        return tuple(_value_kind(item) for item in value[:3])
    return str(value) if isinstance(value, (str, bool, type(None), torch.dtype)) else type(value).__name__


def _plainness(call: Call) -> tuple[bool, bool, int]:
    """Calls with dimensions and elements come first: they can be asked of every rank."""
    tensors = [call.tensor(at) for at in call.tensors()]
    return any(t.ndim == 0 for t in tensors), _broadcasts(call), len(call.args) + len(call.kwargs)


# -- questions ----------------------------------------------------------------------------------------------------------

Question = tuple[Call, str]
"""A call, and the default dtype it is made under."""

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "bool": lambda value: True,
    "int64": lambda value: int(_real(value)) or 1,
    "float": lambda value: float(_real(value)) or 1.0,
    "complex": lambda value: complex(_real(value), 1),
}


def _real(value: Any) -> float:
    real = getattr(value, "real", 2)
    return real if isinstance(real, (int, float)) and math.isfinite(real) else 2


def _cast(value: torch.Tensor, dtype: str, rank: int | None) -> torch.Tensor:
    if rank == 1 and value.ndim and value.numel():
        value = value.reshape(-1)[0]
    if dtype.startswith("uint") and (value.dtype.is_floating_point or value.dtype in _SIGNED):
        value = value.abs()  # -1 would be 2**64 - 1, and a polynomial of that degree takes forever
    return value.to(getattr(torch, dtype))


_SIGNED = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})


def _dtype_choices(own: Sequence[str], base: str, full: bool) -> Iterator[tuple[tuple[str, int | None], ...]]:
    """The dtypes and ranks to ask of a call's tensors. `own` is the dtype of each in the sample, `base` the one that the
    sample was made for: those of another dtype are indices and masks. A rank of None leaves the tensor as it is."""
    count = len(own)

    def alike(dtype: str) -> list[str]:
        return [dtype if mine == base else mine for mine in own]

    for dtype in (*MAIN, *EXOTIC):
        yield tuple((one, None) for one in alike(dtype))
    if full:
        for dtype in MAIN:
            yield tuple((one, 1) for one in alike(dtype))
    if count == 2:
        for pair in product(MAIN if full else SIX, repeat=2):
            for ranks in product((None, 1), repeat=2) if full else ((None, None),):
                yield tuple(zip(pair, ranks, strict=True))
    elif count == 3:
        for triple in product((*SIX, "complex64") if full else ("int64", "float16", "float32"), repeat=3):
            yield tuple((one, None) for one in triple)
        if full:
            for place, triple in product(range(3), product(FOUR, repeat=3)):
                yield tuple((one, 1 if number == place else None) for number, one in enumerate(triple))
            for place, dtype, rest in product(range(3), MAIN, ("float32", "float16")):
                yield tuple((dtype if number == place else one, None) for number, one in enumerate(alike(rest)))
    elif 3 < count < 9:
        for place, dtype, rest in product(
            range(count), MAIN if full else FOUR, ("float32", "float16", "bfloat16", "float64")
        ):
            yield tuple((dtype if number == place else one, None) for number, one in enumerate(alike(rest)))
        for left, right in product(range(count), repeat=2):
            for a, b, rest in product(FOUR, FOUR, ("float32", "float16")) if left < right and full else ():
                yield tuple((a if n == left else b if n == right else one, None) for n, one in enumerate(alike(rest)))


_Spot = tuple[object, "int | None"]
"""Where a tensor stands: the argument's place or name, and the place in a list."""
_Choice = Sequence[tuple[str, "int | None"]]
"""For each group of tensors a dtype, and a rank: 1 for 0-dim, None for as it is."""


@dataclass
class _Asker:
    """A call of an op asked again with other dtypes, numbers, `dtype=` and `out=`.

    Attributes:
        form: the form that the call is of.
        call: the call.
        base: the dtype it was made for: tensors of another are indices and masks, and keep theirs.
        full: ask everything, or only what may differ from another call of the same form.
    """

    form: Form
    call: Call
    base: str
    full: bool

    def __post_init__(self) -> None:
        self.groups = _groups(self.call)
        self.own = [str(self.call.tensor(group[0]).dtype)[6:] for group in self.groups]
        self.dtypes = MAIN if self.full else FOUR

    def questions(self) -> Iterator[Question]:
        """All questions, the plainest first."""
        for choice in _dtype_choices(self.own, self.base, self.full):
            yield from self._cast(choice, "float32")
        for another in self._under_another_default():
            yield from self._cast(another, "float64")
        for default in DEFAULTS:
            for changed in _with_numbers(self.form, self.call, self.full):
                yield from self._recast(changed, default)
            yield from self._with_dtype(default)
        yield from self._with_out()
        yield from self._with_switches()

    def _alike(self, dtype: str) -> _Choice:
        return [(dtype if mine == self.base else mine, None) for mine in self.own]

    def _cast(self, choice: _Choice, default: str, **given: Any) -> Iterator[Question]:
        yield _with_dtypes(self.call, self.groups, choice).changed(given), default

    def _under_another_default(self) -> Iterator[_Choice]:
        yield from (self._alike(dtype) for dtype in (*MAIN, *EXOTIC))
        if len(self.own) == 2:
            for pair, ranks in product(product(SIX, repeat=2), ((None, None), (None, 1))):
                yield list(zip(pair, ranks, strict=True))
        elif len(self.own) == 3 and self.full:
            yield from ([(dtype, None) for dtype in triple] for triple in product((*FOUR, "complex64"), repeat=3))

    def _recast(self, changed: Call, default: str) -> Iterator[Question]:
        """A call that has another number for an argument, perhaps in a tensor's place, with its tensors cast."""
        groups = _groups(changed)
        own = [str(changed.tensor(group[0]).dtype)[6:] for group in groups]
        choices = [
            [(dtype if mine == self.base else mine, rank) for mine in own]
            for dtype, rank in product(self.dtypes, (None, 1) if self.full else (None,))
        ]
        if self.full and len(groups) == 2:
            choices += [[(left, None), (right, None)] for left, right in product(SIX, repeat=2)]
        for choice in choices:
            yield _with_dtypes(changed, groups, choice), default

    def _with_dtype(self, default: str) -> Iterator[Question]:
        for name in (parameter.name for parameter in self.form.parameters if "d" in parameter.kinds):
            if not self._gives(name):
                for asked, dtype in product(MAIN, self.dtypes if self.groups else ("float32",)):
                    yield from self._cast(self._alike(dtype), default, **{name: getattr(torch, asked)})

    def _with_out(self) -> Iterator[Question]:
        takes = any(parameter.name == "out" and parameter.is_slot for parameter in self.form.parameters)
        if not self.full or not takes or "out" in self.call.kwargs:
            return
        choices = [self._alike(dtype) for dtype in MAIN] if self.groups else [[]]
        if len(self.own) == 2:
            choices += [[(a, None), (b, None)] for a, b in product(SIX, repeat=2)]
        for choice, out in product(choices, MAIN):
            yield from self._cast(choice, "float32", out=torch.empty(0, dtype=getattr(torch, out)))

    def _with_switches(self) -> Iterator[Question]:
        """The call with each bool that it leaves at its default turned."""
        for parameter in self.form.parameters:
            turns = parameter.default in ("0", "1") and not parameter.is_slot and FREE not in parameter.seen
            if turns and not self._gives(parameter.name):
                for dtype in MAIN:
                    yield from self._cast(self._alike(dtype), "float32", **{parameter.name: parameter.default == "0"})

    def _gives(self, name: str) -> bool:
        names = [parameter.name for parameter in self.form.parameters]
        return name in self.call.kwargs or names.index(name) < len(self.call.args)


def _with_dtypes(call: Call, groups: Sequence[Sequence[_Spot]], choice: _Choice) -> Call:
    """The call with the tensors of each group cast."""
    for group, (dtype, rank) in zip(groups, choice, strict=True):
        for at in group:
            call = call.changed({at: _cast(call.tensor(at), dtype, rank)})
    return call


def _groups(call: Call) -> list[list[_Spot]]:
    """The tensors of a call that change dtype together: in a list all but the first."""
    groups: dict[object, list[_Spot]] = {}
    for place, number in call.tensors():
        groups.setdefault((str(place), bool(number)), []).append((place, number))
    return list(groups.values())


def _form_of(op: Op, call: Call) -> Form | None:
    args, kwargs = abstracted(call)
    return next((form for form in op.forms if form.bind(args, kwargs) is not None), None)


def abstracted(call: Call) -> tuple[list[Argument], dict[str, Argument]]:
    """The arguments of a call as the table's questions spell them."""
    return [abstract(value) for value in call.args], {name: abstract(value) for name, value in call.kwargs.items()}


def _with_numbers(form: Form, call: Call, full: bool) -> Iterator[Call]:
    """The call with a number of each kind wherever its form takes one."""
    for index, parameter in enumerate(form.parameters):
        if "n" not in parameter.kinds:
            continue
        place: object = index if index < len(call.args) else parameter.name
        given = place != parameter.name or parameter.name in call.kwargs
        if not given and (not full or parameter.default == "N"):
            continue
        value = call.get(place) if given else None
        for make in NUMBERS.values():
            yield call.changed({place: make(None if isinstance(value, torch.Tensor) else value)})


# -- observing ----------------------------------------------------------------------------------------------------------

REPEATS = 3
"""The same question is asked of so many different samples: where their answers differ, values decide."""


_Found = dict[int, list[Observation]]
"""What an op did, by the number of the form it was called in."""


def observed(op: Op, bases: Sequence[str]) -> _Found:
    """What the op did, asked of each of its calls in turn."""
    found: _Found = defaultdict(list)
    asked: Counter[object] = Counter()
    presences: Counter[object] = Counter()
    for call, base in zip(op.calls, bases, strict=True):
        form = _form_of(op, call)
        ran = None if form is None else _ran(op, call)
        if form is None or ran is None or isinstance(ran[0], Error):
            continue
        presence = tuple(map(token, abstracted(call)[0])), tuple(sorted(call.kwargs)), op.forms.index(form)
        presences[presence] += 1
        full = presences[presence] == 1 and len(presences) <= 8
        for question, default in _Asker(form, call, base, full).questions():
            _observe(op, question, default, found, asked)
    return found


def _observe(op: Op, call: Call, default: str, found: _Found, asked: Counter[object]) -> None:
    """Make a call, and note what it did, unless it fits no form or the same was asked often enough."""
    args, kwargs = abstracted(call)
    bounds = ((number, form.bind(args, kwargs)) for number, form in enumerate(op.forms))
    number, bound = next(((number, bound) for number, bound in bounds if bound is not None), (-1, None))
    operands = None if bound is None else bound.operands(default)
    if bound is None or operands is None:
        return
    constants = tuple((parameter.name, said) for parameter, said in bound.tokens() if FREE not in parameter.seen)
    question = number, operands, constants, default
    asked[question] += 1
    if asked[question] <= REPEATS:
        result = _ran(op, call, default)
        if result is not None:
            found[number].append(Observation(operands, constants, default, result[0]))


QUIZ, CLEAN, ROUNDS = 250, 4, 20
"""After an op is learned, so many random questions are asked of torch and of the rules. What the rules have wrong is
observed too and they are learned anew, until an op that surprised once has passed so many quizzes in a row; at most so
many quizzes are held."""


def audited(ops: Sequence[Op], found: _Found) -> list[dict[str, Any]]:
    """The entry of an op, such that random questions find nothing wrong with it. A module has an op for each of its
    configurations."""
    rng = random.Random(ops[0].name)
    entry, passes, needed = _described(ops[0], found), 0, 1
    for _ in range(ROUNDS if entry else 0):
        table = Table({"ops": {ops[0].name: entry}})
        if sum(_surprises(rng.choice(ops), table, rng, found) for _ in range(QUIZ)):
            entry, passes, needed = _described(ops[0], found), 0, CLEAN
        else:
            passes += 1
        if passes == needed or not entry:
            break
    return entry


def _surprises(op: Op, table: Table, rng: random.Random, found: _Found) -> bool:
    """Does torch answer a random question otherwise than the table? Then it is noted."""
    call, default = random_question(op, rng)
    if not disagree(table, op, call, default):
        return False
    _observe(op, call, default, found, Counter())
    return True


def random_question(op: Op, rng: random.Random) -> Question:
    """One of the op's own calls with a random dtype and rank for each tensor, perhaps with another number or with
    `dtype=`, under a random default dtype."""
    call = rng.choice(op.calls)
    form = _form_of(op, call)
    if form is not None and rng.random() < 0.3:
        call = rng.choice([call, *_with_numbers(form, call, True)])
    common = rng.choice(MAIN)
    for at in call.tensors():
        own = str(call.tensor(at).dtype)[6:]
        dtype = rng.choice([common, common, rng.choice(MAIN), own])
        call = call.changed({at: _cast(call.tensor(at), dtype, 1 if rng.random() < 0.3 else None)})
    if form is not None and rng.random() < 0.2 and any(parameter.name == "dtype" for parameter in form.parameters):
        call = call.changed({"dtype": getattr(torch, rng.choice(MAIN))})
    return call, rng.choice(["float32", "float32", "float64", "bfloat16"])


def disagree(table: Table, op: Op, call: Call, default: str) -> bool:
    """Does the table say what torch does not do? Where torch raises, the table may name a result: none is there to be
    other. What it does not know, it does not say."""
    args, kwargs = abstracted(call)
    outcome = table.call(op.name, args, kwargs, default=default)
    if not outcome.known:
        return False
    ran = _ran(op, call, default)
    if ran is None or isinstance(ran[0], Error):
        return False
    return outcome.error is not None or not _matches(outcome.result, ran[0])


def _matches(said: Any, real: Any) -> bool:
    if isinstance(said, list):
        items = real if isinstance(real, tuple) else (real.item,) if isinstance(real, Many) else ()
        return all(_matches(said[0], item) for item in items)
    if isinstance(said, tuple):
        return isinstance(real, tuple) and len(said) == len(real) and all(map(_matches, said, real))
    return said is None or bool(said == real)


def _ran(op: Op, call: Call, default: str = "float32") -> tuple[Any] | None:
    """What a call gives, in a tuple; None when it failed for another reason than a dtype."""
    if op.mutates or "out" in call.kwargs:
        for at in call.tensors():
            call = call.changed({at: call.tensor(at).clone()})
    torch.set_default_dtype(getattr(torch, default))
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a stack trace of each call for the other devices
    try:
        with torch.no_grad():
            result = op.function(*call.args, **call.kwargs)
            return None if result is NotImplemented else (result_of(result),)
    except Exception as error:
        spoken = _error_of(error)
        return None if spoken is None else (spoken,)
    finally:
        torch.set_default_dtype(torch.float32)


def _uniform_lists(found: Iterable[list[Observation]]) -> None:
    """Tuples whose length differs from call to call are sequences of any length."""
    for observations in found:
        lengths = {len(one.result) for one in observations if isinstance(one.result, tuple)}
        if len(lengths) > 1 or any(isinstance(one.result, Many) for one in observations):
            for place, one in enumerate(observations):
                if isinstance(one.result, tuple):
                    items = set(one.result)
                    observations[place] = replace(one, result=Many(items.pop()) if len(items) == 1 else None)


# -- what the operator database does not have -----------------------------------------------------------------------------


def _x(*shape: int) -> torch.Tensor:
    return torch.linspace(0.25, 0.75, 12).reshape(shape or (3, 4))


EXTRA: dict[str, tuple[Callable[[], Call], ...]] = {
    **{
        f"torch.{name}": (lambda: Call([4]),)
        for name in (
            "rand",
            "randperm",
            "bartlett_window",
            "blackman_window",
            "hamming_window",
            "hann_window",
            "kaiser_window",
        )
    },
    **{
        f"torch.{name}": (lambda: Call([_x()]),)
        for name in (
            "relu",
            "relu_",
            "sigmoid_",
            "selu",
            "clip",
            "poisson",
            "tanh_",
            "exp_",
            "erf",
            "erfc",
            "detach",
            "is_nonzero",
            "numel",
        )
    },
    **{
        f"torch.nn.functional.{name}": (lambda: Call([_x()]),)
        for name in (
            "tanh",
            "sigmoid",
            "relu_",
            "elu_",
            "selu_",
            "leaky_relu_",
            "hardtanh_",
            "gumbel_softmax",
            "dropout1d",
            "logsigmoid",
        )
    },
    **{
        f"torch.Tensor.{name}": (lambda: Call([_x()]),)
        for name in (
            *(
                "cpu",
                "detach",
                "detach_",
                "requires_grad_",
                "relu",
                "relu_",
                "uniform_",
                "normal_",
                "random_",
                "exponential_",
            ),
            *(
                "cauchy_",
                "log_normal_",
                "geometric_",
                "bernoulli_",
                "data_ptr",
                "dim",
                "numel",
                "size",
                "tolist",
                "item",
                "nelement",
            ),
            *(
                "element_size",
                "stride",
                "is_contiguous",
                "is_floating_point",
                "is_complex",
                "conj",
                "share_memory_",
                "new_empty",
                "t_",
            ),
            *(
                "squeeze_",
                "zero_",
                "softmax",
                "log_softmax",
                "sigmoid_",
                "tanh_",
                "detach",
                "ravel",
                "clone",
                "contiguous",
            ),
        )
    },
    "torch.where": (lambda: Call([_x() > 0.5, _x(), _x()]), lambda: Call([_x() > 0.5])),
    "torch.Tensor.type_as": (lambda: Call([_x(), _x()]),),
    "torch.Tensor.copy_": (lambda: Call([_x(), _x()]),),
    "torch.Tensor.new_tensor": (lambda: Call([_x(), 2]), lambda: Call([_x(), 2.5])),
    "torch.Tensor.masked_fill_": (lambda: Call([_x(), _x() > 0.5, 2.0]),),
    "torch.tensor": tuple(lambda value=value: Call([value]) for value in (True, 2, 2.5, 2j)),  # type: ignore[misc]
    "torch.as_tensor": tuple(lambda value=value: Call([value]) for value in (True, 2, 2.5, 2j, _x())),  # type: ignore[misc]
    "torch.rand": (lambda: Call([3, 4]), lambda: Call([(3, 4)])),
    "torch.empty_like": (lambda: Call([_x()]),),
    "torch.bernoulli": (lambda: Call([_x()]), lambda: Call([_x(), 0.5])),
    "torch.chain_matmul": (lambda: Call([_x(), _x(4, 3)]),),
    "torch.embedding": (lambda: Call([_x(), torch.tensor([0, 1])]),),
    "torch.rms_norm": (lambda: Call([_x(), (4,)]), lambda: Call([_x(), (4,), _x(12)[:4]])),
    "torch.nn.functional.conv_tbc": (lambda: Call([_x(3, 2, 2), _x(3, 2, 2), _x(12)[:2]]),),
    "torch.nn.functional.lp_pool1d": (lambda: Call([_x(1, 3, 4), 2.0, 2]),),
    "torch.nn.functional.lp_pool2d": (lambda: Call([_x(1, 3, 4), 2.0, 2]),),
    "torch.nn.functional.upsample": (lambda: Call([_x(1, 3, 4)], {"scale_factor": 2}),),
    **{
        f"torch.nn.init.{name}": (lambda: Call([_x()]),)
        for name in (
            *("uniform_", "normal_", "ones_", "zeros_", "eye_", "trunc_normal_", "xavier_uniform_", "xavier_normal_"),
            *("kaiming_uniform_", "kaiming_normal_", "orthogonal_"),
        )
    },
    "torch.nn.init.constant_": (lambda: Call([_x(), 0.5]),),
}
"""Calls of what the operator database has no samples of, in float32."""

_TENSOR_FORM = Form(
    (
        Parameter("data", "tn"),
        Parameter("dtype", "d", True, "N"),
        *(Parameter(name, "", True, "N", frozenset({FREE})) for name in ("device", "requires_grad", "pin_memory")),
    )
)
FORMS = {
    "torch.tensor": [_TENSOR_FORM],
    "torch.as_tensor": [
        Form(
            (
                _TENSOR_FORM.parameters[0],
                replace(_TENSOR_FORM.parameters[1], keyword=False),
                *_TENSOR_FORM.parameters[2:3],
            )
        )
    ],
    "torch.Tensor.new_tensor": [Form((Parameter("self", "t"), *_TENSOR_FORM.parameters))],
    "torch.Tensor.type_as": [Form((Parameter("self", "t"), Parameter("other", "t")))],
    "torch.Tensor.copy_": [
        Form(
            (
                Parameter("self", "t"),
                Parameter("src", "t"),
                Parameter("non_blocking", "", False, "0", frozenset({FREE})),
            )
        )
    ],
}
"""The forms of built-in functions that have no schema of their own."""


def extra_ops(only: Sequence[str] = ()) -> Iterator[tuple[Op, list[str]]]:
    """The ops of `EXTRA`."""
    for name, makers in sorted(EXTRA.items()):
        function = resolved(name)
        if callable(function) and (not only or name in only):
            calls = [maker() for maker in makers]
            yield (
                Op(name, function, calls, FORMS.get(name) or forms_of(name, function, calls)),
                ["float32"] * len(calls),
            )


def module_ops(only: Sequence[str] = ()) -> Iterator[tuple[str, list[Op]]]:
    """The modules of torch.nn, an op for each configuration that torch's own tests use. The first operand is the dtype of
    the weights, None for a module without."""
    from torch.testing._internal.common_modules import module_db

    for info in sorted(module_db, key=lambda info: info.module_cls.__name__):
        name = f"torch.nn.{info.module_cls.__name__}"
        if (only and name not in only) or "Lazy" in name:
            continue
        torch.manual_seed(0)
        inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
        ops = []
        for one in itertools.islice(inputs, 24):
            made = one.constructor_input
            module = info.module_cls(*made.args, **made.kwargs)
            weights = next((parameter for parameter in module.parameters()), None)
            first = None if weights is None else torch.zeros(2)
            switches = {name: getattr(module, name) for name in SWITCHES if hasattr(module, name)}
            call = Call([first, *one.forward_input.args], {**one.forward_input.kwargs, **switches})
            receiver = (
                Parameter("self", "t") if weights is not None else Parameter("self", "", False, None, frozenset({FREE}))
            )
            form = _forms_of_signature(module.forward, [Call(call.args[1:], one.forward_input.kwargs)])[0]
            options = [Parameter(switch, "", True, "0") for switch in switches]
            ops.append(Op(name, _Forward(module), [call], [Form((receiver, *form.parameters, *options))]))
        yield name, _with_one_form(ops)


def _with_one_form(ops: list[Op]) -> list[Op]:
    """Every configuration's parameters take what any configuration's take."""
    forms = [op.forms[0] for op in ops]
    if forms:
        merged = [
            functools.reduce(_either, column) for column in zip(*(form.parameters for form in forms), strict=True)
        ]
        for op in ops:
            op.forms = [Form(tuple(merged))]
    return ops


SWITCHES = ("return_indices",)
"""What a module's constructor is told that changes what forward returns; asked as keyword arguments of the call."""


class _Forward:
    """A module as a function of its weights' dtype, given as a tensor, and its inputs."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._modules = {"float32": module}

    def __call__(self, weights: torch.Tensor | None, *args: Any, **kwargs: Any) -> Any:
        dtype = "float32" if weights is None else str(weights.dtype)[6:]
        if dtype not in self._modules:
            if not weights.dtype.is_floating_point:  # type: ignore[union-attr]
                raise ValueError("torch has no modules with such weights")
            self._modules[dtype] = copy.deepcopy(self._modules["float32"]).to(weights.dtype)  # type: ignore[union-attr]
        kwargs = {name: value for name, value in kwargs.items() if name not in SWITCHES}
        return self._modules[dtype](*args, **kwargs)


OPTIMIZERS = (
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ASGD",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
)


def optimizer_ops(only: Sequence[str] = ()) -> Iterator[Op]:
    """A step of each optimizer: what it demands of the dtype of a parameter, and of a gradient."""
    for name in OPTIMIZERS:
        made = getattr(torch.optim, name)

        def step(parameter: torch.Tensor, made: Any = made) -> None:
            weight = torch.nn.Parameter(parameter.clone(), requires_grad=True)
            weight.grad = torch.ones_like(weight)
            made([weight]).step()

        if not only or f"torch.optim.{name}.step" in only:
            yield Op(f"torch.optim.{name}.step", step, [Call([_x()])], [Form((Parameter("params", "t"),))])

    def assign(tensor: torch.Tensor, gradient: torch.Tensor) -> None:
        tensor.detach().requires_grad_().grad = gradient

    if not only or "torch.Tensor.grad" in only:
        yield Op(
            "torch.Tensor.grad", assign, [Call([_x(), _x()])], [Form((Parameter("self", "t"), Parameter("grad", "t")))]
        )


# -- autocast -------------------------------------------------------------------------------------------------------------

POLICIES = {
    "LOWER_PRECISION_FP": "lower",
    "FP32": "fp32",
    "FP32_SET_OPT_DTYPE": "fp32_set_opt_dtype",
    "DIFFERENT_REDISPATCH_SIGNATURE": "fp32_append_dtype",
    "PROMOTE": "promote",
}
"""The lists AT_FORALL_* of ATen/autocast_mode.h and the policy of each."""

BESIDE_HEADER = {
    "cuda": {"binary_cross_entropy": "banned", "cudnn_convolution": "lower", "cudnn_convolution_transpose": "lower"},
    "xpu": {"binary_cross_entropy": "banned"},
    "mps": {"_mps_convolution": "lower", "batch_norm": "fp32"},
}
"""Ops that are registered beside the header's lists, in aten/src/ATen/autocast_mode.cpp."""

KEYS = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA", "mps": "AutocastMPS", "xpu": "AutocastXPU"}


def registered(device: str) -> frozenset[str]:
    """The aten ops that a device's autocast takes part in, as the dispatcher has them."""
    names = torch._C._dispatch_get_registrations_for_dispatch_key(KEYS[device])
    return frozenset(name.removeprefix("aten::").partition(".")[0] for name in names if name.startswith("aten::"))


def header_policies() -> dict[str, str]:
    """The policy of each op in the lists of the header in torch's wheel."""
    text = (Path(torch.__file__).parent / "include/ATen/autocast_mode.h").read_text()
    found: dict[str, str] = {}
    for name, body in re.findall(r"#define AT_FORALL_(\w+)\(_\)((?:.*\\\n)*.*\n)", text):
        for op in re.findall(r"_\((?:ADD_NS\()?(\w+)", body) if name in POLICIES else ():
            found.setdefault(op, POLICIES[name])
    return found


def autocast_lists(observed_on_cpu: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The ops of each policy by device. mps casts where the others set the optional dtype."""
    header = header_policies()
    lists: dict[str, dict[str, str]] = {}
    for device in KEYS:
        by_policy: dict[str, set[str]] = defaultdict(set)
        for op in registered(device):
            if device == "cpu":
                policy = observed_on_cpu.get(op)
            else:
                policy = header.get(op) or BESIDE_HEADER[device].get(op)
                policy = "fp32" if device == "mps" and policy == "fp32_set_opt_dtype" else policy
            by_policy[policy or "unknown"].add(op)
        lists[device] = {policy: " ".join(sorted(ops)) for policy, ops in sorted(by_policy.items())}
    return lists


def under_autocast(op: Op, call: Call) -> str | None:
    """The policy that an op shows under the CPU's autocast; None when it could not be run."""
    results = {}
    for dtype in ("float32", "bfloat16"):
        values = {
            at: call.tensor(at).to(getattr(torch, dtype))
            for at in call.tensors()
            if call.tensor(at).is_floating_point()
        }
        changed = call
        for at, value in values.items():
            changed = changed.changed({at: value})
        with torch.autocast("cpu", torch.bfloat16):
            ran = _ran(op, changed)
        if ran is None or isinstance(ran[0], Error) or not values:
            return None
        results[dtype] = _leaves(ran[0])
    if "bfloat16" in results["float32"]:
        return "lower"
    if "bfloat16" not in results["bfloat16"]:
        return "fp32"
    return "promote"


def _leaves(result: Any) -> set[Any]:
    if isinstance(result, tuple):
        return set().union(*map(_leaves, result))
    return _leaves(result.item) if isinstance(result, Many) else {result}


UNLIKE_CPU = frozenset({"torch.nn.GRU", "torch.nn.LSTM", "torch.nn.RNN"})
"""What calls other aten ops on another device than those that a profile on the CPU sees: autocast casts within cuDNN's."""

VIEWS = frozenset({"broadcast_tensors", "expand", "expand_as", "reshape", "squeeze", "unsqueeze", "view", "transpose"})
"""What a function of Python does on its way to the one aten op that it is about; no autocast policy is theirs."""


def aten_calls(op: Op, call: Call) -> tuple[set[str], set[str]]:
    """The aten ops that a call makes: the outermost, and those inside these. A profile sees them all."""
    clones = call
    for at in call.tensors():
        clones = clones.changed({at: call.tensor(at).clone()})
    try:
        with torch.no_grad(), torch.autograd.profiler.profile() as profile:
            op.function(*clones.args, **clones.kwargs)
    except Exception:
        return set(), set()
    outer: set[str] = set()
    inner: set[str] = set()
    for event in profile.function_events or ():
        if event.name.startswith("aten::"):
            (inner if event.cpu_parent is not None else outer).add(event.name[6:])
    return outer, inner


# -- the table ----------------------------------------------------------------------------------------------------------


def _described(op: Op, found: _Found) -> list[dict[str, Any]]:
    """The op's entry: each form that was observed, with its rule."""
    entry = []
    _uniform_lists(found.values())
    for number, form in enumerate(op.forms):
        observations = found.get(number, [])
        shown = Form(tuple(_with_seen(parameter, observations) for parameter in form.parameters))
        roles = "".join("d" if "d" in p.kinds else "o" if p.name == "out" else "t" for p in form.slots)
        rule = explain(observations, roles) if any(not one.failed for one in observations) else None
        written: dict[str, Any] = {"takes": [str(parameter) for parameter in shown.parameters]}
        if rule is not None:
            written["rule"] = rule
        entry.append(written)
    return entry if any("rule" in form for form in entry) else []


def _with_seen(parameter: Parameter, observations: Iterable[Observation]) -> Parameter:
    if parameter.is_slot or FREE in parameter.seen:
        return parameter
    tokens = {
        said for one in observations for name, said in one.constants if name == parameter.name and said is not None
    }
    return replace(parameter, seen=frozenset(tokens - {parameter.default} - {"?"}))


_LACKS_KERNEL = re.compile(r"not implemented for|Low precision dtypes not supported|Unsupported dtype")
"""How the CPU says that it has no kernel of a dtype: the dispatch macros, torch.linalg, torch.fft."""


def _lacking(found: Mapping[int, list[Observation]]) -> str:
    """The dtypes for which every call with all operands of that dtype raised for want of a kernel."""
    lacks: dict[str, set[bool]] = defaultdict(set)
    for one in (one for observations in found.values() for one in observations):
        dtypes = {
            item[0]
            for operand in one.operands
            if operand and isinstance(operand[0], str)
            for item in [operand]
            if item[1] > 0
        }
        if len(dtypes) == 1:
            lacks[dtypes.pop()].add(isinstance(one.result, Error) and bool(_LACKS_KERNEL.search(one.result.message)))
    return "".join(sorted(CODES[dtype] for dtype, verdicts in lacks.items() if verdicts == {True}))


def database_ops(only: Sequence[str] = ()) -> Iterator[tuple[str, list[tuple[Op, list[str]]]]]:
    """The entries of the operator database by name, with the public names that each is about."""
    entries: dict[str, list[Any]] = defaultdict(list)
    for info in database():
        entries[info.name].append(info)
    for name, infos in sorted(entries.items()):
        if only and name not in only:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = [sample for info in infos for sample in samples_of(info)]
        calls, bases = [call for call, _ in samples], [base for _, base in samples]
        publics = list(dict.fromkeys(public for info in infos for public in names_of(info)))
        yield (
            name,
            [
                (Op(public, resolved(public), calls, forms_of(public, resolved(public), calls)), bases)
                for public in publics
            ],
        )


def names_of_database() -> list[str]:
    """The names of the entries of the operator database."""
    return sorted({info.name for info in database()})


class _Learner:
    """Gathers the parts of the table."""

    def __init__(self) -> None:
        self.ops: dict[str, Any] = {}
        self.kernels: dict[str, str] = {}
        self.aten: dict[str, str] = {}
        self.composite: dict[str, set[str]] = defaultdict(set)
        self.on_cpu: dict[str, str] = {}
        self._registered = {device: registered(device) for device in KEYS}

    def add(self, ops: Sequence[Op], found: _Found) -> None:
        """Take in what was observed of an op."""
        op, entry = ops[0], audited(ops, found)
        if not entry:
            return
        self.ops[op.name] = entry
        lacking = _lacking(found)
        if lacking:
            self.kernels[op.name] = lacking
        self._autocast(op)

    def _autocast(self, op: Op) -> None:
        nothing: tuple[set[str], set[str]] = set(), set()
        outer, inner = next((made for made in (aten_calls(op, call) for call in op.calls[:3]) if made[0]), nothing)
        last = op.name.rpartition(".")[2]
        deciding = outer - VIEWS
        root = deciding.pop() if len(deciding) == 1 else None
        if root is not None and root != last:
            self.aten[op.name] = root
        for device, names in self._registered.items():
            if root in names:
                continue
            if names & (outer | inner) or op.name in UNLIKE_CPU:
                self.composite[device].add(op.name)
        if root in self._registered["cpu"] and root not in self.on_cpu:
            policy = next((shown for shown in (under_autocast(op, call) for call in op.calls[:3]) if shown), None)
            if policy is not None:
                self.on_cpu[root] = policy

    def table(self) -> dict[str, Any]:
        """The table, as it is written."""
        lists = autocast_lists(self.on_cpu)
        for device, names in self.composite.items():
            lists[device]["composite"] = " ".join(sorted(names))
        ops = _aliased(self.ops)
        return {
            "torch": torch.__version__.partition("+")[0],
            "note": NOTE,
            "autocast": lists,
            "aten": dict(sorted(self.aten.items())),
            "kernels": dict(sorted(self.kernels.items())),
            "ops": ops,
        }


def _aliased(ops: Mapping[str, Any]) -> dict[str, Any]:
    """Ops that another op's entry describes to the letter say its name instead."""
    first: dict[str, str] = {}
    result: dict[str, Any] = {}
    for name in sorted(ops, key=lambda name: (name.startswith("torch.Tensor."), name.count("."), name)):
        text = json.dumps(ops[name])
        if first.setdefault(text, name) == name:
            result[name] = ops[name]
        else:
            result[name] = first[text]
    return result


def learn(only: Sequence[str] = ()) -> dict[str, Any]:
    """The table, as it is written."""
    torch.set_num_threads(1)
    learner = _Learner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, variants in database_ops(only):
            print(name, file=sys.stderr, flush=True)
            for op, bases in variants:
                learner.add([op], observed(op, bases))
        for op, bases in extra_ops(only):
            if op.name not in learner.ops:
                learner.add([op], observed(op, bases))
        for _, ops in module_ops(only):
            found: dict[int, list[Observation]] = defaultdict(list)
            for op in ops:
                for number, observations in observed(op, ["float32"]).items():
                    found[number] += observations
            if ops:
                learner.add(ops, found)
        for op in optimizer_ops(only):
            learner.add([op], observed(op, ["float32"]))
    return learner.table()


def written(table: Mapping[str, Any]) -> str:
    """The table as JSON, a line for each op: so `Table.read` finds an op without reading the others."""
    head = json.dumps({key: value for key, value in table.items() if key != "ops"}, indent=0)
    lines = [
        f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'), ensure_ascii=False)}"
        for name, entry in sorted(table["ops"].items())
    ]
    return head.removesuffix("\n}") + OPS + ",\n".join(lines) + "\n}\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Learn, and write the table."""
    version = ".".join(torch.__version__.split(".")[:2])
    parser = argparse.ArgumentParser(
        prog="python -m dtlint.dtypes.learn", description="Learn the operator table from torch."
    )
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent.parent / "tables" / f"torch-{version}.json"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="OP", help="learn this entry of the database only"
    )
    options = parser.parse_args(arguments)
    table = learn(options.only)
    options.output.write_text(written(table), encoding="utf-8")
    print(f"{len(table['ops'])} ops of torch {table['torch']} in {options.output}")
    return 0
