"""DT116: `Module.type()`, which casts integer buffers along with the weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Dtype, Ref
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts, dtype_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["ModuleTypeCastsInts"]


class ModuleTypeCastsInts(Rule):
    """A module cast by `.type()`, which casts integer and bool buffers too.

    ## What it does
    Reports `module.type(torch.float16)` and `module.type(torch.cuda.HalfTensor)`.

    ## Why it matters
    `Module.type` casts every parameter and every buffer: `num_batches_tracked` of BatchNorm, position ids, relative
    position indices and bool masks become float16. An index that is float16 raises in an embedding, and is not exact
    beyond 2048. `Module.to`, `Module.half` and `Module.float` cast the floating ones only.

    ## Example
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    model.type(torch.bfloat16)
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    model.to(torch.bfloat16)
    ```

    ## Fix safety
    The fix calls `.to` instead. It is unsafe, for integer buffers then keep their dtype.

    ## References
    - [torch.nn.Module.type](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.type)
    """

    code, name = "DT116", "module-type-casts-ints"
    fix = Applicability.UNSAFE
    triggers = (".type", "self.type")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts, "type"):
            if cast.of != "module" or not cast.dtypes or not cast.dtypes <= FLOATING or not cast.plain:
                continue
            if not _is_floating_only(facts, cast.subject, cast.value):
                yield Finding(
                    cast.node,
                    f"`.type()` casts the integer and bool buffers of `{ast.unparse(cast.subject)}` to"
                    f" {dtype_name(cast.dtype)} too",
                    help="Use `.to(dtype)`, which casts floating tensors only",
                    fix=_by_to if isinstance(facts.value(cast.node.args[0]), Dtype) else None,
                )


def _is_floating_only(facts: ModuleFacts, node: ast.expr, value: Value) -> bool:
    """Is it a layer of torch.nn whose parameters and buffers are all floating, or a Sequential of those?"""
    kind = value.address.kind if isinstance(value, Ref) else None
    if not isinstance(kind, str):
        return False
    if kind == "torch.nn.Sequential":
        made = facts.around.definition(node)
        return isinstance(made, ast.Call) and all(_is_floating_only(facts, one, facts.value(one)) for one in made.args)
    return kind.rpartition(".")[2] not in ("Module", "ModuleList", "ModuleDict") and "Norm" not in _counting(kind)


def _counting(kind: str) -> str:
    """The norms that count batches."""
    return kind if "BatchNorm" in kind or "InstanceNorm" in kind else ""


def _by_to(place: Place) -> Fix:
    return Fix("Use `.to(dtype)`", (place.rename_method("to"),), Applicability.UNSAFE)
