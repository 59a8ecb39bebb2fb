"""How many real fixes of dtype and precision bugs `dtlint check` would have called for, and how much it says beside them.

    python tests/benchmarks/real_fixes.py extract MIRRORS OUT [--rows FILE]
    python tests/benchmarks/real_fixes.py score OUT [--rows FILE] [--half read|held] [--projects] [--list]

`fixes/gathered.jsonl` points at fixes in public repositories, a row each; `fixes/README.md` explains its fields. `extract`
writes the Python and settings files of the commits before and after each fix; MIRRORS holds the git directory of `owner/name`
as `owner+name/repo`. `score` checks the file that a fix changed, among the files of its commit; with --projects all of them,
which takes hours, so that callers in other files are in view.

hit       a finding on the lines that the fix changed, or on a line beside them
vanished  a hit that is gone after the fix: the rule is broken on fewer lines of the same text
noise     findings elsewhere in the files before the fixes, per 1,000 lines, of the rows that are scored without assumptions

A row that is wrong for some inputs only is scored under its assumption; one without any is listed and not counted.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = Path(__file__).with_name("fixes") / "gathered.jsonl"
WANTED = (".py", ".pyi", ".toml", ".cfg", ".yaml", ".yml")
"""What is written of a commit: what `dtlint check` may read."""

AT_ONCE = 200
"""Files of a commit that one call of git is asked for."""

BESIDE = 1
"""Lines on each side of the changed ones that count as well."""

PATIENCE = 600
"""Seconds that the check of one project may take."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A finding in the file that a fix changed: its rule, its first and last line, and the text of the first."""

    code: str
    first: int
    last: int
    text: str


def write_tree(git: Path, commit: str, to: Path) -> None:
    """The wanted files of a commit; those that the mirror lacks are left out."""
    listed = subprocess.run(
        ["git", "--git-dir", git, "ls-tree", "-r", "-z", "--name-only", commit], capture_output=True, check=False
    )
    names = [name for name in listed.stdout.decode(errors="replace").split("\0") if name.endswith(WANTED)]
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        packed = subprocess.run(
            ["git", "--git-dir", git, "archive", commit, "--", *part], capture_output=True, check=False
        )
        if packed.returncode == 0:
            with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
                files.extractall(to, filter="data")


def extract(rows: list[Row], mirrors: Path, out: Path) -> None:
    for row in rows:
        git = mirrors / row["repo"].replace("/", "+") / "repo"
        git = git / ".git" if (git / ".git").is_dir() else git
        for name, commit in (("before", row["parent"]), ("after", row["fix"])):
            folder = out / row["id"] / name
            if not (folder / row["path"]).is_file():
                folder.mkdir(parents=True, exist_ok=True)
                write_tree(git, commit, folder)
            if not (folder / row["path"]).is_file():
                print(f"{row['id']}: {row['path']} is missing in {commit} of {row['repo']}")


def findings(folder: Path, path: str, assume: list[str], whole: bool) -> list[Finding]:
    """What `dtlint check` reports in one file of a project."""
    command = [sys.executable, "-m", "dtlint", "check", "--isolated", "--no-cache", "--exit-zero"]
    command += ["--output-format", "json", *(["--assume", ",".join(assume)] if assume else []), "." if whole else path]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        print(f"{folder}: not done in {PATIENCE} s", file=sys.stderr)
        return []
    if done.returncode:
        raise SystemExit(f"dtlint check {folder / path} failed: {done.stderr.strip()}")
    texts = (folder / path).read_text(encoding="utf-8", errors="replace").split("\n")
    return [
        Finding(
            one["code"], one["location"]["row"], one["end_location"]["row"], texts[one["location"]["row"] - 1].strip()
        )
        for one in json.loads(done.stdout)
        if (folder / one["filename"]).resolve() == (folder / path).resolve()
    ]


def score(rows: list[Row], out: Path, whole: bool, listed: bool) -> None:
    count: Counter[str] = Counter()
    for row in rows:
        always = row["wrong"] == "always"
        if not always and not row["assume"]:
            continue
        before = findings(out / row["id"] / "before", row["path"], row["assume"], whole)
        hits = {
            one
            for one in before
            if any(one.first <= last + BESIDE and one.last >= first - BESIDE for first, last in row["lines"])
        }
        after = findings(out / row["id"] / "after", row["path"], row["assume"], whole)
        gone = Counter((one.code, one.text) for one in before) - Counter((one.code, one.text) for one in after)
        vanished = {one for one in hits if (one.code, one.text) in gone}
        for kind in ("all wrong always",) if always else ("all under assumptions", row["assume"][0]):
            count[f"{kind}: rows"] += 1
            count[f"{kind}: hit"] += bool(hits)
            count[f"{kind}: vanished"] += bool(vanished)
        if always:
            count["noise: findings"] += len(before) - len(hits)
            count["noise: lines"] += (out / row["id"] / "before" / row["path"]).read_bytes().count(b"\n")
        if listed:
            mark = "VANISHED" if vanished else "hit" if hits else "-"
            codes = " ".join(sorted({one.code for one in hits}))
            print(
                row["id"],
                row["half"],
                ",".join(row["assume"]) or row["wrong"],
                mark,
                codes,
                row["kind"],
                row["repo"],
                flush=True,
            )
            for one in before if always else ():
                if one not in hits:
                    print("    elsewhere:", one.code, one.first, one.text[:90])
    for name, number in count.items():
        print(f"{name}: {number}")
    if count["noise: lines"]:
        print(f"noise: {1000 * count['noise: findings'] / count['noise: lines']:.2f} per 1,000 lines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["extract", "score"])
    parser.add_argument("folders", nargs="+", type=Path, help="MIRRORS OUT to extract, OUT to score")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--half", choices=["read", "held"])
    parser.add_argument("--wrong", choices=["always", "sometimes"])
    parser.add_argument("--projects", action="store_true", help="check all files of a commit")
    parser.add_argument("--list", action="store_true", help="print each row")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.rows.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if options.half in (None, row["half"]) and options.wrong in (None, row["wrong"])]
    if options.what == "extract":
        extract(rows, *options.folders)
    else:
        score(rows, options.folders[0], options.projects, options.list)


if __name__ == "__main__":
    main()
