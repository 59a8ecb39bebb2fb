"""DT402: a number that the dtype it meets does not have."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, FLOATING, INTEGRAL
from dtlint.infer.values import Constant, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._beyond import PUTTING, put_beyond
from dtlint_rules._half import is_half
from dtlint_rules._limits import limit_beyond
from dtlint_rules._masks import selects_scores
from dtlint_rules._names import last_name
from dtlint_rules._needs import HALF_BY_NAME, SMALL
from dtlint_rules._numbers import HALF, number_at, spelled
from dtlint_rules._subjects import ABSENT, is_function, operand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation
    from dtlint.infer.facts import ModuleFacts

__all__ = ["ConstantOverflow"]

_BOUNDS = {
    **dict.fromkeys(("clamp", "clamp_", "clip", "clip_"), ((0, "min"), (1, "max"))),
    **dict.fromkeys(("clamp_min", "clamp_min_"), ((0, "min"),)),
    **dict.fromkeys(("clamp_max", "clamp_max_"), ((0, "max"),)),
    "fill_": ((0, "value"),),
}
"""What raises where the tensor cannot hold the number, and its arguments, of the method."""
_FILLED = frozenset({"full", "full_like", "new_full", "linspace"})
"""Factories that raise where the dtype cannot hold the number. The others convert it: an arange wraps around."""
_FACTORIES = _FILLED | {"tensor", "as_tensor", "new_tensor", "arange"}
_CASTS = frozenset({"to", "half", "type"})
_INFINITE = 65520
_SUMS = frozenset({"add", "add_", "sub", "sub_"})
_HALF = frozenset({"float16"})


class ConstantOverflow(Rule):
    """A number is beyond the range of the dtype that it is put into.

    ## What it does
    Reports numbers that are written out and meet a tensor whose dtype, float16 or a small integer, does not have them:
    in `torch.tensor(1e5, dtype=torch.float16)` and `torch.arange(300, dtype=torch.uint8)`, in arithmetic with a float16
    tensor, in `clamp` and `fill_`, in `x[0] = 70000`, and in casts of what was made of such numbers; and the limit of
    one dtype of whole numbers that is put into another, `np.full(n, np.iinfo(np.uint32).max, dtype=np.int32)`. The
    dtype must be shown by the source; masks are the matter of DT401.

    ## Why it matters
    float16 ends at 65504. `torch.full` and `clamp` raise for a number beyond that, while `torch.tensor`, arithmetic and
    casts give inf. Of the integers, `torch.tensor([-1], dtype=torch.uint8)` is 255, without a word.

    ## Example
    ```python
    import torch

    limit = torch.tensor(100000.0, dtype=torch.float16)
    ```

    ## Use instead
    ```python
    import torch

    limit = torch.tensor(100000.0, dtype=torch.bfloat16)
    ```

    ## References
    - [torch.finfo and torch.iinfo](https://docs.pytorch.org/docs/stable/type_info.html)
    """

    code, name = "DT402", "constant-overflow"
    triggers = (*HALF_BY_NAME, *SMALL, "iinfo")
    calls = frozenset({*_FACTORIES, *_BOUNDS, *_CASTS, *_SUMS, "iinfo"})
    operators = frozenset({ast.Add, ast.Sub, ast.Mult})
    targets = frozenset({ast.Subscript})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return put_beyond(facts, PUTTING)

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in _FACTORIES:
            return self._made(call)
        if name == "iinfo":
            return self._limited(call)
        if name in _BOUNDS:
            return self._bounded(call, name)
        if name in _SUMS:
            return self._added(call)
        if name in _CASTS and isinstance(call.receiver, Tensor):
            return self._cast(call, call.receiver)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        return self._computed(operation) if is_half(operation.left) or is_half(operation.right) else ()

    def _computed(self, operation: Operation) -> Iterator[Finding]:
        node, flow = operation.node, operation.flow
        if isinstance(node, ast.BinOp):
            pairs = [(operation.left, operation.right, node.right), (operation.right, operation.left, node.left)]
        elif isinstance(node, ast.AugAssign):
            pairs = [(operation.left, operation.right, node.value)]
        else:
            return
        for tensor, number, given in pairs:
            if not isinstance(number, Constant) or not is_half(tensor) or not isinstance(tensor, Tensor):
                continue
            written = number_at(given, flow)
            if (
                written is None
                or not HALF.max < abs(written.value) < math.inf
                or "float16" not in (tensor.dtypes or ())
            ):
                continue
            happens = f"the result is {_inf(written.value)}"
            yield _finding(node, written.value, "float16", happens, tensor.origin)

    def on_assign(self, assign: Assign) -> Iterator[Finding]:
        """`x[0] = 70000`, where no mask chooses: that is told by DT401."""
        target, base = assign.target, assign.base
        if not isinstance(target, ast.Subscript) or not isinstance(base, Tensor) or base.dtypes != _HALF:
            return
        number = _beyond_half(assign.expression, assign.flow)
        if number is not None and isinstance(assign.node, ast.Assign) and not selects_scores(target):
            yield _finding(assign.node, number, "float16", f"it becomes {_inf(number)}", base.origin)

    def _added(self, call: Call) -> Iterator[Finding]:
        """`x.add_(1e5)`."""
        subject, tensor = operand(call) or ABSENT
        given = call.argument_node(int(is_function(call)), "other")
        if subject is None or not isinstance(tensor, Tensor) or tensor.dtypes != _HALF:
            return
        number = _beyond_half(given, call.flow)
        if number is not None and len(call.args) + len(call.keywords) == 1 + is_function(call):
            yield _finding(call.node, number, "float16", f"the result is {_inf(number)}", tensor.origin)

    def _made(self, call: Call) -> Iterator[Finding]:
        made = call.result
        if last_name(call.node) == "new_full" and isinstance(made, Tensor) and made.dtypes == _HALF:
            number = _beyond_half(call.argument_node(1, "fill_value"), call.flow)
            if number is not None:
                yield _finding(call.node, number, "float16", "this raises", None)
            return
        if not isinstance(made, Tensor) or made.span is None or made.dtypes is None or len(made.dtypes) != 1:
            return
        (dtype,) = made.dtypes
        number = _beyond(made.span, dtype)
        if number is None or (dtype in FLOATING and dtype != "float16"):
            return
        name = last_name(call.node)
        happens = "this raises" if name in _FILLED else f"it becomes {_inf(number)}"
        if dtype in INTEGRAL:
            happens = "it wraps around" if name == "arange" else "it wraps around, or raises"
        yield _finding(call.node, number, dtype, happens, None)

    def _limited(self, call: Call) -> Iterator[Finding]:
        """`Box(low=0, high=np.iinfo(np.uint32).max, dtype=np.int32)`."""
        limit = limit_beyond(call.node, call.flow)
        if limit is not None:
            end = DTYPES[limit.dtype].max if limit.value > 0 else DTYPES[limit.dtype].min
            yield Finding(
                limit.node,
                f"{limit.value} is beyond {int(end)}, the end of {limit.dtype}: it wraps around, or raises",
                help=f"Use `iinfo({limit.dtype}).{limit.node.attr}`",
            )

    def _bounded(self, call: Call, name: str) -> Iterator[Finding]:
        _, tensor = operand(call) or ABSENT
        if not isinstance(tensor, Tensor) or not is_half(tensor) or "float16" not in (tensor.dtypes or ()):
            return
        for position, keyword in _BOUNDS[name]:
            number = number_at(call.argument_node(position + is_function(call), keyword), call.flow)
            if number is not None and HALF.max < abs(number.value) < math.inf:
                yield _finding(call.node, number.value, "float16", f"`{name}` raises", tensor.origin)
                return

    def _cast(self, call: Call, tensor: Tensor) -> Iterator[Finding]:
        is_cast, dtypes = call.cast
        if not is_cast or dtypes != frozenset({"float16"}) or tensor.span is None:
            return
        number = _beyond(tensor.span, "float16")
        if number is not None:
            yield _finding(call.node, number, "float16", f"it becomes {_inf(number)}", tensor.origin)


def _beyond_half(node: ast.expr | None, flow: Flow) -> float | None:
    """A finite number that is inf in float16: what is nearer to 65504 is rounded to that."""
    number = number_at(node, flow)
    return number.value if number is not None and _INFINITE <= abs(number.value) < math.inf else None


def _inf(number: float) -> str:
    return "-inf" if number < 0 else "inf"


def _beyond(span: tuple[float, float], dtype: str) -> float | None:
    """The end of a span that the dtype does not have."""
    info = DTYPES.get(dtype)
    if info is None:
        return None
    return span[1] if span[1] > info.max else span[0] if span[0] < info.min else None


def _finding(node: ast.expr | ast.stmt, number: float, dtype: str, happens: str, origin: ast.expr | None) -> Finding:
    info = DTYPES[dtype]
    end = info.max if number > 0 else info.min
    return Finding(
        node,
        f"{spelled(number)} is beyond {int(end)}, the {'max' if number > 0 else 'min'} of {dtype}: {happens}",
        help="Use a wider dtype, or a number that fits",
        notes=((origin, f"{dtype} since here"),) if origin is not None and origin is not node else (),
    )
