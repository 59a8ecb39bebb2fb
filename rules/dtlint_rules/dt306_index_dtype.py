"""DT306: what is looked up by, counted by or encoded is of a dtype that torch does not index with."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Severity
from dtlint.infer.arithmetic import FLOATS
from dtlint.infer.layers import INDICES
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Items, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._empty_lists import begins_empty, index_use, is_of_edges, looked_into, may_be_empty
from dtlint_rules._known import known
from dtlint_rules._names import last_name
from dtlint_rules._needs import KNOWN, TORCH, attributes
from dtlint_rules._operands import BOOL, INTEGRAL, called, cast_fix, listed, origin_note, settled, tensor_op
from dtlint_rules._refusals import refused
from dtlint_rules._subjects import Operand, operand
from dtlint_rules._tensors import is_tensor, looks_like_tensor
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Lookup
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value

__all__ = ["IndexDtype"]

_LONG = frozenset({"int64"})
_SUBSCRIPT = frozenset({"bool", "uint8", "int32", "int64"})
_INDICES = {
    **dict.fromkeys(
        ("nn.Embedding", "nn.EmbeddingBag", "nn.functional.embedding", "nn.functional.embedding_bag"),
        (0, "input", INDICES),
    ),
    "nn.functional.one_hot": (0, "tensor", _LONG),
    "bincount": (0, "input", INTEGRAL - BOOL),
    **{
        f"{name}{place}": (2, "index", accepted)
        for names, accepted in (
            (("gather", "scatter", "scatter_add", "scatter_reduce", "index_select", "index_add"), INDICES),
            (("index_copy", "index_fill"), _LONG),
        )
        for name in names
        for place in ("", "_")
    },
    "take": (1, "index", _LONG),
    "take_along_dim": (1, "indices", _LONG),
    "repeat_interleave": (1, "repeats", INDICES),
}
"""By op, the operand that is an index, and the dtypes that torch 2.13 takes for it."""
_BAGS = {"nn.EmbeddingBag": 1, "nn.functional.embedding_bag": 2}
"""What promotes its indices and its offsets first, and where the offsets stand."""


class IndexDtype(Rule):
    """An index has a dtype that torch does not index with.

    ## What it does
    Reports `one_hot` of anything but int64, `gather`, `scatter`, `index_select` and embeddings by anything but int32
    and int64, `bincount` of what is no integer, and a subscript by a floating tensor: `x[i]`, `x[:, i]`, `x[i] = y`,
    or by one of int8, int16 or uint16 that is not known to be 0-dim, for that is taken as a number. Also where the
    index was computed with `/`, which gives a floating dtype for integers, or joined with a factory that is told no
    dtype: `torch.cat((torch.zeros(1), counts.cumsum(0)))`; and where it is made of a list that is filled under a
    condition, may be empty, and is not asked for that, or of the edges of a graph that is handed in,
    `torch.tensor(list(graph.edges)).t()`: `torch.tensor([])` is float32.

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
    calls = called(_INDICES) | {"tensor"}
    targets = values = frozenset({ast.Subscript})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterable[Finding]:
        op = tensor_op(call)
        if op == "tensor":
            return _of_list(call)
        position, name, accepted = _INDICES.get(op, (0, "", _LONG))
        if not name or not call.complete:
            return ()
        index = operand(call, position, name)
        if op in _BAGS and index is not None and _is_promoted(call, index, op):
            return ()
        return self._judged(index, accepted, f"`{op.rpartition('.')[2]}`", call.flow)

    def on_lookup(self, lookup: Lookup) -> Iterator[Finding]:
        if not isinstance(lookup.base, Tensor):
            path = path_of(lookup.node.value) if isinstance(lookup.base, Unknown) else None
            if path is None or not looks_like_tensor(path, lookup.flow.scope):
                return
        for node, index in _indices(lookup):
            if isinstance(index, Tensor) and index.dtypes is not None:
                yield from self._judged(Operand(node, index), _SUBSCRIPT, "A subscript", lookup.flow)

    def on_assign(self, assign: Assign) -> Iterator[Finding]:
        """`y = x[i]` and `x[i] = y`, where no dtype of `i` is known."""
        for part in (assign.expression, assign.target):
            if isinstance(part, ast.Subscript):
                for node in part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]:
                    index = assign.flow.state.names.get(node.id) if isinstance(node, ast.Name) else None
                    if isinstance(node, ast.Name) and isinstance(index, Tensor) and index.dtypes is None:
                        yield from _joined(node, index, assign.flow)

    def _judged(self, index: Operand | None, accepted: frozenset[str], who: str, flow: Flow) -> Iterator[Finding]:
        dtypes = settled(index, flow) if index is not None else None
        if index is None or not dtypes or dtypes & accepted:
            return
        unsure = accepted is _SUBSCRIPT and dtypes <= INTEGRAL
        zero_dim = index.value.zero_dim if isinstance(index.value, Tensor) else None
        if unsure and zero_dim:
            return  # a number of any integer dtype
        unsure = unsure and zero_dim is None
        safe = Applicability.SAFE if dtypes <= INTEGRAL else Applicability.UNSAFE
        found = listed(dtypes) if len(dtypes) <= _FEW else "floating" if dtypes <= FLOATS else "none of these"
        yield Finding(
            index.node,
            f"{who} takes {listed(accepted) if accepted <= _SUBSCRIPT else 'integer'} indices: this one is {found} and raises{' if it has dimensions' * unsure}",
            severity=Severity.WARNING if unsure else None,
            help="Cast it with `.long()`"
            if dtypes <= INTEGRAL
            else "Compute the index in integers: `//`, or `.long()`",
            notes=origin_note(index.value, index.node, f"{found} since here"),
            fix=partial(cast_fix, index.node, "long()", "Cast the index to int64", safe),
        )


