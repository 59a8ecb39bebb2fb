"""DT113: a dtype written out where the program is told which one to use."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Dtype
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._asked import asks_bfloat16, asks_float16
from dtlint_rules._assignments import assignments, bindings, bound_once
from dtlint_rules._functions import body_of, defaults, own_nodes, parameters
from dtlint_rules._imports import is_a_test
from dtlint_rules._meanings import written_dtype
from dtlint_rules._names import last_name, said
from dtlint_rules._parts import given, keyword, receiver, subject_of
from dtlint_rules._texts import short
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["HardcodedCast"]

_HALVES = frozenset({"torch.float16", "torch.half"})
_SETTING = re.compile(r"precision|(^|_)amp$", re.IGNORECASE)
"""How a setting with more than two values is called: "no", "fp16", "bf16"."""
_FULL = frozenset({"no", "fp32", "float32", "32", "full", "none"})


class HardcodedCast(Rule):
    """A half dtype written out where a setting or a parameter decides the dtype.

    ## What it does
    Reports these forms.

    - `torch.float32 if mixed_precision == "no" else torch.float16`: a setting that can also be `"bf16"`, taken for a
      switch.
    - `torch.float16 if args.fp16 or args.bf16 else torch.float32`: float16 for what asks for bfloat16, in an expression
      or under an `if`; and bfloat16 for what asks for float16.
    - `dtype=torch.bfloat16` in a class or function that has a parameter `*_dtype=torch.bfloat16` for it, or a parameter
      `dtype` that nothing reads.
    - `compute_dtype=torch.float16` in a call, in a function that has a parameter `compute_dtype` itself and reads it
      nowhere but to call itself.
    - `return out.to(torch.bfloat16)` in a function that casts what it is given to float32 first, and never asks for its
      dtype.
    - As information: `from_pretrained(name, torch_dtype=torch.float16)` in a class that is told which model and not the
      dtype, a model that is cast to float16 and saved in a function that does not load it in a dtype, and
      `torch.zeros(..., dtype=torch.bfloat16)` in a method of a module that says nothing else of half.
    - As information: `kwargs["torch_dtype"] = torch.float16` of the `**kwargs` of a function, which writes over what its
      caller gives there; a table of sines or of steps, made of numbers alone, that a function gives back in half; and
      `self.model = model.half()` in a class that is told a `dtype` and makes its model in that.
    - An activation that is cast to the dtype of a buffer, `x = x.to(self.kernel.dtype)`, in a module that has
      weights.

    Conditional, and so reported with `--preview` only: whatever assumes a dtype of an input, of weights or of a
    checkpoint, or a value of a setting.

    ## Why it matters
    The line is right for the setting that it was tried with. With bf16 in place of fp16, float16 noise meets a
    bfloat16 model: torch raises, or promotes both to float32. A parameter that some lines do not heed has no effect
    where it matters. Buffers often stay in float32 when weights do not, so that the activation arrives at the next
    layer in float32.

    ## Example
    ```python
    import torch

    def noise_like(images, args):
        dtype = torch.float32 if args.mixed_precision == "no" else torch.float16
        return torch.randn(images.shape, dtype=dtype)
    ```

    ## Use instead
    ```python
    import torch

    DTYPES = {"no": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}

    def noise_like(images, args):
        return torch.randn(images.shape, dtype=DTYPES[args.mixed_precision])
    ```

    ## References
    - [torch.dtype](https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.dtype)
    """

    code, name = "DT113", "hardcoded-cast"
    triggers = (
        "*dtype*",
        "*precision*",
        "*Precision*",
        "*PRECISION*",
        "amp",
        "*_amp*",
        "AMP",
        "*_AMP*",
        ".half",
        ".bfloat16",
    )
    needs = ((".float16", ".half", ".bfloat16", "register_buffer"), (".float16", ".half", ".bfloat16", "Parameter"))
    operators = frozenset({ast.Eq, ast.NotEq})
    values = frozenset({ast.IfExp, ast.Attribute})

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.method in ("half", "bfloat16") and not call.node.args:
            found = [*_other_half(call.node, call.flow), *_fixed_half(call)]
        elif call.method in ("append", "add") and len(call.node.args) == 1:
            found = list(_other_half(call.node.args[0], call.flow))
        elif call.method != "to" and not any(name.endswith("dtype") for name in call.keywords):
            return ()
        else:
            found = list(self._cast(call))
        return found if found and not is_a_test(call.flow.tree) else ()

    def on_assign(self, assign: Assign) -> Iterator[Finding]:
        if assign.expression is not None:
            yield from _other_half(assign.expression, assign.flow)
            if isinstance(assign.target, ast.Subscript):
                yield from _over_callers(assign, assign.target)

    def _cast(self, call: Call) -> Iterator[Finding]:
        for node in given(call.node):
            yield from _other_half(node, call.flow)
        if "dtype" in call.keywords:
            yield from self._heedless(call, call.keywords["dtype"])
        yield from _of_same_name(call)
        if call.name == "from_pretrained":
            yield from _loaded_in_float16(call)
        if call.method == "to" and isinstance(call.node.func, ast.Attribute):
            yield from self._to_buffer(call, call.node.func.value)
            yield from _fixed_half(call)

    def on_operation(self, operation: Operation) -> Iterator[Finding]:
        """`float32 if precision == "no" else float16`."""
        test, operator = operation.node, operation.operator
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(operation.right, Constant):
            return
        setting = path_of(test.left)
        if setting is None or not _SETTING.search(setting.rpartition(".")[2]):
            return
        if str(operation.right.value).lower() not in _FULL:
            return
        full, reduced = _branches(test, parents_at(test, operation.flow).get(test))
        if isinstance(operator, ast.NotEq):
            full, reduced = reduced, full
        if full is None or path_of(full) not in ("torch.float32", "torch.float"):
            return
        if reduced is None or path_of(reduced) not in _HALVES:
            return
        yield Finding(
            test,
            f"If `{setting}` is bf16, this chooses float16",
            help='Map each setting to its dtype: {"no": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}',
            conditional=True,
        )

    def _heedless(self, call: Call, value: object) -> Iterator[Finding]:
        """`dtype=torch.bfloat16`, though a parameter is there for it: with this default, or one that nothing reads."""
        node = call.argument_node(None, "dtype")
        function = call.flow.function
        if (
            not isinstance(value, Dtype)
            or value.name not in ("float16", "bfloat16")
            or function is None
            or node is None
        ):
            return
        if (path_of(node) or "").partition(".")[0] != "torch" or call.target.startswith(
            ("torch.amp.", "torch.autocast")
        ):
            return
        parameter = _unread_parameter(function.node)
        if parameter is None and call.target.startswith("torch."):
            parameter = _parameter_for(function, ast.unparse(node), call.flow)
        if parameter is None:
            yield from _made_in_half(call, node, value.name)
            return
        yield _written_out(node, parameter)

    def _to_buffer(self, call: Call, cast: ast.expr) -> Iterator[Finding]:
        """`x = x.to(self.kernel.dtype)`, of an activation and a buffer."""
        argument = call.argument_node(0, "dtype")
        function, statement = call.flow.function, call.flow.statement
        if not isinstance(argument, ast.Attribute) or argument.attr != "dtype" or not isinstance(cast, ast.Name):
            return
        if function is None or function.owner is None or not function.owner.is_module:
            return
        if not isinstance(statement, ast.Assign) or statement.value is not call.node:
            return
        names = {parameter.arg for parameter in parameters(function.node)}
        if path_of(statement.targets[0]) != cast.id or cast.id not in names:
            return
        buffer = _buffer_behind(argument.value, call.flow, function.owner)
        if buffer is None or not _has_weights(function.owner):
            return
        yield Finding(
            call.node,
            f"`{cast.id}` takes the dtype of the buffer `{buffer}`, which may be float32 where weights are half",
            help=f"Cast the buffer to the dtype of `{cast.id}` instead",
            conditional=True,
        )


def _written_out(node: ast.expr, parameter: ast.arg) -> Finding:
    """What is said of a dtype that is written out where a parameter decides it."""
    name = parameter.arg
    return Finding(
        node,
        f"`{ast.unparse(node)}` is hard-coded, and the parameter `{name}` is ignored",
        help=f"Use `{name}`",
        notes=((parameter.annotation, f"`{name}` is declared here"),) if parameter.annotation else (),
    )


def _of_same_name(call: Call) -> Iterator[Finding]:
    """`compute_dtype=torch.float16`, in a function that has a parameter of that very name."""
    names = [name for name, value in call.keywords.items() if name.endswith("_dtype") and isinstance(value, Dtype)]
    for name in names:
        node, scope = keyword(call.node, name), call.flow.scope
        if node is None or not _is_half(node):
            continue
        parameter = next((part for part in parameters(scope) if part.arg == name), None)
        if parameter is None or name in assignments(scope) or _is_read(name, scope):
            continue
        yield _written_out(node, parameter)


def _is_read(name: str, scope: ast.AST) -> bool:
    """Does a function read its parameter, but to hand it to itself?"""
    own = getattr(scope, "name", "")
    nodes_of = [node for part in body_of(scope) for node in ast.walk(part)]
    calls = [node for node in nodes_of if isinstance(node, ast.Call) and path_of(node.func) in (own, f"self.{own}")]
    handed = {id(value) for node in calls for value in given(node)}
    return any(isinstance(node, ast.Name) and node.id == name and id(node) not in handed for node in nodes_of)


def _over_callers(assign: Assign, target: ast.Subscript) -> Iterator[Finding]:
    """`kwargs["torch_dtype"] = torch.float16`, of the `**kwargs` that the caller gives."""
    function, value, key = assign.flow.function, assign.expression, target.slice
    if function is None or value is None or not _is_half(value):
        return
    if not isinstance(key, ast.Constant) or key.value != "torch_dtype":
        return
    rest = getattr(function.node.args, "kwarg", None)
    if (
        rest is None
        or path_of(target.value) != rest.arg
        or any(part.arg == key.value for part in parameters(function.node))
    ):
        return  # a parameter of that name takes the caller's before `**kwargs` does
    titles = [getattr(function.node, "name", ""), function.owner.node.name if function.owner is not None else ""]
    if any(_HALF.search(title) or _TEST.search(title) for title in titles):
        return
    above = (part for part in around(assign.node, assign.flow.tree) if isinstance(part, ast.If))
    tested = " ".join(name for part in above for name in said(part.test))
    if _CHOICE.search(tested) or _DEVICE.search(tested) or rest.arg in tested:
        return
    if _asks_for(key, function.node, assign.node) or not _loads_by(rest.arg, function.node):
        return
    yield Finding(
        assign.node,
        f"`{ast.unparse(value)}` overwrites the `torch_dtype` that a caller passes in `**{rest.arg}`",
        help=f'Make it a default: `{rest.arg}.setdefault("torch_dtype", ...)`',
        severity=Severity.INFO,
    )


def _is_half(node: ast.expr) -> bool:
    """`torch.float16`, `torch.bfloat16`, written out."""
    return written_dtype(node) in LOW_PRECISION


def _loads_by(name: str, function: ast.AST) -> bool:
    """Does a function load a model with these arguments: `AutoModel.from_pretrained(path, **kwargs)`?"""
    return any(
        isinstance(node, ast.Call)
        and last_name(node).startswith(("from_", "load"))
        and any(part.arg is None and path_of(part.value) == name for part in node.keywords)
        for node in own_nodes(function)
    )


def _asks_for(key: ast.Constant, function: ast.AST, above: ast.AST) -> bool:
    """Does a function speak of the key above a statement, as in `kwargs.get("torch_dtype")`?"""
    return any(
        isinstance(node, ast.Constant) and node.value == key.value and node.lineno < getattr(above, "lineno", 0)
        for node in own_nodes(function)
    )


def _fixed_half(call: Call) -> Iterator[Finding]:
    """A cast to a half dtype that is written out, of what a function gives back, of a model that it saves, or of a part of
    an object that is told its dtype."""
    function, flow = call.flow.function, call.flow
    if function is None or flow.conditions or (dtype := _written_half(call)) is None:
        return
    owner = function.owner
    titles = [getattr(function.node, "name", ""), owner.node.name if owner is not None else ""]
    if any(_HALF.search(title) for title in titles):
        return
    if dtype == "float16" and (saved := _saved(call)) is not None:
        yield Finding(
            call.node,
            "The model is saved in float16 whatever dtype it was loaded in: weights beyond 65504 become inf",
            help="Keep its dtype, or make the dtype a setting",
            notes=((saved, "saved here"),),
            severity=Severity.INFO,
            conditional=True,
        )
    elif _is_returned(call) and (upcast := _upcast(flow.scope)) is not None and _speaks_of_half_once(flow.scope):
        yield Finding(
            call.node,
            f"The result is cast to {dtype}, whatever dtype `{short(subject_of(upcast))}` had",
            help="Save the dtype of the input, and cast back to that",
            notes=((upcast, "cast to float32 here"),),
            conditional=True,
        )
    elif _is_returned(call) and _is_table(function.node) and _speaks_of_half_once(flow.scope):
        yield Finding(
            call.node,
            f"The table is rounded to {dtype}, whatever dtype it is used with",
            help="Take the dtype as a parameter",
            severity=Severity.INFO,
            conditional=True,
        )
    elif (told := _told_dtype(call)) is not None and owner is not None and _speaks_of_half_once(owner.node):
        yield Finding(
            call.node,
            f"`{short(call.node)}` is {dtype}, whatever dtype `{owner.node.name}` is given",
            help=f"Store `{told.arg}`, and cast to that",
            notes=((told.annotation, f"`{told.arg}` is declared here"),) if told.annotation else (),
            severity=Severity.INFO,
        )


def _is_table(function: ast.AST) -> bool:
    """Does a function make a tensor of numbers alone, such as the sines of positions: of a step, not of chance, and for
    nobody who says which dtype?"""
    taken = parameters(function)
    if not isinstance(function, ast.FunctionDef) or not taken or _TEST.search(function.name):
        return False
    counted = {part.arg for part, default in defaults(function.args) if isinstance(default, ast.Constant)}
    for part in taken:
        kind = path_of(part.annotation) if part.annotation is not None else None
        if part.arg not in ("device", "cls") and kind not in ("int", "float", "bool") and part.arg not in counted:
            return False
    made = own_nodes(function)
    called = {last_name(node) for node in made if isinstance(node, ast.Call)}
    if called.isdisjoint(("arange", "linspace")) or any(name.startswith(("rand", "normal")) for name in called):
        return False
    return not called.isdisjoint(_UNEVEN) or any(isinstance(node, ast.Pow) for node in made)


_UNEVEN = frozenset({"cos", "sin", "exp", "log", "pow", "polar", "outer"})
"""Functions whose results no half dtype has exactly, as it has the zeros and ones of a mask."""
_TEST = re.compile(r"(^|_)(test|bench|dummy|fake|example|inputs?)(_|$|s$|mark)", re.IGNORECASE)
"""In names of functions that make what is tried out."""


def _told_dtype(call: Call) -> ast.arg | None:
    """The dtype that an object is told when it is made, where one of its parts is cast, `self.model = m.half()`, and is not
    taken out of it."""
    function, statement = call.flow.function, call.flow.statement
    if function is None or function.owner is None or _EXPORT.search(getattr(function.node, "name", "")):
        return None
    if isinstance(statement, ast.Assign):
        path = path_of(statement.targets[0]) if statement.value is call.node else None
    else:
        of_its_own = isinstance(statement, ast.Expr) and statement.value is call.node
        path = path_of(receiver(call.node) or call.node) if of_its_own else None
    init = function.owner.method("__init__")
    if init is None or path is None or not path.startswith("self.") or not _PART.search(path):
        return None
    told = next((part for part in parameters(init.node) if part.arg in ("dtype", "torch_dtype")), None)
    if told is None:
        return None
    part = path.split(".")[1]
    return told if any(_makes(node, part, told.arg) for node in own_nodes(init.node)) else None


def _makes(statement: ast.AST, part: str, dtype: str) -> bool:
    """Is an attribute made in a dtype, or cast to it: `self.model = load(path, torch_dtype=dtype)`, `self.model.to(dtype)`?"""
    if isinstance(statement, ast.Assign):
        path = path_of(statement.targets[0])
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        path = path_of(receiver(statement.value) or statement.value)
    else:
        return False
    if path is None or path.split(".")[:2] != ["self", part]:
        return False
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(path_of(value) == dtype for node in calls for value in given(node))


_EXPORT = re.compile(r"export|onnx|trt|engine|compile|amp|mixed|precision", re.IGNORECASE)
"""In names of methods that make something for another runtime, or are there for half precision."""
_PART = re.compile(r"(model|encoder|decoder|unet|vae|transformer|net|backbone|module)$")
"""How what an object computes with is called."""


_HALF = re.compile(r"half|fp16|bf16|float16|low_?p|quant|fp8|int8|int4|compress|pack", re.IGNORECASE)
"""In names of functions and classes that are there for half, or for a format that has half scales."""


def _written_half(call: Call) -> str | None:
    """The half dtype to which a cast is written out: `.half()`, `.to(torch.bfloat16)`."""
    if call.method in ("half", "bfloat16"):
        return "float16" if call.method == "half" else "bfloat16"
    for node in given(call.node):
        package, _, name = (path_of(node) or "").rpartition(".")
        if package == "torch" and name in ("float16", "half", "bfloat16"):
            return "bfloat16" if name == "bfloat16" else "float16"
    return None


def _saved(call: Call) -> ast.Call | None:
    """Where the function saves the model that is cast, `model.save_pretrained(path)`, unless it loads it in a dtype."""
    model = subject_of(call.node)
    if not isinstance(model, ast.Name):
        return None
    if any(_is_told(value) for _, value in assignments(call.flow.scope).get(model.id, ()) if value is not None):
        return None
    for node in own_nodes(call.flow.scope):
        if not isinstance(node, ast.Call) or last_name(node) != "save_pretrained" or node.lineno < call.node.lineno:
            continue
        if path_of(receiver(node) or node) == model.id:
            return node
    return None


def _is_told(value: ast.expr) -> bool:
    """Is what loads a model told a dtype: `AutoModel.from_pretrained(name, torch_dtype=dtype)`? `**` may hold one."""
    return any(
        isinstance(node, ast.Call)
        and last_name(node).startswith(("from_", "load"))
        and any(part.arg in ("torch_dtype", "dtype", None) for part in node.keywords)
        for node in ast.walk(value)
    )


def _loaded_in_float16(call: Call) -> Iterator[Finding]:
    """`AutoModel.from_pretrained(name, torch_dtype=torch.float16)` in a class that is told the model, not the dtype."""
    function, flow = call.flow.function, call.flow
    told = keyword(call.node, "torch_dtype") or keyword(call.node, "dtype")
    if function is None or function.owner is None or flow.conditions or told is None or path_of(told) not in _HALVES:
        return
    if not call.node.args or re.search(
        "test", getattr(function.node, "name", "") + function.owner.node.name, re.IGNORECASE
    ):
        return
    if any(_QUANTIZED.search(part.arg or "") for part in call.node.keywords) or _HALF.search(function.owner.node.name):
        return
    scopes = [function.node] + ([init.node] if (init := function.owner.method("__init__")) is not None else [])
    names = {parameter.arg for scope in scopes for parameter in parameters(scope)}
    model = subject_of(call.node.args[0])
    if any(map(_CHOICE.search, names)) or not isinstance(model, ast.Name) or model.id not in names:
        return  # a checkpoint that is written out the author may know
    yield Finding(
        told,
        "The model is loaded in float16 whatever dtype it was saved in: bfloat16 beyond 65504 becomes inf",
        help='Make the dtype a parameter, or pass "auto"',
        severity=Severity.INFO,
        conditional=True,
    )


_QUANTIZED = re.compile(r"quant|load_in|variant|revision")
"""Arguments of a checkpoint that is half, or meets kernels that are."""
_CHOICE = re.compile(r"dtype|precision|half|fp16|bf16")
"""In names of parameters by which the dtype is chosen."""
_DEVICE = re.compile(r"device|cpu|cuda|gpu|mps|npu|xpu|available|version")
"""What stands in a test for what the hardware or a release can do."""


def _made_in_half(call: Call, node: ast.expr, dtype: str) -> Iterator[Finding]:
    """`torch.zeros(..., dtype=torch.bfloat16)` in a method of a module that says nothing else of half."""
    function, flow = call.flow.function, call.flow
    if function is None or function.owner is None or not function.owner.is_module or flow.conditions:
        return
    title = getattr(function.node, "name", "")
    if title == "__init__" or call.target.rpartition(".")[2] not in _MADE or not call.target.startswith("torch."):
        return
    if _HALF.search(title) or _HALF.search(function.owner.node.name) or not _speaks_of_half_once(flow.scope):
        return
    if any(_KERNEL.search(last_name(part)) for part in own_nodes(flow.scope) if isinstance(part, ast.Call)):
        return
    yield Finding(
        node,
        f"This is {dtype}, whatever dtype the weights have",
        help="Take the dtype of an input or of a weight",
        severity=Severity.INFO,
        conditional=True,
    )


_MADE = frozenset({"zeros", "ones", "empty", "full", "rand", "randn"})
_KERNEL = re.compile(r"kernel|cuda_|_cuda|triton|ext|matmul|gemm|^q_|quant")
"""In names of functions that demand a dtype of their own."""


def _is_returned(call: Call) -> bool:
    """Does the function give back what has been cast, alone or among others?"""
    statement = call.flow.statement
    if isinstance(statement, ast.Return):
        value = statement.value
        return value is call.node or (isinstance(value, ast.Tuple) and call.node in value.elts)
    return False


def _upcast(scope: ast.AST) -> ast.Call | None:
    """The cast to float32 in a function of what it is given."""
    names = {parameter.arg for parameter in parameters(scope)}
    found = []
    for node in own_nodes(scope):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        wide = (node.func.attr == "float" and not node.args) or (
            node.func.attr == "to" and any(path_of(part) in ("torch.float32", "torch.float") for part in given(node))
        )
        root = subject_of(node.func.value)
        if wide and isinstance(root, ast.Name) and root.id in names:
            found.append(node)
    return min(found, key=lambda node: node.lineno, default=None)


def _speaks_of_half_once(scope: ast.AST) -> bool:
    """Is the cast all that a function says of half: does it neither ask for dtypes of its inputs nor cast weights?"""
    halves = [
        node.attr
        for node in ast.walk(scope)
        if isinstance(node, ast.Attribute) and node.attr in ("half", "float16", "bfloat16")
    ]
    return len(halves) == 1


def _other_half(node: ast.expr, flow: Flow) -> Iterator[Finding]:
    """One half dtype, chosen in the expression or by the branch around it, because the other was asked for."""
    if isinstance(node, ast.IfExp):
        test: ast.expr | None = node.test
        node = node.body
    else:
        held = flow.conditions[-1] if flow.conditions else None
        test = held.test if held is not None and held.holds else None
    for asks, gives, wanted, got in (
        (asks_bfloat16, _is_float16, "bfloat16", "float16"),
        (asks_float16, _is_bfloat16, "float16", "bfloat16"),
    ):
        if test is not None and gives(node) and (asked := asks(test)) is not None:
            yield Finding(
                node,
                f"`{asked}` asks for {wanted}, and gets {got} here",
                help=f"Add a branch for `torch.{wanted}`",
            )


def _is_float16(node: ast.expr) -> bool:
    """`torch.float16`, or `x.half()`."""
    return path_of(node) in _HALVES or (isinstance(node, ast.Call) and last_name(node) == "half")


def _is_bfloat16(node: ast.expr) -> bool:
    """`torch.bfloat16`, or `x.bfloat16()`."""
    return path_of(node) == "torch.bfloat16" or (isinstance(node, ast.Call) and last_name(node) == "bfloat16")


def _branches(test: ast.expr, parent: ast.AST | None) -> tuple[ast.expr | None, ast.expr | None]:
    """What is chosen where a test holds, and where not: in an expression, or bound to one name in an `if`."""
    if isinstance(parent, ast.IfExp) and parent.test is test:
        return parent.body, parent.orelse
    if isinstance(parent, ast.If) and parent.test is test and len(parent.body) == 1 == len(parent.orelse):
        body, other = parent.body[0], parent.orelse[0]
        if not isinstance(body, ast.Assign) or not isinstance(other, ast.Assign):
            return None, None
        if path_of(body.targets[0]) == path_of(other.targets[0]) is not None:
            return body.value, other.value
    return None, None


def _unread_parameter(function: ast.AST) -> ast.arg | None:
    """The parameter `dtype` of a function that nothing in it reads."""
    for parameter in parameters(function):
        if parameter.arg in ("dtype", "torch_dtype"):
            read = {node.id for node in nodes(body_of(function)) if isinstance(node, ast.Name)}
            return parameter if read.isdisjoint((parameter.arg, "locals")) else None
    return None


def _parameter_for(function: FunctionInfo, literal: str, flow: Flow) -> ast.arg | None:
    """The parameter of the function, or of its class's `__init__`, that is a dtype and has this default, is not tested
    for it, and is not called after something else than what is made here: `logits_dtype`, of hidden states."""
    for parameter, default in defaults(function.node.args):
        if _is_dtype_of(parameter, default, literal) and _is_of_these(parameter.arg, flow):
            return None if _is_tested(parameter.arg, literal, flow.scope) else parameter
    init = function.owner.method("__init__") if function.owner is not None else None
    for parameter, default in defaults(init.node.args) if init is not None else ():
        if _is_dtype_of(parameter, default, literal):
            return parameter
    return None


def _is_dtype_of(parameter: ast.arg, default: ast.expr, literal: str) -> bool:
    return parameter.arg.endswith("dtype") and ast.unparse(default) == literal


_OF_ALL = re.compile(r"^(?:torch|weights?|model|params?|parameter|compute|default|data|inputs?|inference|tensor|_)*$")
"""What comes before `dtype` in the names of parameters that are meant for all that is made."""


def _is_of_these(parameter: str, flow: Flow) -> bool:
    """Does a parameter speak of all tensors, or of those that the running statement assigns?"""
    of = parameter.removesuffix("dtype").strip("_")
    names = {name for name, _ in bindings(flow.statement)} if flow.statement is not None else set[str]()
    return _OF_ALL.search(of) is not None or any(of in name for name in names) or isinstance(flow.statement, ast.Return)


def _is_tested(parameter: str, literal: str, scope: ast.AST) -> bool:
    """Is a parameter compared with a dtype: `if dtype is not torch.bfloat16: raise`?"""
    return any(
        isinstance(node, ast.Compare)
        and path_of(node.left) == parameter
        and any(path_of(part) == literal for part in nodes(node.comparators))
        for node in own_nodes(scope)
    )


def _buffer_behind(node: ast.expr, flow: Flow, owner: ClassInfo) -> str | None:
    """The buffer of the class that an expression is taken from, perhaps by way of a local name."""
    path = path_of(node)
    if path is not None and "." not in path:
        root: ast.AST | None = bound_once(path, flow.scope)
        if root is None:
            return None
        while path_of(root) is None and isinstance(root, (ast.Attribute, ast.Subscript, ast.Call)):
            function = root.func if isinstance(root, ast.Call) else None
            if function is not None and not isinstance(function, ast.Attribute):
                return None
            root = function.value if isinstance(function, ast.Attribute) else root.value  # type: ignore[union-attr]
        path = path_of(root)
    if path is None or not path.startswith("self.") or path[5:] not in _buffers(owner):
        return None
    return path


def _buffers(owner: ClassInfo) -> set[str]:
    """The floating buffers that a class registers, as far as their names are written out."""
    return {
        node.args[0].value
        for node in ast.walk(owner.node)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "register_buffer"
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }


def _has_weights(owner: ClassInfo) -> bool:
    """Does the class make parameters of its own?"""
    return any(isinstance(node, ast.Call) and last_name(node) == "Parameter" for node in ast.walk(owner.node))
