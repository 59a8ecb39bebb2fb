"""What autocast does with an op: the aten ops that it calls, and the policy that it shows on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Error, Many
from dtlint.dtypes.learn.run import run

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.op import Op

__all__ = ["UNLIKE_CPU", "VIEWS", "aten_calls", "under_autocast"]

UNLIKE_CPU = frozenset({"torch.nn.GRU", "torch.nn.LSTM", "torch.nn.RNN"})
"""What calls other aten ops on another device than those that a profile on the CPU sees: autocast casts within cuDNN's."""

VIEWS = frozenset({"broadcast_tensors", "expand", "expand_as", "reshape", "squeeze", "unsqueeze", "view", "transpose"})
"""What a function of Python does on its way to the one aten op that it is about; no autocast policy is theirs."""


def aten_calls(op: Op, call: Call) -> tuple[set[str], set[str]]:
    """The aten ops that a call makes: the outermost, and those inside these. A profile sees them all."""
    clones = call
    for at in call.tensors():
        clones = clones.changed({at: call.tensor(at).clone()})
    try:
        with torch.no_grad(), torch.autograd.profiler.profile() as profile:
            op.function(*clones.args, **clones.kwargs)
    except Exception:
        return set(), set()
    outer: set[str] = set()
    inner: set[str] = set()
    for event in profile.function_events or ():
        if event.name.startswith("aten::"):
            (inner if event.cpu_parent is not None else outer).add(event.name[6:])
    return outer, inner


def under_autocast(op: Op, call: Call) -> str | None:
    """The policy that an op shows under the CPU's autocast; None when it could not be run."""
    results = {}
    for dtype in ("float32", "bfloat16"):
        values = {
            at: call.tensor(at).to(getattr(torch, dtype))
            for at in call.tensors()
            if call.tensor(at).is_floating_point()
        }
        changed = call
        for at, value in values.items():
            changed = changed.changed({at: value})
        with torch.autocast("cpu", torch.bfloat16):
            ran = run(op, changed)
        if ran is None or isinstance(ran[0], Error) or not values:
            return None
        results[dtype] = _leaves(ran[0])
    if "bfloat16" in results["float32"]:
        return "lower"
    if "bfloat16" not in results["bfloat16"]:
        return "fp32"
    return "promote"


def _leaves(result: Any) -> set[Any]:
    if isinstance(result, tuple):
        return set().union(*map(_leaves, result))
    return _leaves(result.item) if isinstance(result, Many) else {result}
