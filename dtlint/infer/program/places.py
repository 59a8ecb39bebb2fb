"""On which device tensors are: known of what is made on one, or moved there, and of what comes of it alone.

Where that is not known it may be any. A module's weights move with it, and are never known here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.kinds import FLOAT_FACTORIES, INT_FACTORIES, TENSOR_LAYERS
from dtlint.infer.program.externals import Externals
from dtlint.infer.values import (
    NONE,
    Autocast,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Either,
    External,
    Items,
    Iteration,
    Module,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    options,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

    from dtlint.infer.calls import Arguments
    from dtlint.infer.interproc.project import ModuleInfo, Project

__all__ = ["Places", "operands"]

_PLACES = {"cpu": Trait.ON_CPU, "cuda": Trait.ON_CUDA}
_ANY = Trait.ON_CPU | Trait.ON_CUDA
_FACTORIES = frozenset(
    f"torch.{name}" for name in FLOAT_FACTORIES | INT_FACTORIES | {"full", "arange", "tril_indices", "triu_indices"}
)
"""What makes a tensor on the default device, of numbers that say how large it is and what is in it."""
_TAKING_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray"})
"""What makes a tensor of data, which may be one of another device."""
_PACKAGES = frozenset({"torch", "torch.nn.functional", "torch.linalg", "torch.special", "torch.fft"})
_ELSEWHERE = frozenset({"xpu", "mps", "hpu", "npu", "ipu", "mtia", "type", "set_", "to_empty", "share_memory_"})
"""Methods after which a tensor may be on another device."""
_OFF = Autocast(None, None, False)


class Places(Externals):
    """An interpreter that knows of some tensors that they are on the CPU, or on a CUDA device."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.default_place_known = True
        """Are tensors made on the CPU unless the program says otherwise?"""

    def places_lost(self) -> None:
        if self.default_place_known:
            self.default_place_known = False
            self.objects.changed = True

    # -- what a call gives

    def place_of_result(self, callee: Value, receiver: Value, method: str, arguments: Arguments) -> Trait:
        """Where a call of torch's makes its result."""
        asked = arguments.keywords.get("device", NONE)
        if asked != NONE:
            return _named(asked)
        given = operands(receiver, arguments)
        if isinstance(receiver, Tensor):
            return self.place_of_method(receiver, method, arguments, given)
        if isinstance(callee, Module):
            return _common(given) if callee.name in TENSOR_LAYERS else Trait.NONE
        name = callee.name if isinstance(callee, External) else ""
        unsure = not self.default_place_known or self.supposed or not arguments.complete
        if name == "torch.from_numpy":
            return Trait.ON_CPU
        if name in _FACTORIES or (name in _TAKING_DATA and not _may_hold_tensors(arguments.args)):
            return Trait.NONE if unsure else Trait.ON_CPU
        return _common(given) if name.rpartition(".")[0] in _PACKAGES and arguments.complete else Trait.NONE

    def place_of_method(self, tensor: Tensor, method: str, arguments: Arguments, given: list[Value]) -> Trait:
        """Where a method of a tensor leaves its result."""
        if method in _PLACES:
            return _PLACES[method]
        if method in _ELSEWHERE or not arguments.complete:
            return Trait.NONE
        if method != "to" or not arguments.args:
            return _common(given)
        first = arguments.args[0]
        if isinstance(first, (Dtype, DtypeOf)):
            return tensor.traits & _ANY
        return first.traits & _ANY if isinstance(first, Tensor) else _named(first)

    def placed(self, value: Value, place: Trait) -> Value:
        """The value, with its tensors in a place."""
        if isinstance(value, Tensor):
            return value if value.traits & _ANY == place else replace(value, traits=value.traits & ~_ANY | place)
        if isinstance(value, Items):
            return value.holding(self.placed(item, place) for item in value.items)
        if isinstance(value, Iteration):
            return replace(value, item=self.placed(value.item, place))
        if isinstance(value, Either):
            return Either(tuple(self.placed(choice, place) for choice in value.choices))
        return value

    # -- which autocast region has its say

    def region_over(self, given: Iterable[Value]) -> Autocast | None:
        """The region to be entered for an op on these: what is on the CPU is not changed by one for another device.
        None where the innermost region decides."""
        if not self.flow.contexts:
            return None
        inner, place = self.flow.contexts[-1], _common(given)
        if place is Trait.NONE:
            return self.region_in_doubt(inner)
        region = self.region_for("cpu" if place is Trait.ON_CPU else "cuda")
        if region is None:
            return None if inner.enabled is False else _OFF
        if self.is_on_with_device(region):  # there is a tensor on it
            return replace(region, enabled=True)
        return None if region is inner else region

    def region_in_doubt(self, inner: Autocast) -> Autocast | None:
        """The region for what may be on any device, inside a region for one: who called may have opened another, and so
        has what stands around, where autocast is switched off for that one."""
        if inner.device is None:
            return None
        for outer in reversed(self.flow.contexts):
            if outer.device is None:
                return outer if outer.dtype is None else replace(outer, enabled=None)
            if outer.device != inner.device and inner.enabled is False:
                return replace(outer, enabled=None) if outer.enabled is not False else None
        return None

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        region = self.region_over((left, right))
        if region is not None:
            self.flow.contexts.append(region)
        result = super().operated(operator, left, right, node)
        if region is not None:
            self.flow.contexts.pop()
        return self.placed(result, _common((left, right)))

    # -- what the program asks

    def member(self, base: Value, name: str) -> Value:
        if isinstance(base, Tensor) and base.traits & _ANY and name in _ASKED:
            on_cpu = Trait.ON_CPU in base.traits
            if name == "device":
                return Device("cpu" if on_cpu else "cuda")
            return Constant(_ASKED[name] is (Trait.ON_CPU if on_cpu else Trait.ON_CUDA))
        if isinstance(base, Device) and name == "type" and base.type is not None:
            return Constant(base.type)
        return super().member(base, name)

    def given_by(self, context: Value) -> Value:
        if any(isinstance(choice, Device) and choice.type != "cpu" for choice in options(context)):
            self.places_lost()
        return super().given_by(context)


