"""What fixes write, and where there is none."""

from __future__ import annotations

import pytest
from bench import Bench

bench = Bench(
    "DT101",
    "DT599",
    "import argparse\nimport math\nimport os\nimport sys\nimport numpy as np\nimport torch\n"
    "import torch.nn.functional as F\nfrom torch import Tensor, nn\n",
)


def test_a_parameter_is_not_assigned_its_cast() -> None:
    text = """
    class Norm(nn.LayerNorm):
        def forward(self, x):
            self.weight.float()
            return super().forward(x)
    """
    assert bench.fixed("DT104", text).strip() == bench.source(text).text.removeprefix(bench.head).strip()


@pytest.mark.parametrize(
    ("otherwise", "help"),
    [("x = (x * 255).to(torch.uint8)", "Remove the cast"), ("x = x * 255", "Invert the test")],
)
def test_a_test_is_right_where_the_other_branch_casts(otherwise: str, help: str) -> None:
    text = """
    def as_bytes(x):
        if x.dtype != torch.uint8:
            x = x.clamp(0, 1)
            {otherwise}
        else:
            x = x.to(torch.uint8)
        return x
    """
    (item,) = bench.found("DT117", text.format(otherwise=otherwise))
    assert item.help == help


def test_a_device_becomes_the_type_of_one() -> None:
    before = "def run(model, x: Tensor):\n    with torch.autocast(x.device, torch.bfloat16):\n        return model(x)\n"
    assert "torch.autocast(x.device.type, torch.bfloat16)" in bench.fixed("DT107", before)


@pytest.mark.parametrize(
    ("code", "before", "after"),
    [
        ("DT107", "x = torch.zeros(2, dtype=np.float32)\n", "x = torch.zeros(2, dtype=torch.float32)\n"),
        ("DT107", "x = y.astype(torch.bool)\n", "x = y.astype(np.bool_)\n"),
        (
            "DT107",
            "m = nn.Linear(2, 2).to(torch_dtype=torch.half)  # half\n",
            "m = nn.Linear(2, 2).to(dtype=torch.half)  # half\n",
        ),
        ("DT108", "y = torch.ones(2).float().half()\n", "y = torch.ones(2).half()\n"),
        ("DT116", "m = nn.BatchNorm1d(2).type(torch.half)\n", "m = nn.BatchNorm1d(2).to(torch.half)\n"),
        ("DT120", "a = torch.ones(2).dtype == 'float16'\n", "a = torch.ones(2).dtype == torch.float16\n"),
        (
            "DT111",
            "state = {k: v.half() for k, v in net.state_dict().items()}\n",
            "state = {k: v.half() if v.is_floating_point() else v for k, v in net.state_dict().items()}\n",
        ),
    ],
)
def test_fixes(code: str, before: str, after: str) -> None:
    assert bench.fixed(code, before) == after


def test_a_cast_to_an_integer_buffer_is_where_the_fix_has_none() -> None:
    """`v.cpu().half()` would lose the move, so that there is a finding and no fix."""
    text = "state = {k: v.cpu().half() for k, v in net.state_dict().items()}\n"
    assert bench.flagged("DT111", text)
    assert bench.fixed("DT111", text) == text


def test_the_dtype_of_a_tensor_is_compared() -> None:
    before = "def run(x: Tensor):\n    return x.float() if x == torch.float16 else x\n"
    assert "if x.dtype == torch.float16 else" in bench.fixed("DT120", before)


def test_a_cast_is_called_by_its_name() -> None:
    before = "def narrow(x: Tensor):\n    return x.float32()\n"
    assert "return x.float()" in bench.fixed("DT125", before)


def test_a_dtype_is_spelled_as_torch_has_it() -> None:
    before = "def compress(x: Tensor):\n    return x.to(dtype=torch.fp16)\n"
    assert "x.to(dtype=torch.float16)" in bench.fixed("DT125", before)


