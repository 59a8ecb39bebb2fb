"""What dtlint claims of each expression of a file: the dtypes that a tensor there can have."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Span
from dtlint.dtypes.dtype import Category
from dtlint.infer.calls import cast_target
from dtlint.infer.interpreter import Interpreter, TooLong
from dtlint.infer.kinds import NEW
from dtlint.infer.names import path_of
from dtlint.infer.ops import REARRANGING
from dtlint.infer.program.altered import altered_layers
from dtlint.infer.program.functions import ANY_REGION
from dtlint.infer.program.machine import Program, may_be_autocast
from dtlint.infer.program.project import ModuleInfo, Project
from dtlint.infer.regions import is_untouched
from dtlint.infer.values import (
    UNKNOWN,
    Array,
    Constant,
    Dtypes,
    Either,
    Module,
    Number,
    Tensor,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.source.file import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dtlint.infer.calls import Arguments
    from dtlint.infer.scopes import FunctionNode
    from dtlint.infer.values import Autocast, Symbol

__all__ = ["Claim", "Decided", "Reading", "claims", "read"]

_KINDS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)
"""The expressions that are spoken of, where they are read and not assigned to."""


_MANY = 3
"""More dtypes than this at one place say nothing to a person."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The dtypes that the tensor at `span` can have; None for a tensor of which nothing is known."""

    span: Span
    dtypes: Dtypes
    symbolic: str | None = None
    """What decides the dtype where there is not one alone: "the dtype of `x`"."""


@dataclass(frozen=True, slots=True)
class Decided:
    """What decides a dtype that is not known.

    Attributes:
        origin: the expression that gave the tensor its dtype.
        anywhere: does it hold in autocast regions, too, that the caller has opened?
        rebound: names that the function binds itself, so that a parameter of that name is not what it was.
    """

    symbol: Symbol
    origin: ast.expr | None = field(default=None, compare=False)
    anywhere: bool = True
    rebound: frozenset[str] = frozenset()

    @property
    def text(self) -> str:
        """In words: "the dtype of `x`, if that is floating, outside autocast"."""
        where = "" if self.anywhere else ", outside autocast"
        return f"{_names(self.symbol, self.rebound)}{_condition(self.symbol)}{where}"


def _names(symbol: Symbol, rebound: frozenset[str]) -> str:
    """What decides; a parameter that stands for something else by then is told from that."""
    names = sorted(
        f"`{atom.text}`" + " as given" * (atom.parameter and atom.text in rebound) for atom in symbol.of
    ) + sorted(symbol.met)
    if len(names) == 1:
        return f"the dtype of {names[0]}"
    if len(symbol.of) == 1:
        return f"the dtype of {names[0]} promoted with {' and '.join(names[1:])}"
    return f"the dtypes of {', '.join(names[:-1])} and {names[-1]} promoted"


def _condition(symbol: Symbol) -> str:
    """Where another dtype would be lifted: an integer by `x * 0.5`, a truth by `x + 1`."""
    if symbol.floor is Category.BOOL or all(atom.floating for atom in symbol.of):
        return ""
    several = len(symbol.of) > 1
    if symbol.floor is Category.INTEGER and not symbol.widens:
        return f", unless {'one' if several else 'that'} is bool"
    return ", if all are floating" if several else ", if that is floating"


def _is_told(symbol: Symbol) -> bool:
    """Can it be told in words? Not by a dtype that has a name, which is no tensor; nor what complex numbers lift; nor where
    tensors that may have no dimensions are promoted, which yield to others of their category."""
    if symbol.floor is Category.COMPLEX or not all(atom.text and not atom.is_dtype for atom in symbol.of):
        return False
    return not (symbol.reduced and (symbol.met or len(symbol.of) > 1))


