"""The kinds of values. None of them ever changes; identity of what does is an `Address`, whose contents are in the store."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.interval import ANY, Range

__all__ = [
    "ABSENT",
    "LEFT",
    "NONE",
    "NO_TENSOR",
    "TOP",
    "Address",
    "Array",
    "Atom",
    "Bound",
    "CallPath",
    "Const",
    "Device",
    "Dtype",
    "Dtypes",
    "External",
    "Function",
    "Generator",
    "Imported",
    "Instance",
    "Many",
    "Mapping",
    "Namespace",
    "Number",
    "Partial",
    "ProjectClass",
    "Ref",
    "Region",
    "SuperOf",
    "Symbol",
    "Tensor",
    "Tuple",
    "Union",
    "Unknown",
    "Value",
    "choices",
    "may_be_absent",
    "present",
    "reshaped",
]

Dtypes = frozenset[str] | None
"""The dtypes that a tensor can have; None: nothing is known."""


# -- dtypes that a caller decides ----------------------------------------------------------------------------------------


@dataclass(unsafe_hash=True, slots=True)
class Atom:
    """What decides a dtype that is not known: a parameter of a function, or a weight of its module.

    Attributes:
        key: its identity, `path:line:x`.
        text: how the source spells it: `x`, `self.fc.weight`.
        floating: is its dtype certain to be a floating one, as a weight's is?
        shaped: has it certainly dimensions?
    """

    key: str
    text: str = field(default="", compare=False)
    floating: bool = field(default=False, compare=False)
    shaped: bool = field(default=False, compare=False)


@dataclass(unsafe_hash=True, slots=True)
class Symbol:
    """A dtype that the caller decides: that of an atom, or the promotion of several.

    Attributes:
        of: the atoms.
        met: floating dtypes that they are promoted with.
        least: it holds where all atoms are at least of that category: `x * 0.5` has the dtype of a floating `x` alone,
            `x + 1` that of any `x` but bool.
        outside: does it hold outside autocast only?
        reshaped: may the tensor have no dimensions where its atom has some, or the other way round, so that its promotion
            with others is not that of its atom?
    """

    of: frozenset[Atom]
    met: frozenset[str] = frozenset()
    least: Category = Category.BOOL
    outside: bool = False
    reshaped: bool = False


def reshaped(symbol: Symbol | None) -> Symbol | None:
    """The same dtype, of a tensor that may have dimensions where its atom has none, or none where that has some."""
    if symbol is None or symbol.reshaped:
        return symbol
    return Symbol(symbol.of, symbol.met, symbol.least, symbol.outside, True)


# -- identity ------------------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class CallPath:
    """The calls under way where something is allocated, innermost first. Interned: equal paths are one object."""

    caller: CallPath | None
    site: object
    """The syntax node of the call."""
    depth: int = 0
    module: Any = None
    """The module that holds the call."""


@dataclass(eq=False, slots=True)
class Address:
    """A heap object, by its allocation site and the calls that led there. Interned: compared by identity.

    Attributes:
        path: the calls under way.
        site: the syntax node that allocates, or another hashable thing that names it.
        kind: what it is an instance of: a `ProjectClass`, or the qualified name of a class from elsewhere, as
            `builtins.list`, `torch.nn.Linear`, `frame` for the variables of a call, `module` for those of a module.
    """

    path: CallPath | None
    site: object
    kind: Any

    def __repr__(self) -> str:
        kind = self.kind if isinstance(self.kind, str) else getattr(self.kind, "name", "?")
        return f"<{kind} at {getattr(self.site, 'lineno', self.site)}>"


# -- values --------------------------------------------------------------------------------------------------------------


class Value:
    """Base of all values."""

    __slots__ = ()


@dataclass(unsafe_hash=True, slots=True)
class Unknown(Value):
    """Anything at all. If it is a tensor, `dtypes` and `symbol` say what its dtype is, and `extra` what a model adds, as of a
    `Tensor`."""

    dtypes: Dtypes = None
    symbol: Symbol | None = None
    extra: frozenset[tuple[str, object]] = frozenset()


@dataclass(unsafe_hash=True, slots=True)
class Instance(Unknown):
    """Something that is declared to be an object of a class that is read as source, or of a class derived from that: of what it
    has no more is known than the class declares.

    Attributes:
        kind: the class, a `ProjectClass`.
    """

    kind: Any = None


LEFT = "left"
"""Names what may hold of a tensor, where other facts certainly do."""


@dataclass(unsafe_hash=True, slots=True)
class Tensor(Value):
    """A tensor.

    Attributes:
        dtypes: what its dtype can be.
        symbol: what decides the dtype where it is not known.
        rank: how many dimensions it has; -2: at least two; None: not known.
        range: what its elements can be.
        device: "cpu", "cuda", or None.
        extra: facts that a model adds and operators drop: `("scaled", address)` for a loss times its scale. `(LEFT, node)`
            says where it may have left the dtype that is assumed.
    """

    dtypes: Dtypes = None
    symbol: Symbol | None = None
    rank: int | None = None
    range: Range = ANY
    device: str | None = None
    extra: frozenset[tuple[str, object]] = frozenset()


@dataclass(unsafe_hash=True, slots=True)
class Array(Value):
    """A NumPy array or scalar; `scalar` is None where it may be either."""

    dtypes: Dtypes = None
    scalar: bool | None = None


@dataclass(slots=True)
class Const(Value):
    """A Python constant: a number, string, bytes, bool, None, Ellipsis. 1, 1.0 and True are three of them."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if type(other) is not Const:
            return False
        mine, another = self.value, other.value
        return mine is another or (type(mine) is type(another) and mine == another)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(unsafe_hash=True, slots=True)