def test_bytes_become_bools() -> None:
    text = """
    def hide(x: Tensor, ids: Tensor):
        x[(ids == 0).byte()] = -1.0
        return x[(ids == 1).byte()]
    """
    assert [finding.severity.name for finding in bench.found("DT308", text)] == ["WARNING", "WARNING"]
    assert bench.fixed("DT308", text).count(".bool()") == 2


def test_a_function_of_one_device_becomes_that_of_all() -> None:
    before = "torch.set_autocast_gpu_dtype(torch.float16)\non = torch.is_autocast_cpu_enabled()\n"
    after = 'torch.set_autocast_dtype("cuda", torch.float16)\non = torch.is_autocast_enabled("cpu")\n'
    assert bench.fixed("DT501", before) == after


def test_what_tells_the_device_already_is_only_renamed() -> None:
    text = "def f(x, on):\n    with torch.cuda.amp.autocast(x.device.type, enabled=on):\n        return x\n"
    assert "torch.amp.autocast(x.device.type, enabled=on)" in bench.fixed("DT501", text)


def test_a_switch_becomes_a_keyword_whatever_its_name_speaks_of() -> None:
    text = "def f(x, args):\n    with torch.cuda.amp.autocast(args.fp16_on_device):\n        return x\n"
    assert 'torch.amp.autocast("cuda", enabled=args.fp16_on_device)' in bench.fixed("DT501", text)


def test_a_tensor_of_the_gpu_stays_there() -> None:
    fixed = bench.fixed("DT502", "overflow = torch.cuda.IntTensor([0])\n")
    assert fixed == 'overflow = torch.tensor([0], dtype=torch.int32, device="cuda")\n'


def test_a_legacy_constructor_of_a_list_that_is_told_a_dtype_becomes_a_function() -> None:
    text = "a = torch.Tensor([1.0], dtype=torch.float64)\n"
    assert "torch.tensor([1.0], dtype=torch.float64)" in bench.fixed("DT502", text)
    unknown = "def f(n):\n    return torch.Tensor(n, dtype=torch.float64)\n"
    assert "torch.Tensor(n, dtype=torch.float64)" in bench.fixed("DT502", unknown)


@pytest.mark.parametrize(
    ("made", "fixed"),
    [
        ("torch.FloatTensor([0.5, 1], device=device)", "torch.tensor([0.5, 1], device=device, dtype=torch.float32)"),
        ("torch.FloatTensor(3, 4, device=device)", "torch.FloatTensor(3, 4, device=device)"),
        ("torch.FloatTensor(ids, device=device)", "torch.FloatTensor(ids, device=device)"),
    ],
)
def test_a_constructor_of_data_becomes_a_tensor_of_its_dtype(made: str, fixed: str) -> None:
    text = "def rows(ids, device):\n    return {}\n"
    assert bench.fixed("DT502", text.format(made)) == text.format(fixed)


def test_what_is_drawn_beyond_int32_is_int64() -> None:
    assert "randint(1e10, dtype=np.int64)" in bench.fixed("DT506", "number = np.random.randint(1e10)\n")


def test_a_seed_is_drawn_as_int64() -> None:
    assert "randint(0, 2**32 - 1, dtype=np.int64)" in bench.fixed("DT506", "seed = np.random.randint(0, 2**32 - 1)\n")


@pytest.mark.parametrize(
    ("alias", "now"),
    [
        ("np.float", "float"),
        ("np.bool", "np.bool_"),
        ("np.unicode", "str"),
        ("np.float_", "np.float64"),
        ("np.int0", "np.intp"),
    ],
)
def test_an_alias_becomes_what_it_stood_for(alias: str, now: str) -> None:
    assert bench.fixed("DT510", f"x = np.zeros(3, dtype={alias})\n").endswith(f"x = np.zeros(3, dtype={now})\n")


def test_the_long_of_c_is_not_written_as_another_integer() -> None:
    text = "x = np.zeros(3, dtype=np.long)\n"
    assert bench.fixed("DT510", text) == text


def test_an_alias_is_not_written_as_what_the_file_means_something_else_by() -> None:
    text = "from mytypes import float\nx = np.zeros(3, dtype=np.float)\n"
    assert bench.fixed("DT510", text).endswith(text)
