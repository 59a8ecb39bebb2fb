"""What is true at one point of the program: names, attributes, casts of modules, and each GradScaler's phase."""

from __future__ import annotations

from itertools import compress
from operator import is_not
from typing import TYPE_CHECKING

from dtlint.infer.values import Dtypes, Key, Phase, Value, join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Cast", "State", "differing", "merged_casts"]

Cast = tuple[int, Dtypes]
"""When a module was cast, by a running count, and to what."""


class State:
    """Names and dotted paths (`self.model`) with their values; a path ends when its root is bound anew."""

    __slots__ = ("casts", "names", "paths", "scalers")

    def __init__(
        self,
        names: dict[str, Value] | None = None,
        paths: dict[str, Value] | None = None,
        scalers: dict[Key, Phase] | None = None,
        casts: dict[Key, Cast] | None = None,
    ) -> None:
        self.names: dict[str, Value] = {} if names is None else names
        self.paths: dict[str, Value] = {} if paths is None else paths
        self.scalers: dict[Key, Phase] = {} if scalers is None else scalers
        self.casts: dict[Key, Cast] = {} if casts is None else casts

    def copy(self) -> State:
        """A state that can go its own way."""
        return State(self.names.copy(), self.paths.copy(), self.scalers.copy(), self.casts.copy())

    def bind(self, name: str, value: Value) -> None:
        """Bind a name; what was known of its attributes is known no more."""
        self.names[name] = value
        if self.paths:
            self.forget(name)

    def forget(self, root: str) -> None:
        """Somebody else has `root` in hand: its attributes may have changed."""
        prefix = root + "."
        for path in [path for path in self.paths if path.startswith(prefix)]:
            del self.paths[path]

    @staticmethod
    def merged(left: State | None, right: State | None) -> State | None:
        """What is true where two paths meet; None is a path that does not get there."""
        if left is None or left is right:
            return right
        if right is None:
            return left
        names = left.names.copy()
        for name, value in differing(right.names, left.names):
            known = names.get(name)
            # A name that only one path binds has that path's value wherever it has one at all.
            names[name] = value if known is None else join(known, value)
        paths = _merged_paths(left.paths, right.paths) if left.paths and right.paths else {}
        return State(names, paths, _merged_phases(left.scalers, right.scalers), merged_casts(left.casts, right.casts))


def differing(names: Mapping[str, Value], others: Mapping[str, Value]) -> Iterator[tuple[str, Value]]:
    """The names that have another value among others, or none. Nearly all that is known at two places is the same at both:
    what is not, is found without a loop of ours."""
    return compress(names.items(), map(is_not, names.values(), map(others.get, names)))


def _merged_paths(left: dict[str, Value], right: dict[str, Value]) -> dict[str, Value]:
    """What is known of paths by either way; a path that only one way binds was something else on the other."""
    paths = left.copy()
    for path, value in differing(right, left):
        known = left.get(path)
        if known is not None:
            paths[path] = join(known, value)
    for path in left.keys() - right.keys():
        del paths[path]
    return paths


def merged_casts(left: dict[Key, Cast], right: dict[Key, Cast]) -> dict[Key, Cast]:
    """The casts that modules have seen by one of two paths; one that only one path makes leaves the dtype unknown."""
    if left == right:
        return left.copy()
    casts: dict[Key, Cast] = {}
    for key in left.keys() | right.keys():
        one, other = left.get(key), right.get(key)
        if one is None or other is None:
            only = one or other
            assert only is not None
            casts[key] = (only[0], None)
        else:
            both = None if one[1] is None or other[1] is None else one[1] | other[1]
            casts[key] = (max(one[0], other[0]), both)
    return casts


def _merged_phases(left: dict[Key, Phase], right: dict[Key, Phase]) -> dict[Key, Phase]:
    if left == right:
        return left.copy()
    phases = {}
    for key in left.keys() | right.keys():
        pair = {left.get(key, Phase.IDLE), right.get(key, Phase.IDLE)}
        if len(pair) == 1:
            phases[key] = pair.pop()
        else:
            phases[key] = Phase.PERHAPS_SCALED if pair & {Phase.SCALED, Phase.PERHAPS_SCALED} else Phase.UNSCALED
    return phases
