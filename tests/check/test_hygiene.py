"""DT801 and DT802 through the whole check of a file."""

from __future__ import annotations

import ast
import errno
import json
import sys
from pathlib import Path

import pytest

from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.check.hygiene import syntax_diagnostic, unreadable_diagnostic
from dtlint.check.job import NOQA
from dtlint.config import Settings
from dtlint.diagnostic import Applicability, Diagnostic, Severity
from dtlint.rule import discover
from dtlint.source.annotate import suppressed
from dtlint.source.file import Source

RULES = [rule for rule in discover().values() if rule.code in ("DT102", "DT801", "DT802")]


def check(text: str, name: str = "a.py") -> list[Diagnostic]:
    return check_source(Source.from_bytes(text.encode(), name), RULES, Settings()).diagnostics


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells], "metadata": {}}, indent=1)


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# noqa: DT102", "DT102 is suppressed here without effect"),
        ("# noqa: DT102, E501, DT802", "DT102 and DT802 are suppressed here without effect"),
        ("# noqa: DT1", "`DT1` suppresses nothing: a suppression names whole codes, or names of rules"),
        (
            "# dtlint: ignore[DT1, DT10]",
            "`DT1`, `DT10` suppress nothing: a suppression names whole codes, or names of rules",
        ),
        (
            "# dtlint: ignore(DT102)",
            "`# dtlint: ignore(DT102)` is not a suppression dtlint knows; write `# dtlint: ignore[DT102]`",
        ),
        (
            "# dtlint: ignore dt102",
            "`# dtlint: ignore dt102` is not a suppression dtlint knows; write `# dtlint: ignore[DT102]`",
        ),
        (
            "# dtlint: disable=DT102",
            "`# dtlint: disable=DT102` is not a suppression dtlint knows; write `# dtlint: ignore[DT102]`",
        ),
        ("# dtlint: noqa", "`# dtlint: noqa` is not a suppression dtlint knows; write `# dtlint: ignore[CODE]`"),
        (
            "# dtlint: skip-file",
            "`# dtlint: skip-file` is not a suppression dtlint knows; write `# dtlint: file-ignore[CODE]`",
        ),
        (
            "# dtlint: ignore[]",
            "`# dtlint: ignore[]` is not a suppression dtlint knows; write `# dtlint: ignore[CODE]`",
        ),
        ("# noqa: type-inplace", "`# noqa: type-inplace` is not a suppression dtlint knows; write `# noqa: DT102`"),
        ("# noqa: DT999", "DT999 is suppressed here, but there is no such rule"),
        (
            "# dtlint: ignore[DT102, type-inplac]",
            "DT102 is suppressed here without effect; type-inplac is suppressed here, but there is no such rule",
        ),
    ],
)
def test_an_unused_suppression_says_which_code_and_why(comment: str, message: str) -> None:
    (diagnostic,) = check(f"x = 1  {comment}\n")
    assert (diagnostic.code, diagnostic.message) == ("DT801", message)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # noqa: DT102, DT801\n",
        "x = 1  # noqa: DT102  # dtlint: ignore[unused-suppression]\n",
        "# dtlint: file-ignore[DT801]\nx = 1  # noqa: DT102\n",
        "x = 1  # noqa: DT901\n",
        "x = 1  # dtlint: disable=DT102  # dtlint: ignore[DT801]\n",
        "x = 1  # noqa: overflow happens here\n",
        "x = 1  # as with `# dtlint: disable`\n",
    ],
)
def test_an_unused_suppression_can_itself_be_suppressed_or_may_belong_to_another_run(text: str) -> None:
    assert check(text) == []


def test_a_prefix_in_a_suppression_is_told_and_stays() -> None:
    cast = "import torch\nx = torch.zeros(3)\nx.type(torch.float16, inplace=True)  "
    told = check(f"{cast}# dtlint: ignore[DT1, DT999]\n")
    assert [(one.code, one.fix is None) for one in told] == [("DT102", False), ("DT801", True), ("DT801", False)]
    source = Source.from_bytes(f"{cast}# dtlint: ignore[DT1, DT999]\n".encode(), "a.py")
    hygiene = [rule for rule in RULES if rule.code == "DT801"]
    assert fix_source(source, hygiene, Settings(), Applicability.UNSAFE).source.text == f"{cast}# dtlint: ignore[DT1]\n"
    assert check("x = 1  # noqa: DT1  # dtlint: ignore[DT801]\n") == []


def test_a_suppression_of_dt801_that_has_no_effect_is_unused_as_well() -> None:
    (diagnostic,) = check("x = 1  # noqa: DT801\n")
    assert diagnostic.message == "DT801 is suppressed here without effect"


def test_a_syntax_error_has_its_place() -> None:
    (diagnostic,) = check("x = 1\ny = 日本 z\n")
    assert (diagnostic.code, diagnostic.severity) == ("DT802", Severity.ERROR)
    span = diagnostic.location.span
    assert (span.line, span.column) == (2, 7)
    assert diagnostic.lines == ((1, "x = 1"), (2, "y = 日本 z"))


def test_a_syntax_error_in_a_notebook_has_its_cell() -> None:
    (diagnostic,) = check(notebook("%cd x\nx = 1", "%%time\ny = 1\nz = ("), "n.ipynb")
    location = diagnostic.location
    assert (location.cell, location.span.line) == (2, 3)
    assert diagnostic.lines == ((2, "y = 1"), (3, "z = ("))


@pytest.mark.parametrize(
    "cell",
    [
        " x = 1\n x",
        "\n    @takes('wrd')\n    def pipeline(wrd):\n        yield wrd",
        ' !tts --text "hello" \\\n      --out out.wav',
        " with open(path) as file:\n    text = file.read()\n",
    ],
)
def test_a_cell_that_ipython_outdents_is_not_said_to_be_broken(cell: str) -> None:
    assert check(notebook("import torch", cell), "n.ipynb") == []


