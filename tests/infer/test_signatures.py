"""What calls give that are not followed: the function's signature, with the arguments' dtypes."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import pytest

from dtlint.check.reader import Reader
from dtlint.infer.domain.values import Atom, Symbol, Tensor, Unknown, Value
from dtlint.infer.interproc.signatures import instantiated, tells_of_dtypes


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


X, Y = Atom("x", "x"), Atom("y", "y")


def of(*atoms: Atom, **others: object) -> Tensor:
    return Tensor(None, Symbol(frozenset(atoms), **others))  # type: ignore[arg-type]


def result_of_last_call(text: str, **files: str) -> Value | None:
    """What the last call of `use` in a text gives."""
    for name, held in files.items():
        Path(f"{name}.py").write_text(dedent(held))
    path = Path("user.py").absolute()
    path.write_text(dedent(text))
    facts = Reader().facts(ast.parse(path.read_text()), path)
    *_, last = facts.calls()
    return last.result


def test_symbols_of_parameters_become_those_of_the_arguments() -> None:
    assert instantiated(of(X), {"x": of(Y)}) == of(Y)
    assert instantiated(of(X, Y), {"x": of(Y), "y": of(Y)}) == of(Y)
    assert instantiated(of(X, met=frozenset({"float32"})), {"x": of(Y)}) == of(Y, met=frozenset({"float32"}))


def test_what_decides_an_argument_may_be_unknown() -> None:
    assert instantiated(of(X), {"x": Tensor(None)}) == Tensor(None)
    assert instantiated(of(X), {}) == Tensor(None)
    assert instantiated(Unknown(frozenset({"float64"})), {}) == Unknown(frozenset({"float64"}))


def test_calls_that_know_a_dtype_are_followed() -> None:
    assert tells_of_dtypes([Unknown(), Tensor(frozenset({"int64"}))])
    assert not tells_of_dtypes([Unknown(), of(X), Tensor(None)])


def test_a_function_of_another_file_gives_what_it_gives_for_anything() -> None:
    made = "import torch\n\n\ndef table(n):\n    return torch.arange(n).double() if n else torch.zeros(1).double()\n"
    result = result_of_last_call("from maker import table\n\n\ndef use(x, n):\n    return table(n)\n", maker=made)
    assert isinstance(result, Tensor) and result.dtypes == {"float64"}


def test_a_function_that_calls_itself_has_a_signature() -> None:
    result = result_of_last_call("""
        def fold(x, n):
            return fold(x * 2, n - 1) if n else x

        def use(x, n):
            return fold(x, n)
    """)
    assert result is not None
