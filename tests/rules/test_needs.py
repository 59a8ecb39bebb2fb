"""The groups of words that several rules need are complete."""

from __future__ import annotations

import pytest

from dtlint.check.screen import Text, triggered
from dtlint.dtypes.dtype import DTYPES, Category
from dtlint.dtypes.table import load
from dtlint.rule import Rule
from dtlint_rules._needs import HALF, INTEGERS, KNOWN, SMALL, attributes

FLOATS = ("float32", 2)
OPERANDS = ([FLOATS], [FLOATS, FLOATS], [FLOATS, 1], [FLOATS, 1, 1], [FLOATS, 0.5], [FLOATS, 2, FLOATS])
OWNERS = ("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.special")
BY_OPERATOR = {f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge")}
"""Comparisons take no word."""


def made(op: str) -> set[str]:
    """The dtypes that an op makes of floating tensors and numbers."""
    return {
        dtype
        for operands in OPERANDS
        for dtype in load().call(op, list(operands), {}, default="float32").dtypes
        if dtype is not None
    }


def test_whoever_makes_integers_of_floats_is_among_the_words_for_integers() -> None:
    names = {op.rpartition(".")[2] for op in load().ops if op.rpartition(".")[0] in OWNERS}
    making = {
        op.rpartition(".")[2]
        for op in load().ops
        if op.rpartition(".")[2] in names and any(DTYPES[dtype].category <= Category.INTEGER for dtype in made(op))
    }
    assert {"argmax", "topk", "isnan"} <= making
    assert set(attributes(name for name in making if not name.startswith("__"))) - set(INTEGERS) == set()
    assert {name for name in making if name.startswith("__")} <= BY_OPERATOR


class Heard(Rule):
    code, name = "DT999", "heard"

    def on_facts(self, facts):  # type: ignore[no-untyped-def]
        return ()


@pytest.mark.parametrize(
    "group, text",
    [
        (HALF, "from torch import half as h\n"),
        (HALF, "x = model\\\n    .half()\n"),
        (HALF, "x = y.type('torch.cuda.HalfTensor')\n"),
        (HALF, "x = np.zeros(3, dtype='half')\n"),
        (HALF, "with torch.autocast('cuda'): ...\n"),
        (SMALL, "x = y.to(torch.uint8)\n"),
        (INTEGERS, "x = torch.zeros(3, dtype = int)\n"),
        (INTEGERS, "x = torch.zeros(3, **{'dtype': bool})\n"),
        (INTEGERS, "def f(x: torch.LongTensor): ...\n"),
        (KNOWN, "from torch import zeros\n"),
    ],
)
def test_a_group_is_met_however_the_dtype_is_written(group: tuple[str, ...], text: str) -> None:
    rule = type("Made", (Heard,), {"triggers": group})
    assert triggered([rule], Text(text)) == [rule]
    assert triggered([rule], Text("import torch\nx = torch.nn.Linear(3, 4)(x)\n")) == []
