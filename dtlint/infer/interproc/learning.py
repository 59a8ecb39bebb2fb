"""What the functions of a file show of one another's parameters while they are read, before anything is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Recorder

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from dtlint.infer.context import Arguments, Frame
    from dtlint.infer.domain.values import Value
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.parameter_kinds import ParameterKinds

__all__ = ["Examples", "Learning"]


class Learning(Recorder):
    """Is told of the calls in view, and of floats of other dtypes than the assumed one.

    Args:
        kinds: what is known of the parameters so far, and what is learnt is added to.
    """

    def __init__(self, kinds: ParameterKinds) -> None:
        self._kinds = kinds
        self.more = False
        """Has something been learnt that was not known?"""

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated."""
        self.more |= self._kinds.other_floats.expression(value, frame.function)

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated."""
        self.more |= self._kinds.other_floats.call(callee, result)

    def called(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> None:
        """A function of the file is called with these arguments."""
        self.more |= self._kinds.called(definition, bound)


class Examples(Recorder):
    """Is told of the calls in examples, where floats are of the assumed dtype.

    Args:
        kinds: what is known of the parameters so far, and what examples give is added to.
    """

    def __init__(self, kinds: ParameterKinds) -> None:
        self._kinds = kinds

    def called(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> None:
        """A function of the file is called with these arguments."""
        self._kinds.exemplified(definition, bound)
