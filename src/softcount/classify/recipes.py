"""How each member of the ensemble is learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from msgspec import Struct

from softcount.classify.encode import Binning, EncodedRows, WordScale
from softcount.classify.features import MOST_TOGETHER, Features, SparseFeatures, Terms
from softcount.classify.logistic import Abreast, Conditional, folded
from softcount.classify.members import (
    Additive,
    Aode,
    AodeTables,
    Member,
    NormalsAndTables,
    SeparateNormals,
    Training,
    WordModel,
    bounded,
    laplace_tables,
    log_tables,
)
from softcount.core.special import softmax_rows

LARGEST = 3.0
"""A weight is between nothing and this."""
MOST_TEMPERED = 20
"""Newton steps of one weight for all; a few are usual."""
AT_ONCE = 1 << 18
"""Numbers that are held at a time beside the parts themselves."""


class SharedWeights(Struct, frozen=True, eq=False):
    """The weight of every part, 0 or more, and what is added to the score of every class."""

    weights: np.ndarray
    bias: np.ndarray

    def scores(self, parts: np.ndarray) -> np.ndarray:
        """(rows x classes) from (rows x parts x classes)."""
        return np.asarray(np.tensordot(parts, self.weights, (1, 0)) + self.bias)


def learned_weights(
    parts: np.ndarray, labels: np.ndarray, heavy: np.ndarray, centre: np.ndarray, penalty: float, doubt: float = 0.0
) -> SharedWeights:
    """The weights under which the classes of these rows are likeliest, drawn to `centre` by so many rows' worth.

    With a `doubt` every row is taken to be of its class but for that share, which is of the others alike: rows that are
    all told rightly would else say that nothing is sure enough.

    `parts` is (rows x parts x classes): what was said of rows by those who had not seen them. `heavy` is what each row
    weighs. Classes that the rows do not hold keep a bias near zero.
    """
    return Weighing.of(parts, labels, heavy, centre, penalty, doubt).lowest()


def temper(logs: np.ndarray, labels: np.ndarray, heavy: np.ndarray, prior: np.ndarray | float = 0.0) -> float:
    """The one weight of (rows x classes) log-posteriors under which the rows' classes are likeliest.

    By Newton's steps from 1, each at most to the double or the half. `prior` is added without a weight.

    >>> sure = np.log(np.array([[0.99, 0.01]] * 4))
    >>> round(temper(sure, np.array([0, 0, 0, 1]), np.ones(4)), 3)  # three in four are log(3) / log(99) as sure
    0.239
    """
    own, share = heavy @ logs[np.arange(len(labels)), labels], 1.0
    for _ in range(MOST_TEMPERED):
        shares = softmax_rows(prior + share * logs)[0]
        means = np.vecdot(shares, logs)
        slope = float(heavy @ means - own)
        curve = float(heavy @ (np.vecdot(shares, logs * logs) - means**2))
        last, share = share, min(max(share - slope / max(curve, 1e-300), share / 2.0), share * 2.0, LARGEST)
        if abs(share - last) < 1e-3 * last:
            break
    return share


MOST_STEPS = 50
"""Newton steps; seven are usual."""
ENOUGH = 1e-7
"""Share of the loss that a step must gain for another to follow: digits double with every step near the optimum."""


class Weighing(Struct, frozen=True, eq=False):
    """The penalised loss of weights and biases, its slope and curvature, and Newton's step within the bounds.

    `features` are (rows x columns x parts): of two classes the second against the first, of more all of them. The
    unknowns are the weights of the parts, and then the biases of the classes.
    """

    features: np.ndarray
    heavy: np.ndarray
    told: np.ndarray  # the unknowns' factors in what the rows say of their classes
    centre: np.ndarray
    pull: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(
        cls,
        parts: np.ndarray,
        labels: np.ndarray,
        heavy: np.ndarray,
        centre: np.ndarray,
        penalty: float,
        doubt: float,
    ) -> Weighing:
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
        return cls(
            features, heavy, np.concatenate([believed.reshape(-1) @ features.reshape(-1, number), biases]),
            np.concatenate([centre, np.zeros(classes)]),
            np.concatenate([np.full(number, penalty), np.ones(classes)]),
            np.concatenate([np.zeros(number), np.full(classes, -np.inf)]),
            np.concatenate([np.full(number, LARGEST), np.full(classes, np.inf)]),
        )  # fmt: skip

    def lowest(self, start: SharedWeights | None = None) -> SharedWeights:
        """Where the loss is least, by Newton's steps from a start or from the centre."""
        number = self.features.shape[2]
        at = self.within(self.centre) if start is None else np.concatenate([start.weights, start.bias])
        value, slope, curve = self.at(at)
        for _ in range(MOST_STEPS):
            step = self.step(at, slope, curve)
            share = 1.0
            while share > 1e-6:
                ahead = self.within(at + share * step)
                found = self.at(ahead)
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

    def at(self, given: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature; rows are gone through in blocks, so that little is held besides them."""
        apart = given - self.centre
        value, slope = 0.5 * float(self.pull @ apart**2), self.pull * apart
        value, slope, curve = value - float(self.told @ given), slope - self.told, np.diag(self.pull)
        work = self._of_two if self.features.shape[1] == 1 else self._of_several
        step = max(1, AT_ONCE // self.features[0].size)
        for first in range(0, len(self.features), step):
            own = work(given, slice(first, first + step))
            value, slope, curve = value + own[0], slope + own[1], curve + own[2]
        return value, slope, curve

    def _of_two(self, given: np.ndarray, rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """What some rows cost before it is known which class they are of, and its slope and curvature."""
        parts, heavy = self.features[rows, 0], self.heavy[rows]
        features = np.hstack([parts, np.tile([-1.0, 1.0], (len(parts), 1))])
        odds = features @ given
        small = np.exp(-np.abs(odds))
        cost = np.log1p(small) + np.maximum(odds, 0.0)
        share = np.where(odds >= 0, 1.0, small) / (1.0 + small)
        curve = (features * (heavy * small / (1.0 + small) ** 2)[:, None]).T @ features
        return float(heavy @ cost), (heavy * share) @ features, curve

    def _of_several(self, given: np.ndarray, rows: slice) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, slope and curvature of some rows, for more than two classes; a bias of one class needs no feature."""
        features, heavy = self.features[rows], self.heavy[rows]
        number = features.shape[2]
        shares, evidence = softmax_rows(features @ given[:number] + given[number:])
        means, heavily = (shares[:, None] @ features)[:, 0], shares * heavy[:, None]
        flat, curve = features.reshape(-1, number), np.empty((len(given), len(given)))
        curve[:number, :number] = (flat * heavily.reshape(-1, 1)).T @ flat - (means * heavy[:, None]).T @ means
        curve[:number, number:] = np.einsum("rkp,rk->pk", features, heavily, optimize=True) - means.T @ heavily
        curve[number:, :number] = curve[:number, number:].T
        curve[number:, number:] = np.diag(heavily.sum(axis=0)) - heavily.T @ shares
        return float(heavy @ evidence), np.concatenate([heavy @ means, heavily.sum(axis=0)]), curve

    def step(self, at: np.ndarray, slope: np.ndarray, curve: np.ndarray) -> np.ndarray:
        """Newton's step of the unknowns that are not held at a bound."""
        held = ((at <= self.low) & (slope > 0)) | ((at >= self.high) & (slope < 0))
        free = np.flatnonzero(~held)
        found = np.zeros_like(at)
        found[free] = -np.linalg.solve(curve[free[:, None], free], slope[free])
        return found

    def within(self, at: np.ndarray) -> np.ndarray:
        return np.asarray(np.minimum(np.maximum(at, self.low), self.high))


# Recipes that learn a member from training rows, each with the settings to try.

MOST_PAIRS = 60
"""Pairs of columns that get a table."""
MOST_PAIR_COEFFICIENTS = 1 << 18
"""Coefficients of all these tables."""
MOST_BLOCK = 100
"""Numbers that one block holds."""
MOST_WEIGHED = 1 << 21
"""Rows times columns times classes that weights are learned from; of more rows some, evenly spread."""
LEAST_WEIGHED = 1000
"""Rows that they are learned from at least."""


class Recipe(Protocol):
    """A way to learn, and what it is called."""

    name: ClassVar[str]
    ordered: ClassVar[bool]
    """Whether settings go one way, so that the rest need not be tried once they get worse."""
    tempered: ClassVar[bool]
    """Whether settings are compared once each has a weight of its own: words say too much, or too little, together."""

    def settings(self, training: Training) -> tuple[Any, ...]:
        """What is tried, in an order that lets each start where the one before ended; empty where it cannot be."""
        ...

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        """A member for each of the settings."""
        ...

    def abreast(self, trainings: Sequence[Training], settings: tuple[Any, ...]) -> Iterator[tuple[Member, ...]]:
        """For each of the settings a member from every one of several sets of rows, such as folds leave."""
        ...


class OneByOne:
    """Ways that learn from one set of rows after the other."""

    __slots__ = ()
    tempered: ClassVar[bool] = False

    def abreast(self: Recipe, trainings: Sequence[Training], settings: tuple[Any, ...]) -> Iterator[tuple[Member, ...]]:
        return zip(*(self.learned(training, settings) for training in trainings), strict=True)


class InOneProduct:
    """Ways that learn from several sets of rows in one product."""

    __slots__ = ()
    tempered: ClassVar[bool] = False

    def learned(self: Recipe, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        return (member for (member,) in self.abreast((training,), settings))


def additive(
    trainings: Sequence[Training], terms: Sequence[Terms], penalties: tuple[float, ...], most_single: float
) -> Iterator[tuple[Additive, ...]]:
    """Tables and lines of least penalised loss for each penalty, which for single columns and lines is bounded."""
    problems = Abreast(tuple(_problem(own, of, len(terms) == 1) for own, of in zip(trainings, terms, strict=True)))
    paths = (
        [_penalty(own, of, penalty, most_single) for own, of in zip(trainings, terms, strict=True)]
        for penalty in penalties
    )
    for found in problems.path(paths):
        yield tuple(
            Additive(own.cuts, of, own.scale, coefficients)
            for own, of, coefficients in zip(trainings, terms, found, strict=True)
        )


def _problem(training: Training, terms: Terms, alone: bool) -> Conditional:
    told = terms.indicators(training.codes)
    features = Features(
        told.to_learn_from() if alone else told,
        bounded(training.scale, training.rows.numbers),
        min(MOST_TOGETHER, training.terms.width),
    )
    return Conditional(features, training.labels, training.weights, training.classes)


def _penalty(training: Training, terms: Terms, penalty: float, most_single: float) -> np.ndarray:
    """That of every cell and line."""
    found = np.full(terms.width + training.rows.numbers.shape[1], min(penalty, most_single))
    found[training.terms.width : terms.width] = penalty
    return found


class PlainColumns(OneByOne, Struct, frozen=True):
    """Naive Bayes as the textbook has it: normals, of the logarithm where that is closer to one, and Laplace's rule."""

    name: ClassVar[str] = "naive Bayes"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0,)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        rows, measured = training.rows, training.measured
        numbers = np.arange(rows.numbers.shape[1] if measured is None else measured)
        cuts = Binning.by_value(rows, len(numbers), training.levels)
        terms, codes = Terms.single(cuts.sizes), cuts.codes(rows)
        normals = SeparateNormals.of(rows.numbers[:, numbers], training.labels, training.weights, training.classes)
        tables = laplace_tables(training.counted(terms, codes), terms)
        for _ in settings:
            yield NormalsAndTables(cuts, terms, tables, numbers, normals, training.shares)


class WeightedColumns(OneByOne, Struct, frozen=True):
    """Naive Bayes of levels and intervals with a weight for every column."""

    name: ClassVar[str] = "weighted naive Bayes"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        columns = len(training.terms.columns)
        return (1.0,) if 0 < columns * training.classes <= MOST_WEIGHED // LEAST_WEIGHED else ()

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        for penalty in settings:
            some = weighing_rows(training)
            parts = left_out(training, some)
            none = np.zeros(parts.shape[1])
            found = learned_weights(parts, training.labels[some], training.weights[some], none, penalty)
            widths = np.diff([*training.terms.offsets, training.terms.width])
            each = np.concatenate([[0.0], np.repeat(found.weights, widths)])
            tables = log_tables(training.tables, training.terms) * each[:, None]
            yield Additive(training.cuts, training.terms, training.scale, folded(np.vstack([found.bias, tables])))


def weighing_rows(training: Training) -> np.ndarray:
    """Places of the rows that weights are learned from: all, or as many as there is room for, evenly spread."""
    most = MOST_WEIGHED // (len(training.terms.columns) * training.classes)
    rows = len(training.labels)
    return np.arange(rows) if rows <= most else np.linspace(0, rows - 1, most).astype(np.int64)


def left_out(training: Training, some: np.ndarray) -> np.ndarray:
    """(rows x columns x classes) log-probability of each cell of some rows by the counts of all other rows."""
    terms, counts = training.terms, training.tables
    places, rows = terms.places(training.codes[some]), np.arange(len(some))[:, None]
    widths = np.diff([*terms.offsets, terms.width])
    found = log_tables(counts, terms)[places]
    totals = np.add.reduceat(counts, terms.offsets, axis=0)
    columns, own = np.arange(len(widths)), training.labels[some, None]
    heavy = training.weights[some, None]
    less = np.log(np.maximum(counts[places, own] - heavy, 0.0) + 1.0 / widths)
    less = less - np.log(np.maximum(totals[columns, own] - heavy, 0.0) + 1.0)
    found[rows, columns, own] = np.where(places > 0, less, 0.0)
    return np.asarray(found)


class SingleTables(InOneProduct, Struct, frozen=True):
    """Tables of single columns and lines of numbers, by conditional likelihood."""

    name: ClassVar[str] = "additive logistic model"
    ordered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (30.0, 8.0, 2.0, 0.5, 0.1)

    def abreast(self, trainings: Sequence[Training], settings: tuple[Any, ...]) -> Iterator[tuple[Member, ...]]:
        return additive(trainings, [training.terms for training in trainings], settings, np.inf)


class PairTables(InOneProduct, Struct, frozen=True):
    """The same with tables of the pairs of columns that say more together than each by itself."""

    name: ClassVar[str] = "pairwise interactions"
    ordered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        some = training.finer.countable and telling_pairs(training.finer)
        return (100.0, 25.0, 6.0, 1.5, 0.4, 0.1) if some else ()

    def abreast(self, trainings: Sequence[Training], settings: tuple[Any, ...]) -> Iterator[tuple[Member, ...]]:
        finer = [training.finer for training in trainings]
        return additive(finer, [own.terms.with_pairs(telling_pairs(own)) for own in finer], settings, 3.0)


def telling_pairs(training: Training) -> list[tuple[int, int]]:
    """Pairs of columns by how much more they say of each other within the classes than over all, most first.

    A table of more cells than there are rows is left out, and so are those that there is no more room for.
    """
    columns = np.array([column for (column,) in training.terms.columns])
    first, second = np.triu_indices(len(columns), 1)
    sizes = np.array(training.cuts.sizes)[columns]
    cells = sizes[first] * sizes[second]
    order = np.argsort(-training.together[first, second], kind="stable")
    order = order[cells[order] <= training.weights.sum()][:MOST_PAIRS]
    order = order[np.cumsum(cells[order]) * training.classes <= MOST_PAIR_COEFFICIENTS]
    return [(int(columns[first[k]]), int(columns[second[k]])) for k in order]


class CorrelatedBlock(OneByOne, Struct, frozen=True):
    """A normal block of the numbers in every class, its covariance between free, common and without correlations."""

    name: ClassVar[str] = "discriminant analysis"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        if not 0 < len(training.smooth) <= MOST_BLOCK:
            return ()
        return tuple((tied, straight) for tied in (0.05, 0.5, 1.0) for straight in (0.0, 0.1, 0.5))

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        apart = set(training.smooth.tolist())
        terms = Terms(tuple(term for term in training.terms.columns if term[0] not in apart), training.cuts.sizes)
        kept = np.concatenate([[0], *(_cells(training.terms, term) for term in terms.columns)]).astype(int)
        tables = log_tables(training.tables[kept], terms)
        for tied, straight in settings:
            block = training.moments.shrunk(tied, straight)
            yield NormalsAndTables(training.cuts, terms, tables, training.smooth, block, training.shares)


def _cells(terms: Terms, term: tuple[int, ...]) -> np.ndarray:
    place = terms.columns.index(term)
    return np.arange(terms.offsets[place], [*terms.offsets, terms.width][place + 1])


class AodeRecipe(OneByOne, Struct, frozen=True):
    """Averaged one-dependence stars."""

    name: ClassVar[str] = "AODE"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0,) if training.countable else ()

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        for concentration in settings:
            yield Aode(training.cuts, AodeTables.estimated(training.pairs, training.sizes, concentration))


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        PlainColumns(),
        WeightedColumns(),
        CorrelatedBlock(),
        AodeRecipe(),
        SingleTables(),
        PairTables(),
    )
}
"""All ways, the simplest first."""

