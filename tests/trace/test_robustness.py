"""Programs that a tracer must survive: they run as they do without it, and nothing fails inside it unseen."""

from __future__ import annotations

import copy
import io
import os
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn as nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint

from dtlint.trace.elsewhere import Elsewhere
from dtlint.trace.flow import Flow
from dtlint.trace.mode import ODD, Tracer
from dtlint.trace.record import TraceRecord
from dtlint.trace.store import load

Trace = Callable[[Callable[[], Any]], TraceRecord]


def leaf() -> torch.Tensor:
    return torch.linspace(-1, 1, 16).view(4, 4).requires_grad_()


W = torch.linspace(-2, 2, 16).view(4, 4)


def sparse_mm() -> Any:
    x = leaf()
    out = torch.sparse.mm(W.to_sparse(), x).sum()
    out.backward()
    return out, x.grad


def csr() -> Any:
    return W.to_sparse_csr() @ W


def nested_jagged() -> Any:
    return (torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged) * 2).values()


def nested_strided() -> Any:
    return (torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)]) * 2).to_padded_tensor(0.0)


def vmap() -> Any:
    return torch.vmap(lambda a: (a * 2).exp().sum())(W)


def hessian() -> Any:
    return torch.func.hessian(lambda a: (a**3).sum())(W[0])


def functional_grad() -> Any:
    return torch.func.grad(lambda a: (a * 2).exp().sum())(W)


def no_grad() -> Any:
    with torch.no_grad():
        return nn.functional.linear(leaf(), W)


def jvp() -> Any:
    return torch.func.jvp(torch.sin, (W,), (W,))


def meta() -> Any:
    return (torch.empty(3, 3, device="meta") @ torch.empty(3, 3, device="meta")).shape


def complex_numbers() -> Any:
    return torch.fft.fft(W).abs().sum()


def float8() -> Any:
    return W.to(torch.float8_e4m3fn).float()


def quantized() -> Any:
    return torch.quantize_per_tensor(W, 0.1, 0, torch.quint8).dequantize()


def lazy_layers() -> Any:
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d()).half()
    out = net(W.half())
    return out, *net.parameters()


def fake_mode() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        return (torch.empty(3) + 1).shape


