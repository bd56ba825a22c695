"""KernelDensity: the published figures, SciPy's, plain loops, parts that add, and input that is wrong."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.stats import gaussian_kde, kstest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity as Peer
from sklearn.utils.estimator_checks import check_estimator

import softcount as sc
from densities.plain_densities import plain_density, plain_log_gaussian
from softcount.densities.kernels import KERNELS
from softcount.errors import DataError
from softcount.estimators import densities

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
SIZES = pytest.mark.parametrize("n", [60, 6000], ids=["summed", "binned"])


def humps(n, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, rng.normal(-4, 0.4, n), rng.normal(1, 1.5, n))


@pytest.mark.parametrize(
    "x, density",
    [
        (1.5, 0.1592779748), (2, 0.3415402183), (3, 0.0642488566),
        (3.5, 0.1590236487), (4.5, 0.4698534959), (5, 0.2141262696),
    ],
)  # fmt: skip
def test_the_published_densities_of_the_eruptions(data, x, density):
    eruptions = pd.read_csv(data("r_datasets/faithful.csv"))["eruptions"]
    model = sc.KernelDensity(bandwidth="silverman").fit(eruptions)
    assert model.bandwidth_ == pytest.approx(0.3347770345, abs=5e-11)
    assert np.exp(model.score_samples([x])[0]) == pytest.approx(density, abs=5e-11)


@SIZES
@pytest.mark.parametrize("exact", [False, True])
def test_scipys_figures_where_the_settings_mean_the_same(n, exact):
    values = humps(n)
    weights = np.random.default_rng(1).integers(1, 4, n)
    peer = gaussian_kde(values)
    queries = np.linspace(-7, 8, 97)
    model = sc.KernelDensity(bandwidth="scott", exact=exact).fit(values)
    peak = peer(queries).max()
    np.testing.assert_allclose(np.exp(model.score_samples(queries)), peer(queries), atol=1e-6 * peak)
    np.testing.assert_allclose(model.integrate(-1.0, 2.0), peer.integrate_box_1d(-1.0, 2.0), atol=1e-6)
    h = model.bandwidth_
    weighed = sc.KernelDensity(bandwidth=h, exact=exact).fit(values, sample_weight=weights)
    peer = gaussian_kde(np.repeat(values, weights), h / np.repeat(values, weights).std(ddof=1))
    np.testing.assert_allclose(np.exp(weighed.score_samples(queries)), peer(queries), atol=1e-6 * peak)
    assert model.error_bound_ == 0 if exact or n < 4096 else 0 < model.error_bound_ < 1e-6


@pytest.mark.parametrize(
    "kernel, theirs",
    [
        ("gaussian", "gaussian"), ("epanechnikov", "epanechnikov"), ("uniform", "tophat"), ("triangular", "linear"),
        ("cosine", "cosine"),
    ],
)  # fmt: skip
def test_scikit_learns_figures_at_a_bandwidth(kernel, theirs):
    columns = 2 if kernel == "gaussian" else 1  # its other kernels of two columns are round, ours are products
    rows = np.random.default_rng(2).normal(size=(80, columns))
    asked = np.random.default_rng(3).normal(size=(50, columns))
    peer = Peer(kernel=theirs, bandwidth=0.4).fit(rows).score_samples(asked)
    np.testing.assert_allclose(sc.KernelDensity(kernel, 0.4).fit(rows).score_samples(asked), peer, rtol=1e-9)


@pytest.mark.parametrize("kernel, n", [*((kernel, 60) for kernel in KERNELS), ("gaussian", 6000), ("logistic", 6000)])
def test_it_is_a_density_and_its_cdf_is_its_integral(kernel, n):
    model = sc.KernelDensity(kernel, 0.7).fit(humps(n))
    fine = np.linspace(-12, 12, 4801)
    density = np.exp(model.score_samples(fine))
    steps = (density[1:] + density[:-1]) / 2 * np.diff(fine)
    below = model.cdf(fine)
    np.testing.assert_allclose(below[1:] - below[0], np.cumsum(steps), atol=1e-3 if kernel == "uniform" else 1e-5)
    assert model.integrate(-np.inf, np.inf) == pytest.approx(1, abs=1e-9)
    assert model.integrate(2, 1) == -model.integrate(1, 2)


@pytest.mark.parametrize("kernel, n", [("gaussian", 60), ("gaussian", 6000), ("uniform", 60), ("logistic", 6000)])
@pytest.mark.parametrize("bounds", [None, (-6, None), (None, 9), (-6, 9)])
def test_quantiles_undo_the_cdf_and_draws_follow_it(kernel, n, bounds):
    model = sc.KernelDensity(kernel, 0.5, bounds=bounds).fit(np.clip(humps(n), -6, 9))
    shares = np.array([1e-4, 0.01, 0.3, 0.5, 0.77, 0.999])
    np.testing.assert_allclose(model.cdf(model.quantile(shares)), shares, atol=1e-9)
    assert model.quantile(0.3) == pytest.approx(model.quantile(shares)[2], rel=1e-12)
    assert model.cdf([model.quantile(0.0)])[0] <= 1e-9 and model.cdf([model.quantile(1.0)])[0] >= 1 - 1e-9
    drawn = model.sample(2000, random_state=5)
    assert drawn.shape == (2000,) and kstest(drawn, model.cdf).pvalue > 1e-4
    np.testing.assert_array_equal(drawn, model.sample(2000, random_state=5))


ENDS = pytest.mark.parametrize("bounds, h", [((0, None), 0.5), ((None, 3), 0.5), ((0, 3), 0.5), ((0, 3), 4.0)])


def mirrors(bounds):
    """Signs and shifts of every image of a query: of two ends, mirrors of mirrors."""
    low, high = bounds
    if low is not None and high is not None:
        return [(sign, 6.0 * turn) for sign in (1, -1) for turn in range(-40, 41)]
    return [(1, 0.0), (-1, 2.0 * (high if low is None else low))]


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "logistic"])
@ENDS
def test_ends_fold_back_what_lies_beyond(kernel, bounds, h):
    values = 3 * np.random.default_rng(6).beta(0.7, 2, 40)
    model = sc.KernelDensity(kernel, h, bounds=bounds).fit(values)
    queries = np.linspace(0, 3, 7)
    raw = sum(plain_density(values, np.ones(40), s * queries + c, KERNELS[kernel], h) for s, c in mirrors(bounds))
    np.testing.assert_allclose(np.exp(model.score_samples(queries)), raw, rtol=1e-9)
    grid = np.linspace(0, 3, 3001)
    inside = np.trapezoid(np.exp(model.score_samples(grid)), grid)
    assert inside == pytest.approx(model.integrate(0, 3), abs=1e-5)
    assert model.integrate(-np.inf, np.inf) == pytest.approx(1, abs=1e-9)
    drawn = model.sample(500, random_state=0)
    for end, beyond, outside in ((bounds[0], -0.01, drawn < 0), (bounds[1], 3.01, drawn > 3)):
        assert end is None or (model.score_samples([beyond])[0] == -np.inf and not outside.any())


@pytest.mark.parametrize("kernel", ["gaussian", "logistic"])
@ENDS
def test_binned_densities_fold_back_the_same(kernel, bounds, h):
    values = 3 * np.random.default_rng(6).beta(0.7, 2, 5000)
    binned, exact = (sc.KernelDensity(kernel, h / 4, exact, bounds).fit(values) for exact in (False, True))
    queries = np.linspace(-1, 4, 41)
    density = np.exp(exact.score_samples(queries))
    near = binned.error_bound_ * np.exp(binned.score_samples(np.linspace(0, 3, 3001))).max()
    np.testing.assert_allclose(np.exp(binned.score_samples(queries)), density, rtol=1e-10, atol=near)
    np.testing.assert_allclose(binned.cdf(queries), exact.cdf(queries), atol=1e-6)


@SIZES
def test_far_tails_are_those_of_plain_loops(n):
    values = humps(n)
    model = sc.KernelDensity(bandwidth=0.25).fit(values)
    asked = np.array([values.max() + 20 * 0.25, values.min() - 20 * 0.25, 60.0, -4e5])
    np.testing.assert_allclose(
        model.score_samples(asked), plain_log_gaussian(values, np.ones(n), asked, 0.25), rtol=1e-12
    )


# Parts, weights, order, holes


@pytest.mark.parametrize("kernel, n", [("gaussian", 60), ("gaussian", 6000), ("triangular", 6000), ("cosine", 60)])
def test_halves_add_to_the_whole_in_every_way(kernel, n):
    values = humps(n)
    queries = np.linspace(-7, 8, 50)
    whole = sc.KernelDensity(kernel).fit(values)
    merged = sc.KernelDensity(kernel).fit(values[: n // 3]).merge(sc.KernelDensity(kernel, 9.0).fit(values[n // 3 :]))
    streamed = sc.KernelDensity(kernel)
    for part in np.array_split(np.random.default_rng(7).permutation(values), 4):
        streamed.partial_fit(part)
    for other in (merged, streamed):
        assert other.bandwidth_ == pytest.approx(whole.bandwidth_, rel=1e-12)
        np.testing.assert_allclose(other.score_samples(queries), whole.score_samples(queries), rtol=1e-9, atol=1e-12)


def test_very_many_rows_become_nodes_that_add(monkeypatch):
    values = humps(40_000)
    whole = sc.KernelDensity(bandwidth="silverman").fit(values)
    monkeypatch.setattr(densities, "MOST_POINTS", 5000)
    parts = [sc.KernelDensity(bandwidth="silverman").fit(part) for part in np.array_split(values, 4)]
    left = parts[0].merge(parts[1]).merge(parts[2].merge(parts[3]))
    streamed = sc.KernelDensity(bandwidth="silverman")
    for part in np.array_split(values, 9):
        streamed.partial_fit(part)
    queries = np.linspace(-7, 8, 300)
    peak = np.exp(whole.score_samples(queries)).max()
    for model in (left, streamed):
        assert len(model.rows_.values) > 5000 and model.rows_.total == pytest.approx(40_000, rel=1e-12)
        assert model.rows_.level is not None and model.error_bound_ < 1e-6
        assert model.bandwidth_ == pytest.approx(whole.bandwidth_, rel=1e-4)
    fixed = [sc.KernelDensity(bandwidth=0.3).set_params() for _ in range(2)]
    for model, source in zip(fixed, (left, streamed), strict=True):
        model.partial_fit(values[:1])
        model._take(source.rows_)
    exact = np.exp(sc.KernelDensity(bandwidth=0.3, exact=True).fit(values).score_samples(queries))
    for model in fixed:
        np.testing.assert_allclose(np.exp(model.score_samples(queries)), exact, atol=model.error_bound_ * peak)
    for settings in ({"exact": True}, {"kernel": "biweight"}):
        every = (
            sc.KernelDensity(**settings, bandwidth=0.3).fit(values[:9000]).merge(sc.KernelDensity().fit(values[9000:]))
        )
        assert len(every.rows_.values) == 40_000 and every.error_bound_ == 0
        late = sc.KernelDensity(**settings, bandwidth=0.3).fit(values[:9]).merge(left)
        assert late.error_bound_ == np.inf if "kernel" in settings else 0 < late.error_bound_ < 1e-6
    narrow = sc.KernelDensity(bandwidth=1e-5).partial_fit(values[:1])
    narrow._take(left.rows_)
    assert narrow.error_bound_ > 1e-3  # the nodes are too far apart for it, and it says so


@pytest.mark.parametrize("kernel, n", [("gaussian", 60), ("logistic", 9000), ("triangular", 6000), ("cosine", 60)])
def test_a_weight_of_two_is_the_row_twice_and_none_is_no_row(kernel, n):
    values = humps(n)
    weights = np.random.default_rng(8).integers(0, 3, n)
    queries = np.linspace(-7, 8, 50)
    weighed = sc.KernelDensity(kernel, "silverman").fit(values, sample_weight=weights)
    repeated = sc.KernelDensity(kernel, "silverman").fit(np.repeat(values, weights))
    assert weighed.bandwidth_ == pytest.approx(repeated.bandwidth_, rel=1e-12)
    np.testing.assert_allclose(weighed.score_samples(queries), repeated.score_samples(queries), rtol=1e-8, atol=1e-8)


def test_order_does_not_change_a_bit_of_a_binned_density():
    values = humps(6000)
    queries = np.linspace(-6, 6, 99)
    one = sc.KernelDensity(bandwidth=0.3).fit(values).score_samples(queries)
    np.testing.assert_array_equal(sc.KernelDensity(bandwidth=0.3).fit(values[::-1].copy()).score_samples(queries), one)


@SIZES
def test_the_cdf_of_a_missing_value_is_missing(n):
    for model in (sc.KernelDensity().fit(humps(n)), sc.KernelDensity(bounds=(-20, None)).fit(humps(n))):
        found = model.cdf([0.0, np.nan])
        assert 0 < found[0] < 1 and np.isnan(found[1]) and np.isnan(model.integrate(np.nan, 1.0))


@SIZES
def test_missing_values_are_no_evidence(n):
    values = humps(n)
    holes = np.insert(values, [3, n // 2], np.nan)
    plain, holed = sc.KernelDensity().fit(values), sc.KernelDensity().fit(holes, sample_weight=None)
    assert holed.bandwidth_ == plain.bandwidth_
    found = holed.score_samples([0.5, np.nan, 2.0])
    np.testing.assert_array_equal(found[[0, 2]], plain.score_samples([0.5, 2.0]))
    assert found[1] == 0


def test_a_model_follows_the_units():
    values = humps(300)
    for rule in ("silverman", "isj", "sj"):
        usual, tiny = sc.KernelDensity(bandwidth=rule).fit(values), sc.KernelDensity(bandwidth=rule).fit(values * 1e-4)
        shifted = tiny.score_samples(np.array([1e-4, -4e-4])) + np.log(1e-4)
        np.testing.assert_allclose(shifted, usual.score_samples([1.0, -4.0]), rtol=1e-5)


# Several columns


@every_kernel
def test_several_columns_are_a_product_of_kernels_at_each_row(kernel):
    rng = np.random.default_rng(9)
    rows, weights = rng.normal(size=(40, 3)), rng.integers(1, 3, 40).astype(float)
    widths = [0.9, 1.4, 2.0]
    model = sc.KernelDensity(kernel, widths).fit(rows, sample_weight=weights)
    asked = rng.normal(size=(20, 3))
    shape = KERNELS[kernel]
    expected = [
        sum(w * np.prod([shape.pdf((a[j] - row[j]) / widths[j]) / widths[j] for j in range(3)])
            for row, w in zip(rows, weights, strict=True)) / weights.sum()
        for a in asked
    ]  # fmt: skip
    np.testing.assert_allclose(np.exp(model.score_samples(asked)), expected, rtol=1e-9, atol=1e-15)
    below = [
        sum(w * np.prod([shape.cdf((a[j] - row[j]) / widths[j]) for j in range(3)])
            for row, w in zip(rows, weights, strict=True)) / weights.sum()
        for a in asked
    ]  # fmt: skip
    np.testing.assert_allclose(model.cdf(asked), below, atol=1e-9)
    assert model.integrate(-np.inf, np.inf) == pytest.approx(1)
    assert model.sample(7, random_state=0).shape == (7, 3)
    holed = asked.copy()
    holed[:, 1] = np.nan
    two = sc.KernelDensity(kernel, [0.9, 2.0]).fit(rows[:, [0, 2]], sample_weight=weights)
    np.testing.assert_allclose(model.score_samples(holed), two.score_samples(asked[:, [0, 2]]), rtol=1e-9)


def test_several_columns_have_ends_and_merge():
    rng = np.random.default_rng(10)
    rows = np.abs(rng.normal(size=(300, 2)))
    model = sc.KernelDensity(bounds=[(0, None), (None, None)]).fit(rows)
    assert model.bandwidth_.shape == (2,)
    assert model.integrate([0, -np.inf], np.inf) == pytest.approx(1)
    assert model.sample(500, 0)[:, 0].min() >= 0 > model.sample(500, 0)[:, 1].min()
    assert model.score_samples([[-0.1, 1.0]])[0] == -np.inf
    merged = clone(model).fit(rows[:100]).merge(clone(model).fit(rows[100:]))
    np.testing.assert_allclose(merged.score_samples(rows[:9]), model.score_samples(rows[:9]), rtol=1e-9)
    with pytest.raises(DataError, match="quantile is for one column"):
        model.quantile(0.5)


# What columns come as, and scikit-learn's habits


@pytest.mark.parametrize(
    "column",
    [list, tuple, pd.Series, pl.Series, pa.array, lambda x: pa.chunked_array([x[:9], x[9:]]), lambda x: x[:, None],
     lambda x: pd.DataFrame({"a": x}), lambda x: pd.Series(x, dtype="Float64"), lambda x: x.astype(object),
     lambda x: pl.DataFrame({"a": x}), lambda x: pa.table({"a": x})],
)  # fmt: skip
def test_a_column_may_come_in_many_ways(column):
    values = humps(50)
    expected = sc.KernelDensity().fit(values).score_samples(values)
    given = column(values)
    np.testing.assert_array_equal(sc.KernelDensity().fit(given).score_samples(given), expected)


@pytest.mark.parametrize("column", [lambda x: x, pd.Series, pa.array, lambda x: pd.Series(x, dtype="Int64")])
def test_whole_numbers_with_holes_are_a_column_too(column):
    model = sc.KernelDensity(bandwidth=1.0).fit(column([1, 2, None, 4]))
    np.testing.assert_allclose(
        model.score_samples([2]), sc.KernelDensity(bandwidth=1.0).fit([1, 2, 4]).score_samples([2])
    )


def test_every_check_of_scikit_learn_passes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(check_estimator(sc.KernelDensity(), on_fail="raise")) > 30


def test_two_plain_columns_are_no_density_and_its_target():
    with pytest.raises(DataError, match=r"takes no y. For a density of both: fit\(np.column_stack"):
        sc.KernelDensity().fit([1.0, 2.0, 4.0], [2.0, 2.0, 1.0])


@SIZES
def test_it_clones_pickles_and_is_searched(n):
    model = sc.KernelDensity(bounds=(-99, None)).fit(humps(n))
    model.score_samples([0.0])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.score_samples([0.0, 1.0]), model.score_samples([0.0, 1.0]))
    with pytest.raises(NotFittedError):
        clone(model).score_samples([0.0])
    found = GridSearchCV(sc.KernelDensity(), {"bandwidth": [0.01, 0.3, 20.0]}).fit(humps(n)[:, None])
    assert found.best_params_ == {"bandwidth": 0.3}


# Wrong input


@pytest.mark.parametrize(
    "settings, X, problem",
    [
        ({"bandwidth": 0}, [1.0, 2.0], "bandwidth must be a number above 0"),
        ({"bandwidth": -2.0}, [1.0, 2.0], "bandwidth must be a number above 0"),
        ({"bandwidth": "best"}, [1.0, 2.0], "no bandwidth rule 'best'"),
        ({"bandwidth": [1.0]}, np.ones((3, 2)), "a list of 2"),
        ({"kernel": "round"}, [1.0, 2.0], "no kernel 'round'"),
        ({}, [3.0, 3.0, 3.0], "all values equal 3"),
        ({}, [3.0], "n_samples=1"),
        ({}, [1e308, -1e308, 0.0], "too close together or too far apart"),
        ({}, [0.0, 5e-324, 1e-323], "too close together or too far apart"),
        ({}, [], "no row"),
        ({}, [np.nan, np.nan], "no row with a value"),
        ({}, [1.0, np.inf, 2.0], "column 1, row 2 holds inf"),
        ({}, pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, -np.inf]}), "column 'b', row 2 holds -inf"),
        ({}, ["a", "b"], "texts, and a density needs numbers"),
        ({}, pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])), "needs numbers"),
        ({"bounds": (0, None)}, [1.0, -2.0], "holds -2, outside its bounds 0"),
        ({"bounds": (3, 1)}, [1.0, 2.0], "a lower and a higher number"),
        ({"bounds": 5}, [1.0, 2.0], "bounds must be a pair"),
        ({"bounds": ("a", None)}, [1.0, 2.0], "must be a number or None"),
        ({"bounds": (0, 1)}, np.ones((3, 2)), "bounds must be a pair"),
        ({"bounds": (0, 3), "bandwidth": 1e6}, [1.0, 2.0], "more than 100 times"),
    ],
)
def test_what_cannot_be_learned_from_is_named(settings, X, problem):
    with pytest.raises(DataError, match=problem):
        sc.KernelDensity(**settings).fit(X).score_samples(X)


def test_questions_that_make_no_sense_are_refused():
    model = sc.KernelDensity().fit(humps(50))
    for shares in (-0.1, [0.5, 1.5], np.nan):
        with pytest.raises(DataError, match="between 0 and 1"):
            model.quantile(shares)
    with pytest.raises(DataError, match="n_samples"):
        model.sample(0)
    named = [sc.KernelDensity().fit(pd.DataFrame({name: humps(50)})) for name in "ab"]
    with pytest.raises(DataError, match=r"\['a'\] and \['b'\] cannot be merged"):
        named[0].merge(named[1])
    with pytest.raises(DataError, match="cannot be merged"):
        model.merge(sc.KernelDensity().fit(np.random.default_rng(0).normal(size=(9, 2))))
    with pytest.raises(ValueError, match="2 features"):
        model.score_samples(np.ones((3, 2)))
    with pytest.raises(DataError, match="weight of row 2 is -1"):
        sc.KernelDensity().fit([1.0, 2.0], sample_weight=[1.0, -1.0])
    with pytest.raises(DataError, match=r"too far apart.*exact=True"):
        sc.KernelDensity(bandwidth=1e-9).fit(np.append(humps(6000), 1e300)).score_samples([0.0])
    assert sc.KernelDensity(bandwidth=1.0).fit([7.0, 7.0]).score_samples([7.0])[0] == pytest.approx(-0.918939, abs=1e-6)


KDEPY = {
    "gaussian": [0.0001510459, 0.0996446746, 0.4558529745, 0.0399796411, 0.1399671205, 0.5545439073, 0.1770716652],
    "epanechnikov": [0.0, 0.1256071345, 0.4500438275, 0.0405679868, 0.1357008658, 0.5488838848, 0.1779653148],
    "uniform": [0.0, 0.1408819718, 0.4439111186, 0.0398722562, 0.1408819718, 0.5449208342, 0.1780960775],
    "triangular": [0.0, 0.1158999424, 0.4482621907, 0.0402957847, 0.1376944916, 0.5545570506, 0.1762675149],
    "biweight": [0.0, 0.1161877015, 0.4514614187, 0.0398952876, 0.1373223166, 0.5501837601, 0.1779485755],
    "triweight": [0.0, 0.1121104348, 0.4523738519, 0.0397728261, 0.1381126402, 0.5511823731, 0.1779915132],
    "cosine": [0.0, 0.1225461984, 0.450223175, 0.0404935302, 0.1362034299, 0.5496856277, 0.1777914411],
}
"""KDEpy 1.1.12, `NaiveKDE(kernel, bw=0.2).fit(eruptions, weights=1, 2, 3, 1, 2, 3, ...)` at seven places.

