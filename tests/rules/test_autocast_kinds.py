"""DT204 to DT218: what their messages and notes say, and neighbours of their fixtures that decide what they are silent about."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dtlint import Diagnostic, Severity, discover
from dtlint.check.file import check_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULES = discover()


def found(code: str, text: str) -> list[Diagnostic]:
    checked = check_source(Source.from_bytes(dedent(text).encode(), "train.py"), [RULES[code]], Settings(preview=True))
    assert checked.crashes == []
    return checked.diagnostics


def lines(code: str, text: str) -> list[int]:
    return [item.location.span.line for item in found(code, text)]


def test_a_second_unscale_is_an_error() -> None:
    (item,) = found(
        "DT204",
        """\
        def f(loss, optimizer, scaler):
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            scaler.unscale_(optimizer)
            scaler.step(optimizer)
        """,
    )
    assert item.location.span.line == 4
    assert item.severity is Severity.ERROR


def test_branches_that_exclude_each_other_are_no_order() -> None:
    assert not lines(
        "DT204",
        """\
        def f(loss, optimizer, scaler, clip):
            scaler.scale(loss).backward()
            if clip:
                scaler.unscale_(optimizer)
            else:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
        """,
    )


def test_a_scaler_that_is_never_updated_is_told_only_where_nobody_else_has_it() -> None:
    alone = """\
        import torch
        scaler = torch.amp.GradScaler("cuda")
        def fit(losses, optimizer):
            for loss in losses:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
        """
    assert lines("DT204", alone) == [6]
    assert not lines("DT204", dedent(alone) + "finish(scaler)\n")


def test_optimizers_that_a_loop_makes_are_stepped_one_after_another() -> None:
    text = """\
        import torch
        def fit(model, batches, names):
            optimizers = {{name: torch.optim.AdamW(model.parameters()) for name in names}}
            scaler = torch.amp.GradScaler("cuda")
            for x in batches:
                scaler.scale(model(x).sum()).backward()
                for one in {over}:
                    scaler.unscale_(one)
                    scaler.step(one)
                {last}
        """
    assert lines("DT204", text.format(over="optimizers.values()", last="scaler.update()")) == []
    assert lines("DT204", text.format(over="[optimizers[names[0]]]", last="scaler.update()")) == []
    alone = text.replace("{{name:", "[").replace("for name in names}}", "]")
    assert lines("DT204", alone.format(over="optimizers", last="scaler.update()")) == []
    assert lines("DT204", alone.format(over="optimizers", last="pass")) == [8]


def test_a_loss_that_callers_hand_over_may_be_scaled_by_them() -> None:
    text = """\
        import torch
        class Trainer:
            def __init__(self, optimizer, amp):
                self.optimizer, self.scaler = optimizer, torch.amp.GradScaler() if amp else None
            def backward(self, {given}):
                loss = {loss}
                loss.backward()
                if self.scaler:
                    self.scaler.unscale_(self.optimizer)
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
        """
    assert lines("DT204", text.format(given="given", loss="given / 4")) == []
    assert lines("DT204", text.format(given="model, x", loss="model(x).sum()")) == [9]


@pytest.mark.parametrize("enabled", ["dtype == torch.float16", "args.fp16", 'precision == "16-mixed"'])
def test_a_scaler_switched_by_dtype_is_no_finding(enabled: str) -> None:
    text = f"""\
        import torch
        def f(model, x, dtype, args, precision):
            scaler = torch.amp.GradScaler("cuda", enabled={enabled})
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return scaler.scale(model(x).sum())
        """
    assert not lines("DT205", text)


def test_bce_says_where_autocast_begins() -> None:
    (item,) = found(
        "DT207",
        """\
        import torch.nn.functional as F
        from torch.amp import autocast
        def f(p, y):
            with autocast("cuda"):
                return F.binary_cross_entropy(p, y)
        """,
    )
    assert item.notes[0].location.span.line == 4


def test_files_for_cuda_alone_may_say_so() -> None:
    text = """\
        import torch
        def f(x: torch.Tensor):
            with torch.autocast("cuda", enabled=False):
                return x.cuda().float() @ x.float()
        """
    assert not lines("DT208", text)


def test_of_two_products_the_one_that_runs_first_is_said_to_raise() -> None:
    text = """\
        import torch

        class Project(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return x.mm(w)

            @staticmethod
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                return g.mm(w.t()), x.t().mm(g)

        with torch.autocast("cpu"):
            Project.apply(torch.randn(4, 4), torch.randn(4, 4, requires_grad=True))
        """
    (item,) = found("DT212", text)
    assert item.notes[1].message == "this product raises"
    column = item.notes[1].location.span.column
    line = dedent(text).splitlines()[item.notes[1].location.span.line - 1]
    assert line[column:].startswith("g.mm(w.t())")
