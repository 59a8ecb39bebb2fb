"""Holds what is known of a program against a run of it: every expression that is a tensor, and what its variables are."""

from __future__ import annotations

import ast
import builtins
import math
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtlint.infer.domain.values import (
    Array,
    Const,
    Dtype,
    External,
    Function,
    Many,
    Mapping,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
    may_be_absent,
    present,
)
from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import Program, read
from dtlint.infer.models.plain_tensors import WEIGHTS
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dtlint.infer.domain.interval import Range

__all__ = ["HEAD", "contradicted", "inexact", "known", "loose", "mistaken"]

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
S = torch.zeros(2)
H = S.half()
D = S.double()
"""
"""What programs begin with: tensors of three dtypes, and the usual imports."""

_SEEN = (ast.Call, ast.BinOp, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)
Place = tuple[int, int, int, int]


def known(text: str) -> dict[str, str]:
    """The dtypes of each tensor expression, by its source: `{"x * 2": "float16"}`; of those of one text the last one's."""
    source = HEAD + textwrap.dedent(text)
    program = _read(source)
    found: dict[str, str] = {}
    nodes = sorted(program.facts.tensors(), key=lambda each: _place(each[0])[:2])
    for node, _, value in nodes:
        dtypes = getattr(value, "dtypes", None)
        if dtypes:
            found[ast.get_source_segment(source, node) or ""] = "|".join(sorted(dtypes))
    return found


def contradicted(text: str, installed: Sequence[Path] = ()) -> list[str]:
    """The claims for a program that running it shows to be wrong, `installed` being folders of packages.

    Raises:
        ImportError: torch is not there.
    """
    return [
        f"{text}: {sorted(ran)} ran, claimed was {sorted(_dtypes(value) or ())}"
        for text, ran, value in _ran_and_claimed(text, installed)
        if ran - (_dtypes(value) or ran)
    ]


def inexact(text: str, installed: Sequence[Path] = ()) -> list[str]:
    """The tensor expressions of a program for which what ran is not just what is claimed, those aside that are told by what
    a caller decides.

    Raises:
        ImportError: torch is not there.
    """
    return [
        f"{text}: {sorted(ran)} ran, claimed was {sorted(_dtypes(value) or ())}"
        for text, ran, value in _ran_and_claimed(text, installed)
        if ran and ran != _dtypes(value) and getattr(value, "symbol", None) is None
    ]


def _dtypes(value: Value | None) -> frozenset[str] | None:
    return value.dtypes if isinstance(value, (Tensor, Unknown)) else None


def _ran_and_claimed(text: str, installed: Sequence[Path] = ()) -> list[tuple[str, set[str], Value | None]]:
    """Each tensor expression, the dtypes that it had when it ran, and what is claimed of it."""
    import torch

    source = HEAD + textwrap.dedent(text)
    seen: dict[Place, set[str]] = {}

    def see(place: Place, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            seen.setdefault(place, set()).add(str(value.dtype).removeprefix("torch."))
        return value

    tree = ast.fix_missing_locations(_Seeing().visit(ast.parse(source)))
    _run(tree, {"_see": see})
    program = _read(source, installed)
    claimed = {_place(node): value for node, module, value in program.facts.tensors() if module is program.main}
    assert seen
    nodes = {_place(node): node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.expr)}
    return [
        (ast.get_source_segment(source, nodes[place]) or "", seen.get(place, set()), claimed.get(place))
        for place in dict.fromkeys((*seen, *claimed))
        if place in nodes
    ]


def mistaken(text: str) -> list[str]:
    """The global variables of a program that are found to be something else when it is run."""
    return [f"{name} = {real!r}, taken for {value!r}" for name, value, real, holds, _ in _compared(text) if not holds]


def loose(text: str) -> set[str]:
    """The global variables of a program of which less is known than what they are: a dtype, a constant."""
    return {name for name, _, _, _, exact in _compared(text) if not exact}


def _compared(text: str) -> list[tuple[str, Value, Any, bool, bool]]:
    source = HEAD + textwrap.dedent(text)
    names = _run(ast.parse(source), {})
    program = _read(source)
    ctx = program.context
    address = ctx.frame.address
    found = []
    for name, real in names.items():
        if name.startswith("__") or type(real) in (type(ast), type, type(_place)) or name in _BEFORE:
            continue
        value = ctx.store.objects[address].get(name)
        assert value is not None, f"{name} is not bound: {source}"
        standing = _Standing(program)
        found.append((name, value, real, standing.holds(value, real), standing.exact(value, real)))
    assert found
    return found


_BEFORE = frozenset({"S", "H", "D"})


def _run(tree: ast.Module, more: dict[str, Any]) -> dict[str, Any]:
    import torch

    names: dict[str, Any] = {"__name__": "__main__", **more}
    usual = torch.get_default_dtype()
    try:
        builtins.exec(compile(tree, "program.py", "exec", dont_inherit=True), names)
    finally:
        torch.set_default_dtype(usual)
    return names


def _read(source: str, installed: Sequence[Path] = ()) -> Program:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(source)
        return read(path, [path.parent, *installed], Disk())


def _place(node: ast.AST) -> Place:
    return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


