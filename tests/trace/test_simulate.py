"""`--simulate cuda`: programs that ask for CUDA run on the CPU, with CUDA's autocast and half arithmetic."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
import threading
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

from dtlint.trace.mode import Tracer  # noqa: E402
from dtlint.trace.simulate import SimulateError, simulate, why_not  # noqa: E402
from dtlint.trace.simulate.device import HALF_ON_CUDA  # noqa: E402
from dtlint.trace.simulate.policies import BESIDE_HEADER, HEADER, policies_of  # noqa: E402
from dtlint.trace.store import load  # noqa: E402

FIXTURE = Path(__file__).parents[2] / "fixtures" / "train" / "exploding_logits_cuda.py"
HALF, SINGLE = torch.float16, torch.float32


@pytest.fixture
def cuda() -> Iterator[Any]:
    with simulate("cuda") as simulation:
        yield simulation


# -- the program finds a device ----------------------------------------------------------------------------------------


ON_CUDA: dict[str, Callable[[], Any]] = {
    "device=": lambda: torch.zeros(2, device="cuda"),
    "number": lambda: torch.zeros(2, device=0),
    "tensor": lambda: torch.tensor([1.0], device="cuda:0"),
    "as_tensor": lambda: torch.as_tensor([1.0], device="cuda"),
    "cuda()": lambda: torch.zeros(2).cuda(),
    "to(device)": lambda: torch.zeros(2).to("cuda"),
    "to(other)": lambda: torch.zeros(2).to(torch.zeros(2, device="cuda")),
    "to(device, dtype)": lambda: torch.zeros(2).to(torch.device("cuda"), SINGLE, non_blocking=True),
    "type": lambda: torch.zeros(2).type("torch.cuda.FloatTensor"),
    "cuda.FloatTensor": lambda: torch.cuda.FloatTensor([1.0]),
    "zeros_like": lambda: torch.zeros_like(torch.zeros(2, device="cuda")),
    "new_tensor": lambda: torch.zeros(2, device="cuda").new_tensor([1.0]),
    "result": lambda: torch.zeros(2, device="cuda").mul(2)[:1],
    "module": lambda: next(nn.Linear(2, 2).cuda().parameters()),
    "module.to": lambda: next(nn.Linear(2, 2).to(0).parameters()),
    "module device=": lambda: nn.Linear(2, 2, device="cuda").weight,
    "deepcopy": lambda: copy.deepcopy(nn.Linear(2, 2).cuda()).weight,
    "gradient": lambda: _gradient(torch.ones(2, device="cuda", requires_grad=True)),
    "data parallel": lambda: nn.DataParallel(nn.Linear(2, 2).cuda())(torch.zeros(1, 2)),
    "generator": lambda: torch.rand(2, device="cuda", generator=torch.Generator("cuda").manual_seed(1)),
}


def _gradient(x: torch.Tensor) -> torch.Tensor:
    x.sum().backward()
    assert x.grad is not None
    return x.grad


@pytest.mark.parametrize("make", ON_CUDA.values(), ids=ON_CUDA)
def test_a_tensor_that_was_put_on_cuda_says_so(cuda: Any, make: Callable[[], torch.Tensor]) -> None:
    x = make()
    assert x.is_cuda and not x.is_cpu and x.get_device() == 0
    assert x.device == torch.device("cuda", 0)
    assert "device='cuda:0'" in repr(x.detach())


def test_a_tensor_that_was_not_put_there_does_not(cuda: Any) -> None:
    x = torch.ones(2, device="cuda")
    for y in (torch.zeros(2), torch.zeros(2) + 1, x.cpu(), x.to("cpu"), x.to(torch.zeros(1)), torch.tensor([1.0])):
        assert y.device.type == "cpu" and not y.is_cuda


def test_lazy_layers_move_before_they_have_weights(cuda: Any) -> None:
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyBatchNorm1d()).to("cuda").half()
    y = net(torch.ones(2, 3, device="cuda", dtype=torch.half))
    assert {(x.device.type, x.dtype) for x in (y, *net.parameters())} == {("cuda", torch.half)}
    assert nn.LazyLinear(4).cuda().cpu().weight.device.type == "cpu"


def test_moves_copy_and_stays_do_not(cuda: Any) -> None:
    home = torch.ones(2)
    away = home.cuda()
    away.add_(1)
    back = away.cpu()
    away.add_(1)
    assert (home.tolist(), back.tolist(), away.tolist()) == ([1, 1], [2, 2], [3, 3])
    assert away.cuda() is away and away.to("cuda:0") is away and home.cpu() is home
    assert nn.Linear(2, 2).cuda().weight.is_leaf
    assert torch.ones(1, device="cuda", requires_grad=True).is_leaf


def test_the_default_device(cuda: Any) -> None:
    with torch.device("cuda"):
        assert torch.zeros(1).is_cuda and torch.tensor([1.0]).is_cuda and nn.Linear(1, 1).weight.is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.rand(1).is_cuda and torch.as_tensor([1.0]).is_cuda
        assert torch.get_default_device() == torch.device("cuda", 0)
    finally:
        torch.set_default_device(None)
    assert not torch.zeros(1).is_cuda


@pytest.mark.parametrize("where", ["cpu", "cuda", "cuda:0"])
@pytest.mark.parametrize("source", ["cpu", "cuda"])
def test_a_checkpoint_goes_where_it_is_loaded_to(cuda: Any, source: str, where: str) -> None:
    file = io.BytesIO()
    torch.save(nn.Linear(2, 2).to(source).state_dict(), file)
    file.seek(0)
    assert torch.load(file, map_location=where)["weight"].device.type == where[:4].rstrip(":")
    file.seek(0)
    assert torch.load(file)["weight"].device.type == source


ANSWERS: dict[str, Callable[[], Any]] = {
    "is_available": lambda: torch.cuda.is_available() is True,
    "device_count": lambda: torch.cuda.device_count() == 1,
    "current_device": lambda: torch.cuda.current_device() == 0,
    "set_device": lambda: torch.cuda.set_device(0) is None,
    "name": lambda: "simulated" in torch.cuda.get_device_name(),
    "capability": lambda: torch.cuda.get_device_capability(0) == (8, 0),
    "properties": lambda: torch.cuda.get_device_properties(0).total_memory > 0,
    "bfloat16": lambda: torch.cuda.is_bf16_supported(),
    "memory": lambda: torch.cuda.max_memory_allocated() == 0 and torch.cuda.memory_stats()["any"] == 0,
    "mem_get_info": lambda: min(torch.cuda.mem_get_info()) > 0,
    "synchronize": lambda: torch.cuda.synchronize() is torch.cuda.empty_cache() is None,
    "accelerator": lambda: torch.accelerator.current_accelerator() == torch.device("cuda"),
    "nccl": lambda: torch.distributed.is_nccl_available(),
    "scaler": lambda: torch.amp.GradScaler("cuda").is_enabled(),
    "version": lambda: torch.version.cuda is not None and torch.backends.cudnn.version() is not None,
    "pinned": lambda: torch.zeros(1).pin_memory().is_pinned() and not torch.zeros(1).is_pinned(),
    "empty pinned": lambda: torch.empty(1, pin_memory=True).is_pinned(),
    "isinstance": lambda: isinstance(torch.zeros(1).cuda(), torch.cuda.FloatTensor),
    "not isinstance": lambda: not isinstance(torch.zeros(1), torch.cuda.FloatTensor),
    "generators": lambda: isinstance(torch.default_generator, torch.Generator),
}


@pytest.mark.parametrize("holds", ANSWERS.values(), ids=ANSWERS)
def test_torch_cuda_answers_as_with_a_device(cuda: Any, holds: Callable[[], bool]) -> None:
    assert holds()


def test_streams_and_events(cuda: Any) -> None:
    side, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.cuda.stream(side), torch.cuda.device(0):
        assert torch.cuda.current_stream() is side
        x = torch.ones(2, device="cuda")
        x.record_stream(side)
    torch.cuda.current_stream().wait_stream(side)
    end.record()
    assert torch.cuda.current_stream() is not side and end.query()
    assert start.elapsed_time(end) > 0


def test_what_cannot_be_simulated_says_so(cuda: Any) -> None:
    with pytest.raises(RuntimeError, match="CUDAGraph cannot be simulated"):
        torch.cuda.CUDAGraph()
    assert torch.cuda.CUDAGraph | None  # transformers writes it in annotations, which run when it is imported


def test_random_numbers_on_the_device_leave_the_cpus_alone(cuda: Any) -> None:
    def run(device: str) -> tuple[list[float], list[float]]:
        torch.manual_seed(3)
        drawn = torch.rand(2, device=device)
        F.dropout(torch.ones(8, device=device))
        return drawn.tolist(), torch.rand(2).tolist()

    torch.manual_seed(3)
    untouched = torch.rand(2).tolist()
    (first, beside), (again, _) = run("cuda"), run("cuda")
    assert beside == untouched and first == again
    assert run("cpu")[1] != untouched
    state = torch.cuda.get_rng_state()
    one = torch.rand(2, device="cuda").tolist()
    torch.cuda.set_rng_state(state)
    assert torch.rand(2, device="cuda").tolist() == one


def test_checkpointing_draws_the_same_twice(cuda: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(64, device="cuda", requires_grad=True)
    y = checkpoint(F.dropout, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_threads_and_custom_operators_find_it_too(cuda: Any) -> None:
    seen: list[torch.device] = []

    @torch.library.custom_op("dtlint_test::on_its_device", mutates_args=())
    def on_its_device(x: torch.Tensor) -> torch.Tensor:
        return torch.ones(1, device=x.device) + x

    def work() -> None:
        with torch.autocast("cuda"):
            x = torch.ones(2, 2, device="cuda")
            seen.append((x @ x).dtype)
        seen.append(on_its_device(x).device)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert seen == [HALF, torch.device("cuda", 0)] * 2


def test_pinned_batches_of_a_loader(cuda: Any) -> None:
    loader = torch.utils.data.DataLoader([torch.ones(2)] * 4, batch_size=2, pin_memory=True, num_workers=1)
    assert [batch.is_pinned() and batch.cuda(non_blocking=True).is_cuda for batch in loader] == [True, True]


def test_nccl_is_gloo(cuda: Any, tmp_path: Path) -> None:
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        assert torch.distributed.get_backend() == "nccl"
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 2).cuda(), device_ids=[0])
        model(torch.ones(1, 2, device="cuda")).sum().backward()
        assert model.module.weight.grad.is_cuda
    finally:
        torch.distributed.destroy_process_group()


# -- autocast ----------------------------------------------------------------------------------------------------------


def _policies() -> dict[str, str]:
    return policies_of((Path(torch.__file__).parent / HEADER).read_text())


def test_the_lists_are_complete() -> None:
    names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    registered = {name.removeprefix("aten::") for name in names if name.startswith("aten::")}
    beside = {"binary_cross_entropy", "cudnn_convolution", "cudnn_convolution_transpose"}
    assert {name.removesuffix(".default") for name in _policies()} == registered - beside
    assert not BESIDE_HEADER.keys() & _policies().keys()


RESULT = {
    "lower": {"single": HALF, "half": HALF, "mixed": HALF},
    "promote": {"single": SINGLE, "half": HALF, "mixed": SINGLE},
}
"""The dtype of results by policy and operands; of all other policies float32."""


def test_results_have_the_dtype_that_the_lists_ask_for() -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    from agreement import KINDS, by_simulation, questions

    policies = defaultdict(set)
    for name, policy in _policies().items():
        policies[name.partition(".")[0]].add(policy)

    def listed(op: Any) -> bool:
        """Is it? The nuclear norm refuses half before autocast sees it."""
        return op.name.removeprefix("nn.functional.") in policies and op.variant_test_name != "nuc"

    asked = [q for q in questions(2, tuple(KINDS), listed) if q.sample.kwargs.get("dtype") is None]
    for question, dtypes in zip(asked, by_simulation(asked), strict=True):
        assert not isinstance(dtypes, Exception), f"{question}: {dtypes}"
        kinds = policies[question.op.name.removeprefix("nn.functional.")]
        wanted = {RESULT[kind][question.kind] if kind in RESULT else SINGLE for kind in kinds}
        assert {dtype for dtype in dtypes if dtype.is_floating_point} == wanted, str(question)
    assert len({question.op.name for question in asked}) >= 78


def test_results_have_the_dtype_that_torchs_own_kernels_give() -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    from agreement import by_simulation, by_torch, compare, questions

    asked = list(questions(1, ("single", "half")))
    result = compare(asked, by_simulation(asked), by_torch(asked))
    assert result.differ == []
    assert result.same > 950


def test_a_policy_that_is_missing_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    from agreement import by_simulation, by_torch, compare, questions

    asked = list(questions(1, ("half",), lambda op: op.name in ("exp", "log", "mul")))
    policies = {name: policy for name, policy in _policies().items() if name != "exp.default"}
    monkeypatch.setattr("dtlint.trace.simulate.autocast.policies_of", lambda text: policies)
    result = compare(asked, by_simulation(asked), by_torch(asked))
    assert [line.partition(":")[0] for line in result.differ] == ["exp half"]


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_results_have_the_dtype_that_a_real_device_gives() -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    from agreement import KINDS, by_simulation, compare, on_device, questions

    asked = list(questions(2, tuple(KINDS)))
    result = compare(asked, by_simulation(asked), on_device(asked))
    assert result.differ == []


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_half_overflows_where_it_does_on_a_real_device() -> None:
    def overflows() -> list[bool]:
        torch.manual_seed(0)
        x, w = torch.randn(64, 512).cuda(), torch.randn(512, 512).cuda()
        with torch.autocast("cuda"):
            return [bool(torch.isinf(x @ (w * scale)).any()) for scale in (1, 100, 600, 10_000)]

    real = overflows()
    with simulate("cuda"):
        assert overflows() == real == [False, False, True, True]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_run_in_half_as_in_cudnn(cuda: Any, kind: Any) -> None:
    layer, x = kind(4, 4).cuda(), torch.randn(3, 2, 4, device="cuda")
    with torch.autocast("cuda"):
        out, state = layer(x)
    assert {y.dtype for y in (out, *(state if isinstance(state, tuple) else (state,)))} == {HALF}


def test_binary_cross_entropy_is_refused(cuda: Any) -> None:
    p = torch.rand(3, device="cuda")
    with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(p, p)


def test_autocast_is_off_where_it_is_not_asked_for(cuda: Any) -> None:
    x, home = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    assert (x @ x).dtype is SINGLE and torch.exp(x.half()).dtype is HALF
    with torch.autocast("cuda"):
        assert (home @ home).dtype is SINGLE
        assert torch.is_autocast_enabled() and not torch.is_autocast_enabled("cpu")
        with torch.autocast("cuda", enabled=False):
            assert (x @ x).dtype is SINGLE
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.bfloat16
    with torch.autocast("cpu"):
        assert (home @ home).dtype is torch.bfloat16


def test_a_weight_is_cast_once(cuda: Any) -> None:
    layer, x = nn.Linear(2, 2, bias=False).cuda(), torch.ones(1, 2, device="cuda")
    tracer = Tracer()
    with tracer, torch.autocast("cuda"):
        layer(layer(x))
    casts = [s for site in tracer.sites.all.values() for s in site.signatures.values() if s.op.cast]
    assert sum(s.count for s in casts) == 2  # the weight and the input
    assert {s.author for s in casts} == {"autocast"}


def test_casts_keep_their_author(cuda: Any) -> None:
    x = torch.ones(2, 2, device="cuda")
    tracer = Tracer()
    with tracer, torch.autocast("cuda"):
        x.to(torch.bfloat16)
        x.half()
        x @ x
    found = {
        (s.site.source().expression, s.author)
        for site in tracer.sites.all.values()
        for s in site.signatures.values()
        if s.op.cast
    }
    assert found == {("x.to(torch.bfloat16)", "asked"), ("x.half()", "asked"), ("x @ x", "autocast")}


def test_the_scaler_skips_and_halves(cuda: Any) -> None:
    w = nn.Parameter(torch.ones(2, device="cuda"))
    optimizer, scaler = torch.optim.SGD([w], lr=1.0), torch.amp.GradScaler("cuda", growth_interval=1)
    scales = []
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [2.0**17, 2.0**16, 2.0**17]
    assert w.tolist() == [-1, -1]


# -- half kernels ------------------------------------------------------------------------------------------------------


def test_half_kernels_that_the_cpu_lacks_compute_in_float32_and_round(cuda: Any) -> None:
    x = torch.rand(1, 1, 4, 4, 4, device="cuda")
    assert torch.equal(F.avg_pool3d(x.half(), 2), F.avg_pool3d(x.half().float(), 2).half())
    y = torch.full((4,), -1.0, device="cuda", dtype=HALF)
    assert F.rrelu(y, 0.5, 0.5, training=True, inplace=True) is y
    assert y.tolist() == [-0.5] * 4
    with pytest.raises(RuntimeError, match="not implemented for 'Half'"):
        torch.linalg.qr(torch.rand(2, 2, device="cuda", dtype=HALF))  # nor has CUDA
    told = dict(cuda.unseen())
    assert any("avg_pool3d (1), rrelu_with_noise_ (1)" in what and count == 2 for what, count in told.items())


def test_the_list_of_those_kernels_is_complete() -> None:
    pytest.importorskip("expecttest", reason="torch's operator database needs it")
    from agreement import Question, by_simulation, questions

    def lacking(question: Question) -> bool:
        try:
            question.asked(lambda x: x)
        except Exception as error:
            return "not implemented for 'Half'" in str(error)
        return False

    only_on_cuda = questions(1, ("half",), lambda op: HALF in (op.dtypesIfCUDA or op.dtypes) - op.dtypes)
    asked = [question for question in only_on_cuda if lacking(question)]
    assert {q.op.name.removeprefix("nn.functional.") for q in asked} >= {"avg_pool3d", "rrelu"}
    answers = zip(asked, by_simulation(asked), strict=True)
    assert [(str(question), error) for question, error in answers if isinstance(error, Exception)] == []


@pytest.mark.parametrize("name", sorted(HALF_ON_CUDA))
def test_each_of_them_exists(name: str) -> None:
    assert hasattr(torch.ops.aten, name)


# -- beginning and end -------------------------------------------------------------------------------------------------


def test_all_is_undone() -> None:
    import torch._dynamo  # it replaces functions of torch's when it is first imported

    owners = [torch, torch.cuda, torch.Tensor, torch.UntypedStorage, torch.accelerator, torch.distributed]
    owners += [torch.version, torch.backends.cudnn, threading.Thread, torch.nn.parallel.comm, torch._C._nn]
    before = [{name: vars(owner)[name] for name in vars(owner)} for owner in owners]
    with simulate("cuda"), torch.autocast("cuda"):
        x = torch.ones(2, 2, device="cuda")
        x @ x
    for owner, names in zip(owners, before, strict=True):
        changed = {name for name in vars(owner) if names.get(name) is not vars(owner)[name]}
        lazily = {name for name in changed - names.keys() if isinstance(vars(owner)[name], types.ModuleType)}
        assert changed - lazily - {"__slotnames__"} == set(), owner
    home = torch.ones(2, 2)
    torch.set_autocast_enabled("cuda", True)
    try:
        assert (home @ home).dtype is SINGLE
    finally:
        torch.set_autocast_enabled("cuda", False)
    assert torch._C._len_torch_dispatch_stack() == 0


def test_an_exception_ends_it_too() -> None:
    available = torch.cuda.is_available
    with pytest.raises(ZeroDivisionError), simulate("cuda"):
        1 / 0
    assert torch.cuda.is_available is available


def test_one_at_a_time_and_outside_the_trace(cuda: Any) -> None:
    with pytest.raises(RuntimeError, match="end that simulation before"), simulate("cuda"):
        pass


def test_the_trace_is_the_inner_one() -> None:
    with Tracer(), pytest.raises(RuntimeError, match="start the simulation first"), simulate("cuda"):
        pass


def test_a_device_that_cannot_be_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SimulateError, match=r"'rocm' cannot be simulated; choose from: cuda"):
        simulate("rocm")
    monkeypatch.setattr("dtlint.trace.simulate.policies.HEADER", "include/none.h")
    assert why_not("cuda").startswith("the installed torch lacks CUDA's autocast lists")


# -- the command line --------------------------------------------------------------------------------------------------


def test_a_script_for_cuda_overflows_on_the_line_where_it_would(dtlint: Callable[..., Any], tmp_path: Path) -> None:
    ran = dtlint("trace", "--simulate", "cuda", "--output", "trace.json", str(FIXTURE), "--steps", "3")
    assert ran.code == 0, ran.err
    lines = FIXTURE.read_text().splitlines()
    record = load(tmp_path / "trace.json")
    born = record.events[0]
    assert (born.kind, born.dtype) == ("overflow", "float16")
    assert lines[record.places[born.place].line - 1].strip() == "scores = q @ k.transpose(-2, -1)"
    assert ran.out.splitlines()[-1] == "step 2 loss nan scale 8192"
    assert record.unseen[0].what.startswith("simulated device: CUDA ran on the CPU")
    assert "simulated device: CUDA ran on the CPU" in ran.err
    authors = {entry.author for entry in record.entries if entry.op == "_to_copy" and entry.phase == "forward"}
    assert "autocast" in authors


@pytest.mark.skipif(torch.cuda.is_available(), reason="the script runs where there is a CUDA device")
def test_without_the_option_nothing_changes(dtlint: Callable[..., Any]) -> None:
    ran = dtlint("trace", str(FIXTURE), "--steps", "1")
    assert (ran.code, ran.out) == (1, "") and "simulated device" not in ran.err


def test_a_wrong_device_is_one_line(dtlint: Callable[..., Any]) -> None:
    ran = dtlint("trace", "--simulate", "rocm", str(FIXTURE))
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.strip().splitlines()
    assert line.endswith("dtlint trace: --simulate: 'rocm' cannot be simulated; choose from: cuda")


SPAWNS = """
import torch

def work(rank):
    x = torch.ones(2, 2, device=rank)
    with torch.autocast("cuda"):
        print(rank, x.device, (x @ x).dtype, flush=True)

if __name__ == "__main__":
    torch.multiprocessing.spawn(work, nprocs=1)
"""


def test_spawned_children_find_it_too(tmp_path: Path) -> None:
    script = tmp_path / "spawns.py"
    script.write_text(SPAWNS)
    command = [sys.executable, "-m", "dtlint", "trace", "--simulate", "cuda", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "0 cuda:0 torch.float16\n"), ran.stderr
