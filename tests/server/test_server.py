"""The language server as a scripted editor sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from client import Client

PROGRAM = """\
import torch
from torch import nn

model = nn.Linear(8, 1)
data = torch.ones(4, 8, dtype=torch.float64)
print("𝒳", model(data))
"""
DEPRECATED = """\
import torch

with torch.cuda.amp.autocast():
    pass
with torch.cuda.amp.autocast(enabled=False):
    pass
"""
FIXED = """\
import torch

with torch.amp.autocast("cuda"):
    pass
with torch.amp.autocast("cuda", enabled=False):
    pass
"""


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Client]:
    with Client(tmp_path) as client:
        yield client


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """A text of ASCII after edits, as an editor applies them: all of them to the text as it was."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def offset(position: dict[str, int]) -> int:
        return starts[position["line"]] + position["character"]

    for edit in sorted(edits, key=lambda one: offset(one["range"]["start"]), reverse=True):
        start, end = offset(edit["range"]["start"]), offset(edit["range"]["end"])
        text = text[:start] + edit["newText"] + text[end:]
    return text


def test_a_file_from_opening_to_closing(editor: Client) -> None:
    assert editor.server["capabilities"]["positionEncoding"] == "utf-16"
    editor.open("train.py", PROGRAM)
    [found] = editor.diagnostics("train.py", 1)
    assert (found["code"], found["severity"], found["source"]) == ("DT302", 2, "dtlint")
    # `𝒳` is one character, and two units of UTF-16
    assert found["range"] == {"start": {"line": 5, "character": 12}, "end": {"line": 5, "character": 23}}
    page = Path(found["codeDescription"]["href"].removeprefix("file://"))
    assert page.read_text(encoding="utf-8").startswith("# DT302 ")

    hover = editor.hover("train.py", 5, 18)
    assert hover["contents"]["value"].splitlines() == [
        "`data`: **float64**",
        "",
        "- line 6: `data` is float64: it has had that dtype since",
        "- line 5: `torch.ones(4, 8, dtype=torch.float64)` is float64: the argument `dtype` decides",
    ]
    assert editor.hover("train.py", 4, 1)["contents"]["value"].startswith("`data`: **float64**")
    assert editor.hover("train.py", 0, 8) is None

    start = {"line": 4, "character": 41}
    version = editor.change("train.py", {"range": {"start": start, "end": {"line": 4, "character": 43}}, "text": "32"})
    assert editor.diagnostics("train.py", version) == []
    assert "float32" in editor.hover("train.py", 5, 18)["contents"]["value"]

    editor.tell("textDocument/didClose", {"textDocument": {"uri": editor.uri("train.py")}})
    assert editor.diagnostics("train.py") == []
    assert editor.end() == 0
    assert not page.exists()


def test_a_client_that_counts_characters_is_told_characters(tmp_path: Path) -> None:
    with Client(tmp_path, general={"positionEncodings": ["utf-16", "utf-32"]}) as editor:
        assert editor.server["capabilities"]["positionEncoding"] == "utf-32"
        editor.open("train.py", PROGRAM)
        [found] = editor.diagnostics("train.py")
        assert found["range"]["start"] == {"line": 5, "character": 11}


def test_fixes_one_by_one_and_all_at_once(editor: Client) -> None:
    editor.open("amp.py", DEPRECATED)
    found = editor.diagnostics("amp.py")
    assert [one["tags"] for one in found] == [[2], [2]]
    actions = {one["title"]: one for one in editor.actions("amp.py", 2)}
    fix = next(action for title, action in actions.items() if title.startswith("DT501: "))
    assert (fix["kind"], fix["isPreferred"]) == ("quickfix", True)
    [(uri, edits)] = fix["edit"]["changes"].items()
    assert uri == editor.uri("amp.py")
    assert applied(DEPRECATED, edits).splitlines()[2:5:2] == [FIXED.splitlines()[2], DEPRECATED.splitlines()[4]]

    [everything] = editor.actions("amp.py", 0, only=["source.fixAll"])
    assert everything["kind"] == "source.fixAll.dtlint"
    assert applied(DEPRECATED, everything["edit"]["changes"][editor.uri("amp.py")]) == FIXED
    editor.change("amp.py", {"text": FIXED})
    assert editor.actions("amp.py", 0, only=["source.fixAll.dtlint"]) == []


