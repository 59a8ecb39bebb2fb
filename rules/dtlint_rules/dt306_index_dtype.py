"""DT306: what is looked up by, counted by or encoded is of a dtype that torch does not index with."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Severity
from dtlint.infer.domain.values import Tensor, Tuple, choices
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import BOOL, INTEGRAL, cast_fix, listed
from dtlint_rules._needs import KNOWN, TORCH, attributes
from dtlint_rules._refusals import Operand, finding, is_on_known_device, is_refused, once, operand, short_op

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.facts import ModuleFacts, Operation

__all__ = ["IndexDtype"]

_LONG = frozenset({"int64"})
_NUMBERS = frozenset({"int32", "int64"})
_SUBSCRIPT = frozenset({"bool", "uint8", "int32", "int64"})
_INDICES = {
    **dict.fromkeys(("nn.Embedding", "nn.functional.embedding"), (0, "input", _NUMBERS)),
    "nn.functional.one_hot": (0, "tensor", _LONG),
    "bincount": (0, "input", INTEGRAL - BOOL),
    **{
        f"{name}{place}": (2, "index", accepted)
        for names, accepted in (
            (("gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add"), _NUMBERS),
            (("index_copy", "index_fill"), _LONG),
        )
        for name in names
        for place in ("", "_")
    },
    "take": (1, "index", _LONG),
    "take_along_dim": (1, "indices", _LONG),
    "repeat_interleave": (1, "repeats", _NUMBERS),
    **dict.fromkeys(("__getitem__", "__setitem__"), (1, "", _SUBSCRIPT)),
}
"""By op, the operand that is an index, and the dtypes that torch 2.13 takes for it."""


class IndexDtype(Rule):
    """An index has a dtype that torch does not index with.

    ## What it does
    Reports `one_hot` of anything but int64, `gather`, `scatter`, `index_select` and embeddings by anything but int32
    and int64, `bincount` of what is no integer, and a subscript by a floating tensor: `x[i]`, `x[:, i]`, `x[i] = y`,
    or by one of int8, int16 or uint16 with dimensions. An index that was computed with `/` is floating, and one that is
    joined with `torch.zeros(1)`.

    ## Why it matters
    Each raises: "one_hot is only applicable to index tensor of type LongTensor", "Expected tensor for argument #1
    'indices' to have one of the following scalar types: Long, Int", "tensors used as indices must be long, int, byte or
    bool tensors". Releases of torch before 2.0 refuse int32 in most places as well.

    ## Example
    ```python
    import torch
    import torch.nn.functional as F

    labels = torch.arange(4, dtype=torch.int32)
    encoded = F.one_hot(labels, num_classes=4)
    ```

    ## Use instead
    ```python
    import torch
    import torch.nn.functional as F

    labels = torch.arange(4, dtype=torch.int32)
    encoded = F.one_hot(labels.long(), num_classes=4)
    ```

    ## Fix safety
    The fix casts an integer index to int64, which is safe. A floating index gets it as well, and is cut to whole numbers:
    that is unsafe, for the code may mean something else.

    ## References
    - [torch.nn.functional.one_hot](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html)
    """

    code, name, severity = "DT306", "index-dtype", Severity.ERROR
    fix = Applicability.SAFE
    triggers = (*KNOWN, *attributes(_INDICES))
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(_is_wrong)):
            op, called = short_op(seen.what), seen.node.func if isinstance(seen.node, ast.Call) else None
            if called is not None and seen.what.error is None and len(choices(facts.value(called))) > 1:
                continue  # one of several layers: which, is decided together with what it is given
            for index in _indices(seen.what):
                accepted, dtypes = _INDICES[op][2], index.dtypes
                if not dtypes or dtypes & accepted:
                    continue
                who = "A subscript" if op in ("__getitem__", "__setitem__") else f"`{op.rpartition('.')[2]}`"
                taken = listed(accepted) if len(accepted) < 3 else "integer"
                yield finding(
                    seen,
                    index.node,
                    f"{who} takes {taken} indices: this one is {listed(dtypes)} and raises",
                    "Cast it with `.long()`"
                    if dtypes <= INTEGRAL
                    else "Compute the index in integers: `//`, or `.long()`",
                    fix=None
                    if index.node is None
                    else partial(
                        cast_fix,
                        index.node,
                        "long()",
                        Applicability.SAFE if dtypes <= INTEGRAL else Applicability.UNSAFE,
                    ),
                )


def _is_wrong(operation: Operation) -> bool:
    op = short_op(operation)
    if op not in _INDICES:
        return False
    if op in ("__getitem__", "__setitem__"):
        return is_refused(operation, "DT306")
    wrong = any(index.dtypes and not index.dtypes & _INDICES[op][2] for index in _indices(operation))
    return wrong and is_on_known_device(operation)


def _indices(operation: Operation) -> Iterable[Operand]:
    """What is looked up by: of a subscript each part."""
    position, name, _ = _INDICES[short_op(operation)]
    index = operand(operation, position, name)
    if index is None:
        return ()
    if isinstance(index.value, Tuple):
        nodes = index.node.elts if isinstance(index.node, ast.Tuple) else [None] * len(index.value.items)
        return [Operand(node, value) for node, value in zip(nodes, index.value.items, strict=False)]
    return [index] if isinstance(index.value, Tensor) else ()
