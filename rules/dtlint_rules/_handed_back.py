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
_METHODS = frozenset({"copy", "reshape", "transpose", "squeeze", "flatten", "ravel", "take", "repeat", "swapaxes"})
"""Methods of arrays that keep the values as they are, and give an array."""
_FUNCTIONS = frozenset(
    {
        *("take", "take_along_axis", "concatenate", "stack", "vstack", "hstack", "transpose", "squeeze", "expand_dims"),
        *("reshape", "flip", "fliplr", "flipud", "roll", "rot90", "ascontiguousarray", "array", "copy", "swapaxes"),
        *("moveaxis", "repeat", "tile", "delete", "sort", "ravel", "asarray"),
    }
)
"""Functions of NumPy that do so."""
_TAKE_DTYPE = frozenset({"array", "asarray", "ascontiguousarray"})
"""Those that take a dtype as their second argument."""
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
    sources = [_argument(start, names, flow, deepest) for start in _starts(node)]
    return sources[0] if sources and None not in sources else None


def _argument(start: ast.expr, names: set[str], flow: Flow, deepest: int) -> str | None:
    """The argument that a name or `x.numpy()` comes from."""
    if isinstance(start, ast.Name):
        bound = [value for _, value in assignments(flow.scope).get(start.id, ())]
        first = [value for value in bound if value is not None and not _mentions(value, start.id)]
        others = [value for value in bound if value not in first]
        if deepest == 0 or len(first) != 1 or not all(_keeps(value, start.id) for value in others):
            return None
        return _source(first[0], names, flow, deepest - 1)
    held = receiver(start)
    tensor = None if held is None else below(held, _MOVING)
    return tensor.id if isinstance(tensor, ast.Name) and _is_argument(tensor.id, names, flow) else None


def _starts(node: ast.expr) -> list[ast.expr]:
    """What the values of an array come from: names and `x.numpy()`, several of them for `np.stack([x.numpy(), y])`. Empty
    where one is anything else, or the array is told a dtype."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        return [node]
    held = receiver(node)
    if not isinstance(node, ast.Call) or held is None or any(part.arg == "dtype" for part in node.keywords):
        return []
    name = last_name(node)
    if name == "numpy":
        return [node]
    if path_of(held) not in ("np", "numpy"):
        return _starts(held) if name in _METHODS else []
    if name not in _FUNCTIONS or not node.args or (name in _TAKE_DTYPE and len(node.args) > 1):
        return []
    first = node.args[0]
    parts = [_starts(part) for part in (first.elts if isinstance(first, (ast.List, ast.Tuple)) else [first])]
    return [start for starts in parts for start in starts] if all(parts) else []


def _keeps(value: ast.expr | None, name: str) -> bool:
    """`array = np.take(array, i)`: does a name keep its dtype when it is bound anew?"""
    starts = [] if value is None else _starts(value)
    return bool(starts) and all(isinstance(start, ast.Name) and start.id == name for start in starts)


def _is_argument(name: str, names: set[str], flow: Flow) -> bool:
    """Is it what the function was given, and nothing that it has computed since?"""
    return name in names and name not in assignments(flow.scope)


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
