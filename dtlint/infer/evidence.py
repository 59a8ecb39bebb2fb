"""What a path can only be, judged by what the function does with it: a module, or a tensor.

A parameter has no construction in view. But who calls `model.named_parameters()` has a module in hand, and who calls
`x.masked_fill(...)`, or hands `x` to what takes nothing but tensors, has a tensor. Only methods that nothing else in a
torch program has count as evidence. It holds from one binding of the path to the next, and what is done under a test of
what the path is (`isinstance`, `hasattr`) counts for nothing.
"""

from __future__ import annotations

import ast
from bisect import bisect
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.walk import SCOPES, nodes
from dtlint.source.blocks import blocks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["NO_EVIDENCE", "OF_TENSORS", "Evidence", "Kind", "gather"]


class Kind(Enum):
    """What the evidence says a path is."""

    MODULE = "module"
    TENSOR = "tensor"


_HANDED = "(...)"
"""Stands among the methods called on a path for a call that it is handed to, which takes tensors there and nothing else."""

TakesTensors = Callable[[ast.Call], int]
"""How many of its first arguments a call takes for tensors, whatever they are."""

_PROOFS: dict[Kind, tuple[frozenset[str], ...]] = {
    Kind.MODULE: tuple(
        frozenset(methods)
        for methods in (
            {"named_parameters"},
            {"named_modules"},
            {"named_buffers"},
            {"named_children"},
            {"register_buffer"},
            {"register_parameter"},
            {"register_forward_hook"},
            # Each of these alone is known from elsewhere: eval of data frames, train of trainers, state_dict of
            # optimizers, parameters of signatures. Two together are not.
            {"parameters", "train"},
            {"parameters", "eval"},
            {"parameters", "half"},
            {"parameters", "state_dict"},
            {"parameters", "load_state_dict"},
            {"eval", "half"},
            {"train", "half"},
            {"train", "eval"},
            {"load_state_dict", "eval"},
            {"load_state_dict", "half"},
        )
    ),
    Kind.TENSOR: tuple(
        frozenset({method})
        for method in (
            *(
                "masked_fill",
                "masked_fill_",
                "unsqueeze",
                "index_select",
                "scatter_",
                "scatter_add_",
                "expand_as",
                "type_as",
            ),
            *("new_zeros", "new_ones", "new_full", "new_tensor", "is_floating_point", "data_ptr", "clamp_", "detach_"),
            *("masked_scatter", "masked_scatter_", "masked_select", "index_add_", "index_copy_", "scatter_reduce"),
            *("rsqrt", "log_softmax", "logsumexp", "view_as", "new_empty", "unbind", "numel"),
            _HANDED,
        )
    ),
}
OF_TENSORS = frozenset[str]().union(*_PROOFS[Kind.TENSOR]) - {_HANDED}
"""Methods that nothing in a torch program has but a tensor."""


_PROVING = frozenset[str]().union(*(proof for proofs in _PROOFS.values() for proof in proofs))
"""The methods that count."""

_KEEPING = frozenset(
    {"to", "half", "float", "double", "bfloat16", "cuda", "cpu", "eval", "train", "requires_grad_", "module"}
    | {"detach", "clone", "contiguous", "unsqueeze", "squeeze", "masked_fill", "index_select", "view", "reshape"}
    | {"permute", "transpose", "flatten", "expand_as", "type_as", "clamp_"}
)
"""`x = x.half()` binds `x` anew, to the same kind of thing. `module` is what a parallel wrapper holds."""

_QUESTIONS = frozenset({"isinstance", "issubclass", "hasattr", "getattr", "callable", "type", "is_tensor"})
"""Functions by which a program asks what it has in hand."""

Calls = dict[str, list[tuple[int, str]]]
"""For each path, the methods that are called on it, with their lines."""


