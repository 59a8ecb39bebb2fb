"""Legacy constructors that are told a device, softmax of a cast to half, operands that a
setting casts, and autocast for CUDA in programs that fall back to the CPU, as people write them, and right code.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

from dtlint import Severity

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
BENCH = Bench("DT208", "DT502", HEAD)

BAD = {
    "DT301": (
        """
        class Attention(nn.Module):
            def forward(self, x):
                q, k, v = self.to_qkv(x).chunk(3, dim=-1)
                dtype = q.dtype
                if options.upcast:
                    q, k = q.float(), k.float()
                out = F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v)  # <-
                return out.to(x.dtype)
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query = query.to(torch.float32)
            return torch.matmul(query, key.transpose(-1, -2)).to(value.dtype)  # <-
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()  # <-
        """,
    ),
    "DT502": (
        """
        def pad(batch, device=None):
            lengths = [len(row) for row in batch]
            return torch.LongTensor(lengths, device=device)  # <-
        """,
        """
        from torch import FloatTensor

        class Dropped(nn.Module):
            def forward(self, x):
                kept = FloatTensor([self.rate], device=x.device)  # <-
                empty = torch.HalfTensor(x.shape[0], 3, device=self.device)  # <-
                return x * kept, empty
        """,
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def rows(ids):
            return torch.IntTensor(
                ids,  # of the batch
                device=device,
            )
        """.replace("return torch.IntTensor(", "return torch.IntTensor(  # <-"),
        """
        def ones(n):
            if torch.cuda.is_available():
                return torch.Tensor([1.0] * n, device="cuda")  # <-
            return torch.cuda.FloatTensor([1.0] * n, device="cpu")  # <-
        """,
        """
        import torch as th

        def weights(rows, columns, device=None):
            if device is None:
                device = th.device("cpu")
            return th.FloatTensor(rows, columns, device=device)  # <-
        """,
    ),
    "DT409": (
        """
        class Attention(nn.Module):
            def forward(self, scores, values):
                weights = self.softmax(scores.bfloat16(), dim=-1)  # <-
                return torch.matmul(weights, values)
        """,
        """
        def attend(backend, scores):
            first = backend.log_softmax(scores.to(torch.float16), 1)  # <-
            return first, F.softmax(scores.half(), -1)  # <-
        """,
        """
        def attend(x):
            return x.half().softmax(-1), torch.softmax(x.to(dtype=torch.bfloat16), 1)  # <-
        """,
    ),
    "DT208": (
        """
        def main(model, loader):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            model.to(device)
            for images in loader:
                images = images.to(device)
                with torch.autocast(device_type="cuda", dtype=torch.bfloat16):  # <-
                    loss = model(images)
                loss.backward()
        """,
        """
        import contextlib
        import torch.distributed as dist

        def start():
            torch.cuda.set_device(dist.get_rank())

        def main(model, batch, waits):
            device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
            context = model.no_sync() if waits else contextlib.nullcontext()
            with torch.cuda.amp.autocast():  # <-
                with context:
                    return model(batch.to(device, non_blocking=True))
        """,
    ),
}
GOOD = {
    "DT301": (
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key, value = query.float(), key.float(), value.float()
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            if upcast:
                value = value.float()
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            dtype = value.dtype
            if upcast:
                query, key = query.float(), key.float()
            query, key = query.to(dtype), key.to(dtype)
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
                value = value.to(query.dtype)
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if query.dtype != value.dtype:
                query, key = query.float(), key.float()
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            if not upcast:
                return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
            return slow(query, key, value).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            return F.scaled_dot_product_attention(query, key, value.to(query.dtype)).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
                return slow(query, key, value)
            return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            else:
                query = query.half()
                return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
            return slow(query, key, value)
        """,
        """
        def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, upcast: bool) -> torch.Tensor:
            if upcast:
                query, key = query.float(), key.float()
            with torch.autocast(query.device.type):
                return F.scaled_dot_product_attention(query, key, value).to(query.dtype).half()
        """,
        """
        class Stem(nn.Module):
            def forward(self, image):
                if image.max() > 1:
                    image = image.float() / 255
                return F.conv2d(image, self.weight).half()
        """,
        """
        def mixed(image: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
            if not torch.is_floating_point(image):
                image = image.float()
            return F.conv2d(image, kernel).half()
        """,
        """
        def mixed(image: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
            if isinstance(image, torch.ByteTensor) or image.max() > 1:
                image = image.float()
            return F.conv2d(image, kernel).to(kernel.dtype)
        """,
    ),
    "DT502": (
        """
        def pad(batch, device=None):
            lengths = [len(row) for row in batch]
            on_cpu = torch.LongTensor(lengths, device="cpu"), torch.LongTensor(lengths, device=None)
            return on_cpu, torch.tensor(lengths, device=device), torch.LongTensor(lengths).to(device=device)
        """,
        """
        def rows(ids):
            device = torch.device("cpu")
            return torch.FloatTensor(ids, device=device), torch.IntTensor(ids, device=torch.device("cpu"))
        """,
        """
        HOST = "cpu"

        def rows(ids):
            return torch.FloatTensor(ids, device=HOST)
        """,
        """
        def rows(ids, device):
            if device.type == "cpu":
                return torch.FloatTensor(ids, device=device)
            return torch.cuda.FloatTensor(ids, device=device)
        """,
        """
        def rows(ids, device):
            try:
                return torch.FloatTensor(ids, device=device)
            except RuntimeError:
                return torch.tensor(ids, dtype=torch.float32, device=device)
        """,
        """
        import pytest

        def test_raises():
            with pytest.raises(RuntimeError):
                torch.LongTensor([1], device="cuda")
        """,
        """
        def rows(ids, options):
            return torch.LongTensor(ids, **options), torch.cuda.LongTensor(ids, device="cuda:1")
        """,
        """
        torch.set_default_tensor_type("torch.cuda.FloatTensor")

        def rows(numbers):
            return torch.Tensor(numbers, device="cuda")
        """,
        """
        from frames import LongTensor

        def rows(ids, device):
            return LongTensor(ids, device=device), ids.new_tensor([1], device=device)
        """,
        """
        def rows(ids, device):
            return torch.tensor(ids, device=device) if device != "cpu" else torch.LongTensor(ids, device=device)
        """,
    ),
    "DT409": (
        """
        class Attention(nn.Module):
            def forward(self, scores, values):
                return self.softmax(scores.float(), dim=-1).bfloat16(), self.act(scores.half())
        """,
        """
        def attend(backend, x):
            return backend.softmax(x.half(), dim=-1, dtype=torch.float32), backend.softmax(x.half(), -1, torch.float32)
        """,
        """
        def attend(backend, x):
            return backend.softmax(x.to(torch.float32), -1).half(), backend.softmax(x.half().float(), -1)
        """,
        """
        def attend(backend, x, mask):
            return backend.softmax(x, mask.half()), backend.softmax(x.double(), -1)
        """,
        """
        def attend(backend, x):
            return backend.softmax(x.to(torch.int8), -1), backend.sigmoid(x.half())
        """,
        """
        def attend(backend, x, device):
            return backend.softmax(x.to(device), -1), backend.softmax(half(x), -1)
        """,
    ),
    "DT208": (
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def main(model, images):
            assert torch.cuda.is_available(), "needs a GPU"
            with torch.autocast("cuda"):
                return model(images.to(device))
        """,
        """
        import unittest

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        @unittest.skipIf(not torch.cuda.is_available(), "needs a GPU")
        def test_model(model, images):
            with torch.autocast("cuda"):
                return model(images.to(device))
        """,
        """
        def main(model, images, half):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            images = images.to(device)
            if half:
                with torch.autocast("cuda"):
                    return model(images)
            return model(images)
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
                return model(images.to(device))
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            with torch.autocast("cuda", enabled=device.type == "cuda"):
                return model(images.to(device))
        """,
        """
        import contextlib

        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            with torch.autocast("cuda") if device.type == "cuda" else contextlib.nullcontext():
                return model(images.to(device))
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            images = images.to(device)
            if device.type != "cuda":
                return model(images)
            with torch.autocast("cuda"):
                return model(images)
        """,
        """
        def main(model, images):
            device = torch.device("cuda")
            with torch.autocast("cuda"):
                return model(images.to(device))
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            scaler = torch.amp.GradScaler()
            with torch.autocast("cuda"):
                return scaler.scale(model(images.to(device)))
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
            with torch.autocast("cuda"):
                out = model(images.to("cuda"))
            return out.to(device)
        """,
        """
        def main(model, images):
            device = torch.device("cuda" if torch.cuda.is_available() else "mps")
            with torch.autocast("cuda"):
                out = model(images.to(device))
            torch.cuda.synchronize()
            return out
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


@pytest.mark.parametrize(
    ("given", "severity"),
    [
        ("'cuda'", Severity.ERROR),
        ("torch.device('cuda', 0)", Severity.ERROR),
        ("0", Severity.ERROR),
        ("device", Severity.WARNING),
        ("'cuda' if torch.cuda.is_available() else 'cpu'", Severity.WARNING),
    ],
)
def test_a_device_that_is_written_out_is_certain_to_raise(given: str, severity: Severity) -> None:
    text = f"def rows(ids, device):\n    return torch.LongTensor(ids, device={given})\n"
    assert [found.severity for found in BENCH.found("DT502", text)] == [severity]


@pytest.mark.parametrize(
    ("made", "fixed"),
    [
        ("torch.LongTensor(ids, device=device)", "torch.tensor(ids, device=device, dtype=torch.int64)"),
        ("torch.FloatTensor([0.5, 1], device=device)", "torch.tensor([0.5, 1], device=device, dtype=torch.float32)"),
        ("torch.FloatTensor(3, 4, device=device)", "torch.FloatTensor(3, 4, device=device)"),
        ("torch.FloatTensor(ids, device=device)", "torch.FloatTensor(ids, device=device)"),
    ],
)
def test_a_constructor_of_data_becomes_a_tensor_of_its_dtype(made: str, fixed: str) -> None:
    text = "def rows(ids, device):\n    return {}\n"
    assert BENCH.fixed("DT502", text.format(made)) == text.format(fixed)
