"""The page around the data: its style and script stand in it, and its policy lets a browser run nothing else.

The data come from strangers' files. They are JSON in an element that is not run, without any `<`, and the script puts
them into the page as text alone.
"""

from __future__ import annotations

import html
import json
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from string import Template

from dtlint import __version__

__all__ = ["embedded", "render"]

SCRIPT = (
    "dom",
    "table",
    "findings",
    "answers",
    "heat",
    "modules",
    "magnitudes",
    "casts",
    "training",
    "compare",
    "page",
)
"""Its files, in the order in which they stand in the page."""

HERE = Path(__file__).parent


def render(title: str, data: dict[str, object]) -> str:
    """The whole text of the page."""
    style, script = _part("page.css"), "\n".join(_part(f"script/{name}.js") for name in SCRIPT)
    return Template(_part("page.html")).substitute(
        title=html.escape(title),
        version=html.escape(__version__),
        policy=(
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
            " base-uri 'none'; form-action 'none'"
        ),
        style=style,
        script=script,
        data=embedded(data),
    )


def embedded(data: object) -> str:
    """JSON that no text in it can end, whatever it says."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """As a content security policy names an inline element that may be used."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
