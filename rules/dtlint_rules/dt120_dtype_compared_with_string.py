"""DT120: a torch dtype compared with what it never equals: a string, a NumPy type, a tensor class, a type."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.dtypes.dtype import LEGACY_TENSORS, named
from dtlint.infer.domain.values import Const, Dtype, External, Tensor, Value
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import respell
from dtlint_rules._module_walks import walk_over
from dtlint_rules._needs import COMPARED_NUMBERS, DTYPES, LEGACY, STRINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["DtypeComparedWithString"]

_EQUALITIES = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)
_NEGATED = (ast.NotEq, ast.IsNot, ast.NotIn)
_NUMBER_TYPES = frozenset({"builtins.float", "builtins.int", "builtins.bool", "builtins.complex"})
_WHY = {
    "dtype": "a torch dtype equals only itself",
    "str": "the string of a torch dtype begins with `torch.`",
    "type": '`.type()` returns a string such as "torch.FloatTensor"',
    "class": "the class of every tensor is `torch.Tensor`",
}


class DtypeComparedWithString(Rule):
    """A torch dtype compared with a string, a NumPy type or a tensor class.

    ## What it does
    Reports `x.dtype == "float16"`, `x.dtype == "torch.float16"`, `x.dtype == np.float32`, `x.dtype ==
    torch.FloatTensor`, `x.dtype == float`, `str(x.dtype) == "float16"` and `x.type() == torch.float32`, where `x` is
    a tensor, and the same of a dtype that is kept in a variable; and `x.dtype is ["float16", "float32"]`, which is False
    whatever `x` is. Also `x.dtype == torch.float16 or torch.bfloat16`, which is always true, and `x.dtype == torch.float16
    and x.dtype == torch.bfloat16`, which never is. And a dtype where a class is due, `isinstance(x, torch.float16)` and
    `type(x) == torch.float16`; an `elif` that asks for a dtype that the same chain has asked for above; and a tensor
    itself, `x == torch.float16`. The class of `torch.Tensor()` is left alone: that asks for the release of torch.

    ## Why it matters
    Each of them is False for every tensor, without an error: a `torch.dtype` equals itself alone, `str(x.dtype)`
    begins with `torch.`, and `x.type()` is a string such as `"torch.FloatTensor"`. NumPy dtypes do equal strings, so
    the comparison is right where it was copied from. A dtype that stands alone behind `or` is true of itself: the
    branch is taken for every dtype. The second of two equal tests is never true, and the dtype that was meant there falls
    through. `isinstance` raises for what is no class, `isinstance() arg 2 must be a type`.

    ## Example
    ```python
    import torch

    def safe_softmax(x: torch.Tensor):
        if x.dtype == "float16":
            x = x.float()
        return x.softmax(-1)
    ```

    ## Use instead
    ```python
    import torch

    def safe_softmax(x: torch.Tensor):
        if x.dtype == torch.float16:
            x = x.float()
        return x.softmax(-1)
    ```

    ## Fix safety
    The fix compares with the torch dtype. It is unsafe, for the test then comes true.

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
    """

    code, name = "DT120", "dtype-compared-with-string"
    severity = Severity.ERROR
    fix = Applicability.UNSAFE
    triggers = (".dtype", "self.dtype", ".type", *DTYPES)
    needs = (("==", "!=", "is", "in", "isinstance"), (*STRINGS, *LEGACY, *COMPARED_NUMBERS, "numpy", "type", *DTYPES))

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.calls("builtins.isinstance"):
            asked = call.argument_node(1, "")
            for node in getattr(asked, "elts", (asked,)):
                if isinstance(node, ast.Attribute) and _kind(facts, node) == "dtype":
                    yield Finding(
                        call.node,
                        f"`{ast.unparse(node)}` is a dtype, not a class: `isinstance` raises TypeError",
                        help=f"Compare: `x.dtype == {ast.unparse(node)}`",
                    )
                    break
        for node in {one.node: None for one in facts.evaluations(ast.Compare)}:
            yield from _compared(facts, node)


def _compared(facts: ModuleFacts, node: ast.Compare) -> Iterator[Finding]:
    (left, right), operator = (node.left, node.comparators[0]), node.ops[0]
    always = f"`{ast.unparse(node)}` is always {isinstance(operator, _NEGATED)}"
    if isinstance(operator, (ast.Is, ast.IsNot)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
        if isinstance(left, ast.Attribute) and left.attr == "dtype":
            yield Finding(node, f"{always}: a dtype is no list", help="Use `in`")
        return
    if not isinstance(operator, (*_EQUALITIES, ast.In, ast.NotIn)):
        return
    if isinstance(operator, _EQUALITIES) and isinstance(
        facts.value(right.values[0] if isinstance(right, ast.BoolOp) else right), Dtype
    ):
        yield from _with_others(facts, node)
    for subject, other in ((left, right), (right, left))[: 2 if isinstance(operator, _EQUALITIES) else 1]:
        kind = _kind(facts, subject)
        given = None if kind is None else _meant(kind, other, facts)
        if kind == "tensor" and given is not None:
            yield Finding(
                node,
                f"{always}: `{ast.unparse(subject)}` is a tensor",
                help=f"Compare `{ast.unparse(subject)}.dtype`",
                fix=partial(_asked_for, subject),
            )
            return
        if kind is not None and given is not None:
            yield Finding(
                node,
                f"{always}: {_WHY[kind]}",
                help="Compare `x.dtype` with a torch dtype" + (f": `torch.{given}`" if given else ""),
                fix=partial(respell, node=other, name=f"torch.{given}", message="Compare with `{}`")
                if given and kind == "dtype"
                else None,
            )
            return


def _kind(facts: ModuleFacts, node: ast.expr) -> str | None:
    """What is compared: a `tensor` itself, a `dtype`, its string (`str`), the `type()` of a tensor, or a `class`."""
    value = facts.value(node)
    if isinstance(value, Dtype):
        return "dtype" if value.dtypes or _is_of_a_tensor(facts, node) else None
    if isinstance(value, Tensor):
        return "tensor"
    for call in facts.calls_at(node) if isinstance(node, ast.Call) else ():
        if call.name == "builtins.type" and len(call.args) == 1:
            return None if _is_probe(facts, call.node.args[0]) else "class"
        if call.name == "builtins.str" and len(call.args) == 1:
            return "str" if _kind(facts, call.node.args[0]) == "dtype" else None
        if call.name == "torch.Tensor.type" and not call.args and not call.keywords:
            return "type"
    return None


def _is_probe(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a tensor of nothing, made to see what the release at hand says of it? `torch.Tensor()` had a class of its own
    before torch 0.4."""
    made = facts.around.definition(node)
    return isinstance(made, ast.Call) and not made.args and not made.keywords


