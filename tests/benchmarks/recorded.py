"""The dtypes that expressions had while packages ran: their files are rewritten as they are imported, so that each value is seen.

What a call of a function is given is seen as well. A function that another file calls with floating tensors of other dtypes than
the assumption says is not what the assumption is about: nothing is noted until it returns.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

__all__ = ["Place", "Recorder"]

Place = tuple[str, int, int, int, int]
"""The file of an expression and where it begins and ends: lines from 1, columns in characters from 0."""

_SEE = "__see_dtype__"
_EXPRESSIONS = (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp)
_LEFT_ALONE = ("super", "__class__", "locals", "globals")


class Recorder(importlib.abc.MetaPathFinder):
    """Rewrites the modules of some packages, and notes dtypes while it is told to.

    Attributes:
        dtypes: what each expression was, by its place.
        given: what each function was given: by file and line the dtypes of its parameters, "None" for None.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self.dtypes: dict[Place, set[str]] = defaultdict(set)
        self.given: dict[tuple[str, int], dict[str, set[str]]] = {}
        self._packages = frozenset(one.partition(".")[0] for one in packages)
        self._places: list[Place] = []
        self._codes: set[str] = set()
        self._assumed: torch.dtype | None = None
        self._other: list[bool] = []
        """For each call of the packages under way: is it, or one around it, given other dtypes?"""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Where a module of the packages is, with a loader that rewrites it."""
        if name.partition(".")[0] not in self._packages:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and type(spec.loader) is importlib.machinery.SourceFileLoader:
            spec.loader = _Rewriting(self, spec.loader.name, spec.loader.path)
        return spec

    @contextmanager
    def noting(self, assumed: torch.dtype) -> Iterator[None]:
        """Note what happens meanwhile, in calls whose floating arguments are of one dtype."""
        self._assumed = assumed
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(None)
            self._assumed = None
            self._other.clear()

    @contextmanager
    def noting_all(self, assumed: torch.dtype) -> Iterator[None]:
        """Note all that happens meanwhile, whatever calls are given."""
        self._assumed = assumed
        try:
            yield
        finally:
            self._assumed = None

    def rewritten(self, data: bytes, path: str) -> ast.Module:
        """The syntax of a file, with each expression seen."""
        tree = ast.parse(data)
        lines = data.decode(errors="replace").splitlines()
        self._codes.add(path)
        rewrite = _Rewrite(path, lines, self._places)
        future = (one for one in tree.body if isinstance(one, ast.ImportFrom) and one.module == "__future__")
        kept = set(map(id, future))
        tree.body = [one if id(one) in kept else rewrite.visit(one) for one in tree.body]
        return ast.fix_missing_locations(tree)

    def see(self, number: int, value: Any) -> Any:
        """Note the dtype of a value, if it is a tensor."""
        is_noted = self._assumed is not None and not (self._other and self._other[-1])
        if is_noted and issubclass(type(value), torch.Tensor):  # `isinstance` asks proxies, which may lead here again
            self.dtypes[self._places[number]].add(_text(value.dtype))
        return value

    def _on_event(self, frame: types.FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_filename not in self._codes or event not in ("call", "return"):
            return
        if event == "return":
            if self._other:
                self._other.pop()
            return
        around = bool(self._other) and self._other[-1]
        self._other.append(around or self._enters(frame, code))

    def _enters(self, frame: types.FrameType, code: types.CodeType) -> bool:
        """Note what a function is given. Does another file call it with floating tensors of another dtype?"""
        count = code.co_argcount + code.co_kwonlyargcount
        given = {name: frame.f_locals[name] for name in code.co_varnames[:count] if name in frame.f_locals}
        from_outside = frame.f_back is None or frame.f_back.f_code.co_filename != code.co_filename
        if from_outside and any(one != self._assumed for value in given.values() for one in _floating(value)):
            return True
        known = self.given.setdefault((code.co_filename, code.co_firstlineno), {})
        for name, value in given.items():
            if value is None:
                known.setdefault(name, set()).add("None")
            else:
                known.setdefault(name, set()).add(_text(value.dtype) if isinstance(value, torch.Tensor) else "")
        return False


class _Rewriting(importlib.machinery.SourceFileLoader):
    """Loads a module rewritten, and keeps no compiled copy of that."""

    def __init__(self, recorder: Recorder, name: str, path: str) -> None:
        super().__init__(name, path)
        self.recorder = recorder

    def get_code(self, fullname: str) -> types.CodeType:
        path = self.get_filename(fullname)
        tree = self.recorder.rewritten(Path(path).read_bytes(), path)
        return compile(tree, path, "exec", dont_inherit=True)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module)[_SEE] = self.recorder.see
        super().exec_module(module)


class _Rewrite(ast.NodeTransformer):
    """Hands the value of each expression to the recorder."""

    def __init__(self, path: str, lines: Sequence[str], places: list[Place]) -> None:
        self.path, self.lines, self.places = path, lines, places

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        return node

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: Any) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node  # type: ignore[no-any-return]

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if not isinstance(node, _EXPRESSIONS) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        named = node.func if isinstance(node, ast.Call) else node
        if isinstance(named, ast.Name) and named.id in _LEFT_ALONE:
            return node
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin, end = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
        self.places.append((self.path, begin[0], self._column(*begin), end[0], self._column(*end)))
        number = ast.Constant(len(self.places) - 1)
        return ast.copy_location(ast.Call(ast.Name(_SEE, ast.Load()), [number, node], []), node)

    def _column(self, line: int, byte: int) -> int:
        """A column in characters; `ast` counts the bytes of UTF-8."""
        return len(self.lines[line - 1].encode()[:byte].decode(errors="ignore"))


def _floating(value: Any) -> list[torch.dtype]:
    if isinstance(value, (int, float, str, torch.nn.Module)):
        return []
    return [one.dtype for one in tree_flatten(value)[0] if isinstance(one, torch.Tensor) and one.is_floating_point()]


def _text(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
