"""Make a call of an op, and say what came of it: the dtypes of its result, or what torch refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.explain import Error
from dtlint.dtypes.learn.abstraction import result_of
from dtlint.dtypes.learn.errors import error_of
from dtlint.dtypes.learn.naming import torch_dtype

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.op import Op

__all__ = ["Ran", "run"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a call: an observation's result, or an `Error` that speaks of dtypes."""

    result: Any

    @property
    def failed(self) -> bool:
        """Did it raise?"""
        return isinstance(self.result, Error)


def run(op: Op, call: Call, default: str = "float32") -> Ran | None:
    """Make a call under a default dtype; None when it failed for another reason than a dtype."""
    if op.mutates or "out" in call.kwargs:
        call = call.cloned()
    torch.set_default_dtype(torch_dtype(default))
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a stack trace of each call for the other devices
    try:
        with torch.no_grad():
            result = op.function(*call.args, **call.kwargs)
            return None if result is NotImplemented else Ran(result_of(result))
    except Exception as raised:
        error = error_of(raised)
        return None if error is None else Ran(error)
    finally:
        torch.set_default_dtype(torch.float32)
