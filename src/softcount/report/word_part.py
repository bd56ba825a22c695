"""Words in a report: those that mark each class, as bars, and documents with the words that moved them marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from softcount.fitted.characteristic_words import (
    DocumentWords,
    explain_words,
    marking_words,
    row_of,
    spots,
    text_leaves,
    weights,
)
from softcount.pictures.curve_pictures import PANEL
from softcount.pictures.drawing import SMALL, Drawing, fitted_text, text_width
from softcount.pictures.table_pictures import label_room
from softcount.pictures.tones import class_tone
from softcount.report.discretion import FEWEST, RARE, Discretion
from softcount.report.page import Page, grid_of, key_text
from softcount.report.passage import MOST_READ, passage
from softcount.report.plain_text import counted
from softcount.report.word_page import spelled, times
from softcount.table.table import document_at

if TYPE_CHECKING:
    from softcount.evaluate.scores import PickedRow
    from softcount.fitted.characteristic_words import MarkingWord
    from softcount.fitted.fitted import Fitted
    from softcount.table import Table

MOST_CLASSES, MOST_WORDS, MOST_DOCUMENTS = 20, 10, 3


class ShownDocument(Struct, frozen=True):
    """A document of the table given, and the words that moved it."""

    row: int
    text: str
    words: DocumentWords


def shown_documents(fitted: Fitted, table: Table, picked: Sequence[PickedRow]) -> list[ShownDocument]:
    """The documents of the first rows picked, with their words explained."""
    found = []
    for row in [x.row for x in picked][:MOST_DOCUMENTS] if fitted.schema.texts else []:
        for words in explain_words(fitted, row_of(fitted, table, row)):
            text = document_at(table, words.key, row)
            if text:
                found.append(ShownDocument(row, text, words))
    return found


def add_words(page: Page, fitted: Fitted, names: Sequence[str], told: Discretion) -> None:
    """For every column of text, the words that most mark each class."""
    groups = np.sort(np.argsort(-fitted.row_shares, kind="stable")[:MOST_CLASSES]).tolist()
    for leaf in text_leaves(fitted) if fitted.schema.texts else ():
        if not len(leaf.setting.levels) or fitted.n_groups < 2:
            continue
        page.heading(f"Words of {key_text(leaf.key)} that mark each class", level=2)
        page.line(f"of {counted(len(leaf.setting.levels), 'word')}; a bar is the log-odds of the word for the class")
        found = list(marking_words(fitted, leaf, MOST_WORDS))
        for group in groups:
            shown = [_shown_mark(mark, told) for mark in found[group]]
            headings = ("word", "here", "elsewhere", "log-odds")
            rows = [(word, times(x.count), times(x.elsewhere), f"{x.log_odds:+.2f}") for word, x in shown]
            drawing = _word_bars([(word, x.log_odds) for word, x in shown], class_tone(groups.index(group)))
            page.picture(names[group], drawing, grid_of(headings, rows, right=headings[1:]), small=True)
        if fitted.n_groups > len(groups):
            page.line(f"shown are the {len(groups)} largest of {fitted.n_groups} classes")


def _shown_mark(mark: MarkingWord, told: Discretion) -> tuple[str, MarkingWord]:
    rare = told.redacted and mark.count + mark.elsewhere < FEWEST
    return RARE if rare else spelled(mark.word), mark


def _word_bars(words: Sequence[tuple[str, float]], tone: str) -> Drawing:
    line = 19.0
    left = label_room([word for word, _ in words], 130)
    drawing = Drawing(PANEL, line * max(len(words), 1) + 4, "words that mark the class")
    finite = [min(odds, 20.0) for _, odds in words]
    most = max(finite, default=1.0) or 1.0
    room = PANEL - left - text_width("+10.00", SMALL) - 8
    for place, ((word, odds), size) in enumerate(zip(words, finite, strict=True)):
        y, width = place * line, max(size, 0.0) / most * room
        drawing.text(left - 8, y + 13, fitted_text(word, left - 10), anchor="end")
        drawing.box((left, y + 3), (width, line - 7), tone, 0.85)
        drawing.text(left + width + 5, y + 13, f"{odds:+.2f}", "muted", size=SMALL)
    return drawing


def add_documents(page: Page, found: Sequence[ShownDocument], names: Sequence[str]) -> None:
    """Documents with the words that moved them marked."""
    for shown in found:
        groups = shown.words.groups
        ours, theirs = names[groups[0]], names[groups[min(1, len(groups) - 1)]]
        page.heading(f"Row {shown.row + 1}, {key_text(shown.words.key)}: {ours} rather than {theirs}", level=2)
        places = weights(shown.words, spots(shown.words, shown.text[:MOST_READ]))
        if places:
            page.line(passage(shown.text, places, ours, theirs))
        else:
            page.line("no word of it is known to the model")
