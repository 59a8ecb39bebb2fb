"""The graphs that torch.compile captures: which operators they stand for, with which dtypes, at which lines.

A graph is run once on fake tensors as it is compiled, forward and backward, and its operators are learned as a traced
operator is. Each run of the compiled code then counts them. Values are not looked at.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import re
import sys
from collections import Counter
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, fx
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.flow import tensors_in
from dtlint.trace.ops import Op
from dtlint.trace.origins import Origins
from dtlint.trace.schema import NO_FILE
from dtlint.trace.signature import LOW, Signature, is_special, learn, tensors_of
from dtlint.trace.site import CALL, CAST_METHODS, PLAIN, Site, Source, is_own, source_of
from dtlint.trace.stack import put_back, take_off

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from dtlint.trace.mode import Tracer
    from dtlint.trace.patches import Patches

__all__ = ["Captured", "can_capture"]

COMPILERS = ("_TorchCompileInductorWrapper", "_TorchCompileWrapper")
"""torch's classes whose call hands a captured graph to a backend: inductor, and any other."""

FRAME = re.compile(
    r'  File "(?P<file>[^\n]*)", line (?P<line>\d+), in [^\n]*\n(?:    (?P<text>[^\n]*)\n)?(?P<marks> *[~^]+)?'
)
"""One frame of a node's stack trace; the marks, under the text, are there from Python 3.11 on."""

OWNER = re.compile(r"^[LG]\['[^']*'\](\[\d+\])*\.?|^self\.?")
"""What stands before a module's path in a node's stack of modules, for the variable that holds the model."""

ITEM = re.compile(r"\._modules\['([^']*)'\]")

_next = torch._C._autograd._get_sequence_nr
_node = torch._C._current_autograd_node


def can_capture() -> bool:
    """Does this torch have what capturing rests on?"""
    if not hasattr(TorchDispatchMode, "ignore_compile_internals"):  # torch 2.8
        return False
    return all(hasattr(torch, name) for name in COMPILERS)


class GraphSite(Site):
    """A line of the source that an operator of a graph stands for."""

    __slots__ = ("_asked", "_called", "_source")

    captured = True

    def __init__(
        self, file: str, source: Source, module: str, called: str, asked: bool, caller: tuple[str, int]
    ) -> None:
        self.code = self.inner = compile("", file, "exec")
        self.lasti = self.inner_lasti = source.column or 0
        self.file, self.line, self.inner_line = file, source.line, source.line
        self.module, self.kept = module, True
        self.caller, self.caller_line = caller
        self.signatures, self.forward, self.backward = {}, {}, {}
        self._source, self._called, self._asked = source, called, asked

    def source(self) -> Source:
        """As the graph has it."""
        return self._source

    @property
    def casts(self) -> bool:
        """Is the node a cast that the program wrote?"""
        return self._asked

    @property
    def asked(self) -> bool:
        """As `casts`: a graph holds nothing but what the program called."""
        return self._asked

    @property
    def called(self) -> str:
        """The function or method of the node."""
        return self._called

    @property
    def reads_the_loss(self) -> bool:
        """A backward begins outside of graphs."""
        return False


class Graph:
    """One captured graph: what each run of it counts."""

    def __init__(self) -> None:
        self.forward: Counter[Signature] = Counter()
        self.backward: Counter[Signature] = Counter()
        self.moved: Counter[Signature] = Counter()
        """Bytes that the casts move in one run."""
        self.outputs: list[Signature | None] = []
        """Which operator made each result."""
        self.rounded = 0
        """Half-precision results that only operators read which a compiler may fuse with theirs."""


