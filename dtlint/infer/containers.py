"""Lists, dicts and truths: what a program keeps in containers, and tests whose outcome is known."""

from __future__ import annotations

import ast
from collections.abc import Hashable, Sequence

from dtlint.infer.events import Condition
from dtlint.infer.expressions import item_of
from dtlint.infer.functions import Perhaps
from dtlint.infer.instances import ITEMS, Instances
from dtlint.infer.names import path_of
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Class,
    Constant,
    External,
    Function,
    Imported,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    Table,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)

__all__ = ["Containers", "one_of"]


class Containers(Instances):
    """An interpreter that knows dicts by their keys and lists by their places, as long as nobody else changes them."""

    def given(self, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
        args: list[Value] = []
        complete = True
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                many = self.value(arg.value)
                if isinstance(many, Items) and complete:
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
            elif isinstance(value, Table) and value.rest is None and all(isinstance(key, str) for key in value.items):
                for key, item in value.items.items():
                    keywords[str(key)] = Perhaps(item) if key in value.perhaps else item
            else:
                complete = False
                self.lose(value)
        return args, keywords, complete

    def call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OF_DICTS and not node.keywords:
            table = self.quietly(node.func.value)
            if isinstance(table, Table):
                return self.table_call(table, node, node.func)
        result = super().call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            self.changed_container(node.func.value)
        return result

    def table_call(self, table: Table, node: ast.Call, function: ast.Attribute) -> Value:
        """`d.get(key)`, `d.pop(key, default)`: by a constant key, of a dict that is known."""
        args = self.values(node.args)
        key = args[0].value if args and isinstance(args[0], Constant) else None
        path = path_of(function.value)
        default = args[1] if len(args) > 1 else NONE
        if not isinstance(key, str) or path is None:
            if function.attr == "pop":
                self.changed_container(function.value)
            return one_of([default, *table.items.values(), *([table.rest] if table.rest is not None else [])])
        found = table.items.get(key, default)
        if key in table.perhaps:
            found = join(found, default)
        if table.rest is not None:
            found = join(found, table.rest)
        if function.attr == "pop":
            left = {name: value for name, value in table.items.items() if name != key}
            self.rebind(path, Table(left, table.perhaps - {key}, table.rest))
        return found

    def rebind(self, path: str, value: Value) -> None:
        """A container that is known by a path has changed."""
        state = self.flow.state
        if "." in path or path in state.names:
            (state.paths if "." in path else state.names)[path] = value
            if "." not in path and self.flow.function is None:
                self.publish(path, value)
            return
        names = next((names for names in self.outer if path in names), None)
        while names is not None and isinstance(held := names.get(path), Imported):
            module = self.project.module(held.module)
            names, path = (None if module is None else module.names), held.name
        if names is not None and path in names:
            before = names[path]
            names[path] = join(before, value)
            self.objects.changed |= names[path] != before

    def bind_target(
        self, target: ast.expr, value: Value, statement: ast.stmt | None = None, expression: ast.expr | None = None
    ) -> None:
        super().bind_target(target, value, statement, expression)
        if isinstance(target, ast.Subscript):
            self.store(target, value)

    def store(self, target: ast.Subscript, value: Value) -> None:
        """`x[key] = value`: of a dict or list that is known, and of objects that say what it does."""
        base, index = self.quietly(target.value), self.quietly(target.slice)
        path = path_of(target.value)
        keys = [choice.value for choice in options(index) if isinstance(choice, Constant)]
        certain = len(keys) == len(list(options(index)))
        if isinstance(base, Table) and path is not None and certain:
            items, perhaps = dict(base.items), set(base.perhaps)
            for key in keys:
                if len(keys) > 1 and key not in items:
                    perhaps.add(key)
                elif len(keys) == 1:
                    perhaps.discard(key)
                items[key] = join(items[key], value) if len(keys) > 1 and key in items else value
            self.rebind(path, Table(items, frozenset(perhaps), base.rest))
        elif isinstance(base, Table) and path is not None and "." not in path:
            items = {key: join(item, value) for key, item in base.items.items()}
            self.rebind(path, Table(items, base.perhaps, value if base.rest is None else join(base.rest, value)))
        elif isinstance(base, Items) and path is not None:
            self.rebind(path, Items(tuple(join(item, value) for item in base.items)))
        elif isinstance(base, (Table, Iteration)):
            self.lose(value)
            self.changed_container(target.value)
        elif isinstance(base, Instance) and base.info.method("__setitem__") is not None:
            setter = base.info.method("__setitem__")
            assert setter is not None
            self.apply(setter, base, [index, value], {}, True)
        elif not isinstance(base, Tensor):
            self.lose(value)

    def changed_container(self, node: ast.expr) -> None:
        """A list or dict that a method has changed is no longer what it was written as."""
        path = path_of(node)
        if path is None:
            return
        state = self.flow.state
        for known in (state.names, state.paths):
            value = known.get(path)
            if isinstance(value, (Items, Table, Iteration)):
                self.lose(value)
                known[path] = UNKNOWN
        base = node.value if isinstance(node, ast.Attribute) else None
        if base is not None:
            self.muted += 1
            owner = self.value(base)
            self.muted -= 1
            for choice in options(owner):
                if isinstance(choice, (Module, Instance)):
                    held = self.objects.get(choice.key, node.attr)  # type: ignore[attr-defined]
                    if isinstance(held, (Items, Table, Iteration)):
                        self.lose(held)
                        self.objects.put(choice.key, node.attr, UNKNOWN)  # type: ignore[attr-defined]

    def subscript(self, node: ast.Subscript) -> Value:
        value = super().subscript(node)
        self.muted += 1
        base, index = self.value(node.value), self.value(node.slice)
        self.muted -= 1
        constant = index.value if isinstance(index, Constant) else None
        if isinstance(base, Module):
            held = base.items
            if isinstance(constant, str):
                return self.objects.get(base.key, constant) or UNKNOWN
            if held is not None and isinstance(constant, int) and self.objects.get(base.key, ITEMS) is None:
                return held[constant] if -len(held) <= constant < len(held) else UNKNOWN
            return self.item_of(base)
        if isinstance(base, Table) and isinstance(constant, Hashable):
            found = base.items.get(constant, UNKNOWN)
            return found if base.rest is None else join(found, base.rest)
        return value

    def item_of(self, value: Value) -> Value:
        """What iterating over a value gives, modules that hold modules among them."""
        if isinstance(value, Module):
            added = self.objects.get(value.key, ITEMS)
            held = [*(value.items or ()), *([added] if added is not None else [])]
            return one_of(held)
        return item_of(value)

    # -- tests

    def if_(self, node: ast.If) -> None:
        truth = _truth(self.quietly(node.test))
        if truth is None or (
            isinstance(node.test, (ast.Constant, ast.Name)) and isinstance(self.quietly(node.test), Constant)
        ):
            super().if_(node)
            return
        self.value(node.test)
        self.resume(self.branch(self.flow.state, node.body if truth else node.orelse, Condition(node.test, truth)))

    def compare(self, node: ast.Compare) -> Value:
        result = super().compare(node)
        if len(node.ops) != 1:
            return result
        operator, left, right = node.ops[0], self.quietly(node.left), self.quietly(node.comparators[0])
        answer: bool | None = None
        if isinstance(operator, (ast.Is, ast.IsNot)) and right == NONE:
            absent = _is_none(left)
            answer = None if absent is None else absent is isinstance(operator, ast.Is)
        elif isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, Items):
            answers = {_among(choice, right) for choice in options(left)}
            if len(answers) == 1 and None not in answers:
                answer = answers.pop() is isinstance(operator, ast.In)
        return result if answer is None else Constant(answer)

    def logic(self, node: ast.BoolOp) -> Value:
        """`and`, `or`: decided by the first operand that decides it, whatever the others are."""
        value = super().logic(node)
        decisive = isinstance(node.op, ast.Or)
        truths = [_truth(self.quietly(operand)) for operand in node.values]
        if decisive in truths and (not decisive or all(truth is not None for truth in truths[: truths.index(True)])):
            return Constant(decisive) if not decisive else value
        return value


