"""Expressions: what each one is worth, evaluated in the order in which Python evaluates them."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import FLOATING, INTEGRAL, named
from dtlint.infer.calls import (
    TENSOR_LAYERS,
    Arguments,
    external_result,
    method_result,
    operator_result,
    shared_region,
)
from dtlint.infer.events import Assign, Call, Condition, Discard, Event, Flow, Listeners, Operation, Reference
from dtlint.infer.evidence import Evidence, Kind, gather
from dtlint.infer.names import canonical, path_of
from dtlint.infer.values import (
    UNKNOWN,
    Class,
    Constant,
    Dtype,
    Dtypes,
    Either,
    External,
    Function,
    GradScaler,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Optimizer,
    Partial,
    Phase,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["Expressions"]

_KINDS = {
    Tensor: "torch.Tensor",
    Module: "torch.nn.Module",
    Optimizer: "torch.optim.Optimizer",
    GradScaler: "torch.amp.GradScaler",
}
"""The class by which the methods of a value of that kind are called in events."""

_SAME_TENSOR = frozenset({"data", "T", "mT", "H", "mH", "real"})
"""Attributes of a tensor that are tensors of its dtype (complex tensors aside)."""

_BUILTIN_NAMES = frozenset(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)


class Expressions:
    """Evaluates expressions in the current state. The interpreter adds statements."""

    default: Dtypes
    """The default dtype; None when the program sets another."""
    flow: Flow
    listeners: Listeners

    def __init__(self, listeners: Listeners, flow: Flow, default: Dtypes) -> None:
        self.listeners, self.flow, self.default = listeners, flow, default
        self.muted = 0
        """Above zero while something is read that will be, or has been, read aloud elsewhere."""
        self.outer: tuple[dict[str, Value], ...] = ()
        """Names of the enclosing functions and the module, innermost first, while a function is read."""
        self.evidence: dict[ast.AST, Evidence] = {}
        self.call_made: Call | None = None
        """The event of the call evaluated last."""
        self.gradless = False
        """Are gradients switched off, so that no backward goes into what is computed?"""
        self._evaluate: dict[type[ast.expr], Callable[[Any], Value]] = {
            kind: getattr(self, name) for kind, name in _EVALUATE.items()
        }

    # -- to be given by the interpreter

    def read(self, function: FunctionInfo) -> Value:
        """The value that a function of the project returns."""
        raise NotImplementedError

    def lambda_(self, node: ast.Lambda) -> Value:
        """A function without a name."""
        raise NotImplementedError

    # -- events

    def emit(self, event: Event) -> None:
        """Tell whoever listens, unless this is a rehearsal."""
        listener = self.listeners.get(type(event))
        if listener is not None and not self.muted:
            listener(event)

    def refer(self, node: ast.Name | ast.Attribute, value: Value) -> None:
        """Tell that an expression names something outside the project, if it does."""
        if isinstance(value, External) and self.hears(Reference):
            self.emit(Reference(node, self.flow, value.name))

    def hears(self, kind: type[Event]) -> bool:
        """Is it worth making such an event?"""
        return not self.muted and kind in self.listeners

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression, with all that evaluating it does."""
        evaluate = self._evaluate.get(type(node))
        return UNKNOWN if evaluate is None else evaluate(node)

    def values(self, nodes: list[ast.expr]) -> list[Value]:
        """The values of several expressions, in order."""
        return [self.value(node) for node in nodes]

    def constant(self, node: ast.Constant) -> Value:
        return Constant(node.value)

    def name(self, node: ast.Name) -> Value:
        name = node.id
        value = self.flow.state.names.get(name)
        if value is None:
            for names in self.outer:
                value = names.get(name)
                if value is not None:
                    break
            else:
                return (
                    External(f"builtins.{name}") if name in _BUILTIN_NAMES else self.judged(UNKNOWN, name, node.lineno)
                )
        self.refer(node, value)
        return self.judged(value, name, node.lineno) if type(value) is Unknown else value

    def judged(self, value: Unknown, path: str, line: int) -> Value:
        """An unknown name, by what the running function does with it."""
        scope = self.flow.scope
        evidence = self.evidence.get(scope)
        if evidence is None:
            evidence = self.evidence[scope] = gather(scope)
        kind = evidence.kind(path, line)
        if kind is None:
            return value
        if kind is Kind.MODULE:
            return Module("torch.nn.Module", self.key(path))
        return Tensor(under=value.under, scaled=value.scaled)

    def key(self, path: str) -> Key:
        """The identity of what is known only by its path: one for each function that knows it."""
        function = self.flow.function
        return (
            path if function is None or path.startswith("self.") else f"{function.name}@{function.node.lineno}.{path}"
        )

    def attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        path = path_of(node)
        if path is not None:
            known = self.flow.state.paths.get(path)
            if known is not None:
                self.refer(node, known)
                return self.judged(known, path, node.lineno) if type(known) is Unknown else known
        value = self.member(base, node.attr)
        self.refer(node, value)
        if type(value) is Unknown and path is not None:
            return self.judged(value, path, node.lineno)
        return value

    def member(self, base: Value, name: str) -> Value:
        """The attribute of a value."""
        kind = type(base)
        if kind is External:
            return self.external(f"{base.name}.{name}")  # type: ignore[attr-defined]
        if isinstance(base, Tensor):
            return base if name in _SAME_TENSOR else Tensor(base.dtypes) if name == "grad" else UNKNOWN
        if isinstance(base, (Module, Instance)):
            return self.instance_member(base, name)
        if isinstance(base, Class):
            for info in base.info.lineage:
                if name in info.body:
                    return info.body[name]
            return UNKNOWN
        if isinstance(base, Unknown) and base.under is not None:
            return Unknown(base.under)
        return UNKNOWN

    def external(self, name: str) -> Value:
        """What stands outside the project under a qualified name."""
        name = canonical(name)
        if name.startswith("torch.") and name.count(".") == 1:
            dtype = named(name[6:])
            if dtype is not None:
                return Dtype(dtype)
        return External(name)

    def instance_member(self, base: Module | Instance, name: str) -> Value:
        """An attribute of a module or an instance: a method, what its class assigns to it, or a layer's weight."""
        info = base.info
        if info is None:
            weight = isinstance(base, Module) and name in ("weight", "bias") and base.name.startswith("torch.nn.")
            return Tensor(FLOATING, traits=Trait.PARAMETER) if weight else UNKNOWN
        method = info.method(name)
        if method is not None:
            if any(path_of(decorator) == "property" for decorator in getattr(method.node, "decorator_list", ())):
                return self.read(method)
            return Function(method, base if method.is_plain_method else None)
        return self.assigned(info, name)

    def assigned(self, info: ClassInfo, name: str) -> Value:
        """What the methods of a class, and its body, give the attribute `name` of its instances."""
        value: Value | None = None
        for method in info.assigned_in.get(name, ()):
            self.read(method)
            given = method.attributes.get(name, UNKNOWN)
            value = given if value is None else join(value, given)
        for parent in info.lineage:
            if name in parent.body:
                value = parent.body[name] if value is None else join(value, parent.body[name])
                break
        return UNKNOWN if value is None else value

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        index = self.value(node.slice)
        if isinstance(base, Tensor):
            return replace(base, zero_dim=None)
        if isinstance(base, Items) and isinstance(index, Constant) and isinstance(index.value, int):
            return base.items[index.value] if -len(base.items) <= index.value < len(base.items) else UNKNOWN
        if isinstance(base, Iteration):
            return base.item
        return Unknown(base.under) if isinstance(base, Unknown) and base.under is not None else UNKNOWN

    def items(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        values = self.values(node.elts)
        if any(isinstance(item, ast.Starred) for item in node.elts):
            return UNKNOWN
        return Items(tuple(values))

    def starred(self, node: ast.Starred) -> Value:
        self.value(node.value)
        return UNKNOWN

    def dictionary(self, node: ast.Dict) -> Value:
        table: dict[object, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            named = UNKNOWN if key is None else self.value(key)
            value = self.value(item)
            if isinstance(named, Constant):
                table[named.value] = value
        return Table(table)

    def each(self, node: ast.AST) -> Value:
        """An expression of which only the parts matter: a format string, an await, a slice."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def inner(self, node: ast.Await | ast.NamedExpr) -> Value:
        value = self.value(node.value)
        if isinstance(node, ast.NamedExpr):
            self.bind_target(node.target, value)
        return value

    def yielded(self, node: ast.Yield | ast.YieldFrom) -> Value:
        if node.value is not None:
            self.value(node.value)
        return UNKNOWN

    def either(self, node: ast.IfExp) -> Value:
        test = self.value(node.test)
        if isinstance(test, Constant):
            return self.value(node.body if test.value else node.orelse)
        with self.condition(node.test, True):
            body = self.value(node.body)
        with self.condition(node.test, False):
            other = self.value(node.orelse)
        return join(body, other)

    def condition(self, test: ast.expr, holds: bool) -> _Under:
        """While this lasts, `test` was true, or false."""
        return _Under(self.flow, Condition(test, holds))

    def logic(self, node: ast.BoolOp) -> Value:
        values = self.values(node.values)
        result = values[0]
        for value in values[1:]:
            result = join(result, value)
        return result

    # -- operators

    def binary(self, node: ast.BinOp) -> Value:
        chain = [node]  # `"a" + "b" + ...` leans to the left as deep as it is long
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        result = self.value(chain[-1].left)
        for part in reversed(chain):
            left, right = result, self.value(part.right)
            result = self.operated(part.op, left, right, part)
            if self.hears(Operation):
                self.emit(Operation(part, self.flow, part.op, left, right, result))
        return result

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        """The result of a binary operator."""
        if isinstance(left, Constant) and isinstance(right, Constant):
            return _folded(operator, left.value, right.value)
        result = operator_result([left, right], self.default, node)
        if isinstance(result, (Tensor, Unknown)) and result.under is not None:
            result = replace(result, under=_still_under(operator, left, right))
        if not isinstance(result, Tensor):
            return result
        if isinstance(operator, (ast.Mult, ast.Div)):
            result = replace(result, traits=result.traits | Trait.SCALED)
        if isinstance(operator, ast.Div) and result.dtypes is not None and not result.dtypes <= FLOATING:
            result = replace(result, dtypes=self.default if result.dtypes <= INTEGRAL | {"bool"} else None)
        if isinstance(operator, ast.MatMult) and self.flow.autocast is not None:
            return replace(result, dtypes=None)
        return result

    def unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        result: Value = UNKNOWN
        if isinstance(operand, (Tensor, Unknown)) and not isinstance(node.op, ast.Not):
            result = operand
        elif isinstance(operand, Constant):
            result = _negated(node.op, operand.value)
        if self.hears(Operation):
            self.emit(Operation(node, self.flow, node.op, UNKNOWN, operand, result))
        return result

    def compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        result: Value = UNKNOWN
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator)
            elementwise = isinstance(operator, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
            if elementwise and (isinstance(left, Tensor) or isinstance(right, Tensor)):
                result = Tensor(frozenset({"bool"}), origin=node)
            if self.hears(Operation):
                self.emit(Operation(node, self.flow, operator, left, right, result))
            left = right
        return result

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        names = self.flow.state.names
        self.flow.state.names = names.copy()
        for clause in node.generators:
            over = self.value(clause.iter)
            self.bind_target(clause.target, self.item_of(over))
            for test in clause.ifs:
                self.value(test)
        of = over.of if isinstance(over, Iteration) and len(node.generators) == 1 else None
        if isinstance(node, ast.DictComp):
            self.value(node.key)
            item = self.value(node.value)
        else:
            item = self.value(node.elt)
        self.flow.state.names = names
        if isinstance(node, ast.DictComp):
            return UNKNOWN
        # What only selects, `[p for name, p in model.named_parameters() if ...]`, still comes from that module.
        return Iteration(item, of=of if isinstance(node.elt, ast.Name) else None)

    def bind_target(
        self, target: ast.expr, value: Value, statement: ast.stmt | None = None, expression: ast.expr | None = None
    ) -> None:
        """Bind a value to a target, taken apart where the target is."""
        if isinstance(target, ast.Name):
            self.flow.state.bind(target.id, value)
            base: Value = UNKNOWN
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.take_apart(target.elts, value, statement)
            return
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, value, statement)
            return
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            self.bind_attribute(target, base, value)
        elif isinstance(target, ast.Subscript):
            base = self.value(target.value)
            self.value(target.slice)
            if isinstance(target.slice, ast.Compare):  # `x[x > 255] = 255` clamps by hand
                self.alter(target.value, Trait.CLAMPED)
        else:
            return
        if statement is not None and self.hears(Assign):
            self.emit(Assign(statement, self.flow, target, value, expression, base))

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        """`x.name = value`: known from here on by its path; of `self`, known to the class."""
        path = path_of(target)
        if path is None:
            return
        self.flow.state.forget(path)
        self.flow.state.paths[path] = value
        function = self.flow.function
        if function is not None and isinstance(base, (Module, Instance)) and base.key == "self":
            known = function.attributes.get(target.attr)
            function.attributes[target.attr] = value if known is None else join(known, value)

    def take_apart(self, targets: list[ast.expr], value: Value, statement: ast.stmt | None) -> None:
        """Unpack a value into several targets, one of which may take the rest."""
        items = list(value.items) if isinstance(value, Items) else []
        star = next((index for index, target in enumerate(targets) if isinstance(target, ast.Starred)), None)
        if star is not None and len(items) >= len(targets) - 1:
            rest = len(items) - len(targets) + 1
            items[star : star + rest] = [Items(tuple(items[star : star + rest]))]
        if len(items) != len(targets):
            items = [UNKNOWN if isinstance(target, ast.Starred) else self.item_of(value) for target in targets]
        for target, item in zip(targets, items, strict=True):
            self.bind_target(target, item, statement)

    def item_of(self, value: Value) -> Value:
        """What iterating over a value gives."""
        return item_of(value)

    # -- calls

    def call(self, node: ast.Call) -> Value:
        receiver: Value = UNKNOWN
        method = ""
        if isinstance(node.func, ast.Attribute):
            method = node.func.attr
            receiver = _present(self.value(node.func.value))
            path = path_of(node.func)
            callee = self.flow.state.paths.get(path) if path is not None else None
            if callee is None:
                callee = self.member(receiver, method)
            self.refer(node.func, callee)
        else:
            callee = self.value(node.func)
        args, keywords, complete = self.given(node)
        while isinstance(callee, Partial):
            args = [*callee.args, *args]
            keywords = {**callee.keywords, **keywords}
            callee = callee.callee
        arguments = Arguments(node, args, keywords, self.default, complete)
        target, result = self.called(node, callee, receiver, method, arguments)
        if self.gradless or self.flow.autocast is not None:
            result = self.under_autocast(result)
        if method.endswith("_") and isinstance(node.func, ast.Attribute) and isinstance(result, Tensor):
            self.alter(node.func.value, result.traits)
        self.call_made = None
        if self.hears(Call) or self.hears(Discard):
            called = callee if isinstance(callee, Module) else receiver
            self.call_made = Call(node, self.flow, target, method, called, args, keywords, complete, result)
            self.emit(self.call_made)
        self.advance(node, receiver, method, target, args)
        return result

    def given(self, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
        """The values of a call's arguments, and whether those are all that it is given."""
        args = self.values(node.args)
        keywords = {keyword.arg: self.value(keyword.value) for keyword in node.keywords if keyword.arg is not None}
        unseen = [self.value(keyword.value) for keyword in node.keywords if keyword.arg is None]
        return args, keywords, not unseen and not any(isinstance(arg, ast.Starred) for arg in node.args)

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        """The qualified name of what is called, and its result."""
        callee = _only(callee)
        if isinstance(callee, External):
            if callee.name == "functools.partial" and arguments.args:
                return callee.name, Partial(arguments.args[0], tuple(arguments.args[1:]), dict(arguments.keywords))
            if callee.name in _NUMBER_CALLS and len(node.args) == 1:
                return callee.name, self.number(callee.name, arguments.args[0])
            return callee.name, external_result(callee.name, arguments)
        if isinstance(callee, Function):
            return "", self.read(callee.info)
        if isinstance(callee, Class):
            return "", self.made(callee.info, arguments)
        if isinstance(callee, Module):
            return "torch.nn.Module.__call__", self.forwarded(callee, arguments)
        kind = _KINDS.get(type(receiver))
        if method and kind is not None:
            return f"{kind}.{method}", method_result(receiver, method, arguments)
        if method == "scale" and type(receiver) is Unknown and len(node.args) == 1:
            path = path_of(node.func.value)  # type: ignore[attr-defined]
            return "", Unknown(scaled=None if path is None else self.key(path))
        if method and type(receiver) is Unknown and receiver.under is not None:
            return "", Unknown(receiver.under)
        return "", UNKNOWN

    def made(self, info: ClassInfo, arguments: Arguments) -> Value:
        """A new instance of a class of the project."""
        if info.is_module:
            return Module(info.node.name, arguments.key, info)
        return Instance(info, arguments.key)

    def forwarded(self, module: Module, arguments: Arguments) -> Value:
        """What calling a module returns: what its forward does, where the project shows it. A loss module that is given
        what autocast computed passes its gradients back into that region."""
        forward = module.info.method("forward") if module.info is not None else None
        if forward is not None:
            return self.read(forward)
        under = shared_region(arguments.args)
        if module.name in TENSOR_LAYERS and module.info is None:
            return Tensor(under=under, origin=arguments.node)
        return Unknown(under) if under is not None else UNKNOWN

    def number(self, name: str, given: Value) -> Value:
        """`float("-inf")`, `int(1e9)`."""
        if not isinstance(given, Constant) or not isinstance(given.value, (int, float, str)):
            return UNKNOWN
        try:
            return Constant(_NUMBER_CALLS[name](given.value))
        except (ValueError, OverflowError):
            return UNKNOWN

    def under_autocast(self, result: Value) -> Value:
        """Mark a result as computed in the autocast region in force, if a backward can go into it."""
        under = None if self.gradless else self.flow.autocast
        if isinstance(result, Tensor):
            keeps = result.origin is not None or result.dtypes is None
            return replace(result, under=under) if keeps else result
        return Unknown(under, result.scaled) if type(result) is Unknown else result

    def alter(self, node: ast.expr, traits: Trait) -> None:
        """What an in-place method does to the tensor at the root of its chain: `img.mul_(255).clamp_(0, 255)`."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        path = path_of(node)
        for known in (self.flow.state.names, self.flow.state.paths):
            tensor = known.get(path) if path is not None else None
            if path is not None and isinstance(tensor, Tensor):
                known[path] = replace(tensor, traits=tensor.traits | traits)

    def advance(self, node: ast.Call, receiver: Value, method: str, target: str, args: list[Value]) -> None:
        """What a call changes: the phase of a scaler, and attributes of what it was given."""
        state = self.flow.state
        if method == "backward":
            scaled = receiver.scaled if isinstance(receiver, (Tensor, Unknown)) else None
            if scaled is not None:
                state.scalers[scaled] = Phase.SCALED
        elif method in _SCALER_PHASES:
            key = receiver.key if isinstance(receiver, GradScaler) else None
            if key is None and isinstance(node.func, ast.Attribute):
                path = path_of(node.func.value)
                key = None if path is None else self.key(path)
            if key is not None and key in state.scalers:
                state.scalers[key] = _SCALER_PHASES[method]
        if state.paths and not target:
            for given in (node.func.value if isinstance(node.func, ast.Attribute) else None, *node.args):
                path = path_of(given) if given is not None else None
                if path is not None:
                    state.forget(path)


_SCALER_PHASES = {"unscale_": Phase.UNSCALED, "step": Phase.IDLE, "update": Phase.IDLE}
_NUMBER_CALLS: dict[str, Callable[[Any], object]] = {"builtins.float": float, "builtins.int": int}


class _Under:
    """Keeps a condition on the flow while a branch is run."""

    __slots__ = ("condition", "flow")

    def __init__(self, flow: Flow, condition: Condition) -> None:
        self.flow, self.condition = flow, condition

    def __enter__(self) -> None:
        self.flow.conditions.append(self.condition)

    def __exit__(self, *exc: object) -> None:
        self.flow.conditions.pop()


def _only(value: Value) -> Value:
    """The one value that can be called: `None` is not, after a failed import."""
    if not isinstance(value, Either):
        return value
    callable_ = [choice for choice in options(value) if not isinstance(choice, Constant)]
    return callable_[0] if len(callable_) == 1 else UNKNOWN


def _present(value: Value) -> Value:
    """The value whose attribute is called: not `None`, whichever path assigned that."""
    if not isinstance(value, Either):
        return value
    present = tuple(choice for choice in options(value) if not isinstance(choice, Constant) or choice.value is not None)
    return present[0] if len(present) == 1 else Either(present) if present else value


def item_of(value: Value) -> Value:
    """What iterating over a value gives."""
    if isinstance(value, Iteration):
        return value.item
    if isinstance(value, Items) and value.items:
        item = value.items[0]
        for other in value.items[1:]:
            item = join(item, other)
        return item
    if isinstance(value, Tensor):
        return replace(value, zero_dim=None)
    return Unknown(value.under) if isinstance(value, Unknown) and value.under is not None else UNKNOWN


def _still_under(operator: ast.operator, left: Value, right: Value) -> Any:
    """The autocast region that a loss is still of: adding to it or dividing it by a count leaves it unscaled, while
    multiplying it by something large or unknown may be a scale of the author's own."""
    under = shared_region((left, right))
    if not isinstance(operator, ast.Mult):
        return under
    for value in (left, right):
        if isinstance(value, Constant) and isinstance(value.value, (int, float)) and abs(value.value) <= 1:
            return under
    return (
        under
        if all(isinstance(value, (Tensor, Unknown)) and value.under is not None for value in (left, right))
        else None
    )


_FOLDS: dict[type[ast.operator], Callable[[Any, Any], object]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
}


def _folded(operator: ast.operator, left: object, right: object) -> Value:
    """Arithmetic on constant numbers; powers only of small exponents, for `10**1000000` has no place in a checker."""
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return UNKNOWN
    try:
        if isinstance(operator, ast.Pow):
            return Constant(left**right) if abs(right) <= 64 and abs(left) <= 1e6 else UNKNOWN
        fold = _FOLDS.get(type(operator))
        return UNKNOWN if fold is None else Constant(fold(left, right))
    except (ArithmeticError, ValueError):
        return UNKNOWN


def _negated(operator: ast.unaryop, value: object) -> Value:
    if isinstance(operator, ast.Not):
        return Constant(not value)
    if isinstance(value, (int, float)) and isinstance(operator, (ast.USub, ast.UAdd)):
        return Constant(-value if isinstance(operator, ast.USub) else value)
    return UNKNOWN


_EVALUATE: dict[type[ast.expr], str] = {
    ast.Constant: "constant",
    ast.Name: "name",
    ast.Attribute: "attribute",
    ast.Call: "call",
    ast.Subscript: "subscript",
    ast.BinOp: "binary",
    ast.UnaryOp: "unary",
    ast.Compare: "compare",
    ast.BoolOp: "logic",
    ast.IfExp: "either",
    ast.List: "items",
    ast.Tuple: "items",
    ast.Set: "items",
    ast.Dict: "dictionary",
    ast.Starred: "starred",
    ast.Lambda: "lambda_",
    ast.ListComp: "comprehension",
    ast.SetComp: "comprehension",
    ast.GeneratorExp: "comprehension",
    ast.DictComp: "comprehension",
    ast.NamedExpr: "inner",
    ast.Await: "inner",
    ast.Yield: "yielded",
    ast.YieldFrom: "yielded",
    ast.JoinedStr: "each",
    ast.FormattedValue: "each",
    ast.Slice: "each",
}
