"""The witness of a finding: where the dtypes of its operands come from; under an assumption, all steps from what a function is
given to the line.

They are rebuilt from the facts when a finding is printed: back from the operator through the assignments of the variables in
it, through the calls that led there, up to a parameter, a weight, or what was made in a dtype of its own.
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dtlint.dtypes.dtype import DTYPES, FLOATING
from dtlint.infer.domain.values import Many, Ref, Tensor, Tuple, Unknown, Value, choices
from dtlint.infer.facts import Step
from dtlint.infer.surroundings import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["witness"]

_MOST_STEPS = 12
_CALLED = "called here, with "
_MOST_LOOKED_AT = 400
"""Expressions that are looked at on the way back from one."""


def witness(
    facts: ModuleFacts, node: ast.expr | ast.stmt, through: Collection[Step] = ()
) -> tuple[tuple[Step, str], ...]:
    """The steps to a node, first to last, each with what happens there; the node itself is the last, and not among them.

    Args:
        through: calls that lead there, where not all do that may.
    """
    ways, called = facts.ways(node), {step.node for step in through}
    way = next((one for one in ways if not called.isdisjoint(step.node for step in one)), ways[0])
    walk = _Walk(facts)
    found: dict[tuple[int, ast.AST], str] = {}
    for start in walk.starts(_Item(node, len(way))):
        for depth, at, text in walk.back(start, way):
            known = found.setdefault((depth, at), text)
            if known != text and text.startswith(_CALLED) and text[len(_CALLED) :] not in known:
                found[depth, at] = f"{known} and {text[len(_CALLED) :]}"
    for depth, call in enumerate(way):
        if call.module is facts.module:
            found.setdefault((depth, call.node), "called here")
    found.pop((len(way), node), None)
    steps = [(depth, at, text) for (depth, at), text in found.items()]
    steps.sort(key=lambda step: (step[0], step[1].lineno, step[1].col_offset))  # type: ignore[attr-defined]
    if len(steps) > _MOST_STEPS:
        steps = [*steps[: _MOST_STEPS // 2], *steps[-(_MOST_STEPS // 2) :]]
    return tuple((Step(at, facts.module), text) for _, at, text in steps)


class _Item(NamedTuple):
    """An expression, and how many of the calls that led to the finding are under way where it is evaluated."""

    node: ast.AST
    depth: int


class _Shown(NamedTuple):
    """A step, as it will be shown."""

    depth: int
    node: ast.AST
    text: str


@dataclass(slots=True)
class _Edge:
    """How the walk came to an expression: from which, and what is to be shown of that."""

    item: _Item
    before: _Edge | None
    shown: tuple[_Shown, ...] = ()
    ends: bool = False

    def steps(self) -> list[_Shown]:
        """What is to be shown of the way, the expression farthest back first."""
        found: list[_Shown] = []
        edge: _Edge | None = self
        while edge is not None:
            found += edge.shown
            edge = edge.before
        return found


class _Walk:
    """Walks back from expressions of one module."""

    def __init__(self, facts: ModuleFacts) -> None:
        self._facts = facts
        assumed = facts.assumption
        self._followed = frozenset(DTYPES) if assumed is None else FLOATING | {assumed.inputs, assumed.targets}

    def starts(self, item: _Item) -> list[_Item]:
        """The operands of a node that are tensors of interest, one of each dtype; those around it where it holds none."""
        node: ast.AST | None = item.node
        while node is not None and not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            by_dtype: dict[frozenset[str], _Item] = {}
            for operand in self._operands(node):
                dtypes = self._dtypes(operand)
                if len(dtypes) == 1 or (dtypes and self._facts.assumption is not None):
                    by_dtype.setdefault(dtypes, _Item(operand, item.depth))
            if by_dtype:
                return list(by_dtype.values())
            node = self._facts.around.parent(node)
        return []

    def back(self, start: _Item, way: tuple[Step, ...]) -> list[_Shown]:
        """The steps from what the function is given to an operand: through what has its dtype first, then through what
        that was made of."""
        seen: set[_Item] = set()
        edge = _Edge(start, None)
        while True:
            dtypes = self._dtypes(edge.item.node)
            found = self._same(edge, dtypes, way, seen)
            if found.ends or self._facts.assumption is None:  # where the dtype comes from is enough
                return found.steps()
            operands = (_Item(one, found.item.depth) for one in self._operands(found.item.node) if self._dtypes(one))
            following = next((one for one in operands if one not in seen), None)
            if following is None or len(seen) > _MOST_LOOKED_AT:
                return [*self._origin(found, None), *found.steps()]
            edge = _Edge(following, found, tuple(self._origin(found, following)))

    def _origin(self, edge: _Edge, following: _Item | None) -> list[_Shown]:
        """What is to be shown where a dtype begins."""
        dtypes = _words(self._dtypes(edge.item.node))
        if not dtypes:
            return []
        if following is None:
            return [] if self._is_told(edge) else [_Shown(edge.item.depth, edge.item.node, f"{dtypes} from here on")]
        before = _words(self._dtypes(following.node))
        return [] if before == dtypes else [_Shown(edge.item.depth, edge.item.node, f"{before} becomes {dtypes} here")]

    def _is_told(self, edge: _Edge) -> bool:
        """Has a step at the expression been told?"""
        return any(one.node is edge.item.node for one in edge.shown)

    def _same(self, start: _Edge, dtypes: frozenset[str], way: tuple[Step, ...], seen: set[_Item]) -> _Edge:
        """The nearest parameter or weight behind an expression through expressions of the same dtype, or else the nearest
        that is made of others."""
        origin: _Edge | None = None
        waiting = deque([start])
        while waiting and len(seen) < _MOST_LOOKED_AT:
            edge = waiting.popleft()
            if edge.ends:
                return edge
            if edge.item in seen:
                continue
            seen.add(edge.item)
            following = list(self._before(edge, dtypes, way))
            if not following and origin is None:
                origin = edge
            waiting += following
        return origin or start

    def _before(self, edge: _Edge, dtypes: frozenset[str], way: tuple[Step, ...]) -> Iterator[_Edge]:
        node, depth = edge.item
        words = _words(dtypes)
        if isinstance(node, ast.Name):
            for made in self._facts.around.definitions(node):
                if isinstance(made, ast.arg):
                    yield from self._given(edge, made, dtypes, way)
                elif isinstance(made, ast.AugAssign):  # in place, which keeps the dtype
                    yield _Edge(_Item(made.target, depth), edge, (_Shown(depth, made, f"`{node.id}` stays {words}"),))
                elif (value := self._bound(made)) is not None:
                    yield _Edge(_Item(value, depth), edge, (_Shown(depth, value, f"`{node.id}` is {words}"),))
            return
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            yield from self._attribute(edge, node, f"{words} weights" if self._layer(node) else words)
            return
        operands = self._operands(node)
        shown: tuple[_Shown, ...] = ()
        if not any(map(self._dtypes, operands)):
            operands = list(self._asked_for_dtypes(node))
            shown = () if self._is_told(edge) else (_Shown(depth, node, f"made in {words}"),)
        for operand in operands:
            if self._dtypes(operand) == dtypes:
                yield _Edge(_Item(operand, depth), edge, shown)

    def _given(self, edge: _Edge, parameter: ast.arg, dtypes: frozenset[str], way: tuple[Step, ...]) -> Iterator[_Edge]:
        """A parameter: what is given by the call under way, or by anybody."""
        depth, words = edge.item.depth, _words(dtypes)
        own = self._facts.around.parent(self._facts.around.parent(parameter) or parameter)
        if depth == 0 or own is not self._facts.around.function(edge.item.node):
            given = _Shown(depth, parameter, f"`{parameter.arg}` is given in {words}")
            yield _Edge(edge.item, edge, (given,), ends=True)
            return
        call = way[depth - 1]
        if call.module is not self._facts.module or not isinstance(call.node, ast.Call):
            return
        argument = _argument(call.node, own, parameter)
        shown = _Shown(depth - 1, call.node, f"{_CALLED}`{parameter.arg}` in {words}")
        if argument is not None:
            yield _Edge(_Item(argument, depth - 1), edge, (shown,))

    def _attribute(self, edge: _Edge, node: ast.Attribute, words: str) -> Iterator[_Edge]:
        """Where the class sets an attribute of `self`."""
        around = self._facts.around
        owner = around.owner(node)
        if owner is None:
            return
        text = f"`self.{node.attr}` {'has' if self._layer(node) else 'is'} {words}"
        for one in around.within(owner):
            if isinstance(one, ast.Call) and _registers(one, node.attr):
                shown = _Shown(-1, one, text)
                yield _Edge(_Item(one, edge.item.depth), edge, (shown,), ends=True)
                return
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) and one.attr == node.attr:
                statement = around.statement(one)
                shown = _Shown(-1, statement, text)
                yield _Edge(_Item(statement, edge.item.depth), edge, (shown,), ends=True)
                return

    def _bound(self, made: ast.AST) -> ast.expr | None:
        """The expression that a binding takes its value from."""
        if isinstance(made, ast.expr) and isinstance(getattr(made, "ctx", None), ast.Store):
            made = self._facts.around.statement(made)
        if isinstance(made, (ast.For, ast.AsyncFor, ast.comprehension)):
            return made.iter
        if isinstance(made, (ast.Assign, ast.AnnAssign)):
            return made.value
        if isinstance(made, ast.withitem):
            return made.context_expr
        return made if isinstance(made, ast.expr) else None

    def _operands(self, node: ast.AST) -> list[ast.expr]:
        """The expressions that an expression or a statement computes with directly."""
        if isinstance(node, ast.Call):
            func = node.func
            before = [func] if self._weights(node) else [func.value] if isinstance(func, ast.Attribute) else []
            return [*before, *map(_unstarred, node.args), *(keyword.value for keyword in node.keywords)]
        if isinstance(node, ast.BinOp):
            return [node.left, node.right]
        if isinstance(node, ast.Subscript):
            return [node.value]
        if isinstance(node, ast.IfExp):
            return [node.body, node.orelse]
        if isinstance(node, ast.Compare):
            return [node.left, *node.comparators]
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            return [node.elt]
        if isinstance(node, ast.AugAssign):
            return [node.target, node.value]
        if isinstance(node, (ast.Name, ast.Lambda, ast.Constant, *FUNCTIONS)):
            return []
        return [_unstarred(one) for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]

    def _layer(self, node: ast.AST) -> ast.Call | None:
        """The call by which a layer runs that an expression is."""
        call = self._facts.around.parent(node)
        return call if isinstance(call, ast.Call) and call.func is node and self._weights(call) else None

    def _asked_for_dtypes(self, node: ast.AST) -> Iterator[ast.expr]:
        """The tensors whose dtypes a factory is told, by whatever variables: `x` of `dtype=x.dtype`."""
        if isinstance(node, ast.Call):
            for part in self._facts.around.made_of(node):
                if isinstance(part, ast.Attribute) and part.attr == "dtype":
                    yield part.value

    def _weights(self, call: ast.Call) -> frozenset[str]:
        """The dtypes of the weights of a layer that is called."""
        for operation in self._facts.operations_at(call):
            if len(operation.args) > len(call.args) and operation.op[9:10].isupper():
                return _of(operation.args[0])
        return frozenset()

    def _dtypes(self, node: ast.AST) -> frozenset[str]:
        """The dtypes that an expression can have, as far as they are floating or assumed, those of a layer's weights where
        it is one; nothing where these are not known."""
        if not isinstance(node, ast.expr):
            return frozenset()
        layer = self._layer(node)
        return (_of(self._facts.tensor(node)) if layer is None else self._weights(layer)) & self._followed


def _of(value: Value) -> frozenset[str]:
    if isinstance(value, (Tensor, Unknown)):
        return value.dtypes or frozenset()
    if isinstance(value, Tuple):
        return frozenset().union(*map(_of, value.items))
    if isinstance(value, Many):
        return _of(value.item)
    found = [_of(one) for one in choices(value) if one is not value]
    return frozenset().union(*found) if found and not isinstance(value, Ref) else frozenset()


def _words(dtypes: frozenset[str]) -> str:
    return " or ".join(sorted(dtypes))


def _unstarred(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Starred) else node


def _registers(call: ast.Call, name: str) -> bool:
    """Does it make a buffer or a parameter of that name?"""
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr in ("register_buffer", "register_parameter")
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value == name
    )


def _argument(call: ast.Call, function: ast.AST | None, parameter: ast.arg) -> ast.expr | None:
    """What a call gives for a parameter, as far as it is written there."""
    if not isinstance(function, FUNCTIONS):
        return None
    for keyword in call.keywords:
        if keyword.arg == parameter.arg:
            return keyword.value
    names = [*function.args.posonlyargs, *function.args.args]
    if parameter not in names or any(isinstance(one, ast.Starred) for one in call.args):
        return None
    place = names.index(parameter) - (1 if names and names[0].arg in ("self", "cls") else 0)
    return call.args[place] if 0 <= place < len(call.args) else None
