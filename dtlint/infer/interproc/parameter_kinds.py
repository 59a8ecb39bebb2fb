"""What kind of thing each parameter of a function is: a floating tensor, an index or a mask, a number, something else.

One ladder, each rung for what those before it leave open: what the function does with a parameter (`parameter_uses`), what the
functions of its file that it is passed on to do with it, what losses take for their targets, what calls in view and the
examples in docstrings give, and, for who has to be certain, what becomes of the function where the parameter holds whole
numbers (`misuses`). Annotations and defaults decide before (`open_parameters`): what is asked of here is declared to be no
more than a tensor.
"""

from __future__ import annotations

import ast
from enum import Enum, auto
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import at_least, join, join_all
from dtlint.infer.domain.values import Const, Number, Tensor, Union, Unknown, Value, choices
from dtlint.infer.interproc.handed_on import handed_on
from dtlint.infer.interproc.misuses import WHOLE, kinds_by_reading, of_dtypes
from dtlint.infer.interproc.other_floats import OtherFloats
from dtlint.infer.interproc.parameter_ranks import least_dimensions
from dtlint.infer.interproc.parameter_uses import Use, uses_of_parameters
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.source.definitions import classes, functions, named_parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dtlint.infer.interproc.functions import FunctionDefinition, FunctionNode
    from dtlint.infer.interproc.misuses import Misuses
from dtlint.infer.interproc.parameter_uses import Passed

__all__ = ["Kind", "ParameterKinds", "kinds_by_use", "kinds_in", "told_apart"]


class Kind(Enum):
    """What is known of a parameter."""

    FLOATING = auto()
    """A floating tensor."""
    TENSOR = auto()
    """A tensor, floating or whole."""
    OPERAND = auto()
    """Reckoned with: a tensor, an array or a number, and floating if it is a tensor."""
    OPEN = auto()
    """Nothing shows what it is."""
    WHOLE = auto()
    """Whole numbers: an index, a mask, a target, a length."""
    NUMBER = auto()
    """A number: a size, a rate."""
    OTHER = auto()
    """A dtype, a device, a shape, a dimension or several, an array."""

    @property
    def is_tensor(self) -> bool:
        """Is it a tensor, whatever it holds?"""
        return self in (Kind.FLOATING, Kind.TENSOR)

    @property
    def may_be_floating(self) -> bool:
        """May it be a floating tensor?"""
        return self not in (Kind.WHOLE, Kind.NUMBER, Kind.OTHER)


_NO_TENSORS = frozenset({Use.NUMBER, Use.COUNT, Use.OPTION, Use.SETTING})
_NO_NUMBERS = frozenset({Use.OPTION, Use.TENSOR, Use.TOLD_APART})
_INDEX_OR_MASK = frozenset({"int64", "bool"})
_MOST_CALLS = 3
"""How far a parameter is followed that is passed on and on."""


def kinds_by_use(definition: FunctionDefinition) -> Mapping[str, Kind]:
    """The kinds of a function's parameters by what it does with them, or what those do that it passes them on to."""
    return kinds_in(definition.module.tree, definition.node)


def kinds_in(tree: ast.Module, function: FunctionNode) -> Mapping[str, Kind]:
    """The same of a function of a file."""
    return _kinds(function, tree, _MOST_CALLS)


@lru_cache(maxsize=4096)
def _kinds(function: FunctionNode, tree: ast.Module, calls: int) -> Mapping[str, Kind]:
    uses = uses_of_parameters(function, _torch_names(tree))
    has_numbers = any(Use.NUMBER in one for one in uses.of.values())
    bare = {one.arg for one in named_parameters(function) if one.annotation is None}
    found = {name: _kind(used, has_numbers and name in bare) for name, used in uses.of.items()}
    if not calls:
        return found
    for passed in uses.passed:
        if found[passed.parameter] in (Kind.OPEN, Kind.OPERAND, Kind.TENSOR):
            taken = _taken(function, tree, passed, calls)
            if taken is not None and taken is not Kind.OPEN:
                found[passed.parameter] = _either(found[passed.parameter], taken)
    return found


