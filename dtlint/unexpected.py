"""What is said of an exception that nobody expected: reports of it have one line."""

from __future__ import annotations

__all__ = ["in_one_line"]


def in_one_line(error: BaseException) -> str:
    """The exception as the last line of its traceback has it, whatever lines its message has: `KeyError: 'x'`."""
    return " ".join(f"{type(error).__name__}: {error}".split())
