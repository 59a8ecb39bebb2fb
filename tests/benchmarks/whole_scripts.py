"""How much `dtlint infer` knows of whole scripts, and whether it is true: its claims against a run of each.

    python tests/benchmarks/whole_scripts.py SCRIPT [SCRIPT ...] [--packages NAME,...] [--wrong] [--seconds 300]

Each SCRIPT is run once in a process of its own, offline and on one thread, with the dtype of every expression recorded
(`recorded.py`): its own, and those of the packages that it imports itself, torch and NumPy aside, or of --packages. Then it is
read without a cache. For each script: the expressions that were tensors; the share of which one dtype is claimed, rightly; that
of which several are; the claims that are wrong, listed with --wrong; and the CPU seconds of reading. The second line of figures
is that of the script's own expressions, which is what its author sees. Behind them the median and the lower quartile.

A script that does not run is left out, and said. Packages whose files cannot be rewritten are named with --packages for others.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

NO_PACKAGES = frozenset({"torch", "numpy", "dtlint", *sys.stdlib_module_names})


@dataclass
class Score:
    """What is claimed of the expressions that were tensors."""

    ran: int = 0
    exact: int = 0
    several: int = 0
    wrong: int = 0

    def __str__(self) -> str:
        return f"{self.ran:6} ran  {self.share:6.1%} exact  {self.several / max(self.ran, 1):6.1%} several  {self.wrong:4} wrong"

    @property
    def share(self) -> float:
        """Of which one dtype is claimed, rightly."""
        return self.exact / max(self.ran, 1)


def main() -> None:
    if sys.argv[1:2] == ["--record"]:
        record(*sys.argv[2:5])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="+", type=Path)
    parser.add_argument("--packages", default="")
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--seconds", type=float, default=300)
    options = parser.parse_args()
    every: list[Score] = []
    own: list[Score] = []
    for script in options.scripts:
        packages = options.packages.split(",") if options.packages else sorted(imported(script))
        scores = measured(script.resolve(), packages, options.seconds, tells_wrong=options.wrong)
        if scores is not None:
            every.append(scores[0])
            own.append(scores[1])
    for title, found in (("all", every), ("their own", own)):
        if len(found) > 1:
            pooled = sum(one.exact for one in found) / max(sum(one.ran for one in found), 1)
            shares = [one.share for one in found]
            quartile = statistics.quantiles(shares, n=4)[0]
            print(
                f"{title}: {len(found)} scripts, pooled {pooled:.1%}, median {statistics.median(shares):.1%}, lower quartile "
                f"{quartile:.1%}, wrong {sum(one.wrong for one in found)}"
            )


def imported(script: Path) -> Iterable[str]:
    """The packages that a script names in its imports."""
    for node in ast.walk(ast.parse(script.read_bytes())):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        yield from {name.partition(".")[0] for name in names} - NO_PACKAGES


def measured(script: Path, packages: Sequence[str], seconds: float, *, tells_wrong: bool) -> tuple[Score, Score] | None:
    """The score of all expressions, and of the script's own; None where it does not run."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "ran.json"
        command = [sys.executable, __file__, "--record", str(out), ",".join(packages), str(script)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "WANDB_MODE": "disabled"}
        try:
            done = subprocess.run(
                command, env=environment, cwd=folder, timeout=seconds, capture_output=True, text=True, check=False
            )
        except subprocess.TimeoutExpired:
            print(f"{script.name}: left out, it runs for more than {seconds:.0f} s")
            return None
        if done.returncode or not out.exists():
            print(f"{script.name}: left out, it does not run: {(done.stderr.strip() or '?').splitlines()[-1]}")
            return None
        ran: dict[str, list[str]] = json.loads(out.read_text(encoding="utf-8"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "dtlint", "infer", "--no-cache", "--output-format", "json", str(script)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    claimed = {
        f"{Path(one['path']).resolve()}:{one['line']}:{one['column']}:{one['end_line']}:{one['end_column']}": one[
            "dtypes"
        ]
        for one in json.loads(told)
        if one["dtypes"]
    }
    every, own = Score(), Score()
    for place, dtypes in ran.items():
        for score in (every, own) if place.startswith(f"{script}:") else (every,):
            score.ran += 1
            known = set(claimed.get(place, ()))
            score.exact += len(known) == 1 and set(dtypes) == known
            score.several += len(known) > 1 and set(dtypes) <= known
            score.wrong += bool(known) and not set(dtypes) <= known
        if tells_wrong and claimed.get(place) and not set(dtypes) <= set(claimed[place]):
            print(f"  {place}: {sorted(dtypes)} ran, claimed was {claimed[place]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{script.name} ({', '.join(packages)}), {cpu:.1f} s\n  {every}\n  {own}", flush=True)
    return every, own


def record(out: str, packages: str, script: str) -> None:
    """Run a script, and write the dtypes of its expressions."""
    import torch
    from recorded import Recorder

    recorder = Recorder([one for one in packages.split(",") if one])
    sys.meta_path.insert(0, recorder)
    sys.argv, sys.path[0] = [script], str(Path(script).parent)
    names = {"__name__": "__main__", "__file__": script, "__see_dtype__": recorder.see}
    code = compile(recorder.rewritten(Path(script).read_bytes(), script), script, "exec", dont_inherit=True)
    with recorder.noting_all(torch.float32):
        exec(code, names)
    ran = {":".join(map(str, place)): sorted(dtypes) for place, dtypes in recorder.dtypes.items()}
    Path(out).write_text(json.dumps(ran), encoding="utf-8")


if __name__ == "__main__":
    main()
