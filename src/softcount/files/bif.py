"""BIF, the format of the Bayesian network repositories: read from text, and written.

Read as it is found: with and without commas, bars and quotes, entries in any order, `table`, `default`, properties
and comments anywhere. In a `table` of a node with parents the node's own levels change slowest and the last parent
fastest, as the format says. How names are spelled is in `bif_words`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError
from softcount.networks.network import MOST_AXES, Graph, Network, first_bad_row, in_words, normalised
from softcount.sources.wording import and_others, cell

KEYWORDS = frozenset(("network", "variable", "probability", "property", "type", "discrete", "table", "default"))

_COMMENT = r"//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_BLANK = re.compile(rf"(?:\s++|{_COMMENT})*+")
_WORD = re.compile(rf'(?P<quoted>{_QUOTED})|(?P<plain>(?:[^\s,;{{}}()|\[\]"/]|/(?![/*]))++)', re.S)
_INTERVAL = re.compile(r'[\[(][^\s,;{}()|\[\]"]++,\s*+[^\s,;{}()|\[\]"]++[\])]')
_PLAIN = re.compile(r'[^;{}()|\[\]"/]*+')
_VALUES = re.compile(rf'(?:[^;{{}}()"/]++|{_COMMENT})*+', re.S)
_PROPERTY = re.compile(rf'(?:[^;{{}}"/]++|{_QUOTED}|{_COMMENT}|/(?![/*]))*+', re.S)
_BLOCK = re.compile(rf'(?:[^{{}}"/]++|{_QUOTED}|{_COMMENT}|/(?![/*]))*+', re.S)
_ESCAPE = re.compile(r'\\(["\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})')
_SHORT = {"n": "\n", "r": "\r", "t": "\t"}


class Word(NamedTuple):
    """A name, and whether it stood in quotes."""

    text: str
    quoted: bool


Groups = list[list[Word]]
"""Words between commas or bars."""


class BifWords:
    """A place in the text that moves on as words are taken."""

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.at = 0

    def line(self, at: int) -> int:
        return 1 + max(self.text.count("\n", 0, at), self.text.count("\r", 0, at))

    def error(self, what: str, at: int | None = None) -> DataError:
        return DataError(f"{self.source}, line {self.line(self.at if at is None else at)}: {what}")

    def peek(self) -> str:
        """The next character that is neither blank nor comment; nothing at the end of the text."""
        self.at = _end(_BLANK, self.text, self.at)
        if self.text.startswith("/*", self.at):
            raise self.error("a comment begins with /* and never ends.")
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        """Whether the mark comes next; if so, it is passed."""
        found = self.peek() == mark
        self.at += found
        return found

    def expect(self, mark: str, where: str) -> None:
        if not self.take(mark):
            raise self.error(f"{mark!r} is missing {where}; {self.found()} stands there.")

    def found(self) -> str:
        """What comes next, for a message."""
        if not self.peek():
            return "the end of the file"
        match = _WORD.match(self.text, self.at)
        shown = match[0] if match else self.text[self.at]
        return repr(shown[:40])

    def word(self) -> Word | None:
        """The next name, if it is one."""
        if self.peek() == '"':
            return self._quoted()
        match = _WORD.match(self.text, self.at)
        if not match:
            return None
        self.at = match.end()
        return Word(match[0], False)

    def _quoted(self) -> Word:
        match = _WORD.match(self.text, self.at)
        if not match:
            raise self.error("a quote is opened and never closed.")
        self.at = match.end()
        return Word(_ESCAPE.sub(_character, match[0][1:-1]), True)

    def _interval(self) -> Word | None:
        match = _INTERVAL.match(self.text, self.at)
        if not match:
            return None
        self.at = match.end()
        return Word(match[0], True)

    def groups(self, closing: str, where: str) -> Groups:
        """Words up to a closing mark, cut into groups at commas and bars."""
        end = _end(_PLAIN, self.text, self.at)
        if self.text.startswith(closing, end):  # most lists are plain: cut without looking at every word
            parts = self.text[self.at : end].split(",")
            self.at = end + 1
            return [[Word(word, False) for word in part.split()] for part in parts if not part.isspace() and part]
        found: Groups = [[]]
        while not self.take(closing):
            if self.peek() in (",", "|"):
                self.at += 1
                found.append([])
            elif word := self.word() or self._interval():
                found[-1].append(word)
            else:
                raise self.error(f"{closing!r} is missing {where}; {self.found()} stands there.")
        return [group for group in found if group]

    def values(self) -> str:
        """What stands before the next semicolon or bracket, without comments; the semicolon is passed."""
        start = self.at
        self.at = _end(_VALUES, self.text, start)
        found = self.text[start : self.at]
        if not self.take(";") and self.peek() not in ("(", "}", ""):
            raise self.error(f"numbers and then ';' are expected, not {self.found()}.")
        return re.sub(_COMMENT, " ", found) if "/" in found else found

    def pass_property(self) -> None:
        """Skip to the end of a property, which may say anything."""
        self.at = _end(_PROPERTY, self.text, self.at)
        if not self.take(";") and self.peek() != "}":
            raise self.error(f"a property must end in ';'; {self.found()} stands there.")

    def pass_block(self, began: int) -> None:
        """Skip a block in braces, and the blocks inside it; `began` is where its heading is."""
        self.expect("{", "at the beginning of a block")
        depth = 1
        while depth:
            self.at = _end(_BLOCK, self.text, self.at)
            mark = self.peek()
            if mark not in ("{", "}"):
                raise self.error(f"the block of line {self.line(began)} is not closed: {self.found()} stands there.")
            depth += 1 if mark == "{" else -1
            self.at += 1


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        return _SHORT.get(escape, escape)
    number = int(escape[1:], 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def names_of(groups: Groups, fits: Callable[[list[str]], bool]) -> list[str]:
    """The names that are meant: with blanks inside where commas divide them, and otherwise word by word.

    >>> names_of([[Word("Asia", False), Word("Minor", False)], [Word("Crete", False)]], lambda names: len(names) == 2)
    ['Asia Minor', 'Crete']
    """
    words = [word.text for group in groups for word in group]
    if all(len(group) == 1 or not any(word.quoted for word in group) for group in groups):
        joined = [" ".join(word.text for word in group) for group in groups]
        return joined if fits(joined) else words
    return words


def spelled(name: str) -> str:
    r"""The name as a BIF file has it: plain where it can be, otherwise in quotes.

    >>> print(spelled("<5"), spelled("table"), spelled("a b"), spelled('5"'), spelled("a\nb"))
    <5 "table" "a b" "5\"" "a\nb"
    """
    match = _WORD.fullmatch(name)
    if match and match["plain"] and name.isprintable() and name not in KEYWORDS:
        return name
    return '"' + "".join(map(_spelled_character, name)) + '"'


def _spelled_character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")


# What a file says of a network, gathered block by block and checked before any of it is believed.

MOST_CELLS = 1 << 26
"""Probabilities that all tables together may hold; the largest published networks have a million."""

ROUNDING = 1.001e-3
"""How far from one a sum may be that is taken for rounding: programs write three digits."""

SHOWN_CIRCLE = 8


class Variable(NamedTuple):
    """A node as it is declared, and where."""

    levels: tuple[str, ...]
    line: Callable[[], int]


class Definition(NamedTuple):
    """The probabilities of a node: (configurations x levels), and the line that gives a configuration."""

    parents: tuple[str, ...]
    rows: np.ndarray
    line_of: Callable[[int], int]


class NetworkDraft(Struct):
    """Variables and their probabilities as they are read; `network()` makes one of them."""

    source: str
    variables: dict[str, Variable] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)
    cells: int = 0

    def error(self, line: int, what: str) -> DataError:
        return DataError(f"{self.source}, line {line}: {what}")

    def declare(self, name: str, levels: Sequence[str], line: Callable[[], int]) -> None:
        """A node and its levels."""
        if name in self.variables:
            raise self.error(line(), f"node {cell(name)} is declared twice, first on line {self._declared(name)}.")
        if not levels:
            raise self.error(line(), f"node {cell(name)} has no levels.")
        if twice := _repeated(levels):
            raise self.error(line(), f"node {cell(name)} has two levels called {cell(twice[0])}.")
        self.variables[name] = Variable(tuple(levels), line)

    def _declared(self, name: str) -> int:
        return self.variables[name].line()

    def shape(self, name: str, parents: Sequence[str], line: Callable[[], int]) -> tuple[int, int]:
        """Configurations and levels of a node's table, after checking that it may be asked for."""
        for each in (name, *parents):
            if each not in self.variables:
                known = and_others(self.variables)
                raise self.error(line(), f"there is no node {cell(each)}. The file declares {known}.")
        if name in self.definitions:
            raise self.error(line(), f"the probabilities of node {cell(name)} are given twice.")
        if twice := _repeated([name, *parents]):
            raise self.error(line(), f"node {cell(twice[0])} stands twice in one list of a node and its parents.")
        if len(parents) >= MOST_AXES:
            raise self.error(line(), f"node {cell(name)} has {len(parents)} parents, more than {MOST_AXES - 1}.")
        levels = len(self.variables[name].levels)
        configurations = math.prod(len(self.variables[parent].levels) for parent in parents)
        self.cells += configurations * levels
        if self.cells > MOST_CELLS:
            size = f"{configurations * levels:,} probabilities"
            raise self.error(line(), f"node {cell(name)} would have {size}, too many with those before it.")
        return configurations, levels

    def define(self, name: str, definition: Definition) -> None:
        self.definitions[name] = definition

    def where(self, parents: Sequence[str], configuration: int) -> str:
        """A configuration of these parents, in words."""
        return in_words(parents, [self.variables[parent].levels for parent in parents], configuration)

    def network(self) -> Network:
        """The network, its graph checked for circles and the rounding in its tables mended."""
        if not self.variables:
            raise DataError(f"{self.source} declares no node: it is no network, or it is cut short.")
        for name in self.variables:
            if name not in self.definitions:
                what = f"node {cell(name)} has no probabilities: they are missing, or the file is cut short."
                raise self.error(self._declared(name), what)
        graph = self._graph()
        levels = [variable.levels for variable in self.variables.values()]
        shapes = [[len(levels[place]) for place in family] for family in graph.families]
        tables = [self._probabilities(name).reshape(shape) for name, shape in zip(self.variables, shapes, strict=True)]
        return Network(graph, levels, tables)

    def _graph(self) -> Graph:
        parents = {name: self.definitions[name].parents for name in self.variables}
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            circle = [cell(name) for name in error.args[1]]
            shown = circle if len(circle) <= SHOWN_CIRCLE else [*circle[:SHOWN_CIRCLE], "..."]
            line = self.definitions[error.args[1][0]].line_of(0)
            raise self.error(line, f"the edges run in a circle: {' -> '.join(shown)}.") from None
        number = {name: place for place, name in enumerate(parents)}
        return Graph(tuple(parents), tuple(tuple(number[name] for name in own) for own in parents.values()))

    def _probabilities(self, name: str) -> np.ndarray:
        parents, rows, line_of = self.definitions[name]
        if complaint := first_bad_row(rows, ROUNDING):
            place, what = complaint
            raise self.error(line_of(place), f"the table of node {cell(name)}{self.where(parents, place)} {what}.")
        return normalised(rows)


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def numbers(text: str) -> list[float]:
    """Numbers divided by blanks or commas; the first that is none is in the error.

    >>> numbers("1, .5 1e-3,")
    [1.0, 0.5, 0.001]
    """
    words = text.replace(",", " ").split()
    if "_" not in text:  # 1_000 is a number in Python only
        try:
            return list(map(float, words))
        except ValueError:
            pass
    raise ValueError(next(word for word in words if not _is_number(word)))


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