class Reading:
    """What one reading of a program has shown of its expressions."""

    def __init__(self, path: Path, main: Source, recorder: _Recorder) -> None:
        self.path, self.main = path, main
        self.tree = recorder.main.tree
        self._sources: dict[Path, Source] = {path: main}
        hidden = {id(node) for info in recorder.uncovered.values() for node in ast.walk(info.node)}
        self.tensors: dict[ast.expr, tuple[Path, Tensor]] = {
            node: (where.path, value)
            for node, (where, value) in (recorder.seen.items() if recorder.settled else ())
            if isinstance(value, Tensor) and where.path is not None and id(node) not in hidden
        }
        """Each expression that is a tensor, with its file. None of them where the reading did not come to rest."""
        self.perhaps = recorder.perhaps
        """Expressions that are a number or an array of NumPy, if they are no tensor: `n == 0`, where nothing is known of n."""
        self.broken_off = recorder.broken_off
        """Did reading it take too long, so that nothing is claimed?"""
        self.decided = _decided(recorder.main.tree)
        """What decides the dtype of expressions of the main file, where its functions are read for any caller."""

    def knows(self, node: ast.expr) -> bool:
        """Are the dtypes of a tensor expression so few that they say something?"""
        if node not in self.tensors or node in self.perhaps:
            return False
        dtypes = self.tensors[node][1].dtypes
        return dtypes is not None and 0 < len(dtypes) <= _MANY

    def source(self, path: Path) -> Source:
        """The source of a file that was read."""
        known = self._sources.get(path)
        if known is None:
            known = self._sources[path] = Source.read(path)
        return known

    def file(self, node: ast.expr) -> Path:
        """The file of a tensor expression."""
        return self.tensors[node][0] if node in self.tensors else self.path

    def span(self, node: ast.expr) -> Span:
        """Where a tensor expression stands in its file."""
        return self.source(self.file(node)).span(node)

    def claims(self) -> dict[Path, list[Claim]]:
        """The claims for each file, in order of place."""
        found: dict[Path, list[Claim]] = {path: [] for path in self._sources}
        by_place: dict[tuple[Path, Span], Dtypes] = {}  # `x += y` reads x in a node of its own, each time anew
        for node, (path, value) in self.tensors.items():
            place = path, self.span(node)
            known = by_place.get(place, frozenset())
            by_place[place] = None if known is None or value.dtypes is None else known | value.dtypes
        decided = {self.main.span(node): known.text for node, known in self.decided.items()}
        for span in decided:
            by_place.setdefault((self.path, span), None)
        for (path, span), dtypes in by_place.items():
            symbolic = decided.get(span) if path == self.path and (dtypes is None or len(dtypes) > 1) else None
            found.setdefault(path, []).append(Claim(span, dtypes, symbolic))
        return {file: sorted(given, key=lambda claim: claim.span) for file, given in found.items()}

    def at(self, path: Path, line: int, column: int) -> ast.expr | None:
        """The innermost tensor expression at a place of a file; line from 1, column in characters from 0."""
        here = Span(line, column, line, column)
        around = [
            (span, node)
            for node in (*self.tensors, *self.decided)
            if self.file(node) == path and (span := self.span(node)).contains(here)
        ]
        innermost = max(around, key=lambda found: _closeness(found[0]), default=None)
        return None if innermost is None else innermost[1]


def _closeness(span: Span) -> tuple[int, int, int, int]:
    """Of spans around one place the innermost has the most."""
    return span.line, span.column, -span.end_line, -span.end_column


def read(path: Path, roots: Sequence[Path]) -> Reading:
    """Read a program, with every file that it imports from.

    Args:
        path: a program, or a module of a library.
        roots: folders in which imported modules are looked for.

    Raises:
        OSError, SyntaxError, ValueError, RecursionError: the file cannot be read, or does not parse.
    """
    source = Source.read(path)
    main = ModuleInfo("__main__", path, ast.parse(source.text), "")
    recorder = _Recorder(Project(roots, main), main)
    recorder.run()
    return Reading(path, source, recorder)


def claims(path: Path, roots: Sequence[Path]) -> dict[Path, list[Claim]]:
    """The claims for a file and for every file that it imports from; see `read`."""
    return read(path, roots).claims()


class _Remembering(Interpreter):
    """An interpreter that remembers what the expressions were that are spoken of."""

    def evaluator(self, kind: type[ast.expr], evaluate: Callable[[Any], Value]) -> Callable[[Any], Value]:
        def remembered(node: ast.expr) -> Value:
            value: Value = evaluate(node)
            if not self.muted:
                self.remember(node, value)
            return value

        return remembered if kind in _KINDS else evaluate

    def passed(self, part: ast.BinOp, value: Value) -> None:
        if not self.muted:
            self.remember(part, value)

    def remember(self, node: ast.expr, value: Value) -> None:
        """An expression was evaluated, not for the first time perhaps."""
        raise NotImplementedError


