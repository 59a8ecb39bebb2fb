"""The parts of a trace record: what a run showed, as plain data with a versioned schema.

dtypes are names as in `torch.float16`, without `torch.`. Where a part refers to another, it holds its number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from dtlint.dtypes.dtype import DTYPES
from dtlint.trace.words import listed

__all__ = [
    "AUTHORS",
    "CALLS",
    "COMPILED",
    "FOUND",
    "NOTHING",
    "NO_FILE",
    "PROJECTIONS",
    "REACHED",
    "SAMPLE",
    "SCHEMA",
    "UNKNOWN",
    "VALUES_IN_GRAPHS",
    "VANISHES",
    "WITHOUT_OVERFLOW",
    "DtypeError",
    "Entry",
    "Event",
    "Gains",
    "Histogram",
    "LocalError",
    "Memory",
    "ModuleSeries",
    "Operand",
    "Place",
    "Range",
    "ScaleChange",
    "ScaledClip",
    "Scaler",
    "Series",
    "SketchedStep",
    "Sketches",
    "Skip",
    "SkipCause",
    "Timing",
    "Unseen",
    "Weight",
    "is_sketched",
]

VALUES_IN_GRAPHS = "values inside compiled graphs; --eager runs compiled functions eagerly, and shows them"
"""What is not seen of compiled code, which is known by the dtypes in its graphs."""

COMPILED = "a result of compiled code"
"""The subject of an event: what came in where no operator was seen that made it, but the graph of one is known."""

SCHEMA = 2
"""Raised when an older reader would misread a newer record. What 2 added has defaults, so that 1 is still read."""

AUTHORS = ("asked", "autocast", "implicit", "backward")
"""Who made a cast."""

FOUND = ("promoted", "float64", "float64-data", "int-to-float")
"""What was found of the dtypes of an operator that is no cast."""

VANISHES = 2.0**-25
"""What rounds to 0 in float16: at most half of its smallest positive value."""


NO_FILE = "<autograd>"
"""The file of the place where autograd ran for no line of the program's, or for one made before the trace began."""

REACHED = ("the loss", "gradients", "weights", "other ranks", "a number the program read")
"""What an event may reach, in the order of telling."""

NOTHING = -2000
"""In place of an exponent: no value other than 0 was judged."""

CALLS = 4
"""Where in a run of the series the calls by dtype begin."""

UNKNOWN = -1
"""In place of a share: nothing was sampled."""

PROJECTIONS = 16
"""Sums under random signs in a sketch. The difference of two tensors is estimated from them with a standard error of
1 / sqrt(2 * PROJECTIONS), about 18%."""

METHOD = "splitmix64/16/512"
"""The method of the sketches of this version."""

SAMPLE = 512
"""Values of a tensor of which its sketch is made: all, where there are no more."""

FAST = 1.0
"""A learning rate from which it is worth a word where a step spoilt a weight."""

WITHOUT_OVERFLOW = "without overflow"
"""In the message of an operator that was given a number beyond the range of its dtype."""


@dataclass(slots=True)
class Place:
    """An expression of the user's source, while one module runs. Lines from 1, columns from 0 in characters."""

    file: str
    """Relative to the directory of the run where it lies below it."""
    line: int
    end_line: int
    column: int
    end_column: int
    expression: str
    module: str
    """`blocks.2.fc`, or "" outside any module."""
    caller: str = ""
    """Of an installed package: the file of the program's own that first came there; "" of its own places."""
    caller_line: int = 0
    """The line of that call, from 1."""


@dataclass(slots=True)
class Operand:
    """One tensor argument."""

    dtype: str
    zero_dim: bool
    origin: int | None
    """The entry at which its dtype was decided, if that was seen."""
    name: str
    """`parameter fc.weight` or `buffer cos`, where it is one."""
    varies: bool = False
    """Did other lines decide it at later calls? Then `origin` is that of the first."""
    maker: int | None = None
    """The entry that made its values, at the first call; None of a weight, a batch, or what was made unseen."""


