"""What the interpreter knows of an expression.

Values are never changed once made. What changes as the program runs (a module's weights, a scaler's phase) lives in
the state, under the value's `key`. Unknown is a value too, and silent.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum, Flag, auto
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from dtlint.dtypes.dtype import Category

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = [
    "NONE",
    "ONE_OF_SEVERAL",
    "UNKNOWN",
    "Array",
    "Atom",
    "Autocast",
    "Class",
    "Constant",
    "Conversion",
    "Device",
    "Distinct",
    "Dtype",
    "DtypeOf",
    "Dtypes",
    "Either",
    "External",
    "Function",
    "GradScaler",
    "Imported",
    "Instance",
    "Items",
    "Iteration",
    "Key",
    "Module",
    "Namespace",
    "NullContext",
    "Number",
    "Optimizer",
    "Partial",
    "Phase",
    "Picture",
    "Record",
    "Symbol",
    "Table",
    "Tensor",
    "Trait",
    "Unknown",
    "Value",
    "forget",
    "identities",
    "identity",
    "join",
    "options",
    "same_as",
    "taken_from",
    "told_of_forgotten",
]

Dtypes = frozenset[str] | None
"""The dtypes that a tensor can have, or None when nothing is known of them."""

Key = str
"""The identity of an object: where it was made, or the path it is known by."""


class Trait(Flag):
    """What has been done to a tensor's values, as far as it decides whether a narrowing cast is thought through."""

    NONE = 0
    CLAMPED = auto()
    ROUNDED = auto()
    SCALED = auto()
    CONSTANT = auto()
    """Made of numbers that are written in the source: see Tensor.span."""
    PARAMETER = auto()
    """A weight of a module, as its parameters() and attributes give it."""
    BUFFER = auto()
    """A buffer of a module: cast with it when it is floating."""
    DEFAULTED = auto()
    """Of the default dtype because nobody gave one: `torch.zeros(3)`, and what was made of it with numbers alone."""
    ON_CPU = auto()
    ON_CUDA = auto()
    """Where it is, told in whole programs only."""

    def __or__(self, other: Trait) -> Trait:  # those of Flag go by way of the class, which takes longer
        return _TRAITS[self._value_ | other._value_]

    def __and__(self, other: Trait) -> Trait:
        return _TRAITS[self._value_ & other._value_]


_TRAITS = [Trait(value) for value in range(2 * max(trait.value for trait in Trait))]


class Phase(Enum):
    """A GradScaler's cycle: scale, backward, unscale_, step, update."""

    IDLE = "idle"
    SCALED = "scaled"
    """Gradients are in, and multiplied by the scale."""
    PERHAPS_SCALED = "perhaps scaled"
    """Scaled on some path to this point."""
    UNSCALED = "unscaled"


ONE_OF_SEVERAL = "?"
"""The holder of a tensor that is one of those that different expressions have made."""
LARGEST = 5_000
"""Values inside one value, each counted as often as it is there. `x = (x, x)` thirty times over would be a billion, and
comparing two of them takes that many steps: of what is larger than this, only the shape is known."""


@dataclass(slots=True, repr=False, match_args=False)
class Value:
    """Base of all values."""

    size = 1
    """The values in it, itself included. Those that hold others have one each."""


@dataclass(unsafe_hash=True, slots=True)  # never changed: to freeze it would double the time to make one
class Atom:
    """What decides a dtype that is not known: a parameter of a function, the weights of a layer.

    Attributes:
        key: its identity.
        text: how the source spells it: `x`, `self.fc.weight`; nothing where it has no name.
        parameter: is it a parameter of the running function?
        floating: is it certain that its dtype is a floating one?
        is_dtype: is it a dtype itself, and no tensor that has one?
    """

    key: Key
    text: str = field(default="", compare=False)
    parameter: bool = field(default=False, compare=False)
    floating: bool = field(default=False, compare=False)
    is_dtype: bool = field(default=False, compare=False)


