"""What a function does with its parameters, by its syntax alone: what each is taken for where it is used."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING
from dtlint.dtypes.table import load
from dtlint.infer.domain.values import Many, Tensor, Tuple, Value
from dtlint.infer.models import catalogue
from dtlint.infer.models.layer_arguments import NUMBERS, taken_by
from dtlint.infer.models.ops import is_op
from dtlint.infer.models.registry import MODELS
from dtlint.infer.models.table_answers import Operand, Question, Refusal, table_answer
from dtlint.infer.models.unknown_tensors import CASTS, is_of_tensors
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dtlint.infer.interproc.functions import FunctionNode

__all__ = ["Passed", "Use", "Uses", "unbound", "uses_of_parameters"]

assert catalogue.MODULES  # which have registered the methods that are asked for


class Use(Enum):
    """What a use takes a parameter for."""

    NUMBER = auto()
    """A size, or several of them, or a bound of a range."""
    COUNT = auto()
    """One number: how many items a range or how many features a layer has."""
    WHOLE = auto()
    """What is looked up by, a condition, a length: it holds whole numbers."""
    OPERAND = auto()
    """What is reckoned with: a tensor, an array or a number."""
    TENSOR = auto()
    """What a tensor alone has, or what torch takes a tensor for."""
    PLACED = auto()
    """Its device is asked for: with what is reckoned with it is a tensor."""
    FLOATING = auto()
    """What is meant for floating numbers: torch refuses others, or lifts them."""
    TOLD_APART = auto()
    """The function asks what kind of value it is."""
    MAY_BE_TENSOR = auto()
    """The function asks what kind of value it is, a tensor among others."""
    OPTION = auto()
    """A dtype or a device, wherever it is read."""
    SETTING = auto()
    """What an op of torch takes beside tensors: a dimension, a size, a rate."""
    ARITHMETIC = auto()
    """It stands in arithmetic wherever it is read."""
    DATA = auto()
    """A number, a list or an array, which a tensor is made of, or an array by what is done with it."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A call that a parameter is given to as it is.

    Attributes:
        callee: the function as it is written: `scores`, `self._scores`.
        place: the number of the argument, or its name.
    """

    parameter: str
    callee: str
    place: int | str


@dataclass(slots=True)
class Uses:
    """What a function does with its parameters.

    Attributes:
        of: the uses of each.
        passed: where they are passed on to before they are bound anew.
    """

    of: dict[str, set[Use]] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)


_FACTORIES = frozenset({"arange", "linspace", "logspace", "range", "zeros", "ones", "empty", "rand", "randn", "eye"})
"""Functions whose arguments are numbers."""
_INTEGERS = frozenset({"int", "long", "short", "int8", "int16", "int32", "int64"})
_KEEPING = frozenset({"sum", "cumsum", "max", "min", "amax", "amin", "item", "cpu", "detach"})
"""What gives whole numbers of whole ones."""
_OPTIONS = frozenset({"dtype", "device"})
_OF_BITS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
_ASKING = frozenset({"isinstance", "hasattr", "type", "is_tensor", "callable"})
"""Functions by which a program tells kinds of values apart."""
_INDICES_AT = {
    **dict.fromkeys(
        ("masked_fill", "masked_select", "masked_scatter", "gather", "index_select", "scatter", "index_fill"), 1
    ),
    **dict.fromkeys(("scatter_add", "index_add", "index_copy", "scatter_reduce"), 1),
    **dict.fromkeys(("where", "one_hot", "embedding", "take", "bincount", "bitwise_not"), 0),
    **dict.fromkeys(("logical_not", "logical_and", "logical_or", "logical_xor"), 0),
}
"""Functions of torch that take a mask or indices, and at which place: behind the tensor, or behind it and a dimension."""
_BY_DIMENSION = frozenset({"gather", "index_select", "scatter", "index_fill", "scatter_add", "index_add", "index_copy"})
_OF_WHOLE = frozenset({"bool", "logical_not", "bitwise_not", "logical_and", "logical_or", "logical_xor"})
"""Methods that are called on masks and indices."""
_OF_MODULES = CASTS | {"cpu", "cuda", "apply", "requires_grad_", "share_memory_", "expand", "sample", "size", "resize"}
"""Methods of tensors that modules, distributions, pictures or data sets have as well."""


@lru_cache(maxsize=4096)
def uses_of_parameters(function: FunctionNode, torch_names: tuple[tuple[str, str], ...] = ()) -> Uses:
    """The uses of a function's parameters.

    Args:
        torch_names: the names under which torch and its parts are imported, each with what it stands for.
    """
    found = Uses()
    if isinstance(function, ast.Lambda):
        return found
    named = named_parameters(function)
    found.of = {one.arg: set() for one in named}
    inside = list(nodes(function.body))
    known, roots = unbound(inside, set(found.of)), dict(torch_names)

    def note(use: Use, names: Iterable[str]) -> None:
        for name in names:
            if name in found.of:
                found.of[name].add(use)

    for node in inside:
        note(Use.NUMBER, _numbers(node))
        note(Use.COUNT, _counts(node, roots))
        note(Use.WHOLE, _whole(node))
        note(Use.TOLD_APART, _asked_for(node))
        note(Use.MAY_BE_TENSOR, _asked_for(node) if _asks_for_tensors(node) else ())
        note(Use.DATA, (one.id for one in _as_data(node, roots) if id(one) in known))
        note(Use.SETTING, (one.id for one in _settings(node, roots) if id(one) in known))
        if isinstance(node, ast.Attribute) and node.attr == "device" and isinstance(node.value, ast.Name):
            note(Use.PLACED, [node.value.id])
        for use, name in _as_tensors(node, roots):
            if id(name) in known:
                note(use, [name.id])
        if isinstance(node, ast.BinOp):
            note(Use.OPERAND, (one.id for one in (node.left, node.right) if isinstance(one, ast.Name)))
        elif isinstance(node, ast.Call):
            found.passed += (one for one in _passed(node, known) if one.parameter in found.of)
    note(Use.OPTION, _always(inside, _options))
    note(Use.ARITHMETIC, _always(inside, _arithmetic))
    return found


def unbound(inside: Iterable[ast.AST], names: set[str]) -> set[int]:
    """The places where a parameter is read before anything else is bound to its name."""
    bound: dict[str, tuple[int, int]] = {}
    for node in inside:
        targets: list[ast.expr] = []
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            ends = (node.end_lineno or node.lineno, node.end_col_offset or 0)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.NamedExpr, ast.comprehension)):
            targets = [node.target]
            ends = (node.target.lineno, 0)
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store) and one.id in names:
                    bound[one.id] = min(bound.get(one.id, ends), ends)
    return {
        id(one)
        for one in inside
        if isinstance(one, ast.Name)
        and isinstance(one.ctx, ast.Load)
        and (one.id not in bound or (one.lineno, one.col_offset) < bound[one.id])
    }


def _as_tensors(node: ast.AST, roots: Mapping[str, str]) -> Iterator[tuple[Use, ast.Name]]:
    """The variables that a node takes for tensors: it calls their methods on them, or gives them to ops of torch."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        yield from ((Use.FLOATING, one) for one in (node.left, node.right) if isinstance(one, ast.Name))
    if not isinstance(node, ast.Call):
        return
    op = _function_of_torch(node, roots)
    if op is not None and (op.rpartition(".")[0] == "torch.nn" or op in _OF_DATA):
        return  # the constructor of a layer, or of a tensor
    if op is not None:
        names = [(place, one) for place, one in enumerate(node.args[:2]) if isinstance(one, ast.Name)]
        if names and is_op(op):
            for place, one in names:
                if place == 0 and _is_of_a_tensor(op):
                    yield Use.TENSOR, one
                    if _is_meant_for_floats(op):
                        yield Use.FLOATING, one
                elif _is_of_two_tensors(op):
                    yield Use.TENSOR, one
                    yield Use.FLOATING, one
        return
    if not isinstance(node.func, ast.Attribute) or not isinstance(node.func.value, ast.Name):
        return
    attribute, receiver = node.func.attr, node.func.value
    if not is_of_tensors(attribute) or receiver.id in _OBJECTS:
        return
    yield Use.OPERAND, receiver
    by_dimension = any(word.arg in ("dim", "keepdim") for word in node.keywords)
    if by_dimension or (f"numpy.ndarray.{attribute}" not in MODELS and attribute not in _OF_MODULES):
        yield Use.TENSOR, receiver
    if _is_meant_for_floats(f"torch.Tensor.{attribute}"):
        yield Use.FLOATING, receiver


