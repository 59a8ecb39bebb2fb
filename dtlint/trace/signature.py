"""One operator with one tuple of input dtypes at one site: what is judged once, and what is counted.

Who asked for a cast, which operand raised a dtype, how much work a product is: all settled on the first call.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from dtlint.trace.balance import lowers
from dtlint.trace.ops import INSERTS, LINEAR, POLES, ROOT, work
from dtlint.trace.site import PLAIN, is_weight
from dtlint.trace.totals import may_stall
from dtlint.trace.wraps import may_wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.trace.event import Event
    from dtlint.trace.ops import Op
    from dtlint.trace.site import Site

__all__ = ["Input", "Signature", "is_special", "learn", "tensors_of"]

_user_state: Any = torch._C._RestorePythonTLSSnapshot  # type: ignore[attr-defined]

ORDER = {torch.float64: 3, torch.float32: 2, torch.float16: 1, torch.bfloat16: 1}
"""How wide the result of a promotion with this dtype is; float16 with bfloat16 gives float32."""

CONTAINS = {
    torch.float16: frozenset((torch.float16, torch.float32, torch.float64)),
    torch.bfloat16: frozenset((torch.bfloat16, torch.float32, torch.float64)),
    torch.float32: frozenset((torch.float32, torch.float64)),
    torch.float64: frozenset((torch.float64,)),
}
"""The dtypes that hold every value of a dtype. float32's largest values round to inf in bfloat16."""

BARS = -1000.0
"""A number this low that the program writes bars positions from attention: -1e4, -1e9 and finfo.min are usual."""

LOW = frozenset((torch.float16, torch.bfloat16))
"""What autocast casts to, but for operators that it keeps wide."""

FARTHEST = 32
"""Operators that only kept a dtype, between one that has it and the one that decided it."""


COPIES = frozenset(("_to_copy", "clone"))
"""Operators that copy a tensor, to another device or on the same one."""


class Makers(Protocol):
    """Knows who wrote a storage, and who chose its dtype."""

    def maker(self, x: Tensor) -> Signature | None:
        """Who wrote this tensor's storage last, as far as it was seen."""

    def origin(self, x: Tensor) -> Signature | None:
        """Who chose the dtype of this tensor's storage, as far as it was seen."""


class Names(Protocol):
    """Knows parameters and buffers."""

    def name_of(self, storage: int) -> str:
        """`parameter fc.weight`, of what lives in a storage; else ""."""


class HasModules(Protocol):
    """Leads to the names of modules' tensors."""

    @property
    def modules(self) -> Names:
        """Of the modules that ran."""


class Input:
    """One tensor argument: its dtype, and where that came from."""

    __slots__ = ("dtype", "maker", "name", "origin", "varies", "zero_dim")

    def __init__(
        self, dtype: torch.dtype, zero_dim: bool, maker: Signature | None, origin: Signature | None, name: str
    ) -> None:
        self.dtype, self.zero_dim, self.maker, self.origin, self.name = dtype, zero_dim, maker, origin, name
        self.varies = False
        """Did another line decide its dtype at a later call?"""

    def came_of(self, origin: Signature | None) -> None:
        """At a later call. That an origin is not known says nothing: it may have run while nothing was traced."""
        if origin is None or origin is self.origin:
            return
        now, first = origin.decided_by.site, self.origin.decided_by.site if self.origin is not None else None
        self.varies |= first is None or (now.code, now.lasti) != (first.code, first.lasti)


