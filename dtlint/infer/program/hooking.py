"""Hooks of modules: functions that a module runs before and behind its forward, and that may give others in its place.

Source: `torch.nn.Module._call_impl`. What a hook gives counts unless it is None. When a hook is registered, and when it
is removed, is not followed: what it changes may be changed, or not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.calls import Arguments
from dtlint.infer.program.making import Making
from dtlint.infer.program.objects import EVERY
from dtlint.infer.survey import facts
from dtlint.infer.values import (
    NONE,
    UNKNOWN,
    Constant,
    Function,
    Instance,
    Items,
    Module,
    Partial,
    Table,
    Unknown,
    Value,
    join,
    options,
)
from dtlint.infer.walk import SCOPES, nodes

if TYPE_CHECKING:
    from dtlint.infer.scopes import FunctionInfo

__all__ = ["HOOKING_ALL", "Hooking"]

_BEFORE, _BEHIND = "hooks before forward", "hooks behind forward"
"""The attributes under which the objects of a program keep them, as they are no names of Python's."""
_REGISTERING = {
    "register_forward_pre_hook": _BEFORE,
    "register_forward_hook": _BEHIND,
    "register_module_forward_pre_hook": _BEFORE,
    "register_module_forward_hook": _BEHIND,
}
HOOKING_ALL = frozenset({"register_module_forward_pre_hook", "register_module_forward_hook"})


class Hooking(Making):
    """An interpreter that runs the hooks of modules."""

    def hooked(self, receiver: Value, method: str, arguments: Arguments) -> None:
        """`module.register_forward_hook(hook)`, of a module that is known, or of whichever."""
        place = _REGISTERING.get(method)
        hook = arguments.get(0, "hook")
        if hook is None:
            return
        known = all(isinstance(choice, Module) for choice in options(receiver))
        if place is None or not known:
            self.lose(hook)
            for choice in options(receiver):
                if isinstance(choice, Module):  # which the hook is called with
                    self.out_of_sight(choice)
        if place is None or (self.supposed and not known):  # which is seldom run, and then of a module out of sight
            return
        with_words = arguments.keywords.get("with_kwargs", Constant(False)) != Constant(False)
        if not known and isinstance(hook, Function) and _gives_nothing(hook.info):
            return
        for choice in options(receiver):
            key = choice.key if isinstance(choice, Module) else EVERY
            self.objects.put(key, place, Items((hook,)) if with_words else hook)

    def module_call(self, module: Module, method: str, arguments: Arguments) -> tuple[str, Value]:
        if method.startswith("register_") and method.endswith("_hook"):
            self.hooked(module, method, arguments)
        return super().module_call(module, method, arguments)

    def run_forward(self, module: Module, arguments: Arguments) -> Value:
        before, behind = self.hooks_of(module, _BEFORE), self.hooks_of(module, _BEHIND)
        if not before and not behind:
            return super().run_forward(module, arguments)
        for hook in before:
            arguments = self.given_by_hook(hook, module, arguments)
        result = super().run_forward(module, arguments)
        for hook in behind:
            made = self.run_hook(hook, [module, Items(tuple(arguments.args))], [result], arguments)
            result = join(result, made) if made != NONE else result
        return result

    def hooks_of(self, module: Module, place: str) -> list[Value]:
        held = [self.objects.get(key, place) for key in (module.key, EVERY)]
        return [hook for value in held if value is not None for hook in options(value)]

    def given_by_hook(self, hook: Value, module: Module, arguments: Arguments) -> Arguments:
        """What a module is given behind a hook that runs before its forward."""
        made = self.run_hook(hook, [module, Items(tuple(arguments.args))], [], arguments)
        args, keywords, complete = list(arguments.args), arguments.keywords, arguments.complete
        for choice in options(made):
            if choice == NONE:
                continue
            given = list(choice.items) if isinstance(choice, Items) else [choice] * len(args)
            if len(given) != len(args) or isinstance(choice, Unknown):
                given = [UNKNOWN] * len(args)
                keywords, complete = dict.fromkeys(keywords, UNKNOWN), False
            args = [join(one, other) for one, other in zip(args, given, strict=True)]
        return Arguments(arguments.node, args, keywords, arguments.default, complete, arguments.region)

    def run_hook(self, hook: Value, args: list[Value], result: list[Value], arguments: Arguments) -> Value:
        """What a hook gives: None, or what counts in place of the arguments or of the result."""
        with_words = isinstance(hook, Items) and len(hook.items) == 1
        if isinstance(hook, Items) and with_words:
            hook = hook.items[0]
            words: dict[object, Value] = dict(arguments.keywords.items())
            args = [*args, Table(words)]
        args, keywords = [*args, *result], dict[str, Value]()
        while isinstance(hook, Partial):
            args, keywords, hook = [*hook.args, *args], {**hook.keywords, **keywords}, hook.callee
        if isinstance(hook, Instance) and (caller := hook.info.method("__call__")) is not None:
            hook = Function(caller, hook)
        if not isinstance(hook, Function):
            return UNKNOWN
        made = self.apply(hook.info, hook.receiver, args, keywords, arguments.complete)
        if _gives_nothing(hook.info):
            return NONE
        return made if made == NONE or not with_words or result else UNKNOWN


def _gives_nothing(info: FunctionInfo) -> bool:
    """Does a function give None, whatever it is given? So do most hooks, which only look."""
    node = info.node
    if isinstance(node, ast.Lambda):
        return False
    returns = [part for part in nodes(node.body, SCOPES) if isinstance(part, ast.Return)]
    return all(part.value is None for part in returns) and not facts(node).yields
