"""Laws of scale: a column in other units, rows that weigh more or less, numbers far out; nothing but units changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.evaluate.scores import cross_validate
from softcount.learn.record import Plan
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import open_table

ROWS = 60
G = np.arange(ROWS) % 2
RNG = np.random.default_rng(0)
X = {"normal": RNG.normal(4.0 * G), "student": RNG.standard_t(3, ROWS) + 6.0 * G}
POWERS = [-1010, -700, 530, 660, 1000]
"""Of two: 1e-304, 1e-211, 1e160, 1e199, 1e301."""


@pytest.mark.parametrize("family", X)
@pytest.mark.parametrize("estimate", ["mean", "predictive", "ml"])
@pytest.mark.parametrize("power", POWERS)
def test_another_unit_changes_densities_by_the_unit_and_memberships_not_at_all(family, estimate, power):
    plain, other = {"x": X[family]}, {"x": np.ldexp(X[family], power)}
    one, same = (sc.NaiveBayes({"x": family}, estimate=estimate).fit(x, G) for x in (plain, other))
    np.testing.assert_allclose(same.predict_log_proba(other), one.predict_log_proba(plain), atol=1e-11)
    shift = power * np.log(2.0)
    np.testing.assert_allclose(same.score_samples(other) + shift, one.score_samples(plain), atol=1e-10)
    np.testing.assert_allclose(same.anomaly_score(other), one.anomaly_score(plain), atol=1e-10)
    for q in (0.05, 0.5, 0.95):
        assert same.query("x").quantile(q) == pytest.approx(np.ldexp(one.query("x").quantile(q), power), rel=1e-9)
    one, same = (
        sc.Mixture(2, {"x": family}, estimate=estimate, random_state=0, n_init=3).fit(x) for x in (plain, other)
    )
    np.testing.assert_allclose(same.predict_proba(other), one.predict_proba(plain), atol=1e-6)


@pytest.mark.parametrize("family", X)
def test_the_smallest_numbers_there_are_tell_classes_apart(family):
    """Whole multiples of 5e-324 beside the same whole numbers."""
    whole = np.round(4 * X[family])
    plain, tiny = {"x": whole}, {"x": whole * 5e-324}
    one, same = (sc.NaiveBayes({"x": family}, tol=1e-13).fit(x, G) for x in (plain, tiny))
    np.testing.assert_allclose(same.predict_proba(tiny), one.predict_proba(plain), atol=1e-6)
    one, same = (sc.Mixture(2, {"x": family}, tol=1e-13, random_state=0).fit(x) for x in (plain, tiny))
    np.testing.assert_allclose(same.predict_proba(tiny), one.predict_proba(plain), atol=1e-6)


@pytest.mark.parametrize("family", X)
def test_the_smallest_and_the_largest_in_one_column(family):
    both = {"x": np.concatenate([X[family] * 5e-322, X[family] * 1e200])}
    y = np.repeat([0, 1], ROWS)
    assert np.isfinite(sc.NaiveBayes({"x": family}).fit(both, y).predict_proba(both)).all()
    found = sc.Mixture(2, {"x": family}, random_state=0).fit(both)
    assert np.isfinite(found.predict_proba(both)).all() and np.isfinite(found.score(both))


@pytest.mark.parametrize("power", [520, 700, 1000])
@pytest.mark.parametrize("late", [False, True])
def test_a_few_rows_far_out_are_counted_wherever_they_stand(power, late):
    """The same as rows far out at 1e30, in other units; also where all the first rows lie close together."""
    rows = 3_000 if late else ROWS
    rng = np.random.default_rng(1)
    y = np.arange(rows) % 2
    x = rng.normal(3.0 * y)
    few = slice(rows - 40, None)

    def spread(by):
        far = x.copy()
        far[few] = np.ldexp(1.0 + np.abs(far[few]), by)
        return far[:, None]

    one, same = (sc.NaiveBayes("normal").fit(spread(by), y) for by in (100, power))
    near = slice(0, rows - 40)
    np.testing.assert_allclose(same.predict_proba(spread(power)), one.predict_proba(spread(100)), atol=1e-9)
    assert np.isfinite(same.score_samples(spread(power)[near])).all()
    if not late:
        found = sc.Mixture(2, "normal", random_state=0).fit(spread(power))
        assert (
            found.predict(spread(power)).tolist()
            == sc.Mixture(2, "normal", random_state=0).fit(spread(100)).predict(spread(100)).tolist()
        )


def test_folds_count_rows_far_out_too():
    y = np.arange(3_000) % 2
    x = np.random.default_rng(1).normal(3.0 * y)
    x[-40:] = 1e250 * (1 + y[-40:])
    table = open_table({"x": x, "y": y.astype(str)}, kinds={"x": "real"}, target="y")
    with Threads(1) as threads:
        found = cross_validate(table, Plan(declared=read_kinds({"x": "normal"}), target="y"), threads)
    assert np.isfinite(found.log_loss)


@pytest.mark.parametrize("factor", [2.0**-900, 1e-200, 1e-10, 1e-4, 1e8, 1e100])
def test_weights_times_a_constant_leave_maximum_likelihood_where_it_is(factor):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(ROWS, 2)) + 5.0 * G[:, None]
    weights, labels = rng.uniform(0.5, 2.0, ROWS), [None if i % 5 else int(G[i]) for i in range(ROWS)]
    one, same = (
        sc.GaussianMixture(2, random_state=0, n_init=3).fit(rows, sample_weight=weights * w) for w in (1.0, factor)
    )
    assert same.notes_ == one.notes_ == []
    np.testing.assert_allclose(same.means_, one.means_, rtol=1e-6)
    np.testing.assert_allclose(same.covariances_, one.covariances_, rtol=1e-5)
    assert same.log_likelihood_ == pytest.approx(one.log_likelihood_ * factor, rel=1e-9)
    assert same.trace_[-1] == pytest.approx(same.log_likelihood_)
    assert same.fitted_.n_rows == pytest.approx(weights.sum() * factor)
    one, same = (
        sc.NaiveBayes("normal", estimate="ml").fit(rows, labels, sample_weight=weights * w) for w in (1.0, factor)
    )
    np.testing.assert_allclose(same.params_[0]["mean"], one.params_[0]["mean"], rtol=1e-6)
    assert same.class_count_ == pytest.approx(one.class_count_ * factor)


@pytest.mark.parametrize("how", ["mean", "ml", "predictive"])
def test_waiting_times_are_counted_in_any_unit_or_refused_by_name(how: str) -> None:
    waits, names = np.random.default_rng(0).exponential(size=60) * np.tile([1.0, 5.0], 30), ["u", "v"] * 30

    def told(unit: float) -> np.ndarray:
        frame = pd.DataFrame({"wait": waits * unit})
        return sc.NaiveBayes(kinds={"wait": "exponential"}, estimate=how).fit(frame, names).predict_proba(frame)

    for unit in (1e-293, 1e-100, 1e100, 1e300):
        np.testing.assert_allclose(told(unit), told(1.0), atol=1e-12)
    for unit in (1e-296, 1e-304, 1e-310):
        with pytest.raises(DataError, match=r"column 'wait' has waiting times of .* multiply the column"):
            told(unit)
