"""What the arguments of a layer of torch.nn say of its weights: their dtype, and which of them there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, Const

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.context import Arguments
    from dtlint.infer.domain.values import Value

__all__ = ["AFFINE", "BIAS", "DTYPE_PLACES", "TRACKED", "dtype_argument", "weights_there"]

BIAS = {
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
AFFINE = {
    **dict.fromkeys(("LayerNorm", "RMSNorm"), (2, "elementwise_affine", True)),
    **{f"BatchNorm{n}d": (3, "affine", True) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": (3, "affine", False) for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": (2, "affine", True) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **dict.fromkeys(("GroupNorm", "SyncBatchNorm"), (3, "affine", True)),
}
"""Where the argument stands that gives a norm weights, what it is called, and what it is where it is not given."""
TRACKED = {
    **{f"BatchNorm{n}d": (4, "track_running_stats", True) for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": (4, "track_running_stats", False) for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": (3, "track_running_stats", True) for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "SyncBatchNorm": (4, "track_running_stats", True),
}
"""The same of running statistics."""
DTYPE_PLACES = {
    **dict.fromkeys(("LazyLinear", "PReLU"), 3),
    **dict.fromkeys(("GRUCell", "LSTMCell", "Linear", "RMSNorm"), 4),
    **dict.fromkeys(("Bilinear", "GroupNorm", "LayerNorm", "RNNCell"), 5),
    **{f"Lazy{kind}Norm{n}d": 5 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"{kind}Norm{n}d": 6 for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **dict.fromkeys(("AdaptiveLogSoftmaxWithLoss",), 6),
    **dict.fromkeys(("SyncBatchNorm",), 7),
    **dict.fromkeys(("LazyConv1d", "LazyConv2d", "LazyConv3d", "LSTM", "GRU"), 9),
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d", "Embedding", "MultiheadAttention", "RNN"), 10),
    **{f"LazyConvTranspose{n}d": 10 for n in (1, 2, 3)},
    **dict.fromkeys(("TransformerDecoderLayer", "TransformerEncoderLayer"), 10),
    **dict.fromkeys(("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "EmbeddingBag"), 11),
    **dict.fromkeys(("Transformer",), 14),
}
"""Where the dtype stands among a layer's arguments, by the signatures of torch.nn."""


def dtype_argument(layer: str, arguments: Arguments) -> Value | None:
    """The argument that says which dtype a layer's weights have; None where there is none."""
    return arguments.get(DTYPE_PLACES.get(layer), "dtype")


def weights_there(layer: str, arguments: Arguments) -> Iterator[tuple[str, bool | None]]:
    """The attributes of a layer that an argument decides on: are they there? None where that is not known."""
    affine: bool | None = True
    if layer in AFFINE:
        affine = _flag(arguments, *AFFINE[layer])
        yield "weight", affine
    if layer in BIAS or layer in AFFINE:
        bias = _flag(arguments, BIAS[layer], "bias", True) if layer in BIAS else True
        yield "bias", False if affine is False or bias is False else affine and bias
    if layer in TRACKED:
        tracked = _flag(arguments, *TRACKED[layer])
        yield "running_mean", tracked
        yield "running_var", tracked
    if layer == "MultiheadAttention":
        widths = (arguments.get(7, "kdim") or NONE, arguments.get(8, "vdim") or NONE)
        yield "in_proj_weight", True if arguments.complete and widths == (NONE, NONE) else None


def _flag(arguments: Arguments, position: int, name: str, default: bool) -> bool | None:
    given = arguments.get(position, name)
    if given is None:
        return default if arguments.complete else None
    return bool(given.value) if isinstance(given, Const) else None
