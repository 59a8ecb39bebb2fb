"""Operations with which torch raises for the dtypes that they are given, and which rule each is the matter of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, LOW_PRECISION, Category
from dtlint.infer.domain.values import Many, Region, Tensor, Tuple, Value
from dtlint.rule import Finding
from dtlint_rules._facts import op_name, origin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts, Operation

__all__ = ["refused"]

_WEIGHTED = frozenset({"linear", "bilinear", "conv1d", "conv2d", "conv3d", "conv_tbc"}) | frozenset(
    {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"}
)
_LOSSES = frozenset(
    {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss"}
    | {"smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss", "hinge_embedding_loss", "multi_margin_loss"}
)
_INDEXING = frozenset(
    {"embedding", "embedding_bag", "index_select", "gather", "scatter", "scatter_add", "index_add"}
) | (frozenset({"take", "take_along_dim", "index_copy", "index_fill", "Embedding", "EmbeddingBag"}))


_WRITING = frozenset(
    {"scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_put", "masked_scatter"}
)


def _code(operation: Operation) -> str:
    """The rule that an operation which raises is the matter of."""
    last = operation.op.rpartition(".")[2]
    plain = last.rstrip("_")
    error = operation.error or ""
    if "unsafe to autocast" in error:
        return "DT207"
    if (plain.startswith("masked_") and "mask" in error) or plain == "where":
        return "DT308"
    if plain in _WRITING and ("src" in error or "source" in error):
        return "DT305"
    if last in _INDEXING or plain in _INDEXING:
        return "DT306"
    if plain in _LOSSES or last.endswith("Loss"):
        return "DT307"
    if "result type" in (operation.error or "") and "can't be cast" in (operation.error or ""):
        return "DT310"
    dtypes = _dtypes(operation)
    region = operation.region
    if (
        isinstance(region, Region)
        and region.enabled is False
        and len(dtypes) > 1
        and not LOW_PRECISION.isdisjoint(dtypes)
    ):
        return "DT211"
    if plain in _WEIGHTED or last[:1].isupper():
        return "DT302"
    if len(dtypes) == 1 and all(DTYPES[dtype].category < Category.FLOAT for dtype in dtypes):
        return "DT309"
    return "DT301" if len(dtypes) > 1 else "DT315"


def _dtypes(operation: Operation) -> list[str]:
    """The dtypes of the operands, each once, in their order."""
    found: dict[str, None] = {}

    def add(value: Value) -> None:
        if isinstance(value, Tensor):
            found.update(dict.fromkeys(sorted(value.dtypes or ())))
        elif isinstance(value, (Tuple, Many)):
            for item in value.items if isinstance(value, Tuple) else (value.item,):
                add(item)

    for value in (*operation.args, *(value for _, value in operation.keywords)):
        add(value)
    return list(found)


def refused(facts: ModuleFacts, code: str) -> Iterator[Finding]:
    """The operations that raise, as far as they are the matter of a rule."""
    for seen in facts.refusals():
        operation = seen.what
        dtypes = _dtypes(operation)
        if not dtypes or _code(operation) != code:
            continue
        name = op_name(operation.op)
        if code == "DT207":
            what = f"autocast refuses `{name}` on GPUs: it raises"
        elif code == "DT305" and isinstance(operation.args[-1], Tensor):
            written = " or ".join(sorted(operation.args[-1].dtypes or ()))
            what = f"`{name}` raises where {written} is written into {dtypes[0]}"
        elif code == "DT211":
            what = f"`{name}` raises: autocast is off, and the operands are {' and '.join(dtypes)}"
        elif code == "DT302" and len(dtypes) > 1:
            what = f"`{name}` with {dtypes[0]} weights gets {dtypes[1]}: it raises"
        else:
            what = f"`{name}` raises for {' and '.join(dtypes)}"
        yield Finding(
            seen.node,
            f"This call leads to where {what}" if seen.behind else what,
            help=_ADVICE[code],
            elsewhere=origin(seen, what),
        )


_ADVICE = {
    "DT301": "Cast the operands to one dtype",
    "DT302": "Cast the input to the dtype of the weights, or the module to that of the input",
    "DT207": "Leave the sigmoid out and use `binary_cross_entropy_with_logits`, or switch autocast off around it",
    "DT211": "Cast the half operand with `.float()`",
    "DT305": "Cast what is written to the dtype of the tensor",
    "DT308": "Make the mask bool: `mask.bool()`, `mask == 0`",
    "DT306": "Cast the index: `.long()`",
    "DT307": "Cast the target to the dtype that the loss takes",
    "DT309": "Cast first: `.float()`",
    "DT310": "Compute out of place, or cast what is written to the dtype of the tensor",
    "DT315": "Cast to float32 for this operation",
}
