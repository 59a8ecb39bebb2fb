"""What rules suspect is confirmed in the text, and becomes diagnostics with fixes.

A finding needs no more than the exact range that `ast` knows. A fix that edits arguments asks libcst where parentheses
and comments stand among them, and only then is it loaded: importing it takes longer than checking a file does.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.check.judge import Judged, Suspicion, crash
from dtlint.diagnostic import Applicability, Diagnostic, Fix, Location, Note, Span
from dtlint.source.concrete import ConcreteTree, TooDeep
from dtlint.source.imports import Imports, NoEdit
from dtlint.source.place import Place
from dtlint.source.standing import Standing

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from pathlib import Path

    from dtlint.config import Settings
    from dtlint.infer.facts import Step
    from dtlint.source.file import Source

__all__ = ["Confirmed", "confirm"]

Confirmed = tuple[Diagnostic, tuple[int, int]]
"""A diagnostic, and the first and last line of the source text whose suppression comments it obeys."""


def confirm(
    judged: Judged, source: Source, tree: ast.Module, settings: Settings, read: Callable[[Path], Source]
) -> list[Confirmed]:
    """Diagnostics of what stands where ast says, each place and code once, with the fixes that can be made there: of two, the
    one that is not conditional. A crash of a fix is added to the judgement. A fix that needs a newer torch than the project
    has to run on is no safe one."""
    standing, concrete = Standing(source, tree), ConcreteTree(source, tree)
    imports = Imports(source, tree)
    confirmed: dict[tuple[str, int, int], Confirmed] = {}
    for suspicion in sorted(judged.suspicions, key=lambda each: (each.finding.conditional, bool(each.under))):
        finding = suspicion.finding
        key = (suspicion.rule.code, finding.node.lineno, finding.node.col_offset)
        if key in confirmed or not standing.is_exact(finding.node):
            continue
        fix: Fix | None = None
        if finding.fix is not None:
            try:
                place = Place(finding.node, standing, concrete, imports)
                fix = finding.fix(place)
                fix = None if fix is None else _bounded(fix, place.since, settings)
                if fix is not None and suspicion.under and fix.applicability is Applicability.SAFE:
                    fix = replace(fix, applicability=Applicability.UNSAFE)  # in float32 the code runs as it should
            except (NoEdit, TooDeep):
                pass
            except Exception as error:
                judged.crashed.add(suspicion.rule.code)
                judged.crashes.append(crash(suspicion.rule, f"{source.path}:{finding.node.lineno}", error))
        confirmed[key] = _diagnostic(suspicion, source, tree, fix, read)
    return list(confirmed.values())


def _bounded(fix: Fix, since: tuple[int, int], settings: Settings) -> Fix:
    """The fix, and what it says, where its code runs from this release of torch on."""
    told = settings.target_torch is not None or settings.declared_torch is not None
    if since == (0, 0) or (told and since <= settings.oldest_torch):
        return fix
    message = f"{fix.message}, which needs torch {_shown(since)}"
    if since <= settings.oldest_torch:
        return replace(fix, message=message)
    by = settings.declared_torch.file if settings.declared_torch is not None else "the target"
    unsafe = Applicability.UNSAFE if fix.applicability is Applicability.SAFE else fix.applicability
    return replace(fix, message=f"{message}; {by} allows {_shown(settings.oldest_torch)}", applicability=unsafe)


def _shown(release: tuple[int, int]) -> str:
    return ".".join(map(str, release))


def _in_another_file(step: Step, message: str, read: Callable[[Path], Source]) -> Note:
    source = read(step.module.path)
    span = source.span(step.node)
    return Note(Location(source.path, span, None, span.line), message)


def _message(suspicion: Suspicion) -> str:
    text = suspicion.finding.message
    return f"Under {' and '.join(suspicion.under)}: {text[0].lower()}{text[1:]}" if suspicion.under else text


def _diagnostic(
    suspicion: Suspicion, source: Source, tree: ast.Module, fix: Fix | None, read: Callable[[Path], Source]
) -> Confirmed:
    rule, finding = suspicion.rule, suspicion.finding
    span = source.span(finding.node)
    steps = [(source.span(step.node), message, number) for number, (step, message) in enumerate(suspicion.witness, 1)]
    there = {where for where, _, _ in steps}
    noted: list[tuple[Span, str, int | None]] = [
        (where, message, None) for node, message in finding.notes if (where := source.span(node)) not in there
    ]
    far = []
    for step, message in finding.elsewhere:
        if step.module.tree is not tree:
            far.append(_in_another_file(step, message, read))
        elif (where := source.span(step.node)) not in there:
            noted.append((where, message, None))
    far += [Note(Location(file.shown, where), message) for file, where, message in finding.settings]
    noted += steps
    location = source.location(span)
    diagnostic = Diagnostic(
        code=rule.code,
        name=rule.name,
        severity=finding.severity or rule.severity,
        message=_message(suspicion),
        location=location,
        help=finding.help,
        notes=(*(Note(source.location(where), message, number) for where, message, number in noted), *far),
        fix=fix,
        lines=source.frame(span, *(where for where, _, _ in noted)),
        noqa_line=location.span.end_line,
        conditional=finding.conditional,
        under=suspicion.under,
    )
    return diagnostic, (span.line, span.end_line)