# BIF, the format of the Bayesian network repositories: read from text, and written.


def read_bif(text: str, source: str = "the text") -> Network:
    """The network that a BIF text describes; `source` names it in messages.

    >>> coin = read_bif("network x {} variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }")
    >>> coin.graph.names, coin.levels, coin.tables[0].tolist()
    (('c',), (('h', 't'),), [0.5, 0.5])
    """
    words, draft = BifWords(text.removeprefix("\ufeff"), source), NetworkDraft(source)
    tables = []  # read when all nodes are known
    while words.peek():
        at, word = words.at, words.word()
        block = word.text if word and not word.quoted else ""
        if block not in ("network", "variable", "probability"):
            raise words.error("no block begins here: it would be 'network', 'variable' or 'probability'.", at)
        if block == "variable":
            _read_variable(words, draft, at)
            continue
        if block == "probability":
            tables.append(words.at)
            _read_names(words)
        else:
            _read_heading(words)
        words.pass_block(at)
    for at in tables:
        words.at = at
        _read_table(words, draft)
    return draft.network()


def _read_heading(words: BifWords) -> list[str]:
    found = []
    while word := words.word():
        found.append(word)
    return names_of([found], lambda _: True) if found else []


def _read_variable(words: BifWords, draft: NetworkDraft, at: int) -> None:
    names = _read_heading(words)
    if len(names) != 1:
        raise words.error(f"a variable has one name, not {len(names)}. Put a name with blanks in quotes.", at)
    where = f"in the block of node {cell(names[0])}"
    words.expect("{", where)
    levels: list[str] = []
    while not words.take("}"):
        start, word = words.at, words.word()
        if word and word.text == "property":
            words.pass_property()
        elif word and word.text == "type" and not levels:
            levels = _read_levels(words, where)
        else:
            words.at = start
            raise words.error(f"'type' (once), 'property' or '}}' is expected {where}, not {words.found()}.")
    draft.declare(names[0], levels, lambda: words.line(at))


