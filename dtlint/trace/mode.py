"""The hot path: one dispatch mode that counts each operator and launches its judgement.

It decides nothing: what a signature means is learned once (signature.py), values are judged at the flush (flow.py).
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Parameter
from torch.utils._python_dispatch import TorchDispatchMode

from dtlint.trace.assumed import Assumed
from dtlint.trace.captured import Captured, can_capture
from dtlint.trace.children import Children
from dtlint.trace.clock import Clock
from dtlint.trace.elsewhere import Elsewhere
from dtlint.trace.flow import Flow, tensors_in
from dtlint.trace.mismatch import Mismatches
from dtlint.trace.ops import Op
from dtlint.trace.options import EVERYTHING, Options
from dtlint.trace.series import Series
from dtlint.trace.shadow import Shadow
from dtlint.trace.signature import Signature, is_special, learn
from dtlint.trace.site import ENGINE, PLAIN, Site, Sites
from dtlint.trace.stack import put_back, take_off
from dtlint.trace.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

__all__ = ["Tracer"]

ODD: dict[str, Callable[[Tensor], bool]] = {
    "nested": lambda x: x.is_nested,
    "sparse": lambda x: x.layout is not torch.strided,
    "zero": lambda x: x._is_zerotensor(),
}
"""Tensors without a storage of their own values: there is nothing that could be judged."""

COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd

_node = torch._C._current_autograd_node  # the backward node that runs on this thread, or None
_next = torch._C._autograd._get_sequence_nr  # the number that the next forward node will get
_frame = sys._getframe
_depth = torch._C._len_torch_dispatch_stack


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees every operator of this thread, its backward and its autograd threads, between `with` and its end."""

    supports_higher_order_operators = True
    active: ClassVar[Tracer | None] = None

    def __init__(
        self, options: Options = EVERYTHING, here: Path | None = None, children: Children | None = None
    ) -> None:
        """Look at what `options` say, of a run in the directory `here`: by default the current one.

        Child processes are counted here, unless `children` counts them already.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.options = options
        self.here = here or Path.cwd()
        """The directory of the run: paths are told relative to it, though the program may leave it."""
        self.sites = Sites(options.covers)
        watched = frozenset(getattr(torch, name) for name in options.watch)
        self.flow = (Assumed if options.assume else Flow)(watched, self.sites.modules, options.partial, options.sketch)
        self.sketches = self.flow.sketches
        self.shadow = _shadow(options)
        if self.shadow is not None:
            self.flow.settled = self.shadow.settle
        self.mismatches = Mismatches(self.flow, self.sites, self.here)
        self.thread = threading.get_ident()
        self.series = Series()
        self.steps = Steps(self)
        self.operators = 0
        self.passed_by = 0
        """Operators of modules that are not looked at."""
        self.captured = Captured(self) if not options.eager and can_capture() else None
        """The graphs of compiled code; None where that runs eagerly."""
        self.elsewhere = Elsewhere(self.flow.lend, self.captured)
        self.children, self._counts_children = children or Children(), children is None
        self.clock = Clock() if options.time else None
        self._ops: dict[int, Op] = {}
        """By id of the operator, which `Op` keeps alive: its own hash is slow."""
        self._last_node = -1
        self.resting = False
        """Is it off, since the step that runs is not one to trace?"""
        self.wakes: float = 0
        """The next step to trace, counted from 1."""
        self._below: int | None = None
        """While it rests: where on the stack this mode belongs."""
        self.gives_way = False
        """Does it end when another tracer starts? Else the other one is refused."""

    # -- the hot path -----------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator; then find its site, count it under its signature and log its results."""
        op = self._ops.get(id(func)) or self._meet(func)
        if op.updates:
            self._about_to_update(op, args)
        if self.shadow is not None:
            self.shadow.before(op, args, kwargs)
        try:
            out = op.call(*args, **kwargs) if kwargs else op.call(*args)
        except RuntimeError as error:
            self._refused(error, func, args, kwargs)
            raise
        try:
            if op.quiet:
                if op.matters:
                    self._quiet(op, args, out, _frame().f_back)
                elif op.marks and _next() != self._last_node:
                    self._mark(_frame().f_back)
                return out
            node = _node()
            site = self._site(_frame().f_back, node)
            if not site.kept:
                self._passed_by(op, args, out, site)
                return out
            self.operators += 1
            signature = (site.forward if node is None else site.backward).get(op)
            sources: list[Tensor] = []
            if (
                signature is None
                or signature.arity != len(args)
                or (kwargs.get("dtype") if kwargs else None) is not signature.asked
            ):
                signature = None
            else:
                for index, dtype in signature.takes:
                    a = args[index]
                    kind = type(a)
                    if kind is Tensor or kind is Parameter:
                        sources.append(a)
                        a = a.dtype
                    elif (kind is float or kind is int) and a != signature.number:
                        if signature.special or is_special(a):  # its results are of another kind
                            signature = None
                            break
                        signature.constant = False
                    if a is not dtype and kind is not dtype:
                        signature = None
                        break
            if signature is None:
                signature, sources = self._signature(site, op, args, kwargs, out, node is not None)
            signature.count += 1
            if self.clock is not None:
                self.clock.add(signature)
            if op.plain and type(out) is Tensor:
                flow = self.flow
                if out.dtype in flow.watched:
                    flow.watch(signature, sources, out)
                elif signature.wraps:
                    flow.integers(signature, args, sources, out)
            else:
                self._results(signature, args, sources, out)
            if self.sketches is not None:
                self.sketches.saw(self.flow.step, signature, args, sources, out)
            if self.shadow is not None:
                self.shadow.saw(signature, args, kwargs, out)
        except Exception as error:  # whatever is wrong here, the program goes on as if it were not traced
            self._missed(error, args, out)
        return out

    def _site(self, frame: FrameType | None, node: Any) -> Site:
        """Where an operator called from `frame` was asked for: the running line, or in the backward the forward's."""
        if node is not None:
            if frame is None or frame.f_code is ENGINE:
                return self.sites.forward(node)
            if self.captured is not None and self.sites.forward(node) is self.captured.inside:
                return self.captured.inside
        while frame is not None and frame.f_code is PARTS and frame.f_back is not None:
            frame = frame.f_back.f_back  # past the handler that took a composite operator apart
        site = self.sites.where(frame or _frame(), node)
        number = _next()
        if number != self._last_node:
            self._last_node = number
            self.sites.made_node(number - 1, site)
        return site

    def nodes_are_known(self) -> None:
        """The site of every autograd node that was made so far is noted: the next operator has made none of them."""
        self._last_node = _next()

    # -- the cold path ----------------------------------------------------------------------------------------------

    def _meet(self, func: Any) -> Op:
        """What is known of an operator, at its first call."""
        op = self._ops[id(func)] = Op(func)
        if op.composite:
            op.call = partial(self._in_parts, func)
        elif self.clock is not None:
            op.call = self.clock.timed(op.call)
        return op

    def _in_parts(self, func: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a composite operator, such as `to` or `linear`, so that the operators it is made of are seen.

        Elsewhere autograd takes them apart before they come here; in inference mode they come whole. The kernel that
        runs is the same. Whatever else the program has that sees operators, as torch.export has, is to see them whole.
        """
        if _depth() or not all(type(x) in PLAIN for x in (*args, *kwargs.values()) if isinstance(x, Tensor)):
            return func(*args, **kwargs)
        put_back(self, 0)
        try:
            return func._op_dk(COMPOSITE, *args, **kwargs)
        finally:
            take_off(self)

    def _signature(
        self, site: Site, op: Op, args: Any, kwargs: Any, out: Any, backward: bool
    ) -> tuple[Signature, list[Tensor]]:
        """The signature of a call whose dtypes are not those of the operator's last one here; and its operands."""
        key: list[Any] = [op]
        sources: list[Tensor] = []
        for a in (*args, *kwargs.values()) if kwargs else args:
            kind = type(a)
            if kind in PLAIN:
                key.append(a.dtype)
                sources.append(a)
            elif kind is list or kind is tuple:
                for x in a:
                    if type(x) in PLAIN:
                        if x.dtype is not key[-1]:  # else a growing list would be new each time
                            key.append(x.dtype)
                        sources.append(x)
            elif kind is torch.dtype:
                key.append(a)
        key += [repr(float(args[index])) for index in op.numbers if index < len(args) and is_special(args[index])]
        key.append(not backward)
        shape = tuple(key)
        signature = site.signatures.get(shape)
        if signature is None:
            signature = learn(site, op, args, kwargs, out, backward, self.flow.storages, self.sites)
            signature.doubt(self.flow.watched)
            site.signatures[shape] = signature
            self.series.follow(signature)
        if op.positions is not None:
            signature.expect(args, kwargs)
            (site.backward if backward else site.forward)[op] = signature
        return signature, sources

    def _about_to_update(self, op: Op, args: Any) -> None:
        """What an operator reads and writes is gone once it has run: judge it before, where others may have written it."""
        flow = self.flow
        flow.forget_before()
        adds = op.adds and flow.totals.looks
        try:
            for index in op.updates:
                for x in tensors_in(args[index]) if index < len(args) else ():
                    flow.about_to_update(x, adds)
                    if self.sketches is not None:
                        self.sketches.before(flow.step, x)
        except Exception as error:  # as of sparse tensors: the operator runs all the same
            flow.miss(f"operators that could not be judged ({type(error).__name__})")

    def _results(self, signature: Signature, args: Any, sources: list[Tensor], out: Any) -> None:
        """Judge what is more, or something else, than one plain tensor."""
        flow, kind = self.flow, type(out)
        for index in signature.op.aside:
            x: Any = args[index] if index < len(args) else None
            if type(x) in PLAIN and x.dtype in flow.watched:
                flow.watch(signature, sources, x)
        if signature.op.remote:
            flow.collective(signature, args, out)
        elif signature.op.each:
            self._watch_each(signature, args, out)
        elif kind is tuple or kind is list or kind in PLAIN:
            for x in (out,) if kind in PLAIN else out:
                if type(x) in PLAIN and x.dtype in flow.watched:
                    flow.watch(signature, sources, x)
        elif isinstance(out, Tensor):
            flow.miss(f"results of the tensor subclass {kind.__name__}", signature.site)

    def _mark(self, frame: FrameType | None) -> None:
        """A view makes an autograd node too."""
        if _node() is None:
            self._site(frame, None)

    def _quiet(self, op: Op, args: Any, out: Any, frame: FrameType | None) -> None:
        """An allocation, or a number that the program reads."""
        if op.marks and _next() != self._last_node:
            self._mark(frame)
        if op.alloc:
            self.flow.allocated(out)
        elif op.reads and type(args[0]) in PLAIN and args[0].dtype in self.flow.watched:
            site = self._site(frame, _node())
            if not site.kept:
                return
            signature = site.signatures.get((op,))
            if signature is None:
                signature = site.signatures[op,] = learn(
                    site, op, args, None, out, False, self.flow.storages, self.sites
                )
            self.flow.read(signature, args[0])

    def _passed_by(self, op: Op, args: Any, out: Any, site: Site) -> None:
        """An operator of a module that is not looked at: what it writes in place is as if written by nobody seen.

        A result of its own is not known at all, and is met by its first reader as any data from outside.
        """
        self.flow.forget_before()
        if self.captured is not None and site is self.captured.inside:
            self.captured.came_from(args, out)
            return
        self.passed_by += 1
        if op.writes:
            for x in tensors_in((args[:1], out)):  # with `out=`, what is written is no first argument but the result
                self.flow.written_unseen(x)

    def _watch_each(self, signature: Signature, args: Any, out: Any) -> None:
        """One operator over lists of tensors: the n-th result, or target in place, is made of the n-th arguments."""
        lists = [a for a in args if isinstance(a, (list, tuple))]
        rest = [a for a in args if type(a) in PLAIN]
        for index, x in enumerate(lists[0] if out is None else out):
            if type(x) in PLAIN and x.dtype in self.flow.watched:
                beside = [a[index] for a in lists if type(a[index]) in PLAIN]
                self.flow.watch(signature, beside + rest, x)

    def _refused(self, error: RuntimeError, func: Any, args: Any, kwargs: Any) -> None:
        """The operator raised: if dtypes are why, the exception tells where they came from."""
        self.flow.forget_before()
        try:
            frame = _frame().f_back
            self.mismatches.met(func, args, kwargs, error, self._site(frame and frame.f_back, _node()))
        except Exception as failure:  # the program's own exception counts
            self.flow.miss(f"errors that could not be explained ({type(failure).__name__})")

    def _missed(self, error: Exception, args: Any, out: Any) -> None:
        """Count an operator of which the tracer could make nothing. Nor may this fail, whatever the tensors are."""
        self.flow.forget_before()
        site = odd = None
        with suppress(Exception):
            frame = _frame().f_back
            site = self._site(frame and frame.f_back, _node())
            tensors = [x for x in (out, *args) if isinstance(x, Tensor)]
            odd = next((name for x in tensors for name, is_odd in ODD.items() if is_odd(x)), None)
        if odd is None:
            what = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            self.flow.miss(f"operators that could not be judged ({what})", site)
        else:
            self.flow.miss(f"operators with {odd} tensors", site)

    # -- lifetime ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Tracer:
        """Start. One tracer at a time.

        Raises:
            RuntimeError: another tracer is running, which does not give way.
        """
        if Tracer.active is not None:
            if not Tracer.active.gives_way:
                raise RuntimeError("dtlint is tracing already; end the outer trace before starting another")
            Tracer.active.__exit__(None, None, None)
        try:
            self.steps.install()
            self.elsewhere.install()
            if self._counts_children:
                self.children.install()
            super().__enter__()  # type: ignore[no-untyped-call]
        except BaseException:
            self._uninstall()
            raise
        Tracer.active = self
        self.switch()
        return self

    def __exit__(self, *exc: Any) -> None:
        """Stop, undo every patch that is still ours, and read what is left. Once it has given way there is nothing to do."""
        if Tracer.active is not self:
            return
        self._wake()
        take_off(self)
        put_back(self, _depth())  # on top, where torch takes it from: the program may have left a mode of its own there
        super().__exit__(*exc)  # type: ignore[no-untyped-call]
        self._uninstall()
        self.mismatches.ended(exc[1] if exc else None)
        Tracer.active = None
        self.read()
        self.flow.forget()

    def leave_child(self) -> None:
        """This is a forked child, which is not traced: go, and leave no trace."""
        take_off(self)
        self._uninstall()

    def _uninstall(self) -> None:
        self.steps.remove()
        self.elsewhere.remove()
        if self._counts_children:
            self.children.remove()

    def switch(self) -> None:
        """A step begins: is it one to trace? In between the mode is wholly off, and costs nothing."""
        if self.options.always or threading.get_ident() != self.thread:
            return
        step = self.flow.step + 1
        if self.options.traces(step):
            self._wake()
        elif not self.resting:
            self.resting = True
            self._below = take_off(self)
            self.flow.forget()  # what is written from here on is not seen
        self.wakes = self.options.following(step)

    def _wake(self) -> None:
        if self.resting:
            self.resting = False
            if self.clock is not None:
                self.clock.step_begins()
            if self._below is not None:
                put_back(self, self._below)
            self._below, self._last_node = None, _next()

    def read(self) -> None:
        """Bring everything up to date, so that a record can be made while the program still runs.

        Whatever is wrong in it, the program ends as if it were not traced.
        """
        try:
            with torch._C._DisableTorchDispatch():
                self.flow.flush()
                self.steps.clipping.settle()
                self.steps.scaler.settle(self.flow.events)
        except Exception as error:
            self.flow.miss(f"results that could not be judged at the end ({type(error).__name__})")

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # no wrapper around the hot path: `Captured` keeps dynamo out of it

    def ignore_compile_internals(self) -> bool:  # type: ignore[override]
        """Do not keep torch from compiling: what is compiled is known from its graph."""
        return self.captured is not None


def _shadow(options: Options) -> Shadow | None:
    if options.shadow is None:
        return None
    assumed = getattr(torch, options.assume) if options.assume else None
    return Shadow(getattr(torch, options.shadow), assumed, gains=options.gains or assumed is not None)


PARTS = Tracer._in_parts.__code__


def _forked() -> None:
    """A forked child starts with a copy of the mode on its stack; a child is not traced, so take it off."""
    tracer = Tracer.active
    if tracer is None:
        return
    Tracer.active = None
    tracer.leave_child()


def _forking() -> None:
    if Tracer.active is not None:
        Tracer.active.children.forked += 1


os.register_at_fork(after_in_parent=_forking, after_in_child=_forked)
