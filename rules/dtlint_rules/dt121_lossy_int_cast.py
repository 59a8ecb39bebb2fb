"""DT121: fractions written into an integer tensor."""

from __future__ import annotations

import ast
import math
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.survey import facts
from dtlint.infer.values import Constant, Tensor, Unknown, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._cut import cut_fractions
from dtlint_rules._fractions import has_fraction, tells_fractions
from dtlint_rules._functions import own_nodes, parameters
from dtlint_rules._known import known
from dtlint_rules._names import last_name
from dtlint_rules._needs import INTEGERS, TORCH, attributes
from dtlint_rules._parts import below, keyword, receiver
from dtlint_rules._texts import short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call
    from dtlint.infer.facts import ModuleFacts

__all__ = ["LossyIntCast"]

_FILLS: dict[str, tuple[int, str]] = {
    "torch.full": (1, "fill_value"),
    "torch.full_like": (1, "fill_value"),
    "torch.Tensor.fill_": (0, "value"),
    "torch.Tensor.masked_fill": (1, "value"),
    "torch.Tensor.masked_fill_": (1, "value"),
    "torch.Tensor.new_full": (1, "fill_value"),
}
"""Calls that fill an integer tensor with a number, and where they are given it. They truncate, unlike `torch.where`."""
_FRACTIONS = ("]=0.", "]=1.", "]=-0.", "]=-1.")
"""How numbers with a fraction are written into a tensor that a comparison made bool, which takes no word."""
_CUT = ("+=int(", ".append(int(")
"""How a loss is cut to an integer and kept."""
_LOSS = re.compile(r"^(?!(?:is|has|stop|n|num)_)(?:\w+_)?(?:loss|nll|perplexity|ppl|(?:cross_)?entropy)$")
"""How numbers are called that are hardly ever whole."""
_LOSSES = re.compile(r"loss|criterion")
"""How functions are called that compute a loss."""
_HANDING_OUT = frozenset({"item", "detach", "cpu", "mean", "sum"})
"""What stands between a loss and the number that it is."""
_TALLY = re.compile(
    r"(?:^|_)(?:n|num|count|counter|steps?|hist|bins?|buckets?|round(?:ed)?|int|is|has|zero_one)(?:_|$)"
)
"""How sums of whole numbers are called, and functions that count."""


