"""DT107: what is no torch dtype where one is due: strings, NumPy's types, `torch_dtype=`."""

from __future__ import annotations

import ast
import re
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.dtypes.dtype import DTYPES, Category, named
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Device, Dtype, External, Instance, Module, Tensor, Unknown, Value
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import assignments, bound_once, source_of
from dtlint_rules._by_position import BY_POSITION, JUDGED, dtype_by_position, no_tensor
from dtlint_rules._casts import SHORT
from dtlint_rules._fixes import respell
from dtlint_rules._functions import parameters
from dtlint_rules._imports import imports
from dtlint_rules._known import known
from dtlint_rules._names import last_name, names_in
from dtlint_rules._needs import STRINGS, attributes
from dtlint_rules._no_methods import NO_METHODS, is_no_method
from dtlint_rules._tried import is_tried
from dtlint_rules._truths import Truth, bools_for_dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dtlint.infer.events import Assign, Call, End
    from dtlint.source.place import Place

__all__ = ["WrongDtypeArgument"]

_NUMPY = {
    name: name
    for name in (
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("complex64", "complex128"),
    )
} | {"half": "float16", "single": "float32", "double": "float64", "bool_": "bool", "float_": "float64"}
"""NumPy's scalar types and the torch dtypes of the same numbers."""

_TAKE_DTYPE = ("torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.Tensor")
"""Where functions, layers and methods live whose `dtype=` is a torch.dtype."""

_ARRAY_MAKERS = frozenset(
    f"numpy.{name}" for name in ("array", "asarray", "zeros", "ones", "empty", "ascontiguousarray")
)
"""Functions of NumPy that take a dtype as their second argument."""

_OTHERS = frozenset({"paddle", "mindspore", "oneflow", "jittor", "megengine"})
"""Packages whose tensors have a `.to` that takes a string."""

_MIXED_UP = ("device = dtype", "device = self.dtype", "device or ")
"""How a dtype stands for a device: `self.load_device = load_device or load_dtype`."""
_BEHIND_OR = ("or torch.", "or th.")
"""How a dtype stands behind `or`."""
_UNKNOWN_CASTS = attributes(NO_METHODS, of_self=True)
_LIMITS = attributes(("finfo", "iinfo"))
_LIMITED = {"torch.finfo": (Category.INTEGER, "iinfo"), "torch.iinfo": (Category.FLOAT, "finfo")}
"""What gives the limits of dtypes: what it refuses, and what takes that."""
_OF_PYTHON = {"builtins.int": "int64", "builtins.float": "float64"}
_TENSORS = re.compile(r"(^|_)(tensors?|weights?|param|grad|logits|embeds|embeddings|hidden_states)$")
"""How tensors are called, and no dtype."""
_HAVE_DEVICE = frozenset({"from_pretrained", "from_single_file", "Accelerator", "Fabric"})
"""What makes something with a `device` that is a torch.device: models of transformers, pipelines of diffusers, what
accelerate and Fabric prepare models with."""


