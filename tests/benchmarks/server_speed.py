"""How long the language server takes after an edit: until diagnostics are there, and until a hover is answered.

    python tests/benchmarks/server_speed.py [--edits 8] [FILE ...]

Each file is opened and edited in its middle; torch's own modules of about 2,000 lines by default. Between the edits `dtlint
check` checks the same file from the command line, so that a busy machine shows in both. All times are wall time, the
debounce among them. Then a project of two files: the one that is imported changes, and the findings of the other do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "server"))

from client import Client

ROUNDS = 8
MODULE = "import torch\n\n\ndef features(count):\n    return torch.ones(count, 8)\n"
PROGRAM = (
    "from torch import nn\n\nfrom features import features\n\nmodel = nn.Linear(8, 1)\nprint(model(features(4)))\n"
)


def of_file(path: Path, edits: int) -> None:
    """Measure edits of one file."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    middle = next(number for number in range(len(lines) // 2, len(lines)) if lines[number].startswith("    def "))
    hover = next(number for number in range(middle, len(lines)) if " = " in lines[number])
    shown, told, alone = [], [], []
    with Client(path.parent) as client:
        began = time.perf_counter()
        client.open(path.name, text)
        client.diagnostics(path.name, 1)
        cold = time.perf_counter() - began
        client.hover(path.name, hover, 12)
        time.sleep(max(2 * cold, 2))  # meanwhile its imports are read
        for number in range(edits):
            where = {"line": middle, "character": 0}
            began = time.perf_counter()
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
            told.append(time.perf_counter() - began)
            began = time.perf_counter()
            subprocess.run(
                [sys.executable, "-m", "dtlint", "check", "--no-cache", "--isolated", "--exit-zero", "-q", str(path)],
                stdout=subprocess.DEVNULL,
                check=True,
            )
            alone.append(time.perf_counter() - began)
    print(
        f"{path.name}, {len(lines)} lines: opened {cold:.2f} s; after an edit: diagnostics {_of(shown)}, hover {_of(told)};"
        f" dtlint check {_of(alone)}; {median(shown) / median(alone):.2f} of it"
    )


def of_project() -> None:
    """Measure a change of a file that another imports."""
    times = []
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("features.py", MODULE), ("train.py", PROGRAM)):
            (root / name).write_text(text, encoding="utf-8")
        with Client(root) as client:
            client.open("train.py", PROGRAM)
            client.open("features.py", MODULE)
            client.diagnostics("train.py", wanted=lambda found: not found)
            for number in range(ROUNDS):
                wrong = number % 2 == 0
                text = MODULE.replace("8)", "8, dtype=torch.float64)") if wrong else MODULE
                client.forget()
                began = time.perf_counter()
                client.change("features.py", {"text": text})
                client.diagnostics("train.py", wanted=lambda found, wrong=wrong: bool(found) is wrong)
                times.append(time.perf_counter() - began)
    print(f"a project of two files: the other's findings change {_of(times)} after an edit")


def _of(times: list[float]) -> str:
    return f"{median(times) * 1000:.0f} ms (from {min(times) * 1000:.0f} to {max(times) * 1000:.0f})"


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=ROUNDS)
    parser.add_argument("files", nargs="*", type=Path)
    arguments = parser.parse_args()
    files = arguments.files
    if not files:
        from importlib.util import find_spec

        spec = find_spec("torch")
        assert spec is not None and spec.origin is not None
        modules = Path(spec.origin).parent / "nn" / "modules"
        files = [modules / "rnn.py", modules / "conv.py"]
    for path in files:
        of_file(path.resolve(), arguments.edits)
    of_project()


if __name__ == "__main__":
    main()
