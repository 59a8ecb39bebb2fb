"""Device time by dtype, and on Tensor Cores, from a trace of torch.profiler.

A kernel's dtype is that of the operator which launched it; whether it ran on Tensor Cores, its name tells.
Sources of the names: cuBLAS, cuDNN, CUTLASS and flash-attention as they name kernels on Ampere, Hopper and Blackwell;
TensorBoard's plugin 0.4.3, whose list ends with Ampere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DeviceTime", "Work", "device_time", "on_tensor_cores"]

TENSOR_CORES = re.compile(
    r"""
      nvjet_                                        # cuBLAS on Hopper and Blackwell
    | tensorop                                      # CUTLASS: cutlass_80_tensorop_, cutlass3x_sm90_tensorop_
    | (?<!\d)(?:884|1688|16816|16832|8816)(?:gemm|cudnn|fprop|dgrad|wgrad|tf32|_)  # its shape: s16816gemm, h884cudnn
    | [hiq]mma | gmma                               # hmma, imma, qmma, wgmma
    | xmma_(?:gemm|implicit|fprop|dgrad|wgrad|warp)
    | flash_(?:fwd|bwd) | flash::                   # flash-attention 2, and 3 by its namespace
    | fmha(?!.*f32_simt)                            # memory-efficient attention
    | cudnn_generated_fort_native_sdpa              # cuDNN's attention
    """,
    re.VERBOSE | re.IGNORECASE,
)

PLAIN = re.compile(r"simt|_sgemm_|_dgemm_|\bsgemm|ffma|xmma_gemm_f32f32_f32f32", re.IGNORECASE)
"""Of matrix products on plain cores, though some of them match a word above."""

GENERATED = re.compile(r"^triton_tem_|^_?(?:matmul|attn_fwd|attn_bwd)(?:_|$)")
"""Kernels that Triton generated for matrix products: their names do not say what instructions they use."""

DTYPES = {
    "double": "float64",
    "float": "float32",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}
"""dtypes that matter here, as the profiler names them."""

LAUNCHES = frozenset(("cpu_op", "operator"))
KERNELS = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))


@dataclass(slots=True)
class Work:
    """The kernels of one operator with one tuple of dtypes."""

    op: str
    dtypes: str
    """Such as `bfloat16`, or `bfloat16 and float32`; `integers` or `unknown` where no floating operand is known."""
    microseconds: float = 0.0
    kernels: int = 0
    on_tensor_cores: float = 0.0
    """Microseconds."""
    perhaps: float = 0.0
    """Microseconds in kernels whose name does not tell."""
    longest: str = ""
    """The name of the longest kernel."""


@dataclass(slots=True)
class DeviceTime:
    """What a device did, in microseconds of its kernels."""

    total: float = 0.0
    copies: float = 0.0
    """Of this, copies and fills of memory."""
    by_dtype: dict[str, float] = field(default_factory=dict)
    on_tensor_cores: float = 0.0
    perhaps: float = 0.0
    work: list[Work] = field(default_factory=list)
    """The longest first."""
    without_dtypes: bool = False
    """Was it profiled without record_shapes, so that no dtype is known?"""


def device_time(events: Iterable[dict[str, Any]]) -> DeviceTime | None:
    """The device time of a trace's events; None where no device did anything."""
    ops: dict[Any, dict[str, Any]] = {}
    kernels = []
    for event in events:
        category = str(event.get("cat", "")).lower()
        if event.get("ph") != "X" or not isinstance(event.get("args"), dict):
            continue
        if category in LAUNCHES:
            ops[_id(event)] = event
        elif category in KERNELS and isinstance(event.get("dur"), (int, float)):
            kernels.append((category, event))
    if not kernels:
        return None
    found = DeviceTime()
    work: dict[tuple[str, str], Work] = {}
    longest: dict[tuple[str, str], float] = {}
    for category, kernel in kernels:
        duration = float(kernel["dur"])
        found.total += duration
        if category != "kernel":
            found.copies += duration
            continue
        op = ops.get(_id(kernel), {})
        key = (str(op.get("name", "unknown")), _dtypes(op))
        one = work.setdefault(key, Work(*key))
        one.microseconds += duration
        one.kernels += 1
        found.by_dtype[key[1]] = found.by_dtype.get(key[1], 0.0) + duration
        used = on_tensor_cores(str(kernel.get("name", "")))
        one.on_tensor_cores += duration if used else 0.0
        one.perhaps += duration if used is None else 0.0
        if duration > longest.get(key, -1.0):
            longest[key], one.longest = duration, str(kernel.get("name", ""))
    found.work = sorted(work.values(), key=lambda one: -one.microseconds)
    found.on_tensor_cores = sum(one.on_tensor_cores for one in found.work)
    found.perhaps = sum(one.perhaps for one in found.work)
    found.without_dtypes = not any("Input type" in op["args"] for op in ops.values())
    return found


def on_tensor_cores(kernel: str) -> bool | None:
    """Did a kernel of this name run on Tensor Cores? None where the name does not tell."""
    if GENERATED.search(kernel):
        return None
    return bool(TENSOR_CORES.search(kernel)) and not PLAIN.search(kernel)


def _id(event: dict[str, Any]) -> Any:
    args = event["args"]
    return args.get("External id", args.get("external id"))


def _dtypes(op: dict[str, Any]) -> str:
    """Of the operands with dimensions: a Python number reads as one without."""
    args = op.get("args", {})
    types, dims = args.get("Input type"), args.get("Input Dims", [])
    if types is None:
        return "unknown"
    sized = [name for index, name in enumerate(types) if index >= len(dims) or dims[index]]
    found = list(dict.fromkeys(DTYPES[name] for name in sized if name in DTYPES))
    if found:
        return " and ".join(sorted(found))
    return "unknown" if any(name in ("TensorList", "GenericList") for name in types) or not types else "integers"
