"""Which comment silences what, which one silences nothing, and how it is taken out."""

from __future__ import annotations

import pytest

from dtlint.diagnostic import Edit
from dtlint.source.file import Source
from dtlint.source.suppression import Suppressions

CHECKED = {"DT101": "model-half", "DT102": "type-inplace"}
KNOWN = {*CHECKED, *CHECKED.values(), "DT201", "backward-in-autocast"}


def source(text: str) -> Source:
    return Source.from_bytes(text.encode(), "a.py")


def silenced(text: str, line: int, code: str = "DT101", end_line: int | None = None) -> bool:
    return Suppressions.of(source(text)).covers(code, line, end_line or line, CHECKED.get(code, ""))


def applied(read: Source, *edits: Edit) -> str:
    text = read.text
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        start = read.offset(edit.span.line, edit.span.column)
        end = read.offset(edit.span.end_line, edit.span.end_column)
        text = text[:start] + edit.text + text[end:]
    return text


def cleaned(text: str, *found: tuple[str, int]) -> str:
    """The text without its unused suppressions, after diagnostics of these codes on these lines."""
    suppressions = Suppressions.of(source(text))
    for code, line in found:
        suppressions.covers(code, line, line, CHECKED.get(code, ""))
    return applied(suppressions.source, *(unused.edit for unused in suppressions.unused(CHECKED, KNOWN)))


@pytest.mark.parametrize(
    "comment",
    [
        "# dtlint: ignore[dt101]",
        "# noqa",
        "#noqa:DT101",
        "# NOQA: DT101",
        "# noqa: E501, DT101 because it is small",
        "# noqa : F401 DT101",
        "# type: ignore  # noqa: DT101",
        "# dtlint: ignore",
        "# dtlint: ignore[DT101]",
        "# dtlint:ignore[DT102, model-half] checked by hand",
        "# noqa: E501  # dtlint: ignore[DT101]",
    ],
)
def test_these_comments_silence(comment: str) -> None:
    assert silenced(f"model.half()  {comment}\n", 1)


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: DT102",
        "# noqa: DT1",
        "# noqa: see below",
        "# noqa:",
        "# noqanda",
        "# noqa-later",
        "# ruff: noqa",
        "# flake8: noqa: DT101",
        "# dtlint: ignore[]",
        "# dtlint: ignore[DT1]",
        "# dtlint: ignored",
        "# dtlint: ignore(DT101)",
        "# dtlint: ignore DT101",
        "# dtlint: ignore[DT101",
        "# dtlint: ignore: DT101",
        "# dtlint: file-ignore DT101",
        "# dtlint: disable=DT101",
        "# dtlint: noqa",
    ],
)
def test_these_comments_do_not(comment: str) -> None:
    assert not silenced(f"model.half()  {comment}\n", 1)


def test_a_string_is_no_comment() -> None:
    assert not silenced("x = '# noqa'; model.half()\n", 1)
    assert not silenced('x = """\n# dtlint: file-ignore[DT101]\n"""\nmodel.half()\n', 4)


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_any_line_of_the_logical_line_will_do(at: int) -> None:
    lines = ["model = build(", "    # a comment", "    half=True,", ").half()"]
    lines[at - 1] += "  # noqa: DT101"
    assert all(silenced("\n".join(lines), line) for line in (1, 2, 3, 4))
    assert not silenced("\n".join(["x = 1", *lines]), 1)


def test_backslashes_and_multi_line_strings_are_one_logical_line() -> None:
    assert silenced("x = a + \\\n    b  # noqa: DT101\n", 1)
    assert silenced('f("""\n\n""")  # noqa: DT101\n', 1)


def test_a_header_is_silenced_without_its_body() -> None:
    text = "with a(\n    b,  # noqa: DT101\n):\n    model.half()\n"
    assert silenced(text, 1, end_line=3)
    assert not silenced(text, 4)
    assert not silenced("with a():\n    model.half()  # noqa: DT101\n", 1)


def test_decorators_belong_to_what_they_decorate() -> None:
    text = "@a\n@b(\n    1)\n# why\ndef f(x):  # noqa: DT101\n    y = 1\n"
    assert all(silenced(text, line) for line in (1, 2, 3, 5))
    assert not silenced(text, 6)


def test_a_comment_on_its_own_line_silences_no_statement() -> None:
    assert not silenced("# noqa: DT101\nmodel.half()\n# noqa: DT101\n", 2)