@dataclass(unsafe_hash=True, slots=True)  # as an Atom
class Symbol:
    """A dtype that is not known, by what decides it.

    Attributes:
        of: what decides it; of several, their promotion.
        met: the floating dtypes of tensors with dimensions that it was promoted with.
        floor: what numbers and ops for floats lift it to, if it is lower: an integer `x` is float32 in `x * 0.5`.
        widens: has an op been at it that makes int64 of all whole numbers, as `sum` does?
        reduced: has the tensor perhaps fewer dimensions than what decides: none, as `x.mean()` and `x[0]` may have?
    """

    of: frozenset[Atom]
    met: frozenset[str] = frozenset()
    floor: Category = Category.BOOL
    widens: bool = False
    reduced: bool = False

    def but(self, **changed: Any) -> Symbol:
        """The same with other attributes: `dataclasses.replace`, in a quarter of its time."""
        made = Symbol(self.of, self.met, self.floor, self.widens, self.reduced)
        for name, value in changed.items():
            setattr(made, name, value)
        return made

    @property
    def sole(self) -> Atom | None:
        """The one thing that decides, if it is one."""
        return next(iter(self.of)) if len(self.of) == 1 else None

    @property
    def exact(self) -> bool:
        """Is it the very dtype of the one thing that decides, whatever floating dtype that has?"""
        return len(self.of) == 1 and not self.met and self.floor < Category.COMPLEX


@dataclass(slots=True, repr=False, match_args=False)
class Unknown(Value):
    """Anything. `under` and `scaled` are known even of what is not: see Tensor.

    Attributes:
        atom: what the code calls it.
        dtypes: what its dtype can be if it is a tensor, which is known of what an operator gives: `a > b` is bool then.
    """

    under: Autocast | None = None
    scaled: Key | None = None
    atom: Atom | None = None
    dtypes: Dtypes = None


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Conversion:
    """An explicit cast: the call, and the dtypes or the symbol that the tensor had before."""

    node: ast.expr
    dtypes: Dtypes = None
    symbol: Symbol | None = None


@dataclass(slots=True, repr=False, match_args=False)
class Tensor(Value):
    """A tensor.

    Attributes:
        dtypes: what its dtype can be.
        zero_dim: is it 0-dim; None when not known. Promotion ranks dimensioned tensors over 0-dim ones.
        traits: what has been done to its values.
        span: the least and the greatest of the constants that it is made of; None when they are not known.
        under: the autocast region that it was computed in, and left unscaled since.
        scaled: the GradScaler whose scale() it came from.
        origin: the expression that gave it its dtype.
        symbol: what decides its dtype, where that is not known.
        cast: the explicit cast that gave it its dtype.
        holder: the module of which it is the very weight.
    """

    dtypes: Dtypes = None
    zero_dim: bool | None = None
    traits: Trait = Trait.NONE
    under: Autocast | None = None
    scaled: Key | None = None
    origin: ast.expr | None = field(default=None, compare=False)
    span: tuple[float, float] | None = None
    symbol: Symbol | None = None
    cast: Conversion | None = field(default=None, compare=False)
    holder: Key | None = field(default=None, compare=False)

    def but(self, **changed: Any) -> Tensor:
        """The tensor with other attributes: `dataclasses.replace`, in a quarter of its time."""
        made = Tensor(
            *(self.dtypes, self.zero_dim, self.traits, self.under, self.scaled),
            *(self.origin, self.span, self.symbol, self.cast),
        )
        for name, value in changed.items():
            setattr(made, name, value)
        return made


@dataclass(slots=True, match_args=False)
class Array(Value):
    """A NumPy array or scalar. `scalar` tells `np.float64(2)` from an array; None when it may be either."""

    dtypes: Dtypes = None
    scalar: bool | None = None
    origin: ast.expr | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True, match_args=False)
