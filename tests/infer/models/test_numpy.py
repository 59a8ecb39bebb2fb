"""What NumPy's arrays are, and what torch takes over from them: each program's variables are compared with a run of it."""

from __future__ import annotations

import pytest

from dtlint.infer.models.array_dtypes import CODES, SCALARS
from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")
np = pytest.importorskip("numpy")

PROGRAMS = {
    "what NumPy makes is float64 and int64 unless it is told otherwise": """
        a = np.zeros(3)
        b = np.zeros(3, dtype=np.float32)
        c = np.zeros(3, np.uint8)
        d = np.ones((3, 2), dtype="float16")
        e = np.arange(3)
        f = np.arange(0, 1, 0.1)
        g = np.full(3, 1)
        h = np.full(3, 1.0)
        i = np.array([1, 2])
        j = np.array([[1.0, 2], [3, 4]])
        k = np.array([True])
        l = np.linspace(0, 1, 3)
        win = np.kaiser(4, 14.0)
        text = np.loadtxt(["1 2", "3 4"])
        words = np.genfromtxt(["1 2", "3 4"], dtype=np.float32)
        raw = np.frombuffer(b"12345678")
        points, weights = np.polynomial.legendre.leggauss(4)
        m = np.array([])
        n = np.array([1, 2], dtype=float)
        o = np.array(5)
        p = np.eye(3)
        q = np.array([[1, 2.5], (3, 4)])
        r = np.array([np.float32(1), 1.0])
        s = np.array([np.float32(1), np.float16(1)])
        t = np.array([1, 2], dtype=np.dtype("int16"))
        u = np.array([1, 1j])
        v = np.array([x * 0.5 for x in range(3)])
        w = np.zeros(3, dtype="<f4")
        x = np.zeros(3, dtype="f8")
        y = np.float64(2)
        z = np.float32([1, 2])
    """,
    "random numbers": """
        a = np.random.rand(3)
        b = np.random.randint(0, 3, 3)
        c = np.random.permutation(3)
        d = np.random.rand()
        e = np.random.uniform(0, 1)
        f = np.random.normal(0, 1, (2, 2))
        g = np.random.randn(2, 3)
        h = np.random.choice([1, 2], 2)
        i = np.random.choice(3)
        rng = np.random.default_rng(0)
        j = rng.random(3)
        k = rng.integers(0, 3, size=3)
        l = rng.normal(size=3)
        m = rng.random(3, dtype=np.float32)
        n = rng.integers(3)
        o = rng.permutation(np.ones(3, np.float32))
        p = np.random.exponential(1.0, 3)
        q = np.random.RandomState(0).randn(3)
        r = np.random.randint(0, 2, size=3, dtype=np.uint8)
    """,
    "promotion": """
        f2, f4, f8 = np.ones(3, np.float16), np.ones(3, np.float32), np.ones(3)
        u1, i2, i4, i8 = np.ones(3, np.uint8), np.ones(3, np.int16), np.ones(3, np.int32), np.ones(3, np.int64)
        a = f4 * 2.0
        b = f4 * np.float64(2)
        c = u1 / 255
        d = u1 * 1.0
        e = f2 / 255.0
        f = u1 + i8
        g = i4 * np.float32(1)
        h = i2 * np.float32(1.5)
        i = i2 * 1.5
        j = np.float32(1) * 1.5
        k = np.float32(1) * np.int64(3)
        l = np.float32(1) + f2
        m = i8 // 2
        n = i8 / 2
        o = -f4
        p = f8.astype(np.float32)
        q = f8.astype("float32") * 2
        r = f8.astype(int)
        s = f8[0:2]
        t = f4 + [1, 2, 3]
        u = 2 - f4
        v = np.array(5) + 1
        w = np.array([1, 2]) > 1
        x = f4 @ f4
        y = f4 ** 2
        z = i8 ** -0.5
    """,
    "functions": """
        f4, u1, i4 = np.ones(3, np.float32), np.ones(3, np.uint8), np.ones(3, np.int32)
        a = np.sqrt(2)
        b = np.sqrt(f4)
        c = np.exp(np.ones(2, np.int16))
        d = np.exp(np.ones(2, np.int8))
        e = np.mean(f4)
        f = np.mean(u1)
        g = np.sum(u1)
        h = u1.mean()
        i = np.cumsum(i4)
        j = np.round(f4)
        k = np.maximum(f4, 0)
        l = np.concatenate([f4, np.ones(2)])
        m = np.where(f4 > 0, 1, 0)
        n = np.where(u1, 1.0, 0.0)
        o = np.argmax(f4)
        p = np.power(2, 3)
        q = np.stack([f4, f4])
        r = np.mean([1, 2])
        s = np.prod((2, 3))
        t = np.clip(f4, 0, 1)
        u = np.linalg.norm(f4)
        v = np.dot(f4, np.ones(3))
        w = np.std(np.ones(3, np.float16))
        x = np.abs(f4 * 1j)
        y = np.einsum("i,i->", f4, f4)
        z = np.percentile(f4, 50)
        aa = np.max([1, 2])
        ab = np.expand_dims(f4, 0)
        ac = np.isnan(f4)
        ad = np.floor(2.5)
        ae = np.unique(i4)
        af = np.tile(f4, 2)
        ag = np.outer(f4, u1)
        ah = np.bincount(i4)
        ai = np.linalg.inv(np.eye(2, dtype=np.float32))
        aj = np.zeros_like(f4)
        ak = np.zeros_like(i4, dtype=float)
        al = np.median(f4)
        am = np.log(2)
    """,
    "methods": """
        f4, i4 = np.ones((3, 2), np.float32), np.ones(3, np.int32)
        a = f4.sum()
        b = f4.sum(axis=0)
        c = f4.reshape(-1)
        d = f4.T
        e = i4.sum()
        f = f4.max()
        g = f4.transpose(1, 0)
        h = f4.copy()
        i = f4.argmax(1)
        j = f4.mean(0, dtype=np.float64)
        k = f4.flatten()
        l = f4[0]
        m = f4[:, 0]
        n = f4[f4 > 0]
        o = f4[None]
        p = i4.astype(f4.dtype)
        q = i4.astype(np.float16)
        r = f4.any()
        s = float(f4.sum())
        t = f4.item(0)
        u = f4.mean().item()
        v = f4.clip(0, 1)
        w = f4.round(1)
        x = int(i4[0])
        y = f4.shape[0]
        z = len(f4)
    """,
    "truths and complex numbers": """
        b, c, i8 = np.ones(3, bool), np.ones(3, np.complex64), np.arange(3)
        d = b + b
        e = b**2
        f = b**b
        g = c * i8
        h = c * np.float32(1)
        i = np.ones(2, np.float16) * 1j
        j = np.abs(c)
        k = np.std(c)
        l = np.round(b)
        m = np.exp(True)
        n = np.exp(1j)
        o = c.real
        p = b.sum()
    """,
    "an array that is changed in place keeps its dtype": """
        f4, scalar = np.ones(3, np.float32), np.float32(1)
        f4 *= np.ones(3)
        scalar *= np.float64(1)
        total = np.float32(0)
        for x in np.ones(3):
            total += x
    """,
    "beside a tensor NumPy promotes, and gives a tensor": """
        t, h, i8 = torch.ones(3), torch.ones(3).half(), torch.ones(3).long()
        a = t * np.arange(3)
        b = h - np.ones(3, np.float32)
        c = i8 / np.arange(3)
        d = i8 * np.bool_(True)
        e = i8 * np.int32(2)
        f = h * np.complex64(1)
        g = t * np.float64(2)
        i = h * np.float64(2)
        j = np.float64(2) * h
        k = np.float32(2) * i8
        u = torch.ones(3)
        u += np.ones(3)
    """,
    "torch takes their dtype": """
        h = torch.ones(2).half()
        a = torch.from_numpy(np.ones(3))
        b = torch.from_numpy(np.arange(3))
        c = torch.tensor(np.ones(3) / 255)
        d = torch.tensor(np.float32(2))
        e = torch.as_tensor(np.ones(2, dtype="float32"))
        f = torch.tensor(np.ones(3), dtype=torch.float32)
        g = torch.from_numpy(np.ones(3)).float()
        i = torch.Tensor(np.ones(2))
        j = torch.FloatTensor(np.ones(2))
        k = h.numpy() + 1
        l = np.asarray(torch.ones(2).double())
        m = np.array(h)
        n = torch.from_numpy(h.numpy())
        o = torch.tensor([np.ones(2, np.float32)[0], np.float32(1)])
        p = torch.tensor(np.array([1, 2, 3]) > 1)
        q = np.concatenate([h, h])
    """,
    "dtypes are values": """
        a = np.float32
        b = np.ones(2, a)
        kinds = {"f": np.float16, "d": np.float64}
        c = np.zeros(2, kinds["f"])
        d = np.ones(2, b.dtype)
        e = b.dtype == np.float32
        f = 1 if np.ones(2).dtype == np.float32 else 2
        g = b.dtype == float
    """,
    "loops over arrays": """
        total = 0
        for row in np.ones((3, 2), np.float32):
            total = row.sum()
        rows = [r * 2 for r in np.ones((3, 2), np.float16)]
        a = np.stack(rows)
        b = np.array([len(x) for x in ("a", "bc")])
    """,
}
LOOSE = {
    "random numbers": {"i", "rng"},
    "truths and complex numbers": {"e"},
    "an array that is changed in place keeps its dtype": {"total"},
    "loops over arrays": {"total"},
    "dtypes are values": {"a", "kinds", "g"},
    "beside a tensor NumPy promotes, and gives a tensor": {"f"},
}
"""What less is told of than is so: what a loop may not have changed, a draw without a size."""


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_arrays(name: str) -> None:
    text = "import numpy as np\n" + "\n".join(line[8:] for line in PROGRAMS[name].splitlines())
    assert mistaken(text) == []
    assert loose(text) - {"np"} <= LOOSE.get(name, set())


def test_the_texts_of_dtypes_are_numpy_s() -> None:
    for name, dtype in SCALARS.items():
        real = np.dtype(dtype)
        texts = [CODES[f"numpy.{name}.{which}"].value for which in ("name", "kind", "str")]
        assert texts == [real.name, real.kind, real.str]
