"""What becomes of each public function under an assumption: it supports it, or raises, leaves the dtype, overflows; or it could
not be followed to its end, or little was seen of what its tensors of the assumed dtype become, and nothing is promised.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.check.verdict import Verdict
from dtlint.infer.domain.values import Many, Tensor, Tuple, Unknown, Value, choices
from dtlint.infer.interproc.parameter_kinds import kinds_in
from dtlint.source.definitions import named_parameters, public_functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dtlint.infer.facts import ModuleFacts
    from dtlint.rule import Finding, Rule

__all__ = ["consequence", "entries", "supported"]


def consequence(rule: Rule, finding: Finding) -> Verdict:
    """What a finding says of the function that leads there."""
    if "raises" in finding.message:
        return Verdict.RAISES
    return Verdict.LEAVES if rule.code.startswith("DT3") else Verdict.OVERFLOWS


def entries(facts: ModuleFacts, node: ast.AST) -> frozenset[ast.AST]:
    """The functions through which a node is reached, as far as it is known: those that stand outermost in the module."""
    found: set[ast.AST] = set()
    for way in facts.ways(node):
        at = way[0].node if way and way[0].module is facts.module else node
        around = [one for one in facts.around.around(at) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
        found.update(around[-1:])
    return frozenset(found)


def supported(
    facts: ModuleFacts | None,
    tree: ast.Module,
    verdicts: Mapping[ast.AST, Iterable[Verdict]],
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str, Verdict]]:
    """The public functions of a module that compute with tensors, each with its name and its verdict.

    Args:
        facts: what was found under the assumption; None where that could not be read at all.
        verdicts: what findings say of functions.
    """
    order = list(Verdict)
    names = _qualified(tree)
    for function in public_functions(tree.body):
        told = list(verdicts.get(function, ()))
        if facts is None or function in facts.unfinished:
            told.append(Verdict.UNFINISHED)
        elif not told and not _is_judged(facts, function):
            computes = _computes(facts, function)
            if _takes_tensors(tree, function, "." in names[function], computes):
                told.append(Verdict.UNSEEN)
            elif not computes:
                continue
        yield function, names[function], min(told or [Verdict.SUPPORTS], key=order.index)


def _computes(facts: ModuleFacts, function: ast.AST) -> bool:
    """Was anything of torch seen to happen in a function?"""
    return any(facts.operations_at(node) for node in facts.around.within(function))


def _is_judged(facts: ModuleFacts, function: ast.AST) -> bool:
    """Was something seen to happen to a tensor of the assumed dtype in a function, or in one that it calls; and of most calls
    that it gives such tensors to, what they do?"""
    assumption = facts.assumption
    assumed = frozenset({assumption.inputs, assumption.weights}) if assumption is not None else frozenset()
    seen, unseen = False, 0
    for node in facts.around.within(function):
        if any(_has(assumed, (*one.args, *(v for _, v in one.keywords))) for one in facts.operations_at(node)):
            seen = True
        calls = facts.calls_at(node) if isinstance(node, ast.Call) else ()
        given = [one for one in calls if one.result is not None and _has(assumed, (*one.args, *one.keywords.values()))]
        if given:
            is_known = any(one.name and _tells(one.result) for one in given if one.result is not None)
            seen, unseen = seen or is_known, unseen + (-1 if is_known else 1)
    return seen and unseen <= 0


def _has(dtypes: frozenset[str], values: Iterable[Value]) -> bool:
    """Is one of some values a tensor of one of these dtypes, or does it hold one?"""
    return any(bool(dtypes & (one.dtypes or frozenset())) for value in values for one in _tensors(value))


def _tells(value: Value) -> bool:
    return any(one.dtypes is not None for one in _tensors(value))


def _tensors(value: Value) -> Iterator[Tensor | Unknown]:
    for one in choices(value):
        if isinstance(one, (Tensor, Unknown)):
            yield one
        elif isinstance(one, (Tuple, Many)):
            for item in one.items if isinstance(one, Tuple) else (one.item,):
                yield from _tensors(item)


def _takes_tensors(
    tree: ast.Module, function: ast.FunctionDef | ast.AsyncFunctionDef, is_method: bool, computes: bool
) -> bool:
    """May a function be given floating tensors, by its annotations, or by what it does with parameters that have none?

    Args:
        is_method: does it stand in a class?
        computes: does it compute with tensors? Then a parameter that nothing tells of may be one.
    """
    kinds = kinds_in(tree, function)
    named = named_parameters(function)
    is_static = any(getattr(one, "id", "") == "staticmethod" for one in function.decorator_list)
    for one in named[is_method and not is_static :]:
        kind = kinds[one.arg]
        if one.annotation is not None:
            if kind.may_be_floating and _is_of_tensors(one.annotation):
                return True
        elif kind.is_tensor or (computes and kind.may_be_floating):
            return True
    return False


def _is_of_tensors(annotation: ast.expr) -> bool:
    """Does an annotation speak of tensors, other than of indices and masks?"""
    text = ast.unparse(annotation)
    return "Tensor" in text and "LongTensor" not in text and "BoolTensor" not in text


def _qualified(tree: ast.Module) -> dict[ast.AST, str]:
    """The functions of a module and its classes, each with its name as Python qualifies it."""
    found: dict[ast.AST, str] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        node, prefix = waiting.pop()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[part] = f"{prefix}{part.name}"
            elif isinstance(part, ast.ClassDef):
                waiting.append((part, f"{prefix}{part.name}."))
            elif isinstance(part, (ast.stmt, ast.ExceptHandler, ast.match_case)):
                waiting.append((part, prefix))
    return found
