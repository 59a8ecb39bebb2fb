"""What a Trainer is given to train: events that tell where the precision it asks for meets weights that do not go with it.

As https://huggingface.co/docs/transformers/main_classes/trainer has it: with `fp16=True` the Trainer steps its optimizer with a
GradScaler, with `bf16=True` it runs the model under autocast alone; both keep the weights as they are. DeepSpeed and FSDP, which
`deepspeed=` and `fsdp=` ask for, keep weights of their own. The trainers and configurations of trl are built on these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, Ref, Tensor, Tuple, Value
from dtlint.infer.models import training
from dtlint.infer.models.instance_dicts import ANYTHING
from dtlint.infer.models.module_trees import is_module, weights_within
from dtlint.infer.models.peft import CAST_SINCE_0_11
from dtlint.infer.models.plain_tensors import PARAMETER
from dtlint.infer.models.registry import model
from dtlint.infer.models.transformers_models import AS_STORED
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context
    from dtlint.infer.domain.values import Address

__all__ = ["half_under_scaler"]

_TRL = ("SFT", "DPO", "KTO", "ORPO", "CPO", "BCO", "Reward", "GRPO", "RLOO", "PRM", "GKD", "OnlineDPO", "NashMD", "XPO")
_TRAINERS = ("transformers.Trainer", "transformers.Seq2SeqTrainer", *(f"trl.{one}Trainer" for one in _TRL))
_ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
_CONFIGS = tuple(f"trl.{one}Config" for one in _TRL)
_USUAL: dict[str, Value] = {"fp16": Const(False), "bf16": Const(False), "deepspeed": NONE, "fsdp": NONE}
"""What the arguments are that decide about weights where they are not given; trl's have `bf16` by their release."""
_GIVEN = "*given"
"""The field of a trainer that holds its model and its arguments, where it is not told yet that it trains."""
_NOT_SHARDED = (NONE, Const(""))
_TRUE = Const(True)


def _register(name: str) -> None:
    @model(name)
    def make(ctx: Context, arguments: Arguments) -> Value:
        made = ctx.allocate(arguments.node, name)
        ctx.store.overwrite(made.address, ANYTHING, _TRUE)
        if name in _TRAINERS:
            _judge(ctx, arguments, made if _is_told(name, arguments) else None)
        else:
            _keep(ctx, made, arguments, is_trl=name in _CONFIGS)
        return made

    if name in _TRAINERS:

        @model(f"{name}.__init__")
        def initialise(ctx: Context, arguments: Arguments) -> Value:
            made = arguments.args[0]
            _judge(
                ctx, arguments.without_first(), made if isinstance(made, Ref) and _is_told(name, arguments) else None
            )
            return NONE

        @model(f"{name}.train")
        def train(ctx: Context, arguments: Arguments) -> Value:
            made = arguments.args[0]
            held = ctx.store.read(made.address, _GIVEN) if isinstance(made, Ref) else None
            if isinstance(held, Tuple) and isinstance(held.items[0], Ref) and isinstance(held.items[1], Ref):
                _trains(ctx, held.items[0], held.items[1])
            return TOP


for _name in (*_TRAINERS, *_ARGUMENTS, *_CONFIGS):
    _register(_name)


def _keep(ctx: Context, made: Ref, arguments: Arguments, *, is_trl: bool) -> None:
    for name, usual in _USUAL.items():
        is_known = arguments.complete and not (is_trl and name == "bf16")
        ctx.store.write(made.address, name, arguments.keywords.get(name, usual if is_known else TOP))


def _is_told(name: str, arguments: Arguments) -> bool:
    """Is it told what is trained? What is spread may bring trl's trainers a `peft_config`."""
    return arguments.complete or name.startswith("transformers.")


def _judge(ctx: Context, arguments: Arguments, made: Ref | None) -> None:
    """A trainer is given its model and its arguments. Where no dataset is in view, it may evaluate: `train` tells."""
    given, settings = arguments.get(0, "model"), arguments.get(1, "args")
    ctx.modules.escape(ctx, [*arguments.args, *arguments.keywords.values()])
    if not isinstance(given, Ref) or not is_module(given) or not isinstance(settings, Ref):
        return
    if arguments.keywords.get("peft_config", NONE) != NONE:
        return
    if arguments.complete and arguments.get(3, "train_dataset") not in (None, NONE):
        _trains(ctx, given, settings)
    elif made is not None:
        ctx.store.write(made.address, _GIVEN, Tuple((given, settings)))


def _trains(ctx: Context, given: Ref, settings: Ref) -> None:
    """A model is trained under the arguments of a trainer."""
    fp16, bf16, deepspeed, fsdp = (ctx.store.read(settings.address, name) for name in _USUAL)
    if deepspeed not in _NOT_SHARDED or fsdp not in _NOT_SHARDED:
        return
    if fp16 == _TRUE:
        half_under_scaler(ctx, given)
        if ctx.store.read(given.address, CAST_SINCE_0_11) == _TRUE:
            ctx.event("adapters of an older peft under a scaler", given)
    dtypes = [_dtypes(ctx, one) for one in _trained(ctx, given)]
    all_bfloat16 = bool(dtypes) and all(one == frozenset({"bfloat16"}) for one in dtypes)
    if all_bfloat16 and fp16 == _TRUE:
        ctx.event("bfloat16 weights under a scaler", given)
    elif all_bfloat16:
        ctx.event("bfloat16 weights trained", given)
    elif frozenset({"float16"}) in dtypes and fp16 == Const(False):
        ctx.event("float16 weights trained unscaled", Const(bf16 == _TRUE))
    if ctx.store.read(given.address, AS_STORED) == _TRUE and ctx.store.read(given.address, CAST_SINCE_0_11) is None:
        held = [_dtypes(ctx, one) for one in _trained(ctx, given)]
        if held and all(one is not None and "bfloat16" in one for one in held):
            ctx.event("weights trained as stored", given, fp16 or TOP)


def half_under_scaler(ctx: Context, given: Ref) -> None:
    """A module is trained with a GradScaler that the program does not name."""
    if not any(True for _ in weights_within(ctx, given)):
        if ctx.store.read(given.address, training.CAST_UNSEEN) == Const("float16"):
            ctx.event("float16 weights under a scaler", given)
        return
    halves = [one for one in _trained(ctx, given) if _dtypes(ctx, one) == frozenset({"float16"})]
    if halves:
        since = [ctx.store.read(one, training.SINCE) for one in halves]
        ctx.event("float16 weights under a scaler", given, *dict.fromkeys(one for one in since if isinstance(one, Ref)))


def _trained(ctx: Context, given: Ref) -> list[Address]:
    weights = dict.fromkeys(weights_within(ctx, given))
    return [one for one in weights if one.kind == PARAMETER and not training.is_frozen(ctx, one)]


def _dtypes(ctx: Context, weight: Address) -> frozenset[str] | None:
    held = ctx.store.read(weight, CONTENT)
    return held.dtypes if isinstance(held, Tensor) else None
