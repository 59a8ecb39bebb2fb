"""Make a call, under a default dtype, and say what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dtlint.dtypes.learn.abstraction import result_of
from dtlint.dtypes.learn.errors import error_of

if TYPE_CHECKING:
    from dtlint.dtypes.learn.call import Call
    from dtlint.dtypes.learn.op import Op

__all__ = ["run"]


def run(op: Op, call: Call, default: str = "float32") -> tuple[Any] | None:
    """What a call gives, in a tuple; None when it failed for another reason than a dtype."""
    if op.mutates or "out" in call.kwargs:
        for at in call.tensors():
            call = call.changed({at: call.tensor(at).clone()})
    torch.set_default_dtype(getattr(torch, default))
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps a stack trace of each call for the other devices
    try:
        with torch.no_grad():
            result = op.function(*call.args, **call.kwargs)
            return None if result is NotImplemented else (result_of(result),)
    except Exception as error:
        spoken = error_of(error)
        return None if spoken is None else (spoken,)
    finally:
        torch.set_default_dtype(torch.float32)
