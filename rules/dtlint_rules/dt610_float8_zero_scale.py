"""DT610: a scale for float8 that is 0 where all values are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import External, Tensor
from dtlint.infer.facts import dtype_of
from dtlint.rule import Finding, Rule
from dtlint_rules._frameworks import given
from dtlint_rules._refused_settings import calls_of
from dtlint_rules._uses import Use, maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["Float8ZeroScale"]

_LARGEST = frozenset({"max", "amax"})
_KEEPING = frozenset({"clamp", "clip", "to", "float", "unsqueeze", "view", "reshape", "contiguous"})
"""Ops on what is cast or on a scale that leave a NaN one, and a 0 one too, bounds aside."""


class Float8ZeroScale(Rule):
    """A tensor is divided by its largest value for float8, with nothing that keeps that from 0.

    ## What it does
    Reports casts to a float8 dtype of `x / scale` where the scale comes from the largest absolute value, `x.abs().max()`
    or `amax`, and of `x * (448 / amax)`, where no clamp, no epsilon and no `where` stands between; and, in a file that
    trains, torchao's float8 configuration by rows without a lower bound for that value.

    ## Why it matters
    Rows, blocks and gradients of zeros are common: padding, experts that got no token, layers that are initialised to 0.
    Their scale is 0, 0/0 is NaN, and float8_e4m3fn holds that; the product takes it everywhere.

    ## Example
    ```python
    import torch

    def quantise(x: torch.Tensor):
        scale = x.abs().amax(dim=-1, keepdim=True) / 448.0
        return (x / scale).to(torch.float8_e4m3fn), scale
    ```

    ## Use instead
    ```python
    import torch

    def quantise(x: torch.Tensor):
        scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 448.0
        return (x / scale).to(torch.float8_e4m3fn), scale
    ```

    ## References
    - [Formats for deep learning in 8 bits](https://arxiv.org/abs/2209.05433)
    """

    code, name = "DT610", "float8-zero-scale"
    triggers = ("*float8*", "*Float8*")
    needs = (("amax", "max", "PerRow"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in calls_of(facts, ("torchao",), _TORCHAO):
            granularity = call.argument_node(None, "granularity")
            asked = None if granularity is None else facts.around.definition(granularity)
            by_row = isinstance(asked, ast.Call) and _made_by(facts, asked) == "PerRow"
            if by_row and call.complete and not given(call.argument(None, "activation_value_lb")) and _trains(facts):
                yield Finding(
                    call.node,
                    "The scale of a row of zeros, as padding gives them, is 0: 0/0 makes NaN of it",
                    help="Say `activation_value_lb=1e-12`",
                )
        for call in facts.methods("to", "type"):
            dtypes = [dtype_of(value) for value in (*call.args, *call.keywords.values())]
            if not isinstance(call.node.func, ast.Attribute) or not any(
                one is not None and one.dtypes and all(name.startswith("float8") for name in one.dtypes)
                for one in dtypes
            ):
                continue
            made = _behind(facts, call.node.func.value)
            if made is None or len(made.nodes) != 2 or facts.around.guards(made.node):
                continue
            if (made.name in ("div", "true_divide") and _is_largest(facts, made.nodes[1])) or (
                made.name == "mul" and any(_is_inverse(facts, node) for node in made.nodes)
            ):
                yield Finding(
                    made.node,
                    "The scale is 0 where all values are 0: 0/0 makes NaN of them",
                    help="Clamp the largest value from below, `.clamp(min=1e-12)`",
                )


_TORCHAO = "Float8DynamicActivationFloat8WeightConfig"
"""torchao's scales of activations: their largest value by the largest of float8, with no bound where none is given (0.9 to 0.15)."""


def _made_by(facts: ModuleFacts, made: ast.Call) -> str:
    """The last part of the name of what is called."""
    called = facts.value(made.func)
    return called.name.rpartition(".")[2] if isinstance(called, External) else ""


def _trains(facts: ModuleFacts) -> bool:
    """Is something trained in the file? Batches are padded then."""
    return any(call.name.endswith("Trainer") for call in facts.calls()) or any(True for _ in facts.methods("backward"))


def _behind(facts: ModuleFacts, node: ast.expr) -> Use | None:
    """What made a value, behind the clamps and the views of it."""
    made = maker(facts, node)
    for _ in range(4):
        if made is None or made.name not in _KEEPING or not made.nodes:
            return made
        made = maker(facts, made.nodes[0])
    return made


def _is_largest(facts: ModuleFacts, node: ast.expr, depth: int = 0) -> bool:
    """Is it the largest absolute value, or that divided or multiplied by a number?"""
    made = maker(facts, node)
    if made is None or depth > 4:
        return False
    if made.name in _LARGEST and made.nodes and len(made.nodes) == 1:
        if isinstance(made.values[0], Tensor) and not made.values[0].range.zero:
            return False  # numbers that are drawn
        inner = maker(facts, made.nodes[0])
        return inner is not None and inner.name in ("abs", "absolute")
    if made.name in ("div", "mul", "true_divide") and len(made.nodes) == 2:
        return _is_largest(facts, made.nodes[0], depth + 1)
    if made.name in ("to", "float", "unsqueeze", "view", "reshape"):
        return bool(made.nodes) and _is_largest(facts, made.nodes[0], depth + 1)
    return False


def _is_inverse(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a number over the largest absolute value?"""
    made = _behind(facts, node)
    if made is None or made.name not in ("div", "true_divide") or len(made.nodes) != 2:
        return False
    bounded = maker(facts, node)
    return bounded is not None and bounded.name not in ("clamp", "clip") and _is_largest(facts, made.nodes[1])
