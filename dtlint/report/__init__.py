"""Diagnostics on their way out: one module per format, each loaded when its format is asked for.

Every format module has `write(diagnostics, stream, rules)`. None of them reads a source file or asks a rule to judge:
a diagnostic carries all there is to show.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.diagnostic import Diagnostic

__all__ = ["FORMATS", "write"]

FORMATS = ("full", "concise", "json", "github", "gitlab", "junit", "pylint", "rdjson", "sarif", "html")
"""The names that `--output-format` takes. The module of a format has its name."""


def write(diagnostics: Sequence[Diagnostic], format: str, stream: TextIO, rules: Mapping[str, AnyRule]) -> None:
    """Write the diagnostics to the stream, in the order given.

    `rules` are the rules by code; only `sarif` looks into them, for the documentation that it embeds.
    The line formats write nothing where there is nothing to say, the document formats an empty document.

    Raises:
        ValueError: no format has this name.
    """
    if format not in FORMATS:
        raise ValueError(f"there is no output format {format!r}; use one of {', '.join(FORMATS)}")
    import_module(f"dtlint.report.{format}").write(diagnostics, stream, rules)
