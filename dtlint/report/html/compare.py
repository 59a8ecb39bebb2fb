"""A comparison of two runs as the page has it: where it is more than rounding, beside the source lines of both records."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dtlint.report.compare_text import what
from dtlint.report.html.findings import frame_of
from dtlint.report.legible import legible
from dtlint.trace.schema import NO_FILE
from dtlint.trace.words import in_package, listed, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.compare import Comparison, Finding
    from dtlint.compare.comparison import Compared, Module
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Place

__all__ = ["comparison_of"]

Json = dict[str, object]

Sources = dict[str, dict[str, str]]
"""Lines of files, by their numbers."""

MOST_SITES = 2000
"""Those that are left out are the nearest to equal, and counted."""

MOST_BEYOND = 500

MOST_ALONE = 500


def comparison_of(c: Comparison, first: Sequence[TraceRecord], second: Sequence[TraceRecord]) -> Json:
    """All of the page's data; of the records of both runs, the lines of source are taken."""
    sources = _sources(first), _sources(second)
    one, other = (legible(name) for name in c.names)
    ordered = sorted(c.sites, key=lambda site: -site.share)
    return {
        "title": f"{one} and {other}",
        "names": [one, other],
        "precision": [c.precision.one, c.precision.other],
        "facts": _facts(c, first, second),
        "compared": c.compared,
        "beyond": [_finding(finding, c, sources) for finding in c.findings[:MOST_BEYOND]],
        "modules": [_module(module, sources[1]) for module in c.modules if module.place is not None],
        "sites": [_site(site, sources) for site in ordered[:MOST_SITES]],
        "losses": [[step, _finite(a), _finite(b)] for step, a, b in c.losses],
        "explained": [
            [*dtypes, len(found), sorted(found)[len(found) // 2], max(found)] for dtypes, found in c.honest.items()
        ],
        "alone": [
            {
                "name": legible(name),
                "op": line.op,
                "text": _text(line.place),
                "place": _at(line.place),
                "module": line.module,
                "frame": frame_of(sources[c.names.index(name)], line.place),
            }
            for name, line in c.unmatched[:MOST_ALONE]
            if line.place is not None
        ],
        "not_judged": c.not_judged,
        "left_out": [len(c.findings[MOST_BEYOND:]), len(ordered[MOST_SITES:]), len(c.unmatched[MOST_ALONE:])],
    }


def _facts(c: Comparison, first: Sequence[TraceRecord], second: Sequence[TraceRecord]) -> list[list[object]]:
    versions = [record.torch.partition("+")[0] for record in (first[0], second[0])]
    facts: list[tuple[str, object]] = [
        (legible(c.names[0]), c.precision.one),
        (legible(c.names[1]), c.precision.other),
        ("results compared", c.compared),
        ("that do not differ", c.equal),
        ("casts and copies skipped", c.skipped or None),
        ("steps", listed([str(step + 1) for step in c.steps])),
        ("ranks", listed([str(rank) for rank in c.ranks]) if c.ranks else None),
        ("torch", listed(list(dict.fromkeys(versions)))),
    ]
    return [[name, value] for name, value in facts if value is not None]


def _finding(finding: Finding, c: Comparison, sources: tuple[Sources, Sources]) -> Json:
    ranks = finding.ranks if len(finding.ranks) < len(c.ranks) else ()
    return {
        "message": legible(what(finding)),
        "cause": legible(finding.cause),
        "place": _at(finding.place),
        "counterpart": _at(finding.counterpart),
        "module": finding.place.module,
        "op": finding.op,
        "phase": "backward" if finding.backward else "forward",
        "step": finding.step,
        "ranks": list(ranks),
        "dtypes": list(finding.dtypes),
        "difference": _finite(finding.difference),
        "explained": _finite(finding.explained),
        "incoming": _finite(finding.incoming),
        "times": finding.times,
        "frames": _frames(finding.counterpart, finding.place, sources),
    }


def _site(site: Compared, sources: tuple[Sources, Sources]) -> Json:
    return {
        "op": site.op,
        "phase": "backward" if site.backward else "forward",
        "text": _text(site.place),
        "place": _at(site.place),
        "modules": site.modules[:3],
        "more": max(len(site.modules) - 3, 0),
        "dtypes": list(site.dtypes),
        "results": site.results,
        "equal": site.equal,
        "beyond": site.beyond,
        "difference": _finite(site.difference),
        "explained": _finite(site.explained),
        "incoming": _finite(site.incoming),
        "frames": _frames(site.counterpart, site.place, sources),
    }


def _module(module: Module, sources: Sources) -> Json:
    return {
        "module": module.path,
        "added": module.added,
        "op": module.op,
        "text": _text(module.place),
        "place": _at(module.place),
        "frame": frame_of(sources, module.place),
    }


def _frames(one: Place, other: Place, sources: tuple[Sources, Sources]) -> list[object]:
    """The lines of both records; of the first none where they are the same."""
    mine, its = frame_of(sources[0], one), frame_of(sources[1], other)
    return [[] if mine == its else mine, its]


def _sources(records: Sequence[TraceRecord]) -> Sources:
    """Of all ranks: they may have come to different lines."""
    found: Sources = {}
    for record in records:
        for file, lines in record.sources.items():
            found.setdefault(file, {}).update(lines)
    return found


def _text(at: Place | None) -> str:
    return legible(shorten(at.expression, 60).strip("`")) if at is not None else ""


def _at(at: Place | None) -> str:
    if at is None:
        return ""
    return "autograd" if at.file == NO_FILE else f"{legible(in_package(at.file))}:{at.line}"


def _finite(number: float) -> float | None:
    """JSON has no other numbers."""
    return number if math.isfinite(number) else None
