"""DT314: a float64 tensor is made on, or moved to, a device that has no float64."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import Array, Const, Device, Dtype, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._minded import atoms_of
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.domain.values import Value
    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["Float64OnDevice"]

_FACTORIES = tuple(
    f"torch.{name}"
    for name in (
        *("zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "tensor", "as_tensor", "eye", "rand"),
        "randn",
    )
)
_FLOAT64 = frozenset({"float64"})
_ASKING = ("mps", "npu", "xla", "is_cpu", "is_cuda", "double", "float64")
"""Words by which the test around it, or the name of the function, shows that float64 or the device is asked for."""


class Float64OnDevice(Rule):
    """A float64 tensor is made on, or moved to, a device that may not have float64.

    ## What it does
    Reports a float64 tensor that is made on MPS, or moved there.

    Conditional, and reported with `--preview` only: `torch.arange(n, dtype=torch.float64, device=x.device)` and its kin, a
    cast to float64 of a tensor that the caller gives, and `.to(device)` of a tensor that NumPy made float64, where nothing
    says which device it is, and the function does not ask.

    ## Why it matters
    MPS (Apple's GPUs) and several other accelerators have no float64: "Cannot convert a MPS Tensor to float64 dtype as
    the MPS framework doesn't support float64". Code that was only tried on CPU and CUDA dies there.

    ## Example
    ```python
    import torch


    def frequencies(positions: torch.Tensor, width: int) -> torch.Tensor:
        scale = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device) / width
        return positions[:, None] / 10000**scale
    ```

    ## Use instead
    ```python
    import torch


    def frequencies(positions: torch.Tensor, width: int) -> torch.Tensor:
        scale = torch.arange(0, width, 2, dtype=torch.float32, device=positions.device) / width
        return positions[:, None] / 10000**scale
    ```

    ## References
    - [PyTorch: MPS backend](https://docs.pytorch.org/docs/stable/notes/mps.html)
    """

    code, name = "DT314", "float64-on-device"
    triggers = ("float64", ".double", "numpy", ".to(float", "dtype=float", "mps")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        told: set[ast.AST] = set()
        for call in (*facts.calls(*_FACTORIES), *facts.methods("to", "double")):
            where = _made(call) if call.name in _FACTORIES else _moved(call)
            if where is None or call.node in told:
                continue
            told.add(call.node)
            known = where == "mps"
            if known or not _asks(facts, call):
                yield Finding(
                    call.node,
                    "MPS has no float64: this raises"
                    if known
                    else f"MPS has no float64: this raises if {where} is MPS",
                    help='Use float32, at least if `device.type == "mps"`',
                    conditional=not known,
                )


def _made(call: Call) -> str | None:
    """`torch.zeros(n, dtype=torch.float64, device=x.device)`: where, in words."""
    dtype, device = call.argument(None, "dtype"), call.argument(None, "device")
    array = call.argument(0, "data") if dtype is None else None
    wide = dtype == Dtype(_FLOAT64) or (isinstance(array, Array) and array.dtypes == _FLOAT64)
    return _where(device, "the device") if wide and device is not None and call.complete else None


def _moved(call: Call) -> str | None:
    """`x.double()` of the caller's tensor, and `.to(device)` of one that is float64."""
    tensor, result = call.receiver, call.result
    if not isinstance(tensor, Tensor) or not isinstance(result, Tensor) or result.dtypes != _FLOAT64:
        return None
    if tensor.dtypes != _FLOAT64:
        given = bool(atoms_of(tensor)) and not any(atom.floating for atom in atoms_of(tensor)) and tensor.device is None
        return "the tensor's device" if given else "mps" if tensor.device == "mps" else None
    devices = [one for one in (*call.args, *call.keywords.values()) if not isinstance(one, Dtype)]
    return _where(devices[0], "the device") if devices and call.method == "to" else None


def _where(device: Value, unknown: str) -> str | None:
    """`mps`, or what is said of a device that nobody knows; None for those that have float64."""
    if isinstance(device, Const):
        return "mps" if isinstance(device.value, str) and device.value.startswith("mps") else None
    if isinstance(device, Device):
        return unknown if device.type is None else "mps" if device.type == "mps" else None
    return unknown if isinstance(device, Unknown) and device.dtypes is None else None


def _asks(facts: ModuleFacts, call: Call) -> bool:
    """Does the function ask on which device it is, or for float64, or bring its result to the CPU?"""
    function = facts.around.function(call.node)
    if function is None:
        return True
    name = getattr(function, "name", "")
    asked = [
        part for node in ast.walk(function) if isinstance(node, (ast.If, ast.IfExp)) for part in ast.walk(node.test)
    ]
    words = [getattr(part, "attr", "") or getattr(part, "id", "") or getattr(part, "value", "") for part in asked]
    if any(word in str(said).lower() for said in (name, *words) for word in _ASKING):
        return True
    around = facts.around.parent(call.node)
    return isinstance(around, ast.Attribute) and around.attr in ("numpy", "cpu", "tolist")
