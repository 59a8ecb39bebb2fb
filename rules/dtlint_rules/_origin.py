"""What an expression can have its dtype from: it was given, was cast, was made by a factory, or came out of a call.

These are claims of the syntax. They hold where nothing is proved of the value, and of one path through the function each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator

__all__ = ["NOTHING", "Kind", "Origin", "Roots", "few", "in_order"]


class Kind:
    """The kinds of origins."""

    GIVEN = "given"
    """A parameter, an attribute, an item of a batch."""
    CAST = "cast"
    """A cast, or a factory that is told a dtype."""
    MADE = "made"
    """A factory that is told no dtype."""
    CALLED = "called"
    """What a function or a model gives that is not known."""


@dataclass(slots=True, unsafe_hash=True)  # not frozen: that takes three times as long to make, and they are many
class Origin:
    """One place that an expression has its dtype from. Nobody changes it.

    Attributes:
        kind: as in Kind.
        text: of a GIVEN its path, of a CAST the dtype as it is written, of a CALLED the path that is called.
        node: the expression.
        of: of a CAST what was cast, of a CALLED what it was given.

    Two that are given are the same where the path is; two casts where they are to the same dtype; and else one node.
    """

    kind: str
    text: str
    node: ast.expr = field(compare=False, repr=False)
    of: frozenset[Origin] = field(default=frozenset(), compare=False, repr=False)
    identity: ast.expr | None = field(default=None, repr=False)

    @classmethod
    def at(cls, kind: str, text: str, node: ast.expr, of: frozenset[Origin] = frozenset()) -> Origin:
        """One that is itself only: two calls of a factory make two."""
        return cls(kind, text, node, of, node)

    def closure(self) -> Iterator[Origin]:
        """Itself, and all that it was made of."""
        yield self
        for origin in self.of:
            yield from origin.closure()


Roots = frozenset[Origin]
"""All origins of one expression, by the path taken. Numbers have none."""
NOTHING: Roots = frozenset()
_MOST = 12


def few(roots: Roots) -> Roots:
    """The origins as long as they tell something: an expression of more than twelve is taken to have none."""
    return roots if len(roots) <= _MOST else NOTHING


def in_order(roots: Iterable[Origin]) -> list[Origin]:
    """Origins as they stand in the source: of several, what is said of the first is said in every run."""
    return sorted(roots, key=lambda origin: (origin.node.lineno, origin.node.col_offset, origin.kind, origin.text))
