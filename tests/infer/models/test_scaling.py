"""What is told of GradScaler's protocol, and of autocast regions in functions that anybody may call."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from dtlint.check.reader import Reader
from dtlint.infer.domain.values import Const, Region
from dtlint.infer.facts import ModuleFacts

KINDS = (
    *("unscale twice", "unscale again", "unscale after step", "step twice", "step again", "update without step"),
    *(
        "step of plain gradients",
        "unscale of plain gradients",
        "step of cleared gradients",
        "plain step of scaled gradients",
        "step beside the scaler",
    ),
    *("clip scaled", "clip perhaps scaled", "backward in region", "step of half parameters"),
)


def facts_of(text: str) -> ModuleFacts:
    return Reader().facts(ast.parse(dedent(text)), None)


def events(text: str) -> list[tuple[int, str]]:
    return [(one.node.lineno, one.what.kind) for one in facts_of(text).events(*KINDS)]


def of_function(body: str) -> list[str]:
    """The events of a function that is given a loss, an optimizer, a scaler and a model."""
    head = "import torch\ndef step(loss, optimizer, scaler, model, amp, unseen):\n"
    return [kind for _, kind in events(head + "".join(f"    {line}\n" for line in body.splitlines()))]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.update()", []),
        ("scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\nscaler.unscale_(optimizer)", ["unscale twice"]),
        ("scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.unscale_(optimizer)", ["unscale after step"]),
        ("scaler.scale(loss).backward()\nscaler.step(optimizer)\nscaler.step(optimizer)", ["step twice"]),
        ("scaler.scale(loss).backward()\noptimizer.step()", ["plain step of scaled gradients"]),
        ("scaler.scale(loss).backward()\nscaler.step(optimizer)\noptimizer.step()", ["step beside the scaler"]),
        ("scaler.scale(loss).backward()\noptimizer.zero_grad()\nscaler.step(optimizer)", ["step of cleared gradients"]),
        ("scaled = scaler.scale(loss)\nscaled.backward()\noptimizer.step()", ["plain step of scaled gradients"]),
        ("scaler.scale(loss).backward()\nscaler.unscale_(optimizer)\noptimizer.step()", []),
        ("loss.backward()\noptimizer.step()\nscaler.update()", []),
        ("scaler.scale(loss).backward()\nunseen(scaler, optimizer)\noptimizer.step()", []),
        (
            "scaler.scale(loss).backward()\nif amp:\n    scaler.unscale_(optimizer)\nscaler.unscale_(optimizer)",
            ["unscale again"],
        ),
    ],
)
def test_the_protocol_is_followed_where_the_phase_at_entry_is_not_known(body: str, kinds: list[str]) -> None:
    assert of_function(body) == kinds


CLIP = "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)"


@pytest.mark.parametrize(
    ("before", "kinds"),
    [
        ("scaler.scale(loss).backward()", ["clip scaled"]),
        ("if amp:\n    scaler.scale(loss).backward()\nelse:\n    loss.backward()", ["clip perhaps scaled"]),
        ("scaler.scale(loss).backward()\nscaler.unscale_(optimizer)", []),
        ("scaler.scale(loss).backward()\nunseen(scaler)", []),
        ("scaler.scale(loss).backward()\nscaler.get_scale()", []),
        ("loss.backward()", []),
    ],
)
def test_clipping_is_told_where_the_gradients_are_scaled(before: str, kinds: list[str]) -> None:
    assert of_function(f"{before}\n{CLIP}") == kinds


def test_a_method_may_be_called_in_any_phase() -> None:
    text = """\
        import torch

        class Trainer:
            def __init__(self, optimizer):
                self.scaler = torch.amp.GradScaler("cuda")
                self.optimizer = optimizer

            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def finish(self):
                self.scaler.update()
        """
    assert events(text) == []


def test_what_is_made_of_a_scaled_loss_is_not_taken_for_a_plain_one() -> None:
    text = """\
        import torch

        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters())
        scaler = torch.amp.GradScaler("cuda")
        for x in [torch.randn(4, 2), torch.randn(4, 2)]:
            {scaled}.backward()
            scaler.step(optimizer)
            scaler.update()
        """
    assert events(dedent(text).format(scaled="(scaler.scale(model(x).sum()) / 2)")) == []
    assert events(dedent(text).format(scaled="model(x).sum()")) == [(8, "step of plain gradients")]


def test_a_function_that_gets_the_scaler_is_followed() -> None:
    text = """\
        import torch

        def finish(scaler, optimizer):
            scaler.step(optimizer)
            scaler.update()

        def train(losses, optimizer):
            scaler = torch.amp.GradScaler("cuda")
            for loss in losses:
                scaler.scale(loss).backward()
                finish(scaler, optimizer)
                scaler.update()
        """
    assert events(text) == [(12, "update without step")]


def test_the_region_of_a_call_is_the_innermost_in_view() -> None:
    facts = facts_of("""\
        import torch

        def first(model, x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                inside(model, x)
                with torch.autocast("cuda", enabled=False):
                    off(x)
            outside(x)

        module_level(1)
        """)
    regions = {ast.unparse(call.node.func): call.region for call in facts.calls()}
    assert regions["inside"] == Region("cuda", "bfloat16", True)
    assert regions["off"] == Region("cuda", "bfloat16", False)
    assert not isinstance(regions["outside"], Region)
    assert regions["module_level"] == Const(None)
