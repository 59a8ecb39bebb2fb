"""The two rules that judge files and comments instead of events: DT801 unused suppression, DT802 unreadable file.

Their documentation stands with the other rules in the catalogue; what they find is found here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from dtlint.catalogue import catalogue
from dtlint.diagnostic import Applicability, Diagnostic, Fix, Location, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.source.file import Source, UnreadableSource
    from dtlint.source.suppression import Code, Malformed, Suppressions, Unused

__all__ = [
    "UNREADABLE_FILE",
    "UNUSED_SUPPRESSION",
    "cell_diagnostics",
    "syntax_diagnostic",
    "unreadable_diagnostic",
    "unused_diagnostics",
]

UNUSED_SUPPRESSION = ("DT801", "unused-suppression")
UNREADABLE_FILE = ("DT802", "unreadable-file")

_WRONG_IN_EVERY_PYTHON = (
    "was never closed",
    "unexpected indent",
    "expected an indented block",
    "unindent does not match",
    "Missing parentheses in call",
)
"""Words of the parser about what no newer Python takes either. An f-string of Python 3.12 may look unmatched or
unterminated to an older one."""


def unused_diagnostics(suppressions: Suppressions, rules: Sequence[AnyRule]) -> Iterator[Diagnostic]:
    """DT801 for each comment that silences nothing, if the rule is among `rules`, the rules that ran on the file.

    Ask after every other diagnostic went through `Suppressions.covers`.
    """
    if not suppressions.malformed and not suppressions.directives:
        return  # as nearly all files have none
    code, name = UNUSED_SUPPRESSION
    checked = {rule.code: rule.name for rule in rules}
    if code not in checked:
        return
    for malformed in suppressions.malformed:
        written = _well_written(malformed)
        line = malformed.span.line
        if written is not None and not suppressions.covers(code, line, line, name):
            yield _malformed_diagnostic(suppressions.source, malformed, written)
    if not suppressions.directives:
        return
    for directive in suppressions.directives:
        prefixes = [listed for listed in directive.codes if listed.text in _prefixes()]
        if prefixes and not suppressions.covers(code, directive.line, directive.line, name):
            yield _prefix_diagnostic(suppressions.source, directive.line, prefixes)
    known = _known().union(_prefixes(), checked, checked.values())
    others = {other: checked[other] for other in checked if other != code}
    silenced = {
        unused.span.line
        for unused in suppressions.unused(others, known)
        if suppressions.covers(code, unused.span.line, unused.span.line, name)
    }
    for unused in suppressions.unused(checked, known):
        if unused.span.line not in silenced:
            yield _unused_diagnostic(suppressions.source, unused)


@cache
def _known() -> frozenset[str]:
    """All codes and names of the installed catalogue."""
    rules = catalogue()
    return frozenset(rules) | {rule.name for rule in rules.values()}


@cache
def _prefixes() -> frozenset[str]:
    """What names several rules in a selection, and none in a suppression: `DT`, `DT1`, `DT10`."""
    return frozenset(code[:length] for code in catalogue() for length in range(2, len(code)))


def _prefix_diagnostic(source: Source, line: int, prefixes: list[Code]) -> Diagnostic:
    code, name = UNUSED_SUPPRESSION
    span = Span(line, prefixes[0].start, line, prefixes[-1].end)
    listed = ", ".join(f"`{prefix.text}`" for prefix in prefixes)
    nothing = "suppresses nothing" if len(prefixes) == 1 else "suppress nothing"
    location = source.location(span)
    return Diagnostic(
        code,
        name,
        Severity.WARNING,
        f"{listed} {nothing}: a suppression names whole codes, or names of rules",
        location,
        help="Write the codes of what is found here, such as DT101",
        lines=source.frame(span),
        noqa_line=location.span.line,
    )


def _well_written(malformed: Malformed) -> str | None:
    """The suppression that is meant; None where the comment is not about rules of dtlint."""
    rules = catalogue()
    by_name = {rule.name: rule.code for rule in rules.values()}
    named = [by_name.get(word.lower(), word.upper()) for word in malformed.words]
    codes = [code for code in named if code in rules]
    if not malformed.ours and (not codes or len(codes) < len(named)):
        return None  # prose: some names of rules, `overflow` and `invalid`, are plain words
    listed = ", ".join(dict.fromkeys(codes)) or "CODE"
    if not malformed.ours:
        return f"# noqa: {listed}"
    return f"# dtlint: {'file-ignore' if malformed.whole_file else 'ignore'}[{listed}]"


def _malformed_diagnostic(source: Source, malformed: Malformed, written: str) -> Diagnostic:
    code, name = UNUSED_SUPPRESSION
    location = source.location(malformed.span)
    return Diagnostic(
        code,
        name,
        Severity.WARNING,
        f"`{malformed.text}` is not a suppression dtlint knows; write `{written}`",
        location,
        help="Until then it suppresses nothing",
        lines=source.frame(malformed.span),
        noqa_line=location.span.line,
    )


def _unused_diagnostic(source: Source, unused: Unused) -> Diagnostic:
    said = [
        f"{_listed(codes)} suppressed here{what}"
        for codes, what in (
            (unused.idle, " without effect"),
            (unused.unknown, ", but there is no such rule"),
        )
        if codes
    ]
    code, name = UNUSED_SUPPRESSION
    return Diagnostic(
        code,
        name,
        Severity.WARNING,
        "; ".join(said),
        source.location(unused.span),
        help="Delete what suppresses nothing",
        fix=Fix("Delete the unused suppression", (unused.edit,), Applicability.SAFE),
        lines=source.frame(unused.span),
        noqa_line=source.location(unused.span).span.line,
    )


def _listed(codes: tuple[str, ...]) -> str:
    return f"{codes[0]} is" if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]} are"


def cell_diagnostics(source: Source) -> Iterator[Diagnostic]:
    """DT802 for each cell of a notebook that IPython would not run."""
    for cell, error in source.notebook.refused if source.notebook is not None else ():
        told = syntax_diagnostic(source, error, "cell", cell.first)
        yield replace(told, help="The other cells are checked; none is fixed until this one parses")


def syntax_diagnostic(source: Source, error: Exception, what: str = "file", first: int = 1) -> Diagnostic:
    """DT802 for a text that Python's parser does not take: a file, or what begins on the line `first` of it."""
    span, reason = _place(source, error, first)
    if isinstance(error, SyntaxError) and not any(words in reason for words in _WRONG_IN_EVERY_PYTHON):
        running = ".".join(map(str, sys.version_info[:2]))
        reason += f" (to Python {running}, on which dtlint runs)"
    return _diagnostic(source.location(span), f"The {what} does not parse: {reason}", source.frame(span))


