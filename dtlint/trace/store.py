"""A trace record in a file: JSON, written wholly or not at all, and checked as it is read.

Every type, every reference and every word of a fixed list is checked as a file is read, so that no report fails on a record that was loaded.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, Field, asdict, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from dtlint.atomic import write_text
from dtlint.trace.options import ASSUMED
from dtlint.trace.precision_plan import check_plan
from dtlint.trace.record import TraceRecord
from dtlint.trace.schema import AUTHORS, CALLS, FOUND, SCHEMA

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["RecordError", "decoded", "encoded", "load", "read_json", "save", "write_json"]


class RecordError(ValueError):
    """The file is not a trace record that this version reads; the message is one line that says so."""


def encoded(record: TraceRecord) -> dict[str, Any]:
    """The record as JSON has it: dicts, lists, texts and finite numbers. What is not finite is a text, as in `inf`."""
    plain: dict[str, Any] = _encode(asdict(record))
    return plain


def save(record: TraceRecord, path: Path) -> None:
    """Write the record, wholly or not at all."""
    write_json(record, path)


def write_json(value: Any, path: Path, indent: int | None = None) -> None:
    """Write a dataclass, wholly or not at all: in one line, or with `indent` for people to read."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(_encode(asdict(value)), allow_nan=False, separators=separators, indent=indent)
    write_text(path, f"{text}\n")


def load(path: Path) -> TraceRecord:
    """Read a record.

    Raises:
        RecordError: the file is missing, damaged, of a newer schema, or no trace record at all.
    """
    data = read_json(path, "trace record")
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, int):
        raise RecordError(f"{path} is not a trace record; `dtlint trace --output NEW_FILE SCRIPT` writes one")
    if schema > SCHEMA:
        raise RecordError(f"{path} has schema {schema}, newer than this dtlint reads ({SCHEMA}); upgrade dtlint")
    try:
        record = decoded(TraceRecord, data)
        assert isinstance(record, TraceRecord)
        _check(record)
    except (TypeError, KeyError, AssertionError) as error:
        raise RecordError(f"{path} is a damaged trace record ({error}); trace again to write a new one") from error
    return record


def read_json(path: Path, what: str) -> Any:
    """The content of a file that should be a `what`.

    Raises:
        RecordError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise RecordError(f"{path} is not a {what}: it is not valid JSON; if it was cut off, write it anew") from error


def _check(record: TraceRecord) -> None:
    """Every index must point at something, so that a report never fails on a record that was loaded."""
    _check_words(record)
    places, entries, events = len(record.places), len(record.entries), len(record.events)
    indices: list[tuple[int | None, int]] = []
    for entry in record.entries:
        indices += [(entry.place, places), (entry.undoes, entries), (entry.culprit, len(entry.inputs))]
        indices += [(number, entries) for operand in entry.inputs for number in (operand.origin, operand.maker)]
    for event in record.events:
        indices += [(event.place, places), (event.entry, entries), (event.written, places)]
        indices.append((event.maker, entries))
    if record.scaler is not None:
        indices += [(record.scaler.place, places), *((cause.event, events) for cause in record.scaler.causes)]
        indices += [(skip.event, events) for skip in record.scaler.skips]
    indices += [(clip.place, places) for clip in record.clips]
    indices += [(unseen.place, places) for unseen in record.unseen]
    indices += [(weight.place, places) for weight in record.weights]
    indices += [(error.place, places) for error in record.errors]
    indices += [(operand.origin, entries) for error in record.errors for operand in error.operands]
    if record.series is not None:
        columns = len(record.series.starts)
        for row in record.series.rows:
            if any(len(run) < CALLS or run[0] < 1 or len(run) > CALLS + len(row.dtypes) for run in row.runs):
                raise KeyError("a run of the series")
            indices.append((sum(run[0] for run in row.runs), columns + 1))
    indices += [(local.entry, entries) for local in record.local]
    indices += [(gains.entry, entries) for gains in record.gains]
    if record.sketches is not None:
        indices += [(number, entries) for number in record.sketches.ops]
    for index, size in indices:
        if index is not None and not 0 <= index < size:
            raise KeyError(f"index {index} of {size}")


def _check_words(record: TraceRecord) -> None:
    for entry in record.entries:
        if (entry.author and entry.author not in AUTHORS) or (entry.finding and entry.finding not in FOUND):
            raise KeyError(f"a cast or a finding that no record has: {entry.author or entry.finding!r}")
        if (entry.author or entry.finding or entry.stalled) and not entry.inputs:
            raise KeyError("an operator without operands")
    if record.assume and record.assume not in ASSUMED:
        raise KeyError(f"assume {record.assume!r}")
    if any(not local.error >= 0 for local in record.local) or any(
        not gain >= 0 for one in record.gains for gain in one.gains
    ):
        raise KeyError("an error that is none")
    if any(not (clip.scale > 0 and clip.times > 0) for clip in record.clips):
        raise KeyError("a scale that is none")
    if record.plan is not None:
        check_plan(record.plan)


SPECIAL = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}
"""How the floats that JSON lacks are written."""


def _encode(value: Any) -> Any:
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    if isinstance(value, dict):
        return {key: _encode(item) for key, item in value.items()}
    return [_encode(item) for item in value] if isinstance(value, list) else value


def decoded(kind: Any, value: Any) -> Any:
    """`value` as JSON gave it, as the type `kind`; TypeError or KeyError where it does not fit."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        inner = [option for option in get_args(kind) if option is not NoneType]
        return None if value is None else decoded(inner[0], value)
    if origin is list:
        _expect(value, list)
        (inner_kind,) = get_args(kind)
        if inner_kind is int and all(type(item) is int for item in value):  # as long series are
            return value
        return [decoded(inner_kind, item) for item in value]
    if origin is dict:
        _expect(value, dict)
        return {key: decoded(get_args(kind)[1], item) for key, item in value.items()}
    if is_dataclass(kind):
        _expect(value, dict)
        hints = get_type_hints(kind)
        made: Any = kind
        return made(**{f.name: decoded(hints[f.name], value[f.name]) for f in fields(kind) if _given(f, value)})
    if kind is float and not isinstance(value, bool):
        if isinstance(value, str):
            return SPECIAL[value]
        _expect(value, (int, float))
        return float(value)
    _expect(value, kind)
    if kind is int and isinstance(value, bool):
        raise TypeError("a truth value where a number belongs")
    return value


def _given(f: Field[Any], value: dict[str, Any]) -> bool:
    """Is it there? A field that has a default may be missing: an older dtlint did not know it."""
    return f.name in value or (f.default is MISSING and f.default_factory is MISSING)


def _expect(value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{type(value).__name__} found where another type belongs")
