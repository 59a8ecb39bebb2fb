"""DT201, DT202 and DT203 beyond what their examples and fixtures show: what their fixes keep, and where they have none."""

from __future__ import annotations

from textwrap import dedent

import pytest

from dtlint import Applicability, Diagnostic, discover
from dtlint.check.file import check_source
from dtlint.check.fix import fix_source
from dtlint.config import Settings
from dtlint.source.file import Source

RULES = discover()


def found(code: str, text: str) -> list[Diagnostic]:
    checked = check_source(Source.from_bytes(dedent(text).encode(), "train.py"), [RULES[code]], Settings(preview=True))
    assert checked.crashes == []
    return checked.diagnostics


def fixed(code: str, text: str) -> str:
    source = Source.from_bytes(dedent(text).encode(), "train.py")
    result = fix_source(source, [RULES[code]], Settings(preview=True), Applicability.UNSAFE)
    assert result.failed is None
    return result.source.text


# -- DT201 ------------------------------------------------------------------------------------------------------------


def test_moving_backward_out_keeps_comments_layout_and_strings() -> None:
    before = '''\
        import torch

        def train(model, loader, optimizer, scaler, loss_fn):
            for i, (x, y) in enumerate(loader):
                with torch.autocast("cuda"):  # mixed precision
                    loss = loss_fn(model(x), y)

                    # scaled, for float16
                    scaler.scale(
                        loss,
                    ).backward()
                    # every other batch

                    if i % 2:
                        scaler.step(optimizer, note="""
                    kept as it is
                        """)
                        scaler.update()  # grows
                print(i)
        '''
    after = '''\
        import torch

        def train(model, loader, optimizer, scaler, loss_fn):
            for i, (x, y) in enumerate(loader):
                with torch.autocast("cuda"):  # mixed precision
                    loss = loss_fn(model(x), y)

                # scaled, for float16
                scaler.scale(
                    loss,
                ).backward()
                # every other batch

                if i % 2:
                    scaler.step(optimizer, note="""
                    kept as it is
                        """)
                    scaler.update()  # grows
                print(i)
        '''
    assert fixed("DT201", before) == dedent(after)


def test_moving_backward_out_works_with_tabs() -> None:
    before = "import torch\ndef f(m):\n\twith torch.autocast('cuda'):\n\t\tloss = m()\n\t\tloss.backward()\n"
    after = "import torch\ndef f(m):\n\twith torch.autocast('cuda'):\n\t\tloss = m()\n\tloss.backward()\n"
    assert fixed("DT201", before) == after


@pytest.mark.parametrize(
    "body",
    [
        "loss = model(x)\n    loss.backward()\n    y = model(x)",
        "loss = model(x)\n    if x is not None:\n        loss.backward()",
        "loss = model(x)\n    loss.backward()\n    if ready(x):\n        optimizer.step()",
        "loss = model(x); loss.backward()",
        "loss = model(x)\n    loss.backward()\n    ema.update(model(x))",
        "loss = model(x)\n    loss.backward()\n    metrics.step(y)",
        "loss = model(x)\n    loss.backward()\n    optimizer.step(closure)",
        "loss = model(x)\n    loss.backward()\n    scheduler.step(model(y).mean())",
        "loss = model(x)\n    loss.backward()\n    scaler.scale(a @ b).backward()",
        "y = prepare(x)\n    model(y).backward()",
        "y = prepare(x)\n    scaler.scale(model(y)).backward()",
        "loss.backward()",
    ],
    ids=[
        *("another forward follows", "in a branch", "a test that calls", "one line", "a moving average", "a metric"),
        *("a closure", "an argument that computes", "a product", "the forward", "scaled forward", "nothing else"),
    ],
)
def test_backward_stays_where_the_region_cannot_end(body: str) -> None:
    text = f"import torch\nwith torch.autocast('cuda'):\n    {body}\n"
    assert found("DT201", text)[0].fix is None


def test_backward_stays_in_a_region_that_is_not_autocasts_alone() -> None:
    text = "import torch\nwith torch.autocast('cuda'), lock:\n    loss = model(x)\n    loss.backward()\n"
    assert [item.fix for item in found("DT201", text)] == [None]


def test_the_region_is_pointed_at() -> None:
    (item,) = found(
        "DT201",
        """\
        import torch
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x)
            loss.backward()
        """,
    )
    assert "bfloat16" in item.message
    assert [(note.location.span.line, note.message) for note in item.notes] == [(2, "autocast begins here")]


