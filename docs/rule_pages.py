"""A page of the site for each rule, made from the rule's own document; a hook of MkDocs.

The table of rules links to these pages on the site, and to nothing where it is read as a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

from dtlint.document import document
from dtlint.rule import discover

if TYPE_CHECKING:
    from dtlint.rule import Rule


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each rule."""
    for rule in discover().values():
        files.append(File.generated(config, f"rules/{rule.code}.md", content=_page(rule)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Link the table of rules to the pages."""
    if page.file.src_uri != "rules.md":
        return markdown
    return re.sub(r"^\| (DT\d{3}) \|", r"| [\1](rules/\1.md) |", markdown, flags=re.MULTILINE)


def _page(rule: type[Rule]) -> str:
    text = document(rule).markdown()
    facts = f"*{rule.severity.value}*" + ("" if rule.default else ", opt-in")
    return f"# {rule.code} {rule.name}\n\n{facts}\n\n{text}"
