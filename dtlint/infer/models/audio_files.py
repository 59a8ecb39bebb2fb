"""Sound that is read from files: float64 by soundfile, float32 by librosa and torchaudio, unless another dtype is asked for.

As https://python-soundfile.readthedocs.io, https://librosa.org/doc/latest/generated/librosa.load.html and
https://docs.pytorch.org/audio/stable/torchaudio.html have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import NONE, TOP, Array, Const, Number, Tensor, Tuple, Value
from dtlint.infer.models.array_dtypes import dtype_named
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []

_RATE = Number(Category.INTEGER)


@model("soundfile.read")
def _read(ctx: Context, arguments: Arguments) -> Value:
    if arguments.get(7, "out") not in (None, NONE):
        return TOP
    return Tuple((_array(arguments, 4, "float64"), _RATE))


@model("librosa.load", "librosa.core.load")
def _load(ctx: Context, arguments: Arguments) -> Value:
    return Tuple((_array(arguments, 5, "float32"), Number(Category.FLOAT)))


def _array(arguments: Arguments, place: int, usual: str) -> Array:
    """Samples, in the dtype that is asked for, by the name of one perhaps."""
    given = arguments.get(place, "dtype")
    if given is None:
        return Array(frozenset({usual}) if arguments.complete else None, False)
    return Array(dtype_named(given), False)


@model("torchaudio.load")
def _load_tensor(ctx: Context, arguments: Arguments) -> Value:
    """Whole numbers stay where they are not to be normalised."""
    known = arguments.complete and arguments.get(3, "normalize") in (None, Const(True))
    return Tuple((Tensor(frozenset({"float32"}) if known else None, None, 2), _RATE))
