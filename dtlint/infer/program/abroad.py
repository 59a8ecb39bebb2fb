"""Modules in other hands: who has one in hand and is not followed may cast it, or put others in the place of those in it.

Three things are told apart. What is handed to code that is not in view may be cast there, and at any time after. What got
out of sight in code that is read (in a list of too many kinds, under a name that is not known) is changed only where that
code changes something unknown. And what a module holds is looked at one by one as long as all of it is known.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX, FLOATING
from dtlint.infer.calls import CASTS
from dtlint.infer.program.functions import ANYBODY, SUPPOSED
from dtlint.infer.program.instances import ITEMS, LAYER
from dtlint.infer.program.owned import Owned
from dtlint.infer.values import (
    UNKNOWN,
    Constant,
    Either,
    External,
    Function,
    Instance,
    Items,
    Iteration,
    Module,
    Table,
    Value,
    options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dtlint.infer.interproc.project import ModuleInfo, Project
    from dtlint.infer.values import Dtypes, Key

__all__ = ["MODULE_CASTS", "Abroad", "Each"]

MODULE_CASTS = frozenset({"_apply", "to", "type", *CASTS})
"""Methods of a module that may cast its weights."""
_FOREVER = sys.maxsize
"""The count of a cast after which no other is the last."""
_MADE = re.compile(r"[^@]@\d+:\d+")
"""How the identity of what a call has made is told from that of what is known by a name or an annotation alone."""
_DEEPEST = 3
"""Containers and objects inside each other that are looked through for modules."""


@dataclass(slots=True, repr=False, match_args=False)
class Each(Iteration):
    """What gives these one after the other, nobody knows in which order: the modules of a module. What one of them is that
    is not looked at one by one, `item` says."""

    each: tuple[Value, ...] = ()


class Abroad(Owned):
    """An interpreter that keeps account of which modules others have in hand."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.abroad: set[Key] = set()
        """Modules that got out of sight: what is done to something unknown may be done to them, and to those below."""
        self.cast_anytime: set[Key] = set()
        """Modules that are cast by code of which nobody sees when it runs."""
        self.alike: dict[Key, tuple[Module, ...]] = {}
        """The layers for which one stands that a loop is given in their place."""
        self.below: dict[Key, Module] = {}
        """The modules of which a value is one that they hold, nobody knows which, by its key."""
        self.reading_handed = False
        """Is what is read for anybody a function that was handed to code that is not seen, and not one that might be called?"""

    # -- who has them

    def lose(self, value: Value, depth: int = 0) -> None:
        if isinstance(value, Module):
            self.out_of_sight(value)
            value = self.holder_of(value)
        super().lose(value, depth)

    def some_of(self, module: Module) -> Module:
        """One of the modules that a module holds, nobody knows which."""
        if module.key in self.below:
            return module
        one = Module("torch.nn.Module", f"{module.key}&")
        self.below[one.key] = module
        return one

    def out_of_sight(self, module: Module) -> None:
        """Code that is read has the module under no name that is known."""
        module = self.holder_of(module)
        if module.key not in self.abroad and not module.key.startswith(ANYBODY):
            self.abroad.add(module.key)
            self.objects.changed = True

    def holder_of(self, module: Module) -> Module:
        """The module itself; of one of those that another holds, nobody knows which, the other."""
        return self.below.get(module.key, module)

    def stands_for_others(self, module: Module) -> bool:
        return module.key in self.below

    def hand_over(self, value: Value) -> None:
        """Code that is not in view is given the value: from here on it may cast all modules in it, whenever it runs."""
        self.lose(value)
        for module in self.modules_in(value):
            self.cast_from_now(module)

    def modules_in(self, value: Value, depth: int = 0) -> Iterator[Module]:
        """The modules that whoever has the value can get hold of."""
        if depth > _DEEPEST:
            return
        if isinstance(value, Module):
            yield value
            return
        held: list[Value] = []
        if isinstance(value, Items):
            held += value.items
        elif isinstance(value, Each):
            held += value.each
        elif isinstance(value, Iteration):
            held.append(value.item)
        elif isinstance(value, Either):
            held += value.choices
        elif isinstance(value, Table):
            held += [*value.items.values(), *(() if value.rest is None else (value.rest,))]
        elif isinstance(value, Instance):
            held += self.objects.of(value.key).values()
        for item in held:
            yield from self.modules_in(item, depth + 1)

    def read_handed(self, function: Function) -> None:
        self.reading_handed = True
        super().read_handed(function)
        self.reading_handed = False

    # -- casts that are not seen

    def cast_from_now(self, module: Module) -> None:
        """The module may be cast at any time from here on."""
        module = self.holder_of(module)
        self.cast_module(module, None)
        for one in self.alike.get(module.key, (module,)):
            self.flow.state.casts[one.key] = (_FOREVER, None)

    def cast_module(self, module: Module, dtypes: Dtypes) -> None:
        if module.key in self.below:
            module, dtypes = self.holder_of(module), None
        elif not self.supposed and not _MADE.search(module.key) and not module.key.startswith(ANYBODY):
            # something unknown that was asked whether it is a module: it is one that got out of sight
            for key in self.abroad:
                self.cast_one(Module("torch.nn.Module", key), None)
        for one in self.alike.get(module.key, (module,)):
            self.cast_one(one, dtypes)
            own = one.key.startswith((ANYBODY, SUPPOSED))
            if self.supposed and self.reading_handed and not own and one.key not in self.cast_anytime:
                self.cast_anytime.add(one.key)
                self.objects.changed = True

    def cast_by_hand(self, module: Module) -> None:
        own = module.key.startswith((ANYBODY, SUPPOSED))
        if self.supposed and self.reading_handed and not own and module.key not in self.cast_anytime:
            self.cast_anytime.add(module.key)
            self.objects.changed = True

    def cast_one(self, module: Module, dtypes: Dtypes) -> None:
        before = self.flow.state.casts.get(module.key)
        super().cast_module(module, dtypes)
        if before is not None and before[0] == _FOREVER:
            self.flow.state.casts[module.key] = before

    def cast_in_hand(self, owner: Value, method: Value) -> None:
        """A method that casts is not called, but kept: `cast = layer.half`, `map(nn.Module.half, layers)`."""
        for choice in options(owner):
            if isinstance(choice, Module):
                self.cast_from_now(choice)
        if isinstance(method, External) and method.name.startswith("torch.nn.Module."):
            for key in tuple(self.made_here):
                self.cast_from_now(Module("torch.nn.Module", key))

    def cast_unknown(self, node: ast.Call) -> None:
        """Something unknown is cast, and what that gives is dropped: it was a module, and one that got out of sight. Of a
        cast that is used nobody can say so: most of those are of tensors."""
        statement = self.flow.statement
        if not isinstance(statement, ast.Expr) or statement.value is not node:
            return
        if not self.supposed:
            for key in self.abroad:
                self.cast_module(Module("torch.nn.Module", key), None)
        elif self.reading_handed and not self.abroad <= self.cast_anytime:
            self.cast_anytime |= self.abroad
            self.objects.changed = True

    def cast_of(self, key: Key, made: Dtypes) -> Dtypes:
        if key in self.alike:
            found = [super(Abroad, self).cast_of(one.key, made) for one in self.alike[key]]
            known = [dtypes for dtypes in found if dtypes is not None]
            return frozenset().union(*known) if len(known) == len(found) else None
        floating = made is None or made & (FLOATING | COMPLEX)
        if floating and self.cast_anytime and not self.cast_anytime.isdisjoint(self.objects.above(key)):
            return None
        return super().cast_of(key, made)

    # -- other modules in the place of theirs

    def open_object(self, holder: Module | Instance) -> None:
        """Any attribute of it may be another from here on, and any item."""
        self.objects.open_up(holder.key)
        if isinstance(holder, Module):
            self.put_item(holder, UNKNOWN)
            self.cast_from_now(holder)

    def open_unknown(self, value: Value) -> None:
        """An attribute of an unknown name is assigned to something unknown, which may be any module out of sight."""
        if self.may_be_cast(value) and (self.reading_handed or not self.supposed):
            self.open_below(self.abroad)

    def open_below(self, holders: set[Key]) -> None:
        """Any attribute of these modules and of what they hold may be another from here on."""
        below = [key for key in self.objects.attributes if not holders.isdisjoint(self.objects.above(key))]
        for key in (*holders, *below):
            self.open_object(Module("torch.nn.Module", key))

    def put_item(self, holder: Module, value: Value) -> None:
        """A module is put into a container of modules, in the place of another or beside the others."""
        self.order.disturb(holder.key)
        self.detach_items(holder)
        self.attached_from_here(holder, value)
        self.objects.put(holder.key, ITEMS, value)

    def detach_items(self, holder: Module) -> None:
        """One of the modules in a container of modules is in it no more, nobody knows which."""
        for one in self.modules_in(self.item_of(holder)):
            self.objects.detach(one.key)

    def attached_from_here(self, holder: Module, value: Value) -> None:
        """What is given to a module has not been cast with it before."""
        for one in self.modules_in(value):
            self.attached.setdefault((holder.key, one.key), self.clock)

    def submodule(self, module: Module, path: Value) -> Value:
        """`module.get_submodule("encoder.layers.0")`."""
        if not isinstance(path, Constant) or not isinstance(path.value, str):
            self.out_of_sight(module)
            return UNKNOWN
        found: Value = module
        for name in path.value.split(".") if path.value else ():
            found = self.part_of(found, name)
        return found

    def part_of(self, holder: Value, name: str) -> Value:
        """The module that another has under a name, which is a number in a Sequential or ModuleList."""
        if not isinstance(holder, Module) or holder.items is None:
            return self.member(holder, name)
        numbered = self.objects.get(holder.key, ITEMS) is None and all(isinstance(one, Module) for one in holder.items)
        if numbered and name.isdecimal() and int(name) < len(holder.items):
            return holder.items[int(name)]
        self.out_of_sight(holder)
        return UNKNOWN

    def set_submodule(self, module: Module, path: Value, value: Value) -> None:
        """`module.set_submodule("encoder.layers.0", other)`."""
        if isinstance(path, Constant) and isinstance(path.value, str):
            above, _, name = path.value.rpartition(".")
            holder = self.submodule(module, Constant(above))
            if all(isinstance(choice, Module) for choice in options(holder)):
                self.set_attribute(holder, Constant(name), value)
                return
        self.lose(value)
        self.open_below({self.holder_of(module).key})

    def item_set(self, holder: Module | Instance, name: Value, value: Value) -> None:
        if not isinstance(holder, Module):
            return
        numbered = isinstance(name, Constant) and str(name.value).isdecimal()
        if holder.key in self.below:
            if isinstance(name, Constant) and self.may_be_cast(value):
                self.objects.forget(str(name.value))
            if self.may_be_cast(value) and (numbered or not isinstance(name, Constant)):
                self.open_below({self.holder_of(holder).key})
            return
        if holder.info is None and holder.items is None and not isinstance(name, Constant):
            self.cast_from_now(holder)  # a layer, of which a weight may be another
        elif numbered or holder.items is not None:
            self.put_item(holder, value)

    # -- one after the other

    def all_alike(self, value: Module | Instance) -> Sequence[Module | Instance]:
        """The layers that a module stands for: itself alone, unless a loop was given it for many."""
        return self.alike.get(value.key, (value,))

    def modules_of(self, module: Module, method: str) -> Value:
        """What `module.modules()`, `children()` and their like give: each, where all of them are known."""
        named = method.startswith("named_")
        source = f"torch.nn.Module.{method}"
        pairs: list[tuple[Value, Module]] = []
        if method.endswith("children"):
            known = self.children(module) is not None
            pairs += self.named_children(module) if known else ()
        else:
            family = self.family(module)
            known = family is not None
            pairs += [(UNKNOWN, one) for one in self.one_of_each(family or {})]
        one = self.some_of(module)
        item = Items((UNKNOWN, one)) if named else one
        found = [Items(pair) if named else pair[1] for pair in pairs]
        return Each(item, source, module.key, tuple(found)) if known else Iteration(item, source, module.key)

    def named_children(self, module: Module) -> list[tuple[Value, Module]]:
        """The modules that are a module's attributes or items, with their names where each has one."""
        found: list[tuple[Value, Module]] = []
        numbered = self.objects.get(module.key, ITEMS) is None
        for index, item in enumerate(module.items or ()):
            numbered = numbered and isinstance(item, Module)
            found += [(Constant(str(index)) if numbered else UNKNOWN, child) for child in _modules(item)]
        for name, value in self.objects.of(module.key).items():
            known = name not in (ITEMS, LAYER)
            found += [(Constant(name) if known else UNKNOWN, child) for child in _modules(value)]
        return found

    def one_of_each(self, family: dict[Key, Module]) -> list[Module]:
        """All modules of a family; of layers of torch that are alike, one that stands for them."""
        groups: dict[object, list[Module]] = {}
        for key, one in family.items():
            plain = one.info is None and not one.items and not self.objects.of(key) and key not in self.objects.open
            kind: object = (one.name, self.cast_of(key, one.dtypes)) if plain else key
            groups.setdefault(kind, []).append(one)
        found: list[Module] = []
        for group in groups.values():
            if len(group) == 1:
                found += group
                continue
            key = f"{group[0].key}&{len(group)}"
            if self.alike.get(key) != tuple(group):
                self.alike[key] = tuple(group)
                self.objects.changed = True
            found.append(replace(group[0], key=key))
        return found


def _modules(value: Value) -> list[Module]:
    inner = value.item if isinstance(value, Iteration) else value
    return [choice for choice in options(inner) if isinstance(choice, Module)]
