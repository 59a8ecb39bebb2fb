"""How the arguments of a call meet the parameters of an op: which of them are operands, and what the others say.

An op has one form for each way it can be called: `max(input)`, `max(input, dim, keepdim)`, `max(input, other)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dtlint.dtypes.promotion import Operand

__all__ = [
    "DTYPE",
    "FREE",
    "NUMBER",
    "SCALAR",
    "TENSOR",
    "UNKNOWN",
    "Argument",
    "Form",
    "Operands",
    "Parameter",
    "alike",
    "token",
]

TENSOR, SCALAR, NUMBER, DTYPE = 2, 1, 0, -1
"""The ranks of an operand, as in `promotion`: a tensor with dimensions, a 0-dim tensor, a Python number. A dtype given
as an argument is an operand too, of rank DTYPE: `dtype=torch.float16` is `("float16", DTYPE)`."""


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
"""An argument of which nothing is known."""

Argument = object
"""What a call gives for a parameter: an `Operand`, a list of operands, a constant (None, a bool, a string, a number, a
list of numbers), or `UNKNOWN`."""

Operands = tuple["Operand | tuple[Operand | None, ...] | None", ...]
"""One entry for each slot: the operand, several for a list of tensors, or None when it is not given."""

NUMBERS = "#"
"""The token of a number, and of a list of numbers."""
FREE = "*"
"""Said of a parameter that decides nothing, whatever its value, as `device` and `generator`."""
_OPERANDS = frozenset("tTnd")
"""The kinds of parameters that take operands."""


def _is_operand(value: object) -> bool:
    return type(value) is tuple and len(value) == 2 and type(value[0]) is str and type(value[1]) is int


def token(value: object) -> str:
    """What a constant is to a rule: "0" and "1" for bools, "N" for None, "#" for numbers and lists of numbers, a string
    in quotes, "?" for anything else."""
    if value is None:
        return "N"
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, (int, float, complex)) or (_is_operand(value) and value[1] == NUMBER):  # type: ignore[index]
        return NUMBERS
    if isinstance(value, (list, tuple)) and all(item is UNKNOWN or token(item) in (NUMBERS, "N") for item in value):
        return NUMBERS
    return "?"


def alike(value: Argument) -> object:
    """What can be hashed, and is the same for two arguments that no form and no rule tells apart: numbers go by their type."""
    kind = type(value)
    if kind is tuple or kind is list:
        return value if _is_operand(value) else (kind, *map(alike, value))  # type: ignore[call-overload]
    return value if value is None or value is UNKNOWN or kind is bool or kind is str else kind


@dataclass(frozen=True)
class Parameter:
    """A parameter of a form.

    Attributes:
        name: as a keyword argument spells it.
        kinds: the operands it takes, "t" a tensor, "T" a list of tensors, "n" a number, "d" a dtype; "o" that None will
            do; "v" that its numbers, or its tensors, may be spread over the positional arguments, as in `x.view(2, 3)`.
            Without an operand's kind it takes a constant.
        keyword: can it be given by keyword only.
        default: the token of its default, or None when it must be given.
        seen: the tokens of the constants it was observed with.
    """

    name: str
    kinds: str = ""
    keyword: bool = False
    default: str | None = None
    seen: frozenset[str] = frozenset()

    @cached_property
    def is_slot(self) -> bool:
        """Does it take an operand?"""
        return not _OPERANDS.isdisjoint(self.kinds)

    @classmethod
    def parse(cls, text: str) -> Parameter:
        """Read what `str` wrote."""
        text, _, seen = text.partition(";")
        text, equals, default = text.partition("=")
        name, _, kinds = text.partition(":")
        return cls(
            name.lstrip("*"),
            kinds,
            name.startswith("*"),
            default if equals else None,
            frozenset(filter(None, seen.split(","))),
        )

    def __str__(self) -> str:
        text = "*" * self.keyword + self.name + (":" + self.kinds if self.kinds else "")
        if self.default is not None:
            text += "=" + self.default
        return text + (";" + ",".join(sorted(self.seen)) if self.seen else "")

    def accepts(self, value: Argument) -> bool:
        """Can the value be given here, going by its kind?"""
        if value is UNKNOWN or (FREE in self.seen and not self.is_slot):
            return True
        if value is None:
            return self.default is not None or "o" in self.kinds or not self.is_slot
        if _is_operand(value):
            rank = value[1]  # type: ignore[index]
            if rank == NUMBER:
                return "n" in self.kinds or not self.is_slot
            return ("d" if rank == DTYPE else "t") in self.kinds
        if isinstance(value, (list, tuple)):
            if any(_is_operand(item) and item[1] > NUMBER for item in value):
                return "T" in self.kinds
            return not self.is_slot or ("T" in self.kinds and not value)
        if isinstance(value, (bool, int, float, complex)):
            return "n" in self.kinds or not self.is_slot
        return not self.is_slot


_ABSENT: Final = object()


@dataclass(frozen=True)
class Form:
    """One way to call an op: its parameters in order."""

    parameters: tuple[Parameter, ...]

    @property
    def slots(self) -> tuple[Parameter, ...]:
        """The parameters that take operands, in order."""
        return tuple(parameter for parameter in self.parameters if parameter.is_slot)

    def kinds_at(self, place: int | str) -> frozenset[str] | None:
        """The operands that an argument may be, by its position or its name: "t", "T", "n" and "d" as in a `Parameter`; None
        where there is no such argument."""
        if isinstance(place, str):
            found = self._by_name.get(place)
        else:
            last = self._places - 1
            found = min(place, last) if place <= last or self._spread == last else None
        return None if found is None else _OPERANDS & frozenset(self.parameters[found].kinds)

    def bind(self, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> Bound | None:
        """The arguments by parameter, or None when the call is not of this form."""
        parameters = self.parameters
        given = self._positional(args)
        if len(given) > self._places:
            return None
        given += [_ABSENT] * (len(parameters) - len(given))
        for name, value in kwargs.items():
            place = self._by_name.get(name)
            if place is None or given[place] is not _ABSENT:
                return None
            given[place] = value
        for parameter, value in zip(parameters, given, strict=True):
            if parameter.default is None if value is _ABSENT else not parameter.accepts(value):
                return None
        return Bound(self, tuple(given))

    @cached_property
    def _places(self) -> int:
        """How many parameters take a positional argument: all up to the first that is given by keyword only."""
        keywords = (place for place, parameter in enumerate(self.parameters) if parameter.keyword)
        return next(keywords, len(self.parameters))

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {parameter.name: place for place, parameter in enumerate(self.parameters)}

    @cached_property
    def _spread(self) -> int | None:
        """The first parameter whose numbers, or tensors, may be spread over the positions."""
        return next((place for place, parameter in enumerate(self.parameters) if "v" in parameter.kinds), None)

    def _positional(self, args: Sequence[Argument]) -> list[Argument]:
        """The positional arguments, with a spread of numbers gathered: `view(x, 2, 3)` is `view(x, [2, 3])`."""
        result = list(args)
        place = self._spread
        if place is not None:
            spreads = _is_tensor if "T" in self.parameters[place].kinds else _is_dimension
            rest = result[place:]
            room = sum(not other.keyword for other in self.parameters[place:])
            if (
                rest != [UNKNOWN]
                and (len(rest) > room or (rest and room == 1))
                and all(spreads(value) for value in rest)
            ):
                result[place:] = [list(rest)]
        return result


def _is_dimension(value: Argument) -> bool:
    return value is UNKNOWN or (token(value) == NUMBERS and not isinstance(value, list))


def _is_tensor(value: Argument) -> bool:
    return _is_operand(value) and value[1] > NUMBER  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class Bound:
    """A call bound to a form."""

    form: Form
    values: tuple[Argument, ...]

    def operands(self, default: str) -> Operands | None:
        """The operands by slot; None when one of them is unknown. `default` is the default dtype."""
        found = []
        for parameter, value in zip(self.form.parameters, self.values, strict=True):
            if parameter.is_slot:
                if value is UNKNOWN or (isinstance(value, list) and not all(map(_is_item, value))):
                    return None
                found.append(_as_operand(value, default))
        return tuple(found)

    def tokens(self) -> Iterator[tuple[Parameter, str | None]]:
        """The parameters that take constants, and the token of each: its default's when not given, None when unknown."""
        for parameter, value in zip(self.form.parameters, self.values, strict=True):
            if not parameter.is_slot:
                if value is _ABSENT:
                    yield parameter, parameter.default
                else:
                    yield parameter, None if value is UNKNOWN else token(value)

    def is_observed(self) -> bool:
        """Were the constants of this call among those that the op was observed with?"""
        for parameter, said in self.tokens():
            if said is None:
                seen = {*parameter.seen, parameter.default}
                is_word = parameter.default is not None and parameter.default.startswith("'")
                if not {NUMBERS, FREE} & seen and not {"0", "1"} <= seen and not is_word:
                    return False
                continue  # whatever it is, the like was observed; and a rule that goes by it will ask
            if said != parameter.default and FREE not in parameter.seen and said not in parameter.seen:
                return False
        return True

    def constant(self, name: str) -> str | None:
        """The token of a parameter that takes a constant; None when unknown."""
        return next((said for parameter, said in self.tokens() if parameter.name == name), None)


_COMPLEX_DEFAULT = {"float64": "complex128", "float16": "complex32"}


def _is_item(value: object) -> bool:
    """Is it what a list of tensors holds? Numbers among them torch refuses."""
    return value is None or _is_operand(value)


def _as_operand(value: Argument, default: str) -> Operand | tuple[Operand | None, ...] | None:
    if value is _ABSENT or value is None:
        return None
    if _is_operand(value):
        return value  # type: ignore[return-value]
    if isinstance(value, (list, tuple)):
        return tuple(value)
    if isinstance(value, bool):
        return "bool", NUMBER
    if isinstance(value, int):
        return "int64", NUMBER
    return (default if isinstance(value, float) else _COMPLEX_DEFAULT.get(default, "complex64")), NUMBER
