"""Precision settings that frameworks refuse, or pass over: which value of which argument, and which beside which other.

Each row is read off the framework's source: accelerate 1.15, Lightning 2.6, transformers 5.23, diffusers 0.42, torch 2.13, and
TransformerEngine 2; the checks that it names stand there since the release that a row tells, or since the argument is there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES, DTYPES
from dtlint.infer.domain.values import External

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = [
    "DTYPE_NAMES",
    "FP8_RECIPES",
    "FP32_PRECISIONS",
    "HAVE_BFLOAT16",
    "LIGHTNING",
    "MATMUL_PRECISIONS",
    "PRECISION_PLUGINS",
    "REMOVED",
    "Choice",
    "Removed",
    "calls_of",
    "choices_of",
    "last_name",
]

LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
DTYPE_NAMES = frozenset({*DTYPES, *ALIASES})
"""The texts that `getattr(torch, ...)` makes a dtype of."""
FP8_RECIPES = ("FP8RecipeKwargs", "TERecipeKwargs", "AORecipeKwargs", "MSAMPRecipeKwargs")
"""accelerate's handlers that set `has_fp8_handler`: with another `mixed_precision` it raises, FSDP and DeepSpeed aside."""
FP32_PRECISIONS = frozenset({"ieee", "tf32", "none"})
HAVE_BFLOAT16 = "torch.backends.mkldnn"
"""What `fp32_precision` of torch's backends takes, and the backend that takes "bf16" besides, as does the setting of all."""
MATMUL_PRECISIONS = frozenset({"highest", "high", "medium"})
"""What `torch.set_float32_matmul_precision` knows. It warns of others, and has no effect."""
PRECISION_PLUGINS = tuple(
    f"{name}{suffix}"
    for name in (
        "Mixed",
        "Half",
        "Double",
        "FSDP",
        "DeepSpeed",
        "Bitsandbytes",
        "TransformerEngine",
        "XLA",
        "FSDPMixed",
    )
    for suffix in ("Precision", "PrecisionPlugin")
)
"""Lightning's plugins that are a precision. Since 2.2 `precision=` beside one raises; before, it was passed over."""


@dataclass(frozen=True)
class Choice:
    """An argument that takes some values alone.

    Attributes:
        packages: the first parts of the names that the callables go by.
        names: the last parts.
        position: the argument's position; None where it is given by name.
        known: the values that it takes; None where only some are `refused`.
        refused: the last parts of the names of values that it does not take.
        says: what happens else, before the value.
        help: what it takes.
        any_case: are the values taken in upper and lower case?
    """

    packages: tuple[str, ...]
    names: tuple[str, ...]
    argument: str
    position: int | None
    known: frozenset[object] | None
    says: str
    help: str
    refused: frozenset[str] = frozenset()
    any_case: bool = False


def _texts(*values: str) -> str:
    return "Use one of " + ", ".join(f'"{value}"' for value in values)


def _of(packages: tuple[str, ...], names: tuple[str, ...], argument: str, values: tuple[str, ...], says: str) -> Choice:
    return Choice(packages, names, argument, None, frozenset(values), says, _texts(*values))


