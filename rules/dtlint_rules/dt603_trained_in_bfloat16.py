"""DT603: a Trainer updates weights in bfloat16."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["TrainedInBfloat16"]


class TrainedInBfloat16(Rule):
    """A Trainer is given a model in bfloat16, without float32 weights for its optimizer.

    ## What it does
    Reports a Trainer of transformers or trl that trains all of a model that was loaded or cast in bfloat16, and, where the
    project declares transformers 5 or newer, one that was loaded without `dtype=`: since then `from_pretrained` gives the
    dtype of the checkpoint, which is bfloat16 for most.

    Conditional, and so reported with `--preview` only: a launcher may add DeepSpeed or FSDP, which keep weights in
    float32, and what a checkpoint holds is not in view.

    ## Why it matters
    `bf16=True` runs the model under autocast, and keeps no other copy of its weights: AdamW updates them in bfloat16, where
    a step below 1e-3 of a weight rounds away. With the usual learning rates most of the training does.

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    from texts import dataset

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.bfloat16)
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
    - [Trainer](https://huggingface.co/docs/transformers/main_classes/trainer)
    - [Migration to transformers 5](https://github.com/huggingface/transformers/blob/main/MIGRATION_GUIDE_V5.md)
    """

    code, name = "DT603", "trained-in-bfloat16"
    triggers = ("*Trainer*",)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("bfloat16 weights trained"):
            yield Finding(
                seen.node,
                "The optimizer updates bfloat16 weights: steps below 1e-3 of a weight are lost",
                help="Load the model in float32; `bf16=True` computes in bfloat16 all the same",
                conditional=True,
            )
        if facts.releases("transformers").all_from((5, 0)):
            for seen in facts.events("weights trained as stored"):
                is_scaled = seen.what.about[1:] == (Const(True),)
                lost = "`fp16=True` raises for float16, and scales bfloat16 for nothing" if is_scaled else _LOST
                yield Finding(
                    seen.node,
                    f"transformers 5 loads weights as the checkpoint has them: {lost}",
                    help="Say `dtype=torch.float32` in from_pretrained",
                    conditional=True,
                )


_LOST = "in bfloat16 steps below 1e-3 of a weight are lost"
