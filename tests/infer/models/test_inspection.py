"""The parameters of functions: each program's variables are compared with a run of it."""

from __future__ import annotations

import textwrap

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "the parameters of a function": """
        import inspect
        def f(x, scale=2.0, *rest, key=None, **others):
            return x
        class C:
            def __init__(self, size, dtype=torch.float16):
                self.made = torch.zeros(size, dtype=dtype)
            def run(self, x, y=1):
                return x
        a = list(inspect.signature(f).parameters)
        b = inspect.signature(f).parameters["scale"].default
        c = "y" in inspect.signature(C(1).run).parameters
        d = list(inspect.signature(C).parameters)
        e = {k: v for k, v in {"size": 2, "dtype": torch.float64, "z": 1}.items() if k in inspect.signature(C).parameters}
        g = C(**e).made
        h = inspect.isclass(C)
        i = inspect.getfullargspec(f).args
    """,
    "what a value is, and can do": """
        import enum, json
        from collections.abc import Collection, Mapping, Sequence
        class Kind(enum.Enum):
            A = "a"
        options = {"half": torch.float16, "double": torch.float64}
        listed = {"x", "y"}
        a = [isinstance(one, enum.EnumMeta) for one in (options, listed, [1], (1,), Kind)]
        b = [isinstance(listed, one) for one in (Collection, Sequence, Mapping)]
        c = [callable(one) for one in (options, listed, ("a", 2), "a", 2, None, Kind, len, S)]
        class Table:
            def __getitem__(self, args):
                return args if callable(args) else options[args[0]]
        d = torch.ones(2, dtype=Table()["half", 2])
        made = {}
        for letter in "ab":
            made[letter] = options["half"]
        e = made
        f = (torch.zeros if json.loads("1") else None)(2, dtype=torch.float64)
    """,
    "a function that is made of the code of another": """
        import types
        from functools import update_wrapper
        from inspect import getattr_static
        class Base:
            def __init_subclass__(cls):
                run = getattr_static(cls, "run")
                if isinstance(run, types.FunctionType):
                    clone = types.FunctionType(run.__code__.replace(co_name="other"), run.__globals__, "run")
                    cls.run = update_wrapper(clone, run)
            def run(self, x):
                return x.double()
        class Derived(Base):
            pass
        a = Derived().run(S)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    text = textwrap.dedent(PROGRAMS[name])
    assert mistaken(text) == []
    assert loose(text) <= set()
