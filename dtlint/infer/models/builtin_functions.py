"""Python's builtin functions and types."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns, Unfit
from dtlint.infer.domain.interval import Range
from dtlint.infer.domain.lattice import join, join_all, number_of
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    External,
    Function,
    Imported,
    Many,
    Mapping,
    Namespace,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import kinds, plain_tensors
from dtlint.infer.models.instance_dicts import instance_dict
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_TRUTH = Number(Category.BOOL)
_SIZE = Number(Category.INTEGER, Range(0.0, float("inf"), True, False, False))
_MOST_LISTED = 16


def _items(ctx: Context, value: Value, arguments: Arguments) -> Tuple | Many:
    items = ctx.semantics.items(ctx, value, arguments.node)
    return items if isinstance(items, (Tuple, Many)) else Many(TOP)


def _item(items: Tuple | Many) -> Value:
    return (join_all(items.items) or TOP) if isinstance(items, Tuple) else items.item


def _first(arguments: Arguments) -> Value:
    return arguments.args[0] if arguments.args else TOP


@model("builtins.len")
def _len(ctx: Context, arguments: Arguments) -> Value:
    value = _first(arguments)
    content = ctx.store.read(value.address, CONTENT) if isinstance(value, Ref) else value
    if isinstance(content, Tuple):
        return Const(len(content.items))
    if isinstance(content, Const) and isinstance(content.value, str):
        return Const(len(content.value))
    if isinstance(content, Mapping) and content.rest is None:
        from dtlint.infer.domain.values import may_be_absent

        if not any(may_be_absent(one) for _, one in content.items):
            return Const(len(content.items))
    return _SIZE


@model("builtins.range")
def _range(ctx: Context, arguments: Arguments) -> Value:
    bounds = [value.value for value in arguments.args if isinstance(value, Const) and type(value.value) is int]
    if len(bounds) == len(arguments.args) > 0 and (len(bounds) < 3 or bounds[2]):
        numbers = range(*bounds)
        if len(numbers) <= 8:
            return Tuple(tuple(map(Const, numbers)))
        low, high = min(numbers[0], numbers[-1]), max(numbers[0], numbers[-1])
        return Many(Number(Category.INTEGER, Range(low, high, low <= 0 <= high, False, False)))
    return Many(Number(Category.INTEGER))


@model("builtins.enumerate")
def _enumerate(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, _first(arguments), arguments)
    start = arguments.get(1, "start")
    if isinstance(items, Tuple) and (start is None or (isinstance(start, Const) and type(start.value) is int)):
        first = start.value if isinstance(start, Const) else 0
        return Tuple(tuple(Tuple((Const(first + place), item)) for place, item in enumerate(items.items)))
    return Many(Tuple((_SIZE, _item(items))))


@model("builtins.zip", "itertools.zip_longest")
def _zip(ctx: Context, arguments: Arguments) -> Value:
    given = [_items(ctx, value, arguments) for value in arguments.args]
    if not arguments.complete or not given:
        return Many(Many(TOP) if not given else TOP)
    if all(isinstance(one, Tuple) for one in given):
        shortest = min(len(one.items) for one in given if isinstance(one, Tuple))
        rows = (tuple(one.items[place] for one in given if isinstance(one, Tuple)) for place in range(shortest))
        return Tuple(tuple(map(Tuple, rows)))
    return Many(Tuple(tuple(map(_item, given))))


@model("builtins.map")
def _map(ctx: Context, arguments: Arguments) -> Value:
    function, given = _first(arguments), [_items(ctx, value, arguments) for value in arguments.args[1:]]
    if not given:
        return Many(TOP)

    def apply(values: list[Value]) -> Value:
        return ctx.semantics.call(ctx, function, Arguments(values, {}, True, arguments.node))

    if all(isinstance(one, Tuple) and len(one.items) <= _MOST_LISTED for one in given):
        rows = zip(*(one.items for one in given if isinstance(one, Tuple)), strict=False)
        return Tuple(tuple(apply(list(row)) for row in rows))
    return Many(apply([_item(one) for one in given]))


@model("builtins.filter")
def _filter(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, arguments.args[1] if len(arguments.args) > 1 else TOP, arguments)
    function = _first(arguments)
    if isinstance(items, Tuple) and isinstance(function, Function):
        kept: list[Value] = []
        for item in items.items:
            answer = ctx.semantics.call(ctx, function, Arguments([item], {}, True, arguments.node))
            known = ctx.semantics.truth(ctx, answer)
            if known is None:
                return Many(_item(items))
            if known:
                kept.append(item)
        return Tuple(tuple(kept))
    return Many(_item(items))


def _sequence(name: str, kind: str | None, keeps_order: bool) -> None:
    @model(f"builtins.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        items = _items(ctx, arguments.args[0], arguments) if arguments.args else Tuple(())
        if isinstance(items, Tuple) and not keeps_order and len(items.items) > 1:
            items = Tuple(items.items[::-1]) if name == "reversed" else _sorted(name, items, arguments)
        if name == "tuple" and isinstance(items, Tuple):
            items = Tuple(items.items)
        return items if kind is None else ctx.allocate(arguments.node, kind, items)


def _sorted(name: str, items: Tuple, arguments: Arguments) -> Tuple | Many:
    """Constants of one type in order; the order of others is not known."""
    known = [one.value for one in items.items if isinstance(one, Const) and isinstance(one.value, (str, int, float))]
    plain = name == "sorted" and not arguments.keywords and len(known) == len(items.items)
    if plain and len({isinstance(one, str) for one in known}) == 1:
        return Tuple(tuple(map(Const, sorted(known))))
    return Many(_item(items))


for _name, _kind, _keeps in (
    ("list", "builtins.list", True),
    ("sorted", "builtins.list", False),
    ("set", "builtins.set", False),
    ("frozenset", "builtins.set", False),
    ("reversed", None, False),
    ("tuple", None, True),
    ("iter", None, True),
):
    _sequence(_name, _kind, _keeps)


def _mapping(kind: str) -> None:
    @model(kind)
    def make(ctx: Context, arguments: Arguments) -> Value:
        from dtlint.infer.models.mappings import merged, of_mapping_or_pairs

        content = Mapping()
        if arguments.args:
            content = of_mapping_or_pairs(ctx, arguments.args[0], arguments.node)
        named = Mapping(tuple((Const(name), value) for name, value in arguments.keywords.items()))
        if not arguments.complete:
            named = Mapping(named.items, TOP)
        return ctx.allocate(arguments.node, kind, merged(content, named))


for _name in ("builtins.dict", "collections.OrderedDict", "collections.Counter"):
    _mapping(_name)


@model("collections.defaultdict")
def _defaultdict(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, "collections.defaultdict", Mapping())
    if arguments.args:
        ctx.store.write(made.address, "default_factory", arguments.args[0])
    return made


def _conversion(name: str, category: Category, python: type) -> None:
    @model(f"builtins.{name}")
    def convert(ctx: Context, arguments: Arguments) -> Value:
        if not arguments.args:
            return Const(python())
        value = plain_tensors.plain(ctx, arguments.args[0])
        if isinstance(value, Const) and isinstance(value.value, (int, float, str, bool)):
            try:
                return Const(python(value.value))
            except (ValueError, OverflowError):
                return Number(category)
        if name == "bool":
            known = ctx.semantics.truth(ctx, value)
            return Number(category) if known is None else Const(known)
        number = number_of(value)
        if number is not None:
            return Number(category, number.range)
        return Number(category, value.range) if isinstance(value, Tensor) else Number(category)


for _name, _category, _python in (
    ("int", Category.INTEGER, int),
    ("float", Category.FLOAT, float),
    ("bool", Category.BOOL, bool),
    ("complex", Category.COMPLEX, complex),
):
    _conversion(_name, _category, _python)


@model("builtins.str")
def _str(ctx: Context, arguments: Arguments) -> Value:
    value = _first(arguments)
    if isinstance(value, Const) and isinstance(value.value, (str, int)):
        return Const(str(value.value))
    if isinstance(value, ProjectClass) and value.definition.node in value.definition.module.tree.body:
        return Const(f"<class '{value.name}'>")
    return NO_TENSOR


@model("builtins.repr", "builtins.format", "builtins.input", "builtins.chr", "builtins.bytes", "builtins.hex")
def _text(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("builtins.print", "builtins.open", "builtins.id", "builtins.hash", "builtins.breakpoint", "warnings.warn")
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("builtins.exit", "builtins.quit", "sys.exit", "os._exit")
def _exit(ctx: Context, arguments: Arguments) -> Value:
    raise NeverReturns


@model("builtins.isinstance")
def _isinstance(ctx: Context, arguments: Arguments) -> Value:
    from dtlint.infer.models.instances import is_instance

    if len(arguments.args) < 2:
        return _TRUTH
    classes = arguments.args[1]
    listed = classes.items if isinstance(classes, Tuple) else choices(classes)
    value = arguments.args[0]
    answers = {_any_of([is_instance(ctx, one, cls) for cls in listed]) for one in choices(value)}
    known = answers.pop() if len(answers) == 1 else None
    return _TRUTH if known is None else Const(known)


def _any_of(answers: list[bool | None]) -> bool | None:
    return True if True in answers else None if None in answers else False


@model("builtins.issubclass")
def _issubclass(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) > 1 and isinstance(arguments.args[0], ProjectClass):
        cls, other = arguments.args[0], arguments.args[1]
        if isinstance(other, ProjectClass) and other in cls.definition.order:
            return Const(True)
        if isinstance(other, External):
            known = cls.definition.inherits(other.name)
            return _TRUTH if known is None else Const(known)
    return _TRUTH


@model("builtins.callable")
def _callable(ctx: Context, arguments: Arguments) -> Value:
    answers = {_is_callable(one) for one in choices(_first(arguments))}
    known = answers.pop() if len(answers) == 1 else None
    return _TRUTH if known is None else Const(known)


def _is_callable(value: Value) -> bool | None:
    if isinstance(value, (Function, ProjectClass, External)):
        return True
    if isinstance(value, Ref) and value.address.kind in _CONTAINERS:
        return False
    if isinstance(value, Tuple):
        return False if value.kind is None else None
    return False if isinstance(value, (Const, Number, Tensor, Mapping)) else None


_CONTAINERS = frozenset({"builtins.list", "builtins.dict", "builtins.set"})


@model("builtins.hasattr")
def _hasattr(ctx: Context, arguments: Arguments) -> Value:
    name = arguments.args[1] if len(arguments.args) > 1 else TOP
    value = _first(arguments)
    if not isinstance(name, Const) or isinstance(value, Unknown):
        return _TRUTH
    if isinstance(value, ProjectClass):
        found = ctx.semantics.attribute(ctx, value, name.value, arguments.node)
        return Const(False) if found is None else _TRUTH if found == TOP else Const(True)
    if (
        isinstance(value, Const) and isinstance(name.value, str) and not isinstance(value.value, tuple)
    ):  # a slice is one
        return Const(hasattr(value.value, name.value))
    if isinstance(value, Tuple) and not value.names and value.kind is None:
        return Const(hasattr(tuple, name.value))
    if isinstance(value, (Tensor, External)) or len(choices(value)) > 1 or not isinstance(value, Ref):
        return _TRUTH
    if value.address.kind in _CONTAINERS:
        return Const(hasattr(getattr(builtins, value.address.kind.rpartition(".")[2]), name.value))
    from dtlint.infer.domain.values import may_be_absent

    if isinstance(value.address.kind, str):
        return Const(True) if not may_be_absent(ctx.store.objects.get(value.address, {}).get(name.value)) else _TRUTH
    cell = ctx.store.objects.get(value.address, {}).get(name.value)
    ctx.store.read(value.address, name.value)
    if cell is not None and may_be_absent(cell) and not isinstance(cell, type(None)) and isinstance(cell, Union):
        return _TRUTH
    try:
        found = ctx.semantics.attribute(ctx, value, name.value, arguments.node)
    except NeverReturns:
        return Const(False)
    if found is None:
        return Const(False)
    return _TRUTH if found == TOP else Const(True)


@model("builtins.getattr")
def _getattr(ctx: Context, arguments: Arguments) -> Value:
    name = arguments.args[1] if len(arguments.args) > 1 else TOP
    if not isinstance(name, Const) or not isinstance(name.value, str):
        names = [one for one in choices(name) if isinstance(one, Const) and isinstance(one.value, str)]
        if len(names) != len(choices(name)):
            return TOP
        # of several names those are not asked for that would raise, if another does not
        found = (_attribute(ctx, arguments, one) for one in names)
        return join_all(one for one in found if one is not None) or TOP
    return _attribute(ctx, arguments, name) or TOP


def _attribute(ctx: Context, arguments: Arguments, name: Const) -> Value | None:
    """What `getattr` gives for a name, None where there is no such attribute and no default."""
    value = _first(arguments)
    try:
        known = ctx.semantics.attribute(ctx, value, name.value, arguments.node)
    except NeverReturns:
        known = None
    if len(arguments.args) < 3:
        return known
    if known is None:
        return arguments.args[2]
    certain = isinstance(value, (Ref, ProjectClass)) and known != TOP
    return known if certain else join(known, arguments.args[2])


@model("builtins.setattr")
def _setattr(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) < 3:
        return NONE
    owner, name, value = arguments.args[:3]
    if isinstance(name, Const) and isinstance(name.value, str):
        ctx.semantics.assign_attribute(ctx, owner, name.value, value, arguments.node)
        return NONE
    for one in choices(owner):
        if isinstance(one, Ref):
            _bind_any(ctx, one, value)
    return NONE


def _bind_any(ctx: Context, owner: Ref, value: Value) -> None:
    """Any attribute of an object may have been bound."""
    for field in ctx.store.fields(owner.address):
        if isinstance(field, str) and not field.startswith("*"):
            ctx.store.blend(owner.address, field, value)
    ctx.store.overwrite(owner.address, "*anything", Const(True))


@model("builtins.next")
def _next(ctx: Context, arguments: Arguments) -> Value:
    value = _first(arguments)
    if isinstance(value, Ref) and not isinstance(value.address.kind, str):
        method = ctx.semantics.attribute(ctx, value, "__next__", arguments.node)
        if isinstance(method, Function):
            return ctx.semantics.call(ctx, method, Arguments([], {}, True, arguments.node))
    items = _items(ctx, value, arguments)
    item = _item(items)
    if len(arguments.args) > 1:
        return join(item, arguments.args[1])
    return item


@model("builtins.abs")
def _abs(ctx: Context, arguments: Arguments) -> Value:
    value = plain_tensors.plain(ctx, _first(arguments))
    if isinstance(value, Tensor):
        return ctx.semantics.call(ctx, External("torch.abs"), Arguments([value], {}, True, arguments.node))
    number = number_of(value)
    return TOP if number is None else Number(number.category, number.range.absolute())


@model("builtins.round")
def _round(ctx: Context, arguments: Arguments) -> Value:
    value = plain_tensors.plain(ctx, _first(arguments))
    number = number_of(value)
    if number is not None:
        return Number(Category.INTEGER if len(arguments.args) == 1 else number.category)
    return value if isinstance(value, Tensor) else TOP


@model("builtins.pow")
def _pow(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) == 2:
        return ctx.semantics.binary(ctx, ast.Pow, arguments.args[0], arguments.args[1], arguments.node)
    return TOP


@model("builtins.divmod")
def _divmod(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) != 2:
        return TOP
    left, right = arguments.args
    return Tuple(
        (
            ctx.semantics.binary(ctx, ast.FloorDiv, left, right, arguments.node),
            ctx.semantics.binary(ctx, ast.Mod, left, right, arguments.node),
        )
    )


@model("builtins.sum", "math.fsum")
def _sum(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, _first(arguments), arguments)
    result: Value = arguments.get(1, "start") or Const(0)
    if isinstance(items, Tuple) and len(items.items) <= _MOST_LISTED:
        for item in items.items:
            result = ctx.semantics.binary(ctx, ast.Add, result, item, arguments.node)
        return result
    item = _item(items)
    for _ in range(2):
        result = ctx.semantics.binary(ctx, ast.Add, result, item, arguments.node)
    return result if isinstance(plain_tensors.plain(ctx, item), Tensor) else join(result, Const(0))


@model("builtins.min", "builtins.max")
def _extreme(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) == 1:
        items = _items(ctx, arguments.args[0], arguments)
        held = items.items if isinstance(items, Tuple) else (items.item,)
    else:
        held = tuple(arguments.args)
    values = [plain_tensors.plain(ctx, value) for value in held]
    numbers = [number_of(value) for value in values]
    if values and all(number is not None for number in numbers):
        joined: Value | None = None
        for value in values:
            joined = value if joined is None else join(joined, value)
        return joined or TOP
    return join_all([*values, *([arguments.keywords["default"]] if "default" in arguments.keywords else [])]) or TOP


@model("builtins.any")
def _any(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, _first(arguments), arguments)
    if isinstance(items, Tuple):
        answers = [ctx.semantics.truth(ctx, item) for item in items.items]
        if True in answers:
            return Const(True)
        return _TRUTH if None in answers else Const(False)
    return _TRUTH


@model("builtins.all")
def _all(ctx: Context, arguments: Arguments) -> Value:
    items = _items(ctx, _first(arguments), arguments)
    if isinstance(items, Tuple):
        answers = [ctx.semantics.truth(ctx, item) for item in items.items]
        if False in answers:
            return Const(False)
        return _TRUTH if None in answers else Const(True)
    return _TRUTH


@model("builtins.type")
def _type(ctx: Context, arguments: Arguments) -> Value:
    value = _first(arguments)
    if len(arguments.args) != 1:
        return TOP
    if isinstance(value, Tuple) and value.kind is not None:
        return value.kind
    if isinstance(value, Ref):
        kind = value.address.kind
        return kind if isinstance(kind, ProjectClass) else External(str(kind))
    if isinstance(value, Unknown):
        return TOP
    name = kinds.class_of(value)
    return TOP if name is None else External(name)


@model("builtins.type.__call__")
def _type_call(ctx: Context, arguments: Arguments) -> Value:
    """What a metaclass leaves to `type`: a new object."""
    cls = _first(arguments)
    if isinstance(cls, ProjectClass):
        return ctx.semantics.construct(ctx, cls, arguments.without_first())
    return ctx.semantics.call(ctx, cls, arguments.without_first())


@model("builtins.type.__init__")
def _type_init(ctx: Context, arguments: Arguments) -> Value:
    return NONE


@model("builtins.super")
def _super(ctx: Context, arguments: Arguments) -> Value:
    from dtlint.infer.domain.values import SuperOf

    if len(arguments.args) == 2 and isinstance(arguments.args[0], ProjectClass):
        return SuperOf(arguments.args[0], arguments.args[1])
    return TOP


@model(
    "builtins.object", "builtins.object.__init__", "builtins.object.__init_subclass__", "builtins.object.__post_init__"
)
def _object(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("builtins.object.__setattr__")
def _object_setattr(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0] if arguments.args else TOP
    if len(arguments.args) == 3 and isinstance(owner, Ref):
        name = arguments.args[1]
        if isinstance(name, Const) and isinstance(name.value, str):
            ctx.semantics.assign_own_attribute(ctx, owner, name.value, arguments.args[2], arguments.node)
        else:
            _bind_any(ctx, owner, arguments.args[2])
    return NONE


@model("builtins.object.__getattribute__")
def _object_getattribute(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) != 2:
        return TOP
    owner, name = arguments.args
    if not isinstance(owner, Ref) or not isinstance(name, Const) or not isinstance(name.value, str):
        return TOP
    found = ctx.semantics.own_attribute(ctx, owner, name.value, arguments.node)
    if found is None:
        raise Unfit
    return found


@model("builtins.object.__new__")
def _object_new(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[1:] if len(arguments.args) > 1 else arguments.args  # behind what `super()` is bound to
    cls = given[0] if given else TOP
    if not isinstance(cls, ProjectClass):
        return TOP
    if cls.definition.inherits("typing.NamedTuple"):
        rest = Arguments(given[1:], arguments.keywords, arguments.complete, arguments.node)
        return ctx.modules.made_tuple(ctx, cls, rest)
    return ctx.allocate(arguments.node, cls)


@model("builtins.slice")
def _slice(ctx: Context, arguments: Arguments) -> Value:
    bounds = [one.value for one in arguments.args if isinstance(one, Const) and type(one.value) in (int, type(None))]
    if len(bounds) != len(arguments.args) or not 1 <= len(bounds) <= 3:
        return Const((slice, "?"))
    given = slice(*bounds)
    return Const((slice, given.start, given.stop, given.step))


@model("builtins.exec")
def _exec(ctx: Context, arguments: Arguments) -> Value:
    """Text that is run may bind any name to other data. It is taken to leave modules, functions and classes as they are, and to
    give plain settings other plain values."""
    for frame in {ctx.frame.address, ctx.modules.address_of(ctx.frame.module)}:
        ctx.store.unfreeze(frame)
        for name in ctx.store.fields(frame):
            held = ctx.store.read(frame, name)
            if isinstance(name, str) and not name.startswith(("*", "__")) and not isinstance(held, _DEFINED):
                setting = isinstance(held, Const) and held.value is not None
                ctx.store.overwrite(frame, name, NO_TENSOR if setting else TOP)
    return NONE


_DEFINED = (External, Namespace, Imported, Function, ProjectClass)


@model("builtins.globals")
def _globals(ctx: Context, arguments: Arguments) -> Value:
    address = ctx.modules.address_of(ctx.frame.module)
    ctx.store.unfreeze(address)
    return instance_dict(ctx, Ref(address))
