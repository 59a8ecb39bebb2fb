"""DT605: DeepSpeed's configuration and the framework around it ask for different precisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Const
from dtlint.rule import Finding, InSettings, Rule
from dtlint.source.settings_file import ACCELERATE, TRAINER, at, mappings
from dtlint_rules._frameworks import deepspeed_of, enabled_in, training_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.settings_file import SettingsFile
    from dtlint_rules._frameworks import TrainerArguments

__all__ = ["DeepspeedMismatch"]


class DeepspeedMismatch(Rule):
    """DeepSpeed's configuration contradicts the precision that the Trainer or accelerate asks for.

    ## What it does
    Compares `fp16` and `bf16` of the DeepSpeed configuration that TrainingArguments are given, a JSON file or a dict, with
    their own flags, in programs and in YAML and JSON files of these arguments, and `mixed_precision` of an accelerate YAML
    file with the `deepspeed_config_file` that it names.
    `"auto"`, and what the configuration leaves out, takes the framework's value.

    ## Why it matters
    The Trainer raises "Please correct the following DeepSpeed config values that mismatch TrainingArguments values", and
    accelerate "`--mixed_precision` arg cannot be set to `bf16` when `fp16` is set in the DeepSpeed config file".

    ## Example
    ```python
    from transformers import TrainingArguments

    deepspeed = {"zero_optimization": {"stage": 2}, "fp16": {"enabled": True}}
    args = TrainingArguments(output_dir="out", deepspeed=deepspeed)
    ```

    ## Use instead
    ```python
    from transformers import TrainingArguments

    deepspeed = {"zero_optimization": {"stage": 2}, "fp16": {"enabled": "auto"}}
    args = TrainingArguments(output_dir="out", deepspeed=deepspeed)
    ```

    ## References
    - [DeepSpeed in transformers](https://huggingface.co/docs/transformers/deepspeed)
    - [DeepSpeed in accelerate](https://huggingface.co/docs/accelerate/usage_guides/deepspeed)
    """

    code, name = "DT605", "deepspeed-mismatch"
    severity = Severity.ERROR
    triggers = ("deepspeed",)
    needs = (("transformers", "trl"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in training_arguments(facts):
            if not call.call.complete:
                continue
            for precision in ("fp16", "bf16"):
                asked, enabled = _asked(call, precision), deepspeed_of(facts, call, precision)
                if asked is None or enabled is None or enabled.value is None or enabled.value is asked:
                    continue
                says = f"DeepSpeed's {precision}.enabled is {enabled.value}, and the Trainer's `{precision}` is {asked}"
                told = (
                    ((enabled.file, enabled.setting.span, "enabled here"),)
                    if enabled.file is not None and enabled.setting is not None
                    else ()
                )
                yield Finding(call.node, f"Raises: {says}", help=_auto(precision), settings=told)

    def on_settings(self, file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterator[InSettings]:
        if file.kind == TRAINER:
            yield from _against(file, beside)
        asked, named = file.get("mixed_precision"), file.get("deepspeed_config", "deepspeed_config_file")
        if file.kind != ACCELERATE or asked is None or named is None or not isinstance(named.value, str):
            return
        other = {"fp16": "bf16", "bf16": "fp16"}.get(str(asked.value).lower())
        config = beside(named.value) if other is not None else None
        enabled = None if config is None or other is None else enabled_in(config, other)
        if (
            other is not None
            and config is not None
            and enabled is not None
            and enabled.value
            and enabled.setting is not None
        ):
            yield InSettings(
                asked.span,
                f"accelerate raises: mixed_precision is {asked.value}, and DeepSpeed's file enables {other}",
                _auto(other),
                ((config, enabled.setting.span, "enabled here"),),
            )


def _auto(precision: str) -> str:
    return f'Set "enabled" of "{precision}" in the DeepSpeed configuration to "auto": then the other decides'


def _against(file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterator[InSettings]:
    """The arguments of a Trainer in a file that name a DeepSpeed file. What they do not say, a command line may."""
    for mapping in mappings(file.root):
        named = at(mapping, "deepspeed")
        config = beside(named.value) if named is not None and isinstance(named.value, str) else None
        for precision, other in (("fp16", "bf16"), ("bf16", "fp16")) if config is not None else ():
            own, rival = at(mapping, precision), at(mapping, other)
            enabled = None if config is None else enabled_in(config, precision)
            if config is None or enabled is None or enabled.value is None or enabled.setting is None:
                continue
            rivals = rival is not None and rival.value is True
            asked = own.value if own is not None else False if rivals else None
            shown = own or rival
            if isinstance(asked, bool) and shown is not None and asked is not enabled.value:
                says = f"DeepSpeed's {precision}.enabled is {enabled.value}, and the Trainer's `{precision}` is {asked}"
                told = ((config, enabled.setting.span, "enabled here"),)
                yield InSettings(shown.span, f"Raises: {says}", _auto(precision), told)


def _asked(call: TrainerArguments, precision: str) -> bool | None:
    """Do the arguments ask for a precision? `*_full_eval` counts. Those of trl have bf16 by their release, and fp16 by none."""
    flags = [call.get(name) for name in (precision, f"{precision}_full_eval")]
    if Const(True) in flags:
        return True
    if any(one not in (None, Const(False)) for one in flags):
        return None
    return None if call.is_trl and precision == "bf16" and flags[0] is None else False
