"""The weights that a layer of torch.nn is made without: `nn.Linear(8, 8, bias=False).bias` is None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import Constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.calls import Arguments

__all__ = ["absent_weights"]

_BIAS = {
    "LazyLinear": 1,
    "Linear": 2,
    **dict.fromkeys(("Bilinear", "LayerNorm"), 3),
    **{f"LazyConv{kind}{n}d": 6 for kind in ("", "Transpose") for n in (1, 2, 3)},
    **{f"Conv{kind}{n}d": 7 for kind in ("", "Transpose") for n in (1, 2, 3)},
    "GroupNorm": 6,
    **{f"{kind}Norm{n}d": 7 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
}
"""Where the argument `bias` stands. Of recurrent layers it is no weight, but the flag itself."""
_AFFINE = {
    **dict.fromkeys(("LayerNorm", "RMSNorm"), (2, "elementwise_affine")),
    **{f"{kind}Norm{n}d": (3, "affine") for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **dict.fromkeys(("GroupNorm", "SyncBatchNorm"), (3, "affine")),
}
"""Where the argument stands that gives a norm weights, and what it is called."""


def absent_weights(layer: str, arguments: Arguments) -> Iterator[str]:
    """The attributes of a layer that are None, by the arguments that make it.

    Args:
        layer: its class, `torch.nn.Linear`.
    """
    if not arguments.complete:
        return
    kind = layer.rpartition(".")[2]
    if kind in _BIAS and _is_false(arguments, _BIAS[kind], "bias"):
        yield "bias"
    if kind in _AFFINE and _is_false(arguments, *_AFFINE[kind]):
        yield "weight"
        yield "bias"


def _is_false(arguments: Arguments, position: int, name: str) -> bool:
    given = arguments.get(position, name)
    return isinstance(given, Constant) and not given.value
