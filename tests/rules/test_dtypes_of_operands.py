"""Operands of dtypes that torch refuses, DT306 to DT314: what is flagged, what the fixes write, and that they run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from bench import Bench

bench = Bench(
    "DT302", "DT314", "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
)
found = bench.found


def fixed(code: str, text: str) -> str:
    return bench.fixed(code, text).strip()


FIXES = {
    "DT306": {
        "codes = torch.arange(4).int()\nF.one_hot(codes)": "codes = torch.arange(4).int()\nF.one_hot(codes.long())",
        "x, i = torch.rand(4, 4), torch.arange(4) / 2\ny = x[:, i]": (
            "x, i = torch.rand(4, 4), torch.arange(4) / 2\ny = x[:, i.long()]"
        ),
        "x, i = torch.rand(4, 4), torch.arange(4) / 2\nx[..., i] = 0": (
            "x, i = torch.rand(4, 4), torch.arange(4) / 2\nx[..., i.long()] = 0"
        ),
        "F.one_hot(torch.arange(4).int())": "F.one_hot(torch.arange(4).long())",
        "torch.zeros(4).index_fill(0, index=torch.arange(4).int() // 2, value=1)": (
            "torch.zeros(4).index_fill(0, index=(torch.arange(4).int() // 2).long(), value=1)"
        ),
    },
    "DT307": {
        "F.cross_entropy(torch.rand(3, 4), torch.zeros(3).int())": "F.cross_entropy(torch.rand(3, 4), torch.zeros(3).long())",
        "p, y = torch.rand(3), torch.arange(3)\nF.binary_cross_entropy(p, y == 0)": (
            "p, y = torch.rand(3), torch.arange(3)\nF.binary_cross_entropy(p, (y == 0).to(p.dtype))"
        ),
        "nn.BCEWithLogitsLoss()(torch.rand(3), torch.zeros(3).long())": (
            "nn.BCEWithLogitsLoss()(torch.rand(3), torch.zeros(3).float())"
        ),
    },
    "DT308": {
        "x = torch.rand(3)\n(1 - (x > 0.5)) * x": "x = torch.rand(3)\n(~(x > 0.5)) * x",
        "x = torch.rand(3)\n1 - (x\n    .gt(0.5))": "x = torch.rand(3)\n~(x\n    .gt(0.5))",
        "x = torch.rand(3)\nmask = x > 0.5\n1.0 - mask": "x = torch.rand(3)\nmask = x > 0.5\n~mask",
        "x = torch.rand(3)\nx.masked_select((x > 0.5).byte())": "x = torch.rand(3)\nx.masked_select((x > 0.5).bool())",
        "mask = (torch.rand(3) > 0.5).byte()\n~mask": "mask = (torch.rand(3) > 0.5).byte()\n~mask.bool()",
    },
    "DT309": {
        "(torch.arange(3) == 1).mean()": "(torch.arange(3) == 1).float().mean()",
        "torch.std(torch.arange(3) + 1)": "torch.std((torch.arange(3) + 1).float())",
        "torch.arange(3).norm(dim=0)  # a note": "torch.arange(3).float().norm(dim=0)  # a note",
        "torch.std((torch.arange(3) + 1).int())": "torch.std((torch.arange(3) + 1).float())",
        "torch.std((\n    torch.arange(3)  # ranks\n    .view(-1)\n).int())": (
            "torch.std((\n    torch.arange(3)  # ranks\n    .view(-1)\n).float())"
        ),
    },
    "DT310": {
        "n = torch.arange(3)\nn *= 0.5  # halve": "n = torch.arange(3)\nn = n * 0.5  # halve",
        "n = torch.arange(3)\nn *= (torch.rand(3)  # noise\n    .abs())": (
            "n = torch.arange(3)\nn = n * (torch.rand(3)  # noise\n    .abs())"
        ),
        "n = torch.arange(3)\nn /= 1 + 1": "n = torch.arange(3)\nn = n / (1 + 1)",
    },
    "DT311": {
        "x = torch.rand(4).half()\nx.quantile(0.5)": "x = torch.rand(4).half()\nx.float().quantile(0.5).to(x.dtype)",
        "x = torch.rand(4, 4).half()\ntorch.linalg.svd(x + 1)": "x = torch.rand(4, 4).half()\ntorch.linalg.svd((x + 1).float())",
    },
    "DT312": {
        "torch.rand(3) * torch.from_numpy(np.ones(3))": "torch.rand(3) * torch.from_numpy(np.ones(3)).float()",
        "def f(layer: nn.Linear):\n    return layer(torch.rand(3) * torch.as_tensor(np.linspace(0, 1, 3)))": (
            "def f(layer: nn.Linear):\n    return layer(torch.rand(3) * torch.as_tensor(np.linspace(0, 1, 3)).float())"
        ),
    },
    "DT313": {
        "torch.rand(3).bfloat16().cpu().numpy()": "torch.rand(3).bfloat16().cpu().float().numpy()",
        "np.asarray(torch.rand(3).bfloat16())": "np.asarray(torch.rand(3).bfloat16().float().cpu())",
    },
}
CASES = [(code, before, after) for code, pairs in FIXES.items() for before, after in pairs.items()]


@pytest.mark.parametrize(("code", "before", "after"), CASES)
def test_a_fix_casts_where_it_is_needed(code: str, before: str, after: str) -> None:
    assert [item.code for item in found(code, before)] == [code]
    assert fixed(code, before) == after
    assert found(code, after) == []


def test_an_operand_stays_where_a_comment_would_be_lost() -> None:
    text = "n = torch.arange(3)\nn *= (  # halve\n    0.5)"
    assert [item.code for item in found("DT310", text)] == ["DT310"]
    assert fixed("DT310", text) == text


SILENT = ("~mask", "torch.rand(3) *")
"""In what is flagged for a wrong result: `~` of integers, and promotion to float64."""
RAISING = [case[1:] for case in CASES if not any(part in case[1] for part in SILENT)]


def test_what_is_flagged_raises_and_what_is_fixed_runs() -> None:
    pytest.importorskip("torch")
    program = (
        bench.head
        + "import json, sys\nfor before, after in json.load(sys.stdin):\n"
        + "    exec(after, dict(globals()))\n    try:\n        exec(before, dict(globals()))\n"
        + "    except Exception:\n        continue\n    print(before)\n"
    )
    pairs = json.dumps(RAISING)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], input=pairs, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_the_message_says_what_is_taken_and_what_is_given() -> None:
    (item,) = found("DT307", "def f(x, y):\n    return F.nll_loss(x, y.int())")
    assert item.message == "`nll_loss` takes class numbers of int64: this target is int32 and raises"


def test_a_float64_array_in_a_layer_is_reported_by_one_rule() -> None:
    text = "layer = nn.Linear(3, 2)\nlayer(torch.as_tensor(np.linspace(0, 1, 3)))"
    assert [item.code for code in ("DT302", "DT312") for item in found(code, text)] == ["DT302"]
