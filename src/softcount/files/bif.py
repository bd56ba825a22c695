"""Read and write Bayesian networks in BIF files, plain or gzipped.

Files are accepted in all common variants: with and without commas, bars and quotes, with entries in any order, and with
`table`, `default`, properties and comments anywhere. In a `table` of a node with parents, the node's own categories
change slowest and the last parent fastest, as the format defines.
"""

from __future__ import annotations

import gzip
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.files.atomic import atomic_writer
from softcount.networks.network import MOST_AXES, Graph, Network, first_bad_row, in_words, normalised
from softcount.sources.bytestream import TextFile, as_utf8, is_passing, spooled
from softcount.sources.wording import and_others, cell

LONGEST_NETWORK = 256 << 20
"""Maximum size of the unpacked text in bytes; the largest published network has six million."""
MOST_CELLS = 1 << 26
"""Maximum number of probabilities in all tables; the largest published networks have a million."""
ROUNDING = 1.001e-3
"""Tolerance for sums of probabilities: programs write three digits."""
LONGEST_CYCLE = 8
"""Maximum number of nodes of a cycle that an error message lists."""
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


# -- files


def read_network(source: str | os.PathLike[str]) -> Network:
    """Read a network from a file, or from a string with its text.

    >>> read_network("variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }").sizes
    (2,)
    """
    if isinstance(source, str) and "{" in source and ("\n" in source or not os.path.exists(source)):
        return read_bif(source)
    path = os.fsdecode(source)
    if is_passing(path):
        copy = spooled(path)
        try:
            content = _unpack(TextFile(copy.path, path))
        finally:
            copy.remove()
    else:
        content = _unpack(TextFile(path))
    text = as_utf8(content)[0].decode()
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise DataError(f"{path} is XML, and XMLBIF networks are not read. Save the network as BIF, in a .bif file.")
    return read_bif(text, path)


def _unpack(file: TextFile) -> bytes:
    content = bytearray()
    for block in file.blocks():
        content += block
        if len(content) > LONGEST_NETWORK:
            raise DataError(f"{file.name} is longer than {LONGEST_NETWORK >> 20} MB, which no network may be.")
    return bytes(content)


