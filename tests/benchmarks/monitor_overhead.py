"""What a monitor costs: CPU time of a training with dtlint.Monitor at one step in 50, over that of the same without.

    python tests/benchmarks/monitor_overhead.py [--rounds N] [--steps N] [--loops plain,transformers,lightning]

Each round trains a few hundred steps with and without, one after the other and in turns, so that a noisy machine
disturbs both alike; the ratio shown is the median over rounds, of time per step without the first steps. The bar is
1.05. A loop whose framework is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch
from torch import nn

EVERY = 50
BAR = 1.05


class Clock:
    """CPU seconds from the end of the first sampled period to the end of the last step."""

    def __init__(self) -> None:
        self.steps, self.start, self.end = 0, 0.0, 0.0

    def tick(self, *_: Any) -> None:
        self.steps += 1
        self.end = time.process_time()
        if self.steps == EVERY // 2:
            self.start = self.end

    def watch(self, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        optimizer.register_step_post_hook(self.tick)
        return optimizer

    @property
    def seconds(self) -> float:
        return self.end - self.start


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    return nn.Sequential(
        nn.Linear(32, 128), nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), nn.Linear(128, 1)
    )


def plain(steps: int, monitored: bool) -> float:
    import dtlint

    model, clock = transformer(), Clock()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    scaler = torch.amp.GradScaler("cpu")
    monitor = dtlint.Monitor(model, optimizer, scaler) if monitored else None
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(torch.randn(8, 32, 32)).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        clock.tick()
    if monitor is not None:
        monitor.close()
    return clock.seconds


class Tokens(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> dict[str, Any]:
        tokens = torch.arange(index, index + 32) % 1000
        return {"input_ids": tokens, "labels": tokens}


def transformers(steps: int, monitored: bool) -> float:
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    from dtlint.callbacks import TransformersMonitor

    clock = Clock()
    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=32, n_embd=128, n_layer=4, n_head=4))
    arguments = TrainingArguments(
        *["out"], max_steps=steps, bf16=True, use_cpu=True, report_to="none", save_strategy="no", disable_tqdm=True
    )
    optimizer = clock.watch(torch.optim.AdamW(model.parameters(), 1e-4))
    Trainer(
        model,
        arguments,
        train_dataset=Tokens(),
        callbacks=[TransformersMonitor()] if monitored else [],
        optimizers=(optimizer, None),
    ).train()
    return clock.seconds


def lightning(steps: int, monitored: bool) -> float:
    import lightning as L

    from dtlint.callbacks import LightningMonitor

    clock = Clock()

    class Regression(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = transformer()

        def training_step(self, batch: Any, index: int) -> Any:
            return self.net(batch[0]).pow(2).mean()

        def configure_optimizers(self) -> Any:
            return clock.watch(torch.optim.AdamW(self.parameters(), 1e-4))

    data = torch.utils.data.TensorDataset(torch.randn(8 * steps, 32, 32))
    L.Trainer(
        accelerator="cpu",
        max_steps=steps,
        precision="bf16-mixed",
        callbacks=[LightningMonitor()] if monitored else [],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    ).fit(Regression(), torch.utils.data.DataLoader(data, batch_size=8))
    return clock.seconds


LOOPS: dict[str, Callable[[int, bool], float]] = {
    "plain": plain,
    "transformers": transformers,
    "lightning": lightning,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=225)
    parser.add_argument("--loops", default=",".join(LOOPS))
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.chdir(tempfile.mkdtemp())
    for name in asked.loops.split(","):
        if name in ("transformers", "lightning") and find_spec(name) is None:
            print(f"{name:14} not installed")
            continue
        ratios = []
        for number in range(asked.rounds):
            order = (False, True) if number % 2 else (True, False)
            took = {monitored: LOOPS[name](asked.steps, monitored) for monitored in order}
            ratios.append(took[True] / took[False])
        ratio = statistics.median(ratios)
        mark = "" if ratio <= BAR else f"   above {BAR}"
        print(f"{name:14} {ratio:.3f}  ({min(ratios):.3f} to {max(ratios):.3f}){mark}", flush=True)


if __name__ == "__main__":
    main()
