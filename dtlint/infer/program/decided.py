"""What decides a dtype that is not known, for any caller: the dtype of a parameter, the weights of a layer, both promoted.

A file is read twice, as called outside of autocast and as called in any region: what only holds outside says so.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.calls import cast_target
from dtlint.infer.interpreter import TooLong
from dtlint.infer.kinds import NEW
from dtlint.infer.names import path_of
from dtlint.infer.ops import REARRANGING
from dtlint.infer.program.altered import altered_layers
from dtlint.infer.program.functions import ANY_REGION
from dtlint.infer.program.machine import may_be_autocast
from dtlint.infer.program.remembering import Remembering
from dtlint.infer.regions import is_untouched
from dtlint.infer.values import Module, Tensor, Unknown, Value

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments
    from dtlint.infer.scopes import FunctionNode
    from dtlint.infer.values import Autocast, Symbol

__all__ = ["Decided", "decided_in"]


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


class _Symbols(Remembering):
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


def decided_in(tree: ast.Module) -> dict[ast.expr, Decided]:
    """What decides in any autocast region, and what does outside, where a region would decide itself."""
    outside, anywhere = _decided(tree, None), _decided(tree, ANY_REGION)
    return {
        node: decided if anywhere.get(node) == decided else replace(decided, anywhere=False)
        for node, decided in outside.items()
    }


def _decided(tree: ast.Module, around: Autocast | None) -> dict[ast.expr, Decided]:
    symbols = _Symbols(tree, around)
    with suppress(RecursionError, TooLong):
        symbols.run()
    return {node: decided for node, decided in symbols.seen.items() if decided is not None}