class _Standing:
    """Whether a value stands for what a run has given."""

    def __init__(self, program: Program) -> None:
        self.store = program.context.store
        self.seen: set[tuple[int, int]] = set()

    def holds(self, value: Value, real: Any) -> bool:
        """Is what ran among what the value stands for?"""
        return any(self._holds(one, real) for one in choices(value) if present(one) is not None)

    def _holds(self, value: Value, real: Any) -> bool:
        import numpy
        import torch

        if isinstance(value, (Unknown, Tensor)):
            if not isinstance(real, torch.Tensor):
                return isinstance(value, Unknown)
            dtypes = value.dtypes
            if dtypes is not None and str(real.dtype).removeprefix("torch.") not in dtypes:
                return False
            return isinstance(value, Unknown) or (_has_rank(value.rank, real) and _within(value.range, real))
        if isinstance(value, Array):
            is_scalar = isinstance(real, numpy.generic)
            if not isinstance(real, numpy.ndarray) and not is_scalar:
                return False
            known = value.dtypes is None or str(real.dtype) in value.dtypes
            return known and value.scalar in (None, is_scalar)
        if isinstance(value, Const):
            return type(real) is type(value.value) and (real == value.value or real != real)
        if isinstance(value, Number):
            return type(real).__name__ == _PYTHON[value.category.name] and _between(value.range, real)
        if isinstance(value, Dtype):
            dtypes = value.dtypes
            return isinstance(real, torch.dtype) and (dtypes is None or str(real).removeprefix("torch.") in dtypes)
        if isinstance(value, Ref):
            return self._object_holds(value, real)
        return self._content_holds(value, real)

    def _content_holds(self, value: Value, real: Any) -> bool:
        if isinstance(value, Tuple) and isinstance(real, (list, tuple)):
            if value.names and value.names != getattr(real, "_fields", ()):
                return False
            return len(value.items) == len(real) and all(map(self.holds, value.items, real))
        if isinstance(value, (Tuple, Many)) and isinstance(real, (set, frozenset, list, tuple)):
            items = value.items if isinstance(value, Tuple) else (value.item,)
            return all(any(self.holds(item, one) for item in items) for one in real)
        if isinstance(value, Mapping) and isinstance(real, dict):
            return self._mapping_holds(value, real)
        if isinstance(value, (Tuple, Many)):
            return hasattr(real, "__iter__")
        if isinstance(value, (Function, External, ProjectClass)):
            return callable(real) or isinstance(value, External)
        return True

    def _mapping_holds(self, value: Mapping, real: dict[Any, Any]) -> bool:
        left = dict(real)
        for key, item in value.items:
            place = next((name for name in left if self.holds(key, name)), None)
            if place is None:
                if not may_be_absent(item):
                    return False
            elif not self.holds(item, left.pop(place)):
                return False
        return not left or (value.rest is not None and all(self.holds(value.rest, one) for one in left.values()))

    def _object_holds(self, value: Ref, real: Any) -> bool:
        key = id(value.address), id(real)
        if key in self.seen:
            return True
        self.seen.add(key)
        kind = value.address.kind
        fields = self.store.objects[value.address]
        content = fields.get(CONTENT)
        if kind in WEIGHTS:
            return content is None or self._holds(content, real)
        if isinstance(kind, ProjectClass):
            if type(real).__name__ != kind.definition.name:
                return False
            held = getattr(real, "__dict__", {})
            named = [(name, one) for name, one in fields.items() if isinstance(name, str) and not name.startswith("*")]
            return all(name not in held or self.holds(one, held[name]) for name, one in named)
        if isinstance(content, (Tuple, Many, Mapping)) and isinstance(real, (list, tuple, dict, set, frozenset)):
            return self._content_holds(content, real)
        return True

    def exact(self, value: Value, real: Any) -> bool:
        """Is as much known as can be told: a dtype, a constant, each item?"""
        value = present(value) or value
        if isinstance(value, Ref):
            content = self.store.objects[value.address].get(CONTENT)
            if content is None:
                return isinstance(value.address.kind, ProjectClass)
            value = content
        if isinstance(value, (Tensor, Array)):
            return value.dtypes is not None and len(value.dtypes) == 1
        if isinstance(value, Number):
            return isinstance(real, float) or value.category.name == "INTEGER"
        if isinstance(value, Tuple):
            items = list(real) if isinstance(real, (list, tuple)) else [None] * len(value.items)
            return len(items) == len(value.items) and all(map(self.exact, value.items, items))
        if isinstance(value, Mapping) and isinstance(real, dict):
            return value.rest is None and all(map(self.exact, dict(value.items).values(), real.values()))
        if isinstance(value, Many):
            return bool(real) and self.exact(value.item, None)
        if isinstance(value, Unknown):
            return value.dtypes == frozenset() and isinstance(real, str)
        return len(choices(value)) == 1


_PYTHON = {"BOOL": "bool", "INTEGER": "int", "FLOAT": "float", "COMPLEX": "complex"}


def _has_rank(rank: int | None, real: Any) -> bool:
    return rank is None or rank == real.dim() or (rank == -1 and real.dim() > 0)


def _between(bounds: Range, real: Any) -> bool:
    if isinstance(real, complex):
        return True
    number = float(real)
    if math.isnan(number):
        return bounds.nan
    return (
        bounds.low <= number <= bounds.high and (number != 0 or bounds.zero) and (math.isfinite(number) or bounds.inf)
    )


def _within(bounds: Range, real: Any) -> bool:
    if not real.numel() or real.is_complex():
        return True
    finite = real.detach().double().flatten()
    return all(_between(bounds, number) or abs(number) > 1e4 for number in finite.tolist())


class _Seeing(ast.NodeTransformer):
    """Puts `_see(place, ...)` around what is computed, but for what is called or has its attribute taken."""

    def visit(self, node: ast.AST) -> Any:
        seen = isinstance(node, _SEEN) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        made = super().visit(node)
        if not seen:
            return made
        return ast.copy_location(ast.Call(ast.Name("_see", ast.Load()), [ast.Constant(_place(node)), made], []), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        node.body = [self.visit(statement) for statement in node.body]
        return node
