"""How much `dtlint infer --assume` knows of library files, and whether it is true: its claims against runs of the packages.

    python tests/benchmarks/assumed_dtypes.py PACKAGE [PACKAGE ...] [--assume half] [--files 20] [--seed 0] [--tests PATH ...]

The calls that docstrings, tests and plain attempts make in float32 (`working_calls.py`) are made again as the assumption has it,
and the dtype of every expression is recorded (`recorded.py`). Of the files with at least --least tensor expressions --files are
drawn by the seed, as many of each package as can be, and read alone, with what they import, under the assumption.

For each file: the tensor expressions that ran; the share of which one dtype is claimed, rightly; the claims that are wrong; and
the ceiling, which is the share where the recorded dtypes of the parameters are fed in as contracts.
Everything is seeded, runs on one thread and offline; but a call that takes longer than --limit seconds is left out, so that a
busy machine may draw other files. pytest is needed for --tests alone.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent))

from assumptions import go_offline
from recorded import Place, Recorder
from replay import made_again
from working_calls import gathered, imported

from dtlint.dtypes.assumption import SINGLE, Assumption, parse_assumption
from dtlint.infer.claims.reading import read
from dtlint.infer.interproc.disk import Disk
from dtlint.source.contracts import line_of, written


@dataclass
class Score:
    """What is claimed of one file, beside what ran."""

    ran: int
    exact: int = 0
    wrong: list[tuple[Place, set[str], frozenset[str]]] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Of the expressions that ran, those of which one dtype is claimed rightly."""
        return self.exact / self.ran


class _Changed(Disk):
    """The disk, with another text in one file."""

    def __init__(self, path: Path, text: str) -> None:
        super().__init__()
        self._contents[str(path)] = text.encode()


def score(path: Path, ran: Mapping[Place, set[str]], assumed: Assumption, text: str, moved: Mapping[int, int]) -> Score:
    """Hold the claims for a file against what ran.

    Args:
        ran: the dtypes of its expressions.
        text: what is read as the file.
        moved: where its lines are in that.
    """
    found = Score(len(ran))
    by_place = {}
    roots = [path.parent, *(Path(entry) for entry in sys.path if entry)]
    for one in read(path, roots, _Changed(path, text), assumed).claims()[path]:
        span = one.span
        by_place[span.line, span.column, span.end_line, span.end_column] = one.dtypes
    for place, dtypes in sorted(ran.items()):
        _, line, column, end_line, end_column = place
        claimed = by_place.get((moved.get(line, line), column, moved.get(end_line, end_line), end_column))
        if not claimed:
            continue
        if dtypes - claimed:
            found.wrong.append((place, dtypes, claimed))
        else:
            found.exact += len(claimed) == 1
    return found


def with_given(path: Path, given: Mapping[int, Mapping[str, set[str]]]) -> tuple[str, dict[int, int]]:
    """A file with contracts that say what its functions were given, and where its lines are then."""
    text = path.read_text()
    tree = ast.parse(text)
    contracts: dict[ast.FunctionDef | ast.AsyncFunctionDef, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and line_of(node) in given:
            known = given[line_of(node)]
            stated = {name: " | ".join(sorted(dtypes)) for name, dtypes in known.items() if "" not in dtypes}
            terms = [f"{name}: {words}" for name, words in stated.items() if words != "None"]
            contracts[node] = f"({', '.join(terms)}) -> ..."
    lines = sorted(line_of(node) for node in contracts)
    moved = {line: line + sum(one <= line for one in lines) for line in range(1, len(text.splitlines()) + 1)}
    return written(text, tree, contracts), moved


def drawn(by_package: Mapping[str, list[str]], count: int, seed: int) -> list[str]:
    """Some files, as many of each package as can be."""
    chance = random.Random(seed)
    waiting = [chance.sample(files, len(files)) for _, files in sorted(by_package.items())]
    found: list[str] = []
    while len(found) < count and any(waiting):
        found += [files.pop() for files in waiting if files]
    return sorted(found[:count])


def main() -> None:
    """Run, read, and print how far they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", metavar="PACKAGE")
    parser.add_argument("--assume", default="half", help="the assumption (default: %(default)s)")
    parser.add_argument("--tests", nargs="*", default=[], type=Path, help="test files and folders of the packages")
    parser.add_argument("--files", default=20, type=int, help="how many files are drawn (%(default)s)")
    parser.add_argument("--least", default=20, type=int, help="tensor expressions that ran in a file (%(default)s)")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--limit", default=5.0, type=float, help="seconds for one call, example or test (%(default)s)")
    parser.add_argument("--wrong", action="store_true", help="print the claims that are wrong")
    options = parser.parse_args()
    assumed = parse_assumption(options.assume)
    tests = [one.resolve() for one in options.tests]
    warnings.simplefilter("ignore")
    go_offline()
    os.environ["PYTORCH_JIT"] = "0"
    torch.set_num_threads(1)
    os.chdir(tempfile.mkdtemp())
    started = time.monotonic()
    recorder = Recorder(options.packages)
    sys.meta_path.insert(0, recorder)
    files: dict[str, str] = {}
    modules = []
    for package in options.packages:
        for module in imported(package):
            modules.append(module)
            files[getattr(module, "__file__", None) or ""] = package
    calls = gathered(modules, tests, options.limit)
    for call in calls:
        if made_again(call, SINGLE, 1.0, options.limit, torch.no_grad())[1]:
            with torch.no_grad():
                made_again(call, assumed, 1.0, options.limit, recorder.noting(getattr(torch, assumed.inputs)))
    sys.meta_path.remove(recorder)
    ran: dict[str, dict[Place, set[str]]] = {}
    for place, dtypes in recorder.dtypes.items():
        ran.setdefault(place[0], {})[place] = dtypes
    by_package: dict[str, list[str]] = {}
    for file, places in sorted(ran.items()):
        if len(places) >= options.least and file in files:
            by_package.setdefault(files[file].partition(".")[0], []).append(file)
    print(f"{len(calls)} calls, {len(ran)} files ran, {time.monotonic() - started:.0f} s", flush=True)
    scores: list[Score] = []
    most: list[Score] = []
    for file in drawn(by_package, options.files, options.seed):
        scores.append(score(Path(file), ran[file], assumed, Path(file).read_text(), {}))
        given = {line: known for (where, line), known in recorder.given.items() if where == file}
        most.append(score(Path(file), ran[file], assumed, *with_given(Path(file), given)))
        words = f"wrong {len(scores[-1].wrong)}, ceiling {most[-1].share:4.0%}"
        print(f"{scores[-1].share:4.0%} of {scores[-1].ran:4}, {words}: {file}")
        for place, dtypes, claimed in scores[-1].wrong if options.wrong else ():
            print(f"    wrong: {file}:{place[1]}:{place[2]} was {sorted(dtypes)}, claimed {sorted(claimed)}")
        sys.stdout.flush()
    if len(scores) > 1:
        pooled, lower = _summary(scores)
        print(f"{assumed.name}: {len(scores)} files, pooled {pooled:.0%}, lower quartile {lower:.0%},", end=" ")
        print(f"wrong {sum(len(one.wrong) for one in scores)}; ceiling {_summary(most)[0]:.0%}")


def _summary(scores: list[Score]) -> tuple[float, float]:
    pooled = sum(one.exact for one in scores) / max(sum(one.ran for one in scores), 1)
    return pooled, statistics.quantiles([one.share for one in scores], n=4)[0] if len(scores) > 1 else pooled


if __name__ == "__main__":
    main()
