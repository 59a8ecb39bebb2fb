"""DT119: a list of the floating dtypes that are let through, without bfloat16."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity, Span
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach, reach
from dtlint.infer.values import Dtype, Items, Value
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._imports import is_a_test, writes_kernels
from dtlint_rules._names import last_name
from dtlint_rules._parts import given
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.scopes import FunctionInfo
    from dtlint.source.place import Place

__all__ = ["OverStrictDtypeCheck"]


_CHECKING = ("valid", "check", "assert", "expect", "require", "ensure")
"""In the names of functions that raise for a dtype that is not in their list."""


class OverStrictDtypeCheck(Rule):
    """A check that raises for bfloat16, because its list of floating dtypes does not have it.

    ## What it does
    Reports an `assert`, or an `if` that raises, on `x.dtype in (torch.float16, torch.float32, torch.float64)`, and
    such a list given to a function that checks: lists with float16, float32 and float64 but without bfloat16. A list
    of float16 and float32 alone is left alone, for that is what many kernels support.

    As information, it reports such checks for float32 and float64 alone, a test against a list of these two that is called
    `FLOATING_DTYPES` or alike, and `assert x.dtype == torch.float32` of an
    argument, in code that half can reach; and an `assert a.dtype == b.dtype`, or an `if` that raises, on two arguments of
    a function: under autocast the one may come from a matmul and be half, the other from a softmax and be float32. Left
    alone is what stands ahead of a kernel, or beside a list of the dtypes that pass, or asks of an output.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor to fail.

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
    triggers = ("float64", ".double", ".dtype==", ".dtype!=")
    needs = (("float64", ".double", ".dtype"),)
    calls = frozenset(f"*{word}*" for word in _CHECKING)
    operators = frozenset({ast.In, ast.NotIn, ast.Eq, ast.NotEq})

    def on_call(self, call: Call) -> Iterator[Finding]:
        name = last_name(call.node)
        for node in given(call.node):
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and _lacks_bfloat16(_value_of(call, node)):
                yield Finding(
                    node,
                    f"The list lacks bfloat16: `{name}` raises for a bfloat16 tensor",
                    help="Add `torch.bfloat16` to the list",
                    conditional=True,
                    fix=_adding(node),
                )

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        return self._compared(operation, node) if isinstance(node, ast.Compare) else ()

    def _compared(self, operation: Operation, node: ast.Compare) -> Iterator[Finding]:
        if not isinstance(operation.operator, _JUDGED):
            return
        if isinstance(operation.operator, (ast.Eq, ast.NotEq)):
            yield from self._equal(operation, node)
            return
        if not _lacks_bfloat16(operation.right):
            yield from self._wide_alone(operation, node)
            return
        if len(node.ops) != 1 or not _raises(node, operation.operator, parents_at(node, operation.flow)):
            return
        if is_a_test(operation.flow.tree):
            return  # it knows the dtypes that come out
        listed = node.comparators[0]
        yield Finding(
            node,
            "The check lacks bfloat16: it raises for a bfloat16 tensor",
            help="Check `x.is_floating_point()`, or add `torch.bfloat16` to the list",
            conditional=True,
            fix=_adding(listed) if isinstance(listed, (ast.Tuple, ast.List, ast.Set)) else None,
        )

    def _equal(self, operation: Operation, node: ast.Compare) -> Iterator[Finding]:
        """`assert a.dtype == b.dtype`, of two arguments."""
        function = operation.flow.function
        if function is None or len(node.ops) != 1 or _COMPARING.search(getattr(function.node, "name", "")):
            return
        first, second = _parameter(node.left, function), _parameter(node.comparators[0], function)
        operator = ast.In() if isinstance(operation.operator, ast.Eq) else ast.NotIn()
        if first is not None and operation.right == Dtype("float32"):
            yield from self._float32_alone(operation, node, first, operator)
            return
        if first is None or second is None or first == second or any(map(_has_its_own, (first, second))):
            return
        if _is_of_kernels(operation.flow):
            return
        if _raises(node, operator, parents_at(node, operation.flow)):
            yield Finding(
                node,
                f"The check raises if `{first}` and `{second}` differ in dtype, as under autocast",
                help=f"Cast `{second}` to the dtype of `{first}`, or check `is_floating_point()`",
                severity=Severity.INFO,
                conditional=True,
            )

    def _float32_alone(
        self, operation: Operation, node: ast.Compare, name: str, operator: ast.cmpop
    ) -> Iterator[Finding]:
        """`assert x.dtype == torch.float32`, of an argument that the function only hands on or computes with."""
        scope = operation.flow.scope
        around = parents_at(node, operation.flow)
        branches = isinstance(operation.operator, ast.Eq) and not isinstance(around.get(node), ast.Assert)
        if branches or not _raises(node, operator, around) or _needs_float32(scope, name):
            return  # `elif x.dtype == torch.float32`, too, is one of several dtypes that pass
        if _is_of_kernels(operation.flow):
            return
        if reach(operation.flow).level >= Reach.LIBRARY and not is_a_test(operation.flow.tree):
            yield Finding(
                node,
                f"The check raises if `{name}` is half, as under autocast",
                help=f"Cast `{name}`, or check `{name}.is_floating_point()`",
                severity=Severity.INFO,
                conditional=True,
            )

    def _wide_alone(self, operation: Operation, node: ast.Compare) -> Iterator[Finding]:
        """`if x.dtype not in (torch.float32, torch.float64): raise`."""
        if _listed(operation.right) != {"float32", "float64"} or len(node.ops) != 1:
            return
        if _FLOATING.search(last_name(node.comparators[0])) and last_name(node.left) == "dtype":
            yield Finding(
                node,
                f"`{last_name(node.comparators[0])}` lacks float16 and bfloat16",
                help="Check `x.is_floating_point()`",
                severity=Severity.INFO,
                conditional=True,
            )
            return
        if not isinstance(node.left, ast.Attribute) or _calls_kernels(operation.flow.scope):
            return
        operator = operation.operator
        if not isinstance(operator, ast.cmpop) or not _raises(node, operator, parents_at(node, operation.flow)):
            return
        if reach(operation.flow).level >= Reach.LIBRARY and not is_a_test(operation.flow.tree):
            yield Finding(
                node,
                "The check raises for a half tensor: only float32 and float64 pass",
                help="Check `x.is_floating_point()`, or cast",
                severity=Severity.INFO,
                conditional=True,
            )


