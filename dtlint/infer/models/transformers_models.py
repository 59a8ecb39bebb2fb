"""Models that transformers (4.20 to 5) loads: modules with floating weights, of which no more is known than their dtypes.

As https://huggingface.co/docs/transformers/main_classes/model has it: `from_pretrained` of any model class gives a module in
`dtype`, by its older name `torch_dtype`; in float32 or as the checkpoint has it where that is not given, by the release. Some
models keep parts in float32 that are loaded in float16. Its model classes are called after what they are: `BertModel`,
`LlamaForCausalLM`. What is quantised is not told of. Models of diffusers, where it is not read as source, are loaded alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NONE, TOP, Const, Device, Dtype, Ref, Tensor, Value
from dtlint.infer.models import peft, training
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.module_trees import KEPT, LOADED, weights_within
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["AS_STORED", "loader"]

_DIFFUSERS = "diffusers.ModelMixin.from_pretrained"
_OF_DIFFUSERS = re.compile(r"diffusers\.(?:\w+\.)*(?:\w+Model|Autoencoder\w+)\.from_pretrained")
_CLASS = re.compile(r"transformers\.(?:\w+\.)*(?:\w*Model(?!\w*Config)\w*|\w+For[A-Z]\w*)\.from_pretrained")
_HALVES_AND_FLOAT = frozenset({"float16", "bfloat16", "float32"})
_FLOAT16 = frozenset({"float16"})
_NAMED = {"float16": "float16", "half": "float16", "bfloat16": "bfloat16", "float32": "float32", "float": "float32"}
"""The dtypes that may be asked for by name."""
AS_STORED = "*as stored"
"""The field of a model that was loaded without a word on its dtype."""
_QUANTISED = ("quantization_config", "load_in_8bit", "load_in_4bit")


def loader(name: str) -> str:
    """The name under which the loading of a model is modelled; others as they are."""
    if _OF_DIFFUSERS.fullmatch(name):
        return _DIFFUSERS
    return f"{LOADED}.from_pretrained" if _CLASS.fullmatch(name) else name


@model(_DIFFUSERS)
def _load_of_diffusers(ctx: Context, arguments: Arguments) -> Value:
    """In float32 where no dtype is given. Some keep parts in float32 that are loaded in a half dtype."""
    keywords = {"dtype": Const("float32"), **arguments.keywords}
    if "torch_dtype" in arguments.keywords:
        del keywords["dtype"]
    return _load(ctx, type(arguments)(arguments.args, keywords, arguments.complete, arguments.node))


@model(f"{LOADED}.from_pretrained")
def _load(ctx: Context, arguments: Arguments) -> Value:
    keywords = arguments.keywords
    asked = [keywords.get(one, NONE) for one in (*_QUANTISED, "output_loading_info")]
    if not arguments.complete or any(one not in (NONE, Const(False)) for one in asked):
        ctx.modules.escape(ctx, [*arguments.args, *keywords.values()])
        return TOP
    made = ctx.allocate(arguments.node, LOADED)
    ctx.store.overwrite(made.address, ANYTHING, Const(True))
    given = keywords.get("dtype") or keywords.get("torch_dtype") or NONE
    dtypes = _loaded_as(given)
    _give_weights(ctx, made, "*weights", dtypes)
    if dtypes == _FLOAT16:
        training.became_float16(ctx, weights_within(ctx, made))
        _give_weights(ctx, made, KEPT, frozenset({"float16", "float32"}))
    if given == NONE:
        ctx.store.write(made.address, AS_STORED, Const(True))
    return made


def _give_weights(ctx: Context, made: Ref, name: str, dtypes: frozenset[str] | None) -> None:
    """Give a model weights, of which one stands for several."""
    weight = ctx.store.address(made.address.path, (made.address, name), PARAMETER)
    for _ in range(2):
        ctx.store.allocate(weight, Tensor(dtypes))
    ctx.store.write(made.address, name, Ref(weight))


def _loaded_as(given: Value) -> frozenset[str] | None:
    """What most weights have. What is loaded in float16 may keep parts in float32."""
    if given in (NONE, Const("auto")):
        return _HALVES_AND_FLOAT
    named = _NAMED.get(str(given.value).removeprefix("torch.")) if isinstance(given, Const) else None
    if named is not None:
        return frozenset({named})
    dtype = dtype_of(given)
    return None if dtype is None else dtype.dtypes


@model(f"{LOADED}.add_adapter")
def _add_adapter(ctx: Context, arguments: Arguments) -> Value:
    if isinstance(arguments.args[0], Ref):
        peft.adapt(ctx, arguments.args[0], as_base=True)
    return NONE


@attribute(f"{LOADED}.dtype")
def _dtype(ctx: Context, value: Value) -> Value:
    """That of its first floating weight."""
    held = [ctx.store.read(one, CONTENT) or Tensor() for one in weights_within(ctx, value)]
    first = join_all(held)
    return Dtype(first.dtypes) if isinstance(first, Tensor) and first.dtypes else TOP


@attribute(f"{LOADED}.device")
def _device(ctx: Context, value: Value) -> Value:
    return Device(None)
