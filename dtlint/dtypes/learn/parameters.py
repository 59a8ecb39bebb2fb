"""What is known of a parameter before it is asked, and what it takes where overloads or configurations differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.dtypes.form import Parameter

__all__ = ["FREE_PARAMETERS", "either"]

FREE_PARAMETERS = frozenset(
    {
        "device",
        "layout",
        "pin_memory",
        "generator",
        "memory_format",
        "non_blocking",
        "requires_grad",
        "_stacklevel",
        "cudnn_enable",
    }
)
"""Parameters that say where and how a tensor lies, never what dtype it has."""


def either(a: Parameter, b: Parameter) -> Parameter:
    """A parameter that takes what either takes."""
    kinds = "".join(kind for kind in "tTndov" if kind in a.kinds + b.kinds)
    default = a.default if a.default == b.default else (a.default or b.default)
    return replace(a, kinds=kinds, keyword=a.keyword and b.keyword, default=default)
