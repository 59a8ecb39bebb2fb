"""What happens as a program runs, with the values of its parts: the vocabulary in which rules speak."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtlint.infer.semantics.releases import always
from dtlint.infer.values import Array, Constant, Phase, Tensor

if TYPE_CHECKING:
    from dtlint.infer.loops import Walk
    from dtlint.infer.program_state import State
    from dtlint.infer.scopes import FunctionInfo
    from dtlint.infer.values import Autocast, Dtypes, Key, Value

__all__ = [
    "Assign",
    "Call",
    "Condition",
    "Discard",
    "End",
    "Enter",
    "Event",
    "Exit",
    "Flow",
    "Listeners",
    "Lookup",
    "Loop",
    "Operation",
    "Reference",
    "has_dtype",
]


@dataclass(slots=True, eq=False, repr=False)
class Condition:
    """A branch that is being run: the test, and whether it was true. Code behind `if test: return` runs where the test
    was false. Of an exception handler the test is what it catches; it holds in the handler, and not in the `try`."""

    test: ast.expr
    holds: bool


@dataclass(slots=True, eq=False, repr=False)
class Loop:
    """A `for` loop whose body is being run, and what it runs over."""

    node: ast.For | ast.AsyncFor
    over: Value


@dataclass(slots=True, eq=False, repr=False)
class Flow:
    """Where the program is: read it while the event is handled, it moves on."""

    state: State
    function: FunctionInfo | None
    """The function that runs, None for the module's own statements."""
    contexts: list[Autocast]
    """The autocast regions entered, innermost last."""
    conditions: list[Condition]
    """The branches taken inside the running function, innermost last, behind those under which it was defined."""
    loops: list[Loop]
    """The loops inside the running function, innermost last."""
    block: list[ast.stmt]
    """The statements of the innermost block."""
    statement: ast.stmt
    """The innermost statement being run."""
    tree: ast.Module
    """The whole module."""

    @property
    def autocast(self) -> Autocast | None:
        """The autocast region in force: the innermost, unless it is switched off."""
        inner = self.contexts[-1] if self.contexts else None
        return None if inner is None or inner.enabled is False else inner

    @property
    def region_known(self) -> bool:
        """Is it certain which autocast region is in force: in a function, may its caller have opened one?"""
        return self.function is None or bool(self.contexts)

    @property
    def version_gated(self) -> bool:
        """Does this code run only on some versions or builds, by a test that the author wrote for the purpose?"""
        return any(
            _asks_version(condition.test)
            for condition in self.conditions
            if always(condition.test) is not condition.holds
        )

    @property
    def scope(self) -> ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda:
        """The syntax tree of the running function, or of the module."""
        return self.tree if self.function is None else self.function.node

    def walk_over(self, item: str) -> Walk | None:
        """The innermost running loop that binds the variable `item` to what a module holds: its parameters, say."""
        from dtlint.infer.loops import walk_over

        return walk_over(self, item)

    def phase(self, scaler: Key) -> Phase:
        """How far a GradScaler is in its cycle."""
        return self.state.scalers.get(scaler, Phase.IDLE)


