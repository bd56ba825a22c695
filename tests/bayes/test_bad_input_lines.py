"""What makes no sense of densities and beliefs is refused in one clear line that says what would be right."""

import numpy as np
import pytest

import softcount as sc

X = [1.0, 2.0, 4.0, 4.5]
COIN = {"fair": {"h": 0.5, "t": 0.5}, "bent": {"h": 1.0}}


def averaged():
    return sc.average([sc.Mixture(1).fit({"x": X}), sc.Mixture(1).fit({"x": [*X, 9.0]})])


def believed(n, m):
    model = sc.NaiveBayes().fit({"Sky": ["grey", "blue"]}, ["rain", "sun"])
    table = {"column": ["Sky"], "level": ["grey"], "class": ["rain"], "n": [n], "m": [m]}
    return sc.priors.expert_prior(table, model)


REFUSED = {
    "bandwidth 0": (lambda: sc.KernelDensity(bandwidth=0).fit(X).score_samples(X),
                    "bandwidth must be.* above 0.*not 0"),
    "bandwidth -1": (lambda: sc.KernelDensity(bandwidth=-1.5).fit(X).score_samples(X), "above 0.*not -1.5"),
    "bandwidth nan": (lambda: sc.KernelDensity(bandwidth=np.nan).fit(X).score_samples(X), "above 0.*not nan"),
    "bandwidth of a family": (lambda: sc.NaiveBayes({"x": sc.families.Kernel(bandwidth=0)}), "above 0.*not 0"),
    "equal values": (lambda: sc.KernelDensity(bandwidth="isj").fit([3.0] * 9).score_samples([3.0]),
                     "give the bandwidth"),
    "equal values in bins": (lambda: sc.Histogram().fit([3.0] * 9), "two different values"),
    "infinite value": (lambda: sc.KernelDensity().fit([1.0, np.inf]), "row 2 holds inf: values must be"),
    "infinite value in bins": (lambda: sc.Histogram().fit([1.0, 2.0, -np.inf]), "row 3 holds -inf: values must be"),
    "prior of 1.1": (lambda: sc.Hypotheses({"fair": 0.5, "bent": 0.6}, COIN), "prior.* sum to 1.1.*sum to one"),
    "likelihood of 0.9": (lambda: sc.Hypotheses({"a": 1.0}, {"a": {"h": 0.5, "t": 0.4}}), "under 'a' sum to 0.9"),
    "impossible": (lambda: sc.Hypotheses({"bent": 1.0}, {"bent": {"h": 1.0, "t": 0.0}}).observe(["h", "t"]),
                   "observation 2, 't', is impossible under every hypothesis"),
    "other tables": (averaged, "different tables: 4 and 5 rows"),
    "n above m": (lambda: believed(3, 2), "n is 3. It is at most m, which is 2"),
    "n above m of an expert": (lambda: sc.priors.Expert(3, 2), "n is 3. It is at most m, which is 2"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_it_is_refused_in_a_line(what):
    ask, line = REFUSED[what]
    with pytest.raises(sc.DataError, match=line) as caught:
        ask()
    assert "\n" not in str(caught.value)
