"""What the interpreter knows: each `reveal(x)` states on its own line what `x` is.

A tensor prints as its dtypes, `?` when they are not known; anything else by its kind.
"""

from __future__ import annotations

import ast
import textwrap

import pytest

from dtlint.infer.events import Assign, Call, Discard, End, Enter, Event, Exit, Operation, Reference
from dtlint.infer.interpreter import interpret
from dtlint.infer.kinds import TENSOR_FUNCTIONS, TENSOR_LAYERS
from dtlint.infer.values import (
    Autocast,
    Constant,
    Dtype,
    DtypeOf,
    Either,
    External,
    GradScaler,
    Items,
    Module,
    Number,
    Optimizer,
    Tensor,
    Unknown,
    Value,
)

MATTERS = "import torch, torch.nn as nn, torch.nn.functional as F\n"


def shown(value: Value) -> str:
    match value:
        case Tensor(dtypes=dtypes, symbol=symbol) if symbol is not None and (dtypes is None or len(dtypes) > 1):
            return "~" + "+".join(sorted(atom.text for atom in symbol.of) + sorted(symbol.met))
        case Tensor(dtypes=None):
            return "?"
        case Tensor(dtypes=dtypes):
            return "|".join(sorted(dtypes))
        case Unknown():
            return "unknown"
        case DtypeOf(symbol=symbol) if symbol is not None:
            return f"dtype ~{symbol.sole.text if symbol.sole else '?'}"
        case Number(category=category):
            return category.name.lower()
        case Items(items=items):
            return ", ".join(map(shown, items))
        case Module(name=name):
            return f"module {name}"
        case Constant(value=constant):
            return repr(constant)
        case Dtype(name=name) | External(name=name):
            return name
        case Either(choices=choices):
            return " or ".join(shown(choice) for choice in choices)
        case Autocast():
            return f"autocast {value.device} {value.dtype} {value.enabled}"
        case GradScaler(enabled=enabled):
            return f"scaler {enabled}"
        case Optimizer():
            return "optimizer"
    return type(value).__name__.lower()


