"""DT303: one of two values is cast to the dtype of a tensor that it meets, and the other is not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.reach import Reach
from dtlint.infer.survey import facts
from dtlint.rule import Finding, Rule
from dtlint_rules._branches import may_part, of_branches
from dtlint_rules._effects import FACTORIES, JOINING
from dtlint_rules._flags import casts_flags, of_masks
from dtlint_rules._half import half_at, place_in
from dtlint_rules._meanings import is_device, speaks_of_dtype
from dtlint_rules._names import last_name
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._origins import origins_of
from dtlint_rules._provenance import follows
from dtlint_rules._regions import switches_off
from dtlint_rules._siblings import may_be_siblings, of_siblings, of_steps
from dtlint_rules._sinks import escapes
from dtlint_rules._statements import statements
from dtlint_rules._subjects import flat, joined
from dtlint_rules._tables import factors, is_moved, of_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, End, Flow, Operation

__all__ = ["MixedDtypePromotion"]

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div)


class MixedDtypePromotion(Rule):
    """One of two values is cast to the dtype of the tensor that both meet, and the other is not.

    ## What it does
    Reports five forms of one oversight:

    - a value that one branch of an `if` casts to `x.dtype`, and the other branch leaves as it is;
    - of two attributes of one object, such as a mean and a standard deviation, one is cast to `x.dtype` and the other is
      not, in one computation with `x`;
    - a table kept on `self` that is moved to `x.device`, and not cast to `x.dtype`, before it meets `x` in arithmetic,
      a convolution or another product;
    - a mask, a comparison or a one-hot tensor that is cast to float32 by hand and multiplied with what the function is
      given, `x * (labels == other).float()`, where the product is returned or goes into a layer, in a module or in code
      for half, that does not switch autocast off;
    - of two operands that are computed in the same steps, one is cast to float32 on the way, and the other is not:
      `cls_score.float().sigmoid() * obj_score.sigmoid()`.

    All of this is conditional, and reported with `--preview` only: it takes a half tensor.

    ## Why it matters
    Arithmetic, `torch.cat` and `torch.stack` promote: one float32 operand with dimensions makes the result float32,
    with no word, although somebody took care to prevent it at the other place. It is noticed layers later, where half
    weights raise.

    ## Example
    ```python
    import torch


    def standardise(stats: torch.nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        mean = stats.running_mean.to(x.device, x.dtype)
        std = stats.running_var.sqrt()
        return (x - mean) / std
    ```

    ## Use instead
    ```python
    import torch


    def standardise(stats: torch.nn.BatchNorm1d, x: torch.Tensor) -> torch.Tensor:
        mean = stats.running_mean.to(x.device, x.dtype)
        std = stats.running_var.sqrt().to(x.device, x.dtype)
        return (x - mean) / std
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    - [torch.result_type](https://docs.pytorch.org/docs/stable/generated/torch.result_type.html)
    """

    code, name = "DT303", "mixed-dtype-promotion"
    calls = frozenset({"to", "type_as", "type", *FACTORIES})
    triggers = (".dtype", "self.dtype", ".type_as", ".to", ".float")
    needs = (TORCH, attributes((*calls, "float")))
    operators = frozenset(_ARITHMETIC)

    def __init__(self) -> None:
        self.casting: dict[ast.AST, Flow] = {}
        """The functions that cast something, and the first place where they do."""
        self.moved: dict[ast.AST, list[ast.Call]] = {}
        """By function, what is moved to the device of a tensor, and keeps its dtype."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        flow = call.flow
        if flow.function is None or not call.method:
            return ()
        scope = flow.scope
        moved = call.method == "to" and is_moved(call)
        if scope not in self.casting and (moved or _names_dtype_of(call.node)):
            self.casting[scope] = place_in(flow)
        if moved and call.node not in self.moved.setdefault(scope, []):
            self.moved[scope].append(call.node)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not isinstance(node, ast.BinOp) or not (
            isinstance(node.left, ast.Call) and isinstance(node.right, ast.Call)
        ):
            return ()
        return of_steps(node, operation)

    def on_end(self, end: End) -> Iterable[Finding]:
        scope = end.node
        place, moved = self.casting.pop(scope, None), self.moved.pop(scope, ())
        found: list[Finding] = []
        masks = facts(scope).floats and end.flow.function is not None and casts_flags(scope)
        if masks and _is_meant_for_half(end.flow) and not switches_off(scope):
            found += of_masks(end)
        if place is not None:
            found += _of_casts(end, place, moved)
        return found


def _of_casts(end: End, place: Flow, moved: Iterable[ast.Call]) -> Iterable[Finding]:
    """What a function casts to the dtype of something, and what it leaves as it is."""
    scope = end.node
    casts = [call for call in facts(scope).telling if follows(call)]
    if not (casts or moved) or _is_kernel(scope):
        return ()
    branches = [node for node in statements(scope) if isinstance(node, ast.If) and may_part(node)]
    operate = bool(moved) or may_be_siblings(casts, scope)
    found = list(_judged(end, branches, operate, moved)) if branches or operate else []
    return found if found and half_at(place, dtype=None) is not None else ()


def _is_kernel(scope: ast.AST) -> bool:
    """Is a function compiled for a GPU, `@triton.jit`? Who writes kernels chooses the width of each step."""
    return any(last_name(part) in ("jit", "kernel", "prim_func") for part in getattr(scope, "decorator_list", ()))


def _judged(end: End, branches: list[ast.If], operate: bool, moved: Iterable[ast.Call]) -> Iterator[Finding]:
    """The findings of the branches that may cast differently, and, where anything may be found there, of what meets."""
    origins = origins_of(end.node)
    for statement in branches:
        yield from of_branches(statement, origins, end.node)
    seen: set[ast.AST] = set()
    for node in reversed(origins.of) if operate else ():
        operands, multiplied = _operands(node), factors(node) if moved else []
        found = [*of_siblings(operands, origins, end.node), *of_tables(operands, origins, moved)] if operands else []
        if found and not escapes(node, end.node, end.flow.tree):
            found = []
        for finding in (*found, *(of_tables(multiplied, origins, moved, raises=True) if multiplied else ())):
            if finding.node not in seen:
                seen.add(finding.node)
                yield finding


def _operands(node: ast.AST) -> list[ast.expr]:
    """The tensors that meet in a sum, a product or a joining function."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return [*_terms(node.left), *_terms(node.right)]
    return flat(joined(node)) if isinstance(node, ast.Call) and last_name(node) in JOINING else []


def _terms(node: ast.expr) -> list[ast.expr]:
    """What an expression adds up and multiplies; itself where it does not."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC):
        return [*_terms(node.left), *_terms(node.right)]
    return [node]


def _is_meant_for_half(place: Flow) -> bool:
    """Does half reach a function for a reason: it casts something to a dtype that it is given, it is a method of a
    module, or it is one of no class, and the file asks for half?"""
    reached, owner = half_at(place, dtype=None), place.function.owner if place.function is not None else None
    if reached is None:
        return False
    meant = reached.level > Reach.LIBRARY if owner is None else owner.is_module
    return meant or any(map(follows, facts(place.scope).telling))


def _names_dtype_of(node: ast.Call) -> bool:
    """Does a cast name the dtype of something: `.to(x.dtype)`, `.to(dtype)`, `.type_as(x)`?"""
    name = last_name(node)
    if name == "type_as" or speaks_of_dtype(node):
        return True
    return name == "to" and len(node.args) == 1 and isinstance(node.args[0], ast.Name) and not is_device(node.args[0])
