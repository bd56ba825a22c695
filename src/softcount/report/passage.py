"""A document with its weighty words marked: in colour, or by signs around them without colour."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from softcount.pictures.text import cell_width, format_count, printable

WIDTH = 78
"""Columns of a line; a page sets it in by two more."""

SHOWN_LINES = 24
"""Lines of a document that are shown; of a longer one, those with the weightiest words."""

LOOKED_AT = 1_000_000
"""Characters of a document that are looked at to show it."""

STEPS = (0.15, 0.35, 0.65)
"""Shares of the weightiest word's nats from which a word is marked, marked well, and marked most."""


class MarkedText(NamedTuple):
    """A run of characters, its nats, and how strongly it is marked: 0 to 3, below 0 for the other class."""

    text: str
    nats: float = 0.0
    tone: int = 0

    @property
    def signs(self) -> str:
        """The signs on each side of it, two if it is marked most."""
        return ("+" if self.tone > 0 else "-") * (2 if abs(self.tone) == len(STEPS) else min(abs(self.tone), 1))

    @property
    def width(self) -> int:
        """Terminal columns, with its signs."""
        return cell_width(self.text) + 2 * len(self.signs)


Line = tuple[MarkedText, ...]
Weights = Mapping[tuple[int, int], float]
"""The nats of words, by the places of their first character and of the one after the last."""


class Passage(Struct, frozen=True):
    """Lines to be shown, and the classes that marked words speak for."""

    lines: tuple[Line, ...]
    ours: str
    theirs: str

    def plain(self) -> Iterator[str]:
        """Return the lines with signs around marked words, after a line on what they mean."""
        if self.ours != self.theirs:
            yield f"+word+ speaks for {self.ours}, -word- for {self.theirs}; two signs: strongly"
        for line in self.lines:
            yield "".join(f"{piece.signs}{piece.text}{piece.signs}" for piece in line)


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
    short: list[MarkedText] = []
    used = 0
    for space, run in _split_runs(line):
        if used and used + len(space) + sum(piece.width for piece in run) > WIDTH:
            yield tuple(short)
            short, used, space = [], 0, ""
        short.append(MarkedText(space))
        used += len(space)
        for piece in (portion for whole in run for portion in _split_long(whole)):
            if used + piece.width > WIDTH and used > len(space):
                yield tuple(short)
                short, used = [], 0
            short.append(piece)
            used += piece.width
    yield tuple(piece for piece in short if piece.text)


def _split_runs(line: Iterable[MarkedText]) -> Iterator[tuple[str, list[MarkedText]]]:
    space, run = "", list[MarkedText]()
    for piece in line:
        for part in re.split(r"( +)", piece.text):
            if part.startswith(" "):
                if run:
                    yield space, run
                    space, run = "", []
                space += part
            elif part:
                run.append(piece._replace(text=part))
    if run:
        yield space, run


def _split_long(piece: MarkedText) -> list[MarkedText]:
    """Cut a piece into parts that fit a line each."""
    if piece.width <= WIDTH:
        return [piece]
    ends, width = [0], 0
    for place, char in enumerate(piece.text):
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
