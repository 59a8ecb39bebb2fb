"""Each operator in low precision once more in a wider dtype, from the same operands: its own error, apart from what came in.

Where a narrower dtype is assumed, it is the other way round: each operator of the forward as that dtype would have it.

The second computation is of copies, below every dispatch mode, and leaves out whatever draws random numbers or has effects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from dtlint.trace.ops import ALLOCATES, OVERWRITES
from dtlint.trace.schema import Unseen
from dtlint.trace.signature import tensors_of
from dtlint.trace.site import PLAIN
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.ops import Op
    from dtlint.trace.signature import Signature

__all__ = ["Gain", "LocalError", "Shadow"]

NARROWER: dict[torch.dtype, frozenset[torch.dtype]] = {
    torch.float32: frozenset((torch.float16, torch.bfloat16)),
    torch.float64: frozenset((torch.float16, torch.bfloat16, torch.float32)),
}
"""The dtypes that a wider one is the shadow of."""

BARRED = -6e4
"""Values this low only bar positions: how they are rounded is nobody's concern."""

SHIFT = 2.0**-10
"""By so much of itself an operand is changed, to see what becomes of it."""

CALLS = 3
"""Calls of an operator of which that is measured."""

_node = torch._C._current_autograd_node  # the backward node that runs on this thread, or None

SUMS = frozenset(("add", "add_", "sub", "sub_", "rsub", "sum", "mean"))
"""Operators whose result may be much smaller than their operands, since these cancel."""


@dataclass(slots=True)
class LocalError:
    """What the calls of one signature differed by from their shadows."""

    calls: int = 0
    squares: float = 0.0
    """Sum of the squares of the differences."""
    reference: float = 0.0
    """Sum of the squares of the shadows."""
    worst: float = 0.0
    """The largest relative error of a call."""
    values: int = 0
    saturated: int = 0
    """Values beyond the range of the narrower dtype."""
    vanished: int = 0
    """Values other than 0 below the normal range of the narrower dtype."""
    amplified: float = 1.0
    """Of a sum: by how much a relative error of its operands was larger in its result, at most."""

    @property
    def error(self) -> float:
        """The relative error over all calls."""
        return math.sqrt(self.squares / self.reference) if self.reference > 0 else 0.0


@dataclass(slots=True)
class Gain:
    """By how much differences of one operand were larger in the result."""

    calls: int = 0
    squares: float = 0.0
    """Sum of the squares of the result's differences, of an operand that was changed by SHIFT of itself."""
    reference: float = 0.0
    """Sum of the squares of the results."""

    @property
    def gain(self) -> float:
        """Of a relative difference, in norms."""
        return math.sqrt(self.squares / self.reference) / SHIFT if self.reference > 0 else 0.0


class _Call(NamedTuple):
    """What the shadows of one call gave."""

    reference: Any
    """In the wider dtype, from the operands as they are."""
    narrowed: Any
    """The same with operands rounded to the dtype that is assumed; None if none is."""
    shifted: list[tuple[int, Any]]
    """With one operand changed a little: its number, and the result."""


