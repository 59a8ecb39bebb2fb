"""Classes that inherit from torch's own: loaders, tensors, modules that run something around `forward`."""

from __future__ import annotations

from tests.infer.programs import known


def test_a_loader_of_a_class_of_its_own_collates() -> None:
    program = """
        class Loader(torch.utils.data.DataLoader):
            def __init__(self, dataset, **options):
                super().__init__(dataset, collate_fn=self.put_together, **options)
            @staticmethod
            def put_together(items):
                return torch.stack(items).half()
        for batch in Loader([torch.ones(2), torch.ones(2)], batch_size=2):
            out = batch + 1
        out.sum()
    """
    assert known(program)["batch + 1"] == "float16"


def test_a_module_that_calls_itself_by_its_base_runs_forward() -> None:
    program = """
        class Net(nn.Module):
            def __call__(self, x, scale=None):
                return super().__call__(x.half(), 2)
            def forward(self, x, scale):
                return x * scale
        y = Net()(torch.ones(2))
        y.sum()
    """
    found = known(program)
    assert found["x * scale"] == "float16"
    assert found["super().__call__(x.half(), 2)"] == "float16"


def test_a_tensor_of_a_class_of_its_own_keeps_its_dtype() -> None:
    program = """
        class Image(torch.Tensor):
            @staticmethod
            def __new__(cls, data):
                return torch.as_tensor(data).as_subclass(cls)
        image = Image(torch.ones(2).half())
        y = image * 2
        plain = torch.ones(2).double() if isinstance(y, Image) else torch.ones(2)
        z = plain + 1
        z.sum()
    """
    found = known(program)
    assert found["image * 2"] == "float16"
    assert found["plain + 1"] == "float32|float64"
