"""DT413: an exponential moving average of weights kept in half."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._halfnames import CASTS
from dtlint_rules._idle import idle_factors
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import HALF_BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End
    from dtlint.infer.facts import ModuleFacts

__all__ = ["EmaInHalf"]

_EMA = re.compile(
    r"(?:^|_)(?:ema|averaged|avg_model|swa|shadow|teacher_ema|momentum_encoder|moving_av(?:era)?ges?)(?:_|$)",
    re.IGNORECASE,
)
_UPDATES = frozenset(
    {"lerp_", "mul_", "lerp", "update_parameters", "update", "update_ema", "step", "_foreach_lerp_", "copy_"}
)
"""What moves an average on."""
_MOVES = frozenset({"update_parameters", "update_ema", "momentum", "beta", "alpha"})
"""Names of what moves an average, and of how far."""
_AVERAGES = frozenset({"torch.optim.swa_utils.AveragedModel"})
_MAKERS = frozenset({"deepcopy", "AveragedModel", "EMA", "ModelEMA"})
_WEIGHTS = frozenset({"parameters", "named_parameters", "state_dict"})


class EmaInHalf(Rule):
    """An exponential moving average of weights is kept in half.

    ## What it does
    Reports a model that is called an EMA, shadow or averaged model, or is a `torch.optim.swa_utils.AveragedModel`, and
    is made in or cast to float16 or bfloat16, where the file moves it on afterwards; and a list of such weights. A copy
    that is cast to be saved, or to run with, is left alone.

    Conditional, and so reported with `--preview` only: averages that only their names tell of.

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
    values = frozenset({ast.Call, ast.ListComp, ast.DictComp, ast.Name})

    def __init__(self) -> None:
        self.casts: dict[ast.Call, str] = {}
        """Casts of modules to half, and to what."""
        self.made: set[tuple[ast.AST, str]] = set()
        """By function and path, where an average was made."""
        self.suspected: list[tuple[ast.expr, str, str, bool]] = []
        """Casts of averages, with what is averaged, the dtype, and whether only a name says that it is an average."""

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return idle_factors(facts)

    def on_call(self, call: Call) -> Iterable[Finding]:
        is_cast, dtypes = call.cast if call.method else (False, None)
        if is_cast and dtypes and dtypes <= LOW_PRECISION:
            dtype = next(iter(dtypes))
            self.casts[call.node] = dtype
            path = path_of(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else None
            if path is not None and (call.flow.scope, path) in self.made and isinstance(call.flow.statement, ast.Expr):
                self.suspected.append((call.node, f"`{path}`", dtype, True))
        if call.target in _AVERAGES and call.node.args:
            given = self._cast_in(call.node.args[0])
            if given is not None:
                self.suspected.append((call.node, "The averaged model", given, False))
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        path, expression = path_of(assign.target), assign.expression
        if path is None or expression is None or not _EMA.search(path.rpartition(".")[2]):
            return ()
        if isinstance(expression, ast.Call):
            made = any(last_name(part) in _MAKERS for part in nodes([expression]) if isinstance(part, ast.Call))
            if made:
                self.made.add((assign.flow.scope, path))
            dtype = self._cast_in(expression) if made or path_of(expression) is not None else None
        else:
            expression = _weights(expression, assign.flow.scope) or expression
            dtype = self._cast_within(expression)
        if dtype is not None:
            self.suspected.append((expression, f"`{path}`", dtype, True))
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        if end.flow.function is not None or not self.suspected:
            return
        if not any(_moves_on(node) for node in nodes([end.flow.tree])):
            return
        for node, what, dtype, by_name in self.suspected:
            yield Finding(
                node,
                f"{what} averages in {dtype}, where small steps are lost: a decay of 0.999 stops early",
                help="Keep the average in float32, and cast a copy of it to run or save",
                conditional=by_name,
            )

    def _cast_in(self, node: ast.expr) -> str | None:
        """What the outermost calls of a chain cast to: `deepcopy(model).half().eval()`."""
        while isinstance(node, ast.Call):
            if node in self.casts:
                return self.casts[node]
            node = node.func.value if isinstance(node.func, ast.Attribute) else node.args[0] if node.args else node.func
        return None

    def _cast_within(self, weights: ast.expr) -> str | None:
        """What the weights in a list are cast to, each or some."""
        if not self.casts or not isinstance(weights, (ast.ListComp, ast.DictComp)):
            return None
        element = weights.value if isinstance(weights, ast.DictComp) else weights.elt
        casts = (self.casts.get(part) for part in nodes([element]) if isinstance(part, ast.Call))
        return next(filter(None, casts), None)


def _weights(node: ast.expr, scope: ast.AST) -> ast.expr | None:
    """The list of weights that an expression is, or names: `[p.detach() for p in model.parameters()]`."""
    if isinstance(node, ast.Name):
        node = bound_once(node.id, scope) or node
    if not isinstance(node, (ast.ListComp, ast.DictComp)) or _WEIGHTS.isdisjoint(names_in(node.generators[0].iter)):
        return None
    return node


def _moves_on(node: ast.AST) -> bool:
    """Is an average moved on: by a call that speaks of it, or in a loop over its parameters?"""
    if isinstance(node, ast.Call):
        return last_name(node) in _UPDATES and _speaks_of_average(node)
    return (
        isinstance(node, ast.For)
        and any(_EMA.search(word) is not None for word in names_in(node.iter))
        and any(map(_is_step, nodes(node.body)))
    )


def _is_step(node: ast.AST) -> bool:
    """`v.lerp_(w, 0.1)`, `v *= decay`, `average[i] = decay * v + (1 - decay) * w`"""
    if isinstance(node, ast.Call):
        return last_name(node) in _UPDATES
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)) and not isinstance(node.value, ast.Constant)
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Subscript)
        and any(_EMA.search(word) is not None for word in names_in(node.targets[0]))
    )


def _speaks_of_average(node: ast.Call) -> bool:
    """Is it the average that moves, or is the step a decay?"""
    return any(_EMA.search(name) or "decay" in name or name in _MOVES for name in names_in(node))
