"""Dtypes that nobody knows, but that have a name: each `reveal(x)` states on its own line what decides `x`.

`~x` is the dtype of the parameter `x`, `~x+float32` that promoted with float32; `dtype ~x` is the dtype itself.
"""

from __future__ import annotations

import ast
import textwrap

import pytest

from dtlint.infer.events import Call, Event
from dtlint.infer.interpreter import interpret
from dtlint.infer.symbols import same_dtype
from dtlint.infer.values import Tensor, Trait
from tests.infer.test_interpreter import MATTERS, revealed

CASES = {
    "a tensor that is given keeps its dtype's name through views, layers' activations and numbers": """
        def f(x: torch.Tensor, scale: float):
            reveal(x)  # ~x
            reveal(x.view(-1).transpose(0, 1)[None])  # ~x
            reveal(x * 2 + 0.5)  # ~x
            reveal(x / x.shape[-1] ** 0.5)  # ~x
            reveal(x * scale)  # ~x
            reveal(-x)  # ~x
            reveal(x.exp())  # ~x
            reveal(F.softmax(x, dim=-1))  # ~x
            reveal(torch.softmax(x, -1, dtype=torch.float32))  # float32
            reveal(x.float())  # float32
            reveal(x.argmax(-1))  # int64
            reveal(x > 0)  # bool
            reveal(nn.ReLU()(x))  # ~x
            reveal(x.mean())  # ~x
            reveal(x @ x.transpose(0, 1))  # ~x
            reveal(torch.cat([x, 2 * x]))  # ~x
    """,
    "what is promoted with something known says with what": """
        def f(x: torch.Tensor, y: torch.Tensor, n):
            reveal(x + torch.zeros(3))  # ~x+float32
            reveal(x + torch.arange(3))  # ~x
            reveal(x + y)  # ~x+y
            reveal(x + torch.tensor(1.0))  # ?
            reveal(x * n)  # ?
            reveal(torch.where(x > 0, x, 0.0))  # ~x
            reveal(torch.cat([x, torch.zeros(3, 3)]))  # ~x+float32
    """,
    "a dtype is a value, and what is made with it follows it": """
        def f(x: torch.Tensor, dtype=None, other=None):
            reveal(x.dtype)  # dtype ~x
            reveal(torch.zeros(3, dtype=x.dtype))  # ~x
            reveal(torch.ones(3).to(x.dtype))  # ~x
            reveal(torch.arange(3).type_as(x))  # ~x
            reveal(torch.zeros_like(x))  # ~x
            reveal(x.new_zeros(3))  # ~x
            reveal(torch.zeros(3, dtype=dtype))  # ~dtype
            reveal(torch.ones(3).to(dtype=dtype) + 1)  # ~dtype
            kind = x.dtype
            reveal(x.float().to(kind))  # ~x
            reveal(torch.ones(3).to(other.dtype))  # ~other
            reveal(x.half().dtype)  # float16
    """,
    "promote_types gives a dtype, of which more is known than of what it is given": """
        import functools

        def f(x: torch.Tensor, y: torch.Tensor, dtype, *rest):
            reveal(torch.promote_types(torch.float16, torch.bfloat16))  # float32
            wide = torch.promote_types(x.dtype, torch.float32)
            reveal(x.to(wide))  # ~x+float32
            reveal(torch.zeros(3, dtype=torch.promote_types(x.dtype, y.dtype)))  # ?
            reveal(x.to(torch.promote_types(len(rest), torch.float64)))  # complex128|float64
            most = functools.reduce(torch.promote_types, (x.dtype, y.dtype, torch.float32))
            reveal(y.to(most))  # ~x+y+float32
            reveal(functools.reduce(torch.promote_types, [torch.int8, torch.uint8], torch.bool))  # int16
            reveal(functools.reduce(torch.promote_types, rest))  # unknown
            reveal(functools.reduce(max, (1, 2)))  # unknown
    """,
    "tests on dtypes make them known": """
        def f(x: torch.Tensor):
            y = x * 2
            if x.dtype == torch.float16:
                reveal(x)  # float16
                reveal(y)  # float16
            elif x.dtype in (torch.float32, torch.float64):
                reveal(x.dtype == torch.float32)  # unknown
                reveal(torch.zeros_like(x) + 1)  # ~x
            else:
                reveal(x)  # ~x
            kind = x.dtype
            if kind is torch.bfloat16 and y.shape[0] > 1:
                reveal(x)  # bfloat16
            if x.dtype != torch.float16:
                return x
            reveal(x)  # float16
    """,
    "weights have the name of the module's attribute, and integers stay what they are": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
                self.body = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
                self.layers = nn.ModuleList([nn.Conv2d(3, 3, 1) for _ in range(3)])
                self.scale = nn.Parameter(torch.ones(3))
                reveal(self.scale)  # float32
                self.register_buffer("steps", torch.arange(3))
                self.register_buffer("mean", torch.zeros(3))
                self.table = torch.zeros(3)
                self.drop = nn.Dropout(0.1)
            def forward(self, x):
                reveal(self.fc(x))  # ~self.fc.weight
                reveal(self.fc.weight)  # ~self.fc.weight
                reveal(self.body(x))  # ~self.body[0].weight
                for layer in self.layers:
                    reveal(layer(x))  # ~layer.weight
                reveal(self.scale)  # ~self.scale
                reveal(self.scale * x)  # ~self.scale+x
                reveal(self.steps)  # int64
                reveal(self.mean)  # ~self.mean
                reveal(self.table)  # float32
                reveal(self.drop(x.half()))  # float16
    """,
    "parameters are tensors where they are handed to what takes nothing else": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 3, 1)
            def forward(self, x, y, z):
                reveal(x)  # ~x
                reveal(y)  # unknown
                reveal(self.conv(x) + 1)  # ~self.conv.weight
                y = y + 1
                reveal(F.relu(z) + z)  # ~z
        def g(a, b):
            reveal(a)  # ~a
            torch.exp(a)
            torch.add(b, 1)
            reveal(b)  # unknown
    """,
    "annotations are facts": """
        from typing import Optional, Union
        from jaxtyping import Float16, Float
        import numpy as np
        def f(a: Optional[torch.Tensor], b: "torch.Tensor | None", c: torch.HalfTensor, d: torch.FloatTensor,
              e: Float16[torch.Tensor, "n m"], g: Float[torch.Tensor, "n"], h: Union[torch.Tensor, list], i: int = 3):
            reveal(a)  # ~a
            reveal(b)  # ~b
            reveal(c)  # float16
            reveal(d)  # ~d
            reveal(e)  # float16
            reveal(g)  # ~g
            reveal(h)  # unknown
            reveal(i)  # integer
    """,
    "a function gives what its arguments decide": """
        def double(x, scale: float = 2.0):
            return torch.exp(x) * scale, x.dtype
        def made(n, dtype):
            return torch.zeros(n, dtype=dtype)
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(3, 3)
            def forward(self, x, skip):
                return self.fc(x), skip
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()
            def forward(self, x, y: torch.Tensor):
                reveal(double(y)[0])  # ~y
                reveal(double(y.half())[0])  # float16
                reveal(double(torch.ones(3).double()))  # float64, float64
                reveal(double(torch.arange(3))[0])  # ?
                reveal(double(self.unseen)[0])  # ~self.unseen
                reveal(made(3, y.dtype))  # ~y
                reveal(made(3, torch.half))  # float16
                reveal(self.block(x, y))  # ~self.block.fc.weight, ~y
                reveal(self.block(x, skip=y.float()))  # ~self.block.fc.weight, float32
    """,
    "in an autocast region the layers that it casts give its dtype": """
        model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        layer, table = nn.Linear(3, 3), nn.Embedding(3, 3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            reveal(layer(x))  # bfloat16
            reveal(table(x))  # ~table.weight
            with torch.autocast("cpu", enabled=False):
                reveal(layer(x))  # ~layer.weight
        with torch.autocast("cpu", enabled=wanted, dtype=torch.bfloat16):
            reveal(layer(x))  # ?
        reveal(model(x))  # ~model[0].weight
    """,
    "containers are what was put into them": """
        def f(x: torch.Tensor):
            xs = []
            for _ in range(3):
                xs.append(x.half())
            reveal(torch.stack(xs))  # float16
            ys = [x, x.float()]
            reveal(ys[0])  # ~x
            ys[0] = x.half()
            reveal(ys[0])  # unknown
            state = {"a": x, "b": x.half()}
            reveal(state["b"])  # float16
            state.update(other())
            reveal(state["b"])  # unknown
            halves = {k: v.half() for k, v in {"a": x}.items()}
            reveal(x.half() if x.is_floating_point() else x.float())  # float16|float32
            reveal([*ys, x][-1])  # unknown
            first, *rest = x, x.half(), x.half()
            reveal(rest[1])  # float16
            if (y := x.half()) is not None:
                reveal(y)  # float16
            reveal(x if x.dtype == torch.float16 else x.half())  # float16
    """,
    "the table answers for ops on what is known": """
        x = torch.randn(3, 3)
        reveal(x.sum())  # float32
        reveal(torch.linalg.norm(x))  # float32
        reveal(x.half() @ x.half())  # float16
        reveal(torch.arange(3).sum())  # int64
        reveal(torch.ones(3, dtype=torch.uint8).sum())  # int64
        values, indices = x.topk(2)
        reveal(values)  # float32
        reveal(indices)  # int64
        with torch.autocast("cuda", dtype=torch.float16):
            reveal(torch.matmul(x, x))  # float16
            reveal(x @ x)  # float16
            reveal(F.softmax(x.half(), -1))  # float32
            reveal(x.half() + 1)  # float16
        reveal(torch.where(x > 0, 1.0, 0.0))  # float32
    """,
    "fields of a dataclass are what each instance is given": """
        from dataclasses import dataclass
        @dataclass
        class Config:
            dtype: torch.dtype = torch.float32
            def zeros(self):
                reveal(self.dtype)  # unknown
    """,
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_reveals(source: str) -> None:
    shown, stated = revealed(source)
    assert shown == stated


def tensors(source: str) -> list[Tensor]:
    """The tensors that `reveal` is given."""
    found: list[Tensor] = []

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        if isinstance(event.node.func, ast.Name) and event.node.func.id == "reveal":
            found.extend(value for value in event.args if isinstance(value, Tensor))

    interpret(ast.parse(MATTERS + textwrap.dedent(source)), {Call: on_call})
    return found


def test_a_tensor_knows_the_cast_that_gave_it_its_dtype() -> None:
    (x,) = tensors("""
        def f(x: torch.Tensor):
            y = x.float()
            reveal(y.view(-1)[0] * 2)
    """)
    assert x.cast is not None
    assert ast.unparse(x.cast.node) == "x.float()"
    assert x.cast.symbol is not None
    assert x.cast.symbol.sole is not None and x.cast.symbol.sole.text == "x"


def test_a_cast_ends_where_something_else_gives_the_dtype() -> None:
    half, sum_, moved = tensors("""
        x, y = torch.ones(3), torch.ones(3)
        reveal(x.float().half())
        reveal(x.half() + y)
        reveal(y.to("cuda"))
    """)
    assert half.cast is not None
    assert ast.unparse(half.cast.node) == "x.float().half()"
    assert sum_.cast is None
    assert moved.cast is None


def test_the_default_dtype_is_told_from_one_that_is_given() -> None:
    defaulted, scaled, given, cast = tensors("""
        reveal(torch.zeros(3))
        reveal(torch.rand(3) * 2)
        reveal(torch.zeros(3, dtype=torch.float32))
        reveal(torch.zeros(3).float())
    """)
    assert [Trait.DEFAULTED in tensor.traits for tensor in (defaulted, scaled, given, cast)] == [
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("x", "x * 2", True),
        ("x", "y", None),
        ("x.half()", "y.half()", True),
        ("x.half()", "y.float()", False),
        ("x", "y.to(x.dtype)", True),
        ("x", "x + torch.zeros(3)", None),
    ],
)
def test_whether_two_tensors_have_one_dtype(left: str, right: str, same: bool | None) -> None:
    one, other = tensors(f"def f(x: torch.Tensor, y: torch.Tensor):\n    reveal({left}, {right})")
    assert same_dtype(one, other) is same
