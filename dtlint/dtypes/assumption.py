"""Assumptions: what the user says that code has to support, by the dtypes of its inputs and weights and the region around it.

Most dtype bugs are code that works in float32 and is then given something else. Which of these a function has to survive
nobody can guess; whoever owns it can say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dtlint.dtypes.dtype import DTYPES

__all__ = ["ASSUMPTIONS", "SINGLE", "Assumption", "parse_assumption"]


@dataclass(frozen=True)
class Assumption:
    """What public functions are given, and what the modules of a library were cast to.

    Attributes:
        name: as it is asked for: "half".
        inputs: the dtype of floating parameters.
        weights: the dtype of the floating parameters and buffers of modules.
        region: the device and the dtype of the autocast region around every call; None: there is none.
        other_targets: the dtype of what losses compare with, where that is not the dtype of inputs.
    """

    name: str
    inputs: str
    weights: str
    region: tuple[str, str] | None = None
    other_targets: str | None = None

    @property
    def targets(self) -> str:
        """The dtype of what losses compare with."""
        return self.other_targets or self.inputs

    @property
    def variants(self) -> tuple[Assumption, ...]:
        """Itself; and under autocast the same with inputs as layers give them there, which are half."""
        return (self,) if self.region is None else (self, replace(self, inputs=self.region[1]))


SINGLE = Assumption("float32", "float32", "float32")
"""What nearly all code is written for: what it gets wrong then, no assumption is to blame for."""
_AUTOCAST = "autocast"
_REGIONS = {"cuda": ("float16", "bfloat16"), "cpu": ("bfloat16", "float16")}
"""The dtypes of autocast regions by device, the usual one first, as torch has them."""

ASSUMPTIONS = {
    one.name: one
    for one in (
        Assumption("half", "float16", "float16"),
        Assumption("bfloat16", "bfloat16", "bfloat16"),
        Assumption("double", "float64", "float64"),
        Assumption(_AUTOCAST, "float32", "float32", ("cuda", "float16")),
        Assumption("mixed", "float32", "float16"),
        Assumption("uint8", "uint8", "float32"),
        Assumption("int-targets", "float32", "float32", other_targets="int64"),
    )
}
"""By name."""
_ALSO = {"float16": "half", "float64": "double"}
"""Other names of the same."""


_DTYPE = re.compile(r"b?float[0-9]+|u?int[0-9]+|complex[0-9]+")
"""What wants to be a dtype."""


def parse_assumption(text: str, others: tuple[Assumption, ...] = ()) -> Assumption:
    """The assumption that is written `half`, `autocast` or `autocast=cpu:bfloat16`.

    Args:
        others: assumptions that can be made as well.

    Raises:
        ValueError: there is none of that name, or torch has no such region. The message goes on after the setting's name.
    """
    text = text.strip().removeprefix("torch.")
    text = _ALSO.get(text, text)
    there = {**{one.name: one for one in others}, **ASSUMPTIONS}
    if text in there:
        return there[text]
    name, given, region = text.partition("=")
    if name == _AUTOCAST and given:
        device, _, dtype = region.partition(":")
        if device not in _REGIONS:
            raise ValueError(f"has {text!r}: autocast is for {' or '.join(_REGIONS)}, as in {_AUTOCAST}=cuda:float16")
        dtype = {"half": "float16"}.get(dtype, dtype.removeprefix("torch."))
        if dtype and dtype not in _REGIONS[device]:
            known = "" if dtype in DTYPES else f"torch has no dtype {dtype!r}; "
            raise ValueError(f"has {text!r}: {known}autocast for {device} takes {' or '.join(_REGIONS[device])}")
        return Assumption(text, "float32", "float32", (device, dtype or _REGIONS[device][0]))
    if text == "float32":
        raise ValueError("has 'float32', which is what is checked without an assumption")
    from difflib import get_close_matches

    close = get_close_matches(text, [*there, *_ALSO], n=1, cutoff=0.5)
    listed = f"there are {', '.join(there)}"
    if _DTYPE.fullmatch(text) and text not in DTYPES:
        raise ValueError(f"has {text!r}, but torch has no such dtype; {listed}")
    meant = f"did you mean {close[0]!r}?" if close and text not in DTYPES else listed
    raise ValueError(f"has {text!r}, which is no assumption; {meant}")
