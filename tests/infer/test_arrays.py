"""What NumPy's arrays are, and what torch takes over from them: each line was run on NumPy 2.4 and torch 2.13.

An array shows as its dtype, a scalar of NumPy as `scalar float64`, a Python number as its category.
"""

from __future__ import annotations

import ast
import textwrap

import pytest

from dtlint.infer.events import Call, Event
from dtlint.infer.interpreter import interpret
from dtlint.infer.values import Array, Number, Tensor, Value

CASES = {
    "what NumPy makes is float64 and int64 unless it is told otherwise": """
        reveal(np.zeros(3))  # float64
        reveal(np.zeros(3, dtype=np.float32))  # float32
        reveal(np.zeros(3, np.uint8))  # uint8
        reveal(np.ones(3, dtype="float16"))  # float16
        reveal(np.arange(3))  # int64
        reveal(np.arange(0, 1, 0.1))  # float64
        reveal(np.full(3, 1))  # int64
        reveal(np.full(3, 1.0))  # float64
        reveal(np.array([1, 2]))  # int64
        reveal(np.array([[1.0, 2], [3, 4]]))  # float64
        reveal(np.array([True]))  # bool
        reveal(np.linspace(0, 1, 3))  # float64
        reveal(np.random.rand(3))  # float64
        reveal(np.random.randint(0, 3, 3))  # int64
        reveal(np.random.permutation(3))  # int64
        reveal(np.random.rand())  # float
        reveal(np.random.uniform(0, 1))  # float
        reveal(np.float64(2))  # scalar float64
    """,
    "promotion": """
        f2, f4, f8 = np.ones(3, np.float16), np.ones(3, np.float32), np.ones(3)
        u1, i2, i4, i8 = np.ones(3, np.uint8), np.ones(3, np.int16), np.ones(3, np.int32), np.ones(3, np.int64)
        reveal(f4 * 2.0)  # float32
        reveal(f4 * np.float64(2))  # float64
        reveal(u1 / 255)  # float64
        reveal(u1 * 1.0)  # float64
        reveal(f2 / 255.0)  # float16
        reveal(u1 + i8)  # int64
        reveal(i4 * np.float32(1))  # float64
        reveal(i2 * np.float32(1.5))  # float32
        reveal(i2 * 1.5)  # float64
        reveal(np.float32(1) * 1.5)  # scalar float32
        reveal(np.float32(1) * np.int64(3))  # scalar float64
        reveal(np.float32(1) + f2)  # float32
        reveal(i8 // 2)  # int64
        reveal(i8 / 2)  # float64
        reveal(-f4)  # float32
        reveal(f8.astype(np.float32))  # float32
        reveal(f8.astype("float32") * 2)  # float32
        reveal(f8.astype(int))  # int64
        reveal(f8[0:2])  # float64
    """,
    "functions": """
        f4, u1, i4 = np.ones(3, np.float32), np.ones(3, np.uint8), np.ones(3, np.int32)
        reveal(np.sqrt(2))  # scalar float64
        reveal(np.sqrt(f4))  # float32
        reveal(np.exp(np.ones(2, np.int16)))  # float32
        reveal(np.exp(np.ones(2, np.int8)))  # float16
        reveal(np.mean(f4))  # scalar float32
        reveal(np.mean(u1))  # scalar float64
        reveal(np.sum(u1))  # scalar uint64
        reveal(u1.mean())  # scalar float64
        reveal(np.cumsum(i4))  # int64
        reveal(np.round(f4))  # float32
        reveal(np.maximum(f4, 0))  # float32
        reveal(np.concatenate([f4, np.ones(2)]))  # float64
        reveal(np.where(f4 > 0, 1, 0))  # int64
        reveal(np.where(u1, 1.0, 0.0))  # float64
        reveal(np.argmax(f4))  # int64
        reveal(np.power(2, 3))  # scalar int64
    """,
    "what has no dimensions becomes a scalar when it is computed with": """
        z, f4 = np.ones(()), np.ones((2, 3), np.float32)
        reveal(torch.ones(2) * (z + 1))  # tensor ?
        reveal(torch.ones(2) * (f4 + 1).mean())  # tensor float32
        reveal(torch.ones(3) * (f4 @ f4[0]))  # tensor ?
        reveal(np.float32([1, 2]))  # float32
        reveal(torch.ones(2).half() * np.float32(sizes))  # tensor ?
    """,
    "truths and complex numbers": """
        b, c, i8 = np.ones(3, bool), np.ones(3, np.complex64), np.arange(3)
        reveal(b + b)  # bool
        reveal(b**2)  # int64
        reveal(b**b)  # int8
        reveal(c * i8)  # complex128
        reveal(c * np.float32(1))  # complex64
        reveal(np.ones(2, np.float16) * 1j)  # complex64
        reveal(np.abs(c))  # float32
        reveal(np.std(c))  # scalar float32
        reveal(np.round(b))  # float16
        reveal(np.exp(True))  # scalar float16
        reveal(np.exp(1j))  # scalar complex128
    """,
    "a bound, a weight, a dtype by position and what is written into": """
        i4, f4, u1 = np.ones(3, np.int32), np.ones(3, np.float32), np.ones(3, np.int8)
        reveal(np.clip(i4, 0.5, 2))  # float64
        reveal(i4.clip(0, 1))  # int32
        reveal(np.bincount(i4, f4))  # ?
        reveal(np.full(3, 0, np.float32))  # float32
        reveal(np.arange(0, 3, 1, np.float32))  # float32
        reveal(np.arange(f4.max()))  # ?
        reveal(np.zeros_like(i4, np.float32))  # float32
        reveal(np.sum(i4, 0, np.float32))  # float32
        reveal(np.exp(i4, f4))  # ?
        reveal(np.true_divide(u1, 2))  # float64
        reveal(np.hypot(2, u1))  # float16
        reveal(np.dot(2, u1))  # ?
        reveal(np.linspace(f4, 1))  # ?
        reveal(np.unique(i4, return_counts=True))  # ?
        reveal(np.array([np.float32(1), 1.0]))  # ?
        reveal(np.hstack([f4, 1.0]))  # ?
        reveal(np.random.exponential(1.0, 3))  # float64
    """,
    "an array that is changed in place keeps its dtype": """
        f4, scalar = np.ones(3, np.float32), np.float32(1)
        f4 *= np.ones(3)
        scalar *= np.float64(1)
        reveal(f4)  # float32
        reveal(scalar)  # scalar float64
    """,
    "beside a tensor NumPy promotes, and gives a tensor": """
        t, h, i8 = torch.ones(3), torch.ones(3).half(), torch.ones(3).long()
        reveal(t * np.arange(3))  # tensor float64
        reveal(h - np.ones(3, np.float32))  # tensor float32
        reveal(i8 / np.arange(3))  # tensor float64
        reveal(torch.ones(3).bfloat16() * np.ones(3))  # tensor ?
        t += np.ones(3)
        reveal(t)  # tensor float64
        reveal(i8 * np.bool_(True))  # tensor float32
        reveal(i8 * np.int32(2))  # tensor int64
        reveal(h * np.complex64(1))  # tensor float16
    """,
    "torch takes their dtype, and takes their scalars for Python's numbers": """
        t, h = torch.ones(2), torch.ones(2).half()
        reveal(torch.from_numpy(np.ones(3)))  # tensor float64
        reveal(torch.from_numpy(np.arange(3)))  # tensor int64
        reveal(torch.tensor(np.ones(3) / 255))  # tensor float64
        reveal(torch.tensor(np.float32(2)))  # tensor float32
        reveal(torch.tensor([np.ones(2)]))  # tensor float64
        reveal(torch.as_tensor(np.ones(2, dtype="float32")))  # tensor float32
        reveal(torch.tensor(np.ones(3), dtype=torch.float32))  # tensor float32
        reveal(torch.from_numpy(np.ones(3)).float())  # tensor float32
        reveal(torch.Tensor(np.ones(2)))  # tensor float32
        reveal(torch.FloatTensor(np.ones(2)))  # tensor float32
        reveal(t * np.float64(2))  # tensor float32
        reveal(h * np.float64(2))  # tensor float16
        reveal(np.float64(2) * h)  # tensor float16
        reveal(t + np.ones(2))  # tensor float64
        reveal(np.ones(2) * t)  # ?
        reveal(t.numpy() + 1)  # float32
    """,
    "pictures": """
        from PIL import Image
        import torchvision.transforms.functional as TF
        image = Image.open(path)
        reveal(np.array(image))  # ?
        reveal(np.array(image.convert("RGB")))  # uint8
        reveal(np.array(image.convert("RGB").resize((3, 3))) / 255.0)  # float64
        reveal(TF.to_tensor(image.convert("RGB")))  # tensor float32
        reveal(TF.to_tensor(np.zeros((3, 3, 3))))  # tensor float64
    """,
}


def shown(value: Value) -> str:
    dtypes = value.dtypes if isinstance(value, (Array, Tensor)) else None
    named = "?" if dtypes is None else "|".join(sorted(dtypes))
    if isinstance(value, Number):
        return value.category.name.lower()
    if isinstance(value, Tensor):
        return f"tensor {named}"
    return f"scalar {named}" if isinstance(value, Array) and value.scalar else named


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_reveals(source: str) -> None:
    source = "import numpy as np, torch\n" + textwrap.dedent(source)
    found: list[tuple[int, str]] = []

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        if isinstance(event.node.func, ast.Name) and event.node.func.id == "reveal":
            found.append((event.node.lineno, shown(event.args[0])))

    interpret(ast.parse(source), {Call: on_call})
    lines = enumerate(source.splitlines(), 1)
    assert found == [(number, line.partition("# ")[2]) for number, line in lines if "reveal(" in line]
