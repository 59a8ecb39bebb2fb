"""Objects that say themselves how they are made, read and kept: each program is compared with a run of it."""

from __future__ import annotations

import pytest

from tests.infer.programs import contradicted, loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "attributes under other names": """
        class Config:
            names = {"width": "n"}
            def __init__(self, n):
                self.n = n
            def __setattr__(self, key, value):
                super().__setattr__(self.names.get(key, key), value)
            def __getattribute__(self, key):
                if key != "names" and key in super().__getattribute__("names"):
                    key = super().__getattribute__("names")[key]
                return super().__getattribute__(key)
        config = Config(torch.float16)
        x = torch.zeros(2, dtype=config.width)
        config.width = torch.float64
        y = torch.zeros(2, dtype=config.n)
    """,
    "attributes as a dict": """
        class Config:
            def __init__(self):
                self.a = H
        config = Config()
        config.__dict__["b"] = D
        config.__dict__.update(c=S)
        x = config.b
        y = config.c
        z = config.__dict__.get("a") + 1
    """,
    "dataclasses by a transform, with a wrapper of their own": """
        import dataclasses
        from typing import dataclass_transform
        @dataclass_transform(kw_only_default=True)
        class Base:
            def __init_subclass__(cls):
                dataclasses.dataclass(cls, kw_only=True)
                made = cls.__init__
                def __init__(self, **given):
                    names = {one.name for one in dataclasses.fields(cls)}
                    for one in dataclasses.fields(cls):
                        setattr(self, one.name, given.get(one.name, one.default))
                    self.__post_init__(**{k: v for k, v in given.items() if k not in names})
                cls.__init__ = __init__
        class Config(Base):
            dtype: torch.dtype = torch.float16
            size: int = 2
            def __post_init__(self, **others):
                self.other = others.pop("other", torch.float64)
        a, b = Config(), Config(dtype=torch.bfloat16, other=torch.float16)
        w = torch.zeros(a.size, dtype=a.dtype)
        x = torch.zeros(a.size, dtype=a.other)
        y = torch.zeros(b.size, dtype=b.dtype)
        z = torch.zeros(b.size, dtype=b.other)
    """,
    "fields of outputs that are dicts": """
        import dataclasses
        from collections import OrderedDict
        class Output(OrderedDict):
            def __post_init__(self):
                for one in dataclasses.fields(self):
                    value = getattr(self, one.name)
                    if value is not None:
                        self[one.name] = value
            def __getitem__(self, key):
                return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]
            def __setitem__(self, key, value):
                super().__setitem__(key, value)
                super().__setattr__(key, value)
            def to_tuple(self):
                return tuple(self[key] for key in self.keys())
        @dataclasses.dataclass
        class Logits(Output):
            loss: object = None
            logits: object = None
            hidden: object = None
        out = Logits(logits=H, hidden=D)
        x = out.logits
        y = out["hidden"]
        z = out[0]
    """,
    "mappings by collections.abc": """
        from collections.abc import MutableMapping
        class Registry(MutableMapping):
            shared = {"half": H}
            def __init__(self):
                self.own = {}
            def __getitem__(self, key):
                return self.own[key] if key in self.own else self.shared[key]
            def __setitem__(self, key, value):
                self.own[key] = value
            def __delitem__(self, key):
                del self.own[key]
            def __iter__(self):
                return iter({**self.shared, **self.own})
            def __len__(self):
                return len({**self.shared, **self.own})
        registry = Registry()
        registry.update(double=D)
        x = registry.get("half", H)
        y = registry["double"]
    """,
    "classes made of texts by a dict of them": """
        from collections import OrderedDict
        class Classes(OrderedDict):
            def __getitem__(self, key):
                content = super().__getitem__(key)
                cls, given = content if isinstance(content, tuple) else (content, {})
                return cls(**given)
        class Same(nn.Module):
            def forward(self, x):
                return x
        makers = Classes({"same": Same, "clip": (nn.Hardtanh, {"min_val": 0})})
        x = makers["same"](H)
        y = makers["clip"](D)
    """,
    "contexts on a stack": """
        from contextlib import ExitStack, contextmanager
        @contextmanager
        def default(dtype):
            before = torch.get_default_dtype()
            torch.set_default_dtype(dtype)
            try:
                yield
            finally:
                torch.set_default_dtype(before)
        class Contexts:
            def __init__(self, managers):
                self.managers, self.stack = managers, ExitStack()
            def __enter__(self):
                for one in self.managers:
                    self.stack.enter_context(one)
            def __exit__(self, *given):
                self.stack.__exit__(*given)
        with Contexts([default(torch.float16)]):
            x = torch.zeros(2)
        y = torch.zeros(2)
        with ExitStack() as stack:
            stack.enter_context(default(torch.float64))
            z = torch.ones(2)
        w = torch.ones(2)
        def leaving():
            with ExitStack() as stack:
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
                return torch.ones(2, 2) @ torch.ones(2, 2)
        u = leaving()
        v = torch.ones(2, 2) @ torch.ones(2, 2)
    """,
    "descriptors, and functions copied": """
        import functools, types
        class classproperty(property):
            def __get__(self, instance, owner):
                return self.fget(owner)
        def copied(f):
            g = types.FunctionType(f.__code__, f.__globals__, name=f.__name__, argdefs=f.__defaults__)
            return functools.update_wrapper(g, f)
        class Base:
            dtype = torch.float16
            @classproperty
            def zero(cls):
                return torch.zeros(2, dtype=cls.dtype)
            @classmethod
            def one(cls, size):
                return torch.ones(size, dtype=cls.dtype)
        class Other(Base):
            dtype = torch.float64
        Other.two = classmethod(copied(Base.one))
        x = Base().zero
        y = Other.two(2)
    """,
    "arguments by the names of variables": """
        def with_default(function):
            place = function.__code__.co_varnames.index("y") if "y" in function.__code__.co_varnames else None
            def wrapper(*args, **kwargs):
                if place is not None and len(args) <= place and "y" not in kwargs:
                    kwargs["y"] = H
                return function(*args, **kwargs)
            return wrapper
        @with_default
        def add(x, y=None):
            return x + y
        @with_default
        def double(x):
            return x * 2
        a = add(H)
        b = double(D)
    """,
    "classes and functions of torch are no tuples": """
        from collections import OrderedDict
        class Instances(OrderedDict):
            def __getitem__(self, key):
                content = super().__getitem__(key)
                cls, kwargs = content if isinstance(content, tuple) else (content, {})
                return cls(**kwargs)
        layers = Instances({"relu": nn.ReLU, "leaky": (nn.LeakyReLU, {"negative_slope": 0.2}), "half": torch.Tensor.half})
        x = layers["relu"](H)
        y = layers["leaky"](D)
    """,
    "texts decide": """
        import re
        kinds = {"half": H, "double": D}
        found = re.findall(f"({'|'.join(kinds)})", "a half and no more")
        x = kinds[found[0]]
        y = {value: key for key, value in {"a": "b", "c": "d"}.items()}
        z = kinds["half" if y["b"] == "a" else "double"]
        none = None if len(kinds) > 2 else H
        w = torch.cat([none, H]) if none is not None else H
        u = w[slice(-1, None)]
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known_is_what_runs(name: str) -> None:
    assert not contradicted(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_variables_are_known_exactly(name: str) -> None:
    assert mistaken(PROGRAMS[name]) == []
    assert loose(PROGRAMS[name]).isdisjoint("abuvwxyz")
