"""Methods that are followed even of objects that are not known: those of a GradScaler, of an optimizer and of a loss."""

from __future__ import annotations

__all__ = ["PROTOCOL", "UNKNOWN_CLASS"]

UNKNOWN_CLASS = "anything"
"""The class of what is not known, in names of its methods."""
PROTOCOL = frozenset({"scale", "unscale_", "step", "update", "get_scale", "zero_grad", "backward"})