_MIXED = ("16-mixed", "bf16-mixed")
_TRUE = ("16-true", "bf16-true")
_FP8 = ("FP8RecipeKwargs", "TERecipeKwargs")
_CHOICES = (
    Choice(
        ("accelerate",),
        ("Accelerator", "AcceleratorState"),
        "mixed_precision",
        3,
        frozenset({"no", "fp16", "bf16", "fp8"}),
        "accelerate raises: there is no mixed precision",
        "Use one of `no`, `fp16`, `bf16` and `fp8`",
    ),
    Choice(
        ("accelerate",),
        _FP8,
        "fp8_format",
        None,
        frozenset({"HYBRID", "E4M3", "E5M2"}),
        "accelerate raises: there is no fp8 format",
        _texts("HYBRID", "E4M3"),
        any_case=True,
    ),
    Choice(
        ("accelerate",),
        _FP8,
        "amax_compute_algo",
        None,
        frozenset({"max", "most_recent"}),
        "accelerate raises: there is no way to compute amax that is called",
        _texts("max", "most_recent"),
        any_case=True,
    ),
    _of(
        ("accelerate",),
        ("FullyShardedDataParallelPlugin",),
        "mixed_precision_policy",
        ("fp16", "bf16", "fp32", "fp8"),
        "accelerate raises: there is no mixed precision",
    ),
    _of(LIGHTNING, ("MixedPrecision",), "precision", _MIXED, "Lightning raises: MixedPrecision takes no"),
    _of(LIGHTNING, ("HalfPrecision",), "precision", _TRUE, "HalfPrecision casts to float16 for"),
    *(
        _of(LIGHTNING, (name,), "precision", ("32-true", *_TRUE, *_MIXED), f"Lightning raises: {name} takes no")
        for name in ("FSDPPrecision", "DeepSpeedPrecision")
    ),
    _of(
        LIGHTNING,
        ("BitsandbytesPrecision",),
        "mode",
        ("nf4", "nf4-dq", "fp4", "fp4-dq", "int8", "int8-training"),
        "Lightning raises: there is no mode",
    ),
    Choice(
        ("transformers", "diffusers"),
        ("BitsAndBytesConfig",),
        "bnb_4bit_compute_dtype",
        None,
        DTYPE_NAMES,
        "Raises: torch has no dtype",
        "Give the dtype itself, `torch.bfloat16`",
    ),
    _of(
        ("transformers", "diffusers"),
        ("BitsAndBytesConfig",),
        "bnb_4bit_quant_storage",
        ("float16", "float32", "int8", "uint8", "float64", "bfloat16"),
        "Raises: 4-bit weights are not stored as",
    ),
    _of(
        ("transformers", "diffusers"),
        ("BitsAndBytesConfig",),
        "bnb_4bit_quant_type",
        ("fp4", "nf4"),
        "bitsandbytes raises: there is no 4-bit type",
    ),
    *(
        Choice(
            ("transformers",),
            ("pipeline",),
            name,
            None,
            DTYPE_NAMES | {"auto"},
            "transformers raises: torch has no dtype",
            "Give the dtype itself, `torch.float16`",
        )
        for name in ("dtype", "torch_dtype")
    ),
    Choice(
        ("transformer_engine",),
        ("DelayedScaling", "Float8CurrentScaling", "MXFP8BlockScaling", "Float8BlockScaling"),
        "fp8_format",
        None,
        None,
        "TransformerEngine raises: weights and activations are not trained in",
        "Use Format.HYBRID, which has E5M2 for gradients alone",
        refused=frozenset({"E5M2"}),
    ),
)


@dataclass(frozen=True)
class Removed:
    """An argument that a framework no longer has: it raises a TypeError.

    Attributes:
        since: the release that has it no more.
    """

    package: str
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    since: tuple[int, int]
    help: str


_TRAINER_ARGUMENTS = ("TrainingArguments", "Seq2SeqTrainingArguments")
REMOVED = (
    Removed("accelerate", ("Accelerator",), ("fp16",), (0, 20), 'Write mixed_precision="fp16"'),
    Removed(
        "transformers",
        _TRAINER_ARGUMENTS,
        ("fp16_backend", "half_precision_backend", "fp16_opt_level"),
        (5, 0),
        "Leave it out: `fp16=True` is torch's own autocast and scaler",
    ),
    Removed("lightning", ("Trainer",), ("amp_backend", "amp_level"), (2, 0), 'Say precision="16-mixed" alone'),
    Removed("pytorch-lightning", ("Trainer",), ("amp_backend", "amp_level"), (2, 0), 'Say precision="16-mixed" alone'),
)


def last_name(call: Call) -> str:
    """The name of what is called, without what it is part of."""
    return call.name.rpartition(".")[2]


def calls_of(facts: ModuleFacts, packages: tuple[str, ...], *names: str) -> Iterator[Call]:
    """The calls of what goes by one of these names in one of these packages, whichever module of it that comes from."""
    return (call for call in facts.calls(*(f"{one}." for one in packages)) if last_name(call) in names)


def choices_of(facts: ModuleFacts) -> Iterator[tuple[Call, Choice, object]]:
    """The calls in which an argument has a value that it does not take, with that value."""
    for choice in _CHOICES:
        for call in calls_of(facts, choice.packages, *choice.names):
            given = call.argument(choice.position, choice.argument)
            if isinstance(given, External) and given.name.rpartition(".")[2] in choice.refused:
                yield call, choice, given.name.rpartition(".")[2]
            value = call.constant(choice.position, choice.argument)
            if choice.known is None or not isinstance(value, str):
                continue
            spelt = {value, value.upper(), value.lower()} if choice.any_case else {value}
            if choice.known.isdisjoint(spelt):
                yield call, choice, value
