"""A comparison of two runs as JSON: one object, whose `findings` are in the order in which they ran.

Steps, lines and columns count from 1. Differences are relative; one that is infinite is the text `inf`.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from dtlint.compare import Comparison, Finding
    from dtlint.trace.schema import Place

__all__ = ["write_json"]


def write_json(comparison: Comparison, stream: TextIO) -> None:
    """Write the object, and a line end."""
    c = comparison
    made = {
        "first": {"record": c.names[0], "precision": c.precision.one},
        "second": {"record": c.names[1], "precision": c.precision.other},
        "steps": [step + 1 for step in c.steps],
        "ranks": c.ranks,
        "compared": c.compared,
        "equal": c.equal,
        "not_judged": c.not_judged,
        "casts_and_copies": c.skipped,
        "losses": [{"step": step + 1, "first": _number(a), "second": _number(b)} for step, a, b in c.losses],
        "findings": [_finding(finding) for finding in c.findings],
        "modules": [
            {"module": m.path, "added": m.added, "most": {**_place(m.place), "op": m.op} if m.place else None}
            for m in c.modules
        ],
        "sites": [
            {
                **_place(site.place),
                "op": site.op,
                "backward": site.backward,
                "dtypes": list(site.dtypes),
                "modules": site.modules,
                "results": site.results,
                "equal": site.equal,
                "beyond": site.beyond,
                "difference": _number(site.difference),
                "explained": _number(site.explained),
                "incoming": _number(site.incoming),
                "counterpart": _place(site.counterpart),
            }
            for site in c.sites
        ],
        "explained": [
            {
                "dtypes": list(dtypes),
                "results": len(found),
                "median": sorted(found)[len(found) // 2],
                "most": max(found),
            }
            for dtypes, found in c.honest.items()
        ],
        "unmatched": [
            {"record": name, "op": line.op, **(_place(line.place) if line.place else {})} for name, line in c.unmatched
        ],
    }
    json.dump(made, stream, indent=2, allow_nan=False)
    stream.write("\n")


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        **_place(finding.place),
        "op": finding.op,
        "backward": finding.backward,
        "step": finding.step + 1,
        "dtypes": list(finding.dtypes),
        "difference": _number(finding.difference),
        "explained": _number(finding.explained),
        "incoming": _number(finding.incoming),
        "ratio": _number(finding.ratio),
        "cause": finding.cause or None,
        "times": finding.times,
        "ranks": list(finding.ranks),
        "counterpart": _place(finding.counterpart),
    }


def _place(place: Place) -> dict[str, Any]:
    return {
        "filename": place.file,
        "line": place.line,
        "column": place.column + 1,
        "expression": " ".join(place.expression.split()),
        "module": place.module,
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)
