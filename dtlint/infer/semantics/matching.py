"""`match`: the patterns that can match, and what they bind."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import TOP, Const, Many, Ref, Tuple, Value, choices
from dtlint.infer.models.mappings import content_of_mapping
from dtlint.infer.semantics import names
from dtlint.infer.semantics.branches import alternatives
from dtlint.infer.semantics.expressions import evaluate
from dtlint.infer.semantics.narrowing import is_instance, narrow

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.context import Context

__all__ = ["match_statement"]


def match_statement(ctx: Context, node: ast.Match) -> bool:
    """Run each case whose pattern may match, up to the first that certainly does."""
    subject = evaluate(ctx, node.subject)
    paths: list[Callable[[], bool]] = []
    certain = False

    def branch(case: ast.match_case) -> Callable[[], bool]:
        def run() -> bool:
            _bind(ctx, case.pattern, subject)
            if case.guard is not None:
                if ctx.semantics.truth(ctx, evaluate(ctx, case.guard)) is False:
                    return False
                narrow(ctx, case.guard, True)
            return ctx.semantics.execute(ctx, case.body)

        return run

    for case in node.cases:
        known = _matches(ctx, case.pattern, subject)
        if known is False:
            continue
        paths.append(branch(case))
        if known is True and case.guard is None:
            certain = True
            break
    if not certain:
        paths.append(lambda: True)
    return alternatives(ctx, paths)


def _matches(ctx: Context, pattern: ast.pattern, value: Value) -> bool | None:
    """Does a value match? None where it may."""
    if isinstance(pattern, ast.MatchAs):
        return True if pattern.pattern is None else _matches(ctx, pattern.pattern, value)
    if isinstance(pattern, ast.MatchOr):
        answers = [_matches(ctx, one, value) for one in pattern.patterns]
        return True if True in answers else None if None in answers else False
    if isinstance(pattern, ast.MatchSingleton):
        return _equal(value, Const(pattern.value))
    if isinstance(pattern, ast.MatchValue):
        wanted = evaluate(ctx, pattern.value)
        if isinstance(value, Const) and isinstance(wanted, Const):
            return bool(value.value == wanted.value)  # 1 matches 1.0 and True
        return _equal(value, wanted)
    if isinstance(pattern, ast.MatchClass):
        known = is_instance(ctx, value, evaluate(ctx, pattern.cls))
        return known if known is False or not (pattern.patterns or pattern.kwd_patterns) else None
    if isinstance(pattern, ast.MatchSequence) and isinstance(value, Tuple):
        if any(isinstance(one, ast.MatchStar) for one in pattern.patterns):
            return None
        if len(pattern.patterns) != len(value.items):
            return False
        answers = [_matches(ctx, one, item) for one, item in zip(pattern.patterns, value.items, strict=True)]
        return False if False in answers else None if None in answers else True
    return None


def _equal(value: Value, wanted: Value) -> bool | None:
    answers = {
        one == wanted if type(one) is type(wanted) and (isinstance(one, Const) or one == wanted) else None
        for one in choices(value)
    }
    return answers.pop() if len(answers) == 1 else None


def _bind(ctx: Context, pattern: ast.pattern, value: Value) -> None:
    """Bind the names of a pattern that matches."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None:
            _bind(ctx, pattern.pattern, value)
        if pattern.name is not None:
            names.bind(ctx, pattern.name, value)
    elif isinstance(pattern, ast.MatchOr):
        for one in pattern.patterns:
            _bind(ctx, one, value)
    elif isinstance(pattern, ast.MatchSequence):
        items = ctx.semantics.items(ctx, value, pattern)
        plain = isinstance(items, Tuple) and len(items.items) == len(pattern.patterns)
        for place, one in enumerate(pattern.patterns):
            if isinstance(one, ast.MatchStar):
                if one.name is not None:
                    names.bind(ctx, one.name, TOP)
            elif plain:
                assert isinstance(items, Tuple)
                _bind(ctx, one, items.items[place])
            else:
                _bind(ctx, one, items.item if isinstance(items, Many) else _any_of(items))
    elif isinstance(pattern, ast.MatchMapping):
        content = content_of_mapping(ctx, value)
        for key, one in zip(pattern.keys, pattern.patterns, strict=True):
            found = None if content is None else content.get(evaluate(ctx, key))
            _bind(ctx, one, TOP if found is None else found)
        if pattern.rest is not None:
            names.bind(ctx, pattern.rest, TOP)
    elif isinstance(pattern, ast.MatchClass):
        for place, one in enumerate(pattern.patterns):
            names_of = ctx.modules.match_args(ctx, evaluate(ctx, pattern.cls))
            known = names_of[place] if names_of is not None and place < len(names_of) else None
            found = None if known is None else ctx.semantics.attribute(ctx, value, known, pattern)
            _bind(ctx, one, TOP if found is None else found)
        for name, one in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
            found = ctx.semantics.attribute(ctx, value, name, pattern) if isinstance(value, Ref) else None
            _bind(ctx, one, TOP if found is None else found)


def _any_of(items: Value) -> Value:
    return (join_all(items.items) or TOP) if isinstance(items, Tuple) else TOP
