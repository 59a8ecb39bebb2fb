"""Operators on values: tensors by promotion and the operator table, Python's numbers and texts as Python has them."""

from __future__ import annotations

import ast
import operator as python
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns, Unfit
from dtlint.infer.domain.interval import ANY
from dtlint.infer.domain.lattice import category_of, join, join_all, number_of
from dtlint.infer.domain.values import (
    NO_TENSOR,
    TOP,
    Array,
    Bound,
    Const,
    Dtype,
    External,
    Function,
    Many,
    Mapping,
    Namespace,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models import arrays, enumerations, plain_tensors, tensors
from dtlint.infer.models.mappings import is_key, merged
from dtlint.infer.models.module_views import content_of_view, is_view
from dtlint.infer.models.registry import MODELS, is_opaque
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["augmented", "binary", "compare", "unary"]

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", python.add),
    ast.Sub: ("sub", python.sub),
    ast.Mult: ("mul", python.mul),
    ast.Div: ("truediv", python.truediv),
    ast.FloorDiv: ("floordiv", python.floordiv),
    ast.Mod: ("mod", python.mod),
    ast.Pow: ("pow", python.pow),
    ast.MatMult: ("matmul", python.matmul),
    ast.BitAnd: ("and", python.and_),
    ast.BitOr: ("or", python.or_),
    ast.BitXor: ("xor", python.xor),
    ast.LShift: ("lshift", python.lshift),
    ast.RShift: ("rshift", python.rshift),
}
"""Each operator's name in `__add__` and the like, and its function."""

_LARGEST = 10**9
_MOST_LISTED = 32


