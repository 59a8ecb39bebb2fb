"""How many dimensions parameters have at least, by what a function does with them."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import pytest

from dtlint.infer.domain.lattice import at_least, join
from dtlint.infer.domain.values import Tensor
from dtlint.infer.interproc.parameter_ranks import least_dimensions
from dtlint.infer.models.ranks import broadcast, fewer


def ranks(body: str) -> Mapping[str, int]:
    [function] = ast.parse(f"def f(x):\n    {body}").body
    assert isinstance(function, ast.FunctionDef)
    return least_dimensions(function)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("return x.shape[2]", 3),
        ("return x.size(-2)", 2),
        ("b, c, *rest = x.shape", 2),
        ("return x[:, None, 0]", 2),
        ("return x.transpose(1, 2)", 3),
        ("return x.permute(0, 2, 1)", 3),
        ("return torch.sum(x, dim=[1, 2])", 3),
        ("return x.softmax(-1)", 1),
        ("return x[..., 0]", 1),
    ],
)
def test_a_dimension_that_is_named_is_there(body: str, count: int) -> None:
    assert ranks(body) == {"x": count}


@pytest.mark.parametrize(
    "body",
    ["return x.shape", "x = x[None]; return x.shape[2]", "return x.shape[2] if x.dim() > 2 else 1", "return x[0]"],
)
def test_what_is_bound_anew_or_asked_for_its_dimensions_shows_nothing(body: str) -> None:
    assert ranks(body) == {}


def test_ranks_that_are_bounds() -> None:
    assert broadcast([-3, None]) == -3
    assert broadcast([-1, 2]) == -2
    assert broadcast([1, 2]) == 2
    assert fewer(-3) == -2
    assert fewer(-1) is None
    assert join(Tensor(rank=3), Tensor(rank=-2)) == Tensor(rank=-2)
    assert at_least(0) is None
