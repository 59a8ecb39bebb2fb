"""What readings of programs have told, kept for later runs: as an account, or in words of its own.

An entry is found by the program and by where its imports are looked for, and is good while the disk gives every answer
that the reading has had of it: nothing else is taken for a sign that nothing has changed.
"""

from __future__ import annotations

import json
import sys
import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from dtlint.cache import Shelf, identity
from dtlint.infer.claims.account import Account
from dtlint.infer.interproc.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Kept"]

MOST = 1_000
"""More entries than this are not kept."""
MOST_BYTES = 64_000_000
"""Of all entries. One has some kilobytes, or a tenth of a megabyte where the program imports a large library."""


class Kept:
    """What readings have told that started in the program at `path`, as it is now.

    Args:
        parent: the folder that the cache lies in.
        roots: folders in which imported modules are looked for.
        asked: what else was asked for: the name of what the file's functions are taken to be given, or "signatures"; empty
            for the dtypes of a program.

    Raises:
        OSError: the program, or dtlint's own code, cannot be read.
    """

    def __init__(self, parent: Path, path: Path, roots: Sequence[Path], asked: str = "") -> None:
        self._shelf = Shelf(parent, "infer", most=MOST, most_bytes=MOST_BYTES, rest=0)
        self._path, self._disk = path, Disk()
        content = self._disk.digest(path)
        if content is None:
            raise OSError(f"{path} cannot be read")
        self._key = _key(path, content, roots, asked)

    def account(self) -> Account | None:
        """What a reading would tell; None where that is not known."""
        told = self.find()
        try:
            return None if told is None else Account(self._path, self._disk, told)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None

    def find(self) -> Any:
        """What was kept; None where nothing was, or something has changed since."""
        entry = self._shelf.get(self._key)
        try:
            if entry is None:
                return None
            known = json.loads(zlib.decompress(entry))
            return known["told"] if self._disk.gives(known["answers"]) else None
        except (zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def keep(self, told: object, disk: Disk) -> None:
        """Keep what a reading has told, as JSON has it, with the answers that it has had of the disk."""
        known = {"answers": disk.answers(), "told": told}
        entry = json.dumps(known, separators=(",", ":")).encode()
        self._shelf.put(self._key, zlib.compress(entry, 1))
        self._shelf.prune()


def _key(path: Path, content: str, roots: Sequence[Path], asked: str) -> str:
    """The name of the entry: what the reading depends on beside the disk, and where it begins."""
    depends = [identity(), *sys.builtin_module_names]
    parts = [*depends, "", asked, str(path), content, *map(str, roots)]
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=20).hexdigest()
