"""How the members of the ensemble are fitted, and the weights that combine them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct

from softcount.classify.encode import Binning, EncodedRows
from softcount.classify.features import DENSE_CELLS, MOST_CORRELATED, Features, Indicators, Terms
from softcount.classify.logistic import LogisticProblem, LogisticProblems, contrast_first, expand_classes
from softcount.classify.members import FARTHEST, Aode, Member, Normals, Slopes, Tables, Training, Words, log_tables
from softcount.core.special import softmax_rows

LARGEST = 3.0
"""Weights are between 0 and this."""
MOST_TEMPERED = 20
"""Newton steps of `temper`; a few are usual."""
AT_ONCE = 1 << 18
"""Numbers per block of rows."""


class SharedWeights(Struct, frozen=True, eq=False):
    """The weight of every part, 0 or more, and a bias for every class."""

    weights: np.ndarray
    bias: np.ndarray

    def scores(self, parts: np.ndarray) -> np.ndarray:
        """(rows x classes) from (rows x parts x classes)."""
        return np.asarray(np.tensordot(parts, self.weights, (1, 0)) + self.bias)


def temper(logs: np.ndarray, labels: np.ndarray, heavy: np.ndarray, prior: np.ndarray | float = 0.0) -> float:
    """The one factor of (rows x classes) log-posteriors that maximises the likelihood of the labels.

    Newton's method from 1; a step at most doubles or halves the factor. `prior` is added without it.

    >>> sure = np.log(np.array([[0.99, 0.01]] * 4))
    >>> round(temper(sure, np.array([0, 0, 0, 1]), np.ones(4)), 3)  # three in four are log(3) / log(99) as sure
    0.239
    """
    # A row of numbers for each class: sums over two or three classes are then three times as fast.
    by_class = np.ascontiguousarray(logs.T)
    own, share = heavy @ by_class[labels, np.arange(len(labels))], 1.0
    given = np.broadcast_to(prior, len(by_class))[:, None]
    for _ in range(MOST_TEMPERED):
        scores = given + share * by_class
        shares = np.exp(scores - scores.max(axis=0))
        shares /= shares.sum(axis=0)
        weighted = shares * by_class
        means = weighted.sum(axis=0)
        slope = float(heavy @ means - own)
        curve = float(heavy @ ((weighted * by_class).sum(axis=0) - means**2))
        last, share = share, min(max(share - slope / max(curve, 1e-300), share / 2.0), share * 2.0, LARGEST)
        if abs(share - last) < 1e-3 * last:
            break
    return share


MOST_STEPS = 50
"""Newton steps; seven are usual."""
ENOUGH = 1e-7
"""Share of the loss that a step must gain for another to follow: digits double with every step near the optimum."""


def fit_weights(
    parts: np.ndarray,
    labels: np.ndarray,
    heavy: np.ndarray,
    centre: np.ndarray,
    penalty: float,
    doubt: float = 0.0,
    start: SharedWeights | None = None,
) -> SharedWeights:
    """Weights of maximal penalised likelihood, drawn to `centre` by a penalty in rows' worth.

    `parts` is (rows x parts x classes) log-posteriors from models that have not seen the rows; `heavy` are the row
    weights. With a `doubt`, that share of each row is taken to belong to the other classes: rows that are all
    classified correctly would make every weight as large as possible. Classes absent from the rows keep a bias near 0.
    """
    # The unknowns are the weights of the parts, and then the biases of the classes. `features` are (rows x columns x
    # parts): of two classes the second against the first, of more all of them.
    rows, number, classes = parts.shape
    if classes == 2:
        features = (parts[:, :, 1] - parts[:, :, 0])[:, None]
        believed = np.where(labels == 1, 1.0 - doubt, doubt)[:, None] * heavy[:, None]
        biases = np.array([-1.0, 1.0]) * believed.sum()
    else:
        features = np.ascontiguousarray((parts - parts.mean(axis=2, keepdims=True)).transpose(0, 2, 1))
        believed = np.full((rows, classes), doubt / max(classes - 1, 1))
        believed[np.arange(rows), labels] = 1.0 - doubt
        believed *= heavy[:, None]
        biases = believed.sum(axis=0)
    observed = np.concatenate([believed.reshape(-1) @ features.reshape(-1, number), biases])
    middle = np.concatenate([centre, np.zeros(classes)])
    pull = np.concatenate([np.full(number, penalty), np.ones(classes)])
    low = np.concatenate([np.zeros(number), np.full(classes, -np.inf)])
    high = np.concatenate([np.full(number, LARGEST), np.full(classes, np.inf)])
    lose = _two_class_loss if classes == 2 else _several_class_loss

    def evaluate(given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, gradient and Hessian, over blocks of rows to bound the memory."""
        apart = given - middle
        value, slope = 0.5 * float(pull @ apart**2), pull * apart
        value, slope, curve = value - float(observed @ given), slope - observed, np.diag(pull)
        step = max(1, AT_ONCE // features[0].size)
        for first in range(0, rows, step):
            own = lose(features[first : first + step], heavy[first : first + step], given)
            value, slope, curve = value + own[0], slope + own[1], curve + own[2]
        return value, slope, curve

    at = np.minimum(np.maximum(middle, low), high) if start is None else np.concatenate([start.weights, start.bias])
    value, slope, curve = evaluate(at)
    for _ in range(MOST_STEPS):
        held = ((at <= low) & (slope > 0)) | ((at >= high) & (slope < 0))
        free = np.flatnonzero(~held)
        step = np.zeros_like(at)
        step[free] = -np.linalg.solve(curve[free[:, None], free], slope[free])
        share = 1.0
        while share > 1e-6:
            ahead = np.minimum(np.maximum(at + share * step, low), high)
            found = evaluate(ahead)
            if found[0] < value:
                break
            share /= 2.0
        else:
            break
        gained, at = value - found[0], ahead
        value, slope, curve = found
        if gained < ENOUGH * (1.0 + abs(value)):
            break
    return SharedWeights(at[:number], at[number:])


def _two_class_loss(parts: np.ndarray, heavy: np.ndarray, given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    features = np.hstack([parts[:, 0], np.tile([-1.0, 1.0], (len(parts), 1))])
    odds = features @ given
    small = np.exp(-np.abs(odds))
    cost = np.log1p(small) + np.maximum(odds, 0.0)
    share = np.where(odds >= 0, 1.0, small) / (1.0 + small)
    curve = (features * (heavy * small / (1.0 + small) ** 2)[:, None]).T @ features
    return float(heavy @ cost), (heavy * share) @ features, curve


def _several_class_loss(
    features: np.ndarray, heavy: np.ndarray, given: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    number = features.shape[2]
    shares, evidence = softmax_rows(features @ given[:number] + given[number:])
    means, heavily = (shares[:, None] @ features)[:, 0], shares * heavy[:, None]
    flat, curve = features.reshape(-1, number), np.empty((len(given), len(given)))
    curve[:number, :number] = (flat * heavily.reshape(-1, 1)).T @ flat - (means * heavy[:, None]).T @ means
    by_class = (features.transpose(1, 2, 0) @ heavily.T[:, :, None])[:, :, 0]
    curve[:number, number:] = by_class.T - means.T @ heavily
    curve[number:, :number] = curve[:number, number:].T
    curve[number:, number:] = np.diag(heavily.sum(axis=0)) - heavily.T @ shares
    return float(heavy @ evidence), np.concatenate([heavy @ means, heavily.sum(axis=0)]), curve


# Members for numeric and categorical columns. Each function yields a member for each of the settings.

MOST_PAIRS = 60
"""Pairs of columns that get a table."""
MOST_PAIR_COEFFICIENTS = 1 << 18
"""Coefficients of all these tables."""
MOST_SINGLE_PENALTY = 3.0
"""Penalty of single columns and of slopes, if there are pairs of columns."""
MOST_BLOCK = 100
"""Numbers in discriminant analysis."""
MOST_WEIGHED = 1 << 21
"""Rows times columns times classes that weights are learned from; of more rows a part, evenly spaced."""
LEAST_WEIGHED = 1000
"""Rows that they are learned from at least."""

Settings = tuple[Any, ...]


class Recipe(Struct, frozen=True, eq=False):
    """How a member is fitted.

    `settings` lists the settings to try, in an order that lets each start where the one before ended; it is empty if
    the member does not apply to the rows. `fit_folds` yields, for each setting, a member for every one of several
    training sets. If `ordered`, the search stops at the first setting that is worse than the one before. If `tempered`,
    settings are compared after fitting one weight for each: words repeat each other, so that their sum is too large.
    """

    name: str
    settings: Callable[[Training], Settings]
    fit_folds: Callable[[Sequence[Training], Settings], Iterator[tuple[Member, ...]]]
    ordered: bool = False
    tempered: bool = False

    def fit(self, training: Training, settings: Settings) -> Iterator[Member]:
        return (member for (member,) in self.fit_folds((training,), settings))


def _fold_by_fold(fit: Callable[[Training, Settings], Iterator[Member]]) -> Any:
    return lambda trainings, settings: zip(*(fit(training, settings) for training in trainings), strict=True)


def _fit_naive_bayes(training: Training, settings: Settings) -> Iterator[Member]:
    """Normals, of the logarithm if that is closer to a normal distribution, and tables by Laplace's rule."""
    rows, measured = training.rows, training.measured
    numbers = np.arange(rows.numbers.shape[1] if measured is None else measured)
    cuts = Binning.by_value(rows, len(numbers), training.levels)
    terms, codes = Terms.single(cuts.sizes), cuts.codes(rows)
    normals = Normals.estimate(training, numbers)
    tables = Tables(cuts, terms, log_tables(training.count_cells(terms, codes), terms, terms.widths))
    for _ in settings:
        yield Member(training.shares, (normals, tables))


def _weighted_settings(training: Training) -> Settings:
    columns = len(training.terms.columns)
    return (1.0,) if 0 < columns * training.classes <= MOST_WEIGHED // LEAST_WEIGHED else ()


def _fit_weighted_naive_bayes(training: Training, settings: Settings) -> Iterator[Member]:
    """Naive Bayes of discretised columns with a weight for each column."""
    for penalty in settings:
        some = sample_rows(training)
        parts = leave_one_out(training, some)
        none = np.zeros(parts.shape[1])
        found = fit_weights(parts, training.labels[some], training.weights[some], none, penalty)
        each = np.concatenate([[0.0], np.repeat(found.weights, training.terms.widths)])
        tables = log_tables(training.tables, training.terms) * each[:, None]
        yield Member(found.bias, (Tables(training.cuts, training.terms, contrast_first(tables)),))


def sample_rows(training: Training) -> np.ndarray:
    """Places of the rows that column weights are learned from: all, or an evenly spaced part."""
    most = MOST_WEIGHED // (len(training.terms.columns) * training.classes)
    rows = len(training.labels)
    return np.arange(rows) if rows <= most else np.linspace(0, rows - 1, most).astype(np.int64)


def leave_one_out(training: Training, some: np.ndarray) -> np.ndarray:
    """(rows x columns x classes) log-probability of each cell of some rows by the counts of all other rows."""
    terms, counts, widths = training.terms, training.tables, training.terms.widths
    places, rows = terms.places(training.codes[some]), np.arange(len(some))[:, None]
    found = log_tables(counts, terms)[places]
    totals = np.add.reduceat(counts, terms.offsets, axis=0)
    columns, own = np.arange(len(widths)), training.labels[some, None]
    heavy = training.weights[some, None]
    less = np.log(np.maximum(counts[places, own] - heavy, 0.0) + 1.0 / widths)
    less = less - np.log(np.maximum(totals[columns, own] - heavy, 0.0) + 1.0)
    found[rows, columns, own] = np.where(places > 0, less, 0.0)
    return np.asarray(found)


def _fit_additive(
    trainings: Sequence[Training], penalties: Settings, paired: bool = False
) -> Iterator[tuple[Member, ...]]:
    """Additive logistic models for each penalty, of single columns and slopes or also of pairs of columns.

    With pairs, the penalty of single columns and of slopes is at most MOST_SINGLE_PENALTY.
    """
    if paired:
        trainings = [training.finer for training in trainings]
        terms = [Terms((*own.terms.columns, *choose_pairs(own)), own.terms.sizes) for own in trainings]
    else:
        terms = [training.terms for training in trainings]
    # All folds have the same features, those of single columns first, whatever their numbers of bins.
    single = max(training.terms.width for training in trainings)
    width = single + max(own.width - training.terms.width for training, own in zip(trainings, terms, strict=True))
    problems, places = [], []
    for training, own in zip(trainings, terms, strict=True):
        place = np.arange(own.width)
        place[training.terms.width :] += single - training.terms.width
        places.append(place)
        ones = Indicators(place[own.indicators(training.codes).places], width)
        wide = ones.dense() if len(training.labels) * width <= DENSE_CELLS else ones.matrix
        numbers = training.scale.clip(training.rows, FARTHEST)
        features = Features(wide, numbers, min(MOST_CORRELATED, single))
        problems.append(LogisticProblem(features, training.labels, training.weights, training.classes))
    pair = np.zeros(problems[0].features.width, dtype=bool)
    pair[single:width] = True
    most = MOST_SINGLE_PENALTY if paired else np.inf
    for found in LogisticProblems(tuple(problems)).path(np.where(pair, x, min(x, most)) for x in penalties):
        members = []
        for training, own, place, coefficients in zip(trainings, terms, places, found, strict=True):
            bias, tables, slopes = np.split(expand_classes(coefficients), [1, 1 + width])
            parts = Tables(training.cuts, own, tables[place]), Slopes(training.scale, slopes)
            members.append(Member(bias[0], parts))
        yield tuple(members)


def _pair_settings(training: Training) -> Settings:
    some = training.finer.countable and choose_pairs(training.finer)
    return (100.0, 25.0, 6.0, 1.5, 0.4, 0.1) if some else ()


def choose_pairs(training: Training) -> list[tuple[int, int]]:
    """Pairs of columns by their interaction information with the class, highest first.

    A table of more cells than there are rows is left out, and so are those beyond MOST_PAIR_COEFFICIENTS.
    """
    columns = np.array([column for (column,) in training.terms.columns])
    first, second = np.triu_indices(len(columns), 1)
    sizes = np.array(training.cuts.sizes)[columns]
    cells = sizes[first] * sizes[second]
    order = np.argsort(-training.interaction[first, second], kind="stable")
    order = order[cells[order] <= training.weights.sum()][:MOST_PAIRS]
    order = order[np.cumsum(cells[order]) * training.classes <= MOST_PAIR_COEFFICIENTS]
    return [(int(columns[first[k]]), int(columns[second[k]])) for k in order]


def _discriminant_settings(training: Training) -> Settings:
    if not 0 < len(training.smooth) <= MOST_BLOCK:
        return ()
    return tuple((tied, straight) for tied in (0.05, 0.5, 1.0) for straight in (0.0, 0.1, 0.5))


def _fit_discriminant(training: Training, settings: Settings) -> Iterator[Member]:
    """A normal distribution of the numbers per class, shrunk to the common covariance and to its diagonal."""
    whole, smooth = training.terms, set(training.smooth.tolist())
    terms, cells = whole.select(place for place, (column,) in enumerate(whole.columns) if column not in smooth)
    tables = Tables(training.cuts, terms, log_tables(training.tables[cells], terms))
    for tied, straight in settings:
        yield Member(training.shares, (training.moments.shrink(tied, straight), tables))


def _fit_aode(training: Training, settings: Settings) -> Iterator[Member]:
    for concentration in settings:
        stars = Aode.estimate(training.cuts, training.pairs, training.sizes, concentration)
        yield Member(np.zeros(training.classes), (stars,))


# Members for text columns.

MOST_COEFFICIENTS = 1 << 20
"""Words times classes that get a coefficient by conditional likelihood, those of most documents first."""
MOST_WORK = 1 << 27
"""Words of all documents times classes that these are learned from; of more documents a part, evenly spaced."""


def _fit_word_shares(training: Training, priors: Settings, counts: bool = False) -> Iterator[Member]:
    """Log-shares of the words in every class, less their mean over the classes, with pseudo-counts `priors`.

    Words weigh by tf-idf, or with `counts` as much as they are counted.
    """
    scale = training.rarity.plain if counts else training.rarity
    totals = scale.split_texts(scale.by_class(training.rows, training.labels, training.weights, training.classes))
    for prior in priors:
        logs = []
        for own, factors in zip(totals, scale.factors, strict=True):
            found, shares = np.zeros(own.shape), own[factors > 0] + prior
            each = np.log(shares) - np.log(shares.sum(axis=0))
            found[factors > 0] = each - each.mean(axis=1, keepdims=True)
            logs.append(found)
        lengths = np.zeros((len(totals), training.classes))
        yield Member(training.shares, (Words(scale, contrast_first(np.vstack(logs)), lengths),))


def _fit_word_logistic(training: Training, settings: Settings) -> Iterator[Member]:
    """Coefficients of tf-idf words and of document lengths, by conditional likelihood."""
    scale, rows = training.rarity, len(training.labels)
    factors = np.concatenate(scale.factors)
    known = np.flatnonzero(factors > 0)
    most = MOST_COEFFICIENTS // (1 if training.classes == 2 else training.classes)
    kept = np.sort(known[np.argsort(factors[known], kind="stable")[:most]])
    most = int(rows * MOST_WORK / max(MOST_WORK, training.rows.cells * training.classes))
    places = np.unique(np.linspace(0, rows - 1, max(1, most)).astype(np.int64))
    some = training.take(places)
    # The first feature stands for missing cells.
    words = scale.words(some.rows)[:, np.concatenate([[0], kept])]
    features = Features(words, scale.own_lengths(training.rows, training.weights)[places], most_correlated=1)
    problem = LogisticProblems((LogisticProblem(features, some.labels, some.weights, training.classes),))
    for (found,) in problem.path(np.full(features.width, penalty) for penalty in settings):
        bias, coefficients, lengths = np.split(expand_classes(found), [1, 2 + len(kept)])
        whole = np.zeros((scale.width, training.classes))
        whole[kept] = coefficients[1:]
        yield Member(bias[0], (Words(scale, whole, lengths),))


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("Gaussian naive Bayes", lambda _: (1.0,), _fold_by_fold(_fit_naive_bayes)),
        Recipe("weighted naive Bayes", _weighted_settings, _fold_by_fold(_fit_weighted_naive_bayes)),
        Recipe("discriminant analysis", _discriminant_settings, _fold_by_fold(_fit_discriminant)),
        Recipe("AODE", lambda training: (1.0,) if training.countable else (), _fold_by_fold(_fit_aode)),
        Recipe("additive logistic model", lambda _: (30.0, 8.0, 2.0, 0.5, 0.1), _fit_additive, ordered=True),
        Recipe("pairwise interactions", _pair_settings, partial(_fit_additive, paired=True), ordered=True),
    )
}
"""Members for numbers and categories, the simplest first."""
WORD_RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            "multinomial naive Bayes",
            lambda _: (1.0, 0.1),
            _fold_by_fold(partial(_fit_word_shares, counts=True)),
            tempered=True,
        ),
        Recipe("tf-idf naive Bayes", lambda _: (0.3, 0.1, 0.03, 0.01), _fold_by_fold(_fit_word_shares), tempered=True),
        Recipe(
            "logistic regression on words",
            lambda _: (1.0, 0.3, 0.1, 0.03),
            _fold_by_fold(_fit_word_logistic),
            ordered=True,
            tempered=True,
        ),
    )
}
"""Members for text columns, the simplest first."""
ALL_RECIPES: dict[str, Recipe] = WORD_RECIPES | RECIPES


def recipes_for(rows: EncodedRows) -> list[Recipe]:
    words = list(WORD_RECIPES.values()) if rows.bags else []
    return words if words and not rows.plain_columns else [*words, *RECIPES.values()]
