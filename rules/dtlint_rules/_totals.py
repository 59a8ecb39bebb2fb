"""Sums in half: running totals, which stop growing, and sums of squares, which leave its range."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, LOW_PRECISION
from dtlint.infer.domain.values import Ref, Tensor
from dtlint.infer.names import path_of
from dtlint_rules._attained import dtypes_of, found, last_name_of, only
from dtlint_rules._module_walks import root_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.rule import Finding

__all__ = ["running_totals", "sums_of_squares"]

_WIDE = frozenset({"float32", "float64"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def running_totals(facts: ModuleFacts) -> Iterator[Finding]:
    """`total = total + x`, of a tensor without dimensions, and `total += x` of what is wider, in a loop."""
    for seen in facts.operations(_is_total):
        if not _is_repeated(facts, seen.what):
            continue
        total = min(dtypes_of(seen.what.args[0]))
        end = 2 / DTYPES[total].eps
        text = f"The running total is {total}: it stops growing at {end:.0f} times what is added"
        yield found(seen, text, "Keep the total in float32, or add `.item()`")


def _is_total(operation: Operation) -> bool:
    if last_name_of(operation) != "add" or len(operation.args) != 2:
        return False
    total, added = operation.args
    if not isinstance(total, Tensor) or not only(total, LOW_PRECISION) or not isinstance(added, Tensor):
        return False
    in_place = operation.op.endswith("_")
    scalar = total.rank == 0 and only(added, LOW_PRECISION) and added.rank == 0
    wider = in_place and only(added, _WIDE)
    return (scalar or wider) and _is_its_own(operation.node, operation.module.tree)


def _is_its_own(node: ast.AST, tree: ast.Module) -> bool:
    """Does the sum go where one of its operands is from?"""
    if isinstance(node, ast.AugAssign):
        return True
    if isinstance(node, ast.Call):
        own = isinstance(node.func, ast.Attribute) and node.func.attr == "add_"
        return own and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
    if not isinstance(node, ast.BinOp):
        return False
    operands = {ast.unparse(node.left), ast.unparse(node.right)}
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and any(inner is node for inner in ast.walk(one.value)):
            return not operands.isdisjoint(map(ast.unparse, one.targets))
    return False


def _is_repeated(facts: ModuleFacts, operation: Operation) -> bool:
    """Is it made many times, in a loop or by a call that stands in one, where the total outlives that call?"""
    node, tree = operation.node, operation.module.tree
    here = [loop for loop in _loops(node, tree) if not _has_a_total_each(loop, node)]
    if _is_made_anew(node, tree):
        return _rounds(facts, here) > _FEW and not _adds_terms(node, tree)
    calls = (_loops(step.node, step.module.tree) for step in operation.calls)
    return any(_rounds(facts, loops) > _FEW for loops in (here, *map(list, calls)))


_Loop = ast.For | ast.AsyncFor | ast.While
_FEW = 256
"""Rounds after which a total still holds what is added."""
_LAYERS = 16
"""What a module has of a kind, where that is not known."""
_PARTS = frozenset({"items", "keys", "values", "parameters", "named_parameters", "children", "named_children"})
"""Methods of a dict and of a module: these hold few things."""
_LOADER = "torch.utils.data.DataLoader"
_OF_LAYERS = frozenset(f"torch.nn.{name}" for name in ("ModuleList", "ModuleDict", "Sequential", "ParameterList"))


def _loops(node: ast.AST, tree: ast.Module) -> Iterator[_Loop]:
    """The loops that a node stands in."""
    line: int = getattr(node, "lineno", 0)
    for loop in ast.walk(tree):
        if isinstance(loop, _LOOPS) and loop.lineno <= line <= (loop.end_lineno or 0):
            yield loop


def _rounds(facts: ModuleFacts, loops: Sequence[_Loop]) -> float:
    """How often the body of loops in one another runs, as far as that is known; 0 where there are none."""
    found = [math.inf if isinstance(loop, ast.While) else _length(facts, loop.iter) for loop in loops]
    return math.prod(found) if found else 0


def _length_of_unknown(facts: ModuleFacts) -> float:
    """How much is looped over of which that is not known: in a program any amount. Who writes a function for others mostly adds
    up the losses of a few scales, layers or devices."""
    return math.inf if facts.assumption is None else 1


def _length(facts: ModuleFacts, node: ast.expr) -> float:
    """How much is looped over: the layers of a module, what is written out, a range up to a number; else any amount."""
    unknown = _length_of_unknown(facts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "range":
            return max((_bound(facts, one) for one in node.args), default=math.inf)
        lengths = [_length(facts, one) for one in node.args]
        if node.func.id in ("enumerate", "zip", "reversed"):
            return min(lengths, default=math.inf)
        return max((unknown, *lengths[:1]))  # `tqdm(loader)`
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "unbind":
            return math.inf
        return _LAYERS if node.func.attr in _PARTS else unknown
    items, value = facts.items(node), facts.value(node)
    if items is not None:
        return len(items)
    if isinstance(value, Ref) and value.address.kind in _OF_LAYERS:
        return _LAYERS
    is_loader = (isinstance(value, Ref) and value.address.kind == _LOADER) or _is_declared(facts, node, "DataLoader")
    return math.inf if is_loader or _is_tensor(facts, node) else unknown


def _bound(facts: ModuleFacts, node: ast.expr) -> float:
    """The bound of a range: a number, the length of a tensor, which is any, or something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    sizes = [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    counted = node.args[0] if isinstance(node, ast.Call) and ast.unparse(node.func) == "len" and node.args else None
    of_a_tensor = not {"shape", "size"}.isdisjoint(sizes) or (counted is not None and _is_tensor(facts, counted))
    return math.inf if of_a_tensor else _length_of_unknown(facts)


def _is_tensor(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a tensor? What a function is given without a declaration, and loops over, is rather a list of some, unless it has
    attributes."""
    if not isinstance(facts.value(node), Tensor):
        return False
    made = facts.around.definitions(node) if isinstance(node, ast.Name) else ()
    if not any(isinstance(one, ast.arg) and one.annotation is None for one in made):
        return True
    function = facts.around.function(node)
    return function is not None and any(
        isinstance(one, ast.Attribute) and ast.unparse(one.value) == ast.unparse(node) for one in ast.walk(function)
    )


def _is_declared(facts: ModuleFacts, node: ast.expr, name: str) -> bool:
    """Is it a parameter that is declared to be of a class?"""
    made = facts.around.definitions(node) if isinstance(node, ast.Name) else ()
    return any(isinstance(one, ast.arg) and one.annotation and name in ast.unparse(one.annotation) for one in made)


def _has_a_total_each(loop: _Loop, node: ast.AST) -> bool:
    """Has each round a total of its own: `for i in range(n): totals[i] += x`, `for p in parameters: p += x`?"""
    target = node.target if isinstance(node, ast.AugAssign) else None
    if target is None or isinstance(loop, ast.While):
        return False
    rounds = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    counted = isinstance(loop.iter, ast.Call) and ast.unparse(loop.iter.func) in ("range", "enumerate")
    root = root_of(target)
    named = ast.walk(target) if counted else [root]
    return any(isinstance(one, ast.Name) and one.id in rounds for one in named)


def _is_made_anew(node: ast.AST, tree: ast.Module) -> bool:
    """Is the total a variable that the function itself binds to what a call or an operator gives?"""
    bound = _bound_to(node, tree)
    return bool(bound) and all(isinstance(value, (ast.Call, ast.BinOp, ast.Constant)) for value in bound)


def _bound_to(node: ast.AST, tree: ast.Module) -> list[ast.expr]:
    """What the function binds the total to, where that is a variable."""
    target: ast.expr | None = node.target if isinstance(node, ast.AugAssign) else None
    while isinstance(target, ast.Subscript):
        target = target.value
    functions = [one for one in ast.walk(tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    inside = [one for one in functions if any(inner is node for inner in ast.walk(one))]
    if not isinstance(target, ast.Name) or not inside:
        return []
    return [
        one.value
        for one in ast.walk(inside[-1])
        if isinstance(one, ast.Assign)
        and any(isinstance(name, ast.Name) and name.id == target.id for name in one.targets)
    ]


def _adds_terms(node: ast.AST, tree: ast.Module) -> bool:
    """Are the terms of a sum added to the first one, `scores = q @ k` and `for bias in biases: scores += bias`? A total that
    grows with the data begins at nothing."""
    loops = [
        one
        for one in ast.walk(tree)
        if isinstance(one, (ast.For, ast.AsyncFor))
        and any(inner is node for part in one.body for inner in ast.walk(part))
    ]
    if not isinstance(node, ast.AugAssign) or not loops:
        return False
    items = {one.id for one in ast.walk(loops[-1].target) if isinstance(one, ast.Name)}
    terms = (node.value.left, node.value.right) if isinstance(node.value, ast.BinOp) else (node.value,)
    return any(isinstance(one, ast.Name) and one.id in items for one in terms) and not any(
        _begins_at_nothing(value) for value in _bound_to(node, tree)
    )


def _begins_at_nothing(value: ast.expr) -> bool:
    """Is a total made by a factory, or a number?"""
    name = (path_of(value.func) or "").rpartition(".")[2] if isinstance(value, ast.Call) else ""
    return isinstance(value, ast.Constant) or name in _FACTORIES or "zero" in name


_FACTORIES = frozenset({"tensor", "as_tensor", "full", "full_like", "new_full", "new_tensor", "empty", "empty_like"})


def sums_of_squares(facts: ModuleFacts) -> Iterator[Finding]:
    """Sums over all elements of squares of float16 with several dimensions."""
    for seen in facts.operations(_sums_squares):
        text = "The sum of squares is float16: beyond 65504 it is inf"
        yield found(seen, text, "Sum in float32: `.sum(dtype=torch.float32)`")


def _sums_squares(operation: Operation) -> bool:
    if last_name_of(operation) != "sum" or len(operation.args) != 1 or operation.keywords:
        return False
    squares = operation.args[0]
    if not only(squares, frozenset({"float16"})) or not only(operation.result, frozenset({"float16"})):
        return False
    many = (
        isinstance(squares, Tensor) and squares.rank is not None and squares.rank >= 2 and squares.range.magnitude > 1
    )
    return many and isinstance(operation.node, ast.Call) and _is_square(_summed(operation.node))


def _summed(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return call.func.value if isinstance(call.func, ast.Attribute) else None


def _is_square(node: ast.expr | None) -> bool:
    match node:
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return ast.unparse(left) == ast.unparse(right)
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=2)):
            return True
        case ast.Call(func=ast.Attribute(attr="square")):
            return True
        case ast.Call(func=ast.Attribute(attr="pow"), args=[*_, ast.Constant(value=2)]):
            return True
    return False