_MISSING = frozenset({"ImportError", "ModuleNotFoundError", "AttributeError"})
_ASKING = frozenset({"hasattr", "getattr", "signature", "getfullargspec", "find_spec"})
_TORCH = frozenset({"torch", "pytorch", "amp", "autocast", "gradscaler", "scaler"})
_NAMED_RELEASE = re.compile(
    r"(?:^|_)(?:py)?torch_?(?:v?\d|[gl](?:t|e|te|eq)(?=_|\d|$)|(?:greater|less|since|before|at_least)_)"
)
"""`torch_ge_2_4`, `TORCH_2`, `is_torch_greater_or_equal_than_2_4`."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _asks_version(test: ast.expr) -> bool:
    """Is the test for a version of torch, or for what only some versions have? A version of anything else is none."""
    names = [
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(test)
        if isinstance(node, (ast.Name, ast.Attribute))
    ]
    if not _MISSING.isdisjoint(names) or any(_NAMED_RELEASE.search(name.lower()) for name in names):
        return True
    words = {word.lower() for name in names for word in _WORD.findall(name)} | {name.lower() for name in names}
    if not words.isdisjoint(_TORCH):
        return "version" in words or not _ASKING.isdisjoint(names)
    return "version" in words and any(_is_release(node) for node in ast.walk(test))


def _is_release(node: ast.AST) -> bool:
    """`(2, 4)`, what versions are compared with."""
    return (
        isinstance(node, ast.Tuple)
        and bool(node.elts)
        and all(isinstance(item, ast.Constant) and isinstance(item.value, int) for item in node.elts)
    )


@dataclass(slots=True, eq=False, repr=False)
class Event:
    """Base of all events."""

    node: ast.AST
    flow: Flow


@dataclass(slots=True, eq=False, repr=False)
class Call(Event):
    """A call, once its arguments and its result are known."""

    node: ast.Call
    target: str
    """The qualified name of what is called, "" when not known: `torch.nn.functional.softmax`, and for methods by what
    the receiver is: `torch.Tensor.half`, `torch.nn.Module.half`, `torch.optim.Optimizer.step`, `torch.amp.GradScaler.step`."""
    name: str
    """The last name of what is called, as it is written: of a method that, of a plain function its name; else ""."""
    method: str
    """The attribute that is called, whatever the receiver is; "" for a plain function."""
    receiver: Value
    """What the method is called on; where a module itself is called, `model(x)` or `self.model(x)`, that module."""
    args: list[Value]
    keywords: dict[str, Value]
    complete: bool
    """False when `*args` or `**kwargs` may bring arguments that are not seen: give the caller the benefit of the doubt."""
    result: Value
    _cast: tuple[bool, Dtypes] | None = field(default=None, init=False)

    def argument(self, position: int | None, name: str) -> Value | None:
        """The value of an argument by position (from 0, without the receiver) or keyword; None when not given."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    def argument_node(self, position: int | None, name: str) -> ast.expr | None:
        """The expression of that argument."""
        if position is not None:
            position -= len(self.args) - len(self.node.args)  # those that functools.partial brought
            if 0 <= position < len(self.node.args):
                return self.node.args[position]
        return next((keyword.value for keyword in self.node.keywords if keyword.arg == name), None)

    @property
    def cast(self) -> tuple[bool, Dtypes]:
        """As a method of a tensor or a module: is it a cast, and to which dtypes (None when that is not known)?"""
        if self._cast is None:
            from dtlint.infer.calls import Arguments, cast_target

            self._cast = cast_target(self.method, Arguments(self.node, self.args, self.keywords, None))
        return self._cast

    def constant(self, position: int | None, name: str) -> object:
        """The constant given for that argument; None when not given or not a constant."""
        value = self.argument(position, name)
        return value.value if isinstance(value, Constant) else None


@dataclass(slots=True, eq=False, repr=False)
class Reference(Event):
    """Something outside the project is named, by its qualified name: what is called, decorates, annotates, is passed on."""

    node: ast.Name | ast.Attribute
    name: str


@dataclass(slots=True, eq=False, repr=False)
class Operation(Event):
    """A unary, binary, comparison or augmented operator; not the question whether something `is None`. A unary operator has
    its operand on the right."""

    node: ast.UnaryOp | ast.BinOp | ast.Compare | ast.AugAssign
    operator: ast.operator | ast.unaryop | ast.cmpop
    left: Value
    right: Value
    result: Value

    @property
    def on_known(self) -> bool:
        """Is the dtype of an operand known?"""
        return has_dtype(self.left) or has_dtype(self.right)


def has_dtype(value: Value) -> bool:
    """Is a value a tensor or an array whose dtype is one of some that are known?"""
    return (type(value) is Tensor or type(value) is Array) and value.dtypes is not None


@dataclass(slots=True, eq=False, repr=False)
class Lookup(Event):
    """`x[i]`, read or written, where an index is a tensor or an array whose dtype is one of some that are known. `index` is
    an Items where there are several."""

    node: ast.Subscript
    base: Value
    index: Value


@dataclass(slots=True, eq=False, repr=False)
class Assign(Event):
    """A value bound to a target. `base` is the value of `x` in `x.data = ...` and `x[i] = ...`."""

    node: ast.stmt
    target: ast.expr
    value: Value
    expression: ast.expr | None
    base: Value


@dataclass(slots=True, eq=False, repr=False)
class Discard(Event):
    """A call that is a statement of its own: nobody uses its value."""

    node: ast.Expr
    value: Value
    call: Call


@dataclass(slots=True, eq=False, repr=False)
class Enter(Event):
    """An autocast region begins: `node` is the expression that made it."""

    node: ast.expr
    context: Autocast


@dataclass(slots=True, eq=False, repr=False)
class Exit(Event):
    """An autocast region ends."""

    node: ast.expr
    context: Autocast


@dataclass(slots=True, eq=False, repr=False)
class End(Event):
    """The body of a function, or last of the module (`flow.function` is None), has been read."""

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


Listeners = Mapping[type[Event], Callable[..., None]]
"""Who is told of which events. Nobody pays for an event that nobody hears. A listener is given the event and, where it has
been asked already who wants to hear of that kind, the answer."""
