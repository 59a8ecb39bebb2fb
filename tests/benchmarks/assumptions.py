"""How much of what breaks under an assumption is reported, and how much of what is reported is true: findings against runs.

    python tests/benchmarks/assumptions.py PACKAGE [PACKAGE ...] [--assume half,bfloat16,double] [--tests PATH ...]

Each PACKAGE is imported with its modules. While the examples in its docstrings, the tests at PATH and plain attempts with small
tensors run in float32, the calls of its public functions and modules are copied; each is then made again as the assumption has
it, with the same values (`working_calls.py`, `replay.py`). What does not work in float32 alone is left out, and so is what
happens in float32 as well. The files with lines that ran are checked under the assumption, and the findings on these lines are
held against what happened, both ways:

- A line that raised, left the dtype or overflowed is *reported* if a finding of that kind stands on it, or on a line of a call
  that led there. Values are those of the float32 call, and zeros; for uint8 those of an image, and the float32 call that it is
  held against is given the same.
- A finding on a line that ran is *true* if that line, or one that it led to, did what the finding says in some run. Those of
  range are also asked of inputs that are larger, by each of --scales.
- Findings of range may stand up to 10 lines before: an epsilon is lost in one line, and divided by in another.
- What no value here shows need not be false: --wrong prints it, to be read.
- The CPU lacks kernels that CUDA has, and dtlint does not say of an unknown device that it does. Where torch's operator database
  (it needs the package expecttest) says that CUDA takes the dtype, the line counts apart, as raising on the CPU alone.

Everything is seeded, runs on one thread and offline. pytest is needed for --tests alone.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

from replay import Happening, Line, replayed
from working_calls import Call, gathered, imported

from dtlint.check.run import run
from dtlint.config import Configuration
from dtlint.dtypes.assumption import SINGLE, Assumption, parse_assumption
from dtlint.rule import RuntimeRule, discover

PLAIN_SCALES = (1.0, 0.0)
"""What floating arguments are multiplied by for what has to be reported: 0 shows what keeps a division from it."""
AHEAD = 10
"""Lines behind a report of range in which it counts as seen."""
KINDS = ("raised", "left", "broke")


@dataclass(frozen=True)
class Report:
    """A finding under the assumption."""

    kind: str
    path: str
    first: int
    last: int
    code: str
    message: str

    def covers(self, lines: Iterable[Line], ahead: int = 0) -> bool:
        """Does it stand on one of some lines, or shortly before?"""
        return any(path == self.path and self.first <= line <= self.last + ahead for path, line in lines)


@dataclass
class Seen:
    """What all calls showed under one assumption."""

    ran: set[Line] = field(default_factory=set)
    happened: set[Happening] = field(default_factory=set)
    """With the values that calls had, and with zeros."""
    enlarged: set[Happening] = field(default_factory=set)
    """With larger values."""
    calls: Counter[str] = field(default_factory=Counter)


class Usual:
    """What calls show in float32, asked once for all assumptions."""

    def __init__(self, files: frozenset[str], limit: float) -> None:
        self._files, self._limit = files, limit
        self._known: dict[tuple[int, float, bool], frozenset[tuple[str, Line]] | None] = {}

    def of(self, call: Call, scale: float, as_image: bool) -> frozenset[tuple[str, Line]] | None:
        """What happens anyway, by its kind and its line; None where the call does not work.

        Args:
            as_image: the values are those that uint8 is given.
        """
        key = id(call), scale, as_image
        if key not in self._known:
            notes = replayed(call, SINGLE, scale, self._files, self._limit, as_image)
            works = notes.finished and not any(one.kind == "raised" for one in notes.happened)
            self._known[key] = frozenset((one.kind, one.chain[0]) for one in notes.happened) if works else None
        return self._known[key]


def seen(
    calls: Iterable[Call],
    assumed: Assumption,
    scales: Sequence[float],
    files: frozenset[str],
    limit: float,
    usual: Usual,
) -> Seen:
    """Make all calls again as it is assumed."""
    found = Seen()
    dtype = getattr(torch, assumed.region[1] if assumed.region else assumed.inputs)
    narrow = dtype.itemsize < torch.float32.itemsize
    for call in calls:
        for scale in (*PLAIN_SCALES, *(scales if narrow else ())):  # what is wide overflows as float32 does
            also = usual.of(call, scale, not dtype.is_floating_point)
            if also is None:
                continue
            for variant in assumed.variants:
                notes = replayed(call, variant, scale, files, limit)
                found.calls["finished" if notes.finished else "broken off"] += scale == 1.0
                found.ran |= notes.ran
                new = {one for one in notes.happened if (one.kind, one.chain[0]) not in also}
                (found.happened if scale in PLAIN_SCALES else found.enlarged).update(new)
    return found


def reports(files: Iterable[str], assumed: Assumption) -> tuple[list[Report], list[Report]]:
    """What is found under the assumption alone, and what is found anyway."""
    rules = {code: rule for code, rule in discover().items() if not issubclass(rule, RuntimeRule) and rule.default}
    settings = Configuration(isolated=True, assume=(assumed,)).settings_for
    outcome = run([Path(file) for file in sorted(files)], settings, rules, workers=1)
    found: tuple[list[Report], list[Report]] = ([], [])
    for one in outcome.diagnostics:
        kind = "raised" if "raises" in one.message else "left" if one.code.startswith("DT3") else "broke"
        path, span = str(Path(one.location.path).resolve()), one.location.span
        report = Report(kind, path, span.line, span.end_line, one.code, one.message)
        found[not one.message.startswith("Under ")].append(report)
    return found


@cache
def _cuda_dtypes() -> dict[str, frozenset[torch.dtype]]:
    """What CUDA's kernels take, by the name of the op, `fft_fft2` and `fft2`, as torch's own tests have it."""
    found: dict[str, frozenset[torch.dtype]] = {}
    with suppress(Exception):
        from torch.testing._internal.common_methods_invocations import op_db

        for op in op_db:
            for name in (op.name.split(".")[-1], op.name.replace(".", "_"), *(alias.name for alias in op.aliases)):
                found[name] = found.get(name, frozenset()) | frozenset(op.dtypesIfCUDA)
    return found


def of_cpu_alone(one: Happening, dtype: torch.dtype) -> bool:
    """Does the line raise for want of a kernel that CUDA has?"""
    if not any(word in one.said for word in ("not implemented for", "ot supported", "nsupported", "CPU", "_cpu")):
        return False
    return dtype in _cuda_dtypes().get(one.op.strip("_"), frozenset())


@dataclass
class Tally:
    """How far findings and runs agree, for one kind."""

    lines: dict[Line, Happening]
    told: set[Line]
    judged: list[Report]
    true: list[Report]
    cpu: int

    def __str__(self) -> str:
        return (
            f"{len(self.lines):5} lines, {len(self.told):5} reported ({_share(len(self.told), len(self.lines))});"
            f" {len(self.judged):4} reports, {len(self.true):4} true ({_share(len(self.true), len(self.judged))})"
            + (f"; {self.cpu} lines more on the CPU alone" if self.cpu else "")
        )


def tally(kind: str, shown: Seen, found: Sequence[Report], usual: Sequence[Report], dtype: torch.dtype) -> Tally:
    """Hold the findings of one kind against what happened."""
    happened = [one for one in shown.happened if one.kind == kind]
    everywhere = [one for one in happened if kind != "raised" or not of_cpu_alone(one, dtype)]
    cpu = {one.chain[0] for one in happened} - {one.chain[0] for one in everywhere}
    said = [one for one in (*found, *usual) if one.kind == kind]
    ahead = AHEAD if kind == "broke" else 0
    told = {one.chain[0] for one in everywhere if any(report.covers(one.chain, ahead) for report in said)}
    judged = [one for one in found if one.kind == kind and one.covers(shown.ran)]
    shown_by = {"broke": ("broke", "lost", "rounded"), "left": ("left", "passed")}.get(kind, (kind,))
    proofs = [one for one in shown.happened | shown.enlarged if one.kind in shown_by]
    true = [one for one in judged if any(one.covers(proof.chain, ahead) for proof in proofs)]
    return Tally({one.chain[0]: one for one in everywhere}, told, judged, true, len(cpu))


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f}%" if whole else "-"


def go_offline() -> None:
    """Let nothing that is constructed fetch weights: whatever asks for an address is refused, and waits for no other attempt."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("this benchmark is offline")

    os.environ["HF_HUB_OFFLINE"] = "1"
    socket.getaddrinfo = refuse
    socket.socket.connect = refuse  # type: ignore[method-assign]
    time.sleep = lambda _: None


