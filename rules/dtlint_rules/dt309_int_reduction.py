"""DT309: a mean, a deviation or a norm of integers or bools, which only floating tensors have."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.values import Dtype, DtypeOf
from dtlint.rule import Finding, Rule
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._operands import BOOL, INTEGRAL, called, cast_fix, listed, origin_note, settled, tensor_op
from dtlint_rules._refusals import refused
from dtlint_rules._subjects import operand

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call
    from dtlint.infer.facts import ModuleFacts
    from dtlint.source.place import Place

__all__ = ["IntReduction"]

_FLOATING_ALONE = frozenset(
    {"mean", "nanmean", "std", "var", "std_mean", "var_mean", "norm", "linalg.norm", "linalg.vector_norm", "quantile"}
    | {"nanquantile", "softmax", "log_softmax", "nn.functional.softmax", "nn.functional.log_softmax", "cdist", "pdist"}
    | {"nn.functional.normalize", "nn.functional.cosine_similarity", "cosine_similarity", "renorm", "multinomial"}
)
"""What torch 2.13 refuses for integers and bools."""
_NOT_OF_BOOL = frozenset({"argmax", "argmin"})
_DTYPE = {
    **dict.fromkeys(("softmax", "log_softmax"), 2),
    **dict.fromkeys(("nn.functional.softmax", "nn.functional.log_softmax"), 3),
}
"""Where a dtype may stand without its name. The others take one by name, or none."""
_PROMOTING = frozenset({"cosine_similarity", "nn.functional.cosine_similarity"})
"""What promotes its two operands first."""


class IntReduction(Rule):
    """A mean, a deviation, a norm or a softmax is taken of integers or bools.

    ## What it does
    Reports `mean`, `std`, `var`, `norm`, `quantile`, `softmax`, `cdist` and their kin on a tensor that is an integer or a
    bool one, without `dtype=`; and `argmax` of a bool tensor.

    ## Why it matters
    They raise: "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got:
    Long". An accuracy is where it happens most: `(predicted == labels).mean()` works in NumPy only.

    ## Example
    ```python
    import torch


    def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (logits.argmax(-1) == labels).mean()
    ```

    ## Use instead
    ```python
    import torch


    def accuracy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return (logits.argmax(-1) == labels).float().mean()
    ```

    ## Fix safety
    The fix casts to float32 first. It is safe: without it the call raises. float32 counts exactly up to 16,777,216.

    ## References
    - [torch.mean](https://docs.pytorch.org/docs/stable/generated/torch.mean.html)
    """

    code, name, severity = "DT309", "int-reduction", Severity.ERROR
    fix = Applicability.SAFE
    calls = called((*_FLOATING_ALONE, *_NOT_OF_BOOL))
    triggers = attributes(calls)
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return refused(facts, self.code)

    def on_call(self, call: Call) -> Iterable[Finding]:
        op = tensor_op(call)
        refused = INTEGRAL if op in _FLOATING_ALONE else BOOL if op in _NOT_OF_BOOL else None
        if refused is None or not call.complete or _is_told(call, op):
            return ()
        subject = operand(call)
        dtypes = settled(subject, call.flow) if subject is not None else None
        if subject is None or not dtypes or not dtypes <= refused:
            return ()
        if op in _PROMOTING:
            other = operand(call, 1, "x2")
            met = settled(other, call.flow) if other is not None else None
            if not met or not met <= refused:
                return ()
        name = op.rpartition(".")[2]
        return (
            Finding(
                call.node,
                f"`{name}` raises for {listed(dtypes)}: it takes floating tensors",
                help="Cast first: `.float()`",
                notes=origin_note(subject.value, call.node, f"{listed(dtypes)} since here"),
                fix=partial(_as_method, name)
                if call.target.startswith("torch.Tensor.")
                else partial(cast_fix, subject.node, "float()", "Cast to float32 first", Applicability.SAFE),
            ),
        )


def _is_told(call: Call, op: str) -> bool:
    """Is a dtype given, by its name or in its place?"""
    if "dtype" in call.keywords or any(isinstance(value, (Dtype, DtypeOf)) for value in call.args):
        return True
    return op in _DTYPE and operand(call, _DTYPE[op], "dtype") is not None


def _as_method(name: str, place: Place) -> Fix:
    return Fix("Cast to float32 first", (place.rename_method(f"float().{name}"),), Applicability.SAFE)
