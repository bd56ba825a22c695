"""Numbers to trust: means and variances against exact arithmetic, however they were counted, at any scale."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import isqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import softcount as sc

SAMPLE_VARIANCE = sc.priors.NormalInverseChi2(mean=0, kappa=0, nu=-1, variance=0)
"""The prior under which a variance is divided by n - 1."""
FOURTEEN_DIGITS = 0.5e-14
DIGITS = 10**60


# -- exact arithmetic on the stored doubles


def exact_moments(values) -> tuple[Fraction, Fraction]:
    """Mean and sum of squared differences from it, with no rounding at all."""
    numbers = [Fraction(float(v)) for v in values]
    mean = sum(numbers, Fraction(0)) / len(numbers)
    return mean, sum(((x - mean) ** 2 for x in numbers), Fraction(0))


def exact_deviation(values) -> Fraction:
    """The standard deviation (n - 1) to sixty digits."""
    variance = exact_moments(values)[1] / (len(values) - 1)
    return Fraction(isqrt(int(variance * DIGITS * DIGITS)), DIGITS)


def relative_error(found: float, exact: Fraction) -> float:
    return float(abs(Fraction(float(found)) - exact) / abs(exact))


# -- NIST's series


def read_series(path) -> np.ndarray:
    """The numbers of a NIST file: those below its last heading of data."""
    lines = path.read_text(encoding="latin-1").splitlines()
    start = max(i for i, line in enumerate(lines) if line.lstrip("# ").startswith("Data"))
    cells = [line.strip() for line in lines[start + 1 :]]
    return np.array([float(cell) for cell in cells if cell.strip("-#")])


def around(middle: float, low: float, high: float) -> np.ndarray:
    """NIST's recipe: one value in the middle, then five hundred pairs around it."""
    return np.array([middle] + [low, high] * 500)


MADE = {
    "NumAcc2": around(1.2, 1.1, 1.3),
    "NumAcc3": around(1000000.2, 1000000.1, 1000000.3),
    "NumAcc4": around(10000000.2, 10000000.1, 10000000.3),
}
SHORT = np.array([10000001.0, 10000003.0, 10000002.0])  # NumAcc1
CERTIFIED = {
    "NumAcc1": (10000002, 1),
    "NumAcc2": (1.2, 0.1),
    "NumAcc3": (1000000.2, 0.1),
    "NumAcc4": (10000000.2, 0.1),
    "Lew": (-177.435, 277.332168044316),
    "Mavro": (2.001856, 0.000429123454003053),
    "Michelso": (299.8524, 0.0790105478190518),
}


def model(columns: int = 1) -> sc.NaiveBayes:
    return sc.NaiveBayes(kinds="normal", prior=dict.fromkeys(range(columns), SAMPLE_VARIANCE))


def counted(values: np.ndarray, batch: int | None) -> sc.NaiveBayes:
    """A model of one class that met the rows at once, or a few at a time."""
    table = values.reshape(len(values), -1)
    found = model(table.shape[1])
    if batch is None:
        return found.fit(table, np.zeros(len(table), dtype=int))
    for a in range(0, len(table), batch):
        part = table[a : a + batch]
        found.partial_fit(part, np.zeros(len(part), dtype=int))
    return found


def assert_exact(found: sc.NaiveBayes, column: int, values: np.ndarray) -> None:
    params = found.params_[column]
    assert relative_error(params["mean"][0], exact_moments(values)[0]) <= FOURTEEN_DIGITS
    assert relative_error(np.sqrt(params["variance"][0]), exact_deviation(values)) <= FOURTEEN_DIGITS


BATCHES = pytest.mark.parametrize("batch", [None, 1, 7, 100])


@BATCHES
def test_three_large_neighbours_have_fourteen_digits(batch):
    assert_exact(counted(SHORT, batch), 0, SHORT)


@pytest.mark.parametrize("batch", [None, 7, 100])
def test_a_thousand_values_around_a_large_one_have_fourteen_digits(batch):
    found = counted(np.stack(list(MADE.values()), axis=1), batch)
    for column, values in enumerate(MADE.values()):
        assert_exact(found, column, values)