_OF_DICTS = frozenset({"get", "pop"})
_CHANGING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "pop",
        "clear",
        "remove",
        "setdefault",
        "popitem",
        "sort",
        "reverse",
    }
)


def _among(value: Value, items: Items) -> bool | None:
    """Is the constant among the items? None when that cannot be told."""
    if not isinstance(value, Constant) or not all(isinstance(item, Constant) for item in items.items):
        return None
    return value in items.items


def _truth(value: Value) -> bool | None:
    """Is the value true, whatever path was taken? None when that depends."""
    if isinstance(value, (Function, Class, Namespace)):
        return True
    if isinstance(value, Constant) and (value.value is None or isinstance(value.value, bool)):
        return bool(value.value)
    return None


def _is_none(value: Value) -> bool | None:
    """Is it None: certainly, certainly not, or perhaps?"""
    answers = {
        choice == NONE if isinstance(choice, Constant) else None if isinstance(choice, (Unknown, External)) else False
        for choice in options(value)
    }
    return answers.pop() if len(answers) == 1 else None


def one_of(values: Sequence[Value]) -> Value:
    """The value that is one of these, by the path taken; Unknown when there is none."""
    if not values:
        return UNKNOWN
    result = values[0]
    for value in values[1:]:
        result = join(result, value)
    return result