class Picture(Value):
    """An image of PIL, and the dtypes of its pixels as `np.array` takes them."""

    dtypes: Dtypes = None


@dataclass(slots=True, repr=False, match_args=False)
class Module(Value):
    """An nn.Module. `name` is its class, `info` the class where the project defines it."""

    name: str
    key: Key
    info: ClassInfo | None = None
    dtypes: Dtypes = field(default=None, compare=False)
    """What a layer of torch.nn was made with; None when that is not known."""
    items: tuple[Value, ...] | None = None
    """The modules that a Sequential, ModuleList or ModuleDict was made of."""
    size: int = field(default=1, init=False, compare=False)

    def __post_init__(self) -> None:
        if self.items is not None:
            self.size = _size(self.items)
            if self.size > LARGEST:
                forget(self.items)
                self.items, self.size = None, 1


@dataclass(slots=True, repr=False, match_args=False)
class Instance(Value):
    """An instance of a class of the project that is not a module."""

    info: ClassInfo
    key: Key


@dataclass(slots=True, repr=False, match_args=False)
class Optimizer(Value):
    """A torch optimizer. `of` are the modules whose parameters it was given."""

    key: Key
    of: frozenset[Key] = frozenset()


@dataclass(slots=True, repr=False, match_args=False)
class GradScaler(Value):
    """A GradScaler. `enabled` is None when the program decides."""

    key: Key
    enabled: bool | None = True


@dataclass(slots=True, repr=False, match_args=False)
class Autocast(Value):
    """An autocast context. A device or dtype that the program decides is None. `made` is the call that makes it."""

    device: str | None
    dtype: str | None
    enabled: bool | None = True
    made: ast.Call | None = field(default=None, compare=False)


@dataclass(slots=True, repr=False, match_args=False)
class NullContext(Value):
    """A context that changes no dtype: nullcontext, no_grad, inference_mode. `name` is its qualified name, `given` what
    entering it gives."""

    name: str
    given: Value | None = None


@dataclass(slots=True, repr=False, match_args=False)
class Dtype(Value):
    """A torch dtype itself. `name` as in dtlint.dtypes."""

    name: str


@dataclass(slots=True, match_args=False)
class DtypeOf(Value):
    """A torch dtype that is not known: one of `dtypes`, or what `symbol` says."""

    symbol: Symbol | None = None
    dtypes: Dtypes = None


@dataclass(slots=True, match_args=False)
class Number(Value):
    """A Python number that is computed: `len(x)`, `x.shape[0]`, `math.sqrt(d)`. Its category as in promotion."""

    category: Category


@dataclass(slots=True, eq=False, repr=False, match_args=False)
class Constant(Value):
    """A Python constant: number, string, bool, None, Ellipsis. 1, 1.0 and True are three of them."""

    value: object

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if type(other) is not Constant:
            return False
        value, another = self.value, other.value
        return value is another or (type(value) is type(another) and value == another)


@dataclass(slots=True, repr=False, match_args=False)
class External(Value):
    """Something outside the project, by its canonical qualified name: a module, a function, a class."""

    name: str


@dataclass(slots=True, repr=False, match_args=False)
class Function(Value):
    """A function of the project; `receiver` is what it is bound to."""

    info: FunctionInfo
    receiver: Value | None = None


@dataclass(slots=True, repr=False, match_args=False)
class Class(Value):
    """A class of the project."""

    info: ClassInfo


@dataclass(slots=True, repr=False, match_args=False)
class Namespace(Value):
    """A Python module of the project, by its dotted name."""

    name: str


@dataclass(slots=True, repr=False, match_args=False)
class Imported(Value):
    """A name imported from a module of the project, to be looked up when it is used."""

    module: str
    name: str


@dataclass(slots=True, repr=False, match_args=False)
class Super(Value):
    """`super()` in a method of `owner`: the instance, seen from behind that class."""

    receiver: Value
    owner: ClassInfo


