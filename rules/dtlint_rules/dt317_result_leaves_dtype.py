"""DT317: under an assumption a function gives another floating dtype than it was given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, ClassVar

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint.source.definitions import public_functions, returned
from dtlint_rules._attained import last_name_of
from dtlint_rules._casts import TO_FLOATING
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import is_loss, tensors
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation

__all__ = ["ResultLeavesDtype"]

_FURTHEST = 12
"""Steps back from what is returned to where its dtype came from."""


class ResultLeavesDtype(Rule):
    """A public function gives another floating dtype than it was given.

    ## What it does
    Under `--assume half`, `bfloat16` or `double`, or `supports` in the settings, reports where a function that returns
    a tensor of another floating dtype leaves the one of its inputs: where they meet a tensor that has a dtype of its
    own, and, as information, a cast that is not undone. It says nothing without an assumption.

    ## Why it matters
    What calls the function goes on in float32: the next layer, whose weights are half, raises, or the rest of the model
    runs at twice the memory and half the speed. A float32 run shows none of it.

    ## Example
    ```python
    import torch


    def rotate(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[-1]) * 0.5
        return x * angles.cos()
    ```

    ## Use instead
    ```python
    import torch


    def rotate(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[-1]) * 0.5
        return x * angles.cos().to(x.dtype)
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT317", "result-leaves-dtype", Severity.WARNING
    assumption: ClassVar[str] = "half"
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        assumed = facts.assumption
        if assumed is None or assumed.region is not None or assumed.inputs != assumed.weights:
            return
        happened: dict[object, Operation] = {}
        for seen in facts.operations():
            if not seen.behind and not seen.what.calls:
                happened.setdefault(seen.what.node, seen.what)
        told: set[ast.AST] = set()
        for result in (one for function in public_functions(facts.tree.body) for one in returned(function)):
            for node in _items(result):
                found = _where_left(facts, happened, node, assumed.inputs)
                if found is not None and found.node not in told:
                    told.add(found.node)
                    yield _finding(found, assumed.inputs, result)


def _finding(operation: Operation, dtype: str, returned: ast.expr) -> Finding:
    result = operation.result
    assert isinstance(result, Tensor) and result.dtypes is not None
    [wide] = result.dtypes
    wider = next((one for one in tensors(operation) if one.dtypes == result.dtypes), None)
    severity = None
    if wider is not None:
        name = f"`{short(wider.node)}`" if wider.node is not None else "a tensor"
        text = f"{dtype} meets {name}, which is {wide}: the function gives {wide}"
        help = "Make it in the dtype of the input, or cast it there"
    else:
        text = f"{dtype} becomes {wide} here and is not cast back: the function gives {wide}"
        help, severity = "Cast the result back to the dtype of the input", Severity.INFO
    notes = () if returned is operation.node else ((returned, "returned here"),)
    return Finding(operation.node, text[0].upper() + text[1:], help=help, notes=notes, severity=severity)


def _items(returned: ast.expr) -> list[ast.expr]:
    """What is returned, one by one where a tuple is written out."""
    return returned.elts if isinstance(returned, ast.Tuple) else [returned]


def _where_left(facts: ModuleFacts, happened: dict[object, Operation], node: ast.expr, dtype: str) -> Operation | None:
    """The operation with operands of a dtype that gave what is returned another floating one."""
    wanted = facts.value(node)
    if not isinstance(wanted, Tensor) or not wanted.dtypes or len(wanted.dtypes) > 1:
        return None
    if wanted.dtypes == {dtype} or not wanted.dtypes <= FLOATING:
        return None
    for _ in range(_FURTHEST):
        found = facts.origin(node) or node
        operation = happened.get(found)
        if (
            operation is None
            or is_loss(operation)  # float32 is right for a loss
            or _chooses(operation, wanted.dtypes)
            or not isinstance(operation.result, Tensor)
            or operation.result.dtypes != wanted.dtypes
        ):
            return None
        given = tensors(operation)
        if any(one.dtypes == {dtype} for one in given):
            return operation
        wide = next((one.node for one in given if one.dtypes == wanted.dtypes and one.node is not None), None)
        if wide is None:
            return None
        node = wide
    return None


def _chooses(operation: Operation, wide: frozenset[str]) -> bool:
    """Is its dtype the author's own choice: a tensor made like another in a dtype that is given, a cast of what was wide
    before?"""
    last, node = last_name_of(operation), operation.node
    if last.endswith("_like") or last.startswith("new_"):
        return True
    of_another = isinstance(node, ast.Call) and any(
        isinstance(part, ast.Attribute) and part.attr == "dtype"
        for one in (*node.args, *node.keywords)
        for part in ast.walk(one)
    )
    return last in TO_FLOATING and not of_another and all(one.dtypes == wide for one in tensors(operation)[:1])
