"""The classes of values that are not read as source, their bases, and the attributes of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import (
    Array,
    Bound,
    Const,
    Device,
    Dtype,
    Many,
    Mapping,
    Number,
    Ref,
    Region,
    Tensor,
    Tuple,
    Unknown,
    Value,
)
from dtlint.infer.models import mutation
from dtlint.infer.models.module_trees import LOADED
from dtlint.infer.models.module_views import is_view
from dtlint.infer.models.plain_tensors import plain
from dtlint.infer.models.registry import ATTRIBUTES, MODELS
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Context

__all__ = ["assign_tensor_attribute", "assign_weight_attribute", "bases_of", "class_of", "weight_attribute"]

_OF_CONSTANTS: dict[type, str] = {
    str: "builtins.str",
    bytes: "builtins.bytes",
    bool: "builtins.bool",
    int: "builtins.int",
    float: "builtins.float",
    complex: "builtins.complex",
    type(None): "builtins.NoneType",
}
_OF_NUMBERS = {
    Category.BOOL: "builtins.bool",
    Category.INTEGER: "builtins.int",
    Category.FLOAT: "builtins.float",
    Category.COMPLEX: "builtins.complex",
}


def class_of(value: Value) -> str | None:
    """The qualified name of a value's class; None where it is not known."""
    if isinstance(value, (Tensor, Unknown)):
        return "torch.Tensor"
    if isinstance(value, Const):
        return _OF_CONSTANTS.get(type(value.value))
    if isinstance(value, Number):
        return _OF_NUMBERS[value.category]
    if isinstance(value, Array):
        return "numpy.ndarray"
    if isinstance(value, Tuple):
        return "builtins.tuple"
    if isinstance(value, Many):
        return "builtins.iterator"
    if isinstance(value, Mapping):
        return "builtins.dict"
    if isinstance(value, Dtype):
        return "torch.dtype"
    if isinstance(value, Device):
        return "torch.device"
    if isinstance(value, Region):
        return "torch.amp.autocast"
    if isinstance(value, Ref) and isinstance(value.address.kind, str):
        return value.address.kind
    return "builtins.dict" if is_view(value) else None


def bases_of(name: str) -> tuple[str, ...]:
    """The base classes of a class that is not read as source, nearest first."""
    if name in _LAYERS:
        return (_LAYERS[name], "torch.nn.Module")
    if name.startswith("torch.nn.") and name.count(".") == 2 and name[9:10].isupper():
        return ("torch.nn.Module",) if name not in ("torch.nn.Parameter", "torch.nn.Buffer") else ("torch.Tensor",)
    if name.startswith("torch.optim.lr_scheduler."):
        return ("torch.optim.lr_scheduler.LRScheduler",)
    if name.startswith("torch.optim."):
        return ("torch.optim.Optimizer",)
    return _BASES.get(name, ())


_LAYERS = {"torch.nn.ReLU6": "torch.nn.Hardtanh", "torch.nn.LazyLinear": "torch.nn.Linear"} | {
    f"torch.nn.LazyConv{way}{n}d": f"torch.nn.Conv{way}{n}d" for way in ("", "Transpose") for n in (1, 2, 3)
}
"""Layers that inherit from others that have names in torch.nn."""
_BASES: dict[str, tuple[str, ...]] = {
    "collections.OrderedDict": ("builtins.dict",),
    "builtins.object.__dict__": ("builtins.dict",),
    "collections.defaultdict": ("builtins.dict",),
    "collections.Counter": ("builtins.dict",),
    "collections.abc.MutableMapping": ("collections.abc.Mapping",),
    "typing.MutableMapping": ("collections.abc.MutableMapping", "collections.abc.Mapping"),
    "typing.Mapping": ("collections.abc.Mapping",),
    "collections.deque": ("builtins.list",),
    "builtins.bool": ("builtins.int",),
    "torch.Size": ("builtins.tuple",),
    LOADED: ("torch.nn.Module",),
    "torch.cuda.amp.GradScaler": ("torch.amp.GradScaler",),
    "torch.cpu.amp.GradScaler": ("torch.amp.GradScaler",),
    "torch.utils.data.TensorDataset": ("torch.utils.data.Dataset",),
    "lightning.pytorch.LightningModule": ("torch.nn.Module",),
    "lightning.LightningModule": ("torch.nn.Module",),
    "pytorch_lightning.LightningModule": ("torch.nn.Module",),
}


def weight_attribute(ctx: Context, value: Ref, name: str) -> Value:
    """An attribute of a parameter or a buffer."""
    known = ctx.store.read(value.address, name)
    if known is not None:
        return known
    tensor = plain(ctx, value)
    if name == "grad":
        return tensor
    getter = ATTRIBUTES.get(f"torch.Tensor.{name}")
    if getter is not None and name != "data":
        return getter(ctx, tensor)
    if name == "data":
        return tensor
    if f"torch.nn.Parameter.{name}" in MODELS:
        return Bound(value, f"torch.nn.Parameter.{name}")
    return Bound(value if name in _SAME else tensor, f"torch.Tensor.{name}")


_SAME = frozenset({"float", "half", "double", "bfloat16"})
"""Methods that give the parameter itself where it has the dtype already."""


def assign_weight_attribute(ctx: Context, value: Ref, name: str, given: Value) -> None:
    """`p.data = x` changes the dtype of a parameter; `p.grad = x` does not."""
    if name == "data":
        tensor = plain(ctx, given)
        ctx.store.write(value.address, CONTENT, tensor if isinstance(tensor, Tensor) else Tensor())
    elif name != "requires_grad":
        ctx.store.write(value.address, name, given)


def assign_tensor_attribute(ctx: Context, value: Tensor, name: str, given: Value) -> None:
    """`x.data = y`: the same tensor has another dtype, under whatever names it is held."""
    if name == "data":
        tensor = plain(ctx, given)
        new = Tensor(tensor.dtypes, tensor.symbol) if isinstance(tensor, (Tensor, Unknown)) else Tensor()
        mutation.became(ctx, value, new)
