"""DT107: what is no torch dtype where one is due: strings, NumPy's types, `torch_dtype=`."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix, Severity
from dtlint.dtypes.dtype import DTYPES, Category, named
from dtlint.infer.domain.values import Array, Const, Device, Dtype, External, Number, Ref, Tensor, Unknown, Value
from dtlint.infer.facts import dtype_of
from dtlint.rule import Finding, Rule
from dtlint_rules._casts import SHORT
from dtlint_rules._fixes import respell
from dtlint_rules._imports import imports
from dtlint_rules._needs import STRINGS, attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dtlint.infer.facts import Call, ModuleFacts
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
_FACTORIES = frozenset({"zeros", "ones", "empty", "full", "rand", "randn", "eye", "arange", "linspace", "tensor"}) | {
    f"{name}_like" for name in ("zeros", "ones", "empty", "full", "rand", "randn")
}
"""Functions that take a dtype by its name alone."""
_ARRAY_MAKERS = frozenset(
    f"numpy.{name}" for name in ("array", "asarray", "zeros", "ones", "empty", "ascontiguousarray")
)
"""Functions of NumPy that take a dtype as their second argument."""
_NAMED = ("half", "float", "double", "bfloat16", "long", "int", "short", "char", "byte", "bool")
"""The casts whose dtype is in their name."""
_OTHERS = frozenset({"paddle", "mindspore", "oneflow", "jittor", "megengine"})
"""Packages whose tensors have a `.to` that takes a string."""


class WrongDtypeArgument(Rule):
    """A string, a NumPy type or the keyword `torch_dtype` where torch wants a dtype.

    ## What it does
    Reports `.to("float16")` and `.to(dtype="float16")`, `.to(torch_dtype=...)`, `torch.zeros(2, dtype="float32")`,
    `torch.zeros(2, dtype=np.float32)`, `autocast(dtype="bfloat16")`, and the other way round `.astype(torch.float32)`
    and `np.zeros(2, dtype=torch.float32)`. Also `torch.dtype("float32")`, `torch.zeros(2, torch.float32)`, a dtype that is
    given by position where torch takes it by its name; `torch.autocast(x.device)`, which wants the type of a device;
    `x.type_as(3)`, which wants a tensor; and `torch.finfo` of integers, `torch.iinfo` of floats.

    Conditional, and so reported with `--preview` only: `.astype(torch.float32)` of what is not known to be an array, for
    other classes have such a method.

    ## Why it matters
    torch takes dtypes as `torch.dtype` objects only. A positional string is taken for a device (`RuntimeError:
    Invalid device string: 'float16'`), everything else raises `TypeError`. `torch_dtype` is an argument of
    `from_pretrained`; as an argument of `.to` it raises for tensors and modules, and a pipeline of diffusers swallows
    it and casts nothing, unless the project declares releases before 0.21 alone, which had it. Autocast with a string
    for a dtype is switched off with a warning. NumPy raises `Cannot interpret 'torch.float32' as a data type`. NumPy
    takes a dtype by position, and torch hardly anywhere: factories raise, and `nn.Linear` takes it for `bias`, which
    is then on. `torch.dtype` cannot be called at all, and autocast raises for what is no string. Such lines often
    stand in a branch that no test runs.

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
    triggers = ("torch_dtype", "numpy", "torch", ".astype", *STRINGS, *(f'"{name}' for name in SHORT))
    needs = (
        (
            *(
                ".to",
                "self.to",
                ".type",
                "self.type",
                ".astype",
                "dtype",
                "_dtype",
                ".autocast",
                "autocast",
                ".type_as",
            ),
            *attributes(("finfo", "iinfo", *_FACTORIES, *_NAMED)),
        ),
    )

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        for call in facts.methods("to", "type", "type_as"):
            if call.name.startswith(("torch.Tensor.", "torch.nn.")) or not call.name:
                yield from _cast(facts, call)
        for call in facts.methods(*_NAMED):
            yield from _named_cast(call)
        for call in facts.calls("torch."):
            yield from _made(facts, call)
        for call in facts.methods("astype"):
            if call.name in ("", "numpy.ndarray.astype", "torch.Tensor.astype"):
                yield from _of_array(call, 0, sure=isinstance(call.receiver, Array))
        for call in facts.calls("numpy."):
            yield from _of_array(call, 1 if call.name in _ARRAY_MAKERS else None, sure=True)


_PIPELINES_WITHOUT = (0, 21)
"""The release of diffusers from which on the `to` of pipelines has no parameter `torch_dtype` by that name."""


