"""How much of what breaks under an assumption is said, and how much of what is said is true: findings against runs.

    python tests/benchmarks/assumptions.py MODULE [MODULE ...] [--assume half] [--misses] [--wrong]

Each MODULE is imported, with the modules of its package. Its classes of modules and its functions are called with tensors of
a few shapes; what works in float32 is called again as the assumption has it, with the same values. While that runs, each
operator is noted with the innermost line of the package that led to it: did it raise for a dtype, did it leave the dtype of
floating operands in a call whose result has left it, did it give inf or NaN from what was finite? The package's files are
checked under the assumption, and the findings on lines that were run are held against these notes, both ways. A finding of
range that the values of a run do not show need not be wrong: read it. Nothing is fetched: there is no network.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import inspect
import io
import pkgutil
import socket
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from dtlint.check.run import run
from dtlint.config import Configuration
from dtlint.dtypes.assumption import Assumption, parse_assumption
from dtlint.rule import RuntimeRule, discover

SHAPES = ((2, 8), (2, 16, 8), (2, 8, 16, 16), (2, 3, 32, 32))
"""Of the tensors that are given."""
SCALES = (1.0, 0.0)
"""What they are multiplied by: 0 shows what keeps a division from it."""
NEAR = 10
"""Lines behind a report of range in which it counts as seen: an epsilon is lost in one line, and divided by in another."""
WIDTHS = (8, 16, 3)
"""Numbers that constructors are given for what they demand."""
MOST = 3
"""Tensors that one call is given at most."""

Line = tuple[str, int]


@dataclass
class Notes:
    """What runs have shown, by line."""

    ran: set[Line] = field(default_factory=set)
    raised: set[Line] = field(default_factory=set)
    left: set[Line] = field(default_factory=set)
    broke: set[Line] = field(default_factory=set)


class Watch(TorchDispatchMode):
    """Notes the operators of one call."""

    def __init__(self, files: frozenset[str], dtype: torch.dtype) -> None:
        super().__init__()
        self.files, self.dtype = files, dtype
        self.notes = Notes()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        line = innermost(self.files, sys._getframe(1))
        result = func(*args, **(kwargs or {}))
        if line is None:
            return result
        self.notes.ran.add(line)
        given = floating((args, kwargs))
        for made in floating(result):
            if any(one.dtype == self.dtype for one in given) and made.dtype != self.dtype:
                self.notes.left.add(line)
            if given and all(map(finite, given)) and not finite(made) and func is not torch.ops.aten.empty_like.default:
                self.notes.broke.add(line)
        return result


def floating(values: Any) -> list[torch.Tensor]:
    """The floating tensors in a structure."""
    return [one for one in tree_flatten(values)[0] if isinstance(one, torch.Tensor) and one.is_floating_point()]


def finite(tensor: torch.Tensor) -> bool:
    """Does it hold neither inf nor NaN?"""
    return bool(tensor.isfinite().all())


def innermost(files: frozenset[str], frame: Any) -> Line | None:
    """The line of the package that is run, where operators are."""
    while frame is not None:
        if frame.f_code.co_filename in files:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def go_offline() -> None:
    """Let nothing that is constructed fetch weights: whatever asks for an address is refused."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("this benchmark is offline")

    socket.getaddrinfo = refuse
    socket.socket.connect = refuse  # type: ignore[method-assign]


def modules_of(name: str) -> list[ModuleType]:
    """A module and, of a package, those in it, as far as they can be imported."""
    module = importlib.import_module(name)
    found = [module]
    for info in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        with suppress(Exception):
            found.append(importlib.import_module(info.name))
    return found