@BATCHES
@pytest.mark.parametrize("name", ["Lew", "Mavro", "Michelso"])
def test_measured_series_have_fourteen_digits(data, name, batch):
    values = read_series(data(f"nist_strd_univariate/{name}.txt"))
    assert_exact(counted(values, batch), 0, values)


def test_the_made_series_are_those_of_the_files(data):
    for name, made in ({"NumAcc1": SHORT} | MADE).items():
        np.testing.assert_array_equal(read_series(data(f"nist_strd_univariate/{name}.txt")), made)


@pytest.mark.parametrize("name", CERTIFIED)
def test_the_certified_values_are_met(data, name):
    """To the digits that writing the decimals as doubles leaves."""
    values = read_series(data(f"nist_strd_univariate/{name}.txt"))
    found, (mean, deviation) = counted(values, None).params_[0], CERTIFIED[name]
    assert found["mean"][0] == pytest.approx(mean, rel=1e-14)
    lost = np.finfo(float).eps * np.abs(values).max() / deviation
    assert np.sqrt(found["variance"][0]) == pytest.approx(deviation, rel=4e-15 + lost)


# -- far from zero, in any order of merging


def merged(tables, labels, order, how) -> sc.NaiveBayes:
    """One model per part, merged in this order: left to right, or in pairs."""
    parts = [sc.NaiveBayes(kinds="normal", estimate="ml").fit(tables[i], labels[i]) for i in order]
    if how == "chain":
        return reduce(lambda one, other: one.merge(other), parts)
    while len(parts) > 1:
        pairs = [parts[i].merge(parts[i + 1]) for i in range(0, len(parts) - 1, 2)]
        parts = pairs + parts[len(parts) - len(parts) % 2 :]
    return parts[0]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["chain", "pairs"]), st.sampled_from([0.0, 1e6, 1e10, -1e10]))
def test_variance_far_from_zero_is_exact_in_any_order_of_merging(seed, how, offset):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=240) + offset
    cuts = np.sort(rng.choice(np.arange(2, 238), size=6, replace=False))
    tables = [part[:, None] for part in np.split(values, cuts)]
    labels = [np.zeros(len(part), dtype=int) for part in tables]
    found = merged(tables, labels, rng.permutation(len(tables)), how).params_[0]
    mean, squares = exact_moments(values)
    assert relative_error(found["variance"][0], squares / len(values)) <= 1e-13
    assert abs(Fraction(float(found["mean"][0])) - mean) <= Fraction(1e-15) * max(1, abs(mean))


@pytest.mark.parametrize("how", ["chain", "pairs"])
def test_a_group_a_million_deviations_away_keeps_its_digits(how):
    """The anchor is the column's, so the far group is counted far from it."""
    rng = np.random.default_rng(3)
    groups = {0: rng.normal(size=400), 1: 1e6 + rng.normal(size=150), 2: -3e6 + 1e-2 * rng.normal(size=150)}
    values, labels = np.concatenate(list(groups.values())), np.repeat(list(groups), [len(v) for v in groups.values()])
    shuffled = rng.permutation(len(values))
    rows = np.array_split(shuffled, 5)
    whole = sc.NaiveBayes(kinds="normal", estimate="ml").fit(values[shuffled, None], labels[shuffled])
    parts = merged([values[r, None] for r in rows], [labels[r] for r in rows], [3, 0, 4, 1, 2], how)
    for found in (whole, parts):
        for group, exact in groups.items():
            assert relative_error(found.params_[0]["variance"][group], exact_moments(exact)[1] / len(exact)) <= 1e-13


def test_rows_a_million_deviations_away_are_scored_centred():
    """A density written as features times parameters would be off by 1e-4 here."""
    rng = np.random.default_rng(4)
    near, far = rng.normal(size=300), 1e6 + rng.normal(size=300)
    labels = np.repeat(["far 1", "far 2", "near"], [150, 150, 300])
    values = np.concatenate([far[:150] - 0.5, far[150:] + 0.5, near])
    found = sc.NaiveBayes(kinds="normal", estimate="ml").fit(values[:, None], labels)
    asked = 1e6 + np.linspace(-2, 2, 9)
    odds = found.predict_log_proba(asked[:, None])
    for x, row in zip(asked, odds, strict=True):
        wanted = exact_log_density(x, values[:150]) - exact_log_density(x, values[150:300])
        assert row[0] - row[1] == pytest.approx(wanted, abs=1e-9)


