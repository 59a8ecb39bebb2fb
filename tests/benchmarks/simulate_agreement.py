"""Compares the simulation of CUDA with torch's own kernels of CUDA's autocast, over the whole operator database.

    python tests/benchmarks/simulate_agreement.py [--samples N] [--device]

With --device also with the real device of this machine. Exits with 1 if any result dtype differs. Needs expecttest.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "trace"))

from agreement import KINDS, by_simulation, by_torch, compare, on_device, questions


def main() -> int:
    """Compare, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=5, help="of each operator")
    parser.add_argument("--device", action="store_true", help="compare with the real CUDA device too")
    options = parser.parse_args()
    torch.manual_seed(0)
    asked = list(questions(options.samples, tuple(KINDS)))
    others = {"torch's compiled autocast": by_torch(asked)}
    if options.device:
        others["the device"] = on_device(asked)
    simulated = by_simulation(asked)
    code = 0
    for name, other in others.items():
        result = compare(asked, simulated, other)
        operators = len({q.op.name for q in asked})
        print(f"{name}: {len(asked):,} questions about {operators} operators")
        print(f"  same {result.same:,}; both refuse {result.both_refuse}; differ {len(result.differ)}")
        print(f"  not answered by {name} {len(result.unasked)}; without a kernel on the CPU {len(result.refused)}")
        for line in result.differ:
            print(f"  DIFFERS {line}")
        code |= bool(result.differ)
    return code


if __name__ == "__main__":
    sys.exit(main())
