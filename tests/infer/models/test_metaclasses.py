"""Metaclasses that are read as source: each program is compared with a run of it."""

from __future__ import annotations

import pytest

from tests.infer.programs import contradicted, loose, mistaken

pytest.importorskip("torch")

PROGRAMS = {
    "objects are finished by a metaclass": """
        class Finishing(type):
            def __call__(cls, *args, **kwargs):
                made = super().__call__(*args, **kwargs)
                made.finish()
                return made
        class Plain(type):
            def __call__(cls, *args, **kwargs):
                made = type.__call__(cls, *args, **kwargs)
                made.finish()
                return made
        class Base(nn.Module, metaclass=Finishing):
            def __init__(self, x):
                super().__init__()
                self.x = x
            def finish(self):
                self.y = self.x.double()
        class Derived(Base):
            def finish(self):
                super().finish()
                self.z = self.x.half()
        class Other(metaclass=Plain):
            dtype: torch.dtype
            def finish(self):
                self.y = H
        x = Base(S).y * 1
        y = Derived(S).y * 1
        z = Derived(S).z * 1
        w = Other().y * 1
    """,
    "attributes of a class come from its metaclass": """
        class Meta(type):
            def __init__(cls, name, bases, namespace):
                super().__init__(name, bases, namespace)
                cls.named = {"Half": H, "Wide": D}[name]
            @property
            def twice(cls):
                return cls.named * 2
            def thrice(cls, x):
                return cls.named * x
        class Half(metaclass=Meta):
            pass
        class Wide(metaclass=Meta):
            pass
        x = Half.named * 1
        y = Wide.twice
        z = Half.thrice(S)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_known_is_what_runs(name: str) -> None:
    assert not contradicted(PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_variables_are_known_exactly(name: str) -> None:
    assert mistaken(PROGRAMS[name]) == []
    assert loose(PROGRAMS[name]).isdisjoint("wxyz")