def revealed(source: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """What `reveal` showed, and what the comments on its lines say, each with its line."""
    source = MATTERS + textwrap.dedent(source)
    found: list[tuple[int, str]] = []

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        if isinstance(event.node.func, ast.Name) and event.node.func.id == "reveal":
            found.append((event.node.lineno, shown(event.args[0])))

    interpret(ast.parse(source), {Call: on_call})
    lines = enumerate(source.splitlines(), 1)
    return sorted(found), [(number, line.partition("# ")[2]) for number, line in lines if "reveal(" in line]


CASES = {
    "a module's state dict holds tensors, of any dtype; what else is called so may hold anything": """
        net = nn.Linear(2, 2)
        state = net.state_dict()
        for name, value in state.items():
            reveal(name)  # unknown
            reveal(value)  # ?
        reveal([value for value in net.state_dict().values()][0])  # ?
        reveal(state["weight"])  # ?
        for value in torch.optim.SGD(net.parameters()).state_dict().values():
            reveal(value)  # unknown
        for value in torch.load("model.pt").values():
            reveal(value)  # unknown
        state["epoch"] = 1
        for value in state.values():
            reveal(value)  # unknown
    """,
    "what `:=` binds where evaluation may not get, is perhaps bound": """
        def f(k, a: torch.Tensor):
            y = torch.zeros(1)
            if k and (y := y.half()).numel() > 5:
                pass
            reveal(y)  # float16|float32
            z = torch.zeros(1)
            other = 1 if k else (z := z.double())
            reveal(z)  # float32|float64
            w = torch.zeros(1)
            0 < k < (w := w.int()).numel()
            reveal(w)  # float32|int32
            v = torch.zeros(1)
            [1 for i in range(k) if (v := v.half()) is not None]
            reveal(v)  # float16|float32
            u = torch.zeros(1)
            if (u := u.half()).sum() > 0:
                reveal(u)  # float16
    """,
    "the cases of a match are tests, of which one holds where those before it do not": """
        def f(x: torch.Tensor, flag: bool, mode, y=None):
            y = torch.ones(2, dtype=torch.half) if flag else None
            match y:
                case None:
                    reveal(y)  # None
                case given:
                    reveal(y)  # float16
                    reveal(given)  # float16
            match mode:
                case "half":
                    z = torch.ones(2).half()
                case "double" | "float64":
                    z = torch.ones(2).double()
                case _:
                    return
            reveal(z)  # float16|float64
            match mode:
                case "no":
                    z = torch.ones(2)
            reveal(z)  # float16|float32|float64
    """,
    "a layer takes tensors when it is called, not when it is made": """
        class Net(nn.Module):
            def __init__(self, p, reduction):
                super().__init__()
                self.drop, self.loss = nn.Dropout(p), nn.MSELoss(reduction)
                reveal(p)  # unknown
                reveal(reduction)  # unknown

            def forward(self, x, y):
                self.drop(x)
                reveal(x)  # ~x
                self.loss(x, y)
                reveal(y)  # ~y
    """,
    "factories": """
        reveal(torch.zeros(3))  # float32
        reveal(torch.zeros(3, dtype=torch.half))  # float16
        reveal(torch.arange(3))  # int64
        reveal(torch.arange(0, 1, 0.1))  # float32
        reveal(torch.full((2,), 1))  # int64
        reveal(torch.full((2, n), False, device=device))  # bool
        reveal(torch.tensor([1, 2]))  # int64
        reveal(torch.tensor([1, 2.0]))  # float32
        reveal(torch.tensor([[True], [False]]))  # bool
        reveal(torch.tensor(data))  # ?
        reveal(torch.zeros(3, dtype=dtype))  # ?
        reveal(torch.zeros_like(torch.ones(2).half()))  # float16
        reveal(torch.HalfTensor(3))  # float16
    """,
    "a default dtype that the program sets is not guessed": """
        torch.set_default_dtype(torch.float64)
        reveal(torch.zeros(3))  # ?
        reveal(torch.arange(3))  # int64
    """,
    "casts": """
        x = torch.ones(2)
        reveal(x.half())  # float16
        reveal(x.to(torch.bfloat16))  # bfloat16
        reveal(x.to("cuda"))  # float32
        reveal(x.to("cuda", torch.half))  # float16
        reveal(x.to(other))  # ?
        reveal(x.type(torch.DoubleTensor))  # float64
        reveal(x.type("torch.cuda.HalfTensor"))  # float16
        reveal(x.type_as(x.long()))  # int64
        reveal(x.to(dtype=unknown))  # ?
    """,
    "promotion ranks dimensioned tensors over 0-dim tensors over numbers": """
        half, double = torch.ones(2).half(), torch.ones(2).double()
        reveal(half + 1.5)  # float16
        reveal(half * double)  # float64
        reveal(half * torch.tensor(1.5))  # float16
        reveal(half + torch.ones(2).bfloat16())  # float32
        reveal(torch.arange(3) * 1.5)  # float32
        reveal(torch.arange(3) / 2)  # float32
        reveal(torch.arange(3) > 1)  # bool
        reveal(-half)  # float16
        reveal(half[0])  # float16
    """,
    "in place the tensor keeps its dtype": """
        half = torch.ones(2).half()
        half += torch.ones(2)
        reveal(half)  # float16
        reveal(half.mul_(torch.ones(2)))  # float16
    """,
    "imports under every spelling": """
        import torch as th
        from torch import float16 as f16, zeros
        from torch.cuda import amp
        import torch.cuda.amp as camp
        load = torch.load
        reveal(th.ones(1, dtype=f16))  # float16
        reveal(zeros(1))  # float32
        reveal(amp.autocast)  # torch.cuda.amp.autocast
        reveal(camp.GradScaler)  # torch.cuda.amp.GradScaler
        reveal(load)  # torch.load
        reveal(torch.autocast)  # torch.amp.autocast
        reveal(torch.nn.modules.linear.Linear)  # torch.nn.Linear
    """,
    "a fallback after ImportError is either of two things": """
        try:
            from torch.amp import autocast
        except ImportError:
            from torch.cuda.amp import autocast
        reveal(autocast)  # torch.amp.autocast or torch.cuda.amp.autocast
        try:
            from torch.amp import GradScaler
        except ImportError:
            GradScaler = None
        reveal(GradScaler())  # scaler True
    """,
    "what is written into `out=` has the dtype of that": """
        reveal(torch.arange(3, out=torch.empty(3, dtype=torch.float16)))  # float16
        reveal(torch.add(torch.ones(3), 1, out=None))  # float32
        reveal(torch.add(torch.ones(3), 1, out=unknown))  # unknown
    """,
    "the magnitude of a complex number is real": """
        z = torch.zeros(3, dtype=torch.complex64)
        reveal(z.abs())  # float32
        reveal(torch.abs(z) ** 2)  # float32
        reveal(torch.ones(3, dtype=torch.float16).abs())  # float16
    """,
    "a part of a complex number is real": """
        z = torch.zeros(3, dtype=torch.complex64)
        reveal(z.real)  # float32
        reveal(z.imag)  # float32
        reveal(torch.ones(3, dtype=torch.float16).real)  # float16
    """,
    "a view of another dtype reads the bits as that": """
        x = torch.ones(4)
        reveal(x.view(torch.int32))  # int32
        reveal(x.view(dtype=torch.uint8))  # uint8
        reveal(x.view(2, 2))  # float32
        reveal(x.view(unknown.get_dtype()))  # ?
        reveal(x.view(-1))  # float32
    """,
    "branches join": """
        x = torch.ones(2)
        if flag:
            x = x.half()
        reveal(x)  # float16|float32
        reveal(torch.ones(1) if flag else None)  # float32 or None
    """,
    "a branch that returns does not join": """
        def f(flag):
            x = torch.ones(2)
            if flag:
                x = x.half()
                return x
            reveal(x)  # float32
    """,
    "None is narrowed away": """
        x = torch.ones(2) if flag else None
        if x is not None:
            reveal(x)  # float32
        if x is None:
            reveal(x)  # None
    """,
    "isinstance says what an unknown is": """
        def f(x):
            if isinstance(x, torch.Tensor):
                reveal(x)  # ~x
            elif isinstance(x, nn.Module):
                reveal(x)  # module torch.nn.Module
            else:
                reveal(x)  # unknown
    """,
    "a loop knows what earlier iterations leave behind": """
        x = torch.ones(2)
        for _ in range(3):
            reveal(x)  # float16|float32
            x = x.half()
        reveal(x)  # float16|float32
        while True:
            y = torch.ones(1)
            break
        reveal(y)  # float32
    """,
    "unpacking": """
        a, (b, *c) = torch.ones(1), (torch.arange(2), 1)
        reveal(a)  # float32
        reveal(b)  # int64
        reveal(c[0])  # 1
        pair = (torch.ones(1), None)
        reveal(pair[0])  # float32
        reveal([t.half() for t in [torch.ones(1)]][0])  # float16
    """,
    "functions of the file": """
        def build():
            return torch.ones(2).half()
        def recursive(n):
            return recursive(n - 1)
        def generator():
            yield torch.ones(1)
        reveal(build())  # float16
        reveal(recursive(3))  # unknown
        reveal(generator())  # unknown
    """,
    "parameters by annotation, and by what only one kind of thing can do": """
        def f(x: torch.Tensor, model: nn.Module, anything, net, tensor):
            reveal(x.half())  # float16
            reveal(model)  # module torch.nn.Module
            reveal(anything)  # unknown
            reveal(net)  # module torch.nn.Module
            reveal(tensor.half())  # float16
            for name, p in net.named_parameters():
                reveal(p)  # bfloat16|float16|float32|float64
            tensor.masked_fill(mask, 0)
    """,
    "modules of the file": """
        class Base(nn.Module):
            pass
        class Net(Base):
            size = 3
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
                self.scale = torch.ones(1)
                self.later = None
            def prepare(self):
                self.later = torch.ones(1).half()
            @property
            def table(self):
                return torch.arange(3)
            def forward(self, x):
                reveal(self)  # module Net
                reveal(self.fc)  # module torch.nn.Linear
                reveal(self.scale)  # float32 or unknown
                reveal(self.later)  # None or float16
                reveal(self.table)  # int64
                self.scale = self.scale.half()
                reveal(self.scale)  # unknown
                self.touch()
                return torch.zeros(1)
            def touch(self):
                pass
        net = Net()
        reveal(net)  # module Net
        reveal(net(1))  # float32
        reveal(net.half())  # module Net
        reveal(net.size)  # 3
    """,
    "optimizers, scalers, autocast": """
        net = nn.Linear(2, 2)
        reveal(torch.optim.AdamW(net.parameters(), lr=1e-3))  # optimizer
        reveal(torch.amp.GradScaler("cuda", enabled=False))  # scaler False
        reveal(torch.cuda.amp.GradScaler(enabled=args.amp))  # scaler None
        reveal(torch.autocast("cuda"))  # autocast cuda float16 True
        reveal(torch.autocast("cpu"))  # autocast cpu bfloat16 True
        reveal(torch.autocast("cuda", dtype=torch.bfloat16, enabled=on))  # autocast cuda bfloat16 None
        reveal(torch.autocast(device, torch.float16))  # autocast None float16 True
        reveal(torch.cuda.amp.autocast(False))  # autocast cuda float16 False
    """,
    "evidence ends where a name is bound anew, and where the function asks what it is": """
        def rebound(batch, model, image):
            reveal(batch)  # unknown
            batch = batch["pixels"]
            batch.unsqueeze(0)
            model = model.to(device)
            reveal(model)  # module torch.nn.Module
            model.named_parameters()
            image = image.half().contiguous()
            reveal(image)  # float16
            image.unsqueeze(0)
        def asked(x, y, z, wrapped):
            reveal(x)  # unknown
            if hasattr(x, "unsqueeze"):
                x.unsqueeze(0)
            reveal(y)  # unknown
            y = y.unsqueeze(0) if isinstance(y, torch.Tensor) else y
            reveal(z)  # unknown
            if not isinstance(z, torch.Tensor):
                return
            z.unsqueeze(0)
            reveal(wrapped)  # module torch.nn.Module
            if isinstance(wrapped, Parallel):
                wrapped = wrapped.module
            wrapped.named_parameters()
        def elsewhere(x):
            reveal(x)  # unknown
            return lambda x: x.unsqueeze(0)
    """,
    "a closure sees every binding of the function around it": """
        def f():
            x = torch.ones(2)
            y = torch.ones(2)
            def use():
                reveal(x)  # float32 or module torch.nn.Linear
                reveal(y)  # float32
            if flag:
                y = y
            x = nn.Linear(3, 3)
            use()
            class Inner:
                y = 1
                def method(self):
                    reveal(y)  # float32
    """,
    "lambdas are functions": """
        make = lambda n: torch.zeros(n)
        reveal(make(3))  # float32
        later = lambda x: reveal(x.half())  # unknown
        def f(t: torch.Tensor):
            return lambda: reveal(t.half())  # float16
    """,
    "a context that swallows exceptions goes on behind a return": """
        from contextlib import suppress
        def f(x: torch.Tensor):
            with suppress(AttributeError):
                x = x.half()
                return x.foo
            reveal(x)  # ?
        def g():
            with torch.no_grad():
                return torch.ones(1)
            never()
        def h(lock):
            with lock:
                return torch.ones(1)
        def k(manager):
            with manager:
                return 1
            reveal(2)  # 2
        reveal(h(1))  # float32
    """,
    "what always returns a tensor does, and what may return a tuple does not": """
        class Net(nn.Module):
            def __init__(self):
                self.fc, self.rnn = nn.Linear(2, 2), nn.LSTM(2, 2)
            def forward(self, x):
                reveal(self.fc(x))  # ~self.fc.weight
                reveal(self.rnn(x))  # unknown
                reveal(nn.CrossEntropyLoss()(x, x))  # ?
                reveal(torch.matmul(x, x))  # ~x
                reveal(F.cross_entropy(x, x).half())  # float16
                reveal(torch.ones(2).sum().half())  # float16
                reveal(torch.ones(2).max())  # float32
                reveal(torch.ones(2, 2).max(dim=1))  # float32, int64
                reveal(torch.ones(2).sum().item())  # float
    """,
    "constants": """
        eps = 1e-8
        reveal(eps)  # 1e-08
        reveal(-1e9)  # -1000000000.0
        reveal(2 ** 16)  # 65536
        reveal(float("-inf"))  # -inf
        reveal(10 ** 1000000)  # unknown
    """,
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES.keys())
def test_reveals(source: str) -> None:
    found, expected = revealed(source)
    assert found == expected


def heard(source: str) -> list[tuple[str, int]]:
    """The events of a program, by kind and line."""
    events: list[tuple[str, int]] = []
    kinds: tuple[type[Event], ...] = (Assign, Call, Discard, End, Enter, Exit, Operation)
    note = {
        kind: lambda event: events.append((type(event).__name__, getattr(event.node, "lineno", 0))) for kind in kinds
    }
    interpret(ast.parse(textwrap.dedent(source).lstrip()), note)
    return events


def test_events_come_in_execution_order_and_once() -> None:
    source = """
        import torch
        with torch.autocast("cuda"):
            for x in y:
                x.half()
                x = x + 1
    """
    assert heard(source) == [
        ("Call", 2),
        ("Enter", 2),
        ("Call", 4),
        ("Discard", 4),
        ("Operation", 5),
        ("Assign", 5),
        ("Exit", 2),
        ("End", 0),
    ]


def test_a_function_is_read_once_although_it_is_called_twice() -> None:
    source = """
        def f():
            g()
        f()
        f()
    """
    assert heard(source).count(("Call", 2)) == 1


def test_code_after_a_return_is_not_run() -> None:
    assert ("Call", 3) not in heard("def f():\n    return 1\n    g()\n")


def test_a_scaler_goes_through_its_phases() -> None:
    source = """
        def train(scaler, loss, optimizer):
            scaler.scale(loss).backward()
            here()
            if accumulate:
                scaler.unscale_(optimizer)
                here()
                scaler.step(optimizer)
                scaler.update()
                here()
            here()
    """
    phases = []

    def on_call(event: Event) -> None:
        if isinstance(event, Call) and isinstance(event.node.func, ast.Name) and event.node.func.id == "here":
            phases.append([phase.value for phase in event.flow.state.scalers.values()])

    interpret(ast.parse(textwrap.dedent(source)), {Call: on_call})
    assert phases == [["scaled"], ["unscaled"], ["idle"], ["perhaps scaled"]]


def test_contexts_reach_decorated_functions_and_end() -> None:
    source = """
        import torch
        @torch.autocast("cuda")
        def f():
            inside()
        outside()
    """
    under = {}

    def on_call(event: Event) -> None:
        if isinstance(event, Call) and isinstance(event.node.func, ast.Name):
            under[event.node.func.id] = event.flow.autocast is not None

    interpret(ast.parse(textwrap.dedent(source)), {Call: on_call})
    assert under == {"inside": True, "outside": False}


def test_decorators_are_told_with_the_regions_that_they_enter_and_the_regions_end() -> None:
    source = """
        import torch
        @torch.no_grad()
        @torch.autocast("cuda")
        def f(x):
            return x
    """
    told = []

    def note(event: Event) -> None:
        told.append((type(event).__name__, ast.unparse(event.node)))

    interpret(ast.parse(textwrap.dedent(source)), {Enter: note, Exit: note})
    assert told == [("Enter", "torch.autocast('cuda')"), ("Exit", "torch.autocast('cuda')")]


def region_of(expression: str) -> str | None:
    """The device of the region that a backward into the expression goes into."""
    source = f"""
        import torch, torch.nn as nn
        model, teacher = nn.Linear(2, 2), nn.Linear(2, 2)
        with torch.autocast("cuda"):
            a = model(x)
        with torch.autocast("cpu"):
            b = model(x)
        with torch.no_grad(), torch.autocast("cuda"):
            target = teacher(x)
            with torch.enable_grad():
                graded = model(x)
        @torch.inference_mode()
        def predict(x):
            with torch.autocast("cuda"):
                return model(x)
        show({expression})
    """
    shown: list[Value] = []

    def on_call(event: Event) -> None:
        if isinstance(event, Call) and isinstance(event.node.func, ast.Name) and event.node.func.id == "show":
            shown.append(event.args[0])

    interpret(ast.parse(textwrap.dedent(source)), {Call: on_call})
    (value,) = shown
    region = value.under if isinstance(value, (Tensor, Unknown)) else None
    return None if region is None else region.device


@pytest.mark.parametrize(
    ("expression", "device"),
    [
        ("a", "cuda"),
        ("(a - 1).pow(2).mean()", "cuda"),
        ("torch.nn.functional.mse_loss(a, y)", "cuda"),
        ("target", None),
        ("(model(x) - target.float()).pow(2).mean()", None),
        ("graded", "cuda"),
        ("predict(x)", None),
        ("a + b", None),
        ("a + a", "cuda"),
        ("a.detach()", None),
    ],
)
def test_a_value_is_of_the_region_that_a_backward_goes_into(expression: str, device: str | None) -> None:
    assert region_of(expression) == device


@pytest.mark.parametrize(
    ("test", "gated"),
    [
        ("torch.__version__ >= '2.6'", True),
        ("torch.__version__ >= '2.4'", False),  # which every torch in use passes
        ("version.parse(torch.__version__) < version.parse('2.6')", True),
        ("TORCH_VERSION >= (2, 4)", True),
        ("torch_version >= v", True),
        ("version >= (2, 4)", True),
        ("is_torch_version('>=', '2.4')", True),
        ("is_torch_greater_or_equal_than_2_4", True),
        ("torch_ge_2_4 and amp", True),
        ("TORCH_2", True),
        ("hasattr(torch.amp, 'GradScaler')", True),
        ("'device' in inspect.signature(GradScaler).parameters", True),
        ("torch.cuda.is_available()", False),
        ("cfg.inversion", False),
        ("model_version == 'v2'", False),
        ("hasattr(model, 'module')", False),
        ("use_torch_fp16", False),
        ("x.dtype == torch.float16", False),
    ],
)
def test_only_a_test_for_a_release_of_torch_is_a_version_gate(test: str, gated: bool) -> None:
    found = []

    def on_reference(event: Event) -> None:
        if isinstance(event, Reference) and event.name == "torch.cuda.amp.autocast":
            found.append(event.flow.version_gated)

    interpret(ast.parse(f"import torch\nif {test}:\n    torch.cuda.amp.autocast()\n"), {Reference: on_reference})
    assert found == [gated]


def test_what_is_said_to_return_a_tensor_does_by_its_schemas() -> None:
    torch = pytest.importorskip("torch")
    places = (torch, torch.nn.functional, torch.linalg, torch.Tensor)
    for name in TENSOR_FUNCTIONS:
        assert any(hasattr(place, name) for place in places), name
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            if schema.arguments and all(str(argument.type) == "Tensor" for argument in schema.arguments[:1]):
                assert [str(result.type) for result in schema.returns] == ["Tensor"], schema
    for name in TENSOR_LAYERS:
        assert issubclass(getattr(torch.nn, name.removeprefix("torch.nn.")), torch.nn.Module)


def test_a_case_runs_under_the_test_that_its_pattern_makes() -> None:
    source = """
        def f(x, mode):
            match mode:
                case "half":
                    x.half()
                case None if x:
                    x.float()
                case Wide() | None:
                    x.double()
                case [other]:
                    x.int()
                case _:
                    x.long()
            x.bool()
    """
    found: dict[str, list[str]] = {}

    def on_call(event: Event) -> None:
        assert isinstance(event, Call)
        conditions = event.flow.conditions
        found[event.method] = [f"{'' if each.holds else 'not '}{ast.unparse(each.test)}" for each in conditions]

    interpret(ast.parse(MATTERS + textwrap.dedent(source)), {Call: on_call})
    assert found == {
        "half": ["mode == 'half'"],
        "float": ["not mode == 'half'", "mode is None", "x"],
        "double": ["not mode == 'half'"],
        "int": ["not mode == 'half'"],
        "long": ["not mode == 'half'"],
        "bool": [],
    }
