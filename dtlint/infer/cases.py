"""What the cases of a `match` ask, as the tests that an `if` would make: `case torch.float16` is `x == torch.float16`."""

from __future__ import annotations

import ast

__all__ = ["bound_by", "captured_by", "is_open", "test_of"]


def is_open(case: ast.match_case) -> bool:
    """Does a case take whatever comes: `case _`, `case other`?"""
    pattern = case.pattern
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    return case.guard is None and isinstance(pattern, ast.MatchAs)


def bound_by(pattern: ast.pattern) -> list[str]:
    """The names that a pattern binds."""
    names = (getattr(part, "name", None) or getattr(part, "rest", None) for part in ast.walk(pattern))
    return [name for name in names if isinstance(name, str)]


def captured_by(pattern: ast.pattern) -> str | None:
    """The name that a pattern binds to the subject itself: `case other`, `case Linear() as layer`."""
    return pattern.name if isinstance(pattern, ast.MatchAs) else None


def test_of(pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr | None, bool]:
    """The test that is true where the pattern matches, None where there is none, and whether it is false where the pattern
    does not: an instance of a class whose attributes are other ones is an instance of it."""
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    if isinstance(pattern, ast.MatchValue):
        return _placed(ast.Compare(subject, [ast.Eq()], [pattern.value]), pattern), True
    if isinstance(pattern, ast.MatchSingleton):
        constant = _placed(ast.Constant(pattern.value), pattern)
        return _placed(ast.Compare(subject, [ast.Is()], [constant]), pattern), True
    if isinstance(pattern, ast.MatchClass):
        called = _placed(ast.Name("isinstance", ast.Load()), pattern)
        test = _placed(ast.Call(called, [subject, pattern.cls], []), pattern)
        return test, not (pattern.patterns or pattern.kwd_patterns)
    if isinstance(pattern, ast.MatchOr) and all(isinstance(part, ast.MatchValue) for part in pattern.patterns):
        values = [part.value for part in pattern.patterns if isinstance(part, ast.MatchValue)]
        among = _placed(ast.Tuple(values, ast.Load()), pattern)
        return _placed(ast.Compare(subject, [ast.In()], [among]), pattern), True
    return None, False


def _placed(node: ast.expr, pattern: ast.pattern) -> ast.expr:
    return ast.copy_location(node, pattern)
