"""Room for the frames of an engine that follows calls as calls.

Since 3.11 CPython keeps frames in chunks of 16 KB. A call that crosses the end of one maps the next, and its return unmaps it. An
engine that recurses some fifty frames deep crosses such ends hundreds of thousands of times, which took 5 to 12% of the time of
a check. A frame larger than a chunk is given a chunk of its own, of the next power of two; the frames of what it calls lie in
the rest of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["with_room"]

_Result = TypeVar("_Result")

_SLOTS = 300_000
"""Of the large frame, 8 bytes each: 2.4 MB in a chunk of 4 MB, which leaves room for some thousand frames. The 2.4 MB are mapped
and never touched."""


def with_room(function: Callable[[], _Result]) -> _Result:
    """What a function gives, called where the frames behind it lie in one chunk."""
    return function()


with_room.__code__ = with_room.__code__.replace(co_stacksize=_SLOTS)
