"""The operator table as it ships: what it answers, what it leaves unknown, and how it is loaded. Needs no torch."""

from __future__ import annotations

import itertools
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from dtlint.dtypes.form import Form, Parameter
from dtlint.dtypes.table import DTYPE, LATEST, UNKNOWN, load

HALF, BF16, FLOAT, DOUBLE = (("float16", 2), ("bfloat16", 2), ("float32", 2), ("float64", 2))
INT, BOOL, COMPLEX = ("int64", 2), ("bool", 2), ("complex64", 2)


def call(op: str, *args: Any, default: str = "float32", **kwargs: Any) -> Any:
    outcome = load().call(op, args, kwargs, default=default)
    assert outcome.known, (op, args, kwargs)
    return outcome.error or outcome.result


@pytest.mark.parametrize(
    ("op", "args", "kwargs", "expected"),
    [
        ("torch.add", (HALF, FLOAT), {}, "float32"),
        ("torch.add", (HALF, ("float64", 1)), {}, "float16"),
        ("torch.Tensor.__add__", (INT, 0.5), {}, "float32"),
        ("torch.Tensor.add_", (HALF, FLOAT), {}, "float16"),
        ("torch.Tensor.__iadd__", (HALF, FLOAT), {}, "float16"),
        ("torch.Tensor.__imul__", (HALF, 2.0), {}, "float16"),
        ("torch.Tensor.copy_", (HALF, FLOAT), {}, "float16"),
        ("torch.abs", (COMPLEX,), {}, "float32"),
        ("torch.isnan", (HALF,), {}, "bool"),
        ("torch.argmax", (HALF,), {"dim": 0}, "int64"),
        ("torch.sum", (("int8", 2),), {}, "int64"),
        ("torch.sum", (HALF,), {"dtype": ("float32", DTYPE)}, "float32"),
        ("torch.Tensor.sum", (BOOL, 0), {}, "int64"),
        ("torch.div", (INT, INT), {}, "float32"),
        ("torch.div", (INT, INT), {"rounding_mode": "floor"}, "int64"),
        ("torch.Tensor.softmax", (BF16, -1), {}, "bfloat16"),
        ("torch.nn.functional.softmax", (BF16,), {"dim": -1, "dtype": ("float32", DTYPE)}, "float32"),
        ("torch.max", (HALF,), {}, "float16"),
        ("torch.max", (HALF, 1), {}, ("float16", "int64")),
        ("torch.max", (HALF, FLOAT), {}, "float32"),
        ("torch.where", (BOOL, HALF, FLOAT), {}, "float32"),
        ("torch.cat", ([HALF, FLOAT],), {}, "float32"),
        ("torch.matmul", (BF16, BF16), {}, "bfloat16"),
        ("torch.linalg.svd", (COMPLEX,), {}, ("complex64", "float32", "complex64")),
        ("torch.zeros", (2, 3), {}, "float32"),
        ("torch.zeros", (UNKNOWN,), {"dtype": ("float16", DTYPE), "device": UNKNOWN}, "float16"),
        ("torch.zeros_like", (HALF,), {}, "float16"),
        ("torch.Tensor.new_zeros", (BF16, 2, 3), {}, "bfloat16"),
        ("torch.arange", (10,), {}, "int64"),
        ("torch.arange", (0, 1, 0.1), {}, "float32"),
        ("torch.full", ([2], True), {}, "bool"),
        ("torch.full", ([2], 1.5), {}, "float32"),
        ("torch.tensor", (2.5,), {}, "float32"),
        ("torch.Tensor.type_as", (HALF, FLOAT), {}, "float32"),
        ("torch.chunk", (HALF, 2), {}, ["float16"]),
        ("torch.nn.Linear", (HALF, HALF), {}, "float16"),
        ("torch.nn.LSTM", (HALF, HALF), {}, ("float16", ("float16", "float16"))),
        ("torch.nn.Embedding", (BF16, INT), {}, "bfloat16"),
        ("torch.nn.ReLU", (None, HALF), {}, "float16"),
    ],
)
def test_what_ops_give(op: str, args: tuple[Any, ...], kwargs: dict[str, Any], expected: Any) -> None:
    assert call(op, *args, **kwargs) == expected


