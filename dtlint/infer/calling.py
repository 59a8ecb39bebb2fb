"""Calls: what is called, what it gives, and what the call changes of the program's state."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING, Any

from dtlint.infer.arithmetic import picked_of, shared_region
from dtlint.infer.arrays import array_call, array_method, picture_method
from dtlint.infer.calls import Arguments, external_result, method_result, module_cast
from dtlint.infer.events import Call, Reference
from dtlint.infer.evidence import OF_TENSORS
from dtlint.infer.expressions import Expressions
from dtlint.infer.kinds import TENSOR_LAYERS, TENSORS_ALONE, tensors_forwarded, tensors_taken
from dtlint.infer.names import path_of
from dtlint.infer.numbers import NUMBER_FUNCTIONS, number_method
from dtlint.infer.summaries import instantiated
from dtlint.infer.survey import REGISTERING
from dtlint.infer.symbols import tensor_of
from dtlint.infer.values import (
    UNKNOWN,
    Array,
    Class,
    Constant,
    Either,
    External,
    Function,
    GradScaler,
    Instance,
    Module,
    Optimizer,
    Partial,
    Phase,
    Picture,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.weights import layer_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.infer.scopes import ClassInfo

__all__ = ["CHANGING", "Calling"]

_KINDS = {
    Tensor: "torch.Tensor",
    Module: "torch.nn.Module",
    Optimizer: "torch.optim.Optimizer",
    GradScaler: "torch.amp.GradScaler",
    Array: "numpy.ndarray",
}
"""The class by which the methods of a value of that kind are called in events."""


class Calling(Expressions):
    """Evaluates calls."""

    __slots__ = ()

    def call(self, node: ast.Call) -> Value:
        receiver: Value = UNKNOWN
        name = method = ""
        discarded = node is self.discarded
        called_as = node.func
        if type(called_as) is ast.Attribute:
            name = method = called_as.attr
            receiver = self._evaluate[type(called_as.value)](called_as.value)
            if type(receiver) is Either:
                receiver = _present(receiver)
            elif type(receiver) is Unknown and (
                method in OF_TENSORS or (receiver.dtypes is not None and method in TENSORS_ALONE)
            ):
                receiver = tensor_of(receiver)
            bound = self.bound(called_as) if self.flow.state.paths else None
            callee = bound or self.method_of(receiver, method)
            if type(callee) is External and Reference in self.listeners:
                self.refer(called_as, callee)
        else:
            callee = self._evaluate[type(called_as)](called_as)
            if type(called_as) is ast.Name:
                name = called_as.id
        args, keywords, complete = self.given(node)
        while type(callee) is Partial:
            args = [*callee.args, *args]
            keywords = {**callee.keywords, **keywords}
            callee = callee.callee
        region = self.flow.autocast if self.flow.contexts else None
        if self.symbolic and type(callee) is Unknown and type(receiver) is Unknown and method != "scale":
            target, result = "", _given_by_unknown(receiver, method)  # what `called` says of half of all calls
        else:
            arguments = Arguments(node, args, keywords, self.default, complete, region)
            target, result = self.called(node, callee, receiver, method, arguments)
        if "out" in keywords and target.startswith(("torch.", "numpy.")):
            result = _written(keywords["out"], result)
        if self.gradless or region is not None:
            result = self.under_autocast(result)
        if method and (method[-1] == "_" or method in _MAY_CHANGE):
            self.change(called_as, receiver, method, args, result)
        if target and args and self.symbolic:
            self.learn(node, callee, target, args)
        self.call_made = None
        if not self.muted:
            listener = self.listeners.get(Call)
            told: Any = listener is not None
            if told and self.calls_told is not None:
                asking, hearing = self.calls_told
                told = hearing[asking[target, name]]
            if told or (discarded and self.tells_of_discard(target, name)):
                called = callee if type(callee) is Module else receiver
                made = Call(node, self.flow, target, name, method, called, args, keywords, complete, result)
                self.call_made = made
                if told and listener is not None:
                    if told is True:
                        listener(made)
                    else:
                        listener(made, told)
        if method in _ADVANCING:
            self.advance(receiver, method, node)
        if target:
            if type(receiver) is Module and self.symbolic and target.startswith("torch.nn.Module."):
                self.note_cast(receiver, target[16:], arguments)
        elif self.symbolic and (type(receiver) is Module or args or keywords):
            self.fear_casts(receiver, args, keywords)
        if not target and self.flow.state.paths:
            self.forget_given(node)
        return result

    def method_of(self, receiver: Value, name: str) -> Value:
        """What is called by that name of a value. Of tensors, and of what is not known, all methods are alike."""
        kind = type(receiver)
        return UNKNOWN if kind is Tensor or kind is Unknown else self.member(receiver, name)

    def tells_of_discard(self, target: str, name: str) -> bool:
        """Is it worth making a Discard?"""
        if self.discards_told is None:
            return True
        asking, hearing = self.discards_told
        return bool(hearing[asking[target, name]])

    def given(self, node: ast.Call) -> tuple[list[Value], dict[str, Value], bool]:
        """The values of a call's arguments, and whether those are all that it is given."""
        complete = True
        args: list[Value] = []
        evaluate = self._evaluate  # what `value` does, for most of all expressions are arguments
        for given in node.args:
            kind = type(given)
            complete = complete and kind is not ast.Starred
            args.append(evaluate[kind](given))
        keywords: dict[str, Value] = {}
        if not node.keywords:
            return args, keywords, complete
        unnamed = False
        for keyword in node.keywords:
            if keyword.arg is not None:
                keywords[keyword.arg] = evaluate[type(keyword.value)](keyword.value)
            else:
                unnamed = True
        if unnamed:  # after the named ones, wherever they stand: a mapping is the last to be read
            complete = False
            self.values([keyword.value for keyword in node.keywords if keyword.arg is None])
        return args, keywords, complete

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        """The qualified name of what is called, and its result."""
        if type(callee) is Either:
            callee = _only(callee)
        if type(callee) is External:
            if callee.name == "functools.partial" and arguments.args:
                return callee.name, Partial(arguments.args[0], tuple(arguments.args[1:]), dict(arguments.keywords))
            if callee.name in _NUMBER_CALLS and len(node.args) == 1:
                return callee.name, self.number(callee.name, arguments.args[0])
            if self.symbolic:
                if callee.name in _PICKING:
                    return callee.name, picked_of(arguments.args)
                known = NUMBER_FUNCTIONS.get(callee.name) or array_call(callee.name, arguments)
                if known is not None:
                    return callee.name, known
            return callee.name, external_result(callee.name, arguments)
        if type(callee) is Function:
            result = self.read(callee.info)
            return "", instantiated(result, callee.info, callee.receiver is not None, arguments)
        if type(callee) is Class:
            return "", self.made(callee.info, arguments)
        if type(callee) is Module:
            return "torch.nn.Module.__call__", self.forwarded(callee, arguments)
        kind = _KINDS.get(type(receiver))
        if method and kind is not None:
            if type(receiver) is Array:
                return f"{kind}.{method}", array_method(receiver, method, arguments)
            result = method_result(receiver, method, arguments)
            if self.symbolic and type(receiver) is Tensor and type(result) is Unknown:
                result = number_method(receiver, method, arguments.args) or result
            return f"{kind}.{method}", result
        if type(receiver) is Unknown:
            if method == "scale" and len(node.args) == 1:
                path = path_of(node.func.value)  # type: ignore[attr-defined]
                return "", Unknown(scaled=None if path is None else self.key(path))
            return "", _given_by_unknown(receiver, method)
        if type(receiver) is Table and self.symbolic:
            return "", method_result(receiver, method, arguments)
        return "", picture_method(receiver, method, arguments) if type(receiver) is Picture else UNKNOWN

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
            path = path_of(arguments.node.func) or ""
            return instantiated(self.read(forward), forward, True, arguments, path)
        under = shared_region(arguments.args)
        if self.symbolic and module.info is None and module.name.startswith("torch.nn."):
            text = path_of(arguments.node.func) or ""
            made = layer_output(module, arguments.args, text, self.flow.autocast, arguments.node)
            if isinstance(made, Tensor):
                return made.but(under=under)
        if module.name in TENSOR_LAYERS and module.info is None:
            return Tensor(under=under, origin=arguments.node)
        return Unknown(under) if under is not None else UNKNOWN

    def number(self, name: str, given: Value) -> Value:
        """`float("-inf")`, `int(1e9)`."""
        if not isinstance(given, Constant) or not isinstance(given.value, (int, float, str)):
            return NUMBER_FUNCTIONS[name] if self.symbolic else UNKNOWN
        try:
            number = _NUMBER_CALLS[name](given.value)
        except (ValueError, OverflowError):
            return UNKNOWN
        return Constant(number if number == number else math.nan)  # which is no other NaN, if it is the same object

    def learn(self, node: ast.Call, callee: Value, target: str, args: list[Value]) -> None:
        """What is handed to something that takes only tensors there is one: by a name from here on."""
        if type(callee) is Module:
            count = 0 if callee.info is not None else tensors_forwarded(callee.name)
        else:
            count = tensors_taken(target)
        for index, given in enumerate(node.args[:count] if count else ()):
            if type(given) is ast.Name:
                value = self.flow.state.names.get(given.id)
                if type(value) is Unknown:
                    self.flow.state.names[given.id] = tensor_of(value)
            elif len(args) == len(node.args) and type(value := args[index]) is Unknown and value.dtypes is not None:
                args[index] = tensor_of(value).but(origin=given)

    def change(self, called: ast.expr, receiver: Value, method: str, args: list[Value], result: Value) -> None:
        """What a method changes of that which it is called on: an in-place method of a tensor, a list that grows."""
        assert isinstance(called, ast.Attribute)
        if method.endswith("_") and isinstance(result, Tensor):
            self.alter(called.value, result.traits)
        elif not self.symbolic:
            return
        elif method in CHANGING:
            self.change_container(called.value, receiver, args[0] if method == "append" and args else None)
        elif method in REGISTERING and type(receiver) is Module and receiver.key == "self" and len(args) >= 2:
            self.register(method, args[0], args[1])

    def register(self, method: str, name: Value, value: Value) -> None:
        """`self.register_buffer(name, tensor)`: an attribute of the class, cast with the module."""
        function = self.flow.function
        if function is None or not isinstance(name, Constant) or not isinstance(name.value, str):
            return
        trait = Trait.BUFFER if method == "register_buffer" else Trait.PARAMETER
        if isinstance(value, Tensor):
            value = value.but(traits=value.traits | trait, symbol=None)
        known = function.attributes.get(name.value)
        function.attributes[name.value] = value if known is None else join(known, value)

    def under_autocast(self, result: Value) -> Value:
        """Mark a result as computed in the autocast region in force, if a backward can go into it."""
        under = None if self.gradless else self.flow.autocast
        if isinstance(result, Tensor):
            keeps = result.origin is not None or result.dtypes is None
            return result.but(under=under) if keeps else result
        return Unknown(under, result.scaled, result.atom, result.dtypes) if type(result) is Unknown else result

    def advance(self, receiver: Value, method: str, node: ast.Call) -> None:
        """What a call changes of the phase of a scaler."""
        scalers = self.flow.state.scalers
        if method == "backward":
            scaled = receiver.scaled if isinstance(receiver, (Tensor, Unknown)) else None
            if scaled is not None:
                scalers[scaled] = Phase.SCALED
        else:
            key = receiver.key if isinstance(receiver, GradScaler) else None
            if key is None and isinstance(node.func, ast.Attribute):
                path = path_of(node.func.value)
                key = None if path is None else self.key(path)
            if key is not None and key in scalers:
                scalers[key] = _SCALER_PHASES[method]

    def note_cast(self, module: Module, method: str, arguments: Arguments) -> None:
        """What a method of a module makes of the dtype of its weights."""
        cast, dtypes = module_cast(method, arguments)
        if cast:
            self.flow.state.casts[module.key] = (0, dtypes)

    def fear_casts(self, receiver: Value, args: list[Value], keywords: dict[str, Value]) -> None:
        """Who has a module in hand, and is not known, may cast it."""
        casts = self.flow.state.casts
        if type(receiver) is Module:
            casts[receiver.key] = (0, None)
        for value in args:
            if type(value) is Module:
                casts[value.key] = (0, None)
        for value in keywords.values():
            if type(value) is Module:
                casts[value.key] = (0, None)

    def forget_given(self, node: ast.Call) -> None:
        """Nobody knows what is called: it may change the attributes of what it is given, and of what it is called on."""
        forget = self.flow.state.forget
        for given in (node.func.value, *node.args) if isinstance(node.func, ast.Attribute) else node.args:
            path = path_of(given)
            if path is not None:
                forget(path)