_FLOATING = re.compile(r"^_?(?:ALL_)?FLOAT(?:ING|S)?(?:_POINT)?_?(?:D?TYPES?)$", re.IGNORECASE)
"""How a list of all floating dtypes is called."""
_KERNEL = re.compile(
    r"kernel|cuda|triton|_C$|^C$|^lib$|ext_module|_ext$|is_contiguous|data_ptr|backend|^ops$|numpy|fft|linalg|quantize_?per"
)
"""Names of what knows its own dtypes only: kernels, and the checks that stand ahead of them."""


def _calls_kernels(scope: ast.AST) -> bool:
    return any(
        _KERNEL.search(last_name(node)) for node in own_nodes(scope) if isinstance(node, (ast.Name, ast.Attribute))
    )


_OWN = re.compile(r"^self$|(?:^|_)(?:out|outputs?|result|dst|buffer|cache|companion)(?:_|$)")
"""Names of what is written into, or holds others: it has a dtype of its own, which is asked of what comes in."""


def _has_its_own(name: str) -> bool:
    return _OWN.search(name) is not None


def _is_of_kernels(flow: Flow) -> bool:
    """Does a check stand ahead of a kernel, or beside a list of the dtypes that pass? Then the two that differ are refused
    for a reason."""
    if writes_kernels(flow.tree) or _calls_kernels(flow.scope) or _stands_for_kernel(flow.scope):
        return True
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.In, ast.NotIn))
        and last_name(node.left) == "dtype"
        for node in own_nodes(flow.scope)
    )


