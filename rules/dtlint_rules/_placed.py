"""Legacy constructors that are told a device: `torch.LongTensor(lengths, device=device)`. Each type has one device of its
own, and raises for every other."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import INTEGRAL
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Tensor
from dtlint.rule import Finding
from dtlint_rules._assignments import bound_once
from dtlint_rules._functions import parameters
from dtlint_rules._names import last_name, names, names_in
from dtlint_rules._parts import keyword, subject_of
from dtlint_rules._tried import is_tried
from dtlint_rules._within import within

if TYPE_CHECKING:
    from dtlint.infer.events import Call, Flow
    from dtlint.infer.values import Value
    from dtlint.source.place import Place
    from dtlint_rules._legacy import TensorType

__all__ = ["told_device"]

_DEFAULT = frozenset({"set_default_tensor_type", "set_default_device"})
"""What makes another type of `torch.Tensor`."""


def told_device(call: Call, kind: TensorType | None) -> Finding | None:
    """The constructor of a legacy type, `torch.Tensor` where there is no kind, that is told a device it may not have."""
    given, value = keyword(call.node, "device"), call.keywords.get("device")
    if given is None or value is None or (isinstance(value, Constant) and value.value is None):
        return None
    own = "cuda" if kind is not None and kind.device == "CUDA" else "cpu"
    device = _device_of(given, value, call.flow)
    if device == own or (device is None and (own == "cuda" or _is_asked_for(given, call))) or is_tried(call):
        return None
    if kind is None and not _DEFAULT.isdisjoint(names(call.flow.tree)):
        return None
    dtype = kind.dtype if kind is not None else "float32"
    where = f"for `{device}`" if device is not None else f"if `{ast.unparse(given)}` is another device"
    return Finding(
        call.node,
        f"`{call.target}` works on {'CUDA' if own == 'cuda' else 'the CPU'} only: this raises {where}",
        help=f"Use `torch.tensor(..., dtype=torch.{dtype}, device=...)`, or `torch.empty` of sizes",
        severity=Severity.ERROR if device is not None else None,
        fix=partial(_fix, call.node, dtype) if _is_data(call, dtype) else None,
    )


def _device_of(given: ast.expr, value: Value, flow: Flow) -> str | None:
    """The type of the device, where it is written out: "cpu", "cuda"; None where the program decides."""
    if isinstance(value, Constant):
        if isinstance(value.value, str):
            return value.value.partition(":")[0]
        return "cuda" if type(value.value) is int else None
    made = given
    if isinstance(given, ast.Name) and all(parameter.arg != given.id for parameter in parameters(flow.scope)):
        made = bound_once(given.id, flow.scope) or bound_once(given.id, flow.tree) or given
    if isinstance(made, ast.Call) and path_of(made.func) in ("torch.device", "device") and made.args:
        first = made.args[0]
        return str(first.value).partition(":")[0] if isinstance(first, ast.Constant) else None
    return None


def _is_asked_for(given: ast.expr, call: Call) -> bool:
    """Does a test choose this line by the device?"""
    subject = last_name(subject_of(given))
    asking = {subject, "is_available", "is_cuda"}
    if any(not asking.isdisjoint(names_in(held.test)) and not _is_of_none(held.test) for held in call.flow.conditions):
        return True
    return any(
        isinstance(parent, ast.IfExp) and not asking.isdisjoint(names_in(parent.test)) and not _is_of_none(parent.test)
        for parent in within(call.node, call.flow)
    )


def _is_of_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(part, ast.Constant) and part.value is None for part in test.comparators
    )


def _is_data(call: Call, dtype: str) -> bool:
    """Is one argument given that holds the numbers, and not the sizes?"""
    if len(call.node.args) != 1 or len(call.args) != 1 or isinstance(call.args[0], Tensor):
        return False
    node = call.node.args[0]
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp)):
        return True
    return dtype in INTEGRAL and isinstance(node, (ast.Name, ast.Attribute))


def _fix(node: ast.Call, dtype: str, place: Place) -> Fix | None:
    function, imports = place.spelled("torch.tensor")
    spelling, more = place.spelled(f"torch.{dtype}")
    edits = (
        place.replace(node.func, function),
        place.append_argument(f"dtype={spelling}"),
        *imports,
        *(edit for edit in more if edit not in imports),
    )
    return Fix(f"Use `{function}`", edits, Applicability.UNSAFE)
