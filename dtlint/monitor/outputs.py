"""Where readings go: a file of JSON lines, TensorBoard, Weights & Biases. Each is imported when it is asked for."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from dtlint.atomic import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from dtlint.monitor.reading import Reading

__all__ = ["MOST_BYTES", "JsonLines", "Output", "TensorBoard", "WeightsAndBiases"]

MOST_BYTES = 8 << 20
"""Size of a file of JSON lines, in bytes: one that grows beyond it is thinned out."""

PREFIX = "dtlint/"
"""Before the names of all numbers in a logger."""


class Output(Protocol):
    """Takes each reading as it is made."""

    def write(self, reading: Reading) -> None:
        """Take one."""

    def close(self) -> None:
        """No more will come."""


class JsonLines:
    """A file with one reading a line. What is there already is kept; beyond `most` bytes every second line is dropped."""

    def __init__(self, path: Path, most: int = MOST_BYTES) -> None:
        """Open nothing yet.

        Raises:
            ValueError: there is no such directory, or the file cannot be written; the message is one line.
        """
        self.path, self.most = path.absolute(), most
        folder = self.path.parent
        if not folder.is_dir():
            raise ValueError(f"cannot write {path}: there is no directory {path.parent}")
        if self.path.is_dir() or not os.access(self.path if self.path.exists() else folder, os.W_OK):
            raise ValueError(f"cannot write {path}: name a file that can be written")

    def write(self, reading: Reading) -> None:
        """Append one line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(reading.line() + "\n")
            size = file.tell()
        if size > self.most:
            self._thin_out()

    def _thin_out(self) -> None:
        """Drop every second line, the last one aside."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        write_text(self.path, "".join(lines[-1::-2][::-1]))

    def close(self) -> None:
        """The file is closed after each line."""


class TensorBoard:
    """A SummaryWriter of the program's, or one of our own for a directory."""

    def __init__(self, where: Any) -> None:
        """Write to `where`: a directory, or a SummaryWriter.

        Raises:
            ImportError: tensorboard is not installed; the message is one line.
        """
        self._ours = isinstance(where, (str, os.PathLike))
        if self._ours:
            if find_spec("tensorboard") is None:
                raise ImportError("tensorboard is not installed here; install it with: pip install tensorboard")
            from torch.utils.tensorboard import SummaryWriter

            where = SummaryWriter(os.fspath(where))
        elif not hasattr(where, "add_scalar"):
            raise TypeError(f"tensorboard is a {type(where).__name__}; give a directory or a SummaryWriter")
        self._writer = where

    def write(self, reading: Reading) -> None:
        """Add a scalar for each number."""
        for name, value in reading.scalars():
            self._writer.add_scalar(PREFIX + name, value, reading.step)

    def close(self) -> None:
        """Close what is ours."""
        (self._writer.close if self._ours else self._writer.flush)()


class WeightsAndBiases:
    """A run of the program's: the one that it gives, or the one that `wandb.init()` has begun."""

    def __init__(self, run: Any) -> None:
        """Log to `run`; True stands for the current one.

        Raises:
            ImportError: wandb is not installed; the message is one line.
        """
        if run is True and find_spec("wandb") is None:
            raise ImportError("wandb is not installed here; install it with: pip install wandb")
        if run is not True and not hasattr(run, "log"):
            raise TypeError(f"wandb is a {type(run).__name__}; give True or the run that wandb.init() returns")
        self._run = run
        self._begun: Any = None

    def write(self, reading: Reading) -> None:
        """Log all numbers at once, over a step of their own: that of the run belongs to the program.

        They wait for the program's next log: one of ours would move the run's step past the one that it names.
        """
        run = self._run
        if run is True:
            wandb = sys.modules.get("wandb")
            run = wandb.run if wandb is not None else None
        if run is None:
            return
        if self._begun is not run:
            run.define_metric(PREFIX + "step")
            run.define_metric(PREFIX + "*", step_metric=PREFIX + "step")
            self._begun = run
        numbers = {PREFIX + name: value for name, value in reading.scalars()}
        run.log({PREFIX + "step": reading.step, **numbers}, commit=False)

    def close(self) -> None:
        """The run is the program's."""
