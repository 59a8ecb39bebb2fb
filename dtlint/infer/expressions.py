"""Expressions: what each one is worth, evaluated in the order in which Python evaluates them."""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dtlint.dtypes.dtype import DTYPES, FLOATING, INTEGRAL, REAL_PARTS, Category, named
from dtlint.infer.arithmetic import FLOATS, given_by, operator_result, shared_region, truths_of
from dtlint.infer.array_promotion import beside_tensor
from dtlint.infer.conditions import taken_apart
from dtlint.infer.events import Assign, Call, Condition, Event, Flow, Listeners, Lookup, Operation, Reference, has_dtype
from dtlint.infer.evidence import NO_EVIDENCE, Evidence, Kind, gather
from dtlint.infer.kinds import TAKING_TENSORS, tensors_forwarded, tensors_taken
from dtlint.infer.names import canonical, path_of
from dtlint.infer.narrowing import narrow_dtypes, speaks_of_dtypes
from dtlint.infer.numbers import NUMBERS, computed, folded, negated, number_member
from dtlint.infer.program_state import State
from dtlint.infer.survey import facts
from dtlint.infer.symbols import asked, of_atom, part_of, tensor_of
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Array,
    Atom,
    Class,
    Constant,
    Device,
    Dtype,
    DtypeOf,
    Dtypes,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Number,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
)
from dtlint.infer.walk import SCOPES, nodes, parts
from dtlint.infer.weights import weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping

    from dtlint.infer.scopes import ClassInfo, FunctionInfo

    Operator = ast.UnaryOp | ast.BinOp | ast.Compare | ast.AugAssign
    Told = tuple[Mapping[Any, Any], Mapping[Any, object]]
    """Who asks for a kind of event, and, by what that says, who hears of it."""

__all__ = ["Expressions", "item_of"]

_SAME_TENSOR = frozenset({"data", "T", "mT", "H", "mH"})
"""Attributes of a tensor that are tensors of its dtype."""

NAMED_RESULTS = {"values": 0, "indices": 1, "eigenvalues": 0, "eigenvectors": 1}
"""What `max`, `sort`, `topk` and their kin call the two that they give. No tuple or list of Python's has such attributes."""

_BUILTINS = {name: External(f"builtins.{name}") for name in dir(builtins)}


