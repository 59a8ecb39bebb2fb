"""Classes as Python has them: each program's variables are compared with a run of it."""

from __future__ import annotations

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "a setter for the property of a base": """
        class A:
            @property
            def x(self):
                return self._x
        class B(A):
            @A.x.setter
            def x(self, value):
                self._x = value.half()
        b = B()
        b.x = D
        a = b.x
    """,
    "attributes that a class keeps in a dict of its own": """
        class Storage:
            def __init__(self, **fields):
                self._fields = {}
                for key, value in fields.items():
                    setattr(self, key, value)
            def __setattr__(self, key, value):
                found = getattr(self.__class__, key, None)
                if found is not None and getattr(found, "fset", None) is not None:
                    found.fset(self, value)
                elif key[:1] == "_":
                    self.__dict__[key] = value
                else:
                    self._fields[key] = value
            def __getattr__(self, key):
                if key == "_fields":
                    raise AttributeError(key)
                return self._fields[key]
            @property
            def size(self):
                return 2
            @property
            def scale(self):
                return self._scale
            @scale.setter
            def scale(self, value):
                self._scale = value
        storage = Storage(x=H, size=D)
        storage.scale = S
        a, b, c = storage.x, storage._fields["size"], storage.scale
    """,
    "a view that gives pairs one by one": """
        class View:
            def __init__(self, held):
                self.held = held
            def __iter__(self):
                for key in list(self.held.keys()):
                    yield key, self.held[key]
        held = {"a": H, "b": D}
        for key, value in View(held):
            held[key] = value * 2
        a, b = held["a"], held["b"]
        (p, q), (r, s) = View(held)
    """,
    "attributes of the class and of the instance": """
        class A:
            kind = S
            def __init__(self, x):
                self.x = x
        a, b = A(H), A(D)
        p, q = a.x, b.x
        r = a.kind
        a.kind = D
        s, t = a.kind, b.kind
        A.other = H
        u = b.other
    """,
    "class methods and static methods": """
        class A:
            dtype = torch.float16
            @classmethod
            def make(cls, n):
                return cls(torch.zeros(n, dtype=cls.dtype))
            @staticmethod
            def double(x):
                return x.double()
            def __init__(self, x):
                self.x = x
        class B(A):
            dtype = torch.float64
        a, b = A.make(2).x, B.make(2).x
        c = B.double(S)
        d = A.make(1).double(S)
        e = B.make(1).make(3).x
    """,
    "properties and their setters": """
        class A:
            def __init__(self):
                self._x = S
            @property
            def x(self):
                return self._x * 1
            @x.setter
            def x(self, value):
                self._x = value.half()
            @property
            def late(self):
                return self._x
        class B(A):
            @property
            def late(self):
                return super().late.double()
        a, b = A(), B()
        a.x = D
        p, q, r = a.x, b.x, b.late
        s = a.late
    """,
    "special methods that are called": """
        class A:
            def __init__(self, x):
                self.x = x
            def __call__(self, y):
                return self.x + y
            def __getitem__(self, i):
                return self.x[i] if isinstance(i, int) else self.x.double()
            def __len__(self):
                return 3
            def __iter__(self):
                return iter([self.x, self.x.double()])
            def __contains__(self, item):
                return item == 1
            def __bool__(self):
                return False
        a = A(H)
        b = a(S)
        c = a[0]
        d = a["x"]
        e = len(a)
        f, g = a
        h = list(a)
        i = 1 in a
        j = 2 in a
        k = S if a else D
    """,
    "an iterator of its own": """
        class It:
            def __init__(self, n):
                self.i, self.n = 0, n
            def __iter__(self):
                return self
            def __next__(self):
                if self.i >= self.n:
                    raise StopIteration
                self.i += 1
                return H
        for x in It(2):
            a = x
        b = next(It(1))
        c = [y for y in It(2)]
    """,
    "operators": """
        class V:
            def __init__(self, x):
                self.x = x
            def __add__(self, other):
                return V(self.x + other.x)
            def __mul__(self, k):
                return V(self.x * k)
            def __rmul__(self, k):
                return V(self.x.double() * k)
            def __iadd__(self, other):
                self.x = self.x.half()
                return self
            def __neg__(self):
                return self.x.double()
            def __eq__(self, other):
                return self.x.dtype == other.x.dtype
            def __lt__(self, other):
                return True
            def __matmul__(self, other):
                return other
            def __sub__(self, other):
                return NotImplemented
        class W:
            def __rsub__(self, other):
                return H
        v = V(S)
        a = (v + V(D)).x
        b = (v * 2).x
        c = (2 * v).x
        d = -v
        e = v == V(S)
        f = v == V(D)
        g = v < v
        h = v @ H
        i = v - W()
        v += V(D)
        j = v.x
    """,
    "inheritance and super": """
        class A:
            def f(self):
                return [S]
        class B(A):
            def f(self):
                return super().f() + [H]
        class C(A):
            def f(self):
                return super().f() + [D]
        class E(B, C):
            def f(self):
                return super(E, self).f()
        a = E().f()
        b = B().f()
        class Mixin:
            def __init__(self, *args, extra=None, **kwargs):
                super().__init__(*args, **kwargs)
                self.extra = extra
        class Base:
            def __init__(self, x):
                self.x = x
        class F(Mixin, Base):
            pass
        f = F(H, extra=D)
        c, d = f.x, f.extra
    """,
    "making an object": """
        class A:
            def __new__(cls, x):
                made = super().__new__(cls)
                made.y = x.double()
                return made
            def __init__(self, x):
                self.x = x
        class B:
            def __new__(cls, x):
                return x
        a = A(H)
        b, c = a.x, a.y
        d = B(D)
        class One:
            held = None
            def __new__(cls):
                if cls.held is None:
                    cls.held = super().__new__(cls)
                    cls.held.t = S
                return cls.held
        One().t = H
        e = One().t
    """,
    "subclasses that are registered": """
        class Base:
            found = {}
            def __init_subclass__(cls, key=None, **kwargs):
                super().__init_subclass__(**kwargs)
                Base.found[key] = cls
        class A(Base, key="a"):
            t = H
        class B(Base, key="b"):
            t = D
        a = Base.found["a"].t
        b = Base.found["b"]().t
        c = sorted(Base.found)
    """,
    "what is not there": """
        class A:
            def __init__(self):
                self.items = {"x": H}
            def __getattr__(self, name):
                if name in self.items:
                    return self.items[name]
                raise AttributeError(name)
        a = A()
        b = a.x
        c = getattr(a, "y", D)
        d = hasattr(a, "x")
        e = hasattr(a, "y")
    """,
    "attributes that are written by name": """
        class A:
            pass
        a = A()
        for name, value in (("x", H), ("y", D)):
            setattr(a, name, value)
        b, c = a.x, getattr(a, "y")
        d = {name: getattr(a, name) for name in ("x", "y")}
        vars(a)["z"] = H
        e = vars(a).get("x")
        f = a.__dict__["y"]
        a.__dict__.update(w=D)
        g = a.w
        h = a.z
        i = [v for k, v in vars(a).items()]
    """,
    "setattr of the class's own": """
        class A:
            def __init__(self, x):
                self.x = x
            def __setattr__(self, name, value):
                super().__setattr__(name, value.half())
        class B:
            def __setattr__(self, name, value):
                object.__setattr__(self, name, value.double())
        a = A(S)
        b = a.x
        c = B()
        c.y = S
        d = c.y
    """,
    "types of objects": """
        class A:
            def __init__(self, x):
                self.x = x
            def same(self):
                return type(self)(self.x.double())
            def also(self):
                return self.__class__(self.x.half())
        class B(A):
            pass
        a = B(S).same()
        b, c = isinstance(a, B), a.x
        d = B(S).also().x
        e = type(a) is B
        f = type(a).__name__
        g = isinstance(a, (int, A))
        h = isinstance(3, int | float)
        i = isinstance("x", int | str)
        j = issubclass(B, A)
        k = isinstance(S, torch.Tensor)
        l = isinstance([1], list)
        m = isinstance({}, (list, tuple))
        n = type(3) is int
    """,
    "contexts": """
        class Cast:
            def __init__(self, dtype):
                self.dtype = dtype
            def __enter__(self):
                return torch.zeros(2, dtype=self.dtype)
            def __exit__(self, *args):
                self.dtype = torch.float64
                return False
        c = Cast(torch.float16)
        with c as x:
            a = x
        b = c.dtype
        with Cast(torch.float64) as y, Cast(torch.float16) as z:
            d = y + z
    """,
    "methods as values": """
        class A:
            def __init__(self, x):
                self.x = x
                self.f = self.half
            def half(self):
                return self.x.half()
            def run(self, name):
                return getattr(self, name)()
        a = A(S)
        b = a.f()
        g = A.half
        c = g(A(D))
        d = a.run("half")
        e = [m() for m in (a.half, A(D).half)]
        h = a.half.__self__.x
        class B:
            act = lambda self, x: x.double()
            table = {"a": S}
        i = B().act(S)
        j = B().table["a"]
    """,
    "enumerations": """
        import enum
        class Mode(enum.Enum):
            HALF = "half"
            FULL = "full"
            @property
            def dtype(self):
                return torch.float16 if self is Mode.HALF else torch.float32
            @classmethod
            def default(cls):
                return cls.FULL
        a = Mode.HALF.value
        b = Mode("half") is Mode.HALF
        c = torch.zeros(2, dtype=Mode("half").dtype)
        d = Mode["FULL"].dtype
        e = Mode.HALF == Mode.FULL
        f = [m.value for m in Mode]
        g = Mode.FULL.name
        class Level(enum.IntEnum):
            LOW = 1
            HIGH = 2
        h = Level.LOW < 2
        i = {Mode.HALF: H, Mode.FULL: S}[Mode.HALF]
        j = torch.zeros(2, dtype=Mode.default().dtype)
        class Text(str, enum.Enum):
            A = "a"
        k = Text.A == "a"
    """,
    "attributes that several methods bind": """
        class A:
            def __init__(self):
                self.x = None
            def setup(self):
                self.x = H
                return self
            def get(self):
                if self.x is None:
                    self.x = D
                return self.x
        a = A().setup().get()
        b = A().get()
        c = A()
        d = c.x
        c.setup()
        e = c.x
    """,
    "slots, nested classes and functions in classes": """
        class A:
            __slots__ = ("x", "y")
            class Inner:
                t = D
            def __init__(self):
                self.x = H
        a = A().x
        b = A.Inner.t
        c = A.Inner().t
        def make(dtype):
            class Made:
                t = torch.zeros(2, dtype=dtype)
                def get(self):
                    return torch.ones(2, dtype=dtype)
            return Made
        d = make(torch.float16).t
        e = make(torch.float64)().get()
        f = make(torch.float16)().get()
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_classes(name: str) -> None:
    assert mistaken(PROGRAMS[name]) == []
    assert loose(PROGRAMS[name]) == set()