def _as_data(node: ast.AST, roots: Mapping[str, str]) -> Iterator[ast.Name]:
    """The variables that a node takes for what no tensor is: it makes a tensor of them, or calls a method of arrays."""
    if not isinstance(node, ast.Call):
        return
    if _function_of_torch(node, roots) in _OF_DATA:
        yield from (one for one in node.args[:1] if isinstance(one, ast.Name))
    elif isinstance(node.func, ast.Attribute) and (
        node.func.attr == "astype" or (node.func.attr == "transpose" and len(node.args) == 1)
    ):
        subject = node.func.value
        while isinstance(subject, ast.Subscript):
            subject = subject.value
        yield from (one for one in (subject,) if isinstance(one, ast.Name))


_OF_DATA = frozenset(
    {"torch.tensor", "torch.from_numpy", "torch.frombuffer"}
    | {f"torch.{kind}Tensor" for kind in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool")}
)


def _function_of_torch(call: ast.Call, roots: Mapping[str, str]) -> str | None:
    """The qualified name of a function of torch that is called; None where something else is."""
    root, _, rest = (path_of(call.func) or "").partition(".")
    return f"{roots[root]}.{rest}".rstrip(".") if root in roots else None


def _settings(node: ast.AST, roots: Mapping[str, str]) -> Iterator[ast.Name]:
    """The variables that a node gives to an op of torch where that takes no operand."""
    if not isinstance(node, ast.Call):
        return
    op, first = _function_of_torch(node, roots), 0
    if op is None and isinstance(node.func, ast.Attribute) and is_of_tensors(node.func.attr):
        is_of_object = isinstance(node.func.value, ast.Name) and node.func.value.id in _OBJECTS
        op, first = None if is_of_object else f"torch.Tensor.{node.func.attr}", 1
    if op is None or not is_op(op) or any(isinstance(one, ast.Starred) for one in node.args):
        return
    given: list[tuple[int | str, ast.expr]] = [*enumerate(node.args, first)]
    given += [(word.arg, word.value) for word in node.keywords if word.arg is not None]
    for place, value in given:
        if isinstance(value, ast.Name) and load().kinds_at(op, place) == frozenset():
            yield value


_OBJECTS = frozenset({"self", "cls"})
"""What methods are of: `self.norm(x)` is a call of a layer of the module."""


def _answer(op: str, *options: object) -> Value | Refusal:
    """What the operator table says of an op for operands on the CPU, where most ops refuse what they are not meant for."""
    operands = tuple(Operand((one,)) for one in options)
    return table_answer(Question(op, operands, (), (None,), frozenset({"float32"}), "cpu"))


_OF_FLOAT32, _OF_INT64, _DIMENSION = ("float32", 2), ("int64", 2), 2


@lru_cache(maxsize=4096)
def _is_of_a_tensor(op: str) -> bool:
    """Does an op take a tensor first?"""
    return any(_holds_tensors(_answer(op, _OF_FLOAT32, *more)) for more in _FURTHER)


_FURTHER: tuple[tuple[object, ...], ...] = ((), (_DIMENSION,), (_OF_FLOAT32,))


@lru_cache(maxsize=4096)
def _is_meant_for_floats(op: str) -> bool:
    """Does an op of one tensor refuse whole numbers, or lift them to floating ones?"""
    for more in _FURTHER[:2]:
        if _is_floating(_answer(op, _OF_FLOAT32, *more)):
            return _is_for_floats(_answer(op, _OF_INT64, *more))
    return False


@lru_cache(maxsize=4096)
def _is_of_two_tensors(op: str) -> bool:
    """Does an op take two floating tensors, and no number in the place of the second?"""
    if op.rpartition(".")[2] in _PRODUCTS:
        return True
    both = _answer(op, _OF_FLOAT32, _OF_FLOAT32)
    if not _is_floating(both) or _holds_tensors(_answer(op, _OF_FLOAT32, _DIMENSION)):
        return False
    return _is_for_floats(_answer(op, _OF_INT64, _OF_INT64))


_PRODUCTS = frozenset({"matmul", "mm", "bmm", "mv", "dot", "inner", "outer", "kron", "linear"})
"""Ops of two tensors that take whole numbers as well, and hardly ever are given any."""


def _holds_tensors(answer: Value | Refusal) -> bool:
    if isinstance(answer, Many):
        return _holds_tensors(answer.item)
    return isinstance(answer, Tensor) or (isinstance(answer, Tuple) and all(map(_holds_tensors, answer.items)))


def _is_floating(answer: Value | Refusal) -> bool:
    """Is it a floating tensor, or are those that it holds?"""
    if isinstance(answer, Tuple):
        return bool(answer.items) and _is_floating(answer.items[0])
    dtypes = answer.dtypes if isinstance(answer, Tensor) else None
    return dtypes is not None and dtypes <= FLOATING | COMPLEX


def _is_for_floats(answer: Value | Refusal) -> bool:
    """Is this what torch answers of whole numbers where floating ones are meant?"""
    return isinstance(answer, Refusal) or _is_floating(answer)


def _passed(call: ast.Call, known: set[int]) -> Iterator[Passed]:
    """The variables that a call is given as they are."""
    callee = path_of(call.func)
    if callee is None or (callee.count(".") and not callee.startswith("self.")):
        return
    for place, one in enumerate(call.args):
        if isinstance(one, ast.Starred):
            break
        if isinstance(one, ast.Name) and id(one) in known:
            yield Passed(one.id, callee, place)
    for word in call.keywords:
        if word.arg is not None and isinstance(word.value, ast.Name) and id(word.value) in known:
            yield Passed(word.value.id, callee, word.arg)


def _asked_for(node: ast.AST) -> Iterator[str]:
    """The variables whose kind a node asks for, or that it looks into as a mapping."""
    if isinstance(node, ast.Call):
        if _last(node.func) in _ASKING:
            yield from (one.id for one in node.args if isinstance(one, ast.Name))
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        yield from (one.id for one in (node.value,) if isinstance(one, ast.Name))


def _asks_for_tensors(node: ast.AST) -> bool:
    """May the answer to what a node asks of a value be a tensor? `isinstance` says which kinds it asks for."""
    if not isinstance(node, ast.Call) or _last(node.func) != "isinstance":
        return True
    return any(
        _last(part).endswith("Tensor") for one in node.args[1:] for part in ast.walk(one) if isinstance(part, ast.expr)
    )


def _numbers(node: ast.AST) -> Iterator[str]:
    """The variables that a node takes for numbers: sizes, bounds of a range."""
    if not isinstance(node, ast.Call) or _last(node.func) not in _FACTORIES:
        return
    for one in (*node.args, *(word.value for word in node.keywords if word.arg not in _OPTIONS)):
        yield from _within_arithmetic(one)


def _counts(node: ast.AST, roots: Mapping[str, str]) -> Iterator[str]:
    """The variables that a node takes for one number each: what bounds a range, what sizes a layer."""
    if not isinstance(node, ast.Call):
        return
    package, _, name = (_function_of_torch(node, roots) or "").rpartition(".")
    given: list[tuple[str | None, ast.expr]] = []
    if package == "torch.nn":
        given = [*zip(taken_by(name), node.args, strict=False), *((word.arg, word.value) for word in node.keywords)]
        given = [(word, value) for word, value in given if word in NUMBERS]
    elif (package == "torch" and name in _RANGES) or (isinstance(node.func, ast.Name) and node.func.id == "range"):
        given = [(None, value) for value in node.args]
    for _, value in given:
        yield from _within_arithmetic(value)


_RANGES = frozenset({"arange", "linspace", "logspace", "eye"})
"""Factories that take numbers alone by position. Others take a shape as well."""


def _whole(node: ast.AST) -> Iterator[str]:
    """The variables that a node takes for whole numbers, conditions, or tensors of them: as an index, a mask, by a cast."""
    if isinstance(node, ast.Subscript):
        for one in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(one, ast.Slice):
                yield from _bounds(one)
            elif isinstance(one, ast.Name):
                yield one.id
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        yield from _within_arithmetic(node.operand)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, _OF_BITS):
        yield from (one.id for one in (node.left, node.right) if isinstance(one, ast.Name))
    elif isinstance(node, ast.Call):
        func, last = node.func, _last(node.func)
        if isinstance(func, ast.Name) and last == "int":
            yield from _kept(node.args[0]) if len(node.args) == 1 else ()
        elif isinstance(func, ast.Attribute) and (
            (last in ("int", "long") and not node.args)
            or (last in ("to", "type") and any(_last(one) in _INTEGERS for one in _given(node)))
        ):
            yield from _kept(func.value)
        yield from _looked_up(node, last)


