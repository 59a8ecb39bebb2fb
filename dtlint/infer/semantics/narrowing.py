"""What a test tells of variables in the branch where it holds, and in the one where it does not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.context import NeverReturns
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Array,
    Bound,
    Const,
    Dtype,
    External,
    Instance,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    present,
)
from dtlint.infer.models.enumerations import is_enumeration
from dtlint.infer.models.registry import MODELS, is_opaque
from dtlint.infer.semantics.branches import alternatives

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context
    from dtlint.infer.domain.values import Address

__all__ = ["is_instance", "narrow"]


def narrow(ctx: Context, test: ast.expr, holds: bool) -> None:
    """Restrict the variables that a test speaks of to what they can be where it holds, or where it does not.

    Raises:
        NeverReturns: no value is left, so that the branch cannot run.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(ctx, test.operand, not holds)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) is holds:
            for value in test.values:
                narrow(ctx, value, holds)
        elif not alternatives(
            ctx, [_deciding(ctx, test.values[: place + 1], holds) for place in range(len(test.values))]
        ):
            raise NeverReturns
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_comparison(ctx, test, holds)
    elif isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        _narrow_call(ctx, test, holds)
    elif isinstance(test, (ast.Name, ast.Attribute)):
        _keep(ctx, test, lambda value: ctx.semantics.truth(ctx, value) is not (not holds))


def forget(ctx: Context, test: ast.expr) -> None:
    """Forget what a test asks of: names and attributes that are taken for true, compared, or asked for what they are."""
    waiting: list[ast.expr] = [test]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.UnaryOp):
            waiting.append(part.operand)
        elif isinstance(part, ast.BoolOp):
            waiting += part.values
        elif isinstance(part, ast.Compare):
            waiting.append(part.left)
        elif isinstance(part, ast.Call):
            waiting += part.args[:1]
        elif isinstance(part, (ast.Name, ast.Attribute)):
            cell = _cell(ctx, part, True)
            if cell is not None and ctx.store.read(*cell) is not None:
                ctx.store.overwrite(*cell, TOP)


def _deciding(ctx: Context, tests: list[ast.expr], holds: bool) -> Callable[[], bool]:
    """The path on which the last of several tests decides `or`, or `and`: those before it do not."""

    def run() -> bool:
        for test in tests[:-1]:
            narrow(ctx, test, not holds)
        narrow(ctx, tests[-1], holds)
        return True

    return run