class Signature:
    """Counts and ranges of one operator, with one tuple of input dtypes, at one site."""

    __slots__ = (
        "arity",
        "asked",
        "author",
        "autocast",
        "backward",
        "bars",
        "carries",
        "constant",
        "count",
        "culprit",
        "cut",
        "device",
        "event",
        "finding",
        "flops",
        "given",
        "held",
        "high",
        "inputs",
        "judged",
        "keeps",
        "least",
        "looked",
        "loss",
        "lost",
        "low",
        "matter",
        "meant",
        "most",
        "narrows",
        "nbytes",
        "nonfinite",
        "nonzero",
        "number",
        "numbers",
        "op",
        "output",
        "pole",
        "round_trips",
        "rounds",
        "sampled",
        "seconds",
        "site",
        "special",
        "stalled",
        "sums",
        "takes",
        "telling",
        "timed",
        "tiny",
        "totals",
        "trip",
        "unwatched",
        "wrapped",
        "wraps",
    )

    def __init__(self, site: Site, op: Op, backward: bool) -> None:
        self.site, self.op, self.backward = site, op, backward
        self.inputs: list[Input] = []
        self.output: torch.dtype | None = None
        self.count = self.nbytes = self.round_trips = self.nonfinite = self.flops = self.sampled = self.lost = 0
        self.looked = self.wrapped = self.nonzero = self.cut = self.sums = self.stalled = self.held = self.matter = 0
        self.tiny: list[int] = []
        self.timed, self.seconds = 0, 0.0
        """Calls whose time was taken, and the seconds of all but the first; of the first, as long as it is the only one."""
        self.wraps = self.totals = False
        """Are its calls sampled for integers that wrap, or for totals that no longer move?"""
        self.meant = 0
        """Of the calls with a result that was not finite: those with infs that the program means, as of a mask."""
        self.low = self.high = 0.0
        """Since the series took the last column."""
        self.least = self.most = 0.0
        """Lowest and highest before that."""
        self.author = self.finding = ""
        self.culprit: int | None = None
        self.autocast = False
        self.device = ""
        """The kind of device that its results are on, as `cuda`."""
        self.carries = False
        self.judged = True
        """May its results be non-finite though its operands are not?"""
        self.narrows = False
        """Is it a cast to a dtype in which small values are 0?"""
        self.rounds = op.cast and not op.writes
        """Are its results all the values of its operand, rounded?"""
        self.keeps = op.writes
        """Does it write in place, or copy without a change of dtype? Then it chose no dtype, and `Origins` knows who did."""
        self.given = op.given
        """May it write a non-finite constant of the program's?"""
        self.bars = False
        """Does it write a number that is meant to be as low as can be?"""
        self.numbers = False
        """May its results hold a number of the program's own, as one that it read out of a tensor before?"""
        self.number: float | None = None
        """The Python number among its operands, as the 2 of `x / 2`, at the first call; None if there is none."""
        self.special = False
        """Is that number 0, infinite or NaN? Others are of other signatures."""
        self.constant = True
        """Was it the same at each call?"""
        self.pole = POLES.get(op.name)
        self.loss = False
        self.telling = False
        """Is more to be asked of each call than how its values lie?"""
        self.trip: Signature | None = None
        """The cast that this one undoes, if nothing happened in between."""
        self.unwatched: torch.dtype | None = None
        """The dtype of an operand that may be non-finite without being known to be: its values are not judged."""
        self.event: Event | None = None
        """The event that was born here last."""
        self.arity = -1
        self.asked: torch.dtype | None = None
        self.takes: tuple[tuple[int, torch.dtype | type | None], ...] = ()
        """By what a call is known to be this one: the number of arguments, `dtype=`, the dtypes at each position. Of a
        Python number its type, since each call may bring another."""

    @property
    def span(self) -> tuple[float, float]:
        """Lowest and highest finite value of its results, 0 included."""
        return min(self.low, self.least), max(self.high, self.most)

    def doubt(self, watched: frozenset[torch.dtype]) -> None:
        """Judge the results where an operand is not judged, since they are the first to show how that was."""
        dtypes = (known.dtype for known in self.inputs)
        unjudged = (d for d in dtypes if (d.is_floating_point or d.is_complex) and d not in watched)
        self.unwatched = None if self.op.fresh or self.op.given else next(unjudged, None)
        self.judged |= self.unwatched is not None

    def took(self, seconds: float) -> None:
        """A call took so long. The first one may compile, or make memory, and is left out once there is another."""
        self.timed += 1
        self.seconds = seconds if self.timed <= 2 else self.seconds + seconds

    @property
    def time(self) -> float:
        """Seconds of all calls, the first at the mean of the others."""
        return self.seconds * self.timed / (self.timed - 1) if self.timed > 1 else self.seconds

    def expect(self, args: Any, kwargs: Any) -> None:
        """These are arguments that only calls of this signature have."""
        at = [(index, args[index]) for index in self.op.positions or () if index < len(args)]
        if all(type(a) in PLAIN or not isinstance(a, Tensor) for _, a in at):
            self.arity = len(args)
            self.asked = kwargs.get("dtype") if kwargs else None
            self.takes = tuple((index, _telling(a)) for index, a in at)

    @property
    def decided_by(self) -> Signature:
        """The operator at which this output's dtype was decided, upstream along operators that only kept it."""
        at, seen = self, 0
        while seen < FARTHEST and not at.author and not at.keeps and at.output is not None:
            origins = [i.origin for i in at.inputs if i.origin is not None and i.dtype is at.output and not i.zero_dim]
            if len(origins) != 1 or origins[0] is at:
                break
            at, seen = origins[0], seen + 1
        return at


