"""Hypotheses against enumeration in fractions, and laws that hold whatever was seen."""

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import softcount as sc
from softcount.errors import DataError

# The oracle: every hypothesis multiplied out in fractions, which round nothing.


def exact_posterior(prior, likelihood, seen):
    joint = {
        h: prior[h] * math.prod((likelihood[h].get(v, Fraction(0)) for v in seen), start=Fraction(1)) for h in prior
    }
    total = sum(joint.values())
    return {h: share / total for h, share in joint.items()} if total else None


def floats(exact):
    return {key: floats(value) if isinstance(value, dict) else float(value) for key, value in exact.items()}


def shares(draw, names):
    """Fractions that sum to one, some of them zero."""
    counts = draw(st.lists(st.integers(0, 6), min_size=len(names), max_size=len(names)).filter(any))
    return {name: Fraction(count, sum(counts)) for name, count in zip(names, counts, strict=True)}


@st.composite
def situations(draw):
    """A prior, likelihoods of the values a, b, c, and what was seen."""
    names = [f"h{i}" for i in range(draw(st.integers(1, 5)))]
    prior = shares(draw, names)
    likelihood = {h: shares(draw, "abc") for h in names}
    return prior, likelihood, draw(st.lists(st.sampled_from("abc"), max_size=8))


@given(situations())
def test_posteriors_predictions_and_bits_are_those_of_fractions(situation):
    prior, likelihood, seen = situation
    exact = exact_posterior(prior, likelihood, seen)
    before = sc.Hypotheses(floats(prior), floats(likelihood))
    if exact is None:
        with pytest.raises(DataError, match="impossible under every hypothesis"):
            before.observe(seen)
        return
    after = before.observe(seen)
    assert after.posterior == pytest.approx(floats(exact), rel=1e-12)
    for x in "abc":
        wanted = sum(exact[h] * likelihood[h].get(x, 0) for h in prior)
        assert after.predict(x) == pytest.approx(float(wanted), rel=1e-12)
        assert after.predict(x, by="map") == pytest.approx(float(likelihood[after.map].get(x, 0)), rel=1e-12)
    assert exact[after.map] == max(exact.values())
    given_h = {h: math.prod((likelihood[h].get(v, Fraction(0)) for v in seen), start=Fraction(1)) for h in prior}
    if seen:
        assert given_h[after.ml] == max(given_h.values())
        assert after.predict("a", by="ml") == pytest.approx(float(likelihood[after.ml].get("a", 0)), rel=1e-12)
    for h, bits in after.description_length.items():
        joint = prior[h] * given_h[h]
        assert bits == pytest.approx(-math.log2(joint) if joint else math.inf, rel=1e-12, abs=1e-12)


@given(situations(), st.integers(1, 5))
def test_the_k_best_weigh_among_themselves(situation, k):
    prior, likelihood, seen = situation
    exact = exact_posterior(prior, likelihood, seen)
    if exact is None or k > len(prior):
        return
    after = sc.Hypotheses(floats(prior), floats(likelihood)).observe(seen)
    kept = sorted(exact, key=exact.get, reverse=True)[:k]
    wanted = sum(exact[h] * likelihood[h].get("a", 0) for h in kept) / sum(exact[h] for h in kept)
    assert after.predict("a", by=k) == pytest.approx(float(wanted), rel=1e-12)


@given(situations(), st.integers(0, 8))
def test_halves_one_by_one_and_any_order_say_the_same(situation, cut):
    prior, likelihood, seen = situation
    if exact_posterior(prior, likelihood, seen) is None:
        return
    before = sc.Hypotheses(floats(prior), floats(likelihood))
    together, halves, single = before.observe(seen), before.observe(seen[:cut]).observe(seen[cut:]), before
    for value in seen:
        single = single.observe([value])
    assert together.posterior == halves.posterior == single.posterior
    assert together.history.equals(halves.history)
    assert before.observe(seen[::-1]).posterior == pytest.approx(together.posterior, rel=1e-12)
    assert before.posterior == pytest.approx(floats(prior), rel=1e-12)  # what was there is not changed


