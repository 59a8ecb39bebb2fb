"""The hot path: one dispatch mode that counts each operator and launches its judgement.

It decides nothing: what a signature means is learned once (signature.py), values are judged at the flush (flow.py).
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.flow import WATCHED, Flow
from dtlint.trace.ops import Op
from dtlint.trace.signature import Signature, learn
from dtlint.trace.site import ENGINE, PLAIN, Site, Sites
from dtlint.trace.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["Tracer"]

HARMLESS_THREADS = ("MainThread", "QueueFeederThread", "tqdm", "pydevd", "IPython", "Dummy")
"""Threads that run no operators."""

ODD: dict[str, Callable[[Tensor], bool]] = {
    "nested": lambda x: x.is_nested,
    "sparse": lambda x: x.layout is not torch.strided,
    "zero": lambda x: x._is_zerotensor(),
}
"""Tensors without a storage of their own values: there is nothing that could be judged."""

_node = torch._C._current_autograd_node  # the backward node that runs on this thread, or None
_next = torch._C._autograd._get_sequence_nr  # the number that the next forward node will get
_frame = sys._getframe


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator of this thread, its backward and its autograd threads, between `with` and its end."""

    supports_higher_order_operators = True
    active: ClassVar[Tracer | None] = None

    def __init__(self, watched: frozenset[torch.dtype] = WATCHED, here: Path | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.here = here or Path.cwd()
        """The directory of the run: paths are told relative to it, though the program may leave it."""
        self.sites = Sites()
        self.flow = Flow(watched, self.sites.modules)
        self.steps = Steps(self.flow, self.sites)
        self.operators = 0
        self.children = 0
        self.threads: set[str] = set()
        self._ops = _Ops()
        self._last_node = -1
        self._profile: Any = None
        """What the program has new threads profiled with; ours only notes that they begin, and hands over to it."""

    # -- the hot path -----------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; then find its site, count it under its signature and log its results."""
        out = func(*args, **kwargs) if kwargs else func(*args)
        try:
            op = self._ops[func]
            if op.quiet:
                self._quiet(op, args, out, _frame().f_back)
                return out
            frame = _frame().f_back
            if self.steps.muted and self.steps.inside(frame):
                return out
            self.operators += 1
            site = self._site(frame)
            key: list[Any] = [func]
            sources: list[Tensor] = []
            for a in (*args, *kwargs.values()) if kwargs else args:
                kind = type(a)
                if kind in PLAIN:
                    key.append(a.dtype)
                    sources.append(a)
                elif kind is list or kind is tuple:
                    for x in a:
                        if type(x) in PLAIN:
                            key.append(x.dtype)
                            sources.append(x)
                elif kind is torch.dtype:
                    key.append(a)
            shape = (*key, _node() is None)
            signature = site.signatures.get(shape)
            if signature is None:
                backward = not shape[-1]
                signature = learn(site, op, args, kwargs, out, backward, self.flow, self.sites)
                site.signatures[shape] = signature
            signature.count += 1
            flow = self.flow
            kind = type(out)
            if op.remote:
                flow.written_elsewhere(_tensors_in((args, out)))
            elif op.each:
                self._watch_each(signature, args, out)
            elif kind in PLAIN:
                if out.dtype in flow.watched:
                    flow.watch(signature, sources, out)
            elif kind is tuple or kind is list:
                for x in out:
                    if type(x) in PLAIN and x.dtype in flow.watched:
                        flow.watch(signature, sources, x)
            elif isinstance(out, Tensor):
                flow.miss(f"results of the tensor subclass {kind.__name__}")
        except Exception as error:  # whatever is wrong here, the program goes on as if it were not traced
            self._missed(error, args, out)
        return out

    def _note_thread(self, frame: FrameType, event: str, arg: Any) -> None:
        """Remember the thread that runs this, once, as it begins: a thread may be gone before anybody looks for it."""
        sys.setprofile(self._profile)
        name = threading.current_thread().name
        if not name.startswith(HARMLESS_THREADS):
            self.threads.add(name)

    def _site(self, frame: FrameType | None) -> Site:
        """Where an operator called from `frame` was asked for: the running line, or in the backward the forward's."""
        node = _node()
        if node is not None and (frame is None or frame.f_code is ENGINE):
            return self.sites.forward(node)
        site = self.sites.where(frame or _frame(), node)
        number = _next()
        if number != self._last_node:
            self._last_node = number
            self.sites.made_node(number - 1, site)
        return site

    # -- the cold path ----------------------------------------------------------------------------------------------

    def _quiet(self, op: Op, args: Any, out: Any, frame: FrameType | None) -> None:
        """An operator without values of its own: a view, an allocation, a mark in the stream."""
        if _next() != self._last_node and _node() is None and not self.steps.muted:
            self._site(frame)  # a view makes an autograd node too
        if op.alloc:
            self.flow.allocated(out)
        elif op.reads and type(args[0]) in PLAIN and args[0].dtype in self.flow.watched:
            site = self._site(frame)
            signature = site.signatures.get((op,))
            if signature is None:
                signature = site.signatures[op,] = learn(site, op, args, None, out, False, self.flow, self.sites)
            self.flow.read(signature, args[0])
        elif op.update:
            self.steps.updated(args[0], args[2], self._site(frame))

    def _watch_each(self, signature: Signature, args: Any, out: Any) -> None:
        """One operator over lists of tensors: the n-th result, or target in place, is made of the n-th arguments."""
        lists = [a for a in args if isinstance(a, (list, tuple))]
        rest = [a for a in args if type(a) in PLAIN]
        for index, x in enumerate(lists[0] if out is None else out):
            if type(x) in PLAIN and x.dtype in self.flow.watched:
                beside = [a[index] for a in lists if type(a[index]) in PLAIN]
                self.flow.watch(signature, beside + rest, x)

    def _missed(self, error: Exception, args: Any, out: Any) -> None:
        tensors = [x for x in (out, *args) if isinstance(x, Tensor)]
        for x in tensors:
            for what, odd in ODD.items():
                if odd(x):
                    self.flow.miss(f"operators with {what} tensors")
                    return
        self.flow.miss(f"operators that could not be judged ({type(error).__name__}: {str(error).splitlines()[0]})")

    # -- lifetime ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Tracer:
        """Start. One tracer at a time.

        Raises:
            RuntimeError: another tracer is running.
        """
        if Tracer.active is not None:
            raise RuntimeError("dtlint is tracing already; end the outer trace before starting another")
        Tracer.active = self
        self.steps.install()
        self._profile = threading.getprofile()
        threading.setprofile(self._note_thread)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop, undo every patch that is still ours, and read what is left."""
        super().__exit__(*exc)  # type: ignore[no-untyped-call]
        self.steps.remove()
        if threading.getprofile() == self._note_thread:
            threading.setprofile(self._profile)
        Tracer.active = None
        self.read()
        self.flow.close()

    def read(self) -> None:
        """Bring everything up to date, so that a record can be made while the program still runs."""
        with torch._C._DisableTorchDispatch():
            self.flow.flush()
            self.steps.scaler.settle(self.flow.events, self.flow.step)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # no wrapper around the hot path: nothing is compiled while it runs


class _Ops(dict[Any, Op]):
    """What is known of each operator, learned at its first call."""

    def __missing__(self, func: Any) -> Op:
        op = self[func] = Op(func)
        return op


def _tensors_in(value: Any) -> Iterator[Tensor]:
    """All plain tensors in nested lists, as collectives take them."""
    if type(value) in PLAIN:
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)


def _forked() -> None:
    """A forked child starts with a copy of the mode on its stack; a child is not traced, so take it off."""
    tracer = Tracer.active
    if tracer is None:
        return
    Tracer.active = None
    above = []
    while torch._C._len_torch_dispatch_stack():
        mode = torch._C._pop_torch_dispatch_stack(None)
        if mode is tracer:
            break
        above.append(mode)
    for mode in reversed(above):
        torch._C._push_on_torch_dispatch_stack(mode)
    tracer.steps.remove()


def _forking() -> None:
    if Tracer.active is not None:
        Tracer.active.children += 1


os.register_at_fork(after_in_parent=_forking, after_in_child=_forked)
