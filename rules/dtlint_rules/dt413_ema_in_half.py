"""DT413: an exponential moving average of weights kept in half."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._halfnames import CASTS
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import HALF_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End

__all__ = ["EmaInHalf"]

_EMA = re.compile(r"(?:^|_)(?:ema|averaged|avg_model|swa|shadow|teacher_ema|momentum_encoder)(?:_|$)", re.IGNORECASE)
_UPDATES = frozenset(
    {"lerp_", "mul_", "lerp", "update_parameters", "update", "update_ema", "step", "_foreach_lerp_", "copy_"}
)
"""What moves an average on."""
_MOVES = frozenset({"update_parameters", "update_ema", "momentum", "beta", "alpha"})
"""Names of what moves an average, and of how far."""
_AVERAGES = frozenset({"torch.optim.swa_utils.AveragedModel"})


class EmaInHalf(Rule):
    """An exponential moving average of weights is kept in half.

    ## What it does
    Reports a model that is called an EMA, shadow or averaged model, or is a `torch.optim.swa_utils.AveragedModel`, and
    is made in or cast to float16 or bfloat16, where the file moves it on afterwards. A copy that is cast to be saved,
    or to run with, is left alone.

    ## Why it matters
    Each step moves the average by `1 - decay` of the distance. In half such a small step rounds away: with a decay of
    0.999, twenty thousand steps towards 1.0 end at 0.73 in float16 and at 0.50 in bfloat16.

    ## Example
    ```python
    import copy
    import torch
    from torch import nn

    model = nn.Linear(4, 4)
    ema_model = copy.deepcopy(model).half()

    def update(decay: float) -> None:
        for average, weight in zip(ema_model.parameters(), model.parameters()):
            average.data.lerp_(weight.data.half(), 1 - decay)
    ```

    ## Use instead
    ```python
    import copy
    import torch
    from torch import nn

    model = nn.Linear(4, 4)
    ema_model = copy.deepcopy(model).float()

    def update(decay: float) -> None:
        for average, weight in zip(ema_model.parameters(), model.parameters()):
            average.data.lerp_(weight.data.float(), 1 - decay)
    ```

    ## References
    - [torch.optim.swa_utils.AveragedModel](https://docs.pytorch.org/docs/stable/generated/torch.optim.swa_utils.AveragedModel.html)
    """

    code, name = "DT413", "ema-in-half"
    triggers = HALF_BY_NAME
    needs = (
        (
            *("*ema*", "*EMA*", "*Ema*", "*verage*", "*AVERAGE*", "*avg*", "*AVG*"),
            *("*swa*", "*SWA*", "*hadow*", "*SHADOW*", "*momentum*", "*MOMENTUM*"),
        ),
    )
    calls = frozenset({*CASTS, "AveragedModel"})

    def __init__(self) -> None:
        self.casts: dict[ast.Call, str] = {}
        """Casts of modules to half, and to what."""
        self.suspected: list[tuple[ast.expr, str, str]] = []

    def on_call(self, call: Call) -> Iterable[Finding]:
        is_cast, dtypes = call.cast if call.method else (False, None)
        if is_cast and dtypes and dtypes <= LOW_PRECISION:
            self.casts[call.node] = next(iter(dtypes))
        if call.target in _AVERAGES and call.node.args:
            dtype = self._cast_in(call.node.args[0])
            if dtype is not None:
                self.suspected.append((call.node, "the averaged model", dtype))
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        path = path_of(assign.target) if self.casts else None
        expression = assign.expression
        if path is None or not isinstance(expression, ast.Call) or not _EMA.search(path.rpartition(".")[2]):
            return ()
        dtype = self._cast_in(expression)
        makes = {last_name(part) for part in nodes([expression]) if isinstance(part, ast.Call)}
        if dtype is not None and (
            makes & {"deepcopy", "AveragedModel", "EMA", "ModelEMA"} or path_of(expression) is not None
        ):
            self.suspected.append((expression, f"`{path}`", dtype))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or not self.suspected:
            return
        if not any(_moves_on(node) for node in nodes([end.flow.tree])):
            return
        for node, what, dtype in self.suspected:
            sticks = "0.73" if dtype == "float16" else "0.50"
            yield Finding(
                node,
                f"{what} averages in {dtype}, where steps of 1 - decay round away: with a decay of 0.999 it comes "
                f"{sticks} of the way",
                help="Keep the average in float32, and cast a copy of it to run or save",
            )

    def _cast_in(self, node: ast.expr) -> str | None:
        """What the outermost calls of a chain cast to: `deepcopy(model).half().eval()`."""
        while isinstance(node, ast.Call):
            if node in self.casts:
                return self.casts[node]
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node.func
        return None


def _moves_on(node: ast.AST) -> bool:
    """Is an average moved on: by a call that speaks of it, or in a loop over its parameters?"""
    if isinstance(node, ast.Call):
        return last_name(node) in _UPDATES and _speaks_of_average(node)
    return (
        isinstance(node, ast.For)
        and any(_EMA.search(word) is not None for word in names_in(node.iter))
        and any(isinstance(part, ast.Call) and last_name(part) in _UPDATES for part in nodes(node.body))
    )


def _speaks_of_average(node: ast.Call) -> bool:
    """Is it the average that moves, or is the step a decay?"""
    return any(_EMA.search(name) or "decay" in name or name in _MOVES for name in names_in(node))
