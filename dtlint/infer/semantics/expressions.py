"""Expressions: one function for each kind of syntax node."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, NeverReturns, Unfit
from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import (
    NO_TENSOR,
    NONE,
    TOP,
    Const,
    Generator,
    Many,
    Mapping,
    Number,
    Tuple,
    Unknown,
    Value,
    choices,
    may_be_absent,
)
from dtlint.infer.models import enumerations
from dtlint.infer.models.mappings import content_of_mapping, distinct, merged, of_items
from dtlint.infer.names import path_of
from dtlint.infer.semantics import names, operators
from dtlint.infer.semantics.branches import alternatives, value_of_alternatives
from dtlint.infer.semantics.iterations import is_unrolled, makes_objects, once_more
from dtlint.infer.semantics.narrowing import narrow
from dtlint.infer.semantics.releases import always
from dtlint.infer.semantics.sizes import sizes_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dtlint.infer.context import Context

__all__ = ["arguments_of", "evaluate"]


def evaluate(ctx: Context, node: ast.expr) -> Value:
    """The value of an expression.

    Raises:
        NeverReturns: it raises, whatever happens.
    """
    function = _EVALUATE.get(type(node))
    if function is None:
        return TOP
    try:
        value = function(ctx, node)
    except Unfit:
        if ctx.frame.trying:
            raise
        value = TOP
    recorder = ctx.recorder
    if recorder is not None and type(node) in _RECORDED:
        recorder.expression(node, value, ctx.frame)
    return value


_RECORDED = frozenset(
    {ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Attribute, ast.Subscript, ast.Name, ast.IfExp}
)


def _constant(ctx: Context, node: ast.Constant) -> Value:
    return Const(node.value)


def _name(ctx: Context, node: ast.Name) -> Value:
    return names.look_up(ctx, node.id)


def _attribute(ctx: Context, node: ast.Attribute) -> Value:
    owner = evaluate(ctx, node.value)
    found = ctx.semantics.attribute(ctx, owner, node.attr, node)
    if found == TOP and isinstance(owner, Unknown) and _is_size(ctx, node):
        found = Number(Category.INTEGER)
    return TOP if found is None else found  # what gave it is not followed, more likely than that this raises


def _is_size(ctx: Context, node: ast.Attribute) -> bool:
    """Is an attribute of what is not known a size, since the function around it uses it as one?"""
    function = ctx.frame.function
    return function is not None and path_of(node) in sizes_in(function.node)


def _subscript(ctx: Context, node: ast.Subscript) -> Value:
    owner, index = evaluate(ctx, node.value), evaluate(ctx, node.slice)
    value = ctx.semantics.subscript(ctx, owner, index, node)
    if ctx.recorder is not None:
        ctx.recorder.evaluated(node, (owner, index), value, ctx)
    return value


def _slice(ctx: Context, node: ast.Slice) -> Value:
    """A slice, as a constant where its bounds are."""
    bounds = [NONE if bound is None else evaluate(ctx, bound) for bound in (node.lower, node.upper, node.step)]
    known = [bound.value for bound in bounds if isinstance(bound, Const) and type(bound.value) in (int, type(None))]
    if len(known) == len(bounds):
        return Const((slice, *known))
    return Const((slice, "?"))


def _tuple(ctx: Context, node: ast.Tuple | ast.List | ast.Set) -> Value:
    return _no_deeper(_gathered(ctx, node.elts), _DEEPEST_TUPLE)


_DEEPEST_TUPLE = 6
"""Tuples in one another whose items are told apart. `a = (a, a)` forty times over would be a value of 2**40 items."""


def _no_deeper(value: Value, depth: int) -> Value:
    if isinstance(value, Tuple) and any(isinstance(item, (Tuple, Many)) for item in value.items):
        if depth == 0:
            return Many(TOP)
        return Tuple(tuple(_no_deeper(item, depth - 1) for item in value.items), value.names, value.kind)
    return value


def _gathered(ctx: Context, nodes: Sequence[ast.expr]) -> Tuple | Many:
    """The items of a display, `*others` among them."""
    items: list[Value] = []
    known = True
    for node in nodes:
        if isinstance(node, ast.Starred):
            spread = ctx.semantics.items(ctx, evaluate(ctx, node.value), node)
            if isinstance(spread, Tuple):
                items += spread.items
            else:
                known = False
                items.append(spread.item if isinstance(spread, Many) else TOP)
        else:
            items.append(evaluate(ctx, node))
    if known:
        return Tuple(tuple(items))
    return Many(join_all(items) or TOP)


def _list(ctx: Context, node: ast.List) -> Value:
    return ctx.allocate(node, "builtins.list", _gathered(ctx, node.elts))


def _set(ctx: Context, node: ast.Set) -> Value:
    return ctx.allocate(node, "builtins.set", distinct(_gathered(ctx, node.elts)))


def _dict(ctx: Context, node: ast.Dict) -> Value:
    content = Mapping()
    pairs: list[tuple[Value, Value]] = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            content, pairs = merged(content, of_items(pairs)), []
            content = merged(content, content_of_mapping(ctx, evaluate(ctx, value)))
        else:
            name = enumerations.plain(ctx, evaluate(ctx, key))
            pairs.append((name, evaluate(ctx, value)))
    return ctx.allocate(
        node, "builtins.dict", merged(content, of_items(pairs)) if content != Mapping() else of_items(pairs)
    )


def _binary(ctx: Context, node: ast.BinOp) -> Value:
    left = evaluate(ctx, node.left)
    right = evaluate(ctx, node.right)
    ctx.site = node
    try:
        value = operators.binary(ctx, type(node.op), left, right, node)
    except NeverReturns:
        if ctx.recorder is not None:
            ctx.recorder.evaluated(node, (left, right), TOP, ctx)
        raise
    if ctx.recorder is not None:
        ctx.recorder.evaluated(node, (left, right), value, ctx)
    return value


def _unary(ctx: Context, node: ast.UnaryOp) -> Value:
    value = evaluate(ctx, node.operand)
    ctx.site = node
    result = operators.unary(ctx, type(node.op), value, node)
    if ctx.recorder is not None:
        ctx.recorder.evaluated(node, (value,), result, ctx)
    return result


_ORDERED = frozenset({ast.Lt, ast.LtE, ast.Gt, ast.GtE})


def _compare(ctx: Context, node: ast.Compare) -> Value:
    left = evaluate(ctx, node.left)
    result: Value | None = None
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(ctx, comparator)
        ctx.site = node
        now = operators.compare(ctx, type(operator), left, right, node)
        if ctx.recorder is not None and len(node.ops) == 1:
            ctx.recorder.evaluated(node, (left, right), now, ctx)
        if len(node.ops) > 1 and ctx.semantics.truth(ctx, now) is False:
            return now
        result = now if result is None else join(result, now)
        left = right
    assert result is not None
    if type(result) is not Const and type(node.ops[0]) in _ORDERED and (known := always(node)) is not None:
        return Const(known)
    return result


def _boolean(ctx: Context, node: ast.BoolOp) -> Value:
    """`a and b`: what comes first decides whether the next is evaluated, and what is known in it."""
    wanted = isinstance(node.op, ast.Or)

    def rest(place: int) -> Value:
        operand = node.values[place]
        value = evaluate(ctx, operand)
        if place == len(node.values) - 1:
            return value
        known = ctx.semantics.truth(ctx, value)
        if known is wanted:
            return value

        def go_on() -> Value:
            narrow(ctx, operand, not wanted)
            return rest(place + 1)

        def stop() -> Value:
            narrow(ctx, operand, wanted)
            return _as_truth(ctx, value, wanted)

        if known is not None:
            return go_on()
        return value_of_alternatives(ctx, [stop, go_on])

    return rest(0)


def _as_truth(ctx: Context, value: Value, wanted: bool) -> Value:
    """The alternatives of a value that are true, or those that are not."""
    return join_all(one for one in choices(value) if ctx.semantics.truth(ctx, one) is not (not wanted)) or value


def _if_expression(ctx: Context, node: ast.IfExp) -> Value:
    known = ctx.semantics.truth(ctx, evaluate(ctx, node.test))

    def branch(holds: bool) -> Callable[[], Value]:
        def run() -> Value:
            narrow(ctx, node.test, holds)
            return evaluate(ctx, node.body if holds else node.orelse)

        return run

    if known is not None:
        return branch(known)()
    return value_of_alternatives(ctx, [branch(True), branch(False)])


def arguments_of(ctx: Context, node: ast.Call) -> Arguments:
    """The arguments of a call, evaluated."""
    args: list[Value] = []
    keywords: dict[str, Value] = {}
    perhaps: set[str] = set()
    complete = positional = True
    for given in node.args:
        if isinstance(given, ast.Starred):
            spread = ctx.semantics.items(ctx, evaluate(ctx, given.value), given)
            if isinstance(spread, Tuple) and complete:
                args += spread.items
            else:
                complete = positional = False
        else:
            # a generator expression that is handed over at once is taken to be used up there
            value = _used_up(ctx, given) if isinstance(given, ast.GeneratorExp) else evaluate(ctx, given)
            if complete:
                args.append(value)
    for keyword in node.keywords:
        value = evaluate(ctx, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
            continue
        content = content_of_mapping(ctx, value)
        if content is None or content.rest is not None:
            complete = False
        for key, item in () if content is None else content.items:
            if isinstance(key, Const) and isinstance(key.value, str):
                keywords[key.value] = item
                if item == TOP or may_be_absent(item):
                    perhaps.add(key.value)
    return Arguments(args, keywords, complete, node, positional, frozenset(perhaps))


def _call(ctx: Context, node: ast.Call) -> Value:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
        return names.super_of(ctx)
    callee = evaluate(ctx, node.func)
    arguments = arguments_of(ctx, node)
    ctx.site = node
    try:
        result = ctx.semantics.call(ctx, callee, arguments)
    except NeverReturns:
        if ctx.recorder is not None:
            ctx.recorder.call(node, callee, arguments, None, ctx.frame)
        raise
    if ctx.recorder is not None:
        ctx.recorder.call(node, callee, arguments, result, ctx.frame)
    return result


def _lambda(ctx: Context, node: ast.Lambda) -> Value:
    return names.function_of(ctx, node)


def _comprehension(ctx: Context, node: Any) -> Value:
    """A comprehension: its element, evaluated for the items one by one where they are few and known."""
    hidden = {name: ctx.store.read(ctx.frame.address, name) for name in _targets(node)}
    found: list[Value] = []
    exact = _each(ctx, node, 0, found)
    for name, value in hidden.items():
        if value is None:
            ctx.store.delete(ctx.frame.address, name)
        else:
            ctx.store.overwrite(ctx.frame.address, name, value)
    if isinstance(node, ast.DictComp):
        return ctx.allocate(node, "builtins.dict", _of_pairs(found, exact))
    content = Tuple(tuple(found)) if exact else Many(join_all(found) or TOP)
    if isinstance(node, ast.GeneratorExp):
        return content
    if isinstance(node, ast.SetComp):
        return ctx.allocate(node, "builtins.set", distinct(content))
    return ctx.allocate(node, "builtins.list", content)


def _used_up(ctx: Context, node: ast.GeneratorExp) -> Value:
    """A generator that is given to a call, which runs it, as `any` does, up to some item: what it binds is any of its values."""
    store, frame, mark = ctx.store, ctx.frame, ctx.store.mark()
    result = _comprehension(ctx, node)
    for name in {one.target.id for one in ast.walk(node) if isinstance(one, ast.NamedExpr)}:
        cell = (frame.address, name)
        bound = [old for address, field, old in store.trail[mark:] if (address, field) == cell][1:]
        if bound:
            store.overwrite(*cell, join_all([*bound, store.read(*cell) or TOP]) or TOP)
    return result


_GENERATOR = "<genexpr>"


def _generator_expression(ctx: Context, node: ast.GeneratorExp) -> Value:
    """A generator that runs when items are asked for; what it first iterates over is evaluated here."""
    function: Any = getattr(node, "_function", None)
    if function is None:
        body: list[ast.stmt] = [ast.Expr(ast.Yield(node.elt))]
        for place, generator in reversed(list(enumerate(node.generators))):
            for test in reversed(generator.ifs):
                body = [ast.If(test, body, [])]
            iterated = generator.iter if place else ast.Name(".0", ast.Load())
            body = [ast.For(generator.target, iterated, body, [])]
        given = ast.arguments([], [ast.arg(".0")], None, [], [], None, [])
        function = ast.copy_location(ast.FunctionDef(_GENERATOR, given, body, []), node)
        ast.fix_missing_locations(function)
        node._function = function  # type: ignore[attr-defined]
    first = evaluate(ctx, node.generators[0].iter)
    return Generator(names.function_of(ctx, function), ((".0", first),))


def _of_pairs(found: list[Value], exact: bool) -> Mapping:
    content = Mapping()
    listed: list[tuple[Value, Value]] = []
    for pair in found:
        assert isinstance(pair, Tuple)
        if exact:
            listed.append((pair.items[0], pair.items[1]))
        else:
            content = Mapping((), pair.items[1] if content.rest is None else join(content.rest, pair.items[1]))
    return of_items(listed) if exact else content


def _targets(node: Any) -> set[str]:
    return {
        name.id for generator in node.generators for name in ast.walk(generator.target) if isinstance(name, ast.Name)
    }


def _each(ctx: Context, node: Any, depth: int, found: list[Value]) -> bool:
    """Evaluate the element for each item of the generators from `depth` on. Are all items known, one by one?"""
    if depth == len(node.generators):
        if isinstance(node, ast.DictComp):
            found.append(Tuple((evaluate(ctx, node.key), evaluate(ctx, node.value))))
        else:
            found.append(evaluate(ctx, node.elt))
        return True
    generator = node.generators[depth]
    items = ctx.semantics.items(ctx, evaluate(ctx, generator.iter), generator.iter)
    if isinstance(items, Tuple) and not is_unrolled(items) and len(node.generators) == 1:
        rearranged = _rearranged(node, generator, items)
        if rearranged is not None:
            found += rearranged
            return True
    exact = isinstance(items, Tuple) and is_unrolled(items)
    if isinstance(items, Tuple) and not exact:
        items = Many(join_all(items.items) or TOP)
    mark = ctx.store.mark()
    listed = items.items if isinstance(items, Tuple) else (items.item,) * 2 if isinstance(items, Many) else ()
    # what the first of many items allocates stands for several when there is a second
    apart = False
    for item in listed:

        def run(item: Value = item) -> bool:
            names.assign(ctx, generator.target, item)
            return _filtered(ctx, node, depth, found)

        def once(run: Callable[[], bool] = run, apart: bool = apart) -> bool:
            return once_more(ctx, generator, run, found) if apart else run()

        if isinstance(items, Tuple):
            exact = once() and exact
        else:
            alternatives(ctx, [lambda once=once: once() or True, lambda: True])  # type: ignore[misc]
        apart = apart or makes_objects(ctx, mark)
    if isinstance(items, Tuple):
        return exact
    return False


def _rearranged(node: Any, generator: ast.comprehension, items: Tuple) -> list[Value] | None:
    """The elements of `{v: k for k, v in ...}` and the like, which only put the items in another order."""
    target = generator.target
    names_of_target = target.elts if isinstance(target, ast.Tuple) else [target]
    parts: list[Any] = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    if generator.ifs or not all(isinstance(one, ast.Name) for one in (*names_of_target, *parts)):
        return None
    order = [one.id for one in names_of_target if isinstance(one, ast.Name)]
    if any(one.id not in order for one in parts):
        return None
    found: list[Value] = []
    for item in items.items:
        given = item.items if isinstance(target, ast.Tuple) and isinstance(item, Tuple) else (item,)
        if len(given) != len(order):
            return None
        picked = [given[order.index(one.id)] for one in parts]
        if not all(isinstance(one, Const) for one in picked):
            return None
        found.append(Tuple(tuple(picked)) if isinstance(node, ast.DictComp) else picked[0])
    return found


def _filtered(ctx: Context, node: Any, depth: int, found: list[Value]) -> bool:
    generator = node.generators[depth]
    certain = True
    for test in generator.ifs:
        known = ctx.semantics.truth(ctx, evaluate(ctx, test))
        if known is False:
            return certain
        certain = certain and known is True
        narrow(ctx, test, True)
    return _each(ctx, node, depth + 1, found) and certain


def _joined_text(ctx: Context, node: ast.JoinedStr) -> Value:
    """An f-string, where its parts are constants."""
    texts: list[str] | None = [""]
    for part in node.values:
        value = evaluate(ctx, part.value if isinstance(part, ast.FormattedValue) else part)
        plain = [one.value for one in choices(value) if isinstance(one, Const) and isinstance(one.value, (str, int))]
        formatted = isinstance(part, ast.FormattedValue) and (part.format_spec or part.conversion != -1)
        known = len(plain) == len(choices(value)) and not formatted
        if texts is not None and known and len(texts) * len(plain) <= _MOST_TEXTS:
            texts = [f"{text}{one}" for text in texts for one in plain]
        else:
            texts = None
    return NO_TENSOR if texts is None else join_all(map(Const, texts)) or NO_TENSOR


_MOST_TEXTS = 8
"""Texts that an f-string of alternatives can be."""


def _named(ctx: Context, node: ast.NamedExpr) -> Value:
    value = evaluate(ctx, node.value)
    function = ctx.frame.function
    if function is not None and getattr(function.node, "name", None) == _GENERATOR:
        names.bind_around(ctx, node.target.id, value)
    else:
        names.assign(ctx, node.target, value)
    return value


def _await(ctx: Context, node: ast.Await) -> Value:
    return evaluate(ctx, node.value)


def _yield(ctx: Context, node: ast.Yield) -> Value:
    value = NONE if node.value is None else evaluate(ctx, node.value)
    if ctx.frame.on_yield is not None:
        return ctx.frame.on_yield(value)
    ctx.frame.in_order &= ctx.frame.is_certain(ctx.undecided)
    ctx.frame.yields.append(value)
    return TOP


def _yield_from(ctx: Context, node: ast.YieldFrom) -> Value:
    items = ctx.semantics.items(ctx, evaluate(ctx, node.value), node)
    given = items.items if isinstance(items, Tuple) else (items.item,) if isinstance(items, Many) else (TOP,)
    ctx.frame.in_order &= isinstance(items, Tuple) and ctx.frame.is_certain(ctx.undecided)
    ctx.frame.yields.extend(given)
    return TOP


_EVALUATE: dict[type[ast.AST], Callable[[Any, Any], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _if_expression,
    ast.Call: _call,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _generator_expression,
    ast.JoinedStr: _joined_text,
    ast.NamedExpr: _named,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: lambda ctx, node: evaluate(ctx, node.value),
}
