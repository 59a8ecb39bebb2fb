"""dtlint: knows the dtype of every tensor in a PyTorch program, and whether it is safe.

The public API. Its names are imported when they are first used, so that `import dtlint` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.api import Cast, Overflow, Promotion, Trace, step, trace
    from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span
    from dtlint.monitor import Monitor
    from dtlint.rule import Finding, Rule, RuntimeRule, discover

__version__ = "0.1.0"

__all__ = [
    "Applicability",
    "Cast",
    "Diagnostic",
    "Edit",
    "Finding",
    "Fix",
    "Location",
    "Monitor",
    "Note",
    "Overflow",
    "Promotion",
    "Rule",
    "RuntimeRule",
    "Severity",
    "Span",
    "Trace",
    "__version__",
    "discover",
    "step",
    "trace",
]

_HOMES = {
    "dtlint.api": {"Cast", "Overflow", "Promotion", "Trace", "step"},
    "dtlint.diagnostic": {"Applicability", "Diagnostic", "Edit", "Fix", "Location", "Note", "Severity", "Span"},
    "dtlint.monitor": {"Monitor"},
    "dtlint.rule": {"Finding", "Rule", "RuntimeRule", "discover"},
}
"""Each module that public names live in, and which."""


def __getattr__(name: str) -> object:
    if name == "trace":  # the function is the package itself, which can be called
        from importlib import import_module

        return import_module("dtlint.trace")
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(home), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
