"""DT111: a floating cast of tensors of which some may hold integers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import INTEGRAL, LOW_PRECISION
from dtlint.infer.domain.values import Dtype, ProjectClass, Ref, Tensor
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._module_walks import root_of, walk_over
from dtlint_rules._needs import CASTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Call, Guard, ModuleFacts
    from dtlint.source.place import Place
    from dtlint_rules._cast_calls import Cast

__all__ = ["CastNonFloat"]


class CastNonFloat(Rule):
    """A cast to a floating dtype of all tensors of a batch, a state dict or a module's buffers.

    ## What it does
    Reports a cast to half, or to a `dtype` that is handed in, of each tensor of a state dict, `model.state_dict()` or what
    `torch.load` gives, or of a module's buffers, where nothing asks for the tensor's dtype first. A test of the key, which
    picks out the tensors that are meant, counts as asking. Also a cast that is handed to a function for nests,
    `tree_map(torch.Tensor.half, batch)`.

    Conditional, and so reported with `--preview` only: nests, and state dicts of which the file does not show that they
    hold whole numbers. It does for a model that it makes with BatchNorm, or with an integer buffer.

    ## Why it matters
    Not all of these tensors are floating. Token ids that become float16 raise `Expected tensor for argument #1
    'indices' to have one of the following scalar types: Long, Int`; quantized weights lose their packing; a counter
    such as BatchNorm's `num_batches_tracked` is exact up to 2048 only, and from 65520 on is inf in the file. Lengths in
    half are rounded, and the mask that is made of them is too long or too short.

    `Module.to` and `Module.half` cast floating parameters and buffers only, for the same reason.

    ## Example
    ```python
    import torch
    from torch import nn

    def weights(dtype):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        state_dict = model.state_dict()
        for key, value in state_dict.items():
            state_dict[key] = value.to(dtype)
        return state_dict
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn

    def weights(dtype):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        state_dict = model.state_dict()
        for key, value in state_dict.items():
            state_dict[key] = value.to(dtype) if value.is_floating_point() else value
        return state_dict
    ```

    ## Fix safety
    The fix guards the cast by `is_floating_point()`, and moves what is not floating to the same device. It is unsafe, for
    integers then keep their dtype.

    ## References
    - [torch.is_floating_point](https://docs.pytorch.org/docs/stable/generated/torch.is_floating_point.html)
    """

    code, name = "DT111", "cast-non-float"
    fix = Applicability.UNSAFE
    triggers = CASTS

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for cast in casts(facts):
            # float32 holds the counters of a state dict, and a dtype that is asked of another tensor fits it
            if (cast.dtypes and not cast.dtypes <= LOW_PRECISION) or cast.of == "module" or _follows(facts, cast):
                continue
            walked = _walked(facts, cast)
            if (
                walked is None
                or facts.around.is_discarded(cast.node)
                or not all(map(_is_no_question, _tests(facts, cast, walked[0])))
            ):
                continue
            yield Finding(
                cast.node,
                f"The cast takes all of {walked[1]}: some may be whole numbers",
                help=f"Cast only where `{ast.unparse(root_of(cast.subject))}.is_floating_point()`",
                fix=_guarded(facts, cast),
                conditional=walked[2] is not None and not _holds_integers(facts, walked[2]),
            )
        yield from _handed_to_maps(facts)


_LOADERS = ("torch.load", "safetensors.torch.load_file", "safetensors.torch.load", "torch.nn.Module.state_dict")
_MAPS = frozenset({"tree_map", "tree_map_only", "map_structure", "apply_to_collection", "map_aggregate"})
"""Functions that apply another to every tensor of a nest."""


def _follows(facts: ModuleFacts, cast: Cast) -> bool:
    """Is the dtype asked of some other tensor: `v.to(reference[k].dtype)`, `v.type_as(other)`?"""
    given = [*cast.node.args, *(one.value for one in cast.node.keywords)]
    return cast.method == "type_as" or any(isinstance(one, ast.Attribute) and one.attr == "dtype" for one in given)


def _walked(facts: ModuleFacts, cast: Cast) -> tuple[ast.AST, str, ast.expr | None] | None:
    """The loop or the comprehension over all tensors of a state dict or all buffers, what it goes over, and the state dict."""
    walk = walk_over(facts, root_of(cast.subject))
    if walk is not None and walk.kind == "buffers":
        statement = facts.around.statement(cast.node)
        kept = isinstance(statement, ast.Assign) and statement.value is cast.node
        return (walk.loop, f"the buffers of `{ast.unparse(walk.subject)}`", None) if kept else None
    names = {node.id for node in ast.walk(cast.subject) if isinstance(node, ast.Name)}
    for one in facts.around.around(cast.node):
        loops = [one] if isinstance(one, ast.For) else getattr(one, "generators", [])
        for loop in loops:
            bound = {node.id for node in ast.walk(loop.target) if isinstance(node, ast.Name)}
            if bound & names and _is_state(facts, loop.iter):
                return one, "a state dict", loop.iter
    return None


def _is_state(facts: ModuleFacts, node: ast.expr) -> bool:
    """Does a loop go over what was loaded from a file, or a module's state?"""
    for part in facts.around.made_of(node):
        if isinstance(part, ast.Call):
            names = {call.name for call in facts.calls_at(part)}
            method = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if method == "state_dict" or not names.isdisjoint(_LOADERS):
                return True
    return False


def _holds_integers(facts: ModuleFacts, state: ast.expr) -> bool:
    """Is it the state of a model that has, for all to see, a BatchNorm, which counts, or an integer buffer?"""
    for part in facts.around.made_of(state):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "state_dict":
            model = part.func.value
            if any(isinstance(one, ast.Call) and _counts(facts, one) for one in facts.around.made_of(model)):
                return True
            value = facts.value(model)
            kind = value.address.kind if isinstance(value, Ref) else None
            if isinstance(kind, ProjectClass) and any(
                facts.around.owner(call.node) is kind.definition.node for call in facts.calls() if _is_integer(call)
            ):
                return True
    return False


def _counts(facts: ModuleFacts, made: ast.Call) -> bool:
    return any(map(_is_integer, facts.calls_at(made)))


def _is_integer(call: Call) -> bool:
    """Does a call make a layer that counts its batches, or register integers?"""
    if call.method == "register_buffer":
        given = call.argument(1, "tensor")
        return isinstance(given, Tensor) and given.dtypes is not None and frozenset() < given.dtypes <= INTEGRAL
    return call.name in _COUNTING


_COUNTING = frozenset(f"torch.nn.{name}" for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"))
"""Layers whose state holds `num_batches_tracked`."""


def _tests(facts: ModuleFacts, cast: Cast, loop: ast.AST) -> list[Guard]:
    return [one for one in facts.around.guards(cast.node) if loop in facts.around.around(one.test)]


def _is_no_question(guard: Guard) -> bool:
    """Does a test only tell tensors from others: `isinstance(value, torch.Tensor)`, `torch.is_tensor(value)`?"""
    test = guard.test
    if not isinstance(test, ast.Call):
        return False
    of_tensors = len(test.args) == 2 and path_of(test.args[1]) in ("torch.Tensor", "Tensor")
    return path_of(test.func) == "torch.is_tensor" or (path_of(test.func) == "isinstance" and of_tensors)


def _handed_to_maps(facts: ModuleFacts) -> Iterator[Finding]:
    """`tree_map(torch.Tensor.half, batch)`, `tree_map(lambda t: t.half(), batch)`."""
    handed: list[tuple[ast.expr, ast.AST]] = [
        (node, node) for node, _ in facts.names("torch.Tensor.half", "torch.Tensor.bfloat16")
    ]
    for cast in casts(facts):
        function = facts.around.function(cast.node)
        if (
            isinstance(function, ast.Lambda)
            and function.body is cast.node
            and cast.dtypes <= LOW_PRECISION
            and cast.dtypes
        ):
            handed.append((cast.node, function))
    for found, given in handed:
        call = facts.around.parent(given)
        call = facts.around.parent(call) if isinstance(call, ast.keyword) else call
        if not isinstance(call, ast.Call) or given is call.func or "Float" in ast.unparse(call):
            continue
        if (path_of(call.func) or "").rpartition(".")[2] in _MAPS:
            yield Finding(
                found,
                f"`{ast.unparse(call.func)}` casts every tensor that it meets: some may be whole numbers",
                help="Cast only where `x.is_floating_point()`",
                conditional=True,
            )


def _guarded(facts: ModuleFacts, cast: Cast) -> Callable[[Place], Fix] | None:
    """The fix that casts floating tensors, and takes the others where the cast takes all: to a device, if there is one."""
    name, node = path_of(cast.subject), cast.node
    dtypes = [one for one in node.args if isinstance(facts.value(one), Dtype) or (path_of(one) or "").endswith("dtype")]
    told = [*dtypes, *(one.value for one in node.keywords if one.arg == "dtype")]
    starred = any(one.arg is None for one in node.keywords)
    if (
        name is None
        or starred
        or len(told) != (1 if cast.method in ("to", "type") else 0)
        or dtypes != node.args[-1:] * len(dtypes)
    ):
        return None
    rest: list[ast.expr | ast.keyword] = [one for one in node.args if one not in dtypes]
    rest += [one for one in node.keywords if one.arg != "dtype"]
    moves = any(not isinstance(one, ast.keyword) or one.arg != "non_blocking" for one in rest)

    def fix(place: Place) -> Fix:
        texts = [place.between(place.source.span(one)) for one in rest] if moves else []
        kept = f"{name}.to({', '.join(texts)})" if moves else name
        text = f"{place.text(place.abstract)} if {name}.is_floating_point() else {kept}"
        return Fix("Cast floating tensors only", (place.replace(place.abstract, text),), Applicability.UNSAFE)

    return fix
