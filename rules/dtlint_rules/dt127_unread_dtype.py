"""DT127: a function takes a dtype, and nothing in it reads that."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import parents
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import body_of, defaults, own_nodes, parameters
from dtlint_rules._imports import is_a_test
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import End

__all__ = ["UnreadDtype"]

_DTYPE = re.compile(r"(?:^|_)dtype$|_in_fp32$|_in_float32$")
"""How a parameter is called by which a dtype is chosen."""
_ROOTS = frozenset({"object", "Module"})
"""Bases that ask for no signature of what is no `forward`."""
_PLAIN = frozenset({"staticmethod", "classmethod", "no_grad", "inference_mode", "torch_no_grad"})
"""Decorators that ask for no signature."""
_SAID = re.compile(r"unused|ignored|not used|deprecat|compat|reserved|placeholder|no effect|signature", re.IGNORECASE)
"""What a docstring says of a parameter that is there for somebody else."""
_TRIED = re.compile(r"(?:^|_)(?:test|bench\w*|dummy|fake|mock|stub|reference|ref)(?:_|$)", re.IGNORECASE)


class UnreadDtype(Rule):
    """A function has a parameter for a dtype that nothing in it reads.

    ## What it does
    Reports parameters such as `dtype`, `default_dtype` and `states_in_fp32` of functions that do something, and of the
    `__init__` of classes that inherit from none but `nn.Module`, where the body never names them. Other methods have the
    signature that their callers, or their subclasses, ask for. A function that is handed to
    something by its name has the signature that is asked for there, and is left alone, and so are decorated ones, and
    those whose docstring says that the parameter is ignored.

    The rule is off unless it is selected: about half of such parameters are left over from code that has been taken
    away, and no caller gives them anything that matters.

    ## Why it matters
    Who calls `load(path, dtype=torch.float64)` gets the dtype that the function has always used, and no word of it: the
    argument was forgotten on the way to what makes the model or the buffer.

    ## Example
    ```python
    import torch


    def noise(shape, device="cpu", dtype=torch.float32):
        return torch.randn(shape, device=device)
    ```

    ## Use instead
    ```python
    import torch


    def noise(shape, device="cpu", dtype=torch.float32):
        return torch.randn(shape, device=device, dtype=dtype)
    ```

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
    """

    code, name, severity = "DT127", "unread-dtype", Severity.INFO
    default = False
    triggers = ("*dtype*", "*_in_fp32*", "*_in_float32*")
    needs = (TORCH,)

    def on_end(self, end: End) -> Iterable[Finding]:
        function = end.node
        if not isinstance(function, ast.FunctionDef):
            return ()
        told = [part for part in parameters(function) if _DTYPE.search(part.arg) is not None]
        return self._judged(function, told, end.flow.tree) if told else ()

    def _judged(self, function: ast.FunctionDef, told: list[ast.arg], tree: ast.Module) -> Iterator[Finding]:
        read = {node.id for node in nodes(body_of(function)) if isinstance(node, ast.Name)}
        unread = [part for part in told if part.arg not in read]
        if not unread or "locals" in read or not _does_something(function) or not _is_its_own(function, tree):
            return
        if is_a_test(tree) or _TRIED.search(function.name) or _SAID.search(ast.get_docstring(function) or ""):
            return
        for part in unread:
            yield Finding(
                part.annotation or _default_of(part, function) or _first(function),
                f"`{function.name}` ignores its parameter `{part.arg}`",
                help="Use it where tensors or the model are made, or remove it",
            )


def _first(function: ast.FunctionDef) -> ast.stmt:
    """Where a finding stands whose parameter has neither an annotation nor a default."""
    return function.body[ast.get_docstring(function) is not None]


def _default_of(parameter: ast.arg, function: ast.FunctionDef) -> ast.expr | None:
    return next((default for part, default in defaults(function.args) if part is parameter), None)


def _does_something(function: ast.FunctionDef) -> bool:
    """Does it call or compute something, and not merely raise or give back a constant, as what stands for a method does?"""
    body = [part for part in function.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    if not body or (isinstance(body[0], (ast.Raise, ast.Pass, ast.Return)) and not _calls(body[0])):
        return False
    return any(map(_calls, body)) and not any(last_name(node) == "NotImplementedError" for node in own_nodes(function))


def _calls(statement: ast.stmt) -> bool:
    return not isinstance(statement, ast.Raise) and any(isinstance(node, ast.Call) for node in ast.walk(statement))


def _is_its_own(function: ast.FunctionDef, tree: ast.Module) -> bool:
    """Is its signature its own: is it no method that stands in for another, nothing special, decorated or handed on?"""
    if any(last_name(part) not in _PLAIN for part in function.decorator_list):
        return False
    owner = parents(tree).get(function)
    if function.name.startswith("__") and function.name != "__init__":
        return False
    if isinstance(owner, ast.ClassDef):
        return (
            function.name == "__init__"
            and all(last_name(base) in _ROOTS for base in owner.bases)
            and not owner.decorator_list
        )
    if not isinstance(owner, ast.Module):
        return False
    called = {id(node.func) for node in nodes([tree]) if isinstance(node, ast.Call)}
    named = [node for node in nodes([tree]) if isinstance(node, ast.Name) and node.id == function.name]
    return all(id(node) in called for node in named) and (bool(named) or not function.name.startswith("_"))
