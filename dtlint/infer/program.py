"""A whole program: functions are read for the arguments they are given, through every module that is imported.

The interpreter reads a function once, for anybody. Here a call reads it for its own arguments, and each instance has
attributes of its own. What a value may become once nobody follows it any more (it is handed to code that is not
seen) is read with everything unknown, so that nothing is claimed that such code could break.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.calls import Arguments, cast_target, external_result
from dtlint.infer.containers import Containers
from dtlint.infer.functions import MOST_READINGS
from dtlint.infer.names import path_of
from dtlint.infer.ops import op_result, with_dimensions
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Autocast,
    Class,
    Constant,
    Device,
    Either,
    External,
    Function,
    GradScaler,
    Instance,
    Items,
    Iteration,
    Module,
    Namespace,
    NullContext,
    Optimizer,
    Partial,
    Super,
    Table,
    Tensor,
    Value,
    join,
)

if TYPE_CHECKING:
    from dtlint.infer.project import ModuleInfo, Project
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["Program"]

_MOST_FOR_ANYBODY = 300
"""Functions that are read for anybody in one round."""
_MOST_ROUNDS = 3
"""Rounds until the attributes of objects are all known, and as many again in which what still grows is unknown."""


class Program(Containers):
    """The interpreter of a program that starts in `main`."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.default_known = self.default
        self.uncovered: dict[int, FunctionInfo] = {}
        """Functions that were to be read for anybody, and were not: nothing can be claimed of what is in them."""
        self.settled = False
        """Has a round shown nothing that the one before it did not? Only then can anything be claimed."""
        self.is_program = _runs_something(main.tree)

    # -- rounds

    def run(self) -> None:
        """Read the program until what is known of its objects stays as it is; only the last round counts."""
        for attempt in range(2 * _MOST_ROUNDS):
            if attempt >= _MOST_ROUNDS:
                self.widen()
            self.round()
            if not self.objects.changed:
                self.settled = True
                return

    def widen(self) -> None:
        """Give up what attributes hold, so that a round finds nothing new in them."""
        for attributes in self.objects.attributes.values():
            for name, value in attributes.items():
                attributes[name] = self.widened(value)
                if attributes[name] == UNKNOWN:
                    self.lose(value)

    def round(self) -> None:
        """Read the program once."""
        self.objects.changed = False
        self.known.clear()
        self.contexts_of.clear()
        self.reached.clear()
        self.default = self.default_known
        self.readings = self.clock = 0
        for module in (self.main, *self.project.modules.values()):
            if module is not None:
                module.run = False
        self.begin_round()
        self.run_module(self.main)
        self.read_rest()

    def begin_round(self) -> None:
        """Forget what the round before has shown."""

    def read_rest(self) -> None:
        """Read for anybody what code may call that is not seen: functions that got out of sight, all of a library's,
        and those of a program that no call in view reads."""
        done: set[int] = set()
        self.uncovered.clear()
        while True:
            waiting = {key: info for key, info in self.loose.items() if key in self.reached}
            for key, info in self.defined.items():
                if key not in self.reached or not self.is_program:
                    waiting[key] = info
            waiting = {key: info for key, info in waiting.items() if key not in done}
            if not waiting:
                return
            for key, info in waiting.items():
                done.add(key)
                if len(done) > _MOST_FOR_ANYBODY or self.readings > MOST_READINGS:
                    self.uncovered[key] = info
                else:
                    self.read_for_anybody(info)

    @staticmethod
    def widened(value: Value) -> Value:
        """A value that keeps its kind, and nothing that may still change."""
        return value if isinstance(value, (Module, Instance, Class, External, Namespace)) else UNKNOWN

    # -- calls

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        callee = self.resolved(callee)
        if isinstance(receiver, Either):
            holding = [
                choice for choice in receiver.choices if not isinstance(choice, (Constant, Items, Iteration, Table))
            ]
            if len(holding) == 1:  # only that one has the method
                receiver = holding[0]
                callee = self.resolved(self.member(receiver, method))
        if isinstance(callee, Either):
            results = [
                self.called(node, choice, receiver, method, arguments)[1] for choice in callee.choices if choice != NONE
            ]
            result = results[0] if results else UNKNOWN
            for other in results[1:]:
                result = join(result, other)
            return "", result
        if isinstance(callee, Function):
            return "", self.apply(callee.info, callee.receiver, arguments.args, arguments.keywords, arguments.complete)
        if isinstance(callee, Class):
            return "", self.construct(callee.info, arguments)
        if isinstance(callee, Module):
            return "", self.run_forward(callee, arguments)
        if isinstance(callee, Instance):
            caller = callee.info.method("__call__")
            if caller is not None:
                return "", self.apply(caller, callee, arguments.args, arguments.keywords, arguments.complete)
            return "", UNKNOWN
        if isinstance(receiver, Module) and not isinstance(callee, (Function, Class)):
            return self.module_call(receiver, method, arguments)
        if isinstance(callee, External):
            return callee.name, self.external_call(callee.name, arguments)
        if isinstance(receiver, Tensor):
            return self.tensor_call(node, callee, receiver, method, arguments)
        if isinstance(receiver, (Optimizer, GradScaler)):
            return super().called(node, callee, receiver, method, arguments)
        for value in (*arguments.args, *arguments.keywords.values()):
            self.lose(value)
        return super().called(node, callee, receiver, method, arguments)

    def tensor_call(
        self, node: ast.Call, callee: Value, tensor: Tensor, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        """A method of a tensor."""
        target = f"torch.Tensor.{method}"
        is_cast, _ = cast_target(method, arguments)
        if not is_cast and method != "to" and arguments.complete:
            given = [tensor, *arguments.args]
            asked = op_result(target, given, arguments.keywords, self.default, self.flow.autocast, node)
            if asked is not None and asked != UNKNOWN:
                return target, with_dimensions(asked) if method in _SHAPING and arguments.args else asked
            if asked is not None or self.flow.autocast is not None:
                target, result = super().called(node, callee, tensor, method, arguments)
                return target, Tensor(origin=node) if isinstance(result, Tensor) else UNKNOWN
        return super().called(node, callee, tensor, method, arguments)

    def external_call(self, name: str, arguments: Arguments) -> Value:
        """A function outside the program: the few that the program's own code is made of, and torch's."""
        if name == "builtins.super" and not arguments.args:
            function = self.flow.function
            me = self.first_parameter()
            return Super(me, function.owner) if function is not None and function.owner is not None else UNKNOWN
        if name in ("torch.set_default_dtype", "torch.set_default_tensor_type"):
            self.default = None
            return NONE
        if name == "functools.wraps":
            return NullContext(name)
        if name == "functools.partial" and arguments.args:
            return Partial(arguments.args[0], tuple(arguments.args[1:]), dict(arguments.keywords))
        if name in _DEVICES:
            return Device()
        if name == "torch.nn.Module.__init__":
            return NONE
        if name == "builtins.isinstance":
            return UNKNOWN
        if name == "builtins.exec":
            self.globals.update({key: UNKNOWN for key, value in self.globals.items() if isinstance(value, Constant)})
            names = self.flow.state.names
            names.update({key: UNKNOWN for key, value in names.items() if isinstance(value, Constant)})
            return NONE
        if (
            name == "torch.nn.parallel.data_parallel"
            and len(arguments.args) >= 2
            and isinstance(arguments.args[0], Module)
        ):
            inside = Arguments(arguments.node, arguments.args[1:2], {}, arguments.default)
            return self.run_forward(arguments.args[0], inside)
        if name == "builtins.len" and len(arguments.args) == 1 and isinstance(arguments.args[0], Items):
            return Constant(len(arguments.args[0].items))
        if name == "builtins.getattr" and len(arguments.args) >= 2 and isinstance(arguments.args[1], Constant):
            member = self.member(arguments.args[0], str(arguments.args[1].value))
            return join(member, arguments.args[2]) if len(arguments.args) > 2 else member
        if name == "builtins.setattr" and len(arguments.args) == 3:
            return self.set_attribute(*arguments.args)
        if name in ("builtins.dict", "collections.OrderedDict") and arguments.complete:
            given = arguments.args[0] if arguments.args else Table({})
            if not isinstance(given, Table) or given.rest is not None:
                return self.lost(given)
            items = dict(given.items)
            items.update({str(key): value for key, value in arguments.keywords.items()})
            return Table(items)
        if name in ("builtins.list", "builtins.tuple") and len(arguments.args) == 1:
            given = arguments.args[0]
            return given if isinstance(given, (Items, Iteration)) else Iteration(self.item_of(given))
        if name == "builtins.zip":
            return Iteration(Items(tuple(self.item_of(arg) for arg in arguments.args)))
        if name == "builtins.enumerate" and arguments.args:
            return Iteration(Items((UNKNOWN, self.item_of(arguments.args[0]))))
        if name in ("builtins.reversed", "builtins.sorted", "builtins.iter") and arguments.args:
            return Iteration(self.item_of(arguments.args[0]))
        if name in ("builtins.next", "copy.copy", "copy.deepcopy") and arguments.args:
            value = arguments.args[0]
            if name == "builtins.next":
                return self.item_of(value)
            return value if isinstance(value, (Tensor, Constant)) else self.lost(value)
        result = external_result(name, arguments)
        if isinstance(result, Module):
            return self.new_layer(result, arguments)
        if name.startswith("torch.") and arguments.complete and not isinstance(result, _MADE):
            asked = op_result(
                name, arguments.args, arguments.keywords, self.default, self.flow.autocast, arguments.node
            )
            if asked is not None and asked != UNKNOWN:
                known = result.zero_dim if isinstance(result, Tensor) else None
                return replace(asked, zero_dim=known) if isinstance(asked, Tensor) and known is not None else asked
            if self.flow.autocast is not None:
                return Tensor(origin=arguments.node) if isinstance(result, Tensor) else UNKNOWN
        calling = name in _CALLING or name.startswith(("torch.utils.", "torch.func.", "torch.vmap"))
        if calling or not name.startswith(("torch.", "builtins.", *_NEVER_CALLING)):
            for value in (*arguments.args, *arguments.keywords.values()):
                self.lose(value)
        return result

    def first_parameter(self) -> Value:
        function = self.flow.function
        if function is None or isinstance(function.node, ast.Lambda):
            return UNKNOWN
        parameters = function.node.args.posonlyargs + function.node.args.args
        return self.flow.state.names.get(parameters[0].arg, UNKNOWN) if parameters else UNKNOWN


_CALLING = frozenset(f"builtins.{name}" for name in ("map", "filter", "sorted", "min", "max", "iter", "property"))
"""Builtins that call what they are given."""
_NEVER_CALLING = tuple(
    f"{name}."
    for name in (
        "inspect",
        "warnings",
        "logging",
        "re",
        "math",
        "time",
        "json",
        "typing",
        "os",
        "sys",
        "random",
        "dataclasses",
        "types",
        "abc",
        "copy",
        "enum",
    )
)
"""Modules of the standard library whose functions look at what they are given, and call none of it."""
_DEVICES = frozenset(
    {"torch.device", "torch.accelerator.current_accelerator", "torch.get_default_device", "torch.cuda.current_device"}
)
_MADE = (Autocast, GradScaler, Optimizer, NullContext, Device)
_SHAPING = frozenset({"view", "reshape", "repeat", "expand"})


def _runs_something(tree: ast.Module) -> bool:
    """Is the file a program, and not only definitions for others: has it a main guard, a loop or a region, or does it
    call what it has made itself?"""
    made: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(statement.name)
        elif isinstance(statement, ast.Assign):
            made.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.For, ast.While, ast.With)) or (
            isinstance(statement, ast.If)
            and "__name__" in {part.id for part in ast.walk(statement.test) if isinstance(part, ast.Name)}
        ):
            return True
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            root = (path_of(statement.value.func) or "").partition(".")[0]
            if root in made and root != "logger":
                return True
    return False
