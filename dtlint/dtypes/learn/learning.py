"""Learn the table: every op from every source is observed, audited, and seen under autocast."""

from __future__ import annotations

import sys
import warnings
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.learn.audit import audited
from dtlint.dtypes.learn.autocast import UNLIKE_CPU, VIEWS, aten_calls, under_autocast
from dtlint.dtypes.learn.autocast_lists import KEYS, autocast_lists, registered
from dtlint.dtypes.learn.database import database_ops
from dtlint.dtypes.learn.entry import lacking_kernels
from dtlint.dtypes.learn.extras import extra_ops
from dtlint.dtypes.learn.modules import module_ops
from dtlint.dtypes.learn.observing import Found, observed
from dtlint.dtypes.learn.optimizers import optimizer_ops
from dtlint.dtypes.learn.writing import aliased

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.dtypes.explain import Observation
    from dtlint.dtypes.learn.op import Op

__all__ = ["NOTE", "learn"]

NOTE = (
    "Learned on the CPU: result dtypes and promotion are the same on every device; kernels that a dtype lacks, and "
    "errors that say so, are the CPU's. The autocast lists of cuda, mps and xpu are read from the dispatcher and "
    "ATen/autocast_mode.h; cpu's policies are observed by running under it."
)


class _Learner:
    """Gathers the parts of the table."""

    def __init__(self) -> None:
        self.ops: dict[str, Any] = {}
        self.kernels: dict[str, str] = {}
        self.aten: dict[str, str] = {}
        self.composite: dict[str, set[str]] = defaultdict(set)
        self.on_cpu: dict[str, str] = {}
        self._registered = {device: registered(device) for device in KEYS}

    def add(self, ops: Sequence[Op], found: Found) -> None:
        """Take in what was observed of an op."""
        op, entry = ops[0], audited(ops, found)
        if not entry:
            return
        self.ops[op.name] = entry
        lacking = lacking_kernels(found)
        if lacking:
            self.kernels[op.name] = lacking
        self._autocast(op)

    def _autocast(self, op: Op) -> None:
        nothing: tuple[set[str], set[str]] = set(), set()
        outer, inner = next((made for made in (aten_calls(op, call) for call in op.calls[:3]) if made[0]), nothing)
        last = op.name.rpartition(".")[2]
        deciding = outer - VIEWS
        root = deciding.pop() if len(deciding) == 1 else None
        if root is not None and root != last:
            self.aten[op.name] = root
        for device, names in self._registered.items():
            if root in names:
                continue
            if names & (outer | inner) or op.name in UNLIKE_CPU:
                self.composite[device].add(op.name)
        if root in self._registered["cpu"] and root not in self.on_cpu:
            policy = next((shown for shown in (under_autocast(op, call) for call in op.calls[:3]) if shown), None)
            if policy is not None:
                self.on_cpu[root] = policy

    def table(self) -> dict[str, Any]:
        """The table, as it is written."""
        lists = autocast_lists(self.on_cpu)
        for device, names in self.composite.items():
            lists[device]["composite"] = " ".join(sorted(names))
        ops = aliased(self.ops)
        return {
            "torch": torch.__version__.partition("+")[0],
            "note": NOTE,
            "autocast": lists,
            "aten": dict(sorted(self.aten.items())),
            "kernels": dict(sorted(self.kernels.items())),
            "ops": ops,
        }


def learn(only: Sequence[str] = ()) -> dict[str, Any]:
    """The table, as it is written."""
    torch.set_num_threads(1)
    learner = _Learner()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, variants in database_ops(only):
            print(name, file=sys.stderr, flush=True)
            for op, bases in variants:
                learner.add([op], observed(op, bases))
        for op, bases in extra_ops(only):
            if op.name not in learner.ops:
                learner.add([op], observed(op, bases))
        for _, ops in module_ops(only):
            found: dict[int, list[Observation]] = defaultdict(list)
            for op in ops:
                for number, observations in observed(op, ["float32"]).items():
                    found[number] += observations
            if ops:
                learner.add(ops, found)
        for op in optimizer_ops(only):
            learner.add([op], observed(op, ["float32"]))
    return learner.table()
