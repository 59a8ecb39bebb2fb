"""Lightning's Fabric (2.0 to 2.6): `precision=` says what the modules compute in that it sets up, and that it makes.

As https://lightning.ai/docs/fabric/stable/fundamentals/precision.html has it: under `"bf16-true"`, `"16-true"` and `"64-true"`
what is made in `init_module()` has that dtype by default, and modules are cast when they are set up; others leave weights as
they are. A module that was set up computes in that precision and gives what its caller expects: it is told of only where the
precision is float32, which changes nothing. Loaders that are set up give batches on the device, in the dtypes that they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, External, Partial, Ref, Tuple, Value
from dtlint.infer.models.amp import DEFAULT_DTYPE
from dtlint.infer.models.casts import cast_module
from dtlint.infer.models.lightning import TRUE_PRECISIONS
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_CLASSES = ("lightning.fabric.fabric.Fabric", "lightning_fabric.fabric.Fabric")
_PRECISION = "*precision"
_WEIGHTS_STAY = frozenset({"None", "32", "32-true", "16", "16-mixed", "bf16", "bf16-mixed"})
_CHANGES_NOTHING = frozenset({"None", "32", "32-true"})


def _named(*names: str) -> tuple[str, ...]:
    return tuple(f"{one}.{name}" for one in _CLASSES for name in names)


@model("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
def _make(ctx: Context, arguments: Arguments) -> Value:
    made = ctx.allocate(arguments.node, _CLASSES[0])
    _initialise(ctx, arguments.before(made))
    return made


@model(*_named("__init__"))
def _initialise(ctx: Context, arguments: Arguments) -> Value:
    fabric = arguments.args[0]
    if isinstance(fabric, Ref):
        is_plain = arguments.complete and "plugins" not in arguments.keywords  # these may say the precision as well
        given = arguments.get(5, "precision") or NONE
        ctx.store.write(fabric.address, _PRECISION, given if is_plain else TOP)
    return NONE


def _precision(ctx: Context, fabric: Value) -> str | None:
    """The precision of a fabric, as it was written; None where it is not known."""
    given = ctx.store.read(fabric.address, _PRECISION) if isinstance(fabric, Ref) else None
    return str(given.value) if isinstance(given, Const) else None


@model(*_named("init_module", "init_tensor"))
def _made_within(ctx: Context, arguments: Arguments) -> Value:
    name = _precision(ctx, arguments.args[0])
    if name in _WEIGHTS_STAY:
        return Partial(External("contextlib.nullcontext"))
    return Partial(DEFAULT_DTYPE, (Const(TRUE_PRECISIONS[name]) if name in TRUE_PRECISIONS else TOP,))


@model(*_named("setup", "setup_module", "setup_optimizers"))
def _set_up(ctx: Context, arguments: Arguments) -> Value:
    fabric, *given = arguments.args
    if _precision(ctx, fabric) in _CHANGES_NOTHING and arguments.complete and given:
        return given[0] if len(given) == 1 else Tuple(tuple(given))
    if _precision(ctx, fabric) not in _WEIGHTS_STAY:
        for one in (*given, *arguments.keywords.values()):
            cast_module(ctx, one, None, None)
    ctx.modules.escape(ctx, given)
    return TOP


@model(*_named("setup_dataloaders"))
def _loaders(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[1:]
    return TOP if not given or not arguments.complete else given[0] if len(given) == 1 else Tuple(tuple(given))


@model(*_named("backward", "launch", "seed_everything", "barrier", "print", "log", "log_dict"))
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NONE
