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
    Dtype,
    Many,
    Ref,
    Region,
    Symbol,
    Tensor,
    Tuple,
    Unknown,
    Value,
    reshaped,
)
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.layer_arguments import dtype_argument, weights_there
from dtlint.infer.models.ops import ask, default_dtypes
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.context import Context

__all__ = ["called", "construct", "initialise", "is_layer", "make_weight"]

_NORMS = ("LayerNorm", "GroupNorm", "RMSNorm")
_BATCH_NORMS = tuple(f"{kind}Norm{n}d" for kind in ("Batch", "LazyBatch", "Instance") for n in (1, 2, 3))
_CONVOLUTIONS = tuple(f"{lazy}Conv{way}{n}d" for lazy in ("", "Lazy") for way in ("", "Transpose") for n in (1, 2, 3))
_RECURRENT = ("LSTM", "GRU", "RNN")
_CELLS = ("LSTMCell", "GRUCell", "RNNCell")

WEIGHTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Linear", "LazyLinear", "Bilinear", *_CONVOLUTIONS), ("weight", "bias")),
    **dict.fromkeys((*_NORMS, *_BATCH_NORMS), ("weight", "bias")),
    **dict.fromkeys(("Embedding", "EmbeddingBag", "PReLU"), ("weight",)),
    **dict.fromkeys(_RECURRENT, ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")),
    **dict.fromkeys(_CELLS, ("weight_ih", "weight_hh", "bias_ih", "bias_hh")),
    "MultiheadAttention": ("in_proj_weight", "in_proj_bias"),
    **dict.fromkeys(("TransformerEncoderLayer", "TransformerDecoderLayer", "Transformer"), ("*weight",)),
    **dict.fromkeys(("TransformerEncoder", "TransformerDecoder"), ("*weight",)),
}
"""The parameters of each layer; where there is no attribute of that name, "*" stands before it."""
_BUFFERS: dict[str, tuple[str, ...]] = dict.fromkeys(_BATCH_NORMS, ("running_mean", "running_var"))

