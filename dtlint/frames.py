"""Room for the frames of an engine that follows calls as calls.

Since 3.11 CPython keeps frames in chunks of 16 KB: where a call crosses the end of one, the next is mapped, and unmapped when the
call returns. An engine that is some fifty frames deep comes by such an end hundreds of thousands of times, which was a tenth of
the time of a check. A frame that is larger than a chunk is given one of a size that is a power of two, and those of what it
calls lie behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_room"]

_Result = TypeVar("_Result")

_SLOTS = 300_000
"""Of the large frame, each of 8 bytes: 2.4 MB in a chunk of 4 MB, which leaves room for some thousand frames. It is mapped, and
never touched."""


def with_room(function: Callable[[], _Result]) -> _Result:
    """What a function gives, called where the frames behind it lie in one chunk."""
    return function()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)
