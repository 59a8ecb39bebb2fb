"""Is code meant for some releases alone? Its author asked for a version, or whether something is there, or caught the error."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Const
from dtlint_rules._names import names_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Guard, ModuleFacts

__all__ = ["all_guards", "is_for_some_releases", "is_tried"]

_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError", "TypeError", "Exception", "RuntimeError"})
"""What is raised where something is not there, or is called in another way."""
_ASKING = frozenset({"hasattr", "getattr", "signature", "find_spec", "version", "__version__", "AttributeError"})
_NAMED_RELEASE = re.compile(
    r"(?:^|_)(?:py)?torch_?(?:v?\d|[gl](?:t|e|te|eq)(?=_|\d|$)|(?:greater|less|since|before|at_least)_)|version"
)
"""`TORCH_2`, `is_torch_greater_or_equal_than_2_4`, `TORCH_VERSION`: the flags of releases that other files set."""


def is_for_some_releases(facts: ModuleFacts, node: ast.AST) -> bool:
    """Does code run on some releases alone, or where something else is missing? A test that comes out one way on every
    torch in use decides nothing."""
    return any(_asks(facts, guard) for guard in all_guards(facts, node)) or any(
        isinstance(one, ast.ExceptHandler) and _catches(one) for one in facts.around.around(node)
    )


def is_tried(facts: ModuleFacts, node: ast.AST) -> bool:
    """Is the error caught, suppressed or expected: `try: np.float`, `with pytest.raises(AttributeError)`?"""
    inner: ast.AST = node
    for one in facts.around.around(node):
        if isinstance(one, ast.Try) and inner in one.body and any(map(_catches, one.handlers)):
            return True
        items = one.items if isinstance(one, (ast.With, ast.AsyncWith)) else []
        if any(not _MISSING.isdisjoint(names_in(item.context_expr)) for item in items):
            return True
        inner = one
    return False


def all_guards(facts: ModuleFacts, node: ast.AST) -> Iterator[Guard]:
    """The tests that hold where a node is evaluated, and those under which its function was defined."""
    inner: ast.AST | None = node
    while inner is not None:
        yield from facts.around.guards(inner)
        inner = next((one for one in facts.around.around(inner) if isinstance(one, _DEFINITIONS)), None)


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def _asks(facts: ModuleFacts, guard: Guard) -> bool:
    test = facts.around.definition(guard.test)
    if isinstance(facts.value(guard.test), Const):
        return False
    said = set(names_in(test)) | set(names_in(guard.test))
    return not _ASKING.isdisjoint(said) or any(_NAMED_RELEASE.search(name.lower()) for name in said)


def _catches(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or not _MISSING.isdisjoint(names_in(handler.type))
