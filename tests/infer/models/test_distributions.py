"""torch.distributions: the dtype of the parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infer.programs import inexact

torch = pytest.importorskip("torch")
SOURCES = {"by models": [], "by torch's source": [Path(torch.__file__).parents[1]]}

HEAD = "x = torch.randn(2, 5, 8)\n"


@pytest.mark.parametrize("how", SOURCES)
def test_samples_and_densities_have_the_dtype_of_the_parameters(how: str) -> None:
    """Samples of categories are int64."""
    program = """
from torch.distributions import Bernoulli, Categorical, Independent, MultivariateNormal, Normal, kl_divergence

d = Normal(torch.zeros(3), torch.ones(3))
s = d.sample() * 1; r = d.rsample((5,)) * 1; lp = d.log_prob(s) * 1; en = d.entropy() * 1; mm = d.mean * d.stddev
k = kl_divergence(d, Normal(torch.zeros(3), 1.0)) * 1
c = Categorical(logits=torch.randn(2, 3)); act = c.sample(); clp = c.log_prob(act) * 1; ce = c.entropy().mean() * 1; pr = c.probs * 1; ac1 = act * 1
bd = Bernoulli(probs=torch.rand(3).double()); bs = bd.sample() * 1; bl = bd.log_prob(bs) * 1
ind = Independent(d, 1); il = ind.log_prob(ind.rsample()) * 1; ie = ind.entropy() * 1
mv = MultivariateNormal(torch.zeros(2), torch.eye(2)); ms = mv.sample() * 1; ml = mv.log_prob(ms) * 1
n0 = Normal(0.0, 1.0).sample((3,)) * 1
"""
    assert inexact(HEAD + program, SOURCES[how]) == []


def test_subclasses_are_read_with_the_source_of_their_bases() -> None:
    program = """
import torch.distributions as D
from torch.distributions import constraints, register_kl, kl_divergence

class Shifted(D.Normal):
    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    def __init__(self, loc, scale, by):
        super().__init__(loc, scale)
        self.by = by
    def rsample(self, sample_shape=torch.Size()):
        return super().rsample(sample_shape) + self.by
    def log_prob(self, value):
        return super().log_prob(value - self.by)

@register_kl(Shifted, D.Normal)
def _divergence(p, q):
    return (p.loc - q.loc).double()

d = Shifted(torch.zeros(3), torch.ones(3), H.sum())
a = d.rsample((2,)) * 1
b = d.sample() * 1
c = d.log_prob(a) * 1
k = kl_divergence(d, D.Normal(torch.zeros(3), 1.0)) * 1
g = D.Gamma(torch.ones(2).double(), 1.0).sample() * 1
e = D.Dirichlet(torch.ones(3)).sample() * 1
d.entropy()
"""
    assert inexact(HEAD + program, SOURCES["by torch's source"]) == []
