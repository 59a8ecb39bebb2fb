"""DT406: a sum that does not fit the half that it is computed in."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach
from dtlint.infer.survey import facts
from dtlint.infer.values import Tensor, options
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import source_of
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._functions import body_of
from dtlint_rules._half import half_at, is_assumed, is_half
from dtlint_rules._names import last_name, names, names_in, said
from dtlint_rules._needs import HALF, TORCH, attributes
from dtlint_rules._norm_uses import is_called_elsewhere
from dtlint_rules._operands import listed
from dtlint_rules._parts import given, receiver, same
from dtlint_rules._squares import is_widened, mean_of_squares, squared
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._texts import as_operand, short
from dtlint_rules._totals import sums_of_squares
from dtlint_rules._within import parents_in, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts

__all__ = ["ReductionInHalf"]

_SUMS = frozenset({"sum", "nansum", "prod", "cumsum", "cumprod"})
"""What grows with the number of elements. All of them take `dtype=`, which they compute and return."""
_NORMS = frozenset({"norm", "vector_norm"})
_SCALING = frozenset({"GradScaler", "autocast"})
"""By these a program shows that it keeps weights, and so gradients, in float32."""
_NMS = frozenset({"torchvision.ops.batched_nms", "torchvision.ops.boxes.batched_nms"})


_ENDS = {"float16": "float16 ends at 65504", "bfloat16": "beyond 256 bfloat16 does not count ones"}


_PRODUCTS = frozenset({"prod", "cumprod"})
_ENDS_OF_PRODUCTS = _ENDS | {"bfloat16": "bfloat16 keeps 8 bits of it"}


def _ends(dtypes: frozenset[str], name: str) -> str:
    """What becomes of a large sum, or product."""
    ends = _ENDS_OF_PRODUCTS if name in _PRODUCTS else _ENDS
    return ", and ".join(said for dtype, said in ends.items() if dtype in dtypes)


class ReductionInHalf(Rule):
    """A sum, a product or a variance that leaves the range of half.

    ## What it does
    Reports `sum`, `prod` and `cumsum` of a tensor that is float16 or bfloat16 on some path, without `dtype=`; the sum
    of squares of tensors that were picked for being half, `torch.sum(g ** 2) for g in fp16_grads`; a variance computed
    as the mean of squares less the square of the mean, of a tensor that may be half; the norm of the norms of
    gradients, `torch.stack([p.grad.norm() for p in params]).norm()`, at once or by the name of the list, where weights
    may be half; and `torchvision.ops.batched_nms` of boxes that may be half, which adds an offset for each class to
    their coordinates.

    Conditional, and so reported with `--preview` only: tensors that are not known to be half.

    ## Why it matters
    The kernels add in float32, but the result is half: a thousand values of 100 add up to inf in float16, and beyond
    256 a bfloat16 sum of ones does not count. Squares overflow before they are added: `x * x` is inf from 256 on.
    Offsets of classes and coordinates leave the 2048 whole numbers that float16 has exactly, so that boxes of different
    classes meet. Autocast on CUDA computes sums in float32; a mean, and a product `x * x`, it does not.

    ## Example
    ```python
    import torch

    x = torch.full((1000,), 100.0, dtype=torch.float16)
    total = x.sum()
    ```

    ## Use instead
    ```python
    import torch

    x = torch.full((1000,), 100.0, dtype=torch.float16)
    total = x.sum(dtype=torch.float32)
    ```

    ## Fix safety
    The fix adds `dtype=torch.float32` to a sum. It is unsafe, for the result is float32 then, and so is what is
    computed from it.

    ## References
    - [torch.sum](https://docs.pytorch.org/docs/stable/generated/torch.sum.html)
    """

    code, name = "DT406", "reduction-in-half"
    fix = Applicability.UNSAFE
    calls = frozenset({*_SUMS, *_NORMS, "mean", "batched_nms"})
    triggers = (*HALF, ".mean", ".batched_nms", ".stack")
    needs = (TORCH, attributes(calls))

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return sums_of_squares(facts)

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in _SUMS:
            return self._summed(call, name)
        if name == "mean":
            return self._squared(call)
        if name in _NORMS:
            return self._normed(call, name)
        if name == "batched_nms":
            return self._suppressed(call)
        return ()

    def _summed(self, call: Call, name: str) -> Iterator[Finding]:
        subject, value = operand(call) or ABSENT
        if value is None or "dtype" in call.keywords or not call.complete:
            return
        half = next((choice for choice in options(value) if is_half(choice)), None)
        if half is None:
            if name == "sum" and subject is not None and "norm" not in call.target:
                yield from self._squares(call, subject)
            return
        if call.flow.autocast is not None or half_at(call.flow, half, dtype=None) is None:
            return
        assert isinstance(half, Tensor) and half.dtypes is not None
        if half.zero_dim:
            return
        origin = half.origin
        dtypes = half.dtypes & LOW_PRECISION
        known = half.dtypes == dtypes
        gives = "the same" if known else "half"
        if not call.flow.region_known:
            gives += " outside autocast"
        yield Finding(
            call.node,
            f"`{name}` of a tensor that {'is' if known else 'may be'} {listed(dtypes)} gives {gives}: {_ends(dtypes, name)}",
            help="Pass `dtype=torch.float32`",
            notes=((origin, "half since here"),) if origin is not None and origin is not call.node else (),
            fix=partial(pass_dtype, name="torch.float32", message=f"Compute `{name}` in float32"),
        )

    def _squares(self, call: Call, subject: ast.expr) -> Iterator[Finding]:
        """`[torch.sum(g ** 2).sqrt() for g in fp16_grads]`: a norm by hand of what was picked for being half."""
        flow = call.flow
        base = squared(subject)
        listed = None if base is None else _listed(base, call.node, flow)
        if base is None or listed is None or is_widened(base, flow) or half_at(flow, at_least=Reach.ASKED) is None:
            return
        yield Finding(
            call.node,
            f"In float16 the squares of `{short(listed)}` overflow beyond 256",
            help=f"Square in float32: `{as_operand(base)}.float()`",
            conditional=True,
        )

    def _normed(self, call: Call, name: str) -> Iterator[Finding]:
        """A norm for each tensor of a list, of which a norm is taken."""
        flow = call.flow
        subject, value = operand(call) or ABSENT
        if subject is None or "dtype" in call.keywords or not call.complete or is_widened(subject, flow):
            return
        if not any("grad" in word for word in said(subject)) and not _goes_over_gradients(call.node, flow):
            return
        half = half_at(flow, value, of=subject)
        if (
            not (_is_of_norms(call.node, flow) or _is_of_one(subject, flow))
            or half is None
            or not _SCALING.isdisjoint(names(flow.tree))
        ):
            return
        yield Finding(
            call.node,
            f"In float16 `{name}` of gradients overflows beyond 65504, and clipping by it makes them 0",
            help="Pass `dtype=torch.float32`",
            conditional=is_assumed(half),
            fix=partial(pass_dtype, name="torch.float32", message=f"Compute `{name}` in float32"),
        )

    def _squared(self, call: Call) -> Iterator[Finding]:
        """`(x * x).mean()`, from which the square of `x.mean()` is subtracted."""
        flow = call.flow
        subject = mean_of_squares(call.node, flow)
        if subject is None or flow.statement is None or not _is_variance(call.node, flow) or is_called_elsewhere(flow):
            return
        function = call.target == "torch.mean"
        value = call.argument(0, "input") if function else call.receiver
        half = half_at(flow, *(() if value is None else (value,)), of=subject)
        if half is None or is_widened(subject, flow):
            return
        yield Finding(
            call.node,
            f"In float16 the mean of squares overflows once `{short(subject)}` reaches 256",
            help="Compute the statistics in float32: `x = x.float()`, or use `torch.var_mean`",
            conditional=is_assumed(half),
        )

    def _suppressed(self, call: Call) -> Iterator[Finding]:
        boxes = call.argument_node(0, "boxes")
        value = call.argument(0, "boxes")
        if call.target not in _NMS or boxes is None or value is None or is_widened(boxes, call.flow):
            return
        half = half_at(call.flow, value, of=boxes)
        if half is None:
            return
        yield Finding(
            call.node,
            "In float16 `batched_nms` rounds boxes: its class offsets go beyond 2048",
            help=f"Pass the boxes in float32: `{as_operand(boxes)}.float()`",
            conditional=is_assumed(half),
        )


_HALF_BY_NAME = re.compile(r"(?:^|_)(?:b?fp?16|16|16bit|half)(?:_|$)")


def _listed(item: ast.expr, node: ast.Call, flow: Flow) -> ast.expr | None:
    """The list over which a comprehension, or a loop, runs with this item, where it holds half: by its name, or because
    all that is appended to it is appended where a test for half was true."""
    loops: list[ast.comprehension | ast.For | ast.AsyncFor] = [loop.node for loop in flow.loops]
    for part in within(node, flow):
        if isinstance(part, (ast.ListComp, ast.GeneratorExp)):
            loops += part.generators
    for loop in loops:
        if isinstance(item, ast.Name) and same(loop.target, ast.Name(item.id, ast.Store())):
            name = last_name(loop.iter)
            if _HALF_BY_NAME.search(name.lower()) is not None or _is_picked(name, flow.scope):
                return loop.iter
    return None


def _is_picked(name: str, scope: ast.AST) -> bool:
    """Is a list only appended to under `if p.dtype == torch.float16`?"""
    appended = [
        call for call in facts(scope).calls if last_name(call) == "append" and last_name(receiver(call) or call) == name
    ]
    known = parents_in(scope)
    return bool(appended) and all(_is_under_half(call, known) for call in appended)


def _is_under_half(call: ast.Call, known: Mapping[ast.AST, ast.AST]) -> bool:
    statement = known.get(call)
    around = known.get(statement) if statement is not None else None
    if not isinstance(around, ast.If) or statement not in around.body or not isinstance(around.test, ast.Compare):
        return False
    asked = set(names_in(around.test.comparators[0]))
    return isinstance(around.test.ops[0], ast.Eq) and not asked.isdisjoint(("float16", "half", "bfloat16"))


def _is_of_norms(node: ast.Call, flow: Flow) -> bool:
    """Is it the item of a list of norms of which the norm is taken at once, with no cast between?"""
    around = list(within(node, flow))
    listed = next((i for i, part in enumerate(around) if isinstance(part, (ast.ListComp, ast.GeneratorExp))), None)
    if listed is None or any(isinstance(part, ast.Call) and last_name(part) == "float" for part in around):
        return False
    if any(isinstance(part, ast.Call) and last_name(part) in _NORMS for part in around[listed:]):
        return True
    return isinstance(flow.statement, ast.Assign) and flow.statement.value is around[listed] and _is_stacked(flow)


def _is_stacked(flow: Flow) -> bool:
    """Is the norm taken of a list by the name that it gets: `torch.norm(torch.stack(norms), 2)`?"""
    statement = flow.statement
    paths = {path_of(target) for target in statement.targets} if isinstance(statement, ast.Assign) else set()
    return any(
        last_name(call) in _NORMS
        and (stack := _norm_of(call)) is not None
        and last_name(stack) in ("stack", "cat")
        and stack.args
        and path_of(stack.args[0]) in paths - {None}
        for call in facts(flow.scope).calls
    )


def _norm_of(call: ast.Call) -> ast.Call | None:
    """The call whose result a norm is taken of: `torch.stack(x)`, of `torch.norm(torch.stack(x), 2)` and
    `torch.stack(x).norm()`."""
    held = receiver(call)
    taken = held if isinstance(held, ast.Call) else next(iter(given(call)), None)
    return taken if isinstance(taken, ast.Call) else None


def _is_of_one(subject: ast.expr, flow: Flow) -> bool:
    """Is it the only item of a list, `torch.norm(grads[0])`, of whose items the norms are taken where there are more?"""
    path = path_of(subject.value) if isinstance(subject, ast.Subscript) else None
    return path is not None and any(
        path == path_of(clause.iter) and any(last_name(inner) in _NORMS for inner in nodes([part.elt]))
        for part in nodes([flow.scope])
        if isinstance(part, (ast.ListComp, ast.GeneratorExp))
        for clause in part.generators
    )


def _goes_over_gradients(node: ast.Call, flow: Flow) -> bool:
    """Is it `norm(g) for g in grads`?"""
    return any(
        isinstance(part, (ast.ListComp, ast.GeneratorExp))
        and any("grad" in word.lower() for clause in part.generators for word in said(clause.iter))
        for part in within(node, flow)
    )


def _is_variance(node: ast.Call, flow: Flow) -> bool:
    """Is a square, or a product of a name with itself, subtracted from this mean, or from the name that it gets?"""
    names = {node} if not isinstance(flow.statement, ast.Assign) else {node, *flow.statement.targets}
    paths = {path_of(name) for name in names} - {None}
    for part in nodes(body_of(flow.scope)):
        if not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Sub):
            continue
        if part.left is node or path_of(part.left) in paths:
            mean = squared(part.right)
            if mean is not None and (last_name(mean) == "mean" or _is_mean(mean, flow)):
                return True
    return False


def _is_mean(node: ast.expr, flow: Flow) -> bool:
    source = source_of(node, flow)
    if isinstance(source, ast.Call) and last_name(source) == "mean":
        return True
    name = path_of(node) or ""
    return any(part in name for part in ("mean", "mu"))