class LossyIntCast(Rule):
    """A number with a fraction, or a floating tensor, written into an integer or bool tensor.

    ## What it does
    Reports `kernel.to(image.dtype)` and `torch.tensor([0.3, 0.6, 0.1], dtype=image.dtype)`, where `image` is a
    parameter that nobody has asked for its dtype, and `ids[i] = 0.5` and `ids[:2] = torch.rand(2)` where `ids` is
    known to be an integer or bool tensor, and `torch.full_like(ids, 0.5)`, `ids.fill_(0.5)`, `ids.masked_fill(mask,
    0.5)`, `torch.full(size, 0.5, dtype=torch.long)` and `torch.tensor([0.5, 1.5], dtype=torch.long)`; also with a number
    that is computed and hardly ever whole, such as the difference of two `time.time()`, or `math.log(n)`. Also a loss
    that is summed up or listed as an integer, `total += int(loss)`.

    Conditional, and so reported with `--preview` only: images that may hold integers, and losses that only their
    names tell of.

    ## Why it matters
    The tensor keeps its dtype, and the fraction is dropped without a word: 0.5 becomes 0, in a bool tensor True; NaN
    and inf become whatever the hardware makes of them. Tensors made by `torch.arange`, `argsort`, `zeros_like(ids)`
    or `torch.tensor([0, 1])` are int64, which shows only where they were made.

    ## Example
    ```python
    import torch

    ids = torch.arange(4)
    weights = torch.zeros_like(ids)
    weights[0] = 0.5
    ```

    ## Use instead
    ```python
    import torch

    ids = torch.arange(4)
    weights = torch.zeros_like(ids, dtype=torch.float32)
    weights[0] = 0.5
    ```

    ## References
    - [torch.Tensor.index_put_](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html)
    """

    code, name = "DT121", "lossy-int-cast"
    calls = frozenset({"to", "type_as", "tensor", "int", *(name.rpartition(".")[2] for name in _FILLS)})
    triggers = (
        *INTEGERS,
        *("img", "image", "images", "imgs", "frame", "frames", "video"),
        *("coords", "labels", "ids", "boxes", "mask", "masks"),
        *_FRACTIONS,
        *_CUT,
    )
    needs = (
        TORCH,
        (*attributes(calls - {"int"}), "]=", *_CUT),
        (*INTEGERS, ".to", ".type_as", ".tensor", *_FRACTIONS, *_CUT),
    )
    targets = frozenset({ast.Subscript})

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return cut_fractions(facts)

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        base = assign.base
        if not isinstance(assign.target, ast.Subscript) or not isinstance(base, Tensor) or not base.dtypes:
            return ()
        return self._written(assign, base, base.dtypes)

    def _written(self, assign: Assign, base: Tensor, dtypes: frozenset[str]) -> Iterator[Finding]:
        if not isinstance(assign.node, ast.Assign) or not _whole(dtypes) or len(dtypes) != 1:
            return
        value = _fraction(assign.value)
        (dtype,) = dtypes
        notes = () if base.origin is None else ((base.origin, f"{dtype} since here"),)
        if value is not None:
            yield Finding(
                assign.node,
                f"The tensor is {dtype}: {value:g} becomes {_becomes(value, dtype)}",
                help="Make the tensor floating",
                notes=notes,
            )
        elif dtype != "bool" and _has_fractions(assign.value):
            yield Finding(
                assign.node,
                f"The tensor is {dtype}: fractions written into it are dropped, or raise",
                help="Make the tensor floating, or round and cast what is written",
                notes=notes,
            )

    def on_call(self, call: Call) -> Iterator[Finding]:
        if call.method in ("to", "type_as") or call.target == "torch.tensor":
            yield from _of_image(call)
        if call.target == "builtins.int":
            yield from _cut(call)
            return
        place = _FILLS.get(call.target)
        if place is not None:
            value, dtypes = _fraction(call.argument(*place)), self._filled(call)
        elif call.target == "torch.tensor" and "dtype" in call.keywords:
            value, dtypes = _literal_fraction(call.node), self._filled(call)
        else:
            return
        if dtypes is None or len(dtypes) != 1 or not _whole(dtypes):
            return
        (dtype,) = dtypes
        if value is None and dtype != "bool" and tells_fractions(facts(call.flow.scope).called):
            number = next((node for node in _numbers(call, place) if has_fraction(node, call.flow)), None)
            if number is not None:
                yield Finding(
                    call.node,
                    f"The tensor is {dtype}: the fraction of `{short(number)}` is dropped",
                    help="Pass a floating dtype",
                )
        elif value is not None:
            yield Finding(
                call.node,
                f"The tensor is {dtype}: {value:g} becomes {_becomes(value, dtype)}",
                help="Pass a floating dtype",
            )

    def _filled(self, call: Call) -> frozenset[str] | None:
        """The dtype of the tensor that is filled."""
        if call.target in ("torch.full", "torch.full_like", "torch.tensor", "torch.Tensor.new_full"):
            return call.result.dtypes if isinstance(call.result, Tensor) else None
        return call.receiver.dtypes if isinstance(call.receiver, Tensor) else None


def _cut(call: Call) -> Iterator[Finding]:
    """`total += int(loss)`, `losses.append(int(loss.item()))`."""
    statement = call.flow.statement
    kept: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        kept = statement.target if isinstance(statement.op, ast.Add) and statement.value is call.node else None
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        listing = statement.value
        kept = receiver(listing) if last_name(listing) == "append" and listing.args == [call.node] else None
    if kept is None or len(call.node.args) != 1 or _TALLY.search(path_of(kept) or ""):
        return
    given = below(call.node.args[0], _HANDING_OUT)
    name = given.id if isinstance(given, ast.Name) else ""
    if _LOSS.search(name) and _is_loss(given, call):
        yield Finding(
            call.node,
            f"`int` drops the fraction of `{ast.unparse(given)}`: 0.7 becomes 0",
            help="Use `float`, or sum the tensors",
            conditional=getattr(known(call.flow, given), "dtypes", None) is None,
        )


def _is_loss(node: ast.expr, call: Call) -> bool:
    """Is a name known as a floating tensor, or assigned by nothing but calls that compute a loss?"""
    from dtlint.dtypes.dtype import FLOATING

    value = known(call.flow, node)
    if not isinstance(value, (Tensor, Unknown)):
        return False
    if value.dtypes is not None:
        return isinstance(value, Tensor) and value.dtypes <= FLOATING
    made = [each for _, each in assignments(call.flow.scope).get(path_of(node) or "", ())]
    names = [last_name(each) if isinstance(each, ast.Call) else "" for each in made]
    return bool(names) and all(_LOSSES.search(name) and not _TALLY.search(name) for name in names)


