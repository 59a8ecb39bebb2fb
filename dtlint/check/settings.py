"""Settings files of frameworks: which one a path names, and what the rules find in one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dtlint.check.judge import crash
from dtlint.check.reader import PROJECT_FILES
from dtlint.diagnostic import Diagnostic, Location, Note
from dtlint.source.file import shown_path
from dtlint.source.settings_file import SettingsFile, UnreadableSettings
from dtlint.source.suppression import silences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.job import Job
    from dtlint.diagnostic import Span
    from dtlint.infer.interproc.disk import Disk
    from dtlint.rule import InSettings, Rule

__all__ = ["check_settings", "finder"]

_CONTEXT = 2
"""Lines that a frame shows around a finding."""


def finder(path: Path | None, disk: Disk, asked: Callable[[Path], None]) -> Callable[[str], SettingsFile | None]:
    """What finds the settings files that paths in a file name: relative to its folder, or to one further up in the project.

    Args:
        path: the file that names them; None for text that comes from nowhere.
        asked: is told each path that was looked for.
    """

    def found(named: str) -> SettingsFile | None:
        if path is None or not named.endswith((".json", ".yaml", ".yml")):
            return None
        for folder in path.absolute().parents:
            candidate = folder / named
            asked(candidate)
            try:
                return SettingsFile.from_bytes(disk.read(candidate), _shown(candidate), candidate)
            except (OSError, ValueError):
                pass
            if any(disk.is_file(folder / name) or disk.is_folder(folder / name) for name in PROJECT_FILES):
                return None
        return None

    return found


def _shown(file: Path) -> str:
    """The path of a file that another names, relative to the working directory where there is a way."""
    try:
        return shown_path(os.path.relpath(file))
    except ValueError:  # it lies on another drive
        return shown_path(file)


def check_settings(
    job: Job, rules: Mapping[str, AnyRule], data: bytes | None = None
) -> tuple[list[Diagnostic], list[str]]:
    """What the rules find in a settings file, and what went wrong, a sentence each.

    Args:
        data: what the file is to hold; None: what it holds.
    """
    from dtlint.infer.interproc.disk import Disk

    asking = [rules[code] for code in job.codes if rules[code].asks_settings()]
    try:
        file = SettingsFile.from_bytes(job.path.read_bytes() if data is None else data, job.shown, job.path)
    except UnreadableSettings as error:
        return [], [str(error)]
    except OSError as error:
        return [], [f"{job.shown}: cannot be read: {error.strerror or error}"]
    found: list[Diagnostic] = []
    errors: list[str] = []
    beside = finder(job.path, Disk(), lambda path: None)
    for rule in (one.load() for one in asking):
        try:
            told = list(rule().on_settings(file, beside))
        except Exception as error:
            errors.append(crash(rule, job.shown, error))
            continue
        found += (_diagnostic(rule, file, one) for one in told if not _is_suppressed(file, one.span, rule))
    return sorted(found, key=lambda one: one.sort_key), errors


def _diagnostic(rule: type[Rule], file: SettingsFile, found: InSettings) -> Diagnostic:
    first, last = max(found.span.line - _CONTEXT, 1), min(found.span.line + _CONTEXT, len(file.lines))
    return Diagnostic(
        rule.code,
        rule.name,
        rule.severity,
        found.message,
        Location(file.shown, found.span),
        help=found.help,
        notes=tuple(Note(Location(other.shown, span), text) for other, span, text in found.notes),
        lines=tuple((number, file.lines[number - 1]) for number in range(first, last + 1)),
        noqa_line=found.span.line,
    )


def _is_suppressed(file: SettingsFile, span: Span, rule: type[Rule]) -> bool:
    """Does a comment on its line silence a finding? JSON has no comments."""
    line = file.lines[span.line - 1] if span.line <= len(file.lines) else ""
    _, mark, comment = line.partition("#")
    return not file.shown.endswith(".json") and silences(mark + comment, rule.code, rule.name)
