"""Numbers counted at points: histograms, cuts and kernels beside every other kind of column."""

from __future__ import annotations

import math
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import softcount as sc
from contract.examples import EXAMPLES, LAWS
from contract.models import MIXED, close, close_counts, hidden, naive_bayes
from golden.discretise import cut_points
from softcount import families
from softcount.core.counts import Twofold
from softcount.evaluate.folds import fold_models
from softcount.families.kernel import FACTORS
from softcount.learn.record import Plan
from softcount.models.align import align_counts
from softcount.models.declare import read_kinds
from softcount.run.local import Threads
from softcount.table import open_table
from softcount.table.chunk import Split
from softcount.table.discretise import interval_places, level_groups, log_partitions, part_costs
from softcount.table.schema import MOST_POINTS, CountedPoints, points_for

pytestmark = pytest.mark.filterwarnings("ignore::softcount.errors.DataWarning")
KINDS = (
    "histogram", "kde", "cut", families.Cut("mdl"), families.Cut("width", 4), families.Cut("count", 4),
    families.Kernel("isj"), families.Histogram((-1.0, 0.0, 0.5, 9.0)),
)  # fmt: skip
every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)


def waves(rows: int, seed: int = 0, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Numbers whose classes change several times along the line."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, 10.0, rows)
    return x, (np.floor(x / 15 + rng.normal(0, 0.2, rows)).astype(int) % classes).astype(str)


# -- what rows are counted at


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.integers(1, 59), st.sampled_from([4, 16, 128]))
def test_points_of_two_tables_unite_to_those_of_both(numbers: list[float], cut: int, most: int) -> None:
    column = np.array(numbers)
    parts = [CountedPoints.of([column[:cut]], most), CountedPoints.of([column[cut:]], most)]
    whole = CountedPoints.of([column], most)
    assert parts[0].united(parts[1]) == whole == parts[1].united(parts[0])
    assert len(whole.values) <= most and (np.diff(whole.values) > 0).all()
    assert np.array_equal(np.unique(whole.places(column)), np.arange(len(whole.values)))


def test_counts_stay_small_however_many_classes_there_are() -> None:
    assert points_for(2, 30) == MOST_POINTS
    for classes, columns in ((100, 30), (1_000, 30), (5_000, 4)):
        assert classes * columns * points_for(classes, columns) <= max(1 << 21, 128 * classes * columns)
    x = np.random.default_rng(0).normal(size=(1_600, 2))
    model = sc.NaiveBayes(kinds=families.Cut("width")).fit(x, np.arange(1_600) % 800)
    assert all(model.counts_[key].shape[1] <= 1_024 for key in range(2))


@every_kind
def test_a_long_column_in_parts_is_the_column_at_once(kind: Any) -> None:
    """More different numbers than are counted apart, and parts on finer grids than the whole."""
    x, y = waves(9_000)
    x[4_500:] *= 50.0
    whole = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x}, y)
    assert whole.fitted_.schema["x"].points.step > 0
    parts = [sc.NaiveBayes(kinds={"x": kind}).fit({"x": x[s]}, y[s]) for s in (slice(0, 1_000), slice(1_000, None))]
    merged = parts[0].merge(parts[1])
    grown = sc.NaiveBayes(kinds={"x": kind})
    for start in range(0, 9_000, 3_000):
        grown.partial_fit({"x": x[start : start + 3_000]}, y[start : start + 3_000], classes=["0", "1"])
    for other in (merged, grown):
        close(other.fitted_, whole.fitted_)
        assert np.array_equal(other.predict_proba({"x": x}), whole.predict_proba({"x": x}))
        assert other.notes_ == whole.notes_


