"""What two rules could speak of is told by one of them."""

from __future__ import annotations

import pytest

from dtlint import discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULES = list(discover().values())


def codes(text: str) -> list[str]:
    checked = check_source(
        Source.from_bytes(f"import torch\n{text}\n".encode(), "example.py"), RULES, Settings(preview=True)
    )
    return [diagnostic.code for diagnostic in checked.diagnostics]


def test_a_cast_of_a_state_dict_that_is_thrown_away_casts_nothing() -> None:
    loop = "state = torch.load('x.pt')\nfor k, v in state.items():\n    {}v.half()"
    assert codes(loop.format("state[k] = ")) == ["DT111"]
    assert "DT111" not in codes(loop.format(""))


@pytest.mark.parametrize(
    "text",
    [
        "mask = torch.full((4, 4), -1e9, dtype=torch.float16)",
        "x = torch.zeros(4, dtype=torch.half)\nmask = torch.full_like(x, -1e9)",
        "mask = torch.zeros(4, dtype=torch.half)\nmask.fill_(-1e9)",
        "mask = torch.zeros(4, dtype=torch.half)\nbias = (1.0 - mask) * -1e9",
    ],
)
def test_a_number_beyond_a_float16_that_is_shown_is_told_once(text: str) -> None:
    assert codes(text) == ["DT402"]


def test_a_number_beyond_a_half_that_may_come_is_the_matter_of_masks() -> None:
    assert codes("def fill(scores, mask):\n    return scores.half().masked_fill(mask, -1e9)") == ["DT401"]
