"""Parameters without an annotation that are tensors by what is done with them."""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.interproc.tensor_use import used_as_tensors


def _used(body: str) -> set[str]:
    (function,) = ast.parse(f"def f(x, y):\n    {body}\n").body
    assert isinstance(function, ast.FunctionDef)
    return set(used_as_tensors(function))


@pytest.mark.parametrize(
    "body", ["return x.unsqueeze(0) + y", "x = x.permute(0, 1)", "with y: z = [x.dim()]", "y = g(k=x.contiguous())"]
)
def test_a_method_of_tensors_alone_is_called(body: str) -> None:
    assert _used(body) == {"x"}


@pytest.mark.parametrize(
    "body",
    [
        "return x.transpose(0, 1)",  # of arrays, too
        "return x.dim() if y else x",
        "return [x.dim() for x in y]",
        "x = g(); return x.dim()",
        "assert isinstance(x, T); return x.dim()",
        "return x is None or x.dim()",
        "return x.dim(), x['mask']",
    ],
)
def test_what_may_be_another_is_not_one(body: str) -> None:
    assert _used(body) == set()
