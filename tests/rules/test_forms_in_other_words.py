"""Bugs that one file shows plainly, in the words that others write them in, and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

from bench import Bench

from dtlint.diagnostic import Severity

HEAD = "import sys\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT125": (
        """
        def narrow(x: Tensor):
            y = torch.float16(x)  # <-
            return x.float32(), y  # <-
        """,
        """
        def narrow(x: Tensor):
            return (x * 2).bf16()  # <-
        """,
        """
        import torch as th

        def count(x: Tensor):
            try:
                a = x.int64()  # <-
            except KeyError:
                a = x.uint8()  # <-
            if isinstance(x, Tensor):
                x.float16(copy=True)  # <-
            b = torch.long(x)  # <-
            c = torch.half(x)  # <-
            d = th.bool(x)  # <-
            return a, b, c, d, torch.int8(3)  # <-
        """,
        *(
            f"y = torch.{name}(torch.ones(3))  # <-\n"
            for name in ("float", "double", "int", "int64", "int32", "uint8", "int16")
        ),
    ),
    "DT403": (
        """
        def weights_of(x: Tensor):
            half = x.half()
            steps = torch.arange(3).double()
            return half / (half.norm(dim=-1) + 1e-8), steps  # <-
        """,
    ),
    "DT120": (
        """
        def rotate(meta, x: Tensor):
            lengths = meta.sequence_lengths
            if meta != torch.float32 and meta.use_kernel:  # <-
                return F.pad(lengths, (1, 0))
            return x
        """,
        """
        def widened(x: Tensor):
            if x == torch.float16 or x == torch.bfloat16:  # <-
                x = x.float()
            return x
        """,
        """
        def widened(x: Tensor):
            return x.float() if x in (torch.float16, torch.bfloat16) else x  # <-
        """,
        """
        def total(each, other: str):
            head = each[0]
            while head:
                if each is torch.float64:  # <-
                    return head
                head -= 1
            name = other.removeprefix("torch.")
            return name if other == torch.float16 else head  # <-
        """,
    ),
    "DT204": (
        """
        def evaluate(model, loader, loss_func):
            scaler = torch.amp.GradScaler("cuda")
            losses = []
            for x, y in loader:
                with torch.autocast("cuda"):
                    loss = loss_func(model(x), y)
                losses.append(scaler.scale(loss).item())  # <-
            return losses
        """,
        """
        def train(model, loader, optimizer, scaler: torch.amp.GradScaler):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss = scaler.scale(loss)
                loss.backward()
                scaler.step(optimizer)
                scaler.update()
                total += loss.detach().cpu().item()  # <-
            return total
        """,
    ),
    "DT304": (
        """
        import torch.distributed as dist

        class Merge(nn.Module):
            def forward(self, x, y, z):
                parts = [torch.zeros(x.shape, device=x.device) for _ in range(dist.get_world_size())]  # <-
                dist.all_gather(parts, x)
                whole = torch.empty(y.shape[0] * 2, device=y.device)  # <-
                dist.all_gather_into_tensor(whole, y.contiguous())
                last = [torch.zeros(z.size()).cuda()] * 4  # <-
                dist.gather(z, last)
                return parts, whole, last
        """,
        """
        from torch import distributed
        from torch.distributed import gather

        def merge(x, y, z):
            parts = [torch.zeros(x.shape, device=x.device) for _ in range(2)]  # <-
            distributed.all_gather(parts, x)
            whole = torch.empty(y.numel() * 2, device=y.device)  # <-
            torch.distributed.all_gather_into_tensor(whole, y)
            last = [torch.zeros(z.shape, device=z.device)] * 4  # <-
            gather(z, last)
            return parts, whole, last
        """,
        """
        import torch.distributed as dist

        class Merge(nn.Module):
            def forward(self, x):
                size = x.numel()
                parts = []
                for rank in range(self.world_size):
                    if rank == self.rank:
                        parts.append(x.cuda())
                    else:
                        parts.append(torch.zeros(size).cuda())  # <-
                dist.all_gather(parts, parts[self.rank])
                return parts
        """,
    ),
    "DT306": (
        """
        v = torch.ones(4)
        one, narrow = torch.tensor([1], dtype=torch.int8), torch.zeros(3, dtype=torch.int16)
        picked = v[one], v[None, narrow]  # <-
        weight, bag = torch.ones(4, 4), nn.EmbeddingBag(4, 4)
        rows = bag(narrow), F.embedding_bag(torch.ones(3), weight, torch.tensor([0]))  # <-
        """,
    ),
    "DT308": (
        """
        mask = torch.ones(3) > 0
        rest = mask - np.float32(1)  # <-
        """,
    ),
    "DT309": (
        """
        i = torch.arange(3)
        a = i.softmax(0), torch.log_softmax(i, 0), F.softmax(i, -1, 3)  # <-
        b = F.cosine_similarity(i, i, 0)  # <-
        """,
    ),
    "DT310": (
        """
        i, on, x = torch.arange(3), torch.ones(3) > 0, torch.ones(3)
        i.add_(i, alpha=0.5)  # <-
        i.addcmul_(x, i)  # <-
        i.addcdiv_(i, i)  # <-
        on.add_(2)  # <-
        """,
    ),
    "DT506": (
        """
        name = "tmp-{}.ckpt".format(np.random.randint(1e10))  # <-
        """,
        """
        LARGEST = 2**32 - 1
        rng = np.random.RandomState(0)
        seeds = rng.randint(LARGEST, size=4)  # <-
        other = np.random.RandomState(1).randint(0, int(1e10))  # <-
        third = np.random.randint(0, np.iinfo(np.uint32).max)  # <-
        fourth = np.random.randint(low=0, high=sys.maxsize)  # <-
        fifth = np.random.RandomState(2).randint(2**63)  # <-
        """,
        """
        import numpy.random as draws
        from numpy.random import RandomState

        def seeds():
            return STATE.randint(2**32), RandomState(0).randint(2**33), draws.RandomState(0).randint(2**34)  # <-

        STATE = RandomState(1)
        """,
    ),
    "DT502": (
        """
        overflow = torch.cuda.IntTensor([0])  # <-
        total = torch.cuda.DoubleTensor([sum(row) for row in [[1], [2]]])  # <-
        """,
    ),
}

GOOD = {
    "DT402": (
        """
        def scaled(a: Tensor):
            a = a.half()
            b = a
            b.data = b.data.float()
            return a * 1e5
        """,
    ),
    "DT406": (
        """
        def total():
            p = nn.Parameter(torch.zeros(2, dtype=torch.bfloat16))
            p.data = p.data.to(torch.float32)
            return p.sum()
        """,
    ),
    "DT125": (
        """
        def narrow(x, image: np.ndarray, quantizer):
            return np.float16(x), torch.from_numpy(image).to(torch.float16), quantizer.bf16(), x.float32()
        """,
        """
        def narrow(x: Tensor, scale: Tensor):
            return x.bfloat16() * scale.half()
        """,
        """
        import contextlib
        import pytest

        def narrow(x: Tensor):
            try:
                return x.float32()
            except AttributeError:
                return x

        def test_narrow(case, x: Tensor):
            with pytest.raises(AttributeError):
                x.float32()
            with contextlib.suppress(TypeError):
                torch.float16(x)
            with case.assertRaises(TypeError):
                torch.long(x)
            if hasattr(x, "float64"):
                x.float64()
            return x.fp32() if hasattr(x, "fp32") else x
        """,
        """
        torch.Tensor.fp16 = Tensor.half

        def narrow(x: Tensor):
            return x.fp16()
        """,
        """
        class Rich(Tensor):
            def bf16(self):
                return self.bfloat16()

        def narrow(x: Tensor):
            return x.bf16() if isinstance(x, Rich) else x
        """,
        """
        from library import Rich

        def narrow(x: Tensor):
            if isinstance(x, Rich):
                return x.bf16()
            return np.float16(x), x.numpy().int64()
        """,
    ),
    "DT403": (
        """
        def weights_of(x: Tensor):
            steps = torch.arange(3).double()
            return x / (x.norm(dim=-1) + 1e-8), steps
        """,
    ),
    "DT120": (
        """
        def chosen(kind, config, data_type):
            width = config.width if config else 1  # where it is a dtype, it is false
            if kind == torch.float16 or config == torch.float16:
                return kind.itemsize
            bits = data_type.bits
            return bits if data_type == torch.float16 else config.width
        """,
        """
        def chosen(setting, other, third):
            if isinstance(setting, Config):
                return setting.width
            if setting == torch.float16:
                return [other.width for other in setting]
            name = third.name
            third = third.inner
            return third == torch.float16 or other == torch.float16
        """,
        """
        def chosen(self, x: Tensor, given):
            value = given.dtype
            kind = x.dtype
            return kind == torch.float16 or given == torch.float16 or self.compute == torch.float16
        """,
        """
        def told(kind, number, other, log):
            log.info("cast to %s" % kind)
            total = number + 1
            both = other | torch.float16
            return kind == torch.float16 or number == torch.float16 or other == torch.float16

        class Format:
            def __eq__(self, other):
                return self.bits == 16

        def of_class(fmt: Format, either: "torch.Tensor | torch.dtype"):
            bits = fmt.bits, either.shape
            return bits if fmt == torch.float16 or either == torch.float16 else None
        """,
        """
        def bound(a, b, c, d, e, f, path):
            read = a.inner, b.inner, c.inner, d.inner, e.inner, f.inner
            with open(path) as a:
                pass
            try:
                import b
            except ImportError as c:
                pass
            match path:
                case [d, *e]:
                    pass
            if (f := path):
                return [each == torch.float16 for each in read]
            return a == torch.float16 or b == torch.float16 or c == torch.float16 or d == torch.float16 or f == torch.int8

        def read_perhaps(spec, target, each, values):
            if isinstance(spec, str):
                spec.lower()
                return None
            try:
                bits = target.bits
            except AttributeError:
                bits = None
            inner = [each.inner for each in values]
            later = lambda: target.bits
            return spec == torch.float16 or target == torch.float16 or each == torch.float16
        """,
    ),
    "DT204": (
        """
        def train(model, loader, optimizer, scaler: torch.amp.GradScaler):
            total = 0.0
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                scaled = scaler.scale(loss)
                scaled.backward()
                scaler.step(optimizer)
                scaler.update()
                total += loss.item()
                log({"scaled loss": scaled.item()})
            return total
        """,
        """
        def train(x, y, model, optimizer, scaler: torch.amp.GradScaler):
            loss = scaler.scale(F.mse_loss(model(x), y))
            loss.backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.item() / scaler.get_scale()
        """,
        """
        def debug(loss, scaler: torch.amp.GradScaler):
            loss_scaled_by_amp = scaler.scale(loss)
            print("scaled:", scaler.scale(loss).item())
            return loss_scaled_by_amp.item()
        """,
    ),
    "DT304": (
        """
        import torch.distributed as dist

        class Merge(nn.Module):
            def forward(self, x, y, z):
                parts = [torch.zeros_like(x) for _ in range(2)]
                dist.all_gather(parts, x)
                told = [torch.zeros(x.shape, device=x.device, dtype=x.dtype) for _ in range(2)]
                dist.all_gather(told, x)
                cast = [torch.zeros(x.shape).to(x) for _ in range(2)]
                dist.all_gather(cast, x)
                sizes = [torch.zeros(1, device=x.device) for _ in range(2)]
                dist.all_gather(sizes, torch.tensor([float(len(y))], device=x.device))
                wide = [torch.zeros(z.shape, device=z.device) for _ in range(2)]
                dist.all_gather(wide, z.float())
                self.store.gather(z, [torch.zeros(z.shape)])
                return parts, told, cast, sizes, wide
        """,
        """
        from torch.distributed import all_gather
        from elsewhere import dist, gather

        def reduce_scatter_tensor(out, x):
            return x

        class Group:
            def all_gather(self, parts, x):
                return x

        def merged(x, group: Group):
            out = torch.empty(x.numel() * 2, device=x.device)
            gather(x, out)
            parts = [torch.zeros(x.shape, device=x.device) for _ in range(2)]
            dist.all_gather(parts, x)
            whole = torch.empty(x.numel() * 2, device=x.device)
            reduce_scatter_tensor(whole, x)
            others = [torch.zeros(x.shape, device=x.device) for _ in range(2)]
            group.all_gather(others, x)
            return out, parts, whole, others
        """,
        """
        import torch.distributed as dist

        def merged(self, x, loss):
            parts = [torch.zeros(x.shape, device=x.device) for _ in range(2)]
            parts = [part.to(x.dtype) for part in parts]
            dist.all_gather(parts, x)
            total = torch.tensor([loss.item()], device=loss.device)
            totals = [torch.zeros(1, device=loss.device) for _ in range(2)]
            dist.all_gather(totals, total)
            count = torch.zeros(x.shape[0], device=x.device)
            counts = [torch.zeros(count.shape, device=x.device) for _ in range(4)]
            dist.all_gather(counts, count)
            self.count = count.cuda()
            again = [torch.zeros(count.shape, device=x.device) for _ in range(4)]
            dist.all_gather(again, self.count.contiguous())
            return parts, totals, counts, again

        def handed(x, dist, parts=None):
            if parts is None:
                parts = [torch.zeros(x.shape, device=x.device) for _ in range(2)]
            torch.distributed.all_gather(parts, x)
            others = [torch.zeros(x.shape, device=x.device) for _ in range(2)]
            dist.all_gather(others, x)
            return parts, others
        """,
    ),
    "DT306": (
        """
        v, weight, bag = torch.ones(4), torch.ones(4, 4), nn.EmbeddingBag(4, 4)
        one = torch.tensor(1, dtype=torch.int8)
        picked = v[one], v[None, one], v[torch.tensor(1, dtype=torch.uint16)]
        i8, flags, offsets = torch.zeros(3, dtype=torch.int8), torch.ones(3) > 0, torch.tensor([0])
        rows = bag(i8, offsets), F.embedding_bag(i8, weight, offsets), F.embedding_bag(flags, weight, offsets=offsets)
        old = F.embedding_bag(weight, torch.zeros(2, 2, dtype=torch.long))
        """,
    ),
    "DT308": (
        """
        mask = torch.ones(3) > 0
        rest = mask - np.ones(3)
        """,
    ),
    "DT309": (
        """
        i, v = torch.arange(3), torch.ones(3)
        a = i.softmax(0, torch.float32), torch.softmax(i, 0, torch.float32), torch.log_softmax(i, 0, v.dtype)
        b = F.softmax(i, -1, 3, torch.float32), F.log_softmax(i, 0, dtype=torch.float32)
        c = F.cosine_similarity(i, v, 0), torch.cosine_similarity(v, i, 0)

        def shares(dtype):
            return torch.softmax(i, 0, dtype), i.log_softmax(0, dtype)
        """,
    ),
    "DT310": (
        """
        i, on = torch.arange(3), torch.ones(3) > 0
        i.addcmul_(i, i, value=0.5)
        on.add_(on, alpha=2)
        on += True
        """,
    ),
    "DT506": (
        """
        import random

        a = np.random.randint(1e9), np.random.randint(2**31 - 1), np.random.randint(2**31)
        b = np.random.randint(2**32, dtype=np.uint32), np.random.randint(0, np.iinfo(np.int32).max)
        c = np.random.default_rng().integers(2**40), torch.randint(0, 2**40, (1,)), random.randint(0, 2**40)
        """,
        """
        def seed(rng, low):
            return rng.randint(0, 2**40), np.random.randint(low)
        """,
        """
        rng = np.random.RandomState(0)

        def seed(rng):
            return rng.randint(0, 2**40)  # of Python's random, perhaps

        beyond_int64 = np.random.RandomState(1).randint(1e19), np.random.randint(2**63 + 1)

        class RandomState:
            def randint(self, bound):
                return bound

        mine = RandomState().randint(2**33)
        """,
    ),
    "DT502": (
        """
        overflow = torch.tensor([0], dtype=torch.int32, device="cuda")
        sizes = torch.IntTensor([0]), torch.FloatTensor(3)
        kinds = (torch.cuda.IntTensor, torch.cuda.FloatTensor)
        """,
    ),
}


test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


def test_the_dtype_of_a_tensor_is_compared() -> None:
    before = "def run(x: Tensor):\n    return x.float() if x == torch.float16 else x\n"
    assert "if x.dtype == torch.float16 else" in BENCH.fixed("DT120", before)


def test_what_is_drawn_beyond_int32_is_int64() -> None:
    assert "randint(1e10, dtype=np.int64)" in BENCH.fixed("DT506", "number = np.random.randint(1e10)\n")


def test_a_tensor_of_the_gpu_stays_there() -> None:
    fixed = BENCH.fixed("DT502", "overflow = torch.cuda.IntTensor([0])\n")
    assert fixed == 'overflow = torch.tensor([0], dtype=torch.int32, device="cuda")\n'


def test_a_cast_is_called_by_its_name() -> None:
    before = "def narrow(x: Tensor):\n    return x.float32()\n"
    assert "return x.float()" in BENCH.fixed("DT125", before)


def test_a_sum_of_what_is_known_is_not_said_to_be_perhaps() -> None:
    (found,) = BENCH.found("DT406", "def total(x: Tensor):\n    return x.half().sum()\n")
    assert found.message == "`sum` of a tensor that is float16 gives the same outside autocast: float16 ends at 65504"
    (found,) = BENCH.found("DT406", "x = torch.ones(300).bfloat16()\ntotal = x.sum()\n")
    assert found.message == "`sum` of a tensor that is bfloat16 gives the same: beyond 256 bfloat16 does not count ones"


def test_a_product_is_not_said_to_count() -> None:
    (found,) = BENCH.found("DT406", "x = torch.ones(300).bfloat16()\ntotal = x.prod()\n")
    assert found.message == "`prod` of a tensor that is bfloat16 gives the same: bfloat16 keeps 8 bits of it"


def test_a_narrow_index_that_may_be_one_number_is_a_warning() -> None:
    (found,) = BENCH.found("DT306", "def pick(x: Tensor, i: Tensor):\n    return x[i.to(torch.int8)]\n")
    assert (found.severity, "if it has dimensions" in found.message) == (Severity.WARNING, True)
