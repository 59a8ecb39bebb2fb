"""DT316: a tensor of integers or bools is to require gradients, which only floating and complex tensors can."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH
from dtlint_rules._operands import INTEGRAL, cast_fix, certain, listed, origin_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint.source.place import Place

__all__ = ["IntegerParameter"]

_OF_DATA = frozenset({"tensor", "as_tensor", "asarray"})
"""Functions that take the dtype of what they are given."""
_FACTORIES = _OF_DATA | {"arange", "full", "zeros", "ones", "empty", "randint", "randperm", "zeros_like", "ones_like"}
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
    calls = _FACTORIES | {"Parameter", "requires_grad_"}

    def on_call(self, call: Call) -> Iterable[Finding]:
        position = _MADE_LEARNED.get(call.target)  # factories take it by keyword only
        told = call.argument(position, "requires_grad") is not None
        if call.constant(position, "requires_grad") is not True and (position is None or told):
            return ()
        return self._judged(call) if call.complete and call.target.startswith("torch.") else ()

    def _judged(self, call: Call) -> Iterator[Finding]:
        given = call.receiver if call.method == "requires_grad_" else call.result
        dtypes = certain(given)
        if not isinstance(given, Tensor) or not dtypes or not dtypes <= INTEGRAL or not _is_written_out(given.origin):
            return
        yield Finding(
            call.node,
            f"`{last_name(call.node)}` raises for {listed(dtypes)}: integers have no gradients",
            help="Make it of a floating dtype: `dtype=torch.float32`",
            notes=origin_note(given, call.node, f"{listed(dtypes)} since here"),
            fix=_fix(call),
        )


def _is_written_out(made: ast.expr | None) -> bool:
    """Does the code that makes a tensor show its dtype? `torch.tensor(n)` has that of `n`, whatever an annotation says."""
    if not isinstance(made, ast.Call) or last_name(made) not in _OF_DATA:
        return made is not None
    told = any(keyword.arg == "dtype" for keyword in made.keywords)
    return told or (bool(made.args) and isinstance(made.args[0], (ast.Constant, ast.List, ast.Tuple)))


def _fix(call: Call) -> Callable[[Place], Fix | None] | None:
    if call.target == "torch.nn.Parameter" and call.node.args:
        return partial(cast_fix, call.node.args[0], "float()", "Cast to float32 first", Applicability.SAFE)
    return _as_float32 if call.method != "requires_grad_" and "dtype" not in call.keywords else None


def _as_float32(place: Place) -> Fix:
    spelled, imported = place.spelled("torch.float32")
    edits = (place.append_argument(f"dtype={spelled}"), *imported)
    return Fix("Make it float32", edits, Applicability.SAFE)