class Evidence:
    """What paths are in a function, by where they stand: a binding parts the evidence before it from that behind it.

    The bindings are looked for when it is first asked: half of all functions have evidence of what is known anyway.

    Attributes:
        paths: the paths that there is evidence of.
        attributes: the last names of those paths that are no plain names.
    """

    __slots__ = ("_calls", "_found", "_function", "attributes", "paths")

    def __init__(self, function: ast.AST, paths: Iterable[str], calls: Calls) -> None:
        self._function, self._calls = function, calls
        self.paths = frozenset(paths)
        self.attributes = frozenset([path.rpartition(".")[2] for path in self.paths if "." in path])
        self._found: dict[str, tuple[list[float], dict[int, Kind]]] | None = None
        """For each path the lines at which it may come to stand for something else, and what it is between two of them,
        by the number of those before."""

    def kind(self, path: str, line: int) -> Kind | None:
        """What a path can only be on a line; None when that is not shown."""
        if path not in self.paths:
            return None
        if self._found is None:
            self._found = dict(self._find())
        cuts, kinds = self._found[path]
        return kinds.get(bisect(cuts, line))

    def _find(self) -> Iterator[tuple[str, tuple[list[float], dict[int, Kind]]]]:
        bound = _bindings(self._function, {part for path in self.paths for part in _prefixes(path)})
        for path in self.paths:
            cuts = sorted({cut for part in _prefixes(path) for cut in bound.get(part, ())})
            between: dict[int, list[tuple[int, str]]] = {}
            for call in self._calls.get(path, ()):
                between.setdefault(bisect(cuts, call[0]), []).append(call)
            kinds = {number: kind for number, called in between.items() if (kind := _proved(called)) is not None}
            yield path, (cuts, kinds)


NO_EVIDENCE = Evidence(ast.Module([], []), (), {})


def gather(function: ast.AST, takes_tensors: TakesTensors | None = None) -> Evidence:
    """The evidence in a function's body; where a path has evidence of both kinds, it has none."""
    calls = _calls(facts(function).calls, frozenset(), takes_tensors)
    paths = [path for path, called in calls.items() if _proved(called) is not None]
    if not paths:
        return NO_EVIDENCE
    if not (asked := _asked(function)).isdisjoint(paths):
        unasked = _Unasked(asked, takes_tensors)
        unasked.statements(_body(function))
        calls = unasked.calls
    return Evidence(function, paths, calls)


def _proved(called: list[tuple[int, str]]) -> Kind | None:
    return _proved_by(frozenset([method for _, method in called]))


@lru_cache(maxsize=1024)
def _proved_by(methods: frozenset[str]) -> Kind | None:
    """What has all these methods, of those that count."""
    proved = [kind for kind, proofs in _PROOFS.items() if any(proof <= methods for proof in proofs)]
    return proved[0] if len(proved) == 1 else None


def _calls(parts: Iterable[ast.AST], hidden: frozenset[str], takes_tensors: TakesTensors | None) -> Calls:
    calls: Calls = {}
    for node in parts:
        if type(node) is not ast.Call:
            continue
        if type(node.func) is ast.Attribute and node.func.attr in _PROVING:
            path = path_of(node.func.value)
            if path is not None and path not in hidden:
                calls.setdefault(path, []).append((node.lineno, node.func.attr))
        if takes_tensors is not None and node.args and type(node.args[0]) is ast.Name:
            for given in node.args[: takes_tensors(node)]:
                if type(given) is ast.Name and given.id not in hidden:
                    calls.setdefault(given.id, []).append((node.lineno, _HANDED))
    return calls


def _body(function: ast.AST) -> list[ast.stmt]:
    if isinstance(function, ast.Lambda):
        return [ast.copy_location(ast.Expr(function.body), function.body)]
    return function.body  # type: ignore[attr-defined, no-any-return]


def _prefixes(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]


def _bindings(function: ast.AST, paths: set[str]) -> dict[str, set[float]]:
    """For each path, the cuts that its bindings make, between the lines: behind the statement, and where a branch with
    a binding begins and ends."""
    cuts: dict[str, set[float]] = {}
    inside = not facts(function).bound_inside.isdisjoint(paths)

    def read(body: list[ast.stmt], around: tuple[float, ...]) -> None:
        for statement in body:
            if not inside and _binds_none_of(statement, paths):
                continue
            end = (statement.end_lineno or statement.lineno) + 0.5
            if isinstance(statement, SCOPES):
                cuts.setdefault(statement.name, set()).update((end, *around))
                continue
            blocks = blocks_of(statement)
            cut = blocks[0][0].lineno - 0.5 if blocks else end
            for path in _stored(statement, inside):
                if path in paths:
                    cuts.setdefault(path, set()).update((cut, *around))
            for block in blocks:
                read(block, (*around, block[0].lineno - 0.5, (block[-1].end_lineno or block[-1].lineno) + 0.5))

    read(_body(function), ())
    return cuts


