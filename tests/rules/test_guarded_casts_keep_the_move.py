"""DT111's fix casts floating tensors alone, and moves all tensors as before."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT111", "DT111", "import torch\n")
LOOP = "def load(path, device, dtype):\n    state = torch.load(path)\n    for k, v in state.items():\n        state[k] = {}\n"


@pytest.mark.parametrize(
    ("cast", "otherwise"),
    [
        ("v.to(dtype)", "v"),
        ("v.half()", "v"),
        ("v.type(torch.float16)", "v"),
        ("v.to(dtype=torch.float16, non_blocking=True)", "v"),
        ("v.to(device, dtype)", "v.to(device)"),
        ("v.to(device, torch.float16, non_blocking=True)", "v.to(device, non_blocking=True)"),
        ("v.to(dtype=dtype, device=device)", "v.to(device=device)"),
        ('v.to("cuda", dtype=torch.bfloat16)', 'v.to("cuda")'),
        ("v.to(dtype, copy=True)", "v.to(copy=True)"),
    ],
)
def test_what_is_not_floating_is_moved_alone(cast: str, otherwise: str) -> None:
    fixed = LOOP.format(f"{cast} if v.is_floating_point() else {otherwise}")
    assert BENCH.fixed("DT111", LOOP.format(cast)) == fixed


@pytest.mark.parametrize("cast", ["v.to(device, dtype, True)", "v.to(dtype, **options)"])
def test_there_is_no_fix_where_the_dtype_cannot_be_told_apart(cast: str) -> None:
    assert BENCH.fixed("DT111", LOOP.format(cast)) == LOOP.format(cast)
