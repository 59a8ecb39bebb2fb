"""Special methods: what Python calls of an object by itself, for an operator, a loop or a function of its own.

Source: the data model of Python's language reference, chapter 3.3.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.program.abroad import MODULE_CASTS
from dtlint.infer.program.places import Places
from dtlint.infer.values import (
    UNKNOWN,
    Constant,
    External,
    Function,
    Instance,
    Iteration,
    Module,
    Partial,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.calls import Arguments

__all__ = ["Special"]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.MatMult: "matmul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.LShift: "lshift",
    ast.RShift: "rshift",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("__eq__", "__eq__"),
    ast.NotEq: ("__ne__", "__ne__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__le__"),
}
"""By the operator, the method of the left operand, and that of the right one."""
_UNARY: dict[type[ast.unaryop], tuple[str, ...]] = {
    ast.USub: ("__neg__",),
    ast.UAdd: ("__pos__",),
    ast.Invert: ("__invert__",),
    ast.Not: ("__bool__", "__len__"),
}
_TEXT = ("__str__", "__repr__", "__format__")
_CALLED_BY: dict[str, tuple[str, ...]] = {
    "builtins.len": ("__len__",),
    "builtins.bool": ("__bool__", "__len__"),
    "builtins.str": _TEXT,
    "builtins.repr": ("__repr__",),
    "builtins.print": _TEXT,
    "builtins.format": _TEXT,
    "builtins.int": ("__int__", "__index__"),
    "builtins.float": ("__float__", "__index__"),
    "builtins.abs": ("__abs__",),
    "builtins.round": ("__round__",),
    "builtins.hash": ("__hash__",),
    "builtins.reversed": ("__reversed__",),
    "builtins.next": ("__next__",),
    "builtins.dir": ("__dir__",),
}
"""The methods that functions of Python's own call of what they are given."""
_GIVEN = frozenset({"builtins.next", "builtins.abs", "builtins.round"})
"""Functions that give what the method gives."""


_IN_PLACE = frozenset(
    f"operator.{name}" for name in ("delitem", "iadd", "iand", "iconcat", "imul", "ior", "isub", "ixor", "setitem")
)
"""Functions that change the list or dict that they are given first."""
_NOT_KEEPING = frozenset(
    {"functools.partial", "functools.reduce", "functools.wraps", "builtins.isinstance", "builtins.callable"}
    | {"torch.utils.checkpoint.checkpoint", "builtins.sorted", "builtins.max", "builtins.min", "builtins.filter"}
    | {"builtins.getattr", "builtins.hasattr", "builtins.setattr", "builtins.print", "copy.copy", "copy.deepcopy"}
)
"""Functions that are given a function, and neither keep it for later nor call it with what stands beside it."""


