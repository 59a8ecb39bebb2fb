"""A call made again under an assumption, past its errors: what each line of a package did there.

Each operator that the call leads to is noted with the lines of the package that led to it, the innermost first:

- **raised**: it raises with what it is given, and does not with the same operands in float32. It is answered with what float32
  gives, cast to the dtype that it would have had, so that what stands behind it is seen as well.
- **left**: all floating arguments of the call had the assumed dtype, a floating tensor of its result has another, and this is
  the last operator on the way there that was given a tensor of the assumed dtype, or wrote one into a tensor of another.
  What is made like a tensor, for its shape alone, does not count; nor do torch's losses, for which float32 is right, and
  casts of what was wide before. A cast that is undone reaches no result, and is none. Those before the last have **passed**.
- **broke**: it gave inf or NaN of what was finite, where no operator of that line does in float32, of the same arguments. For
  integers: the result is not that of int64.
- **lost**: it was given a number that is 0, 1 or inf in the assumed dtype, and is not. For integers: it wrote floats into
  them, or cast floats to them, that they do not hold.
- **rounded**: it is a loss, or gives log-probabilities, of which the assumed dtype does not have four digits: some number is
  off by more than 1e-4 of what float32 gives.
"""

from __future__ import annotations

import copy
import math
import sys
import sysconfig
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_map
from working_calls import Call, OutOfTime, limited, quiet

from dtlint.dtypes.assumption import Assumption

__all__ = ["Happening", "Line", "Notes", "made_again", "replayed"]

Line = tuple[str, int]

