"""A notebook read as Python, reported by cell, and written back cell by cell."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from dtlint.diagnostic import Span
from dtlint.source.file import Kind, Source, UnreadableSource
from dtlint.source.magics import mask, unmask

FIXTURE = Path(__file__).parents[2] / "fixtures" / "notebook" / "finetune.ipynb"


def notebook(*cells: str | list[str], indent: int | None = 1, **metadata: Any) -> Source:
    document = {
        "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells],
        "metadata": metadata,
        "nbformat": 4,
    }
    return Source.from_bytes(json.dumps(document, indent=indent).encode(), "n.ipynb")


def find(source: Source, line: str) -> Span:
    at = source.lines.index(line) + 1
    return Span(at, 0, at, len(line))


def test_the_fixture_parses_and_maps_back() -> None:
    source = Source.read(FIXTURE)
    assert source.kind is Kind.NOTEBOOK
    ast.parse(source.text)
    assert "echo" not in source.text and "Quantize" not in source.text
    location = source.location(find(source, "y = x.to(torch.int8)  # error: DT103"))
    assert (location.cell, location.span.line) == (3, 4)
    raw = FIXTURE.read_text(encoding="utf-8").split("\n")
    assert "y = x.to(torch.int8)" in raw[location.line_in_file - 1]


def test_a_frame_stays_in_its_cell_and_shows_magics() -> None:
    source = Source.read(FIXTURE)
    first = source.frame(find(source, "import torch"))
    assert first == ((2, "!pip install --quiet \\"), (3, "    torch"), (4, "import torch"))
    second = source.frame(find(source, "x = torch.tensor([300.0])"))
    assert [number for number, _ in second] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    "cell",
    [
        "%matplotlib inline\nx = 1",
        "if x:\n    !ls {path}\n",
        "x = %time f()\ny = !ls",
        'a, b = !echo "it\'s"',
        "torch.tensor?\nx.shape??\n?x",
        "!pip install \\\n  a \\\n  b\nx = 1",
        "x = (1\n  % 2)\ny = '''\n%no magic\nwhat?\n'''\n",
        "x = 1 \\\n  % 2\n# what?\n%cd ..",
        's = "it\'s (" # (\n!ls',
        "x != 1\nx == 1\nprint('x = !', x)\nd = {}\nd['a'] = !ls",
        'x = """a\\"""\n!no magic\n"""\n!ls',
    ],
)
def test_a_masked_cell_is_python_and_comes_back(cell: str) -> None:
    masked = mask(cell)
    ast.parse(masked)
    assert masked.count("\n") == cell.count("\n")
    assert unmask(masked) == cell


def test_what_is_no_magic_is_left_alone() -> None:
    for cell in ("x = (1\n  % 2)", "y = '''\n%no magic\nwhat?\n'''", "# what?", "x = y % z; a != b"):
        assert mask(cell) == cell


def test_cells_of_other_languages_are_left_out() -> None:
    source = notebook("%%html\n<b>", "%%time\nx = 1", "%%capture out\ny = 2", "", ["z = 3"])
    assert [line for line in source.lines if not line.startswith("#")] == ["x = 1", "y = 2", "z = 3"]
    assert source.location(find(source, "y = 2")).span.line == 2
    assert notebook("x <- 1", language_info={"name": "R"}).text == ""
    assert notebook("using Flux", kernelspec={"language": "julia"}).text == ""


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_an_edit_touches_only_its_cell(indent: int | None) -> None:
    source = notebook(["a = 1\n", "é = 2"], "%cd x\nb = 2", ["%%time\n", "c = 3\n", "d = 4"], indent=indent)
    edited = source.replaced(source.text.replace("c = 3", "import torch\nc = 30"))
    cells = json.loads(edited.encode())["cells"]
    assert cells[0]["source"] == ["a = 1\n", "é = 2"]
    assert cells[1]["source"] == "%cd x\nb = 2"
    assert cells[2]["source"] == ["%%time\n", "import torch\n", "c = 30\n", "d = 4"]
    before, after = source.encode().split(b'"source"'), edited.encode().split(b'"source"')
    assert before[:3] == after[:3]
    assert edited.replaced(source.text).encode() == source.encode()
    assert edited.location(find(edited, "d = 4")).span.line == 4


def test_bom_key_order_and_final_newline_survive() -> None:
    document = b'\xef\xbb\xbf{ "nbformat": 4, "cells":[{"source":["x = 1\\n",  "y"], "cell_type":"code"}]}\n'
    source = Source.from_bytes(document, "n.ipynb")
    assert source.replaced(source.text.replace("x = 1", "x = 2")).encode() == document.replace(b"x = 1", b"x = 2")


def test_an_edit_over_the_end_of_a_cell_is_refused() -> None:
    source = notebook("a = 1", "b = 2")
    with pytest.raises(ValueError, match="end of a cell"):
        source.replaced("a = 1\nb = 2")


def test_a_cell_that_looks_like_the_separator_is_no_separator() -> None:
    source = notebook("a = 1\n# <cell0>\nb = 2", "c = 3")
    assert source.location(find(source, "c = 3")).cell == 2
    assert source.replaced(source.text.replace("c = 3", "d = 3")).location(find(source, "b = 2")).span.line == 3


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not valid JSON"),
        (b'{"cells": [', "not valid JSON"),
        (b"[1]", "no object"),
        (b'{"cells": 3}', "no list of cells"),
        (b'{"worksheets": []}', "format 3"),
        (b"\xff\xfe{}", "UTF-16"),
        (b'{"cells": "\xff"}', "0xff"),
        (b'{"cells": [{"cell_type": "code", "source": "x = \'\\ud800\'"}]}', "surrogate"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_notebook_says_why(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableSource, match=words):
        Source.from_bytes(data, "n.ipynb")


def test_odd_but_valid_notebooks_are_read() -> None:
    assert Source.from_bytes(b'{"cells": []}', "n.ipynb").text == ""
    odd = (
        b'{"metadata": {"cells": [1]}, "cells": [{}, {"cell_type": "code"}, {"cell_type": "code", "source": "x = 1"}]}'
    )
    source = Source.from_bytes(odd, "n.ipynb")
    assert source.text == "x = 1"
    assert source.location(Span(1, 0, 1, 5)).cell == 3