def _read_levels(words: BifWords, where: str) -> list[str]:
    """`discrete [ 2 ] { yes, no };`, with or without the number."""
    at, kind = words.at, words.word()
    if kind is None or kind.text != "discrete":
        raise words.error(f"only 'type discrete' is known; it is something else {where}.", at)
    said = words.groups("]", where) if words.take("[") else []
    announced = "".join(word.text for group in said for word in group)  # text: any number of digits
    words.expect("{", where)
    groups = words.groups("}", where)
    levels = names_of(groups, lambda names: len(names) > 1 if not announced else str(len(names)) == announced)
    if announced and str(len(levels)) != announced:
        raise words.error(f"{cell(announced)} levels are announced and {len(levels)} given {where}.", at)
    words.take(";")
    return levels


def _read_names(words: BifWords) -> Groups:
    words.expect("(", "after 'probability'")
    return words.groups(")", "after the names of a node and its parents")


def _read_table(words: BifWords, draft: NetworkDraft) -> None:
    at = words.at
    names = names_of(_read_names(words), lambda names: all(name in draft.variables for name in names))
    if not names:
        raise words.error("a node's name is missing after 'probability ('.", at)
    name, *parents = names
    shape = draft.shape(name, parents, lambda: words.line(at))
    entries = _Entries(words, draft, name, parents, shape)
    words.expect("{", f"after the heading of node {cell(name)}")
    while not words.take("}"):
        entries.read_one()
    entries.finish(at)


