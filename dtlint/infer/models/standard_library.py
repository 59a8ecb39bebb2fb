"""The standard library, as far as tensors pass through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    External,
    Function,
    Many,
    Mapping,
    Number,
    Partial,
    ProjectClass,
    Ref,
    Tuple,
    Value,
)
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    import ast

    from dtlint.infer.context import Context

_FLOAT = Number(Category.FLOAT)


def _of_math(name: str) -> None:
    import math

    function = getattr(math, name)

    @model(f"math.{name}")
    def call(ctx: Context, arguments: Arguments) -> Value:
        known = [value.value for value in arguments.args if isinstance(value, Const)]
        if len(known) == len(arguments.args) and all(isinstance(one, (int, float)) for one in known):
            try:
                return Const(function(*known))
            except (ValueError, OverflowError, TypeError):
                return _FLOAT
        if name in ("floor", "ceil", "trunc", "prod", "gcd", "comb", "factorial", "isqrt"):
            return Number(Category.INTEGER) if name != "prod" else TOP
        return Number(Category.BOOL) if name.startswith("is") else _FLOAT


for _name in (
    *("sqrt", "exp", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "pow", "floor", "ceil", "isnan", "isinf"),
    *(
        "isfinite",
        "prod",
        "tanh",
        "atan2",
        "gcd",
        "trunc",
        "fabs",
        "degrees",
        "radians",
        "acos",
        "asin",
        "atan",
        "comb",
    ),
    *("factorial", "isqrt", "hypot", "copysign", "erf", "expm1", "isclose"),
):
    _of_math(_name)


@model("functools.partial")
def _partial(ctx: Context, arguments: Arguments) -> Value:
    if not arguments.args or not arguments.complete:
        return TOP
    return Partial(arguments.args[0], tuple(arguments.args[1:]), tuple(arguments.keywords.items()))


@model("functools.update_wrapper")
def _updated(ctx: Context, arguments: Arguments) -> Value:
    return arguments.get(0, "wrapper") or TOP


@model("builtins.classmethod")
def _classmethod(ctx: Context, arguments: Arguments) -> Value:
    function = arguments.args[0] if arguments.args else TOP
    if isinstance(function, Function) and "classmethod" in function.definition.decorators:
        return Function(function.definition, function.frame)
    return Partial(External("builtins.classmethod"), (function,))


@model("builtins.property.__init__")
def _initialise_property(ctx: Context, arguments: Arguments) -> Value:
    if isinstance(arguments.args[0], Ref):
        for place, name in enumerate(("fget", "fset", "fdel", "doc"), start=1):
            ctx.store.write(arguments.args[0].address, name, arguments.get(place, name) or NONE)
    return NONE


@model("importlib.import_module")
def _import_module(ctx: Context, arguments: Arguments) -> Value:
    name, package = arguments.get(0, "name"), arguments.get(1, "package")
    if not isinstance(name, Const) or not isinstance(name.value, str):
        return TOP
    if not name.value.startswith("."):
        return ctx.modules.named(ctx, name.value)
    if not isinstance(package, Const) or not isinstance(package.value, str):
        return TOP
    above = len(name.value) - len(name.value.lstrip(".")) - 1
    parts = package.value.split(".")
    return ctx.modules.named(ctx, ".".join([*parts[: len(parts) - above], name.value.lstrip(".")]))


@model("functools.wraps")
def _wraps(ctx: Context, arguments: Arguments) -> Value:
    return External("functools.wraps.decorator")


@model("functools.wraps.decorator", "functools.lru_cache", "functools.cache")
def _same(ctx: Context, arguments: Arguments) -> Value:
    return (
        arguments.args[0]
        if arguments.args and not isinstance(arguments.args[0], Const)
        else External("functools.wraps.decorator")
    )


@model("functools.reduce")
def _reduce(ctx: Context, arguments: Arguments) -> Value:
    if len(arguments.args) < 2:
        return TOP
    items = ctx.semantics.items(ctx, arguments.args[1], arguments.node)
    function = arguments.args[0]
    given: list[Value] = (
        list(items.items)
        if isinstance(items, Tuple)
        else [items.item, items.item]
        if isinstance(items, Many)
        else [TOP]
    )
    if len(arguments.args) > 2:
        given.insert(0, arguments.args[2])
    if not given:
        return TOP
    result = given[0]
    for item in given[1:]:
        made = ctx.semantics.call(ctx, function, Arguments([result, item], {}, True, arguments.node))
        result = made if isinstance(items, Tuple) else join(result, made)
    return result


@model("dataclasses.field")
def _field(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("dataclasses.field"), (), tuple(arguments.keywords.items()))


@model("dataclasses.dataclass")
def _dataclass(ctx: Context, arguments: Arguments) -> Value:
    """As a function of a class: its fields make it from now on."""
    if not arguments.args:
        return Partial(External("dataclasses.dataclass"), (), tuple(arguments.keywords.items()))
    cls = arguments.args[0]
    if isinstance(cls, ProjectClass):
        cls.definition.made = True
        if arguments.keywords.get("kw_only") == Const(True):
            cls.definition.by_keyword = True
    return cls


@model("dataclasses.fields")
def _fields(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else TOP
    cls = value.address.kind if isinstance(value, Ref) else value
    if not isinstance(cls, ProjectClass):
        return Many(TOP)
    found: list[Value] = []
    for field, _ in cls.definition.all_fields:
        name, node = field.name, field.default
        default = None if node is None else ctx.modules.class_attribute(ctx, cls.definition.order, name)
        made: dict[str, Value] = {"default": TOP if default is None and node is not None else default or _MISSING}
        if isinstance(default, Partial) and default.callee == External("dataclasses.field"):
            made = {"default": _MISSING, **dict(default.keywords)}
        made = {"name": Const(name), "default_factory": _MISSING, "metadata": Mapping(), "type": TOP} | made
        found.append(Tuple(tuple(made.values()), tuple(made)))
    return Tuple(tuple(found))


_MISSING = External("dataclasses.MISSING")


@model("dataclasses.is_dataclass")
def _is_dataclass(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else TOP
    cls = value.address.kind if isinstance(value, Ref) else value
    if not isinstance(cls, ProjectClass) or cls.definition.opaque:
        return Number(Category.BOOL)
    order = [one.definition for one in cls.definition.order if isinstance(one, ProjectClass)]
    return Const(True) if any(one.made or one.transformed for one in order) else Number(Category.BOOL)


def _field_names(ctx: Context, value: Value) -> list[str] | None:
    """The fields of an object that fields make."""
    cls = value.address.kind if isinstance(value, Ref) else value
    return ctx.modules.match_args(ctx, cls) or None if isinstance(cls, ProjectClass) else None


@model("dataclasses.replace", "copy.replace")
def _replace(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else TOP
    names = _field_names(ctx, value)
    if names is None or not isinstance(value, Ref):
        return TOP
    given = dict(arguments.keywords)
    for name in names:
        options = ctx.modules.class_attribute(ctx, value.address.kind.definition.order, name)
        made = isinstance(options, Partial) and dict(options.keywords).get("init") == Const(False)
        known = ctx.store.read(value.address, name)
        if known is not None and not made:
            given.setdefault(name, known)
    again = Arguments([], given, arguments.complete, arguments.node)
    return ctx.semantics.call(ctx, value.address.kind, again)


@model("dataclasses.asdict")
def _asdict(ctx: Context, arguments: Arguments) -> Value:
    """The fields in a dict, and theirs in theirs: what is in them is copied."""
    value = arguments.args[0] if arguments.args else TOP
    return _as_dict(ctx, value, arguments.node, 0)


def _as_dict(ctx: Context, value: Value, node: ast.AST, depth: int) -> Value:
    names = _field_names(ctx, value)
    if names is None or not isinstance(value, Ref) or depth > _DEEPEST:
        return (
            _copied(ctx, value, (node, "copy"), {}) if depth else ctx.allocate(node, "builtins.dict", Mapping((), TOP))
        )
    items = []
    for name in names:
        known = ctx.store.read(value.address, name)
        items.append((Const(name), TOP if known is None else _as_dict(ctx, known, node, depth + 1)))
    made = ctx.store.address(ctx.frame.path, (node, value.address), "builtins.dict")
    return Ref(ctx.store.allocate(made, Mapping(tuple(items))))


_DEEPEST = 4


@model("copy.deepcopy")
def _deepcopy(ctx: Context, arguments: Arguments) -> Value:
    """A copy of an object and of all that it holds: its weights are others."""
    return _copied(ctx, arguments.args[0] if arguments.args else TOP, arguments.node, {})


def _copied(ctx: Context, value: Value, site: object, done: dict[Value, Value]) -> Value:
    from dtlint.infer.domain.values import Union

    if isinstance(value, Ref):
        if value in done:
            return done[value]
        made = ctx.allocate((site, value.address), value.address.kind)
        done[value] = made
        for field in ctx.store.fields(value.address):
            known = ctx.store.read(value.address, field)
            if known is not None:
                ctx.store.write(made.address, field, _copied(ctx, known, site, done))
        return made
    if isinstance(value, Tuple):
        return Tuple(tuple(_copied(ctx, item, site, done) for item in value.items), value.names, value.kind)
    if isinstance(value, Many):
        return Many(_copied(ctx, value.item, site, done))
    if isinstance(value, Mapping):
        items = tuple((key, _copied(ctx, item, site, done)) for key, item in value.items)
        return Mapping(items, None if value.rest is None else _copied(ctx, value.rest, site, done))
    if isinstance(value, Union):
        return join_all(_copied(ctx, one, site, done) for one in value.choices) or TOP
    return value


@model("itertools.chain")
def _chain(ctx: Context, arguments: Arguments) -> Value:
    given = [ctx.semantics.items(ctx, value, arguments.node) for value in arguments.args]
    if given and all(isinstance(one, Tuple) for one in given):
        return Tuple(tuple(item for one in given if isinstance(one, Tuple) for item in one.items))
    found = [
        join_all(one.items) if isinstance(one, Tuple) else one.item for one in given if isinstance(one, (Tuple, Many))
    ]
    return Many(join_all(one for one in found if one is not None) or TOP)


@model("itertools.product", "itertools.combinations", "itertools.permutations")
def _product(ctx: Context, arguments: Arguments) -> Value:
    return Many(TOP)


@model(
    "itertools.islice",
    "itertools.cycle",
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.std.tqdm",
    "tqdm.trange",
)
def _passed(ctx: Context, arguments: Arguments) -> Value:
    if not arguments.args:
        return Many(TOP)
    items = ctx.semantics.items(ctx, arguments.args[0], arguments.node)
    return Many(join_all(items.items) or TOP) if isinstance(items, Tuple) else items


_MOST_REPEATED = 32
"""Times that something is repeated, which is listed."""


@model("itertools.repeat")
def _repeat(ctx: Context, arguments: Arguments) -> Value:
    times = arguments.get(1, "times")
    given = arguments.get(0, "object") or TOP
    if isinstance(times, Const) and isinstance(times.value, int) and times.value <= _MOST_REPEATED:
        return Tuple((given,) * times.value)
    return Many(given)


@model("random.random", "random.uniform", "random.gauss")
def _drawn(ctx: Context, arguments: Arguments) -> Value:
    given = (*arguments.args, *arguments.keywords.values())
    return Number(Category.FLOAT) if all(isinstance(one, (Const, Number)) for one in given) else TOP


@model("random.randint", "random.randrange")
def _drawn_whole(ctx: Context, arguments: Arguments) -> Value:
    return Number(Category.INTEGER)


@model("itertools.count")
def _counted(ctx: Context, arguments: Arguments) -> Value:
    return Many(Number(Category.INTEGER))


@model("collections.deque")
def _deque(ctx: Context, arguments: Arguments) -> Value:
    items = ctx.semantics.items(ctx, arguments.args[0], arguments.node) if arguments.args else Tuple(())
    return ctx.allocate(arguments.node, "collections.deque", items)


@model("collections.namedtuple")
def _namedtuple(ctx: Context, arguments: Arguments) -> Value:
    fields = arguments.get(1, "field_names")
    names: tuple[str, ...] | None = None
    if isinstance(fields, Const) and isinstance(fields.value, str):
        names = tuple(fields.value.replace(",", " ").split())
    elif fields is not None:
        items = ctx.semantics.items(ctx, fields, arguments.node)
        if isinstance(items, Tuple) and all(isinstance(one, Const) for one in items.items):
            names = tuple(str(one.value) for one in items.items if isinstance(one, Const))
    if names is None:
        return TOP
    name = arguments.get(0, "typename")
    last = arguments.keywords.get("defaults")
    given = Tuple(()) if last is None else ctx.semantics.items(ctx, last, arguments.node)
    defaults = given.items if isinstance(given, Tuple) else (TOP,) * len(names)
    text = name.value if isinstance(name, Const) and isinstance(name.value, str) else "tuple"
    return ctx.modules.named_tuple_class(ctx, arguments.node, text, names, defaults)


@model("typing.NamedTuple")
def _typed_namedtuple(ctx: Context, arguments: Arguments) -> Value:
    name, fields = arguments.get(0, "typename"), arguments.get(1, "fields")
    items = Many(TOP) if fields is None else ctx.semantics.items(ctx, fields, arguments.node)
    names = []
    for one in items.items if isinstance(items, Tuple) else ():
        if not isinstance(one, Tuple) or not one.items or not isinstance(one.items[0], Const):
            return TOP
        names.append(str(one.items[0].value))
    if not names or not isinstance(name, Const):
        return TOP
    return ctx.modules.named_tuple_class(ctx, arguments.node, str(name.value), names, ())


@model("typing.NamedTuple._make")
def _make_named(ctx: Context, arguments: Arguments) -> Value:
    cls = arguments.args[0]
    items = ctx.semantics.items(ctx, arguments.args[1], arguments.node) if len(arguments.args) > 1 else Many(TOP)
    given = Arguments(items.items, {}, True, arguments.node) if isinstance(items, Tuple) else None
    item = items.item if isinstance(items, Many) else TOP
    if given is None:
        names = ctx.modules.match_args(ctx, cls) or []
        given = Arguments([item] * len(names), {}, True, arguments.node)
    return ctx.modules.made_tuple(ctx, cls, given)


@model("typing.NamedTuple._replace")
def _replace_named(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0]
    if not isinstance(value, Tuple):
        return TOP
    known = dict(zip(value.names, value.items, strict=True))
    if not arguments.complete:
        known = {name: join(item, TOP) for name, item in known.items()}
    items = tuple(arguments.keywords.get(name, item) for name, item in known.items())
    return Tuple(items, value.names, value.kind)


@model("typing.NamedTuple._asdict")
def _asdict_named(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0]
    if not isinstance(value, Tuple):
        return TOP
    items = tuple((Const(name), item) for name, item in zip(value.names, value.items, strict=True))
    return ctx.allocate(arguments.node, "builtins.dict", Mapping(items))


@model("types.SimpleNamespace", "argparse.Namespace")
def _namespace(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, "types.SimpleNamespace")
    for name, value in arguments.keywords.items():
        ctx.store.write(made.address, name, value)
    return made


@model(
    *(f"logging.{name}" for name in ("getLogger", "info", "debug", "warning", "error", "basicConfig", "exception")),
    *(f"os.{name}" for name in ("getenv", "listdir", "makedirs", "getcwd", "environ.get", "cpu_count")),
    *(f"os.path.{name}" for name in ("join", "exists", "dirname", "basename", "abspath", "isfile", "isdir")),
    *(f"time.{name}" for name in ("time", "perf_counter", "sleep", "monotonic", "strftime")),
    *("random.seed", "json.dumps", "json.dump", "uuid.uuid4", "gc.collect"),
    *("pathlib.Path", "sys.getsizeof", "textwrap.dedent"),
)
def _no_tensor(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR


@model("random.choice", "random.sample", "random.choices")
def _choice(ctx: Context, arguments: Arguments) -> Value:
    items = ctx.semantics.items(ctx, arguments.args[0] if arguments.args else TOP, arguments.node)
    item = join_all(items.items) if isinstance(items, Tuple) else items.item if isinstance(items, Many) else TOP
    return item or TOP


@model("typing.cast")
def _cast(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[1] if len(arguments.args) > 1 else TOP


@model("importlib.util.find_spec")
def _find_spec(ctx: Context, arguments: Arguments) -> Value:
    name = arguments.get(0, "name")
    if len(arguments.args) + len(arguments.keywords) != 1 or not isinstance(name, Const):
        return NO_TENSOR
    known = ctx.modules.is_installed(str(name.value))
    return NO_TENSOR if known is None else External("importlib.machinery.ModuleSpec") if known else NONE


@model("contextlib.suppress")
def _suppress(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("contextlib.suppress"))


@model("contextlib.redirect_stdout", "contextlib.closing", "warnings.catch_warnings")
def _context(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR
