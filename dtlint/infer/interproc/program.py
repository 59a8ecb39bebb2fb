"""The program as a whole: its modules, run when something in them is first asked for; its classes and decorators."""

from __future__ import annotations

import ast
import builtins
import contextlib
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments, Context, Frame, NeverReturns
from dtlint.infer.domain.lattice import join_all
from dtlint.infer.domain.values import (
    TOP,
    Address,
    Bound,
    Const,
    External,
    Function,
    Generator,
    Imported,
    Many,
    Mapping,
    Namespace,
    Number,
    Partial,
    ProjectClass,
    Ref,
    Region,
    Tuple,
    Value,
    choices,
    present,
)
from dtlint.infer.interproc import fields, metaclasses
from dtlint.infer.interproc.classes import ClassDefinition, linearised
from dtlint.infer.interproc.functions import FunctionDefinition, FunctionNode
from dtlint.infer.models import external_calls, instances, scaling
from dtlint.infer.models.amp import IN_REGION
from dtlint.infer.models.registry import PLAIN_PARTS, canonical
from dtlint.infer.semantics.attributes import class_attribute
from dtlint.infer.semantics.branches import alternatives
from dtlint.infer.semantics.names import OUTER
from dtlint.infer.semantics.relocation import addresses_in
from dtlint.infer.state import CONTENT, Footprint, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from dtlint.infer.interproc.calls import Calls
    from dtlint.infer.interproc.project import ModuleInfo, Project

__all__ = ["Program"]

_MOST_LISTED = 12
"""Items of a sequence that are told apart."""
_BUILTINS = frozenset(vars(builtins))
_LIST_KINDS = frozenset({"builtins.list", "builtins.set", "builtins.dict", "collections.deque"})


