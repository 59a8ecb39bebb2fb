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
    """The arguments of one call, as real values."""

    args: list[Any]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def tensors(self) -> list[tuple[object, int | None]]:
        """Where the tensors stand: the argument's place or name, and the place in a list."""
        found: list[tuple[object, int | None]] = []
        for place, value in [*enumerate(self.args), *self.kwargs.items()]:
            if isinstance(value, torch.Tensor):
                found.append((place, None))
            elif isinstance(value, (list, tuple)):
                found += [(place, number) for number, item in enumerate(value) if isinstance(item, torch.Tensor)]
        return found

    def get(self, place: object) -> Any:
        """The argument at a place or of a name."""
        return self.args[place] if isinstance(place, int) else self.kwargs[str(place)]

    def tensor(self, at: tuple[object, int | None]) -> torch.Tensor:
        """The tensor at a place."""
        value = self.get(at[0])
        found = value if at[1] is None else value[at[1]]
        assert isinstance(found, torch.Tensor)
        return found

    def changed(self, values: Mapping[Any, Any]) -> Call:
        """A copy with other arguments; lists are copied, so that their items can be set."""
        args, kwargs = list(self.args), dict(self.kwargs)
        for place, value in values.items():
            if isinstance(place, tuple):
                holder: Any = args if isinstance(place[0], int) else kwargs
                if place[1] is None:
                    holder[place[0]] = value
                else:
                    holder[place[0]] = list(holder[place[0]])
                    holder[place[0]][place[1]] = value
            elif isinstance(place, int):
                args[place] = value
            else:
                kwargs[str(place)] = value
        return Call(args, kwargs)


def groups_of(call: Call) -> list[list[Spot]]:
    """The tensors of a call that change dtype together: in a list all but the first."""
    groups: dict[object, list[Spot]] = {}
    for place, number in call.tensors():
        groups.setdefault((str(place), bool(number)), []).append((place, number))
    return list(groups.values())
