"""DT613: a DeepSpeed engine in half precision is given float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Const
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["HalfEngineInputs"]


class HalfEngineInputs(Rule):
    """A DeepSpeed engine that has cast its model to a half dtype is given float32.

    ## What it does
    Reports calls of what `deepspeed.initialize` gives, where its configuration, a JSON file or a dict, enables `fp16` or
    `bf16`, and the model refuses the float32 that it is given.

    ## Why it matters
    `fp16` and `bf16` of DeepSpeed are no autocast: the engine casts the weights, and hands on its inputs as they are. The
    first layer raises "expected scalar type Half but found Float".

    ## Example
    ```python
    import deepspeed
    import torch
    from torch import nn

    model = nn.Linear(8, 1)
    config = {"train_batch_size": 8, "fp16": {"enabled": True}}
    engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    loss = engine(torch.ones(4, 8)).mean()
    ```

    ## Use instead
    ```python
    import deepspeed
    import torch
    from torch import nn

    model = nn.Linear(8, 1)
    config = {"train_batch_size": 8, "fp16": {"enabled": True}}
    engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    loss = engine(torch.ones(4, 8, dtype=torch.float16)).mean()
    ```

    ## References
    - [DeepSpeed: fp16 training options](https://www.deepspeed.ai/docs/config-json/#fp16-training-options)
    """

    code, name = "DT613", "half-engine-inputs"
    severity = Severity.ERROR
    triggers = ("deepspeed",)
    needs = ((".initialize", "initialize"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("half engine is given float32"):
            (half,) = (one.value for one in seen.what.about[1:] if isinstance(one, Const))
            says = f"DeepSpeed has cast the model to {half}, and hands on the float32 that it is given: it raises"
            yield Finding(seen.node, says, help=f"Cast the batch, `.to(torch.{half})`")
