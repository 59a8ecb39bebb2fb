"""What a function gives, in the words of a signature: `T`, `promote(T, self.bias)`, `(T, int64) | None`, `?`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import (
    NO_TENSOR,
    Array,
    Const,
    Device,
    Dtype,
    Generator,
    Many,
    Mapping,
    Number,
    ProjectClass,
    Ref,
    Tensor,
    Tuple,
    Union,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models.plain_tensors import WEIGHTS
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Mapping as MappingOf

    from dtlint.infer.domain.values import Address, Symbol
    from dtlint.infer.state import Difference

__all__ = ["UNKNOWN", "Wording"]

UNKNOWN = "?"
_MOST = 3
"""Dtypes of one tensor; more say nothing to a person."""
_DEEPEST = 4
_LONGEST = 5
"""Items that are told one by one."""
_TRUTH = "Python bool"
_PYTHON = {bool: _TRUTH}
"""What would be taken for a dtype."""
_NUMBERS = {Category.BOOL: _TRUTH, Category.INTEGER: "int", Category.FLOAT: "float", Category.COMPLEX: "complex"}


class Wording:
    """Puts results into words.

    Args:
        variables: the variables of the parameters, by the keys of their atoms; they may be given later.
        changes: what the function has left in objects, those that it gives among them.
    """

    def __init__(self, variables: MappingOf[str, str], changes: Difference) -> None:
        self._variables, self._changes = variables, changes
        self._floating: set[str] = set()
        self._lifted: set[str] = set()
        self._outside = False

    def of(self, value: Value, depth: int = 0) -> str:
        """A result in words."""
        if depth > _DEEPEST:
            return "..."
        if isinstance(value, Union):
            return self._any_of(value, depth)
        if isinstance(value, (Tensor, Unknown)) and value != NO_TENSOR:
            return self._tensor(value)
        if isinstance(value, Const):
            return "None" if value.value is None else _PYTHON.get(type(value.value), type(value.value).__name__)
        if isinstance(value, Number):
            return _NUMBERS[value.category]
        if isinstance(value, Array):
            return (
                f"ndarray[{' | '.join(sorted(value.dtypes))}]"
                if value.dtypes and len(value.dtypes) <= _MOST
                else "ndarray"
            )
        if isinstance(value, Tuple):
            return self._items(value, depth, "()")
        if isinstance(value, Many):
            return f"[{self.of(value.item, depth + 1)}, ...]"
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, Ref):
            return self._object(value.address, depth)
        plain = {Dtype: "dtype", Device: "device", Generator: UNKNOWN}
        return plain.get(type(value), "object")

    def decides(self, value: Value | None) -> frozenset[str]:
        """The keys of the atoms that the dtypes in a result rest on."""
        return frozenset() if value is None else frozenset(self._keys(value, 0))

    def conditions(self) -> Iterator[str]:
        """What the words that were given hold for, if not for all calls."""
        for names, what in ((self._floating, "floating"), (self._lifted - self._floating, "not bool")):
            if names:
                yield f"{' and '.join(sorted(names))} {'is' if len(names) == 1 else 'are'} {what}"
        if self._outside:
            yield "no autocast region is around the call"

    def _keys(self, value: Value, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            return
        for one in choices(value):
            if isinstance(one, (Tensor, Unknown)) and one.symbol is not None and not one.dtypes:
                yield from (atom.key for atom in one.symbol.of)
            elif isinstance(one, Tuple):
                for item in one.items:
                    yield from self._keys(item, depth + 1)
            elif isinstance(one, Many):
                yield from self._keys(one.item, depth + 1)
            elif isinstance(one, Mapping):
                for _, item in one.items:
                    yield from self._keys(item, depth + 1)
            elif isinstance(one, Ref):
                for held in self._held(one.address).values():
                    yield from self._keys(held, depth + 1)

    def _held(self, address: Address) -> dict[object, Value]:
        """What the function has put into an object."""
        return {field: held for (of, field), held in self._changes.items() if of is address and field != "*made"}

    def _tensor(self, value: Tensor | Unknown) -> str:
        if value.dtypes:
            return " | ".join(sorted(value.dtypes)) if len(value.dtypes) <= _MOST else UNKNOWN
        return UNKNOWN if value.symbol is None else self._symbol(value.symbol)

    def _symbol(self, symbol: Symbol) -> str:
        names = []
        for atom in sorted(symbol.of, key=lambda one: self._variables.get(one.key, f"~{one.text}")):
            name = self._variables.get(atom.key) or (atom.text if atom.text.startswith("self.") else "")
            if not name:
                return UNKNOWN
            names.append(name)
            if not atom.floating and symbol.least is Category.FLOAT:
                self._floating.add(name)
            if not atom.floating and symbol.least is Category.INTEGER:
                self._lifted.add(name)
        self._outside |= symbol.outside
        names += sorted(symbol.met)
        return names[0] if len(names) == 1 else f"promote({', '.join(names)})"

    def _any_of(self, value: Union, depth: int) -> str:
        said = list(dict.fromkeys(self.of(one, depth) for one in value.choices))
        if UNKNOWN in said:
            return UNKNOWN
        return " | ".join(sorted(said, key=lambda one: (one == "None", one)))

    def _items(self, value: Tuple, depth: int, brackets: str) -> str:
        said = [self.of(item, depth + 1) for item in value.items]
        if len(said) > _LONGEST and len(set(said)) == 1:
            return f"{brackets[0]}{said[0]}, ...{brackets[1]}"
        if value.names:
            said = [f"{name}: {one}" for name, one in zip(value.names, said, strict=True)]
        comma = "," if len(said) == 1 and brackets == "()" else ""
        return f"{brackets[0]}{', '.join(said)}{comma}{brackets[1]}"

    def _mapping(self, value: Mapping, depth: int) -> str:
        said = [f"{key.value!r}: {self.of(item, depth + 1)}" for key, item in value.items if isinstance(key, Const)]
        if value.rest is not None:
            said.append(f"...: {self.of(value.rest, depth + 1)}")
        return f"{{{', '.join(said)}}}"

    def _object(self, address: Address, depth: int) -> str:
        held = self._held(address)
        kind = address.kind
        if kind in WEIGHTS:
            content = held.get(CONTENT)
            return UNKNOWN if content is None else self.of(content, depth)
        if CONTENT in held and isinstance(held[CONTENT], (Tuple, Many, Mapping)):
            content = held[CONTENT]
            return self._items(content, depth, "[]") if isinstance(content, Tuple) else self.of(content, depth)
        name = kind.name.rpartition(".")[2] if isinstance(kind, ProjectClass) else str(kind).rpartition(".")[2]
        fields = [
            f"{field}: {said}"
            for field, value in held.items()
            if isinstance(field, str) and field.isidentifier() and self._keys_or_dtypes(value)
            for said in [self.of(value, depth + 1)]
            if said not in (UNKNOWN, "None")
        ]
        return f"{name}({', '.join(fields[:_LONGEST])})" if fields else name

    def _keys_or_dtypes(self, value: Value) -> bool:
        """Is something to be told of an attribute: is it a tensor, or does it hold some?"""
        return any(isinstance(one, (Tensor, Tuple, Many)) for one in choices(value))