def _cast(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    sure = isinstance(call.receiver, (Tensor, Ref))
    if call.method == "type_as":
        given = call.argument(0, "other")
        if isinstance(given, (Number, Array, Dtype)) or (isinstance(given, Const) and given.value is not None):
            yield Finding(call.node, "`.type_as()` takes a tensor: this raises TypeError", help="Use `.to(dtype)`")
        return
    if call.method == "to" and "torch_dtype" in call.keywords:
        if not sure and facts.releases("diffusers").all_before(_PIPELINES_WITHOUT):
            return
        yield Finding(
            call.node,
            "`.to()` has no argument `torch_dtype`: "
            + ("this raises TypeError" if sure else "tensors raise TypeError, and diffusers pipelines ignore it"),
            help="Use `dtype=`",
            severity=None if sure else Severity.WARNING,
            fix=partial(_renamed, call, sure),
        )
        return
    if not sure and (_defines_method(facts, call.method) or not _OTHERS.isdisjoint(imports(facts.tree))):
        return
    given_nodes = [*call.node.args[: 2 if call.method == "to" else 1]]
    given_nodes += [keyword.value for keyword in call.node.keywords if keyword.arg == "dtype"]
    for node in given_nodes:
        value = facts.value(node)
        name = _misnamed(value)
        if name is None or (call.method == "type" and not (sure or isinstance(value, External))):
            continue
        raised = "TypeError"
        if call.method == "to" and isinstance(value, Const) and node in call.node.args:
            raised = f"RuntimeError: Invalid device string: {value.value!r}"
        yield _misspelled(node, name, f"`.{call.method}()` raises {raised}", sure=sure)


def _defines_method(facts: ModuleFacts, name: str) -> bool:
    """Has a class of the file a method of this name? What is not known may be one of its instances."""
    functions = facts.around.functions()
    return any(one.name == name and isinstance(facts.around.parent(one), ast.ClassDef) for one in functions)


def _named_cast(call: Call) -> Iterator[Finding]:
    """`x.half(dtype)`, `x.float(torch.float32)`: the method's name says the dtype."""
    given = [*call.args, *(value for name, value in call.keywords.items() if name == "dtype")]
    known = isinstance(call.receiver, Tensor) or any(isinstance(value, Dtype) for value in given)
    if given and known and call.name == f"torch.Tensor.{call.method}":
        yield Finding(
            call.node,
            f"`.{call.method}()` takes no dtype: this raises TypeError",
            help="Use `.to(dtype)`",
            fix=partial(_as_to, call) if len(call.node.args) == 1 and not call.node.keywords else None,
        )


def _as_to(call: Call, place: Place) -> Fix:
    return Fix("Use `.to(dtype)`", (place.rename_method("to"),), Applicability.UNSAFE)


def _made(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """`torch.zeros(2, dtype="float32")`, `torch.zeros(2, torch.float32)`, `torch.finfo(torch.int8)`, and autocast."""
    package, _, last = call.name.rpartition(".")
    if call.name == "torch.dtype":
        yield Finding(
            call.node,
            "`torch.dtype` cannot be called: this raises TypeError",
            help="Look the dtype up by its name: `getattr(torch, name)`",
        )
    if call.name in _LIMITED:
        yield from _limits(facts, call, *_LIMITED[call.name])
    if last == "autocast" and package == "torch.amp":
        yield from _device_given(facts, call)
    value, node = call.keywords.get("dtype"), call.argument_node(None, "dtype")
    name = None if value is None else _misnamed(value)
    if name is not None and node is not None and package in _TAKE_DTYPE:
        yield _misspelled(node, name, f"`{last}()` raises TypeError", sure=True)
    elif name is not None and node is not None and last == "autocast":
        yield _misspelled(node, name, "autocast is switched off, with a warning", sure=False)
    for given, known in zip(call.node.args, call.args, strict=False):
        if isinstance(known, Dtype) and known.dtypes and package == "torch" and last in _FACTORIES:
            yield Finding(
                given,
                f"`{last}` takes the dtype by its name: this raises TypeError",
                help=f"Write `dtype={ast.unparse(given)}`",
            )


_LIMITED = {"torch.finfo": (Category.INTEGER, "iinfo"), "torch.iinfo": (Category.FLOAT, "finfo")}
"""What gives the limits of dtypes: what it refuses, and what takes that."""


def _limits(facts: ModuleFacts, call: Call, refused: Category, instead: str) -> Iterator[Finding]:
    value, node = call.argument(0, "type"), call.argument_node(0, "type")
    known = dtype_of(value)
    written = isinstance(node, ast.Attribute) or isinstance(value, External)
    if known is None or node is None or not written or not known.dtypes:
        return
    if any(isinstance(one, (ast.Try, ast.With)) for one in facts.around.around(node)):
        return  # to see it raise
    if all(DTYPES[name].category is refused for name in known.dtypes):
        yield Finding(
            call.node,
            f"`{call.name.rpartition('.')[2]}` raises TypeError for `{ast.unparse(node)}`",
            help=f"Use `torch.{instead}`, or a {'floating' if refused is Category.INTEGER else 'whole'} dtype",
        )


def _device_given(facts: ModuleFacts, call: Call) -> Iterator[Finding]:
    """The device that autocast is given in place of the type of one: `torch.autocast(x.device)`."""
    value, node = call.argument(0, "device_type"), call.argument_node(0, "device_type")
    made = None if node is None else facts.around.definition(node)
    known = isinstance(made, ast.Call) or (isinstance(made, ast.Attribute) and _is_device(facts, made))
    if isinstance(value, Device) and known and isinstance(node, (ast.Name, ast.Attribute)):
        yield Finding(
            node,
            f'`torch.autocast` takes a device type such as "cuda": the device `{ast.unparse(node)}` raises',
            help=f"Use `{ast.unparse(node)}.type`",
            fix=partial(_typed, node),
        )


def _is_device(facts: ModuleFacts, attribute: ast.Attribute) -> bool:
    """Is an attribute a torch.device, and no text as the `device` of a configuration may be? The device of a tensor is, one
    that the object was given as a call made it, and that of a model which a library has loaded."""
    owner = attribute.value
    if isinstance(facts.value(owner), Ref):
        assigned = [
            facts.around.statement(one.node)
            for one in facts.assignments()
            if isinstance(one.node, ast.Attribute) and one.node.attr == attribute.attr
        ]
        return all(isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) for one in assigned)
    if not isinstance(facts.value(owner), Unknown):
        return True
    made = facts.around.definition(owner)
    if not isinstance(made, ast.Call):
        return False
    if ast.unparse(made.func) == "next" and made.args and isinstance(made.args[0], ast.Call):
        return ast.unparse(made.args[0].func).endswith((".parameters", ".buffers"))
    return any(
        call.method == "from_pretrained" and call.name.startswith(("transformers.", "diffusers."))
        for call in facts.calls_at(made)
    )


def _typed(node: ast.expr, place: Place) -> Fix:
    edit = Edit(place.source.span(node), f"{ast.unparse(node)}.type")
    return Fix("Give the type of the device", (edit,), Applicability.SAFE)


def _of_array(call: Call, position: int | None, *, sure: bool) -> Iterator[Finding]:
    """`x.astype(torch.float32)`, `np.zeros(2, dtype=torch.float32)`."""
    value, node = call.argument(position, "dtype"), call.argument_node(position, "dtype")
    if not isinstance(value, Dtype) or not value.dtypes or node is None:
        return
    (dtype, *others) = sorted(value.dtypes)
    held = "bool_" if dtype == "bool" else _NUMPY.get(dtype)
    yield Finding(
        node,
        f"`{ast.unparse(node)}` is not a NumPy dtype: this raises TypeError",
        help=f"Use `np.{held}`" if held else f"Make a tensor first: NumPy has no {dtype}",
        severity=None if sure else Severity.WARNING,
        conditional=not sure,
        fix=_respelled(node, f"numpy.{held}", sure=sure) if held and not others else None,
    )


def _misnamed(value: Value) -> str | None:
    """The torch dtype that a string or a type of NumPy's stands for."""
    if isinstance(value, Const) and isinstance(value.value, str):
        name = value.value.removeprefix("torch.")
        return SHORT.get(name) or named(name)
    if isinstance(value, External) and value.name.startswith("numpy."):
        return _NUMPY.get(value.name[6:])
    return None


def _misspelled(node: ast.expr, name: str, happens: str, *, sure: bool) -> Finding:
    return Finding(
        node,
        f"`{ast.unparse(node)}` is not a torch dtype: {happens}",
        help=f"Use `torch.{name}`",
        fix=_respelled(node, f"torch.{name}", sure=sure),
    )


def _respelled(node: ast.expr, name: str, *, sure: bool) -> Callable[[Place], Fix]:
    return partial(respell, node=node, name=name, applicability=Applicability.SAFE if sure else Applicability.UNSAFE)


def _renamed(call: Call, sure: bool, place: Place) -> Fix | None:
    keyword = next(keyword for keyword in call.node.keywords if keyword.arg == "torch_dtype")
    if "dtype" in call.keywords:
        return None
    edit = Edit(place.source.span(keyword), f"dtype={place.text(keyword.value)}")
    return Fix("Use `dtype=`", (edit,), Applicability.SAFE if sure else Applicability.UNSAFE)
