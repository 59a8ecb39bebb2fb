"""torchvision's datasets and transforms, which need not be installed: what the documentation says of their dtypes."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from dtlint.infer.domain.values import Tensor
from dtlint.infer.interproc.disk import Disk
from dtlint.infer.interproc.reading import read

HEAD = """
import torch
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms
from torchvision.utils import make_grid
to_tensor = transforms.ToTensor()
normal = transforms.Normalize((0.5,), (0.5,))
crop = transforms.RandomCrop(28, padding=4)
"""
PROGRAMS = {
    "pictures and labels": (
        """
        data = datasets.MNIST("data", train=True, download=True, transform=transforms.Compose([crop, to_tensor, normal]))
        for x, y in DataLoader(data, batch_size=4, shuffle=True):
            pass
        """,
        {"x": "float32", "y": "int64"},
    ),
    "a cast among the transforms": (
        """
        steps = [to_tensor, transforms.Lambda(lambda x: x.double())]
        steps.append(normal)
        train, test = random_split(datasets.ImageFolder("data", transforms.Compose(steps)), [3, 2])
        x, y = next(iter(DataLoader(train, batch_size=4)))
        """,
        {"x": "float64", "y": "int64"},
    ),
    "bytes": (
        """
        data = datasets.CIFAR10("data", transform=transforms.PILToTensor(), target_transform=lambda y: float(y))
        x, y = next(iter(DataLoader(data, batch_size=4)))
        z = make_grid(x, nrow=2)
        """,
        {"x": "uint8", "y": "float64", "z": "uint8"},
    ),
    "converted": (
        """
        to_half = transforms.ConvertImageDtype(torch.float16)
        data = datasets.SVHN("data", "train", transforms.Compose([transforms.PILToTensor(), to_half]))
        x, y = data[0]
        """,
        {"x": "float16"},
    ),
    "transforms that are not seen": (
        """
        from elsewhere import augment
        data = datasets.CIFAR10("data", transform=transforms.Compose([augment, to_tensor]))
        other = datasets.CIFAR10("data", transform=augment)
        x, _ = next(iter(DataLoader(data, batch_size=4)))
        y, _ = next(iter(DataLoader(other, batch_size=4)))
        """,
        {"x": None, "y": None},
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_pictures_become(name: str, tmp_path: Path) -> None:
    text, expected = PROGRAMS[name]
    path = tmp_path / "program.py"
    shown = "".join(f"{one}.clone()\n" for one in expected)
    path.write_text(HEAD + textwrap.dedent(text) + shown, encoding="utf-8")
    program = read(path, [tmp_path], Disk())
    lines = HEAD.count("\n") + textwrap.dedent(text).count("\n")
    found = {
        node.func.value.id: value.dtypes if isinstance(value, Tensor) else None
        for node, _, value in program.facts.tensors()
        if node.lineno > lines and hasattr(node, "func")
    }
    for one, dtype in expected.items():
        assert found.get(one) == (None if dtype is None else {dtype}), one
