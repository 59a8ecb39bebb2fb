"""How much faster is this CPU in 16 bits? Measures the table in dtlint/trace/ratios.py, and prints it as it stands there.

    OMP_NUM_THREADS=1 python tests/benchmarks/dtype_ratios.py [--repeat N]

Each operator runs in float32, bfloat16 and float16 in turn, over a few sizes; the best of N runs of each counts. What is
printed are the ratios of float32's time to that of the other dtype: the lowest and the highest over the sizes.
"""

from __future__ import annotations

import argparse
import platform
import re
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import torch
import torch.nn.functional as F

LARGE = 10_000_000
"""As in dtlint/trace/ratios.py."""

LOW = (torch.bfloat16, torch.float16)

Make = Callable[[torch.dtype], Callable[[], object]]


def cases() -> Iterator[tuple[str, int, Make]]:
    """The kind of each operator, the floating-point operations or values of a call, and what makes the call in a dtype."""
    for m, k, n in ((32, 32, 32), (64, 64, 64), (128, 128, 128), (256, 64, 256), (512, 512, 512)):
        yield "small product" if 2 * m * k * n < LARGE else "large product", 2 * m * k * n, product(m, k, n)
    for m, k, n in ((256, 256, 256), (256, 256, 1024), (1024, 256, 256), (256, 1024, 256)):
        yield "large product", 2 * m * k * n, product(m, k, n)
    for length in (64, 256):
        yield "attention", 4 * 16 * length**2 * 64, attention(length)
    for channels, size in ((8, 16), (64, 32)):
        yield "convolution", 2 * 9 * channels**2 * size**2, convolution(channels, size)
    for n in (1 << 12, 1 << 15, 1 << 18):
        yield "pointwise", n, pointwise(n)
        yield "norm", n, rows(n, lambda x: F.layer_norm(x, x.shape[-1:]))
        yield "softmax", n, rows(n, lambda x: x.softmax(-1))


def product(m: int, k: int, n: int) -> Make:
    def make(dtype: torch.dtype) -> Callable[[], object]:
        a, b = torch.randn(m, k).to(dtype), torch.randn(n, k).to(dtype)
        return lambda: F.linear(a, b)

    return make


def attention(length: int) -> Make:
    """Forward and backward: the flash kernel has a ratio of its own."""

    def make(dtype: torch.dtype) -> Callable[[], object]:
        q, k, v = (torch.randn(4, 4, length, 64).to(dtype).requires_grad_() for _ in range(3))
        return lambda: torch.autograd.grad(F.scaled_dot_product_attention(q, k, v).sum(), (q, k, v))

    return make


def convolution(channels: int, size: int) -> Make:
    def make(dtype: torch.dtype) -> Callable[[], object]:
        x, w = torch.randn(4, channels, size, size).to(dtype), torch.randn(channels, channels, 3, 3).to(dtype)
        return lambda: F.conv2d(x, w, padding=1)

    return make


def pointwise(n: int) -> Make:
    def make(dtype: torch.dtype) -> Callable[[], object]:
        x, y = torch.randn(n).to(dtype), torch.randn(n).to(dtype)
        return lambda: F.gelu(x * y + y)

    return make


def rows(n: int, function: Callable[[torch.Tensor], torch.Tensor]) -> Make:
    def make(dtype: torch.dtype) -> Callable[[], object]:
        x = torch.randn(n // 64, 64).to(dtype)
        return lambda: function(x)

    return make


def seconds(call: Callable[[], object]) -> float:
    """Of one call, over as many as take a millisecond or so."""
    began = time.perf_counter()
    call()
    times = max(1, int(1e-3 / max(time.perf_counter() - began, 1e-7)))
    began = time.perf_counter()
    for _ in range(times):
        call()
    return (time.perf_counter() - began) / times


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    options = parser.parse_args()
    torch.manual_seed(0)
    found: dict[tuple[str, str], list[float]] = {}
    for kind, size, make in cases():
        calls = {dtype: make(dtype) for dtype in (torch.float32, *LOW)}
        best = dict.fromkeys(calls, float("inf"))
        for _ in range(options.repeat):
            for dtype, call in calls.items():
                best[dtype] = min(best[dtype], seconds(call))
        for dtype in LOW:
            found.setdefault((kind, str(dtype)[6:]), []).append(best[torch.float32] / best[dtype])
        told = ", ".join(f"{str(dtype)[6:]} {best[dtype] * 1e6:.1f} us" for dtype in calls)
        print(f"# {kind}, {size:,}: {told}")
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    named = re.search(r"model name\s*: (.*)", text)
    processor = named[1] if named else platform.processor()
    print(f"# {processor}, {torch.backends.cpu.get_cpu_capability()}, torch {torch.__version__}, {date.today()}")
    for (kind, dtype), ratios in found.items():
        print(f'    ("{kind}", "{dtype}"): ({min(ratios):.2f}, {max(ratios):.2f}),')


if __name__ == "__main__":
    main()
