"""The settings of a run: `[tool.dtlint]` of the nearest pyproject.toml, or dtlint.toml, and what the command line adds.

Each file is checked under the settings nearest to it. A key or a code that does not exist is refused, never ignored.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.assumption import Assumption, parse_assumption
from dtlint.source.declared_packages import Packages
from dtlint.source.declared_torch import OLDEST, Declarations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.source.declared_packages import Releases
    from dtlint.source.declared_torch import Declared

__all__ = ["ConfigError", "Configuration", "Selection", "Settings"]

EVERYTHING = "ALL"
COMMAND_LINE = "the command line"

_TURNING_ON = frozenset({"select", "extend-select"})

ALWAYS = frozenset({"DT802"})
"""Rules that a selection cannot leave out, only `ignore` can: a file that was not read must not pass for clean."""


class ConfigError(ValueError):
    """A setting is wrong. The message names the file, the key and, where there is one, the nearest right value."""


@dataclass(frozen=True)
class Selection:
    """One layer of selecting: a configuration file, or the command line. Selectors are codes, prefixes, names or ALL."""

    select: tuple[str, ...] | None = None
    """Replaces what the layers before have selected; None leaves it."""
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    origin: str = COMMAND_LINE
    """Where it was written, for messages."""

    def choose(self, rules: Mapping[str, AnyRule], before: Iterable[str]) -> set[str]:
        """The codes that are on after this layer.

        The longest selector that matches a code decides about it; of equally long ones, `ignore` does.
        """
        chosen = set(before) if self.select is None else set()
        select = (self.select or ()) + self.extend_select
        for code, rule in rules.items():
            selected = max((_weight(selector, code, rule) for selector in select), default=-1)
            ignored = max((_weight(selector, code, rule) for selector in self.ignore), default=-1)
            if ignored >= 0 and ignored >= selected:
                chosen.discard(code)
            elif selected >= 0 or (code in ALWAYS and self.select is not None):
                chosen.add(code)
        return chosen

    def keyed(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each list of selectors with the key that it stands under."""
        yield "select", self.select or ()
        yield "ignore", self.ignore
        yield "extend-select", self.extend_select


def _weight(selector: str, code: str, rule: AnyRule) -> int:
    """How closely a selector names a rule, from 0 for ALL up to the length of a code; -1 if it does not."""
    if selector == EVERYTHING:
        return 0
    if selector == rule.name or selector == code:
        return len(code)
    return len(selector) if code.startswith(selector) and selector.startswith("DT") else -1


