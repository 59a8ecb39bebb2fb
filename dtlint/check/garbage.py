"""When Python looks for garbage during a run: seldom.

What a check makes of a file goes when nobody holds it any more, but for a little that holds itself. Python's usual search,
after every 700 new objects, goes through a syntax tree again and again: it takes a quarter of the time of a run.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["search_seldom", "seldom_searched"]

_OBJECTS = 5_000_000
"""New objects, less those that went, before a search: about 500 MB, which few runs come to. `Reader` takes
a reading apart when it begins anew, so that little of it is left to be searched for."""


def search_seldom() -> None:
    """Let this process search seldom from now on."""
    gc.set_threshold(_OBJECTS, 10, 10)


@contextmanager
def seldom_searched() -> Iterator[None]:
    """The same while this lasts; processes that are forked meanwhile keep to it."""
    usual = gc.get_threshold()
    search_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
