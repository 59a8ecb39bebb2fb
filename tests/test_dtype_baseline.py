"""The file of a baseline: what is written is read back, whatever the modules are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtlint.diff.baseline import load_facts, save_facts, text
from dtlint.diff.facts import Fact, Facts
from dtlint.trace.store import RecordError

names = st.lists(st.sampled_from(["blocks", "0", "1", "2", "7", "fc", "attn"]), max_size=4).map(".".join)
dtypes = st.sampled_from(["float16", "bfloat16", "float32"])
facts = st.builds(
    Fact,
    module=names,
    source=st.sampled_from(["x + y", 'd["é"]', ""]),
    op=st.sampled_from(["add", "mul"]),
    given=st.tuples(dtypes, dtypes),
    gave=dtypes,
    file=st.just("m.py"),
    promoted=st.booleans(),
)


@given(st.lists(facts), st.dictionaries(names, dtypes))
def test_a_baseline_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, ops: list[Fact], outputs: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("b") / "b.json"
    save_facts(Facts("2.13.0", ops, outputs), path)
    read = load_facts(path, print)
    assert set(read.operators) == set(ops)
    assert read.outputs == outputs
    assert text(read) == path.read_text(encoding="utf-8")


def test_modules_of_one_shape_are_one_line() -> None:
    fact = Fact("", "x + y", "add", ("float32",), "float32", "m.py")
    ops = [Fact(f"blocks.{n}.fc", *fact.place[1:], fact.given, fact.gave, "m.py") for n in (0, 1, 2, 5)]
    (row,) = json.loads(text(Facts("", ops)))["operators"]
    assert row["module"] == "blocks.[0-2,5].fc"


def test_a_line_that_stands_for_too_many_modules_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    save_facts(Facts("", [Fact("a", "x", "add", (), "float32", "m.py")]), path)
    path.write_text(path.read_text().replace('"module": "a"', '"module": "a.[0-999999999]"'))
    with pytest.raises(RecordError, match="stands for too many modules"):
        load_facts(path, print)
