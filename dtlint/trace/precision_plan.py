"""A precision plan as data: which modules of a model keep a wider dtype while the rest runs in float16, and why.

`dtlint.plan` makes one from a trace record, `planned` applies it to a running program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

__all__ = ["CHANGED", "HOW", "KEPT_IN", "PLAN_SCHEMA", "Kept", "Plan", "PlanRefused", "Reason", "check_plan"]

PLAN_SCHEMA = 1
"""Raised when an older reader would misread a newer plan."""

HOW = ("autocast", "cast")
"""Ways to run in float16: by autocast over float32 weights, or with the weights cast for the forward, as FSDP2 does."""

KEPT_IN = ("float32", "bfloat16")
"""dtypes that hold what overflows in float16."""

CHANGED = {
    "overflow": "it reaches {value:.4g}, and float16 ends at 65504",
    "operand": "an operand reaches {value:.4g}, and float16 ends at 65504",
    "gradient-overflow": "it reaches {value:.4g} before the loss scale, and float16 ends at 65504",
    "gradient-lost": "{value:.0%} of the gradient would be 0 in float16 at that loss scale",
    "lost": "{value:.0%} of the values would be 0 in float16",
    "error": "it adds {value:.2g} to the relative error of the output",
    "non-finite": "it gave {value:g} in a run of the plan",
    "gradient-lost-in-run": "{value:.0%} of the gradient that float32 has was 0 in a run of the plan",
}
"""What speaks against float16, in words: the kinds of reasons."""


@dataclass(slots=True)
class Reason:
    """Why a module is kept."""

    kind: str
    """Of `CHANGED`."""
    value: float
    """A magnitude, or a share from 0 to 1."""
    file: str
    """Where the operator stands; "" of a weight."""
    line: int
    expression: str
    op: str
    backward: bool = False

    @property
    def words(self) -> str:
        """The reason as the end of a sentence."""
        return CHANGED[self.kind].format(value=self.value)


@dataclass(slots=True)
class Kept:
    """A module whose own operators keep the wider dtype. The modules inside it do so only if they are kept as well."""

    module: str
    """Its path, as in `layers.0.attention`; the class of the model itself."""
    reasons: list[Reason] = field(default_factory=list)
    step: int = 0
    """The training step, from 0, by which it first ran."""


@dataclass(slots=True)
class Plan:
    """What to do with one model."""

    plan: int
    """The schema of this file."""
    dtlint: str
    """The version that made it."""
    argv: list[str]
    """The program that was traced for it, with its arguments."""
    how: str
    """Of `HOW`."""
    keep_in: str
    """Of `KEPT_IN`."""
    device: str
    """The kind of device that the model ran on, as `cuda`."""
    simulated: bool
    """Was that device simulated?"""
    scale: float
    """The loss scale, a power of 2; 0 where the program has a GradScaler of its own."""
    headroom: float
    """How many times what was seen must fit."""
    keep: list[Kept]
    modules: int
    """Modules that ran an operator of their own."""
    share: float
    """The share of matrix work that would run in 16 bits, from 0 to 1; -1 where there was none."""
    activations: list[int] = field(default_factory=list)
    """Bytes that the run kept for the backward, and what is estimated under the plan; empty where no backward ran."""
    parameters: list[int] = field(default_factory=list)
    """Bytes of the parameters, and of the copies in float16 that the plan makes of them for the forward."""
    matter: dict[str, float] = field(default_factory=dict)
    """By weight: the share of its gradient's values that mattered in the run without the plan; see `octaves`."""

    max_error: float = 0.0
    """The bound on the relative error of the output that was asked for; 0 if none was."""
    error: float = -1.0
    """What that error is estimated as, at most; -1 where no shadow measured what it is made of."""

    def keeps(self, module: str) -> bool:
        """Is this module's path one of those that are kept?"""
        return any(kept.module == module for kept in self.keep)

    @property
    def names(self) -> list[str]:
        """The paths of the modules that are kept."""
        return [kept.module for kept in self.keep]


class PlanRefused(BaseException):
    """The program cannot run under its plan, and ends here. It is no Exception, so that the program does not catch it."""


def check_plan(plan: Plan) -> None:
    """Refuse what no plan says, as one from a file may.

    Raises:
        KeyError: with what it is.
    """
    if plan.how not in HOW or plan.keep_in not in KEPT_IN:
        raise KeyError("a dtype or a way that no plan has")
    if not 0 <= plan.scale < math.inf or not plan.headroom >= 1 or len(plan.activations) not in (0, 2):
        raise KeyError("a number that no plan has")
    if len(plan.parameters) not in (0, 2) or not 0 <= plan.max_error < math.inf or not plan.error >= -1:
        raise KeyError("a number that no plan has")
    if any(reason.kind not in CHANGED for kept in plan.keep for reason in kept.reasons):
        raise KeyError("a reason that no plan has")
