"""DT304: a tensor that is made after another has not its dtype, and meets it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Constant, Number, Tensor, Trait
from dtlint.rule import Finding, Rule
from dtlint_rules._default_operands import meeting
from dtlint_rules._effects import UNTOLD
from dtlint_rules._factories import HELPERS, MAKERS, into_model, is_noise, is_total, may_be_after, tensors_after
from dtlint_rules._filled import filled
from dtlint_rules._half import half_at, is_of_any_float, place_in
from dtlint_rules._layers import own_layer
from dtlint_rules._makers import DISTRIBUTIONS, made_by, makers_of, sampled
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._origins import origins_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dtlint.infer.events import Call, End, Flow
    from dtlint_rules._origins import Origins

__all__ = ["FactoryDefaultDtype"]

_OF_SHAPES = frozenset({"zeros", "ones", "empty", "rand", "randn"})
"""Factories that take sizes and nothing else by position."""
_OPERATIONS = (ast.BinOp, ast.Call)
_QUANTILES = frozenset({"quantile", "nanquantile"})
"""Functions that refuse even a number of another dtype than their tensor's, where it is a tensor."""


class FactoryDefaultDtype(Rule):
    """A tensor that is made in the shape of another has the default dtype, and then meets it.

    ## What it does
    Reports a factory without `dtype=` (`torch.randn`, `torch.zeros`, `torch.full`, `torch.where(mask, 1.0, 0.0)`) that
    takes its shape or its device from a tensor, or is moved to that, and `torch.Tensor([0.5, 1.0])`, where the result
    is then added to, multiplied with, concatenated to or written into that tensor or what is computed from it, or goes
    into a solver or a quantile with it, which take no float32 beside float64; one that stands in for the missing bias
    of a layer in a product, `torch.zeros(n, device=conv.weight.device) if conv.bias is None else conv.bias`; one that a
    product of matrices is written into by slices; and noise in the shape that a model is configured for that goes into
    the model uncast.

    What a function of the file makes counts like a factory if it is handed `x.device` and no dtype, and so does what is
    drawn from `Uniform(0.9, 1.1)` in the shape of `x`. Besides, the rule reports a buffer for tensors that is made in
    the shape of the first of them, `self.frames = torch.zeros(n, *x.shape)`; a factory's tensor that goes into a layer
    of the module itself, or into a Sequential that begins with one; one that one path returns, where another returns
    what is computed from `x`; one that is filled with rows of the shape of `x`, where another factory of the function is
    told `dtype=x.dtype`; and one that other ranks send `x` into, `dist.all_gather(parts, x)`.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor, half weights or float64.

    ## Why it matters
    The factory gives float32, whatever the tensor is. With a half tensor the result of arithmetic is float32 from there
    on, at twice the memory, until a layer with half weights raises "mat1 and mat2 must have the same dtype". With a
    float64 tensor digits are lost. A collective refuses tensors of two dtypes.

    ## Example
    ```python
    import torch


    def jitter(x: torch.Tensor, scale: float) -> torch.Tensor:
        noise = torch.randn(x.shape, device=x.device)
        return x + scale * noise
    ```

    ## Use instead
    ```python
    import torch


    def jitter(x: torch.Tensor, scale: float) -> torch.Tensor:
        noise = torch.randn(x.shape, device=x.device, dtype=x.dtype)
        return x + scale * noise
    ```

    ## Fix safety
    The fix passes the dtype of the tensor that the shape or the device was taken of. It is unsafe: in half the values
    of the factory are rounded, numbers drawn at random are others than before, and that tensor may hold integers.

    ## References
    - [torch.randn: dtype](https://docs.pytorch.org/docs/stable/generated/torch.randn.html)
    - [torch.randn_like](https://docs.pytorch.org/docs/stable/generated/torch.randn_like.html)
    """

    code, name = "DT304", "factory-default-dtype"
    fix = Applicability.UNSAFE
    calls = MAKERS
    triggers = (
        *attributes(calls - {"Tensor"}),
        "torch.Tensor(",
        *sorted(HELPERS),
        *attributes(DISTRIBUTIONS),
        *sorted(DISTRIBUTIONS),
    )
    needs = (
        TORCH,
        (
            *attributes(("shape", "device", "size", "numel", "nelement", "get_device", "rand", "randn", "where")),
            *("self.device", "len", *sorted(HELPERS)),
        ),
    )

    def __init__(self) -> None:
        self.made: dict[ast.AST, dict[ast.Call, Flow]] = {}
        """By the function that runs them, the factories that are told no dtype, and where the program was then."""
        self.of_numbers: set[ast.Call] = set()
        """Those of one number, or of numbers that nothing is known of: only a quantile refuses them."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.flow.function is None or "dtype" in call.keywords or "out" in call.keywords:
            return ()
        if not call.complete and any(keyword.arg is None for keyword in call.node.keywords):
            return ()  # `*x.shape` may be there: no factory takes its dtype by position
        if not _is_defaulted(call):
            if call.target != "torch.tensor" or _QUANTILES.isdisjoint(facts(call.flow.scope).called):
                return ()
            self.of_numbers.add(call.node)
        elif is_total(_bound_to(call)):
            return ()
        self.made.setdefault(call.flow.scope, {}).setdefault(call.node, place_in(call.flow))
        return ()

    def on_end(self, end: End) -> Iterable[Finding]:
        factories = self.made.pop(end.node, {})
        if end.flow.function is None:
            return ()
        own = facts(end.node)
        calls, names = own.calls, own.called
        if not names.isdisjoint(makers_of(end.flow.tree)):
            factories.update(dict.fromkeys(made_by(calls, end.node, end.flow.tree), end.flow))
        if not names.isdisjoint(DISTRIBUTIONS):
            factories.update(dict.fromkeys(sampled(end.node, calls), end.flow))
        return self._judged(factories, end) if factories else ()

    def _judged(self, made: dict[ast.Call, Flow], end: End) -> Iterator[Finding]:
        factories = {factory: place for factory, place in made.items() if may_be_after(factory, place)}
        if not factories:
            return
        origins = origins_of(end.node)
        # From the last on, so that of those that begin at one place the outer comes first.
        operations = sorted(
            (node for node in reversed(origins.of) if isinstance(node, _OPERATIONS)),
            key=lambda node: (node.lineno, node.col_offset),
        )
        for factory, place in factories.items():
            of_numbers = factory in self.of_numbers
            among = [node for node in operations if last_name(node) in _QUANTILES] if of_numbers else operations
            found = _found(factory, among, origins, place, half=not of_numbers)
            if found is None:
                continue  # for half and for float64: where it comes from is asked last, for it takes longest
            if of_numbers or half_at(place, dtype=None) is None:
                wide = is_of_any_float(place)
                found = _found(factory, among, origins, place, half=False) if wide else None
            if found is not None:
                yield found


def _is_defaulted(call: Call) -> bool:
    name = last_name(call.node)
    if name in HELPERS:
        return not call.target.startswith("torch.") and len(call.node.args) < 4
    if name in UNTOLD or (name == "normal" and "size" in call.keywords):
        return call.target == f"torch.{name}" and bool(call.node.args)
    if not call.complete:
        return name in _OF_SHAPES and call.target == f"torch.{name}"
    result = call.result
    if not call.target.startswith("torch.") or call.target.count(".") != 1 or not isinstance(result, Tensor):
        return False
    if name == "where":
        numbers = [value for value in call.args[1:] if isinstance(value, (Constant, Number))]
        return len(numbers) == 2 and Trait.DEFAULTED in result.traits
    return Trait.DEFAULTED in result.traits and result.zero_dim is not True


def _bound_to(call: Call) -> str:
    """The name that the running statement binds."""
    statement = call.flow.statement
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return " ".join(path_of(target) or "" for target in targets)


def _found(
    factory: ast.Call, operations: Sequence[ast.BinOp | ast.Call], origins: Origins, place: Flow, *, half: bool
) -> Finding | None:
    """Where the dtype of a factory's tensor matters: in a layer, where it meets another, or where it holds another."""
    if half and (layer := own_layer(factory, operations, origins, place)) is not None:
        return into_model(factory, layer, path_of(layer.func) or "")
    after, noise = tensors_after(factory, origins, place), is_noise(factory)
    if not after and not noise:
        return None
    met = meeting(factory, after, operations, origins, place, half=half)
    return met if met is not None or noise or not half else filled(factory, after, origins, place)
