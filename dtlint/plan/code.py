"""A plan as code to paste: autocast regions, FSDP2 policies, or the names alone for an exporter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dtlint.trace.precision_plan import Plan

__all__ = ["CODE", "code"]

AUTOCAST = '''\
import functools

import torch
from torch.utils._pytree import tree_map

KEEP = {keep}


def widen(x):
    return x.float() if isinstance(x, torch.Tensor) and x.dtype in (torch.float16, torch.bfloat16) else x


def apply_precision_plan(model):
    """Run `model` under autocast in float16, and the own operators of the modules in KEEP in {kept_in}."""
    names = {{name or type(module).__name__: module for name, module in model.named_modules()}}
    kept = {{id(names[name]) for name in KEEP}}
    inside = {{id(child) for name in KEEP for child in names[name].children()}}

    def in_region(module):
        forward, keep = module.forward, id(module) in kept
        low = torch.autocast({device!r}, dtype=torch.float16)
        region = torch.autocast({device!r}, {kept_region}) if keep else low

        @functools.wraps(forward)
        def planned(*args, **kwargs):
            if keep:
                args, kwargs = tree_map(widen, (args, kwargs))
            with region:
                out = forward(*args, **kwargs)
            return tree_map(widen, out) if module is model or id(module) in inside else out

        module.forward = planned

    for module in names.values():
        if module is model or id(module) in kept | inside:
            in_region(module)
'''

SCALER = """

scaler = torch.amp.GradScaler({device!r}, init_scale={scale:.1f})  # then scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
"""

FSDP2 = '''\
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

KEEP = {keep}

half = MixedPrecisionPolicy(param_dtype=torch.float16, reduce_dtype=torch.float32, output_dtype=torch.float16)
wide = MixedPrecisionPolicy(param_dtype=torch.{keep_in}, reduce_dtype=torch.float32, output_dtype=torch.float16)


def shard_with_precision_plan(model, blocks=()):
    """Shard `model`: each module in KEEP by itself in {keep_in}, the rest, and each of `blocks`, in float16.

    A module in KEEP without parameters has nothing to shard: cast its inputs, and its result back, in its forward.
    """
    names = {{name or type(module).__name__: module for name, module in model.named_modules()}}
    for name in KEEP:
        if name != type(model).__name__ and any(True for _ in names[name].parameters(recurse=False)):
            fully_shard(names[name], mp_policy=wide)
    for block in blocks:
        fully_shard(block, mp_policy=half)
    fully_shard(model, mp_policy=wide if type(model).__name__ in KEEP else half)
'''


def code(plan: Plan, kind: str) -> str:
    """The plan as text of this kind, of `CODE`.

    Raises:
        ValueError: the kind does not fit how the plan brings float16 about; the message is one line.
    """
    return CODE[kind](plan)


def _autocast(plan: Plan) -> str:
    if plan.how != "autocast":
        raise ValueError(f"the plan is for {plan.how}; make it with --how autocast for autocast regions")
    region = "enabled=False" if plan.keep_in == "float32" else f"dtype=torch.{plan.keep_in}"
    text = AUTOCAST.format(keep=_set(plan), kept_in=plan.keep_in, device=plan.device, kept_region=region)
    return text + (SCALER.format(device=plan.device, scale=plan.scale) if plan.scale > 1 else "")


def _fsdp2(plan: Plan) -> str:
    if plan.how != "cast":
        raise ValueError("the plan is for autocast, and FSDP2 casts weights: make it with --how cast")
    return FSDP2.format(keep=_set(plan), keep_in=plan.keep_in)


def _names(plan: Plan) -> str:
    return "".join(f"{name}\n" for name in plan.names)


def _set(plan: Plan) -> str:
    if not plan.keep:
        return "set()"
    return "{\n" + "".join(f"    {json.dumps(name, ensure_ascii=False)},\n" for name in plan.names) + "}"


CODE: dict[str, Callable[[Plan], str]] = {"autocast": _autocast, "fsdp2": _fsdp2, "names": _names}
"""What `--code` takes."""
