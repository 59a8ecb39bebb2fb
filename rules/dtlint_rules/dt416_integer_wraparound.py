"""DT416: arithmetic of small integers that leaves their range."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import DTYPES, SMALL_INTEGERS
from dtlint.infer.domain.values import Tensor, Value
from dtlint.rule import Finding, Rule
from dtlint_rules._attained import dtypes_of, found, last_name_of, number_in, one_number, only, operands
from dtlint_rules._needs import SMALL
from dtlint_rules._wrapping import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.facts import ModuleFacts, Operation

__all__ = ["IntegerWraparound"]

_WORDS = {"add": "sum", "mul": "product", "bitwise_left_shift": "shift"}
_MOSTLY = {"add": 0.5, "mul": 2 / 255}
"""From which number on most values leave the dtype, as a part of its largest one."""
_NARROW = SMALL_INTEGERS | {"int32"}


class IntegerWraparound(Rule):
    """Arithmetic of uint8, int8 or int16 wraps around.

    ## What it does
    Reports sums, products and shifts of small integers with numbers that lead out of their range, such as
    `image[..., 0] * 256` of uint8 and `src << 32` of int32; and the size of a difference, `(a - b).abs()`, or the half of
    a sum of uint8 tensors. Under `--assume uint8` also differences, negatives and powers of what a function is given,
    unless all that is asked of them is whether they are 0, and sums and products with numbers that lead most values of
    an image out of the range.

    ## Why it matters
    A Python number does not widen a tensor of the same category: uint8 times 256 is uint8, and all of it is 0. So it is
    in NumPy 2. `3 - 5` is 254 in uint8, and the difference of two images is large where the second is a little
    brighter. There is no error and no warning.

    ## Example
    ```python
    import torch

    image = torch.zeros(4, 4, 3, dtype=torch.uint8)
    depth = image[..., 0] * 256 + image[..., 1]
    ```

    ## Use instead
    ```python
    import torch

    image = torch.zeros(4, 4, 3, dtype=torch.uint8)
    wide = image.to(torch.int32)
    depth = wide[..., 0] * 256 + wide[..., 1]
    ```

    ## References
    - [Type promotion](https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc)
    """

    code, name = "DT416", "integer-wraparound"
    triggers = (*SMALL, "int32", ".int", "IntTensor")

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        yield from wrapped(facts)
        images = frozenset() if facts.assumption is None else frozenset({facts.assumption.inputs}) & SMALL_INTEGERS
        for seen in facts.operations(lambda one: _leaving(one, images) is not None):
            text = _leaving(seen.what, images)
            if text is not None:
                yield found(seen, text, "Cast first: `.to(torch.int64)`, or `.float()`")


def _made(name: str, *operands: Value) -> float | None:
    """The sum or the product of what all elements of two operands are, where that is known, and none has wrapped before."""
    values = [one.range if isinstance(one, Tensor) else number_in(one) for one in operands]
    known = [one.low for one in values if one is not None and one.bounded and one.low == one.high]
    limits = [DTYPES[dtype] for one in operands for dtype in dtypes_of(one)]
    if len(known) < 2 or any(not one.min <= value <= one.max for one in limits for value in known):
        return None
    return {"add": known[0] + known[1], "mul": known[0] * known[1]}.get(name)


def _leaving(operation: Operation, images: frozenset[str]) -> str | None:
    """What an operation with a number, or with a tensor of one number, does that leads out of the dtype for most values.

    Args:
        images: the dtype of what is given, and holds all values that it has.
    """
    name = last_name_of(operation)
    if name not in _WORDS or len(operation.args) != 2:
        return None
    tensor, other = operands(*operation.args)
    number = one_number(other)
    if number is None and isinstance(other, Tensor) and other.range.bounded and other.range.low == other.range.high:
        number = other.range.low
    if not only(tensor, _NARROW) or not only(operation.result, _NARROW):
        return None
    (dtype, *others) = dtypes_of(tensor)
    info = DTYPES[dtype]
    if not others and (made := _made(name, tensor, other)) is not None and not info.min <= made <= info.max:
        return f"The {_WORDS[name]} is {made:.0f}, but stays {dtype}, and wraps around at {info.max:.0f}"
    if number is None:
        return None
    if {dtype} == images and isinstance(tensor, Tensor) and not tensor.range.bounded and name in _MOSTLY:
        leaves = abs(number) > _MOSTLY[name] * info.max
    elif name == "bitwise_left_shift":
        leaves = number >= info.bits
    elif name == "mul":
        leaves = abs(number) > info.max
    else:
        leaves = not info.min <= number <= info.max
    if not leaves or others:
        return None
    return f"The {_WORDS[name]} with {number:.0f} stays {dtype}, and wraps around at {info.max:.0f}"
