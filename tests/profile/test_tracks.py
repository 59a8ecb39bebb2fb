"""dtlint's events keep the rules of TensorBoard's plugin and of Perfetto, and leave the rest of a trace alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dtlint.profile.file import TraceFileError, load_trace, save_trace
from dtlint.profile.tracks import PID, with_tracks
from dtlint.trace.marks import Mark

BASE = 1_790_000_000_000_000_000
TRACE: dict[str, Any] = {
    "schemaVersion": 1,
    "baseTimeNanoseconds": BASE,
    "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mul", "pid": 7, "tid": 7, "ts": 5.0, "dur": 2.0}],
}
MARKS = [
    Mark("steps", "step 1", BASE, BASE + 9_000),
    Mark("promotions", "mul(float16, float32) gives float32", BASE + 5_000, BASE + 7_000, 0, {"line": 3}),
    Mark("casts", "float32 to float16", BASE + 2_000, BASE + 3_000, 1),
    Mark("non-finite values", "overflow in mul", BASE + 5_000, None),
    Mark("GradScaler", "step 1 skipped", BASE + 9_000, None),
]

NUMBER = {"type": "number"}
EVENT = {
    "type": "object",
    "properties": {"pid": {"const": PID}, "tid": {"type": "integer"}, "ts": NUMBER, "cat": {"const": "dtlint"}},
    "required": ["ph", "cat", "name", "pid", "tid", "ts"],
    "oneOf": [
        {"properties": {"ph": {"const": "X"}, "dur": {"type": "number", "minimum": 0}}, "required": ["dur"]},
        {"properties": {"ph": {"const": "i"}, "s": {"const": "t"}}, "required": ["s"], "not": {"required": ["dur"]}},
        {
            "properties": {"ph": {"const": "C"}, "args": {"type": "object", "additionalProperties": NUMBER}},
            "required": ["args"],
        },
        {
            "properties": {
                "ph": {"const": "M"},
                "name": {"enum": ["process_name", "process_sort_index", "thread_name", "thread_sort_index"]},
            },
            "required": ["args"],
        },
    ],
}
"""The kinds of events of the Chrome trace format that Perfetto reads and the plugin passes over."""


def ours(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event.get("pid") == PID]


def test_every_event_keeps_the_rules() -> None:
    events = ours(with_tracks(TRACE, MARKS))
    jsonschema.validate(events, {"type": "array", "items": EVENT})
    assert {event["ph"] for event in events} == {"X", "i", "C", "M"}
    assert [event["args"] for event in events if event["ph"] == "C"] == [{"casts": 1, "promotions": 1}]


def test_each_track_of_each_thread_is_named_and_its_slices_are_its_own() -> None:
    events = ours(with_tracks(TRACE, MARKS))
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {names[event["tid"]] for event in events if event["ph"] in "Xi"} == {
        *("steps", "promotions", "casts, thread 2", "non-finite values", "GradScaler")
    }


def test_times_are_those_of_the_profiler_and_nothing_else_changes() -> None:
    trace = with_tracks(TRACE, MARKS)
    assert next(event["ts"] for event in ours(trace) if event["name"].startswith("mul")) == 5.0
    assert trace["traceEvents"][:1] == TRACE["traceEvents"]
    assert {name: trace[name] for name in ("schemaVersion", "baseTimeNanoseconds")} == {
        name: TRACE[name] for name in ("schemaVersion", "baseTimeNanoseconds")
    }
    assert ours(with_tracks(TRACE, [])) == []


def test_a_file_is_read_as_it_was_written_and_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pt.trace.json"
    save_trace(with_tracks(TRACE, MARKS), path)
    text = path.read_text()
    assert load_trace(path) == json.loads(text)
    for content in (text[: len(text) // 2], "[]", '{"traceEvents": 3}', '{"traceEvents": [3]}'):
        path.write_text(content)
        with pytest.raises(TraceFileError, match=r"is no trace of torch\.profiler"):
            load_trace(path)
    with pytest.raises(TraceFileError, match=r"cannot read .*none"):
        load_trace(tmp_path / "none.json")
    (tmp_path / "plain.json.gz").write_text(text)
    with pytest.raises(TraceFileError):
        load_trace(tmp_path / "plain.json.gz")
    with pytest.raises(ValueError, match="Out of range float"):
        save_trace({"traceEvents": [], "x": float("nan")}, path)
