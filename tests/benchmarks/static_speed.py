"""What `dtlint check` costs, in CPU time and memory, beside what is promised of it.

    python tests/benchmarks/static_speed.py [SRC ...]

Each SRC is a directory of Python files, such as an unpacked wheel. For each it prints, and says pass or fail of each:

- cold: a check without the cache, against `ast.parse` over the same files in one process, timed before it and behind it:
  the median of several rounds, for machines are faster in one minute than in the next. It is the CPU time, user and
  system, of all processes that dtlint takes by itself, and once that of one process on the core of `ast.parse`: cores that
  share a cache or a clock are slower together than alone, which counts as CPU time of theirs,
- warm: a second check with the cache filled, against the same,
- the peak memory of the largest process.

Then come a project of 1,000 files that it writes itself, in layers that import one another: a check after a leaf file has
changed, and one after a function that all layers rest on returns another dtype; a clean file against
`python -c "import click"`; and, for information, a file with a finding and one whose fix needs libcst. It exits with 1
where something fails. Where torchfix is installed, `--torchfix` times it too (minutes on a large tree).
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

COLD, WARM = 8.0, 0.15
"""Times `ast.parse`."""
LEAF, SIGNATURE = 0.5, 5.0
"""Seconds of CPU after a change, in a project of 1,000 files."""
CLICK = 3.0
"""Times `import click`."""
MEMORY = 500.0
"""MB a process."""

CLEAN = "import torch\n\n\ndef double(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
FAULTY = CLEAN + "\n\nx = torch.randn(3)\nx.type(torch.float16, inplace=True)\n"
INTRICATE = FAULTY.replace("(torch.float16,", "(\n    torch.float16,  # half as long\n   ")

BASE = "import torch\n\n\ndef scale(x: torch.Tensor) -> torch.Tensor:\n    return x.to(torch.float32)\n"
LAYER = """import torch
from torch import nn

from {above} import scale as scaled


def scale(x: torch.Tensor) -> torch.Tensor:
    return scaled(x) * 2


class Block{number}(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        hidden = self.down(torch.relu(self.up(self.norm(x))))
        if mask is not None:
            hidden = hidden.masked_fill(mask == 0, 0.0)
        return scale(x) + hidden.to(x.dtype)
"""
FILES, WIDE = 1_000, 40
"""Files of the project, and those of one layer: each rests on one of the layer before."""

_failed: list[str] = []


def verdict(what: str, value: float, most: float, unit: str, more: str = "") -> None:
    """Print a figure beside what it may be."""
    good = value <= most
    if not good:
        _failed.append(what)
    print(f"  {'pass' if good else 'FAIL'}  {what}: {value:.2f}{unit}, at most {most:g}{unit}{more}", flush=True)


def environment() -> dict[str, str]:
    """As dtlint is installed: with its bytecode kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu(command: list[str], cwd: Path) -> float:
    """The CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=cwd, env=environment(), capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@contextmanager
def one_core() -> Iterator[None]:
    """While this lasts, this process and those that it starts run on one core, where the system can be told so: dtlint
    then takes one process."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    usual = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(usual)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usual)


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse_time(source: Path) -> tuple[float, int]:
    """The CPU seconds of `ast.parse` over a tree, reading included, and its lines."""
    lines = 0
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in sorted(source.rglob("*.py")):
            data = path.read_bytes()
            lines += data.count(b"\n")
            try:
                ast.parse(data)
            except SyntaxError:
                continue
    return time.process_time() - start, lines


def parsed(source: Path) -> tuple[float, int]:
    """The same, on one core."""
    with one_core():
        return parse_time(source)


def peak_memory(command: list[str], cwd: Path) -> float:
    """The largest resident memory, in MB, of the processes of a command."""
    code = f"import resource, subprocess; subprocess.run({command!r}, capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def checking(*what: str) -> list[str]:
    return [sys.executable, "-m", "dtlint", "check", "--exit-zero", "--output-format", "concise", *what]


def measure_tree(source: Path, torchfix: bool, rounds: int, alone: bool) -> None:
    check = checking(str(source))
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        cold = [*check, "--no-cache"]
        parses, usual, single, clock = [parsed(source)[0]], [], [], []
        for _ in range(rounds):
            begin = time.perf_counter()
            all_cores = cpu(cold, work)
            clock.append(time.perf_counter() - begin)
            one = 0.0
            if alone:
                with one_core():
                    one = cpu(cold, work)
            parse, lines = parsed(source)
            beside = (parses[-1] + parse) / 2
            usual.append(all_cores / beside)
            single.append(one / beside)
            parses.append(parse)
        parse = statistics.median(parses)
        print(f"{source.name}: {lines:,} lines, ast.parse {parse:.2f} s, {rounds} rounds")
        spread = f", {min(usual):.1f} to {max(usual):.1f}" if rounds > 1 else ""
        where = f" ({cores()} cores, {statistics.median(clock):.1f} s by the clock{spread})"
        verdict("cold", statistics.median(usual), COLD, " x ast.parse", where)
        if alone:
            print(f"        cold in one process on one core: {statistics.median(single):.2f} x ast.parse")
        cpu(check, work)
        warm = [cpu(check, work) / parsed(source)[0] for _ in range(max(rounds, 3))]
        verdict("warm", statistics.median(warm), WARM, " x ast.parse")
        verdict("peak memory of a process", peak_memory(cold, work), MEMORY, " MB")
        if torchfix and shutil.which("torchfix"):
            other = cpu(["torchfix", str(source)], work)
            print(f"        torchfix {other:.2f} s = {other / (statistics.median(usual) * parse):.0f} x dtlint")


def write_project(root: Path) -> Path:
    """A project in layers of files, and its last file, which nothing imports."""
    package = root / "net"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "base.py").write_text(BASE)
    (root / "pyproject.toml").write_text('[project]\nname = "net"\nversion = "1"\n')
    path = package / "base.py"
    for number in range(FILES - 2):
        above = "net.base" if number < WIDE else f"net.block_{number - WIDE}"
        path = package / f"block_{number}.py"
        path.write_text(LAYER.format(above=above, number=number))
    return path


