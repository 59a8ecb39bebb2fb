"""What a semantic function and a model are given: the state, where the program is, and the parts to ask.

The functions that a model may need, to call a callable or to look an attribute up, are in rooms above; they are handed
down here, so that no room imports one above it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import NONE, TOP, Const, Device, Ref, Region, Value, may_be_absent, present
from dtlint.infer.state import AMBIENT

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dtlint.infer.domain.values import Address, CallPath, ProjectClass
    from dtlint.infer.state import Difference, Store

__all__ = [
    "Arguments",
    "Context",
    "Frame",
    "NeverReturns",
    "Recorder",
    "Semantics",
    "TooLong",
    "Unfit",
    "region_in_view",
]


class TooLong(Exception):
    """The reading has taken as many steps as it may."""


class NeverReturns(Exception):
    """The expression under evaluation never gives a value: it raises, or calls what does."""


class Unfit(NeverReturns):
    """As far as is seen it raises for what it is given: there is no such item, None has no such attribute, arguments do not
    fit. Programs are taken to run, so that more is there than was seen, unless this is what a `try` around it is for."""


@dataclass(slots=True)
class Arguments:
    """The arguments of a call.

    Attributes:
        args: the positional ones, `*sequences` of known length spread out.
        keywords: those by name, `**mappings` of known keys spread out.
        complete: are these all? Not where a sequence or a mapping of unknown length was spread.
        node: the call, for places and allocation sites.
        positional: are these all of the positional ones, though others may be given by name?
        perhaps: the names of those that a spread mapping may not have.
    """

    args: Sequence[Value]
    keywords: Mapping[str, Value]
    complete: bool
    node: Any
    positional: bool = False
    perhaps: frozenset[str] = frozenset()

    def get(self, position: int | None, name: str) -> Value | None:
        """The argument at a position or by a name; None where it is not given, or is not known to be."""
        if position is not None and position < len(self.args):
            return self.args[position]
        return self.keywords.get(name)

    def without_first(self) -> Arguments:
        """The others, behind the first positional one."""
        return replace(self, args=self.args[1:])

    def before(self, *values: Value) -> Arguments:
        """The same behind other positional ones: a receiver."""
        return replace(self, args=[*values, *self.args])


@dataclass(slots=True)
class Exits:
    """The states in which a loop's body is left, each as the difference from the loop's beginning.

    Attributes:
        inner: for each loop in the body the entry state that held for all its rounds, and the same of the loops in that: in
            the next round of this loop they begin there.
        times: how often the body is run, the loops around it included, where it is run once for each item.
    """

    mark: int
    breaks: list[Difference] = field(default_factory=list)
    continues: list[Difference] = field(default_factory=list)
    inner: dict[ast.AST, tuple[Difference, dict[ast.AST, Any]]] = field(default_factory=dict)
    times: int = 1


@dataclass(slots=True, eq=False)
class Frame:
    """One call of a function, or one run of a module or class body.

    Attributes:
        address: its variables, in the store.
        path: the calls under way, for allocation sites.
        module: the module whose text runs, an `interproc.project.ModuleInfo`.
        function: the definition that runs; None for a module or a class body.
        mark: the trail at its beginning.
        returns: the states at each `return`, and what is returned.
        loops: the loops under way, innermost last.
        yields: what a generator has given so far.
        on_yield: runs the block of a `with` where a generator's context yields.
        global_names, nonlocal_names: names that are declared so.
        trying: the `try` statements under way that handle exceptions.
        sequences: the `nn.Sequential`s that are being called, innermost last.
        undecided: the context's `undecided` where the call began.
        in_order: is what was yielded all that is yielded, each once, in this order?
    """

    address: Address
    path: CallPath | None
    module: Any
    function: Any = None
    mark: int = 0
    returns: list[tuple[Difference, Value]] = field(default_factory=list)
    loops: list[Exits] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    on_yield: Callable[[Value], Value] | None = None
    global_names: frozenset[str] = frozenset()
    nonlocal_names: frozenset[str] = frozenset()
    outer: Address | None = None
    """The variables around it, for closures."""
    trying: int = 0
    sequences: list[Address] = field(default_factory=list)
    undecided: int = 0
    in_order: bool = True

    def is_certain(self, undecided: int) -> bool:
        """Does what runs now run in each call, and once?"""
        left = self.trying or self.returns or any(loop.breaks or loop.continues for loop in self.loops)
        return undecided == self.undecided and not left


class Recorder:
    """Who is told what each expression was found to be. Who inherits is told of what it overrides alone."""

    def concerns(self, module: Any) -> bool:
        """Is what happens in a module recorded for its own sake, and not for that of a call alone?"""
        return True

    def expression(self, node: ast.expr, value: Value, frame: Frame) -> None:
        """An expression was evaluated, not for the first time perhaps."""

    def call(self, node: ast.AST, callee: Value, arguments: Arguments, result: Value | None, frame: Frame) -> None:
        """A call was evaluated; the result is None where it raises, whatever happens."""

    def evaluated(self, node: ast.AST, operands: tuple[Value, ...], result: Value, ctx: Context) -> None:
        """An operator, a subscript or an assignment was evaluated: see `facts.Evaluation`."""

    def module_begins(self, module: Any) -> None:
        """A module's body is going to be run, for whoever asks for something in it."""

    def module_ends(self) -> None:
        """The body has been run."""

    def operation(
        self,
        op: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        result: Value | None,
        error: str | None,
        ctx: Context,
    ) -> None:
        """One of torch's ops was evaluated at `ctx.site`; with an error: torch raises for all that the operands can be."""

    def refusals(self) -> int:
        """How many operations that raise were recorded so far."""
        return 0

    def withdraw(self, first: int, end: int) -> None:
        """Forget the refusals from one to another: they were met in what is not what is called there."""

    def event(self, kind: str, ctx: Context, *about: Value) -> None:
        """A protocol took a step at `ctx.site`: see `facts.Event`."""


