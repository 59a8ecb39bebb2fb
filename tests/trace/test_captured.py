"""Compiled code under a trace: its graphs tell the dtypes that the eager trace sees, and its results are its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dtlint.trace.captured import can_capture  # noqa: E402
from dtlint.trace.export import record_of  # noqa: E402
from dtlint.trace.judge import judge  # noqa: E402
from dtlint.trace.mode import Tracer  # noqa: E402
from dtlint.trace.options import Options  # noqa: E402
from dtlint.trace.record import TraceRecord  # noqa: E402

pytestmark = pytest.mark.skipif(not can_capture(), reason="this torch tells too little of what it compiles")

Compile = Callable[..., Any]


class Layers(nn.Module):
    """A few layers, one inside another."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(6, 6), nn.LayerNorm(6), nn.GELU())
        self.head = nn.Linear(6, 2)
        self.register_buffer("shift", torch.ones(6))

    def forward(self, x: Any) -> Any:
        return self.head(self.inner(x) + self.shift)


class Broken(Layers):
    """Its graph breaks in the middle."""

    def forward(self, x: Any) -> Any:
        hidden = self.inner(x)
        torch._dynamo.graph_break()
        return self.head(hidden.half().float() * 2)


def loss_of(y: Any) -> Any:
    return y.float().pow(2).mean()


def fullgraph(compile: Compile, backend: str) -> list[Any]:
    model = Layers()
    compiled = compile(model, backend=backend, fullgraph=True)
    for _ in range(2):
        loss_of(compiled(torch.randn(3, 6))).backward()
    return [p.grad for p in model.parameters()]


def graph_breaks(compile: Compile, backend: str) -> list[Any]:
    model = Broken()
    loss_of(compile(model, backend=backend)(torch.randn(3, 6))).backward()
    return [p.grad for p in model.parameters()]


