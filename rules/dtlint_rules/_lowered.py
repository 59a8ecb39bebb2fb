"""Does code compute anything that autocast gives a lower dtype: a product, a convolution, or what is not seen?"""

from __future__ import annotations

import ast
import builtins

from dtlint.infer.walk import nodes
from dtlint_rules._effects import CASTS, FACTORIES, JOINING, KEEPING, LIKE, NO_DTYPE, PRODUCTS
from dtlint_rules._einsum import contracts
from dtlint_rules._functions import body_of, named_functions, parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import given, receiver

__all__ = ["is_lowered"]

_LEFT_ALONE = (
    *(FACTORIES, LIKE, KEEPING, NO_DTYPE, JOINING - PRODUCTS, CASTS),
    frozenset(
        {
            *("arange", "randint", "randperm", "randn_like", "to", "type", "type_as", "new_tensor", "new_zeros"),
            *("reduce", "pack", "unpack", "broadcast_to", "broadcast_tensors", "expand_as", "swapaxes", "diagonal"),
            *("softplus", "logsigmoid", "gelu", "silu", "erf", "expm1", "logsumexp", "sinh", "cosh", "tan", "atan"),
            *("prod", "scatter", "scatter_", "index_add", "one_hot", "polar", "view_as_complex", "view_as_real"),
            *("isclose", "allclose", "logical_and", "logical_or", "logical_not", "neg_", "exp_", "sqrt_", "cdist"),
            *("append", "extend", "items", "keys", "values", "get", "format", "join"),
        }
    ),
)
"""What autocast computes in the dtype of its operands or in float32, on every device, and what computes nothing."""
_DEEPEST = 3


def is_lowered(region: ast.AST, tree: ast.Module, owner: ast.ClassDef | None = None) -> bool:
    """Would autocast give a lower dtype to anything in the body of a function or a `with`? What it calls in the same file,
    a method of `owner` or a function, is read, too; anything else that is not known may do so."""
    seen: set[ast.AST] = set()
    waiting: list[tuple[ast.AST, int, frozenset[str]]] = [(region, 0, frozenset())]
    while waiting:
        scope, depth, handed = waiting.pop()
        if scope in seen:
            continue
        seen.add(scope)
        for node in nodes(body_of(scope)):
            if isinstance(node, (ast.Yield, ast.YieldFrom)):
                return True  # whoever enters it computes there
            if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
                return True
            if not isinstance(node, ast.Call) or _is_left_alone(node) or last_name(node.func) in handed:
                continue
            called = _called(node, tree, owner)
            if called is None or depth == _DEEPEST:
                return True
            # What it does with a lambda that it is given is read where that stands.
            by_lambda = any(isinstance(each, ast.Lambda) for each in given(node))
            names = frozenset(each.arg for each in parameters(called)) if by_lambda else frozenset[str]()
            waiting.append((called, depth + 1, names))
    return False


def _is_left_alone(call: ast.Call) -> bool:
    name = last_name(call)
    if _is_own(call):
        return False
    if name == "einsum":
        return len(call.args) == 3 and isinstance(call.args[0], ast.Constant) and not contracts(call)
    if isinstance(call.func, ast.Name) and (hasattr(builtins, name) or name in ("sqrt", "cast")):
        return True
    return any(name in each for each in _LEFT_ALONE)


def _is_own(call: ast.Call) -> bool:
    """Is it `self.norm(x)`, which may be a layer, whatever it is called?"""
    of = receiver(call)
    return isinstance(of, ast.Name) and of.id in ("self", "cls")


def _called(call: ast.Call, tree: ast.Module, owner: ast.ClassDef | None) -> ast.AST | None:
    """The function of the file that is called, if it is one."""
    if _is_own(call):
        return None if owner is None else named_functions(tree).get((owner.name, last_name(call)))
    return named_functions(tree).get(("", call.func.id)) if isinstance(call.func, ast.Name) else None
