"""The parts of the documentation that say what the program does: the table of rules, and what commands really print.

A part stands between `<!-- generated: WHAT -->` and `<!-- end -->`, where WHAT is `rules` or a dtlint command line, or several
with ` && ` between them. Behind `generated in FOLDER:` it is run in a copy of that folder, which is named as the page sees it.
`python tests/readme.py docs/*.md` writes them anew; a test compares them.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.document import document
from dtlint.rule import discover

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.rule import Rule

ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
"""So that pytest prints the same whatever else is installed."""

__all__ = ["PART", "generate", "made", "renew", "table"]

SHOWN_OTHERWISE = ("FORCE_COLOR", "CI", "BUILD_NUMBER", "PYTEST_ADDOPTS")
"""What changes how much is printed, of what, and in which colours: pytest shortens no message where CI is set."""

PART = re.compile(
    r"(?P<head><!-- generated(?: in (?P<where>\S+))?: (?P<what>[^\n]*?) -->\n)(?P<body>.*?)(?P<tail><!-- end -->)",
    re.DOTALL,
)


def renew(text: str, root: Path) -> str:
    """The text of a page with all of its generated parts made anew; commands run in `root`."""
    return PART.sub(lambda part: part["head"] + made(part, root) + part["tail"], text)


def made(part: re.Match[str], root: Path) -> str:
    """The body of a part, where its command is run."""
    if part["where"] is None:
        return generate(part["what"], root)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copytree(root / part["where"], copy, ignore=ignore_patterns(".dtlint_cache", "__pycache__"))
        return generate(part["what"], copy)


def generate(what: str, root: Path) -> str:
    """One part: the table of rules, or commands as they are typed with all that they print."""
    if what == "rules":
        return table(discover().values())
    printed = [run(command, root) for command in what.split(" && ")]
    if "--new" in what.split():
        return f"```python\n{printed[0]}```\n"
    shown = (
        f"$ {command}\n{text.rstrip()}".rstrip() for command, text in zip(what.split(" && "), printed, strict=True)
    )
    return "```console\n" + "\n".join(shown) + "\n```\n"


def run(command: str, root: Path) -> str:
    """All that a dtlint command prints."""
    program, *arguments = shlex.split(command)
    if program not in ("dtlint", "pytest"):
        raise ValueError(f"only dtlint itself and its plugin are run for the documentation, not {program!r}")
    if program == "pytest":
        arguments = ["-p", "dtlint.pytest_plugin", "-p", "no:cacheprovider", *arguments]
    plain = {name: value for name, value in os.environ.items() if name not in SHOWN_OTHERWISE}
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=root,
        env={**plain, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"} | ALONE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    if done.returncode > 1:
        raise ValueError(f"{command!r} ended with exit code {done.returncode}")
    return done.stdout


def table(rules: Iterable[type[Rule]]) -> str:
    """The rules as a Markdown table."""
    rows = ["| Code | Name | Severity | Fix | What it finds |", "|---|---|---|---|---|"]
    for rule in rules:
        fix = "" if rule.fix is Applicability.NONE else rule.fix.value
        summary = document(rule).summary.replace("|", r"\|") + ("" if rule.default else " *(opt-in)*")
        rows.append(f"| {rule.code} | {rule.name} | {rule.severity.value} | {fix} | {summary} |")
    return "\n".join(rows) + "\n"


def main(arguments: list[str]) -> None:
    """Renew each page named, in place."""
    for name in arguments:
        file = Path(name)
        file.write_text(renew(file.read_text(encoding="utf-8"), file.resolve().parent), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
