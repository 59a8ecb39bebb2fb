"""DT506: whole numbers that NumPy draws as C's `long`, whose width depends on the platform."""

from __future__ import annotations

import ast
import sys
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import Const, External, Number
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import pass_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["PlatformInt"]

_INTO_TORCH = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
_DRAWN = ("numpy.random.randint", "numpy.random.RandomState.randint")
_SHUFFLED = ("numpy.random.permutation", "numpy.random.RandomState.permutation")
_INT32, _INT64 = 2**31, 2**63
"""The greatest bounds, not drawn themselves, that NumPy takes for int32 and int64."""


class PlatformInt(Rule):
    """Whole numbers whose dtype depends on the platform are drawn by NumPy, beyond int32 or for torch.

    ## What it does
    Reports `np.random.randint` and that of a RandomState without a dtype, where the bound is beyond int32:
    `np.random.randint(0, 2**32 - 1)` for a seed, `np.random.randint(1e10)` for the name of a file. And what it or
    `np.random.permutation` gives, where `torch.from_numpy` or its kin makes a tensor of it that nothing casts.

    ## Why it matters
    Both draw C's `long`, which is 32 bits on Windows and 64 elsewhere, in NumPy 2 as before. A bound of more than 2**31
    raises there: `ValueError: high is out of bounds for int32`. The tensor is int32 there: it raises where torch wants
    int64 (`one_hot`, `scatter_`, the target of `cross_entropy`), and a sum beyond 2,147,483,647 wraps around to a negative
    number. With a dtype the program is the same everywhere.

    ## Example
    ```python
    import numpy as np
    import torch

    seed = np.random.randint(0, 2**32 - 1)
    labels = torch.from_numpy(np.random.randint(0, 10, size=4))
    ```

    ## Use instead
    ```python
    import numpy as np
    import torch

    seed = np.random.randint(0, 2**32 - 1, dtype=np.int64)
    labels = torch.from_numpy(np.random.randint(0, 10, size=4, dtype=np.int64))
    ```

    ## Fix safety
    The fix gives `dtype=np.int64`, which is what the call gives on Linux and macOS already. A permutation takes no dtype,
    and has no fix.

    ## References
    - [numpy.random.randint](https://numpy.org/doc/stable/reference/random/generated/numpy.random.randint.html)
    - [NumPy 2.0: the default integer on Windows](https://numpy.org/doc/stable/release/2.0.0-notes.html#windows-default-integer)
    """

    code, name = "DT506", "platform-int"
    fix = Applicability.SAFE
    triggers = ("randint", "permutation")
    needs = (("numpy",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        drawn = {call.node: call for call in facts.calls(*_DRAWN) if _is_told_no_dtype(call)}
        for node, call in drawn.items():
            bound = _bound(call)
            if bound is not None and _INT32 < bound <= _INT64:
                message = f"This draws int32 on Windows, and raises ValueError for the bound {bound:,}"
                yield Finding(node, message, help="Pass `dtype=np.int64`", fix=_fix)
        drawn |= {call.node: call for call in facts.calls(*_SHUFFLED) if call.args and _is_whole(call.args[0])}
        for into in facts.calls(*_INTO_TORCH):
            source = facts.origin(into.node.args[0]) if into.node.args else None
            if not isinstance(source, ast.Call) or "dtype" in into.keywords or _is_cast(into.node, facts):
                continue
            call_of = drawn.get(source)
            if call_of is not None:
                yield Finding(
                    source,
                    "The tensor is int32 on Windows, and int64 elsewhere",
                    help="Pass `dtype=np.int64`" if call_of.name in _DRAWN else "Cast it: `.astype(np.int64)`",
                    notes=((into.node, "made a tensor here"),) if source.lineno != into.node.lineno else (),
                    fix=_fix if call_of.name in _DRAWN else None,
                )


_fix = partial(pass_dtype, name="numpy.int64", message="Give `dtype=np.int64`", applicability=Applicability.SAFE)


def _is_told_no_dtype(call: Call) -> bool:
    return call.complete and "dtype" not in call.keywords and len(call.args) <= 3


def _is_whole(value: Value) -> bool:
    return type(getattr(value, "value", None)) is int or (
        isinstance(value, Number) and value.category <= Category.INTEGER
    )


def _bound(call: Call) -> int | None:
    """The bound below which is drawn; where none but the first is given, that is it."""
    high = call.argument(1, "high")
    value = call.argument(0, "low") if high is None or high == Const(None) else high
    if value == External("sys.maxsize"):
        return sys.maxsize
    number = value.value if isinstance(value, Const) else None
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if type(number) is int else None


def _is_cast(node: ast.Call, facts: ModuleFacts) -> bool:
    """Does a method that is called on it at once give a dtype? `.to(device)` does not."""
    method = facts.around.parent(node)
    call = facts.around.parent(method) if isinstance(method, ast.Attribute) else None
    if not isinstance(call, ast.Call):
        return False
    before, after = facts.value(node), getattr(facts.value(call), "dtypes", None)
    return after is not None and after != getattr(before, "dtypes", None)
