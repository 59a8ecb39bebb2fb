"""What calling a layer of torch.nn gives, by what its weights and its input are.

The operator table answers where it can. The sets below, from torch's documentation, are for layers that it does not
have and for inputs of which nothing is known; what stands in none of them gives Unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.ops import op_result, with_dimensions
from dtlint.infer.values import UNKNOWN, Constant, Items, Tensor, Unknown

if TYPE_CHECKING:
    from dtlint.infer.calls import Arguments
    from dtlint.infer.values import Autocast, Dtypes, Value

__all__ = ["layer_result"]

AGREEING = frozenset(
    {
        "Linear",
        "Bilinear",
        "Conv1d",
        "Conv2d",
        "Conv3d",
        "ConvTranspose1d",
        "ConvTranspose2d",
        "ConvTranspose3d",
        "LazyLinear",
    }
)
"""Input and weight must be of one dtype, or the call raises: so the result has the weight's. Autocast casts both, those
of Bilinear aside, which cuda promotes and cpu leaves alone."""

LOOKUPS = frozenset({"Embedding", "EmbeddingBag"})
"""The result has the weight's dtype, whatever autocast says."""
INDICES = frozenset({"int32", "int64"})
"""What they look up by."""

KEEPING = frozenset(
    {
        "Dropout",
        "Dropout1d",
        "Dropout2d",
        "Dropout3d",
        "AlphaDropout",
        "Identity",
        "Flatten",
        "Unflatten",
        "ReLU",
        "ReLU6",
        "LeakyReLU",
    }
    | {
        "ELU",
        "SELU",
        "CELU",
        "GELU",
        "SiLU",
        "Mish",
        "Tanh",
        "Sigmoid",
        "LogSigmoid",
        "Softplus",
        "Softsign",
        "Hardtanh",
        "Hardswish",
    }
    | {"Hardsigmoid", "Tanhshrink", "Softshrink", "Hardshrink", "GLU", "Threshold"}
    | {
        "MaxPool1d",
        "MaxPool2d",
        "MaxPool3d",
        "AvgPool1d",
        "AvgPool2d",
        "AvgPool3d",
        "AdaptiveAvgPool1d",
        "AdaptiveAvgPool2d",
    }
    | {
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool1d",
        "AdaptiveMaxPool2d",
        "ZeroPad2d",
        "ReflectionPad2d",
        "ReplicationPad2d",
    }
    | {"PixelShuffle", "PixelUnshuffle", "Upsample", "ChannelShuffle"}
)
"""The result has the input's dtype."""

_FLOAT32 = frozenset({"float32"})
_LIFTED = frozenset({"Softplus", "AvgPool3d", "MaxPool3d", "AdaptiveAvgPool3d", "Upsample", "Mish", "LogSigmoid"})
"""Of these, autocast makes float32 on some device."""

NORMS = frozenset(
    {
        "LayerNorm",
        "GroupNorm",
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "InstanceNorm1d",
        "InstanceNorm2d",
        "InstanceNorm3d",
    }
)
"""The result has the input's dtype; the input may be of lower precision than the weight. CUDA's autocast has its own
opinion of some of them."""

RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
"""A tuple of results in the weight's dtype: input and weight must agree."""

_CELLS = frozenset({"LSTMCell", "GRUCell", "RNNCell"})
"""One step of these: a result in the weight's dtype, as input and weight must agree."""


def layer_result(name: str, weights: Dtypes, arguments: Arguments, autocast: Autocast | None) -> Value:
    """The result of calling a layer of that class with these weights, in this autocast region."""
    given = arguments.args[0] if arguments.args else arguments.keywords.get("input")
    asked = _from_table(name, weights, arguments, autocast)
    if asked is not None:
        return asked
    dtypes = given.dtypes if isinstance(given, Tensor) else None
    origin = arguments.node
    if _refuses(name, weights, dtypes, autocast):
        return Tensor(origin=origin)
    if name in AGREEING or name in RECURRENT:
        result = _agreed(weights, dtypes, autocast) if autocast is None or name != "Bilinear" else None
        if name in AGREEING:
            return Tensor(result, origin=origin)
        if autocast is not None:
            return UNKNOWN
        tensor = Tensor(result, origin=origin)
        return Items((tensor, Items((tensor, tensor)) if name == "LSTM" else tensor))
    if name in _CELLS and autocast is None and len(arguments.args) == 1 and not arguments.keywords:
        # without a state, one is made like the input
        tensor = Tensor(_agreed(weights, dtypes, None), zero_dim=False, origin=origin)
        return Items((tensor, tensor)) if name == "LSTMCell" else tensor
    if name in LOOKUPS:
        return Tensor(weights, origin=origin)
    kept = dtypes == _FLOAT32 or autocast is None
    if name in KEEPING:
        known = kept or name not in _LIFTED
        return Tensor(dtypes if known else None, origin=origin) if isinstance(given, Tensor) else _unknown(given)
    if name in NORMS or name in ("Softmax", "LogSoftmax", "Softmin"):
        known = dtypes is not None and dtypes <= FLOATING and (kept or _is_of_cpu(autocast))
        return Tensor(dtypes if known else None, origin=origin)
    return Tensor(origin=origin) if name.endswith("Loss") else UNKNOWN


def _refuses(name: str, weights: Dtypes, given: Dtypes, autocast: Autocast | None) -> bool:
    """Does it raise for the dtype that it is given? A norm may have no weights, and bags promote what they are given."""
    if given is None:
        return False
    if name == "Embedding":
        return not given & INDICES
    return weights is not None and autocast is None and not weights & given and name in AGREEING | RECURRENT | _CELLS


def _from_table(name: str, weights: Dtypes, arguments: Arguments, autocast: Autocast | None) -> Value | None:
    """The operator table's answer; a layer takes tensors, so what is not known is at least one."""
    own = Tensor(weights, zero_dim=False)
    args: list[Value] = [
        value if isinstance(value, (Tensor, Constant, Items)) else Tensor() for value in arguments.args
    ]
    if name in RECURRENT or name in _CELLS:  # which refuse a tensor without dimensions
        args = list(map(with_dimensions, args))
    if weights is None or not arguments.complete:
        return None
    asked = op_result(f"torch.nn.{name}", [own, *args], arguments.keywords, arguments.default, autocast, arguments.node)
    if asked is None or asked == UNKNOWN:
        return None
    first = arguments.args[0] if arguments.args else None
    whole = isinstance(first, Tensor) and first.zero_dim is False
    return with_dimensions(asked) if whole or (name not in KEEPING and not name.endswith("Loss")) else asked


def _is_of_cpu(autocast: Autocast | None) -> bool:
    return autocast is not None and autocast.device == "cpu"


def _unknown(given: Value | None) -> Value:
    return Unknown(given.under) if isinstance(given, Unknown) and given.under is not None else UNKNOWN


def _agreed(weights: Dtypes, given: Dtypes, autocast: Autocast | None) -> Dtypes:
    """The one dtype of operands that must agree. Autocast casts float32 and lower to its own; float64 it leaves."""
    if autocast is None:
        return weights if weights is not None else given
    if autocast.enabled is None or autocast.dtype is None:
        return None
    safe = weights is not None and "float64" not in weights and (given is None or "float64" not in given)
    return frozenset({autocast.dtype}) if safe else None