_META = re.compile(r"meta|fake|abstract")


def _stands_for_kernel(scope: ast.AST) -> bool:
    """Does a function tell torch of the shapes and dtypes that a kernel takes: `@register_meta("roi_align")`,
    `@torch.library.register_fake`?"""
    return any(_META.search(last_name(decorator)) for decorator in getattr(scope, "decorator_list", ()))


def _needs_float32(scope: ast.AST, name: str) -> bool:
    """Does the check say what is so, or what a kernel needs: is the argument computed anew before it, or is something cast
    to float32 beside it?"""
    if _calls_kernels(scope):
        return True
    for _, value in assignments(scope).get(name, ()):
        if not (isinstance(value, ast.Call) and value.args and path_of(value.args[0]) == name):
            return True
    return any(
        isinstance(node, ast.Call)
        and (last_name(node) == "float" or any(path_of(part) in _FLOAT32 for part in given(node)))
        for node in own_nodes(scope)
    )


_FLOAT32 = frozenset({"torch.float32", "torch.float"})
_COMPARING = re.compile(r"test|assert|check|equal|same|compare|close")
"""How functions are called whose task it is to compare."""
_JUDGED = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)


def _lacks_bfloat16(value: Value | None) -> bool:
    if not isinstance(value, Items) or not all(isinstance(item, Dtype) for item in value.items):
        return False
    names = frozenset(item.name for item in value.items if isinstance(item, Dtype))
    return names >= {"float16", "float32", "float64"} and "bfloat16" not in names


def _listed(value: Value | None) -> set[str]:
    """The dtypes of a list."""
    return {item.name for item in value.items if isinstance(item, Dtype)} if isinstance(value, Items) else set()


def _raises(test: ast.Compare, operator: ast.cmpop, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Does a dtype that is not in the list raise?"""
    parent = around.get(test)
    while isinstance(parent, ast.BoolOp):
        parent = around.get(parent)
    if isinstance(parent, ast.Call) and isinstance(operator, ast.In):
        return _is_check(parent.func)
    if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
        outer = around.get(parent)
        return isinstance(operator, ast.In) and isinstance(outer, ast.If) and _raise_in(outer.body)
    if isinstance(parent, ast.Assert):
        return isinstance(operator, ast.In)
    if not isinstance(parent, ast.If):
        return False
    branch = parent.body if isinstance(operator, ast.NotIn) else parent.orelse
    return _raise_in(branch)


def _is_check(function: ast.expr) -> bool:
    path = (path_of(function) or "").lower()
    return any(word in path for word in _CHECKING)


def _raise_in(branch: list[ast.stmt]) -> bool:
    return any(isinstance(part, ast.Raise) for part in nodes(branch))


def _parameter(node: ast.expr, function: FunctionInfo) -> str | None:
    """The parameter of which a check takes the dtype."""
    if not isinstance(node, ast.Attribute) or node.attr != "dtype" or not isinstance(node.value, ast.Name):
        return None
    name = node.value.id
    return name if any(parameter.arg == name for parameter in parameters(function.node)) else None


def _value_of(call: Call, node: ast.expr) -> Value | None:
    """The value of an argument's expression."""
    if node in call.node.args:
        position = call.node.args.index(node)
        return call.args[position] if position < len(call.args) else None
    name = next(keyword.arg for keyword in call.node.keywords if keyword.value is node)
    return call.keywords.get(name) if name is not None else None


def _adding(listed: ast.Tuple | ast.List | ast.Set) -> Callable[[Place], Fix]:
    def fix(place: Place) -> Fix:
        spelling, edits = place.spelled("torch.bfloat16")
        last = place.source.span(listed.elts[-1])
        end = Span(last.end_line, last.end_column, last.end_line, last.end_column)
        return Fix("Add bfloat16", (Edit(end, f", {spelling}"), *edits), Applicability.UNSAFE)

    return fix
