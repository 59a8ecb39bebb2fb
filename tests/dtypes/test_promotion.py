"""The promotion lattice, held against torch itself for every pair and every mix of ranks."""

from __future__ import annotations

import warnings
from itertools import product
from typing import TYPE_CHECKING

import pytest

from dtlint.dtypes.dtype import DTYPES, FLOATING, named
from dtlint.dtypes.promotion import Operand, promote, result_dtype

if TYPE_CHECKING:
    import torch

DEFAULT_NUMBERS = {"bool": True, "int64": 1, "float32": 1.0, "complex64": 1j}


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ([("float16", 2), ("bfloat16", 2)], "float32"),
        ([("float16", 2), ("float64", 1)], "float16"),
        ([("float16", 2), ("float32", 0)], "float16"),
        ([("int64", 2), ("float16", 1)], "float16"),
        ([("int64", 2), ("float32", 0)], "float32"),
        ([("uint8", 2), ("int8", 2)], "int16"),
        ([("float16", 1), ("complex64", 0)], "complex32"),
        ([("float8_e4m3fn", 2), ("float32", 2)], None),
    ],
)
def test_dimensioned_tensors_rank_over_0_dim_tensors_over_numbers(
    operands: list[Operand], expected: str | None
) -> None:
    assert result_dtype(operands) == expected


def test_every_pair_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")
    for left, right in product(DTYPES, DTYPES):
        try:
            expected = str(torch.promote_types(getattr(torch, left), getattr(torch, right)))[6:]
        except RuntimeError:
            expected = None
        assert promote(left, right) == expected, (left, right)


def test_every_mix_of_ranks_agrees_with_torch() -> None:
    torch = pytest.importorskip("torch")

    def value(operand: Operand) -> torch.Tensor | complex:
        dtype, rank = operand
        if rank == 0:
            return DEFAULT_NUMBERS[dtype]
        return torch.zeros((1,) * (rank == 2), dtype=getattr(torch, dtype))

    operands = [(dtype, rank) for rank in (1, 2) for dtype in DTYPES] + [(dtype, 0) for dtype in DEFAULT_NUMBERS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # complex32 is experimental, says torch
        for left, right in product(operands, operands):
            try:
                expected = str(torch.result_type(value(left), value(right)))[6:]
            except RuntimeError:
                expected = None
            assert result_dtype([left, right]) == expected, (left, right)


def test_ranges_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    for name, info in DTYPES.items():
        dtype = getattr(torch, name)
        if name in FLOATING:
            facts = torch.finfo(dtype)
            assert (info.max, info.eps, info.tiny) == (facts.max, facts.eps, facts.tiny), name
            assert torch.tensor(info.smallest, dtype=dtype).item() == info.smallest
            assert torch.tensor(info.smallest / 2, dtype=dtype).item() == 0
        elif "int" in name:
            assert (info.max, info.min) == (torch.iinfo(dtype).max, torch.iinfo(dtype).min), name


def test_second_names_are_the_dtype_itself() -> None:
    assert named("half") == "float16"
    assert named("long") == "int64"
    assert named("float16") == "float16"
    assert named("Tensor") is None
