"""Casts whose result is lost, and casts that lose whole numbers, fractions or a dtype; and right code that looks like them.

In bad code, `# <-` stands on each line that is flagged, and no other line is.
"""

from __future__ import annotations

import pytest
from bench import Bench

HEAD = "import numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import Tensor, nn\n"
BENCH = Bench("DT101", "DT599", HEAD)

BAD = {
    "DT104": (
        """
        class GroupNorm32(nn.GroupNorm):
            def forward(self, x):
                self.weight.to(torch.float32)  # <-
                self.bias.to(torch.float32)  # <-
                return super().forward(x.float()).type(x.dtype)
        """,
        """
        class Frozen(nn.BatchNorm2d):
            def freeze(self, dtype):
                self.running_mean.half()  # <-
                self.weight.data.to(dtype)  # <-
                self.weight.requires_grad_(False)
        """,
    ),
    "DT111": (
        """
        class Model(nn.Module):
            def apply_model(self, x, **kwargs):
                dtype = self.get_dtype()
                conditions = {}
                for name in kwargs:
                    extra = kwargs[name]
                    if hasattr(extra, "to"):
                        extra = extra.to(dtype)  # <-
                    conditions[name] = extra
                return self.model(x.to(dtype), **conditions)
        """,
        """
        def moved(batch, dtype):
            for key in batch.keys():
                value = batch[key]
                if torch.is_tensor(value):
                    batch[key] = value.to(dtype)  # <-
            return batch
        """,
    ),
    "DT121": (
        """
        def update(self, batches):
            total = torch.zeros((), dtype=torch.float64)
            for batch in batches:
                batch_loss = self.criterion(batch)
                total += int(batch_loss)  # <-
            return total
        """,
        """
        def validate(model, loader):
            history = []
            for x, y in loader:
                loss = F.l1_loss(model(x), y)
                history.append(int(loss.item()))  # <-
            return history
        """,
        """
        def validate(x: Tensor, n):
            history = []
            for _ in range(n):
                nll = x.float().mean()
                history.append(int(nll))  # <-
            return history
        """,
    ),
    "DT308": (
        """
        def average_precision(scores: Tensor, targets: Tensor):
            order = scores.argsort(descending=True)
            truth = targets[order]
            hits = truth.float().cumsum(0)
            precision = hits.div(torch.arange(1, len(hits) + 1))
            return precision[truth.byte()].sum()  # <-
        """,
        """
        def hide(x: Tensor, ids: Tensor, pad: int):
            padding = (ids == pad).byte()
            x[padding] = 0  # <-
            x[..., padding] += 1  # <-
            return x.view(-1)[padding]  # <-
        """,
        """
        def chosen(x: Tensor, n):
            keep = torch.zeros(n, dtype=torch.uint8)
            return x.t()[keep]  # <-
        """,
    ),
    "DT502": (
        """
        def rows(tensor, keep):
            array = tensor.numpy()
            for dim, places in enumerate(keep):
                array = np.take(array, places, axis=dim)
            return torch.Tensor(array)  # <-
        """,
        """
        def joined(x, y, order):
            both = np.concatenate([x.detach().cpu().numpy(), y.detach().cpu().numpy()])
            return torch.FloatTensor(both[order].copy()).cuda()  # <-
        """,
        """
        def twice(x):
            array = x.numpy()
            array = np.stack([array, array[::-1]])
            return torch.Tensor(array)  # <-
        """,
    ),
    "DT509": (
        """
        def buffer(rows):
            return torch.cuda.LongTensor(rows)  # <-
        """,
    ),
}

