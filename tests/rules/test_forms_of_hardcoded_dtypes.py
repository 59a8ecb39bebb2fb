"""Forms of bugs of dtypes that are written out, mixed up or asked for wrongly, as people write them, and right code like
each.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = (
    "import argparse\nimport os\nimport sys\nimport numpy as np\nimport torch\nfrom torch import Tensor, nn\n"
    "from transformers import AutoModel\n"
)
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT107": (
        """
        class Layer(nn.Module):
            def forward(self, x):
                return self.norm(x.float()).as_type(x)  # <-
        """,
        """
        def rotate(x: Tensor, freqs, y):
            out = torch.view_as_real(x * freqs).flatten(3)
            out = (y * freqs).as_type(y) + out.as_type(x)  # <-
            return F.softmax(input=y, dim=-1).as_type(y)  # <-
        """,
        """
        def convert(a: Tensor):
            b = torch.zeros(2).to_float()  # <-
            return a.asType(b), a.exp().toFloat(), torch.ones(3).to_half()  # <-
        """,
        """
        def load(path, dtype=None, torch_dtype=None, name="auto"):
            dtype = (torch_dtype and torch_dtype != "auto") or torch.float16  # <-
            dtype = torch_dtype is None or torch.half  # <-
            dtype = dtype or not torch_dtype or torch.bfloat16  # <-
            return AutoModel.from_pretrained(path, torch_dtype=(name and name != "auto") or torch.float16)  # <-
        """,
        """
        import torch as th

        class Model:
            def __init__(self, config, net):
                self.dtype = isinstance(config.dtype, str) or th.float32  # <-
                self.weight_dtype: torch.dtype = (
                    config.dtype != "auto"  # <-
                    or th.float32
                )
                net.to(hasattr(config, "dtype") or torch.float16)  # <-

            def cast(self, x, fp16=None):
                return x.to(dtype=not fp16 or torch.float16)  # <-
        """,
        """
        class Offloaded:
            def __init__(self, offload_device=None, onload_device=None, computation_dtype=None):
                self.offload_device = offload_device or computation_dtype  # <-
                self.onload_device = onload_device or computation_dtype  # <-
        """,
        """
        class Pipe:
            def __init__(self, model, dtype, device):
                self.dtype = dtype
                self.device = dtype  # <-
        """,
        """
        class Pipe:
            def move(self, device=None):
                self.vae_device = device or self.vae.dtype  # <-
        """,
    ),
    "DT111": (
        """
        class Boxes:
            def to(self, *args, **kwargs):
                self._data = self._data.to(*args, **kwargs)
                if self._labels is not None:
                    self._labels = self._labels.to(*args, **kwargs)  # <-
                return self
        """,
        """
        class Graph:
            def to(self, *a, **kw):
                return Graph(self.x.to(*a, **kw), self.edge_index.to(*a, **kw))  # <-
        """,
        """
        class Sample:
            def to(self, *args, **kwargs) -> "Sample":
                ids = self.input_ids.to(*args, **kwargs)  # <-
                pixels = self.pixels.to(*args, **kwargs)
                return Sample(ids, pixels)
        """,
    ),
    "DT113": (
        """
        class Base:
            @classmethod
            def load(cls, path, trust=False, **model_kwargs):
                if not torch.cuda.is_available():
                    raise RuntimeError("needs CUDA")
                model_kwargs["torch_dtype"] = torch.float16  # <-
                model_kwargs["trust_remote_code"] = trust
                return AutoModel.from_pretrained(path, **model_kwargs)
        """,
        """
        def load(path, load_8bit=False, load_4bit=False, device="cuda", **kwargs):
            kwargs = {"device_map": device, **kwargs}
            if load_8bit:
                kwargs["load_in_8bit"] = True
            elif load_4bit:
                kwargs["load_in_4bit"] = True
            else:
                kwargs["torch_dtype"] = torch.bfloat16  # <-
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def precompute(seq_len: int, n_elem: int, base: int = 10000) -> Tensor:
            freqs = 1.0 / (base ** (torch.arange(0, n_elem, 2).float() / n_elem))
            freqs = torch.outer(torch.arange(seq_len), freqs)
            cis = torch.polar(torch.ones_like(freqs), freqs)
            return torch.stack([cis.real, cis.imag], dim=-1).to(dtype=torch.bfloat16)  # <-
        """,
        """
        def sinusoids(length: int, channels: int, device=None):
            scale = torch.exp(-torch.arange(channels // 2, device=device) / channels)
            time = torch.arange(length, device=device)[:, None] * scale[None]
            return torch.cat([time.sin(), time.cos()], dim=1).half()  # <-
        """,
        """
        class TextEncoder:
            def __init__(self, path, device="cuda", dtype=torch.float):
                self.t5 = Embedder(path, device=device, torch_dtype=dtype)

            def shard(self):
                optimized, _ = shard(self.t5.model)
                self.t5.model = optimized.half()  # <-
        """,
        """
        class Pipeline:
            def __init__(self, path, torch_dtype: torch.dtype = torch.float32):
                self.unet = AutoModel.from_pretrained(path, torch_dtype=torch_dtype)
                self.vae = AutoModel.from_pretrained(path, torch_dtype=torch_dtype)
                self.vae.to(dtype=torch.bfloat16)  # <-
        """,
    ),
    "DT114": (
        """
        def references(module, buffers):
            start = {}
            for dtype in buffers:
                start[dtype] = 0
            for name, param in sorted(module.named_parameters()):
                buffers[param.dtype].add(param)
                start[param.dtype] += padded(param.shape, dtype)  # <-
        """,
        """
        def flatten(groups, grads):
            for dtype, tensors in groups.items():
                print(dtype, len(tensors))
            for grad in grads:
                if grad.dtype in groups:
                    groups[grad.dtype].append(torch.zeros(grad.shape, dtype=dtype))  # <-
        """,
    ),
    "DT117": (
        """
        from contextlib import nullcontext

        class Trainer:
            def step(self, x):
                ctx = nullcontext() if self.amp else torch.autocast("cuda")  # <-
                with ctx:
                    return self.model(x)

            def run(self, x, use_amp):
                with torch.cuda.amp.autocast() if not use_amp else nullcontext():  # <-
                    return self.model(x)
        """,
        """
        import contextlib
        from torch.cuda.amp import autocast

        def train(model, x, args, dtype):
            if args.use_amp:
                context = contextlib.nullcontext()
            else:
                context = autocast(dtype=dtype)  # <-
            if not args.amp_enabled:
                print("amp is off")
                with autocast(True, torch.bfloat16):
                    pass
                with torch.amp.autocast("cuda", dtype):  # <-
                    loss = model(x)
            else:
                with contextlib.nullcontext():
                    loss = model(x)
            return loss, context
        """,
        """
        from contextlib import ExitStack, nullcontext, suppress
        from torch import autocast

        def context(enable_amp, config, device):
            return suppress() if config.train.use_mixed_precision else autocast(device_type=device, enabled=True)  # <-

        def other(mixed_precision_enabled: bool):
            if not mixed_precision_enabled:
                return autocast("cuda", torch.float16)  # <-
            else:
                return nullcontext()

        def run(model, x, enable_autocast=False):
            with (
                ExitStack()
                if enable_autocast
                else autocast("cpu")  # <-
            ):
                return model(x)

        def made(with_amp):
            make = nullcontext if with_amp else autocast  # <-
            return make
        """,
    ),
    "DT120": (
        """
        def cast(model, dtype):
            if model.dtype != dtype:  # <-
                model = model.to(getattr(torch, dtype))
            return model
        """,
        """
        class Runner:
            def load(self, path, precision: str = "float16"):
                model = AutoModel.from_pretrained(path, torch_dtype=getattr(torch, precision))
                assert model.dtype == precision  # <-
                return model
        """,
        """
        def cast(x: Tensor, name):
            target = getattr(torch, name)
            if name is None or name == x.dtype:  # <-
                return x
            return x.to(target)
        """,
        """
        def cast(self, kind):
            for p in self.net.parameters():
                if p.dtype != kind:  # <-
                    p.data = p.data.to(getattr(torch, kind))
            self.unet.eval()
            return self.unet.dtype == kind  # <-
        """,
        """
        def cast(module, dtype):
            return module.to(dtype=dtype if not isinstance(dtype, torch.float16) else torch.float32)  # <-
        """,
        """
        def is_half(x):
            return isinstance(x, (torch.half, torch.bfloat16))  # <-
        """,
        """
        def widen(x):
            if type(x) == torch.float16:  # <-
                x = x.float()
            if type(x) in (torch.float16, torch.bfloat16):  # <-
                x = x.float()
            return x
        """,
        """
        def widen(x):
            return x.cuda() if type(x) is torch.FloatTensor else x  # <-
        """,
        """
        def load(args):
            torch_dtype = (
                args.torch_dtype if args.torch_dtype in ["auto", None] else getattr(torch, args.torch_dtype)
            )
            return torch.float16 if torch_dtype == "float16" else torch.float32  # <-
        """,
        """
        def load(args):
            dtype = getattr(torch, args.dtype)
            if dtype == "bfloat16":  # <-
                enable_bf16()
        """,
        """
        def back(x: Tensor):
            input_dtype = x.dtype
            x = x.double().cumsum(-1)
            return x.half() if input_dtype == "float16" else x.float()  # <-
        """,
        """
        def unscale(model):
            for p in model.parameters():
                dtype = p.dtype
                if dtype in ("float16", "bfloat16"):  # <-
                    p.data = p.data.float()
        """,
        """
        compute_dtype = {"half": torch.float16, "full": torch.float32}[os.environ["PRECISION"]]

        def prepare(model):
            if compute_dtype != "float16":  # <-
                model.float()
        """,
    ),
    "DT126": (
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", default=False, type=bool, help="Use AMP in calibration.")  # <-
        """,
        """
        def options(parser):
            group = parser.add_argument_group("training")
            group.add_argument("-f", "--use-fp16", type=bool, default=True)  # <-
            group.add_argument("--mixed_precision_training", type=bool)  # <-
        """,
        """
        if len(sys.argv) == 7:
            is_half = bool(sys.argv[6])  # <-
        """,
        """
        from sys import argv

        run(path=argv[1], fp16=bool(argv[2]))  # <-
        """,
        """
        USE_AMP = bool(os.environ.get("USE_AMP", "0"))  # <-
        use_tf32 = bool(os.getenv("TF32", False))  # <-
        is_half = bool(os.environ["IS_HALF"])  # <-
        """,
    ),
    "DT501": (
        """
        if is_npu_available():
            from torch_npu.npu.amp import GradScaler
        elif is_mlu_available():
            from torch.mlu.amp import GradScaler
        else:
            from torch.cuda.amp import GradScaler  # <-

        scaler = GradScaler()
        """,
        """
        if is_torch_xla_available():
            from torch_xla.amp import GradScaler
        else:
            from torch.cuda.amp import GradScaler  # <-
        """,
        """
        if ON_CUDA:
            from torch.cuda.amp import GradScaler, autocast  # <-
        else:
            from torch_musa.amp import GradScaler, autocast
        """,
    ),
    "DT507": (
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True, device: str = None):
                self.model = make(name)
                if use_fp16:
                    self.model.half()  # <-
                if device:
                    self.device = torch.device(device)
                else:
                    self.device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
                self.model = self.model.to(self.device)
        """,
        """
        def load(path, *, half=True):
            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = torch.jit.load(path)
            if half:
                model.half()  # <-
            return model.to(device)
        """,
    ),
    "DT510": (
        """
        def to_float(samples):
            if samples.dtype in np.sctypes["int"]:  # <-
                return samples / np.iinfo(samples.dtype).max
            return samples
        """,
        """
        def common(a, b):
            return np.asfarray(a), np.find_common_type([a.dtype, b.dtype], [])  # <-
        """,
    ),
}
GOOD = {
    "DT107": (
        """
        def load(path, fp16, torch_dtype=None):
            dtype = fp16 and torch.float16 or torch.float32
            dtype = torch_dtype or torch.float16
            dtype = (torch_dtype != "auto" and torch_dtype) or torch.float16
            dtype = torch_dtype if torch_dtype and torch_dtype != "auto" else torch.float16
            dtype = isinstance(torch_dtype, torch.dtype) and torch_dtype or torch.float32
            dtype = (not fp16 and torch.float32) or torch.float16
            return dtype
        """,
        """
        def ask(x, dtype, fp16):
            if dtype is None or torch.float16 in dtype:
                return True
            while not fp16 or torch.is_tensor(x):
                break
            assert x is None or torch.float32
            is_half = x.dtype == torch.float16 or x.dtype == torch.bfloat16
            is_float = x is None or x.dtype == torch.float32
            return [d for d in dtype if d is None or torch.float16]
        """,
        """
        def ask(x, dtype):
            if (x is None or torch.float16) and dtype:
                return x
            dtype = torch.float16 if x is None or torch.half else torch.float32
            return dtype or x is None
        """,
        """
        def ask(x, settings, default):
            dtype = settings.get("dtype") or torch.float16
            dtype = (default or settings.dtype) or torch.float32
            dtype = getattr(x, "dtype", None) or torch.get_default_dtype()
            kind = x.dtype == torch.float16 or default
            return dtype, kind
        """,
        """
        class Node:
            def as_type(self, other):
                return self.cast(other)

        def convert(x: Tensor, node):
            return node(x).as_type(x)
        """,
        """
        def as_type(self, other):
            return self.type_as(other)

        torch.Tensor.as_type = as_type
        y = torch.zeros(2).as_type(torch.ones(2))
        """,
        """
        def convert(series, column, kind, x: Tensor, y):
            column = column.as_type(kind)
            series = series.to_float()
            return x.type_as(y), x.float(), x.to(torch.half), column, series
        """,
        """
        def convert(image, frame, x):
            frame = image(frame).as_type("float32")
            other = image(x).as_type(dtype=x)
            return Points(x).as_type(x), frame, other, image.as_type(frame, x), image().as_type(x), self.as_type(x)
        """,
        """
        def convert(image):
            a = image.to_float()
            b = Image(image).toFloat()
            return a, b, Image(image).to_half(), Image.to_double(image)
        """,
        """
        import mlx.core as mx

        setattr(Tensor, "to_float", Tensor.float)
        x = torch.zeros(2).to_float()
        """,
        """
        class Pipe:
            def __init__(self, device=None, dtype=None, device_dtype=None):
                self.device = device or "cuda"
                self.dtype = dtype or torch.float32
                self.main_device = device or self.device
                self.device_dtype = device_dtype or dtype
                self.load_device = torch.device("cuda" if dtype == torch.half else "cpu")
        """,
        """
        class Pipe:
            def __init__(self, device, on_device):
                self.device = device or on_device
                self.dtypes_device = dtypes_device
                self.device, self.dtype = device, on_device.dtype
        """,
    ),
    "DT111": (
        """
        class Edges:  # of indices alone: nobody gives a dtype
            def to(self, *args, **kwargs):
                return Edges(self.edge_index.to(*args, **kwargs), self.e_id.to(*args, **kwargs))
        """,
        """
        class Adjacency:
            def to(self, *args, **kwargs):
                adj_t = self.adj_t.to(*args, **kwargs)
                e_id = self.e_id.to(*args, **kwargs) if self.e_id is not None else None
                return Adjacency(adj_t, e_id, self.size)
        """,
        """
        class Boxes:
            def to(self, *args, **kwargs):
                self.data = self.data.to(*args, **kwargs)
                self.labels = self.labels.to(self.data.device)
                return self
        """,
        """
        class Boxes:
            def to(self, device):
                self.data = self.data.to(device)
                self.labels = self.labels.to(device)
                return self
        """,
        """
        class Boxes:
            def to(self, *args, **kwargs):
                device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
                self.data = self.data.to(*args, **kwargs)
                self.labels = self.labels.to(*args, **kwargs) if dtype is None else self.labels.to(device)
                return self
        """,
        """
        class Audio:
            def to(self, *args, **kwargs):
                self.wave = self.wave.to(*args, **kwargs)
                self.loss_mask = self.loss_mask.to(*args, **kwargs)
                self.soft_labels = self.soft_labels.to(*args, **kwargs)
                self.relative_lengths = self.relative_lengths.to(*args, **kwargs)
                return self
        """,
        """
        class Wrapped(nn.Module):
            def to(self, *args, **kwargs):
                self.extra = self.extra.to(*args, **kwargs)
                self.label = self.label.to(*args, **kwargs)
                return super().to(*args, **kwargs)
        """,
        """
        class Boxes:
            def cuda(self, *args, **kwargs):
                self.data = self.data.to(*args, **kwargs)
                self.labels = self.labels.to(*args, **kwargs)
        """,
    ),
    "DT113": (
        """
        def load(path, **kwargs):
            if "torch_dtype" not in kwargs:
                kwargs["torch_dtype"] = torch.float16
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def load(path, **kwargs):
            asked = kwargs.pop("torch_dtype", None)
            kwargs["torch_dtype"] = torch.float16
            return AutoModel.from_pretrained(path, **kwargs).to(asked)
        """,
        """
        def load(path, dtype="auto", fp16=False, **kwargs):
            kwargs["torch_dtype"] = dtype
            if fp16:
                kwargs["torch_dtype"] = torch.float16
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def load(path, device, **kwargs):
            if device == "cpu":
                kwargs["torch_dtype"] = torch.float32
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def load(path, torch_dtype=None, **kwargs):
            kwargs["torch_dtype"] = torch.bfloat16 if torch_dtype is None else torch_dtype
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def load(path):
            kwargs = {"device_map": "auto"}
            kwargs["torch_dtype"] = torch.float16
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def load_half(path, **kwargs):
            kwargs["torch_dtype"] = torch.float16
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def zeros(*size, **kwargs):
            kwargs["dtype"] = torch.float32
            return torch.zeros(*size, **kwargs)
        """,
        """
        def request(url, **payload):
            payload["torch_dtype"] = torch.float16
            return post(url, **payload)
        """,
        """
        def load(path, **kwargs):
            kwargs["torch_dtype"] = torch.float32  # for training
            return AutoModel.from_pretrained(path, **kwargs)
        """,
        """
        def table(length: int, dim: int, dtype: torch.dtype = torch.bfloat16):
            angles = torch.outer(torch.arange(length), 1.0 / 10000 ** (torch.arange(dim) / dim))
            return torch.cos(angles).to(dtype)
        """,
        """
        def rotated(x, length: int):
            angles = torch.outer(torch.arange(length), 1.0 / 10000 ** (torch.arange(8) / 8))
            return (x * angles.cos()).to(torch.bfloat16)
        """,
        """
        def causal(length: int):
            steps = torch.arange(length)
            return (steps[None] <= steps[:, None]).to(torch.bfloat16)
        """,
        """
        def dummy_inputs(batch: int, length: int):
            return torch.sin(torch.arange(batch * length)).view(batch, length).half()
        """,
        """
        def noise(length: int):
            return (torch.randn(length) * torch.arange(length).exp()).half()
        """,
        """
        def table_fp16(length: int):
            return torch.arange(length).exp().half()
        """,
        """
        def table(length: int):
            return torch.arange(length).exp().float()
        """,
        """
        class TextEncoder:
            def __init__(self, path, dtype=torch.float):
                self.model = Embedder(path, torch_dtype=dtype)
                self.dtype = dtype

            def shard(self):
                if self.dtype == torch.float16:
                    self.model = self.model.half()

            def quantize(self):
                self.model = quantize(self.model).half()

            def to_fp16(self):
                self.model = self.model.half()
        """,
        """
        class TextEncoder:
            def __init__(self, path, dtype=torch.float):
                self.model = Embedder(path, torch_dtype=dtype)

            def encode(self, x):
                self.cache = self.model(x).half()
        """,
        """
        class Pipeline:
            def __init__(self, path, dtype=torch.float):
                self.unet = AutoModel.from_pretrained(path, torch_dtype=dtype)

            def export_onnx(self):
                self.unet.half()
        """,
        """
        class Pipeline:
            def __init__(self, path, dtype=torch.float):
                self.unet = AutoModel.from_pretrained(path, torch_dtype=dtype)
                if dtype != torch.float:
                    self.unet.half()
        """,
        """
        class Reader:
            def __init__(self, path, dtype=np.float32):
                self.reader = np.memmap(path, dtype=dtype)
                self.net = Net()

            def prepare(self):
                self.net = self.net.half()
        """,
        """
        class Pipeline:
            def __init__(self, dtype="float32"):
                self.model = build(dtype)

            def enable_amp(self):
                self.model.to(torch.bfloat16)
        """,
        """
        class Sized:
            def __init__(self, dtype=torch.float32):
                x = torch.zeros(3, dtype=dtype)
                self.model = Net(x.shape)
                self.model.half()
        """,
        """
        class Pipeline:  # the dtype is that of the images, and no part is made in it
            def __init__(self, path, dtype=torch.float):
                self.image_dtype = dtype
                self.unet = AutoModel.from_pretrained(path)
                self.unet.half()
        """,
        """
        class TextEncoder:
            def __init__(self, path):
                self.model = Embedder(path)

            def shard(self):
                self.model = optimize(self.model).half()
        """,
    ),
    "DT114": (
        """
        def references(module, buffers):
            for dtype in buffers:
                buffers[dtype].reset()
            for param in module.parameters():
                dtype = param.dtype
                buffers[param.dtype].add(padded(param.shape, dtype))
        """,
        """
        def first(candidates, params):
            for dtype in candidates:
                if is_supported(dtype):
                    break
            for param in params:
                if param.dtype != dtype:
                    param.data = param.data.to(dtype)
        """,
        """
        def nested(dtypes, params):
            for dtype in dtypes:
                for param in params:
                    if param.dtype == dtype:
                        print(param, dtype)
            for dtype, param in params.items():
                print(dtype, param.dtype)
        """,
        """
        def names(buffers, params):
            for dtype in buffers:
                print(dtype)
            for param in params:
                print(param.dtype, [dtype for dtype in buffers], {dtype: 1 for dtype in buffers})
                param.apply(lambda x, dtype: x.to(dtype))
        """,
        """
        def last(steps, params):
            for dtype in steps:
                print(dtype)
            for param in params:
                param.data = param.data.to(dtype)  # no dtype of its own is asked for
        """,
    ),
    "DT117": (
        """
        from contextlib import nullcontext
        from torch.cuda.amp import autocast

        class Trainer:
            def step(self, x, use_amp):
                ctx = autocast() if self.amp else nullcontext()
                with nullcontext() if not use_amp else torch.autocast("cuda"):
                    return self.model(x)

            def run(self, amp):
                if amp:
                    ctx = autocast()
                else:
                    ctx = nullcontext()
                if not amp:
                    with nullcontext():
                        pass
                else:
                    with autocast():
                        pass
                return ctx
        """,
        """
        from contextlib import nullcontext

        def run(no_amp, disable_amp, apex_amp, fp16, args, is_fp32):
            a = nullcontext() if no_amp else torch.autocast("cuda")
            b = nullcontext() if disable_amp else torch.autocast("cuda")
            c = nullcontext() if apex_amp else torch.autocast("cuda")
            d = nullcontext() if fp16 else torch.autocast("cuda")
            e = nullcontext() if args.deepspeed else torch.autocast("cuda")
            return a, b, c, d, e, nullcontext() if is_fp32 else torch.autocast("cuda")
        """,
        """
        from contextlib import nullcontext

        def run(model, x):
            with nullcontext() if torch.is_autocast_enabled() else torch.autocast("cuda"):
                model(x)
            autocast_enabled = torch.is_autocast_enabled()
            with nullcontext() if autocast_enabled else torch.autocast("cuda", dtype=torch.bfloat16):
                model(x)
            use_amp = not x.is_cuda
            with nullcontext() if use_amp else torch.autocast("cuda"):
                return model(x)
        """,
        """
        from contextlib import nullcontext

        def loss(self, x, use_amp):
            ctx = nullcontext() if not use_amp else torch.autocast("cuda", enabled=False)
            with torch.autocast("cuda", enabled=False) if self.amp else nullcontext():
                y = self.exact(x)
            with nullcontext() if self.amp else torch.cuda.amp.autocast(False):
                y = self.exact(x)
            with nullcontext() if self.amp else torch.autocast("cuda", dtype=torch.float32):
                y = self.exact(x)
            with nullcontext() if self.amp else torch.autocast("cuda", enabled=self.half):
                y = self.exact(x)
            with nullcontext() if self.amp else torch.autocast("cuda", **self.options):
                return self.exact(y)
        """,
        """
        from contextlib import nullcontext
        from apex import amp as apex_amp

        def run(args, use_amp):
            return nullcontext() if use_amp else torch.autocast("cuda")
        """,
        """
        from contextlib import nullcontext
        from torch.cuda import amp

        def run():
            return nullcontext() if amp else amp.autocast()
        """,
        """
        import deepspeed
        from contextlib import nullcontext

        def run(args, use_amp):
            return nullcontext() if use_amp else torch.autocast("cuda")
        """,
        """
        from contextlib import nullcontext

        def run(args, amp, use_amp, device):
            a = nullcontext() if amp == "none" else torch.autocast("cuda")
            b = nullcontext() if use_amp is None else torch.autocast("cuda")
            c = nullcontext() if not amp or device == "mps" else torch.autocast("cuda")
            d = torch.no_grad() if use_amp else torch.autocast("cuda")
            e = nullcontext(args) if use_amp else torch.autocast("cuda")
            return a, b, c, d, e, nullcontext() if use_amp() else torch.autocast("cuda")
        """,
        """
        from contextlib import nullcontext

        def run(amp, use_amp, compute):
            if use_amp:
                other = nullcontext()
            else:
                ctx = torch.autocast("cuda")
            if amp:
                with nullcontext():
                    compute()
            elif use_amp:
                with torch.autocast("cuda"):
                    compute()
            self_amp = args.no_amp
            return ctx, other
        """,
        """
        from contextlib import nullcontext

        class Trainer:
            def __init__(self, args):
                self.amp = args.no_amp
                self.use_amp = args.precision != "amp"

            def run(self):
                a = nullcontext() if self.amp else torch.autocast("cuda")
                return nullcontext() if self.use_amp else torch.autocast("cuda")
        """,
    ),
    "DT120": (
        """
        def cast(model, dtype):
            if isinstance(dtype, str):
                dtype = getattr(torch, dtype)
            return model if model.dtype == dtype else model.to(dtype)
        """,
        """
        def cast(model, dtype):
            target = getattr(torch, dtype) if isinstance(dtype, str) else dtype
            return model if model.dtype == dtype else model.to(target)
        """,
        """
        def cast(model, name):
            if model.dtype != getattr(torch, name):
                model = model.to(getattr(torch, name))
            return str(model.dtype) == "torch." + name
        """,
        """
        def load(config, args, name):
            if config.dtype != name or args.model.config.dtype == name:
                config.dtype = name
            return AutoModel.from_config(config, torch_dtype=getattr(torch, name))
        """,
        """
        def cast(model, dtype: torch.dtype | str):
            model.eval()
            return model if model.dtype == dtype else model.to(getattr(torch, dtype))
        """,
        """
        def describe(model: Description, name):
            if model.dtype != name:
                raise ValueError(model.dtype)
            return getattr(torch, name)
        """,
        """
        def load(array, frame, name):
            if array.dtype != name or frame.values.dtype != name or np.asarray(array).dtype != name:
                array = array.astype(name)
            return torch.tensor(array, dtype=getattr(torch, name))
        """,
        """
        def cast(model, dtype):
            target = getattr(torch, dtype, dtype)
            return model.dtype == dtype or model.to(target)
        """,
        """
        def cast(model, dtype):
            try:
                target = getattr(torch, dtype)
            except TypeError:
                target = dtype
            return model.dtype == dtype or model.to(target)
        """,
        """
        def cast(model, dtype):
            if dtype in NAMES:
                return model.to(getattr(torch, dtype))
            return model if model.dtype == dtype else model.to(dtype)
        """,
        """
        def cast(model, dtype):
            if model.dtype == dtype:
                return model
            return model.to(dtype)

        def look_up(name, dtype):
            return getattr(np, dtype), getattr(torch, name)
        """,
        """
        def cast(model, dtype):
            target = type(dtype) is str and getattr(torch, dtype) or dtype
            return model.dtype == dtype or model.to(target)
        """,
        """
        def ask(x, dtype):
            if isinstance(dtype, torch.dtype) or isinstance(x, (torch.Tensor, nn.Module, np.float16)):
                return isinstance(x, (str, torch.device)) or issubclass(type(x), torch.Tensor)
        """,
        """
        def ask(x, dtype):
            if type(x) == torch.Tensor or type(dtype) is torch.dtype or type(x) in (float, int, nn.Parameter):
                return x.dtype == torch.float32
        """,
        """
        def ask(x, type):
            return type(x) == torch.float32
        """,
        """
        def load(args, dtype):
            if dtype == "float16":
                dtype = torch.float16
            torch_dtype = args.torch_dtype
            if torch_dtype == "float16":
                torch_dtype = torch.float16
            return dtype, torch_dtype
        """,
        """
        def load(args):
            torch_dtype = args.dtype if args.dtype in ("auto", "float16") else getattr(torch, args.dtype)
            return torch_dtype == "float16" or torch_dtype == "auto"
        """,
        """
        def load(name):
            dtype = name
            if dtype == "bfloat16":
                dtype = getattr(torch, name)
            np_dtype = getattr(np, name)
            return np_dtype == "float32" or getattr(torch, name, name) == "float32"
        """,
        """
        dtype = getattr(torch, os.environ["DTYPE"])

        def outer(dtype):
            def inner():
                return dtype == "float16"
            return inner
        """,
        """
        def back(array, frame):
            dtype = array.dtype
            frame_dtype = np.asarray(frame).dtype
            return dtype == "float16" or frame_dtype == "float64"
        """,
        """
        def back(x: Tensor, name):
            dtype = x.dtype
            if name:
                dtype = name
            return dtype == "float16"
        """,
        """
        def back(x: Tensor):
            dtype = str(x.dtype)
            return dtype == "torch.float16"
        """,
        """
        def load(names):
            dtype = getattr(torch, names[0])
            for dtype in names:
                if dtype == "float16":
                    return dtype
        """,
        """
        def load(args):
            dtype = getattr(torch, args.dtype)
            if args.dtype == "float16" or str(dtype) == "torch.float16":
                return dtype
        """,
    ),
    "DT126": (
        """
        parser = argparse.ArgumentParser()
        parser.add_argument("--fp16", action="store_true")
        parser.add_argument("--amp", type=str2bool, default=False)
        parser.add_argument("--bf16", type=lambda text: text.lower() == "true")
        parser.add_argument("--half", type=bool, action=argparse.BooleanOptionalAction)
        parser.add_argument("--shuffle", type=bool, default=True)
        parser.add_argument("--sample", type=bool)
        parser.add_argument("--example-camp", type=bool)
        parser.add_argument("--amp-level", type=int)
        """,
        """
        from jsonargparse import ArgumentParser

        parser = ArgumentParser()
        parser.add_argument("--fp16", type=bool, default=False)
        """,
        """
        class Cli(LightningCLI):
            def add_arguments_to_parser(self, parser):
                parser.add_argument("--fp16", type=bool, default=False)
        """,
        """
        def bool(text):
            return text == "yes"

        fp16 = bool(sys.argv[1])
        parser = argparse.ArgumentParser()
        parser.add_argument("--amp", type=bool)
        """,
        """
        fp16 = sys.argv[1] == "True"
        half = bool(int(sys.argv[2]))
        amp = bool(int(os.environ.get("AMP", "0")))
        bf16 = bool(os.environ.get("BF16"))  # set, or not
        tf32 = bool(os.environ.get("TF32", ""))
        use_fp16 = bool(args.fp16)
        debug = bool(sys.argv[3])
        verbose = bool(os.environ.get("VERBOSE", "0"))
        """,
    ),
    "DT501": (
        """
        if TORCH_VERSION >= (2, 4):
            from torch.amp import GradScaler
        else:
            from torch.cuda.amp import GradScaler
        """,
        """
        if is_torch_greater_or_equal_2_4():
            from compat import GradScaler
        else:
            from torch.cuda.amp import GradScaler
        """,
        """
        if TORCH_24:
            from compat import GradScaler
        else:
            from torch.cuda.amp import GradScaler
        """,
        """
        if hasattr(torch.amp, "GradScaler"):
            from compat import GradScaler
        else:
            from torch.cuda.amp import GradScaler
        """,
        """
        if is_npu_available():
            from torch_npu.npu.amp import GradScaler
        else:
            from torch.amp import GradScaler
        """,
        """
        if TYPE_CHECKING:
            from torch.cuda.amp import GradScaler
        """,
    ),
    "DT507": (
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = False):  # who asks for it has a GPU
                self.model = make(name)
                if use_fp16:
                    self.model.half()
                self.device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
                self.model = self.model.to(self.device)
        """,
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True):
                self.device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
                if self.device.type == "cpu":
                    use_fp16 = False
                self.model = make(name).to(self.device)
                if use_fp16:
                    self.model.half()
        """,
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True):
                self.device = "cuda" if torch.cuda.is_available() else "cpu"
                self.model = make(name).to(self.device)
                if use_fp16 and self.device == "cuda":
                    self.model.half()
        """,
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True):
                self.device = "cuda" if torch.cuda.is_available() else "cpu"
                self.model = make(name)
                self.model = self.model.to(self.device)
                if self.device == "cpu":
                    return
                if use_fp16:
                    self.model.half()
        """,
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True, device: str = "cuda"):
                self.model = make(name).to(device)
                if use_fp16:
                    self.model.half()
        """,
        """
        class Embedder:
            def __init__(self, name, use_fp16: bool = True):
                self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                self.model = make(name)
                if use_fp16:
                    self.model.half()
                if self.device.type == "cpu":
                    self.model.float()
                self.model.to(self.device)
        """,
        """
        def load(path, half=True):
            assert torch.cuda.is_available()
            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = torch.jit.load(path)
            if half:
                model.half()
            return model.to(device)
        """,
        """
        def load(path, full=True):
            device = "cuda" if torch.cuda.is_available() else "cpu"
            model = torch.jit.load(path).to(device)
            if not full:
                model.half()
            return model
        """,
    ),
    "DT510": (
        """
        def to_float(samples):
            if np.issubdtype(samples.dtype, np.integer):
                return samples / np.iinfo(samples.dtype).max
            return np.asarray(samples, dtype=np.result_type(samples, np.float32))
        """,
        """
        def kinds():
            if hasattr(np, "sctypes"):
                return np.sctypes["float"]
            try:
                return np.find_common_type([], [])
            except AttributeError:
                return np.sctypeDict
        """,
    ),
}


