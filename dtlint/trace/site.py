"""From a running frame to a place in the user's source, and from a backward operator to its forward line.

A site is one instruction of user code while one module runs. Autograd numbers its nodes, and both directions
know the number: a ring from number to site attributes the backward exactly, without hooks.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import linecache
import os
import re
import sys
import weakref
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, FrameType

    from dtlint.trace.ops import Op
    from dtlint.trace.signature import Signature

__all__ = [
    "CALL",
    "CAST_METHODS",
    "PLAIN",
    "ModulePaths",
    "Site",
    "Sites",
    "Source",
    "is_own",
    "is_weight",
    "shown",
    "source_of",
]

ENGINE = torch.autograd.graph._engine_run_backward.__code__
"""The frame under which autograd calls operators of its own accord."""

CALL = nn.Module._wrapped_call_impl.__code__
"""The frame in which a module runs; its `self` is the module."""

COMPILED_MODULE = "_orig_mod"
"""The name under which what `torch.compile(model)` gives holds the model; paths are told without it."""

MODULE_FILE = str(nn.modules.module.__file__)
"""Where `model.half()` and `model.to(dtype)` cast: torch's code, but what the user asked for."""

HIDDEN = (
    str(Path(torch.__file__).parent) + os.sep,
    str(Path(__file__).parents[1]) + os.sep,
    contextlib.__file__,
    functools.__file__,
    "<frozen",
)
"""Frames of these files are never the user's place."""

INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]")
"""In the names of files of packages that are installed."""

SEEN_THROUGH = os.path.join(str(Path(__file__).parent), "simulate", "tensors.py")
"""Stands before torch's own functions while a device is simulated: what runs is what its caller wrote."""

CAST_METHODS = frozenset(
    (
        *("to", "type", "type_as", "copy_", "as_tensor", "asarray", "cpu", "cuda"),
        *("half", "bfloat16", "float", "double", "bool", "byte", "char", "short", "int", "long"),
    )
)
"""Calls by which a person asks for a cast."""

PLAIN = frozenset((torch.Tensor, nn.Parameter))
"""Tensors that are what they seem. A subclass may give any operator a meaning of its own; it is counted as unseen."""

MOST_SITES = 100_000
"""Programs that make code as they run have ever new places; those past this number are told as one."""

RING = 1 << 16
"""Autograd nodes remembered: those of several steps of a large model."""

MADE_AT_ROOT = "_make_grads"
"""The function of torch.autograd that reads the loss when a backward begins."""


class Source(NamedTuple):
    """Where an instruction stands. Lines count from 1, columns from 0 in characters; None where Python kept none."""

    line: int
    end_line: int | None
    column: int | None
    end_column: int | None
    expression: str


def is_weight(x: torch.Tensor) -> bool:
    """Is it a parameter or a view of one?"""
    return type(x) is nn.Parameter or type(x._base) is nn.Parameter


