"""Optimizers: groups, state, and models that are averaged."""

from __future__ import annotations

import pytest

from tests.infer.programs import inexact

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_state_is_like_the_parameters() -> None:
    """Of torch's own optimizers, after a step."""
    program = """
lin = nn.Linear(4, 2)
opt = torch.optim.AdamW(lin.parameters(), lr=1e-3)
opt2 = torch.optim.SGD([{"params": lin.weight}, {"params": [lin.bias]}], lr=0.1, momentum=0.9)
sch = torch.optim.lr_scheduler.StepLR(opt, 1)
loss = lin(torch.randn(3, 4)).sum(); loss.backward(); opt.step(); sch.step(); opt.zero_grad(set_to_none=False); opt2.step()
for group in opt.param_groups:
    for p in group["params"]:
        q = p * 1
        gg = p.grad * 1 if p.grad is not None else None
        st = opt.state[p]
        m1 = st["exp_avg"] * 1; m2 = st["exp_avg_sq"].sqrt(); m3 = st["step"] * 1
for p in lin.parameters():
    mb = opt2.state[p]["momentum_buffer"]
"""
    assert inexact(HEAD + program) == []


def test_an_optimizer_of_the_program_keeps_its_state() -> None:
    """A dict for each parameter."""
    program = """
lin = nn.Linear(4, 2)
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99)):
        super().__init__(params, dict(lr=lr, betas=betas))
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p)
                state["step"] += 1
                m = state["exp_avg"]
                u = m.mul(b1).add(p.grad, alpha=1 - b1).sign_()
                p.add_(u, alpha=-group["lr"])
                m.mul_(b2).add_(p.grad, alpha=1 - b2)
lion = Lion(lin.parameters()); lin(torch.randn(3, 4)).sum().backward(); lion.step()
"""
    assert inexact(HEAD + program) == []


def test_averaged_and_parallel_models_call_what_is_within() -> None:
    """By their `module`."""
    program = """
lin = nn.Linear(4, 2)
ema = torch.optim.swa_utils.AveragedModel(lin); ema.update_parameters(lin); eo = ema(torch.randn(3, 4)) * 1; ew = ema.module.weight * 1
dp = nn.DataParallel(lin); do = dp(torch.randn(3, 4)) * 1; dw = dp.module.weight * 1
"""
    assert inexact(HEAD + program) == []