@every_kind
def test_rows_forgotten_leave_no_trace(kind: Any) -> None:
    x, y = waves(1_500)
    first = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x[:900]}, y[:900])
    both = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x}, y, sample_weight=np.tile([0.1, 0.7, 1.3], 500))
    both.forget({"x": x[900:]}, y[900:], sample_weight=np.tile([0.1, 0.7, 1.3], 200))
    again = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x[:900]}, y[:900], sample_weight=np.tile([0.1, 0.7, 1.3], 300))
    assert np.array_equal(both.params_["x"]["edges"], again.params_["x"]["edges"])
    np.testing.assert_allclose(both.predict_proba({"x": x}), again.predict_proba({"x": x}), rtol=1e-9)
    with pytest.raises(sc.DataError, match="more is to be forgotten"):
        first.forget({"x": x[900:901]}, y[900:901])


@every_kind
def test_threads_and_batches_change_no_bit(kind: Any) -> None:
    x, y = waves(70_000)
    one, other = (sc.NaiveBayes(kinds={"x": kind}, n_jobs=jobs).fit({"x": x}, y) for jobs in (1, 4))
    for name, value in one.params_["x"].items():
        assert np.array_equal(value, other.params_["x"][name])


# -- folds


@every_kind
def test_a_fold_is_cut_by_the_other_folds_alone(kind: Any) -> None:
    """The model of a fold is the fit of the others: the labels held out do not decide where numbers are cut."""
    x, y = waves(600, seed=4)
    for labels in (y, np.random.default_rng(1).permutation(y)):
        check_folds(x, labels, kind)


def check_folds(x: Any, y: np.ndarray, kind: Any) -> None:
    declared, split = read_kinds({"x": kind}), Split(3, 0)
    table = open_table({"x": x, "y": y}, target="y", kinds=declared.forced)
    with Threads(1) as threads:
        models = fold_models(table, Plan(declared=declared, prior=1.0, target="y"), threads, split)
        assert models is not None
        (chunk,) = table.chunks(threads.map)
        for found in models.answers(chunk):
            others = np.delete(np.arange(len(x)), found.rows)
            alone = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x[others]}, y[others])
            joint = found.joint - np.logaddexp.reduce(found.joint, axis=1, keepdims=True)
            np.testing.assert_allclose(joint, alone.predict_log_proba({"x": x[found.rows]}), atol=1e-9)


def test_noise_is_not_cut_and_evaluates_as_noise() -> None:
    """A cut made with the held-out labels would tell them: here nothing does."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(400, 20)), rng.choice(["a", "b"], 400)
    for rule in ("mdl", "modl"):
        model = sc.NaiveBayes(kinds=families.Cut(rule)).fit(x, y)
        assert sum(len(cuts(model, key)) for key in range(20)) <= 2


# -- cuts, against other ways to the same


def cuts(model: Any, key: Any = "x") -> np.ndarray:
    """Where a column's intervals meet."""
    edges, interval = model.params_[key]["edges"][0], model.params_[key]["interval"][0]
    return edges[1:-1][np.diff(interval) > 0]


def test_cuts_by_description_length_are_those_of_plain_loops() -> None:
    for seed in range(6):
        x, y = waves(400, seed)
        x = np.round(x) if seed % 2 else x
        model = sc.NaiveBayes(kinds={"x": families.Cut("mdl")}).fit({"x": x}, y)
        np.testing.assert_allclose(cuts(model), cut_points(x, (y == "1").astype(int)))


@LAWS
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 3)), min_size=1, max_size=11))
def test_intervals_are_the_likeliest_of_all(drawn: list[tuple[int, ...]]) -> None:
    """Every way to cut is tried, by the formula as Boullé has it."""
    counts = np.array([row for row in drawn if sum(row)], dtype=float).reshape(-1, 3)
    found = price_of_cuts(counts, interval_places(counts).tolist())
    ways = (cuts for k in range(len(counts)) for cuts in combinations(range(1, len(counts)), k))
    assert found == pytest.approx(min((price_of_cuts(counts, list(cuts)) for cuts in ways), default=0.0))


