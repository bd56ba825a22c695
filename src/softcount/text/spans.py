"""Where in a document its words stand: found again, in plain Python, by the rules that counted them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Container, Iterator
from itertools import accumulate
from typing import NamedTuple

from softcount.text.reading import WORD, Reading

Part = tuple[int, int]
"""The place of a first character, and of the one after the last."""


class Spot(NamedTuple):
    """One occurrence of a word; a run of several words has a part for each of them."""

    word: str
    parts: tuple[Part, ...]

    @property
    def start(self) -> int:
        return self.parts[0][0]

    @property
    def end(self) -> int:
        return self.parts[-1][1]


def spots_of(document: str, reading: Reading, wanted: Container[str]) -> Iterator[Spot]:
    """Every occurrence of the wanted words, in the order they end; runs of characters have no place of their own.

    >>> [(spot.word, spot.start, spot.end) for spot in spots_of("Free! Call now, FREE.", Reading(), {"free"})]
    [('free', 0, 4), ('free', 16, 20)]
    """
    if reading.analyzer != "word":
        return
    low, high = reading.ngrams
    last: deque[tuple[str, Part]] = deque(maxlen=high)
    for token in _tokens(document, reading):
        last.append(token)
        for length in range(low, len(last) + 1):
            run = list(last)[-length:]
            word = " ".join(word for word, _ in run)
            if word in wanted:
                yield Spot(word, tuple(part for _, part in run))


def _tokens(document: str, reading: Reading) -> Iterator[tuple[str, Part]]:
    """The words that are no stop words, with their places in the document as it was written."""
    text = document.lower() if reading.lowercase else document
    ends = _ends(document, text)
    pattern = re.compile(reading.pattern or WORD)
    group = min(pattern.groups, 1)
    stopped = frozenset(reading.stopped)
    for found in pattern.finditer(text):
        word = found.group(group) or ""
        if word not in stopped:
            start, end = found.span(group) if word else (found.start(), found.start())
            yield word, (start, end) if ends is None else _written(ends, start, end)


def _ends(document: str, lowered: str) -> list[int] | None:
    """Where each character ends once lowered; None where lower case leaves every character in its place."""
    # Only U+0130 (a capital I with a dot) becomes two characters, but what Python does is asked, not known by heart.
    return None if len(lowered) == len(document) else list(accumulate(len(char.lower()) for char in document))


def _written(ends: list[int], start: int, end: int) -> Part:
    """The characters of the document that hold these places of the lowered one."""
    first = bisect_right(ends, start)
    return first, first if start == end else bisect_right(ends, end - 1) + 1
