"""timm (0.9 to 1.0) makes a model by the name of the function that makes it: `timm.create_model("resnet18", num_classes=10)`.

As https://huggingface.co/docs/timm/reference/models has it, what is given is handed on to that function but for what the factory
needs itself, and for None. Modules register these functions when they are imported; here the one is asked for by its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments
from dtlint.infer.domain.values import NONE, TOP, Const, Function, Value
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    from dtlint.infer.context import Context

_ENTRIES = "timm.models"
"""The module that has all of these functions."""
_OF_FACTORY = frozenset({"model_name", "checkpoint_path", "cache_dir", "scriptable", "exportable", "no_jit"})


@model("timm.create_model", "timm.models.create_model", "timm.models._factory.create_model")
def _create(ctx: Context, arguments: Arguments) -> Value:
    name = arguments.get(0, "model_name")
    if (
        not isinstance(name, Const)
        or not isinstance(name.value, str)
        or not name.value.partition(".")[0].isidentifier()
    ):
        ctx.modules.opened.add("timm")  # from a hub, a folder, or by an option: any of its models
        return TOP
    entry = ctx.modules.imported_member(
        ctx, _ENTRIES, name.value.partition(".")[0]
    )  # a tag of weights follows the name
    if not isinstance(entry, Function):
        ctx.modules.opened.add("timm")
        return TOP
    given = {one: value for one, value in arguments.keywords.items() if one not in _OF_FACTORY and value != NONE}
    given["pretrained"] = arguments.get(1, "pretrained") or Const(False)
    return ctx.semantics.call(ctx, entry, Arguments([], given, arguments.complete, arguments.node))
