"""How long the language server takes after an edit: until diagnostics are there, and until a hover is answered.

    python tests/benchmarks/server_speed.py [--edits 8] [--imported FILE BY] [FILE ...]

Each file is opened and edited in its middle; torch's own modules of about 2,000 lines by default. Between the edits `dtlint
check` checks the same file from the command line, so that a busy machine shows in both. Then projects in which a function
that is imported changes its dtype, and the findings of an open file that calls it change: one of two files, one of 1,000
files in layers that rest on it, and the one around FILE and BY, two modules of a package, where `--imported` names them.
These two get a function and its call at their ends, in the editor alone.

Wall time holds the debounce. CPU time is that of the server and all its processes until the last answer, what they do beside
it among it: a machine that does nothing else takes hardly longer than that and the debounce.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

from client import Client
from static_speed import write_project

ROUNDS = 8
EDIT, PROJECT = 300, 2000
"""Milliseconds that an edit may take until the file's diagnostics and a hover are there, and until those of another file."""
MODULE = "import torch\n\n\ndef features(count):\n    return torch.ones(count, 8)\n"
PROGRAM = (
    "from torch import nn\n\nfrom features import features\n\nmodel = nn.Linear(8, 1)\nprint(model(features(4)))\n"
)


def of_file(path: Path, edits: int) -> None:
    """Measure edits of one file."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    middle = next(number for number in range(len(lines) // 2, len(lines)) if lines[number].lstrip().startswith("def "))
    hover = next(number for number in range(middle, len(lines)) if " = " in lines[number])
    shown, hovered, spent, alone = [], [], [], []
    with Client(path.parent) as client:
        began = time.perf_counter()
        client.open(path.name, text)
        client.diagnostics(path.name, 1)
        cold = time.perf_counter() - began
        client.hover(path.name, hover, 12)
        time.sleep(max(2 * cold, 2))  # meanwhile its imports are read
        for number in range(edits):
            where = {"line": middle, "character": 0}
            used, began = cpu_of(client), time.perf_counter()
            version = client.change(
                path.name, {"range": {"start": where, "end": where}, "text": f"    # an edit: {number}\n"}
            )
            waiting = client.begin(
                "textDocument/hover",
                {
                    "textDocument": {"uri": client.uri(path.name)},
                    "position": {"line": hover + number + 1, "character": 12},
                },
            )
            client.diagnostics(path.name, version)
            shown.append(time.perf_counter() - began)
            client.result(waiting)
            hovered.append(time.perf_counter() - began)
            spent.append(cpu_of(client) - used)
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "dtlint", "check", "--no-cache", "--isolated", "--exit-zero", "-q", str(path)],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            alone.append(time.perf_counter() - began)
    print(
        f"{path.name}, {len(lines)} lines: opened {cold:.2f} s; after an edit: diagnostics {_of(shown)}, hover {_of(hovered)},"
        f" CPU {_of(spent)}, to be {EDIT} ms; dtlint check {_of(alone)}; {median(shown) / median(alone):.2f} of it"
    )


def of_two_files(rounds: int) -> None:
    """Measure a change of a file that another imports."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("features.py", MODULE), ("train.py", PROGRAM)):
            (root / name).write_text(text, encoding="utf-8")
        wrong = MODULE.replace("8)", "8, dtype=torch.float64)")
        of_project("two files", root, ("features.py", MODULE, wrong), ("train.py", PROGRAM), rounds)


