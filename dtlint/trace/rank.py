"""Which process of a distributed run this is, as torchrun and its kin say in the environment.

Each rank writes files of its own, under names that tell the rank.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Rank"]

RECORD = "trace.json"
"""The name of a record in a directory."""


class Rank(NamedTuple):
    """Its number, and how many there are."""

    number: int
    world: int

    @classmethod
    def here(cls) -> Rank:
        """As RANK and WORLD_SIZE say; a run of one process is rank 0 of 1."""
        number, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
        if number.isdecimal() and world.isdecimal() and int(world) > int(number):
            return cls(int(number), int(world))
        return cls(0, 1)

    def file(self, path: Path) -> Path:
        """This rank's own file: `trace.rank1.json` where one process would write `trace.json`, or that in a directory."""
        if path.is_dir():
            path = path / RECORD
        return path.with_name(f"{path.stem}.rank{self.number}{path.suffix}") if self.world > 1 else path
