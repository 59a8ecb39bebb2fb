"""Values that leave their range: quotients of zeros, roots at their edge, sums in half; and right code that looks like it.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench, cases, marked

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT401", "DT499", HEAD)

BAD = {
    "DT404": (
        """
        def canberra(y_pred: Tensor, y: Tensor):
            return torch.abs(y - y_pred) / (torch.abs(y_pred) + torch.abs(y))  # <-
        """,
        """
        def smape(forecast: Tensor, target: Tensor):
            total = (forecast.abs() + target.abs()) / 2
            return 100 * ((forecast - target).abs() / total).mean()  # <-
        """,
        """
        def chi_square(first, second):
            return torch.sum((first - second) ** 2 / (first + second), dim=-1)  # <-
        """,
        """
        def error(output):
            y_pred, y = output
            apart = y.view_as(y_pred) - y_pred
            return 2.0 * torch.abs(apart) / (torch.abs(y_pred) + torch.abs(y))  # <-
        """,
        """
        class Conv(nn.Module):
            def forward(self, x: Tensor, edge_index):
                row, col = edge_index
                deg = degree(row, x.size(0), dtype=x.dtype)
                deg = deg.pow(-0.5)  # <-
                return deg[row] * deg[col]
        """,
        """
        def normalized(adj: Tensor):
            deg = adj.sum(dim=-1)
            scale = deg**-0.5  # <-
            return scale[:, None] * adj * scale[None, :]
        """,
        """
        def mean_of_neighbours(x: Tensor, col, n):
            deg = torch.zeros(n).scatter_add_(0, col, torch.ones(col.shape[0]))
            return x * (1 / deg)[:, None]  # <-
        """,
        """
        def scaled(x: Tensor, index):
            return x * torch.rsqrt(torch.bincount(index).float())  # <-
        """,
        """
        def normalized(adj: Tensor):
            deg = torch.sum(adj, dim=1)
            root = deg.sqrt()
            return torch.diag(1.0 / root) @ adj  # <-
        """,
        """
        class Margin(nn.Module):
            def forward(self, outputs: Tensor, targets: Tensor):
                cosine = outputs.float()
                sine = torch.sqrt(1.0 - torch.pow(cosine, 2))  # <-
                phi = cosine * self.cos_m - sine * self.sin_m
                phi = torch.where(cosine > self.th, phi, cosine - self.mm)
                outputs = (targets * phi) + ((1.0 - targets) * cosine)
                return self.scale * outputs
        """,
        """
        class Margin(nn.Module):
            def forward(self, x: Tensor, label: Tensor):
                cosine = F.linear(F.normalize(x), F.normalize(self.weight)).float()
                sine = (1 - cosine.square()).sqrt()  # <-
                phi = cosine * self.cos_m - sine * self.sin_m
                return torch.where(cosine > 0, phi, cosine)
        """,
        """
        class Kernel(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                x2 = x.norm(2, -1).pow(2)
                y2 = y.norm(2, -1).pow(2)
                product = torch.matmul(x, y.transpose(-1, -2))
                distance = x2.unsqueeze(-1) + y2.unsqueeze(-2) - product.mul(2)
                distance = distance.clamp(0, 1e10).sqrt()  # <-
                return torch.exp(-distance)
        """,
        """
        def triplet_loss(x: Tensor, margin):
            squares = (x**2).sum(1, keepdim=True)
            distances = torch.sqrt(F.relu(squares + squares.t() - 2 * x @ x.t()))  # <-
            return F.relu(distances - margin).mean()
        """,
        """
        class Project(Base):
            def forward(self, x, y):
                x2, y2 = x.pow(2).sum(1, keepdim=True), y.pow(2).sum(1)
                squares = torch.clamp(x2 + y2 - 2 * torch.mm(x, y.t()), min=0.0)
                return self.scale * squares.sqrt()  # <-
        """,
    ),
}

GOOD = {
    "DT404": (
        """
        def smape(forecast: Tensor, target: Tensor, eps: float):
            total = forecast.abs() + target.abs()
            return torch.abs(forecast - target) / (total + 1e-8), (forecast - target).abs() / (total + eps)
        """,
        """
        def smape(forecast: Tensor, target: Tensor):
            total = torch.abs(forecast) + torch.abs(target)
            out = torch.abs(forecast - target) / total
            out[total == 0] = 0
            return out
        """,
        """
        def smape(forecast: Tensor, target: Tensor):
            return torch.nan_to_num((forecast - target).abs() / (forecast.abs() + target.abs()))
        """,
        """
        def contrasts(a: Tensor, b: Tensor, c: Tensor):
            index = (a - b) / (a + b)
            return index, torch.abs(a - b) / (torch.abs(a) + torch.abs(c)), torch.abs(a - 1) / (torch.abs(a) + 1)
        """,
        """
        def smape(forecast, target):
            return np.abs(forecast - target) / (np.abs(forecast) + np.abs(target))
        """,
        """
        def normalized(row, n):
            deg = degree(row, n)
            inverse = deg.pow(-0.5)
            inverse[inverse == float("inf")] = 0
            kept = degree(row, n).clamp(min=1).pow(-0.5)
            return inverse, kept, (degree(row, n) + 1).rsqrt(), degree(row, n).pow(0.5)
        """,
        """
        def normalized(row, n):
            deg = degree(row, n)
            inverse = 1 / deg
            return inverse.masked_fill(inverse == float("inf"), 0)
        """,
        """
        def normalized(edge_index, n):
            edge_index, _ = add_self_loops(edge_index, num_nodes=n)
            return degree(edge_index[0], n).pow(-0.5)
        """,
        """
        def weights(index, n):
            count = degree(index, n)
            inverse = 1.0 / count
            return inverse[index]  # of those that were counted
        """,
        """
        def along_edges(g):
            g.ndata["norm"] = g.out_degrees().float().pow(-0.5)
            return g
        """,
        """
        def temperature(x: Tensor, total: Tensor):
            return x**-0.5, total.sum(1).rsqrt(), 1 / total.sum(1)
        """,
        """
        class Margin(nn.Module):
            def forward(self, outputs: Tensor):
                cosine = outputs.float().clamp(-1 + 1e-7, 1 - 1e-7)
                return torch.sqrt(1.0 - torch.pow(cosine, 2)), (1.0 - cosine.pow(2)).clamp(0, 1).sqrt()
        """,
        """
        def turned(theta: Tensor, alpha: Tensor):
            cosine = torch.cos(theta)
            return torch.sqrt(1 - cosine**2), torch.sqrt(1 - alpha**2)
        """,
        """
        class Margin(nn.Module):
            def forward(self, cosine: Tensor):
                sine = torch.sqrt(1.0 - cosine**2)
                return torch.where(torch.isnan(sine), torch.zeros_like(sine), sine)
        """,
        """
        class Kernel(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                x2 = x.pow(2).sum(1, keepdim=True)
                y2 = y.pow(2).sum(1)
                return (x2 + y2 - 2 * x @ y.t()).clamp(min=1e-12).sqrt()
        """,
        """
        def distances(x: Tensor, y: Tensor):
            x2, y2 = x.pow(2).sum(1, keepdim=True), y.pow(2).sum(1)
            return (x2 + y2 - 2 * x @ y.t()).clamp(min=0).sqrt()  # of whatever computes no gradient
        """,
        """
        class Nearest(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                x2 = x.pow(2).sum(1, keepdim=True)
                y2 = y.pow(2).sum(1)
                return (x2 + y2 - 2 * x @ y.t()).clamp(min=0).sqrt().argmin(-1)
        """,
        """
        def triplet_loss(x: Tensor):
            squares = (x**2).sum(1, keepdim=True)
            distances = F.relu(squares + squares.t() - 2 * x @ x.t())
            mask = distances.eq(0).float()
            return torch.sqrt(distances + mask * 1e-16) * (1 - mask)
        """,
    ),
}


@pytest.mark.parametrize(("code", "text"), cases(BAD))
def test_bad_code_is_flagged_where_the_arrows_stand(code: str, text: str) -> None:
    assert BENCH.flagged(code, text) == marked(BENCH.source(text))


@pytest.mark.parametrize(("code", "text"), cases(GOOD))
def test_right_code_is_left_alone(code: str, text: str) -> None:
    assert BENCH.flagged(code, text) == []
