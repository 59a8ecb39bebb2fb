"""DT313: a tensor that can be bfloat16 is handed to NumPy, which has no such dtype."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix
from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.reach import Reach
from dtlint.infer.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._arrays_of import made_arrays
from dtlint_rules._fixes import operand_text
from dtlint_rules._half import half_at, is_half
from dtlint_rules._kept import kept
from dtlint_rules._known import known
from dtlint_rules._names import last_name, names, said
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._origin import Kind, in_order
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import keyword, receiver, root_of
from dtlint_rules._scripts import is_script
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Flow
    from dtlint.infer.facts import ModuleFacts
    from dtlint.infer.values import Value
    from dtlint.source.place import Place
    from dtlint_rules._origin import Roots

__all__ = ["Bf16ToNumpy"]

_TAKING = frozenset({"numpy.asarray", "numpy.array", "numpy.ascontiguousarray"})
_MODEL = re.compile(
    r"(?:^|_)(?:model|net|unet|vae|gan|encoder|decoder|transformer|vocoder|backbone|llm|lm|prior)$",
    re.IGNORECASE,
)
"""Names of what computes in the dtype that it is loaded in. A pipeline gives pictures."""
_NO_TORCH = frozenset({"onnxruntime", "jax", "flax", "tensorrt", "OnnxRuntimeModel"})
"""Names by which a module shows that its models run elsewhere."""
_WIDE = frozenset({"float", "float32"})
_WEIGHT = re.compile(r"(?:^|_)(?:weight|param|parameter)$", re.IGNORECASE)
_ACTIVATION = re.compile(r"(?:^|_)(?:embeddings?|embeds|hidden_states?|logits|latents?|activations?)$")
_WHOLE = re.compile(
    r"(?:^|_)(?:ids?|idx|index|indices|labels?|tokens?|masks?|lengths?|targets?|classes|tokenizer|processor)$"
    r"|generate|argmax|argsort|topk|nonzero|decode_batch|^(?:eq|ne|gt|lt|ge|le|sequences|config|parameters)$"
)
"""Names of integers, bools and texts, and of what gives them."""


class Bf16ToNumpy(Rule):
    """A bfloat16 tensor is converted to NumPy.

    ## What it does
    Reports `.numpy()`, `np.asarray` and `np.array` of a tensor that is bfloat16 on some path; and of what a model
    computes, of weights and of latents, where the file asks for bfloat16, or where the model is whatever the caller of a
    pipeline loads; and of a tensor that is made in the dtype of another, `torch.tensor(0, dtype=scores.dtype).numpy()`. A
    tensor that was cast before is fine.

    Conditional, and so reported with `--preview` only: tensors that are not known to be bfloat16.

    ## Why it matters
    NumPy has no bfloat16: "TypeError: Got unsupported ScalarType BFloat16". It happens at the end, when results are saved,
    logged or drawn, and to the users of a library first, for its authors ran it in float32 or float16.

    ## Example
    ```python
    import torch


    @torch.no_grad()
    def embed(model, batch):
        model = model.to(torch.bfloat16)
        hidden = model(batch)
        return hidden.cpu().numpy()
    ```

    ## Use instead
    ```python
    import torch


    @torch.no_grad()
    def embed(model, batch):
        model = model.to(torch.bfloat16)
        hidden = model(batch)
        return hidden.cpu().float().numpy()
    ```

    ## Fix safety
    The fix casts to float32 before. It is unsafe, for a float16 or float64 tensor gives a float32 array then.

    ## References
    - [torch.Tensor.numpy](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html)
    """

    code, name = "DT313", "bf16-to-numpy"
    fix = Applicability.UNSAFE
    calls = frozenset({"numpy", *(target.rpartition(".")[2] for target in _TAKING)})
    triggers = ("numpy",)
    needs = (TORCH, attributes(calls))

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return made_arrays(facts)

    def on_call(self, call: Call) -> Iterable[Finding]:
        method = call.method == "numpy" and isinstance(call.node.func, ast.Attribute)
        if method:
            value, node = call.receiver, call.node.func.value  # type: ignore[attr-defined]
        elif call.target in _TAKING and call.node.args:
            value, node = call.args[0], call.node.args[0]
        else:
            return ()
        found = _evidence(node, value, call.flow)
        if found is None:
            return _made_after(call, node, value)
        what, at = found
        return (
            Finding(
                call.node,
                f"NumPy has no bfloat16: this raises where {what} bfloat16",
                help="Cast it first: `.float().numpy()`",
                notes=((at, "bfloat16 is asked for here"),) if at is not None and at.lineno != call.node.lineno else (),
                conditional=not is_half(value),
                fix=_as_method if method else partial(_as_argument, node),
            ),
        )


def _evidence(node: ast.expr, value: Value, flow: Flow) -> tuple[str, ast.expr | ast.stmt | None] | None:
    """What is bfloat16 there, in words, and the place that says so; None where nothing is."""
    if is_half(value):
        assert isinstance(value, Tensor) and value.dtypes is not None
        return ("the tensor is", value.origin) if "bfloat16" in value.dtypes else None
    known = value.dtypes if isinstance(value, Tensor) else None
    if not isinstance(value, (Tensor, Unknown)) or (known is not None and not known >= FLOATING):
        return None
    roots = origins_of(flow.scope)[node]
    model, weight = _model(roots, flow), _weight(node) if roots else None
    if (model is None and weight is None) or any(origin.kind == Kind.CAST for origin in roots):
        return None
    found = half_at(flow, dtype="bfloat16")
    if found is None or _is_seen_to(flow.scope) or not _NO_TORCH.isdisjoint(names(flow.tree)):
        return None
    if "loss" in last_name(root_of(node)).lower():
        return None  # of which models compute the last steps in float32
    word = f"`{model or weight}` {'computes in' if model else 'is'}"
    if found.level >= Reach.ASKED and _speaks_of_bfloat16(flow.tree):
        return word, found.node
    handed_in = weight is not None and _WEIGHT.search(weight) is not None
    if not is_script(flow.tree) and (handed_in or (model is not None and _is_pipeline(flow))):
        return word, found.node if found.near else None
    return None


def _made_after(call: Call, node: ast.expr, value: Value) -> Iterable[Finding]:
    """`torch.tensor(0, dtype=scores.dtype).numpy()`, by which programs ask for the limits of a dtype."""
    flow, told = call.flow, keyword(node, "dtype") if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(told, ast.Attribute) or told.attr != "dtype":
        return ()
    path = path_of(told.value)
    if path is None or path_of(receiver(node) or node) not in ("torch", "th") or _WHOLE.search(path):
        return ()
    if isinstance(value, Tensor) and value.dtypes is not None and not value.dtypes >= FLOATING:
        return ()
    roots, given = origins_of(flow.scope)[told.value], known(flow, told.value)
    if any(origin.kind == Kind.CAST for origin in roots) or half_at(flow, given, dtype="bfloat16") is None:
        return ()
    if _is_seen_to(flow.scope):
        return ()
    of_limits = any(last_name(part) in ("finfo", "iinfo") for part in within(call.node, flow))
    return (
        Finding(
            call.node,
            f"NumPy has no bfloat16: this raises where `{path}` is bfloat16",
            help=f"Ask torch for the limits of a dtype: `torch.finfo({path}.dtype)`"
            if of_limits
            else "Cast it first: `.float().numpy()`",
            conditional=True,
        ),
    )


def _model(roots: Roots, flow: Flow) -> str | None:
    """The model that computed a tensor, by the path that the code calls it with; not through a method that casts."""
    for origin in in_order(roots):
        parts = origin.text.split(".")
        if origin.kind != Kind.CALLED or any(_WHOLE.search(part) for part in (*parts, _taken_of(origin.node))):
            continue
        if any(_MODEL.search(part) for part in parts):
            return origin.text
        inner = None if _casts(parts, flow) else _model(origin.of, flow)
        if inner is not None:
            return inner
    return None


def _casts(path: list[str], flow: Flow) -> bool:
    """Does a path name a method of the class that the code stands in, which casts to float32?"""
    owner = flow.function.owner if flow.function is not None else None
    if owner is None or path[0] != "self" or len(path) != 2:
        return False
    bodies = [part for part in owner.node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return any(body.name == path[1] and not _WIDE.isdisjoint(said(body)) for body in bodies)


def _is_seen_to(scope: ast.AST) -> bool:
    """Does the function ask whether something is bfloat16?"""
    return any(
        isinstance(part, ast.Compare) and any("bfloat16" in word for word in said(part)) for part in ast.walk(scope)
    )


def _taken_of(node: ast.expr) -> str:
    return last_name(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _weight(node: ast.expr) -> str | None:
    """The name of the weights, or of the activations, that an expression is taken of."""
    name = last_name(root_of(node)) if not isinstance(root_of(node), ast.Call) else ""
    return name if _WEIGHT.search(name) or _ACTIVATION.search(name) else None


def _is_pipeline(flow: Flow) -> bool:
    """Does the code belong to a pipeline, whose models are loaded by who uses it?"""
    owner = flow.function.owner if flow.function is not None else None
    return owner is not None and any("Pipeline" in last_name(base) for base in owner.node.bases)


@kept
def _speaks_of_bfloat16(tree: ast.Module) -> bool:
    return any("bfloat16" in word or "bf16" in word for word in said(tree))


def _as_method(place: Place) -> Fix:
    return Fix("Cast to float32 first", (place.rename_method("float().numpy"),), Applicability.UNSAFE)


def _as_argument(node: ast.expr, place: Place) -> Fix:
    cast = f"{operand_text(place, node)}.float().cpu()"
    return Fix("Cast to float32 first", (place.replace(node, cast),), Applicability.UNSAFE)
