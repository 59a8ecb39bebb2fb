"""Each operator in low precision once more in a wider dtype, from the same operands: its own error, apart from what came in.

The second computation is of copies, below every dispatch mode, and leaves out whatever draws random numbers or has effects.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.ops import ALLOCATES, OVERWRITES
from dtlint.trace.schema import Unseen
from dtlint.trace.site import PLAIN
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.ops import Op
    from dtlint.trace.signature import Signature

__all__ = ["LocalError", "Shadow"]

NARROWER: dict[torch.dtype, frozenset[torch.dtype]] = {
    torch.float32: frozenset((torch.float16, torch.bfloat16)),
    torch.float64: frozenset((torch.float16, torch.bfloat16, torch.float32)),
}
"""The dtypes that a wider one is the shadow of."""

BARRED = -6e4
"""Values this low only bar positions: how they are rounded is nobody's concern."""

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


class Shadow:
    """Computes shadows, and keeps how far results are from them."""

    def __init__(self, wide: torch.dtype) -> None:
        self.wide, self.narrower = wide, NARROWER[wide]
        self.errors: dict[Signature, LocalError] = {}
        self.left_out: Counter[str] = Counter()
        self._before: tuple[Op, Any] | None = None
        """Of the operator in place that runs: what its shadow gave."""
        self._able: dict[Op, bool] = {}
        self._waiting: dict[torch.device, list[tuple[Signature, int, Tensor]]] = {}

    # -- called for each operator -----------------------------------------------------------------------------------

    def before(self, op: Op, args: Any, kwargs: Any) -> None:
        """An operator is to run. One that works in place is computed now, while its target is as it was."""
        self._before = None
        if op.writes and not op.quiet and args and self._narrow(args[0]):
            shadow = self._compute(op, args, kwargs)
            if shadow is not None:
                self._before = op, shadow

    def saw(self, signature: Signature, args: Any, kwargs: Any, out: Any) -> None:
        """An operator has run."""
        op = signature.op
        first = out[0] if type(out) in (tuple, list) and out else out
        if not self._narrow(first):
            return
        before, self._before = self._before, None
        if op.writes and not op.aside:
            shadow = before[1] if before is not None and before[0] is op else None
        else:
            shadow = self._compute(op, args, kwargs)
        if shadow is None:
            return
        wide = shadow[0] if type(shadow) in (tuple, list) else shadow
        if type(wide) in PLAIN and wide.dtype is self.wide and wide.shape == first.shape and first.numel():
            with torch._C._DisableTorchDispatch():
                self._measure(signature, args, first, wide)

    def _narrow(self, x: Any) -> bool:
        """Is it a tensor that a shadow can be compared with? What a graph captures would run at each replay."""
        if type(x) not in PLAIN or x.dtype not in self.narrower or x.layout is not torch.strided or x.is_meta:
            return False
        return not (x.device.type == "cuda" and torch.cuda.is_current_stream_capturing())

    def _compute(self, op: Op, args: Any, kwargs: Any) -> Any:
        """The operator's result from wider copies of its operands; None where that cannot be."""
        able = self._able.get(op)
        if able is None:
            able = self._able[op] = _is_pure(op)
        if not able and not _draws_nothing(op, args):
            if op.name not in ALLOCATES and op.name not in OVERWRITES and not op.fresh:
                self.left_out["operators that --shadow leaves out, as they draw random numbers or have effects"] += 1
            return None
        written = {0, *op.aside} if op.writes else set(op.aside)
        try:
            with torch._C._DisableTorchDispatch():
                wide_args = [self._wider(a, n in written) for n, a in enumerate(args)]
                wide_kwargs = {name: self._wider(a, False) for name, a in (kwargs or {}).items()}
                if op.name in HALF_TO_FLOAT:
                    wide_args[2] = False
                return op.func(*wide_args, **wide_kwargs)
        except Exception:  # whatever is wrong here, the program goes on as if it had no shadow
            self.left_out[f"operators that --shadow cannot compute in {str(self.wide).removeprefix('torch.')}"] += 1
            return None

    def _wider(self, a: Any, written: bool) -> Any:
        kind = type(a)
        if kind in PLAIN:
            if a.dtype in self.narrower:
                return a.to(self.wide)
            return a.clone() if written else a
        if kind is torch.dtype:
            return self.wide if a in self.narrower else a
        if kind is list or kind is tuple:
            return [self._wider(x, written) for x in a]
        return a

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

    def unseen(self) -> Iterator[Unseen]:
        """What has no shadow."""
        for what, count in self.left_out.items():
            yield Unseen(what, count, by_design=True)


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
