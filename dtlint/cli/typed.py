"""Commands as they are typed, for messages that name the next one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["typed"]


def typed(words: Sequence[str]) -> str:
    """The words of a command, quoted where the shell of this system wants that."""
    if sys.platform == "win32":
        from subprocess import list2cmdline as join
    else:
        from shlex import join
    return join(words)