def price_of_cuts(counts: np.ndarray, cuts: list[int]) -> float:
    rows, seen = int(counts.sum()), counts[:, counts.sum(axis=0) > 0].astype(int)
    if not rows:
        return 0.0
    parts = [part.sum(axis=0).tolist() for part in np.split(seen, cuts)]
    return math.log(math.comb(rows + len(cuts), len(cuts))) + math.fsum(map(price_of_part, parts))


def price_of_part(part: list[int]) -> float:
    ways = math.factorial(sum(part)) // math.prod(map(math.factorial, part))
    return math.log(math.comb(sum(part) + len(part) - 1, len(part) - 1)) + math.log(ways)


def test_many_points_are_joined_first_and_lose_next_to_nothing() -> None:
    """Against all points at once, by the same steps without the joining."""
    x, y = waves(2_000, seed=7)
    table = pd.crosstab(x, y).to_numpy(float)
    joined = interval_places(table)
    for moved in range(len(joined)):
        for by in (-3, 3):
            other = joined.copy()
            other[moved] += by
            assert price_of_cuts(table, joined.tolist()) <= price_of_cuts(table, sorted(other.tolist())) + 1e-6


def test_ways_to_part_levels_are_stirlings_and_bells() -> None:
    np.testing.assert_allclose(np.exp(log_partitions(5, 9)), [1, 16, 41, 51, 52])
    np.testing.assert_allclose(part_costs(np.array([3.0, 2.0])), math.log(6) + math.log(10))


@pytest.mark.parametrize("classes", [2, 3])
def test_levels_that_say_the_same_of_the_classes_are_grouped(classes: int) -> None:
    rng, kinds = np.random.default_rng(classes), np.arange(30) % 4
    shares = rng.dirichlet(np.full(classes, 0.3), 4)
    table = np.array([rng.multinomial(200, shares[kind]) for kind in kinds], dtype=float)
    groups = level_groups(table)
    assert [set(groups[kinds == kind]) for kind in range(4)] == [{kind} for kind in range(4)]
    assert level_groups(rng.multinomial(50, [1 / classes] * classes, 12).astype(float)).max() == 0


def test_groups_are_named_and_folds_make_their_own() -> None:
    rng = np.random.default_rng(5)
    towns, rich = np.array([f"town {i}" for i in range(12)]), np.arange(12) % 3
    x = rng.integers(0, 12, 900)
    y = np.where(rng.random(900) < np.array([0.1, 0.5, 0.9])[rich[x]], "rich", "poor")
    model = sc.NaiveBayes(kinds={"town": "grouped"}).fit({"town": towns[x]}, y)
    groups = dict(zip(model.levels_["town"], model.params_["town"]["group"][0], strict=True))
    assert len(set(groups.values())) == 3
    assert all(groups[town] == groups[towns[i % 3]] for i, town in enumerate(towns))
    (note,) = model.notes_
    assert note.startswith("column 'town': 12 levels in 3 groups: (town ") and note.count("town ") == 12
    odds = model.predict_log_proba({"town": towns})
    np.testing.assert_allclose(odds[:3], odds[3:6])
    check_folds(towns[x], y, "grouped")
    check_folds(towns[x], rng.permutation(y), "grouped")
    parts = (slice(50), slice(50, None))
    halves = [sc.NaiveBayes(kinds={"town": "grouped"}).fit({"town": towns[x[s]]}, y[s]) for s in parts]
    merged = halves[0].merge(halves[1])
    assert np.array_equal(merged.predict_proba({"town": towns}), model.predict_proba({"town": towns}))
    assert merged.notes_ == model.notes_


def test_equal_widths_and_counts_are_of_all_rows() -> None:
    x = np.array([0.0, 1, 2, 3, 4, 5, 6, 12])
    edges = {
        rule: sc.NaiveBayes(kinds={"x": families.Cut(rule, 2)}).fit({"x": x}, ["a", "b"] * 4).params_["x"]["edges"][0]
        for rule in ("width", "count")
    }
    assert edges["width"].tolist() == [0.0, 5.5, 15.0] and edges["count"].tolist() == [0.0, 3.5, 15.0]


