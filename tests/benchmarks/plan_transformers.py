"""Do precision plans hold on models of transformers? Traces, plans, applies and compares the losses.

    python tests/benchmarks/plan_transformers.py [--steps N] [--model NAME] [--keep FOLDER]

Four small models are built from their configurations and trained in float32 on a simulated CUDA device; once as they
are, and once with a frozen feed-forward layer whose activations leave float16's range, as those of large trained models
do. For each a plan is made, tried and, where it does not hold, extended. Needs transformers. Exits with 1 if a plan does
not hold, if it keeps as many modules as all norms, softmaxes and heads together, or if the last loss is 1% away.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WIDTH, TOKENS, LENGTH = 64, 256, 32

MODELS = ("gpt2", "llama", "bert", "t5")

ROUNDS = 4
"""How often a plan may be extended."""


def build(name: str) -> Any:
    """A model of two layers."""
    import transformers as t

    usual = {"vocab_size": TOKENS, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    common = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * WIDTH}
    if name == "gpt2":
        config = t.GPT2Config(n_embd=WIDTH, n_layer=2, n_head=2, attn_implementation="eager", **usual)
        return t.GPT2LMHeadModel(config)
    if name == "llama":
        return t.LlamaForCausalLM(t.LlamaConfig(attn_implementation="eager", **common, **usual))
    if name == "bert":
        return t.BertForMaskedLM(t.BertConfig(**common, **usual))
    config = t.T5Config(
        d_model=WIDTH, d_kv=32, d_ff=2 * WIDTH, num_layers=2, num_heads=2, decoder_start_token_id=0, **usual
    )
    return t.T5ForConditionalGeneration(config)


OUTLIERS = {
    "gpt2": ("transformer.h.1.mlp.c_fc", "transformer.h.1.mlp.c_proj"),
    "llama": ("model.layers.1.mlp.up_proj", "model.layers.1.mlp.down_proj"),
    "bert": ("bert.encoder.layer.1.intermediate.dense", "bert.encoder.layer.1.output.dense"),
    "t5": ("encoder.block.1.layer.1.DenseReluDense.wi", "encoder.block.1.layer.1.DenseReluDense.wo"),
}
"""The two layers of a feed-forward block, the first of which is made large and the second small."""

LARGE, SMALL = 2.0**18, 2.0**-8


def train(name: str, outliers: bool, steps: int) -> None:
    """The program that is traced: an ordinary loop in float32."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = build(name)
    if outliers:
        with torch.no_grad():
            for path, factor in zip(OUTLIERS[name], (LARGE, SMALL), strict=True):
                layer = model.get_submodule(path)
                layer.weight.mul_(factor)
                layer.requires_grad_(False)
    model = model.cuda().train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0  # its random numbers are not those of another run
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    numbers = torch.Generator().manual_seed(1)
    text = torch.randint(1, TOKENS, (TOKENS,), generator=numbers)
    for _ in range(steps):
        start = torch.randint(0, TOKENS, (4, 1), generator=numbers)
        tokens = text[(torch.arange(LENGTH)[None] + start) % TOKENS].cuda()
        loss = model(input_ids=tokens, labels=tokens).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    usual = [n for n, m in model.named_modules() if _is_kept_as_a_rule(n, m)]
    print(json.dumps({"loss": loss.item(), "usual": len(usual), "modules": len(list(model.modules()))}))


def _is_kept_as_a_rule(name: str, module: Any) -> bool:
    """Is it a norm, a head, or does it compute a softmax?"""
    kind = type(module).__name__
    softmax = "Attention" in kind and not any("Attention" in type(child).__name__ for child in module.children())
    return (
        "Norm" in kind or softmax or (name.endswith(("lm_head", "decoder", "wte_head")) and not list(module.children()))
    )


def main() -> int:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--model", choices=MODELS, action="append")
    parser.add_argument("--keep", type=Path, help="keep records and plans in this folder")
    parser.add_argument("--train", choices=MODELS, help=argparse.SUPPRESS)
    parser.add_argument("--outliers", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.train:
        train(options.train, options.outliers, options.steps)
        return 0
    good = True
    print(
        "model              kept  usual  modules  scale  in 16 bits  loss float32  loss planned  differs  rounds  holds"
    )
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for name in options.model or MODELS:
            for outliers in (False, True):
                good &= measure(name, outliers, options.steps, folder)
    return int(not good)


def measure(name: str, outliers: bool, steps: int, folder: Path) -> bool:
    """One line of the table; is it as it should be?"""
    label = f"{name}{'-outliers' * outliers}"
    run, plan, tried = (folder / f"{label}.{what}.json" for what in ("run", "plan", "try"))
    script = [__file__, "--train", name, *["--outliers"] * outliers, "--steps", str(steps)]
    wide = dtlint("trace", "--simulate", "cuda", "--assume", "float16", "-q", "-o", str(run), *script)
    source, rounds, holds = run, 0, False
    while not holds and rounds < ROUNDS:
        dtlint("plan", str(source), "-o", str(plan))
        narrow = dtlint("trace", "--simulate", "cuda", "--plan", str(plan), "-q", "-o", str(tried), *script)
        source, rounds, holds = tried, rounds + 1, narrow.returncode == 0
    before, after = (json.loads(done.stdout.splitlines()[-1]) for done in (wide, narrow))
    planned = json.loads(plan.read_text())
    differs = abs(after["loss"] - before["loss"]) / before["loss"]
    kept = len(planned["keep"])
    print(
        f"{label:17} {kept:5} {before['usual']:6} {before['modules']:8} {planned['scale']:6.0f} {planned['share']:11.1%}"
        f" {before['loss']:13.4f} {after['loss']:13.4f} {differs:8.2%} {rounds:7} {'yes' if holds else 'NO':>6}",
        flush=True,
    )
    return holds and kept < before["usual"] and differs < 0.01


def dtlint(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command; more than a finding ends the measurement."""
    done = subprocess.run([sys.executable, "-m", "dtlint", *arguments], capture_output=True, text=True, check=False)
    if done.returncode > 1:
        sys.exit(f"dtlint {' '.join(arguments)}: {done.stderr}")
    return done


if __name__ == "__main__":
    sys.exit(main())
