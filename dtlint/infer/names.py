"""Qualified names: one spelling for each thing torch exports under several, and dotted paths of expressions."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

__all__ = ["canonical", "path_of"]

_SECOND_NAMES = {
    "torch.autocast": "torch.amp.autocast",
    "torch.GradScaler": "torch.amp.GradScaler",
    "torch._tensor.Tensor": "torch.Tensor",
    "torch.nn.utils.clip_grad_norm": "torch.nn.utils.clip_grad_norm_",
    "torch.autograd.grad_mode": "torch",
    "torch.cuda.amp.autocast_mode": "torch.cuda.amp",
    "torch.cuda.amp.grad_scaler": "torch.cuda.amp",
    "torch.cpu.amp.autocast_mode": "torch.cpu.amp",
    "torch.cpu.amp.grad_scaler": "torch.cpu.amp",
    "torch.amp.autocast_mode": "torch.amp",
    "torch.amp.grad_scaler": "torch.amp",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
    "torch.utils.data.distributed": "torch.utils.data",
    "torch.utils.data.sampler": "torch.utils.data",
}
"""Modules that only define what their parent exports, and objects with two public names."""

_DEFINING_MODULE = re.compile(
    r"torch\.(nn|optim)\.(?:modules\.)?(?!functional|utils|init|parallel|attention|lr_scheduler)[a-z_]+\.(?=[A-Z])"
)
"""`torch.nn.modules.linear.Linear` is `torch.nn.Linear`, `torch.optim.adam.Adam` is `torch.optim.Adam`."""


@lru_cache(maxsize=16_384)
def canonical(name: str) -> str:
    """The public name of what `name` names: `canonical("torch.autocast") == "torch.amp.autocast"`."""
    if not name.startswith("torch."):
        return name
    name = _DEFINING_MODULE.sub(r"torch.\1.", name.replace("torch.nn.modules.", "torch.nn."))
    known = _SECOND_NAMES.get(name)
    if known is not None:
        return known
    parent, _, last = name.rpartition(".")
    module = _SECOND_NAMES.get(parent)
    return name if module is None else f"{module}.{last}"


def path_of(node: ast.AST) -> str | None:
    """The dotted path of names and attributes, or None: `self.model.fc`."""
    if type(node) is ast.Name:
        return node.id
    if type(node) is not ast.Attribute:
        return None
    value = node.value
    if type(value) is ast.Name:  # the usual case, once for each attribute that is read
        return f"{value.id}.{node.attr}"
    inner = path_of(value)
    return None if inner is None else f"{inner}.{node.attr}"
