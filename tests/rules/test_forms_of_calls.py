"""Forms of calls that raise, or do something else than they say, and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT107": (
        """
        def made(n, data, dtype):
            counts = torch.zeros(n, torch.int64)  # <-
            values = torch.tensor(data, torch.float32)  # <-
            like = torch.ones_like(values, dtype)  # <-
            return counts, values, like, torch.from_numpy(data, dtype=torch.float32)  # <-
        """,
        """
        class Head(nn.Module):
            def __init__(self, width, dtype=torch.float32):
                super().__init__()
                self.project = nn.Linear(width, width, torch.bfloat16)  # <-
                self.norm = nn.LayerNorm(width, dtype)  # <-
                self.scale = nn.Parameter(torch.ones(width), torch.float32)  # <-
        """,
        """
        def total(x: Tensor):
            return x.sum(torch.float32), torch.sum(x, torch.int64)  # <-
        """,
        """
        def counted(x: Tensor, lengths: Tensor):
            batch_size = x.shape[0]
            return lengths.sum().type_as(batch_size)  # <-
        """,
        """
        def vocoded(mels):
            if isinstance(mels, np.ndarray):
                mels = torch.FloatTensor(mels).type_as(mels)  # <-
            return mels
        """,
        """
        def alike(x: Tensor, y: Tensor):
            table = np.ones(3)
            return x.type_as(y.dtype), x.type_as(table), x.to(table)  # <-
        """,
        """
        def grid(n):
            return np.linspace(0, 1, n, dtype=np.float6432)  # <-
        """,
        """
        def stored(x, y: Tensor):
            return x.astype(np.bfloat16), y.to(torch.float34, non_blocking=True), np.zeros(3)  # <-
        """,
    ),
    "DT111": (
        """
        def encode(speech, encoder_out_lens, speech_lengths: Tensor, dtype):
            speech = speech.to(torch.float16)
            encoder_out_lens = encoder_out_lens.to(torch.float16)  # <-
            return speech, encoder_out_lens, speech_lengths.bfloat16()  # <-
        """,
        """
        def encode(audio, length=None):
            if length is None:
                length = torch.tensor(audio.size(-1)).repeat(audio.size(0)).to(audio)  # <-
                lengths = torch.full((2,), audio.shape[1]).type_as(audio)  # <-
            return length, lengths
        """,
    ),
    "DT113": (
        """
        def convert(module, skipped, compute_dtype: torch.dtype):
            for name, child in module.named_children():
                if isinstance(child, nn.Linear):
                    setattr(module, name, Quantized(child, compute_dtype=torch.float16))  # <-
                else:
                    convert(child, skipped, compute_dtype=compute_dtype)
        """,
        """
        def load(path, torch_dtype=None):
            return Model.from_pretrained(path, torch_dtype=torch.bfloat16)  # <-
        """,
    ),
    "DT120": (
        """
        def shrink(x: Tensor):
            kind = x.dtype
            if kind == "float64":  # <-
                x = x.float()
            return x
        """,
        """
        def shrink(model):
            first = next(model.parameters()).dtype
            return model.float() if first in ("float16", "bfloat16") else model  # <-
        """,
    ),
    "DT127": (
        """
        def pretrained(path, device="cpu", default_dtype="float32"):  # <-
            return Calculator(path, device=device)
        """,
        """
        def states(k, size,
                   states_in_fp32: bool = False):  # <-
            return k.new_empty(size)
        """,
        """
        class Head(nn.Module):
            def __init__(self, width, device=None, dtype=None):  # <-
                super().__init__()
                self.project = nn.Linear(width, width, device=device)
        """,
    ),
    "DT201": (
        """
        class Trainer:
            def train(self, batches):
                for x in batches:
                    with self.accelerator.autocast():
                        loss = self.model(x)
                        self.accelerator.backward(loss)  # <-
        """,
        """
        def train(model, batches, fabric, accelerator):
            for x in batches:
                with accelerator.accumulate(model), accelerator.autocast():
                    accelerator.backward(model(x).mean())  # <-
                with fabric.autocast():
                    loss = model(x)
                    fabric.backward(loss, retain_graph=True)  # <-
        """,
    ),
    "DT204": (
        """
        from torch.amp import GradScaler

        def train(model, batches, optimizer, scaler):
            for x in batches:
                optimizer.zero_grad()
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)  # <-

        def main(model, batches, optimizer):
            scaler = GradScaler("cuda")
            for epoch in range(3):
                train(model, batches, optimizer, scaler)
        """,
        """
        from torch.amp import GradScaler

        def train(model, batches, optimizer, scaler: GradScaler, path):
            for i, x in enumerate(batches):
                optimizer.zero_grad()
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)  # <-
                if i % 100 == 0:
                    scaler.update(scaler.get_scale() * 2)
                    save_checkpoint(path, scaler=scaler)

        def main(args, model, batches, optimizer):
            scaler = GradScaler("cuda", enabled=args.amp)
            train(model, batches, optimizer, scaler=scaler, path=args.path)
        """,
    ),
    "DT212": (
        """
        import triton

        class Fused(torch.autograd.Function):
            @staticmethod  # <-
            def forward(ctx, x, y, weight, bias):
                z = gate(x, y)
                ctx.save_for_backward(x, y, weight)
                return F.linear(z, weight, bias)

            @staticmethod
            def backward(ctx, grad):
                x, y, weight = ctx.saved_tensors
                dx, dy, z = gate_backward(x, y, F.linear(grad, weight.t()))
                return dx, dy, torch.einsum("bo,bi->oi", grad, z), grad.sum(0)
        """,
    ),
    "DT218": (
        """
        from torch.cuda.amp import GradScaler, autocast

        scaler = GradScaler("cuda")  # <-

        def attend(q, k, enabled):
            with autocast(q.device.type, enabled=enabled):  # <-
                return q @ k.mT
        """,
        """
        def attend(q: Tensor, device):
            with torch.cuda.amp.autocast(device, dtype=torch.float16):  # <-
                q = q @ q.mT
            with torch.cpu.amp.autocast(torch.bfloat16):  # <-
                q = q @ q.mT
            with torch.cuda.amp.autocast("cuda" if q.is_cuda else "cpu"):  # <-
                q = q @ q.mT
            with torch.cuda.amp.autocast(device_type="cuda"):  # <-
                return q @ q.mT
        """,
        """
        def attend(q: Tensor, amp):
            with torch.autocast("cuda", False):  # <-
                q = q @ q.mT
            with torch.amp.autocast(enabled=amp):  # <-
                q = q @ q.mT
            with torch.amp.autocast(True):  # <-
                return q @ q.mT, torch.amp.GradScaler(False)  # <-
        """,
    ),
    "DT502": (
        """
        def looked_up(rows, columns):
            rows, columns = torch.LongTensor(rows.long()), torch.LongTensor(columns.long())  # <-
            return rows, columns
        """,
        """
        def tensor_of(data, dtype):
            return torch.Tensor(data, dtype=dtype), torch.FloatTensor([1.0], dtype=torch.float16)  # <-
        """,
    ),
}

GOOD = {
    "DT107": (
        """
        def stored(x):
            try:
                x = x.astype(np.float12)
            except AttributeError:
                x = x.astype(np.float16)
            if hasattr(np, "float24"):
                return x.astype(np.float24)
            return x.astype(np.float25 if getattr(np, "float25", None) else np.float32)
        """,
        """
        class Wrapping:
            def join(self, x, y):
                if isinstance(x, np.ndarray):
                    x = self.wrap(x)
                    y = torch.tensor(y).to(x)
                return y
        """,
        """
        def coded(x: Tensor, dtype):
            size = torch.tensor(dtype, device=x.device)
            return size, torch.full((1,), dtype), torch.as_tensor(dtype), x.new_tensor(dtype), x.type_as(dtype)
        """,
        """
        from functools import partial

        def made(args, width):
            linear = partial(nn.Linear, 2, 3, True, None)(torch.float32)
            other = partial(nn.Linear, width)(width, True, None, torch.float32)
            return linear, other, nn.Linear(*args, torch.float32), torch.zeros(*args, torch.float32)
        """,
        """
        def made(n, data, shape):
            counts = torch.zeros(n, dtype=torch.int64)
            table = np.zeros(n, np.float32)
            probabilities = torch.softmax(counts.float(), -1, torch.float32)
            return F.softmax(probabilities, -1, 3, torch.float32), table, torch.zeros(*shape), data.view(torch.int32)
        """,
        """
        class Head(nn.Module):
            def __init__(self, width, bias, device, dtype):
                super().__init__()
                self.project = nn.Linear(width, width, bias, device, dtype)
                self.norm = nn.LayerNorm(width, 1e-5, True, True, device, dtype)
                self.scale = nn.Parameter(torch.ones(width), False)
        """,
        """
        def alike(x: Tensor, y, mels, device_id):
            if not isinstance(mels, np.ndarray):
                x = x.type_as(mels)
            if isinstance(mels, np.ndarray):
                mels = torch.from_numpy(mels)
                x = x.type_as(mels)
            return x.type_as(y), x.to(3), x.to(device_id)
        """,
        """
        def wide(x):
            return x.astype(np.float128), np.zeros(3, dtype=np.complex64), torch.zeros(3, dtype=torch.uint4)
        """,
    ),
    "DT111": (
        """
        def encode(edge_lengths, bond_length, batch, audio, focal_length):
            return edge_lengths.to(torch.bfloat16), bond_length.half(), focal_length.to(torch.float16)

        def shortened(x: Tensor):
            lengths = x.float().norm(dim=-1)
            return lengths.half()
        """,
        """
        def crop(x):
            length = torch.tensor(x.shape[-1]).to(x)
            return x / length.sqrt()
        """,
        """
        def encode(audio):
            audio = audio.float()
            length = torch.tensor(audio.size(-1)).to(audio)
            return length, audio
        """,
        """
        def main():
            audio = torch.rand(1, 100)
            length = torch.tensor(audio.size(-1)).to(audio)
            print(length)

        if __name__ == "__main__":
            main()
        """,
        """
        def mean(x: Tensor, lengths, valid):
            count = torch.tensor(x.size(0)).to(x)
            length = torch.tensor(x.size(0)).to(x.device)
            length = torch.tensor(valid).to(length)
            return x.sum(0) / lengths.to(x.dtype) / lengths.float() / count, valid.half(), lengths.to(torch.float32)
        """,
    ),
    "DT113": (
        """
        def chained(a, b, out_dtype: torch.dtype):
            h = gemm(a, b, out_dtype=torch.bfloat16)
            return gemm(h, b, out_dtype=out_dtype)

        def made(path, compute_dtype):
            try:
                return make(path, compute_dtype=compute_dtype)
            except RuntimeError:
                return make(path, compute_dtype=torch.float16)
        """,
        """
        def load(path, torch_dtype=None, accumulate_dtype=None):
            if torch_dtype is None:
                return Model.from_pretrained(path, torch_dtype=torch.bfloat16)
            accumulate_dtype = accumulate_dtype or torch.float32
            first = Model(path, accumulate_dtype=torch.float16)
            return first, Model(path, torch_dtype=torch.float32), Model(path, vae_dtype=torch.float16)
        """,
    ),
    "DT120": (
        """
        def shrink(x, config):
            kind = x.dtype
            if kind == "float64":
                x = x.astype("float32")
            mode = config.mode
            return x if mode == "float32" else x * 2
        """,
        """
        def shrink(x: Tensor, kind):
            kind = str(x.dtype).removeprefix("torch.")
            return x.float() if kind == "float64" else x
        """,
    ),
    "DT127": (
        """
        class Base:
            def made(self, n, dtype):
                return torch.zeros(self.size(n))

            def load(self, path, dtype=None):
                return torch.load(path)

            def hook(self):
                register(self.load)

        class Wide(Base):
            def made(self, n, dtype):
                return torch.zeros(n, dtype=dtype)

        class Block(nn.Module):
            def forward(self, x, dtype=None):
                return self.inner(x)
        """,
        """
        def noise(shape, dtype=None):
            return torch.randn(shape, dtype=dtype)

        def keyed(shape, dtype=None):
            return torch.randn(shape, **{name: value for name, value in locals().items() if name != "shape"})

        def of_float32(key, value, dtype):
            return torch.zeros(value)

        MAKERS = {"float32": of_float32}
        """,
        '''
        class Wrapped(Tensor):
            def __array__(self, dtype=None):
                return self.values.numpy()

        class Scaled(Optimizer):
            def make_state(self, p, dtype):
                return torch.zeros_like(p)

        def load(path, dtype=None):
            """Load a model. `dtype` is ignored: there for old callers."""
            return torch.load(path)

        class Base:
            def made(self, dtype):
                raise NotImplementedError(self.name())
        ''',
    ),
    "DT201": (
        """
        class Trainer:
            def train(self, batches):
                for x in batches:
                    with self.precision.autocast():
                        loss = self.model(x)
                        self.precision.backward(loss)
        """,
        """
        def train(model, batches, accelerator, fabric, engine):
            for x in batches:
                with accelerator.autocast():
                    loss = model(x)
                accelerator.backward(loss)
                with accelerator.autocast(AutocastKwargs(enabled=False)):
                    accelerator.backward(loss)
                with accelerator.autocast():
                    with torch.autocast("cuda", enabled=False):
                        accelerator.backward(model(x))
                with fabric.autocast():
                    accelerator.backward(loss)
                with torch.autocast("cuda", dtype=torch.float16):
                    engine.backward(loss)
                with torch.autocast("cuda", dtype=torch.float16):
                    accelerator.backward(loss)
        """,
    ),
    "DT204": (
        """
        from torch.amp import GradScaler

        def train(model, batches, optimizer):
            scaler = GradScaler("cuda")
            for x in batches:
                loss = model(x)
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                if loss.isnan():
                    scaler.update(1024.0)
                else:
                    scaler.update(2048.0)
        """,
        """
        from torch.amp import GradScaler

        def train(model, batches, optimizer, scaler):
            for x in batches:
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)
                finish(optimizer, scaler)

        def main(model, batches, optimizer):
            train(model, batches, optimizer, GradScaler("cuda"))
            scaler = GradScaler("cuda")
            train(model, batches, optimizer, scaler)
        """,
        """
        from torch.amp import GradScaler

        def train(model, batches, optimizer, scaler):
            for x in batches:
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)
                scaler.update(1024.0)

        def end(scaler):
            scaler.update()

        def other(model, batches, optimizer, scaler):
            for x in batches:
                scaler.scale(model(x)).backward()
                scaler.step(optimizer)
                end(scaler)

        def main(model, batches, optimizer):
            scaler = GradScaler("cuda")
            train(model, batches, optimizer, scaler)
            other(model, batches, optimizer, scaler)
        """,
    ),
    "DT212": (
        """
        import triton

        class Fused(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, a, b):
                ctx.save_for_backward(a, b)
                return torch.matmul(a, b)

            @staticmethod
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return None, torch.matmul(grad, b.mT), torch.matmul(a.mT, grad)
        """,
    ),
    "DT218": (
        """
        from torch.cuda.amp import autocast

        def attend(q: Tensor, args, enable_device, per_device, to_device: bool):
            with autocast(args.fp16_on_device), autocast(enable_device), autocast(per_device), autocast(to_device):
                return q @ q.mT
        """,
        """
        from torch.cuda.amp import GradScaler, autocast

        def attend(q: Tensor, amp, use_device, dtype):
            scaler = GradScaler(2.0**14, enabled=amp)
            with autocast(amp, dtype), autocast(False), autocast(use_device):
                q = q @ q.mT
            with torch.autocast("cuda", torch.float16, False), torch.autocast(q.device.type, enabled=amp):
                return q @ q.mT, scaler, torch.amp.GradScaler(q.device.type, enabled=amp), torch.amp.GradScaler()
        """,
        """
        try:
            from torch.amp import GradScaler
        except ImportError:
            from torch.cuda.amp import GradScaler

        scaler = GradScaler("cuda")
        """,
    ),
    "DT502": (
        """
        def drawn(rng, data):
            return torch.DoubleTensor(rng.double()), torch.IntTensor(data.int()), torch.FloatTensor(data.float())
        """,
        """
        def looked_up(rows, data):
            kept = torch.LongTensor(rows.cpu().long())
            return kept, torch.LongTensor(data), torch.Tensor(data.tolist()), torch.FloatTensor(data.astype(float))
        """,
    ),
    "DT112": (
        """
        class Gated(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.up = nn.Linear(width, width)

            def forward(self, x, keep=None):
                if keep is not None:
                    x = x.float() * keep[:, None]
                else:
                    x = self.up(x)
                return x

            def probabilities(self, x, mask=None):
                if mask is not None:
                    x = x.float().masked_fill(mask, -1e4)
                    return F.softmax(x, -1)
                return self.up(x)

            def under(self, x, keep=None):
                if keep is not None:
                    x = x.float() * keep[:, None]
                with torch.autocast("cuda"):
                    return self.up(x)
        """,
    ),
    "DT124": (
        """
        import copy

        def save_all(models, path):
            for name, model in models.items():
                torch.save({"model": model.half()}, name)
            for name, model in models.items():
                torch.save(model.half().state_dict(), name)

        def save_copy(model, path):
            model = copy.deepcopy(model)
            torch.save({"model": model.half()}, path)
        """,
    ),
    "DT121": (
        """
        import math

        def first():
            one = math.cos(0)
            ones = torch.tensor([one, math.cos(-0.0)], dtype=torch.int64)
            return torch.tensor(math.exp(0), dtype=torch.int64), torch.tensor(math.log(1), dtype=torch.int32), ones
        """,
    ),
}


test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


def test_what_tells_the_device_already_is_only_renamed() -> None:
    text = "def f(x, on):\n    with torch.cuda.amp.autocast(x.device.type, enabled=on):\n        return x\n"
    assert "torch.amp.autocast(x.device.type, enabled=on)" in BENCH.fixed("DT501", text)


def test_a_switch_becomes_a_keyword_whatever_its_name_speaks_of() -> None:
    text = "def f(x, args):\n    with torch.cuda.amp.autocast(args.fp16_on_device):\n        return x\n"
    assert 'torch.amp.autocast("cuda", enabled=args.fp16_on_device)' in BENCH.fixed("DT501", text)


def test_a_legacy_constructor_of_a_list_that_is_told_a_dtype_becomes_a_function() -> None:
    text = "a = torch.Tensor([1.0], dtype=torch.float64)\n"
    assert "torch.tensor([1.0], dtype=torch.float64)" in BENCH.fixed("DT502", text)
    unknown = "def f(n):\n    return torch.Tensor(n, dtype=torch.float64)\n"
    assert "torch.Tensor(n, dtype=torch.float64)" in BENCH.fixed("DT502", unknown)