@pytest.mark.parametrize(
    ("op", "args", "message"),
    [
        ("torch.softmax", (INT, 0), "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'"),
        ("torch.nn.Linear", (FLOAT, HALF), "expected m1 and m2 to have the same dtype, but got: c10::Half != float"),
        ("torch.Tensor.__iadd__", (INT, FLOAT), "can't be cast to the desired output type Long"),
        ("torch.mean", (INT,), None),
        ("torch.linalg.inv", (HALF,), None),
    ],
)
def test_what_raises_and_with_which_words(op: str, args: tuple[Any, ...], message: str | None) -> None:
    outcome = load().call(op, args)
    assert outcome.known
    assert outcome.dtypes == ()
    assert outcome.error
    assert message is None or message in outcome.error


def test_an_error_that_only_the_cpu_may_raise_is_told_apart() -> None:
    table = load()
    assert table.call("torch.linalg.inv", [HALF]).is_of_cpu
    assert not table.call("torch.nn.Linear", [FLOAT, HALF]).is_of_cpu
    assert not table.call("torch.nn.Linear", [HALF, HALF]).is_of_cpu


def test_the_default_dtype_decides_where_torch_asks_it() -> None:
    assert call("torch.zeros", 2, default="float64") == "float64"
    assert call("torch.sqrt", INT, default="bfloat16") == "bfloat16"
    assert call("torch.full", [2], 1.5, default="float64") == "float64"


def test_ops_that_heed_the_default_dtype_are_told_apart() -> None:
    """Whatever an op gives for tensors and whole numbers under one default dtype, it gives under the other, if it is no op
    that heeds it."""
    assert load().heeds_default("torch.zeros")
    assert load().heeds_default("torch.div")
    ops = ["torch.add", "torch.mul", "torch.Tensor.to", "torch.matmul", "torch.where", "torch.div", "torch.sin"]
    kept = [op for op in ops if not load().heeds_default(op)]
    assert kept
    operands = [("int64", 2), ("float16", 2), ("float64", 1), ("bool", 2)]
    for op, left, right in itertools.product(kept, operands, [*operands, 2, True]):
        one, other = (load().call(op, [left, right], default=default) for default in ("float32", "float64"))
        assert one == other


def test_an_op_asked_by_its_operands_alone() -> None:
    table = load()
    assert table.result("torch.add", [HALF, FLOAT]).dtype == "float32"
    assert table.result("torch.add", [HALF, FLOAT], in_place=True).dtype == "float16"
    assert table.result("torch.sum", [HALF], dtype="float64").dtype == "float64"
    assert table.result("torch.linalg.svd", [FLOAT]).dtypes == ("float32",) * 3
    assert table.result("torch.zeros", []).dtype == "float32"


