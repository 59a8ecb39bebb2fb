"""Images of PIL and OpenCV, as far as dtypes go: what arrays they make."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import Category
from dtlint.infer.domain.values import NONE, Array, Const, External, Number, Ref, Tensor, Tuple, Value
from dtlint.infer.models.ops import default_dtypes
from dtlint.infer.models.registry import attribute, model
from dtlint.infer.state import CONTENT

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__ = ["IMAGE"]

IMAGE = "PIL.Image.Image"
"""The kind of an image's heap object; its content is the array that NumPy makes of it."""

_UINT8 = frozenset({"uint8"})
_MODES = {
    **dict.fromkeys(("RGB", "RGBA", "L", "CMYK", "YCbCr", "HSV", "LAB", "P"), "uint8"),
    "F": "float32",
    "I": "int32",
}
"""The dtype of `np.array(image)` by the image's mode. Source: PIL's documentation of modes."""


def _of_mode(mode: Value | None) -> Array:
    dtype = _MODES.get(mode.value) if isinstance(mode, Const) and isinstance(mode.value, str) else None
    return Array(None if dtype is None else frozenset({dtype}), False)


def _image(ctx: Context, arguments: Arguments, content: Array) -> Value:
    return ctx.allocate(arguments.node, IMAGE, content)


@model("PIL.Image.open", "PIL.Image.frombytes")
def _opened(ctx: Context, arguments: Arguments) -> Value:
    return _image(ctx, arguments, Array(None, False))


@model("PIL.Image.new")
def _new(ctx: Context, arguments: Arguments) -> Value:
    return _image(ctx, arguments, _of_mode(arguments.get(0, "mode")))


@model("PIL.Image.fromarray")
def _from_array(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[0] if arguments.args else NONE
    known = isinstance(given, Array) and len(arguments.args) == 1 and given.dtypes == _UINT8
    return _image(ctx, arguments, Array(_UINT8 if known else None, False))


@model(f"{IMAGE}.convert")
def _converted(ctx: Context, arguments: Arguments) -> Value:
    return _image(ctx, arguments, _of_mode(arguments.get(1, "mode")))


@model(*(f"{IMAGE}.{name}" for name in ("resize", "crop", "rotate", "transpose", "copy", "filter", "transform")))
def _kept(ctx: Context, arguments: Arguments) -> Value:
    return _image(ctx, arguments, _content(ctx, arguments.args[0]))


def _content(ctx: Context, value: Value) -> Array:
    content = ctx.store.read(value.address, CONTENT) if isinstance(value, Ref) else None
    return content if isinstance(content, Array) else Array(None, False)


@attribute(f"{IMAGE}.size")
def _size(ctx: Context, value: Value) -> Value:
    return Tuple((Number(Category.INTEGER), Number(Category.INTEGER)))


@attribute(f"{IMAGE}.width", f"{IMAGE}.height")
def _width(ctx: Context, value: Value) -> Value:
    return Number(Category.INTEGER)


@model("cv2.imread")
def _read(ctx: Context, arguments: Arguments) -> Value:
    """Without flags always 8 bits."""
    return Array(_UINT8 if len(arguments.args) == 1 and not arguments.keywords else None, False)


@model("cv2.cvtColor", "cv2.resize", "cv2.flip", "cv2.rotate", "cv2.GaussianBlur", "cv2.warpAffine")
def _same(ctx: Context, arguments: Arguments) -> Value:
    given = arguments.args[0] if arguments.args else NONE
    return Array(given.dtypes if isinstance(given, Array) else None, False)


@model("torchvision.transforms.functional.to_tensor")
def _to_tensor(ctx: Context, arguments: Arguments) -> Value:
    """A picture of 8 bits is divided by 255, whatever else keeps its dtype."""
    given = arguments.args[0] if arguments.args else NONE
    array = given if isinstance(given, Array) else _content(ctx, given)
    if array.dtypes is None:
        return Tensor(None, None, -1)
    return Tensor(default_dtypes(ctx) if array.dtypes == _UINT8 else array.dtypes, None, -1)


@model("torchvision.transforms.functional.pil_to_tensor")
def _pil_to_tensor(ctx: Context, arguments: Arguments) -> Value:
    return Tensor(_content(ctx, arguments.args[0]).dtypes if arguments.args else None, None, -1)


@model("torchvision.transforms.ToTensor")
def _transform(ctx: Context, arguments: Arguments) -> Value:
    return External("torchvision.transforms.functional.to_tensor")
