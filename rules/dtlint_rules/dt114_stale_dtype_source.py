"""DT114: a module's dtype noted in `__init__`, and out of date once the module is cast."""

from __future__ import annotations

import ast
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import own_nodes
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End, Flow
    from dtlint.infer.scopes import ClassInfo

__all__ = ["StaleDtypeSource"]


class StaleDtypeSource(Rule):
    """A module notes the dtype of its weights in `__init__` and casts to it later.

    ## What it does
    Reports `self.dtype = self.fc.weight.dtype`, `self.dtype = next(model.parameters()).dtype` and `self.dtype =
    model.dtype` in the `__init__` of a module, or of a class that keeps the model, where another method casts to
    `self.dtype`. Also the variable `dtype` of a loop that has ended, in another loop that asks for the dtypes of its own.

    Conditional, and so reported with `--preview` only: the dtype that `__init__` notes, unless something in view
    casts the module later.

    ## Why it matters
    `module.half()` and `module.to(dtype)` cast parameters and buffers; a dtype that has been noted is neither. From
    then on the module casts its input to the dtype that its weights had when it was made, and raises `mat1 and mat2
    must have the same dtype, but got Float and Half`. The variable of a loop keeps the last value that it had there.

    ## Example
    ```python
    import torch
    from torch import nn

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 2)
            self.dtype = self.fc.weight.dtype

        def forward(self, x):
            return self.fc(x.to(self.dtype))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 2)

        def forward(self, x):
            return self.fc(x.to(self.fc.weight.dtype))
    ```

    ## References
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "DT114", "stale-dtype-source"
    triggers = (".dtype", '"dtype')
    calls = frozenset({"getattr"})
    values = frozenset({ast.Attribute})
    hears_where = MappingProxyType({"on_end": ("for dtype in", "for dtype,", ", dtype in", "dtype) in")})

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        asked = assign.expression
        if not isinstance(asked, ast.Attribute) or asked.attr != "dtype":
            return ()
        return self._noted(assign.node, assign.target, asked.value, assign.flow)

    def on_call(self, call: Call) -> Iterable[Finding]:
        statement = call.flow.statement
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is not call.node:
            return ()
        if call.constant(1, "") != "dtype":
            return ()
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        model = call.node.args[0]
        return [finding for target in targets for finding in self._noted(statement, target, model, call.flow)]

    def on_end(self, end: End) -> Iterator[Finding]:
        """`for dtype in buffers: ...`, and `dtype` in a later loop, beside `param.dtype`."""
        loops = [node for node in own_nodes(end.flow.scope) if isinstance(node, ast.For)]
        for ended in loops if len(loops) > 1 else ():
            for name in _stored([ended.target]):
                if name.endswith("dtype") and not any(isinstance(node, ast.Break) for node in nodes(ended.body)):
                    yield from _read_behind(name, ended, loops, end.flow.scope)

    def _noted(self, statement: ast.stmt, target: ast.expr, source: ast.expr, flow: Flow) -> Iterator[Finding]:
        function = flow.function
        path = path_of(target)
        if function is None or path is None or not path.startswith("self.") or path.count(".") != 1:
            return
        owner = function.owner
        if owner is None or getattr(function.node, "name", "") != "__init__" or not _is_weight(source):
            return
        if not owner.is_module and not _keeps(function.node, source):
            return
        reader = _cast_with(owner, path)
        if reader is None:
            return
        yield Finding(
            statement,
            f"`{path}` is read once: after `.half()` or `.to(dtype)` it is out of date",
            help=f"Use `{ast.unparse(source)}.dtype` directly, or make `{path[5:]}` a property",
            notes=((reader, "used here"),),
            conditional=True,
        )


def _read_behind(name: str, ended: ast.For, loops: list[ast.For], scope: ast.AST) -> Iterator[Finding]:
    """Where a later loop, which asks what it runs over for its dtype, reads the variable of one that has ended."""
    for loop in loops:
        if loop.lineno <= (ended.end_lineno or 0):
            continue
        items = _stored([loop.target])
        read = [node for node in nodes(loop.body) if isinstance(node, ast.Name) and node.id == name]
        own = [node for node in nodes(loop.body) if isinstance(node, ast.Attribute) and path_of(node) is not None]
        asked = next((node for node in own if node.attr == "dtype" and (path_of(node.value) or "") in items), None)
        if not read or asked is None or name in items or _is_bound_between(name, ended, loop, scope):
            continue
        yield Finding(
            read[0],
            f"`{name}` is the last item of the loop above, not an item of this one",
            help=f"Use `{ast.unparse(asked)}`",
            notes=((ended.target, "bound here"),),
        )


def _is_bound_between(name: str, ended: ast.For, loop: ast.For, scope: ast.AST) -> bool:
    """Is a name bound anew behind one loop, before another ends, be it by a function in that?"""
    if any(isinstance(node, ast.arg) and node.arg == name for node in nodes(loop.body)):
        return True
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Store)
        and (ended.end_lineno or 0) < node.lineno <= (loop.end_lineno or 0)
        for node in own_nodes(scope)
    )


def _stored(targets: list[ast.expr]) -> set[str]:
    return {node.id for node in nodes(targets) if isinstance(node, ast.Name)}


_MODELS = re.compile(r"^(\w+_)?(model|unet|vae|encoder|decoder|transformer|backbone|net|module|layer|clip|text_model)$")
"""How modules are called that have a `dtype` of their own."""


def _is_weight(node: ast.expr) -> bool:
    """`self.fc.weight`, `next(self.parameters())`, `model`."""
    if isinstance(node, ast.Call):
        return path_of(node.func) == "next" and any(
            isinstance(part, ast.Attribute) and part.attr in ("parameters", "buffers") for part in ast.walk(node)
        )
    if isinstance(node, ast.Attribute) and node.attr in ("weight", "bias"):
        return True
    return _MODELS.search((path_of(node) or "").rpartition(".")[2]) is not None


def _keeps(init: ast.AST, weight: ast.expr) -> bool:
    """Does `__init__` keep the model whose dtype it notes: is it an attribute already, or made one here?"""
    roots = {part.id for part in ast.walk(weight) if isinstance(part, ast.Name)} - {"next"}
    return "self" in roots or any(
        isinstance(node, ast.Assign)
        and (path_of(node.targets[0]) or "").startswith("self.")
        and isinstance(node.value, ast.Name)
        and node.value.id in roots
        for node in ast.walk(init)
    )


def _cast_with(owner: ClassInfo, path: str) -> ast.expr | None:
    """Where another method gives the noted dtype to a cast or a factory."""
    for name, method in owner.methods.items():
        if name == "__init__":
            continue
        for node in ast.walk(method.node):
            if isinstance(node, ast.Call) and any(path_of(part) == path for part in given(node)):
                return node
    return None
