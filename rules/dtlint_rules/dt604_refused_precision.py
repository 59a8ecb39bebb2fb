"""DT604: a precision that the framework does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.rule import Finding, InSettings, Rule
from dtlint.source.settings_file import ACCELERATE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.settings_file import SettingsFile

__all__ = ["RefusedPrecision"]

_LIGHTNING = tuple(
    f"{package}{name}"
    for package in ("lightning.", "lightning.pytorch.", "pytorch_lightning.", "lightning.fabric.", "lightning_fabric.")
    for name in ("Trainer", "Fabric")
)
_ALIASES: frozenset[object] = frozenset({16, 32, 64, "16", "32", "64", "bf16"})
_MIXED = frozenset({"16-mixed", "bf16-mixed", "32-true", "64-true"})
_TRUE = frozenset({"16-true", "bf16-true"})
_ENGINES = frozenset({"transformer-engine", "transformer-engine-float16"})
_ACCELERATE = frozenset({"no", "fp16", "bf16", "fp8"})


class RefusedPrecision(Rule):
    """A framework is asked for a precision that it does not know.

    ## What it does
    Reports `mixed_precision` of accelerate, in `Accelerator(...)` and in its YAML files, and `precision` of Lightning's
    Trainer and Fabric, with a value that these refuse: for Lightning 2 `"fp16"`, before 2.0 `"16-mixed"` and the like, with
    DeepSpeed `"64-true"`, and before 2.1 `"bf16-true"`. Which release it is, is read from what the project declares;
    without that, what all since 1.9 refuse is reported. `Accelerator(fp16=True)` is no longer known either.

    ## Why it matters
    The program raises before it trains.

    ## Example
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="float16")
    ```

    ## Use instead
    ```python
    from accelerate import Accelerator

    accelerator = Accelerator(mixed_precision="fp16")
    ```

    ## References
    - [Accelerator](https://huggingface.co/docs/accelerate/package_reference/accelerator)
    - [Lightning: precision](https://lightning.ai/docs/pytorch/stable/common/trainer.html#precision)
    """

    code, name = "DT604", "refused-precision"
    severity = Severity.ERROR
    triggers = ("mixed_precision", "precision", "Accelerator")
    needs = (("accelerate", "*lightning*", "Accelerator"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls("accelerate.Accelerator"):
            value = call.constant(3, "mixed_precision")
            if isinstance(value, str) and value not in _ACCELERATE:
                yield Finding(call.node, f"accelerate raises: there is no mixed precision {value!r}", help=_KNOWN)
            if "fp16" in call.keywords and facts.releases("accelerate").all_from((0, 20)):
                yield Finding(call.node, "accelerate raises: `fp16` is no argument any more", help=_INSTEAD)
        for call in facts.calls(*_LIGHTNING):
            yield from _of_lightning(facts, call)

    def on_settings(self, file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterator[InSettings]:
        found = file.get("mixed_precision") if file.kind == ACCELERATE else None
        if found is None or not isinstance(found.value, (str, bool)) or found.value is False:
            return
        if str(found.value).lower() not in _ACCELERATE:
            shown = repr(found.value) if isinstance(found.value, str) else str(found.value).lower()
            yield InSettings(found.span, f"accelerate raises: there is no mixed precision {shown}", _KNOWN)


_KNOWN = "Use one of `no`, `fp16`, `bf16` and `fp8`"
_INSTEAD = 'Write mixed_precision="fp16"'


def _of_lightning(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    value = call.constant(None, "precision")
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return
    node = call.argument_node(None, "precision") or call.node
    package = "pytorch-lightning" if call.name.startswith("pytorch_lightning.") else "lightning"
    releases = facts.releases(package)
    known = _ALIASES | _MIXED | _TRUE | _ENGINES
    if releases.all_before((2, 0)):
        known = _ALIASES
    elif releases.all_before((2, 1)) and call.name.endswith(".Trainer"):
        known = _ALIASES | _MIXED
    if value not in known:
        text = ", ".join(sorted(map(str, known - _ENGINES)))
        yield Finding(node, f"Lightning raises: there is no precision {value!r}", help=f"Use one of {text}")
        return
    strategy = call.constant(None, "strategy")
    if isinstance(strategy, str) and strategy.startswith("deepspeed"):
        refused = {"64-true", "64", 64} | (_TRUE if releases.all_before((2, 1)) else set())
        if value in refused:
            yield Finding(node, f"Lightning raises: with DeepSpeed there is no precision {value!r}", help=_DEEPSPEED)


_DEEPSPEED = 'Use "bf16-mixed", which DeepSpeed computes in bfloat16 with float32 weights for the optimizer'
