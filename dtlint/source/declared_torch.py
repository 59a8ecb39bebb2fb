"""The oldest torch that a project declares to run on, read from its packaging metadata and its lists of requirements.

Several declarations that lie in one directory are one promise: the oldest of them counts. Nothing is run or installed.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["OLDEST", "Declarations", "Declared", "Release", "oldest_allowed"]

Release: TypeAlias = tuple[int, int]
"""Major and minor."""

OLDEST: Release = (2, 4)
"""The torch that code has to run on where nothing is said: the oldest with all of `torch.amp`, which the advice names."""

_REPOSITORIES = (".git", ".hg")
"""What lies in the root of a repository: nothing above it speaks of the project."""

_FIRST_ON_PYTHON = {
    (3, 8): (1, 4),
    (3, 9): (1, 7),
    (3, 10): (1, 11),
    (3, 11): (1, 13),
    (3, 12): (2, 2),
    (3, 13): (2, 5),
    (3, 14): (2, 9),
}
"""The first torch that was released for each Python."""

_REQUIREMENT = r"(?s)torch\s*(?:\[[^\]]*\])?\s*\(?([^;#()@\[\]]*)\)?\s*(?:[;#].*)?"
_WHEEL = r"torch\s*@\s*\S*/torch-(\d+\.\d+)\S*.*"
_CONDA = r"\s*-\s*[\"']?(?:[\w-]+::)?(?:pytorch|torch)\b(?!-)(?:\[[^\]]*\])?\s*([^\"'#;]*)"
_VERSION = r"v?(?:\d+!)?(\d+)(?:\.(\d+))?[\w.*+=-]*"
_CLAUSE = r"(===|~=|==|!=|<=|>=|<|>|=|\^|~)?\s*(\S+)"
_SETTING = r"\s*python_requires\s*=\s*(\S.*)"
"""Patterns as text: most runs need none of them, and compiling them takes milliseconds."""


class Declared(NamedTuple):
    """A declaration of torch: the oldest release that it allows, and the file that says so."""

    oldest: Release
    file: str


class Declarations:
    """What the directories of a run declare. Each is read once."""

    def __init__(self) -> None:
        self._known: dict[Path, Declared | None] = {}

    def of(self, directory: Path) -> Declared | None:
        """The declaration in the nearest directory upward that has one, up to the root of the repository."""
        if directory not in self._known:
            names = _names(directory)
            own = _declared(directory, names)
            ends = directory.parent == directory or not names.isdisjoint(_REPOSITORIES)
            self._known[directory] = own if own is not None or ends else self.of(directory.parent)
        return self._known[directory]


class _Said(NamedTuple):
    """What one file says: the oldest release that each of its requirements of torch allows, and the oldest Python."""

    torch: tuple[Release | None, ...] = ()
    python: Release | None = None


def _declared(directory: Path, names: set[str]) -> Declared | None:
    said: list[tuple[str, _Said]] = []
    for name in sorted(names):
        if (reader := _READERS.get(name)) is not None:
            said.append((name, _read(directory / name, reader)))
        elif name.startswith("requirements") and name.endswith(".txt"):
            said.append((name, _read(directory / name, _requirements)))
        elif name == "requirements":
            inside = sorted(each for each in _names(directory / name) if each.endswith(".txt"))
            said += [(f"{name}/{each}", _read(directory / name / each, _requirements)) for each in inside]
    bounds = [(oldest, file) for file, each in said for oldest in each.torch if oldest is not None]
    pythons = [(_first_on(each.python), file) for file, each in said if each.python is not None]
    implied, by = max(pythons, default=((0, 0), ""))
    if bounds:
        oldest, file = min(bounds)
        return Declared(oldest, file) if oldest >= implied else Declared(implied, by)
    named = any(each.torch for _, each in said)
    return Declared(implied, by) if named and implied > OLDEST else None


def _names(directory: Path) -> set[str]:
    try:
        return set(os.listdir(directory))
    except OSError:
        return set()


def _read(file: Path, reader: Callable[[str], _Said]) -> _Said:
    """What a file says. One that cannot be read, or is broken, says nothing: it is not dtlint's to judge."""
    try:
        data = file.read_bytes()
        return reader(data.decode("utf-8-sig")) if b"torch" in data else _Said()
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError, TypeError, AttributeError):
        return _Said()


def _first_on(python: Release) -> Release:
    return max((torch for first, torch in _FIRST_ON_PYTHON.items() if first <= python), default=(0, 0))


def _requirements(text: str) -> _Said:
    """A list of requirements, one a line."""
    return _Said(tuple(_required(text.splitlines())))


def _required(texts: Iterable[str]) -> Iterator[Release | None]:
    """What each requirement of torch among some texts allows."""
    for text in texts:
        text = text.strip()
        if (wheel := re.fullmatch(_WHEEL, text)) is not None:
            yield oldest_allowed(f"=={wheel[1]}")
        elif (found := re.fullmatch(_REQUIREMENT, text)) is not None and _is_specifier(found[1]):
            yield oldest_allowed(found[1])


