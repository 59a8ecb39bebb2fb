"""How many real fixes of dtype and precision bugs `dtlint check` would have called for, and how much it says beside them.

    python tests/benchmarks/real_fixes.py extract MIRRORS OUT [--rows FILE]
    python tests/benchmarks/real_fixes.py score OUT [--rows FILE] [--half read|held] [--projects] [--list]

`fixes/gathered.jsonl` points at fixes in public repositories, a row each; `fixes/README.md` explains its fields. `extract`
writes the Python and settings files of the commits before and after each fix; MIRRORS holds the git directory of `owner/name`
as `owner+name/repo`. `score` checks the file that a fix changed, among the files of its commit; with --projects all of them,
which takes hours, so that callers in other files are in view.

hit       a finding on the lines that the fix changed, or on a line beside them
vanished  a hit that is gone after the fix: the rule is broken on fewer lines of the same text
led       a finding elsewhere that is gone after the fix, one of whose steps is on the lines that the fix changed: it stands at
          the operator, and the fix is on the way there. These are the lines of the row, and what else the commit changed in the
          functions that they stand in. Rows that have vanished, or are led to, are counted beside the others
noise     findings elsewhere in the files before the fixes, per 1,000 lines, of the rows that are scored without assumptions

A row that is wrong for some inputs only is scored under its assumption; one without any is listed and not counted.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import json
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable
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
    """A finding in the file that a fix changed: its rule, its first and last line, the text of the first, and the first and
    last lines of the steps that lead there in the file."""

    code: str
    first: int
    last: int
    text: str
    steps: tuple[tuple[int, int], ...] = ()

    def stands_on(self, lines: Iterable[tuple[int, int]]) -> bool:
        """Is it on some lines, or on one beside them?"""
        return _meet([(self.first, self.last)], lines)

    def is_led_over(self, lines: Iterable[tuple[int, int]]) -> bool:
        """Is one of its steps on some lines, or on one beside them?"""
        return _meet(self.steps, lines)


def _meet(some: Iterable[tuple[int, int]], others: Iterable[tuple[int, int]]) -> bool:
    others = list(others)
    return any(
        first <= other_last + BESIDE and last >= other_first - BESIDE
        for first, last in some
        for other_first, other_last in others
    )


def changed(before: str, after: str, lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines that a fix changed in the functions in which some lines stand, these included; where it only added lines,
    those around the place."""
    try:
        tree = ast.parse(before)
    except SyntaxError:
        return lines
    functions = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    around = [max((one for one in functions if one[0] <= line <= one[1]), default=(line, line)) for line, _ in lines]
    found = list(lines)
    for kind, first, end, _, _ in difflib.SequenceMatcher(
        None, before.split("\n"), after.split("\n"), autojunk=False
    ).get_opcodes():
        place = (first, first + 1) if kind == "insert" else (first + 1, end)
        if kind != "equal" and any(one[0] <= place[0] and place[1] <= one[1] for one in around):
            found.append(place)
    return found


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

    def is_here(one: dict[str, Any]) -> bool:
        return (folder / one["filename"]).resolve() == (folder / path).resolve()

    def lines(one: dict[str, Any]) -> tuple[int, int]:
        return one["location"]["row"], one["end_location"]["row"]

    return [
        Finding(
            one["code"],
            *lines(one),
            texts[lines(one)[0] - 1].strip(),
            tuple(lines(note) for note in one["notes"] if "step" in note and is_here(note)),
        )
        for one in json.loads(done.stdout)
        if is_here(one)
    ]


def score(rows: list[Row], out: Path, whole: bool, listed: bool) -> None:
    count: Counter[str] = Counter()
    for row in rows:
        always = row["wrong"] == "always"
        if not always and not row["assume"]:
            continue
        before = findings(out / row["id"] / "before", row["path"], row["assume"], whole)
        lines = [(first, last) for first, last in row["lines"]]
        hits = {one for one in before if one.stands_on(lines)}
        after = findings(out / row["id"] / "after", row["path"], row["assume"], whole)
        gone = Counter((one.code, one.text) for one in before) - Counter((one.code, one.text) for one in after)
        vanished = {one for one in hits if (one.code, one.text) in gone}
        text, fixed = (
            (out / row["id"] / name / row["path"]).read_text("utf-8", "replace") for name in ("before", "after")
        )
        meant = changed(text, fixed, lines)
        led = {one for one in before if one not in hits and (one.code, one.text) in gone and one.is_led_over(meant)}
        for kind in ("all wrong always",) if always else ("all under assumptions", row["assume"][0]):
            count[f"{kind}: rows"] += 1
            count[f"{kind}: hit"] += bool(hits)
            count[f"{kind}: vanished"] += bool(vanished)
            count[f"{kind}: vanished or led"] += bool(vanished or led)
        if always:
            count["noise: findings"] += len(before) - len(hits)
            count["noise: lines"] += text.count("\n")
        if listed:
            mark = "VANISHED" if vanished else "LED" if led else "hit" if hits else "-"
            codes = " ".join(sorted({one.code for one in hits | led}))
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