test_bad_code_is_flagged_where_it_says, test_good_code_is_left_alone = BENCH.tests(BAD, GOOD)


def test_switch_that_is_on_by_default_has_no_fix() -> None:
    text = 'parser = argparse.ArgumentParser()\nparser.add_argument("--fp16", type=bool, default=True)\n'
    assert BENCH.fixed("DT126", text) == text


def test_switch_with_other_arguments_has_no_fix() -> None:
    text = 'parser = argparse.ArgumentParser()\nparser.add_argument("--fp16", type=bool, nargs="?", const=True)\n'
    assert BENCH.flagged("DT126", text) != []
    assert BENCH.fixed("DT126", text) == text


def test_swapped_autocast_is_turned_round() -> None:
    text = "from contextlib import nullcontext\nctx = nullcontext() if args.amp else torch.autocast('cuda')\n"
    assert "nullcontext() if not args.amp else" in BENCH.fixed("DT117", text)
    text = "from contextlib import nullcontext\nctx = torch.autocast('cuda') if not args.amp else nullcontext()\n"
    assert "torch.autocast('cuda') if args.amp else" in BENCH.fixed("DT117", text)


def test_bool_for_a_dtype_becomes_a_choice() -> None:
    text = 'def load(name):\n    dtype = (name and name != "auto") or torch.float16\n    return dtype\n'
    assert 'dtype = name if (name and name != "auto") else torch.float16\n' in BENCH.fixed("DT107", text).replace(
        'if name and name != "auto" else', 'if (name and name != "auto") else'
    )
    text = "def load(name):\n    dtype = name is None or torch.float16\n    return dtype\n"
    assert BENCH.fixed("DT107", text) == text


def test_method_that_no_tensor_has_gets_its_name() -> None:
    text = "def norm(x):\n    return layer(x.float()).as_type(x)\n"
    assert BENCH.fixed("DT107", text) == text.replace("as_type", "type_as")
