"""What met a float32 tensor is no half tensor, whatever it was: rules about half are silent on it."""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\n"
bench = Bench("DT401", "DT409", HEAD)

LIFTED = {
    "DT401": (
        """
        def fill(x, mask):
            scores = torch.randn(3) * x
            return scores.masked_fill(mask, -1e9)
        """,
        """
        def weigh(logits, mask):
            w = torch.ones(10, device=logits.device)
            w[0] = 0.1
            scores = logits * w
            scores = scores.masked_fill(mask, -1e9)
            return scores.log_softmax(-1)
        """,
        """
        def written(x, mask):
            scores = x + torch.zeros(2, 3)
            scores[mask] = -1e9
            return scores
        """,
        """
        def chosen(x, mask):
            scores = (x - torch.linspace(0, 1, 8)).clamp(0)
            return torch.where(mask, scores, -1e9)
        """,
        """
        def layers(x, mask, deep):
            scores = torch.rand(4, 4) * x
            if deep:
                scores *= 2
            for m in mask:
                y = scores.masked_fill(m, -1e9)
            return y
        """,
    ),
    "DT403": (
        """
        def standardize(values: list[float], baseline: torch.Tensor):
            x = torch.from_numpy(np.random.rand(3)) - baseline
            return x / (x.norm() + 1e-8)
        """,
        """
        def advantages(rewards: list[float]):
            adv = torch.tensor(rewards)
            return (adv - adv.mean()) / (adv.std() + 1e-8)
        """,
        """
        def loaded(path, mean):
            x = torch.from_numpy(np.load(path).astype("float32"))
            x = x - mean
            return x / (x.norm() + 1e-8)
        """,
        """
        def turned(x):
            y = -(torch.tensor([0.1, 0.2]).to(x.device) - x)[None]
            return y / (y.norm(dim=-1) + 1e-8)
        """,
    ),
    "DT408": (
        """
        def rms(x):
            x = torch.randn(3, 4) * x
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        """,
    ),
}

PERHAPS_HALF = {
    "DT401": (
        """
        def product(x, mask):
            scores = torch.randn(3, 3) @ x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def sized(x, size, mask):
            scores = torch.randn(*size) * x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def cast(x, mask):
            scores = (torch.randn(3) * x).to(x.dtype)
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def counted(x, mask):
            scores = torch.full((3,), 1) * x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def on_one_path(x, mask, noisy):
            scores = torch.randn(3) * x
            if not noisy:
                scores = x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def again(x, mask):
            scores = torch.randn(3) * x
            for m in mask:
                y = scores.masked_fill(m, -1e9)  # <-
                scores = x
            return y
        """,
        """
        def data(x, mask):
            scores = torch.randn(3) * x
            scores.data = x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
        """
        def each(xs, x, mask):
            scores = torch.randn(3)
            return [scores.masked_fill(mask, -1e9) for scores in xs]  # <-
        """,
        """
        def before(x, mask):
            y = x * 2
            y = y.masked_fill(mask, -1e9)  # <-
            x = torch.randn(3)
            return x, y
        """,
        """
        torch.set_default_dtype(torch.float16)
        def default(x, mask):
            scores = torch.randn(3) * x
            return scores.masked_fill(mask, -1e9)  # <-
        """,
    ),
    "DT403": (
        """
        def of_no_dimensions(x, scale: torch.Tensor):
            y = scale.float().sum() * x
            z = torch.rand(3).sum() * x
            return z / (z.norm() + 1e-8)  # <-
        """,
    ),
}

test_what_is_half_perhaps_is_flagged, test_what_met_float32_is_left_alone = bench.tests(PERHAPS_HALF, LIFTED)