@settings(max_examples=30)
@given(situations())
def test_every_line_of_the_history_is_what_was_believed_then(situation):
    prior, likelihood, seen = situation
    if exact_posterior(prior, likelihood, seen) is None:
        return
    before = sc.Hypotheses(floats(prior), floats(likelihood))
    table = before.observe(seen).history
    assert isinstance(table, pa.Table)
    for count, line in enumerate(table.to_pylist()):
        then = before.observe(seen[:count])
        assert {h: line[h] for h in prior} == pytest.approx(then.posterior, rel=1e-12)
        assert (line["observed"], line["value"]) == (count, seen[count - 1] if count else None)
        for x in "abc":
            assert line[f"bayes {x}"] == pytest.approx(then.predict(x), rel=1e-12)
            assert line[f"map {x}"] == pytest.approx(then.predict(x, by="map"), rel=1e-12)
            assert line[f"ml {x}"] == (pytest.approx(then.predict(x, by="ml"), rel=1e-12) if count else None)


# Ways to judge

COINS = sc.Hypotheses({"fair": 0.5, "bent": 0.5}, {"fair": {1: 0.5, 0: 0.5}, "bent": {1: 0.9, 0: 0.1}})


def test_a_function_a_table_and_a_told_likelihood_say_the_same():
    functions = sc.Hypotheses({"fair": 0.5, "bent": 0.5}, {"fair": lambda x: 0.5, "bent": lambda x: [0.1, 0.9][x]})
    mixed = sc.Hypotheses({"fair": 0.5, "bent": 0.5}, {"fair": {1: 0.5, 0: 0.5}, "bent": lambda x: [0.1, 0.9][x]})
    seen, wanted = [1, 1, 0], COINS.observe([1, 1, 0]).posterior
    assert functions.observe(seen).posterior == wanted == mixed.observe(seen).posterior
    told = COINS.observe({"fair": 0.125, "bent": 0.081})
    assert told.posterior == pytest.approx(wanted, rel=1e-14)
    assert COINS.observe(lambda h: {"fair": 0.125, "bent": 0.081}[h]).posterior == told.posterior
    assert told.history["value"].to_pylist() == [None, None]
    assert functions.observe(seen).history.column_names == ["observed", "value", "fair", "bent"]
    assert functions.observe(seen).predictions(1).to_pydict() == {
        name: pytest.approx(COINS.observe(seen).predictions(1)[name].to_pylist())
        for name in ("observed", "bayes", "map", "ml")
    }


def test_values_may_come_in_any_kind_of_list():
    wanted = COINS.observe([1, 0, 1]).posterior
    for seen in ((1, 0, 1), np.array([1, 0, 1]), pa.array([1, 0, 1]), pa.chunked_array([[1], [0, 1]]), iter([1, 0, 1])):
        assert COINS.observe(seen).posterior == wanted
    pairs = sc.Hypotheses({"h": 1.0}, {"h": {("a", 1): 0.5, ("b", 2): 0.5}})
    assert pairs.observe([("a", 1), ("b", 2)]).predict(("a", 1)) == 0.5


def test_densities_weigh_as_probabilities_do():
    bells = sc.Hypotheses({"low": 0.3, "high": 0.7}, {"low": stats.norm(0, 1).pdf, "high": stats.norm(2, 3).pdf})
    seen = [0.5, 4.0, -1.0]
    low, high = (0.3 * stats.norm(0, 1).pdf(seen).prod(), 0.7 * stats.norm(2, 3).pdf(seen).prod())
    after = bells.observe(seen)
    assert after.posterior["low"] == pytest.approx(low / (low + high), rel=1e-12)
    mixed = (low * stats.norm(0, 1).pdf(1.0) + high * stats.norm(2, 3).pdf(1.0)) / (low + high)
    assert after.predict(1.0) == pytest.approx(mixed, rel=1e-12)
    assert after.predict_log(1.0) == pytest.approx(math.log(mixed), rel=1e-12)