GOOD = {
    "DT104": (
        """
        class Scaled(nn.Linear):
            def __init__(self, width):
                super().__init__(width, width)
                self.weight = make_module(width)

            def prepare(self):
                self.weight.float()
        """,
        """
        class Head(Base):
            def prepare(self):
                self.weight.half()
        """,
        """
        class GroupNorm32(nn.GroupNorm):
            def forward(self, x):
                self.weight.to(x.device)
                self.weight.data = self.weight.data.float()
                return F.group_norm(x.float(), self.num_groups, self.weight.float(), self.bias.float())
        """,
        """
        def convert(model, batch):
            model.encoder.half()
            batch.data.to("cuda")
        """,
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.rel = Table()

        class Table(nn.Module):
            def __init__(self):
                super().__init__()
                self.bias = nn.Embedding(8, 8)

        def convert(model: Model, layer, module):
            model.rel.bias.half()
            layer.weight.float()
            module.attn.proj.bias.data.half()
        """,
        """
        from elsewhere import LoraMixin

        class Scaled(LoraMixin, nn.Linear):
            def prepare(self):
                self.weight.half()
        """,
    ),
    "DT111": (
        """
        def apply_model(model, x, dtype, **kwargs):
            conditions = {}
            for name in kwargs:
                extra = kwargs[name]
                if hasattr(extra, "to") and extra.dtype not in (torch.int, torch.long):
                    extra = extra.to(dtype)
                conditions[name] = extra
            return model(x, **conditions)
        """,
        """
        def apply_model(model, x, dtype, **kwargs):
            for name in kwargs:
                if name.endswith("_image"):
                    image = kwargs[name]
                    kwargs[name] = image.to(dtype)
            return model(x, **kwargs)
        """,
        """
        def build(dtype, **layers):
            return {name: layer.to(dtype) for name, layer in layers.items()}

        def run(model, x, dtype, **conditions):
            for key, value in conditions.items():
                conditions[key] = value.to(dtype)
            return model(x, **conditions)

        def log(**metrics):
            for name in metrics:
                value = metrics[name]
                metrics[name] = value.float()
            return metrics
        """,
        """
        def placed(dtype, metrics_batch, **kwargs):
            for name in kwargs:
                module = kwargs[name]
                kwargs[name] = module.to(dtype)
            for name in metrics_batch:
                value = metrics_batch[name]
                metrics_batch[name] = value.half()
        """,
        """
        def moved(batch, device):
            for key in batch:
                value = batch[key]
                batch[key] = value.to(device)
            return batch
        """,
    ),
    "DT121": (
        """
        def update(losses, args, log):
            count, n_loss, names = 0, 0, []
            for loss in losses:
                count += int(loss > 0)
                n_loss += int(loss)
                print(int(loss))
                names.append(str(int(loss)))
                count += int(args.loss)
            return count
        """,
        """
        def update(losses, correct):
            total, right = 0.0, 0
            for loss in losses:
                total += float(loss)
                right += int(correct.sum())
                total += int(loss * 1000) / 1000
            return total
        """,
        """
        def games(rows, losses):
            lost, total, points = [], 0, 0
            for row in rows:
                win, loss = row.split("-")
                lost.append(int(loss))
                stop_loss = row.low < row.stop
                total += int(stop_loss)
                is_loss = has_loss(row)
                total += int(is_loss)
            for nll in range(3):
                points += int(nll)
            for batch_loss in losses:
                points += int(batch_loss)
            return lost, total, points
        """,
        """
        def counted(self, batches, loss):
            total, wrong = 0, 0
            for x, y in batches:
                total += int(loss)
                ppl = (x.argmax(1) != y).sum()
                wrong += int(ppl)
                wrong += int(x["loss"]) + int(self.loss)
                nll = self.compute_loss(x).long()
                wrong += int(nll)
            return total, wrong
        """,
    ),
    "DT308": (
        """
        def looked_up(table: dict, names, pixels):
            places = pixels.byte()
            palette = np.zeros((256, 3))
            return table[places], names[places], palette[places]

        def painted(palette, class_names, logits: Tensor, mask: Tensor):
            array = logits.numpy()
            return palette[(logits > 0).byte()], class_names[mask.byte()], array[(logits > 0).byte()]

        class Reader:
            def byte(self):
                return 3

        def read(table: Tensor, reader: Reader, stream):
            return table[reader.byte()], table[stream.byte()]
        """,
        """
        def chosen(x: Tensor, n):
            keep = torch.zeros(n, dtype=torch.uint8)
            return x[keep.bool()], x[keep == 1], x[keep.long()], x[keep.nonzero()]
        """,
    ),
    "DT502": (
        """
        def scaled(x):
            array = x.numpy()
            array = array / 255
            return torch.Tensor(array)
        """,
        """
        def turned(x):
            return torch.Tensor(x.numpy()[::-1].copy()).to(x.dtype)
        """,
        """
        def listed(x, y):
            numbers = x.numpy().tolist()
            arrays = [x.numpy(), y.numpy()]
            return torch.Tensor(numbers), torch.Tensor([x.numpy()]), torch.Tensor(arrays), torch.Tensor(np.array(numbers))
        """,
        """
        def predicted(model, x):
            return torch.Tensor(model(x).detach().numpy()[::-1].copy())
        """,
        """
        def rows(x):
            assert x.dtype == torch.float32
            return torch.Tensor(np.take(x.numpy(), [0, 1], axis=0))
        """,
        """
        def meant(x):
            return torch.Tensor(np.array(x.numpy(), np.float32))
        """,
    ),
    "DT509": (
        """
        def overflow_buffer():
            return torch.tensor([0], dtype=torch.int32, device="cuda")
        """,
        """
        def told_by_dt502():
            return torch.cuda.IntTensor([0])
        """,
    ),
}

test_flagged, test_left_alone = BENCH.tests(BAD, GOOD)


def test_bytes_become_bools() -> None:
    text = """
    def hide(x: Tensor, ids: Tensor):
        x[(ids == 0).byte()] = -1.0
        return x[(ids == 1).byte()]
    """
    assert [finding.severity.name for finding in BENCH.found("DT308", text)] == ["WARNING", "WARNING"]
    assert BENCH.fixed("DT308", text).count(".bool()") == 2


def test_torch_says_so() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.arange(4.0), torch.tensor([0, 0, 1, 1], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x[mask] = 0
    assert x[mask.bool()].tolist() == [2.0, 3.0]
    x[torch.tensor(1, dtype=torch.uint8)] = 0  # without dimensions it does not raise
    assert x.tolist() == [0.0] * 4


def test_a_parameter_is_not_assigned_its_cast() -> None:
    text = """
    class Norm(nn.LayerNorm):
        def forward(self, x):
            self.weight.float()
            return super().forward(x)
    """
    assert BENCH.fixed("DT104", text).strip() == BENCH.source(text).text.removeprefix(BENCH.head).strip()
