"""What the errors that `--shadow` measured are: rounding, saturation, underflow, a long sum, or a cancellation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES

if TYPE_CHECKING:
    from dtlint.trace.record import TraceRecord
    from dtlint.trace.schema import LocalError

__all__ = ["KINDS", "dtype_of", "kind_of", "unit_roundoff"]

KINDS = {
    "saturation": "left the range of its dtype",
    "underflow": "is below the range of its dtype",
    "long sum": "is a sum that was kept in low precision",
    "approximation": "is more than rounding of the result",
    "cancellation": "cancels, and makes what its operands were rounded by larger",
    "rounding": "rounds its result",
}
"""Kinds of local errors, the gravest first, and what they say of an operator."""

ROUNDINGS = 2.0
"""So many unit roundoffs are still the rounding of a result; a single one gives 0.3 to 0.6 of them in the norm."""

VANISHED = 0.01
"""The share of values below the normal range from which they are what makes an error large."""

AMPLIFIED = 16.0
"""A sum that is so many times smaller than its operands has lost 4 bits of them."""

ADDING = frozenset(
    (
        *("sum", "nansum", "mean", "cumsum", "logcumsumexp", "prod", "cumprod", "var", "var_mean", "std", "norm"),
        *(
            "mm",
            "bmm",
            "addmm",
            "baddbmm",
            "addmv",
            "mv",
            "dot",
            "convolution",
            "convolution_backward",
            "linalg_vector_norm",
        ),
        *("index_add", "scatter_add", "index_put", "_index_put_impl", "embedding_dense_backward", "scatter_reduce"),
        *("avg_pool2d", "avg_pool2d_backward", "_adaptive_avg_pool2d", "upsample_bilinear2d_backward", "add", "sub"),
        *("max_pool2d_with_indices_backward", "upsample_nearest2d_backward", "native_layer_norm_backward"),
        *("native_batch_norm_backward", "native_group_norm_backward", "index_select_backward", "gather_backward"),
    )
)
"""Operators, by name without the sign that they work in place, whose kernels may keep a sum."""


def unit_roundoff(dtype: str | None) -> float:
    """Half the gap between 1 and the next number; 0 of what is no float."""
    return DTYPES[dtype].eps / 2 if dtype in DTYPES else 0.0


def dtype_of(record: TraceRecord, local: LocalError) -> str | None:
    """The dtype in which the error arises: that of the results, or the one that is assumed."""
    return record.assume or record.entries[local.entry].output


def kind_of(record: TraceRecord, local: LocalError) -> str:
    """One of `KINDS`."""
    entry = record.entries[local.entry]
    if local.saturated:
        return "saturation"
    if local.error > ROUNDINGS * unit_roundoff(dtype_of(record, local)):
        if local.vanished > VANISHED * local.values:
            return "underflow"
        return "long sum" if entry.op.rstrip("_") in ADDING else "approximation"
    return "cancellation" if local.amplified > AMPLIFIED else "rounding"