def test_a_histogram_has_the_bins_of_the_estimator() -> None:
    x, y = waves(800)
    for bins in ("auto", 7, ("count", 9), "fd", "mdl"):
        if isinstance(bins, str) and bins not in ("auto",):
            continue
        edges = sc.NaiveBayes(kinds={"x": families.Histogram(bins)}).fit({"x": x}, y).params_["x"]["edges"][0]
        right = sc.Histogram(bins).fit(x).edges_
        assert len(edges) == len(right)
        gaps = np.diff(np.sort(x)).max()
        assert np.abs(edges[1:-1] - right[1:-1]).max() <= gaps


# -- kernels


def test_bandwidths_are_those_of_the_estimator() -> None:
    x, y = waves(500)
    for rule in ("scott", "silverman", "isj", 2.5):
        model = sc.NaiveBayes(kinds={"x": families.Kernel(rule)}).fit({"x": x}, y)
        right = [sc.KernelDensity(bandwidth=rule).fit(x[y == name]).bandwidth_ for name in "01"]
        np.testing.assert_allclose(model.params_["x"]["bandwidth"], right, rtol=1e-6)


def test_a_bandwidth_follows_the_units() -> None:
    x, y = waves(500)
    plain, far = (sc.NaiveBayes(kinds={"x": "kde"}).fit({"x": x * unit}, y) for unit in (1.0, 2.0**20))
    np.testing.assert_allclose(far.params_["x"]["bandwidth"], plain.params_["x"]["bandwidth"] * 2.0**20)
    np.testing.assert_allclose(far.predict_proba({"x": x * 2.0**20}), plain.predict_proba({"x": x}), atol=1e-12)


def test_the_factor_of_bandwidths_is_what_leaving_rows_out_tells() -> None:
    x, y = waves(60, seed=2)
    model = sc.NaiveBayes(kinds={"x": "kde"}).fit({"x": x}, y)
    plain = [sc.KernelDensity(bandwidth="silverman").fit(x[y == name]).bandwidth_ for name in "01"]
    told = {factor: told_apart(x, y, [h * factor for h in plain]) for factor in FACTORS.tolist()}
    best = max(told, key=lambda factor: told[factor])
    np.testing.assert_allclose(model.params_["x"]["bandwidth"], np.array(plain) * best, rtol=1e-6)


def told_apart(x: np.ndarray, y: np.ndarray, widths: list[float]) -> float:
    """The log-probability of every row's class under kernels on all other rows, and a row anywhere in each class."""
    total, anywhere = 0.0, 1 / (x.max() - x.min())
    for i, own in enumerate(y):
        heights = [
            anywhere + math.fsum(bell(x[i] - other, h) for j, other in enumerate(x) if y[j] == name and j != i)
            for name, h in zip("01", widths, strict=True)
        ]
        total += math.log(heights[int(own)] / math.fsum(heights))
    return total


def bell(off: float, h: float) -> float:
    return math.exp(-0.5 * (off / h) ** 2) / (h * math.sqrt(2 * math.pi))


def posterior_by_sums(x: float, classes: list[list[float]], h: float) -> float:
    """The share of the first class: plain sums of kernels times the class shares, which are the numbers of points."""
    first, second = (math.fsum(bell(x - point, h) for point in points) for points in classes)
    return first / (first + second)


TEXTBOOK = [([-4.0, -2.5, -1.0], [0.5, 1.0, 3.0, 3.5], 1.0), ([-3.0, -2.0, 0.0], [1.0, 2.0, 4.0], 1.0)]
SCATTERED = [
    (sorted(rng.uniform(-25, -15, n)), sorted(rng.uniform(-25, -15, m)), float(rng.choice([0.4, 0.7, 1.0, 2.0])))
    for rng in map(np.random.default_rng, range(12))
    for n, m in [rng.integers(1, 8, 2)]
]