def measure_project(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        leaf = write_project(root)
        check = checking("net")
        print(f"a project of {FILES:,} files, each of which rests on one of {WIDE} before it")
        cpu(check, root)
        warm = statistics.median(cpu(check, root) for _ in range(rounds))
        text, base = leaf.read_text(), leaf.with_name("base.py")
        changed: list[float] = []
        for count in range(rounds):
            leaf.write_text(f"{text}\n\nLIMIT = {count}\n")
            changed.append(cpu(check, root))
        verdict("a leaf file has changed", statistics.median(changed), LEAF, " s", f" ({warm:.2f} s where none has)")
        base.write_text(BASE.replace("torch.float32", "torch.float64"))
        verdict("a signature has changed that all rest on", cpu(check, root), SIGNATURE, " s")


def measure_file(rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "clean.py").write_text(CLEAN)
        check = checking()
        cpu([*check, "clean.py"], work)
        pairs = [
            (cpu([*check, "clean.py"], work), cpu([sys.executable, "-c", "import click"], work)) for _ in range(rounds)
        ]
        ratio = statistics.median(ours / click for ours, click in pairs)
        print(f"one clean file: {statistics.median(ours for ours, _ in pairs):.3f} s")
        verdict("a clean file", ratio, CLICK, " x `import click`")
        for text, what in ((FAULTY, "a finding"), (INTRICATE, "a finding that needs libcst")):
            (work / "faulty.py").write_text(text)
            faulty = statistics.median(cpu([*check, "--no-cache", "faulty.py"], work) for _ in range(rounds))
            print(f"        one file with {what}: {faulty:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, help="directories of Python files")
    parser.add_argument("--rounds", type=int, default=3, help="how often a tree is checked without the cache")
    parser.add_argument("--alone", action="store_true", help="check trees on one core, too")
    parser.add_argument("--torchfix", action="store_true", help="time torchfix too")
    args = parser.parse_args()
    for source in args.sources:
        measure_tree(source.resolve(), args.torchfix, max(args.rounds, 1), args.alone)
    measure_project(max(args.rounds, 1))
    measure_file()
    sys.exit(1 if _failed else 0)


if __name__ == "__main__":
    main()
