"""DT212: an autograd.Function multiplies matrices and is not made for autocast."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from dtlint.diagnostic import Severity
from dtlint.infer.around import around
from dtlint.infer.names import path_of
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._imports import is_a_test, writes_kernels
from dtlint_rules._names import last_name, words
from dtlint_rules._parts import given
from dtlint_rules._regions import is_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import End, Reference

__all__ = ["CustomFunctionNoCustomFwd"]

_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_PRODUCTS = frozenset(
    {"matmul", "mm", "bmm", "addmm", "baddbmm", "linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "einsum"}
)
_AWARE = ("custom_fwd", "custom_bwd", "autocast", "amp_fwd", "amp_bwd")
"""In names of decorators and calls by which a Function takes care of autocast."""


class CustomFunctionNoCustomFwd(Rule):
    """An `autograd.Function` with matrix products is not decorated for autocast.

    ## What it does
    Reports subclasses of `torch.autograd.Function` whose `forward` and `backward` both multiply matrices, in a file
    that speaks of autocast, mixed precision or half, where neither is decorated with `torch.amp.custom_fwd` and
    `custom_bwd`. As information, in any other file, those that a module applies to its own weights,
    `Project.apply(x, self.weight)`, or whose `forward` multiplies with a `weight` that it takes: they will be asked for
    autocast one day. A Function that is only applied where autocast
    is switched off is left alone.

    Conditional, and so reported with `--preview` only: a function in a file that does not speak of half precision.

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
    references = _FUNCTIONS
    needs = (("*Function*",),)

    def __init__(self) -> None:
        self.bases: set[ast.expr] = set()

    def on_reference(self, reference: Reference) -> Iterable[Finding]:
        self.bases.add(reference.node)
        return ()

    def on_end(self, end: End) -> Iterator[Finding]:
        tree = end.flow.tree
        if end.flow.function is not None or not self.bases:
            return
        for node in nodes([tree]):
            if not isinstance(node, ast.ClassDef) or self.bases.isdisjoint(node.bases):
                continue
            products = _products(node)
            if products is not None and (severity := _matters(node, tree, *products[:2])) is not None:
                yield _found(*products, severity)


def _speaks_of_half(tree: ast.Module) -> bool:
    text = words(tree)
    return any(word in text for word in ("autocast", "gradscaler", "mixed_precision", "bfloat16", "float16"))


def _matters(node: ast.ClassDef, tree: ast.Module, forward: ast.FunctionDef, product: ast.expr) -> Severity | None:
    """How bad it is for the program that a Function is not made for autocast; None where that never meets it."""
    applied = [
        call for call in nodes([tree]) if isinstance(call, ast.Call) and path_of(call.func) == f"{node.name}.apply"
    ]
    if applied and all(_is_kept_from_autocast(call, tree) for call in applied):
        return None
    if _speaks_of_half(tree):
        return Severity.WARNING
    if is_a_test(tree):
        return None
    if _multiplies_weight(forward, product):
        return Severity.INFO
    return Severity.INFO if not writes_kernels(tree) and any(map(_is_given_weights, applied)) else None


def _multiplies_weight(forward: ast.FunctionDef, product: ast.expr) -> bool:
    """Is the product one of torch with what `forward` takes as a weight, `F.linear(x, weight, bias)`? The weights of a module
    stay float32 under autocast, whoever applies the Function to them."""
    names = {part.arg for part in forward.args.args if _WEIGHT.search(part.arg)}
    operands = product.args if isinstance(product, ast.Call) else [product]
    return any(isinstance(part, ast.Name) and part.id in names for operand in operands for part in ast.walk(operand))


_WEIGHT = re.compile(r"(?:^|_)weights?$")


def _is_kept_from_autocast(call: ast.Call, tree: ast.Module) -> bool:
    """Is it run where autocast is switched off?"""
    for part in around(call, tree):
        if isinstance(part, (ast.With, ast.AsyncWith)) and any(is_off(item.context_expr) for item in part.items):
            return True
        if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return any(map(is_off, part.decorator_list))
    return False


def _is_given_weights(call: ast.Call) -> bool:
    """`Project.apply(x, self.weight)`: the weights of a module, which stay float32 under autocast."""
    return any(
        isinstance(part, ast.Attribute) and part.attr.endswith("weight") and path_of(part.value) == "self"
        for part in call.args
    )


def _products(node: ast.ClassDef) -> tuple[ast.FunctionDef, ast.expr, ast.expr] | None:
    """The forward of a Function, and a product there and in backward, of which that one raises."""
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None or _is_aware(node):
        return None
    product, gradient = _product(forward), _product(backward)
    if product is None or gradient is None or not _saves(forward) or _casts(backward):
        return None
    return forward, product, gradient


def _found(forward: ast.FunctionDef, product: ast.expr, gradient: ast.expr, severity: Severity) -> Finding:
    return Finding(
        forward.decorator_list[-1] if forward.decorator_list else product,
        "Under autocast `backward` raises: the gradient is half, and what `forward` saves is not",
        help="Decorate `forward` with `torch.amp.custom_fwd` and `backward` with `torch.amp.custom_bwd`",
        notes=((product, "autocast casts this product to half"), (gradient, "this product raises")),
        severity=severity,
        conditional=severity is Severity.INFO,
    )


def _is_aware(node: ast.ClassDef) -> bool:
    return any(
        isinstance(part, (ast.Name, ast.Attribute)) and any(word in last_name(part).lower() for word in _AWARE)
        for part in ast.walk(node)
    )


def _product(function: ast.FunctionDef) -> ast.expr | None:
    """A matrix product in a function, the first that runs: of two in one expression the one that ends first."""
    found = [
        node
        for node in nodes(function.body)
        if (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Call) and last_name(node) in _PRODUCTS)
    ]
    return min(found, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0)) if found else None


def _saves(forward: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "save_for_backward" for node in ast.walk(forward))


def _casts(backward: ast.FunctionDef) -> bool:
    """Does backward bring its operands to one dtype by itself? The dtype of a buffer that it makes is no cast, nor one that
    it asks for to choose a kernel."""
    other = {
        part
        for node in ast.walk(backward)
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Call) and not _takes_dtype(last_name(node)))
        for told in ([node.left, *node.comparators] if isinstance(node, ast.Compare) else given(node))
        for part in ([told] if isinstance(told, ast.Attribute) else [])
    }
    return any(
        isinstance(node, ast.Attribute)
        and (node.attr in ("dtype", "float", "type_as", "half", "float32") or _is_kept_dtype(node))
        and node not in other
        for node in ast.walk(backward)
    )


def _is_kept_dtype(node: ast.Attribute) -> bool:
    """`ctx.compute_dtype`, to which backward casts what it is given."""
    return node.attr.endswith("_dtype") and path_of(node.value) == "ctx"


def _takes_dtype(name: str) -> bool:
    """Is a dtype given to a method or a function of that name for a cast?"""
    return name in ("to", "type") or any(word in name.lower() for word in ("cast", "convert", "to_"))