def test_an_unsafe_fix_says_so(editor: Client) -> None:
    editor.open("legacy.py", "import torch\n\nx = torch.ones(3).type('torch.HalfTensor')\n")
    [found] = editor.diagnostics("legacy.py")
    assert found["code"] == "DT503"
    [fix] = [one for one in editor.actions("legacy.py", 2, ["quickfix"]) if one["title"].startswith("DT503: ")]
    assert fix["title"].endswith("(unsafe: may change what the code does)")
    assert "isPreferred" not in fix
    assert editor.actions("legacy.py", 2, ["source.organizeImports"]) == []


@pytest.mark.parametrize(("form", "comment"), [("dtlint", "  # dtlint: ignore[DT501]"), ("noqa", "  # noqa: DT501")])
def test_a_finding_is_silenced_by_a_comment(editor: Client, form: str, comment: str) -> None:
    editor.open("amp.py", DEPRECATED)
    [silence] = [one for one in editor.actions("amp.py", 2) if f"# {form}" in one["title"]]
    after = applied(DEPRECATED, silence["edit"]["changes"][editor.uri("amp.py")])
    assert after == DEPRECATED.replace("autocast():\n", f"autocast():{comment}\n")
    version = editor.change("amp.py", {"text": after})
    assert [one["range"]["start"]["line"] for one in editor.diagnostics("amp.py", version)] == [4]


def test_dtypes_stand_beside_the_lines_where_that_is_switched_on(editor: Client) -> None:
    editor.open("train.py", PROGRAM)
    where = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
    about = {"textDocument": {"uri": editor.uri("train.py")}, "range": where}
    assert editor.ask("textDocument/inlayHint", about) == []
    editor.tell("workspace/didChangeConfiguration", {"settings": {"dtlint": {"inlayHints": True}}})
    hints = editor.ask("textDocument/inlayHint", about)
    told = [(hint["position"]["line"], hint["position"]["character"], hint["label"]) for hint in hints]
    assert told == [(4, 44, "float64"), (5, 24, "data: float64")]


def test_settings_of_the_client_go_over_those_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "dtlint.toml").write_text('ignore = ["DT501"]\n')
    with Client(tmp_path) as editor:
        editor.open("amp.py", DEPRECATED)
        assert editor.diagnostics("amp.py") == []
        editor.tell("workspace/didChangeConfiguration", {"settings": {"dtlint": {"extendSelect": ["DT501"]}}})
        assert len(editor.diagnostics("amp.py", wanted=bool)) == 2


def test_a_wrong_setting_is_named_and_the_others_hold(tmp_path: Path) -> None:
    with Client(tmp_path, {"asume": ["half"]}) as editor:
        told = editor.wait(lambda one: one.get("method") == "window/showMessage")
        assert told["params"]["message"] == "dtlint: there is no setting 'asume'; did you mean 'assume'?"
        editor.open("amp.py", DEPRECATED)
        assert len(editor.diagnostics("amp.py")) == 2


def test_a_wrong_configuration_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "dtlint.toml").write_text('select = ["DT999"]\n')
    with Client(tmp_path) as editor:
        editor.open("amp.py", DEPRECATED)
        told = editor.wait(lambda one: one.get("method") == "window/showMessage")
        assert "dtlint.toml" in told["params"]["message"] and "\n" not in told["params"]["message"]
        (tmp_path / "dtlint.toml").write_text("")
        change = {"uri": editor.uri("dtlint.toml"), "type": 2}
        editor.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
        assert len(editor.diagnostics("amp.py", wanted=bool)) == 2


MODULE = "import torch\n\n\ndef features(count):\n    return torch.ones(count, 8)\n"
CALLER = "from torch import nn\n\nfrom features import features\n\nmodel = nn.Linear(8, 1)\nprint(model(features(4)))\n"


def test_the_text_that_is_open_goes_before_the_disk_in_other_files_too(tmp_path: Path) -> None:
    (tmp_path / "features.py").write_text(MODULE)
    (tmp_path / "train.py").write_text(CALLER)
    with Client(tmp_path) as editor:
        editor.open("train.py", CALLER)
        editor.open("features.py", MODULE)
        assert editor.diagnostics("train.py") == []
        editor.change("features.py", {"text": MODULE.replace("8)", "8, dtype=torch.float64)")})
        [found] = editor.diagnostics("train.py", wanted=bool)
        assert (found["code"], found["range"]["start"]["line"]) == ("DT302", 5)
        assert "DT302" not in (tmp_path / "features.py").read_text()


