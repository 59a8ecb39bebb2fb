"""What rules take for granted about torch is so."""

from __future__ import annotations

import pytest

from dtlint_rules import dt125_no_such_name as names


def test_torch_has_none_of_the_names_that_are_said_to_be_missing() -> None:
    torch = pytest.importorskip("torch")
    missing = (*names._SPELLED, *names._MOVED)
    assert [name for name in missing if _has(torch, name.split(".")[1:])] == []
    assert [name for name in names.CALLED if not isinstance(getattr(torch, name), torch.dtype)] == []
    assert [name for name in names.METHODS.keys() | names._CASTS if hasattr(torch.Tensor, name)] == []


def _has(module: object, names: list[str]) -> bool:
    for name in names:
        if not hasattr(module, name):
            return False
        module = getattr(module, name)
    return True


def test_torch_says_so() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.arange(4.0), torch.tensor([0, 0, 1, 1], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x[mask] = 0
    assert x[mask.bool()].tolist() == [2.0, 3.0]
    x[torch.tensor(1, dtype=torch.uint8)] = 0  # without dimensions it does not raise
    assert x.tolist() == [0.0] * 4
