"""Classes whose fields make them: each program's variables are compared with a run of it."""

from __future__ import annotations

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "a named tuple by its class": """
        from typing import NamedTuple
        class Out(NamedTuple):
            x: torch.Tensor
            y: torch.Tensor = D
            def total(self):
                return self.x + self.y
        o = Out(H)
        a, b = o
        c, d = o.x, o[1]
        e = o.total()
        f = o._replace(y=H).y
        g = o._asdict()["x"]
        h = Out._fields
        i = Out(y=S, x=H).x
        j = isinstance(o, tuple)
        k = len(o)
        l = [t.dtype for t in o]
        m = Out(*[S, H])
        n = Out._make([H, H]).y
        p = isinstance(o, Out)
    """,
    "a named tuple by its factory": """
        from collections import namedtuple
        P = namedtuple("P", ["x", "y"])
        Q = namedtuple("Q", "x y", defaults=(D,))
        p = P(H, y=S)
        a, b = p.x, p.y
        c = p._replace(x=D).x
        d = Q(H).y
        e = P._make((S, D)).y
        f = {k: v for k, v in p._asdict().items()}
        g = P._fields
        class R(namedtuple("R", "u v")):
            def both(self):
                return self.u + self.v
        h = R(H, S).both()
        i = R(H, S).u
    """,
    "dataclasses": """
        from dataclasses import dataclass, field, replace, asdict, InitVar, KW_ONLY, fields
        from typing import ClassVar
        @dataclass
        class A:
            n: int
            x: torch.Tensor = H
            items: list = field(default_factory=list)
            made: torch.Tensor = field(init=False)
            kind: ClassVar[str] = "a"
            scale: float = 2.0
            def __post_init__(self):
                self.made = self.x.double()
        a = A(3)
        b, c, d, e, f = a.n, a.x, a.items, a.made, a.scale
        g = A(1, S).x
        h = A(n=1, scale=0.5).scale
        i = replace(a, x=D).x
        j = a.kind
        a.items.append(H)
        k = A(2).items
        l = replace(a, x=S).made
        m = A(1, S, [D]).items[0]
        @dataclass
        class B(A):
            x: torch.Tensor = S
            y: torch.Tensor = D
        o = B(1)
        p, q = o.x, o.y
        r = B(1, H, [], 3.0, H).y
        @dataclass(kw_only=True)
        class C:
            u: torch.Tensor
            v: torch.Tensor = D
        s = C(u=H).u
        @dataclass
        class E:
            w: torch.Tensor
            half: InitVar[bool] = False
            _: KW_ONLY
            z: torch.Tensor = S
            def __post_init__(self, half):
                if half:
                    self.w = self.w.half()
        t = E(S, True).w
        u = E(S).w
        v = E(S, z=D).z
        w = asdict(a)["x"]
        x = [f.name for f in fields(C)]
        y = isinstance(a, A)
    """,
    "a dataclass of weights": """
        from dataclasses import dataclass
        @dataclass
        class Config:
            width: int = 8
            dtype: torch.dtype = torch.float16
        class Net(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.fc = nn.Linear(config.width, config.width, dtype=config.dtype)
                self.config = config
        net = Net(Config(4))
        a = net.config.width
        b = Net(Config(dtype=torch.float64)).fc.weight
        c = net.fc.weight
        config = Config()
        config.width = 32
        d = config.width
    """,
    "classes that a decorator or a base makes of their fields": """
        from dataclasses import field
        from typing import dataclass_transform
        import dataclasses
        @dataclass_transform()
        def made(cls):
            return dataclasses.dataclass(cls)
        @made
        class A:
            x: torch.Tensor
            n: int = 3
        a, b = A(H).x, A(H, 5).n
        c = A(H).n
        @dataclass_transform()
        class Base:
            def __init_subclass__(cls, **kwargs):
                super().__init_subclass__(**kwargs)
                dataclasses.dataclass(cls)
        class B(Base):
            y: torch.Tensor = D
            size: int = 768
        d = B(y=H).y
        e = B(size=32).size
        f = B().size
        class C(B):
            more: int = 1
        g = C(size=4).size
        h = C(size=4, more=7).more
    """,
    "keywords that become attributes": """
        from typing import dataclass_transform
        import dataclasses, functools
        @dataclass_transform(kw_only_default=True, field_specifiers=(dataclasses.field,))
        def strict(*, accept_kwargs=False):
            def wrap(cls):
                cls = dataclasses.dataclass(cls)
                if accept_kwargs:
                    original = cls.__init__
                    names = [one.name for one in dataclasses.fields(cls)]
                    def __init__(self, *args, **kwargs):
                        known = {k: v for k, v in kwargs.items() if k in names}
                        original(self, *args, **known)
                        for k, v in kwargs.items():
                            if k not in known:
                                setattr(self, k, v)
                    cls.__init__ = __init__
                return cls
            return wrap
        @strict(accept_kwargs=True)
        class Config:
            hidden: int = 768
            dropout: float = 0.1
        a = Config(hidden=32).hidden
        c = Config().dropout
    """,
    "a simple namespace": """
        import types
        ns = types.SimpleNamespace(x=H, n=3)
        a, b = ns.x, ns.n
        ns.y = D
        c = ns.y
        d = vars(ns)["x"]
        e = hasattr(ns, "y"), hasattr(ns, "z")
        f = getattr(ns, "z", S)
    """,
    "typed dicts": """
        from typing import TypedDict
        class Batch(TypedDict, total=False):
            x: torch.Tensor
            y: torch.Tensor
        b = Batch(x=H, y=D)
        a = b["x"]
        c: Batch = {"x": S, "y": H}
        d = c["y"]
        e = b.get("y")
    """,
    "a dict with attributes": """
        class Attrs(dict):
            def __getattr__(self, name):
                try:
                    return self[name]
                except KeyError:
                    raise AttributeError(name)
            def __setattr__(self, name, value):
                self[name] = value
        a = Attrs(x=H)
        b = a.x
        a.y = D
        c = a["y"]
        d = a.y
        e = list(a)
        f = Attrs({"z": S}).z
        from collections import UserDict, OrderedDict
        class U(UserDict):
            def __getitem__(self, key):
                return super().__getitem__(key).half()
        u = U(x=S)
        g = u["x"]
        class O(OrderedDict):
            def first(self):
                return list(self.values())[0]
        o = O()
        o["x"] = D
        h = o.first()
    """,
    "a list of its own": """
        class Stack(list):
            def top(self):
                return self[-1]
        s = Stack([S, H])
        a = s.top()
        s.append(D)
        b = s.top()
        c = len(s)
        d = [x for x in s]
    """,
}
LOOSE: dict[str, set[str]] = {"a simple namespace": {"ns", "e"}, "a dict with attributes": {"g"}}
"""What less is known of than is so."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_fields(name: str) -> None:
    assert mistaken(PROGRAMS[name]) == []
    assert loose(PROGRAMS[name]) <= LOOSE.get(name, set())
