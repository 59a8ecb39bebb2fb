"""What is answered to a word that names no rule."""

from __future__ import annotations

import pytest

from dtlint.catalogue import catalogue
from dtlint.families import FAMILIES, meant

RULES = catalogue()
STATIC = {code: rule for code, rule in RULES.items() if not rule.runtime}


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("DT1O1", "DT101"),
        ("dt1111", "DT111"),
        ("DT199", "DT119"),
        ("DT5001", "DT501"),
        ("DT999", "DT909"),
        ("modle-half", "model-half"),
        ("Model-Half", "model-half"),
        ("dt1", "DT1"),
        ("all", "ALL"),
    ],
)
def test_the_nearest_name_of_the_same_family_is_proposed(word: str, near: str) -> None:
    assert meant(word, RULES) == f"; did you mean '{near}'?"


@pytest.mark.parametrize("word", ["DT7", "DT77", "DT777", "dt66", "DT"])
def test_a_prefix_without_rules_is_answered_with_the_families(word: str) -> None:
    assert "; the families are DT1 (casts), DT2 (" in meant(word, RULES)
    assert "DT9" in meant(word, RULES) and "DT9" not in meant(word, STATIC)


def test_a_rule_that_judges_a_trace_is_not_proposed_to_a_selection() -> None:
    assert "DT9" not in meant("DT999", STATIC)
    assert "'overflow'" not in meant("overflw", STATIC)


def test_every_family_says_what_it_is_about() -> None:
    assert {code[:3] for code in RULES} == FAMILIES.keys()
