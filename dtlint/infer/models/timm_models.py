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
    words = name.value.split(".") if isinstance(name, Const) and isinstance(name.value, str) else [""]
    # A tag of weights follows the name. From a hub, from a folder, or by an option it may be any of timm's models.
    entry = ctx.modules.imported_member(ctx, _ENTRIES, words[0]) if words[0].isidentifier() else TOP
    if not isinstance(entry, Function):
        ctx.modules.opened.add("timm")
        return TOP
    given = {one: value for one, value in arguments.keywords.items() if one not in _OF_FACTORY and value != NONE}
    given["pretrained"] = arguments.get(1, "pretrained") or Const(False)
    return ctx.semantics.call(ctx, entry, Arguments([], given, arguments.complete, arguments.node))
