"""Summaries: what a call was found to do; and the same for a call elsewhere, whose objects are others."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.infer.semantics.relocation import Relocation

if TYPE_CHECKING:
    from dtlint.infer.domain.values import CallPath, Value
    from dtlint.infer.state import Difference, Store

__all__ = ["Summary", "moved"]


@dataclass(slots=True, eq=False)
class Summary:
    """What a call was found to do.

    Attributes:
        reads: the cells that it read, with what was in them.
        changes: what it changed.
        result: what it gave; None: it never returns.
        path: the calls around it, where it allocated objects that outlive it; None where it did not.
        seen: what the cells that it wrote have had in them, one after the other: an exception may leave any of it.
        tells: was something recorded on the way that every call tells anew?
        rests_on: the modules that something was asked for in.
    """

    reads: Difference
    changes: Difference
    result: Value | None
    path: CallPath | None
    seen: Difference = dataclasses.field(default_factory=dict)
    tells: bool = False
    rests_on: frozenset[Any] = frozenset()

    @property
    def defines_classes(self) -> bool:
        """Do classes outlive it that it has defined? Theirs is one path."""
        return any(address.kind == "class" for address, _ in self.changes)


def moved(store: Store, summary: Summary, path: CallPath) -> Summary:
    """What the same call does behind another path: the objects that it makes are that path's."""
    assert summary.path is not None
    move = Relocation(store, summary.path, path)
    changes = {(move.address(address), field): move.value(value) for (address, field), value in summary.changes.items()}
    result = None if summary.result is None else move.value(summary.result)
    return Summary(summary.reads, changes, result, path, summary.seen)