class Expressions:
    """Evaluates expressions in the current state. `Calling` adds calls, the interpreter statements."""

    __slots__ = (  # attributes of slots, and methods where there is nothing else, are the fastest to find
        *(
            "_evaluate",
            "_evidence_of",
            "asking",
            "call_made",
            "calls_told",
            "default",
            "discarded",
            "discards_told",
            "evidence",
        ),
        *("flow", "gradless", "listeners", "muted", "operators_told", "outer", "references_told", "symbolic"),
        *("targets_told", "values_told"),
    )

    default: Dtypes
    """The default dtype; None when the program sets another."""
    flow: Flow
    listeners: Listeners

    def __init__(self, listeners: Listeners, flow: Flow, default: Dtypes) -> None:
        self.listeners, self.flow, self.default = listeners, flow, default
        self.muted = 0
        """Above zero while something is read that will be, or has been, read aloud elsewhere."""
        self.asking = 0
        """Evaluations under way inside one another that are only to ask."""
        self.outer: tuple[MutableMapping[str, Value], ...] = ()
        """Names of the enclosing functions and the module, innermost first, while a function is read."""
        self.evidence: dict[ast.AST, Evidence] = {}
        self.call_made: Call | None = None
        """The event of the call evaluated last, if it was made."""
        self.discarded: ast.expr | None = None
        """The expression whose value is thrown away, if anybody wants to hear of it."""
        self.gradless = False
        """Are gradients switched off, so that no backward goes into what is computed?"""
        self.symbolic = False
        """Is a dtype that is not known called by what decides it? Only where each function is read alone, once."""
        self.calls_told: Told | None = None
        """Who wants to hear of a call, by its target and its name; None: who listens at all."""
        self.discards_told: Told | None = None
        """And who wants to hear of one whose value is thrown away."""
        self.references_told: Told | None = None
        """Who wants to hear of a name; None: who listens at all."""
        self.operators_told: Told | None = None
        """Who wants to hear of an operator, and where the dtype of an operand is known or of none; None: who listens."""
        self.targets_told: frozenset[type[ast.AST]] | None = None
        """What anybody wants to hear of that is assigned to; None: all."""
        self.values_told: frozenset[type[ast.AST]] = frozenset()
        """What anybody wants to hear of that is assigned, as it is written, whatever it is assigned to."""
        self._evidence_of: tuple[Flow | None, Evidence] = (None, NO_EVIDENCE)
        """The evidence that was asked last, with the flow of the function that it is of."""
        self._evaluate: dict[type[ast.expr], Callable[[Any], Value]] = defaultdict(
            lambda: _unknown, {kind: self.evaluator(kind, getattr(self, name)) for kind, name in _EVALUATE.items()}
        )

    def evaluator(self, kind: type[ast.expr], evaluate: Callable[[Any], Value]) -> Callable[[Any], Value]:
        """What evaluates expressions of a kind: this, or what goes about it."""
        return evaluate

    # -- to be given by those that know statements and calls

    def call(self, node: ast.Call) -> Value:
        """What a call gives."""
        raise NotImplementedError

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
        if self.muted or type(value) is not External:
            return
        listener = self.listeners.get(Reference)
        if listener is None:
            return
        if self.references_told is None:
            listener(Reference(node, self.flow, value.name))
            return
        asking, hearing = self.references_told
        told = hearing[asking[value.name]]
        if told:
            listener(Reference(node, self.flow, value.name), told)

    def hears(self, kind: type[Event]) -> bool:
        """Is it worth making such an event?"""
        return not self.muted and kind in self.listeners

    def tell_of(
        self, node: Operator, operator: ast.operator | ast.unaryop | ast.cmpop, left: Value, right: Value, result: Value
    ) -> None:
        """Tell of an operator, if anybody wants to hear of it."""
        listener = None if self.muted else self.listeners.get(Operation)
        if listener is None:
            return
        if self.operators_told is None:
            listener(Operation(node, self.flow, operator, left, right, result))
            return
        one, other = type(left), type(right)
        unknown = one is Unknown and (other is Unknown or other is Constant)  # as most operands are
        asking, hearing = self.operators_told
        told = hearing[asking[type(operator), not unknown and (has_dtype(left) or has_dtype(right))]]
        if told:
            listener(Operation(node, self.flow, operator, left, right, result), told)

    def tell_of_index(self, node: ast.Subscript, base: Value, index: Value) -> None:
        """Tell of an index, if it is a tensor, or several are of which one is."""
        if any(map(has_dtype, index.items)) if isinstance(index, Items) else has_dtype(index):
            self.emit(Lookup(node, self.flow, base, index))

    # -- expressions

    def value(self, node: ast.expr) -> Value:
        """The value of an expression, with all that evaluating it does."""
        return self._evaluate[type(node)](node)

    def values(self, nodes: list[ast.expr]) -> list[Value]:
        """The values of several expressions, in order."""
        return [self.value(node) for node in nodes]

    def constant(self, node: ast.Constant) -> Value:
        value = node.value
        return NONE if value is None else Constant(value)

    def name(self, node: ast.Name) -> Value:
        name = node.id
        value = self.flow.state.names.get(name)
        if value is None:
            for names in self.outer:
                value = names.get(name)
                if value is not None:
                    break
            else:
                known = _BUILTINS.get(name)
                return self.judged(UNKNOWN, name, node.lineno) if known is None else known
        if type(value) is Unknown:
            flow, evidence = self._evidence_of  # what `evidence_here` does, for half of all names
            if flow is not self.flow:
                evidence = self.evidence_here()
            return self.judged(value, name, node.lineno) if name in evidence.paths else value
        if type(value) is External and Reference in self.listeners:
            self.refer(node, value)
        return value

    def judged(self, value: Unknown, path: str, line: int) -> Value:
        """An unknown name, by what the running function does with it."""
        kind = self.evidence_here().kind(path, line)
        if kind is None:
            return value
        if kind is Kind.MODULE:
            return Module("torch.nn.Module", self.key(path))
        return tensor_of(value)

    def evidence_here(self) -> Evidence:
        """What the running function does with its unknown names."""
        flow, evidence = self._evidence_of
        if flow is not self.flow:
            evidence = self.evidence_in(self.flow.scope)
            self._evidence_of = (self.flow, evidence)
        return evidence

    def evidence_in(self, scope: ast.AST) -> Evidence:
        """What a function does with its unknown names, gathered once."""
        found = self.evidence.get(scope)
        if found is None:
            found = self.evidence[scope] = gather(scope, self.proves_tensor if self.symbolic else None)
        return found

    def proves_tensor(self, node: ast.Call) -> int:
        """How many of its first arguments a call takes for tensors and nothing else: of a function of torch, or a layer
        that the class makes."""
        path = path_of(node.func)
        if path is None:
            return 0
        root, _, rest = path.partition(".")
        base = self.flow.state.names.get(root)
        for names in self.outer if base is None else ():
            base = names.get(root)
            if base is not None:
                break
        if type(base) is External:
            if rest and rest.rpartition(".")[2] not in TAKING_TENSORS:
                return 0
            return tensors_taken(canonical(f"{base.name}.{rest}" if rest else base.name))
        if isinstance(base, Module) and base.key == "self" and base.info is not None and rest in base.info.assigned_in:
            layer = self.assigned(base.info, rest)
            return tensors_forwarded(layer.name) if isinstance(layer, Module) and layer.info is None else 0
        return 0

    def quietly(self, node: ast.expr) -> Value:
        """The value of an expression that is, or will be, evaluated aloud: what it binds is bound there."""
        if self.asking >= _MOST_ASKED and not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            return UNKNOWN
        state = self.flow.state
        if self.binds(node):
            self.flow.state = state.copy()
        self.muted += 1
        self.asking += 1
        value = self.value(node)
        self.asking -= 1
        self.muted -= 1
        self.flow.state = state
        return value

    def binds(self, node: ast.expr) -> bool:
        """Does an expression bind a name by `:=`? Hardly any does, nor any function."""
        return facts(self.flow.scope).has_walrus and any(type(part) is ast.NamedExpr for part in nodes([node], SCOPES))

    def if_reached(self, node: ast.expr) -> Value:
        """The value of an expression that is not always evaluated: what it binds is perhaps bound."""
        if not self.binds(node):
            return self.value(node)
        before = self.flow.state.copy()
        value = self.value(node)
        self.flow.state = State.merged(before, self.flow.state) or before
        return value

    def key(self, path: str) -> Key:
        """The identity of what is known only by its path: one for each function that knows it."""
        function = self.flow.function
        return (
            path if function is None or path.startswith("self.") else f"{function.name}@{function.node.lineno}.{path}"
        )

    def attribute(self, node: ast.Attribute) -> Value:
        base = self._evaluate[type(node.value)](node.value)  # what `value` does: attributes are a third of all there is
        bound = self.bound(node) if self.flow.state.paths else None
        value = self.member(base, node.attr) if bound is None else bound
        if type(value) is External:
            if Reference in self.listeners:
                self.refer(node, value)
        elif type(value) is Unknown:
            flow, evidence = self._evidence_of  # as in `name`
            if flow is not self.flow:
                evidence = self.evidence_here()
            if node.attr not in evidence.attributes:
                return value
            path = path_of(node)
            return value if path is None else self.judged(value, path, node.lineno)
        elif type(value) is Tensor and bound is None and value.symbol is None and isinstance(base, Module):
            path = path_of(node)
            return value if path is None else self.named_weight(value, base, path)
        return value

    def bound(self, node: ast.Attribute) -> Value | None:
        """What a dotted path was bound to, on the way here."""
        path = path_of(node)
        return None if path is None else self.flow.state.paths.get(path)

    def named_weight(self, value: Tensor, base: Module, path: str) -> Value:
        """A weight, called by the path that leads to it, but for the method that makes it."""
        function = self.flow.function
        if not self.symbolic or (base.key == "self" and function is not None and function.name == "__init__"):
            return value
        owner = f"@{base.info.node.lineno}" if base.key == "self" and base.info is not None else base.key
        return weight_of(value, f"{owner}.{path.rpartition('.')[2]}", path)

    def member(self, base: Value, name: str) -> Value:
        """The attribute of a value."""
        if type(base) is Module or type(base) is Instance:
            return self.instance_member(base, name)
        if type(base) is External:
            return self.external(f"{base.name}.{name}")
        if type(base) is Tensor:
            return self.tensor_attribute(base, name)
        if type(base) is Class:
            for info in base.info.lineage:
                if name in info.body:
                    return info.body[name]
            return UNKNOWN
        if type(base) is Unknown:
            if base.atom is not None:
                return (
                    DtypeOf(of_atom(base.atom))
                    if name == "dtype"
                    else Unknown(base.under, atom=_inside(base.atom, name))
                )
            if base.under is not None:
                return Unknown(base.under)
        if type(base) is Items:
            place = NAMED_RESULTS.get(name)
            return base.items[place] if place is not None and len(base.items) == 2 else UNKNOWN
        return number_member(base, name) if self.symbolic else UNKNOWN

    def tensor_attribute(self, base: Tensor, name: str) -> Value:
        """An attribute of a tensor: a tensor of its dtype, the dtype itself, or numbers."""
        if name in _SAME_TENSOR:
            return base
        if name in ("real", "imag"):
            return _part_of(base, name)
        if name == "grad":
            return Tensor(base.dtypes, symbol=base.symbol)
        if not self.symbolic:
            return UNKNOWN
        if name == "dtype":
            if base.dtypes is not None and len(base.dtypes) == 1:
                return Dtype(next(iter(base.dtypes)))
            return UNKNOWN if base.dtypes is None and base.symbol is None else DtypeOf(base.symbol, base.dtypes)
        return Device() if name == "device" else number_member(base, name)

    def external(self, name: str) -> Value:
        """What stands outside the project under a qualified name."""
        return _external_or_number(name) if self.symbolic else _external(name)

    def instance_member(self, base: Module | Instance, name: str) -> Value:
        """An attribute of a module or an instance: a method, what its class assigns to it, or a layer's weight."""
        info = base.info
        if info is None:
            weight = name in ("weight", "bias") and isinstance(base, Module) and base.name.startswith("torch.nn.")
            return Tensor(FLOATING, traits=Trait.PARAMETER) if weight else UNKNOWN
        is_self = base.key == "self" and self.symbolic
        known = info.of_self.get(name) if is_self else None
        if known is not None:
            return known
        method = info.method(name)
        if method is not None:
            if "property" in method.decorated:
                return self.read(method)
            return Function(method, base if method.is_plain_method else None)
        value = self.assigned(info, name)
        if is_self:
            if type(value) is Unknown and value.atom is None:
                value = Unknown(value.under, value.scaled, Atom(f"@{info.node.lineno}.{name}", f"self.{name}"))
            for method in info.assigned_in.get(name, ()):
                if method.result is None:
                    break
            else:
                info.of_self[name] = value
        return value

    def assigned(self, info: ClassInfo, name: str) -> Value:
        """What the methods of a class, and its body, give the attribute `name` of its instances."""
        value: Value | None = None
        for method in info.assigned_in.get(name, ()):
            self.read(method)
            given = method.attributes.get(name, UNKNOWN)
            value = given if value is None else join(value, given)
        for parent in info.lineage:
            if name in parent.body:
                if parent.has_fields:  # each instance is given its own
                    return UNKNOWN
                value = parent.body[name] if value is None else join(value, parent.body[name])
                break
        return UNKNOWN if value is None else value

    def subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        index = self.value(node.slice)
        if type(index) in _INDICES and Lookup in self.listeners:
            self.tell_of_index(node, base, index)
        return self.indexed(node, base, index)

    def indexed(self, node: ast.Subscript, base: Value, index: Value) -> Value:
        """`base[index]`."""
        if type(base) is Tensor:
            if type(index) is Tensor and index.dtypes is not None and index.dtypes <= FLOATS:
                return Tensor(origin=node)  # which raises
            if not _keeps_dimensions(node.slice):
                return part_of(base)
            return base if base.zero_dim is None else base.but(zero_dim=None)
        if type(base) is Unknown:
            if base.dtypes is None:
                return UNKNOWN if base.under is None else Unknown(base.under)
            return _part_computed(base)
        if isinstance(base, Items) and isinstance(index, Constant) and isinstance(index.value, int):
            return base.items[index.value] if -len(base.items) <= index.value < len(base.items) else UNKNOWN
        if isinstance(base, (Iteration, Array)) and isinstance(node.slice, ast.Slice):
            return base
        if isinstance(base, Iteration):
            return base.item
        if isinstance(base, Array):
            return Array(base.dtypes, origin=base.origin)
        if isinstance(base, Module) and base.items:
            return self.item_of(base)
        return _entry(base, index) if isinstance(base, Table) and self.symbolic else UNKNOWN

    def items(self, node: ast.List | ast.Tuple | ast.Set) -> Value:
        values: list[Value] = []
        whole = True
        for item in node.elts:
            value = self.value(item)
            if not isinstance(item, ast.Starred):
                values.append(value)
            elif isinstance(value, Items):
                values += value.items
            else:
                whole = False
        return Items(tuple(values)) if whole else UNKNOWN

    def starred(self, node: ast.Starred) -> Value:
        value = self.value(node.value)
        return value if isinstance(value, Items) else UNKNOWN

    def dictionary(self, node: ast.Dict) -> Value:
        table: dict[object, Value] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            named = UNKNOWN if key is None else self.value(key)
            value = self.value(item)
            if isinstance(named, Constant):
                table[named.value] = value
        return Table(table)

    def each(self, node: ast.AST) -> Value:
        """An expression of which only the parts matter: a format string and what stands in it."""
        for child in parts(node):
            if type(child) is not ast.Constant and isinstance(child, ast.expr):
                self.value(child)
        return UNKNOWN

    def slice(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.value(part)
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
        return join(self.side(node.test, True, node.body), self.side(node.test, False, node.orelse))

    def side(self, test: ast.expr, holds: bool, node: ast.expr) -> Value:
        """The value of an expression where a test holds, or where it does not."""
        outer = self.flow.state
        condition = Condition(test, holds)
        speaking = [part for part in taken_apart(condition) if speaks_of_dtypes(part.test)] if self.symbolic else ()
        if speaking:
            self.flow.state = outer.copy()
            for part in speaking:
                narrow_dtypes(part.test, part.holds, self.flow.state, self.quietly)
        conditions = self.flow.conditions
        conditions.append(condition)
        value = self.if_reached(node)
        conditions.pop()
        if speaking or not self.binds(node):
            self.flow.state = outer
        return value

    def logic(self, node: ast.BoolOp) -> Value:
        result = self.value(node.values[0])
        for operand in node.values[1:]:
            result = join(result, self.if_reached(operand))
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
            self.tell_of(part, part.op, left, right, result)
            if part is not node:
                self.passed(part, result)
        return result

    def passed(self, part: ast.BinOp, value: Value) -> None:
        """An operand of a chain of operators has its value, though it was not evaluated for itself."""

    def operated(self, operator: ast.operator, left: Value, right: Value, node: ast.expr | None) -> Value:
        """The result of a binary operator."""
        one, other = type(left), type(right)
        if one in _NO_TENSORS and other in _NO_TENSORS:
            if isinstance(left, Constant) and isinstance(right, Constant):
                return folded(operator, left.value, right.value)
            return computed(operator, left, right, node)
        if one is Array and other is Tensor and left.scalar is not True:  # type: ignore[attr-defined]
            return UNKNOWN  # NumPy's operator is asked first, and knows no tensors
        if one is Tensor and other is Array and right.scalar is False:  # type: ignore[attr-defined]
            return beside_tensor(operator, left, right, node)  # type: ignore[arg-type]
        result = operator_result([left, right], self.default, node)
        if not isinstance(result, Tensor):
            if not isinstance(result, Unknown):
                return result
            given = given_by(operator, left, right) if self.symbolic else UNKNOWN
            under = None if result.under is None else _still_under(operator, left, right)
            return given if under is None else Unknown(under, dtypes=given.dtypes)
        made = type(operator)  # what operator_result has made is nobody else's yet
        if (result.dtypes is not None and _raises(made, result.dtypes)) or (
            made is ast.Sub and (_is_bool(left) or _is_bool(right))
        ):
            return Tensor(origin=result.origin)
        if result.under is not None:
            result.under = _still_under(operator, left, right)
        if made is ast.Mult or made is ast.Div:
            result.traits |= Trait.SCALED
        if made is ast.Div:
            if result.symbol is not None:
                result.symbol = result.symbol.but(floor=max(result.symbol.floor, Category.FLOAT))
            elif result.dtypes is not None and not result.dtypes <= FLOATING:
                result.dtypes = self.default if result.dtypes <= INTEGRAL | {"bool"} else None
            elif result.dtypes is None and self.symbolic and (_is_integral(left) or _is_integral(right)):
                result.dtypes = FLOATS  # whatever the other is
        if made is ast.MatMult or (made is ast.Pow and self.flow.autocast is not None):
            return self.table_operator(operator, left, right, result)
        if made is ast.Div and one is not Tensor and self.flow.autocast is not None:
            return self.reciprocal(right, result)
        return result

    def reciprocal(self, divisor: Value, result: Tensor) -> Value:
        """A number by a tensor, in an autocast region: `torch.Tensor.__rtruediv__` multiplies with the reciprocal, which
        CUDA's autocast computes in float32."""
        region = self.flow.autocast
        if isinstance(divisor, Tensor) and (divisor.dtypes or divisor.symbol):
            made = asked("torch.reciprocal", [divisor], {}, self.default, region, result.origin or ast.Constant(0))
            if isinstance(made, Tensor) and (made.dtypes is None or made.dtypes <= FLOATING):
                return made.but(traits=result.traits, under=result.under, zero_dim=result.zero_dim)
        return result.but(dtypes=None, symbol=None, cast=None)

    def table_operator(self, operator: ast.operator, left: Value, right: Value, result: Tensor) -> Value:
        """`@`, which does not promote, and what autocast has its say in: asked of the operator table."""
        op = "torch.matmul" if isinstance(operator, ast.MatMult) else "torch.pow"
        region = self.flow.autocast
        if all(isinstance(value, Tensor) and (value.dtypes or value.symbol) for value in (left, right)) or (
            op == "torch.pow" and isinstance(left, Tensor) and (left.dtypes or left.symbol)
        ):
            made = asked(op, [left, right], {}, self.default, region, result.origin or ast.Constant(0))
            if isinstance(made, Tensor):
                return made.but(traits=result.traits, under=result.under, zero_dim=result.zero_dim, cast=result.cast)
        return result.but(dtypes=None, symbol=None, cast=None)

    def unary(self, node: ast.UnaryOp) -> Value:
        operand = self.value(node.operand)
        result: Value = UNKNOWN
        if isinstance(operand, (Tensor, Number, Array)) and not isinstance(node.op, ast.Not):
            result = operand
            if type(operand) is Tensor and operand.dtypes is not None and _raises(type(node.op), operand.dtypes):
                result = Tensor(origin=node)
        elif isinstance(operand, Unknown) and not isinstance(node.op, ast.Not):
            result = operand if operand.atom is None else Unknown(operand.under, operand.scaled)
        elif isinstance(operand, Constant):
            result = negated(node.op, operand.value)
        result = self.negated(node, operand, result)
        self.tell_of(node, node.op, UNKNOWN, operand, result)
        return result

    def negated(self, node: ast.UnaryOp, operand: Value, result: Value) -> Value:
        """What an operator of one operand gives; as a rule that result."""
        return result

    def compare(self, node: ast.Compare) -> Value:
        left = self.value(node.left)
        result: Value = UNKNOWN
        for operator, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator) if comparator is node.comparators[0] else self.if_reached(comparator)
            elementwise = isinstance(operator, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE))
            if elementwise and (isinstance(left, Tensor) or isinstance(right, Tensor)):
                result = Tensor(frozenset({"bool"}), origin=node)
            elif elementwise and self.symbolic and len(node.ops) == 1:
                result = truths_of(left, right)
            result = self.compared(node, operator, left, right, result)
            if not _asks_for_none(operator, right):
                self.tell_of(node, operator, left, right, result)
            left = right
        return result

    def compared(self, node: ast.Compare, operator: ast.cmpop, left: Value, right: Value, result: Value) -> Value:
        """What a comparison gives, which may be one of several in a row; as a rule that result."""
        return result

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        names = self.flow.state.names
        again = self.binds(node) and not self.muted
        if again:  # what one turn binds, the next one finds
            self.muted += 1
            self.comprehension(node)
            self.muted -= 1
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
        self.leave_comprehension(node, names)
        if isinstance(node, ast.DictComp):
            return self.under_any_key(item)
        # What only selects, `[p for name, p in model.named_parameters() if ...]`, still comes from that module.
        return Iteration(item, of=of if isinstance(node.elt, ast.Name) else None)

    def leave_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, names: dict[str, Value]
    ) -> None:
        """Go on with the names around a comprehension, and with those that `:=` binds in it, if it has any turns."""
        inner = self.flow.state.names
        self.flow.state.names = names
        for name, value in self.changed_in_turns(node, names, inner):
            names[name] = join(names[name], value)
        for part in nodes([node], SCOPES) if self.binds(node) else ():
            if isinstance(part, ast.NamedExpr) and part.target.id in inner:
                name, value = part.target.id, inner[part.target.id]
                self.bind_target(part.target, join(names[name], value) if name in names else value)

    def changed_in_turns(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        names: dict[str, Value],
        inner: dict[str, Value],
    ) -> list[tuple[str, Value]]:
        """The names around a comprehension that stand for something else after it, as a list that it has added to."""
        return []

    def under_any_key(self, item: Value) -> Value:
        """A dict whose keys are not known."""
        return Table({}, rest=item) if self.symbolic else UNKNOWN

    def bind_target(
        self, target: ast.expr, value: Value, statement: ast.stmt | None = None, expression: ast.expr | None = None
    ) -> None:
        """Bind a value to a target, taken apart where the target is."""
        base: Value = UNKNOWN
        if type(target) is ast.Name:
            name, state = target.id, self.flow.state
            state.names[name] = value
            if state.paths:
                state.forget(name)
            self.publish(name, value)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            self.bind_attribute(target, base, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.take_apart(target.elts, value, statement)
            return
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, value, statement)
            return
        elif isinstance(target, ast.Subscript):
            base = self.value(target.value)
            index = self.value(target.slice)
            if type(index) in _INDICES and Lookup in self.listeners:
                self.tell_of_index(target, base, index)
            if isinstance(target.slice, ast.Compare):  # `x[x > 255] = 255` clamps by hand
                self.alter(target.value, Trait.CLAMPED)
            if self.symbolic:
                self.change_container(target.value, base, None)
        else:
            return
        if statement is None or self.muted:
            return
        listener, told = self.listeners.get(Assign), self.targets_told
        if listener is None:
            return
        if told is None or type(target) in told or type(expression) in self.values_told:
            listener(Assign(statement, self.flow, target, value, expression, base))

    def bind_attribute(self, target: ast.Attribute, base: Value, value: Value) -> None:
        """`x.name = value`: known from here on by its path; of `self`, known to the class."""
        path = path_of(target)
        if path is None:
            return
        self.flow.state.forget(path)
        self.flow.state.paths[path] = value
        if self.symbolic and type(base) is Tensor and target.attr == "data":
            self.data_given(base, value)
        function = self.flow.function
        if function is not None and isinstance(base, (Module, Instance)) and base.key == "self":
            known = function.attributes.get(target.attr)
            function.attributes[target.attr] = value if known is None else join(known, value)

    def data_given(self, tensor: Tensor, data: Value) -> None:
        """A tensor is given other data, under whatever names it is known."""
        dtypes = data.dtypes if isinstance(data, Tensor) else None
        for known in (self.flow.state.names, self.flow.state.paths):
            for name, value in known.items():
                if value is tensor:
                    known[name] = tensor.but(dtypes=dtypes, symbol=None, cast=None, span=None)

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

    # -- what changes

    def change_container(self, node: ast.expr, before: Value, added: Value | None) -> None:
        """A list or dict is no longer what it was written as: one more is in it, or nobody knows."""
        path = path_of(node)
        if path is None or not isinstance(before, (Items, Iteration, Table)):
            return
        after: Value = UNKNOWN
        if added is not None and isinstance(before, (Items, Iteration)):
            after = join(before, Iteration(added))
        state = self.flow.state
        for known in (state.names, state.paths):
            for name, value in known.items():
                if value is before:  # another name for it
                    known[name] = after
            if path in known:
                known[path] = after
        if path in state.names:
            self.publish(path, after)

    def publish(self, name: str, value: Value) -> None:
        """A binding, as the functions may find it that are defined in the running scope. The interpreter keeps those."""

    def alter(self, node: ast.expr, traits: Trait) -> None:
        """What an in-place method does to the tensor at the root of its chain: `img.mul_(255).clamp_(0, 255)`."""
        while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        path = path_of(node)
        for known in (self.flow.state.names, self.flow.state.paths):
            tensor = known.get(path) if path is not None else None
            if path is not None and isinstance(tensor, Tensor):
                known[path] = tensor.but(traits=tensor.traits | traits)


