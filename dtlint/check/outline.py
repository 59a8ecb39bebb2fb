"""What the text of a file shows without being parsed: what it imports, whether it may be a program, and what it speaks of.

Which files of a run are read together is told from that, at a tenth of the cost of parsing them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dtlint.check.cache import Cache
    from dtlint.infer.interproc.disk import Disk

__all__ = ["Outline", "outlines_of"]

_DTYPES = re.compile(
    rb"\b(?:autocast|GradScaler|b?float16|float64|u?int(?:8|16|32|64)|half|double|bool|long|byte|char|short|complex|fft|numpy|np"
    rb"|one_hot|linspace|argmax|masked_fill|stft|view_as_complex)\b"
)
"""Words of which one stands in a project that rules about several files may have something to say of."""
# These begin with the end of the line before, which is found at once; what is searched gets one at its beginning.
_MAY_RUN = re.compile(rb"\n(?:(?:for|while|with|async)\b|[A-Za-z_][\w.]*\()")
"""What stands in a file that may be a program, as does `__main__`: a loop, a call at its top."""
_IMPORTS = re.compile(rb"\n[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import|import[ \t]+([.\w]+))")


class Outline(NamedTuple):
    """What the text of one file shows."""

    torch: bool
    """Does it speak of torch,"""
    dtypes: bool
    """of dtypes?"""
    may_run: bool
    """May it be a program?"""
    adds_folders: bool
    """Does it change `sys.path`?"""
    imports: tuple[str, ...]
    """The modules that it imports by name, with the dots before it."""


def _outline_of(data: bytes) -> Outline:
    """What a text shows."""
    lines = b"\n" + data
    names = {(found[0] or found[1]).decode(errors="replace") for found in _IMPORTS.findall(lines)}
    return Outline(
        b"torch" in data,
        _DTYPES.search(data) is not None,
        b"__main__" in data or _MAY_RUN.search(lines) is not None,
        b"sys.path" in data,
        tuple(sorted(names)),
    )


def outlines_of(paths: Iterable[Path], disk: Disk, cache: Cache | None) -> dict[Path, Outline]:
    """What the text of each file shows that can be read; from an earlier run, where one has seen the same text.

    Args:
        paths: absolute.
    """
    digests = {path: digest for path in paths if (digest := disk.digest(path)) is not None}
    key = "" if cache is None else cache.key_of(["outlines", *map(str, digests)])
    kept = {} if cache is None else _decoded(cache.get_entry(key))
    known = {digest: kept.get(digest) or _outline_of(disk.read(path)) for path, digest in digests.items()}
    if cache is not None and known.keys() != kept.keys():
        cache.put_entry(key, known)
    return {path: known[digest] for path, digest in digests.items()}


def _decoded(entry: Any) -> Mapping[str, Outline]:
    try:
        return {digest: Outline._make((*flags, tuple(imports))) for digest, (*flags, imports) in entry.items()}
    except (AttributeError, TypeError, ValueError):
        return {}