def fake_mode_outside() -> Any:
    """The tracer is the inner mode here: it sees what is fake."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return (torch.empty(3, 3) @ torch.empty(3, 2)).shape


def two_tensor() -> Any:
    from torch.testing._internal.two_tensor import TwoTensor

    return (TwoTensor(torch.ones(2), torch.ones(2)) * 3).a


class Named(torch.Tensor):
    pass


def torch_function_subclass() -> Any:
    return (torch.ones(3).as_subclass(Named) * 2).sum()


class Counting(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


def torch_function_mode() -> Any:
    with Counting() as mode:
        W * 2
    return mode.seen


class CountingDispatch(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def dispatch_mode() -> Any:
    with CountingDispatch() as mode:
        (leaf() @ W).sum().backward()
    return mode.seen


def export() -> Any:
    return torch.export.export(nn.Linear(4, 4), (W,)).graph_signature.user_inputs


def jit_trace() -> Any:
    return torch.jit.trace(nn.Linear(4, 4), W)(W)


def jit_script() -> Any:
    return torch.jit.script(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))(W)


def jit_script_backward() -> Any:
    @torch.jit.script  # type: ignore[untyped-decorator]
    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (a @ b).relu() + 1

    x = leaf()
    for _ in range(3):  # the third run is of the optimised graph
        product(x, W).sum().backward()
    return x.grad


@torch.library.custom_op("dtlint_test::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).exp()


def custom_op() -> Any:
    return doubled(W)


def flex_attention() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    q = torch.linspace(-1, 1, 256).view(1, 1, 16, 16)
    return flex_attention(q, q, q)


def cond() -> Any:
    return torch.cond(torch.tensor(True), lambda a: a + 1, lambda a: a - 1, (W,))


def flop_counter() -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        (leaf() @ W).sum().backward()
    return counter.get_total_flops()


def profiler() -> Any:
    x = leaf()
    with torch.profiler.profile():
        (x @ W).sum().backward()
    return x.grad


def detect_anomaly() -> Any:
    x = leaf()
    with torch.autograd.detect_anomaly():
        (x @ W).sum().backward()
    return x.grad


def inference_mode() -> Any:
    with torch.inference_mode():
        return nn.Linear(4, 4)(W)


def silu_in_training() -> Any:
    """Its backward is a composite operator that has a kernel of its own besides, of other rounding."""
    x = torch.linspace(-3.0, 3.0, 97).requires_grad_()
    nn.functional.silu(x).sum().backward()
    return x.grad


def silu_in_inference_mode() -> Any:
    with torch.inference_mode():
        return nn.functional.softmax(
            nn.functional.layer_norm(nn.functional.silu(nn.Linear(4, 4)(W)).half().float() @ W, (4,)), -1
        )


def inference_mode_then_not() -> Any:
    with torch.inference_mode():
        W.half() * 2
    x = leaf()
    (x.half() * 2).sum().backward()
    return x.grad


def double_backward() -> Any:
    x = leaf()
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return torch.autograd.grad(first.sum(), x)


def lbfgs() -> Any:
    p = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.LBFGS([p])

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (p**2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return p


def adamw(**how: bool) -> Any:
    p = nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    torch.optim.AdamW([p], **how).step()
    return p


def saved_and_loaded() -> Any:
    module = copy.deepcopy(nn.Linear(3, 3))
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)(torch.ones(3))


def averaged_model() -> Any:
    model = torch.optim.swa_utils.AveragedModel(nn.Linear(2, 2))
    model.update_parameters(nn.Linear(2, 2))
    return list(model.parameters())


def lstm() -> Any:
    module = nn.LSTM(4, 4)
    out = module(W[None])[0].sum()
    out.backward()
    return out, [p.grad for p in module.parameters()]


def numpy_in_place() -> Any:
    x = W.clone()
    x.numpy().__imul__(2)
    return x * 1


def empty() -> Any:
    return torch.empty(0) * 2


def checkpointing(reentrant: bool) -> Any:
    x = leaf()
    checkpoint(lambda a: torch.dropout(a @ W, 0.5, True), x, use_reentrant=reentrant).sum().backward()
    return x.grad


class Doubling(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.exp()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * 2


def custom_function() -> Any:
    x = leaf()
    Doubling.apply(x).sum().backward()
    return x.grad


def random_numbers() -> Any:
    return torch.nn.functional.dropout(torch.randn(64), 0.5), torch.randperm(9), torch.get_rng_state()


def default_device() -> Any:
    torch.set_default_device("meta")
    try:
        return (torch.ones(3) * 2).device
    finally:
        torch.set_default_device(None)


PROGRAMS: dict[str, Callable[[], Any]] = {
    program.__name__: program
    for program in (
        sparse_mm, csr, nested_jagged, nested_strided, vmap, hessian, jvp, meta, complex_numbers, float8, quantized,
        lazy_layers, fake_mode, two_tensor, torch_function_subclass, torch_function_mode, dispatch_mode, export, jit_trace,
        jit_script, cond, flop_counter, profiler, detect_anomaly, inference_mode, silu_in_training,
        silu_in_inference_mode, inference_mode_then_not,
        double_backward, lbfgs, adamw, saved_and_loaded, averaged_model, lstm, numpy_in_place, empty, custom_function,
        random_numbers, default_device, functional_grad, no_grad, fake_mode_outside, jit_script_backward, custom_op,
        flex_attention,
    )
}  # fmt: skip
PROGRAMS |= {
    "foreach AdamW": lambda: adamw(foreach=True),
    "fused AdamW": lambda: adamw(fused=True),
    "checkpointing": lambda: checkpointing(False),
    "reentrant checkpointing": lambda: checkpointing(True),
}


def run(program: Callable[[], Any]) -> Any:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program()


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor) and a.layout is torch.sparse_csr:
        a, b = a.to_dense(), b.to_dense()
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_gives_what_it_gives_untraced(program: Callable[[], Any], trace: Trace) -> None:
    results: list[Any] = []
    record = trace(lambda: results.append(run(program)))
    assert same(results[0], run(program))
    assert not [u.what for u in record.unseen if "could not be judged" in u.what]
    assert _get_current_dispatch_mode_stack() == []
    assert record.operators or program in (dispatch_mode, meta, fake_mode, fake_mode_outside, export)


def test_torch_compile_runs_eagerly_even_with_fullgraph_and_the_record_says_so(trace: Trace) -> None:
    record = trace(lambda: torch.compile(nn.Linear(4, 4), fullgraph=True)(W))
    assert [(u.what, u.count) for u in record.unseen] == [
        ("functions under torch.compile, which ran eagerly instead", 1)
    ]
    assert "addmm" in {entry.op for entry in record.entries}


def test_what_was_compiled_before_the_trace_runs_eagerly_in_it_and_compiled_after_it(trace: Trace) -> None:
    compiled = torch.compile(lambda a, b: (a @ b).relu() + 1, backend="aot_eager")
    before = compiled(leaf(), W)
    record = trace(lambda: compiled(leaf(), W).sum().backward())
    assert {"mm", "relu"} <= {entry.op for entry in record.entries}
    assert torch.equal(compiled(leaf(), W), before)


REENTRANT = """\
import torch