def _is_promoted(call: Call, index: Operand, op: str) -> bool:
    """Do offsets bring integers of a bag to their own dtype, or is it the order of old releases, weight first?"""
    dtypes = settled(index, call.flow)
    offsets, weight = call.argument(_BAGS[op], "offsets"), call.argument(1, "weight")
    if dtypes is not None and not dtypes <= INTEGRAL:
        return op == "nn.functional.embedding_bag" and isinstance(weight, Tensor) and "int64" in (weight.dtypes or ())
    return offsets is not None and not (isinstance(offsets, Constant) and offsets.value is None)


def _indices(lookup: Lookup) -> Iterable[tuple[ast.expr, Value]]:
    """What stands in a subscript, each with its value."""
    if not isinstance(lookup.index, Items):
        return [(lookup.node.slice, lookup.index)]
    nodes = lookup.node.slice.elts if isinstance(lookup.node.slice, ast.Tuple) else []
    return zip(nodes, lookup.index.items, strict=True) if len(nodes) == len(lookup.index.items) else ()


def _of_list(call: Call) -> Iterable[Finding]:
    """`x[torch.tensor(kept)]`, of `kept = []` that is filled under a condition."""
    made = call.node.args[0] if len(call.node.args) == 1 and "dtype" not in call.keywords else None
    if not isinstance(made, (ast.ListComp, ast.Name, ast.Call)) or not call.complete or call.flow.function is None:
        return ()
    scope = call.flow.scope
    if isinstance(made, ast.Call):
        return _of_edges(call, made)
    if not begins_empty(made, scope):
        return ()
    used = index_use(call.node, scope)
    if used is None or not may_be_empty(made, used, scope):
        return ()
    subject = looked_into(used, scope)
    if subject is not None and not is_tensor(subject, known(call.flow, subject), call.flow):
        return ()  # an array of NumPy takes it
    listed_there = f"`{made.id}`" if isinstance(made, ast.Name) else "the list"
    return (
        Finding(
            call.node,
            f"If {listed_there} is empty the tensor is float32, and as an index it raises",
            help="Pass `dtype=torch.int64`",
            severity=Severity.WARNING,
            notes=((used, "an index here"),) if used.lineno != call.node.lineno else (),
        ),
    )


def _of_edges(call: Call, made: ast.Call) -> Iterable[Finding]:
    """`edge_index = torch.tensor(list(graph.edges)).t()`, of a graph that the caller hands in."""
    around = parents_at(call.node, call.flow)
    method = around.get(call.node)
    if not isinstance(method, ast.Attribute) or method.attr not in _TURNING or not is_of_edges(made, call.flow.scope):
        return ()
    return (
        Finding(
            call.node,
            "Without edges the tensor is float32, and as an index it raises",
            help="Pass `dtype=torch.int64`",
            severity=Severity.WARNING,
        ),
    )


_TURNING = frozenset({"t", "T", "mT", "transpose"})
_FEW = 2
"""Dtypes that are listed by name."""


def _joined(node: ast.Name, index: Tensor, flow: Flow) -> Iterator[Finding]:
    """`starts = torch.cat((torch.zeros(1), counts.cumsum(0)[:-1]))`, by which something is looked up: whatever the rest is
    of, a floating part makes the whole floating."""
    made = index.origin if index.cast is None else None
    if not isinstance(made, ast.Call) or last_name(made) not in _JOINING or not made.args:
        return
    if all(value is not made for _, value in assignments(flow.scope).get(node.id, ())):
        return
    of_torch = (path_of(made.func) or "").startswith("torch.")
    parts = made.args[0].elts if of_torch and isinstance(made.args[0], (ast.Tuple, ast.List)) else []
    factory = next((part for part in parts if isinstance(part, ast.Call) and _is_floating(part)), None)
    if factory is not None:
        yield Finding(
            factory,
            f"`{last_name(factory)}` without `dtype=` makes the index float32: this raises",
            help="Pass `dtype=torch.int64`",
            notes=((node, "an index here"),),
        )


def _is_floating(factory: ast.Call) -> bool:
    path = path_of(factory.func) or ""
    told = any(keyword.arg in ("dtype", "out", None) for keyword in factory.keywords)
    return path.startswith("torch.") and path.removeprefix("torch.") in _FLOATING and not told


_JOINING = frozenset({"cat", "concat", "concatenate", "hstack"})
_FLOATING = frozenset({"zeros", "ones", "empty", "rand", "randn", "linspace"})
"""Factories that give a floating tensor if they are told no dtype, whatever they are given."""
