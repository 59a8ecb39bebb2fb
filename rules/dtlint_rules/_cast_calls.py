"""Casts, as calls: what is cast, a tensor or a module, and to which dtype."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import ALIASES
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import NO_TENSOR, TOP, Dtype, Ref, Tensor, Unknown, Value, choices
from dtlint.infer.facts import dtype_of
from dtlint.infer.names import path_of
from dtlint_rules._kept import kept
from dtlint_rules._module_walks import walk_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["TOLD", "Cast", "are_exclusive", "casts", "dtype_name", "is_module", "is_weight"]

TOLD = ("to", "type", "type_as")
"""The methods that are told a dtype."""
_NAMED = {name: ALIASES.get(name, name) for name in (*ALIASES, "bfloat16", "bool")}
_OF_MODULES = frozenset({"eval", "train", "parameters", "named_parameters", "state_dict", "load_state_dict", "modules"})
_RETURN_THEMSELVES = frozenset({"eval", "train", "cuda", "cpu", "to", "requires_grad_"})


@dataclass(frozen=True, slots=True)
class Cast:
    """A cast, all contexts of its function taken together.

    Attributes:
        node: the call.
        subject: what is cast, as it is written.
        value: what it is.
        dtype: to which dtype; that of a parameter has a symbol.
        of: "tensor" or "module"; empty where neither is certain.
        plain: does it nothing else: no move to a device, no copy?
    """

    node: ast.Call
    subject: ast.expr
    value: Value
    dtype: Dtype
    of: str
    plain: bool

    @property
    def method(self) -> str:
        """`half`, `to`."""
        assert isinstance(self.node.func, ast.Attribute)
        return self.node.func.attr

    @property
    def dtypes(self) -> frozenset[str]:
        """To which it casts; nothing where that is not known."""
        return self.dtype.dtypes or frozenset()


def casts(facts: ModuleFacts, *methods: str) -> Iterator[Cast]:
    """The casts in a module, by some methods or by any."""
    wanted = frozenset(methods)
    return (cast for cast in _casts(facts) if not wanted or cast.method in wanted)


@kept
def _casts(facts: ModuleFacts) -> Sequence[Cast]:
    return list(_found(facts))


def _found(facts: ModuleFacts) -> Iterator[Cast]:
    found: dict[ast.Call, list[tuple[Call, Dtype | None]]] = {}
    for call in facts.methods(*TOLD, *_NAMED):
        found.setdefault(call.node, []).append((call, _target(call)))
    for node, seen in found.items():
        targets = [dtype for _, dtype in seen if dtype is not None]
        if len(targets) < len(seen) or not isinstance(node.func, ast.Attribute):
            continue
        value = join_all(call.receiver or TOP for call, _ in seen) or TOP
        dtype = join_all(targets)
        assert isinstance(dtype, Dtype)
        first = seen[0][0]
        given = len(first.args) + len(first.keywords)
        plain = first.complete and given == (1 if first.method in TOLD else 0)
        yield Cast(node, node.func.value, value, dtype, _kind(facts, node.func.value, value), plain)


def _target(call: Call) -> Dtype | None:
    """The dtype that a call asks for; None where it is no cast, or not known to be one."""
    owner, _, last = call.name.rpartition(".")
    if call.name and not (last == call.method and (owner == "torch.Tensor" or owner.startswith("torch.nn."))):
        return None
    if call.method in _NAMED:
        return None if call.args else Dtype(frozenset({_NAMED[call.method]}))
    if call.method == "type":
        return dtype_of(call.argument(0, "dtype") or call.argument(0, "dst_type"))
    given = [*zip(call.node.args, call.args, strict=False)]
    keywords = call.keywords
    given += [(one.value, keywords[one.arg]) for one in call.node.keywords if one.arg and one.arg in keywords]
    named = [one.value for one in call.node.keywords if one.arg == "dtype"]
    for node, value in given:
        if isinstance(value, Tensor) or (call.method == "type_as" and isinstance(value, Unknown)):
            return Dtype(value.dtypes, value.symbol)
        if isinstance(value, Unknown):
            if node in named or (path_of(node) or "").endswith("dtype"):  # called as torch calls it
                return Dtype(None, value.symbol)
            continue
        known = [dtype_of(one) for one in choices(value)]
        if None not in known:
            result = join_all(one for one in known if one is not None)
            return result if isinstance(result, Dtype) else None
    return None


def is_weight(value: Value) -> bool:
    """Is it a parameter or a buffer of a module?"""
    if not isinstance(value, Tensor):
        return False
    symbol = value.symbol
    return ("weight", True) in value.extra or (symbol is not None and all(atom.floating for atom in symbol.of))


def _kind(facts: ModuleFacts, subject: ast.expr, value: Value) -> str:
    if isinstance(value, Tensor):
        return "tensor"
    walk = walk_over(facts, subject)
    if walk is not None:
        return "module" if walk.kind == "modules" else "tensor"
    if is_module(facts, subject, value):
        return "module"
    if isinstance(subject, ast.Name) and (_is_computed_with(facts, subject) or _has_shape(facts, subject)):
        return "tensor"
    return ""


_ARITHMETIC = (ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.Pow, ast.Mod)
"""Operators that no module has. Some have `+` and `|`."""


def _is_computed_with(facts: ModuleFacts, name: ast.Name) -> bool:
    """Does the function compute with a variable that has the same value there? Arrays have no methods that cast."""
    bound = facts.around.definitions(name)
    return any(
        isinstance(side, ast.Name)
        and side.id == name.id
        and bool(bound)
        and facts.around.definitions(side) == bound
        and not are_exclusive(facts, name, node)
        for node in facts.around.within(facts.around.scope(name))
        if isinstance(node, ast.BinOp) and isinstance(node.op, _ARITHMETIC)
        for side in (node.left, node.right)
    )


def _has_shape(facts: ModuleFacts, name: ast.Name) -> bool:
    """Does the function ask a variable for its shape while it has the same value, or what it is a slice of? Nothing else
    that has methods that cast has a shape."""
    bound = facts.around.definitions(name)
    if len(bound) != 1:
        return False
    (only,) = bound
    if isinstance(only, ast.Subscript) and isinstance(only.value, ast.Name) and _has_slice(only.slice):
        return _has_shape(facts, only.value)
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "shape"
        and isinstance(node.value, ast.Name)
        and node.value.id == name.id
        and facts.around.definitions(node.value) == bound
        and not are_exclusive(facts, name, node)
        for node in facts.around.within(facts.around.scope(name))
    )


def _has_slice(index: ast.expr) -> bool:
    return any(isinstance(one, ast.Slice) for one in (index.elts if isinstance(index, ast.Tuple) else [index]))


def is_module(facts: ModuleFacts, subject: ast.expr, value: Value) -> bool:
    """Is something a module: by what is known of it, or because it is called, or asked for what modules alone have?"""
    if isinstance(value, Ref):
        return True  # none but modules have methods that cast
    if value == NO_TENSOR:
        return True
    if not isinstance(value, Unknown) or value.dtypes or (value.symbol is not None and _is_computed(value)):
        return False
    while isinstance(subject, ast.Call) and isinstance(subject.func, ast.Attribute):
        if subject.func.attr in _OF_MODULES:
            return True
        if subject.func.attr not in _RETURN_THEMSELVES:
            return False
        subject = subject.func.value
    path = path_of(subject)
    return path is not None and any(_asks(node, path) for node in facts.around.within(facts.around.scope(subject)))


def _is_computed(value: Unknown) -> bool:
    return value.symbol is not None and (len(value.symbol.of) > 1 or value.symbol.least > 0)


def _asks(node: ast.AST, path: str) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in _OF_MODULES:
        return path_of(function.value) == path
    return path_of(function) == path


def are_exclusive(facts: ModuleFacts, one: ast.AST, other: ast.AST) -> bool:
    """Do two pieces of a function stand where one test comes out in two ways?"""
    tests = {ast.unparse(guard.test): guard.holds for guard in facts.around.guards(one)}
    return any(
        tests.get(ast.unparse(guard.test), guard.holds) is not guard.holds for guard in facts.around.guards(other)
    )


def dtype_name(dtype: Dtype) -> str:
    """The dtype as a message names it; empty where it is not known."""
    return " or ".join(sorted(dtype.dtypes or ()))