_SCALER_PHASES = {"unscale_": Phase.UNSCALED, "step": Phase.IDLE, "update": Phase.IDLE}
_ADVANCING = _SCALER_PHASES.keys() | {"backward"}
_PICKING = frozenset({"builtins.max", "builtins.min"})
_NUMBER_CALLS: dict[str, Callable[[Any], object]] = {"builtins.float": float, "builtins.int": int}


def _given_by_unknown(receiver: Unknown, method: str) -> Value:
    """What a method of something unknown gives, or, without a receiver, what an unknown function does."""
    return UNKNOWN if receiver.under is None or not method else Unknown(receiver.under)


def _written(out: Value, result: Value) -> Value:
    """What a function gives that writes into `out=`: that tensor, in the dtype that it has."""
    if isinstance(out, Constant) and out.value is None:
        return result
    return out if isinstance(out, (Tensor, Array)) else UNKNOWN


def _only(value: Either) -> Value:
    """The one value that can be called: `None` is not, after a failed import."""
    callable_ = [choice for choice in options(value) if not isinstance(choice, Constant)]
    return callable_[0] if len(callable_) == 1 else UNKNOWN


def _present(value: Either) -> Value:
    """The value whose attribute is called: not `None`, whichever path assigned that."""
    present = tuple(choice for choice in options(value) if not isinstance(choice, Constant) or choice.value is not None)
    return present[0] if len(present) == 1 else Either(present) if present else value


CHANGING = frozenset(
    {
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "pop",
        "clear",
        "remove",
        "setdefault",
        "popitem",
        "sort",
        "reverse",
        "appendleft",
        "extendleft",
        "popleft",
        "rotate",
        "discard",
        "move_to_end",
        "intersection_update",
        "difference_update",
        "symmetric_difference_update",
    }
)
"""Methods that change a list, a set or a dict."""
_MAY_CHANGE = CHANGING | REGISTERING
