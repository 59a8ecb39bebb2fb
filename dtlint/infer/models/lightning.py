"""Lightning 2: `Trainer.fit` and its likes run the hooks and the steps of a LightningModule under the trainer's precision.

As https://lightning.ai/docs/pytorch/stable/common/precision.html has it: `16-mixed` and `bf16-mixed` are autocast around each
step, `16-true`, `bf16-true` and `64-true` cast the weights and the floating tensors of each batch, and make theirs the default
dtype. On the CPU `16-mixed` is `bf16-mixed`. Hooks are in the order of the documentation of LightningModule.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Dtype,
    Function,
    Mapping,
    Number,
    Ref,
    Region,
    Tuple,
    Value,
)
from dtlint.infer.models import drivers
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.models.trained_models import half_under_scaler
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Arguments, Context

__all__ = ["TRUE_PRECISIONS"]

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")
_LIBRARY = ("lightning.", "pytorch_lightning.")
_TRAINER = "trainer.trainer.Trainer"
_INDEX = Number(Category.INTEGER)


def _named(*names: str) -> tuple[str, ...]:
    return tuple(f"{package}.{name}" for package in _PACKAGES for name in names)


# -- the trainer ---------------------------------------------------------------------------------------------------------


@model("lightning.Trainer", "lightning.pytorch.Trainer", "pytorch_lightning.Trainer")
def _make(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, f"{_PACKAGES[0]}.{_TRAINER}")
    _initialise(ctx, arguments.before(made))
    return made


@model(*_named(f"{_TRAINER}.__init__"))
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    trainer = arguments.args[0]
    if isinstance(trainer, Ref):
        for name in ("precision", "accelerator"):
            given = arguments.keywords.get(name, NONE if arguments.complete else TOP)
            ctx.store.write(trainer.address, f"*{name}", given)
    return NONE


@dataclass(frozen=True)
class _Precision:
    """What a trainer's `precision=` does: the region around a step, and the dtype of weights and batches."""

    region: Value
    dtype: str | None


def _device(ctx: Context, trainer: Value) -> str | None:
    """Where a trainer moves its module and each batch."""
    where = ctx.store.read(trainer.address, "*accelerator") if isinstance(trainer, Ref) else None
    return _DEVICES.get(str(where.value)) if isinstance(where, Const) else None


def _precision(ctx: Context, trainer: Value) -> _Precision:
    if not isinstance(trainer, Ref):
        return _Precision(Region(None, None, None), None)
    given = ctx.store.read(trainer.address, "*precision") or TOP
    if not isinstance(given, Const):
        return _Precision(Region(None, None, None), None)
    name = str(given.value).removesuffix("-mixed")
    if given.value is None or name in ("32", "32-true"):
        return _Precision(ctx.ambient("region"), None)
    if name in TRUE_PRECISIONS:
        return _Precision(ctx.ambient("region"), TRUE_PRECISIONS[name])
    if name not in ("16", "bf16"):
        return _Precision(Region(None, None, None), None)
    device = _device(ctx, trainer)
    if name == "bf16" or device == "cpu":
        return _Precision(Region(device, "bfloat16", True), None)
    return _Precision(Region(device, "float16" if device == "cuda" else None, True), None)


TRUE_PRECISIONS = {"16-true": "float16", "bf16-true": "bfloat16", "64-true": "float64", "64": "float64"}
"""The dtype of weights and batches under each `precision=` that is not a mixed one, of a Trainer or a Fabric."""
_DEVICES = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "mps": "mps"}


