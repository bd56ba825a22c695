"""Words of text columns: those characteristic of each class, and those that moved a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from softcount.fitted import characteristic_words
from softcount.pictures.chart import PANEL, bar_chart
from softcount.pictures.drawing import class_tone
from softcount.pictures.text import CELL_LIMIT, cell_width, format_count, printable, shorten
from softcount.report.class_pictures import View, describe_prediction
from softcount.report.page import RARE, WIDTH, MarkedText, Page, Passage, key_text, make_grid, pick
from softcount.table.table import document_at

if TYPE_CHECKING:
    from softcount.evaluate.scores import PickedRow
    from softcount.fitted.characteristic_words import CharacteristicWord, DocumentWords
    from softcount.fitted.fitted import Fitted
    from softcount.table import Table

TABLE_CLASSES = 4
"""Up to this many classes have a table of words each; more have a line."""
PAGE_WORDS, JSON_WORDS, MOVED_WORDS = 10, 50, 12
"""Words of a class on a page and in JSON, and words of a document on a page; JSON has all of those."""
PICTURE_CLASSES, PICTURE_DOCUMENTS = 20, 3
WORD_LIMIT, NAME_LIMIT = 24, 16
SHOWN_LINES = 24
"""Lines of a document that are shown; of a longer one, those with the weightiest words."""
LOOKED_AT = 1_000_000
"""Characters of a document that are looked at to show it."""
STEPS = (0.15, 0.35, 0.65)
"""Shares of the weightiest word's nats from which a word is marked, marked well, and marked most."""


# -- words of classes


def add_words(page: Page, view: View, brief: bool = False) -> None:
    """Add the most characteristic words of each class, for every text column.

    They are a table with figures; if `brief` or of many classes a line for each class; in full a picture for each.
    """
    fitted, names = view.fitted, view.names
    for leaf in characteristic_words.find_text_leaves(fitted) if fitted.schema.texts else ():
        count, column = len(leaf.setting.levels), key_text(leaf.key)
        if not count or (view.full and fitted.n_groups < 2):
            continue
        words = format_count(count, "word")
        found = list(characteristic_words.characteristic_words(fitted, leaf, PAGE_WORDS))
        if view.full:
            page.heading(f"Characteristic words of {column}", level=2)
            page.line(f"of {words}, the most characteristic first; a bar is the log-odds of the word for the class")
            _add_word_pictures(page, view, found)
            continue
        if fitted.n_groups == 1:
            page.heading(f"The most frequent of the {words} in {column}")
        else:
            page.heading(f"Characteristic words of {column} (of {words})")
        if brief or fitted.n_groups > TABLE_CLASSES:
            shown = [printable(name) for name in names]
            room = min(max(WIDTH - max(map(cell_width, shown)) - 4, WORD_LIMIT), CELL_LIMIT)
            lines = [(name, join_fitting([x.word for x in own], room)) for name, own in zip(shown, found, strict=True)]
            page.grid(("class", "words"), lines)
            continue
        rows = []
        for name, own in zip(names, found, strict=True):
            for place, mark in enumerate(own):
                figures = format_times(mark.count), format_times(mark.elsewhere), format_signed(mark.log_odds)
                rows.append((name if place == 0 else "", shorten(quote_spaces(mark.word), WORD_LIMIT), *figures))
        here = "documents here" if characteristic_words.word_family(leaf).by_document else "times here"
        headings = ("class", "word", here, "elsewhere", "log-odds")[: 3 if len(found) == 1 else None]
        page.grid(headings, [row[: len(headings)] for row in rows], right=headings[2:])


def _add_word_pictures(page: Page, view: View, found: Sequence[list[CharacteristicWord]]) -> None:
    groups = view.largest(PICTURE_CLASSES).tolist()
    for place, group in enumerate(groups):
        own = found[group]
        shown = [quote_spaces(x.word) if view.redaction.allows(x.count + x.elsewhere) else RARE for x in own]
        odds = [f"{x.log_odds:+.2f}" for x in own]
        chart = bar_chart(
            shown, [min(x.log_odds, 20.0) for x in own], odds, "characteristic words of the class",
            tones=[class_tone(place)], room=130, width=PANEL, height=19.0,
        )  # fmt: skip
        figures = [(format_times(x.count), format_times(x.elsewhere)) for x in own]
        grid = make_grid(
            ("word", "here", "elsewhere", "log-odds"),
            [(word, *counts, x) for word, counts, x in zip(shown, figures, odds, strict=True)], None,
        )  # fmt: skip
        page.picture(view.names[group], chart, grid, small=True)
    if len(found) > len(groups):
        page.line(f"shown are the {len(groups)} largest of {len(found)} classes")


def join_fitting(words: Sequence[str], room: int) -> str:
    """Join as many words as fit, by spaces, or by commas if words hold spaces; only a first one is ever cut.

    >>> join_fitting(["free", "prize", "claim"], 11), join_fitting(["free call", "now"], 15), join_fitting([], 9)
    ('free prize', 'free call, now', '-')
    """
    between = ", " if any(" " in word for word in words) else " "
    line = ""
    for word in map(quote_spaces, words):
        longer = f"{line}{between}{word}" if line else shorten(word, room)
        if cell_width(longer) > room:
            break
        line = longer
    return line or "-"


