"""DT417: a formula that overflows, or loses what it computes, where an equal one does not."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dtlint.diagnostic import Applicability, Edit, Fix
from dtlint.infer.names import path_of
from dtlint.infer.values import Module
from dtlint.infer.walk import nodes
from dtlint.rule import Finding, Rule
from dtlint_rules._assignments import source_of
from dtlint_rules._names import last_name
from dtlint_rules._parts import receiver, same
from dtlint_rules._within import within

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Call, Flow, Operation
    from dtlint.source.place import Place

__all__ = ["UnstableFormulation"]


@dataclass(frozen=True, slots=True)
class _Better:
    """What to write instead of the logarithm of a function, and what goes wrong: by the function's name."""

    function: str
    happens: str


_LOGARITHMS = {
    "softmax": _Better(
        "torch.nn.functional.log_softmax",
        "where softmax underflows, 104 below the greatest logit in float32 and 17 in float16, its logarithm is -inf",
    ),
    "sigmoid": _Better(
        "torch.nn.functional.logsigmoid",
        "where sigmoid underflows, below -104 in float32 and -17 in float16, its logarithm is -inf",
    ),
    "sum": _Better(
        "torch.logsumexp", "exp overflows above 88.7 in float32 and above 11.1 in float16, and the logarithm is inf"
    ),
    "softplus": _Better(
        "torch.nn.functional.softplus",
        "exp overflows above 88.7 in float32 and above 11.1 in float16, and the logarithm is inf",
    ),
}
_FUNCTIONS = {
    **dict.fromkeys(("torch.softmax", "torch.nn.functional.softmax", "torch.special.softmax"), "softmax"),
    **dict.fromkeys(("torch.sigmoid", "torch.nn.functional.sigmoid", "torch.special.expit"), "sigmoid"),
    "torch.exp": "exp",
}
_LAYERS = {"torch.nn.Softmax": "softmax", "torch.nn.Sigmoid": "sigmoid"}


class UnstableFormulation(Rule):
    """A formula that overflows where an equal one does not.

    ## What it does
    Reports the logarithm of a softmax, of a sigmoid, of a sum of exponentials and of `1 + exp(x)`, at once or by the
    name the inner value was given, and a softmax by hand, `x.exp() / x.exp().sum()`, without the maximum subtracted.
    One to which an epsilon is added before the logarithm is left alone.

    ## Why it matters
    A softmax underflows to 0 where a logit lies 104 below the greatest in float32, and 17 in float16; the logarithm is
    -inf then and its gradient NaN. `exp` overflows above 88.7 in float32 and above 11.1 in float16. `log_softmax`,
    `logsigmoid`, `logsumexp` and `softplus` compute the same without leaving the range, and faster.

    ## Example
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.log(torch.softmax(logits, dim=-1))
    ```

    ## Use instead
    ```python
    import torch

    def log_probabilities(logits: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.log_softmax(logits, dim=-1)
    ```

    ## Fix safety
    The fix replaces the two functions where they stand together; they are equal but for rounding, where the first does
    not overflow.

    ## References
    - [torch.nn.functional.log_softmax](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.log_softmax.html)
    - [torch.logsumexp](https://docs.pytorch.org/docs/stable/generated/torch.logsumexp.html)
    """

    code, name = "DT417", "unstable-formulation"
    fix = Applicability.SAFE
    triggers = (".log", ".log1p", ".sum")
    needs = (("softmax", "sigmoid", "exp", "expit", "Softmax", "Sigmoid"),)

    calls = frozenset(
        {"__call__", "log", "log1p", "softmax", "sigmoid", "exp", *(name.rpartition(".")[2] for name in _FUNCTIONS)}
    )
    operators = frozenset({ast.Div})

    def __init__(self) -> None:
        self.kinds: dict[ast.expr, str] = {}
        """What calls compute: softmax, sigmoid or exp."""

    def on_call(self, call: Call) -> Iterable[Finding]:
        name = last_name(call.node)
        if name in ("log", "log1p"):
            return self._logarithm(call, name)
        kind = _FUNCTIONS.get(call.target)
        if kind is None and call.target == "torch.nn.Module.__call__" and isinstance(call.receiver, Module):
            kind = _LAYERS.get(call.receiver.name)
        if (
            kind is None
            and name in ("softmax", "sigmoid", "exp")
            and not call.target
            and isinstance(call.node.func, ast.Attribute)
        ):
            kind = (
                name
                if path_of(call.node.func.value) not in ("np", "numpy", "math", "jnp", "tf", "scipy.special")
                else None
            )
        if kind is None and call.target in ("torch.Tensor.softmax", "torch.Tensor.sigmoid", "torch.Tensor.exp"):
            kind = name
        if kind is not None:
            self.kinds[call.node] = kind
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if not self.kinds or not isinstance(operation.operator, ast.Div) or not isinstance(node, ast.BinOp):
            return ()
        return self._divided(operation, node)

    def _divided(self, operation: Operation, node: ast.BinOp) -> Iterator[Finding]:
        """`e / e.sum(-1)`, where `e` is an exponential."""
        top = source_of(node.left, operation.flow) or node.left
        given = self._exponent(top)
        below = source_of(node.right, operation.flow) or node.right
        summed = _summed(below)
        if given is None or summed is None or not (same(summed, node.left) or same(summed, top)):
            return
        if _is_bounded(source_of(given, operation.flow) or given):
            return
        yield Finding(
            node,
            "A softmax by hand: exp overflows above 88.7 in float32 and above 11.1 in float16, and inf / inf is NaN",
            help="Use `torch.softmax`, which subtracts the maximum first",
        )

    def _logarithm(self, call: Call, name: str) -> Iterator[Finding]:
        function = call.target in ("torch.log", "torch.log1p")
        if function:
            inner = call.argument_node(0, "input")
        else:
            inner = None if call.node.args else receiver(call.node)
        if inner is None or not call.complete:
            return
        made = source_of(inner, call.flow) or inner
        kind = self._kind(made, name, call.flow)
        better = _LOGARITHMS.get(kind or "")
        if better is None or kind is None or (kind == "softplus" and _is_one_branch(call)):
            return
        last = better.function.rpartition(".")[2]
        yield Finding(
            call.node,
            f"The logarithm of {_CALLED[kind]} is taken apart: {better.happens}",
            help=f"Use `{better.function.replace('torch.nn.functional', 'F')}`",
            notes=() if made is inner else ((made, "it is computed here"),),
            fix=partial(_fix, made, better.function, last)
            if made is inner and kind in ("softmax", "sigmoid")
            else None,
        )

    def _kind(self, made: ast.expr, name: str, flow: Flow) -> str | None:
        if name == "log1p":
            return "softplus" if self._exponent(made) is not None and not _is_clamped(self._exponent(made)) else None
        kind = self.kinds.get(made)
        if kind in ("softmax", "sigmoid"):
            return kind
        summed = _summed(made)
        if summed is not None:
            given = self._exponent(source_of(summed, flow) or summed)
            return "sum" if given is not None and not _is_bounded(source_of(given, flow) or given) else None
        if isinstance(made, ast.BinOp) and isinstance(made.op, ast.Add):
            for one, other in ((made.left, made.right), (made.right, made.left)):
                given = self._exponent(other)
                if isinstance(one, ast.Constant) and one.value == 1 and given is not None and not _is_clamped(given):
                    return "softplus"
        return None

    def _exponent(self, node: ast.expr) -> ast.expr | None:
        """What an exponential is taken of."""
        if not isinstance(node, ast.Call) or self.kinds.get(node) != "exp":
            return None
        return node.args[0] if node.args else receiver(node)


