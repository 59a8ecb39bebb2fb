"""DT306: what is looked up by, counted by or encoded is of a dtype that torch does not index with."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.values import Dtype, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._fixes import pass_dtype
from dtlint_rules._indexing import indexed_by
from dtlint_rules._names import last_name, said, words
from dtlint_rules._needs import KNOWN, TORCH, attributes
from dtlint_rules._operands import BOOL, INTEGRAL, called, cast_fix, listed, origin_note, settled, tensor_op
from dtlint_rules._parts import bound_to, root_of
from dtlint_rules._subjects import Operand, operand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow
    from dtlint.infer.values import Value

__all__ = ["IndexDtype"]

_LONG = frozenset({"int64"})
_WIDE = frozenset({"int32", "int64"})
_SUBSCRIPT = frozenset({"bool", "uint8", "int32", "int64"})
_INDICES = {
    **dict.fromkeys(
        ("nn.Embedding", "nn.EmbeddingBag", "nn.functional.embedding", "nn.functional.embedding_bag"),
        (0, "input", _WIDE),
    ),
    "nn.functional.one_hot": (0, "tensor", _LONG),
    "bincount": (0, "input", INTEGRAL - BOOL),
    **{
        f"{name}{place}": (2, "index", accepted)
        for names, accepted in (
            (("gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add"), _WIDE),
            (("index_copy", "index_fill"), _LONG),
        )
        for name in names
        for place in ("", "_")
    },
    "take": (1, "index", _LONG),
    "take_along_dim": (1, "indices", _LONG),
    "repeat_interleave": (1, "repeats", _WIDE),
}
"""By op, the operand that is an index, and the dtypes that torch 2.13 takes for it."""
_OFFSETS = re.compile(r"(?:^|_)cu_?seq_?_?len", re.IGNORECASE)
"""Names of the offsets at which sequences begin that are packed one behind the other."""
_TOLD = frozenset({"int32", "int", "to", "type", "astype", "long", "int64"})
"""Words in which a dtype is asked for, or kept."""
_NUMBERS = re.compile(
    r"(?:^|_)(?:ids?|idx|idcs|inds?|index|indexes|indices|labels?|tokens?|targets?|lengths?|lens?|perm|edge_index|rows?|cols?|batch)$"
)
"""Names of what holds whole numbers."""


class IndexDtype(Rule):
    """An index has a dtype that torch does not index with.

    ## What it does
    Reports `one_hot` of anything but int64, `gather`, `scatter`, `index_select` and embeddings by anything but int32 and
    int64, `bincount` of what is no integer, and a subscript `x[i]` by a floating tensor. Also where the index was
    computed with `/`, which gives float32 for integers, and where a permutation to index with is asked for in the dtype of
    other numbers, `torch.randperm(n, dtype=x.dtype)`. In code for flash attention also the offsets `cu_seqlens` that a
    `cumsum` makes int64.

    ## Why it matters
    Each raises: "one_hot is only applicable to index tensor of type LongTensor", "Expected tensor for argument #1
    'indices' to have one of the following scalar types: Long, Int", "tensors used as indices must be long, int, byte or
    bool tensors". Releases of torch before 2.0 refuse int32 in most places as well. Flash attention takes offsets of int32
    alone, and `cumsum` of any integers is int64: "cu_seqlens_q must have dtype int32".

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

    code, name = "DT306", "index-dtype"
    fix = Applicability.SAFE
    triggers = (*KNOWN, *attributes((*_INDICES, "randperm", "cumsum")))
    needs = (TORCH,)
    calls = called((*_INDICES, "randperm", "cumsum"))
    targets = values = frozenset({ast.Subscript})

    def on_call(self, call: Call) -> Iterable[Finding]:
        op = tensor_op(call)
        if op == "randperm":
            return self._permuted(call)
        if call.name == "cumsum":
            return self._offsets(call)
        position, name, accepted = _INDICES.get(op, (0, "", _LONG))
        if not name or not call.complete:
            return ()
        return self._judged(operand(call, position, name), accepted, f"`{op.rpartition('.')[2]}`", call.flow)

    def _permuted(self, call: Call) -> Iterator[Finding]:
        """`perm = torch.randperm(n, dtype=x.dtype)`, where `perm` is an index."""
        node, dtype = call.argument_node(None, "dtype"), call.argument(None, "dtype")
        if node is None or not (_is_floating(dtype) or _is_of_numbers(node)):
            return
        for target in bound_to(call.node, call.flow.statement):
            used = indexed_by(target.id, call.flow.scope) if isinstance(target, ast.Name) else None
            if used is not None:
                yield Finding(
                    node,
                    f"A permutation of a floating dtype is no index: where `{ast.unparse(node)}` is one, the subscript raises",
                    help="Leave `dtype` away: `torch.randperm` gives int64",
                    notes=((used, "indexed by it here"),),
                )

    def _offsets(self, call: Call) -> Iterator[Finding]:
        """`cu_seqlens = F.pad(lengths.cumsum(0), (1, 0))`: int64, whatever integers the lengths are."""
        statement, flow = call.flow.statement, call.flow
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or "dtype" in call.keywords:
            return
        path = path_of(statement.targets[0])
        if path is None or _OFFSETS.search(path.rpartition(".")[2]) is None or "flash" not in words(flow.tree):
            return
        around = {*said(statement.value)} - {*said(call.node)}
        if not _TOLD.isdisjoint(around) or _is_told_later(path, flow):
            return
        yield Finding(
            call.node,
            f"`cumsum` of integers is int64, and flash attention takes `{path}` of int32 alone: it raises",
            help="Ask for it: `cumsum(..., dtype=torch.int32)`",
            fix=partial(pass_dtype, name="torch.int32", message="Sum in int32"),
        )

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        """`y = x[i]` and `x[i] = y`: subscripts have no events of their own."""
        if not isinstance(assign.expression, ast.Subscript) and not isinstance(assign.target, ast.Subscript):
            return ()
        return self._indexed(assign)

    def _indexed(self, assign: Assign) -> Iterator[Finding]:
        for part, base in ((assign.expression, None), (assign.target, assign.base)):
            if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Name):
                continue
            names = assign.flow.state.names
            if base is None and isinstance(part.value, ast.Name):
                base = names.get(part.value.id)
            index = names.get(part.slice.id)
            if isinstance(base, Tensor) and isinstance(index, Tensor):
                yield from self._judged(Operand(part.slice, index), _SUBSCRIPT, "A subscript", assign.flow)

    def _judged(self, index: Operand | None, accepted: frozenset[str], who: str, flow: Flow) -> Iterator[Finding]:
        dtypes = settled(index, flow) if index is not None else None
        if index is None or not dtypes or dtypes & accepted:
            return
        safe = Applicability.SAFE if dtypes <= INTEGRAL else Applicability.UNSAFE
        yield Finding(
            index.node,
            f"{who} takes an index of {listed(accepted)}: this one is {listed(dtypes)}, and it raises",
            help="Cast it with `.long()`"
            if dtypes <= INTEGRAL
            else "Compute the index in integers: `//`, or `.long()`",
            notes=origin_note(index.value, index.node, f"{listed(dtypes)} since here"),
            fix=partial(cast_fix, index.node, "long()", "Cast the index to int64", safe),
        )


def _is_floating(dtype: Value | None) -> bool:
    return isinstance(dtype, Dtype) and dtype.name in FLOATING


def _is_of_numbers(dtype: ast.expr) -> bool:
    """Is it the dtype of what does not look like whole numbers: `x.dtype`?"""
    path = path_of(dtype) or ""
    owner, _, last = path.rpartition(".")
    return last == "dtype" and bool(owner) and _NUMBERS.search(owner.rpartition(".")[2]) is None


def _is_told_later(path: str, flow: Flow) -> bool:
    """Is what was assigned cast after all: `cu_seqlens.to(torch.int32)`, `F.pad(cu_seqlens, (1, 0)).int()`?"""
    return any(
        isinstance(part, ast.Call)
        and last_name(part) in ("int", "to", "type", "pad")
        and path in (path_of(subject) for subject in (root_of(part), *part.args))
        for part in ast.walk(flow.scope)
    )