_MOST_ASKED = 2
"""Evaluations inside one another that are only to ask: of `d.get(a).get(b).get(c)...`, each call asks what comes before
it, so that without a bound the work doubles with each."""


@lru_cache(maxsize=16_384)
def _external(name: str) -> Dtype | External:
    name = canonical(name)
    dtype = named(name[6:]) if name.startswith("torch.") and name.count(".") == 1 else None
    return External(name) if dtype is None else Dtype(dtype)


@lru_cache(maxsize=16_384)
def _external_or_number(name: str) -> Value:
    """The same, and the numbers among what is outside."""
    known = _external(name)
    return NUMBERS.get(known.name, known) if type(known) is External else known


_OF_BITS = frozenset[type]({ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift, ast.Invert})


def _raises(operator: type[ast.AST], dtypes: frozenset[str]) -> bool:
    """Is an operator not defined for the dtypes of its operand, or of what its operands promote to?"""
    return (operator in _OF_BITS and dtypes <= FLOATS) or (operator is ast.USub and dtypes == _BOOL)


def _is_bool(value: Value) -> bool:
    """Is it a tensor of truths, from which nothing is subtracted?"""
    return type(value) is Tensor and value.dtypes == _BOOL


_BOOL = frozenset({"bool"})


def _asks_for_none(operator: ast.cmpop, right: Value) -> bool:
    """Is it `x is None`, as one comparison in two is?"""
    return type(right) is Constant and right.value is None and isinstance(operator, (ast.Is, ast.IsNot))


