"""DT304: a tensor that is made beside another has not its dtype, and meets it."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._minded import atoms_of
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._refusals import is_layer, is_loss, tensors
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place
    from dtlint_rules._refusals import Operand

__all__ = ["FactoryDefaultDtype"]

_FACTORIES = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "linspace", "logspace", "eye", "normal", "tensor"}
)
"""Functions of torch that make a tensor of the default dtype, unless they are told another."""
_MEETING = frozenset(
    {"add", "sub", "mul", "div", "true_divide", "rsub", "where", "cat", "concat", "stack", "hstack", "vstack", "lerp"}
    | {"addcmul", "maximum", "minimum", "matmul", "mm", "bmm", "baddbmm", "addmm", "solve", "grid_sample", "quantile"}
    | {"conv1d", "conv2d", "conv3d", "linear", "dot", "cdist", "kron", "outer"}
)
"""Ops that promote their operands, or refuse them where they differ."""


class FactoryDefaultDtype(Rule):
    """A tensor that is made in the shape of another has the default dtype, and then meets it.

    ## What it does
    Reports a factory without `dtype=` (`torch.randn`, `torch.zeros`, `torch.full`, `torch.eye`) where its tensor, or what
    is computed from it, is then added to, multiplied with, concatenated to or refused beside a tensor that has the dtype of
    what the caller gives, or of weights.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor, or float64.

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
    triggers = attributes(_FACTORIES)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for seen in facts.operations(_meets):
            made, other = _sides(seen.what)
            factory = None if made is None or made.node is None or seen.behind else _factory(facts, made.node)
            if factory is None or other is None or factory in told or _counts(factory, other.node):
                continue
            told.add(factory)
            what = "the tensor" if other.node is None else f"`{short(other.node)}`"
            yield Finding(
                factory,
                f"Without `dtype=` this is float32, and meets {what}, which may be half",
                help="Pass the dtype of the tensor that it meets",
                notes=((seen.node, "they meet here"),) if seen.node.lineno != factory.lineno else (),
                conditional=True,
                fix=None if other.node is None else partial(_told, other.node),
            )


def _meets(operation: Operation) -> bool:
    last = operation.op.rpartition(".")[2].rstrip("_")
    known = (last in _MEETING or is_layer(operation)) and not is_loss(operation)
    return known and None not in _sides(operation)


def _sides(operation: Operation) -> tuple[Operand | None, Operand | None]:
    """An operand of the default dtype, with dimensions, and one whose dtype the caller decides."""
    given = tensors(operation)
    made = next((one for one in given if one.dtypes == FLOATING and _has_dimensions(one)), None)
    return made, next((one for one in given if atoms_of(one.value)), None)


def _has_dimensions(given: Operand) -> bool:
    return isinstance(given.value, Tensor) and given.value.rank != 0


def _counts(factory: ast.Call, other: ast.expr | None) -> bool:
    """Is what the tensor meets an argument of its factory, a number then: `torch.linspace(0, n, n) / n`?"""
    return isinstance(other, ast.Name) and any(isinstance(one, ast.Name) and one.id == other.id for one in factory.args)


def _factory(facts: ModuleFacts, node: ast.expr) -> ast.Call | None:
    """The factory that an expression is computed from, told no dtype: directly, or by way of variables and arithmetic."""
    waiting, seen = [node], 0
    while waiting and seen < 12:
        one, seen = facts.around.definition(waiting.pop(0)), seen + 1
        if isinstance(one, ast.BinOp):
            waiting += [one.left, one.right]
        elif isinstance(one, ast.Subscript):
            waiting.append(one.value)
        elif isinstance(one, ast.Call):
            names = {call.name for call in facts.calls_at(one)}
            keywords = {keyword.arg for keyword in one.keywords}
            if any(name.removeprefix("torch.") in _FACTORIES for name in names):
                return None if keywords & {"dtype", "out", None} else one
            if isinstance(one.func, ast.Attribute):
                waiting.append(one.func.value)
    return None


def _told(other: ast.expr, place: Place) -> Fix | None:
    """The fix that tells the factory the dtype of a tensor that is there by then."""
    if not isinstance(other, (ast.Name, ast.Attribute)) or not place.is_bound(place.text(other)):
        return None
    return Fix(
        f"Pass the dtype of `{place.text(other)}`",
        (place.append_argument(f"dtype={place.text(other)}.dtype"),),
        Applicability.UNSAFE,
    )
