"""Patterns as in .gitignore: those of settings, where a wrong one is refused, and those of git's own files.

pathspec takes 25 ms to import, so it is loaded for those who have patterns.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pathspec import GitIgnoreSpec

__all__ = ["PatternError", "of_git", "of_settings"]


class PatternError(ValueError):
    """A pattern of the settings is none: it ends in a backslash, or is a lone `!`. The message says which."""


@cache
def of_settings(patterns: tuple[str, ...], setting: str) -> GitIgnoreSpec:
    """The patterns that somebody has written for dtlint.

    Args:
        patterns: one or more.
        setting: where they stand, for the message: `pyproject.toml: exclude`.

    Raises:
        PatternError: one of them is no pattern.
    """
    try:
        return _compiled(patterns)
    except ValueError:
        wrong = next(pattern for pattern in patterns if not _is_pattern(pattern))
        raise PatternError(
            f'{setting} has {wrong!r}, which is no pattern; write one as in .gitignore, like "build/"'
        ) from None


@cache
def of_git(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    """The patterns of an ignore file. One that is malformed, `build\\`, matches nothing, as it does for git."""
    try:
        return _compiled(patterns)
    except ValueError:
        return _compiled([pattern for pattern in patterns if _is_pattern(pattern)])


def _is_pattern(text: str) -> bool:
    try:
        _compiled([text])
    except ValueError:
        return False
    return True


def _compiled(patterns: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `[[a]` is an odd regular expression, of which nobody here has written a word
        return GitIgnoreSpec.from_lines(patterns)