def test_a_file_that_changes_on_disk_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "features.py").write_text(MODULE)
    (tmp_path / "train.py").write_text(CALLER)
    with Client(tmp_path) as editor:
        editor.open("train.py", CALLER)
        assert editor.diagnostics("train.py") == []
        for changed, expected in ((MODULE.replace("8)", "8, dtype=torch.float64)"), 1), (MODULE, 0), ("def (", 0)):
            (tmp_path / "features.py").write_text(changed)
            editor.forget()
            change = {"uri": editor.uri("features.py"), "type": 2}
            editor.tell("workspace/didChangeWatchedFiles", {"changes": [change]})
            found = editor.diagnostics("train.py", wanted=lambda found, expected=expected: len(found) == expected)
            assert [one["code"] for one in found] == ["DT302"] * expected


def test_a_text_that_does_not_parse_keeps_what_was_wrong_elsewhere(editor: Client) -> None:
    editor.open("amp.py", DEPRECATED)
    assert len(editor.diagnostics("amp.py")) == 2
    end = {"line": 5, "character": 8}
    version = editor.change("amp.py", {"range": {"start": end, "end": end}, "text": "\ndef f(:\n"})
    found = editor.diagnostics("amp.py", version)
    assert sorted(one["code"] for one in found) == ["DT501", "DT501", "DT802"]
    version = editor.change("amp.py", {"text": DEPRECATED})
    assert len(editor.diagnostics("amp.py", version)) == 2


def test_messages_that_are_none_are_refused_and_the_next_is_answered(editor: Client) -> None:
    editor.raw(b"Content-Length: 3\r\n\r\n{!}")
    assert editor.result(None)["code"] == -32700
    editor.raw(b"garbage\r\n\r\n")
    assert editor.result(None)["code"] == -32700
    editor.raw(b"Content-Length: x\r\n\r\n")
    assert editor.result(None)["code"] == -32700
    assert editor.ask("textDocument/nonsense", {})["code"] == -32601
    assert editor.ask("textDocument/hover", {"position": 3})["code"] == -32602
    assert editor.ask("textDocument/hover", [1])["code"] == -32602
    assert editor.ask("initialize", {})["code"] == -32600
    editor.tell("textDocument/didChange", {"textDocument": {"uri": "file:///nowhere.py"}, "contentChanges": 7})
    editor.tell("textDocument/didOpen", {"textDocument": {}})
    editor.open("amp.py", DEPRECATED)
    assert len(editor.diagnostics("amp.py")) == 2
    assert editor.end() == 0


def test_an_editor_that_is_gone_ends_the_server(tmp_path: Path) -> None:
    with Client(tmp_path) as editor:
        editor.tell("exit", None)
        assert editor._process.wait(30) == 1


def test_a_request_may_be_taken_back(editor: Client) -> None:
    editor.open("train.py", PROGRAM)
    where = {"textDocument": {"uri": editor.uri("train.py")}, "position": {"line": 5, "character": 18}}
    number = editor.begin("textDocument/hover", where)
    editor.tell("$/cancelRequest", {"id": number})
    answer = editor.result(number)
    assert answer.get("code") == -32800 or "float64" in answer["contents"]["value"]


def test_edits_that_overtake_one_another_end_with_the_last(editor: Client) -> None:
    editor.open("train.py", PROGRAM)
    for number in range(20):
        version = editor.change(
            "train.py", {"text": PROGRAM.replace("float64", "float32" if number % 2 else "float16")}
        )
    assert editor.diagnostics("train.py", version) == []
    assert "float32" in editor.hover("train.py", 5, 18)["contents"]["value"]


def test_edits_while_what_a_file_imports_is_read_end_with_the_last(tmp_path: Path) -> None:
    (tmp_path / "features.py").write_text(
        MODULE + "".join(f"\n\ndef f{number}(x):\n    return x.float() + {number}\n" for number in range(300))
    )
    with Client(tmp_path, {"debounce": 0}) as editor:
        editor.open("train.py", CALLER)
        for number in range(12):
            text = CALLER.replace("features(4)", "features(4).double()" if number % 2 else "features(4)")
            version = editor.change("train.py", {"text": text})
        assert [one["code"] for one in editor.diagnostics("train.py", version, wanted=bool)] == ["DT302"]