class Program:
    """The modules of a program, and what is defined in them.

    Args:
        project: finds and parses modules.
        store: the heap, in which each module's variables are an object.
        calls: follows calls.
    """

    def __init__(self, project: Project, store: Store, calls: Calls) -> None:
        self.project = project
        self.store = store
        self.calls = calls
        self._functions: dict[FunctionNode, FunctionDefinition] = {}
        self._running: set[str] = set()
        self._defining: dict[Address, ProjectClass] = {}
        self._setters: dict[tuple[Address, str], Function] = {}
        self.opened: set[str] = set()
        """The modules of which nothing is claimed: see `context.ModulesAndClasses`."""
        self.doubted: set[tuple[Address, bool]] = set()
        """The objects that what is not known may call, and whether it may call all of their methods: see `doubts`."""
        self._resolving: set[tuple[str, str]] = set()
        self.options: dict[str, dict[Value, None]] = {}
        """The options that were parsed, with constants that each may be instead of what it is by default."""

    # -- modules ---------------------------------------------------------------------------------------------------------

    def address_of(self, module: ModuleInfo) -> Address:
        """Where a module's variables are."""
        return self.store.address(None, module.name, "module")

    def module(self, ctx: Context, name: str) -> ModuleInfo | None:
        """A module that is read as source, its body run; None for others."""
        info = self.project.module(name)
        if info is None or info.run:
            return info
        package = name.rpartition(".")[0]
        if package and not self.project.is_own(package) and self.project.calls_at_top(package):
            self.module(ctx, package)  # importing it runs that first, which fills its tables
        if not info.run:
            self.run(ctx, info)
        return info

    def run(self, ctx: Context, info: ModuleInfo) -> None:
        """Run a module's body, once. What it does lasts, in whatever branch it was asked for."""
        info.run = True
        store = ctx.store
        saved = store.trail, store.footprints, ctx.frame, store.watches
        store.trail, store.footprints, store.watches = [], [Footprint()], []
        address = self.address_of(info)
        self.calls.asked.append(set())
        if ctx.recorder is not None:
            ctx.recorder.module_begins(info)
        try:
            store.allocate(address)
            store.overwrite(address, "__name__", Const(info.name))
            if info.path is not None:
                store.overwrite(address, "__file__", Const(str(info.path)))
            ctx.frame = Frame(address, None, info)
            with contextlib.nullcontext() if self.project.runs_imports else self.calls.apart():
                ctx.semantics.execute(ctx, info.tree.body)
        finally:
            store.trail, store.footprints, ctx.frame, store.watches = saved
            info.rests_on |= self.calls.asked.pop()
            if ctx.recorder is not None:
                ctx.recorder.module_ends()
        store.frozen.add(address)

    def run_main(self, ctx: Context, info: ModuleInfo) -> None:
        """Run the program itself, from here."""
        info.run = True
        address = self.address_of(info)
        ctx.store.allocate(address)
        ctx.store.overwrite(address, "__name__", Const("__main__"))
        if info.path is not None:
            ctx.store.overwrite(address, "__file__", Const(str(info.path)))
        ctx.frame = Frame(address, None, info)
        ctx.semantics.execute(ctx, info.tree.body)

    def global_of(self, ctx: Context, module: ModuleInfo, name: str) -> Value | None:
        """The value of a name that is no local one: the module's, or a builtin."""
        self.calls.asked[-1].add(module)
        address = self.address_of(module)
        found = ctx.store.read(address, name)
        known = None if found is None else present(found)
        if known is None and not module.run and ctx.frame.address is not address:
            self.run(ctx, module)
            return self.global_of(ctx, module, name)
        if isinstance(known, Imported):
            known = self.imported(ctx, known)
            self.settle(ctx, address, name, known)
        if known is not None:
            return known
        for star in reversed(module.stars):
            if self.project.brings(star, name):
                return self.imported(ctx, Imported(star, name))
        if name == "__name__":
            return Const(module.name)
        if name in _BUILTINS:
            return External(f"builtins.{name}")
        return None

    def settle(self, ctx: Context, address: Address, name: str, value: Value) -> None:
        """An import was resolved: that is no change of the state."""
        ctx.store.settle(address, name, value)

    def set_global(self, ctx: Context, module: ModuleInfo, name: str, value: Value) -> None:
        """A function binds a global name."""
        address = self.address_of(module)
        ctx.store.unfreeze(address)
        ctx.store.blend(address, name, value) if ctx.frame.function is not None else ctx.store.overwrite(
            address, name, value
        )

    def set_member(self, ctx: Context, module: str, name: str, value: Value) -> None:
        """`module.name = value`."""
        info = self.module(ctx, module)
        if info is not None:
            self.set_global(ctx, info, name, value)

    def set_external(self, ctx: Context, owner: str, name: str, value: Value) -> None:
        """`torch.backends.cuda.matmul.allow_tf32 = True`, and patches of libraries, which are not followed."""

    def imported(self, ctx: Context, value: Imported) -> Value:
        """What an imported name stands for."""
        key = value.module, value.name
        if key in self._resolving:  # `from . import name` of a package: the module in it
            name = f"{value.module}.{value.name}"
            return TOP if self.project.locate(name) is None else Namespace(name)
        self.module(ctx, value.module)  # what its body asks for may be this name
        self._resolving.add(key)
        try:
            return self.imported_member(ctx, value.module, value.name)
        finally:
            self._resolving.discard(key)

    def imported_member(self, ctx: Context, module: str, name: str) -> Value:
        """`module.name`, of a module that is read as source."""
        info = self.module(ctx, module)
        if info is None:
            return External(canonical(f"{module}.{name}"))
        found = self.global_of(ctx, info, name)
        if found is not None and not (isinstance(found, External) and found.name == f"builtins.{name}"):
            return found
        if self.project.locate(f"{module}.{name}") is not None:
            return Namespace(f"{module}.{name}")
        getter = ctx.store.read(self.address_of(info), "__getattr__")
        if isinstance(getter, Function):
            try:
                return ctx.semantics.call(ctx, getter, Arguments([Const(name)], {}, True, getter.definition.node))
            except NeverReturns:
                return TOP
        return TOP

    def arrive(self, ctx: Context, name: str) -> None:
        """An import statement names a module: the program's own modules run then, with the packages around them, for what
        they do to others (registries). Those of installed packages run when something in them is asked for."""
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            module = ".".join(parts[:count])
            if self.project.runs_on_import(module):
                self.module(ctx, module)

    def named(self, ctx: Context, name: str) -> Value:
        """What `import name` binds."""
        return Namespace(name) if self.project.locate(name) is not None else External(canonical(name))

    def member(self, ctx: Context, module: str, name: str) -> Value:
        """What `from module import name` binds."""
        if self.project.locate(module) is None:
            if f"{module}.{name}" in PLAIN_PARTS:
                return self.named(ctx, f"{module}.{name}")
            package = module.partition(".")[0]
            if self.project.locate(package) is not None and package != module:
                return TOP
            return _external_member(module, name)
        return Imported(module, name)

    def absolute(self, module: ModuleInfo, level: int, name: str | None) -> str:
        """The absolute name of what `from ..module import` names."""
        return self.project.absolute(module, level, name)

    def import_star(self, ctx: Context, source: str) -> None:
        """`from source import *`."""
        if self.project.locate(source) is not None or source in _STARS:
            ctx.frame.module.stars.append(source)

    def is_there(self, module: ModuleInfo, node: ast.Import | ast.ImportFrom) -> bool:
        """Are all modules that a statement imports certainly there?"""
        if isinstance(node, ast.Import):
            return all(self.project.present(alias.name) for alias in node.names)
        if node.level:
            return self.project.locate(self.absolute(module, node.level, node.module)) is not None
        return bool(node.module) and self.project.present(node.module or "")

    def is_installed(self, name: str) -> bool | None:
        """Is a module there for the program to import? None where that is not known."""
        if self.project.present(name):
            return True if "." not in name else None
        return False if self.project.absent(name) else None

    def is_missing(self, module: ModuleInfo, node: ast.Import | ast.ImportFrom) -> bool:
        """Is a module that a statement imports certainly not there?"""
        if isinstance(node, ast.Import):
            return any(self.project.absent(alias.name) for alias in node.names)
        return not node.level and self.project.absent(node.module or "")

    # -- functions and classes -------------------------------------------------------------------------------------------

    def function(self, module: ModuleInfo, node: FunctionNode, owner: ProjectClass | None) -> FunctionDefinition:
        """The definition of a function: one object for each node."""
        known = self._functions.get(node)
        if known is None:
            known = self._functions[node] = FunctionDefinition(node, module, owner)
        return known

    def defined_function(self, node: FunctionNode) -> FunctionDefinition | None:
        """The function that a definition has made; None where that was not reached."""
        known = self._functions.get(node)
        return known if known is not None and known.defaults is not None else None

    def class_at(self, node: ast.ClassDef) -> ProjectClass | None:
        """The class that a definition outside of functions has made; None where that was not reached."""
        return self._defining.get(self.store.address(None, node, "class"))

    def class_under_definition(self, ctx: Context) -> ProjectClass | None:
        """The class whose body is being run."""
        return self._defining.get(ctx.frame.address)

    def define_class(self, ctx: Context, node: ast.ClassDef) -> Value:
        """Run a class's body; the class."""
        store, outer = ctx.store, ctx.frame
        namespace = store.address(outer.path, node, "class")
        definition = ClassDefinition(node, outer.module, namespace)
        known = self._defining.get(namespace)
        itself = known if known is not None else ProjectClass(f"{outer.module.name}.{node.name}", definition)
        definition = itself.definition
        definition.bases = tuple(ctx.semantics.evaluate(ctx, base) for base in node.bases)
        known_bases = [_as_base(base) for base in definition.bases]
        definition.opaque = (
            any(base is None for base in known_bases)
            or any(isinstance(base, ProjectClass) and base.definition.opaque for base in known_bases)
            or any(isinstance(base, External) and not instances.is_known_class(base.name) for base in known_bases)
        )
        definition.order = linearised(itself, [base for base in known_bases if base is not None])
        definition.metaclass = metaclasses.of(ctx, definition)
        definition.fields = fields.fields_of(node)
        definition.by_keyword = any(_says_keyword(one) for one in node.decorator_list)
        definition.made = _is_made(definition)
        definition.transforms = "dataclass_transform" in _decorator_names(node)
        self._defining[namespace] = itself
        store.allocate(namespace)
        around = outer.address if outer.address.kind == "frame" else outer.outer
        if around is not None:
            store.overwrite(namespace, OUTER, Ref(around))
        ctx.frame = Frame(namespace, outer.path, outer.module, None, store.mark(), outer=around)
        try:
            ctx.semantics.execute(ctx, node.body)
        finally:
            ctx.frame = outer
        if outer.function is None:
            store.frozen.add(namespace)
        return self._decorated_class(ctx, itself, node)

    def _decorated_class(self, ctx: Context, itself: ProjectClass, node: ast.ClassDef) -> Value:
        self._tell_bases(ctx, itself, node)
        metaclasses.initialise(ctx, itself)
        value: Value = itself
        for decorator in reversed(node.decorator_list):
            if isinstance(decorator, ast.Call) and _is_transform(ctx.semantics.evaluate(ctx, decorator.func)):
                itself.definition.made = itself.definition.loose = True
                continue
            called = ctx.semantics.evaluate(ctx, decorator)
            if _is_transform(called):  # PEP 681 says what it does
                itself.definition.made = itself.definition.loose = True
            elif isinstance(called, Function):
                result = _applied(ctx, called, value, decorator, run=self.project.runs_imports)
                value = result if isinstance(result, (ProjectClass, Function)) else value
        return value

    def _tell_bases(self, ctx: Context, itself: ProjectClass, node: ast.ClassDef) -> None:
        """Run `__init_subclass__` of the nearest base that has it."""
        for base in itself.definition.order[1:]:
            if isinstance(base, ProjectClass):
                hook = ctx.store.read(base.definition.namespace, "__init_subclass__")
                if isinstance(hook, Function):
                    bound = Function(hook.definition, hook.frame, itself)
                    keywords = {one.arg: ctx.semantics.evaluate(ctx, one.value) for one in node.keywords if one.arg}
                    with contextlib.suppress(NeverReturns):
                        ctx.semantics.call(ctx, bound, Arguments([], keywords, True, node))
                    break

    def decorated(self, ctx: Context, value: Value, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        """A function behind its decorators."""
        for decorator in reversed(node.decorator_list):
            if isinstance(decorator, ast.Attribute) and decorator.attr in ("setter", "getter", "deleter"):
                known = ctx.store.read(ctx.frame.address, node.name)
                if known is None:  # that of a base: `@Base.x.setter`
                    known = ctx.semantics.evaluate(ctx, decorator.value)
                if isinstance(value, Function) and decorator.attr == "setter":
                    self._setters[ctx.frame.address, node.name] = value
                return TOP if known is None else known
            called = ctx.semantics.evaluate(ctx, decorator)
            if isinstance(called, Function):
                value = _applied(ctx, called, value, decorator, run=self.project.runs_imports)
            elif isinstance(called, ProjectClass) and class_attribute(ctx, called.definition.order, "__get__"):
                value = ctx.semantics.call(ctx, called, Arguments([value], {}, True, decorator))
            elif isinstance(called, (External, Bound, Partial)):
                made = external_calls.decorated(ctx, called, value, decorator)
                value = value if made is None else made
            elif isinstance(called, Region) and isinstance(value, Function):
                value = Partial(IN_REGION, (called, value))
        return value

    def setter(self, cls: ProjectClass | None, name: str) -> Function | None:
        """The function that assigns a property; None for `cls`: one in whatever class."""
        if cls is None:
            return next((one for (_, field), one in self._setters.items() if field == name), None)
        for one in cls.definition.order:
            if isinstance(one, ProjectClass) and (one.definition.namespace, name) in self._setters:
                return self._setters[one.definition.namespace, name]
        return None

    def class_attribute(self, ctx: Context, order: Sequence[Value], name: str) -> Value | None:
        """What a name is in the first of some classes that has it."""
        return class_attribute(ctx, order, name)

    def is_instance(self, ctx: Context, value: Value, kind: Value) -> bool | None:
        """`isinstance(value, kind)`, where that can be told."""
        return instances.is_instance(ctx, value, kind)

    def match_args(self, ctx: Context, cls: Value) -> list[str] | None:
        """The attributes that positional patterns of a class are matched with."""
        return [one.name for one, _ in cls.definition.all_fields] if isinstance(cls, ProjectClass) else None

    def made_tuple(self, ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
        """A named tuple of a class."""
        return fields.made_tuple(ctx, cls, arguments)

    def named_tuple_class(
        self, ctx: Context, node: ast.AST, name: str, names: Sequence[str], defaults: Sequence[Value]
    ) -> Value:
        """The class that `collections.namedtuple` makes."""
        namespace = ctx.store.address(ctx.frame.path, node, "class")
        known = self._defining.get(namespace)
        if known is None:
            module = ctx.frame.module
            syntax = ast.ClassDef(name=name, bases=[], keywords=[], body=[], decorator_list=[])
            definition = ClassDefinition(syntax, module, namespace, (External("typing.NamedTuple"),))
            known = self._defining[namespace] = ProjectClass(f"{module.name}.{name}", definition)
            definition.order = (known, *definition.bases)
            definition.made, definition.fields = True, [fields.Field(each) for each in names]
        ctx.store.allocate(namespace)
        for each, value in zip(names[len(names) - len(defaults) :], defaults, strict=False):
            ctx.store.overwrite(namespace, each, value)
        return known

    # -- calls -----------------------------------------------------------------------------------------------------------

    def entered(self, ctx: Context, manager: Value) -> Value | None:
        """What `with manager as x` binds, for a context that changes no dtype."""
        return external_calls.entered(ctx, manager)

    def run_generator(self, ctx: Context, manager: Partial, on_yield: Callable[[Value], Value]) -> None:
        """Run the function of a context up to where it yields, the block there, and the rest."""
        function = manager.args[0]
        assert isinstance(function, Function)
        bound = dict(manager.keywords)
        self.calls.run(ctx, function, bound, function.definition.node, on_yield)

    def generated(self, ctx: Context, value: Generator, node: ast.AST) -> Value:
        """What a generator gives from here on. How far it gets is not known: what it does is done perhaps."""
        found: list[Value] = []

        def run() -> bool:
            found.append(self.calls.run(ctx, value.function, dict(value.bound), node))
            return True

        alternatives(ctx, [run, lambda: True])
        return found[0] if found else Tuple(())

    def iterated(self, ctx: Context, value: Ref, node: ast.AST) -> Value:
        """The items of an object: by its class's `__iter__`, or by `__getitem__`."""
        if isinstance(value.address.kind, str):
            return external_calls.iterated(ctx, value, node)
        method = ctx.semantics.attribute(ctx, value, "__iter__", node)
        if isinstance(method, (Function, Bound)):
            made = ctx.semantics.call(ctx, method, Arguments([], {}, True, node))
            return join_all(_following(ctx, one, node) for one in choices(made)) or Many(TOP)
        method = ctx.semantics.attribute(ctx, value, "__getitem__", node)
        if isinstance(method, Function):
            length = ctx.semantics.attribute(ctx, value, "__len__", node)
            count: Value = TOP
            if isinstance(length, Function):
                count = ctx.semantics.call(ctx, length, Arguments([], {}, True, node))
            if isinstance(count, Const) and isinstance(count.value, int) and count.value <= _MOST_LISTED:
                places: list[Value] = [Const(place) for place in range(count.value)]
                return Tuple(tuple(self._item(ctx, method, place, node) for place in places))
            return Many(self._item(ctx, method, Number(Category.INTEGER), node))
        return Many(TOP)

    def _item(self, ctx: Context, method: Function, place: Value, node: ast.AST) -> Value:
        return ctx.semantics.call(ctx, method, Arguments([place], {}, True, node))

    def escape(self, ctx: Context, values: Iterable[Value]) -> None:
        """Values reach code that is not seen: the containers reachable from them may hold anything then. Objects keep their
        attributes, and modules their dtypes: unseen code is taken not to change those."""
        store = ctx.store
        values = list(values)
        scaling.escaped(ctx, values)
        for value in values:
            for one in choices(value):
                if isinstance(one, Generator):
                    self.generated(ctx, one, one.function.definition.node)
        waiting = [address for value in values for address in addresses_in(value)]
        seen: set[Address] = set()
        while waiting:
            address = waiting.pop()
            if address in seen:
                continue
            seen.add(address)
            if address.kind not in _LIST_KINDS:
                continue
            content = store.read(address, CONTENT)
            if content is None:
                continue
            waiting += addresses_in(content)
            if isinstance(content, Mapping):
                store.overwrite(address, CONTENT, Mapping((), TOP))
            elif content != Many(TOP):
                store.overwrite(address, CONTENT, Many(TOP))


_STARS = frozenset({"torch", "torch.nn", "torch.nn.functional", "math", "numpy", "typing"})


def _external_member(module: str, name: str) -> Value:
    """`from torch import float16`, `from math import pi`: constants are told, other things go by their names."""
    from dtlint.infer.semantics.attributes import _of_external

    return _of_external(External(module), name)


def _applied(ctx: Context, decorator: Function, value: Value, node: ast.expr, *, run: bool) -> Value:
    """What a decorator makes of a function or a class. Where modules are not run for what they do to others, one that gives
    back what it is given does nothing else that matters."""
    if not run and decorator.receiver is None and decorator.definition.gives_first:
        return value
    try:
        return ctx.semantics.call(ctx, decorator, Arguments([value], {}, True, node))
    except NeverReturns:
        return TOP


def _as_base(value: Value) -> ProjectClass | External | None:
    """A base class; None where it is not known to be one."""
    found = [one for one in choices(value) if isinstance(one, (ProjectClass, External))]
    return found[0] if len(found) == 1 == len(choices(value)) else None


_FIELD_MAKERS = frozenset({"dataclass", "define", "frozen", "mutable", "attrs", "s"})
_FIELD_BASES = frozenset(
    {"typing.NamedTuple", "pydantic.BaseModel", "typing.TypedDict", "typing_extensions.TypedDict", "msgspec.Struct"}
)


def _is_made(definition: ClassDefinition) -> bool:
    """Do its fields decide its `__init__`?"""
    if not _FIELD_MAKERS.isdisjoint(_decorator_names(definition.node)):
        return True
    return bool(any(isinstance(base, External) and base.name in _FIELD_BASES for base in definition.order))


def _decorator_names(node: ast.ClassDef) -> list[str]:
    """The last names of a class's decorators."""
    called = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return [one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called]


def _says_keyword(decorator: ast.expr) -> bool:
    """`@dataclass(kw_only=True)`."""
    return isinstance(decorator, ast.Call) and any(
        one.arg == "kw_only" and isinstance(one.value, ast.Constant) and one.value.value is True
        for one in decorator.keywords
    )


def _is_transform(value: Value) -> bool:
    """Is it a decorator that makes classes of their fields, by PEP 681?"""
    return isinstance(value, Function) and "dataclass_transform" in value.definition.decorators


def _following(ctx: Context, iterator: Value, node: ast.AST) -> Value:
    """What an iterator gives. One of the project has `__next__`, and is not asked for an iterator again."""
    if not isinstance(iterator, Ref) or isinstance(iterator.address.kind, str):
        return ctx.semantics.items(ctx, iterator, node)
    following = ctx.semantics.attribute(ctx, iterator, "__next__", node)
    if isinstance(following, Function):
        return Many(ctx.semantics.call(ctx, following, Arguments([], {}, True, node)))
    return Many(TOP)
