"""The page on editors says what the server does, and its snippets are what editors can read."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from dtlint.cli import COMMANDS
from dtlint.server.actions import FIX_ALL
from dtlint.server.options import Options

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "editors.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_lists_each_setting() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    named = [re.sub(r"_(\w)", lambda found: found[1].upper(), one.name) for one in fields(Options)]
    assert listed == named
    assert f"| `debounce` | `{Options().debounce}` |" in PAGE


def test_the_snippets_start_the_server() -> None:
    assert "server" in COMMANDS
    extension, on_save, jupyter = map(json.loads, blocks("json")[:3])
    assert jupyter["LanguageServerManager"]["language_servers"]["dtlint"]["argv"] == ["dtlint", "server"]
    assert list(on_save["editor.codeActionsOnSave"]) == [FIX_ALL]
    settings = {
        name.removeprefix("dtlint."): one["default"]
        for name, one in extension["contributes"]["configuration"]["properties"].items()
    }
    assert Options().updated(settings) == (Options(), [])
    assert all('{ "dtlint", "server" }' in one for one in blocks("lua"))


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_the_snippet_for_helix_is_toml() -> None:
    import tomllib

    [snippet] = map(tomllib.loads, blocks("toml"))
    server = snippet["language-server"]["dtlint"]
    assert [server["command"], *server["args"]] == ["dtlint", "server"]
    assert Options().updated(server["config"])[0].inlay_hints
