"""bfloat16 tensors that are made arrays of NumPy, which has no such dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint_rules._attained import found, only

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["made_arrays"]

_BFLOAT16 = frozenset({"bfloat16"})


def made_arrays(facts: ModuleFacts) -> Iterator[Finding]:
    """`.numpy()` of bfloat16."""
    for seen in facts.operations(_is_refused):
        yield found(seen, "NumPy has no bfloat16: `.numpy()` raises", "Cast first: `.float().numpy()`")


def _is_refused(operation: Operation) -> bool:
    return operation.op == "torch.Tensor.numpy" and only(operation.args[0], _BFLOAT16)
