"""DT105: parameters cast one by one through `.data`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Ref
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._imports import is_a_test
from dtlint_rules._module_walks import root_of, walk_over
from dtlint_rules._needs import CASTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Guard, ModuleFacts
    from dtlint.source.place import Place
    from dtlint_rules._cast_calls import Cast
    from dtlint_rules._module_walks import Walk

__all__ = ["ParamDataCast"]


class ParamDataCast(Rule):
    """Parameters cast through `.data` in a loop, without the buffers.

    ## What it does
    Reports `p.data = p.data.to(dtype)`, and its other spellings, in a loop over all of a module's parameters. A loop
    that looks at `requires_grad` or at the dtype of each parameter is left alone: upcasting just the trained
    parameters is the usual cure for "Attempting to unscale FP16 gradients".

    Conditional, and so reported with `--preview` only: many models have no floating buffers, or tables that are meant to
    stay in float32.

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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if is_a_test(facts.tree):
            return
        found = [(cast, walk) for cast in casts(facts) if (walk := _walk(facts, cast)) is not None]
        buffers = {ast.unparse(walk.subject) for _, walk in found if walk.kind == "buffers"}
        for cast, walk in found:
            model = ast.unparse(walk.subject)
            if walk.kind != "parameters" or model in buffers or not cast.dtypes <= FLOATING or not walk.whole:
                continue
            if (
                not all(map(_asks_floating, walk.guards(facts, cast.node)))
                or walk_over(facts, walk.subject) is not None
            ):
                continue
            module = facts.value(walk.subject)
            if isinstance(module, Ref) and module.address.kind in _WITHOUT_BUFFERS:
                continue
            statement = facts.around.statement(cast.node)
            yield Finding(
                statement,
                f"Only the parameters of `{model}` are cast: its buffers keep the old dtype",
                help=f"Cast the module in place: `{model}.to(dtype)`",
                fix=_by_module_to(walk, statement, cast.node),
                conditional=True,
            )


_WITHOUT_BUFFERS = frozenset(
    f"torch.nn.{name}"
    for name in ("Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "Embedding", "LayerNorm", "GroupNorm", "RMSNorm")
)
"""Layers that have nothing but parameters."""


def _walk(facts: ModuleFacts, cast: Cast) -> Walk | None:
    """The loop whose variable `p` is cast by `p.data = p.data.to(dtype)`."""
    statement = facts.around.statement(cast.node)
    if not isinstance(statement, ast.Assign) or statement.value is not cast.node or len(statement.targets) != 1:
        return None
    target = path_of(statement.targets[0]) or ""
    root = root_of(cast.subject)
    walk = walk_over(facts, root)
    return walk if walk is not None and target == f"{walk.variable}.data" else None


def _asks_floating(guard: Guard) -> bool:
    """Does the test only keep integers out: `p.is_floating_point()`, `torch.is_floating_point(p)`?"""
    test = guard.test.func if isinstance(guard.test, ast.Call) else guard.test
    return guard.holds and (path_of(test) or "").endswith("is_floating_point")


def _by_module_to(walk: Walk, statement: ast.stmt, cast: ast.Call) -> Callable[[Place], Fix | None]:
    def fix(place: Place) -> Fix | None:
        loop, function = walk.loop, cast.func
        if path_of(walk.subject) is None or not isinstance(function, ast.Attribute):
            return None
        if loop.orelse or _core(loop.body) is not statement or "#" in place.text(loop) or ";" in place.text(loop):
            return None
        given = [*cast.args, *(keyword.value for keyword in cast.keywords)]
        names = {node.id for part in given for node in ast.walk(part) if isinstance(node, ast.Name)}
        if isinstance(function.value, ast.Call) or walk.variable in names:
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
