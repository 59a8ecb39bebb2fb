"""What an expression stands for, by how it reads: a dtype, a device, a setting, a count.

A program says so by its names and by nothing else, for what it is given may be anything.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES, DTYPES, named
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._names import last_name
from dtlint_rules._origin import Kind

if TYPE_CHECKING:
    from dtlint_rules._origin import Origin

__all__ = ["counts", "is_device", "is_setting", "names_dtype", "speaks_of_dtype", "written_dtype"]

_DEVICES = frozenset({"rank", "local_rank", "gpu", "dev", "cuda"})
_SETTINGS = re.compile(r"(?:^|[._])(?:config|cfg|args|opts?|hparams|settings)\.")
_COUNTS = re.compile(
    r"(?:^|_)(?:ids?|idx|index|indices|labels?|lengths?|lens|targets?|tokens?|steps?|timesteps?|boxes|self|args|cfg)\d*$"
)


def names_dtype(node: ast.expr) -> bool:
    """Does an expression read as a dtype: `torch.float16`, `x.dtype`, `weight_dtype`, `next(m.parameters()).dtype`,
    `get_parameter_dtype(m)`?"""
    if isinstance(node, ast.Attribute) and node.attr.endswith("dtype"):
        return True
    if isinstance(node, ast.Call):
        return last_name(node).endswith("dtype")
    if not isinstance(node, (ast.Attribute, ast.Name)):
        return False
    base, _, name = (path_of(node) or "").rpartition(".")
    return name.endswith("dtype") or (base in ("torch", "th") and (name in DTYPES or name in ALIASES))


def speaks_of_dtype(node: ast.expr) -> bool:
    """Does an expression name a dtype anywhere in it, or hand one on: `x.to(y.dtype)`, `f(x, out_dtype=other)`?"""
    return any(map(_is_called_dtype, nodes([node])))


def _is_called_dtype(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("dtype")
    if isinstance(node, ast.Name):
        return node.id.endswith("dtype")
    return isinstance(node, ast.keyword) and node.arg is not None and node.arg.endswith("dtype")


def written_dtype(node: ast.expr) -> str | None:
    """The dtype of torch that an expression is, written out: "float16" of `torch.half`; None for all else."""
    package, _, name = (path_of(node) or "").rpartition(".")
    return named(name) if package in ("torch", "th") else None


def is_device(node: ast.expr) -> bool:
    """Does an expression read as a device: `device`, `self.device`, `x.device`, `"cuda"`, a rank?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    name = (path_of(node) or last_name(node)).rpartition(".")[2]
    return "device" in name.lower() or name in _DEVICES


def is_setting(path: str) -> bool:
    """Is a path one of numbers, strings and switches: `self.config.hidden_size`?"""
    return _SETTINGS.search(path) is not None


def counts(origin: Origin) -> bool:
    """Is what was given no floating tensor, by its name: ids, labels, lengths?"""
    return origin.kind == Kind.GIVEN and _names_count(origin.text)


@lru_cache(maxsize=16_384)
def _names_count(text: str) -> bool:
    last = re.sub(r"\W+", " ", text).strip().rpartition(" ")[2]
    return _COUNTS.search(last) is not None