@pytest.mark.parametrize(("first", "second", "h"), TEXTBOOK + SCATTERED)
def test_the_posterior_of_a_few_points_is_that_of_plain_kernel_sums(
    first: list[float], second: list[float], h: float
) -> None:
    x, y = [*first, *second], ["a"] * len(first) + ["b"] * len(second)
    model = sc.NaiveBayes(kinds={"x": families.Kernel(h)}, estimate="ml").fit({"x": x}, y)
    grid = np.linspace(min(x) - 3 * h, max(x) + 3 * h, 701)
    exact = np.array([posterior_by_sums(at, [first, second], h) for at in grid])
    total = np.array([math.fsum(bell(at - point, h) for point in x) for at in grid])
    near = total > 1e-4 * total.max()
    np.testing.assert_allclose(model.predict_proba({"x": grid})[near, 0], exact[near], atol=1e-3)
    density = np.exp(model.predict_log_proba({"x": grid}) + model.score_samples({"x": grid})[:, None])
    np.testing.assert_allclose(density.sum(axis=1), total / len(x), atol=1e-3 * total.max() / len(x))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "uniform", "logistic"])
def test_kernels_integrate_to_one_and_their_answers_are_the_integrals(kernel: str) -> None:
    x, y = waves(80, seed=4)
    for column in (x, x - 50.0, np.round(x)):
        model = sc.NaiveBayes(kinds={"x": families.Kernel(4.0, kernel)}).fit({"x": column}, y)
        edges, asked = model.params_["x"]["edges"][0], model.query(of="x", given={})
        # Gauss's rule in every cell: the density has corners at the edges.
        nodes, weights = np.polynomial.legendre.leggauss(8)
        points = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
        mass = np.asarray(asked.pdf(points)) * (np.diff(edges)[:, None] * weights / 2).ravel()
        params = model.params_["x"]
        beyond = 2 * params["beyond"][0] * params["probability"][:, [0, -1]].max()
        assert 1 - beyond - 1e-9 <= mass.sum() <= 1 + 1e-9
        assert (mass @ points) / mass.sum() == pytest.approx(asked.mean, rel=1e-4)
        place = edges[len(edges) // 2]
        assert mass[points < place].sum() == pytest.approx(asked.cdf(place), abs=1e-4)


def test_cells_are_as_good_as_exact_sums() -> None:
    """Log-odds over all numbers, by kernels summed one by one without prior rows."""
    x, y = waves(400, seed=5)
    model = sc.NaiveBayes(kinds={"x": families.Kernel(3.0)}, estimate="ml").fit({"x": x}, y)
    asked = np.linspace(0.5, np.quantile(x, 0.99), 500)
    exact = sc.KernelDensity(bandwidth=3.0, bounds=(0.0, None), exact=True)
    sums = [exact.fit(x[y == name]).score_samples(asked) for name in "01"]
    logs = model.predict_log_proba({"x": asked}) - np.log(model.class_prior_)
    np.testing.assert_allclose(logs[:, 0] - logs[:, 1], sums[0] - sums[1], atol=0.005)


# -- answers


@every_kind
def test_nothing_below_zero_is_drawn_where_nothing_was(kind: Any) -> None:
    x, y = waves(300)
    for column in (x, np.round(x / 10), np.where(x < 20, 0.0, x)):
        model = sc.NaiveBayes(kinds={"x": kind}).fit({"x": column}, y)
        drawn = model.sample(4_000, random_state=0)["x"].to_numpy()
        assert drawn.min() >= 0.0 and drawn.max() <= 1.5 * column.max() + 10
        assert model.query(of="x", given={}).quantile(0.0001) >= 0.0
        below = sc.NaiveBayes(kinds={"x": kind}).fit({"x": column - 50.0}, y)
        assert below.sample(4_000, random_state=0)["x"].to_numpy().min() < 0.0


@every_kind
def test_answers_agree_with_the_density(kind: Any) -> None:
    x, y = waves(300)
    model = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x}, y)
    asked = model.query(of="x", given={})
    grid = np.linspace(-5.0, 150.0, 400_001)
    density = np.array(asked.pdf(grid)) if np.ndim(asked.pdf(grid)) else np.array([asked.pdf(v) for v in grid])
    inside = (grid >= model.params_["x"]["edges"][0, 0]) & (grid <= model.params_["x"]["edges"][0, -1])
    assert np.trapezoid(np.where(inside, density, 0.0), grid) == pytest.approx(1.0, abs=0.01)
    assert asked.mean == pytest.approx(model.sample(40_000, random_state=1)["x"].to_numpy().mean(), rel=0.02)
    frame = pd.DataFrame({"x": [None, 20.0]})
    assert model.impute(frame)["x"][0] == pytest.approx(asked.mean)