@pytest.mark.parametrize(
    "call",
    [
        "engine.backward(loss)",
        "engine.backward(loss=loss)",
        "engine.backward()",
        "loss.backward(*stages)",
        "accelerator.backward(loss)",
        "torch.autograd.set_detect_anomaly(True)",
    ],
)
def test_what_may_be_no_tensor_is_not_judged(call: str) -> None:
    assert (
        found(
            "DT201", f"import torch\ndef f(engine, loss, stages):\n    with torch.autocast('cuda'):\n        {call}\n"
        )
        == []
    )


# -- DT202 ------------------------------------------------------------------------------------------------------------

UNSCALED = """\
import torch
{first}
def train(model, x, optimizer):
    with {region}:
        loss = model(x).mean()
    {last}
    optimizer.step()
"""


@pytest.mark.parametrize(
    "region",
    [
        "torch.autocast('cuda')",
        "torch.cuda.amp.autocast()",
        "torch.autocast('cpu', dtype=torch.half)",
        "torch.amp.autocast('mps')",
    ],
)
def test_float16_is_seen_in_every_spelling(region: str) -> None:
    (item,) = found("DT202", UNSCALED.format(first="", region=region, last="loss.backward()"))
    assert [(note.location.span.line, note.message) for note in item.notes] == [(4, "autocast to float16 begins here")]


@pytest.mark.parametrize(
    ("first", "region", "last"),
    [
        ("", "torch.autocast('cuda', dtype=torch.bfloat16)", "loss.backward()"),
        ("", "torch.autocast('xpu')", "loss.backward()"),
        ("", "torch.autocast(x.device.type)", "loss.backward()"),
        ("", "torch.autocast('cuda', enabled=False)", "loss.backward()"),
        ("torch.set_autocast_gpu_dtype(torch.bfloat16)", "torch.autocast('cuda')", "loss.backward()"),
        ("import deepspeed", "torch.autocast('cuda')", "loss.backward()"),
        ("from accelerate import Accelerator", "torch.autocast('cuda')", "loss.backward()"),
        ("loss_scale = 128.0", "torch.autocast('cuda')", "(loss * loss_scale).backward()"),
        ("", "torch.autocast('cuda')", "(loss * 1024).backward()"),
        ("", "torch.autocast('cuda')", "fit(loss)"),
    ],
)
def test_what_needs_no_scaler_or_may_have_one_is_silent(first: str, region: str, last: str) -> None:
    assert found("DT202", UNSCALED.format(first=first, region=region, last=last)) == []


FLAGGED = """\
import torch
def train(model, loader, optimizer, amp, teacher=None):
    for x in loader:
        if amp:
            with torch.amp.autocast("cuda"):
                if teacher:
                    loss = model(x).mean() + teacher(x).mean()
                else:
                    loss = model(x).mean()
        else:
            loss = model(x).mean()
        if {test}:
            optimizer.scale_and_step(loss)
        else:
            loss.backward()
            optimizer.step()
"""


def test_a_loss_of_the_branch_that_a_flag_excludes_does_not_go_backward() -> None:
    assert found("DT202", FLAGGED.format(test="amp")) == []
    assert len(found("DT202", FLAGGED.format(test="teacher"))) == 1


# -- DT203 ------------------------------------------------------------------------------------------------------------


def test_unscale_goes_before_the_clip_in_its_branch() -> None:
    before = """\
        import torch
        from torch import nn

        def step(model, loss, optim, scaler, how):
            scaler.scale(loss).backward()
            if how == "norm":
                total = nn.utils.clip_grad_norm_(
                    model.parameters(), 1.0  # as in the paper
                )
            elif how == "value":
                nn.utils.clip_grad_value_(model.parameters(), 0.1)
            scaler.step(optim)
            scaler.update()
        """
    after = """\
        import torch
        from torch import nn

        def step(model, loss, optim, scaler, how):
            scaler.scale(loss).backward()
            if how == "norm":
                scaler.unscale_(optim)
                total = nn.utils.clip_grad_norm_(
                    model.parameters(), 1.0  # as in the paper
                )
            elif how == "value":
                scaler.unscale_(optim)
                nn.utils.clip_grad_value_(model.parameters(), 0.1)
            scaler.step(optim)
            scaler.update()
        """
    assert fixed("DT203", before) == dedent(after)


