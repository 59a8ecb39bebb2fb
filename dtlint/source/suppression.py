"""Comments that silence a diagnostic: `# noqa: DT101`, `# dtlint: ignore[DT101]`, `# dtlint: file-ignore[DT101]`.

A comment holds for the whole logical line that it stands on, whichever of its lines that is. What it was good for is
remembered, so that a comment which silences nothing can be reported.
"""

from __future__ import annotations

import re
import tokenize
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.diagnostic import Edit, Span
from dtlint.source.lines import count_ends

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from dtlint.source.file import Source

__all__ = ["LogicalLine", "Malformed", "Suppressions", "Unused", "logical_lines", "silences", "tokens"]

_FOR_DTLINT = re.compile(rb"dtlint\s*:")
_NOQA = re.compile(r"#\s*(?i:noqa)(?![\w-])(?P<list>\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?)?")
_DTLINT = re.compile(r"#\s*dtlint:\s*(?P<file>file-)?ignore(?:(?P<list>\s*\[(?P<codes>[^\]#]*)\])|(?=\s*(?:#|$)))")
"""Blanket only where nothing else follows: `ignore(DT101)` and `ignore DT101` are meant for one rule."""
_MEANT = re.compile(r"#\s*(?:(?P<dtlint>(?i:dtlint)\s*:)|(?P<noqa>(?i:noqa)\s*:))[^#]*")
"""What wants to be a suppression, well written or not."""
_NAME = re.compile(r"[\w-]+")
_OURS = re.compile(r"DT[0-9]+")
"""What a code of dtlint looks like, among those of other linters."""


@dataclass(frozen=True)
class LogicalLine:
    """The lines of one statement, or of the header of a compound one; decorators belong to what they decorate."""

    first: int
    last: int


@dataclass
class Code:
    """One code or rule name in a comment."""

    text: str
    start: int
    end: int
    used: bool = False


def _code(text: str) -> str:
    """A code as rules have it, `DT101` of `dt101`; a name as it is."""
    return text.upper() if _OURS.fullmatch(text.upper()) else text


@dataclass
class Directive:
    """One comment, or the part of one, that silences something."""

    line: int
    start: int
    """The column of its `#`."""
    end: int
    comment_start: int
    comment_end: int
    lines: LogicalLine
    codes: list[Code]
    """Empty: everything is silenced."""
    ours: bool
    """Was it written for dtlint alone?"""
    whole_file: bool = False

    def silences(self, code: str, name: str) -> bool:
        """Does it hold for this rule? If so, it was good for something."""
        matching = [listed for listed in self.codes if listed.text in (code, name)]
        for listed in matching:
            listed.used = True
        return bool(matching) or not self.codes


@dataclass(frozen=True)
class Unused:
    """Codes of one comment that silence nothing."""

    span: Span
    idle: tuple[str, ...]
    """Codes of rules that ran, and found nothing to silence."""
    unknown: tuple[str, ...]
    """What names no rule."""
    edit: Edit
    """Deletes these codes, or all of the comment where it says nothing else."""


@dataclass(frozen=True)
class Malformed:
    """A comment, or the part of one, that looks like a suppression, is none, and so silences nothing."""

    text: str
    span: Span
    words: tuple[str, ...]
    """What may be meant as codes or names of rules."""
    ours: bool
    """Was it written for dtlint alone? Of a `noqa` only the words can tell."""
    whole_file: bool


@dataclass
class Suppressions:
    """The comments of one file that silence something."""

    source: Source
    directives: list[Directive] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)

    @classmethod
    def of(cls, source: Source, within: Sequence[tuple[int, int]] | None = None) -> Suppressions:
        """Read them. A file whose bytes hold none of the words is not even split into tokens, nor is one whose comments are
        for other linters or for all, and stand where nothing was found: they can be idle without anybody being told.

        Args:
            within: the first and last lines of all that they will be asked about, whole statements; None: anything.
        """
        written = source.data if source.notebook is None else source.text.encode()
        lowered = written.lower()
        for_dtlint = b"dtlint" in lowered and _FOR_DTLINT.search(lowered) is not None
        if not for_dtlint and (
            b"noqa" not in lowered or (within is not None and _is_for_others(written, lowered, within))
        ):
            return cls(source)
        suppressions = cls(source)
        for lines, comments in logical_lines(tokens(source)):
            for comment in comments:
                directives = list(_in_comment(comment, lines))
                suppressions.directives += directives
                suppressions.malformed += _malformed(comment, {directive.start for directive in directives})
        return suppressions

    def covers(self, code: str, line: int, end_line: int, name: str = "") -> bool:
        """Is a diagnostic of this code on these lines silenced? All comments that do so count as used.

        For a diagnostic about a compound statement the lines are those of its header.
        """
        silencing = [
            directive
            for directive in self.directives
            if (directive.whole_file or (directive.lines.first <= end_line and line <= directive.lines.last))
            and directive.silences(code, name)
        ]
        return bool(silencing)

    def unused(self, checked: Mapping[str, str], known: Collection[str]) -> list[Unused]:
        """The comments that silence nothing, in order. Ask after all diagnostics of the file went through `covers`.

        Args:
            checked: the rules that ran on this file, code to name. A comment about any other rule is left alone.
            known: all codes and all names that there are.
        """
        both = {*checked, *checked.values()}
        found = []
        for directive in self.directives:
            idle, unknown = [], []
            for code in directive.codes:
                if code.used or not (directive.ours or _OURS.fullmatch(code.text)):
                    continue
                if code.text not in known:
                    unknown.append(code)
                elif code.text in both:
                    idle.append(code)
            if idle or unknown:
                found.append(self._report(directive, idle, unknown))
        return found

    def _report(self, directive: Directive, idle: list[Code], unknown: list[Code]) -> Unused:
        gone = sorted([*idle, *unknown], key=lambda code: code.start)
        return Unused(
            Span(directive.line, gone[0].start, directive.line, gone[-1].end),
            tuple(code.text for code in idle),
            tuple(code.text for code in unknown),
            self._without(directive, gone),
        )

    def _without(self, directive: Directive, gone: list[Code]) -> Edit:
        """The edit that takes some codes out of a comment."""
        line = self.source.lines[directive.line - 1]
        kept = [code for code in directive.codes if code not in gone]
        if kept:
            first, last = directive.codes[0], directive.codes[-1]
            span = Span(directive.line, first.start, directive.line, last.end)
            return Edit(span, ", ".join(code.text for code in kept))
        before = line[directive.comment_start : directive.start].rstrip()
        after = line[directive.end : directive.comment_end].strip()
        if before or after:
            rest = "  ".join(
                part for part in (before, after if after.startswith("#") else after and f"# {after}") if part
            )
            return Edit(Span(directive.line, directive.comment_start, directive.line, directive.comment_end), rest)
        code = line[: directive.comment_start].rstrip()
        if code or directive.line == len(self.source.lines):
            return Edit(Span(directive.line, len(code), directive.line, directive.comment_end), "")
        return Edit(Span(directive.line, 0, directive.line + 1, 0), "")


