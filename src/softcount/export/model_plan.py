"""Scoring plans of ensembles, AODE and text models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from softcount.classify.encode import LARGEST, Binning, NumberScale, column_keys, measured_count, number_count
from softcount.classify.features import Terms
from softcount.classify.logistic import spread
from softcount.classify.members import (
    FARTHEST,
    Additive,
    Aode,
    AodeTables,
    Member,
    NormalsAndTables,
    ShrunkBlock,
    WordModel,
)
from softcount.core import remedies
from softcount.errors import DataError
from softcount.export.formulas import (  # fmt: skip
    SINGLE,
    Apply,
    Cell,
    Choose,
    Code,
    CombinedCode,
    Compare,
    Formula,
    IntervalCode,
    LevelCode,
    LookUp,
    Missing,
    Once,
    Whole,
    WordsCode,
    block_formula,
    clipped,
    formula,
    gathered,
    largest,
    log,
    smallest,
    total,
)
from softcount.export.scoring_plan import ScoringPlan, input_columns
from softcount.families.setting import CLAMPED, IMPOSSIBLE
from softcount.fitted.fitted import Fitted
from softcount.table.schema import Key


class StarsMean(Whole, Struct, frozen=True, eq=False):
    """The logarithm of the mean over the stars of all columns; `codes` are those of parents."""

    stars: AodeTables
    codes: tuple[Code, ...]

    def _written_out(self) -> Formula:
        return star_mean(star_sums(self.stars, self.codes), formula(self.stars.shares))


def star_sums(stars: AodeTables, codes: Sequence[Code]) -> list[Formula]:
    """The log-probability of class and row in the star of every column, impossible if that column is missing."""
    ends = [*stars.terms.offsets.tolist(), stars.terms.width]
    cells = [slice(ends[place], ends[place + 1]) for place in range(len(codes))]
    found: list[Formula] = []
    for parent, own in enumerate(cells):
        table = stars.shares[:, None] + stars.alone[:, own]
        unknown = np.full((1, len(table)), CLAMPED)  # also for levels never seen
        rows = [unknown, table.T, *([unknown] if isinstance(codes[parent], LevelCode) else [])]
        terms: list[Formula] = [LookUp(codes[parent], np.vstack(rows))]
        for child, others in enumerate(cells):
            if child < parent:
                terms.append(_pair((codes[child], codes[parent]), stars.given[:, others, own]))
            elif child > parent:
                terms.append(_pair((codes[parent], codes[child]), stars.given[:, others, own].transpose(0, 2, 1)))
        found.append(Once(total(terms)))
    return found


def _pair(codes: tuple[Code, Code], table: np.ndarray) -> Formula:
    """A table of the cells of two columns, nothing where one is not known."""
    classes, *sizes = table.shape
    whole = np.zeros((sizes[0] + 1, sizes[1] + 1, classes))
    whole[1:, 1:] = table.transpose(1, 2, 0)
    return LookUp(CombinedCode(codes, (sizes[0] + 1, sizes[1] + 1)), whole.reshape(-1, classes))


def star_mean(stars: Sequence[Formula], alone: Formula) -> Formula:
    """The logarithm of the mean over the stars that are possible; what is known without a parent where none is."""
    if not stars:
        return alone
    top = Once(largest(stars))
    sums = total([Apply("exp", (star - top,)) for star in stars])
    known = [Choose((Compare("<", star, formula(IMPOSSIBLE)),), formula(0.0), formula(1.0)) for star in stars]
    there = Once(total(known))
    mean = top + log(sums) - log(largest([there, formula(1.0)]))
    return Choose((Compare("=", there, formula(0.0)),), alone, mean)


# Words of a classifier as formulas: sums over those of a document, by what it is made of.

SHORTEST = 0.25
"""The square of a document's length, below any that has a word: what weighs least is log(2) squared, or .48."""


