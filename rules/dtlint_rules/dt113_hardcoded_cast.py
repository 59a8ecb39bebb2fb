"""DT113: a dtype written out where the program is told which one to use."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import LOW_PRECISION
from dtlint.infer.domain.values import Const, Dtype
from dtlint.infer.names import path_of
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts
from dtlint_rules._imports import is_a_test
from dtlint_rules._module_walks import root_of
from dtlint_rules._needs import HALF_BY_NAME
from dtlint_rules._precisions import asks_for_precision, precision_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["HardcodedCast"]


class HardcodedCast(Rule):
    """A half dtype written out where a setting or a parameter decides the dtype.

    ## What it does
    Reports `torch.float32 if mixed_precision == "no" else torch.float16`, a setting that can also be `"bf16"`, taken for
    a switch; `build(dtype=torch.bfloat16)` in a function that takes a `dtype`, and is not torch's; and
    `return out.to(torch.bfloat16)` in a function that casts what it is given to float32 first, and never asks for its
    dtype.

    The last is conditional, and so reported with `--preview` only, and so is a switch of which no option in the file says
    that it can be `"bf16"`: they assume a dtype of what the function is given, or a value of the setting.

    ## Why it matters
    The line is right for the setting that it was tried with. With bf16 in place of fp16, float16 noise meets a
    bfloat16 model: torch raises, or promotes both to float32.

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
    triggers = HALF_BY_NAME

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        if is_a_test(facts.tree):
            return
        yield from _settings(facts)
        yield from _fixed_results(facts)
        yield from _beside_parameters(facts)


def _settings(facts: ModuleFacts) -> Iterator[Finding]:
    """`torch.float32 if mixed_precision == "no" else torch.float16`."""
    for node in facts.around.of_kind(ast.IfExp):
        if not isinstance(node.test, ast.Compare) or len(node.test.ops) != 1:
            continue
        right = node.test.comparators[0]
        if not isinstance(right, ast.Constant) or right.value != "no":
            continue
        branches = {ast.Eq: node.orelse, ast.NotEq: node.body}
        other = branches.get(type(node.test.ops[0]))
        dtype = None if other is None else facts.value(other)
        if other is not None and isinstance(dtype, Dtype) and dtype.dtypes and dtype.dtypes <= LOW_PRECISION:
            asked = ast.unparse(node.test.left)
            others = _choices(facts, node.test.left) & LOW_PRECISION
            yield Finding(
                other,
                f"{min(dtype.dtypes)} for whatever `{asked}` is but {right.value!r}: it may ask for the other half dtype",
                help=f"Look the dtype up by `{asked}`",
                conditional=not others - dtype.dtypes,
            )


def _choices(facts: ModuleFacts, asked: ast.expr) -> frozenset[str]:
    """The precisions among which the program lets its caller choose: those of the option by that name."""
    name = (path_of(asked) or "").rpartition(".")[2]
    found: set[str] = set()
    for call in facts.methods("add_argument"):
        spelled = {str(one.value).lstrip("-").replace("-", "_") for one in call.args if isinstance(one, Const)}
        node = call.argument_node(None, "choices")
        if name in spelled and node is not None:
            found.update(
                dtype
                for one in facts.items(node) or ()
                if isinstance(one, Const) and (dtype := precision_of(one.value))
            )
    return frozenset(found)


def _fixed_results(facts: ModuleFacts) -> Iterator[Finding]:
    """`return out.to(torch.bfloat16)` in a function that casts what it is given to float32 first, and asks for no dtype."""
    known = list(casts(facts))
    for back in known:
        function = facts.around.function(back.node)
        if function is None or not back.dtypes or not back.dtypes <= LOW_PRECISION or back.of == "module":
            continue
        if not isinstance(facts.around.statement(back.node), ast.Return) or _asks_for_dtypes(function):
            continue
        for up in known:
            root = root_of(up.subject)
            if (
                up.dtypes == {"float32"}
                and not _is_part(up.node, back.node)
                and up.of != "module"
                and facts.around.function(up.node) is function
            ):
                given = facts.around.definitions(root) if isinstance(root, ast.Name) else ()
                if [type(one) for one in given] == [ast.arg] and _is_made_of(facts, back.subject, up.node):
                    yield Finding(
                        back.node,
                        f"The result is {min(back.dtypes)} whatever `{path_of(root)}` was",
                        help=f"Cast back to the dtype that `{path_of(root)}` had",
                        notes=((up.node, "cast to float32 here"),),
                        conditional=True,
                    )
                    break


def _is_part(node: ast.expr, whole: ast.expr) -> bool:
    """`x.float().clamp(low, high).half()` is to be half."""
    return any(one is node for one in ast.walk(whole))


def _is_made_of(facts: ModuleFacts, node: ast.expr, part: ast.expr) -> bool:
    return any(one is part for one in facts.around.made_of(node))


def _asks_for_dtypes(function: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "dtype" for node in ast.walk(function))


def _beside_parameters(facts: ModuleFacts) -> Iterator[Finding]:
    """`make(dtype=torch.bfloat16)` in a function that takes a dtype under that name. What torch makes may be meant to be of
    another."""
    for node in facts.around.of_kind(ast.keyword):
        call = facts.around.parent(node)
        if node.arg is None or not isinstance(call, ast.Call):
            continue
        dtype, function = facts.value(node.value), facts.around.function(call)
        if not isinstance(dtype, Dtype) or not dtype.dtypes or not dtype.dtypes <= LOW_PRECISION:
            continue
        if function is None or not isinstance(node.value, ast.Attribute) or not _takes_dtype(facts, function, node.arg):
            continue
        is_of_torch = any(one.name.startswith("torch.") for one in facts.calls_at(call))
        if not is_of_torch and not any(asks_for_precision(one.test) for one in facts.around.guards(call)):
            text = f"{min(dtype.dtypes)} whatever the parameter `{node.arg}` is"
            yield Finding(node.value, text, help=f"Pass `{node.arg}`")


def _takes_dtype(facts: ModuleFacts, function: ast.AST, name: str) -> bool:
    """Has a function a parameter by that name that is a dtype, as its annotation or its default has it?"""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    given = function.args
    by_position = [*given.posonlyargs, *given.args]
    defaults = {
        **dict(zip(reversed([one.arg for one in by_position]), reversed(given.defaults), strict=False)),
        **dict(zip([one.arg for one in given.kwonlyargs], given.kw_defaults, strict=True)),
    }
    for one in (*by_position, *given.kwonlyargs):
        if one.arg == name:
            default = defaults.get(name)
            declared = one.annotation is not None and "torch.dtype" in ast.unparse(one.annotation)
            return declared or (default is not None and isinstance(facts.value(default), Dtype))
    return False
