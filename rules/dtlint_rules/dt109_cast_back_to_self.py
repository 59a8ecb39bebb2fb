"""DT109: a cast back to the dtype of a name that was itself upcast on the way."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._module_walks import root_of
from dtlint_rules._needs import attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint_rules._cast_calls import Cast

__all__ = ["CastBackToSelf"]


class CastBackToSelf(Rule):
    """A result cast back to the dtype of its input, which has been rebound to its own upcast.

    ## What it does
    Reports `return f(x).type_as(x)` and `.to(x.dtype)` behind `x = x.float()`, where `x` is a parameter of the
    function and the result is computed from it; and `.to(dtype)` where `dtype = x.dtype` stands behind the upcast.

    ## Why it matters
    Behind `x = x.float()` the name `x` means the float32 tensor, so the cast back is to float32: it does nothing, and
    a half model goes on in float32 from here, at twice the memory, or raises `mat1 and mat2 must have the same dtype`
    in the next layer.

    ## Example
    ```python
    import torch

    def rms_norm(x, weight):
        x = x.float()
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * weight).type_as(x)
    ```

    ## Use instead
    ```python
    import torch

    def rms_norm(x, weight):
        dtype = x.dtype
        x = x.float()
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return (y * weight).to(dtype)
    ```

    ## References
    - [torch.Tensor.type_as](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type_as.html)
    """

    code, name = "DT109", "cast-back-to-self"
    triggers = (".type_as", ".dtype")
    needs = (attributes(("to", "type_as", "float", "double", "type")),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        known = {one.node: one for one in casts(facts)}
        for back in known.values():
            source = _source(facts, back)
            if source is None or not _is_returned(facts, back.node) or not _is_floating(back):
                continue
            of, up = (_upcast(facts, node, known) for node in (source, back.subject))
            if up is None or of is not up or not _is_bound_to_itself(facts, up, source.id):
                continue
            yield Finding(
                back.node,
                f"The cast to the dtype of `{source.id}` does nothing: `{source.id}` was cast up itself",
                help=f"Save `{source.id}.dtype` before the upcast, and cast back to that",
                notes=((up.node, f"`{source.id}` is bound to its own upcast here"),),
            )


def _source(facts: ModuleFacts, cast: Cast) -> ast.Name | None:
    """The variable whose dtype a cast takes: `.type_as(x)`, `.to(x.dtype)`, and `.to(dtype)` behind `dtype = x.dtype`."""
    given = [*cast.node.args, *(one.value for one in cast.node.keywords if one.arg == "dtype")]
    if cast.method == "type_as":
        return given[0] if given and isinstance(given[0], ast.Name) else None
    for one in map(facts.around.definition, given):
        if isinstance(one, ast.Attribute) and one.attr == "dtype" and isinstance(one.value, ast.Name):
            return one.value
    return None


def _is_floating(back: Cast) -> bool:
    """Is what is cast back no comparison? Its dtype is that of the upcast, or not known."""
    dtypes = back.value.dtypes if isinstance(back.value, (Tensor, Unknown)) else frozenset()
    return dtypes is None or bool(dtypes & _WIDE)


def _is_bound_to_itself(facts: ModuleFacts, up: Cast, name: str) -> bool:
    """Is it `x = x.float()`?"""
    statement, root = facts.around.statement(up.node), root_of(up.subject)
    return (
        isinstance(statement, ast.Assign)
        and statement.value is up.node
        and isinstance(root, ast.Name)
        and root.id == name
        and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
    )


def _upcast(facts: ModuleFacts, node: ast.expr, known: dict[ast.Call, Cast]) -> Cast | None:
    """The upcast of a tensor of unknown dtype that an expression is computed from, with no other cast behind it."""
    waiting, seen = [node], set[ast.AST]()
    while waiting:
        for one in _values_in(waiting.pop(), known):
            for bound in facts.around.definitions(one):
                up = known.get(bound) if isinstance(bound, ast.Call) else None
                if up is not None and up.dtypes and up.dtypes <= _WIDE and not _is_wide(up):
                    return up
                if up is None and isinstance(bound, ast.expr) and bound not in seen:
                    seen.add(bound)
                    waiting.append(bound)
    return None


def _is_wide(up: Cast) -> bool:
    """Was the tensor as wide before, so that its cast changes nothing?"""
    known = up.value.dtypes if isinstance(up.value, (Tensor, Unknown)) else None
    return bool(known) and known <= _WIDE  # type: ignore[operator]


def _values_in(node: ast.expr, known: dict[ast.Call, Cast]) -> Iterator[ast.Name]:
    """The variables whose values an expression takes as they are, and not just their shape or dtype."""
    if isinstance(node, (ast.Compare, ast.BoolOp)) or node in known:
        return
    if isinstance(node, ast.Attribute) and node.attr in _ASKED:
        return
    if isinstance(node, ast.Name):
        yield node
    for one in ast.iter_child_nodes(node):
        part = one.value if isinstance(one, ast.keyword) else one
        if isinstance(part, ast.expr):
            yield from _values_in(part, known)


_WIDE = frozenset({"float32", "float64"})
_ASKED = frozenset({"shape", "dtype", "device", "ndim", "size"})


def _is_returned(facts: ModuleFacts, node: ast.Call) -> bool:
    """Does what is returned come from the result, at once or by way of a name? A result that is used on before may need the
    wide dtype."""
    statement = facts.around.statement(node)
    if isinstance(statement, ast.Return):
        return True
    block = facts.around.block(statement)
    following = block[block.index(statement) + 1 :][:1]
    return (
        isinstance(statement, ast.Assign)
        and statement.value is node
        and any(
            isinstance(part, ast.Name) and part.id in _names(statement)
            for one in following
            if isinstance(one, ast.Return) and one.value is not None
            for part in ast.walk(one.value)
        )
    )


def _names(statement: ast.Assign) -> set[str]:
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}