def source_of(code: CodeType, lasti: int, line: int) -> Source:
    """The source of the instruction at byte offset `lasti`. Python 3.10 keeps only its line."""
    if sys.version_info >= (3, 11):
        top, bottom, left, right = next(
            itertools.islice(code.co_positions(), lasti // 2, None), (None, None, None, None)
        )
        if top is not None and bottom is not None and left is not None and right is not None:
            lines = [linecache.getline(code.co_filename, number).encode() for number in range(top, bottom + 1)]
            first, last = lines[0], lines[-1]
            lines[-1] = last[:right]
            lines[0] = lines[0][left:]
            text = b" ".join(part.strip() for part in lines).decode(errors="replace")
            columns = (len(first[:left].decode(errors="replace")), len(last[:right].decode(errors="replace")))
            return Source(top, bottom, *columns, text)
    return Source(line, None, None, None, linecache.getline(code.co_filename, line).strip())


def shown(file: str, here: Path) -> str:
    """A file's name as a report tells it: relative to the directory of the run where it lies below it."""
    path = Path(file)
    return path.relative_to(here).as_posix() if path.is_absolute() and path.is_relative_to(here) else file


def is_own(file: str) -> bool:
    """Is this file the program's own, and not of an installed package?"""
    return not (INSTALLED.search(file) or file.startswith(HIDDEN))


def _own_caller(frame: FrameType) -> tuple[str, int]:
    """The file and line of the program's own by which an installed package came to run `frame`; "" and 0 if it is own."""
    at: FrameType | None = frame
    while at is not None and not is_own(at.f_code.co_filename):
        at = at.f_back
    if at is None or at is frame or at.f_code.co_filename.startswith("<"):
        return "", 0
    return at.f_code.co_filename, at.f_lineno


class Site:
    """A place in the user's code, while one module runs. It keeps its code objects alive, so that ids stay theirs."""

    __slots__ = (
        *("code", "file", "lasti", "line", "inner", "inner_lasti", "inner_line", "module", "kept"),
        *("backward", "forward", "signatures", "caller", "caller_line"),
    )
    captured = False
    """Is it known from a graph that torch.compile captured?"""

    def __init__(self, frame: FrameType, inner: FrameType, module: str, kept: bool = True) -> None:
        self.code, self.lasti, self.line = frame.f_code, frame.f_lasti, frame.f_lineno
        while inner.f_code.co_filename == SEEN_THROUGH and inner is not frame and inner.f_back is not None:
            inner = inner.f_back
        self.inner, self.inner_lasti, self.inner_line = inner.f_code, inner.f_lasti, inner.f_lineno
        self.file = self.code.co_filename
        self.caller, self.caller_line = _own_caller(frame)
        self.module, self.kept = module, kept
        self.signatures: dict[tuple[Any, ...], Signature] = {}
        self.forward: dict[Op, Signature] = {}
        self.backward: dict[Op, Signature] = {}
        """The signature with which each operator ran here last: mostly that of its next call."""

    def source(self) -> Source:
        """The user's expression."""
        return source_of(self.code, self.lasti, self.line)

    @property
    def asked(self) -> bool:
        """Is the innermost running expression itself a cast that the user wrote, as in `x.float()`?"""
        inner = self.inner.co_filename
        return self.casts and (inner == MODULE_FILE or not inner.startswith(HIDDEN))

    @property
    def casts(self) -> bool:
        """Is the innermost running expression a cast, whoever wrote it?"""
        return any(
            getattr(call.func, "attr", None) in CAST_METHODS or any(keyword.arg == "dtype" for keyword in call.keywords)
            for call in self._calls()
        )

    @property
    def called(self) -> str:
        """The name of the function that the innermost running expression calls, as `softmax`; "" where it is no call."""
        calls = list(self._calls())
        if len(calls) != 1:
            return ""
        function = calls[0].func
        return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")

    def _calls(self) -> Iterator[ast.Call]:
        """The innermost running expression, if it is a call; on Python 3.10 all calls of its line."""
        text = source_of(self.inner, self.inner_lasti, self.inner_line).expression
        try:
            tree = ast.parse(text, mode="eval").body if sys.version_info >= (3, 11) else ast.parse(text)
        except SyntaxError:
            return
        for node in [tree] if isinstance(tree, ast.expr) else ast.walk(tree):
            if isinstance(node, ast.Call):
                yield node

    @property
    def reads_the_loss(self) -> bool:
        """Is this the call by which a backward begins?"""
        return self.inner.co_name == MADE_AT_ROOT


class ModulePaths:
    """The path of each module, as in `blocks.2.fc`.

    Which one is running is read from the frames of `nn.Module.__call__`: a hook or a wrapper would put a frame of its
    own between a module and its caller, which the program's warnings, tracebacks and recursion limit would show.
    """

    def __init__(self) -> None:
        self.known: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        """By id; a module that dies takes its entry with it."""

    def running(self, frame: FrameType | None) -> str:
        """The path of the innermost module that runs at or above `frame`, or "" outside any."""
        while frame is not None and frame.f_code is not CALL:
            frame = frame.f_back
        if frame is None:
            return ""
        module = frame.f_locals["self"]
        found = self.known.get(id(module))
        return found[1] if found is not None else self._learn(module, frame)

    def _learn(self, module: nn.Module, frame: FrameType) -> str:
        root, above = module, frame.f_back
        while above is not None:
            if above.f_code is CALL:
                root = above.f_locals["self"]
            above = above.f_back
        for name, child in root.named_modules():
            if id(child) not in self.known:
                path = ".".join(part for part in name.split(".") if part != COMPILED_MODULE)
                self._keep(child, path or type(child).__name__)
        if id(module) not in self.known:
            self._keep(module, type(module).__name__)
        return self.known[id(module)][1]

    def path_of(self, module: nn.Module) -> str:
        """The path of a module, as far as it is known: else its class."""
        found = self.known.get(id(module))
        return found[1] if found is not None else type(module).__name__

    def _keep(self, module: nn.Module, path: str) -> None:
        known, key = self.known, id(module)

        def forget(_: weakref.ref[nn.Module]) -> None:
            known.pop(key, None)

        known[key] = (weakref.ref(module, forget), path)

    def name_of(self, storage: int) -> str:
        """`parameter fc.weight` or `buffer mask`, if a tensor of a module that ran lives in this storage."""
        found = (f"{kind} {name}" for kind, name, x in self.tensors() if x.untyped_storage()._cdata == storage)
        return next(found, "")

    def tensors(self) -> Iterator[tuple[str, str, torch.Tensor]]:
        """Kind, path and value of each plain parameter and buffer of the modules that ran."""
        for reference, path in list(self.known.values()):
            module = reference()
            if module is None:
                continue
            for kind, tensors in (("parameter", module._parameters), ("buffer", module._buffers)):
                for name, x in tensors.items():
                    if x is not None and type(x) in PLAIN and x.layout is torch.strided:
                        yield kind, f"{path}.{name}", x


class _Mine(dict[str, bool]):
    """By file name: is it the user's?"""

    def __missing__(self, filename: str) -> bool:
        mine = self[filename] = not filename.startswith(HIDDEN)
        return mine


class Sites:
    """All sites of a run."""

    def __init__(self, covers: Callable[[str], bool]) -> None:
        self.covers = covers
        """Is a module of this path one to look at?"""
        self.all: dict[tuple[int, int, int, int, str], Site] = {}
        self.modules = ModulePaths()
        self._mine = _Mine()
        self._numbers = array("q", [-1]) * RING
        here = sys._getframe()
        self.nowhere = Site(here, here, "", covers(""))
        """For what autograd runs on behalf of no line that was seen."""
        self._ring = [self.nowhere] * RING
        """Where the nodes of these numbers were made."""

    def where(self, frame: FrameType, node: Any) -> Site:
        """The innermost frame outside torch, and the module that runs there; in the engine, the forward's site."""
        inner, mine, caller = frame, self._mine, None
        code = own = frame.f_code
        while not mine[code.co_filename]:
            if code is CALL:
                caller = caller or frame
            elif code is ENGINE and node is not None:
                return self.forward(node)
            back = frame.f_back
            if back is None:
                break
            frame, code = back, back.f_code
        path = self.modules.running(caller or frame)
        key = (id(code), frame.f_lasti, id(own), inner.f_lasti, path)
        site = self.all.get(key)
        if site is None:
            if len(self.all) >= MOST_SITES:
                return self.nowhere
            site = self.all[key] = Site(frame, inner, path, self.covers(path))
        return site

    def is_mine(self, file: str) -> bool:
        """Is a line of this file a place to tell of, and not torch's or the tracer's own?"""
        return self._mine[file]

    def raised(self, frames: Sequence[FrameType]) -> Site:
        """Where an exception left the user's code, given the frames that it passed, the outermost first."""
        mine = [frame for frame in frames if self._mine[frame.f_code.co_filename]]
        modules = [frame.f_locals["self"] for frame in frames if frame.f_code is CALL]
        return Site((mine or frames)[-1], frames[-1], self.modules.path_of(modules[-1]) if modules else "")

    def made_node(self, number: int, site: Site) -> None:
        """Remember that autograd's node `number` was made at `site`."""
        at = number % RING
        self._numbers[at] = number
        self._ring[at] = site

    def forward(self, node: Any) -> Site:
        """Where the forward made this backward node."""
        number = node._sequence_nr()
        at = number % RING
        return self._ring[at] if self._numbers[at] == number else self.nowhere