class _Entries:
    """The entries of a node's table as they are met: configurations in any order, a default, or the whole table."""

    def __init__(
        self, words: BifWords, draft: NetworkDraft, name: str, parents: list[str], shape: tuple[int, int]
    ) -> None:
        self.words, self.draft, self.name, self.parents, self.shape = words, draft, name, parents, shape
        levels = [draft.variables[parent].levels for parent in parents]
        self.numbers = [{level: number for number, level in enumerate(own)} for own in levels]
        self.rows: dict[int, list[float]] = {}
        self.places: dict[int, int] = {}
        self.default: tuple[int, list[float]] | None = None
        self.whole: tuple[int, list[float]] | None = None

    def read_one(self) -> None:
        words = self.words
        at = words.at
        if words.take("("):
            place = self._configuration(words.groups(")", f"in the table of node {cell(self.name)}"), at)
            if place in self.rows:
                raise self._error("is given twice", at, place)
            self.rows[place], self.places[place] = self._values(self.shape[1], at, place), at
            return
        word = words.word()
        kind = word.text if word and not word.quoted else ""
        if kind == "property":
            words.pass_property()
        elif kind == "table" and self.whole is None:
            self.whole = at, self._values(self.shape[0] * self.shape[1], at)
        elif kind == "default" and self.default is None:
            self.default = at, self._values(self.shape[1], at)
        else:
            words.at = at
            expected = "'(', 'table' or 'default' (once), 'property' or '}'"
            raise words.error(f"{expected} is expected in the table of node {cell(self.name)}, not {words.found()}.")

    def _error(self, what: str, at: int, place: int | None = None) -> DataError:
        given = "" if place is None else self.draft.where(self.parents, place)
        return self.words.error(f"the table of node {cell(self.name)}{given} {what}.", at)

    def _configuration(self, groups: Groups, at: int) -> int:
        """The number of the configuration that these levels of the parents are."""
        names = names_of(groups, self._are_levels)
        if len(names) != len(self.numbers):
            raise self._error(f"has an entry for {len(names)} parents instead of {len(self.numbers)}", at)
        place = 0
        for name, parent, own in zip(names, self.parents, self.numbers, strict=True):
            if name not in own:
                known = and_others(own)
                what = f"names {cell(name)}, which is no level of {cell(parent)} (it has {known})"
                raise self._error(what, at)
            place = place * len(own) + own[name]
        return place

    def _are_levels(self, names: Sequence[str]) -> bool:
        return len(names) == len(self.numbers) and all(map(dict.__contains__, self.numbers, names))

    def _values(self, count: int, at: int, place: int | None = None) -> list[float]:
        try:
            found = numbers(self.words.values())
        except ValueError as error:
            raise self._error(f"holds {cell(str(error))}, which is no number", at, place) from None
        if len(found) != count:
            raise self._error(f"needs {count:,} probabilities, not {len(found):,}", at, place)
        return found

    def finish(self, heading: int) -> None:
        """Hand the table to the draft, when it is known to be all there."""
        draft, line, places = self.draft, self.words.line, self.places
        otherwise = heading
        if self.whole:
            otherwise, values = self.whole
            if self.rows or self.default:
                raise self._error("is given as a whole and by its configurations too", otherwise)
            rows = np.array(values).reshape(self.shape[::-1]).T
        else:
            if self.default:
                otherwise = self.default[0]
            rows = self._filled(heading)
        definition = Definition(tuple(self.parents), rows, lambda place: line(places.get(place, otherwise)))
        draft.define(self.name, definition)

    def _filled(self, heading: int) -> np.ndarray:
        if not self.default and len(self.rows) < self.shape[0]:
            missing = next(place for place in range(self.shape[0]) if place not in self.rows)
            raise self._error("is not given", heading, missing)
        rows = np.empty(self.shape)
        if self.default:
            rows[:] = self.default[1]
        if self.rows:
            rows[list(self.rows)] = list(self.rows.values())
        return rows


def bif_text(network: Network) -> str:
    """The network as BIF, with every digit of its probabilities.

    >>> coin = read_bif("network x {} variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }")
    >>> print(bif_text(coin), end="")
    network unknown {
    }
    variable c {
      type discrete [ 2 ] { h, t };
    }
    probability ( c ) {
      table 0.5, 0.5;
    }
    """
    return "".join(f"{line}\n" for line in _written(network))


def _written(network: Network) -> Iterator[str]:
    names = [spelled(name) for name in network.text_names()]
    levels = [[spelled(level) for level in own] for own in network.levels]
    yield "network unknown {"
    yield "}"
    for name, own in zip(names, levels, strict=True):
        yield f"variable {name} {{"
        yield f"  type discrete [ {len(own)} ] {{ {', '.join(own)} }};"
        yield "}"
    for node, parents in enumerate(network.graph.parents):
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        yield f"probability ( {names[node]}{given} ) {{"
        rows = network.tables[node].reshape(-1, len(levels[node])).tolist()
        for configuration, row in zip(product(*(levels[parent] for parent in parents)), rows, strict=True):
            entry = f"({', '.join(configuration)})" if parents else "table"
            yield f"  {entry} {', '.join(map(repr, row))};"
        yield "}"
