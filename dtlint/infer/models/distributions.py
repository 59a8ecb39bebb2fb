"""torch.distributions: samples, densities and moments have the dtype of the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import category_of
from dtlint.infer.domain.values import NONE, TOP, Ref, Tensor, Tuple, Value, reshaped
from dtlint.infer.models import plain_tensors, ranks
from dtlint.infer.models.distribution_parts import registered_divergence
from dtlint.infer.models.ops import ask, default_dtypes
from dtlint.infer.models.registry import ATTRIBUTES, model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_PACKAGE = "torch.distributions"
_PARAMETERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Normal", "Laplace", "Gumbel", "Cauchy", "LogNormal"), ("loc", "scale")),
    **dict.fromkeys(("Bernoulli", "Categorical", "OneHotCategorical", "Geometric"), ("probs", "logits")),
    "OneHotCategoricalStraightThrough": ("probs", "logits"),
    "Uniform": ("low", "high"),
    "Beta": ("concentration1", "concentration0"),
    "Gamma": ("concentration", "rate"),
    "Dirichlet": ("concentration",),
    **dict.fromkeys(("Exponential", "Poisson"), ("rate",)),
    "Chi2": ("df",),
    "StudentT": ("df", "loc", "scale"),
    "HalfNormal": ("scale",),
    "HalfCauchy": ("scale",),
    "Weibull": ("scale", "concentration"),
    "Pareto": ("scale", "alpha"),
    "VonMises": ("loc", "concentration"),
    "MultivariateNormal": ("loc", "covariance_matrix", "precision_matrix", "scale_tril"),
}
"""The parameters of each, in order."""
_WITH_EVENTS = frozenset({"OneHotCategorical", "OneHotCategoricalStraightThrough", "Dirichlet", "MultivariateNormal"})
"""A sample has as many dimensions as the parameters; a density has one fewer."""
_WHOLE_NUMBERS = frozenset({"Categorical"})
"""Samples are int64, of one dimension fewer than the parameters."""
_PARAMETER = "*parameter"


def _construct(name: str) -> None:
    @model(f"{_PACKAGE}.{name}", f"{_PACKAGE}.{name.lower()}.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        made = ctx.allocate(arguments.node, f"{_PACKAGE}.{name}")
        names = _PARAMETERS[name]
        given = dict(zip(names, arguments.args, strict=False))
        given |= {key: value for key, value in arguments.keywords.items() if key in names}
        values = {key: plain_tensors.plain(ctx, value) for key, value in given.items() if value != NONE}
        parameter = _common(ctx, list(values.values())) if arguments.complete else Tensor()
        ctx.store.write(made.address, _PARAMETER, parameter)
        for key in values:
            ctx.store.write(made.address, key, parameter)
        return made


def _common(ctx: Context, values: list[Value]) -> Tensor:
    """The tensor that all parameters are alike to: numbers take the dtype of the tensors beside them."""
    tensors = [one for one in values if isinstance(one, Tensor)]
    if len(tensors) + sum(category_of(one) is not None for one in values) != len(values) or not values:
        return Tensor()
    if not tensors:
        return Tensor(default_dtypes(ctx), None, 0)
    rank = ranks.broadcast([one.rank for one in tensors])
    alike = {(one.dtypes, one.symbol) for one in tensors}
    dtypes, symbol = alike.pop() if len(alike) == 1 else (None, None)
    return Tensor(dtypes, symbol, rank, device=tensors[0].device)


def _parameter(ctx: Context, value: Value) -> Tensor:
    known = ctx.store.read(value.address, _PARAMETER) if isinstance(value, Ref) else None
    return known if isinstance(known, Tensor) else Tensor()


def _is_certain(ctx: Context, parameter: Tensor) -> bool:
    """Has no region anything to do with what is computed of it? Autocast leaves float64, and float32 that it does not
    lower: none of these functions is a product."""
    return ctx.ambient("region") == NONE or (
        parameter.dtypes is not None and parameter.dtypes <= {"float32", "float64"}
    )


def _sampling(name: str, method: str) -> None:
    @model(f"{_PACKAGE}.{name}.{method}")
    def sample(ctx: Context, arguments: Arguments) -> Value:
        parameter = _parameter(ctx, arguments.args[0])
        if name == "MultivariateNormal" and ctx.ambient("region") != NONE:
            return Tensor(None, None, -1)
        asked = arguments.get(1, "sample_shape")
        if isinstance(asked, Ref):
            asked = ctx.store.read(asked.address, "*")
        more = len(asked.items) if isinstance(asked, Tuple) else 0 if asked is None else None
        rank = parameter.rank
        if name in _WHOLE_NUMBERS:
            rank = rank - 1 if rank is not None and rank > 0 else None
        if more is None:
            rank = None
        elif more:
            rank = rank + more if rank is not None and rank >= 0 else -1
        dtypes = frozenset({"int64"}) if name in _WHOLE_NUMBERS else parameter.dtypes
        return Tensor(
            dtypes, None if name in _WHOLE_NUMBERS else reshaped(parameter.symbol), rank, device=parameter.device
        )


def _density(name: str) -> None:
    @model(f"{_PACKAGE}.{name}.log_prob")
    def log_prob(ctx: Context, arguments: Arguments) -> Value:
        parameter = _parameter(ctx, arguments.args[0])
        value = arguments.get(1, "value")
        given = TOP if value is None else plain_tensors.plain(ctx, value)
        if not isinstance(given, Tensor) or not _is_certain(ctx, parameter) or name == "MultivariateNormal":
            alike = isinstance(given, Tensor) and given.dtypes == parameter.dtypes and ctx.ambient("region") == NONE
            return Tensor(parameter.dtypes if alike else None)
        rank = ranks.broadcast([parameter.rank, given.rank])
        if name in _WHOLE_NUMBERS:
            return Tensor(parameter.dtypes, parameter.symbol, device=parameter.device)
        if name in _WITH_EVENTS:
            rank = rank - 1 if rank is not None and rank > 0 else None
        made = ask(ctx, "torch.mul", [parameter, given], {})
        if not isinstance(made, Tensor):
            return Tensor(None, None, rank)
        if name == "Bernoulli" and made.dtypes != given.dtypes:
            return Tensor(None, None, rank)
        return Tensor(made.dtypes, reshaped(made.symbol), rank, device=parameter.device)


def _moment(name: str, method: str) -> None:
    @model(f"{_PACKAGE}.{name}.{method}")
    def moment(ctx: Context, arguments: Arguments) -> Value:
        return _of_moment(ctx, arguments.args[0], name)


def _moment_attribute(name: str, field: str) -> None:
    def moment(ctx: Context, value: Value) -> Value:
        return _of_moment(ctx, value, name)

    ATTRIBUTES[f"{_PACKAGE}.{name}.{field}"] = moment


def _of_moment(ctx: Context, value: Value, name: str) -> Value:
    parameter = _parameter(ctx, value)
    if not _is_certain(ctx, parameter) or name == "MultivariateNormal":
        return Tensor(parameter.dtypes if ctx.ambient("region") == NONE else None)
    events = name in _WITH_EVENTS or name in _WHOLE_NUMBERS
    return Tensor(parameter.dtypes, parameter.symbol, None if events else parameter.rank, device=parameter.device)


for _name in _PARAMETERS:
    _construct(_name)
    for _method in ("sample", "rsample"):
        _sampling(_name, _method)
    _density(_name)
    _moment(_name, "entropy")
    for _field in ("mean", "stddev", "variance", "mode", "probs", "logits"):
        _moment_attribute(_name, _field)


@model(f"{_PACKAGE}.kl_divergence", f"{_PACKAGE}.kl.kl_divergence")
def _kl_divergence(ctx: Context, arguments: Arguments) -> Value:
    """By the table of divergences; of two distributions whose parameters are alike, of their dtype."""
    if len(arguments.args) == 2:
        found = registered_divergence(ctx, arguments.args[0], arguments.args[1], arguments)
        if found is not None:
            return found
    parameters = [_parameter(ctx, value) for value in arguments.args]
    dtypes = {(one.dtypes, one.symbol) for one in parameters}
    if len(dtypes) != 1 or not all(_is_certain(ctx, one) for one in parameters):
        return Tensor()
    known, symbol = dtypes.pop()
    plain = all(
        isinstance(one, Ref) and _last(one) not in (*_WITH_EVENTS, *_WHOLE_NUMBERS, "Independent")
        for one in arguments.args
    )
    rank = ranks.broadcast([one.rank for one in parameters]) if plain else None
    return Tensor(known, symbol, rank)


def _last(value: Ref) -> str:
    return str(value.address.kind).rpartition(".")[2]


@model(f"{_PACKAGE}.Independent", f"{_PACKAGE}.independent.Independent")
def _independent(ctx: Context, arguments: Arguments) -> Value:
    """Samples as its base does; its densities are sums."""
    base = arguments.args[0] if arguments.args else TOP
    made = ctx.allocate(arguments.node, f"{_PACKAGE}.Independent")
    ctx.store.write(made.address, "base_dist", base)
    parameter = _parameter(ctx, base)
    ctx.store.write(made.address, _PARAMETER, Tensor(parameter.dtypes, parameter.symbol))
    return made


@model(*(f"{_PACKAGE}.Independent.{name}" for name in ("sample", "rsample")))
def _sample_of_base(ctx: Context, arguments: Arguments) -> Value:
    base = ctx.store.read(arguments.args[0].address, "base_dist") if isinstance(arguments.args[0], Ref) else None
    method = None if base is None else ctx.semantics.attribute(ctx, base, "rsample", arguments.node)
    return TOP if method is None else ctx.semantics.call(ctx, method, arguments.without_first())


@model(*(f"{_PACKAGE}.Independent.{name}" for name in ("log_prob", "entropy")))
def _summed(ctx: Context, arguments: Arguments) -> Value:
    base = ctx.store.read(arguments.args[0].address, "base_dist") if isinstance(arguments.args[0], Ref) else None
    name = "log_prob" if len(arguments.args) > 1 else "entropy"
    method = None if base is None else ctx.semantics.attribute(ctx, base, name, arguments.node)
    made = TOP if method is None else ctx.semantics.call(ctx, method, arguments.without_first())
    return Tensor(made.dtypes, made.symbol) if isinstance(made, Tensor) else Tensor()


for _field in ("mean", "stddev", "variance", "mode"):
    _moment_attribute("Independent", _field)