_FOR_OTHERS = re.compile(rb"\s*:\s*(?!DT)[A-Z]+[0-9]+(?![\w-])|(?!\s*:)")
"""What stands behind `noqa`: a colon and a code of another linter, or no colon, which makes it blanket."""
_FOR_US = re.compile(rb"dt[0-9]|noqa")
"""What may name a rule of dtlint further on in the line, in small letters."""


def _is_for_others(written: bytes, lowered: bytes, within: Sequence[tuple[int, int]]) -> bool:
    """Is every `noqa` blanket, or for codes of other linters, whatever is said behind them, and on none of some lines?"""
    at = lowered.find(b"noqa")
    while at >= 0:
        begin, end = at + 4, lowered.find(b"\n", at)
        end = len(lowered) if end < 0 else end
        if _FOR_OTHERS.match(written, begin, end) is None or _FOR_US.search(lowered, begin, end) is not None:
            return False
        line = count_ends(written[:at].decode("latin-1")) + 1 if within else 0  # a character for each byte
        if any(first <= line <= last for first, last in within):
            return False
        at = lowered.find(b"noqa", end)
    return True


def tokens(source: Source) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a file, as far as it can be split into any.

    Line endings are read as `\\n`: the tokenizer of Python 3.11 and older stumbles over a lone carriage return.
    """
    readline = (line + "\n" for line in source.lines).__next__
    try:
        yield from tokenize.generate_tokens(readline)
    except (tokenize.TokenError, SyntaxError):
        return


def logical_lines(read: Iterable[tokenize.TokenInfo]) -> Iterator[tuple[LogicalLine, list[tokenize.TokenInfo]]]:
    """The logical lines among tokens, each with its comments. A comment on a line of its own is one too."""
    first, opening = 0, ""
    comments: list[tokenize.TokenInfo] = []
    for token in read:
        if token.type == tokenize.COMMENT:
            comments.append(token)
        elif token.type == tokenize.NL and not first:
            yield from ((LogicalLine(comment.start[0], comment.start[0]), [comment]) for comment in comments)
            comments = []
        elif token.type == tokenize.NEWLINE and opening == "@":
            opening = ""
        elif token.type == tokenize.NEWLINE:
            yield LogicalLine(first, token.start[0]), comments
            first, opening, comments = 0, "", []
        elif token.type not in _LAYOUT:
            first, opening = first or token.start[0], opening or token.string


_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.ENCODING})


def silences(comment: str, code: str, name: str) -> bool:
    """Does a comment, which begins with its `#`, silence a rule on its line? For files that are no Python."""
    token = tokenize.TokenInfo(tokenize.COMMENT, comment, (1, 0), (1, len(comment)), comment)
    return any(one.silences(code, name) for one in _in_comment(token, LogicalLine(1, 1)))


def _in_comment(comment: tokenize.TokenInfo, lines: LogicalLine) -> Iterator[Directive]:
    line, base = comment.start
    for pattern in (_NOQA, _DTLINT):
        for found in pattern.finditer(comment.string):
            listed = found["codes"]
            if found["list"] and not (listed and listed.strip()):
                continue  # a colon with no code behind it is no blanket
            start = base + found.start("codes") if listed else 0
            yield Directive(
                line,
                base + found.start(),
                base + found.end(),
                base,
                comment.end[1],
                lines,
                [
                    Code(_code(name[0]), start + name.start(), start + name.end())
                    for name in _NAME.finditer(listed or "")
                ],
                ours=pattern is _DTLINT,
                whole_file=pattern is _DTLINT and bool(found["file"]),
            )


def _malformed(comment: tokenize.TokenInfo, well_formed: set[int]) -> Iterator[Malformed]:
    """What wants to be a suppression and is none; `well_formed` are the columns of those that are."""
    line, base = comment.start
    for found in _MEANT.finditer(comment.string):
        start, text = base + found.start(), found[0].rstrip()
        quoted = comment.string[found.start() - 1 : found.start()] in ("`", "'", '"')
        if start in well_formed or quoted:
            continue
        said = text.partition(":")[2]
        yield Malformed(
            text,
            Span(line, start, line, start + len(text)),
            tuple(_NAME.findall(said)),
            ours=found["dtlint"] is not None,
            whole_file="file" in said.lower(),
        )