_AGREEING = frozenset(("Linear", "LazyLinear", "Bilinear", *_CONVOLUTIONS, *_RECURRENT, *_CELLS))
"""Input and weight must be of one dtype, or the call raises: so the result has the weight's."""
_OF_WEIGHT = frozenset({"Embedding", "EmbeddingBag"})
"""The result has the weight's dtype, whatever autocast says."""
_KEEPING = frozenset(
    {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "Identity", "Flatten"}
    | {"Unflatten", "ReLU", "ReLU6", "LeakyReLU", "ELU", "SELU", "CELU", "GELU", "SiLU", "Tanh", "Sigmoid", "Softsign"}
    | {"Hardtanh", "Hardswish", "Hardsigmoid", "Tanhshrink", "Softshrink", "Hardshrink", "GLU", "Threshold", "RReLU"}
    | {f"{kind}Pool{n}d" for kind in ("Max", "Avg", "AdaptiveAvg") for n in (1, 2, 3)}
    | {f"{kind}Pad{n}d" for kind in ("Zero", "Reflection", "Replication", "Constant", "Circular") for n in (1, 2, 3)}
    | {"PixelShuffle", "PixelUnshuffle", "ChannelShuffle", "Unfold", "Fold", "UpsamplingNearest2d"}
)
"""The result has the input's dtype, in autocast, too."""
_MOVING = frozenset({"Identity", "Flatten", "Unflatten", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle"})
"""Those of them that compute nothing."""
_CONTAINERS = frozenset({"Module", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_OWN = frozenset({"Parameter", "Buffer", "UninitializedParameter", "DataParallel"})


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
    given = dtype_argument(last, arguments)
    if given is None and not arguments.complete:
        dtypes = None
    elif isinstance(given, Dtype):
        dtypes = given.dtypes
    elif given is None or given == NONE:
        dtypes = default_dtypes(ctx)
    else:
        dtypes = None
    tensor = Tensor(dtypes, given.symbol if isinstance(given, Dtype) else None, -1, device=_device(arguments))
    weights = tensor
    if last in _AGREEING or last in _OF_WEIGHT:
        weights = Tensor(tensor.dtypes, tensor.symbol, -1, device=tensor.device, extra=_FRACTIONS)
    for field in WEIGHTS.get(last, ()):
        make_weight(ctx, made, field, weights, plain_tensors.PARAMETER)
    for field in _BUFFERS.get(last, ()):
        make_weight(ctx, made, field, tensor, plain_tensors.BUFFER)
    for field, there in weights_there(last, arguments):
        known = ctx.store.read(made.address, field)
        if there is not True and known is not None:
            ctx.store.write(made.address, field, NONE if there is False else join(known, NONE))
    for key, value in arguments.keywords.items():
        if key not in ("dtype", "device", "bias"):
            ctx.store.write(made.address, key, value)
    if last.endswith("Loss"):
        _weigh(ctx, made, last, arguments)
    if last.startswith("Transformer") and arguments.args:
        ctx.store.write(made.address, "*of", arguments.args[0])


_WEIGHTED_FIRST = frozenset({"CrossEntropyLoss", "NLLLoss", "BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss"})


def _weigh(ctx: Context, made: Ref, last: str, arguments: Arguments) -> None:
    """Give a loss the weights of its classes, which are buffers."""
    given = {field: arguments.keywords[field] for field in ("weight", "pos_weight") if field in arguments.keywords}
    if last in _WEIGHTED_FIRST and arguments.args:
        given["weight"] = arguments.args[0]
    for field, value in given.items():
        weight = plain_tensors.plain(ctx, value)
        if isinstance(weight, Tensor):
            make_weight(ctx, made, field, weight, plain_tensors.BUFFER)


_FRACTIONS: frozenset[tuple[str, object]] = frozenset({("weight", True)})
"""Says of a tensor that it is a weight: nearly all of its elements are between -1 and 1."""


def _device(arguments: Arguments) -> str | None:
    return "cpu" if "device" not in arguments.keywords and arguments.complete else None


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
    if name == "Sequential":
        content: Value | None = None
        if first is not None and isinstance(first, Ref) and len(arguments.args) == 1:
            held = store.read(first.address, CONTENT)
            if first.address.kind in ("collections.OrderedDict", "builtins.dict"):
                content = _values_of(held)
        if content is None:
            content = Tuple(tuple(arguments.args)) if arguments.complete else Many(TOP)
    elif name in ("ModuleDict", "ParameterDict"):
        held = store.read(first.address, CONTENT) if isinstance(first, Ref) else None
        from dtlint.infer.domain.values import Mapping

        content = held if isinstance(held, Mapping) else Mapping() if first is None else Mapping((), TOP)
    else:
        content = Tuple(()) if first is None else ctx.semantics.items(ctx, first, arguments.node)
    store.write(made.address, CONTENT, content)


def _values_of(held: Value | None) -> Value | None:
    from dtlint.infer.domain.values import Mapping

    if isinstance(held, Mapping) and held.rest is None:
        return Tuple(tuple(value for _, value in held.items))
    return Many(TOP)


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
        return _in_sequence(ctx, receiver, arguments)
    given = arguments.get(0, "input")
    first = TOP if given is None else plain_tensors.plain(ctx, given)
    if last == "Identity":
        return first
    weights = [_weight(ctx, receiver, field) for field in WEIGHTS.get(last, ())]
    known = _by_table(ctx, last, weights, first, receiver, arguments)
    if known is not None:
        return known
    return _otherwise(ctx, last, weights, first)


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


def _weight(ctx: Context, receiver: Ref, field: str) -> Value:
    value = ctx.store.read(receiver.address, field)
    return TOP if value is None else plain_tensors.plain(ctx, value)


def _by_table(
    ctx: Context, last: str, weights: Sequence[Value], first: Value, receiver: Ref, arguments: Arguments
) -> Value | None:
    own = [weights[0]] if weights and isinstance(weights[0], Tensor) else []
    if weights and not own:
        return None
    if not arguments.complete or not arguments.args:
        return None
    args = [plain_tensors.plain(ctx, value) for value in arguments.args]
    if isinstance(args[0], Unknown):
        args[0] = Tensor(args[0].dtypes, args[0].symbol)
    if last in ("LSTM", "GRU", "RNN", *_CELLS, "MultiheadAttention"):
        if len(args) > 1 and last != "MultiheadAttention":
            args = args[:1]  # a state has the dtype of the input, or the call raises
        args[0] = _with_dimensions(args[0])
    keywords = {name: plain_tensors.plain(ctx, value) for name, value in arguments.keywords.items()}
    asked = ctx.store.read(receiver.address, "return_indices")
    if asked is not None and last.endswith(("Pool1d", "Pool2d", "Pool3d")):
        keywords["return_indices"] = asked
    reduction = ctx.store.read(receiver.address, "reduction")
    weighed = {field: ctx.store.read(receiver.address, field) for field in ("weight", "pos_weight")}
    if last in ("CrossEntropyLoss", "NLLLoss") and isinstance(weighed["weight"], Ref):
        keywords["weight"] = plain_tensors.plain(ctx, weighed["weight"])
    if reduction is not None and last.endswith("Loss"):
        result = ask(ctx, f"torch.nn.{last}", [*own, *args], keywords)
        if isinstance(result, Tensor) and reduction != Const("mean") and reduction != Const("sum"):
            return Tensor(result.dtypes, result.symbol, None)
        return result
    result = ask(ctx, f"torch.nn.{last}", [*own, *args], keywords)
    if result is None or isinstance(result, Unknown):
        return None
    if isinstance(result, Tensor) and result.dtypes is None and result.symbol is None:
        return None
    return result


def _with_dimensions(value: Value) -> Value:
    if isinstance(value, Tensor) and value.rank is None:
        return Tensor(value.dtypes, value.symbol, -1, value.range, value.device)
    return value


def _otherwise(ctx: Context, last: str, weights: Sequence[Value], first: Value) -> Value:
    """What is known without the table."""
    region = ctx.ambient("region")
    outside = region == NONE or (isinstance(region, Region) and region.enabled is False)
    weight = weights[0] if weights else None
    rank = first.rank if isinstance(first, Tensor) else None
    if last in _OF_WEIGHT and isinstance(weight, Tensor):
        return Tensor(weight.dtypes, weight.symbol, -1)
    if last in _AGREEING and isinstance(weight, Tensor):
        result = _agreed(weight, first, region, outside)
        if last in _RECURRENT:
            if not outside:
                return TOP
            state: Value = Tuple((result, result)) if last == "LSTM" else result
            return Tuple((result, state))
        if last in _CELLS:
            return Tuple((result, result)) if last == "LSTMCell" else result
        return Tensor(result.dtypes, result.symbol, rank if rank is not None else -1)
    symbol = first.symbol if isinstance(first, (Tensor, Unknown)) else None
    if last in (*_NORMS, *_BATCH_NORMS) and symbol is not None and (outside or region == TOP):
        # of the input's dtype, or it raises
        return Tensor(None, replace(symbol, outside=symbol.outside or region == TOP), -1)
    if last in _KEEPING and isinstance(first, Tensor):
        return Tensor(
            first.dtypes, _kept(symbol, last, region), None if last in ("Flatten", "Unflatten") else first.rank
        )
    if last in _KEEPING and isinstance(first, Unknown):
        return Unknown(first.dtypes, _kept(symbol, last, region))
    if last.endswith("Loss"):
        return Tensor(None, None, None)
    return TOP if not isinstance(first, Tensor) else Tensor() if last in WEIGHTS else TOP


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
