"""Lists and dicts under several names: running a program shows what each name holds."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.ran import contradicted

HEAD = """\
import torch

S = torch.zeros(2)
H = torch.zeros(2, dtype=torch.float16)
D = torch.zeros(2, dtype=torch.float64)
"""

PROGRAMS = {
    "an attribute and a name": """
        class C: pass
        c = C(); c.d = {"x": S}
        b = c.d
        if S.sum() > 3: b["x"] = H
        b["x"] = D
        y = c.d["x"] * 1
    """,
    "an attribute that a method changes": """
        class C:
            def __init__(self, d): self.d = d
            def put(self): self.d["x"] = D
        a = {"x": S}
        c = C(a)
        if S.sum() > 3: a["x"] = H
        c.put()
        y = a["x"] * 1
    """,
    "two names, and one path that changes it": """
        a = {"x": S}; b = a
        if S.sum() > 5: a["x"] = H
        b["x"] = D
        y = a["x"] * 1
    """,
    "a name of one or the other": """
        a = {"x": S}; b = S
        if S.sum() < 5: b = a
        else: b = {"x": H}
        b["x"] = D
        y = a["x"] * 1
    """,
    "copies that hold the same": """
        import copy
        a = {"x": {"y": S}}
        b = dict(a); c = a.copy(); e = {**a}; f = copy.copy(a)
        b["x"]["y"] = D
        y = a["x"]["y"] * 1
        c["x"]["y"] = H
        y = f["x"]["y"] * 1
    """,
    "attributes by their names": """
        class C:
            def __init__(self, **k): self.__dict__.update(k)
        a = {"x": S}
        c = C(d=a)
        c.d["x"] = D
        y = a["x"] * 1
    """,
    "a field of a dataclass": """
        from dataclasses import dataclass
        @dataclass
        class C:
            d: dict
        a = {"x": S}
        c = C(a)
        c.d["x"] = D
        y = a["x"] * 1
    """,
    "dicts that a loop counts": """
        ds = [{"x": S}, {"x": S}]
        for i, d in enumerate(ds):
            d["x"] = D
        y = ds[1]["x"] * 1
    """,
    "two parameters that are given the same": """
        def f(d, e, c):
            if c: d["x"] = H
            e["x"] = D
            return d["x"] * 1
        a = {"x": S}
        y = f(a, a, S.sum() > 3)
        y = a["x"] * 1
    """,
    "a generator that changes what it is given": """
        def g(d):
            d["x"] = D
            yield 1
        a = {"x": S}
        for _ in g(a): pass
        y = a["x"] * 1
    """,
    "what a dict gives by its methods": """
        a = {"x": {"y": S}}
        b = a.get("x")
        b["y"] = D
        y = a["x"]["y"] * 1
        c = a.setdefault("x", {})
        c["y"] = H
        y = a["x"]["y"] * 1
    """,
    "a global that a function changes": """
        a = {"x": S}
        def put():
            a["x"] = D
        b = a
        if S.sum() > 3: b["x"] = H
        put()
        y = b["x"] * 1
        y = a["x"] * 1
    """,
    "keywords": """
        def f(**k):
            k["d"]["x"] = D
        a = {"x": S}
        f(d=a)
        y = a["x"] * 1
        f(**{"d": a})
    """,
    "a lambda that changes what is around it": """
        a = {"x": S}
        f = lambda: a.update(x=D)
        f()
        y = a["x"] * 1
    """,
    "copies of a list, and another name": """
        a = [S]
        b = a[:]
        c = list(a)
        d = a
        d[0] = D
        y = a[0] * 1
        y = b[0] * 1
        y = c[0] * 1
        d += [H]
        y = a[1] * 1
    """,
    "one of a list of dicts": """
        ds = [{"x": S} for _ in range(3)]
        d = ds[1]
        d["x"] = D
        y = ds[1]["x"] * 1
        for e in ds:
            y = e["x"] * 1
    """,
    "dicts that a loop puts into a list": """
        ds = []
        for i in range(3):
            d = {"x": S}
            ds.append(d)
        for d in ds:
            d["x"] = D
        y = ds[0]["x"] * 1
    """,
    "two names of a list that a loop fills": """
        a = [S]; b = a
        for i in range(3):
            a.append(S)
        b.append(D)
        y = a[-1] * 1
    """,
    "two names, and a loop that may change it": """
        a = {"x": S}; b = a
        for i in range(3):
            if i > 7: a["x"] = H
        b["x"] = D
        y = a["x"] * 1
    """,
    "a case of a match": """
        a = {"x": S}
        match 3:
            case 4: b = {"x": S}
            case _: b = a
        b["x"] = D
        y = a["x"] * 1
    """,
    "one in another, changed by its own name": """
        a = {"x": {"y": S}}
        b = a["x"]
        if S.sum() > 3: b["y"] = H
        a["x"]["y"] = D
        y = b["y"] * 1
    """,
    "one in another, changed by the way through it": """
        a = {"x": {"y": S}}
        b = a["x"]
        if S.sum() > 3: b["y"] = H
        b["y"] = D
        y = a["x"]["y"] * 1
    """,
    "a default behind `or`": """
        def run(opts=None):
            opts = opts or {"x": S}
            opts["x"] = D
        a = {"x": S}
        run(a)
        y = a["x"] * 1
    """,
    "what a list lets go of": """
        a = {"x": {"y": S}}
        l = [a]
        b = l.pop()
        b["x"] = {"y": D}
        y = a["x"]["y"] * 1
    """,
    "what a function picks": """
        def pick(a, b, c):
            if c: return a
            return b
        a, b = {"x": S}, {"x": S}
        c = pick(a, b, S.sum() > 3)
        c["x"] = D
        y = b["x"] * 1
        y = a["x"] * 1
    """,
    "what a method gives of its object": """
        class C:
            def __init__(self): self.d = {"x": S}
            def get(self): return self.d
        c = C()
        c.get()["x"] = D
        y = c.d["x"] * 1
        d = c.get()
        d["x"] = H
        y = c.d["x"] * 1
    """,
    "a state that is handed on and given back": """
        def step(state, batch):
            state["loss"] = batch
            return state
        state = {"loss": S}
        for b in [H, D]:
            state = step(state, b)
        y = state["loss"] * 1
    """,
    "a state that somebody else keeps": """
        def step(state, batch):
            state["loss"] = batch
            return state
        state = {"loss": S}
        keep = state
        for b in range(3):
            state = step(state, D)
        y = keep["loss"] * 1
    """,
    "names that are exchanged": """
        a, b = {"x": S}, {"x": H}
        a, b = b, a
        a["x"] = D
        y = b["x"] * 1
        y = a["x"] * 1
    """,
    "a path that ends in an exception": """
        a = {"x": S}; b = a
        try:
            a["x"] = H
            1/0
            a["x"] = S
        except ZeroDivisionError:
            b["x"] = D
        y = a["x"] * 1
    """,
    "a dict in a tuple that is taken apart": """
        a = {"x": S}
        t = (a, 1)
        t[0]["x"] = D
        y = a["x"] * 1
        u, v = t
        u["x"] = H
        y = a["x"] * 1
    """,
    "dicts in a dict": """
        ds = {"a": {"x": S}, "b": {"x": S}}
        for d in ds.values():
            d["x"] = D
        y = ds["a"]["x"] * 1
        for k, d in ds.items():
            d["x"] = H
        y = ds["b"]["x"] * 1
    """,
    "a turn of a loop that changes it": """
        a = {"x": S}
        b = a
        n = 0
        while n < 3:
            n += 1
            if n == 2:
                b["x"] = D
        y = a["x"] * 1
    """,
    "dicts that a loop goes over, beside others": """
        ds = [{"x": S}, {"x": S}]
        for d, t in zip(ds, [H, D]):
            d["x"] = t
        y = ds[1]["x"] * 1
        y = ds[0]["x"] * 1
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_one_name_changes_the_others(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[name]))
    assert not contradicted(path)
