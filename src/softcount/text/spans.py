"""Where in a document its words stand: found again by the rules that counted them."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from softcount.text.spelling import spelled
from softcount.text.word_list import Words, worth_bytes
from softcount.text.word_rules import WORD, Reading

AT_ONCE = 1 << 20
"""Characters that are looked at together: each takes 4 bytes and more for that long."""

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
    if high == 1:
        yield from (Spot(word, (part,)) for word, part in _tokens(document, reading) if word in wanted)
        return
    last: deque[tuple[str, Part]] = deque(maxlen=high)
    for token in _tokens(document, reading):
        last.append(token)
        run = list(last)
        for length in range(low, len(run) + 1):
            word = " ".join(word for word, _ in run[-length:])
            if word in wanted:
                yield Spot(word, tuple(part for _, part in run[-length:]))


def spans_of(document: str, reading: Reading, words: Sequence[str]) -> list[np.ndarray]:
    """For each of the words, an (occurrences x 2) array of the places where it begins and ends.

    A place takes 16 bytes, where a `Spot` takes 200: a document of 80 MB has 12 million words.

    >>> [places.tolist() for places in spans_of("Free! Call now, FREE.", Reading(), ["free", "mum"])]
    [[[0, 4], [16, 20]], []]
    """
    numbers = {word: number for number, word in enumerate(words)}
    if reading.analyzer == "word" and reading.ngrams == (1, 1):
        found = _single(document, reading, numbers)
    else:
        spots = [(numbers[s.word], s.start, s.end) for s in spots_of(document, reading, numbers)]
        found = np.array(spots, dtype=np.int64).reshape(-1, 3)
    order = np.argsort(found[:, 0], kind="stable")
    edges = np.searchsorted(found[order, 0], np.arange(len(words) + 1))
    places = found[order, 1:]
    return [places[start:stop] for start, stop in pairwise(edges.tolist())]


def _single(document: str, reading: Reading, numbers: dict[str, int]) -> np.ndarray:
    """Single words one after another: their numbers, where they begin and where they end."""
    stopped = frozenset(reading.stopped)
    known = {word: number for word, number in numbers.items() if word not in stopped}
    text, find, group = _read(document, reading)
    if reading.pattern is None and worth_bytes(len(document)):
        which, places = _compiled(document, text, reading.lowercase, known)
    else:
        which, places = _found(find(text), group, known)
    return np.column_stack([which, *_spans_in_text(_surplus(document, text), *places.T)])


def _found(matches: Iterable[re.Match[str]], group: int, known: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of known words one after another, and the places of each in the lowered text."""
    which, starts, ends = array("q"), array("q"), array("q")
    for match in matches:
        word = match[group] or ""
        number = known.get(word)
        if number is not None:
            start = match.start(group) if word else match.start()
            which.append(number)
            starts.append(start)
            ends.append(start + len(word))
    return np.frombuffer(which, np.int64), np.column_stack([starts, ends]).astype(np.int64)


def _compiled(document: str, text: str, lowercase: bool, known: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """As `_found`: words numbered by a kernel, and runs of word characters in the same order."""
    from softcount.text.compiled import tokens_of

    tokens, words = tokens_of(spelled([document]), lowercase)
    numbers = np.fromiter((known.get(word, -1) for word in Words(*words)), np.int64, len(words[1]) - 1)
    which = numbers[tokens]
    there = which >= 0
    return which[there], np.concatenate([np.empty((0, 2), np.int64), *_runs(text)])[there]


def _runs(text: str) -> Iterator[np.ndarray]:
    """Where two or more word characters stand together, some text at a time."""
    from softcount.kernels.tokenise import PAGE
    from softcount.kernels.tokenise import WORD as MEMBER
    from softcount.text.compiled import LETTERS, learn

    outside = re.compile(r"\W")
    start = 0
    while start < len(text):
        cut = outside.search(text, start + AT_ONCE)
        stop = cut.start() if cut else len(text)
        codes = np.frombuffer(text[start:stop].encode("utf-32-le", "surrogatepass"), np.uint32)
        unasked = codes[LETTERS[codes] == 0]
        learn(np.unique(unasked // PAGE).tolist())
        inside = np.zeros(len(codes) + 2, dtype=bool)
        inside[1:-1] = LETTERS[codes] & MEMBER
        edges = np.flatnonzero(inside[1:] != inside[:-1]).reshape(-1, 2)
        yield edges[edges[:, 1] - edges[:, 0] > 1] + start
        start = stop


def _tokens(document: str, reading: Reading) -> Iterator[tuple[str, Part]]:
    """The words that are no stop words, with their places in the document as it was written."""
    text, find, group = _read(document, reading)
    surplus = _surplus(document, text)
    stopped = frozenset(reading.stopped)
    for found in find(text):
        word = found[group] or ""
        if word not in stopped:
            start, end = found.span(group) if word else (found.start(), found.start())
            yield word, (start, end) if not surplus else _placed(surplus, start, end)


def _read(document: str, reading: Reading) -> tuple[str, Callable[[str], Iterator[re.Match[str]]], int]:
    """The text that words are looked for in, what finds them, and which group of the pattern is the word."""
    pattern = re.compile(reading.pattern or WORD)
    return document.lower() if reading.lowercase else document, pattern.finditer, min(pattern.groups, 1)


def _surplus(document: str, lowered: str) -> array[int]:
    """Places in the lowered document that have no character of their own in the written one; nearly always none."""
    surplus = array("q")
    if len(lowered) != len(document):
        # Only U+0130 (a capital I with a dot) becomes two, but what Python does is asked, not known by heart.
        grown = {char: len(char.lower()) for char in set(document) if len(char.lower()) > 1}
        for found in re.finditer(f"[{re.escape(''.join(grown))}]", document):
            own = found.start() + len(surplus)
            surplus.extend(range(own + 1, own + grown[found[0]]))
    return surplus


def _placed(surplus: array[int], start: int, end: int) -> Part:
    """The characters of the document that hold these places of the lowered one."""
    first = start - bisect_right(surplus, start)
    return first, first if start == end else end - bisect_right(surplus, end - 1)


def _spans_in_text(surplus: array[int], starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `_placed`, of many words at once."""
    if not surplus:
        return starts, ends
    more = np.frombuffer(surplus, np.int64)
    first = starts - np.searchsorted(more, starts, side="right")
    return first, np.where(starts < ends, ends - np.searchsorted(more, ends - 1, side="right"), first)
