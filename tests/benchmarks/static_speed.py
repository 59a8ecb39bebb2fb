"""What `dtlint check` costs, in CPU time, as ratios to what Python itself needs to parse the same files.

    python tests/benchmarks/static_speed.py SRC [SRC ...]

Each SRC is a directory of Python files, such as an unpacked wheel. For each it prints the CPU time (user and system) of

- cold: a check without the cache, against `ast.parse` over the same files in one process, timed before it and behind it:
  the median of several rounds, for machines are faster in one minute than in the next. Once in as many processes as
  dtlint takes by itself, with what they take by the clock, and once in one process on the core of `ast.parse`. Cores that
  share a cache or a clock are slower together than alone, which counts as CPU time of theirs: that is the difference,
- warm: a second check with the cache filled, against the same,
- the peak memory of one process,

and then of one small file without a finding against `python -c "import click"`, of one with a finding, and of one whose
fix needs libcst to tell where parentheses and comments stand. Where
torchfix is installed its time is printed too; `--torchfix` runs it (minutes on a large tree).
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

CLEAN = "import torch\n\n\ndef double(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n"
FAULTY = CLEAN + "\n\nx = torch.randn(3)\nx.type(torch.float16, inplace=True)\n"
INTRICATE = FAULTY.replace("(torch.float16,", "(\n    torch.float16,  # half as long\n   ")


def cpu(command: list[str], cwd: Path) -> float:
    """The CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, cwd=cwd, env=usual, capture_output=True, text=True, check=False)
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
    """The largest resident memory, in MB, of a command run in one process."""
    code = f"import resource, subprocess; subprocess.run({command!r}, capture_output=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def measure_tree(source: Path, torchfix: bool, rounds: int) -> None:
    check = [sys.executable, "-m", "dtlint", "check", str(source), "--exit-zero", "--output-format", "concise"]
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        cold = [*check, "--no-cache"]
        parses, usual, alone, clock = [parsed(source)[0]], [], [], []
        for _ in range(rounds):
            begin = time.perf_counter()
            all_cores = cpu(cold, work)
            clock.append(time.perf_counter() - begin)
            with one_core():
                single = cpu(cold, work)
            parse, lines = parsed(source)
            beside = (parses[-1] + parse) / 2
            usual.append(all_cores / beside)
            alone.append(single / beside)
            parses.append(parse)
        parse = statistics.median(parses)
        cpu(check, work)
        warm = cpu(check, work)
        memory = peak_memory(cold, work)
        print(f"{source.name}: {lines:,} lines, ast.parse {parse:.2f} s, {rounds} rounds")
        for ratios, what in (
            (usual, f"as it comes, {cores()} cores, {statistics.median(clock):.2f} s by the clock"),
            (alone, "one process on one core"),
        ):
            ratio = statistics.median(ratios)
            spread = f", {min(ratios):.2f} to {max(ratios):.2f}" if rounds > 1 else ""
            print(f"  cold {ratio * parse:6.2f} s = {ratio:.2f} x ast.parse ({what}{spread})")
        print(f"  warm {warm:6.2f} s = {warm / parse:.2f} x ast.parse")
        print(f"  peak memory of one process {memory:.0f} MB")
        if torchfix and shutil.which("torchfix"):
            other = cpu(["torchfix", str(source)], work)
            print(f"  torchfix {other:.2f} s = {other / (statistics.median(usual) * parse):.0f} x dtlint")


def measure_file(rounds: int = 9) -> None:
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "clean.py").write_text(CLEAN)
        check = [sys.executable, "-m", "dtlint", "check"]
        pairs = [
            (cpu([*check, "clean.py"], work), cpu([sys.executable, "-c", "import click"], work)) for _ in range(rounds)
        ]
        ratio = statistics.median(ours / click for ours, click in pairs)
        print(f"one clean file: {statistics.median(ours for ours, _ in pairs):.3f} s = {ratio:.2f} x `import click`")
        for text, what in ((FAULTY, "a finding"), (INTRICATE, "a finding that needs libcst")):
            (work / "faulty.py").write_text(text)
            faulty = statistics.median(cpu([*check, "--no-cache", "faulty.py"], work) for _ in range(rounds))
            print(f"one file with {what}: {faulty:.3f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, help="directories of Python files")
    parser.add_argument("--rounds", type=int, default=3, help="how often a tree is checked without the cache")
    parser.add_argument("--torchfix", action="store_true", help="time torchfix too")
    args = parser.parse_args()
    for source in args.sources:
        measure_tree(source.resolve(), args.torchfix, max(args.rounds, 1))
    measure_file()


if __name__ == "__main__":
    main()
