"""DT122: a result cast to a wider dtype, after it was computed in a narrow one."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Number, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._known import known
from dtlint_rules._needs import attributes
from dtlint_rules._parts import below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation

__all__ = ["CastAfterReduction"]

_REDUCTIONS = frozenset({"sum", "mean", "norm", "prod", "var", "std", "cumsum", "logsumexp", "nansum", "nanmean"})
"""What may overflow, or loses the small summands, in half. Of integers, sums are int64."""
_SMALL = frozenset({"int8", "uint8", "int16"})
_WIDER = frozenset({"to", "type", "float", "double", "long", "int", "short"})
_OPERATORS = (ast.Mult, ast.Add, ast.LShift, ast.Pow)


class CastAfterReduction(Rule):
    """A result cast to a wider dtype after it was computed in a narrow one.

    ## What it does
    Reports three forms.

    - `(u8 * 256 + v8).long()`, where the operands are known to be int8, uint8 or int16.
    - `(target * num_classes + preds).long()`, where two indices are made one and their dtypes are left to the caller.
    - `x.half().sum().float()`, where what is reduced is known to be float16 or bfloat16, or is computed from the
      weights of a module that others may cast.

    Conditional, and so reported with `--preview` only: weights that may be half, and indices of an unknown dtype.

    ## Why it matters
    The cast comes too late. Integer arithmetic wraps around in the operands' dtype: for uint8, 200 * 2 is 144, and
    stays 144 as int64. A sum in float16 is inf beyond 65504, and stays inf in float32; in bfloat16 it keeps 8 bits of
    precision.

    ## Example
    ```python
    import torch

    image = torch.zeros(4, 4, 2, dtype=torch.uint8)
    depth = (image[..., 0] * 256 + image[..., 1]).long()
    ```

    ## Use instead
    ```python
    import torch

    image = torch.zeros(4, 4, 2, dtype=torch.uint8)
    depth = image[..., 0].long() * 256 + image[..., 1]
    ```

    ## References
    - [torch.sum](https://docs.pytorch.org/docs/stable/generated/torch.sum.html)
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT122", "cast-after-reduction"
    triggers = (").long(", ").to(", ").float(", ").double(", ").int(", ").short(", ").type(")
    needs = (attributes(_WIDER),)
    calls = _REDUCTIONS | _WIDER
    operators = frozenset({*_OPERATORS})
    of_known = True

    def __init__(self) -> None:
        self.narrow: dict[ast.expr, tuple[str, str]] = {}
        """Results in a narrow dtype, each with that dtype and what made it."""

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        result, node = operation.result, operation.node
        dtypes = result.dtypes if isinstance(result, Tensor) else None
        if dtypes is None or not isinstance(node, ast.BinOp) or not isinstance(operation.operator, _OPERATORS):
            return ()
        if len(dtypes) == 1 and dtypes <= _SMALL and _may_wrap(operation, dtypes):
            self.narrow[node] = (next(iter(dtypes)), "arithmetic")
        return ()

    def on_call(self, call: Call) -> Iterable[Finding]:
        reduced = _reduced(call)
        if reduced is not None:
            self.narrow[call.node] = (reduced, call.target.rpartition(".")[2])
        elif call.method in _WIDER and isinstance(call.node.func, ast.Attribute):
            given = call.node.func.value
            return self._judge(call, given) if given in self.narrow else _combined(call, given)
        return ()

    def _judge(self, call: Call, given: ast.expr) -> Iterator[Finding]:
        from dtlint.dtypes.dtype import DTYPES

        is_cast, dtypes = call.cast
        if not is_cast or dtypes is None or len(dtypes) != 1:
            return
        (wide,), (dtype, made) = dtypes, self.narrow[given]
        if dtype == _WEIGHTS:
            if wide not in ("float32", "float64") or not _half_reaches(call):
                return
            runs = f"`{made}` runs in the dtype of the weights, and in half overflows or keeps 8 bits"
        elif DTYPES[wide].bits <= DTYPES[dtype].bits:
            return
        elif made == "arithmetic":
            runs = f"The arithmetic runs in {dtype} and wraps around beyond {DTYPES[dtype].max:g}"
        else:
            runs = f"`{made}` runs in {dtype} and " + (
                "overflows beyond 65504" if dtype == "float16" else "keeps 8 bits of precision"
            )
        yield Finding(
            call.node,
            f"{runs}: the cast to {wide} comes too late",
            help=f"Cast the operands to {wide} first",
            conditional=dtype == _WEIGHTS,
        )


_WEIGHTS = "weights"
"""In place of a dtype: that of a module's weights, whatever it is."""


def _reduced(call: Call) -> str | None:
    """The half dtype that a reduction runs in, or `_WEIGHTS`; None for what is no reduction, or wide."""
    from dtlint.dtypes.dtype import FLOATING

    package, _, name = call.target.rpartition(".")
    if name not in _REDUCTIONS or package not in ("torch", "torch.Tensor", "torch.linalg") or "dtype" in call.keywords:
        return None
    given = call.receiver if package == "torch.Tensor" else call.argument(0, "input")
    # Autocast runs sums and norms in float32, on CUDA.
    if not isinstance(given, Tensor) or not given.dtypes or call.flow.autocast is not None:
        return None
    if given.dtypes == FLOATING:
        return _WEIGHTS
    dtype = next(iter(given.dtypes))
    return dtype if len(given.dtypes) == 1 and dtype in ("float16", "bfloat16") else None


def _half_reaches(call: Call) -> bool:
    from dtlint.infer.reach import Reach, reach

    return reach(call.flow).level >= Reach.LIBRARY


_INT64 = frozenset({"int64"})
_COUNTS = re.compile(r"(^|_)(num|n|nb|count|size|width|height|classes|stride)(_|$)|classes$|^[CNKHW]$")
"""How the number is called that an index is multiplied by."""


def _combined(call: Call, given: ast.expr) -> Iterator[Finding]:
    """`(target * num_classes + preds).long()`: one index made of two tensors of unknown dtypes."""
    if not isinstance(given, ast.BinOp) or not isinstance(given.op, ast.Add) or call.cast[1] != _INT64:
        return
    product, other = (given.left, given.right) if isinstance(given.left, ast.BinOp) else (given.right, given.left)
    if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
        return
    factors = [product.left, product.right]
    counts = [node for node in factors if _COUNTS.search((path_of(node) or "").rpartition(".")[2])]
    if len(counts) != 1:
        return
    index = next(node for node in factors if node is not counts[0])
    names = [path_of(below(node, _SHAPING)) for node in (index, other)]
    if None in names or _is_number(other, call.flow) or any(_is_int64(node, call.flow) for node in (index, other)):
        return
    yield Finding(
        call.node,
        f"If `{names[0]}` and `{names[1]}` are uint8 the index wraps around: the cast to int64 comes too late",
        help=f"Cast `{names[0]}` and `{names[1]}` first",
        conditional=True,
    )


_SHAPING = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous"})


def _is_number(node: ast.expr, flow: Flow) -> bool:
    """May it be a Python number, the variable of a loop, or an offset? Then only the other operand matters."""
    return isinstance(node, ast.Constant) or isinstance(known(flow, node), (Constant, Number))


def _is_int64(node: ast.expr, flow: Flow) -> bool:
    value = known(flow, below(node, _SHAPING))
    return isinstance(value, Tensor) and value.dtypes is not None and value.dtypes <= {"int64", "int32"}


def _may_wrap(operation: Operation, dtypes: frozenset[str]) -> bool:
    """May the result leave the range? What is multiplied by a number may be a mask: then the number must not fit."""
    from dtlint.dtypes.dtype import DTYPES

    (dtype,) = dtypes
    numbers = [value.value for value in (operation.left, operation.right) if isinstance(value, Constant)]
    if not numbers:
        return True
    number = numbers[0]
    return (
        isinstance(number, int)
        and isinstance(operation.operator, (ast.Mult, ast.LShift))
        and (number > DTYPES[dtype].max or isinstance(operation.operator, ast.LShift))
    )