@dataclass(slots=True)
class Entry:
    """One operator with one tuple of input dtypes at one place."""

    place: int
    op: str
    phase: str
    """`forward` or `backward`; a backward entry stands at the forward's place."""
    inputs: list[Operand]
    output: str | None
    count: int
    author: str
    """Of a cast, one of `AUTHORS`, where `implicit` is an operator's own; else ""."""
    finding: str
    """One of `FOUND`, where `float64` appeared without a float64 input, and `float64-data` came in as such; or ""."""
    culprit: int | None
    """The operand that raised the dtype."""
    autocast: bool
    """Was autocast on for this device at the first call? Of the backward, never."""
    nbytes: int
    """Bytes over the run: of a cast, read and written; of a collective, its largest argument, a list counted whole."""
    round_trips: int
    undoes: int | None
    """The cast that this one undoes."""
    flops: int
    """Of one call, for matrix products, convolutions and attention."""
    low: float
    high: float
    """Smallest and largest finite value of the output, 0 included."""
    nonfinite: int
    """Calls whose output held an inf or NaN."""
    sampled: int = 0
    """Values other than 0 in those calls that were sampled for loss: casts to a dtype of smaller range, and with
    `assume` every result that is wider than the assumed dtype."""
    lost: int = 0
    """How many of them the narrower dtype turns into 0."""
    looked: int = 0
    """Values looked at in sampled calls of a cast to integers, or of arithmetic of narrow ones."""
    wrapped: int = 0
    """How many of them do not fit the result's dtype."""
    nonzero: int = 0
    """Of such a cast: how many of them were not 0."""
    cut: int = 0
    """How many of these became 0."""
    sums: int = 0
    """Sampled calls that added something to a running total or average in half precision."""
    stalled: int = 0
    """How many of the last of them, in a row, left nearly all values as they were."""
    number: float | None = None
    """The Python number among the operands, as the 2 of `x / 2`, where each call had the same."""
    inside: str = ""
    """The operator that ran it within, as `scaled_dot_product_attention`, where that is made of several; else ""."""
    device: str = ""
    """The kind of device that its results were on, as `cuda`."""
    meant: int = 0
    """How many of the calls in `nonfinite` held infs that the program means, as of a mask."""
    seconds: float = 0.0
    """Of all calls, where times were taken: the first call counts as the mean of the others."""
    held: int = 0
    """Bytes of its results that were alive as a backward began, in the sampled step in which they were most."""
    matter: int = 0
    """With `assume`, of a backward: sampled values that matter beside the largest of their tensor; see `octaves`."""
    tiny: list[int] = field(default_factory=list)
    """How many of these lie in each octave below what float16 holds; see `octaves.lost_at`."""

    @property
    def reach(self) -> float:
        """The largest finite magnitude of the output."""
        return max(-self.low, self.high)

    @property
    def share_lost(self) -> float:
        """The share of values that became 0, from 0 to 1."""
        return self.lost / self.sampled if self.sampled else 0.0


@dataclass(slots=True)
class Range:
    """The values of an operand when an event was born."""

    dtype: str
    low: float
    high: float


@dataclass(slots=True)
class Growth:
    """The largest magnitude among the weights, after one step and after another some steps later."""

    low: float
    high: float
    steps: int
    rate: float | None = None
    """The learning rate of the last step."""