def _binds_none_of(statement: ast.stmt, paths: set[str]) -> bool:
    """Is it seen at once that a statement binds none of these? Most bind one plain name, or nothing."""
    kind = type(statement)
    if kind is ast.Assign:
        targets: list[ast.expr] = statement.targets  # type: ignore[attr-defined]
        return len(targets) == 1 and type(targets[0]) is ast.Name and targets[0].id not in paths
    return kind in _BINDING_NOTHING


_BINDING_NOTHING = frozenset({ast.Expr, ast.Return, ast.Raise, ast.Assert})
"""Statements that bind names inside their expressions alone."""


def _stored(statement: ast.stmt, inside: bool) -> Iterator[str]:
    """The paths that a statement binds anew itself, outside its blocks; those of comprehensions and `:=` only if asked."""
    if type(statement) is ast.Assign and len(statement.targets) == 1 and _keeps(statement.targets[0], statement.value):
        return
    targets = (
        [child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem))]
        if inside
        else _targets(statement)
    )
    for node in nodes(targets, SCOPES):
        kind = type(node)
        if (kind is ast.Name or kind is ast.Attribute) and type(node.ctx) is not ast.Load:  # type: ignore[attr-defined]
            path = path_of(node)
            if path is not None:
                yield path


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement binds, as it is written."""
    if isinstance(statement, (ast.Assign, ast.Delete)):
        return statement.targets
    if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        return [statement.target]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return []


def _keeps(target: ast.expr, value: ast.expr) -> bool:
    """Is it `x = x.half()`, or a chain of such methods?"""
    path = path_of(target)
    while True:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func
        if not isinstance(value, ast.Attribute) or value.attr not in _KEEPING:
            return False
        value = value.value
        if path_of(value) == path:
            return path is not None


def _asked(part: ast.AST) -> frozenset[str]:
    """Paths of which the code asks what they are."""
    whole = isinstance(part, (*SCOPES, ast.Module))
    if whole and facts(part).called.isdisjoint(_QUESTIONS):
        return frozenset()
    return frozenset(
        path
        for node in (facts(part).calls if whole else nodes([part], SCOPES))
        if isinstance(node, ast.Call) and node.args and (path_of(node.func) or "").rpartition(".")[2] in _QUESTIONS
        for path in [path_of(node.args[0])]
        if path is not None
    )


class _Unasked:
    """Collects the methods called on paths where no test in force has asked what they are."""

    def __init__(self, asked: frozenset[str], takes_tensors: TakesTensors | None) -> None:
        self.asked, self.takes_tensors = asked, takes_tensors
        self.calls: Calls = {}

    def statements(self, body: list[ast.stmt], hidden: frozenset[str] = frozenset()) -> None:
        """Read a block. What stands behind `if not isinstance(x, Tensor): return` is under that test too."""
        for statement in body:
            inner = hidden
            if isinstance(statement, (ast.If, ast.While, ast.Assert)):
                inner |= _asked(statement.test)
            if isinstance(statement, SCOPES):
                continue
            blocks = blocks_of(statement)
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    self.expression(child, hidden)
                elif isinstance(child, ast.withitem):
                    self.expression(child.context_expr, hidden)
            for block in blocks:
                self.statements(block, inner)
            if isinstance(statement, ast.Assert) or any(isinstance(block[-1], _LEAVING) for block in blocks):
                hidden = inner

    def expression(self, node: ast.expr, hidden: frozenset[str]) -> None:
        """Read an expression. In `isinstance(x, Tensor) and x.half()` all is under the test."""
        for part in nodes([node], SCOPES):
            if isinstance(part, (ast.IfExp, ast.BoolOp, ast.comprehension)):
                hidden |= _asked(part)
        for path, called in _calls(nodes([node], SCOPES), hidden, self.takes_tensors).items():
            self.calls.setdefault(path, []).extend(called)


_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)