def _narrow_comparison(ctx: Context, test: ast.Compare, holds: bool) -> None:
    operator, right = test.ops[0], test.comparators[0]
    if isinstance(operator, (ast.IsNot, ast.NotEq, ast.NotIn)):
        holds = not holds
    subject: ast.expr = test.left
    if isinstance(subject, ast.NamedExpr):
        subject = subject.target
    if isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant):
        wanted = Const(right.value)
        identity = isinstance(operator, (ast.Is, ast.IsNot))

        def restricted(value: Value) -> Value | None:
            if not holds:
                return value if value != wanted else None
            if identity and isinstance(value, Unknown):
                return wanted
            return value if _may_equal(value, wanted, identity) else None

        _restrict(ctx, subject, restricted)
    elif isinstance(operator, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        _narrow_dtype(ctx, subject, [right], holds)
    elif isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        _narrow_dtype(ctx, subject, right.elts, holds)


def _narrow_dtype(ctx: Context, subject: ast.expr, wanted: list[ast.expr], holds: bool) -> None:
    """`x.dtype == torch.float16`, `x.dtype in (...)`, and `dtype == ...` of a dtype under a name."""
    dtypes: set[str] = set()
    for node in wanted:
        value = ctx.semantics.evaluate(ctx, node)
        if not isinstance(value, Dtype) or value.dtypes is None or len(value.dtypes) != 1:
            return
        dtypes |= value.dtypes
    is_tensor = isinstance(subject, ast.Attribute) and subject.attr == "dtype"
    place: ast.expr = subject.value if isinstance(subject, ast.Attribute) and is_tensor else subject

    def restricted(value: Value) -> Value | None:
        kind = Tensor if is_tensor else Dtype
        if isinstance(value, Unknown) and is_tensor and holds:
            return Unknown(frozenset(dtypes))  # models of libraries have a dtype, too
        if not isinstance(value, kind):
            return value
        known = value.dtypes
        if known is None:
            left = frozenset(dtypes) if holds else None
        else:
            left = known & dtypes if holds else known - dtypes
            if not left:
                return None
        if not holds and known is None:
            return value
        if isinstance(value, Tensor):
            return Tensor(left, value.symbol if not holds else None, value.rank, value.range, value.device, value.extra)
        return Dtype(left)

    _restrict(ctx, place, restricted)


def _narrow_call(ctx: Context, test: ast.Call, holds: bool) -> None:
    """`isinstance(x, C)`; `callable(x)` and `hasattr(x, name)` tell nothing here."""
    assert isinstance(test.func, ast.Name)
    if test.func.id != "isinstance" or len(test.args) != 2:
        return
    kinds = ctx.semantics.evaluate(ctx, test.args[1])

    def restricted(value: Value) -> Value | None:
        known = is_instance(ctx, value, kinds)
        if known is (not holds):
            return None
        if holds and isinstance(value, Unknown) and kinds == External("torch.Tensor"):
            return Tensor(value.dtypes or None, value.symbol)
        if holds and isinstance(value, Unknown) and kinds == External("torch.dtype"):
            return Dtype(value.dtypes or None, value.symbol)
        if holds and isinstance(value, Unknown) and isinstance(kinds, ProjectClass):
            return _of_class(value, kinds)
        return value

    _restrict(ctx, test.args[0], restricted, objects=True)


def _of_class(value: Unknown, cls: ProjectClass) -> Unknown:
    """What is an object of a class, too."""
    if is_enumeration(cls) or (isinstance(value, Instance) and value.kind not in cls.definition.order):
        return value
    return Instance(value.dtypes, value.symbol, value.extra, cls)


def is_instance(ctx: Context, value: Value, kind: Value) -> bool | None:
    """`isinstance(value, kind)`, where that can be told."""
    if isinstance(kind, Tuple):
        answers = [is_instance(ctx, value, one) for one in kind.items]
        return True if True in answers else None if None in answers else False
    answers = [ctx.modules.is_instance(ctx, one, kind) for one in choices(value)]
    return answers[0] if len(set(answers)) == 1 else None


def _may_equal(value: Value, wanted: Const, identity: bool) -> bool:
    """Can a value be that constant?"""
    if isinstance(value, Const):
        return value == wanted or (not identity and value.value == wanted.value)
    if (isinstance(value, Bound) and value.name not in MODELS) or is_opaque(value):
        return True  # an attribute of something that is not seen
    if wanted.value is None:
        return isinstance(value, Unknown)
    if isinstance(wanted.value, str):
        return isinstance(value, Unknown)
    return not isinstance(value, (Tensor, Array, Dtype)) or not identity


def _keep(ctx: Context, subject: ast.expr, keeps: Callable[[Value], bool]) -> None:
    _restrict(ctx, subject, lambda value: value if keeps(value) else None)


def _restrict(
    ctx: Context, subject: ast.expr, restricted: Callable[[Value], Value | None], *, objects: bool = False
) -> None:
    """Replace what a name or an attribute of one is by what is left of it.

    Args:
        objects: an attribute that is one object is restricted as well.
    """
    cell = _cell(ctx, subject, objects)
    if cell is None:
        return
    address, field = cell
    known = ctx.store.read(address, field)
    value = None if known is None else present(known)
    if value is None:
        return
    left = [one for one in (restricted(choice) for choice in choices(value)) if one is not None]
    if not left:
        raise NeverReturns
    result = join_all(left)
    if result is not None and result != value:
        ctx.store.overwrite(address, field, result)


def _cell(ctx: Context, subject: ast.expr, objects: bool) -> tuple[Address, str] | None:
    """The cell of a local name, or of an attribute of an object that stands for one."""
    if isinstance(subject, ast.NamedExpr):
        subject = subject.target
    if isinstance(subject, ast.Name):
        address = ctx.frame.address
        return (address, subject.id) if ctx.store.read(address, subject.id) is not None else None
    if isinstance(subject, ast.Attribute):
        owner = _quiet(ctx, subject.value)
        if isinstance(owner, Ref) and not ctx.store.is_several(owner.address):
            known = ctx.store.read(owner.address, subject.attr)
            if known is not None and (objects or not isinstance(known, Ref)):
                return owner.address, subject.attr
    return None


def _quiet(ctx: Context, node: ast.expr) -> Value | None:
    """The object that a name, or attributes of one, stand for: read from cells, so that nothing is run."""
    if isinstance(node, ast.Name):
        value = ctx.store.read(ctx.frame.address, node.id)
        return None if value is None else present(value)
    if isinstance(node, ast.Attribute):
        owner = _quiet(ctx, node.value)
        if isinstance(owner, Ref):
            value = ctx.store.read(owner.address, node.attr)
            return None if value is None else present(value)
    return None
