"""The place to which a call leads that a finding stands at, for formats of one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.report.legible import place

if TYPE_CHECKING:
    from dtlint.diagnostic import Diagnostic

__all__ = ["leads_to"]


def leads_to(diagnostic: Diagnostic) -> str:
    """` (model.py:13:16)`, of a finding whose message ends with what its note says of that place; else nothing."""
    message = diagnostic.message.lower()
    for note in diagnostic.notes:
        what = note.message.lower()
        if message.endswith(what) and message != what:
            return f" ({place(note.location)})"
    return ""