@dataclass(slots=True, repr=False, match_args=False)
class Device(Value):
    """A torch.device: no dtype, so that a move to it is no cast. `type` as in `torch.device.type`, where it is known."""

    type: str | None = None


@dataclass(slots=True, repr=False, match_args=False)
class Partial(Value):
    """functools.partial of a callable, with the arguments it already has."""

    callee: Value
    args: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)


_C = TypeVar("_C", bound="Items | Table | Iteration")
_NOBODY: frozenset[int] = frozenset()
_counted = count(1)


@dataclass(slots=True, repr=False, match_args=False)
class Items(Value):
    """A list, tuple or set whose items are known one by one."""

    items: tuple[Value, ...]
    size: int = field(default=1, init=False, compare=False)
    who: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    taken: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    inside: frozenset[int] | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.size = _size(self.items)
        if self.size > LARGEST:
            forget(self.items)
            self.items, self.size = (UNKNOWN,) * len(self.items), LARGEST

    def holding(self, items: Iterable[Value]) -> Items:
        """The same list, tuple or set with other items, as many."""
        return Items(tuple(items))


@dataclass(slots=True, repr=False, match_args=False)
class Distinct(Items):
    """A set of constants, in no order."""

    def holding(self, items: Iterable[Value]) -> Items:
        return Distinct(tuple(items))


@dataclass(slots=True, repr=False, match_args=False)
class Record(Items):
    """A named tuple: its items go by names, too.

    Attributes:
        info: the class of the project that it is an instance of, where it is one.
    """

    names: tuple[str, ...] = ()
    info: ClassInfo | None = None

    def holding(self, items: Iterable[Value]) -> Items:
        return Record(tuple(items), self.names, self.info)


@dataclass(slots=True, repr=False, match_args=False)
class Table(Value):
    """A dict as the source writes it out, by its constant keys: an optimizer's parameter group, `**kwargs`."""

    items: dict[object, Value]
    perhaps: frozenset[object] = frozenset()
    """Keys that it has on some paths only."""
    rest: Value | None = None
    """What was stored under keys that are not known."""
    size: int = field(default=1, init=False, compare=False)
    who: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    taken: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    inside: frozenset[int] | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.size = _size(self.items.values()) + (0 if self.rest is None else self.rest.size)
        if self.size > LARGEST:
            forget((*self.items.values(), *(() if self.rest is None else (self.rest,))))
            self.items, self.size = dict.fromkeys(self.items, UNKNOWN), LARGEST
            self.rest = None if self.rest is None else UNKNOWN


@dataclass(slots=True, repr=False, match_args=False)
class Iteration(Value):
    """Something whose items are alike: what `item` is, which method gave it, and of which module."""

    item: Value
    source: str = ""
    of: Key | None = None
    size: int = field(default=1, init=False, compare=False)
    who: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    taken: frozenset[int] = field(default=_NOBODY, init=False, compare=False)
    inside: frozenset[int] | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.size = 1 + self.item.size
        if self.size > LARGEST:
            forget((self.item,))
            self.item, self.size = UNKNOWN, 2


@dataclass(slots=True, repr=False, match_args=False)
class Either(Value):
    """One of a few values, by the path taken."""

    choices: tuple[Value, ...]
    size: int = field(default=1, init=False, compare=False)

    def __post_init__(self) -> None:
        self.size = _size(self.choices)
        if self.size > LARGEST:
            forget(self.choices)
            self.choices, self.size = (UNKNOWN,), 2


_told: list[Callable[[Value], None]] = []


@contextmanager
def told_of_forgotten(tell: Callable[[Value], None]) -> Iterator[None]:
    """While this lasts, somebody is told of each value that is let go of because there are too many, or too large ones:
    what can be called of it is called where nobody can say what it is."""
    _told.append(tell)
    try:
        yield
    finally:
        _told.pop()


