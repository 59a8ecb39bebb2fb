"""What a session answers, without an editor and without a process that reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import pytest

from dtlint.check.reader import Reader
from dtlint.server.buffers import uri_of
from dtlint.server.options import Options
from dtlint.server.publishing import Publisher
from dtlint.server.session import Session
from dtlint.server.tasks import Reading, Task

TEXT = "import torch\n\nwith torch.cuda.amp.autocast():\n    pass\n"


class Editor:
    """Asks a session, which asks for texts to be read: they are, when the editor says so."""

    def __init__(self, root: Path) -> None:
        self.heard: list[dict[str, Any]] = []
        self.tasks: list[Task] = []
        self.session = Session(self.heard.append, self._asked)
        self.uri, self.number = uri_of(root / "amp.py"), 0
        self.ask("initialize", {"capabilities": {}})

    def _asked(self, what: object) -> None:
        if isinstance(what, Task):
            self.tasks.append(what)

    def ask(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; its number."""
        self.number += 1
        self.session.receive({"id": self.number, "method": method, "params": params})
        return self.number

    def open(self) -> None:
        """Open the file."""
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": TEXT}
        self.session.receive({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def change(self, text: str) -> None:
        """Type a whole new text."""
        document, changes = {"uri": self.uri, "version": 2}, [{"text": text}]
        params = {"textDocument": document, "contentChanges": changes}
        self.session.receive({"method": "textDocument/didChange", "params": params})

    def fix_all(self) -> int:
        """Ask for all safe fixes, as an editor does on save."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        only = {"only": ["source.fixAll"]}
        return self.ask("textDocument/codeAction", {"textDocument": {"uri": self.uri}, "range": whole, "context": only})

    def read(self) -> None:
        """Read what is to be read by now."""
        for document in self.session.documents:
            document.due = document.due and 0.0
        self.session.tick()
        while self.tasks:
            reading = Reading(self.tasks[0], Reader())
            self.session.answered(reading.fixed() if self.tasks.pop(0).fix else reading.checked())

    def answers(self, number: int) -> list[Any]:
        """What was answered to a request."""
        return [one["result"] for one in self.heard if one.get("id") == number and "result" in one]


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    editor = Editor(tmp_path)
    editor.open()
    return editor


def test_all_fixes_are_made_of_a_text_that_is_not_read_yet(editor: Editor) -> None:
    number = editor.fix_all()
    assert editor.answers(number) == []
    editor.read()
    [[action]] = editor.answers(number)
    [edit] = action["edit"]["changes"][editor.uri]
    assert "torch.amp.autocast" in edit["newText"]


def test_fixes_of_a_text_that_has_changed_meanwhile_are_not_given(editor: Editor) -> None:
    editor.read()
    number = editor.fix_all()
    editor.tasks.clear()  # the task is overtaken
    editor.change("\n" + TEXT)
    editor.read()
    assert editor.answers(number) == [[]]


def test_the_pages_of_rules_are_gone_with_the_session(editor: Editor) -> None:
    editor.read()
    [published] = [one["params"] for one in editor.heard if one.get("method") == "textDocument/publishDiagnostics"]
    page = Path(url2pathname(urlsplit(published["diagnostics"][0]["codeDescription"]["href"]).path))
    assert page.exists()
    editor.session.close()
    assert not page.exists()


def test_an_internal_error_is_shown_and_ends_nothing(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise ZeroDivisionError("oh")

    number = editor.fix_all()
    with monkeypatch.context() as patched:
        patched.setattr(Publisher, "publish", fails)
        editor.read()
    assert editor.heard[-1]["params"]["message"].startswith("dtlint: internal error: ZeroDivisionError: oh; please")
    editor.change(TEXT + "\n")
    editor.read()
    assert editor.answers(number) != []


def test_settings_beside_wrong_ones_hold() -> None:
    options, wrong = Options().updated({"asume": ["half"], "preview": True, "debounce": -1})
    assert options == Options(preview=True)
    assert wrong == [
        "there is no setting 'asume'; did you mean 'assume'?",
        "the setting 'debounce' must be a number of milliseconds, from 0 to 10000",
    ]


def test_the_first_change_after_a_pause_is_read_at_once(editor: Editor) -> None:
    editor.read()
    editor.change(TEXT + "\n")
    assert editor.session.next_due() == 0
    editor.change(TEXT + "\n\n")
    waits = editor.session.next_due()
    assert waits is not None
    assert waits > 0
