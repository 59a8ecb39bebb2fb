"""Checks and fixes mutated copies of real files, and holds each against what dtlint promises.

    python tests/benchmarks/static_fuzz.py SRC [SRC ...] [--count 500] [--seed 0] [--infer]

Each SRC is a directory of Python files. A file is drawn, some of its lines are deleted, doubled, swapped, indented or cut,
and it is checked with every rule and fixed as far as fixes go: nothing may crash, no file may be written that does not
parse, and no comment may be lost. With `--infer` its dtypes are inferred as well. Prints what failed, with the seed that
makes it again, and the slowest files.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "check"))

from test_robust import hold, mutated

from dtlint.infer.claims.reading import claims


def infer(text: str) -> None:
    """Infer the dtypes of a program; one that Python cannot parse is refused, and that is all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(text, encoding="utf-8")
        try:
            claims(path, [Path(folder)])
        except (SyntaxError, ValueError):
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--infer", action="store_true")
    arguments = parser.parse_args()
    sys.setrecursionlimit(12_000)
    files = sorted(file for source in arguments.sources for file in source.rglob("*.py") if file.stat().st_size > 1)
    dice = random.Random(arguments.seed)
    failed = 0
    slowest: list[tuple[float, str]] = []
    for number in range(arguments.count):
        file, seed = dice.choice(files), dice.randrange(1 << 30)
        text = mutated(file.read_text(encoding="utf-8", errors="replace"), seed)
        start = time.process_time()
        try:
            hold(text.encode())
            if arguments.infer:
                infer(text)
        except Exception:
            failed += 1
            print(f"{file} mutated with seed {seed}:\n{traceback.format_exc(limit=-3)}")
        slowest = sorted(
            [*slowest, (time.process_time() - start, f"{file} ({text.count(chr(10))} lines, seed {seed})")]
        )[-5:]
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {arguments.count}, {failed} failed", end="", file=sys.stderr)
    print(f"{arguments.count} mutated files, {failed} failed")
    for seconds, what in reversed(slowest):
        print(f"{seconds:6.2f} s  {what}")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
