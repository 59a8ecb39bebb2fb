"""What kind of thing a parameter is, by what a function does with it and by what it passes it on to."""

from __future__ import annotations

import ast

import pytest

from dtlint.infer.interproc.parameter_kinds import Kind, kinds_in

IMPORTS = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\nfrom torch.nn.functional import gelu\n\n\n"
)


def kind(body: str, more: str = "", parameters: str = "x, y") -> Kind:
    """The kind of the first parameter of a function."""
    tree = ast.parse(f"{IMPORTS}def f({parameters}):\n    {body}\n{more}")
    (function,) = [one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == "f"]
    return kinds_in(tree, function)[parameters.split(",")[0]]


@pytest.mark.parametrize(
    "body",
    [
        "return x.softmax(-1)",
        "return F.normalize(x)",
        "return gelu(x)",
        "return x.mean(dim=-1)",
        "x = torch.log(x); return x[y]",
        "return torch.matmul(y, x)",
    ],
)
def test_what_torch_refuses_for_whole_numbers_makes_it_floating(body: str) -> None:
    assert kind(body) is Kind.FLOATING


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return x.unsqueeze(0)", Kind.TENSOR),
        ("return x.relu()", Kind.TENSOR),
        ("return torch.clamp(x, 0)", Kind.TENSOR),
        ("return x.mean()", Kind.OPERAND),  # an array has a mean, too
        ("return x - y", Kind.OPERAND),
        ("return x.exp() if isinstance(x, torch.Tensor) else x", Kind.OPERAND),
        ("return x", Kind.OPEN),
        ("return y.gather(1, x[0])", Kind.OPEN),  # one of several tensors
        ("return x.to(y)", Kind.OPERAND),  # a module can be moved, too
        ("x = y(x); return x.exp()", Kind.OPEN),
        ("return [x.exp() for x in y]", Kind.OPEN),
    ],
)
def test_what_leaves_open_what_it_holds(body: str, expected: Kind) -> None:
    assert kind(body) is expected


@pytest.mark.parametrize(
    "body",
    [
        "return y[x]",
        "return y.masked_fill(x, 0.0)",
        "return y.masked_fill(x[:, None].expand(-1, 4), 0.0)",
        "return y.scatter_add(0, x.unsqueeze(-1).expand_as(y), y)",
        "return y.gather(dim=1, index=x[..., None])",
        "return x ^ (x >> 16)",
        "return torch.where(x, y, 0)",
        "return y.gather(1, x)",
        "return torch.index_select(y, 0, x)",
        "return y * ~x",
        "return F.one_hot(x, 8) + x.exp()",
    ],
)
def test_what_is_looked_up_by_or_asked_is_whole(body: str) -> None:
    assert kind(body) is Kind.WHOLE


def test_numbers_and_options_are_something_else() -> None:
    assert kind("return y.to(device=x)") is Kind.OTHER
    assert kind("return y.sum(x)") is Kind.OTHER
    assert kind("return torch.zeros(x)") is Kind.OTHER  # a shape perhaps
    assert kind("return y.sum(x) * x") is Kind.OTHER
    assert kind("return x + block.norm(x)") is Kind.OTHER


def test_what_bounds_a_range_and_what_sizes_a_layer_is_a_number() -> None:
    assert kind("return torch.arange(x)") is Kind.NUMBER
    assert kind("return nn.Linear(x * 2, 4)") is Kind.NUMBER
    assert kind("return nn.Linear(4, 4)(x)") is Kind.OPEN
    assert kind("return nn.LayerNorm(x)") is Kind.OPEN
    assert kind("return nn.Linear(x, 4) if isinstance(x, int) else x") is Kind.OTHER
    assert kind("return torch.arange(4, out=x)") is Kind.OTHER
    assert kind("return rng.arange(x) + self.ones(x)") is Kind.OTHER


def test_a_method_of_the_object_is_none_of_a_tensor() -> None:
    assert kind("return self.norm(x)") is Kind.OPEN
    assert kind("return layer.norm(x) + x.sqrt()") is Kind.FLOATING


def test_what_is_passed_on_is_what_it_is_taken_for() -> None:
    helper = "\ndef g(a, b=None):\n    return torch.exp(b) if a is None else y[a]\n"
    assert kind("return g(x)", helper) is Kind.WHOLE
    assert kind("return g(y, b=x)", helper) is Kind.FLOATING
    assert kind("x = x + 1; return g(x)", helper) is Kind.OPERAND
    assert kind("return h(x)", helper) is Kind.OPEN


def test_a_method_passes_on_to_methods_of_its_class() -> None:
    tree = ast.parse(
        f"{IMPORTS}class A:\n    def f(self, x):\n        return self.g(x)\n\n"
        "    def g(self, x):\n        return F.softmax(x, -1)\n"
    )
    (cls,) = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    (first, _) = [one for one in cls.body if isinstance(one, ast.FunctionDef)]
    assert kinds_in(tree, first)["x"] is Kind.FLOATING


def test_functions_that_call_themselves_are_followed_to_an_end() -> None:
    assert kind("return g(x)", "\ndef g(a):\n    return f(a, a)\n") is Kind.OPEN


def test_what_is_asked_for_none_alone_stays_open() -> None:
    assert kind("return x is not None") is Kind.OPEN
    assert kind("if x is None: x = 'cpu'\n    return torch.zeros(3, device=x)") is Kind.OTHER
