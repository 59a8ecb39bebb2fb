"""Tensors that meet others of another dtype, or whose dtype is not what they are used for, and right code that looks alike.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

HEAD = """\
import math
import time
from typing import Optional, Tuple
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT112": (
        """
        class Convolution(nn.Module):
            def forward(self, x, pad_mask=None):
                if pad_mask is not None:
                    x = x.float().masked_fill(pad_mask.unsqueeze(1), 0.0)  # <-
                x = self.depthwise_conv(x)
                return x
        """,
        """
        class Gated(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.up = nn.Linear(width, width)

            def forward(self, x, keep=None):
                if keep is not None:
                    x = x.to(torch.float32) * keep[:, None]  # <-
                return self.up(x)
        """,
    ),
    "DT121": (
        """
        def timed(step):
            start = time.time()
            step()
            took = time.time() - start
            return torch.tensor([took], dtype=torch.uint8)  # <-
        """,
        """
        def timed(step):
            start = time.perf_counter()
            step()
            return torch.tensor(time.perf_counter() - start, dtype=torch.long)  # <-
        """,
        """
        def depths(n: int):
            return torch.full((n,), math.log(n), dtype=torch.int32)  # <-
        """,
    ),
    "DT304": (
        """
        def root(x: Tensor):
            chol = torch.linalg.cholesky(x)
            eye = torch.eye(chol.size(-1), device=chol.device)  # <-
            return torch.triangular_solve(eye, chol)[0]
        """,
        """
        def inverse(matrix: Tensor):
            return torch.linalg.solve(matrix, torch.eye(matrix.shape[-1], device=matrix.device))  # <-
        """,
        """
        def percentiles(x: Tensor, q):
            q = torch.tensor(q, device=x.device)  # <-
            return torch.quantile(x, q / 100.0)
        """,
        """
        def quartiles(x: Tensor):
            return x.quantile(torch.tensor([0.25, 0.75], device=x.device), dim=0)  # <-
        """,
        """
        def products(x: Tensor, y: Tensor):
            n, d = x.shape
            out = torch.zeros(n, n * d)  # <-
            ones = torch.ones(n, d, dtype=out.dtype, device=out.device)
            return torch.matmul(x.transpose(-2, -1), ones)
        """,
    ),
    "DT305": (
        """
        def ban(scores: Tensor, banned):
            for i in range(scores.shape[0]):
                scores[i][torch.tensor(list(banned[i])).long()] = torch.tensor(-math.inf, dtype=torch.float)  # <-
            return scores
        """,
        """
        def mark(x: Tensor):
            x[:, [0, 2]] = torch.tensor(1.0, device=x.device)  # <-
            return x
        """,
    ),
    "DT306": (
        """
        def select(scores: Tensor, spans):
            kept = []
            for i, span in enumerate(spans):
                if span.known:
                    kept.append(i)
            return torch.index_select(scores, 0, torch.tensor(kept, device=scores.device))  # <-
        """,
        """
        def select(x: Tensor, flags):
            keep = torch.tensor([i for i, flag in enumerate(flags) if flag])  # <-
            return x[keep, :]
        """,
        """
        def from_graph(graph):
            return torch.tensor(list(graph.edges)).t().contiguous()  # <-
        """,
    ),
    "DT308": (
        """
        def forward(self, ids, pad):
            return self.model(ids, ~self.padding_mask(ids, pad).type(torch.long))  # <-
        """,
        """
        def kept(batch):
            return ~batch["attention_mask"].long()  # <-
        """,
    ),
    "DT312": (
        """
        def weighted(logits: Tensor, weights: Optional[Tensor] = None):
            if weights is None:
                weights = np.ones(logits.shape[-2])  # <-
            return (torch.softmax(logits, dim=-1).sum(-1) * weights).sum()
        """,
        """
        def total(logits: Tensor, weights: "torch.Tensor | None" = None):
            weights = np.full(logits.shape[-1], 0.5) if weights is None else weights  # <-
            return torch.sum(weights)
        """,
    ),
    "DT313": (
        """
        class Attention(nn.Module):
            def forward(self, scores, mask):
                least = float(np.finfo(torch.tensor(0, dtype=scores.dtype).numpy().dtype).min)  # <-
                return scores.masked_fill(mask, least)
        """,
        """
        def largest(x):
            return np.finfo(np.asarray(torch.zeros(1, dtype=x.dtype)).dtype).max  # <-
        """,
    ),
    "DT416": (
        """
        def keys(edges: Tuple[torch.Tensor, torch.Tensor]):
            "Of the edges, in int32, a key for each."
            return edges[0] << 32 | edges[1]  # <-
        """,
        """
        def keys(src_int32: Tensor, dst: Tensor):
            return (src_int32 << 32) + dst  # <-
        """,
    ),
}

