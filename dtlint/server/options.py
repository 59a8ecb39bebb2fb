"""What the client's settings say, beside those of dtlint.toml and pyproject.toml, over which they go."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.config import Configuration, Selection, parse_torch
from dtlint.dtypes.assumption import parse_assumption

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Options"]


class _Wrong(ValueError):
    """A setting of the client is wrong. The message says what it may be."""


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _Wrong('must be a list of strings, like ["DT1"]')
    return tuple(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("must be true or false")
    return value


def _assumptions(value: object) -> tuple[str, ...]:
    names = _strings(value)
    for name in names:
        parse_assumption(name)
    return names


def _release(value: object) -> str:
    if not isinstance(value, str):
        raise _Wrong('must be a string, like "2.4"')
    parse_torch(value)
    return value


def _file(value: object) -> str:
    if not isinstance(value, str) or not Path(value).is_file():
        raise _Wrong("must be the path of a dtlint.toml or pyproject.toml that is there")
    return value


def _milliseconds(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 10_000:
        raise _Wrong("must be a number of milliseconds, from 0 to 10000")
    return value


@dataclass(frozen=True)
class Options:
    """The settings of the client. In its own table they have no underscores: `extendSelect`."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    preview: bool = False
    assume: tuple[str, ...] = ()
    target_torch: str = ""
    configuration: str = ""
    """A configuration file that holds for all files."""
    inlay_hints: bool = False
    debounce: int = 60
    """Milliseconds without a change before a text is read."""

    def updated(self, table: object) -> tuple[Options, list[str]]:
        """These settings with those of a table over them; and what is wrong with others of the table, in a line each."""
        if table is None:
            return self, []
        if not isinstance(table, dict):
            return self, ["the settings of dtlint must be a table"]
        given: dict[str, Any] = {}
        wrong: list[str] = []
        for name, value in table.items():
            if name not in _KEYS:
                near = get_close_matches(str(name), _KEYS, 1, 0.5)
                wrong.append(f"there is no setting {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
                continue
            field, read = _KEYS[name]
            if value is None:
                continue
            try:
                given[field] = read(value)
            except ValueError as error:
                wrong.append(f"the setting {name!r} {error}")
        return replace(self, **given), wrong

    def configuration_of_files(self) -> Configuration:
        """What finds the settings of each file."""
        return Configuration(
            Path(self.configuration) if self.configuration else None,
            selection=Selection(self.select, self.ignore, self.extend_select, "the editor's settings"),
            target_torch=parse_torch(self.target_torch) if self.target_torch else None,
            preview=self.preview,
            assume=[parse_assumption(name) for name in self.assume],
        )


_READERS: dict[str, Callable[[object], Any]] = {
    "select": _strings,
    "ignore": _strings,
    "extend_select": _strings,
    "preview": _flag,
    "assume": _assumptions,
    "target_torch": _release,
    "configuration": _file,
    "inlay_hints": _flag,
    "debounce": _milliseconds,
}


def _key(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))


_KEYS = {_key(field.name): (field.name, _READERS[field.name]) for field in fields(Options)}
"""Each key of the client's table, with the field and what reads its value."""
