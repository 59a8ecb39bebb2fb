"""What tells a finding again in a later run: the same as long as the code and its line's text stay.

It does not go by the number of the line, so that a finding which has only moved is no new one.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dtlint.diagnostic import Diagnostic

__all__ = ["Fingerprints"]


class Fingerprints:
    """The fingerprints of one report, each of which is there once: equal findings are counted."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, diagnostic: Diagnostic, path: str) -> str:
        """32 hexadecimal digits, by the name `path` that the report gives to the file."""
        line = dict(diagnostic.lines).get(diagnostic.location.span.line, diagnostic.message)
        key = "\0".join([path, diagnostic.code, line.strip()])
        self._seen[key] += 1
        return hashlib.sha256(f"{key}\0{self._seen[key]}".encode(errors="backslashreplace")).hexdigest()[:32]
