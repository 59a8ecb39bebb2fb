"""DT116: `Module.type()`, which casts integer buffers along with the weights."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.values import Dtype, Module
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call
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
    calls = frozenset({"type"})

    def on_call(self, call: Call) -> Iterator[Finding]:
        from dtlint.dtypes.dtype import FLOATING

        if call.target != "torch.nn.Module.type" or not isinstance(call.receiver, Module) or "inplace" in call.keywords:
            return  # DT102 speaks of `inplace`
        if _is_floating_only(call.receiver):
            return
        is_cast, dtypes = call.cast
        if not is_cast or not dtypes or not dtypes <= FLOATING or not isinstance(call.node.func, ast.Attribute):
            return
        subject = ast.unparse(call.node.func.value)
        yield Finding(
            call.node,
            f"`.type()` casts the integer and bool buffers of `{subject}` to {next(iter(dtypes))} too",
            help="Use `.to(dtype)`, which casts floating tensors only",
            fix=_by_to if isinstance(call.argument(0, "dst_type"), Dtype) and call.node.args else None,
        )


_MAY_HOLD_INTEGERS = re.compile(r"torch\.nn\.(Module|Sequential|ModuleList|ModuleDict|\w*BatchNorm\w*|InstanceNorm\w*)")
"""Containers, and the layers of torch.nn that count batches."""


def _is_floating_only(module: Module) -> bool:
    """Is it a layer of torch.nn whose parameters and buffers are all floating, or a Sequential of those?"""
    if module.info is not None or not module.name.startswith("torch.nn."):
        return False
    if module.items is not None:
        return all(isinstance(item, Module) and _is_floating_only(item) for item in module.items)
    return _MAY_HOLD_INTEGERS.fullmatch(module.name) is None


def _by_to(place: Place) -> Fix:
    return Fix("Use `.to(dtype)`", (place.rename_method("to"),), Applicability.UNSAFE)
