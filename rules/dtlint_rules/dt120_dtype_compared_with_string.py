"""DT120: a torch dtype compared with what it never equals: a string, a NumPy type, a tensor class, a type."""

from __future__ import annotations

import ast
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.dtypes.dtype import named
from dtlint.infer.around import around
from dtlint.infer.conditions import atoms
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Dtype, External, Items, Tensor, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import respell
from dtlint_rules._imports import imports
from dtlint_rules._known import is_looped_tensor, known
from dtlint_rules._lookups import gives_dtype, only_value
from dtlint_rules._meanings import written_dtype
from dtlint_rules._named_dtypes import name_compared
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import COMPARED_NUMBERS, DTYPES, LEGACY, STRINGS
from dtlint_rules._no_dtypes import why_no_dtype
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.source.place import Place

__all__ = ["DtypeComparedWithString"]

_OPERATORS = {
    ast.Eq: "False",
    ast.NotEq: "True",
    ast.Is: "False",
    ast.IsNot: "True",
    ast.In: "False",
    ast.NotIn: "True",
}
_CLASSES = frozenset(
    f"torch.{device}{name}Tensor"
    for device in ("", "cuda.")
    for name in ("Half", "BFloat16", "Float", "Double", "Char", "Byte", "Short", "Int", "Long", "Bool")
)
_ASKED_FOR_A_LIST = tuple(f"dtype{operator}{bracket}" for operator in ("is", "isnot") for bracket in "([{")
"""`x.dtype is [...]`, white space aside."""
_ALONE = ("or torch.", "or th.")
"""How a dtype stands behind `or`, compared with nothing."""
_OF_A_CLASS = (
    *(")==torch.", ")!=torch.", ") is torch", ") is not torch"),
    *(")in(torch.", ")in[torch.", "not in (torch.", "not in [torch."),
)
_FOR_A_CLASS = (
    *_OF_A_CLASS,
    *(f",torch.{name})" for name in ("float16", "half", "bfloat16", "float32", "float", "float64", "double")),
    *(f",torch.{name})" for name in ("int8", "uint8", "int16", "int32", "int", "int64", "long", "bool", "complex64")),
    ",(torch.",
)
"""How a dtype, or a class of tensors, stands where a class is asked for: `type(x) == torch.float32`, and also
`isinstance(x, torch.half)`."""
_EQUAL = ("==torch.", "is torch.", "==th.")
"""How a dtype is asked for, and perhaps asked for again in the same chain."""
_UNEQUAL = ("!=torch.", "is not torch.", "in(torch.", "in[torch.", "in{torch.", "!=th.")
"""How else something is compared with a dtype that is none itself."""
_NUMBER_TYPES = frozenset({"builtins.float", "builtins.int", "builtins.bool", "builtins.complex"})


