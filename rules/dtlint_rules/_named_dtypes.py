"""A dtype compared with the name of one: `model.dtype != name`, where `getattr(torch, name)` is looked up, too."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._known import is_looped_tensor, known
from dtlint_rules._names import last_name
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from dtlint.infer.events import Flow

__all__ = ["name_compared"]

_MODELS = re.compile(r"(^|_)(model|unet|vae|transformer|text_encoder|network|backbone)$")
"""What models are called, whose `dtype` is a torch dtype. That of settings is a string, and so may be that of an array."""
_METHODS = frozenset(
    {
        *("to", "half", "float", "bfloat16", "cuda", "cpu", "eval", "train", "parameters", "named_parameters"),
        *("state_dict", "load_state_dict", "requires_grad_", "generate", "forward"),
    }
)
_LOADERS = frozenset({"from_pretrained", "from_single_file", "from_config"})
_ASKING = frozenset({"isinstance", "issubclass", "type", "hasattr", "callable"})


def name_compared(node: ast.Compare, flow: Flow) -> str | None:
    """The parameter that is the name of a dtype for certain, and which the dtype of a tensor or a model is compared with."""
    for subject, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        if not isinstance(other, ast.Name) or not isinstance(subject, ast.Attribute) or subject.attr != "dtype":
            continue
        if _has_dtype(subject.value, flow) and _is_text(other.id, node, flow):
            return other.id
    return None


def _has_dtype(node: ast.expr, flow: Flow) -> bool:
    value = known(flow, node)
    if isinstance(value, (Tensor, Module)) or is_looped_tensor(node, flow):
        return True
    path = path_of(node)
    return path is not None and _MODELS.search(last_name(node)) is not None and _is_model(path, flow)


def _is_model(path: str, flow: Flow) -> bool:
    """Is something done to it in this function that is done to models, and not to what describes one?"""
    for part in own_nodes(flow.scope):
        if isinstance(part, ast.Call):
            function = part.func
            if isinstance(function, ast.Attribute) and function.attr in _METHODS and path_of(function.value) == path:
                return True
            continue
        loaded = part.value if isinstance(part, ast.Assign) and path in map(path_of, part.targets) else None
        if isinstance(loaded, ast.Call) and last_name(loaded) in _LOADERS:
            return True
    return False


def _is_text(name: str, node: ast.Compare, flow: Flow) -> bool:
    """Is it a parameter that is never bound anew nor asked what it is, and that is looked up in torch whatever else it is?"""
    given = [parameter.annotation for parameter in parameters(flow.scope) if parameter.arg == name]
    if not given or (given[0] is not None and "dtype" in ast.unparse(given[0])):
        return False
    looked_up = False
    around = parents_in(flow.scope)
    for part in own_nodes(flow.scope):
        if isinstance(part, ast.Name) and part.id == name and not isinstance(part.ctx, ast.Load):
            return False
        if isinstance(part, ast.Compare) and part is not node and _may_be_dtype(part, name):
            return False
        if not isinstance(part, ast.Call):
            continue
        if last_name(part) in _ASKING and _mentions(part, name):
            return False
        if path_of(part.func) == "getattr" and len(part.args) >= 2 and _names(part.args[1], name):
            if len(part.args) > 2 or path_of(part.args[0]) != "torch" or not _is_certain(part, name, node, around):
                return False
            looked_up = True
    return looked_up


def _may_be_dtype(node: ast.Compare, name: str) -> bool:
    """Is the name compared with what may be dtypes: with anything but strings and None that are written out?"""
    sides = [node.left, *node.comparators]
    if not any(_names(side, name) for side in sides):
        return False
    parts = [
        part for side in sides for part in (side.elts if isinstance(side, (ast.List, ast.Tuple, ast.Set)) else [side])
    ]
    return not all(
        _names(part, name)
        or isinstance(part, ast.Constant)
        or (isinstance(part, ast.Attribute) and part.attr == "dtype")
        for part in parts
    )


def _is_certain(part: ast.AST, name: str, node: ast.Compare, around: dict[ast.AST, ast.AST]) -> bool:
    """Is the name looked up whatever it is: in no `try`, and behind no test of it but the comparison?"""
    while (parent := around.get(part)) is not None:
        if isinstance(parent, ast.Try):
            return False
        if isinstance(parent, ast.BoolOp):
            tests = [value for value in parent.values if value is not part]
        else:
            tests = [parent.test] if isinstance(parent, (ast.If, ast.IfExp, ast.While)) else []
        for test in tests:
            if any(inner is node for inner in ast.walk(test)) or _compares(test, name):
                continue
            if _mentions(test, name):
                return False
        part = parent
    return True


def _compares(test: ast.expr, name: str) -> bool:
    """`p.dtype != name`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    sides = (test.left, test.comparators[0])
    return any(_names(side, name) for side in sides) and any(
        isinstance(side, ast.Attribute) and side.attr == "dtype" for side in sides
    )


def _names(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))
