"""DT115: a complex tensor cast to a real dtype, without its imaginary part."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.infer.conditions import exclusive
from dtlint.infer.names import path_of
from dtlint.infer.values import Module, Tensor
from dtlint.rule import Finding, Rule
from dtlint_rules._cut import dropped_imaginary_parts
from dtlint_rules._needs import TORCH, attributes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dtlint.infer.events import Assign, Call, Condition, Flow, Operation
    from dtlint.infer.facts import ModuleFacts

__all__ = ["ComplexCast"]

_MAKERS = frozenset(
    {f"torch.{name}" for name in ("polar", "complex", "view_as_complex")}
    | {
        f"torch.fft.{name}"
        for name in ("fft", "fft2", "fftn", "rfft", "rfft2", "rfftn", "ifft", "ifft2", "ifftn", "ihfft")
    }
)
"""Functions whose result is complex."""
_MAY_BE_REAL = frozenset({"torch.stft", "torch.Tensor.stft"})
"""Complex with `return_complex=True`, which real input needs since torch 2.0."""
_KEEPING = frozenset(
    {"clone", "contiguous", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "expand"}
    | {"repeat", "detach", "cpu", "cuda", "conj", "mul", "add", "sub", "div", "flip", "roll", "t", "to", "__getitem__"}
)
"""Methods whose result is complex where their tensor is. `.to(device)` moves."""
_CASTS = frozenset(
    {"to", "type", "type_as", "float", "half", "double", "bfloat16", "long", "int", "short", "byte", "bool"}
)


class ComplexCast(Rule):
    """A complex tensor cast to a real dtype.

    ## What it does
    Reports `.float()`, `.to(torch.float32)` and other casts to a real dtype of what `torch.polar`, `torch.complex`,
    `torch.view_as_complex`, `torch.stft` and the transforms of `torch.fft` return.

    ## Why it matters
    The cast keeps the real part and throws the imaginary part away. torch says so in a warning, once, for the first
    such cast of a process. Rotary embeddings made with `torch.polar(...).float()` no longer rotate; a spectrum loses
    its phase.

    The same happens to a complex buffer when its module is cast: `module.to(torch.bfloat16)` makes it real, while
    `module.bfloat16()` leaves complex buffers as they are.

    ## Example
    ```python
    import torch

    angles = torch.outer(torch.arange(8.0), 1 / 10000 ** (torch.arange(0, 8, 2) / 8))
    freqs = torch.polar(torch.ones_like(angles), angles).float()
    ```

    ## Use instead
    ```python
    import torch

    angles = torch.outer(torch.arange(8.0), 1 / 10000 ** (torch.arange(0, 8, 2) / 8))
    freqs = torch.polar(torch.ones_like(angles), angles)
    ```

    ## References
    - [Complex numbers](https://docs.pytorch.org/docs/stable/complex_numbers.html)
    - [torch.view_as_real](https://docs.pytorch.org/docs/stable/generated/torch.view_as_real.html)
    """

    code, name = "DT115", "complex-cast"
    triggers = (
        *attributes((*_MAKERS, *_MAY_BE_REAL, "eig", "eigvals", "chalf", "cfloat", "cdouble")),
        *("complex", "complex32", "complex64", "complex128"),
    )
    needs = (TORCH,)
    calls = frozenset({*(name.rpartition(".")[2] for name in _MAKERS | _MAY_BE_REAL), *_KEEPING, *_CASTS})

    def __init__(self) -> None:
        self.made: dict[ast.expr, ast.expr] = {}
        """Complex expressions, each with the call that made them so."""
        self.names: dict[tuple[ast.AST, str], tuple[ast.expr, list[Condition]]] = {}
        """The names, with their scopes, that hold complex tensors: what made them, and in which branches."""

    def on_facts(self, facts: ModuleFacts) -> Iterable[Finding]:
        return dropped_imaginary_parts(facts)

    def on_call(self, call: Call) -> Iterable[Finding]:
        if call.target in _MAKERS or (call.target in _MAY_BE_REAL and call.constant(None, "return_complex") is True):
            self.made[call.node] = call.node
        elif isinstance(call.node.func, ast.Attribute) and (self.made or _is_complex(call.receiver)):
            made = self._origin(call, call.node.func.value)
            if made is not None:
                return self._method(call, made)
        return ()

    def on_operation(self, operation: Operation) -> Iterable[Finding]:
        node = operation.node
        if self.made and isinstance(node, ast.BinOp):
            made = self._complex(node.left, operation.flow) or self._complex(node.right, operation.flow)
            if made is not None:
                self.made[node] = made
        return ()

    def on_assign(self, assign: Assign) -> Iterable[Finding]:
        path = path_of(assign.target) if self.made else None  # nothing is complex so far, and no name holds it
        if path is not None and assign.expression is not None:
            made = self._complex(assign.expression, assign.flow)
            key = (assign.flow.scope, path)
            if made is not None:
                self.names[key] = (made, list(assign.flow.conditions))
            elif not isinstance(assign.node, ast.AugAssign):
                self.names.pop(key, None)
        return ()

    def _method(self, call: Call, made: ast.expr) -> Iterator[Finding]:
        from dtlint.dtypes.dtype import COMPLEX

        is_cast, dtypes = call.cast if call.method in _CASTS else (False, None)
        if not is_cast:
            if call.method in _KEEPING:
                self.made[call.node] = made
            return
        if dtypes is None or dtypes & COMPLEX:
            return
        dtype = next(iter(dtypes))
        yield Finding(
            call.node,
            f"The tensor is complex: the cast to {dtype} drops its imaginary part",
            help="Take `x.real`, `x.abs()` or `torch.view_as_real(x)`, or keep it complex",
            notes=() if made is call.node.func else ((made, "complex since here"),),
        )

    def _origin(self, call: Call, given: ast.expr) -> ast.expr | None:
        if isinstance(call.receiver, Module):
            return None
        return self._complex(given, call.flow) or (given if _is_complex(call.receiver) else None)

    def _complex(self, node: ast.expr, flow: Flow) -> ast.expr | None:
        """What made an expression complex; None where it is not known to be."""
        while isinstance(node, ast.Subscript):
            node = node.value
        known = self.made.get(node)
        if known is not None:
            return known
        path = path_of(node)
        named = None if path is None else self.names.get((flow.scope, path))
        return None if named is None or exclusive(named[1], flow.conditions) else named[0]


def _is_complex(value: object) -> bool:
    from dtlint.dtypes.dtype import COMPLEX

    return isinstance(value, Tensor) and bool(value.dtypes) and value.dtypes <= COMPLEX  # type: ignore[operator]
