"""What a long trace keeps in memory: resident bytes beyond those of the untraced run, as steps go by.

    python tests/benchmarks/trace_memory.py [--steps N] [--bar MB]

A small model is trained in bfloat16 autocast, with a batch of another size, an overflow and an invalid value now and
then, so that all kinds of state have occasion to grow. Exit code 1 if the bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn as nn

import dtlint

PAGE = os.sysconf("SC_PAGE_SIZE")


def resident() -> float:
    """MB in memory now; Linux tells."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def training_step() -> Callable[[int], None]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(16, 16)

    def step(number: int) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = model(data[: 1 + number % 16]).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        half = torch.full((2,), 6e4 if number % 3 else float("nan")).half()  # a value that goes nowhere
        (half * (number % 7 - 3)).sum()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--bar", type=float, default=50, help="MB")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    step = training_step()
    for number in range(200):
        step(number)
    before = grown = resident()
    with dtlint.trace() as trace:
        for number in range(1, arguments.steps + 1):
            step(number)
            if number & (number - 1) == 0 or number == arguments.steps:
                grown = resident() - before
                print(f"{number:>9,} steps: {grown:6.1f} MB beyond the model", flush=True)
        record = trace.record
        print(f"{len(record.entries)} entries, {len(record.events)} events, {len(record.places)} places")
    sys.exit(grown > arguments.bar)


if __name__ == "__main__":
    main()
