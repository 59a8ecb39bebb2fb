"""DT106: some layers of a model cast to half, by name or class."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._needs import HALF_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call, Condition
    from dtlint.infer.loops import Walk

__all__ = ["PartialModelCast"]

_DELIBERATE = re.compile(
    r"lora|adapter|ia3|prompt|norm|\bln|\bbn|quant|fp32|float32|keep|skip|exclu|ignor", re.IGNORECASE
)
"""Words in a test that say why: adapters are brought to the dtype of a model that has it already, norms are kept in
float32 by those who cast around them, and lists of exceptions are made with care."""


class PartialModelCast(Rule):
    """Only some layers of a model cast to float16 or bfloat16, picked by name or class.

    ## What it does
    Reports a cast to `float16` or `bfloat16` in a loop over `named_parameters()`, `named_modules()`, `modules()` or
    the like, under a test of the name, or of the module's class. Casting to float32 by name is left alone, and so is a
    test that exempts norms, or that asks for the dtype: those are the ways in which mixed models are made on purpose.

    ## Why it matters
    The layers that do not match keep float32, and layers do not convert what they are given: where a float32 activation
    meets a float16 weight, the matmul raises `mat1 and mat2 must have the same dtype, but got Float and Half`.
    Elementwise operations promote instead, so the model may quietly run in float32 up to there.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Transformer(64, 4)
    for name, p in model.named_parameters():
        if "self_attn" in name:
            p.data = p.data.half()
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Transformer(64, 4)
    source, target = torch.rand(10, 2, 64), torch.rand(10, 2, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(source, target)
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT106", "partial-model-cast"
    triggers = HALF_BY_NAME
    needs = (("*parameters*", "*modules*", "*children*"),)
    calls = CAST_METHODS

    def on_call(self, call: Call) -> Iterator[Finding]:
        if not isinstance(call.receiver, (Tensor, Module)) or not isinstance(call.node.func, ast.Attribute):
            return
        is_cast, dtypes = call.cast
        if not is_cast or not dtypes or not dtypes <= LOW_PRECISION:
            return
        variable = (path_of(call.node.func.value) or "").partition(".")[0]
        walk = call.flow.walk_over(variable) if variable else None
        if walk is None or walk.kind == "buffers" or not _stays(call):
            return
        picked = _picked_by(walk, variable)
        if picked is None:
            return
        target = "float16" if "float16" in dtypes else "bfloat16"
        yield Finding(
            call.node,
            f"Only layers whose {picked} matches are cast to {target}: between them and the others torch may raise",
            help=f"Use `torch.autocast(device_type, dtype=torch.{target})`, or cast the whole model",
        )


def _stays(call: Call) -> bool:
    """Does the cast stay in the model: of a module in place, or of a tensor that is put back through `.data`?"""
    if isinstance(call.receiver, Module):
        return True
    statement = call.flow.statement
    return (
        isinstance(statement, ast.Assign)
        and statement.value is call.node
        and all(isinstance(target, ast.Attribute) and target.attr == "data" for target in statement.targets)
    )


def _picked_by(walk: Walk, variable: str) -> str | None:
    """What picks the layers, `name` or `class`; None where nothing does, or where it is done with thought."""
    picked: str | None = None
    for guard in walk.guards:
        asked = _asked_by(guard, walk, variable)
        if asked is None or _DELIBERATE.search(ast.unparse(guard.test)):
            return None
        picked = asked if asked != "kind" else picked
    return picked


def _asked_by(guard: Condition, walk: Walk, variable: str) -> str | None:
    """What a test asks for: the layer's `name`, its `class`, or the `kind` of its parameters; None for anything else,
    and for what is exempt instead of picked."""
    test = guard.test
    if (path_of(test.func if isinstance(test, ast.Call) else test) or "").endswith("is_floating_point"):
        return "kind"
    if guard.holds is _is_negative(test):
        return None
    if isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and len(test.args) == 2:
        return "class" if path_of(test.args[0]) == variable else None
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return "name" if walk.name is not None and walk.name in names and variable not in names else None


def _is_negative(test: ast.expr) -> bool:
    """Does the test hold for what does not match: `"norm" not in name`?"""
    return any(isinstance(node, (ast.NotIn, ast.NotEq, ast.Not, ast.IsNot)) for node in ast.walk(test))
