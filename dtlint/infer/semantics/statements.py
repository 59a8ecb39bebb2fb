"""Statements: one function for each kind of syntax node. Each says whether its end is reached."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.context import Exits, NeverReturns, TooLong, Unfit
from dtlint.infer.domain.lattice import join, join_all, widen
from dtlint.infer.domain.values import (
    ABSENT,
    NONE,
    TOP,
    Generator,
    Many,
    Ref,
    Tuple,
    Value,
    choices,
)
from dtlint.infer.semantics import names, narrowing, operators
from dtlint.infer.semantics.branches import alternatives, do_on_each_way_out, ways_out
from dtlint.infer.semantics.expressions import evaluate
from dtlint.infer.semantics.iterations import is_unrolled, makes_objects, once_more
from dtlint.infer.semantics.matching import match_statement
from dtlint.infer.semantics.narrowing import narrow
from dtlint.infer.semantics.regions import with_statement
from dtlint.infer.walk import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.context import Context
    from dtlint.infer.state import Difference

__all__ = ["MOST_ROUNDS", "ROUNDS_JOINED", "execute", "result_of_body"]

_MOST_TOGETHER = 150
"""Rounds that are run one by one of loops in one another."""
ROUNDS_JOINED, MOST_ROUNDS = 2, 10
"""Rounds of a fixed point in which states are joined, before they are widened; and those after which they are Top."""


def execute(ctx: Context, body: Sequence[ast.stmt]) -> bool:
    """Run statements one after the other; is the end reached?"""
    ctx.steps_left -= len(body)
    if ctx.steps_left < 0:
        raise TooLong
    for node in body:
        function = _EXECUTE.get(type(node))
        if function is None:
            continue
        try:
            if not function(ctx, node):
                return False
        except Unfit:
            if ctx.frame.trying:
                return False
            if isinstance(node, ast.AugAssign):
                names.assign(ctx, node.target, TOP)
        except NeverReturns:
            return False
    return True


def result_of_body(ctx: Context, body: Sequence[ast.stmt]) -> Value | None:
    """Run the statements of a function: what it gives at their end, in the state that is there; None where the end is not
    reached, and where it is left earlier. Other ways out are left with the frame, as are those of a `return` at the end where
    there are any."""
    *before, last = body
    if not isinstance(last, ast.Return):
        return NONE if execute(ctx, body) else None
    if not execute(ctx, before):
        return None
    ctx.steps_left -= 1
    try:
        return NONE if last.value is None else evaluate(ctx, last.value)
    except Unfit:
        return None if ctx.frame.trying else NONE
    except NeverReturns:
        return None


IMPORT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
"""What catches that an imported module is not there."""


def execute_up_to_missing(ctx: Context, body: Sequence[ast.stmt]) -> bool:
    """Run statements up to the first import of what is certainly not there; is the end reached?"""
    for place, node in enumerate(body):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and ctx.modules.is_missing(ctx.frame.module, node):
            execute(ctx, body[:place])
            return False
    return execute(ctx, body)


def _expression(ctx: Context, node: ast.Expr) -> bool:
    evaluate(ctx, node.value)
    return True


def _assign(ctx: Context, node: ast.Assign) -> bool:
    value = evaluate(ctx, node.value)
    for target in node.targets:
        names.assign(ctx, target, value)
    return True


def _annotated(ctx: Context, node: ast.AnnAssign) -> bool:
    if node.value is not None:
        names.assign(ctx, node.target, evaluate(ctx, node.value))
    return True


def _augmented(ctx: Context, node: ast.AugAssign) -> bool:
    target = node.target
    known = evaluate(ctx, _as_read(target))
    given = evaluate(ctx, node.value)
    ctx.site = node
    value = operators.augmented(ctx, type(node.op), known, given, node)
    if ctx.recorder is not None:
        ctx.recorder.evaluated(node, (known, given), value, ctx)
    names.assign(ctx, target, value)
    return True


def _as_read(target: ast.expr) -> ast.expr:
    """The target of `x += 1` as an expression that is read: a node of its own, made once."""
    found: Any = getattr(target, "_read", None)
    if found is None:
        found = type(target)(**{name: getattr(target, name) for name in target._fields})
        found.ctx = ast.Load()
        ast.copy_location(found, target)
        target._read = found  # type: ignore[attr-defined]
    assert isinstance(found, ast.expr)
    return found


def _delete(ctx: Context, node: ast.Delete) -> bool:
    for target in node.targets:
        if isinstance(target, ast.Name):
            names.unbind(ctx, target.id)
        elif isinstance(target, ast.Attribute):
            owner = evaluate(ctx, target.value)
            if isinstance(owner, Ref):
                ctx.store.delete(owner.address, target.attr)
        elif isinstance(target, ast.Subscript):
            owner, index = evaluate(ctx, target.value), evaluate(ctx, target.slice)
            ctx.semantics.assign_item(ctx, owner, index, ABSENT, target)
    return True


def _return(ctx: Context, node: ast.Return) -> bool:
    value = NONE if node.value is None else evaluate(ctx, node.value)
    frame = ctx.frame
    frame.returns.append((ctx.store.difference(frame.mark), value))
    return False


def _raise(ctx: Context, node: ast.Raise) -> bool:
    if node.exc is not None:
        evaluate(ctx, node.exc)
    return False


def _assert(ctx: Context, node: ast.Assert) -> bool:
    if ctx.semantics.truth(ctx, evaluate(ctx, node.test)) is False:
        return _goes_on(ctx, node.test)
    try:
        narrow(ctx, node.test, True)
    except NeverReturns:
        return _goes_on(ctx, node.test)
    return True


def _if(ctx: Context, node: ast.If) -> bool:
    known = ctx.semantics.truth(ctx, evaluate(ctx, node.test))

    def branch(holds: bool) -> Callable[[], bool]:
        def run() -> bool:
            narrow(ctx, node.test, holds)
            return execute(ctx, node.body if holds else node.orelse)

        return run

    if known is None:
        going_on = [holds for holds in (True, False) if not _only_raises(ctx, node.body if holds else node.orelse)]
        return alternatives(ctx, [branch(holds) for holds in going_on or (True, False)])
    taken, other = (node.body, node.orelse) if known else (node.orelse, node.body)
    if not taken or not isinstance(taken[-1], ast.Raise):
        return branch(known)()
    if _only_raises(ctx, taken):
        return _goes_on(ctx, node.test) and execute(ctx, other)
    return alternatives(ctx, [branch(known), lambda: _goes_on(ctx, node.test) and execute(ctx, other)])


def _only_raises(ctx: Context, body: Sequence[ast.stmt]) -> bool:
    """Does a branch do no more than make an exception and raise it, in a function of a module that nobody is told of, where
    nothing in view catches it? Then it leaves nothing behind, and is not run: checks of arguments consist of such branches."""
    function = ctx.frame.function
    if not body or not isinstance(body[-1], ast.Raise) or function is None or function.is_generator:
        return False
    is_told = ctx.recorder is not None and ctx.recorder.concerns(ctx.frame.module)
    return not is_told and not ctx.store.may_be_caught and all(map(_goes_straight_on, body[:-1]))


def _goes_straight_on(node: ast.stmt) -> bool:
    """Does a statement lead to the next one, and nowhere else, unless it raises?"""
    if isinstance(node, ast.If):
        return all(map(_goes_straight_on, (*node.body, *node.orelse)))
    return isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Pass))


_OF_DTYPES = frozenset({"dtype", "is_floating_point", "is_complex"})


def _goes_on(ctx: Context, test: ast.expr) -> bool:
    """Does the program go on behind a check that fails as far as is seen? Programs are taken to pass their checks, and what was
    asked about is unknown behind one. But a check of a dtype is taken at its word, and `assert False` is."""
    if isinstance(test, ast.Constant):
        return False
    if any(isinstance(part, ast.Attribute) and part.attr in _OF_DTYPES for part in nodes([test])):
        return False
    narrowing.forget(ctx, test)
    return True


# -- loops ---------------------------------------------------------------------------------------------------------------


def _for(ctx: Context, node: ast.For | ast.AsyncFor) -> bool:
    iterable = evaluate(ctx, node.iter)
    items = ctx.semantics.items(ctx, iterable, node.iter)
    running = any(isinstance(one, Generator) for one in choices(iterable))
    around = ctx.frame.loops[-1].times if ctx.frame.loops else 1
    if isinstance(items, Tuple) and is_unrolled(items) and around * len(items.items) <= _MOST_TOGETHER:
        return _unrolled(ctx, node, items.items, around * len(items.items), iterable if running else None)
    if isinstance(items, Tuple):
        items = Many(join_all(items.items) or TOP)
    item = items.item if isinstance(items, Many) else TOP

    def begin() -> bool:
        given = item
        if running:  # its body runs between the rounds, and sees what they change
            now = ctx.semantics.items(ctx, iterable, node.iter)
            given = join(item, now.item) if isinstance(now, Many) else item
        names.assign(ctx, node.target, given)
        return True

    return _fixed_point(ctx, node, begin, lambda: execute(ctx, node.orelse))


def _unrolled(
    ctx: Context, node: ast.For | ast.AsyncFor, items: tuple[Value, ...], times: int, running: Value | None
) -> bool:
    """Run the body for each item; `break` and `continue` meet behind it.

    Args:
        running: a generator, whose body runs between the rounds, and sees what they change.
    """
    store, frame = ctx.store, ctx.frame
    exits = Exits(store.mark(), times=times)
    frame.loops.append(exits)
    reached, apart = True, False
    try:
        for place, item in enumerate(items):
            exits.continues, exits.inner = [], {}

            def body(item: Value = item, place: int = place) -> bool:
                now = ctx.semantics.items(ctx, running, node.iter) if running is not None and place else None
                if isinstance(now, Tuple) and place < len(now.items):
                    item = join(item, now.items[place])
                names.assign(ctx, node.target, item)
                return execute(ctx, node.body)

            reached = once_more(ctx, node, body) if apart else body()
            apart = apart or makes_objects(ctx, exits.mark)
            if reached and not exits.continues:
                continue
            ends: list[Difference] = [store.difference(exits.mark)] if reached else []
            ends += exits.continues
            store.undo(exits.mark)
            reached = bool(ends)
            if not reached:
                break
            store.merge(ends)
    finally:
        frame.loops.pop()
    return _behind(ctx, exits, reached, lambda: execute(ctx, node.orelse))


def _while(ctx: Context, node: ast.While) -> bool:
    state: dict[str, bool] = {"ends": True}

    def begin() -> bool:
        known = ctx.semantics.truth(ctx, evaluate(ctx, node.test))
        state["ends"] = known is not True
        if known is False:
            return False
        narrow(ctx, node.test, True)
        return True

    def finish() -> bool:
        if ctx.semantics.truth(ctx, evaluate(ctx, node.test)) is True:
            return False
        narrow(ctx, node.test, False)
        return execute(ctx, node.orelse)

    return _fixed_point(ctx, node, begin, finish)


def _fixed_point(
    ctx: Context,
    node: ast.For | ast.AsyncFor | ast.While,
    begin: Callable[[], bool],
    finish: Callable[[], bool],
) -> bool:
    """Run a loop's body until its entry state holds for every round, then go on behind it."""
    store, frame = ctx.store, ctx.frame
    mark = store.mark()
    exits = Exits(mark, times=frame.loops[-1].times if frame.loops else 1)
    entry: Difference = {}

    def run() -> bool:
        return begin() and execute(ctx, node.body)

    around = frame.loops[-1].inner if frame.loops else {}
    if node in around:  # loops in one another would take as many rounds as all of theirs multiplied
        before, exits.inner = around[node]
        store.merge([{}, before])
        entry = store.take(mark)
    apart = False
    for count in range(MOST_ROUNDS):
        exits.breaks, exits.continues = [], []
        store.apply(entry)
        frame.loops.append(exits)
        ctx.undecided += 1
        try:
            reached = once_more(ctx, node, run) if apart else run()
        except NeverReturns:
            reached = False
        finally:
            ctx.undecided -= 1
            frame.loops.pop()
        ends = [entry, *exits.continues]
        if reached:
            ends.append(store.difference(mark))
        apart = apart or makes_objects(ctx, mark)
        store.undo(mark)
        if len(ends) == 1:
            break
        store.merge(ends, join if count < ROUNDS_JOINED else widen)
        grown = store.take(mark)
        if _same(ctx, entry, grown):
            break
        entry = grown
    else:
        entry = {cell: TOP if cell[1] != "*made" else value for cell, value in entry.items()}
        ctx.notes.append("a loop has no fixed point")
    around[node] = entry, exits.inner
    store.apply(entry)
    return _behind(ctx, exits, True, finish)


