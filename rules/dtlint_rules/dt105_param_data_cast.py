"""DT105: parameters cast one by one through `.data`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._imports import is_a_test
from dtlint_rules._layers import LAYERS
from dtlint_rules._needs import CASTS
from dtlint_rules._parts import given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Condition, End
    from dtlint.infer.loops import Walk
    from dtlint.source.place import Place

__all__ = ["ParamDataCast"]


class ParamDataCast(Rule):
    """Parameters cast through `.data` in a loop, without the buffers.

    ## What it does
    Reports `p.data = p.data.to(dtype)`, and its other spellings, in a loop over all of a module's parameters. A loop
    that looks at `requires_grad` or at the dtype of each parameter is left alone: upcasting just the trained
    parameters is the usual cure for "Attempting to unscale FP16 gradients".

    ## Why it matters
    The loop casts the parameters and nothing else. Buffers keep the old dtype: BatchNorm's running statistics then
    raise `expected scalar type Half but found Float`, and any other float32 buffer lifts the activations to float32,
    so that the next layer raises `mat1 and mat2 must have the same dtype`. Gradients that exist keep theirs as well.
    `Module.to` casts all three.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    for p in model.parameters():
        p.data = p.data.to(torch.bfloat16)
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    model.to(torch.bfloat16)
    ```

    ## Fix safety
    The fix replaces a loop that does nothing else by `model.to(dtype)`. It is unsafe, for it casts the buffers too.

    ## References
    - [torch.nn.Module.to](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.to)
    """

    code, name = "DT105", "param-data-cast"
    fix = Applicability.UNSAFE
    triggers = (".data",)
    needs = (CASTS, ("parameters", "named_parameters"))
    calls = CAST_METHODS
    targets = frozenset({ast.Attribute})

    def __init__(self) -> None:
        self.casts: dict[ast.expr | None, Call] = {}
        """The casts of tensors, by their nodes."""
        self.suspected: list[tuple[Finding, ast.AST, str | None]] = []
        """With the scope and the module of each."""
        self.buffers: set[tuple[ast.AST, str | None]] = set()
        """The scopes that cast a module's buffers in a loop of their own, with that module."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if isinstance(call.receiver, Tensor) and call.cast[0]:
            self.casts[call.node] = call
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        if assign.expression in self.casts:
            self._suspect(assign, self.casts[assign.expression])
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is None and self.suspected and not is_a_test(end.flow.tree):
            for finding, scope, module in self.suspected:
                if (scope, module) not in self.buffers:
                    yield finding

    def _suspect(self, assign: Assign, cast: Call) -> None:
        from dtlint.dtypes.dtype import FLOATING

        variable = _owner_of_data(assign.target)
        if variable is None or _owner_of_data(cast.node) != variable:
            return
        walk = assign.flow.walk_over(variable)
        if walk is None:
            return
        place = (assign.flow.scope, walk.of)
        if walk.kind == "buffers":
            self.buffers.add(place)
        dtypes = cast.cast[1]
        if walk.kind != "parameters" or (dtypes is not None and not dtypes <= FLOATING):
            return
        if not all(map(_asks_floating, walk.guards)) or not _is_of_whole(walk, assign):
            return
        module = assign.flow.state.names.get(path_of(walk.subject) or "") if walk.subject is not None else None
        if isinstance(module, Module) and module.name in _WITHOUT_BUFFERS:
            return
        model = "model" if walk.subject is None else ast.unparse(walk.subject)
        finding = Finding(
            assign.node,
            f"Only the parameters of `{model}` are cast: its buffers keep the old dtype",
            help=f"Cast the module in place: `{model}.to(dtype)`",
            fix=_by_module_to(walk, variable, assign.node, cast.node),
        )
        self.suspected.append((finding, *place))


_WITHOUT_BUFFERS = frozenset(f"torch.nn.{name}" for name in (*LAYERS, "Embedding", "LayerNorm", "GroupNorm", "RMSNorm"))
"""Layers that have nothing but parameters."""


def _owner_of_data(node: ast.expr) -> str | None:
    """The name `p` of a target `p.data`, and of a cast of `p`, `p.data`, `p.data.detach()` and the like."""
    if isinstance(node, ast.Call):
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        return (path_of(node) or "").removesuffix(".data")
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.value, ast.Name):
        return node.value.id
    return None


def _is_of_whole(walk: Walk, assign: Assign) -> bool:
    """Does the loop go over all parameters of one module, not over those of each submodule that an outer loop picks?"""
    outer = {
        node.id
        for loop in assign.flow.loops
        if loop.node is not walk.node
        for node in ast.walk(loop.node.target)
        if isinstance(node, ast.Name)
    }
    subject = path_of(walk.subject) if walk.subject is not None else None
    arguments = isinstance(walk.node.iter, ast.Call) and (walk.node.iter.args or walk.node.iter.keywords)
    return not arguments and (subject or "").partition(".")[0] not in outer


def _asks_floating(guard: Condition) -> bool:
    """Does the test only keep integers out: `p.is_floating_point()`, `torch.is_floating_point(p)`?"""
    test = guard.test.func if isinstance(guard.test, ast.Call) else guard.test
    return guard.holds and (path_of(test) or "").endswith("is_floating_point")


def _by_module_to(walk: Walk, variable: str, statement: ast.stmt, cast: ast.Call) -> Callable[[Place], Fix | None]:
    def fix(place: Place) -> Fix | None:
        loop, function = walk.node, cast.func
        if walk.subject is None or path_of(walk.subject) is None or not isinstance(function, ast.Attribute):
            return None
        if loop.orelse or _core(loop.body) is not statement or "#" in place.text(loop) or ";" in place.text(loop):
            return None
        if isinstance(function.value, ast.Call) or _is_named(variable, cast):
            return None
        arguments = ", ".join(
            [*map(place.text, cast.args), *(f"{keyword.arg}={place.text(keyword.value)}" for keyword in cast.keywords)]
        )
        # `Module.type` casts integer buffers too; `Module.to` leaves them.
        method = "to" if function.attr == "type" else function.attr
        text = f"{place.text(walk.subject)}.{method}({arguments})"
        return Fix(f"Use `{text}`", (place.replace(loop, text),), Applicability.UNSAFE)

    return fix


def _core(body: list[ast.stmt]) -> ast.stmt | None:
    """The only statement of a loop's body, behind a guard for floating parameters if there is one."""
    only = body[0] if len(body) == 1 else None
    if isinstance(only, ast.If) and not only.orelse:
        return _core(only.body)
    return only


def _is_named(variable: str, cast: ast.Call) -> bool:
    """Do the cast's arguments speak of the loop's variable?"""
    return any(isinstance(node, ast.Name) and node.id == variable for part in given(cast) for node in ast.walk(part))
