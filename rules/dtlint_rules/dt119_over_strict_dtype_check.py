"""DT119: a check of a dtype that raises for one that the code is to support: a list without bfloat16, `!= torch.float32`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Span
from dtlint.infer.domain.values import Const, Dtype
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import is_a_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["OverStrictDtypeCheck"]

_Display = ast.Tuple | ast.List | ast.Set


class OverStrictDtypeCheck(Rule):
    """A check raises for a floating dtype that is to be supported.

    ## What it does
    Reports an `assert`, or an `if` that raises, on `x.dtype in (torch.float16, torch.float32, torch.float64)`: lists with
    float16, float32 and float64 but without bfloat16. A list of float16 and float32 alone is left alone, for that is what
    many kernels support.

    All of this is conditional, and reported with `--preview` only: it takes a bfloat16 tensor to fail.

    Under an assumption, as in `dtlint check --assume half`, every check is reported that raises for a tensor of that dtype,
    and under `bfloat16` such a list wherever it stands: what it decides is decided for bfloat16 as for whole numbers.

    ## Why it matters
    The three were all floating dtypes there were when the check was written. Under autocast on a CPU, and in most
    training today, activations are bfloat16; the check raises for a tensor that the code behind it handles as well as
    the others.

    ## Example
    ```python
    import torch

    def scale(x):
        if x.dtype not in (torch.float16, torch.float32, torch.float64):
            raise TypeError(f"x must be floating, but is {x.dtype}")
        return x / 2
    ```

    ## Use instead
    ```python
    import torch

    def scale(x):
        if x.dtype not in (torch.float16, torch.float32, torch.float64, torch.bfloat16):
            raise TypeError(f"x must be floating, but is {x.dtype}")
        return x / 2
    ```

    ## Fix safety
    The fix adds bfloat16 to the list. It is unsafe, for the code behind the check then sees bfloat16.

    ## References
    - [torch.is_floating_point](https://docs.pytorch.org/docs/stable/generated/torch.is_floating_point.html)
    """

    code, name = "DT119", "over-strict-dtype-check"
    fix = Applicability.UNSAFE
    triggers = ("float64", ".double")
    needs = ((".dtype", "dtype"),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if is_a_test(facts.tree):
            return
        assumed = facts.assumption
        raising = {} if assumed is None else _raising(facts, {assumed.inputs, assumed.weights})
        for node in {one.node: None for one in facts.evaluations(ast.Compare)}:
            listed = node.comparators[0]
            if isinstance(node.ops[0], (ast.In, ast.NotIn)) and _lacks_bfloat16(facts, listed):
                raises = _raises(facts, node, isinstance(node.ops[0], ast.NotIn))
                if raises or (assumed is not None and assumed.inputs == "bfloat16"):
                    yield Finding(
                        node,
                        "The check lacks bfloat16: it raises for a bfloat16 tensor"
                        if raises
                        else "The list of floating dtypes lacks bfloat16",
                        help="Check `x.is_floating_point()`, or add `torch.bfloat16` to the list",
                        conditional=assumed is None or assumed.inputs != "bfloat16",
                        fix=partial(_adding, listed) if isinstance(listed, _Display) else None,
                    )
            elif node in raising:
                yield Finding(
                    node,
                    f"The check raises for {raising[node]}",
                    help=f"Let {raising[node]} through, or cast the tensor before it",
                )


def _raising(facts: ModuleFacts, dtypes: set[str]) -> dict[ast.Compare, str]:
    """The comparisons of the dtypes of tensors that make the program raise for one of some dtypes, each with that."""
    found: dict[ast.Compare, str] = {}
    for seen in facts.evaluations(ast.Compare):
        result = seen.result.value if isinstance(seen.result, Const) else None
        if len(seen.node.ops) == 1 and isinstance(result, bool) and _raises(facts, seen.node, result):
            asked = [one.dtypes for one in seen.operands if isinstance(one, Dtype) and one.dtypes]
            given = next((min(one) for one in asked[:1] if len(one) == 1 and one <= dtypes), None)
            if given is not None:
                found.setdefault(seen.node, given)
    return found


def _lacks_bfloat16(facts: ModuleFacts, listed: ast.expr) -> bool:
    names: set[str] = set()
    for item in facts.items(listed) or ():
        if not isinstance(item, Dtype) or item.dtypes is None:
            return False
        names |= item.dtypes
    return names >= {"float16", "float32", "float64"} and "bfloat16" not in names


def _raises(facts: ModuleFacts, test: ast.expr, when: bool) -> bool:
    """Does the program raise where the test, or one that it is a part of, comes out like that?"""
    inner, parent = test, facts.around.parent(test)
    while isinstance(parent, (ast.BoolOp, ast.UnaryOp)):
        when = when is not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))
        inner, parent = parent, facts.around.parent(parent)
    if isinstance(parent, ast.Assert):
        return not when and inner is parent.test
    branch = (parent.body if when else parent.orelse) if isinstance(parent, ast.If) else []
    return any(isinstance(part, ast.Raise) for part in branch)


def _adding(listed: _Display, place: Place) -> Fix:
    spelling, edits = place.spelled("torch.bfloat16")
    last = place.source.span(listed.elts[-1])
    end = Span(last.end_line, last.end_column, last.end_line, last.end_column)
    return Fix("Add bfloat16", (Edit(end, f", {spelling}"), *edits), Applicability.UNSAFE)
