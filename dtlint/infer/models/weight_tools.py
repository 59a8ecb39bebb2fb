"""Functions on weights in place: torch.nn.init, parametrizations, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.values import NONE, TOP, Const, Many, Mapping, Partial, Ref, Tensor, Tuple, Value
from dtlint.infer.models import mutation, plain_tensors
from dtlint.infer.models.mappings import with_item
from dtlint.infer.models.plain_tensors import PARAMETRISED
from dtlint.infer.models.registry import model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_INITIALISERS = (
    *(
        "uniform_",
        "normal_",
        "trunc_normal_",
        "constant_",
        "ones_",
        "zeros_",
        "eye_",
        "dirac_",
        "orthogonal_",
        "sparse_",
    ),
    *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
)


@model(*(f"torch.nn.init.{name}" for name in _INITIALISERS))
def _filled(ctx: Context, arguments: Arguments) -> Value:
    """The very tensor, with other elements."""
    value = arguments.get(0, "tensor") or TOP
    plain = plain_tensors.plain(ctx, value)
    if isinstance(plain, Tensor) and not isinstance(value, Ref):
        mutation.elements_became(ctx, plain, Tensor().range)
        return Tensor(plain.dtypes, plain.symbol, plain.rank, device=plain.device)
    return value


@model("torch.nn.utils.skip_init")
def _skip_init(ctx: Context, arguments: Arguments) -> Value:
    """What the class makes of the other arguments, its weights not filled."""
    cls = arguments.get(0, "module_cls")
    if cls is None:
        return TOP
    keywords = {name: value for name, value in arguments.keywords.items() if name != "module_cls"}
    if arguments.complete:
        keywords.setdefault("device", Const("cpu"))
    return ctx.semantics.call(ctx, cls, Arguments(arguments.args[1:], keywords, arguments.complete, arguments.node))


@model("torch.nn.init.calculate_gain")
def _gain(ctx: Context, arguments: Arguments) -> Value:
    from dtlint.dtypes.dtype import Category
    from dtlint.infer.domain.values import Number

    return Number(Category.FLOAT)


@model(
    *(
        f"torch.nn.utils.{name}"
        for name in ("weight_norm", "remove_weight_norm", "spectral_norm", "remove_spectral_norm")
    ),
    *(f"torch.nn.utils.parametrizations.{name}" for name in ("weight_norm", "spectral_norm", "orthogonal")),
    *(f"torch.nn.utils.prune.{name}" for name in ("l1_unstructured", "random_unstructured", "identity", "remove")),
    *("torch.nn.utils.prune.ln_structured", "torch.nn.utils.prune.random_structured"),
)
def _the_module(ctx: Context, arguments: Arguments) -> Value:
    """The module itself: the weight that it computes from others has their dtype."""
    return arguments.get(0, "module") or TOP


@model("torch.nn.utils.parametrize.register_parametrization")
def _register_parametrization(ctx: Context, arguments: Arguments) -> Value:
    """The weight is from now on what the parametrization makes of it, each time that it is read."""
    names = ("module", "tensor_name", "parametrization")
    owner, name, made_by = (arguments.get(place, key) for place, key in enumerate(names))
    if not isinstance(owner, Ref):
        return owner or TOP
    if not isinstance(name, Const) or made_by is None:
        ctx.store.write(owner.address, "*anything", Const(True))
        return owner
    known = ctx.store.read(owner.address, name.value)
    if isinstance(known, Partial) and known.callee == PARAMETRISED and isinstance(known.args[0], Ref):
        chain = known.args[0]
        held = ctx.store.read(chain.address, CONTENT)
        ctx.store.write(chain.address, CONTENT, Tuple((*held.items, made_by)) if isinstance(held, Tuple) else Many(TOP))
        return owner
    chain = ctx.allocate((owner.address, name.value, "chain"), "torch.nn.ParametrizationList", Tuple((made_by,)))
    ctx.store.write(chain.address, "original", TOP if known is None else known)
    chains = ctx.store.read(owner.address, "parametrizations")
    if not isinstance(chains, Ref):
        chains = ctx.allocate((owner.address, "parametrizations"), "torch.nn.ModuleDict", Mapping())
        ctx.store.write(owner.address, "parametrizations", chains)
    content = ctx.store.read(chains.address, CONTENT)
    if isinstance(content, Mapping):
        ctx.store.write(chains.address, CONTENT, with_item(content, name, chain))
    ctx.store.write(owner.address, name.value, Partial(PARAMETRISED, (chain,)))
    return owner


@model(PARAMETRISED.name)
def _read_parametrised(ctx: Context, arguments: Arguments) -> Value:
    """What a chain of parametrizations makes of its original."""
    chain = arguments.args[0]
    value = ctx.store.read(chain.address, "original") if isinstance(chain, Ref) else None
    held = ctx.store.read(chain.address, CONTENT) if isinstance(chain, Ref) else None
    if value is None or not isinstance(held, Tuple):
        return TOP
    value = plain_tensors.plain(ctx, value)
    for place, one in enumerate(held.items):
        value = ctx.semantics.call(ctx, one, Arguments([value], {}, True, (arguments.node, place)))
    return plain_tensors.plain(ctx, value)


@model("torch.nn.utils.parametrize.remove_parametrizations")
def _remove_parametrizations(ctx: Context, arguments: Arguments) -> Value:
    """The weight is a parameter again: what was made of it, or as it was."""
    owner, name = arguments.get(0, "module"), arguments.get(1, "tensor_name")
    if isinstance(owner, Ref) and isinstance(name, Const):
        known = ctx.store.read(owner.address, name.value)
        if isinstance(known, Partial) and known.callee == PARAMETRISED:
            value = ctx.semantics.call(ctx, known, Arguments([], {}, True, arguments.node))
            kept = ctx.store.read(known.args[0].address, "original") if isinstance(known.args[0], Ref) else None
            leave = arguments.get(2, "leave_parametrized") or Const(True)
            if leave == Const(False) and kept is not None:
                ctx.store.write(owner.address, name.value, kept)
            else:
                tensor = value if isinstance(value, Tensor) and leave == Const(True) else Tensor()
                made = ctx.allocate((owner.address, name.value), plain_tensors.PARAMETER, tensor)
                ctx.store.write(owner.address, name.value, made)
    return owner or TOP


@model("torch.nn.utils.vector_to_parameters")
def _nothing(ctx: Context, arguments: Arguments) -> Value:
    return NONE
