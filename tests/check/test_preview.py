"""Conditional findings: reported with `--preview` alone, and known to whatever else asks what was found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dtlint import Applicability, Diagnostic, Fix, Rule
from dtlint.check.baseline import Baseline
from dtlint.check.cache import Cache, decode, encode
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.infer.facts import ModuleFacts
from dtlint.rule import Finding, discover
from dtlint.source.file import Source

PREVIEW = Settings(preview=True)


class Casting(Rule):
    """Flags `x.half()`, and `x.float()` only if something holds."""

    code, name, fix = "DT199", "casting", Applicability.SAFE

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for method, other in (("half", "bfloat16"), ("float", "double")):
            for call in facts.methods(method):
                yield Finding(
                    call.node,
                    f"`{method}`",
                    conditional=method == "float",
                    fix=lambda place, other=other: Fix(  # type: ignore[misc]
                        f"Use `{other}`", (place.rename_method(other),), Applicability.SAFE
                    ),
                )


RULES = [Casting, discover()["DT801"]]
BOTH = "import torch\nx.half()\nx.float()\n"


def check(text: str, settings: Settings = PREVIEW) -> list[Diagnostic]:
    return check_source(Source.from_bytes(text.encode(), "a.py"), RULES, settings).diagnostics


def found(text: str, settings: Settings = PREVIEW) -> list[tuple[str, int]]:
    return [(one.code, one.location.span.line) for one in check(text, settings)]


def test_it_is_reported_with_preview_alone() -> None:
    assert found(BOTH, Settings()) == [("DT199", 2)]
    assert [(one.message, one.conditional) for one in check(BOTH)] == [("`half`", False), ("`float`", True)]


def test_what_suppresses_it_is_of_use() -> None:
    for comment in ("noqa: DT199", "noqa: DT199, E501", "dtlint: ignore[casting]", "dtlint: ignore"):
        text = f"import torch\nx.float()  # {comment}\n"
        assert found(text, Settings()) == found(text) == []
    assert found("import torch\n# dtlint: file-ignore[DT199]\nx.float()\n", Settings()) == []


def test_a_suppression_of_nothing_is_told_of_either_way() -> None:
    text = "import torch\nx.float()\ny.long()  # noqa: DT199\n"
    assert found(text, Settings()) == [("DT801", 3)]
    assert found(text) == [("DT199", 2), ("DT801", 3)]


def test_it_is_fixed_with_preview_alone() -> None:
    def fixed(settings: Settings) -> str:
        source = Source.from_bytes(BOTH.encode(), "a.py")
        return fix_source(source, RULES, settings, Applicability.SAFE).source.text

    assert fixed(Settings()) == "import torch\nx.bfloat16()\nx.float()\n"
    assert fixed(PREVIEW) == "import torch\nx.bfloat16()\nx.double()\n"


def test_a_cached_result_is_that_of_its_settings(tmp_path: Path) -> None:
    cache = Cache(tmp_path, {"DT199": Casting})
    assert cache.key("x", "a.py", Settings(), ("DT199",)) != cache.key("x", "a.py", PREVIEW, ("DT199",))
    assert decode(encode(check(BOTH))) == check(BOTH)


def test_a_baseline_keeps_it_while_nobody_looks(tmp_path: Path) -> None:
    written = Baseline(tmp_path / "known.json")
    written.know(replace(one, location=one.location._replace(path=str(tmp_path / "a.py"))) for one in check(BOTH))
    written.write()
    (tmp_path / "a.py").write_text(BOTH)
    known, codes = Baseline.load(written.file), {str(tmp_path / "a.py"): ("DT199",)}
    assert known.counts == written.counts
    assert {(entry.text, entry.conditional) for entry in known.counts} == {("x.half()", False), ("x.float()", True)}
    assert [gone.text for gone in known.compare([], codes, set()).stale] == ["x.half()"]
    assert [gone.text for gone in known.compare([], codes, set(codes)).stale] == ["x.float()", "x.half()"]