class Shadow:
    """Computes shadows, and keeps how far results are from them."""

    def __init__(self, wide: torch.dtype, assumed: torch.dtype | None = None, gains: bool = False) -> None:
        """In `wide`. With a dtype that is assumed, of the operators of the forward as this dtype would have them: operands
        and results rounded to it, and computed within as kernels do, in a wider one. With `gains`, it is also measured by
        how much the operators of the forward make differences of their operands larger."""
        self.wide, self.narrower = wide, NARROWER[wide]
        self.assumed, self.measures_gains = assumed, gains
        self.errors: dict[Signature, LocalError] = {}
        self.gains: dict[Signature, dict[int, Gain]] = {}
        """By signature and number of the operand."""
        self.left_out: Counter[str] = Counter()
        self._before: tuple[Op, _Call] | None = None
        """Of the operator in place that runs: what its shadows gave."""
        self._able: dict[Op, bool] = {}
        self._waiting: dict[torch.device, list[tuple[Signature, int, Tensor]]] = {}
        self._waiting_gains: dict[torch.device, list[tuple[Gain, Tensor]]] = {}

    # -- called for each operator -----------------------------------------------------------------------------------

    def before(self, op: Op, args: Any, kwargs: Any) -> None:
        """An operator is to run. One that works in place is computed now, while its target is as it was."""
        self._before = None
        if op.writes and not op.quiet and args and self._looks_at(args[0], _node() is not None):
            call = self._shadow(op, args, kwargs, None, self.measures_gains and _node() is None)
            if call is not None:
                self._before = op, call

    def saw(self, signature: Signature, args: Any, kwargs: Any, out: Any) -> None:
        """An operator has run."""
        op = signature.op
        first = _first(out)
        if not self._looks_at(first, signature.backward):
            return
        before, self._before = self._before, None
        if op.writes and not op.aside:
            call = before[1] if before is not None and before[0] is op else None
        else:
            gains = self.measures_gains and not signature.backward and self._wants_gains(signature)
            call = self._shadow(op, args, kwargs, first, gains)
        if call is None:
            return
        reference, narrowed = _first(call.reference), _first(call.narrowed)
        if (
            type(reference) in PLAIN
            and reference.dtype is self.wide
            and reference.shape == first.shape
            and first.numel()
        ):
            with torch._C._DisableTorchDispatch():
                if narrowed is not None:
                    self._measure(signature, args, narrowed.to(self.assumed), reference)
                elif first.dtype in self.narrower:
                    self._measure(signature, args, first, reference)
                self._measure_gains(signature, reference, call.shifted)

    def _looks_at(self, x: Any, backward: bool) -> bool:
        """Is it a tensor that a shadow can be compared with? What a graph captures would run at each replay."""
        if type(x) not in PLAIN or x.layout is not torch.strided or x.is_meta:
            return False
        dtypes = self.narrower
        if self.assumed is not None or (self.measures_gains and not backward):
            if self.assumed is not None and backward:
                return False
            dtypes = self.narrower | {self.wide}
        return x.dtype in dtypes and not (x.device.type == "cuda" and torch.cuda.is_current_stream_capturing())

    def _wants_gains(self, signature: Signature) -> bool:
        known = self.gains.get(signature)
        return known is None or all(gain.calls < CALLS for gain in known.values())

    def _shadow(self, op: Op, args: Any, kwargs: Any, out: Tensor | None, gains: bool) -> _Call | None:
        """All shadows of one call; None where there are none. `out` is the result, if there is one already."""
        if out is not None and out.dtype is self.wide:
            reference: Any = out if self._computes(op, args) else None
        else:
            reference = self._compute(op, args, kwargs)
        if reference is None:
            return None
        assumed = self.assumed
        narrowed = None
        if assumed is not None:
            narrowed = self._compute(op, args, kwargs, lambda _, x: x.to(assumed).to(x.dtype))
            if narrowed is None:
                return None
        shifted: list[tuple[int, Any]] = []
        for number, x in enumerate(tensors_of(args, kwargs)) if gains else ():
            if type(x) in PLAIN and x.is_floating_point() and x.numel():
                shifted.append((number, self._compute(op, args, kwargs, _shifting(number))))
        return _Call(reference, narrowed, shifted)

    def _computes(self, op: Op, args: Any) -> bool:
        """Does it only compute, so that it can be called once more? What does not is counted."""
        able = self._able.get(op)
        if able is None:
            able = self._able[op] = _is_pure(op)
        if able or _draws_nothing(op, args):
            return True
        if op.name not in ALLOCATES and op.name not in OVERWRITES and not op.fresh:
            self.left_out["operators that --shadow leaves out, as they draw random numbers or have effects"] += 1
        return False

    def _compute(self, op: Op, args: Any, kwargs: Any, change: Change | None = None) -> Any:
        """The operator's result from wider copies of its operands, changed by `change`; None where that cannot be."""
        if not self._computes(op, args):
            return None
        written = {0, *op.aside} if op.writes else set(op.aside)
        copies = _Copies(self.wide, self.narrower, change)
        try:
            with torch._C._DisableTorchDispatch():
                wide_args = [copies.of(a, n in written) for n, a in enumerate(args)]
                wide_kwargs = {name: copies.of(a, False) for name, a in (kwargs or {}).items()}
                if op.name in HALF_TO_FLOAT:
                    wide_args[2] = False
                return op.func(*wide_args, **wide_kwargs)
        except Exception:  # whatever is wrong here, the program goes on as if it had no shadow
            self.left_out[f"operators that --shadow cannot compute in {str(self.wide).removeprefix('torch.')}"] += 1
            return None

    def _measure(self, signature: Signature, args: Any, out: Tensor, shadow: Tensor) -> None:
        """Launch the comparison of a result with its shadow."""
        double = torch.float32 if out.device.type == "mps" else torch.float64
        x, y = out.to(double), shadow.to(double)
        meant = y.isfinite() & (y > BARRED)
        both = meant & x.isfinite()
        square = torch.where(both, x - y, 0.0).square().sum()
        reference = torch.where(both, y, 0.0).square().sum()
        saturated = (meant & ~x.isfinite()).sum(dtype=double)
        vanished = (meant & (y != 0) & (y.abs() < torch.finfo(out.dtype).tiny)).sum(dtype=double)
        operands = [a for a in args if type(a) in PLAIN and a.is_floating_point()] if signature.op.name in SUMS else []
        # a running total in place is its result by now, which cannot be smaller than itself
        means = [torch.where(a.isfinite(), a, 0.0).to(double).square().mean() for a in operands if a.numel()]
        largest = torch.stack(means).amax() if means else torch.zeros((), dtype=double, device=out.device)
        numel = out.numel()
        told = torch.stack((square, reference, saturated, vanished, largest * numel))
        self._waiting.setdefault(out.device, []).append((signature, numel, told))

    def _measure_gains(self, signature: Signature, reference: Tensor, shifted: list[tuple[int, Any]]) -> None:
        """Launch the comparison of results whose operands were changed."""
        double = torch.float32 if reference.device.type == "mps" else torch.float64
        y = reference.to(double)
        for number, result in shifted:
            x = _first(result)
            if type(x) not in PLAIN or x.shape != y.shape:
                continue
            both = y.isfinite() & x.isfinite() & (y > BARRED)
            square = torch.where(both, x.to(double) - y, 0.0).square().sum()
            told = torch.stack((square, torch.where(both, y, 0.0).square().sum()))
            gain = self.gains.setdefault(signature, {}).setdefault(number, Gain())
            self._waiting_gains.setdefault(y.device, []).append((gain, told))

    # -- called once a step -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Read what waits, by one transfer per device."""
        waiting, self._waiting = self._waiting, {}
        for added in waiting.values():
            read = fetch(torch.stack([told for *_, told in added])).tolist()
            for (signature, numel, _), (square, reference, saturated, vanished, largest) in zip(
                added, read, strict=True
            ):
                error = self.errors.setdefault(signature, LocalError())
                error.calls += 1
                error.values += numel
                error.squares += square
                error.reference += reference
                error.saturated += int(saturated)
                error.vanished += int(vanished)
                if reference > 0:
                    error.worst = max(error.worst, (square / reference) ** 0.5)
                    error.amplified = max(error.amplified, (largest / reference) ** 0.5)
        gains, self._waiting_gains = self._waiting_gains, {}
        for measured in gains.values():
            read = fetch(torch.stack([told for _, told in measured])).tolist()
            for (gain, _), (square, reference) in zip(measured, read, strict=True):
                gain.calls += 1
                gain.squares += square
                gain.reference += reference

    def unseen(self) -> Iterator[Unseen]:
        """What has no shadow."""
        for what, count in self.left_out.items():
            yield Unseen(what, count, by_design=True)


