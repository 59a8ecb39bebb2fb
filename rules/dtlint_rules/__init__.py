"""The catalogue: one module per rule. Whatever stands here is found; there is no list to keep."""

from __future__ import annotations
