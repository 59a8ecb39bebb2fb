"""The store: what holds tensors is found wherever a program puts them, and however it got back to where it is."""

from __future__ import annotations

import pytest

from dtlint.infer.domain.values import TOP, Const, Many, Mapping, Ref, Tensor, Tuple, Union, Value
from dtlint.infer.state import CONTENT, Store

_HALF = Tensor(frozenset({"float16"}))
_HOLDING: list[Value] = [
    _HALF,
    Tuple((Const(1), Tuple((_HALF,)))),
    Many(_HALF),
    Mapping(((Const("x"), _HALF),)),
    Mapping((), _HALF),
    Union((Const(None), _HALF)),
]


@pytest.mark.parametrize("value", _HOLDING, ids=lambda value: type(value).__name__)
def test_what_holds_a_tensor_is_found(value: Value) -> None:
    store = Store()
    one, other = (store.allocate(store.address(None, name, "builtins.list")) for name in ("one", "other"))
    store.overwrite(one, CONTENT, value)
    store.overwrite(other, CONTENT, Tuple((Const(1), Ref(one), TOP)))
    assert store.holders() == [one]


@pytest.mark.parametrize("value", _HOLDING, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("searched", [True, False])
def test_what_held_a_tensor_before_a_branch_is_found_behind_it(value: Value, searched: bool) -> None:
    """Whether or not anybody looked while another value was there."""
    store = Store()
    address = store.allocate(store.address(None, "one", "builtins.list"), value)
    mark = store.mark()
    store.overwrite(address, CONTENT, Const(1))
    if searched:
        store.holders()
    store.undo(mark)
    assert store.holders() == [address]


@pytest.mark.parametrize("value", _HOLDING, ids=lambda value: type(value).__name__)
def test_what_a_branch_makes_is_found_when_it_is_taken(value: Value) -> None:
    store = Store()
    mark = store.mark()
    address = store.allocate(store.address(None, "one", "builtins.list"), value)
    changed = store.take(mark)
    assert store.holders() == []
    store.apply(changed)
    assert store.holders() == [address]
