"""Methods of parameters without an annotation: what they give has the dtype of the parameter, if that is a tensor."""

from __future__ import annotations

import ast

import pytest

from dtlint.check.reader import Reader
from dtlint.infer.domain.values import Unknown, Value


def _result(expression: str) -> Value:
    tree = ast.parse(f"import torch\ndef f(x, y):\n    return {expression}\n")
    (returned,) = (node for node in ast.walk(tree) if isinstance(node, ast.Return))
    assert returned.value is not None
    return Reader().facts(tree, None).value(returned.value)


@pytest.mark.parametrize("expression", ["x.transpose(0, 1)", "x.norm()", "x.softmax(-1).view(3)", "x.chunk(2)[0]"])
def test_a_parameter_keeps_its_dtype(expression: str) -> None:
    value = _result(expression)
    assert isinstance(value, Unknown)
    assert value.dtypes is None
    assert value.symbol is not None
    assert {atom.text for atom in value.symbol.of} == {"x"}


@pytest.mark.parametrize(
    "expression", ["x.argmax(-1)", "x.copy()", "x.get('a')", "(x == y).sum()", "(x / y).argmax(-1)"]
)
def test_what_an_array_or_a_dict_may_be_is_not_told(expression: str) -> None:
    value = _result(expression)
    assert not getattr(value, "dtypes", None)
    assert getattr(value, "symbol", None) is None


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [("x.float().pow(2).mean(-1)", "float32"), ("x.half().argmax(-1)", "int64"), ("x.long().unsqueeze(0)", "int64")],
)
def test_what_was_cast_is_a_tensor(expression: str, dtype: str) -> None:
    assert getattr(_result(expression), "dtypes", None) == {dtype}


def test_numbers_between_unknown_ends_are_of_the_default_dtype() -> None:
    assert getattr(_result("torch.linspace(0, x, y)"), "dtypes", None) == {"float16", "bfloat16", "float32", "float64"}


def test_what_a_region_adds_nothing_to_is_told() -> None:
    assert getattr(_result("torch.linspace(0, 1, 3) ** 2"), "dtypes", None) == {
        "float16",
        "bfloat16",
        "float32",
        "float64",
    }
    assert getattr(_result("torch.ones(2, dtype=torch.half) ** 2"), "dtypes", None) is None
