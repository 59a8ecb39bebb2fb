"""Calls that set a framework's precision, and what they say: the arguments of Trainers, DeepSpeed's configurations."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, Const

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.settings_file import SettingsFile
    from dtlint.source.settings_file import Value as Setting

__all__ = ["Enabled", "deepspeed_of", "enabled_in", "enabled_in_dict", "given", "is_on", "training_arguments"]

_ARGUMENTS = re.compile(r"transformers\.(?:\w+\.)*\w*TrainingArguments|trl\.(?:\w+\.)*\w+Config")


def training_arguments(facts: ModuleFacts) -> Iterator[Call]:
    """The calls that make the arguments of a Trainer of transformers or trl."""
    return (call for call in facts.calls("transformers.", "trl.") if _ARGUMENTS.fullmatch(call.name))


def is_on(value: Value | None) -> bool:
    """Is a flag certainly set?"""
    return value == Const(True)


def given(value: Value | None) -> bool:
    """Is an argument given, and not as None or an empty text?"""
    return value not in (None, NONE, Const(""))


@dataclass(frozen=True)
class Enabled:
    """Whether a DeepSpeed configuration enables a precision, and where it says so.

    Attributes:
        value: True or False; None where it is to be filled in, or is not known.
        file, setting: the settings file, and the entry in it; None where the configuration stands in the program.
    """

    value: bool | None
    file: SettingsFile | None = None
    setting: Setting | None = None


_BLOCKS = {"fp16": ("fp16",), "bf16": ("bf16", "bfloat16")}


def enabled_in(file: SettingsFile, precision: str) -> Enabled | None:
    """What a DeepSpeed file says of `fp16` or `bf16`; None where it says nothing."""
    for name in _BLOCKS[precision]:
        found = file.get(name, "enabled")
        if found is not None:
            return Enabled(found.value if isinstance(found.value, bool) else None, file, found)
    return None


def deepspeed_of(facts: ModuleFacts, call: Call, precision: str) -> Enabled | None:
    """What the configuration that a call is given as `deepspeed=` says of a precision: a file, or a dict in the program."""
    named = call.constant(None, "deepspeed")
    if isinstance(named, str):
        file = facts.settings_file(named)
        return None if file is None else enabled_in(file, precision)
    node = call.argument_node(None, "deepspeed")
    display = None if node is None else facts.around.definition(node)
    return enabled_in_dict(display, precision) if isinstance(display, ast.Dict) else None


def enabled_in_dict(display: ast.Dict, precision: str) -> Enabled | None:
    """What a DeepSpeed configuration that is written out says of a precision; None where it says nothing."""
    for name in _BLOCKS[precision]:
        block = item(display, name)
        value = item(block, "enabled") if isinstance(block, ast.Dict) else None
        if value is not None:
            is_bool = isinstance(value, ast.Constant) and isinstance(value.value, bool)
            return Enabled(value.value if is_bool else None)  # type: ignore[attr-defined]
    return None


def item(display: ast.Dict, key: str) -> ast.expr | None:
    """What stands under a key in a dict that is written out."""
    for name, value in zip(display.keys, display.values, strict=True):
        if isinstance(name, ast.Constant) and name.value == key:
            return value
    return None