def forget(values: Iterable[Value]) -> None:
    """Let go of values: who wants to know is told."""
    for tell in _told:
        for value in values:
            tell(value)


def _size(values: Iterable[Value]) -> int:
    size = 1
    for value in values:
        size += value.size
    return size


def identity(container: Items | Table | Iteration) -> frozenset[int]:
    """The lists and dicts of a run that a container stands for: one, or those that it may be, by the path taken. What
    changes one changes all that stand for it."""
    if not container.who:
        container.who = frozenset((next(_counted),))
    return container.who


def same_as(made: _C, container: Items | Table | Iteration) -> _C:
    """A container that was just made, as what another has become."""
    made.who, made.taken = identity(container), container.taken
    return made


def taken_from(made: _C, *sources: Value) -> _C:
    """What was just made gives items of these one after the other: when one of them changes, so does what it gives."""
    made.taken = made.taken.union(*map(identities, sources))
    return made


def identities(value: Value) -> frozenset[int]:
    """Those of a container, of all that are in it, and of those that it takes its items from."""
    if isinstance(value, Either):
        return _NOBODY.union(*map(identities, value.choices))
    if isinstance(value, Partial):
        return _NOBODY.union(*map(identities, (*value.args, *value.keywords.values())))
    if not isinstance(value, (Items, Table, Iteration)):
        return _NOBODY
    if value.inside is None:
        held: Iterable[Value] = (value.item,) if isinstance(value, Iteration) else value.items  # type: ignore[assignment]
        if isinstance(value, Table):
            held = (*value.items.values(), *(() if value.rest is None else (value.rest,)))
        value.inside = identity(value).union(value.taken, *map(identities, held))
    return value.inside


UNKNOWN = Unknown()
NONE = Constant(None)
_MOST_CHOICES = 4


def options(value: Value) -> tuple[Value, ...]:
    """The values that `value` can be: itself, or its choices."""
    return value.choices if isinstance(value, Either) else (value,)


def join(left: Value, right: Value) -> Value:
    """What is known where two paths meet."""
    if left is right:
        return left
    if type(left) is Tensor and type(right) is Tensor:
        return _join_tensors(left, right)
    if type(left) is Unknown and type(right) is Unknown:
        return Unknown(
            left.under if left.under == right.under else None,
            left.scaled if left.scaled == right.scaled else None,
            left.atom if left.atom == right.atom else None,
            None if left.dtypes is None or right.dtypes is None else left.dtypes | right.dtypes,
        )
    kind = type(left)
    if kind is type(right) and left == right:  # values of two kinds are never equal, and say so twice
        if not isinstance(left, (Items, Table, Iteration)):
            return left
        same = left.who and left.who == right.who  # type: ignore[attr-defined]
        if same and (kind is not Table or _in_same_order(left, right)):  # type: ignore[arg-type]
            return left
        if kind is not Table:
            return _either_of(_again(left), left, right)  # type: ignore[no-any-return]
    if kind in _PLAIN or type(right) in _PLAIN:
        return _choice(left, right)
    if isinstance(left, Array) and isinstance(right, Array):
        dtypes = None if left.dtypes is None or right.dtypes is None else left.dtypes | right.dtypes
        return Array(dtypes, left.scalar if left.scalar == right.scalar else None, left.origin)
    if isinstance(left, Items) and isinstance(right, Items) and len(left.items) == len(right.items):
        joined = map(join, left.items, right.items)
        alike = isinstance(left, Record) and isinstance(right, Record) and left.names == right.names
        return _either_of(left.holding(joined) if alike else Items(tuple(joined)), left, right)
    if isinstance(left, (Items, Iteration)) and isinstance(right, (Items, Iteration)):
        lists = sorted((left, right), key=lambda one: isinstance(one, Iteration))
        if isinstance(lists[0], Items) and isinstance(lists[1], Iteration):
            return _either_of(_join_lists(lists[0], lists[1]), left, right)
    if isinstance(left, Table) and isinstance(right, Table):
        return _either_of(_join_tables(left, right), left, right)
    if isinstance(left, Iteration) and isinstance(right, Iteration) and left.of == right.of:
        source = left.source if left.source == right.source else ""
        return _either_of(Iteration(join(left.item, right.item), source, left.of), left, right)
    return _choice(left, right)


