"""DT401: a mask is filled with a number that float16 does not have."""

from __future__ import annotations

import ast
import math
import re
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.infer.names import path_of
from dtlint.infer.values import UNKNOWN, Constant, Tensor
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._beyond import MASKING, put_beyond
from dtlint_rules._fixes import limit_of
from dtlint_rules._half import half_at, is_assumed
from dtlint_rules._handed import is_made_wide
from dtlint_rules._known import known
from dtlint_rules._masks import SCORES, inverted, is_mask, selects_scores
from dtlint_rules._meanings import is_device
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import TORCH
from dtlint_rules._numbers import HALF, number_at, spelled
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import given, keyword, receiver, root_of, same
from dtlint_rules._subjects import ABSENT, is_function, operand
from dtlint_rules._tensors import is_tensor
from dtlint_rules._widths import is_wide
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint_rules._numbers import Number

__all__ = ["MaskFillOverflow"]

_FILLS = {
    **dict.fromkeys(("masked_fill", "masked_fill_"), (1, "value")),
    **dict.fromkeys(("full_like", "new_full"), (1, "fill_value")),
    **dict.fromkeys(("index_fill", "index_fill_", "scatter", "scatter_"), (2, "value")),
    "fill_": (0, "value"),
}
"""What writes one number into a tensor, and which argument of the method that is. Of the function it is the next, but
for `full_like`. All of them raise where the tensor cannot hold the number; seen on torch 2.13."""
_TENSORS = frozenset({"tensor", "as_tensor", "new_tensor"})
"""What makes a tensor of a number."""
LARGE = (
    *(f"1e{exponent}" for exponent in range(5, 309)),
    *("0**", "2**", "*00000*", "*65536*", "*99999*"),
)
"""How numbers beyond float16 are written."""
_MASKING = re.compile(r"mask")
_IDS = re.compile(r"id|index|label|token")
"""Names of what holds whole numbers."""