class _Run:
    """One run of a trainer over a module.

    Args:
        trainer, module, data: the trainer, the LightningModule, and the DataModule or what stands for none.
        node: the call that started it.
    """

    def __init__(self, ctx: Context, trainer: Value, module: Value, data: Value, node: object) -> None:
        self.ctx, self.trainer, self.module, self.data, self.node = ctx, trainer, module, data, node
        self.precision, self.device = _precision(ctx, trainer), _device(ctx, trainer)

    def begin(self, stage: str) -> None:
        """Everything before the first batch."""
        ctx = self.ctx
        for owner in (self.data, self.module):
            if isinstance(owner, Ref):
                ctx.store.write(owner.address, "_trainer", self.trainer)
                ctx.store.write(owner.address, "trainer", self.trainer) if owner is self.data else None
            self.hook(owner, "prepare_data")
            self.hook(owner, "setup", Const(stage))
        self.hook(self.module, "configure_model")
        cast_module(ctx, self.module, None, self.device, moves=True)
        if stage == "fit" and self._is_scaled() and isinstance(self.module, Ref):
            half_under_scaler(ctx, self.module)
        if stage == "fit" and self.precision.dtype == "float16":
            ctx.event("float16 weights trained unscaled", Const(False))
        if self.precision.dtype is not None:
            cast_module(ctx, self.module, Dtype(frozenset({self.precision.dtype})), None)

    def _is_scaled(self) -> bool:
        """Is the step in float16, with a GradScaler? Not on the CPU."""
        region = self.precision.region
        halves = isinstance(region, Region) and region.enabled is True and region.dtype in ("float16", None)
        return halves and isinstance(region, Region) and region.device != "cpu"

    def hook(self, owner: Value, name: str, *args: Value) -> Value | None:
        """Call a hook that the program defines; those of the library do nothing."""
        found = drivers.method_of(self.ctx, owner, name, self.node, _LIBRARY)
        return drivers.call_back(self.ctx, found, args, self.node)

    def loader(self, given: Value | None, name: str) -> Value | None:
        """The loader that is given, or made by the DataModule or the module."""
        if given is not None and given != NONE:
            return given
        for owner in (self.data, self.module):
            made = self.hook(owner, name)
            if made is not None:
                return made
        return None

    def step(self, name: str, loader: Value | None) -> None:
        """Run a step for any number of batches, with the hooks around it."""
        if loader is None:
            return
        steps = drivers.method_of(self.ctx, self.module, name, self.node, _LIBRARY)
        if steps is None and name == "predict_step":
            steps = drivers.method_of(self.ctx, self.module, "forward", self.node, _LIBRARY)
        if steps is None:
            return
        prefix = {"training_step": "train", "validation_step": "validation"}.get(name, name.removesuffix("_step"))
        self.hook(self.module, f"on_{prefix}_epoch_start")
        for one in _each_loader(self.ctx, loader, name):

            def once(one: Callable[[], Value] = one) -> None:
                batch = self.batch(one())
                self.hook(self.module, f"on_{prefix}_batch_start", batch, _INDEX)
                with ExitStack() as stack:
                    stack.enter_context(drivers.ambient(self.ctx, "region", self.precision.region))
                    if self.precision.dtype is not None:
                        default = Const(self.precision.dtype)
                        stack.enter_context(drivers.ambient(self.ctx, "default dtype", default))
                    result = drivers.call_back(self.ctx, steps, (batch, _INDEX, _INDEX), self.node)
                self.hook(self.module, f"on_{prefix}_batch_end", result or TOP, batch, _INDEX)

            drivers.repeated(self.ctx, once)
        self.hook(self.module, f"on_{prefix}_epoch_end")

    def batch(self, batch: Value) -> Value:
        """A batch as a step is given it."""
        if self.precision.dtype is not None:
            batch = drivers.in_dtype(self.ctx, batch, self.precision.dtype, (self.node, "batch"))
        for name in ("on_before_batch_transfer", "transfer_batch_to_device", "on_after_batch_transfer"):
            args = (batch, TOP, _INDEX) if name.startswith("transfer") else (batch, _INDEX)
            for owner in (self.data, self.module):
                made = self.hook(owner, name, *args)
                batch = batch if made is None else made
        return drivers.on_device(self.ctx, batch, self.device, (self.node, "batch"))


def _each_loader(ctx: Context, loader: Value, step: str) -> list[Callable[[], Value]]:
    """What gives a batch, one for each loader. Several loaders of a training give their batches together."""

    def batch_of(one: Value) -> Callable[[], Value]:
        return lambda: drivers.item_of(ctx, one, loader)

    content = ctx.store.read(loader.address, CONTENT) if isinstance(loader, Ref) else loader
    if not isinstance(content, (Tuple, Mapping)):
        return [batch_of(loader)]
    if step == "training_step":
        return [lambda: TOP]
    return [
        batch_of(one) for one in (content.items if isinstance(content, Tuple) else (one for _, one in content.items))
    ]


def _run_of(ctx: Context, arguments: Arguments, data: Value | None) -> _Run | None:
    module = arguments.get(1, "model")
    return None if module is None else _Run(ctx, arguments.args[0], module, data or NONE, arguments.node)


def _is_data_module(ctx: Context, value: Value | None, arguments: Arguments) -> bool:
    if not isinstance(value, Ref) or isinstance(value.address.kind, str):
        return False
    return isinstance(ctx.semantics.attribute(ctx, value, "prepare_data", arguments.node), Function)


