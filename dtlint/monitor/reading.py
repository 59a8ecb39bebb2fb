"""What a monitor tells of one sampled step, as plain data: the schema of its JSON lines. It needs no torch."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SCHEMA", "ModuleReading", "Reading"]

SCHEMA = 1
"""Raised when a field changes its meaning; new fields do not raise it."""


@dataclass(slots=True)
class ModuleReading:
    """One module in a sampled step. A number that is not known is None.

    Shares are from 0 to 1, and estimated from some values of each tensor. A value *underflows* where it is not 0 and
    smaller than the least normal number of the dtype that it is measured by (`torch.finfo(dtype).tiny`): it has lost
    digits, and half of it may be 0.
    """

    dtype: str = ""
    """The dtype of its results, as `float16`; "" if none was seen."""
    amax: float | None = None
    """The largest magnitude among its results."""
    underflow: float | None = None
    """The share of its results that underflow, of those that are not 0."""
    zero: float | None = None
    """The share of its results that are 0."""
    grad_dtype: str = ""
    """The dtype of the gradients of its own parameters; "" if none was seen."""
    grad_norm: float | None = None
    """The 2-norm of these gradients, unscaled."""
    grad_amax: float | None = None
    """The largest magnitude among them, unscaled."""
    grad_underflow: float | None = None
    """The share of them that underflow as the backward computed them, scaled; by float16 where there is a scaler."""
    grad_zero: float | None = None
    """The share of them that are 0."""
    compared: int = 0
    """Values of its weights that were compared: those with a gradient that is not 0."""
    stuck: float | None = None
    """The share of those that the optimizer left as they were, to the bit."""


@dataclass(slots=True)
class Reading:
    """One sampled step."""

    step: int
    """Counted from 1, by calls of the optimizer and by steps that the scaler skipped."""
    time: float
    """Seconds since 1970."""
    rank: int = 0
    """Of a distributed run."""
    scale: float | None = None
    """The GradScaler's scale in this step; None without one."""
    skipped: int = 0
    """Steps that the scaler has skipped since the monitor began."""
    skipped_since: int = 0
    """Of these, the ones since the reading before."""
    grad_norm: float | None = None
    """The 2-norm of all gradients, unscaled, and before torch's functions clip them."""
    modules: dict[str, ModuleReading] = field(default_factory=dict)
    """By path in the model, wrappers left out, as `layers.0.fc`; "" is the model itself."""
    unseen: list[str] = field(default_factory=list)
    """What could not be looked at in this step, in words."""
    schema: int = SCHEMA

    def line(self) -> str:
        """One line of JSON. What is not known is left out; numbers that JSON lacks are texts: `inf`, `-inf`, `nan`."""
        return json.dumps(_told(asdict(self)), allow_nan=False, separators=(",", ":"))

    def scalars(self) -> Iterator[tuple[str, float]]:
        """Names and numbers, as loggers take them: `grad_norm`, `amax/layers.0.fc`."""
        for name, value in asdict(self).items():
            if name in ("scale", "skipped", "grad_norm") and value is not None:
                yield name, float(value)
        for path, module in self.modules.items():
            for name, value in asdict(module).items():
                if isinstance(value, float):
                    yield f"{name}/{path or 'model'}", value


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _told(item) for key, item in value.items() if item is not None and item != ""}
    if isinstance(value, list):
        return [_told(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
