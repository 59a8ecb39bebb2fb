"""Layers of torch.nn: their weights, and what calling them gives."""

from __future__ import annotations

import pytest

from tests.infer.programs import inexact

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_attention_gives_its_weights_where_they_are_asked_for() -> None:
    """`MultiheadAttention` gives a tuple."""
    program = """
m = nn.MultiheadAttention(8, 2, batch_first=True)
o, w = m(x, x, x)
o2, none = m(x, x, x, need_weights=False)
a = o * 1; b = w * 1; c = o2 * 1
q = m.out_proj.weight * 1
"""
    assert inexact(HEAD + program) == []


def test_layers_of_layers_are_cast_whole() -> None:
    """Transformers hold layers, whose weights are cast with them."""
    program = """
enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2)
e = enc(x) * 1
e2 = enc.layers[0].linear1.weight * 1
enc.half()
e3 = enc.layers[0].self_attn.in_proj_weight * 1
enc.float()
t = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
tt = t(x, x) * 1
dl = nn.TransformerDecoderLayer(8, 2, batch_first=True)
dd = dl(x, x) * 1
"""
    assert inexact(HEAD + program) == []


def test_recurrent_layers_give_a_state() -> None:
    """`LSTM` gives two, `GRU` one; a packed sequence goes through them."""
    program = """
l = nn.LSTM(8, 4, num_layers=2, bidirectional=True, batch_first=True)
out, (h, cc) = l(x)
y = out * 1; y1 = h * 1; y2 = cc * 1; y3 = l.weight_ih_l1_reverse * 1
g = nn.GRU(8, 4, batch_first=True).double()
go, gh = g(x.double())
gg = go * gh.mean()
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
gru = nn.GRU(4, 5, batch_first=True)
pk = pack_padded_sequence(torch.randn(2, 3, 4), torch.tensor([3, 2]), batch_first=True)
po, hn = gru(pk)
pad, lens = pad_packed_sequence(po, batch_first=True); pad1 = pad * 1; le = lens * 1; hn1 = hn * 1
ps = pad_sequence([torch.ones(2), torch.ones(3)], batch_first=True) * 1
"""
    assert inexact(HEAD + program) == []


def test_pools_give_indices_where_these_are_asked_for() -> None:
    """Indices are int64, kept in a variable too."""
    program = """
img = torch.randn(2, 3, 8, 8)
pool = nn.AdaptiveMaxPool2d(2, return_indices=True)
p = pool(img)
i0 = p[0] * 1; i1 = p[1] * 1
mp, mi = nn.MaxPool2d(2, return_indices=True)(img)
m1 = mp * 1; m2 = mi * 1
"""
    assert inexact(HEAD + program) == []


def test_norms_without_weights_keep_the_dtype() -> None:
    """Those that have weights have buffers, too."""
    program = """
img = torch.randn(2, 3, 8, 8)
ln = nn.LayerNorm(8, elementwise_affine=False)
z = ln(x.half()) * 1
inn = nn.InstanceNorm2d(3)
z2 = inn(img.double()) * 1
bn = nn.BatchNorm2d(3)
z3 = bn(img) * 1; z4 = bn.running_mean * 1; z5 = bn.num_batches_tracked * 1
"""
    assert inexact(HEAD + program) == []


def test_containers_are_indexed_iterated_and_changed() -> None:
    """Sequential, ModuleDict, ModuleList, ParameterList."""
    program = """
seq = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2))
s = seq(x) * 1; s1 = seq[0](x) * 1; s2 = seq[:2](x) * 1; s3 = seq[-1].weight * 1
for layer in seq: x2 = layer(x) if isinstance(layer, nn.ReLU) else x
n = len(seq)
k = nn.Sequential(); k.add_module("a", nn.Linear(8, 3)); kk = k(x) * 1; ka = k.a.weight * 1
md = nn.ModuleDict({"a": nn.Linear(8, 2), "b": nn.Linear(8, 2)})
for name, mod in md.items(): r = mod(x) * 1
for mod in md.values(): r2 = mod.weight * 1
for key in md: r3 = md[key](x) * 1
for key in md.keys(): r4 = md[key](x) * 1
if "a" in md: r5 = md["a"](x) * 1
md.update({"c": nn.Linear(8, 1)}); r6 = md["c"](x) * 1
popped = md.pop("a"); r7 = popped(x) * 1; r8 = md.b.weight * 1
ml = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
hcur = x
for layer in ml: hcur = layer(hcur)
hh = hcur * 1; h1 = ml[0].weight * 1; h2 = ml[1:][0](x) * 1
ml.insert(0, nn.Linear(8, 8)); h3 = ml[0](x) * 1
pl = nn.ParameterList([torch.zeros(3), nn.Parameter(torch.zeros(3))])
p1 = pl[0] * 1
for pp in pl: p2 = pp * 1
pd = nn.ParameterDict({"w": torch.zeros(3)}); p3 = pd["w"] * 1
"""
    assert inexact(HEAD + program) == []


def test_losses_have_dimensions_where_nothing_is_reduced() -> None:
    """And other layers that need no weight."""
    program = """
img = torch.randn(2, 3, 8, 8)
emb = nn.Embedding(5, 8); ids = torch.tensor([1, 2]); em = emb(ids) * 1
eb = nn.EmbeddingBag(5, 8); ebo = eb(ids, torch.tensor([0])) * 1
fl = nn.Flatten()(img) * 1; up = nn.Upsample(scale_factor=2)(img) * 1; un = nn.Unflatten(1, (1, 3))(img) * 1
ce = nn.CrossEntropyLoss(reduction="none")(torch.randn(4, 3), torch.tensor([0, 1, 2, 0])) * 1
mse = nn.MSELoss(reduction="none")(x, x) * 1; mse2 = nn.MSELoss()(x, x) * 1
lz = nn.LazyLinear(4); lo = lz(x) * 1
ide = nn.Identity()(x) * 1; cs = nn.CosineSimilarity()(x, x) * 1; tl = nn.TripletMarginLoss()(x, x, x) * 1
sm = nn.Softmax(dim=-1)(x) * 1; sg = nn.Sigmoid()(x)*1; pr = nn.PReLU()(x)*1; bil = nn.Bilinear(8,8,2)(x,x)*1
"""
    assert inexact(HEAD + program) == []


def test_hooks_put_another_input_or_output_in_place() -> None:
    """Until they are removed."""
    program = """
seq = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
hook = seq.register_forward_hook(lambda mod, inp, out: out.double())
w1 = seq(x) * 1
hook.remove()
w2 = seq(x) * 1
lin = nn.Linear(8, 4)
lin.register_forward_pre_hook(lambda mod, args: (args[0].float(),))
w3 = lin(x.half()) * 1
acts = {}
def keep(mod, inp, out): acts["o"] = out.detach()
lin.register_forward_hook(keep)
lin(x)
w4 = acts["o"] * 1
class Sub(nn.Sequential):
    def __init__(self): super().__init__(nn.Linear(8, 8), nn.ReLU())
class Lin(nn.Linear):
    def forward(self, x): return super().forward(x) * 2
w5 = Sub()(x) * 1; w6 = Lin(8, 2)(x) * 1
"""
    assert inexact(HEAD + program) == []