def _either_of(made: _C, left: Value, right: Value) -> _C:
    """A container that was just made, as either of two."""
    made.who = identity(left) | identity(right)  # type: ignore[arg-type]
    made.taken = left.taken | right.taken  # type: ignore[attr-defined]
    return made


def _again(container: Any) -> Any:
    """Another that is like a container."""
    return container.holding(container.items) if isinstance(container, Items) else replace(container)


def _choice(left: Value, right: Value) -> Value:
    """One of two values that have nothing in common."""
    choices: list[Value] = []
    for value in (*options(left), *options(right)):
        if value not in choices:
            choices.append(value)
    if len(choices) <= _MOST_CHOICES:
        return Either(tuple(choices))
    forget(choices)
    return UNKNOWN


_PLAIN = frozenset[type]({Constant, Unknown, Tensor, Either})
"""Values that hold nothing which could be joined with what another one holds."""


def _join_lists(left: Items, right: Iteration) -> Iteration:
    """A list whose items are known one by one, or another: `outputs = []`, to which a loop appends."""
    item = right.item
    for one in left.items:
        item = join(item, one)
    return Iteration(item, of=right.of if not left.items else None)


def _join_tables(left: Table, right: Table) -> Table:
    items = dict(left.items)
    for key, value in right.items.items():
        items[key] = join(items[key], value) if key in items else value
    rest = right.rest if left.rest is None else left.rest if right.rest is None else join(left.rest, right.rest)
    if not _in_same_order(left, right):  # as that of what is there on some paths only, nobody knows the order
        return Table(items, frozenset(items), rest)
    return Table(items, left.perhaps | right.perhaps | (left.items.keys() ^ right.items.keys()), rest)


def _in_same_order(left: Table, right: Table) -> bool:
    """Do the keys that two dicts have in common come one after the other in both?"""
    common = (key for key in left.items if key in right.items)
    return all(
        key == other for key, other in zip(common, (key for key in right.items if key in left.items), strict=True)
    )


def _join_tensors(left: Tensor, right: Tensor) -> Tensor:
    weights = Trait.PARAMETER | Trait.BUFFER
    cast = (left.traits | right.traits) & weights if left.traits & weights and right.traits & weights else Trait.NONE
    return Tensor(
        dtypes=None if left.dtypes is None or right.dtypes is None else left.dtypes | right.dtypes,
        zero_dim=left.zero_dim if left.zero_dim == right.zero_dim else None,
        traits=left.traits & right.traits | cast,
        under=left.under if left.under == right.under else None,
        scaled=left.scaled if left.scaled == right.scaled else None,
        origin=left.origin,
        span=_join_spans(left.span, right.span),
        symbol=_join_symbols(left.symbol, right.symbol),
        cast=left.cast if _same_cast(left.cast, right.cast) else None,
        holder=left.holder if left.origin is right.origin and left.holder == right.holder else ONE_OF_SEVERAL,
    )


def _join_symbols(left: Symbol | None, right: Symbol | None) -> Symbol | None:
    if left is None or right is None or left.of != right.of or left.met != right.met:
        return None
    floor = max(left.floor, right.floor)
    return Symbol(left.of, left.met, floor, left.widens or right.widens, left.reduced or right.reduced)


def _same_cast(left: Conversion | None, right: Conversion | None) -> bool:
    return left is right or (left is not None and right is not None and left.node is right.node)


def _join_spans(left: tuple[float, float] | None, right: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if left is None or right is None else (min(left[0], right[0]), max(left[1], right[1]))