def test_two_clips_in_a_row_need_one_unscale() -> None:
    text = """\
        import torch
        def step(a, b, loss, optimizer, scaler):
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm_(a.parameters(), 1.0)
            torch.nn.utils.clip_grad_norm_(b.parameters(), 1.0)
            scaler.step(optimizer)
        """
    assert [item.fix is not None for item in found("DT203", text)] == [True, False]
    assert fixed("DT203", text).count("scaler.unscale_(optimizer)") == 1


@pytest.mark.parametrize(
    "end",
    [
        "    if (i + 1) % 4 == 0:\n            scaler.step(optimizer)",
        "    scaler.step(first)\n        scaler.step(second)",
        "    scaler.step(optimizers[0])",
    ],
    ids=["step is rarer than clip", "two optimizers", "no name"],
)
def test_no_unscale_where_it_is_not_clear_what_is_stepped(end: str) -> None:
    text = (
        "import torch\n"
        "def train(model, loader, optimizer, scaler, first, second, optimizers, finish):\n"
        "    for i, x in enumerate(loader):\n"
        "        scaler.scale(model(x)).backward()\n"
        "        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n"
        f"    {end}\n"
    )
    assert [item.fix for item in found("DT203", text)] == [None]


def test_an_unscale_that_stands_behind_the_clip_is_not_called_twice() -> None:
    text = """\
        import torch
        def train(model, loader, optimizer, scaler: torch.amp.GradScaler):
            for x in loader:
                scaler.scale(model(x).sum()).backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
        """
    assert [item.fix for item in found("DT203", text)] == [None]


@pytest.mark.parametrize(
    "between",
    [
        "scaler.unscale_(optimizer)",
        "if amp:\n        scaler.unscale_(optimizer)",
        "prepare(scaler, optimizer)",
        "limit = limit * scaler.get_scale()",
        "scaler.step(optimizer)",
        "finish()",
    ],
)
def test_gradients_that_may_be_unscaled_are_not_judged(between: str) -> None:
    text = f"""\
import torch
scaler = torch.amp.GradScaler("cuda")
def finish():
    scaler.unscale_(optimizer)
def step(self, model, loss, optimizer, limit, amp, prepare):
    scaler.scale(loss).backward()
    {between}
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
"""
    assert found("DT203", text) == []


def test_the_old_name_of_clip_grad_norm_is_known() -> None:
    text = """\
        import torch
        def step(loss, p, o, scaler):
            scaler.scale(loss).backward()
            torch.nn.utils.clip_grad_norm(p, 1.0)
            scaler.step(o)
        """
    (item,) = found("DT203", text)
    assert item.help == "Call `scaler.unscale_(o)` before"


@pytest.mark.parametrize(
    ("made", "scale"),
    [
        ("torch.cuda.amp.GradScaler()", ", by 65536 at first"),
        ("torch.amp.GradScaler('cuda', 2.0**8)", ", by 256 at first"),
        ("torch.cuda.amp.GradScaler(init_scale=1024)", ", by 1024 at first"),
        ("torch.amp.GradScaler('cuda', init_scale=given)", ""),
        ("torch.amp.GradScaler('cuda', **given)", ""),
        ("given", ""),
    ],
)
def test_a_clip_of_scaled_gradients_names_the_scale_where_it_is_known(made: str, scale: str) -> None:
    text = f"""\
import torch
def step(loss, p, o, given):
    scaler = {made}
    scaler.scale(loss).backward()
    torch.nn.utils.clip_grad_norm_(p, 1.0)
    scaler.step(o)
"""
    (item,) = found("DT203", text)
    assert item.message == f"Gradients are clipped while scaled{scale}: nearly every step is clipped"


@pytest.mark.parametrize(
    ("beside", "conditional"), [("pass", True), ('torch.autocast("cpu", dtype=torch.bfloat16)', False)]
)
def test_autocast_off_for_cuda_needs_an_autocast_of_another_device(beside: str, conditional: bool) -> None:
    (diagnostic,) = found(
        "DT208",
        f"""
        import torch

        def normalized(x, weight):
            with torch.autocast("cuda", enabled=False):
                return x.float() @ weight.float()

        def run(model, x, weight):
            {beside}
            return normalized(x, weight)
        """,
    )
    assert diagnostic.conditional is conditional
