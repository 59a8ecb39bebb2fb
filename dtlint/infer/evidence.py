"""What a name can only be, judged by what the function does with it.

A parameter has no construction in view. But who calls `model.named_parameters()` has a module in hand, and who calls
`x.masked_fill(...)` a tensor. Only methods that nothing else in a torch program has count as evidence.
"""

from __future__ import annotations

import ast
from enum import Enum

from dtlint.infer.names import path_of

__all__ = ["Kind", "gather"]


class Kind(Enum):
    """What the evidence says a name is."""

    MODULE = "module"
    TENSOR = "tensor"


_PROOFS: dict[Kind, tuple[frozenset[str], ...]] = {
    Kind.MODULE: tuple(
        frozenset(methods)
        for methods in (
            {"named_parameters"},
            {"named_modules"},
            {"named_buffers"},
            {"named_children"},
            {"register_buffer"},
            {"register_parameter"},
            {"register_forward_hook"},
            # Each of these alone is known from elsewhere: eval of data frames, train of trainers, state_dict of
            # optimizers, parameters of signatures. Two together are not.
            {"parameters", "train"},
            {"parameters", "eval"},
            {"parameters", "half"},
            {"parameters", "state_dict"},
            {"parameters", "load_state_dict"},
            {"eval", "half"},
            {"train", "half"},
            {"train", "eval"},
            {"load_state_dict", "eval"},
            {"load_state_dict", "half"},
        )
    ),
    Kind.TENSOR: tuple(
        frozenset({method})
        for method in (
            *(
                "masked_fill",
                "masked_fill_",
                "unsqueeze",
                "index_select",
                "scatter_",
                "scatter_add_",
                "expand_as",
                "type_as",
            ),
            *("new_zeros", "new_ones", "new_full", "new_tensor", "is_floating_point", "data_ptr", "clamp_", "detach_"),
        )
    ),
}


def gather(function: ast.AST) -> dict[str, Kind]:
    """Dotted paths in a function's body that can only be one kind of thing; paths with evidence of both are left out."""
    used: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            path = path_of(node.func.value)
            if path is not None:
                used.setdefault(path, set()).add(node.func.attr)
    kinds = {}
    for path, methods in used.items():
        proved = [kind for kind, proofs in _PROOFS.items() if any(proof <= methods for proof in proofs)]
        if len(proved) == 1:
            kinds[path] = proved[0]
    return kinds
