"""Does half reach a place, and does its author not see to that already?"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING, LOW_PRECISION
from dtlint.infer.events import Flow
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach, reach
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor
from dtlint.infer.walk import nodes
from dtlint_rules._asserted import asserted, refused
from dtlint_rules._functions import parameters
from dtlint_rules._imports import imports, imports_torch, is_a_test
from dtlint_rules._lifted import is_lifted
from dtlint_rules._names import last_name, names_in

if TYPE_CHECKING:
    from dtlint.infer.reach import Reached
    from dtlint.infer.values import Value

__all__ = ["half_at", "is_assumed", "is_half", "is_of_any_float", "place_in"]

_ASKING = frozenset(
    {"float16", "bfloat16", "half", "fp16", "bf16", "is_half", "use_fp16", "use_half", "is_autocast_enabled"}
)
"""Who tests for these has a branch for half, and one for the rest."""
_WIDE_ALONE = frozenset({"linear_operator", "gpytorch", "pykeops", "torchdiffeq", "scipy"})
"""Packages of factorizations, kernels and solvers that have no half: what is built on them computes in float32 or
float64."""


_PREPARING = re.compile(
    r"(?:(?:Image|Video|Audio|Speech)Process(?:or|ing)|FeatureExtractor|Tokenizer)\w{0,4}$"
    r"|Data(?:s|S)et$|DataModule$|Collat(?:e|or)(?:Fn)?$"
)
"""Classes that make tensors of pictures, sound and text, in float32: the model casts them."""


def half_at(
    flow: Flow,
    *values: Value,
    at_least: Reach = Reach.LIBRARY,
    dtype: str | None = "float16",
    of: ast.expr | None = None,
) -> Reached | None:
    """How that half dtype, or any where it is None, reaches the running code and these values; None where it does not,
    where a test for half has been made and this is the other branch, in tests, which know the dtypes they give, in code that
    prepares data, where the function refuses that dtype, and where `of`, the expression of the values, has been promoted
    with float32."""
    if not imports_torch(flow.tree) or any(not _ASKING.isdisjoint(names_in(held.test)) for held in flow.conditions):
        return None
    region = flow.contexts[-1] if flow.contexts else None
    if region is not None and region.enabled is False and not values:
        return None
    if is_a_test(flow.tree):
        return None
    found = reach(flow, *(value for value in values if not _is_any_floating(value)))
    if found.level < Reach.PROVED and (_prepares(flow) or _takes_arrays(flow)):
        return None
    if found.level is Reach.LIBRARY and not _WIDE_ALONE.isdisjoint(imports(flow.tree)):
        return None
    if found.level < at_least or (dtype is not None and dtype not in found.dtypes):
        return None
    if found.level < Reach.PROVED and found.dtypes & ({dtype} if dtype is not None else LOW_PRECISION) <= refused(
        flow.scope
    ):
        return None
    return None if of is not None and found.level < Reach.PROVED and is_lifted(of, flow) else found


def is_assumed(found: Reached) -> bool:
    """Is half assumed there: does nothing in view give it to the values?"""
    return found.level < Reach.PROVED


def is_of_any_float(flow: Flow) -> bool:
    """Does the code compute in the floating dtype that its caller brings, float64 among them, even where half is none?"""
    if not imports_torch(flow.tree) or is_a_test(flow.tree) or _prepares(flow) or _takes_arrays(flow):
        return False
    if _is_of_one_float(flow.scope):
        return False
    return reach(flow).level >= Reach.LIBRARY


def _is_of_one_float(scope: ast.AST) -> bool:
    """Does a function ask for a dtype, `assert x.dtype == torch.float32`, or take a `torch.FloatTensor`?"""
    if any(
        isinstance(part, ast.Attribute) and part.attr == "dtype" for test in asserted(scope) for part in nodes([test])
    ):
        return True
    return any(
        "FloatTensor" in ast.unparse(each.annotation) for each in parameters(scope) if each.annotation is not None
    )


def _prepares(flow: Flow) -> bool:
    """Is it a method of a class that prepares data, or inherits from one that does?"""
    owner = flow.function.owner if flow.function is not None else None
    return owner is not None and any(
        _PREPARING.search(name) is not None for name in (owner.node.name, *map(last_name, owner.node.bases))
    )


def _takes_arrays(flow: Flow) -> bool:
    """Is it where a tensor has been told from an array, `if isinstance(y, torch.Tensor)`, in a function that does the same
    for arrays? These are data."""
    asked = (held.test for held in flow.conditions if isinstance(held.test, ast.Call))
    return any(
        last_name(test) == "isinstance" and len(test.args) == 2 and last_name(test.args[1]) == "Tensor"
        for test in asked
    ) and any((path_of(call.func) or "").startswith(("np.", "numpy.")) for call in facts(flow.scope).calls)


def place_in(flow: Flow) -> Flow:
    """The place where the program is, to be asked about later: the flow itself moves on."""
    contexts, conditions = [*flow.contexts], [*flow.conditions]
    return Flow(flow.state, flow.function, contexts, conditions, flow.loops, flow.block, flow.statement, flow.tree)


def is_half(value: Value) -> bool:
    """Is the value a tensor that is half on some path, for a reason that the source shows?"""
    dtypes = value.dtypes if isinstance(value, Tensor) else None
    return dtypes is not None and bool(dtypes & LOW_PRECISION) and not dtypes >= FLOATING


def _is_any_floating(value: Value) -> bool:
    """Is it only known to be floating, as the weights of a module are?"""
    return isinstance(value, Tensor) and value.dtypes is not None and value.dtypes >= FLOATING
