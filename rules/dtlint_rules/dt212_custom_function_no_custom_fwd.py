"""DT212: an autograd.Function multiplies matrices and is not made for autocast."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.domain.values import External, Function, Region
from dtlint.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import ModuleFacts

__all__ = ["CustomFunctionNoCustomFwd"]

_FUNCTIONS = ("torch.autograd.Function", "torch.autograd.function.Function")
_PRODUCTS = frozenset(
    {"matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "einsum"}
)
_CASTS = frozenset({"to", "type", "type_as", "float", "half", "bfloat16", "double"})
_AWARE = ("torch.amp.", "torch.cuda.amp.", "torch.is_autocast", "torch.get_autocast")
"""Names that a Function uses which takes care of autocast itself."""


class CustomFunctionNoCustomFwd(Rule):
    """An `autograd.Function` with matrix products is not decorated for autocast.

    ## What it does
    Reports subclasses of `torch.autograd.Function` whose `forward` and `backward` both multiply matrices, in a file that
    opens an autocast region or is assumed to be called in one, where neither is decorated with `torch.amp.custom_fwd` and
    `custom_bwd`, and `backward` casts nothing. A Function that is only applied where autocast is switched off is left
    alone.

    Conditional, and so reported with `--preview` only: in a file without autocast, those that a module applies to what is
    its own, `Project.apply(x, self.weight)`: whoever runs it may autocast.

    ## Why it matters
    Under autocast the forward's product casts its inputs to half, but what was saved for backward is as it came.
    Autocast is off when backward runs: there the half gradient meets float32 tensors, and the product raises "expected
    m1 and m2 to have the same dtype". The two decorators run backward under the autocast of the forward.

    ## Example
    ```python
    import torch

    class Project(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad

    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = Project.apply(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
    ```

    ## Use instead
    ```python
    import torch

    class Project(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            return grad @ weight.t(), x.t() @ grad

    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = Project.apply(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
    ```

    ## References
    - [Functions with multiple inputs or autocastable ops](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#functions-with-multiple-inputs-or-autocastable-ops)
    """

    code, name = "DT212", "custom-function-no-custom-fwd"
    triggers = ("save_for_backward",)
    needs = (("*Function*",),)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        is_assumed = facts.assumption is not None and facts.assumption.region is not None
        autocasts = is_assumed or any(region.enabled is not False for _, region in facts.regions())
        aware = {facts.around.owner(node) for node, _ in facts.without.names(*_AWARE)}
        for node, _ in facts.without.names(*_FUNCTIONS):
            owner = facts.around.parent(node)
            if not isinstance(owner, ast.ClassDef) or node not in owner.bases or owner in aware:
                continue
            methods = {one.name: one for one in owner.body if isinstance(one, ast.FunctionDef)}
            forward, backward = methods.get("forward"), methods.get("backward")
            product, gradient = _product(forward), _product(backward)
            if forward is None or backward is None or product is None or gradient is None:
                continue
            applied = [
                one.node for one in facts.methods("apply") if ast.unparse(one.node.func) == f"{owner.name}.apply"
            ]
            kept = bool(applied) and all(_is_off(facts, one) for one in applied)
            if kept or not _saves_given(forward) or _casts(backward):
                continue
            if not _gives(forward, product) or not _is_of_gradient(backward, gradient):
                continue
            if not all(_leaves_autocast(facts, one) for one in (*forward.decorator_list, *backward.decorator_list)):
                continue
            if autocasts or any(map(_is_given_own, applied)):
                raised = "`backward` raises: the gradient is half, and what `forward` saves is not"
                yield Finding(
                    forward.decorator_list[-1] if forward.decorator_list else product,
                    raised if is_assumed else f"Under autocast {raised}",
                    help="Decorate `forward` with `torch.amp.custom_fwd` and `backward` with `torch.amp.custom_bwd`",
                    notes=((product, "autocast casts this product to half"), (gradient, "this product raises")),
                    conditional=not autocasts,
                )


def _leaves_autocast(facts: ModuleFacts, decorator: ast.expr) -> bool:
    """Is a decorator known, and has nothing to do with autocast?"""
    value = facts.without.value(decorator.func if isinstance(decorator, ast.Call) else decorator)
    if isinstance(value, Function):
        return "autocast" not in ast.unparse(value.definition.node) and not _casts(value.definition.node)
    return isinstance(value, External) and value.name.startswith(_LEAVING) and not value.name.startswith(_AWARE)


_LEAVING = ("builtins.", "torch.", "typing.", "typing_extensions.", "functools.")


def _is_off(facts: ModuleFacts, call: ast.Call) -> bool:
    region = facts.region(call)
    return isinstance(region, Region) and region.enabled is False


def _is_given_own(call: ast.Call) -> bool:
    """`Project.apply(x, self.weight)`"""
    return any(
        isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self"
        for one in call.args
    )


def _product(function: ast.FunctionDef | None) -> ast.expr | None:
    """A matrix product in a function, the first that runs: of two in one expression the one that ends first."""
    found = [
        node
        for statement in (() if function is None else function.body)
        for node in ast.walk(statement)
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _PRODUCTS)
    ]
    return min(found, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0)) if found else None


def _saves_given(forward: ast.FunctionDef) -> bool:
    """Does it save what it was given, as it came?"""
    given = {one.arg for one in (*forward.args.posonlyargs, *forward.args.args)[1:]}
    given -= {one.id for one in ast.walk(forward) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    saved = [
        one
        for node in ast.walk(forward)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".save_for_backward")
        for one in node.args
    ]
    return any(isinstance(one, ast.Name) and one.id in given for one in saved)


def _gives(forward: ast.FunctionDef, product: ast.expr) -> bool:
    """Is the product what it gives, and not cast or written into something?"""
    held = {
        target.id
        for node in ast.walk(forward)
        if isinstance(node, ast.Assign) and node.value is product
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    given = [node.value for node in ast.walk(forward) if isinstance(node, ast.Return)]
    return any(one is product or (isinstance(one, ast.Name) and one.id in held) for one in given)


def _is_of_gradient(backward: ast.FunctionDef, product: ast.expr) -> bool:
    """Is the product one of a gradient that it is given?"""
    given = {one.arg for one in (*backward.args.posonlyargs, *backward.args.args)[1:]}
    return any(isinstance(one, ast.Name) and one.id in given for one in ast.walk(product))


def _casts(function: ast.AST) -> bool:
    """Does a function bring its operands to one dtype: by a method, or by a function that is given a dtype by position?"""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr in _CASTS:
                return True
            if any(isinstance(one, ast.Attribute) and one.attr.endswith("dtype") for one in node.args):
                return True
    return False
