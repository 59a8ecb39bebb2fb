"""Functions of Python's own on dicts, lists and what gives items one after the other."""

from __future__ import annotations

import ast
from functools import reduce

from dtlint.dtypes.dtype import Category
from dtlint.infer.calls import Arguments
from dtlint.infer.program.containers import one_of
from dtlint.infer.program.loading import Loading
from dtlint.infer.values import (
    UNKNOWN,
    Constant,
    Distinct,
    Items,
    Iteration,
    Number,
    Table,
    Tensor,
    Value,
    join,
    options,
    taken_from,
)

__all__ = ["TRUTH", "Iterables"]

TRUTH = Number(Category.BOOL)
"""True or False: no tensor, and no module."""


class Iterables(Loading):
    """An interpreter that knows what Python's own functions make of containers."""

    def of_iterables(self, name: str, arguments: Arguments) -> Value | None:
        """Functions of dicts, lists and what gives items one after the other."""
        args = arguments.args
        if name in ("builtins.all", "builtins.any") and len(args) == 1:
            return self.all_or_any(name, args[0])
        if name == "builtins.len" and len(args) == 1 and isinstance(args[0], Items):
            return Constant(len(args[0].items))
        if name in ("builtins.dict", "collections.OrderedDict") and arguments.complete:
            given = _as_table(args[0]) if args else Table({})
            if not isinstance(given, Table) or given.rest is not None:
                return self.lost(given)
            items = dict(given.items)
            items.update({str(key): value for key, value in arguments.keywords.items()})
            return Table(items)
        if name == "collections.defaultdict" and len(args) == 1 and arguments.complete and not arguments.keywords:
            return Table({}, rest=self.called_plainly(args[0]))  # what is under a key that nobody has stored
        if name in ("builtins.list", "builtins.tuple") and len(args) == 1:
            ordered = isinstance(args[0], (Items, Iteration)) and not isinstance(args[0], Distinct)
            return args[0] if ordered else Iteration(self.item_of(args[0]))
        if name in ("builtins.zip", "builtins.enumerate") and args:
            made = self.paired(name, arguments)
            return taken_from(made, *args) if isinstance(made, (Items, Iteration)) else made
        if name == "builtins.iter" and len(args) == 1:
            return taken_from(Iteration(self.item_of(args[0])), args[0])
        if name in ("builtins.reversed", "builtins.sorted") and args:
            for function in arguments.keywords.values():
                self.hand_over(function)
            return taken_from(Iteration(self.item_of(args[0])), *(args[:1] if name == "builtins.reversed" else ()))
        if name == "builtins.next" and args:
            return join(self.item_of(args[0]), args[1]) if len(args) == 2 else self.item_of(args[0])
        if name in ("builtins.max", "builtins.min") and arguments.complete:
            return self.picked(arguments)
        if name == "builtins.sum" and len(args) == 1 and not arguments.keywords:
            return self.summed(args[0], arguments)
        if name in _GIVING_ITEMS and args and isinstance(args[0], (Items, Iteration)):
            return taken_from(Iteration(self.item_of(args[0])), args[0])
        if name == "collections.deque" and arguments.complete:
            return Iteration(self.item_of(args[0])) if args and args[0] != Items(()) else Items(())
        return self.of_functions(name, arguments) or self.loaded(name, arguments)

    def of_functions(self, name: str, arguments: Arguments) -> Value | None:
        """Functions that call another one with items, and those of operators."""
        args = arguments.args
        if not arguments.complete or arguments.keywords:
            return None
        if name == "builtins.map" and len(args) > 1:
            return self.mapped(args[0], args[1:], arguments)
        if name == "builtins.filter" and len(args) == 2:
            self.hand_over(args[0])
            return Iteration(self.item_of(args[1]))
        if name == "functools.reduce" and len(args) in (2, 3):
            return self.reduced(args[0], args[1], args[2:], arguments)
        if name == "itertools.chain" and args:
            return self.joined(
                [value if isinstance(value, Items) else Iteration(self.item_of(value)) for value in args]
            )
        if name == "itertools.chain.from_iterable" and len(args) == 1:
            return Iteration(self.item_of(self.item_of(args[0])))
        operator = _OPERATORS.get(name)
        return self.operated(operator, args[0], args[1], arguments.node) if operator and len(args) == 2 else None

    def picked(self, arguments: Arguments) -> Value | None:
        """`max(...)`, `min(...)` of tensors: one of them."""
        for function in arguments.keywords.values():
            self.hand_over(function)
        args = arguments.args
        found = one_of(args) if len(args) > 1 else self.item_of(args[0]) if args else UNKNOWN
        whole = not arguments.keywords.keys() - {"key"} and all(isinstance(one, Tensor) for one in options(found))
        return found if whole else None

    def mapped(self, function: Value, given: list[Value], arguments: Arguments) -> Value:
        """`map(function, ...)`: what it gives for items, one after the other. When that is done, and whether, nobody
        knows: what it does beside that may be done or not."""
        self.hand_over(function)
        for value in given:
            self.hand_over(value)
        rows = zip(*(value.items for value in given if isinstance(value, Items)), strict=False)
        known = all(isinstance(value, Items) for value in given)
        turns = list(rows)[: _MOST_MAPPED + 1] if known else [tuple(map(self.item_of, given))]
        if not turns or len(turns) > _MOST_MAPPED:
            return UNKNOWN
        before = self.flow.state
        self.flow.state = before.copy()
        found = [self.result_of(function, list(row), arguments) for row in turns]
        self.resume(before, self.flow.state)
        return Items(tuple(found)) if known else Iteration(found[0])

    def reduced(self, function: Value, given: Value, first: list[Value], arguments: Arguments) -> Value:
        """`functools.reduce(function, items, first)`."""
        items = list(given.items) if isinstance(given, Items) and len(given.items) <= _MOST_MAPPED else None
        if items is not None:
            return reduce(lambda so_far, item: self.result_of(function, [so_far, item], arguments), [*first, *items])
        item = self.item_of(given)
        found = first[0] if first else item
        for _ in range(_MOST_STEPS):
            more = join(found, self.result_of(function, [found, item], arguments))
            if more == found:
                return found
            found = more
        return UNKNOWN

    def result_of(self, function: Value, args: list[Value], arguments: Arguments) -> Value:
        """What a function gives that another calls."""
        call = Arguments(arguments.node, args, {}, arguments.default, True, arguments.region)
        return self.called(arguments.node, function, UNKNOWN, "", call)[1]

    def paired(self, name: str, arguments: Arguments) -> Value:
        """`zip(...)`, `enumerate(...)`: pairs of what is known one by one, or of what is alike."""
        given = arguments.args
        if not arguments.complete:
            return UNKNOWN
        if name == "builtins.zip" and any(isinstance(arg, ast.Starred) for arg in arguments.node.args):
            many = given[0] if len(given) == 1 else UNKNOWN
            if isinstance(many, Iteration):  # `zip(*rows)`
                return Items(tuple(map(Iteration, many.item.items))) if isinstance(many.item, Items) else UNKNOWN
        if name == "builtins.zip" and Items(()) in given:
            return Items(())
        if all(isinstance(value, Items) for value in given):
            columns = [value.items for value in given if isinstance(value, Items)]
            if name == "builtins.enumerate":
                start = 0 if len(given) == 1 and not arguments.keywords else None
                numbers = [UNKNOWN if start is None else Constant(start + index) for index in range(len(columns[0]))]
                columns = [tuple(numbers), columns[0]]
            return Items(tuple(map(Items, zip(*columns, strict=False))))
        if name == "builtins.enumerate":
            return Iteration(Items((UNKNOWN, self.item_of(given[0]))))
        return Iteration(Items(tuple(self.item_of(arg) for arg in given)))

    def summed(self, given: Value, arguments: Arguments) -> Value:
        """`sum(...)` of tensors: 0 is added to the first, the second to that. Of none it is 0."""
        if isinstance(given, Iteration):
            once = self.summed(Items((given.item,)), arguments)
            more = self.summed(Items((once, given.item)), arguments)
            return join(Constant(0), join(once, more)) if isinstance(more, Tensor) else UNKNOWN
        if not isinstance(given, Items) or not any(isinstance(item, Tensor) for item in given.items):
            return UNKNOWN
        total: Value = Constant(0)
        for item in given.items:
            total = self.operated(ast.Add(), total, item, arguments.node)
        return total

    def all_or_any(self, name: str, given: Value) -> Value:
        """`all(...)`, `any(...)` of what is known one by one."""
        if not isinstance(given, Items):
            return TRUTH
        decisive = name == "builtins.any"
        truths = {self.truth_of_value(item) for item in given.items}
        if decisive in truths:
            return Constant(decisive)
        return TRUTH if None in truths else Constant(not decisive)