@dataclass(frozen=True)
class Settings:
    """What decides about one file."""

    selections: tuple[Selection, ...] = ()
    """In the order in which they apply: the file's, then the command line's."""
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Patterns as in .gitignore, relative to `root`, each with the selectors that are off where it matches; behind a `!`,
    where it does not match."""
    exclude: tuple[str, ...] | None = None
    """Patterns as in .gitignore, relative to `root`. None: the directories that hold no code of one's own."""
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    """Are files given by name excluded too?"""
    target_torch: tuple[int, int] | None = None
    """The oldest torch that the code has to run on. None: any from OLDEST on, so that the newest advice is given, too."""
    declared_torch: Declared | None = None
    """What the project's own metadata say of the oldest torch, where `target_torch` says nothing."""
    declared: tuple[tuple[str, Releases], ...] = ()
    """The releases of frameworks that the project declares, by package."""
    preview: bool = False
    """Are the opt-in rules on as well?"""
    supports: tuple[Assumption, ...] = ()
    """What the code has to support beside float32."""
    per_file_supports: tuple[tuple[str, tuple[Assumption, ...]], ...] = ()
    """Patterns as in .gitignore, relative to `root`, each with what files that it matches have to support as well."""
    baseline: Path | None = None
    """The file of the findings that are known already."""
    root: Path = field(default_factory=Path.cwd)
    """The directory that patterns are relative to: the configuration file's."""
    origin: str = COMMAND_LINE

    @classmethod
    def discover(cls, path: Path) -> Settings:
        """The settings for a file or a directory: of the nearest configuration upward, or the built-in ones.

        Raises:
            ConfigError: the configuration file cannot be read, or holds what it cannot hold.
        """
        return Configuration().settings_for(path)

    @classmethod
    def load(cls, file: Path) -> Settings:
        """The settings in a configuration file; a pyproject.toml without [tool.dtlint] has the built-in ones.

        Raises:
            ConfigError: it cannot be read, or holds what it cannot hold.
        """
        table = _table(file, named=True)
        return cls(root=file.parent) if table is None else _parse(table, file)

    def merged(
        self,
        selection: Selection | None = None,
        *,
        target_torch: tuple[int, int] | None = None,
        force_exclude: bool = False,
        preview: bool = False,
        assume: Sequence[Assumption] = (),
    ) -> Settings:
        """These settings with the command line's over them. What it assumes takes the place of what is to be supported."""
        return replace(
            self,
            selections=(*self.selections, selection) if selection else self.selections,
            target_torch=target_torch or self.target_torch,
            force_exclude=force_exclude or self.force_exclude,
            preview=preview or self.preview,
            supports=tuple(assume) or self.supports,
            per_file_supports=() if assume else self.per_file_supports,
        )

    def assumptions_for(self, path: Path | None) -> tuple[Assumption, ...]:
        """What a file has to support, each once.

        Raises:
            PatternError: one of `per_file_supports` is no pattern.
        """
        found = dict.fromkeys(self.supports)
        if path is not None and self.per_file_supports:
            from dtlint.source.patterns import of_settings

            relative = Path(os.path.relpath(path, self.root)).as_posix()
            for pattern, assumptions in self.per_file_supports:
                if of_settings((pattern,), f"{self.origin}: per-file-supports").match_file(relative):
                    found.update(dict.fromkeys(assumptions))
        return tuple(found)

    @property
    def oldest_torch(self) -> tuple[int, int]:
        """The oldest torch that the code has to run on: as it is set, as the project declares it, or OLDEST."""
        declared = self.declared_torch.oldest if self.declared_torch is not None else OLDEST
        return self.target_torch or declared

    def concerned(self, until: tuple[int, int] | None) -> bool:
        """May the code run on a torch older than this release? None is newer than all."""
        return until is None or self.oldest_torch < until

    def enabled(self, rules: Mapping[str, AnyRule], path: Path | None = None) -> list[AnyRule]:
        """The static rules that are on for a file, in the order of their codes.

        Without a path, those that are on before `per_file_ignores`. Rules that judge a trace are never among them.

        Raises:
            ConfigError: a selector names no rule, or only rules that judge a trace.
            PatternError: one of `per_file_ignores` is no pattern.
        """
        self.validate(rules)
        chosen = {code for code, rule in rules.items() if rule.default or self.preview}
        for selection in self.selections:
            chosen = selection.choose(rules, chosen)
        chosen -= self._ignored(rules, path) if path is not None and self.per_file_ignores else set()
        target = self.target_torch or (99, 99)
        return [
            rule for code, rule in sorted(rules.items()) if code in chosen and not rule.runtime and rule.since <= target
        ]

    def _ignored(self, rules: Mapping[str, AnyRule], path: Path) -> set[str]:
        from os.path import relpath

        from dtlint.source.patterns import of_settings

        setting = f"{self.origin}: per-file-ignores"
        relative = Path(relpath(path, self.root)).as_posix()
        selectors = {
            selector
            for pattern, ignored in self.per_file_ignores
            if of_settings((pattern.removeprefix("!"),), setting).match_file(relative) is not pattern.startswith("!")
            for selector in ignored
        }
        return {
            code for code, rule in rules.items() if any(_weight(selector, code, rule) >= 0 for selector in selectors)
        }

    def validate(self, rules: Mapping[str, AnyRule]) -> None:
        """Refuse a selector that names no rule, and one that names only rules that judge a trace: it would do nothing.

        Raises:
            ConfigError: the first such selector.
        """
        lists = [(selection.origin, *keyed) for selection in self.selections for keyed in selection.keyed()]
        lists += [(self.origin, f"per-file-ignores.{pattern!r}", names) for pattern, names in self.per_file_ignores]
        for origin, key, selectors in lists:
            where = f"--{key}" if origin == COMMAND_LINE else f"{origin}: {key}"
            for selector in selectors:
                named = [rule for code, rule in rules.items() if _weight(selector, code, rule) >= 0]
                if named and all(rule.runtime for rule in named):
                    instead = "use `dtlint trace` for it" if key in _TURNING_ON else "a comment on its line silences it"
                    raise ConfigError(f"{where} has {selector!r}, which judges a trace; {instead}")
                if not named:
                    from dtlint.families import meant

                    static = {code: rule for code, rule in rules.items() if not rule.runtime}
                    raise ConfigError(f"{where} has {selector!r}, which names no rule{meant(selector, static)}")


