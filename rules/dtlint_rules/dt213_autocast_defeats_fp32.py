"""DT213: a matrix product that is meant to be float32 runs in half under autocast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Region, Tensor, Unknown, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._autocast import is_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["AutocastDefeatsFp32"]

_PRODUCTS = tuple(f"{owner}.{name}" for owner in ("torch", "torch.Tensor") for name in ("matmul", "mm", "bmm", "mv"))
"""Products of two operands that autocast casts to half, whatever they are; but for float64, as seen on torch 2.13."""


class AutocastDefeatsFp32(Rule):
    """A matrix product on values that are kept in float32 runs in half under autocast.

    ## What it does
    Reports matrix products of two operands that the function itself has cast to float32, `a.float() @ b.float()`, inside
    an autocast region that is on.

    ## Why it matters
    Autocast casts the inputs of a matrix product to half even where they were cast to float32 one line before; the
    result is half. bfloat16 holds whole numbers exactly up to 256, float16 up to 2048: positions beyond fall together,
    and the angles of the embedding with them. Elementwise products are not cast: `position[:, None] * inv_freq` is what
    the product computes, and stays float32.

    ## Example
    ```python
    import torch

    def angles(inv_freq: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return (inv_freq[:, None].float() @ positions[None, :].float()).cos()
    ```

    ## Use instead
    ```python
    import torch

    def angles(inv_freq: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cuda", enabled=False):
            return (inv_freq[:, None].float() @ positions[None, :].float()).cos()
    ```

    ## References
    - [CUDA ops that autocast to float16](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-can-autocast-to-float16)
    """

    code, name = "DT213", "autocast-defeats-fp32"
    triggers = ("*autocast*",)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for one in facts.evaluations(ast.BinOp):
            if isinstance(one.node.op, ast.MatMult):
                yield from _judged(facts, one.node, [one.node.left, one.node.right], one.operands, one.region)
        for call in facts.calls(*_PRODUCTS):
            operands, values = list(call.node.args), call.args
            if call.receiver is not None and isinstance(call.node.func, ast.Attribute):
                operands, values = [call.node.func.value, *operands], (call.receiver, *values)
            yield from _judged(facts, call.node, operands, values, call.region)


def _judged(
    facts: ModuleFacts, node: ast.expr, operands: list[ast.expr], values: tuple[Value, ...], region: Value
) -> Iterator[Finding]:
    if not is_on(region) or not isinstance(region, Region) or region.dtype not in ("float16", "bfloat16", None):
        return
    casts = [_cast(facts, one) for one in operands]
    float32 = all(isinstance(one, (Tensor, Unknown)) and one.dtypes == frozenset({"float32"}) for one in values)
    if len(operands) == 2 == len(values) and float32 and all(one is not None for one in casts):
        yield Finding(
            node,
            f"Autocast casts both float32 operands back to {region.dtype or 'half'}",
            help="Compute this under `torch.autocast(..., enabled=False)`",
            notes=tuple((one, "cast to float32 here") for one in casts if one is not None),
        )


def _cast(facts: ModuleFacts, operand: ast.expr) -> ast.expr | None:
    """The cast that made an operand float32."""
    made = facts.around.definition(operand)
    called = made.func.attr if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) else ""
    return made if called in ("float", "to") else None
