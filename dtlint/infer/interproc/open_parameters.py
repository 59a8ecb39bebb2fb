"""What anybody may give a function: its parameters by annotation, contract and default, with symbols for their dtypes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.contracts import contract_of
from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.lattice import category_of, join, join_all
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Atom,
    Const,
    External,
    Function,
    Instance,
    Many,
    Mapping,
    Number,
    Partial,
    ProjectClass,
    Symbol,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.interproc.parameter_kinds import Kind, ParameterKinds, kinds_by_use, told_apart
from dtlint.infer.interproc.signatures import parameter_key
from dtlint.infer.interproc.tensor_use import used_as_tensors
from dtlint.infer.semantics.annotations import declared_in, holds_no_tensor, is_declared
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

    from dtlint.infer.context import Context
    from dtlint.infer.interproc.functions import FunctionDefinition

__all__ = [
    "as_operands",
    "is_open",
    "numbers",
    "open_parameters",
    "usual_numbers",
    "usual_parts",
]


def open_parameters(
    ctx: Context,
    definition: FunctionDefinition,
    kinds: ParameterKinds | None = None,
    *,
    trusts_uses: bool = True,
) -> dict[str, Value]:
    """The parameters of a function, as anybody may give them.

    Args:
        kinds: which of them have a certain dtype under an assumption. Those of a constructor are numbers unless they are
            shown to be tensors.
        trusts_uses: are those numbers that bound a range or size a layer, and is a BoolTensor bool? Programs declare masks of
            integers like that, too.
    """
    given = definition.node.args
    defaults = definition.defaults or {}
    gradients, named = _gradients(definition), named_parameters(definition.node)
    is_method = definition.owner is not None and "staticmethod" not in definition.decorators
    others = named[is_method:]  # than the receiver, whose methods say nothing of tensors
    contracted = _contracted(definition)
    by_use = kinds_by_use(definition) if trusts_uses else {}
    found: dict[str, Value] = {}
    for one in named:
        default = defaults.get(one.arg)
        symbol = Symbol(frozenset({Atom(parameter_key(one), one.arg)}))
        value = None if one.annotation is None else declared_in(ctx, definition.module, one.annotation, symbol)
        is_mask = not trusts_uses and is_declared(one.annotation, "BoolTensor")
        if is_mask or (value is None and one in others and one.arg in used_as_tensors(definition.node)):
            value = Tensor(None, symbol)
        if value is None and one in gradients:
            value = Tensor(None, symbol) if len(gradients) == 1 else join(Tensor(None, symbol), NONE)
        if value is None:
            is_other = default not in (None, NONE) and not isinstance(default, (Tensor, Unknown))
            value = TOP if is_other or holds_no_tensor(one.annotation) else Unknown(None, symbol)
            if by_use.get(one.arg) is Kind.NUMBER and one.annotation is None and not isinstance(default, Tuple):
                value = _NUMBER
        value = contracted.get(one.arg, value)
        category = None if default is None else category_of(default)
        if isinstance(value, Number) and category is not None:
            value = join(value, Number(category))  # `x: int = 0.5` takes floats
        if kinds is not None and not is_declared(one.annotation, "LongTensor"):
            is_input = default is None and _is_forward(definition)
            value = kinds.assumed(definition, one, value, is_input=is_input, tensors_alone=definition.is_constructor)
        found[one.arg] = join(value, NONE) if default == NONE else value
    if given.vararg is not None:
        found[given.vararg.arg] = Many(TOP)
    if given.kwarg is not None:
        found[given.kwarg.arg] = Mapping((), TOP)
    return found


def _contracted(definition: FunctionDefinition) -> dict[str, Value]:
    """The parameters of which a contract says what they are. One variable is one dtype."""
    try:
        contract = contract_of(definition.node)
    except ValueError:
        contract = None
    if contract is None:
        return {}
    found: dict[str, Value] = {}
    symbols: dict[str, Symbol] = {}
    for one in named_parameters(definition.node):
        term = contract.parameters.get(one.arg)
        if term is None or not term.stated:
            continue
        own = Symbol(frozenset({Atom(parameter_key(one), one.arg)}))
        value: Value = Tensor(term.dtypes) if term.dtypes else TOP
        if len(term.variables) == 1:
            value = Tensor(None, symbols.setdefault(term.variables[0], own))
        found[one.arg] = join(value, NONE) if term.optional else value
    return found


def numbers(definition: FunctionDefinition, bound: MappingOf[str, Value]) -> dict[str, Value]:
    """The parameters without a declaration that are numbers unless somebody says otherwise, as epsilons are, or several of
    them."""
    found: dict[str, Value] = {}
    for name, default in (definition.defaults or {}).items():
        if isinstance(default, Tuple) and default.items and all(map(_is_number, default.items)):
            if type(bound.get(name)) is Unknown and name not in told_apart(definition.node):
                found[name] = Many(_NUMBER)
        elif _is_number(default) and bound.get(name) == TOP:
            found[name] = _NUMBER
        elif isinstance(default, Const) and type(default.value) is bool and bound.get(name) == TOP:
            found[name] = Number(Category.BOOL)
    return found


def _is_number(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) in (int, float)


_NUMBER = join(Number(Category.INTEGER), Number(Category.FLOAT))


def as_operands(definition: FunctionDefinition, bound: MappingOf[str, Value]) -> dict[str, Value]:
    """The parameters that a function reckons with, and of whose dtypes nothing is declared, as floating tensors with at least
    one dimension."""
    found: dict[str, Value] = {}
    for name, kind in kinds_by_use(definition).items():
        default = (definition.defaults or {}).get(name)
        if kind not in (Kind.FLOATING, Kind.TENSOR, Kind.OPERAND) or default not in (None, NONE):
            continue
        found[name] = join_all(map(_as_operand, choices(bound[name]))) or bound[name]
    return found


def _as_operand(value: Value) -> Value:
    if not isinstance(value, (Tensor, Unknown)) or isinstance(value, Instance) or value.symbol is None or value.dtypes:
        return value
    atoms = frozenset(Atom(one.key, one.text, floating=True, shaped=True) for one in value.symbol.of)
    return Tensor(None, Symbol(atoms), -1)


def is_open(value: Value) -> bool:
    """May it be a tensor whose dtype the caller decides?"""
    return any(isinstance(one, (Tensor, Unknown)) and one.symbol is not None for one in choices(value))


def usual_numbers(definition: FunctionDefinition) -> dict[str, Value]:
    """The parameters that are a small or a large number unless somebody says otherwise, as epsilons and the values of masked
    scores are. 0 and 1 switch something off, and say little of what it does."""
    return {
        name: value
        for name, value in (definition.defaults or {}).items()
        if isinstance(value, Const) and type(value.value) is float and value.value not in (0.0, 1.0)
    }


def usual_parts(definition: FunctionDefinition) -> dict[str, Value]:
    """The parameters that are a class or a function unless somebody says otherwise, as layers and activations are."""
    parts = (External, Function, ProjectClass, Partial)
    return {name: value for name, value in (definition.defaults or {}).items() if isinstance(value, parts)}


def _is_forward(definition: FunctionDefinition) -> bool:
    """Is it what calling a module runs? Its arguments are tensors, or hold them: a list of tensors is used much alike."""
    if definition.name != "forward" or definition.owner is None:
        return False
    return definition.owner.definition.inherits("torch.nn.Module") is not False


def _gradients(definition: FunctionDefinition) -> tuple[ast.arg, ...]:
    """The parameters of the `backward` of a torch.autograd.Function behind its context: a tensor for each result of `forward`,
    None for one that is no tensor, and for one without a gradient where the class asks for that."""
    owner = definition.owner
    if owner is None or definition.name != "backward" or not owner.definition.inherits("torch.autograd.Function"):
        return ()
    if any(
        isinstance(node, ast.Attribute) and node.attr == "set_materialize_grads"
        for node in ast.walk(owner.definition.node)
    ):
        return ()
    return named_parameters(definition.node)[1:]
