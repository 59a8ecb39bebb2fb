"""Words that every report of a trace shares: counts, lists, and expressions cut to a width."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NO_TORCH", "in_package", "listed", "shorten", "times", "within"]

NO_TORCH = "torch is not installed here; install it with: pip install torch"


PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
"""Where Python keeps packages that are installed."""


def times(count: int) -> str:
    """`once`, `3 times`."""
    return "once" if count == 1 else f"{count:,} times"


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def within(module: str) -> str:
    """` in blocks.0.attn`, or "" outside any module; the path of one in a bare Sequential is a number, and is so marked."""
    if not module:
        return ""
    return f" in module `{module}`" if module.replace(".", "").isdecimal() else f" in {module}"


def in_package(file: str) -> str:
    """A file's name as a person knows it: that of an installed package from the package on, any other as it is."""
    return PACKAGES.sub("", file)


def shorten(expression: str, width: int = 50) -> str:
    """An expression in backquotes, cut to `width` characters."""
    text = " ".join(expression.split())
    if not text:
        return ""
    return f"`{text if len(text) <= width else text[: width - 3] + '...'}`"
