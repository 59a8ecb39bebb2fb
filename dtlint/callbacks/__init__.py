"""A monitor for the training loops of frameworks. Each framework is imported with the name that needs it.

from dtlint.callbacks import TransformersMonitor   # Trainer(..., callbacks=[TransformersMonitor()])
from dtlint.callbacks import LightningMonitor      # L.Trainer(..., callbacks=[LightningMonitor()])
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.callbacks.lightning import LightningMonitor
    from dtlint.callbacks.transformers import TransformersMonitor

__all__ = ["LightningMonitor", "TransformersMonitor"]

_HOMES = {"LightningMonitor": "lightning", "TransformersMonitor": "transformers"}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
