"""What is not there: a name that no attribute has, a key that `__getitem__` says is missing, a text that does not match."""

from __future__ import annotations

from tests.infer.programs import known

CHOICE = """
    import random, re
    from collections.abc import MutableMapping
    name = "half" if random.random() < 0.5 else "some/where"
"""


def test_of_several_names_those_that_are_attributes_are_asked_for() -> None:
    program = f"""{CHOICE}
    class Net:
        def half(self, x):
            return x.half()
    y = getattr(Net(), name)(torch.ones(2))
    y.sum()
    """
    assert known(program)["getattr(Net(), name)(torch.ones(2))"] == "float16"


def test_a_mapping_gives_the_default_where_its_class_finds_no_item() -> None:
    program = f"""{CHOICE}
    def half(x):
        return x.half()
    def double(x):
        return x.double()
    class Functions(MutableMapping):
        _known = {{"half": half}}
        def __init__(self):
            self._own = {{}}
        def __getitem__(self, key):
            if key in self._own:
                return self._own[key]
            return self._known[key]
        def __setitem__(self, key, value):
            self._own[key] = value
        def __delitem__(self, key):
            del self._own[key]
        def __iter__(self):
            return iter(self._known)
        def __len__(self):
            return len(self._known)
    functions = Functions()
    a = functions.get("some/where", double)(torch.ones(2))
    b = functions.get(name, double)(torch.ones(2))
    c = functions["some/where"]
    d = c(torch.ones(2))
    a.sum()
    """
    found = known(program)
    assert found['functions.get("some/where", double)(torch.ones(2))'] == "float64"
    assert found["functions.get(name, double)(torch.ones(2))"] == "float16|float64"
    assert "c(torch.ones(2))" not in found


def test_each_of_several_texts_is_matched() -> None:
    program = f"""{CHOICE}
    y = torch.ones(2)
    if re.search("x", name) is not None:
        y = y.half()
    z = torch.ones(2)
    if re.search("/", name) is not None:
        z = z.half()
    u, v = y + 1, z + 1
    """
    found = known(program)
    assert found["y + 1"] == "float32"
    assert found["z + 1"] == "float16|float32"


def test_what_python_s_own_containers_have_is_known() -> None:
    program = f"""{CHOICE}
    def items(given):
        if hasattr(given, "ndim") and given.ndim == 0:
            return torch.ones(2).half()
        return torch.ones(2)
    y = items(["a"]) + 1
    class Rows:
        def __getitem__(self, index):
            return torch.ones(2).half() if hasattr(index, "start") else torch.ones(2)
    z = Rows()[:2] + 1
    y.sum()
    """
    assert known(program)["Rows()[:2] + 1"] in ("float16", "float16|float32")
    assert known(program)['items(["a"]) + 1'] == "float32"


def test_a_class_without_a_constructor_has_that_of_object() -> None:
    program = """
        class Base:
            pass
        class Net(Base):
            def __new__(cls, *args):
                return Base.__new__(cls)
            def __init__(self, dtype):
                self.x = torch.ones(2, dtype=dtype)
        y = Net(torch.half).x * 2
        y.sum()
    """
    assert known(program)["Net(torch.half).x * 2"] == "float16"


def test_a_call_that_is_one_of_several_is_each_of_them() -> None:
    program = f"""{CHOICE}
    class Net:
        def __call__(self, x):
            return x.half()
    def double(self, x):
        return x.double()
    if random.random() < 0.5:
        Net.__call__ = double
    y = Net()(torch.ones(2))
    y.sum()
    """
    assert known(program)["Net()(torch.ones(2))"] == "float16|float64"
