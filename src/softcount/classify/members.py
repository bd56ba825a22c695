"""What a classifier may be made of. Each member scores rows, and says column by column what its scores are made of."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from softcount.classify.conditional_fit import spread
from softcount.classify.cut_columns import CutColumns
from softcount.classify.encoded_rows import EncodedRows
from softcount.classify.indicators import Indicators
from softcount.classify.learning_features import Features
from softcount.classify.number_scale import NumberScale
from softcount.classify.shrunk_block import SeparateNormals, ShrunkBlock
from softcount.classify.star_tables import StarTables
from softcount.classify.terms import Terms
from softcount.classify.training import FARTHEST
from softcount.records import dataclass


class Member(Protocol):
    """A fitted way to tell classes."""

    @property
    def by_column(self) -> bool:
        """Whether each column adds what its own cell says, whatever the others hold."""
        ...

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) log-posteriors up to what all classes share."""
        ...

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """(rows x columns x classes) what each column adds to them, and (rows x classes) what no column does."""
        ...


def indicators(cuts: CutColumns, terms: Terms, rows: EncodedRows) -> Indicators:
    """(rows x cells) ones where a row points, made once for the same rows."""
    return rows.remembered((cuts, terms), lambda: terms.indicators(cuts.codes(rows)))


def bounded(scale: NumberScale, numbers: np.ndarray) -> np.ndarray:
    """(rows x numbers) deviations, 0 where missing, bounded so that a number far out does not decide alone."""
    return np.asarray(np.nan_to_num(np.clip(scale.of(numbers), -FARTHEST, FARTHEST), nan=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """A table for every column and for some pairs, and a line for every number: coefficients that add up.

    The first row of `coefficients` is the intercept, then come the tables, then the lines; of two classes there is one
    column, for the second against the first.
    """

    cuts: CutColumns
    terms: Terms
    scale: NumberScale
    coefficients: np.ndarray

    @property
    def by_column(self) -> bool:
        return all(len(term) == 1 for term in self.terms.columns)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        features = Features(indicators(self.cuts, self.terms, rows), self._lines(rows))
        return spread(features.product(self.coefficients[1:]) + self.coefficients[0])

    def _lines(self, rows: EncodedRows) -> np.ndarray:
        if len(self.coefficients) == 1 + self.terms.width:
            return np.zeros((len(rows), 0))
        return rows.remembered((self.scale,), lambda: bounded(self.scale, rows.numbers))

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """A pair's part is shared equally by its columns."""
        coefficients = spread(self.coefficients)
        width = len(self.cuts.sizes)
        found = np.zeros((len(rows), width, coefficients.shape[1]))
        places = self.terms.places(self.cuts.codes(rows))
        for place, term in enumerate(self.terms.columns):
            own = coefficients[1 + places[:, place]] / len(term)
            for column in term:
                found[:, column] += own
        lines = self._lines(rows)
        for column in range(lines.shape[1]):
            found[:, column] += lines[:, column, None] * coefficients[1 + self.terms.width + column]
        return found, np.tile(coefficients[0], (len(rows), 1))


@dataclass(frozen=True, slots=True, eq=False)
class BlockAndTables:
    """Some numbers as normals, in one correlated block or each by itself, and every other column as a table."""

    cuts: CutColumns
    terms: Terms
    tables: np.ndarray  # (cells x classes) log-probabilities
    columns: np.ndarray  # the numbers of the block
    block: ShrunkBlock | SeparateNormals
    shares: np.ndarray

    @property
    def by_column(self) -> bool:
        return isinstance(self.block, SeparateNormals)

    def scores(self, rows: EncodedRows) -> np.ndarray:
        own = indicators(self.cuts, self.terms, rows).product(self.tables)
        return np.asarray(self.block.scores(rows.numbers[:, self.columns]) + own + self.shares)

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        found = np.zeros((len(rows), len(self.cuts.sizes), len(self.shares)))
        own, rest = self.block.parts(rows.numbers[:, self.columns])
        found[:, self.columns] = own
        places = self.terms.places(self.cuts.codes(rows))
        for place, (column,) in enumerate(self.terms.columns):
            found[:, column] += self.tables[places[:, place]]
        return found, rest + self.shares


@dataclass(frozen=True, slots=True, eq=False)
class StarsOfCuts:
    """Averaged one-dependence stars over all columns as codes."""

    cuts: CutColumns
    stars: StarTables

    @property
    def by_column(self) -> bool:
        return False

    def scores(self, rows: EncodedRows) -> np.ndarray:
        return self.stars.scores(self.cuts.codes(rows))

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        return self.stars.parts(self.cuts.codes(rows))
