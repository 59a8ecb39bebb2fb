"""DT121: fractions, inf and NaN written into an integer tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import INTEGRAL
from dtlint.infer.domain.values import Ref
from dtlint.rule import Finding, Rule
from dtlint_rules._attained import cut, dtypes_of, infinite, only
from dtlint_rules._cut import cut_fractions
from dtlint_rules._needs import INTEGERS, TORCH, attributes
from dtlint_rules._uses import maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["LossyIntCast"]

_MADE: dict[str, tuple[int, str]] = {
    "torch.full": (1, "fill_value"),
    "torch.full_like": (1, "fill_value"),
    "torch.Tensor.new_full": (1, "fill_value"),
    "torch.tensor": (0, "data"),
}
"""What makes a tensor of numbers, and where it is given them. It truncates, unlike `torch.where`."""


class LossyIntCast(Rule):
    """A fraction written into an integer tensor, or inf or NaN into one of integers or bools.

    ## What it does
    Reports `ids[i] = 0.5`, `ids.fill_(0.5)` and `ids.masked_fill(mask, 0.5)` where `ids` is known to be an integer tensor,
    in this function or for the calls of it, and `torch.full_like(ids, 0.5)`, `torch.full(size, 0.5, dtype=torch.long)` and
    `torch.tensor([0.5, 1.5], dtype=torch.long)`. The number may be computed, as long as it is certain not to be whole; so
    are the results of `sin`, `softmax`, `rand` and the like. `ids.masked_fill(mask, float("-inf"))` is reported as well.

    ## Why it matters
    The tensor keeps its dtype, and the fraction is dropped without a word: 0.5 becomes 0. inf and NaN raise in integers
    ("value cannot be converted to type int64_t without overflow"), and become True in a bool tensor. Tensors made by
    `torch.arange`, `argsort`, `zeros_like(ids)` or `torch.tensor([0, 1])` are int64, which shows only where they were
    made.

    ## Example
    ```python
    import torch

    ids = torch.arange(4)
    weights = torch.zeros_like(ids)
    weights[0] = 0.5
    ```

    ## Use instead
    ```python
    import torch

    ids = torch.arange(4)
    weights = torch.zeros_like(ids, dtype=torch.float32)
    weights[0] = 0.5
    ```

    ## References
    - [torch.Tensor.index_put_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html)
    """

    code, name = "DT121", "lossy-int-cast"
    triggers = INTEGERS
    needs = (TORCH, (*attributes(_MADE), *attributes(("fill_", "masked_fill", "masked_fill_", "index_fill")), "]="))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from cut_fractions(facts)
        yield from _fractions_of_ops(facts)
        for call in facts.calls(*_MADE):
            for value in _numbers(call, facts):
                text = _made(value, call.result)
                if text is not None:
                    yield Finding(call.node, text, help="Pass a floating dtype")
                    break


def _made(value: Value, made: Value | None) -> str | None:
    number = getattr(value, "value", None)
    if (dtype := cut(value, made)) is not None:
        what = f"{number:g} becomes {int(number)}" if isinstance(number, float) else "a fraction is cut"
        return f"The tensor is {dtype}: {what}"
    return infinite(value, made)


_FRACTIONAL = frozenset(
    {
        "sin",
        "cos",
        "tanh",
        "sigmoid",
        "softmax",
        "log_softmax",
        "rand",
        "rand_like",
        "randn",
        "randn_like",
        "erf",
        "silu",
    }
)
"""Ops whose results are hardly ever whole."""


def _fractions_of_ops(facts: ModuleFacts) -> Iterator[Finding]:
    """`table[:, 0] = torch.sin(x)`, of a table of integers."""
    for seen in facts.assignments():
        statement = facts.around.statement(seen.node)
        if not isinstance(seen.node, ast.Subscript) or not isinstance(statement, ast.Assign) or not seen.operands:
            continue
        if not only(seen.operands[0], INTEGRAL - {"bool"}) or only(seen.result, INTEGRAL):
            continue
        made = maker(facts, statement.value)
        if made is not None and made.name in _FRACTIONAL and len(statement.targets) == 1:
            yield Finding(
                statement,
                f"The tensor is {min(dtypes_of(seen.operands[0]))}: what `{made.name}` gives is cut to whole numbers in it",
                help="Make the tensor of a floating dtype",
            )


def _numbers(call: Call, facts: ModuleFacts) -> Iterator[Value]:
    """The numbers that a tensor is filled with, or made of."""
    position, name = _MADE[call.name]
    value, node = call.argument(position, name), call.argument_node(position, name)
    if isinstance(value, Ref) and node is not None:
        yield from (facts.value(one) for one in ast.walk(facts.around.definition(node)) if isinstance(one, ast.expr))
    elif value is not None:
        yield value
