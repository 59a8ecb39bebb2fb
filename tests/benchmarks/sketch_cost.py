"""What `--sketch` costs: CPU time of a training step that is sketched over that of one that is only traced; and bytes.

    python tests/benchmarks/sketch_cost.py [--rounds N] [--seconds S] [--models NAME,...] [--dtypes NAME,...]

Every step is sketched here; a run sketches the first four, and from there on two in each doubling. Rounds interleave the
settings, and the ratio is the median over rounds. Bytes are those that the sketches add to the record, by sketch and by
site and step: a site that runs twice in a step has two sketches.

The bars: at most 1.30 times the trace, and 200 bytes a site and step. A row that misses one is marked.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
import warnings

import torch
from trace_overhead import DTYPES, MODELS, timed, training_step

from dtlint.trace.export import record_of
from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options
from dtlint.trace.store import encoded

MOST_TIME, MOST_BYTES = 1.30, 200


def measure(model: str, dtype: str, rounds: int, seconds: float) -> tuple[float, float, float, float, int]:
    """Traced, in ms; sketched over traced; bytes a sketch; bytes a site and step; sketches a step."""
    step = training_step(model, DTYPES[dtype])
    plain, sketched = Tracer(Options()), Tracer(Options(sketch=True))
    sketches = sketched.sketches
    assert sketches is not None
    times: dict[Tracer, list[float]] = {plain: [], sketched: []}
    gc.collect()
    gc.freeze()
    end = time.monotonic() + seconds
    for number in range(rounds):
        for tracer, took in times.items():
            sketches._began, sketches.steps = 0, sketches.steps[-2:]
            with tracer:
                step()
                took.append(timed(step))
        if number >= 2 and time.monotonic() > end:
            break
    gc.unfreeze()
    nbytes, lines, sites = size(sketched)
    ratio = statistics.median(one / other for one, other in zip(times[sketched], times[plain], strict=True))
    return 1e3 * statistics.median(times[plain]), ratio, nbytes / lines, nbytes / sites, lines


def size(tracer: Tracer) -> tuple[int, int, int]:
    """Of a whole step: bytes in the record, sketches, and sites at which they were made."""
    record = record_of(tracer, ["test"], 0)
    assert record.sketches is not None
    record.sketches.steps = [max(record.sketches.steps, key=lambda step: len(step.lines))]
    lines = record.sketches.steps[0].lines.split(";")
    sites = {line.split()[0] for line in lines}
    return len(json.dumps(encoded(record)["sketches"], separators=(",", ":"))), len(lines), len(sites)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=60, help="per row, from three rounds on")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'':>16} | traced, ms | sketched / traced | bytes a sketch | a site and step | sketches a step")
    for model in arguments.models.split(","):
        for dtype in arguments.dtypes.split(","):
            traced, ratio, each, site, lines = measure(model, dtype, arguments.rounds, arguments.seconds)
            cells = f"{ratio:.2f}{' !' if ratio > MOST_TIME else ''}", f"{site:.0f}{' !' if site > MOST_BYTES else ''}"
            print(
                f"{model + ' ' + dtype:>16} | {traced:10.1f} | {cells[0]:>17} | {each:14.0f} | {cells[1]:>15} | {lines}"
            )


if __name__ == "__main__":
    main()