@model(*_named(f"{_TRAINER}.fit"))
def _fit(ctx: Context, arguments: Arguments) -> Value:
    train, val = arguments.get(2, "train_dataloaders"), arguments.get(3, "val_dataloaders")
    data = arguments.get(4, "datamodule")
    if _is_data_module(ctx, train, arguments):
        train, data = None, train
    run = _run_of(ctx, arguments, data)
    if run is None:
        return NONE
    run.begin("fit")
    validation = run.loader(val, "val_dataloader")
    optimizers = run.hook(run.module, "configure_optimizers")
    if isinstance(run.module, Ref):
        ctx.store.write(run.module.address, "*optimizers", optimizers or TOP)
    run.hook(run.module, "on_fit_start")
    run.step("validation_step", validation)
    run.hook(run.module, "on_train_start")
    run.step("training_step", run.loader(train, "train_dataloader"))
    run.step("validation_step", validation)
    run.hook(run.module, "on_train_end")
    run.hook(run.module, "on_fit_end")
    return NONE


def _evaluating(method: str, stage: str, step: str, loader: str) -> None:
    @model(*_named(f"{_TRAINER}.{method}"))
    def evaluate(ctx: Context, arguments: Arguments) -> Value:
        given, data = arguments.get(2, "dataloaders"), arguments.keywords.get("datamodule")
        if _is_data_module(ctx, given, arguments):
            given, data = None, given
        run = _run_of(ctx, arguments, data)
        if run is not None:
            run.begin(stage)
            run.step(step, run.loader(given, loader))
        return TOP


for _method, _stage, _step, _loader in (
    ("validate", "validate", "validation_step", "val_dataloader"),
    ("test", "test", "test_step", "test_dataloader"),
    ("predict", "predict", "predict_step", "predict_dataloader"),
):
    _evaluating(_method, _stage, _step, _loader)


# -- the module ----------------------------------------------------------------------------------------------------------

_MODULE = "core.module.LightningModule"
_PUBLIC = ("lightning.LightningModule", "lightning.pytorch.LightningModule", "pytorch_lightning.LightningModule")
"""The names under which it is imported, where it is not installed."""
_NOTHING = ("log", "log_dict", "print", "manual_backward", "clip_gradients")


@model(*_named(*(f"{_MODULE}.{name}" for name in _NOTHING)), *(f"{one}.{name}" for one in _PUBLIC for name in _NOTHING))
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    ctx.modules.opened.update(("torchmetrics.metric", "lightning_utilities"))  # Lightning calls them for itself, too
    return NONE


@model(*_named(f"{_MODULE}.optimizers"), *(f"{one}.optimizers" for one in _PUBLIC))
def _optimizers(ctx: Context, arguments: Arguments) -> Value:
    """The optimizer that was configured, or all of them."""
    owner = arguments.args[0]
    held = ctx.store.read(owner.address, "*optimizers") if isinstance(owner, Ref) else None
    content = ctx.store.read(held.address, CONTENT) if isinstance(held, Ref) else held
    if isinstance(content, Tuple) and len(content.items) == 1:
        return content.items[0]
    if isinstance(held, Ref) and content is None:
        return held
    return TOP


@attribute(*(f"{one}.hparams" for one in _PUBLIC))
def _hparams(ctx: Context, value: Value) -> Value:
    return (ctx.store.read(value.address, "_hparams") or TOP) if isinstance(value, Ref) else TOP


@model(
    *_named("core.mixins.hparams_mixin.HyperparametersMixin.save_hyperparameters"),
    *(f"{one}.save_hyperparameters" for one in _PUBLIC),
)
def _save_hyperparameters(ctx: Context, arguments: Arguments) -> Value:
    """Keep the arguments of the running `__init__` in `self.hparams`, as attributes and as items."""
    owner, function = arguments.args[0], ctx.frame.function
    if not isinstance(owner, Ref) or function is None or ctx.frame.address.kind != "frame":
        return NONE
    wanted = [one.value for one in arguments.args[1:] if isinstance(one, Const)]
    ignored = arguments.keywords.get("ignore", NONE)
    known = isinstance(ignored, (Const, Tuple, Ref))
    found = (
        {}
        if not known
        else {
            name: held
            for name in function.parameters[1:]
            if (not wanted or name in wanted) and (held := ctx.store.read(ctx.frame.address, name)) is not None
        }
    )
    if not wanted or all(name in found for name in wanted):
        made = ctx.allocate((arguments.node, "hparams"), "builtins.dict")
        for name, held in found.items():
            ctx.store.write(made.address, name, held)
        items = tuple((Const(name), held) for name, held in found.items())
        ctx.store.write(made.address, CONTENT, Mapping(items, TOP))
        ctx.store.write(owner.address, "_hparams", made)
    return NONE


@model("lightning.seed_everything", "pytorch_lightning.seed_everything", "lightning.pytorch.seed_everything")
def _seed(ctx: Context, arguments: Arguments) -> Value:
    return NO_TENSOR
