"""What rules find in a project as a whole: the modules of the files that are given see one another.

This comes before the files are checked one by one, and each file is handed what concerns it.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Location, Note, Span
from dtlint.source.file import Source, shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.job import Job
    from dtlint.infer.interproc.project import ModuleInfo
    from dtlint.infer.interproc.whole_project import WholeProject
    from dtlint.rule import Finding, Rule

__all__ = ["Reported", "project_findings"]

_STACK = 256 * 1024 * 1024
"""Bytes of stack for the reading: calls in one another are followed as calls, some tens of frames each."""
_DEEPEST = 50_000


@dataclass(frozen=True)
class Reported:
    """What a rule has found in a file by knowing the others.

    Attributes:
        span: where, in the file's text.
        notes: second places: the file as it is shown, where in it, and what happens there.
    """

    code: str
    span: Span
    message: str
    help: str
    notes: tuple[tuple[str, Span, str], ...]

    def diagnostic(self, rule: AnyRule, source: Source) -> Diagnostic:
        """As a diagnostic of the file."""
        location = source.location(self.span)
        return Diagnostic(
            code=self.code,
            name=rule.name,
            severity=rule.severity,
            message=self.message,
            location=location,
            help=self.help,
            notes=tuple(Note(Location(path, span, None, span.line), text) for path, span, text in self.notes),
            fix=None,
            lines=source.frame(self.span),
            noqa_line=location.span.end_line,
        )


def project_findings(jobs: Sequence[Job], rules: Mapping[str, AnyRule]) -> dict[Path, tuple[Reported, ...]]:
    """What the rules that ask for facts find in the files of a run, by file."""
    asking = [rule.load() for rule in rules.values() if "on_facts" in rule.hears()]
    wanted = [job for job in jobs if job.path.suffix == ".py" and any(rule.code in job.codes for rule in asking)]
    if not wanted:
        return {}
    found: dict[Path, tuple[Reported, ...]] = {}

    def work() -> None:
        found.update(_read(wanted, asking))

    usual, size = sys.getrecursionlimit(), threading.stack_size()
    sys.setrecursionlimit(max(usual, _DEEPEST))
    threading.stack_size(_STACK)
    thread = threading.Thread(target=work)
    try:
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(usual)
    return found


def _read(jobs: Sequence[Job], rules: Sequence[type[Rule]]) -> dict[Path, tuple[Reported, ...]]:
    from dtlint.infer.interproc.disk import Disk
    from dtlint.infer.interproc.whole_project import WholeProject, import_root

    disk = Disk()
    groups: dict[Path, list[Job]] = {}
    for job in jobs:
        groups.setdefault(import_root(job.path.absolute(), disk), []).append(job)
    found: dict[Path, tuple[Reported, ...]] = {}
    for root, group in groups.items():
        project = WholeProject(root, [], disk)
        modules = project.read(job.path.absolute() for job in group)
        for job in group:
            info = modules.get(job.path.absolute())
            if info is not None:
                reported = tuple(_reported(project, info, job, rules))
                if reported:
                    found[job.path] = reported
    return found


def _reported(project: WholeProject, info: ModuleInfo, job: Job, rules: Sequence[type[Rule]]) -> Iterable[Reported]:
    from dtlint.infer.facts import ModuleFacts

    facts = ModuleFacts(project.facts, info)
    source: Source | None = None
    for rule in rules:
        if rule.code not in job.codes:
            continue
        seen: set[tuple[int, int]] = set()
        for finding in rule().on_facts(facts):
            place = finding.node.lineno, finding.node.col_offset
            if place in seen:
                continue
            seen.add(place)
            source = source or Source.read(job.path, job.shown)
            yield _as_reported(rule, finding, source)


def _as_reported(rule: type[Rule], finding: Finding, source: Source) -> Reported:
    notes = []
    for step, text in finding.elsewhere:
        path = step.module.path
        other = Source.read(path, shown_path(path))
        notes.append((other.path, other.span(step.node), text))
    return Reported(rule.code, source.span(finding.node), finding.message, finding.help, tuple(notes))
