"""Loops, exceptions, contexts and generators: each program's variables are compared with a run of it."""

from __future__ import annotations

import pytest

from tests.infer.programs import loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "one of several tests holds": """
        class One(nn.Module):
            def forward(self, x):
                return x.half()
        class Two(nn.Module):
            def forward(self, x):
                return x.double()
        class Holder:
            def __init__(self, which):
                self.net = One() if which else Two()
            def run(self, x):
                if isinstance(self.net, One) or isinstance(self.net, nn.Linear):
                    return self.net(x), x
                if not (isinstance(self.net, Two) and x.dtype == torch.float32):
                    return self.net(x), x
                return x, self.net(x)
        a, b = Holder(True).run(S)
        c, d = Holder(False).run(S)
    """,
    "what a block has bound before it raised": """
        def check(flag):
            x = S
            try:
                if flag:
                    x = H
                    raise ValueError
                x = D
            except ValueError:
                return x
            return x
        a, b = check(True), check(False)
        seen = {"t": S}
        def fails(box):
            box["t"] = H
            raise KeyError("no")
        try:
            fails(seen)
        except KeyError:
            pass
        c = seen["t"]
    """,
    "finally and else": """
        state = {"t": S}
        def run(flag):
            try:
                if flag:
                    return state["t"]
                state["t"] = H
            except ValueError:
                state["t"] = S
            else:
                state["u"] = D
            finally:
                state["last"] = D
            return state["t"]
        a = run(False)
        b = state["last"]
        c = run(True)
    """,
    "loops with break, continue and else": """
        x = S
        for i in range(5):
            if i == 3:
                x = H
                break
        else:
            x = D
        a = x
        y = S
        for i in range(20):
            if i % 2:
                continue
            y = y.half() if i > 10 else y
        b = y
        z, n = S, 0
        while n < 3:
            n += 1
            if n == 2:
                z = D
        c, d = z, n
        for k in []:
            z = H
        e = z
        f = [i for i in range(3)]
        for i, t in enumerate([S, H, D]):
            last = t
        g = last
        total = 0
        for i in range(100):
            total += i
        h = total
    """,
    "contexts that swallow": """
        import contextlib
        class Quiet:
            def __enter__(self):
                return self
            def __exit__(self, kind, value, trace):
                return True
        a = S
        with Quiet():
            a = H
            raise ValueError
        b = S
        with contextlib.suppress(ValueError):
            b = H
            raise ValueError
        @contextlib.contextmanager
        def quiet():
            try:
                yield 1
            except ValueError:
                pass
        c = S
        with quiet():
            c = D
            raise ValueError
        d = c
    """,
    "a stack of contexts": """
        import contextlib
        log = {"t": S}
        class Cast:
            def __enter__(self):
                return H
            def __exit__(self, *args):
                log["t"] = D
        with contextlib.ExitStack() as stack:
            a = stack.enter_context(Cast())
            b = log["t"]
        c = log["t"]
        w = nn.Linear(2, 2)
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.autocast("cpu", dtype=torch.bfloat16))
            d = w(torch.ones(1, 2))
        e = w(torch.ones(1, 2))
        with contextlib.nullcontext(H) as f:
            pass
    """,
    "generators": """
        def gen(x):
            yield x
            yield x.half()
        a = next(gen(H))
        b = list(gen(S.half()))
        def outer():
            yield from gen(H)
            return 3
        c = [t for t in outer()]
        scale = {"w": S}
        def lazy():
            yield scale["w"]
        g = lazy()
        scale["w"] = D
        d = next(g)
        w = S
        later = (x * w for x in [S])
        w = D
        e = list(later)[0]
        f = sum(t for t in [H, H])
        def count(n):
            while n:
                n -= 1
                yield D
        for h in count(3):
            pass
    """,
    "cached results": """
        import functools
        kinds = {"dt": torch.float32}
        @functools.lru_cache(maxsize=None)
        def mask(n):
            return torch.zeros(n, dtype=kinds["dt"])
        a = mask(3)
        kinds["dt"] = torch.float64
        b = mask(3)
        c = mask(4)
        class A:
            @functools.cached_property
            def t(self):
                return torch.zeros(2, dtype=kinds["dt"])
        o = A()
        d = o.t
        kinds["dt"] = torch.float16
        e = o.t
        f = A().t
    """,
    "match": """
        def pick(x):
            match x:
                case 0 | 1:
                    return S
                case "half":
                    return H
                case (a, b):
                    return a
                case {"t": t}:
                    return t
                case [first, *rest]:
                    return first
                case int():
                    return D
                case _:
                    return None
        a, b, c = pick(0), pick("half"), pick((D, 1))
        d, e, f = pick({"t": H}), pick([H, S, S]), pick(7)
    """,
    "walrus and stars": """
        if (t := H).dtype == torch.float16:
            a = t
        first, *middle, last = [H, S, S, D]
        b, c, d = first, middle, last
        x, (y, z) = S, (H, D)
        e, f = y, z
        hit = None
        any((hit := v) is not None for v in [H])
        g = hit
        h = [*middle, *(D,)]
        i = {**{"a": H}, "b": S}
        def f2(*args, **kwargs):
            return args[0], kwargs["k"]
        j, k = f2(*[H], **{"k": D})
    """,
    "names of the program": """
        t = S
        globals()["t"] = D
        a = t
        u = S
        exec("u = H")
        b = u
    """,
}
LOOSE = {
    "loops with break, continue and else": {"x", "a", "y", "b", "z", "c", "e", "n", "d", "i"},
    "contexts that swallow": {"a", "b", "c", "d"},
    "names of the program": {"t", "a", "u", "b"},
    "finally and else": {"state", "a", "c"},
    "what a block has bound before it raised": {"a", "b", "c", "seen"},
    "a stack of contexts": {"w", "stack"},
    "match": {"c", "d", "e", "f"},
    "cached results": {"kinds"},
}
"""What less is known of than is so: what a loop or a block may not have reached."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_flow(name: str) -> None:
    assert mistaken(PROGRAMS[name]) == []
    assert loose(PROGRAMS[name]) <= LOOSE.get(name, set())
