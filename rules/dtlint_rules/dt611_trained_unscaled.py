"""DT611: a trainer's precision does not fit the dtype of the weights that it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["TrainedUnscaled"]


class TrainedUnscaled(Rule):
    """A trainer updates float16 weights without scaling, or scales the gradients of bfloat16 ones.

    ## What it does
    Reports a Trainer of transformers or trl that trains a model in float16 without `fp16=True`, Lightning's
    `fit` under `precision="16-true"`, and `fp16=True` for a model in bfloat16. A project that declares DeepSpeed, which
    keeps weights of its own, is left alone.

    ## Why it matters
    Gradients in float16 below 6e-8 become 0 where nothing scales them, updates below 5e-4 of a weight round away, and so
    does the eps of Adam, 1e-8, after which a zero gradient makes NaN of the weight. bfloat16 has the range of float32: a
    scaler is of no use to it, and before torch learned to unscale it raised for its gradients.

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    from texts import dataset

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16)
    trainer = Trainer(model=model, args=TrainingArguments(output_dir="out", bf16=True), train_dataset=dataset)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    from texts import dataset

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float32)
    trainer = Trainer(model=model, args=TrainingArguments(output_dir="out", bf16=True), train_dataset=dataset)
    ```

    ## References
    - [Mixed precision training](https://arxiv.org/abs/1710.03740)
    - [Lightning: true half precision](https://lightning.ai/docs/pytorch/stable/common/precision_intermediate.html)
    """

    code, name = "DT611", "trained-unscaled"
    triggers = ("*Trainer*",)
    needs = (("*float16*", "*half*", "16-true", "precision"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if any(name == "deepspeed" for name, _ in facts.declared):
            return
        for seen in facts.events("float16 weights trained unscaled"):
            by = ", and `bf16=True` scales nothing" if seen.what.about[0] == Const(True) else " without a scaler"
            yield Finding(
                seen.node,
                f"The weights are trained in float16{by}: small gradients become 0, and Adam's eps is 0",
                help="Keep what is trained in float32, and let the trainer run it under autocast",
            )
        for seen in facts.events("bfloat16 weights under a scaler"):
            yield Finding(
                seen.node,
                "The weights are bfloat16, and `fp16=True` scales their gradients for float16",
                help="Use `bf16=True`, and float32 weights",
            )