def _kind(used: set[Use], is_among_numbers: bool) -> Kind:
    if Use.SETTING in used and not used.isdisjoint({Use.TENSOR, Use.FLOATING}):
        used = used - {Use.SETTING}  # `layer.norm(x)` is a call of a layer
    if Use.COUNT in used and used.isdisjoint(_NO_NUMBERS):
        return Kind.NUMBER
    if not used.isdisjoint(_NO_TENSORS) or (is_among_numbers and Use.ARITHMETIC in used):
        return Kind.OTHER
    if Use.WHOLE in used:
        return Kind.WHOLE
    if Use.DATA in used and used.isdisjoint({Use.TENSOR, Use.MAY_BE_TENSOR, Use.PLACED}):
        return Kind.OTHER
    is_tensor = Use.TENSOR in used or {Use.OPERAND, Use.PLACED} <= used
    if is_tensor and Use.TOLD_APART not in used:
        return Kind.FLOATING if Use.FLOATING in used else Kind.TENSOR
    return Kind.OPERAND if used & {Use.OPERAND, Use.TENSOR, Use.FLOATING} else Kind.OPEN


def _either(own: Kind, taken: Kind) -> Kind:
    """What a parameter is that a function takes for one thing, and another that it is passed on to for another."""
    if own is Kind.TENSOR:
        return taken if taken in (Kind.FLOATING, Kind.WHOLE) else own
    return taken


def _taken(function: FunctionNode, tree: ast.Module, passed: Passed, calls: int) -> Kind | None:
    """What the function of the file is called with, that a parameter is passed on to."""
    found = _place(function, tree, passed)
    return None if found is None else _kinds(found[0], tree, calls - 1).get(found[1])


def _passed_on(definition: FunctionDefinition, name: str) -> list[Passed]:
    """Where a parameter is passed on as it is."""
    uses = uses_of_parameters(definition.node, _torch_names(definition.module.tree))
    return [one for one in uses.passed if one.parameter == name]


def _place(function: FunctionNode, tree: ast.Module, passed: Passed) -> tuple[FunctionNode, str] | None:
    """The function of the file that a parameter is passed on to, and the parameter there."""
    alone, methods = _definitions(tree)
    name = passed.callee.removeprefix("self.")
    callee = methods.get(function, {}).get(name) if name != passed.callee else alone.get(name)
    if callee is None or callee is function:
        return None
    args = callee.args
    named = [*args.posonlyargs, *args.args]
    if name != passed.callee and not any(getattr(one, "id", "") == "staticmethod" for one in callee.decorator_list):
        named = named[1:]
    if isinstance(passed.place, int):
        return (callee, named[passed.place].arg) if passed.place < len(named) else None
    return callee, passed.place


_Defined = dict[str, "ast.FunctionDef | ast.AsyncFunctionDef"]


@lru_cache(maxsize=64)
def _definitions(tree: ast.Module) -> tuple[_Defined, dict[ast.AST, _Defined]]:
    """The functions of a module by name, and those of the class that a method belongs to."""
    methods: dict[ast.AST, _Defined] = {}
    for one in classes(tree.body):
        own = {method.name: method for method in functions(one.body)}
        methods.update(dict.fromkeys(own.values(), own))
    return {one.name: one for one in functions(tree.body)}, methods


