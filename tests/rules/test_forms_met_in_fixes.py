"""Forms that fixes in public repositories show, and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT112": (
        """
        class Up(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.conv = nn.Conv2d(width, width, 3)

            def forward(self, x: Tensor):
                larger = F.interpolate(x.to(torch.float32), scale_factor=2)  # <-
                return self.conv(larger)
        """,
    ),
    "DT119": (
        """
        FLOATING_DTYPES = [torch.float32, torch.float64]

        def convert(x: Tensor, dtype: torch.dtype):
            return x.to(dtype) if x.dtype in FLOATING_DTYPES else x  # <-
        """,
    ),
    "DT124": (
        """
        def train(model, ema, parallel, batches, optimizer):
            for step, batch in enumerate(batches):
                model(batch).backward()
                optimizer.step()
                checkpoint = {
                    "model": (model.module if parallel else model).half(),  # <-
                    "ema": (ema.ema.half(), ema.updates),  # <-
                }
                torch.save(checkpoint, f"{step}.pt")
                model.float(), ema.ema.float()
        """,
    ),
    "DT308": (
        """
        def folds(x: Tensor):
            held_out = torch.eye(x.shape[-2], dtype=torch.uint8)
            return torch.stack([x[..., ~each, :] for each in held_out])  # <-
        """,
    ),
    "DT404": (
        """
        def distances(x: Tensor, y: Tensor):
            squares = (x**2).sum(1, keepdim=True) + (y**2).sum(1) - 2 * x @ y.t()
            return squares.sqrt()  # <-
        """,
        """
        def distances(x: Tensor, y: Tensor):
            x_norm, y_norm = x.norm(dim=1, keepdim=True), y.norm(dim=1)
            return torch.sqrt(x_norm * x_norm + y_norm * y_norm - 2 * x.mm(y.T))  # <-
        """,
        """
        def distances(x: Tensor, y: Tensor):
            x2 = x.pow(2).sum(-1, keepdim=True)
            y2 = torch.sum(y * y, dim=-1)
            return (-2 * x @ y.t() + x2 + y2).sqrt()  # <-
        """,
        """
        def deviation(x: Tensor):
            average = x.mean(0)
            spread = (x * x).mean(0) - average**2
            return spread.sqrt()  # <-
        """,
        """
        def contrast(image):
            return torch.sqrt(F.avg_pool2d(image**2, 3) - F.avg_pool2d(image, 3) ** 2)  # <-
        """,
    ),
    "DT406": (
        """
        def total(params):
            norms = [torch.norm(p.grad.detach(), 2.0) for p in params]  # <-
            return torch.norm(torch.stack(norms), 2.0)
        """,
    ),
    "DT111": (
        """
        def moved(args, device=None, dtype=None):
            kwargs = {}
            if device is not None:
                kwargs["device"] = device
            if dtype is not None:
                kwargs["dtype"] = dtype
            if isinstance(args, torch.Tensor):
                return args.to(**kwargs)  # <-
            elif isinstance(args, dict):
                return {name: moved(each, **kwargs) for name, each in args.items()}
            return args
        """,
        """
        class Engine:
            def cast_inputs(self, inputs):
                if isinstance(inputs, (list, tuple)):
                    return inputs.__class__(self.cast_inputs(each) for each in inputs)
                elif isinstance(inputs, dict):
                    return {key: self.cast_inputs(each) for key, each in inputs.items()}
                elif hasattr(inputs, "half"):
                    return inputs.half()  # <-
                else:
                    return inputs
        """,
        """
        def cast_type(inputs, src_type, dst_type):
            if isinstance(inputs, torch.Tensor):
                return inputs.to(dst_type)  # <-
            elif isinstance(inputs, dict):
                return {key: cast_type(each, src_type, dst_type) for key, each in inputs.items()}
            return inputs
        """,
        """
        def export(model, export_dtype):
            states = model.state_dict()
            if export_dtype != torch.float32:
                states = {name: each.to(export_dtype) for name, each in states.items()}  # <-
            return states
        """,
        """
        def shrink(path, precision):
            state_dict = torch.load(path)
            if precision == "float16":
                state_dict = {name: each.half() for name, each in state_dict.items()}  # <-
            return state_dict
        """,
        """
        def move(batch):
            return apply_to_collection(batch, Tensor, function=Tensor.half)  # <-
        """,
        """
        from torch.utils._pytree import tree_map

        def move(inputs):
            return tree_map(torch.Tensor.bfloat16, inputs)  # <-
        """,
        """
        def example(model, input_):
            return apply_to_collection(input_, torch.Tensor, lambda x: x.type(model.dtype))  # <-
        """,
        """
        def export(manager, dtype):
            states = manager.model.state_dict()
            return {name: each.to(dtype) for name, each in states.items()}  # <-
        """,
    ),
    "DT113": (
        """
        def supported(accelerator):
            dtypes = [torch.float, torch.bfloat16]
            if accelerator.is_fp16_supported():
                dtypes.append(torch.bfloat16)  # <-
            return dtypes
        """,
        """
        def chosen(args):
            dtype = torch.bfloat16 if args.fp16 else torch.float32  # <-
            return dtype
        """,
    ),
    "DT120": (
        """
        def name_of(dtype):
            if dtype == torch.float8_e4m3fn:
                return "e4m3"
            elif dtype == torch.float8_e4m3fn:  # <-
                return "e5m2"
            raise ValueError
        """,
        """
        def width(x: Tensor):
            if x.dtype == torch.float16 or x.dtype == torch.bfloat16:
                n = 2
            elif x.dtype == torch.float32:
                n = 4
            elif x.dtype == torch.bfloat16:  # <-
                n = 8
            return n
        """,
    ),
    "DT212": (
        """
        class Product(torch.autograd.Function):
            @staticmethod  # <-
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                return grad.matmul(weight), grad.t().matmul(x)

        class Layer(nn.Module):
            def forward(self, x):
                return Product.apply(x, self.weight)
        """,
    ),
    "DT302": (
        """
        class Timestep(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.project = nn.Linear(width, width)

            def forward(self, t: Tensor):
                frequencies = torch.exp(-3 * torch.arange(64, dtype=torch.float32) / 64).to(t.device)
                angles = t[:, None].float() * frequencies[None]
                return self.project(torch.cat([angles.cos(), angles.sin()], -1))  # <-
        """,
    ),
    "DT304": (
        """
        class Rotated(nn.Module):
            def forward(self, x: Tensor):
                rotation = torch.eye(self.width, device=x.device)  # <-
                for name in self.names:
                    rotation = self.turns[name] @ rotation
                x = x.to(self.base().weight.dtype)
                weight = torch.mm(rotation, self.base().weight)
                return F.linear(input=x, weight=weight, bias=self.bias)
        """,
        """
        class Block(torch.autograd.Function):
            @staticmethod
            def backward(ctx, grad):
                return kernels.backward(grad, ctx.x, ctx.y)

        def padded(x: Tensor):
            zero = torch.zeros(x.shape[0], 1, device=x.device)  # <-
            return torch.cat(dim=1, tensors=[zero, x])
        """,
        """
        def attend(x: Tensor):
            mask = torch.triu(torch.full((3, 3), float("-inf")), 1).to(x.device)  # <-
            return (x @ x.transpose(-1, -2)) + mask
        """,
        """
        def turned(x: Tensor):
            turn = torch.eye(3)  # <-
            turn = turn.to(x.device)
            return x @ turn
        """,
        """
        def turned(x: Tensor):
            turn = torch.eye(3)[None].repeat(x.shape[0], 1, 1)  # <-
            return torch.bmm(turn.to(x.device), x)
        """,
        """
        def weighted(x: Tensor):
            weights = torch.Tensor([0.5, 1.0]).to(x.device)  # <-
            return x * weights
        """,
        """
        def noisy(x: Tensor):
            return x + torch.FloatTensor(x.shape).uniform_().to(x.device)  # <-
        """,
        """
        def noisy(x: Tensor):
            noise = torch.normal(0.0, 1.0, size=x.shape, device=x.device)  # <-
            return x + noise
        """,
        """
        def sampled(x: Tensor):
            grid = F.affine_grid(torch.eye(2, 3, device=x.device)[None], x.shape)  # <-
            return F.grid_sample(x, grid)
        """,
    ),
    "DT305": (
        """
        class Experts(nn.Module):
            def forward(self, x: Tensor):
                weights = F.softmax(self.gate(x), dim=1, dtype=torch.float)
                weights, chosen = torch.topk(weights, 2, dim=-1)
                out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
                for number, expert in enumerate(self.experts):
                    rank, rows = torch.where(chosen == number)
                    out.index_add_(0, rows, expert(x[rows]) * weights[rows, rank, None])  # <-
                return out
        """,
    ),
    "DT311": (
        """
        def directions(layer, delta):
            weight = layer.weight.data
            merged = weight + delta
            narrow = weight.dtype in (torch.float16, torch.bfloat16)
            if narrow:
                weight = weight.float()
            before = torch.linalg.svd(weight)
            return before, torch.linalg.svd(merged)  # <-
        """,
        """
        def rotation(layer, eye):
            skew = layer.skew()
            narrow = skew.device.type == "cpu" and skew.dtype in (torch.float16, torch.bfloat16)
            if narrow:
                skew = skew.float()
            return torch.linalg.solve(eye - skew, eye + skew)  # <-
        """,
    ),
    "DT314": (
        """
        def weighted(x: Tensor, n):
            weights = torch.tensor(np.linspace(0, 1, n), device=x.device)  # <-
            return weights * x
        """,
    ),
    "DT401": (
        """
        def attend(scores: Tensor, mask: Tensor):
            fill = torch.tensor(-1e9, dtype=scores.dtype, device=scores.device)  # <-
            return torch.where(mask, scores, fill)
        """,
        """
        def attend(scores: Tensor, mask: Tensor):
            return torch.where(mask, scores, scores.new_tensor(-1e9))  # <-
        """,
        """
        def attend(scores: Tensor, mask: Tensor):
            return torch.where(mask, scores, torch.tensor(-1e10).to(scores))  # <-
        """,
    ),
    "DT410": (
        """
        def components(image: Tensor):
            B, _, H, W = image.shape
            labels = torch.arange(1, B * H * W + 1, device=image.device, dtype=image.dtype)  # <-
            labels = labels.view(B, 1, H, W)
            return torch.mul(F.max_pool2d(labels, 3, stride=1, padding=1), image == 1)
        """,
    ),
}

GOOD = {
    "DT112": (
        """
        class Up(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.conv = nn.Conv2d(width, width, 3)

            def forward(self, x: Tensor, mask: Tensor):
                larger = F.interpolate(x.float(), scale_factor=2).to(x.dtype)
                flags = F.interpolate(mask.float(), scale_factor=2)
                return self.conv(larger) + self.conv(flags)
        """,
    ),
    "DT119": (
        """
        WIDE = (torch.float32, torch.float64)
        FLOATING_DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)

        def convert(x: Tensor, dtype: torch.dtype):
            return x.to(dtype) if x.dtype in FLOATING_DTYPES else x.float() if x.dtype not in WIDE else x
        """,
    ),
    "DT124": (
        """
        import copy

        def train(model, batches, optimizer, paths):
            for step, batch in enumerate(batches):
                checkpoint = {"model": copy.deepcopy(model).half(), "weights": batch.half()}
                torch.save(checkpoint, f"{step}.pt")
            for path in paths:
                model = torch.load(path)["model"]
                torch.save({"model": model.half()}, path)
        """,
    ),
    "DT308": (
        """
        def ends(x: Tensor):
            backwards = x[~torch.arange(3)]  # the last three, the last one first
            flags = torch.eye(3, dtype=torch.uint8)
            inverted = ~flags
            return [backwards, inverted] + [x[~each.bool()] for each in flags]
        """,
    ),
    "DT404": (
        """
        def distances(x: Tensor, y: Tensor):
            x2 = x.pow(2).sum(-1, keepdim=True)
            y2 = torch.sum(y * y, dim=-1)
            squares = x2 + y2.t() - 2.0 * torch.matmul(x, y.t())
            return squares.clamp(min=0).sqrt(), squares.argmin(-1)
        """,
        """
        def roots(a: Tensor, b: Tensor, c: Tensor):
            return torch.sqrt(a**2 + b**2 - 2 * c)  # of no product
        """,
        """
        def deviation(x: Tensor, eps: float):
            average = x.mean(0)
            spread = (x * x).mean(0) - average**2
            return torch.sqrt(spread + eps), spread.clamp(min=0.0).sqrt(), np.sqrt(np.mean(average))
        """,
    ),
    "DT406": (
        """
        def total(params):
            norms = [torch.norm(p.grad.detach().float(), 2.0) for p in params]
            each = [torch.norm(p.grad.detach(), 2.0) for p in params]
            return torch.norm(torch.stack(norms), 2.0), each
        """,
    ),
    "DT111": (
        """
        def moved(args, **kwargs):
            if isinstance(args, torch.Tensor):
                return args.to(**kwargs)
            elif isinstance(args, dict):
                return {name: moved(each, **kwargs) for name, each in args.items()}
            return args
        """,
        """
        def shrink(path):
            state_dict = torch.load(path)
            for name, each in state_dict.items():
                if name == "embedding.weight":
                    state_dict[name] = each.half()
                is_float = each.is_floating_point()
                if is_float:
                    state_dict[name] = each.half()
            return state_dict
        """,
        """
        def to_half(x):
            if isinstance(x, dict):
                return {key: to_half(each) for key, each in x.items()}
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                return x.half()
            return x
        """,
        """
        class Conv(nn.Conv1d):
            def cast(self, x, dtype):  # what a layer is given is floating
                if isinstance(x, (list, tuple)):
                    return [self.cast(each, dtype) for each in x]
                return x.to(dtype)
        """,
        """
        def widened(outputs):
            if isinstance(outputs, dict):
                return {key: widened(each) for key, each in outputs.items()}
            return outputs.float()  # of what a model gives, to float32
        """,
        """
        def to_device(x, device):
            if isinstance(x, dict):
                return {key: to_device(each, device) for key, each in x.items()}
            return x.to(device)
        """,
        """
        def move(batch):
            return apply_to_collection(batch, (torch.FloatTensor, torch.cuda.FloatTensor), function=Tensor.half)
        """,
        """
        def narrowed(tensors):
            return list(map(torch.Tensor.half, tensors))
        """,
    ),
    "DT113": (
        """
        def chosen(args):
            if args.bf16:
                dtype = torch.bfloat16
            elif args.fp16:
                dtype = torch.float16
            else:
                dtype = torch.bfloat16 if args.fp16 or args.bf16 else torch.float32
            return dtype
        """,
        """
        def supported(accelerator):
            dtypes = [torch.float32]
            if accelerator.is_bf16_supported():
                dtypes.append(torch.bfloat16)
            return dtypes
        """,
    ),
    "DT120": (
        """
        def width(x: Tensor):
            if x.dtype == torch.float16:
                return 2
            x = x.half()
            if x.dtype == torch.float16:
                return 4
        """,
        """
        def both(x: Tensor, y: Tensor):
            if x.dtype == torch.float16 and y.dtype == torch.float16:
                return 1
            elif x.dtype == torch.float16:
                return 2
        """,
    ),
    "DT212": (
        """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, weight):
                ctx.save_for_backward(x, weight)
                return torch.matmul(x, weight.t())

            @staticmethod
            def backward(ctx, grad):
                x, weight = ctx.saved_tensors
                return grad.matmul(weight), grad.t().matmul(x)

        def product(x, weight):
            x, weight = cast_if_autocast_enabled(x, weight)
            with torch.amp.autocast("cuda", enabled=False):
                return Product.apply(x, weight)

        class Layer(nn.Module):
            def forward(self, x):
                return product(x, self.weight)
        """,
        """
        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x @ y

            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad @ y.t(), x.t() @ grad

        def solve(x, y):  # of whatever a program in float32 computes
            return Product.apply(x, y)
        """,
    ),
    "DT302": (
        """
        class Head(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.project = nn.Linear(width, width)

            def forward(self, x: Tensor, lengths: Tensor):
                kept = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
                x = x.float()[kept]
                return self.project(x)  # the layer is kept in float32
        """,
    ),
    "DT304": (
        """
        class Rotated(nn.Module):
            def forward(self, x: Tensor):
                x = x.to(torch.float32)
                rotation = torch.eye(self.width, device=x.device)
                return F.linear(input=x, weight=rotation)
        """,
        """
        class Linear(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.weight = nn.Parameter(torch.Tensor(width, width))  # cast with the module

            def forward(self, x: Tensor):
                mean = torch.Tensor([0.5]).to(x)
                window = torch.hann_window(2, device=x.device)  # of a signal, which is float32
                return (x - mean) * window @ self.weight
        """,
        """
        def scaled(x: Tensor, pixels):
            sizes = torch.Tensor([3, 4]).to(pixels.device).long()
            return x + sizes
        """,
        """
        class Reflected(nn.Module):
            def forward(self, x: Tensor):
                weight = torch.eye(self.width, device=x.device)
                for name in self.names:
                    delta = self.turns[name]
                    weight = torch.mm(weight.to(delta.dtype), delta)  # it has their dtype from here on
                x = x.to(self.base().weight.dtype)
                return F.linear(input=x, weight=weight)
        """,
    ),
    "DT305": (
        """
        BUFFERS = [None] * 8

        def buffer(weight: Tensor, device_index: int, size: int):
            held = BUFFERS[device_index]
            if held is None:
                BUFFERS[device_index] = held = torch.empty(size, dtype=torch.float32, device=weight.device)
            return held.to(weight.dtype)
        """,
        """
        class Experts(nn.Module):
            def forward(self, x: Tensor):
                weights = F.softmax(self.gate(x), dim=1, dtype=torch.float)
                weights, chosen = torch.topk(weights, 2, dim=-1)
                weights = weights.to(x.dtype)
                out = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
                for number, expert in enumerate(self.experts):
                    rank, rows = torch.where(chosen == number)
                    out.index_add_(0, rows, expert(x[rows]) * weights[rows, rank, None])
                return out
        """,
        """
        class Experts(nn.Module):
            def forward(self, x: Tensor):
                weights = F.softmax(self.gate(x), dim=1, dtype=torch.float)
                weights, chosen = torch.topk(weights, 2, dim=-1)
                out = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
                for number, expert in enumerate(self.experts):
                    rank, rows = torch.where(chosen == number)
                    out.index_add_(0, rows, expert(x[rows]).float() * weights[rows, rank, None])
                return out.to(x.dtype)
        """,
    ),
    "DT311": (
        """
        def directions(layer, delta):
            weight = layer.weight.data
            if weight.dtype in (torch.float16, torch.bfloat16):
                weight = weight.float()
            merged = weight + delta
            return torch.linalg.svd(merged)
        """,
        """
        def directions(layer, other):
            weight = layer.weight.data
            if weight.dtype == torch.float16:
                weight = weight.float()
            return torch.linalg.svd(weight), torch.linalg.svd(other)
        """,
    ),
    "DT314": (
        """
        def weighted(x: Tensor, n):
            weights = torch.tensor(np.linspace(0, 1, n), dtype=torch.float32, device=x.device)
            counts = torch.tensor(np.zeros(n, dtype=np.float32), device=x.device)
            return weights * x + counts
        """,
    ),
    "DT401": (
        """
        def lowest(scores: Tensor):
            scores = scores.float()
            return scores.new_tensor(-1e9)
        """,
        """
        def lowest(scores: Tensor, device):
            kept = torch.tensor(-1e9, dtype=torch.float32, device=device)
            moved = torch.tensor(-1e9).to(device)
            return kept, moved, torch.tensor(1e9, dtype=scores.dtype), scores.new_tensor(-1e4)
        """,
    ),
    "DT410": (
        """
        def taps(x: Tensor, kernel_h, kernel_w):
            return x * torch.arange(kernel_h * kernel_w, device=x.device, dtype=x.dtype)
        """,
        """
        def numbered(x: Tensor, ids: Tensor):
            return ids * torch.arange(x.shape[0] * x.shape[1], dtype=ids.dtype)
        """,
    ),
}


test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)