def _numbers(call: Call, place: tuple[int, str] | None) -> list[ast.expr]:
    """The numbers that a tensor is filled with, or made of."""
    node = call.argument_node(*place) if place is not None else call.argument_node(0, "data")
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node] if node is not None else []


def _whole(dtypes: frozenset[str]) -> bool:
    from dtlint.dtypes.dtype import INTEGRAL

    return dtypes <= INTEGRAL | {"bool"}


def _fraction(value: Value | None) -> float | None:
    """The number, if it is one that no integer holds."""
    number = value.value if isinstance(value, Constant) else None
    return number if isinstance(number, float) and not (math.isfinite(number) and number.is_integer()) else None


def _literal_fraction(made: ast.expr) -> float | None:
    """The first number with a fraction among those written out in `torch.tensor([...])`."""
    first = made.args[0] if isinstance(made, ast.Call) and made.args else None
    if not isinstance(first, (ast.List, ast.Tuple, ast.Constant)):
        return None
    numbers = (node.value for node in ast.walk(first) if isinstance(node, ast.Constant))
    return next((number for number in numbers if isinstance(number, float) and not number.is_integer()), None)


_WEIGHTS = re.compile(r"kernel|weight|window|gauss|coef")
"""How tensors of fractions are called that images are filtered and mixed with."""
_IMAGES = re.compile(r"^(img|image|images|imgs|frame|frames|video|coords|labels|ids|boxes|mask|masks)$")
"""How tensors are called that are as often integers as floating."""


def _of_image(call: Call) -> Iterator[Finding]:
    """`kernel.to(image.dtype)`, `torch.tensor([0.299, 0.587, 0.114], dtype=image.dtype)`."""
    function = call.node.func
    given = function.value if isinstance(function, ast.Attribute) else None
    image = _image_of(call)
    if image is None or given is None or _asks(call.flow.scope, image):
        return
    literal = _literal_fraction(call.node if call.target == "torch.tensor" else given)
    name = (path_of(given) or "").rpartition(".")[2]
    if literal is None and (call.target == "torch.tensor" or not _WEIGHTS.search(name)):
        return
    what = f"`{name}`" if literal is None else f"{literal:g}"
    yield Finding(
        call.node,
        f"If `{image}` holds integers, the fractions of {what} are dropped",
        help=f"Compute in a floating dtype, and cast back to the dtype of `{image}`",
        conditional=True,
    )


def _image_of(call: Call) -> str | None:
    """The parameter, called like an image, whose dtype the call gives."""
    node = call.node
    names = {parameter.arg for parameter in parameters(call.flow.scope)}
    for part in (keyword(node, "dtype"), *(() if call.target == "torch.tensor" else node.args)):
        if isinstance(part, ast.Attribute) and part.attr == "dtype":
            part = part.value
        elif call.method == "to" and not isinstance(part, ast.Name):
            continue
        if isinstance(part, ast.Name) and _IMAGES.search(part.id) and part.id in names:
            return part.id
    return None


def _asks(scope: ast.AST, name: str) -> bool:
    """Does a function ask for the dtype of a name, or cast it first?"""
    for node in own_nodes(scope):
        if isinstance(node, ast.Attribute) and node.attr in _ASKING and path_of(node.value) == name:
            return True
        if isinstance(node, ast.Compare) and f"{name}.dtype" in map(path_of, (node.left, *node.comparators)):
            return True
        if isinstance(node, ast.Call) and last_name(node) in _ASKING_CALLS and name in map(path_of, node.args):
            return True
    return False


_ASKING = frozenset({"is_floating_point", "is_complex", "float", "half", "double"})
_ASKING_CALLS = frozenset({"is_floating_point", "_cast_squeeze_in", "convert_image_dtype", "to_dtype"})


_FRACTIONAL = frozenset(
    {"rand", "randn", "rand_like", "randn_like", "softmax", "sigmoid", "tanh", "mean", "std", "var", "exp", "log"}
    | {"sqrt", "rsqrt", "sin", "cos", "linspace", "normalize", "log_softmax"}
)
"""Functions whose results are hardly ever whole. Those of others may be whole numbers that happen to be floating."""


def _has_fractions(value: Value) -> bool:
    from dtlint.dtypes.dtype import FLOATING

    if not isinstance(value, Tensor) or not value.dtypes or not value.dtypes <= FLOATING:
        return False
    made = value.origin.func if isinstance(value.origin, ast.Call) else None
    return made is not None and (path_of(made) or "").rpartition(".")[2] in _FRACTIONAL


def _becomes(value: float, dtype: str) -> str:
    if dtype == "bool":
        return "True"
    return str(math.trunc(value)) if math.isfinite(value) else "an arbitrary number"
