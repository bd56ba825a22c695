"""How documents become words, and which of the words are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from softcount.errors import DataError

Analyzer = Literal["word", "char", "char_wb"]


@dataclass(frozen=True, slots=True)
class Reading:
    r"""Words as scikit-learn's CountVectorizer reads them: lower case, runs of two or more word characters.

    `ngrams` are the shortest and longest run of words (or, with `analyzer="char"`, of characters) that counts as one.
    `pattern` is a regular expression for words of another kind, which is slower. Words are kept that occur at least
    `min_count` times in all, in at least `min_df` and at most `max_df` documents (a float: a share of them), without
    the `drop_top` most frequent; of more than `max_words` the most frequent stay.
    """

    analyzer: Analyzer = "word"
    ngrams: tuple[int, int] = (1, 1)
    pattern: str | None = None
    lowercase: bool = True
    stop_words: str | tuple[str, ...] = ()
    min_count: int = 1
    min_df: int | float = 1
    max_df: int | float = 1.0
    drop_top: int = 0
    max_words: int | None = None

    def __post_init__(self) -> None:
        if self.analyzer not in ("word", "char", "char_wb"):
            raise DataError(f"analyzer={self.analyzer!r} is not known. Use 'word', 'char' or 'char_wb'.")
        low, high = self.ngrams
        if not 1 <= low <= high:
            raise DataError(f"ngrams={self.ngrams!r}: give the shortest and the longest, such as (1, 2).")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise DataError(f"pattern={self.pattern!r} is no regular expression: {error}.") from None
