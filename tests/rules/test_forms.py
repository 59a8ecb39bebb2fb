"""Further forms of the kinds of bugs, and code beside them that is right: as libraries, trainers and metrics write them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import torch\nimport torch.nn.functional as F\nfrom copy import deepcopy\nfrom torch import einsum, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT109": (
        """
        class Distance(nn.Module):
            def update(self, images: torch.Tensor):
                features = self.extractor(images).double()
                self.orig_dtype = features.dtype  # <-
                self.total += features.sum(dim=0)
        """,
        """
        def attend(q: torch.Tensor, k: torch.Tensor):
            q, k = q.contiguous(), k.contiguous()
            q = q.float()
            original_dtype = q.dtype  # <-
            return q.softmax(-1).to(original_dtype)
        """,
        """
        def normalize(x):
            x = x.float()
            input_dtype = x.dtype  # <-
            x = x - x.mean(-1, keepdim=True)
            return x.to(input_dtype)
        """,
    ),
    "DT111": (
        """
        def run(fn, args, half):
            if half:
                args = tuple(map(lambda t: t.half() if isinstance(t, torch.Tensor) else t, args))  # <-
            return fn(*args)
        """,
        """
        def exists(value):
            return value is not None

        def run(fn, *args):
            return fn(*map(lambda t: t.half() if exists(t) and torch.is_tensor(t) else t, args))  # <-
        """,
    ),
    "DT113": (
        """
        def dtype_of(cfg):
            return build(dtype=torch.float16 if cfg.load_in_8bit or cfg.fp16 or cfg.bf16 else torch.float32)  # <-
        """,
        """
        def merge(args, model):
            if args.bf16:
                model.to(dtype=torch.float16)  # <-
            return model
        """,
        """
        def prepare(args, model, dtype=None):
            if args.fp16 or args.bf16:
                model = model.half()  # <-
            return model.to(dtype)
        """,
        """
        def choose(precision):
            if precision == "bf16":
                dtype = torch.half  # <-
            else:
                dtype = torch.float32
            return dtype
        """,
    ),
    "DT114": (
        """
        class Adapter(nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model
                self.model_dtype = getattr(model, "dtype", None)  # <-

            def forward(self, x):
                return self.model(x.to(self.model_dtype))
        """,
    ),
    "DT120": (
        """
        def as_pair(array):
            assert array.dtype is ["complex64", "complex128"], array.dtype  # <-
            return array
        """,
        """
        def check(x: torch.Tensor):
            if x.dtype is not (torch.float16, torch.bfloat16):  # <-
                raise TypeError(x.dtype)
        """,
    ),
    "DT301": (
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.to_q = nn.Linear(dim, dim)
                self.to_kv = nn.Linear(dim, dim * 2)

            def forward(self, x, context):
                q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)
                attn = (q @ k.transpose(-1, -2)).softmax(dim=-1, dtype=torch.float32)
                return attn @ v  # <-
        """,
        """
        from einops import rearrange

        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.to_q = nn.Linear(dim, dim)
                self.to_kv = nn.Linear(dim, dim * 2)

            def forward(self, x, context):
                q, k, v = (self.to_q(x), *self.to_kv(context).chunk(2, dim=-1))
                q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=8), (q, k, v))
                attn = einsum("b h i d, b h j d -> b h i j", q, k).softmax(dim=-1, dtype=torch.float32)
                return einsum("b h i j, b h j d -> b h i d", attn, v)  # <-
        """,
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.qkv = nn.Linear(dim, dim * 3)

            def forward(self, x):
                q, k, v = self.qkv(x).chunk(3, dim=-1)
                attn = F.softmax((q @ k.mT).float(), dim=-1)
                return torch.matmul(attn, v)  # <-
        """,
    ),
    "DT304": (
        """
        def crop(x: torch.Tensor, size: int) -> torch.Tensor:
            out = torch.zeros(x.shape[0], size).to(x.device)  # <-
            for i in range(len(x)):
                out[i] = x[i, :size]
            return out
        """,
        """
        class Unpool(nn.Module):
            def forward(self, graph, feat: torch.Tensor, index):
                fine = torch.zeros((graph.num_nodes(), feat.size(-1)), device=feat.device)  # <-
                fine[: feat.size(0)] = feat
                return self.layer(graph, fine)
        """,
        """
        def pad(x: torch.Tensor, n: int) -> torch.Tensor:
            out = torch.full((n, x.shape[1]), 0.5, device=x.device)  # <-
            out[: x.shape[0]] = x.flip(0)
            return out
        """,
    ),
    "DT413": (
        """
        class ModelEMA:
            def __init__(self, model, decay=0.999):
                self.ema = deepcopy(model.module if hasattr(model, "module") else model).half()  # <-
                self.decay = decay

            def update(self, model):
                new = model.state_dict()
                for key, value in self.ema.state_dict().items():
                    value *= self.decay
                    value += (1 - self.decay) * new[key]
        """,
        """
        class Averager:
            def __init__(self, model, decay=0.999):
                self.ema = deepcopy(model).eval()
                if next(model.parameters()).is_cuda:
                    self.ema.half()  # <-
                self.decay = decay

            def update(self, model):
                for average, weight in zip(self.ema.parameters(), model.parameters()):
                    average.data.mul_(self.decay).add_(weight.data, alpha=1 - self.decay)
        """,
        """
        class Trainer:
            def average(self, model, decay):
                if self.moving_average is None:
                    self.moving_average = [p.detach().half() for p in model.parameters()]  # <-
                else:
                    for i, (avg, p) in enumerate(zip(self.moving_average, model.parameters())):
                        self.moving_average[i] = (1 - decay) * avg + decay * p.detach().half()
        """,
    ),
    "DT502": (
        """
        class Net(nn.Module):
            def forward(self, x):
                if isinstance(x, torch.ByteTensor):  # <-
                    x = x.float() / 255
                return self.body(x)
        """,
        """
        def step(self, timestep, sample):
            if isinstance(timestep, (torch.IntTensor, torch.LongTensor)):  # <-
                raise ValueError("give a timestep, not its index")
            return sample
        """,
        """
        class Gather(torch.autograd.Function):
            @staticmethod
            def forward(ctx, features: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
                _, channels, _ = features.size()
                output = torch.cuda.FloatTensor(index.size(0), channels, index.size(1))  # <-
                kernel(features, index, output)
                return output
        """,
    ),
}

GOOD = {
    "DT109": (
        """
        def attend(q: torch.Tensor):
            input_dtype = q.dtype
            q = q.float()
            dtype = q.dtype
            return (q * torch.ones(3, dtype=dtype)).to(input_dtype)
        """,
        """
        def sample(x: torch.Tensor):
            original_dtype = x.dtype
            x = x.double()
            return x.cumsum(-1).to(original_dtype)
        """,
        """
        def table(n):
            x = torch.zeros(n)
            original_dtype = x.dtype
            return x.to(original_dtype)
        """,
    ),
    "DT111": (
        """
        def run(fn, args):
            args = tuple(map(lambda t: t.half() if torch.is_tensor(t) and t.is_floating_point() else t, args))
            return fn(*args)
        """,
        """
        def embed(self, images):
            inputs = self.processor(images=images, return_tensors="pt")
            inputs = {k: v.to(self.dtype) for k, v in inputs.items()}
            return self.clip(**inputs)
        """,
        """
        def run(fn, scores):
            return fn(*map(lambda t: t.half(), scores))
        """,
    ),
    "DT113": (
        """
        def prepare(args, model):
            dtype = torch.float32
            if args.fp16 or args.bf16:
                dtype = torch.float16 if args.fp16 else torch.bfloat16
            return model.to(dtype=dtype)
        """,
        """
        def prepare(args, model, dtype=None):
            if args.bf16 and model.dtype == torch.float16:
                raise ValueError("these weights are float16")
            if not args.bf16:
                model = model.half()
            return model.to(dtype)
        """,
        """
        def choose(use_bf16):
            if use_bf16:
                if not torch.cuda.is_bf16_supported():
                    return build(dtype=torch.float16)
                return build(dtype=torch.bfloat16)
            return build(dtype=torch.float32)
        """,
    ),
    "DT114": (
        """
        class Adapter(nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            @property
            def model_dtype(self):
                return getattr(self.model, "dtype", None)

            def forward(self, x):
                return self.model(x.to(self.model_dtype))
        """,
    ),
    "DT120": (
        """
        def check(x: torch.Tensor):
            assert x.dtype is torch.float32
            assert x.dtype in [torch.float16, torch.float32]
        """,
    ),
    "DT301": (
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.qkv = nn.Linear(dim, dim * 3)

            def forward(self, x):
                q, k, v = self.qkv(x).chunk(3, dim=-1)
                attn = (q @ k.mT).softmax(dim=-1, dtype=torch.float32)
                return attn.to(v.dtype) @ v
        """,
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.qkv = nn.Linear(dim, dim * 3, dtype=torch.float32)

            def forward(self, x):
                q, k, v = self.qkv(x.float()).chunk(3, dim=-1)
                return (q @ k.mT).softmax(dim=-1, dtype=torch.float32) @ v
        """,
        """
        class Attention(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.qkv = nn.Linear(dim, dim * 3)

            def forward(self, x):
                q, k, v = (t.float() for t in self.qkv(x).chunk(3, dim=-1))
                return (q @ k.mT).softmax(dim=-1, dtype=torch.float32) @ v
        """,
    ),
    "DT304": (
        """
        def mark(x: torch.Tensor, n: int) -> torch.Tensor:
            out = torch.zeros(n, x.shape[1], device=x.device)
            out[: x.shape[0]] = x > 0
            return out
        """,
        """
        def show(x: torch.Tensor, n: int) -> None:
            out = torch.zeros(n, x.shape[1], device=x.device)
            out[: x.shape[0]] = x
            print(out.shape)
        """,
        """
        def rewards(self, prompts: torch.Tensor, functions) -> torch.Tensor:
            table = torch.zeros(len(prompts), len(functions), device=prompts.device)
            for i, function in enumerate(functions):
                table[:, i] = function(prompts)
            return table
        """,
    ),
    "DT311": (
        """
        class Init(nn.Module):
            def start(self, weight: torch.Tensor):
                wide = weight.to(torch.float32).t()
                return self._factors(wide, 8).to(weight.dtype)

            def _factors(self, weight: torch.Tensor, rank: int):
                if weight.dtype == torch.bfloat16:
                    raise TypeError("cast it first")
                return torch.linalg.svd(weight)[0][:, :rank]
        """,
    ),
    "DT401": (
        """
        class Beams(nn.Module):
            def initialize(self, device, n):
                self.scores = torch.tensor([0.0] + [float("-inf")] * (n - 1), device=device).repeat(n)

            def finish(self, done):
                with torch.autocast("cuda"):
                    self.scores.masked_fill_(done, -1e10)
        """,
    ),
    "DT403": (
        """
        class Diffusion(nn.Module):
            def __init__(self, schedule):
                super().__init__()
                variance = schedule(1000)
                self.register_buffer("log_variance", torch.log(variance.clamp(min=1e-20)))
        """,
    ),
    "DT413": (
        """
        class ModelEMA:
            def __init__(self, model):
                self.ema = deepcopy(model).eval()

            def update(self, model):
                for average, weight in zip(self.ema.parameters(), model.parameters()):
                    average.data.lerp_(weight.data, 0.001)

            def save(self, path):
                torch.save(deepcopy(self.ema).half(), path)
        """,
        """
        def finish(trainer, path):
            trainer.ema.half()
            torch.save(trainer.ema, path)

        def update(ema, model):
            for average, weight in zip(ema.parameters(), model.parameters()):
                average.data.lerp_(weight.data, 0.001)
        """,
        """
        class Trainer:
            def average(self, model, decay):
                if self.moving_average is None:
                    self.moving_average = [p.detach().float() for p in model.parameters()]
                for avg, p in zip(self.moving_average, model.parameters()):
                    avg.lerp_(p.detach().float(), decay)
                return [avg.half() for avg in self.moving_average]
        """,
    ),
    "DT502": (
        """
        class Net(nn.Module):
            def forward(self, x):
                if isinstance(x, (torch.ByteTensor, torch.cuda.ByteTensor)):
                    x = x.float() / 255
                return self.body(x)
        """,
        """
        def score(reference, guess):
            if not isinstance(reference, torch.IntTensor):
                raise TypeError("give the ids as an IntTensor")
            return reference == guess
        """,
        """
        def average(paths):
            for path in paths:
                for weight in torch.load(path, map_location="cpu").values():
                    if isinstance(weight, torch.HalfTensor):
                        weight = weight.float()
                    yield weight
        """,
        """
        def collate(batch):
            longest = max(item[1].size(1) for item in batch)
            return torch.FloatTensor(len(batch), batch[0][1].size(0), longest).zero_()
        """,
        """
        class Synthesis(nn.Module):
            def infer(self, spect: torch.Tensor):
                if spect.type() == "torch.cuda.HalfTensor":
                    return torch.cuda.HalfTensor(spect.size(0), 8, spect.size(2)).normal_()
                return torch.cuda.FloatTensor(spect.size(0), 8, spect.size(2)).normal_()
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)
