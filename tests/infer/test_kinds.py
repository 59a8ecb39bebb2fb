"""What kind of thing a value is: a function, a class, a number, a module."""

from __future__ import annotations

from tests.infer.programs import known


def test_functions_and_classes_are_no_sequences_and_no_partials() -> None:
    program = """
        import collections.abc
        import functools
        from itertools import repeat
        def pair(one):
            if isinstance(one, collections.abc.Iterable):
                return tuple(one)
            return tuple(repeat(one, 2))
        def plain(one):
            return one.func if isinstance(one, functools.partial) else one
        class Half(nn.Module):
            def forward(self, x):
                return x.half()
        first, second = pair(plain(Half))
        norm = plain(nn.BatchNorm1d)(2)
        a = second()(torch.ones(2, 2))
        b = norm(torch.ones(2, 2))
    """
    found = known(program)
    assert found["second()(torch.ones(2, 2))"] == "float16"
    assert found["norm(torch.ones(2, 2))"] == "float32"


def test_a_context_is_no_function() -> None:
    program = """
        import collections.abc, contextlib, typing
        @contextlib.contextmanager
        def cm():
            yield
        a = torch.ones(2).half() if isinstance(cm(), typing.ContextManager) else torch.ones(2)
        b = torch.ones(2).half() if isinstance(contextlib.nullcontext(), collections.abc.Callable) else torch.ones(2)
        a.sum(), b.sum(), print(a)
    """
    found = known(program)
    assert found["a"] == found["b"] == "float16|float32"


def test_a_class_whose_base_is_not_known_is_cast_like_a_module() -> None:
    program = """
        from somewhere import Base
        class Noise(nn.Module):
            def __init__(self):
                super().__init__()
                self.raw = nn.Parameter(torch.zeros(3))
        class Net(Base):
            def __init__(self):
                super().__init__()
                self.noise = Noise()
        net = Net()
        net.double()
        y = net.noise.raw * 2
    """
    assert known(program)["net.noise.raw * 2"] == "float64"


def test_what_such_a_class_may_hold_apart_may_not_be_cast() -> None:
    program = """
        import threading
        class Worker(threading.Thread):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.worker = Worker()
        net = Net().half()
        y = net.worker.fc.weight * 2
        y.sum()
    """
    assert known(program)["net.worker.fc.weight * 2"] == "float16|float32"


def test_a_comparison_of_what_is_no_tensor_is_none() -> None:
    found = known(
        "import os, random\na = random.random() < 0.5\nb = os.cpu_count() > 2\ny = torch.ones(random.randint(1, 3))\ny.sum()\n"
    )
    assert not any("<" in text or ">" in text for text in found)
