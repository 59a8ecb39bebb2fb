"""What its origins tell of an operand: that it is float32 for certain, of whatever dtype the caller gives, or cast
to the dtype of a tensor.

Where inference knows the value, it has the last word.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.survey import facts
from dtlint.infer.values import Array, Constant, Module, Number, Tensor
from dtlint_rules._effects import FLOAT32, WIDE
from dtlint_rules._kept import kept
from dtlint_rules._meanings import counts, names_dtype
from dtlint_rules._names import last_name, names_in
from dtlint_rules._origin import NOTHING, Kind
from dtlint_rules._parts import given, receiver

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.values import Value
    from dtlint_rules._origin import Origin, Roots

__all__ = ["cast_to", "cast_to_float32", "is_foreign", "is_open", "is_uncast", "is_wide", "may_be_cast", "meets"]

_NUMBERS = re.compile(
    r"^(?:np|math|cfg|config)\.|^self\.|(?:^|[._])(?:alphas?|betas?|gammas?|lambdas?|eps|scale|factor|coeff?|num|n|min"
    r"|max|thr\w*|prob|rate|decay|weights?|temperature|sigmas?|margin|losse?s?|ratios?)(?:_|\d*$)",
    re.IGNORECASE,
)
"""Names of what is a number more often than not, or a weight in a sum."""
_VARIANCE = re.compile(r"(?:^|_)(?:variances?|log_?vars?|std)$")


def may_be_cast(scope: ast.AST, *values: Value) -> bool:
    """Can one of these values of a function be cast to float32 for certain? Ask it before origins are read."""
    return any(cast_to_float32(value, NOTHING) is not None for value in values) or _speaks_of_float32(scope)


def cast_to_float32(value: Value, roots: Roots) -> ast.expr | None:
    """The cast or the factory by which an operand is float32 for certain, as it is written; None where it is not."""
    if isinstance(value, Tensor) and value.dtypes is not None:
        if value.dtypes != {"float32"} or value.zero_dim is True:
            return None
        if value.cast is not None:
            return value.cast.node
    if roots and all(origin.kind == Kind.CAST and origin.text in FLOAT32 for origin in roots):
        return next(iter(roots)).node
    return None


@kept
def _speaks_of_float32(scope: ast.AST) -> bool:
    """Does a function write a cast to float32 out, and not cast back at once, as `softmax(x, dtype=torch.float32).to(x.dtype)`
    does? Where it does not, none of its origins is one."""
    spoken = facts(scope).floats
    if not spoken:
        return False
    undone = {
        part for call in facts(scope).calls if (inner := _cast_back(call)) is not None for part in _said_in(inner)
    }
    return not undone.issuperset(spoken)


_SPOKEN = frozenset({"float", "float32"})


def _cast_back(node: ast.Call) -> ast.Call | None:
    """The call whose result is cast at once to a dtype that is not float32."""
    inner = receiver(node)
    if not isinstance(inner, ast.Call):
        return None
    name = last_name(node)
    told = [keyword.value for keyword in node.keywords if keyword.arg == "dtype"]
    told += [part for part in node.args if names_dtype(part)] if name in ("to", "type") else []
    narrows = name in ("half", "bfloat16") or (name == "type_as" and bool(node.args))
    casts = narrows or (name == "to" and bool(told))
    return inner if casts and not any(last_name(part) in _SPOKEN for part in told) else None


def _said_in(node: ast.Call) -> Iterator[ast.expr]:
    """The places in a call that may say that its result is float32."""
    yield node.func
    yield from given(node)


def is_wide(roots: Roots) -> bool:
    """Is an expression float32 or float64 by a cast that is written out, on every path?"""
    return bool(roots) and all(origin.kind == Kind.CAST and origin.text in WIDE for origin in roots)


def is_open(value: Value, roots: Roots) -> bool:
    """Has an operand the dtype of what the function is given, or of weights, with no cast to a dtype that is written out?"""
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return False
    if not roots or not all(origin.kind == Kind.GIVEN and not counts(origin) for origin in roots):
        return False
    return not isinstance(value, (Number, Constant, Array, Module))


def is_uncast(node: ast.expr, roots: Roots) -> bool:
    """Has a tensor the dtype of what is given, by all that it was computed from? Variances have not:
    `model_log_variance` comes of a table in float32, of which a model's outputs are part at most."""
    if not roots or any(_VARIANCE.search(name) is not None for name in names_in(node)):
        return False
    return all(map(_is_of_given, roots))


def _is_of_given(origin: Origin) -> bool:
    if origin.kind == Kind.GIVEN:
        return not counts(origin) and _NUMBERS.search(origin.text) is None
    if origin.kind == Kind.CAST:
        return not origin.text.startswith("torch.") and origin.text.endswith("dtype")
    return (
        origin.kind == Kind.CALLED
        and any(map(_is_of_given, origin.of))
        and not any(
            part.kind == Kind.MADE or (part.kind == Kind.CAST and not _is_of_given(part)) for part in origin.closure()
        )
    )


def cast_to(roots: Roots) -> str | None:
    """The tensor to whose dtype a value is cast, on each path."""
    text = next(iter(roots)).text if roots else ""
    if not text.endswith(".dtype") or not all(origin.kind == Kind.CAST and origin.text == text for origin in roots):
        return None
    base = text.removesuffix(".dtype")
    return base if base.replace(".", "").isidentifier() and base != "torch" else None


def is_foreign(roots: Roots, tensor: str) -> bool:
    """Does a value come from elsewhere, without a cast: not from that tensor either?"""
    if not roots or any(origin.kind == Kind.CAST or counts(origin) for origin in roots):
        return False
    return not any(_is_of(origin, tensor) or _is_owned(origin, tensor) for root in roots for origin in root.closure())


def meets(roots: Roots, tensor: str) -> bool:
    """Is an operand that tensor, or an attribute of it, on one path?"""
    return any(_is_of(root, tensor) for root in roots)


def _is_of(origin: Origin, tensor: str) -> bool:
    return origin.kind == Kind.GIVEN and (origin.text == tensor or origin.text.startswith(f"{tensor}."))


def _is_owned(origin: Origin, tensor: str) -> bool:
    """Does a part of the model that the tensor belongs to compute it: `attn.to_k(x)`, for `attn.to_q.weight`?"""
    owner = _owner(origin.text)
    return origin.kind == Kind.CALLED and owner == _owner(tensor) and owner not in ("torch", origin.text)


def _owner(path: str) -> str:
    parts = path.split(".")
    return ".".join(parts[:2] if parts[0] == "self" else parts[:1])
