"""The child processes of a program, none of which is traced: counted as they begin. It needs no torch."""

from __future__ import annotations

import functools
import multiprocessing.spawn
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from dtlint.trace.patches import Patches
from dtlint.trace.schema import Unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LAUNCHERS", "Children"]

IN_A_CHILD = "run `with dtlint.trace() as t:` and t.report() in one to see it"

BEFORE_THE_SCRIPT = "write `-m dtlint trace -o traces/` before the script in the command that starts them"

LAUNCHERS = {
    "torch.distributed.run": "torchrun ... -m dtlint trace -o traces/ train.py",
    "torch.distributed.launch": "torchrun ... -m dtlint trace -o traces/ train.py",
    "torchrun": "torchrun ... -m dtlint trace -o traces/ train.py",
    "accelerate.commands.launch": "accelerate launch ... -m dtlint trace -o traces/ train.py",
    "accelerate": "accelerate launch ... -m dtlint trace -o traces/ train.py",
    "deepspeed": "deepspeed ... --module dtlint trace -o traces/ train.py",
}
"""Programs that start others, and how these are traced: as each of the processes that they start."""

PYTHON = re.compile(r"python[0-9.]*(\.exe)?", re.IGNORECASE)


class Children:
    """Counts of them, by how they began, while a trace runs."""

    def __init__(self, program: str = "") -> None:
        """Of `program`: a script, or a module."""
        self.launcher = LAUNCHERS.get(os.path.basename(program), "")
        """The command that traces what it starts, if that is all that it does."""
        self.forked = 0
        self.spawned = 0
        """Those that multiprocessing has begun as a new Python."""
        self.served = 0
        """Those that multiprocessing's fork server was asked for."""
        self.started = 0
        """Those that were begun as any command is, and are Python."""
        self.apart = 0
        """Is a compiler at work? What begins meanwhile is not counted."""
        self._patches = Patches()

    def install(self) -> None:
        """Count from now on."""
        self._patches.set(
            multiprocessing.spawn, "get_command_line", self._spawning(multiprocessing.spawn.get_command_line)
        )
        if hasattr(os, "fork"):
            from multiprocessing import forkserver

            self._patches.set(forkserver, "connect_to_new_process", self._serving(forkserver.connect_to_new_process))
        self._patches.set(subprocess.Popen, "__init__", self._starting(subprocess.Popen.__init__))

    def remove(self) -> None:
        """Undo `install`."""
        self._patches.undo()

    def unseen(self) -> Iterator[Unseen]:
        """What is to be told of them."""
        how = f"trace them with `{self.launcher}`" if self.launcher else BEFORE_THE_SCRIPT
        counts = {
            f"forked child processes; {IN_A_CHILD}": self.forked,
            f"spawned child processes; {IN_A_CHILD}": self.spawned,
            f"child processes of a fork server; {IN_A_CHILD}": self.served,
            f"Python processes that the program started; {how}": self.started,
        }
        for what, count in counts.items():
            if count:
                yield Unseen(what, count)

    def _spawning(self, get_command_line: Callable[..., list[str]]) -> Callable[..., list[str]]:
        @functools.wraps(get_command_line)
        def spawning(*args: Any, **kwargs: Any) -> list[str]:
            self.spawned += not self.apart
            return get_command_line(*args, **kwargs)

        return spawning

    def _serving(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(connect)
        def serving(*args: Any, **kwargs: Any) -> Any:
            self.served += 1
            return connect(*args, **kwargs)

        return serving

    def _starting(self, begin: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(begin)
        def starting(process: Any, args: Any, *rest: Any, **kwargs: Any) -> None:
            self.started += not self.apart and _is_python(args)
            begin(process, args, *rest, **kwargs)

        return starting


def _is_python(command: Any) -> bool:
    """Does a command run a Python program? One given as a single text is looked at by its first word."""
    first = command.split(maxsplit=1)[:1] if isinstance(command, str) else command[:1] if command else ()
    program = os.fspath(first[0]) if first and isinstance(first[0], (str, os.PathLike)) else ""
    return program == sys.executable or PYTHON.fullmatch(os.path.basename(str(program))) is not None
