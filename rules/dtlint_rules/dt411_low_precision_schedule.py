"""DT411: a noise schedule, or the phase of a Fourier feature, computed in half."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, ClassVar

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._half import half_at, is_assumed
from dtlint_rules._halfnames import CASTS, HalfNames
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH
from dtlint_rules._parts import receiver, root_of
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation

__all__ = ["LowPrecisionSchedule"]

_SCHEDULE = re.compile(r"(?:^|_)(?:alphas?_?(?:cumprod|bar)\w*|alphas_prod\w*|alpha_prod\w*)(?:_|$)")
"""What falls from just below 1 to 0: the part of the signal that is left at each step."""


class LowPrecisionSchedule(Rule):
    """Noise is added to samples, or the phases of Fourier features are computed, in half.

    ## What it does
    Reports `scheduler.add_noise(x, noise, t)` where `x` or `noise` was cast to half, or computed from what was; `1 -
    alphas_cumprod` where the table has been cast to the dtype of the data before; and the sine or cosine of a product
    with powers of two that are made in the dtype of the data.

    Conditional, and so reported with `--preview` only: all but noise that is added to what is cast to half in view.

    ## Why it matters
    The first steps of a schedule lie just below 1, where bfloat16 has only 0.996 and 1: `alphas_cumprod[0]` of 0.99915
    is 1 there, and `1 - alphas_cumprod[0]` is 0, so that no noise is added at all. float16 keeps three digits of it. A
    phase of `2**k * pi * x` reaches hundreds, where neighbouring numbers of bfloat16 lie 2 apart, and its sine is
    noise. Both are computed in float32 and cast at the end, for next to nothing.

    ## Example
    ```python
    import torch

    def noised(x: torch.Tensor, noise: torch.Tensor, alphas_cumprod: torch.Tensor, t: int) -> torch.Tensor:
        alphas_cumprod = alphas_cumprod.to(x.dtype)
        return alphas_cumprod[t] ** 0.5 * x + (1 - alphas_cumprod[t]) ** 0.5 * noise
    ```

    ## Use instead
    ```python
    import torch

    def noised(x: torch.Tensor, noise: torch.Tensor, alphas_cumprod: torch.Tensor, t: int) -> torch.Tensor:
        signal, rest = alphas_cumprod[t] ** 0.5, (1 - alphas_cumprod[t]) ** 0.5
        return signal.to(x.dtype) * x + rest.to(x.dtype) * noise
    ```

    ## References
    - [Denoising Diffusion Probabilistic Models](https://arxiv.org/abs/2006.11239)
    - [Fourier Features Let Networks Learn High Frequency Functions](https://arxiv.org/abs/2006.10739)
    """

    code, name = "DT411", "low-precision-schedule"
    triggers = ("add_noise", "*alpha*", ".sin", ".cos", "self.sin", "self.cos")
    needs = (TORCH, ("add_noise", "*cumprod*", "*bar*", "*prod*", "2**", "2.0**", "2.**", ".pow", ".exp2"))
    calls = frozenset({"add_noise", "sin", "cos", *CASTS})
    operators = frozenset({ast.Sub})
    hears_where: ClassVar = {"on_assign": ("add_noise",), "on_operation": ("*alpha*",)}

    def __init__(self) -> None:
        self.half = HalfNames()
        self.waved: set[ast.AST] = set()
        """Functions in which a phase has been reported."""

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        self.half.bind(assign)
        return ()

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.method == "add_noise":
            return self._noised(call)
        if last_name(call.node) in ("sin", "cos"):
            return self._waved(call)
        self.half.hear(call)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(operation.operator, ast.Sub) or not isinstance(node, ast.BinOp):
            return ()
        return self._left_over(operation, node)

    def _left_over(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        flow = operation.flow
        one = operation.left.value if isinstance(operation.left, Constant) else None
        table = root_of(node.right)
        path = path_of(table)
        if one != 1 or path is None or not _SCHEDULE.search(path.rpartition(".")[2]):
            return
        cast = source_of(table, flow)
        chosen = None if cast is None else _cast_dtype(cast)
        if cast is None or chosen is None:
            return
        surely_wide = (
            isinstance(operation.right, Tensor) and not (operation.right.dtypes or LOW_PRECISION) & LOW_PRECISION
        )
        if surely_wide or half_at(flow, dtype=None) is None:
            return
        yield Finding(
            node,
            f"`1 - {short(node.right)}` is computed in {chosen}: in bfloat16 0.999 is 1, and no noise is left",
            help="Compute with the schedule in float32, and cast the factors at the end",
            notes=((cast, "the schedule is cast here"),),
            conditional=True,
        )

    def _noised(self, call: Call) -> Iterator[Finding]:
        given = [node for node in call.node.args[:2] if not isinstance(node, ast.Starred)]
        if len(given) < 2 or call.flow.autocast is not None:
            return
        values = call.args[:2]
        origins = [self.half.origin(node, value, call.flow) for node, value in zip(given, values, strict=True)]
        origin = next((found for found in origins if found is not None), None)
        if origin is None or half_at(call.flow) is None:
            return
        which = ", ".join(
            f"`{ast.unparse(node)}`" for node, found in zip(given, origins, strict=True) if found is not None
        )
        yield Finding(
            call.node,
            f"Noise is added to {which} in half: in bfloat16 the schedule's 0.999 is 1, which adds none",
            help="Add the noise in float32: `add_noise(x.float(), noise.float(), t).to(x.dtype)`",
            notes=((origin, "half since here"),),
        )

    def _waved(self, call: Call) -> Iterator[Finding]:
        flow = call.flow
        phase = call.node.args[0] if call.node.args else receiver(call.node)
        if phase is None or flow.scope in self.waved:
            return
        powers = _powers_of_two(phase, flow)
        if powers is None:
            return
        half = half_at(flow, call.result, dtype=None)
        if half is None:
            return
        self.waved.add(flow.scope)
        yield Finding(
            call.node,
            "The phase is computed in the dtype of the data: in bfloat16 it is noise from 128 on",
            help="Compute the features in float32, and cast them at the end",
            notes=((powers, "the frequencies are powers of two, in the dtype of the data"),),
            conditional=is_assumed(half),
        )


_MOST_STEPS = 6


def _powers_of_two(node: ast.expr, flow: Flow, steps: int = _MOST_STEPS) -> ast.expr | None:
    """Where a product's factor is made as powers of two of exponents in the dtype of something else."""
    if steps == 0:
        return None
    if isinstance(node, ast.Name):
        for _, source in reversed(assignments(flow.scope).get(node.id, [])):
            found = None if source is None else _powers_of_two(source, flow, steps - 1)
            if found is not None:
                return found
        return None
    exponent = _exponent(node)
    if exponent is not None:
        made = source_of(exponent, flow) or exponent
        return node if isinstance(made, ast.Call) and _follows_dtype(made) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return _powers_of_two(node.left, flow, steps) or _powers_of_two(node.right, flow, steps)
    if isinstance(node, (ast.Subscript, ast.Call)):
        root = root_of(node)
        return None if root is node else _powers_of_two(root, flow, steps)
    return None


def _exponent(node: ast.expr) -> ast.expr | None:
    """`e` of `2 ** e` and `torch.pow(2.0, e)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return node.right if isinstance(node.left, ast.Constant) and node.left.value == 2 else None
    if isinstance(node, ast.Call) and path_of(node.func) in ("torch.pow", "th.pow") and len(node.args) == 2:
        base = node.args[0]
        return node.args[1] if isinstance(base, ast.Constant) and base.value == 2 else None
    if isinstance(node, ast.Call) and path_of(node.func) == "torch.exp2" and node.args:
        return node.args[0]
    return None


def _follows_dtype(made: ast.Call) -> bool:
    """Are the exponents made in the dtype of another tensor, or cast to it?"""
    for call in (made, receiver(made)):
        if isinstance(call, ast.Call):
            given = [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
            if last_name(call) in ("to", "type_as"):
                given += call.args
            if any(isinstance(part, ast.Attribute) and part.attr == "dtype" for part in given) or (
                last_name(call) in ("type_as", "to")
                and any(isinstance(part, ast.Name) and part.id in ("x", "inputs") for part in given)
            ):
                return True
    return False


def _cast_dtype(cast: ast.expr) -> str | None:
    """In words, the dtype of the data that a table is cast to; None where it is no dtype of data, or float32."""
    if not isinstance(cast, ast.Call) or last_name(cast) not in ("to", "type_as", "half", "bfloat16"):
        return None
    if last_name(cast) in ("half", "bfloat16"):
        return f"{last_name(cast)}"
    for given in (*cast.args, *(keyword.value for keyword in cast.keywords if keyword.arg == "dtype")):
        path = path_of(given)
        if path is not None and (path.endswith(".dtype") or path in ("dtype", "weight_dtype")):
            return f"`{path}`"
        if path is not None and last_name(cast) == "type_as":
            return f"the dtype of `{path}`"
        if path in ("torch.float16", "torch.half", "torch.bfloat16"):
            return f"`{path}`"
    return None