def quote_spaces(word: str) -> str:
    """Put a word that begins or ends with a space, as runs of characters do, in quotes.

    >>> quote_spaces("call"), quote_spaces(" ca")
    ('call', "' ca'")
    """
    word = printable(word)
    return word if word.strip() == word else f"'{word}'"


def format_times(count: float) -> str:
    """Format a count, as a whole number if it is nearly one.

    >>> format_times(1948.0), format_times(98.31), format_times(3e-10)
    ('1,948', '98.3', '0')
    """
    return f"{count:,.0f}" if abs(count - round(count)) < 0.05 else f"{count:,.1f}"


def format_signed(value: float) -> str:
    """Format log-odds with their sign.

    >>> format_signed(2134.56), format_signed(-0.2), format_signed(-0.0049), format_signed(0.0)
    ('+2,134.56', '-0.20', '0.00', '0')
    """
    if abs(value) < 0.005:
        return "0" if value == 0 else "0.00"
    return f"{value:+,.2f}"


def format_bar(value: float, most: float, width: int = 20) -> str:
    """Draw a value as signs, as many as its share of the largest.

    >>> format_bar(1.0, 2.0, width=4), format_bar(-2.0, 2.0, width=4)
    ('++', '----')
    """
    length = round(width * abs(value) / most) if 0 < most < float("inf") else 0
    return ("+" if value > 0 else "-") * length


def find_text_column(fitted: Fitted, key: Any) -> dict[str, Any]:
    """Return a text column as data: its word model, how many words it has, and the characteristic words of each class.

    Not the probability of every word in every class: there can be millions, which the model file holds.
    """
    (leaf,) = characteristic_words.find_text_leaves(fitted, key)
    own = zip(fitted.names, characteristic_words.characteristic_words(fitted, leaf, JSON_WORDS), strict=True)
    characteristic = [{"class": name, "words": found} for name, found in own]
    return {
        "model": characteristic_words.word_family(leaf).model,
        "words": len(leaf.setting.levels),
        "characteristic_words": characteristic,
    }


# -- words of documents


class ShownDocument(Struct, frozen=True):
    row: PickedRow
    text: str
    words: DocumentWords


def find_documents(fitted: Fitted, table: Table, picked: Sequence[PickedRow]) -> list[ShownDocument]:
    found = []
    for row in picked[:PICTURE_DOCUMENTS] if fitted.schema.texts else []:
        for words in characteristic_words.explain_words(fitted, characteristic_words.row_of(fitted, table, row.row)):
            text = document_at(table, words.key, row.row)
            if text:
                found.append(ShownDocument(row, text, words))
    return found


def add_documents(page: Page, found: Iterable[ShownDocument], names: Sequence[str]) -> None:
    for shown in found:
        predicted, why = describe_prediction(shown.row, names)
        page.heading(f"Row {shown.row.row + 1}, {key_text(shown.words.key)}: {predicted}", level=2)
        passages = _find_passage(shown.words, shown.text, names)
        page.line(why, *passages, *([] if passages else ["the model knows none of its words"]))


def _find_passage(found: DocumentWords, document: str | None, names: Sequence[str]) -> list[Passage]:
    """Mark the words of a document; nothing without words that the model knows."""
    places = characteristic_words.weights(found, document[:LOOKED_AT]) if document else {}
    if not document or not places:
        return []
    ours, theirs = found.groups[0], found.groups[min(1, len(found.groups) - 1)]
    return [make_passage(document, places, names[ours], names[theirs])]


def add_moved_words(page: Page, found: DocumentWords, document: str | None, names: Sequence[str]) -> None:
    """Add the weightiest words of a document, how often its class and the other hold them, and the marked document."""
    column = key_text(found.key)
    if document is None:
        page.heading(f"{column} is missing, and adds nothing")
    elif not found.words:
        state = "holds no word that the model knows" if document.strip() else "is empty, and adds nothing"
        page.heading(f"{column} {state}")
    else:
        page.heading(f"Words of {column} that moved it most ({format_signed(found.total)} in all)")
    if found.words:
        most = abs(found.words[0].nats)
        held = [f"in {shorten(printable(names[group]), NAME_LIMIT)}" for group in found.groups]
        rows = []
        for move in found.words[:MOVED_WORDS]:
            times = format_times(move.count) if move.count else ""
            own = [format_times(count) for count in move.held] or [""] * len(held)
            odds, drawn = format_signed(move.nats), format_bar(move.nats, most, width=10)
            rows.append((shorten(quote_spaces(move.word), WORD_LIMIT), times, odds, drawn, *own))
        page.grid(("word", "times", "log-odds", "", *held), rows, right=("times", "log-odds", *held))
        rest = [move.nats for move in found.words[MOVED_WORDS:]]
        if rest:
            total = f", {format_signed(sum(rest))} together" if isfinite(sum(rest)) else ""
            page.line(f"and {format_count(len(rest), 'word')} more{total} (--json has all)")
    for passage in _find_passage(found, document, names):
        page.heading(f"{column}, with its words marked")
        page.line(passage)


