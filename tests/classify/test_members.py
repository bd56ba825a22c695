"""Every way to tell classes against plain loops, and what each says column by column."""

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

from softcount.classify.encode import Binning, EncodedRows
from softcount.classify.features import FEW, Features, Indicators, PairCounts, StackedFeatures, Terms
from softcount.classify.logistic import Curvature, LogisticProblem, LogisticProblems, minimise
from softcount.classify.members import Aode, BlockMoments, Training
from softcount.classify.recipes import RECIPES, choose_pairs, fit_weights, leave_one_out


def drawn(rows=120, classes=3, seed=0):
    """Numbers of which one has few values, levels, and holes in both."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    numbers = rng.normal(size=(rows, 3)) + labels[:, None] * [1.0, 0.5, 0.0]
    numbers[:, 2] = np.round(numbers[:, 2])
    codes = np.stack([1 + (labels + rng.integers(0, 2, rows)) % 3, 1 + rng.integers(0, 2, rows)], axis=1)
    numbers[rng.random(numbers.shape) < 0.1] = np.nan
    codes[rng.random(codes.shape) < 0.1] = 0
    rows_ = EncodedRows(numbers, codes.astype(np.int32))
    return Training(rows_, labels, rng.integers(1, 3, rows).astype(float), classes, (3, 2))


@pytest.fixture(scope="module", params=[2, 3])
def training(request):
    return drawn(classes=request.param)


@pytest.mark.parametrize("name", RECIPES)
def test_columns_add_up_to_the_scores_and_a_hole_adds_nothing(name, training):
    for member in RECIPES[name].fit(training, RECIPES[name].settings(training)[:2]):
        scores = member.scores(training.rows)
        parts, rest = member.split(training.rows)
        assert np.abs(parts.sum(axis=1) + rest - scores).max() < 1e-10
        missing = np.hstack([np.isnan(training.rows.numbers), training.rows.codes == 0])
        assert missing.any()
        assert (parts[missing] == 0).all()


@pytest.mark.parametrize("name", ["Gaussian naive Bayes", "discriminant analysis", "AODE"])
def test_weight_two_is_the_row_twice(name, training):
    times = training.weights.astype(int)
    twice = np.repeat(np.arange(len(times)), times)
    written = Training(
        training.rows.take(twice), training.labels[twice], np.ones(len(twice)), training.classes, training.levels
    )
    settings = RECIPES[name].settings(training)[:1]
    heavy, plain = (next(iter(RECIPES[name].fit(x, settings))).scores(training.rows) for x in (training, written))
    np.testing.assert_allclose(heavy, plain, atol=1e-9)


@pytest.mark.parametrize("wide", [0, 100])
@pytest.mark.parametrize("unit", [1.0, 0.3])
def test_pairs_are_counted_as_a_loop_counts_them(training, wide, unit, monkeypatch):
    monkeypatch.setattr("softcount.classify.features.WIDE", wide)
    training = replace(training, weights=training.weights * unit)
    found = training.pairs
    places = training.terms.places(training.codes)
    counts = np.zeros_like(found.counts)
    for row, (own, label, weight) in enumerate(zip(places, training.labels, training.weights, strict=True)):
        assert row < len(places)
        for first in own[own > 0]:
            for second in own[own > 0]:
                counts[label, first, second] += weight
    np.testing.assert_allclose(found.counts, counts)


def test_the_information_of_pairs_is_that_of_their_tables(training):
    within, over = training.pairs.information()
    columns = [column for (column,) in training.terms.columns]
    a, b = 0, len(columns) - 1
    first, second = training.codes[:, columns[a]], training.codes[:, columns[b]]
    total, both = 0.0, (first > 0) & (second > 0)
    for label in [*range(training.classes), None]:
        rows = both if label is None else both & (training.labels == label)
        table = np.zeros((first.max() + 1, second.max() + 1))
        np.add.at(table, (first[rows], second[rows]), training.weights[rows])
        n, up, across = table.sum(), table.sum(axis=1, keepdims=True), table.sum(axis=0, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            nats = np.nansum(table * np.log(table * n / (up * across)))
        nats -= ((up > 0).sum() - 1) * ((across > 0).sum() - 1) / 2
        if label is None:
            assert over[a, b] == pytest.approx(nats)
        else:
            total += nats
    assert within[a, b] == pytest.approx(total)


def test_averaged_stars_are_the_mean_over_parents_of_products_of_shares():
    codes = np.array([[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]], dtype=np.int32)
    labels, weights = np.array([0, 0, 0, 1, 1]), np.ones(5)
    terms = Terms.single((2, 2))
    counts = PairCounts.of(terms, codes, labels, weights, 2)
    stars = Aode.estimate(Binning((), (2, 2)), counts, np.array([3.0, 2.0]))
    scores = stars.scores(EncodedRows(np.zeros((3, 0)), np.array([[1, 2], [0, 0], [0, 1]], dtype=np.int32)))
    shares = np.array([3.5, 2.5]) / 6
    # x0 = 1 in 2 of 3 rows of the first class, and 1 of these 2 has x1 = 2, and so on; one row is imagined.
    first = (2.5 / 4) * (1.5 / 3), (2.5 / 4) * (1.5 / 3)
    second = (1.5 / 3) * (0.5 / 2), (0.5 / 3) * (0.5 / 1)
    np.testing.assert_allclose(np.exp(scores[0]), [shares[0] * np.mean(first), shares[1] * np.mean(second)])
    np.testing.assert_allclose(np.exp(scores[1]), shares)
    np.testing.assert_allclose(np.exp(scores[2]), shares * [1.5 / 4, 2.5 / 3])


def test_a_block_with_holes_has_the_densities_of_its_other_numbers():
    rng = np.random.default_rng(3)
    numbers, labels = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)), np.arange(60) % 2
    rows = EncodedRows(numbers, np.zeros((60, 0), dtype=np.int32))
    block = BlockMoments.of(Training(rows, labels, np.ones(60), 2, ()), np.arange(3)).shrink(0.3, 0.2)
    numbers[::4, 1] = np.nan
    numbers[::6, [0, 2]] = np.nan
    scores, cells = block.scores(rows), block.scale.of(rows)
    for row in (0, 1, 4, 6):
        there = ~np.isnan(numbers[row])
        standard = cells[row, there]
        expected = [
            multivariate_normal.logpdf(standard, mean[there], covariance[np.ix_(there, there)]) if there.any() else 0.0
            for mean, covariance in zip(block.means, block.covariances, strict=True)
        ]
        assert scores[row, 1] - scores[row, 0] == pytest.approx(expected[1] - expected[0])


def test_plain_columns_are_normals_of_numbers_or_their_logarithms_and_shares_of_levels():
    rng = np.random.default_rng(5)
    labels = np.arange(80) % 2
    numbers = np.stack([rng.normal(size=80) + labels, np.exp(1.5 * rng.normal(size=80) + labels)], axis=1)
    codes = 1 + rng.integers(0, 3, (80, 1)).astype(np.int32)
    training = Training(EncodedRows(numbers, codes), labels, np.ones(80), 2, (3,))
    member = next(RECIPES["Gaussian naive Bayes"].fit(training, (1.0,)))
    expected = np.log([np.mean(labels == k) for k in (0, 1)]) + np.zeros((80, 2))
    for label in (0, 1):
        own = labels == label
        for column in (numbers[:, 0], np.log(numbers[:, 1])):
            unit = column.std()
            common = sum(column[labels == k].var() * np.mean(labels == k) for k in (0, 1))
            variance = (own.sum() * column[own].var() + common) / (own.sum() + 1) + 1e-6 * unit**2
            expected[:, label] += norm.logpdf(column, column[own].mean(), np.sqrt(variance))
        shares = (np.bincount(codes[own, 0], minlength=4)[1:] + 1) / (own.sum() + 3)
        expected[:, label] += np.log(shares)[codes[:, 0] - 1]
    scores = member.scores(training.rows)
    np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected[:, 1] - expected[:, 0], atol=1e-9)


def test_the_lowest_points_are_found_as_scipy_finds_them():
    rng = np.random.default_rng(7)
    turned, shift = rng.normal(size=(3, 6, 6)) + 3 * np.eye(6), rng.normal(size=(3, 6)) * [[1.0], [0.1], [5.0]]

    def one(at, k):
        apart = turned[k] @ at - shift[k]
        return float(np.logaddexp(apart, -apart).sum() + 0.1 * at @ at), turned[k].T @ np.tanh(apart) + 0.2 * at

    def objective(at):
        values, slopes = zip(*(one(own, k) for k, own in enumerate(at)), strict=True)
        return np.array(values), np.array(slopes)

    found, steps = minimise(objective, np.zeros((3, 6)), 200, 1e-14)
    for k in range(3):
        expected = minimize(one, np.zeros(6), args=(k,), jac=True, method="BFGS", options={"gtol": 1e-10}).x
        np.testing.assert_allclose(found[k], expected, atol=1e-5)
        assert 0 < steps[k] < 100
        alone, own = minimise(lambda at, k=k: tuple(np.array([x]) for x in one(at[0], k)), np.zeros((1, 6)), 200, 1e-14)
        np.testing.assert_array_equal(alone[0], found[k])
        assert own[0] == steps[k]


@pytest.mark.parametrize("steep", [1e3, 1e4, 1e6])
def test_one_direction_far_steeper_than_the_others_does_not_end_a_descent(steep):
    curve = np.ones(40)
    curve[7] = steep
    found, steps = minimise(
        lambda at: (0.5 * (at - 10.0) ** 2 @ curve, (at - 10.0) * curve), np.zeros((1, 40)), 60, 3e-4
    )
    np.testing.assert_allclose(found, 10.0, atol=0.1)
    assert steps[0] < 10


def test_a_cell_that_the_sample_of_rows_misses_has_its_own_scale(monkeypatch):
    monkeypatch.setattr("softcount.classify.features.MOST_SAMPLED_ROWS", 10)
    places = np.where(np.arange(1000) % 9 == 1, 2, 1)[None]
    products, _ = Features(Indicators(places, 3).matrix, np.zeros((1000, 0))).moments(np.arange(1000.0))
    expected = [np.arange(1000.0)[places[0] == cell].sum() / np.arange(1000.0).sum() for cell in (1, 2)]
    np.testing.assert_allclose(np.diagonal(products)[1:], expected)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("few", [0, 1 << 18])
def test_problems_solved_side_by_side_are_those_solved_alone(classes, few, monkeypatch):
    monkeypatch.setattr("softcount.classify.features.DENSE_CELLS", few)
    problems, cuts = [], drawn(rows=60, classes=classes).cuts
    for seed, rows in ((0, 60), (1, 75), (2, 50)):
        training = replace(drawn(rows=rows, classes=classes, seed=seed), given_cuts=cuts)
        terms = Terms((*Terms.single(cuts.sizes).columns, (3, 4)), cuts.sizes)
        features = Features(
            terms.indicators(training.codes).matrix, np.nan_to_num(training.rows.numbers), training.terms.width
        )
        problems.append(LogisticProblem(features, training.labels, training.weights, classes))
    penalty = np.linspace(0.5, 2.0, features.width)
    together = next(LogisticProblems(tuple(problems)).path([penalty]))
    for problem, found in zip(problems, together, strict=True):
        (alone,) = next(LogisticProblems((problem,)).path([penalty]))
        np.testing.assert_allclose(found, alone, atol=1e-8)


@pytest.mark.parametrize("name", ["additive logistic model", "pairwise interactions"])
def test_folds_with_other_bins_are_fitted_side_by_side_as_alone(name):
    trainings = [drawn(rows=rows, seed=seed) for seed, rows in ((0, 160), (1, 175), (2, 250))]
    assert len({training.finer.terms.width for training in trainings}) > 1
    recipe = RECIPES[name]
    (together,) = recipe.fit_folds(trainings, (2.0,))
    for training, found in zip(trainings, together, strict=True):
        (alone,) = recipe.fit(training, (2.0,))
        np.testing.assert_allclose(found.scores(training.rows), alone.scores(training.rows), atol=1e-8)


def test_a_row_doubted_a_little_is_a_row_and_a_little_of_every_other_class():
    rng = np.random.default_rng(8)
    parts, labels = rng.normal(size=(50, 2, 3)), rng.integers(0, 3, 50)
    doubted = fit_weights(parts, labels, np.ones(50), np.full(2, 0.5), 3.0, doubt=0.1)
    every, weights = np.tile(np.arange(3), 50), np.where(np.tile(np.arange(3), 50) == np.repeat(labels, 3), 0.9, 0.05)
    written = fit_weights(np.repeat(parts, 3, axis=0), every, weights, np.full(2, 0.5), 3.0)
    np.testing.assert_allclose(doubted.weights, written.weights, atol=1e-6)
    np.testing.assert_allclose(doubted.bias, written.bias, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
def test_coefficients_are_where_the_penalised_loss_is_flat(classes):
    training = drawn(rows=60, classes=classes, seed=1)
    lines = np.nan_to_num(training.rows.numbers)
    problem = LogisticProblem(
        Features(training.terms.indicators(training.codes).matrix, lines), training.labels, training.weights, classes
    )
    penalty = np.full(problem.features.width, 0.7)
    (found,), _ = LogisticProblems((problem,)).solve(penalty, [Curvature.of(problem)], None, 500, 1e-14)

    def loss(coefficients):
        values, slopes = LogisticProblems((problem,)).losses(coefficients[None], penalty)
        return float(values[0]), slopes[0]

    slope = loss(found)[1]
    assert np.abs(np.delete(slope, 1, axis=0)).max() < 1e-4
    assert (found[1] == 0).all()
    step = np.random.default_rng(0).normal(size=found.shape) * 1e-5
    step[1] = 0
    up, down = loss(found + step + 0.1)[0], loss(found - step + 0.1)[0]
    along = (loss(found + 0.1)[1] * step).sum()
    assert (up - down) / 2 == pytest.approx(along, rel=1e-4)


def test_one_penalty_of_levels_is_scikit_learns_ridge():
    from sklearn.linear_model import LogisticRegression

    training = drawn(rows=200, classes=2, seed=2)
    indicators = training.terms.indicators(training.codes).matrix
    problem = LogisticProblem(Features(indicators, np.zeros((200, 0))), training.labels, training.weights, 2)
    penalty = np.full(problem.features.width, 2.0)
    (found,), _ = LogisticProblems((problem,)).solve(penalty, [Curvature.of(problem)], None, 500, 1e-14)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000)
    theirs.fit(indicators[:, 1:], training.labels, training.weights)
    np.testing.assert_allclose(found[2:, 0], theirs.coef_[0], atol=1e-4)


@pytest.mark.parametrize("rows", [7, FEW // 3])
@pytest.mark.parametrize("dense", [False, True])
def test_indicators_are_the_matrix_of_ones_in_every_form(rows, dense, monkeypatch):
    monkeypatch.setattr("softcount.classify.features.DENSE_CELLS", 10**9 if dense else 0)
    rng = np.random.default_rng(3)
    places = np.stack([rng.integers(0, 4, rows), np.where(rng.random(rows) < 0.2, 0, 4 + rng.integers(0, 3, rows))])
    ones = np.zeros((rows, 7))
    np.add.at(ones, (np.arange(rows), places), 1.0)
    tables, columns, weights = rng.normal(size=(7, 2)), rng.normal(size=(rows, 2)), rng.random(rows)
    indicators, some = Indicators(places, 7), rng.permutation(rows)[:5]
    np.testing.assert_allclose(indicators.product(tables), ones @ tables, atol=1e-12)
    for wide in (indicators.matrix, indicators.matrix.toarray(), sparse.csr_matrix(ones)):
        features = Features(wide, np.zeros((rows, 0)), 5)
        assert len(features) == rows and features.width == 7
        np.testing.assert_array_equal(features.ends, ones[:, :5])
        np.testing.assert_array_equal(features.take(some).ends, ones[some, :5])
        np.testing.assert_allclose(features.squares(weights)[1:], weights @ ones[:, 1:] ** 2, rtol=1e-12)
        stacked = StackedFeatures.of([features])
        np.testing.assert_allclose(stacked.product(tables[None])[0], ones @ tables, atol=1e-12)
        np.testing.assert_allclose(stacked.transposed_product(columns[None])[0], ones.T @ columns, atol=1e-9)


def test_copies_are_found_at_a_glance_as_by_all_rows(monkeypatch):
    rng = np.random.default_rng(9)
    x, few, rare = rng.normal(size=400), rng.integers(0, 3, 400), (np.arange(400) == 7).astype(float)
    nearly = np.where(np.arange(400) == 7, 9.0, x)
    holed = np.where(rng.random(400) < 0.9, np.nan, x)
    numbers = np.stack([x, -x, nearly, few + 0.0, 2.0 - few, rare, holed, np.exp(holed), np.ones(400)], axis=1)
    ids = rng.permutation(400) // 2
    codes = np.stack([1 + few, 1 + (few + 1) % 3, 1 + rare, 1 + ids, 200 - ids, np.zeros(400)], axis=1)
    rows = EncodedRows(numbers, codes.astype(np.int32))
    slow = rows.find_copies()
    assert slow == {1: 0, 4: 3, 7: 6, 9: 3, 10: 3, 11: 5, 13: 12}
    for glanced in (20, 100):
        monkeypatch.setattr("softcount.classify.encode.GLANCED_AT", glanced)
        assert rows.find_copies() == slow


def test_left_out_is_what_counts_without_the_row_say(training):
    found = leave_one_out(training, np.arange(len(training.labels)))
    for row in (0, 17, 44):
        rest = np.delete(np.arange(len(training.labels)), row)
        without = np.zeros_like(training.tables)
        places = training.terms.places(training.codes)
        for other in rest:
            without[places[other], training.labels[other]] += training.weights[other]
        own, label = places[row], training.labels[row]
        for term, place in enumerate(own):
            start = training.terms.offsets[term]
            stop = [*training.terms.offsets, training.terms.width][term + 1]
            cells = without[start:stop, label]
            expected = np.log((without[place, label] + 1 / (stop - start)) / (cells.sum() + 1)) if place else 0.0
            assert found[row, term, label] == pytest.approx(expected)


def test_columns_of_many_categories_and_few_rows_have_no_tables_of_pairs():
    rng = np.random.default_rng(4)
    codes, labels = 1 + rng.integers(0, 34, (358, 33)).astype(np.int32), rng.integers(0, 6, 358)
    wide = Training(EncodedRows(np.zeros((358, 0)), codes), labels, np.ones(358), 6, (34,) * 33)
    assert RECIPES["pairwise interactions"].settings(wide) == RECIPES["AODE"].settings(wide) == ()
    sizes = np.array([34, 4, 20, 3, 2, 30, 5, 6], dtype=np.int32)
    few = Training(
        EncodedRows(np.zeros((358, 0)), 1 + codes[:, :8] % sizes), labels, np.ones(358), 6, tuple(sizes.tolist())
    )
    cells = [few.cuts.sizes[one] * few.cuts.sizes[other] for one, other in choose_pairs(few)]
    assert cells and max(cells) <= 358


def test_parts_that_repeat_each_other_share_a_weight():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 400)
    told = np.stack([np.zeros(400), rng.normal(size=400) + 2 * labels - 1], axis=1)
    alone = fit_weights(told[:, None], labels, np.ones(400), np.zeros(1), 1e-6)
    twice = fit_weights(np.stack([told, told], axis=1), labels, np.ones(400), np.zeros(2), 1e-6)
    assert twice.weights.sum() == pytest.approx(alone.weights[0], rel=1e-3)
    assert twice.weights[0] == pytest.approx(twice.weights[1], rel=1e-3)


@pytest.mark.parametrize(
    ("rows", "number", "classes", "penalty"), [(200, 5, 3, 1.0), (300, 20, 2, 10.0), (50, 8, 4, 0.1)]
)
def test_weights_are_where_scipys_minimiser_ends(rows, number, classes, penalty):
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    rng = np.random.default_rng(rows)
    parts, labels, heavy = (
        3 * rng.normal(size=(rows, number, classes)),
        rng.integers(0, classes, rows),
        rng.random(rows),
    )
    parts[np.arange(rows), 0, labels] += 1
    centre = np.full(number, 1 / number)

    def loss(given):
        scores = np.tensordot(parts, given[:number], (1, 0)) + given[number:]
        own = heavy @ (logsumexp(scores, axis=1) - scores[np.arange(rows), labels])
        return own + penalty * ((given[:number] - centre) ** 2).sum() / 2 + (given[number:] ** 2).sum() / 2

    bounds = [(0, 3)] * number + [(None, None)] * classes
    theirs = minimize(loss, np.concatenate([centre, np.zeros(classes)]), bounds=bounds, options={"maxfun": 100_000})
    ours = fit_weights(parts, labels, heavy, centre, penalty)
    assert loss(np.concatenate([ours.weights, ours.bias])) <= theirs.fun + 1e-6
    np.testing.assert_allclose(ours.weights, theirs.x[:number], atol=5e-3)
