"""Where an expression has its dtype from, given what the names around it are bound to.

Read in the order in which the function runs, for a name that is bound again has other origins from there on.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint_rules._effects import (
    CASTS,
    DTYPE_FREE,
    FACTORIES,
    FLOAT32,
    JOINING,
    KEEPING,
    LIKE,
    NO_DTYPE,
    NO_TENSOR,
    PRODUCTS,
    SCALAR,
    TORCH,
    UNTOLD,
)
from dtlint_rules._meanings import is_device, is_setting, names_dtype
from dtlint_rules._names import last_name
from dtlint_rules._origin import NOTHING, Kind, Origin, few

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from dtlint_rules._origin import Roots

__all__ = ["Provenance", "follows", "may_be_cast", "measures"]

_MEASURES = frozenset({"shape", "device"})
_MEASURING = frozenset({"numel", "nelement", "size", "len", "get_device"})
_GATHERING = frozenset({"list", "tuple", "zip", "sum", "max", "min"})
"""Functions of Python that give on what they are given."""
_HANDING_ON = frozenset({"to", "type", "type_as", "where", *CASTS, *LIKE, *KEEPING, *JOINING, *_GATHERING})
"""What gives a cast, or the dtype of what it is given."""


def measures(node: ast.AST) -> bool:
    """Does a part of an expression speak of the shape, size or device of something?"""
    if isinstance(node, ast.Attribute):
        return node.attr in _MEASURES
    return isinstance(node, ast.Call) and last_name(node) in _MEASURING


def follows(node: ast.Call) -> bool:
    """May a call be told the dtype of something: `x.to(y)`, `zeros(n, dtype=x.dtype)`? Not one that is written out."""
    for keyword in node.keywords:
        if keyword.arg == "dtype" and not _is_written_out(keyword.value):
            return True
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name == "type_as" or (name in ("to", "type") and any(map(_may_tell, node.args)))


def may_be_cast(node: ast.expr) -> bool:
    """May an expression have its dtype from a cast, here or where a name in it is bound? Ask it before origins are read."""
    if isinstance(node, ast.Call):
        name = last_name(node)
        if name in _HANDING_ON or name.startswith("new_"):
            return True
        return any(keyword.arg == "dtype" for keyword in node.keywords)
    if isinstance(node, ast.BinOp):
        return may_be_cast(node.left) or may_be_cast(node.right)
    if isinstance(node, (ast.Tuple, ast.List)):
        return any(map(may_be_cast, node.elts))
    return _READERS.get(type(node)) not in _WITHOUT_DTYPE


def _may_tell(node: ast.expr) -> bool:
    """May a cast take a dtype from an argument? Not from a device."""
    return not _is_written_out(node) and (names_dtype(node) or not is_device(node))


def _is_written_out(node: ast.expr) -> bool:
    """A string, a number, or what `torch` has: `torch.float16`."""
    return isinstance(node, ast.Constant) or (path_of(node) or "").startswith("torch.")


class Provenance:
    """The origins of expressions, and what names are bound to so far."""

    def __init__(self) -> None:
        self.of: dict[ast.AST, Roots] = {}
        self.bound: dict[str, Roots] = {}
        self.dtypes: dict[str, str] = {}
        """Names of dtypes: `dtype = x.dtype`."""
        self.measures: dict[str, Roots] = {}
        """Names of shapes, sizes and devices, with the tensors that they were taken of: `n, d = x.shape`."""
        self.unmeasured: list[tuple[str, ast.expr]] = []
        """Names and what they were bound to, in order, until somebody asks what they measure."""

    def __getitem__(self, node: ast.AST) -> Roots:
        return self.of.get(node, NOTHING)

    def measured(self, node: ast.expr) -> Roots:
        """The tensors and models whose shape, size, device or configuration an expression speaks of."""
        unmeasured, self.unmeasured = self.unmeasured, []
        for name, value in unmeasured:
            if measured := self._measured(value):
                self.measures[name] = few(self.measures.get(name, NOTHING) | measured)
        return self._measured(node)

    def _measured(self, node: ast.expr) -> Roots:
        found = NOTHING
        for part in nodes([node]):
            if isinstance(part, ast.Name):
                if part.id in self.measures:
                    found |= self.measures[part.id]
            elif isinstance(part, ast.Attribute):
                if part.attr in _MEASURES:
                    found |= self[part.value]
            elif isinstance(part, ast.Call) and last_name(part) in _MEASURING:
                found |= self[part.func.value if isinstance(part.func, ast.Attribute) else (*part.args, part)[0]]
        return found

    def told(self, node: ast.Call) -> str | None:
        """The dtype that a call is told, as the source writes it: of a cast, or of a factory."""
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                return self._dtype(keyword.value)
        if not isinstance(node.func, ast.Attribute):
            return None
        name = node.func.attr
        if name in CASTS and not node.args and not node.keywords:
            return CASTS[name]
        if name == "type_as" and node.args:
            return f"{ast.unparse(node.args[0])}.dtype"
        if name == "view":
            return self._dtype(node.args[0]) if len(node.args) == 1 and names_dtype(node.args[0]) else None
        return self._told_to(node) if name in ("to", "type") else None

    def _told_to(self, node: ast.Call) -> str | None:
        """The dtype of `x.to(torch.float16)`, `x.to(device, dtype)`, and of `x.to(other)`."""
        for argument in node.args:
            if names_dtype(argument) or (path_of(argument) or "") in self.dtypes:
                return self._dtype(argument)
        if last_name(node) != "to" or len(node.args) != 1 or node.keywords:
            return None
        path = path_of(node.args[0])
        return f"{path}.dtype" if path is not None and not is_device(node.args[0]) and self.bound.get(path) else None

    def _dtype(self, node: ast.expr) -> str:
        text = path_of(node) or ast.unparse(node)
        noted = self.dtypes.get(text)
        if noted is not None:
            return noted  # `dtype = x.dtype` holds what `x` was then: it may be cast since
        if not text.endswith(".dtype"):
            return text
        roots = self.bound.get(text.removesuffix(".dtype"), NOTHING)
        known = {root.text if root.kind == Kind.CAST else "" for root in roots}
        return known.pop() or text if len(known) == 1 else text

    # -- binding ------------------------------------------------------------------------------------------------------

    def bind(self, target: ast.expr, roots: Roots, value: ast.expr) -> None:
        """Lets a target have the origins of the value that it is assigned."""
        if isinstance(target, (ast.Tuple, ast.List)):
            self._take_apart(target.elts, roots, value)
        elif isinstance(target, ast.Subscript):
            self.read(target.value)
        elif (path := path_of(target)) is not None:
            self.bound[path] = self.of[target] = roots
            if isinstance(target, ast.Name):
                self.unmeasured.append((path, value))
            if names_dtype(value):
                self.dtypes[path] = self._dtype(value)

    def _take_apart(self, targets: list[ast.expr], roots: Roots, value: ast.expr) -> None:
        items = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        mapped = _mapped(value)
        if mapped is not None and len(mapped.items) == len(targets):
            each = [self._applied(mapped.function, self[item]) for item in mapped.items]
            for target, made in zip(targets, each, strict=True):
                self.bind(target, made, value)
            return
        for index, target in enumerate(targets):
            if len(items) == len(targets):
                self.bind(target, self[items[index]], items[index])
            else:
                self.bind(target, roots, value)

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, node: ast.expr) -> Roots:
        """The origins of an expression, kept for it."""
        reader = _READERS.get(type(node))
        if reader is None:
            return NOTHING
        roots = reader(self, node)
        if len(roots) > 1:
            roots = few(roots)
        self.of[node] = roots
        return roots

    def _name(self, node: ast.Name) -> Roots:
        known = self.bound.get(node.id)
        if known is None:
            return NOTHING if node.id in NO_TENSOR else frozenset({Origin(Kind.GIVEN, node.id, node)})
        return known

    def _attribute(self, node: ast.Attribute) -> Roots:
        path = path_of(node)
        if path is not None:
            return self._named(node, path)
        roots = self.read(node.value)
        return NOTHING if node.attr in NO_TENSOR else roots

    def _named(self, node: ast.expr, path: str) -> Roots:
        known = self.bound.get(path)
        if known is not None:
            return known
        base, _, attribute = path.rpartition(".")
        if is_setting(path):
            return NOTHING
        if attribute in NO_TENSOR:
            if base and isinstance(node, ast.Attribute):
                self.read(node.value)
            return NOTHING
        while base and base not in self.bound:
            base = base.rpartition(".")[0]
        inner = self.bound.get(base) if base else None
        if inner is not None and any(origin.kind != Kind.GIVEN for origin in inner):
            return inner
        return frozenset({Origin(Kind.GIVEN, path, node)})

    def _arithmetic(self, node: ast.BinOp) -> Roots:
        return _met([self.read(node.left), self.read(node.right)])

    def _unary(self, node: ast.UnaryOp) -> Roots:
        roots = self.read(node.operand)
        return NOTHING if isinstance(node.op, ast.Not) else roots

    def _item(self, node: ast.Subscript) -> Roots:
        path = path_of(node.value)
        roots = self.read(node.value)
        if not isinstance(node.slice, (ast.Slice, ast.Constant)):
            self.read(node.slice)
        if path is not None and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return frozenset({Origin(Kind.GIVEN, f"{path}[{node.slice.value!r}]", node)})
        return roots

    def _choice(self, node: ast.IfExp) -> Roots:
        self.read(node.test)
        return self.read(node.body) | self.read(node.orelse)

    def _sequence(self, node: ast.Tuple | ast.List) -> Roots:
        return _met([self.read(item) for item in node.elts])

    def _starred(self, node: ast.Starred) -> Roots:
        return self.read(node.value)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp) -> Roots:
        for part in node.generators:
            self.bind(part.target, self.read(part.iter), part.iter)
        return self.read(node.elt)

    def _walrus(self, node: ast.NamedExpr) -> Roots:
        roots = self.read(node.value)
        self.bind(node.target, roots, node.value)
        return roots

    def _test(self, node: ast.Compare | ast.BoolOp) -> Roots:
        for part in [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.values:
            self.read(part)
        return NOTHING

    def _mapping(self, node: ast.Dict) -> Roots:
        for part in node.values:
            self.read(part)
        return NOTHING

    # -- calls --------------------------------------------------------------------------------------------------------

    def _handed_on(self, dtype: str) -> Roots:
        """The factories whose default dtype is handed on to another, `torch.ones(n, dtype=mask.dtype)`; nothing where it
        may be another dtype."""
        roots = self.bound.get(dtype.removesuffix(".dtype"), NOTHING) if dtype.endswith(".dtype") else NOTHING
        return roots if all(root.kind == Kind.MADE for root in roots) else NOTHING

    def _applied(self, function: ast.Lambda, given: Roots) -> Roots:
        """The origins of what a lambda of one parameter gives for what it is given."""
        (parameter,) = function.args.args
        outer = self.bound.get(parameter.arg)
        self.bound[parameter.arg] = given
        roots = self.read(function.body)
        if outer is None:
            del self.bound[parameter.arg]
        else:
            self.bound[parameter.arg] = outer
        return roots

    def _call(self, node: ast.Call) -> Roots:
        name = last_name(node)
        receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
        of_torch = name in FACTORIES or name in UNTOLD if receiver is None else path_of(receiver) in TORCH
        held = NOTHING if receiver is None or of_torch else self.read(receiver)
        given = [self.read(argument) for argument in node.args]
        every = NOTHING.union(held, *given, *[self.read(keyword.value) for keyword in node.keywords])
        mapped = _mapped(node)
        if mapped is not None:
            return self._applied(mapped.function, NOTHING.union(*map(self.__getitem__, mapped.items)))
        dtype = self.told(node)
        if dtype is not None and of_torch and (handed := self._handed_on(dtype)):
            return handed
        if dtype is not None and (of_torch or held or name in ("to", "type", "type_as", *CASTS)):
            return frozenset({Origin(Kind.CAST, dtype, node, held or every)})
        if name in NO_DTYPE:
            return NOTHING
        made = _made(node, name, given) if of_torch else None
        if made is not None:
            return made
        if receiver is not None and not of_torch and (name == "to" or name.startswith("new_")):
            return held
        if name in JOINING:
            joined = _met([every] if name in PRODUCTS else [held, *given])
            return joined or frozenset({Origin.at(Kind.CALLED, path_of(node.func) or name, node)})
        if given and receiver is not None and path_of(receiver) == "self":  # a layer, and no method of a tensor
            if "drop" in name:
                return given[0]
        elif name in KEEPING:
            return (given[0] if of_torch and given else held) or every
        if receiver is None and name in _GATHERING:
            return every
        return frozenset({Origin.at(Kind.CALLED, path_of(node.func) or name, node, every)})


@dataclass(frozen=True, slots=True)
class _Mapped:
    """`map(lambda x: x.float(), [q, k, v])`."""

    function: ast.Lambda
    items: list[ast.expr]


def _mapped(node: ast.expr) -> _Mapped | None:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "map"):
        return None
    if len(node.args) != 2 or not isinstance(node.args[1], (ast.Tuple, ast.List)):
        return None
    function = node.args[0]
    if not isinstance(function, ast.Lambda) or len(function.args.args) != 1:
        return None
    return _Mapped(function, node.args[1].elts)


_READERS: dict[type[ast.expr], Callable[[Provenance, Any], Roots]] = {
    ast.Name: Provenance._name,
    ast.Attribute: Provenance._attribute,
    ast.BinOp: Provenance._arithmetic,
    ast.UnaryOp: Provenance._unary,
    ast.Subscript: Provenance._item,
    ast.IfExp: Provenance._choice,
    **dict.fromkeys((ast.Tuple, ast.List), Provenance._sequence),
    ast.Starred: Provenance._starred,
    **dict.fromkeys((ast.ListComp, ast.GeneratorExp), Provenance._comprehension),
    ast.NamedExpr: Provenance._walrus,
    **dict.fromkeys((ast.Compare, ast.BoolOp), Provenance._test),
    ast.Dict: Provenance._mapping,
    ast.Call: Provenance._call,
}
"""By the kind of an expression, what reads it. Constants and texts have no origins."""
_WITHOUT_DTYPE = (None, Provenance._test, Provenance._mapping)
"""What reads an expression that has no dtype itself."""


def _made(call: ast.Call, name: str, given: list[Roots]) -> Roots | None:
    """The origins of what a factory of torch makes; None where the function is none."""
    if name in FACTORIES or name in UNTOLD:
        return frozenset({Origin.at(Kind.MADE, name, call)})
    if name in DTYPE_FREE:
        return NOTHING
    if name == "where" and len(given) == 3:
        return given[1] | given[2] or frozenset({Origin.at(Kind.MADE, name, call)})
    if name in LIKE:
        return given[0] if given else NOTHING
    return None


def _met(operands: Collection[Roots]) -> Roots:
    """What operands are promoted to. What was cast to float32 lifts the others to it, but for a scalar tensor."""
    for roots in operands:
        if roots and all(map(_lifts, roots)):
            return roots
    return NOTHING.union(*operands)


def _lifts(origin: Origin) -> bool:
    scalar = isinstance(origin.node, ast.Call) and last_name(origin.node) in SCALAR
    return origin.kind == Kind.CAST and origin.text in FLOAT32 and not scalar
