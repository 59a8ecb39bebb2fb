"""How much `dtlint check` reports over real code, and a sample of it to be read.

    python tests/benchmarks/static_findings.py SRC [SRC ...] [--sample 80] [--seed 0] [--select CODES] [--preview]

Each SRC is a directory of Python files, such as an unpacked wheel. Prints for each its lines, its findings of severity
error or warning and how many that is in 1,000 lines, then the same by rule, then the sample: each finding with the lines
around it, for a person to say whether it is true.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

AROUND = 6
"""Lines of source shown on each side of a sampled finding."""


def findings(source: Path, select: str | None, preview: bool) -> list[dict[str, Any]]:
    """What `dtlint check` reports there under its own settings, information aside."""
    command = [
        sys.executable,
        "-m",
        "dtlint",
        "check",
        "--isolated",
        "--no-cache",
        "--exit-zero",
        "--output-format",
        "json",
    ]
    selected = ["--select", select] if select else []
    selected += ["--preview"] if preview else []
    done = subprocess.run([*command, *selected, str(source)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dtlint check {source} failed: {done.stderr.strip()}")
    reported: list[dict[str, Any]] = json.loads(done.stdout)
    return [found for found in reported if found["severity"] != "info"]


def lines_of(source: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in source.rglob("*.py"))


def shown(found: dict[str, Any]) -> str:
    row = found["location"]["row"]
    text = Path(found["filename"]).read_text(encoding="utf-8", errors="replace").splitlines()
    first = max(row - AROUND - 1, 0)
    around = "\n".join(
        f"{'>' if number == row else ' '}{number:5d} {line}"
        for number, line in enumerate(text[first : found["end_location"]["row"] + AROUND], first + 1)
    )
    return f"{found['filename']}:{row}: {found['code']} {found['message']}\n{around}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--select")
    parser.add_argument("--preview", action="store_true", help="opt-in rules and conditional findings, too")
    arguments = parser.parse_args()
    every: list[dict[str, Any]] = []
    lines = 0
    print(f"{'package':36} {'lines':>8} {'findings':>8} {'per 1,000':>9}")
    for source in arguments.sources:
        found, size = findings(source, arguments.select, arguments.preview), lines_of(source)
        every += found
        lines += size
        print(f"{source.name:36} {size:8,} {len(found):8} {len(found) / max(size, 1) * 1000:9.2f}")
    print(f"{'together':36} {lines:8,} {len(every):8} {len(every) / max(lines, 1) * 1000:9.2f}")
    for (code, name), count in sorted(Counter((found["code"], found["name"]) for found in every).items()):
        print(f"  {code} {name}: {count}")
    dice = random.Random(arguments.seed)
    for found in dice.sample(every, min(arguments.sample, len(every))):
        print()
        print(shown(found))


if __name__ == "__main__":
    main()
