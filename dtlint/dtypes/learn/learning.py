"""Learn the table: every op from every source is observed, audited, and seen under autocast."""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.learn.audit import audited
from dtlint.dtypes.learn.autocast import Autocast
from dtlint.dtypes.learn.cuda import lacking_on_cuda
from dtlint.dtypes.learn.database import database_ops
from dtlint.dtypes.learn.extras import extra_ops
from dtlint.dtypes.learn.kernels import lacking_kernels
from dtlint.dtypes.learn.modules import module_ops
from dtlint.dtypes.learn.observing import Found, observed
from dtlint.dtypes.learn.optimizers import optimizer_ops
from dtlint.dtypes.learn.writing import aliased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.learn.op import Op

__all__ = ["learn"]

NOTE = (
    "Learned on the CPU: result dtypes and promotion are the same on every device; kernels that a dtype lacks, and "
    "errors that say so, are the CPU's, and of these torch's own tests tell which CUDA lacks as well. The autocast lists of cuda, mps and xpu are read from the dispatcher and "
    "ATen/autocast_mode.h; cpu's policies are observed by running under it."
)


class _Learner:
    """Gathers the parts of the table."""

    def __init__(self) -> None:
        self.ops: dict[str, Any] = {}
        self._kernels: dict[str, str] = {}
        self._autocast = Autocast()

    def add(self, *ops: Op) -> None:
        """Learn an op. A module has an op for each of its configurations: what any of them does is its."""
        found: Found = defaultdict(list)
        for op in ops:
            for number, observations in observed(op).items():
                found[number] += observations
        first, entry = ops[0], audited(ops, found)
        if not entry:
            return
        self.ops[first.name] = entry
        lacking = lacking_kernels(found)
        if lacking:
            self._kernels[first.name] = lacking
        self._autocast.add(first)

    def table(self) -> dict[str, Any]:
        """The table, as it is written."""
        return {
            "torch": torch.__version__.partition("+")[0],
            "note": NOTE,
            "autocast": self._autocast.lists(),
            "aten": dict(sorted(self._autocast.aten.items())),
            "kernels": dict(sorted(self._kernels.items())),
            "kernels of neither": dict(sorted(lacking_on_cuda(self._kernels).items())),
            "ops": aliased(self.ops),
        }


def learn(only: Sequence[str] = ()) -> dict[str, Any]:
    """The table, as it is written.

    Args:
        only: the entries of the operator database, and the public names beside it, to learn; empty for all.
    """
    torch.set_num_threads(1)
    learner = _Learner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, ops in database_ops(only):
            print(name, file=sys.stderr, flush=True)
            for op in ops:
                learner.add(op)
        for op in extra_ops(only):
            if op.name not in learner.ops:
                learner.add(op)
        for configurations in module_ops(only):
            learner.add(*configurations)
        for op in optimizer_ops(only):
            learner.add(op)
    return learner.table()