class DtypeComparedWithString(Rule):
    """A torch dtype compared with a string, a NumPy type or a tensor class.

    ## What it does
    Reports `x.dtype == "float16"`, `x.dtype == "torch.float16"`, `x.dtype == np.float32`, `x.dtype ==
    torch.FloatTensor`, `x.dtype == float`, `str(x.dtype) == "float16"` and `x.type() == torch.float32`, where `x` is
    a tensor; and `x.dtype is ["float16", "float32"]`, which is False whatever `x` is. Also
    `x.dtype == torch.float16 or torch.bfloat16`, which is always true. What is kept of a tensor, `dtype = x.dtype`, or
    looked up by its name, `dtype = getattr(torch, name)`, is none of the names that it may be compared with either, nor is
    `model.dtype` the `name` that is looked up in torch. And a dtype where a class is due,
    `isinstance(x, torch.float16)` and `type(x) == torch.float16`. And an `elif` that asks for a dtype that the same chain
    has asked for above. And what is no dtype itself: a tensor, `x == torch.float16`, and a parameter of which the function
    has read what no dtype has, `batch = info.batch` above `if info != torch.float32`.

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
    triggers = (".dtype", "self.dtype", ".type", *DTYPES, *_OF_A_CLASS)
    needs = (
        (
            *STRINGS,
            *LEGACY,
            *COMPARED_NUMBERS,
            "numpy",
            ".type",
            "getattr(torch,",
            *_ASKED_FOR_A_LIST,
            *_ALONE,
            *_FOR_A_CLASS,
            *_EQUAL,
            *_UNEQUAL,
        ),
    )
    calls = frozenset({"isinstance"})
    operators = frozenset({*_OPERATORS})
    hears_where = MappingProxyType({"on_call": ("isinstance",)})

    def on_call(self, call: Call) -> Iterator[Finding]:
        """`isinstance(x, torch.float16)`."""
        if call.target != "builtins.isinstance" or len(call.node.args) != 2:
            return
        asked = call.node.args[1]
        for node in asked.elts if isinstance(asked, ast.Tuple) else (asked,):
            if type(node) is ast.Attribute and written_dtype(node) is not None:
                yield Finding(
                    call.node,
                    f"`{ast.unparse(node)}` is a dtype, not a class: `isinstance` raises TypeError",
                    help=f"Compare: `x.dtype == {ast.unparse(node)}`",
                )
                return

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _OPERATORS:
            return ()
        if not (
            _may_ask(node.left, operation.left)
            or _may_ask(node.comparators[0], operation.right)
            or _names_dtype(node.left, operation.right)
            or (type(node.left) is ast.Name and _is_of_dtypes(operation.right))
        ):
            return ()
        return self._compared(operation, node)

    def _compared(self, operation: Operation, node: ast.Compare) -> Iterator[Finding]:
        left, right = node.left, node.comparators[0]
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(right, _DISPLAYS):
            if isinstance(left, ast.Attribute) and left.attr == "dtype":
                yield Finding(
                    node,
                    f"`{ast.unparse(node)}` is always {_OPERATORS[type(node.ops[0])]}: a dtype is no list",
                    help="Use `in`",
                )
            return
        if isinstance(right, ast.BoolOp) and (isinstance(left, ast.Attribute) and left.attr == "dtype"):
            yield from _first_alone(node, right)
            return
        if isinstance(node.ops[0], _EQUALITIES) and (name := name_compared(node, operation.flow)) is not None:
            yield Finding(
                node,
                f"`{ast.unparse(node)}` is always {_OPERATORS[type(node.ops[0])]}: `{name}` is a string",
                help=f"Compare with `getattr(torch, {name})`",
            )
            return
        if isinstance(operation.right, Dtype) and isinstance(node.ops[0], _EQUALITIES):
            if isinstance(node.ops[0], (ast.Eq, ast.Is)):
                yield from _alone(operation, node)
                yield from _again(operation, node)
            yield from _of_two(operation, node)
        if (found := _no_dtype(operation, node)) is not None:
            yield found
            return
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            sides = [(left, operation.left, right, operation.right)]
        else:
            sides = [(left, operation.left, right, operation.right), (right, operation.right, left, operation.left)]
        for subject, value, other, compared in sides:
            kind = _kind(subject, value, operation.flow)
            given = None if kind is None else _stands_for(kind, compared, operation.flow)
            if kind is None or given is None:
                continue
            yield Finding(
                node,
                f"`{ast.unparse(node)}` is always {_OPERATORS[type(node.ops[0])]}: {_WHY[kind]}",
                help="Compare `x.dtype` with a torch dtype" + (f": `torch.{given}`" if given else ""),
                fix=partial(respell, node=other, name=f"torch.{given}", message="Compare with `{}`")
                if given and kind == "dtype"
                else None,
            )
            return


def _no_dtype(operation: Operation, node: ast.Compare) -> Finding | None:
    """`x == torch.float16`, of a tensor `x`."""
    subject, value = node.left, operation.left
    if isinstance(operation.left, Dtype) and isinstance(node.ops[0], _EQUALITIES):
        subject, value = node.comparators[0], operation.right
    elif not isinstance(operation.right, Dtype) and not _is_of_dtypes(operation.right):
        return None
    why = why_no_dtype(subject, value, operation.flow)
    if why is None:
        return None
    is_tensor = isinstance(value, Tensor)
    if is_tensor or isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        told = f"`{ast.unparse(node)}` is always {_OPERATORS[type(node.ops[0])]}"
    else:  # a class may say what equals it
        told = f"`{ast.unparse(node)}` compares with a dtype"
    return Finding(
        node,
        f"{told}: `{ast.unparse(subject)}` {why}, and is not one"
        if not is_tensor
        else f"{told}: `{ast.unparse(subject)}` {why}",
        help=f"Compare `{ast.unparse(subject)}.dtype`" if is_tensor else "Compare the dtype of a tensor",
        severity=None if is_tensor else Severity.WARNING,
        fix=partial(_asked_for, subject) if is_tensor else None,
    )


def _asked_for(subject: ast.expr, place: Place) -> Fix:
    edit = Edit(place.source.span(subject), f"{ast.unparse(subject)}.dtype")
    return Fix("Compare the dtype", (edit,), Applicability.UNSAFE)


def _is_of_dtypes(value: Value) -> bool:
    return type(value) is Items and bool(value.items) and all(type(each) is Dtype for each in value.items)


def _alone(operation: Operation, node: ast.Compare) -> Iterator[Finding]:
    """`x.dtype == torch.float16 or torch.bfloat16`, at the dtype behind."""
    torch = (path_of(node.comparators[0]) or "").rpartition(".")[0]  # as the program calls it
    known = parents_at(node, operation.flow)
    around = known.get(node)
    if isinstance(around, ast.UnaryOp):
        around = known.get(around)
    if not isinstance(around, ast.BoolOp) or not isinstance(around.op, ast.Or):
        return
    for side in around.values[1:]:
        package, _, name = (path_of(side) or "").rpartition(".")
        path = f"{package}.{name}"
        if package and package == torch and named(name) is not None:
            yield Finding(
                side,
                f"`{path}` is compared with nothing: the test is always true",
                help=f"Write `{ast.unparse(node.left)} in ({ast.unparse(node.comparators[0])}, {path})`",
            )
            return


def _again(operation: Operation, node: ast.Compare) -> Iterator[Finding]:
    """`elif dtype == torch.float16`, behind `if dtype == torch.float16`."""
    flow, asked = operation.flow, ast.dump(node)
    before = next((held for held in atoms(flow.conditions) if not held.holds and ast.dump(held.test) == asked), None)
    if before is None:
        return
    chain = [part for part in around(node, flow.tree) if isinstance(part, ast.If)]
    inner = next((part for part in chain if node in ast.walk(part.test)), None)
    for outer in chain:
        if inner is None or outer.orelse != [inner]:
            continue
        if before.test in ast.walk(outer.test):
            yield Finding(
                node,
                f"`{ast.unparse(node)}` is never true here: the same test stands above",
                help="Test for another dtype",
                notes=((before.test, "the first test"),),
            )
            return
        inner = outer


def _first_alone(node: ast.Compare, listed: ast.BoolOp) -> Iterator[Finding]:
    """`x.dtype == (torch.float16 or torch.bfloat16)`."""
    dtypes = [ast.unparse(value) for value in listed.values if written_dtype(value) is not None]
    if len(dtypes) == len(listed.values) > 1:
        compared = dtypes[0] if isinstance(listed.op, ast.Or) else dtypes[-1]
        yield Finding(
            node,
            f"This compares with `{compared}` alone: `{ast.unparse(listed)}` is that dtype",
            help=f"Write `{ast.unparse(node.left)} in ({', '.join(dtypes)})`",
        )


def _of_two(operation: Operation, node: ast.Compare) -> Iterator[Finding]:
    """`x.dtype == a and x.dtype == b`, which never holds, and `x.dtype != a or x.dtype != b`, which always does."""
    around = parents_at(node, operation.flow).get(node)
    equal = isinstance(node.ops[0], (ast.Eq, ast.Is))
    if not isinstance(around, ast.BoolOp) or isinstance(around.op, ast.And) is not equal:
        return
    own, subject = written_dtype(node.comparators[0]), ast.dump(node.left)
    for side in around.values[: around.values.index(node)]:
        if not isinstance(side, ast.Compare) or len(side.ops) != 1 or ast.dump(side.left) != subject:
            continue
        other = written_dtype(side.comparators[0])
        if isinstance(side.ops[0], type(node.ops[0])) and own is not None and other is not None and own != other:
            yield Finding(
                around,
                f"`{ast.unparse(around)}` is always {not equal}: a tensor has one dtype",
                help=f"Write `{ast.unparse(node.left)} {'in' if equal else 'not in'} (...)`",
            )
            return


_EQUALITIES = (ast.Eq, ast.Is, ast.NotEq, ast.IsNot)
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)
_WHY = {
    "dtype": "a torch dtype equals only itself",
    "str": "the string of a torch dtype begins with `torch.`",
    "type": '`.type()` returns a string such as "torch.FloatTensor"',
    "class": "the class of every tensor is `torch.Tensor`",
}


def _may_ask(node: ast.expr, value: Value) -> bool:
    """Is one side of a comparison spelled like a dtype or the question for one, or is it one? Most ask for neither."""
    if type(node) is ast.Attribute:
        return node.attr == "dtype" or type(value) is Dtype
    return type(value) is Dtype or (type(node) is ast.Call and last_name(node) in ("str", "type"))


def _names_dtype(node: ast.expr, compared: Value) -> bool:
    """Is a variable that is called a dtype compared with texts, or any with the name of a dtype?"""
    if type(node) is not ast.Name:
        return False
    if node.id.endswith("dtype"):
        return type(compared) in (Constant, Items)
    given = compared.items if type(compared) is Items else (compared,)
    texts = [each.value if type(each) is Constant else None for each in given]
    return bool(texts) and all(type(text) is str and named(text.removeprefix("torch.")) is not None for text in texts)


def _kind(node: ast.expr, value: Value, flow: Flow) -> str | None:
    """What is compared: the `dtype` of a tensor, its string (`str`), the `type()` of a tensor, or its class."""
    if isinstance(value, Dtype):
        return "dtype"
    if isinstance(node, ast.Name):
        made = only_value(node.id, flow)
        if isinstance(made, ast.Attribute):
            return "dtype" if made.attr == "dtype" and _is_tensor(made.value, flow) else None
        if not node.id.endswith("dtype"):
            return None
        return "dtype" if made is not None and gives_dtype(made) else None
    if isinstance(node, ast.Attribute) and node.attr == "dtype":
        return "dtype" if _is_tensor(node.value, flow) else None
    if isinstance(node, ast.Call):
        if path_of(node.func) == "type" and len(node.args) == 1 and "type" not in flow.state.names:
            return "class"
        if path_of(node.func) == "str" and len(node.args) == 1:
            return "str" if _kind(node.args[0], value, flow) == "dtype" else None
        if isinstance(node.func, ast.Attribute) and node.func.attr == "type" and not node.args and not node.keywords:
            return "type" if _is_tensor(node.func.value, flow) else None
    return None


def _is_tensor(node: ast.expr, flow: Flow) -> bool:
    while isinstance(node, ast.Attribute) and node.attr in ("data", "grad", "weight", "bias"):
        if node.attr in ("weight", "bias") and "torch" in imports(flow.tree) and "numpy" not in imports(flow.tree):
            return True
        node = node.value
    if isinstance(node, ast.Call):
        return last_name(node) == "next" and "parameters" in names_in(node)
    return isinstance(known(flow, node), Tensor) or is_looped_tensor(node, flow)


def _stands_for(kind: str, value: Value, flow: Flow) -> str | None:
    """The dtype that the other side means, "" where no one dtype; None where the comparison may hold."""
    from dtlint.dtypes.dtype import LEGACY_TENSORS

    if isinstance(value, Items):
        given = [_stands_for(kind, item, flow) for item in value.items]
        return "" if given and all(item is not None for item in given) else None
    if isinstance(value, Constant) and isinstance(value.value, str):
        if kind in ("type", "class"):
            return None
        name = named(value.value.removeprefix("torch."))
        return name if kind == "dtype" or not value.value.startswith("torch.") else None
    if kind == "str":
        return None
    if isinstance(value, Dtype):
        return value.name if kind in ("type", "class") else None
    if not isinstance(value, External):
        return None
    if value.name in _CLASSES:
        return LEGACY_TENSORS[value.name.rpartition(".")[2]]
    if kind == "dtype" and value.name.startswith("numpy."):
        return named(value.name[6:])
    return "" if kind == "dtype" and value.name in _NUMBER_TYPES else None
