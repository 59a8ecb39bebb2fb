"""Code actions: fixes, all safe ones at once, and comments that silence a finding."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from dtlint.check.fix import with_fixes
from dtlint.check.hygiene import UNREADABLE_FILE, UNUSED_SUPPRESSION
from dtlint.check.job import IGNORE, NOQA
from dtlint.diagnostic import Applicability
from dtlint.source.annotate import suppressed
from dtlint.source.file import Source, UnreadableSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.diagnostic import Diagnostic, Fix
    from dtlint.server.positions import Text

    Located = tuple[Diagnostic, dict[str, Any]]
    """A diagnostic, and how the protocol has it."""

__all__ = ["FIX_ALL", "KINDS", "QUICK_FIX", "EditedText", "Edits", "edits_between", "fixes", "suppressions", "wants"]

QUICK_FIX = "quickfix"
FIX_ALL = "source.fixAll.dtlint"
KINDS = (QUICK_FIX, FIX_ALL)
_UNSAFE = " (unsafe: may change what the code does)"

Edits = dict[str, list[dict[str, Any]]]
"""Edits by the URI of the text that they are of."""


def wants(only: object, kind: str) -> bool:
    """Is a kind of action among those that the client asks for? It asks for all, or for some and what is below them."""
    if not isinstance(only, list) or not only:
        return True
    return any(isinstance(one, str) and f"{kind}.".startswith(f"{one}.") for one in only)


@dataclass(frozen=True)
class EditedText:
    """The text that actions edit.

    Attributes:
        data: the file, as it would be saved.
        shown: the file, as messages name it.
        texts: the texts that places are in, by the cell of a notebook, each with its URI.
    """

    data: bytes
    shown: str
    texts: Mapping[int | None, tuple[str, Text]]

    def source(self) -> Source:
        """The text, as rules read it.

        Raises:
            UnreadableSource: it is no Python.
        """
        return Source.from_bytes(self.data, self.shown)


def fixes(found: Sequence[Located], text: EditedText) -> Iterator[tuple[dict[str, Any], Edits]]:
    """The fixes of diagnostics: code actions, each with its edits."""
    for diagnostic, shown in found:
        fix = diagnostic.fix
        if fix is None or fix.applicability not in (Applicability.SAFE, Applicability.UNSAFE):
            continue
        is_safe = fix.applicability is Applicability.SAFE
        edits = _edits(diagnostic, fix, text)
        if not edits:
            continue
        action: dict[str, Any] = {
            "title": f"{diagnostic.code}: {fix.message}" + ("" if is_safe else _UNSAFE),
            "kind": QUICK_FIX,
            "diagnostics": [shown],
        }
        if is_safe:
            action["isPreferred"] = True
        yield action, edits


def _edits(diagnostic: Diagnostic, fix: Fix, text: EditedText) -> Edits:
    """The edits of a fix; with those that take away the imports which nothing uses then, where there are such."""
    if fix.orphans and diagnostic.location.cell is None:
        try:
            source = text.source()
            return edits_between(source, with_fixes(source, [fix]), text.texts)
        except (UnreadableSource, SyntaxError, ValueError):
            return {}
    uri, lines = text.texts[diagnostic.location.cell]
    return {uri: [{"range": lines.range(one.span), "newText": one.text} for one in fix.edits]}


def suppressions(found: Sequence[Located], text: EditedText) -> Iterator[tuple[dict[str, Any], Edits]]:
    """Comments that silence diagnostics, of both forms: code actions, each with its edits."""
    try:
        source = text.source()
    except UnreadableSource:
        return
    for diagnostic, shown in found:
        if diagnostic.code in (UNREADABLE_FILE[0], UNUSED_SUPPRESSION[0]):
            continue
        line = source.text_line(diagnostic.location, diagnostic.noqa_line or diagnostic.location.span.line)
        for form in (IGNORE, NOQA):
            try:
                after = suppressed(source, {line: {diagnostic.code}}, form)
            except (ValueError, IndexError):
                continue
            title = f"Silence {diagnostic.code} here: {form.format(diagnostic.code)}"
            action = {"title": title, "kind": QUICK_FIX, "diagnostics": [shown]}
            yield action, edits_between(source, after, text.texts)


def edits_between(source: Source, after: Source, texts: Mapping[int | None, tuple[str, Text]]) -> Edits:
    """What makes one text of another, line by line; of a notebook cell by cell."""
    if source.notebook is None or after.notebook is None:
        uri, text = texts[None]
        changes = _line_edits(text, after.text)
        return {uri: changes} if changes else {}
    found: Edits = {}
    for cell in after.notebook.cells:
        uri, text = texts[cell.number]
        changes = _line_edits(text, cell.head + cell.text)
        if changes:
            found[uri] = changes
    return found


def _line_edits(text: Text, after: str) -> list[dict[str, Any]]:
    old, new = text.text.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    found = []
    for kind, first, last, new_first, new_last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            where = {"start": text.position_of(starts[first]), "end": text.position_of(starts[last])}
            found.append({"range": where, "newText": "".join(new[new_first:new_last])})
    return found
