"""A document with its weighty words marked: in colour, or by signs around them where there is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from softcount.report.plain_text import cell_width, counted, printable

WIDTH = 78
"""Columns of a line; a page sets it in by two more."""

MOST_LINES = 24
"""Lines of a document that are shown; of a longer one, those with the weightiest words."""

MOST_READ = 1_000_000
"""Characters of a document that are looked at to show it."""

STEPS = (0.15, 0.35, 0.65)
"""Shares of the weightiest word's nats from which a word is marked, marked well, and marked most."""


class MarkedText(NamedTuple):
    """A run of characters, the nats by which it moved the document, and how strongly it is marked.

    Marks go from 0 to 3, below 0 where the piece speaks for the other class.
    """

    text: str
    nats: float = 0.0
    tone: int = 0


Line = tuple[MarkedText, ...]
Weights = Mapping[tuple[int, int], float]
"""The nats of words, by the places of their first character and of the one after the last."""


class Passage(Struct, frozen=True):
    """Lines to be shown, and what marked words speak for: the class of the document, or the one it is compared with."""

    lines: tuple[Line, ...]
    ours: str
    theirs: str

    def plain(self) -> Iterator[str]:
        """The lines, and before them what the marks mean."""
        if self.ours != self.theirs:
            yield f"+word+ speaks for {self.ours}, -word- for {self.theirs}; two signs: strongly"
        for line in self.lines:
            yield "".join(between_signs(piece) for piece in line)


def between_signs(piece: MarkedText) -> str:
    """The piece between signs, two of them where it is marked most.

    >>> [between_signs(MarkedText(*parts)) for parts in (("free", 9.0, 3), ("love", -2.0, -1), ("the",))]
    ['++free++', '-love-', 'the']
    """
    signs = ("+" if piece.tone > 0 else "-") * _signs(piece)
    return f"{signs}{piece.text}{signs}"


def _signs(piece: MarkedText) -> int:
    return 2 if abs(piece.tone) == len(STEPS) else min(abs(piece.tone), 1)


def passage(document: str, weights: Weights, ours: str, theirs: str, most: int = MOST_READ) -> Passage:
    """A document wrapped into lines, its weighty words marked; of a long one the lines that matter.

    No more than `most` characters are looked at.
    """
    looked_at = document[:most].rstrip()
    lines = [short for line in _lines(looked_at, weights) for short in _wrapped(line)]
    kept = tuple(_kept(lines))
    if len(document) > most:
        kept += ((MarkedText(f"[only the first {most:,} of {len(document):,} characters were looked at]"),),)
    return Passage(kept, printable(ours), printable(theirs))


def _lines(document: str, weights: Weights) -> Iterator[list[MarkedText]]:
    """The document line by line, cut where words begin and end; nothing in it that a terminal could obey."""
    line: list[MarkedText] = []
    for piece in _cut(document, weights):
        first, *others = piece.text.split("\n")
        line.append(piece._replace(text=_harmless(first)))
        for other in others:
            yield line
            line = [piece._replace(text=_harmless(other))]
    yield line


def _cut(document: str, weights: Weights) -> Iterator[MarkedText]:
    most = max(map(abs, weights.values()), default=0.0)
    done = 0
    for (start, end), nats in sorted(weights.items()):
        strength = sum(abs(nats) >= step * most for step in STEPS) if nats else 0
        if strength and start >= done and end <= len(document):
            yield MarkedText(document[done:start])
            yield MarkedText(document[start:end], nats, strength if nats > 0 else -strength)
            done = end
    yield MarkedText(document[done:])


def _harmless(text: str) -> str:
    return printable(text.replace("\r", "").replace("\t", "    "))


# -- lines of one width


def _wrapped(line: Iterable[MarkedText]) -> Iterator[Line]:
    """The line in as many as it needs, broken at spaces, or anywhere in a run without any."""
    short: list[MarkedText] = []
    used = 0
    for space, run in _runs(line):
        width = sum(map(_width, run))
        if used and used + len(space) + width > WIDTH:
            yield tuple(short)
            short, used, space = [], 0, ""
        short.append(MarkedText(space))
        used += len(space)
        for piece in (portion for whole in run for portion in _portions(whole)):
            if used + _width(piece) > WIDTH and used > len(space):
                yield tuple(short)
                short, used = [], 0
            short.append(piece)
            used += _width(piece)
    yield tuple(piece for piece in short if piece.text)


def _width(piece: MarkedText) -> int:
    """With the signs around it."""
    return cell_width(piece.text) + 2 * _signs(piece)


def _portions(piece: MarkedText) -> list[MarkedText]:
    """The piece in parts that fit a line each."""
    if _width(piece) <= WIDTH:
        return [piece]
    ends, width = [0], 0
    for place, char in enumerate(piece.text):
        width += cell_width(char)
        if width > WIDTH - 4:
            ends.append(place)
            width = cell_width(char)
    ends.append(len(piece.text))
    return [piece._replace(text=piece.text[a:b]) for a, b in pairwise(ends)]


def _runs(line: Iterable[MarkedText]) -> Iterator[tuple[str, list[MarkedText]]]:
    """Spaces, and the pieces up to the next spaces."""
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


# -- the lines that matter


def _kept(lines: Sequence[Line]) -> Iterator[Line]:
    """All lines of a short document; of a long one those with the weightiest words, each with its neighbours."""
    if len(lines) <= MOST_LINES:
        yield from lines
        return
    shown = _weightiest(lines)
    shown |= {place for place in range(len(lines)) if {place - 1, place + 1} <= shown}  # a gap of one line is none
    after = 0
    for place in sorted(shown):
        yield from _gap(place - after)
        yield lines[place]
        after = place + 1
    yield from _gap(len(lines) - after)


def _weightiest(lines: Sequence[Line]) -> set[int]:
    ranked = sorted(range(len(lines)), key=lambda place: (-sum(abs(piece.nats) for piece in lines[place]), place))
    shown: set[int] = set()
    for place in ranked:
        near = {at for at in (place - 1, place + 1) if 0 <= at < len(lines) and lines[at]}
        more = shown | near | {place}
        if len(more) > MOST_LINES:
            break
        shown = more
    return shown


def _gap(lines: int) -> Iterator[Line]:
    if lines:
        yield (MarkedText(f"[{counted(lines, 'line')} left out]"),)
