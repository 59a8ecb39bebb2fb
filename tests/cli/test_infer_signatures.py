"""`dtlint infer --signatures`: what functions do to dtypes, whoever calls them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from dtlint.cli.infer import command

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n"


def told(tmp_path: Path, code: str, *args: str) -> Result:
    path = tmp_path / "library.py"
    path.write_text(HEAD + code, encoding="utf-8")
    return CliRunner().invoke(command, ["--signatures", *args, str(path)])


def lines(tmp_path: Path, code: str) -> list[str]:
    return [line for line in told(tmp_path, code).output.splitlines() if not line.startswith("#")]


RMS_NORM = """\
def rms_norm(x, weight, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
"""


def test_the_signature_of_a_function_with_what_breaks_in_half(tmp_path: Path) -> None:
    assert lines(tmp_path, RMS_NORM) == [
        "rms_norm(x: T, weight: U, eps=1e-06) -> promote(T, U)",
        "    half: In float16 the square of `x` overflows beyond 256 (line 4, DT408)",
    ]


def test_the_same_as_json(tmp_path: Path) -> None:
    (found,) = json.loads(told(tmp_path, RMS_NORM, "--output-format", "json").output)
    assert (found["name"], found["line"], found["result"]) == ("rms_norm", 3, "promote(T, U)")
    assert found["parameters"] == [
        {"name": "x", "dtype": "T", "default": None},
        {"name": "weight", "dtype": "U", "default": None},
        {"name": "eps", "dtype": None, "default": "1e-06"},
    ]
    assert found["holds"] == ["no autocast region is around the call"]
    (overflow,) = found["overflows"]
    assert (overflow["expression"], overflow["line"], overflow["above"]) == ("x.pow(2)", 4, 255.9375)
    assert [(one["under"], one["code"]) for one in found["breaks"]] == [(["half"], "DT408")]


@pytest.mark.parametrize(
    ("code", "signature"),
    [
        ("def f(x: torch.Tensor):\n    return x.float()", "f(x: T) -> float32"),
        ("def f(x):\n    return x / 2, x > 0, x.argmax()", "f(x: T) -> (T, bool, int64)"),
        ("def f(x, y=None):\n    return x.exp(), y", "f(x: T, y: U = None) -> (T, U)"),
        ("def f(x: torch.Tensor, n: int):\n    return [x * n]", "f(x: T, n) -> [T]"),
        ("def f(x: torch.Tensor):\n    return {'loss': x.sum(), 'n': 3}", "f(x: T) -> {'loss': T, 'n': int}"),
        ("def f(x: torch.HalfTensor):\n    return x", "f(x: float16) -> float16"),
        ("def f(model, x):\n    return model(x)", "f(model, x) -> ?"),
        ("def f(x, *rest, **more):\n    raise ValueError", "f(x, *rest, **more) -> never returns"),
        ("def f(x: torch.Tensor):\n    return None if x.sum() > 0 else x", "f(x: T) -> T | None"),
        ("def f(x: torch.Tensor):\n    yield x", "f(x: T) -> ?"),
        ("def f(x: torch.Tensor, y: torch.Tensor):\n    return x.to(y.dtype)", "f(x: T, y: U) -> U"),
    ],
)
def test_results(tmp_path: Path, code: str, signature: str) -> None:
    assert lines(tmp_path, code + "\n")[0] == signature


def test_a_forward_is_told_with_the_weights_of_its_module(tmp_path: Path) -> None:
    code = (
        "class Block(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(n))\n"
        "    def forward(self, x):\n"
        "        return x * self.scale\n"
        "    def other(self, x):\n"
        "        return x\n"
        "class _Private(Block):\n"
        "    pass\n"
        "def _hidden(x):\n"
        "    return x\n"
    )
    assert lines(tmp_path, code) == ["Block.forward(x: T) -> promote(T, self.scale)"]


def test_an_exponential_that_is_known_to_be_small_does_not_overflow(tmp_path: Path) -> None:
    code = "def f(x: torch.Tensor):\n    return x.exp(), x.sigmoid().exp(), x.float().exp()\n"
    assert lines(tmp_path, code)[1] == "    float16: `x.exp()` overflows above 11 (line 4)"
    assert "exp" not in "".join(lines(tmp_path, code)[2:])


def test_a_file_without_public_functions(tmp_path: Path) -> None:
    assert "No public function" in told(tmp_path, "x = 1\n").output
    assert json.loads(told(tmp_path, "x = 1\n", "--output-format", "json").output) == []


def test_bad_input(tmp_path: Path) -> None:
    result = told(tmp_path, "def f(:\n")
    assert (result.exit_code, "library.py:3:7: " in result.output) == (2, True)
    result = told(tmp_path, "x = 1\n", "--assume", "half")
    assert (result.exit_code, "--signatures does not go with --assume" in result.output) == (2, True)
    assert CliRunner().invoke(command, ["--signatures"]).exit_code == 2
