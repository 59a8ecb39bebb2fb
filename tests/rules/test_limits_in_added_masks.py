"""DT401 puts the limit of the dtype into scores, and half of it into a mask that is added to them."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT401", "DT401", "import torch\n")


def fixed(body: str) -> str:
    text = f"def attend(scores: torch.Tensor, attn_mask: torch.Tensor, x: torch.Tensor):\n{body}"
    (found,) = BENCH.found("DT401", text)
    assert ("itself becomes -inf once something is added" in found.help) == ("/ 2" in found.help)
    return BENCH.fixed("DT401", text).partition("\n")[2]


def test_scores_get_the_limit() -> None:
    body = "    return scores.masked_fill(attn_mask == 0, {}).softmax(-1)\n"
    assert fixed(body.format("-1e9")) == body.format("torch.finfo(scores.dtype).min")


@pytest.mark.parametrize(
    "body",
    [
        "    return scores.softmax(-1) + x.masked_fill(attn_mask == 0, {})\n",
        "    bias = x.masked_fill(attn_mask == 0, {})\n    return scores + bias\n",
        "    bias = x.masked_fill(attn_mask == 0, {})\n    scores += bias\n    return scores\n",
    ],
)
def test_what_is_added_gets_half_of_it(body: str) -> None:
    assert fixed(body.format("-1e9")) == body.format("torch.finfo(x.dtype).min / 2")


def test_a_mask_by_its_name_gets_half_of_it() -> None:
    body = "    return attn_mask.masked_fill(attn_mask == 0, {})\n"
    assert fixed(body.format("-1e9")) == body.format("torch.finfo(attn_mask.dtype).min / 2")


def test_half_of_the_limit_stays_finite() -> None:
    torch = pytest.importorskip("torch")
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        scores, least = torch.full((4,), -30.0, dtype=dtype), torch.finfo(dtype).min
        whole, half = torch.full((4,), least, dtype=dtype), torch.full((4,), least / 2, dtype=dtype)
        assert (scores + half).softmax(-1).isfinite().all() and (half + half).isfinite().all()
        assert (whole + whole).isinf().all()
