"""How documents become words, and which of the words are kept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from softcount.errors import DataError

Analyzer = Literal["word", "char", "char_wb"]

WORD = r"(?u)\b\w\w+\b"
"""Two or more letters, digits or underscores in a row."""


@dataclass(frozen=True, slots=True)
class Reading:
    r"""Words as scikit-learn's CountVectorizer reads them: lower case, runs of two or more word characters.

    `ngrams` are the shortest and longest run of words (or, with `analyzer="char"`, of characters) that counts as one.
    `pattern` is a regular expression for words of another kind, which is slower. `stop_words` are words to leave out,
    or "english" for a short list. Words are kept that occur at least `min_count` times in all, in at least `min_df` and
    at most `max_df` documents (a float: a share of them), without the `drop_top` most frequent; of more than
    `max_words` the most frequent stay.
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
        if isinstance(self.stop_words, str) and self.stop_words != "english":
            raise DataError(f"stop_words={self.stop_words!r} is not known. Use 'english' or a list of words.")
        if self.pattern is not None:
            self._check_pattern(self.pattern)
        self._check_limits()

    def _check_pattern(self, pattern: str) -> None:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise DataError(f"pattern={pattern!r} is no regular expression: {error}.") from None
        if groups > 1:
            raise DataError(f"pattern={pattern!r} has {groups} groups. Use one for the word, and (?:...) elsewhere.")

    def _check_limits(self) -> None:
        for name in ("min_df", "max_df"):
            limit = getattr(self, name)
            if limit < 0 or (isinstance(limit, float) and not limit <= 1):
                raise DataError(f"{name}={limit!r}: give a number of documents, or a share of them from 0.0 to 1.0.")
        for name in ("min_count", "drop_top"):
            if getattr(self, name) < 0:
                raise DataError(f"{name}={getattr(self, name)!r}: give 0 or more.")
        if self.max_words is not None and self.max_words < 1:
            raise DataError(f"max_words={self.max_words!r}: give 1 or more, or None for all of them.")

    @property
    def stopped(self) -> tuple[str, ...]:
        """The words that are left out."""
        if isinstance(self.stop_words, str):
            from softcount.text.english import ENGLISH

            return ENGLISH
        return self.stop_words
