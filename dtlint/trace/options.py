"""What a trace looks at: which steps, which modules, the values of which dtypes. Checked once, before anything runs.

It needs no torch: the command line and the API both make it from what a person wrote.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["EVERYTHING", "ONLY", "VALUES", "Options", "OptionsError"]

VALUES = ("float16", "bfloat16", "float32", "float64")
"""dtypes whose values can be judged."""

ONLY = ("dtypes",)
"""What a trace can be narrowed to: dtypes judges no values."""

ASSUMED = ("float16",)
"""Narrower dtypes that a run can be judged by. bfloat16 has float32's range: nothing overflows or vanishes in it alone."""

SHADOWS = ("float32", "float64")
"""Wider dtypes in which operators can be computed once more."""

SPAN = re.compile(r"(?P<first>\d*)(?P<colon>:?)(?P<last>\d*)")


class OptionsError(ValueError):
    """What was written cannot be meant; the message is one line."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to look at."""

    first: int = 1
    """The first step that is traced, counted from 1."""
    last: int | None = None
    """The last one; None for all that follow."""
    every: int = 1
    """From the first on, one step in so many."""
    watch: frozenset[str] = frozenset(VALUES)
    """dtypes whose values are judged."""
    modules: tuple[str, ...] = ()
    """Patterns of module paths: only operators within these are recorded; all, if there are none."""
    assume: str | None = None
    """A narrower dtype that the run is judged by as well."""
    time: bool = False
    """Is it measured how long each operator takes?"""
    gradients: bool = False
    """Is it also counted how many values of the weights' gradients are 0? With `assume` they always are."""
    eager: bool = True
    """Do functions under torch.compile run eagerly, with values? Else they run compiled, and are known from graphs."""
    sketch: bool = False
    """Are sketches of the results kept, for `dtlint compare`?"""
    shadow: str | None = None
    """The wider dtype in which each operator is computed once more."""
    gains: bool = False
    """With a shadow: is it also measured what operators make of differences of their operands? With `assume` it is."""

    @classmethod
    def parse(
        cls,
        steps: str | None = None,
        every: int = 1,
        only: str | None = None,
        watch: Iterable[str] = (),
        modules: Iterable[str] = (),
        assume: str | None = None,
        eager: bool = True,
        time: bool = False,
        sketch: bool = False,
        shadow: str | None = None,
    ) -> Options:
        """From words as a person writes them.

        Args:
            steps: `A:B`, `A:`, `:B` or `A`; counted from 1, both ends included.
            every: trace one step in so many.
            only: "dtypes" judges no values.
            watch: names of dtypes, as `float16`; all of `VALUES` if there are none.
            modules: patterns as a shell has them, as `blocks.*.attn`; what lies within a module that matches counts.
            assume: the name of a narrower dtype.
            eager: run functions under torch.compile eagerly.
            time: measure how long each operator takes.
            sketch: keep sketches of the results.
            shadow: the name of a wider dtype, in which each operator is computed once more.

        Raises:
            OptionsError: one of these says nothing that can be done.
        """
        first, last = _span(steps)
        if not isinstance(every, int) or every < 1:
            raise OptionsError(f"every {every!r} is no number of steps; give 1 or more")
        if only is not None and only not in ONLY:
            raise OptionsError(f"only {only!r} is not known; use {' or '.join(ONLY)}")
        watched = frozenset(map(_dtype, watch))
        if only and (watched or assume):
            raise OptionsError("only dtypes judges no values: leave it out, or else what to watch and assume")
        if only and sketch:
            raise OptionsError("only dtypes looks at no values, and a sketch is of values: leave one of them out")
        if only and shadow:
            raise OptionsError("only dtypes looks at no values, and a shadow is of values: leave one of them out")
        if shadow is not None and shadow not in SHADOWS:
            raise OptionsError(f"shadow {shadow!r} is no wider dtype; use {' or '.join(SHADOWS)}")
        if any(not pattern for pattern in modules):
            raise OptionsError("module '' is no path; write one such as blocks.0 or blocks.*.attn")
        if assume is not None and assume not in ASSUMED:
            raise OptionsError(_why_not(assume))
        watch = frozenset() if only else watched or frozenset(VALUES)
        return cls(
            first, last, every, watch, tuple(modules), assume, eager=eager, time=time, sketch=sketch, shadow=shadow
        )

    def traces(self, step: int) -> bool:
        """Is this step, counted from 1, one to trace?"""
        return self.first <= step <= (self.last or step) and (step - self.first) % self.every == 0

    def following(self, step: int) -> float:
        """The first step to trace after this one, counted from 1; infinite if none is left."""
        after = max(step + 1, self.first)
        after += (self.first - after) % self.every
        return after if after <= (self.last or after) else math.inf

    @property
    def always(self) -> bool:
        """Is every step traced?"""
        return self.first == 1 and self.last is None and self.every == 1

    def covers(self, module: str) -> bool:
        """Is this module path, or one that it lies within, among those to look at?"""
        if not self.modules:
            return True
        parts = module.split(".") if module else []
        paths = [".".join(parts[:length]) for length in range(1, len(parts) + 1)]
        return any(fnmatchcase(path, pattern) for path in paths for pattern in self.modules)

    @property
    def partial(self) -> bool:
        """May an operator that is not traced have made what one that is traced reads?"""
        return bool(self.modules) or self.first > 1 or self.every > 1

    @property
    def module_words(self) -> str:
        """The option that leaves modules out, as it was written; "" if none."""
        return " ".join(f"--module {pattern}" for pattern in self.modules)

    def hiding(self, step: int) -> list[str]:
        """The options that may hide what made a tensor which is read in a step, counted from 0; as they were written."""
        earlier = self.first > 1 or (self.every > 1 and step > 0)
        return [*filter(None, [self.module_words, self.left_out if earlier else ""])]

    @property
    def left_out(self) -> str:
        """What the options leave out, as they were written; "" if nothing."""
        words = []
        if self.first != 1 or self.last is not None:
            words.append(f"--steps {self.first}:{self.last or ''}")
        if self.every != 1:
            words.append(f"--every {self.every}")
        return " ".join(words)


EVERYTHING = Options()


def _span(steps: str | None) -> tuple[int, int | None]:
    if steps is None:
        return 1, None
    found = SPAN.fullmatch(steps.strip()) if isinstance(steps, str) else None
    if found is None or not (found["first"] or found["last"]):
        raise OptionsError(f"steps {steps!r} is no span; write A:B, A:, :B or A, counted from 1")
    first = int(found["first"] or 1)
    last = int(found["last"]) if found["last"] else None if found["colon"] else first
    if first < 1 or (last is not None and last < first):
        raise OptionsError(f"steps {steps!r} is an empty span; steps are counted from 1, and both ends are included")
    return first, last


def _why_not(assume: str) -> str:
    """Why there is nothing to assume of this dtype."""
    if assume == "bfloat16":
        return "assume 'bfloat16' would show nothing: it has float32's range, where nothing new overflows; use float16"
    return f"assume {assume!r} tells nothing; use {' or '.join(ASSUMED)}"


def _dtype(name: str) -> str:
    plain = name.strip().removeprefix("torch.")
    plain = {"half": "float16", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}.get(plain, plain)
    if plain not in VALUES:
        near = difflib.get_close_matches(plain, VALUES, 1, 0.5)
        raise OptionsError(
            f"watch {name!r} is no dtype whose values can be judged; "
            + (f"did you mean {near[0]}?" if near else f"use {', '.join(VALUES)}")
        )
    return plain
