"""DT502: tensor types of before torch 0.4, where they move the tensor, raise, or lose whole numbers."""

from __future__ import annotations

import ast
import re
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Fix, Severity
from dtlint.dtypes.dtype import FLOATING, LEGACY_TENSORS
from dtlint.infer.names import path_of
from dtlint.infer.values import Either, External, Items, Module, Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._asserted import asserted
from dtlint_rules._functions import parameters
from dtlint_rules._half import half_at
from dtlint_rules._handed_back import handed_back
from dtlint_rules._legacy import METHODS, TensorType, as_tensor, cast_by_method, is_list, tensor_type
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import LEGACY, TORCH
from dtlint_rules._origin import NOTHING, Kind, in_order
from dtlint_rules._origins import origins_of
from dtlint_rules._parts import keyword, same
from dtlint_rules._placed import told_device
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call
    from dtlint.infer.values import Value
    from dtlint.source.place import Place

__all__ = ["LegacyConstructor"]

_TYPE = re.compile(r"type$|half|fp16|cuda", re.IGNORECASE)
"""What stands in a test for the type of a tensor."""
_MADE_ON_CPU = frozenset(
    {"from_numpy", "tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "cpu", "numpy", "stack"}
)
"""What makes tensors on the CPU, or takes them there."""


class LegacyConstructor(Rule):
    """A legacy tensor type is used where it does more than to choose a dtype.

    ## What it does
    Reports `x.type(torch.FloatTensor)` and the like, `isinstance(x, torch.FloatTensor)`, legacy constructors that are
    given a tensor, `torch.LongTensor(index)`, or the sizes of one, `torch.cuda.FloatTensor(x.size(0), n)`, or a device
    that is not their own, `torch.LongTensor(index, device=device)`, or a dtype, `torch.Tensor(data, dtype=dtype)`, and
    `torch.Tensor` of whole numbers beyond 2**24. As information, it reports constructors of `torch.cuda` that are
    given a list, `torch.cuda.IntTensor([0])`, and `torch.Tensor(array)` of an array that is cut out or put together of
    what `x.numpy()` gave of an argument. The other uses are those of `legacy-tensor`, DT509.

    Conditional, and so reported with `--preview` only: a tensor type for the sizes of a tensor that may be half,
    and an array that need not be float32.

    ## Why it matters
    A legacy type is a dtype and a device. `x.type(torch.FloatTensor)` moves a tensor of the GPU to the CPU, and the
    next operation with its neighbours raises. `isinstance(x, torch.ByteTensor)` is False for the same bytes on a GPU,
    and the branch behind it is not taken there. `torch.LongTensor(x)` takes only a tensor that is int64 and on the CPU
    already, and raises TypeError for every other; told a device but the CPU it raises, too, and told a dtype it always
    does. `torch.Tensor` holds float32, in which 16777217 is 16777216; what came in as float64 or as integers leaves as
    float32, where `torch.from_numpy` keeps the dtype. The constructors of `torch.cuda` know no other device, and torch
    warns that they "are no longer recommended".

    ## Example
    ```python
    import torch

    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask.type(torch.FloatTensor)
    ```

    ## Use instead
    ```python
    import torch

    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * mask.float()
    ```

    ## Fix safety
    The fix of `x.type(...)` is unsafe because the tensor stays where it is. The fix of a constructor that is told a
    device, `torch.tensor(index, device=device, dtype=torch.int64)`, is unsafe because it copies any data. So is that of
    a list for a constructor that is told a dtype, which begins to work, and that of a list of numbers for a constructor
    of `torch.cuda`, which should keep value, dtype and device, but has not been tried on a GPU. The other forms have none.

    ## References
    - [torch.Tensor.type](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.type.html)
    - [torch.Tensor](https://docs.pytorch.org/docs/stable/tensors.html)
    """

    code, name = "DT502", "legacy-constructor"
    fix = Applicability.UNSAFE
    triggers = (".type", "Tensor(", "Tensoras", *LEGACY)
    needs = (TORCH,)
    calls = frozenset({"type", "isinstance", "Tensor", *LEGACY_TENSORS})

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.method == "type" and len(call.args) == 1 and not isinstance(call.node.args[0], ast.Constant):
            kind = tensor_type(call.args[0])
            return () if kind is None else self._cast(call, kind)
        if call.target == "builtins.isinstance":
            return _asked(call) if len(call.node.args) == 2 else ()
        if not call.target.startswith("torch.") or not call.target.endswith("Tensor"):
            return ()
        if "device" in call.keywords and (found := told_device(call, tensor_type(External(call.target)))) is not None:
            return (found,)
        if "dtype" in call.keywords:
            return (_told_dtype(call),)
        several = [*(self._constructed(call) if len(call.args) == 1 else _sized(call) if call.args else ())]
        return several or _on_cuda(call)

    def _cast(self, call: Call, kind: TensorType) -> Iterator[Finding]:
        function = call.node.func
        if not isinstance(function, ast.Attribute) or isinstance(call.receiver, (Module, Either)):
            return
        if isinstance(call.flow.statement, ast.Expr) and call.flow.statement.value is call.node:
            return  # of a module, or a slip that DT104 reports
        if kind.device == "the CPU" and _is_made_on_cpu(function.value):
            return
        method = METHODS.get(kind.dtype)
        if method is not None:
            yield Finding(
                call.node,
                f"`{kind.name}` also moves the tensor to {kind.device}",
                help=f"Use `.{method}()`",
                fix=partial(cast_by_method, call.node, method),
            )

    def _constructed(self, call: Call) -> Iterator[Finding]:
        name, given = call.target, call.node.args[0]
        kind = tensor_type(External(name))
        tensor = _tensor(given, call.args[0])
        if kind is not None and tensor is not None and not _is_asked_for(call):
            if tensor.dtypes != frozenset({kind.dtype}) or kind.device == "the CPU":
                yield Finding(
                    call.node,
                    f"`{name}` raises unless the tensor is {kind.dtype} and on {kind.device} already",
                    help=f"Use `.to(torch.{kind.dtype})`, or the tensor itself",
                )
        elif name in ("torch.Tensor", "torch.FloatTensor") and (number := _beyond_float32(given)) is not None:
            yield Finding(
                call.node,
                f"{number} is not exact in float32",
                help="Use `torch.tensor(...)`, which keeps integers",
            )
        elif name in ("torch.Tensor", "torch.FloatTensor") and (source := handed_back(given, call)) is not None:
            yield Finding(
                call.node,
                f"`{name}` makes float32, whatever dtype `{source}` had",
                help="Use `torch.from_numpy(...)`, which keeps the dtype and shares memory",
                severity=Severity.INFO,
                conditional=True,
            )


def _on_cuda(call: Call) -> Iterator[Finding]:
    """`torch.cuda.IntTensor([0])`."""
    kind = tensor_type(External(call.target))
    given = call.node.args
    if kind is None or kind.device == "the CPU" or call.node.keywords or call.flow.version_gated:
        return
    if len(given) == 1 and isinstance(given[0], (ast.List, ast.ListComp)):
        yield Finding(
            call.node,
            f"`{kind.name}` is deprecated, and works on CUDA only",
            help=f"Use `torch.tensor(..., dtype=torch.{kind.dtype}, device=...)`",
            severity=Severity.INFO,
            fix=partial(_as_tensor, call.node, kind.dtype) if is_list(call.node) else None,
        )


def _as_tensor(node: ast.Call, dtype: str, place: Place) -> Fix:
    made = as_tensor(node, dtype, place, device="cuda")
    return Fix(made.message, made.edits, Applicability.UNSAFE)


def _tensor(given: ast.expr, value: Value) -> Tensor | None:
    """The tensor that a constructor is given. Nothing but tensors has `x.long()`; one that was made on the CPU is
    handed through by the constructor of its type."""
    if isinstance(value, Tensor):
        return value
    if type(value) is not Unknown or not isinstance(given, ast.Call) or given.args or given.keywords:
        return None
    is_long = isinstance(given.func, ast.Attribute) and given.func.attr == "long"
    return Tensor(frozenset({"int64"})) if is_long and not _is_made_on_cpu(given) else None


def _told_dtype(call: Call) -> Finding:
    """`torch.Tensor(data, dtype=torch.float64)`."""
    given = keyword(call.node, "dtype")
    dtype = "" if given is None else ast.unparse(given)
    return Finding(
        call.node,
        f"`{call.target}` takes no dtype: this raises TypeError",
        help=f"Use `torch.tensor(..., dtype={dtype})`, or `torch.empty` of sizes",
        severity=Severity.ERROR,
        fix=partial(_as_function, call.node) if len(call.node.args) == 1 and _is_data(call.node.args[0]) else None,
    )


def _is_data(node: ast.expr) -> bool:
    """Is the argument data for certain, and neither a size nor a tensor, which `torch.tensor` warns of?"""
    return isinstance(node, (ast.List, ast.Tuple, ast.ListComp))


def _as_function(node: ast.Call, place: Place) -> Fix:
    function, imports = place.spelled("torch.tensor")
    return Fix(f"Use `{function}`", (place.replace(node.func, function), *imports), Applicability.UNSAFE)


def _asked(call: Call) -> Iterator[Finding]:
    """`isinstance(x, torch.ByteTensor)` of an argument, where nothing asks for the type of the GPU beside it."""
    subject = path_of(call.node.args[0])
    if all(parameter.arg != subject for parameter in parameters(call.flow.scope)):
        return  # what the function makes or loads itself can be on the CPU for certain
    if isinstance(call.flow.statement, ast.Assert) or _is_refused_otherwise(call):
        return  # who demands the type may well mean the device too
    if any(_demands(held, subject, call.node.args[1]) for held in asserted(call.flow.scope)):
        return  # it has demanded one of some types, and asks which it is
    given = call.args[1]
    values = given.items if isinstance(given, Items) else [given]
    known = [kind for value in values if (kind := tensor_type(value)) is not None]
    if not known or any(kind.device != "the CPU" for kind in known):
        return
    if any(tensor_type(value) is None and not _is_of_python(value) for value in values):
        return  # it may be a class of tensors, which those of the GPU are instances of
    if any("cuda" in names_in(held.test) or "device" in names_in(held.test) for held in call.flow.conditions):
        return
    yield Finding(
        call.node,
        f"`{known[0].name}` is {known[0].dtype} on the CPU only: this is False on other devices",
        help=f"Use `{subject}.dtype == torch.{known[0].dtype}`",
    )


def _is_refused_otherwise(call: Call) -> bool:
    """`if not isinstance(x, torch.LongTensor): raise TypeError`."""
    parent, statement = next(within(call.node, call.flow), None), call.flow.statement
    if not isinstance(parent, ast.UnaryOp) or not isinstance(parent.op, ast.Not):
        return False
    return not isinstance(statement, ast.If) or isinstance(statement.body[-1], ast.Raise)


def _is_of_python(value: Value) -> bool:
    """Is it a type of numbers or of containers: `int`, `list`?"""
    return isinstance(value, External) and value.name.startswith("builtins.")


def _demands(held: ast.expr, subject: str | None, kind: ast.expr) -> bool:
    """`isinstance(x, (torch.LongTensor, SparseTensor))`, in an `assert`, of the same `x` and the same type."""
    if not isinstance(held, ast.Call) or path_of(held.func) != "isinstance" or len(held.args) != 2:
        return False
    return path_of(held.args[0]) == subject and any(same(part, kind) for part in ast.walk(held.args[1]))


def _sized(call: Call) -> Iterator[Finding]:
    """`torch.cuda.FloatTensor(x.size(0), n)`, `torch.FloatTensor(x.size(0), n).to(x.device)`: float32, whatever `x` is."""
    kind = tensor_type(External(call.target))
    if kind is None or kind.dtype not in FLOATING or call.flow.function is None:
        return
    parent = next(within(call.node, call.flow), None)
    if kind.device == "the CPU" and not (isinstance(parent, ast.Attribute) and parent.attr in ("to", "cuda")):
        return  # who puts a batch together does so on the CPU
    if any(_TYPE.search(name) for held in call.flow.conditions for name in names_in(held.test)):
        return  # one of several, by the dtype of what is given
    origins = origins_of(call.flow.scope)
    names = {parameter.arg for parameter in parameters(call.flow.scope)}
    measured = NOTHING.union(*(origins.measured(node) for node in call.node.args))
    of = in_order(origin for origin in measured if origin.kind == Kind.GIVEN and origin.text in names)
    if of and half_at(call.flow, dtype=None) is not None:
        yield Finding(
            call.node,
            f"`{kind.name}` makes {kind.dtype} on {kind.device}, whatever `{of[0].text}` is",
            help=f"Use `{of[0].text}.new_empty(...)`",
            conditional=True,
        )


def _is_asked_for(call: Call) -> bool:
    """Does a test ask what the argument is: `if isinstance(ids, list): ids = torch.LongTensor(ids)`?"""
    path = path_of(call.node.args[0])
    return any(
        isinstance(part, ast.Call) and last_name(part) == "isinstance" and part.args and path_of(part.args[0]) == path
        for held in call.flow.conditions
        for part in ast.walk(held.test)
    )


def _is_made_on_cpu(node: ast.expr) -> bool:
    """Does a chain of calls begin with what makes a tensor on the CPU?"""
    return any(isinstance(part, ast.Call) and last_name(part) in _MADE_ON_CPU for part in ast.walk(node))


def _beyond_float32(node: ast.expr) -> int | None:
    """A whole number in a list that float32 rounds."""
    if not isinstance(node, (ast.List, ast.Tuple)):
        return None
    for part in ast.walk(node):
        number = part.value if isinstance(part, ast.Constant) else None
        if type(number) is int and number.bit_length() <= 128 and int(_rounded(number)) != number:
            return number
    return None


def _rounded(number: int) -> float:
    import struct

    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float(number)