Change = Callable[[int, Tensor], Tensor]
"""Takes the number of a tensor among the arguments, and its wider copy, and gives what stands for it."""


class _Copies:
    """Arguments of an operator in a wider dtype."""

    def __init__(self, wide: torch.dtype, narrower: frozenset[torch.dtype], change: Change | None) -> None:
        self.wide, self.narrower, self.change = wide, narrower, change
        self.met = 0
        """Tensors, in the order of the arguments."""

    def of(self, a: Any, written: bool) -> Any:
        """What stands for an argument; a copy, if it is written."""
        kind = type(a)
        if isinstance(a, Tensor):
            number, self.met = self.met, self.met + 1
            if kind not in PLAIN:
                return a
            x = a.to(self.wide) if a.dtype in self.narrower else a
            if self.change is not None and x.dtype is self.wide:
                x = self.change(number, x)
            return x.clone() if written and x is a else x
        if kind is torch.dtype:
            return self.wide if a in self.narrower else a
        if kind is list or kind is tuple:
            return [self.of(x, written) for x in a]
        return a


def _shifting(number: int) -> Change:
    """Changes one tensor by SHIFT, up or down as a hash of the position says: the program's random state is not touched."""

    def shift(at: int, x: Tensor) -> Tensor:
        return x * (1 + SHIFT * _signs(x)) if at == number else x

    return shift


def _signs(x: Tensor) -> Tensor:
    """1 or -1 for each value, without any pattern."""
    mixed = torch.arange(x.numel(), device=x.device, dtype=torch.int64)
    for _ in range(2):
        mixed = ((mixed + 0x9E3779B9) * 0x45D9F3B) & 0x7FFFFFFF
        mixed = mixed ^ (mixed >> 15)
    return (1 - 2 * ((mixed >> 7) & 1)).reshape(x.shape).to(x.dtype)


def _first(out: Any) -> Any:
    return out[0] if type(out) in (tuple, list) and out else out


HALF_TO_FLOAT = frozenset(("_softmax", "_log_softmax"))
"""Their third argument asks for a wider result, which only half operands may."""


def _is_pure(op: Op) -> bool:
    """Does it only compute, of what it is given?"""
    func = op.func
    if not isinstance(func, torch._ops.OpOverload) or func.namespace != "aten":
        return False
    if op.quiet or op.remote or op.fresh or op.alloc or op.each or op.given or op.name in OVERWRITES:
        return False
    arguments = func._schema.arguments
    if any(a.is_out for a in arguments) or any(a.name == "generator" for a in arguments):
        return False
    return torch.Tag.nondeterministic_seeded not in func.tags


def _draws_nothing(op: Op, args: Any) -> bool:
    """Is it an attention whose dropout is off? Only with dropout it draws."""
    if "scaled_dot_product" not in op.name or not isinstance(op.func, torch._ops.OpOverload):
        return False
    names = [a.name for a in op.func._schema.arguments]
    at = names.index("dropout_p") if "dropout_p" in names else -1
    return at >= 0 and (at >= len(args) or args[at] == 0)
