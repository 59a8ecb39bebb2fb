"""Lists that are filled under a condition, and that nobody asks whether anything is in them: `torch.tensor([])` is float32,
whatever the list would have held."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._names import last_name, names_in
from dtlint_rules._parts import keyword, receiver
from dtlint_rules._within import parents_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["begins_empty", "index_use", "is_of_edges", "looked_into", "may_be_empty"]

_TAKING = {
    "index_select": (2, "index"),
    "index_add_": (2, "index"),
    "index_copy_": (2, "index"),
}
"""Functions and methods that take an index, with its place in the function and its name."""
_MOVES = frozenset({"cuda", "cpu", "view", "unsqueeze", "to"})
"""Methods that give what a tensor holds, in its dtype, where `to` is given a device."""
_COUNTS = frozenset({"number_of_edges", "is_empty"})
"""Methods of graphs that tell whether there are edges."""
_ASKING = frozenset({"len", "any", "all", "bool", "max", "min", "sum", "numel", "count_nonzero"})


def may_be_empty(made: ast.expr, used: ast.expr, scope: ast.AST) -> bool:
    """Is it a list of the function that may stay empty, and does the function not ask for that before it is used?"""
    if isinstance(made, ast.Name) and not _is_filled_under_condition(made, used.lineno, scope):
        return False
    return not _is_in_try(made, scope) and not _is_left_before(used.lineno, scope)


def begins_empty(made: ast.expr, scope: ast.AST) -> bool:
    """Is it a list with a condition, `[i for i in x if i > 0]`, or a name that is bound to `[]` and to no other list? Ask
    it before anything else."""
    if isinstance(made, ast.ListComp):
        tests = [test for part in made.generators for test in part.ifs]
        return bool(tests) and not any(map(_leaves_out, tests)) and not _is_counted(made, tests)
    if not isinstance(made, ast.Name):
        return False
    values = [value for _, value in assignments(scope).get(made.id, ()) if value is not None]
    if not values or not isinstance(values[0], ast.List) or values[0].elts:
        return False
    return len(values) == 1 or (len(values) == 2 and any(part is made for part in ast.walk(values[1])))


def index_use(made: ast.Call, scope: ast.AST) -> ast.expr | None:
    """Where something is looked up by a tensor as it is made, at once or by the one name that it is bound to."""
    known = parents_in(scope)
    node = _moved(made, known)
    statement = known.get(node)
    if not isinstance(statement, ast.Assign):
        return node if _is_index(node, known) else None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or len(statement.targets) > 1:
        return None
    if any(line > statement.lineno for line, _ in assignments(scope).get(target.id, ())):
        return None
    reads = (part for part in own_nodes(scope) if isinstance(part, ast.Name) and part.id == target.id)
    behind = sorted((part for part in reads if part.lineno > statement.lineno), key=lambda part: part.lineno)
    if any(_is_asked(part, known) for part in behind):
        return None
    return next((part for part in behind if _is_index(_moved(part, known), known)), None)


def _moved(node: ast.expr, known: Mapping[ast.AST, ast.AST]) -> ast.expr:
    """What a tensor becomes by methods that leave its dtype: `torch.tensor(kept).to(x.device)`."""
    while isinstance(method := known.get(node), ast.Attribute) and isinstance(call := known.get(method), ast.Call):
        if method.attr not in _MOVES or call.func is not method:
            break
        if method.attr == "to" and not all("device" in (path_of(part) or "") for part in call.args):
            break
        node = call
    return node


def _is_index(node: ast.expr, known: Mapping[ast.AST, ast.AST]) -> bool:
    """Is something looked up by it: `x[kept]`, `x[:, kept]`, `x.index_select(0, kept)`?"""
    outer = known.get(node)
    if isinstance(outer, ast.Tuple) and isinstance(known.get(outer), ast.Subscript):
        node, outer = outer, known[outer]
    if isinstance(outer, ast.Subscript):
        return outer.slice is node
    call = known.get(outer) if isinstance(outer, ast.keyword) else outer
    place = _TAKING.get(last_name(call)) if isinstance(call, ast.Call) else None
    if place is None or not isinstance(call, ast.Call):
        return False
    position = place[0] - (path_of(receiver(call) or call) not in ("torch", "th"))
    return keyword(call, place[1]) is node or (len(call.args) > position and call.args[position] is node)


def _is_filled_under_condition(made: ast.Name, used: int, scope: ast.AST) -> bool:
    """Is all that goes into a list appended in a loop under an `if` of it, and is the list but filled and read?"""
    known, appended = parents_in(scope), False
    for part in own_nodes(scope):
        if not isinstance(part, ast.Name) or part.id != made.id or part is made or not isinstance(part.ctx, ast.Load):
            continue
        method = known.get(part)
        if isinstance(method, ast.Attribute) and method.attr == "append":
            if not _is_conditional(part, made, known):
                return False
            appended = True
        elif part.lineno < made.lineno or (part.lineno <= used and _is_asked(part, known)):
            return False
    return appended


def _is_conditional(part: ast.Name, made: ast.Name, known: Mapping[ast.AST, ast.AST]) -> bool:
    """Does it stand under an `if` in a loop, where the other branch appends nothing, and is the list made behind the loop?"""
    guarded = False
    for inner, outer in _around(part, known):
        if isinstance(outer, (ast.If, ast.Try)):
            others = [each for each in ast.walk(outer) if isinstance(each, ast.Name) and each.id == part.id]
            if isinstance(outer, ast.Try) or len(others) > 1 or inner is outer.test or _leaves_out(outer.test):
                return False
            guarded = True
        elif isinstance(outer, (ast.For, ast.While)):
            return guarded and (outer.end_lineno or 0) < made.lineno
    return False


def _leaves_out(test: ast.expr) -> bool:
    """Does a test leave out but a few: `i != dim`, `not i == k`, `name not in skipped`; or let some in for certain,
    `i == 0 or f`, `i % 2 == 0`?"""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return isinstance(test.operand, (ast.Compare, ast.BoolOp))
    if any(isinstance(part, (ast.Or, ast.Mod)) for part in ast.walk(test)):
        return True
    return isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotEq, ast.NotIn, ast.IsNot))


def _is_counted(made: ast.ListComp, tests: list[ast.expr]) -> bool:
    """Do tests ask for numbers that are counted alone: `[i for i in range(8) if i > 3]`?"""
    counted = {name for part in made.generators if last_name(part.iter) == "range" for name in names_in(part.target)}
    return all(set(names_in(test)) <= counted for test in tests)


_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def _is_left_before(line: int, scope: ast.AST) -> bool:
    """Does a function ask whether there is anything, and leave where there is not: `if not mask.any(): return x`?"""
    tests = (
        part.test
        for part in own_nodes(scope)
        if (isinstance(part, ast.Assert) or (isinstance(part, ast.If) and isinstance(part.body[-1], _LEAVING)))
        and part.lineno < line
    )
    return any(isinstance(each, ast.Call) and last_name(each) in _ASKING for test in tests for each in ast.walk(test))


def looked_into(used: ast.expr, scope: ast.AST) -> ast.expr | None:
    """What a subscript looks up in; None where a function of torch does."""
    known = parents_in(scope)
    outer = known.get(used)
    outer = known.get(outer) if isinstance(outer, ast.Tuple) else outer
    return outer.value if isinstance(outer, ast.Subscript) else None


def is_of_edges(made: ast.expr, scope: ast.AST) -> bool:
    """Is it the list of the edges of a graph that the caller hands in, `list(graph.edges)`, which may have none?"""
    if not isinstance(made, ast.Call) or path_of(made.func) != "list" or len(made.args) != 1:
        return False
    edges = made.args[0].func if isinstance(made.args[0], ast.Call) else made.args[0]
    if not isinstance(edges, ast.Attribute) or edges.attr != "edges" or not _COUNTS.isdisjoint(facts(scope).called):
        return False
    if not _SAYING_INT64.isdisjoint(names_in(scope)) or _asks_for_edges(scope):
        return False
    return path_of(edges.value) in {each.arg for each in parameters(scope)}


_SAYING_INT64 = frozenset({"int64", "long", "LongTensor", "int32"})


def _asks_for_edges(scope: ast.AST) -> bool:
    """Does a test of the function speak of edges: `if len(g.edges) == 0`, `if g.edges`?"""
    return any(
        "edges" in names_in(part.test)
        for part in own_nodes(scope)
        if isinstance(part, (ast.If, ast.IfExp, ast.While, ast.Assert))
    )


def _around(node: ast.AST, known: Mapping[ast.AST, ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    while (outer := known.get(node)) is not None:
        yield node, outer
        node = outer


def _is_asked(part: ast.Name, known: Mapping[ast.AST, ast.AST]) -> bool:
    """Does a test, or a function that counts, read a name: `if kept:`, `len(kept)`, `kept.numel()`?"""
    for inner, outer in _around(part, known):
        if isinstance(outer, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return outer.test is inner
        if isinstance(outer, (ast.BoolOp, ast.Compare)):
            return True
        if isinstance(outer, ast.Attribute) and outer.attr in ("numel", "shape", "size", "dtype", "nelement"):
            return True
        if isinstance(outer, ast.Call) and last_name(outer) in _ASKING:
            return True
        if isinstance(outer, ast.stmt):
            return False
    return False


def _is_in_try(made: ast.expr, scope: ast.AST) -> bool:
    return any(isinstance(outer, ast.Try) for _, outer in _around(made, parents_in(scope)))
