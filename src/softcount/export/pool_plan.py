"""Classifiers as formulas: members that add up tables, lines and bells of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softcount import remedies
from softcount.classify.conditional_fit import spread
from softcount.classify.cut_columns import CutColumns
from softcount.classify.encoded_rows import column_keys, measured_count, number_count
from softcount.classify.members import Additive, BlockAndTables, Member, StarsOfCuts
from softcount.classify.number_scale import LARGEST, NumberScale
from softcount.classify.pool import PartialRows
from softcount.classify.shrunk_block import ShrunkBlock
from softcount.classify.terms import Terms
from softcount.classify.training import FARTHEST
from softcount.classify.word_lines import WordLines
from softcount.errors import DataError
from softcount.export.block_formulas import block_formula
from softcount.export.density_formulas import SINGLE
from softcount.export.formulas import (
    Cell,
    Choose,
    Code,
    CombinedCode,
    Formula,
    IntervalCode,
    LevelCode,
    LookUp,
    Missing,
    Once,
    clipped,
    formula,
    gathered,
    largest,
    log,
    smallest,
    total,
)  # fmt: skip
from softcount.export.scoring_plan import ScoringPlan, input_columns
from softcount.export.star_formulas import StarsMean
from softcount.export.word_formulas import word_terms
from softcount.fitted.fitted_model import Fitted
from softcount.records import dataclass
from softcount.table.schema import Key


def pool_plan(model: Fitted) -> ScoringPlan:
    """The plan of a classifier: the terms of all its members, each times its weight."""
    assert model.pool is not None
    columns = PoolColumns(column_keys(model.schema), number_count(model.schema), model.texts)
    terms: list[Formula] = [formula(model.pool.bias)]
    words: list[Formula] = []
    for name, member, weight in zip(model.pool.names, model.pool.members, model.pool.weights.tolist(), strict=True):
        own = words if isinstance(member, WordLines) else terms
        own += _member_terms(columns, name, member, weight)
    if model.pool.sparse is not None:
        terms = _for_sparse_rows(columns, model.pool.sparse, terms)
    measured = measured_count(model.schema)
    texts = columns.texts if any(isinstance(member, WordLines) for member in model.pool.members) else ()
    inputs = input_columns(model, (*columns.keys, *texts), columns.keys[measured : columns.numbers])
    whole = tuple(gathered([*terms, *words]))
    return ScoringPlan(tuple(inputs), whole, tuple(model.names), calibration=model.calibration)


def _for_sparse_rows(columns: PoolColumns, sparse: PartialRows, terms: list[Formula]) -> list[Formula]:
    """The terms of an ensemble by the share of the evidence that a row has, and the rest by single columns."""
    shares = np.tile(sparse.presence[:, None], len(spread(sparse.member.coefficients)[0]))
    known = [_known(columns, sparse.member.cuts, place, own) for place, own in enumerate(shares) if own.any()]
    share = Once(smallest(total(known), formula(1.0)))
    own = gathered(_additive(columns, sparse.member, 1.0))
    return [total(gathered(terms)) * share, total(own) * (formula(1.0) - share)]


def _known(columns: PoolColumns, cuts: CutColumns, place: int, share: np.ndarray) -> Formula:
    """The share of a column if its cell is known, else 0."""
    if place >= len(columns.keys):
        return Choose((Missing(columns.texts[place - len(columns.keys)]),), formula(0.0), formula(share[0]))
    if place < columns.numbers:
        return Choose((Missing(columns.keys[place]),), formula(0.0), formula(share[0]))
    size, none = cuts.sizes[place], np.zeros_like(share)
    return LookUp(LevelCode(columns.keys[place], size), np.array([none, *([share] * size), none]))


@dataclass(frozen=True)
class PoolColumns:
    """The columns that members number, the first so many being numbers, and those of text."""

    keys: tuple[Key, ...]
    numbers: int
    texts: tuple[Key, ...]

    def of(self, places: np.ndarray) -> tuple[Key, ...]:
        """The keys of some columns."""
        return tuple(self.keys[place] for place in places.tolist())

    def code(self, column: int, cuts: CutColumns) -> Code:
        """The code of a column: its interval, or its level."""
        if column < self.numbers:  # an interval holds its upper edge
            return IntervalCode(self.keys[column], np.nextafter(cuts.edges[column], np.inf))
        return LevelCode(self.keys[column], cuts.sizes[column])

    def tables(self, cuts: CutColumns, terms: Terms, table: np.ndarray) -> list[Formula]:
        """A table looked up for every term; its first row is for what nothing is known of."""
        return [self._table(cuts, terms, table, place) for place in range(len(terms.columns))]

    def _table(self, cuts: CutColumns, terms: Terms, table: np.ndarray, place: int) -> Formula:
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


def _member_terms(columns: PoolColumns, name: str, member: Member, weight: float) -> list[Formula]:
    if isinstance(member, Additive):
        return _additive(columns, member, weight)
    if isinstance(member, BlockAndTables):
        return _block_and_tables(columns, member, weight)
    if isinstance(member, WordLines):
        return word_terms(columns.texts, member, weight)
    if isinstance(member, StarsOfCuts):
        return [StarsMean(member.stars, _codes(columns, member)) * weight]
    raise DataError(
        f"the classifier tells classes by {name}, of which no formula is known: it cannot be exported. "
        f"Fit naive Bayes instead: {remedies.either('NaiveBayes().fit(X, y)', 'softcount fit --model naive-bayes')}"
    )


def _codes(columns: PoolColumns, member: StarsOfCuts) -> tuple[Code, ...]:
    return tuple(columns.code(column, member.cuts) for (column,) in member.stars.terms.columns)


def _additive(columns: PoolColumns, member: Additive, weight: float) -> list[Formula]:
    coefficients = weight * spread(member.coefficients)
    found = [formula(coefficients[0]), *columns.tables(member.cuts, member.terms, coefficients[1:])]
    for place, slope in enumerate(coefficients[1 + member.terms.width :]):
        key = columns.keys[place]
        line = _standard(member.scale, place, key, FARTHEST) * slope
        found.append(Choose((Missing(key),), formula(0.0), line))
    return found


def _block_and_tables(columns: PoolColumns, member: BlockAndTables, weight: float) -> list[Formula]:
    found = [formula(weight * member.shares), *columns.tables(member.cuts, member.terms, weight * member.tables)]
    keys = columns.of(member.columns)
    cells = [_standard(member.block.scale, place, key) for place, key in enumerate(keys)]
    if isinstance(member.block, ShrunkBlock):
        form = {"mean": member.block.means, "covariance": member.block.covariances}
        return [*found, *([block_formula(form, keys, cells) * weight] if keys else [])]
    deviations = np.sqrt(member.block.variances)
    return [*found, *_normal_terms(member.block.means, deviations, keys, cells, weight)]


def _normal_terms(
    means: np.ndarray, deviations: np.ndarray, keys: Sequence[Key], cells: Sequence[Formula], weight: float
) -> list[Formula]:
    found: list[Formula] = []
    for place, (key, cell) in enumerate(zip(keys, cells, strict=True)):
        bell = SINGLE["normal"]({"mean": means[:, place], "deviation": deviations[:, place]}, cell)
        assert bell is not None
        found.append(Choose((Missing(key),), formula(0.0), bell * weight))
    return found


def _standard(scale: NumberScale, place: int, key: Key, most: float = LARGEST) -> Formula:
    """A number in deviations from its mean, of the logarithm if that was taken; `most` on either side."""
    floor, cell = float(scale.floor[place]), Cell(key)
    sign = float(np.sign(floor))
    value = log(largest([cell * sign, formula(abs(floor))])) * sign if floor else cell
    return clipped((value - formula(scale.middle[place])) / formula(scale.spread[place]), most)
