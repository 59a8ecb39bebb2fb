"""One file of a run, from its bytes to its result: read, check, fix, suppress, write.

Nothing here raises: what goes wrong with a file is part of its result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from io import StringIO
from typing import TYPE_CHECKING

from dtlint.check.hygiene import UNREADABLE_FILE, UNUSED_SUPPRESSION, unreadable_diagnostic
from dtlint.check.reader import Reader
from dtlint.infer.interproc.disk import digest_of
from dtlint.source.file import Source, UnreadableSource
from dtlint.source.settings_file import is_settings
from dtlint.unexpected import in_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.cache import Cache
    from dtlint.check.project import Reported
    from dtlint.check.verdict import Support
    from dtlint.config import Settings
    from dtlint.diagnostic import Applicability, Diagnostic

__all__ = ["IGNORE", "NOQA", "Job", "Mode", "Result", "difference", "finish", "process"]

NOQA = "# noqa: {}"
IGNORE = "# dtlint: ignore[{}]"
"""A suppression that no other linter reads."""


@dataclass(frozen=True)
class Mode:
    """What a run does beside looking."""

    fix: Applicability | None = None
    """Apply fixes up to this applicability; SAFE or UNSAFE."""
    suppress: str | None = None
    """Suppress what remains, by comments of this form; see NOQA and IGNORE."""
    write: bool = True
    """False: change no file, keep the difference as text."""


@dataclass(frozen=True)
class Job:
    """One file to check."""

    path: Path
    shown: str
    settings: Settings
    codes: tuple[str, ...]
    """The rules that are enabled for it."""
    reported: tuple[Reported, ...] = ()
    """What rules have found in it by knowing the other files."""
    glance: bool = False
    """Is it to be looked at how much would be reported under half?"""


@dataclass
class Result:
    """What came of one file."""

    diagnostics: list[Diagnostic] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Mistakes of dtlint's own, and files that could not be written; a sentence each."""
    fixed: int = 0
    added: int = 0
    """Diagnostics that were suppressed."""
    difference: str = ""
    """A unified diff, where nothing was to be written."""
    changed: Source | None = None
    """The file as it should become, where it should."""
    support: list[Support] = field(default_factory=list)
    """How its public functions stand under each assumption."""
    would_break: list[Diagnostic] | None = None
    """What would be reported of it under half beside the others, where that was looked at."""


def finish(
    job: Job, rules: Mapping[str, AnyRule], mode: Mode, cache: Cache | None, reader: Reader | None = None
) -> Result:
    """Check one file and do with it what the mode says. Never raises: what goes wrong is in the result."""
    if is_settings(job.shown):
        from dtlint.check.settings import check_settings

        return Result(*check_settings(job, rules))
    try:
        source = Source.read(job.path, job.shown)
    except (UnreadableSource, OSError) as error:
        return Result([unreadable_diagnostic(job.shown, error)] if UNREADABLE_FILE[0] in job.codes else [])
    reader = reader or Reader()
    reader.rests_on = {}
    result = process(source, job, rules, mode, reader)
    if cache is not None and not result.errors and result.changed is None:
        key = cache.key(digest_of(source.data), job.shown, job.settings, job.codes, job.reported)
        cache.put(key, result, reader.rests_on)
    if result.changed is not None and mode.write:
        _write(job, source, result, rules)
    elif result.changed is not None:
        result.difference = difference(source, result.changed)
    result.changed = None
    return result


def process(source: Source, job: Job, rules: Mapping[str, AnyRule], mode: Mode, reader: Reader | None = None) -> Result:
    """Check a text that was read, and change it as the mode says; nothing is written. Never raises."""
    from dtlint.check.file import check_source

    enabled = [rules[code] for code in job.codes]
    try:
        if mode.fix is None:
            checked = check_source(source, enabled, job.settings, job.reported, reader, job.glance)
            result = Result(checked.diagnostics, checked.crashes, support=checked.support)
            result.would_break = checked.would_break
        else:
            result = _fixed(source, enabled, job.settings, mode.fix, reader)
        if mode.suppress is not None and not result.errors:
            _suppress(result.changed or source, result, mode.suppress)
    except Exception as error:
        return Result(errors=[f"{job.shown}: internal error: {in_one_line(error)}; please report it"])
    return result


def _fixed(
    source: Source, rules: Sequence[AnyRule], settings: Settings, upto: Applicability, reader: Reader | None
) -> Result:
    from dtlint.check.file import check_source
    from dtlint.check.fix import fix_source

    fixed = fix_source(source, rules, settings, upto, reader)
    changed = fixed.source.data != source.data
    if changed:
        before = check_source(source, rules, settings)
        crashes = before.crashes or fixed.checked.crashes
        if crashes:  # half a judgement is no ground to rewrite a file on
            return Result(before.diagnostics, [*crashes, f"{source.path}: not fixed, for the error above"])
    result = Result(fixed.checked.diagnostics, list(fixed.checked.crashes), support=fixed.checked.support)
    if fixed.failed:
        result.errors.append(fixed.failed)
    if changed:
        result.fixed, result.changed = fixed.applied, fixed.source
    return result


def _suppress(source: Source, result: Result, form: str) -> None:
    from dtlint.source.annotate import suppressed

    wanted: dict[int, set[str]] = {}
    remaining = []
    for diagnostic in result.diagnostics:
        if diagnostic.code in (UNREADABLE_FILE[0], UNUSED_SUPPRESSION[0]):
            remaining.append(diagnostic)
            continue
        line = diagnostic.noqa_line or diagnostic.location.span.line
        wanted.setdefault(source.text_line(diagnostic.location, line), set()).add(diagnostic.code)
    if wanted:
        result.changed = suppressed(source, wanted, form)
        result.added = len(result.diagnostics) - len(remaining)
        result.diagnostics = remaining


def _write(job: Job, source: Source, result: Result, rules: Mapping[str, AnyRule]) -> None:
    """Write the changed file; where that fails, the result is that of the file as it lies on disk."""
    from dtlint.check.write import replace_file

    assert result.changed is not None
    try:
        replace_file(job.path, source.data, result.changed.encode())
    except OSError as error:
        result.errors.append(f"{job.shown}: could not be written: {error.strerror or error}")
        result.fixed = result.added = 0
        result.diagnostics = process(source, job, rules, Mode()).diagnostics


def difference(before: Source, after: Source) -> str:
    """A unified diff of the file as it lies on disk; of a notebook, of its JSON."""
    from difflib import unified_diff

    old, new = (
        StringIO(source.notebook.document if source.notebook else source.text, newline="").readlines()
        for source in (before, after)
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        for line in unified_diff(old, new, before.path, before.path)
    )
