"""Named tuples, and objects that are nothing but their attributes."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.program.binding import Perhaps
from dtlint.infer.program.fields import fields_in, made_elsewhere
from dtlint.infer.program.iterables import Iterables
from dtlint.infer.scopes import ClassInfo
from dtlint.infer.values import UNKNOWN, Constant, External, Function, Items, Record, Table, Value

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments

__all__ = ["RecordClass", "Records"]

_MAKING = frozenset({"collections.namedtuple", "typing.NamedTuple"})
_BASE = External("typing.NamedTuple")
_PLAIN = frozenset({"types.SimpleNamespace", "argparse.Namespace"})


@dataclass(slots=True)
class RecordClass(Value):
    """What `namedtuple("Point", "x y")` makes: a class of named tuples."""

    names: tuple[str, ...]
    defaults: dict[str, Value] = field(default_factory=dict)


class Records(Iterables):
    """An interpreter that knows what is under the names of a named tuple, and of a plain object."""

    def of_records(self, name: str, arguments: Arguments) -> Value | None:
        """What makes classes of named tuples, and plain objects; None for other functions."""
        if name in _MAKING:
            return _class_told(name, arguments)
        if name in _PLAIN and not arguments.args:
            return self.plain_object(arguments)
        return None

    def plain_object(self, arguments: Arguments) -> Value:
        """`SimpleNamespace(a=x)`: an object whose attributes are what it is given, until others are assigned."""
        given = arguments.keywords
        if not arguments.complete:
            return UNKNOWN
        made = self.construct(_PLAIN_CLASS, arguments.without())
        for name, value in given.items():
            self.set_attribute(made, Constant(name), value.value if isinstance(value, Perhaps) else value)
        return made

    def construct(self, info: ClassInfo, arguments: Arguments) -> Value:
        named = record_class(info)
        return super().construct(info, arguments) if named is None else self.record(named, arguments, info)

    def record(self, made_by: RecordClass, arguments: Arguments, info: ClassInfo | None = None) -> Value:
        """`Point(x, y=z)`."""
        if not arguments.complete or len(arguments.args) > len(made_by.names):
            return UNKNOWN
        items: list[Value] = []
        for place, name in enumerate(made_by.names):
            value = arguments.get(place, name)
            default = made_by.defaults.get(name, UNKNOWN)
            if isinstance(value, Perhaps):
                value = UNKNOWN
            items.append(default if value is None else value)
        return Record(tuple(items), made_by.names, info)

    def record_call(self, record: Record, method: str, arguments: Arguments) -> Value | None:
        """`point._replace(x=y)`, `point._asdict()`; None for other methods."""
        if method == "_asdict":
            held: dict[object, Value] = dict(zip(record.names, record.items, strict=True))
            return Table(held)
        if method != "_replace" or not arguments.complete:
            return None
        given = arguments.keywords
        pairs = zip(record.names, record.items, strict=True)
        return record.holding(
            UNKNOWN if isinstance(given.get(name), Perhaps) else given.get(name, item) for name, item in pairs
        )

    def member(self, base: Value, name: str) -> Value:
        if isinstance(base, RecordClass) and name == "_fields":
            return Items(tuple(map(Constant, base.names)))
        if not isinstance(base, Record):
            return super().member(base, name)
        if name in base.names:
            return self.resolved(base.items[base.names.index(name)])
        if name == "_fields":
            return Items(tuple(map(Constant, base.names)))
        method = None if base.info is None else base.info.method(name)
        if method is None:
            return UNKNOWN
        if "property" in method.decorated:
            return self.apply(method, base, [], {}, True)
        return Function(method, base) if method.is_plain_method else UNKNOWN


def record_class(info: ClassInfo) -> RecordClass | None:
    """The named tuples that a class of the project makes; None where it makes none."""
    for parent in info.lineage:
        for base in parent.bases:
            known = base if isinstance(base, RecordClass) else None
            if base == _BASE:
                names = fields_in(parent)
                known = RecordClass(tuple(names), {name: parent.body[name] for name in names if name in parent.body})
            if known is not None:
                return None if made_elsewhere(info) else known
    return None


def _class_told(name: str, arguments: Arguments) -> Value | None:
    """`namedtuple("Point", "x y", defaults=(0,))`, `NamedTuple("Point", [("x", Tensor)])`."""
    told, defaults = arguments.get(1, "field_names"), arguments.keywords.get("defaults", Items(()))
    if not arguments.complete or told is None or arguments.keywords.keys() - {"field_names", "defaults", "typename"}:
        return None
    if isinstance(told, Constant) and isinstance(told.value, str):
        names: list[object] = list(told.value.replace(",", " ").split())
    elif isinstance(told, Items):
        firsts = [one.items[0] if isinstance(one, Items) and one.items else one for one in told.items]
        names = [one.value if isinstance(one, Constant) else None for one in firsts]
    else:
        return None
    if not isinstance(defaults, Items) or not all(isinstance(one, str) for one in names):
        return None
    given = defaults.items[::-1]
    return RecordClass(tuple(map(str, names)), dict(zip(map(str, reversed(names)), given, strict=False)))


_PLAIN_NODE = ast.parse("class SimpleNamespace: pass").body[0]
assert isinstance(_PLAIN_NODE, ast.ClassDef)
_PLAIN_CLASS = ClassInfo(_PLAIN_NODE, [])
