"""Every runtime rule is proved by its own documentation: the example gives its code, the better way does not."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.document import document
from dtlint.rule import RuntimeRule
from dtlint.trace.export import record_of
from dtlint.trace.judge import OF_VALUES, FailOn, SelectionError, judge, runtime_rules
from dtlint.trace.mode import Tracer
from dtlint.trace.options import EVERYTHING, Options

RULES = runtime_rules()


def traced(source: str, file: Path, options: Options = EVERYTHING) -> list[Diagnostic]:
    file.write_text(source)
    tracer = Tracer(options)
    with suppress(RuntimeError), tracer:  # of a dtype error the program dies
        exec(compile(source, str(file), "exec"), {"__name__": "__main__"})
    return judge(record_of(tracer, [str(file)], 0))


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_example_is_found(rule: type[RuntimeRule], tmp_path: Path) -> None:
    for block in document(rule).example:
        found = [d for d in traced(block, tmp_path / "example.py") if d.code == rule.code]
        assert len(found) == 1
        (diagnostic,) = found
        assert diagnostic.location.path.endswith("example.py")
        assert (
            dict(diagnostic.lines)[diagnostic.location.span.line]
            == block.splitlines()[diagnostic.location.span.line - 1]
        )


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_better_way_is_not(rule: type[RuntimeRule], tmp_path: Path) -> None:
    for block in document(rule).instead:
        assert [d.code for d in traced(block, tmp_path / "instead.py")] == []


ALSO = {"DT907", "DT915"}
"""Rules that tell of values and of more: of skipped steps, of threads."""


@pytest.mark.parametrize("code", sorted(RULES.keys() - ALSO))
def test_only_dtypes_finds_the_example_unless_the_rule_goes_by_values(code: str, tmp_path: Path) -> None:
    (block,) = document(RULES[code]).example
    found = {d.code for d in traced(block, tmp_path / "example.py", Options.parse(only="dtypes"))}
    assert (code in found) == (code not in OF_VALUES)


EXPECTED = re.compile(r"# error: (?P<codes>DT\d+(?:, DT\d+)*)")
TRAIN = Path(__file__).resolve().parents[2] / "fixtures" / "train"
FIXTURES = sorted(file for file in TRAIN.glob("*.py") if not file.stem.endswith("_cuda"))  # those need a GPU


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_a_training_script_gives_what_its_comments_say(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", [str(file)])
    source = file.read_text()
    expected = {
        (number, code)
        for number, line in enumerate(source.splitlines(), 1)
        for match in EXPECTED.finditer(line)
        for code in match["codes"].split(", ")
        if code in RULES
    }
    assert expected
    tracer = Tracer()
    with tracer:
        exec(compile(source, str(file), "exec"), {"__name__": "__main__"})
    found = judge(record_of(tracer, [str(file)], 0))
    told = {
        (d.location.span.line, d.code)
        for d in found
        if (d.location.span.line, d.code) in expected or d.severity is not Severity.INFO
    }
    assert told == expected
    assert "loss" in capsys.readouterr().out


def test_fail_on_takes_names_codes_and_prefixes() -> None:
    assert FailOn(["overflow"], RULES).codes == {"DT901"}
    assert FailOn(["DT905"], RULES).codes == {"DT905"}
    assert FailOn(["dt9"], RULES).codes == set(RULES)


def test_words_that_ask_for_nothing_but_values_are_known() -> None:
    fail_on = FailOn(["overflow", "any", "DT90", "promotion", "DT911"], RULES)
    assert fail_on.of_values == ["overflow", "DT911"]


def test_any_leaves_information_out() -> None:
    fail_on = FailOn(["any"], RULES)
    record = traced_record("import torch\nx = torch.ones(4).half()\nx.float().half()\ntorch.ones(2).div(0)\n")
    found = {d.code: fail_on.matches(d) for d in record}
    assert found == {"DT908": False, "DT903": False}
    assert FailOn(["useless-cast"], RULES).matches(next(d for d in record if d.code == "DT908"))


def traced_record(source: str) -> list[Diagnostic]:
    tracer = Tracer()
    with tracer:
        exec(compile(source, "<test>", "exec"), {})
    return judge(record_of(tracer, [], 0))


@pytest.mark.parametrize(
    ("word", "near"), [("overfow", "overflow"), ("DT9O9", "DT909"), ("promotions", "promotion"), ("ANY_", "any")]
)
def test_fail_on_refuses_what_it_does_not_know_and_names_the_nearest(word: str, near: str) -> None:
    with pytest.raises(SelectionError, match=f"did you mean '{near}'"):
        FailOn([word], RULES)


def scaled(init_scale: float, steps: int, spoil: bool = False) -> str:
    return f"""
import torch
torch.manual_seed(0)
layer = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale={init_scale})
for step in range({steps}):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = layer(torch.ones(2, 4)).float().pow(2).sum()
    if {spoil} and step % 2:
        loss = loss * 1e38 * 1e38
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""


def test_a_scaler_that_finds_its_scale_is_not_reported() -> None:
    tracer = Tracer()
    with tracer:
        exec(compile(scaled(2.0**24, 20), "<test>", "exec"), {})
    record = record_of(tracer, [], 0)
    assert record.scaler is not None
    assert record.scaler.updates == 20
    assert 0 < record.scaler.skipped == record.scaler.leading < 20
    assert [event.by_scaler for event in record.events] == [True] * len(record.events)
    assert judge(record) == []


def test_a_forward_that_overflows_is_blamed_for_the_skips() -> None:
    found = {d.code: d for d in traced_record(scaled(1024.0, 6, spoil=True))}
    assert "skipped 3 of 6 steps, because the forward was not finite" in found["DT907"].message
    assert "DT901" in found


OVERFLOWS = "import torch\nx = (torch.tensor([60000.0]).half() *\n     2).sum().item(){comment}\n"


@pytest.mark.parametrize(
    ("comment", "codes"),
    [
        ("", ["DT901"]),
        ("  # noqa: DT901", []),
        ("  # noqa", []),
        ("  # dtlint: ignore[overflow]", []),
        ("  # noqa: DT902", ["DT901"]),
        ("\n# dtlint: file-ignore[DT901]", []),
    ],
)
def test_a_comment_in_the_source_silences_a_finding(comment: str, codes: list[str], tmp_path: Path) -> None:
    assert [d.code for d in traced(OVERFLOWS.format(comment=comment), tmp_path / "script.py")] == codes


def test_of_a_file_that_has_changed_only_the_recorded_lines_speak(tmp_path: Path) -> None:
    file = tmp_path / "script.py"
    file.write_text("import torch\n(torch.tensor([60000.0]).half() * 2).sum().item()  # noqa: DT901\n")
    tracer = Tracer()
    with tracer:
        exec(compile(file.read_text(), str(file), "exec"), {})
    record = record_of(tracer, [str(file)], 0)
    file.write_text("# dtlint: file-ignore\nimport torch\n")
    assert judge(record) == []
    for text in record.sources.values():
        text["2"] = text["2"].partition("#")[0]
    assert [d.code for d in judge(record)] == ["DT901"]


def test_paths_are_relative_to_the_directory_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(OVERFLOWS.format(comment="  # noqa: DT901"))
    tracer = Tracer()
    with tracer:
        exec(compile((tmp_path / "script.py").read_text(), "script.py", "exec"), {})
    record = record_of(tracer, ["script.py"], 0)
    monkeypatch.chdir("/")
    assert judge(record, root=tmp_path) == []