def test_a_cell_that_is_indented_and_broken_is() -> None:
    (diagnostic,) = check(notebook(" x = 1\n y = ("), "n.ipynb")
    assert diagnostic.message.startswith("The cell does not parse: ")


def test_the_cells_behind_one_that_raises_are_checked() -> None:
    cells = ["import torch\nb = torch.zeros(3)\ntorch.tensor([1, 2]).mean()", "b.half()\nprint(b)"]
    source = Source.from_bytes(notebook(*cells).encode(), "n.ipynb", Path("n.ipynb"))
    rules = [rule for rule in discover().values() if rule.code in ("DT104", "DT309")]
    diagnostics = check_source(source, rules, Settings()).diagnostics
    assert [(one.code, one.location.cell) for one in diagnostics] == [("DT309", 1), ("DT104", 2)]


def test_the_cells_beside_a_broken_one_are_checked_and_not_fixed() -> None:
    cast = "import torch\nx = torch.zeros(3)\nx.type(torch.float16, inplace=True)\nx"
    cells = [cast, "def f(:\n  '''\n", f"%%time\n{cast}", "1 +", f"{cast}  # noqa: DT102\n{cast}"]
    source = Source.from_bytes(notebook(*cells).encode(), "n.ipynb")
    diagnostics = check_source(source, RULES, Settings()).diagnostics
    assert [(one.code, one.location.cell, one.location.span.line, one.fix) for one in diagnostics] == [
        ("DT102", 1, 3, None),
        ("DT802", 2, 2, None),
        ("DT102", 3, 4, None),
        ("DT802", 4, 1, None),
        ("DT102", 5, 3, None),
        ("DT801", 5, 4, None),
        ("DT102", 5, 7, None),
    ]
    assert diagnostics[1].message.startswith("The cell does not parse: ")
    assert diagnostics[1].lines == ((1, "def f(:"), (2, "  '''"))
    fixed = fix_source(source, RULES, Settings(), Applicability.UNSAFE)
    assert fixed.source is source and fixed.failed is None and len(fixed.checked.diagnostics) == 7
    line = source.text_line(diagnostics[2].location, 4)
    written = json.loads(suppressed(source, {line: {"DT102"}}, NOQA).encode())["cells"]
    assert [cell["source"] for cell in written] == [
        *cells[:2], cells[2].replace("True)", "True)  # noqa: DT102"), *cells[3:]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["(", "x = ", "'", "if x:", "\\", "f(**)", "x = 1 1", "\tx\n  y", "class", "é = (\n\n\n"]
)
def test_every_syntax_error_lies_within_the_text(text: str) -> None:
    source = Source.from_bytes(text.encode(), "a.py")
    with pytest.raises(SyntaxError) as caught:
        ast.parse(text)
    span = syntax_diagnostic(source, caught.value).location.span
    assert 1 <= span.line <= len(source.lines) and span.end_line == span.line
    assert 0 <= span.column < span.end_column <= len(source.lines[span.line - 1]) + 1


def test_a_suppression_is_added_to_the_right_cell() -> None:
    source = Source.from_bytes(notebook("a = 1\nb = 2", "%%time\nc = 3").encode(), "n.ipynb")
    line = source.text_line(source.location(source_span(source, "c = 3")), 2)
    cells = json.loads(suppressed(source, {line: {"DT102"}}, NOQA).encode())["cells"]
    assert [cell["source"] for cell in cells] == ["a = 1\nb = 2", "%%time\nc = 3  # noqa: DT102"]


def source_span(source: Source, line: str):  # type: ignore[no-untyped-def]
    from dtlint.diagnostic import Span

    number = source.lines.index(line) + 1
    return Span(number, 0, number, len(line))


def test_a_syntax_error_that_may_be_newer_syntax_names_the_python() -> None:
    running = f"(to Python {sys.version_info[0]}.{sys.version_info[1]}, on which dtlint runs)"
    (diagnostic,) = check("x = 1 2\n")
    assert diagnostic.message.endswith(running)
    (diagnostic,) = check("x = (1\n")
    assert diagnostic.message == "The file does not parse: '(' was never closed"


def test_a_directory_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", str(tmp_path))
    message = "The directory cannot be read: permission denied; nothing in it is checked"
    assert unreadable_diagnostic("d", error).message == message


_CAST = "torch.ones(2).type(torch.float16, inplace=True)"
_NEAR = f"""
import torch
y = 1  # far

@torch.no_grad(  # 1
)  # 1
@torch.autocast("cpu", enabled={_CAST} is None,  # 1
)  # 1
def f(  # 1
    x=1,  # 1
):  # 1
    z = 2  # no

class A:  # no
    def g(self):  # no
        b = 3; c = [  # 2
            {_CAST},  # 2
            1,  # 2
        ]; d = 4  # 2
        return c  # no

e = 5; (  # 3
    {_CAST}  # 3
); g = 6  # 3
h = 7  # no
"""


@pytest.mark.parametrize(
    ("number", "line", "mark"),
    [
        (number, line, line.rpartition("# ")[2])
        for number, line in enumerate(_NEAR.splitlines())
        if not line.endswith(("far",)) and "  # " in line
    ],
)
def test_a_comment_silences_what_stands_on_its_logical_line_wherever_that_is(number: int, line: str, mark: str) -> None:
    lines = [text.rpartition("  # ")[0] if "  # " in text else text for text in _NEAR.splitlines()]
    everything = check("\n".join(lines))
    lines[number] += "  # noqa"
    silenced = len(everything) - len(check("\n".join(lines)))
    assert len(everything) == 3
    assert silenced == (0 if mark == "no" else 1)
