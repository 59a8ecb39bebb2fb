"""DT414: an optimizer that updates half parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.calls import dtype_of
from dtlint.infer.values import Items, Key, Module, Optimizer, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._half import is_half
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End
    from dtlint.infer.values import Value

__all__ = ["LowPrecisionOptimizer"]

_OTHERS_TRAIN = frozenset(
    {"get_peft_model", "LoraConfig", "deepspeed", "FullyShardedDataParallel", "fully_shard"}
    | {"Float16OptimizerWithFloat16Params"}
)
"""Who trains other weights than these, or keeps a float32 copy of them."""
_ADAPTIVE = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adadelta"})


class LowPrecisionOptimizer(Rule):
    """An optimizer is given parameters in float16 or bfloat16.

    ## What it does
    Reports a torch optimizer whose parameters are tensors made in half, layers of torch.nn made with `dtype=`, or a
    model loaded with `from_pretrained(..., torch_dtype=torch.bfloat16)`. Models that are cast after they are made are
    the matter of DT101; adapters, DeepSpeed and FSDP, which train other weights or keep a float32 copy, are left alone.

    ## Why it matters
    An update that is small against its weight rounds away: at a weight of 1.0, a step of 1e-3 changes nothing in
    bfloat16, and one of 2e-4 nothing in float16, so that training with the usual learning rates stands still without a
    word. In float16 the `eps=1e-8` of Adam is 0 as well, and a zero gradient makes NaN of the weight.

    ## Example
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(8, 8, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT414", "low-precision-optimizer"
    triggers = HALF
    needs = (("optim",),)

    def __init__(self) -> None:
        self.half: dict[Key, tuple[frozenset[str], ast.Call]] = {}
        """Modules that are made in half, and where."""
        self.suspected: list[Finding] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        made = call.result
        if isinstance(call.receiver, Module) and call.method in CAST_METHODS and call.cast[0]:
            self.half.pop(call.receiver.key, None)
        elif isinstance(made, Module):
            given = call.keywords.get("torch_dtype", call.keywords.get("dtype"))
            dtypes = dtype_of(given)
            if dtypes and dtypes <= LOW_PRECISION:
                self.half[made.key] = (dtypes, call.node)
        elif isinstance(made, Optimizer) and call.target.startswith("torch.optim."):
            self._given(call, made)
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is None and self.suspected and not _others_train(end.flow.tree):
            yield from self.suspected

    def _given(self, call: Call, optimizer: Optimizer) -> None:
        known = [self.half[key] for key in optimizer.of if key in self.half]
        tensors = [value for value in _tensors(call.argument(0, "params")) if is_half(value)]
        if known:
            dtypes, origin = known[0]
        elif tensors and tensors[0].dtypes is not None:
            dtypes, origin = tensors[0].dtypes & LOW_PRECISION, tensors[0].origin  # type: ignore[assignment]
        else:
            return
        name = call.target.rpartition(".")[2]
        small = "2e-4" if "float16" in dtypes else "1e-3"
        kinds = " or ".join(sorted(dtypes))
        text = f"{name} updates {kinds} weights: steps below {small} of a weight are lost"
        if "float16" in dtypes and name in _ADAPTIVE:
            text += ", and the eps of 1e-8 is 0"
        self.suspected.append(
            Finding(
                call.node,
                text,
                help="Keep the parameters in float32, and compute in half under autocast",
                notes=((origin, "made in half here"),) if origin is not None else (),
            )
        )


def _tensors(value: Value | None) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Items):
        for item in value.items:
            yield from _tensors(item)


def _others_train(tree: ast.Module) -> bool:
    return any(
        (node.name if isinstance(node, ast.alias) else last_name(node)) in _OTHERS_TRAIN
        for node in nodes([tree])
        if isinstance(node, (ast.Name, ast.Attribute, ast.alias))
    )
