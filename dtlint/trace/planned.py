"""Runs a program under a precision plan, without a change of its code: its models in float16, and what is kept in a
wider dtype.

The calls of modules are seen in `nn.Module._call_impl`; a loss is scaled as its backward begins, and what a leaf
gets is divided again before it is added to the leaf's gradient.
"""

from __future__ import annotations

import functools
import sys
import threading
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._pytree import tree_any, tree_map

from dtlint.trace.patches import Patches
from dtlint.trace.precision_plan import PlanRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from types import FrameType

    from dtlint.trace.precision_plan import Plan
    from dtlint.trace.site import ModulePaths

__all__ = ["Planned"]

HALVES = frozenset((torch.float16, torch.bfloat16))

_node = torch._C._current_autograd_node  # the backward node that runs on this thread, or None


class _Running(threading.local):
    """What runs on one thread."""

    low: bool | None = None
    """Is the innermost module one that runs in float16? None outside of all modules."""
    divided: frozenset[int] | None = None
    """In a backward whose loss was scaled, the leaves whose gradients are divided, by id. A checkpoint that is re-entrant
    runs a backward within, and hands the gradients of its inputs on as they are."""


class Planned:
    """A plan as it is applied, from `install` to `remove`."""

    def __init__(self, plan: Plan, paths: ModulePaths, step: Callable[[], int]) -> None:
        """Under `plan`, with what is known of the program: the paths of modules, and how many training steps have ended."""
        self.plan, self.paths, self._step = plan, paths, step
        self.kept = frozenset(plan.names)
        self.met: set[str] = set()
        """The kept modules that ran."""
        self.refused: dict[str, str] = {}
        """Modules that cannot be wrapped: by path, why."""
        self.gone: list[str] = []
        """Modules that are not there, though a step has come to its end by which they had run when the plan was made."""
        self._here = _Running()
        self._hook: Any = None
        self._patches = Patches()
        self._run: Callable[..., Any] = self._autocast if plan.how == "autocast" else self._cast

    def install(self) -> None:
        """Apply the plan to each module that is called from now on, and to each backward."""
        self._patches.set(nn.Module, "_call_impl", self._calling(nn.Module._call_impl))
        if self.plan.scale not in (0, 1):
            self._patches.set(torch.autograd, "backward", self._scaling(torch.autograd.backward))
        if self.kept:
            self._hook = register_optimizer_step_pre_hook(self._about_to_train)

    def remove(self) -> None:
        """Undo `install`."""
        if self._hook is not None:
            self._hook.remove()
        self._patches.undo()

    @property
    def problem(self) -> str:
        """Why the plan could not be applied, as one line; "" if it was."""
        missing = self.gone or sorted(self.kept - self.met)
        if self.refused:
            path, why = next(iter(self.refused.items()))
            return f"the module {path} cannot be wrapped: {why}"
        if missing:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            which = "" if self.gone else " that ran"
            return f"no module{which} is called {missing[0]}{more}: the plan is of another model; make a new one"
        return ""

    def _about_to_train(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """An optimizer is to step: end the program before it does, if a module is missing that should have run by now.

        It may be there and not have run, as an expert that no token was sent to.

        Raises:
            PlanRefused: a module is missing.
        """
        step = self._step()
        due = [kept.module for kept in self.plan.keep if kept.step <= step and kept.module not in self.met]
        if due:
            there = {path for _, path in self.paths.known.values()}
            self.gone = sorted(path for path in due if path not in there)
        if self.gone:
            raise PlanRefused

    def _refuse(self, path: str, why: str) -> None:
        self.refused[path] = why
        raise PlanRefused

    # -- modules --------------------------------------------------------------------------------------------------------

    def _calling(self, call: Callable[..., Any]) -> Any:
        @functools.wraps(call)
        def called(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            frame: FrameType = sys._getframe(1)
            path = self.paths.running(frame)
            keep = path in self.kept
            if keep:
                self.met.add(path)
                if isinstance(module, torch.jit.ScriptModule):
                    self._refuse(path, "it is TorchScript; trace the program without torch.jit")
            return self._run(functools.partial(call, module), module, keep, args, kwargs)

        return called

    def _autocast(self, call: Callable[..., Any], module: nn.Module, keep: bool, args: Any, kwargs: Any) -> Any:
        """A module under autocast; autocast is off in one that is kept, and on again in those inside it."""
        here = self._here
        before, outermost = self._before()
        here.low = not keep
        try:
            with self._region(keep) if before is not here.low else nullcontext():
                if keep:
                    args, kwargs = _in(torch.float32, HALVES, (args, kwargs))
                out = call(*args, **kwargs)
        finally:
            here.low = None if outermost or before is None else before
        # the program, and a module that is kept, compute with what they get: autocast is off there
        return _in(torch.float32, HALVES, out) if outermost or before is False else out

    def _before(self) -> tuple[bool | None, bool]:
        """Did what called the module run in float16, as far as it is one; and is the module the outermost?

        A checkpoint runs its part of the forward once more in the backward, in the region that it remembers.
        """
        low = self._here.low
        if low is None and _node() is not None:
            return torch.is_autocast_enabled(self.plan.device), False
        return low, low is None

    def _region(self, keep: bool) -> AbstractContextManager[Any]:
        device = self.plan.device
        if keep and self.plan.keep_in == "float32":
            return torch.autocast(device, enabled=False)
        return torch.autocast(device, dtype=torch.bfloat16 if keep else torch.float16)

    def _cast(self, call: Callable[..., Any], module: nn.Module, keep: bool, args: Any, kwargs: Any) -> Any:
        """A module with weights in the plan's dtypes. Tensors are cast where one that is kept calls one that is not, or
        is called by one: to what the other computes in, and back."""
        here, wide, narrow = self._here, getattr(torch, self.plan.keep_in), torch.float16
        before = here.low
        if isinstance(module, nn.RNNBase) and not keep:
            path = self.paths.path_of(module)
            self._refuse(path, "its weights cannot be lent in float16; plan with --how autocast")
        again = before is None and _node() is not None  # a checkpoint runs its part of the forward once more
        caller_low = again or bool(before)
        here.low = not keep
        try:
            with self._lent(module) if before is None else nullcontext():
                if keep and caller_low:
                    args, kwargs = _in(wide, (narrow, torch.float32), (args, kwargs))
                elif not (keep or caller_low):
                    args, kwargs = _in(narrow, (wide, torch.float32), (args, kwargs))
                out = call(*args, **kwargs)
        finally:
            here.low = before
        if before is None and not again:
            return _in(torch.float32, HALVES, out)
        if keep == caller_low:
            return _in(narrow if keep else wide, (wide if keep else narrow,), out)
        return out

    @contextmanager
    def _lent(self, root: nn.Module) -> Iterator[None]:
        """Give the modules below `root` their weights in the plan's dtypes, for as long as they run."""
        lent: dict[tuple[int, torch.dtype], Any] = {}
        owned: list[tuple[nn.Module, str, Tensor]] = []
        for module in root.modules():
            kept = isinstance(module, nn.RNNBase) or self.paths.path_of(module) in self.kept
            dtype = getattr(torch, self.plan.keep_in) if kept else torch.float16
            for name, weight in module._parameters.items():
                if weight is None or weight.dtype is not torch.float32 or dtype is torch.float32:
                    continue
                key = id(weight), dtype
                owned.append((module, name, weight))
                lent[key] = lent[key] if key in lent else weight.to(dtype)
                _put(module, name, lent[key])
        try:
            yield
        finally:
            for module, name, own in owned:
                _put(module, name, own)

    # -- the loss scale -------------------------------------------------------------------------------------------------

    def _scaling(self, backward: Callable[..., Any]) -> Any:
        scale, here = self.plan.scale, self._here

        @functools.wraps(backward)
        def scaled(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            roots = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
            outer = here.divided
            if outer is None:
                roots = tuple(x * scale for x in roots)
            leaves = [
                x for x in _leaves(roots) if outer is None or (isinstance(x, nn.Parameter) and id(x) not in outer)
            ]
            here.divided = (outer or frozenset()) | set(map(id, leaves))
            hooks = [_divide(leaf, scale) for leaf in leaves]
            try:
                return backward(roots, *args, **kwargs)
            finally:
                here.divided = outer
                for hook in hooks:
                    hook.remove()

        return scaled


def _in(dtype: torch.dtype, others: Sequence[torch.dtype] | frozenset[torch.dtype], value: Any) -> Any:
    """Tensors of `others` in nested containers cast to `dtype`; the very containers where there is nothing to cast."""

    def differs(x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype in others and x.dtype is not dtype

    if not tree_any(differs, value):
        return value
    return tree_map(lambda x: x.to(dtype) if differs(x) else x, value)


def _put(module: nn.Module, name: str, x: Any) -> None:
    module._parameters[name] = x


def _divide(leaf: Any, scale: float) -> Any:
    """Have the gradient of a leaf divided before it is accumulated, until the handle is removed."""
    return leaf.register_hook(lambda gradient: gradient * (1 / scale))


def _leaves(roots: Sequence[Tensor]) -> list[Tensor]:
    """The tensors that get a gradient in a backward from these."""
    found: list[Tensor] = []
    seen: set[Any] = set()
    waiting = [x.grad_fn for x in roots]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if type(node).__name__ == "AccumulateGrad":
            found.append(node.variable)  # type: ignore[attr-defined]
        waiting += [following for following, _ in node.next_functions]
    return found