_QUIET = frozenset(
    {
        *("shape", "dtype", "device", "ndim", "size", "dim", "numel", "is_floating_point", "stride", "is_contiguous"),
        *("requires_grad", "layout", "grad_fn", "is_cuda", "is_sparse", "is_leaf", "names", "__len__", "is_complex"),
        *("element_size", "data_ptr", "storage_offset", "itemsize"),
    }
)
"""What asks a tensor about itself: neither counted nor judged."""
_WRITES = frozenset(("__setitem__", "copy_", "fill_", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__"))
_WHOLE_NUMBERS = frozenset(
    {
        *("add", "sub", "mul", "rsub", "__add__", "__sub__", "__mul__", "__radd__", "__rsub__", "__rmul__"),
        *("neg", "__neg__", "pow", "__pow__", "__rpow__", "square", "diff"),
    }
)
"""Arithmetic that wraps in integers."""
_HOLDS = frozenset(("to", "type", "byte", "type_as", "full", "full_like", "new_full", "__setitem__", "fill_", "copy_"))
"""What makes integers of floats, or writes floats into them."""


_PACKAGES, _TORCH = sysconfig.get_path("purelib"), str(Path(torch.__file__).parent)


@dataclass(frozen=True)
class Happening:
    """What an operator did, and the lines that led to it, the innermost first."""

    kind: str
    chain: tuple[Line, ...]
    op: str
    said: str = ""


@dataclass
class Notes:
    """What one call showed."""

    ran: set[Line] = field(default_factory=set)
    """The lines with operators, and those that led to them."""
    happened: set[Happening] = field(default_factory=set)
    finished: bool = False


def replayed(
    call: Call, assumed: Assumption, scale: float, files: frozenset[str], seconds: float, as_image: bool = False
) -> Notes:
    """What a call shows with inputs and weights of the assumed dtypes, in the assumed region.

    Args:
        scale: what floating arguments are multiplied by.
        files: those of the package.
        seconds: what the call may take.
        as_image: floating arguments have the values that uint8 is given, in their assumed dtype.
    """
    inputs = getattr(torch, assumed.inputs)
    watched = inputs if assumed.region is None else getattr(torch, assumed.region[1])
    watch = _Watch(files, watched)
    result, watch.notes.finished = made_again(call, assumed, scale, seconds, watch, as_image)
    if assumed.region is None and assumed.inputs == assumed.weights and inputs.is_floating_point:
        watch.note_departures(result)
    return watch.notes


def made_again(
    call: Call,
    assumed: Assumption,
    scale: float,
    seconds: float,
    watch: AbstractContextManager[Any],
    as_image: bool = False,
) -> tuple[Any, bool]:
    """What a call gives with inputs and weights of the assumed dtypes, in the assumed region; and whether it came to its end.

    Args:
        scale: what floating arguments are multiplied by.
        seconds: what the call may take.
        watch: what is entered around the call alone.
        as_image: floating arguments have the values that uint8 is given, in their assumed dtype.
    """
    inputs, weights = (getattr(torch, name) for name in (assumed.inputs, assumed.weights))
    device, dtype = assumed.region or ("cpu", "bfloat16")
    region = nullcontext() if assumed.region is None else torch.autocast(device, dtype=getattr(torch, dtype))
    torch.manual_seed(0)
    try:
        module = None if call.module is None else copy.deepcopy(call.module).to(weights)
        args, kwargs = tree_map(lambda one: _cast(one, inputs, weights, scale, as_image), (call.args, call.kwargs))
        named = module if module is None or call.function.__name__ == "forward" else call.function.__get__(module)
        with quiet(), limited(seconds), region, watch:
            return (named or call.function)(*args, **kwargs), True
    except (Exception, SystemExit, OutOfTime):
        return None, False


def _cast(value: Any, inputs: torch.dtype, weights: torch.dtype, scale: float, as_image: bool) -> Any:
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).to(weights)
    if not isinstance(value, torch.Tensor):
        return inputs if value is torch.float32 else value
    if not value.is_floating_point():
        return value.clone()
    moved = value.detach() * scale
    if not inputs.is_floating_point:
        return _image(moved).to(inputs)
    if as_image:
        moved = _image(moved).floor()
    return moved.to(inputs).requires_grad_(value.requires_grad)


def _image(values: torch.Tensor) -> torch.Tensor:
    """The same values as they lie in an image: from 0 to 255."""
    low, high = (values.min(), values.max()) if values.numel() else (0, 1)
    return (values - low) / max(float(high - low), 1e-6) * 255


class _Watch(TorchFunctionMode):
    """Notes the operators of one call, and goes on behind errors."""

    def __init__(self, files: frozenset[str], dtype: torch.dtype) -> None:
        super().__init__()
        self.files, self.dtype = files, dtype
        self.notes = Notes()
        self.departed: dict[int, tuple[torch.Tensor, frozenset[Happening]]] = {}
        """By identity the tensors of other dtypes that came from the assumed one, each kept alive, with the operators."""
        self.passed: set[Happening] = set()
        """Every operator that gave another dtype, though another on the way to the result may have done so as well."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = kwargs or {}, _name(func)
        if name in _QUIET:
            return func(*args, **kwargs)
        chain = _chain(self.files, sys._getframe(1))
        given = _floating((args, kwargs))
        before = [one.dtype for one in given]
        if not chain:
            result = func(*args, **kwargs)
            for one in _floating(result):
                self._follow(one, given, before, None)
            return result
        self.notes.ran.update(chain)
        was_finite = all(map(_finite, given))
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            result = self._answered(func, name, args, kwargs, error)
            self.notes.happened.add(Happening("raised", chain, name, str(error)[:200]))
        written = args[0] if args and _writes(name) and isinstance(args[0], torch.Tensor) else None
        made = _floating(written) if written is not None else _floating(result)
        here = Happening("left", chain, name)
        for one in made:
            self._follow(one, given, before, here)
            if was_finite and not _finite(one) and not name.startswith(("empty", "new_empty")):
                self.notes.happened.add(Happening("broke", chain, name))
        if self.dtype.is_floating_point:
            if self.dtype in before and any(_is_lost(one, self.dtype) for one in tree_flatten((args[1:], kwargs))[0]):
                self.notes.happened.add(Happening("lost", chain, name))
            if _is_loss(name) and self.dtype in before and _is_rounded(func, args, kwargs, result):
                self.notes.happened.add(Happening("rounded", chain, name))
        elif name in _WHOLE_NUMBERS and _wraps(func, args, result, self.dtype):
            self.notes.happened.add(Happening("broke", chain, name))
        elif name in _HOLDS and _is_cut(args, kwargs, result if written is None else written, self.dtype):
            self.notes.happened.add(Happening("lost", chain, name))
        return result

    def note_departures(self, result: Any) -> None:
        """Note where the floating tensors of the call's result left the dtype."""
        left = [one for one in _floating(result) if one.dtype != self.dtype and id(one) in self.departed]
        for one in left:
            self.notes.happened.update(self.departed[id(one)][1])
        if left:
            self.notes.happened.update(self.passed)

    def _follow(
        self, made: torch.Tensor, given: list[torch.Tensor], before: list[torch.dtype], here: Happening | None
    ) -> None:
        """Say of a tensor where it left the dtype: here, if that is a line of the package, or where what it is made of did."""
        if made.dtype == self.dtype:
            self.departed.pop(id(made), None)
            return
        if here is not None and _is_meant(here.op, before, self.dtype):
            self.departed.pop(id(made), None)
            return
        makes = here is not None and (here.op.endswith("_like") or here.op.startswith("new_"))
        if here is not None and self.dtype in before and not makes:
            sources = frozenset({here})
            self.passed.add(Happening("passed", here.chain, here.op))
        else:
            known = [self.departed[id(one)] for one in given if id(one) in self.departed]
            sources = frozenset(one for tensor, found in known if tensor.dtype != self.dtype for one in found)
        if sources:
            self.departed[id(made)] = made, sources

    def _answered(self, func: Any, name: str, args: Any, kwargs: Any, error: Exception) -> Any:
        """What the operator gives in float32, in the dtype that was to be.

        Raises:
            Exception: the same error: it is none of dtypes.
        """
        narrow = [one.dtype for one in _floating((args, kwargs))]
        wide = torch.float64 if torch.float64 in narrow else torch.float32
        whole = () if self.dtype.is_floating_point else (self.dtype,)

        def widened(one: Any) -> Any:
            if isinstance(one, torch.Tensor) and (one.is_floating_point() or one.dtype in whole):
                return one.detach().to(wide, copy=True).requires_grad_(one.requires_grad and not _writes(name))
            return wide if one is self.dtype else one

        other_args, other_kwargs = tree_map(widened, (args, kwargs))
        try:
            with torch.autocast("cpu", enabled=False):
                result = func(*other_args, **other_kwargs)
        except Exception:
            raise error from None
        if _writes(name):
            with torch.no_grad():
                args[0].data.copy_(other_args[0].data)
            return args[0]
        if self.dtype in narrow:
            target = self.dtype
        else:
            target = narrow[0] if narrow else wide
        return tree_map(
            lambda one: one.to(target) if isinstance(one, torch.Tensor) and one.is_floating_point() else one, result
        )


def _name(func: Any) -> str:
    name = str(getattr(func, "__name__", func))
    if name == "__get__":
        name = str(getattr(getattr(func, "__self__", None), "__name__", name))
    return name


def _is_meant(name: str, given: list[torch.dtype], dtype: torch.dtype) -> bool:
    """Is the dtype of the result its author's choice: a loss, for which float32 is right, or a cast of what was wide before?"""
    if "loss" in name or name in ("cross_entropy", "kl_div"):
        return True
    return name in ("float", "double", "type", "type_as") and bool(given) and given[0] != dtype


def _writes(name: str) -> bool:
    return name in _WRITES or (name.endswith("_") and not name.endswith("__"))


def _chain(files: frozenset[str], frame: Any) -> tuple[Line, ...]:
    """The lines of the package that are run, the innermost first; none for what another package does for it."""
    found: list[Line] = []
    while frame is not None:
        name = frame.f_code.co_filename
        if name in files:
            found.append((name, frame.f_lineno))
        elif not found and name.startswith(_PACKAGES) and not name.startswith(_TORCH):
            return ()
        frame = frame.f_back
    return tuple(found)


def _floating(values: Any) -> list[torch.Tensor]:
    return [one for one in tree_flatten(values)[0] if isinstance(one, torch.Tensor) and one.is_floating_point()]


def _finite(tensor: torch.Tensor) -> bool:
    with torch._C.DisableTorchFunction(), suppress(Exception):
        return bool(tensor.isfinite().all())
    return True


@cache
def _rounded(number: float, dtype: torch.dtype) -> float:
    with torch._C.DisableTorchFunction():
        return float(torch.tensor(number, dtype=torch.float64).to(dtype))


def _is_loss(name: str) -> bool:
    return "loss" in name or "cross_entropy" in name or name in ("kl_div", "log_softmax", "logsigmoid", "log_sigmoid")


def _is_rounded(func: Any, args: Any, kwargs: Any, result: Any) -> bool:
    """Is a result off by more than float32 would be?"""

    def widened(one: Any) -> Any:
        return one.float() if isinstance(one, torch.Tensor) and one.is_floating_point() else one

    with suppress(Exception):
        exact = func(*tree_map(widened, args), **tree_map(widened, kwargs))
        return not torch.allclose(result.float(), exact.float(), rtol=1e-4, atol=1e-8, equal_nan=True)
    return False


def _is_lost(value: Any, dtype: torch.dtype) -> bool:
    if type(value) is not float or value == 0 or not math.isfinite(value):
        return False
    rounded = _rounded(value, dtype)
    return rounded != value and (rounded in (0, 1) or not math.isfinite(rounded))


def _is_cut(args: Any, kwargs: Any, result: Any, dtype: torch.dtype) -> bool:
    """Did integers get floats that they do not hold?"""
    if not isinstance(result, torch.Tensor) or result.dtype != dtype:
        return False
    limits = torch.iinfo(dtype)
    for one in tree_flatten((args, kwargs))[0]:
        if type(one) is float and not (one == one // 1 and limits.min <= one <= limits.max):
            return True
        if isinstance(one, torch.Tensor) and one.is_floating_point():
            held = (one == one.floor()) & (one >= limits.min) & (one <= limits.max)
            if not bool(held.all()):
                return True
    return False


def _wraps(func: Any, args: Any, result: Any, dtype: torch.dtype) -> bool:
    """Is what an operator gave in small integers another than in large ones?"""
    if not isinstance(result, torch.Tensor) or result.dtype != dtype:
        return False
    wide = tree_map(lambda one: one.long() if isinstance(one, torch.Tensor) else one, args)
    with suppress(Exception):
        return not bool((func(*wide) == result.long()).all())
    return False