@dataclass(slots=True)
class Event:
    """Non-finite values where none were before, and what became of them."""

    kind: str
    """`overflow`, `invalid`, `pole`, `masked-row` or `came-in`."""
    step: int
    place: int | None
    entry: int | None
    """None for a weight that an optimizer step spoilt."""
    subject: str
    """The weight or batch, where it has a name."""
    dtype: str
    low: float
    high: float
    inputs: list[Range]
    times: int
    spread: int
    """Results that inherited it."""
    reached: list[str]
    """Of `REACHED`."""
    by_scaler: bool
    """Born in a backward of a scaled loss, and every time the GradScaler skipped the step: as meant."""
    eps: float | None
    """The optimizer's eps, where an optimizer step spoilt a weight."""
    brought: str = ""
    """The collective that brought it, as `c10d::allreduce_`, where one did."""
    hidden: list[str] = field(default_factory=list)
    """Of what came in: the options, as they were written, that may have left out the operator which made it."""
    unwatched: str = ""
    """Of what came in: the dtype of the operand in which it may have come, where values of that dtype were not judged."""
    written: int | None = None
    """Of a NaN: the place at which the program wrote the infs that an operand held, as those of a mask."""
    number: float | None = None
    """The Python number among the operands, as the 2 of `x / 2`, where each call had the same."""
    bad: int = 0
    """Of what came in: how many of its values were not finite; 0 if that is not known."""
    of: int = 0
    """How many values it had."""
    sample: int = -1
    """The first sample of a batch that held one, from 0; -1 if that is not known."""
    samples: int = 0
    maker: int | None = None
    """Of a pole, or of 0/0: the entry that made the operand which was 0."""
    rate: float | None = None
    """The learning rate, where an optimizer step spoilt a weight."""
    grown: Growth | None = None
    """How much the weights had grown in the steps before, where that is much."""
    partly: bool = False
    """Was it followed through a part of the operators or dtypes only? Others may have inherited it as well."""
    rank: int | None = None
    """In a merged record: the rank on which it was born."""

    @property
    def hurts(self) -> bool:
        """Did it reach what training or the program goes by?"""
        return bool(self.reached) and not self.by_scaler

    @property
    def fate(self) -> str:
        """What became of it, as the end of a sentence."""
        spread = f"it spread to {self.spread} result{'s' * (self.spread != 1)}" if self.spread else ""
        reached = f"reached {listed(self.reached)}" if self.reached else ""
        seen = " that the trace saw" * self.partly
        if not spread:
            return f"it {reached}" if reached else f"nothing{seen} inherited it"
        if self.partly:
            return f"{spread}{seen}{' and ' * bool(reached)}{reached}"
        return f"{spread} and {reached}" if reached else f"{spread}, none of them the loss, a gradient or a weight"

    @property
    def by_eps(self) -> str:
        """`, since the optimizer's eps of 1e-08 is 0 in float16`, where that is what spoilt a weight; else ""."""
        if self.eps is None or self.dtype != "float16" or self.eps > VANISHES:
            return ""
        return f", since the optimizer's eps of {self.eps:g} is 0 in float16"

    @property
    def by_rate(self) -> str:
        """`, at a learning rate of 1e+30`, where that is what spoilt a weight; else ""."""
        if self.rate is None or self.by_eps or 0 <= self.rate < FAST:
            return ""
        return f", at a learning rate of {self.rate:g}"

    @property
    def by_growth(self) -> str:
        """`, after the weights grew from 0.5 to 1e+15 in 3 steps at a learning rate of 50`, where they did; else ""."""
        if self.grown is None:
            return ""
        grown = self.grown
        rate = "" if grown.rate is None else f" at a learning rate of {grown.rate:g}"
        steps = f"{grown.steps} step{'s' * (grown.steps != 1)}"
        return f", after the weights grew from {grown.low:.2g} to {grown.high:.2g} in {steps}{rate}"

    @property
    def help_with_eps(self) -> str:
        """What to do about that; else ""."""
        return "keep the weights in float32 and use autocast, or give an eps of 1e-4 or so" if self.by_eps else ""

    @property
    def help_with_growth(self) -> str:
        """What to do about weights that grew; else ""."""
        return "lower the learning rate, warm it up, or clip the gradients" if self.grown is not None else ""

    @property
    def fills_dtype(self) -> bool:
        """Did an operand reach the very limit of its dtype, as masks of its least number do?"""
        return any(max(-r.low, r.high) == DTYPES[r.dtype].max for r in self.inputs if r.dtype in DTYPES)

    @property
    def reach(self) -> float | None:
        """The largest magnitude among the operands, if known."""
        return max((max(abs(r.low), abs(r.high)) for r in self.inputs), default=None)


@dataclass(slots=True)
class SkipCause:
    """Steps that the GradScaler skipped because of one event."""

    event: int
    count: int


@dataclass(slots=True)
class Skip:
    """One step that the GradScaler skipped."""

    step: int
    """Counted from 0."""
    event: int | None
    """What made the gradients non-finite, if that was seen."""


@dataclass(slots=True)
class ScaleChange:
    """The GradScaler's scale from one update on."""

    update: int
    """Counted from 0."""
    scale: float


