"""DT313: a bfloat16 tensor is handed to NumPy, which has no such dtype."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import operand_text
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import finding, once, operand

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["Bf16ToNumpy"]

_TAKING = ("numpy.asarray", "numpy.array", "numpy.ascontiguousarray")
_BFLOAT16 = frozenset({"bfloat16"})


class Bf16ToNumpy(Rule):
    """A bfloat16 tensor is converted to NumPy.

    ## What it does
    Reports `.numpy()`, `np.asarray` and `np.array` of a tensor that is bfloat16. A tensor that was cast before is fine.

    ## Why it matters
    NumPy has no bfloat16: "TypeError: Got unsupported ScalarType BFloat16". It happens at the end, when results are saved,
    logged or drawn, and to the users of a library first, for its authors ran it in float32 or float16.

    ## Example
    ```python
    import torch


    def embed(hidden: torch.Tensor):
        hidden = hidden.to(torch.bfloat16)
        return hidden.cpu().numpy()
    ```

    ## Use instead
    ```python
    import torch


    def embed(hidden: torch.Tensor):
        hidden = hidden.to(torch.bfloat16)
        return hidden.cpu().float().numpy()
    ```

    ## Fix safety
    The fix casts to float32 before. It is unsafe, for a float16 or float64 tensor gives a float32 array then.

    ## References
    - [torch.Tensor.numpy](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html)
    """

    code, name = "DT313", "bf16-to-numpy"
    fix = Applicability.UNSAFE
    triggers = ("numpy",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(_is_refused)):
            yield finding(seen, None, "NumPy has no bfloat16: `.numpy()` raises", _HELP, fix=_as_method)
        told: set[ast.Call] = set()
        for call in facts.calls(*_TAKING):
            node = call.argument_node(0, "object")
            if facts.assumption is not None and not (call.args and isinstance(call.args[0], Tensor)):
                continue  # what may be a list is no tensor by being assumed to be bfloat16
            if node is not None and call.node not in told and call.args and _is_bfloat16(call.args[0]):
                told.add(call.node)
                text = "NumPy has no bfloat16: this raises"
                yield Finding(call.node, text, help=_HELP, fix=partial(_as_argument, node))
        for call in facts.methods("numpy"):
            if call.node not in told and call.receiver is not None and _is_maybe(call.receiver):
                told.add(call.node)
                yield Finding(call.node, "NumPy has no bfloat16: `.numpy()` raises", help=_HELP, fix=_as_method)


_HELP = "Cast it first: `.float().numpy()`"


def _is_refused(operation: Operation) -> bool:
    tensor = operand(operation) if operation.op == "torch.Tensor.numpy" else None
    return tensor is not None and _is_bfloat16(tensor.value)


def _is_bfloat16(value: Value) -> bool:
    return isinstance(value, (Tensor, Unknown)) and value.dtypes == _BFLOAT16


def _is_maybe(value: Value) -> bool:
    """Is it of what may be no tensor, and bfloat16 if it is one? Nothing else is cast so."""
    return isinstance(value, Unknown) and value.dtypes == _BFLOAT16


def _as_method(place: Place) -> Fix:
    return Fix("Cast to float32 first", (place.rename_method("float().numpy"),), Applicability.UNSAFE)


def _as_argument(node: ast.expr, place: Place) -> Fix:
    cast = f"{operand_text(place, node)}.float().cpu()"
    return Fix("Cast to float32 first", (place.replace(node, cast),), Applicability.UNSAFE)
