"""Runs a program that asks for CUDA on the CPU, as if a GPU were there: the same dtypes op by op, and real half values.

Operands stay CPU tensors. What answers for a device (`x.device`, torch.cuda) says CUDA, and autocast is CUDA's own.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.trace.simulate.simulation import Simulation

__all__ = ["DEVICES", "SimulateError", "simulate", "why_not"]

DEVICES = ("cuda",)
"""What can be simulated."""


class SimulateError(RuntimeError):
    """The device cannot be simulated here; the message is one line."""


def simulate(device: str = "cuda") -> Simulation:
    """A context in which the program finds this device; all is undone at its end. Enter it before a trace, not in one.

    Raises:
        SimulateError: there is nothing to simulate this device by.
    """
    reason = why_not(device)
    if reason:
        raise SimulateError(reason)
    from dtlint.trace.simulate.simulation import Simulation

    return Simulation()


def why_not(device: str) -> str:
    """Why this device cannot be simulated with the installed torch, or "". torch is not imported."""
    if device not in DEVICES:
        return f"{device!r} cannot be simulated; choose from: {', '.join(DEVICES)}"
    from dtlint.trace.simulate.policies import HEADER

    spec = find_spec("torch")
    roots = spec.submodule_search_locations or [] if spec is not None else []
    if not any("AT_FORALL_PROMOTE" in _text(Path(root) / HEADER) for root in roots):
        return f"the installed torch lacks CUDA's autocast lists ({HEADER}); install torch 2.4 or later from its wheel"
    return ""


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
