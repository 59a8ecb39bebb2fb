"""Functions of the program that torch runs."""

from __future__ import annotations

import pytest

from tests.infer.programs import contradicted, inexact, loose

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_apply_runs_forward_and_backward() -> None:
    """Of an autograd function."""
    program = """
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x ** 3
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x ** 2, None
y0 = torch.randn(3, 4, requires_grad=True)
y = Cube.apply(y0, 2) * 1
y.sum().backward()
"""
    assert contradicted(HEAD + program) == []
    assert loose(HEAD + program) == set()


def test_checkpoints_call_the_function() -> None:
    """With its arguments."""
    program = """
from torch.utils.checkpoint import checkpoint

layer = nn.Linear(8, 2).double()
a = checkpoint(layer, x.double(), use_reentrant=False) * 1
"""
    assert inexact(HEAD + program) == []


def test_functions_are_vectorised_and_differentiated() -> None:
    """By torch.func."""
    program = """
vm = torch.vmap(lambda a: a.sum())(torch.randn(3, 4)) * 1; gr = torch.func.grad(lambda a: (a ** 2).sum())(torch.ones(3)) * 1
gv, vv = torch.func.grad_and_value(lambda a: (a ** 2).sum())(torch.ones(3)); gv1 = gv * vv
"""
    assert contradicted(HEAD + program) == []
    assert loose(HEAD + program) == set()


def test_custom_fwd_casts_operands_in_a_region() -> None:
    """And turns the region off."""
    program = """
from torch.amp import custom_bwd, custom_fwd


class Squared(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x @ x.T

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad):
        return grad @ ctx.saved_tensors[0] * 2


if __name__ == "__main__":
    a = Squared.apply(torch.randn(3, 3, requires_grad=True)) * 1
"""
    assert inexact(HEAD + program) == []
