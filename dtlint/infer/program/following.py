"""Following imports: a program through its modules, each run once in a round, when something in it is asked for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.events import Flow
from dtlint.infer.interpreter import Interpreter
from dtlint.infer.names import path_of
from dtlint.infer.program.objects import one_list
from dtlint.infer.program_state import State
from dtlint.infer.values import (
    UNKNOWN,
    External,
    Imported,
    Namespace,
    Value,
    identities,
)

if TYPE_CHECKING:
    from dtlint.infer.interproc.project import ModuleInfo, Project


__all__ = ["Following"]


class Following(Interpreter):
    """An interpreter that reads more than one module."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(main.tree, {})
        self.project, self.main, self.module = project, main, main
        self.loops_open = 0
        """Loops around the place that is read, in the function that is read."""
        self.catching = 0
        """Statements around the place that is read that catch every exception, or suppress one."""
        self.shared: dict[int, dict[tuple[str, str], dict[str, Value]]] = {}
        """Lists and dicts of other modules that were asked for, by their identity: by the module and the name there, the names
        of the module."""
        self.in_order = True
        """Is what is read run just then? A module that is run when it is first asked for was run where it is imported."""

    def run_module(self, module: ModuleInfo, in_order: bool = False) -> None:
        """Run a module's body, unless it was run, or is running.

        Args:
            in_order: is this where it is imported, and not where something in it is first asked for?
        """
        if module.run:
            return
        module.run = True
        outer_order, self.in_order = self.in_order, in_order and self.in_order
        saved = (self.flow, self.outer, self.globals, self.module, self.alive, self.exits, self.tree, self.muted)
        saved_loops, self.loops_open = self.loops_open, 0
        thrown, self.thrown = self.thrown, None
        publishing, self.publishing = self.publishing, True
        state = State(casts=self.flow.state.casts)
        self.flow = Flow(state, None, self.regions_at_start(), [], [], module.tree.body, ast.Pass(), module.tree)
        self.outer, self.globals, self.module, self.alive, self.exits = (), module.names, module, True, []
        self.tree = module.tree
        self.block(module.tree.body)
        casts = self.flow.state.casts
        self.flow, self.outer, self.globals, self.module, self.alive, self.exits, self.tree, self.muted = saved
        self.loops_open, self.in_order, self.publishing = saved_loops, outer_order, publishing
        self.thrown = thrown
        if module is not self.main:
            self.flow.state.casts = casts

    def import_(self, node: ast.Import) -> None:
        for alias in node.names:
            root = alias.name.partition(".")[0]
            if self.fails(root):
                self.alive = False  # ImportError
                return
            if self.project.locate(root) is None:
                super().import_(ast.Import([alias]))
            else:
                self.run_where_imported(alias.name)
                self.bind_name(alias.asname or root, Namespace(alias.name if alias.asname else root))

    def import_from(self, node: ast.ImportFrom) -> None:
        source = self.project.absolute(self.module, node.level, node.module)
        if not node.level and self.fails(source):
            self.alive = False  # ImportError
            return
        if self.project.locate(source) is None:
            super().import_from(ast.ImportFrom(source, node.names, 0))
            return
        self.run_where_imported(source)
        for alias in node.names:
            if alias.name == "*":
                if source not in self.module.stars:
                    self.module.stars.append(source)
            else:
                self.bind_name(alias.asname or alias.name, Imported(source, alias.name))

    def fails(self, package: str) -> bool:
        """Does the program go another way because this package is not there? Where nothing in view sees to that, it dies
        here and now; but it is read by somebody who means to run it where the package is."""
        return bool(self.flow.conditions or self.catching) and self.project.absent(package)

    def watches(self) -> bool:
        return True

    def tried(self, node: ast.Try, start: State) -> State | None:
        catches = any(handler.type is None for handler in node.handlers)  # others stand among the conditions
        self.catching += catches
        end = super().tried(node, start)
        self.catching -= catches
        return end

    def with_(self, node: ast.With | ast.AsyncWith) -> None:
        made = (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))
        catches = any((path_of(call.func) or "").rpartition(".")[2] == "suppress" for call in made)
        self.catching += catches
        super().with_(node)
        self.catching -= catches

    def run_where_imported(self, name: str) -> None:
        """Run a module now, and those that it is in, where it says something whose order matters."""
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            part = ".".join(parts[:count])
            ordered = self.project.sets_default(part) or self.project.is_own(part)
            module = self.project.module(part) if ordered else None
            if module is not None:
                self.run_module(module, in_order=True)

    def exported(self, module: str, name: str, asking: tuple[str, ...] = ()) -> Value:
        """What a module has under a name: bound in it, a module inside it, or brought by `from x import *`."""
        info = self.project.module(module)
        if info is None or module in asking:
            return UNKNOWN
        self.run_module(info)
        value = info.names.get(name)
        if value is not None and value != Imported(module, name):  # `from . import x` in a package names its module
            for one in identities(value):
                self.shared.setdefault(one, {})[module, name] = info.names
            return value
        if self.project.locate(f"{module}.{name}") is not None:
            return Namespace(f"{module}.{name}")
        for star in info.stars:
            if self.project.brings(star, name):
                value = self.exported(star, name, (*asking, module))
                if value != UNKNOWN:
                    return value
        return UNKNOWN

    def resolved(self, value: Value) -> Value:
        """The thing itself behind an imported name."""
        seen: set[tuple[str, str]] = set()
        while isinstance(value, Imported):
            if (value.module, value.name) in seen:
                return UNKNOWN
            seen.add((value.module, value.name))
            value = self.exported(value.module, value.name)
        return one_list(value)

    def kept_aside(self, value: Value) -> Value:
        """What is held where casts do not look."""
        return value

    def name(self, node: ast.Name) -> Value:
        value = self.resolved(super().name(node))
        if node.id not in self.flow.state.names:
            value = self.kept_aside(value)
        if (isinstance(value, External) and value.name.startswith("builtins.")) or value == UNKNOWN:
            for star in reversed(self.module.stars):  # the last has the last word
                if self.project.brings(star, node.id):
                    found = self.resolved(Imported(star, node.id))
                    if found != UNKNOWN:
                        return found
        return value

    def attribute(self, node: ast.Attribute) -> Value:
        value = super().attribute(node)
        return one_list(value)
