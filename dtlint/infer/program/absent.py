"""Which weights a layer of torch.nn has, by the arguments that make it: `nn.Linear(8, 8, bias=False).bias` is None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.values import NONE, Constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.calls import Arguments

__all__ = ["told_weights"]

_BIAS = {
    "LazyLinear": 1,
    "Linear": 2,
    **dict.fromkeys(("Bilinear", "LayerNorm"), 3),
    **{f"LazyConv{kind}{n}d": 6 for kind in ("", "Transpose") for n in (1, 2, 3)},
    **{f"Conv{kind}{n}d": 7 for kind in ("", "Transpose") for n in (1, 2, 3)},
    "GroupNorm": 6,
    **{f"{kind}Norm{n}d": 7 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": 6 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": 8,
}
"""Where the argument `bias` stands."""
_AFFINE = {
    **dict.fromkeys(("LayerNorm", "RMSNorm"), (2, "elementwise_affine", True)),
    **{f"BatchNorm{n}d": (3, "affine", True) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": (3, "affine", False) for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": (2, "affine", True) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **dict.fromkeys(("GroupNorm", "SyncBatchNorm"), (3, "affine", True)),
}
"""Where the argument stands that gives a norm weights, what it is called, and what it is where it is not given."""
_TRACKED = {
    **{f"BatchNorm{n}d": (4, "track_running_stats", True) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": (4, "track_running_stats", False) for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": (3, "track_running_stats", True) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": (4, "track_running_stats", True),
}
"""The same of running statistics."""


def told_weights(layer: str, arguments: Arguments) -> Iterator[tuple[str, bool | None]]:
    """The attributes of a layer that an argument decides on: are they there? None where that is not known.

    Args:
        layer: its class, `torch.nn.Linear`.
    """
    kind = layer.rpartition(".")[2]
    affine: bool | None = True
    if kind in _AFFINE:
        affine = _flag(arguments, *_AFFINE[kind])
        yield "weight", affine
    if kind in _BIAS or kind in _AFFINE:
        bias = _flag(arguments, _BIAS[kind], "bias", True) if kind in _BIAS else True
        yield "bias", False if affine is False or bias is False else affine and bias
    if kind in _TRACKED:
        tracked = _flag(arguments, *_TRACKED[kind])
        yield "running_mean", tracked
        yield "running_var", tracked
    if kind == "MultiheadAttention":
        widths = (arguments.get(7, "kdim") or NONE, arguments.get(8, "vdim") or NONE)
        yield "in_proj_weight", True if arguments.complete and widths == (NONE, NONE) else None


def _flag(arguments: Arguments, position: int, name: str, default: bool) -> bool | None:
    given = arguments.get(position, name)
    if given is None:
        return default if arguments.complete else None
    return bool(given.value) if isinstance(given, Constant) else None
