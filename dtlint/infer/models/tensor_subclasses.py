"""Classes of the program that inherit from torch.Tensor: tensors of theirs are told of as tensors.

As https://docs.pytorch.org/docs/stable/notes/extending.html#subclassing-torch-tensor has it, operators give what they give for
tensors, unless `__torch_function__` makes them do something else, which is taken not to change dtypes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.domain.values import TOP, Const, External, ProjectClass, Value
from dtlint.infer.models import plain_tensors
from dtlint.infer.models.instances import HAS_TENSORS
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Arguments, Context

__all__: list[str] = []


@model("torch.Tensor.as_subclass")
def _as_subclass(ctx: Context, arguments: Arguments) -> Value:
    cls = arguments.get(1, "cls") or TOP
    if isinstance(cls, ProjectClass):
        for one in cls.definition.order:
            if isinstance(one, ProjectClass):
                ctx.store.unfreeze(one.definition.namespace)
                ctx.store.overwrite(one.definition.namespace, HAS_TENSORS, Const(True))
    elif cls != External("torch.Tensor"):
        return TOP
    return plain_tensors.plain(ctx, arguments.args[0])