def operands(receiver: Value, arguments: Arguments) -> list[Value]:
    """What an op of torch's is given: the tensor whose method it is, and its arguments."""
    own = [receiver] if isinstance(receiver, Tensor) else []
    return [*own, *arguments.args, *arguments.keywords.values()]


_ASKED = {"device": Trait.NONE, "is_cpu": Trait.ON_CPU, "is_cuda": Trait.ON_CUDA, "is_mps": Trait.NONE}


def _named(device: Value) -> Trait:
    """The place that a `device=` argument names."""
    name = device.value if isinstance(device, Constant) else device.type if isinstance(device, Device) else None
    if isinstance(name, int) and not isinstance(name, bool):
        return Trait.NONE
    return _PLACES.get(str(name).partition(":")[0], Trait.NONE)


def _common(given: Iterable[Value]) -> Trait:
    """Where all tensors among these are; no place where one may be elsewhere."""
    places = {place for value in given for place in _each_place(value)}
    return places.pop() if len(places) == 1 else Trait.NONE


def _each_place(value: Value) -> Iterator[Trait]:
    """The places of all that may be tensors in a value."""
    if isinstance(value, Tensor):
        yield value.traits & _ANY
    elif isinstance(value, (Items, Either, Table)):
        held = (
            value.items.values()
            if isinstance(value, Table)
            else value.items
            if isinstance(value, Items)
            else value.choices
        )
        for item in held:
            yield from _each_place(item)
    elif isinstance(value, Iteration):
        yield from _each_place(value.item)
    elif isinstance(value, Unknown):
        yield Trait.NONE


def _may_hold_tensors(args: Iterable[Value]) -> bool:
    return any(True for value in args for _ in _each_place(value))
