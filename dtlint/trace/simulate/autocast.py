"""CUDA's autocast, over CPU tensors: kernels on its own dispatch key, which stands for nothing else here.

torch's autocast state of "cuda" is left as it is; it lets the key through or not. Only the key has to be included,
because CPU tensors do not carry it. What the kernels do is ATen/autocast_mode.h, policy by policy.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import TensorBase

from dtlint.trace.simulate.kernels import Kernels
from dtlint.trace.simulate.placement import asked_by_tracer, is_placed
from dtlint.trace.simulate.policies import BESIDE_HEADER, HEADER, WITH_DTYPE, policies_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.trace.patches import Patches

__all__ = ["CudaAutocast"]

KEY = torch._C.DispatchKey.AutocastCUDA
ONLY_KEY = torch._C.DispatchKeySet(KEY)

_with_dtype = TensorBase.to
"""Under a name that no person would call: the tracer tells autocast's casts from those that are asked for by it."""


class CudaAutocast:
    """The kernels of all policies, from `install` to `remove`."""

    def __init__(self) -> None:
        text = (Path(torch.__file__).parent / HEADER).read_text(encoding="utf-8")
        self.policies = {**policies_of(text), **BESIDE_HEADER}
        """By overload, as `softmax.int` or `mm.default`."""
        self._kernels = Kernels("AutocastCUDA")
        self._casts: dict[int, tuple[weakref.ref[Tensor], Tensor]] = {}
        """The weights' casts, until the outermost autocast ends: a weight that is used twice is cast once."""

    def install(self, patches: Patches) -> None:
        """Register the kernels, and let this thread's operators come by them."""
        self._kernels.register(
            {
                func: getattr(self, f"_{policy}")(func)
                for name, policy in self.policies.items()
                for func in _overload(name)
            }
        )
        clear = torch.clear_autocast_cache

        def clear_autocast_cache() -> None:
            self._casts.clear()
            clear()

        enabled = torch.is_autocast_enabled

        def is_autocast_enabled(*device: str) -> bool:
            """The tracer asks for the device that a tensor is really on."""
            return enabled(*device) or (device == ("cpu",) and asked_by_tracer() and enabled("cuda"))

        patches.set(torch, "clear_autocast_cache", clear_autocast_cache)
        patches.set(torch, "is_autocast_enabled", is_autocast_enabled)
        self.include(True)

    def remove(self) -> None:
        """Undo `install`; torch's own kernels stand again."""
        self.include(False)
        self._kernels.remove()
        self._casts.clear()

    def include(self, on: bool) -> None:
        """Have the operators of this thread ask CUDA's autocast, which answers only where it is on."""
        torch._C._dispatch_tls_set_dispatch_key_included(KEY, on)

    # -- the policies -----------------------------------------------------------------------------------------------

    def _lower(self, func: Any) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            return self._run(func, torch.get_autocast_dtype("cuda"), args, kwargs)

        return kernel

    def _fp32(self, func: Any) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            return self._run(func, torch.float32, args, kwargs)

        return kernel

    def _promote(self, func: Any) -> Callable[..., Any]:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            return self._run(func, _widest((*args, *kwargs.values())), args, kwargs)

        return kernel

    def _set_dtype(self, func: Any) -> Callable[..., Any]:
        """An operator with an optional dtype: float32 where the program gave none."""
        at = next(i for i, argument in enumerate(func._schema.arguments) if argument.name == "dtype")

        def kernel(*args: Any, **kwargs: Any) -> Any:
            if _eligible(args[0]) and kwargs.get("dtype") is None and (len(args) <= at or args[at] is None):
                args, kwargs = args[:at], {**kwargs, "dtype": torch.float32}
            return self._run(func, None, args, kwargs)

        return kernel

    def _append_dtype(self, func: Any) -> Callable[..., Any]:
        """An operator without a dtype: its sibling that has one."""
        op, _, overload = WITH_DTYPE[f"{func._opname}.{func._overloadname}"].partition(".")
        sibling = getattr(getattr(torch.ops.aten, op), overload)
        defaults = [argument.default_value for argument in func._schema.arguments]

        def kernel(*args: Any, **kwargs: Any) -> Any:
            dtype = torch.float32 if _eligible(args[0]) else args[0].dtype
            return self._run(sibling, None, (*args, *defaults[len(args) :]), {**kwargs, "dtype": dtype})

        return kernel

    # -- casts ------------------------------------------------------------------------------------------------------

    def _run(self, func: Any, dtype: torch.dtype | None, args: Any, kwargs: Any) -> Any:
        """The operator itself, over casts of its operands, where none is given over the operands as they are."""
        with torch._C._ExcludeDispatchKeyGuard(ONLY_KEY), torch._C.DisableTorchFunction():
            if dtype is not None:
                args = [self._cast(a, dtype) for a in args]
                kwargs = {name: self._cast(a, dtype) for name, a in kwargs.items()}
            return func(*args, **kwargs)

    def _cast(self, value: Any, dtype: torch.dtype) -> Any:
        if isinstance(value, Tensor):
            if value.dtype is dtype or not _eligible(value):
                return value
            return self._cached(value, dtype) if _is_weight(value, dtype) else _with_dtype(value, dtype)
        if isinstance(value, (list, tuple)):
            return [self._cast(item, dtype) for item in value]
        return value

    def _cached(self, weight: Tensor, dtype: torch.dtype) -> Tensor:
        known = self._casts.get(id(weight))
        if known is not None and known[0]() is weight:
            return known[1]
        cast: Tensor = _with_dtype(weight, dtype)
        self._casts[id(weight)] = (weakref.ref(weight), cast)
        return cast


def _overload(name: str) -> Iterator[Any]:
    """The overload of this name, if this torch has it."""
    op, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, op, None)
    if packet is not None and overload in packet.overloads():
        yield getattr(packet, overload)


def _eligible(x: Tensor) -> bool:
    return x.is_floating_point() and x.dtype is not torch.float64 and is_placed(x)


def _is_weight(x: Tensor, dtype: torch.dtype) -> bool:
    """Is it a leaf whose cast autocast keeps?"""
    return (
        x.dtype is torch.float32
        and dtype is torch.get_autocast_dtype("cuda")
        and x.requires_grad
        and x.is_leaf
        and not x._is_view()
        and torch.is_autocast_cache_enabled()
    )


def _widest(values: tuple[Any, ...]) -> torch.dtype:
    """The dtype in which an operator of the list `promote` runs.

    Raises:
        RuntimeError: an operand has neither autocast's dtype nor float32; the words are torch's.
    """
    lower: torch.dtype = torch.get_autocast_dtype("cuda")
    current = lower
    for value in values:
        for x in value if isinstance(value, (list, tuple)) else (value,):
            if not isinstance(x, Tensor) or not _eligible(x):
                continue
            if torch.float32 in (current, x.dtype):
                current = torch.float32
            elif x.dtype is not lower:
                raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")
    return current
