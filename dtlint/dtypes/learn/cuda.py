"""The dtypes for which CUDA has no kernel of an op either, as torch's own tests have them.

The operator database says of each op which dtypes CUDA takes, and torch's tests hold it to that on CUDA, both ways. It is asked
of what the CPU lacks alone: that the two agree is what makes an error certain where the device is not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from dtlint.dtypes.learn.database import database
from dtlint.dtypes.learn.names import names_of
from dtlint.dtypes.pattern import DTYPE_OF_CODE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["lacking_on_cuda"]

_BY_SIZE = frozenset({"torch.cdist"})
"""Ops that take another way for larger tensors, which other dtypes have: from 26 points on it multiplies matrices."""


def lacking_on_cuda(kernels: Mapping[str, str]) -> dict[str, str]:
    """By op the letters of the dtypes that neither the CPU nor CUDA has a kernel for. Of a module, what its function lacks.

    Args:
        kernels: the same of the CPU.
    """
    taken: dict[str, set[str]] = defaultdict(set)
    for info in database():
        for name in names_of(info):
            taken[name].update(str(dtype).removeprefix("torch.") for dtype in info.dtypesIfCUDA)
    functions = {_joined(name): name for name in taken if name.startswith("torch.nn.functional.")}
    found = {}
    for op, codes in kernels.items():
        function = functions.get(_joined(op), op) if op.startswith("torch.nn.") else op
        if function in taken and op not in _BY_SIZE:
            lacking = "".join(one for one in codes if DTYPE_OF_CODE[one] not in taken[function])
            if lacking:
                found[op] = lacking
    return found


def _joined(name: str) -> str:
    """What a module and its function have in common: `batchnorm` of `nn.BatchNorm2d` and `F.batch_norm`."""
    last = name.rpartition(".")[2]
    of_module = last[:1].isupper()
    return re.sub(r"\dd$", "", last).lower() if of_module and "Norm" in last else last.replace("_", "").lower()