def exact_log_density(x: float, values) -> float:
    """Log-density of x under the normal fitted to these values, rounded only at the end."""
    mean, squares = exact_moments(values)
    variance = squares / len(values)
    return -0.5 * (np.log(float(variance)) + float((Fraction(x) - mean) ** 2 / variance))


# -- units do not matter


CHANGES = {
    "times 1e-150": lambda x: x * 1e-150,
    "times 1e150": lambda x: x * 1e150,
    "times 2^-490": lambda x: x * 2.0**-490,
    "plus 1e8": lambda x: x + 1e8,
    "times -3": lambda x: x * -3.0,
}
SLACK = {"plus 1e8": 1e-6}
"""Adding 1e8 rounds the values themselves to eight digits; the other changes keep them all."""


def two_clouds(seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(160) % 2
    return rng.normal(size=(160, 3)) + 1.5 * labels[:, None], labels


def changed(X: np.ndarray, change) -> np.ndarray:
    out = X.copy()
    out[:, 1] = change(out[:, 1])
    return out


@pytest.mark.parametrize("estimate", ["ml", "mean", "predictive"])
@pytest.mark.parametrize("name", CHANGES)
def test_probabilities_do_not_depend_on_units(name, estimate):
    X, y = two_clouds()
    other = changed(X, CHANGES[name])
    plain = sc.NaiveBayes(estimate=estimate).fit(X, y).predict_proba(X)
    moved = sc.NaiveBayes(estimate=estimate).fit(other, y).predict_proba(other)
    np.testing.assert_allclose(moved, plain, rtol=0, atol=SLACK.get(name, 1e-11))


def clustered(X: np.ndarray, **settings) -> tuple[np.ndarray, np.ndarray]:
    mixture = sc.Mixture(2, n_init=4, random_state=1, **settings).fit(X)
    return mixture.predict(X), mixture.predict_proba(X)


@pytest.mark.parametrize("estimate", ["ml", "mean"])
@pytest.mark.parametrize("name", CHANGES)
def test_clusters_do_not_depend_on_units(name, estimate):
    """To the tolerance asked of EM; a column turned round has other starts, which end in the same place."""
    X, _ = two_clouds()
    (plain, plain_chances), (moved, moved_chances) = (
        clustered(table, estimate=estimate, tol=1e-10) for table in (X, changed(X, CHANGES[name]))
    )
    assert (moved == plain).all()
    np.testing.assert_allclose(moved_chances, plain_chances, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", sorted(CHANGES.keys() - {"times -3"}))
def test_every_step_of_em_is_the_same_in_other_units(name):
    X, _ = two_clouds()
    steps = {"estimate": "ml", "tol": 0, "max_iter": 25, "accelerate": False}
    _, plain = clustered(X, **steps)
    _, moved = clustered(changed(X, CHANGES[name]), **steps)
    np.testing.assert_allclose(moved, plain, rtol=0, atol=SLACK.get(name, 1e-10))


@pytest.mark.parametrize("factor", [2.0**-490, 2.0**490])
def test_em_stops_at_the_same_step_in_other_units(factor):
    """The log-likelihood of a table in other units is another number; when to stop must not depend on it."""
    X, _ = two_clouds()
    one, other = (sc.Mixture(2, n_init=1, random_state=1).fit(X * [1, f, 1]) for f in (1.0, factor))
    assert one.n_iter_ == other.n_iter_
    assert other.log_likelihood_ == pytest.approx(one.log_likelihood_ - len(X) * np.log(factor), rel=1e-12)


@pytest.mark.parametrize("name", CHANGES)
def test_a_correlated_block_does_not_depend_on_units(name):
    X, y = two_clouds()
    other, kinds = changed(X, CHANGES[name]), {(0, 1, 2): "multinormal"}
    plain = sc.NaiveBayes(kinds=kinds, estimate="ml").fit(X, y).predict_proba(X)
    moved = sc.NaiveBayes(kinds=kinds, estimate="ml").fit(other, y).predict_proba(other)
    np.testing.assert_allclose(moved, plain, rtol=0, atol=SLACK.get(name, 1e-9))