def begin_document(document: str | None, longest: int = 32) -> str:
    """Return the beginning of a document in one line.

    >>> begin_document("Dear  Sir,\\nI write"), begin_document(None)
    ('Dear Sir, I write', 'missing')
    """
    return "missing" if document is None else shorten(" ".join(document[: 8 * longest].split()), longest)


def find_moved_words(fitted: Fitted, found: DocumentWords, document: str | None) -> dict[str, Any]:
    names = [fitted.names[group] for group in found.groups]
    places = characteristic_words.find_places(found, document)
    words = [
        {
            **pick(move, "word", "count", "nats"),
            "spans": places[move.word].tolist() if move.word in places else [],
            "in_classes": [{"class": name, "count": own} for name, own in zip(names, move.held, strict=False)],
        }
        for move in found.words
    ]
    return {"column": key_text(found.key), "document": document, "log_odds": found.total, "words": words}


# -- documents with their words marked

Line = tuple[MarkedText, ...]
Weights = Mapping[tuple[int, int], float]
"""The nats of words, by the places of their first character and of the one after the last."""


def make_passage(document: str, weights: Weights, ours: str, theirs: str, most: int = LOOKED_AT) -> Passage:
    """Wrap a document into lines and mark its weighty words; of a long one keep the lines that matter.

    No more than `most` characters are looked at.
    """
    lines = [short for line in _mark_lines(document[:most].rstrip(), weights) for short in _wrap(line)]
    kept = tuple(_choose_lines(lines))
    if len(document) > most:
        kept += ((MarkedText(f"[only the first {most:,} of {len(document):,} characters were looked at]"),),)
    return Passage(kept, printable(ours), printable(theirs))


def _mark_lines(document: str, weights: Weights) -> Iterator[list[MarkedText]]:
    """Cut each line where words begin and end; control characters are escaped."""
    most = max(map(abs, weights.values()), default=0.0)
    done, pieces = 0, []
    for (start, end), nats in sorted(weights.items()):
        strength = sum(abs(nats) >= step * most for step in STEPS) if nats else 0
        if strength and start >= done and end <= len(document):
            pieces.append(MarkedText(document[done:start]))
            pieces.append(MarkedText(document[start:end], nats, strength if nats > 0 else -strength))
            done = end
    line: list[MarkedText] = []
    for piece in (*pieces, MarkedText(document[done:])):
        for place, text in enumerate(piece.text.split("\n")):
            if place:
                yield line
                line = []
            line.append(piece._replace(text=printable(text.replace("\r", "").replace("\t", "    "))))
    yield line


def _wrap(line: Iterable[MarkedText]) -> Iterator[Line]:
    """Break a line at spaces, or anywhere in a run without any."""
    runs: list[tuple[str, list[MarkedText]]] = [("", [])]  # the spaces before a run, and its pieces
    for piece in line:
        for part in re.split(r"( +)", piece.text):
            if part.startswith(" "):
                runs.append((part if runs[-1][1] else runs.pop()[0] + part, []))
            elif part:
                runs[-1][1].append(piece._replace(text=part))
    short: list[MarkedText] = []
    used = 0
    for space, run in runs:
        if not run:
            continue
        if used and used + len(space) + sum(piece.width for piece in run) > WIDTH:
            yield tuple(short)
            short, used, space = [], 0, ""
        short.append(MarkedText(space))
        used += len(space)
        for piece in (portion for whole in run for portion in _split(whole)):
            if used + piece.width > WIDTH and used > len(space):
                yield tuple(short)
                short, used = [], 0
            short.append(piece)
            used += piece.width
    yield tuple(piece for piece in short if piece.text)


def _split(piece: MarkedText) -> list[MarkedText]:
    ends, width = [0], 0
    for place, char in enumerate(piece.text if piece.width > WIDTH else ""):
        width += cell_width(char)
        if width > WIDTH - 4:
            ends.append(place)
            width = cell_width(char)
    return [piece._replace(text=piece.text[a:b]) for a, b in pairwise([*ends, len(piece.text)])]


def _choose_lines(lines: Sequence[Line]) -> Iterator[Line]:
    """Keep all lines of a short document; of a long one those with the weightiest words, and their neighbours."""
    if len(lines) <= SHOWN_LINES:
        yield from lines
        return
    shown: set[int] = set()
    for place in sorted(range(len(lines)), key=lambda at: (-sum(abs(piece.nats) for piece in lines[at]), at)):
        more = shown | {place} | {at for at in (place - 1, place + 1) if 0 <= at < len(lines) and lines[at]}
        if len(more) > SHOWN_LINES:
            break
        shown = more
    shown |= {place for place in range(len(lines)) if {place - 1, place + 1} <= shown}  # a gap of one line is none
    after = 0
    for place in (*sorted(shown), len(lines)):
        if place > after:
            yield (MarkedText(f"[{format_count(place - after, 'line')} left out]"),)
        if place < len(lines):
            yield lines[place]
        after = place + 1
