"""DT115: a complex tensor cast to a real dtype, without its imaginary part."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from dtlint.dtypes.dtype import COMPLEX
from dtlint.infer.domain.values import Tensor, Unknown
from dtlint.rule import Finding, Rule
from dtlint_rules._cast_calls import casts, dtype_name
from dtlint_rules._cut import dropped_imaginary_parts
from dtlint_rules._needs import TORCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dtlint.infer.facts import Call, ModuleFacts

__all__ = ["ComplexCast"]


class ComplexCast(Rule):
    """A complex tensor cast to a real dtype.

    ## What it does
    Reports `.float()`, `.to(torch.float32)` and other casts to a real dtype of what `torch.polar`, `torch.complex`,
    `torch.view_as_complex`, `torch.stft` and the transforms of `torch.fft` return. What an inverse transform gives is
    left alone: filtered signals come back with nothing but rounding in the imaginary part.

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
    triggers = ("*complex*", "polar", "*fft*", "stft", "eig", "eigvals", "chalf", "cfloat", "cdouble")
    needs = (TORCH,)

    def on_facts(self, facts: ModuleFacts) -> Iterator[Finding]:
        yield from (
            finding
            for finding in dropped_imaginary_parts(facts)
            if not isinstance(finding.node, ast.Call)
            or not isinstance(finding.node.func, ast.Attribute)
            or not _is_back_from_a_spectrum(facts, finding.node.func.value)
        )
        for cast in casts(facts):
            if _is_back_from_a_spectrum(facts, cast.subject):
                continue
            if _is_complex(facts, cast.subject) and cast.of != "module" and cast.dtypes and not cast.dtypes & COMPLEX:
                yield Finding(
                    cast.node,
                    f"The tensor is complex: the cast to {dtype_name(cast.dtype)} drops its imaginary part",
                    help="Take `x.real`, `x.abs()` or `torch.view_as_real(x)`, or keep it complex",
                )


_MAKERS = frozenset(
    {"torch.polar", "torch.complex", "torch.view_as_complex", "torch.linalg.eig", "torch.linalg.eigvals"}
    | {f"torch.fft.{name}" for name in ("fft", "fft2", "fftn", "ifft", "ifft2", "ifftn", "rfft", "rfft2", "rfftn")}
)
"""Functions whose result is complex, whatever they are given."""
_KEEPING = frozenset(
    {"clone", "contiguous", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "flatten", "expand"}
    | {"repeat", "detach", "cpu", "cuda", "conj"}
)


def _is_complex(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is a tensor complex, as far as its dtype or what has made it is known?"""
    for _ in range(8):
        value = facts.value(node)
        if isinstance(value, (Tensor, Unknown)) and value.dtypes:
            return value.dtypes <= COMPLEX
        node = facts.around.definition(node)
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp):
            return _is_complex(facts, node.left) or _is_complex(facts, node.right)
        elif isinstance(node, ast.Call):
            if any(call.name in _MAKERS or _is_spectrum(call) for call in facts.calls_at(node)):
                return True
            if not isinstance(node.func, ast.Attribute) or node.func.attr not in _KEEPING:
                return False
            node = node.func.value
        else:
            return False
    return False


def _is_back_from_a_spectrum(facts: ModuleFacts, node: ast.expr) -> bool:
    """Is it a part of what an inverse transform gives?"""
    for _ in range(8):
        node = facts.around.definition(node)
        if isinstance(node, ast.Subscript):
            node = node.value
        elif not isinstance(node, ast.Call):
            return False
        elif any(call.name in _INVERSE for call in facts.calls_at(node)):
            return True
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPING:
            node = node.func.value
        else:
            return False
    return False


_INVERSE = frozenset({"torch.fft.ifft", "torch.fft.ifft2", "torch.fft.ifftn"})


def _is_spectrum(call: Call) -> bool:
    return call.name in ("torch.stft", "torch.Tensor.stft") and call.constant(None, "return_complex") is True
