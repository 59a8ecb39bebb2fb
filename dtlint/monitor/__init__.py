"""Watches the precision of a training loop as it runs: `dtlint.Monitor`, on one step in so many."""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:
    from dtlint.trace.words import NO_TORCH

    raise ImportError(NO_TORCH, name="torch")

from dtlint.monitor.monitor import Monitor
from dtlint.monitor.reading import ModuleReading, Reading

__all__ = ["ModuleReading", "Monitor", "Reading"]
