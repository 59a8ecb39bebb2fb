"""Puts what a reading of a program has shown of its syntax trees into plain data (account.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtlint.infer.claims.derivations import Derivations
from dtlint.infer.claims.notes import notes

if TYPE_CHECKING:
    from dtlint.infer.claims.reading import Reading

__all__ = ["tables"]


class _Numbers:
    """Gives each dtype set, text or path a number, the same to the same."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def of(self, value: Any) -> int | None:
        return None if value is None else self.sure(value)

    def sure(self, value: Any) -> int:
        return self.known.setdefault(value, len(self.known))


def tables(reading: Reading) -> dict[str, Any]:
    """What an `Account` is made from."""
    paths, dtypes, texts, places = _Numbers(), _Numbers(), _Numbers(), _Numbers()
    claims = []
    for path, given in reading.claims().items():
        number = paths.sure(str(path))
        for claim in given:
            span = claim.span
            places.sure((path, span))
            where = [number, span.line, span.column, span.end_line, span.end_column]
            claims.append([*where, dtypes.of(claim.dtypes), texts.of(claim.symbolic)])
    nodes = {node: number for number, node in enumerate(reading.tensors)}
    expressions = []
    derivations = Derivations(reading)
    for node in nodes:
        known = derivations.link(node)
        cause = None if known.cause is None else nodes.get(known.cause)
        place = places.known[reading.file(node), reading.span(node)]
        decides, reason = texts.of(known.symbolic), texts.sure(known.reason)
        expressions.append([place, dtypes.of(known.dtypes), decides, reason, cause, int(known.passes)])
    beside = [[line, note.text, dtypes.of(note.dtypes)] for line, note in notes(reading).items()]
    return {
        "paths": list(paths.known),
        "dtypes": [sorted(names) for names in dtypes.known],
        "texts": list(texts.known),
        "claims": claims,
        "expressions": expressions,
        "notes": beside,
        "broken off": reading.broken_off,
    }
