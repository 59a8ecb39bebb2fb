"""DT317: under an assumption a function gives another floating dtype than it was given."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.domain.lattice import widens_perhaps
from dtlint.infer.domain.values import LEFT, ProjectClass, Ref, Tensor, Tuple, Value, choices
from dtlint.rule import Finding, Rule
from dtlint.source.definitions import named_parameters, public_functions, returned
from dtlint_rules._attained import last_name_of
from dtlint_rules._casts import TO_FLOATING
from dtlint_rules._needs import TORCH
from dtlint_rules._refusals import Operand, finding, is_loss, tensors
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dtlint.infer.facts import ModuleFacts, Operation, Sighting

__all__ = ["ResultLeavesDtype"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ResultLeavesDtype(Rule):
    """A public function gives another floating dtype than it was given.

    ## What it does
    Under `--assume half`, `bfloat16` or `double`, or `supports` in the settings, reports where a function that returns
    a tensor of another floating dtype leaves the one of its inputs: where they meet a tensor that has a dtype of its
    own, and, as information, a cast that is not undone. It says nothing without an assumption.

    ## Why it matters
    What calls the function goes on in float32: the next layer, whose weights are half, raises, or the rest of the model
    runs at twice the memory and half the speed. A float32 run shows none of it.

    ## Example
    ```python
    import torch


    def rotate(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[-1]) * 0.5
        return x * angles.cos()
    ```

    ## Use instead
    ```python
    import torch


    def rotate(x: torch.Tensor) -> torch.Tensor:
        angles = torch.arange(x.shape[-1]) * 0.5
        return x * angles.cos().to(x.dtype)
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name, severity = "DT317", "result-leaves-dtype", Severity.WARNING
    assumption: ClassVar[str] = "half"
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        assumed = facts.assumption
        if assumed is None or assumed.region is not None or assumed.inputs != assumed.weights:
            return
        happened: dict[object, Sighting[Operation]] = {}
        every = sorted(facts.operations(), key=lambda one: (one.behind, bool(one.what.calls)))
        for seen in every:
            if _is_departure(seen.what, assumed.inputs) and not _is_among_numbers(facts, seen.node):
                happened.setdefault(seen.what.node, seen)
        told: set[ast.AST] = set()
        undone = {facts.around.function(one.node) for one in every if _narrows(one.what, assumed.inputs)}
        written = _written(facts)
        for result in (one for function in public_functions(facts.tree.body) for one in returned(function)):
            held = _held(facts, result, written)
            for value in (one for node in held for one in _tensors(facts.value(node), assumed.inputs)):
                for place, found in happened.items():
                    if (LEFT, place) not in value.extra or found.node in told:
                        continue
                    # what is cast on one path may be cast back under the same condition
                    is_undone = assumed.inputs in (value.dtypes or ()) and facts.around.function(found.node) in undone
                    if not is_undone or _wider(found.what, assumed.inputs) is not None:
                        told.add(found.node)
                        yield _finding(found, assumed.inputs, result)


def _is_among_numbers(facts: ModuleFacts, node: ast.AST) -> bool:
    """Does it stand in functions that are given numbers alone, all those around it?"""
    around = [one for one in facts.around.around(node) if isinstance(one, _FUNCTIONS)]
    return bool(around) and all(map(_is_given_numbers, around))


def _is_given_numbers(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Is a function declared to be given nothing but numbers and texts? What it makes has no dtype of the caller's."""
    given = function.args
    named = named_parameters(function)
    declared = [getattr(one.annotation, "id", None) for one in named]
    return bool(named) and not given.vararg and not given.kwarg and set(declared) <= {"int", "float", "bool", "str"}


def _wider(operation: Operation, dtype: str) -> Operand | None:
    """The operand that has a dtype of its own, on some path at least; None for a cast."""
    result = operation.result
    assert isinstance(result, Tensor)
    if result.dtypes is not None and dtype in result.dtypes:
        return next((one for one in tensors(operation) if widens_perhaps(one.value, frozenset({dtype}))), None)
    return next((one for one in tensors(operation) if one.dtypes == result.dtypes), None)


def _narrows(operation: Operation, dtype: str) -> bool:
    """Does it cast to this dtype what has another one, on some path at least?"""
    given = [one.dtypes for one in tensors(operation)[:1]]
    is_cast = last_name_of(operation) in TO_FLOATING | {"to", "type", "type_as"}
    result = operation.result.dtypes if isinstance(operation.result, Tensor) else None
    return is_cast and dtype in (result or ()) and any(one and one != {dtype} for one in given)


def _held(
    facts: ModuleFacts, result: ast.expr, written: Mapping[tuple[ast.AST, str], list[ast.expr]]
) -> list[ast.expr]:
    """What is returned, one by one where a tuple or a dict is written out, or an object of a class in view is made of it."""
    shown = facts.around.definition(result)
    if isinstance(result, ast.Tuple):
        return result.elts
    if isinstance(shown, ast.Call) and isinstance(made := facts.value(shown), Ref):
        of_class = isinstance(made.address.kind, ProjectClass)
        return [*shown.args, *(one.value for one in shown.keywords)] if of_class else [result]
    held = shown.values if isinstance(shown, ast.Dict) else [result]
    name = result.id if isinstance(result, ast.Name) else ""
    return [*held, *written.get((facts.around.scope(result), name), ())]


def _written(facts: ModuleFacts) -> dict[tuple[ast.AST, str], list[ast.expr]]:
    """What is written into items of variables, by the scope and the variable: `out["x"] = x`."""
    found: dict[tuple[ast.AST, str], list[ast.expr]] = {}
    for target in (one.node for one in facts.assignments()):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            if isinstance(facts.value(target.value), Tensor):
                continue  # it casts what is written into it
            statement = facts.around.parent(target)
            if isinstance(statement, ast.Assign):
                found.setdefault((facts.around.scope(target), target.value.id), []).append(statement.value)
    return found


def _tensors(value: Value, dtype: str) -> Iterator[Tensor]:
    """The floating tensors among what is returned that are of another dtype, on some path at least."""
    for one in choices(value):
        if isinstance(one, Tuple):
            for item in one.items:
                yield from _tensors(item, dtype)
        elif isinstance(one, Tensor) and one.dtypes and one.dtypes <= FLOATING and one.dtypes != {dtype}:
            yield one


def _is_departure(operation: Operation, dtype: str) -> bool:
    """Does it make another floating dtype of this one, and is that for its author to mend?"""
    result = operation.result
    if not isinstance(result, Tensor) or not result.dtypes or len(result.dtypes - {dtype}) != 1:
        return False
    if dtype in result.dtypes and _wider(operation, dtype) is None:
        return False
    # float32 is right for a loss
    return not is_loss(operation) and not _chooses(operation, result.dtypes)


def _finding(seen: Sighting[Operation], dtype: str, returned: ast.expr) -> Finding:
    operation = seen.what
    result = operation.result
    assert isinstance(result, Tensor) and result.dtypes is not None
    [wide] = result.dtypes - {dtype}
    wider = _wider(operation, dtype)
    severity = None
    if wider is not None:
        name = f"`{short(wider.node)}`" if wider.node is not None else "a tensor"
        perhaps = " on some path" if dtype in result.dtypes else ""
        text = f"{dtype} meets {name}, which is {wide}{perhaps}: the function gives {wide}{perhaps and ' there'}"
        help = "Make it in the dtype of the input, or cast it there"
    else:
        text = f"{dtype} becomes {wide} here and is not cast back: the function gives {wide}"
        help, severity = "Cast the result back to the dtype of the input", Severity.INFO
    notes = () if returned is seen.node else ((returned, "returned here"),)
    made = finding(seen, None, text[0].upper() + text[1:], help)
    return replace(made, notes=notes, severity=severity)


def _chooses(operation: Operation, wide: frozenset[str]) -> bool:
    """Is its dtype the author's own choice: a tensor made like another in a dtype that is given, a cast of what was wide
    before?"""
    last, node = last_name_of(operation), operation.node
    if last.endswith("_like") or last.startswith("new_"):
        return True
    of_another = isinstance(node, ast.Call) and any(
        isinstance(part, ast.Attribute) and part.attr == "dtype"
        for one in (*node.args, *node.keywords)
        for part in ast.walk(one)
    )
    return last in TO_FLOATING and not of_another and all(one.dtypes == wide for one in tensors(operation)[:1])
