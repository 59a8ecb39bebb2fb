"""Forms of bugs of casts, checks and autocast, as people write them: fixed half dtypes, checks for float32 alone, a clip
in another function than the scaling; and right code like each.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import contextlib\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT107": (
        """
        class Sparse:
            def __init__(self, dense_tensor=None):
                self.dense_tensor = dense_tensor
                self.dtype = self.dense_tensor  # <-
        """,
        """
        class Holder:
            def __init__(self, x: Tensor):
                self._dtype = x  # <-
        """,
        """
        def generate(name, batch):
            model = AutoModelForCausalLM.from_pretrained(name)
            with torch.autocast(model.device, dtype=torch.bfloat16):  # <-
                return model(batch)
        """,
        """
        device = torch.device("cuda:0")

        def step(model, batch):
            with torch.amp.autocast(device_type=device):  # <-
                return model(batch)
        """,
        """
        def step(model, batch):
            with torch.autocast(next(model.parameters()).device):  # <-
                return model(batch)
        """,
        """
        accelerator = Accelerator()
        with torch.autocast(accelerator.device):  # <-
            pass
        """,
    ),
    "DT113": (
        """
        def log_odds(chosen, rejected):
            chosen = chosen.to(dtype=torch.float32)
            rejected = rejected.to(dtype=torch.float32)
            odds = chosen - torch.log1p(-torch.exp(chosen))
            return odds.to(dtype=torch.bfloat16), rejected  # <-
        """,
        """
        def rotate(x, table):
            pairs = x.reshape(*x.shape[:-1], -1, 2).float()
            turned = (table * pairs).sum(-1)
            return turned.half()  # <-
        """,
        """
        class Engine:
            def __init__(self, path, config=None):
                self.model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float16).cuda()  # <-
        """,
        """
        class Policy(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.base = AutoModelForCausalLM.from_pretrained(
                    config.name,
                    dtype=torch.half,  # <-
                )
        """,
        """
        def merge(cfg, model):
            model = model.merge_and_unload()
            model.to(dtype=torch.float16)  # <-
            model.save_pretrained(cfg.output_dir)
        """,
        """
        def export(model, path):
            model = model.half()  # <-
            model.save_pretrained(path)
        """,
        """
        class Layer(nn.Module):
            def static_inputs(self, length):
                return torch.ones((length, self.config.hidden), dtype=torch.bfloat16, device="cuda")  # <-
        """,
    ),
    "DT119": (
        """
        class FakeQuantize(torch.autograd.Function):
            @staticmethod
            def forward(ctx, input, scales, points):
                assert input.dtype == torch.float32  # <-
                assert scales.dtype == torch.float  # <-
                assert points.dtype == torch.int32
                return torch.round(input / scales) * scales
        """,
        """
        class Diffusion(nn.Module):
            def forward(self, images):
                images = as_float(images)
                assert images.dtype == torch.float, f"images must be floats, not {images.dtype}"  # <-
                return self.unet(images)
        """,
        """
        class Head(nn.Module):
            def forward(self, x):
                if x.dtype != torch.float32:  # <-
                    raise ValueError("float32 alone")
                return self.fc(x)
        """,
        """
        WIDE = (torch.float32, torch.float64)

        def perplexity(preds: Tensor, target: Tensor):
            if preds.dtype not in WIDE:  # <-
                raise TypeError(f"preds must be one of {WIDE}")
            return F.cross_entropy(preds, target).exp()
        """,
    ),
    "DT120": (
        """
        def run(model, x: Tensor):
            if next(model.parameters()).dtype == "torch.bfloat16":  # <-
                x = x.bfloat16()
            for p in model.parameters():
                if p.dtype == "float32":  # <-
                    p.requires_grad = False
            return model(x)
        """,
        """
        def widen(x: Tensor):
            if x.dtype == torch.float16 and x.dtype == torch.bfloat16:  # <-
                return x.float()
            if x.dtype != torch.float16 or x.dtype != torch.bfloat16:  # <-
                return x
            if not x.dtype == torch.float32 or torch.float64:  # <-
                return x
            if x.dtype == (torch.float16 or torch.bfloat16):  # <-
                return x.float()
            if x.type() == torch.cuda.HalfTensor:  # <-
                return x.float()
        """,
    ),
    "DT125": (
        """
        def cast(model):
            for p in model.parameters():
                p.half_()  # <-
        """,
        """
        def cast(model):
            for name, p in model.named_parameters():
                if "norm" not in name:
                    p.data.to_(torch.bfloat16)  # <-
        """,
    ),
    "DT205": (
        """
        def train(args):
            return torch.amp.GradScaler("cuda", enabled=args.bf16)  # <-
        """,
        """
        def train(precision):
            return torch.amp.GradScaler("cuda", enabled=precision == "bf16")  # <-
        """,
    ),
    "DT203": (
        """
        class Trainer:
            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def update(self):
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)  # <-
                self.scaler.step(self.optimizer)
                self.scaler.update()
        """,
        """
        class Trainer:
            def scaled(self, loss, index):
                scaler = getattr(self, f"scaler{index}")
                return scaler.scale(loss)

            def update(self, index):
                unet = self.unets[index]
                if self.max_norm is not None:
                    torch.nn.utils.clip_grad_value_(unet.parameters(), self.max_norm)  # <-
                optimizer = getattr(self, f"optim{index}")
                scaler = getattr(self, f"scaler{index}")
                scaler.step(optimizer)
                scaler.update()
        """,
    ),
    "DT204": (
        """
        def train(model, optimizer, batches):
            scaler = torch.amp.GradScaler("cuda")
            for batch in batches:
                optimizer.zero_grad()
                model(batch).sum().backward()
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()  # <-
        """,
    ),
    "DT210": (
        """
        def step(model, batch, dtype):
            region = torch.cuda.amp.autocast if dtype is not None else contextlib.nullcontext  # <-
            with region():
                return model(batch)
        """,
        """
        def step(model, batch, args):
            with torch.autocast("cuda", enabled=args.bf16):  # <-
                return model(batch)
        """,
        """
        def step(model, batch, precision):
            if precision == "bf16":
                with torch.amp.autocast(device_type="cuda"):  # <-
                    return model(batch)
            return model(batch)
        """,
        """
        def region_for(args):
            if args.amp_dtype is not None:
                return torch.autocast("cuda")  # <-
            return torch.autocast("cuda") if args.bf16 else contextlib.nullcontext()  # <-
        """,
    ),
    "DT212": (
        """
        class Project(torch.autograd.Function):
            @staticmethod  # <-
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                buffer = get_buffer(x.shape, x.dtype, "mpu")
                if weight.main_grad.dtype == torch.float32:
                    accumulate(x, grad, weight.main_grad)
                return grad.matmul(weight), grad.t().matmul(x)

        def train(model, batch):
            with torch.autocast("cuda"):
                return model(batch)
        """,
    ),
    "DT219": (
        """
        def attend(q, k):
            half = torch.get_autocast_gpu_dtype() == torch.float16  # <-
            return q @ k if half else q.float() @ k.float()
        """,
        """
        def same(x):
            return x.to(torch.get_autocast_dtype("cuda"))  # <-
        """,
        """
        def same(x, y):
            dtype = torch.get_autocast_gpu_dtype()  # <-
            return x.to(dtype=dtype) + y

        def asked(x, y):
            return same(x, y) if torch.is_autocast_enabled() else x + y

        def heedless(x):
            return same(x, x)
        """,
    ),
    "DT507": (
        """
        device = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"

        def load():
            return pipeline("asr", model="whisper", torch_dtype=torch.float16, device=device)  # <-
        """,
        """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

        def load(path):
            model = torch.jit.load(path)
            model = model.half().to(device)  # <-
            return model
        """,
        """
        def load(model, path, device):
            model = model.half()  # <-
            model.load_state_dict(torch.load(path))
            return model.to(device)
        """,
        """
        def detect(weights, device):
            half = device.type != "cpu"  # <-
            model = load(weights)
            if half:
                model.half()
        """,
    ),
}

GOOD = {
    "DT107": (
        """
        class Holder:
            def __init__(self, dtype, default_dtype, tensor_type, x: Tensor):
                self.dtype = dtype
                self.dtype = default_dtype
                self.dtype = tensor_type
                self.dtype = x.dtype
                self._dtype = torch.get_default_dtype()
        """,
        """
        def step(model, batch, device, fabric):
            with torch.autocast(device):  # a string, as far as one sees
                model(batch)
            with torch.autocast(fabric.device):  # Lightning's plugins keep a string there
                model(batch)
            with torch.autocast(model.device.type):
                return model(batch)
        """,
        """
        device = "cuda" if torch.cuda.is_available() else "cpu"

        def step(model, batch):
            with torch.autocast(device):
                return model(batch)
        """,
        """
        device = torch.device("cuda")

        def step(model, batch, device):
            with torch.autocast(device):  # the parameter
                return model(batch)
        """,
    ),
    "DT113": (
        """
        def log_odds(chosen):
            dtype = chosen.dtype
            odds = chosen.float().exp()
            return odds.to(dtype)
        """,
        """
        def to_half(x):
            return x.float().clamp(-65504, 65504).half()
        """,
        """
        def norm(x):
            assert x.dtype == torch.bfloat16
            y = x.float().square().mean()
            return y.to(torch.bfloat16)
        """,
        """
        class Engine:
            def __init__(self, path, dtype=None):
                self.model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float16)
        """,
        """
        class Engine:
            def __init__(self, path, bits):
                self.model = AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float16, load_in_8bit=True)
                self.other = AutoModelForCausalLM.from_pretrained("org/known", torch_dtype=torch.float16)

        class TestEngine:
            def load(self, path):
                return AutoModelForCausalLM.from_pretrained(path, torch_dtype=torch.float16)
        """,
        """
        def export(name, path, dtype, kwargs):
            model = AutoModel.from_pretrained(name, torch_dtype=torch.float16)  # the author knows
            model = model.half()
            model.save_pretrained(path)
            other = AutoModel.from_pretrained(name, **kwargs)
            other.half()
            other.save_pretrained(path)
        """,
        """
        def convert_fp16(model, path):
            model = model.half()
            model.save_pretrained(path)

        def export(cfg, model, path):
            model.to(dtype=cfg.torch_dtype)
            model.save_pretrained(path)

        def asked(model, path, fp16):
            if fp16:
                model = model.half()
            model.save_pretrained(path)
        """,
        """
        class Layer(nn.Module):
            def cache(self, x):
                return torch.zeros(x.shape, dtype=x.dtype)

        class QuantLinear(nn.Module):
            def scales(self, n):
                return torch.zeros(n, dtype=torch.float16)

        class Fused(nn.Module):
            def forward(self, x):
                out = torch.empty(x.shape, dtype=torch.float16)
                q4_matmul(x, out)
                return out
        """,
    ),
    "DT119": (
        """
        class Combine(torch.autograd.Function):
            @staticmethod
            def forward(ctx, logits):
                assert logits.dtype == torch.float32
                return KERNEL.cuda_combine(logits)
        """,
        """
        def upcast(x, logits: Tensor):
            logits = logits.float()
            assert logits.dtype == torch.float32
            return logits.softmax(-1)
        """,
        """
        class Block(nn.Module):
            def forward(self, x, img):
                img = self.to_rgb(x, img)
                assert img.dtype == torch.float32
                return img
        """,
        """
        class Mask(nn.Module):
            def get(self, x):
                if x.dtype == torch.float16:
                    low = -1e4
                elif x.dtype == torch.float32:
                    low = -1e9
                else:
                    raise ValueError("float16 or float32")
                return x + low
        """,
        """
        def widen(t):
            return t if t.dtype in (torch.float32, torch.float64) else t.float()
        """,
        """
        import pytest

        class Boring(nn.Module):
            def forward(self, x):
                assert x.dtype == torch.float32
                return self.layer(x)
        """,
    ),
    "DT120": (
        """
        def choose(config, args, cfg):
            if args.torch_dtype == "bfloat16":  # a string, from the command line
                return torch.bfloat16
            if cfg.train_model.torch_dtype == "float16" or config.torch_dtype == "float16":
                return torch.float16
            return torch.float32
        """,
        """
        def widen(x: Tensor, y: Tensor, model):
            if x.dtype == torch.float16 and y.dtype == torch.bfloat16:
                return x.float()
            if x.dtype != torch.float16 and x.dtype != torch.bfloat16:
                return x
            if x.dtype == torch.float16 or x.dtype == torch.bfloat16:
                return x.float()
            if model.dtype == "float16":  # of no library that is known
                return x
        """,
        """
        from transformers import AutoModel

        def load(cfg, args, model_config):  # strings of a configuration
            model = model_config
            half = cfg.model.dtype == "bfloat16" or args.model.dtype == "float16" or model.dtype == "float16"
            model = AutoModel.from_pretrained(cfg.model.name)
            for name, p in model.named_parameters():
                if p.dtype == torch.float32 and name.dtype == "float32":
                    p.requires_grad = False
            return model.half() if half else model
        """,
        """
        def export(model):
            if model.config.torch_dtype == torch.bfloat16:
                return model.to(torch.bfloat16)
            if model.config.torch_dtype == "float16":  # as it was read from a file
                model.config.torch_dtype = torch.float16
            if model.config.model_type == "t5" or getattr(model.config, "kind", None) == "float16":
                return model.float()
        """,
    ),
    "DT125": (
        """
        def move(objects, p):
            for o in objects:
                o.to_("cuda")
            p.to_(0)
        """,
        """
        def move(model, renames):
            for name, p in model.named_parameters():
                name.to_("text")
                model.half_(p)
        """,
    ),
    "DT205": (
        """
        def train(args, precision):
            one = torch.amp.GradScaler("cuda", enabled=args.fp16)
            two = torch.amp.GradScaler("cuda", enabled=not args.bf16)
            return one, two, torch.amp.GradScaler("cuda", enabled=precision != "bf16")
        """,
    ),
    "DT203": (
        """
        class Trainer:
            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def prepare(self):
                self.scaler.unscale_(self.optimizer)

            def update(self):
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
                self.scaler.update()
        """,
        """
        class Trainer:
            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def update(self):
                if self.use_amp:
                    self.scaler.step(self.optimizer)
                    self.scaler.update()
                else:
                    nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                    self.optimizer.step()
        """,
        """
        class Trainer:  # feature scalers have a scale, too, and nothing is scaled here
            def update(self):
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.scaler.step(self.optimizer)
        """,
        """
        class Trainer:
            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def update(self):
                norm = nn.utils.clip_grad_norm_(self.model.parameters(), float("inf"))
                self.scaler.step(self.optimizer)
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        """,
    ),
    "DT204": (
        """
        def train(model, optimizer, batches):
            scaler = torch.amp.GradScaler("cuda")
            for batch in batches:
                scaler.scale(model(batch).sum()).backward()
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
        """,
        """
        def train(model, optimizer, batches, finish):
            scaler = torch.amp.GradScaler("cuda")
            for batch in batches:
                model(batch).sum().backward()
                scaler.unscale_(optimizer)
                optimizer.step()
                finish(scaler)
        """,
    ),
    "DT210": (
        """
        def step(model, batch, args, dtype):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.bf16):
                model(batch)
            with torch.autocast("cuda", enabled=args.fp16):
                model(batch)
            with torch.autocast("cpu", enabled=args.bf16):  # bfloat16 is what the CPU casts to
                model(batch)
            with torch.autocast("cuda", torch.bfloat16) if args.bf16 else contextlib.nullcontext():
                return model(batch)
        """,
        """
        def step(model, batch, dtype):
            region = torch.cuda.amp.autocast if dtype is not None else contextlib.nullcontext
            with region(dtype=dtype):
                return model(batch)
        """,
        """
        def norm(layer, x, args, dtype=None):
            if x.dtype == torch.bfloat16:
                with torch.autocast("cuda", enabled=False):
                    return layer(x.float())
            if dtype is not None:
                with torch.amp.autocast(device_type="cuda", enabled=False):
                    return layer(x.to(dtype))
            if args.bf16:
                with torch.cuda.amp.autocast(enabled=False):
                    return layer(x)
            with torch.cuda.amp.autocast(False) if args.bf16 else contextlib.nullcontext():
                return layer(x)
        """,
        """
        def attend(layer, x):
            dtype = x.dtype
            if dtype == torch.bfloat16 or x.dtype == torch.bfloat16:  # it is so, nobody asked for it
                with torch.autocast("cuda"):
                    return layer(x)
        """,
        """
        torch.set_autocast_gpu_dtype(torch.bfloat16)

        def step(model, batch, args):
            with torch.autocast("cuda", enabled=args.bf16):
                return model(batch)
        """,
    ),
    "DT212": (
        """
        class Project(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                x, weight = maybe_cast(x, grad.dtype), maybe_cast(weight, grad.dtype)
                return grad.matmul(weight), grad.t().matmul(x)

        def train(model, batch):
            with torch.autocast("cuda"):
                return model(batch)
        """,
    ),
    "DT219": (
        """
        def attend(q, k):
            if torch.is_autocast_enabled() and torch.get_autocast_gpu_dtype() == torch.float16:
                q = q / 8
            return q @ k
        """,
        """
        def cast(x):
            if torch.is_autocast_enabled("cuda"):
                x = x.to(torch.get_autocast_dtype("cuda"))
            return x
        """,
        """
        def current(device):
            return torch.get_autocast_dtype(device)  # who asks knows

        def kept():
            return {"dtype": torch.get_autocast_gpu_dtype()}
        """,
        """
        with torch.autocast("cuda"):
            assert torch.get_autocast_gpu_dtype() == torch.float16
        """,
        """
        class Project(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cuda")
            def forward(ctx, x, weight):
                return x.to(torch.get_autocast_dtype("cuda")) @ weight
        """,
        """
        def _cast(x):
            return x.to(torch.get_autocast_dtype("cuda"))

        class Block(nn.Module):
            def forward(self, x):
                if torch.is_autocast_enabled():
                    x = _cast(x)
                return self.fc(x)
        """,
        """
        def cast(x, autocast_enabled):
            return x.to(torch.get_autocast_dtype("cuda")) if autocast_enabled else x
        """,
    ),
    "DT507": (
        """
        device = "cuda" if torch.cuda.is_available() else "cpu"
        dtype = torch.float16 if device == "cuda" else torch.float32

        def load(path):
            return AutoModel.from_pretrained(path, torch_dtype=dtype).to(device)
        """,
        """
        device = "cuda" if torch.cuda.is_available() else "cpu"

        def load(path, half):
            model = torch.jit.load(path)
            if half:
                model = model.half()
            return model.to(device)
        """,
        """
        def load(model):
            model = model.half()
            return model.to("cuda")
        """,
        """
        def detect(device, half, cuda):
            half &= device.type != "cpu"  # the user asks for it
            cuda = device.type != "cpu"
            ok = (device.type != "cpu") and torch.cuda.get_device_capability(device)[0] >= 7
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)
