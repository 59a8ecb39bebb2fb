"""diffusers (0.14 to 0.36): models that are loaded have floating weights of one dtype, and pipelines hold models.

As https://huggingface.co/docs/diffusers/api/models/overview has it: `ModelMixin.from_pretrained` gives a model in float32, or in
`torch_dtype`. Its layers are those of a configuration that is not in view, and one weight stands for all of them.
`DiffusionPipeline.from_pretrained` takes the models that it is given as they are, and `to` casts each of them in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, Dtype, Many, ProjectClass, Ref, Tensor, Tuple, Value, choices
from dtlint.infer.models import training
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.module_trees import is_module, weights_within
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import MODELS, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_PIPELINES = ("diffusers.pipelines.pipeline_utils.DiffusionPipeline", "diffusers.pipeline_utils.DiffusionPipeline")


def _made(ctx: Context, arguments: Arguments) -> Ref | None:
    """A new object of the class, of which `__init__` is not seen; None where the class is not known."""
    cls = arguments.args[0]
    if not isinstance(cls, ProjectClass) or arguments.keywords.get("output_loading_info") not in (None, Const(False)):
        return None
    made = ctx.allocate(arguments.node, cls)
    ctx.store.overwrite(made.address, ANYTHING, Const(True))
    return made


@model(
    "diffusers.models.modeling_utils.ModelMixin.from_pretrained", "diffusers.modeling_utils.ModelMixin.from_pretrained"
)
def _load_model(ctx: Context, arguments: Arguments) -> Value:
    made = _made(ctx, arguments)
    if made is None or not is_module(made):
        return TOP
    weight = ctx.store.address(made.address.path, (made.address, "weights"), PARAMETER)
    for _ in range(2):  # it stands for several
        ctx.store.allocate(weight, Tensor(_loaded_as(ctx, arguments)))
    ctx.store.write(made.address, "*weights", Ref(weight))
    return made


def _loaded_as(ctx: Context, arguments: Arguments) -> frozenset[str] | None:
    cls, given = arguments.args[0], arguments.keywords.get("torch_dtype", NONE)
    if given == NONE:
        return frozenset({"float32"}) if arguments.complete else None
    kept = ctx.semantics.attribute(ctx, cls, "_keep_in_fp32_modules", arguments.node)  # float32 in what is half else
    dtype = dtype_of(given)
    return None if dtype is None or kept not in (None, NONE) else dtype.dtypes


@model("diffusers.training_utils.cast_training_params")
def _cast_trained(ctx: Context, arguments: Arguments) -> Value:
    """What is trained of a model, or of each in a list, is cast: to float32 where nothing else is given."""
    given, wanted = arguments.get(0, "model") or TOP, arguments.get(1, "dtype") or Const("float32")
    asked = Dtype(frozenset({"float32"})) if wanted == Const("float32") else dtype_of(wanted)
    models: list[Value] = []
    for one in choices(given):
        held = Tuple((one,)) if is_module(one) else ctx.semantics.items(ctx, one, arguments.node)
        models += held.items if isinstance(held, Tuple) else [held.item] if isinstance(held, Many) else []
    for weight in (each for one in models for each in weights_within(ctx, one)):
        if weight.kind == PARAMETER and not training.is_frozen(ctx, weight):
            ctx.store.write(weight, CONTENT, Tensor(None if asked is None else asked.dtypes))
    return NONE


@model(*(f"{one}.from_pretrained" for one in _PIPELINES))
def _load_pipeline(ctx: Context, arguments: Arguments) -> Value:
    made = _made(ctx, arguments)
    if made is None:
        return TOP
    for name, value in arguments.keywords.items():
        if all(map(is_module, choices(value))):
            ctx.store.write(made.address, name, value)
    return made


@model(*(f"{one}.to" for one in _PIPELINES))
def _cast_pipeline(ctx: Context, arguments: Arguments) -> Value:
    pipeline = arguments.args[0]
    # Early versions say torch_dtype.
    keywords = {name.removeprefix("torch_"): value for name, value in arguments.keywords.items()}
    keywords.pop("silence_dtype_warnings", None)
    for one in choices(pipeline):
        for field in list(ctx.store.fields(one.address)) if isinstance(one, Ref) else ():
            held = ctx.store.read(one.address, field) if isinstance(one, Ref) else None
            if held is not None and all(map(is_module, choices(held))):
                given = type(arguments)([held, *arguments.args[1:]], keywords, arguments.complete, arguments.node)
                MODELS["torch.nn.Module.to"](ctx, given)
    return pipeline
