"""torchvision: its transforms, one behind the other, and its datasets of labelled pictures.

Source: torchvision's documentation. A dataset gives pairs of what its transforms make of a picture of 8 bits, and a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.context import Arguments
from dtlint.infer.domain.values import (
    NONE,
    TOP,
    Array,
    External,
    Number,
    Partial,
    Ref,
    Tensor,
    Tuple,
    Unknown,
    Value,
    choices,
)
from dtlint.infer.models.casts import dtype_of
from dtlint.infer.models.pictures import IMAGE
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_TRANSFORMS = ("torchvision.transforms.", "torchvision.transforms.v2.")
_DATASET = "torchvision.datasets.VisionDataset"


def _in_both(*names: str) -> list[str]:
    return [f"{module}{name}" for module in _TRANSFORMS for name in names]


# -- transforms ----------------------------------------------------------------------------------------------------------


@model(*_in_both("Compose"))
def _compose(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("torchvision.transforms.Compose.__call__"), (arguments.get(0, "transforms") or TOP,))


@model("torchvision.transforms.Compose.__call__")
def _call_each(ctx: Context, arguments: Arguments) -> Value:
    """Each transform is given what the one before it has made."""
    transforms = ctx.semantics.items(ctx, arguments.args[0], arguments.node)
    if not isinstance(transforms, Tuple) or len(arguments.args) != 2:
        return TOP
    value = arguments.args[1]
    for place, one in enumerate(transforms.items):
        value = ctx.semantics.call(ctx, one, Arguments([value], {}, True, (arguments.node, place)))
    return value


@model(*_in_both("Lambda"))
def _lambda(ctx: Context, arguments: Arguments) -> Value:
    return arguments.get(0, "lambd") or TOP


_SHAPING = (
    *("Resize", "CenterCrop", "RandomCrop", "RandomResizedCrop", "RandomHorizontalFlip", "RandomVerticalFlip", "Pad"),
    *("RandomRotation", "RandomAffine", "RandomPerspective", "ColorJitter", "GaussianBlur", "RandomErasing"),
    *("Grayscale", "RandomGrayscale", "Normalize", "AutoAugment", "RandAugment", "TrivialAugmentWide"),
)
"""Transforms that keep the dtype of what they are given, a picture or a tensor."""


@model(*_in_both(*_SHAPING))
def _shaping(ctx: Context, arguments: Arguments) -> Value:
    return External("torchvision.transforms.keeping")


@model("torchvision.transforms.keeping")
def _keep(ctx: Context, arguments: Arguments) -> Value:
    value = arguments.args[0] if arguments.args else TOP
    if isinstance(value, Tensor):
        return Tensor(value.dtypes, value.symbol, value.rank, device=value.device)
    if isinstance(value, Unknown):
        return Unknown(value.dtypes, value.symbol)
    return value if isinstance(value, Ref) and value.address.kind == IMAGE else TOP


@model("torchvision.transforms.ConvertImageDtype")
def _convert(ctx: Context, arguments: Arguments) -> Value:
    return Partial(External("torchvision.transforms.converting"), (arguments.get(0, "dtype") or TOP,))


@model("torchvision.transforms.converting")
def _converted(ctx: Context, arguments: Arguments) -> Value:
    dtype = dtype_of(arguments.args[0])
    return TOP if dtype is None else Tensor(dtype.dtypes, dtype.symbol, -1)


@model(*_in_both("PILToTensor"))
def _pil_to_tensor(ctx: Context, arguments: Arguments) -> Value:
    return External("torchvision.transforms.functional.pil_to_tensor")


# -- datasets ------------------------------------------------------------------------------------------------------------

_PLACES = {
    "ImageFolder": (1, 2),
    **dict.fromkeys(("MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100"), (2, 3)),
    "SVHN": (2, 3),
    "STL10": (3, 4),
}
"""Where a dataset takes the transforms of its pictures and of its labels."""


def _dataset(name: str, image: int, label: int) -> None:
    @model(f"torchvision.datasets.{name}")
    def make(ctx: Context, arguments: Arguments) -> Value:
        made = ctx.allocate(arguments.node, _DATASET)
        picture = ctx.allocate((arguments.node, "picture"), IMAGE, Array(frozenset({"uint8"}), False))
        given = [arguments.get(image, "transform") or NONE, arguments.get(label, "target_transform") or NONE]
        ctx.store.write(made.address, "*picture", picture)
        ctx.store.write(made.address, "transform", given[0] if arguments.complete else TOP)
        ctx.store.write(made.address, "target_transform", given[1] if arguments.complete else TOP)
        return made


for _name, _places in _PLACES.items():
    _dataset(_name, *_places)


@model(f"{_DATASET}.__getitem__")
def _item(ctx: Context, arguments: Arguments) -> Value:
    owner = arguments.args[0]
    if not isinstance(owner, Ref):
        return TOP
    held: list[Value] = []
    picture = ctx.store.read(owner.address, "*picture") or TOP
    for value, name in ((picture, "transform"), (Number(Category.INTEGER), "target_transform")):
        transform = ctx.store.read(owner.address, name) or TOP
        known = len(choices(transform)) == 1 and transform != TOP
        if transform != NONE:
            node = (arguments.node, name)
            value = ctx.semantics.call(ctx, transform, Arguments([value], {}, True, node)) if known else TOP
        held.append(value)
    return Tuple(tuple(held))


@model("torchvision.utils.make_grid")
def _make_grid(ctx: Context, arguments: Arguments) -> Value:
    """Pictures in one; `normalize=` makes a float one."""
    given = arguments.args[0] if arguments.args else TOP
    if not isinstance(given, Tensor) or set(arguments.keywords) - {"nrow", "padding", "pad_value"}:
        return TOP
    return Tensor(given.dtypes, given.symbol, 3, device=given.device)
