"""DT110: the result of a cast is bound to a name that nobody reads."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts, dtype_name
from dtlint_rules._module_walks import walk_over
from dtlint_rules._needs import CASTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["UpcastUnused"]


class UpcastUnused(Rule):
    """The result of a tensor's cast is bound to a name that is not read afterwards.

    ## What it does
    Reports `q32 = q.float()` where no path of the function reads `q32` behind it, and `q = q.float()` where none
    reads `q`.

    Conditional, and so reported with `--preview` only: where nothing below reads what was cast either, the cast is
    dead code, and changes nothing.

    ## Why it matters
    A cast returns another tensor. Where nobody reads it, the computation that it was made for takes the tensor that
    was not cast: the attention that should run in float32 overflows in float16 after all, and nothing is raised.

    ## Example
    ```python
    import torch

    def scores(query: torch.Tensor, key: torch.Tensor):
        query_32 = query.float()
        key_32 = key.float()
        return query @ key.transpose(-1, -2)
    ```

    ## Use instead
    ```python
    import torch

    def scores(query: torch.Tensor, key: torch.Tensor):
        query_32 = query.float()
        key_32 = key.float()
        return query_32 @ key_32.transpose(-1, -2)
    ```

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "DT110", "upcast-unused"
    triggers = CASTS

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts):
            scope, statement = facts.around.function(cast.node), facts.around.statement(cast.node)
            if cast.of != "tensor" or scope is None or isinstance(cast.subject, ast.Call):
                continue  # nothing holds what was not cast, where it is the result of a call
            if not isinstance(statement, ast.Assign) or statement.value is not cast.node:
                continue
            target = statement.targets[0]
            if len(statement.targets) > 1 or not isinstance(target, ast.Name) or target.id.startswith("_"):
                continue
            if walk_over(facts, cast.subject) is not None or _is_read(facts, scope, target.id, cast.node):
                continue
            became = f" to {dtype_name(cast.dtype)}" if len(cast.dtypes) == 1 else ""
            yield Finding(
                statement,
                f"`{target.id}` is cast{became} and never read",
                help=f"Use `{target.id}` below, or remove the cast",
                conditional=not _is_used_below(facts, cast.subject, statement, target.id),
            )


def _is_used_below(facts: ModuleFacts, subject: ast.expr, statement: ast.stmt, name: str) -> bool:
    """Is what was cast read behind the cast, under a name of its own, where the result may have been meant?"""
    if not isinstance(subject, ast.Name) or subject.id == name:
        return False
    scope = facts.around.scope(statement)
    return any(
        isinstance(node, ast.Name)
        and node.id == subject.id
        and isinstance(node.ctx, ast.Load)
        and node.lineno > (statement.end_lineno or statement.lineno)
        for node in facts.around.within(scope)
    )


def _is_read(facts: ModuleFacts, scope: ast.AST, name: str, value: ast.expr) -> bool:
    """Does some path read a variable where this value may have been bound to it, in an inner function perhaps?"""
    for node in facts.around.within(scope):
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if isinstance(node.ctx, ast.Store) and not isinstance(facts.around.parent(node), ast.AugAssign):
            continue
        if facts.around.function(node) is not scope or value in facts.around.definitions(node):
            return True
    return False
