"""What facts are put into words by several rules: where an operation stands that a call leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.facts import Step

if TYPE_CHECKING:
    from dtlint.infer.facts import Event, Operation, Sighting

__all__ = ["op_name", "origin"]


def origin(sighting: Sighting[Operation] | Sighting[Event], text: str) -> tuple[tuple[Step, str], ...]:
    """A note where it happens, if the finding stands at a call that leads there; else one at the call that leads to it."""
    what = sighting.what
    if sighting.behind:
        return ((Step(what.node, what.module), text),)
    return () if sighting.call is None else ((sighting.call, "called from here"),)


def op_name(op: str) -> str:
    """An op as a program spells it: `nn.Linear`, `cross_entropy`."""
    last = op.rpartition(".")[2]
    return f"nn.{last}" if last[:1].isupper() else last
