"""One look over a syntax tree, for all that is asked of every function: its calls, its yields, what it assigns to objects.

Walking a tree costs about as much as interpreting it, so it is done once; each scope keeps its facts on its own node.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dtlint.infer.walk import PARTS, SCOPES, nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HALF_NAMES", "PREDICATES", "REGISTERING", "Facts", "around", "facts", "scopes"]

REGISTERING = frozenset({"register_buffer", "register_parameter"})
"""Methods of a module that assign an attribute of it, by its name."""

_FLOAT16, _BFLOAT16 = frozenset({"float16"}), frozenset({"bfloat16"})
HALF_NAMES = {
    "float16": _FLOAT16,
    "half": _FLOAT16,
    "bfloat16": _BFLOAT16,
    "HalfTensor": _FLOAT16,
    "BFloat16Tensor": _BFLOAT16,
}
"""Half dtypes as attributes spell them, and casts to them."""
PREDICATES = frozenset({"is_floating_point", "is_complex", "is_signed"})
"""Methods of a tensor, and functions of torch, that ask for the kind of a dtype."""
_CASTS = frozenset({"to", "type", "type_as"})
"""The casts that are told a dtype."""
_ASKING = frozenset({"half", "bfloat16", "autocast", "GradScaler", "finfo", "add_argument", "backward", "zero_grad"})
_NOTED_METHODS = REGISTERING | _ASKING
_DEFAULT_SETTERS = frozenset({"set_default_dtype", "set_default_tensor_type"})
_KEPT = "_dtlint_facts"


class Facts:
    """What stands in a function, a class body or a module, what is inside its own functions and classes aside.

    Attributes:
        calls: the calls, in no order.
        called: the last names of what is called.
        keywords: the names of all arguments that are given by name.
        telling: the calls that may be told a dtype: the casts that take one, and what is given `dtype=`.
        asking: the calls that may say that half is asked for, or that something is trained.
        yields: does it yield, so that calling it gives a generator?
        stores: attributes that are assigned, each with the name of the object; those of inner scopes too.
        sets_default: does it, or a scope in it, set torch's default dtype?
        bound_inside: names that are bound inside an expression, by a comprehension or `:=`.
        has_walrus: is there a `:=`?
        inner: the functions and classes in it, in no order.
        halves: attributes that are spelled like a half dtype, or a cast to one: `torch.float16`, `x.half`.
        floats: the same of float32.
        predicates: attributes that are spelled like a question for the kind of a dtype: `x.is_floating_point`.
        dtype_tests: comparisons of a `.dtype`.
    """

    __slots__ = (
        *("asking", "bound_inside", "called", "calls", "dtype_tests", "floats", "halves", "has_walrus", "inner"),
        *("keywords", "predicates", "sets_default", "stores", "telling", "yields"),
    )

    def __init__(self) -> None:
        self.calls: list[ast.Call] = []
        self.called: set[str] = set()
        self.keywords: set[str | None] = set()
        self.telling: list[ast.Call] = []
        self.asking: list[ast.Call] = []
        self.yields = False
        self.stores: set[tuple[str, str]] = set()
        self.sets_default = False
        self.bound_inside: set[str] = set()
        self.has_walrus = False
        self.inner: list[ast.AST] = []
        self.halves: list[ast.Attribute] = []
        self.floats: list[ast.Attribute] = []
        self.predicates: list[ast.Attribute] = []
        self.dtype_tests: list[ast.Compare] = []


def facts(scope: ast.AST) -> Facts:
    """The facts of a scope."""
    known: Facts | None = getattr(scope, _KEPT, None)
    return _survey(scope) if known is None else known


def _survey(root: ast.AST) -> Facts:
    """Look over a scope and all scopes in it."""
    surveyed: list[tuple[Facts, Facts | None]] = []
    waiting: list[tuple[ast.AST, Facts | None]] = [(root, None)]
    while waiting:
        scope, outer = waiting.pop()
        own = Facts()
        setattr(scope, _KEPT, own)
        surveyed.append((own, outer))
        _look(scope, own)
        waiting += [(inner, own) for inner in own.inner]
    for own, outer in reversed(surveyed):  # inner ones first
        if outer is not None:
            outer.stores |= own.stores
            outer.sets_default |= own.sets_default
    return surveyed[0][0]


_LEAVES = frozenset[type](
    {ast.Name, ast.Constant, ast.alias, ast.Import, ast.Pass, ast.Break, ast.Continue, type(None)}
    | {ast.Global, ast.Nonlocal}
)
_SCOPES = frozenset(SCOPES)
_NOTED = frozenset({ast.Yield, ast.YieldFrom, ast.ImportFrom, ast.comprehension, ast.NamedExpr})
"""Kinds that say something by themselves, though they are seldom."""
_FLOAT_NAMES = frozenset({"float", "float32"})
_NOTED_NAMES = _DEFAULT_SETTERS | HALF_NAMES.keys() | _FLOAT_NAMES | PREDICATES


def scopes(root: ast.AST) -> Iterator[tuple[ast.AST, Facts]]:
    """A scope and all that are in it, with their facts."""
    waiting = [root]
    while waiting:
        scope = waiting.pop()
        own = facts(scope)
        yield scope, own
        waiting += own.inner


def _look(scope: ast.AST, own: Facts) -> None:
    """Note what stands in a scope, and the scopes in it. Their decorators and defaults belong to this one.

    The kinds that most nodes are of come first, with their parts by name: it is half the time."""
    body: Any = scope.body  # type: ignore[attr-defined]
    stack: list[Any] = list(body) if isinstance(body, list) else [body]
    pop, push = stack.pop, stack.append
    calls, called, keywords = own.calls, own.called, own.keywords
    while stack:
        node = pop()
        kind = type(node)
        while kind is ast.Call:
            calls.append(node)
            for part in node.args:
                if type(part) not in _LEAVES:
                    push(part)
            is_told = False
            for keyword in node.keywords:
                name = keyword.arg
                keywords.add(name)
                is_told = is_told or name == "dtype"
                if type(keyword.value) not in _LEAVES:
                    push(keyword.value)
            call, node = node, node.func
            kind = type(node)
            if kind is ast.Attribute:
                name = node.attr
                called.add(name)
                if name in _NOTED_METHODS:
                    _note_method(call, node, own)
                is_told = is_told or name in _CASTS
            elif kind is ast.Name:
                called.add(node.id)
                if node.id in _ASKING:
                    own.asking.append(call)
            if is_told:
                own.telling.append(call)
        if kind in _LEAVES:
            continue
        if kind is ast.Attribute:
            value = node.value
            if type(value) is not ast.Name:
                push(value)
            elif type(node.ctx) is not ast.Load:
                own.stores.add((value.id, node.attr))
            if node.attr in _NOTED_NAMES:
                _note_name(node, own)
        elif kind is ast.Assign:
            for part in node.targets:
                if type(part) is not ast.Name:
                    push(part)
            push(node.value)
        elif kind is ast.Subscript:
            push(node.value)
            push(node.slice)
        elif kind is ast.BinOp:
            push(node.left)
            push(node.right)
        elif kind is ast.Tuple or kind is ast.List:
            stack += node.elts
        elif kind is ast.Compare:
            push(node.left)
            stack += node.comparators
            for part in (node.left, *node.comparators):
                if type(part) is ast.Attribute and part.attr == "dtype":
                    own.dtype_tests.append(node)
                    break
        elif kind is ast.Expr or kind is ast.Return:
            push(node.value)
        elif kind is ast.If:
            push(node.test)
            stack += node.body
            stack += node.orelse
        elif kind is ast.UnaryOp:
            push(node.operand)
        elif kind in _SCOPES:
            own.inner.append(node)
            stack += around(node)
        else:
            if kind in _NOTED:
                _note(node, kind, own)
            for name in PARTS[kind]:
                child = getattr(node, name, None)
                if type(child) is list:
                    stack += child
                else:
                    push(child)


def _note(node: Any, kind: type[ast.AST], own: Facts) -> None:
    """Note what the seldom kinds of nodes say."""
    if kind is ast.ImportFrom:
        own.sets_default |= any(alias.name in _DEFAULT_SETTERS for alias in node.names)
    elif kind is ast.comprehension or kind is ast.NamedExpr:
        own.has_walrus |= kind is ast.NamedExpr
        own.bound_inside.update([part.id for part in nodes([node.target]) if type(part) is ast.Name])
    else:
        own.yields = True


def _note_name(node: ast.Attribute, own: Facts) -> None:
    if node.attr in HALF_NAMES:
        own.halves.append(node)
    elif node.attr in _FLOAT_NAMES:
        own.floats.append(node)
    elif node.attr in PREDICATES:
        own.predicates.append(node)
    else:
        own.sets_default = True


def _note_method(call: ast.Call, called: ast.Attribute, own: Facts) -> None:
    """`self.register_buffer("name", ...)` assigns an attribute; the others may ask for half."""
    if called.attr not in REGISTERING:
        own.asking.append(call)
        return
    owner, name = called.value, call.args[0] if call.args else None
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and isinstance(owner, ast.Name):
        own.stores.add((owner.id, name.value))


def around(scope: Any) -> list[ast.AST | None]:
    """The expressions of a function or class that are evaluated where it is defined."""
    if isinstance(scope, ast.ClassDef):
        return [*scope.decorator_list, *scope.bases, *(keyword.value for keyword in scope.keywords)]
    defaults = [*scope.args.defaults, *scope.args.kw_defaults]
    return defaults if isinstance(scope, ast.Lambda) else [*defaults, *scope.decorator_list]
