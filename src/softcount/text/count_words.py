"""Counts of words, spans and transitions in blocks of documents."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct

from softcount.chains.counts import Alphabet, digits_of, steps_of
from softcount.errors import DataError
from softcount.text.words import BLANKS, WORD, Reading, Spelled, Words, spelled, spelled_arrow, worth_bytes

BLOCK_BYTES = 1 << 22
"""Bytes of text in a block, whatever the number of threads."""
BLOCK_DOCUMENTS = 1 << 16

Analysis = Callable[[str], list[str]]


class WordBlock(Struct, frozen=True):
    """Document i holds word `ids[j]` of `words` `counts[j]` times, for j from `indptr[i]` to `indptr[i + 1]`."""

    indptr: np.ndarray  # (documents + 1,) int64
    ids: np.ndarray  # int32
    counts: np.ndarray  # int32
    words: Words

    @property
    def n_documents(self) -> int:
        return len(self.indptr) - 1

    def only(self, rows: np.ndarray) -> WordBlock:
        """The block with other documents empty."""
        lengths = np.diff(self.indptr)
        cells = np.repeat(rows, lengths)
        ends = np.concatenate([[0], np.cumsum(np.where(rows, lengths, 0))])
        return WordBlock(ends, self.ids[cells], self.counts[cells], self.words)


def block_of(documents: Any, reading: Reading) -> WordBlock:
    """The words of documents: an Arrow array of strings, or a list of them; a null is a document without words."""
    span = spelled(documents)
    low, high = reading.ngrams
    effort = (high - low + 1) * (1 if reading.analyzer == "word" else 6)  # in Python, relative to single words
    if reading.pattern is None and worth_bytes(span.size * effort):
        from softcount.text import compiled

        return WordBlock(*compiled.counted(span, reading))
    indptr, ids, counts, found = counted(span.texts(), reading)
    return WordBlock(indptr, ids, counts, Words.of(found))


def cut(documents: Any) -> Iterator[Any]:
    """Documents in pieces of about 4 MB: spans of an Arrow array, or lists of what any other collection holds."""
    if hasattr(documents, "to_pylist"):
        for chunk in documents.chunks if hasattr(documents, "chunks") else [documents]:
            span = spelled_arrow(chunk)
            first, count = 0, len(span.hidden)
            while first < count:
                last = int(np.searchsorted(span.offsets, span.offsets[first] + BLOCK_BYTES, side="right")) - 1
                last = min(max(last, first + 1), first + BLOCK_DOCUMENTS, count)
                yield Spelled(span.data, span.offsets[first : last + 1], span.hidden[first:last])
                first = last
    else:
        piece: list[Any] = []
        size = 0
        for text in documents:
            piece.append(text)
            size += len(text) if isinstance(text, str | bytes) else 0
            if size >= BLOCK_BYTES or len(piece) == BLOCK_DOCUMENTS:
                yield piece
                piece, size = [], 0
        if piece:
            yield piece


def counted(texts: Iterable[str], reading: Reading) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """The offsets of documents, the numbers and counts of their words, and the words."""
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
    """A function from a document to its words, each as often as it occurs."""
    low, high = reading.ngrams
    find, stopped = re.compile(reading.pattern or WORD).findall, frozenset(reading.stopped)

    def split(text: str) -> list[str]:
        text = text.lower() if reading.lowercase else text
        if reading.analyzer == "word":
            words = [word for word in find(text) if word not in stopped]
            if high == 1:
                return words
            return [" ".join(words[at : at + n]) for n in range(low, high + 1) for at in range(len(words) - n + 1)]
        by_word = reading.analyzer == "char_wb"
        found: list[str] = []
        for run in [f" {word} " for word in text.split()] if by_word else [BLANKS.sub(" ", text)]:
            if by_word and len(run) < low:  # a word too short for any n-gram is one by itself
                found.append(run)
            found += [run[at : at + n] for n in range(low, high + 1) for at in range(len(run) - n + 1)]
        return found

    return split


# -- the places of words in a document, by the rules that counted them

Part = tuple[int, int]
"""The places of the first character, and after the last."""


class Spot(NamedTuple):
    """One occurrence of a word; an n-gram has a part for each word."""

    word: str
    parts: tuple[Part, ...]

    @property
    def start(self) -> int:
        return self.parts[0][0]

    @property
    def end(self) -> int:
        return self.parts[-1][1]


def spots_of(document: str, reading: Reading, wanted: Container[str]) -> Iterator[Spot]:
    """Every occurrence of the wanted words, in the order they end; n-grams of characters have no places.

    >>> [(spot.word, spot.start, spot.end) for spot in spots_of("Free! Call now, FREE.", Reading(), {"free"})]
    [('free', 0, 4), ('free', 16, 20)]
    """
    if reading.analyzer != "word":
        return
    low, high = reading.ngrams
    if high == 1:
        yield from (Spot(word, (part,)) for word, part in _tokens(document, reading, wanted))
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
    plain = reading.analyzer == "word" and reading.ngrams == (1, 1) and reading.pattern is None
    if plain and worth_bytes(len(document)):
        found = _find_single_words(document, reading, numbers)
    else:
        cells = array("q")
        for spot in spots_of(document, reading, numbers):
            cells.extend((numbers[spot.word], spot.start, spot.end))
        found = np.frombuffer(cells, np.int64).reshape(-1, 3)
    order = np.argsort(found[:, 0], kind="stable")
    edges = np.searchsorted(found[order, 0], np.arange(len(words) + 1))
    places = found[order, 1:]
    return [places[start:stop] for start, stop in pairwise(edges.tolist())]


def _find_single_words(document: str, reading: Reading, numbers: Mapping[str, int]) -> np.ndarray:
    """(occurrences x 3) the number of each word, and where it begins and ends; no Python object for each."""
    from softcount.text.compiled import find_words

    text, stopped = document.lower() if reading.lowercase else document, frozenset(reading.stopped)
    found = find_words(text, {word: number for word, number in numbers.items() if word not in stopped})
    surplus = _surplus(document, text)
    if surplus:
        found[:, 1] -= np.searchsorted(surplus, found[:, 1], side="right")
        found[:, 2] -= np.searchsorted(surplus, found[:, 2] - 1, side="right")
    return found


def _tokens(document: str, reading: Reading, wanted: Container[str] | None = None) -> Iterator[tuple[str, Part]]:
    """The words, or only those wanted, without stop words, with their places in the original document."""
    pattern = re.compile(reading.pattern or WORD)
    group = min(pattern.groups, 1)
    text = document.lower() if reading.lowercase else document
    surplus = _surplus(document, text)
    stopped = frozenset(reading.stopped)
    for found in pattern.finditer(text):
        word = found[group] or ""
        if word not in stopped and (wanted is None or word in wanted):
            start, end = found.span(group) if word else (found.start(), found.start())
            if surplus:
                first = start - bisect_right(surplus, start)
                start, end = first, first if start == end else end - bisect_right(surplus, end - 1)
            yield word, (start, end)


def _surplus(document: str, lowered: str) -> array[int]:
    """Places in the lowered document without a character in the original; nearly always none."""
    surplus = array("q")
    if len(lowered) != len(document):
        # Only U+0130 (a capital I with a dot) becomes two in today's Unicode.
        grown = {char: len(char.lower()) for char in set(document) if len(char.lower()) > 1}
        for found in re.finditer(f"[{re.escape(''.join(grown))}]", document):
            own = found.start() + len(surplus)
            surplus.extend(range(own + 1, own + grown[found[0]]))
    return surplus


# -- sequences as documents whose words are transitions between steps

TO = " → "
MOST_TRANSITIONS = 1_000_000
"""Possible transitions of a column."""


def transition_block(rows: Sequence[Sequence[Any] | str | None], reading: Reading, key: object) -> WordBlock:
    """The transitions of each row; None in a sequence is a missing step, which no transition contains.

    >>> block = transition_block(["aba", None], Reading("steps", lowercase=False), "clicks")
    >>> list(block.words), block.counts.tolist()
    ([' → a', 'a → b', 'b → a'], [1, 1, 1])
    """
    steps = [_split(row, reading) for row in rows]
    flat = [step for row in steps for step in row]
    place = {symbol: at for at, symbol in enumerate(dict.fromkeys(x for x in flat if x is not None), start=1)}
    odd = next((symbol for symbol in place if TO.strip() in symbol), None)
    if odd is not None:
        raise DataError(f"column {key!r} has the step {odd!r}: steps of sequences cannot hold an arrow. Rename it.")
    codes = np.array([0 if step is None else place[step] for step in flat], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in steps])]).astype(np.int64)
    alphabet, order = Alphabet(len(place), ends=True), reading.ngrams[0]
    found = steps_of(codes, starts, alphabet, order)
    kept = (found.digits[found.rows] <= len(place)) & (found.known == np.minimum(found.age, order))
    pairs, counts = np.unique(np.stack([found.sequence[kept], found.keys[order][kept]]), axis=1, return_counts=True)
    keys, ids = np.unique(pairs[1], return_inverse=True)
    ends = np.searchsorted(pairs[0], np.arange(len(rows) + 1))
    names = ["", *place]
    words = [TO.join(names[digit] for digit in digits) for digits in digits_of(keys, alphabet.base, order + 1).tolist()]
    return WordBlock(ends.astype(np.int64), ids.ravel().astype(np.int32), counts.astype(np.int32), Words.of(words))


def _split(row: Sequence[Any] | str | None, reading: Reading) -> list[str | None]:
    if row is None:
        return []
    if isinstance(row, str):
        return list(row) if reading.pattern is None else list(re.findall(reading.pattern, row))
    return [None if step is None or step != step or step == "" else str(step) for step in row]


def symbols_in(words: Sequence[str]) -> list[str]:
    """The steps of transitions, sorted."""
    return sorted({step for word in words for step in word.split(TO) if step})


def all_transitions(words: Words, order: int) -> Words:
    """All possible transitions between the steps of some, sorted: grouped by context, in the same order of steps."""
    symbols = symbols_in(list(words))
    size = transitions_of(len(symbols), order)
    if size > MOST_TRANSITIONS:
        raise DataError(
            f"{len(symbols):,} different steps have {size:,} transitions at order {order}, more than "
            f"{MOST_TRANSITIONS:,}. Choose a smaller order, or give rare steps one name."
        )
    if size == len(words):
        return words
    contexts = [
        (*[""] * (order - length), *before) for length in range(order + 1) for before in product(symbols, repeat=length)
    ]
    every = Words.of([TO.join((*context, symbol)) for context in contexts for symbol in symbols])
    return every.take(every.order())


def transitions_of(symbols: int, order: int) -> int:
    """The number of possible transitions between `symbols` steps."""
    return symbols * sum(int(symbols**length) for length in range(order + 1))


def symbols_behind(transitions: int, order: int) -> int:
    """The number of steps that have this number of transitions; 0 if there is none.

    >>> symbols_behind(20, 1), symbols_behind(transitions_of(7, 3), 3), symbols_behind(5, 1)
    (4, 7, 0)
    """
    near = round(transitions ** (1 / (order + 1)))
    return next((m for m in range(max(near - order - 1, 0), near + 2) if transitions_of(m, order) == transitions), 0)
