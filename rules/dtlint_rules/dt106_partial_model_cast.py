"""DT106: some layers of a model cast to half, by name or class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._module_walks import root_of, walk_over
from dtlint_rules._needs import HALF_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.facts import Guard, ModuleFacts
    from dtlint_rules._cast_calls import Cast
    from dtlint_rules._module_walks import Walk

__all__ = ["PartialModelCast"]


class PartialModelCast(Rule):
    """Only some layers of a model cast to float16 or bfloat16, picked by name or class.

    ## What it does
    Reports a cast to `float16` or `bfloat16` in a loop over `named_parameters()`, `named_modules()`, `modules()` or
    the like, under a test of the name, or of the module's class. Casting to float32 by name is left alone, and so is a
    test that exempts norms, or that asks for the dtype: those are the ways in which mixed models are made on purpose.

    Conditional, and so reported with `--preview` only: the rest of the model may be half already, or take care of it.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts):
            if not cast.dtypes or not cast.dtypes <= LOW_PRECISION:
                continue
            walk = walk_over(facts, root_of(cast.subject))
            picked = None if walk is None else _picked_by(walk, walk.guards(facts, cast.node))
            if walk is None or walk.kind == "buffers" or picked is None or not _stays(facts, cast):
                continue
            target = min(cast.dtypes)
            yield Finding(
                cast.node,
                f"Only layers whose {picked} matches are cast to {target}: between them and the others torch may raise",
                help=f"Use `torch.autocast(device_type, dtype=torch.{target})`, or cast the whole model",
                conditional=True,
            )


def _stays(facts: ModuleFacts, cast: Cast) -> bool:
    """Does the cast stay in the model: of a module in place, or of a tensor that is put back through `.data`?"""
    if cast.of == "module":
        return True
    statement = facts.around.statement(cast.node)
    return (
        isinstance(statement, ast.Assign)
        and statement.value is cast.node
        and all(isinstance(target, ast.Attribute) and target.attr == "data" for target in statement.targets)
    )


def _picked_by(walk: Walk, guards: Sequence[Guard]) -> str | None:
    """What picks the layers, `name` or `class`; None where nothing does, or where some are exempt instead."""
    picked: str | None = None
    for guard in guards:
        test = guard.test
        if (path_of(test.func if isinstance(test, ast.Call) else test) or "").endswith("is_floating_point"):
            continue
        negative = any(isinstance(node, (ast.NotIn, ast.NotEq, ast.Not, ast.IsNot)) for node in ast.walk(test))
        names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
        if guard.holds is negative:
            return None
        if isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and path_of(test.args[0]) == walk.variable:
            picked = "class"
        elif walk.name in names and walk.variable not in names:
            picked = "name"
        else:
            return None
    return picked
