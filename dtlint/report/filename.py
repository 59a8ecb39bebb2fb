"""What a document format calls a file: its absolute name, for readers that run in another directory."""

from __future__ import annotations

import os.path
from pathlib import Path

__all__ = ["STDIN", "absolute"]

STDIN = "-"
"""The name of what was read from standard input; it is no file, so it stays as it is."""


def absolute(path: str) -> str:
    """The absolute name of a file, without `..` and without following links: links are what the user named."""
    return path if path == STDIN else os.path.normpath(Path.cwd() / path)
