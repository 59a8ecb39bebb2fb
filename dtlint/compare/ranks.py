"""Two distributed runs, compared rank by rank: a rank has batches of its own, and is compared with the same rank alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.compare.comparison import Compared, Comparison, Finding, Module, compare
from dtlint.compare.run import CannotCompare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dtlint.compare.run import Line
    from dtlint.trace.record import TraceRecord

__all__ = ["compare_ranks"]


def compare_ranks(
    first: Mapping[int, TraceRecord], second: Mapping[int, TraceRecord], names: tuple[str, str]
) -> Comparison:
    """Compare the ranks that both runs have; given by their numbers.

    Raises:
        CannotCompare: there is none, or a rank cannot be compared.
    """
    ranks = sorted(first.keys() & second.keys())
    if not ranks:
        raise CannotCompare(f"{names[0]} and {names[1]} share no rank; trace both runs with as many processes")
    found = []
    for rank in ranks:
        try:
            found.append(compare(first[rank], second[rank], names))
        except CannotCompare as error:
            raise CannotCompare(f"on rank {rank}, {error}" if len(ranks) > 1 else str(error)) from None
    return _together(ranks, found) if len(ranks) > 1 else found[0]


def _together(ranks: Sequence[int], each: Sequence[Comparison]) -> Comparison:
    into = replace(
        each[0],
        ranks=list(ranks),
        steps=sorted({step for one in each for step in one.steps}),
        findings=_findings(ranks, each),
        modules=_modules(each),
        honest={},
        sites=_sites(each),
        compared=sum(one.compared for one in each),
        equal=sum(one.equal for one in each),
        not_judged=sum(one.not_judged for one in each),
        skipped=sum(one.skipped for one in each),
    )
    unmatched: dict[tuple[str, str, int], tuple[str, Line]] = {}
    for one in each:
        for dtypes, differences in one.honest.items():
            into.honest.setdefault(dtypes, []).extend(differences)
        for name, line in one.unmatched:
            if line.place is not None:
                unmatched.setdefault((name, line.place.file, line.place.line), (name, line))
    into.unmatched = list(unmatched.values())
    return into


def _findings(ranks: Sequence[int], each: Sequence[Comparison]) -> list[Finding]:
    """Those of one line are one, that which came first."""
    found: dict[tuple[str, int, bool], Finding] = {}
    for rank, one in zip(ranks, each, strict=True):
        for finding in one.findings:
            key = finding.place.file, finding.place.line, finding.backward
            known = found.get(key)
            if known is None:
                found[key] = replace(finding, ranks=(rank,))
            else:
                earlier = min(known, finding, key=_order)
                found[key] = replace(earlier, times=known.times + finding.times, ranks=(*known.ranks, rank))
    return sorted(found.values(), key=_order)


def _order(finding: Finding) -> tuple[int, int]:
    return finding.step, finding.number


def _sites(each: Sequence[Comparison]) -> list[Compared]:
    found: dict[tuple[object, ...], Compared] = {}
    for one in each:
        for site in one.sites:
            known = found.setdefault(site.key, site)
            if known is not site:
                known.join(site)
    return list(found.values())


def _modules(each: Sequence[Comparison]) -> list[Module]:
    """What each adds, as the root of the mean of the squares over the ranks."""
    found: dict[str, Module] = {}
    for one in each:
        for module in one.modules:
            known = found.setdefault(module.path, Module(module.path))
            known.squares += module.squares / len(each)
            if module.worst > known.worst:
                known.worst, known.place, known.op = module.worst, module.place, module.op
    return sorted(found.values(), key=lambda module: -module.squares)