def _same(ctx: Context, entry: Difference, grown: Difference) -> bool:
    """Are two states the same, each given by its difference from here?"""
    objects = ctx.store.objects
    for cell in entry.keys() | grown.keys():
        one, other = entry.get(cell), grown.get(cell)
        if one is not None and other is not None:
            if one is not other and one != other:
                return False
            continue
        base = objects.get(cell[0], {}).get(cell[1], ABSENT)
        if (base if one is None else one) != (base if other is None else other):
            return False
    return True


def _behind(ctx: Context, exits: Exits, reached: bool, finish: Callable[[], bool]) -> bool:
    """What follows a loop: its end, or a `break`. The state here is that of its end, if that is reached."""
    store = ctx.store
    ends: list[Difference] = list(exits.breaks)
    if not ends:
        return reached and finish()
    if reached:
        try:
            if finish():
                ends.append(store.difference(exits.mark))
        except NeverReturns:
            pass
    store.undo(exits.mark)
    store.merge(ends)
    return True


def _break(ctx: Context, node: ast.Break) -> bool:
    if ctx.frame.loops:
        exits = ctx.frame.loops[-1]
        exits.breaks.append(ctx.store.difference(exits.mark))
    return False


def _continue(ctx: Context, node: ast.Continue) -> bool:
    if ctx.frame.loops:
        exits = ctx.frame.loops[-1]
        exits.continues.append(ctx.store.difference(exits.mark))
    return False


