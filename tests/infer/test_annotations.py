"""What annotations tell of a library's parameters: each comment says what the widest tensor expression that ends there is, an
empty one of nothing that is known."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.infer.programs import known
from tests.infer.test_program import HEAD, hold


def library(folder: Path, text: str) -> Path:
    path = folder / "library.py"
    path.write_text(HEAD + textwrap.dedent(text))
    return path


def test_what_is_declared_as_long_is_int64(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            def shifted(ids: torch.LongTensor, start: int) -> torch.LongTensor:
                moved = ids.new_zeros(ids.shape)  # int64
                moved[:, 1:] = ids[:, :-1].clone()  # int64
                return moved + start  # int64

            class Model(nn.Module):
                def forward(self, ids: torch.LongTensor | None = None, labels: "torch.LongTensor | None" = None):
                    if labels is not None:
                        labels = labels.to(ids.device)  # int64
                        return labels.view(-1)  # int64
                    return self.body(ids)
            """,
        )
    )


def test_what_is_declared_as_long_is_in_doubt_where_its_dtype_is_asked_for_or_it_is_cast(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            def loss(logits, labels: torch.LongTensor):
                if labels.dtype == torch.long:
                    return F.cross_entropy(logits, labels)
                return labels.view(-1)  #

            def embedded(x: torch.Tensor, step: torch.LongTensor, ids: torch.LongTensor):
                step = step.to(x.dtype) * 1000  #
                return ids + 1  # int64

            def masked(x: torch.Tensor, mask: torch.LongTensor, dtype: torch.dtype):
                first = mask.unsqueeze(1)  #
                return x * mask.to(dtype)

            def weighted(mask: torch.LongTensor):
                first = mask.unsqueeze(1)  #
                return mask.float()  # float32
            """,
        )
    )


def test_what_is_declared_as_long_is_in_doubt_where_an_operator_means_something_else(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            def chosen(x: torch.Tensor, y: torch.Tensor, mask: torch.LongTensor):
                both = torch.where(mask, x, y)
                return mask.unsqueeze(0)  #

            def regression(x: torch.Tensor, labels: torch.LongTensor):
                wanted = labels.view(-1)  #
                return F.mse_loss(x, wanted)

            class Net(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.dense = nn.Linear(size, size)
                    self.words = nn.Embedding(size, size)

                def forward(self, embedded: torch.LongTensor, ids: torch.LongTensor):
                    rows = embedded.view(-1)  #
                    flat = ids.view(-1)  # int64
                    return self.dense(embedded) + self.words(ids)

            class Model(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.net = Net(size)

                def forward(self, embedded: torch.LongTensor, ids: torch.LongTensor):
                    rows = embedded.view(-1)  #
                    return self.net(embedded, ids)
            """,
        )
    )


def test_what_is_declared_as_floating_may_be_of_any_floating_dtype(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            def scaled(x: torch.FloatTensor, mask: torch.BoolTensor):
                y = x * 2.0  #
                return mask.unsqueeze(0)  # bool
            """,
        )
    )


def test_what_is_declared_as_an_object_of_a_class_has_what_the_class_declares(tmp_path: Path) -> None:
    (tmp_path / "cache.py").write_text(
        textwrap.dedent("""
        import torch
        from dataclasses import dataclass

        class Layer:
            def __init__(self):
                self.filled = 0

        class Cache:
            size: int
            dtype: torch.dtype | None = None
            layer: Layer

            def __init__(self, layers):
                self.layers = layers

            @property
            def step(self) -> float:
                return self.layers[0].step

            @property
            def mask(self) -> torch.Tensor:
                return self.layers[0].mask

            def get_length(self, layer: int = 0) -> int:
                return self.layers[layer].get_length()

            def undeclared(self):
                return 0

        class GrowingCache(Cache):
            pass
        """)
    )
    hold(
        library(
            tmp_path,
            """
            from cache import Cache, GrowingCache, Layer

            def places(x: torch.Tensor, past: Cache | None = None):
                seen = past.get_length() if past is not None else 0
                first = torch.arange(x.shape[1]) + seen  # int64
                second = torch.arange(x.shape[1]) + past.undeclared()  #
                third = torch.arange(x.shape[1]) + past.anything  #
                fourth = first * past.size  # int64
                fifth = first.double() * past.step  # float64
                sixth = past.mask.argmax(-1)  # int64
                return torch.zeros(3, dtype=past.dtype)  #

            def made(x: torch.Tensor, past: "Cache | None" = None):
                if past is None:
                    past = GrowingCache(x.tolist())
                return torch.arange(3) + past.get_length()  # int64

            class Holder(nn.Module):
                def __init__(self, cache: GrowingCache):
                    super().__init__()
                    self.cache = cache

                def forward(self, x):
                    return torch.arange(3) * self.cache.get_length()  # int64
            """,
        )
    )


def test_a_derived_class_may_have_a_method_of_its_own(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            class Base:
                def scaled(self, x):
                    return x.double()

                def half(self, x: torch.Tensor) -> torch.HalfTensor:
                    return x.float()

            def use(base: Base, x: torch.Tensor):
                first = base.scaled(x)  #
                return base.half(x)  # float16
            """,
        )
    )


def test_a_result_of_which_nothing_is_known_is_what_is_declared(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            def length(values) -> int:
                return values.measure()

            def wrapped(function):
                return lambda values: torch.zeros(2)

            @wrapped
            def other(values) -> int:
                return values.measure()

            def tensor(values) -> int:
                return torch.ones(2, dtype=torch.float64)

            def use(values):
                first = torch.arange(3) + length(values)  # int64
                second = torch.arange(3) + other(values)  # bfloat16|float16|float32|float64
                return torch.arange(3) + tensor(values)  # float64
            """,
        )
    )


def test_what_is_found_to_be_a_module_of_the_library_has_the_buffers_of_its_class(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            class Embeddings(nn.Module):
                def __init__(self, size: int):
                    super().__init__()
                    self.places = nn.Buffer(torch.arange(size).expand((1, -1)))
                    self.scale = nn.Buffer(torch.ones(size))

            class Wide(Embeddings):
                pass

            class Other(nn.Module):
                pass

            class Model(nn.Module):
                def initialised(self, module):
                    if isinstance(module, Embeddings):
                        first = module.places.clone()  # int64
                        second = module.scale.clone()  #
                    if isinstance(module, (Embeddings, Other)):
                        third = module.places.clone()  #
                    if isinstance(module, Wide):
                        fourth = module.places.clone()  # int64
                    return module.places.clone()  #
            """,
        )
    )


def test_what_is_found_to_be_of_a_class_has_what_the_class_declares(tmp_path: Path) -> None:
    hold(
        library(
            tmp_path,
            """
            class Cache:
                def get_length(self) -> int: ...

            class Layered(Cache):
                layers: int

            def places(past, other: Layered):
                if isinstance(past, Cache):
                    return torch.arange(3) + past.get_length()  # int64
                first = torch.arange(3) + past.get_length()  #
                if isinstance(other, Cache):
                    second = torch.arange(3) + other.layers  # int64
                return first
            """,
        )
    )


def test_a_device_that_is_declared_is_no_dtype() -> None:
    program = """
        import json
        def moved(net, device: torch.device):
            return net.to(device)
        net = moved(nn.Linear(2, 2), json.loads("0"))
        y = net.weight * 2
        y.sum()
    """
    assert known(program)["net.weight * 2"] == "float32"
