"""What a trace did not see, and why: counted as the program ran, told in words at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.trace.ops import REFORMULATED
from dtlint.trace.options import VALUES
from dtlint.trace.schema import VALUES_IN_GRAPHS, Unseen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import torch

    from dtlint.trace.captured import Captured
    from dtlint.trace.elsewhere import Elsewhere
    from dtlint.trace.mode import Tracer
    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site

    Places = Callable[[Site | None], int | None]

__all__ = ["unseen_of"]

REFORMULATED_TOLD = "calls of {} whose gradient torch computes in another way under a tracer; it may differ by rounding"


def unseen_of(tracer: Tracer, signatures: Sequence[Signature], place: Places) -> Iterator[Unseen]:
    """All of it; `place` numbers a site in the record."""
    for what, count in tracer.flow.unseen.items():
        yield Unseen(what, count, place(tracer.flow.met.get(what)))
    calls = _not_judged(tracer.flow.watched, signatures) | _reformulated(signatures)
    for what, found in calls.items():
        yield Unseen(what, sum(s.count for s in found), place(found[0].site))
    yield from _steps(tracer)
    if tracer.shadow is not None:
        yield from tracer.shadow.unseen()
    yield from tracer.children.unseen()
    yield from _elsewhere(tracer.elsewhere)
    if tracer.captured is not None:
        yield from _captured(tracer.captured)


def _not_judged(watched: frozenset[torch.dtype], signatures: Sequence[Signature]) -> dict[str, list[Signature]]:
    """Calls whose results are of a dtype whose values cannot be judged. What the options left out, the report tells."""
    found: dict[str, list[Signature]] = {}
    for s in signatures:
        out = s.output
        if out is None or out in watched or not (out.is_floating_point or out.is_complex):
            continue
        name = str(out).removeprefix("torch.")
        if name not in VALUES:
            found.setdefault(f"values of {name} results", []).append(s)
    return found


def _reformulated(signatures: Sequence[Signature]) -> dict[str, list[Signature]]:
    """Calls whose gradient took the formula that only a traced run takes."""
    found: dict[str, list[Signature]] = {}
    for s in signatures:
        mark = REFORMULATED.get(s.op.name)
        if mark and not s.backward and any(b.backward and b.op.name == mark for b in s.site.signatures.values()):
            found.setdefault(REFORMULATED_TOLD.format(s.op.name), []).append(s)
    return found


def _steps(tracer: Tracer) -> Iterator[Unseen]:
    steps = tracer.steps
    if steps.silenced:
        what = "optimizer steps within; the weights were checked after each"
        yield Unseen(what, steps.silenced, by_design=True, made_up_for=True)
    if steps.compiled:
        yield Unseen("optimizer steps inside compiled code; call dtlint.step() where each ends", 1)
    if tracer.passed_by:
        what = f"operators that {tracer.options.module_words} left out"
        yield Unseen(what, tracer.passed_by, by_design=tracer.operators > 0)
    left_out = tracer.flow.step - steps.traced
    if left_out:
        yield Unseen(f"steps that {tracer.options.left_out} left out", left_out, by_design=steps.traced > 0)


def _captured(captured: Captured) -> Iterator[Unseen]:
    """Compiled code, whose graphs tell dtypes and no values."""
    if captured.calls:
        yield Unseen(VALUES_IN_GRAPHS, captured.calls)
    for reason, count in captured.unread.items():
        yield Unseen(f"operators of compiled graphs that could not be read ({reason}); --eager shows them", count)
    if captured.rounded:
        what = "half-precision results that inductor may keep in float32, within a kernel that it fuses"
        yield Unseen(what, captured.rounded)


def _elsewhere(elsewhere: Elsewhere) -> Iterator[Unseen]:
    noun = "other thread" if elsewhere.threads == 1 else "other threads"
    counts = {
        "functions under torch.compile, which ran eagerly instead": elsewhere.compiled,
        f"{noun} ({', '.join(elsewhere.names)}); operators there are not seen": elsewhere.threads,
    }
    for what, count in counts.items():
        if count:
            yield Unseen(what, count)