def _is_specifier(text: str) -> bool:
    return all(
        (found := re.fullmatch(_CLAUSE, part.strip())) is not None and found[1] and re.fullmatch(_VERSION, found[2])
        for part in text.split(",")
        if part.strip()
    )


def oldest_allowed(specifier: str) -> Release | None:
    """The oldest release that a version specifier allows, in the forms of pip, poetry and conda: `>=2.1,<3`, `^2.1`,
    `2.1.*`, `1.13|2.0`. None where it has no lower end, and not such an upper one that only old releases are left."""
    ways = [_oldest_of_all(way) for way in re.split(r"\|+", specifier)]
    return min((way for way in ways if way is not None), default=None) if None not in ways else None


def _oldest_of_all(specifier: str) -> Release | None:
    """The same, of clauses that all hold."""
    lower: list[Release] = []
    upper: list[Release] = []
    for part in re.split(r"[,\s]+(?=[<>=!~^])|,", specifier.strip()):
        found = re.fullmatch(_CLAUSE, part.strip())
        version = re.fullmatch(_VERSION, found[2]) if found is not None else None
        if found is None or version is None or found[1] == "!=":
            continue
        release = int(version[1]), int(version[2] or 0)
        (upper if found[1] in ("<", "<=") else lower).append(release)
    if lower:
        return max(lower)
    return (1, 0) if upper and min(upper) <= OLDEST else None


def _pyproject(text: str) -> _Said:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    document: dict[str, Any] = tomllib.loads(text)
    project = document.get("project", {})
    lists = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    lists += document.get("dependency-groups", {}).values()
    torch = list(_required(each for listed in lists for each in listed if isinstance(each, str)))
    python = project.get("requires-python")
    poetry = document.get("tool", {}).get("poetry", {})
    groups = [poetry, *poetry.get("group", {}).values()]
    for table in (group.get(key, {}) for group in groups for key in ("dependencies", "dev-dependencies")):
        torch += [oldest_allowed(version) for version in _of_poetry(table.get("torch"))]
        python = python or next(_of_poetry(table.get("python")), None)
    return _Said(tuple(torch), oldest_allowed(python) if isinstance(python, str) else None)


def _of_poetry(given: object) -> Iterator[str]:
    """The versions of a dependency as poetry has it: a string, a table, or a list of tables."""
    for each in given if isinstance(given, list) else [given]:
        version = each.get("version") if isinstance(each, dict) else each
        if isinstance(version, str):
            yield version


def _setup_cfg(text: str) -> _Said:
    lines = text.splitlines()
    python = next((found[1] for line in lines if (found := re.fullmatch(_SETTING, line))), None)
    torch = _required(line.partition("=")[2] if line.startswith("install_requires") else line for line in lines)
    return _Said(tuple(torch), oldest_allowed(python) if python else None)


def _setup_py(text: str) -> _Said:
    """Every text of the file that is a requirement of torch: lists of them are kept under all kinds of names."""
    tree = ast.parse(text)
    bound: dict[str, list[ast.expr]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    bound.setdefault(target.id, []).append(statement.value)
    names = {name: values[0] for name, values in bound.items() if len(values) == 1}
    torch: list[Release | None] = []
    python = None
    parts: list[ast.AST] = [tree]
    while parts:
        part = parts.pop()
        text_of = _text(part, names)
        if text_of is not None:
            torch += _required(text_of.splitlines())
            continue  # the parts of a text are none of their own
        if isinstance(part, ast.keyword) and part.arg == "python_requires":
            python = _text(part.value, names)
        parts += ast.iter_child_nodes(part)
    return _Said(tuple(torch), oldest_allowed(python) if python else None)


def _text(node: ast.AST, names: dict[str, ast.expr], depth: int = 0) -> str | None:
    """The text that an expression of constants and names of constants is."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names and depth < 5:
        return _text(names[node.id], names, depth + 1)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, names, depth) if node.format_spec is None else None
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part, names, depth) for part in node.values]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_text(node.left, names, depth), _text(node.right, names, depth)]
    else:
        return None
    return None if None in parts else "".join(part for part in parts if part is not None)


def _environment(text: str) -> _Said:
    """A conda environment: its packages, and those of pip below them, are items of lists, one a line."""
    found = [re.fullmatch(_CONDA, line.rstrip(" \"'")) or re.match(_CONDA, line) for line in text.splitlines()]
    return _Said(tuple(oldest_allowed(each[1].strip()) for each in found if each is not None))


_READERS = {
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup_cfg,
    "setup.py": _setup_py,
    "environment.yml": _environment,
    "environment.yaml": _environment,
}
"""The files that declare torch besides lists of requirements, each with what reads it."""
