"""DT209: an autocast context is made and never entered."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.values import Autocast
from dtlint.infer.walk import SCOPES, nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Discard, End

__all__ = ["AutocastNotEntered"]

_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})


class AutocastNotEntered(Rule):
    """An autocast context is made and never entered.

    ## What it does
    Reports `torch.autocast(...)` as a statement of its own, as what a `@contextmanager` yields, and as one side of
    `and` or `or` in a `with`, of which Python enters only one.

    ## Why it matters
    Making the object does nothing. Everything runs in float32, at the speed and the memory of float32, and no error
    tells.

    ## Example
    ```python
    import contextlib

    import torch

    @contextlib.contextmanager
    def mixed_precision():
        yield torch.autocast("cpu", dtype=torch.bfloat16)

    with mixed_precision():
        y = torch.randn(4, 4) @ torch.randn(4, 4)
    ```

    ## Use instead
    ```python
    import contextlib

    import torch

    @contextlib.contextmanager
    def mixed_precision():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            yield

    with mixed_precision():
        y = torch.randn(4, 4) @ torch.randn(4, 4)
    ```

    ## References
    - [torch.autocast](https://docs.pytorch.org/docs/stable/amp.html#torch.autocast)
    """

    code, name = "DT209", "autocast-not-entered"
    triggers = ("*autocast*",)
    calls = frozenset({"*autocast*", "*amp*", "*precision*", "*ctx*", "*context*", ""})

    def __init__(self) -> None:
        self.made: set[ast.expr] = set()

    def on_call(self, call: Call) -> Iterable[Finding]:
        if isinstance(call.result, Autocast):
            self.made.add(call.node)
        return ()

    def on_discard(self, discard: Discard) -> Iterator[Finding]:
        if isinstance(discard.value, Autocast):
            yield Finding(
                discard.node.value,
                "The autocast context is discarded: it does nothing until it is entered",
                help="Use it in a `with` statement",
            )

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or not self.made:
            return
        for node in nodes([end.flow.tree]):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from self._yielded(node)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                yield from self._combined(node)

    def _yielded(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
        decorators = {last_name(part) for part in function.decorator_list}
        if decorators.isdisjoint(_MANAGERS):
            return
        for node in nodes(function.body, SCOPES):
            if isinstance(node, ast.Yield) and node.value in self.made and not _entered_by_caller(function):
                yield Finding(
                    node.value,
                    "The autocast context is yielded but never entered: the `with` block runs in float32",
                    help="Write `with torch.autocast(...): yield`",
                )

    def _combined(self, node: ast.With | ast.AsyncWith) -> Iterator[Finding]:
        for item in node.items:
            both = item.context_expr
            if isinstance(both, ast.BoolOp) and any(value in self.made for value in both.values):
                both_truthy = all(isinstance(value, ast.Call) for value in both.values)
                if both_truthy:
                    word = "and" if isinstance(both.op, ast.And) else "or"
                    entered = both.values[-1] if word == "and" else both.values[0]
                    yield Finding(
                        both,
                        f"`{word}` picks one context: only `{ast.unparse(entered)}` is entered",
                        help="Separate the contexts by a comma",
                    )


def _entered_by_caller(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Do its own annotations say that the context is what it is to give?"""
    return (
        function.returns is not None
        and any(
            "ContextManager" in last_name(node)
            for node in ast.walk(function.returns)
            if isinstance(node, (ast.Name, ast.Attribute))
        )
        and any("autocast" in last_name(node) for node in ast.walk(function.returns))
    )
