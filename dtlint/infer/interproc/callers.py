"""Who calls the functions of a library where nobody in view does: what they give, and the region around the call.

`OpenContexts` reads each function as such callers call it. Findings and claims ask for different ones: for a finding under an
assumption what may be a floating tensor is one, and a claim rests on what certainly is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dtlint.infer.domain.values import Function, Value
from dtlint.infer.interproc.calls import calls_of
from dtlint.infer.interproc.learning import Examples, Learning
from dtlint.infer.interproc.long_parameters import as_index, declared_long, int64_parameters
from dtlint.infer.interproc.misuses import Misuses
from dtlint.infer.interproc.open_parameters import (
    as_operands,
    is_open,
    numbers,
    open_parameters,
    usual_numbers,
    usual_parts,
)
from dtlint.infer.interproc.parameter_kinds import ParameterKinds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dtlint.dtypes.assumption import Assumption
    from dtlint.infer.context import Context, Recorder
    from dtlint.infer.interproc.functions import FunctionDefinition
    from dtlint.infer.interproc.long_parameters import Search
    from dtlint.infer.interproc.summaries import Summary

__all__ = ["AssumedCallers", "Callers", "CarelessCallers", "Entry", "SupposedCallers", "TensorCallers"]


class Entry(NamedTuple):
    """A function as it is called from outside, with the object whose method it is."""

    definition: FunctionDefinition
    receiver: Value | None = None

    @property
    def own(self) -> str | None:
        """The parameter that the object is given for."""
        is_bound = self.receiver is not None and "staticmethod" not in self.definition.decorators
        return next(iter(self.definition.parameters), None) if is_bound else None


class Callers:
    """Whoever they are: the dtypes of what they give are symbols, but for indices. Claims ask for these."""

    assumption: Assumption | None = None
    """What they keep to."""

    def __init__(self) -> None:
        self._indices = _Indices()

    def parameters(self, ctx: Context, definition: FunctionDefinition) -> dict[str, Value]:
        """What they give a function, whatever it does with that."""
        return open_parameters(ctx, definition)

    def given(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """What they give a function that uses it as it does.

        Args:
            bound: what they give whatever it does, and the object whose method it is.
        """
        return self._indices.among(ctx, entry, bound)

    def as_tensors(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> dict[str, Value]:
        """What is a floating tensor, unless the function cannot return then."""
        return {}


class TensorCallers(Callers):
    """They give tensors to functions that reckon with what they are given, and numbers where the default is one. Dtype
    signatures tell of these."""

    def given(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """What they give a function that uses it as it does."""
        bound = super().given(ctx, entry, bound)
        return bound | numbers(entry.definition, bound)

    def as_tensors(self, definition: FunctionDefinition, bound: Mapping[str, Value]) -> dict[str, Value]:
        """What is a floating tensor, unless the function cannot return then."""
        return {} if definition.is_constructor else as_operands(definition, bound)


class CarelessCallers(Callers):
    """They may give anything but what a declaration says. Rules ask for these."""

    def parameters(self, ctx: Context, definition: FunctionDefinition) -> dict[str, Value]:
        """What they give a function, whatever it does with that."""
        return open_parameters(ctx, definition, trusts_uses=False)

    def given(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """The same, whatever the function does with it."""
        return bound


class SupposedCallers(Callers):
    """They keep to an assumption, and what may be a floating tensor is one. Findings under an assumption ask for these.

    Args:
        targets: the keys of the parameters that losses take as targets.
    """

    def __init__(self, assumption: Assumption, targets: frozenset[str]) -> None:
        super().__init__()
        self.assumption = assumption
        self._kinds = ParameterKinds(assumption.inputs, targets, assumption.targets, supposes=True)

    def parameters(self, ctx: Context, definition: FunctionDefinition) -> dict[str, Value]:
        """What they give a function, whatever it does with that."""
        bound = open_parameters(ctx, definition, self._kinds)
        return bound | usual_numbers(definition) | usual_parts(definition)

    def given(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """The same: its uses were looked at before."""
        return bound


class AssumedCallers(Callers):
    """They keep to an assumption, and what certainly is a floating tensor is of its dtype. Claims under an assumption ask for
    these."""

    def __init__(self, assumption: Assumption) -> None:
        super().__init__()
        self.assumption: Assumption = assumption
        self._kinds = ParameterKinds(assumption.inputs, of_targets=assumption.targets)
        self.learning, self.examples = Learning(self._kinds), Examples(self._kinds)
        """What are told of the functions before anything is told of them."""

    def parameters(self, ctx: Context, definition: FunctionDefinition) -> dict[str, Value]:
        """What they give a function, whatever it does with that. A constructor is mostly given sizes, rates and flags."""
        kinds = None if definition.is_constructor else self._kinds
        return open_parameters(ctx, definition, kinds) | usual_numbers(definition)

    def given(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """What they give a function that uses it as it does."""
        if not entry.definition.is_constructor:
            bound = bound | self._of_their_kinds(ctx, entry, bound)
        bound = super().given(ctx, entry, bound)
        return bound | self._kinds.usual(entry.definition, numbers(entry.definition, bound))

    def _of_their_kinds(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """The parameters that are of the assumed dtype if they are floating tensors, the method's own object aside."""
        dtype, definition = self.assumption.inputs, entry.definition
        usual = open_parameters(ctx, definition)
        assumed = {
            name: value
            for name, value in bound.items()
            if name in usual and is_open(usual[name]) and value != usual[name] and name != entry.own
        }

        def read(given: Mapping[str, Value]) -> Misuses:
            misuses = Misuses(dtype, ctx.semantics.tells)
            misuses.returns = _told(ctx, misuses, definition, {**bound, **given}).result is not None
            return misuses

        return self._kinds.certain(definition, entry.receiver, assumed, read)


class _Indices:
    """The parameters that are declared as LongTensor, and that are int64 by what the function does with them."""

    def __init__(self) -> None:
        self._found: dict[Entry, frozenset[str]] = {}

    def among(self, ctx: Context, entry: Entry, bound: dict[str, Value]) -> dict[str, Value]:
        """What is given, of int64 where it is."""
        long = declared_long(entry.definition)
        if long and entry not in self._found:

            def read(search: Search, names: frozenset[str]) -> None:
                _told(ctx, search, entry.definition, bound | {name: as_index(bound[name]) for name in names})

            self._found[entry] = int64_parameters(entry.definition, long, read)
        return bound | {name: as_index(bound[name]) for name in long if name in self._found[entry]}


def _told(ctx: Context, recorder: Recorder, definition: FunctionDefinition, bound: dict[str, Value]) -> Summary:
    """What a function does with some arguments: this recorder is told of it, and nobody else."""
    usual, ctx.recorder = ctx.recorder, recorder
    try:
        return calls_of(ctx).openly(ctx, Function(definition, None), bound)
    finally:
        ctx.recorder = usual
