"""A tensor of the default dtype that other ranks send a tensor into: a collective refuses tensors of two dtypes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.rule import Finding
from dtlint_rules._factories import MAKERS, fix_after, roots_told, says
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._kept import kept
from dtlint_rules._meanings import counts
from dtlint_rules._names import last_name
from dtlint_rules._parts import keyword
from dtlint_rules._statements import statements
from dtlint_rules._texts import short
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.events import Flow
    from dtlint_rules._origin import Origin
    from dtlint_rules._origins import Origins

__all__ = ["gathered"]

_COLLECTIVES = {
    "all_gather": (("tensor_list", 0), ("tensor", 1)),
    "all_gather_into_tensor": (("output_tensor", 0), ("input_tensor", 1)),
    "_all_gather_base": (("output_tensor", 0), ("input_tensor", 1)),
    "all_to_all_single": (("output", 0), ("input", 1)),
    "reduce_scatter_tensor": (("output", 0), ("input", 1)),
    "gather": (("gather_list", 1), ("tensor", 0)),
}
"""What each writes into, and what it sends, by name and place."""
_MOVING = frozenset({"cuda", "to", "contiguous", "view", "reshape", "requires_grad_", "pin_memory"})


def gathered(factory: ast.Call, after: dict[Origin, ast.expr | None], origins: Origins, place: Flow) -> Finding | None:
    """`parts = [torch.empty(x.shape, device=x.device) for _ in range(size)]`, `dist.all_gather(parts, x)`."""
    if _COLLECTIVES.keys().isdisjoint(facts(place.scope).called):
        return None
    name = _held_as(factory, place.scope)
    if name is None or _is_rebound(name, place.scope):
        return None
    for call in facts(place.scope).calls:
        known = _COLLECTIVES.get(last_name(call))
        if known is None or not _is_of_torch(call, place) or call.lineno < factory.lineno:
            continue
        into, sent = (_argument(call, *each) for each in known)
        if into is None or sent is None or path_of(into) != name:
            continue
        for tensor in _sent(sent, name, place.scope):
            if _is_made_here(tensor, place.scope):
                continue
            origin = next((origin for origin in roots_told(origins[tensor], factory) if origin in after), None)
            if origin is None or counts(origin):
                continue
            direct = after[origin]
            told = path_of(direct) if direct is not None else None
            source = told or path_of(tensor)
            return Finding(
                factory,
                f"{says(factory)}: `{last_name(call)}` raises if `{short(tensor)}` has another dtype",
                help=f"Pass `dtype={source}.dtype`"
                if source is not None
                else "Pass the dtype of the tensor that is sent",
                notes=((call, "sent here"),),
                conditional=True,
                fix=fix_after(told) if told is not None else None,
            )
    return None


def _held_as(factory: ast.Call, scope: ast.AST) -> str | None:
    """The name of what a factory's tensor is, or of the list that holds it; None where it is cast on the way."""
    known, node = parents_in(scope), factory
    outer: ast.AST | None = known.get(node)
    inner: ast.AST = node
    while outer is not None:
        if isinstance(outer, ast.Attribute):
            call = known.get(outer)
            if outer.attr not in _MOVING or not isinstance(call, ast.Call) or _names_dtype(call):
                return None
            inner, outer = call, known.get(call)
            continue
        if isinstance(outer, ast.Call) and last_name(outer) == "append" and inner in outer.args:
            return path_of(outer.func.value) if isinstance(outer.func, ast.Attribute) else None
        if isinstance(outer, ast.Assign):
            return path_of(outer.targets[0]) if len(outer.targets) == 1 else None
        is_item = isinstance(outer, (ast.List, ast.ListComp, ast.IfExp)) or (
            isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Mult) and isinstance(inner, ast.List)
        )
        if not is_item:
            return None
        inner, outer = outer, known.get(outer)
    return None


def _names_dtype(call: ast.Call) -> bool:
    """May a method give another dtype: `.to(x)`, `.to(torch.int64)`? Not `.to(x.device)` and `.to("cuda")`."""
    if last_name(call) != "to":
        return False
    told = [*call.args, *(each.value for each in call.keywords if each.arg not in ("device", "non_blocking"))]
    return not all(isinstance(part, ast.Constant) or "device" in last_name(part) for part in told)


def _is_of_torch(call: ast.Call, place: Flow) -> bool:
    """Does the file import what is called from torch.distributed, and define nothing of the name?"""
    root, dot, rest = (path_of(call.func) or "").partition(".")
    source = None if root in _taken(place.scope) else _imported(place.tree).get(root)
    return source is not None and f"{source}{dot}{rest}".rpartition(".")[0] == "torch.distributed"


@kept
def _imported(tree: ast.Module) -> dict[str, str | None]:
    """The names that a file imports, each with what it is of; None for what it defines, or imports from two places."""
    found: dict[str, str | None] = {}
    for node in statements(tree):
        named: list[tuple[str, str | None]] = []
        if isinstance(node, ast.Import):
            named = [
                (each.asname or _first(each.name), each.name if each.asname else _first(each.name))
                for each in node.names
            ]
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            named = [(each.asname or each.name, f"{source}.{each.name}") for each in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            named = [(node.name, None)]
        elif isinstance(node, ast.Assign):
            named = [(target.id, None) for target in node.targets if isinstance(target, ast.Name)]
        for name, source_of_it in named:
            found[name] = source_of_it if found.get(name, source_of_it) == source_of_it else None
    return found


def _first(name: str) -> str:
    return name.partition(".")[0]


def _taken(scope: ast.AST) -> set[str]:
    return {parameter.arg for parameter in parameters(scope)}


def _is_rebound(name: str, scope: ast.AST) -> bool:
    """Is a name bound more than once, so that what is sent into may be another tensor?"""
    bound = [
        node
        for node in own_nodes(scope)
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store) and path_of(node) == name
    ]
    return len(bound) + (name in _taken(scope)) > 1


def _is_made_here(node: ast.expr, scope: ast.AST) -> bool:
    """Is what is sent made with a factory itself, whose dtype may well be the same?"""
    stored = [part for part in own_nodes(scope) if isinstance(part, ast.Assign)]
    seen: set[str] = set()
    waiting: list[ast.expr] = [node]
    while waiting:
        for part in ast.walk(waiting.pop()):
            if isinstance(part, ast.Call) and last_name(part) in MAKERS:
                return True
            name = path_of(part)
            if name is not None and name not in seen:
                seen.add(name)
                waiting += [each.value for each in stored if name in map(path_of, each.targets)]
    return False


def _argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return None
    return call.args[position] if position < len(call.args) else keyword(call, name)


def _sent(node: ast.expr, name: str, scope: ast.AST) -> Iterator[ast.expr]:
    """The tensor that a rank sends; where it is an item of the list itself, `parts[rank]`, what else the list is given."""
    if not isinstance(node, ast.Subscript) or path_of(node.value) != name:
        yield node
        return
    for part in own_nodes(scope):
        if isinstance(part, ast.Call) and last_name(part) == "append" and path_of(part.func) == f"{name}.append":
            yield from part.args
