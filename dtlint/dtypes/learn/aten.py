"""The aten ops that an op calls, as torch's profiler sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.op import Op

__all__ = ["AtenCalls", "aten_calls"]

VIEWS = frozenset({"broadcast_tensors", "expand", "expand_as", "reshape", "squeeze", "unsqueeze", "view", "transpose"})
"""What a function of Python does on its way to the one aten op that it is about; no autocast policy is theirs."""


@dataclass(frozen=True, slots=True)
class AtenCalls:
    """The aten ops of a call: the outermost, and those inside these."""

    outer: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()

    @property
    def root(self) -> str | None:
        """The one aten op that the call is about; None when there are several, or none."""
        deciding = self.outer - VIEWS
        return next(iter(deciding)) if len(deciding) == 1 else None


def aten_calls(op: Op, call: Call) -> AtenCalls:
    """The aten ops that a call makes; none when it raises."""
    call = call.cloned()
    try:
        with torch.no_grad(), torch.autograd.profiler.profile() as profile:
            op.function(*call.args, **call.kwargs)
    except Exception:
        return AtenCalls()
    events = [event for event in profile.function_events or () if event.name.startswith("aten::")]
    return AtenCalls(
        frozenset(event.name.removeprefix("aten::") for event in events if event.cpu_parent is None),
        frozenset(event.name.removeprefix("aten::") for event in events if event.cpu_parent is not None),
    )