def word_terms(texts: Sequence[Key], member: WordModel, weight: float) -> list[Formula]:
    """What texts add to the scores of all classes, and what no text does."""
    scale = member.scale
    found: list[Formula] = [formula(weight * spread(member.coefficients[:1])[0])]
    each = scale.of_each(spread(member.coefficients)[1 : 1 + scale.width])
    for place, key in enumerate(texts):
        factors, coefficients = scale.factors[place][1:, None], weight * each[place][1:]
        if scale.counts:
            found.append(LookUp(WordsCode(key, "times"), coefficients * factors))
            continue
        words = LookUp(WordsCode(key, "log"), coefficients * factors)
        squares = largest([LookUp(WordsCode(key, "square"), factors**2), formula(SHORTEST)])
        found.append(words * Apply("exp", (log(squares / SHORTEST) * -0.5,)) * SHORTEST**-0.5)
        found += _length(key, member, place, weight)
    return found


def _length(key: Key, member: WordModel, place: int, weight: float) -> list[Formula]:
    """What the length of a text adds, if anything."""
    scale, slopes = member.scale, weight * spread(member.lengths)[place]
    if not slopes.any():
        return []
    words = LookUp(WordsCode(key, "times"), (scale.factors[place][1:, None] > 0).astype(np.float64))
    line = (log(words + 1.0) - float(scale.middle[place])) / float(scale.spread[place]) * slopes
    return [Choose((Missing(key),), formula(0.0), line)]


# Classifiers as formulas: members that add up tables, lines and bells of columns.


def ensemble_plan(model: Fitted) -> ScoringPlan:
    """The plan of a classifier."""
    assert model.ensemble is not None
    columns, terms = ensemble_terms(model)
    texts = columns.texts if any(isinstance(member, WordModel) for member in model.ensemble.members) else ()
    numbered = columns.keys[measured_count(model.schema) : columns.numbers]
    inputs = input_columns(model, (*columns.keys, *texts), numbered)
    return ScoringPlan(tuple(inputs), tuple(terms), tuple(model.names), calibration=model.calibration)


def ensemble_terms(model: Fitted) -> tuple[EnsembleColumns, list[Formula]]:
    """The columns of an ensemble, and the terms of all its members, each times its weight."""
    assert model.ensemble is not None
    columns = EnsembleColumns(column_keys(model.schema), number_count(model.schema), model.texts)
    terms: list[Formula] = [formula(model.ensemble.bias)]
    words: list[Formula] = []
    for name, member, weight in zip(
        model.ensemble.names, model.ensemble.members, model.ensemble.weights.tolist(), strict=True
    ):
        own = words if isinstance(member, WordModel) else terms
        own += _member_terms(columns, name, member, weight)
    sparse = model.ensemble.sparse
    if sparse is not None:
        # The terms count by the share of the evidence that a row has, the rest comes from single columns.
        shares = np.tile(sparse.presence[:, None], len(spread(sparse.member.coefficients)[0]))
        known = [_known(columns, sparse.member.cuts, place, each) for place, each in enumerate(shares) if each.any()]
        share = Once(smallest(total(known), formula(1.0)))
        single = total(gathered(_additive(columns, sparse.member, 1.0)))
        terms = [total(gathered(terms)) * share, single * (formula(1.0) - share)]
    return columns, gathered([*terms, *words])


def _known(columns: EnsembleColumns, cuts: Binning, place: int, share: np.ndarray) -> Formula:
    """The share of a column if its cell is known, else 0."""
    if place >= len(columns.keys):
        return Choose((Missing(columns.texts[place - len(columns.keys)]),), formula(0.0), formula(share[0]))
    if place < columns.numbers:
        return Choose((Missing(columns.keys[place]),), formula(0.0), formula(share[0]))
    size, none = cuts.sizes[place], np.zeros_like(share)
    return LookUp(LevelCode(columns.keys[place], size), np.array([none, *([share] * size), none]))


