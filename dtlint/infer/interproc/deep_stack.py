"""A stack deep enough for an engine that follows calls as calls: a thread of its own, while the usual one waits."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, TypeVar

from dtlint.frames import with_room

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DEEPEST", "on_deep_stack"]

DEEPEST = 100_000
"""Python's recursion limit meanwhile: some tens of frames for each call that is followed."""
_STACK = 512 * 1024 * 1024
"""Bytes of the thread's stack. They are taken as they are used."""

_Result = TypeVar("_Result")


def on_deep_stack(function: Callable[[], _Result]) -> _Result:
    """What a function gives, run in a thread with a deep stack; what it raises is raised here."""
    found: list[_Result] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(with_room(function))
        except BaseException as error:
            raised.append(error)

    usual, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(max(usual, DEEPEST))
    try:
        thread = threading.Thread(target=run, daemon=True)  # so that an interrupt ends the program
        thread.start()
    finally:
        threading.stack_size(size)
    try:
        thread.join()
    finally:
        sys.setrecursionlimit(usual)
    if raised:
        raise raised[0]
    return found[0]
