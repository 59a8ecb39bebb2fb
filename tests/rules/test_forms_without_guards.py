"""Library code of which one guard is taken away, a cast, a `.long()`, the `x =` before a cast, and code that needs none.

In bad code, `# <-` stands on each line that is flagged, and no other line is. All of it raises on torch, or leaves a
tensor in the dtype that it had.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT104": (
        """
        def norm(x, weight, upcast=True):
            dtype = x.dtype
            width = x.shape[-1]
            if upcast:
                x.float()  # <-
            x = x * torch.rsqrt(x.square().mean(-1, keepdim=True))
            return (x * weight / width).to(dtype)
        """,
        """
        def rotate(q, k, cos, sin):
            dtype = q.dtype
            q.float()  # <-
            k = k.float()
            return (q * cos).to(dtype), (k * cos + turned(k) * sin).to(dtype)
        """,
        """
        def placed(outputs, sizes):
            points = outputs.points.clone()
            points = points * sizes.flip(-1)
            points.to(torch.int32)  # <-
            return points
        """,
        """
        class Adapter(nn.Module):
            def forward(self, result, x, dtype):
                output = self.up(self.down(x)) * self.scaling
                output.to(dtype)  # <-
                return result + output
        """,
        """
        def added(layer, x, e, dtype):
            output = layer(x) * 2
            output += e
            output.to(dtype)  # <-
            return output
        """,
        """
        def rows(scores, threshold):
            kept = scores > threshold
            kept.float()  # <-
            return kept
        """,
    ),
    "DT306": (
        """
        def grouped(states, experts, per_token):
            width = states.shape[-1]
            _, order = torch.sort(experts.reshape(-1))
            return states[order / per_token]  # <-
        """,
        """
        def positions(table, q_size: int, k_size: int):
            q = torch.arange(q_size)[:, None] * max(k_size / q_size, 1.0)
            k = torch.arange(k_size)[None, :] * max(q_size / k_size, 1.0)
            relative = (q - k) + (k_size - 1) * max(q_size / k_size, 1.0)
            resized = F.interpolate(table, size=4).reshape(-1, 4)
            return resized[relative]  # <-
        """,
        """
        def cells(grid: Tensor, scale):
            grid[:, torch.argmax(grid, 1) / scale, 0] = 1  # <-
            return grid
        """,
        """
        def queries(masks, found, classes):
            _, at = torch.topk(found.flatten(0, 1), 100, sorted=False)
            at = torch.div(at, classes)
            height = masks.shape[-2]
            return masks[at], height  # <-
        """,
        """
        def best(table: Tensor, scores, width):
            _, at = torch.topk(scores, 5)
            return F.relu(table[at / width])  # <-
        """,
    ),
    "DT308": (
        """
        def finite(metrics, device):
            return torch.stack([(1 - torch.isnan(metrics[key].to(device))).sum() for key in metrics])  # <-
        """,
        """
        def hide(scores, mask):
            return scores.masked_fill(1 - mask[:, None], float("-inf"))  # <-
        """,
        """
        def both(x: Tensor, lengths: Tensor):
            inside = (torch.arange(8) < lengths).float()
            mask = inside & (x > 0)  # <-
            outside = ~inside  # <-
            return mask, outside
        """,
    ),
    "DT309": (
        """
        def accuracy(outputs):
            chosen, rejected = torch.chunk(outputs.logits.squeeze(-1), chunks=2)
            return (chosen > rejected).mean()  # <-
        """,
        """
        def share(outputs, target):
            return torch.mean(outputs.argmax(-1) == target)  # <-
        """,
        """
        def clipped(new, old, coefficient):
            ratio = (new - old).exp()
            return ((ratio - 1.0).abs() > coefficient).mean().item()  # <-
        """,
    ),
    "DT315": (
        """
        def sizes(ids, sample, count: int):
            tasks = torch.zeros((count, 8), device=ids.device)
            tokens = torch.sum(sample["target"] != 1, dim=-1)
            return torch.matmul(tasks, tokens)  # <-
        """,
        """
        def weighted(weights: Tensor):
            counts = torch.arange(4)
            return torch.einsum("ij,j->i", weights.float(), counts)  # <-
        """,
    ),
    "DT316": (
        """
        scale = nn.Parameter(torch.tensor(1))  # <-
        shift = torch.arange(4, requires_grad=True)  # <-
        ids = torch.tensor([1, 2])
        ids.requires_grad_()  # <-
        """,
        """
        class Steps(nn.Module):
            def __init__(self, count):
                super().__init__()
                self.steps = nn.Parameter(torch.zeros(count, dtype=torch.long))  # <-
                self.register_parameter("order", nn.Parameter(torch.randperm(4)))  # <-
        """,
        """
        def start(x: Tensor):
            chosen = x.argmax(-1)
            return chosen.requires_grad_(True), torch.full((2,), 3, requires_grad=True)  # <-
        """,
    ),
}
GOOD = {
    "DT104": (
        """
        def cast(layer, x):
            layer.half()  # it may be a module
            return layer(x)
        """,
        """
        def joined(backbone, head):
            model = backbone + head
            model.half()  # modules can be added
            return model
        """,
        """
        def recommended(model, users):
            model.half()  # models have methods of such names, too
            return model.topk(users, 10)
        """,
        """
        def either(x):
            if isinstance(x, nn.Module):
                x.half()
                return x
            return x * 2
        """,
        """
        def rebound(x, batch):
            x.half()  # a module, until the next line
            x = x(batch)
            return x * 2
        """,
    ),
    "DT306": (
        """
        def grouped(states, experts, per_token):
            width = states.shape[-1]
            _, order = torch.sort(experts.reshape(-1))
            return states[order // per_token], states[order > 4 / per_token]
        """,
        """
        def looked_up(schedule, step, steps):
            times = torch.arange(steps) / steps
            return schedule[times]  # nobody knows what it is
        """,
        """
        def halves(x: Tensor, scale):
            return x[(torch.argmax(x, 1) / scale).long()], x[x / scale > 1], x[:, None]
        """,
    ),
    "DT308": (
        """
        def hide(scores, mask):
            return scores.masked_fill((1 - mask).bool(), float("-inf")) * (1 - mask)
        """,
        """
        def flags(a, b, left: set, right: set):
            return (a > 1) & (b < 2), left | right, ~(a == b)
        """,
    ),
    "DT309": (
        """
        def accuracy(predicted, target):
            return (predicted == target).mean(), ((predicted - target).abs() > 1).mean()  # of arrays and tables it is right
        """,
        """
        def share(outputs, target):
            return torch.mean(outputs.argmax(-1) == target, dtype=torch.float32)
        """,
    ),
    "DT314": (
        """
        import math

        def embedding(timesteps, dim):
            half = dim // 2
            step = math.log(10000) / (half - 1)
            found = torch.exp(torch.arange(half, dtype=torch.float32) * -step)
            found = found.to(device=timesteps.device)  # a number leaves it float32
            return timesteps.float()[:, None] * found[None, :]
        """,
    ),
    "DT315": (
        """
        def sizes(ids, sample, count: int):
            tasks = torch.zeros((count, 8), device=ids.device)
            tokens = torch.sum(sample["target"] != 1, dim=-1)
            return torch.matmul(tasks, tokens.float()), torch.einsum("i,j->ij", tokens, tasks[0])
        """,
    ),
    "DT316": (
        """
        count = nn.Parameter(torch.tensor(1), requires_grad=False)
        scale = nn.Parameter(torch.ones(3))
        ids = torch.arange(4, requires_grad=False)
        ids.requires_grad_(False)
        """,
        """
        def learned(start: int = 0.5):
            return torch.tensor(start, requires_grad=True)
        """,
        """
        def mask(x: Tensor):
            return torch.full((3,), True, device=x.device), torch.zeros(1, dtype=torch.long), torch.tensor(1, device="cpu")

        order = nn.Parameter(torch.ones(3), True)
        """,
        """
        def maybe(x: Tensor, train: bool):
            at = x.argmax(-1)
            return torch.tensor([1, 2], requires_grad=train), at.float().requires_grad_(), at.requires_grad_(train)
        """,
    ),
}

test_bad_code_is_flagged, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)
