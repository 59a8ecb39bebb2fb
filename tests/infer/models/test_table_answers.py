"""Answers of the operator table: they are remembered whatever the symbols are called, and given back for the real ones."""

from __future__ import annotations

import pytest

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import TOP, Atom, Symbol, Tensor, Value
from dtlint.infer.models.table_answers import Operand, Question, Refusal, table_answer
from tests.infer.programs import inexact

_UNSET = frozenset({"float16", "bfloat16", "float32", "float64"})
_X, _Y, _W = Atom("x@1", "x"), Atom("y@1", "y"), Atom("self.w", "self.w", floating=True)


def _given(*atoms: Atom) -> Operand:
    """A tensor of the promoted dtype of what the caller gives."""
    return Operand((("?", 2),), Symbol(frozenset(atoms)))


def _asked(op: str, *operands: Operand, defaults: frozenset[str] = _UNSET) -> Value | Refusal:
    return table_answer(Question(op, operands, (), (None,), defaults, None))


@pytest.mark.parametrize("pair", [(_X, _Y), (_Y, _X), (Atom("b"), Atom("a")), (_W, _X), (_X, _W)])
def test_the_atoms_of_the_question_are_in_the_answer(pair: tuple[Atom, Atom]) -> None:
    answer = _asked("torch.add", _given(pair[0]), _given(pair[1]))
    assert isinstance(answer, Tensor)
    assert answer.symbol is not None
    assert answer.symbol.of == frozenset(pair)


def test_one_atom_twice_is_another_question_than_two() -> None:
    assert _asked("torch.add", _given(_X), _given(_X)) == Tensor(None, Symbol(frozenset({_X})))
    both = _asked("torch.add", _given(_X, _Y), _given(_X))
    assert both == Tensor(None, Symbol(frozenset({_X, _Y})))


def test_a_floating_atom_is_another_question() -> None:
    """What is certain to be floating keeps its dtype beside a float, what may be whole need not."""
    half = Operand((0.5,))
    for atom, least in ((_X, Category.FLOAT), (_W, Category.BOOL), (_Y, Category.FLOAT)):
        assert _asked("torch.mul", _given(atom), half) == Tensor(None, Symbol(frozenset({atom}), least=least))


def test_three_atoms_are_too_many() -> None:
    assert _asked("torch.add", _given(_X, _Y), _given(_W)) == TOP


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_the_default_dtype_is_asked_where_it_decides(default: str) -> None:
    """A number makes a whole tensor floating, of the default dtype; a floating one it leaves alone."""
    of_one, half = frozenset({default}), Operand((0.5,))
    assert _asked("torch.mul", Operand((("int64", 2),)), half, defaults=of_one) == Tensor(of_one)
    assert _asked("torch.mul", Operand((("float16", 2),)), half, defaults=of_one) == Tensor(frozenset({"float16"}))
    assert _asked("torch.mul", Operand((("float16", 2),)), half) == Tensor(frozenset({"float16"}))
    both = frozenset({"float32", "float64"})
    assert _asked("torch.mul", Operand((("int64", 2),)), half, defaults=both) == Tensor(both)


def test_a_truth_and_a_number_that_are_equal_are_two_questions() -> None:
    pytest.importorskip("torch")
    program = """
mask = torch.ones(3, dtype=torch.bool)
one = mask * 1; true = mask * True; again = mask * 1; real = mask * 1.0
"""
    assert inexact(program) == []
