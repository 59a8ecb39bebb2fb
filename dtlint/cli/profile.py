"""`dtlint profile`: what a file of torch.profiler tells of device time by dtype; and TensorBoard on a folder of them."""

from __future__ import annotations

import os
import socket
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dtlint.trace.marks import Profiled

__all__ = ["Profiling", "command"]

EPILOG = """\b
Examples:
  dtlint trace --profile runs/ train.py      writes runs/train_0.TIME.pt.trace.json
  dtlint profile runs/                       device time by dtype, and on Tensor Cores, of the newest file there
  dtlint profile runs/ --tensorboard         the same files in TensorBoard, by its profiler plugin
  dtlint profile other.pt.trace.json.gz      any file of torch.profiler

\b
The files open in Perfetto, too: https://ui.perfetto.dev, which runs in the browser and uploads nothing.
Exit codes: 0, or 2 for wrong usage.
"""


class Profiling:
    """The folder that `dtlint trace --profile` writes into."""

    def __init__(self, folder: str, script: str, rank: int, quiet: bool) -> None:
        """Make the folder, before the program runs.

        Raises:
            click.UsageError: it cannot be made, or nothing can be written there.
        """
        from tempfile import TemporaryFile

        self.folder, self.rank, self.quiet = Path(folder).absolute(), rank, quiet
        self.name = Path(script).stem or "run"
        self._profiled: Profiled | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise click.UsageError(
                f"--profile: cannot write into {folder}: {error.strerror or error}; name another folder"
            ) from None

    def take(self, profiled: Profiled) -> None:
        """What the run left."""
        self._profiled = profiled

    def write(self) -> int:
        """Write the file with dtlint's tracks, and say where it is. 2 if there is none."""
        profiled, self._profiled = self._profiled, None
        if profiled is None:
            click.echo("dtlint: torch was not traced, so there is no profile", err=True)
            return 2
        if not profiled.path:
            click.echo(f"dtlint: there is no profile: {profiled.missed or 'no step was traced'}", err=True)
            return 2
        from dtlint.profile.device import device_time
        from dtlint.profile.file import SUFFIX, TraceFileError, load_trace, save_trace
        from dtlint.profile.tracks import with_tracks
        from dtlint.report.profile_text import write_device

        raw = Path(profiled.path)
        file = self.folder / f"{self.name}_{self.rank}.{time.time_ns()}{SUFFIX}"
        try:
            trace = with_tracks(load_trace(raw), profiled.marks)
            save_trace(trace, file)
        except (OSError, TraceFileError) as error:
            click.echo(f"dtlint: the profile could not be written: {error}", err=True)
            return 2
        finally:
            raw.unlink(missing_ok=True)
        if self.quiet:
            return 0
        if profiled.missed:
            click.echo(f"dtlint: of the profile: {profiled.missed}", err=True)
        if profiled.dropped:
            click.echo(f"dtlint: of the profile: {profiled.dropped:,} casts and promotions were too many", err=True)
        found = device_time(trace["traceEvents"])
        if found is not None:
            write_device(found, "text", sys.stderr)
        steps = f"{profiled.steps} step{'s' * (profiled.steps != 1)}, " if profiled.steps else ""
        events = f"{len(profiled.marks):,} event{'s' * (len(profiled.marks) != 1)} of dtlint's"
        click.echo(f"Profile: {file} ({steps}{events}); open it in https://ui.perfetto.dev", err=True)
        return 0


@click.command("profile", epilog=EPILOG)
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option("--tensorboard", is_flag=True, help="Show the folder in TensorBoard: needs dtlint[tensorboard].")
@click.option("--port", type=click.IntRange(1, 65535), default=6006, show_default=True, help="TensorBoard's port.")
def command(path: Path, output_format: str, tensorboard: bool, port: int) -> None:
    """Device time by dtype and on Tensor Cores, from PATH: a file of torch.profiler, or a folder of which the newest is taken."""
    from dtlint.profile.device import device_time
    from dtlint.profile.file import TraceFileError, load_trace
    from dtlint.report.profile_text import write_device

    if tensorboard:
        _show(path, port)
    try:
        trace = load_trace(_file(path))
    except TraceFileError as error:
        raise click.UsageError(str(error)) from None
    write_device(device_time(trace["traceEvents"]), output_format, sys.stdout)


def _file(path: Path) -> Path:
    """The file itself, or the newest of a folder."""
    if not path.is_dir():
        return path
    from dtlint.profile.file import SUFFIX

    files = [file for file in path.rglob(f"*{SUFFIX}*") if file.name.endswith((SUFFIX, f"{SUFFIX}.gz"))]
    if not files:
        raise click.UsageError(f"no file in {path} ends in {SUFFIX}; dtlint trace --profile {path} SCRIPT writes one")
    return max(files, key=lambda file: file.stat().st_mtime_ns)


def _show(path: Path, port: int) -> None:
    """Become TensorBoard.

    Raises:
        click.UsageError: it is not installed, its port is taken, or there is no such folder.
    """
    if not path.is_dir():
        raise click.UsageError(f"{path} is no folder; --tensorboard shows a folder of profiles")
    for module, package in (("tensorboard", "tensorboard"), ("torch_tb_profiler", "torch-tb-profiler")):
        if find_spec(module) is None:
            raise click.UsageError(
                f"{package} is not installed here; install it with: pip install 'dtlint[tensorboard]'"
            )
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            raise click.UsageError(f"port {port} is in use; give another with --port") from None
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "tensorboard.main", "--logdir", str(path), "--port", str(port)])