class EnsembleColumns(Struct, frozen=True):
    """The columns that members number, the first so many being numbers, and those of text."""

    keys: tuple[Key, ...]
    numbers: int
    texts: tuple[Key, ...]

    def of(self, places: np.ndarray) -> tuple[Key, ...]:
        """The keys of some columns."""
        return tuple(self.keys[place] for place in places.tolist())

    def code(self, column: int, cuts: Binning) -> Code:
        """The code of a column: its interval, or its level."""
        if column < self.numbers:  # an interval holds its upper edge
            return IntervalCode(self.keys[column], np.nextafter(cuts.edges[column], np.inf))
        return LevelCode(self.keys[column], cuts.sizes[column])

    def tables(self, cuts: Binning, terms: Terms, table: np.ndarray) -> list[Formula]:
        """A table looked up for every term; its first row is for what nothing is known of."""
        return [self._table(cuts, terms, table, place) for place in range(len(terms.columns))]

    def _table(self, cuts: Binning, terms: Terms, table: np.ndarray, place: int) -> Formula:
        term, first = terms.columns[place], int(terms.offsets[place])
        sizes = [cuts.sizes[column] for column in term]
        own = table[first : first + int(np.prod(sizes))].reshape(*sizes, table.shape[1])
        unknown = np.broadcast_to(table[0], (*(size + 1 for size in sizes), table.shape[1])).copy()
        unknown[(slice(1, None),) * len(term)] = own
        codes = tuple(self.code(column, cuts) for column in term)
        if len(term) > 1:
            whole = unknown.reshape(-1, table.shape[1])
            return LookUp(CombinedCode(codes, tuple(size + 1 for size in sizes)), whole)
        unseen = [table[:1]] if isinstance(codes[0], LevelCode) else []
        return LookUp(codes[0], np.concatenate([unknown, *unseen]))


def _member_terms(columns: EnsembleColumns, name: str, member: Member, weight: float) -> list[Formula]:
    if isinstance(member, Additive):
        return _additive(columns, member, weight)
    if isinstance(member, NormalsAndTables):
        found = [formula(weight * member.shares), *columns.tables(member.cuts, member.terms, weight * member.tables)]
        keys = columns.of(member.columns)
        cells = [_standard(member.block.scale, place, key) for place, key in enumerate(keys)]
        if isinstance(member.block, ShrunkBlock):
            form = {"mean": member.block.means, "covariance": member.block.covariances}
            return [*found, *([block_formula(form, keys, cells) * weight] if keys else [])]
        deviations = np.sqrt(member.block.variances)
        for place, (key, cell) in enumerate(zip(keys, cells, strict=True)):
            form = {"mean": member.block.means[:, place], "deviation": deviations[:, place]}
            bell = SINGLE["normal"](form, cell)
            assert bell is not None
            found.append(Choose((Missing(key),), formula(0.0), bell * weight))
        return found
    if isinstance(member, WordModel):
        return word_terms(columns.texts, member, weight)
    if isinstance(member, Aode):
        codes = tuple(columns.code(column, member.cuts) for (column,) in member.tables.terms.columns)
        return [StarsMean(member.tables, codes) * weight]
    raise DataError(
        f"the classifier tells classes by {name}, of which no formula is known: it cannot be exported. "
        f"Fit naive Bayes instead: {remedies.either('NaiveBayes().fit(X, y)', 'softcount fit --model naive-bayes')}"
    )


def _additive(columns: EnsembleColumns, member: Additive, weight: float) -> list[Formula]:
    coefficients = weight * spread(member.coefficients)
    found = [formula(coefficients[0]), *columns.tables(member.cuts, member.terms, coefficients[1:])]
    for place, slope in enumerate(coefficients[1 + member.terms.width :]):
        key = columns.keys[place]
        line = _standard(member.scale, place, key, FARTHEST) * slope
        found.append(Choose((Missing(key),), formula(0.0), line))
    return found


def _standard(scale: NumberScale, place: int, key: Key, most: float = LARGEST) -> Formula:
    """A number in deviations from its mean, of the logarithm if that was taken; `most` on either side."""
    floor, cell = float(scale.floor[place]), Cell(key)
    sign = float(np.sign(floor))
    value = log(largest([cell * sign, formula(abs(floor))])) * sign if floor else cell
    return clipped((value - formula(scale.middle[place])) / formula(scale.spread[place]), most)
