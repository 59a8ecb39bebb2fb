"""A comparison of two runs as one screen of text: where it is more than rounding first, then what is honest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TextIO

from dtlint.report.colour import write_lines
from dtlint.report.legible import legible
from dtlint.trace.words import in_package, listed, shorten, within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.compare import Comparison, Finding
    from dtlint.report.frame import Style
    from dtlint.trace.schema import Place

__all__ = ["what", "write_comparison"]

MOST = 4
"""Findings, modules and lines that are told; the rest is counted."""

LEAST_ADDED = 0.1
"""A share of what the module adds that adds most, below which others are not told."""

Line = tuple[str, "Style"]


def write_comparison(comparison: Comparison, stream: TextIO) -> None:
    """Write the screen. Coloured on a terminal that wants it."""
    write_lines(([line] for line in _screen(comparison)), stream)


def _screen(c: Comparison) -> Iterator[Line]:
    one, other = (legible(name) for name in c.names)
    steps = [str(step + 1) for step in c.steps]
    of = f"step{'s' * (len(steps) != 1)} {listed(steps)}"
    yield f"dtlint compare: {one} ({c.precision.one}) and {other} ({c.precision.other})", "strong"
    ranks = f" on ranks {listed([str(rank) for rank in c.ranks])}" if c.ranks else ""
    yield f"{c.compared:,} results compared, of {of}{ranks}; {c.equal:,} do not differ", "plain"
    yield from _losses(c)
    yield from _findings(c)
    yield from _honest(c)
    yield from _modules(c)
    yield from _left_out(c)


def _losses(c: Comparison) -> Iterator[Line]:
    told = [f"{one:.6g} and {other:.6g} in step {step + 1}{_apart(one, other)}" for step, one, other in c.losses]
    if told:
        yield (
            f"Losses{f' on rank {c.ranks[0]}' if c.ranks else ''}: {', '.join(told if len(told) < MOST else (told[0], told[-1]))}",
            "plain",
        )


def _apart(one: float, other: float) -> str:
    largest = max(abs(one), abs(other))
    if one == other:
        return ", the same"
    if not math.isfinite(one - other):
        return ""
    return f" ({percent(abs(one - other) / largest)} apart)"


def _findings(c: Comparison) -> Iterator[Line]:
    if not c.findings:
        yield "Beyond rounding: nothing", "strong"
        return
    yield "Beyond rounding, in the order in which it ran:", "strong"
    for finding in c.findings[:MOST]:
        yield f"  {_at(finding.place)}{_times(finding)}{_ranks(c, finding)}", "error"
        yield f"    {legible(what(finding))}", "plain"
        if finding.cause:
            yield f"    {legible(finding.cause)}", "note"
    more = len(c.findings) - MOST
    if more > 0:
        yield f"  and {more} more line{'s' * (more != 1)}: `--output-format json` lists all", "plain"


def what(finding: Finding) -> str:
    """A sentence: the operator, and by how much it differs."""
    expression = shorten(finding.place.expression)
    subject = f"the backward of {expression or 'an operator'}" if finding.backward else expression
    dtypes = " and ".join(dict.fromkeys(finding.dtypes))
    operator = f"{subject} ({finding.op}, {dtypes})" if subject else f"{finding.op} ({dtypes})"
    where = f"{operator}{within(finding.place.module)}"
    if math.isinf(finding.difference):
        return f"{where} is finite in one run only, in step {finding.step + 1}"
    larger = f", {finding.ratio:.3g} times as large" if abs(finding.ratio - 1) > finding.explained else ""
    return (
        f"{where} differs by {percent(finding.difference)} in step {finding.step + 1}{larger};"
        f" rounding explains {percent(finding.explained)}"
    )


def _times(finding: Finding) -> str:
    return f" ({finding.times:,} times)" if finding.times > 1 else ""


def _ranks(c: Comparison, finding: Finding) -> str:
    """`, on rank 1 alone`, where it is not on all."""
    if len(finding.ranks) == len(c.ranks):
        return ""
    return f", on rank{'s' * (len(finding.ranks) != 1)} {listed([str(rank) for rank in finding.ranks])} alone"


def _honest(c: Comparison) -> Iterator[Line]:
    told = []
    for dtypes, found in sorted(c.honest.items(), key=lambda item: -len(item[1])):
        differing = sorted(difference for difference in found if difference)
        if differing and dtypes[0].startswith(("float", "bfloat")):
            middle = percent(differing[len(differing) // 2])
            told.append(f"{len(found):,} in {' and '.join(dict.fromkeys(dtypes))}, by {middle} in the middle")
    if told:
        yield f"Explained by rounding: {'; '.join(told[:MOST])}", "plain"


def _modules(c: Comparison) -> Iterator[Line]:
    most = c.modules[0].added if c.modules else 0.0
    told = [module for module in c.modules if module.place is not None and module.added > LEAST_ADDED * most]
    if not told:
        return
    yield "What modules add in the forward, most first:", "strong"
    for module in told[:MOST]:
        assert module.place is not None
        name = legible(within(module.path)) or " outside modules"
        yield f"  {percent(module.added)}{name}, most at {_at(module.place)} ({module.op})", "plain"


def _left_out(c: Comparison) -> Iterator[Line]:
    told = []
    if c.not_judged:
        told.append(f"{c.not_judged:,} results of values that an index picked, which was computed")
    for name in c.names:
        lines = [line for of, line in c.unmatched if of == name and line.place is not None]
        if lines:
            first = ", ".join(f"{line.op} at {_at(line.place)}" for line in lines[: MOST - 1] if line.place is not None)
            more = f" and {len(lines) - MOST + 1} more lines" if len(lines) >= MOST else ""
            told.append(f"what only {legible(name)} runs, {first}{more}")
    if told:
        yield f"Not compared: {'; '.join(told)}", "plain"


def _at(place: Place) -> str:
    return f"{legible(in_package(place.file))}:{place.line}"


def percent(share: float) -> str:
    """`0.86%`, `1.2e-05%`."""
    return f"{100 * share:.2g}%" if share < 0.995 else f"{100 * share:.0f}%"
