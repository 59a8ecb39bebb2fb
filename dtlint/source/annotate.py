"""Writes suppressions, `# noqa: DT101` or `# dtlint: ignore[DT101]`, at the end of the right line.

Where the line has a comment of that form with a list of codes, they join it.
"""

from __future__ import annotations

import tokenize
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.source.suppression import Suppressions, tokens

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dtlint.source.file import Source

__all__ = ["suppressed"]


def suppressed(source: Source, wanted: Mapping[int, Collection[str]], form: str) -> Source:
    """The file with these codes suppressed on these lines of its text, by comments of this form.

    Inside a multi-line string and before a backslash no comment can stand; it goes to the next line where one can.

    Raises:
        ValueError: the file cannot hold the text (see `Source.replaced`).
    """
    tokenized = source
    if source.notebook is not None:  # behind a cell that does not parse there would be no tokens
        tokenized = replace(source, text=source.notebook.readable)
    ends = sorted({token.start[0] for token in tokens(tokenized) if token.type in (tokenize.NEWLINE, tokenize.NL)})
    codes: dict[int, set[str]] = {}
    for line, missing in wanted.items():
        place = next((end for end in ends if end >= line), line)
        codes.setdefault(place, set()).update(missing)
    listed = {
        directive.line: directive.codes[-1].end
        for directive in Suppressions.of(tokenized).directives
        if directive.codes and directive.ours is ("dtlint" in form) and not directive.whole_file
    }
    text = source.text
    for line, missing in sorted(codes.items(), reverse=True):
        new = ", ".join(sorted(missing))
        content = source.lines[line - 1]
        column = listed.get(line, len(content.rstrip()))
        at = source.offset(line, column)
        addition = f", {new}" if line in listed else f"  {form.format(new)}"
        text = text[:at] + addition + text[at if line in listed else source.offset(line, len(content)) :]
    return source.replaced(text)
