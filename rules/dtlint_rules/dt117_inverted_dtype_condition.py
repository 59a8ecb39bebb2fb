"""DT117: a cast behind the test that makes it pointless, and autocast behind the switch that asks for none."""

from __future__ import annotations

import ast
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.infer.conditions import atoms
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._functions import own_nodes
from dtlint_rules._meanings import written_dtype
from dtlint_rules._needs import attributes
from dtlint_rules._swapped import ABSENT, Swapped, swapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.events import Call, Condition, Flow, Reference
    from dtlint.source.place import Place

__all__ = ["InvertedDtypeCondition"]


class InvertedDtypeCondition(Rule):
    """A cast that is made only where it does nothing.

    ## What it does
    Reports a cast to `dtype` under `if dtype is None`, and a cast of `x` to a dtype under the test that `x` has just
    this dtype: `if x.dtype == torch.float16: x = x.half()`. Also autocast where its switch is off, and no context where
    it is on: `nullcontext() if use_amp else torch.autocast("cuda")`.

    Conditional, and so reported with `--preview` only: autocast that is entered where a switch is off, for only the
    name of the switch says so.

    ## Why it matters
    `x.to(dtype=None)` gives `x` back as it is. So the cast does nothing where it is made, and where the caller asks
    for a dtype it is not made at all: the test is the wrong way round. Nothing is raised. Mixed precision that is asked for
    and not entered costs its speed and its memory, and who asks for float32 gets half.

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
    calls = frozenset({"to", "type", "half", "float", "double", "bfloat16", "type_as"})
    references = frozenset({"torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast"})
    triggers = (*attributes(calls, of_self=True), *ABSENT)
    needs = (("*dtype*", *ABSENT), (*attributes(calls, of_self=True), "autocast"))
    hears_where = MappingProxyType({"on_reference": ABSENT})

    def on_reference(self, reference: Reference) -> Iterator[Finding]:
        """`nullcontext() if use_amp else autocast()`."""
        found = swapped(reference.node, reference.flow)
        if found is not None:
            yield Finding(
                found.context,
                f"Autocast is entered where `{found.switch}` is off",
                help="Invert the test",
                notes=((found.test, "by this test"),),
                conditional=True,
                fix=partial(_negated, found),
            )

    def on_call(self, call: Call) -> Iterator[Finding]:
        if not isinstance(call.node.func, ast.Attribute) or not call.flow.conditions:
            return
        target = _target(call)
        if target is None:
            return
        for condition in atoms(call.flow.conditions):
            if _says_none(condition, target) and not _bound_since(target, condition, call):
                if _moves(call.node):
                    return
                yield self._found(call, condition, f"`{target}` is None here: the cast does nothing")
                return
            if _says_equal(condition, call, target) and not _bound_since(_subject(call), condition, call):
                if len(call.node.args) + len(call.node.keywords) < 2:
                    yield self._found(
                        call,
                        condition,
                        f"`{_subject(call)}` already has this dtype here: the cast does nothing",
                    )
                return

    def _found(self, call: Call, condition: Condition, message: str) -> Finding:
        return Finding(
            call.node,
            message,
            help="Invert the test",
            notes=((condition.test, "by this test"),),
            fix=_turned(condition) if _stands_alone(condition, call.flow) else None,
        )


def _target(call: Call) -> str | None:
    """What is cast to, as the source spells it: a name or path, or for `.half()` the dtype's."""
    from dtlint.dtypes.dtype import ALIASES

    if call.method in ("half", "float", "double", "bfloat16"):
        return f"torch.{ALIASES.get(call.method, call.method)}" if not call.node.args else None
    given = [keyword.value for keyword in call.node.keywords if keyword.arg == "dtype"] or [
        argument
        for argument in call.node.args
        if (path_of(argument) or "").endswith("dtype") or written_dtype(argument)
    ]
    return path_of(given[0]) if len(given) == 1 else None


def _moves(node: ast.Call) -> bool:
    """Does a cast move the tensor as well: `x.to(device, dtype)`, `x.to(dtype, memory_format=fmt)`?"""
    return len(node.args) > 1 or any(keyword.arg in ("device", "memory_format") for keyword in node.keywords)


def _subject(call: Call) -> str:
    assert isinstance(call.node.func, ast.Attribute)
    return path_of(call.node.func.value) or ""


def _says_none(condition: Condition, target: str) -> bool:
    """Does the condition say that the dtype is None: `dtype is None`, `not dtype`?"""
    test = condition.test
    if target.startswith("torch.") or not target.endswith("dtype"):
        return False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and path_of(test.left) == target:
        right = test.comparators[0]
        if isinstance(right, ast.Constant) and right.value is None:
            return condition.holds is isinstance(test.ops[0], (ast.Is, ast.Eq))
        return False
    return not condition.holds and path_of(test) == target and not target.endswith(".dtype")


def _says_equal(condition: Condition, call: Call, target: str) -> bool:
    """Does the condition say that what is cast has the dtype already: `x.dtype == dtype`?"""
    test, subject = condition.test, _subject(call)
    if not subject or not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    if not isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return False
    sides = {_spelled(path_of(test.left)), _spelled(path_of(test.comparators[0]))}
    equal = condition.holds is isinstance(test.ops[0], (ast.Eq, ast.Is))
    return equal and sides == {f"{subject}.dtype", _spelled(target)} and target != f"{subject}.dtype"


def _spelled(path: str | None) -> str | None:
    """`torch.half` as `torch.float16`."""
    from dtlint.dtypes.dtype import named

    dtype = named(path[6:]) if path is not None and path.startswith("torch.") else None
    return path if dtype is None else f"torch.{dtype}"


def _bound_since(path: str, condition: Condition, call: Call) -> bool:
    """May the name have got another value between the test and the cast?"""
    first, last = condition.test.lineno, call.node.lineno
    return any(
        isinstance(node, (ast.Name, ast.Attribute))
        and isinstance(node.ctx, ast.Store)
        and first <= node.lineno <= last
        and path_of(node) in (path, path.partition(".")[0])
        and node.lineno != call.flow.statement.lineno
        for node in own_nodes(call.flow.scope)
    )


def _stands_alone(condition: Condition, flow: Flow) -> bool:
    """Is the test the whole of an `if` without `else`, and what is behind it the branch that it guards?"""
    return condition.holds and any(
        isinstance(node, ast.If) and node.test is condition.test and not node.orelse for node in own_nodes(flow.scope)
    )


def _negated(found: Swapped, place: Place) -> Fix | None:
    text = place.text(found.test)
    if "#" in text:
        return None
    turned = found.switch if isinstance(found.test, ast.UnaryOp) else f"not {text}"
    return Fix("Turn the test round", (place.replace(found.test, turned),), Applicability.UNSAFE)


_TURNED: dict[type[ast.cmpop], str] = {ast.Is: "is not", ast.Eq: "!=", ast.IsNot: "is", ast.NotEq: "=="}


def _turned(condition: Condition) -> Callable[[Place], Fix | None]:
    def fix(place: Place) -> Fix | None:
        test = condition.test
        if not isinstance(test, ast.Compare):
            return None
        left, right = place.source.span(test.left), place.source.span(test.comparators[0])
        gap = type(left)(left.end_line, left.end_column, right.line, right.column)
        if "#" in place.between(gap) or "(" in place.between(gap) or ")" in place.between(gap):
            return None
        return Fix("Turn the test round", (Edit(gap, f" {_TURNED[type(test.ops[0])]} "),), Applicability.UNSAFE)

    return fix
