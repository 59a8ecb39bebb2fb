"""DT909: a batch or a weight was not finite when it was used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Diagnostic, Severity
from dtlint.dtypes.dtype import DTYPES
from dtlint.rule import RuntimeRule
from dtlint.trace.options import VALUES
from dtlint.trace.schema import COMPILED
from dtlint.trace.words import listed, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import Entry, Event


class CameIn(RuntimeRule):
    """A batch, a weight or a constant held NaN or inf when the program used it.

    ## What it does
    Reports data that was non-finite before any traced operator touched it, at the line that first used it; and memory
    that NumPy or another thread changed later, at the line that met the change. Tensors whose only non-finite value
    is -inf are masks and are left alone. Where `--module`, `--steps` or `--every` leave operators out, one of those may
    have made it, and where `--watch` leaves out a dtype, a result in that: then it says so, and claims no origin.

    ## Why it matters
    No change of dtype mends data that is already broken, so this must be known first: a NaN in the data set, a
    damaged checkpoint, a weight that an earlier run spoilt.

    ## Example
    ```python
    import numpy as np
    import torch

    batch = torch.from_numpy(np.array([1.0, np.nan], dtype=np.float32))
    print((batch * 2).sum())
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    batch = torch.from_numpy(np.nan_to_num(np.array([1.0, np.nan], dtype=np.float32)))
    print((batch * 2).sum())
    ```

    ## References
    - [torch.nan_to_num](https://docs.pytorch.org/docs/stable/generated/torch.nan_to_num.html)
    """

    code, name, severity = "DT909", "came-in", Severity.WARNING

    def judge(self, record: TraceRecord) -> Iterator[Diagnostic]:
        """One diagnostic per line that read bad data which then spread."""
        for group in record.events_of("came-in"):
            event = group[0]
            if not event.spread and not event.reached:
                continue
            yield record.diagnostic(
                self,
                event.place,
                f"{_what(record, event)}{'' if event.entry is None else record.when(event)}{_maybe(event)}: {event.fate}",
                help=_help(record, event),
                severity=record.severity(event, Severity.INFO if record.harmless(event) else None),
            )


def _help(record: TraceRecord, event: Event) -> str:
    if event.subject == COMPILED:
        return "run with --eager to see where it was made"
    if event.brought or event.entry is None:
        return f"it was made where this trace does not look: {_elsewhere(record)}"
    if event.unwatched:
        watched = event.unwatched in VALUES
        return _without(["--watch"]) if watched else f"check the {event.unwatched} operand with torch.isfinite"
    if event.hidden:
        return _sooner(record, event) or _without(event.hidden)
    workers = any("child processes" in unseen.what for unseen in record.unseen)
    more = "; with num_workers=0 the trace shows the line that made it" if workers and not event.subject else ""
    return f"check the data or the checkpoint with torch.isfinite before the loop{more}"


def _sooner(record: TraceRecord, event: Event) -> str:
    """Which steps to trace, where the one before that was traced was some steps ago."""
    words = record.left_out.split()
    every = int(words[words.index("--every") + 1]) if "--every" in words else 1
    if every == 1 or event.step < every or any(option.startswith("--module") for option in event.hidden):
        return ""
    return f"trace the steps between with --steps {event.step + 2 - every}:{event.step + 1} to see where it was made"


def _without(options: Sequence[str]) -> str:
    """The first words of options are their names."""
    names = dict.fromkeys(word for option in options for word in option.split() if word.startswith("--"))
    return f"run without {listed(list(names))} to see where it was made"


def _elsewhere(record: TraceRecord) -> str:
    """Where else to look."""
    if any(unseen.in_graphs for unseen in record.unseen):
        return "run with --eager, if compiled code made it"
    if record.world > 1:
        return "see the other ranks' records too"
    if record.narrowed:
        return _without(record.narrowed)
    return "in another thread, in a collective, or in memory that the program writes itself"


def _weights(record: TraceRecord, event: Event) -> str:
    """What an optimizer's step made of gradients that no traced operator had spoilt."""
    at = None if event.place is None else record.places[event.place]
    step = (shorten(at.expression) if at is not None else "") or "an optimizer step"
    value = "NaN" if event.low != event.low else "inf"
    count = "1 parameter" if event.times == 1 else f"{event.times} parameters"
    many = "its gradient" if event.times == 1 else "their gradients"
    named = f", as {event.subject}" if event.times > 1 else f", {event.subject}"
    modules = " ".join(f"--module {name}" for name in record.covers)
    source = (
        f"{event.brought} brought {many} so"
        if event.brought
        else (
            f"{many} came from code that {modules} left out"
            if modules
            else f"{many} came from code that was not traced"
        )
    )
    return f"{step} wrote {value} to {count}{named}{record.when(event)}; {source}"


def _keeps(entry: Entry, event: Event) -> bool:
    """Is it a cast to a dtype of no smaller range, whose result is what its operand was?"""
    return bool(entry.author) and DTYPES[entry.output or ""].max >= DTYPES[event.unwatched].max


def _maybe(event: Event) -> str:
    """`, perhaps made by an operator outside --module b`."""
    if event.unwatched:
        return f"; --watch leaves {event.unwatched} out" if event.unwatched in VALUES else ""
    makers = [
        f"an operator outside {option}" if option.startswith("--module") else f"a step that {option} leaves out"
        for option in event.hidden
    ]
    return f", and {' or '.join(makers)} may have made it so" if makers else ""


def _what(record: TraceRecord, event: Event) -> str:
    if event.entry is None:
        return _weights(record, event)
    value = "NaN" if event.low != event.low else "-inf" if event.high == float("-inf") else "inf"
    if event.unwatched:
        came = "came" if _keeps(record.entries[event.entry], event) else "may have come"
        return f"{value} {came} in with the {event.unwatched} operand of {record.what(event)}"
    subject = event.subject or (
        f"what {event.brought} brought"
        if event.brought
        else "a tensor from outside what was traced"
        if event.hidden
        else "data from outside (a batch or a constant)"
    )
    return f"{subject} held {value}{_how_much(event)} when {record.what(event)} used it"


def _how_much(event: Event) -> str:
    """` in 1 of 48 values, in sample 3 of 16,`; "" where it is not known, or there is one value only."""
    if event.bad == 0 or event.of == 1:
        return ""
    sample = f", first in sample {event.sample + 1} of {event.samples}," if event.sample >= 0 else ""
    return f" in {event.bad:,} of {event.of:,} values{sample}"