def test_far_numbers_are_no_reason_to_change_the_odds_of_the_last_cell() -> None:
    x, y = waves(300)
    for kind in KINDS:
        model = sc.NaiveBayes(kinds={"x": kind}).fit({"x": x}, y)
        last = float(model.params_["x"]["edges"][0, -1])
        odds = model.predict_log_proba({"x": [np.nextafter(last, 0.0), last + 1.0, 1e6, 1e300]})
        np.testing.assert_allclose(odds - odds[:1], 0.0, atol=1e-9)


def test_beside_every_other_kind() -> None:
    """Columns that learn from known classes beside all the others, also where a block has holes."""
    rng = np.random.default_rng(2)
    rows = [tuple(part.values[i % len(part.values)] for part in MIXED.parts) for i in range(24)]
    kinds = MIXED.kinds | {"k": "kde", "c": "cut"}
    table = MIXED.table(rows)
    for name in "kc":
        table = table.append_column(name, [rng.normal(np.arange(24) % 2 * 3.0, 1.0)])
    names = ["u", "v"] * 12
    model = naive_bayes(kinds, table, names)
    assert {"k", "c"} < set(model.params_) and model.predict(table).shape == (24,)
    halves = [naive_bayes({"k": "kde", "c": "cut"}, table.select(["k", "c"])[a : a + 12], names[:12]) for a in (0, 12)]
    whole = naive_bayes({"k": "kde", "c": "cut"}, table.select(["k", "c"]), names)
    close_counts(align_counts(halves[0].merge(halves[1]).fitted_, whole.fitted_.model, ["u", "v"]), whole.counts_)


def test_numbers_lie_within_an_interval_as_they_do_in_all_classes() -> None:
    """A cut column is filled and drawn by what its numbers are, not by where intervals begin and end."""
    x, y = waves(3_000)
    for column, names in ((x, y), (np.where(x < 20, 0.0, x), np.random.default_rng(0).permutation(y))):
        model = sc.NaiveBayes(kinds={"x": "cut"}).fit({"x": column}, names)
        assert model.query(of="x", given={}).mean == pytest.approx(column.mean(), rel=0.05)
        drawn = model.sample(20_000, random_state=0)["x"].to_numpy()
        assert np.median(drawn) == pytest.approx(np.median(column), abs=1.5)
        inside = np.concatenate([[-np.inf], cuts(model), [np.inf]])
        for low, high in pairwise(inside):
            rows = np.sort(column[(column > low) & (column <= high)])[[0, -1]]
            odds = model.predict_log_proba({"x": np.linspace(*rows, 9)})
            np.testing.assert_allclose(odds - odds[:1], 0.0, atol=1e-9)


