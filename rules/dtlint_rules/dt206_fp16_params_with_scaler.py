"""DT206: parameters that a GradScaler is to unscale are float16."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.calls import dtype_of
from dtlint.infer.names import path_of
from dtlint.infer.values import GradScaler, Key, Module, Optimizer
from dtlint.rule import Finding, Rule
from dtlint_rules._names import words
from dtlint_rules._parts import given
from dtlint_rules._training import Models, upcasts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.infer.facts import ModuleFacts

__all__ = ["Fp16ParamsWithScaler"]

_SCALING = ("gradscaler", "mixed_precision")
"""In names of a script that scales losses by itself, or lets accelerate do it."""


class Fp16ParamsWithScaler(Rule):
    """Parameters in float16 are trained with a GradScaler.

    ## What it does
    Reports three ways to come to float16 parameters that a GradScaler refuses: a model that was cast to float16 and
    whose optimizer the scaler steps; adapters that are added to a model cast to float16, where nothing makes them
    float32; and a pipeline that shares the model in training and is cast to float16 for validation.

    ## Why it matters
    `scaler.unscale_` and `scaler.step` raise "Attempting to unscale FP16 gradients." for float16 parameters. They must
    be float32: autocast makes the float16 copies that the forward pass computes with. Adapters take the dtype of the
    layer that they are added to, and `pipeline.to(dtype=...)` casts in place every module that the pipeline holds, so
    that the error comes in the first step, or in the first step after a validation.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(8, 1).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    loss = model(torch.randn(4, 8).half()).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    with torch.autocast("cpu", dtype=torch.float16):
        loss = model(torch.randn(4, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    ```

    ## References
    - [torch.amp.GradScaler.unscale_](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler.unscale_)
    - [Automatic mixed precision examples](https://docs.pytorch.org/docs/stable/notes/amp_examples.html)
    """

    code, name = "DT206", "fp16-params-with-scaler"
    triggers = ("*GradScaler*", "*gradscaler*", "*mixed_precision*", "*MIXED_PRECISION*")

    def __init__(self) -> None:
        self.models = Models()
        self.half: dict[Key, ast.Call] = {}
        """Modules that have been cast to float16, as far as reading has come."""
        self.casts: list[tuple[ast.Call, ast.AST, str]] = []
        """Casts of what may be a pipeline, with function and name."""
        self.passed: list[tuple[Call, ast.AST]] = []
        """Calls that hand on a pipeline."""

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("step of half parameters"):
            yield Finding(
                seen.node,
                "The scaler steps an optimizer of float16 parameters: it raises",
                help="Keep the parameters in float32, and let autocast cast them",
                elsewhere=tuple((step, "called from here") for step in seen.what.calls[-1:]),
            )

    def on_call(self, call: Call) -> Iterable[Finding]:
        self.models.hear(call)
        if isinstance(call.receiver, Module) and call.cast[0]:
            self._cast(call, call.receiver.key)
        if (
            call.method == "to"
            and isinstance(call.node.func, ast.Attribute)
            and isinstance(call.node.func.value, ast.Name)
        ):
            is_cast, dtypes = call.cast
            if is_cast and (dtypes is None or "float16" in dtypes):
                self.casts.append((call.node, call.flow.scope, call.node.func.value.id))
        if self.models.pipelines and isinstance(call.node.func, ast.Name):
            self.passed.append((call, call.flow.scope))
        return self._stepped(call) if call.method in ("step", "unscale_") else ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not any(word in words(tree) for word in _SCALING):
            return
        for node, path, scope in self.models.adapted:
            cast = self.models.half.get((scope, path))
            whole = any(line > node.lineno and each == path for line, each in self.models.whole)
            if cast is not None and cast.lineno < node.lineno and not whole and not upcasts(tree):
                yield Finding(
                    node,
                    f'The adapter of `{path}` is float16: GradScaler raises "Attempting to unscale FP16 gradients."',
                    help="Cast the parameters that require gradients to float32 after this",
                    notes=((cast, f"`{path}` is cast here"),),
                )
        for cast, scope, name in self.casts:
            shared = self._shared(scope, name, cast)
            if shared is not None:
                made, model = shared
                yield Finding(
                    cast,
                    f"The cast also casts `{model}`, which is being trained: GradScaler raises in the next step",
                    help="Move the pipeline without a dtype, and run it under autocast",
                    notes=((made, f"made of `{model}` here"),),
                )

    def _cast(self, call: Call, key: Key) -> None:
        if call.cast[1] == frozenset({"float16"}):
            self.half[key] = call.node
        else:
            self.half.pop(key, None)

    def _stepped(self, call: Call) -> Iterator[Finding]:
        optimizer = call.argument(0, "optimizer")
        if (
            not isinstance(call.receiver, GradScaler)
            or call.receiver.enabled is False
            or not isinstance(optimizer, Optimizer)
        ):
            return
        for key in optimizer.of & self.half.keys():
            yield Finding(
                call.node,
                'The parameters are float16: GradScaler raises "Attempting to unscale FP16 gradients."',
                help="Keep the model float32 and run its forward under autocast",
                notes=((self.half.pop(key), "cast to float16 here"),),
            )

    def _shared(self, scope: ast.AST, name: str, cast: ast.Call) -> tuple[ast.Call, str] | None:
        """The call that made the pipeline of a model in training, and that model; None where it is not one."""
        shared = self.models.sharing(scope, name, cast.lineno)
        if shared is not None:
            return shared[0].node, shared[1]
        for call, caller in self.passed:
            if not isinstance(scope, ast.FunctionDef) or scope.name != path_of(call.node.func):
                continue
            handed = call.argument_node(_position(scope, name), name)
            shared = self.models.sharing(caller, handed.id, call.node.lineno) if isinstance(handed, ast.Name) else None
            if shared is not None and _may_be_half(call, scope, cast):
                return shared[0].node, shared[1]
        return None


def _position(function: ast.FunctionDef, name: str) -> int | None:
    arguments = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return arguments.index(name) if name in arguments else None


def _may_be_half(call: Call, function: ast.FunctionDef, cast: ast.Call) -> bool:
    """Is what the function casts to, a parameter of it, float16 in this call?"""
    for node in given(cast):
        name = path_of(node) or ""
        dtypes = dtype_of(call.argument(_position(function, name), name))
        if dtypes is not None:
            return "float16" in dtypes
    return False
