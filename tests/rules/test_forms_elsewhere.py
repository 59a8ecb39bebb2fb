"""Forms of the kinds of bugs that were met in repositories the rules had not been written beside, and right code like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import einsum, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT211": (
        """
        class Quantizer(nn.Module):
            def __init__(self, codebook):
                super().__init__()
                self.codebook = nn.Parameter(codebook)

            @torch.autocast("cuda", enabled=False)
            def forward(self, x):
                flat = x.flatten(0, 1)
                return flat @ self.codebook.t()  # <-
        """,
        """
        class Gate(nn.Module):
            def __init__(self, width, experts):
                super().__init__()
                self.proj = nn.Linear(width, experts)

            def forward(self, hidden):
                with torch.autocast(hidden.device.type, enabled=False):
                    logits = self.proj(hidden)  # <-
                return logits.softmax(-1)
        """,
        """
        class Head(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.table = nn.Parameter(torch.randn(8, width))

            def forward(self, x):
                with torch.autocast(x.device.type, enabled=False):
                    return einsum("b d, n d -> b n", x, self.table)  # <-
        """,
    ),
    "DT301": (
        """
        class Packed(nn.Module):
            def forward(self, x):
                weight = unpack(self.weight, self.scale)
                return F.linear(x.half(), weight, self.bias)  # <-
        """,
        """
        class Head(nn.Module):
            def forward(self, x):
                return torch.matmul(x.to(torch.bfloat16), self.weight)  # <-
        """,
        """
        class Filter(nn.Module):
            def forward(self, x):
                return F.conv1d(x.to(dtype=torch.float16), self.kernel)  # <-
        """,
    ),
    "DT303": (
        """
        def joint(cls_score: torch.Tensor, obj_score: torch.Tensor, half: bool):
            return cls_score.float().unsqueeze(0).sigmoid() * obj_score.unsqueeze(0).sigmoid()  # <-
        """,
        """
        def gap(p: torch.Tensor, q: torch.Tensor, dtype):
            return p.log_softmax(-1) - q.float().log_softmax(-1)  # <-
        """,
        """
        def ratio(new_logp: torch.Tensor, old_logp: torch.Tensor, dtype):
            return (new_logp.float().sum(-1) - old_logp.sum(-1)).exp()  # <-
        """,
    ),
    "DT304": (
        """
        def fuse(conv, bn, fused):
            scale = torch.diag(bn.weight / torch.sqrt(bn.running_var + bn.eps))
            bias = torch.zeros(conv.weight.size(0), device=conv.weight.device) if conv.bias is None else conv.bias  # <-
            fused.bias.data.copy_(torch.mm(scale, bias.reshape(-1, 1)).reshape(-1))
        """,
        """
        def fold(first, second):
            bias = first.bias if first.bias is not None else torch.zeros(first.weight.shape[0], device=first.weight.device)  # <-
            return torch.matmul(second.weight, bias)
        """,
        """
        def shift(layer, x):
            bias = torch.zeros(layer.weight.size(0), device=layer.weight.device) if layer.bias is None else layer.bias  # <-
            return F.linear(x, layer.weight, None) + layer.rotation @ bias
        """,
    ),
    "DT311": (
        """
        class Block(nn.Module):
            def init(self, module):
                nn.init.orthogonal_(module.key.weight)  # <-
                module.value.weight.data = nn.init.orthogonal_(module.value.weight.data.to(torch.float32))
        """,
        """
        class Mixer(nn.Module):
            def reset(self, ratio):
                self.decay.data = torch.full((8,), ratio).to(self.decay.dtype)
                nn.init.orthogonal_(self.r_proj.weight)  # <-
                nn.init.orthogonal_(self.k_proj.weight, gain=0.1)  # <-
        """,
        """
        def initialize(module):
            original = module.head.weight.dtype
            module.head.weight.data = nn.init.orthogonal_(module.head.weight.float()).to(original)
            nn.init.orthogonal_(module.body.weight, gain=2.0)  # <-
        """,
    ),
    "DT314": (
        """
        def weights(confusion: torch.Tensor):
            steps = torch.arange(confusion.shape[0], device=confusion.device)
            return (steps[:, None] - steps[None]).abs().double()  # <-
        """,
        """
        def normalized(x: torch.Tensor):
            return F.normalize(x.double(), dim=-1).to(x.dtype)  # <-
        """,
        """
        def angle(x: torch.Tensor, y: torch.Tensor):
            return torch.atan2(x.double(), y.float())  # <-
        """,
    ),
    "DT404": (
        """
        def cosine(x: torch.Tensor, y: torch.Tensor):
            return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))  # <-
        """,
        """
        def angle(preds: torch.Tensor, target: torch.Tensor):
            dot = (preds * target).sum(dim=1)
            preds_norm = preds.norm(dim=1)
            target_norm = target.norm(dim=1)
            return torch.clamp(dot / (preds_norm * target_norm), -1, 1).acos()  # <-
        """,
        """
        def similarity(query: torch.Tensor, memory: torch.Tensor):
            lengths = torch.linalg.norm(query, dim=-1) * torch.linalg.norm(memory, dim=-1)
            return torch.sum(query * memory, dim=-1) / lengths  # <-
        """,
    ),
    "DT405": (
        """
        def attend(scores: torch.Tensor, q_mask, k_mask):
            mask = q_mask[:, None, :, None] & k_mask[:, None, None, :]
            return scores.masked_fill(~mask, float("-inf")).softmax(-1)  # <-
        """,
        """
        def attend(scores: torch.Tensor, valid):
            rows, columns = 1, 2
            both = valid.unsqueeze(-1) * valid.unsqueeze(-2)
            scores.masked_fill_(both == 0, -float("inf"))  # <-
            return F.softmax(scores, dim=-1)
        """,
        """
        class Attention(nn.Module):
            def forward(self, dots, mask, context_mask=None):
                q_mask = rearrange(mask, "b i -> b () i ()")
                k_mask = rearrange(mask if context_mask is None else context_mask, "b j -> b () () j")
                both = q_mask * k_mask
                dots.masked_fill_(~both, float("-inf"))  # <-
                return dots.softmax(dim=-1)
        """,
    ),
    "DT406": (
        """
        def total_norm(params, norm_type: float = 2.0):
            return torch.norm(torch.stack([torch.norm(p.grad.detach(), norm_type) for p in params]), norm_type)  # <-
        """,
        """
        def clip(params, max_norm: float):
            grads = [p.grad for p in params if p.grad is not None]
            norm = torch.stack([g.norm() for g in grads]).norm()  # <-
            for g in grads:
                g.mul_(max_norm / (norm + 1e-6))
        """,
        """
        def global_norm(parameters, device):
            norms = torch.linalg.vector_norm(
                torch.stack([torch.linalg.vector_norm(p.grad).to(device) for p in parameters])  # <-
            )
            return norms
        """,
    ),
    "DT501": (
        """
        def cast(x):
            if torch.is_autocast_enabled():
                x = x.to(torch.get_autocast_gpu_dtype())  # <-
            return x
        """,
        """
        def on_cpu():
            return torch.is_autocast_cpu_enabled() and torch.get_autocast_cpu_dtype() == torch.bfloat16  # <-
        """,
        """
        from torch import set_autocast_gpu_dtype

        set_autocast_gpu_dtype(torch.bfloat16)  # <-
        """,
    ),
}

GOOD = {
    "DT211": (
        """
        class Quantizer(nn.Module):
            def __init__(self, codebook):
                super().__init__()
                self.codebook = nn.Parameter(codebook)

            @torch.autocast("cuda", enabled=False)
            def forward(self, x):
                flat = x.float().flatten(0, 1)
                return flat @ self.codebook.t()
        """,
        """
        class Gate(nn.Module):
            def __init__(self, width, experts):
                super().__init__()
                self.proj = nn.Linear(width, experts)

            def forward(self, hidden):
                hidden = hidden.to(self.proj.weight.dtype)
                with torch.autocast(hidden.device.type, enabled=False):
                    logits = self.proj(hidden)
                return logits.softmax(-1)
        """,
        """
        class Score(nn.Module):
            @torch.autocast("cuda", enabled=False)
            def forward(self, x, y):
                return x @ y.t()
        """,
    ),
    "DT301": (
        """
        class Packed(nn.Module):
            def forward(self, x):
                return F.linear(x.to(self.weight.dtype), self.weight, self.bias)
        """,
        """
        class Packed(nn.Module):
            def forward(self, x):
                return F.linear(x.half(), self.weight.half())
        """,
        """
        class Attention(nn.Module):
            def forward(self, scores, value):
                return torch.matmul(scores.half(), value)
        """,
    ),
    "DT303": (
        """
        def joint(cls_score: torch.Tensor, obj_score: torch.Tensor, dtype):
            return cls_score.float().unsqueeze(0).sigmoid() * obj_score.float().unsqueeze(0).sigmoid()
        """,
        """
        def masked(token_mask: torch.Tensor, token_scores: torch.Tensor, dtype):
            return (token_mask.float().unsqueeze(-1) * token_scores.unsqueeze(-1)).sum()
        """,
        """
        def loss(labels: torch.Tensor, logits: torch.Tensor, dtype):
            return labels.float().view(-1) * logits.view(-1)
        """,
    ),
    "DT304": (
        """
        def fuse(conv, bn, fused):
            scale = torch.diag(bn.weight / torch.sqrt(bn.running_var + bn.eps))
            bias = conv.weight.new_zeros(conv.weight.size(0)) if conv.bias is None else conv.bias
            fused.bias.data.copy_(torch.mm(scale, bias.reshape(-1, 1)).reshape(-1))
        """,
        """
        def fuse(conv, scale):
            bias = torch.zeros(conv.weight.size(0), dtype=conv.weight.dtype) if conv.bias is None else conv.bias
            return torch.mm(scale, bias.reshape(-1, 1))
        """,
        """
        def bias_of(conv):
            return torch.zeros(conv.weight.size(0), device=conv.weight.device) if conv.bias is None else conv.bias
        """,
    ),
    "DT311": (
        """
        class Block(nn.Module):
            def init(self, module):
                nn.init.orthogonal_(module.key.weight)
                nn.init.orthogonal_(module.value.weight)
        """,
        """
        class Block(nn.Module):
            def init(self, module):
                for layer in (module.key, module.value):
                    layer.weight.data = nn.init.orthogonal_(layer.weight.data.float()).to(layer.weight.dtype)
        """,
        """
        class Mixer(nn.Module):
            def reset(self, x):
                self.table = x.to(x.dtype)
                nn.init.orthogonal_(self.proj.weight)
        """,
    ),
    "DT314": (
        """
        def weights(confusion: torch.Tensor):
            steps = torch.arange(confusion.shape[0], device=confusion.device)
            return (steps[:, None] - steps[None]).abs().float()
        """,
        """
        def project(x: torch.Tensor, upcast_to_double: bool = True):
            if upcast_to_double:
                x = x.double()
            return F.normalize(x, dim=-1)
        """,
        """
        def to_double(x: torch.Tensor):
            return x.double() if x.is_floating_point() else x
        """,
    ),
    "DT404": (
        """
        def cosine(x: torch.Tensor, y: torch.Tensor):
            return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1)).clamp(min=1e-8)
        """,
        """
        def cosine(x: torch.Tensor, y: torch.Tensor):
            return (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1) + 1e-8)
        """,
        """
        def relative(z: torch.Tensor, x: torch.Tensor, y: torch.Tensor):
            return z / (x.norm(dim=-1) * y.norm(dim=-1))
        """,
    ),
    "DT405": (
        """
        def attend(scores: torch.Tensor, q_mask, k_mask):
            mask = q_mask[:, None, :, None] & k_mask[:, None, None, :]
            return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
        """,
        """
        def attend(scores: torch.Tensor, k_mask, causal):
            mask = k_mask[:, None, None, :] & causal
            return scores.masked_fill(~mask, float("-inf")).softmax(-1)
        """,
        """
        def attend(scores: torch.Tensor, q_mask, k_mask):
            mask = q_mask[:, None, :, None] & k_mask[:, None, None, :]
            return scores.masked_fill(~mask, float("-inf")).softmax(-1).masked_fill(~mask, 0.0)
        """,
    ),
    "DT406": (
        """
        def total_norm(params):
            norms = [torch.norm(p.grad.detach(), dtype=torch.float32) for p in params]
            return torch.norm(torch.stack([torch.norm(p.grad, 2, dtype=torch.float32) for p in params])), norms
        """,
        """
        def total_norm(params):
            return torch.norm(torch.stack([torch.norm(p.grad.float()) for p in params]))
        """,
        """
        def train(model, scaler=torch.amp.GradScaler("cuda")):
            return torch.norm(torch.stack([torch.norm(p.grad) for p in model.parameters()]))
        """,
    ),
    "DT501": (
        """
        def cast(x):
            return x.to(torch.get_autocast_dtype(x.device.type)) if torch.is_autocast_enabled(x.device.type) else x
        """,
        """
        def enabled(device):
            try:
                return torch.is_autocast_enabled(device)
            except TypeError:
                return torch.is_autocast_cpu_enabled() if device == "cpu" else torch.is_autocast_enabled()
        """,
        """
        def dtype_of(device):
            if hasattr(torch, "get_autocast_dtype"):
                return torch.get_autocast_dtype(device)
            return torch.get_autocast_gpu_dtype()
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


def test_a_function_of_one_device_becomes_that_of_all() -> None:
    before = "torch.set_autocast_gpu_dtype(torch.float16)\non = torch.is_autocast_cpu_enabled()\n"
    after = 'torch.set_autocast_dtype("cuda", torch.float16)\non = torch.is_autocast_enabled("cpu")\n'
    assert BENCH.fixed("DT501", before) == after


def test_a_stand_in_gets_the_dtype_of_the_layer_it_stands_in_for() -> None:
    before = """
def fuse(conv, scale):
    bias = torch.zeros(conv.weight.size(0), device=conv.weight.device) if conv.bias is None else conv.bias
    return torch.mm(scale, bias[:, None])
"""
    assert "device=conv.weight.device, dtype=conv.weight.dtype)" in BENCH.fixed("DT304", before)