def _is_one_branch(call: Call) -> bool:
    """Is it chosen for small values alone: `torch.where(x > 20, x, torch.log(1 + torch.exp(x)))`?"""
    return any(isinstance(part, ast.Call) and last_name(part) == "where" for part in within(call.node, call.flow))


_CALLED = {"softmax": "a softmax", "sigmoid": "a sigmoid", "sum": "a sum of exponentials", "softplus": "1 + exp(x)"}


def _summed(node: ast.expr) -> ast.expr | None:
    """What is summed: `x` of `x.sum(-1)` and `torch.sum(x, dim=1)`."""
    if not isinstance(node, ast.Call) or last_name(node) != "sum" or not isinstance(node.func, ast.Attribute):
        return None
    base = path_of(node.func.value)
    if base in ("torch", "th"):
        return node.args[0] if node.args else None
    return None if base in ("np", "numpy", "tf", "jnp") else node.func.value


def _is_bounded(node: ast.expr | None) -> bool:
    """Is the exponent kept from large values: has the maximum been subtracted, or does it have a sign?"""
    return node is None or any(
        isinstance(part, (ast.UnaryOp, ast.Sub))
        or (isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub))
        or (
            isinstance(part, ast.Call)
            and last_name(part).startswith(("clamp", "neg", "log", "cos", "sin", "tanh", "norm", "dist", "cdist"))
        )
        for part in nodes([node])
    )


def _is_clamped(node: ast.expr | None) -> bool:
    """Is the exponent kept from large values: `-x.abs()`, `x.clamp(max=20)`, `x - x.max()`?"""
    return node is None or any(
        isinstance(part, ast.Call) and last_name(part).startswith(("clamp", "abs", "min", "max", "log", "tanh"))
        for part in nodes([node])
    )


def _fix(inner: ast.expr, function: str, last: str, place: Place) -> Fix | None:
    """One call in place of two: the inner one, by its new name, with its arguments."""
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, (ast.Attribute, ast.Name)):
        return None
    if "#" in place.text(place.abstract):
        return None
    text, called = place.text(inner), place.text(inner.func)
    arguments = text[len(called) :]
    imports: tuple[Edit, ...] = ()
    is_method = isinstance(inner.func, ast.Attribute) and path_of(inner.func.value) not in _PACKAGES
    if is_method and last == "logsigmoid":
        name, imports = place.spelled(function)
        assert isinstance(inner.func, ast.Attribute)
        replaced = f"{name}({place.text(inner.func.value)})"
    elif is_method:
        assert isinstance(inner.func, ast.Attribute)
        replaced = f"{place.text(inner.func.value)}.{last}{arguments}"
    elif (path_of(inner.func) or "").startswith("self."):
        return None
    else:
        name, imports = place.spelled(function)
        replaced = f"{name}{arguments}"
    return Fix(f"Use `{last}`", (place.replace(place.abstract, replaced), *imports), Applicability.SAFE)


_PACKAGES = frozenset({"torch", "th", "F", "nn.functional", "torch.nn.functional", "torch.special", None})
