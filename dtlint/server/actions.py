"""Code actions: fixes, all safe ones at once, and comments that silence a finding."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from dtlint.check.fix import with_fixes
from dtlint.check.hygiene import UNREADABLE_FILE, UNUSED_SUPPRESSION
from dtlint.check.job import IGNORE, NOQA
from dtlint.diagnostic import Applicability
from dtlint.source.annotate import suppressed
from dtlint.source.file import Source, UnreadableSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dtlint.diagnostic import Diagnostic, Fix
    from dtlint.server.positions import Text

__all__ = ["FIX_ALL", "KINDS", "edits_between", "fixes", "suppressions", "wants"]

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


def fixes(
    found: Sequence[tuple[Diagnostic, dict[str, Any]]],
    data: bytes,
    shown: str,
    texts: Mapping[int | None, tuple[str, Text]],
    edit: Callable[[Edits], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """The fixes of diagnostics, each with the diagnostic in the words of the protocol."""
    for diagnostic, told in found:
        fix = diagnostic.fix
        if fix is None or fix.applicability not in (Applicability.SAFE, Applicability.UNSAFE):
            continue
        is_safe = fix.applicability is Applicability.SAFE
        changes = _edits(diagnostic, fix, data, shown, texts)
        if not changes:
            continue
        action: dict[str, Any] = {
            "title": f"{diagnostic.code}: {fix.message}" + ("" if is_safe else _UNSAFE),
            "kind": QUICK_FIX,
            "diagnostics": [told],
            "edit": edit(changes),
        }
        if is_safe:
            action["isPreferred"] = True
        yield action


def _edits(
    diagnostic: Diagnostic, fix: Fix, data: bytes, shown: str, texts: Mapping[int | None, tuple[str, Text]]
) -> Edits:
    """The edits of a fix; with those that take away the imports which nothing uses then, where there are such."""
    uri, text = texts[diagnostic.location.cell]
    if fix.orphans and diagnostic.location.cell is None:
        try:
            source = Source.from_bytes(data, shown)
            return edits_between(source, with_fixes(source, [fix]), texts)
        except (UnreadableSource, SyntaxError, ValueError):
            return {}
    return {uri: [{"range": text.range(one.span), "newText": one.text} for one in fix.edits]}


def suppressions(
    found: Sequence[tuple[Diagnostic, dict[str, Any]]],
    data: bytes,
    shown: str,
    texts: Mapping[int | None, tuple[str, Text]],
    edit: Callable[[Edits], dict[str, Any]],
) -> Iterator[dict[str, Any]]:
    """Comments that silence diagnostics, of both forms."""
    try:
        source = Source.from_bytes(data, shown)
    except UnreadableSource:
        return
    for diagnostic, told in found:
        if diagnostic.code in (UNREADABLE_FILE[0], UNUSED_SUPPRESSION[0]):
            continue
        line = source.text_line(diagnostic.location, diagnostic.noqa_line or diagnostic.location.span.line)
        for form in (IGNORE, NOQA):
            try:
                after = suppressed(source, {line: {diagnostic.code}}, form)
            except (ValueError, IndexError):
                continue
            yield {
                "title": f"Silence {diagnostic.code} here: {form.format(diagnostic.code)}",
                "kind": QUICK_FIX,
                "diagnostics": [told],
                "edit": edit(edits_between(source, after, texts)),
            }


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
