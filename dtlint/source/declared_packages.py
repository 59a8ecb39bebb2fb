"""Which releases of frameworks a project declares to run with, read from its packaging metadata and lists of requirements.

Several declarations that lie in one directory are one promise: together they allow whatever one of them allows.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["FRAMEWORKS", "UNKNOWN", "Packages", "Release", "Releases", "releases_of"]

Release: TypeAlias = tuple[int, int]
"""Major and minor."""

FRAMEWORKS = ("accelerate", "deepspeed", "diffusers", "lightning", "peft", "pytorch-lightning", "transformers", "trl")
"""The packages whose releases decide what a precision setting, or an argument, does."""

_FILES = frozenset({"pyproject.toml", "setup.py", "setup.cfg", "environment.yml", "environment.yaml"})
_REPOSITORIES = frozenset({".git", ".hg"})
_CLAUSE = re.compile(r"(===|~=|==|!=|<=|>=|<|>|=|\^|~)\s*v?(\d+)(?:\.(\d+|\*))?((?:\.[\w*]+)*)")


class Releases(NamedTuple):
    """The releases that are allowed: from one on, up to and without another; None where there is no such end."""

    oldest: Release | None = None
    below: Release | None = None

    def all_from(self, release: Release) -> bool:
        """Are all that are allowed this one or newer?"""
        return self.oldest is not None and self.oldest >= release

    def all_before(self, release: Release) -> bool:
        """Are all that are allowed older?"""
        return self.below is not None and self.below <= release


UNKNOWN = Releases()

Declared: TypeAlias = tuple[tuple[str, Releases], ...]
"""What a project declares, by package."""


class Packages:
    """What the directories of a run declare of the frameworks. Each is read once."""

    def __init__(self) -> None:
        self._known: dict[Path, Declared] = {}

    def of(self, directory: Path) -> Declared:
        """The declarations in the nearest directory upward that has any, up to the root of the repository."""
        if directory not in self._known:
            try:
                names = set(os.listdir(directory))
            except OSError:
                names = set()
            own = tuple(_declared(directory, names))
            ends = directory.parent == directory or not names.isdisjoint(_REPOSITORIES)
            self._known[directory] = own if own or ends else self.of(directory.parent)
        return self._known[directory]


def _declared(directory: Path, names: set[str]) -> Iterator[tuple[str, Releases]]:
    texts = []
    for name in sorted(names):
        if name in _FILES or (name.startswith("requirements") and name.endswith(".txt")):
            try:
                texts.append((directory / name).read_text(encoding="utf-8-sig", errors="replace"))
            except OSError:
                continue
    for package in FRAMEWORKS if texts else ():
        allowed = [releases_of(found) for text in texts for found in _specifiers(package, text)]
        if allowed:
            oldest = [one.oldest for one in allowed if one.oldest is not None]
            below = [one.below for one in allowed if one.below is not None]
            bounds = (
                min(oldest) if len(oldest) == len(allowed) else None,
                max(below) if len(below) == len(allowed) else None,
            )
            yield package, Releases(*bounds)


def _specifiers(package: str, text: str) -> Iterator[str]:
    """What a text says of the versions of a package, in the forms of pip, poetry and conda."""
    if package not in text:
        return
    for line in text.splitlines():
        if package in line and not line.lstrip().startswith("#"):
            found = _requirement(package).search(line)
            if found is not None:
                yield found[1] or found[2] or ""


@cache
def _requirement(package: str) -> re.Pattern[str]:
    """A requirement of a package: `peft>=0.9,<1`, `"peft[extra]==0.9"`, `peft = "^0.9"`; the package alone, too."""
    name = re.escape(package)
    return re.compile(
        rf"(?:^|[\s\"'\[,-])(?<![\w.]-){name}(?:\[[^\]]*\])?[ \t]*"
        rf"(?:=[ \t]*[\"']([^\"']*)[\"']|((?:===|~=|==|!=|<=|>=|<|>|=)[^;#\"']*)?(?=$|[\s;#\"',]))"
    )


def releases_of(specifier: str) -> Releases:
    """The releases that a specifier allows: `>=4.40,<5`, `==1.9.5`, `^0.7`, `~=2.1`."""
    oldest: list[Release] = []
    below: list[Release] = []
    for operator, major, minor, rest in _CLAUSE.findall(specifier):
        first = int(major), int(minor) if minor.isdecimal() else 0
        following = (first[0], first[1] + 1) if minor.isdecimal() else (first[0] + 1, 0)
        if operator in (">=", ">", "==", "===", "=", "~=", "^", "~"):
            oldest.append(first)
        if operator == "<":
            below.append(following if rest.strip(".0") else first)
        elif operator in ("<=", "==", "===", "=", "~"):
            below.append(following)
        elif operator == "~=":
            below.append(following if rest else (first[0] + 1, 0))
        elif operator == "^":
            below.append((first[0] + 1, 0) if first[0] else following)
    return Releases(max(oldest, default=None), min(below, default=None))
