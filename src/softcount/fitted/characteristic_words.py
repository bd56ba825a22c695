"""Characteristic words of a class, and the words that decided the class of a document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.errors import DataError
from softcount.families.setting import average_prior
from softcount.families.text import Bags, list_words
from softcount.fitted.explain import explain_rows
from softcount.models.nodes import Node
from softcount.table import Chunk, Chunks, Key, Table
from softcount.table.schema import apart, label
from softcount.text import Reading
from softcount.text.count_words import Part, spans_of, spots_of

if TYPE_CHECKING:
    from softcount.fitted.fitted import Fitted

ABSENT = "(words not there)"
"""Stands for all words that a document does not contain, if absence counts."""
WHOLE = "(the text as a whole)"
"""Stands for the part that no single word contributes: the length of the document, if it was learned."""
ROUNDING = 1e-9
"""Tolerance in nats, relative to the sum over words, for rounding differences from the total."""
FEW = 4
"""Up to this number of groups, the counts of a word are shown for all of them."""
LEAST = 0.5
"""Minimum evidence in nats of a characteristic word; chance gives this much to one irrelevant word in three."""


def find_text_leaves(fitted: Fitted, key: Key | None = None) -> list[Node]:
    """Return the leaves of the text columns, or only the one of column `key`."""
    found = [leaf for leaf in fitted.model.leaves if leaf.family.facts.words]
    if not found:
        raise DataError("the model has no column of text, so there are no words. Declare one: kinds={'note': 'text'}.")
    named = [leaf for leaf in found if key is None or leaf.key == key]
    if not named:
        raise DataError(f"{key!r} is not a column of text. The model has: {', '.join(label(x.key) for x in found)}.")
    return named


def word_family(leaf: Node) -> Bags:
    return cast("Bags", leaf.family)


# -- characteristic words of a class


class CharacteristicWord(Struct, frozen=True):
    """A characteristic word of a class: its log-odds against all other classes together, in nats, and its counts.

    `evidence` is the log-likelihood ratio, in nats, of a separate rate in the class. If only presence counts, `count`
    and `elsewhere` are numbers of documents that contain the word.
    """

    word: str
    log_odds: float
    evidence: float
    count: float
    elsewhere: float


def characteristic_words(fitted: Fitted, leaf: Node, most: int) -> Iterator[list[CharacteristicWord]]:
    """Yield the characteristic words of each group, which are more frequent there than elsewhere, by evidence.

    Evidence is the log-likelihood ratio of two rates against one (half of Dunning's G2). It is low for a name that one
    document repeats and near zero for a word used everywhere; log-odds would rank the first on top and frequency the
    second. A single group yields its most frequent words with log-odds 0.
    """
    words = leaf.setting.levels
    for figures in _figures(fitted, leaf):
        odds, nats, count, _ = figures
        if fitted.n_groups == 1:
            chosen = _largest(count, most, 0.0)
        else:
            chosen = _largest(np.where(odds > 0, nats, 0.0), most, LEAST)
        yield [CharacteristicWord(str(words[i]), *(float(figure[i]) for figure in figures)) for i in chosen.tolist()]


def characteristic_lines(fitted: Fitted, leaf: Node) -> Iterator[tuple[str, str]]:
    """Yield for each group two lines: its characteristic words, and those of all other groups against it.

    A single group yields its most frequent words.
    """
    words = leaf.setting.levels
    for odds, nats, count, _ in _figures(fitted, leaf):
        if fitted.n_groups == 1:
            yield (list_words(words, count),) * 2
        else:
            here, there = (np.where(way > 0, nats, 0.0) for way in (odds, -odds))
            yield list_words(words, here, LEAST), list_words(words, there, LEAST)


def _figures(fitted: Fitted, leaf: Node) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield for each group every word's log-odds, evidence, and counts here and elsewhere; one group has odds 0."""
    counts, family = fitted.counts.arrays[leaf.key], word_family(leaf)
    hyper, how = average_prior(fitted.imagined.hypers[leaf.key]), fitted.imagined.how
    whole = counts.sum(axis=0, keepdims=True)
    for g in range(fitted.n_groups):
        here = counts[g : g + 1]
        there = whole - here
        count, rest = here.value[0], there.value[0]
        if fitted.n_groups == 1:
            odds = nats = np.zeros(len(count) - 1)
        else:
            odds, nats = family.log_odds(here, there, hyper, how), family.word_evidence(count, rest)
        yield odds, nats, count[1:], rest[1:]


def _largest(values: np.ndarray, most: int, least: float) -> np.ndarray:
    """Return the positions of the largest values above `least`, largest first; ties keep the order of the words."""
    places = np.flatnonzero(values > least)
    if 0 < most < len(places):
        enough = np.partition(values[places], len(places) - most)[len(places) - most]
        places = places[values[places] >= enough]
    return places[np.lexsort((places, -values[places]))][:most]


# -- words that decided the class of a document

Pair = tuple[int, int]
"""The group of a row, and the group it is compared with."""


class WordReason(Struct, frozen=True):
    """A word of a document: its count, its log-odds for the pair of groups in nats, and its counts in the groups."""

    word: str
    count: float
    nats: float
    held: tuple[float, ...]


class DocumentWords(Struct, frozen=True):
    """The words of one document; their nats add up to `total`, the column's contribution in an explanation.

    `groups` starts with the group of the row and the group it is compared with; the others follow if there are few.
    With `once`, only the presence of a word counts.
    """

    key: Key
    reading: Reading
    once: bool
    words: list[WordReason]
    total: float
    groups: tuple[int, ...]


def row_of(fitted: Fitted, table: Table, row: int) -> Chunk:
    """Return one row of a table, counted from 0, as a chunk."""
    seen = 0
    for chunk in fitted.chunks(table):
        if chunk.start <= row < chunk.start + chunk.n_rows:
            place = row - chunk.start
            return replace(chunk.take(slice(place, place + 1)), start=row, labels=None)
        seen += chunk.n_rows
    raise DataError(f"there is no row {row}: the table has {seen:,}. Rows are counted from 0.")


def explain_words(fitted: Fitted, chunk: Chunk, against: Any = None, key: Key | None = None) -> list[DocumentWords]:
    """Return the words of the only row of a chunk, by contribution, for each text column or only for `key`."""
    one: Any = Chunks([chunk])
    why = explain_rows(fitted, one, against)
    pair = int(why.chosen[0]), int(why.against[0])
    if against is not None and pair[0] == pair[1]:
        raise DataError(
            f"row {chunk.start} is in class {against!r} itself. "
            "Give another class for `against`, or none for the runner-up."
        )
    figures = {name: float(part[0]) for name, part in why.parts.items()}
    return [_document_words(fitted, leaf, chunk, pair, figures[leaf.key]) for leaf in find_text_leaves(fitted, key)]


def _document_words(fitted: Fitted, leaf: Node, chunk: Chunk, pair: Pair, total: float) -> DocumentWords:
    bag = chunk.bags[fitted.schema.places[leaf.key].slot]
    once = word_family(leaf).by_document and fitted.scorer.is_naive
    inside = bag.indices > 0
    places, counts = bag.indices[inside] - 1, bag.data[inside]
    nats = fitted.scorer.score_words(fitted, leaf, bag, pair)
    groups = tuple(dict.fromkeys([*pair, *(range(fitted.n_groups) if fitted.n_groups <= FEW else ())]))
    held = fitted.counts.arrays[leaf.key][list(groups)][:, places + 1].value.T.tolist()
    words = [
        WordReason(str(leaf.setting.levels[place]), count, nat, tuple(own))
        for place, count, nat, own in zip(places.tolist(), counts.tolist(), nats.tolist(), held, strict=True)
    ]
    rest = total - float(nats.sum()) if np.isfinite(nats).all() and np.isfinite(total) else 0.0
    if len(inside) and (once or abs(rest) > ROUNDING * (1.0 + float(np.abs(nats).sum()))):
        words.append(WordReason(apart(ABSENT if once else WHOLE, {word.word for word in words}), 0.0, rest, ()))
    words.sort(key=lambda word: (-abs(word.nats), word.word))
    return DocumentWords(leaf.key, fitted.schema[leaf.key].reading or Reading(), once, words, total, groups)


# -- positions in the text


def find_places(found: DocumentWords, document: str | None) -> dict[str, np.ndarray]:
    """Return for each word an (occurrences x 2) array of start and end positions."""
    words = [word.word for word in found.words if word.count]
    return {} if document is None else dict(zip(words, spans_of(document, found.reading, words), strict=True))


def weights(found: DocumentWords, document: str) -> dict[Part, float]:
    """Return the nats of every position: a word's nats divided by its occurrences, an n-gram's also by its words.

    If only presence counts, every occurrence gets the full nats. Character n-grams have no positions.
    """
    there = [word for word in found.words if word.count]
    each = {word.word: word.nats / (1.0 if found.once else max(word.count, 1.0)) for word in there}
    out: dict[Part, float] = {}
    for spot in spots_of(document, found.reading, set(each)):
        for part in (part for part in spot.parts if part[0] < part[1]):
            out[part] = out.get(part, 0.0) + each[spot.word] / len(spot.parts)
    return out
