"""DT601: float16 and bfloat16 are asked for at once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, InSettings, Rule
from dtlint.source.settings_file import DEEPSPEED, DEEPSPEED_KEYS, TRAINER, at, mappings
from dtlint_rules._frameworks import enabled_in, enabled_in_dict, is_on, item, training_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.settings_file import SettingsFile

__all__ = ["TwoPrecisions"]


class TwoPrecisions(Rule):
    """A framework is asked for float16 and bfloat16 at once.

    ## What it does
    Reports `fp16=True` beside `bf16=True` in the arguments of a Trainer of transformers or trl, the same of
    `fp16_full_eval` and `bf16_full_eval`, there and in YAML and JSON files of these arguments, and DeepSpeed
    configurations, in JSON files and in programs, that enable both.

    ## Why it matters
    One run computes in one of them: TrainingArguments and DeepSpeed both refuse to start.

    ## Example
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments(output_dir="out", fp16=True, bf16=True)
    ```

    ## Use instead
    ```python
    from transformers import TrainingArguments

    args = TrainingArguments(output_dir="out", bf16=True)
    ```

    ## References
    - [TrainingArguments](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
    - [DeepSpeed configuration](https://www.deepspeed.ai/docs/config-json/)
    """

    code, name = "DT601", "two-precisions"
    severity = Severity.ERROR
    triggers = ("fp16", "fp16_full_eval")
    needs = (("bf16", "bf16_full_eval", "bfloat16"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in training_arguments(facts):
            for one, other in _PAIRS:
                if is_on(call.get(one)) and is_on(call.get(other)):
                    yield Finding(call.node, f"Raises: `{one}` and `{other}` are both True", help=_HELP)
        written = False
        for node in facts.around.of_kind(ast.Dict):
            if any(item(node, key) is not None for key in DEEPSPEED_KEYS):
                enabled = [enabled_in_dict(node, name) for name in ("fp16", "bf16")]
                if all(one is not None and one.value for one in enabled):
                    written = True
                    yield Finding(node, f"DeepSpeed raises: {_BOTH}", help=_HELP)
        for seen in () if written else facts.events("two precisions of DeepSpeed"):
            yield Finding(seen.node, f"DeepSpeed raises: {_BOTH}", help=_HELP)

    def on_settings(self, file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterator[InSettings]:
        for mapping in mappings(file.root) if file.kind == TRAINER else ():
            for one, other in _PAIRS:
                found = [at(mapping, name) for name in (one, other)]
                if all(each is not None and each.value is True for each in found):
                    first, last = sorted(each.span for each in found if each is not None)
                    yield InSettings(
                        last,
                        f"The Trainer raises: {one} and {other} are both true",
                        _HELP,
                        ((file, first, "and here"),),
                    )
        fp16, bf16 = (enabled_in(file, name) for name in ("fp16", "bf16"))
        if file.kind == DEEPSPEED and fp16 and bf16 and fp16.value and bf16.value and fp16.setting and bf16.setting:
            last, first = sorted((fp16.setting.span, bf16.setting.span), reverse=True)
            yield InSettings(last, f"DeepSpeed raises: {_BOTH}", _HELP, ((file, first, "and here"),))


_PAIRS = (("fp16", "bf16"), ("fp16_full_eval", "bf16_full_eval"))
_BOTH = "fp16 and bf16 are both enabled"
_HELP = "Keep one of them"