class Special(Places):
    """An interpreter that runs the special methods of the program's own objects."""

    def special(self, value: Value, name: str, *args: Value) -> Value | None:
        """What a special method of an object gives; None where its class has none, or nobody knows which object it is."""
        found: Value | None = None
        for choice in options(value):
            info = choice.info if isinstance(choice, (Instance, Module)) else None
            method = info.method(name) if info is not None else None
            if method is not None:
                made = self.apply(method, choice, list(args), {}, True)
                found = made if found is None else join(found, made)
        sole = len(list(options(value))) == 1
        return found if sole or found is None else UNKNOWN

    # -- operators

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        if not _is_object(left) and not _is_object(right):
            return super().operated(operator, left, right, node)
        name = _OPERATORS[type(operator)]
        made = self.special(left, f"__{name}__", right)
        other = self.special(right, f"__r{name}__", left) if made is None else None
        if made is None and other is None:
            for side in (left, right):
                self.lose(side)
            return super().operated(operator, left, right, node)
        if other is not None:  # the left one is asked first, which knows what it does with such an object
            return UNKNOWN if isinstance(left, (Tensor, Unknown)) else other
        return made or UNKNOWN

    def assign_augmented(self, node: ast.AugAssign) -> None:
        before = self.quietly(node.target)
        name = f"__i{_OPERATORS[type(node.op)]}__"
        infos = [choice.info for choice in options(before) if isinstance(choice, (Instance, Module))]
        if any(info is not None and info.method(name) is not None for info in infos):
            made = self.special(before, name, self.value(node.value))
            self.bind_target(node.target, made or UNKNOWN, node, node.value)
            return
        super().assign_augmented(node)

    def negated(self, node: ast.UnaryOp, operand: Value, result: Value) -> Value:
        result = super().negated(node, operand, result)
        found = self.first_of(operand, _UNARY[type(node.op)])
        return result if found is None or isinstance(node.op, ast.Not) else found

    def compared(self, node: ast.Compare, operator: ast.cmpop, left: Value, right: Value, result: Value) -> Value:
        result = super().compared(node, operator, left, right, result)
        if not _is_object(left) and not _is_object(right):
            return result
        found = self.compared_by_object(operator, left, right)
        if found is None:
            return result
        return found if len(node.ops) == 1 and not isinstance(left, (Tensor, Unknown)) else UNKNOWN

    def compared_by_object(self, operator: ast.cmpop, left: Value, right: Value) -> Value | None:
        """What comparing objects gives, where one of them has a say in it."""
        if isinstance(operator, (ast.In, ast.NotIn)):
            found = self.special(right, "__contains__", left)
            return found if found is None else UNKNOWN
        names = _COMPARISONS.get(type(operator))
        if names is None:
            return None
        made = self.special(left, names[0], right)
        return self.special(right, names[1], left) if made is None else made

    # -- what loops and functions of Python's own call

    def first_of(self, value: Value, names: tuple[str, ...]) -> Value | None:
        """What the first of several special methods gives that an object has."""
        if not _is_object(value):
            return None
        return next((found for name in names if (found := self.special(value, name)) is not None), None)

    def item_of(self, value: Value) -> Value:
        if not isinstance(value, Instance):
            return super().item_of(value)
        turning = self.special(value, "__iter__")
        if turning is None:
            taken = self.special(value, "__getitem__", UNKNOWN)
            return super().item_of(value) if taken is None else taken
        items = [self.special(one, "__next__") or UNKNOWN for one in options(turning) if isinstance(one, Instance)]
        others = [super(Special, self).item_of(one) for one in options(turning) if not isinstance(one, Instance)]
        found = [*items, *others]
        result = found[0]
        for other in found[1:]:
            result = join(result, other)
        return result

    def external_call(self, name: str, arguments: Arguments) -> Value:
        given = [*arguments.args, *arguments.keywords.values()]
        if name not in _NOT_KEEPING and any(isinstance(value, (Function, Partial)) for value in given):
            for value in given:  # `Thread(target=work, args=(job,))`
                self.lose_container(value)
        if name in _IN_PLACE and given:
            self.lose_container(given[0])
        if name == "operator.methodcaller" and given:
            asked = given[0].value if isinstance(given[0], Constant) else None
            if asked is None or asked in MODULE_CASTS:
                self.cast_in_hand(UNKNOWN, External(f"torch.nn.Module.{asked}"))
        called = _CALLED_BY.get(name)
        for value in arguments.args if called is not None else ():
            made = self.first_of(value, called or ())
            if made is not None and name in _GIVEN:
                return made
        if name == "builtins.iter" and len(arguments.args) == 1 and isinstance(arguments.args[0], Instance):
            return Iteration(self.item_of(arguments.args[0]))
        return super().external_call(name, arguments)

    def each(self, node: ast.AST) -> Value:
        made = super().each(node)
        if isinstance(node, ast.FormattedValue):
            self.first_of(self.quietly(node.value), _TEXT)
        return made

    def tested(self, test: ast.expr) -> None:
        super().tested(test)
        self.asked_for_truth(test)

    def if_(self, node: ast.If) -> None:
        self.asked_for_truth(node.test)
        super().if_(node)

    def asked_for_truth(self, test: ast.expr) -> None:
        """Objects stand in a test for themselves: they say whether they are true."""
        for part in _tested_for_themselves(test):
            self.first_of(self.quietly(part), _UNARY[ast.Not])

    # -- stacks of contexts

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        if method in ("enter_context", "enter_async_context") and len(arguments.args) == 1 and not _is_object(receiver):
            context = arguments.args[0]
            for choice in options(context):
                leaving = choice.info.method("__exit__") if isinstance(choice, Instance) else None
                if leaving is not None:
                    self.hand_over(Function(leaving, choice))
            made = self.special(context, "__enter__")
            if made is not None:
                return "", made
        return super().called(node, callee, receiver, method, arguments)


def _is_object(value: Value) -> bool:
    """May it be an object of a class of the program?"""
    return any(isinstance(choice, (Instance, Module)) and choice.info is not None for choice in options(value))


def _tested_for_themselves(test: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes that a test asks whether they are true."""
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _tested_for_themselves(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _tested_for_themselves(test.operand)
    elif isinstance(test, (ast.Name, ast.Attribute, ast.NamedExpr)):
        yield test
