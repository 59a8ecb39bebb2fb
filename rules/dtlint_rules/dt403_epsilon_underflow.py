"""DT403: a small number that guards against zero, and is zero in float16."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES
from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Constant, Items, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._guards import is_guarded
from dtlint_rules._half import half_at
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import TORCH
from dtlint_rules._numbers import HALF, number_at, spelled
from dtlint_rules._squares import is_widened
from dtlint_rules._subjects import ABSENT, is_function, operand
from dtlint_rules._tensors import is_tensor, is_used_as_tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.infer.values import Value
    from dtlint_rules._numbers import Number

__all__ = ["EpsilonUnderflow"]

FLOAT = DTYPES["float32"]
_TINY = tuple(f"1e-{exponent}" for exponent in range(8, 324))
"""How numbers that are 0 in float16 are written."""
_ROUNDS_TO_ZERO = HALF.smallest / 2
"""Half of the smallest subnormal number is a tie, and goes to the even one: 0. Seen on torch 2.13."""
_NO_GUARD_ABOVE = 1 - 2.0**-25
"""1 minus less than this is 1 in float32."""

_CLAMPS = {
    **dict.fromkeys(("clamp", "clamp_", "clip", "clip_"), (0, "min")),
    **dict.fromkeys(("clamp_min", "clamp_min_"), (0, "min")),
}
_NOT_IN_HALF = re.compile(r"^(?:stft|istft|\w*fft\w*|mel\w*|spectrogram|cholesky\w*|eigh|svd)$")
"""What has no half kernel, like signal processing and factorizations."""


class EpsilonUnderflow(Rule):
    """An epsilon that is 0 in float16.

    ## What it does
    Reports numbers between 0 and 2.98e-8 that are added to a tensor, or that it is clamped to from below, where float16
    can reach; and `clamp(max=1 - 1e-8)`, which is a clamp to 1 in float32 already. The number is found as a
    default, a constant of the module or an attribute of the class, too. Optimizers and signal processing run in
    float32 and are left alone.

    ## Why it matters
    The smallest positive number of float16 is 5.96e-8, and whatever lies below half of it is 0. `x / (norm + 1e-8)` is
    NaN for a zero vector, `(p + 1e-12).log()` is -inf, and `clamp(min=1e-10)` clamps to 0, though all of it is right in
    float32 and bfloat16. CUDA's autocast computes sums, norms and logarithms in float32, so that it shows only in a
    model that is cast to float16 itself, or in what autocast leaves alone.

    ## Example
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + 1e-8)
    ```

    ## Use instead
    ```python
    import torch

    def normalize(x: torch.Tensor) -> torch.Tensor:
        return x / (x.norm(dim=-1, keepdim=True) + torch.finfo(x.dtype).eps)
    ```

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [What autocast computes in float32](https://docs.pytorch.org/docs/stable/amp.html#cuda-ops-that-autocast-to-float32)
    """

    code, name = "DT403", "epsilon-underflow"
    triggers = (*_TINY, "finfo", "float_info", "*0000000*")
    needs = (TORCH,)
    calls = frozenset({"add", "add_", *_CLAMPS})
    operators = frozenset({ast.Add})

    def __init__(self) -> None:
        self.written: set[ast.expr] = set()
        """Numbers that have been reported."""

    def on_operation(self, operation: Operation) -> Iterator[Finding]:
        node, left, right = operation.node, operation.left, operation.right
        if isinstance(node, ast.BinOp):
            pairs = [(node.right, right, node.left, left), (node.left, left, node.right, right)]
        elif isinstance(node, ast.AugAssign):
            pairs = [(node.value, right, node.target, left)]
        else:
            return
        for given, added, subject, value in pairs:
            if isinstance(value, Constant) or isinstance(added, (Tensor, Items)):
                continue
            number = _tiny(given, operation.flow)
            if number is not None and (
                is_tensor(subject, value, operation.flow) or is_used_as_tensor(node, operation.flow)
            ):
                yield from self._found(
                    node, number, operation.flow, subject, value, f"adding it leaves {_shown(subject)} as it is"
                )
                return

    def on_call(self, call: Call) -> Iterator[Finding]:
        name = last_name(call.node)
        function = is_function(call)
        if name in ("add", "add_") and not function:
            yield from self._guarded(call, call.argument_node(0, "other"), function, "adding it changes nothing")
        elif name in _CLAMPS and (function or call.method):
            position, keyword = _CLAMPS[name]
            least = call.argument_node(position + function, keyword)
            yield from self._guarded(call, least, function, "clamping to it clamps to 0")
            yield from self._bounded(call, function)

    def _guarded(self, call: Call, given: ast.expr | None, function: bool, happens: str) -> Iterator[Finding]:
        number = _tiny(given, call.flow)
        subject, value = operand(call) or ABSENT
        if number is None or subject is None or _is_array(subject):
            return
        if not function and "clamp" not in call.method and not is_tensor(subject, value, call.flow):
            return
        yield from self._found(call.node, number, call.flow, subject, value, happens)

    def _bounded(self, call: Call, function: bool) -> Iterator[Finding]:
        """`p.clamp(1e-8, 1 - 1e-8)`: the upper bound is 1, in float32 as well."""
        given = call.argument_node(1 + function, "max")
        number = number_at(given, call.flow)
        if number is None and isinstance(given, ast.BinOp) and isinstance(given.op, ast.Sub):
            one, less = number_at(given.left, call.flow), number_at(given.right, call.flow)
            if one is None or less is None or one.value != 1 or not 0 < less.value < 2.0**-25:
                return
            text = f"1 - {spelled(less.value)}"
        elif number is not None and _NO_GUARD_ABOVE < number.value < 1:
            text = ast.unparse(given) if given is not None else ""
        else:
            return
        subject, value = operand(call) or ABSENT
        if subject is None or half_at(call.flow) is None or "float64" in (getattr(value, "dtypes", None) or ()):
            return
        yield Finding(
            call.node,
            f"{text} is 1 in float32, which has no number between 1 - 6e-08 and 1: the upper bound guards nothing",
            help="Use an upper bound of 1 - 1e-6 in float32, and of 1 - 1e-3 in float16",
        )

    def _found(
        self, node: ast.expr | ast.stmt, number: Number, flow: Flow, subject: ast.expr, value: Value, happens: str
    ) -> Iterator[Finding]:
        if number.written in self.written or not is_guarded(node, flow) or _runs_in_float32(flow):
            return
        if number.value >= FLOAT.tiny and (is_widened(subject, flow) or half_at(flow, value) is None):
            return
        if number.value < FLOAT.tiny and half_at(flow) is None:
            return
        self.written.add(number.written)
        yield Finding(
            node if number.literal else number.written,
            _message(number.value, happens),
            help="Use an epsilon of the dtype, `torch.finfo(x.dtype).eps`, or compute this in float32",
            notes=() if number.literal else ((node, "it guards against zero here"),),
        )


def _message(value: float, happens: str) -> str:
    if value < FLOAT.tiny:
        return (
            f"{spelled(value)} is 0 in float16, and in float32 below its smallest normal number, 1.18e-38, so that it "
            f"is 0 where subnormal numbers are flushed: {happens}"
        )
    return f"{spelled(value)} is 0 in float16, whose smallest number is 5.96e-08: {happens}"


def _tiny(node: ast.expr | None, flow: Flow) -> Number | None:
    number = number_at(node, flow)
    return number if number is not None and 0 < number.value <= _ROUNDS_TO_ZERO else None


def _is_array(subject: ast.expr) -> bool:
    return (path_of(subject) or "").partition(".")[0] in ("np", "numpy", "math")


def _shown(node: ast.expr) -> str:
    text = ast.unparse(node)
    return f"`{text}`" if len(text) <= 40 else "the tensor"


def _runs_in_float32(flow: Flow) -> bool:
    """Is it an optimizer, whose state is float32, a module that is being made, or what half has no kernels for?"""
    function = flow.function
    if function is None:
        return False
    if function.owner is not None and any("Optim" in last_name(base) for base in function.owner.node.bases):
        return True
    if function.name == "__init__" and not any("dtype" in name for name in names_in(function.node)):
        return True  # what a module makes of nothing is float32, until somebody casts the module
    return (
        any(
            _NOT_IN_HALF.match(word) is not None
            for part in nodes([function.node])
            if isinstance(part, (ast.Call, ast.Attribute, ast.arg))
            for word in ([part.arg] if isinstance(part, ast.arg) else [last_name(part)])
        )
        or _asks_for_smallest(function.node)
        or any(word in ("float64", "double") for word in names_in(function.node))
    )


def _asks_for_smallest(function: ast.AST) -> bool:
    """Does a function ask a dtype for its own smallest numbers? For its least and its greatest it asks to fill masks."""
    calls = facts(function).calls
    asked = {call for call in calls if last_name(call) == "finfo"}
    if not asked:
        return False
    filling = {
        part.value for part in nodes([function]) if isinstance(part, ast.Attribute) and part.attr in ("min", "max")
    }
    return not asked <= filling