def is_special(a: Any) -> bool:
    """Is this argument a number of which special results are to be expected: 0, infinite or NaN?"""
    kind = type(a)
    return (kind is float or kind is int) and (not a or a - a != 0)


def _telling(a: Any) -> Any:
    return a.dtype if type(a) in PLAIN else type(a) if isinstance(a, (int, float, complex)) else a


def learn(
    site: Site, op: Op, args: Any, kwargs: Any, out: Any, backward: bool, storages: Makers, sites: HasModules
) -> Signature:
    """Judge an operator on its first call with these dtypes at this site."""
    signature = Signature(site, op, backward)
    tensors = list(tensors_of(args, kwargs))
    first = next(tensors_of((out,), None), None)
    signature.output = first.dtype if first is not None else None
    signature.device = first.device.type if first is not None else ""
    signature.inputs = [Input(x.dtype, x.dim() == 0, storages.maker(x), storages.origin(x), "") for x in tensors]
    numbers = [a for a in (*args, *(kwargs or {}).values()) if isinstance(a, (int, float))]
    operands = [args[i] for i in op.numbers if i < len(args) and type(args[i]) in (int, float)]
    if operands:
        signature.number, signature.special = operands[0], is_special(operands[0])
    infinite = any(isinstance(number, float) and math.isinf(number) for number in numbers)
    signature.carries = op.only_moves(args, kwargs)
    signature.judged = not (signature.carries or op.fresh)
    writes = (
        op.given or op.name in INSERTS or not signature.carries
    )  # a number given to others, as to clamp, is only a bound
    signature.given = op.given or (infinite and writes)
    signature.bars = writes and any(number <= BARS for number in numbers)
    if op.brings:
        signature.numbers = all(x.dim() <= 1 for x in tensors)  # more dimensions than numbers in a list have: a batch
    else:
        signature.numbers = op.given or (op.name in LINEAR and len(tensors) == 1 and bool(numbers))
    signature.loss = op.name == ROOT and site.reads_the_loss
    signature.flops = work(op.func, args, kwargs, out)
    if op.name.startswith("pow") and isinstance(args[-1], (int, float)) and args[-1] >= 0:
        signature.pole = None
    if op.cast:
        _learn_cast(signature, tensors)
    else:
        _learn_promotion(signature, tensors, kwargs)
    signature.autocast = not backward and _autocast_on(tensors)
    if signature.finding:
        for known, x in zip(signature.inputs, tensors, strict=True):
            if known.maker is None:
                known.name = sites.modules.name_of(x.untyped_storage()._cdata)
    signature.wraps = may_wrap(signature, kwargs)
    signature.totals = may_stall(signature, tensors)
    copies = op.name in COPIES and len(tensors) == 1 and tensors[0].dtype is signature.output
    signature.keeps = op.writes or copies
    extra = signature.totals or signature.loss or op.brings or signature.keeps or op.aside
    signature.telling = bool(signature.author or signature.finding or extra)
    return signature