# -- exceptions ----------------------------------------------------------------------------------------------------------


def _try(ctx: Context, node: Any) -> bool:
    """A handler begins in a state that any part of the block may have left."""
    store = ctx.store
    left = ways_out(ctx)
    mark = store.mark()
    store.watch()
    ctx.frame.trying += bool(node.handlers)
    try:
        run = execute_up_to_missing if any(map(_catches_import, node.handlers)) else execute
        reached = run(ctx, node.body)
    finally:
        ctx.frame.trying -= bool(node.handlers)
    seen = store.unwatch()
    ends: list[Difference] = []
    if reached and (not node.orelse or execute(ctx, node.orelse)):
        ends.append(store.difference(mark))
    store.undo(mark)
    made = store.left_anywhere(seen)
    for handler in node.handlers:
        store.apply(made)
        if handler.name is not None:
            names.bind(ctx, handler.name, TOP)
        if not _is_missing_import(ctx, node, handler) and execute(ctx, handler.body):
            ends.append(store.difference(mark))
        store.undo(mark)
    if node.finalbody:
        do_on_each_way_out(ctx, left, lambda: execute(ctx, node.finalbody))
        if store.watches:  # an exception passes through it
            store.apply(made)
            execute(ctx, node.finalbody)
            store.undo(mark)
    if not ends:
        return False
    store.merge(ends)
    return not node.finalbody or execute(ctx, node.finalbody)


