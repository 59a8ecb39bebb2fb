"""What the constructors of torch.nn's layers take by position, and which weights a layer has by what it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, Value

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments

__all__ = ["DTYPE_PLACES", "NUMBERS", "buffers_of", "parameters_of", "settings_of", "taken_by"]

_CONVOLUTION = "in_channels out_channels kernel_size stride padding dilation groups bias padding_mode device dtype"
_TRANSPOSED = (
    "in_channels out_channels kernel_size stride padding output_padding groups bias dilation padding_mode device dtype"
)
_BATCH_NORM = "num_features eps momentum affine track_running_stats device dtype"
_MAX_POOL = "kernel_size stride padding dilation return_indices ceil_mode"
_ENCODER_LAYER = (
    "d_model nhead dim_feedforward dropout activation layer_norm_eps batch_first norm_first bias device dtype"
)

_TAKES: dict[str, str] = {
    "Linear": "in_features out_features bias device dtype",
    "LazyLinear": "out_features bias device dtype",
    "Bilinear": "in1_features in2_features out_features bias device dtype",
    **{f"Conv{n}d": _CONVOLUTION for n in (1, 2, 3)},
    **{f"LazyConv{n}d": _CONVOLUTION.partition(" ")[2] for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": _TRANSPOSED for n in (1, 2, 3)},
    **{f"LazyConvTranspose{n}d": _TRANSPOSED.partition(" ")[2] for n in (1, 2, 3)},
    "LayerNorm": "normalized_shape eps elementwise_affine bias device dtype",
    "RMSNorm": "normalized_shape eps elementwise_affine device dtype",
    "GroupNorm": "num_groups num_channels eps affine device dtype",
    **{f"{kind}Norm{n}d": _BATCH_NORM for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    **{f"Lazy{kind}Norm{n}d": _BATCH_NORM.partition(" ")[2] for kind in ("Batch", "Instance") for n in (1, 2, 3)},
    "Embedding": "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse _weight",
    "EmbeddingBag": "num_embeddings embedding_dim max_norm norm_type scale_grad_by_freq mode",
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "input_size hidden_size num_layers bias batch_first dropout bidirectional"),
    **dict.fromkeys(("LSTMCell", "GRUCell", "RNNCell"), "input_size hidden_size bias"),
    "MultiheadAttention": "embed_dim num_heads dropout bias add_bias_kv add_zero_attn kdim vdim batch_first device dtype",
    "TransformerEncoderLayer": _ENCODER_LAYER,
    "TransformerDecoderLayer": _ENCODER_LAYER,
    "TransformerEncoder": "encoder_layer num_layers norm",
    "TransformerDecoder": "decoder_layer num_layers norm",
    "Transformer": "d_model nhead num_encoder_layers num_decoder_layers",
    **{f"MaxPool{n}d": _MAX_POOL for n in (1, 2, 3)},
    **{f"AdaptiveMaxPool{n}d": "output_size return_indices" for n in (1, 2, 3)},
    **{f"FractionalMaxPool{n}d": "kernel_size output_size output_ratio return_indices" for n in (2, 3)},
    "Flatten": "start_dim end_dim",
    "Dropout": "p inplace",
    "PReLU": "num_parameters init device dtype",
    "Upsample": "size scale_factor mode",
    **dict.fromkeys(
        ("CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"), "weight"
    ),
    "Softmax": "dim",
}
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
_NORMS = ("LayerNorm", "RMSNorm", "GroupNorm")
_BATCH_NORMS = tuple(
    f"{lazy}{kind}Norm{n}d" for lazy in ("", "Lazy") for kind in ("Batch", "Instance") for n in (1, 2, 3)
)
_TWO = ("Linear", "LazyLinear", "Bilinear", *(name for name in _TAKES if "Conv" in name), *_NORMS, *_BATCH_NORMS)
_RECURRENT = ("LSTM", "GRU", "RNN")
_CELLS = ("LSTMCell", "GRUCell", "RNNCell")

NUMBERS = frozenset(
    {"in_features", "out_features", "in1_features", "in2_features", "in_channels", "out_channels", "groups", "d_model"}
    | {"num_features", "num_groups", "num_channels", "num_embeddings", "num_layers", "num_heads", "num_parameters"}
    | {"num_encoder_layers", "num_decoder_layers", "embedding_dim", "embed_dim", "input_size", "hidden_size", "nhead"}
    | {"dim_feedforward", "dropout", "p", "eps", "layer_norm_eps", "momentum"}
)
"""Those of a layer's arguments that are a number each, and no tuple of them."""