class Semantics(Protocol):
    """What models and semantic functions ask of the rooms above them."""

    def tells(self) -> None:
        """Something was recorded here that is to be told of each call that leads here, with its own steps."""

    def evaluate(self, ctx: Context, node: ast.expr) -> Value:
        """The value of an expression."""

    def execute(self, ctx: Context, body: Sequence[ast.stmt]) -> bool:
        """Run statements; is their end reached?"""

    def call(self, ctx: Context, callee: Value, arguments: Arguments) -> Value:
        """The result of a call. Raises NeverReturns."""

    def construct(self, ctx: Context, cls: ProjectClass, arguments: Arguments) -> Value:
        """What `type.__call__(cls, ...)` gives. Raises NeverReturns."""

    def initialise(self, ctx: Context, made: Ref, cls: ProjectClass, arguments: Arguments) -> None:
        """Run what a new object's `__init__` does. Raises NeverReturns."""

    def perhaps(self, ctx: Context, run: Callable[[], None]) -> None:
        """Run something that may not run at all: what it changes may have changed."""

    def attribute(self, ctx: Context, value: Value, name: str, node: ast.AST) -> Value | None:
        """The value of an attribute; None where it is certain that there is none."""

    def own_attribute(self, ctx: Context, value: Ref, name: str, node: ast.AST) -> Value | None:
        """What `object.__getattribute__(value, name)` gives."""

    def assign_attribute(self, ctx: Context, value: Value, name: str, given: Value, node: ast.AST) -> None:
        """Bind an attribute."""

    def assign_own_attribute(self, ctx: Context, value: Ref, name: str, given: Value, node: ast.AST) -> None:
        """What `object.__setattr__(value, name, given)` does."""

    def subscript(self, ctx: Context, value: Value, index: Value, node: ast.AST) -> Value:
        """`value[index]`."""

    def items(self, ctx: Context, value: Value, node: ast.AST) -> Value:
        """What iterating over a value gives: a `Tuple` of known items, or `Many`."""

    def assign_item(self, ctx: Context, value: Value, index: Value, given: Value, node: ast.AST) -> None:
        """`value[index] = given`."""

    def truth(self, ctx: Context, value: Value) -> bool | None:
        """Is a value true? None where it can be either."""

    def binary(self, ctx: Context, operator: type[ast.operator], left: Value, right: Value, node: ast.AST) -> Value:
        """`left + right`, and the others."""

    def compare(self, ctx: Context, operator: type[ast.cmpop], left: Value, right: Value, node: ast.AST) -> Value:
        """`left < right`, and the others."""


