"""DT316: a tensor of integers or bools is to require gradients, which only floating and complex tensors can."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.domain.values import Const, Number, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import INTEGRAL, cast_fix, listed
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.place import Place

__all__ = ["IntegerParameter"]

_FACTORIES = tuple(
    f"torch.{name}"
    for name in (
        *("tensor", "as_tensor", "asarray", "arange", "full", "zeros", "ones", "empty", "randint", "randperm"),
        *("zeros_like", "ones_like"),
    )
)
_MADE_LEARNED = {"torch.nn.Parameter": 1, "torch.Tensor.requires_grad_": 0}
"""What makes a tensor require gradients, unless it is told not to, and the place of that argument."""


class IntegerParameter(Rule):
    """A tensor of integers or bools is to require gradients.

    ## What it does
    Reports `nn.Parameter(torch.arange(3))`, `torch.tensor([1, 2], requires_grad=True)` and `ids.requires_grad_()` where the
    code shows that the tensor is one of integers or bools. `requires_grad=False` keeps such a parameter, and is left alone.

    ## Why it matters
    It raises "only Tensors of floating point and complex dtype can require gradients". It is easy to overlook that
    `torch.tensor([1, 2])` is int64 where `torch.tensor([1.0, 2])` is float32.

    ## Example
    ```python
    import torch

    weights = torch.tensor([1, 2, 3], requires_grad=True)
    ```

    ## Use instead
    ```python
    import torch

    weights = torch.tensor([1, 2, 3], requires_grad=True, dtype=torch.float32)
    ```

    ## Fix safety
    The fix makes the tensor float32, and is safe: the call raises as it stands. There is none for `requires_grad_()`, nor
    where a dtype is written out, for one of the two is a mistake.

    ## References
    - [torch.Tensor.requires_grad](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.requires_grad.html)
    - [torch.nn.Parameter](https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html)
    """

    code, name, severity = "DT316", "integer-parameter", Severity.ERROR
    fix = Applicability.SAFE
    triggers = ("requires_grad", ".requires_grad_", ".Parameter")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told: set[ast.Call] = set()
        for call in facts.calls(*_FACTORIES, *_MADE_LEARNED):
            given = _given(call)
            if not isinstance(given, Tensor) or not given.dtypes or not given.dtypes <= INTEGRAL or call.node in told:
                continue
            told.add(call.node)
            yield Finding(
                call.node,
                f"`{call.name.rpartition('.')[2]}` raises for {listed(given.dtypes)}: integers have no gradients",
                help="Make it of a floating dtype: `dtype=torch.float32`",
                fix=_fix(call),
            )


def _given(call: Call) -> object:
    """The tensor that is to require gradients, if it is."""
    place = _MADE_LEARNED.get(call.name)
    asked = call.argument(place, "requires_grad")
    if not call.complete or asked not in (Const(True), None) or (asked is None and place is None):
        return None
    if call.name == "torch.nn.Parameter":
        return call.argument(0, "data")
    if place is None and isinstance(call.argument(0, "data"), Number):
        return None  # by an annotation, which stands in front of numbers of every kind
    return call.receiver if place is not None else call.result


def _fix(call: Call) -> Callable[[Place], Fix | None] | None:
    if call.name == "torch.nn.Parameter" and call.node.args:
        return partial(cast_fix, call.node.args[0], "float()", Applicability.SAFE)
    return _as_float32 if call.name in _FACTORIES and "dtype" not in call.keywords else None


def _as_float32(place: Place) -> Fix:
    spelled, imported = place.spelled("torch.float32")
    edits = (place.append_argument(f"dtype={spelled}"), *imported)
    return Fix("Make it float32", edits, Applicability.SAFE)
