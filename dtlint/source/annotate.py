"""Writes suppressions: `# noqa: DT101` at the end of the right line, joined to a list of codes that is already there."""

from __future__ import annotations

import tokenize
from typing import TYPE_CHECKING

from dtlint.source.suppression import Suppressions, tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dtlint.source.file import Source

__all__ = ["with_noqa"]


def with_noqa(source: Source, wanted: Mapping[int, Collection[str]]) -> Source:
    """The file with these codes suppressed on these lines of its text.

    Inside a multi-line string and before a backslash no comment can stand; it goes to the next line where one can.

    Raises:
        ValueError: the file cannot hold the text (see `Source.replaced`).
    """
    ends = sorted({token.start[0] for token in tokens(source) if token.type in (tokenize.NEWLINE, tokenize.NL)})
    codes: dict[int, set[str]] = {}
    for line, missing in wanted.items():
        place = next((end for end in ends if end >= line), line)
        codes.setdefault(place, set()).update(missing)
    listed = {
        directive.line: directive.codes[-1].end
        for directive in Suppressions.of(source).directives
        if directive.codes and not directive.ours
    }
    text = source.text
    for line, missing in sorted(codes.items(), reverse=True):
        new = ", ".join(sorted(missing))
        content = source.lines[line - 1]
        column = listed.get(line, len(content.rstrip()))
        at = source.offset(line, column)
        addition = f", {new}" if line in listed else f"  # noqa: {new}"
        text = text[:at] + addition + text[at if line in listed else source.offset(line, len(content)) :]
    return source.replaced(text)