@dataclass(slots=True)
class Scaler:
    """What the GradScaler did."""

    updates: int
    skipped: int
    leading: int
    """Skips before the first good step: the scale finding its level."""
    scale: float | None
    causes: list[SkipCause]
    place: int | None
    """Where `update()` was called."""
    lowest: float | None = None
    """The smallest scale that an update left."""
    skips: list[Skip] = field(default_factory=list)
    """The first of the skips; `skipped` counts them all."""
    changes: list[ScaleChange] = field(default_factory=list)
    """The scale after the first update, and from each that changed it; of very many the first."""


@dataclass(slots=True)
class ScaledClip:
    """Calls at one place that clipped gradients which the GradScaler had not unscaled yet."""

    place: int
    by_value: bool
    """Were values clipped, and not the norm?"""
    step: int
    """Of the first call, counted from 0; so are the next three."""
    size: float
    """The norm, or the largest magnitude, of the gradients with the scale."""
    limit: float
    """What it was clipped to."""
    scale: float
    times: int
    """Calls."""


@dataclass(slots=True)
class Unseen:
    """A part of the program that the trace does not show."""

    what: str
    count: int
    place: int | None = None
    """Where it was met first, if that is known."""
    by_design: bool = False
    """Left out on purpose, as by an option."""
    made_up_for: bool = False
    """Is nothing missed by it, since it was judged in another way?"""

    @property
    def in_graphs(self) -> bool:
        """Is it about values inside compiled code?"""
        return self.what == VALUES_IN_GRAPHS


@dataclass(slots=True)
class Weight:
    """A parameter as an optimizer's step left it."""

    name: str
    """`fc.weight`, or its number and group where no module that ran holds it."""
    shape: list[int]
    dtype: str
    gradient: str
    """The gradient's dtype; "" if it had none."""
    states: list[str]
    """dtypes of the optimizer's states for it, such as Adam's averages; a 0-dim step counter aside."""
    checked: int
    """Of half weights, in sampled steps: values whose gradient was not 0 while the learning rate was not."""
    stuck: int
    """How many of those kept their value to the bit."""
    place: int | None
    """Where `step()` was called."""
    looked: int = 0
    """Values of its gradients that were looked at: with `assume`, and where a plan is tried."""
    matter: int = 0
    """How many of those matter beside the largest of the same gradient; see `octaves`."""
    tiny: list[int] = field(default_factory=list)
    """How many of these lie in each octave below what float16 holds; see `octaves.lost_at`."""

    @property
    def share_matter(self) -> float:
        """The share of its gradients' values that matter, from 0 to 1."""
        return self.matter / self.looked if self.looked else 0.0

    @property
    def share_stuck(self) -> float:
        """The share of values that did not move, from 0 to 1."""
        return self.stuck / self.checked if self.checked else 0.0


@dataclass(slots=True)
class Memory:
    """Bytes that tensors of one dtype held, in the sampled step in which they held most."""

    what: str
    """`parameters`, `gradients`, `optimizer states`, or `activations`: what the forward left when a backward began."""
    dtype: str
    nbytes: int


@dataclass(slots=True)
class Histogram:
    """How the magnitudes of one module's tensors are spread, of some values in sampled steps."""

    what: str
    """`activations` that the forward left when a backward began, `gradients` as an optimizer got them, or `weights`."""
    module: str
    """`blocks.2.fc`, or "" outside any module."""
    dtype: str
    zeros: int
    first: int
    """The exponent of the first count."""
    counts: list[int]
    """Values by exponent: those of exponent e are from 2**(e - 1) up to, but without, 2**e."""


@dataclass(slots=True)
class Timing:
    """Times of a run beside those of its operators, in seconds."""

    steps: int
    """The steps that the next three are over, the first that was traced left out; 0 where they are over the whole run."""
    wall: float
    """In all, the tracer's own work included."""
    operators: float
    """In the operators alone: on CUDA as the device took them, else as they were called."""
    optimizers: float
    """In optimizer steps, as the host sees them."""
    call: float
    """Of one call in which nothing is computed: contained in each call on the CPU."""
    device: str
    """`cuda` or `cpu`."""
    processor: str
    """The name of that device."""
    float32: str
    """torch.get_float32_matmul_precision() at the end; "" if not known."""


