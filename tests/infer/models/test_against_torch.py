"""Models against torch: what is claimed of a call's result holds of the result that torch gives.

The calls are those of torch's own operator database, as they are, and with operands without dimensions, of one dimension
and of other dtypes. Of each operand the model is told its dtype, its range, and its dimensions exactly, or as "at least
one", or nothing at all of them.
"""

from __future__ import annotations

import ast
import math
import re
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dtlint.infer.context import Arguments, Context, NeverReturns
from dtlint.infer.domain.interval import ANY, Range
from dtlint.infer.domain.values import Bound, Const, Dtype, External, Many, Tensor, Tuple, Unknown, Value, choices
from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.dtypes.learn.call import Call

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # the operator database needs it

MOST_CALLS = 3
"""Calls of an op that are tried."""
MOST_SAMPLES = 16
"""Samples of the database among which they are chosen."""
NODE = ast.parse("f()").body[0].value  # type: ignore[attr-defined]
DRAWN = ("bernoulli", "multinomial", "normal", "empty", "dropout", "cauchy", "geometric", "exponential", "uniform")
"""Ops whose results are drawn, or not filled: other numbers each time."""


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Calls of few elements: threads would only wait for one another."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Context:
    path: Path = tmp_path_factory.mktemp("empty") / "program.py"
    path.write_text("import torch\n")
    return read(path, [path.parent], Disk()).context


