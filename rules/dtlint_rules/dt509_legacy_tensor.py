"""DT509: tensors made by constructors of before torch 0.4."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.infer.calls import literal_tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call
    from dtlint.source.place import Place

__all__ = ["LegacyTensor"]

_DTYPES = LEGACY_TENSORS | {"Tensor": "float32"}


class LegacyTensor(Rule):
    """A tensor is made by a constructor of before torch 0.4.

    ## What it does
    Reports `torch.FloatTensor([...])`, `torch.LongTensor(...)`, `torch.Tensor([...])`, `torch.cuda.IntTensor([0])` and the
    like, as information.

    It is off unless selected: the constructors still work, and old code is full of them. Uses that go wrong are
    reported by `legacy-constructor`, DT502.

    ## Why it matters
    They always make tensors on the CPU, or those of `torch.cuda` on CUDA, whatever `torch.set_default_device` says, know
    no `device` of another kind, and read a number as a size: `torch.FloatTensor(3)` is three uninitialized numbers.
    `torch.tensor` takes a dtype and a device, and keeps whole numbers whole.

    ## Example
    ```python
    import torch

    weights = torch.FloatTensor([0.25, 0.75])
    ```

    ## Use instead
    ```python
    import torch

    weights = torch.tensor([0.25, 0.75], dtype=torch.float32)
    ```

    ## Fix safety
    The fix is offered for lists of numbers that are written out, and is safe: value, dtype and device stay, unless the
    program sets another default device.

    ## References
    - [torch.tensor](https://docs.pytorch.org/docs/stable/generated/torch.tensor.html)
    """

    code, name, severity = "DT509", "legacy-tensor", Severity.INFO
    fix = Applicability.SAFE
    default = False
    triggers = ("Tensor(", "Tensoras")
    needs = (TORCH,)
    calls = frozenset(_DTYPES)

    def on_call(self, call: Call) -> Iterator[Finding]:
        package, _, last = call.target.rpartition(".")
        dtype = _DTYPES.get(last) if package in ("torch", "torch.cuda") else None
        if dtype is None or not call.args or call.keywords or (last == "Tensor" and not _is_list(call.node)):
            return  # `torch.Tensor(3, 4)` makes room for parameters
        yield Finding(
            call.node,
            f"`{call.target}` is a legacy constructor: it knows no device, and reads a number as a size",
            help=f"Use `torch.tensor(..., dtype=torch.{dtype}{', device=...' if package == 'torch.cuda' else ''})`",
            fix=partial(_fix, call.node, dtype) if package == "torch" and _is_list(call.node) else None,
        )


def _is_list(node: ast.Call) -> bool:
    """Is it given one list of numbers that are written out?"""
    if len(node.args) != 1 or not isinstance(node.args[0], (ast.List, ast.Tuple)) or not node.args[0].elts:
        return False
    return literal_tensor(node.args[0], frozenset({"float32"})).dtypes is not None


def _fix(node: ast.Call, dtype: str, place: Place) -> Fix | None:
    tensor, first = place.spelled("torch.tensor")
    spelled, second = place.spelled(f"torch.{dtype}")
    edits = (place.replace(node.func, tensor), place.append_argument(f"dtype={spelled}"), *first, *second)
    return Fix("Use `torch.tensor`", edits, Applicability.SAFE)
