"""Layers of torch.nn: the weights that each makes, and what calling it gives by these and by its input.

The operator table answers where it can; the sets below, from torch's documentation, are for layers that it does not have and
for inputs of which nothing is known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    Device,
    Dtype,
    External,
    Function,
    Many,
    Mapping,
    Partial,
    Ref,
    Region,
    Symbol,
    Tensor,
    Tuple,
    Unknown,
    Value,
    reshaped,
)
from dtlint.infer.models import hooks, layer_arguments, plain_tensors
from dtlint.infer.models.mappings import of_mapping_or_pairs
from dtlint.infer.models.ops import ask, default_dtypes, tell_refusal
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["NAMES", "as_parameter", "called", "construct", "initialise", "is_layer", "make_weight"]

_CONVOLUTIONS = tuple(f"{lazy}Conv{way}{n}d" for lazy in ("", "Lazy") for way in ("", "Transpose") for n in (1, 2, 3))
_RECURRENT = ("LSTM", "GRU", "RNN")
_CELLS = ("LSTMCell", "GRUCell", "RNNCell")
_NORMS = frozenset(
    {"LayerNorm", "GroupNorm", "RMSNorm"}
    | {f"{lazy}{kind}Norm{n}d" for lazy in ("", "Lazy") for kind in ("Batch", "Instance") for n in (1, 2, 3)}
)
_ATTENTIVE = frozenset(
    {"MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer"}
    | {"TransformerEncoder", "TransformerDecoder", "Transformer"}
)
"""Layers of layers, which the table answers where all weights have one dtype."""
_WEIGHTED = frozenset(
    ("Linear", "LazyLinear", "Bilinear", *_CONVOLUTIONS, *_RECURRENT, *_CELLS, *_NORMS, *_ATTENTIVE)
) | frozenset({"Embedding", "EmbeddingBag", "PReLU"})
_FIRST_WEIGHT = {
    **dict.fromkeys(_RECURRENT, "weight_ih_l0"),
    **dict.fromkeys(_CELLS, "weight_ih"),
    "MultiheadAttention": "in_proj_weight",
}
_FUNCTIONS: dict[str, tuple[str, tuple[Value, ...]]] = {
    "Dropout": ("dropout", ()),
    "Dropout1d": ("dropout1d", ()),
    "Dropout2d": ("dropout2d", ()),
    "Dropout3d": ("dropout3d", ()),
    "AlphaDropout": ("alpha_dropout", ()),
    "FeatureAlphaDropout": ("feature_alpha_dropout", ()),
    "Hardsigmoid": ("hardsigmoid", ()),
    "RReLU": ("rrelu", ()),
    "Unfold": ("unfold", (Const(2),)),
    "PixelShuffle": ("pixel_shuffle", (Const(2),)),
    "PixelUnshuffle": ("pixel_unshuffle", (Const(2),)),
    "CosineSimilarity": ("cosine_similarity", ()),
    "PairwiseDistance": ("pairwise_distance", ()),
    "TripletMarginLoss": ("triplet_margin_loss", ()),
    "LayerNorm": ("layer_norm", (Tuple((Const(4),)),)),
    "RMSNorm": ("rms_norm", (Tuple((Const(4),)),)),
    "GroupNorm": ("group_norm", (Const(2),)),
    **dict.fromkeys((f"InstanceNorm{n}d" for n in (1, 2, 3)), ("instance_norm", ())),
}
"""The functions that layers without weights call, with arguments of some value behind the tensors."""

_AGREEING = frozenset(("Linear", "LazyLinear", "Bilinear", *_CONVOLUTIONS, *_RECURRENT, *_CELLS))
"""Input and weight must be of one dtype, or the call raises: so the result has the weight's."""
_OF_WEIGHT = frozenset({"Embedding", "EmbeddingBag"})
"""The result has the weight's dtype, whatever autocast says."""
_KEEPING = frozenset(
    {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "Identity", "Flatten"}
    | {"Unflatten", "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softsign"}
    | {"Hardtanh", "Hardswish", "Hardsigmoid", "Tanhshrink", "Softshrink", "Hardshrink", "GLU", "Threshold", "RReLU"}
    | {f"{kind}Pool{n}d" for kind in ("Avg", "AdaptiveAvg") for n in (1, 2, 3)}
    | {f"{kind}Pad{n}d" for kind in ("Zero", "Reflection", "Replication", "Constant", "Circular") for n in (1, 2, 3)}
    | {"PixelShuffle", "PixelUnshuffle", "ChannelShuffle", "Unfold", "Fold", "UpsamplingNearest2d"}
)
"""The result has the input's dtype, in autocast, too."""
_MOVING = frozenset({"Identity", "Flatten", "Unflatten", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle"})
"""Those of them that compute nothing."""
_CONTAINERS = frozenset({"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_OWN = frozenset({"Parameter", "Buffer", "UninitializedParameter", "DataParallel"})


NAMES = (*sorted(_WEIGHTED | _KEEPING), "Sequential")
"""Layers whose `forward` a subclass may call by name."""


def is_layer(name: str) -> bool:
    """Is it the qualified name of a layer or a container of torch.nn?"""
    package, _, last = name.rpartition(".")
    return package == "torch.nn" and last[:1].isupper() and last not in _OWN


def construct(ctx: Context, name: str, arguments: Arguments) -> Value:
    """A new layer."""
    made = ctx.allocate(arguments.node, name)
    initialise(ctx, made, name, arguments)
    return made


def initialise(ctx: Context, made: Ref, name: str, arguments: Arguments) -> None:
    """Give a layer, or an object of a subclass of one, its weights."""
    last = name.rpartition(".")[2]
    if last in _CONTAINERS:
        _initialise_container(ctx, made, last, arguments)
        return
    settings = layer_arguments.settings_of(last, arguments)
    tensor = _new_weight(ctx, settings, arguments)
    weights = tensor
    if last in _AGREEING or last in _OF_WEIGHT:
        weights = Tensor(tensor.dtypes, tensor.symbol, -1, device=tensor.device, extra=_FRACTIONS)
    for field, there in layer_arguments.parameters_of(last, settings).items():
        _make_if(ctx, made, field, weights, plain_tensors.PARAMETER, there)
    for field, there in layer_arguments.buffers_of(last, settings).items():
        _make_if(ctx, made, field, tensor, plain_tensors.BUFFER, there)
        if field == "running_var":
            counter = Tensor(frozenset({"int64"}), None, 0, device=tensor.device)
            _make_if(ctx, made, "num_batches_tracked", counter, plain_tensors.BUFFER, there)
    for key, value in settings.items():
        if key not in ("dtype", "device", "bias") and not key.startswith("*"):
            ctx.store.write(made.address, key, value)
    if last.endswith("Loss"):
        _weigh(ctx, made, settings)
    if last in _ATTENTIVE:
        _make_parts(ctx, made, last, settings, arguments)


def _new_weight(ctx: Context, settings: dict[str, Value], arguments: Arguments) -> Tensor:
    """A weight as the constructor makes it: of the dtype that it is given, or the default one."""
    given = settings.get("dtype")
    if given is None and not arguments.complete:
        dtypes = None
    elif isinstance(given, Dtype):
        dtypes = given.dtypes
    elif given is None or given == NONE:
        dtypes = default_dtypes(ctx)
    else:
        dtypes = None
    return Tensor(
        dtypes, given.symbol if isinstance(given, Dtype) else None, -1, device=_device(ctx, settings, arguments)
    )


def _weigh(ctx: Context, made: Ref, settings: dict[str, Value]) -> None:
    """Give a loss the weights of its classes, which are buffers."""
    for field in ("weight", "pos_weight"):
        weight = plain_tensors.plain(ctx, settings.get(field, NONE))
        if isinstance(weight, Tensor):
            make_weight(ctx, made, field, weight, plain_tensors.BUFFER)


_FRACTIONS: frozenset[tuple[str, object]] = frozenset({("weight", True)})
"""Says of a tensor that it is a weight: nearly all of its elements are between -1 and 1."""


def _make_if(ctx: Context, made: Ref, field: str, tensor: Tensor, kind: str, there: bool | None) -> None:
    """A weight that is there, or None in its place."""
    if there is False:
        ctx.store.write(made.address, field, NONE)
        return
    make_weight(ctx, made, field, tensor, kind)
    if there is None:
        ctx.store.blend(made.address, field, NONE)


_PARTS: dict[str, dict[str, str]] = {
    "MultiheadAttention": {"out_proj": "Linear"},
    "TransformerEncoderLayer": {
        "self_attn": "MultiheadAttention",
        **dict.fromkeys(("linear1", "linear2"), "Linear"),
        **dict.fromkeys(("norm1", "norm2"), "LayerNorm"),
    },
    "TransformerDecoderLayer": {
        **dict.fromkeys(("self_attn", "multihead_attn"), "MultiheadAttention"),
        **dict.fromkeys(("linear1", "linear2"), "Linear"),
        **dict.fromkeys(("norm1", "norm2", "norm3"), "LayerNorm"),
    },
}


def _make_parts(ctx: Context, made: Ref, last: str, settings: dict[str, Value], arguments: Arguments) -> None:
    """The layers within a layer."""
    passed: dict[str, Value] = {key: settings[key] for key in ("dtype", "device", "bias") if key in settings}
    given = Arguments([], passed, arguments.complete, arguments.node)
    for field, kind in _PARTS.get(last, {}).items():
        _part(ctx, made, field, kind, given)
    if last in ("TransformerEncoder", "TransformerDecoder"):
        layer = settings.get("encoder_layer", settings.get("decoder_layer", TOP))
        copied = ctx.semantics.call(ctx, External("copy.deepcopy"), Arguments([layer], {}, True, arguments.node))
        _hold(ctx, made, "layers", "ModuleList", Many(copied))
    if last == "Transformer":
        for field in ("encoder", "decoder"):
            custom = settings.get(f"custom_{field}", NONE)
            if custom != NONE:
                ctx.store.write(made.address, field, custom)
                continue
            inner = _hold(ctx, made, field, f"Transformer{field.capitalize()}", None)
            layer = _part(ctx, inner, "*layer", f"Transformer{field.capitalize()}Layer", given)
            _hold(ctx, inner, "layers", "ModuleList", Many(layer))
            _part(ctx, inner, "norm", "LayerNorm", given)


def _part(ctx: Context, owner: Ref, field: str, kind: str, given: Arguments) -> Ref:
    """A layer that a layer makes for itself."""
    made = _hold(ctx, owner, field, kind, None)
    initialise(ctx, made, f"torch.nn.{kind}", given)
    return made


def _hold(ctx: Context, owner: Ref, field: str, kind: str, content: Value | None) -> Ref:
    address = ctx.store.address(owner.address.path, (owner.address, field), f"torch.nn.{kind}")
    made = Ref(ctx.store.allocate(address, content))
    ctx.store.write(owner.address, field, made)
    return made


def _device(ctx: Context, settings: dict[str, Value], arguments: Arguments) -> str | None:
    usual = ctx.ambient("default device")
    plainly = "device" not in settings and arguments.complete
    return usual.type if plainly and isinstance(usual, Device) else None


def make_weight(ctx: Context, owner: Ref, field: str, tensor: Tensor, kind: str) -> Ref:
    """Give a module a parameter or a buffer of its own."""
    address = ctx.store.address(owner.address.path, (owner.address, field), kind)
    weight = Ref(ctx.store.allocate(address, tensor))
    ctx.store.write(owner.address, field, weight)
    return weight


def _initialise_container(ctx: Context, made: Ref, name: str, arguments: Arguments) -> None:
    store = ctx.store
    if name == "Module":
        return
    first = arguments.args[0] if arguments.args else None
    content: Value | None = None
    if name == "Sequential":
        held = store.read(first.address, CONTENT) if isinstance(first, Ref) and len(arguments.args) == 1 else None
        if isinstance(held, Mapping):
            for key, value in held.items:
                if isinstance(key, Const):
                    store.write(made.address, key.value, value)
            content = Tuple(tuple(value for _, value in held.items)) if held.rest is None else Many(TOP)
        if content is None:
            content = Tuple(tuple(arguments.args)) if arguments.complete else Many(TOP)
    elif name in ("ModuleDict", "ParameterDict"):
        content = Mapping() if first is None else of_mapping_or_pairs(ctx, first, arguments.node)
        if name == "ParameterDict" and isinstance(content, Mapping):
            items = tuple((key, as_parameter(ctx, value, (made.address, key))) for key, value in content.items)
            content = Mapping(items, content.rest)
    else:
        content = Tuple(()) if first is None else ctx.semantics.items(ctx, first, arguments.node)
        if name == "ParameterList" and isinstance(content, Tuple):
            each = enumerate(content.items)
            content = Tuple(tuple(as_parameter(ctx, value, (made.address, place)) for place, value in each))
        elif name == "ParameterList" and isinstance(content, Many):
            content = Many(as_parameter(ctx, content.item, (made.address, "each")))
    store.write(made.address, CONTENT, content)


def as_parameter(ctx: Context, value: Value, site: object) -> Value:
    """A tensor that a list of parameters is given is a parameter in it."""
    return ctx.allocate(site, plain_tensors.PARAMETER, value) if isinstance(value, Tensor) else value


# -- calls ---------------------------------------------------------------------------------------------------------------


def called(ctx: Context, receiver: Value, name: str, arguments: Arguments) -> Value:
    """What calling a layer gives.

    Raises:
        NeverReturns: it refuses its input.
    """
    last = name.rpartition(".")[2]
    if not isinstance(receiver, Ref) or not name.startswith("torch.nn."):
        ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
        return TOP
    if last == "Sequential":
        under_way = ctx.frame.sequences
        if receiver.address in under_way:  # made in a loop around the one before, it stands for both
            return TOP
        under_way.append(receiver.address)
        try:
            return _in_sequence(ctx, receiver, arguments)
        finally:
            under_way.pop()
    if last in _CONVOLUTIONS:
        own = _own_convolution(ctx, receiver, arguments)
        if own is not None:
            return own
    given = arguments.get(0, "input")
    first = TOP if given is None else plain_tensors.plain(ctx, given)
    if last == "Identity":
        return first
    weight = _weight_of(ctx, receiver, last)
    if last in _RECURRENT and isinstance(first, Tuple) and first.names:
        return _of_packed(ctx, receiver, last, weight, first, arguments)
    known = _by_table(ctx, last, weight, receiver, arguments)
    if known is not None:
        return known
    return _otherwise(ctx, last, weight, first, arguments)


def _own_convolution(ctx: Context, receiver: Ref, arguments: Arguments) -> Value | None:
    """What a class makes of its input that overrides `_conv_forward`, which `forward` of all convolutions calls."""
    kind = receiver.address.kind
    if isinstance(kind, str) or not arguments.args:
        return None
    method = ctx.semantics.attribute(ctx, receiver, "_conv_forward", arguments.node)
    if not isinstance(method, Function):
        return None
    weights = [ctx.store.read(receiver.address, field) or NONE for field in ("weight", "bias")]
    return ctx.semantics.call(ctx, method, Arguments([arguments.args[0], *weights], {}, True, arguments.node))


def _of_packed(ctx: Context, receiver: Ref, last: str, weight: Value, packed: Tuple, arguments: Arguments) -> Value:
    """A packed sequence through a recurrent layer: another one, of the output's dtype."""
    data = packed.items[0]
    inner = Arguments([_with_dimensions(data)], {}, True, arguments.node)
    made = _by_table(ctx, last, weight, receiver, inner) or _otherwise(ctx, last, weight, data, inner)
    if not isinstance(made, Tuple):
        return TOP
    return Tuple((Tuple((made.items[0], *packed.items[1:]), packed.names), *made.items[1:]))


def _weight_of(ctx: Context, receiver: Ref, last: str) -> Value:
    """What stands for all weights of a layer: the tensor in one of them; None where it has none; Top where they differ."""
    if last not in _WEIGHTED:
        return NONE
    if last in _ATTENTIVE:
        from dtlint.infer.models.module_trees import modules_within, weights_within

        plainly = all(
            isinstance(one.address.kind, str) and not hooks.has_hooks(ctx, one) for one in modules_within(ctx, receiver)
        )
        found = {ctx.store.read(address, CONTENT) or TOP for address in weights_within(ctx, receiver)}
        dtypes = {(one.dtypes, one.symbol) if isinstance(one, Tensor) else None for one in found}
        return next(iter(found)) if plainly and len(dtypes) == 1 and None not in dtypes else TOP
    value = ctx.store.read(receiver.address, _FIRST_WEIGHT.get(last, "weight"))
    if isinstance(value, Partial) and value.callee == plain_tensors.PARAMETRISED:
        return ctx.semantics.call(ctx, value, Arguments([], {}, True, (receiver.address, "weight")))
    return TOP if value is None else plain_tensors.plain(ctx, value)


def _in_sequence(ctx: Context, receiver: Ref, arguments: Arguments) -> Value:
    content = ctx.store.read(receiver.address, CONTENT)
    if isinstance(content, Tuple):
        value: Value = arguments.args[0] if arguments.args else TOP
        for place, layer in enumerate(content.items):
            args = list(arguments.args) if place == 0 else [value]
            value = ctx.semantics.call(ctx, layer, Arguments(args, {}, True, _site(ctx, arguments.node, place)))
        return value
    if isinstance(content, Many) and arguments.args:
        value = arguments.args[0]
        for _ in range(3):
            made = ctx.semantics.call(ctx, content.item, Arguments([value], {}, True, arguments.node))
            joined = join(value, made)
            if joined == value:
                break
            value = joined
        return value
    return TOP


_SITES: dict[tuple[object, int], object] = {}


def _site(ctx: Context, node: object, place: int) -> object:
    """A site for each layer of a sequence, so that what each allocates is told apart."""
    return _SITES.setdefault((node, place), (node, place))


def _by_table(ctx: Context, last: str, weight: Value, receiver: Ref, arguments: Arguments) -> Value | None:
    if not arguments.complete or not (arguments.args or arguments.keywords):
        return None
    args = [_operand(ctx, value) for value in arguments.args]
    keywords = {name: _operand(ctx, value) for name, value in arguments.keywords.items()}
    if args and isinstance(args[0], Unknown):
        args[0] = Tensor(args[0].dtypes, args[0].symbol)
    if last in _RECURRENT or last in _CELLS:
        _check_state(ctx, last, weight, args[:1], arguments.get(1, "hx"))
        args = args[:1]
        keywords = {}
    if args and (last in _RECURRENT or last in _CELLS or last in _ATTENTIVE):
        args = [_with_dimensions(one) for one in args]
    settings = {name: value for name in _SETTINGS if (value := ctx.store.read(receiver.address, name)) is not None}
    if weight == NONE and last in _FUNCTIONS:
        function, more = _FUNCTIONS[last]
        return _known(ask(ctx, f"torch.nn.functional.{function}", [*args, *more], keywords, settings))
    if last == "Upsample" or last.startswith("Upsampling"):
        return _known(ask(ctx, "torch.nn.functional.interpolate", [*args[:1], NONE, Const(2.0)], {}))
    if not isinstance(weight, Tensor) and weight != NONE:
        return None
    if last == "MultiheadAttention":
        keywords = {
            name: value for name, value in keywords.items() if name not in ("need_weights", "average_attn_weights")
        }
        args = args[:4]
    if last.startswith(("MaxPool", "AdaptiveMaxPool", "FractionalMaxPool")):
        return _pooled(ctx, last, args, keywords, settings.get("return_indices", Const(False)))
    weigher = ctx.store.read(receiver.address, "weight") if last in ("CrossEntropyLoss", "NLLLoss") else None
    if isinstance(weigher, Ref):
        keywords["weight"] = plain_tensors.plain(ctx, weigher)
    result = _known(ask(ctx, f"torch.nn.{last}", [weight, *args], keywords, settings))
    if result is not None and last == "MultiheadAttention":
        return _attended(result, arguments)
    return result


def _check_state(ctx: Context, last: str, weight: Value, given: list[Value], state: Value | None) -> None:
    """A state has the dtype of the weights, or the call raises, outside autocast."""
    region = ctx.ambient("region")
    if state is None or not (region == NONE or (isinstance(region, Region) and region.enabled is False)):
        return
    items = [_operand(ctx, one) for one in (state.items if isinstance(state, Tuple) else (state,))]
    if not isinstance(weight, Tensor) or not weight.dtypes:
        return
    if any(isinstance(one, Tensor) and one.dtypes and one.dtypes.isdisjoint(weight.dtypes) for one in items):
        tell_refusal(ctx, f"torch.nn.{last}", [weight, *given, *items], _OTHER_STATE)


_OTHER_STATE = "Input and hidden tensors are not the same dtype"
_SETTINGS = ("reduction", "return_indices", "start_dim", "end_dim", "size_average", "reduce")
"""What of a constructor's arguments decides a result's dimensions, or whether there are several."""


def _operand(ctx: Context, value: Value) -> Value:
    value = plain_tensors.plain(ctx, value)
    return Tensor(value.dtypes, value.symbol) if isinstance(value, Unknown) and value.dtypes else value


def _known(result: Value | None) -> Value | None:
    """An answer, if there is one."""
    if result is None or isinstance(result, Unknown):
        return None
    return None if isinstance(result, Tensor) and result.dtypes is None and result.symbol is None else result


def _pooled(ctx: Context, last: str, args: list[Value], keywords: dict[str, Value], indices: Value) -> Value | None:
    """The largest elements, and where they are if that is asked for."""
    made = _known(ask(ctx, f"torch.nn.{last}", [NONE, *args], keywords))
    if made is None and args and isinstance(args[0], Tensor):
        made = args[0]  # no region has to do with it
    if not isinstance(made, Tensor):
        return None
    if indices == Const(False):
        return made
    if indices == Const(True):
        return Tuple((made, Tensor(frozenset({"int64"}), None, made.rank, device=made.device)))
    return TOP


def _attended(result: Value, arguments: Arguments) -> Value:
    """Attention's output, and its weights unless they are not asked for."""
    asked = arguments.get(4, "need_weights") or Const(True)
    if not isinstance(result, Tuple) or len(result.items) != 2:
        return result
    if asked == Const(True):
        return result
    return Tuple((result.items[0], NONE if asked == Const(False) else TOP))


def _with_dimensions(value: Value) -> Value:
    if isinstance(value, Tensor) and value.rank is None:
        return Tensor(value.dtypes, value.symbol, -1, value.range, value.device)
    return value


def _otherwise(ctx: Context, last: str, weight: Value, first: Value, arguments: Arguments) -> Value:
    """What is known without the table."""
    region = ctx.ambient("region")
    outside = region == NONE or (isinstance(region, Region) and region.enabled is False)
    rank = first.rank if isinstance(first, Tensor) else None
    if last in _OF_WEIGHT and isinstance(weight, Tensor):
        return Tensor(weight.dtypes, weight.symbol, -1)
    if last in _AGREEING and isinstance(weight, Tensor) and (outside or last != "Bilinear"):  # which autocast promotes
        result = _agreed(weight, first, region, outside)
        if last in _RECURRENT:
            if not outside:
                return TOP
            result = Tensor(result.dtypes, result.symbol, -1)
            state: Value = Tuple((result, result)) if last == "LSTM" else result
            return Tuple((result, state))
        if last in _CELLS:
            return Tuple((result, result)) if last == "LSTMCell" else result
        return Tensor(result.dtypes, result.symbol, rank if rank is not None else -1)
    if last == "MultiheadAttention":
        return _attended(Tuple((Tensor(None, None, -1), Tensor(None, None, -1))), arguments)
    symbol = first.symbol if isinstance(first, (Tensor, Unknown)) else None
    if last in _NORMS and symbol is not None and (outside or region == TOP):
        # of the input's dtype, or it raises
        return Tensor(None, replace(symbol, outside=symbol.outside or region == TOP), -1)
    if last in ("Flatten", "Unflatten") and isinstance(first, Tensor):
        return Tensor(first.dtypes, reshaped(first.symbol), -1, first.range, first.device)
    if last in _KEEPING and isinstance(first, Tensor):
        return Tensor(first.dtypes, _kept(symbol, last, region), first.rank)
    if last in _KEEPING and isinstance(first, Unknown):
        return Unknown(first.dtypes, _kept(symbol, last, region))
    if last.endswith("Loss"):
        return Tensor(None, None, None)
    return Tensor() if isinstance(first, Tensor) and last in _WEIGHTED else TOP


def _kept(symbol: Symbol | None, last: str, region: Value) -> Symbol | None:
    """What decides the dtype of what a layer gives that computes in the dtype of its input: of floating ones, where autocast
    leaves it alone."""
    if symbol is None or last in _MOVING:
        return reshaped(symbol)
    if isinstance(region, Region) and region.enabled is not False:
        return None
    return Symbol(symbol.of, symbol.met, Category.FLOAT, symbol.outside or region == TOP, True)


def _agreed(weight: Tensor, first: Value, region: Value, outside: bool) -> Tensor:
    """The one dtype of operands that must agree. Autocast casts float32 and lower to its own; float64 it leaves."""
    if outside:
        if weight.dtypes is None and weight.symbol is None and isinstance(first, Tensor):
            return Tensor(first.dtypes, first.symbol)
        return Tensor(weight.dtypes, weight.symbol)
    if isinstance(region, Region) and region.enabled and region.dtype is not None:
        wide = weight.dtypes is None or "float64" in weight.dtypes
        if not wide and not (isinstance(first, Tensor) and first.dtypes is not None and "float64" in first.dtypes):
            return Tensor(frozenset({region.dtype}))
    return Tensor()
