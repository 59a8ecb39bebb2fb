"""Static findings beside a run: what confirms one, what refutes it, and lines that have changed since."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dtlint.cli import main
from dtlint.diagnostic import Diagnostic, Location, Note, RunVerdict, Severity, Span
from dtlint.trace.located import Located
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import DtypeError, Entry, Event, Operand, Place, Unseen
from dtlint.trace.store import RecordError, load, save
from dtlint.trace.verdicts import with_verdicts

TRACED = Path(__file__).resolve().parents[2] / "fixtures" / "traced"
CODE = "import torch\n\n\ndef f(x, w):\n    y = x @ w\n    return y\n"
SPAN = Span(5, 8, 5, 13)


def entry(*inputs: str, output: str | None, op: str = "mm", **more: object) -> Entry:
    operands = [Operand(dtype, False, None, "") for dtype in inputs]
    plain = Entry(0, op, "forward", operands, output, 1, "", "", None, False, 0, 0, None, 0, 0.0, 0.0, 0)
    return replace(plain, **more)  # type: ignore[arg-type]


def record(*entries: Entry, code: str = CODE, **more: object) -> TraceRecord:
    lines = {str(number): line for number, line in enumerate(code.splitlines(), 1)}
    run = TraceRecord(
        2, "", "2.13", "3.11", ["a.py"], 0, 0, 1, [Place("a.py", 5, 5, 8, 13, "x @ w", "")], list(entries)
    )
    run.sources["a.py"] = {number: lines[number] for number in map(str, range(3, 7)) if number in lines}
    return replace(run, **more)  # type: ignore[arg-type]


def finding(code: str, message: str, span: Span = SPAN, **more: object) -> Diagnostic:
    return Diagnostic(code, "x", Severity.WARNING, message, Location("a.py", span), **more)  # type: ignore[arg-type]


MISMATCH = finding("DT301", "`@` gets float16 and float32: it raises")
EPSILON = finding("DT403", "1e-08 is 0 in float16: adding it changes nothing")
ERROR = DtypeError("expected m1 and m2 to have the same dtype", "mm", 0, 0, [], [], 1, True)


def verdict(run: TraceRecord, of: Diagnostic, folder: Path, text: str = CODE) -> tuple[RunVerdict, str]:
    (folder / "a.py").write_text(text)
    [told] = with_verdicts([of], Located(run, folder / "run.json", [folder / "a.py"]))
    assert told.in_run is not None
    return told.in_run.verdict, told.in_run.saw


@pytest.fixture(autouse=True)
def _in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_operator_that_raised_confirms_that_it_raises(tmp_path: Path) -> None:
    told, saw = verdict(record(errors=[ERROR]), MISMATCH, tmp_path)
    assert told is RunVerdict.CONFIRMED
    assert saw == "it raised: expected m1 and m2 to have the same dtype"


def test_operands_of_one_dtype_refute_a_mismatch(tmp_path: Path) -> None:
    ran = record(entry("float32", "float32", output="float32"))
    assert verdict(ran, MISMATCH, tmp_path) == (RunVerdict.REFUTED, "`mm` of float32 gave float32 once")


def test_a_mismatch_is_not_refuted_by_an_operator_of_one_tensor(tmp_path: Path) -> None:
    assert verdict(record(entry("float32", output="float32")), MISMATCH, tmp_path)[0] is RunVerdict.NOT_SEEN


def test_dtypes_that_it_does_not_name_refute_a_finding(tmp_path: Path) -> None:
    assert verdict(record(entry("float32", output="float32")), EPSILON, tmp_path)[0] is RunVerdict.REFUTED
    assert verdict(record(entry("float16", output="float16")), EPSILON, tmp_path)[0] is RunVerdict.NOT_SEEN
    added = record(entry("float16", output="float16", op="add", number=1e-8))
    assert verdict(added, EPSILON, tmp_path)[0] is RunVerdict.CONFIRMED


@pytest.mark.parametrize(
    "of",
    [
        finding("DT403", "Under half: 1e-08 is 0 in float16"),
        finding("DT403", "1e-08 is 0 in float16", conditional=True),
        finding("DT403", "an epsilon is 0"),
        finding("DT205", "a GradScaler of float16"),
    ],
    ids=["under an assumption", "conditional", "names no dtype", "of a protocol"],
)
def test_what_the_run_cannot_exclude_is_not_refuted(of: Diagnostic, tmp_path: Path) -> None:
    assert verdict(record(entry("float32", output="float32")), of, tmp_path)[0] is RunVerdict.NOT_SEEN


@pytest.mark.parametrize(
    "partial",
    [{"left_out": "--every 2"}, {"covers": ["blocks.0"]}, {"unseen": [Unseen("torch.compile", 1)]}],
    ids=["steps", "modules", "unseen"],
)
def test_a_record_of_a_part_refutes_nothing(partial: dict[str, object], tmp_path: Path) -> None:
    ran = record(entry("float32", output="float32"), **partial)
    assert verdict(ran, EPSILON, tmp_path)[0] is RunVerdict.NOT_SEEN


def test_a_loss_in_half_is_confirmed_by_what_computed_it(tmp_path: Path) -> None:
    loss = finding("DT407", "The loss is computed in float16, which keeps three digits of it")
    ran = record(entry("float16", output="float16", op="_log_softmax"))
    assert verdict(ran, loss, tmp_path)[0] is RunVerdict.CONFIRMED
    under_autocast = record(entry("float32", output="float32", op="_log_softmax"))
    assert verdict(under_autocast, loss, tmp_path)[0] is RunVerdict.REFUTED


def test_what_went_wrong_confirms_a_finding_about_range(tmp_path: Path) -> None:
    born = Event("overflow", 0, 0, 0, "", "float16", 0.0, 0.0, [], 1, 0, [], False, None)
    ran = record(entry("float16", output="float16", high=6e4), events=[born])
    told, saw = verdict(ran, finding("DT406", "a sum in float16 reaches beyond 65504"), tmp_path)
    assert told is RunVerdict.CONFIRMED
    assert saw == "`mm` of float16 gave float16 once; up to 6e+04; overflow born once"
    assert verdict(ran, finding("DT404", "nothing keeps the divisor from 0"), tmp_path)[0] is RunVerdict.NOT_SEEN


def test_casts_confirm_what_they_give(tmp_path: Path) -> None:
    bare = finding("DT103", "`x` is cast to int8")
    for given, expected in (("float32", RunVerdict.CONFIRMED), ("int64", RunVerdict.NOT_SEEN)):
        ran = record(entry(given, output="int8", op="_to_copy", author="asked"))
        assert verdict(ran, bare, tmp_path)[0] is expected


def test_of_a_call_that_leads_elsewhere_the_operator_there_counts(tmp_path: Path) -> None:
    note = Note(Location("a.py", SPAN), "1e-08 is 0 in float16")
    call = finding("DT403", "This call leads to where 1e-08 is 0 in float16", Span(2, 0, 2, 0), notes=(note,))
    ran = record(entry("float32", output="float32"))
    assert verdict(ran, call, tmp_path) == (RunVerdict.REFUTED, "at a.py:5 `mm` of float32 gave float32 once")


def test_a_line_without_operators_is_not_seen(tmp_path: Path) -> None:
    ran = record(entry("float32", output="float32"))
    told = verdict(ran, finding("DT301", "float16 and float32", Span(6, 4, 6, 12)), tmp_path)
    assert told == (RunVerdict.NOT_SEEN, "the run had no operator on this line")


CHANGED = CODE.replace("x @ w", "w @ x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# one\n# two\n" + CODE, RunVerdict.REFUTED),
        (CODE.replace("return y", "return y + 1"), RunVerdict.REFUTED),
        (CHANGED, RunVerdict.STALE),
        ("#\n" + CODE.replace("return y", "return y + 1"), RunVerdict.STALE),
        (CODE.replace("return y", "y = x @ w\n    return y"), RunVerdict.STALE),
    ],
    ids=[
        "moved with what is around it",
        "the next line changed",
        "changed",
        "moved alone",
        "one of two that look alike",
    ],
)
def test_a_line_is_known_again_or_stale(text: str, expected: RunVerdict, tmp_path: Path) -> None:
    ran = record(entry("float32", "float32", output="float32"))
    line = next(number for number, one in enumerate(text.splitlines(), 1) if "@" in one)
    of = replace(MISMATCH, location=Location("a.py", SPAN._replace(line=line, end_line=line)))
    assert verdict(ran, of, tmp_path, text)[0] is expected


def test_paths_are_relative_to_where_the_trace_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text(CODE)
    ran = record(entry("float32", output="float32"))
    monkeypatch.chdir(tmp_path / "src" / "deep")  # above which the trace ran
    assert Located(ran, Path("run.json"), [Path("../a.py")]).of("../a.py") is not None
    monkeypatch.chdir(tmp_path)
    assert Located(ran, Path("src/run.json"), [Path("src/a.py")]).of("src/a.py") is not None
    with pytest.raises(RecordError, match=r"run.json is of other files \(a.py\)"):
        Located(ran, Path("run.json"), [Path("src/a.py")])


def test_the_results_of_a_run_by_expression(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    cast = entry("float32", output="float16", op="_to_copy", author="autocast")
    ran = record(cast, entry("float16", "float16", output="float16"))
    assert Located(ran, tmp_path / "r", [tmp_path / "a.py"]).results("a.py") == {SPAN: frozenset({"float16"})}
    refused = record(entry("float16", "float16", output="float16"), errors=[ERROR])
    assert Located(refused, tmp_path / "r", [tmp_path / "a.py"]).results("a.py") == {}


# -- from the command line ---------------------------------------------------------------------------------------------


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    for name in ("train.py", "run.json"):
        shutil.copy(TRACED / name, tmp_path / name)
    return tmp_path


def dtlint(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, list(arguments))
    return done.exit_code, done.stdout, done.stderr


def test_each_finding_says_what_the_run_saw(traced: Path) -> None:
    code, told, _ = dtlint("check", "--no-cache", "--trace", "run.json", "--output-format", "json", "train.py")
    assert code == 1
    by_code = {one["code"]: one["run"] for one in json.loads(told)}
    assert {code: one["verdict"] for code, one in by_code.items()} == {
        "DT101": "confirmed",
        "DT103": "not seen",
        "DT302": "confirmed",
        "DT403": "confirmed",
    }
    assert by_code["DT302"]["dtypes"] == ["float16", "float64"]
    assert by_code["DT302"]["largest"] > 1
    _, full, _ = dtlint("check", "--no-cache", "--trace", "run.json", "train.py")
    assert "\nrun: not seen: the run had no operator on this line\n" in full
    assert "By the run: 3 confirmed, 1 not seen." in full
    _, without, _ = dtlint("check", "--no-cache", "--output-format", "json", "train.py")
    assert not any("run" in one for one in json.loads(without))


def test_a_file_that_has_changed_is_said_to_be_stale(traced: Path) -> None:
    text = (traced / "train.py").read_text()
    (traced / "train.py").write_text(text.replace("+ 1e-8)", "+ 1e-8 )"))
    _, told, _ = dtlint("check", "--no-cache", "--trace", "run.json", "--output-format", "concise", "train.py")
    [line] = [line for line in told.splitlines() if "DT403" in line]
    assert line.endswith("[run: stale: the file has changed since the run; trace it again]")


def test_infer_takes_what_the_source_does_not_decide_from_the_run(traced: Path) -> None:
    place = (traced / "train.py").read_text().splitlines().index("    return scores.to(torch.int8)") + 1
    _, told, _ = dtlint("infer", "--no-cache", "--trace", "run.json", "train.py")
    assert not any("(from the run)" in line for line in told.splitlines()[place - 2 : place])
    (traced / "lib.py").write_text(CODE)
    save(
        record(entry("float16", "float16", output="float16"), places=[Place("lib.py", 5, 5, 8, 13, "x @ w", "")]),
        traced / "lib.json",
    )
    loaded = load(traced / "lib.json")
    loaded.sources["lib.py"] = loaded.sources.pop("a.py")
    save(loaded, traced / "lib.json")
    assert "    y = x @ w  # x @ w: float16 (from the run)\n" in dtlint("infer", "lib.py", "--trace", "lib.json")[1]
    told = dtlint("infer", "--no-cache", "--at", "lib.py:5:11", "--trace", "lib.json")[1]
    assert told == "x @ w: float16\n  lib.py:5:9: `x @ w` is float16: as the run saw it\n"
    claims = json.loads(dtlint("infer", "lib.py", "--trace", "lib.json", "--output-format", "json")[1])
    assert [one["dtypes"] for one in claims if one.get("from_run")] == [["float16"]]


@pytest.mark.parametrize("command", [["check"], ["infer"]])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "cannot read"),
        ("", "not valid JSON"),
        ('{"schema": 2, "places": [', "if it was cut off, write it anew"),
        ('{"schema": 99}', "newer than this dtlint reads"),
        ('{"schema": 2}', "damaged trace record"),
        ("OTHER", "is of other files (elsewhere.py)"),
    ],
    ids=["missing", "empty", "cut off", "of another version", "damaged", "of other files"],
)
def test_a_record_that_is_of_no_use_is_refused_in_one_line(
    command: list[str], content: str | None, expected: str, traced: Path
) -> None:
    bad = traced / "bad.json"
    if content == "OTHER":
        save(
            replace(
                load(traced / "run.json"),
                places=[Place("elsewhere.py", 1, 1, 0, 1, "x", "")],
                entries=[],
                events=[],
                errors=[],
                memory=[],
                weights=[],
                unseen=[],
                scaler=None,
                series=None,
            ),
            bad,
        )
    elif content is not None:
        bad.write_text(content)
    code, told, problem = dtlint(*command, "--no-cache", "--trace", "bad.json", "train.py")
    assert (code, told) == (2, "")
    assert expected in problem and problem.count("\n") == 1


def test_a_trace_goes_with_a_report_alone(traced: Path) -> None:
    assert dtlint("check", "--trace", "run.json", "--diff", "train.py")[0] == 2
    assert dtlint("check", "--trace", "run.json", "-")[0] == 2
