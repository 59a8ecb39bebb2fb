"""Calls of a package that work in float32, gathered while its docstrings, its tests and plain attempts run.

Whenever a public function of the package, or a public method of one of its modules, is called with float32 tensors, by
whomever, its arguments are copied: this is a call that can be made again, in another dtype.
"""

from __future__ import annotations

import copy
import doctest
import enum
import importlib
import inspect
import io
import pkgutil
import signal
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

__all__ = ["Call", "OutOfTime", "gathered", "imported", "limited", "quiet"]

KINDS_OF_ONE = 8
"""Calls of one function that are kept, of different kinds."""
MOST_ELEMENTS = 4_000_000
"""Of the tensors of one call, and of the weights of its module."""
SHAPES = ((2, 8), (2, 16, 8), (2, 8, 16, 16), (2, 3, 32, 32))
"""Of the tensors that plain attempts give."""
WIDTHS = (8, 16, 3)
"""Numbers that plain attempts give to what constructors demand."""
MOST_GIVEN = 3
"""Tensors that a plain attempt gives."""


WAITING = 4
"""How often the time that a call may compute it may take in all."""


class OutOfTime(BaseException):
    """A call took longer than it may. No package's `except Exception` swallows it."""


@dataclass(frozen=True)
class Call:
    """A call that worked: of a function, or of a method of a module."""

    function: Callable[..., Any]
    module: nn.Module | None
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class _Target:
    """A public function of a package, or a public method of one of its classes of modules."""

    place: str
    function: Callable[..., Any]
    signature: inspect.Signature
    of_module: bool


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Break off what takes longer."""

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)  # of the process: a busy machine changes nothing
    signal.setitimer(signal.ITIMER_REAL, seconds * WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in zip((signal.SIGPROF, signal.SIGALRM), before, strict=True):
            signal.signal(number, handler)


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be printed."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        yield


def imported(package: str) -> list[types.ModuleType]:
    """A package and the modules in it, as far as they can be imported; tests aside."""
    found = [importlib.import_module(package)]
    infos = pkgutil.walk_packages(getattr(found[0], "__path__", ()), f"{package}.", onerror=lambda _: None)
    for info in sorted(infos, key=lambda one: one.name):
        parts = info.name.split(".")
        if {"test", "tests", "testing", "__main__"}.isdisjoint(parts) and not parts[-1].startswith("test_"):
            with suppress(Exception, SystemExit, OutOfTime), quiet(), limited(60):
                found.append(importlib.import_module(info.name))
    return found


def gathered(modules: Sequence[types.ModuleType], tests: Sequence[Path], seconds: float) -> list[Call]:
    """The calls that work, in the order of the places of what they call.

    Args:
        tests: files and folders that pytest runs for it.
        seconds: what one example, test or attempt may take.
    """
    gatherer = _Gatherer(_targets(modules))
    drives = [*_examples(modules, seconds), *_attempts(modules, seconds)]
    for drive in drives:
        torch.manual_seed(0)
        with suppress(Exception, SystemExit, OutOfTime), quiet(), gatherer.listening():
            drive()
    if tests:
        _run_tests(tests, seconds, gatherer)
    return gatherer.calls()


class _Gatherer:
    """Copies the arguments of calls while they are made."""

    def __init__(self, targets: dict[types.CodeType, _Target]) -> None:
        self.targets = targets
        self.found: dict[str, dict[object, Call]] = {}
        self.busy = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(None)

    def calls(self) -> list[Call]:
        return [call for _, found in sorted(self.found.items()) for call in found.values()]

    def _on_event(self, frame: types.FrameType, event: str, _: Any) -> None:
        if event != "call" or self.busy or (target := self.targets.get(frame.f_code)) is None:
            return
        self.busy = True
        try:
            self._take(target, frame)
        except Exception:  # what cannot be copied cannot be called again
            pass
        finally:
            self.busy = False

    def _take(self, target: _Target, frame: types.FrameType) -> None:
        kept = self.found.setdefault(target.place, {})
        if len(kept) >= KINDS_OF_ONE:
            return
        args, kwargs = _bound(target.signature, frame.f_locals)
        owner = args.pop(0) if target.of_module else None
        if target.of_module and not isinstance(owner, nn.Module):
            return
        tensors = _tensors((args, kwargs))
        weights = [*owner.parameters(), *owner.buffers()] if owner is not None else []
        floating = [one for one in (*tensors, *weights) if one.is_floating_point()]
        if not any(one.is_floating_point() for one in tensors) or any(one.dtype != torch.float32 for one in floating):
            return
        if sum(one.numel() for one in (*tensors, *weights)) > MOST_ELEMENTS:
            return
        kind = type(owner).__qualname__, str(owner)[:2000], repr(_described((args, kwargs)))
        if kind not in kept:
            with torch.no_grad():
                copied = _copied((args, kwargs))
                kept[kind] = Call(target.function, copy.deepcopy(owner), tuple(copied[0]), copied[1])


def _bound(signature: inspect.Signature, local: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with which a frame was entered."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for one in signature.parameters.values():
        value = local[one.name]
        if one.kind is one.VAR_POSITIONAL:
            args += value
        elif one.kind is one.VAR_KEYWORD:
            kwargs |= value
        elif one.kind is one.KEYWORD_ONLY:
            kwargs[one.name] = value
        else:
            args.append(value)
    return args, kwargs


def _tensors(values: Any) -> list[torch.Tensor]:
    return [one for one in tree_flatten(values)[0] if isinstance(one, torch.Tensor)]


def _described(values: Any) -> Any:
    """What tells calls apart: ranks and dtypes of tensors, and the options beside them."""

    def one(value: Any) -> object:
        if isinstance(value, torch.Tensor):
            return value.ndim, value.dtype
        return value if isinstance(value, (bool, str, type(None))) else type(value)

    return [one(leaf) for leaf in tree_flatten(values)[0]]


_PLAIN = (int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, enum.Enum, type)
_CALLED = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


def _copied(value: Any) -> Any:
    """A value that may be handed to another call.

    Raises:
        TypeError: it is, or holds, an object in which tensors may hide: these could not be cast.
    """
    if isinstance(value, torch.Tensor):
        if type(value) is not torch.Tensor and not isinstance(value, nn.Parameter):
            raise TypeError
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        items = [_copied(one) for one in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if type(value) is dict:
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, nn.Module):
        return copy.deepcopy(value)
    if isinstance(value, (*_PLAIN, *_CALLED)):
        return value
    raise TypeError


def _targets(modules: Iterable[types.ModuleType]) -> dict[types.CodeType, _Target]:
    """What may be called from outside, by its code."""
    found: dict[types.CodeType, _Target] = {}

    def add(place: str, function: Any, of_module: bool) -> None:
        plain = inspect.unwrap(function)
        if isinstance(plain, types.FunctionType) and not plain.__code__.co_flags & _NOT_PLAIN:
            signature = inspect.signature(plain, follow_wrapped=False)
            found.setdefault(plain.__code__, _Target(place, function, signature, of_module))

    for module in modules:
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value) and issubclass(value, nn.Module):
                for method, function in sorted(vars(value).items()):
                    if not method.startswith("_") and isinstance(function, types.FunctionType):
                        add(f"{module.__name__}.{name}.{method}", function, True)
            elif callable(value) and not inspect.isclass(value):
                add(f"{module.__name__}.{name}", value, False)
    return found


_NOT_PLAIN = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def _examples(modules: Iterable[types.ModuleType], seconds: float) -> Iterator[Callable[[], None]]:
    """The examples in docstrings."""
    finder, runner = doctest.DocTestFinder(exclude_empty=True), doctest.DocTestRunner(verbose=False)
    for module in modules:
        tests: list[doctest.DocTest] = []
        with suppress(Exception):
            tests = sorted(finder.find(module), key=lambda one: one.name)
        for test in tests:
            if test.examples:
                yield lambda test=test: _within(seconds, lambda: runner.run(test, out=lambda _: None))  # type: ignore[misc]


def _within(seconds: float, drive: Callable[[], object]) -> None:
    with limited(seconds):
        drive()


def _attempts(modules: Iterable[types.ModuleType], seconds: float) -> Iterator[Callable[[], None]]:
    """Modules made with small numbers, and functions, each given random tensors until it takes some."""
    for module in modules:
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value) and issubclass(value, nn.Module):
                yield lambda value=value: _attempt_module(value, seconds)  # type: ignore[misc]
            elif inspect.isfunction(value):
                yield lambda value=value: _attempt(value, value, seconds)  # type: ignore[misc]


def _demanded(function: Callable[..., Any]) -> int:
    """The positional arguments that a function cannot do without."""
    parameters = inspect.signature(function).parameters.values()
    named = (one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD))
    return sum(one.default is one.empty for one in named)


def _attempt_module(cls: type[nn.Module], seconds: float) -> None:
    count = _demanded(cls.__init__) - 1
    for width in WIDTHS:
        with suppress(Exception, SystemExit), limited(seconds):
            made = cls(*[width] * count).eval()
            _attempt(made, made.forward, seconds)
            return


def _attempt(call: Callable[..., Any], function: Callable[..., Any], seconds: float) -> None:
    count = _demanded(function)
    for shape in SHAPES if 1 <= count <= MOST_GIVEN else ():
        torch.manual_seed(0)
        with suppress(Exception, SystemExit), limited(seconds):
            call(*[torch.rand(shape) for _ in range(count)])
            return


def _run_tests(tests: Sequence[Path], seconds: float, gatherer: _Gatherer) -> None:
    """Run test files under pytest, each test for a limited time."""
    import pytest

    class Listening:
        @pytest.hookimpl(hookwrapper=True)
        def pytest_runtest_call(self) -> Iterator[None]:
            torch.manual_seed(0)
            with limited(seconds), gatherer.listening():
                yield

    options = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=no", "-W", "ignore", "--disable-warnings"]
    with quiet():
        pytest.main([*options, "--continue-on-collection-errors", *map(str, tests)], plugins=[Listening()])
