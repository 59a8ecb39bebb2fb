"""Lists, dicts and truths: what a program keeps in containers, and tests whose outcome is known."""

from __future__ import annotations

import ast
from collections.abc import Collection, Hashable, Sequence

from dtlint.infer.calling import CHANGING
from dtlint.infer.expressions import item_of
from dtlint.infer.names import path_of
from dtlint.infer.program.binding import Perhaps
from dtlint.infer.program.changing import Changing
from dtlint.infer.program.held import CONTAINERS
from dtlint.infer.program.instances import ITEMS, is_open_book
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Constant,
    Distinct,
    Dtype,
    Either,
    External,
    Instance,
    Items,
    Iteration,
    Module,
    Number,
    Table,
    Tensor,
    Unknown,
    Value,
    join,
    options,
    taken_from,
)

__all__ = ["GLOBALS", "Containers", "one_of"]


class Containers(Changing):
    """An interpreter that knows dicts by their keys and lists by their places, as long as nobody else changes them."""

    def given(self, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
        args: list[Value] = []
        complete = True
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                many = self.value(arg.value)
                if isinstance(many, Iteration) and complete and self.takes_many(node):
                    args.append(many)
                    continue
                if isinstance(many, Items) and complete and len(args) + len(many.items) <= _MOST_ARGUMENTS:
                    args += many.items
                else:
                    complete = False
                    self.lose(many)
            elif complete:
                args.append(self.value(arg))
            else:
                self.lose(self.value(arg))
        keywords: dict[str, Value] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif (table := _mapping(value)) is not None:
                for key, item in table.items.items():
                    keywords[str(key)] = Perhaps(item) if key in table.perhaps else item
            else:
                complete = False
                self.lose(value)
        return args, keywords, complete

    def takes_many(self, node: ast.Call) -> bool:
        """Is it `Sequential(*layers)` or `zip(*rows)`, which are told of many layers or rows by one that is like them?"""
        called = self.quietly(node.func)
        return called == _SEQUENTIAL or (called == _ZIP and len(node.args) == 1)

    def call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_DICTS and not node.keywords:
            table = self.quietly(node.func.value)
            if isinstance(table, Table):
                return self.table_call(table, node, node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault" and not node.keywords:
            table = self.quietly(node.func.value)
            if isinstance(table, Table) and len(node.args) == 2:
                default = self.quietly(node.args[1])
                if not any(isinstance(choice, CONTAINERS) for choice in options(default)):  # that may be filled later
                    return self.stored_default(table, node, node.func.value)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and path_of(node.func) == "sys.modules.get":
            self.values(node.args)
            return External("sys.modules[]")
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING and len(node.args) in (1, 2):
            held = self.quietly(node.func.value)
            if isinstance(held, (Items, Iteration)) and not node.keywords:
                return self.added(held, node, node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("pop", "popleft") and len(node.args) < 2:
            held = self.quietly(node.func.value)
            if isinstance(held, (Items, Iteration)) and not node.keywords:
                return self.taken(held, node, node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _REORDERING and not node.keywords:
            held = self.quietly(node.func.value)
            if isinstance(held, (Items, Iteration)):
                self.values(node.args)
                self.rebind(node.func.value, Iteration(self.item_of(held)))
                return NONE
        if isinstance(node.func, ast.Attribute) and node.func.attr in _BEHIND_OPERATORS:
            self.lose_container(self.quietly(node.func.value))
        path = path_of(node.func) or ""
        called = path.rpartition(".")[2]
        if node.args and path.partition(".")[0] in _KINDS and called in _BOUND_CHANGING:
            self.values(node.args)  # `dict.update(settings, ...)`
            self.lose_container(self.quietly(node.args[0]))
            return UNKNOWN
        if node.args and called in _CHANGING_FIRST and self.quietly(node.func) == External(_CHANGING_FIRST[called]):
            self.values(node.args)
            self.changed_container(node.args[0])
            return UNKNOWN
        result = super().call(node)
        self.forget_given(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "update" and self.updated(node, node.func.value):
            return result
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            self.changed_container(node.func.value)
            if isinstance(node.func.value, (ast.Subscript, ast.Call)):
                receiver = self.quietly(node.func.value)
                if any(type(choice) is Unknown for choice in options(receiver)):
                    self.lose_around(node.func.value)
        return result

    def attribute(self, node: ast.Attribute) -> Value:
        value = super().attribute(node)
        if node.attr in _BOUND_CHANGING and not self.asking and isinstance(node.ctx, ast.Load):
            self.lose_container(self.quietly(node.value))  # `add = items.append`, which is no call yet
        return value

    def forget_given(self, node: ast.Call) -> None:
        """What `super().method()` and functions given something by its name may have assigned to it."""
        state, function = self.flow.state, self.flow.function
        if not state.paths:
            return
        for keyword in node.keywords:
            state.forget(path_of(keyword.value) or "")
        asked = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(asked, ast.Call) and path_of(asked.func) == "super" and function is not None:
            parameters = function.node.args.posonlyargs + function.node.args.args
            state.forget(parameters[0].arg if parameters else "")

    def items(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        """`[a, *many, b]`."""
        starred = any(isinstance(item, ast.Starred) for item in node.elts)
        made = self.joined([self.starred_items(item) for item in node.elts]) if starred else super().items(node)
        if isinstance(node, ast.Set) and isinstance(made, Items):
            made = _as_set(made)
        return made

    def starred_items(self, node: ast.expr) -> Value:
        if not isinstance(node, ast.Starred):
            return Items((self.value(node),))
        many = self.value(node.value)
        return (
            many if isinstance(many, (Items, Iteration)) else UNKNOWN if isinstance(many, Unknown) else self.lost(many)
        )

    @staticmethod
    def joined(parts: Sequence[Value]) -> Value:
        """Lists one after the other."""
        if not all(isinstance(part, (Items, Iteration)) for part in parts):
            return UNKNOWN
        if all(isinstance(part, Items) for part in parts):
            return Items(tuple(item for part in parts if isinstance(part, Items) for item in part.items))
        held: list[Value] = []
        for part in parts:
            held += part.items if isinstance(part, Items) else [part.item] if isinstance(part, Iteration) else []
        return Iteration(one_of(held))

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        if (
            isinstance(operator, ast.Add)
            and isinstance(left, (Items, Iteration))
            and isinstance(right, (Items, Iteration))
        ):
            return self.joined([left, right])
        if isinstance(operator, ast.Mult) and isinstance(left, Items):
            return Iteration(one_of(left.items))
        result = super().operated(operator, left, right, node)
        if type(result) is Unknown:
            for side in (left, right):  # `xs + [layer]`, where nothing is known of `xs`
                if isinstance(side, CONTAINERS):
                    self.lose(side)
        return result

    def sliced(self, base: Value, part: ast.Slice) -> Value | None:
        """`xs[a:b]` of a list."""
        if isinstance(base, Iteration):
            return Iteration(base.item, base.source, base.of)
        if isinstance(base, Module) and base.name.rpartition(".")[2] in ("Sequential", "ModuleList"):
            return Iteration(self.item_of(base))
        if not isinstance(base, Items):
            return None
        if not base.items:
            return base
        bounds = [None if bound is None else self.quietly(bound) for bound in (part.lower, part.upper, part.step)]
        if all(
            bound is None or (isinstance(bound, Constant) and isinstance(bound.value, (int, type(None))))
            for bound in bounds
        ):
            at = [
                bound.value if isinstance(bound, Constant) and isinstance(bound.value, int) else None
                for bound in bounds
            ]
            return Items(base.items[at[0] : at[1] : at[2]])
        return Iteration(one_of(base.items))

    def dictionary(self, node: ast.Dict) -> Value:
        """`{key: value, **others}`: what stands under keys that are not known may be under any."""
        table: dict[object, Value] = {}
        perhaps: frozenset[object] = frozenset()
        rest: list[Value] = []
        for key, item in zip(node.keys, node.values, strict=True):
            named = None if key is None else self.value(key)
            value = self.value(item)
            if isinstance(named, Constant) and isinstance(named.value, Hashable):
                table[named.value] = value
                perhaps -= {named.value}
            elif named is None and isinstance(value, Table) and value.rest is None:
                for name, held in value.items.items():
                    table[name] = join(table[name], held) if name in table and name in value.perhaps else held
                perhaps = perhaps.difference(value.items) | value.perhaps
            else:
                rest.append(UNKNOWN if named is None else value)
                table = {name: join(held, rest[-1]) for name, held in table.items()}
                self.lose(value)
        return Table(table, perhaps, one_of(rest) if rest else None)

    def assign_augmented(self, node: ast.AugAssign) -> None:
        """`xs += more`, of a list or dict that others name too."""
        before = self.quietly(node.target)
        super().assign_augmented(node)
        after = self.quietly(node.target)
        if isinstance(before, CONTAINERS) and not isinstance(after, CONTAINERS):
            self.lose(before)
            self.has_changed(node.target, before, UNKNOWN)
        elif isinstance(before, CONTAINERS):
            super().bind_target(node.target, self.has_changed(node.target, before, after))  # it is one list still

    def updated(self, node: ast.Call, target: ast.expr) -> bool:
        """`d.update({key: value})`, of a dict that is known by one that is; has it been done?"""
        table = self.quietly(target)
        if not isinstance(table, Table) or len(node.args) > 1 or any(word.arg is None for word in node.keywords):
            return False
        given = self.quietly(node.args[0]) if node.args else Table({})
        if not isinstance(given, Table):
            return False
        added = Table({word.arg: self.quietly(word.value) for word in node.keywords})
        for more in (given, added):
            items = dict(table.items)
            for key, value in more.items.items():
                items[key] = join(items[key], value) if key in items and key in more.perhaps else value
            certain = table.items.keys() - table.perhaps
            perhaps = table.perhaps.difference(more.items) | more.perhaps.difference(certain)
            rests = [rest for rest in (table.rest, more.rest) if rest is not None]
            if more.rest is not None:
                items = {key: join(value, more.rest) for key, value in items.items()}
            table = Table(items, perhaps, one_of(rests) if rests else None)
        self.rebind(target, table)
        return True

    def added(self, held: Items | Iteration, node: ast.Call, function: ast.Attribute) -> Value:
        """`xs.append(x)`: a list of which is known what it holds, though not in which places."""
        self.value(function.value)
        value = self.values(node.args)[-1]
        if function.attr in ("extend", "extendleft", "update"):
            value = self.item_of(value)
        items = [*held.items, value] if isinstance(held, Items) else [held.item, value]
        self.rebind(function.value, Iteration(one_of(items)))
        return NONE

    def taken(self, held: Items | Iteration, node: ast.Call, function: ast.Attribute) -> Value:
        """`xs.pop()`, `xs.pop(0)`, `xs.popleft()`: an item that is not in the list any more."""
        place = self.values(node.args)
        if isinstance(held, Items) and not self.muted:  # whoever only asks takes nothing
            at = place[0].value if place and isinstance(place[0], Constant) else None if place else -1
            at = 0 if function.attr == "popleft" else at
            if isinstance(at, int) and -len(held.items) <= at < len(held.items):
                left = list(held.items)
                item = left.pop(at)
                self.rebind(function.value, Items(tuple(left)))
                return item
        item = self.item_of(held)
        self.rebind(function.value, Iteration(item))
        return item

    def table_call(self, table: Table, node: ast.Call, function: ast.Attribute) -> Value:
        """`d.get(key)`, `d.pop(key, default)`: by a constant key, of a dict that is known."""
        args = self.values(node.args)
        if function.attr == "copy":
            return Table(table.items, table.perhaps, table.rest)
        if function.attr in ("items", "keys", "values"):
            return taken_from(_view(table, function.attr), table)
        key = args[0].value if args and isinstance(args[0], Constant) else None
        path = path_of(function.value)
        default = args[1] if len(args) > 1 else NONE
        if not isinstance(key, Hashable) or not args or not isinstance(args[0], Constant) or path is None:
            if function.attr == "pop" and table.items:
                self.rebind(function.value, Table(table.items, frozenset(table.items), table.rest))
            return one_of([default, *table.items.values(), *([table.rest] if table.rest is not None else [])])
        found = table.items.get(key, default)
        if key in table.perhaps:
            found = join(found, default)
        if table.rest is not None:
            found = join(found, table.rest)
        if function.attr == "pop":
            left = {name: value for name, value in table.items.items() if name != key}
            self.rebind(function.value, Table(left, table.perhaps - {key}, table.rest))
        return found

    def stored_default(self, table: Table, node: ast.Call, target: ast.expr) -> Value:
        """`d.setdefault(key, default)`, which leaves alone what is there."""
        named, default = self.values(node.args)
        key = named.value if isinstance(named, Constant) else None
        if not isinstance(named, Constant) or not isinstance(key, Hashable):
            rest = default if table.rest is None else join(table.rest, default)
            self.rebind(target, Table(table.items, table.perhaps, rest))
            return one_of([*table.items.values(), rest])
        if key in table.items and key not in table.perhaps:
            return table.items[key]
        found = [value for value in (table.items.get(key), table.rest, default) if value is not None]
        self.rebind(target, Table({**table.items, key: one_of(found)}, table.perhaps - {key}, table.rest))
        return one_of(found)

    def bind_target(
        self, target: ast.expr, value: Value, statement: ast.stmt | None = None, expression: ast.expr | None = None
    ) -> None:
        super().bind_target(target, value, statement, expression)
        if isinstance(target, ast.Subscript):
            self.store(target, value)

    def store(self, target: ast.Subscript, value: Value) -> None:
        """`x[key] = value`: of a dict or list that is known, and of objects that say what it does."""
        base, index = self.quietly(target.value), self.quietly(target.slice)
        if isinstance(target.slice, ast.Slice) and isinstance(base, Items):  # what is assigned are items, any number
            self.rebind(target.value, Iteration(one_of([*base.items, self.item_of(value)])))
            return
        keys = [choice.value for choice in options(index) if isinstance(choice, Constant)]
        certain = len(keys) == len(list(options(index)))
        if isinstance(base, Table) and certain:
            items, perhaps = dict(base.items), set(base.perhaps)
            for key in keys:
                if len(keys) > 1 and key not in items:
                    perhaps.add(key)
                elif len(keys) == 1:
                    perhaps.discard(key)
                items[key] = join(items[key], value) if len(keys) > 1 and key in items else value
            self.rebind(target.value, Table(items, frozenset(perhaps), base.rest))
        elif isinstance(base, Table):
            items = {key: join(item, value) for key, item in base.items.items()}
            self.rebind(
                target.value, Table(items, base.perhaps, value if base.rest is None else join(base.rest, value))
            )
        elif isinstance(base, Items):
            self.rebind(target.value, Items(tuple(join(item, value) for item in base.items)))
        elif isinstance(base, Iteration):
            self.lose(value)
            self.changed_container(target.value)
        elif isinstance(base, Module):
            self.put_item(base, value)
        elif base == GLOBALS:
            self.lose(value)
            self.names_lost({str(key) for key in keys} if certain else None)
        elif isinstance(base, Instance) and base.info.method("__setitem__") is not None:
            setter = base.info.method("__setitem__")
            assert setter is not None
            self.apply(setter, base, [index, value], {}, True)
        elif not isinstance(base, Tensor):
            if isinstance(base, Instance):
                self.objects.put(base.key, ITEMS, UNKNOWN)
            self.lose(value)
            self.lose_container(base)  # one of several, perhaps
            self.lose_around(target.value)

    def lose_around(self, node: ast.expr) -> None:
        """Something unknown has changed that an expression takes out of a container, one that is known perhaps."""
        while isinstance(node, (ast.Subscript, ast.Call)):
            node = node.value if isinstance(node, ast.Subscript) else node.func
            if isinstance(node, ast.Attribute) and node.attr in _OF_DICTS | {"setdefault"}:
                node = node.value
            self.lose_container(self.quietly(node))

    def changed_in_turns(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        names: dict[str, Value],
        inner: dict[str, Value],
    ) -> list[tuple[str, Value]]:
        targets = {
            part.id for clause in node.generators for part in ast.walk(clause.target) if isinstance(part, ast.Name)
        }
        changed = [name for name, value in names.items() if name not in targets and inner.get(name, value) is not value]
        return [(name, inner[name]) for name in changed if isinstance(names[name], CONTAINERS)]

    def lose_globals(self) -> None:
        """Code that is not seen finds functions and classes by their names: they are not kept here."""

    def names_lost(self, names: Collection[str] | None) -> None:
        """Globals are bound in a way that is not followed. Where nobody knows which, it is settings that are: numbers, words."""
        for held in (self.globals, self.flow.state.names, *(state.names for state in self.frames)):
            for name, value in held.items():
                if name in names if names is not None else isinstance(value, (Constant, Dtype)):
                    held[name] = UNKNOWN

    def delete(self, node: ast.Delete) -> None:
        super().delete(node)
        for target in node.targets:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(part, ast.Subscript):
                    self.delete_item(part)
                elif isinstance(part, ast.Attribute):
                    self.flow.state.forget(path_of(part) or "")
                    self.flow.state.paths.pop(path_of(part) or "", None)
                    self.delete_attribute(self.quietly(part.value), Constant(part.attr))

    def delete_item(self, target: ast.Subscript) -> None:
        """`del x[key]`."""
        base, index = self.quietly(target.value), self.quietly(target.slice)
        key = index.value if isinstance(index, Constant) else None
        if isinstance(base, Table):
            certain = isinstance(index, Constant) and isinstance(key, Hashable)
            left = {name: value for name, value in base.items.items() if not certain or name != key}
            self.rebind(
                target.value, Table(left, base.perhaps & left.keys() if certain else frozenset(left), base.rest)
            )
        elif isinstance(base, (Items, Iteration)):
            kept = list(base.items) if isinstance(base, Items) else []
            if isinstance(key, int) and -len(kept) <= key < len(kept):
                del kept[key]
                self.rebind(target.value, Items(tuple(kept)))
            else:
                self.rebind(target.value, Iteration(self.item_of(base)))
        elif isinstance(base, Module):
            self.put_item(base, self.item_of(base))
        elif isinstance(base, Instance):
            deleter = base.info.method("__delitem__")
            if deleter is None:
                self.objects.put(base.key, ITEMS, UNKNOWN)
            else:
                self.apply(deleter, base, [index], {}, True)

    def indexed(self, node: ast.Subscript, base: Value, index: Value) -> Value:
        value = super().indexed(node, base, index)
        if isinstance(node.slice, ast.Slice):
            part = self.sliced(base, node.slice)
            return value if part is None else part
        constant = index.value if isinstance(index, Constant) else None
        if base == GLOBALS and not isinstance(constant, str):
            self.lose_globals()
        if isinstance(base, Constant) and isinstance(base.value, str) and isinstance(constant, int):
            return Constant(base.value[constant]) if -len(base.value) <= constant < len(base.value) else UNKNOWN
        if base == External("sys.modules"):
            return External("sys.modules[]")
        if isinstance(base, Module):
            held = base.items
            if isinstance(constant, str):
                made, stored = self.objects.get(base.key, constant), self.objects.get(base.key, ITEMS)
                found = [self.owned(value, base) for value in (made, stored) if value is not None]
                return UNKNOWN if made is None else one_of(found)
            if held is not None and isinstance(constant, int) and self.objects.get(base.key, ITEMS) is None:
                return held[constant] if -len(held) <= constant < len(held) else UNKNOWN
            ordered = self.order.at(base.key, constant) if isinstance(constant, int) else []
            return one_of(ordered) if ordered else self.item_of(base)
        getter = base.info.method("__getitem__") if isinstance(base, Instance) else None
        if getter is not None:
            return self.apply(getter, base, [index], {}, True)
        if isinstance(base, Instance):
            base = self.objects.get(base.key, ITEMS) or base
        if isinstance(base, Table):
            return self.at_key(base, index)
        if isinstance(base, Items) and isinstance(index, (Number, Unknown, Tensor, Either)) and type(value) is Unknown:
            return self.item_of(base)  # one of them
        return value

    def at_key(self, table: Table, index: Value) -> Value:
        """`d[key]`, by each constant that the key may be."""
        found: list[Value] = []
        for key in options(index):
            if not isinstance(key, Constant) or not isinstance(key.value, Hashable):
                found += [*table.items.values(), *([table.rest] if table.rest is not None else [])]
                continue
            held = table.items.get(key.value)
            if held is not None or table.rest is not None:  # else it raises
                found += [one for one in (held, table.rest) if one is not None]
        return one_of(found)

    def item_of(self, value: Value) -> Value:
        """What iterating over a value gives, modules that hold modules among them."""
        if isinstance(value, Module):
            added = self.objects.get(value.key, ITEMS)
            made = [item.item if isinstance(item, Iteration) else item for item in value.items or ()]
            held = [*made, *([added] if added is not None else [])]
            return one_of(held)
        if isinstance(value, Table):
            return UNKNOWN
        if isinstance(value, Either):
            return one_of([self.item_of(choice) for choice in value.choices if choice != Items(())])
        return item_of(value)


def _as_set(items: Items) -> Value:
    """The set of these: what is equal is in it once, and that can be told of constants only."""
    if not all(isinstance(item, Constant) for item in items.items):
        return Iteration(one_of(items.items))
    distinct: list[Value] = []
    for item in items.items:
        if item not in distinct:
            distinct.append(item)
    return Distinct(tuple(distinct))


def _mapping(value: Value) -> Table | None:
    """The dict that `**value` takes apart: of several choices those that are dicts, for of the others it would raise."""
    tables = [
        choice
        for choice in options(value)
        if not isinstance(choice, Instance) or choice.info.method("keys") is not None or not is_open_book(choice.info)
    ]
    found = one_of([choice for choice in tables if choice != NONE])
    known = isinstance(found, Table) and found.rest is None and all(isinstance(key, str) for key in found.items)
    return found if isinstance(found, Table) and known else None


_MOST_ARGUMENTS = 1_000
"""Arguments of one call: `f(*args, *args)` in f itself doubles them each time."""
_SEQUENTIAL = External("torch.nn.Sequential")
_CHANGING_FIRST = {
    name.rpartition(".")[2]: name
    for name in ("random.shuffle", "heapq.heapify", "heapq.heappush", "heapq.heappop", "operator.setitem")
}
"""Functions that change the list or dict that they are given first."""
_ZIP = External("builtins.zip")
GLOBALS = External("builtins.globals()")
"""What `globals()` gives: the names of the module, as a dict."""
_ADDING = frozenset({"append", "extend", "insert", "add", "appendleft", "extendleft"})
_BEHIND_OPERATORS = frozenset({"__setitem__", "__delitem__", "__iadd__", "__ior__", "__imul__", "__iand__"})
"""Methods that statements and operators call which change a list or dict."""
_BOUND_CHANGING = (
    CHANGING | _BEHIND_OPERATORS | {"append", "extend", "insert", "add", "appendleft", "extendleft", "rotate"}
)
_KINDS = frozenset({"dict", "list", "set", "OrderedDict", "deque"})
_REORDERING = frozenset({"reverse", "sort", "remove", "rotate"})
"""Methods of a list after which it holds what it held, in other places."""
_OF_DICTS = frozenset({"get", "pop", "items", "keys", "values", "copy"})


def _view(table: Table, method: str) -> Items | Iteration:
    """`d.items()`, `d.keys()`, `d.values()`."""
    pairs = [Items((Constant(key), value)) for key, value in table.items.items()]
    if table.rest is None and not table.perhaps:
        return Items(tuple(pair if method == "items" else pair.items[method == "values"] for pair in pairs))
    values = [*table.items.values(), *([table.rest] if table.rest is not None else [])]
    item = one_of(values)
    key = UNKNOWN if table.rest is not None else one_of(list(map(Constant, table.items)))
    return Iteration(item if method == "values" else key if method == "keys" else Items((key, item)))


def one_of(values: Sequence[Value]) -> Value:
    """The value that is one of these, by the path taken; Unknown when there is none."""
    if not values:
        return UNKNOWN
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result
