"""How many of the projects whose bug stands between two files `dtlint check` finds, and in how many repaired ones it speaks.

    python tests/benchmarks/two_files.py [--list] [--select CODES]

Each project of fixtures/projects names the lines on which a finding is acceptable. A finding on one of these, or on a line
beside it, that is gone in the repaired twin counts as a hit. Findings of information, and those of the families DT5 and DT8,
are left out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECTS = ROOT / "fixtures" / "projects"
BESIDE = 0
"""Lines on each side of an acceptable one that count as well."""


def findings(folder: Path, select: str | None) -> list[tuple[str, int, str, str]]:
    """What `dtlint check` reports in a folder: file, line, code, message."""
    command = [sys.executable, "-m", "dtlint", "check", "--isolated", "--no-cache", "--exit-zero"]
    command += ["--output-format", "json", *(["--select", select] if select else []), "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"dtlint check {folder} failed: {done.stderr.strip()}")
    return [
        (
            Path(one["filename"]).resolve().relative_to(folder.resolve()).as_posix(),
            one["location"]["row"],
            one["code"],
            one["message"],
        )
        for one in json.loads(done.stdout)
        if one["severity"] != "info" and not one["code"].startswith(("DT5", "DT8"))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print each project with what is found in it")
    parser.add_argument("--select", help="rules, as for `dtlint check`")
    options = parser.parse_args()
    known = json.loads((PROJECTS / "projects.json").read_text(encoding="utf-8"))
    count: Counter[str] = Counter()
    for project in known:
        folder = PROJECTS / project["name"]
        if project["kind"] == "clean":
            spoken = findings(folder / "clean", options.select)
            count["clean"] += 1
            count["clean spoken of"] += bool(spoken)
            found = False
        else:
            bug, spoken = findings(folder / "bug", options.select), findings(folder / "fixed", options.select)
            places = {(place.rpartition(":")[0], int(place.rpartition(":")[2])) for place in project["places"]}
            texts = {(file, code, message) for file, _, code, message in spoken}
            hits = [
                one
                for one in bug
                if any(one[0] == file and abs(one[1] - line) <= BESIDE for file, line in places)
                and (one[0], one[2], one[3]) not in texts
            ]
            found = bool(hits)
            count["projects"] += 1
            count["found"] += found
            count[f"{project['kind']} found"] += found
            count[f"{project['kind']} projects"] += 1
            count["twins spoken of"] += bool(spoken)
        if options.list:
            print("HIT " if found else "    ", project["name"], project["kind"])
            for one in bug if project["kind"] != "clean" else ():
                print("       bug:  ", *one[:3], one[3][:110])
            for one in spoken:
                print("       twin: ", *one[:3], one[3][:110])
    for name, number in sorted(count.items()):
        print(f"{name}: {number}")


if __name__ == "__main__":
    main()
