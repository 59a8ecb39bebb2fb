"""DT604: a precision that the framework does not know, or refuses beside another."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Const, Dtype, External, Partial
from dtlint.rule import Finding, InSettings, Rule
from dtlint.source.settings_file import ACCELERATE
from dtlint_rules._frameworks import given, is_on
from dtlint_rules._refused_settings import (
    DTYPE_NAMES,
    FP8_RECIPES,
    FP32_PRECISIONS,
    HAVE_BFLOAT16,
    LIGHTNING,
    MATMUL_PRECISIONS,
    PRECISION_PLUGINS,
    REMOVED,
    calls_of,
    choices_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.settings_file import SettingsFile

__all__ = ["RefusedPrecision"]

_ALIASES: frozenset[object] = frozenset({16, 32, 64, "16", "32", "64", "bf16"})
_MIXED = frozenset({"16-mixed", "bf16-mixed", "32-true", "64-true"})
_TRUE = frozenset({"16-true", "bf16-true"})
_ENGINES = frozenset({"transformer-engine", "transformer-engine-float16"})
_ACCELERATE = frozenset({"no", "fp16", "bf16", "fp8"})


class RefusedPrecision(Rule):
    """A framework is asked for a precision that it does not know, or refuses beside another.

    ## What it does
    Reports values of precision settings that the framework refuses:

    - `mixed_precision` of accelerate, in `Accelerator(...)` and in its YAML files, and the formats of its fp8 recipes; a
      recipe for fp8 that is handed to an Accelerator in another precision;
    - `precision` of Lightning's Trainer and Fabric: for Lightning 2 `"fp16"`, before 2.0 `"16-mixed"` and the like, with
      DeepSpeed and FSDP `"64-true"`, and with DeepSpeed before 2.1 `"bf16-true"`; `precision=` beside a precision plugin;
    - `dtype` of transformers' `from_pretrained` and `pipeline`, and the dtypes of BitsAndBytesConfig, as a text that is no
      dtype of torch, such as `"fp16"`; `load_in_8bit` beside `load_in_4bit`, and either beside a `quantization_config`;
    - E5M2 as the format of a recipe of TransformerEngine;
    - `fp32_precision` of torch's backends, and `torch.set_float32_matmul_precision`, which goes on as before;
    - casts of a model that bitsandbytes has quantised;
    - arguments that are gone: `Accelerator(fp16=True)`, `fp16_opt_level` in transformers 5, `amp_backend` in Lightning 2.

    Which release it is, is read from what the project declares; without that, what all in use refuse is reported.

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
    triggers = (
        "*precision*",
        "Accelerator",
        "from_pretrained",
        "BitsAndBytesConfig",
        "pipeline",
        "fp8_format",
        "*fp16*",
        "amp_*",
    )
    needs = (("accelerate", "torch", "*lightning*", "Accelerator", "transformers", "diffusers", "transformer_engine"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call, choice, value in choices_of(facts):
            node = call.argument_node(choice.position, choice.argument)
            at = call.node if node is None or choice.position is not None else node
            yield Finding(at, f"{choice.says} {value!r}", help=choice.help)
        for gone in REMOVED:
            package = gone.package.replace("-", "_")
            for call in calls_of(facts, (package,), *gone.names):
                for name in call.keywords.keys() & set(gone.arguments):
                    if facts.releases(gone.package).all_from(gone.since):
                        says = f"{gone.package.partition('-')[0]} raises: `{name}` is no argument any more"
                        yield Finding(call.node, says, help=gone.help)
        yield from _of_torch(facts)
        for call in calls_of(facts, LIGHTNING, "Trainer", "Fabric"):
            yield from _of_lightning(facts, call)
            yield from _beside_a_plugin(facts, call)
        for call in calls_of(facts, ("accelerate",), "Accelerator"):
            yield from _recipe_without_fp8(facts, call)
        yield from _of_quantised(facts)
        for call in facts.methods("from_pretrained"):
            yield from _loaded_as(facts, call)

    def on_settings(self, file: SettingsFile, beside: Callable[[str], SettingsFile | None]) -> Iterator[InSettings]:
        found = file.get("mixed_precision") if file.kind == ACCELERATE else None
        if found is None or not isinstance(found.value, (str, bool)) or found.value is False:
            return
        if str(found.value).lower() not in _ACCELERATE:
            shown = repr(found.value) if isinstance(found.value, str) else str(found.value).lower()
            yield InSettings(found.span, f"accelerate raises: there is no mixed precision {shown}", _KNOWN)


_KNOWN = "Use one of `no`, `fp16`, `bf16` and `fp8`"


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
    if isinstance(strategy, str) and strategy.startswith("fsdp") and value in ("64-true", "64", 64):
        yield Finding(node, f"Lightning raises: with FSDP there is no precision {value!r}", help=_FSDP)
    if isinstance(strategy, str) and strategy.startswith("deepspeed"):
        refused = {"64-true", "64", 64} | (_TRUE if releases.all_before((2, 1)) else set())
        if value in refused:
            yield Finding(node, f"Lightning raises: with DeepSpeed there is no precision {value!r}", help=_DEEPSPEED)


_FSDP = 'Use "32-true", or a mixed precision'
_DEEPSPEED = 'Use "bf16-mixed", which DeepSpeed computes in bfloat16 with float32 weights for the optimizer'


def _of_torch(facts: ModuleFacts) -> Iterator[Finding]:
    """The settings of torch for float32 products."""
    for one in facts.assignments():
        owner = one.operands[0] if one.operands else None
        if (
            not isinstance(one.node, ast.Attribute)
            or one.node.attr != "fp32_precision"
            or not isinstance(owner, External)
        ):
            continue
        known = FP32_PRECISIONS | (
            {"bf16"} if owner.name == "torch.backends" or owner.name.startswith(HAVE_BFLOAT16) else frozenset()
        )
        if owner.name.startswith("torch.backends") and isinstance(one.result, Const) and one.result.value not in known:
            yield Finding(one.node, f"torch raises: there is no fp32_precision {one.result.value!r}", help=_FP32)
    for call in facts.calls("torch.set_float32_matmul_precision"):
        value = call.constant(0, "precision")
        if isinstance(value, str) and value not in MATMUL_PRECISIONS:
            yield Finding(
                call.node, f"torch warns, and goes on as before: there is no precision {value!r}", help=_MATMUL
            )


_FP32 = 'Use one of "ieee" and "tf32"'
_MATMUL = 'Use one of "highest", "high" and "medium"'


def _beside_a_plugin(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """`precision=` beside a plugin that is a precision."""
    if not given(call.argument(None, "precision")) or call.argument_node(None, "precision") is None:
        return
    for node in _listed(facts, call.argument_node(None, "plugins")):
        made = _made_by(facts, node)
        if made in PRECISION_PLUGINS:
            yield Finding(
                call.argument_node(None, "precision") or call.node,
                f"Lightning raises for `precision=` beside {made}; before 2.2 it passes `precision=` over",
                help="Keep one of them",
                notes=((node, "the precision is set here, too"),),
            )


def _recipe_without_fp8(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """A recipe for fp8 that is handed to an Accelerator in another precision."""
    asked = call.constant(3, "mixed_precision")
    elsewhere = ("deepspeed_plugin", "deepspeed_plugins", "fsdp_plugin")
    if asked not in ("no", "fp16", "bf16") or any(given(call.argument(None, one)) for one in elsewhere):
        return
    for node in _listed(facts, call.argument_node(None, "kwargs_handlers")):
        made = _made_by(facts, node)
        if made in FP8_RECIPES:
            yield Finding(
                call.node,
                f'accelerate raises: {made} is for mixed_precision="fp8", and it is "{asked}"',
                help="Leave the recipe out, or ask for fp8",
                notes=((node, "the recipe is made here"),),
            )


def _listed(facts: ModuleFacts, node: ast.expr | None) -> list[ast.expr]:
    """What stands in a list that is written out, or a thing that is given without one."""
    if node is None:
        return []
    display = facts.around.definition(node)
    return display.elts if isinstance(display, (ast.List, ast.Tuple)) else [node]


def _made_by(facts: ModuleFacts, node: ast.expr) -> str:
    """The last part of the name of the class that a thing is made of."""
    made = facts.around.definition(node)
    called = facts.value(made.func) if isinstance(made, ast.Call) else None
    while isinstance(called, Partial):
        called = called.callee
    return called.name.rpartition(".")[2] if isinstance(called, External) else ""


_LOADERS = ("transformers", "diffusers")
_FLAGS = ("load_in_8bit", "load_in_4bit")


def _of_quantised(facts: ModuleFacts) -> Iterator[Finding]:
    """Settings that bitsandbytes refuses side by side, and casts of what it has quantised."""
    configs = {}
    for call in calls_of(facts, _LOADERS, "BitsAndBytesConfig"):
        flags = [is_on(call.argument(place, name)) for place, name in enumerate(_FLAGS)]
        if all(flags):
            yield Finding(call.node, "Raises: `load_in_8bit` and `load_in_4bit` are both True", help="Keep one of them")
        elif any(flags):
            configs[id(call.node)] = call.node
    loaded: dict[int, ast.expr] = {}
    for call in facts.methods("from_pretrained"):
        config = call.argument_node(None, "quantization_config")
        on = [name for name in _FLAGS if is_on(call.argument(None, name))]
        if on and config is not None and _is_of(facts, call, "transformers"):
            yield Finding(
                call.node, f"transformers raises for `{on[0]}` beside a `quantization_config`", help="Keep the latter"
            )
        made = None if config is None else facts.around.definition(config)
        if _is_of(facts, call, "transformers") and (id(made) in configs or (on and config is None)):
            loaded[id(call.node)] = call.node
    for call in facts.methods("half", "float", "to") if loaded else ():
        func = call.node.func
        if not isinstance(func, ast.Attribute) or (func.attr == "to" and not _asks_for_a_dtype(facts, call)):
            continue
        made = loaded.get(id(facts.around.definition(func.value)))
        if made is not None:
            yield Finding(
                call.node,
                "transformers raises: a model that bitsandbytes has quantised is not cast",
                help="Leave the cast out; `dtype=` of from_pretrained is for the layers that are not quantised",
                notes=((made, "quantised here"),),
            )


def _asks_for_a_dtype(facts: ModuleFacts, call: Call) -> bool:
    return any(isinstance(value, Dtype) for value in (*call.args, *call.keywords.values()))


def _is_of(facts: ModuleFacts, call: Call, package: str) -> bool:
    """Is it a method of a class of a package?"""
    owner = facts.value(call.node.func.value) if isinstance(call.node.func, ast.Attribute) else None
    return isinstance(owner, External) and owner.name.startswith(f"{package}.")


def _loaded_as(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """A text for a dtype that is none."""
    for name in ("dtype", "torch_dtype"):
        value = call.constant(None, name)
        if (
            isinstance(value, str)
            and value != "auto"
            and value not in DTYPE_NAMES
            and _is_of(facts, call, "transformers")
        ):
            node = call.argument_node(None, name) or call.node
            yield Finding(node, f"transformers raises: torch has no dtype {value!r}", help=_DTYPE)


_DTYPE = "Give the dtype itself, `torch.float16`"
