"""How much faster an operator is in 16 bits than in float32: measured on a CPU, and as GPUs promise at most.

CPU: measured by tests/benchmarks/dtype_ratios.py, one thread, torch 2.13.0: the lowest and the highest ratio over several
sizes. With bfloat16 instructions, on an AMD EPYC of family 26 (AVX512-BF16), on 2026-11-28, alone and beside other work: in
a GPT of two layers there, the products of its Linear layers really were 3.1 to 4.6 times faster in bfloat16, so the ends of
a range may be off by a fifth. Without them, on an AMD EPYC with AVX2, on 2026-11-29, where products in 16 bits are many
times slower. Other CPUs differ; the script measures them.

GPU: the peak rates of dense work that NVIDIA publishes, in TFLOPS: of V100 (SXM2) in the datasheet of the Tesla V100, and
the 125 also at developer.nvidia.com/programming-tensor-cores-cuda-9-0; of T4 at www.nvidia.com/en-us/data-center/tesla-t4;
of A100 (SXM) in nvidia-a100-datasheet-us-nvidia-1758950-r4; of H100 and H200 (SXM) at www.nvidia.com/en-us/data-center/h100
and h200, which give twice the dense rates of tensor cores, for sparse matrices. PCIe versions are slower in all dtypes
alike. What a program reaches is less, so that their ratios are upper bounds. Operators that move bytes and hardly compute
gain a factor of 2 at most, since half the bytes are moved.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dtlint.trace.schema import Entry, Timing

__all__ = ["WITHOUT_BFLOAT16", "Ratio", "peak_tf32", "ratio", "source"]

CPU_SOURCE = "measured on a CPU with AVX512-BF16; tests/benchmarks/dtype_ratios.py measures this one"
SLOW_CPU_SOURCE = "measured on a CPU without bfloat16 instructions, as this one"

WITHOUT_BFLOAT16 = " without bfloat16 instructions"
"""Ends the name of a processor that has none."""

GPU_SOURCE = "the peak rates that NVIDIA publishes, an upper bound"


class Ratio(NamedTuple):
    """The time in float32 over that in 16 bits: below 1 is slower."""

    least: float
    most: float


CPU: dict[tuple[str, str], Ratio] = {
    ("small product", "bfloat16"): Ratio(0.15, 2.70),
    ("small product", "float16"): Ratio(0.06, 0.16),
    ("large product", "bfloat16"): Ratio(3.82, 4.50),
    ("large product", "float16"): Ratio(0.01, 0.20),
    ("attention", "bfloat16"): Ratio(0.38, 1.18),
    ("attention", "float16"): Ratio(0.09, 0.13),
    ("convolution", "bfloat16"): Ratio(1.00, 1.81),
    ("convolution", "float16"): Ratio(0.01, 0.20),
    ("pointwise", "bfloat16"): Ratio(0.77, 0.98),
    ("pointwise", "float16"): Ratio(0.77, 1.73),
    ("norm", "bfloat16"): Ratio(1.14, 1.22),
    ("norm", "float16"): Ratio(1.40, 1.79),
    ("softmax", "bfloat16"): Ratio(0.84, 0.88),
    ("softmax", "float16"): Ratio(0.86, 0.90),
}

SLOW_CPU: dict[tuple[str, str], Ratio] = {
    ("small product", "bfloat16"): Ratio(0.06, 0.29),
    ("small product", "float16"): Ratio(0.06, 0.28),
    ("large product", "bfloat16"): Ratio(0.09, 0.14),
    ("large product", "float16"): Ratio(0.11, 0.17),
    ("attention", "bfloat16"): Ratio(0.21, 0.29),
    ("attention", "float16"): Ratio(0.14, 0.19),
    ("convolution", "bfloat16"): Ratio(0.01, 0.29),
    ("convolution", "float16"): Ratio(0.01, 0.36),
    ("pointwise", "bfloat16"): Ratio(0.73, 1.41),
    ("pointwise", "float16"): Ratio(0.81, 1.49),
    ("norm", "bfloat16"): Ratio(1.20, 1.60),
    ("norm", "float16"): Ratio(1.22, 1.67),
    ("softmax", "bfloat16"): Ratio(0.81, 0.90),
    ("softmax", "float16"): Ratio(0.86, 0.92),
}
"""Without bfloat16 instructions."""

LARGE = 10_000_000
"""Floating-point operations from which a product is a large one."""


class _Peak(NamedTuple):
    """Peak rates of dense work, in TFLOPS; 0 for what the GPU does not have."""

    float32: float
    tf32: float
    float16: float
    bfloat16: float


PEAKS = {
    "V100": _Peak(15.7, 0, 125, 0),
    "T4": _Peak(8.1, 0, 65, 0),
    "A100": _Peak(19.5, 156, 312, 312),
    "H100": _Peak(67, 494.5, 989.5, 989.5),
    "H200": _Peak(67, 494.5, 989.5, 989.5),
}
"""By a word in the name of the device."""

MOVES = Ratio(1.0, 2.0)
"""Of an operator on a GPU that is bound by the memory."""


def ratio(timing: Timing, entry: Entry, dtype: str) -> Ratio | None:
    """Of an operator that could run in `dtype`; None where it is not known."""
    if timing.device == "cpu":
        table = SLOW_CPU if timing.processor.endswith(WITHOUT_BFLOAT16) else CPU
        return table.get((_kind(entry), dtype))
    peak = _peak(timing)
    if not entry.flops:
        return MOVES
    if peak is None or not getattr(peak, dtype):
        return None
    wide = peak.tf32 if timing.float32 in ("high", "medium") and peak.tf32 else peak.float32
    return Ratio(1.0, getattr(peak, dtype) / wide)


def peak_tf32(timing: Timing) -> float | None:
    """How many times faster float32 products are in TF32, at most; None where there is none, or it is on."""
    peak = _peak(timing)
    if timing.float32 != "highest" or peak is None or not peak.tf32:
        return None
    return peak.tf32 / peak.float32


def source(timing: Timing) -> str:
    """Where the ratios come from."""
    if timing.device != "cpu":
        return GPU_SOURCE
    return SLOW_CPU_SOURCE if timing.processor.endswith(WITHOUT_BFLOAT16) else CPU_SOURCE


def _peak(timing: Timing) -> _Peak | None:
    words = re.split(r"[\s-]+", timing.processor)  # `NVIDIA A100-SXM4-40GB`, but no `NVIDIA RTX A1000`
    return next((peak for name, peak in PEAKS.items() if name in words), None)


def _kind(entry: Entry) -> str:
    if "conv" in entry.op or "attention" in entry.op:
        return "convolution" if "conv" in entry.op else "attention"
    if entry.flops:
        return "large product" if entry.flops >= LARGE else "small product"
    return next((kind for kind in ("softmax", "norm") if kind in entry.op), "pointwise")