class _Recorder(_Remembering, Program):
    """An interpreter that remembers what each expression was, over all the times that it was evaluated."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.seen: dict[ast.expr, tuple[ModuleInfo, Value]] = {}
        self.perhaps: set[ast.expr] = set()

    def begin_round(self) -> None:
        self.seen.clear()
        self.perhaps.clear()

    def remember(self, node: ast.expr, value: Value) -> None:
        known = self.seen.get(node)
        if type(value) is Either and any(isinstance(choice, (Array, Number)) for choice in value.choices):
            self.perhaps.add(node)
        self.seen[node] = (self.module, _seen(value) if known is None else _both(known[1], _seen(value)))


class _Symbols(_Remembering):
    """An interpreter of one file for any caller, that remembers by what the dtypes are decided that are not known."""

    def __init__(self, tree: ast.Module, around: Autocast | None) -> None:
        super().__init__(tree, {})
        self.symbolic = True
        self.default = None  # who calls may have set another
        self.around = around
        """The autocast region that functions are called in."""
        self.seen: dict[ast.expr, Decided | None] = {}
        self.altered = altered_layers(tree)

    def remember(self, node: ast.expr, value: Value) -> None:
        decided: Decided | None = None
        function = self.flow.function  # what stands outside of all is given nothing
        if isinstance(value, Tensor) and function is not None and (value.dtypes is None or len(value.dtypes) > 1):
            symbol = value.symbol
            if symbol is not None and _is_told(symbol):
                decided = Decided(symbol, value.origin, rebound=_bound_in(function.node))
        if self.seen.setdefault(node, decided) != decided:
            self.seen[node] = None

    def regions_at_start(self) -> list[Autocast]:
        return [] if self.around is None else [self.around]

    def region_of(self, context: ast.expr, value: Value) -> Autocast | None:
        region = super().region_of(context, value)
        return ANY_REGION if region is None and type(value) is Unknown and may_be_autocast(context) else region

    def enter(self, expression: ast.expr, context: Autocast) -> None:
        # Inside regions of others, one of its own says nothing of what is on another device.
        super().enter(expression, context if self.around is None else self.around)

    def forwarded(self, module: Module, arguments: Arguments) -> Value:
        result = super().forwarded(module, arguments)
        path = path_of(arguments.node.func) or ""
        function = self.flow.function
        owner = function.owner.node.name if function is not None and function.owner is not None else ""
        if isinstance(result, Tensor) and any(self.altered.has(owner, name) for name in path.split(".")):
            return result.but(dtypes=None, symbol=None, cast=None)
        return result

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        target, result = super().called(node, callee, receiver, method, arguments)
        if isinstance(result, Tensor) and result.symbol is not None and not _is_spared(target, receiver, arguments):
            result = result.but(dtypes=None, symbol=None, cast=None)
        return target, result


@lru_cache(maxsize=1)
def _bound_in(function: FunctionNode) -> frozenset[str]:
    """The names that a function binds: those of its parameters stand for something else by then."""
    return frozenset(
        part.id for part in ast.walk(function) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )


def _is_spared(target: str, receiver: Value, arguments: Arguments) -> bool:
    """Does autocast leave a call alone? A layer's is told with its region in mind, as is what the project defines."""
    if not target.startswith("torch.") or target.startswith("torch.nn.Module."):
        return True
    given = [*arguments.args, *arguments.keywords.values()]
    if isinstance(receiver, Tensor):
        method = target.rpartition(".")[2]
        if method in _UNTOUCHED or method in REARRANGING or cast_target(method, arguments)[0]:
            return True
        given.insert(0, receiver)
    return is_untouched(target, arguments.region, given)


_UNTOUCHED = NEW | {"to", "view"}
"""Methods of tensors in which autocast has no say, and that are no ops of the table."""


def _decided(tree: ast.Module) -> dict[ast.expr, Decided]:
    """What decides in any autocast region, and what does outside, where a region would decide itself."""
    outside, anywhere = _decided_in(tree, None), _decided_in(tree, ANY_REGION)
    return {
        node: decided if anywhere.get(node) == decided else replace(decided, anywhere=False)
        for node, decided in outside.items()
    }


def _decided_in(tree: ast.Module, around: Autocast | None) -> dict[ast.expr, Decided]:
    symbols = _Symbols(tree, around)
    with suppress(RecursionError, TooLong):
        symbols.run()
    return {node: decided for node, decided in symbols.seen.items() if decided is not None}


_NO_TENSOR = Constant(None)
"""What was seen of an expression that was no tensor: nothing is claimed, and nothing contradicted."""


def _seen(value: Value) -> Value:
    """A tensor, Unknown if it may be one, or no tensor."""
    result: Value = _NO_TENSOR
    for choice in options(value):
        result = _both(result, choice if isinstance(choice, (Tensor, Unknown)) else _NO_TENSOR)
    return result


def _both(known: Value, value: Value) -> Value:
    if isinstance(known, Unknown) or isinstance(value, Unknown):
        return UNKNOWN
    if known is _NO_TENSOR:
        return value
    return known if value is _NO_TENSOR else join(known, value)
