"""DT114: a module's dtype noted in `__init__`, and out of date once the module is cast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import is_module, is_weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["StaleDtypeSource"]


class StaleDtypeSource(Rule):
    """A module notes the dtype of its weights in `__init__` and casts to it later.

    ## What it does
    Reports `self.dtype = self.fc.weight.dtype`, `self.dtype = next(model.parameters()).dtype` and `self.dtype =
    model.dtype` in the `__init__` of a module, or of a class that keeps the model, where another method casts to
    `self.dtype`.

    Conditional, and so reported with `--preview` only: it is wrong where the module is cast later.

    ## Why it matters
    `module.half()` and `module.to(dtype)` cast parameters and buffers; a dtype that has been noted is neither. From
    then on the module casts its input to the dtype that its weights had when it was made, and raises `mat1 and mat2
    must have the same dtype, but got Float and Half`.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        seen: set[ast.AST] = set()
        for target in (one.node for one in facts.assignments()):
            if target in seen or not isinstance(target, ast.Attribute) or path_of(target) != f"self.{target.attr}":
                continue
            seen.add(target)
            statement, path = facts.around.statement(target), f"self.{target.attr}"
            source = _asked(getattr(statement, "value", None))
            owner = None if source is None else facts.around.owner(target)
            if source is None or owner is None or getattr(facts.around.function(target), "name", "") != "__init__":
                continue
            reader = _cast_with(owner, path) if _is_weight(facts, source) else None
            if reader is not None:
                yield Finding(
                    statement,
                    f"`{path}` is read once: after `.half()` or `.to(dtype)` it is out of date",
                    help=f"Use `{ast.unparse(source)}.dtype` directly, or make `{target.attr}` a property",
                    notes=((reader, "used here"),),
                    conditional=True,
                )


def _asked(value: ast.expr | None) -> ast.expr | None:
    """Whose dtype is read: `model` of `model.dtype`, `getattr(model, "dtype", None)`."""
    if isinstance(value, ast.Attribute) and value.attr == "dtype":
        return value.value
    if isinstance(value, ast.Call) and path_of(value.func) == "getattr" and len(value.args) > 1:
        name = value.args[1]
        return value.args[0] if isinstance(name, ast.Constant) and name.value == "dtype" else None
    return None


def _is_weight(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a module, or a parameter of one?"""
    if isinstance(node, ast.Call) and path_of(node.func) == "next" and node.args:
        walked = node.args[0]
        return (
            isinstance(walked, ast.Call) and isinstance(walked.func, ast.Attribute) and walked.func.attr == "parameters"
        )
    value = facts.value(node)
    return is_weight(value) or is_module(facts, node, value)


def _cast_with(owner: ast.ClassDef, path: str) -> ast.expr | None:
    """Where another method of a class casts to what it has noted: `x.to(self.dtype)`."""
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and method.name != "__init__":
            for node in ast.walk(method):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
                    given = [*node.args, *(keyword.value for keyword in node.keywords)]
                    if path in map(path_of, given):
                        return node
    return None