@dataclass(slots=True)
class DtypeError:
    """An operator that refused the dtypes it was given."""

    message: str
    """The exception's first line."""
    op: str
    step: int
    place: int | None
    arguments: list[str]
    """Names of the tensor arguments in the operator's schema, such as `mat1`."""
    operands: list[Operand]
    """The tensor arguments, in the same order."""
    count: int
    fatal: bool
    """Did the traced program end by it?"""

    @property
    def too_large(self) -> bool:
        """Did not the dtypes of its operands disagree, but a number that it was given does not fit them?"""
        return WITHOUT_OVERFLOW in self.message


@dataclass(slots=True)
class ModuleSeries:
    """What one module did in one phase, in the columns of the series."""

    module: str
    """`blocks.2.fc`, or "" outside any module."""
    phase: str
    """`forward` or `backward`."""
    dtypes: list[str]
    """Of its results, in the order of the calls of a run."""
    runs: list[list[int]]
    """Equal columns, together: how many they are; the power of 2 above the largest finite magnitude, or NOTHING; how
    many of 1000 values a narrower dtype turned into 0, or UNKNOWN; calls with a result that was not finite, but for infs that were meant; and calls by
    dtype, where those at the end that are missing are 0."""


@dataclass(slots=True)
class Series:
    """What modules did over the steps. A column is one step, or several where there were many."""

    starts: list[int]
    """The first step of each column, from 0."""
    rows: list[ModuleSeries]


@dataclass(slots=True)
class LocalError:
    """How far the results of an entry are from those of the same operator, of the same operands, in the wider dtype of
    `--shadow`: its own error, whatever its operands brought along. Numbers that only bar positions are left out.

    With `assume`: how far they would be, were its operands and its results rounded to the dtype that is assumed."""

    entry: int
    calls: int
    error: float
    """The norm of the differences over that of the wider results, over all calls."""
    worst: float
    """The largest of a call."""
    values: int
    saturated: int
    """How many of them are finite in the wider dtype alone."""
    vanished: int
    """How many of them are not 0, but below the normal range of the narrower dtype."""
    amplified: float
    """Of a sum: by how much it made relative errors of its operands larger, at most; else 1."""


@dataclass(slots=True)
class Gains:
    """By how much an entry makes relative differences of its operands larger, in norms: each alone, changed a little."""

    entry: int
    gains: list[float]
    """By operand; 1 of one of which it was not measured."""


@dataclass(slots=True)
class SketchedStep:
    """What the operators of one step computed, in the order in which they ran."""

    step: int
    """Counted from 0."""
    lines: str
    """A line for each result, joined by `;`: four numbers or more, separated by blanks. The operator, by its number in
    `Sketches.ops`; the tensor, by its number in `Sketches.tensors`, or -1 - that where it has no sketch; which of
    the operator's results it is; then the lines that wrote its operands. What came from outside stands as -1 - its number in
    `Sketches.names` in place of the operator, and then the operator that first read it, or -1."""
    values: str
    """Base64 of the sketches of those lines that have one: each is 3 + PROJECTIONS floats of 32 bits, little-endian.
    Lowest and highest of the sampled values and 0; their norm, and their sums under PROJECTIONS random signs, in which
    what is not finite, or so low that it only bars a position, counts as 0."""


@dataclass(slots=True)
class Sketches:
    """What `dtlint trace --sketch` keeps of the values, for `dtlint compare`."""

    ops: list[int]
    """The entries of the operators."""
    tensors: list[str]
    """dtype and shape, as `float32[2,3]`."""
    names: list[str]
    """`parameter fc.weight`, or "" of what has no name."""
    steps: list[SketchedStep]
    method: str = METHOD
    """How values are sampled and signs are chosen: only sketches of one method can be compared."""


def is_sketched(number: int) -> bool:
    """Is the `number`-th step that is traced, from 1, one of those that are sketched?

    These are the first four, and from there on two in each doubling: 17 of 500, so that the record stays small.
    """
    rest = number // 3 if number % 3 == 0 else number
    return number <= 4 or rest & (rest - 1) == 0
