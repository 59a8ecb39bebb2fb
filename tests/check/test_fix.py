"""One fix that would break a file is left out and reported; the others are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dtlint import Applicability
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.diagnostic import Fix
from dtlint.infer.facts import ModuleFacts
from dtlint.rule import Finding, Rule
from dtlint.source.file import Source
from dtlint.source.place import Place


class Renaming(Rule):
    """Calls of `old` and `bad` are renamed, those of `bad` to what does not parse."""

    code, name = "DT199", "renaming"
    fix = Applicability.SAFE
    triggers = ("old", "bad")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("old", "bad"):
            yield Finding(call.node, "an old name", fix=_to("new" if call.method == "old" else "not a name"))


def _to(name: str) -> Callable[[Place], Fix]:
    return lambda place: Fix("Rename", (place.rename_method(name),), Applicability.SAFE)


def test_only_the_fix_that_breaks_the_file_is_left_out() -> None:
    source = Source.from_bytes(b"x.old()\ny.bad()\nz.old()\n", "program.py")
    fixed = fix_source(source, [Renaming], Settings(), Applicability.SAFE)
    assert fixed.source.text == "x.new()\ny.bad()\nz.new()\n"
    assert fixed.applied == 2
    assert fixed.failed is not None
    assert fixed.failed.startswith("program.py: a fix would break the file (")
    assert [diagnostic.location.span.line for diagnostic in fixed.checked.diagnostics] == [2]


def test_a_file_with_nothing_but_that_fix_stays_as_it_is() -> None:
    source = Source.from_bytes(b"y.bad()\n", "program.py")
    fixed = fix_source(source, [Renaming], Settings(), Applicability.SAFE)
    assert (fixed.source.text, fixed.applied) == (source.text, 0)
    assert fixed.failed is not None
