"""DT309: a mean, a deviation or a norm of integers or bools, which only floating tensors have."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.infer.domain.values import NONE, Dtype
from dtlint.rule import Finding, Rule
from dtlint_rules._casting import BOOL, INTEGRAL, cast_fix, listed
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._refusals import finding, is_refused, once, operand, short_op, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import ModuleFacts, Operation
    from dtlint.source.place import Place

__all__ = ["IntReduction"]

_FLOATING_ALONE = frozenset(
    {"mean", "nanmean", "std", "var", "std_mean", "var_mean", "norm", "linalg.norm", "linalg.vector_norm", "quantile"}
    | {"nanquantile", "softmax", "log_softmax", "nn.functional.softmax", "nn.functional.log_softmax", "cdist", "pdist"}
    | {"nn.functional.normalize", "nn.functional.cosine_similarity", "cosine_similarity", "renorm", "multinomial"}
    | {"rand_like", "randn_like"}
)
"""What torch refuses for integers and bools."""
_NO_KERNEL = (
    *(
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "glu",
        "leaky_relu",
        "prelu",
        "softplus",
        "softshrink",
        "hardshrink",
    ),
    *("hardswish", "hardsigmoid", "logsigmoid", "layer_norm", "group_norm", "batch_norm", "instance_norm", "rms_norm"),
    *("avg_pool1d", "avg_pool2d", "avg_pool3d", "adaptive_avg_pool1d", "adaptive_avg_pool2d", "grid_sample", "lerp"),
    *("bernoulli", "normal_", "uniform_", "eigh", "eigvalsh", "cholesky", "lu_factor", "hypot", "logaddexp", "frac"),
)
"""Some of what has kernels for floating tensors alone, by the operator table, for which files are read at all."""
_NOT_OF_BOOL = frozenset({"argmax", "argmin"})
_DTYPE = {
    **dict.fromkeys(("softmax", "log_softmax"), 2),
    **dict.fromkeys(("nn.functional.softmax", "nn.functional.log_softmax"), 3),
}
"""Where a dtype may stand without its name. The others take one by name, or none."""
_PROMOTING = frozenset({"cosine_similarity", "nn.functional.cosine_similarity"})
"""What promotes its two operands first."""


class IntReduction(Rule):
    """A mean, a norm, a softmax, an activation, a normalization or noise of integers or bools.

    ## What it does
    Reports `mean`, `std`, `var`, `norm`, `quantile`, `softmax`, `cdist` and their kin on a tensor that is an integer or a
    bool one, without `dtype=`; `rand_like` and `randn_like` of such a tensor; what has no kernel for it on the CPU and on
    CUDA, as `F.gelu`, `F.layer_norm` and `F.avg_pool2d`; and `argmax` of a bool tensor.

    ## Why it matters
    They raise: "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got:
    Long", or "not implemented for 'Long'". An accuracy is where it happens most: `(predicted == labels).mean()` works in
    NumPy only.

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
    The fix casts to float32 first. It is safe: without it the call raises. float32 counts exactly up to 16,777,216. There
    is no fix for what has no kernel.

    ## References
    - [torch.mean](https://docs.pytorch.org/docs/stable/generated/torch.mean.html)
    """

    code, name, severity = "DT309", "int-reduction", Severity.ERROR
    fix = Applicability.SAFE
    triggers = attributes((*_FLOATING_ALONE, *_NO_KERNEL, *_NOT_OF_BOOL))
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in once(facts.operations(lambda one: _is_wrong(one) or is_refused(one, self.code))):
            subject, name = operand(seen.what), short_op(seen.what).rpartition(".")[2]
            if subject is None or not subject.dtypes or not subject.dtypes <= INTEGRAL:
                continue
            fix: Callable[[Place], Fix] | None = partial(_as_method, name)
            if subject.node is not None and not seen.what.op.startswith("torch.Tensor."):
                fix = partial(cast_fix, subject.node, "float()", Applicability.SAFE)
            if _may_be_told(facts, seen.what):
                continue
            text = f"`{name}` raises for {listed(subject.dtypes)}: it takes floating tensors"
            if not _is_wrong(seen.what):
                if name.endswith("_"):
                    continue  # what is written into integers is DT310's
                # whether other operands are to be cast as well, or written into, is not known
                text, fix = f"`{written(seen.what)}` has no kernel for {listed(subject.dtypes)}: it raises", None
            yield finding(seen, None, text, "Cast first: `.float()`", fix=fix)


def _is_wrong(operation: Operation) -> bool:
    op = short_op(operation)
    refused = INTEGRAL if op in _FLOATING_ALONE else BOOL if op in _NOT_OF_BOOL else None
    subject = operand(operation) if refused is not None else None
    if refused is None or subject is None or not subject.dtypes or not subject.dtypes <= refused or _is_told(operation):
        return False
    other = operand(operation, 1, "x2") if op in _PROMOTING else None
    return op not in _PROMOTING or (other is not None and bool(other.dtypes) and other.dtypes <= refused)


def _may_be_told(facts: ModuleFacts, operation: Operation) -> bool:
    """Are there arguments that are not in view, a dtype perhaps among them?"""
    node = operation.node
    calls = facts.calls_at(node) if isinstance(node, ast.Call) else ()
    return any(not one.complete for one in calls if one.calls == operation.calls)


def _is_told(operation: Operation) -> bool:
    """Is a dtype given, by its name or in its place?"""
    if any(isinstance(value, Dtype) for value in operation.args):
        return True
    told = operand(operation, _DTYPE.get(short_op(operation), len(operation.args)), "dtype")
    return told is not None and told.value != NONE


def _as_method(name: str, place: Place) -> Fix:
    return Fix("Cast to float32 first", (place.rename_method(f"float().{name}"),), Applicability.SAFE)
