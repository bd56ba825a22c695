"""Densities ranked by rows held out: what made the rows wins, and no density profits from rounding."""

import numpy as np
import pytest
from scipy import stats

import softcount as sc
from softcount.evaluate import density_ranking
from softcount.evaluate.density_ranking import rank_densities, rounding_step

RNG = np.random.default_rng
MADE = {
    "lognormal": lambda: np.exp(RNG(0).normal(1, 1, 200)),
    "student": lambda: RNG(2).standard_t(1.5, 200),
    "poisson": lambda: RNG(5).poisson(40, 200).astype(float),
    "2 normals": lambda: np.concatenate([RNG(4).normal(0, 1, 100), RNG(5).normal(8, 0.5, 100)]),
}


@pytest.mark.parametrize("name", MADE)
def test_what_made_the_rows_is_best_or_next_to_it(name):
    found = rank_densities(MADE[name]())
    own = next(density for density in found.densities if density.name == name)
    assert own.behind <= 2 * own.error + 0.003
    heights = [density.log_likelihood for density in found.densities]
    assert heights == sorted(heights, reverse=True) and found.densities[0].behind == 0


def test_a_held_out_row_is_scored_by_the_other_folds():
    values = RNG(0).normal(2, 3, 100)
    folds = RNG(0).permutation(100) % 5
    expected = []
    for fold in range(5):
        rest, here = values[folds != fold], values[folds == fold]
        model = sc.NaiveBayes(kinds={"x": "normal"}).fit({"x": rest}, ["a"] * len(rest))
        expected += model.score_samples({"x": here}).tolist()
    found = next(density for density in rank_densities(values).densities if density.name == "normal")
    assert found.log_likelihood == pytest.approx(np.mean(expected), abs=1e-6)


def test_a_poisson_density_is_its_probability_and_twice_that_at_zero():
    """What is written 0 was from 0 to half a step."""
    values = RNG(3).poisson(3.0, 300).astype(float)
    folds = RNG(0).permutation(300) % 5
    logs = np.zeros(300)
    for fold in range(5):
        rest = values[folds != fold]
        rate = (rest.sum() + rest.mean()) / (len(rest) + 1)  # one prior row of the mean
        logs[folds == fold] = stats.poisson.logpmf(values[folds == fold], rate)
    logs[values == 0] += np.log(2)
    found = next(density for density in rank_densities(values).densities if density.name == "poisson")
    assert found.log_likelihood == pytest.approx(logs.mean(), abs=1e-4)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_densities_are_densities(scale):
    """Each integrates to one: bins and kernels keep about half a percent for what lies far outside."""
    values = np.exp(RNG(0).normal(0, 0.4, 200)) * scale
    tail = np.geomspace(60, 1e6, 20_001)
    x = np.concatenate([-tail[::-1], np.linspace(-60, 60, 480_001), tail]) * scale
    for density in rank_densities(values).densities:
        heights = np.exp(density.fits[None].log_density(x))
        assert np.trapezoid(heights, x) == pytest.approx(1.0, abs=0.004), density.name


def test_counts_add_up_to_one_over_all_counts():
    values = RNG(3).poisson(3.0, 300).astype(float)
    for density in rank_densities(values).densities:
        shares = np.exp(density.fits[None].log_density(np.arange(-60.0, 120.0)))
        if shares[59] == 0 and density.name not in ("poisson", "geometric"):
            shares[60] /= 2  # a density that ends at 0 covers half of the step around 0
        assert shares.sum() <= 1.02, density.name


def test_no_density_profits_from_rounding():
    """Four fifths of the rows are 0: a peak narrower than a cent would beat everything, and say nothing."""
    rng = RNG(0)
    values = np.where(rng.random(500) < 0.8, 0.0, np.round(np.exp(rng.normal(3, 1, 500)), 2))
    found = rank_densities(values)
    share = np.mean(values == 0)
    for density in found.densities:
        at_zero = np.exp(density.fits[None].log_density(np.zeros(1)))[0] * 0.01 / 2
        assert at_zero <= 1.0 + 1e-9, density.name
        assert density.log_likelihood <= share * np.log(share / 0.005) + 1.0
    assert "with a spike at 0" in found.best.name and "at 0" in found.best.fits[None].description


@pytest.mark.parametrize("values", [[0.1, 0.3], [1.0, 7.0, 12.0], [100.0, 2500.0], [1 / 3, 0.5], [1e18, 3e18]])
def test_the_step_of_rounding(values):
    wanted = {0.1: 0.1, 1.0: 1.0, 100.0: 100.0, 1 / 3: 0.0, 1e18: 1e6}[values[0]]
    assert rounding_step(np.array(values)) == pytest.approx(wanted)


def test_no_density_of_positive_numbers_is_finite_below_zero():
    values = RNG(0).exponential(size=300)
    found = {density.name: density.fits[None].log_density for density in rank_densities(values).densities}
    for name in ("exponential", "gamma", "lognormal"):
        assert np.isneginf(found[name](np.array([-0.01]))).all()
    assert np.exp(found["exponential"](np.array([0.02])))[0] == pytest.approx(stats.expon.pdf(0.02), abs=0.35)


def test_groups_have_densities_of_their_own():
    rng = RNG(0)
    values = np.concatenate([rng.normal(0, 1, 80), rng.normal(20, 1, 60), [3.0, 4.0], [np.nan, 5.0]])
    labels = ["a"] * 80 + ["b"] * 60 + ["few"] * 2 + ["a", None]
    found = rank_densities(values, labels)
    assert list(found.groups) == ["a", "b"] and found.left_out == {"few": 2} and found.unlabelled == 1
    assert found.rows == 140
    for density in found.densities:
        assert set(density.fits) == {"a", "b"}
    normal = next(density for density in found.densities if density.name == "normal")
    near = normal.fits["b"].log_density(np.array([20.0])) - normal.fits["a"].log_density(np.array([20.0]))
    assert near > 100


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([3.0] * 30, "all 30 values are 3, so there is no density"),
        ([1.0, 2.0, 3.0], "there are 3 values .*folds need 10"),
        ([np.nan] * 20, "there are 0 values"),
        ([1.0, np.inf] * 10, "row 2 is infinite"),
        ([1e308, -1e308, 5.0] * 5, "too far apart"),
        ([1e-320, 2e-320] * 10, "too close together"),
    ],
)
def test_what_has_no_density_is_refused_in_a_line(values, line):
    with pytest.raises(sc.DataError, match=line):
        rank_densities(values)


def test_many_rows_are_ranked_by_some_of_them(monkeypatch):
    monkeypatch.setattr(density_ranking, "SAMPLE", 60)
    found = rank_densities(RNG(0).normal(size=200), ["a"] * 150 + ["b"] * 50)
    assert found.rows == 200 and found.ranked_rows == 60