def test_a_hundred_thousand_observations_do_not_underflow():
    seen = [1] * 50_000 + [0] * 50_000
    after = COINS.observe(seen)
    assert after.posterior == {"fair": 1.0, "bent": pytest.approx(0.0, abs=1e-300)}
    assert after.description_length["fair"] == pytest.approx(100_001, rel=1e-12)


def test_equals_are_named_in_their_order_whatever_rounding_says():
    likelihood = {"first": {"a": 0.1, "b": 0.2, "c": 0.7}, "second": {"a": 0.7, "b": 0.1, "c": 0.2}}
    tied = sc.Hypotheses({"first": 0.5, "second": 0.5}, likelihood)
    for seen in (["a", "b", "c"] * 33, ["c", "a", "b"] * 57):
        after = tied.observe(seen)
        assert (after.map, after.ml) == ("first", "first")


def test_what_only_a_most_improbable_hypothesis_allows_keeps_its_logarithm():
    likelihood = {"fair": {"a": 0.5, "b": 0.5}, "rare": {"a": 1e-9, "b": 0.5, "c": 0.5 - 1e-9}}
    after = sc.Hypotheses({"fair": 0.5, "rare": 0.5}, likelihood).observe(["a"] * 100)
    assert after.predict("c") == 0.0
    assert after.predict_log("c") == pytest.approx(100 * math.log(2e-9) + math.log(0.5 - 1e-9), rel=1e-12)


# Fitted models


def rows_of(seed, n=60):
    return np.random.default_rng(seed).normal([[0.0, 5.0]], [[1.0, 2.0]], (n, 2))


class Total:
    """A model that speaks of all rows together only."""

    def __init__(self, model):
        self.model = model

    def log_likelihood(self, X):
        return float(self.model.score_samples(X).sum())


def test_fitted_models_are_hypotheses_too():
    near, far = sc.GaussianMixture(1).fit(rows_of(1)), sc.GaussianMixture(1).fit(rows_of(2) + 1.0)
    models, new = sc.Hypotheses({"near": 0.2, "far": 0.8}, {"near": near, "far": far}), rows_of(3, 5)
    after = models.observe(new)
    logs = np.log([0.2, 0.8]) + np.array([near.score_samples(new).sum(), far.score_samples(new).sum()])
    wanted = np.exp(logs - np.logaddexp(*logs))
    assert list(after.posterior.values()) == pytest.approx(wanted.tolist(), rel=1e-12)
    assert after.history.num_rows == 6
    ahead = wanted[0] * np.exp(near.score_samples(new)) + wanted[1] * np.exp(far.score_samples(new))
    np.testing.assert_allclose(after.predict(new), ahead, rtol=1e-12)
    assert after.predictions(new[:1])["bayes"][5].as_py() == pytest.approx(ahead[0], rel=1e-12)
    with pytest.raises(DataError, match="one row at a time"):
        after.predictions(new)


def test_a_model_that_speaks_of_all_rows_together_makes_them_one_observation():
    near, far, new = sc.GaussianMixture(1).fit(rows_of(1)), sc.GaussianMixture(1).fit(rows_of(2) + 1.0), rows_of(3, 5)
    by_row = sc.Hypotheses({"near": 0.2, "far": 0.8}, {"near": near, "far": far}).observe(new)
    together = sc.Hypotheses({"near": 0.2, "far": 0.8}, {"near": Total(near), "far": far}).observe(new)
    assert together.posterior == pytest.approx(by_row.posterior, rel=1e-12)
    assert together.history.num_rows == 2


