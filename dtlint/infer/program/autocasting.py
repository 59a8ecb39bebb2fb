"""Autocast's state at each place of a program: which regions are open there, and what the program learns that asks for it.

Source: `torch.amp.autocast_mode`. Every device has a switch and a dtype of its own; a region that names no dtype keeps
the one in force. Without CUDA a region for it stays off, so that it is never certain to be on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dtlint.infer.calls import AUTOCAST_DEFAULTS
from dtlint.infer.program.functions import ANY_REGION
from dtlint.infer.program.leaving import Leaving
from dtlint.infer.values import NONE, UNKNOWN, Autocast, Constant, Dtype, Value

if TYPE_CHECKING:
    import ast

    from dtlint.infer.calls import Arguments
    from dtlint.infer.interproc.project import ModuleInfo, Project

__all__ = ["Autocasting"]

_ASKING = {
    "torch.is_autocast_enabled": "cuda",  # that device, if none is given
    "torch.is_autocast_cpu_enabled": "cpu",
}
_ASKING_DTYPE = {
    "torch.get_autocast_dtype": None,
    "torch.get_autocast_gpu_dtype": "cuda",
    "torch.get_autocast_cpu_dtype": "cpu",
}
_INHERITING = "torch.amp.autocast"
"""`torch.cuda.amp.autocast` and its like have a dtype of their own as a default."""
_LOWERED_ON_CPU = frozenset({"bfloat16", "float16"})
"""With any other dtype a region for cpu warns, and stays off."""


class Autocasting(Leaving):
    """An interpreter that knows the autocast regions around a place, through all calls that lead there."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        super().__init__(project, main)
        self.regions_known = True
        """Is every region opened by a `with` or a decorator that is in view?"""
        self.regions_opened = False
        """Is any region made in the program?"""
        self.switched_on: set[ast.Call] = set()
        """The calls that make regions which are on, if there is their device."""

    def regions_at_start(self) -> list[Autocast]:
        return [] if self.regions_known else [ANY_REGION]

    def regions_lost(self) -> None:
        """A region is opened that nobody sees close: there may be one anywhere."""
        if self.regions_known:
            self.regions_known = False
            self.objects.changed = True

    def region_for(self, device: str | None) -> Autocast | None:
        """The innermost region for a device, which may be off; None outside of all. Of an unknown one, nothing is known."""
        for region in reversed(self.flow.contexts):
            if device is None or region.device is None:
                return ANY_REGION
            if region.device == device:
                return region
        return None if device is not None else ANY_REGION

    def of_autocast(self, name: str, arguments: Arguments) -> Value | None:
        """Functions that ask for autocast's state, or change it by hand; None for others."""
        if name in _ASKING:
            return self.switch(arguments, _ASKING[name])
        if name in _ASKING_DTYPE:
            dtype = self.lower_dtype(arguments, _ASKING_DTYPE[name])
            return UNKNOWN if dtype is None else Dtype(dtype)
        if name.startswith("torch.set_autocast_") and "cache" not in name:
            self.regions_lost()
            return NONE
        return None

    def switch(self, arguments: Arguments, standard: str) -> Value:
        """`torch.is_autocast_enabled(device)`."""
        region = self.region_for(_device_asked(arguments, standard))
        if region is None or region.enabled is False:
            return Constant(False)
        certain = region.enabled and region.device == "cpu" and region.dtype in _LOWERED_ON_CPU
        return Constant(True) if certain else UNKNOWN

    def lower_dtype(self, arguments: Arguments, standard: str | None) -> str | None:
        """`torch.get_autocast_dtype(device)`, which a region sets even where it is off."""
        device = _device_asked(arguments, standard)
        region = self.region_for(device)
        return region.dtype if region is not None else AUTOCAST_DEFAULTS.get(device or "")

    def new_region(self, name: str, region: Autocast, arguments: Arguments) -> Autocast:
        """A region as it is made here: by the dtype in force, where it names none."""
        if not self.regions_opened:
            self.regions_opened = self.objects.changed = True
        given = arguments.get(1, "dtype")
        if name == _INHERITING and (given is None or given == NONE):
            region = replace(region, dtype=self.lower_dtype(arguments, None))
        if region.enabled and region.device not in ("cpu", None):
            self.switched_on.add(arguments.node)
            region = replace(region, enabled=None)
        elif region.enabled is not True:
            self.switched_on.discard(arguments.node)
        if region.device == "cpu" and region.dtype is not None and region.dtype not in _LOWERED_ON_CPU:
            region = replace(region, enabled=False)
        return region

    def is_on_with_device(self, region: Autocast) -> bool:
        """Is a region on wherever there is its device?"""
        made = region.made
        return region.enabled is None and made is not None and made in self.switched_on

    def lose(self, value: Value, depth: int = 0) -> None:
        if isinstance(value, Autocast):
            self.regions_lost()
        super().lose(value, depth)


def _device_asked(arguments: Arguments, standard: str | None) -> str | None:
    """The device that a question is about; None where that is not known."""
    given = arguments.get(0, "device_type")
    if given is None:
        return standard if arguments.complete else None
    return given.value if isinstance(given, Constant) and isinstance(given.value, str) else None