def binary(ctx: Context, operator: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
    """`left + right`, and the like.

    Raises:
        NeverReturns: it raises.
    """
    left, right = (plain_tensors.as_operand(plain_tensors.plain(ctx, one)) for one in (left, right))
    ones, others = choices(left), choices(right)
    if len(ones) * len(others) == 1:
        return _binary(ctx, operator, left, right, node)
    result: Value | None = None
    for one in ones:
        for other in others:
            if _is_refused(one, other):
                continue
            try:
                value = _binary(ctx, operator, one, other, node)
            except NeverReturns:
                continue
            result = value if result is None else join(result, value)
    if result is None:
        raise Unfit
    return result


def _is_refused(one: Value, other: Value) -> bool:
    """Is one of them None, for which tensors and numbers have no operator?"""
    if isinstance(one, Const) and one.value is None:
        one, other = other, one
    is_none = isinstance(other, Const) and other.value is None
    return is_none and (isinstance(one, Tensor) or category_of(one) is not None)


def _binary(ctx: Context, operator: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
    name, function = _BINARY[operator]
    left, right = enumerations.plain(ctx, left), enumerations.plain(ctx, right)
    if operator is ast.BitOr and _is_type(left) and _is_type(right):
        return Tuple(
            tuple(one for each in (left, right) for one in (each.items if isinstance(each, Tuple) else (each,)))
        )
    own = _special(ctx, left, f"__{name}__", right, node)
    if own is None or _NOT_IMPLEMENTED in choices(own):
        other = _special(ctx, right, f"__r{name}__", left, node)
        own = other if own is None or own == _NOT_IMPLEMENTED else join(_without(own), TOP if other is None else other)
    if own is not None:
        return own
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return tensors.operator_result(ctx, name, left, right)
    if isinstance(left, Array) or isinstance(right, Array):
        return arrays.operator_result(ctx, name, left, right)
    if isinstance(left, Const) and isinstance(right, Const):
        known = _of_constants(function, left.value, right.value)
        if known is not None:
            return known
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return tensors.unknown_result(ctx, name, left, right)
    numbers = number_of(left), number_of(right)
    if numbers[0] is not None and numbers[1] is not None:
        return _of_numbers(name, numbers[0], numbers[1])
    return _of_containers(ctx, name, left, right, node)


_NOT_IMPLEMENTED = External("builtins.NotImplemented")


def _without(value: Value) -> Value:
    return join_all(one for one in choices(value) if one != _NOT_IMPLEMENTED) or TOP


def _is_type(value: Value) -> bool:
    """Can it stand in `int | None`?"""
    if isinstance(value, Tuple):
        return bool(value.items) and all(map(_is_type, value.items))
    return isinstance(value, (External, ProjectClass)) or (isinstance(value, Const) and value.value is None)


def _of_constants(function: Callable[[Any, Any], Any], left: object, right: object) -> Value | None:
    """The operator run on two constants; None where it could take long, or is not for these."""
    plain = (int, float, bool, str, complex)
    if not isinstance(left, plain) or not isinstance(right, plain):
        return None
    large = isinstance(right, int) and abs(right) > 64 and function in (python.pow, python.lshift)
    if large or ((isinstance(left, str) or isinstance(right, str)) and function is not python.add):
        if isinstance(left, str) and function is python.mod:
            return NO_TENSOR
        return None if large else NO_TENSOR
    try:
        result = function(left, right)
    except ZeroDivisionError:
        raise Unfit from None
    except (TypeError, ValueError, OverflowError):
        return None
    return Const(result) if not isinstance(result, int) or abs(result) < _LARGEST**4 else Number(Category.INTEGER)


def _of_numbers(name: str, left: Number, right: Number) -> Value:
    """The operator on two numbers of known categories."""
    category = max(left.category, right.category)
    if name == "truediv":
        category = max(category, Category.FLOAT)
    elif category is Category.BOOL and name not in ("and", "or", "xor"):
        category = Category.INTEGER
    elif name == "pow" and category is Category.INTEGER and right.range.low < 0:
        return TOP if right.range.high >= 0 else Number(Category.FLOAT)
    if category is Category.COMPLEX:
        return Number(category)
    if name in ("add", "sub", "mul"):
        one, other = left.range, right.range
        made = {"add": one.add, "sub": one.subtract, "mul": one.multiply}[name](other)
        return Number(category, made)
    if name == "truediv":
        return Number(category, left.range.divide(right.range))
    return Number(category, ANY)


def _of_containers(ctx: Context, name: str, left: Value, right: Value, node: ast.AST) -> Value:
    """`[a] + [b]`, `(a,) + rest`, `[x] * n`, `d | e`."""
    contents = _content(ctx, left), _content(ctx, right)
    if name == "add" and contents[0] is not None and contents[1] is not None:
        made = concatenated(contents[0], contents[1])
        return ctx.allocate(node, "builtins.list", made) if isinstance(left, Ref) else made
    if name == "mul":
        content, times = (contents[0], right) if contents[0] is not None else (contents[1], left)
        if content is not None:
            repeated = _repeated(content, times)
            is_list = isinstance(left, Ref) or isinstance(right, Ref)
            return ctx.allocate(node, "builtins.list", repeated) if is_list else repeated
    if name == "or" and isinstance(left, Ref) and isinstance(right, Ref):
        mappings = ctx.store.read(left.address, CONTENT), ctx.store.read(right.address, CONTENT)
        if isinstance(mappings[0], Mapping) and isinstance(mappings[1], Mapping):
            both = dict(mappings[0].items) | dict(mappings[1].items)
            rest = mappings[0].rest or mappings[1].rest
            return ctx.allocate(node, "builtins.dict", Mapping(tuple(both.items()), rest))
    return TOP


def _content(ctx: Context, value: Value) -> Tuple | Many | None:
    """What a list or a tuple holds."""
    if isinstance(value, Ref):
        content = ctx.store.read(value.address, CONTENT)
        is_list = value.address.kind in ("builtins.list", "collections.deque")
        return content if is_list and isinstance(content, (Tuple, Many)) else None
    return value if isinstance(value, (Tuple, Many)) else None


def concatenated(left: Tuple | Many, right: Tuple | Many) -> Tuple | Many:
    """One sequence behind another."""
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        return Tuple((*left.items, *right.items))
    items = [item for one in (left, right) for item in (one.items if isinstance(one, Tuple) else (one.item,))]
    result: Value | None = None
    for item in items:
        result = item if result is None else join(result, item)
    return Many(TOP if result is None else result)


def _repeated(content: Tuple | Many, given: Value) -> Tuple | Many:
    times = given.value if isinstance(given, Const) else None
    if isinstance(content, Tuple) and isinstance(times, int) and len(content.items) * times <= _MOST_LISTED:
        return Tuple(content.items * times)
    if isinstance(content, Many):
        return content
    return concatenated(Many(content.items[0]), content) if content.items else content


def _special(ctx: Context, value: Value, name: str, other: Value, node: ast.AST) -> Value | None:
    """What a method of an object's class gives, as `__add__`; None where there is none."""
    if not isinstance(value, Ref) or isinstance(value.address.kind, str):
        return None
    method = ctx.modules.class_attribute(ctx, value.address.kind.definition.order, name)
    if not isinstance(method, Function):
        return None
    bound = Function(method.definition, method.frame, value)
    return ctx.semantics.call(ctx, bound, Arguments([other], {}, True, node))


def augmented(ctx: Context, operator: type[ast.operator], known: Value, given: Value, node: ast.AST) -> Value:
    """`x += y`: in place for tensors, which keep their dtype, and for lists."""
    known, given = plain_tensors.plain(ctx, known), plain_tensors.plain(ctx, given)
    name = _BINARY[operator][0]
    if isinstance(known, Tensor) and not isinstance(given, Array) and name != "matmul":  # there is no `__imatmul__`
        return tensors.in_place_result(ctx, name, known, given)
    if isinstance(known, Array):
        return arrays.in_place_result(ctx, name, known, given)
    if isinstance(known, Ref) and known.address.kind == "builtins.list" and name == "add":
        content = ctx.store.read(known.address, CONTENT)
        more = ctx.semantics.items(ctx, given, node)
        if isinstance(content, (Tuple, Many)) and isinstance(more, (Tuple, Many)):
            ctx.store.write(known.address, CONTENT, concatenated(content, more))
        return known
    if isinstance(known, Ref) and known.address.kind in _LISTS_OF_MODULES and name == "add":
        extend = Bound(known, f"{known.address.kind}.extend")
        return ctx.semantics.call(ctx, extend, Arguments([given], {}, True, node))
    if isinstance(known, Ref) and isinstance(given, Ref) and name == "or" and known.address.kind in _DICTS:
        held, others = (ctx.store.read(one.address, CONTENT) for one in (known, given))
        if isinstance(held, Mapping):
            ctx.store.write(known.address, CONTENT, merged(held, others if isinstance(others, Mapping) else None))
        return known
    own = _special(ctx, known, f"__i{name}__", given, node)
    if own is not None:
        return own
    return binary(ctx, operator, known, given, node)


_LISTS_OF_MODULES = frozenset({"torch.nn.ModuleList", "torch.nn.ParameterList"})
_DICTS = frozenset({"builtins.dict", "collections.OrderedDict", "collections.defaultdict"})


def unary(ctx: Context, operator: type[ast.unaryop], value: Value, node: ast.AST) -> Value:
    """`-x`, `~x`, `not x`."""
    value = plain_tensors.plain(ctx, value)
    if operator is ast.Not:
        known = ctx.semantics.truth(ctx, value)
        return Number(Category.BOOL) if known is None else Const(not known)
    result: Value | None = None
    for one in choices(value):
        now = _unary(ctx, operator, one, node)
        result = now if result is None else join(result, now)
    return TOP if result is None else result


def _unary(ctx: Context, operator: type[ast.unaryop], value: Value, node: ast.AST) -> Value:
    if isinstance(value, Tensor):
        return tensors.unary_result(ctx, _UNARY[operator], value)
    if isinstance(value, Array):
        return arrays.unary_result(_UNARY[operator], value)
    if isinstance(value, Unknown):
        return Unknown(value.dtypes, value.symbol)
    if isinstance(value, Const) and isinstance(value.value, (int, float, complex)):
        if operator is ast.USub:
            return Const(-value.value)
        if operator is ast.UAdd:
            return Const(+value.value)
        return Const(~value.value) if isinstance(value.value, int) else TOP
    if isinstance(value, Number):
        return Number(max(value.category, Category.INTEGER), value.range.negate() if operator is ast.USub else ANY)
    own = {"neg": "__neg__", "invert": "__invert__", "pos": "__pos__"}[_UNARY[operator]]
    if isinstance(value, Ref) and not isinstance(value.address.kind, str):
        method = ctx.semantics.attribute(ctx, value, own, node)
        if isinstance(method, Function):
            return ctx.semantics.call(ctx, method, Arguments([], {}, True, node))
    return TOP


_UNARY: dict[type[ast.unaryop], str] = {ast.USub: "neg", ast.Invert: "invert", ast.UAdd: "pos"}

_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("eq", python.eq),
    ast.NotEq: ("ne", python.ne),
    ast.Lt: ("lt", python.lt),
    ast.LtE: ("le", python.le),
    ast.Gt: ("gt", python.gt),
    ast.GtE: ("ge", python.ge),
}
_TRUTH = Number(Category.BOOL)


def compare(ctx: Context, operator: type[ast.cmpop], left: Value, right: Value, node: ast.AST) -> Value:
    """`left < right`, and the like."""
    left, right = plain_tensors.plain(ctx, left), plain_tensors.plain(ctx, right)
    answers: Value | None = None
    for one in choices(left):
        for other in choices(right):
            now = _compare(ctx, operator, one, other, node)
            answers = now if answers is None else join(answers, now)
    return TOP if answers is None else answers


def _compare(ctx: Context, operator: type[ast.cmpop], left: Value, right: Value, node: ast.AST) -> Value:
    if operator not in (ast.Is, ast.IsNot):
        left, right = enumerations.plain(ctx, left), enumerations.plain(ctx, right)
    if operator in (ast.Is, ast.IsNot):
        known = _identical(ctx, left, right)
        return _TRUTH if known is None else Const(known is (operator is ast.Is))
    if operator in (ast.In, ast.NotIn):
        own = _special(ctx, right, "__contains__", left, node)
        if own is not None:
            answer = ctx.semantics.truth(ctx, own)
            return _TRUTH if answer is None else Const(answer is (operator is ast.In))
        known = _contains(ctx, right, left)
        return _TRUTH if known is None else Const(known is (operator is ast.In))
    name, function = _COMPARED[operator]
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return tensors.comparison_result(ctx, name, left, right)
    if isinstance(left, Array) or isinstance(right, Array):
        return arrays.comparison_result(ctx, left, right)
    if isinstance(left, Const) and isinstance(right, Const):
        try:
            return Const(bool(function(left.value, right.value)))
        except TypeError:
            return _TRUTH
    own = _special(ctx, left, f"__{name}__", right, node)
    if own is None and operator is ast.NotEq:
        equal = _special(ctx, left, "__eq__", right, node)
        known = None if equal is None else ctx.semantics.truth(ctx, equal)
        own = None if equal is None else _TRUTH if known is None else Const(not known)
    if own is not None and _NOT_IMPLEMENTED not in choices(own):
        return own
    if operator in (ast.Eq, ast.NotEq):
        known = _equal(left, right)
        if known is not None:
            return Const(known is (operator is ast.Eq))
    numbers = number_of(left), number_of(right)
    if numbers[0] is not None and numbers[1] is not None:
        decided = _ordered(name, numbers[0], numbers[1])
        return _TRUTH if decided is None else Const(decided)
    if isinstance(left, Unknown) and left.dtypes != frozenset() and not isinstance(right, Const):
        return Unknown(frozenset({"bool"}))
    if isinstance(right, Unknown) and right.dtypes != frozenset() and not isinstance(left, Const):
        return Unknown(frozenset({"bool"}))
    if isinstance(left, Unknown) and left.dtypes != frozenset() and category_of(right) is not None:
        return Unknown(frozenset({"bool"}))
    return _TRUTH


def _ordered(name: str, left: Number, right: Number) -> bool | None:
    one, other = left.range, right.range
    if one.nan or other.nan:
        return None
    if name == "lt":
        return True if one.high < other.low else False if one.low >= other.high else None
    if name == "ge":
        return True if one.low >= other.high else False if one.high < other.low else None
    if name == "gt":
        return True if one.low > other.high else False if one.high <= other.low else None
    if name == "le":
        return True if one.high <= other.low else False if one.low > other.high else None
    return None


def _identical(ctx: Context, left: Value, right: Value) -> bool | None:
    """`left is right`, where that is certain."""
    if isinstance(left, Const) and isinstance(right, Const):
        singletons = (None, True, False, Ellipsis)
        if any(left.value is one for one in singletons) or any(right.value is one for one in singletons):
            return left.value is right.value
        return None
    if any(isinstance(one, Bound) and one.name not in MODELS and not is_view(one) for one in (left, right)):
        return None  # an attribute of something that is not seen
    if is_opaque(left) or is_opaque(right):
        return True if left == right else None
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        certain = (left, right) if isinstance(right, Const) else (right, left)
        if isinstance(certain[1], Const) and certain[1].value is None and isinstance(certain[0], Unknown):
            return None
        return None
    if isinstance(left, Const) or isinstance(right, Const):
        if isinstance(left, Number) or isinstance(right, Number):
            return False if Const(None) in (left, right) else None
        return False
    if isinstance(left, Ref) and isinstance(right, Ref):
        if left.address is not right.address:
            return False
        return None if ctx.store.is_several(left.address) else True
    if isinstance(left, Ref) and isinstance(right, (ProjectClass, External, Function, Namespace, Dtype)):
        return False
    return _equal(left, right)


_NAMED = ("External", "ProjectClass", "Function", "Namespace")


def _equal(left: Value, right: Value) -> bool | None:
    """`left == right`, where that is certain."""
    if isinstance(left, Dtype) and isinstance(right, Dtype):
        if left.dtypes is None or right.dtypes is None:
            return True if left.symbol is not None and left.symbol == right.symbol else None
        if not left.dtypes & right.dtypes:
            return False
        return True if len(left.dtypes | right.dtypes) == 1 else None
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return None
    if isinstance(left, Ref) and isinstance(right, Ref):
        return left == right if enumerations.is_member(left) and enumerations.is_member(right) else None
    if type(left).__name__ in _NAMED and type(right).__name__ in _NAMED:
        return True if left == right else None if is_opaque(left) or is_opaque(right) else False
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        if len(left.items) != len(right.items):
            return False
        answers = [_equal_items(one, other) for one, other in zip(left.items, right.items, strict=True)]
        return False if False in answers else None if None in answers else True
    if any(isinstance(one, Dtype) and one.dtypes is None for one in (left, right)):
        return None  # perhaps that of an array, which equals its name
    if {type(left), type(right)} <= {Const, Dtype, Tuple, Number} and type(left) is not type(right):
        return None if Number in (type(left), type(right)) else False
    return None


def _equal_items(left: Value, right: Value) -> bool | None:
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    return _equal(left, right)


def _contains(ctx: Context, container: Value, item: Value) -> bool | None:
    """`item in container`, where that is certain."""
    content: Value | None = container
    if isinstance(container, Ref):
        content = ctx.store.read(container.address, CONTENT)
    elif isinstance(container, Bound) and is_view(container):
        content = content_of_view(ctx, container)
    if isinstance(content, Mapping):
        known = content.get(item)
        if known is not None:
            return True if not _perhaps(known) else None
        return False if content.rest is None and is_key(item) else None
    if isinstance(content, Tuple):
        answers = [_equal_items(enumerations.plain(ctx, one), item) for one in content.items]
        return True if True in answers else None if None in answers else False
    if isinstance(container, Const) and isinstance(item, Const):
        try:
            return bool(item.value in container.value)
        except TypeError:
            return None
    return None


def _perhaps(value: Value) -> bool:
    from dtlint.infer.domain.values import may_be_absent

    return may_be_absent(value)
