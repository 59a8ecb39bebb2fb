"""Tracing from within a program: `with dtlint.trace() as t`, `@dtlint.trace`, `dtlint.step()`.

torch is imported when a trace begins, and not before.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    import torch

    from dtlint.diagnostic import Diagnostic
    from dtlint.trace.expect import Expectations, Unmet
    from dtlint.trace.mode import Tracer
    from dtlint.trace.options import Options
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Event, Place

__all__ = ["Cast", "Overflow", "Promotion", "Seen", "Trace", "step", "trace"]

_F = TypeVar("_F", bound="Callable[..., Any]")


@dataclass(frozen=True)
class Seen:
    """Something that a trace saw at a place in the source."""

    file: str
    """Relative to the directory of the run where it lies below it."""
    line: int
    """Counted from 1."""
    expression: str
    """The source of the call, as in `x.half()`; "" if it is not known."""
    module: str
    """The path of the module that ran, as in `blocks.2.fc`; "" outside any."""
    op: str
    """torch's name of the operator, as in `addmm`."""
    backward: bool
    """Was it in the backward of that expression?"""

    def __str__(self) -> str:
        from dtlint.trace.words import within

        backward = "backward of " if self.backward else ""
        return f"{self.file}:{self.line}: {backward}`{self.expression}`{within(self.module)}: {self._says()}"

    def _says(self) -> str:
        return self.op


@dataclass(frozen=True)
class Cast(Seen):
    """A change of dtype, with all calls of it."""

    source: str
    """A dtype, as in `float32`."""
    target: str
    author: str
    """`asked` (the program), `autocast`, `implicit` (inside an operator) or `backward`."""
    count: int
    """Calls."""
    nbytes: int
    """Bytes read and written by all of them."""
    useless: int
    """How many of them undid a cast that had just been made."""

    def _says(self) -> str:
        return f"{self.source} -> {self.target}, {self.author}, {_times(self.count)}"


@dataclass(frozen=True)
class Promotion(Seen):
    """An operator that raised its operands to the widest dtype among them."""

    inputs: tuple[str, ...]
    """The operands' dtypes."""
    output: str
    operand: int
    """Which of the inputs is to blame."""
    count: int
    """Calls."""

    def _says(self) -> str:
        return f"{self.op}({', '.join(self.inputs)}) -> {self.output}, {_times(self.count)}"


@dataclass(frozen=True)
class Overflow(Seen):
    """A finite computation whose result was too large for its dtype."""

    dtype: str
    step: int
    """The first step in which it happened, counted from 1."""
    times: int
    reached: tuple[str, ...]
    """Of `the loss`, `gradients`, `weights`, `a number the program read`."""
    expected: bool
    """Is it in the backward of a scaled loss, and did the GradScaler skip every such step?"""

    def _says(self) -> str:
        reached = f", reached {', '.join(self.reached)}" if self.reached else ""
        return f"{self.op} overflowed {self.dtype} in step {self.step}, {_times(self.times)}{reached}"


