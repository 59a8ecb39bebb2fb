"""Non-finite values where none were before, while the run goes on: what they were born of, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from dtlint.trace.schema import Growth
    from dtlint.trace.signature import Signature
    from dtlint.trace.site import Site
    from dtlint.trace.slots import Range

__all__ = ["Bad", "Event"]


class Bad(NamedTuple):
    """How much of a tensor was not finite: values of all, and the first sample that held one, of all; -1 if unknown."""

    values: int
    of: int
    sample: int
    samples: int


class Event:
    """One birth; the same kind at the same signature counts again in it."""

    __slots__ = (
        "bad",
        "brought",
        "dtype",
        "eps",
        "growth",
        "hidden",
        "high",
        "inputs",
        "into",
        "kind",
        "last_step",
        "low",
        "maker",
        "number",
        "rate",
        "reached",
        "signature",
        "site",
        "skipped",
        "spoils",
        "spread",
        "step",
        "steps",
        "subject",
        "times",
        "unwatched",
        "writer",
    )

    def __init__(self, kind: str, step: int, signature: Signature | None, dtype: torch.dtype | None) -> None:
        self.kind, self.dtype = kind, dtype
        """The kinds are told at `schema.Event.kind`."""
        self.step = self.last_step = step
        """The first and the last step in which it was born, or spread."""
        self.signature = signature
        """What gave birth to it; None for a weight that an optimizer step spoilt."""
        self.site: Site | None = signature.site if signature is not None else None
        self.subject = ""
        """The weight or batch, where it has a name."""
        self.into: int | None = None
        """The storage into which what came in was copied, as from a checkpoint, until that is known to be a weight."""
        self.brought = ""
        """The collective that brought it, where one did."""
        self.hidden = False
        """May an operator that is not traced have made it, on a part of the run that the options leave out?"""
        self.unwatched: torch.dtype | None = None
        """The dtype of the operand in which it may have come, where the values of that dtype are not judged."""
        self.writer: Signature | None = None
        """Of a NaN: the operator that wrote the infs which an operand held, as those of a mask."""
        self.low = self.high = 0.0
        """The values at the first birth."""
        self.inputs: list[tuple[torch.dtype, Range]] = []
        """dtypes and values of the operands at the last birth, as far as they are known."""
        self.bad: Bad | None = None
        """Of what came in: how much of it."""
        self.maker: Signature | None = None
        """Of a pole, or of 0/0: the operator that made the operand which was 0."""
        self.rate: Any = None
        """The learning rate, where an optimizer's step spoilt a weight."""
        self.growth: Growth | None = None
        """How much the weights had grown in the steps before, where that is much."""
        self.number: float | None = None
        """The Python number among the operands, where each call had the same."""
        self.times = self.spread = 0
        """Births, and results that inherited it."""
        self.steps = self.skipped = 0
        """Steps that it touched, and those of them that the GradScaler skipped."""
        self.spoils = False
        """Was it born in the backward, or has it reached gradients or the loss, since the GradScaler's last update?"""
        self.eps: float | None = None
        """The optimizer's eps, where its step spoilt a weight."""
        self.reached: set[str] = set()

    @property
    def forward(self) -> bool:
        """Was it born in the forward, where no loss scale explains it?"""
        return self.signature is not None and not self.signature.backward

    def touch(self, step: int) -> None:
        """It was born again in this step, or spread."""
        if not self.steps or self.last_step != step:
            self.steps += 1
        self.last_step = step