class MaskFillOverflow(Rule):
    """A mask is filled with a number beyond the range of float16.

    ## What it does
    Reports numbers beyond ±65504 that are written into scores or masks, by `masked_fill`, `full_like`, `torch.where`,
    `torch.tensor(-1e9, dtype=scores.dtype)`, `scores.new_tensor(-1e9)`, `F.pad`, `scores[mask] = -1e9`, `(1 - mask) *
    -1e9`, a mask in a buffer, or a function whose name speaks of a mask; and limits of another dtype, such as
    `torch.finfo(torch.float32).min`. The number is found as a constant of the module, as an attribute of the class and
    as the default of a parameter, too. Code that only runs in float32 is left alone.

    Conditional, and so reported with `--preview` only: numbers for tensors that are not known to be half.

    ## Why it matters
    float16 ends at 65504. Under autocast, attention scores are float16, and
    `scores.masked_fill(mask, -1e9)` raises `value cannot be converted to type c10::Half without overflow`. A sum, a
    product, `torch.where` and an assignment by index do not raise: they give -inf, and a softmax over a row that is
    all -inf is NaN. A limit of float32 raises in bfloat16 as well.

    ## Example
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores.masked_fill(mask, -1e9)
        return scores.softmax(dim=-1)
    ```

    ## Use instead
    ```python
    import torch

    def attend(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
        return scores.softmax(dim=-1)
    ```

    ## Fix safety
    The fix puts the limit of the tensor's own dtype in place of the number, where the tensor is a name. In a mask that is
    added to scores it puts half of it, for the whole limit is -inf as soon as something negative is added. It is unsafe:
    scores may be that large themselves, which they are not beside -1e9 in float32.

    ## References
    - [torch.finfo](https://docs.pytorch.org/docs/stable/type_info.html#torch.finfo)
    - [torch.Tensor.masked_fill_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.masked_fill_.html)
    """

    code, name = "DT401", "mask-fill-overflow"
    fix = Applicability.UNSAFE
    triggers = (*LARGE, "finfo")
    needs = (TORCH,)
    calls = frozenset({"full", "register_buffer", "where", "pad", *_TENSORS, *_FILLS, "*mask*"})
    operators = frozenset({ast.Mult})
    targets = frozenset({ast.Subscript})

    def __init__(self) -> None:
        self.written: dict[ast.expr, bool] = {}
        """Numbers that have been reported, and whether only where half is assumed."""

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return put_beyond(facts, MASKING)

    def on_call(self, call: Call) -> Iterable[Finding]:
        target = call.target
        if target == "torch.full":
            return self._made(call)
        if last_name(call.node) in _TENSORS:
            return self._of_one(call)
        if call.method == "register_buffer":
            return self._registered(call)
        if call.method in _FILLS or target.startswith("torch."):
            return self._filled(call, last_name(call.node))
        return self._handed(call) if _masks(last_name(call.node)) else ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(operation.operator, ast.Mult) or not isinstance(node, ast.BinOp):
            return ()
        if _is_large(operation.right) or not isinstance(operation.left, Constant):
            number, mask, value = node.right, node.left, operation.left
        else:
            number, mask, value = node.left, node.right, operation.right
        if isinstance(value, Constant):
            return ()
        if not (is_mask(mask) or _is_ones(mask) or inverted(mask) is not None):  # `1 - kept`, whatever its name
            return ()
        return self._multiplied(operation, number, mask, value)

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        target = assign.target
        if not isinstance(target, ast.Subscript) or assign.expression is None or not _may_be_large(assign.value):
            return ()
        return self._written(assign, target, assign.expression)

    def _written(self, assign: Assign, target: ast.Subscript, expression: ast.expr) -> Iterator[Finding]:
        selects = selects_scores(target)
        number = _beyond(expression, assign.flow)
        if number is None or not selects or not is_tensor(target.value, assign.base, assign.flow):
            return
        if _is_wide(target.value, assign.base, assign.flow):
            return
        subject = target.value if path_of(target.value) is not None else None
        yield from self._found(
            assign.node,
            number,
            assign.flow,
            assign.base,
            "it becomes {inf} in float16",
            expression,
            subject,
        )

    def _filled(self, call: Call, name: str) -> Iterable[Finding]:
        if name == "where":
            return self._chosen(call, is_function(call))
        if name == "pad":
            return self._padded(call)
        return self._filled_by(call, name) if name in _FILLS else ()

    def _filled_by(self, call: Call, name: str) -> Iterator[Finding]:
        function = is_function(call)
        if function and name in ("fill_", "new_full"):
            return
        position, keyword = _FILLS[name]
        written = call.argument_node(position + (function and name != "full_like"), keyword)
        number = _beyond(written, call.flow)
        if number is None or written is None:
            return
        subject, value = operand(call) or ABSENT
        if (
            number.value > 0
            and name not in ("masked_fill", "masked_fill_")
            and not _MASKING.search(ast.unparse(call.node))
        ):
            return
        if _is_index(subject, number) or _is_wide(subject, value, call.flow):
            return
        if _is_shown(value if name == "fill_" else call.result) and name in ("full_like", "new_full", "fill_"):
            return
        yield from self._found(call.node, number, call.flow, value, f"`{name}` raises in float16", written, subject)

    def _padded(self, call: Call) -> Iterator[Finding]:
        """`F.pad(scores, (0, n), value=-1e9)`: what is written with no point may be meant for integers."""
        written, subject = call.argument_node(3, "value"), call.argument_node(0, "input")
        number = _beyond(written, call.flow) if call.target == "torch.nn.functional.pad" else None
        if number is None or subject is None or written is None:
            return
        name, value = (path_of(subject) or "").rpartition(".")[2].lower(), call.argument(0, "input")
        if not (SCORES.search(name) or _MASKING.search(name)) or _IDS.search(name):
            return
        if not _is_float(_unsigned(number.written)) or value is None or _is_wide(subject, value, call.flow):
            return
        yield from self._found(call.node, number, call.flow, value, "`pad` raises in float16", written, subject)

    def _made(self, call: Call) -> Iterator[Finding]:
        """`torch.full(size, -1e9, dtype=scores.dtype)`: without a dtype it is float32."""
        number = _beyond(call.argument_node(1, "fill_value"), call.flow)
        if number is None or number.value > 0 or "dtype" not in call.keywords or _is_shown(call.result):
            return
        yield from self._found(call.node, number, call.flow, call.result, "`full` raises for float16", None, None)

    def _of_one(self, call: Call) -> Iterator[Finding]:
        """`torch.tensor(-1e9, dtype=scores.dtype)`, `torch.tensor(-1e9).to(scores)` and `scores.new_tensor(-1e9)`."""
        if not call.node.args or not _may_be_large(call.args[0] if call.args else UNKNOWN):
            return
        number, dtype = _beyond(call.node.args[0], call.flow), keyword(call.node, "dtype")
        if number is None or number.value > 0 or _is_shown(call.result):
            return
        of = receiver(call.node) if call.method == "new_tensor" and dtype is None else None
        if of is None and not call.target.startswith("torch."):
            return
        followed = dtype if dtype is not None else _cast_to(call)
        told = path_of(followed) if followed is not None else None
        if of is None and (
            told is None or (dtype is not None and not told.endswith("dtype")) or told.startswith("torch.")
        ):
            return
        if isinstance(followed, ast.Attribute) and followed.attr == "dtype":
            of = followed.value
        value = call.receiver if call.method == "new_tensor" else None
        if of is not None and _is_wide(of, UNKNOWN if value is None else value, call.flow):
            return
        yield from self._found(call.node, number, call.flow, value, "it is {inf} in float16", None, of)

    def _registered(self, call: Call) -> Iterator[Finding]:
        """`self.register_buffer("masked_bias", torch.tensor(-1e9))`: cast with the module."""
        name, made = call.constant(0, "name"), call.argument_node(1, "tensor")
        if (
            not isinstance(name, str)
            or not _MASKING.search(name.lower())
            or not isinstance(made, ast.Call)
            or not made.args
        ):
            return
        number = _beyond(made.args[0], call.flow) if last_name(made) in ("tensor", "as_tensor") else None
        if number is not None:
            text = "the buffer is {inf} after `.half()`"
            yield from self._found(call.node, number, call.flow, None, text, None, None)

    def _chosen(self, call: Call, function: bool) -> Iterator[Finding]:
        """`torch.where(mask, scores, -1e9)`: the number may be made a tensor of first."""
        first = call.argument_node(1, "input") if function else receiver(call.node)
        second = call.argument_node(2 if function else 1, "other")
        if first is None or second is None:
            return
        for filled, other in ((second, first), (first, second)):
            inner = filled
            if isinstance(filled, ast.Call) and last_name(filled) in ("tensor", "as_tensor") and filled.args:
                inner = filled.args[0]
            number = _beyond(inner, call.flow)
            if number is None or number.value > 0:
                continue
            value = call.argument(1 if other is first else 2, "") if function else call.receiver
            if isinstance(value, Constant):
                # Of two numbers it makes float32, as long as nothing else decides.
                happens, subject = "it is {inf} once cast to float16", None
            elif value is not None and _is_wide(other, value, call.flow):
                return
            else:
                happens = "`where` makes it {inf} in float16"
                subject = other if inner is filled else None
            yield from self._found(call.node, number, call.flow, value, happens, filled, subject)
            return

    def _handed(self, call: Call) -> Iterator[Finding]:
        """A function of somebody's that masks: `replace_masked_values(scores, mask, -1e20)`."""
        arguments = given(call.node)
        if len(arguments) < 2 or not any(map(is_mask, arguments)):
            return
        for argument in arguments:
            number = _beyond(argument, call.flow) if not isinstance(argument, (ast.Name, ast.Attribute)) else None
            if number is not None and number.literal and _is_float(number.written):
                text = "masking with it raises, or gives {inf}, in float16"
                yield from self._found(call.node, number, call.flow, None, text, None, None)
                return

    def _multiplied(self, operation: Operation, written: ast.expr, mask: ast.expr, value: Value) -> Iterator[Finding]:
        number = _beyond(written, operation.flow)
        if number is None:
            return
        if number.value > 0 and not (
            any(map(_MASKING.search, names_in(mask))) or _is_taken_from(operation.node, mask, operation.flow)
        ):
            return
        if not _is_float(number.written) or _is_wide(mask, value, operation.flow) or _is_shown(value):
            return
        if _is_bool(mask):
            # A bool has no dtype to give: the product is float32, whatever it is added to.
            text = "the product is float32, and {inf} once cast to float16"
        else:
            text = "the product with a float16 mask is {inf}"
        yield from self._found(operation.node, number, operation.flow, value, text, None, None)

    def _found(
        self,
        node: ast.expr | ast.stmt,
        number: Number,
        flow: Flow,
        value: Value | None,
        happens: str,
        written: ast.expr | None,
        subject: ast.expr | None,
    ) -> Iterator[Finding]:
        half = half_at(flow, *(() if value is None else (value,)), of=subject)
        if half is None or self.written.get(number.written) in (False, is_assumed(half)):
            return
        self.written[number.written] = is_assumed(half)
        inf = "-inf" if number.value < 0 else "inf"
        end, limit = ("-65504", "min") if number.value < 0 else ("65504", "max")
        message = f"{spelled(number.value)} is beyond {end}, the {limit} of float16: {happens.format(inf=inf)}"
        path = path_of(subject) if subject is not None else None
        added = isinstance(node, ast.expr) and _is_added(node, subject, flow)
        halved = f": `{limit}` itself becomes {inf} once something is added" if added else ""
        limit += " / 2" if added else ""
        fix = None
        if number.literal and written is not None and path is not None:
            fix = partial(limit_of, node=written, path=path, limit=limit, verb="Use")
        elsewhere = not number.literal
        yield Finding(
            number.written if elsewhere else node,
            message,
            help=f"Use `torch.finfo({path or 'scores'}.dtype).{limit}`" + halved,
            notes=((node, "written into a tensor here"),) if elsewhere else (),
            conditional=is_assumed(half),
            fix=fix,
        )


