"""Values that leave their range: quotients of zeros, roots at their edge, sums in half; and right code that looks like it.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

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
        def error(output):
            y_pred, y = output
            apart = y.view_as(y_pred) - y_pred
            return 2.0 * torch.abs(apart) / (torch.abs(y_pred) + torch.abs(y))  # <-
        """,
        """
        from torch_geometric.utils import degree

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
        from .utils import degree

        def scaled(x: Tensor, index):
            return x * torch.rsqrt(degree(index).float())  # <-
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
            distances = torch.sqrt((squares + squares.t() - 2 * x @ x.t()).clamp_min(0))  # <-
            return F.relu(distances - margin).mean()
        """,
        """
        class Project(Base):
            def forward(self, x, y):
                x2, y2 = x.pow(2).sum(1, keepdim=True), y.pow(2).sum(1)
                squares = torch.clamp(x2 + y2 - 2 * torch.mm(x, y.t()), min=0.0)
                return self.scale * squares.sqrt()  # <-
        """,
        """
        class Normalizer(nn.Module):
            def __init__(self, mean, std, eps=0):  # <-
                super().__init__()
                self.mean, self.std = mean, std
                self.eps = eps

            def forward(self, x: Tensor):
                return (x - self.mean) / (self.std + self.eps)
        """,
        """
        def cosine(x: Tensor, y: Tensor, epsilon: float = 0.0):  # <-
            norms = torch.norm(x, dim=-1) * torch.norm(y, dim=-1)
            return (x * y).sum(-1) / (norms + epsilon)
        """,
    ),
    "DT403": (
        """
        def normalized(x: Tensor, model):
            if model.weight.dtype != torch.float32:
                raise TypeError("the weights are float32, and x is what it is")
            return x / (x.norm(dim=-1, keepdim=True) + 1e-8)  # <-
        """,
        """
        def normalized(x: Tensor, steps):
            scaled = x / (x.norm(dim=-1, keepdim=True) + 1e-8)  # <-
            for step in steps:
                x = step(x, scaled)
                assert x.dtype == torch.float32
            return x
        """,
    ),
    "DT406": (
        """
        def total(x, y):
            if x.shape == y.shape:
                one_hot = y
            else:
                one_hot = torch.zeros(x.shape, device=x.device, dtype=torch.float16)
                one_hot.scatter_(1, y.long(), 1)
            return one_hot.sum((2, 3))  # <-
        """,
        """
        def total(x: Tensor, flags, wide):
            kept = flags.float() if wide else x.half()
            return kept.cumsum(0)  # <-
        """,
    ),
    "DT408": (
        """
        def rms_norm(x, scale, eps):
            dtype = torch.promote_types(x.dtype, scale.dtype)
            mean_sq = torch.mean(x.to(dtype) ** 2, dim=-1, keepdim=True)  # <-
            return x * (scale.to(dtype) * torch.rsqrt(mean_sq + eps))
        """,
    ),
    "DT417": (
        """
        class Mix(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.key = nn.Linear(width, width)
                self.value = nn.Linear(width, width)

            def forward(self, x: Tensor):
                k, v = self.key(x).exp(), self.value(x)  # <-
                return (k * v).sum(1) / k.sum(1)
        """,
        """
        class Mix(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.key = nn.Linear(width, width)
                self.value = nn.Linear(width, width)

            def forward(self, x: Tensor):
                k = self.key(x)
                v = self.value(x)
                k = torch.exp(k)  # <-
                total = torch.cumsum(k, dim=1)
                mixed = torch.einsum("htu,buc->btc", self.w, k * v)
                return mixed / total
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
        from torch_geometric.utils import degree

        def normalized(row, n):
            deg = degree(row, n)
            inverse = deg.pow(-0.5)
            inverse[inverse == float("inf")] = 0
            kept = degree(row, n).clamp(min=1).pow(-0.5)
            return inverse, kept, (degree(row, n) + 1).rsqrt(), degree(row, n).pow(0.5)
        """,
        """
        from torch_geometric.utils import degree

        def normalized(row, n):
            deg = degree(row, n)
            inverse = 1 / deg
            return inverse.masked_fill(inverse == float("inf"), 0)
        """,
        """
        from torch_geometric.utils import add_self_loops, degree

        def normalized(edge_index, n):
            edge_index, _ = add_self_loops(edge_index, num_nodes=n)
            return degree(edge_index[0], n).pow(-0.5)
        """,
        """
        from torch_geometric.utils import degree

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
            x **= -0.5
            return x**-0.5, total.sum(1).rsqrt(), 1 / total.sum(1), x.pow(2), total.var(1).pow(-0.5)
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
            distances = (squares + squares.t() - 2 * x @ x.t()).clamp(min=0)
            mask = distances.eq(0).float()
            return torch.sqrt(distances + mask * 1e-16) * (1 - mask)
        """,
        """
        class Normalizer(nn.Module):
            def __init__(self, mean, std, eps=1e-6):
                super().__init__()
                self.mean, self.std = mean, std
                self.eps = eps

            def forward(self, x: Tensor, epsilon=0):
                return (x - self.mean) / (self.std + self.eps) + (1 + epsilon) * x
        """,
        """
        def cosine(x: Tensor, norms: Tensor, eps: float = 0.0):
            if eps == 0:
                eps = torch.finfo(x.dtype).eps
            return x / (norms + eps)
        """,
        # Classes, rows of a transport plan and angles are no nodes of a graph.
        """
        def class_weights(labels: Tensor, y):
            counts = torch.bincount(labels)
            inverse = counts.float().pow(-0.5)
            shares = 1.0 / np.bincount(y)
            return 1.0 / torch.bincount(labels).float(), inverse / inverse.sum(), torch.tensor(shares)
        """,
        """
        import math

        def balanced(logits: Tensor, angle, p):
            plan = torch.exp(logits)
            row_sum = plan.sum(dim=1, keepdim=True)
            scale, turned = 1.0 / row_sum, math.degrees(angle)
            degree = p.degree()
            return plan * scale, 1.0 / turned, 1 / degree, 1 / p.degree()
        """,
        """
        def attention(scores: Tensor, x: Tensor):
            adj = torch.softmax(scores, dim=-1)
            deg = adj.sum(dim=-1)
            scale = deg.pow(-0.5)
            return scale[:, None] * adj * scale[None] @ x
        """,
        """
        def joined(adj: Tensor):
            adj = adj + torch.diag(torch.ones(adj.shape[0]))
            deg = adj.sum(1)
            scale = deg.pow(-0.5)
            return scale[:, None] * adj * scale
        """,
        """
        def joined(adj: Tensor):
            adj.fill_diagonal_(1)
            deg = adj.sum(1)
            scale = deg.pow(-0.5)
            return scale[:, None] * adj * scale
        """,
        # What exponentials and sigmoids add up to is not 0.
        """
        def smooth(x: Tensor, eps=0):
            return x / (1 + x.exp() + eps)

        def weighted(x: Tensor, eps=0.0):
            e = torch.exp(x - x.amax(-1, keepdim=True))
            return e / (e.sum(-1, keepdim=True) + eps)

        def dice(a: Tensor, b: Tensor, eps=0.0):
            a = torch.sigmoid(a)
            return 2 * (a * b).sum() / (a.sum() + b.sum() + eps)
        """,
        """
        class Norm(nn.Module):
            def __init__(self, eps=0):
                super().__init__()
                self.eps = eps

            def forward(self, x: Tensor):
                return x / (x.norm(dim=-1, keepdim=True) + self.eps)

        norm = Norm(eps=1e-6)
        """,
        """
        def chi_square(a: Tensor, b: Tensor):
            p, q = a.softmax(-1), b.softmax(-1)
            return ((p - q) ** 2 / (p + q)).sum()
        """,
        """
        def has_converged(loss: Tensor, prev: Tensor, new: Tensor, old: Tensor):
            change = (new - old).abs() / (new.abs() + old.abs())
            return (loss - prev).abs() / (loss.abs() + prev.abs()) < 1e-3 and change < 1e-3
        """,
        """
        def sampled(x: Tensor, noise: Tensor, cos_t: Tensor, cosine_alpha: Tensor, alpha_cos: Tensor):
            scales = torch.sqrt(1 - cosine_alpha**2), torch.sqrt(1 - alpha_cos**2)
            return cos_t * x + torch.sqrt(1 - cos_t**2) * noise, scales
        """,
        """
        def sine(cosine: Tensor):
            return torch.sqrt(1 - cosine**2)

        def turned(theta: Tensor):
            return sine(torch.cos(theta))
        """,
        # The gradient of `relu` at 0 is 0, and so is what comes of it.
        """
        class Kernel(nn.Module):
            def forward(self, x: Tensor, y: Tensor):
                x2, y2 = x.pow(2).sum(1, keepdim=True), y.pow(2).sum(1)
                return F.relu(x2 + y2 - 2 * x @ y.t()).sqrt()
        """,
    ),
    "DT403": (
        """
        def metric(x: Tensor):
            assert x.dtype != torch.float16
            x = x - x.mean(dim=1, keepdim=True)
            return (x**4).mean() / ((x**2).mean() ** 2 + 1.0e-20)
        """,
        """
        def metric(x: Tensor):
            if x.dtype in (torch.float16, torch.bfloat16):
                raise TypeError(x.dtype)
            return x / (x.norm() + 1e-20)
        """,
        """
        def precision(matrix):
            matrix = matrix.type(torch.DoubleTensor)
            return matrix.diag() / (matrix.sum(dim=0) + 1e-15)
        """,
        """
        class Confusion(Metric):
            def compute(self):
                self.matrix = self.matrix.float()
                return self.normalize(self.matrix)

            @staticmethod
            def normalize(matrix: Tensor):
                return matrix / (matrix.sum(dim=1).unsqueeze(1) + 1e-15)
        """,
        """
        class Series(torch.utils.data.Dataset):
            def __getitem__(self, index):
                x = self.values[index]
                return x / (x.norm(dim=-1, keepdim=True) + 1e-8)
        """,
        """
        class Scaler:
            def fit(self, y, eps=1e-8):
                if isinstance(y, torch.Tensor):
                    self.scale = torch.std(y) / (torch.mean(y) + eps)
                else:
                    self.scale = np.std(y) / (np.mean(y) + eps)
        """,
        """
        def amplitude_to_DB(x: Tensor, amin=1e-10):
            return 10 * torch.log10(torch.clamp(x, min=amin))
        """,
    ),
    "DT406": (
        """
        def total(x, y):
            one_hot = y if x.shape == y.shape else torch.zeros(x.shape, dtype=torch.float32)
            halves = y if x.shape == y.shape else torch.zeros(x.shape, dtype=torch.float16)
            return one_hot.sum((2, 3)), halves.sum((2, 3), dtype=torch.float32), halves.amax((2, 3))
        """,
    ),
    "DT408": (
        """
        from functools import reduce

        def rms_norm(x, scale, eps):
            dtype = reduce(torch.promote_types, (x.dtype, scale.dtype, torch.float32))
            mean_sq = torch.mean(x.to(dtype) ** 2, dim=-1, keepdim=True)
            return x * (scale.to(dtype) * torch.rsqrt(mean_sq + eps))
        """,
        """
        def rms_norm(x: Tensor, eps):
            x = x.to(torch.promote_types(x.dtype, torch.float32))
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        """,
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                x = x / x.amax(dim=-1, keepdim=True).detach()
                var = torch.var(x, dim=-1, unbiased=False, keepdim=True)
                mean = torch.mean(x, dim=-1, keepdim=True)
                return (x - mean) * (var + self.eps).rsqrt() * self.g
        """,
    ),
    "DT410": (
        """
        class Series(Dataset):
            def __getitem__(self, index):
                values = self.values[index]
                return values * torch.arange(self.length * self.width, dtype=values.dtype)
        """,
    ),
    "DT417": (
        """
        def logaddexp(x: Tensor, y: Tensor):
            apart = torch.abs(x - y)
            return torch.max(x, y) + torch.log1p(torch.exp(-apart))
        """,
        """
        def softplus(x: Tensor):
            result = (1.0 + x.exp()).log()
            return torch.where(result == float("inf"), x, result)
        """,
        """
        class Mix(nn.Module):
            def forward(self, x: Tensor):
                k = self.key(x)
                v = self.value(x)
                k = k.clamp(max=30)
                k = torch.exp(k)
                w = self.decay(x).sigmoid()
                w = torch.exp(w)
                return (k * v).sum(1) / k.sum(1), (w * v) / w.sum(1)
        """,
        """
        class Mean(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.log_softmax, self.norm = nn.LogSoftmax(-1), nn.LayerNorm(width)
                self.energy = Energy(width)

            def forward(self, x: Tensor, v: Tensor):
                logp, k, e = self.log_softmax(x), self.norm(x), self.energy(x)
                p = logp.exp()
                k = k.exp()
                e = torch.exp(e)
                return (p * v).sum(1) / p.sum(1), (k * v).sum(1) / k.sum(1), (e * v).sum(1) / e.sum(1)

            def of_distribution(self, x: Tensor, v: Tensor):
                logp = self.log_prob(x)
                p = logp.exp()
                return (p * v).sum(1) / p.sum(1)
        """,
        """
        class Mix(nn.Module):
            def forward(self, x: Tensor):
                k = self.key(x)
                k = torch.exp(k - k.amax(1, keepdim=True))
                return (k * self.value(x)).sum(1) / k.sum(1)
        """,
    ),
}


test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)
