"""Where floats of another dtype than the assumed one are about: what is not known there may be of that dtype."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Function, Tensor, Unknown, Value, choices
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = ["OtherFloats"]


class OtherFloats:
    """Is told what functions evaluate, and finds those that may be given floats of another dtype without that being known.

    Functions that make such floats are told by what they evaluate. What is not known goes from these to the functions that they
    call with it, to those that they give it back to, and to the methods of an object that one of its methods has set it in.

    Args:
        assumed: the dtype that floats have otherwise.
    """

    def __init__(self, assumed: str) -> None:
        self._others = FLOATING - {assumed}
        self._makers: set[object] = set()
        self._leads: dict[object, set[object]] = {}
        """Where what is not known in a function, or in the methods of a class, goes to."""

    def expression(self, value: Value, function: FunctionDefinition | None) -> bool:
        """A function has evaluated an expression. Is it the first that shows such floats there?"""
        tensors = (one for one in choices(value) if isinstance(one, (Tensor, Unknown)))
        if not any(one.dtypes and one.dtypes <= self._others for one in tensors):
            return False
        self._meet(function)
        if function in self._makers or (function is not None and function.name == "__init__"):
            return False  # what an object begins with is known, and was cast with it
        self._makers.add(function)
        return True

    def call(
        self, callee: Value, given: Iterable[Value], result: Value | None, function: FunctionDefinition | None
    ) -> None:
        """A function has called another one."""
        if not isinstance(callee, Function):
            return
        caller, called = function, callee.definition
        self._meet(caller)
        self._meet(called)
        if any(map(_is_open, given)):
            self._leads[caller].add(called)
        if result is not None and _is_open(result):
            self._leads[called].add(caller)

    def _meet(self, function: FunctionDefinition | None) -> None:
        """Methods of a class share what one of them sets an attribute to."""
        if function in self._leads:
            return
        self._leads[function] = set()
        if function is not None and function.owner is not None:
            self._leads.setdefault(function.owner, set()).add(function)
            if _sets_attributes(function.node):
                self._leads[function].add(function.owner)

    def are_anywhere(self) -> bool:
        """Are there such floats in the file at all?"""
        return bool(self._makers)

    def may_reach(self, function: FunctionDefinition) -> bool:
        """May what is not known in a function be of another dtype?"""
        reached, waiting = set(self._makers), list(self._makers)
        while waiting:
            for one in self._leads.get(waiting.pop(), set()) - reached:
                reached.add(one)
                waiting.append(one)
        return function in reached


@lru_cache(maxsize=4096)
def _sets_attributes(function: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) for one in nodes([function]))


def _is_open(value: Value) -> bool:
    return any(isinstance(one, (Tensor, Unknown)) and one.dtypes is None for one in choices(value))
