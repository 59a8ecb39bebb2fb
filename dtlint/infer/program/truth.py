"""Tests whose outcome is known: what they decide is not read on the other side, and narrows names on this one."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import Category
from dtlint.infer.conditions import atoms
from dtlint.infer.events import Condition
from dtlint.infer.program.containers import Containers, one_of
from dtlint.infer.program.functions import ANYBODY
from dtlint.infer.program.instances import is_open_book
from dtlint.infer.program.promises import Declared
from dtlint.infer.scopes import is_module_class
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Class,
    Constant,
    Device,
    Dtype,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    Number,
    Optimizer,
    Partial,
    Table,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from dtlint.infer.program_state import State
    from dtlint.infer.scopes import ClassInfo

__all__ = ["Truth", "truth_of"]


class Truth(Containers):
    """An interpreter that takes the branch that is taken, wherever a test can be decided."""

    def truth(self, node: ast.expr) -> bool | None:
        """Is the test true on every path that gets here, false on every one, or does that depend?"""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            decisive = isinstance(node.op, ast.Or)
            truths = [self.truth(operand) for operand in node.values]
            if decisive in truths:
                return decisive
            return None if None in truths else not decisive
        return self.truth_of_value(self.quietly(node))

    def truth_of_value(self, value: Value) -> bool | None:
        """Is the value true in a test?"""
        truths = {self.truth_of_object(choice) for choice in options(value)}
        return truths.pop() if len(truths) == 1 else None

    def truth_of_object(self, value: Value) -> bool | None:
        if isinstance(value, (Module, Instance)) and value.info is not None:
            spoken = any(value.info.method(name) is not None for name in ("__bool__", "__len__"))
            return None if spoken or not is_open_book(value.info) else True
        return truth_of(value)

    def if_(self, node: ast.If) -> None:
        truth = self.truth(node.test)
        if truth is None:
            self.undecided(node)
            return
        self.value(node.test)
        self.resume(super().branch(self.flow.state, node.body if truth else node.orelse, Condition(node.test, truth)))

    def outcome(self, pattern: ast.pattern, subject: Value) -> bool | None:
        answers = {self.outcome_of(pattern, choice) for choice in options(subject)}
        return answers.pop() if len(answers) == 1 else None

    def outcome_of(self, pattern: ast.pattern, subject: Value) -> bool | None:
        """Does a pattern match one value?"""
        if isinstance(pattern, ast.MatchAs):
            return True if pattern.pattern is None else self.outcome_of(pattern.pattern, subject)
        if isinstance(pattern, ast.MatchOr):
            found = [self.outcome_of(part, subject) for part in pattern.patterns]
            return True if True in found else None if None in found else False
        if isinstance(subject, (Tensor, Unknown)):
            return None
        if isinstance(pattern, ast.MatchSingleton):
            return _is_same(subject, Constant(pattern.value))
        if isinstance(pattern, ast.MatchValue):
            answers = {_compared(ast.Eq(), subject, value) for value in options(self.quietly(pattern.value))}
            return answers.pop() if len(answers) == 1 else None
        if isinstance(pattern, ast.MatchClass):
            answers = {_is_instance(subject, kind) for kind in options(self.quietly(pattern.cls))}
            answer = answers.pop() if len(answers) == 1 else None
            return None if answer and (pattern.patterns or pattern.kwd_patterns) else answer
        return None

    def branch(self, start: State, statements: list[ast.stmt], condition: Condition | None = None) -> State | None:
        outer = self.doubt()
        end = super().branch(start, statements, condition)
        self.doubts = outer
        return end

    def undecided(self, node: ast.If) -> None:
        """Both branches, and what holds behind them."""
        self.value(node.test)
        start = self.flow.state
        body = self.branch(start, node.body, Condition(node.test, True))
        other = self.branch(start, node.orelse, Condition(node.test, False))
        self.resume(body, other)
        if (body is None) is not (other is None):
            self.flow.conditions.append(Condition(node.test, other is None))

    def narrow(self, condition: Condition) -> None:
        for plain in atoms([condition]):
            super().narrow(plain)

    def narrow_kind(self, subject: ast.expr, kind: ast.expr) -> None:
        """`isinstance(x, C)` holds: of several choices, those that can be."""
        if isinstance(subject, ast.Name):
            known, tested = self.quietly(subject), self.quietly(kind)
            if isinstance(known, Either):
                left = tuple(choice for choice in known.choices if _is_instance(choice, tested) is not False)
                if left and len(left) < len(known.choices):
                    self.flow.state.names[subject.id] = left[0] if len(left) == 1 else Either(left)
                return
            if isinstance(known, Unknown) and isinstance(tested, Class):
                self.flow.state.names[subject.id] = _some(tested.info)
                return
        super().narrow_kind(subject, kind)

    def either(self, node: ast.IfExp) -> Value:
        truth = self.truth(node.test)
        if truth is not None:
            self.value(node.test)
            return self.value(node.body if truth else node.orelse)
        self.value(node.test)
        return join(self.supposing(node.test, True, node.body), self.supposing(node.test, False, node.orelse))

    def supposing(self, test: ast.expr, holds: bool, node: ast.expr) -> Value:
        """The value of an expression where a test has that outcome. What it binds is bound behind it too."""
        before = dict(self.flow.state.names)
        condition = Condition(test, holds)
        self.narrow(condition)
        narrowed = {name: value for name, value in self.flow.state.names.items() if before.get(name) is not value}
        outer = self.doubt()
        self.flow.conditions.append(condition)
        value = self.if_reached(node)
        self.flow.conditions.pop()
        self.doubts = outer
        names = self.flow.state.names
        for name, now in narrowed.items():
            if names.get(name) is now and name in before:
                names[name] = before[name]
        return value

    def logic(self, node: ast.BoolOp) -> Value:
        """`and`, `or`: operands are evaluated until one decides."""
        decisive = isinstance(node.op, ast.Or)
        found: list[Value] = []
        done: list[ast.expr] = []
        for operand in node.values:
            if done:
                so_far = done[0] if len(done) == 1 else ast.BoolOp(node.op, list(done))
                value = self.supposing(so_far, not decisive, operand)
            else:
                value = self.value(operand)
            done.append(operand)
            truth = self.truth_of_value(value)
            if truth is (not decisive) and operand is not node.values[-1]:
                continue
            if truth is decisive:
                return Constant(False) if not decisive and found else one_of([*found, value])
            found.append(_where(value, decisive) if operand is not node.values[-1] else value)
        return one_of(found)

    def compared(self, node: ast.Compare, operator: ast.cmpop, left: Value, right: Value, result: Value) -> Value:
        result = super().compared(node, operator, left, right, result)
        if len(node.ops) != 1 or isinstance(result, Tensor):
            return result
        answers = {_compared(operator, one, other) for one in options(left) for other in options(right)}
        answer = answers.pop() if len(answers) == 1 else None
        if answer is not None:
            return Constant(answer)
        return _TRUTH if isinstance(operator, _ALWAYS_TRUTHS) else result

    def negated(self, node: ast.UnaryOp, operand: Value, result: Value) -> Value:
        result = super().negated(node, operand, result)
        return _TRUTH if isinstance(node.op, ast.Not) and result == UNKNOWN else result

    def is_instance(self, value: Value, kind: Value) -> Value:
        """`isinstance(value, kind)`."""
        answers = {_is_instance(choice, kind) for choice in options(value)}
        answer = answers.pop() if len(answers) == 1 else None
        return _TRUTH if answer is None else Constant(answer)


_TRUTH = Number(Category.BOOL)
"""True or False: no tensor, and no module."""
_ALWAYS_TRUTHS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
"""Comparisons that give one of these, whatever is compared."""


def _some(info: ClassInfo) -> Value:
    """An instance of a class of which nothing else is known."""
    return (
        Module(info.node.name, f"{ANYBODY}{info.node.name}@{info.node.lineno}", info)
        if info.is_module
        else Declared(info)
    )


def truth_of(value: Value) -> bool | None:
    """Is the value true in a test? None when that depends."""
    if isinstance(value, (Function, Class, Namespace, Partial, Dtype, Device, Optimizer)):
        return True
    if isinstance(value, Module):
        return None if value.info is not None or value.name.rpartition(".")[2] in _WITH_LENGTH else True
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, Items) and value.items:
        return True
    if isinstance(value, Table) and value.rest is None:
        return True if value.items.keys() - value.perhaps else None if value.items else False
    return None


_WITH_LENGTH = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
"""Modules of torch that are false when they are empty."""


def _where(value: Value, truth: bool) -> Value:
    """Of several choices, those that may have that truth."""
    left = [choice for choice in options(value) if truth_of(choice) is not (not truth)]
    return one_of(left) if left else value


def _compared(operator: ast.cmpop, left: Value, right: Value) -> bool | None:
    """The outcome of a comparison; None when it depends."""
    if isinstance(operator, (ast.NotEq, ast.IsNot, ast.NotIn)):
        opposite = {ast.NotEq: ast.Eq, ast.IsNot: ast.Is, ast.NotIn: ast.In}[type(operator)]
        answer = _compared(opposite(), left, right)
        return None if answer is None else not answer
    if isinstance(operator, ast.Is):
        return _is_same(left, right)
    if isinstance(operator, ast.In):
        return _is_in(left, right)
    if isinstance(left, Dtype) and isinstance(right, Dtype) and isinstance(operator, ast.Eq):
        return left.name == right.name
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _ordered(operator, left.value, right.value)
    if isinstance(operator, ast.Eq) and NONE in (left, right):
        other = left if right == NONE else right
        return False if isinstance(other, (Dtype, Module, Items, Table, Function, Class)) else None
    return None


def _ordered(operator: ast.cmpop, left: Any, right: Any) -> bool | None:
    try:
        match operator:
            case ast.Eq():
                return bool(left == right)
            case ast.Lt():
                return bool(left < right)
            case ast.LtE():
                return bool(left <= right)
            case ast.Gt():
                return bool(left > right)
            case ast.GtE():
                return bool(left >= right)
    except TypeError:
        return None
    return None


def _is_same(left: Value, right: Value) -> bool | None:
    """`left is right`, where one of them is None, a truth, or a class."""
    if isinstance(left, Constant) and isinstance(right, Constant):
        singular = (bool, type(None))
        if isinstance(left.value, singular) or isinstance(right.value, singular):
            return left.value is right.value
        return None
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Constant) and (one.value is None or isinstance(one.value, bool)):
            return False if isinstance(other, _SURELY_THERE) else None
    return None


_SURELY_THERE = (Tensor, Module, Instance, Class, Function, Items, Table, Dtype, Device, Namespace, Partial, Optimizer)


def _is_in(left: Value, right: Value) -> bool | None:
    if isinstance(right, Items):
        if isinstance(left, Dtype):
            return left in right.items if all(isinstance(item, Dtype) for item in right.items) else None
        if not isinstance(left, Constant) or not all(isinstance(item, Constant) for item in right.items):
            return None
        return any(item.value == left.value for item in right.items)  # type: ignore[attr-defined]
    if isinstance(right, Table) and isinstance(left, Constant) and isinstance(left.value, Hashable):
        if left.value in right.items:
            return None if left.value in right.perhaps else True
        return False if right.rest is None else None
    if isinstance(right, Constant) and isinstance(right.value, str) and isinstance(left, Constant):
        return left.value in right.value if isinstance(left.value, str) else None
    return None


_BUILTIN_KINDS: dict[str, type] = {
    f"builtins.{kind.__name__}": kind for kind in (bool, int, float, complex, str, bytes)
}


def _is_instance(value: Value, kind: Value) -> bool | None:
    """Is the value an instance of that class, or of one of those?"""
    if isinstance(kind, Items):
        answers = [_is_instance(value, one) for one in kind.items]
        return True if True in answers else None if None in answers else False
    if isinstance(value, Constant) and isinstance(kind, External) and kind.name in _BUILTIN_KINDS:
        return isinstance(value.value, _BUILTIN_KINDS[kind.name])
    if isinstance(value, Constant) and value.value is None:
        return False if isinstance(kind, (External, Class)) and kind != External("builtins.object") else None
    if isinstance(value, (Module, Instance)) and isinstance(kind, Class) and value.info is not None:
        if kind.info in value.info.lineage:
            return True
        known = all(isinstance(base, (Class, External)) for parent in value.info.lineage for base in parent.bases)
        return False if known else None
    if isinstance(kind, External):
        return _is_external_instance(value, kind.name)
    if isinstance(kind, Class) and isinstance(value, (Tensor, Dtype, Constant, Number, Table, Function)):
        # A project's own tensor classes are made by it, and are instances; what is a Tensor here is torch's.
        return False if not kind.info.is_module and not isinstance(value, Tensor) else None
    return None


def _is_plain_module(info: ClassInfo) -> bool:
    """Does a class inherit nothing from outside the program but nn.Module itself?"""
    outside = [base for parent in info.lineage for base in parent.bases if not isinstance(base, Class)]
    return is_open_book(info) and all(base == External("torch.nn.Module") for base in outside)


def _inherits(module: Module, name: str) -> bool:
    """Does the class of a module inherit a layer of torch?"""
    lineage = () if module.info is None else module.info.lineage
    return any(base == External(name) for parent in lineage for base in parent.bases)


def _is_surely_other(made: str, asked: str) -> bool:
    """Is a layer of torch of one class certainly no instance of another: is neither of them a base class, nor lazy?"""
    names = (made.rpartition(".")[2], asked.rpartition(".")[2])
    return names[0] != names[1] and not any(name in _BASES or name.startswith(("_", "Lazy")) for name in names)


_BASES = frozenset({"Hardtanh", "Module", "NLLLoss", "RNNBase", "RNNCellBase", "Upsample"})
"""Public classes of torch.nn that others there inherit."""


def _is_external_instance(value: Value, name: str) -> bool | None:
    if name == "torch.Tensor":
        if isinstance(value, Tensor):
            return True
        return False if isinstance(value, (Constant, Items, Table, Module, Instance, Dtype, Function, Class)) else None
    if name == "torch.nn.Module" or is_module_class(name):
        if isinstance(value, Module):
            if name == "torch.nn.Module" or value.name == name or _inherits(value, name):
                return True
            plain = _is_plain_module(value.info) if value.info is not None else _is_surely_other(value.name, name)
            return False if plain else None
        if isinstance(value, Instance):
            return False if is_open_book(value.info) else None
        return False if isinstance(value, (Tensor, Constant, Items, Table, Dtype)) else None
    if name == "torch.dtype":
        return True if isinstance(value, Dtype) else False if isinstance(value, (Constant, Tensor, Items)) else None
    if name in _BUILTIN_KINDS:
        known = (Tensor, Module, Dtype, Items, Table, Function, Class, Iteration)
        return False if isinstance(value, known) else None
    if name in ("builtins.list", "builtins.tuple", "builtins.set") and isinstance(value, Instance):
        return False if is_open_book(value.info) else None
    if isinstance(value, External) and is_module_class(value.name):  # the class itself
        return False if name.startswith("builtins.") and name not in ("builtins.type", "builtins.object") else None
    if name in ("builtins.list", "builtins.tuple", "builtins.set"):
        return False if isinstance(value, (Tensor, Module, Dtype, Constant, Table, Function, Class)) else None
    if name in ("builtins.dict",):
        return (
            True
            if isinstance(value, Table)
            else False
            if isinstance(value, (Tensor, Module, Dtype, Constant, Items))
            else None
        )
    return None