class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, depth):
        ctx.depth = depth
        ctx.save_for_backward(x)
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        if ctx.depth:
            with torch.enable_grad():
                inner = ctx.saved_tensors[0].detach().requires_grad_()
                Nested.apply(inner, ctx.depth - 1).sum().backward()
        return gradient * 1, None

x = torch.ones(4, requires_grad=True)
Nested.apply(x, 70).sum().backward()
print(x.grad.tolist())
"""
"""A backward that runs a backward, so deeply that autograd goes on in threads of its own. A process that has
such threads cannot fork others that run a backward, so this is run in one of its own."""


def test_threads_of_autograd_are_seen(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(REENTRANT)
    command = [sys.executable, "-m", "dtlint", "trace", "--output", "t.json", "script.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "[1.0, 1.0, 1.0, 1.0]\n"), ran.stderr
    entries = load(tmp_path / "t.json").entries
    assert sum(e.count for e in entries if e.op == "mul" and e.phase == "backward") == 71


def test_everything_is_put_back(trace: Trace) -> None:
    before = torch.compile
    trace(lambda: nn.Linear(4, 4)(W))
    assert torch.compile is before
    assert Tracer.active is None


def test_the_program_s_own_stance_towards_torch_compile_is_put_back(trace: Trace) -> None:
    from torch._dynamo import eval_frame

    with torch.compiler.set_stance("eager_on_recompile"):
        trace(lambda: nn.Linear(4, 4)(W))
        assert eval_frame._stance.stance == "eager_on_recompile"


def test_a_start_that_fails_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Elsewhere) -> None:
        raise AttributeError("an older torch")

    before, update = torch.compile, torch._amp_update_scale_
    with monkeypatch.context() as patch:
        patch.setattr(Elsewhere, "install", fails)
        with pytest.raises(AttributeError, match="an older torch"), Tracer():
            pass
    assert (torch.compile, torch._amp_update_scale_, Tracer.active) == (before, update, None)
    with Tracer():
        pass


def test_an_error_of_the_tracer_is_counted_and_the_program_goes_on(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Flow, *_: Any) -> None:
        raise ValueError("of the tracer")

    def odd(x: torch.Tensor) -> bool:
        raise TypeError("a tensor that answers nothing")

    monkeypatch.setattr(Flow, "watch", fails)
    results: list[torch.Tensor] = []
    record = trace(lambda: results.append(W * 2))
    monkeypatch.setitem(ODD, "odd", odd)
    again = trace(lambda: results.append(W * 2))
    assert torch.equal(results[0], W * 2) and torch.equal(results[1], W * 2)
    for told in (record.unseen, again.unseen):
        assert [u.what for u in told] == ["operators that could not be judged (ValueError: of the tracer)"]


def test_threads_are_counted_however_many_begin_and_the_first_are_named(trace: Trace) -> None:
    def program() -> None:
        for number in range(20):
            thread = threading.Thread(target=W.exp, name=f"worker {number}")
            thread.start()
            thread.join()

    (told,) = trace(program).unseen
    assert (told.count, told.what.count("worker")) == (20, 3)


def test_a_child_forked_within_an_optimizer_step_is_not_traced() -> None:
    class Forks(torch.optim.SGD):
        child = -1

        def step(self, closure: Any = None) -> None:
            self.child = os.fork()

    layer = nn.Linear(4, 4)
    optimizer = Forks(layer.parameters())
    with Tracer():
        optimizer.step()
        if optimizer.child == 0:
            os._exit(len(_get_current_dispatch_mode_stack()))
        assert len(_get_current_dispatch_mode_stack()) == 1
    assert os.waitpid(optimizer.child, 0)[1] == 0


class Warns(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        warnings.warn("old", stacklevel=4)  # the line that called the module
        return x * 1


def test_a_module_s_warning_names_its_caller(trace: Trace) -> None:
    with pytest.warns(UserWarning, match="old") as caught:
        record = trace(lambda: Warns()(W))
    assert [w.filename for w in caught if str(w.message) == "old"] == [__file__]
    assert [(p.expression, p.module) for p in record.places] == [("x * 1", "Warns")]


def test_no_frame_of_the_tracer_stands_between_a_module_and_its_caller(trace: Trace) -> None:
    frames: list[str] = []

    class Looks(nn.Module):
        def forward(self) -> None:
            frames.extend(frame.filename for frame in traceback.extract_stack())

    trace(lambda: nn.Sequential(Looks())[0]())
    assert len(frames) > 3
    assert not [file for file in frames if "dtlint/trace" in file.replace("\\", "/") and "tests" not in file]


def test_an_exception_passes_through_and_everything_is_put_back() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"), Tracer():
        nn.Linear(3, 3)(torch.ones(2, 4))
    assert _get_current_dispatch_mode_stack() == []


def test_a_second_tracer_is_refused_clearly() -> None:
    with Tracer(), pytest.raises(RuntimeError, match="tracing already"), Tracer():
        pass
    assert Tracer.active is None


def test_what_was_not_seen_is_counted(trace: Trace) -> None:
    def program() -> None:
        W.to_sparse() * 2
        W.to(torch.float8_e4m3fn)
        run(two_tensor)

    told = {u.what: u.count for u in trace(program).unseen}
    assert told["operators with sparse tensors"] > 0
    assert told["values of float8_e4m3fn results"] == 1
    assert told["results of the tensor subclass TwoTensor"] == 1


def test_a_long_run_keeps_no_state_per_step(trace: Trace) -> None:
    tracer = Tracer()
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        layer(torch.randn(2, 4)).sum().backward()
        optimizer.step()

    with tracer:
        for _ in range(3):
            step()
        sites, storages = len(tracer.sites.all), len(tracer.flow.storages.made)
        for _ in range(100):
            step()
        assert len(tracer.sites.all) == sites
        assert len(tracer.flow.storages.made) <= storages + 8
    assert tracer.flow.storages.made == {}


def test_an_optimizer_step_that_raises_does_not_mute_what_follows(trace: Trace) -> None:
    layer = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def program() -> None:
        layer(W).sum().backward()
        layer.weight.grad = None
        optimizer.param_groups[0]["lr"] = object()
        with pytest.raises(Exception):  # noqa: B017
            optimizer.step()
        W.tanh()  # outside any module
        optimizer.param_groups[0]["lr"] = 0.1
        layer(W).sum().backward()
        optimizer.step()

    record = trace(program)
    assert "tanh" in {entry.op for entry in record.entries}
    assert [u.count for u in record.unseen if u.what.startswith("optimizer steps within")] == [2]


def test_operators_over_lists_are_judged_one_by_one(trace: Trace) -> None:
    """As clip_grad_norm_ has it where gradients are scaled in place, all in one call."""

    def program() -> None:
        small, large = torch.zeros(4), torch.ones(4)
        torch._foreach_mul_([small, large], torch.tensor(3e38))
        torch._foreach_mul_([small, large], torch.tensor(2.0))  # large overflows
        torch._foreach_add([small, large], 1.0)
        (small + 1).sum()

    assert [(e.kind, e.times, e.spread) for e in trace(program).events] == [("overflow", 1, 1)]


def grad_of_prod() -> None:
    leaf().prod(1).sum().backward()


def grad_of_a_fill_value() -> None:
    leaf().masked_fill(W > 0, torch.tensor(2.0, requires_grad=True)).sum().backward()


@pytest.mark.parametrize(
    ("program", "operators"),
    [
        (grad_of_prod, ["prod"]),
        (grad_of_a_fill_value, ["masked_fill"]),
        (lambda: leaf().masked_fill(W > 0, 2.0).sum().backward(), []),
        (lambda: leaf().prod(1), []),
    ],
    ids=["prod", "masked_fill by a tensor", "masked_fill by a number", "no backward"],
)
def test_a_gradient_that_takes_another_formula_is_told(
    program: Callable[[], None], operators: list[str], trace: Trace
) -> None:
    told = [u.what for u in trace(program).unseen]
    assert [what.split()[2] for what in told if "in another way" in what] == operators


def test_the_gradients_that_take_another_formula_agree_to_rounding(trace: Trace) -> None:
    x, y = (torch.linspace(0.1, 2, 20).requires_grad_() for _ in range(2))
    trace(lambda: x.prod().backward())
    y.prod().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, y.grad)


def test_a_judgement_that_fails_at_the_end_does_not_reach_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("no group")

    tracer = Tracer()
    monkeypatch.setattr(tracer.flow.spread, "replay", fails)
    with tracer:
        torch.ones(2) * 2
    assert list(tracer.flow.unseen) == ["results that could not be judged at the end (ValueError)"]
