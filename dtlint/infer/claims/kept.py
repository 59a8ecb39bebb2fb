"""What readings of programs have told, kept for later runs.

An entry is found by the program and by where its imports are looked for, and is good while the disk gives every answer
that the reading has had of it: nothing else is taken for a sign that nothing has changed.
"""

from __future__ import annotations

import json
import sys
import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING

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
        assumption: the name of what the file's functions are taken to be given; empty where nothing is assumed.

    Raises:
        OSError: the program, or dtlint's own code, cannot be read.
    """

    def __init__(self, parent: Path, path: Path, roots: Sequence[Path], assumption: str = "") -> None:
        self._shelf = Shelf(parent, "infer", most=MOST, most_bytes=MOST_BYTES, rest=0)
        self._path, self._disk = path, Disk()
        content = self._disk.digest(path)
        if content is None:
            raise OSError(f"{path} cannot be read")
        self._key = _key(path, content, roots, assumption)

    def find(self) -> Account | None:
        """What a reading would tell; None where that is not known."""
        entry = self._shelf.get(self._key)
        try:
            if entry is None:
                return None
            known = json.loads(zlib.decompress(entry))
            return Account(self._path, self._disk, known["told"]) if self._disk.gives(known["answers"]) else None
        except (zlib.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def keep(self, told: Account) -> None:
        """Keep what a reading has told, with the answers that it has had."""
        known = {"answers": told.disk.answers(), "told": told.data}
        entry = json.dumps(known, separators=(",", ":")).encode()
        self._shelf.put(self._key, zlib.compress(entry, 1))
        self._shelf.prune()


def _key(path: Path, content: str, roots: Sequence[Path], assumption: str) -> str:
    """The name of the entry: what the reading depends on beside the disk, and where it begins."""
    depends = [identity(), *sys.builtin_module_names]
    parts = [*depends, "", assumption, str(path), content, *map(str, roots)]
    return blake2b("\0".join(parts).encode(errors="surrogatepass"), digest_size=20).hexdigest()