class Trace(AbstractContextManager["Trace"]):
    """A trace of this thread, its backward and autograd's threads: `with dtlint.trace() as t`.

    What it found can be read while it runs, and after its end.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self.here: Path | None = None
        """The directory that files are told relative to; None until it begins for the current one."""
        self.gives_way = False
        """Does it end when another trace begins? Else that one is refused."""
        self._tracer: Tracer | None = None
        self._done: TraceRecord | None = None

    @staticmethod
    def begin(*args: Any, **kwargs: Any) -> Any:
        """`dtlint.trace(...)`, as the package of that name calls it."""
        return trace(*args, **kwargs)

    def __enter__(self) -> Trace:
        """Start.

        Raises:
            RuntimeError: this trace has been used already, or another one is running.
            ImportError: torch is not installed.
        """
        if self._tracer is not None:
            raise RuntimeError("this trace has been used already; make another with dtlint.trace()")
        if "torch" not in sys.modules and find_spec("torch") is None:
            from dtlint.trace.words import NO_TORCH

            raise ImportError(NO_TORCH, name="torch")
        from dtlint.trace.mode import Tracer

        self.here = self.here or Path.cwd()
        tracer = Tracer(self.options, self.here)
        tracer.gives_way = self.gives_way
        tracer.__enter__()
        self._tracer = tracer
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        """Stop. An exception passes through."""
        tracer = self._tracer
        assert tracer is not None
        tracer.__exit__(kind, error, traceback)
        self._done = self._record_of(tracer, int(error is not None))

    @staticmethod
    def _record_of(tracer: Tracer, status: int) -> TraceRecord:
        from dtlint.trace.export import record_of
        from dtlint.trace.rank import Rank

        record = record_of(tracer, list(sys.argv), status)
        record.rank, record.world = Rank.here()
        return record

    @property
    def record(self) -> TraceRecord:
        """All that was seen so far, as plain data; see `dtlint.trace.record`.

        Raises:
            RuntimeError: the trace has not begun.
        """
        if self._done is not None:
            return self._done
        if self._tracer is None:
            raise RuntimeError("this trace has not begun; enter it: with dtlint.trace() as t: ...")
        self._tracer.read()
        return self._record_of(self._tracer, 0)

    @property
    def casts(self) -> list[Cast]:
        """All changes of dtype, those of most bytes first."""
        record = self.record
        found = [_cast(entry, record.places[entry.place]) for entry in record.entries if entry.author]
        return sorted(found, key=lambda cast: -cast.nbytes)

    @property
    def promotions(self) -> list[Promotion]:
        """All operators that raised an operand to a wider floating dtype, the most frequent first."""
        record = self.record
        found = [
            _promotion(entry, record.places[entry.place]) for entry in record.entries if entry.finding == "promoted"
        ]
        return sorted(found, key=lambda promotion: -promotion.count)

    @property
    def overflows(self) -> list[Overflow]:
        """All results that were infinite though nothing they were made of was, in the order of their steps."""
        record = self.record
        found = [
            _overflow(event, record.entries[event.entry], record.places[event.place])
            for event in record.events
            if event.kind == "overflow" and event.entry is not None and event.place is not None
        ]
        return sorted(found, key=lambda overflow: overflow.step)

    def diagnostics(self) -> list[Diagnostic]:
        """What the runtime rules of the catalogue (DT9xx) make of it, the gravest first."""
        from dtlint.trace.judge import judge

        return judge(self.record, root=self.here)

    def expect(
        self,
        *,
        no_promotions: bool = False,
        max_dtype: str | torch.dtype | None = None,
        no_overflow: bool = False,
        no_nonfinite: bool = False,
        fail_on: str = "",
    ) -> None:
        """Hold what was seen to expectations.

            with dtlint.trace() as t:
                model(batch)
            t.expect(no_promotions=True, max_dtype="float32")

        Args:
            no_promotions: no operator raised its operands to the widest floating dtype among them.
            max_dtype: no tensor had a floating dtype with values that this one cannot hold.
            no_overflow: no result was infinite that was made of finite values.
            no_nonfinite: no infinite value and no NaN began or came in.
            fail_on: runtime rules that found nothing: `"overflow,DT908"`, as `dtlint trace --fail-on` takes them.

        Raises:
            AssertionError: one of these does not hold; the message tells where, why, and what to do.
            ValueError: an argument says nothing that can be judged, or nothing is expected.
            RuntimeError: the trace has not begun.
        """
        from dtlint.report.unmet import text
        from dtlint.trace.expect import Expectations

        expectations = Expectations.parse(no_promotions, max_dtype, no_overflow, no_nonfinite, fail_on)
        refused = expectations.refused_by(self.options)
        if refused or not expectations.any:
            raise ValueError(refused or "nothing is expected; say what, as in t.expect(no_promotions=True)")
        unmet = self.unmet(expectations)
        if unmet:
            raise AssertionError(text(unmet))

    def unmet(self, expectations: Expectations) -> list[Unmet]:
        """Where what was seen does not keep to these expectations.

        Raises:
            RuntimeError: the trace has not begun.
        """
        return expectations.unmet(self.record, self.here or Path.cwd())

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, texts and numbers, as `dtlint trace --output` writes it."""
        from dtlint.trace.store import encoded

        return encoded(self.record)

    def save(self, path: str | Path) -> None:
        """Write the record into a file, for `dtlint report`.

        Raises:
            OSError: the file cannot be written.
        """
        from dtlint.trace.store import save

        save(self.record, Path(path))

    def save_html(self, path: str | Path) -> None:
        """Write a page for the browser, with all that the record holds, into one file.

        Raises:
            OSError: the file cannot be written.
        """
        from io import StringIO

        from dtlint.atomic import write_text
        from dtlint.report.html import write_run
        from dtlint.trace.judge import as_rules, runtime_rules

        text = StringIO()
        write_run(self.record, self.diagnostics(), text, as_rules(runtime_rules()))
        write_text(Path(path), text.getvalue())

    def report(self, stream: TextIO | None = None) -> None:
        """Write the screen that `dtlint trace` ends with, to stderr if no stream is given."""
        from dtlint.report.trace_text import write_trace

        write_trace(self.record, self.diagnostics(), stream or sys.stderr)


@overload
def trace(function: _F, /) -> _F: ...


@overload
def trace(
    *,
    steps: str | None = None,
    every: int = 1,
    only: str | None = None,
    watch: str | torch.dtype | Iterable[str | torch.dtype] = (),
    module: str | Iterable[str] = (),
    assume: str | torch.dtype | None = None,
    eager: bool = True,
    time: bool = False,
    sketch: bool = False,
    shadow: str | torch.dtype | None = None,
) -> _Tracing: ...


