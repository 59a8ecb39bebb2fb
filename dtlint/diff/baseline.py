"""The facts of a run in a file for version control: JSON, sorted, a fact a line, modules of one shape folded into one.

`blocks.[0-11].fc` stands for twelve modules that do the same.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dtlint.atomic import write_text
from dtlint.diff.facts import Fact, Facts, facts_of
from dtlint.trace import folder
from dtlint.trace.store import RecordError, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from pathlib import Path

    from dtlint.trace.record import TraceRecord

__all__ = ["VERSION", "is_baseline", "load_facts", "load_record", "save_facts", "settled", "text"]

VERSION = 1
"""Raised when an older reader would misread a newer file."""

KEY = "dtlint-baseline"

FOLDED = re.compile(r"\[([0-9,-]+)\]")

MOST_FOLDED = 100_000
"""Modules that one line may stand for: more are a mistake of the file."""


def load_facts(path: Path, say: Callable[[str], None]) -> Facts:
    """The facts of a baseline, or of a trace record; what was passed over in a directory of records goes to `say`.

    Raises:
        RecordError: it is neither, it is damaged or of a newer version, or nothing was traced in it; in one line.
    """
    data = {} if path.is_dir() else read_json(path, "trace record or baseline")
    if not isinstance(data, dict) or KEY not in data:
        return facts_of(load_record(path, say))
    version = data[KEY]
    if not isinstance(version, int) or version > VERSION:
        raise RecordError(f"{path} is a baseline of version {version!r}, newer than this dtlint reads; upgrade dtlint")
    try:
        return _decoded(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RecordError(
            f"{path} is a damaged baseline ({error}); restore it, or make it anew with --update-baseline"
        ) from error


def load_record(path: Path, say: Callable[[str], None]) -> TraceRecord:
    """A record in which something was traced; of a directory, the records of all ranks, merged.

    Raises:
        RecordError: it is none, or nothing was traced.
    """
    record = folder.load_record(path, say)
    if not record.operators:
        raise RecordError(f"{path} is the record of a run in which nothing was traced")
    return record


def is_baseline(path: Path) -> bool:
    """Is it a baseline, as far as its beginning tells?"""
    try:
        with path.open(encoding="utf-8") as file:
            return KEY in file.read(len(KEY) + 8)
    except (OSError, UnicodeDecodeError):
        return False


def save_facts(facts: Facts, path: Path) -> None:
    """Write the baseline, wholly or not at all.

    Raises:
        OSError: it cannot be written.
    """
    write_text(path, text(facts))


def text(facts: Facts) -> str:
    """The text of the file. It is the same for two runs that do the same to dtypes, but for magnitudes."""
    lines = [json.dumps(KEY) + f": {VERSION}", '"torch": ' + json.dumps(facts.torch)]
    lines += [f'"{name}": ' + _listed(rows) for name, rows in _sections(facts)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _listed(rows: Iterable[dict[str, Any]]) -> str:
    texts = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    return "[\n" + ",\n".join(texts) + "\n]" if texts else "[]"


def _sections(facts: Facts) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    yield "operators", [_row(fact) for fact in _folded_facts(facts.operators)]
    yield "outputs", _named(facts.outputs)


def _named(dtypes: dict[str, str]) -> list[dict[str, Any]]:
    folded = _folded(sorted(dtypes.items()), lambda item: item[0], lambda item, name: (name, item[1]), lambda i: i[1])
    return [{"module": name, "dtype": dtype} for name, dtype in sorted(item for item, _ in folded)]


def _row(fact: Fact) -> dict[str, Any]:
    row: dict[str, Any] = {"module": fact.module, "source": fact.source, "op": fact.op}
    row |= {"given": " ".join(fact.given), "gave": fact.gave}
    row |= {name: getattr(fact, name) for name in ("cast", "promoted", "autocast", "born") if getattr(fact, name)}
    if fact.reach:
        row["reach"] = 2.0 ** math.ceil(math.log2(fact.reach))
    return row | {"file": fact.file}


def _folded_facts(facts: list[Fact]) -> list[Fact]:
    """One fact for modules of one shape, with the largest magnitude among them; in a stable order."""
    once: dict[Fact, Fact] = {}
    for fact in facts:
        known = once.setdefault(fact, fact)
        if fact.reach > known.reach:
            once[fact] = fact
    folded = _folded(
        once.values(),
        lambda fact: fact.module,
        lambda fact, module: replace(fact, module=module),
        lambda fact: replace(fact, module=""),
    )
    reached = [replace(fact, reach=max(one.reach for one in group)) for fact, group in folded]
    return sorted(reached, key=lambda fact: (*fact.place, fact.given, fact.gave, fact.cast, fact.born))


def _folded(
    items: Iterable[Any], name: Callable[[Any], str], named: Callable[[Any, str], Any], rest: Callable[[Any], Hashable]
) -> list[tuple[Any, list[Any]]]:
    """Items whose names differ in their first number alone, and in nothing else, as one; each with those it stands for."""
    groups: dict[Hashable, list[tuple[int | None, Any]]] = {}
    for item in items:
        parts = name(item).split(".")
        at = next((index for index, part in enumerate(parts) if part.isdecimal()), None)
        number = None if at is None else int(parts[at])
        shape = ".".join(parts) if at is None else ".".join((*parts[:at], "[]", *parts[at + 1 :]))
        groups.setdefault((shape, rest(item)), []).append((number, item))
    folded = []
    for (shape, _), members in groups.items():  # type: ignore[misc]
        numbers = sorted({number for number, _ in members if number is not None})
        whole = name(members[0][1]) if len(numbers) < 2 else shape.replace("[]", f"[{_spans(numbers)}]")
        folded.append((named(members[0][1], whole), [item for _, item in members]))
    return folded


def _spans(numbers: list[int]) -> str:
    """`0-2,5` of 0, 1, 2 and 5."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in spans)


