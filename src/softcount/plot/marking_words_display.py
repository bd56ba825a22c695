"""The words that mark each class."""

from __future__ import annotations

from typing import Any, Self

from softcount.estimators.result_frames import arrow_of
from softcount.plot.display import Display, bars_down, colour


class MarkingWordsDisplay(Display):
    """A bar for each word, as long as its log-odds for its class; the classes one below another.

    `table` is the model's `marking_words()`.
    """

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any = None, *, n: int = 8, key: Any = None, ax: Any = None) -> Self:
        """The n words that most mark each class of a fitted model of text; X is not needed."""
        return cls(arrow_of(estimator.marking_words(key, n=n))).plot(ax)

    def _draw(self, ax: Any) -> None:
        names, words, odds = self._columns("class", "word", "log_odds")
        places = {name: place for place, name in enumerate(dict.fromkeys(names))}
        labels = [f"{word} ({name})" for name, word in zip(names, words, strict=True)]
        bars_down(ax, labels, odds, [colour(places[name]) for name in names])
        ax.set(xlabel="log-odds in the class against the others", title="Marking words")