def unreadable_diagnostic(shown: str, error: UnreadableSource | OSError) -> Diagnostic:
    """DT802 for a file whose bytes are no text, or that could not be read at all."""
    if isinstance(error, OSError):
        place, reason = (1, 0), (error.strerror or str(error)).lower()
        if error.filename is not None and os.path.isdir(error.filename) and not isinstance(error, IsADirectoryError):
            span = Span(1, 0, 1, 1)
            return _diagnostic(
                Location(shown, span), f"The directory cannot be read: {reason}; nothing in it is checked", ()
            )
    else:
        place, reason = (error.line, error.column), error.message
    span = Span(*place, place[0], place[1] + 1)
    return _diagnostic(Location(shown, span), f"The file cannot be read: {reason}", ())


def _diagnostic(location: Location, message: str, lines: tuple[tuple[int, str], ...]) -> Diagnostic:
    code, name = UNREADABLE_FILE
    return Diagnostic(code, name, Severity.ERROR, message, location, lines=lines)


def _place(source: Source, error: Exception, first: int) -> tuple[Span, str]:
    if isinstance(error, SyntaxError):
        line = min(max(error.lineno or 1, 1) + first - 1, max(len(source.lines), 1))
        width = len(source.lines[line - 1]) if source.lines else 0
        column = min(max((error.offset or 1) - 1, 0), width)
        end = (error.end_offset or 0) - 1 if error.end_lineno == error.lineno else width
        return Span(line, column, line, max(min(end, width), column + 1)), error.msg.rstrip(".")
    reasons = {
        RecursionError: "the code is nested too deeply for Python's parser",
        MemoryError: "the code is nested too deeply for Python's parser",
    }
    return Span(first, 0, first, 1), reasons.get(type(error), str(error))
