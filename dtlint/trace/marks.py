"""What a profiled run showed, with times: plain data, from which tracks of a trace file are made."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Mark", "Profiled"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that dtlint saw at a time."""

    track: str
    """`steps`, `promotions`, `casts`, `non-finite values` or `GradScaler`."""
    name: str
    start: int
    """Nanoseconds since 1970."""
    end: int | None
    """The same; None for what has no length."""
    thread: int = 0
    """The number of its thread, in the order of appearance."""
    args: dict[str, str | int] = field(default_factory=dict, hash=False)


@dataclass(slots=True)
class Profiled:
    """One window of a run."""

    path: str
    """torch.profiler's own file, a temporary one; "" if there is none."""
    marks: list[Mark]
    steps: int
    """Steps that the window holds."""
    missed: str = ""
    """Why there is no profile, or not all that was asked for; "" if all is well."""
    dropped: int = 0
    """Marks that were too many."""
