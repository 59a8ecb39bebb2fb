"""What autocast does with the ops that are learned: the policy of the aten op that each is about.

The lists of cuda, mps and xpu are those of `autocast_lists`. The CPU's are observed, by running under its autocast.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Many
from dtlint.dtypes.learn.aten import AtenCalls, aten_calls
from dtlint.dtypes.learn.autocast_lists import KEYS, autocast_lists, registered
from dtlint.dtypes.learn.naming import torch_dtype
from dtlint.dtypes.learn.run import run

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.op import Op

__all__ = ["Autocast", "under_autocast"]

UNLIKE_CPU = frozenset({"torch.nn.GRU", "torch.nn.LSTM", "torch.nn.RNN"})
"""What calls other aten ops on another device than those that a profile on the CPU sees: autocast casts within cuDNN's."""

TRIED = 3
"""So many of an op's calls are tried, until one runs."""


class Autocast:
    """Gathers the part of the table that is about autocast.

    Attributes:
        aten: the aten op that an op is about, where it has another name.
    """

    def __init__(self) -> None:
        self.aten: dict[str, str] = {}
        self._composite: dict[str, set[str]] = defaultdict(set)
        self._on_cpu: dict[str, str] = {}
        self._registered = {device: registered(device) for device in KEYS}

    def add(self, op: Op) -> None:
        """Take in what an op calls, and what the CPU's autocast does with it."""
        tried = (aten_calls(op, call) for call in op.calls[:TRIED])
        calls = next((calls for calls in tried if calls.outer), AtenCalls())
        root = calls.root
        if root is not None and root != op.name.rpartition(".")[2]:
            self.aten[op.name] = root
        for device, names in self._registered.items():
            casts_within = bool(names & (calls.outer | calls.inner)) or op.name in UNLIKE_CPU
            if casts_within and root not in names:
                self._composite[device].add(op.name)
        if root in self._registered["cpu"] and root not in self._on_cpu:
            policies = (under_autocast(op, call) for call in op.calls[:TRIED])
            policy = next((policy for policy in policies if policy is not None), None)
            if policy is not None:
                self._on_cpu[root] = policy

    def lists(self) -> dict[str, dict[str, str]]:
        """The ops of each policy by device; those that call such ops within are "composite"."""
        lists = autocast_lists(self._on_cpu)
        for device, names in self._composite.items():
            lists[device]["composite"] = " ".join(sorted(names))
        return lists


def under_autocast(op: Op, call: Call) -> str | None:
    """The policy that an op shows under the CPU's autocast; None when it could not be run."""
    floating = [at for at in call.tensors() if call.tensor(at).is_floating_point()]
    results = {}
    for dtype in ("float32", "bfloat16"):
        changed = call.changed({at: call.tensor(at).to(torch_dtype(dtype)) for at in floating})
        with torch.autocast("cpu", torch.bfloat16):
            ran = run(op, changed)
        if ran is None or ran.failed or not floating:
            return None
        results[dtype] = _dtypes_in(ran.result)
    if "bfloat16" in results["float32"]:
        return "lower"
    if "bfloat16" not in results["bfloat16"]:
        return "fp32"
    return "promote"


def _dtypes_in(result: Any) -> set[Any]:
    if isinstance(result, tuple):
        return set().union(*map(_dtypes_in, result))
    return _dtypes_in(result.item) if isinstance(result, Many) else {result}
