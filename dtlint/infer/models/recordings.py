"""Recordings, as libraries of audio read them from files: the dtypes of their samples, and the sample rates beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import TOP, Array, Const, Number, Tensor, Tuple, Value
from dtlint.infer.models.array_dtypes import dtype_named
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

_FLOAT32, _FLOAT64 = frozenset({"float32"}), frozenset({"float64"})
_RATE = Number(Category.INTEGER)


@model("soundfile.read")
def _soundfile(ctx: Context, arguments: Arguments) -> Value:
    """Samples in float64 unless a dtype is given. Source: python-soundfile's documentation of `read`."""
    given = arguments.get(4, "dtype")
    known = dtype_named(given) if given is not None else _FLOAT64 if arguments.complete else None
    return Tuple((Array(known, False), _RATE))


@model("librosa.load", "librosa.core.load")
def _librosa(ctx: Context, arguments: Arguments) -> Value:
    """Samples in float32 unless a dtype is given; the rate may be a float. Source: librosa's documentation of `load`."""
    given = arguments.keywords.get("dtype")
    known = dtype_named(given) if given is not None else _FLOAT32 if arguments.complete else None
    return Tuple((Array(known, False), TOP))


@model("torchaudio.load")
def _torchaudio(ctx: Context, arguments: Arguments) -> Value:
    """Samples in float32, whatever the default dtype is, unless `normalize=False` is given. Source: torchaudio's
    documentation of `load`."""
    normalised = arguments.get(3, "normalize")
    known = arguments.complete and normalised in (None, Const(True))
    return Tuple((Tensor(_FLOAT32 if known else None, None, 2, device="cpu"), _RATE))