def of_layers(rounds: int) -> None:
    """Measure a change of the function that all files of a large project rest on."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        last = write_project(root)
        program = PROGRAM.replace("features", "scale").replace("from scale", f"from net.{last.stem}")
        program = "import torch\n" + program.replace("scale(4)", "scale(torch.ones(4, 8))")
        (root / "train.py").write_text(program, encoding="utf-8")
        base = (root / "net" / "base.py").read_text(encoding="utf-8")
        wrong = base.replace("torch.float32", "torch.float64")
        count = sum(1 for _ in root.rglob("*.py"))
        of_project(f"{count:,} files", root, ("net/base.py", base, wrong), ("train.py", program), rounds)


def of_package(imported: Path, by: Path, rounds: int) -> None:
    """Measure a change of a module that another one of its package imports, in texts that are not saved."""
    root = imported.parent
    while (root / "__init__.py").exists():
        root = root.parent
    module = ".".join(imported.relative_to(root).with_suffix("").parts)
    text = f"{imported.read_text(encoding='utf-8')}\n\n{MODULE.replace('features', 'dtlint_measures')}"
    program = f"{by.read_text(encoding='utf-8')}\n\nimport {module}\nfrom torch import nn\n\n"
    program += f"print(nn.Linear(8, 1)({module}.dtlint_measures(4)))\n"
    wrong = text.replace("torch.ones(count, 8)", "torch.ones(count, 8, dtype=torch.float64)")
    first, second = (str(one.relative_to(root)) for one in (imported, by))
    what = f"{second}, {len(program.splitlines())} lines, with {first}"
    of_project(what, root, (first, text, wrong), (second, program), rounds)


def of_project(what: str, root: Path, imported: tuple[str, str, str], by: tuple[str, str], rounds: int) -> None:
    """Measure how long it takes until a file's findings change with a function of another one.

    Args:
        imported: the file with the function, its text, and the one that makes the call in the other file wrong.
        by: the other file, and its text.
    """
    times, spent = [], []
    name, right, wrong = imported
    with Client(root) as client:
        began = time.perf_counter()
        client.open(*by)
        client.open(name, right)
        before = frozenset(map(_place, client.diagnostics(by[0], 1)))
        cold = time.perf_counter() - began
        time.sleep(max(2 * cold, 2))  # meanwhile its imports are read
        for number in range(rounds):
            is_wrong = number % 2 == 0

            def is_told(found: list[dict[str, Any]], is_wrong: bool = is_wrong) -> bool:
                return bool({*map(_place, found)} - before) is is_wrong

            client.forget()
            used, began = cpu_of(client), time.perf_counter()
            client.change(name, {"text": wrong if is_wrong else right})
            client.diagnostics(by[0], wanted=is_told)
            times.append(time.perf_counter() - began)
            spent.append(cpu_of(client) - used)
            time.sleep(1)
    print(
        f"a project of {what}: opened {cold:.2f} s; the other's findings change {_of(times)} after an edit, the first after"
        f" {times[0] * 1000:.0f} ms, CPU {_of(spent)}, to be {PROJECT} ms"
    )


def _place(found: dict[str, Any]) -> tuple[str, int]:
    return found["code"], found["range"]["start"]["line"]


def cpu_of(client: Client) -> float:
    """Seconds of CPU that the server and the processes below it have used by now; of Linux alone, else 0."""
    waiting, ticks = [client.pid], 0
    while waiting:
        pid = waiting.pop()
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            waiting += map(
                int, " ".join(one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/children")).split()
            )
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))  # its own, and of the children that it has waited for
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0


def _of(times: list[float]) -> str:
    return f"{median(times) * 1000:.0f} ms (from {min(times) * 1000:.0f} to {max(times) * 1000:.0f})"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=ROUNDS)
    parser.add_argument("--imported", nargs=2, type=Path, metavar=("FILE", "BY"))
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    files = arguments.files
    if not files and arguments.imported is None:
        from importlib.util import find_spec

        spec = find_spec("torch")
        assert spec is not None and spec.origin is not None
        modules = Path(spec.origin).parent / "nn" / "modules"
        files = [modules / "rnn.py", modules / "conv.py"]
    for path in files:
        of_file(path.resolve(), arguments.edits)
    of_two_files(arguments.edits)
    of_layers(arguments.edits)
    if arguments.imported is not None:
        of_package(*(path.resolve() for path in arguments.imported), arguments.edits)


if __name__ == "__main__":
    main()
