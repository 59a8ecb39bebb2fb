"""Casts whose result is lost, and casts that lose whole numbers, fractions or a dtype; and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT104": (
        """
        class GroupNorm32(nn.GroupNorm):
            def forward(self, x):
                self.weight.to(torch.float32)  # <-
                self.bias.to(torch.float32)  # <-
                return super().forward(x.float()).type(x.dtype)
        """,
        """
        class Frozen(nn.BatchNorm2d):
            def freeze(self, dtype):
                self.running_mean.half()  # <-
                self.weight.data.to(dtype)  # <-
                self.weight.requires_grad_(False)
        """,
        """
        def convert(layernorm, module):
            layernorm.weight.float()  # <-
            module.attn.proj.bias.data.half()  # <-
        """,
    ),
}

GOOD = {
    "DT104": (
        """
        class Scaled(nn.Linear):
            def __init__(self, width):
                super().__init__(width, width)
                self.weight = make_module(width)

            def prepare(self):
                self.weight.float()
        """,
        """
        class Head(Base):
            def prepare(self):
                self.weight.half()
        """,
        """
        class GroupNorm32(nn.GroupNorm):
            def forward(self, x):
                self.weight.to(x.device)
                self.weight.data = self.weight.data.float()
                return F.group_norm(x.float(), self.num_groups, self.weight.float(), self.bias.float())
        """,
        """
        def convert(model, batch):
            model.encoder.half()
            batch.data.to("cuda")
        """,
    ),
}

test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


def test_a_parameter_is_not_assigned_its_cast() -> None:
    text = """
    class Norm(nn.LayerNorm):
        def forward(self, x):
            self.weight.float()
            return super().forward(x)
    """
    assert BENCH.fixed("DT104", text).strip() == BENCH.source(text).text.removeprefix(BENCH.head).strip()
