"""DT314: a float64 tensor is made on, or moved to, whatever device the program runs on."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import FLOATING
from dtlint.infer.names import path_of
from dtlint.infer.values import Array, Dtype, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments
from dtlint_rules._functions import defaults, parameters
from dtlint_rules._imports import is_a_test
from dtlint_rules._names import last_name, mentions, said
from dtlint_rules._needs import TORCH, attributes
from dtlint_rules._parts import keyword
from dtlint_rules._scripts import is_script
from dtlint_rules._texts import short
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dtlint.infer.events import Call, Flow

__all__ = ["Float64OnDevice"]

_FACTORIES = frozenset(
    {"zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "tensor", "as_tensor", "eye", "rand", "randn"}
)
_OF_ARRAYS = frozenset({"tensor", "as_tensor"})
"""Those that take the dtype of an array of NumPy."""
_GUARDS = ("mps", "npu", "xla", "is_cpu", "is_cuda", "supports_float64", "fp64", "float64_supported")
"""Words by which a function shows that it asks where it runs."""
_HAVING_FLOAT64 = ("cpu", "cuda", "meta")
_FLOAT64 = frozenset({"float64"})
_DOUBLE = re.compile(r"double|float64", re.IGNORECASE)
_HELP = 'Use float32, at least if `device.type == "mps"`'


class Float64OnDevice(Rule):
    """A float64 tensor is made on, or moved to, a device that may not have float64.

    ## What it does
    Reports `torch.arange(n, dtype=torch.float64, device=x.device)` and its kin, a cast to float64 of a tensor that the
    caller gives or that was made on the device of another, `.to(device)` of a tensor that NumPy made float64, and
    `torch.tensor(np.linspace(0, 1, n), device=device)`, in code that does not ask which device it is, and does not
    choose between CUDA and the CPU itself.

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
    calls = frozenset({*_FACTORIES, "to", "double"})
    triggers = ("float64", ".double", "numpy", ".to(float", "dtype=float")
    needs = (TORCH, attributes(calls))

    def on_call(self, call: Call) -> Iterable[Finding]:
        finding = self._moved(call) if call.method in ("to", "double") else self._made(call)
        if finding is None or is_script(call.flow.tree) or is_a_test(call.flow.tree) or _asks(call.flow):
            return ()
        return (finding,)

    def _made(self, call: Call) -> Finding | None:
        """`torch.zeros(n, dtype=torch.float64, device=x.device)`."""
        package, _, name = call.target.rpartition(".")
        dtype, device = call.argument(None, "dtype"), call.argument_node(None, "device")
        if package != "torch" or name not in _FACTORIES or not _is_open(device, call.flow):
            return None
        if dtype != Dtype("float64") and not (dtype is None and name in _OF_ARRAYS and _is_wide_array(call)):
            return None
        assert device is not None
        return Finding(
            call.node,
            f"MPS has no float64: this raises if `{short(device)}` is MPS",
            help=_HELP,
        )

    def _moved(self, call: Call) -> Finding | None:
        """`x.to(torch.float64)` of the caller's tensor, and `.to(device)` of one that is float64."""
        tensor = call.receiver
        if not isinstance(tensor, Tensor) or not call.complete:
            return None
        is_cast, dtypes = call.cast
        if is_cast:
            sole = tensor.symbol.sole if tensor.symbol is not None else None
            text = sole.text if sole is not None and sole.parameter else _made_beside(call)
            if dtypes != _FLOAT64 or text is None or _is_closed(call) or _is_asked_for(call.flow):
                return None
            message = f"MPS has no float64: this raises if `{text}` is on MPS"
            return Finding(call.node, message, help=_HELP)
        device = call.argument_node(0, "device")
        if not _is_open(device, call.flow):
            return None
        dtypes, origin = tensor.dtypes, tensor.origin
        if dtypes is None:
            origin = _of_one_branch(tensor, call.flow)
        if (origin is None) if dtypes is None else ("float64" not in dtypes or dtypes >= FLOATING):
            return None
        word = "is" if dtypes == _FLOAT64 else "can be"
        return Finding(
            call.node,
            f"MPS has no float64: moving a tensor that {word} float64 there raises",
            help="Cast it to float32 with the move",
            notes=((origin, "float64 since here"),) if origin is not None and origin.lineno != call.node.lineno else (),
        )


def _is_wide_array(call: Call) -> bool:
    """`torch.tensor(np.linspace(0, 1, n), device=device)`: the dtype is the array's, which NumPy makes float64."""
    array = call.argument(0, "data")
    return isinstance(array, Array) and array.dtypes == _FLOAT64


def _is_asked_for(flow: Flow) -> bool:
    """Is float64 what the function is for, or the choice of its caller: `to_double(x)`, `if upcast_to_double:`?"""
    name = flow.function.name if flow.function is not None else ""
    return _DOUBLE.search(name) is not None or mentions(flow.conditions, ("double", "float64"))


