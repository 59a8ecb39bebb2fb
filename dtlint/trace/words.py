"""Words that every report of a trace shares: counts, lists, and expressions cut to a width."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["listed", "shorten", "times"]


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def shorten(expression: str, width: int = 50) -> str:
    """An expression in backquotes, cut to `width` characters."""
    text = " ".join(expression.split())
    if not text:
        return ""
    return f"`{text if len(text) <= width else text[: width - 3] + '...'}`"