def _as_table(given: Value) -> Value:
    """The dict that `dict(pairs)` makes; what is given where it is no list of pairs with known keys."""
    if not isinstance(given, Items):
        return given
    table: dict[object, Value] = {}
    for pair in given.items:
        if not isinstance(pair, Items) or len(pair.items) != 2 or not isinstance(pair.items[0], Constant):
            return given
        table[pair.items[0].value] = pair.items[1]
    return Table(table)


_GIVING_ITEMS = frozenset(
    {"tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "tqdm.autonotebook.tqdm"}
    | {"itertools.cycle", "itertools.islice", "random.sample", "random.choices"}
)
"""What gives items of an iteration: it shows its progress, takes some of it, or goes on and on."""
_OPERATORS: dict[str, ast.operator] = {
    f"operator.{name}": kind()
    for name, kind in (
        *(("add", ast.Add), ("sub", ast.Sub), ("mul", ast.Mult), ("truediv", ast.Div), ("floordiv", ast.FloorDiv)),
        *(("mod", ast.Mod), ("pow", ast.Pow), ("matmul", ast.MatMult), ("and_", ast.BitAnd), ("or_", ast.BitOr)),
        ("xor", ast.BitXor),
    )
}
_MOST_MAPPED = 16
"""Items for which a function is called one by one."""
_MOST_STEPS = 4
"""Calls of a function with its own result, until that no longer changes."""