Its `bw` is the standard deviation of the kernel, ours the scale in the kernel's formula.
"""


@pytest.mark.parametrize("kernel", KDEPY)
def test_kdepys_figures_where_the_settings_mean_the_same(data, kernel):
    eruptions = pd.read_csv(data("r_datasets/faithful.csv"))["eruptions"].to_numpy()
    weights = np.arange(len(eruptions)) % 3 + 1.0
    h = 0.2 / np.sqrt(KERNELS[kernel].variance)
    model = sc.KernelDensity(kernel, bandwidth=h).fit(eruptions, sample_weight=weights)
    found = np.exp(model.score_samples([1.0, 1.5, 2.0, 3.0, 3.5, 4.5, 5.0]))
    np.testing.assert_allclose(found, KDEPY[kernel], atol=1e-9)


@pytest.mark.parametrize("make", [sc.KernelDensity, sc.Histogram])
def test_draws_come_as_the_rows_came(make: type) -> None:
    frame = pd.DataFrame({"u": [1.0, 2.0, 4.0, 3.0]})
    drawn = make().fit(frame).sample(3, random_state=0)
    assert isinstance(drawn, pd.DataFrame) and list(drawn.columns) == ["u"]
    assert isinstance(make().fit(pl.from_pandas(frame)).sample(3), pl.DataFrame)
    same = make().fit(frame.to_numpy()).sample(3, random_state=0)
    np.testing.assert_array_equal(drawn.to_numpy(), same)
    np.testing.assert_array_equal(make().fit(frame["u"]).sample(3, random_state=0), same[:, 0])