def write_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a BIF file, gzipped if its name ends in .gz."""
    name = os.fsdecode(path)
    plain = name.removesuffix(".gz")
    if not plain.lower().endswith(".bif"):
        raise DataError(
            f"networks are written as BIF, and {name!r} is no name of a BIF file. End it in .bif or .bif.gz."
        )
    data = bif_text(network).encode()
    with atomic_writer(path, "wb") as out:
        out.write(data if plain == name else gzip.compress(data, mtime=0))


# -- text -> network


def read_bif(text: str, source: str = "the text") -> Network:
    """Parse a BIF text; `source` names it in error messages.

    >>> coin = read_bif("network x {} variable c { type discrete [2] {h, t}; } probability (c) { table .5 .5; }")
    >>> coin.graph.names, coin.levels, coin.tables[0].tolist()
    (('c',), (('h', 't'),), [0.5, 0.5])
    """
    return BifReader(text.removeprefix("\ufeff"), source).read()


class Word(NamedTuple):
    """A name, and whether it was quoted."""

    text: str
    quoted: bool


class Table(NamedTuple):
    """(configurations x levels) probabilities, and their positions in the text for error messages.

    `places` gives the position of a configuration, `otherwise` that of all others.
    """

    parents: tuple[str, ...]
    rows: np.ndarray
    places: dict[int, int]
    otherwise: int


Groups = list[list[Word]]
"""Words, grouped by commas or bars."""


class BifReader:
    """A parser with the text, the position `at` of the next character, and the nodes and tables found so far."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self.levels: dict[str, tuple[str, ...]] = {}
        self.declared: dict[str, int] = {}
        self.tables: dict[str, Table] = {}
        self.cells = 0

    # -- words

    def line(self, at: int) -> int:
        return 1 + max(self.text.count("\n", 0, at), self.text.count("\r", 0, at))

    def error(self, what: str, at: int | None = None) -> DataError:
        return DataError(f"{self.source}, line {self.line(self.at if at is None else at)}: {what}")

    def skip(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def peek(self) -> str:
        """Return the next character after blanks and comments; "" at the end of the text."""
        self.skip(_BLANK)
        if self.text.startswith("/*", self.at):
            raise self.error("a comment begins with /* and never ends.")
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> bool:
        """Return whether the mark comes next; if so, move past it."""
        found = self.peek() == mark
        self.at += found
        return found

    def expect(self, mark: str, where: str) -> None:
        if not self.take(mark):
            raise self.error(f"{mark!r} is missing {where}; {self.next_text()} stands there.")

    def next_text(self) -> str:
        """Return the next word or mark, for an error message."""
        if not self.peek():
            return "the end of the file"
        match = _WORD.match(self.text, self.at)
        return repr((match[0] if match else self.text[self.at])[:40])

    def word(self) -> Word | None:
        """Return the next name, or None."""
        is_quoted = self.peek() == '"'
        match = _WORD.match(self.text, self.at)
        if not match:
            if is_quoted:
                raise self.error("a quote is opened and never closed.")
            return None
        self.at = match.end()
        return Word(_ESCAPE.sub(_unescape, match[0][1:-1]) if is_quoted else match[0], is_quoted)

    def keyword(self) -> str:
        """Return the next word; "" if it is quoted or missing."""
        word = self.word()
        return word.text if word and not word.quoted else ""

    def groups(self, closing: str, where: str) -> Groups:
        """Return the words up to a closing mark, split into groups at commas and bars."""
        match = _PLAIN.match(self.text, self.at)
        if match and self.text.startswith(closing, match.end()):  # fast path: most lists are plain
            self.at = match.end() + 1
            return [[Word(word, False) for word in part.split()] for part in match[0].split(",") if part.strip()]
        found: Groups = [[]]
        while not self.take(closing):
            if self.peek() in (",", "|"):
                self.at += 1
                found.append([])
            elif word := self.word():
                found[-1].append(word)
            elif interval := _INTERVAL.match(self.text, self.at):
                found[-1].append(Word(interval[0], True))
                self.at = interval.end()
            else:
                raise self.error(f"{closing!r} is missing {where}; {self.next_text()} stands there.")
        return [group for group in found if group]

    def skip_property(self) -> None:
        self.skip(_PROPERTY)
        if not self.take(";") and self.peek() != "}":
            raise self.error(f"a property must end in ';'; {self.next_text()} stands there.")

    def skip_block(self, began: int) -> None:
        """Skip a block in braces and the blocks inside it; `began` is the position of its heading."""
        self.expect("{", "at the beginning of a block")
        depth = 1
        while depth:
            self.skip(_BLOCK)
            mark = self.peek()
            if mark not in ("{", "}"):
                began = self.line(began)
                raise self.error(f"the block of line {began} is not closed: {self.next_text()} stands there.")
            depth += 1 if mark == "{" else -1
            self.at += 1

    # -- blocks

    def read(self) -> Network:
        tables = []  # read when all nodes are known
        while self.peek():
            at, block = self.at, self.keyword()
            if block == "variable":
                self._read_variable(at)
            elif block == "probability":
                tables.append(self.at)
                self._read_names()
                self.skip_block(at)
            elif block == "network":
                while self.word():
                    pass
                self.skip_block(at)
            else:
                raise self.error("no block begins here: it would be 'network', 'variable' or 'probability'.", at)
        for self.at in tables:
            self._read_table()
        return self._make_network()

    def _read_variable(self, at: int) -> None:
        words = []
        while word := self.word():
            words.append(word)
        names = join_names([words], lambda _: True) if words else []
        if len(names) != 1:
            raise self.error(f"a variable has one name, not {len(names)}. Put a name with blanks in quotes.", at)
        (name,) = names
        where = f"in the block of node {cell(name)}"
        self.expect("{", where)
        levels: list[str] = []
        while not self.take("}"):
            start, word = self.at, self.word()
            if word and word.text == "property":
                self.skip_property()
            elif word and word.text == "type" and not levels:
                levels = self._read_levels(where)
            else:
                self.at = start
                raise self.error(f"'type' (once), 'property' or '}}' is expected {where}, not {self.next_text()}.")
        if name in self.levels:
            first = self.line(self.declared[name])
            raise self.error(f"node {cell(name)} is declared twice, first on line {first}.", at)
        if not levels:
            raise self.error(f"node {cell(name)} has no levels.", at)
        if twice := _repeated(levels):
            raise self.error(f"node {cell(name)} has two levels called {cell(twice[0])}.", at)
        self.levels[name], self.declared[name] = tuple(levels), at

    def _read_levels(self, where: str) -> list[str]:
        """Read `discrete [ 2 ] { yes, no };`, with or without the number."""
        at, kind = self.at, self.word()
        if kind is None or kind.text != "discrete":
            raise self.error(f"only 'type discrete' is known; it is something else {where}.", at)
        size = self.groups("]", where) if self.take("[") else []
        announced = "".join(word.text for group in size for word in group)  # kept as text: any number of digits
        self.expect("{", where)
        groups = self.groups("}", where)
        levels = join_names(groups, lambda names: str(len(names)) == announced if announced else len(names) > 1)
        if announced and str(len(levels)) != announced:
            raise self.error(f"{cell(announced)} levels are announced and {len(levels)} given {where}.", at)
        self.take(";")
        return levels

    def _read_names(self) -> Groups:
        self.expect("(", "after 'probability'")
        return self.groups(")", "after the names of a node and its parents")

    def _read_table(self) -> None:
        heading = self.at
        names = join_names(self._read_names(), lambda names: all(name in self.levels for name in names))
        if not names:
            raise self.error("a node's name is missing after 'probability ('.", heading)
        name, *parents = names
        shape = configurations, levels = self._check_shape(name, parents, heading)
        places = [{level: place for place, level in enumerate(self.levels[parent])} for parent in parents]
        rows: dict[int, list[float]] = {}
        found: dict[int, int] = {}
        whole: list[float] | None = None
        default: list[float] | None = None
        otherwise = heading
        self.expect("{", f"after the heading of node {cell(name)}")
        while not self.take("}"):
            at = self.at
            if self.take("("):
                place = self._read_configuration(name, parents, places, at)
                if place in rows:
                    raise self._table_error(name, "is given twice", at, parents, place)
                rows[place], found[place] = self._read_values(name, levels, at, parents, place), at
                continue
            kind = self.keyword()
            if kind == "property":
                self.skip_property()
            elif kind == "table" and whole is None:
                whole, otherwise = self._read_values(name, configurations * levels, at), at
            elif kind == "default" and default is None:
                default, otherwise = self._read_values(name, levels, at), otherwise if whole else at
            else:
                self.at = at
                expected = "'(', 'table' or 'default' (once), 'property' or '}'"
                raise self.error(f"{expected} is expected in the table of node {cell(name)}, not {self.next_text()}.")
        if whole is not None:
            if rows or default:
                raise self._table_error(name, "is given as a whole and by its configurations too", otherwise)
            table = np.array(whole).reshape(shape[::-1]).T
        else:
            if default is None and len(rows) < configurations:
                missing = next(place for place in range(configurations) if place not in rows)
                raise self._table_error(name, "is not given", heading, parents, missing)
            table = np.empty(shape)
            table[:] = 0.0 if default is None else default
            if rows:
                table[list(rows)] = list(rows.values())
        self.tables[name] = Table(tuple(parents), table, found, otherwise)

    def _check_shape(self, name: str, parents: Sequence[str], at: int) -> tuple[int, int]:
        """Return the numbers of parent configurations and of categories, after checking that the table is allowed."""
        for each in (name, *parents):
            if each not in self.levels:
                raise self.error(f"there is no node {cell(each)}. The file declares {and_others(self.levels)}.", at)
        if name in self.tables:
            raise self.error(f"the probabilities of node {cell(name)} are given twice.", at)
        if twice := _repeated([name, *parents]):
            raise self.error(f"node {cell(twice[0])} stands twice in one list of a node and its parents.", at)
        if len(parents) >= MOST_AXES:
            raise self.error(f"node {cell(name)} has {len(parents)} parents, more than {MOST_AXES - 1}.", at)
        levels = len(self.levels[name])
        configurations = math.prod(len(self.levels[parent]) for parent in parents)
        self.cells += configurations * levels
        if self.cells > MOST_CELLS:
            size = f"{configurations * levels:,} probabilities"
            raise self.error(f"node {cell(name)} would have {size}, too many with those before it.", at)
        return configurations, levels

    def _read_configuration(self, name: str, parents: Sequence[str], places: Sequence[dict[str, int]], at: int) -> int:
        """Return the index of the configuration with these parent categories."""

        def fits(names: Sequence[str]) -> bool:
            return len(names) == len(places) and all(map(dict.__contains__, places, names))

        names = join_names(self.groups(")", f"in the table of node {cell(name)}"), fits)
        if len(names) != len(places):
            raise self._table_error(name, f"has an entry for {len(names)} parents instead of {len(places)}", at)
        configuration = 0
        for level, parent, own in zip(names, parents, places, strict=True):
            if level not in own:
                what = f"names {cell(level)}, which is no level of {cell(parent)} (it has {and_others(own)})"
                raise self._table_error(name, what, at)
            configuration = configuration * len(own) + own[level]
        return configuration

    def _read_values(self, name: str, count: int, at: int, parents: Sequence[str] = (), place: int = 0) -> list[float]:
        """Read numbers up to the next semicolon or bracket; the semicolon is consumed."""
        start = self.at
        self.skip(_VALUES)
        text = self.text[start : self.at]
        if not self.take(";") and self.peek() not in ("(", "}", ""):
            raise self.error(f"numbers and then ';' are expected, not {self.next_text()}.")
        words = (re.sub(_COMMENT, " ", text) if "/" in text else text).replace(",", " ").split()
        try:
            found = list(map(float, words))
            odd = [word for word in words if "_" in word] if "_" in text else []  # float() accepts 1_000, BIF does not
        except ValueError:
            odd = [word for word in words if not _is_number(word)]
        if odd:
            raise self._table_error(name, f"holds {cell(odd[0])}, which is no number", at, parents, place)
        if len(found) != count:
            raise self._table_error(name, f"needs {count:,} probabilities, not {len(found):,}", at, parents, place)
        return found

    def _table_error(
        self, name: str, what: str, at: int, parents: Sequence[str] = (), configuration: int = 0
    ) -> DataError:
        given = in_words(parents, [self.levels[parent] for parent in parents], configuration)
        return self.error(f"the table of node {cell(name)}{given} {what}.", at)

    # -- the network

    def _make_network(self) -> Network:
        """Build the network after checking that it has no cycle; rounding in its tables is corrected."""
        if not self.levels:
            raise DataError(f"{self.source} declares no node: it is no network, or it is cut short.")
        for name, at in self.declared.items():
            if name not in self.tables:
                what = f"node {cell(name)} has no probabilities: they are missing, or the file is cut short."
                raise self.error(what, at)
        parents = {name: self.tables[name].parents for name in self.levels}
        try:
            TopologicalSorter(parents).prepare()
        except CycleError as error:
            cycle = [cell(name) for name in error.args[1]]
            shown = cycle if len(cycle) <= LONGEST_CYCLE else [*cycle[:LONGEST_CYCLE], "..."]
            table = self.tables[error.args[1][0]]
            at = table.places.get(0, table.otherwise)
            raise self.error(f"the edges run in a circle: {' -> '.join(shown)}.", at) from None
        number = {name: place for place, name in enumerate(parents)}
        graph = Graph(tuple(parents), tuple(tuple(number[name] for name in own) for own in parents.values()))
        tables = []
        for name, (own, rows, places, otherwise) in ((name, self.tables[name]) for name in self.levels):
            if complaint := first_bad_row(rows, ROUNDING):
                place, what = complaint
                raise self._table_error(name, what, places.get(place, otherwise), own, place)
            tables.append(normalised(rows).reshape([len(self.levels[each]) for each in (*own, name)]))
        return Network(graph, list(self.levels.values()), tables)


def join_names(groups: Groups, fits: Callable[[list[str]], bool]) -> list[str]:
    """Return names that contain blanks if commas separate them and they fit, otherwise single words.

    >>> join_names([[Word("Asia", False), Word("Minor", False)], [Word("Crete", False)]], lambda names: len(names) == 2)
    ['Asia Minor', 'Crete']
    """
    words = [word.text for group in groups for word in group]
    if all(len(group) == 1 or not any(word.quoted for word in group) for group in groups):
        joined = [" ".join(word.text for word in group) for group in groups]
        return joined if fits(joined) else words
    return words


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return "_" not in word


def _unescape(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) == 1:
        return _SHORT.get(escape, escape)
    number = int(escape[1:], 16)
    return chr(number) if number <= 0x10FFFF else match[0]


# -- network -> text


def bif_text(network: Network) -> str:
    """Return the network as BIF, with all digits of its probabilities.

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
    names = [spell(name) for name in network.text_names()]
    levels = [[spell(level) for level in own] for own in network.levels]
    lines = ["network unknown {", "}"]
    for name, own in zip(names, levels, strict=True):
        lines += [f"variable {name} {{", f"  type discrete [ {len(own)} ] {{ {', '.join(own)} }};", "}"]
    for node, parents in enumerate(network.graph.parents):
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        lines.append(f"probability ( {names[node]}{given} ) {{")
        rows = network.tables[node].reshape(-1, len(levels[node])).tolist()
        for configuration, row in zip(product(*(levels[parent] for parent in parents)), rows, strict=True):
            entry = f"({', '.join(configuration)})" if parents else "table"
            lines.append(f"  {entry} {', '.join(map(repr, row))};")
        lines.append("}")
    return "".join(f"{line}\n" for line in lines)


def spell(name: str) -> str:
    r"""Return the name as written in a BIF file: plain if possible, otherwise quoted.

    >>> print(spell("<5"), spell("table"), spell("a b"), spell('5"'), spell("a\nb"))
    <5 "table" "a b" "5\"" "a\nb"
    """

    def escape(char: str) -> str:
        if char in '"\\':
            return "\\" + char
        return char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode("ascii")

    match = _WORD.fullmatch(name)
    if match and match["plain"] and name.isprintable() and name not in KEYWORDS:
        return name
    return '"' + "".join(map(escape, name)) + '"'