def main() -> None:
    """Run, check, and print how far they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument(
        "--assume", default="half,bfloat16,double", help="assumptions, by commas (default: %(default)s)"
    )
    parser.add_argument("--tests", nargs="*", default=[], type=Path, help="test files and folders of the packages")
    parser.add_argument(
        "--scales", default="300,20000", help="larger values that prove findings of range (%(default)s)"
    )
    parser.add_argument("--limit", default=5.0, type=float, help="seconds for one call, example or test (%(default)s)")
    parser.add_argument("--only", default="", help="files whose path holds this alone")
    parser.add_argument("--misses", action="store_true", help="print what happened and is not reported")
    parser.add_argument(
        "--wrong", action="store_true", help="print what is reported of lines that ran, and did not happen"
    )
    options = parser.parse_args()
    assumptions = [parse_assumption(one) for one in options.assume.split(",")]
    scales = [float(one) for one in options.scales.split(",") if one]
    tests = [one.resolve() for one in options.tests]
    warnings.simplefilter("ignore")
    go_offline()
    os.environ["PYTORCH_JIT"] = "0"
    torch.set_num_threads(1)
    os.chdir(tempfile.mkdtemp())
    started = time.monotonic()
    modules = [module for package in options.packages for module in imported(package)]
    modules = [one for one in modules if options.only in (getattr(one, "__file__", None) or "")]
    calls = gathered(modules, tests, options.limit)
    # A file may be imported under the path of a link: code knows the path, and findings stand at what it leads to.
    files = frozenset(one.__file__ for one in modules if one.__file__)
    print(
        f"{' '.join(options.packages)}: {len(modules)} modules, {len(calls)} calls, {time.monotonic() - started:.0f} s"
    )
    without = Usual(files, options.limit)
    for assumed in assumptions:
        dtype = getattr(torch, assumed.region[1] if assumed.region else assumed.inputs)
        shown = seen(calls, assumed, scales, files, options.limit, without)
        found, usual = reports({path for path, _ in shown.ran}, assumed)
        print(f"{assumed.name}: {dict(shown.calls)}, {len(shown.ran)} lines ran, {time.monotonic() - started:.0f} s")
        for kind in KINDS:
            counted = tally(kind, shown, found, usual, dtype)
            print(f"  {kind:7}{counted}", flush=True)
            for line, one in sorted(counted.lines.items()) if options.misses else ():
                if line not in counted.told:
                    print(f"    missed: {line[0]}:{line[1]} {one.op} {one.said.splitlines()[0] if one.said else ''}")
            for report in counted.judged if options.wrong else ():
                if report not in counted.true:
                    print(f"    not seen: {report.path}:{report.first} {report.code} {report.message}")


if __name__ == "__main__":
    main()
