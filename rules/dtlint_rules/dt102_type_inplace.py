"""DT102: `inplace=` given to `.type()`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.domain.values import Dtype, Ref, Tensor
from dtlint.infer.facts import dtype_of
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import is_weight

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts
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

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("type"):
            if "inplace" not in call.keywords or call.name not in ("", "torch.Tensor.type", "torch.nn.Module.type"):
                continue
            # Others may have a method `type`; a torch dtype as its argument says that this one is torch's.
            if isinstance(call.receiver, (Tensor, Ref)) or dtype_of(call.argument(0, "dtype")) is not None:
                yield Finding(
                    call.node,
                    "`.type()` has no argument `inplace`: this raises TypeError",
                    help="Assign the result of `.to(dtype)`",
                    fix=partial(_fix, call),
                )


def _fix(call: Call, place: Place) -> Fix | None:
    function = call.node.func
    assert isinstance(function, ast.Attribute)
    removal = place.remove_argument("inplace")
    if removal is None:
        return None
    edits = [removal]
    if isinstance(call.argument(0, "dtype"), Dtype):
        edits.append(place.rename_method("to"))
    if place.is_statement and not isinstance(call.receiver, Ref):
        if (call.receiver is not None and is_weight(call.receiver)) or not place.can_assign(function.value):
            return None  # a module refuses a tensor for its parameter
        edits.append(place.insert_before(call.node, f"{path_of(function.value)} = "))
    known = isinstance(call.receiver, (Tensor, Ref))
    return Fix("Assign the result of `.to(dtype)`", tuple(edits), Applicability.SAFE if known else Applicability.UNSAFE)
