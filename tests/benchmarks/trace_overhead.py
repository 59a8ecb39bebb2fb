"""What tracing costs: CPU time of a training step traced, over that of the same step untraced, round by round.

    python tests/benchmarks/trace_overhead.py [--rounds N] [--seconds S] [--models NAME,...] [--dtypes NAME,...]

Each round runs a step in every setting, one after the other, so that a noisy machine disturbs all of them alike; the
ratio shown is the median over rounds. The empty mode is the floor of any Python dispatch mode. Garbage is collected as
Python does it, since a tracer that makes much of it pays for that too. "every 20" is measured over 20 steps in a row,
one of them traced: where that one takes twice its time and more, as where a step is all overhead of small operators,
the bar of 1.05 is out of reach, and what lies above it is the price of that step. Beside it stands what the empty mode
would come to, were it on in one step of 20: no Python mode can cost less.

The bars: traced at most 1.30 times the empty mode and below detect_anomaly; dtypes only at most 1.12 times the empty
mode; every 20 at most 1.05. A row that misses one is marked.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import statistics
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.mode import Tracer
from dtlint.trace.options import Options

DTYPES = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Empty(TorchDispatchMode):
    """The floor: a mode that only calls on."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **kwargs) if kwargs else func(*args)


class Block(nn.Module):
    """A transformer layer written out, as in nanoGPT: many small operators."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1) * q.size(-1) ** -0.5).masked_fill(mask, float("-inf"))
        y = self.drop(scores.softmax(-1)) @ v
        x = x + self.drop(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class Transformer(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, tokens: int, length: int) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(tokens, width), nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, tokens, bias=False)
        self.register_buffer("mask", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1)))
        for layer in self.layers:
            x = layer(x, self.mask)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), labels.flatten())


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def transformer(
    width: int, heads: int, layers: int, tokens: int, length: int
) -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    model = Transformer(width, heads, layers, tokens, length)
    ids, labels = torch.randint(0, tokens, (4, length)), torch.randint(0, tokens, (4, length))
    return model, lambda: model(ids, labels)


def convolutional() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    widths = [(3, 32, 2), (32, 32, 1), (32, 64, 2), (64, 128, 2)]
    model = nn.Sequential(*(Residual(*w) for w in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))
    images, labels = torch.randn(8, 3, 48, 48), torch.randint(0, 100, (8,))
    return model, lambda: F.cross_entropy(model(images), labels)


MODELS: dict[str, Callable[[], tuple[nn.Module, Callable[[], torch.Tensor]]]] = {
    "gpt-small": lambda: transformer(64, 4, 6, 512, 32),
    "gpt-wide": lambda: transformer(512, 8, 2, 2048, 128),
    "resnet": convolutional,
}


def training_step(name: str, dtype: torch.dtype | None) -> Callable[[], None]:
    """One whole step of training: forward, backward, optimizer; with a GradScaler in float16."""
    torch.manual_seed(0)
    model, loss_of = MODELS[name]()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler("cpu", enabled=dtype is torch.float16, init_scale=1024.0)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
            loss = loss_of()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


EVERY = 20

SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "untraced": contextlib.nullcontext,
    "empty mode": Empty,
    "dtypes only": lambda: Tracer(Options.parse(only="dtypes")),
    "traced": lambda: Tracer(Options.parse()),
    "detect_anomaly": torch.autograd.detect_anomaly,
}

BARS = {
    "traced / empty": lambda row: row["traced / empty"] <= 1.30,
    "dtypes / empty": lambda row: row["dtypes / empty"] <= 1.12,
    "detect_anomaly": lambda row: row["traced"] < row["detect_anomaly"],
    "every 20": lambda row: row.get("every 20", 0.0) <= 1.05,
}
"""What must hold, by the column in which a miss is marked."""


def timed(step: Callable[[], None], steps: int = 1) -> float:
    """CPU seconds."""
    gc.collect()
    start = time.process_time()
    for _ in range(steps):
        step()
    return time.process_time() - start


def measure(step: Callable[[], None], rounds: int, seconds: float) -> dict[str, float]:
    """The median ratio to the untraced step of the same round, for each setting."""
    times: dict[str, list[float]] = {name: [] for name in SETTINGS}
    entered = {name: setting() for name, setting in SETTINGS.items()}
    for _ in range(3):
        step()
    gc.collect()
    gc.freeze()
    end = time.monotonic() + seconds
    for number in range(rounds):
        for name, setting in entered.items():
            with setting:
                step()  # what is learned once is not the cost of a step
                times[name].append(timed(step))
        if number >= 2 and time.monotonic() > end:
            break
    row = {name: _ratio(took, times["untraced"]) for name, took in times.items()}
    row["step, ms"] = 1e3 * statistics.median(times["untraced"])
    row["traced / empty"] = _ratio(times["traced"], times["empty mode"])
    row["empty, in 20"] = 1 + (row["empty mode"] - 1) / EVERY
    row["dtypes / empty"] = _ratio(times["dtypes only"], times["empty mode"])
    if row["step, ms"] * EVERY * 6 < 1e3 * seconds:
        row["every 20"] = _every(step, rounds, seconds)
    gc.unfreeze()
    return row


def _every(step: Callable[[], None], rounds: int, seconds: float) -> float:
    """Over as many steps as one of them is traced in."""
    took: list[float] = []
    base: list[float] = []
    end = time.monotonic() + seconds
    tracer = Tracer(Options.parse(every=EVERY))
    with tracer:
        for _ in range(4 * EVERY + EVERY // 2):  # the first few traced steps are also looked at for weights and memory;
            step()  # half a turn more, so that the one to come is not the first after a collection of garbage
    while len(took) < rounds and (len(took) < 3 or time.monotonic() < end):
        base.append(timed(step, EVERY))
        with tracer:
            took.append(timed(step, EVERY))
    return _ratio(took, base)


def _ratio(took: list[float], base: list[float]) -> float:
    return statistics.median(one / other for one, other in zip(took, base, strict=True))


COLUMNS = (
    "step, ms",
    "empty mode",
    "dtypes only",
    "traced",
    "detect_anomaly",
    "empty, in 20",
    "every 20",
    "dtypes / empty",
    "traced / empty",
)


def table(models: Iterable[str], dtypes: Iterable[str], rounds: int, seconds: float) -> None:
    print(" | ".join(f"{cell:>14}" for cell in ("", *COLUMNS)))
    for model in models:
        for name in dtypes:
            row = measure(training_step(model, DTYPES[name]), rounds, seconds)
            cells = [_cell(column, row) for column in COLUMNS]
            print(" | ".join(f"{cell:>14}" for cell in (f"{model} {name}", *cells)), flush=True)


def _cell(column: str, row: dict[str, float]) -> str:
    if column not in row:
        return "-"
    missed = column in BARS and not BARS[column](row)
    return f"{row[column]:.2f}{' !' if missed else ''}"


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
    table(arguments.models.split(","), arguments.dtypes.split(","), arguments.rounds, arguments.seconds)


if __name__ == "__main__":
    main()
