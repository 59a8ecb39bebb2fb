"""DT102: `inplace=` given to `.type()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.names import path_of
from dtlint.infer.values import Dtype, Module, Tensor, Trait
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import trust_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call
    from dtlint.source.place import Place

__all__ = ["TypeInplace"]


class TypeInplace(Rule):
    """`.type()` is given `inplace=`, which it does not have.

    ## What it does
    Reports `inplace=` in a call of `Tensor.type` or `Module.type`.

    ## Why it matters
    `Tensor.type(dtype, inplace=True)` raises `TypeError: type() got an unexpected keyword argument 'inplace'`. A tensor
    is never cast in place: its dtype is fixed when it is made, and a cast returns another tensor. Dropping the keyword
    alone makes the error go away and leaves a cast whose result nobody uses.

    ## Example
    ```python
    import torch

    x = torch.randn(4)
    x.type(torch.float16, inplace=True)
    ```

    ## Use instead
    ```python
    import torch

    x = torch.randn(4)
    x = x.to(torch.float16)
    ```

    ## Fix safety
    The fix is safe: the call raises as it stands. It assigns the result of `.to(dtype)` where the call is a statement
    of its own on a name or an attribute that can be bound there; a module is cast in place by `.to(dtype)` and needs no
    assignment. On what is not known to be a tensor or a module the fix is unsafe.

    ## References
    - [torch.Tensor.type](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type.html)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "DT102", "type-inplace"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    triggers = (".type", "self.type")
    needs = (("inplace",),)
    calls = frozenset({"type"})

    def on_call(self, call: Call) -> Iterator[Finding]:
        if call.method != "type" or "inplace" not in call.keywords:
            return
        # Others may have a method `type`; a torch dtype as its argument says that this one is torch's.
        if not isinstance(call.receiver, (Tensor, Module)) and not isinstance(call.argument(0, "dtype"), Dtype):
            return
        yield Finding(
            call.node,
            "`.type()` has no argument `inplace`: this raises TypeError",
            help="Assign the result of `.to(dtype)`",
            fix=lambda place: _fix(place, call),
        )


def _fix(place: Place, call: Call) -> Fix | None:
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    removal = place.remove_argument("inplace")
    if removal is None:
        return None
    edits = [removal]
    if isinstance(call.argument(0, "dtype"), Dtype):
        edits.append(place.rename_method("to"))
    if place.is_statement and not isinstance(call.receiver, Module):
        refused = isinstance(call.receiver, Tensor) and Trait.PARAMETER in call.receiver.traits
        if refused or not place.can_assign(function.value):
            return None  # a module refuses a tensor for its parameter
        edits.append(place.insert_before(call.node, f"{path_of(function.value)} = "))
    return Fix("Assign the result of `.to(dtype)`", tuple(edits), trust_in(call.receiver))
