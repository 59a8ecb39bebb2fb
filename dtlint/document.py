"""A rule's docstring, read as the document that it is: a summary line, then sections under fixed headings.

`dtlint rule`, the help in SARIF reports, the table of the README and the tests of the examples all read it from here.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.rule import RulesError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtlint.rule import Rule

__all__ = ["HEADINGS", "Document", "document", "page", "parse", "required"]

HEADINGS = ("What it does", "Why it matters", "Example", "Use instead", "Fix safety", "References")
"""The headings that a rule's docstring may have, in the order in which it has them."""

HEADING = re.compile(r"## +(?P<title>.*?) *")
FENCE = re.compile(r"(?P<fence>```+|~~~+) *(?P<language>\w*).*")


@dataclass(frozen=True, slots=True)
class Document:
    """What a rule says about itself."""

    summary: str
    """One line, without the heading."""
    sections: Mapping[str, str]
    """The text below each heading, in order, in Markdown."""

    @property
    def example(self) -> tuple[str, ...]:
        """The python blocks that the rule must flag."""
        return tuple(python_blocks(self.sections.get("Example", "")))

    @property
    def instead(self) -> tuple[str, ...]:
        """The python blocks that the rule must not flag; the n-th mends the n-th example."""
        return tuple(python_blocks(self.sections.get("Use instead", "")))

    def markdown(self) -> str:
        """The whole document as Markdown, summary first."""
        return "\n\n".join([self.summary, *(f"## {title}\n\n{text}" for title, text in self.sections.items())]) + "\n"


def document(rule: type[Rule]) -> Document:
    """The document of a rule.

    Raises:
        RulesError: the docstring is missing, or is not a document; the sentence names the rule and what is wrong.
    """
    text, whose = rule.__dict__.get("__doc__"), f"{rule.__module__}.{rule.__name__}"
    if not text:
        raise RulesError(f"{whose} has no docstring, which documents a rule; see `dtlint rule DT390 --new double-cast`")
    try:
        return parse(inspect.cleandoc(text))
    except ValueError as error:
        raise RulesError(f"the docstring of {whose}: {error}") from None


def page(rule: type[Rule]) -> str:
    """The documentation of a rule as one Markdown text, with its name, its severity and its fix.

    Raises:
        RulesError: as `document` does.
    """
    facts = [f"severity {rule.severity.value}", f"fix: {rule.fix.value}", "on by default" if rule.default else "opt-in"]
    return f"# {rule.code} {rule.name}\n\n*{' · '.join(facts)}*\n\n{document(rule).markdown()}"


def parse(text: str) -> Document:
    """The document in a docstring whose indentation is already removed.

    Raises:
        ValueError: a heading is unknown, stands twice or out of order; there is no summary line, or more than one.
    """
    summary, *rest = text.split("\n", 1)
    if not summary.strip() or HEADING.fullmatch(summary):
        raise ValueError("the first line must be the summary")
    sections: dict[str, list[str]] = {}
    body: list[str] = []
    fence = ""
    for line in rest[0].split("\n") if rest else []:
        heading = None if fence else HEADING.fullmatch(line)
        if heading:
            body = sections.setdefault(_known(heading["title"], sections), [])
            continue
        if not sections and line.strip():
            raise ValueError(f"the summary must be one line, followed by a heading; found {line.strip()!r}")
        body.append(line)
        fence = _fence_after(line, fence)
    return Document(summary.strip(), {title: "\n".join(lines).strip() for title, lines in sections.items()})


def required(fix: Applicability) -> frozenset[str]:
    """The headings that a rule with such a fix must have. A rule that never edits has no safety to speak of."""
    optional = {"References"} if fix is not Applicability.NONE else {"References", "Fix safety"}
    return frozenset(HEADINGS) - optional


def python_blocks(text: str) -> list[str]:
    """The contents of the fenced python blocks of a Markdown text, each ending in a newline."""
    blocks: list[str] = []
    fence, lines = "", list[str]()
    wanted = False
    for line in text.split("\n"):
        after = _fence_after(line, fence)
        if not fence and after:
            opening = FENCE.fullmatch(line.strip())
            wanted, lines = opening is not None and opening["language"] in ("python", "py"), []
        elif fence and not after and wanted:
            blocks.append("\n".join(lines) + "\n")
        elif fence:
            lines.append(line)
        fence = after
    return blocks


def _fence_after(line: str, fence: str) -> str:
    """The fence that is open after this line: a line of the same signs closes the one that was open."""
    found = FENCE.fullmatch(line.strip())
    if not fence:
        return found["fence"] if found else ""
    return "" if found and line.strip().startswith(fence) and not found["language"] else fence


def _known(title: str, seen: Mapping[str, object]) -> str:
    if title not in HEADINGS:
        raise ValueError(f"there is no heading {title!r}; use {', '.join(HEADINGS)}")
    if any(HEADINGS.index(title) <= HEADINGS.index(other) for other in seen):
        raise ValueError(f"the heading {title!r} stands twice or out of order; the order is {', '.join(HEADINGS)}")
    return title
