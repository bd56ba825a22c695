"""Ways to learn a member from rows of known class, each with the settings that are tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from softcount.classify.conditional_fit import Abreast, Conditional, folded
from softcount.classify.cut_columns import CutColumns
from softcount.classify.learning_features import MOST_TOGETHER, Features
from softcount.classify.members import Additive, BlockAndTables, Member, StarsOfCuts, bounded
from softcount.classify.shared_weights import learned_weights
from softcount.classify.shrunk_block import SeparateNormals
from softcount.classify.star_tables import StarTables
from softcount.classify.terms import Terms
from softcount.classify.training import Training, laplace_tables, log_tables
from softcount.records import dataclass

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


@dataclass(frozen=True, slots=True)
class PlainColumns(OneByOne):
    """Naive Bayes as the textbook has it: normals, of the logarithm where that is closer to one, and Laplace's rule."""

    name: ClassVar[str] = "naive Bayes"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0,)

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        rows, measured = training.rows, training.measured
        numbers = np.arange(rows.numbers.shape[1] if measured is None else measured)
        cuts = CutColumns.by_value(rows, len(numbers), training.levels)
        terms, codes = Terms.single(cuts.sizes), cuts.codes(rows)
        normals = SeparateNormals.of(rows.numbers[:, numbers], training.labels, training.weights, training.classes)
        tables = laplace_tables(training.counted(terms, codes), terms)
        for _ in settings:
            yield BlockAndTables(cuts, terms, tables, numbers, normals, training.shares)


@dataclass(frozen=True, slots=True)
class WeightedColumns(OneByOne):
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


@dataclass(frozen=True, slots=True)
class SingleTables(InOneProduct):
    """Tables of single columns and lines of numbers, by conditional likelihood."""

    name: ClassVar[str] = "tables and lines"
    ordered: ClassVar[bool] = True

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (30.0, 8.0, 2.0, 0.5, 0.1)

    def abreast(self, trainings: Sequence[Training], settings: tuple[Any, ...]) -> Iterator[tuple[Member, ...]]:
        return additive(trainings, [training.terms for training in trainings], settings, np.inf)


@dataclass(frozen=True, slots=True)
class PairTables(InOneProduct):
    """The same with tables of the pairs of columns that say more together than each by itself."""

    name: ClassVar[str] = "pairs of columns"
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


@dataclass(frozen=True, slots=True)
class CorrelatedBlock(OneByOne):
    """A normal block of the numbers in every class, its covariance between free, common and without correlations."""

    name: ClassVar[str] = "correlated block"
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
            yield BlockAndTables(training.cuts, terms, tables, training.smooth, block, training.shares)


def _cells(terms: Terms, term: tuple[int, ...]) -> np.ndarray:
    place = terms.columns.index(term)
    return np.arange(terms.offsets[place], [*terms.offsets, terms.width][place + 1])


@dataclass(frozen=True, slots=True)
class AveragedStarsRecipe(OneByOne):
    """Averaged one-dependence stars."""

    name: ClassVar[str] = "averaged stars"
    ordered: ClassVar[bool] = False

    def settings(self, training: Training) -> tuple[Any, ...]:
        return (1.0,) if training.countable else ()

    def learned(self, training: Training, settings: tuple[Any, ...]) -> Iterator[Member]:
        for concentration in settings:
            yield StarsOfCuts(training.cuts, StarTables.estimated(training.pairs, training.sizes, concentration))


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        PlainColumns(),
        WeightedColumns(),
        CorrelatedBlock(),
        AveragedStarsRecipe(),
        SingleTables(),
        PairTables(),
    )
}
"""All ways, the simplest first."""