# Recipes for text columns.

MOST_COEFFICIENTS = 1 << 20
"""Words times classes that get a coefficient by conditional likelihood, those of most documents first."""
MOST_WORK = 1 << 27
"""Words of all documents times classes that these are learned from; of more documents some, evenly spread."""


class WordCounts(OneByOne, Struct, frozen=True):
    """Naive Bayes as the textbook has it: every word of a document is drawn anew."""

    name: ClassVar[str] = "multinomial naive Bayes"
    ordered: ClassVar[bool] = False
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0, 0.1)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        return _counted(training, training.rarity.plain, settings)


class RareWords(OneByOne, Struct, frozen=True):
    """The same of words that weigh by how rare they are, in documents that are all of one length."""

    name: ClassVar[str] = "tf-idf naive Bayes"
    ordered: ClassVar[bool] = False
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (0.3, 0.1, 0.03, 0.01)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        return _counted(training, training.rarity, settings)


def _counted(training: Training, scale: WordScale, priors: tuple[float, ...]) -> Iterator[WordModel]:
    """What words weigh in the classes, added up, so much more being imagined of every word that is known."""
    totals = scale.of_each(scale.by_class(training.rows, training.labels, training.weights, training.classes))
    known = [factors > 0 for factors in scale.factors]
    for prior in priors:
        logs = [_log_shares(own, of, prior) for own, of in zip(totals, known, strict=True)]
        lengths = np.zeros((len(totals), training.classes))
        yield WordModel(scale, folded(np.vstack([training.shares, *logs, lengths])))