def _unknown(_: ast.expr) -> Value:
    return UNKNOWN


def _is_integral(value: Value) -> bool:
    return type(value) is Tensor and value.dtypes is not None and value.dtypes <= INTEGRAL | {"bool"}


def _part_computed(value: Unknown) -> Unknown:
    """What stands under an index in what an operator gives. That may be a list, but of a comparison and a quotient."""
    of_any = value.dtypes is None or len(value.dtypes) == len(DTYPES)
    if value.under is None:
        return UNKNOWN if of_any else value
    return Unknown(value.under, dtypes=None if of_any else value.dtypes)


def _part_of(tensor: Tensor, name: str) -> Tensor:
    """`x.real` or `x.imag`, which for a complex tensor is of the floating dtype that it is made of."""
    if tensor.dtypes is None or (name == "imag" and tensor.dtypes.isdisjoint(REAL_PARTS)):
        return Tensor(under=tensor.under)
    if tensor.dtypes.isdisjoint(REAL_PARTS):
        return tensor
    return tensor.but(dtypes=frozenset(REAL_PARTS.get(dtype, dtype) for dtype in tensor.dtypes), symbol=None, cast=None)


def _inside(atom: Atom, name: str) -> Atom:
    """An attribute of what is only known by its name."""
    return Atom(f"{atom.key}.{name}", f"{atom.text}.{name}")