class Number(Value):
    """A Python number of which the category is known, and perhaps the range."""

    category: Category
    range: Range = ANY


@dataclass(unsafe_hash=True, slots=True)
class Dtype(Value):
    """A torch.dtype: one of `dtypes`, or what decides `symbol`."""

    dtypes: Dtypes = None
    symbol: Symbol | None = None


@dataclass(unsafe_hash=True, slots=True)
class Device(Value):
    """A torch.device, by its type."""

    type: str | None = None


@dataclass(unsafe_hash=True, slots=True)
class Tuple(Value):
    """A tuple whose items are known one by one; also what a list holds.

    Attributes:
        items: what it holds.
        names: those of a named tuple's fields.
        kind: the class of a named tuple that is read as source, a `ProjectClass`.
    """

    items: tuple[Value, ...]
    names: tuple[str, ...] = ()
    kind: Value | None = None


@dataclass(unsafe_hash=True, slots=True)
class Many(Value):
    """A sequence of any length, or an iterator, whose items are alike; also what a list or set holds."""

    item: Value


@dataclass(unsafe_hash=True, slots=True)
class Mapping(Value):
    """What a dict holds: by constant keys, and what may be there under others. An `ABSENT` alternative: perhaps."""

    items: tuple[tuple[Value, Value], ...] = ()
    rest: Value | None = None

    def get(self, key: Value) -> Value | None:
        """The value under a key, or None."""
        return next((value for name, value in self.items if name == key), None)


@dataclass(unsafe_hash=True, slots=True)
class Ref(Value):
    """A mutable object."""

    address: Address


@dataclass(unsafe_hash=True, slots=True)
class External(Value):
    """Something that is not read as source, by its canonical qualified name: `torch.nn.Linear`, `builtins.len`."""

    name: str


@dataclass(unsafe_hash=True, slots=True)
class Namespace(Value):
    """A Python module that is read as source, by its dotted name."""

    name: str


@dataclass(unsafe_hash=True, slots=True)
class ProjectClass(Value):
    """A class that is read as source; `definition` is an `interproc.classes.ClassDefinition`, compared by identity."""

    name: str
    definition: Any = field(compare=True)


@dataclass(unsafe_hash=True, slots=True)
class Function(Value):
    """A function that is read as source.

    Attributes:
        definition: an `interproc.functions.FunctionDefinition`, compared by identity.
        frame: the variables around it, where it is a closure.
        receiver: what it is bound to.
    """

    definition: Any
    frame: Address | None = None
    receiver: Value | None = None


@dataclass(unsafe_hash=True, slots=True)
class Bound(Value):
    """A method of something that is not read as source, not called yet: `x.view`, `items.append`."""

    receiver: Value
    name: str


@dataclass(unsafe_hash=True, slots=True)
class Partial(Value):
    """`functools.partial`: a callable with the arguments that it has already."""

    callee: Value
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(unsafe_hash=True, slots=True)
class Generator(Value):
    """What calling a generator function gives: its body runs when items are asked for.

    Attributes:
        function: the function.
        bound: the arguments, by parameter.
    """

    function: Function
    bound: tuple[tuple[str, Value], ...]


@dataclass(unsafe_hash=True, slots=True)
class SuperOf(Value):
    """`super()` in a method of a class: the receiver, seen from behind `owner`."""

    owner: ProjectClass
    receiver: Value


@dataclass(unsafe_hash=True, slots=True)
class Region(Value):
    """An autocast region. What the program decides is None.

    Attributes:
        device: "cuda", "cpu".
        dtype: "float16".
        enabled: is it on?
    """

    device: str | None
    dtype: str | None
    enabled: bool | None = True


@dataclass(eq=False, slots=True)
class Union(Value):
    """One of a few values, by the path taken. Made by `join` alone.

    Attributes:
        choices: all of them once, in the order in which they were met, so that a program is read the same each time.
    """

    choices: tuple[Value, ...]

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is Union
            and len(self.choices) == len(other.choices)
            and frozenset(self.choices) == frozenset(other.choices)
        )

    def __hash__(self) -> int:
        return hash(frozenset(self.choices))


class _Absent(Value):
    """No value at all: a variable or a key that is not there on some path."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
TOP = Unknown()
NO_TENSOR = Unknown(frozenset())
"""Something that is certainly no tensor: a text, a file."""
NONE = Const(None)


def choices(value: Value) -> tuple[Value, ...]:
    """The values that `value` can be: itself, or the alternatives of a union."""
    return value.choices if type(value) is Union else (value,)


@dataclass(unsafe_hash=True, slots=True)
class Imported(Value):
    """A name of a module that is read as source, looked up when it is first used: imports may be circular."""

    module: str
    name: str


def present(value: Value) -> Value | None:
    """The value without its ABSENT alternative; None where nothing is left."""
    if value is ABSENT:
        return None
    if type(value) is Union and ABSENT in value.choices:
        left = tuple(one for one in value.choices if one is not ABSENT)
        return left[0] if len(left) == 1 else Union(left)
    return value


def may_be_absent(value: Value | None) -> bool:
    """Is there, on some path, no value?"""
    return value is None or value is ABSENT or (type(value) is Union and ABSENT in value.choices)
