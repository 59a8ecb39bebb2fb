"""Sketches of what operators computed: enough to estimate how far two runs differ, without keeping a tensor.

At most SAMPLE values of a result wait on its device. Many at a time, these become a range, a norm and PROJECTIONS sums
under fixed random signs, which are read in one transfer at the flush.
"""

from __future__ import annotations

import base64
import functools
import math
import sys
from array import array
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dtlint.trace.schema import PROJECTIONS, SAMPLE, SketchedStep, is_sketched
from dtlint.trace.site import PLAIN, is_weight
from dtlint.trace.transfer import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.trace.ops import Op
    from dtlint.trace.signature import Signature
    from dtlint.trace.site import ModulePaths

__all__ = ["Sketches"]

ROWS = 128
"""Tensors whose values wait on a device to be reduced: 256 KiB."""

MOST_LINES = 100_000
"""Lines of one step; a record has about 125 bytes for each."""

MOST_WRITERS = 4
"""Results that are remembered as the writers of parts of one storage."""

MOST_INDICES = 1024
"""Sizes of tensors for which it is kept which of their values are sampled: 4 KiB each."""

BARRED = -6e4
"""Values this low only bar positions, as a mask of finfo.min does in any dtype: they count as 0."""

SIZE = 3 + PROJECTIONS
"""Numbers of one sketch: low, high, norm, and the sums."""

MOVES = frozenset(("_to_copy", "clone"))
"""Operators whose results are not sketched: a copy differs by what was copied, and a cast is not compared."""

OVER = f"operators after the first {MOST_LINES:,} of a step, which were not sketched"


_DisableAutocast: Any = torch._C._DisableAutocast


@functools.cache
def signs(rows: int) -> list[list[float]]:
    """1 or -1 for each value of a row and each sum, by a hash of both: the same in every run, and no generator is asked."""
    bits = [[_hash(row * PROJECTIONS + column) >> 63 for column in range(PROJECTIONS)] for row in range(rows)]
    return [[1.0 - 2 * bit for bit in row] for row in bits]


