"""Does a function mind the dtype of what its caller gives: does it cast something to that?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Tensor, Unknown

if TYPE_CHECKING:
    import ast

    from dtlint.infer.domain.values import Atom, Value
    from dtlint.infer.facts import ModuleFacts

__all__ = ["atoms_of", "minds"]


def atoms_of(value: Value) -> frozenset[Atom]:
    """The parameters and weights that decide a dtype which is not known."""
    if not isinstance(value, (Tensor, Unknown)) or value.dtypes is not None or value.symbol is None:
        return frozenset()
    return value.symbol.of


def minds(facts: ModuleFacts, node: ast.AST, value: Value) -> bool:
    """Is something cast to the dtype of that value, `.to(x.dtype)`, in the function that a node is in? Who does so expects
    dtypes other than float32."""
    wanted, function = atoms_of(value), facts.around.function(node)
    return (
        bool(wanted)
        and function is not None
        and any(
            bool(wanted & atoms_of(call.result)) and not wanted & atoms_of(call.receiver)
            for call in facts.methods("to", "type", "type_as")
            if call.result is not None and call.receiver is not None and facts.around.function(call.node) is function
        )
    )
