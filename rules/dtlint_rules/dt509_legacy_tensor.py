"""DT509: tensors made by constructors of before torch 0.4."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Severity
from dtlint.dtypes.dtype import LEGACY_TENSORS
from dtlint.rule import Finding, Rule
from dtlint_rules._legacy import as_tensor, is_list
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["LegacyTensor"]

_DTYPES = LEGACY_TENSORS | {"Tensor": "float32"}
_NAMES = tuple(f"torch.{package}{name}" for name in _DTYPES for package in ("", "cuda."))


class LegacyTensor(Rule):
    """A tensor is made by a constructor of before torch 0.4.

    ## What it does
    Reports `torch.FloatTensor([...])`, `torch.LongTensor(...)`, `torch.Tensor([...])`, `torch.cuda.IntTensor(x)` and the
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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls(*_NAMES):
            package, _, last = call.name.rpartition(".")
            if not call.args or call.keywords or (last == "Tensor" and not is_list(call.node)):
                continue  # `torch.Tensor(3, 4)` makes room for parameters
            on_cuda, dtype = package == "torch.cuda", _DTYPES[last]
            if on_cuda and isinstance(call.node.args[0], (ast.List, ast.ListComp)):
                continue  # DT502 tells of those
            yield Finding(
                call.node,
                f"`{call.name}` is a legacy constructor: it takes no device, and a number is a size",
                help=f"Use `torch.tensor(..., dtype=torch.{dtype}{', device=...' if on_cuda else ''})`",
                fix=partial(as_tensor, call.node, dtype) if not on_cuda and is_list(call.node) else None,
            )
