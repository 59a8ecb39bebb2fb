"""Results of files that were checked before, found again by their content.

An entry's name is a hash of the file itself and of how it was checked. In it stand, beside the result, the other files that
this rests on, as they were: it holds while they are.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from dtlint.cache import Shelf, identity
from dtlint.check.verdict import Support, Verdict
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.check.job import Result
    from dtlint.check.project import Reported
    from dtlint.config import Settings

__all__ = ["Cache", "Known", "decode", "encode"]

_NOTHING: Mapping[str, str | None] = MappingProxyType({})

CAPACITY = 50_000
"""More entries than this are not kept."""


class Known(NamedTuple):
    """What is kept of a result: see `check.job.Result`."""

    diagnostics: list[Diagnostic]
    support: list[Support]
    would_break: list[Diagnostic] | None = None


class Cache:
    """A directory of results. Several runs may share it."""

    def __init__(self, parent: Path, rules: Mapping[str, AnyRule]) -> None:
        self._shelf = Shelf(parent, most=CAPACITY)
        self._identity = identity({_module(rule).partition(".")[0] for rule in rules.values()})

    def key(
        self, digest: str, shown: str, settings: Settings, codes: tuple[str, ...], reported: tuple[Reported, ...] = ()
    ) -> str:
        """The name of the result for a file, shown under this path, checked with these rules.

        Args:
            digest: a hash of what the file holds.
            reported: what is known of it by other files.
        """
        return self.key_of([digest, shown, _settled(settings), *codes, repr(reported) if reported else ""])

    def get(self, key: str, digest: Callable[[str], str | None]) -> Known | None:
        """The result of that name, if it is known.

        Args:
            digest: a hash of what a file holds; None where it cannot be read.
        """
        known = self.get_entry(key)
        try:
            if known is None or any(digest(path) != held for path, held in known["rests on"].items()):
                return None
            support = [Support(one[0], one[1], one[2], one[3], Verdict[one[4]]) for one in known["support"]]
            would_break = None if known["would break"] is None else decode(known["would break"])
            return Known(decode(known["diagnostics"]), support, would_break)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def put(self, key: str, result: Result | Known, rests_on: Mapping[str, str | None] = _NOTHING) -> None:
        """Remember a result.

        Args:
            rests_on: the other files that it rests on, each with a hash of what it holds.
        """
        entry = {
            "rests on": dict(rests_on),
            "diagnostics": encode(result.diagnostics),
            "support": [[one.assumption, one.path, one.line, one.function, one.verdict.name] for one in result.support],
            "would break": None if result.would_break is None else encode(result.would_break),
        }
        self.put_entry(key, entry)

    def key_of(self, parts: Iterable[str]) -> str:
        """The name of what this dtlint finds out, where it depends on these parts."""
        text = "\0".join([self._identity, *parts])
        return blake2b(text.encode(errors="surrogatepass"), digest_size=20).hexdigest()

    def get_entry(self, key: str) -> Any:
        """What was kept under a name, as JSON has it; None if it is not known."""
        entry = self._shelf.get(key)
        try:
            return None if entry is None else json.loads(entry)
        except (ValueError, RecursionError):
            return None

    def put_entry(self, key: str, entry: object) -> None:
        """Keep what JSON can hold under a name."""
        self._shelf.put(key, json.dumps(entry, separators=(",", ":")).encode())

    def prune(self) -> None:
        """Delete what is old and what is too much; at most once a day, after a run that has added something."""
        self._shelf.prune()


@cache
def _settled(settings: Settings) -> str:
    return repr(settings)


def _module(rule: AnyRule) -> str:
    return rule.__module__ if isinstance(rule, type) else rule.module


def encode(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as JSON."""
    return [
        {
            "code": diagnostic.code,
            "name": diagnostic.name,
            "severity": diagnostic.severity.value,
            "message": diagnostic.message,
            "location": _encode_location(diagnostic.location),
            "help": diagnostic.help,
            "notes": [[_encode_location(note.location), note.message, note.step] for note in diagnostic.notes],
            "fix": diagnostic.fix and _encode_fix(diagnostic.fix),
            "lines": diagnostic.lines,
            "noqa_line": diagnostic.noqa_line,
            "conditional": diagnostic.conditional,
            "under": diagnostic.under,
        }
        for diagnostic in diagnostics
    ]


def decode(entry: Any) -> list[Diagnostic]:
    """What `encode` made JSON of.

    Raises:
        ValueError, TypeError, KeyError: it is something else.
    """
    if not isinstance(entry, list):
        raise TypeError(f"a list of diagnostics was expected, not {type(entry).__name__}")
    return [
        Diagnostic(
            code=item["code"],
            name=item["name"],
            severity=Severity(item["severity"]),
            message=item["message"],
            location=_decode_location(item["location"]),
            help=item["help"],
            notes=tuple(Note(_decode_location(location), message, step) for location, message, step in item["notes"]),
            fix=_decode_fix(item["fix"]) if item["fix"] else None,
            lines=tuple((number, line) for number, line in item["lines"]),
            noqa_line=item["noqa_line"],
            conditional=item["conditional"],
            under=tuple(item["under"]),
        )
        for item in entry
    ]


def _encode_span(span: Span) -> list[int]:
    return [span.line, span.column, span.end_line, span.end_column]


def _encode_location(location: Location) -> list[Any]:
    return [location.path, _encode_span(location.span), location.cell, location.file_line]


def _decode_location(item: list[Any]) -> Location:
    path, span, cell, file_line = item
    return Location(path, Span(*span), cell, file_line)


def _encode_fix(fix: Fix) -> dict[str, Any]:
    return {
        "message": fix.message,
        "edits": [[_encode_span(edit.span), edit.text] for edit in fix.edits],
        "applicability": fix.applicability.value,
        "orphans": fix.orphans,
    }


def _decode_fix(item: dict[str, Any]) -> Fix:
    return Fix(
        item["message"],
        tuple(Edit(Span(*span), text) for span, text in item["edits"]),
        Applicability(item["applicability"]),
        tuple(item["orphans"]),
    )
