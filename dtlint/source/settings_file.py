"""Files in which frameworks keep their precision settings, with the place of each value: accelerate's YAML, DeepSpeed's JSON,
and the arguments of Trainers in either.

Which files these are is told by their keys: `accelerate config` writes `compute_environment`, `distributed_type` and
`mixed_precision` at the top of a YAML file; a DeepSpeed configuration is one object with a batch size or the stages of ZeRO. The
arguments of a Trainer, which programs spread into TrainingArguments, have `per_device_train_batch_size` or its like among them.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dtlint.diagnostic import Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "ACCELERATE",
    "DEEPSPEED",
    "DEEPSPEED_KEYS",
    "SUFFIXES",
    "TRAINER",
    "SettingsFile",
    "UnreadableSettings",
    "Value",
    "at",
    "is_settings",
    "kind_of",
    "mappings",
    "may_hold_precision",
]

SUFFIXES = (".yaml", ".yml", ".json")
ACCELERATE, DEEPSPEED, TRAINER = "accelerate", "deepspeed", "trainer"

_LARGEST = 64 * 1024
"""Bytes: what is larger was not written by hand, and holds data."""
_ACCELERATE = re.compile(rb"^(?:compute_environment|distributed_type)[ \t]*:", re.MULTILINE)
_PRECISION = re.compile(rb"^(?:mixed_precision|fp16|deepspeed_config|fsdp_config)[ \t]*:", re.MULTILINE)
_TRAINER = re.compile(rb"\bper_device_(?:train|eval)_batch_size\b")
_OF_TRAINER = re.compile(rb"\b(?:fp16|bf16|(?:fp16|bf16)_full_eval)\b")
DEEPSPEED_KEYS = frozenset({
    "zero_optimization", "train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps",
})  # fmt: skip
"""Keys of which a DeepSpeed configuration has one."""


class UnreadableSettings(ValueError):
    """A file is no YAML, or no JSON. The message is one line, and tells the line of the file."""


@dataclass(frozen=True)
class Value:
    """A value of a settings file.

    Attributes:
        value: a dict of these by key, a list of these, or a scalar as the framework reads it.
        span: where it stands; of what is in a mapping, with its key.
    """

    value: Any
    span: Span


@dataclass(frozen=True)
class SettingsFile:
    """A settings file of a framework.

    Attributes:
        shown: its path, as reports show it.
        kind: whose it is: ACCELERATE, DEEPSPEED or TRAINER; empty for others.
        root: all that it holds.
    """

    shown: str
    file: Path
    text: str
    kind: str
    root: Value = field(repr=False)

    @classmethod
    def from_bytes(cls, data: bytes, shown: str, file: Path) -> SettingsFile:
        """A file of these bytes.

        Raises:
            UnreadableSettings: it is no YAML, or no JSON, as its suffix says.
        """
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise UnreadableSettings(f"{shown}:{line}: the file is not encoded in UTF-8") from None
        is_json = shown.endswith(".json")
        if is_json:
            try:
                json.loads(text)
            except (ValueError, RecursionError) as error:
                line = getattr(error, "lineno", 1)
                raise UnreadableSettings(f"{shown}:{line}: not valid JSON: {getattr(error, 'msg', error)}") from None
        root = _composed(text.replace("\t", " ") if is_json else text, shown)
        return cls(shown, file, text, kind_of(data, shown), root)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of the text."""
        return tuple(self.text.splitlines())

    def get(self, *keys: str) -> Value | None:
        """The value under a path of keys; None where there is none."""
        return at(self.root, *keys)


def at(value: Value, *keys: str) -> Value | None:
    """The value below another, under a path of keys; None where there is none."""
    found: Value | None = value
    for key in keys:
        found = found.value.get(key) if found is not None and isinstance(found.value, dict) else None
    return found


def is_settings(path: str) -> bool:
    """Does a path name a file that is read as settings, and not as Python?"""
    return path.endswith(SUFFIXES)


def may_hold_precision(path: str) -> bool:
    """Is a file of one of the suffixes a settings file of a framework?"""
    try:
        if os.stat(path).st_size > _LARGEST:
            return False
        with open(path, "rb", buffering=0) as file:
            data = file.read()
    except OSError:
        return False
    return kind_of(data, path) != ""


def kind_of(data: bytes, path: str) -> str:
    """Whose settings a file holds, by its keys; empty where it is not known."""
    if not path.endswith(".json"):
        return ACCELERATE if _ACCELERATE.search(data) and _PRECISION.search(data) else _trainers(data)
    if b'"fp16"' not in data and b'"bf16"' not in data:
        return _trainers(data)
    try:
        held = json.loads(data)
    except (ValueError, RecursionError):
        return DEEPSPEED if any(f'"{key}"'.encode() in data for key in DEEPSPEED_KEYS) else _trainers(data)
    blocks = isinstance(held, dict) and any(isinstance(held.get(name), dict) for name in ("fp16", "bf16"))
    return DEEPSPEED if blocks and not DEEPSPEED_KEYS.isdisjoint(held) else _trainers(data)


def _trainers(data: bytes) -> str:
    return TRAINER if _TRAINER.search(data) and _OF_TRAINER.search(data) else ""


def mappings(value: Value) -> Iterator[Value]:
    """The mappings in a value, itself first."""
    if isinstance(value.value, dict):
        yield value
    inner = (
        value.value.values() if isinstance(value.value, dict) else value.value if isinstance(value.value, list) else ()
    )
    for one in inner:
        yield from mappings(one)


def _composed(text: str, shown: str) -> Value:
    """The values of a text with their places, nothing of it run."""
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return Value(None, Span(1, 0, 1, 0)) if node is None else _value(node, None, set())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise UnreadableSettings(f"{shown}:{line}: not valid YAML: {problem}") from None
    except (RecursionError, ValueError):
        raise UnreadableSettings(f"{shown}:1: not valid YAML: it is nested too deeply, or holds itself") from None


def _value(node: Any, key: Any, around: set[int]) -> Value:
    start, end = (node if key is None else key).start_mark, node.end_mark
    if id(node) in around:
        raise ValueError("an alias of what it stands in")
    inner = around | {id(node)}
    if node.id == "mapping":
        held: Any = {name.value: _value(item, name, inner) for name, item in _pairs(node)}
    elif node.id == "sequence":
        held = [_value(item, None, inner) for item in node.value]
    else:
        held = _scalar(node)
    line = end.line if end.column or end.line == start.line else end.line - 1  # a block ends where the next line begins
    column = end.column if line == end.line else start.column + 1
    return Value(held, Span(start.line + 1, start.column, line + 1, column))


def _pairs(node: Any) -> Iterator[tuple[Any, Any]]:
    return ((key, item) for key, item in node.value if key.id == "scalar")


def _scalar(node: Any) -> Any:
    """A scalar as YAML reads it; what it has no such form for, as its text."""
    import yaml

    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ValueError):
        return node.value
