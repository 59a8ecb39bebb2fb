"""What becomes of a value: does its dtype matter anywhere it goes?

A half tensor that is promoted to float32 does no harm where the result is compared, cast back, summed up to one loss or
written into a tensor of half. It does where it is returned, kept, or handed to a layer, whose weights stay half.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._names import last_name
from dtlint_rules._statements import block_of
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RAISING", "escapes"]

RAISING = frozenset(
    {"matmul", "mm", "bmm", "mv", "dot", "einsum", "addmm", "baddbmm", "linear", "conv1d", "conv2d", "conv3d"}
)
"""Products, which do not promote: operands of two dtypes raise."""
_TOLD = frozenset(
    {
        "to",
        "type",
        "type_as",
        "float",
        "half",
        "double",
        "bfloat16",
        "long",
        "int",
        "bool",
        "byte",
        "short",
        "to_device",
    }
)
"""Casts: behind them the dtype is theirs."""
_NO_TENSOR = frozenset(
    {
        "argsort",
        "argmax",
        "argmin",
        "topk",
        "multinomial",
        "bernoulli",
        "nonzero",
        "bincount",
        "item",
        "tolist",
        "numpy",
    }
    | {
        "isnan",
        "isinf",
        "isfinite",
        "any",
        "all",
        "allclose",
        "equal",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "searchsorted",
    }
    | {"bucketize", "isinstance", "is_tensor", "len", "print", "str", "repr", "size", "dim", "numel"}
)
"""What gives indices, flags or Python's numbers: the dtype that was asked about is gone."""
_TOTALS = frozenset({"sum", "mean", "prod", "max", "min", "norm", "std", "var", "logsumexp", "median"})
"""Without a `dim` they give one number, and a 0-dim tensor promotes nothing."""
_DECOMPOSED = re.compile(r"eig|svd|inv(?:erse)?(?:$|_)|chol|solve|lstsq|(?:^|_)qr(?:$|_)|det(?:$|_)|quantile")
"""Functions that half does not have: there float32 is what helps."""
_LOSS = re.compile(r"loss|nll|cross_entropy|criterion", re.IGNORECASE)
_VIEWS = frozenset({"T", "mT", "H", "data", "real", "values"})


def escapes(node: ast.AST, scope: ast.AST, tree: ast.Module) -> bool:
    """Does the dtype of an expression come out of its function, or into a layer or a product, as far as names show?"""
    return _Flow(scope, tree).escapes(node)


class _Flow:
    """Where the values of one function go."""

    def __init__(self, scope: ast.AST, tree: ast.Module) -> None:
        self.scope = scope
        # What a lambda gives goes where the lambda stands.
        self.parents = parents_in(tree if isinstance(scope, ast.Lambda) else scope)
        self.seen: set[ast.AST] = set()

    def escapes(self, node: ast.AST) -> bool:
        if node in self.seen:
            return False
        self.seen.add(node)
        parent = self.parents.get(node)
        if isinstance(parent, ast.keyword):
            node, parent = parent, self.parents.get(parent)
        if isinstance(parent, ast.Call):
            return self._called(parent)
        if isinstance(parent, ast.Attribute):
            return self._method(parent)
        if isinstance(parent, ast.Subscript):
            return parent.value is node and self.escapes(parent)
        if isinstance(parent, (ast.Compare, ast.Expr, ast.AugAssign, ast.Assert, ast.If, ast.While, ast.BoolOp)):
            return False
        if isinstance(parent, ast.Assign):
            return any(self._bound(target, parent) for target in parent.targets)
        if isinstance(parent, (ast.AnnAssign, ast.NamedExpr)):
            return self._bound(parent.target, parent) or (isinstance(parent, ast.NamedExpr) and self.escapes(parent))
        if isinstance(parent, ast.expr):
            return self.escapes(parent)
        return True

    def _called(self, call: ast.Call) -> bool:
        """As an argument."""
        name = last_name(call)
        if name in RAISING:
            return True
        written = name.endswith("_") and not name.endswith("__")
        if (
            written
            or name in _NO_TENSOR
            or name in _TOLD
            or _is_told(call)
            or _LOSS.search(name)
            or _DECOMPOSED.search(name)
        ):
            return False
        if name in _TOTALS and (path_of(call.func) or "").partition(".")[0] in ("torch", "th"):
            return _has_dim(call, 1) and self.escapes(call)
        return self._is_unknown(call) or self.escapes(call)

    def _method(self, attribute: ast.Attribute) -> bool:
        """As what a method is called on, or an attribute is taken of."""
        call = self.parents.get(attribute)
        if not isinstance(call, ast.Call) or call.func is not attribute:
            return attribute.attr in _VIEWS and self.escapes(attribute)
        name = attribute.attr
        if name in RAISING:
            return True
        if name in _NO_TENSOR or name == "backward" or _DECOMPOSED.search(name):
            return False
        if name in _TOLD and (name != "to" or _is_told(call)):
            return False
        if name in _TOTALS and not _has_dim(call, 0):
            return False
        return self.escapes(call)

    def _is_unknown(self, call: ast.Call) -> bool:
        """Is it no function of torch that gives on what it gets?"""
        base = (path_of(call.func) or "").partition(".")[0]
        return base not in ("torch", "th", "F", "nn", "einops", "rearrange", "repeat", "reduce") or _is_layer(call)

    def _bound(self, target: ast.expr, statement: ast.AST) -> bool:
        if isinstance(target, ast.Subscript):
            return False
        if isinstance(target, (ast.Tuple, ast.List)):
            return any(self._bound(item, statement) for item in target.elts)
        if not isinstance(target, ast.Name):
            return True
        return not _LOSS.search(target.id) and any(map(self.escapes, self._loads(target.id, statement)))

    def _loads(self, name: str, statement: ast.AST) -> Iterator[ast.Name]:
        """The reads of a name behind a statement, up to the one in the same block that binds it again."""
        first, last = getattr(statement, "end_lineno", 0), float("inf")
        block = block_of(statement, self.parents.get(statement))
        behind = block[block.index(statement) + 1 :] if block else []
        last = next((node.end_lineno or last for node in behind if _binds(node, name)), last)
        for part in nodes([self.scope]):
            if (
                isinstance(part, ast.Name)
                and part.id == name
                and isinstance(part.ctx, ast.Load)
                and first < part.lineno <= last
            ):
                yield part


def _is_layer(call: ast.Call) -> bool:
    """`nn.Buffer(x)`, `nn.Parameter(x)`: kept."""
    return last_name(call)[:1].isupper()


def _is_told(call: ast.Call) -> bool:
    """Is a call told a dtype: `dtype=x.dtype`, `.to(x)`, `.to(x.dtype)`?"""
    told = [*call.args, *(keyword.value for keyword in call.keywords)]
    if any(keyword.arg == "dtype" for keyword in call.keywords):
        return True
    paths = [path_of(argument) or "" for argument in told]
    if last_name(call) != "to":
        return any(path.endswith(".dtype") for path in paths)
    return any(
        "device" not in path and not isinstance(argument, ast.Constant)
        for path, argument in zip(paths, told, strict=True)
    )


def _has_dim(call: ast.Call, position: int) -> bool:
    return len(call.args) > position or any(keyword.arg in ("dim", "axis") for keyword in call.keywords)


def _binds(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == name for target in statement.targets
    )
