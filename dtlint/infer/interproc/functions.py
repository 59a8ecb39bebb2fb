"""Functions that are read as source: their parameters, and how arguments meet them."""

from __future__ import annotations

import ast
import copy
import types
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dtlint.infer.domain.lattice import join, join_all
from dtlint.infer.domain.values import TOP, Const, Many, Mapping, Tuple, Value, present
from dtlint.infer.models.registry import MODELS
from dtlint.infer.models.training import UNSCALING
from dtlint.infer.walk import nodes, parts
from dtlint.source.definitions import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Mapping as MappingOf

    from dtlint.infer.context import Arguments
    from dtlint.infer.models.registry import Model

__all__ = ["FunctionDefinition", "FunctionNode", "bound_arguments"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_CASTING = frozenset({"data", "set_", "to", "type", "half", "bfloat16", "float", "double"})


@dataclass(eq=False)
class FunctionDefinition:
    """A function, by its syntax.

    Attributes:
        node: its definition.
        module: the module that holds it.
        owner: the class whose method it is, a `ProjectClass`.
        defaults: the values of its parameters' defaults; None until the definition was run.
    """

    node: FunctionNode
    module: Any
    owner: Any = None
    defaults: dict[str, Value] | None = field(default=None)

    @property
    def name(self) -> str:
        """Its name, or `<lambda>`."""
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def qualified_name(self) -> str:
        """Its name with the module's and the class's."""
        return f"{self.module.name if self.owner is None else self.owner.name}.{self.name}"

    @property
    def is_constructor(self) -> bool:
        """Does it make an object, or what that holds to begin with?"""
        return self.name in ("__init__", "__new__")

    @cached_property
    def model(self) -> Model | None:
        """What stands for the function though it can be read: a driver, whose source leads through machinery."""
        return MODELS.get(self.qualified_name)

    @cached_property
    def decorators(self) -> frozenset[str]:
        """The last names of its decorators: `property`, `no_grad`."""
        if isinstance(self.node, ast.Lambda):
            return frozenset()
        return frozenset(filter(None, map(_last_name, self.node.decorator_list)))

    @cached_property
    def _contents(self) -> tuple[bool, tuple[FunctionNode, ...]]:
        """Does it yield, and the functions directly inside it. Found in one walk."""
        yields, inner = False, list[FunctionNode]()
        waiting: list[ast.AST] = [self.node.body] if isinstance(self.node, ast.Lambda) else list(self.node.body)
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is ast.FunctionDef or kind is ast.AsyncFunctionDef or kind is ast.Lambda:
                inner.append(node)  # type: ignore[arg-type]
                continue
            if kind is ast.ClassDef:
                continue
            yields = yields or kind is ast.Yield or kind is ast.YieldFrom
            waiting += parts(node)
        return yields, tuple(inner)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        """The attributes that its text names."""
        return frozenset(one.attr for one in nodes([self.node]) if isinstance(one, ast.Attribute))

    @property
    def speaks_of_casts(self) -> bool:
        """Does its text name what casts modules and weights, or binds their data?"""
        return not _CASTING.isdisjoint(self._attributes)

    @property
    def speaks_of_unscaling(self) -> bool:
        """Does its text name the method of a GradScaler that refuses float16 gradients?"""
        return UNSCALING in self._attributes

    @cached_property
    def is_abstract(self) -> bool:
        """Is it a method that subclasses are to write, which raises NotImplementedError?"""
        if self.owner is None or isinstance(self.node, ast.Lambda):
            return False
        body = [
            one for one in self.node.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ]
        if len(body) != 1 or not isinstance(body[0], ast.Raise):
            return False
        raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"

    @property
    def is_generator(self) -> bool:
        """Does it yield?"""
        return not isinstance(self.node, ast.Lambda) and self._contents[0]

    @property
    def inner(self) -> tuple[FunctionNode, ...]:
        """The functions directly inside it, those in classes and in other functions aside."""
        return self._contents[1]

    @cached_property
    def gives_first(self) -> bool:
        """Does it give its first argument back whenever it returns, as decorators do that put a function on a list, or
        write its docstring?"""
        functions = {one.name: one for one in self.module.tree.body if isinstance(one, ast.FunctionDef)}
        return _gives_first(self.node, functions, ())

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of all parameters that an argument can be given for, stars aside."""
        return tuple(one.arg for one in named_parameters(self.node))

    @cached_property
    def plain_parameters(self) -> dict[str, ast.expr]:
        """The parameters that are annotated as plain numbers or devices, perhaps as optional ones, with the annotations."""
        every = named_parameters(self.node)
        return {one.arg: one.annotation for one in every if one.annotation is not None and _is_plain(one.annotation)}

    @cached_property
    def variables(self) -> tuple[tuple[str, ...], int]:
        """The names of its variables as its code lists them, and how many of them are positional parameters."""
        bare: Any = copy.copy(self.node)
        if not isinstance(bare, ast.Lambda):
            bare.decorator_list = []
            body: ast.Module | ast.Expression = ast.Module([bare], [])
        else:
            body = ast.Expression(bare)
        made = compile(body, "<function>", "exec" if isinstance(body, ast.Module) else "eval")
        code = next(one for one in made.co_consts if isinstance(one, types.CodeType))
        return code.co_varnames, code.co_argcount

    @cached_property
    def default_nodes(self) -> tuple[tuple[str, ast.expr], ...]:
        """The parameters with a default, and the default's expression."""
        given = self.node.args
        positional = [*given.posonlyargs, *given.args]
        found = list(
            zip((one.arg for one in positional[len(positional) - len(given.defaults) :]), given.defaults, strict=True)
        )
        found += [
            (one.arg, default)
            for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            if default is not None
        ]
        return tuple(found)

    def set_defaults(self, values: dict[str, Value]) -> None:
        """The definition was run, and its defaults were evaluated: again, perhaps, with other values."""
        if self.defaults is None:
            self.defaults = values
        else:
            self.defaults = {name: join(self.defaults.get(name, value), value) for name, value in values.items()}

    def annotation(self, name: str) -> ast.expr | None:
        """The annotation of a parameter."""
        return next((one.annotation for one in named_parameters(self.node) if one.arg == name), None)


_OF_NUMBERS = frozenset({"int", "float", "bool", "Optional", "Union", "typing"})


def _is_plain(annotation: ast.expr) -> bool:
    """Does an annotation name Python's numbers alone, or devices?"""
    parts = list(nodes([annotation]))
    names = {one.id for one in parts if isinstance(one, ast.Name)}
    attributes = {one.attr for one in parts if isinstance(one, ast.Attribute)}
    if attributes == {"device"}:
        return names <= {"torch", "Optional"}
    return bool(names) and names <= _OF_NUMBERS and not any(isinstance(one, ast.List) for one in parts)


def _gives_first(node: FunctionNode, functions: MappingOf[str, ast.FunctionDef], within: tuple[ast.AST, ...]) -> bool:
    """Does a function give its first argument back, itself or by others that do?

    Args:
        node: the function.
        functions: those that it can call by their names.
        within: the functions that ask.
    """
    positional = (*node.args.posonlyargs, *node.args.args)
    if not isinstance(node, ast.FunctionDef) or not positional or node in within:
        return False
    first = positional[0].arg
    body = _with_first(node.body, first)
    if not _ends(body) or any(_binds(one, first) or _yields(one) for part in body for one in _own_nodes(part)):
        return False
    if any(isinstance(one, ast.Nonlocal) and first in one.names for one in nodes([node])):
        return False
    functions = {**functions, **{one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}}

    def is_first(value: ast.expr | None) -> bool:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args:
            called = functions.get(value.func.id)
            if called is None or called.decorator_list or not is_first(value.args[0]):
                return False
            return _gives_first(called, functions, (*within, node))
        return _is_name(value, first)

    return all(is_first(one.value) for one in _own_statements(body) if isinstance(one, ast.Return))


def _with_first(body: Sequence[ast.stmt], first: str) -> list[ast.stmt]:
    """What of a body runs where the first argument is given: `if first is None: return partial(...)` does not, nor does
    what stands behind `if first: return ...`."""
    kept: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If) and (given := _asks_for(statement.test, first)) is not None:
            kept += _with_first(statement.body if given else statement.orelse, first)
        else:
            kept.append(statement)
        if _ends(kept):
            break
    return kept