def constructed(cls: type[nn.Module]) -> nn.Module | None:
    """A module of a class, with the same number for all that its constructor demands."""
    demanded = [
        one
        for one in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    for width in WIDTHS:
        with suppress(Exception):
            return cls(*[width for _ in demanded]).eval()
    return None


def callables(module: ModuleType) -> Iterator[Callable[..., Any]]:
    """What a module defines that may be called with tensors."""
    for name, value in list(vars(module).items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, nn.Module):
            made = constructed(value)
            if made is not None:
                yield made
        elif inspect.isfunction(value):
            yield value


def working(call: Callable[..., Any]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Tensors that it takes in float32 and gives finite tensors for, on each scale."""
    target = call.forward if isinstance(call, nn.Module) else call
    demanded = [one for one in inspect.signature(target).parameters.values() if one.default is one.empty]
    count = sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in demanded)
    if not 1 <= count <= MOST:
        return
    for shape in SHAPES:
        torch.manual_seed(0)
        found = [tuple(torch.randn(shape) * scale for _ in range(count)) for scale in SCALES]
        found = [given for given in found if stays_finite(call, given)]
        yield from found
        if found:
            return


def stays_finite(call: Callable[..., Any], given: tuple[torch.Tensor, ...]) -> bool:
    """Does a call give finite tensors of float32?"""
    with suppress(Exception), redirect_stdout(io.StringIO()):
        result = floating(call(*given))
        return bool(result) and all(one.dtype == torch.float32 and finite(one) for one in result)
    return False


def replayed(
    call: Callable[..., Any], given: Iterable[torch.Tensor], assumed: Assumption, files: frozenset[str]
) -> Notes:
    """What the call shows with inputs and weights of the assumed dtypes, in the assumed region."""
    inputs, weights = getattr(torch, assumed.inputs), getattr(torch, assumed.weights)
    if isinstance(call, nn.Module):
        call = copy.deepcopy(call).to(weights)
    arguments = tree_map(lambda one: one.to(inputs), tuple(given))
    _, region = assumed.region or ("cpu", "bfloat16")
    opened = torch.autocast("cpu", dtype=getattr(torch, region), enabled=assumed.region is not None)
    watch = Watch(files, inputs)
    try:
        with opened, watch, redirect_stdout(io.StringIO()):
            result = floating(call(*arguments))
    except RuntimeError as error:
        lines = [(one.filename, one.lineno or 0) for one in traceback.extract_tb(error.__traceback__)]
        inside = [line for line in lines if line[0] in files]
        if inside and speaks_of_dtypes(str(error)):
            watch.notes.raised.add(inside[-1])
            watch.notes.ran.add(inside[-1])
        result = []
    except Exception:
        result = []
    if assumed.region is not None or all(one.dtype == inputs for one in result):
        watch.notes.left.clear()
    return watch.notes


def speaks_of_dtypes(message: str) -> bool:
    """Is an error of torch one of dtypes?"""
    words = (
        "dtype",
        "not implemented for",
        "Half",
        "Float",
        "Double",
        "overflow",
        "Low precision",
        "Byte",
        "scalar type",
    )
    return any(word in message for word in words)


def reported(files: Iterable[str], assumed: Assumption) -> dict[Line, set[str]]:
    """What is found only under the assumption: the kinds by line."""
    rules = {code: rule for code, rule in discover().items() if not issubclass(rule, RuntimeRule) and rule.default}
    outcome = run([Path(file) for file in files], Configuration(isolated=True, assume=(assumed,)).settings_for, rules)
    found: dict[Line, set[str]] = {}
    for one in outcome.diagnostics:
        if one.message.startswith("Under "):
            kind = "raised" if "raises" in one.message else "broke" if one.code.startswith("DT4") else "left"
            path = str(Path(one.location.path).resolve())
            for line in range(one.location.span.line, one.location.span.end_line + 1):
                found.setdefault((path, line), set()).add(kind)
    return found


def main() -> None:
    """Run, check, and print how far they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--assume", default="half", type=parse_assumption)
    parser.add_argument("--misses", action="store_true", help="print what was seen and not said")
    parser.add_argument("--wrong", action="store_true", help="print what was said of lines that ran, and not seen")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    go_offline()
    parts = [part for name in options.modules for part in modules_of(name)]
    files = frozenset(str(Path(part.__file__).resolve()) for part in parts if part.__file__)
    seen, counts = Notes(), Counter[str]()
    for call in (found for part in parts for found in callables(part)):
        given: list[tuple[torch.Tensor, ...]] = []
        with suppress(Exception):
            given = list(working(call))
        counts["callables that run" if given else "that take something else"] += 1
        for one in given:
            notes = replayed(call, one, options.assume, files)
            for name in ("ran", "raised", "left", "broke"):
                getattr(seen, name).update(getattr(notes, name))
    said = reported(sorted(files), options.assume)
    print(f"{options.assume.name}: {dict(counts)}, {len(seen.ran)} lines with operators")
    for name in ("raised", "left", "broke"):
        shown: set[Line] = getattr(seen, name)
        told = {line for line, kinds in said.items() if name in kinds}
        judged = told & seen.ran
        ahead = range(NEAR + 1 if name == "broke" else 1)
        proved = {(file, line) for file, line in judged if any((file, line + more) in shown for more in ahead)}
        print(
            f"  {name:7} {len(shown):4} lines in runs, {len(shown & set(said)):4} of them reported;"
            f" {len(judged):4} reports on lines that ran, {len(proved):4} of them seen"
        )
        for title, lines, wanted in (
            ("missed", shown - set(said), options.misses),
            ("not seen", judged - proved, options.wrong),
        ):
            for file, number in sorted(lines) if wanted else ():
                print(f"    {title}: {file}:{number}")


if __name__ == "__main__":
    main()
