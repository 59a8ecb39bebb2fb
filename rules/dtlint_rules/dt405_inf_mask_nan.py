"""DT405: an infinite mask that makes NaN."""

from __future__ import annotations

import ast
import math
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, source_of
from dtlint_rules._fixes import limit_of
from dtlint_rules._imports import imports_torch
from dtlint_rules._masks import is_mask
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH
from dtlint_rules._numbers import number_at
from dtlint_rules._operands import BOOL, certain
from dtlint_rules._parts import below, keyword, receiver, root_of
from dtlint_rules._subjects import ABSENT, operand
from dtlint_rules._tensors import is_tensor
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.source.place import Place

__all__ = ["InfMaskNan"]

_SOFTMAXES = frozenset({"softmax", "log_softmax", "logsumexp", "softmin"})


class InfMaskNan(Rule):
    """A mask of infinities that turns into NaN.

    ## What it does
    Reports five forms: a mask multiplied by infinity, `(1 - mask) * float("-inf")`; the logarithm of a mask, added to
    scores, `scores + mask.log()`; `torch.triu` of -inf without `diagonal=1`, and `torch.tril` of -inf without
    `diagonal=-1`; +inf written into what a softmax is taken of; and -inf written where a mask of queries times a mask of
    keys is False, `~(mask[:, :, None] & mask[:, None, :])`, which masks the whole row of each query that is padding. Any
    other `masked_fill(mask, float("-inf"))`, the usual way, is left alone, for whether a whole row is masked depends on
    the data.

    Conditional, and so reported with `--preview` only: masks that only their names tell of.

    ## Why it matters
    `0 * inf` is NaN, so a product of mask and infinity is NaN in all places that the mask leaves alone. `log(0)` is
    -inf, and a softmax over a row that is all -inf is NaN; one such row, a padded sentence, makes the loss NaN. `triu`
    keeps the diagonal, so that the first row of a causal mask has nothing left to attend to. The softmax of +inf is
    NaN.

    ## Example
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        bias = (1 - mask) * float("-inf")
        return (scores + bias).softmax(dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        bias = (1 - mask) * torch.finfo(mask.dtype).min
        return (scores + bias).softmax(dim=-1)
    ```

    ## Fix safety
    The fix replaces an infinity that a floating mask, given by name, is multiplied by. It is unsafe: a mask that is
    not floating has no such limit, and `masked_fill` may be what is wanted.

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [torch.triu](https://docs.pytorch.org/docs/stable/generated/torch.triu.html)
    """

    code, name = "DT405", "inf-mask-nan"
    fix = Applicability.UNSAFE
    triggers = ("inf", "Inf", "INF", "infinity", "Infinity", "INFINITY", ".log")
    needs = (TORCH,)
    calls = frozenset({"triu", "tril", "masked_fill", "masked_fill_", *_SOFTMAXES})
    operators = frozenset({ast.Mult, ast.Add})

    def __init__(self) -> None:
        self.filled: dict[tuple[ast.AST, str], ast.Call] = {}
        """Names that +inf was written into, by scope."""

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, (ast.BinOp, ast.AugAssign)):
            return ()
        if isinstance(operation.operator, ast.Mult) and isinstance(node, ast.BinOp):
            return self._multiplied(operation, node)
        if isinstance(operation.operator, ast.Add):
            return self._added(operation, node)
        return ()

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in ("triu", "tril"):
            return self._cut(call, name)
        if name in ("masked_fill", "masked_fill_"):
            return [*self._softened(call, name), *_emptied(call)]
        return self._softened(call, name) if name in _SOFTMAXES else ()

    def _multiplied(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        for given, mask, value in (
            (node.right, node.left, operation.left),
            (node.left, node.right, operation.right),
        ):
            if isinstance(value, Constant) or not is_mask(mask) or not _is_infinite(given, operation.flow):
                continue
            if not imports_torch(operation.flow.tree) or _is_numpy(mask):
                return
            kept = root_of(mask)
            kept = kept.right if isinstance(kept, ast.BinOp) else kept
            name = path_of(root_of(kept))
            inverted = isinstance(root_of(mask), (ast.UnaryOp, ast.Compare))
            yield Finding(
                node,
                f"`{short(mask)}` is 0 where nothing is masked, and 0 times inf is NaN",
                help="Use `scores.masked_fill(mask, float('-inf'))`, or multiply by `torch.finfo(dtype).min`",
                conditional=certain(value) != BOOL and not is_mask(mask, by_name=False),
                fix=None if name is None or inverted else partial(_fix, given, name, operation.flow),
            )
            return

    def _added(self, operation: Operation, node: ast.BinOp | ast.AugAssign) -> Iterator[Finding]:
        terms = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
        for term in terms:
            mask = _of_logarithm(term)
            if mask is None or not is_mask(mask) or not imports_torch(operation.flow.tree) or _is_numpy(term):
                continue
            source = source_of(mask, operation.flow)
            if source is not None and _keeps_from_zero(source):
                continue
            yield Finding(
                node,
                f"`{short(term)}` is -inf where the mask is 0: the softmax of a fully masked row is NaN",
                help="Use `masked_fill(~mask, torch.finfo(x.dtype).min)`",
                conditional=not is_mask(mask, by_name=False),
            )
            return

    def _cut(self, call: Call, name: str) -> Iterator[Finding]:
        """`torch.triu(torch.full((n, n), float("-inf")))`."""
        function = call.target in ("torch.triu", "torch.tril")
        subject = call.argument_node(0, "input") if function else receiver(call.node)
        given = call.argument_node(int(function), "diagonal")
        if (
            subject is None
            or not call.complete
            or (given is not None and call.constant(int(function), "diagonal") != 0)
        ):
            return
        source = source_of(subject, call.flow) or subject
        if not _is_full_of_infinity(source, call.flow) or not imports_torch(call.flow.tree):
            return
        row, diagonal = ("first", "1") if name == "triu" else ("last", "-1")
        yield Finding(
            call.node,
            f"`{name}` keeps the diagonal: the {row} row is all -inf, and its softmax is NaN",
            help=f"Pass `diagonal={diagonal}`",
        )

    def _softened(self, call: Call, name: str) -> Iterator[Finding]:
        """+inf is written into a name that a softmax is taken of behind it."""
        flow = call.flow
        if name not in _SOFTMAXES:
            function = call.target.startswith("torch.masked")
            number = number_at(call.argument_node(1 + function, "value"), flow)
            subject = call.argument_node(0, "input") if function else receiver(call.node)
            if number is not None and number.value == math.inf and subject is not None:
                for path in (path_of(subject), *_targets(flow.statement)):
                    if path is not None:
                        self.filled[flow.scope, path] = call.node
            return
        subject, _ = operand(call) or ABSENT
        if subject is None:
            return
        path = path_of(subject)
        filled = self.filled.get((flow.scope, path)) if path is not None else None
        if filled is not None and filled.lineno < call.node.lineno and is_tensor(subject, call.receiver, flow):
            later = source_of(subject, flow)
            if later is None or filled in set(nodes([later])):
                yield Finding(
                    filled,
                    f"+inf is written into `{path}`, whose softmax is then NaN",
                    help="Write -inf where nothing is attended to",
                    notes=((call.node, "the softmax"),),
                )


def _emptied(call: Call) -> Iterator[Finding]:
    """`scores.masked_fill(~(q_mask[:, :, None] & k_mask[:, None, :]), -inf)`, whose rows of padding have nothing left."""
    flow, function = call.flow, call.target.startswith("torch.masked")
    mask = _negated(call.argument_node(function, "mask"))
    number = None if mask is None else number_at(call.argument_node(1 + function, "value"), flow)
    if mask is None or number is None or number.value != -math.inf or not imports_torch(flow.tree):
        return
    pair = next(filter(None, (_factors(source) for source in _sources(mask, flow))), None)
    if pair is None:
        return
    axes = {frozenset(filter(None, map(_axis, _sources(factor, flow)))) for factor in pair}
    if axes != {frozenset({"queries"}), frozenset({"keys"})} or _mends(flow.scope, call.node):
        return
    yield Finding(
        call.node,
        "The row of a padded query is all -inf, and its softmax is NaN",
        help="Write `torch.finfo(scores.dtype).min`, or mask the keys only",
        notes=() if pair[0].lineno == call.node.lineno else ((pair[0], "the masks are combined here"),),
    )


def _negated(node: ast.expr | None) -> ast.expr | None:
    """`mask`, of `~mask`, `mask == 0` and `torch.logical_not(mask)`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return node.operand
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq):
        return node.left if isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value == 0 else None
    if isinstance(node, ast.Call) and last_name(node) == "logical_not":
        return node.args[0] if node.args else receiver(node)
    return None


def _sources(node: ast.expr, flow: Flow) -> list[ast.expr]:
    """An expression, and what a name was assigned above it, each time."""
    bound = assignments(flow.scope).get(node.id, ()) if isinstance(node, ast.Name) else ()
    return [node, *(value for line, value in bound if value is not None and line < flow.statement.lineno)]


def _factors(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The masks that are true together: `a & b`, `a * b`, `torch.logical_and(a, b)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.BitAnd)):
        return node.left, node.right
    if isinstance(node, ast.Call) and path_of(node.func) == "torch.logical_and" and len(node.args) == 2:
        return node.args[0], node.args[1]
    return None


def _axis(node: ast.expr) -> str | None:
    """Does a mask tell queries, by rows, or keys, by columns: by the axis that it is spread along?"""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        spread = [isinstance(item, ast.Constant) and item.value is None for item in node.slice.elts]
        return None if not any(spread) else "queries" if spread[-1] and len(spread) > 2 else "keys"
    if not isinstance(node, ast.Call):
        return None
    name = last_name(node)
    if name == "unsqueeze" and len(node.args) == 1:
        return {"-1": "queries", "-2": "keys", "1": "keys"}.get(ast.unparse(node.args[0]))
    pattern = node.args[1] if name == "rearrange" and len(node.args) == 2 else None
    if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
        return None
    made = pattern.value.partition("->")[2].replace("()", "1").split()
    return None if "1" not in made else "queries" if made[-1] == "1" else "keys"


def _mends(scope: ast.AST, filled: ast.Call) -> bool:
    """Are NaNs replaced behind it: by `nan_to_num`, or by zeros where the mask is?"""
    for part in nodes([scope]):
        if isinstance(part, ast.Call) and part is not filled:
            if last_name(part) in ("nan_to_num", "nan_to_num_", "isnan"):
                return True
            zero = [number for number in part.args[1:] if isinstance(number, ast.Constant) and number.value == 0]
            if zero and last_name(part) in ("masked_fill", "masked_fill_"):
                return True
    return False


def _is_infinite(node: ast.expr, flow: Flow) -> bool:
    number = number_at(node, flow)
    return number is not None and math.isinf(number.value)


def _is_numpy(node: ast.expr) -> bool:
    return any((path_of(part) or "").startswith(("np.", "numpy.", "tf.", "jnp.")) for part in nodes([node]))


def _of_logarithm(node: ast.expr) -> ast.expr | None:
    """What the logarithm is taken of: `mask.log()`, `torch.log(mask.float())`."""
    node = below(node, ("unsqueeze", "to"))
    if not isinstance(node, ast.Call) or last_name(node) != "log":
        return None
    if node.args:
        return node.args[0] if (path_of(node.func) or "") in ("torch.log", "th.log") else None
    return receiver(node)


def _keeps_from_zero(source: ast.expr) -> bool:
    """Has something been added to it, or has it been clamped?"""
    return any(
        (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add))
        or (isinstance(part, ast.Call) and last_name(part).startswith(("clamp", "softmax", "sigmoid", "where")))
        for part in nodes([source])
    )


def _is_full_of_infinity(node: ast.expr, flow: Flow) -> bool:
    """`torch.full(size, -inf)`, `torch.ones(n, n) * -inf`, `x.fill_(-inf)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        ones, infinity = (node.left, node.right) if isinstance(node.left, ast.Call) else (node.right, node.left)
        return last_name(ones) in ("ones", "ones_like") and _is_infinite(infinity, flow)
    if not isinstance(node, ast.Call):
        return False
    position = {"full": 1, "full_like": 1, "new_full": 1, "fill_": 0}.get(last_name(node))
    if position is None:
        return False
    given = keyword(node, "fill_value") or keyword(node, "value")
    if given is None and position < len(node.args):
        given = node.args[position]
    return given is not None and _is_infinite(given, flow)


def _targets(statement: ast.stmt) -> Iterator[str | None]:
    for target in statement.targets if isinstance(statement, ast.Assign) else []:
        yield path_of(target)


def _fix(given: ast.expr, name: str, flow: Flow, place: Place) -> Fix | None:
    number = number_at(given, flow)
    if number is None or not number.literal:
        return None
    return limit_of(place, given, name, "min" if number.value < 0 else "max", "Multiply by")