def _asks_for(test: ast.expr, first: str) -> bool | None:
    """Is it a test that holds where the first argument is given (`if first`, `if first is not None`), or one that does
    not? None where it is another."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        given = _asks_for(test.operand, first)
        return None if given is None else not given
    if isinstance(test, ast.Compare) and _is_name(test.left, first) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and other.value is None and isinstance(test.ops[0], (ast.Is, ast.IsNot)):
            return isinstance(test.ops[0], ast.IsNot)
    return True if _is_name(test, first) else None


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Is the end of some statements never reached?"""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, (ast.Return, ast.Raise))


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and what is in it; of functions and classes only their names, for what they bind is theirs."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting += parts(node)


def _own_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a function, those of functions and classes in it aside."""
    for statement in body:
        yield statement
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for name in ("body", "orelse", "finalbody"):
                yield from _own_statements(getattr(statement, name, ()))
            for inner in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                yield from _own_statements(inner.body)


def _yields(node: ast.AST) -> bool:
    return isinstance(node, (ast.Yield, ast.YieldFrom))


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    return name in (getattr(node, "name", None), getattr(node, "asname", None), getattr(node, "rest", None))


def _is_name(node: ast.expr | None, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def bound_arguments(definition: FunctionDefinition, arguments: Arguments) -> dict[str, Value] | None:
    """The value of each parameter; None where the call raises for want of an argument, or for one too many.

    `*args` is a tuple and `**kwargs` a `Mapping`, which the caller puts into a dict.
    """
    given = definition.node.args
    positional = [one.arg for one in (*given.posonlyargs, *given.args)]
    values: dict[str, Value] = dict(zip(positional, arguments.args, strict=False))
    extra = tuple(arguments.args[len(positional) :])
    if extra and given.vararg is None and (arguments.complete or arguments.positional):
        return None
    by_name = {one.arg for one in (*given.args, *given.kwonlyargs)}
    rest: list[tuple[Value, Value]] = []
    defaults = definition.defaults or {}
    for name, value in arguments.keywords.items():
        is_certain = name not in arguments.perhaps
        if name in values or (name not in by_name and given.kwarg is None):  # there is no place for it
            if arguments.complete and is_certain:
                return None
        elif name not in by_name:
            rest.append((Const(name), value))
        elif is_certain or name not in defaults:
            values[name] = value if is_certain else present(value) or TOP
        else:
            values[name] = join(present(value) or TOP, defaults[name])
    for name in definition.parameters:
        if name in values:
            continue
        if name in defaults:
            values[name] = defaults[name] if arguments.complete else join(defaults[name], TOP)
        elif arguments.complete:
            return None
        else:
            values[name] = TOP
    if given.vararg is not None:
        known = arguments.complete or arguments.positional
        values[given.vararg.arg] = Tuple(extra) if known else Many(join_all([*extra, TOP]) or TOP)
    if given.kwarg is not None:
        values[given.kwarg.arg] = Mapping(tuple(rest), None if arguments.complete else TOP)
    return values