class Captured:
    """The graphs of a run. Begins with the first function that is compiled."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self._heard: Any = None
        """What tells of the compiler, once it was asked to."""
        self.calls = 0
        """Runs of compiled graphs."""
        self.unread: Counter[str] = Counter()
        """Runs of graphs whose operators are not known, by the reason."""
        self.rounded = 0
        """Results that may not be rounded to half precision, since they are read within a fused kernel alone."""
        self.sites: dict[tuple[Any, ...], GraphSite] = {}
        self.inside = GraphSite(NO_FILE, Source(1, None, None, None, ""), "", "", False, ("", 0))
        self.inside.kept = False
        """Stands for the autograd nodes that compiled code makes: their backward is known from the graph."""
        self.maker = Signature(self.inside, Op(torch.ops.aten.alias.default), backward=True)
        """Stands for the operators of such a backward, which hand their results on."""

    def install(self, patches: Patches) -> None:
        """Hear of every graph that is compiled from now on."""
        for name in COMPILERS:
            kind = getattr(torch, name)
            patches.set(kind, "__call__", self._compiling(kind.__call__))

    def remove(self) -> None:
        """Hear of the compiler no more."""
        if self._heard is not None:
            self._heard.remove_start_callback(self._begins)
            self._heard.remove_end_callback(self._ends)
            self._heard = None

    def _hear(self) -> None:
        """A backward is compiled as it first runs, which no call of the compiler shows."""
        from torch._dynamo import callback

        handler: Any = getattr(callback, "callback_handler", None)
        if self._heard is None and hasattr(handler, "remove_end_callback"):
            handler.register_start_callback(self._begins)
            handler.register_end_callback(self._ends)
            self._heard = handler

    def _begins(self, *_: Any) -> None:
        self._apart(1)

    def _ends(self, *_: Any) -> None:
        self._apart(-1)

    def _apart(self, more: int) -> None:
        for counts in (self.tracer.elsewhere, self.tracer.children):
            counts.apart += more

    def keep_out(self) -> None:
        """Let torch compile none of the tracer's own frames, where the program runs between two graphs."""
        self._hear()
        from torch._C._dynamo import eval_frame

        skip = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
        tracer = self.tracer
        for function in (type(tracer).__torch_dispatch__, *tracer.steps.entries, *tracer.elsewhere.entries):
            if hasattr(function, "__code__"):
                eval_frame.set_code_exec_strategy(function.__code__, skip)

    def _compiling(self, compile: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(compile)
        def compiling(backend: Any, graph: fx.GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            read = self._read(graph, fuses=getattr(backend, "compiler_name", "") == "inductor")
            with self.compiler_at_work():
                return self._running(compile(backend, graph, inputs, *args, **kwargs), read)

        return compiling

    @contextlib.contextmanager
    def compiler_at_work(self) -> Iterator[None]:
        """Threads and processes that begin meanwhile are the compiler's, and none of the program's."""
        self._apart(1)
        try:
            yield
        finally:
            self._apart(-1)

    def _read(self, graph: fx.GraphModule, fuses: bool) -> Graph | str:
        """What a graph holds; or why that is not known."""
        try:
            return _Reading(self, graph, fuses).graph
        except Exception as error:  # whatever is wrong here, the program goes on as if it were not traced
            return type(error).__name__

    def _running(self, compiled: Callable[..., Any], graph: Graph | str) -> Callable[..., Any]:
        tracer = self.tracer

        @functools.wraps(compiled)
        def running(*args: Any) -> Any:
            below = take_off(tracer) if get_ident() == tracer.thread else None
            if below is None:
                return compiled(*args)
            given = [(x, x._version) for x in tensors_in(args) if not x.is_inference()]
            before = _next()
            try:
                out = compiled(*args)
            finally:
                put_back(tracer, below)
            try:
                self._ran(graph, given, out, range(before, _next()))
            except Exception as error:
                tracer.flow.miss(f"compiled graphs that could not be counted ({type(error).__name__})")
            return out

        return running

    def _ran(self, graph: Graph | str, given: list[tuple[Tensor, int]], out: Any, made: range) -> None:
        """Compiled code has run: count what it stands for, and know its results again."""
        self.calls += 1
        tracer, flow = self.tracer, self.tracer.flow
        for number in made:
            tracer.sites.made_node(number, self.inside)
        tracer.nodes_are_known()
        for x, version in given:
            if x._version != version:
                flow.written_unseen(x)
        if isinstance(graph, str):
            self.unread[graph] += 1
            return
        self._count(graph, graph.forward)
        self.rounded += graph.rounded
        results = list(tensors_in(out))
        for x, maker in zip(_flat(out), graph.outputs, strict=False):
            if type(x) in PLAIN and maker is not None and x.dtype in flow.watched:
                flow.came_from(maker, [source for source, _ in given], x)
        if graph.backward:
            self._expect_backward(graph, results)

    def _count(self, graph: Graph, operators: Counter[Signature]) -> None:
        for signature, count in operators.items():
            signature.count += count
            signature.nbytes += graph.moved[signature]
            self.tracer.operators += count

    def _expect_backward(self, graph: Graph, results: list[Tensor]) -> None:
        """Count the backward once it runs, if it does."""
        done = False

        def begins(gradients: Any) -> None:
            nonlocal done
            if not done and not self.tracer.resting:
                done = True
                self._count(graph, graph.backward)

        def ended(left: Any, came: Any) -> None:
            if not self.tracer.resting:
                self.came_from(came, left)

        for node in {x.grad_fn for x in results if x.grad_fn is not None}:
            node.register_prehook(begins)
            node.register_hook(ended)

    def came_from(self, inputs: Any, results: Any) -> None:
        """The backward of compiled code made `results` of `inputs`."""
        flow, sources = self.tracer.flow, list(tensors_in(inputs))
        for x in tensors_in(results):
            if x.dtype in flow.watched and x.layout is torch.strided:
                flow.came_from(self.maker, sources, x)

    def site(self, node: fx.Node) -> Site:
        """The site of a node."""
        frames = [*FRAME.finditer(node.stack_trace or "")]
        at = next((f for f in reversed(frames) if self.tracer.sites.is_mine(f["file"])), None)
        file, source = (at["file"], _source(at)) if at is not None else self._caller()
        module, called = self._module(node), _called(node)
        asked = called in CAST_METHODS or "dtype" in node.kwargs
        own = next((f for f in reversed(frames) if is_own(f["file"])), None)
        caller = (own["file"], int(own["line"])) if own is not None and own is not at else ("", 0)
        key = (file, *source, module, called, asked)
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = GraphSite(file, source, module, called, asked, caller)
            found.kept = self.tracer.sites.covers(module)
        return found

    def _caller(self) -> tuple[str, Source]:
        """The line that runs as a graph is compiled: that of a node which stands for code of torch's alone."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and not self.tracer.sites.is_mine(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return NO_FILE, Source(1, None, None, None, "")
        return frame.f_code.co_filename, source_of(frame.f_code, frame.f_lasti, frame.f_lineno)

    def _module(self, node: fx.Node) -> str:
        """The path of the module that a node ran in, as `blocks.0.fc`: below the one that runs as it is compiled."""
        stack = [*(node.meta.get("nn_module_stack") or {}).values()]
        below = OWNER.sub("", ITEM.sub(r".\1", str(stack[-1][0]))) if stack else ""
        frame: FrameType | None = sys._getframe()
        while frame is not None and frame.f_code is not CALL:
            frame = frame.f_back
        if frame is None:
            return below or _class_of(stack)
        path = self.tracer.sites.modules.running(frame)
        if not below:
            return path
        return below if path == type(frame.f_locals["self"]).__name__ else f"{path}.{below}"


class _Reading(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs a graph on fake tensors, and notes each operator that runs for it."""

    def __init__(self, captured: Captured, module: fx.GraphModule, fuses: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.captured, self.graph = captured, Graph()
        self._site: Site = captured.tracer.sites.nowhere
        self._made: dict[int, Site] = {}
        """By number of an autograd node: where the forward made it."""
        self._makers: dict[int, Signature] = {}
        self._origins = Origins(self._makers)
        self._names: dict[int, str] = {}
        self._alive: list[Any] = []
        self._fusable: set[int] = set()
        """Storages of half results of elementwise operators that only such operators have read so far."""
        self._run(module)
        self.graph.rounded = len(self._fusable) if fuses else 0

    # -- what `learn` asks of storages and modules ---------------------------------------------------------------------

    def maker(self, x: Tensor) -> Signature | None:
        """Who wrote this tensor's storage last."""
        return self._makers.get(x.untyped_storage()._cdata)

    def origin(self, x: Tensor) -> Signature | None:
        """Who chose the dtype of this tensor's storage."""
        return self._origins.of(x.untyped_storage()._cdata)

    @property
    def modules(self) -> _Reading:
        """The names of what the graph is given."""
        return self

    def name_of(self, storage: int) -> str:
        """`parameter fc.weight`, as far as the graph tells."""
        return self._names.get(storage, "")

    # -- the run ------------------------------------------------------------------------------------------------------

    def _run(self, module: fx.GraphModule) -> None:
        nodes = [node for node in module.graph.nodes if node.op == "placeholder"]
        given = [node.meta["example_value"] for node in nodes]
        fake = next((x.fake_mode for x in given if hasattr(x, "fake_mode")), None)
        if fake is None:
            fake = torch._guards.detect_fake_mode()
        if fake is None:
            raise ValueError("no fake tensors")
        with contextlib.ExitStack() as stack:
            shapes = fake.shape_env
            stack.enter_context(shapes.suppress_guards() if shapes is not None else contextlib.nullcontext())
            stack.enter_context(torch.inference_mode(False))
            strict, fake.allow_non_fake_inputs = fake.allow_non_fake_inputs, True
            stack.callback(setattr, fake, "allow_non_fake_inputs", strict)
            stack.enter_context(fake)
            with torch.no_grad():
                inputs = [_leaf(x) for x in given]
            self._name(nodes, inputs)
            with self:
                out = _Interpreter(self, module).run(*inputs)
                results = [x for x in _flat(out) if isinstance(x, Tensor)]
                self._fusable.difference_update(x.untyped_storage()._cdata for x in results)
                self.graph.outputs = [self.maker(x) if isinstance(x, Tensor) else None for x in _flat(out)]
                self._run_backward(results, inputs)

    def _run_backward(self, results: list[Tensor], inputs: list[Any]) -> None:
        wanted = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
        results = [x for x in results if x.requires_grad and x.grad_fn is not None]
        if wanted and results:
            gradients = [torch.empty_like(x) for x in results]
            torch.autograd.grad(results, wanted, gradients, allow_unused=True)

    def _name(self, nodes: list[fx.Node], inputs: list[Any]) -> None:
        for node, x in zip(nodes, inputs, strict=True):
            if isinstance(x, Tensor):
                self._alive.append(x)
                name = _name_of(node)
                if name:
                    self._names[x.untyped_storage()._cdata] = name

    def begin(self, node: fx.Node) -> int:
        """A node of the graph is to run."""
        self._site = self.captured.site(node)
        return int(_next())

    def end(self, first: int) -> None:
        """It has run, and made the autograd nodes from `first` on."""
        for number in range(first, _next()):
            self._made[number] = self._site

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator on fake tensors, and note it."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        op = self.captured.tracer._ops.get(id(func)) or self.captured.tracer._meet(func)
        if not op.quiet:
            self._note(op, args, kwargs, out)
        self._alive.append(out)
        return out

    def _note(self, op: Op, args: Any, kwargs: Any, out: Any) -> None:
        node = _node()
        backward = node is not None
        site = self._site if node is None else self._made.get(node._sequence_nr(), self.captured.tracer.sites.nowhere)
        if not site.kept:
            return
        key = (op, *_telling((*args, *kwargs.values())), not backward)
        signature = site.signatures.get(key)
        if signature is None:
            signature = site.signatures[key] = learn(site, op, args, kwargs, out, backward, self, self)
        (self.graph.backward if backward else self.graph.forward)[signature] += 1
        results = [x for x in _flat(out) if isinstance(x, Tensor)]
        if signature.author:
            self.graph.moved[signature] += _bytes(results) + _bytes(
                [x for x in _flat(args) if isinstance(x, Tensor)][-1:]
            )
        self._follow(op, args, results)
        sources = [x.untyped_storage()._cdata for x in tensors_of(args, kwargs)]
        for x in results:
            key = x.untyped_storage()._cdata
            if signature.keeps or op.aside:
                self._origins.kept(signature, sources, key)
            self._makers[key] = signature

    def _follow(self, op: Op, args: Any, results: list[Tensor]) -> None:
        """Keep account of results that a fused kernel need not round."""
        elementwise = op.cast or torch.Tag.pointwise in op.func.tags
        if not elementwise:
            self._fusable.difference_update(x.untyped_storage()._cdata for x in _flat(args) if isinstance(x, Tensor))
        elif _node() is None:
            self._fusable.update(x.untyped_storage()._cdata for x in results if x.dtype in LOW)


class _Interpreter(fx.Interpreter):
    """Tells a reading which node runs."""

    def __init__(self, reading: _Reading, module: fx.GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self._reading = reading

    def run_node(self, n: fx.Node) -> Any:
        """Run one node. A number that it reads out of a tensor is the symbol that the graph has for it."""
        known = n.meta.get("example_value")
        if isinstance(known, (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)) and n.op == "call_method":
            return known
        first = self._reading.begin(n)
        result = super().run_node(n)
        self._reading.end(first)
        return result


def _leaf(x: Any) -> Any:
    """A tensor like `x` that a run may write to, and that autograd takes for an input."""
    if not isinstance(x, Tensor):
        return x
    return torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device).requires_grad_(x.requires_grad)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def _telling(arguments: Any) -> Iterator[Any]:
    """What sets signatures apart: dtypes, and numbers of which special results are to be expected."""
    for a in _flat(arguments):
        if isinstance(a, Tensor):
            yield a.dtype
        elif isinstance(a, torch.dtype) or is_special(a):
            yield str(a)


def _bytes(tensors: list[Tensor]) -> int:
    return sum(int(x.numel()) * x.element_size() for x in tensors)


def _called(node: fx.Node) -> str:
    return node.target if isinstance(node.target, str) else str(getattr(node.target, "__name__", ""))


def _class_of(stack: list[Any]) -> str:
    """The class of the innermost module of a node, by which a root is called."""
    kind = stack[-1][1] if stack else ""
    return kind.__name__ if isinstance(kind, type) else str(kind).rpartition(".")[2]


def _name_of(node: fx.Node) -> str:
    """`parameter fc.weight`, of a placeholder that stands for one."""
    source = getattr(node.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    text = name() if callable(name) else str(name)
    for kind in ("parameter", "buffer"):
        owner, found, own = text.partition(f"._{kind}s['")
        if found:
            path = ".".join(re.findall(r"_modules\['([^']*)'\]", owner))
            return f"{kind} {path}.{own.removesuffix(chr(39) + ']')}" if path else f"{kind} {own[:-2]}"
    return ""


def _source(frame: re.Match[str]) -> Source:
    """Where a frame of a stack trace stands: the expression that is marked, or the line."""
    line, text, marks = int(frame["line"]), frame["text"] or "", frame["marks"] or ""
    whole = linecache.getline(frame["file"], line)
    indent = len(whole) - len(whole.lstrip())
    start = len(marks) - len(marks.lstrip()) - 4
    if not marks.strip() or start < 0 or whole.strip() != text:
        return Source(line, None, None, None, text or whole.strip())
    end = min(len(marks) - 4, len(text))
    return Source(line, line, indent + start, indent + end, text[start:end])
