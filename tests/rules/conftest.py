"""Every test of a rule holds the screen to its promise: what a rule finds stands in a file whose words wake that rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dtlint.check import file, judge, screen

if TYPE_CHECKING:
    import ast
    from collections.abc import Sequence

    from dtlint.catalogue import AnyRule
    from dtlint.check.judge import Judged
    from dtlint.check.reader import Reader
    from dtlint.dtypes.assumption import Assumption
    from dtlint.rule import Rule
    from dtlint.source.file import Source

pytest.register_assert_rewrite("bench")


@pytest.fixture(autouse=True)
def _what_is_found_is_awake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all rules judge each file, and looks whether the screen would have let those that find something."""
    judged_by = judge.judge

    def every(rules: Sequence[AnyRule], text: screen.Text) -> list[AnyRule]:
        return [rule for rule in rules if rule.asks()]

    def checked(
        tree: ast.Module,
        source: Source,
        rules: Sequence[type[Rule]],
        reader: Reader | None,
        assumptions: Sequence[Assumption],
        glance: Sequence[type[Rule]],
    ) -> Judged:
        judged = judged_by(tree, source, rules, reader, assumptions, glance)
        if assumptions:  # under these no screen is asked
            return judged
        text = screen.Text(screen.code_of(source.text, tree))
        awake = {rule.code for rule in screen.triggered(rules, text)}
        asleep = {suspicion.rule.code for suspicion in judged.suspicions} - awake
        assert not asleep, f"{asleep} find something in a file that the screen takes for clean of it:\n{source.text}"
        return judged

    monkeypatch.setattr(file, "triggered", every)
    monkeypatch.setattr(judge, "judge", checked)
