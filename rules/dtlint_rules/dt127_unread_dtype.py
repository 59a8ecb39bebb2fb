"""DT127: a function takes a dtype, and nothing in it reads that."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Dtype
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import is_a_test
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["UnreadDtype"]


class UnreadDtype(Rule):
    """A function has a parameter for a dtype that nothing in it reads.

    ## What it does
    Reports parameters for a dtype, by annotation, default or the name `dtype`, of functions that do something, and of the
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
    triggers = ("*dtype*",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if is_a_test(facts.tree):
            return
        for function in facts.around.of_kind(ast.FunctionDef):
            if not _is_its_own(facts, function):
                continue
            read = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
            for parameter, default in _parameters(function):
                if parameter.arg in read or "locals" in read or not _is_dtype(facts, parameter, default):
                    continue
                yield Finding(
                    parameter.annotation or default or function.body[0],
                    f"`{function.name}` ignores its parameter `{parameter.arg}`",
                    help="Use it where tensors or the model are made, or remove it",
                )


def _parameters(function: ast.FunctionDef) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The parameters, each with its default."""
    given = function.args
    by_position = [*given.posonlyargs, *given.args]
    missing: list[ast.expr | None] = [None] * (len(by_position) - len(given.defaults))
    yield from zip(by_position, [*missing, *given.defaults], strict=True)
    yield from zip(given.kwonlyargs, given.kw_defaults, strict=True)


def _is_dtype(facts: ModuleFacts, parameter: ast.arg, default: ast.expr | None) -> bool:
    """Is it declared to be a dtype, or one by default, or called as torch calls it?"""
    declared = "torch.dtype" in ast.unparse(parameter.annotation) if parameter.annotation is not None else False
    return declared or parameter.arg == "dtype" or (default is not None and isinstance(facts.value(default), Dtype))


def _is_its_own(facts: ModuleFacts, function: ast.FunctionDef) -> bool:
    """Does a function do something, and is its signature its own: is it no method that stands in for another, not
    decorated or handed on, and does its docstring not speak of the parameter as ignored?"""
    body = [part for part in function.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
    does = any(isinstance(node, ast.Call) for part in body for node in ast.walk(part))
    raises = any(isinstance(part, ast.Raise) for part in body)
    if not does or raises or function.decorator_list or "ignored" in (ast.get_docstring(function) or ""):
        return False
    owner = facts.around.parent(function)
    if isinstance(owner, ast.ClassDef):
        bases = [(path_of(base) or "").rpartition(".")[2] for base in owner.bases]
        return function.name == "__init__" and set(bases) <= {"object", "Module"} and not owner.decorator_list
    if not isinstance(owner, ast.Module):
        return False
    named = [node for node in facts.around.of_kind(ast.Name) if node.id == function.name]
    called = [node for node in named if getattr(facts.around.parent(node), "func", None) is node]
    return len(named) == len(called) and (bool(named) or not function.name.startswith("_"))
