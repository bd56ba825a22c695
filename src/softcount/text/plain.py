"""Documents to words in plain Python: for few documents, and for words of the caller's own kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np

from softcount.text.reading import WORD, Reading

Analysis = Callable[[str], list[str]]


def counted(texts: Iterable[str], reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Where each document ends, its words by number, how often it holds them, and the words."""
    words_in = analysis(reading)
    places: dict[str, int] = {}
    ids: list[int] = []
    counts: list[int] = []
    ends = [0]
    for text in texts:
        found = Counter(words_in(text))
        ids += [places.setdefault(word, len(places)) for word in found]
        counts += found.values()
        ends.append(len(ids))
    return np.array(ends, np.int64), np.array(ids, np.int32), np.array(counts, np.int32), list(places)


def analysis(reading: Reading) -> Analysis:
    """What turns a document into its words, each as often as it occurs."""
    low, high = reading.ngrams
    if reading.analyzer == "char":
        split = _characters(low, high)
    elif reading.analyzer == "char_wb":
        split = _characters_by_word(low, high)
    else:
        split = _words(reading)
    return (lambda text: split(text.lower())) if reading.lowercase else split


def _words(reading: Reading) -> Analysis:
    low, high = reading.ngrams
    find, stopped = re.compile(reading.pattern or WORD).findall, frozenset(reading.stopped)

    def words(text: str) -> list[str]:
        found = find(text)
        if stopped:
            found = [word for word in found if word not in stopped]
        if (low, high) == (1, 1):
            return found
        return [" ".join(found[at : at + n]) for n in range(low, high + 1) for at in range(len(found) - n + 1)]

    return words


def _characters(low: int, high: int) -> Analysis:
    blanks = re.compile(r"\s\s+")

    def runs(text: str) -> list[str]:
        text = blanks.sub(" ", text)
        return [text[at : at + n] for n in range(low, high + 1) for at in range(len(text) - n + 1)]

    return runs


def _characters_by_word(low: int, high: int) -> Analysis:
    def runs(text: str) -> list[str]:
        found: list[str] = []
        for word in text.split():
            padded = f" {word} "
            if len(padded) < low:  # a word too short for any run is one by itself
                found.append(padded)
            found += [padded[at : at + n] for n in range(low, high + 1) for at in range(len(padded) - n + 1)]
        return found

    return runs