def _hash(number: int) -> int:
    """splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    z = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def sampled(numel: int) -> list[int]:
    """Which of so many values are sampled: one of each of SAMPLE equal spans, at a place in it that a hash tells."""
    span = numel / SAMPLE
    return [min(int((n + (_hash(n) >> 11) / 2**53) * span), numel - 1) for n in range(SAMPLE)]


class Rows:
    """Values of one dtype that wait on a device to be reduced to sketches: a row of SAMPLE for each tensor."""

    def __init__(self, dtype: torch.dtype, like: Tensor, signs: Tensor) -> None:
        self.signs = signs
        with torch.inference_mode(False):
            self.all = torch.zeros(ROWS, SAMPLE, device=like.device, dtype=dtype)
        self.each = self.all.unbind()
        self.lines: list[int] = []
        """The lines whose values the first rows hold."""
        self.reduced: list[tuple[list[int], Tensor]] = []
        """Lines and their sketches, (lines, SIZE)."""

    def row(self, line: int) -> Tensor:
        """A row for a line. It holds zeros, or old values that are to be written over."""
        if len(self.lines) == ROWS:
            self.reduce()
        self.lines.append(line)
        return self.each[len(self.lines) - 1]

    def reduce(self) -> None:
        """Make sketches of the rows, and free them."""
        lines, self.lines = self.lines, []
        if not lines:
            return
        rows = self.all[: len(lines)].to(torch.float32)
        low, high = rows.amin(1), rows.amax(1)
        torch.threshold_(rows.nan_to_num_(0.0, 0.0, 0.0), BARRED, 0.0)
        with _DisableAutocast():  # the flush may fall into a region of the program's
            sums = rows @ self.signs
        norm = torch.linalg.vector_norm(rows, dim=1)
        self.reduced.append((lines, torch.cat((torch.stack((low, high, norm), 1), sums), 1)))
        self.all.zero_()


class Waiting:
    """The rows of one device."""

    def __init__(self, like: Tensor) -> None:
        self.signs = _beside(signs(SAMPLE), like)
        self.whole = Rows(torch.float32, like, self.signs)
        """Of tensors whose every value is taken."""
        self.sampled: dict[torch.dtype, Rows] = {}
        """Of others, by dtype."""

    def add(self, line: int, x: Tensor, index: Tensor | None) -> None:
        """Take the values of `x`, or those of them that `index` names."""
        if index is None:
            self.whole.row(line).as_strided(x.shape, _strides(x.shape)).copy_(x)
            return
        rows = self.sampled.get(x.dtype)
        if rows is None:
            rows = self.sampled[x.dtype] = Rows(x.dtype, x, self.signs)
        torch.take(x, index, out=rows.row(line))

    def read(self) -> Iterator[tuple[int, array[float]]]:
        """All lines with their sketches, by one transfer."""
        every = (self.whole, *self.sampled.values())
        for rows in every:
            rows.reduce()
        reduced = [made for rows in every for made in rows.reduced]
        for rows in every:
            rows.reduced = []
        if reduced:
            here = array("f", fetch(torch.cat([made for _, made in reduced])).flatten().tolist())
            for number, line in enumerate(line for lines, _ in reduced for line in lines):
                yield line, here[number * SIZE : (number + 1) * SIZE]


@functools.lru_cache(1000)
def _strides(shape: torch.Size) -> tuple[int, ...]:
    """Of a tensor of this shape that lies in order."""
    return tuple(math.prod(shape[n + 1 :]) for n in range(len(shape)))


def _beside(values: list[Any], like: Tensor) -> Tensor:
    """These numbers on the device of a tensor, which is not waited for."""
    with torch.inference_mode(False):
        here = torch.tensor(values)
        if torch._C._dispatch_keys(like).has(torch._C.DispatchKey.CUDA):
            return here.pin_memory().to(like.device, non_blocking=True)
        return here.to(like.device)


class Sketches:
    """The lines of the steps that are sketched, and what each storage was written by."""

    def __init__(self, modules: ModulePaths, lent: Mapping[int, int], raw: set[int], unseen: dict[str, int]) -> None:
        """Of a flow: its modules, storages that NumPy may write, storages never written, and counts of what is missed."""
        self.modules, self._lent, self._raw, self._unseen = modules, lent, raw, unseen
        self.steps: list[SketchedStep] = []
        self.tensors: dict[str, int] = {}
        """`float32[2,3]`, with its number."""
        self.names: dict[str, int] = {"": 0}
        """Names of parameters and buffers, with their numbers; "" of all else that came from outside."""
        self.signatures: list[Signature] = []
        self._numbers: dict[int, int] = {}
        """By id of a signature."""
        self._kinds: dict[tuple[torch.dtype, torch.Size], int] = {}
        self._step = -1
        self._began = 0
        """Steps that began, sketched or not."""
        self._on = self._full = False
        """Is this step sketched? Was it, up to the most lines that a step has?"""
        self._lines: list[list[int]] = []
        self._values: dict[int, array[float]] = {}
        self._leaves: list[tuple[int, int]] = []
        """Lines whose names are to be found, with their storages."""
        self._known: dict[int, tuple[int, ...]] = {}
        """By storage: the lines that wrote it. A weak reference on each keeps its address its own."""
        self._waiting: dict[torch.device, Waiting] = {}
        self._indices: dict[tuple[int, torch.device], Tensor] = {}

    # -- called for each operator -----------------------------------------------------------------------------------

    def saw(self, step: int, signature: Signature, args: Any, sources: list[Tensor], out: Any) -> None:
        """An operator has run in a step."""
        if step != self._step:
            self._begin(step)
        if not self._on:
            if self._full:
                self._unseen[OVER] = self._unseen.get(OVER, 0) + 1
            return
        op = signature.op
        if type(out) is Tensor and op.plain:
            self._made(signature, op, sources, out, 0)
        elif op.remote:
            self._let_go(_plain((args, out)))
        elif op.each:
            self._made_each(signature, args, out)
        else:
            for number, x in enumerate(_plain((out,))):
                self._made(signature, op, sources, x, number)
            self._let_go(args[index] for index in op.aside if index < len(args) and type(args[index]) in PLAIN)

    def before(self, step: int, x: Tensor) -> None:
        """An operator is to write into `x` what it makes of it."""
        if step != self._step:
            self._begin(step)
        if self._on and x.layout is torch.strided:
            key = x.untyped_storage()._cdata
            if key not in self._known or key in self._lent:
                self._leaf(x, key, -1)

    def changed(self, x: Tensor) -> None:
        """Something that is not traced, as an optimizer, has written into `x`."""
        if self._known:
            self._let_go((x,))

    def _made(self, signature: Signature, op: Op, sources: list[Tensor], out: Tensor, number: int) -> None:
        if out.layout is not torch.strided:
            return
        storage = out.untyped_storage()
        target = storage._cdata
        subject = self._numbers.get(id(signature))
        if subject is None:
            subject = self._numbers[id(signature)] = len(self.signatures)
            self.signatures.append(signature)
        line = [subject, -1, number]
        known, lent = self._known, self._lent
        for x in sources:
            if x is out and not op.updates:  # it is written over
                continue
            key = x.untyped_storage()._cdata
            found = known.get(key)
            if found is None or (lent and key in lent and key != target):
                if key == target:
                    continue
                found = self._leaf(x, key, subject)
            line += found
        kept = (out.dtype.is_floating_point and op.name not in MOVES) or op.fresh or op.brings
        here = self._add(line, out, kept)
        if target not in known:
            storage._weak_ref()
            known[target] = (here,)
        elif out.nbytes >= storage.nbytes():
            known[target] = (here,)
        else:
            known[target] = (*known[target], here)[-MOST_WRITERS:]

    def _made_each(self, signature: Signature, args: Any, out: Any) -> None:
        """One operator over lists of tensors: the n-th result, or target in place, is made of the n-th arguments."""
        lists = [a for a in args if isinstance(a, (list, tuple))]
        rest = [a for a in args if type(a) in PLAIN]
        for index, x in enumerate(lists[0] if out is None else out):
            if type(x) in PLAIN:
                beside = [a[index] for a in lists if index < len(a) and type(a[index]) in PLAIN]
                self._made(signature, signature.op, beside + rest, x, index)

    def _leaf(self, x: Tensor, key: int, reader: int) -> tuple[int, ...]:
        """The line of what no operator of this step has made: a weight, a batch, a constant."""
        if x.layout is not torch.strided:
            return ()
        if is_weight(x) and x._base is not None:
            x = x._base  # as it is, and not as its first reader turned it
        if key not in self._known:
            x.untyped_storage()._weak_ref()
        here = self._add([-1, -1, reader], x, key not in self._raw)
        self._leaves.append((here, key))
        self._known[key] = (here,)
        return self._known[key]

    def _add(self, line: list[int], x: Tensor, sketched: bool) -> int:
        """A line more; its number."""
        here = len(self._lines)
        if here >= MOST_LINES:
            self._on, self._full = False, True
            return here - 1
        kind = self._kinds.get((x.dtype, x.shape))
        if kind is None:
            name = f"{str(x.dtype).removeprefix('torch.')}[{','.join(map(str, x.shape))}]"
            kind = self._kinds[x.dtype, x.shape] = self.tensors.setdefault(name, len(self.tensors))
        line[1] = kind if sketched and self._sample(x, here) else -1 - kind
        self._lines.append(line)
        return here

    def _sample(self, x: Tensor, line: int) -> bool:
        """Take values of `x`. Could that be done?"""
        numel, device = x.numel(), x.device
        if not numel or device.type == "meta" or x.dtype.is_complex:
            return False
        if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
            return False
        waiting = self._waiting.get(device)
        if waiting is None:
            waiting = self._waiting[device] = Waiting(x)
        waiting.add(line, x, self._index(numel, x) if numel > SAMPLE else None)
        return True

    def _index(self, numel: int, x: Tensor) -> Tensor:
        """Where the sampled values of a tensor stand, counted along its dimensions."""
        found = self._indices.get((numel, x.device))
        if found is None:
            if len(self._indices) >= MOST_INDICES:
                self._indices.clear()
            found = self._indices[numel, x.device] = _beside(sampled(numel), x)
        return found

    def _let_go(self, tensors: Iterator[Tensor] | tuple[Tensor, ...]) -> None:
        """What these hold is known no more: whoever reads one next finds it as it is then."""
        free: Any = torch.UntypedStorage._free_weak_ref
        for x in tensors:
            if x.layout is torch.strided:
                key = x.untyped_storage()._cdata
                if self._known.pop(key, None) is not None:
                    free(key)

    # -- called once a step -----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Read what waits on the devices, and name what came from outside while it is there."""
        for waiting in self._waiting.values():
            self._values.update(waiting.read())
        leaves, self._leaves = self._leaves, []
        if leaves:
            names = {x.untyped_storage()._cdata: f"{kind} {name}" for kind, name, x in self.modules.tensors()}
            for line, key in leaves:
                name = names.get(key, "")
                self._lines[line][0] = -1 - self.names.setdefault(name, len(self.names))

    def _begin(self, step: int) -> None:
        """The first operator of a step: the step before has been settled."""
        self.end()
        self._step = step
        self._began += 1
        self._on = is_sketched(self._began)

    def packed(self) -> list[SketchedStep]:
        """The steps that were sketched, as far as they were settled."""
        if not self._lines:
            return self.steps
        values = array("f")
        for number, line in enumerate(self._lines):
            if line[1] >= 0 and number in self._values:
                values += self._values[number]
            elif line[1] >= 0:  # it was not settled
                line[1] = -1 - line[1]
        if sys.byteorder == "big":
            values.byteswap()
        lines = ";".join(" ".join(map(str, line)) for line in self._lines)
        return [*self.steps, SketchedStep(self._step, lines, base64.b64encode(values.tobytes()).decode())]

    def end(self) -> None:
        """The step that ran, and was settled, is over; or nothing more is known of any storage."""
        self.steps = self.packed()
        free: Any = torch.UntypedStorage._free_weak_ref
        for key in self._known:
            free(key)
        self._known.clear()
        self._lines, self._values, self._step = [], {}, -1
        self._on = self._full = False


def _plain(value: Any) -> Iterator[Tensor]:
    if type(value) in PLAIN:
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _plain(item)
