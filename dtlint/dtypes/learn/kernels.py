"""The dtypes for which the CPU has no kernel of an op."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from dtlint.dtypes.explain import Error
from dtlint.dtypes.form import NUMBER
from dtlint.dtypes.learn.errors import lacks_kernel
from dtlint.dtypes.pattern import CODES

if TYPE_CHECKING:
    from dtlint.dtypes.learn.observing import Found

__all__ = ["lacking_kernels"]


def lacking_kernels(found: Found) -> str:
    """The letters of the dtypes for which every call with all operands of that dtype raised for want of a kernel. Numbers
    have a dtype of their own kind, and the items of lists do not count."""
    lacks: dict[str, set[bool]] = defaultdict(set)
    for observations in found.values():
        for one in observations:
            single = [operand for operand in one.operands if operand and isinstance(operand[0], str)]
            dtypes = {operand[0] for operand in single if operand[1] > NUMBER}
            if len(dtypes) == 1:
                lacks[dtypes.pop()].add(isinstance(one.result, Error) and lacks_kernel(one.result))
    return "".join(sorted(CODES[dtype] for dtype, verdicts in lacks.items() if verdicts == {True}))
