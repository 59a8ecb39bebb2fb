"""How a public function stands under an assumption, in the words that a report has for it.

Apart from what finds that out: a run whose results are all known reads these, and nothing of the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Support", "Verdict"]


class Verdict(Enum):
    """What is to be said of a function, in words; the first that is true of it."""

    RAISES = "raises"
    LEAVES = "leaves the dtype"
    OVERFLOWS = "overflows or loses precision"
    UNFINISHED = "not analysed within its budget"
    UNSEEN = "not judged: what its tensors become is not seen"
    SUPPORTS = "supports it, as far as is seen"


@dataclass(frozen=True, slots=True)
class Support:
    """How a public function stands under an assumption.

    Attributes:
        assumption: its name.
        path, line: where the function stands, as the reader sees it.
        function: its name, a method's with its class's.
    """

    assumption: str
    path: str
    line: int
    function: str
    verdict: Verdict