def autocast_inside(compile: Compile, backend: str) -> list[Any]:
    model = Layers()

    @lambda f: compile(f, backend=backend)
    def forward(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            hidden = model(x)
        return hidden.float() + hidden

    loss_of(forward(torch.randn(3, 6))).backward()
    return [p.grad for p in model.parameters()]


def autocast_outside(compile: Compile, backend: str) -> list[Any]:
    model = Layers()
    compiled = compile(model, backend=backend)
    with torch.autocast("cpu", torch.float16):
        loss = loss_of(compiled(torch.randn(3, 6)))
    loss.backward()
    return [p.grad for p in model.parameters()]


def dynamic_shapes(compile: Compile, backend: str) -> list[Any]:
    model = Layers()
    compiled = compile(model, backend=backend, dynamic=True)
    for length in (3, 5, 7):
        loss_of(compiled(torch.randn(length, 6))).backward()
    return [p.grad for p in model.parameters()]


def compiled_method(compile: Compile, backend: str) -> list[Any]:
    model = Layers().half()
    model.forward = compile(model.forward, backend=backend)
    loss_of(model(torch.randn(3, 6).half())).backward()
    return [p.grad for p in model.parameters()]


def in_place_compile(compile: Compile, backend: str) -> list[Any]:
    model = Layers()
    model.compile(backend=backend)
    loss_of(model(torch.randn(3, 6))).backward()
    return [p.grad for p in model.parameters()]


def nested_module(compile: Compile, backend: str) -> list[Any]:
    model = Layers()
    model.inner = compile(model.inner, backend=backend)
    loss_of(model(torch.randn(3, 6))).backward()
    return [p.grad for p in model.parameters()]


def mixed_dtypes(compile: Compile, backend: str) -> list[Any]:
    @lambda f: compile(f, backend=backend)
    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = (q @ k.transpose(-1, -2)).add(mask)
        weights = torch.softmax(scores, -1)
        return weights.to(v.dtype) @ v, scores.double().sum()

    q, k, v = (torch.randn(2, 4, 4).half().requires_grad_() for _ in range(3))
    y, total = attend(q, k, v, torch.zeros(4, 4))
    (y.float().sum() + total).backward()
    return [q.grad, k.grad, v.grad, y.detach()]


def without_gradients(compile: Compile, backend: str) -> list[Any]:
    model = Layers().bfloat16()
    with torch.no_grad():
        return [compile(model, backend=backend)(torch.randn(3, 6).bfloat16())]


PROGRAMS = [
    fullgraph,
    graph_breaks,
    autocast_inside,
    autocast_outside,
    dynamic_shapes,
    compiled_method,
    in_place_compile,
    nested_module,
    mixed_dtypes,
    without_gradients,
]
WAYS = [(program, ("eager", "aot_eager")[number % 2]) for number, program in enumerate(PROGRAMS)]
WAYS += [(fullgraph, "aot_eager"), (graph_breaks, "eager"), (autocast_inside, "inductor")]


def not_compiled(function: Any, **_: Any) -> Any:
    return function


def traced(program: Callable[[], list[Any]], **options: Any) -> tuple[TraceRecord, list[Any]]:
    torch._dynamo.reset()
    torch.manual_seed(1)
    tracer = Tracer(Options(**options))
    with tracer:
        results = program()
    return record_of(tracer, ["test"], 0), results


def operators(record: TraceRecord) -> dict[tuple[Any, ...], int]:
    """How often each operator ran, with its dtypes, its line, its module and what was made of it."""
    found: dict[tuple[Any, ...], int] = {}
    for entry in record.entries:
        at = record.places[entry.place]
        if entry.op == "lift_fresh":  # a number that torch wraps, so that a graph takes it for an input
            continue
        inputs = [operand.dtype for operand in entry.inputs]
        if entry.op == "native_layer_norm_backward":
            del inputs[2:4]  # the statistics: torch's fake kernel says half where the CPU keeps float32
        dtypes = (*inputs, entry.output)
        judged = (entry.author, entry.finding, entry.culprit, entry.autocast)
        key = (at.file, at.line, at.module, entry.phase, entry.op, dtypes, judged)
        found[key] = found.get(key, 0) + entry.count
    return found


@pytest.mark.parametrize(("program", "backend"), WAYS, ids=[f"{p.__name__}-{b}" for p, b in WAYS])
def test_graphs_tell_what_the_eager_trace_sees(program: Any, backend: str) -> None:
    captured, results = traced(lambda: program(torch.compile, backend), eager=False)
    eager, _ = traced(lambda: program(torch.compile, backend), eager=True)
    assert operators(captured) == operators(eager)
    assert any(entry.phase == "backward" for entry in captured.entries) == (program is not without_gradients)
    assert any("values inside compiled graphs" in unseen.what for unseen in captured.unseen)
    assert not any("could not" in unseen.what for unseen in captured.unseen)
    torch._dynamo.reset()
    torch.manual_seed(1)
    alone = program(torch.compile, backend)
    assert all(torch.equal(a, b) for a, b in zip(results, alone, strict=True))  # to the bit: those of compiled code


def test_results_of_compiled_code_are_judged_where_they_are_read() -> None:
    def program() -> None:
        spoil = torch.compile(lambda x: (x - x).log() - (x - x).log(), backend="aot_eager")
        (spoil(torch.ones(3)) * 2).sum().item()

    record, _ = traced(lambda: [program()], eager=False)
    assert [(event.kind, event.subject) for event in record.events] == [("came-in", "a result of compiled code")]
    (found,) = [d for d in judge(record) if d.code == "DT909"]
    assert "a result of compiled code held NaN when `spoil(torch.ones(3)) * 2` (mul)" in found.message
    assert found.help == "run with --eager to see where it was made"


def test_gradients_of_compiled_code_are_judged_where_they_are_read() -> None:
    def program() -> None:
        layer, root = nn.Linear(2, 2), torch.compile(torch.sqrt, backend="aot_eager")
        root(layer(torch.zeros(1, 2)) * 0).sum().backward()  # the gradient of sqrt at 0 is inf

    record, _ = traced(lambda: [program()], eager=False)
    assert {event.subject for event in record.events} == {"a result of compiled code"}


def test_what_compiled_code_writes_in_place_is_known_no_longer() -> None:
    def program() -> None:
        grow = torch.compile(lambda x: x.mul_(1e30), backend="aot_eager")
        x = torch.ones(2) * 2
        grow(x)
        (x * 1e20).sum()

    record, _ = traced(lambda: [program()], eager=False)
    (event,) = [event for event in record.events if event.kind == "overflow"]
    assert event.inputs[0].high > 1e30  # and not 2


def test_operators_between_graphs_are_seen_with_values() -> None:
    def program() -> None:
        def overflow(x: Any) -> Any:
            x = x * 2
            torch._dynamo.graph_break()
            y = torch.ops.aten.mul(x, 1e30)
            torch._dynamo.graph_break()
            return y + 1

        torch.compile(overflow, backend="eager")(torch.full((2,), 1e20)).sum()

    record, _ = traced(lambda: [program()], eager=False)
    assert {entry.op for entry in record.entries} >= {"mul", "add", "sum"}


def test_a_graph_that_cannot_be_read_runs_and_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.trace import captured

    def fail(*_: Any) -> None:
        raise NotImplementedError

    monkeypatch.setattr(captured._Reading, "_run", fail)
    record, results = traced(lambda: [torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))], eager=False)
    assert results[0].tolist() == [2, 2]
    assert "operators of compiled graphs that could not be read (NotImplementedError); --eager shows them" in [
        unseen.what for unseen in record.unseen
    ]


