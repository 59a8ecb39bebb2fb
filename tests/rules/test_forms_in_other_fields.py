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
    "DT117": (
        """
        def load(tensor, device, dtype=None):
            if dtype is None:
                tensor = tensor.to(dtype, non_blocking=True)  # <-
            return tensor.to(device)
        """,
    ),
    "DT301": (
        """
        def attend(q, k, v):
            dtype = q.dtype
            q, k = map(lambda x: x.transpose(1, 2).float(), (q, k))
            scores = (q @ k.mT).float().softmax(-1)
            return (scores @ v).to(dtype)  # <-
        """,
    ),
    "DT302": (
        """
        class Encoder(nn.Module):
            def forward(self, sound):
                features = self.feature_extractor(sound, return_tensors="pt")
                return self.model(features.input_features.to(self.device()), features.attention_mask)  # <-

            def quiet(self):
                return self.model.half()
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
    "DT117": (
        """
        def move(tensor, device, dtype=None, non_blocking=False):
            if dtype is not None:
                return tensor.dequantize().to(device, dtype)
            return tensor.to(device, dtype, non_blocking)  # to the device, and no cast
        """,
    ),
    "DT301": (
        """
        def attend(q, k, v, chunk):
            dtype = q.dtype
            q, k, v = map(lambda x: x.transpose(1, 2).float(), [q, k, v])
            q, k, v = map(lambda x: rearrange(x, "b (n c) d -> b n c d", c=chunk), [q, k, v])
            scores = (q @ k.mT).float().softmax(-1)
            return (scores @ v).to(dtype)
        """,
    ),
    "DT302": (
        """
        class Encoder(nn.Module):
            def forward(self, sound):
                features = self.feature_extractor(sound, return_tensors="pt")
                return self.model(features.input_features.to(self.model_dtype()), features.attention_mask)

            def quiet(self):
                return self.model.half()
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
