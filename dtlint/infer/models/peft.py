"""peft (0.6 to 0.19): adapters are new weights in a model, trained while those that it has stay as they are.

As `inject_adapter_in_model` of https://huggingface.co/docs/peft/developer_guides/low_level_api and
`BaseTunerLayer._move_adapter_to_device_of_base_layer` have it, each adapter is put in place with the floating dtype of the layer
that it adapts, and the weights of the model are frozen. What `get_peft_model` gives casts adapters to float32 besides, or does
not, by its version and its arguments. It runs the model that it is given, whose adapted layers give the dtype that they gave
before (`Linear.forward` of peft.tuners.lora: `result.to(torch_result_dtype)`), so that it is that model here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Const,
    External,
    Mapping,
    Partial,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.models import training
from dtlint.infer.models.module_trees import KEPT, WRAPPED, is_module, weights_within
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Address

__all__ = ["CAST_SINCE_0_11", "adapt"]

CAST_SINCE_0_11 = "*cast since 0.11"
"""The field of a model that is True where its adapters are float16 in peft before 0.11, and float32 in later ones."""
_FLOAT16 = frozenset({"float16"})
_PREPARED = "peft.PromptLearning.prepared"
_PROMPTS = "peft.config.PromptLearningConfig"
_OF_BASE = ("merge_and_unload", "unload", "get_base_model")
"""Methods that a model gets, and that give it back."""
_SILENT = ("print_trainable_parameters", "set_adapter", "delete_adapter")
"""Those that change no dtype."""
_ADAPTERS = "*adapters"
"""The field of a model that holds the one weight that stands for all adapters in it."""


@model("peft.inject_adapter_in_model", "peft.mapping.inject_adapter_in_model")
def _inject(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(1, "model") or TOP
    for one in choices(given):
        if isinstance(one, Ref) and is_module(one):
            adapt(ctx, one, as_base=True)
    return given


@model("peft.get_peft_model", "peft.mapping.get_peft_model", "peft.mapping_func.get_peft_model")
def _wrap(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.get(0, "model") or TOP
    cast = arguments.get(3, "autocast_adapter_dtype")
    changes_inputs = _changes_inputs(arguments.get(1, "peft_config") or TOP)
    for one in choices(given):
        if isinstance(one, Ref) and is_module(one):
            is_half = any(_dtypes(ctx, weight) == _FLOAT16 for weight in weights_within(ctx, one))
            adapt(ctx, one, as_base=cast == Const(False) or ctx.store.read(one.address, _ADAPTERS) is not None)
            ctx.store.write(one.address, CAST_SINCE_0_11, Const(is_half and cast is None and arguments.complete))
            ctx.store.write(one.address, WRAPPED, Const("peft.PeftModel"))
            if changes_inputs:
                ctx.modules.opened.add("transformers.cache_utils")  # a learnt prefix is put there
                given_first = type(arguments)(
                    [one, External(_PREPARED)], {"with_kwargs": Const(True)}, True, arguments.node
                )
                MODELS["torch.nn.Module.register_forward_pre_hook"](ctx, given_first)
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    return given if is_module(given) else TOP


def _changes_inputs(config: Value) -> bool:
    """May what is asked for give the model other inputs than the program does, as prompts that are learnt?"""
    kinds = [one.address.kind for one in choices(config) if isinstance(one, Ref)]
    orders = [one.definition.order for one in kinds if isinstance(one, ProjectClass)]
    return any(getattr(one, "name", "") == _PROMPTS for order in orders for one in order)


@model(_PREPARED)
def _prepared(ctx: Context, arguments: Arguments) -> Value:
    """What a model with learnt prompts is run on: embeddings of them and of the tokens in place of these, and a mask that is
    float32, as the one of the prompts. The model may be run without them, too."""
    base, given, held = arguments.args
    named = ctx.store.read(held.address, CONTENT) if isinstance(held, Ref) else None
    keywords = dict(named.items) if isinstance(named, Mapping) else {}
    for name in ("input_ids", "token_type_ids", "position_ids"):
        if Const(name) in keywords:
            keywords[Const(name)] = join(keywords[Const(name)], NONE)
    mask = keywords.get(Const("attention_mask"))
    if mask not in (None, NONE):
        keywords[Const("attention_mask")] = join(mask or TOP, Tensor(frozenset({"float32"}), None, 2))
    dtypes = [_dtypes(ctx, weight) for weight in weights_within(ctx, base) if weight.kind == PARAMETER]
    floats = None if None in dtypes else frozenset[str]().union(*(one or () for one in dtypes)) & FLOATING
    keywords[Const("inputs_embeds")] = join(Tensor(floats or None, None, 3), keywords.get(Const("inputs_embeds"), NONE))
    positional = given.items if isinstance(given, Tuple) else ()
    args = Tuple(tuple(join(one, NONE) if place == 0 else TOP for place, one in enumerate(positional)))
    return Tuple((args, ctx.allocate((arguments.node, "prepared"), "builtins.dict", Mapping(tuple(keywords.items())))))


@model(*(f"peft.PeftModel.{name}" for name in _OF_BASE))
def _base(ctx: Context, arguments: Arguments) -> Value:
    return arguments.args[0]


@model("peft.PeftModel.disable_adapter")
def _disabled(ctx: Context, arguments: Arguments) -> Value:
    """A context in which the layers are as they were."""
    return Partial(External("contextlib.nullcontext"))


@model(*(f"peft.PeftModel.{name}" for name in _SILENT))
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NONE


@model("peft.prepare_model_for_kbit_training", "peft.prepare_model_for_int8_training")
def _prepare(ctx: Context, arguments: Arguments) -> Value:
    """Weights are frozen, and those that are no integers are float32 then, unless they are quantised."""
    given = arguments.get(0, "model") or TOP
    for one in choices(given):
        if isinstance(one, Ref) and is_module(one):
            weights = list(weights_within(ctx, one))
            training.frozen(ctx, weights, True)
            for weight in weights:
                ctx.store.overwrite(weight, CONTENT, Tensor())
    return given


def _dtypes(ctx: Context, weight: Address) -> frozenset[str] | None:
    held = ctx.store.read(weight, CONTENT)
    return held.dtypes if isinstance(held, Tensor) else None


def adapt(ctx: Context, base: Ref, *, as_base: bool) -> None:
    """Put adapters into a model, and freeze what it has."""
    weights = list(dict.fromkeys(weights_within(ctx, base)))
    kept = ctx.store.read(base.address, KEPT)
    adapted = [one for one in weights if one.kind == PARAMETER and kept != Ref(one)]
    held = [ctx.store.read(one, CONTENT) for one in adapted]
    alike = join_all(Tensor(one.dtypes) for one in held if isinstance(one, Tensor)) if as_base else None
    known = alike.dtypes if isinstance(alike, Tensor) else None
    adapters = ctx.store.address(ctx.frame.path, (base.address, "adapters"), PARAMETER)
    for _ in range(2):  # it stands for several
        ctx.store.allocate(adapters, Tensor(known if known is not None and known <= FLOATING else None))
    ctx.store.write(base.address, _ADAPTERS, Ref(adapters))
    training.frozen(ctx, weights, True)
    if known == frozenset({"float16"}):
        training.became_float16(ctx, [adapters])
