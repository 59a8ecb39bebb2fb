"""DT209: an autocast context is made and never entered."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["AutocastNotEntered"]

_ENTERING = ("enter_context", "__enter__")


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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls():
            if (
                isinstance(call.result, Region)
                and call.method not in _ENTERING
                and facts.around.is_discarded(call.node)
            ):
                yield Finding(
                    call.node,
                    "The autocast context is discarded: it does nothing until it is entered",
                    help="Use it in a `with` statement",
                )
        for node in facts.around.of_kind(ast.Yield):
            if node.value is not None and _is_made(facts, node.value):
                function = facts.around.function(node)
                if isinstance(function, ast.FunctionDef) and _is_manager(function):
                    yield Finding(
                        node.value,
                        "The autocast context is yielded but never entered: the `with` block runs in float32",
                        help="Write `with torch.autocast(...): yield`",
                    )
        for entered in facts.around.with_statements():
            for item in entered.items:
                yield from _combined(facts, item.context_expr)


def _is_made(facts: ModuleFacts, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(facts.value(node), Region)


def _is_manager(function: ast.FunctionDef) -> bool:
    """Is it a generator whose `with` block runs at its yield, and which does not say that it gives the context itself?"""
    names = {ast.unparse(one).rpartition(".")[2] for one in function.decorator_list}
    given = "" if function.returns is None else ast.unparse(function.returns)
    return bool(names & {"contextmanager", "asynccontextmanager"}) and "autocast" not in given


def _combined(facts: ModuleFacts, both: ast.expr) -> Iterator[Finding]:
    """`with torch.autocast("cuda") and torch.no_grad():`"""
    if not isinstance(both, ast.BoolOp) or not all(isinstance(one, ast.Call) for one in both.values):
        return
    if any(_is_made(facts, one) for one in both.values):
        word = "and" if isinstance(both.op, ast.And) else "or"
        entered = both.values[-1] if word == "and" else both.values[0]
        yield Finding(
            both,
            f"`{word}` picks one context: only `{ast.unparse(entered)}` is entered",
            help="Separate the contexts by a comma",
        )
