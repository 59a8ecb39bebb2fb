"""NumPy's functions and methods, as far as torch meets arrays."""

from __future__ import annotations