def _log_shares(totals: np.ndarray, known: np.ndarray, prior: float) -> np.ndarray:
    """Logarithms of each word's share in every class, those of all classes adding up to nothing."""
    found = np.zeros(totals.shape)
    shares = totals[known] + prior
    logs = np.log(shares) - np.log(shares.sum(axis=0))
    found[known] = logs - logs.mean(axis=1, keepdims=True)
    return found


class WeightedWords(OneByOne, Struct, frozen=True):
    """Coefficients of words and of lengths by conditional likelihood, words weighing by how rare they are."""

    name: ClassVar[str] = "logistic regression on words"
    ordered: ClassVar[bool] = True
    tempered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0, 0.3, 0.1, 0.03)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        scale, kept = training.rarity, _most_frequent(training)
        rows = len(training.labels)
        most = int(rows * MOST_WORK / max(MOST_WORK, training.rows.cells * training.classes))
        places = np.unique(np.linspace(0, rows - 1, max(1, most)).astype(np.int64))
        some = training.take(places)
        # The first of the features stands for nothing known.
        words = SparseFeatures(scale.words(some.rows)[:, np.concatenate([[0], kept])])
        features = Features(words, scale.own_lengths(training.rows, training.weights)[places], together=1)
        problem = Abreast((Conditional(features, some.labels, some.weights, training.classes),))
        for (found,) in problem.path([np.full(features.width, penalty)] for penalty in settings):
            whole = np.zeros((1 + scale.width + len(scale.factors), found.shape[1]))
            whole[0], whole[1 + scale.width :] = found[0], found[2 + len(kept) :]
            whole[1 + kept] = found[2 : 2 + len(kept)]
            yield WordModel(scale, whole)


def _most_frequent(training: Training) -> np.ndarray:
    """Places of the words that get a coefficient among the columns of all bags: rare ones are left out of very many."""
    factors = np.concatenate(training.rarity.factors)
    known = np.flatnonzero(factors > 0)
    most = MOST_COEFFICIENTS // (1 if training.classes == 2 else training.classes)
    return np.sort(known[np.argsort(factors[known], kind="stable")[:most]])


WORD_RECIPES: dict[str, Recipe] = {recipe.name: recipe for recipe in (WordCounts(), RareWords(), WeightedWords())}
"""All ways to learn from words, the simplest first."""
ALL_RECIPES: dict[str, Recipe] = WORD_RECIPES | RECIPES


def recipes_for(rows: EncodedRows) -> list[Recipe]:
    """The ways that have something to learn from: words where there are texts, columns where there are others."""
    words = list(WORD_RECIPES.values()) if rows.bags else []
    return words if words and not rows.plain_columns else [*words, *RECIPES.values()]