class WrongDtypeArgument(Rule):
    """A string, a NumPy type or the keyword `torch_dtype` where torch wants a dtype.

    ## What it does
    Reports `.to("float16")` and `.to(dtype="float16")`, `.to(torch_dtype=...)`, `torch.zeros(2, dtype="float32")`,
    `torch.zeros(2, dtype=np.float32)`, `autocast(dtype="bfloat16")`, and the other way round `.astype(torch.float32)`
    and `np.zeros(2, dtype=torch.float32)`. Also `torch.dtype("float32")`, and `torch.autocast(x.device)`,
    `torch.autocast(torch.device("cuda"))`: it wants the type of a device; a tensor for a dtype, `self.dtype = x`; a
    dtype for a device, `self.device = device or dtype`; the bool that `or` gives in place of a dtype,
    `dtype = x is None or torch.float16`; and casts by methods that no tensor has, `x.as_type(y)`. A dtype that is given by
    position where torch takes it by its name, `torch.zeros(2, torch.float32)`, or takes something else,
    `nn.Linear(2, 2, torch.float32)`; a type that torch or NumPy never had, `dtype=np.float6432`; and a number, a dtype or
    an array of NumPy where a tensor is due, `x.type_as(3)`; and `torch.finfo` of integers, `torch.iinfo` of floats.

    Conditional, and so reported with `--preview` only: a tensor in place of a dtype, where no more than its name
    says that it is one.

    ## Why it matters
    torch takes dtypes as `torch.dtype` objects only. A positional string is taken for a device (`RuntimeError:
    Invalid device string: 'float16'`), everything else raises `TypeError`. `torch_dtype` is an argument of
    `from_pretrained`; as an argument of `.to` it raises for tensors and modules, and a pipeline of diffusers swallows
    it and casts nothing. Autocast with a string for a dtype is switched off with a warning. NumPy raises `Cannot
    interpret 'torch.float32' as a data type`. NumPy takes a dtype by position, and torch hardly anywhere: factories raise,
    and `nn.Linear` takes it for `bias`, which is then on. `torch.dtype` cannot be called at all, and autocast raises for
    what is no string. Such lines often stand in a branch that no test runs.

    ## Example
    ```python
    import torch

    model = torch.nn.Linear(2, 2)
    model.to(torch_dtype=torch.bfloat16)
    x = torch.zeros(2, dtype="bfloat16")
    ```

    ## Use instead
    ```python
    import torch

    model = torch.nn.Linear(2, 2)
    model.to(dtype=torch.bfloat16)
    x = torch.zeros(2, dtype=torch.bfloat16)
    ```

    ## Fix safety
    The fix is safe where the call raises as it stands. It is unsafe on what may not be a tensor, a module or an array,
    for `torch_dtype` and `.astype()` among others, and for autocast, which then begins to work.

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code, name = "DT107", "wrong-dtype-argument"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    triggers = (
        "torch_dtype",
        "numpy",
        ".astype",
        "autocast",
        *(".dtype(", "self.dtype=", "self._dtype=", ".type_as"),
        *BY_POSITION,
        *STRINGS,
        *(f'"{name}' for name in SHORT),
        *_MIXED_UP,
        *_BEHIND_OR,
        *_UNKNOWN_CASTS,
        *_LIMITS,
    )
    needs = (
        (
            *(".to", "self.to", ".type", "self.type", ".astype", "dtype", "_dtype", ".autocast", "autocast"),
            *(".type_as", *BY_POSITION),
            *_MIXED_UP,
            *_BEHIND_OR,
            *_UNKNOWN_CASTS,
            *_LIMITS,
        ),
    )
    calls = frozenset({"astype", "to", "type", "type_as", "torch.", "numpy.", *NO_METHODS})
    targets = frozenset({ast.Attribute})
    hears_where = MappingProxyType(
        {
            "on_assign": ("self.dtype =", "self._dtype =", *_MIXED_UP),
            "on_end": _BEHIND_OR,
        }
    )

    def on_call(self, call: Call) -> Iterable[Finding]:
        value = call.keywords.get("dtype") or (call.args[0] if call.method in _CASTING and call.args else None)
        if type(value) is External and (unheard := _unheard_of(call, value)) is not None:
            return (unheard,)
        if call.method == "astype":
            return self._array_cast(call)
        if call.method in ("to", "type_as") and (found := no_tensor(call)) is not None:
            return (found,)
        if call.method in ("to", "type"):
            return self._cast(call)
        if call.method in NO_METHODS:
            return (_no_method(call),) if is_no_method(call) else ()
        if call.target == "torch.dtype":
            return (_uncallable(call),)
        if call.target in _LIMITED:
            return _limits(call, *_LIMITED[call.target])
        if call.target == "torch.amp.autocast" and (given := _device_given(call)) is not None:
            return (given,)
        if call.target in JUDGED and call.args and (given := dtype_by_position(call)) is not None:
            return (given,)
        if "dtype" in call.keywords and call.target.startswith("torch."):
            return self._made(call)
        if call.target in _ARRAY_MAKERS or ("dtype" in call.keywords and call.target.startswith("numpy.")):
            return self._array_made(call)
        return ()

    def _cast(self, call: Call) -> Iterator[Finding]:
        if not _is_torchs(call):
            return
        sure = isinstance(call.receiver, (Tensor, Module))
        if call.method == "to" and "torch_dtype" in call.keywords:
            yield Finding(
                call.node,
                "`.to()` has no argument `torch_dtype`: "
                + ("this raises TypeError" if sure else "tensors raise TypeError, and diffusers pipelines ignore it"),
                help="Use `dtype=`",
                severity=None if sure else Severity.WARNING,
                fix=lambda place: _keyword_fix(place, call, sure),
            )
            return
        if not sure and not _OTHERS.isdisjoint(imports(call.flow.tree)):
            return
        given = list(zip(call.node.args, call.args, strict=False))[: 2 if call.method == "to" else 1]
        given += [
            (keyword.value, call.keywords[keyword.arg]) for keyword in call.node.keywords if keyword.arg == "dtype"
        ]
        for node, value in given:
            name = _misnamed(value)
            if name is None or (call.method == "type" and not (sure or isinstance(value, External))):
                continue
            raised = "TypeError"
            if call.method == "to" and isinstance(value, Constant) and node in call.node.args:
                raised = f"RuntimeError: Invalid device string: {value.value!r}"
            yield self._finding(node, name, f"`.{call.method}()` raises {raised}", sure)

    def _made(self, call: Call) -> Iterator[Finding]:
        value = call.keywords.get("dtype")
        name = None if value is None else _misnamed(value)
        package = call.target.rpartition(".")[0]
        if name is None or (package not in _TAKE_DTYPE and call.target != "torch.amp.autocast"):
            return
        node = call.argument_node(None, "dtype")
        if node is None:
            return
        last = call.target.rpartition(".")[2]
        if last == "autocast":
            yield self._finding(node, name, "autocast is switched off, with a warning", sure=False)
        else:
            yield self._finding(node, name, f"`{last}()` raises TypeError", sure=True)

    def on_end(self, end: End) -> Iterator[Finding]:
        """`dtype = (name and name != "auto") or torch.float16`."""
        for found in bools_for_dtypes(end.node):
            asked = ast.unparse(found.asked)
            yield Finding(
                found.whole,
                f"This is `True`, not a dtype, where `{asked}` holds",
                help=f"Write `... if {asked} else {ast.unparse(found.whole.values[-1])}`",
                fix=partial(_chosen, found),
            )

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        """`self.dtype = x`, of a tensor, and `self.device = dtype`."""
        target, given = assign.target, assign.expression
        if given is not None and (mixed := _mixed_up(last_name(target), given)) is not None:
            return (mixed,)
        if path_of(target) not in ("self.dtype", "self._dtype"):
            return ()
        if not isinstance(given, (ast.Name, ast.Attribute)) or last_name(given).lower().endswith("type"):
            return ()
        seen = isinstance(known(assign.flow, given), Tensor) or isinstance(assign.value, Tensor)
        if not seen and not (isinstance(assign.value, Unknown) and _TENSORS.search(last_name(given)) is not None):
            return ()
        path = ast.unparse(given)
        return (
            Finding(
                given,
                f"`{path_of(target)}` is set to the tensor `{path}`, not to its dtype",
                help=f"Use `{path}.dtype`",
                conditional=not seen,
            ),
        )

    def _array_made(self, call: Call) -> Iterator[Finding]:
        value = call.argument(1 if call.target in _ARRAY_MAKERS else None, "dtype")
        node = call.argument_node(1 if call.target in _ARRAY_MAKERS else None, "dtype")
        if isinstance(value, Dtype) and node is not None:
            yield self._array_finding(node, value, sure=True)

    def _array_cast(self, call: Call) -> Iterator[Finding]:
        value, node = call.argument(0, "dtype"), call.argument_node(0, "dtype")
        is_array = call.target == "numpy.ndarray.astype"
        if isinstance(value, Dtype) and node is not None and (is_array or isinstance(call.receiver, Unknown)):
            yield self._array_finding(node, value, is_array)

    def _finding(self, node: ast.expr, name: str, happens: str, sure: bool) -> Finding:
        return Finding(
            node,
            f"`{ast.unparse(node)}` is not a torch dtype: {happens}",
            help=f"Use `torch.{name}`",
            fix=_respelled(node, f"torch.{name}", sure),
        )

    def _array_finding(self, node: ast.expr, dtype: Dtype, sure: bool) -> Finding:
        held = _NUMPY.get(dtype.name) or ("bool_" if dtype.name == "bool" else None)
        return Finding(
            node,
            f"`{ast.unparse(node)}` is not a NumPy dtype: this raises TypeError",
            help=f"Use `np.{held}`" if held else f"Make a tensor first: NumPy has no {dtype.name}",
            severity=None if sure else Severity.WARNING,
            fix=_respelled(node, f"numpy.{held}", sure) if held else None,
        )


def _mixed_up(name: str, given: ast.expr) -> Finding | None:
    """The dtype that is kept as a device: `self.load_device = load_device or load_dtype`."""
    first = None
    if isinstance(given, ast.BoolOp) and isinstance(given.op, ast.Or):
        first, given = given.values[0], given.values[-1]
    if not name.endswith("device") or not isinstance(given, (ast.Name, ast.Attribute)):
        return None
    if not _DTYPE.search(last_name(given)) or (first is not None and not last_name(first).endswith("device")):
        return None
    return Finding(
        given,
        f"The dtype `{ast.unparse(given)}` is stored as the device `{name}`",
        help="Store the device",
    )


_DTYPE = re.compile(r"(^|_)dtype$")
_CASTING = ("astype", "to")
_NUMBERED = re.compile(r"(?:u?int|b?float|complex)_?(\d+)")
"""How types of numbers are called."""
_LONG = frozenset({"float80", "float96", "float128", "float256", "complex160", "complex192", "complex256"})
"""Types that NumPy has on some platforms."""


def _unheard_of(call: Call, told: External) -> Finding | None:
    """`dtype=np.float6432`, `x.astype(np.float24)`: what is called like a type of numbers, and is none."""
    package, _, name = told.name.rpartition(".")
    if (found := _NUMBERED.fullmatch(name)) is None:
        return None
    if package == "numpy":
        has = name in _NUMPY or name in _LONG or int(found[1]) == 0
    else:
        has = package != "torch" or named(name) is not None or int(found[1]) < 8  # below 8 bits, torch has some
    if has:
        return None
    node = call.argument_node(0 if "dtype" not in call.keywords else None, "dtype")
    if node is None or call.flow.version_gated or _is_tried(call, name):
        return None
    held = "NumPy" if package == "numpy" else "torch"
    return Finding(node, f"{held} has no `{name}`: this raises AttributeError", help=f"Name a dtype that {held} has")


def _is_tried(call: Call, name: str) -> bool:
    """Does the file ask whether there is such a name, `hasattr(np, "float24")`, or catch what happens where there is none?"""
    if any(isinstance(node, ast.Constant) and node.value == name for node in nodes([call.flow.tree])):
        return True
    caught = (part.handlers for part in around(call.node, call.flow.tree) if isinstance(part, ast.Try))
    return any(each.type is None or not _CATCHING.isdisjoint(names_in(each.type)) for some in caught for each in some)


_CATCHING = frozenset({"AttributeError", "Exception"})


def _chosen(found: Truth, place: Place) -> Fix | None:
    """`name if name and name != "auto" else torch.float16`."""
    if found.meant is None or "#" in place.text(found.whole) or "\n" in place.text(found.whole):
        return None
    text = f"{ast.unparse(found.meant)} if {place.text(found.asked)} else {place.text(found.whole.values[-1])}"
    return Fix("Choose by the test", (place.replace(found.whole, text),), Applicability.UNSAFE)


def _no_method(call: Call) -> Finding:
    meant = NO_METHODS[call.method]
    return Finding(
        call.node,
        f"Tensors have no method `{call.method}`: this raises AttributeError",
        help=f"Use `.{meant}({'other' if meant == 'type_as' else ''})`",
        fix=partial(_renamed, call),
    )


def _renamed(call: Call, place: Place) -> Fix | None:
    meant = NO_METHODS[call.method]
    if meant == "type_as" and type(call.argument(0, "other")) is not Tensor and call.method != "as_type":
        return None
    return Fix(f"Use `{meant}`", (place.rename_method(meant),), Applicability.UNSAFE)


def _uncallable(call: Call) -> Finding:
    return Finding(
        call.node,
        "`torch.dtype` cannot be called: this raises TypeError",
        help="Look the dtype up by its name: `getattr(torch, name)`",
    )


def _limits(call: Call, refused: Category, instead: str) -> Iterator[Finding]:
    """`torch.finfo(int)`, `torch.iinfo(torch.float16)`. A name may be bound to what a test has asked before."""
    value, node = call.argument(0, "type"), call.argument_node(0, "type")
    name = value.name if isinstance(value, Dtype) else _OF_PYTHON.get(value.name) if type(value) is External else None
    if name is None or node is None or named(name) is None or DTYPES[name].category != refused:
        return
    written = isinstance(node, ast.Attribute) or type(value) is External
    if written and not call.flow.version_gated and not is_tried(call, ("TypeError",)):
        yield Finding(
            call.node,
            f"`{last_name(call.node)}` raises TypeError for `{ast.unparse(node)}`",
            help=f"Use `torch.{instead}`, or a {'floating' if refused is Category.INTEGER else 'whole'} dtype",
        )


def _device_given(call: Call) -> Finding | None:
    """The device that autocast is given in place of the type of one: `torch.autocast(x.device)`."""
    node = call.argument_node(0, "device_type")
    if node is None or not _is_device(call, node):
        return None
    return Finding(
        node,
        f'`torch.autocast` takes a device type such as "cuda": the device `{ast.unparse(node)}` raises',
        help=f"Use `{ast.unparse(node)}.type`",
        fix=partial(_typed, node),
    )


def _is_device(call: Call, node: ast.expr) -> bool:
    """Is it a device for certain: one that is made here, that of a tensor, or of what a library loads or makes? What else
    has a `device` may mean a string by it."""
    if isinstance(call.argument(0, "device_type"), Device):
        return isinstance(node, (ast.Name, ast.Attribute))
    if isinstance(node, ast.Name):
        if any(parameter.arg == node.id for parameter in parameters(call.flow.scope)):
            return False
        local = call.flow.scope if node.id in assignments(call.flow.scope) else call.flow.tree
        made = bound_once(node.id, local)
        return isinstance(made, ast.Call) and path_of(made.func) == "torch.device"
    if not isinstance(node, ast.Attribute) or node.attr != "device":
        return False
    if isinstance(known(call.flow, node.value), Tensor):
        return True
    made = source_of(node.value, call.flow) or node.value
    return isinstance(made, ast.Call) and (
        last_name(made) in _HAVE_DEVICE or (last_name(made) == "next" and "parameters" in names_in(made))
    )


def _typed(node: ast.expr, place: Place) -> Fix:
    edit = Edit(place.source.span(node), f"{ast.unparse(node)}.type")
    return Fix("Give the type of the device", (edit,), Applicability.SAFE)


def _is_torchs(call: Call) -> bool:
    """May the method be that of a tensor or a module, as far as is known? Not where the project defines it."""
    if isinstance(call.receiver, (Tensor, Module)):
        return call.target.startswith("torch.")
    function = call.node.func
    on_super = (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Call)
        and (isinstance(function.value.func, ast.Name) and function.value.func.id == "super")
    )
    return isinstance(call.receiver, Unknown) and not isinstance(call.receiver, Instance) and not on_super


def _misnamed(value: Value) -> str | None:
    """The torch dtype that a string or a type of NumPy's stands for."""
    if isinstance(value, Constant) and isinstance(value.value, str):
        name = value.value.removeprefix("torch.")
        return SHORT.get(name) or named(name)
    if isinstance(value, External) and value.name.startswith("numpy."):
        return _NUMPY.get(value.name[6:])
    return None


def _respelled(node: ast.expr, name: str, sure: bool) -> Callable[[Place], Fix]:
    return partial(respell, node=node, name=name, applicability=Applicability.SAFE if sure else Applicability.UNSAFE)


def _keyword_fix(place: Place, call: Call, sure: bool) -> Fix | None:
    keyword = next(keyword for keyword in call.node.keywords if keyword.arg == "torch_dtype")
    if "dtype" in call.keywords:
        return None
    edit = Edit(place.source.span(keyword), f"dtype={place.text(keyword.value)}")
    return Fix("Use `dtype=`", (edit,), Applicability.SAFE if sure else Applicability.UNSAFE)
