"""What changed in the dtypes of a program, as text for people and as JSON for tools: each cause, and below it what followed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TextIO

from dtlint.report.colour import write_lines
from dtlint.report.legible import legible
from dtlint.trace.words import listed, shorten, within

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.diff.changes import Change, Moved
    from dtlint.report.frame import Line

__all__ = ["FORMATS", "as_json", "write"]

FORMATS = ("text", "json")

MOST = 3
"""Consequences of one kind that are named; the rest is counted."""

NAMES = {"_to_copy": "the cast"}

BORN = {"overflow": "overflows", "invalid": "gives NaN", "pole": "divides by 0"}


def write(changes: Sequence[Change], format: str, stream: TextIO, notes: Sequence[str] = ()) -> None:
    """Write the changes. Where there are none, one line says so; the JSON then has an empty list.

    `notes` are lines about the comparison itself, such as that the two runs had different versions of torch.
    """
    if format == "json":
        stream.write(json.dumps(as_json(changes, notes), indent=2, allow_nan=False) + "\n")
        return
    write_lines((line for line in _screen(changes, notes)), stream)


def as_json(changes: Sequence[Change], notes: Sequence[str] = ()) -> dict[str, Any]:
    """As plain data."""
    return {
        "regressions": sum(change.regression for change in changes),
        "notes": list(notes),
        "changes": [_plain(change) for change in changes],
    }


def _plain(change: Change) -> dict[str, Any]:
    fact = change.fact
    return {
        "kind": change.kind,
        "regression": change.regression,
        "message": _message(change),
        "file": fact.file,
        "line": change.line or None,
        "source": fact.source,
        "op": fact.op,
        "modules": change.modules,
        "was": change.was,
        "now": change.now,
        "followed": [_moved(one) for one in change.followed],
        "outputs": [_moved(one) for one in change.outputs],
    }


def _moved(moved: Moved) -> dict[str, str]:
    return {"what": moved.what, "module": moved.module, "was": moved.was, "now": moved.now}


def _screen(changes: Sequence[Change], notes: Sequence[str]) -> Iterator[Line]:
    for change in changes:
        at = f"{change.fact.file}:{change.line}" if change.line else change.fact.file
        mark = "regression" if change.regression else "change"
        yield [(f"{mark} {at}: ", "warning" if change.regression else "info"), (legible(_message(change)), "strong")]
        for text in _below(change):
            yield [(f"    {legible(text)}", "plain")]
    for note in notes:
        yield [(f"note: {note}", "plain")]
    yield [(_summary(changes), "strong")]


def _summary(changes: Sequence[Change]) -> str:
    worse = sum(change.regression for change in changes)
    other = len(changes) - worse
    if not changes:
        return "The dtypes are those of before."
    found = [_count(worse, "regression")] if worse else []
    found += [f"{_count(other, 'change')} that {'is' if other == 1 else 'are'} none"] if other and worse else []
    found += [f"{_count(other, 'change')}, no regression"] if other and not worse else []
    return f"Found {' and '.join(found)}."


def _message(change: Change) -> str:
    fact, was, now = change.fact, change.was, change.now
    name = NAMES.get(fact.op, fact.op.strip("_"))
    what = f"{shorten(fact.source)} ({name})" if fact.source and not fact.cast else shorten(fact.source) or name
    where = _where(change)
    if change.kind == "promotion":
        return f"{what}{where} raises {' and '.join(dict.fromkeys(fact.given))} to {now}"
    if change.kind == "cast":
        return f"{what}{where} is a new cast, {was} to {now}"
    if change.kind == "autocast":
        if was and fact.cast:
            return f"autocast has another dtype, {now} instead of {was}, first at {what}{where}"
        return f"autocast is {'on' if fact.autocast else 'off'} now, first at {what}{where}"
    if change.kind == "data":
        return f"{what}{where} reads {now}, not {was} as before"
    if change.kind == "magnitude":
        return f"{what}{where} reaches {now} in {fact.gave}, {was} before"
    if change.kind == "nonfinite":
        return f"{what}{where} {BORN[now]} in {fact.gave} now"
    if change.kind == "gone":
        done = f"cast {fact.given[-1]} to {was}" if fact.cast else f"raised its operands to {was}"
        return f"{what}{where} is gone, which {done}"
    return f"{what}{where} gives {now}, not {was} as before"


def _where(change: Change) -> str:
    if not change.modules or not change.modules[0]:
        return ""
    more = len(change.modules) - 1
    return within(change.modules[0]) + (f" (+{_count(more, 'module')})" if more else "")


def _below(change: Change) -> Iterator[str]:
    """What followed from it, folded by the dtypes before and after."""
    groups: dict[tuple[str, str], list[Moved]] = {}
    for moved in change.followed:
        groups.setdefault((moved.was, moved.now), []).append(moved)
    for (was, now), group in groups.items():
        named = list(dict.fromkeys(f"{shorten(one.what, 30)}{within(one.module)}" for one in group))
        yield f"{_count(len(named), 'operator')} followed, {was} to {now}: {_some(named)}"
    outputs: dict[tuple[str, str], list[str]] = {}
    for moved in change.outputs:
        outputs.setdefault((moved.was, moved.now), []).append(moved.what)
    for (was, now), modules in outputs.items():
        few = len(modules) == 1
        yield f"the output{'s' * (not few)} of {_some(modules)} {'is' if few else 'are'} {now}, not {was} as before"


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST
    return f"{', '.join(names[:MOST])} and {more} more" if more > 0 else listed(names)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