def _looked_up(call: ast.Call, last: str) -> Iterator[str]:
    """The variable that a call of torch takes for indices or for a mask."""
    func = call.func
    name = last.rstrip("_")
    is_method = isinstance(func, ast.Attribute) and not (path_of(func) or "").startswith(_NAMESPACES)
    if is_method and name in _OF_WHOLE and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
        yield func.value.id
    place = _INDICES_AT.get(name)
    if place is None or (path_of(func) or "").startswith("self."):
        return
    place += (name in _BY_DIMENSION or name == "scatter_reduce") - (is_method and place > 0)
    looked_up = [word.value for word in call.keywords if word.arg == ("index" if name in _BY_DIMENSION else "mask")]
    for one in (*call.args[place : place + 1], *looked_up):
        yield from _viewed(one)


def _viewed(node: ast.expr) -> Iterator[str]:
    """The variable of which an expression is a view, `y[:, None].expand(-1, n)`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        elif isinstance(node, ast.Subscript) and _only_reshapes(node.slice):
            node = node.value
        else:
            return
    yield node.id


def _only_reshapes(index: ast.expr) -> bool:
    """`[:, None]`, and not `[0]`, which may be one of several tensors."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        isinstance(one, ast.Slice) or (isinstance(one, ast.Constant) and one.value in (None, ...)) for one in parts
    )


