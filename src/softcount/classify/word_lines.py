"""A member of a classifier that is made of words."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.classify.conditional_fit import spread
from softcount.classify.encoded_rows import EncodedRows
from softcount.classify.word_scale import WordScale
from softcount.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class WordLines:
    """A coefficient for every word of every text, and for how long each text is: they add up.

    The first row of `coefficients` is the intercept, then come the columns of all bags, then the lengths; of two
    classes there is one column, for the second against the first.
    """

    scale: WordScale
    coefficients: np.ndarray

    @property
    def by_column(self) -> bool:
        return True

    @property
    def lengths(self) -> np.ndarray:
        """Those of how long the texts are."""
        return self.coefficients[1 + self.scale.width :]

    def scores(self, rows: EncodedRows) -> np.ndarray:
        """(rows x classes) log-posteriors up to what all classes share."""
        words = self.scale.words(rows) @ self.coefficients[1 : 1 + self.scale.width]
        return spread(np.asarray(words) + self.scale.lengths(rows) @ self.lengths + self.coefficients[0])

    def parts(self, rows: EncodedRows) -> tuple[np.ndarray, np.ndarray]:
        """What each text adds to them, other columns nothing; and what no column does."""
        lengths, first = self.scale.lengths(rows), rows.plain_columns
        found = np.zeros((len(rows), first + len(rows.bags), len(spread(self.coefficients[:1])[0])))
        each = self.scale.of_each(self.coefficients[1 : 1 + self.scale.width])
        for text, (bag, own) in enumerate(zip(rows.bags, each, strict=True)):
            words = np.asarray(self.scale.weighed(text, bag) @ own)
            found[:, first + text] = spread(words + lengths[:, text, None] * self.lengths[text])
        return found, np.tile(spread(self.coefficients[:1]), (len(rows), 1))

    def word_parts(self, text: int, bag: Any) -> np.ndarray:
        """(cells x classes) what each cell of a text's bag adds."""
        own = self.scale.of_each(self.coefficients[1 : 1 + self.scale.width])[text]
        return spread(self.scale.weighed(text, bag).data[:, None] * own[bag.indices])