def taken_by(layer: str) -> list[str]:
    """The names of what a constructor takes by position, as far as they are known."""
    return _TAKES.get(layer, "").split()


def settings_of(layer: str, arguments: Arguments) -> dict[str, Value]:
    """What a constructor is given, by name."""
    named = dict(zip(taken_by(layer), arguments.args, strict=False))
    place = DTYPE_PLACES.get(layer, len(arguments.args))
    if place < len(arguments.args):
        named["dtype"] = arguments.args[place]
    if not arguments.complete:
        named[_OTHERS] = TOP
    return {**named, **arguments.keywords}


_OTHERS = "*others"
"""Stands for arguments that are not known."""


def _is_on(settings: dict[str, Value], name: str, usual: bool) -> bool | None:
    """Is a switch on? None where it is not known."""
    value = settings.get(name, Const(usual) if _OTHERS not in settings else None)
    return bool(value.value) if isinstance(value, Const) else None


def parameters_of(layer: str, settings: dict[str, Value]) -> dict[str, bool | None]:
    """The parameters of a layer, by attribute: is it there? False: the attribute is None; None: not known."""
    if layer in _TWO:
        affine: bool | None = True
        if layer in _NORMS or layer in _BATCH_NORMS:
            name = "elementwise_affine" if layer in ("LayerNorm", "RMSNorm") else "affine"
            affine = _is_on(settings, name, usual="Instance" not in layer)
        bias = _is_on(settings, "bias", usual=True) if affine else affine
        return {"weight": affine} if layer == "RMSNorm" else {"weight": affine, "bias": bias}
    if layer in ("Embedding", "EmbeddingBag", "PReLU"):
        return {"weight": True}
    bias = _is_on(settings, "bias", usual=True)
    if layer in _CELLS:
        return {"weight_ih": True, "weight_hh": True, "bias_ih": bias, "bias_hh": bias}
    if layer in _RECURRENT:
        given = settings.get("num_layers", Const(1))
        count = given.value if isinstance(given, Const) and type(given.value) is int else 1
        ways = ("", "_reverse") if _is_on(settings, "bidirectional", usual=False) else ("",)
        made: dict[str, bool | None] = {}
        for number in range(min(count, 8)):
            for way in ways:
                made |= {f"weight_{kind}_l{number}{way}": True for kind in ("ih", "hh")}
                made |= {f"bias_{kind}_l{number}{way}": bias for kind in ("ih", "hh")}
        return made
    if layer == "MultiheadAttention":
        if _OTHERS in settings:
            return {"in_proj_weight": None, "in_proj_bias": bias}
        if any(settings.get(name, NONE) != NONE for name in ("kdim", "vdim")):
            return {"q_proj_weight": True, "k_proj_weight": True, "v_proj_weight": True, "in_proj_bias": bias}
        return {"in_proj_weight": True, "in_proj_bias": bias}
    return {}


def buffers_of(layer: str, settings: dict[str, Value]) -> dict[str, bool | None]:
    """The buffers of a layer of floats, by attribute."""
    if layer not in _BATCH_NORMS:
        return {}
    kept = _is_on(settings, "track_running_stats", usual="Instance" not in layer)
    return {"running_mean": kept, "running_var": kept}
