"""Programs that run, and that no claim may contradict.

Most of them were contradicted once. Those under `BENDS` break an assumption of inference (docs/assumptions.md), and are
contradicted for that.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.infer.ran import contradicted

HEAD = """\
import copy, math
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
S = torch.zeros(2)
H = S.half()
D = S.double()
"""
TAIL = """
if __name__ == "__main__":
    print()
"""

PROGRAMS = {
    "weights in an object": """
        class T:
            def __init__(self, model):
                self.params = list(model.parameters())
                self.d = {"w": model.weight}
        model = nn.Linear(2, 2)
        tr = T(model)
        model.half()
        for p in tr.params:
            y = p.sum()
        y = tr.d["w"] * 1
    """,
    "weights in a dict and in parameter groups": """
        model = nn.Linear(2, 2)
        named = {n: p for n, p in model.named_parameters()}
        groups = [{"params": [model.weight], "lr": 0.1}]
        model.double()
        for n, p in named.items():
            y = p.sum()
        for g in groups:
            for p in g["params"]:
                y = p.sum()
    """,
    "weights in a caller of what casts": """
        def to_half(m):
            m.half()
        def main():
            model = nn.Linear(2, 2)
            params = list(model.parameters())
            w = model.weight
            to_half(model)
            for p in params:
                y = p.sum()
            y = w * 1
        main()
    """,
    "weights in a global": """
        def penalty():
            return sum(p.pow(2).sum() for p in params)
        model = nn.Linear(2, 2)
        params = list(model.parameters())
        model.double()
        y = penalty() * 1
    """,
    "weights in a closure, a partial and a default": """
        from functools import partial
        def make(layer):
            w = layer.weight
            return lambda x: x @ w.t()
        layer = nn.Linear(2, 2)
        f = make(layer)
        def mm(w, x): return x @ w
        g = partial(mm, layer.weight)
        def dd(x, w=layer.weight): return x @ w
        layer.double()
        x = torch.ones(1, 2).double()
        y = f(x) * 1
        y = g(x) * 1
        y = dd(x) * 1
    """,
    "weights, or None": """
        model = nn.Linear(2, 2)
        w = model.weight if torch.rand(()) < 2 else None
        model.half()
        y = w.sum() * 1
    """,
    "buffers that are assigned again": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ema", torch.zeros(2))
                self.register_buffer("steps", torch.tensor(0.0))
                self.register_buffer("late", None)
            def forward(self, x):
                self.ema = 0.9 * self.ema + 0.1 * x
                self.steps += 1
                self.late = x * 2
        net = Net()
        net(torch.ones(2))
        net.half()
        y = net.ema + 1
        y = net.steps * 1
        y = net.late * 1
        bn = nn.BatchNorm1d(2)
        bn.running_mean = torch.zeros(2)
        bn.half()
        y = bn.running_mean * 1
    """,
    "a class decorator that registers": """
        REG = {}
        def register(cls):
            REG[cls.__name__] = cls
            return cls
        def named(n):
            def deco(cls):
                REG[n] = cls
                return cls
            return deco
        @register
        class Scale:
            def __call__(self, x):
                return x * 2
        @named("s")
        class Other:
            def __call__(self, x):
                return x * 3
        op = REG["Scale"]()
        if __name__ == "__main__":
            y = op(torch.ones(2).double())
            y = Scale()(torch.ones(2))
            y = REG["s"]()(torch.ones(2).double())
            y = Other()(torch.ones(2))
            for k in REG:
                y = REG[k]()(torch.ones(2).half())
    """,
    "a base that registers its subclasses": """
        class Base:
            registry = {}
            def __init_subclass__(cls, **kw):
                super().__init_subclass__(**kw)
                Base.registry[cls.__name__] = cls
        class Scale(Base):
            def __call__(self, x):
                return x * 2
        op = Base.registry["Scale"]()
        if __name__ == "__main__":
            y = op(torch.ones(2).double())
            y = Scale()(torch.ones(2))
    """,
    "a dict that an object and its caller have": """
        class Batch:
            def __init__(self, data, frames):
                self.data = data
                self.frames = frames
            def double(self):
                for k in self.data:
                    self.data[k] = self.data[k].double()
                self.frames[0] = torch.ones(2).double()
        raw = {"x": torch.ones(2)}
        fr = [torch.ones(2)]
        Batch(raw, fr).double()
        y = raw["x"] + 1
        y = fr[0] + 1
        r2 = {"x": torch.ones(2)}
        b2 = Batch(r2, fr)
        r2["x"] = torch.ones(2).half()
        y = b2.data["x"] * 1
    """,
    "a module in a plain list": """
        class Distill(nn.Module):
            def __init__(self, student, teacher):
                super().__init__()
                self.student = student
                self.teacher = [teacher]
        d = Distill(nn.Linear(2, 2), nn.Linear(2, 2))
        d.half()
        y = d.teacher[0].weight + 1
        y = d.student.weight * 1
    """,
    "what is computed of weights": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(2, 2)
                self.register_buffer("table", torch.ones(4))
                self.head = self.table[:2]
                self.wt = self.l.weight.T
                self.same = self.table
                self.raw = self.l.weight.data
                self.fl = self.l.weight.float()
                self.tied = self.l.weight
                self.bb = nn.Buffer(torch.ones(2))
        net = Net()
        net.half()
        y = net.head + 1
        y = net.wt + 1
        y = net.same + 1
        y = net.raw + 1
        y = net.fl * 1
        y = net.tied * 1
        y = net.bb * 1
        y = net.table * 1
    """,
    "a cached property": """
        from functools import cached_property
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(2, 2)
            @cached_property
            def table(self):
                return self.l.weight.detach() * 2
        net = Net()
        net.table
        net.half()
        y = net.table + 1
    """,
    "a cached function": """
        from functools import lru_cache
        @lru_cache(maxsize=None)
        def mask(n):
            return torch.ones(n, n).tril()
        y = mask(3) + 1
        torch.set_default_dtype(torch.float64)
        y = mask(3) + 1
    """,
    "modules that are taken out": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.b = nn.Linear(2, 2)
        net = Net()
        old = net.fc
        net.fc = nn.Linear(2, 3)
        b = net.b
        del net.b
        seq = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        s0 = seq[0]
        seq[0] = nn.Linear(2, 2)
        ml = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        m0 = ml[0]
        del ml[0]
        m1 = ml.pop(0)
        net.half(); seq.half(); ml.half()
        y = old.weight + 1
        y = b.weight + 1
        y = s0.weight + 1
        y = m0.weight + 1
        y = m1.weight + 1
        y = net.fc.weight * 1
    """,
    "vectors made into parameters": """
        from torch.nn.utils import parameters_to_vector, vector_to_parameters
        model = nn.Linear(2, 2)
        vec = parameters_to_vector(model.parameters())
        vector_to_parameters(vec.double(), model.parameters())
        y = model.weight + 1
    """,
    "load_state_dict told to assign by position": """
        m = nn.Linear(2, 2)
        sd = {k: v.double() for k, v in m.state_dict().items()}
        m.load_state_dict(sd, True, True)
        y = m.weight + 1
    """,
    "apply of a partial": """
        import functools
        def cv(m, dt):
            if isinstance(m, nn.Linear): m.to(dt)
        n = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        n.apply(functools.partial(cv, dt=torch.half))
        print(n[0].weight)
    """,
    "two modules of a comprehension": """
        ls = [nn.Linear(2, 2) for _ in range(2)]
        ls[0].half()
        print(ls[0].weight, ls[1].weight)
    """,
    "complex buffers": """
        class A(nn.Module):
            def __init__(self):
                super().__init__(); self.register_buffer("c", torch.zeros(3, dtype=torch.complex64)); self.w = nn.Parameter(torch.zeros(3))
        a = A().half(); print(a.c, a.c.real)
        a.float(); print(a.c * a.w)
    """,
    "a mode that is assigned": """
        class N(nn.Module):
            def forward(self, x):
                return x.half() if self.training else x
        n = N()
        n.eval()
        print(n(torch.zeros(1, 2)))
        n.training = True
    """,
    "a cast in a comprehension": """
        m = nn.Linear(2, 2); w = m.weight
        [k.half() for k in [m]]
        print(w)
    """,
    "modules that a function gives other data": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.c = nn.Linear(2, 2); self.mha = nn.MultiheadAttention(2, 1)
        def conv(m):
            if isinstance(m, nn.Linear): m.weight.data = m.weight.data.half()
        n = Net()
        for q in n.modules(): conv(q)
        print(n.c.weight)
    """,
    "modules in reverse": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.c = nn.Linear(2, 2)
        def conv(m):
            if isinstance(m, nn.Linear): m.weight.data = m.weight.data.half()
        n = Net()
        for q in reversed(list(n.modules())): conv(q)
        print(n.c.weight)
    """,
    "batches of mixed numbers": """
        import torch.utils.data as D
        for y in D.DataLoader([0, 0.5, 1, 0.5], batch_size=2): print(y)
    """,
    "items of a tensor dataset": """
        import torch.utils.data as D
        ds = D.TensorDataset(torch.zeros(4, 2), torch.zeros(4, dtype=torch.float64))
        x, y = ds[0]
        print(x * y)
        for x, y in ds: print(x + y)
    """,
    "a dataset that gives many items": """
        import torch.utils.data as D
        class DS(D.Dataset):
            def __len__(self): return 4
            def __getitem__(self, i): return torch.zeros(2), 1
            def __getitems__(self, idx): return [(torch.zeros(2).double(), 1.0) for _ in idx]
        for a, b in D.DataLoader(DS(), 2): print(a, b)
    """,
    "a layer that is given a number": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.log_t = nn.Parameter(torch.tensor(0.0, dtype=torch.float64))
                self.act = nn.Softplus()
            def forward(self, x): return x * self.act(self.log_t)
        print(Net()(torch.zeros(2)))
    """,
    "a pruned weight": """
        import torch.nn.utils.prune as prune
        z = nn.Linear(4, 4)
        prune.l1_unstructured(z, "weight", 0.5)
        z.half()
        print(z.weight, z.weight_orig, z.weight_mask)
    """,
    "swapped weights": """
        m = nn.Linear(4, 4)
        o = nn.Linear(4, 4).double()
        torch.utils.swap_tensors(m.weight, o.weight)
        print(m.weight, o.weight, m.bias)
    """,
    "data that is given twice": """
        class H:
            def __init__(self, t): self.t = t
        x = torch.zeros(2); h = H(x)
        x.data = x.data.double()
        x.data = x.data.half()
        print(h.t)
    """,
    "data of a global": """
        x = torch.zeros(2); y = x; z = [x]; w = {"a": x}
        x.data = x.data.double()
        print(x, y, z[0], w["a"])
        def f(t): t.data = t.data.half()
        f(x); print(x, y, z[0])
        x.set_(torch.zeros(2)) if False else 0
    """,
    "an attribute of the type of an object": """
        class A:
            s = torch.zeros(2)
        b = A()
        type(b).s = torch.zeros(2).half()
        print(A.s, b.s)
    """,
    "plus True": """
        y = torch.full((2,), +True)
    """,
    "a global that a function binds": """
        dt = torch.float32
        def use_half():
            global dt
            dt = torch.float16
        use_half()
        y = torch.zeros(2, dtype=dt) * 1
    """,
    "a dict that a module fills, twice": """
        class M(nn.Module):
            def forward(self, x, cache):
                cache["k"] = x.half()
                return x
        m = M()
        a = {"k": S}
        m(S, a)
        b = {"k": S}
        m(S, b)
        y = b["k"] * 1
    """,
    "a loop over a list that it adds to": """
        queue = [S]
        for t in queue:
            y = t * 1
            if t.dtype == torch.float32:
                queue.append(t.half())
    """,
    "members of an enumeration are not their values": """
        import enum
        class P(enum.Enum):
            A = "fp16"
        y = H if P.A == "fp16" else S
        y = y * 1
    """,
    "numbers that are equal": """
        w = 1 if torch.rand(()) > 2 else 1.0
        y = torch.full((2,), w) * 1
    """,
    "an attribute of a class that is assigned": """
        class Flags:
            half = False
        def conv(x):
            return x.half() if Flags.half else x
        Flags.half = True
        def other(o):
            o.half = 1
        y = conv(S) * 1
    """,
    "a comprehension that changes a list": """
        xs = [S]
        [xs.insert(0, t) for t in (H, H)]
        y = xs[0] * 1
    """,
    "code that is run by its text": """
        import os
        dtype = torch.float32
        exec(open(os.devnull).read() + "dtype = torch.float16")
        y = torch.zeros(2, dtype=dtype) * 1
    """,
    "a base that changes its subclasses": """
        class Base:
            dt = torch.float32
            def __init_subclass__(cls, **kw):
                cls.dt = torch.float16
        class A(Base):
            pass
        y = torch.zeros(2, dtype=A.dt) * 1
    """,
    "an attribute that a subclass gets later": """
        class A:
            x = S
        class B(A):
            pass
        y = B.x * 1
        B.x = H
    """,
    "a copy of a dict of lists": """
        d = {"a": [S]}
        e = d.copy()
        d["a"][0] = H
        y = e["a"][0] * 1
    """,
    "functions that a loop defines": """
        fs = []
        for t in (S, H):
            def f(x=t):
                return x * 1
            fs.append(f)
        y = fs[0]() * 1
    """,
    "a dict that is handed on by stars, twice": """
        def log(fn):
            def w(*a, **k):
                return fn(*a, **k)
            return w
        @log
        def add(d):
            d["x"] = H
        a = {"x": S}
        add(a)
        b = {"x": S}
        add(b)
        y = b["x"] * 1
    """,
    "a dict that is given back, twice": """
        def norm(d):
            return d
        a = {"x": S}
        norm(a)
        b = {"x": S}
        c = norm(b)
        c["x"] = H
        y = b["x"] * 1
    """,
    "an operator that keeps an object": """
        class Scale:
            def __call__(self, x):
                return x * 2
        class Chain:
            def __init__(self):
                self.steps = []
            def __iadd__(self, step):
                self.steps.append(step)
                return self
            def __iter__(self):
                return iter(self.steps)
        chain = Chain()
        chain += Scale()
        for step in chain:
            step(torch.ones(2).double())
        y = Scale()(torch.ones(2))
    """,
    "special methods that change attributes": """
        class Loader:
            def __iter__(self):
                for _ in range(2):
                    self.last = torch.ones(2).half()
                    yield 1
        loader = Loader()
        loader.last = torch.ones(2)
        for _ in loader:
            y = loader.last + 1
        class Log:
            def __lshift__(self, t): self.last = t
        log = Log()
        log.last = torch.ones(2)
        log << torch.ones(2).half()
        y = log.last * 1
    """,
    "an operator in place that two names see": """
        class Acc:
            def __init__(self):
                self.t = S
            def __iadd__(self, o):
                self.t = H
                return self
        a = Acc()
        b = a
        b += 1
        y = a.t * 1
    """,
    "a stack of contexts": """
        import contextlib
        class Ctx:
            def __enter__(self):
                self.t = H
            def __exit__(self, *e):
                pass
        c = Ctx()
        c.t = S
        with contextlib.ExitStack() as st:
            st.enter_context(c)
            y = c.t * 1
    """,
    "a dict whose attributes are its items": """
        class AttrDict(dict):
            def __getattr__(self, name):
                return self[name]
            def __setattr__(self, name, value):
                self[name] = value
        cfg = AttrDict()
        cfg.dtype = torch.float16
        cfg["dtype"] = torch.float64
        y = torch.ones(2, dtype=cfg.dtype) + 1
    """,
    "descriptors, and properties that are called": """
        class Box:
            def get(self):
                return self._x.half()
            def put(self, v):
                self._x = v
            x = property(get, put)
        b = Box()
        b.x = torch.ones(2)
        y = b.x + 1
        class Desc:
            def __get__(s, o, t): return torch.ones(2).double()
            def __set__(s, o, v): pass
        class HD:
            x = Desc()
            def __init__(s): s.x = torch.ones(2)
        hd = HD()
        y = hd.x * 1
        hd.x = torch.ones(2)
        y = hd.x * 1
    """,
    "vars of an object with two names": """
        class Obj: pass
        a = Obj()
        b = a
        a.x = torch.ones(2)
        vars(b)["x"] = torch.ones(2).half()
        y = a.x + 1
    """,
    "an attribute that is looked up until it is assigned": """
        class Dl:
            def __init__(self, o):
                self.o = o
            def __getattr__(self, n):
                return getattr(self.o, n)
        class C:
            def __init__(self):
                self.t = D
        dl = Dl(C())
        y = dl.t * 1
        dl.t = S
    """,
    "a class that converts what it is given": """
        class C:
            def __setattr__(self, k, v):
                object.__setattr__(self, k, v.half())
        c = C()
        c.x = S
        y = c.x * 1
    """,
    "setters of a class that is made twice": """
        def mk(dt):
            class C:
                @property
                def p(self):
                    return self.v
                @p.setter
                def p(self, v):
                    self.v = v.to(dt)
            return C
        A = mk(torch.float32)
        B = mk(torch.float16)
        a = A()
        a.p = D
        y = a.v * 1
    """,
    "a property that is not there": """
        class P:
            @property
            def x(self):
                raise AttributeError
        y = H if hasattr(P(), "x") else D
        y = y * 1
    """,
    "a method that is another from now on": """
        class A:
            def f(self):
                return S
        a = A()
        vars(a)["f"] = lambda: H
        y = a.f() * 1
    """,
    "a dict of a class that a subclass changes": """
        class A:
            table = {"x": S}
        class B(A):
            pass
        b = B()
        b.table["x"] = H
        B.table["x"] = D
        y = A.table["x"] * 1
    """,
    "callbacks that are handed the state": """
        class State: pass
        class Events:
            def __init__(self):
                self.handlers = {}
            def on(self, event, fn):
                self.handlers.setdefault(event, []).append(fn)
            def fire(self, event, state):
                for fn in self.handlers.get(event, []):
                    fn(state)
        def lower(state):
            state.loss = state.loss.half()
        def lowerd(state):
            state["loss"] = state["loss"].half()
        events, state = Events(), State()
        events.on("end", lower)
        events.on("d", lowerd)
        state.loss = torch.ones(2)
        events.fire("end", state)
        y = state.loss + 1
        d = {"loss": torch.ones(2)}
        events.fire("d", d)
        y = d["loss"] * 1
    """,
    "a decorator that is a method of a list": """
        CALLBACKS = []
        @CALLBACKS.append
        def lower(batch):
            batch["x"] = batch["x"].half()
        batch = {"x": torch.ones(2)}
        for fn in CALLBACKS:
            fn(batch)
        y = batch["x"] + 1
    """,
    "threads and map that fill a dict": """
        import threading
        def work(job):
            job["x"] = job["x"].double()
        job = {"x": torch.ones(2)}
        t = threading.Thread(target=work, args=(job,))
        t.start(); t.join()
        y = job["x"] + 1
        j2 = {"x": torch.ones(2)}
        list(map(work, [j2]))
        y = j2["x"] + 1
    """,
    "an attribute of a function": """
        def run():
            run.total = torch.zeros(2)
            add(torch.ones(2).double())
            return run.total + 1
        def add(x):
            run.total = run.total + x
        y = run() * 1
    """,
    "functions that change a list or dict": """
        import random, heapq
        xs = [torch.ones(2), torch.ones(2).half()]
        random.seed(1); random.shuffle(xs)
        y = xs[0] + 1
        k = [torch.ones(2)]
        k.__setitem__(0, torch.ones(2).half())
        y = k[0] * 1
        d = {"a": torch.ones(2)}
        dict.__setitem__(d, "a", torch.ones(2).half())
        y = d["a"] * 1
        import operator
        operator.setitem(d, "a", torch.ones(2).double())
        y = d["a"] * 1
    """,
    "one of two dicts": """
        a, b = {"x": S}, {"x": S}
        c = a if len(S) > 5 else b
        c["x"] = H
        y = b["x"] * 1
    """,
    "a walrus in any": """
        if any((hit := t).dtype == torch.half for t in (S, H, D)):
            y = hit * 1
    """,
    "the order of a dict that two paths fill": """
        if S.sum() > 1:
            d = {"a": S, "b": H}
        else:
            d = {"b": H, "a": S}
        y = list(d.values())[0] * 1
    """,
    "names that are private to a class": """
        class A:
            __x = S
            def get(self):
                return self.__x * 1
        class B(A):
            __x = H
        y = B().get() * 1
    """,
    "a global dict that is bound anew between two calls": """
        d = {"x": S}
        def setx():
            d["x"] = H
        setx()
        d = {"x": S}
        setx()
        y = d["x"] * 1
    """,
    "hooks that fill a dict": """
        w = torch.ones(2, requires_grad=True)
        stats = {"grad": torch.zeros(2)}
        lst = [torch.zeros(2)]
        def hook(g):
            stats["grad"] = stats["grad"] + g.double()
            lst[0] = g.double()
        w.register_hook(hook)
        w.sum().backward()
        y = stats["grad"] + 1
        y = lst[0] * 1
        def inside():
            st = {"grad": torch.zeros(2)}
            def hook(g):
                st["grad"] = st["grad"] + g.double()
            w.register_hook(hook)
            w.sum().backward()
            return st["grad"] * 1
        y = inside()
    """,
    "generators that are run later": """
        w = torch.ones(2)
        scaled = (x * w for x in [torch.ones(2)])
        w = w.double()
        for s in scaled:
            y = s + 1
        model = nn.Linear(2, 2)
        ps = (p.norm() for p in model.parameters())
        model.double()
        for p in ps:
            y = p * 1
    """,
    "a generator that yields inside autocast": """
        def batches():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                for _ in range(2):
                    yield torch.ones(2, 2)
        model = nn.Linear(2, 2)
        for x in batches():
            y = model(x) + 1
    """,
    "a generator that looks at what its consumer changes": """
        def loader(opt):
            for i in range(2):
                yield torch.zeros(2, dtype=opt["dt"])
        opt = {"dt": torch.float32}
        for i, x in enumerate(loader(opt)):
            y = x * 1
            opt["dt"] = torch.float16
    """,
    "a context that casts a module": """
        import contextlib
        @contextlib.contextmanager
        def in_half(m):
            m.half()
            yield m
            m.float()
        m = nn.Linear(2, 2)
        with in_half(m):
            y = m.weight * 1
    """,
    "a context of the program that swallows": """
        class Quiet:
            def __enter__(self):
                return self
            def __exit__(self, *e):
                return True
        x = S
        with Quiet():
            x = H
            1 / 0
            x = D
        y = x * 1
    """,
    "a layer of torch that is patched": """
        forward = nn.Linear.forward
        nn.Linear.forward = lambda self, x: forward(self, x).double()
        y = nn.Linear(2, 2)(torch.ones(1, 2)) + 1
        nn.Linear.forward = forward
    """,
    "a module that casts by itself": """
        class M(nn.Module):
            def __init__(self):
                super().__init__(); self.w = nn.Parameter(torch.zeros(2)); self.t = torch.zeros(2)
            def _apply(self, fn, recurse=True):
                super()._apply(fn, recurse)
                self.t = fn(self.t)
                return self
        m = M().half(); print(m.t)
    """,
    "a gradient under a name": """
        m = nn.Linear(2, 2)
        m(torch.zeros(1, 2)).sum().backward()
        g = m.weight.grad
        m.half()
        print(g)
    """,
    "a gradient of a parameter with other data": """
        p = nn.Parameter(torch.zeros(2))
        (p * 2).sum().backward()
        p.data = p.data.double()
        print(p.grad)
    """,
    "extra state that is loaded": """
        class Q(nn.Module):
            def __init__(self):
                super().__init__(); self.w = nn.Parameter(torch.zeros(2)); self.es = torch.zeros(1)
            def get_extra_state(self): return {"es": self.es.half()}
            def set_extra_state(self, s): self.es = s["es"]
        q = Q(); q.load_state_dict(q.state_dict()); print(q.es)
    """,
    "data set by its name": """
        import torch, torch.nn as nn
        def make(): return nn.Sequential(nn.Dropout(0.1))
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.c = nn.Linear(2, 2)
                self.x = nn.MultiheadAttention(2, 1)
        def conv(m):
            if isinstance(m, nn.Linear): m.weight.data = m.weight.data.half(); m.bias.data = m.bias.data.half()
        n = Net()
        w = n.c.weight
        for p in n.parameters():
            with torch.no_grad(): p.set_(p.detach().half()) if False else p.__setattr__('data', p.data.half())
        print(n.c.weight)
        print(w)
    """,
    "a parameter that becomes a buffer": """
        class M(nn.Module):
            def __init__(self):
                super().__init__(); self.w = nn.Parameter(torch.zeros(2))
        m = M()
        delattr(m, "w"); m.register_buffer("w", torch.zeros(2, dtype=torch.float64))
        m.half()
        print(m.w)
    """,
    "a random number without dimensions": """
        r = torch.randint(0, 2, (), dtype=torch.float64) * torch.zeros(2)
        print(r)
    """,
    "the norm of no gradients": """
        weight = nn.Parameter(torch.ones(2, 2).double())
        norm = torch.nn.utils.clip_grad_norm_([weight], 1.0)
        y = norm * 1
    """,
    "a mode that changes ops": """
        class T(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                r = super().__torch_function__(func, types, args, kwargs or {})
                return r
        t = torch.zeros(2).as_subclass(T)
        print(t + 1, t.double(), T([1, 2]), torch.Tensor._make_subclass(T, torch.zeros(2).half()))
        from torch.overrides import TorchFunctionMode
        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                kwargs = kwargs or {}
                if func is torch.ones: kwargs["dtype"] = torch.float64
                return func(*args, **kwargs)
        with Mode(): print(torch.ones(2))
    """,
    "objects that share their attributes": """
        class Cfg:
            _shared = {}
            def __init__(self):
                self.__dict__ = self._shared
        a = Cfg()
        a.t = S
        b = Cfg()
        b.t = H
        y = a.t * 1
    """,
    "apply to a module of which a part is not followed": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__(); self.c = nn.Linear(2, 2); self.mha = nn.MultiheadAttention(2, 1)
        def conv(m):
            if isinstance(m, nn.Linear): m.weight.data = m.weight.data.half()
        n = Net()
        n.apply(conv)
        print(n.c.weight)
    """,
    "a module that loads by itself": """
        class M(nn.Module):
            def __init__(self):
                super().__init__(); self.w = nn.Parameter(torch.zeros(2))
            def _load_from_state_dict(self, sd, prefix, *a):
                self.w = nn.Parameter(sd[prefix + "w"].clone())
        m = M(); m.load_state_dict({"w": torch.zeros(2).double()}); print(m.w)
    """,
    "a parameter that two modules hold": """
        class Dec(nn.Module):
            def __init__(self, w):
                super().__init__(); self.weight = w; self.bias = nn.Parameter(torch.zeros(3))
            def forward(self, h): return h @ self.weight.t() + self.bias
        class LM(nn.Module):
            def __init__(self):
                super().__init__(); self.emb = nn.Embedding(3, 2); self.dec = Dec(self.emb.weight)
        lm = LM(); lm.emb.half(); print(lm.dec.weight); lm.half(); print(lm(torch.zeros(1)) if 0 else lm.dec.weight)
    """,
    "two objects of one factory, with a list each": """
        class Opt:
            def __init__(self, groups):
                self.groups = groups
            def step(self):
                for g in self.groups:
                    g["t"] = g["t"].half()
        def mk(g):
            return Opt(g)
        g1 = [{"t": S}]
        o1 = mk(g1)
        o1.step()
        g2 = [{"t": S}]
        o2 = mk(g2)
        o2.step()
        y = g2[0]["t"] * 1
    """,
    "a closure that an object keeps": """
        class Ev:
            def fire(self):
                return self.cb()
        def outer():
            e = Ev()
            t = S
            def cb():
                return t * 1
            e.cb = cb
            y = e.fire() * 1
            t = H
            return e.fire() * 1
        y = outer() * 1
    """,
    "an object of another class from now on": """
        class A:
            def f(self): return S
        class B:
            def f(self): return D
        a = A()
        a.__class__ = B
        y = a.f() * 1
    """,
    "a comprehension in the body of a class": """
        x = S
        class A:
            x = D
            ys = [x * 1 for _ in range(2)]
            z = x * 1
        y = A.ys[0] * 1
        y = A.z * 1
    """,
    "a function with other defaults": """
        def f(x=S): return x * 1
        y = f()
        f.__defaults__ = (D,)
        y = f()
    """,
    "a global that is set by its name": """
        import sys
        t = S
        setattr(sys.modules[__name__], "t", D) if __name__ != "__main__" else globals().__setitem__("t", D)
        y = t * 1
    """,
    "a set that is changed in place": """
        s = {"a", "b"}
        s.intersection_update({"b"})
        y = (S if "a" in s else D) * 1
        s |= {"a"}
        y = (H if "a" in s else D) * 1
    """,
    "a finally that several returns go through": """
        def f(k):
            r = S
            try:
                if k: raise ValueError
                r = H
            except ValueError:
                r = D
                return r * 1
            else:
                r = r.int()
            finally:
                q = r * 1
            return r * 1
        y = f(True); y = f(False)
    """,
    "subclasses that are asked for": """
        class Base:
            def run(self): return S
        class A(Base):
            def run(self): return D
        class B(Base):
            def run(self): return H
        for c in Base.__subclasses__():
            y = c().run() * 1
    """,
    "members of an enumeration that make something": """
        from enum import Enum
        class P(Enum):
            A = 1
            B = 2
            def make(self):
                return S if self is P.A else D
        for p in P:
            y = p.make() * 1
        y = P(2).make() * 1
        y = P["B"].make() * 1
    """,
    "copies of an object": """
        import copy
        class C:
            def __init__(self): self.d = {"x": S}; self.t = S
        a = C()
        b = copy.copy(a)
        b.d["x"] = D
        b.t = H
        y = a.d["x"] * 1
        y = a.t * 1
        c = copy.deepcopy(a)
        c.d["x"] = H
        y = a.d["x"] * 1
    """,
    "tasks that change what they share": """
        import asyncio
        class St: pass
        st = St(); st.t = S
        async def w(): st.t = D; return H
        async def main():
            y = st.t * 1
            r = await asyncio.gather(w(), w())
            y = st.t * 1
            y = r[0] * 1
        asyncio.run(main())
        y = st.t * 1
    """,
    "a dict that remembers results": """
        cache = {}
        def get(k):
            if k not in cache:
                cache[k] = S if k == "a" else D
            return cache[k] * 1
        y = get("a"); y = get("b"); y = get("a")
    """,
    "a closure that adds up": """
        def counter():
            acc = S
            def add(x):
                nonlocal acc
                acc = acc + x
                return acc * 1
            return add
        a = counter()
        y = a(S); y = a(D); y = a(S)
    """,
    "a metaclass that makes objects": """
        class Meta(type):
            def __call__(cls, *a, **k):
                o = super().__call__(*a, **k)
                o.t = o.t.double()
                return o
        class A(metaclass=Meta):
            def __init__(self): self.t = S
        y = A().t * 1
    """,
    "a property that converts": """
        class A:
            def __init__(self): self._t = S
            @property
            def t(self): return self._t
            @t.setter
            def t(self, v): self._t = v.double()
        a = A()
        y = a.t * 1
        a.t = H
        y = a.t * 1
    """,
    "dicts in a list, by an index of a loop": """
        class D2(dict): pass
        d = D2(x=S)
        for k in d: d[k] = d[k].double()
        y = d["x"] * 1
        b = [{"x": S}]
        for i in range(len(b)): b[i]["x"] = b[i]["x"].half()
        y = b[0]["x"] * 1
    """,
    "a cache of an object, layer by layer": """
        class KV:
            def __init__(self): self.kv = [[S, H], [S, H]]
            def cast(self):
                for i in range(len(self.kv)): self.kv[i][0] = self.kv[i][0].double()
        c = KV()
        c.cast()
        y = c.kv[0][0] * 1
    """,
    "lists in a list that change by their methods": """
        class O: pass
        b = [{"x": S}, {"x": D}]
        for i in range(2): b[i].update(x=H)
        y = b[0]["x"] * 1
        b2 = [{"x": S}, {"x": D}]
        for i in range(2): b2[i]["x"] += D
        y = b2[0]["x"] * 1
        b3 = [[S], [S]]
        for i in range(2): b3[i].insert(0, D)
        y = b3[0][0] * 1
        b4 = [[S], [S]]
        for i in range(2): b4[i][:] = [H]
        y = b4[0][0] * 1
        b5 = [[S], [S]]
        for i in range(2): b5[i] = [H]
        y = b5[0][0] * 1
    """,
    "a global that is made when it is asked for": """
        cache = None
        def get():
            global cache
            if cache is None:
                cache = D
            return cache
        y = get() * 1
        cache = H
        y = get() * 1
    """,
    "a buffer that is made when it is asked for": """
        DEVICE = None
        _buf = None
        def get_buf():
            global _buf
            if _buf is None:
                _buf = torch.zeros(2)
            return _buf
        def to_half():
            global _buf
            _buf = get_buf().half()
        y = get_buf() * 1
        to_half()
        y = get_buf() * 1
    """,
    "settings that a function makes once": """
        _CFG = None
        def cfg():
            global _CFG
            if _CFG is None: _CFG = {"dtype": torch.float32}
            return _CFG
        def zeros(): return torch.zeros(2, dtype=cfg()["dtype"])
        y = zeros() * 1
        cfg()["dtype"] = torch.float64
        y = zeros() * 1
    """,
    "a global dict that another takes the place of": """
        state = {"w": S}
        current = state
        def switch():
            global current
            current = {"w": D}
        def read():
            return current["w"]
        y = read() * 1
        switch()
        y = read() * 1
        y = current["w"] * 1
        y = state["w"] * 1
    """,
    "a closure over settings that change": """
        def make(cfg):
            def fwd(x): return x * cfg["scale"]
            return fwd
        cfg = {"scale": S}
        f = make(cfg)
        cfg["scale"] = D
        y = f(H) * 1
    """,
    "a closure over layers that are added": """
        def make(layers):
            def run(x):
                for l in layers: x = l(x)
                return x
            return run
        ls = [torch.Tensor.half]
        r = make(ls)
        ls.append(torch.Tensor.double)
        y = r(S) * 1
    """,
    "a getter and the dict that it looks at": """
        def make():
            d = {"x": S}
            def get(): return d["x"]
            return get, d
        get, d = make()
        d["x"] = H
        y = get() * 1
    """,
    "a partial with a dict that changes": """
        import functools
        I = torch.zeros(2, dtype=torch.int64)
        bufs = {"a": S}
        def get(d): return d["a"]
        p = functools.partial(get, bufs)
        bufs["a"] = D
        y = p() * 1
        q = lambda d=bufs: d["a"]
        bufs["a"] = H
        y = q() * 1
        r = bufs.get
        bufs["a"] = I
        y = r("a") * 1
        s = bufs.__getitem__
        y = s("a") * 1
        m = map(bufs.get, ["a"])
        bufs["a"] = D
        y = next(m) * 1
    """,
    "a generator expression over a dict that changes": """
        I = torch.zeros(2, dtype=torch.int64)
        def gen(xs):
            for x in xs: yield x
        l = [S]
        g = gen(l)
        l.append(D)
        y = list(g)[-1] * 1
        d = {"a": S}
        vals = (v for v in d.values())
        d["a"] = H
        y = next(vals) * 1
        def lazy(d):
            while True: yield d["a"]
        g = lazy(d)
        y = next(g) * 1
        d["a"] = I
        y = next(g) * 1
    """,
    "a cached result that is changed": """
        import functools
        @functools.lru_cache(maxsize=None)
        def buffers(n):
            return {"mask": S}
        b = buffers(2)
        b["mask"] = b["mask"].half()
        y = buffers(2)["mask"] * 1
    """,
    "cached results of a function and of a method": """
        import functools
        I = torch.zeros(2, dtype=torch.int64)
        @functools.lru_cache
        def get(k): return [S]
        a = get(1)
        a[0] = D
        y = get(1)[0] * 1
        get.cache_clear()
        y = get(1)[0] * 1
        class C:
            @functools.cached_property
            def d(self): return {"x": S}
            @functools.lru_cache(maxsize=None)
            def m(self, k): return {"x": S}
        c = C()
        c.d["x"] = D
        y = c.d["x"] * 1
        c.m(1)["x"] = H
        y = c.m(1)["x"] * 1
        del c.d
        y = c.d["x"] * 1
        c.d = {"x": I}
        y = c.d["x"] * 1
    """,
    "a property that gives another dict each time": """
        class C:
            @property
            def fresh(self): return {"x": S}
        c = C()
        c.fresh["x"] = D
        y = c.fresh["x"] * 1
    """,
    "setattr on a property": """
        I = torch.zeros(2, dtype=torch.int64)
        class Opt:
            def __init__(self): self._x = S
            @property
            def x(self): return self._x
            @x.setter
            def x(self, v): self._x = v.double()
        o = Opt()
        setattr(o, "x", I)
        y = o.x * 1
        for k, v in {"x": H}.items():
            setattr(o, k, v)
        y = o.x * 1
    """,
    "fields that a loop sets by their names": """
        from dataclasses import dataclass
        @dataclass
        class Cfg:
            dtype: torch.dtype = torch.float32
            def make(self): return torch.zeros(2, dtype=self.dtype)
        c = Cfg()
        y = Cfg(torch.int64).make() * 1
        for f_ in c.__dataclass_fields__: setattr(c, f_, getattr(Cfg(), f_))
        y = c.make() * 1
    """,
    "an object of which attributes are copied": """
        from dataclasses import dataclass
        @dataclass
        class Cfg:
            x: torch.Tensor = S
            def get(self): return self.x * 1
        c = Cfg()
        y = Cfg(D).get() * 1
        for f_ in c.__dataclass_fields__: setattr(c, f_, H)
        y = c.get() * 1
    """,
    "a registry of subclasses": """
        class C:
            def __init__(self, x): self.x = x
            def get(self): return self.x * 1
        class E(C): pass
        class F(C): pass
        y = E(D).get() * 1
        mods = {c.__name__: c for c in C.__subclasses__()}
        y = mods["F"](H).get() * 1
    """,
    "a mapping that fills itself": """
        from collections import UserDict
        class U(UserDict):
            def __setitem__(self, k, v): self.data[k] = v.half()
        u = U(x=S)
        y = u["x"] * 1
        u["z"] = D
        y = u["z"] * 1
    """,
    "the function behind a decorator": """
        import functools
        def cast_to(dtype):
            def deco(fn):
                @functools.wraps(fn)
                def inner(*args, **kwargs):
                    args = [a.to(dtype) if torch.is_tensor(a) else a for a in args]
                    return fn(*args, **kwargs)
                return inner
            return deco
        @cast_to(torch.float64)
        def f(x): return x * 1
        @cast_to(torch.float16)
        @cast_to(torch.float64)
        def g(x): return x * 1
        y = f(S) + 0
        y = g(S) + 0
        y = g.__wrapped__(S) + 0
        y = f.__wrapped__(H) + 0
    """,
    "a walrus that takes the last": """
        xs = [S, D, H]
        while (q := xs.pop()) is not None and xs:
            y = q * 1
        y = q * 1
    """,
    "weights that eval() casts": """
        class T(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(2))
            def train(self, mode=True):
                super().train(mode)
                self.to(torch.float32 if mode else torch.float16)
                return self
        t = T()
        t.eval()
        a = t.w
    """,
    "weights that the train() of a part casts": """
        class T(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(2, 2)
            def train(self, mode=True):
                super().train(mode)
                if mode: self.l.float()
                else: self.l.half()
                return self
            def forward(self, x): return self.l(x.to(self.l.weight.dtype))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.t = T()
            def forward(self, x): return self.t(x)
        n = Net()
        n.eval()
        a = n.t.l.weight
        b = n(torch.ones(1, 2))
        m = nn.ModuleList([T()])
        m.eval()
        c = m[0].l.weight
        k = T()
        k.eval()
        d = k.l.weight
    """,
    "weights that are cast to what is loaded": """
        class Mk(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(1, 1)
            def _load_from_state_dict(self, sd, prefix, *a, **k):
                w = sd.get(prefix + "fc.weight")
                if w is not None and w.dtype != self.fc.weight.dtype:
                    self.fc.to(w.dtype)
                super()._load_from_state_dict(sd, prefix, *a, **k)
            def forward(self, x): return self.fc(x.to(self.fc.weight.dtype))
        m = Mk()
        m.load_state_dict(Mk().half().state_dict())
        a = m.fc.weight
        b = m(torch.ones(1, 1))
    """,
    "an optimizer's step that a scaler runs": """
        class My(torch.optim.Optimizer):
            def __init__(self, params, lr=.1):
                super().__init__(params, dict(lr=lr))
                self.stats = torch.zeros(1)
            @torch.no_grad()
            def step(self, closure=None):
                for g in self.param_groups:
                    for p in g["params"]:
                        if p.grad is not None:
                            p.data = (p.data.double() - g["lr"] * p.grad.double())
                            p.grad = None
                self.stats = self.stats.half()
        l = nn.Linear(2, 1)
        o = My(l.parameters())
        sc = torch.amp.GradScaler("cpu", enabled=False)
        sc.scale(l(torch.ones(1, 2)).sum()).backward()
        sc.step(o)
        a = l.weight
        b = o.stats
    """,
    "a convolution of another kind": """
        class PartialConv(nn.Conv2d):
            def forward(self, x, mask=None):
                out = super().forward(x)
                return out * (mask if mask is not None else 1)
        class WS(nn.Conv2d):
            def _conv_forward(self, x, weight, bias):
                w = weight - weight.mean((1, 2, 3), keepdim=True)
                return F.conv2d(x.float(), w.float(), bias).half()
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.c = WS(1, 1, 1)
            def forward(self, x): return self.c(x)
        a = PartialConv(1, 1, 1)(torch.ones(1, 1, 1, 1), torch.ones(1).double().expand(1, 1, 1, 1))
        b = WS(1, 1, 1)(torch.ones(1, 1, 1, 1))
        c = Net()(torch.ones(1, 1, 1, 1))
        d = nn.Sequential(WS(1, 1, 1))(torch.ones(1, 1, 1, 1))
    """,
    "weights that a layer is reset to": """
        class L(nn.Linear):
            def reset_parameters(self):
                super().reset_parameters()
                self.weight.data = self.weight.data.half()
                self.bias = nn.Parameter(self.bias.double())
        l = L(2, 2)
        a = l.weight
        b = l.bias
        class E(nn.Embedding):
            def reset_parameters(self):
                nn.init.normal_(self.weight)
                self.double()
        e = E(2, 2)
        c = e.weight
        d = e(torch.tensor([0]))
        class LN(nn.LayerNorm):
            def reset_parameters(self):
                super().reset_parameters()
                self.register_buffer("s", torch.ones(2).half())
                self.weight.data = self.weight.data.bfloat16()
        n = LN(2)
        f = n.weight
        g = n.s
    """,
    "a transformer's layer with other norms": """
        l = nn.TransformerEncoderLayer(2, 1, 2, batch_first=True)
        class RMS(nn.Module):
            def __init__(self, d):
                super().__init__()
                self.w = nn.Parameter(torch.ones(d))
            def forward(self, x): return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)) * self.w.float()
        l.norm1 = RMS(2)
        l.norm2 = RMS(2)
        l.half()
        l.linear1.float()
        l.linear2.float()
        a = l(torch.ones(1, 1, 2).half())
        l2 = nn.TransformerEncoderLayer(2, 1, 2)
        for n, m in list(l2.named_children()):
            if isinstance(m, nn.LayerNorm):
                setattr(l2, n, RMS(2))
        l2.double()
        b = l2(torch.ones(1, 1, 2).double()) if False else l2.norm1(torch.ones(1, 1, 2).double())
    """,
    "a transformer's layer with other parts": """
        h = nn.TransformerEncoderLayer(2, 1, 2)
        class D(nn.Linear):
            def forward(self, x): return super().forward(x).double()
        h.linear2 = D(2, 2)
        h.norm2 = nn.LayerNorm(2).double()
        d = h(torch.ones(1, 1, 2))
    """,
    "data of an optimizer's groups": """
        w = torch.ones(2, requires_grad=True)
        opt = torch.optim.SGD([w], lr=.1)
        opt.param_groups[0]["params"][0].data = torch.ones(2).double()
        a = w * 1
    """,
    "an optimizer's own step over tensors": """
        z = torch.zeros(2, requires_grad=True)
        opt = torch.optim.Adam([z], lr=.1)
        class My(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})
            @torch.no_grad()
            def step(self, closure=None):
                for g in self.param_groups:
                    for p in g["params"]:
                        p.data = p.data.half()
        m = My([z])
        m.step()
        a = z * 1
        l = nn.Linear(2, 2)
        m = My(l.parameters())
        m.step()
        b = l.weight
        def helper(params):
            for p in params:
                p.data = p.data.double()
        helper(m.param_groups[0]["params"])
        c = l.weight
        y = torch.ones(2, requires_grad=True)
        helper([y])
        d = y * 1
        helper(iter((y,)))
        e = y * 1
    """,
    "data of tensors in a zip": """
        ts = [torch.ones(2), torch.ones(2)]
        for x, n in zip(ts, "ab"):
            x.data = x.data.bfloat16()
        b = ts[1] * 1
        c = ts[0] * 1
    """,
    "data of tensors that a module has in a list": """
        a = nn.Parameter(torch.ones(2)); b = nn.Parameter(torch.ones(2))
        ps = [a, b]
        src = [torch.ones(2).half(), torch.ones(2).half()]
        for i, p in enumerate(ps): p.data = src[i]
        c = b * 1
        q = nn.Linear(2, 2); r = nn.Linear(2, 2).half()
        for x, y in zip(q.parameters(), r.parameters()): x.data = y.data
        d = q.weight
        for i, x in enumerate(q.parameters()): x.data = x.data.double()
        e = q.weight
        for x in reversed(list(q.parameters())): x.data = x.data.float()
        f = q.weight
        for (n, x), y in zip(q.named_parameters(), r.parameters()): x.data = y.data
        g = q.bias
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.ps = nn.ParameterList([nn.Parameter(torch.ones(1)) for _ in range(2)])
                self.raw = [torch.ones(1), torch.ones(1)]
            def cast(self):
                for p, r in zip(self.ps, self.raw):
                    p.data = p.data.half()
                    r.data = r.data.half()
        m = M(); m.cast()
        h = m.ps[1]
        i = m.raw[1]
        j = m.raw[0]
        k = m.ps[0]
    """,
    "a module beside the others": """
        class M(nn.Module):
            def __init__(self, base):
                super().__init__()
                object.__setattr__(self, "base", base)
                self.head = nn.Linear(1, 1)
            def forward(self, x): return self.head(self.base(x).to(self.head.weight.dtype))
        b = nn.Linear(1, 1)
        m = M(b)
        m.half()
        y = b(torch.ones(1, 1))
        z = m(torch.ones(1, 1))
        k = b.weight
    """,
    "a teacher that is hidden": """
        class C(nn.Module):
            def __init__(self, m):
                super().__init__()
                object.__setattr__(self, "teacher", m)
                self.s = nn.Linear(2, 2)
        t = nn.Linear(2, 2)
        c = C(t).double()
        a = t.weight
        b = c.teacher.weight
        class D(nn.Module):
            def __init__(self, m):
                super().__init__()
                self._t = (m,)
                self.fn = m.forward
            @property
            def t(self): return self._t[0]
        d = D(nn.Linear(2, 2)).half()
        e = d.t.weight
        f = d.fn(torch.ones(1, 2))
        g = d.half().t(torch.ones(1, 2))
    """,
    "a decorator that remembers results, which change": """
        def memo(fn):
            cache = {}
            def inner(k):
                if k not in cache: cache[k] = fn(k)
                return cache[k]
            return inner
        @memo
        def get(k): return [S]
        get("a")[0] = D
        y = get("a")[0] * 1
        a = get("b")
        a.append(H)
        y = get("b")[-1] * 1
    """,
    "an item of a dict that a function looks up, changed twice": """
        TABLE = {"x": [S]}
        def lookup(k): return TABLE[k]
        lookup("x")[0] = D
        y = TABLE["x"][0] * 1
        lookup("x").append(H)
        y = lookup("x")[-1] * 1
    """,
    "a generator that is kept, and changes a list": """
        def gen(xs):
            xs[0] = torch.ones(1).double()
            yield 1
        a = [torch.ones(1)]
        g = gen(a)
        list(g)
        b = a[0] + 1
    """,
    "a walrus in a generator that is kept": """
        y = torch.ones(1)
        g = (y := x.double() for x in [torch.ones(2)])
        list(g)
        z = y + 1
    """,
    "a parameter that is bound anew behind a generator": """
        def f(t):
            g = (t + x for x in [torch.ones(1)])
            t = t.double()
            return list(g)
        r = f(torch.ones(1))[0]
        def h(t):
            def gen():
                for i in [torch.ones(1)]:
                    yield t + i
            g = gen()
            t = t.double()
            return list(g)
        q = h(torch.ones(1))
    """,
    "weights that a function ties, twice": """
        def tie(m, w): m.weight = w
        a, b, c = nn.Linear(1,1), nn.Linear(1,1), nn.Linear(1,1)
        tie(c, a.weight)
        tie(c, b.weight)
        b.half()
        z = c.weight * 2
    """,
    "a mode that fills in a dtype": """
        from torch.overrides import TorchFunctionMode
        class Mode(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                kwargs = {"dtype": torch.float64} if func is torch.ones else kwargs or {}
                return func(*args, **kwargs)
        with Mode():
            x = torch.ones(3)
    """,
    "a context that raises sometimes": """
        from contextlib import contextmanager, suppress
        @contextmanager
        def quiet():
            with suppress(ValueError):
                yield
        @contextmanager
        def quiet2():
            try:
                yield
            except ValueError as e:
                if str(e): raise
        def g(): raise ValueError
        def g2(t):
            if t.sum() > 100: return
            raise ValueError
        x = torch.ones(1)
        with quiet():
            g2(x)
            x = x.double()
        y = x + 1
        z = torch.ones(1)
        with quiet2():
            g2(z)
            z = z.double()
        w = z + 1
    """,
    "a dict whose attributes are its items, by other names of methods": """
        class DotDict(dict):
            __getattr__ = dict.__getitem__
            __setattr__ = dict.__setitem__
        dd = DotDict(a=torch.zeros(1))
        dd.a = torch.zeros(1).half()
        y8 = dd['a']
        dd['a'] = torch.zeros(1).double()
        y9 = dd.a
    """,
    "a method under another name": """
        class Store:
            def put(self, k, v): self.__dict__[k] = v
            __setitem__ = put
            add = setattr
        s = Store(); s.x = torch.zeros(1)
        s.put('x', torch.zeros(1).half()); a = s.x
        s['x'] = torch.zeros(1).double(); b = s.x
    """,
    "functions that change what they are given": """
        import operator
        o = {'a': torch.zeros(1)}
        operator.ior(o, {'a': torch.zeros(1).half()})
        b = o['a']
        l = [torch.zeros(1)]
        operator.iconcat(l, [torch.zeros(1).half()])
        c = l[-1]
        operator.delitem(l, 0)
        e = l[0]
    """,
    "an item of a Sequential is replaced through its table, by setattr and by its path": """
        net.body._modules["0"] = nn.Linear(4, 4).double()
        y = net.body[0].weight
        net = Net()
        setattr(net.body, "0", nn.Linear(4, 4).double())
        y = net.body[0].weight
        net = Net()
        net.set_submodule("body.0", nn.Linear(4, 4).double())
        y = net.body[0].weight
        y = net.head.weight
        net = Net()
        vars(net)["_modules"]["head"] = nn.Linear(4, 4).double()
        y = net.head.weight
    """,
    "tensors that are swapped": """
        whole, half = torch.ones(1), torch.ones(1).half()
        torch.utils.swap_tensors(whole, half)
        y = whole
        y = half
    """,
    "a mode that gives something else than torch's ops do": """
        class Half(torch.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                result = func(*args, **(kwargs or {}))
                return result.half() if isinstance(result, torch.Tensor) else result

        with Half():
            y = torch.ones(2)
    """,
    "who opens a region by hand may have one open anywhere": """
        region = torch.autocast("cpu", torch.bfloat16)
        x = torch.ones(2, 2)
        y = x @ x
        region.__enter__()
        y = x @ x
        with torch.autocast("cpu", torch.float16):
            y = x @ x
        y.sum()
    """,
    "whoever keeps such a context may enter it at any time": """
        from contextlib import ExitStack, contextmanager

        @contextmanager
        def using(dtype):
            torch.set_default_dtype(dtype)
            yield
            torch.set_default_dtype(torch.float32)

        x = torch.ones(2)
        with ExitStack() as stack:
            stack.enter_context(using(torch.float64))
            x = torch.ones(2)
        x.sum()
    """,
    "a function that is handed out sets it at any time": """
        from threading import Thread

        def work():
            torch.set_default_dtype(torch.float64)

        x = torch.ones(2)
        Thread(target=work).start()
        x = torch.ones(2)
        x.sum()
    """,
    "a generator sets it when it is asked for its items": """
        def items():
            torch.set_default_dtype(torch.float64)
            yield 1

        waiting = items()
        x = torch.ones(2)
        x.sum()
    """,
    "a call by `map` is made late, or never": """
        half, single, double = H, S, D
        layer = nn.Linear(2, 2)
        later = map(lambda module: module.half(), [layer])
        y = layer.weight
        y = later and layer.weight
    """,
    "a list in another order": """
        half, single, double = H, S, D
        xs = [half, double]
        xs.reverse()
        y = xs[0]
        from collections import OrderedDict, deque
        held = OrderedDict(a=half, b=double)
        held.move_to_end("a")
        y = list(held.values())[-1]
        queue = deque(maxlen=2)
        queue.append(half)
        queue.appendleft(double)
        y = queue[0]
        y = queue.popleft()
    """,
    "a set has what is equal in it once, and no order": """
        half, single, double = H, S, D
        if len({half.dtype, (half * 1).dtype}) == 1:
            x = half
        else:
            x = double
        y = x * 1
        for name in {"half", "double"}:
            x = {"half": half, "double": double}[name]
        y = x * 1
        y = half if "a" in {"a", "b"} else double
    """,
    "names that are bound by their text": """
        half, single, double = H, S, D
        x = half
        globals()["x"] = double
        y = x * 1
        x = half
        exec("x = double")
        y = x * 1
        z = half
        exec("print()")
        y = z * 1
    """,
    "a decorator that replaces what a class does is read for it": """
        def doubled(cls):
            plain = cls.forward

            def forward(self, x):
                return plain(self, x).double()

            cls.forward = forward
            return cls

        def tuned(wide=True):
            def wrapper(cls):
                cls.forward = lambda self, x: x.double() if wide else x
                return cls

            return wrapper

        def replaced(cls):
            return Other

        def grown(cls):
            class Grown(cls):
                def forward(self, x):
                    return super().forward(x).half()

            return Grown

        class Other(nn.Module):
            def forward(self, x):
                return x.double()

        @doubled
        class First(Other):
            def forward(self, x):
                return x

        @tuned()
        class Second(nn.Module):
            def forward(self, x):
                return x

        @replaced
        class Third(nn.Module):
            def forward(self, x):
                return x

        @grown
        class Fourth(Other):
            pass

        x = torch.ones(2)
        a = First()(x)
        b = Second()(x)
        c = Third()(x)
        d = Fourth()(x)
    """,
    "a module that says itself what a cast does to it": """
        class Rotary(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("freq", torch.ones(2))

            def _apply(self, fn, recurse=True):
                freq = self.freq
                super()._apply(fn, recurse)
                self.freq = freq
                return self

        rotary = Rotary()
        a = rotary.freq
        rotary.half()
        b = rotary.freq
        a.sum()
    """,
    "a class that decides itself what a call of it gives": """
        class One:
            made = None

            def __new__(cls):
                if cls.made is None:
                    cls.made = super().__new__(cls)
                return cls.made

        one = One()
        one.x = torch.ones(1)
        other = One()
        other.x = torch.ones(1).half()
        y = one.x
    """,
    "a hook of every module": """
        def halve(module, args, output):
            return output.half()

        handle = nn.modules.module.register_module_forward_hook(halve)
        y = nn.ReLU()(torch.ones(2))
    """,
    "a method that is patched behind a call": """
        class C:
            def __init__(self, x): self.x = x
        def add_method(cls):
            def wrap(fn):
                setattr(cls, fn.__name__, fn)
                return fn
            return wrap
        @add_method(C)
        def dbl(self): return self.x.double()
        def dbl2(self): return self.x.half()
        y = C(S).dbl() * 1
        C.dbl = dbl2
        y = C(S).dbl() * 1
    """,
    "a class that copies itself": """
        I = torch.zeros(2, dtype=torch.int64)
        class A:
            def __init__(self): self.t = S
            def __enter__(self): return self
            def __exit__(self, *a): self.t = self.t.half(); return False
            def __iter__(self): yield self.t
            def __copy__(self):
                a = A(); a.t = self.t.double(); return a
            def __eq__(self, o): return True
        a = A()
        b = copy.copy(a)
        y = b.t * 1
        y = copy.deepcopy(b).t * 1
        with a as c: c.t = I
        y = a.t * 1
        (t,) = b
        y = t * 1
        y = [*b, *a][1] * 1
        def f(*ts): return ts[-1]
        y = f(*a, *b) * 1
    """,
    "a hook on a part of a transformer's layer": """
        h = nn.TransformerEncoderLayer(2, 1, 2)
        h.norm2.register_forward_hook(lambda m, i, o: o.double())
        d = h(torch.ones(1, 1, 2))
    """,
    "modules that say which parameters and children they have": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(1, 1)
                self.b = nn.Linear(1, 1)
            def parameters(self, recurse=True):
                return self.a.parameters(recurse)
        m = M()
        for p in m.parameters(): p.data = p.data.half()
        a = m.a.weight
        b = m.b.weight
        class N(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(1, 1)
            def named_parameters(self, *a, **k):
                for n, p in super().named_parameters(*a, **k):
                    p.data = p.data.double()
                    yield n, p
        n = N()
        list(n.parameters())
        c = n.a.weight
        class C(nn.Module):
            def __init__(self, inner):
                super().__init__()
                object.__setattr__(self, "inner", inner)
            def forward(self, x): return self.inner(x)
        k = nn.Linear(1, 1)
        w = C(k).half()
        d = k.weight
        e = w(torch.ones(1, 1))
        class Ch(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(1, 1)
            def children(self): return iter(())
        q = Ch().half()
        f = q.l.weight
        class Cx(nn.Module):
            def __init__(self, te):
                super().__init__()
                self.te = [te]
                self.__dict__["h"] = te
            def cast(self): self.te[0].double(); return self
        x = Cx(k).cast()
        g = x.h.weight
        h = k.weight
    """,
    "a scheduler of the program": """
        l = nn.Linear(2, 1)
        class Sch(torch.optim.lr_scheduler.LRScheduler):
            def __init__(self, opt, t):
                self.t = t
                super().__init__(opt)
            def get_lr(self):
                self.t = self.t.double()
                return [g["lr"] for g in self.optimizer.param_groups]
        o = torch.optim.SGD(l.parameters(), lr=.1)
        s = Sch(o, torch.ones(1))
        a = s.t
        class S2(torch.optim.lr_scheduler.LRScheduler):
            def __init__(self, opt, t):
                self.t = [t]
                super().__init__(opt)
            def get_lr(self):
                self.t[0] = self.t[0].double()
                return [g["lr"] for g in self.optimizer.param_groups]
        s2 = S2(o, torch.ones(1))
        b = s2.t[0]
        box = [torch.ones(1)]
        def lam(e):
            box[0] = box[0].half()
            return 1.0
        torch.optim.lr_scheduler.LambdaLR(o, lam)
        c = box[0]
        class S3(torch.optim.lr_scheduler.LRScheduler):
            def __init__(self, opt, m):
                self.m = m
                super().__init__(opt)
            def get_lr(self):
                self.m.double()
                return [0.1]
        k = nn.Linear(1, 1)
        s3 = S3(o, k)
        d = k.weight
        class O(torch.optim.SGD):
            def add_param_group(self, g):
                super().add_param_group(g)
                for p in self.param_groups[-1]["params"]:
                    p.data = p.data.half()
        q = nn.Linear(1, 1)
        O(q.parameters(), lr=.1)
        e = q.weight
    """,
    "state that is saved by a part itself": """
        class M(nn.Module):
            def __init__(self):
                super().__init__()
                self.p = nn.Parameter(torch.ones(2))
                self.l = nn.Linear(2, 2)
            def set_extra_state(self, s):
                self.p.data = self.p.data.half()
            def get_extra_state(self):
                self.l.double()
                return {}
            def extra_repr(self):
                return ""
        m = M()
        sd = m.state_dict()
        a = m.l.weight
        m.load_state_dict(sd)
        b = m.p
        class A(nn.Module):
            def __init__(self):
                super().__init__()
                self.p = nn.Parameter(torch.ones(2))
                self.l = nn.Linear(2, 2)
            def _save_to_state_dict(self, d, p, k):
                self.l.half()
                super()._save_to_state_dict(d, p, k)
            def _named_members(self, *a, **k):
                return super()._named_members(*a, **k)
            def requires_grad_(self, v=True):
                self.l.double()
                return super().requires_grad_(v)
        n = nn.Sequential(A())
        n.state_dict()
        c = n[0].l.weight
        n.requires_grad_(False)
        d = n[0].l.weight
        class T(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(2, 2)
            def train(self, mode=True):
                self.l.float() if mode else self.l.half()
                return super().train(mode)
        t = nn.Sequential(T())
        t.eval()
        e = t[0].l.weight
        t.train()
        f = t[0].l.weight
        class Z(nn.Module):
            def __init__(self):
                super().__init__()
                self.l = nn.Linear(2, 2)
            def __setattr__(self, k, v):
                if isinstance(v, torch.Tensor): v = v.double()
                super().__setattr__(k, v)
            def zero_grad(self, set_to_none=True):
                self.l.bfloat16()
        z = Z()
        z.t = torch.ones(1)
        g = z.t
        z.zero_grad()
        h = z.l.weight
    """,
    "a norm that checks what it is given": """
        class C(nn.Conv2d):
            def _conv_forward(self, x, w, b):
                return super()._conv_forward(x, w.to(x.dtype), None if b is None else b.to(x.dtype))
        c = C(1, 1, 1)
        a = c(torch.ones(1, 1, 2, 2).half())
        class D(nn.Conv2d):
            def _conv_forward(self, x, w, b):
                return super()._conv_forward(x, w, b).double()
        b = D(1, 1, 1)(torch.ones(1, 1, 2, 2))
        class T(nn.TransformerEncoderLayer):
            def _ff_block(self, x):
                return super()._ff_block(x).double()
            def _sa_block(self, x, *a, **k):
                return super()._sa_block(x, *a, **k)
        t = T(2, 1, 2, batch_first=True)
        t.norm2 = nn.Identity()
        d = t(torch.ones(1, 2, 2))
        class N(nn.BatchNorm1d):
            def _check_input_dim(self, x):
                self.double()
        n = N(2)
        e = n(torch.ones(3, 2).double())
        f = n.weight
        class S(nn.Sequential):
            def forward(self, x):
                return super().forward(x).half()
        s = S(nn.Linear(2, 2), nn.ReLU())
        g = s(torch.ones(1, 2))
        h = nn.Sequential(s, nn.Identity())(torch.ones(1, 2))
        class K(nn.Module):
            def __call__(self, x): return super().__call__(x).double()
            def forward(self, x): return x
        i = K()(torch.ones(1))
        j = nn.Sequential(K())(torch.ones(1))
        class LL(nn.Linear):
            def forward(self, x): return super().forward(x.float()).type_as(x)
        k = LL(2, 2)(torch.ones(1, 2).half())
        class LN(nn.LayerNorm):
            def forward(self, x):
                return F.layer_norm(x.float(), self.normalized_shape, self.weight, self.bias, self.eps).type_as(x)
        l = LN(2)(torch.ones(1, 2).half())
        class FP(nn.GroupNorm):
            def forward(self, x): return super().forward(x.float())
        m = FP(1, 2)(torch.ones(1, 2).half())
    """,
    "an instance that is given a forward runs that": """
        layer = nn.Linear(2, 2)
        layer.forward = lambda x: x.half()
        a = layer(torch.ones(2, 2))
    """,
    "a bound that the dtype does not hold promotes": """
        whole = torch.arange(3)
        a = whole.clamp(0.5, 2)
        b = torch.clip(whole, 0, 2)
        c = whole.bool().clamp(0)
        d = torch.ones(3).half().clamp(min=0.1)
        e = torch.clamp(whole, torch.tensor(1.0, dtype=torch.float64), 2)
        f = torch.clamp(torch.ones(3).half(), torch.zeros(3))
        a.sum()
    """,
    "a hook that is told the keywords": """
        def before(module, args, kwargs):
            return args, {"x": kwargs["x"].double()}

        class Same(nn.Module):
            def forward(self, x):
                return x

        same = Same()
        same.register_forward_pre_hook(before, with_kwargs=True)
        x = torch.ones(1)
        y = same(x=x)
        y.abs()
    """,
}


BENDS: dict[str, tuple[str, ...]] = {
    "who is what does not change: classes of objects, defaults, functions of torch": (
        "a layer of torch that is patched",
        "an object of another class from now on",
        "a function with other defaults",
        "a registry of subclasses",
        "a transformer's layer with other norms",
    ),
    "generators, iterators and what `map` gives are run where they are made": (
        "a function that is handed out sets it at any time",
        "a call by `map` is made late, or never",
        "a generator that yields inside autocast",
        "a generator that looks at what its consumer changes",
        "a partial with a dict that changes",
        "a generator expression over a dict that changes",
        "a loop over a list that it adds to",
    ),
    "a cache is never cleared": ("cached results of a function and of a method",),
    "a module, a variable or an attribute is bound under its name by plain means": (
        "an item of a Sequential is replaced through its table, by setattr and by its path",
        "a global that is set by its name",
        "objects that share their attributes",
        "data set by its name",
        "a teacher that is hidden",
        "modules that are taken out",
    ),
    "special methods do what they usually do: descriptors, copying, casts of modules, `__torch_function__`": (
        "a module that says itself what a cast does to it",
        "a mapping that fills itself",
        "a mode that gives something else than torch's ops do",
        "a hook of every module",
        "descriptors, and properties that are called",
        "a mode that changes ops",
        "a mode that fills in a dtype",
        "a class that copies itself",
        "a dict whose attributes are its items, by other names of methods",
        "modules that say which parameters and children they have",
        "a module that casts by itself",
        "a scheduler of the program",
    ),
    "loading, saving and switching a module's state changes no dtype": (
        "extra state that is loaded",
        "a module that loads by itself",
        "weights that eval() casts",
        "weights that the train() of a part casts",
        "weights that are cast to what is loaded",
        "state that is saved by a part itself",
        "weights that a layer is reset to",
    ),
    "an autocast region is opened by `with` or a decorator": ("who opens a region by hand may have one open anywhere",),
    "nobody gives a weight other data than by the module that holds it": (
        "tensors that are swapped",
        "swapped weights",
        "a gradient of a parameter with other data",
        "a pruned weight",
        "vectors made into parameters",
        "a gradient under a name",
    ),
    "weights whose gradients are clipped have gradients": ("the norm of no gradients",),
    "a comprehension in the body of a class names nothing that the body binds": (
        "a comprehension in the body of a class",
    ),
}
"""Programs that are contradicted, by the assumption that they break."""


def _contradicted(name: str) -> bool:
    return any(name in names for names in BENDS.values())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.xfail(strict=True)) if _contradicted(name) else name for name in PROGRAMS],
)
def test_no_claim_is_contradicted(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(PROGRAMS[name]) + TAIL)
    found = contradicted(path)
    assert not found


def test_what_is_contradicted_is_among_the_programs() -> None:
    assert {name for names in BENDS.values() for name in names} <= PROGRAMS.keys()