class ModulesAndClasses(Protocol):
    """What is asked of the program as a whole: see `interproc.program.Program`."""

    project: Any
    """Finds the files of the program: an `interproc.project.Project`."""
    options: dict[str, dict[Value, None]]
    """The options of the program that were parsed, with constants that each may be instead of what it is by default."""
    opened: set[str]
    """The packages and modules in which anything may be called by what is not followed: nothing is claimed of what is there."""

    def global_of(self, ctx: Context, module: Any, name: str) -> Value | None:
        """The value of a global or builtin name."""

    def settle(self, ctx: Context, address: Address, name: str, value: Value) -> None:
        """An import was resolved."""

    def set_global(self, ctx: Context, module: Any, name: str, value: Value) -> None:
        """Bind a global name."""

    def set_member(self, ctx: Context, module: str, name: str, value: Value) -> None:
        """Bind an attribute of a module."""

    def set_external(self, ctx: Context, owner: str, name: str, value: Value) -> None:
        """Bind an attribute of what is not read as source."""

    def imported(self, ctx: Context, value: Any) -> Value:
        """What an imported name stands for."""

    def imported_member(self, ctx: Context, module: str, name: str) -> Value:
        """`module.name`."""

    def arrive(self, ctx: Context, name: str) -> None:
        """An import statement names a module."""

    def address_of(self, module: Any) -> Address:
        """Where a module's variables are."""

    def named(self, ctx: Context, name: str) -> Value:
        """What `import name` binds."""

    def member(self, ctx: Context, module: str, name: str) -> Value:
        """What `from module import name` binds."""

    def absolute(self, module: Any, level: int, name: str | None) -> str:
        """The absolute name of a module."""

    def import_star(self, ctx: Context, source: str) -> None:
        """`from source import *`."""

    def is_there(self, module: Any, node: ast.Import | ast.ImportFrom) -> bool:
        """Are all modules that a statement imports certainly there?"""

    def is_installed(self, name: str) -> bool | None:
        """Is a module there for the program to import? None where that is not known."""

    def is_missing(self, module: Any, node: ast.Import | ast.ImportFrom) -> bool:
        """Is a module that a statement imports certainly not there?"""

    def function(self, module: Any, node: Any, owner: Any) -> Any:
        """The definition of a function."""

    def class_under_definition(self, ctx: Context) -> Any:
        """The class whose body is being run."""

    def define_class(self, ctx: Context, node: ast.ClassDef) -> Value:
        """The class that a definition makes."""

    def decorated(self, ctx: Context, value: Value, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Value:
        """A function behind its decorators."""

    def setter(self, cls: Any, name: str) -> Any:
        """The function that assigns a property; None for `cls`: one in whatever class."""

    def class_attribute(self, ctx: Context, order: Sequence[Value], name: str) -> Value | None:
        """What a name is in the first of some classes that has it."""

    def is_instance(self, ctx: Context, value: Value, kind: Value) -> bool | None:
        """`isinstance(value, kind)`."""

    def match_args(self, ctx: Context, cls: Value) -> list[str] | None:
        """The attributes that positional patterns of a class are matched with."""

    def made_tuple(self, ctx: Context, cls: Any, arguments: Arguments) -> Value:
        """A named tuple of a class."""

    def named_tuple_class(
        self, ctx: Context, node: Any, name: str, names: Sequence[str], defaults: Sequence[Value]
    ) -> Value:
        """The class that `collections.namedtuple` makes."""

    def entered(self, ctx: Context, manager: Value) -> Value | None:
        """What `with manager as x` binds."""

    def run_generator(self, ctx: Context, manager: Any, on_yield: Callable[[Value], Value]) -> None:
        """Run the function of a context around a block."""

    def generated(self, ctx: Context, value: Any, node: ast.AST) -> Value:
        """What a generator gives from here on."""

    def iterated(self, ctx: Context, value: Any, node: ast.AST) -> Value:
        """The items of an object."""

    def escape(self, ctx: Context, values: Iterable[Value]) -> None:
        """Values reach code that is not seen."""

    def module(self, ctx: Context, name: str) -> Any:
        """A module that is read as source, its body run."""

    def run_main(self, ctx: Context, info: Any) -> None:
        """Run the program itself."""


@dataclass(slots=True, eq=False)
class Context:
    """Where the evaluation is, and whom to ask.

    Attributes:
        store: the heap, at the point that is being evaluated.
        frame: the innermost call.
        semantics: how expressions, statements and calls are evaluated.
        modules: finds modules and looks names up in them.
        recorder: is told of each expression.
        steps_left: statements that may still be run before the reading is given up.
        undecided: the branches and loops under way of which it is not known whether, or how often, they run.
        notes: what is worth saying of the reading as a whole: a budget that ran out.
    """

    store: Store
    frame: Frame
    semantics: Semantics
    modules: ModulesAndClasses
    recorder: Recorder | None = None
    notes: list[str] = field(default_factory=list)
    steps_left: int = 1_000_000
    undecided: int = 0
    site: ast.AST | None = None
    """The call or the operator whose operands were evaluated last: what a model speaks of."""

    def event(self, kind: str, *about: Value) -> None:
        """Tell that a protocol took a step here."""
        if self.recorder is not None:
            self.recorder.event(kind, self, *about)

    def allocate(self, site: object, kind: Any, content: Value | None = None) -> Ref:
        """A new object, made at a site of the running call."""
        address = self.store.address(self.frame.path, site, kind)
        return Ref(self.store.allocate(address, content))

    def ambient(self, name: str) -> Value:
        """What holds everywhere, as "region"."""
        known = self.store.read(AMBIENT, name)
        if known is not None and not may_be_absent(known):
            return known
        found, usual = None if known is None else present(known), _USUAL.get(name, TOP)
        return usual if found is None else join(found, usual)  # set on some paths, and put back

    def set_ambient(self, name: str, value: Value) -> None:
        """Change what holds everywhere."""
        self.store.overwrite(AMBIENT, name, value)


def region_in_view(ctx: Context) -> Value:
    """The autocast region in force, the innermost where a caller may have opened others: a `Region`, `Const(None)` outside
    of any, TOP where the caller decides."""
    region = ctx.ambient("region")
    if isinstance(region, Region) and region != _SOME_REGION:
        return region
    opened = ctx.ambient("opened")
    return opened if isinstance(opened, Region) and region != NONE else region


_SOME_REGION = Region(None, None, None)


_USUAL: dict[str, Value] = {
    "region": Const(None),
    "opened": Const(None),
    "default dtype": Const("float32"),
    "default device": Device("cpu"),
    "options": Const(None),
}
"""What holds before the program says otherwise: no region (nor one that is opened in view), the default dtype float32, tensors made on the CPU."""