def test_the_reading_process_is_started_again(editor: Client) -> None:
    editor.open("train.py", PROGRAM)
    assert len(editor.diagnostics("train.py")) == 1
    children = Path(f"/proc/{editor._process.pid}/task/{editor._process.pid}/children")
    if not children.exists():
        pytest.skip("needs /proc to find the process")
    for pid in children.read_text().split():
        os.kill(int(pid), 9)
    version = editor.change("train.py", {"text": PROGRAM.replace("float64", "float32")})
    assert editor.diagnostics("train.py", version) == []


def test_a_notebook_shows_what_is_wrong_in_its_cells(editor: Client) -> None:
    cells = [
        "import torch\nfrom torch import nn",
        "%matplotlib inline\nmodel = nn.Linear(8, 1)",
        "print(model(torch.ones(4, 8)))",
    ]
    uris = [f"vscode-notebook-cell:/work.ipynb#{number}" for number in range(len(cells))]
    editor.tell(
        "notebookDocument/didOpen",
        {
            "notebookDocument": {
                "uri": editor.uri("work.ipynb"),
                "notebookType": "jupyter-notebook",
                "version": 1,
                "cells": [{"kind": 2, "document": uri} for uri in uris],
            },
            "cellTextDocuments": [
                {"uri": uri, "languageId": "python", "version": 1, "text": text}
                for uri, text in zip(uris, cells, strict=True)
            ],
        },
    )
    assert editor.diagnostics(uris[2]) == []
    change = {
        "range": {"start": {"line": 0, "character": 27}, "end": {"line": 0, "character": 27}},
        "text": ", dtype=torch.float64",
    }
    editor.tell(
        "notebookDocument/didChange",
        {
            "notebookDocument": {"uri": editor.uri("work.ipynb"), "version": 2},
            "change": {"cells": {"textContent": [{"document": {"uri": uris[2], "version": 2}, "changes": [change]}]}},
        },
    )
    [found] = editor.diagnostics(uris[2], wanted=bool)
    assert (found["code"], found["range"]["start"]) == ("DT302", {"line": 0, "character": 6})
    where = {"textDocument": {"uri": uris[2]}, "position": {"line": 0, "character": 20}}
    assert "float64" in editor.ask("textDocument/hover", where)["contents"]["value"]
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    asked = {"textDocument": {"uri": uris[2]}, "range": whole, "context": {"diagnostics": []}}
    silence = editor.ask("textDocument/codeAction", asked)[0]
    assert list(silence["edit"]["changes"]) == [uris[2]]
    gone = {"array": {"start": 2, "deleteCount": 1}, "didClose": [{"uri": uris[2]}]}
    editor.tell(
        "notebookDocument/didChange",
        {
            "notebookDocument": {"uri": editor.uri("work.ipynb"), "version": 3},
            "change": {"cells": {"structure": gone}},
        },
    )
    assert editor.diagnostics(uris[2]) == []


def test_a_notebook_that_jupyterlab_sends_as_python_is_read_as_python(editor: Client) -> None:
    editor.open(".virtual_documents/work.ipynb", PROGRAM)
    [found] = editor.diagnostics(".virtual_documents/work.ipynb")
    assert found["code"] == "DT302"


def test_the_cells_of_a_notebook_file_that_is_opened_as_text(editor: Client) -> None:
    cell = {"cell_type": "code", "metadata": {}, "source": "x = (", "outputs": [], "execution_count": None}
    document = json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]})
    editor.open("work.ipynb", document, "json")
    assert editor.end() == 0


def test_the_note_of_another_file_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "mod.py").write_text("from torch import nn\n\n\ndef score(x):\n    return nn.Linear(8, 1)(x)\n")
    program = "import torch\n\nfrom mod import score\n\nscore(torch.ones(4, 8))\nscore(torch.ones(4, 8, dtype=torch.float64))\n"
    with Client(tmp_path) as editor:
        editor.open("train.py", program)
        [found] = editor.diagnostics("train.py", wanted=bool)
        [related] = found["relatedInformation"]
        assert related["location"]["uri"] == editor.uri("mod.py")
        assert related["location"]["range"]["start"]["line"] == 4
