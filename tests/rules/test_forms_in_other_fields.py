"""Code of speech, kernels, quantization and course books that is right, and the bugs it is near to.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT103": (
        """
        def narrow():
            weight = torch.randn(4, 4)
            return weight.view(2, 8).to(torch.int8)  # <-
        """,
    ),
    "DT115": (
        """
        def rotary(length, dim):
            angles = torch.outer(torch.arange(length).float(), torch.ones(dim))
            turns = torch.polar(torch.ones_like(angles), angles)
            return turns[:, : dim // 2].contiguous().half()  # <-
        """,
    ),
    "DT313": (
        """
        def save(path):
            tensor = torch.randn(3, 4, dtype=torch.bfloat16)
            path.write_bytes(tensor.view(-1).numpy().tobytes())  # <-
        """,
    ),
}

GOOD = {
    "DT103": (
        """
        def exponents(x: Tensor):
            assert x.dtype == torch.float32
            return (x.view(torch.int32) >> 23).to(torch.uint8)  # the bits of the float, and no float
        """,
    ),
    "DT115": (
        """
        def rotary(length, dim):
            angles = torch.outer(torch.arange(length).float(), torch.ones(dim))
            turns = torch.polar(torch.ones_like(angles), angles)
            return turns[:, : dim // 2].real.contiguous().half(), turns.imag.contiguous().half()
        """,
    ),
    "DT313": (
        """
        def save(path):
            tensor = torch.randn(3, 4, dtype=torch.bfloat16)
            path.write_bytes(tensor.view(torch.int16).numpy().tobytes())
            path.write_bytes(tensor.view(dtype=torch.int16).numpy().tobytes())
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)
