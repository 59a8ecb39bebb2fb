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
        """
        def convert(layernorm, module):
            layernorm.weight.float()  # <-
            module.attn.proj.bias.data.half()  # <-
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
        """
        def run(model, x, dtype, **conditions):
            for key, value in conditions.items():
                if isinstance(value, torch.Tensor):
                    conditions[key] = value.to(dtype)  # <-
            return model(x, **conditions)
        """,
    ),
    "DT121": (
        """
        def update(self, batches, losses):
            total = torch.zeros((), dtype=torch.float64)
            for batch, batch_loss in zip(batches, losses):
                total += int(batch_loss)  # <-
            return total
        """,
        """
        def validate(model, loader):
            history = []
            for x, y in loader:
                loss = F.cross_entropy(model(x), y)
                history.append(int(loss.item()))  # <-
            return history
        """,
    ),
    "DT308": (
        """
        def average_precision(scores, targets):
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
        def chosen(x, n):
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
    ),
    "DT308": (
        """
        def looked_up(table: dict, names, pixels):
            places = pixels.byte()
            palette = np.zeros((256, 3))
            return table[places], names[places], palette[places]
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


def test_a_number_written_through_bytes_is_an_error() -> None:
    text = """
    def hide(x: Tensor, ids: Tensor):
        x[(ids == 0).byte()] = -1.0
        return x[(ids == 1).byte()]
    """
    assert [finding.severity.name for finding in BENCH.found("DT308", text)] == ["ERROR", "WARNING"]
    assert BENCH.fixed("DT308", text).count(".bool()") == 2


def test_torch_says_so() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.arange(4.0), torch.tensor([0, 0, 1, 1], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="only supports boolean masks"):
        x[mask] = 0
    assert x[mask.bool()].tolist() == [2.0, 3.0]


def test_a_parameter_is_not_assigned_its_cast() -> None:
    text = """
    class Norm(nn.LayerNorm):
        def forward(self, x):
            self.weight.float()
            return super().forward(x)
    """
    assert BENCH.fixed("DT104", text).strip() == BENCH.source(text).text.removeprefix(BENCH.head).strip()
