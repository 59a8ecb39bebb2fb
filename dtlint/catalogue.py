"""The catalogue as a run needs it first: which rules there are, and what decides whether one is wanted at all.

Importing several dozen rules costs more than checking a small file, and most files need few of them. So the facts of
each rule's class are kept beside the compiled modules, as Python keeps its own, and a rule is imported when a file has
one of its words.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dtlint import __version__
from dtlint.diagnostic import Severity
from dtlint.rule import Rule, discover, registered

if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = ["AnyRule", "Listed", "catalogue"]

INDEX = "dtlint-rules.json"
"""The index of a package's rules, in its `__pycache__`."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A rule that is not imported, with the facts of its class under the same names."""

    module: str
    qualname: str
    code: str
    name: str
    severity: Severity
    default: bool
    since: tuple[int, int]
    triggers: tuple[str, ...]
    needs: tuple[tuple[str, ...], ...]
    judges: bool
    runtime: bool
    assumption: str
    in_settings: bool

    def __hash__(self) -> int:
        """By the code, which no two rules share: all facts are many, and rules are looked up for each file."""
        return hash(self.code)

    def asks(self) -> bool:
        """Does it ask for the facts of files at all?"""
        return self.judges

    def asks_settings(self) -> bool:
        """Does it judge settings files?"""
        return self.in_settings

    def load(self) -> type[Rule]:
        """The rule itself, imported now."""
        return _loaded(self.module, self.qualname)


@cache
def _loaded(module: str, qualname: str) -> type[Rule]:
    """A rule, asked for with each file that it judges: importing what is imported already takes ten times as long."""
    rule: type[Rule] = getattr(import_module(module), qualname)
    return rule


if TYPE_CHECKING:
    AnyRule: TypeAlias = type[Rule] | Listed


def catalogue() -> dict[str, Listed]:
    """Every rule of every installed package that registers one, by code, in the order of the codes.

    Raises:
        RulesError: a package cannot be imported, two rules claim one code, or a code is not of the form DT123.
    """
    packages = [_folders(name) for name in sorted(registered())]
    folders = [folder for package in packages for folder in package]
    stamps = [_stamp(folder) for folder in folders]
    known = [_load(folder, stamp) for folder, stamp in zip(folders, stamps, strict=True)]
    if None not in known and all(packages):
        rules = [rule for listed in known if listed is not None for rule in listed]
        if len({rule.code for rule in rules}) == len(rules):
            return {rule.code: rule for rule in sorted(rules, key=lambda rule: rule.code)}
    found = {code: _listed(rule) for code, rule in discover().items()}
    for folder, stamp in zip(folders, stamps, strict=True):
        _save(folder, stamp, [rule for rule in found.values() if _lies_in(rule, folder)])
    return found


def _folders(package: str) -> list[str]:
    """Where a package's modules lie; nowhere if there is no such package."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return []  # `discover` imports it, and says what is wrong
    return list(spec.submodule_search_locations or ()) if spec is not None else []


def _lies_in(rule: Listed, folder: str) -> bool:
    file = getattr(sys.modules[rule.module], "__file__", None)
    return file is not None and os.path.dirname(file) == folder


def _stamp(folder: str) -> list[Any]:
    """What changes when a rule does: the version of dtlint, and the size and time of every module."""
    with os.scandir(folder) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    return [__version__, *sorted([name, status.st_size, status.st_mtime_ns] for name, status in files)]


def _load(folder: str, stamp: list[Any]) -> list[Listed] | None:
    """The rules of a folder by its index; None where that is missing, old or broken."""
    try:
        with open(os.path.join(folder, "__pycache__", INDEX), encoding="utf-8") as file:
            index = json.load(file)
        if index["stamp"] != stamp:
            return None
        return [
            Listed(
                item["module"],
                item["qualname"],
                item["code"],
                item["name"],
                Severity(item["severity"]),
                item["default"],
                (item["since"][0], item["since"][1]),
                tuple(item["triggers"]),
                tuple(map(tuple, item["needs"])),
                item["judges"],
                item["runtime"],
                item["assumption"],
                item["in_settings"],
            )
            for item in index["rules"]
        ]
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return None


def _save(folder: str, stamp: list[Any], rules: list[Listed]) -> None:
    """Keep the index where Python keeps what it compiles; where that cannot be, each run imports the rules."""
    if sys.dont_write_bytecode:
        return
    index = {"stamp": stamp, "rules": [_as_json(rule) for rule in rules]}
    target = os.path.join(folder, "__pycache__", INDEX)
    temporary = f"{target}.{os.getpid()}"
    with suppress(OSError):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(index, file)
        os.replace(temporary, target)


def _listed(rule: type[Rule]) -> Listed:
    return Listed(
        rule.__module__,
        rule.__qualname__,
        rule.code,
        rule.name,
        rule.severity,
        rule.default,
        rule.since,
        rule.triggers,
        rule.needs,
        rule.asks(),
        rule.runtime,
        rule.assumption,
        rule.asks_settings(),
    )


def _as_json(rule: Listed) -> dict[str, Any]:
    facts = {name: getattr(rule, name) for name in Listed.__slots__}
    return {**facts, "severity": rule.severity.value}
