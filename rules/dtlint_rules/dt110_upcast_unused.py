"""DT110: the result of a cast is bound to a name that nobody reads."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor, Trait
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._functions import own_nodes
from dtlint_rules._needs import attributes
from dtlint_rules._reads import read_later
from dtlint_rules._tensors import looks_like_tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow

__all__ = ["UpcastUnused"]


class UpcastUnused(Rule):
    """The result of a tensor's cast is bound to a name that is not read afterwards.

    ## What it does
    Reports `q32 = q.float()` where no path of the function reads `q32` behind it, and `q = q.float()` where none
    reads `q`.

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
    triggers = attributes(CAST_METHODS, of_self=True)
    calls = CAST_METHODS

    def on_call(self, call: Call) -> Iterable[Finding]:
        statement, flow = call.flow.statement, call.flow
        if (
            not isinstance(statement, ast.Assign)
            or statement.value is not call.node
            or isinstance(call.receiver, Module)
        ):
            return ()
        (target, *others) = statement.targets
        if others or not isinstance(target, ast.Name) or target.id.startswith("_") or not call.cast[0]:
            return ()
        if read_later(target.id, statement, flow) or flow.walk_over(target.id) is not None:
            return ()
        return self._unread(call, target, statement)

    def _unread(self, cast: Call, target: ast.Name, statement: ast.Assign) -> Iterator[Finding]:
        assert isinstance(cast.node.func, ast.Attribute)
        if not self._is_tensor(cast, cast.node.func.value, cast.flow):
            return
        dtypes = cast.cast[1]
        became = f" to {next(iter(dtypes))}" if dtypes is not None and len(dtypes) == 1 else ""
        yield Finding(
            statement,
            f"`{target.id}` is cast{became} and never read",
            help=f"Use `{target.id}` below, or remove the cast",
        )

    def _is_tensor(self, cast: Call, given: ast.expr, flow: Flow) -> bool:
        """Is it a tensor that is cast, and not a module, which is cast in place?"""
        path = path_of(given)
        if path is None and isinstance(given, ast.Call):
            return False  # nothing holds what was not cast: a result that nobody needs
        if isinstance(cast.receiver, Tensor):
            return Trait.PARAMETER not in cast.receiver.traits
        if path is None:
            return isinstance(given, ast.BinOp) or (isinstance(given, ast.Subscript) and _sliced(given))
        return looks_like_tensor(path, flow.scope) or any(
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Subscript)
            and _sliced(node.value)
            and any(path_of(bound) == path for bound in node.targets)
            for node in own_nodes(flow.scope)
        )


def _sliced(node: ast.Subscript) -> bool:
    return isinstance(node.slice, (ast.Slice, ast.Tuple))