class Configuration:
    """Finds the settings of each file, and reads each configuration file once."""

    def __init__(
        self,
        file: Path | None = None,
        *,
        isolated: bool = False,
        selection: Selection | None = None,
        target_torch: tuple[int, int] | None = None,
        force_exclude: bool = False,
        preview: bool = False,
        assume: Sequence[Assumption] = (),
    ) -> None:
        """`file` holds for all files, whatever is nearest; `isolated` reads no configuration at all."""
        self._selection = selection
        self._target_torch = target_torch
        self._force_exclude = force_exclude
        self._preview = preview
        self._assume = assume
        self._known: dict[Path, Settings] = {}
        self._declarations = Declarations()
        self._packages = Packages()
        self._fixed: Settings | None = None
        if isolated:
            self._fixed = self._merged(Settings())
        elif file is not None:
            self._fixed = self._merged(replace(Settings.load(file), root=Path.cwd()))

    def settings_for(self, path: Path) -> Settings:
        """The settings for a file or a directory.

        Raises:
            ConfigError: its configuration file is wrong.
        """
        path = path.absolute()
        return self._of_directory(path if os.path.isdir(path) else path.parent)

    def _of_directory(self, directory: Path) -> Settings:
        if directory not in self._known:
            self._known[directory] = self._declaring(self._fixed or self._read(directory), directory)
        return self._known[directory]

    def _declaring(self, settings: Settings, directory: Path) -> Settings:
        """The settings with the torch and the frameworks that the project declares; the torch that is set goes before."""
        torch = None if settings.target_torch is not None else self._declarations.of(directory)
        packages = self._packages.of(directory)
        if torch == settings.declared_torch and packages == settings.declared:
            return settings
        return replace(settings, declared_torch=torch, declared=packages)

    def _read(self, directory: Path) -> Settings:
        for name in ("dtlint.toml", "pyproject.toml"):
            file = directory / name
            if os.path.isfile(file) and (table := _table(file)) is not None:
                return self._merged(_parse(table, file))
        if directory.parent == directory:
            return self._merged(Settings())
        return self._of_directory(directory.parent)

    def _merged(self, settings: Settings) -> Settings:
        return settings.merged(
            self._selection,
            target_torch=self._target_torch,
            force_exclude=self._force_exclude,
            preview=self._preview,
            assume=self._assume,
        )


