"""DT103: a float tensor cast to a small integer dtype as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import Tensor, Trait
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._needs import SMALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.dtypes.dtype import Info
    from dtlint.infer.events import Call

__all__ = ["BareInt8Cast"]

_BECOMES = {
    "int8": "200.0 becomes -56",
    "uint8": "300.0 becomes 44 and -1.0 becomes 255",
    "int16": "40000.0 becomes -25536",
}
"""What a value out of range becomes; seen on torch 2.13, CPU."""

_THOUGHT_THROUGH = Trait.CLAMPED | Trait.ROUNDED | Trait.SCALED
"""Whoever scaled, rounded or clamped has seen to the range."""


class BareInt8Cast(Rule):
    """Float tensor cast to int8, uint8 or int16 without scale, round and clamp.

    ## What it does
    Reports a cast of a floating tensor to `int8`, `uint8` or `int16` (`.to`, `.type`, `.char()`, `.byte()`,
    `.short()`) whose values were neither scaled nor rounded nor clamped before.

    ## Why it matters
    The cast is no quantization. It drops the fraction, so that everything between -1 and 1 becomes 0, and it does not
    saturate: on a CPU a value out of range wraps modulo 256 (200.0 becomes -56 in int8, 300.0 becomes 44 in uint8), and
    NaN becomes 0. On other devices a value out of range becomes whatever the hardware makes of it. Nothing is raised.

    ## Example
    ```python
    import torch

    weight = torch.randn(256, 256)
    quantized = weight.to(torch.int8)
    ```

    ## Use instead
    ```python
    import torch

    weight = torch.randn(256, 256)
    scale = weight.abs().max() / 127
    quantized = (weight / scale).round().clamp(-128, 127).to(torch.int8)
    ```

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    - [torch.quantize_per_tensor](https://docs.pytorch.org/docs/stable/generated/torch.quantize_per_tensor.html)
    """

    code, name = "DT103", "bare-int8-cast"
    triggers = SMALL
    calls = CAST_METHODS

    def on_call(self, call: Call) -> Iterator[Finding]:
        from dtlint.dtypes.dtype import DTYPES, FLOATING

        tensor = call.receiver
        if not isinstance(tensor, Tensor) or not tensor.dtypes or not tensor.dtypes <= FLOATING:
            return
        is_cast, dtypes = call.cast
        if not is_cast or dtypes is None or len(dtypes) != 1 or tensor.traits & _THOUGHT_THROUGH:
            return
        (target,) = dtypes
        if target not in _BECOMES or _is_written_for(tensor, DTYPES[target]):
            return
        source = next(iter(tensor.dtypes)) if len(tensor.dtypes) == 1 else "a float"
        low, high = DTYPES[target].min, DTYPES[target].max
        yield Finding(
            call.node,
            f"The cast from {source} to {target} truncates, and on a CPU wraps around: 0.9 becomes 0, {_BECOMES[target]}",
            help=f"Scale, and then `.round().clamp({low}, {high})`, before the cast",
            notes=() if tensor.origin is None else ((tensor.origin, f"{source} comes from here"),),
        )


def _is_written_for(tensor: Tensor, target: Info) -> bool:
    """Is the tensor made of numbers that the source writes out, and that the dtype holds as far as they are known?"""
    if Trait.CONSTANT not in tensor.traits:
        return False
    # The cast drops the fraction first.
    return tensor.span is None or (tensor.span[0] > target.min - 1 and tensor.span[1] < target.max + 1)