def test_networks_and_naive_bayes_judge_rows_of_tables():
    rows = {"Rain": ["yes", "no", "no", "yes"] * 5, "Wet": ["yes", "no", "no", "yes"] * 5}
    joined, apart = sc.BayesNet([("Rain", "Wet")]).fit(rows), sc.BayesNet({"Rain": [], "Wet": []}).fit(rows)
    both = sc.Hypotheses({"joined": 0.5, "apart": 0.5}, {"joined": joined, "apart": apart})
    after = both.observe({"Rain": ["yes", "no"], "Wet": ["yes", "no"]})
    assert after.map == "joined"
    odds = joined.log_likelihood({"Rain": ["yes", "no"], "Wet": ["yes", "no"]})
    odds -= apart.log_likelihood({"Rain": ["yes", "no"], "Wet": ["yes", "no"]})
    assert math.log(after.posterior["joined"] / after.posterior["apart"]) == pytest.approx(odds, rel=1e-9)


# What it looks like


def test_the_printed_table():
    assert str(COINS.observe([1])).splitlines() == [
        "2 hypotheses after 1 observation",
        "      prior  posterior    bits",
        "fair    0.5   0.357143  2.0000",
        "bent    0.5   0.642857  1.1520  MAP, ML",
    ]
    assert str(COINS).splitlines()[2].endswith("MAP")
    assert repr(COINS) == "Hypotheses('fair', 'bent'; 0 observations)"
    assert "\\x1b" in str(sc.Hypotheses({"\x1b[31m": 1.0}, {"\x1b[31m": {"a": 1.0}}))


def test_of_many_hypotheses_the_most_probable_are_printed():
    names = [f"h{i}" for i in range(30)]
    many = sc.Hypotheses({h: 1 / 30 for h in names}, {h: {"a": i / 29, "b": 1 - i / 29} for i, h in enumerate(names)})
    lines = str(many.observe(["a", "a"])).splitlines()
    assert [line.split()[0] for line in lines[2:-1]] == names[10:]
    assert lines[-1] == "and 10 less probable ones"


def test_names_of_ours_stand_back_in_the_history():
    names = {"observed": 0.25, "value": 0.25, "bayes a": 0.25, 1: 0.25}
    table = sc.Hypotheses(names, {h: {"a": 1.0} for h in names}).observe(["a"]).history
    assert table.column_names == [
        "(observed)", "(value)", "observed", "value", "bayes a", "1", "(bayes a)", "map a", "ml a",
    ]  # fmt: skip


# What is refused

