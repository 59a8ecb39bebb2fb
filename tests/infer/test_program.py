"""What is known of a whole program: each comment says what the expression before it is, on every path that was seen.

A line's comment speaks of the widest tensor expression that ends on it, an empty one of nothing that is known.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from dtlint.infer.claims.reading import claims, read
from dtlint.infer.domain.values import Dtypes
from dtlint.source.file import Source

HEAD = "import torch, torch.nn as nn, torch.nn.functional as F\n"


def shown(dtypes: Dtypes) -> str:
    return "" if dtypes is None else "|".join(sorted(dtypes))


def claimed(path: Path) -> dict[int, str]:
    """The dtypes of the widest claim that ends on each line."""
    by_line: dict[int, tuple[int, str]] = {}
    for claim in claims(path, [path.parent])[path]:
        width = claim.span.end_column - (claim.span.column if claim.span.line == claim.span.end_line else 0)
        if width > by_line.get(claim.span.end_line, (0, ""))[0]:
            by_line[claim.span.end_line] = (width, shown(claim.dtypes))
    return {line: dtypes for line, (_, dtypes) in by_line.items()}


def expected(path: Path) -> dict[int, str]:
    lines = enumerate(Source.read(path).lines, 1)
    return {number: line.partition("#")[2].strip() for number, line in lines if "#" in line}


def hold(path: Path) -> None:
    found = claimed(path)
    assert {line: found.get(line, "") for line in expected(path)} == expected(path)


PROGRAMS = {
    "what a class is named decides what its objects run": """
        import re

        LOSSES = {"ForClasses": lambda x: x.mean(), "ForTokens": lambda x: x.double().mean()}

        class Base:
            def __init__(self):
                found = re.findall(f"({'|'.join(LOSSES)})", self.__class__.__name__)
                self.kind = found[0] if len(found) > 0 else None

            @property
            def loss(self):
                return LOSSES[self.kind]

        class BertForTokens(Base):
            pass

        class BertForClasses(Base):
            pass

        y = BertForTokens().loss(torch.ones(2))  # float64
        y = BertForClasses().loss(torch.ones(2))  # float32
    """,
    "a dict that holds another, of which a key is there perhaps": """
        def first(settings):
            return settings["x"]

        given = {"x": torch.ones(2)}
        if unknown():
            given["z"] = 1
        y = first({"y": 2, **given})  # float32
        y = first({"y": 2, **given, "x": torch.ones(2).half()})  # float16
    """,
    "an exception comes anywhere on the way, and what was bound until then holds": """
        x = torch.ones(3)
        y = x
        try:
            y = x.half()
            torch.mm(x, x)
            y = y.double()
        except RuntimeError:
            z = y + 0  # float16|float32|float64
        w = y + 0  # float16|float32|float64
        for i in range(2):
            try:
                if i == 0:
                    break
                x = x.half()
            finally:
                v = x + 0  # float32
        u = v + 0  # float32
    """,
    "one call that makes objects of several classes": """
        class Base:
            def __init__(self):
                self.v = torch.zeros(1, dtype=self.kind)

        class A(Base):
            kind = torch.float16

        class B(Base):
            kind = torch.int8

        def build(of):
            return of()

        a, b = build(A), build(B)
        c = a.v + 0  # float16
        d = b.v + 0  # int8
    """,
    "one of several modules is cast": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

        net = Net()
        head = net.fc
        head.double()
        w = net.fc.weight + 0  # float64
        net.fc = nn.Linear(4, 4)
    """,
    "a weight gets other data by way of a dict, or by its name": """
        m = nn.Linear(2, 2)
        named = dict(m.named_parameters())
        named["weight"].data = named["weight"].data.half()
        w = m.weight + 0  # float16
        k = torch.zeros(2)
        setattr(k, "data", k.data.half())
        v = k + 0  # float16|float32
    """,
    "a buffer that is None on some paths is cast with its module": """
        class Rotary(nn.Module):
            def __init__(self, cached):
                super().__init__()
                if cached:
                    self.register_buffer("table", torch.ones(2))
                else:
                    self.table = None

        rotary = Rotary(open("cached"))
        rotary.bfloat16()
        a = rotary.table.detach()  # bfloat16
    """,
    "modules that get out of sight in a container may be called with anything": """
        class Layer(nn.Module):
            def forward(self, x):
                return x

            def again(self, x):
                y = self.forward(x)
                return y  # float32

        layers = nn.ModuleList([Layer(), Layer()])
        open("peer").send(layers)
        a = layers[0](torch.ones(2))  # float32
        if __name__ == "__main__":
            print(layers[0].again(torch.ones(2)))
    """,
    "a default that a dict is given leaves alone what is there": """
        def made(**options):
            options.setdefault("dtype", torch.float16)
            options.setdefault("device", "cpu")
            return torch.ones(2, **options)

        a = made()  # float16
        b = made(dtype=torch.float64)  # float64
        kept = {"first": torch.ones(2)}
        kept.setdefault("first", torch.ones(2).half())
        kept.setdefault("second", torch.ones(2).half())
        c = kept["first"]  # float32
        d = kept["second"]  # float16
        kept.setdefault(open("name"), torch.ones(2).int())
        e = kept[open("other")]  # float16|float32|int32
    """,
    "what a dict written as a loop holds is known, though its keys are not": """
        model = nn.Linear(2, 2).bfloat16()
        named = {name: weight for name, weight in model.named_parameters()}
        trained = {name: weight for name, weight in named.items() if open(name)}
        for name, weight in trained.items():
            a = weight.detach()  # bfloat16
        b = named["weight"]  # bfloat16
        c = named.get("other")
        named.update(other=torch.ones(2, dtype=torch.int32))
        d = list(named.values())[0] + 1  # bfloat16|int32
    """,
    "each operand of a chain of operators is known": """
        i, n = torch.arange(3), open("size")
        a = (
            i  # int64
            + 1  # int64
            + 2.5  # float32
            + n
        )
    """,
    "a module that is compiled and put in the place of its forward runs what its class defines": """
        class Net(nn.Module):
            def forward(self, x):
                return x.double()
        net = Net()
        net.forward = torch.compile(net)
        y = net(torch.ones(2))  # float64
        y.sum()
    """,
    "a method that is put in the place of another may be run wherever that is": """
        class Layer(nn.Module):
            def forward(self, x):
                return x

        def halved(self, x):
            return x.half()

        one = Layer()
        a = one(torch.ones(2))  # float32
        Layer.forward = halved
        b = one(torch.ones(2))  # float16

        class Other(nn.Module):
            def forward(self, x):
                return x

        setattr(Other, "forward", open)
        x = torch.ones(2)
        c = Other()(x)
        d = c + 1  #
    """,
    "a method that a class is given is bound to its instances": """
        class Layer(nn.Module):
            pass

        def halved(self, x):
            return x.half()

        Layer.forward = halved
        a = Layer()(torch.ones(2))  # float16
    """,
    "a weight that two layers share is cast with either": """
        embedding = nn.Embedding(4, 4)
        head = nn.Linear(4, 4, bias=False)
        head.weight = embedding.weight
        a = embedding.weight  # float32
        head.half()
        b = embedding.weight  # float16
        both = nn.ModuleList([embedding, head]).bfloat16()
        c = embedding.weight  # bfloat16
    """,
    "a shallow copy of a module has the same weights, a deep one its own": """
        import copy
        shallow, deep = nn.Linear(2, 2), nn.Linear(2, 2)
        copy.copy(shallow).half()
        copy.deepcopy(deep).half()
        a = shallow.weight  # float16
        b = deep.weight  # float32
    """,
    "type casts the whole numbers of a module, too": """
        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ids", torch.arange(3))

        halved, typed = Table(), Table()
        halved.half()
        typed.type(torch.float16)
        a = halved.ids  # int64
        b = typed.ids  # float16
    """,
    "a function is read for what it is given": """
        def double(x):
            return x * 2  # float16|float32

        a = double(torch.ones(2))  # float32
        b = double(torch.ones(2).half())  # float16
        a.sum()
    """,
    "a module's weights have the dtype that it was last cast to": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)
                self.scale = nn.Parameter(torch.ones(4))
                self.register_buffer("shift", torch.zeros(4))
                self.plain = torch.ones(4)

            def forward(self, x):
                return self.fc(x)

        net = Net().half()
        y = net.fc.weight  # float16
        y = net.scale  # float16
        y = net.shift  # float16
        y = net.plain  # float32
        net.fc.float()
        y = net.fc.weight  # float32
        y = net.scale  # float16
        net.bfloat16()
        y = net.fc.weight  # bfloat16
        y = net(unknown())  # bfloat16
        y.sum()
    """,
    "an embedding has the dtype of its table, wherever that stands among the arguments": """
        from torch.nn import functional as F

        i, table, half = torch.ones(4).long(), torch.ones(3, 4).int(), torch.ones(3, 4).half()
        y = F.embedding(i, table)  # int32
        y = F.embedding(weight=half, input=i)  # float16
        y = torch.embedding(half, i)  # float16
        y = F.embedding(table, torch.ones(4, 4).long())  # int64
        y = F.embedding(i, unknown())  #
        y.sum()
    """,
    "einsum multiplies matrices of one dtype, promotes where it sums over nothing, and sums as sum() does": """
        x, half = torch.ones(2, 2), torch.ones(2, 2).half()
        y = torch.einsum("ij,jk->ik", half, half)  # float16
        y = torch.einsum("ij,jk->ik", [x, x])  # float32
        y = torch.einsum("ij->i", half)  # float16
        y = torch.einsum("i,j->ij", x, half)  # float32
        y = torch.einsum("ij,jk->ik", half, unknown())  # float16
        y = torch.einsum("ij->i", x > 0)  # int64
        y = torch.einsum("ij->ji", x > 0)  # bool
        y = torch.einsum(unknown(), x > 0)  # bool|int64
        with torch.autocast("cpu", torch.bfloat16):
            y = torch.einsum("ij,jk->ik", x, x)  # bfloat16
        y.sum()
    """,
    "einops moves values, and reduces them as torch does": """
        import einops
        from einops import rearrange, reduce, repeat as copies
        x, ints = torch.ones(2, 2).half(), torch.ones(2, 2).long()
        y = rearrange(x, "a b -> b a")  # float16
        y = rearrange([x, x], "a b c -> b a c")  # float16
        y = copies(ints, "a b -> a b c", c=2)  # int64
        y = reduce(x, "a b -> a", "mean")  # float16
        y = reduce(tensor=ints.int(), pattern="a b -> a", reduction="sum")  #
        y = reduce(ints.int(), "a b -> a", "max")  # int32
        y = einops.einsum(x, x, "a b, b c -> a c")  # float16
        y.sum()
    """,
    "what torch gives in pairs is found by name": """
        x = torch.ones(2, 2).half()
        y = x.max(dim=1).values  # float16
        y = torch.topk(x, 1).indices  # int64
        y = torch.linalg.eigh(torch.eye(2)).eigenvectors  # float32
        pair = (x, x)
        y = unknown().values  #
        y.sum()
    """,
    "a function is run by checkpoint with the rest of its arguments": """
        from torch.utils.checkpoint import checkpoint
        net = nn.Linear(2, 2).half()
        def scaled(x, by=1):
            return x * by  # bfloat16|float32
        x = torch.ones(2, 2)
        y = checkpoint(scaled, x, 2, use_reentrant=False)  # float32
        y = checkpoint(scaled, by=2, x=x.bfloat16())  # bfloat16
        y = checkpoint(net, unknown())  # float16
        y = checkpoint(unknown, 1)  #
        y.sum()
    """,
    "Python's sum begins with 0": """
        x, truth = torch.ones(2).half(), torch.ones(2).bool()
        y = sum([x, x])  # float16
        y = sum([truth])  # int64
        y = sum([truth, x])  # float16
        y = sum(x * 2 for _ in range(3))  # float16
        y = sum([x, unknown()])  #
        y.sum()
    """,
    "numbers that are computed make tensors of the default dtype": """
        x = torch.ones(2).half()
        y = torch.tensor([x.sum().item(), 1])  # float32
        y = torch.tensor([[len(x)], [2]])  # int64
        y = torch.tensor([len(x) / 2 for _ in x])  # float32
        y = torch.tensor([len(x) for _ in unknown()])  # int64
        y = torch.tensor([x.sum().item(), unknown()])  #
        y = x.new_tensor([1, len(x)])  # float16
        y.sum()
    """,
    "dataclasses.replace makes another, with other fields": """
        import dataclasses

        @dataclasses.dataclass
        class Config:
            dtype: torch.dtype

            def __post_init__(self):
                self.scale = torch.ones(2, dtype=self.dtype)  # float16|float64

        config = Config(torch.float16)
        other = dataclasses.replace(config, dtype=torch.float64)
        a = other.scale + 0  # float64
        a.sum()
    """,
    "a container is changed under each of its names": """
        held = {"a": torch.ones(1)}
        same = held
        same.update(a=torch.ones(1).int())
        a = held["a"] + 0  # int32
        kept = {"a": torch.ones(1)}
        again = kept
        again["a"] = torch.ones(1).half()
        b = kept["a"] + 0  # float16
        tensors = [torch.ones(2)]
        others = tensors
        others[0] = others[0].double()
        c = tensors[0] + 0  # float64
        a.sum()
    """,
    "a global that a function assigns": """
        total, other = torch.zeros(1), torch.zeros(1)

        def widen():
            global total
            total = total.double()

        widen()
        a = total + 1  # float32|float64
        b = other + 1  # float32
        a.sum()
    """,
    "two of one class have layers of their own": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.norm = nn.LayerNorm(2)

        def make(size):
            return nn.Linear(size, size)

        student, teacher = Net(), Net()
        student.half()
        a = teacher.fc.weight  # float32
        b = student.fc.weight  # float16
        c = student.norm(torch.ones(1, 2).half())  # float16
        query, key = make(2), make(2)
        query.half()
        d = key.weight  # float32
        a.sum()
    """,
    "what a module is given after a cast is not cast": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

        net = Net().half()
        net.head = nn.Linear(2, 2)
        a = net.head.weight  # float32
        b = net.fc.weight  # float16
        net.register_parameter("scale", nn.Parameter(torch.ones(2)))
        c = net.scale  # float32
        a.sum()
    """,
    "weights that are replaced one by one": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.plain = torch.ones(2)

        net = Net()
        for p in net.parameters():
            p.data = p.data * 0.5
        a = net.fc.weight  # float32
        for p in net.parameters():
            p.data = p.data.bfloat16()
        b = net.fc.weight  # bfloat16|float32
        c = net.plain  # float32
        tied = nn.Linear(2, 2)
        d = tied.bias  # float32
        tied.weight = nn.Parameter(torch.ones(2, 2).double())
        e = tied.weight + 0  # float64
        t = torch.ones(2)
        t.data = t.data.half()
        f = t  # float16|float32
        loaded = Net()
        loaded.load_state_dict(torch.load("net.pt"), assign=True)
        g = loaded.fc.weight  #
        a.sum()
    """,
    "a product of matrices is no change in place": """
        x = torch.ones(3, 3)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x @= x
            y = x  # bfloat16
            z = torch.inner(x.float(), x.float()) + 0  # float32
            w = F.pad(x.float(), (1, 1))  # float32
            v = nn.Bilinear(3, 3, 1)(x.float(), x.float()) + 0  #
        y.sum()
    """,
    "operands that must agree": """
        x = torch.randn(2, 2)
        y = torch.matmul(x, unknown())
        z = nn.Linear(2, 2)(unknown())  # float32
        z.sum()
    """,
    "autocast": """
        x, fc, norm = torch.randn(2, 2), nn.Linear(2, 2), nn.LayerNorm(2)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = fc(x)  # bfloat16
            z = torch.matmul(x, x)  # bfloat16
            w = torch.exp(y)  # bfloat16
            loss = F.mse_loss(y, x)  # float32
            with torch.autocast("cpu", enabled=False):
                v = fc(x)  # float32
        y.sum()
    """,
    "containers of modules": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
                self.parts = nn.ModuleDict(dict(head=nn.Linear(2, 2)))
                self.more = nn.ModuleList()
                self.more.append(nn.Linear(2, 2))
                self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)  # float32
                x = self.parts.head(x)  # float32
                x = self.layers[0](x)  # float32
                for layer in self.more:
                    x = layer(x)  # float32
                return self.body(x)  # float32

        y = Net()(torch.ones(2))  # float32
        y.sum()
    """,
    "arguments through wrappers": """
        import functools

        def checked(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                kwargs.pop("verbose", None)
                return function(*args, **kwargs)
            return wrapper

        @checked
        def scale(x, by=None):
            if by is not None:
                x = x * by
            return x

        y = scale(torch.ones(2).half(), verbose=True)  # float16
        z = scale(torch.ones(2).half(), by=torch.ones(2))  # float32
        y.sum()
    """,
    "what code may call that is not seen is read with everything unknown": """
        def hook(x):
            return x * 2

        register(hook)
        y = hook(torch.ones(2))
        y.sum()
    """,
    "what a loop leaves behind is known before it begins": """
        x = y = torch.ones(2)
        for _ in range(3):
            x = y  # float16|float32
            y = y.half()  # float16
        x.sum()
    """,
    "lists that grow are unknown": """
        xs = [torch.ones(2)]
        xs.append(torch.ones(2).half())
        y = xs[0]
        y.sum()
    """,
    "options decide which branch is read": """
        def run(x, **options):
            if options.pop("half", False):
                x = x.half()
            for name in ("first", "second"):
                if name == "second" and options.get("double") is not None:
                    x = x.double()
            return x

        a = run(torch.ones(2))  # float32
        b = run(torch.ones(2), half=True)  # float16
        c = run(torch.ones(2), double=1)  # float64
        a.sum()
    """,
    "properties, their setters, and dataclasses": """
        from dataclasses import dataclass, fields

        @dataclass
        class Options:
            kind: str = "float"
            wide: bool = False

            def __post_init__(self):
                self.chosen = None

            @property
            def chosen(self):
                return self._chosen

            @chosen.setter
            def chosen(self, value):
                self._chosen = torch.zeros(2).half() if self.wide else torch.zeros(2)

        x = Options().chosen  # float32
        y = Options(wide=True).chosen  # float16
        for field in fields(Options()):
            if field.name == "wide":
                z = torch.ones(2).double()  # float64
        x.sum()
    """,
    "what is appended to a list is in it": """
        class Cache:
            def __init__(self):
                self.seen = []

            def add(self, x):
                self.seen.append(x)

        cache = Cache()
        cache.add(torch.ones(2).half())
        y = torch.cat(cache.seen)  # float16
        many = []
        for i in range(3):
            many.append(torch.ones(2))
        z = torch.stack(many)  # float32
        filled = {}
        def fill(into):
            into["x"] = torch.ones(2).half()
        fill(filled)
        w = filled.get("x", torch.ones(2))
        y.sum()
    """,
    "a context manager opens what its body has open where it yields": """
        from contextlib import contextmanager

        @contextmanager
        def lower():
            with torch.autocast("cpu", torch.bfloat16):
                yield

        @contextmanager
        def quiet():
            yield 1

        x = torch.ones(2, 2)
        with lower():
            y = x @ x  # bfloat16
        with quiet():
            y = x @ x  # float32
        y.sum()
    """,
    "an optimizer calls the closure that it is given": """
        net = nn.Linear(2, 2)
        net.double()
        optimizer = torch.optim.LBFGS(net.parameters())
        def closure():
            return net(torch.ones(2).double()).sum()  # float64
        optimizer.step(closure)
    """,
    "layers of unknown number": """
        def build(depth):
            layers = [nn.Linear(2, 2)]
            for i in range(depth):
                layers.append(nn.Linear(2, 2))
                layers.append(nn.ReLU())
            return nn.Sequential(*layers)

        net = build(int(unknown()))
        y = net(torch.ones(2))  # float32
        y.sum()
    """,
    "a field of a dataclass holds what was given until it is assigned to": """
        from dataclasses import dataclass

        @dataclass
        class Text:
            half: bool = False

        @dataclass
        class Config:
            text: dict | None = None

            def __post_init__(self):
                given = {} if self.text is None else self.text
                self.text = Text(**given)

        x = torch.ones(2)
        y = x.half() if Config(text=dict(half=True)).text.half else x  # float16
        y.sum()
    """,
    "a copy goes its own way": """
        import copy

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.more = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

            def forward(self, x):
                return self.more(self.fc(x))

        net = Net()
        half = copy.deepcopy(net).half()
        y = net(torch.ones(2))  # float32
        y = half(torch.ones(2).half())  # float16
        y = half.more[0].weight  # float16
        y = copy.deepcopy(half)(unknown())  # float16
        y.sum()
    """,
    "a list of layers that is filled where it is made": """
        class Block(nn.Module):
            def __init__(self, cross):
                super().__init__()
                self.layers = nn.ModuleList()
                self.layers.append(nn.Embedding(4, 4))
                if cross:
                    self.layers.append(nn.Linear(4, 4))
                self.layers.append(nn.LSTM(4, 4))

            def forward(self, x):
                x = self.layers[0](x)  # float32
                return self.layers[-1](x)[0]  # float32

        y = Block(cross=True)(torch.ones(2, dtype=torch.long))
        y.sum()
    """,
    "a list of layers that may be filled otherwise": """
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList()
                if unknown():
                    self.layers.append(nn.Identity())
                self.layers.append(nn.Embedding(4, 4))

            def forward(self, x):
                return self.layers[0](x)  # float32|int64

        y = Block()(torch.ones(2, dtype=torch.long))
        y.sum()
    """,
    "attributes that a loop over keywords sets": """
        class Config:
            def __init__(self, **kwargs):
                for name in ("a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q"):
                    kwargs.pop(name, None)
                for name, value in kwargs.items():
                    setattr(self, name, value)

        config = Config(a=1, half=False)
        x = torch.ones(2)
        y = x.half() if config.half else x  # float32
        y.sum()
    """,
    "a class is no tuple": """
        KINDS = {"relu": nn.ReLU, "gelu": (nn.GELU, {"approximate": "tanh"})}

        def make(name):
            found = KINDS[name]
            kind, given = found if isinstance(found, tuple) else (found, {})
            return kind(**given)

        y = make("relu")(torch.ones(2))  # float32
        y.sum()
    """,
    "batches of a dataset": """
        import numpy as np
        from torch.utils.data import DataLoader, Dataset, TensorDataset

        class Numbers(Dataset):
            def __len__(self):
                return 4

            def __getitem__(self, index):
                return torch.ones(2), 1, 0.5, {"mask": np.zeros(3, dtype=np.uint8)}

        def together(items):
            return torch.stack([x.half() for x, *_ in items])

        for x, count, weight, extra in DataLoader(Numbers(), batch_size=2):
            x.sum()  # float32
            count.sum()  # int64
            weight.sum()  # float64
            extra["mask"] * 2  # uint8
        for x in DataLoader(Numbers(), collate_fn=together):
            x.sum()  # float16
        pairs = TensorDataset(torch.ones(4, 2), torch.arange(4))
        for batch in DataLoader(pairs, shuffle=True):
            batch[0] * 2  # float32
            batch[1] * 2  # int64
        for x, *_ in DataLoader(Numbers(), batch_size=None):
            x * 2
    """,
    "all weights of a module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.rest = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
                self.apply(self.start)

            def start(self, module):
                if isinstance(module, nn.Linear):
                    module.weight.sum()  # float32

            def forward(self, x):
                return self.rest(self.fc(x))

        net = Net()
        for p in net.parameters():
            p * 2  # float32
        y = nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # float32
        net.half()
        for name, p in net.named_parameters():
            p * 2  # float16
        net.fc.float()
        for p in net.parameters():
            p * 2  # float16|float32
    """,
    "weights of a module of which a part is not known": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.rest = unknown()

        net = Net()
        for p in net.parameters():
            p * 2  # float32
        y = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        y.sum()
    """,
    "a region that may be off": """
        from contextlib import nullcontext

        fc = nn.Linear(2, 2)
        region = torch.autocast("cpu", dtype=torch.bfloat16)
        with nullcontext():
            y = fc(torch.ones(2))  # float32
        with region if unknown() else nullcontext():
            y = fc(torch.ones(2))  # bfloat16|float32
        autocast_context = unknown()
        with autocast_context:
            y = fc(torch.ones(2))
        with unknown():
            y = fc(torch.ones(2))  # float32
        y.sum()
    """,
    "numbers that torch and Python compute": """
        x = torch.ones(2, dtype=torch.long)
        y = x * (7 // 2)  # int64
        y = x * torch.iinfo(torch.int32).max  # int64
        y = torch.ones(2).half().clamp(min=torch.finfo(torch.float16).min)  # float16
        y.sum()
    """,
    "weights that a loop over all modules starts": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
                self.head = nn.Linear(4, 2)
                for m in self.modules():
                    if isinstance(m, nn.Conv2d):
                        nn.init.kaiming_normal_(m.weight)  # float32
                    elif isinstance(m, (nn.BatchNorm2d, nn.Linear)):
                        nn.init.orthogonal_(m.weight, unknown())  # float32

            def forward(self, x):
                return self.head(self.body(x))

        net = Net()
        y = net(unknown())  # float32
        y.sum()
    """,
    "draws from a categorical distribution": """
        from torch.distributions import Categorical

        draw = Categorical(torch.softmax(torch.ones(3), 0))
        action = draw.sample()
        y = action * 2  # int64
        y = draw.log_prob(action)  # float32
        y.sum()
    """,
    "layers that are appended to a Sequential are run": """
        body = nn.Sequential(nn.Identity())
        body.append(nn.Linear(2, 2))
        y = body(torch.ones(2).double())
        y.sum()
    """,
    "what `:=` binds is bound once, and perhaps where evaluation may not get": """
        def f(k):
            y = torch.zeros(1)
            if k and (y := y.half()).numel() > 5:
                pass
            return y

        for i in range(2):
            y = f(i)  # float16|float32
        x = torch.zeros(3, dtype=torch.long)
        t = torch.zeros(5)
        if (x := t[
            x  # int64
        ]).sum() > 1:
            pass
        z = torch.zeros(1)
        any((z := z.double()) is not None for i in range(unknown()))
        y = z + 1  # float32|float64
        y.sum()
    """,
    "a case whose guard says no has bound its names, and what runs in one is no matter of the next": """
        def f(mode, flag):
            x = torch.ones(2)
            match mode:
                case "a" if flag:
                    mode = "b"
                    return x.double()
                case "a":
                    return x.half()
            return x

        y = f("a", unknown())  # float16|float64

        def g(n):
            match torch.ones(2).half():
                case x if n:
                    return 1
            y = x + 1  #

        g(0)

        def h(k):
            x = torch.ones(2)
            match k:
                case 1 | 2:
                    x = x.half()
            return x

        y = h(1.0)  # float16
        y = h(True)  # float16
        y = h(3)  # float32
        n = 1
        match (n := n + 1):
            case 2:
                y = torch.ones(2).half()
            case _:
                y = torch.ones(2).double()
        z = y + 0  # float16

        class W:
            def __init__(self):
                self.inner = torch.ones(2)

            def __call__(self, x):
                return x.half()

        def k(x):
            match x:
                case W(inner=x):
                    y = x + 0  # float32
                    return x
            return None

        def low(layer):
            match layer:
                case nn.Linear() as linear:
                    return linear.half()

        k(W())
        y = low(nn.Linear(1, 1)).weight * 2  # float16
        y = low(nn.Linear(1, 1))(torch.ones(1, 1).half())  # float16
        y.sum()
    """,
    "of the cases of a match the one runs that matches": """
        class Wide: pass

        def dtype_of(mode):
            match mode:
                case "half" | "fp16":
                    return torch.float16
                case "bf16" if torch.cuda.is_available():
                    return torch.bfloat16
                case None:
                    return torch.int8
                case _:
                    return torch.float32

        def dtype_for(model):
            match model:
                case nn.Module():
                    return torch.float16
                case Wide():
                    return torch.float64
                case {"dtype": dtype}:
                    return dtype

        y = torch.ones(2, dtype=dtype_of("fp16"))  # float16
        y = torch.ones(2, dtype=dtype_of("bf16"))  # bfloat16|float32
        y = torch.ones(2, dtype=dtype_of(None))  # int8
        y = torch.ones(2, dtype=dtype_for(Wide()))  # float64
        y = torch.ones(2, dtype=dtype_for(nn.Linear(2, 2)))  # float16
        y = torch.ones(2, dtype=dtype_for({"dtype": torch.int8}))  #
        y = torch.ones(2, dtype=dtype_of(unknown()))  # bfloat16|float16|float32|int8

        def up(x):
            match x.dtype:
                case torch.float16 | torch.bfloat16:
                    return x.float()
                case torch.float32:
                    return x.double()
            return x

        y = up(torch.ones(2).half())  # float32
        y = up(torch.ones(2))  # float32|float64
        y = up(torch.arange(2))  # float32|float64|int64
        y.sum()
    """,
    "what NumPy is told": """
        import numpy as np

        data = np.memmap(unknown(), dtype=np.uint16, mode="r")
        y = torch.from_numpy(data[2:].astype(np.int64))  # int64
        y = torch.from_numpy(unknown().astype(np.float32))  #
        y.sum()
    """,
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs(source: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(HEAD + textwrap.dedent(source))
    hold(path)


def test_imports_are_followed(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from .model import *\n")
    (package / "model.py").write_text(
        "import torch.nn as nn\n__all__ = ['Net']\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n"
        "    def forward(self, x):\n        return self.fc(x)\n"
    )
    program = tmp_path / "program.py"
    program.write_text(
        HEAD
        + "import package\nfrom package import Net\ny = Net()(0)  # float32\nz = package.Net().half()(0)  # float16\ny.sum()\n"
    )
    hold(program)
    found = claims(program, [tmp_path])
    assert [shown(claim.dtypes) for claim in found[package / "model.py"]] == ["float16|float32"]


@pytest.mark.parametrize(
    "change",
    [
        "from settings import CFG\nCFG['dtype'] = torch.int8",
        "import settings\nsettings.CFG['dtype'] = torch.int8",
        "import settings\ncfg = settings.CFG\ncfg['dtype'] = torch.int8",
        "import settings\ncfg = settings.CFG\ncfg.update(dtype=torch.int8)",
        "from settings import CFG as cfg\ndef change():\n    cfg['dtype'] = torch.int8\nchange()",
        "import settings\ndef change(cfg):\n    cfg['dtype'] = torch.int8\nchange(settings.CFG)",
    ],
)
def test_a_dict_of_another_module_is_changed_under_any_name(change: str, tmp_path: Path) -> None:
    (tmp_path / "settings.py").write_text(
        "import torch\nCFG = {'dtype': torch.float16}\ndef build():\n    return torch.zeros(1, dtype=CFG['dtype'])\n"
    )
    program = tmp_path / "program.py"
    program.write_text(f"{HEAD}{change}\nfrom settings import build\nx = build()\ny = x * 2\n")
    found = {claim.span.line: claim.dtypes for claim in claims(program, [tmp_path])[program]}
    last = max(found)
    assert found[last] is None or found[last] >= {"int8"}


def test_functions_of_a_library_are_read_for_anybody(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + "def half(x):\n    return x.half()\n\ndef attend(q: torch.Tensor):\n    m = torch.ones(3)  # bfloat16|float16|float32|float64\n    return q.float()  # float32\n\nDEFAULT = attend(torch.ones(2).half())  # float32\n"
    )
    hold(library)


def test_a_package_that_speaks_of_torch_below_its_top_is_followed(tmp_path: Path) -> None:
    package = tmp_path / "site" / "package"
    (package / "models").mkdir(parents=True)
    (package / "__init__.py").write_text("from .models.net import build\n")
    (package / "models" / "__init__.py").write_text("")
    (package / "models" / "net.py").write_text("import torch.nn as nn\ndef build():\n    return nn.Linear(2, 2)\n")
    program = tmp_path / "program.py"
    program.write_text(HEAD + "from package import build\ny = build()(0)  # float32\ny.sum()\n")
    found = claims(program, [tmp_path, tmp_path / "site"])
    assert [shown(claim.dtypes) for claim in found[program]][:1] == ["float32"]


def test_a_package_has_filled_its_tables_before_a_module_of_it_is_used(tmp_path: Path) -> None:
    package = tmp_path / "site" / "package"
    (package / "kinds").mkdir(parents=True)
    (package / "__init__.py").write_text("import torch\n")
    (package / "table.py").write_text("KINDS = {}\ndef register(name, kind):\n    KINDS[name] = kind\n")
    (package / "kinds" / "__init__.py").write_text(
        "from ..table import register\nfrom .half import Half\n\nregister('half', Half)\n"
    )
    (package / "kinds" / "half.py").write_text(
        "import torch\nclass Half:\n    def __call__(self, x):\n        return x.half()\n"
    )
    program = tmp_path / "own" / "program.py"
    program.parent.mkdir()
    program.write_text(
        HEAD
        + "from package.kinds.half import Half\nfrom package.table import KINDS\n"
        + "x = Half()(torch.ones(2))\ny = KINDS['half']()(x.float())  # float16\ny.sum()\n"
    )
    found = claims(program, [program.parent, tmp_path / "site"])[program]
    assert [shown(claim.dtypes) for claim in found if claim.span.line == 6] == ["float16", "float16"]


def test_sizes_of_a_library_are_whole_numbers(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + textwrap.dedent("""
            class Embeddings(nn.Module):
                def __init__(self, config):
                    super().__init__()
                    self.words = nn.Embedding(config.places, config.width)
                    self.places = nn.Buffer(torch.arange(config.places), persistent=False)  # int64
                    other = torch.arange(config.other)  #
                    if x := config.layers:
                        self.more = nn.Linear(config.perhaps, 4)
                    unsure = torch.arange(config.perhaps)  #
                    config.depth = x
                    self.deep = nn.Linear(config.depth, config.width)
                    bound = torch.arange(config.depth)  #

                def forward(self, x):
                    steps = torch.arange(x.shape[1])  # int64
                    variance = x.to(torch.float32).pow(2).mean(-1)  # float32
                    batch = x.to(torch.float16)  # float16
                    return self.places + steps  # int64

            class Model(nn.Module):
                def __init__(self, config):
                    super().__init__()
                    self.embeddings = Embeddings(config)

                def forward(self, x):
                    return self.embeddings(x)  # int64
        """)
    )
    hold(library)


def test_a_package_that_is_not_there_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()  # the environment of the program is known by its torch
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "try:\n    import dtlint_absent_package\n    x = torch.ones(2).half()\n"
        "except ImportError:\n    x = torch.ones(2)\ny = x + 1  # float32\ny.sum()\n"
    )
    hold(program)


@pytest.mark.parametrize(
    "guarded",
    [
        "try:\n    import dtlint_absent_package\n    x = torch.ones(2).half()\nexcept:\n    x = torch.ones(2)\n",
    ],
)
def test_no_code_is_read_that_stands_behind_the_import_of_such_a_package(tmp_path: Path, guarded: str) -> None:
    (tmp_path / "torch").mkdir()
    program = tmp_path / "program.py"
    program.write_text(HEAD + "import contextlib\n" + guarded + "y = x + 1  # float32\ny.sum()\n")
    hold(program)


def test_a_program_that_needs_a_package_is_read_as_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "import dtlint_absent_package\nfrom dtlint_absent_package import other\n"
        "x = torch.ones(2).half()\ny = x + 1  # float16\nother(y.sum())\n"
    )
    hold(program)


def test_without_torch_any_package_may_be_there(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "try:\n    import dtlint_absent_package\n    x = torch.ones(2).half()\n"
        "except ImportError:\n    x = torch.ones(2)\ny = x + 1  # float16|float32\ny.sum()\n"
    )
    hold(program)


def test_a_library_is_claimed_only_what_no_caller_changes(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + textwrap.dedent("""
            class Net(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.eps = 1e-6
                    self.register_buffer("places", torch.arange(size))  # int64

                def forward(self, x, input_ids: torch.LongTensor | None = None, mask: torch.LongTensor | None = None):
                    wide = x.float()  # float32
                    squares = wide.pow(2).mean(-1) + self.eps  # float32
                    product = wide @ wide
                    with torch.autocast(x.device.type, enabled=False):
                        apart = wide @ wide
                    with torch.autocast("cuda", enabled=False):
                        there = wide @ wide
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        small = wide.half().exp()
                    half = x.half()  # float16
                    turned = 1.0 / half
                    odds = F.softmax(x, -1, dtype=torch.float32)  # float32
                    both = torch.cat([wide, odds])
                    found = torch.argmax(x, -1)  # int64
                    alike = x == found  # bool
                    count = (~alike & alike).cumsum(0)  # int64
                    shifted = input_ids[:, 1:] + self.places
                    hidden = mask + self.places
                    return odds
        """)
    )
    hold(library)


def test_a_loop_that_fills_a_table_makes_no_program(tmp_path: Path) -> None:
    text = "import torch\nSIZES = {}\nfor n in (1, 2):\n    SIZES[n] = n\n\ndef f(n):\n    return torch.zeros(n)\n"
    path = tmp_path / "library.py"
    path.write_text(text)
    assert claimed(path)[7] == "bfloat16|float16|float32|float64"  # whatever its user has made the default
    path.write_text(text.replace("SIZES[n] = n", "print(n)"))
    assert 7 not in claimed(path)  # a program that never calls it


def test_a_program_that_takes_too_long_to_read_is_claimed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dtlint.infer.interproc.engine.STEPS", 300)
    script = tmp_path / "loops.py"
    loops = "".join("    " * depth + f"for i{depth} in range(3):\n" for depth in range(15))
    script.write_text(f"import torch\nx = torch.zeros(3)\n{loops}{'    ' * 15}y = x + 1\n")
    reading = read(script, [tmp_path])
    assert reading.broken_off
    assert not reading.tensors


def test_a_layer_that_ever_more_modules_share_is_read_in_no_time(tmp_path: Path) -> None:
    """There are two to the power of 30 chains of owners above it."""
    layers = "".join(f"a{n} = Pair(a{n - 1}, b{n - 1})\nb{n} = Pair(b{n - 1}, a{n - 1})\n" for n in range(1, 30))
    source = f"""
class Pair(nn.Module):
    def __init__(self, one, other):
        super().__init__()
        self.one, self.other = one, other

layer = nn.Linear(2, 2)
a0 = Pair(layer, layer)
b0 = Pair(layer, layer)
{layers}a29.half()
weight = layer.weight  # float16
layer(torch.ones(1, 2).half())  # float16
"""
    path = tmp_path / "program.py"
    path.write_text(HEAD + source)
    hold(path)


def test_all_tensors_of_a_line_are_claimed(tmp_path: Path) -> None:
    """What a method is called on, what has an attribute, and what is handed over: none goes without a claim."""
    path = tmp_path / "line.py"
    path.write_text("import torch\nx = torch.zeros(3)\ny = torch.add(x.T.half(), other=x)\n")
    text = path.read_text().splitlines()
    found = {
        text[claim.span.line - 1][claim.span.column : claim.span.end_column]: shown(claim.dtypes)
        for claim in claims(path, [tmp_path])[path]
        if claim.span.line == 3
    }
    assert found == {
        "x": "float32",
        "x.T": "float32",
        "x.T.half()": "float16",
        "torch.add(x.T.half(), other=x)": "float32",
    }


def test_what_a_line_takes_its_dtype_from_is_named_for_all_its_tensors(tmp_path: Path) -> None:
    path = tmp_path / "library.py"
    path.write_text("import torch\n\ndef f(x: torch.Tensor):\n    return torch.relu(x.T)\n")
    named = [claim for claim in claims(path, [tmp_path])[path] if claim.symbolic is not None]
    assert {claim.symbolic for claim in named} == {"the dtype of `x`", "the dtype of `x`, unless that is bool"}
    assert [(claim.span.column, claim.span.end_column) for claim in named] == [(11, 26), (22, 23), (22, 25)]


def test_a_class_body_that_asks_for_another_module_leaves_that_its_names(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(
        "import torch\nVALUE = torch.zeros(3, dtype=torch.float16)\n\ndef late():\n    return VALUE + 1\n"
    )
    path = tmp_path / "main.py"
    path.write_text(
        HEAD
        + textwrap.dedent("""
            import helper

            class Held:
                early = helper.VALUE + 1  # float16
                from helper import late
                made = late()  # float16

            print(Held.early, helper.late())  # float16
        """)
    )
    hold(path)


@pytest.mark.parametrize(
    "change",
    [
        "vars(held)['weight'] = other",
        "vars(held).update(weight=other)",
        "held.__dict__['weight'] = other",
        "held.__dict__.update(weight=other)",
        "table = held.__dict__; table['weight'] = other",
        "object.__setattr__(held, 'weight', other)",
    ],
)
@pytest.mark.parametrize("place", ["self.weight = torch.zeros(3)", "pass"])
def test_attributes_are_changed_in_the_dict_behind_them(change: str, place: str, tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(
        HEAD
        + textwrap.dedent(f"""
            class Held:
                weight = torch.zeros(3)

                def __init__(self):
                    {place}

                def read(self):
                    return self.weight

            other = torch.zeros(3, dtype=torch.float16)
            held = Held()
            {change}
            read = held.read()
            plain = held.weight
        """)
    )
    assert "float32" not in [claimed(path).get(line) for line in (15, 16)]


def test_a_dict_of_attributes_that_is_only_read_changes_none(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(
        HEAD
        + textwrap.dedent("""
            class Held:
                def __init__(self):
                    self.weight = torch.zeros(3)

            held = Held()
            print({**vars(held)}, dict(held.__dict__), "weight" in held.__dict__, held.__dict__["weight"])
            for name, value in vars(held).items():
                print(name)
            print(held.weight + 1)  # float32
        """)
    )
    hold(path)


@pytest.mark.parametrize(
    "cast",
    [
        "nn.Module.half(layer)",
        "getattr(layer, 'half')()",
        "[getattr(layer, method)() for method in ('double', 'half')]",
        "layer.__setattr__('weight', nn.Parameter(torch.zeros(3, 3, dtype=torch.float16)))",
    ],
)
def test_a_module_is_cast_by_methods_that_are_not_called_by_name(cast: str, tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(f"{HEAD}layer = nn.Linear(3, 3)\n{cast}\nweight = layer.weight\n")
    assert claimed(path).get(4) in (None, "", "float16")


def test_a_module_in_a_module_dict_may_be_stored_over(tmp_path: Path) -> None:
    path = tmp_path / "main.py"
    path.write_text(
        HEAD
        + textwrap.dedent("""
            modules = nn.ModuleDict({"a": nn.Linear(3, 3)})
            print(nn.ModuleDict({"a": nn.Linear(3, 3)})["a"].weight)  # float32
            modules["a"] = nn.Linear(3, 3).half()
            print(modules["a"].weight)  # float16
            others = nn.ModuleDict({"a": nn.Linear(3, 3)})
            others.update({"a": nn.Linear(3, 3).double()})
            print(others["a"].weight)  # float64
        """)
    )
    hold(path)


def test_a_library_looks_up_by_indices_of_its_callers(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + textwrap.dedent("""
            class Net(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.words = nn.Embedding(size, size)

                def forward(self, ids: torch.Tensor):
                    return self.words(ids)

                def perhaps(self, ids: torch.Tensor | None = None):
                    return self.words(ids)

            def look_up(ids: torch.Tensor, weight: torch.Tensor):
                return F.embedding(ids, weight)

            class Model(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.net = Net(size)

                def forward(self, ids: torch.LongTensor | None = None, labels: "torch.LongTensor | None" = None):
                    hidden = self.net(ids)
                    flat = ids.view(-1)  # int64
                    wanted = labels.float()
                    other = labels.view(-1)
                    return hidden, flat

            def apart(ids: torch.LongTensor, mask: torch.LongTensor, x: torch.Tensor):
                first = torch.where(mask, x, ids)
                return x.gather(-1, ids)
        """)
    )
    found = claimed(library)
    lines = {text.strip(): found.get(number, "") for number, text in enumerate(library.read_text().splitlines(), 1)}
    assert lines["flat = ids.view(-1)  # int64"] == "int64"
    assert lines["other = labels.view(-1)"] == ""
    assert lines["return self.words(ids)"] == ""  # of its weight's dtype
    assert lines["return F.embedding(ids, weight)"] == ""


def test_what_is_cast_is_a_tensor_where_modules_are_none(tmp_path: Path) -> None:
    library = tmp_path / "library.py"
    library.write_text(
        HEAD
        + textwrap.dedent("""
            def normalised(x, y, scale):
                wide = x.float()  # float32
                squares = x.to(torch.float32).pow(2).mean(-1, keepdim=True)  # float32
                frequencies = y[..., None].float() * x.to(torch.float32)  # float32
                return wide * torch.rsqrt(squares)  # float32

            def built(make):
                net = make().half()
                out = net.to("cuda")(torch.ones(2))
                return out  #
        """)
    )
    found = claimed(library)
    for number, line in enumerate(library.read_text().splitlines(), 1):
        if "  #" in line:
            assert found.get(number, "") == line.rpartition("#")[2].strip(), line