def _is_added(node: ast.expr, subject: ast.expr | None, flow: Flow) -> bool:
    """Is what holds the number added to scores: at once, as a mask, or by the name that it is bound to?"""
    parent = parents_at(node, flow).get(node)
    if _is_sum(parent) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return True
    if subject is not None and is_mask(subject):
        return True
    targets = flow.statement.targets if isinstance(flow.statement, ast.Assign) else []
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    return any(map(is_mask, targets)) or any(
        isinstance(part, ast.Name) and part.id in names
        for total in (nodes([flow.scope]) if names else ())
        if _is_sum(total) and getattr(total, "lineno", 0) > node.lineno
        for part in _summands(total)
    )


def _is_sum(node: ast.AST | None) -> bool:
    return isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Add, ast.Sub))


def _summands(node: ast.AST) -> tuple[ast.expr, ...]:
    if isinstance(node, ast.BinOp):
        return node.left, node.right
    return (node.target, node.value) if isinstance(node, ast.AugAssign) else ()


def _cast_to(call: Call) -> ast.expr | None:
    """The tensor, or the dtype, that a made tensor is cast to at once: `torch.tensor(-1e9).to(scores)`."""
    method = parents_at(call.node, call.flow).get(call.node)
    if not isinstance(method, ast.Attribute) or method.attr not in ("to", "type_as", "type"):
        return None
    cast = parents_at(call.node, call.flow).get(method)
    if not isinstance(cast, ast.Call):
        return None
    dtypes = [part for part in given(cast) if last_name(part) == "dtype" and isinstance(part, ast.Attribute)]
    if dtypes:
        return dtypes[0]
    sole = cast.args[0] if len(cast.args) == 1 and not cast.keywords else None
    if sole is None or path_of(sole) is None or is_device(sole):
        return None
    followed = method.attr == "type_as" or is_tensor(sole, known(call.flow, sole), call.flow)
    return sole if followed else None


