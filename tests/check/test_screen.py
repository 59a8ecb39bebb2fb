"""The first look at a file: each trigger word is found where it stands, whatever stands around it."""

from __future__ import annotations

import pytest

from dtlint.check.screen import triggered
from dtlint.rule import Rule


class Heard(Rule):
    code, name = "DT999", "heard"

    def on_call(self, call):  # type: ignore[no-untyped-def]
        return ()


def rule_with(*words: str) -> type[Rule]:
    return type("Made", (Heard,), {"triggers": words})


@pytest.mark.parametrize(
    "word, text",
    [
        (".half(", "y = x.half()"),
        ("import half", "from torch import half"),
        ("] =", "x[0] = 1"),
        ("e-8", "eps = 1e-8"),
        ("** 8", "n = 2 ** 8"),
        (".is_signed\n", "x.is_signed\n"),
        ("half", "model\f.half\x0b()"),
    ],
)
def test_a_word_is_found_where_it_stands(word: str, text: str) -> None:
    rule = rule_with(word)
    assert triggered([rule], text) == [rule]
    assert triggered([rule], text.replace(word, "?")) == []


def test_a_rule_without_words_judges_every_file_and_one_without_handlers_none() -> None:
    every = rule_with()
    assert triggered([every, Rule], "x = 1\n") == [every]
