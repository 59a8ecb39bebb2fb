"""The results of modules in a sampled step, by forward hooks that are there in that step alone.

What a compiler made of a module runs without hooks: only the result of the whole is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from dtlint.monitor.waiting import Waiting, own_work, readable, some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Activations", "paths"]

MOST = 1000
"""Modules that are looked at; more are left out, and said."""


class Activations:
    """What the modules of a model give, while they are watched."""

    def __init__(self, model: nn.Module, covers: Callable[[str], bool], waiting: Waiting, dtype: torch.dtype | None):
        """Of modules whose path `covers` approves of. Underflow is measured by `dtype`, or each tensor's own."""
        self._model, self._covers, self._waiting, self._dtype = model, covers, waiting, dtype
        self._handles: list[Any] = []
        self.dtypes: dict[str, torch.dtype] = {}
        """By module: the dtype of its results in the step that is watched."""
        self.looked: dict[str, int] = {}
        """By module: the number of values that shares are estimated from."""
        self.unseen: dict[str, None] = {}

    def watch(self) -> None:
        """Look at every result from now on."""
        self.dtypes, self.looked, self.unseen = {}, {}, {}
        for number, (path, module) in enumerate(self._watched()):
            if number == MOST:
                self.unseen[f"results of more than {MOST} modules"] = None
                break
            try:
                self._handles.append(module.register_forward_hook(_Hook(self, path)))
            except RuntimeError:  # a module that was scripted takes none
                self.unseen["results of modules of torch.jit"] = None

    def unwatch(self) -> None:
        """Leave the model as it was."""
        if self._handles and not self.dtypes:
            self.unseen["results of modules: none ran where hooks are called, as in compiled code"] = None
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def _watched(self) -> Iterator[tuple[str, nn.Module]]:
        """Modules that compute by themselves: they have parameters of their own, or hold no other module."""
        for path, module, compiled in paths(self._model):
            whole = is_compiler(module)
            if compiled:
                self.unseen["results of modules inside compiled code"] = None
            computes = whole or module._parameters or not module._modules
            if computes and (whole or not compiled) and self._covers(path):
                yield path, module

    def saw(self, path: str, results: Any) -> None:
        """A module gave these."""
        if not torch.is_grad_enabled():  # an evaluation between two steps
            return
        try:
            with own_work():
                for x in _tensors(results):
                    if readable(x):
                        self._look(path, x.detach())
        except Exception as error:  # whatever is wrong here, the program goes on
            self.unseen[f"results of {path or 'the model'} ({type(error).__name__})"] = None

    def _look(self, path: str, x: Tensor) -> None:
        low, high = torch.aminmax(x)
        some = some_of(x)
        zero = some == 0
        waiting = self._waiting
        waiting.largest(("amax", path), torch.maximum(-low, high))
        least = torch.finfo(self._dtype or x.dtype).tiny
        waiting.sum(("underflow", path), torch.count_nonzero((some < least) & ~zero))
        waiting.sum(("zero", path), torch.count_nonzero(zero))
        self.looked[path] = self.looked.get(path, 0) + some.numel()
        self.dtypes[path] = x.dtype


class _Hook:
    """The hook on one module. A copy of the module, as for an average of its weights, gets one that does nothing."""

    def __init__(self, activations: Activations | None = None, path: str = "") -> None:
        self._activations, self._path = activations, path

    def __call__(self, module: nn.Module, args: Any, results: Any) -> None:
        if not torch.compiler.is_compiling() and self._activations is not None:
            self._activations.saw(self._path, results)

    def __reduce__(self) -> tuple[type[_Hook], tuple[()]]:
        return _Hook, ()


def paths(model: nn.Module) -> Iterator[tuple[str, nn.Module, bool]]:
    """Each module once, with its path less the names of wrappers, and whether it is compiled or inside of what is."""
    met: set[int] = set()
    stack = [("", model, False)]
    while stack:
        path, module, compiled = stack.pop()
        if id(module) in met:
            continue
        met.add(id(module))
        compiled = compiled or is_compiler(module) or getattr(module, "_compiled_call_impl", None) is not None
        yield path, module, compiled
        wrapper = is_compiler(module) or (not path and [*module._modules] == ["module"])
        for name, child in reversed(module._modules.items()):
            if child is not None:
                stack.append((path if wrapper else f"{path}.{name}" if path else name, child, compiled))


def is_compiler(module: nn.Module) -> bool:
    """Is it what `torch.compile(model)` gives, around the model?"""
    return "_orig_mod" in module._modules


def _tensors(results: Any) -> Iterator[Any]:
    if isinstance(results, Tensor):
        yield results
    elif isinstance(results, (list, tuple)):
        for item in results:
            yield from _tensors(item)
    elif isinstance(results, dict):
        yield from _tensors([*results.values()])