def _keeps_dimensions(index: ast.expr) -> bool:
    """Is it an index of ranges, `x[:, 1:, None]`, that leaves each dimension?"""
    if isinstance(index, ast.Tuple):
        return all(map(_keeps_dimensions, index.elts))
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value in (None, ...))


_INDICES = frozenset[type]({Tensor, Array, Items})
"""Indices that may be, or hold, a tensor of a known dtype."""
_NO_TENSORS = frozenset[type]({Constant, Number, Array})


def item_of(value: Value) -> Value:
    """What iterating over a value gives."""
    if type(value) is Unknown:
        return UNKNOWN if value.under is None else Unknown(value.under)
    if isinstance(value, Iteration):
        return value.item
    if isinstance(value, Items) and value.items:
        item = value.items[0]
        for other in value.items[1:]:
            item = join(item, other)
        return item
    if isinstance(value, Tensor):
        return part_of(value)
    if isinstance(value, Array):
        return Array(value.dtypes, origin=value.origin)
    if isinstance(value, Module) and value.items:
        return item_of(Items(value.items))
    return UNKNOWN


def _entry(table: Table, key: Value) -> Value:
    """What a dict that the source writes out holds under a key."""
    if not isinstance(key, Constant) or not isinstance(key.value, Hashable):
        return UNKNOWN
    found = table.items.get(key.value, table.rest if table.rest is not None else UNKNOWN)
    return found if table.rest is None else join(found, table.rest)


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
    ast.Slice: "slice",
}