def _learn_cast(signature: Signature, tensors: list[Tensor]) -> None:
    source, target = signature.inputs[-1].dtype, signature.output
    if target is None:
        return
    signature.carries = target in CONTAINS.get(source, ())
    signature.judged = not signature.carries
    signature.narrows = target is torch.float16 and source in CONTAINS and source is not target
    if source is target:
        return
    if signature.backward:
        signature.author = "backward"
    elif signature.site.asked:
        signature.author = "asked"
    elif _cast_by_autocast(signature, tensors):
        signature.author = "autocast"
    else:
        signature.author = "implicit"


def _cast_by_autocast(signature: Signature, tensors: list[Tensor]) -> bool:
    """Is it autocast's doing? What an operator that runs in half under it does to its operands within is its own."""
    site = signature.site
    if signature.op.name != "_to_copy" or site.casts or not _autocast_on(tensors):
        return False
    maker = signature.inputs[-1].maker
    if maker is not None and maker.site is site:  # it was made within the same call
        return False
    return signature.output in LOW or not lowers(signature.device, site.called)


def _learn_promotion(signature: Signature, tensors: list[Tensor], kwargs: Any) -> None:
    out = signature.output
    floats = [(i, known.dtype) for i, known in enumerate(signature.inputs) if known.dtype.is_floating_point]
    dimensioned = [(i, dtype) for i, dtype in floats if not signature.inputs[i].zero_dim]
    kinds = {dtype for _, dtype in dimensioned}
    if len(kinds) > 1 and signature.op.promotes and out is not None:
        widest = max(dimensioned, key=lambda pair: ORDER.get(pair[1], 0))
        # in place, the result keeps the dtype of its target: nothing was raised
        if ORDER.get(out, 0) > min(ORDER.get(dtype, 0) for _, dtype in dimensioned):
            signature.finding, signature.culprit = "promoted", widest[0]
    elif out is torch.float64 and torch.float64 not in {dtype for _, dtype in floats}:
        asked = bool(kwargs and kwargs.get("dtype")) or torch.get_default_dtype() is torch.float64
        if not asked and tensors:
            signature.finding = "float64"
    elif out is not None and out.is_floating_point and not floats and signature.op.promotes:
        raised = [i for i, known in enumerate(signature.inputs) if known.dtype is not torch.bool and not known.zero_dim]
        if raised and not signature.backward:
            signature.finding, signature.culprit = "int-to-float", raised[0]
    elif out is torch.float64 and kinds == {torch.float64} and torch.get_default_dtype() is not torch.float64:
        entered = [i for i, _ in dimensioned if _is_data(signature.inputs[i], tensors[i])]
        if entered and not signature.backward and not signature.op.given:
            signature.finding, signature.culprit = "float64-data", entered[0]


def _is_data(known: Input, x: Tensor) -> bool:
    """Did this operand come from outside, and not as a weight or with a dtype that the program wrote?"""
    if is_weight(x):
        return False
    if known.maker is None:
        return True
    expression = known.maker.site.source().expression
    return known.maker.op.name == "lift_fresh" and "float64" not in expression and "double" not in expression


def tensors_of(args: Any, kwargs: Any) -> Iterator[Tensor]:
    """The tensors among the arguments, in their order."""
    for value in (*args, *(kwargs.values() if kwargs else ())):
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from (item for item in value if isinstance(item, Tensor))


def _autocast_on(tensors: list[Tensor]) -> bool:
    """Is autocast on in the user's code? Inside a handler the dispatcher hides its state; the snapshot restores it."""
    if not tensors or not torch.amp.is_autocast_available(tensors[0].device.type):
        return False
    with _user_state():
        return torch.is_autocast_enabled(tensors[0].device.type)