def _catches_import(handler: ast.ExceptHandler) -> bool:
    """Does it catch the import of a module that is not there?"""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in IMPORT_ERRORS) for one in caught)


def _is_missing_import(ctx: Context, node: Any, handler: ast.ExceptHandler) -> bool:
    """`except ImportError` around imports of modules that are all there: it does not run."""
    if handler.type is None or not isinstance(handler.type, ast.Name):
        return False
    if handler.type.id not in ("ImportError", "ModuleNotFoundError"):
        return False
    imports = [one for one in node.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    if len(imports) != len(node.body):
        return False
    return all(ctx.modules.is_there(ctx.frame.module, one) for one in imports)


# -- definitions and imports ---------------------------------------------------------------------------------------------


def _function(ctx: Context, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    value: Value = names.function_of(ctx, node, ctx.modules.class_under_definition(ctx))
    value = ctx.modules.decorated(ctx, value, node)
    names.bind(ctx, node.name, value)
    return True


def _class(ctx: Context, node: ast.ClassDef) -> bool:
    names.bind(ctx, node.name, ctx.modules.define_class(ctx, node))
    return True


def _import(ctx: Context, node: ast.Import) -> bool:
    for alias in node.names:
        ctx.modules.arrive(ctx, alias.name)
        if alias.asname is not None:
            names.bind(ctx, alias.asname, ctx.modules.named(ctx, alias.name))
        else:
            top = alias.name.partition(".")[0]
            names.bind(ctx, top, ctx.modules.named(ctx, top))
    return True


def _import_from(ctx: Context, node: ast.ImportFrom) -> bool:
    source = ctx.modules.absolute(ctx.frame.module, node.level, node.module)
    for alias in node.names:
        ctx.modules.arrive(ctx, source if alias.name == "*" else f"{source}.{alias.name}")
        if alias.name == "*":
            ctx.modules.import_star(ctx, source)
        else:
            names.bind(ctx, alias.asname or alias.name, ctx.modules.member(ctx, source, alias.name))
    return True


def _global(ctx: Context, node: ast.Global) -> bool:
    ctx.frame.global_names |= frozenset(node.names)
    return True


def _nonlocal(ctx: Context, node: ast.Nonlocal) -> bool:
    ctx.frame.nonlocal_names |= frozenset(node.names)
    return True


_EXECUTE: dict[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Delete: _delete,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Try: _try,
    ast.With: with_statement,
    ast.AsyncWith: with_statement,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Global: _global,
    ast.Nonlocal: _nonlocal,
    ast.Match: match_statement,
}
if hasattr(ast, "TryStar"):
    _EXECUTE[ast.TryStar] = _try
