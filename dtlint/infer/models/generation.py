"""transformers' `generate` (4.40 to 5): it runs the model on token ids, its own among them, until it gives them back.

As https://huggingface.co/docs/transformers/main_classes/text_generation has it: the model is called with `input_ids`, or with
`decoder_input_ids` and what its encoder gives, with the attention mask and whatever else `generate` was given that `forward`
takes, and with a cache of keys and values from the second token on. The result is ids, unless a `ModelOutput` is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.infer.context import Arguments, NeverReturns
from dtlint.infer.domain.lattice import join
from dtlint.infer.domain.values import NONE, TOP, Const, ProjectClass, Ref, Tensor, Value, choices
from dtlint.infer.models import drivers
from dtlint.infer.models.registry import model

if TYPE_CHECKING:
    import ast

    from dtlint.infer.context import Context

__all__: list[str] = []

_MIXIN = "transformers.generation.utils.GenerationMixin"
_OPTIONS = frozenset({"inputs", "generation_config", "labels", "return_dict"})
"""What is not passed on to `forward`."""
_KEPT = frozenset({"attention_mask", "decoder_attention_mask", "use_cache"})
"""What is passed on with each token; all else with the first."""
_USUAL = frozenset({"labels", "inputs_embeds", "logits_to_keep", "use_cache", "return_dict", "output_attentions"})
"""What a model that prepares its inputs by itself is not given for that."""
_CACHE_MODULE = "transformers.cache_utils"
_CACHES = ("cache", "past_key_values")
_IDS = Tensor(frozenset({"int64"}), None, 2)


@model(f"{_MIXIN}.generate")
def _generate(ctx: Context, arguments: Arguments) -> Value:
    ctx.modules.opened.add("transformers.generation")
    for owner in (*choices(arguments.args[0]), arguments.keywords.get("assistant_model", NONE)):
        if isinstance(owner, Ref):
            _run(ctx, owner, arguments)
    config, wants_parts = arguments.get(2, "generation_config"), arguments.keywords.get("return_dict_in_generate", NONE)
    gives_ids = config in (None, NONE) and wants_parts in (NONE, Const(False)) and arguments.complete
    if not gives_ids:  # it gives an object of a class that outputs of models are of
        ctx.modules.opened.add("transformers.utils.generic")
    return _IDS if gives_ids else TOP


def _run(ctx: Context, owner: Ref, arguments: Arguments) -> None:
    """Run a model on a first token and on those that follow."""
    forward, prepares = _method(owner, "forward"), _method(owner, "prepare_inputs_for_generation")
    if forward is None:
        return
    parameters = forward[1].args
    taken = [one.arg for one in (*parameters.args[1:], *parameters.kwonlyargs)]
    given = {name: value for name, value in arguments.keywords.items() if name in taken and name not in _OPTIONS}
    passed = {name: value if name in _KEPT else join(value, NONE) for name, value in given.items()}
    if not arguments.complete or prepares is None or prepares[0] != _MIXIN:
        passed = {**{name: TOP for name in taken if name not in _USUAL}, **passed}
    for name in ("position_ids", "cache_position"):
        if name in taken:
            passed[name] = join(given.get(name, NONE), _IDS)
    mask = passed.get("attention_mask", NONE)
    if "attention_mask" in taken:
        passed["attention_mask"] = _IDS if mask == NONE else mask
    if "decoder_input_ids" in taken:
        prompt = arguments.get(1, "inputs") or arguments.keywords.get("input_ids") or _IDS
        passed["encoder_outputs"] = _encoded(ctx, owner, prompt, mask, arguments)
        passed.pop("input_ids", None)
        passed["decoder_input_ids"] = _IDS
    else:
        passed["input_ids"] = _IDS
        cache = _cache(ctx, arguments)
        passed.update({name: cache for name in _CACHES if name in taken and name not in given})

    def once() -> None:
        ctx.semantics.call(ctx, owner, Arguments([], passed, True, arguments.node))

    drivers.repeated(ctx, once)


def _method(owner: Ref, name: str) -> tuple[str, ast.FunctionDef] | None:
    """The method of a model's class, behind whatever decorators, and the class that defines it."""
    cls = owner.address.kind
    for one in cls.definition.order if isinstance(cls, ProjectClass) else ():
        node = one.definition.method(name) if isinstance(one, ProjectClass) else None
        if node is not None:
            return one.name, node
    return None


def _encoded(ctx: Context, owner: Ref, prompt: Value, mask: Value, arguments: Arguments) -> Value:
    """What the encoder gives for the prompt."""
    method = drivers.method_of(ctx, owner, "get_encoder", arguments.node)
    encoder = drivers.call_back(ctx, method, (), arguments.node)
    if not isinstance(encoder, Ref):
        return TOP
    try:
        return ctx.semantics.call(ctx, encoder, Arguments([prompt], {"attention_mask": mask}, True, arguments.node))
    except NeverReturns:
        return TOP


def _cache(ctx: Context, arguments: Arguments) -> Value:
    """An empty cache, of the kind that is taken where none is asked for."""
    made = ctx.modules.imported_member(ctx, _CACHE_MODULE, "DynamicCache")
    if isinstance(made, ProjectClass):
        try:
            return ctx.semantics.call(ctx, made, Arguments([], {}, True, arguments.node))
        except NeverReturns:
            pass
    ctx.modules.opened.add(_CACHE_MODULE)
    return TOP