def trace(
    function: Callable[..., Any] | None = None,
    /,
    *,
    steps: str | None = None,
    every: int = 1,
    only: str | None = None,
    watch: str | torch.dtype | Iterable[str | torch.dtype] = (),
    module: str | Iterable[str] = (),
    assume: str | torch.dtype | None = None,
    eager: bool = True,
    time: bool = False,
    sketch: bool = False,
    shadow: str | torch.dtype | None = None,
) -> Any:
    """Trace a block of a program, or each call of a function, which then ends with the report on stderr.

        with dtlint.trace() as t:
            train()
        print(t.overflows, t.promotions, t.casts)

        @dtlint.trace
        def train(): ...

        @dtlint.trace(every=50, only="dtypes")
        def train(): ...

    Args:
        steps: trace only these, as in `"10:20"`: counted from 1, both ends included.
        every: trace one step in so many; in between the tracer is wholly off.
        only: `"dtypes"` judges no values.
        watch: dtypes whose values are judged, `torch.float16` or `"float16"`, one or several; all by default.
        module: patterns of module paths to look at, as in `"blocks.*.attn"`.
        assume: `torch.float16` or `"float16"` also tells what that dtype would have done.
        eager: functions under torch.compile run eagerly, so that their values are seen. Else they run compiled, and
            are known by the dtypes in the graphs that are captured during the trace.
        time: measure how long each operator takes.
        sketch: keep sketches of the values in the record, for `dtlint compare`: call `t.save(...)` after it.
        shadow: `torch.float32` or `torch.float64`, or its name, in which each operator of a narrower dtype is computed
            once more, so that its own error is known. A step takes several times as long: see `every`.

    Raises:
        ValueError: an argument says nothing that can be done.
        TypeError: the function is a generator or a coroutine, which runs after its call has ended; or it is a class.
        RuntimeError: on entering, if another trace is running.
    """
    from dtlint.trace.options import Options

    if function is not None and not callable(function):
        raise TypeError("dtlint.trace takes no positional arguments but a function to decorate")
    watched = _dtype_names(watch if isinstance(watch, Iterable) and not isinstance(watch, str) else [watch])
    modules = [module] if isinstance(module, str) else list(module)
    assumed, wide = (None if dtype is None else _dtype_names([dtype])[0] for dtype in (assume, shadow))
    options = Options.parse(steps, every, only, watched, modules, assumed, eager, time, sketch=sketch, shadow=wide)
    tracing = _Tracing(options)
    return tracing if function is None else tracing(function)


_RUNNING_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
"""What is called now and does its work after that, when the trace of the call has ended."""


def _dtype_names(dtypes: Iterable[str | torch.dtype]) -> list[str]:
    """The names of dtypes that may be torch's own objects; torch need not be loaded to ask them."""
    return [str(dtype).removeprefix("torch.") for dtype in dtypes]


class _Tracing(Trace):
    """What `dtlint.trace(...)` gives: a trace to enter, or a decorator."""

    def __call__(self, function: _F) -> _F:
        """Trace each call of `function`, and report it on stderr."""
        if any(is_later(function) for is_later in _RUNNING_LATER) or inspect.isclass(function):
            raise TypeError("dtlint.trace decorates plain functions; inside this one, use: with dtlint.trace(): ...")

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            trace = Trace(self.options)
            try:
                with trace:
                    return function(*args, **kwargs)
            finally:
                if trace._done is not None:
                    trace.report()

        return traced  # type: ignore[return-value]


def step() -> None:
    """Tell a running trace that a training step ends here; without a trace, nothing happens.

    For loops whose optimizer is none of torch's, and for those that step several optimizers, or one several times,
    in what the report should call one step: from the first call on, optimizers no longer end steps.
    """
    mode = sys.modules.get("dtlint.trace.mode")
    active: Tracer | None = mode.Tracer.active if mode is not None else None
    if active is not None:
        active.steps.mark()


def _times(count: int) -> str:
    from dtlint.trace.words import times

    return times(count)


def _where(entry: Entry, at: Place) -> dict[str, Any]:
    return {
        "file": at.file,
        "line": at.line,
        "expression": " ".join(at.expression.split()),
        "module": at.module,
        "op": entry.op,
        "backward": entry.phase == "backward",
    }


def _cast(entry: Entry, at: Place) -> Cast:
    return Cast(
        **_where(entry, at),
        source=entry.inputs[-1].dtype,
        target=entry.output or "",
        author=entry.author,
        count=entry.count,
        nbytes=entry.nbytes,
        useless=entry.round_trips,
    )


def _promotion(entry: Entry, at: Place) -> Promotion:
    return Promotion(
        **_where(entry, at),
        inputs=tuple(operand.dtype for operand in entry.inputs),
        output=entry.output or "",
        operand=entry.culprit or 0,
        count=entry.count,
    )


def _overflow(event: Event, entry: Entry, at: Place) -> Overflow:
    return Overflow(
        **_where(entry, at),
        dtype=event.dtype,
        step=event.step + 1,
        times=event.times,
        reached=tuple(event.reached),
        expected=event.by_scaler,
    )
