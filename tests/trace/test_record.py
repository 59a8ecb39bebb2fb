"""A record survives its file, and a file that is no record is refused in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dtlint.trace.judge import judge
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import SCHEMA
from dtlint.trace.store import RecordError, load, save

Trace = Callable[[Callable[[], Any]], TraceRecord]


def program() -> None:
    (torch.full((4,), 1e5).half() * torch.ones(4)).sum()
    torch.zeros(2).log()


def test_a_record_is_read_as_it_was_written(trace: Trace, tmp_path: Path) -> None:
    record = trace(program)
    file = tmp_path / "trace.json"
    save(record, file)
    again = load(file)
    assert again == record
    assert judge(again) == judge(record)
    assert math.inf in {event.high for event in again.events}


def test_the_file_is_standard_json_and_nothing_else_is_left(trace: Trace, tmp_path: Path) -> None:
    save(trace(program), tmp_path / "trace.json")
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    data = json.loads((tmp_path / "trace.json").read_text(), parse_constant=refuse)
    assert data["schema"] == SCHEMA


def test_a_record_that_cannot_be_written_leaves_the_old_one(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text("old")
    record = trace(program)
    record.argv = [object()]  # type: ignore[list-item]
    with pytest.raises(TypeError):
        save(record, file)
    assert file.read_text() == "old"
    assert [f.name for f in tmp_path.iterdir()] == ["trace.json"]


ADDED = {
    "entries": ("sampled", "lost"),
    "events": ("brought",),
    "unseen": ("place", "by_design"),
}
"""What schema 2 added to the parts of a record; the whole got `weights`, `memory`, `errors` and `assume`."""


def test_a_record_of_the_first_schema_is_still_read(trace: Trace, tmp_path: Path) -> None:
    record = trace(program)
    file = tmp_path / "trace.json"
    save(record, file)
    data = json.loads(file.read_text())
    data["schema"] = 1
    for name in ("weights", "memory", "errors", "assume"):
        del data[name]
    for part, names in ADDED.items():
        for item in data[part]:
            for name in names:
                del item[name]
    file.write_text(json.dumps(data))
    again = load(file)
    assert again.schema == 1
    assert judge(again) == judge(record)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[1]", "not a trace record"),
        ("{}", "not a trace record"),
        ('{"schema": "1"}', "not a trace record"),
        (f'{{"schema": {SCHEMA + 1}}}', "upgrade dtlint"),
        (f'{{"schema": {SCHEMA}}}', "damaged"),
    ],
)
def test_what_is_no_record_is_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_text(text)
    with pytest.raises(RecordError, match=message) as refused:
        load(file)
    assert len(str(refused.value).splitlines()) == 1


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="cannot read"):
        load(tmp_path / "none.json")


def damage(data: dict[str, Any], how: str) -> None:
    if how == "a place that is none":
        data["entries"][0]["place"] = 10_000
    elif how == "a text for a number":
        data["steps"] = "3"
    elif how == "a truth value for a number":
        data["steps"] = True
    elif how == "a missing field":
        del data["events"][0]["kind"]
    elif how == "a number for a list":
        data["events"] = 3
    elif how == "an operand that is none":
        data["entries"][0]["culprit"] = -1
    elif how == "a text that is no float":
        data["events"][0]["high"] = "much"
    elif how == "a cast by nobody":
        next(entry for entry in data["entries"] if entry["author"])["author"] = "me"
    elif how == "a cast of nothing":
        next(entry for entry in data["entries"] if entry["author"])["inputs"] = []
    elif how == "a finding that is none":
        data["entries"][0]["finding"] = "odd"
    elif how == "a dtype that nothing assumes":
        data["assume"] = "int3"
    elif how == "a plan that is none":
        data["plan"] = {**PLAN, "how": "magic"}
    elif how == "a plan with half a memory":
        data["plan"] = {**PLAN, "activations": [1]}


PLAN = {
    "plan": 1,
    "dtlint": "0.1.0",
    "argv": [],
    "how": "cast",
    "keep_in": "float32",
    "device": "cpu",
    "simulated": False,
    "scale": 1.0,
    "headroom": 2.0,
    "keep": [],
    "modules": 1,
    "share": 1.0,
}


def test_a_plan_in_a_record_is_read(trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    save(trace(program), file)
    file.write_text(json.dumps({**json.loads(file.read_text()), "plan": PLAN}))
    plan = load(file).plan
    assert plan is not None
    assert plan.how == "cast"


@pytest.mark.parametrize(
    "how",
    [
        "a place that is none",
        "a text for a number",
        "a truth value for a number",
        "a missing field",
        "a number for a list",
        "an operand that is none",
        "a text that is no float",
        "a cast by nobody",
        "a cast of nothing",
        "a finding that is none",
        "a dtype that nothing assumes",
        "a plan that is none",
        "a plan with half a memory",
    ],
)
def test_a_damaged_record_is_refused(how: str, trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    save(trace(program), file)
    data = json.loads(file.read_text())
    damage(data, how)
    file.write_text(json.dumps(data))
    with pytest.raises(RecordError, match="damaged"):
        load(file)


def test_files_below_the_directory_of_the_run_are_relative(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = compile("import torch\ntorch.ones(2).log()\n", str(tmp_path / "deep" / "a.py"), "exec")
    assert {place.file for place in trace(lambda: exec(code, {})).places} == {"deep/a.py"}