def _unfolded(name: str) -> Iterator[str]:
    """The names that a folded one stands for."""
    found = FOLDED.search(name)
    if found is None:
        yield name
        return
    for span in found[1].split(","):
        first, _, last = span.partition("-")
        if int(last or first) - int(first) > MOST_FOLDED:
            raise ValueError(f"{name} stands for too many modules")
        for number in range(int(first), int(last or first) + 1):
            yield name[: found.start()] + str(number) + name[found.end() :]


def _decoded(data: dict[str, Any]) -> Facts:
    facts = Facts(str(data["torch"]))
    for row in data["operators"]:
        fact = Fact(
            module="",
            source=_text(row["source"]),
            op=_text(row["op"]),
            given=tuple(_text(row["given"]).split()),
            gave=_text(row["gave"]),
            file=_text(row["file"]),
            cast=_text(row.get("cast", "")),
            promoted=bool(row.get("promoted", False)),
            autocast=bool(row.get("autocast", False)),
            born=_text(row.get("born", "")),
            reach=float(row.get("reach", 0.0)),
        )
        facts.operators += [replace(fact, module=module) for module in _unfolded(_text(row["module"]))]
    for row in data["outputs"]:
        facts.outputs |= dict.fromkeys(_unfolded(_text(row["module"])), _text(row["dtype"]))
    return facts


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} found where a text belongs")
    return value


def settled(new: Facts, old: Facts, factor: float) -> Facts:
    """The new facts with the old magnitudes where these have not changed much, so that the file changes with its meaning."""
    known = {fact: fact.reach for fact in old.operators if fact.reach}
    operators = []
    for fact in new.operators:
        before = known.get(fact, 0.0)
        near = before and before / factor < fact.reach <= before
        operators.append(replace(fact, reach=before) if near else fact)
    return replace(new, operators=operators)
