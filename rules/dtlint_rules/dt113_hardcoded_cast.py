"""DT113: a dtype written out where the program is told which one to use."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.infer.names import path_of
from dtlint.infer.values import Constant, Dtype
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import bound_once
from dtlint_rules._functions import body_of, defaults, parameters
from dtlint_rules._names import last_name
from dtlint_rules._parts import given
from dtlint_rules._within import parents_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Flow, Operation
    from dtlint.infer.scopes import ClassInfo, FunctionInfo

__all__ = ["HardcodedCast"]

_HALVES = frozenset({"torch.float16", "torch.half"})
_SETTING = re.compile(r"precision|(^|_)amp$", re.IGNORECASE)
"""How a setting with more than two values is called: "no", "fp16", "bf16"."""
_BFLOAT16 = re.compile(r"(?:^|_)(?:bf16|bfloat16)$", re.IGNORECASE)
"""How a switch or a value is called that asks for bfloat16."""
_FULL = frozenset({"no", "fp32", "float32", "32", "full", "none"})


class HardcodedCast(Rule):
    """A half dtype written out where a setting or a parameter decides the dtype.

    ## What it does
    Reports four forms.

    - `torch.float32 if mixed_precision == "no" else torch.float16`: a setting that can also be `"bf16"`, taken for a
      switch.
    - `torch.float16 if args.fp16 or args.bf16 else torch.float32`: float16 for what asks for bfloat16, in an expression
      or under an `if`.
    - `dtype=torch.bfloat16` in a class or function that has a parameter `*_dtype=torch.bfloat16` for it, or a parameter
      `dtype` that nothing reads.
    - An activation that is cast to the dtype of a buffer, `x = x.to(self.kernel.dtype)`, in a module that has
      weights.

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
    triggers = ("*dtype*", "*precision*", "*Precision*", "*PRECISION*", "amp", "*_amp*", "AMP", "*_AMP*")
    needs = ((".float16", ".half", ".bfloat16", "register_buffer"), (".float16", ".half", ".bfloat16", "Parameter"))
    operators = frozenset({ast.Eq, ast.NotEq})
    values = frozenset({ast.IfExp, ast.Attribute})

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.method == "half" and not call.node.args:
            return _other_half(call.node, call.flow)
        if "dtype" not in call.keywords and "torch_dtype" not in call.keywords and call.method != "to":
            return ()
        return self._cast(call)

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        return _other_half(assign.expression, assign.flow) if assign.expression is not None else ()

    def _cast(self, call: Call) -> Iterator[Finding]:
        for node in given(call.node):
            yield from _other_half(node, call.flow)
        if "dtype" in call.keywords:
            yield from self._heedless(call, call.keywords["dtype"])
        if call.method == "to" and isinstance(call.node.func, ast.Attribute):
            yield from self._to_buffer(call, call.node.func.value)

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
            f"`{setting}` has more values than two: with bf16, this is float16",
            help='Map each setting to its dtype: {"no": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}',
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
            parameter = _parameter_for(function, ast.unparse(node))
        if parameter is None:
            return
        yield Finding(
            node,
            f"`{ast.unparse(node)}` is written out here, whatever the parameter `{parameter.arg}` is",
            help=f"Use `{parameter.arg}`",
            notes=((parameter.annotation, f"`{parameter.arg}` is declared here"),) if parameter.annotation else (),
        )

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
            f"The activation `{cast.id}` is cast to the dtype of the buffer `{buffer}`: where weights are half and "
            "the buffer is float32, the next layer gets float32",
            help=f"Cast the buffer to the dtype of `{cast.id}` instead",
        )


def _other_half(node: ast.expr, flow: Flow) -> Iterator[Finding]:
    """float16, chosen in the expression or by the branch around it, because bfloat16 was asked for."""
    if isinstance(node, ast.IfExp):
        test: ast.expr | None = node.test
        node = node.body
    else:
        held = flow.conditions[-1] if flow.conditions else None
        test = held.test if held is not None and held.holds else None
    asked = _asks_bfloat16(test) if test is not None and _is_float16(node) else None
    if asked is not None:
        yield Finding(
            node,
            f"`{asked}` asks for bfloat16, and gets float16 here",
            help="Give bfloat16 a branch of its own: `torch.bfloat16`",
        )


def _is_float16(node: ast.expr) -> bool:
    """`torch.float16`, or `x.half()`."""
    return path_of(node) in _HALVES or (isinstance(node, ast.Call) and last_name(node) == "half")


def _asks_bfloat16(test: ast.expr) -> str | None:
    """The part of a test that holds where bfloat16 is asked for: `args.bf16`, `precision == "bf16"`."""
    if isinstance(test, ast.BoolOp):
        return next(filter(None, map(_asks_bfloat16, test.values)), None)
    if isinstance(test, ast.Compare):
        if len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.In)):
            return None
        values = [part.value for part in ast.walk(test.comparators[0]) if isinstance(part, ast.Constant)]
        named = any(isinstance(value, str) and _BFLOAT16.search(value) for value in values)
        return ast.unparse(test) if named else None
    if isinstance(test, ast.Subscript):  # `config["bf16"]["enabled"]`
        keys = [part.value for part in ast.walk(test) if isinstance(part, ast.Constant)]
        return ast.unparse(test) if any(isinstance(key, str) and _BFLOAT16.search(key) for key in keys) else None
    path = path_of(test)
    return path if path is not None and _BFLOAT16.search(path.rpartition(".")[2]) else None


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


def _parameter_for(function: FunctionInfo, literal: str) -> ast.arg | None:
    """The parameter of the function, or of its class's `__init__`, that is a dtype and has this default."""
    functions = [function.node]
    if function.owner is not None and (init := function.owner.method("__init__")) is not None:
        functions.append(init.node)
    for node in functions:
        for parameter, default in defaults(node.args):
            if parameter.arg.endswith("dtype") and ast.unparse(default) == literal:
                return parameter
    return None


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
