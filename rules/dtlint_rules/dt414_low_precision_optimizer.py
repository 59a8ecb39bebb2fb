"""DT414: an optimizer that updates half parameters."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import NONE, Const, Many, Ref, Tensor, Tuple, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import HALF

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts

__all__ = ["LowPrecisionOptimizer"]

_HELP = "Keep the parameters in float32, and compute in half under autocast"
_ADAPTIVE = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "RMSprop", "Adadelta"})


class LowPrecisionOptimizer(Rule):
    """An optimizer is given parameters in float16 or bfloat16.

    ## What it does
    Reports a torch optimizer whose parameters are known to be float16 or bfloat16, as those of layers that are made with
    `dtype=`, and the step of one that another file makes, where all that it trains is half by then, whichever file has
    cast it. Models that are cast and trained in one file are the matter of DT101.

    ## Why it matters
    An update that is small against its weight rounds away: at a weight of 1.0, a step of 1e-3 changes nothing in
    bfloat16, and one of 2e-4 nothing in float16, so that training with the usual learning rates stands still without a
    word. In float16 the `eps=1e-8` of Adam is 0 as well, and a zero gradient makes NaN of the weight.

    ## Example
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(8, 8, dtype=torch.bfloat16)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    layer = nn.Linear(8, 8)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-4)
    ```

    ## References
    - [Automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html)
    """

    code, name = "DT414", "low-precision-optimizer"
    triggers = HALF
    needs = (("optim",),)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        yield from _steps(facts)
        if any(call.name.startswith("torch.nn.") for call in facts.methods("half", "bfloat16", "to", "type")):
            return  # a model that is cast is the matter of DT101
        for call in facts.calls("torch.optim."):
            kind = call.name.rpartition(".")[2]
            given = call.argument(0, "params")
            dtypes = [one.dtypes for one in _tensors(given)] if kind[:1].isupper() else []
            known = frozenset[str]().union(*(one or {"?"} for one in dtypes))
            if not known or not known <= LOW_PRECISION:
                continue
            small = _SMALLEST["float16" if "float16" in known else "bfloat16"]
            text = f"{kind} updates {' or '.join(sorted(known))} weights: steps below {small} of a weight are lost"
            if "float16" in known and kind in _ADAPTIVE:
                text += ", and the eps of 1e-8 is 0"
            yield Finding(call.node, text, help=_HELP)


def _steps(facts: ModuleFacts) -> Iterator[Finding]:
    """Steps of optimizers that are made elsewhere."""
    steps = list(facts.events("step in half"))
    if not steps:
        return
    refused = {seen.node for seen in facts.events("step of half parameters")}
    own = set(map(id, facts.around.of_kind(ast.Call)))
    for seen in steps:
        optimizer, dtype, eps = seen.what.about
        if seen.node in refused or not isinstance(optimizer, Ref) or not isinstance(dtype, Const):
            continue
        site, kind = optimizer.address.site, str(optimizer.address.kind).rpartition(".")[2]
        if id(site) in own or not isinstance(site, ast.Call):
            continue
        is_zero = dtype.value == "float16" and kind in _BY_SMALL_EPS and eps in _SMALL
        text = (
            f"{kind} updates float16 weights: its eps is 0 there, and a zero gradient makes NaN of the weight"
            if is_zero
            else f"{kind} updates {dtype.value} weights: steps below {_SMALLEST[str(dtype.value)]} of a weight are lost"
        )
        yield Finding(seen.node, text, help=_HELP)


_SMALL = (NONE, Const(1e-8))
"""The eps that Adam has where it is given none, or that."""
_BY_SMALL_EPS = _ADAPTIVE - {"Adadelta"}
_SMALLEST = {"float16": "2e-4", "bfloat16": "1e-3"}


def _tensors(value: Value | None) -> Iterator[Tensor]:
    """The tensors that an argument holds."""
    for one in () if value is None else choices(value):
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, (Tuple, Many)):
            for item in one.items if isinstance(one, Tuple) else (one.item,):
                yield from _tensors(item)
