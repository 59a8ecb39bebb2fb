"""Forms of bugs of indices, masks, NumPy arrays and devices, as people write them, and right code that is like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench, cases, marked

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n"
BENCH = Bench("DT306", "DT510", HEAD)

BAD = {
    "DT306": (
        """
        def subset(state, size):
            perm = torch.randperm(
                state.A.shape[0],
                dtype=state.A.dtype,  # <-
                device=state.A.device,
            )
            chosen = perm[0:size]
            return state.action[chosen]
        """,
        """
        def shuffled(x):
            order = torch.randperm(len(x), dtype=torch.float32)  # <-
            return x[order], x[:, order]
        """,
        """
        from flash_attn import flash_attn_varlen_func

        def packed(q, k, v, lengths):
            cu_seqlens = F.pad(torch.cumsum(lengths, dim=0), (1, 0))  # <-
            return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, int(lengths.max()), int(lengths.max()))
        """,
        """
        class FlashBatch:
            def prefill(self):
                self.cu_seqlen_prefill = torch.nn.functional.pad(
                    self.input_lengths.cumsum(0),  # <-
                    (1, 0),
                )
        """,
    ),
    "DT308": (
        """
        def leave_one_out(x):
            masks = torch.eye(x.shape[-2], dtype=torch.uint8, device=x.device)  # <-
            return torch.cat([x[..., ~row, :].unsqueeze(-3) for row in masks])
        """,
        """
        def keep_some(boxes, count):
            keep = torch.zeros(len(boxes), dtype=torch.uint8)  # <-
            keep[:count] = 1
            return boxes[keep]
        """,
        """
        def erase(x, valid):
            hidden = torch.ones_like(valid, dtype=torch.uint8)  # <-
            x[:, hidden] = 0
            return x
        """,
    ),
    "DT311": (
        """
        def whiten(x: torch.Tensor, n: int) -> torch.Tensor:
            r = torch.randn(n, x.shape[-1], device=x.device, dtype=x.dtype)
            gram = torch.matmul(r, r.t())
            return gram.cholesky().to(torch.float32).cholesky_inverse().to(x.dtype)  # <-
        """,
        """
        def solve(x: torch.Tensor, n: int) -> torch.Tensor:
            system = torch.eye(n, device=x.device, dtype=x.dtype)
            inverse = torch.linalg.inv(system).float().to(dtype=x.dtype)  # <-
            return inverse @ x
        """,
    ),
    "DT312": (
        """
        def export(path, keep):
            transform = None
            if not keep:
                transform = np.eye(4)[:3, :]
                transform = transform[np.array([0, 2, 1]), :]
                transform[2, :] *= -1
            write(path, torch.from_numpy(transform) if transform is not None else None)  # <-
        """,
        """
        class Scene:
            def __init__(self, width):
                self.window = torch.tensor(np.hanning(width)).unsqueeze(0)  # <-
        """,
        """
        def filters(bands, bins):
            bank = np.zeros((bands, bins))
            bank[0, :3] = 1.0
            return torch.as_tensor(bank)  # <-
        """,
    ),
    "DT313": (
        """
        def to_numpy(value):
            if isinstance(value, np.ndarray):
                return value
            elif isinstance(value, (torch.Tensor, torch.nn.Parameter)):
                return value.detach().cpu().numpy()  # <-
            return np.array(value)
        """,
        """
        def tensor2ndarray(value):
            if not torch.is_tensor(value):
                return np.asarray(value, dtype=object)
            return value.cpu().numpy()  # <-
        """,
        """
        def _convert_to_wandb_image(image, channels_last):
            if isinstance(image, torch.Tensor) and image.ndim == 3:
                image = image.data.cpu().numpy()  # <-
            return image if channels_last else image.transpose(1, 2, 0)
        """,
    ),
    "DT314": (
        """
        def to_torch(x, dtype=None, device="cpu"):
            if isinstance(x, np.ndarray):
                x = torch.from_numpy(x).to(device)  # <-
                if dtype is not None:
                    x = x.type(dtype)
            return x
        """,
        """
        def as_tensor(values, device, dtype):
            return torch.as_tensor(values).to(device).to(dtype)  # <-
        """,
    ),
    "DT510": (
        """
        KINDS = {4: np.int32, 5: np.int64, 6: np.float, 7: np.double}  # <-
        """,
        """
        import numpy

        def load(rows):
            means = numpy.array(rows).astype(numpy.float)  # <-
            return torch.as_tensor(means, dtype=torch.float32)
        """,
        """
        def cells(points, size):
            inside = np.zeros(len(points), dtype=np.bool)  # <-
            return inside, np.round(points / size).astype(np.int)  # <-
        """,
        """
        def is_float(kind):
            return np.issubdtype(kind, np.float_) or kind is np.bool8  # <-
        """,
    ),
}
GOOD = {
    "DT306": (
        """
        def subset(x, indices):
            perm = torch.randperm(len(x), dtype=indices.dtype)
            return x[perm]
        """,
        """
        def noise(x):
            ranks = torch.randperm(len(x), dtype=x.dtype)
            return x * ranks
        """,
        """
        def shuffled(x):
            order = torch.randperm(len(x), dtype=torch.int32, device=x.device)
            return x[order]
        """,
        """
        from flash_attn import flash_attn_varlen_func

        def packed(lengths):
            cu_seqlens = F.pad(torch.cumsum(lengths, dim=0, dtype=torch.int32), (1, 0))
            cu_seqlens_q = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
            cu_seqlens_k = torch.cumsum(lengths, dim=0)
            cu_seqlens_k = F.pad(cu_seqlens_k, (1, 0), value=0).to(dtype=torch.int32)
            return cu_seqlens, cu_seqlens_q, cu_seqlens_k
        """,
        """
        def offsets(lengths):
            cu_seqlens = F.pad(torch.cumsum(lengths, dim=0), (1, 0))
            return cu_seqlens
        """,
    ),
    "DT308": (
        """
        def draw(boxes, height, width):
            image = torch.zeros(height, width, dtype=torch.uint8)
            for top, left in boxes:
                image[top, left] = 255
            return image
        """,
        """
        def keep_some(boxes, count):
            keep = torch.zeros(len(boxes), dtype=torch.bool)
            keep[:count] = True
            return boxes[keep], boxes[~keep]
        """,
        """
        def keep_some(boxes, count):
            keep = torch.zeros(len(boxes), dtype=torch.uint8)
            keep[:count] = 1
            keep = keep.bool()
            return boxes[keep]
        """,
    ),
    "DT311": (
        """
        def whiten(x: torch.Tensor, n: int) -> torch.Tensor:
            r = torch.randn(n, x.shape[-1], device=x.device, dtype=x.dtype)
            gram = torch.matmul(r, r.t())
            return gram.to(torch.float32).cholesky().cholesky_inverse().to(x.dtype)
        """,
        """
        def inverse(covariance: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(covariance).float()
        """,
        """
        def inverse(x: torch.Tensor, covariance: torch.Tensor) -> torch.Tensor:
            return torch.linalg.inv(covariance.double()).float().to(x.dtype)
        """,
    ),
    "DT312": (
        """
        def export(path):
            write(path, torch.from_numpy(np.eye(4)).float())
            write(path, torch.from_numpy(np.eye(4, dtype=np.float32)), torch.tensor(np.ones((3,), np.float32)))
        """,
        """
        def export(path):
            write(path, torch.from_numpy(np.eye(4)).to(torch.float64))
        """,
        """
        def export(path, transform):
            if transform is None:
                transform = np.eye(4)
            else:
                transform = read(transform)
            write(path, torch.from_numpy(transform))
        """,
        """
        def counts(width):
            window = torch.from_numpy(np.hanning(width))
            window = window.float()
            return window
        """,
    ),
    "DT313": (
        """
        def to_numpy(value):
            if isinstance(value, torch.Tensor):
                if value.dtype == torch.bfloat16:
                    value = value.float()
                return value.detach().cpu().numpy()
            return np.array(value)
        """,
        """
        def to_numpy(value):
            if isinstance(value, torch.Tensor):
                return value.detach().float().cpu().numpy()
            return np.array(value)
        """,
        """
        def to_numpy(labels):
            if isinstance(labels, torch.Tensor):
                return labels.cpu().numpy()
            return np.array(labels)
        """,
        """
        def to_numpy(tensor):
            return tensor.detach().cpu().numpy() if tensor.requires_grad else tensor.cpu().numpy()
        """,
        """
        import pytest

        def to_numpy(value):
            return value.cpu().numpy() if isinstance(value, torch.Tensor) else value
        """,
    ),
    "DT314": (
        """
        def to_torch(x, dtype=None, device="cpu"):
            x = torch.from_numpy(x)
            if dtype is not None:
                x = x.type(dtype)
            return x.to(device)
        """,
        """
        def image_to(image, device, dtype):
            return torch.from_numpy(image).to(device, dtype=dtype), torch.from_numpy(image).to(device).float() / 255
        """,
    ),
    "DT510": (
        """
        import jax.numpy as np

        def cells(points):
            return points.astype(np.float)
        """,
        """
        np.float = float

        def load(rows):
            return np.array(rows, dtype=np.float)
        """,
        """
        def whole(x):
            try:
                kind = np.int
            except AttributeError:
                kind = int
            return x.astype(kind), np.int_(3), np.float32(x), x.float(), np.random.long
        """,
    ),
}


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_flagged_where_it_says(code: str, text: str) -> None:
    assert BENCH.flagged(code, text) == marked(BENCH.source(text))


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_good_code_is_left_alone(code: str, text: str) -> None:
    assert BENCH.found(code, text) == []


def test_the_offsets_are_summed_in_int32() -> None:
    before = "# for flash\nflash = True\ncu_seqlens = F.pad(lengths.cumsum(0), (1, 0))\n"
    assert "lengths.cumsum(0, dtype=torch.int32), (1, 0))" in BENCH.fixed("DT306", before)


@pytest.mark.parametrize(
    ("alias", "now"),
    [
        ("np.float", "float"),
        ("np.bool", "np.bool_"),
        ("np.long", "int"),
        ("np.float_", "np.float64"),
        ("np.int0", "np.intp"),
    ],
)
def test_an_alias_becomes_what_it_stood_for(alias: str, now: str) -> None:
    assert BENCH.fixed("DT510", f"x = np.zeros(3, dtype={alias})\n").endswith(f"x = np.zeros(3, dtype={now})\n")


def test_an_alias_is_not_written_as_what_the_file_means_something_else_by() -> None:
    text = "from mytypes import float\nx = np.zeros(3, dtype=np.float)\n"
    assert BENCH.fixed("DT510", text).endswith(text)
