"""Results of files that were checked before, found again by their content.

An entry's name is a hash of all that the result depends on, so an entry never gets stale; it only gets old. A cache
that cannot be read or written is done without, silently: it is there to save time, and for nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dtlint import __version__
from dtlint.diagnostic import Applicability, Diagnostic, Edit, Fix, Location, Note, Severity, Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from dtlint.catalogue import AnyRule
    from dtlint.config import Settings

__all__ = ["DIRECTORY", "Cache", "decode", "encode", "fingerprint", "is_cache"]

DIRECTORY = ".dtlint_cache"
DAY = 24 * 60 * 60.0
LIFETIME = 30 * DAY
"""An entry that nobody asked for in this long is deleted."""
CAPACITY = 50_000
"""More entries than this are not kept; the oldest go first."""

README = {
    ".gitignore": "# Made by dtlint.\n*\n",
    "CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n# Made by dtlint; may be deleted at any time.\n",
}
"""So that neither git nor a backup (bford.info/cachedir) takes the cache for something of worth."""


class Cache:
    """A directory of results. Several runs may share it."""

    def __init__(self, parent: Path, rules: Mapping[str, AnyRule]) -> None:
        self.directory = parent / DIRECTORY
        self._identity = f"{__version__}\0{sys.version}\0{fingerprint(rules.values())}"

    def key(self, data: bytes, shown: str, settings: Settings, codes: tuple[str, ...]) -> str:
        """The name of the result for a file of these bytes, shown under this path, checked with these rules."""
        return blake2b(data + _context(self._identity, shown, settings, codes), digest_size=20).hexdigest()

    def get(self, key: str) -> list[Diagnostic] | None:
        """The result of that name, if it is known."""
        path = self._path(key)
        try:
            found = decode(json.loads(path.read_bytes()))
            if time.time() - path.stat().st_mtime > DAY:
                os.utime(path)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return found

    def put(self, key: str, diagnostics: Iterable[Diagnostic]) -> None:
        """Remember a result."""
        path = self._path(key)
        temporary = path.with_suffix(f".{os.getpid()}")
        with suppress(OSError):
            self._prepare()
            path.parent.mkdir(exist_ok=True)
            temporary.write_text(json.dumps(encode(diagnostics), separators=(",", ":")), encoding="utf-8")
            temporary.replace(path)

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / key[2:]

    def _prepare(self) -> None:
        if not self.directory.is_dir():
            self.directory.mkdir(parents=True, exist_ok=True)
            for name, text in README.items():
                (self.directory / name).write_text(text, encoding="utf-8")

    def prune(self) -> None:
        """Delete what is old and what is too much; at most once a day, after a run that has added something."""
        stamp = self.directory / "pruned"
        with suppress(OSError):
            if stamp.exists() and time.time() - stamp.stat().st_mtime < DAY:
                return
            stamp.touch()
            entries = sorted(self._entries(), reverse=True)
            old = time.time() - LIFETIME
            for number, (used, path) in enumerate(entries):
                if used < old or number >= CAPACITY:
                    path.unlink(missing_ok=True)

    def _entries(self) -> Iterator[tuple[float, Path]]:
        for folder in self.directory.iterdir():
            if len(folder.name) == 2 and folder.is_dir():
                yield from ((path.stat().st_mtime, path) for path in folder.iterdir())


def is_cache(directory: Path) -> bool:
    """Is it a cache that dtlint has made? Nothing else may be deleted for one."""
    try:
        return (directory / "CACHEDIR.TAG").read_text(encoding="utf-8") == README["CACHEDIR.TAG"]
    except (OSError, ValueError):
        return False


@cache
def _settled(settings: Settings) -> str:
    return repr(settings)


def _context(identity: str, shown: str, settings: Settings, codes: tuple[str, ...]) -> bytes:
    return "\0".join(["", identity, shown, _settled(settings), *codes]).encode(errors="surrogatepass")


def fingerprint(rules: Iterable[AnyRule]) -> str:
    """What changes when the code of dtlint or of a rule does: size and time of every file of their packages."""
    import dtlint

    packages = {_module(rule).partition(".")[0] for rule in rules}
    specs = [find_spec(package) for package in packages]
    folders = {folder for spec in specs if spec is not None for folder in spec.submodule_search_locations or ()}
    folders.update(dtlint.__path__)
    digest = blake2b(digest_size=20)
    for folder in sorted(folders):
        for name, size, time_ns in sorted(_files(folder)):
            digest.update(f"{name}\0{size}\0{time_ns}\0".encode(errors="surrogatepass"))
    return digest.hexdigest()


def _module(rule: AnyRule) -> str:
    return rule.__module__ if isinstance(rule, type) else rule.module


def _files(folder: str) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "__pycache__":
                yield from _files(entry.path)
        else:
            status = entry.stat()
            yield entry.path, status.st_size, status.st_mtime_ns


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
            "notes": [[_encode_location(note.location), note.message] for note in diagnostic.notes],
            "fix": diagnostic.fix and _encode_fix(diagnostic.fix),
            "lines": diagnostic.lines,
            "noqa_line": diagnostic.noqa_line,
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
            notes=tuple(Note(_decode_location(location), message) for location, message in item["notes"]),
            fix=_decode_fix(item["fix"]) if item["fix"] else None,
            lines=tuple((number, line) for number, line in item["lines"]),
            noqa_line=item["noqa_line"],
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
