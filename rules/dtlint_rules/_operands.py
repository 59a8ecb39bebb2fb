"""The operands of torch's functions, methods and layers, and the dtypes that they certainly have.

Inference knows the dtype of what it knows to be a tensor. Of a parameter that is only ever cast it knows neither: but
`y.int()` is int32 if the program gets past it, whatever `y` is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import DTYPES, Category, named
from dtlint.infer.values import Module, Tensor, Unknown
from dtlint_rules._assignments import assignments
from dtlint_rules._fixes import operand_text
from dtlint_rules._legacy import METHODS
from dtlint_rules._names import last_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.values import Dtypes, Value
    from dtlint.source.place import Place
    from dtlint_rules._subjects import Operand

__all__ = [
    "BOOL",
    "INTEGRAL",
    "called",
    "cast_fix",
    "certain",
    "listed",
    "origin_note",
    "settled",
    "tensor_op",
]

BOOL = frozenset({"bool"})
INTEGRAL = frozenset(name for name, dtype in DTYPES.items() if dtype.category <= Category.INTEGER)
"""bool, and the integers."""
_CASTS = {method: dtype for dtype, method in METHODS.items()}


def tensor_op(call: Call) -> str:
    """The op that is called: `gather` of `torch.gather` and `x.gather`, `nn.functional.one_hot`, and `nn.Embedding` of
    a layer that is called; "" where it is not torch's."""
    if isinstance(call.receiver, Module) and call.target == "torch.nn.Module.__call__":
        return call.receiver.name.removeprefix("torch.") if call.receiver.name.startswith("torch.nn.") else ""
    if not call.target.startswith("torch."):
        return ""
    return call.target.removeprefix("torch.").removeprefix("Tensor.")


def called(ops: Iterable[str]) -> frozenset[str]:
    """The names by which a rule hears of ops, as `tensor_op` has them: `__call__` for layers, the last names of others."""
    last = {op.rpartition(".")[2] for op in ops}
    return frozenset("__call__" if name[:1].isupper() else name for name in last)


def certain(value: Value) -> Dtypes:
    """The dtypes of a tensor, where an expression of this file gives them. An annotation does not: `labels:
    torch.LongTensor` stands in front of labels of every dtype. Nor does a call with `out=`, whose dtype is that of `out`."""
    if not isinstance(value, Tensor) or value.origin is None:
        return None
    origin = value.origin
    if isinstance(origin, ast.Call) and any(keyword.arg == "out" for keyword in origin.keywords):
        return None
    return value.dtypes


def origin_note(value: Value, node: ast.expr | ast.stmt, text: str) -> tuple[tuple[ast.expr | ast.stmt, str], ...]:
    """The note that shows where a tensor has its dtype from, if that is another line."""
    origin = value.origin if isinstance(value, Tensor) else None
    return ((origin, text),) if origin is not None and origin.lineno != node.lineno else ()


def settled(operand: Operand, flow: Flow) -> Dtypes:
    """The dtypes that an operand can have: as inference has them, or by the cast that is written where it stands, or
    where its name is bound."""
    if isinstance(operand.value, Tensor) and operand.value.dtypes is not None:
        return certain(operand.value)
    if not isinstance(operand.value, (Tensor, Unknown)):
        return None
    node: ast.expr | None = operand.node
    if isinstance(node, ast.Name):
        bound = assignments(flow.scope).get(node.id, ())
        node = bound[0][1] if len(bound) == 1 and bound[0][0] < node.lineno else None
    return _written(node) if isinstance(node, ast.Call) else None


def _written(node: ast.Call) -> Dtypes:
    """The dtype of `y.int()` and `y.to(torch.int32)`. A method `float` or `long` of no argument is one of tensors."""
    if not isinstance(node.func, ast.Attribute):
        return None
    if not node.args and not node.keywords:
        dtype = _CASTS.get(node.func.attr)
    elif node.func.attr in ("to", "type") and len(node.args) == 1 and not node.keywords:
        (given,) = node.args
        of_torch = isinstance(given, ast.Attribute) and last_name(given.value) in ("torch", "th")
        dtype = named(last_name(given)) if of_torch else None
    else:
        return None
    return None if dtype is None else frozenset({dtype})


def listed(dtypes: frozenset[str]) -> str:
    """Dtypes in words: `int8 or int32`."""
    return " or ".join(sorted(dtypes))


def cast_fix(node: ast.expr, cast: str, what: str, applicability: Applicability, place: Place) -> Fix:
    """The fix that casts an operand where it stands: `node.cast`, in which `cast` is `long()`. A cast to an integer that
    stands there makes way."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args and not node.keywords:
        called = place.text(node.func)
        if _CASTS.get(node.func.attr) in INTEGRAL - BOOL and called.endswith(node.func.attr):
            # What it is called on stays as it is written, with its parentheses and comments.
            edit = place.replace(node, called.removesuffix(node.func.attr) + cast)
            return Fix(what, (edit,), applicability)
    return Fix(what, (place.replace(node, f"{operand_text(place, node)}.{cast}"),), applicability)