def _is_of_a_tensor(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it the dtype of what is certainly a tensor, and not an array or a setting that has one?"""
    made = facts.around.definition(node)
    owner = made.value if isinstance(made, ast.Attribute) else None
    if owner is None or isinstance(facts.value(owner), Tensor):
        return owner is not None
    walk = walk_over(facts, owner)
    taken = owner.args[0] if isinstance(owner, ast.Call) and path_of(owner.func) == "next" and owner.args else None
    of_module = isinstance(taken, ast.Call) and getattr(taken.func, "attr", "") == "parameters"
    return of_module or (walk is not None and walk.kind != "modules")


def _meant(kind: str, other: ast.expr, facts: ModuleFacts) -> str | None:
    """The dtype that the other side means, "" where no one dtype; None where the comparison may hold."""
    items = facts.items(other)
    if items is None:
        return _stands_for(kind, facts.value(other))
    return "" if items and all(_stands_for(kind, item) is not None for item in items) else None


def _stands_for(kind: str, value: Value) -> str | None:
    text = value.value if isinstance(value, Const) else None
    if isinstance(text, str):
        known = named(text.removeprefix("torch."))
        return known if kind == "dtype" or (kind == "str" and not text.startswith("torch.")) else None
    if isinstance(value, Dtype):
        return (min(value.dtypes or ("",))) if kind in ("type", "class", "tensor") else None
    if not isinstance(value, External) or kind in ("str", "tensor"):
        return None
    package, _, last = value.name.rpartition(".")
    if package in ("torch", "torch.cuda") and last in LEGACY_TENSORS:
        return LEGACY_TENSORS[last]
    if kind == "dtype" and package == "numpy":
        return named(last)
    return "" if kind == "dtype" and value.name in _NUMBER_TYPES else None


def _asked_for(subject: ast.expr, place: Place) -> Fix:
    edit = Edit(place.source.span(subject), f"{ast.unparse(subject)}.dtype")
    return Fix("Compare the dtype", (edit,), Applicability.UNSAFE)


# -- comparisons with a dtype, and what stands beside them ------------------------------------------------------------


def _with_others(facts: ModuleFacts, node: ast.Compare) -> Iterator[Finding]:
    left, right = ast.unparse(node.left), node.comparators[0]
    equal = isinstance(node.ops[0], (ast.Eq, ast.Is))
    if isinstance(right, ast.BoolOp) and all(isinstance(_written(facts, side), Dtype) for side in right.values):
        first = right.values[0 if isinstance(right.op, ast.Or) else -1]
        yield Finding(
            node,
            f"This compares with `{ast.unparse(first)}` alone: `{ast.unparse(right)}` is that dtype",
            help=f"Write `{left} in ({', '.join(map(ast.unparse, right.values))})`",
        )
    around = facts.around.parent(node)
    if isinstance(around, ast.UnaryOp):
        around = facts.around.parent(around)
    sides = around.values if isinstance(around, ast.BoolOp) else []
    alone = next((side for side in sides[1:] if path_of(side) and isinstance(_written(facts, side), Dtype)), None)
    if alone is not None and equal and isinstance(getattr(around, "op", None), ast.Or):
        yield Finding(
            alone,
            f"`{ast.unparse(alone)}` is compared with nothing: the test is always true",
            help=f"Write `{left} in ({ast.unparse(right)}, {ast.unparse(alone)})`",
        )
    for side in sides[: sides.index(node)] if node in sides else ():
        if _differs(facts, side, node) and isinstance(getattr(around, "op", None), ast.And if equal else ast.Or):
            assert isinstance(around, ast.BoolOp)
            yield Finding(
                around,
                f"`{ast.unparse(around)}` is always {not equal}: a tensor has one dtype",
                help=f"Write `{left} {'in' if equal else 'not in'} (...)`",
            )
            break
    first_test = _asked_above(facts, node) if equal else None
    if first_test is not None:
        yield Finding(
            node,
            f"`{ast.unparse(node)}` is never true here: the same test stands above",
            help="Test for another dtype",
            notes=((first_test, "the first test"),),
        )


def _written(facts: ModuleFacts, node: ast.expr) -> Value:
    """What a path names, evaluated or not: behind `or`, what is always true is not reached."""
    path = path_of(node) or ""
    package, _, name = path.rpartition(".")
    is_torch = isinstance(node, ast.Attribute) and package in ("torch", "th")
    return Dtype(frozenset({known})) if is_torch and (known := named(name)) else facts.value(node)


def _differs(facts: ModuleFacts, side: ast.expr, node: ast.Compare) -> bool:
    """Does another comparison ask the same subject in the same way for another dtype?"""
    if not isinstance(side, ast.Compare) or len(side.ops) != 1 or type(side.ops[0]) is not type(node.ops[0]):
        return False
    one, other = facts.value(side.comparators[0]), facts.value(node.comparators[0])
    same = ast.dump(side.left) == ast.dump(node.left)
    known = isinstance(one, Dtype) and isinstance(other, Dtype) and bool(one.dtypes and other.dtypes)
    return same and known and one != other


def _asked_above(facts: ModuleFacts, node: ast.Compare) -> ast.expr | None:
    """The same test in an `if` that this is an `elif` of, and that it was false for."""
    statement, asked = facts.around.statement(node), ast.dump(node)
    outer = facts.around.parent(statement)
    while isinstance(statement, ast.If) and isinstance(outer, ast.If) and outer.orelse == [statement]:
        tests = outer.test.values if isinstance(outer.test, ast.BoolOp) else [outer.test]
        is_or = not isinstance(outer.test, ast.BoolOp) or isinstance(outer.test.op, ast.Or)
        found = next((test for test in tests if is_or and ast.dump(test) == asked), None)
        if found is not None:
            return found
        statement, outer = outer, facts.around.parent(outer)
    return None
