"""A whole program: functions are read for the arguments they are given, through every module that is imported.

The interpreter reads a function once, for anybody. Here a call reads it for its own arguments, and each instance has
attributes of its own. What a value may become once nobody follows it any more (it is handed to code that is not
seen) is read with everything unknown, so that nothing is claimed that such code could break.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.arrays import array_method
from dtlint.infer.calling import CHANGING
from dtlint.infer.calls import CASTS, Arguments, cast_target
from dtlint.infer.interpreter import TooLong
from dtlint.infer.names import path_of
from dtlint.infer.numbers import Categories, number_method
from dtlint.infer.ops import REARRANGING, op_result, with_dimensions
from dtlint.infer.program.abroad import MODULE_CASTS
from dtlint.infer.program.attribute_tables import ATTRIBUTE_TABLES, reading_places, updated_object
from dtlint.infer.program.choices import beside_array
from dtlint.infer.program.containers import GLOBALS
from dtlint.infer.program.folding import folded_method
from dtlint.infer.program.functions import ANY_REGION, MOST_READINGS, RUNNING, Managed
from dtlint.infer.program.instances import ITEMS
from dtlint.infer.program.leaving import Opening
from dtlint.infer.program.objects import EVERY
from dtlint.infer.program.places import operands
from dtlint.infer.program.promises import Cache, DeclaredMethod
from dtlint.infer.program.records import RecordClass
from dtlint.infer.program.refusing import is_refused
from dtlint.infer.program.sizes import sizes_in
from dtlint.infer.program.special import Special
from dtlint.infer.program.storing import place_of
from dtlint.infer.regions import is_untouched
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Array,
    Autocast,
    Class,
    Constant,
    Either,
    External,
    Function,
    GradScaler,
    Instance,
    Items,
    Iteration,
    Key,
    Module,
    Namespace,
    Number,
    Optimizer,
    Partial,
    Record,
    Super,
    Table,
    Tensor,
    Trait,
    Unknown,
    Value,
    join,
    options,
    told_of_forgotten,
)

if TYPE_CHECKING:
    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["Program", "may_be_autocast"]

_MOST_FOR_ANYBODY = 300
"""Functions that are read for anybody in one round."""
_MOST_ROUNDS = 4
"""Rounds that each begin with what the one before it has shown."""
_MOST_WIDENED = 4
"""Rounds after them, which add to what is known, and give up what still grows."""
_MOST_STATEMENTS = 4_000_000
"""Statements that are run for one program, over all rounds: a minute or two."""


class Program(Special):
    """The interpreter of a program that starts in `main`."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.uncovered: dict[int, FunctionInfo] = {}
        """Functions that were to be read for anybody, and were not: nothing can be claimed of what is in them."""
        self.sure: set[ast.expr] = set()
        """Expressions that are operands, or asked for what only tensors have: so they give no module and no batch."""
        self.named_tables: set[ast.expr] = set()
        """Tables of attributes that are just being updated, by names that are all known."""
        self.globals_of: dict[int, frozenset[str]] = {}
        self.settled = False
        """Has a round shown nothing that the one before it did not? Only then can anything be claimed."""
        self.broken_off = ""
        """Why reading it was given up; nothing where it was not."""
        self.is_program = _runs_something(main.tree)
        if self.is_program:
            self.default_at_start = frozenset({"float32"})

    # -- rounds

    def run(self) -> None:
        """Read the program until what is known of its objects stays as it is; only the last round counts. One that takes
        too long, or too deep, is broken off, and nothing is claimed of it."""
        self.statements_left = _MOST_STATEMENTS
        try:
            with told_of_forgotten(self.lose_objects):
                self.rounds()
            self.settled = self.settled and not self.altered
        except TooLong:
            self.settled, self.broken_off = False, "following what it calls takes too long"
        except RecursionError:
            self.settled, self.broken_off = False, "the code is nested too deeply to be followed"

    def rounds(self) -> None:
        for attempt in range(_MOST_ROUNDS + _MOST_WIDENED):
            if attempt > _MOST_ROUNDS:
                self.widen()
            self.objects.begin_round(narrow=0 < attempt < _MOST_ROUNDS)
            self.round()
            self.settled = not self.objects.changed
            if self.settled and (attempt >= _MOST_ROUNDS - 1 or self.objects.shown_all):
                return

    def widen(self) -> None:
        """Give up what the attributes hold that are still growing, so that a round finds nothing new in them."""
        for key, name in self.objects.grown:
            attributes = self.objects.attributes[key]
            value = attributes[name]
            attributes[name] = self.widened(value)
            if attributes[name] == UNKNOWN:
                self.lose(value)

    def round(self) -> None:
        """Read the program once."""
        self.known.clear()
        self.loose.clear()
        self.handed.clear()
        self.made_of.clear()
        self.shared.clear()
        self.made_for_all.clear()
        self.objects.stored.clear()
        self.contexts_of.clear()
        self.answers.clear()
        self.promises.clear()
        self.reached.clear()
        self.order.clear()
        self.given_up.clear()
        self.begin_closures()
        self.optimized.clear()
        self.changed_containers.clear()
        self.cached_results.clear()
        self.cached_containers.clear()
        self.made_by.clear()
        self.attached.clear()
        self.made_here.clear()
        self.classes_made.clear()
        self.readings = self.clock = 0
        for module in (self.main, *self.project.modules.values()):
            if module is not None:
                module.run = False
        # what the round before has read for anybody, supposed modules to be cast, and a default dtype to be set
        self.flow.state.casts = {}
        self.begin_defaults()
        self.begin_round()
        self.run_module(self.main, in_order=True)
        self.read_rest()

    def begin_round(self) -> None:
        """Forget what the round before has shown."""

    def read_rest(self) -> None:
        """Read for anybody what code may call that is not seen: functions that got out of sight, all of a library's,
        and those of a program that no call in view reads."""
        done: set[int] = set()
        done_handed: set[tuple[int, Key]] = set()
        self.uncovered.clear()
        while True:
            waiting = {key: info for key, info in self.loose.items() if key in self.reached or self.may_be_run(info)}
            for key, info in self.defined.items():
                if key not in self.reached or not self.is_program:
                    waiting[key] = info
            waiting = {key: info for key, info in waiting.items() if key not in done}
            handed = [self.handed[place] for place in self.handed.keys() - done_handed if place[1]]
            if not waiting and not handed:
                return
            for key, info in waiting.items():
                done.add(key)
                if len(done) > _MOST_FOR_ANYBODY or self.readings > MOST_READINGS:
                    self.uncovered[key] = info
                else:
                    self.begin_anywhen()
                    if (key, "") in self.handed:
                        self.read_handed(self.handed[key, ""])
                    else:
                        self.read_for_anybody(info)
            for function in handed:
                done_handed.add(place_of(function))
                if function.info.module is not None and self.readings <= MOST_READINGS:
                    self.begin_anywhen()
                    self.read_handed(function)

    def begin_anywhen(self) -> None:
        """What is read next may run at any time."""
        self.flow.state.casts = dict.fromkeys(self.ever_cast, (self.clock, None))
        # whoever calls a library's may have set another default dtype
        self.default = self.default_anywhen if self.is_program else None

    def lose_objects(self, value: Value) -> None:
        """A join has let go of a value. Of classes there are many in one place where a program asks what something is,
        and makes nothing of them."""
        if not isinstance(value, Class):
            self.lose(value)

    def may_be_run(self, info: FunctionInfo) -> bool:
        """May code that is not seen run a function that no call in view reads, by calling a module that has got out of sight?"""
        return info.owner is not None and info.name in RUNNING and id(info.owner.node) in self.classes_made

    @staticmethod
    def widened(value: Value) -> Value:
        """A value that keeps its kind, and nothing that may still change."""
        return value if isinstance(value, (Module, Instance, Class, External, Namespace)) else UNKNOWN

    # -- expressions

    def name(self, node: ast.Name) -> Value:
        """A global of which functions assign a tensor may have any dtype, at the top of its module too."""
        value = super().name(node)
        if self.flow.function is not None or node.id not in self.declared_global():
            return value
        if isinstance(value, Tensor):
            return replace(value, dtypes=None, symbol=None, cast=None)
        return value if isinstance(value, (Module, Optimizer, GradScaler)) else self.lost(value)

    def declared_global(self) -> frozenset[str]:
        """The names that functions of the running module declare to be global."""
        found = self.globals_of.get(id(self.tree))
        if found is None:
            statements = [part for part in ast.walk(self.tree) if isinstance(part, ast.Global)]
            found = frozenset(name for statement in statements for name in statement.names)
            self.globals_of[id(self.tree)] = found
        return found

    def attribute(self, node: ast.Attribute) -> Value:
        value = super().attribute(node)
        if node.attr in ATTRIBUTE_TABLES:
            self.table_in_hand(node, node.value)
        elif node.attr in MODULE_CASTS:
            self.cast_in_hand(self.quietly(node.value), value)
        if node.attr == "shape" and any(type(choice) is Unknown for choice in options(value)):
            known = [choice for choice in options(value) if type(choice) is not Unknown]
            return reduce(join, [Iteration(_INTEGER), *known])
        if type(value) is not Unknown:
            return value
        function = self.flow.function
        return _INTEGER if function is not None and path_of(node) in sizes_in(function) else value

    def binary(self, node: ast.BinOp) -> Value:
        part: ast.expr = node
        while isinstance(part, ast.BinOp):
            self.sure.update((part.left, part.right))
            part = part.left
        return super().binary(node)

    # -- calls

    def call(self, node: ast.Call) -> Value:
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _OF_TENSORS:
            self.sure.add(function.value)
        if isinstance(function, ast.Name) and function.id == "vars" and len(node.args) == 1:
            self.table_in_hand(node, node.args[0])
        if isinstance(function, ast.Call) and isinstance(function.func, ast.Name) and function.func.id == "getattr":
            asked = [self.quietly(argument) for argument in function.args[:2]]
            if any(not isinstance(name, Constant) or name.value in MODULE_CASTS for name in asked[1:]):
                self.cast_somehow(asked[:1])  # getattr(layer, "half")()
        owner = updated_object(node)
        given = None if owner is None else self.told_attributes(node, owner)
        if owner is None or given is None:
            return super().call(node)
        self.named_tables.add(function.value)  # type: ignore[attr-defined]  # it is a method of the dict
        result = super().call(node)
        self.named_tables.discard(function.value)  # type: ignore[attr-defined]
        holder = self.quietly(owner)
        for name, value in given.items():
            self.set_attribute(holder, Constant(name), value)
        return result

    def told_attributes(self, node: ast.Call, owner: ast.expr) -> dict[str, Value] | None:
        """What `x.__dict__.update(...)` sets, by name; None where not all of it is known, or x may be a module, which
        keeps its modules and weights elsewhere."""
        if not all(isinstance(holder, Instance) for holder in options(self.quietly(owner))):
            return None
        told: dict[str, Value] = {}
        for given in (*node.args, *(each.value for each in node.keywords if not each.arg)):
            value = self.quietly(given) if self.is_as_it_was_made(given) else UNKNOWN
            if not isinstance(value, Table) or value.rest is not None:
                return None
            for name, item in value.items.items():
                if not isinstance(name, str):
                    return None
                told[name] = item
        return told | {each.arg: self.quietly(each.value) for each in node.keywords if each.arg}

    def is_as_it_was_made(self, table: ast.expr) -> bool:
        """Has a dict nothing but what it was made with: is it written out there, or the running function's own `**kwargs`,
        which nobody else has, and which it only reads?"""
        if isinstance(table, ast.Dict):
            return True
        function = self.flow.function.node if self.flow.function is not None else None
        rest = function.args.kwarg if function is not None else None
        if function is None or rest is None or not isinstance(table, ast.Name) or table.id != rest.arg:
            return False
        uses = [part for part in ast.walk(function) if isinstance(part, ast.Name) and part.id == rest.arg]
        read = reading_places(self.tree)
        return all(isinstance(use.ctx, ast.Load) and (use is table or use in read) for use in uses)

    def cast_somehow(self, modules: list[Value]) -> None:
        """Modules are cast, nobody sees to what: by a method that is asked for by its name, or of the class itself."""
        for choice in [choice for value in modules for choice in options(value)]:
            if isinstance(choice, Module):
                self.cast_module(choice, None)

    def table_in_hand(self, table: ast.expr, owner: ast.expr) -> None:
        """An expression gives the dict of an object's attributes: unless it is only read, any may be another."""
        if table in self.named_tables:
            return
        owners = list(options(self.quietly(owner)))
        if table in reading_places(self.tree):
            for choice in owners:
                if isinstance(choice, Module):  # whose modules may be read out of it
                    self.out_of_sight(choice)
            return
        self.flow.state.forget(path_of(owner) or "")
        of_module = isinstance(table, ast.Attribute) and table.attr != "__dict__"
        for choice in owners:
            if isinstance(choice, Module) or (isinstance(choice, Instance) and not of_module):
                self.open_object(choice)
                self.forget_stored({(choice.key, EVERY)})

    def method_of(self, receiver: Value, name: str) -> Value:
        return self.member(receiver, name)

    def region_of(self, context: ast.expr, value: Value) -> Autocast | None:
        """The autocast region that a context enters; of one that it may or may not enter, one that may be off."""
        choices = [choice.region if isinstance(choice, Opening) else choice for choice in options(value)]
        regions = [choice for choice in choices if isinstance(choice, Autocast)]
        if not regions:
            unknown = any(isinstance(choice, Unknown) for choice in choices)
            return ANY_REGION if unknown and may_be_autocast(context) else None
        if len(choices) == 1:
            return regions[0]
        first = regions[0]
        same = all(region.device == first.device and region.dtype == first.dtype for region in regions)
        return Autocast(first.device, first.dtype, None, first.made) if same else ANY_REGION

    def called(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        callee = self.resolved(callee)
        while isinstance(callee, Partial):  # as one of several
            arguments, callee = arguments.given_to(callee), self.resolved(callee.callee)
        if isinstance(receiver, Module) and isinstance(callee, External) and not callee.name.startswith(_OF_MODULES):
            receiver, method = UNKNOWN, ""  # `self.act = F.gelu` is no method of the module
        if not _is_torch(callee, receiver):
            return self.called_anywhere(node, callee, receiver, method, arguments)
        region = self.region_over(operands(receiver, arguments))
        if region is not None:
            self.flow.contexts.append(region)
        target, result = self.called_anywhere(node, callee, receiver, method, arguments)
        if is_refused(target, receiver, arguments, result, self.flow.autocast):
            result = Tensor(origin=node)
        if region is not None:
            self.flow.contexts.pop()
        return target, self.placed(result, self.place_of_result(callee, receiver, method, arguments))

    def called_anywhere(
        self, node: ast.Call, callee: Value, receiver: Value, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        """What a call gives, by the regions around it and the values that it is given."""
        if type(receiver) is Unknown and method in MODULE_CASTS and node not in self.sure:
            self.cast_unknown(node)
        listed = isinstance(receiver, (Items, Iteration)) and not isinstance(receiver, Record)
        if listed and method in MODULE_CASTS:  # `net[:2].half()`
            for module in self.modules_in(receiver):
                self.cast_module(module, None)
            return "", receiver
        if isinstance(receiver, Either) and method in MODULE_CASTS:
            modules = [choice for choice in receiver.choices if isinstance(choice, Module)]
            if len(modules) > 1:  # one of them is cast
                self.cast_somehow([receiver])
                return "", receiver
        found = self.of_uncertain(node, receiver, method, arguments)
        if found is not None:
            return "", found
        if isinstance(receiver, Either):
            holding = [
                choice
                for choice in receiver.choices
                if not isinstance(choice, (Array, Constant, Items, Iteration, Number, Table))
            ]
            if len(holding) == 1:  # only that one has the method
                callee = self.resolved(self.member(holding[0], method))
                target, result = self.called(node, callee, holding[0], method, arguments)
                return target, beside_array(receiver, result)
        if isinstance(callee, Either):
            results = [
                self.called(node, choice, receiver, method, arguments)[1] for choice in callee.choices if choice != NONE
            ]
            result = results[0] if results else UNKNOWN
            for other in results[1:]:
                result = join(result, other)
            return "", result
        if isinstance(callee, Function) and callee.info.managed:
            callee = Managed(callee)
        if isinstance(callee, Function):
            return "", self.apply(callee.info, callee.receiver, arguments.args, arguments.keywords, arguments.complete)
        if isinstance(callee, Managed):
            return "", self.opening(callee, arguments)
        if isinstance(callee, RecordClass):
            return "", self.record(callee, arguments)
        if isinstance(callee, DeclaredMethod):
            for value in (*arguments.args, *arguments.keywords.values()):
                self.hand_over(value)
            return "", self.kept_promise(callee.info, UNKNOWN)
        if isinstance(callee, Class):
            return "", self.construct(callee.info, arguments)
        if isinstance(callee, Module):
            return "", self.run_forward(callee, arguments)
        if isinstance(callee, Instance):
            caller = callee.info.method("__call__")
            if caller is not None:
                return "", self.apply(caller, callee, arguments.args, arguments.keywords, arguments.complete)
            return "", UNKNOWN
        if receiver == GLOBALS and method in _CHANGING_NAMES:
            name = arguments.args[0] if arguments.args else UNKNOWN
            self.names_lost({str(name.value)} if isinstance(name, Constant) else None)
            return "", UNKNOWN
        if method == "__setattr__" and isinstance(receiver, Tensor) and len(arguments.args) == 2:
            return "", self.set_attribute(receiver, *arguments.args)
        if method == "__setattr__" and isinstance(receiver, (Module, Instance)) and not isinstance(callee, Function):
            return "", self.of_parent(receiver, method, arguments)
        if isinstance(receiver, Module) and not isinstance(callee, (Function, Class)):
            return self.module_call(receiver, method, arguments)
        if isinstance(callee, External) and isinstance(receiver, Super):
            return "", self.of_parent(receiver.receiver, method, arguments)
        if isinstance(callee, External):
            if callee.name.removeprefix("torch.nn.Module.") in MODULE_CASTS:  # nn.Module.half(layer)
                self.cast_somehow(arguments.args[:1])
            return callee.name, self.external_call(callee.name, arguments)
        found = self.record_call(receiver, method, arguments) if isinstance(receiver, Record) else None
        if found is not None:
            return "", found
        computed = folded_method(receiver, method, arguments.args) if method and not arguments.keywords else None
        if computed is not None:
            return "", computed
        if isinstance(receiver, Tensor):
            return self.tensor_call(node, callee, receiver, method, arguments)
        if isinstance(receiver, (Cache, Categories)):
            return "", receiver.result(method)
        if isinstance(receiver, Optimizer) and method == "step":
            for closure in (*arguments.args, *arguments.keywords.values()):
                if isinstance(closure, Function):
                    return "", self.apply(closure.info, closure.receiver, [], {}, True)
        if isinstance(receiver, GradScaler) and method == "step" and arguments.args:
            self.step_perhaps(arguments.args[0])
        if isinstance(receiver, (Optimizer, GradScaler)):
            return super().called(node, callee, receiver, method, arguments)
        if method.startswith("register_") and method.endswith("_hook"):  # of a module that is not known
            self.hooked(receiver, method, arguments)
        entered = (receiver,) if method == "__enter__" else ()  # by hand: who knows when it is left?
        # a function that stands under a name is mostly one of those that the program itself has to choose from
        keep = self.lose if method in _KEEPING or isinstance(node.func, ast.Name) else self.hand_over
        for value in (*entered, *arguments.args, *arguments.keywords.values()):
            keep(value)
        if type(callee) is Unknown and method not in _KEEPING:
            for value in (*arguments.args, *arguments.keywords.values()):
                self.changed_by_anybody(value)
        return super().called(node, callee, receiver, method, arguments)

    def step_perhaps(self, optimizer: Value) -> None:
        """A scaler runs the step of an optimizer, unless a gradient has overflowed."""
        method = optimizer.info.method("step") if isinstance(optimizer, Instance) else None
        if method is None:
            return
        before = self.flow.state
        self.flow.state = before.copy()
        self.apply(method, optimizer, [], {}, True)
        self.resume(before, self.flow.state)

    def changed_by_anybody(self, value: Value) -> None:
        """A function that is called may be one of the program, nobody knows which: it may change what it is given."""
        self.lose_container(value)
        waiting, found = list(options(value)), set[Key]()
        while waiting:
            one = waiting.pop()
            if isinstance(one, (Instance, Module)) and one.key not in found:
                found.add(one.key)
                for held in self.objects.of(one.key).values() if isinstance(one, Instance) else ():
                    waiting += options(held)
        stored = {(key, name) for key in found for name in self.objects.wild}
        self.forget_stored(stored)
        self.objects.stored |= stored

    def of_uncertain(self, node: ast.Call, receiver: Value, method: str, arguments: Arguments) -> Value | None:
        """A method of something that is not known, or is a tensor, that can give but one dtype; None for others."""
        choices = [choice for choice in options(receiver) if choice != NONE]
        unknown = [choice for choice in choices if type(choice) is Unknown]
        if not unknown:
            return None
        if any(isinstance(choice, Cache) for choice in choices):
            whole = all(isinstance(choice, Cache) for choice in choices if choice not in unknown)
            return Cache.result(method) if whole else None
        if not all(isinstance(choice, (Unknown, Tensor)) for choice in choices):
            return None
        under = unknown[0].under if isinstance(unknown[0], Unknown) and len(choices) == 1 else None
        if method == "astype" and len(choices) == 1 and arguments.args and _is_numpy(arguments.args[0]):
            made = array_method(Array(), method, arguments)
            return made if isinstance(made, Array) and made.dtypes is not None else None
        if method in CASTS and not arguments.args and not arguments.keywords:
            # A module has some of these too, but gives no tensor: of tensors there is only this one.
            return Tensor(frozenset({CASTS[method]}), under=under, origin=node)
        if method == "to" and node in self.sure:
            is_cast, dtypes = cast_target(method, arguments)
            return Tensor(dtypes, under=under, origin=node) if is_cast and dtypes is not None else None
        return None

    def of_parent(self, me: Value, method: str, arguments: Arguments) -> Value:
        """`super().method(...)`, where no class of the program has the method: that of nn.Module, or of object."""
        if method == "__getattribute__" and arguments.args:
            return self.plain_look_up(me, arguments.args[0])
        if method in ("__setattr__", "__delattr__") and arguments.args:
            value = arguments.args[1] if len(arguments.args) > 1 else UNKNOWN
            return self.set_attribute(me, arguments.args[0], value)
        if isinstance(me, Module) and method == "__init__" and self.make_inherited(me, arguments):
            return NONE
        if isinstance(me, Module) and method == "forward":
            return self.run_inherited(me, arguments)
        if isinstance(me, Module) and method == "__call__" and me.info is not None:
            forward = me.info.method("forward")
            return (
                self.run_inherited(me, arguments)
                if forward is None
                else self.apply(forward, me, arguments.args, arguments.keywords, arguments.complete)
            )
        if method == "__getitem__" and isinstance(me, Instance) and arguments.args:
            held = self.objects.get(me.key, ITEMS)
            return self.at_key(held, arguments.args[0]) if isinstance(held, Table) else UNKNOWN
        if method == "__setitem__" and isinstance(me, Instance):
            self.lose(arguments.args[-1])
            self.objects.put(me.key, ITEMS, UNKNOWN)
            return NONE
        getter = me.info.method("__getitem__") if method == "get" and isinstance(me, Instance) else None
        if getter is not None and arguments.args:  # collections.abc.Mapping.get
            found = self.apply(getter, me, arguments.args[:1], {}, True)
            return join(found, arguments.args[1] if len(arguments.args) > 1 else NONE)
        if isinstance(me, Module) and method not in ("__init__", "__init_subclass__"):
            return self.module_call(me, method, arguments)[1]
        for value in (*arguments.args, *arguments.keywords.values()):
            self.lose(value)
        return NONE if method == "__init__" else UNKNOWN

    def tensor_call(
        self, node: ast.Call, callee: Value, tensor: Tensor, method: str, arguments: Arguments
    ) -> tuple[str, Value]:
        """A method of a tensor."""
        if method.startswith("register_"):
            self.hooked(tensor, method, arguments)
        target = f"torch.Tensor.{method}"
        number = number_method(tensor, method, arguments.args)
        if number is not None:
            return target, number
        if method in REARRANGING or (method == "view" and _takes_sizes(arguments)):
            items = replace(tensor, zero_dim=None, traits=Trait.NONE, span=None)
            return target, Iteration(items) if method in ("split", "chunk", "unbind", "tensor_split") else items
        if method == "new_tensor" and arguments.complete and "dtype" not in arguments.keywords:
            return target, Tensor(tensor.dtypes, origin=node, symbol=tensor.symbol)
        if method == "as_subclass":  # whose methods may be its own
            return target, self.lost(arguments.args[0]) if arguments.args else UNKNOWN
        is_cast, _ = cast_target(method, arguments)
        if not is_cast and method != "to" and arguments.complete:
            given = [tensor, *arguments.args]
            asked = op_result(target, given, arguments.keywords, self.default, self.flow.autocast, node)
            if asked is not None and asked != UNKNOWN:
                return target, with_dimensions(asked) if method in _SHAPING and arguments.args else asked
            if asked is not None or not is_untouched(target, self.flow.autocast, given):
                target, result = super().called(node, callee, tensor, method, arguments)
                return target, _without_tensors(result, node)
        return super().called(node, callee, tensor, method, arguments)


_OF_MODULES = "torch.nn.Module."
"""How the names of methods begin that every module has."""


def _is_torch(callee: Value, receiver: Value) -> bool:
    """Is it an op of torch: a function, a method of a tensor, or a layer that holds no others?"""
    if isinstance(callee, External):
        return callee.name.startswith("torch.") and not isinstance(receiver, (Module, Super))
    if isinstance(callee, Module):
        return callee.info is None and callee.items is None
    return isinstance(receiver, Tensor)


def _is_numpy(dtype: Value) -> bool:
    return isinstance(dtype, External) and dtype.name.startswith("numpy.")


def _takes_sizes(arguments: Arguments) -> bool:
    """Is `x.view(...)` given sizes, and not a dtype?"""
    first = arguments.args[0] if arguments.args else UNKNOWN
    return len(arguments.args) > 1 or isinstance(first, (Items, Iteration, Number, Constant))


def _without_tensors(result: Value, node: ast.Call) -> Value:
    """What is left of a result that the operator table contradicts, or that autocast may change."""
    if isinstance(result, Tensor):
        return Tensor(origin=node)
    plain = isinstance(result, Iteration) and isinstance(result.item, Number)
    return result if plain or isinstance(result, (Number, Constant)) else UNKNOWN


_OF_TENSORS = frozenset(
    {"pow", "mean", "square", "abs", "exp", "sqrt", "rsqrt", "softmax", "log_softmax", "cumsum", "matmul", "sigmoid"}
    | {"unsqueeze", "squeeze", "transpose", "permute", "contiguous", "argmax", "clamp", "masked_fill", "reshape"}
)
"""Methods that tensors have, and that neither modules nor batches of inputs have, which are cast by `to` as well."""
_CHANGING_NAMES = frozenset({"__setitem__", "__delitem__", "update", "pop", "setdefault"})
_KEEPING = CHANGING | {"get", "index", "count", "copy", "remove"}
"""Methods of containers: what they are given they keep, and do nothing else with it."""
_INTEGER = Number(Category.INTEGER)


def may_be_autocast(context: ast.expr) -> bool:
    """Is a context called as those are that open a region?"""
    return _CASTING.search(ast.unparse(context)) is not None


_CASTING = re.compile(r"cast|amp\b|precision|ctx|context", re.IGNORECASE)
"""How contexts are called that may be autocast's, where it is not known what they are."""
_SHAPING = frozenset({"view", "reshape", "repeat", "expand"})


def _calls_something(node: ast.AST) -> bool:
    """Is it a statement that is a call, and not one that only fills a container: `for name in ...: table[name] = ...`?"""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return (path_of(node.value.func) or "").rpartition(".")[2] not in CHANGING | {"setattr", "globals"}


def _runs_something(tree: ast.Module) -> bool:
    """Is the file a program, and not only definitions for others: has it a main guard, a loop or a region, or does it
    call what it has made itself?"""
    made: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            made.add(statement.name)
        elif isinstance(statement, ast.Assign):
            made.update(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.For, ast.While, ast.With)):
            if any(map(_calls_something, ast.walk(statement))):
                return True
        elif isinstance(statement, ast.If) and "__name__" in {
            part.id for part in ast.walk(statement.test) if isinstance(part, ast.Name)
        }:
            return True
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            root = (path_of(statement.value.func) or "").partition(".")[0]
            if root in made and root != "logger":
                return True
    return False
