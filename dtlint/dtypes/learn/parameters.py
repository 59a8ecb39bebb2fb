"""What a parameter's name says of it, and what it takes where overloads or configurations differ."""

from __future__ import annotations

from dataclasses import replace

from dtlint.dtypes.form import FREE, Parameter

__all__ = ["DTYPE_PARAMETERS", "either", "free", "seen_of"]

DTYPE_PARAMETERS = frozenset({"dtype", "out_dtype"})
"""Parameters that take a dtype."""

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


def seen_of(name: str) -> frozenset[str]:
    """What a parameter has been seen to be given before it is observed: anything, if its name says that it is free."""
    return frozenset({FREE}) if name in FREE_PARAMETERS else frozenset()


def free(name: str, *, keyword: bool = False, default: str | None = None) -> Parameter:
    """A parameter that may be given anything, and decides no dtype."""
    return Parameter(name, "", keyword, default, frozenset({FREE}))


def either(a: Parameter, b: Parameter) -> Parameter:
    """A parameter that takes what either takes."""
    kinds = "".join(kind for kind in "tTndov" if kind in a.kinds + b.kinds)
    default = a.default if a.default == b.default else (a.default or b.default)
    return replace(a, kinds=kinds, keyword=a.keyword and b.keyword, default=default)
