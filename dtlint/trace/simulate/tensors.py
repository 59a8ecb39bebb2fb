"""What tensors and storages answer about their device, and how they move: no operator of the CPU's does either.

Moving to the simulated device copies, as it does to a real one; staying where one is gives the same tensor.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._C import TensorBase
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]  # the stub leaves it out
from torch.utils._device import DeviceContext, _device_constructors

from dtlint.trace.simulate.answers import LEGACY
from dtlint.trace.simulate.placement import HOME, MARK, PINNED, asked_by_tracer, place, placed, unplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.trace.patches import Patches
    from dtlint.trace.simulate.hardware import Hardware

__all__ = ["answer"]

UNSEEN = {
    "tensor": False,
    "as_tensor": True,
    "asarray": True,
    **{f"sparse_{layout}_tensor": False for layout in ("coo", "csr", "csc", "bsr", "bsc", "compressed")},
}
"""Constructors that make a CPU tensor and move it where no mode sees it; may they return what they were given?"""

_real_device = TensorBase.device.__get__
_to = TensorBase.to


def answer(patches: Patches, hardware: Hardware) -> None:
    """Have tensors and storages answer as with the hardware."""
    methods = {**_attributes(), **_moves(hardware), **_kinds(hardware)}
    for name, value in methods.items():
        patches.set(Tensor, name, value)
    # What a lazy layer's parameter allows is asked of the method that Tensor has then.
    lazy = UninitializedTensorMixin._allowed_methods
    taken = [value for name, value in methods.items() if getattr(TensorBase, name, None) in lazy]
    patches.set(UninitializedTensorMixin, "_allowed_methods", [*lazy, *taken])
    for name, value in _storage(hardware).items():
        patches.set(torch.UntypedStorage, name, value)
    constructors = _device_constructors()  # before they are replaced: torch keeps it
    makers: dict[Any, Callable[..., Any]] = {}
    for real in constructors:
        name = real.__name__
        if name in vars(torch) and vars(torch)[name] is real:
            makers[real] = _maker(real, hardware)
            patches.set(torch, name, makers[real])
    _default_device(patches, makers)
    parse_to = torch._C._nn._parse_to

    def parse_to_numbered(*args: Any, **kwargs: Any) -> Any:
        """What `module.to` takes: a number is a device."""
        if args and isinstance(args[0], int):
            args = (hardware.indexed(args[0]), *args[1:])
        return parse_to(*args, **kwargs)

    patches.set(torch._C._nn, "_parse_to", parse_to_numbered)


def _attributes() -> dict[str, Any]:
    def device(self: Tensor) -> torch.device:
        where = placed(self)
        real: torch.device = _real_device(self)
        return real if where is None or asked_by_tracer() else where

    def get_device(self: Tensor) -> int:
        where = placed(self)
        return TensorBase.get_device(self) if where is None else where.index

    return {
        "device": property(device),
        "is_cuda": property(lambda self: placed(self) is not None or _real_device(self).type == "cuda"),
        "is_cpu": property(lambda self: placed(self) is None and _real_device(self).type == "cpu"),
        "get_device": get_device,
    }


def _moves(hardware: Hardware) -> dict[str, Any]:
    def move(x: Tensor, device: Any, *rest: Any, **kwargs: Any) -> Tensor:
        """`x.to(device, *rest)`, over the border or not. Other devices, as meta, are torch's matter."""
        device = hardware.indexed(device) if isinstance(device, int) else torch.device(device)
        if device.type not in ("cuda", "cpu"):
            return _to(x, device, *rest, **kwargs)
        target = hardware.indexed(device) if device.type == "cuda" else None
        if placed(x) == target and _real_device(x) == HOME:
            return _to(x, HOME, *rest, **kwargs)
        moved = _to(x, HOME, *rest[:2], **{**kwargs, "copy": True})
        return unplace(moved) if target is None else place(moved, target)

    @functools.wraps(TensorBase.to)
    def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if args and isinstance(args[0], Tensor):
            return move(self, args[0].device, args[0].dtype, *args[1:], **kwargs)
        if args and isinstance(args[0], (str, int, torch.device)):
            return move(self, *args, **kwargs)
        device = kwargs.pop("device", None)
        if device is None:
            return _to(self, *args, **kwargs)
        dtype = kwargs.pop("dtype", None)
        return move(self, device, *((dtype,) if dtype is not None else ()), **kwargs)

    def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        return move(self, hardware.indexed(device), **kwargs)

    def cpu(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return move(self, HOME, **kwargs)

    def pin_memory(self: Tensor, device: Any = None) -> Tensor:
        if is_pinned(self):
            return self
        pinned = self.clone()
        setattr(pinned.untyped_storage(), PINNED, True)
        return pinned

    def is_pinned(self: Tensor, device: Any = None) -> bool:
        return bool(self.untyped_storage().__dict__.get(PINNED, False))

    def record_stream(self: Tensor, stream: Any) -> None:
        """There is one queue of work, and it is empty."""

    return {f.__name__: f for f in (cuda, cpu, pin_memory, is_pinned, record_stream)} | {"to": to}


def _kinds(hardware: Hardware) -> dict[str, Any]:
    """Methods that go by a tensor's type, which names its device too."""
    names = {dtype: f"torch.cuda.{name}" for name, dtype in LEGACY.items()}

    def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
        where = placed(self)
        if dtype is None:
            return TensorBase.type(self) if where is None else names.get(self.dtype, TensorBase.type(self))
        if isinstance(dtype, torch.dtype):
            return TensorBase.type(self, dtype)
        name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
        if name.startswith("torch.cuda."):
            return self.to(hardware.indexed(), LEGACY[name.rpartition(".")[2]])
        return TensorBase.type(self.cpu(), dtype)

    def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return _beside(self, TensorBase.new(self, *args, **kwargs))

    def new_tensor(self: Tensor, data: Any, *, device: Any = None, **kwargs: Any) -> Tensor:
        target = hardware.indexed(device) if device is not None and torch.device(device).type == "cuda" else None
        made = TensorBase.new_tensor(self, data, **kwargs)
        if device is None:
            return _beside(self, made)
        return made if target is None else place(made, target)

    return {"type": type, "new": new, "new_tensor": new_tensor}


def _beside(x: Tensor, made: Tensor) -> Tensor:
    where = placed(x)
    if where is not None:
        place(made, where)
    return made


def _storage(hardware: Hardware) -> dict[str, Any]:
    """Storages are copied by pickle and deepcopy, where no mode sees it."""
    base = torch.UntypedStorage
    get = vars(torch._C.StorageBase)["device"].__get__

    def device(self: Any) -> torch.device:
        where: torch.device | None = self.__dict__.get(MARK)
        return get(self) if where is None or asked_by_tracer() else where

    def clone(self: Any) -> Any:
        copy = base(self.nbytes()).copy_(self)  # type: ignore[no-untyped-call]
        copy.__dict__.update(self.__dict__)
        return copy

    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        return to(self, hardware.indexed(device))

    def to(self: Any, device: Any, non_blocking: bool = False) -> Any:
        where = hardware.indexed(device) if torch.device(device).type == "cuda" else None
        if self.__dict__.get(MARK) == where:
            return self
        copy = base(self.nbytes()).copy_(self)  # type: ignore[no-untyped-call]
        if where is not None:
            setattr(copy, MARK, where)
        return copy

    return {
        "device": property(device),
        "is_cuda": property(lambda self: MARK in self.__dict__ or get(self).type == "cuda"),
        "clone": clone,
        "cuda": cuda,
        "to": to,
    }


def _maker(real: Callable[..., Any], hardware: Hardware) -> Callable[..., Any]:
    name = real.__name__

    @functools.wraps(real)
    def make(*args: Any, **kwargs: Any) -> Any:
        device = kwargs.get("device")
        if device is None:
            return real(*args, **kwargs)
        device = hardware.indexed(device) if isinstance(device, int) else torch.device(device)
        if device.type != "cuda" or name not in UNSEEN:
            return real(*args, **{**kwargs, "device": device})
        made = real(*args, **{**kwargs, "device": HOME})
        return made.to(device) if UNSEEN[name] else place(made, hardware.indexed(device))

    return make


def _default_device(patches: Patches, makers: dict[Any, Callable[..., Any]]) -> None:
    torch_function = DeviceContext.__torch_function__

    def __torch_function__(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in makers and kwargs.get("device") is None:
            return makers[func](*args, **{**kwargs, "device": self.device})
        return torch_function(self, func, types, args, kwargs)  # type: ignore[no-untyped-call]

    patches.set(DeviceContext, "__torch_function__", __torch_function__)

    def set_default_tensor_type(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        torch.set_default_dtype(LEGACY[name.rpartition(".")[2]])
        torch.set_default_device("cuda" if name.startswith("torch.cuda.") else None)

    patches.set(torch, "set_default_tensor_type", set_default_tensor_type)
