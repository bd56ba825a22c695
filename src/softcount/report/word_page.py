"""Words of text columns: those that most mark each class, and those that moved a document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from softcount.report.answer_page import bar, signed
from softcount.report.class_page import class_names
from softcount.report.page import Page, key_text
from softcount.report.passage import MOST_READ, passage
from softcount.report.plain_text import LONGEST_CELL, cell_width, counted, printable, shortened

if TYPE_CHECKING:
    from softcount.fitted.characteristic_words import DocumentWords, MarkingWord
    from softcount.fitted.fitted import Fitted
    from softcount.models.nodes import Node

FEW_CLASSES = 4
"""Up to this many classes have a table of words each; more have a line."""

MOST_MARKS = 10
"""Words of a class that a table lists; --json lists more."""

MOST_MOVES = 12
"""Words of a document that are listed; --json lists all."""

DOCUMENT_MARKS = 50
"""Words of each class in a JSON document."""

PAGE, LONGEST_WORD, LONGEST_NAME = 78, 24, 16


# -- words that mark classes


def add_marks(page: Page, fitted: Fitted, brief: bool = False) -> None:
    """For every column of text, the words that most mark each class; with their figures, unless it is to be brief."""
    from softcount.fitted.characteristic_words import marking_words, text_leaves

    names = [printable(name) for name in class_names(fitted)]
    for leaf in text_leaves(fitted):
        if not len(leaf.setting.levels):
            continue
        page.heading(_marks_heading(fitted, leaf))
        if brief or fitted.n_groups > FEW_CLASSES:
            _add_lines(page, names, marking_words(fitted, leaf, MOST_MARKS))
        else:
            _add_table(page, leaf, names, list(marking_words(fitted, leaf, MOST_MARKS)))


def _marks_heading(fitted: Fitted, leaf: Node) -> str:
    words = counted(len(leaf.setting.levels), "word")
    if fitted.n_groups == 1:
        return f"The most frequent of the {words} in {key_text(leaf.key)}"
    return f"Words of {key_text(leaf.key)} that most mark each class (of {words})"


def _add_lines(page: Page, names: Sequence[str], found: Iterable[list[MarkingWord]]) -> None:
    """A line for each class, with as many words as fit."""
    room = min(max(PAGE - max(map(cell_width, names)) - 4, LONGEST_WORD), LONGEST_CELL)
    rows = [(name, as_many([mark.word for mark in own], room)) for name, own in zip(names, found, strict=True)]
    page.grid(("class", "words"), rows)


def as_many(words: Sequence[str], room: int) -> str:
    """As many words as fit, divided by spaces; by commas where words hold spaces. Only a first one is ever cut.

    >>> as_many(["free", "prize", "claim"], 11), as_many(["free call", "now"], 15), as_many([], 9)
    ('free prize', 'free call, now', '-')
    """
    between = ", " if any(" " in word for word in words) else " "
    line = ""
    for word in map(spelled, words):
        longer = f"{line}{between}{word}" if line else shortened(word, room)
        if cell_width(longer) > room:
            break
        line = longer
    return line or "-"


def spelled(word: str) -> str:
    """A word as it is shown; one that begins or ends with a space, as runs of characters do, in quotes.

    >>> spelled("call"), spelled(" ca")
    ('call', "' ca'")
    """
    word = printable(word)
    return word if word.strip() == word else f"'{word}'"


def times(count: float) -> str:
    """How often, as a whole number where it is nearly one.

    >>> times(1948.0), times(98.31), times(3e-10)
    ('1,948', '98.3', '0')
    """
    return f"{count:,.0f}" if abs(count - round(count)) < 0.05 else f"{count:,.1f}"


def _add_table(page: Page, leaf: Node, names: Sequence[str], found: Sequence[list[MarkingWord]]) -> None:
    """The words of every class under each other, with their figures; a single class has no odds."""
    from softcount.fitted.characteristic_words import word_figures

    rows = []
    for name, own in zip(names, found, strict=True):
        for place, mark in enumerate(own):
            figures = times(mark.count), times(mark.elsewhere), signed(mark.log_odds)
            rows.append((name if place == 0 else "", shortened(spelled(mark.word), LONGEST_WORD), *figures))
    here = "documents here" if word_figures(leaf).once else "times here"
    headings = ("class", "word", here, "elsewhere", "log-odds")[: 3 if len(found) == 1 else None]
    page.grid(headings, [row[: len(headings)] for row in rows], right=headings[2:])


def marks_document(fitted: Fitted, key: Any) -> dict[str, Any]:
    """A column of text as data: how many words it has, and those that most mark each class.

    Not the probability of every word in every class: there can be millions, which the model file holds.
    """
    from softcount.fitted.characteristic_words import marking_words, text_leaves

    (leaf,) = text_leaves(fitted, key)
    own = zip(fitted.names, marking_words(fitted, leaf, DOCUMENT_MARKS), strict=True)
    return {
        "model": leaf.family.word_model,
        "words": len(leaf.setting.levels),
        "marking": [{"class": name, "words": [asdict(mark) for mark in found]} for name, found in own],
    }


# -- words that moved a document


def add_moved(page: Page, fitted: Fitted, found: DocumentWords, document: str | None) -> None:
    """The weightiest words of one document, how often its class and the other hold them, and the document, marked."""
    from softcount.fitted.characteristic_words import spots, weights

    names = class_names(fitted)
    ours, theirs = (names[group] for group in (found.groups[0], found.groups[min(1, len(found.groups) - 1)]))
    page.heading(_moved_heading(found, document))
    if found.words:
        _add_moves(page, found, names)
    places = weights(found, spots(found, document and document[:MOST_READ]))
    if document and places:
        page.heading(f"{key_text(found.key)}, with its words marked")
        page.line(passage(document, places, ours, theirs))


def beginning(document: str | None, longest: int = 32) -> str:
    """How a document begins, in one line.

    >>> beginning("Dear  Sir,\\nI write"), beginning(None)
    ('Dear Sir, I write', 'missing')
    """
    return "missing" if document is None else shortened(" ".join(document[: 8 * longest].split()), longest)


def _moved_heading(found: DocumentWords, document: str | None) -> str:
    name = key_text(found.key)
    if document is None:
        return f"{name} is missing, and says nothing"
    if not found.words and not document.strip():
        return f"{name} is empty, and says nothing"
    if not found.words:
        return f"{name} holds no word that the model knows"
    return f"Words of {name} that moved it most ({signed(found.total)} in all)"


def _add_moves(page: Page, found: DocumentWords, names: Sequence[str]) -> None:
    most = abs(found.words[0].nats)
    held = [f"in {shortened(printable(names[group]), LONGEST_NAME)}" for group in found.groups]
    rows = []
    for move in found.words[:MOST_MOVES]:
        figures = times(move.count) if move.count else "", signed(move.nats), bar(move.nats, most, width=10)
        own = [times(count) for count in move.held] or [""] * len(held)
        rows.append((shortened(spelled(move.word), LONGEST_WORD), *figures, *own))
    page.grid(("word", "times", "log-odds", "", *held), rows, right=("times", "log-odds", *held))
    rest = [move.nats for move in found.words[MOST_MOVES:]]
    if rest:
        total = f", {signed(sum(rest))} together" if isfinite(sum(rest)) else ""
        page.line(f"and {counted(len(rest), 'word')} more{total} (--json has all)")


def moved_document(fitted: Fitted, found: DocumentWords, document: str | None) -> dict[str, Any]:
    """The words of one document as data: all of them, with the places where they stand."""
    from softcount.fitted.characteristic_words import places_of

    names = [fitted.names[group] for group in found.groups]
    places = places_of(found, document)
    words = [
        {
            "word": move.word,
            "count": move.count,
            "nats": move.nats,
            "spans": places[move.word].tolist() if move.word in places else [],
            "in_classes": [{"class": name, "count": own} for name, own in zip(names, move.held, strict=False)],
        }
        for move in found.words
    ]
    return {"column": key_text(found.key), "document": document, "log_odds": found.total, "words": words}
