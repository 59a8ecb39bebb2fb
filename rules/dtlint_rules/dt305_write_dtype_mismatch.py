"""DT305: a write by index, where what is written has not the dtype of what it is written into."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.symbols import same_dtype
from dtlint.infer.values import Constant, Number, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, bound_once
from dtlint_rules._effects import LIKE
from dtlint_rules._effects import TORCH as PACKAGES
from dtlint_rules._fixes import operand_text
from dtlint_rules._half import half_at
from dtlint_rules._known import known
from dtlint_rules._layers import ends_with_layer
from dtlint_rules._lifted import is_lifted
from dtlint_rules._names import last_name
from dtlint_rules._needs import KNOWN, TORCH, attributes
from dtlint_rules._origin import Kind
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import receiver
from dtlint_rules._ranks import rank_of
from dtlint_rules._refusals import refused
from dtlint_rules._sinks import RAISING
from dtlint_rules._statements import statements
from dtlint_rules._tensors import looks_like_tensor
from dtlint_rules._texts import as_operand, short
from dtlint_rules._widths import cast_to_float32, is_open, may_be_cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint.source.place import Place
    from dtlint_rules._origin import Roots

__all__ = ["WriteDtypeMismatch"]

_WRITES = {
    **dict.fromkeys(
        ("scatter_", "scatter_add_", "scatter_reduce_", "scatter", "scatter_add", "scatter_reduce"), (2, "src")
    ),
    **dict.fromkeys(("index_add_", "index_copy_", "index_reduce_", "index_add", "index_copy"), (2, "source")),
    **dict.fromkeys(("masked_scatter_", "masked_scatter"), (1, "source")),
    **dict.fromkeys(("index_put_", "index_put"), (1, "values")),
}
"""Methods that raise where what they write has another dtype, with the position and the name of that argument."""
_MADE_LIKE = LIKE | {"new_empty", "new_zeros", "new_ones", "new_full"}
"""What makes a tensor in the dtype of another."""
_FLOAT32 = frozenset({"float32"})
_BOOL = frozenset({"bool"})
_COUNTING = frozenset({"arange", "randperm"})
"""Functions that give integers, in one dimension."""
_OF_LISTS = frozenset({"tensor", "as_tensor", "LongTensor"})
_INDICES = re.compile(
    r"(?:^|_)(?:\w*mask|idx|idxs|index|indices|inds?|keep|valid|perm|order|selected|nonzero|where|argsort|topk)\d*(?:_|$)"
)
"""Names of index tensors, and of what gives them."""


class WriteDtypeMismatch(Rule):
    """What is written by index has not the dtype of the tensor that it is written into.

    ## What it does
    Reports `scatter_`, `scatter_add_`, `index_add_`, `index_copy_`, `index_put_`, `masked_scatter_` and `out[index] = x`
    with a tensor as index, where one side is float32 (a factory without `dtype=`, or a cast) and the other has the dtype of
    what the caller gives, and where the two dtypes are known and differ. Under autocast a linear or convolutional layer
    gives half whatever it is given, so `out = torch.zeros_like(x)`, `out[mask] = self.proj(x[mask])` is reported, too,
    where the module makes `self.proj` such a layer itself, or something that ends with one, and so are the experts of a
    ModuleList, `out[mask] = expert(x[mask])`, and `out[mask] = F.linear(x[mask], self.weight)`. So is a number that is made
    a tensor, `scores[[0, 2]] = torch.tensor(-math.inf)`, where the index is a list or made of one.

    Conditional, and so reported with `--preview` only: all but tensors whose dtypes are known to differ.

    ## Why it matters
    Writing a slice casts, `out[:n] = x`; writing by index does not: "Index put requires the source and destination dtypes
    match", "scatter(): Expected self.dtype to be equal to src.dtype". In a float32 run nobody sees it; half inputs and
    autocast raise.

    ## Example
    ```python
    import torch


    def pool(x: torch.Tensor, index: torch.Tensor, groups: int) -> torch.Tensor:
        out = torch.zeros(groups, x.shape[1], device=x.device)
        return out.index_add_(0, index, x)
    ```

    ## Use instead
    ```python
    import torch


    def pool(x: torch.Tensor, index: torch.Tensor, groups: int) -> torch.Tensor:
        out = torch.zeros(groups, x.shape[1], device=x.device)
        return out.index_add_(0, index, x.to(out.dtype))
    ```

    ## Fix safety
    The fix casts what is written to the dtype of the tensor that it is written into. It is unsafe, for where that is half
    digits are lost, and sums of many terms with them: there, make the tensor in float32 instead.

    ## References
    - [Tensor.index_add_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html)
    - [Tensor.scatter_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html)
    """

    code, name, severity = "DT305", "write-dtype-mismatch", Severity.WARNING
    fix = Applicability.UNSAFE
    calls = frozenset(_WRITES)
    triggers = (*attributes(calls), "]=")
    needs = (TORCH, (*KNOWN, *attributes(_MADE_LIKE)))
    targets = frozenset({ast.Subscript})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterator[Finding]:
        if not call.method or not call.complete or not isinstance(call.node.func, ast.Attribute):
            return
        position, name = _WRITES.get(last_name(call.node), (0, ""))
        if not name:
            return
        node, value = call.argument_node(position, name), call.argument(position, name)
        if node is not None and value is not None and (call.target.startswith("torch.Tensor.") or not call.target):
            yield from _judge(
                call.node.func.value, call.receiver, node, value, call.flow, call.node, last_name(call.node)
            )

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        target, value = assign.target, assign.expression
        if type(target) is not ast.Subscript or value is None:
            return ()
        if not isinstance(assign.value, Tensor) and not _is_of_expert(assign):
            return ()
        if isinstance(assign.value, Tensor) and assign.value.zero_dim is True:
            return _of_number(assign, target, value) if _is_by_integers(target.slice, assign.flow) else ()
        if isinstance(assign.value, Tensor) and _surely_differ(assign.base, assign.value):
            certain = _takes_tensor(target.slice, assign.value, assign.flow)
            if certain is False or (certain is None and assign.flow.function is None):
                return ()
        else:
            certain = None
        if not certain and (not _is_by_tensor(target.slice) or _is_counted(target.slice, assign.flow.scope)):
            return ()
        if not isinstance(assign.base, Tensor) and not _holds_numbers(target, assign.flow):
            return ()
        return _judge(target.value, assign.base, value, assign.value, assign.flow, assign.node, "[...] =")


def _of_number(assign: Assign, target: ast.Subscript, number: ast.expr) -> Iterable[Finding]:
    """`scores[torch.tensor(banned)] = torch.tensor(-math.inf)`: a tensor without dimensions is not cast there, either."""
    value, flow = assign.value, assign.flow
    if not isinstance(value, Tensor) or value.dtypes != _FLOAT32 or not isinstance(number, ast.Call):
        return ()
    if last_name(number) not in ("tensor", "as_tensor", "scalar_tensor") or flow.function is None:
        return ()
    held = origins_of(flow.scope)[target.value]
    if not held or not _follows(assign.base, held) or half_at(flow, assign.base, dtype=None, of=target.value) is None:
        return ()
    into = ast.unparse(target.value)
    return (
        Finding(
            assign.node,
            f"`[...] =` by integers raises if `{into}` is half: `{short(number)}` is float32",
            help="Write a Python number, or pass the dtype",
            conditional=True,
        ),
    )


def _is_by_integers(index: ast.expr, flow: Flow) -> bool:
    """Is an index certainly a tensor or list of integers? By a mask a number is filled in, which casts it."""
    if isinstance(index, ast.Tuple):
        return any(_is_by_integers(part, flow) for part in index.elts)
    if isinstance(index, ast.List):
        return bool(index.elts) and all(
            isinstance(part, ast.Constant) and type(part.value) is int for part in index.elts
        )
    made = bound_once(index.id, flow.scope) if isinstance(index, ast.Name) else index
    if isinstance(made, ast.Call) and _is_list_of_integers(made):
        return True
    value = known(flow, index)
    whole = isinstance(value, Tensor) and value.dtypes is not None and value.dtypes <= {"int64", "int32"}
    return whole and isinstance(value, Tensor) and value.zero_dim is False


def _is_list_of_integers(made: ast.Call) -> bool:
    """`torch.tensor([i, j]).long()`, `torch.LongTensor(list(ids))`, `torch.arange(n)`; `ids.long()` may be one number."""
    cast = last_name(made) == "long"
    inner = receiver(made) if cast else made
    if not isinstance(inner, ast.Call):
        return False
    if last_name(inner) in _COUNTING:
        return True
    if last_name(inner) not in _OF_LISTS or not inner.args or not (cast or last_name(inner) == "LongTensor"):
        return False
    given = inner.args[0]
    return isinstance(given, (ast.List, ast.ListComp)) or (isinstance(given, ast.Call) and last_name(given) == "list")


def _is_of_expert(assign: Assign) -> bool:
    """Is what is written what an item of a ModuleList gives, of which nothing else is known: `out[mask] = expert(x[mask])`?"""
    made, function = assign.expression, assign.flow.function
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or not isinstance(assign.value, Unknown):
        return False
    owner = function.owner if function is not None else None
    return owner is not None and ends_with_layer(made.func, assign.flow.scope, owner.node, assign.flow.tree)


def _holds_numbers(target: ast.Subscript, flow: Flow) -> bool:
    """Is it a tensor of which nothing is known that is written into, and neither a dict nor a list: by its other uses, or
    by an index that none of these takes?"""
    path = path_of(target.value)
    if path is not None and looks_like_tensor(path, flow.scope):
        return True
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    return any(isinstance(part, (ast.Compare, ast.UnaryOp)) or _has_dtype(known(flow, part)) for part in parts)


def _has_dtype(index: Value) -> bool:
    return isinstance(index, Tensor) and index.dtypes is not None


def _is_by_tensor(index: ast.expr) -> bool:
    """Is an index a tensor, by its form or its name? Slices and whole numbers are not."""
    if isinstance(index, ast.Compare):
        return isinstance(index.ops[0], (ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.Eq, ast.NotEq))
    if isinstance(index, ast.UnaryOp):
        return isinstance(index.op, ast.Invert)
    if isinstance(index, ast.Tuple):
        return any(map(_is_by_tensor, index.elts))
    path = path_of(index.func if isinstance(index, ast.Call) else index)
    return path is not None and _INDICES.search(path.rpartition(".")[2].lower()) is not None


def _takes_tensor(index: ast.expr, written: Tensor, flow: Flow) -> bool | None:
    """Is an index certainly a tensor with dimensions, or a list, so that a write does not cast? None: not known. What
    has one element casts where a mask says."""
    if isinstance(index, ast.Tuple):
        found = [_takes_tensor(part, written, flow) for part in index.elts]
        return True if True in found else None if None in found else False
    if isinstance(index, (ast.Slice, ast.Constant)):
        return False
    if isinstance(index, ast.List):
        return all(isinstance(part, ast.Constant) and type(part.value) is int for part in index.elts) or None
    mask = index.operand if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert) else index
    if isinstance(mask, ast.Compare):
        mask, of_bools = mask.left, True
    else:
        of_bools = False
    value = known(flow, mask)
    if isinstance(value, (Number, Constant)) or (isinstance(value, Tensor) and value.zero_dim is True):
        return False
    if isinstance(value, Tensor) and value.dtypes is not None and not of_bools and value.dtypes != _BOOL:
        return True if value.zero_dim is False else None
    if isinstance(value, Tensor) and (of_bools or value.dtypes == _BOOL):
        return None if _is_of_one(written) else True
    return True if rank_of(mask, flow) and not _is_of_one(written) else None


def _is_of_one(tensor: Tensor) -> bool:
    """May a tensor be of one element, by the call that makes it: `torch.ones(1)`, `torch.tensor([2.0])`?"""
    made = tensor.origin
    if not isinstance(made, ast.Call) or not made.args:
        return True
    sizes = made.args[0]
    one = isinstance(sizes, ast.Constant) and sizes.value == 1
    return one or (isinstance(sizes, (ast.List, ast.Tuple)) and len(sizes.elts) == 1)


def _is_counted(index: ast.expr, scope: ast.AST) -> bool:
    """Is an index a number, by its name or because a loop counts it: `layer_idx`, `for idx in range(n)`?"""
    names = {part.id for part in ast.walk(index) if isinstance(part, ast.Name)}
    if any(isinstance(part, ast.Attribute) and part.attr.endswith("idx") for part in ast.walk(index)):
        return True
    loops = (node for node in statements(scope) if isinstance(node, (ast.For, ast.AsyncFor)))
    counted = {part.id for loop in loops for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    return not names.isdisjoint(counted)


def _judge(
    into: ast.expr, held: Value, node: ast.expr, value: Value, flow: Flow, place: ast.expr | ast.stmt, name: str
) -> Iterable[Finding]:
    if isinstance(node, ast.Constant):
        return
    if _surely_differ(held, value):
        assert isinstance(held, Tensor) and isinstance(value, Tensor)
        what = f"`{name}` raises: `{short(into)}` is {_one(held)} and `{short(node)}` {_one(value)}"
        yield _finding(place, what, into, node, None, Severity.ERROR)
        return
    if flow.function is None or _is_container(into, flow):
        return
    is_known = any(isinstance(each, Tensor) and each.dtypes == _FLOAT32 for each in (held, value))
    if (
        not is_known
        and not may_be_cast(flow.scope)
        and (flow.function.owner is None or isinstance(node, ast.Attribute))
    ):
        return
    origins = origins_of(flow.scope)
    target, source = origins[into], origins[node]
    wide, wide_source = _is_float32(held, target), _is_float32(value, source)
    if wide_source is None and wide is None and _follows(held, target) and is_lifted(node, flow):
        wide_source = node
    computed = _is_computed(value, source, flow)
    if wide is not None and (is_open(value, source) or computed) and half_at(flow, value, dtype=None) is not None:
        what = f"`{name}` raises if `{short(node)}` is half: `{short(into)}` is float32"
    elif wide_source is not None and _follows(held, target) and half_at(flow, held, dtype=None) is not None:
        what = f"`{name}` raises if `{short(into)}` is half: `{short(node)}` is float32"
    elif (
        computed
        and _follows(held, target)
        and _is_read_of(node, target, flow)
        and half_at(flow, dtype=None) is not None
    ):
        what = f"`{name}` raises under autocast: `{short(node)}` is half there, and `{short(into)}` is not"
    else:
        return
    yield _finding(place, what, into, node, wide or wide_source)


def _is_container(into: ast.expr, flow: Flow) -> bool:
    """Is it a list or a dict, by what the function or the module binds its name to: `BUFFERS = [None] * n`?"""
    if not isinstance(into, ast.Name):
        return False
    bound = assignments(flow.scope).get(into.id) or assignments(flow.tree).get(into.id) or []
    made = [value.left if isinstance(value, ast.BinOp) else value for _, value in bound if value is not None]
    return any(isinstance(each, _CONTAINERS) or last_name(each) in _CONTAINING for each in made)


_CONTAINERS = (ast.List, ast.ListComp, ast.Dict, ast.DictComp)
_CONTAINING = frozenset({"list", "dict", "defaultdict", "OrderedDict", "deque"})


def _is_computed(value: Value, roots: Roots, flow: Flow) -> bool:
    """Is a value what layers that a module makes itself, or products in it, give, with no cast since?"""
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or not owner.is_module or not roots or (flow.contexts and flow.contexts[-1].enabled is False):
        return False
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return False
    return all(
        origin.kind == Kind.CALLED
        and isinstance(origin.node, ast.Call)
        and (_is_product(origin.text) or ends_with_layer(origin.node.func, flow.scope, owner.node, flow.tree))
        for origin in roots
    )


def _is_product(callee: str) -> bool:
    package, _, name = callee.rpartition(".")
    return package in PACKAGES and name in RAISING


def _is_read_of(node: ast.expr, target: Roots, flow: Flow) -> bool:
    """Is what is written computed from what gave the tensor its dtype: `out[mask] = self.proj(x[mask])`?"""
    made_of = {part.text for root in origins_of(flow.scope)[node] for part in root.closure()}
    return any(origin.text.removesuffix(".dtype") in made_of for origin in target)


def _surely_differ(held: Value, value: Value) -> bool:
    """Are both of known floating dtypes, and not the same?"""
    if not isinstance(held, Tensor) or not isinstance(value, Tensor) or value.zero_dim is not False:
        return False
    known = (held.dtypes, value.dtypes)
    return all(dtypes is not None and len(dtypes) == 1 and dtypes <= FLOATING for dtypes in known) and (
        same_dtype(held, value) is False
    )


def _is_float32(value: Value, roots: Roots) -> ast.expr | None:
    """Where a tensor is made float32, by a cast or by a factory that is told no dtype; None where it may be another."""
    if (
        isinstance(value, Tensor)
        and value.dtypes == _FLOAT32
        and value.zero_dim is not True
        and value.origin is not None
    ):
        return cast_to_float32(value, roots) or value.origin
    return cast_to_float32(value, roots)


def _follows(value: Value, roots: Roots) -> bool:
    """Has a tensor the dtype of what is given: itself, or made with `dtype=x.dtype`?"""
    if is_open(value, roots):
        return True
    cast = bool(roots) and all(root.kind == Kind.CAST and not root.text.startswith("torch.") for root in roots)
    return cast and not (isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING)


def _one(tensor: Tensor) -> str:
    return next(iter(tensor.dtypes or ("unknown",)))


def _finding(
    place: ast.expr | ast.stmt,
    what: str,
    into: ast.expr,
    node: ast.expr,
    made: ast.expr | None,
    severity: Severity = Severity.WARNING,
) -> Finding:
    path = path_of(into)
    return Finding(
        place,
        what,
        help=f"Write `{as_operand(node, short(node))}.to({ast.unparse(into)}.dtype)`",
        severity=severity,
        notes=((made, "float32 since here"),) if made is not None and made.lineno != place.lineno else (),
        conditional=severity is not Severity.ERROR,
        fix=partial(_fix, node, path) if path is not None else None,
    )


def _fix(node: ast.expr, into: str, place: Place) -> Fix | None:
    edit = place.replace(node, f"{operand_text(place, node)}.to({into}.dtype)")
    return Fix(f"Cast it to the dtype of `{into}`", (edit,), Applicability.UNSAFE)