GOOD = {
    "DT112": (
        """
        class Gated(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.up, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

            def cast_at_once(self, x, mask=None):
                if mask is not None:
                    x = x.float().masked_fill(mask, 0.0).type_as(x)
                return self.up(x)

            def cast_below(self, x, mask=None):
                dtype = x.dtype
                if mask is not None:
                    x = x.float().masked_fill(mask, 0.0)
                    x = x.to(dtype)
                return self.up(x)

            def cast_at_the_layer(self, x, mask=None):
                if mask is not None:
                    x = x.float().masked_fill(mask, 0.0)
                return self.up(x.to(self.up.weight.dtype))

            def on_purpose(self, x):
                if self.upcast:
                    x = x.float() * 2
                return self.up(x)
        """,
    ),
    "DT121": (
        """
        def whole(n: int, start, end):
            begun = time.time()
            return (
                torch.tensor(int(time.time()), dtype=torch.long),
                torch.tensor(time.time(), dtype=torch.int64),
                torch.tensor([math.ceil(math.log(n)), math.sqrt(n)], dtype=torch.long),
                torch.tensor([end - start], dtype=torch.long),
                torch.tensor([(time.time() - begun) * 1000], dtype=torch.long),
                torch.tensor([time.time() - begun], dtype=torch.float64),
            )
        """,
    ),
    "DT304": (
        """
        def told(x: Tensor, q):
            q = torch.tensor(q, device=x.device, dtype=x.dtype)
            eye = torch.eye(x.shape[-1], device=x.device).to(x.dtype)
            return torch.quantile(x, q / 100.0), torch.linalg.solve(x, eye)
        """,
        """
        def of_float32(x: Tensor, q):
            return torch.quantile(x.float(), torch.tensor(q, device=x.device))
        """,
        # What is added to a float64 matrix is float64.
        """
        def steadied(cov: Tensor, y: Tensor):
            return torch.linalg.solve(cov + torch.eye(cov.shape[-1], device=cov.device) * 1e-6, y).argmax()
        """,
        # No float64 comes there.
        """
        def checked(x: Tensor):
            assert x.dtype == torch.float32
            return torch.quantile(x, torch.tensor(0.5, device=x.device))

        def annotated(x: torch.FloatTensor):
            return x.quantile(torch.tensor([0.1, 0.9], device=x.device))

        def drawn(images: Tensor):
            y = torch.rand(3) * 2
            return torch.quantile(y, torch.tensor(0.9, device=y.device))

        class Pictures(torch.utils.data.Dataset):
            def __getitem__(self, index):
                x = self.values[index]
                return torch.quantile(x, torch.tensor(0.9, device=x.device))
        """,
        """
        def of_another_package(x: Tensor, solver):
            return solver.solve(x, torch.eye(x.shape[-1], device=x.device))
        """,
        # It takes tensors of two dtypes.
        """
        def binned(x: Tensor):
            return torch.searchsorted(torch.linspace(0, 1, 5, device=x.device), x)
        """,
    ),
    "DT305": (
        # By a mask, a number or a slice a tensor of one number is cast.
        """
        def fill(x: Tensor, mask: Tensor):
            x[mask] = torch.tensor(1.0)
            x[0] = torch.tensor(2.0)
            x[:, 1] = torch.tensor(2.0)
            x[[0, 1]] = 1.0
            x[mask.long()] = torch.tensor(1.0, dtype=x.dtype)
            return x
        """,
        # So it is by a tensor of one number, which an index of integers may be.
        """
        def ban(scores: Tensor, token_id: Tensor, banned):
            scores[token_id.long()] = torch.tensor(-math.inf)
            scores[torch.tensor(banned[0]).long()] = torch.tensor(-math.inf)
            return scores
        """,
        """
        def of_float32(n: int):
            x = torch.zeros(n)
            x[[0, 1]] = torch.tensor(1.0)
            return x
        """,
    ),
    "DT306": (
        """
        def asked(x: Tensor, flags):
            rows = []
            for i in range(x.shape[0]):
                if flags[i]:
                    rows.append(i)
            if not rows:
                return x
            return x[torch.tensor(rows), :]
        """,
        """
        def asked_later(x: Tensor, flags):
            rows = []
            for i in range(x.shape[0]):
                if flags[i]:
                    rows.append(i)
            index = torch.tensor(rows)
            return x[index] if len(rows) > 0 else x
        """,
        """
        def cast(x: Tensor, flags):
            rows = []
            for i in range(x.shape[0]):
                if flags[i]:
                    rows.append(i)
            return x[torch.tensor(rows).long(), :]
        """,
        """
        def never_empty(x: Tensor, flags):
            rows, each = [0], []
            for i in range(x.shape[0]):
                each.append(i)
                if flags[i]:
                    rows.append(i)
            return x[torch.tensor(rows), :], x[torch.tensor(each), :]
        """,
        """
        def all_but_one(x: Tensor, dim: int):
            return x[torch.tensor([i for i in range(x.shape[0]) if i != dim])]
        """,
        """
        def some_for_certain(x: Tensor, flags, k: int):
            kept = []
            for i, flag in enumerate(flags):
                if i == 0 or flag:
                    kept.append(i)
            even = x[:, torch.tensor([i for i in range(8) if i % 2 == 0])]
            late = x[torch.tensor([i for i in range(8) if i > 3])]
            return x[torch.tensor(kept)], even, late, x[torch.tensor([i for i in range(len(x)) if not i == k])]
        """,
        """
        def left_before(x: Tensor, mask: Tensor):
            if not mask.any():
                return x
            index = torch.tensor([i for i, m in enumerate(mask) if m])
            return x[index]
        """,
        # An empty index gathers nothing, and an array of NumPy is looked up by it.
        """
        def taken(x: Tensor, flags):
            index = torch.tensor([i for i, flag in enumerate(flags) if flag])
            return x.gather(0, index)

        def taken_of_array(flags):
            table = np.arange(5)
            return table[torch.tensor([i for i, flag in enumerate(flags) if flag])]
        """,
        """
        def asked(graph):
            if len(graph.edges) == 0:
                return torch.zeros(2, 0, dtype=torch.int64)
            return torch.tensor(list(graph.edges)).t().contiguous()

        def asked_shortly(graph):
            return torch.tensor(list(graph.edges)).t() if graph.edges else None

        def cast(graph):
            return torch.tensor(list(graph.edges)).t().contiguous().long()

        def cast_to(graph):
            return torch.tensor(list(graph.edges)).t().to(torch.int64)
        """,
        """
        def from_graph(graph, path):
            known = load(path)
            if graph.number_of_edges() == 0:
                return None
            return torch.tensor(list(graph.edges)).t(), torch.tensor(list(known.edges)).t()
        """,
    ),
    "DT308": (
        """
        def of_bits(x: Tensor, mask: Tensor, bits: Tensor):
            return ~mask.long() & 1, ~mask.int() + 2, ~bits.byte(), ~x.long() & 7, ~mask.bool()
        """,
        """
        def of_words(x: Tensor, m):
            bits = ~low_bits_mask(4).to(torch.int32)
            x |= ~make_mask(m).to(torch.int32)
            kept = torch.bitwise_and(x, ~make_mask(m).to(torch.int32))
            return x | ~make_mask(m).int(), bits, kept, x ^ ~make_mask(m).long(), ~make_mask(m).long() << 2
        """,
    ),
    "DT312": (
        """
        def converted(logits: Tensor, weights: Optional[Tensor] = None):
            if weights is None:
                weights = np.ones(logits.shape[-2])
            return logits * torch.as_tensor(weights, dtype=logits.dtype)
        """,
        """
        def of_float32(logits: Tensor, weights: Optional[Tensor] = None):
            if weights is None:
                weights = np.ones(logits.shape[-2], dtype=np.float32)
            return logits * weights
        """,
        """
        def of_numpy(n: int, weights: Optional[np.ndarray] = None):
            if weights is None:
                weights = np.ones(n)
            return 2 * weights
        """,
    ),
    "DT313": (
        """
        def limits(x, ids):
            return torch.finfo(x.dtype).min, torch.tensor(0, dtype=ids.dtype).numpy().dtype
        """,
        """
        def of_float32(x):
            x = x.float()
            return torch.tensor(0, dtype=x.dtype).numpy().dtype
        """,
    ),
    "DT416": (
        """
        def cast(edges: Tuple[torch.Tensor, torch.Tensor], a: int, b: int):
            return edges[0].long() << 32 | edges[1].long(), a << 32 | b
        """,
        """
        def cast_above(src: Tensor, dst: Tensor):
            src = src.to(torch.int64)
            return (src << 32) | dst
        """,
        """
        def numbers(a, b):
            return a << 32 | b
        """,
        # Ids are int64, but for those who say otherwise.
        """
        def keys(src: Tensor, dst: Tensor, edges: Tuple[torch.Tensor, torch.Tensor]):
            return src << 32 | dst, edges[0] << 32 | edges[1]
        """,
        """
        def computed(scores: Tensor, beams: int):
            index = scores.topk(4)[1] + beams
            return (torch.div(index, beams, rounding_mode="trunc") << 32) + index
        """,
    ),
}


test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("np.finfo(torch.tensor(0, dtype=x.dtype).numpy().dtype).min", "torch.finfo(x.dtype)"),
        ("torch.zeros(3, dtype=x.dtype).numpy()", ".float().numpy()"),
    ],
)
def test_limits_are_asked_of_torch_and_tensors_are_cast(made: str, told: str) -> None:
    (found,) = BENCH.found("DT313", f"def f(x):\n    return {made}\n")
    assert told in str(found.help)
