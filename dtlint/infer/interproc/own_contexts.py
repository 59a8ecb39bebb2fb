"""Tells of each function of a library as anybody may call it, and of none as others in view do: that is one case of the former."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Recorder
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from dtlint.infer.context import Arguments, Context, Frame
    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.project import ModuleInfo

__all__ = ["OwnContexts"]


class OwnContexts(Recorder):
    """Hands on what happens in the function that is read, and in the functions inside it.

    Args:
        recorder: is told of it.
        main: the library.
        tells_of_constructors: is it told as well of what a constructor calls in the library? Nobody has cast its object yet.
    """

    def __init__(self, recorder: Recorder, main: ModuleInfo, *, tells_of_constructors: bool) -> None:
        self._recorder = recorder
        self._main = main
        self._tells_of_constructors = tells_of_constructors
        self._entry: FunctionDefinition | None = None
        self._inside: frozenset[ast.AST] = frozenset()

    def enter(self, entry: FunctionDefinition | None) -> None:
        """From here on a function is read, None for the library's body."""
        self._entry = entry
        if entry is not None:
            self._inside = frozenset(part for part in nodes([entry.node]) if isinstance(part, SCOPES))

    def _is_told(self, frame: Frame) -> bool:
        function: FunctionDefinition | None = frame.function
        if function is None or self._entry is None:  # the body, and what it calls
            return True
        if self._tells_of_constructors and self._entry.name == "__init__" and function.module is self._main:
            return True
        return function.node in self._inside and (function is not self._entry or frame.path is None)

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated."""
        if self._is_told(frame):
            self._recorder.expression(node, value, frame)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated."""
        if self._is_told(frame):
            self._recorder.call(node, callee, arguments, result, frame)

    def evaluated(self, node: ast.AST, operands: tuple[Value, ...], result: Value, ctx: Context) -> None:
        """An operator, a subscript or an assignment was evaluated."""
        if self._is_told(ctx.frame):
            self._recorder.evaluated(node, operands, result, ctx)

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated."""
        if self._is_told(ctx.frame):
            self._recorder.operation(op, args, keywords, result, error, ctx)

    def refusals(self) -> int:
        """How many operations that raise were recorded so far."""
        return self._recorder.refusals()

    def withdraw(self, first: int, end: int) -> None:
        """Forget the refusals from one to another."""
        self._recorder.withdraw(first, end)

    def module_begins(self, module: ModuleInfo) -> None:
        """A module's body is going to be run."""
        self._recorder.module_begins(module)

    def module_ends(self) -> None:
        """The body has been run."""
        self._recorder.module_ends()

    def event(self, kind: str, ctx: Context, *about: Value) -> None:
        """A protocol took a step."""
        if self._is_told(ctx.frame):
            self._recorder.event(kind, ctx, *about)
