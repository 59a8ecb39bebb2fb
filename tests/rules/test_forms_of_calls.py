"""Forms of calls that raise, or do something else than they say, and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench, cases, marked

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT201": (
        """
        class Trainer:
            def train(self, batches):
                for x in batches:
                    with self.accelerator.autocast():
                        loss = self.model(x)
                        self.accelerator.backward(loss)  # <-
        """,
        """
        def train(model, batches, fabric, accelerator):
            for x in batches:
                with accelerator.accumulate(model), accelerator.autocast():
                    accelerator.backward(model(x).mean())  # <-
                with torch.autocast("cuda", dtype=torch.bfloat16):
                    loss = model(x)
                    fabric.backward(loss)  # <-
        """,
    ),
    "DT218": (
        """
        from torch.cuda.amp import GradScaler, autocast

        scaler = GradScaler("cuda")  # <-

        def attend(q, k, enabled):
            with autocast(q.device.type, enabled=enabled):  # <-
                return q @ k.mT
        """,
        """
        def attend(q: Tensor, device):
            with torch.cuda.amp.autocast(device, dtype=torch.float16):  # <-
                q = q @ q.mT
            with torch.cpu.amp.autocast(torch.bfloat16):  # <-
                q = q @ q.mT
            with torch.cuda.amp.autocast("cuda" if q.is_cuda else "cpu"):  # <-
                q = q @ q.mT
            with torch.cuda.amp.autocast(device_type="cuda"):  # <-
                return q @ q.mT
        """,
        """
        def attend(q: Tensor, amp):
            with torch.autocast("cuda", False):  # <-
                q = q @ q.mT
            with torch.amp.autocast(enabled=amp):  # <-
                q = q @ q.mT
            with torch.amp.autocast(True):  # <-
                return q @ q.mT, torch.amp.GradScaler(False)  # <-
        """,
    ),
}

GOOD = {
    "DT201": (
        """
        def train(model, batches, accelerator, fabric, engine):
            for x in batches:
                with accelerator.autocast():
                    loss = model(x)
                accelerator.backward(loss)
                with accelerator.autocast(AutocastKwargs(enabled=False)):
                    accelerator.backward(loss)
                with accelerator.autocast():
                    with torch.autocast("cuda", enabled=False):
                        accelerator.backward(model(x))
                with fabric.autocast():
                    accelerator.backward(loss)
                with torch.autocast("cuda", dtype=torch.float16):
                    engine.backward(loss)
        """,
    ),
    "DT218": (
        """
        from torch.cuda.amp import GradScaler, autocast

        def attend(q: Tensor, amp, use_device, dtype):
            scaler = GradScaler(2.0**14, enabled=amp)
            with autocast(amp, dtype), autocast(False), autocast(use_device):
                q = q @ q.mT
            with torch.autocast("cuda", torch.float16, False), torch.autocast(q.device.type, enabled=amp):
                return q @ q.mT, scaler, torch.amp.GradScaler(q.device.type, enabled=amp), torch.amp.GradScaler()
        """,
        """
        try:
            from torch.amp import GradScaler
        except ImportError:
            from torch.cuda.amp import GradScaler

        scaler = GradScaler("cuda")
        """,
    ),
}


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_flagged_where_the_arrows_stand(code: str, text: str) -> None:
    assert BENCH.flagged(code, text) == marked(BENCH.source(text))


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_right_code_is_left_alone(code: str, text: str) -> None:
    assert BENCH.flagged(code, text) == []


def test_what_tells_the_device_already_is_only_renamed() -> None:
    text = "def f(x, on):\n    with torch.cuda.amp.autocast(x.device.type, enabled=on):\n        return x\n"
    assert "torch.amp.autocast(x.device.type, enabled=on)" in BENCH.fixed("DT501", text)