A, B = {"a": 1.0}, {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize(
    ("prior", "likelihood", "said"),
    [
        ({}, {}, "no hypotheses"),
        ({"g": 0.5, "h": 0.4}, {"g": A, "h": A}, "prior probabilities of the hypotheses sum to 0.9"),
        ({"g": 1.5, "h": -0.5}, {"g": A, "h": A}, "'g' the probability 1.5"),
        ({"g": "much"}, {"g": A}, "'g' the probability 'much'"),
        ({"g": math.nan}, {"g": A}, "'g' the probability nan"),
        ([1.0], {"g": A}, "prior is"),
        ({"g": 1.0}, [A], "likelihood is"),
        ({"g": 0.5, "h": 0.5}, {"g": A}, "has no entry for 'h'"),
        ({"g": 1.0}, {"g": A, "h": A}, "names 'h', which the prior does not"),
        ({"g": 1.0}, {"g": {"a": 0.5, "b": 0.6}}, "under 'g' sum to 1.1"),
        ({"g": 1.0}, {"g": {}}, "under 'g' sum to 0"),
        ({"g": 1.0}, {"g": {"a": 1.5, "b": -0.5}}, "'g' gives 'a' the probability 1.5"),
        ({"g": 1.0}, {"g": 0.5}, "the likelihood of 'g' is 0.5"),
    ],
    ids=str,
)
def test_a_set_that_makes_no_sense_is_refused(prior, likelihood, said):
    with pytest.raises(DataError, match=said):
        sc.Hypotheses(prior, likelihood)


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("a", "what is observed is 'a'. Give a list"),
        (3, "Give a list"),
        (np.ones((2, 2)), "Give a list"),
        (pa.table({"x": ["a"]}), "Give a list"),
        ({"x": ["a"]}, "Give a list"),
        (["a", "c"], r"knows the value 'c' \(observation 2\). Known: 'a', 'b'"),
        ([["a"]], "knows the value"),
        ([("a", ["b"])], "knows the value"),
        ([None], "knows the value None"),
        ({"g": 0.5}, "what was seen has no entry for 'h'"),
        ({"g": 0.5, "h": -1}, "'h' gives what was seen the likelihood -1"),
        (lambda h: "often", "'g' gives what was seen the likelihood 'often'"),
        ({"g": 0.0, "h": 0.0}, "observation 1 is impossible"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_observation_that_makes_no_sense_is_refused(seen, said):
    with pytest.raises(DataError, match=said):
        sc.Hypotheses({"g": 0.5, "h": 0.5}, {"g": A, "h": B}).observe(seen)


def test_an_impossible_observation_is_named():
    torn = sc.Hypotheses({"g": 0.5, "h": 0.5}, {"g": {"a": 0.5, "b": 0.5}, "h": {"a": 0.5, "c": 0.5}})
    with pytest.raises(DataError, match="observation 3, 'c', is impossible under every hypothesis"):
        torn.observe(["a", "b", "c"])
    with pytest.raises(DataError, match="observation 3, 'c', is impossible under every hypothesis"):
        torn.observe(["a", "b"]).observe(["c"])
    with pytest.raises(DataError, match="observation 1, 'b', is impossible"):
        sc.Hypotheses({"g": 0.0, "h": 1.0}, {"g": B, "h": A}).observe(["b"])


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, None, "x", [0.5, 0.5]], ids=str)
def test_a_function_must_give_a_likelihood(bad):
    with pytest.raises(DataError, match="'g' gives 7 the likelihood"):
        sc.Hypotheses({"g": 1.0}, {"g": lambda x: bad}).observe([7])


@pytest.mark.parametrize("by", ["best", 0, 3, True, 1.5, None], ids=str)
def test_a_rule_that_is_none_is_refused(by):
    with pytest.raises(DataError, match="the best 1 to 2 hypotheses"):
        COINS.observe([1]).predict(1, by=by)


def test_before_anything_is_seen_no_hypothesis_is_the_likeliest():
    with pytest.raises(DataError, match="nothing was observed"):
        _ = COINS.ml
    with pytest.raises(DataError, match="nothing was observed"):
        COINS.predict(1, by="ml")
    with pytest.raises(DataError, match="knows the value 2"):
        COINS.predict(2)


def test_models_that_see_different_rows_or_nan_are_refused():
    class Odd:
        def __init__(self, logs):
            self.logs = logs

        def score_samples(self, X):
            return self.logs

    for logs, said in (
        ([0.0], "different numbers of rows"),
        ([0.0, math.nan], "log-likelihood"),
        ([0, math.inf], "inf"),
        ([[0.0], [0.0]], "scores of shape"),
    ):
        with pytest.raises(DataError, match=said):
            sc.Hypotheses({"g": 0.5, "h": 0.5}, {"g": Odd([0.0, 0.0]), "h": Odd(logs)}).observe([[1.0], [2.0]])


def test_values_unknown_to_tables_beside_models_are_refused():
    class Flat:
        def score_samples(self, X):
            return np.zeros(len(X))

    beside = sc.Hypotheses({"g": 0.5, "h": 0.5}, {"g": Flat(), "h": B})
    assert beside.observe(["a", "b"]).posterior == pytest.approx({"g": 0.8, "h": 0.2})
    assert beside.observe(["a", "b"]).history.column_names == ["observed", "value", "g", "h"]
    with pytest.raises(DataError, match="knows the value 'z'"):
        beside.observe(["z"])
