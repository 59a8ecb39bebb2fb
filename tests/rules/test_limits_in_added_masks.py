"""DT401 puts the limit of the dtype into scores, and leaves a mask that is added to them: the limit is -inf then."""

from __future__ import annotations

import pytest

from tests.rules.bench import Bench

BENCH = Bench("DT401", "DT401", "import torch\n")


def fixed(body: str) -> str:
    text = f"def attend(scores: torch.Tensor, attn_mask: torch.Tensor, x: torch.Tensor):\n{body}"
    (found,) = BENCH.found("DT401", text)
    assert found.conditional
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
def test_what_is_added_keeps_its_number(body: str) -> None:
    assert fixed(body.format("-1e9")) == body.format("-1e9")