@pytest.mark.parametrize(
    ("op", "args", "kwargs"),
    [
        ("torch.no_such_op", (HALF,), {}),
        ("torch.add", (HALF, UNKNOWN), {}),
        ("torch.cat", ([HALF, UNKNOWN],), {}),
        ("torch.Tensor.index_put_", (HALF, [UNKNOWN, INT], HALF), {}),
        ("torch.add", (HALF, "a string"), {}),
        ("torch.sum", (HALF,), {"no_such_argument": 1}),
        ("torch.sum", (HALF,), {"dtype": UNKNOWN}),
        ("torch.div", (INT, INT), {"rounding_mode": UNKNOWN}),
        ("torch.mul", (("float8_e4m3fn", 2), HALF), {}),
    ],
)
def test_what_was_not_observed_is_unknown(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    outcome = load().call(op, args, kwargs)
    assert not outcome.known
    assert outcome.dtypes == ()


def test_an_unknown_argument_that_decides_nothing_hinders_nothing() -> None:
    assert call("torch.Tensor.softmax", HALF, UNKNOWN) == "float16"
    assert call("torch.zeros_like", HALF, device=UNKNOWN) == "float16"


@pytest.mark.parametrize(
    ("op", "place", "kinds"),
    [
        ("torch.sum", 1, ""),
        ("torch.sum", "dtype", "d"),
        ("torch.sum", 9, None),
        ("torch.clamp", "min", "tn"),
        ("torch.Tensor.permute", 5, ""),
        ("torch.nn.functional.conv2d", 2, "t"),
        ("torch.nn.functional.pad", "axis", None),
    ],
)
def test_which_arguments_are_operands(op: str, place: int | str, kinds: str | None) -> None:
    assert load().kinds_at(op, place) == (None if kinds is None else frozenset(kinds))


def test_an_unknown_option_decides_nothing_where_all_that_were_seen_agree() -> None:
    pad = "torch.nn.functional.pad"
    assert load().call(pad, (HALF, [1, 1]), {"mode": UNKNOWN}).dtype == "float16"
    assert not load().call(pad, (("bool", 2), [1, 1]), {"mode": UNKNOWN}).known  # which two of the modes refuse


def test_autocast_policies_by_device() -> None:
    table = load()
    assert table.autocast("cuda", "torch.matmul") == "lower"
    assert table.autocast("cuda", "torch.Tensor.exp") == "fp32"
    assert table.autocast("cpu", "torch.exp") is None
    assert table.autocast("cuda", "torch.nn.functional.softmax") == "fp32_set_opt_dtype"
    assert table.autocast("mps", "torch.nn.functional.softmax") == "fp32"
    assert table.autocast("cuda", "torch.addcmul") == "promote"
    assert table.autocast("cuda", "torch.nn.functional.binary_cross_entropy") == "banned"
    assert table.autocast("cpu", "torch.nn.functional.binary_cross_entropy") == "fp32"
    assert table.autocast("cpu", "torch.nn.Linear") == "lower"
    assert table.autocast("cuda", "torch.nn.functional.cross_entropy") == "composite"
    assert table.autocast("cuda", "torch.nn.LSTM") == "composite"
    assert table.autocast("cuda", "torch.relu") is None


def test_kernels_that_the_cpu_lacks() -> None:
    table = load()
    assert table.lacks_kernel("torch.linalg.inv", "float16")
    assert table.lacks_kernel("torch.cdist", "bfloat16")
    assert not table.lacks_kernel("torch.linalg.inv", "float32")
    assert not table.lacks_kernel("torch.matmul", "float16")


def test_kernels_that_cuda_lacks_too() -> None:
    table = load()
    for device in ("cuda", None):
        assert table.lacks_kernel("torch.linalg.inv", "float16", device)
        assert table.lacks_kernel("torch.nn.functional.gelu", "uint8", device)
        assert table.lacks_kernel("torch.nn.AvgPool2d", "int32", device)
        assert not table.lacks_kernel("torch.fft.fft", "float16", device)  # CUDA has one
        assert not table.lacks_kernel("torch.cdist", "float16", device)  # nor does the CPU raise for many points


def test_the_table_says_where_it_was_learned() -> None:
    assert load().torch_version.startswith(LATEST)
    assert "CPU" in load().note


def test_a_version_without_a_table_is_an_error_that_says_which_there_is() -> None:
    with pytest.raises(ValueError, match=LATEST):
        load("0.4")


def test_a_parameter_reads_what_it_writes() -> None:
    for text in ("input:t", "other:tn", "*dtype:d=N", "size:v;#", "rounding_mode=N;'floor','trunc'", "*device=N;*"):
        assert str(Parameter.parse(text)) == text


def test_numbers_spread_over_the_positions_are_one_argument() -> None:
    form = Form((Parameter("input", "t"), Parameter("size", "v", seen=frozenset({"#"}))))
    assert form.bind((HALF, 2, 3), {}) == form.bind((HALF, [2, 3]), {})
    assert form.bind((HALF,), {}) is None


def test_the_file_is_small_and_travels_with_the_package() -> None:
    file = files("dtlint.dtypes") / "tables" / f"torch-{LATEST}.json"
    assert 10_000 < len(file.read_bytes()) < 1_000_000


def test_what_only_python_takes_for_the_same_is_asked_apart() -> None:
    """Answers are kept by the question, in which True is no 1, 1.0 no 1, and a default dtype no argument."""
    assert call("torch.add", INT, 1) == "int64"
    assert call("torch.add", INT, 1.0) == "float32"
    assert call("torch.add", INT, 1.0, default="float16") == "float16"
    assert call("torch.add", BOOL, True) == "bool"
    assert call("torch.add", BOOL, 1) == "int64"
    assert call("torch.sum", INT, dtype=("float16", DTYPE)) == "float16"
    assert call("torch.sum", INT, dtype=None) == "int64"


def test_loading_reads_one_file_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: read.append(self.name) or original(self))
    load.cache_clear()
    assert load() is load()
    assert read == [f"torch-{LATEST}.json"]


def test_importing_the_table_loads_neither_torch_nor_the_file() -> None:
    code = "import sys, dtlint.dtypes.table; print(sorted({'torch', 'json', 'gzip', 'numpy'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
