"""`dtlint infer --assume`: a library whose floating parameters have a dtype."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from dtlint.dtypes.assumption import SINGLE, parse_assumption
from dtlint.infer.claims.reading import claims

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "import torch\nfrom torch import nn\n"


def returned(tmp_path: Path, code: str, assumption: str = "half") -> list[frozenset[str] | None]:
    """What is claimed of each returned expression."""
    path = tmp_path / "library.py"
    path.write_text(HEAD + code, encoding="utf-8")
    assumed = parse_assumption(assumption, (SINGLE,))
    known = {(one.span.line, one.span.column): one.dtypes for one in claims(path, [tmp_path], assumed)[path]}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value is not None]
    return [known.get((node.lineno, node.col_offset)) for node in sorted(nodes, key=lambda one: one.lineno)]


@pytest.mark.parametrize(
    ("assumption", "dtype"),
    [("float32", "float32"), ("half", "float16"), ("bfloat16", "bfloat16"), ("double", "float64")],
)
def test_what_only_floats_are_meant_for_has_the_assumed_dtype(tmp_path: Path, assumption: str, dtype: str) -> None:
    code = "def norm(x, weight):\n    return weight * x.softmax(-1) - weight\n"
    assert returned(tmp_path, code, assumption) == [{dtype}]


@pytest.mark.parametrize(
    "use",
    [
        "(x - y) / 2",
        "x @ y",
        "(x + y).exp()",
        "torch.linalg.norm(x + y)",
        "(x.float().pow(2).mean(-1) * 2).to(x.dtype)",
        "nn.functional.layer_norm(x, (4,))",
    ],
)
def test_uses_that_show_a_floating_tensor(tmp_path: Path, use: str) -> None:
    assert returned(tmp_path, f"def f(x: torch.Tensor, y: torch.Tensor):\n    z = {use}\n    return x\n") == [
        {"float16"}
    ]


@pytest.mark.parametrize(
    "use", ["x * 2", "torch.zeros(3)[x]", "x.float() / 2", "torch.where(x, 1.0, 0.0)", "torch.rand(3) * x", "x == 1"]
)
def test_what_may_be_a_mask_or_an_index_is_not_taken_for_a_float(tmp_path: Path, use: str) -> None:
    (found,) = returned(tmp_path, f"def f(x: torch.Tensor):\n    z = {use}\n    return x\n")
    assert found is None or {"float16", "int64", "bool"} <= found


def test_weights_are_cast_with_their_module(tmp_path: Path) -> None:
    code = (
        "class Block(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Linear(n, n)\n"
        "        self.register_buffer('steps', torch.arange(4))\n"
        "    def forward(self, x):\n"
        "        y = self.fc(x)\n"
        "        if self.training:\n"
        "            return self.steps\n"
        "        return x\n"
        "    def scale(self):\n"
        "        return self.fc.weight\n"
    )
    assert returned(tmp_path, code) == [{"int64"}, {"float16"}, {"float16"}]
    assert returned(tmp_path, code, "mixed")[2] == {"float16"}


def test_the_region_of_the_assumption_is_around_the_call(tmp_path: Path) -> None:
    code = (
        "def f(x: torch.Tensor, y: torch.Tensor):\n    z = x @ y\n    if z.sum() > 0:\n        return z\n    return x\n"
    )
    assert returned(tmp_path, code, "autocast=cpu") == [{"bfloat16"}, {"float32"}]
    assert returned(tmp_path, code, "autocast") == [{"float16"}, {"float32"}]


def test_calls_in_view_tell_what_a_parameter_is(tmp_path: Path) -> None:
    code = (
        "def scaled(x, mask):\n"
        "    return x * mask\n"
        "def _rows(table, rows):\n"
        "    return rows\n"
        "def f(x: torch.Tensor):\n"
        "    y = scaled(x.softmax(-1), x > 0)\n"
        "    return _rows(x, torch.arange(3))\n"
    )
    assert returned(tmp_path, code) == [{"float16"}, {"int64"}, {"int64"}]


def test_a_float32_tensor_from_a_call_in_view_is_possible_as_well(tmp_path: Path) -> None:
    code = "def f(x: torch.Tensor):\n    return x.exp()\ndef g(x: torch.Tensor):\n    return f(x.exp().float())\n"
    assert returned(tmp_path, code) == [{"float16", "float32"}, {"float32"}]


def test_numbers_and_dtypes_stay_what_they_are(tmp_path: Path) -> None:
    code = (
        "def f(x: torch.Tensor, n: int, dtype: torch.dtype, eps=1e-6):\n"
        "    y = x.exp() + eps\n"
        "    if n:\n"
        "        return y * n\n"
        "    return torch.ones(n, dtype=dtype)\n"
    )
    assert returned(tmp_path, code) == [{"float16"}, None]


def test_a_weight_is_of_the_default_dtype_before_anybody_casts_it(tmp_path: Path) -> None:
    code = (
        "class Block(nn.Module):\n"
        "    def __init__(self, n):\n"
        "        super().__init__()\n"
        "        self.fc = nn.Linear(n, n)\n"
        "        self.reset()\n"
        "    def reset(self):\n"
        "        return self.fc.weight\n"
    )
    assert returned(tmp_path, code) == [{"float16", "float32"}]


NORM = "def norm(x):\n    return x.softmax(-1)\n"


def test_what_a_call_in_view_gives_without_a_known_dtype_is_as_assumed(tmp_path: Path) -> None:
    assert returned(tmp_path, NORM) == [{"float16"}]
    caller = "def normed(net, x):\n    return norm(net(x))\n"
    assert returned(tmp_path, NORM + caller)[0] == {"float16"}


@pytest.mark.parametrize(
    "elsewhere",
    [
        "def single(net, x):\n    return net(x.float())\n",
        "def noise(n):\n    return torch.zeros(n)\n",
        "class Kept:\n    def push(self, x):\n        self.items.append(x.double())\n",
        "KNOWN = torch.linspace(0, 1, 5)\ndef known(i):\n    return KNOWN[i]\n",
        "import numpy as np\ndef loaded(path):\n    return torch.from_numpy(np.load(path))\n",
        "def loaded(path):\n    return torch.load(path)\n",
        "import pandas as pd\ndef column(path):\n    return torch.tensor(pd.read_csv(path)['x'])\n",
    ],
)
def test_unless_floats_of_another_dtype_are_about(tmp_path: Path, elsewhere: str) -> None:
    caller = "def normed(net, x):\n    return norm(net(x))\n"
    assert returned(tmp_path, elsewhere + NORM + caller)[-2] is None
    assert returned(tmp_path, elsewhere + NORM)[-1] == {"float16"}  # nobody in view calls it


def test_what_an_object_begins_with_is_cast_with_it(tmp_path: Path) -> None:
    module = (
        "class Normed(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('scale', torch.ones(4))\n"
        "    def forward(self, net, x):\n        return norm(net(x))\n"
    )
    assert returned(tmp_path, NORM + module)[0] == {"float16"}


def test_arange_of_what_is_not_known_has_int64_or_the_default_dtype(tmp_path: Path) -> None:
    code = "def f(n):\n    return torch.arange(n)\ndef g(n):\n    return torch.arange(n) * 1.5\n"
    assert returned(tmp_path, code) == [{"int64", "float32"}, {"float32"}]


SINGLE_SOMEWHERE = "def single(net, x):\n    return net(x.float())\n"


def test_a_function_that_is_handed_on_is_given_what_the_file_has(tmp_path: Path) -> None:
    table = NORM + "KERNELS = {'exp': norm}\n"
    assert returned(tmp_path, table) == [{"float16"}]
    assert returned(tmp_path, table + SINGLE_SOMEWHERE)[0] is None
    other = NORM + "def f(norm, x):\n    y = map(norm, x)\n" + SINGLE_SOMEWHERE
    assert returned(tmp_path, other)[0] == {"float16"}  # another one is handed on


def test_so_is_an_object_that_is_handed_on(tmp_path: Path) -> None:
    code = "class Scaled:\n    def __call__(self, x):\n        return x.softmax(-1)\nSTEPS = [Scaled()]\n"
    assert returned(tmp_path, code) == [{"float16"}]
    assert returned(tmp_path, code + SINGLE_SOMEWHERE)[0] is None


@pytest.mark.parametrize(
    "result",
    [
        "x.softmax(dim)",
        "torch.softmax(x, dim=dim).sum(dim)",
        "torch.topk(x.exp(), dim)[0]",
        "torch.sort(x.exp(), dim=dim)[0]",
        "nn.functional.normalize(x, p=2, dim=-1, eps=dim)",
        "nn.functional.interpolate(x, size=dim)",
        "nn.functional.dropout(x.exp(), dim)",
        "torch.norm(x, dim, dim)",
        "nn.functional.layer_norm(x, dim)",
        "nn.functional.leaky_relu(x, dim)",
        "x.exp().sum(axis=dim, keepdims=True)",
        "x.mean(axis=-1)",
        "nn.functional.grid_sample(x, x, mode=dim)",
        "nn.functional.pad(x.exp(), (1, 1), mode=dim)",
    ],
)
def test_what_an_op_takes_beside_tensors_is_a_number_whatever_is_known_of_it(tmp_path: Path, result: str) -> None:
    assert returned(tmp_path, f"def f(x, dim):\n    return {result}\n") == [{"float16"}]
    assert returned(tmp_path, f"def f(x, dim, y):\n    z = y / 2\n    return {result}\n") == [{"float16"}]


def test_what_may_be_an_operand_may_be_a_tensor(tmp_path: Path) -> None:
    code = "def f(x, low):\n    return torch.clamp(x.exp(), low)\n"
    assert returned(tmp_path, code, "mixed") == [None]


def test_whole_numbers_are_refused_where_floats_are_mixed_with_them(tmp_path: Path) -> None:
    code = "def f(x):\n    y = x.cumsum(-1) - 1\n    y /= (x > 0).sum(-1)\n    return x\n"
    assert returned(tmp_path, code) == [{"float16"}]


def test_a_module_of_a_package_imports_its_package_though_a_file_in_it_has_the_same_name(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "net.py").write_text("def normed(x):\n    return x.softmax(-1)\n")
    path = package / "block.py"
    path.write_text("from net.net import normed\ndef f(x):\n    y = x.exp()\n    return normed(y)\n")
    found = claims(path, [package, tmp_path], parse_assumption("half"))[path]
    [result] = [one.dtypes for one in found if (one.span.line, one.span.column) == (4, 11)]
    assert result == {"float16"}


def test_a_parameter_that_is_checked_to_be_whole_is_no_floating_one(tmp_path: Path) -> None:
    code = (
        "def loss(x, target):\n"
        "    if target.dtype != torch.long:\n"
        "        raise ValueError(target.dtype)\n"
        "    return x.log_softmax(1) / 2, target\n"
        "def f(x, target):\n"
        "    y = loss(x, target)\n"
        "    return target\n"
    )
    found = returned(tmp_path, code)[1]
    assert found is None or "float16" not in found


def test_whole_numbers_that_are_lifted_to_floats_show_a_floating_parameter(tmp_path: Path) -> None:
    code = "def f(x: torch.Tensor):\n    if not x.is_floating_point():\n        x = x.to(torch.float32)\n    return x\n"
    assert returned(tmp_path, code) == [{"float16"}]
    fitted = (
        "def f(x: torch.Tensor, y: torch.Tensor):\n"
        "    z = y.exp()\n"
        "    if x.dtype != y.dtype:\n"
        "        z = x.to(y.dtype)\n"
        "    return x\n"
    )
    assert returned(tmp_path, fitted)[0] != {"float16"}


@pytest.mark.parametrize("use", ["1.0 - x", "x * -10000.0", "x + 1.0"])
def test_what_is_done_with_masks_shows_no_floating_parameter(tmp_path: Path, use: str) -> None:
    (found,) = returned(tmp_path, f"def f(x: torch.Tensor):\n    z = {use}\n    return x\n")
    assert found != {"float16"}


def test_what_becomes_an_index_on_one_path_may_be_one(tmp_path: Path) -> None:
    code = (
        "def f(index: torch.Tensor, x: torch.Tensor):\n"
        "    if index.is_sparse:\n"
        "        index, x = index.indices().long(), index.values()\n"
        "    y = x.new_zeros(3).scatter_add_(0, index, x) / 2\n"
        "    return index\n"
    )
    (found,) = returned(tmp_path, code)
    assert found != {"float16"}


def test_a_parameter_that_may_be_a_tuple_stays_one(tmp_path: Path) -> None:
    code = "def f(x):\n    if isinstance(x, tuple):\n        x = torch.tensor(x)\n    return x.softmax(-1)\n"
    (found,) = returned(tmp_path, code)
    assert found is None or "float32" in found


def test_what_a_call_may_give_counts_where_nothing_shows_more(tmp_path: Path) -> None:
    code = "def f(x: torch.Tensor):\n    return x * 2\ndef g(x: torch.Tensor):\n    return f(x.float().exp())\n"
    (found, _) = returned(tmp_path, code)
    assert found is None or "float32" in found


EXAMPLE = '''
def scaled(image: torch.Tensor, where: torch.Tensor, by: torch.Tensor):
    """Scale an image.

    >>> import torch
    >>> from library import scaled
    >>> image = torch.rand(
    ...     (2, 3), dtype=torch.float32
    ... )
    >>> scaled(image, torch.tensor([0, 1]), unknown())
    tensor([...])
    """
    return {} * 2
'''


@pytest.mark.parametrize(("parameter", "is_floating"), [("image", True), ("where", False), ("by", False)])
def test_what_examples_in_docstrings_give_is_floating(tmp_path: Path, parameter: str, is_floating: bool) -> None:
    assert (returned(tmp_path, EXAMPLE.format(parameter)) == [{"float16"}]) is is_floating


def test_what_is_passed_on_to_what_an_example_shows_is_floating(tmp_path: Path) -> None:
    code = (
        EXAMPLE.format("image")
        + "def twice(picture: torch.Tensor, where):\n    scaled(picture, where, where)\n    return picture * 2\n"
    )
    assert returned(tmp_path, code)[-1] == {"float16"}


def test_an_example_says_nothing_where_a_call_in_view_gives_whole_numbers(tmp_path: Path) -> None:
    code = EXAMPLE.format("image") + "def count():\n    return scaled(torch.arange(3), torch.arange(3), 1)\n"
    assert returned(tmp_path, code)[0] != {"float16"}


def test_an_example_that_does_not_parse_or_run_is_passed_over(tmp_path: Path) -> None:
    code = 'def f(x: torch.Tensor):\n    """\n    >>> f(nothing.at_all)\n    >>> f(torch.rand(3)\n    """\n    return x * 2\n'
    assert returned(tmp_path, code) != [{"float16"}]


@pytest.mark.parametrize(
    "check",
    [
        "not x.is_floating_point() or x.dtype != y.dtype",
        "not torch.is_floating_point(x) or not torch.is_floating_point(y)",
        "x.dtype not in (torch.float16, torch.float32, torch.bfloat16) or y.dtype != x.dtype",
    ],
)
def test_what_a_check_refuses_whole_numbers_for_is_floating(tmp_path: Path, check: str) -> None:
    code = f"def f(x: torch.Tensor, y: torch.Tensor):\n    if {check}:\n        raise TypeError\n    return x * y\n"
    assert returned(tmp_path, code) == [{"float16"}]


def test_what_has_to_be_of_one_dtype_is_judged_together(tmp_path: Path) -> None:
    check = "    if x.dtype != y.dtype:\n        raise TypeError\n"
    code = f"def f(x: torch.Tensor, y: torch.Tensor):\n{check}    z = torch.stack([x, y]) / 2\n    return x * y\n"
    assert returned(tmp_path, code) == [{"float16"}]
    code = f"def f(x: torch.Tensor, y: torch.Tensor):\n{check}    return x * y\n"
    assert returned(tmp_path, code) != [{"float16"}]


def test_what_is_given_whole_numbers_is_not_taken_for_a_float_whatever_is_done_with_it(tmp_path: Path) -> None:
    code = "def f(x: torch.Tensor):\n    {}\n    y = x.exp()\n    return x * 2\n"
    assert returned(tmp_path, code.format("''")) == [{"float16"}]
    assert returned(tmp_path, code.format("'>>> f(torch.tensor([1, 2]))'")) != [{"float16"}]
    assert returned(tmp_path, code.format("''") + "def g():\n    return f(torch.arange(3))\n")[0] != {"float16"}


@pytest.mark.parametrize("method", ["clip", "clamp"])
def test_a_bound_may_be_a_number_that_lifts_whole_numbers(tmp_path: Path, method: str) -> None:
    code = f"def f(n, low):\n    return torch.arange(n, dtype=torch.int64).{method}(low)\n"
    assert returned(tmp_path, code) == [None]
    assert returned(tmp_path, f"def f(x):\n    return x.exp().{method}(0, 1)\n") == [{"float16"}]


def test_one_tensor_that_einops_packs_is_shown_by_what_is_done_with_the_packed_one(tmp_path: Path) -> None:
    code = "def f(q):\n    q, shapes = pack([q], '* n d')\n    return q.softmax(-1)\n"
    assert returned(tmp_path, f"from einops import pack\n\n{code}") == [{"float16"}]


def test_what_sizes_a_layer_is_a_number(tmp_path: Path) -> None:
    code = (
        "class Scores(nn.Module):\n"
        "    def __init__(self, dim, heads=8, base=10000):\n"
        "        super().__init__()\n"
        "        self.to_q = nn.Linear(dim, dim * heads)\n"
        "        self.scale = dim ** -0.5\n"
        "        self.register_buffer('frequencies', base ** -torch.linspace(0, 1, heads))\n"
        "    def forward(self, x):\n"
        "        return self.to_q(x) * self.scale\n"
        "    def positions(self):\n"
        "        return self.frequencies\n"
    )
    assert returned(tmp_path, code) == [{"float16"}, {"float16"}]


def test_what_is_a_number_by_default_is_one_or_a_tensor_of_the_assumed_dtype(tmp_path: Path) -> None:
    code = "def f(x, temperature=1.0, shift=(0.5, 1)):\n    low, high = shift\n    return x.softmax(-1) / temperature + low\n"
    assert returned(tmp_path, code) == [{"float16"}]
    other = code + "def g(x):\n    return f(x, torch.ones(3, dtype=torch.float64))\n"
    assert returned(tmp_path, other)[0] != {"float16"}


def test_a_layer_of_the_name_of_a_method_of_tensors_takes_a_tensor(tmp_path: Path) -> None:
    code = (
        "class Block(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.norm = nn.LayerNorm(8)\n"
        "    def forward(self, x):\n"
        "        return self.norm(x)\n"
    )
    assert returned(tmp_path, code) == [{"float16"}]


def test_a_rate_in_a_tensor_is_no_other_float(tmp_path: Path) -> None:
    code = (
        "def f(x: torch.Tensor):\n"
        "    return x.softmax(-1)\n"
        "def run(net, x: torch.Tensor, step: int):\n"
        "    rate = torch.tensor({}) ** step\n"
        "    return f(net(x))\n"
    )
    assert returned(tmp_path, code.format("0.5"))[0] == {"float16"}
    assert returned(tmp_path, code.format("[0.5]"))[0] is None


def test_what_calls_compute_for_a_constructor_need_be_no_number(tmp_path: Path) -> None:
    code = (
        "class Scale(nn.Module):\n"
        "    def __init__(self, scale=1.0):\n"
        "        super().__init__()\n"
        "        self.scale = scale\n"
        "    def forward(self, x):\n"
        "        return self.scale * torch.arange(4)\n"
        "class Both(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.two = Scale({})\n"
    )
    assert returned(tmp_path, code.format("2.0")) == [{"float32", "int64"}]
    assert returned(tmp_path, code.format("torch.linspace(0, 1, 4, dtype=torch.float64)")) == [None]


def test_a_module_in_the_place_of_a_forward_is_a_part_of_the_module(tmp_path: Path) -> None:
    code = (
        "class Single(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.float()\n"
        "class Double(nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x.double()\n"
        "net = Single()\n"
        "net.forward = Double()\n"
        "def f():\n"
        "    return net(torch.ones(2))\n"
    )
    assert returned(tmp_path, code)[-1] == {"float32"}


def test_what_a_function_inside_another_computes_is_claimed(tmp_path: Path) -> None:
    code = "def f(x):\n    def scaled(y):\n        return y.exp() * 2\n    return scaled(x)\n"
    assert returned(tmp_path, code) == [{"float16"}, {"float16"}]