@lru_cache(maxsize=16_384)
def _masks(name: str) -> bool:
    """Does a function mask, by its name?"""
    return _MASKING.search(name.lower()) is not None


def _beyond(node: ast.expr | None, flow: Flow) -> Number | None:
    """A finite number that float16 cannot hold."""
    number = number_at(node, flow)
    return number if number is not None and HALF.max < abs(number.value) < math.inf else None


def _is_wide(node: ast.expr | None, value: Value, flow: Flow) -> bool:
    """Has a tensor of no known dtype been cast to float32, as `scores = (q @ k).float()` is, or been made in it?"""
    known = isinstance(value, Tensor) and value.dtypes is not None
    if node is None or known:
        return False
    return is_made_wide(path_of(node) or "", flow) or is_wide(origins_of(flow.scope)[node])


def _is_shown(value: Value) -> bool:
    """Does the source show that it is float16? What is put into such a tensor other than by a mask is told by DT402."""
    return isinstance(value, Tensor) and value.dtypes == frozenset({"float16"})


def _is_large(value: Value) -> bool:
    number = value.value if isinstance(value, Constant) else None
    return isinstance(number, (int, float)) and abs(number) > HALF.max


def _may_be_large(value: Value) -> bool:
    return not isinstance(value, Constant) or _is_large(value)


def _is_taken_from(node: ast.expr | ast.stmt, mask: ast.expr, flow: Flow) -> bool:
    """Is a product subtracted: from scores, by their name, or from what the mask keeps, `x * m - 1e10 * (1 - m)`?"""
    parent = parents_at(node, flow).get(node)
    if isinstance(parent, ast.AugAssign):
        left: ast.expr | None = parent.target if isinstance(parent.op, ast.Sub) else None
    else:
        subtracts = isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Sub) and parent.right is node
        left = parent.left if isinstance(parent, ast.BinOp) and subtracts else None
    if left is None:
        return False
    kept = inverted(mask)
    if kept is not None and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
        return any(same(kept, side) for side in (left.left, left.right))
    return is_mask(mask) and SCORES.search(last_name(root_of(left)).lower()) is not None


def _is_float(node: ast.expr) -> bool:
    """Is it written as a float, or with a sign, as no count and no index is?"""
    return any(
        (isinstance(part, ast.Constant) and type(part.value) is float)
        or (isinstance(part, ast.Call) and last_name(part) == "finfo")
        for part in ast.walk(node)
    ) or isinstance(node, ast.UnaryOp)


def _unsigned(node: ast.expr) -> ast.expr:
    return node.operand if isinstance(node, ast.UnaryOp) else node


def _is_index(subject: ast.expr | None, number: Number) -> bool:
    """Is a whole number written into what holds ids?"""
    return not _is_float(number.written) and _IDS.search(ast.unparse(subject or number.written)) is not None


def _is_bool(mask: ast.expr) -> bool:
    return isinstance(mask, (ast.Compare, ast.UnaryOp))


def _is_ones(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and path_of(node.func) in ("torch.ones_like", "th.ones_like")
