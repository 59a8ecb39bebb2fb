"""Range and precision, DT401 to DT417: what is said of code, what the fixes write, and that the figures hold."""

from __future__ import annotations

from typing import Any

import pytest
from bench import Bench

from dtlint import Applicability
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

bench = Bench("DT401", "DT499", "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n")
RULES, found = bench.rules, bench.found
fixed = bench.fixed


def test_masks_get_the_limit_of_their_dtype() -> None:
    assert fixed("DT401", "def f(s, mask):\n    return s.masked_fill(mask, value=-1e9)  # kept\n") == (
        "def f(s, mask):\n    return s.masked_fill(mask, value=torch.finfo(s.dtype).min)  # kept\n"
    )
    assert fixed("DT401", "def f(logits: torch.Tensor, m):\n    logits[~m] = -1e9\n") == (
        "def f(logits: torch.Tensor, m):\n    logits[~m] = torch.finfo(logits.dtype).min\n"
    )


def test_fixes_follow_the_spelling_of_the_file() -> None:
    text = "import torch as th\nfrom torch.nn import functional as fn\n\ndef f(s: th.Tensor):\n    return th.log(fn.softmax(s, dim=-1))\n"
    source = Source.from_bytes(text.encode(), "example.py")
    result = fix_source(source, [RULES["DT417"]], Settings(preview=True), Applicability.SAFE)
    assert result.source.text.endswith("    return fn.log_softmax(s, dim=-1)\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.softmax(-1).log()", "x.log_softmax(-1)"),
        ("torch.log(x.softmax(dim=-1))", "x.log_softmax(dim=-1)"),
        ("x.sigmoid().log()", "F.logsigmoid(x)"),
        ("torch.log(F.softmax((x + 1), -1))", "F.log_softmax((x + 1), -1)"),
    ],
)
def test_a_logarithm_joins_the_function_it_is_taken_of(before: str, after: str) -> None:
    assert (
        fixed("DT417", f"def f(x: torch.Tensor):\n    return {before}\n")
        == f"def f(x: torch.Tensor):\n    return {after}\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m(x).softmax(-1).log()", "m(x).log_softmax(-1)"),
        ("m(x).sigmoid().log()", "F.logsigmoid(m(x))"),
        ("(m(x).softmax(-1)).log()", "m(x).log_softmax(-1)"),
        ("(x @ w).softmax(-1).log()", "(x @ w).log_softmax(-1)"),
        ("(x @ w).sigmoid().log()", "F.logsigmoid(x @ w)"),
        ("2 * (-x).sigmoid().log() + 1", "2 * F.logsigmoid(-x) + 1"),
        ("(x if len(x) else w).sigmoid().log()", "F.logsigmoid(x if len(x) else w)"),
        ("torch.log(x[:, 0].softmax(0))", "x[:, 0].log_softmax(0)"),
        ("torch.log(x[:, 0].sigmoid())", "F.logsigmoid(x[:, 0])"),
        ("torch.log(input=x.T.softmax(-1))", "x.T.log_softmax(-1)"),
        ("torch.log(torch.sigmoid(input=x @ w))", "F.logsigmoid(input=x @ w)"),
        ("torch.log(\n    m(x)\n    .softmax(-1)\n)", "(m(x)\n    .log_softmax(-1))"),
        ("torch.log(\n    (x @ w)  # scores\n    .softmax(-1)\n)", "((x @ w)  # scores\n    .log_softmax(-1))"),
        ("(\n    m(x)\n    .sigmoid()\n    .log()\n)", "(\n    F.logsigmoid(m(x))\n)"),
        ("torch.log((\n    x  # seen\n    @ w\n).sigmoid())", "F.logsigmoid(x  # seen\n    @ w)"),
        ("torch.log(F.softmax(\n    x,  # seen\n    dim=-1,\n))", "F.log_softmax(\n    x,  # seen\n    dim=-1,\n)"),
    ],
)
def test_what_the_inner_function_is_taken_of_is_kept(before: str, after: str) -> None:
    text = fixed("DT417", f"def f(x, w, m):\n    return {before}\n")
    assert text == f"def f(x, w, m):\n    return {after}\n"
    torch = pytest.importorskip("torch")
    assert torch.allclose(returned(text), returned(f"def f(x, w, m):\n    return {before}\n"), atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "torch.log(\n    # from the logits\n    m(x).softmax(-1)\n)",
        "torch.log(m(x).softmax(-1), out=w)",
        "torch.log(torch.softmax(x, -1, torch.float64))",
        "torch.log(torch.softmax(x, -1, out=w))",
        "torch.log(nn.Softmax(-1)(x))",
    ],
)
def test_a_logarithm_stays_where_something_would_be_lost(text: str) -> None:
    assert fixed("DT417", f"def f(x, w, m):\n    return {text}\n") == f"def f(x, w, m):\n    return {text}\n"


def test_advice_to_call_a_method_on_an_operation_brackets_it() -> None:
    (ratio,) = found(
        "DT417", "def kl(logp, old_logp):\n    return torch.exp(logp - old_logp) - 1 - (logp - old_logp)\n"
    )
    assert "torch.expm1(x) - x" in ratio.help


def test_a_layer_keeps_its_arguments_from_the_fix() -> None:
    text = "def f(x, w, m):\n    act = nn.Softmax(0)\n    return act(x).log()\n"
    assert [finding.location.span.line for finding in found("DT417", text)] == [7]
    assert fixed("DT417", text) == text


def returned(text: str) -> Any:
    """The tensor that the function of a program returns."""
    import torch

    scope: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(text, scope)
    given = torch.arange(9.0).reshape(3, 3)
    return scope["f"](given / 9, given.T / 7, torch.cos)


def test_the_figures_hold() -> None:
    torch = pytest.importorskip("torch")
    half = torch.tensor([0.0, 1.0], dtype=torch.float16)
    with pytest.raises(RuntimeError, match="without overflow"):
        half.masked_fill(half > 0, -1e9)
    assert ((1 - half) * -1e9).tolist()[0] == -torch.inf
    assert (half + 2.98e-8)[0] == 0
    assert (half + 2.99e-8)[0] > 0
    assert torch.tensor([1.0]).clamp(max=1 - 1e-8).item() == 1
    assert torch.arange(2048, dtype=torch.bfloat16).unique().numel() == 641
    assert torch.tensor([0.99915], dtype=torch.bfloat16).item() == 1
    assert torch.log(torch.softmax(torch.tensor([0.0, 105.0]), 0))[0] == -torch.inf
    assert (torch.tensor([3], dtype=torch.uint8) * 256).item() == 0


def test_a_bound_that_rounds_to_one_is_told_as_it_was_written() -> None:
    text = "def f(x: torch.Tensor):\n    p = F.softmax(x.float(), 1)\n    top = 1 - 1e-8\n    return torch.clamp(p, 1e-8, top).log()\n"
    (one,) = found("DT403", text)
    assert one.message == "0.99999999 is 1 in float32: the bound keeps nothing away from 1"
    assert one.help == "Use an epsilon that the dtype has, such as 1e-5, or compute in float64"
