"""DT607: 4-bit layers that compute in float32, or whose storage FSDP cannot take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import NONE
from dtlint.infer.facts import dtype_of
from dtlint.rule import Finding, Rule
from dtlint_rules._frameworks import given, is_on, model_behind, training_arguments
from dtlint_rules._refused_settings import calls_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint_rules._frameworks import TrainerArguments

__all__ = ["QuantisedComputeDtype"]

_CONFIG = re.compile(r"(?:transformers|diffusers)\.(?:\w+\.)*BitsAndBytesConfig")
_HALVES = frozenset({"float16", "bfloat16"})


class QuantisedComputeDtype(Rule):
    """A 4-bit model computes in float32, or keeps its weights in a dtype that FSDP refuses.

    ## What it does
    Reports `BitsAndBytesConfig(load_in_4bit=True)` without `bnb_4bit_compute_dtype` for a model that is loaded in float16
    or bfloat16. Where TrainingArguments in the same file ask for FSDP, or FullyShardedDataParallel wraps the model, it
    reports the lack of `bnb_4bit_quant_storage`.

    ## Why it matters
    4-bit weights are unpacked to the compute dtype, float32 unless it is said: each layer casts its half input up, and
    multiplies several times slower. They are stored as uint8, which FSDP does not flatten: it raises "Cannot flatten
    integer dtype tensors".

    ## Example
    ```python
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True)
    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16, quantization_config=config)
    ```

    ## Use instead
    ```python
    import torch
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float16)
    model = AutoModelForCausalLM.from_pretrained("gpt2", dtype=torch.float16, quantization_config=config)
    ```

    ## References
    - [bitsandbytes in transformers](https://huggingface.co/docs/transformers/quantization/bitsandbytes#compute-data-type)
    - [FSDP and QLoRA](https://huggingface.co/docs/bitsandbytes/fsdp_qlora)
    """

    code, name = "DT607", "quantised-compute-dtype"
    triggers = ("load_in_4bit",)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        configs = [
            call
            for call in facts.calls("transformers.", "diffusers.")
            if _CONFIG.fullmatch(call.name) and call.complete and is_on(call.argument(1, "load_in_4bit"))
        ]
        for config in configs:
            if not given(config.argument(None, "bnb_4bit_compute_dtype")):
                halves = _loaded_in_half(facts, config.node)
                if halves:
                    yield Finding(
                        config.node,
                        f"The 4-bit layers compute in float32, and get {halves}: each casts its input, and is slow",
                        help=f"Say `bnb_4bit_compute_dtype=torch.{halves}`",
                    )
        asked = next((call.node for call in training_arguments(facts) if _is_sharded(call)), None)
        wrapped = {id(config): node for config, node in _wrapped(facts)}
        for config in configs:
            sharded = wrapped.get(id(config.node)) or asked
            if sharded is not None and not given(config.argument(None, "bnb_4bit_quant_storage")):
                yield Finding(
                    config.node,
                    'FSDP raises "Cannot flatten integer dtype tensors": 4-bit weights are stored as uint8',
                    help="Say `bnb_4bit_quant_storage=`, the dtype of the model's other weights",
                    notes=((sharded, "FSDP is asked for here"),),
                    severity=Severity.ERROR,
                )


def _is_sharded(call: TrainerArguments) -> bool:
    return call.constant("fsdp") not in (None, "", False) and not given(call.get("fsdp_config"))


def _wrapped(facts: ModuleFacts) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The configurations of the models that FSDP is given to wrap, each with the call that wraps."""
    for call in calls_of(facts, ("torch",), "FullyShardedDataParallel"):
        made = model_behind(facts, call.argument_node(0, "module"))
        for keyword in made.keywords if made is not None else ():
            if keyword.arg == "quantization_config":
                yield facts.around.definition(keyword.value), call.node


def _loaded_in_half(facts: ModuleFacts, config: ast.Call) -> str:
    """The half dtype in which a model is loaded with a configuration; empty where there is none."""
    for call in facts.calls():
        node = call.argument_node(None, "quantization_config")
        if call.method != "from_pretrained" or node is None:
            continue
        if node is not config and facts.around.definition(node) is not config:
            continue
        value = call.argument(None, "dtype") or call.argument(None, "torch_dtype") or NONE
        dtype = dtype_of(value)
        if dtype is not None and dtype.dtypes and len(dtype.dtypes) == 1 and dtype.dtypes <= _HALVES:
            return next(iter(dtype.dtypes))
    return ""
