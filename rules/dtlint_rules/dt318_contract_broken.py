"""DT318: a function gives another dtype than its contract says."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.contracts import Contract, Term, contract_of
from dtlint.infer.domain.values import Tensor
from dtlint.rule import Finding, Rule
from dtlint.source.definitions import named_parameters, returned
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.definitions import FunctionNode

__all__ = ["ContractBroken"]


class ContractBroken(Rule):
    """A function gives another dtype than its contract says.

    ## What it does
    Holds functions to their contracts, comments as `dtlint infer --stubs` writes them: `# dtypes: (x: T) -> T` on the
    line above a function. What it says of parameters is believed; what it says of the result is compared with each
    `return`. A contract that cannot be read is reported as well.

    ## Why it matters
    A contract is written for who calls the function, and what they do next rests on it. A `float()` or a constant
    tensor that slips in changes the dtype of all that follows, and no test in float32 sees it.

    ## Example
    ```python
    import torch


    # dtypes: (x: T) -> T
    def scaled(x):
        return x.float().softmax(-1)
    ```

    ## Use instead
    ```python
    import torch


    # dtypes: (x: T) -> T
    def scaled(x):
        return x.softmax(-1)
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT318", "contract-broken"
    triggers = ("dtypes",)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if facts.assumption is not None:
            return
        for node in facts.around.functions():
            if node.type_comment is not None:
                yield from _of_function(facts, node)


def _of_function(facts: ModuleFacts, function: FunctionNode) -> Iterator[Finding]:
    try:
        contract = contract_of(function)
    except ValueError as error:
        yield Finding(function, f"The contract cannot be read: {error}")
        return
    if contract is None:
        return
    names = {one.arg for one in named_parameters(function)}
    for name in contract.parameters.keys() - names:
        yield Finding(function, f"The contract speaks of `{name}`, which is no parameter")
    for result in returned(function):
        for node, term in _pairs(result, contract):
            said = _broken(facts, node, term, contract)
            if said is not None:
                yield Finding(node, said, help="Cast it, or write the contract anew by `dtlint infer --stubs`")


def _pairs(result: ast.expr, contract: Contract) -> list[tuple[ast.expr, Term]]:
    """What is returned, with what the contract says of it, as far as both are alike."""
    if isinstance(contract.result, Term):
        return [(result, contract.result)]
    if isinstance(result, ast.Tuple) and len(result.elts) == len(contract.result):
        return list(zip(result.elts, contract.result, strict=True))
    return []


def _broken(facts: ModuleFacts, node: ast.expr, term: Term, contract: Contract) -> str | None:
    """What is wrong with a result; None where it may be as the contract says."""
    value = facts.value(node)
    if not term.stated or not isinstance(value, Tensor):
        return None
    said = _in_words(term, contract)
    if value.dtypes:
        if term.dtypes and (term.variables or value.dtypes & term.dtypes):
            return None
        if not term.dtypes and not term.variables:
            return None
        return f"The result is {' or '.join(sorted(value.dtypes))}, but the contract says {said}"
    if value.symbol is None:
        return None
    variables = {one.text: one.text for one in value.symbol.of}
    variables |= {name: each.variables[0] for name, each in contract.parameters.items() if len(each.variables) == 1}
    found = {variables[atom.text] for atom in value.symbol.of} | value.symbol.met
    if found == {*term.variables, *term.dtypes}:
        return None
    names = " and ".join(sorted(f"`{atom.text}`" for atom in value.symbol.of))
    return f"The result has the dtype of {names}, but the contract says {said}"


def _in_words(term: Term, contract: Contract) -> str:
    if term.variables and not term.dtypes and len(term.variables) == 1:
        owner = next((name for name, each in contract.parameters.items() if each.variables == term.variables), None)
        return term.variables[0] if owner is None else f"{term.variables[0]}, the dtype of `{owner}`"
    if term.variables:
        return f"promote({', '.join([*term.variables, *sorted(term.dtypes)])})"
    return " or ".join(sorted(term.dtypes))