def test_torch_is_left_as_it_was() -> None:
    before = torch._TorchCompileWrapper.__call__, torch._TorchCompileInductorWrapper.__call__, torch.compile
    traced(lambda: [torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))], eager=False)
    assert before == (torch._TorchCompileWrapper.__call__, torch._TorchCompileInductorWrapper.__call__, torch.compile)


def test_threads_that_compile_a_backward_as_it_runs_are_none_of_the_program_s() -> None:
    callback = pytest.importorskip("torch._dynamo.callback")
    handler, trigger = callback.callback_handler, callback.CallbackTrigger.LAZY_BACKWARD
    before = [*handler.start_callbacks], [*handler.end_callbacks]

    def work(name: str) -> None:
        thread = threading.Thread(target=int, name=name)
        thread.start()
        thread.join()

    tracer = Tracer(Options(eager=False))
    with tracer:
        torch.compile(Layers(), backend="eager")
        with handler.install_callbacks(trigger, "0/0"):
            work("compiler")
        work("mine")
    assert (tracer.elsewhere.threads, list(tracer.elsewhere.names)) == (1, ["mine"])
    assert (handler.start_callbacks, handler.end_callbacks) == before


def test_steps_inside_compiled_code_are_said() -> None:
    def program() -> None:
        p = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([p], 0.1)
        step = torch.compile(optimizer.step, backend="eager")
        (p * 2).sum().backward()
        step()

    record, _ = traced(lambda: [program()], eager=False)
    assert not any("could not be judged" in unseen.what for unseen in record.unseen)
    assert record.steps or any("optimizer steps inside compiled code" in unseen.what for unseen in record.unseen)


def test_the_options_are_those_of_the_command_line(dtlint: Any, tmp_path: Any) -> None:
    (tmp_path / "a.py").write_text(
        "import torch\n@torch.compile(backend='eager')\ndef f(x):\n    return x.half() * x\nprint(f(torch.ones(2)).dtype)\n"
    )
    compiled, eager = dtlint("trace", "a.py"), dtlint("trace", "--eager", "a.py")
    assert (compiled.code, compiled.out) == (eager.code, eager.out) == (0, "torch.float32\n")
    assert "none outside compiled code that the program did not mean" in compiled.err
    assert "Not seen: values inside compiled graphs; --eager" in compiled.err
    assert "functions under torch.compile, which ran eagerly instead" in eager.err
    assert all("a.py:4" in ran.err for ran in (compiled, eager))  # the promotion