# -- what is refused


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.climbs], ids=lambda e: e.title)
def test_what_learns_from_known_classes_refuses_unknown_ones(example: Any) -> None:
    table, names = example.table(example.values), ["u", "v", "U", "v", "u", "v", "u", "v", "u"][: len(example.values)]
    with pytest.raises(sc.DataError, match=f"is {example.family.name}, which is not for classes to be found"):
        sc.Mixture(2, kinds=example.kinds).fit(table)
    with pytest.raises(sc.DataError, match="not for states to be found"):
        sc.HiddenMarkov(2, kinds=example.kinds).fit([table, table])
    with pytest.raises(sc.DataError, match="unlabelled_weight=0"):
        sc.NaiveBayes(kinds=example.kinds, unlabelled_weight=1).fit(table, hidden(names))
    left = sc.NaiveBayes(kinds=example.kinds).fit(table, hidden(names))
    assert left.class_count_.sum() == len(names) - 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: families.Cut("fayyad"), "no rule 'fayyad'.*mdl, modl, width, count"),
        (lambda: families.Cut("width", 0), "at least 1, not 0"),
        (lambda: families.Cut("width", 2.5), "not 2.5"),
        (lambda: families.Kernel(0), "above 0"),
        (lambda: families.Kernel("wide"), "no bandwidth rule 'wide'"),
        (lambda: families.Kernel(kernel="box"), "box"),
        (lambda: families.Histogram(0), "not 0"),
        (lambda: families.Histogram("many"), "no rule 'many'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make: Any, said: str) -> None:
    with pytest.raises(sc.DataError, match=said):
        make()


def test_columns_that_cannot_be_are_refused() -> None:
    for kind in ("histogram", "kde", "cut"):
        with pytest.raises(sc.DataError, match=r"column 'x'.*row 2.*'high'"):
            sc.NaiveBayes(kinds={"x": kind}).fit({"x": ["1", "high", "3"]}, ["a", "b", "a"])
        with pytest.raises(sc.DataError, match="column 'x', row 2: inf"):
            sc.NaiveBayes(kinds={"x": kind}).fit({"x": [1.0, np.inf, 3.0]}, ["a", "b", "a"])
        with pytest.raises(sc.DataError, match="nodes of a network cannot be"):
            sc.BayesNet([("y", "x")], kinds={"x": kind}).fit({"x": [1.0, 2.5, 3.0], "y": ["a", "b", "a"]})
    start = {"weights": [0.5, 0.5], "x": {"probability": [[0.5, 0.5]] * 2}}
    with pytest.raises(sc.DataError, match="cannot be given to start from"):
        sc.Mixture(2, kinds={"x": "histogram"}, init=start).fit({"x": [1.0, 2.0, 3.0, 9.0]})


@pytest.mark.parametrize("kind", ["histogram", "kde", "cut"])
@pytest.mark.parametrize("column", [[2.0] * 6, [0.0] * 6, [None] * 6, [1e300, -1e300] * 3, [5e-324, 0.0] * 3])
def test_columns_of_next_to_nothing_are_learned(kind: str, column: list[Any]) -> None:
    model = sc.NaiveBayes(kinds={"x": kind}).fit(pd.DataFrame({"x": column}, dtype=float), ["a", "b"] * 3)
    assert np.isfinite(model.predict_proba(pd.DataFrame({"x": [*column, 1.0, None]}, dtype=float))).all()
    assert all(np.isfinite(value).all() for value in model.params_["x"].values())


def test_one_class_is_one_interval() -> None:
    model = sc.NaiveBayes(kinds={"x": "cut"}).fit({"x": [1.0, 2.0, 3.0]}, ["a"] * 3)
    assert not len(cuts(model)) and model.params_["x"]["probability"].sum() == pytest.approx(1.0)
    family, counts = families.Cut(), Twofold.of(np.zeros((2, 3)))
    assert len(family.hyper(1.0, counts, model.fitted_.model.nodes["x"].setting)["edges"]) == 1


def test_a_mixture_of_histograms_finds_what_is_there() -> None:
    rng = np.random.default_rng(0)
    side = np.arange(600) % 2
    frame = {f"x{i}": np.where(side, rng.exponential(2.0, 600), 20.0 - rng.exponential(2.0, 600)) for i in range(3)}
    mixture = sc.Mixture(2, kinds=dict.fromkeys(frame, "histogram"), random_state=0, n_init=3).fit(frame)
    found = mixture.predict(frame)
    assert max((found == side).mean(), (found != side).mean()) > 0.98
