"""Arrays that a function makes of a tensor it is given, and of which it makes a tensor again."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import below, receiver
from dtlint_rules._within import within

if TYPE_CHECKING:
    from dtlint.infer.events import Call, Flow

__all__ = ["handed_back"]

_MOVING = frozenset({"cpu", "detach", "clone", "contiguous", "squeeze", "permute", "transpose", "view", "reshape"})
"""Methods of tensors that keep the dtype."""
_METHODS = frozenset(
    {"copy", "reshape", "transpose", "squeeze", "flatten", "ravel", "take", "repeat", "swapaxes", "tolist"}
)
"""Methods of arrays that keep the values as they are."""
_FUNCTIONS = frozenset(
    {
        *("take", "take_along_axis", "concatenate", "stack", "vstack", "hstack", "transpose", "squeeze", "expand_dims"),
        *("reshape", "flip", "fliplr", "flipud", "roll", "rot90", "ascontiguousarray", "array", "copy", "swapaxes"),
        *("moveaxis", "repeat", "tile", "delete", "sort", "ravel", "asarray"),
    }
)
"""Functions of NumPy that do so."""
_DTYPES = frozenset({"dtype", "type_as", "to", "type", "float", "double", "half", "long", "int", "is_floating_point"})
"""What a function mentions that heeds a dtype."""
_DEEPEST = 4


def handed_back(given: ast.expr, call: Call) -> str | None:
    """The argument of the running function whose values an array holds as they came in, where nothing there speaks of a
    dtype: `torch.Tensor(np.take(x.numpy(), order, axis=1))`."""
    flow = call.flow
    if flow.function is None:
        return None
    parent = next(within(call.node, flow), None)
    if isinstance(parent, ast.Attribute) and parent.attr in _DTYPES:
        return None
    source = _source(given, {each.arg for each in parameters(flow.scope)}, flow, _DEEPEST)
    if source is None or any(
        isinstance(node, ast.Attribute) and node.attr in _DTYPES and path_of(node.value) == source
        for node in own_nodes(flow.scope)
    ):
        return None
    return source


def _source(node: ast.expr, names: set[str], flow: Flow, deepest: int) -> str | None:
    """The argument that all of an array comes from."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        bound = [value for _, value in assignments(flow.scope).get(node.id, ())]
        first = [value for value in bound if value is not None and not _mentions(value, node.id)]
        others = [value for value in bound if value not in first]
        if deepest == 0 or len(first) != 1 or not all(_keeps(value, node.id) for value in others):
            return None
        return _source(first[0], names, flow, deepest - 1)
    if isinstance(node, (ast.List, ast.Tuple)):
        sources = [_source(item, names, flow, deepest) for item in node.elts]
        return sources[0] if sources and None not in sources else None
    if not isinstance(node, ast.Call) or any(part.arg == "dtype" for part in node.keywords):
        return None
    held = receiver(node)
    if held is not None and last_name(node) == "numpy":
        tensor = below(held, _MOVING)
        return tensor.id if isinstance(tensor, ast.Name) and _is_argument(tensor.id, names, flow) else None
    inner = _kept(node)
    return None if inner is None else _source(inner, names, flow, deepest)


def _kept(node: ast.Call) -> ast.expr | None:
    """What a function or method of NumPy takes apart or puts together: `x` of `np.take(x, i)` and of `x.copy()`."""
    base, _, name = (path_of(node.func) or "").rpartition(".")
    if base in ("np", "numpy"):
        return node.args[0] if name in _FUNCTIONS and len(node.args) > 0 else None
    return receiver(node) if last_name(node) in _METHODS else None


def _keeps(value: ast.expr | None, name: str) -> bool:
    """`array = np.take(array, i)`: does a name keep its dtype when it is bound anew?"""
    while value is not None and not isinstance(value, ast.Name):
        if isinstance(value, ast.Subscript):
            value = value.value
        elif isinstance(value, ast.Call) and all(part.arg != "dtype" for part in value.keywords):
            value = _kept(value)
        else:
            return False
    return value is not None and value.id == name


def _is_argument(name: str, names: set[str], flow: Flow) -> bool:
    """Is it what the function was given, and nothing that it has computed since?"""
    return name in names and name not in assignments(flow.scope)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
