"""Forms of bugs of range and resolution, as people write them in any repository, and right code like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

HEAD = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT401", "DT417", HEAD)

BAD = {
    "DT401": (
        """
        def extend(attn_mask: Tensor, n):
            return F.pad(attn_mask, (0, n), value=-1e9)  # <-
        """,
        """
        def bias(mask: Tensor):
            return (1.0 - mask) * torch.finfo(torch.float32).min  # <-
        """,
        """
        def keep(w: Tensor, b: Tensor, logits: Tensor, valid: Tensor):
            w = w * b - 1e10 * (1 - b)  # <-
            logits -= (1.0 - valid) * 1e9  # <-
            return w, logits
        """,
        """
        NEAR_INF = 1e20  # <-

        def mask_scores(scores: Tensor, mask, value: float = NEAR_INF):
            return scores.masked_fill(mask, -value)
        """,
    ),
    "DT403": (
        """
        def unit(q: Tensor, k: Tensor):
            q = F.normalize(q, dim=-1, eps=1e-12)  # <-
            return F.cosine_similarity(q, k, dim=-1, eps=1e-8)  # <-
        """,
        """
        def rotation(a: Tensor, b: Tensor):
            c = torch.dot(a / a.norm(), b / b.norm())
            if c < -1 + 1e-8:  # <-
                return None
            return c
        """,
        """
        def ends(p: Tensor):
            return (1 - 1e-9 <= p.sigmoid()).any()  # <-
        """,
        """
        EPS = 1e-8  # <-

        class BoxCoder:
            def __init__(self, eps: float = EPS):
                self.eps = eps

            def encode(self, boxes, anchors):
                w, wa = boxes.width(), anchors.width()
                w += self.eps
                wa += self.eps
                return torch.log(w / wa)
        """,
        """
        def sim_matrix(a: Tensor, b: Tensor, eps=1e-8):  # <-
            a_n, b_n = a.norm(dim=1)[:, None], b.norm(dim=1)[:, None]
            a_norm = a / torch.max(a_n, eps * torch.ones_like(a_n))
            b_norm = b / torch.max(b_n, eps * torch.ones_like(b_n))
            return torch.mm(a_norm, b_norm.transpose(0, 1))
        """,
        """
        def inverse(x: Tensor):
            a = torch.pow(x.sum(-1) + 1e-10, -0.5)  # <-
            b = (x.norm() + 1e-12).pow(0.5)  # <-
            return a, b, torch.add(x, 1e-9).log()  # <-
        """,
        """
        def unit(x: Tensor):
            return x / torch.maximum(x.norm(dim=-1), torch.tensor(1e-12))  # <-
        """,
        """
        def weights(norm: Tensor, x: Tensor):
            norm[norm == 0] = 1e-8  # <-
            return x / norm.sum(-1)
        """,
        """
        def safe(p: Tensor):
            return torch.log(torch.where(p == 0, 1e-8, p))  # <-
        """,
        """
        def filled(degree: Tensor, eps=1e-12):  # <-
            return degree.masked_fill(degree == 0, eps)
        """,
    ),
    "DT402": (
        """
        import numpy as np

        class Sensor:
            def space(self, spaces):
                return spaces.Box(
                    low=np.iinfo(np.uint32).min,
                    high=np.iinfo(np.uint32).max,  # <-
                    shape=(4,),
                    dtype=np.int32,
                )
        """,
        """
        import numpy as np

        ids = np.full(3, np.iinfo("uint32").max, dtype="int32")  # <-
        low = torch.full((3,), torch.iinfo(torch.int64).min, dtype=torch.int32)  # <-
        top = torch.tensor(torch.iinfo(torch.int16).max, dtype=torch.uint8)  # <-
        drawn = torch.randint(low=0, high=torch.iinfo(torch.int64).max, size=(3,), dtype=torch.int32)  # <-
        """,
    ),
    "DT404": (
        """
        class Scaled(torch.optim.Optimizer):
            def __init__(self, params, eps: float = 1e-8):
                super().__init__(params, {})
                self.eps = eps

            def update(self, group, grad, v, correction):
                a = grad / (v / correction).sqrt() + self.eps  # <-
                b = v.rsqrt().add_(group["eps"]).mul_(correction)  # <-
                return a, b, torch.rsqrt(v) + self.eps  # <-
        """,
        """
        EPS = 1e-8

        def units(x: Tensor, v: Tensor, eps: float):
            spread = x.std(dim=-1, keepdim=True)
            a = x / spread + 1e-6  # <-
            b = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True) + EPS  # <-
            return a, b, eps + x / v.pow(2).mean() ** 0.5  # <-
        """,
        """
        class FrozenBatchNorm(nn.Module):
            def forward(self, x):
                scale = self.weight * self.running_var.rsqrt()  # <-
                return x * scale

        def fold(weight: Tensor, moving_var: Tensor):
            return weight / moving_var.sqrt()  # <-
        """,
        """
        def masked_mean(values, mask, axis=None):
            return (values * mask).sum(axis=axis) / mask.sum(axis=axis)  # <-

        def mean_with_mask(x, mask=None):
            if mask is None:
                return x.mean(1)
            total = torch.sum(x * mask.unsqueeze(-1), dim=1)
            count = mask.float().sum(1, keepdim=True)
            return total / count  # <-

        def masked_var(values, mask):
            mean = masked_mean(values, mask) - mean_with_mask(values, mask)
            variance = masked_mean((values - mean) ** 2, mask)
            mask_sum = mask.sum()
            if mask_sum == 0:
                raise ValueError("the mask keeps nothing")
            return variance * mask_sum / (mask_sum - 1)
        """,
        """
        class Triplet(nn.Module):
            def forward(self, anchor: Tensor, other: Tensor):
                return torch.sqrt(torch.sum((anchor - other) ** 2, dim=-1))  # <-
        """,
        """
        def contrastive_loss(a: Tensor, b: Tensor):
            gap = a - b
            squares = gap.pow(2).sum(dim=-1)
            return squares.sqrt()  # <-
        """,
        """
        class AngularMargin(nn.Module):
            def forward(self, x: Tensor):
                cosine = F.linear(F.normalize(x), F.normalize(self.weight))
                sine = torch.sqrt(1.0 - torch.pow(cosine, 2))  # <-
                return torch.acos(cosine), sine  # <-
        """,
        """
        def angle(a: Tensor, b: Tensor):
            cos_sim = (a * b).sum(-1) / a.norm(dim=-1)
            return torch.arccos(cos_sim)  # <-
        """,
        """
        def angles(a: Tensor, b: Tensor):
            return torch.acos(a @ b.T), a.dot(b).acos(), torch.acos(F.cosine_similarity(a, b))  # <-
        """,
        """
        def standardise(x: Tensor, dim: int):
            std, mean = torch.std_mean(x, dim, keepdim=True)
            return (x - mean) / std  # <-
        """,
        """
        def stretch(x: Tensor):
            low, high = x.aminmax()
            return (x - low) / (high - low)  # <-
        """,
        """
        def stretch(heat: Tensor):
            heat = heat - heat.min()
            heat = heat / heat.max()  # <-
            return heat

        def in_place(heat: Tensor):
            heat -= torch.min(heat)
            heat /= torch.max(heat)  # <-
            return heat
        """,
        """
        def bernoulli(d: Tensor, eps: float):
            return -torch.log(d + eps) - torch.log(1 - d)  # <-
        """,
        """
        def focal(p: Tensor, t: Tensor):
            return -t * torch.log(p) - (1 - t) * torch.log(1.0 - p + 1e-6)  # <-
        """,
        """
        def iou(a: Tensor, b: Tensor):
            union = (a | b).sum(-1)
            return (a & b).sum(-1) / union  # <-
        """,
        """
        def stability(masks: Tensor, offset: float):
            inner = (masks > offset).sum(-1, dtype=torch.int16).sum(-1, dtype=torch.int32)
            outer = (masks > -offset).sum(-1, dtype=torch.int16).sum(-1, dtype=torch.int32)
            return inner / outer  # <-
        """,
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                mean = x.mean(-1, keepdim=True)
                std = torch.var(x, dim=-1, keepdim=True).sqrt()
                a = (x - mean) / (std + self.eps)  # <-
                b = (x - mean) / (torch.sqrt(x.var(-1, keepdim=True)) + 1e-5)  # <-
                c = (x - mean) / (x.var(-1, keepdim=True) ** 0.5).clamp(min=1e-5)  # <-
                rms = torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True))
                d = x / (rms + 1e-6) * self.weight  # <-
                e = x / torch.clamp(rms, min=self.eps)  # <-
                std = ((x - mean) ** 2).mean(-1, keepdim=True).sqrt() + 1e-6
                return a, b, c, d, e, (x - mean) / std  # <-
        """,
        """
        class ChannelNorm(nn.Module):
            def forward(self, x: Tensor):
                var, mean = torch.var_mean(x, dim=1, keepdim=True)
                x = (x - mean) / (var.sqrt() + self.eps)  # <-
                return x * self.weight
        """,
        """
        def instance_norm(feat: Tensor, eps: float = 1e-5):
            var = feat.view(4, 4, -1).var(dim=2)
            std = var.sqrt().view(4, 4, 1, 1)
            return (feat - feat.mean()) / (std + eps)  # <-
        """,
    ),
    "DT406": (
        """
        class Novo(torch.optim.Optimizer):
            def step(self):
                g_16, g_32 = [], []
                for p in self.params:
                    if p.dtype == torch.float16:
                        g_16.append(p.grad.data)
                    else:
                        g_32.append(p.grad.data)
                wide = [torch.sum(torch.pow(g, 2)).sqrt().item() for g in g_32]
                return [torch.sum(torch.pow(g, 2)).sqrt().item() for g in g_16], wide  # <-
        """,
        """
        def norms(params):
            picked = []
            for p in params:
                if p.dtype == torch.half:
                    picked.append(p.grad)
            return [(grad * grad).sum().sqrt() for grad in picked]  # <-
        """,
        """
        def total_norm(params):
            grads = [p.grad for p in params]
            if len(grads) == 1:
                return torch.norm(grads[0])  # <-
            return torch.norm(torch.stack([torch.norm(g) for g in grads]))  # <-

        def narrow(x):
            return x.to(torch.float16)
        """,
        """
        def norm(fp16_grads):
            total = 0.0
            for g in fp16_grads:
                total += g.square().sum().item()  # <-
            return total ** 0.5, torch.float16
        """,
    ),
    "DT408": (
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                var = torch.var(x, dim=-1, unbiased=False, keepdim=True)
                mean = torch.mean(x, dim=-1, keepdim=True)
                return (x - mean) * (var + self.eps).rsqrt() * self.g  # <-
        """,
        """
        class ChannelNorm(nn.Module):
            def forward(self, x: Tensor):
                mean, var = x.mean(1, keepdim=True), x.var(1, keepdim=True, correction=0)
                return self.weight * ((x - mean) / torch.sqrt(var + 1e-5))  # <-
        """,
        """
        class RMSNorm(nn.Module):
            def forward(self, x: Tensor):
                return x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6)  # <-
        """,
        """
        def group_norm(x: Tensor):
            var, mean = torch.var_mean(x, dim=(2, 3), keepdim=True)
            centred = x - mean
            inv = (var + 1e-5) ** -0.5
            return centred * inv  # <-
        """,
    ),
    "DT410": (
        """
        class Rotary(nn.Module):
            def forward(self, x: Tensor, t):
                freqs = torch.outer(t, self.inv_freq.to(x.dtype))  # <-
                return freqs
        """,
        """
        class Model(nn.Module):
            def __init__(self, rope_inv_freqs, config):
                super().__init__()
                self.register_buffer("freqs", rope_inv_freqs.to(self.activation_dtype.value))  # <-
                self.inverse_frequencies = rope_inv_freqs.half()  # <-
        """,
        """
        def apply_rotary(freqs: Tensor, t: Tensor):
            if t.ndim == 3:
                freqs = freqs[-t.shape[-2]:].to(t)  # <-
            return t * freqs.cos() + t.flip(-1) * freqs.sin()
        """,
        """
        def fixed(x: Tensor, positions: Tensor, inv_freq: Tensor):
            sinusoid_inp = torch.einsum("i,j->ij", positions, inv_freq).type_as(x)  # <-
            return torch.sin(sinusoid_inp), torch.cos(sinusoid_inp)
        """,
        """
        def waves(freqs: Tensor):
            return freqs.to(torch.bfloat16).cos()  # <-
        """,
    ),
    "DT417": (
        """
        class Atoms(nn.Module):
            def act(self, x):
                pmfs = torch.softmax(self.net(x).view(len(x), 2, 3), dim=2)
                return pmfs.argmax(), pmfs[torch.arange(len(x)), 0]

            def policy(self, x):
                return F.softmax(self.net(x), dim=-1)

        def train(net, x, target, action):
            _, old = net.act(x)
            loss = -(target * old.log()).sum(-1)  # <-
            p = net.policy(x)
            return loss + torch.log(p)  # <-
        """,
        """
        def kl(log_probs: Tensor, ref: Tensor):
            log_ratio = ref - log_probs
            return log_ratio.exp() - 1 - log_ratio  # <-
        """,
        """
        def kl(new: Tensor, ref: Tensor):
            return torch.exp(ref - new) - (ref - new) - 1  # <-
        """,
        """
        def generator_loss(fake: Tensor, logits: Tensor):
            d = torch.sigmoid(fake)
            p = logits.softmax(-1)
            return torch.log(1 - d).mean() + torch.log1p(-p).sum() + (1 - fake.sigmoid()).log()  # <-
        """,
        """
        def pick(y: Tensor, eta: float, n: int):
            z = (y - y.mean()) / y.std()
            weights = torch.exp(eta * z)  # <-
            return torch.multinomial(weights, n)
        """,
        """
        def sample(logits: Tensor, temperature: float):
            return torch.multinomial(torch.exp(logits / temperature).view(-1), 1)  # <-
        """,
    ),
}

GOOD = {
    "DT401": (
        """
        def cost(x: Tensor, keep: Tensor, price: Tensor):
            return price - (1 - x) * 1e9, x * keep - 1e4 * (1 - keep), x * keep + 1e9 * (2 - keep)
        """,
        """
        def extend(attn_mask: Tensor, ids: Tensor, n):
            wide = attn_mask.float()
            return F.pad(attn_mask, (0, n), value=-1e4), F.pad(ids, (0, n), value=100000), F.pad(wide, (0, n), value=-1e9)
        """,
        """
        def extend(mask_ids: Tensor, score_idx, keep: Tensor, valid: Tensor, mask: Tensor, n):
            mask = mask.long()
            a = F.pad(mask_ids, (0, n), value=-100000), F.pad(score_idx, (0, n), value=-1e9)
            b = F.pad(keep, (0, n), value=100000), F.pad(valid.cumsum(-1), (0, n), value=1e6)
            return a, b, F.pad(mask, (0, n), value=-1e9)
        """,
        """
        import sys

        def ranks(scores, mask):
            order = scores.argsort()
            return order.masked_fill(mask, sys.maxsize)
        """,
    ),
    "DT403": (
        """
        def scale(logits: Tensor, temperature: Tensor):
            temperature[temperature <= 0] = 1e-8  # a setting, and no half
            return (logits / temperature).half()
        """,
        """
        def unit(q: Tensor, k: Tensor):
            with torch.autocast("cuda", dtype=torch.float16):  # takes the norms in float32
                q = F.normalize(q, dim=-1, eps=1e-12)
                return F.cosine_similarity(q, k, dim=-1, eps=1e-8)
        """,
        """
        def unit(q: Tensor):
            wide = F.normalize(q.float(), dim=-1, eps=1e-12)
            near = q / torch.max(q.norm(dim=-1), 1e-4 * torch.ones_like(q)), torch.max(q, 1e-9 * torch.ones_like(q))
            return wide, F.normalize(q, dim=-1, eps=1e-5), F.normalize(q, dim=-1), near
        """,
        """
        def rotation(a: Tensor, b: Tensor):
            c = torch.dot(a, b)
            return c < -1 + 1e-6, c.double() > 1 - 1e-12, c > 1 - 0.5
        """,
        """
        def near(loss: float, n: int):
            return loss < 1 - 1e-9 or n > 1 + 1e-12
        """,
        """
        EPS = 1e-6

        def encode(w: Tensor, eps: float = EPS):
            w += eps
            return torch.log(w)
        """,
        """
        def weights(norm: Tensor, x: Tensor, eps: float):
            norm[norm == 0] = 1e-5
            norm[norm < 1] = eps
            x = x.float()
            return torch.where(x == 0, 1e-8, x), norm.masked_fill(norm == 0, 1.0)
        """,
        """
        def other(p: Tensor, q: Tensor):
            return torch.where(q == 0, 1e-9, p)  # what is chosen for another reason
        """,
    ),
    "DT402": (
        """
        import numpy as np

        def convert(x, peak, dtype):
            return (x / peak).astype(dtype)

        wide = np.full(3, np.iinfo(np.int32).max, dtype=np.int64)
        same = np.random.randint(0, np.iinfo(np.uint32).max, dtype=np.uint32)
        real = torch.full((3,), torch.iinfo(torch.int64).max, dtype=torch.float32)
        zero = torch.full((3,), torch.iinfo(torch.uint8).min, dtype=torch.int8)
        ranged = rescale(wide, low=np.iinfo(np.int32).min, high=np.iinfo(np.int32).max, dtype=np.int16)
        louder = convert(wide, np.iinfo(np.int64).max, dtype=np.int16)
        quieter = convert(wide, peak=np.iinfo(np.int64).max, dtype=np.int16)
        kept = np.array([1, 2], dtype=np.int64).clip(0, np.iinfo(np.int8).max)
        """,
    ),
    "DT404": (
        """
        def kept_from_zero(x: Tensor, v: Tensor, target: Tensor, eps: float = 1e-8):
            a = (x / v.sqrt() + eps).log()
            scale = x.abs().mean() / x.std() + eps
            near = x / x.norm() + eps > target
            return a, target / scale, near, 1.0 / (v.rsqrt() + eps)
        """,
        """
        def denominator(v: Tensor, correction: float, eps=1e-8):
            return v.sqrt() / math.sqrt(correction) + eps, v.sqrt() / correction**0.5 + eps

        def scaled(x: Tensor, dim: int, eps=1e-8):
            return x / dim**0.5 + eps, x / (x.norm() + eps) + eps, x / x.std().clamp(min=1e-5) + eps, (x + eps).rsqrt() + eps
        """,
        """
        def noisy(mean: Tensor, variance: Tensor, noise: Tensor, delta=1e-6):
            eps = torch.randn_like(mean)
            return mean / variance.sqrt() + eps, mean / variance.sqrt() + noise, mean / variance.sqrt() + delta

        def noised(mean: Tensor, variance: Tensor, eps: Tensor):
            return mean / variance.sqrt() + eps, mean / variance.sqrt() + 0.5
        """,
        """
        class BatchNorm(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.register_buffer("running_var", torch.ones(n) + 1e-5)

            def forward(self, x):
                return x * self.running_var.rsqrt()

        class WithEpsilon(nn.Module):
            def forward(self, x):
                return x * (self.running_var + self.eps).rsqrt()

        class Clamped(nn.Module):
            def forward(self, x):
                self.running_var.clamp_min_(self.least)
                return x * self.running_var.rsqrt()

        def asked(x, running_var: Tensor):
            return x * running_var.rsqrt() if (running_var > 0).all() else x

        def shown(bn):
            return bn.running_var.sqrt().mean()

        def fused(conv, bn):
            running_var = bn.running_var + bn.eps
            return conv.weight / running_var.sqrt()
        """,
        """
        def masked_mean(x, mask):
            if mask.sum() == 0:
                return x.sum() * 0
            return (x * mask).sum() / mask.sum()

        def masked_mean_of_rows(x, mask):
            count = mask.sum(-1)
            count[count == 0] = 1
            return (x * mask).sum(-1) / count

        def masked_avg(x, mask):
            return (x * mask).sum(-1) / torch.clamp_min(mask.sum(-1), 1)

        def mean_over_mask(x, mask):
            mask = mask.float() + 1e-8
            return (x * mask).sum() / mask.sum()

        def masked_average(x, mask):
            mean = (x * mask).sum(-1) / mask.sum(-1)
            return mean.masked_fill(~mask.any(-1), 0)

        def loss(x, mask):
            return (x * mask).sum() / mask.sum()
        """,
        """
        def masked_mean(x, mask):
            return (x * mask).sum() / mask.sum()  # nobody here knows that it may be 0

        def masked_average(x, mask):
            return (x * mask).sum() / mask.sum()

        def asks_first(x, mask):
            if mask.sum() == 0:
                return 0.0
            return masked_average(x, mask)
        """,
        """
        def std_over_ranks(local: Tensor, global_mean, count):
            squares = torch.sum((local - global_mean) ** 2)
            torch.distributed.all_reduce(squares)
            return torch.sqrt(squares / count)
        """,
        """
        class Triplet(nn.Module):
            def forward(self, a: Tensor, b: Tensor):
                near = torch.sqrt(torch.sum((a - b) ** 2, dim=-1) + 1e-12)
                far = ((a - b) ** 2).sum(-1).clamp(min=1e-12).sqrt()
                return near, far, torch.linalg.vector_norm(a - b, dim=-1)
        """,
        """
        def evaluate(a: Tensor, b: Tensor):
            return ((a - b) ** 2).mean().sqrt()

        def rmse_loss(a: Tensor, b: Tensor):
            with torch.no_grad():
                return ((a - b) ** 2).mean().sqrt()

        def energy(a: Tensor):
            return torch.sqrt(a.abs()), torch.sqrt(a.sum()), torch.sqrt((a - 1) ** 2)

        def report_distance(a: Tensor, b: Tensor):
            return ((a - b) ** 2).sum().sqrt().item()
        """,
        """
        class AngularMargin(nn.Module):
            def forward(self, x: Tensor, y: Tensor, alpha_bar: Tensor):
                cosine = F.linear(F.normalize(x), F.normalize(y)).clamp(-1 + 1e-7, 1 - 1e-7)
                sine = torch.sqrt(1.0 - cosine**2)
                noise = torch.sqrt(1 - alpha_bar**2)
                return torch.acos(cosine), sine, noise, torch.sqrt((1 - y**2).clamp(0, 1))
        """,
        """
        def angles(u: Tensor, z: Tensor, r: Tensor):
            return torch.acos(1 - 2 * u), torch.acos(z / r), math.acos(0.5)
        """,
        """
        def angle(a: Tensor, b: Tensor):
            dot = (a * b).sum(-1)
            if dot > 0.9995:
                return a
            return torch.acos(dot)
        """,
        """
        def standardise(x: Tensor, y: Tensor, dim: int):
            std, mean = torch.std_mean(x, dim, keepdim=True)
            wide, _ = torch.std_mean(y)
            return (x - mean) / (std + 1e-6), (x - mean) / wide, x / x.max()
        """,
        """
        def stretch(heat: Tensor, other: Tensor):
            heat = heat - heat.min()
            a, b = heat / (heat.max() + 1e-6), other / other.max()
            heat = heat.exp()
            noise = torch.rand(3)
            noise -= noise.min()
            noise /= noise.max()
            return a, b, heat / heat.max(), noise
        """,
        """
        def stretch(heat: Tensor):
            heat = heat - heat.min()
            if heat.max() > 0:
                heat = heat / heat.max()
            return heat
        """,
        """
        class RMSELoss(nn.Module):
            def forward(self, prediction: Tensor, target: Tensor):
                mean = torch.sqrt(torch.mean((prediction - target) ** 2))  # NaN only if all of them are met exactly
                return torch.sqrt(F.mse_loss(prediction, target)) + mean + ((prediction - target) ** 2).sum().sqrt()

            def report(self, prediction: Tensor, target: Tensor):
                return ((prediction - target) ** 2).sum(-1).sqrt()
        """,
        """
        def triplet_loss(a: Tensor, b: Tensor):
            with torch.set_grad_enabled(False):
                return ((a - b) ** 2).sum(-1).sqrt()
        """,
        """
        def row_loss(a: Tensor, b: Tensor):
            squares = ((a - b) ** 2).sum(-1)
            squares += 1e-12
            return squares.sqrt()
        """,
        """
        def stable_cos(a: Tensor, b: Tensor):
            return F.cosine_similarity(a, b).clamp(-1, 1)

        def angle(a: Tensor, b: Tensor, geometry):
            cosine = stable_cos(a, b)
            return torch.acos(cosine), torch.acos(geometry.dot(a, b)), torch.sqrt(1 - cosine**2)
        """,
        """
        def angle(a: Tensor, b: Tensor):
            theta = torch.acos((a * b).sum(-1))
            theta[torch.isnan(theta)] = 0
            return theta
        """,
        """
        def bernoulli(d: Tensor, eps: float):
            loss = -torch.log(d + eps) - torch.log(1 - d)
            return torch.where(d == 1, 0, loss)
        """,
        """
        def bernoulli(d: Tensor, q: Tensor, eps: float):
            q = q.clamp(eps, 1 - eps)
            return -torch.log(d + eps) - torch.log(1 - d + eps) - torch.log(q) - torch.log(1 - q), (1 - d.abs()).log()
        """,
        """
        def iou(a: Tensor, b: Tensor):
            union = (a | b).sum(-1)
            return (a & b).sum(-1) / union.clamp(min=1), (a == b).sum() / a.numel(), (a & b).sum() / (union + 1)
        """,
        """
        def segment(mask: Tensor, other: Tensor, at: float):
            area, whole = (mask & other).sum(), (mask > at).sum()
            exists = area > 0 and whole > 0
            stable = torch.where(whole > 0, area / whole, 1.0)
            at = at.sum()
            at = at / at  # a name that is made of itself
            return stable, area / whole if exists else 0, at
        """,
        """
        import numpy as np
        import pandas as pd

        def share(a, b, frame: pd.DataFrame, mask: Tensor, hit: Tensor):
            a, b = np.asarray(a), np.asarray(b)
            by_frame = (frame.x > 1).sum() / (frame.y > 0).sum()
            return (a & b).sum() / (a | b).sum(), by_frame
        """,
        """
        def accuracy(predicted: Tensor, target: Tensor, mask: Tensor):
            if not mask.any():
                return torch.zeros(())
            return ((predicted == target) & mask).sum() / (mask & (target >= 0)).sum()
        """,
        """
        def iou(a: Tensor, b: Tensor):
            union = (a | b).sum()
            if union == 0:
                return 0
            return (a & b).sum() / union
        """,
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
                a = (x - mean) / (x.std(-1, keepdim=True) + self.eps)
                b = (x - mean) / var.add(self.eps).sqrt()
                c = (x - mean) / (var + 1e-5).sqrt(), (x - mean) / torch.sqrt(var.clamp(min=1e-6)).clamp(min=1e-3)
                d = (x - mean) / (var.sqrt().detach() + 1e-5)
                e = (x - mean) / (self.running_var.sqrt() + 1e-5)
                f = (x - mean) / (var + 1e-5), (x - mean) / (x.norm() + 1e-5), var.sqrt() + 1e-5
                return a, b, c, d, e, f
        """,
        """
        class InputNorm(nn.Module):
            def forward(self, waveform: Tensor, rewards: Tensor):
                a = waveform / (waveform.var(-1).sqrt() + 1e-5)
                return a, rewards / (torch.sqrt(rewards.var()) + 1e-8)
        """,
        """
        @torch.inference_mode()
        def layer_norm(x: Tensor):
            return x / (x.var(-1).sqrt() + 1e-5)
        """,
        """
        def normalize(x: Tensor):
            return (x - x.mean()) / (x.var().sqrt() + 1e-5)
        """,
        """
        class Whitened(nn.Module):
            def forward(self, x: Tensor):
                with torch.no_grad():
                    std = x.var(-1).sqrt()
                std = torch.where(std == 0, 1, std)
                return x / (std + 1e-6)
        """,
        """
        import numpy as np

        class NumpyNorm(nn.Module):
            def forward(self, x):
                x = x.cpu().numpy()
                return x / (np.sqrt(x.var(0)) + 1e-6)
        """,
        """
        def nrmse_loss(prediction: Tensor, target: Tensor, y: Tensor):
            gap = (prediction - target).abs().mean()
            return gap / (target.var().sqrt() + 1e-6), gap / (torch.sqrt(torch.var(y)) + 1e-6)
        """,
    ),
    "DT406": (
        """
        def norms(fp16_grads, grads):
            wide = [g.float().pow(2).sum() for g in fp16_grads]
            half = [g.pow(2).sum(dtype=torch.float32) for g in fp16_grads]
            return wide, half, [g.pow(2).sum() for g in grads], [g.numel() for g in fp16_grads], torch.float16
        """,
        """
        def norms(params):
            picked = []
            for p in params:
                if p.dtype != torch.float16:
                    picked.append(p.grad)
            return [(grad * grad).sum().sqrt() for grad in picked]
        """,
    ),
    "DT408": (
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                x = x.float()
                var, mean = torch.var_mean(x, dim=-1, keepdim=True)
                return (x - mean) * (var + self.eps).rsqrt()
        """,
        """
        class LayerNorm(nn.Module):
            def forward(self, x: Tensor):
                eps = 1e-5 if x.dtype == torch.float32 else 1e-3
                var = torch.var(x, dim=-1, unbiased=False, keepdim=True)
                mean = torch.mean(x, dim=-1, keepdim=True)
                return (x - mean) * (var + eps).rsqrt()
        """,
        """
        class Spread(nn.Module):
            def forward(self, x: Tensor):
                var = x.var(1, keepdim=True)
                return x - x.mean(1, keepdim=True), var.sqrt()
        """,
        """
        class NormalModel(nn.Module):
            def forward(self, x: Tensor):
                return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()

        def normal_advantage(x: Tensor):
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()

        def normalize_images(x: Tensor):
            return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()
        """,
        """
        class NormStatistics(nn.Module):
            def forward(self, x: Tensor):
                var = x.var(1, keepdim=True)
                return x * var, x / (var + 1)
        """,
    ),
    "DT410": (
        """
        class Rotary(nn.Module):
            def forward(self, x: Tensor):
                t = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)
                freqs = torch.outer(t, self.inv_freq.to(t.dtype))
                same = self.inv_freq.to(x.device), self.inv_freq.to(torch.float32), self.inv_freq.to(x.dtype).float()
                return freqs.cos().to(x.dtype), same
        """,
        """
        def apply_rotary(freqs: Tensor, t: Tensor, device):
            freqs = freqs.to(device)
            wide = freqs.to(t.dtype).float()
            return t * freqs.cos().to(t), wide.sin()
        """,
        """
        def waves(x: Tensor, hidden: Tensor, angles: Tensor, theta: Tensor, phase: Tensor):
            # nothing says that these count positions
            shown = angles.to(x.dtype).cos(), theta.to(x.dtype).sin(), phase.to(x.dtype).sin()
            return hidden.to(x.dtype).cos(), shown
        """,
    ),
    "DT417": (
        """
        class Atoms(nn.Module):
            def act(self, x):
                p = torch.softmax(self.net(x), dim=2)
                return p.argmax(), p

            def safe(self, x):
                return F.softmax(self.net(x), dim=-1).clamp(min=1e-8)

            def maybe(self, x):
                if x is None:
                    return None
                return torch.softmax(x, -1)

            def forward(self, x):
                return self.maybe(x)

        def train(net, x):
            _, old = net.act(x)
            old = old.clamp(min=1e-5)
            first, _ = net.act(x)
            kept, maybe, out = net.safe(x), net.maybe(x), net(x)
            return old.log(), first.log(), kept.log(), maybe.log(), out.log()

        def changed(net, x):
            _, p = net.act(x)
            p.clamp_(min=1e-6)
            return p.log()

        def added(net, x, action):
            _, p = net.act(x)
            return (p + 1e-8).log(), torch.log(torch.clamp(p, 1e-8)), torch.log(p[action]), p.gather(1, action).log()
        """,
        """
        def kl(log_probs: Tensor, ref: Tensor):
            log_ratio = (ref - log_probs).clamp(-10, 10)
            small = torch.expm1(log_ratio) - log_ratio
            return log_ratio.exp() - 1 - log_ratio, small, log_ratio.exp() - 1, ref.exp() - 1 - log_ratio
        """,
        """
        def safe(x: Tensor, p: Tensor):
            d = torch.sigmoid(x)
            e = d.clamp(max=1 - 1e-6)
            near = torch.sigmoid(x.clamp(-10, 10))
            logits = x.clamp(-5, 5)
            kept = torch.log(1 - near), torch.log(1 - torch.softmax(logits, -1))
            return kept, torch.log(1 - d + 1e-6), torch.log(1 - e), torch.log(1 - p), torch.log(2 - d), torch.log1p(d)
        """,
        """
        def drift(log_ratio: Tensor):
            return (log_ratio.exp() - 1 - log_ratio).mean().item()
        """,
        """
        def sample(logits: Tensor, log_probs: Tensor, output: Tensor):
            a = torch.multinomial((logits - logits.max()).exp(), 1)
            b = torch.multinomial(torch.exp(log_probs / 0.7), 1)
            c = torch.multinomial(output.div(0.7).exp(), 1)  # perhaps the logarithm of a softmax
            logits = logits.log_softmax(-1)
            return a, b, c, torch.multinomial(torch.exp(logits), 1), torch.multinomial(logits.softmax(-1), 1)
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


@pytest.mark.parametrize(
    ("head", "flow"),
    [
        ("def range_loss(x: Tensor):", True),
        ("@torch.no_grad()\ndef range_loss(x: Tensor):", False),
        ("@torch.inference_mode()\ndef range_loss(x: Tensor):", False),
        ("def stretch(x: Tensor):", False),
    ],
)
def test_gradients_are_spoken_of_only_where_they_flow(head: str, flow: bool) -> None:
    (found,) = BENCH.found("DT404", f"{head}\n    return (x - x.min()) / (x.max() - x.min())\n")
    assert ("gradients" in found.message) == flow
    assert "the division gives NaN, 0/0" in found.message
