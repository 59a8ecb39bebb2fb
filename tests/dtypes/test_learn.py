"""The shipped operator table against the torch that is installed: learned again in part, and asked what torch is asked."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from dtlint.dtypes.table import LATEST, Table, load

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="torch's operator database needs it")
if not torch.__version__.startswith(LATEST):
    pytest.skip(f"the table is of torch {LATEST}", allow_module_level=True)

from dtlint.dtypes.learn.abstraction import abstracted  # noqa: E402  (needs torch)
from dtlint.dtypes.learn.cuda import lacking_on_cuda  # noqa: E402
from dtlint.dtypes.learn.database import database, database_ops, names_of_database  # noqa: E402
from dtlint.dtypes.learn.learning import learn  # noqa: E402
from dtlint.dtypes.learn.names import names_of  # noqa: E402
from dtlint.dtypes.learn.quiz import disagree, random_question  # noqa: E402
from dtlint.dtypes.learn.writing import written  # noqa: E402

SEED = 20260713
SAMPLE = ("abs", "sum", "index_select", "nn.functional.softmax", "linalg.svd", "zeros_like")
"""Entries of the operator database that are learned again: quick ones of every kind."""


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    threads = torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def entries() -> list[str]:
    return names_of_database()


def test_a_sample_learned_again_says_the_same() -> None:
    table = load()
    again = Table.read(written(learn(SAMPLE)))
    assert again.ops
    for op in again.ops:
        assert again.forms(op) == table.forms(op), op
        assert again.rules(op) == table.rules(op), op


def test_learning_twice_gives_the_same_bytes() -> None:
    assert written(learn(["abs", "torch.nn.Linear"])) == written(learn(["abs", "torch.nn.Linear"]))


def test_at_least_600_entries_of_the_operator_database_are_covered() -> None:
    ops = load().ops
    covered = [info for info in database() if any(name in ops for name in names_of(info))]
    assert len(covered) >= 600


def test_no_answer_differs_from_torch(entries: list[str]) -> None:
    rng = random.Random(SEED)
    table, answered = load(), 0
    for op in _ops(rng.sample(entries, 60)):
        for _ in range(6):
            call, default = random_question(op, rng)
            args, kwargs = abstracted(call)
            outcome = table.call(op.name, args, kwargs, default=default)
            answered += outcome.known
            assert not disagree(table, op, call, default), (op.name, args, kwargs, default, outcome)
    assert answered > 300


def _ops(names: list[str]) -> Iterator[Any]:
    for _, ops in database_ops(names):
        yield from (op for op in ops if op.calls)


def test_what_cuda_lacks_is_what_the_operator_database_says() -> None:
    cpu = {"torch.nn.functional.gelu": "h", "torch.nn.AvgPool2d": "i", "torch.fft.fft": "e", "torch.cdist": "e"}
    assert lacking_on_cuda(cpu) == {"torch.nn.functional.gelu": "h", "torch.nn.AvgPool2d": "i"}
