"""One call of an op, as the real values of its arguments, and where its tensors stand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Call", "Spot", "groups_of"]

Spot = tuple[object, "int | None"]
"""Where a tensor stands: the argument's place or name, and the place in a list."""


@dataclass
class Call:
    """The arguments of one call, as real values.

    Attributes:
        args: the positional arguments.
        kwargs: the keyword arguments.
        base: the dtype that the call was made for; its tensors of another dtype are indices and masks.
    """

    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)
    base: str = "float32"

    def tensors(self) -> list[Spot]:
        """Where the tensors stand."""
        found: list[Spot] = []
        for place, value in [*enumerate(self.args), *self.kwargs.items()]:
            if isinstance(value, torch.Tensor):
                found.append((place, None))
            elif isinstance(value, (list, tuple)):
                found += [(place, number) for number, item in enumerate(value) if isinstance(item, torch.Tensor)]
        return found

    def get(self, place: object) -> Any:
        """The argument at a place or of a name."""
        return self.args[place] if isinstance(place, int) else self.kwargs[str(place)]

    def tensor(self, at: Spot) -> torch.Tensor:
        """The tensor at a spot."""
        value = self.get(at[0])
        found = value if at[1] is None else value[at[1]]
        assert isinstance(found, torch.Tensor)
        return found

    def changed(self, values: Mapping[Any, Any]) -> Call:
        """A copy with other values at some spots, places and names; lists are copied, so that their items can be set."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for at, value in values.items():
            place, number = at if isinstance(at, tuple) else (at, None)
            holder: Any = args if isinstance(place, int) else kwargs
            if number is None:
                holder[place] = value
            else:
                holder[place] = list(holder[place])
                holder[place][number] = value
        return Call(args, kwargs, self.base)

    def cloned(self) -> Call:
        """A copy with tensors of its own, for an op that may change them."""
        return self.changed({at: self.tensor(at).clone() for at in self.tensors()})


def groups_of(call: Call) -> list[list[Spot]]:
    """The tensors of a call that change dtype together: in a list all but the first."""
    groups: dict[object, list[Spot]] = {}
    for place, number in call.tensors():
        groups.setdefault((str(place), bool(number)), []).append((place, number))
    return list(groups.values())
