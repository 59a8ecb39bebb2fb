"""DT409: a softmax computed in half."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._half import half_at, is_assumed
from dtlint_rules._halfcasts import half_named
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH
from dtlint_rules._parts import receiver
from dtlint_rules._squares import is_widened
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._texts import short

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.events import Call

__all__ = ["SoftmaxInHalf"]


class SoftmaxInHalf(Rule):
    """A softmax without `dtype=torch.float32` where half can reach.

    ## What it does
    Reports `softmax` and `log_softmax` without a `dtype`, of what has not been cast to float32, in a file that asks for
    half: that casts to it, opens autocast or takes a dtype; and any function or layer of such a name that is given
    `x.half()` or its like right there. The rule is off unless it is selected. Most attention is
    written so; autocast on CUDA computes a softmax in float32 anyway, and for a row of some hundred scores float16 does
    well. Select it for a model that runs in float16 or bfloat16 itself, or under autocast on a CPU, which leaves a
    softmax in bfloat16.

    Conditional, and so reported with `--preview` only: tensors that are not known to be half.

    ## Why it matters
    Of a row of a thousand equal scores, each probability is 1/1000, which bfloat16 holds to 8 bits, and float16 not at
    all once the row is long enough: below 6e-8 it is 0. Long rows add up to less or more than 1.

    ## Example
    ```python
    import torch

    scores = torch.randn(4, 8, dtype=torch.bfloat16)
    weights = torch.softmax(scores, dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    scores = torch.randn(4, 8, dtype=torch.bfloat16)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32)
    ```

    ## Fix safety
    The fix adds `dtype=torch.float32`. It is unsafe: the weights are float32 then, and have to be cast back before they
    meet half again.

    ## References
    - [torch.nn.functional.softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.softmax.html)
    """

    code, name = "DT409", "softmax-in-half"
    fix = Applicability.UNSAFE
    default = False
    calls = frozenset({"softmax", "log_softmax"})
    triggers = tuple(sorted(calls))
    needs = (TORCH,)

    def on_call(self, call: Call) -> Iterator[Finding]:
        name = last_name(call.node)
        if name not in ("softmax", "log_softmax") or "dtype" in call.keywords or not call.complete:
            return
        if not call.target.startswith("torch."):
            yield from _given_in_half(call, name)
            return
        subject, value = operand(call) or ABSENT
        if subject is None or value is None or not call.target or is_widened(subject, call.flow):
            return
        flow = call.flow
        found = half_at(flow, value, at_least=Reach.ASKED, of=subject) or half_at(
            flow, value, at_least=Reach.ASKED, dtype="bfloat16", of=subject
        )
        if found is None:
            return
        yield Finding(
            call.node,
            f"In half `{name}` of `{short(subject)}` rounds small probabilities to 0",
            help="Pass `dtype=torch.float32`, and cast the result back",
            notes=((found.node, found.why),) if found.node is not None else (),
            conditional=is_assumed(found),
            fix=partial(pass_dtype, name="torch.float32", message="Compute the softmax in float32"),
        )


def _given_in_half(call: Call, name: str) -> Iterator[Finding]:
    """`self.softmax(scores.bfloat16(), dim=-1)`: a softmax of which no more is known, of what is cast to half right there."""
    method = receiver(call.node)
    subject = method if method is not None and half_named(method) else next(iter(call.node.args), None)
    dtype = half_named(subject) if subject is not None else None
    if subject is None or dtype is None or any(part is not subject and _is_wide(part) for part in call.node.args):
        return
    yield Finding(
        call.node,
        f"`{name}` runs in {dtype}, which rounds small probabilities",
        help="Compute it in float32, and cast the result",
    )


def _is_wide(node: ast.expr) -> bool:
    return path_of(node) in ("torch.float32", "torch.float64", "torch.float", "torch.double")