def name_of(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def range_of(tensor: Any) -> Range:
    """The least range that holds a tensor's elements."""
    if tensor.dtype == torch.bool or not tensor.numel() or tensor.is_complex() or tensor.is_quantized:
        return ANY
    values = [float(value) for value in tensor.flatten().double().tolist()]
    numbers = [value for value in values if not math.isnan(value)]
    low, high = (min(numbers), max(numbers)) if numbers else (-math.inf, math.inf)
    return Range(low, high, 0.0 in numbers, any(map(math.isinf, numbers)), len(numbers) < len(values))


def told(tensor: Any, how: str) -> Value:
    """A tensor as the model is told of it."""
    rank = tensor.ndim if how == "exactly" else -1 if how == "dimensions" and tensor.ndim else None
    return Tensor(frozenset({name_of(tensor.dtype)}), None, rank, range_of(tensor), "cpu")


def value_of(ctx: Context, argument: Any, how: str) -> Value:
    if isinstance(argument, torch.Tensor):
        return told(argument, how)
    if isinstance(argument, torch.dtype):
        return Dtype(frozenset({name_of(argument)}))
    if isinstance(argument, list):
        items = Tuple(tuple(value_of(ctx, item, how) for item in argument))
        return ctx.allocate((NODE, repr(items)), "builtins.list", items)
    if isinstance(argument, tuple):
        return Tuple(tuple(value_of(ctx, item, how) for item in argument))
    if argument is None or isinstance(argument, (bool, int, float, complex, str)):
        return Const(argument)
    raise LookupError(argument)


def claimed(ctx: Context, op: str, call: Call, how: str) -> Value | None:
    """What the models say of a call; None: that it raises."""
    args = [value_of(ctx, value, how) for value in call.args]
    keywords = {name: value_of(ctx, value, how) for name, value in call.kwargs.items()}
    try:
        if op.startswith("torch.Tensor."):
            bound = Bound(args[0], op)
            return ctx.semantics.call(ctx, bound, Arguments(args[1:], keywords, True, NODE))
        return ctx.semantics.call(ctx, External(op), Arguments(args, keywords, True, NODE))
    except NeverReturns:
        return None


def contradictions(ctx: Context, value: Value, real: Any, op: str) -> Iterator[str]:
    """What of a claim does not hold of what torch gives."""
    if isinstance(real, torch.Tensor):
        for one in choices(value):
            if isinstance(one, Unknown) and (one.dtypes is None or name_of(real.dtype) in one.dtypes):
                return
            if isinstance(one, Tensor):
                wrong = list(_of_tensor(one, real, op))
                if not wrong:
                    return
                yield from wrong
                return
        yield f"a tensor, claimed was {value}"
    elif isinstance(real, (tuple, list)):
        if isinstance(value, Tuple):
            if len(value.items) != len(real):
                yield f"{len(real)} results, claimed were {len(value.items)}"
                return
            for one, each in zip(value.items, real, strict=True):
                yield from contradictions(ctx, one, each, op)
        elif isinstance(value, Many):
            for each in real:
                yield from contradictions(ctx, value.item, each, op)
        elif isinstance(value, Tensor):
            yield f"{type(real).__name__}, claimed was {value}"


def _of_tensor(value: Tensor, real: Any, op: str) -> Iterator[str]:
    if value.dtypes is not None and name_of(real.dtype) not in value.dtypes:
        yield f"{name_of(real.dtype)}, claimed was {sorted(value.dtypes)}"
    if value.rank is not None and (value.rank != real.ndim if value.rank >= 0 else real.ndim == 0):
        yield f"{real.ndim} dimensions, claimed were {value.rank}"
    if value.range != ANY and not any(part in op for part in DRAWN) and not real.is_quantized and real.numel():
        found, claim = range_of(real), value.range
        if found != ANY:
            near = 1e-2 * max(1.0, abs(found.low), abs(found.high)) if math.isfinite(found.low + found.high) else 0.0
            numbers = math.isfinite(found.low) or math.isfinite(found.high)
            if numbers and (found.low < claim.low - near or found.high > claim.high + near):
                yield f"elements from {found.low} to {found.high}, claimed was {claim}"
            if (found.zero and not claim.zero) or (found.inf and not claim.inf) or (found.nan and not claim.nan):
                yield f"elements {found}, claimed was {claim}"


def variants(call: Call) -> Iterator[Call]:
    """A call with other shapes and dtypes of its operands."""
    from dtlint.dtypes.learn.call import groups_of

    yield call
    groups = groups_of(call)
    for change in (_without_dimensions, torch.flatten):
        for chosen in ([], *groups) if len(groups) > 1 else ([],):
            spots = chosen or [spot for group in groups for spot in group]
            yield call.changed({spot: change(call.tensor(spot)) for spot in spots})
    if len(groups) > 1:
        for group in groups:
            halves = {spot: call.tensor(spot).half() for spot in group if call.tensor(spot).is_floating_point()}
            if halves:
                other = next(spot for one in groups if one is not group for spot in one)
                yield call.changed(halves)
                yield call.changed({**halves, other: _without_dimensions(call.tensor(other))})


def _without_dimensions(tensor: Any) -> Any:
    return tensor.flatten()[0] if tensor.numel() else tensor


def wrong_claims(ctx: Context, entry: str) -> list[str]:
    """What is claimed of the calls of one entry of the database, and does not hold."""
    from dtlint.dtypes.learn.database import database
    from dtlint.dtypes.learn.names import names_of, resolved
    from dtlint.dtypes.learn.samples import samples_of

    found: dict[str, None] = {}
    for info in database():
        if info.name != entry:
            continue
        calls = [variant for call in samples_of(info)[:MOST_CALLS] for variant in variants(call)]
        for op in names_of(info):
            if op.startswith(("torch.Tensor.__r", "torch.Tensor.__i")):
                continue
            for call in calls:
                try:
                    real = resolved(op)(*call.cloned().args, **call.kwargs)
                    values = [(how, claimed(ctx, op, call, how)) for how in ("exactly", "dimensions", "nothing")]
                except Exception:  # torch refuses the call, or it has an argument that no value stands for
                    continue
                for how, value in values:
                    wrong = ["it runs, claimed was that it raises"]
                    if value is not None:
                        wrong = list(contradictions(ctx, value, real, op))
                    found.update(dict.fromkeys(f"{op}({shown(call)}), told {how}: {one}" for one in wrong))
    return list(found)


def shown(call: Call) -> str:
    def one(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{name_of(value.dtype)}{list(value.shape)}"
        return str([one(item) for item in value]) if isinstance(value, (list, tuple)) else repr(value)

    return ", ".join([*map(one, call.args), *(f"{name}={one(value)}" for name, value in call.kwargs.items())])


def entries() -> list[str]:
    from dtlint.dtypes.learn.database import names_of_database

    return names_of_database()


@pytest.mark.parametrize("letters", ["a", "bc", "d-h", "i-k", "l", "m", "n", "o-r", "s", "t-z", "_"])
def test_claims_hold_of_what_torch_gives(context: Context, letters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from dtlint.dtypes.learn import samples

    monkeypatch.setattr(samples, "SAMPLES", MOST_SAMPLES)
    # without an accelerator torch formats the stack each time that it is seeded, which is for each sample
    monkeypatch.setattr(traceback, "format_stack", lambda *args, **kwargs: [])
    chosen = [entry for entry in entries() if re.match(f"[{letters}]", entry)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = [claim for entry in chosen for claim in wrong_claims(context, entry)]
    assert chosen
    assert wrong == []
