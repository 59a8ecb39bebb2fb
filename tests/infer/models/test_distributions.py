"""torch.distributions: the dtype of the parameters."""

from __future__ import annotations

import pytest

from tests.infer.programs import inexact

pytest.importorskip("torch")

HEAD = "x = torch.randn(2, 5, 8)\n"


def test_samples_and_densities_have_the_dtype_of_the_parameters() -> None:
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
    assert inexact(HEAD + program) == []
