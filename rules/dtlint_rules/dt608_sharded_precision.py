"""DT608: precision settings of FSDP that do not belong to it, or lack a scaler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.domain.values import Const
from dtlint.infer.facts import dtype_of
from dtlint.rule import Finding, Rule
from dtlint_rules._scalers import SCALERS

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["ShardedPrecision"]

_FSDP = "torch.distributed.fsdp."
_OF_WRAPPER = (f"{_FSDP}MixedPrecision", f"{_FSDP}api.MixedPrecision")
_OF_FUNCTION = (f"{_FSDP}MixedPrecisionPolicy", "torch.distributed._composable.fsdp.MixedPrecisionPolicy")
_WRAPPER = (
    f"{_FSDP}FullyShardedDataParallel",
    f"{_FSDP}fully_sharded_data_parallel.FullyShardedDataParallel",
)
_FUNCTION = (f"{_FSDP}fully_shard", "torch.distributed._composable.fsdp.fully_shard")
_ONLY_OF_WRAPPER = ("buffer_dtype", "keep_low_precision_grads", "cast_root_forward_inputs")


class ShardedPrecision(Rule):
    """FSDP is given the mixed precision of its other version, or float16 without a scaler that shards.

    ## What it does
    Reports `fully_shard(mp_policy=MixedPrecision(...))` and `FullyShardedDataParallel(mixed_precision=
    MixedPrecisionPolicy(...))`, arguments that only the other of these two classes has, and a GradScaler of `torch.amp`
    in a function that wraps its model by FullyShardedDataParallel, in float16 or with no mixed precision of its own. Where
    the weights of a module have several dtypes, it reports that it is made one unit of FSDP.

    ## Why it matters
    FSDP1 flattens all weights of a unit into one tensor, and FSDP2 reduces the gradients of those that are trained
    together: both raise where these are not of one dtype. FSDP2, `fully_shard`, reads `output_dtype` of its policy, and
    FSDP1 `buffer_dtype`: each raises for the other's class.
    With FSDP1 every rank holds a shard of the gradients: if one has an inf, a GradScaler skips the step on that rank
    alone, and the weights are of two steps from then on. ShardedGradScaler asks all ranks.

    ## Example
    ```python
    import torch
    from torch import nn
    from torch.distributed.fsdp import MixedPrecision, fully_shard

    model = fully_shard(nn.Linear(8, 8), mp_policy=MixedPrecision(param_dtype=torch.bfloat16))
    ```

    ## Use instead
    ```python
    import torch
    from torch import nn
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    model = fully_shard(nn.Linear(8, 8), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
    ```

    ## References
    - [fully_shard](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html)
    - [FullyShardedDataParallel](https://docs.pytorch.org/docs/stable/fsdp.html)
    """

    code, name = "DT608", "sharded-precision"
    triggers = ("MixedPrecision", "MixedPrecisionPolicy", "FullyShardedDataParallel", "fully_shard")

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for seen in facts.events("unlike weights in a unit"):
            frozen, *names = (one.value for one in seen.what.about[1:] if isinstance(one, Const))
            which = "weights" if frozen else "trained weights"
            says = f"FSDP raises: the {which} of this unit are {' and '.join(map(str, names))}"
            yield _error(
                seen.node, says, "Cast them to one dtype, or shard those of another dtype as a unit of their own"
            )
        own, other = list(facts.calls(*_OF_WRAPPER)), list(facts.calls(*_OF_FUNCTION))
        for call in other:
            for name in _ONLY_OF_WRAPPER:
                if name in call.keywords:
                    yield _error(call.node, f"Raises: MixedPrecisionPolicy has no `{name}`", _OTHER_ARGUMENT)
        for call in own:
            if "output_dtype" in call.keywords:
                yield _error(call.node, "Raises: MixedPrecision has no `output_dtype`", _OTHER_ARGUMENT)
        for call in facts.calls(*_FUNCTION):
            if _is_one_of(facts, call.argument_node(None, "mp_policy"), own):
                yield _error(call.node, "fully_shard raises for the MixedPrecision of FSDP1", _OTHER_CLASS)
        halves = {id(call.node) for call in own if _is_float16(call)}
        for call in facts.calls(*_WRAPPER):
            given = call.argument_node(6, "mixed_precision")
            if _is_one_of(facts, given, other):
                yield _error(call.node, "FSDP1 raises for the MixedPrecisionPolicy of FSDP2", _OTHER_CLASS)
            policy = None if given is None else facts.around.definition(given)
            if id(policy) in halves or (given is None and call.complete):
                yield from _scaled_alone(facts, call)


_OTHER_ARGUMENT = "It is of FSDP's other version"
_OTHER_CLASS = "Give fully_shard a MixedPrecisionPolicy, and FullyShardedDataParallel a MixedPrecision"


def _error(node: ast.expr, message: str, help: str) -> Finding:
    return Finding(node, message, help=help, severity=Severity.ERROR)


def _is_one_of(facts: ModuleFacts, node: ast.expr | None, calls: list[Call]) -> bool:
    """Is an argument what one of some calls makes?"""
    return node is not None and any(one.node in (node, facts.around.definition(node)) for one in calls)


def _is_float16(call: Call) -> bool:
    dtype = dtype_of(value) if (value := call.argument(0, "param_dtype")) is not None else None
    return dtype is not None and dtype.dtypes == frozenset({"float16"})


def _scaled_alone(facts: ModuleFacts, wrapped: Call) -> Iterator[Finding]:
    """The scalers of a file that wraps a model in float16."""
    for call in facts.calls(*SCALERS):
        is_beside = facts.around.function(call.node) is facts.around.function(wrapped.node)
        if is_beside and call.constant(None, "enabled") is not False:
            yield Finding(
                call.node,
                "Each rank would skip steps by its own shard of the gradients",
                help="Use torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
                notes=((wrapped.node, "FSDP shards the model here"),),
            )
