"""Calls that set a framework's precision, and what they say: the arguments of Trainers, DeepSpeed's configurations."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import NONE, TOP, Const, External

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts
    from dtlint.source.settings_file import SettingsFile
    from dtlint.source.settings_file import Value as Setting

__all__ = [
    "Enabled",
    "TrainerArguments",
    "deepspeed_of",
    "enabled_in",
    "enabled_in_dict",
    "given",
    "is_on",
    "model_behind",
    "training_arguments",
]

_ARGUMENTS = re.compile(r"transformers\.(?:\w+\.)*\w*TrainingArguments|trl\.(?:\w+\.)*\w+Config")


@dataclass(frozen=True)
class TrainerArguments:
    """A call that makes the arguments of a Trainer.

    Attributes:
        defaults: what a class of the project that is made from those of the library has where nothing else is given.
    """

    call: Call
    defaults: Mapping[str, Value]

    @property
    def node(self) -> ast.Call:
        """The call."""
        return self.call.node

    @property
    def is_trl(self) -> bool:
        """Are they of trl? These have `bf16` by their release."""
        return self.call.name.startswith("trl.")

    def get(self, name: str) -> Value | None:
        """The value of an argument; None where none is given, and the library's holds."""
        return self.call.argument(None, name) or self.defaults.get(name)

    def constant(self, name: str) -> object:
        """The constant given for an argument; None where it is not given, or is none."""
        value = self.get(name)
        return value.value if isinstance(value, Const) else None


def training_arguments(facts: ModuleFacts) -> Iterator[TrainerArguments]:
    """The calls that make the arguments of a Trainer of transformers or trl, or of a class that the module makes from these."""
    for call in facts.calls("transformers.", "trl."):
        if _ARGUMENTS.fullmatch(call.name):
            yield TrainerArguments(call, {})
    own = {part.name: part for part in facts.tree.body if isinstance(part, ast.ClassDef) and _is_made_from(facts, part)}
    for call in facts.calls() if own else ():
        name = call.node.func.id if isinstance(call.node.func, ast.Name) else ""
        if name in own and name == call.name.rpartition(".")[2]:
            yield TrainerArguments(call, dict(_defaults(own[name])))


def _is_made_from(facts: ModuleFacts, part: ast.ClassDef) -> bool:
    """Does a class inherit from the arguments of a Trainer, and leave their `__init__` to them?"""
    bases = [facts.value(base) for base in part.bases]
    if any(isinstance(one, ast.FunctionDef) and one.name in ("__init__", "__post_init__") for one in part.body):
        return False
    return any(isinstance(base, External) and _ARGUMENTS.fullmatch(base.name) for base in bases)


def _defaults(part: ast.ClassDef) -> Iterator[tuple[str, Value]]:
    """The constants that the fields of a dataclass have, TOP for others."""
    for field in part.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value is not None:
            value: ast.expr = field.value
            if isinstance(value, ast.Call):
                value = next((one.value for one in value.keywords if one.arg == "default"), value)
            yield field.target.id, Const(value.value) if isinstance(value, ast.Constant) else TOP


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


def deepspeed_of(facts: ModuleFacts, arguments: TrainerArguments, precision: str) -> Enabled | None:
    """What the configuration that is given as `deepspeed=` says of a precision: a file, or a dict in the program."""
    named = arguments.constant("deepspeed")
    if isinstance(named, str):
        file = facts.settings_file(named)
        return None if file is None else enabled_in(file, precision)
    node = arguments.call.argument_node(None, "deepspeed")
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


_ADAPTING = frozenset({"get_peft_model", "prepare_model_for_kbit_training", "PeftModel"})
"""What gives the model that it is given, with adapters, or prepared for them."""


def model_behind(facts: ModuleFacts, node: ast.expr | None) -> ast.Call | None:
    """The call that made a model, behind the calls of peft that it went through since."""
    for _ in range(4):
        made = None if node is None else facts.around.definition(node)
        if not isinstance(made, ast.Call):
            return None
        called = facts.value(made.func)
        if not isinstance(called, External) or called.name.rpartition(".")[2] not in _ADAPTING or not made.args:
            return made
        node = made.args[0]
    return None
