"""DT117: a cast behind the test that makes it pointless, and autocast behind the switch that asks for none."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.infer.domain.values import Dtype
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._casts import CAST_METHODS
from dtlint_rules._module_walks import root_of
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Guard, ModuleFacts
    from dtlint.source.place import Place
    from dtlint_rules._cast_calls import Cast

__all__ = ["InvertedDtypeCondition"]


class InvertedDtypeCondition(Rule):
    """A cast that is made only where it does nothing.

    ## What it does
    Reports a cast to `dtype` under `if dtype is None`, and a cast of `x` to a dtype under the test that `x` has just
    this dtype: `if x.dtype == torch.float16: x = x.half()`.

    ## Why it matters
    `x.to(dtype=None)` gives `x` back as it is. So the cast does nothing where it is made, and where the caller asks
    for a dtype it is not made at all: the test is the wrong way round. Nothing is raised.

    ## Example
    ```python
    import torch

    def load(tensor, dtype=None):
        if dtype is None:
            tensor = tensor.to(dtype=dtype)
        return tensor
    ```

    ## Use instead
    ```python
    import torch

    def load(tensor, dtype=None):
        if dtype is not None:
            tensor = tensor.to(dtype=dtype)
        return tensor
    ```

    ## Fix safety
    The fix turns the test round, and is unsafe for that. It is offered where the test stands alone in its `if`.

    ## References
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "DT117", "inverted-dtype-condition"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    triggers = attributes(("to", "type", "half", "float", "double", "bfloat16", "type_as"), of_self=True)
    needs = (("*dtype*",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("to", "type"):
            node = call.argument_node(0, "dtype")
            if node is not None and len(call.args) + len(set(call.keywords) - {"non_blocking", "copy"}) == 1:
                for guard in facts.around.guards(call.node):
                    if _says_none(guard, node) and _is_same(facts, guard.test, node):
                        yield _found(
                            facts, call.node, guard, f"`{ast.unparse(node)}` is None here: the cast does nothing"
                        )
                        break
        for cast in casts(facts):
            for guard in facts.around.guards(cast.node) if cast.plain else ():
                if _is_check(facts, guard):
                    continue  # what is checked is cast to be sure
                if _says_equal(facts, guard, cast) and _is_same(facts, guard.test, cast.subject):
                    text = f"`{ast.unparse(cast.subject)}` already has this dtype here: the cast does nothing"
                    yield _found(facts, cast.node, guard, text)
                    break


def _found(facts: ModuleFacts, node: ast.Call, guard: Guard, text: str) -> Finding:
    around = facts.around.parent(guard.test)
    alone = guard.holds and isinstance(around, ast.If) and not around.orelse
    return Finding(
        node,
        text,
        help="Remove the cast" if _casts_otherwise(facts, guard) else "Invert the test",
        notes=((guard.test, "by this test"),),
        fix=partial(_turned, guard.test) if alone else None,
    )


def _is_check(facts: ModuleFacts, guard: Guard) -> bool:
    """Does it raise where the test comes out the other way?"""
    around = next((one for one in facts.around.around(guard.test) if isinstance(one, (ast.If, ast.Assert))), None)
    if not isinstance(around, ast.If):
        return around is not None
    arm = around.orelse if guard.holds else around.body
    return bool(arm) and isinstance(arm[-1], ast.Raise)


def _casts_otherwise(facts: ModuleFacts, guard: Guard) -> bool:
    """Is something cast where the test comes out the other way, too? Then it is the right way round."""
    decided = next((one for one in facts.around.around(guard.test) if isinstance(one, (ast.If, ast.IfExp))), None)
    if decided is None or guard.test not in ast.walk(decided.test):
        return False
    arm = decided.orelse if guard.holds else decided.body
    inside = [part for one in (arm if isinstance(arm, list) else [arm]) for part in ast.walk(one)]
    return any(isinstance(one, ast.Call) and getattr(one.func, "attr", "") in CAST_METHODS for one in inside)


def _says_none(guard: Guard, target: ast.expr) -> bool:
    """Does a test say that the dtype is None: `dtype is None`, `not dtype`?"""
    test, path = guard.test, path_of(target)
    if path is None:
        return False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and path_of(test.left) == path:
        right = test.comparators[0]
        is_none = isinstance(right, ast.Constant) and right.value is None
        return is_none and guard.holds is isinstance(test.ops[0], (ast.Is, ast.Eq))
    return not guard.holds and path_of(test) == path and isinstance(test, ast.Name)


def _says_equal(facts: ModuleFacts, guard: Guard, cast: Cast) -> bool:
    """Does a test say that what is cast has the dtype already: `x.dtype == dtype`?"""
    test, subject = guard.test, path_of(cast.subject)
    if subject is None or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if guard.holds is not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return False
    sides = [test.left, test.comparators[0]]
    others = [side for side in sides if path_of(side) != f"{subject}.dtype"]
    if len(others) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return False
    asked = facts.value(others[0])
    if isinstance(asked, Dtype) and asked.dtypes and len(asked.dtypes) == 1:
        return asked.dtypes == cast.dtypes
    given = [*cast.node.args, *(keyword.value for keyword in cast.node.keywords)]
    return path_of(others[0]) in map(path_of, given) and _is_same(facts, others[0], given[0])


def _is_same(facts: ModuleFacts, one: ast.expr, other: ast.expr) -> bool:
    """Has the variable that an expression begins with the value that it has in another, too?"""
    root = root_of(other)
    if not isinstance(root, ast.Name):
        return False
    names = [node for node in ast.walk(one) if isinstance(node, ast.Name) and node.id == root.id]
    return all(facts.around.definitions(node) == facts.around.definitions(root) for node in names)


_TURNED: dict[type[ast.cmpop], str] = {ast.Is: "is not", ast.Eq: "!=", ast.IsNot: "is", ast.NotEq: "=="}


def _turned(test: ast.expr, place: Place) -> Fix | None:
    if not isinstance(test, ast.Compare):
        return None
    left, right = place.source.span(test.left), place.source.span(test.comparators[0])
    gap = type(left)(left.end_line, left.end_column, right.line, right.column)
    if "#" in place.between(gap) or "(" in place.between(gap) or ")" in place.between(gap):
        return None
    return Fix("Turn the test round", (Edit(gap, f" {_TURNED[type(test.ops[0])]} "),), Applicability.UNSAFE)