def test_a_whole_file_can_be_silenced() -> None:
    text = "import torch\n\nif x:\n    # dtlint: file-ignore[DT101]\n    model.half()\n"
    assert silenced(text, 5) and silenced(text, 1)
    assert not silenced(text, 5, "DT102")
    assert silenced("x = 1\n# dtlint: file-ignore\n", 1, "DT102")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_line_ending_is_one(newline: str) -> None:
    text = newline.join(["x = (1,", "  2)  # noqa: DT101", "\x0cy = 1  # noqa: DT102", ""])
    assert silenced(text, 1)
    assert silenced(text, 3, "DT102") and not silenced(text, 3)


def test_a_file_that_cannot_be_tokenized_keeps_what_came_before() -> None:
    assert silenced("model.half()  # noqa: DT101\nx = (\n", 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # noqa: DT101\n", "x = 1\n"),
        ("x = 1  # noqa: DT101, F401\n", "x = 1  # noqa: F401\n"),
        ("x = 1  # noqa: F401,DT101,E501 (why)\n", "x = 1  # noqa: F401, E501 (why)\n"),
        ("x = 1  # noqa: DT101 because\n", "x = 1  # because\n"),
        ("x = 1  # noqa: DT101  # because\n", "x = 1  # because\n"),
        ("x = 1  # type: ignore  # noqa: DT101\n", "x = 1  # type: ignore\n"),
        ("x = 1  # dtlint: ignore[DT101, type-inplace]\n", "x = 1\n"),
        ("x = 1\n# dtlint: file-ignore[DT101]\ny = 2\n", "x = 1\ny = 2\n"),
        ("x = 1\r\n    # noqa: DT101\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("x = 1  # noqa: DT999\n", "x = 1\n"),
        ("x = 1  # dtlint: ignore[model-hlaf]\n", "x = 1\n"),
        ("x = '日本'  # noqa: DT101\n", "x = '日本'\n"),
        ("x = 1  # noqa: DT101", "x = 1"),
        ("x = 1\n# noqa: DT101", "x = 1\n"),
    ],
)
def test_what_silences_nothing_is_taken_out(before: str, after: str) -> None:
    assert cleaned(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # noqa\n",
        "x = 1  # noqa: F401\n",
        "x = 1  # noqa: DTZ001\n",
        "x = 1  # noqa: DT201\n",
        "x = 1  # dtlint: ignore\n",
        "x = 1  # dtlint: ignore[backward-in-autocast]\n",
        "x = '# noqa: DT101'\n",
    ],
)
def test_what_is_not_ours_or_did_not_run_is_left_alone(text: str) -> None:
    assert cleaned(text) == text


def test_what_was_used_stays() -> None:
    assert cleaned("x = 1  # noqa: DT101, DT102\n", ("DT101", 1)) == "x = 1  # noqa: DT101\n"
    assert cleaned("x = 1  # dtlint: ignore[model-half]\n", ("DT101", 1)) == "x = 1  # dtlint: ignore[model-half]\n"
    used = "# dtlint: file-ignore[DT101]\nx = 1\n"
    assert cleaned(used, ("DT101", 2)) == used


def test_a_file_without_the_words_is_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenize.generate_tokens", lambda readline: pytest.fail("tokenized"))
    assert not silenced("model.half()  # fine\n", 1)


@pytest.mark.parametrize(
    ("comment", "read"),
    [
        ("# noqa", False),
        ("# noqa: F401", False),
        ("# NOQA:E501, W291", False),
        ("# noqa: F401 - re-exported, see DTypes", False),
        ("# noqa because of the import", False),
        ("# noqa: F401 # noqa: DT101", True),
        ("# noqa: F401 # dt101", True),
        ("# noqa: e501, model-half", True),
        ("# noqa: DT101", True),
        ("# noqa: F401, DT101", True),
        ("# noqa: F401 DT101", True),
        ("# noqa: DT101 # noqa", True),
        ("# noqa: model-half", True),
        ("# dtlint: ignore[DT101]", True),
    ],
)
def test_where_nothing_was_found_only_comments_that_name_rules_are_read(comment: str, read: bool) -> None:
    source = Source.from_bytes(f"x = 1  {comment}\n".encode(), "x.py")
    found = Suppressions.of(source, within=[])
    assert bool(found.directives or found.malformed) is read
    assert Suppressions.of(source).directives or Suppressions.of(source).malformed
