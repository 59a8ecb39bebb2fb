"""Operations with which torch raises for the dtypes that they are given: which rule each is the matter of, what is wrong
with which operand, and how that is said."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from dtlint.dtypes.dtype import DTYPES, FLOATING, LOW_PRECISION, Category
from dtlint.dtypes.table import load
from dtlint.infer.domain.values import Many, Region, Tensor, Tuple, Value
from dtlint.rule import Finding
from dtlint_rules._facts import op_name, origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.diagnostic import Fix
    from dtlint.infer.facts import ModuleFacts, Operation, Sighting
    from dtlint.source.place import Place

__all__ = [
    "WRITES",
    "Operand",
    "finding",
    "if_half",
    "is_layer",
    "is_loss",
    "is_on_known_device",
    "is_refused",
    "is_write",
    "once",
    "operand",
    "refused",
    "short_op",
    "tensors",
    "written",
]


class Operand(NamedTuple):
    """An operand, and where it is written, if that can be told."""

    node: ast.expr | None
    value: Value

    @property
    def dtypes(self) -> frozenset[str]:
        """What its dtype can be; nothing where that is not known."""
        return self.value.dtypes or frozenset() if isinstance(self.value, Tensor) else frozenset()


def short_op(operation: Operation) -> str:
    """The op without its package: `gather` of `torch.gather` and `x.gather`, `nn.functional.one_hot`, `nn.Embedding`."""
    return operation.op.removeprefix("torch.").removeprefix("Tensor.")


def written(operation: Operation) -> str:
    """The op as it is written: `@`, `einsum`, `nn.Linear`."""
    if isinstance(operation.node, (ast.BinOp, ast.AugAssign)) and isinstance(operation.node.op, ast.MatMult):
        return "@"
    if isinstance(operation.node, ast.Call) and getattr(operation.node.func, "attr", "") == "einsum":
        return "einsum"
    return op_name(operation.op)


def operand(operation: Operation, position: int = 0, name: str = "input") -> Operand | None:
    """An operand by its place, where a method's tensor and a layer's input come first, or by its name; None if it is not
    given."""
    node = operation.node
    for keyword, value in operation.keywords:
        if keyword == name:
            given = node.keywords if isinstance(node, ast.Call) else ()
            return Operand(next((one.value for one in given if one.arg == name), None), value)
    if is_layer(operation) and isinstance(node, ast.Call) and len(operation.args) > len(node.args):
        position += 1  # behind its weight
    if position >= len(operation.args):
        return None
    nodes = _nodes(operation)
    return Operand(nodes[position] if position < len(nodes) else None, operation.args[position])


def _nodes(operation: Operation) -> list[ast.expr]:
    """Where the operands are written, as far as that can be told."""
    node = operation.node
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if not isinstance(node, ast.Call) or any(isinstance(one, ast.Starred) for one in node.args):
        return []
    if len(operation.args) == len(node.args):
        return node.args
    if len(operation.args) == len(node.args) - 1 and isinstance(node.args[0], ast.Constant):
        return node.args[1:]  # of einsum
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    return [receiver, *node.args] if len(operation.args) == len(node.args) + 1 else []


def tensors(operation: Operation) -> list[Operand]:
    """The operands that are tensors, those in lists and tuples one by one."""
    nodes = _nodes(operation)
    found: list[Operand] = []

    def add(node: ast.expr | None, value: Value) -> None:
        if isinstance(value, Tensor):
            found.append(Operand(node, value))
        elif isinstance(value, Many):
            add(None, value.item)
        elif isinstance(value, Tuple):
            inner = node.elts if isinstance(node, (ast.Tuple, ast.List)) else ()
            for place, item in enumerate(value.items):
                add(inner[place] if len(inner) == len(value.items) else None, item)

    for place, value in enumerate(operation.args):
        add(nodes[place] if place < len(nodes) else None, value)
    named = operation.node.keywords if isinstance(operation.node, ast.Call) else ()
    for name, value in operation.keywords:
        add(next((one.value for one in named if one.arg == name), None), value)
    return found


def once(seen: Iterable[Sighting[Operation]]) -> Iterator[Sighting[Operation]]:
    """Each place once, whatever the contexts."""
    told: set[tuple[object, object]] = set()
    for one in seen:
        if (one.node, one.what.op) not in told:
            told.add((one.node, one.what.op))
            yield one


def finding(
    seen: Sighting[Operation],
    node: ast.expr | ast.stmt | None,
    text: str,
    help: str,
    *,
    fix: Callable[[Place], Fix | None] | None = None,
    conditional: bool = False,
) -> Finding:
    """A finding at an operand, if it is written there, or at the operation; at the call that leads there, without a fix."""
    place = seen.node if seen.behind or node is None else node
    message = f"This call leads to where {text[0].lower() + text[1:]}" if seen.behind else text
    return Finding(
        place,
        message,
        help=help,
        elsewhere=origin(seen, text),
        conditional=conditional,
        fix=None if seen.behind else fix,
        led_to=seen.what.node if seen.behind else None,
    )


def is_refused(operation: Operation, code: str) -> bool:
    """Does it raise for the dtypes of its operands, and is that the matter of a rule?"""
    error = operation.refusal
    if error is None or not is_on_known_device(operation):
        return False
    dtypes = _dtypes(operation)
    if "complex32" in dtypes and not any(getattr(one.value, "device", None) == "cpu" for one in tensors(operation)):
        return False  # CUDA has kernels for it where the CPU has none, those of Fourier transforms among them
    return bool(dtypes) and _code(operation, error) == code


def is_on_known_device(operation: Operation) -> bool:
    """Is no operand on a device of another vendor, `hpu` or `npu`, whose kernels take dtypes of their own?"""
    devices = {one.value.device for one in tensors(operation) if isinstance(one.value, Tensor)}
    return devices <= _KNOWN_DEVICES


_KNOWN_DEVICES = frozenset({None, "cpu", "cuda", "mps", "meta"})
"""Where it is known which dtypes the kernels take; None: any."""


def if_half(
    facts: ModuleFacts, is_meant: Callable[[Operation], bool], of: Callable[[Operation], list[Operand]] = tensors
) -> Iterator[tuple[Sighting[Operation], Operand, Operand]]:
    """The operations that raise if the dtypes that callers decide, weights among them, are half, and run if they are
    float32: with the operand that is float32 all the same, and the one that would be half.

    Args:
        is_meant: which operations.
        of: which of their operands.
    """

    def raises(operation: Operation) -> bool:
        if not is_meant(operation) or operation.error is not None:
            return False
        if isinstance(operation.region, Region) and operation.region.enabled is False:
            return False  # whoever switches autocast off knows the weights
        given = of(operation)
        if not any(map(_is_wide, given)) or not any(map(_is_open, given)):
            return False
        if operation.op.rpartition(".")[2].rstrip("_") in WRITES:
            return True
        return operation.refusal_as("float16") is not None and operation.refusal_as("float32") is None

    for seen in once(facts.operations(raises)):
        given = of(seen.what)
        yield seen, next(filter(_is_wide, given)), next(filter(_is_open, given))


def _is_wide(given: Operand) -> bool:
    return given.dtypes == frozenset({"float32"}) or given.dtypes == FLOATING


def _is_open(given: Operand) -> bool:
    """Is it of a dtype that callers decide, whatever it has met?"""
    value = given.value
    return isinstance(value, Tensor) and value.dtypes is None and value.symbol is not None and not value.symbol.met


_LOSSES = frozenset(
    {"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss"}
    | {"smooth_l1_loss", "huber_loss", "kl_div", "ctc_loss", "hinge_embedding_loss", "multi_margin_loss"}
)
_INDEXING = frozenset(
    {"embedding", "embedding_bag", "index_select", "gather", "scatter", "scatter_add", "index_add"}
) | (frozenset({"take", "take_along_dim", "index_copy", "index_fill", "bincount", "Embedding", "EmbeddingBag"}))


WRITES = {
    **dict.fromkeys(("scatter", "scatter_add", "scatter_reduce"), (3, "src")),
    **dict.fromkeys(("index_add", "index_copy"), (3, "source")),
    "index_put": (2, "values"),
    "masked_scatter": (2, "source"),
}
"""What writes into a tensor by index, and the place of what is written."""


_OF_MASKS = frozenset({"where", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"})
"""Ops that are mostly given masks."""


def is_layer(operation: Operation) -> bool:
    """Is it a layer of torch.nn that is called?"""
    return operation.op.startswith("torch.nn.") and operation.op[9:10].isupper()


def is_loss(operation: Operation) -> bool:
    """Is it a loss, whose targets are a matter of their own?"""
    last = operation.op.rpartition(".")[2]
    return last in _LOSSES or last.endswith("Loss")


def is_write(operation: Operation) -> bool:
    """Does it write by index?"""
    name = short_op(operation)
    return name == "__setitem__" or name.rstrip("_") in WRITES


def _code(operation: Operation, error: str) -> str:
    """The rule that an operation which raises is the matter of."""
    last = operation.op.rpartition(".")[2]
    plain, dtypes = last.rstrip("_"), _dtypes(operation)
    if "unsafe to autocast" in error:
        return "DT207"
    if (plain.startswith("masked_") and "mask" in error) or plain in _OF_MASKS or "on a bool tensor" in error:
        return "DT308"
    if "destination" in error or (plain in WRITES and ("src" in error or "source" in error)):
        return "DT305"
    if last in _INDEXING or plain in _INDEXING or last in ("__getitem__", "__setitem__"):
        return "DT306"
    if is_loss(operation):
        return "DT307"
    if "result type" in error and "can't be cast" in error:
        return "DT310"
    off = isinstance(operation.region, Region) and operation.region.enabled is False
    if off and len(dtypes) > 1 and not LOW_PRECISION.isdisjoint(dtypes):
        return "DT211"
    if last[:1].isupper():
        return "DT302"
    if len(dtypes) > 1:
        lacking = [one for one in dtypes if one in LOW_PRECISION and load().lacks_kernel(operation.op, one, None)]
        return "DT311" if lacking or any(phrase in error for phrase in _OF_HALF) else "DT301"
    if dtypes[0] in LOW_PRECISION:
        return "DT315" if load().lacks_kernel(operation.op, "float32", None) else "DT311"
    return "DT309" if DTYPES[dtypes[0]].category < Category.FLOAT else "DT315"


_OF_HALF = (
    "must be either float or double dtype",
    "Low precision dtypes not supported",
    "not implemented for 'Half'",
    "not implemented for 'BFloat16'",
)
"""What torch says of operands in half that it does not take, whatever the dtypes of the others are."""


def _dtypes(operation: Operation) -> list[str]:
    """The dtypes of the operands, each once, in their order."""
    return list(dict.fromkeys(dtype for one in tensors(operation) for dtype in _each(one)))


def _each(given: Operand) -> list[str]:
    """What the dtype of an operand can be: of one that is made with the default dtype, whatever that is, float32."""
    return ["float32"] if given.dtypes == FLOATING else sorted(given.dtypes)


def _told(operation: Operation) -> list[str]:
    """The dtypes of the operands as they are told, those of one together: `float16 or bfloat16`."""
    return list(dict.fromkeys(" or ".join(_each(one)) for one in tensors(operation) if one.dtypes))


def refused(facts: ModuleFacts, code: str) -> Iterator[Finding]:
    """What is to be said of them where no operand is more wrong than another."""
    is_patched = any(facts.calls(*_PATCHING))
    for seen in once(facts.operations(lambda one: is_refused(one, code))):
        operation = seen.what
        if is_patched and operation.error is None:
            continue
        dtypes, name = _told(operation), written(operation)
        if code == "DT207":
            text = f"Autocast refuses `{name}` on GPUs: it raises"
        elif code == "DT211":
            text = f"`{name}` raises: autocast is off, and the operands are {' and '.join(dtypes)}"
        elif code == "DT302" and len(dtypes) > 1:
            text = f"`{name}` with {dtypes[0]} weights gets {dtypes[1]}: it raises"
        else:
            text = f"`{name}` raises for {' and '.join(dtypes)}"
        if operation.error is None:
            text += ", unless under autocast" if operation.has_half else ", unless float64 is the default"
        yield finding(seen, None, text, _ADVICE[code])


_PATCHING = ("apex.amp.init", "apex.amp.initialize", "apex.amp.amp.init", "apex.amp.frontend.initialize")
"""Functions that have torch cast the operands of its functions from then on, as autocast does in a region; and where
they are defined, for a project that has apex in view."""
_ADVICE = {
    "DT301": "Cast the operands to one dtype",
    "DT302": "Cast the input to the dtype of the weights, or the module to that of the input",
    "DT207": "Leave the sigmoid out and use `binary_cross_entropy_with_logits`, or switch autocast off around it",
    "DT211": "Cast the half operand with `.float()`",
    "DT315": "Cast the operand to a dtype that the operation has",
}
