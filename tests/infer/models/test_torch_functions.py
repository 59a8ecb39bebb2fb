"""Functions of torch that are no rows of the operator table."""

from __future__ import annotations

import pytest

from tests.infer.programs import contradicted, inexact, loose, mistaken

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_functions_without_a_row() -> None:
    """Embedding, grids, clamps, softplus."""
    program = """
e = F.embedding(torch.tensor([1]), torch.randn(3, 4)) * 1; oh = F.one_hot(torch.tensor([1]), 3) * 1; sc = F.scaled_dot_product_attention(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4)) * 1
ip = F.interpolate(torch.randn(1, 1, 4, 4), scale_factor=2, mode="bilinear") * 1; gs = F.grid_sample(torch.randn(1, 1, 4, 4), F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4])) * 1
pdv = F.pad(torch.randn(2, 3), (1, 1)) * 1; gsm = F.gumbel_softmax(torch.randn(2, 3)) * 1
d = F.softplus(x) + 1e-3
lin = torch.linspace(0, 20, 20 + 1, dtype=torch.float64)
al = torch.cos(((lin / 20) + 0.008) / (1 + 0.008) * 3.14 * 0.5) ** 2
al = al / al[0]
be = 1 - (al[1:] / al[:-1])
cl = torch.clip(be, 0, 0.999)
def out():
    return x.max(dim=-1, keepdim=True).values, x.sort(-1).indices, x.topk(2).values
m = out()[0] * 1; m2 = out()[1] * 1; m3 = out()[2] * 1
"""
    assert inexact(HEAD + program) == []


def test_complex_numbers_and_spectra() -> None:
    """Rotary embeddings, Fourier transforms, decompositions."""
    program = """
def rotary(q, k):
    f = 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4))
    t = torch.arange(3)
    fr = torch.outer(t, f)
    cis = torch.polar(torch.ones_like(fr), fr)
    q_ = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
    qo = torch.view_as_real(q_ * cis).flatten(2)
    return qo.type_as(q), cis.abs() * 1, cis.real * 1, cis.imag * 1, cis.conj() * 1, torch.angle(cis) * 1
rq = rotary(torch.randn(2, 3, 4).half(), None)
rq0 = rq[0] * 1
f = torch.fft.rfft(torch.randn(8)); fa = f.abs() * 1; fi = torch.fft.irfft(f) * 1; f2 = torch.fft.fft2(torch.randn(4, 4)) * 1; fm = torch.stft(torch.randn(100), 10, return_complex=True) * 1
u, sv, vh = torch.linalg.svd(torch.randn(3, 3)); us = u * sv; inv = torch.linalg.inv(torch.eye(3)) * 1; nm = torch.linalg.norm(x) * 1; sol = torch.linalg.solve(torch.eye(3), torch.ones(3, 1)) * 1
"""
    assert contradicted(HEAD + program) == []
    assert loose(HEAD + program) == set()


def test_sparse_tensors_keep_their_values() -> None:
    """Their indices are int64."""
    program = """
sp = torch.sparse_coo_tensor(torch.tensor([[0, 1]]), torch.tensor([1.0, 2.0]), (3,)); sd1 = sp.to_dense() * 1; sp1 = torch.sparse.mm(torch.eye(3).to_sparse(), torch.ones(3, 2)) * 1
sv2 = sp.coalesce().values() * 1; si = sp.coalesce().indices() * 1
"""
    assert inexact(HEAD + program) == []


def test_tensors_change_in_place_under_all_names() -> None:
    """Dimensions, and dtypes by `data`."""
    program = """
h = torch.ones(2, dtype=torch.float16)
z = torch.tensor(1.0, dtype=torch.float64)
z.unsqueeze_(0)
a = z * h
one = torch.where(torch.tensor([True]), torch.tensor(1.0).double(), torch.tensor(1.0).double()) * h
two = torch.ones(2).double() @ torch.ones(2).double() * h
"""
    assert contradicted(HEAD + program) == []


def test_the_default_dtype_is_set_and_set_back() -> None:
    """For tensors and layers."""
    program = """
torch.set_default_dtype(torch.float64)
z0 = torch.zeros(3); z1 = torch.tensor(1.0) * 1; z2 = nn.Linear(2, 2).weight * 1
torch.set_default_dtype(torch.float32)
z3 = torch.zeros(3) * 1
"""
    assert inexact(HEAD + program) == []


def test_masks_and_missing_states_decide_no_dtype() -> None:
    """A mask of which nothing is known, states that are None at first, tensors that may have no dimensions."""
    program = """
import json
class Cache:
    def __init__(self):
        self.keys = None
def attend(x, cache, mask):
    cache.keys = x if cache.keys is None else torch.cat([cache.keys, x], dim=-2)
    keys = cache.keys[:, :2, :]
    weights = x @ keys.transpose(-1, -2)
    if mask is not None:
        weights = weights + mask
    weights = F.softmax(weights, dim=-1)
    y = weights.type(x.dtype)
    return y @ keys, F.scaled_dot_product_attention(x, keys, keys, mask)
given = torch.randn(1, 2, 4).bfloat16()
caches = {"a": Cache(), "b": Cache()}
mask = json.loads("null")
for name in json.loads('["a", "b"]'):
    a, b = attend(given, caches[name], mask)
    c = a * 1
    d = b * 1
d.sum()
"""
    assert contradicted(HEAD + program) == []
    assert loose(HEAD + program).isdisjoint("cd")


def test_what_torch_refuses_has_not_happened() -> None:
    """An operand that may be None is a tensor behind an op or an operator; what is joined has dimensions."""
    program = """
import json
given = json.loads('{"x": 1}')
y = H if given else None
z = 2.0 if given else None
a = F.dropout(y, p=0.5, training=True) * 1
b = y + 1
c = S * y
d = torch.exp(y) * z
e = nn.Linear(2, 2).half()(y) * 1
f = "%s" % (y if json.loads("0") else None)
any_rank = torch.zeros(json.loads("[2, 2]"))
g = torch.cat([any_rank, torch.zeros(2, 2).double()]) * 1
h = nn.LayerNorm(2)(any_rank) * torch.tensor(1.0).double()
"""
    assert inexact(HEAD + program) == []
    assert loose(HEAD + program).isdisjoint("abcdegh")


def test_frequencies_have_the_default_dtype() -> None:
    """Or the one that is asked for, by name or by a tensor to fill."""
    program = """
a = torch.fft.fftfreq(8); b = torch.fft.rfftfreq(8, d=0.5) * 1
c = torch.fft.fftfreq(8, 0.5, dtype=torch.float64) * H.new_ones(8)
filled = torch.fft.rfftfreq(8, out=torch.empty(5, dtype=torch.float16))
with torch.autocast("cpu", dtype=torch.bfloat16):
    inside = torch.fft.fftfreq(8) * 2
torch.set_default_dtype(torch.float64)
wide = torch.fft.fftfreq(8)
try:
    whole = torch.fft.fftfreq(8, dtype=torch.int64)
except RuntimeError:
    whole = H
last = whole * 1
"""
    assert inexact(program) == []
    assert mistaken(program) == []
