"""Does a traced DDP run end? Two ranks over gloo, again and again; a hang shows as a run that is over its time.

    python tests/benchmarks/trace_ddp.py [--runs N] [--seconds S]

Exit code 1 if a run hung or failed, or if the ranks disagree on the weights.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = """
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
print(sum(p.detach().double().sum() for p in model.parameters()).item())
"""
"""It leaves its process group to the end of the interpreter, which is where runs used to hang."""


def run(directory: Path, seconds: float) -> str:
    """What went wrong, or ""."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "dtlint", "trace", "--quiet", "--output", "trace.json", "ddp.py"]
    settings = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            command, cwd=directory, env={**os.environ, **settings, "RANK": str(rank)}, stdout=-1, text=True
        )
        for rank in range(2)
    ]
    end = time.monotonic() + seconds
    try:
        out = {process.communicate(timeout=max(end - time.monotonic(), 0.1))[0] for process in ranks}
    except subprocess.TimeoutExpired:
        return f"hung for {seconds:.0f} s"
    finally:
        for process in ranks:
            process.kill()
    codes = [process.returncode for process in ranks]
    if codes != [0, 0]:
        return f"exit codes {codes}"
    return "" if len(out) == 1 else f"the ranks disagree: {out}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120)
    arguments = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        Path(name, "ddp.py").write_text(SCRIPT, encoding="utf-8")
        for number in range(1, arguments.runs + 1):
            what = run(Path(name), arguments.seconds)
            bad += bool(what)
            if what:
                print(f"run {number}: {what}", flush=True)
    print(f"{arguments.runs - bad} of {arguments.runs} runs ended as they should")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
