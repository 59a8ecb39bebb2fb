"""What an expression is, and why: shown where the pointer is, or beside each line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Location, Span
from dtlint.infer.claims.account import Account, shown
from dtlint.infer.claims.bindings import assigned
from dtlint.infer.interproc.disk import Disk
from dtlint.source.file import shown_path

if TYPE_CHECKING:
    from pathlib import Path

    from dtlint.infer.claims.account import Step
    from dtlint.server.positions import Text
    from dtlint.server.tasks import Inferred

__all__ = ["Hints"]


class Hints:
    """The dtypes of one reading of a file.

    Args:
        path: the file.
    """

    def __init__(self, inferred: Inferred, path: Path) -> None:
        assert inferred.tables is not None
        self._path = path
        self._account = Account(path, Disk(inferred.contents), inferred.tables)
        self._targets = inferred.targets

    def at(self, cell: int | None, line: int, column: int, text: Text) -> dict[str, Any] | None:
        """The dtype of the innermost tensor expression at a place, or of what is assigned to the name there, with the steps
        that lead to it, as a `Hover`; None where nothing is known.

        Args:
            line: of the cell, from 1; the column counts characters.
        """
        account, path = self._account, self._path
        line = self._line_of_text(cell, line)
        name, found = "", account.at(path, line, column)
        if found is None:
            name, found = assigned(account, path, self._targets, line, column)
        steps = [] if found is None else account.why(found)
        if not steps or (steps[0].dtypes is None and steps[0].symbolic is None):
            return None
        first = steps[0]
        lines = [f"`{name or first.expression}`: **{first.symbolic or shown(first.dtypes)}**", ""]
        lines += [f"- {self._in_words(step)}" for step in steps]
        hover: dict[str, Any] = {"contents": {"kind": "markdown", "value": "\n".join(lines)}}
        if not name:
            location = account.source(path).location(first.span)
            if location.cell == cell:
                hover["range"] = text.range(location.span)
        return hover

    def beside(self, cell: int | None, first: int, last: int, text: Text) -> list[dict[str, Any]]:
        """The dtypes of what the lines from one to another compute, as `InlayHint`s at their ends; lines from 1."""
        found = []
        source = self._account.main
        for line, note in self._account.notes().items():
            location = source.location(Span(line, 0, line, 0))
            within = location.span.line
            if location.cell == cell and first <= within <= last:
                end = text.position(within, len(text.line(within - 1)))
                found.append({"position": end, "label": note.text, "kind": 1, "paddingLeft": True})
        return found

    def _line_of_text(self, cell: int | None, line: int) -> int:
        source = self._account.main
        return line if cell is None else source.text_line(Location(source.path, Span(line, 0, line, 0), cell), line)

    def _in_words(self, step: Step) -> str:
        location = self._account.source(step.path).location(step.span)
        here = "" if step.path == self._path else f"{shown_path(step.path)}, "
        cell = "" if location.cell is None else f"cell {location.cell}, "
        known = step.dtypes is not None and step.symbolic is None
        has = f"is {shown(step.dtypes)}" if known else f"has {step.symbolic or 'a dtype that is not known'}"
        return f"{here}{cell}line {location.span.line}: `{step.expression}` {has}: {step.reason}"
