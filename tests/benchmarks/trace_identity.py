"""Does a traced program do what it does untraced? Exit code, stdout, and every file it writes, byte for byte.

    python tests/benchmarks/trace_identity.py                                   models of transformers, if installed
    python tests/benchmarks/trace_identity.py 'train.py --epochs 1' other.py    programs with their arguments
    python tests/benchmarks/trace_identity.py --in project 'tools/train.py --epochs 1' --trace '--every 5'

Each program runs three times, twice untraced and once traced, in fresh copies of its folder that lie at the same
path. Two untraced runs that differ prove nothing, so they are told apart; what only tells the time is left out of the
comparison. Exit code 1 if any traced run differs.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

TIMES = (
    r"\d+(\.\d+)?\s?m?s\b",  # 12.5ms, 3 s
    r"(?<=ms/batch )\s*[\d.]+",
    r"(?<=mfu )-?[\d.]+%",
    r"(time|duration|elapsed|seconds|took)\W+[\d.]+",
)
"""How programs print times; `--ignore` adds to them."""

PASSED_OVER = ("__pycache__", ".git")

MODELS = ("bert", "gpt2", "t5", "llama")

HUGGING_FACE = '''
"""Trains and runs one small model of transformers, each way that precision is chosen; prints all bits of all losses."""
import hashlib
import sys

import torch
import transformers as t

SMALL = dict(vocab_size=96, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
TOKENS = torch.randint(1, 96, (4, 12), generator=torch.Generator().manual_seed(0))


def build(name):
    torch.manual_seed(0)
    if name == "bert":
        return t.BertForMaskedLM(t.BertConfig(**SMALL)), {}
    if name == "gpt2":
        config = t.GPT2Config(vocab_size=96, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
        return t.GPT2LMHeadModel(config), {}
    if name == "t5":
        config = t.T5Config(vocab_size=96, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2, decoder_start_token_id=0)
        return t.T5ForConditionalGeneration(config), {}
    return t.LlamaForCausalLM(t.LlamaConfig(**SMALL, num_key_value_heads=1)), {}


def bits(tensors):
    digest = hashlib.sha256()
    for x in tensors:
        digest.update(x.detach().contiguous().view(torch.uint8).numpy().tobytes() if x.dim() else repr(x.item()).encode())
    return digest.hexdigest()[:16]


def train(name, dtype, scaled):
    model, extra = build(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    for step in range(6):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = model(input_ids=TOKENS, labels=TOKENS, **extra).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        print(f"  step {step} loss {loss.item().hex()} norm {norm.item().hex()}")
    print("  weights", bits(model.state_dict().values()))
    torch.save(model.state_dict(), f"{name}_{dtype}.pt")


def infer(name):
    model = build(name)[0].half().eval()
    with torch.inference_mode():
        inputs = {"input_ids": TOKENS, **({"decoder_input_ids": TOKENS} if name == "t5" else {})}
        print("  logits", bits([model(**inputs).logits]))
        if name != "bert":
            print("  tokens", model.generate(TOKENS, max_new_tokens=4, do_sample=False).tolist())


WAYS = {
    "float32": lambda name: train(name, None, False),
    "bfloat16 autocast": lambda name: train(name, torch.bfloat16, False),
    "float16 autocast and scaler": lambda name: train(name, torch.float16, True),
    "float16 inference": infer,
}

name, *ways = sys.argv[1:]
for way in ways or WAYS:
    print(name, way)
    WAYS[way](name)
'''


@dataclass(frozen=True)
class Ran:
    """What a run left behind."""

    code: int
    out: str
    files: dict[str, str]
    """Content hashes by path."""
    err: str
    seconds: float

    def differences(self, other: Ran) -> list[str]:
        """What differs between two runs, in words."""
        found = []
        if self.code != other.code:
            found.append(f"exit code {other.code} instead of {self.code}")
        lines, others = self.out.splitlines(), other.out.splitlines()
        if lines != others:
            number = next((n for n, pair in enumerate(zip(lines, others, strict=False)) if pair[0] != pair[1]), -1)
            told = f"{others[number]!r} instead of {lines[number]!r}" if number >= 0 else "more or fewer lines"
            found.append(f"stdout: {told}")
        for path in sorted(self.files.keys() | other.files.keys()):
            if self.files.get(path) != other.files.get(path):
                found.append(f"file {path}")
        return found


@dataclass(frozen=True)
class Bench:
    """Where programs run, and how."""

    room: Path
    """Holds the copy that a program runs in, and the records."""
    trace: tuple[str, ...]
    """Options of `dtlint trace`."""
    ignored: re.Pattern[str]
    seconds: float

    def run(self, folder: Path, program: list[str], traced: bool) -> Ran:
        """Run a program in a fresh copy of its folder."""
        copy = self.room / "program"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(*PASSED_OVER))
        tracer = ["-m", "dtlint", "trace", "--output", str(self.room / "record.json"), *self.trace]
        settings = {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", **os.environ}
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, *(tracer if traced else []), *program],
            cwd=copy,
            env=settings,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=self.seconds,
            check=False,
        )
        took = time.monotonic() - begun
        return Ran(done.returncode, self.ignored.sub("_", done.stdout), _hashes(copy), done.stderr, took)

    def compare(self, folder: Path, program: list[str]) -> tuple[str, Ran]:
        """A row of the table, and the traced run."""
        once, again, traced = (self.run(folder, program, how) for how in (False, False, True))
        unsteady, different = once.differences(again), once.differences(traced)
        written = len(once.files.keys() - _hashes(folder).keys())
        verdict = "identical"
        if unsteady:
            verdict = f"differs from itself untraced ({unsteady[0]})"
        elif different:
            verdict = f"DIFFERENT: {'; '.join(different[:3])}"
        sizes = f"exit {once.code}  {len(once.out.splitlines()):4} lines  {written:2} files"
        return f"{sizes}  {once.seconds:6.1f} s -> {traced.seconds:6.1f} s  {verdict}", traced


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not set(PASSED_OVER) & set(path.relative_to(folder).parts)
    }


def _programs(words: list[str], within: Path | None) -> list[tuple[str, Path, list[str]]]:
    """Of each program as it was given: its words, the folder to copy, and what to run there."""
    programs = []
    for text in words:
        script, *arguments = shlex.split(text)
        folder = within or Path(script).resolve().parent
        if not (folder / script if within else Path(script)).is_file():
            sys.exit(f"trace_identity.py: there is no script {script}; with --in it is sought in that folder")
        programs.append((text, folder, [script if within else Path(script).name, *arguments]))
    return programs


def _models(room: Path) -> list[tuple[str, Path, list[str]]]:
    if importlib.util.find_spec("transformers") is None:
        sys.exit("trace_identity.py: transformers is not installed here; give programs to run, or install it")
    folder = room / "models"
    folder.mkdir()
    (folder / "model.py").write_text(HUGGING_FACE, encoding="utf-8")
    return [(name, folder, ["model.py", name]) for name in MODELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="a script and its arguments, as one word")
    parser.add_argument("--in", dest="within", type=Path, help="the folder to copy and run in; else the script's")
    parser.add_argument("--trace", default="", help="options for dtlint trace, as one word")
    parser.add_argument("--ignore", action="append", default=[], metavar="REGEX", help="not to be compared in stdout")
    parser.add_argument("--seconds", type=float, default=600, help="the longest a run may take")
    parser.add_argument("--show", action="store_true", help="show what the traced run wrote to stderr: the report")
    arguments = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as name:
        ignored = re.compile("|".join((*TIMES, *arguments.ignore)), re.IGNORECASE)
        bench = Bench(Path(name), tuple(shlex.split(arguments.trace)), ignored, arguments.seconds)
        programs = _programs(arguments.programs, arguments.within and arguments.within.resolve())
        for title, folder, program in programs or _models(Path(name)):
            row, traced = bench.compare(folder, program)
            different += "DIFFERENT" in row
            print(f"{title[:40]:40}  {row}", flush=True)
            if arguments.show:
                print(traced.err, flush=True)
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