def _made_beside(call: Call) -> str | None:
    """The name of a tensor that is cast, where a factory made it on the device of another: `arange(n, device=x.device)`."""
    for part in ast.walk(call.node.func):
        bound = assignments(call.flow.scope).get(part.id, ()) if isinstance(part, ast.Name) else ()
        made = [source for _, source in bound]
        if made and all(isinstance(source, ast.Call) and _is_on_device_of(source) for source in made):
            return part.id if isinstance(part, ast.Name) else None
    return None


def _is_on_device_of(made: ast.Call) -> bool:
    device = keyword(made, "device")
    of_tensor = isinstance(device, ast.Attribute) and device.attr == "device" and path_of(device) != "self.device"
    return of_tensor and last_name(made) in _FACTORIES and path_of(made.func) == f"torch.{last_name(made)}"


def _of_one_branch(tensor: Tensor, flow: Flow) -> ast.expr | None:
    """The `np.array([...])` that leaves the dtype to NumPy, where `torch.from_numpy` takes a name that another branch gives
    an array of float32: floats are meant, and they are float64 in this branch."""
    made = tensor.origin
    if not isinstance(made, ast.Call) or last_name(made) != "from_numpy" or not made.args:
        return None
    name = made.args[0]
    bound = assignments(flow.scope).get(name.id, ()) if isinstance(name, ast.Name) else ()
    above = [source for line, source in bound if line < made.lineno and source is not None]
    told = ["float32" in said(source) for source in above]
    if not any(told) or told[-1]:
        return None
    return next((source for source in reversed(above) if _is_array_of_list(source)), None)


def _is_array_of_list(node: ast.expr) -> bool:
    """Is it `np.array([f(x) for x in xs])` without a dtype, rounded or not?"""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("round", "copy"):
        node = node.func.value
    return (
        isinstance(node, ast.Call)
        and path_of(node.func) in ("np.array", "numpy.array")
        and not node.keywords
        and len(node.args) == 1
        and isinstance(node.args[0], ast.ListComp)
    )


def _is_open(device: ast.expr | None, flow: Flow) -> bool:
    """Is it a device that the program or its caller decides: `x.device`, `device`, `self.device`? Not one that the
    function takes from CUDA, `device = torch.device("cuda", rank)`, nor one that a program takes from CUDA or the CPU."""
    path = path_of(device) if device is not None else None
    if path is None or not path.rpartition(".")[2].endswith("device"):
        return False
    made = [value for _, value in assignments(flow.scope).get(path, ()) if value is not None]
    if not made and flow.function is not None:
        made = [default for parameter, default in defaults(flow.function.node.args) if parameter.arg == path]
    if made and all(_is_of_cuda(value) for value in made):
        return False
    return not _is_chosen(path, flow)


def _is_chosen(path: str, flow: Flow) -> bool:
    """Is it, by each assignment that there is, `torch.device("cuda" if torch.cuda.is_available() else "cpu")` or its kin:
    in the running function, or in the module, if the function has no such name?"""
    function, scope = flow.function, flow.scope
    if path not in assignments(scope) and function is not None:
        if any(parameter.arg == path for parameter in parameters(function.node)):
            return False
        scope = flow.tree
    made = [value for _, value in assignments(scope).get(path, ())]
    return bool(made) and all(value is not None and _has_float64(value) for value in made)


def _has_float64(device: ast.expr) -> bool:
    """Is a device written out, and one that has float64, in each case?"""
    if isinstance(device, ast.IfExp):
        return _has_float64(device.body) and _has_float64(device.orelse)
    if isinstance(device, ast.Call):
        return path_of(device.func) == "torch.device" and bool(device.args) and _has_float64(device.args[0])
    if isinstance(device, ast.JoinedStr):
        return bool(device.values) and _has_float64(device.values[0])
    return isinstance(device, ast.Constant) and str(device.value).startswith(_HAVING_FLOAT64)


def _is_of_cuda(device: ast.expr) -> bool:
    texts = [part.value for part in ast.walk(device) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return bool(texts) and all(text.startswith("cuda") for text in texts)


def _is_closed(call: Call) -> bool:
    """Is the tensor on a device that has float64: `x.cpu().to(torch.float64)`, `x.to(torch.float64).numpy()`?"""
    parent = parents_at(call.node, call.flow).get(call.node)
    to_numpy = isinstance(parent, ast.Attribute) and parent.attr in ("numpy", "cpu", "tolist")
    return to_numpy or any(word.startswith(_HAVING_FLOAT64) for word in said(call.node))


def _asks(flow: Flow) -> bool:
    """Does the running function ask on which device it is? A private one leaves that to the rest of its file."""
    private = flow.function is not None and flow.function.name.startswith("_")
    scope = flow.tree if private else flow.scope
    words = [word.lower() for word in said(scope)] if private or not isinstance(scope, ast.Module) else []
    if any(guard in word for word in words for guard in _GUARDS):
        return True
    return any(
        isinstance(part, ast.Attribute) and part.attr == "type" and (path_of(part.value) or "").endswith("device")
        for part in ast.walk(flow.scope)
    )
