"""DT602: a trainer that scales gradients is given float16 weights."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["HalfUnderTrainer"]


class HalfUnderTrainer(Rule):
    """A trainer in float16 mixed precision is given a model in float16.

    ## What it does
    Reports models whose trained weights are float16 where a Trainer of transformers or trl is given `fp16=True`, or one of
    Lightning `precision="16-mixed"`. Adapters of peft count as float16 where `autocast_adapter_dtype=False` keeps them so,
    and for peft before 0.11, where the project declares that. DeepSpeed and FSDP keep weights of their own: with them it
    says nothing, nor in a project that declares DeepSpeed.

    ## Why it matters
    These trainers step the optimizer with a GradScaler, which raises "Attempting to unscale FP16 gradients." at the first
    step. What is trained must be float32: autocast makes the float16 copies.

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    from texts import dataset

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16)
    args = TrainingArguments(output_dir="out", fp16=True)
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

    from texts import dataset

    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float32)
    args = TrainingArguments(output_dir="out", fp16=True)
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    ```

    ## References
    - [torch.amp.GradScaler.unscale_](https://docs.pytorch.org/docs/stable/amp.html#torch.amp.GradScaler.unscale_)
    - [peft: ValueError: Attempting to unscale FP16 gradients](https://huggingface.co/docs/peft/developer_guides/troubleshooting)
    """

    code, name = "DT602", "half-under-trainer"
    triggers = ("fp16", "precision")
    needs = (("*float16*", "*half*", "torch_dtype", "dtype"), ("*rainer*",))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if any(name == "deepspeed" for name, _ in facts.declared):
            return
        for seen in facts.events("float16 weights under a scaler"):
            since = [one for place in seen.what.about[1:] if isinstance(one := facts.place(place), ast.expr)]
            notes = tuple(
                (one, "the weights become float16 here") for one in dict.fromkeys(since) if one is not seen.node
            )
            yield Finding(seen.node, f"The trained weights are float16: {_RAISES}", help=_HELP, notes=notes)
        if facts.releases("peft").all_before((0, 11)):
            for seen in facts.events("adapters of an older peft under a scaler"):
                yield Finding(
                    seen.node,
                    f"peft before 0.11 gives a float16 model float16 adapters: {_RAISES}",
                    help="Cast what requires a gradient to float32, or load the model in float32",
                )


_RAISES = 'the trainer\'s GradScaler raises "Attempting to unscale FP16 gradients."'
_HELP = "Keep what is trained in float32; the trainer runs it under autocast"