@lru_cache(maxsize=64)
def _torch_names(tree: ast.Module) -> tuple[tuple[str, str], ...]:
    """The names under which torch and its parts are imported, each with what it stands for."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.partition(".")[0] == "torch":
                    found[one.asname or "torch"] = one.name if one.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "torch" and not node.level:
            found.update((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
    return tuple(found.items())


def told_apart(function: FunctionNode) -> frozenset[str]:
    """The parameters of a function of which it asks what kind of thing they are."""
    return frozenset(name for name, used in uses_of_parameters(function).of.items() if Use.TOLD_APART in used)


class ParameterKinds:
    """What is known of the parameters of a file's functions, that are of the assumed dtype if they are floating.

    Args:
        dtype: the assumed one.
        targets: the keys of the parameters that losses take as targets.
        of_targets: the dtype that these have.
        supposes: is it told of tensors of whole numbers as well? A claim that they are would have to be certain.
    """

    def __init__(
        self, dtype: str, targets: frozenset[str] = frozenset(), of_targets: str = "", *, supposes: bool = False
    ) -> None:
        self._supposes = supposes
        self.floating = frozenset({dtype})
        """That dtype, alone."""
        self._targets, self._of_targets = targets, frozenset({of_targets or dtype})
        self._shown: dict[tuple[FunctionDefinition, Value | None], tuple[dict[str, frozenset[str]], set[str]]] = {}
        """By reading: all that the parameters of a function can be, and which of them are certainly tensors."""
        self._given: dict[FunctionDefinition, dict[str, Value]] = {}
        """By the calls in view."""
        self._whole: dict[FunctionDefinition, set[str]] = {}
        """The parameters that one of these gives whole numbers."""
        self._in_examples: dict[ast.AST, dict[str, frozenset[str]]] = {}
        """By function the dtypes of what examples give to its parameters."""
        self.other_floats = OtherFloats(dtype)
        """Whether what is not known may be of another dtype."""

    def assumed(
        self,
        definition: FunctionDefinition,
        parameter: ast.arg,
        value: Value,
        *,
        is_input: bool = False,
        tensors_alone: bool = False,
    ) -> Value:
        """What a parameter is, of which no more is known than its symbol, where an assumption says its dtype.

        Args:
            is_input: is it an input of a module? These are tensors, or hold them.
            tensors_alone: is it left as it is unless it is shown to be a tensor?
        """
        kind = kinds_by_use(definition).get(parameter.arg, Kind.OPEN)
        dimensions = least_dimensions(definition.node).get(parameter.arg, 1)
        if kind is Kind.WHOLE and self._supposes and isinstance(value, Tensor) and value.dtypes is None:
            return Tensor(_INDEX_OR_MASK, None, at_least(dimensions) if value.rank is None else value.rank)
        if not kind.may_be_floating:
            return value
        is_target = parameter_key(parameter) in self._targets
        is_tensor = is_input or is_target or kind.is_tensor  # a loss takes tensors alone
        if tensors_alone and not is_tensor and not any(isinstance(one, Tensor) for one in choices(value)):
            return value
        dtypes = self._of_targets if is_target else self.floating
        return _assumed(value, dtypes, dimensions, as_tensor=is_tensor)

    def called(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> bool:
        """A call in view gives these arguments. Is that more than was known?"""
        known = self._given.setdefault(definition, {})
        before = dict(known)
        self._whole.setdefault(definition, set()).update(
            name for name, value in bound.items() if (dtypes := _dtypes(value)) and dtypes.isdisjoint(FLOATING)
        )
        for name, value in bound.items():
            known[name] = join(known[name], value) if name in known else value
        return before != known

    def exemplified(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> None:
        """A call in an example gives these arguments, of whatever floating dtype: of what is not known it shows nothing."""
        known = self._in_examples.setdefault(definition.node, {})
        for name, value in bound.items():
            if dtypes := _dtypes(value):
                known[name] = known.get(name, frozenset()) | dtypes

    def _is_given_whole(self, definition: FunctionDefinition, name: str) -> bool:
        """Does a call in view, or one in an example, give a parameter whole numbers?"""
        in_examples = self._in_examples.get(definition.node, {}).get(name, frozenset())
        return name in self._whole.get(definition, ()) or not in_examples <= FLOATING

    def _is_floating_in_examples(self, definition: FunctionDefinition, name: str) -> bool:
        """Do examples show that a parameter is floating, or one that it is passed on to?"""
        own = self._in_examples.get(definition.node, {}).get(name)
        if own is not None:
            return own <= FLOATING
        tree = definition.module.tree
        taken = (_place(definition.node, tree, one) for one in _passed_on(definition, name))
        return any(
            self._in_examples.get(one[0], {}).get(one[1], _INDEX_OR_MASK) <= FLOATING
            for one in taken
            if one is not None
        )

    def usual(self, definition: FunctionDefinition, defaults: Mapping[str, Value]) -> dict[str, Value]:
        """The parameters that are numbers unless somebody gives something else: a tensor, which has the assumed dtype, or what the
        calls in view give. A constructor is given numbers, unless a call in the file computes what it gives.

        Args:
            defaults: what they are by their defaults.
        """
        if definition.is_constructor:
            computed = _computed_arguments(definition.module.tree, definition.node)
            return {name: value for name, value in defaults.items() if name not in computed}
        found = {}
        by_use = kinds_by_use(definition)
        for name, value in defaults.items():
            if not by_use.get(name, Kind.OPEN).may_be_floating:
                found[name] = value
                continue
            given = self._given.get(definition, {}).get(name, value)
            is_known = all(isinstance(one, (Const, Number)) or _dtypes(one) for one in choices(given))
            if is_known or not self.other_floats.are_about:
                found[name] = join_all((value, given if is_known else value, Tensor(self.floating))) or value
        return found

    def certain(
        self,
        definition: FunctionDefinition,
        receiver: Value | None,
        assumed: Mapping[str, Value],
        read: Callable[[Mapping[str, Value]], Misuses],
    ) -> dict[str, Value]:
        """The parameters that may be of the assumed dtype, of this dtype where that is certain.

        Args:
            definition: the function.
            receiver: the object whose method it is.
            assumed: the parameters, all of the assumed dtype.
            read: reads the function for other parameters, and tells where they are misused.
        """
        by_use = kinds_by_use(definition)
        settled = {name for name in assumed if by_use.get(name) is Kind.FLOATING}
        entry = definition, receiver
        if entry not in self._shown:
            self._shown[entry] = kinds_by_reading(assumed, self.floating, settled, read)
        shown, tensors = self._shown[entry]
        apart = told_apart(definition.node)
        is_private = definition.name.startswith("_") and not definition.name.startswith("__")
        is_handed_on = definition.node in handed_on(definition.module.tree)
        found = {}
        for name, value in assumed.items():
            given = self._given.get(definition, {}).get(name)
            dtypes = None if given is None else _dtypes(given)
            is_given_whole = self._is_given_whole(definition, name)
            is_shown = shown[name] <= FLOATING and not is_given_whole
            # Somebody in view gives what is not known, or may do so.
            is_unknown = is_handed_on or (given is not None and dtypes is None)
            if is_unknown and (self.other_floats.are_about or not is_shown):
                found[name] = _opened(value)
            elif is_private and dtypes:
                found[name] = of_dtypes(value, dtypes)
            elif is_shown or (
                not is_given_whole
                and ((dtypes and dtypes <= FLOATING) or self._is_floating_in_examples(definition, name))
            ):
                more = dtypes & FLOATING if dtypes and dtypes <= FLOATING else frozenset()
                is_tensor = name in tensors and name not in apart  # a tuple may become one in the function
                found[name] = of_dtypes(value, self.floating | more, as_tensor=is_tensor)
            else:
                whole = WHOLE if shown[name] <= FLOATING else frozenset()  # which it is given all the same
                found[name] = of_dtypes(value, shown[name] | whole | (dtypes or frozenset()))
        return found


def _computed_arguments(tree: ast.Module, init: FunctionNode) -> frozenset[str]:
    """The parameters of a constructor that a call in its file gives what other calls compute, themselves or by a variable."""
    owner = next((one for one in classes(tree.body) if init in one.body), None)
    if owner is None:
        return frozenset()
    names = [one.arg for one in named_parameters(init)][1:]
    computed = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _holds_call(node.value)
        for target in node.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        called = getattr(node.func, "id", getattr(node.func, "attr", None)) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and called in (owner.name, "__init__"):
            given = [*zip(names, node.args, strict=False), *((word.arg, word.value) for word in node.keywords)]
            found |= {
                name for name, value in given if name is not None and (_holds_call(value) or _names(value) & computed)
            }
    return frozenset(found)


def _holds_call(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Call) for one in ast.walk(node))


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _assumed(value: Value, dtypes: frozenset[str], dimensions: int, *, as_tensor: bool) -> Value:
    """A parameter of which no dtype is known, of the assumed one, and with at least one dimension: promotion takes others for
    numbers."""
    if isinstance(value, Tensor) and value.dtypes is None:
        return Tensor(dtypes, None, at_least(dimensions) if value.rank is None else value.rank)
    if isinstance(value, Unknown) and value.symbol is not None:
        return Tensor(dtypes, None, at_least(dimensions)) if as_tensor and type(value) is Unknown else Unknown(dtypes)
    if isinstance(value, Union):
        return join_all(_assumed(one, dtypes, dimensions, as_tensor=as_tensor) for one in choices(value)) or value
    return value


def _opened(value: Value) -> Value:
    """The same kinds of things, of dtypes that are not known."""
    parts = (
        Tensor(None, None, one.rank) if isinstance(one, Tensor) else Unknown() if isinstance(one, Unknown) else one
        for one in choices(value)
    )
    return join_all(parts) or value


def _dtypes(value: Value) -> frozenset[str] | None:
    """The dtypes of what is given, as far as it is a tensor; None where they are not known."""
    found: frozenset[str] = frozenset()
    for one in choices(value):
        if isinstance(one, (Tensor, Unknown)):
            if one.dtypes is None:
                return None
            found |= one.dtypes
    return found
