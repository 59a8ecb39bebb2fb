"""The API: `with dtlint.trace() as t`, `@dtlint.trace`, `dtlint.step()`."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import torch
import torch.nn as nn

import dtlint
from dtlint.trace.mode import Tracer
from dtlint.trace.store import load


def halve() -> torch.Tensor:
    """A cast, an overflow and a promotion."""
    x = torch.full((2,), 6e4).half()
    return x * 2 + torch.ones(2)


def test_a_trace_tells_casts_promotions_and_overflows_with_their_lines() -> None:
    with dtlint.trace() as t:
        halve()
    first = inspect.getsourcelines(halve)[1]
    (cast,) = t.casts
    assert (cast.source, cast.target, cast.author, cast.count) == ("float32", "float16", "asked", 1)
    assert (Path(cast.file).name, cast.line) == (Path(__file__).name, first + 2)
    (promotion,) = t.promotions
    assert (promotion.op, promotion.inputs, promotion.output) == ("add", ("float16", "float32"), "float32")
    assert promotion.inputs[promotion.operand] == "float32"
    (overflow,) = t.overflows
    assert (overflow.expression, overflow.dtype, overflow.step, overflow.times) == ("x * 2", "float16", 1, 1)
    assert str(overflow).endswith(f":{first + 3}: `x * 2`: mul overflowed float16 in step 1, once")
    assert {d.code for d in t.diagnostics()} >= {"DT901", "DT905"}


def test_it_can_be_read_while_it_runs() -> None:
    with dtlint.trace() as t:
        assert t.casts == []
        halve()
        assert len(t.overflows) == 1
        halve()
    assert [o.times for o in t.overflows] == [2]


def test_to_dict_is_what_the_command_line_writes(tmp_path: Path) -> None:
    with dtlint.trace() as t:
        halve()
    t.save(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == json.loads(json.dumps(t.to_dict(), allow_nan=False))
    assert load(tmp_path / "t.json") == t.record


def test_a_page_is_written_as_the_command_line_writes_it(tmp_path: Path) -> None:
    with dtlint.trace() as t:
        halve()
    t.save_html(tmp_path / "t.html")
    text = (tmp_path / "t.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "overflowed float16" in text


def test_a_function_is_traced_at_each_call_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    @dtlint.trace
    def plain() -> str:
        """Doc."""
        halve()
        return "result"

    @dtlint.trace(only="dtypes")
    def narrowed() -> None:
        halve()

    assert plain() == "result"
    assert (plain.__name__, plain.__doc__) == ("plain", "Doc.")
    assert "overflowed float16" in capsys.readouterr().err
    narrowed()
    err = capsys.readouterr().err
    assert "overflowed" not in err and "raised to float32" in err
    assert capsys.readouterr().out == ""


def test_an_exception_passes_through_and_the_report_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    @dtlint.trace()
    def fails() -> None:
        halve()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fails()
    assert "overflowed float16" in capsys.readouterr().err
    assert Tracer.active is None


def test_an_error_from_before_the_trace_is_none_of_its_own() -> None:
    def fails(half: torch.Tensor, single: torch.Tensor) -> None:
        torch.mm(half, single)

    try:
        fails(torch.ones(2, 2).half(), torch.ones(2, 2))
    except RuntimeError:
        with dtlint.trace() as t:
            halve()
    assert t.record.errors == []


def test_nested_use_is_refused_and_the_outer_trace_goes_on() -> None:
    with dtlint.trace() as outer:
        with pytest.raises(RuntimeError, match="tracing already"), dtlint.trace():
            pass
        halve()
    assert len(outer.overflows) == 1


def test_a_trace_is_used_once_and_read_only_after_it_began() -> None:
    t = dtlint.trace()
    with pytest.raises(RuntimeError, match="has not begun"):
        t.casts
    with t:
        pass
    with pytest.raises(RuntimeError, match="used already"), t:
        pass


def test_what_runs_after_its_call_and_classes_are_refused() -> None:
    def generates() -> Iterator[int]:
        yield 1

    async def waits() -> None: ...

    async def does_both() -> AsyncIterator[int]:
        yield 1

    class Trainer: ...

    for function in (generates, waits, does_both, Trainer):
        with pytest.raises(TypeError, match=r"use: with dtlint\.trace\(\)"):
            dtlint.trace(function)


def test_arguments_that_say_nothing_are_refused_before_anything_runs() -> None:
    with pytest.raises(ValueError, match="every 0"):
        dtlint.trace(every=0)
    with pytest.raises(ValueError, match="did you mean float16"):
        dtlint.trace(watch="flaot16")
    with pytest.raises(TypeError, match="no positional arguments"):
        dtlint.trace("train")  # type: ignore[call-overload]


def test_dtypes_are_taken_as_torch_has_them_and_patterns_from_any_iterable() -> None:
    asked = dtlint.trace(watch=[torch.float16, "bfloat16"], assume=torch.float16, module=(f"{n}" for n in range(2)))
    assert asked.options == dtlint.trace(watch=("float16", "bfloat16"), assume="float16", module=["0", "1"]).options
    assert dtlint.trace(watch=torch.float16).options.watch == {"float16"}


def test_options_reach_the_tracer() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with dtlint.trace(module="1", watch=["float16"], steps="1:") as t:
        model(torch.ones(1, 2))
    assert {place.module for place in t.record.places} == {"1"}
    assert {entry.high for entry in t.record.entries} == {0.0}


def test_sketches_that_it_keeps_can_be_compared(tmp_path: Path) -> None:
    from dtlint.compare import compare

    def product(scale: float) -> None:
        torch.manual_seed(0)
        (torch.randn(8, 8) @ torch.randn(8, 8)).mul(scale).sum()

    records = []
    for number, scale in enumerate((0.5, 0.25)):
        with dtlint.trace(sketch=True) as t:
            product(scale)
        t.save(tmp_path / f"{number}.json")
        records.append(load(tmp_path / f"{number}.json"))
    assert compare(records[0], records[0]).findings == []
    assert [finding.op for finding in compare(*records).findings] == ["mul"]


def test_a_shadow_tells_the_error_of_each_operator() -> None:
    with dtlint.trace(shadow=torch.float32) as t:
        torch.full((1000,), 0.1).half().cumsum(0)
    (local,) = [one for one in t.record.local if t.record.entries[one.entry].op == "cumsum"]
    assert local.error > 0 and t.record.shadow == "float32"
    assert dtlint.trace(shadow="float64").options == dtlint.trace(shadow=torch.float64).options


def test_sketches_and_shadows_of_no_values_are_refused() -> None:
    for given in ({"sketch": True}, {"shadow": torch.float32}):
        with pytest.raises(ValueError, match="only dtypes looks at no values"):
            dtlint.trace(only="dtypes", **given)  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="shadow 'float16' is no wider dtype"):
        dtlint.trace(shadow=torch.float16)


LAZY = """
import sys, dtlint
dtlint.step()
assert callable(dtlint.trace)
t = dtlint.trace(every=2)
assert "torch" not in sys.modules and "libcst" not in sys.modules and "rich" not in sys.modules
import dtlint.trace.schema as schema
assert schema.SCHEMA and callable(dtlint.trace)
"""


def test_nothing_heavy_is_imported_before_a_trace_begins() -> None:
    subprocess.run([sys.executable, "-c", LAZY], check=True)


def test_the_public_names_are_there() -> None:
    assert all(getattr(dtlint, name) is not None for name in dtlint.__all__)
    assert set(dtlint.__all__) <= set(dir(dtlint))
