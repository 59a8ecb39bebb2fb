"""The fix that computes in float32 what has no half kernel, and loses nothing of float64 and complex tensors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Span
from dtlint.infer.names import path_of
from dtlint.infer.values import Tensor
from dtlint_rules._fixes import operand_text
from dtlint_rules._names import last_name
from dtlint_rules._within import within

if TYPE_CHECKING:
    from dtlint.infer.events import Call
    from dtlint.source.place import Place
    from dtlint_rules._subjects import Operand

__all__ = ["can_widen", "widened"]

_NARROW = frozenset({"float16", "bfloat16", "float32"})
_FOR_NUMBERS = frozenset({"item", "tolist", "numpy", "backward"})
_CASTS = frozenset({"to", "type", "type_as", "float", "double", "half", "bfloat16"})


def can_widen(subject: Operand) -> bool:
    """Is the operand known to lose nothing in float32, or can its dtype be asked for by its name?"""
    return _is_narrow(subject) or path_of(subject.node) is not None


def widened(call: Call, subject: Operand, back: bool, place: Place) -> Fix:
    """The fix that casts the operand to float32, or to what holds it, if that is wider; where `back`, the result is cast
    to the operand's dtype, unless it is cast or read as a number at once."""
    node, path = subject.node, path_of(subject.node)
    imports: tuple[Edit, ...] = ()
    if _is_narrow(subject):
        cast = "float()"
    else:
        promote, first = place.spelled("torch.promote_types")
        float32, second = place.spelled("torch.float32")
        imports = tuple(dict.fromkeys((*first, *second)))
        cast = f"to({promote}({path}.dtype, {float32}))"
    edits = [place.replace(node, f"{operand_text(place, node)}.{cast}")]
    if back and path is not None and not _is_taken_on(call):
        end = place.source.span(call.node)
        edits.append(Edit(Span(end.end_line, end.end_column, end.end_line, end.end_column), f".to({path}.dtype)"))
    return Fix("Compute it in float32", (*edits, *imports), Applicability.UNSAFE)


def _is_narrow(subject: Operand) -> bool:
    """Is the operand floating, and not float64?"""
    dtypes = subject.value.dtypes if isinstance(subject.value, Tensor) else None
    return dtypes is not None and dtypes <= _NARROW


def _is_taken_on(call: Call) -> bool:
    """Is the result cast, or read as a number, where it stands?"""
    around = [part for part in within(call.node, call.flow) if not isinstance(part, ast.Attribute)]
    return bool(around) and isinstance(around[0], ast.Call) and last_name(around[0]) in _CASTS | _FOR_NUMBERS