def parse_torch(text: str) -> tuple[int, int]:
    """The release that `2.4` or `2.4.1` names.

    Raises:
        ValueError: it names none.
    """
    found = re.fullmatch(r"(\d+)\.(\d+)(?:\.\d+)?", text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no torch release; write it like 2.4")
    return int(found[1]), int(found[2])


def _table(file: Path, *, named: bool = False) -> Mapping[str, Any] | None:
    """dtlint's own table in a configuration file, if it has one. One that somebody has named is read to its end; of those
    that lie about, only what speaks of dtlint is dtlint's to judge."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{_shown(file)} cannot be read: {error.strerror}") from None
    whole = file.name != "pyproject.toml"
    if not whole and not named and b"dtlint" not in data:
        return None
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]
    try:
        document: dict[str, Any] = tomllib.loads(data.decode())
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both
        raise ConfigError(f"{_shown(file)} is not valid TOML: {error}") from None
    if whole:
        return document
    tools = document.get("tool", {})
    if "dtlint" not in tools:
        return None
    table = tools["dtlint"]
    if not isinstance(table, dict):
        raise ConfigError(f"{_shown(file)}: tool.dtlint must be a table")
    return table


def _parse(table: Mapping[str, Any], file: Path) -> Settings:
    origin = _shown(file)
    for key in table:
        if key not in KEYS:
            alone = "; here the settings stand alone, without [tool.dtlint]" if key == "tool" else ""
            raise ConfigError(f"{origin}: there is no setting {key!r}{alone or _nearest(key, KEYS)}")

    def value(key: str) -> Any:
        try:
            return KEYS[key](table[key]) if key in table else None
        except ValueError as error:
            raise ConfigError(f"{origin}: {key} {error}") from None

    selection = Selection(value("select"), value("ignore") or (), value("extend-select") or (), origin)
    return Settings(
        selections=(selection,),
        per_file_ignores=value("per-file-ignores") or (),
        exclude=value("exclude"),
        extend_exclude=value("extend-exclude") or (),
        force_exclude=bool(value("force-exclude")),
        target_torch=value("target-torch"),
        preview=bool(value("preview")),
        supports=value("supports") or (),
        per_file_supports=_matching(value("per-file-supports") or (), file),
        baseline=file.parent.absolute() / value("baseline") if "baseline" in table else None,
        root=file.parent.absolute(),
        origin=origin,
    )


def _strings(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of strings, like ["DT1"]')
    return tuple(value)


def _ignores(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError('must be a table from patterns to lists of codes, like {"tests/*" = ["DT103"]}')
    return tuple((pattern, _codes_for(pattern, codes)) for pattern, codes in value.items())


def _codes_for(pattern: str, codes: object) -> tuple[str, ...]:
    try:
        return _strings(codes)
    except ValueError:
        raise ValueError(f'must have a list of codes for {pattern!r}, like ["DT103"]') from None


def _assumptions(value: object) -> tuple[Assumption, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError('must be a list of assumptions, like ["half", "autocast"]')
    return tuple(dict.fromkeys(map(parse_assumption, value)))


def _supported(value: object) -> tuple[tuple[str, tuple[Assumption, ...]], ...]:
    if not isinstance(value, dict):
        raise ValueError('must be a table from patterns to assumptions, like {"src/kernels/*" = ["half"]}')
    return tuple((pattern, _assumptions(names)) for pattern, names in value.items())


def _matching(
    supported: tuple[tuple[str, tuple[Assumption, ...]], ...], file: Path
) -> tuple[tuple[str, tuple[Assumption, ...]], ...]:
    """The same, if each pattern matches something: one that does not holds nothing to anything.

    Raises:
        ConfigError: the first that matches no file.
        PatternError: one of them is no pattern.
    """
    for pattern, _ in supported:
        from dtlint.source.patterns import of_settings

        where = f"{_shown(file)}: per-file-supports"
        matches = of_settings((pattern,), where).match_file
        if not any(map(matches, _files_below(file.parent))):
            raise ConfigError(f"{where} has {pattern!r}, which matches no Python file; it is relative to the settings")
    return supported


def _files_below(root: Path) -> Iterator[str]:
    """The Python files and notebooks below a directory, relative to it, those in hidden directories aside."""
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".")]
        for name in names:
            if name.endswith((".py", ".pyi", ".ipynb")):
                yield Path(os.path.relpath(os.path.join(folder, name), root)).as_posix()


def _path(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError('must be a path, like "dtlint-baseline.json"')
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _release(value: object) -> tuple[int, int]:
    if not isinstance(value, str):
        raise ValueError('must be a string, like "2.4"')
    try:
        return parse_torch(value)
    except ValueError:
        raise ValueError(f'is {value!r}, which is no torch release; write it like "2.4"') from None


KEYS = {
    "select": _strings,
    "ignore": _strings,
    "extend-select": _strings,
    "per-file-ignores": _ignores,
    "exclude": _strings,
    "extend-exclude": _strings,
    "force-exclude": _flag,
    "target-torch": _release,
    "preview": _flag,
    "supports": _assumptions,
    "per-file-supports": _supported,
    "baseline": _path,
}
"""Each setting, and what reads its value. A ValueError's message goes on after the key."""


def _nearest(word: str, choices: Iterable[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, list(choices), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def _shown(file: Path) -> str:
    from dtlint.source.file import shown_path

    return shown_path(file)