_VIEWS = frozenset(
    {"expand", "expand_as", "flatten", "permute", "repeat", "reshape", "squeeze", "t", "transpose", "unsqueeze", "view"}
    | {"view_as", "contiguous"}
)
_NAMESPACES = ("torch.", "F.", "nn.")


def _bounds(node: ast.Slice) -> Iterator[str]:
    """The variables that bound a slice: `x[:n]`, `x[: lengths[i]]`."""
    for one in (node.lower, node.upper, node.step):
        while isinstance(one, ast.Subscript):
            one = one.value
        if isinstance(one, ast.Name):
            yield one.id


def _kept(node: ast.expr) -> Iterator[str]:
    """The variable whose elements, or the sum or the largest of them, an expression is."""
    while not isinstance(node, ast.Name):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEEPING:
            return
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        if of_torch and not node.args:
            return
        node = node.args[0] if of_torch else node.func.value
    yield node.id


def _options(node: ast.AST) -> Iterator[ast.expr]:
    """What a node passes on as a dtype or a device."""
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg in _OPTIONS)
        if (_last(node.func) == "to" and isinstance(node.func, ast.Attribute)) or _last(node.func) == "device":
            yield from node.args


def _arithmetic(node: ast.AST) -> Iterator[ast.expr]:
    """What a node reckons with."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand


def _always(inside: Iterable[ast.AST], used: Callable[[ast.AST], Iterator[ast.expr]]) -> Iterator[str]:
    """The variables that are used so wherever they are read, and read at all."""
    places = {id(one) for node in inside for one in used(node)}
    asked = {id(one) for node in inside for one in _asked_for_none(node)}
    names = (one for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
    read = [one for one in names if id(one) not in asked]
    otherwise = {one.id for one in read if id(one) not in places}
    yield from {one.id for one in read} - otherwise


def _asked_for_none(node: ast.AST) -> Iterator[ast.expr]:
    """`x is None`: that says nothing of what it is otherwise."""
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        yield node.left


def _within_arithmetic(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.UnaryOp):
        yield from _within_arithmetic(node.operand)
    elif isinstance(node, ast.BinOp):
        yield from _within_arithmetic(node.left)
        yield from _within_arithmetic(node.right)


def _given(node: ast.Call) -> Iterator[ast.expr]:
    yield from node.args
    yield from (word.value for word in node.keywords if word.arg == "dtype")


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
