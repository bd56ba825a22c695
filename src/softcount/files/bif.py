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
from collections.abc import Callable, Collection, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import islice, product
from typing import NamedTuple

import numpy as np

from softcount.errors import DataError
from softcount.files.atomic import atomic_writer
from softcount.networks.network import MOST_AXES, Graph, Network, describe_configuration, find_bad_row, normalise_rows
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
AFTER_PROBABILITY = "after 'probability'"
BRACES = frozenset(("{", "}", '"', "/*", ""))
"""Marks at which a block inside a block begins, or a block ends, or the file."""
STOPS = BRACES | {";"}

_COMMENT = r"//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/"
_PLAIN = r"""(?:[^\s,;{}()|\[\]"/]++|/(?![/*]))++"""
_QUOTED = r'"(?:[^"\\]|\\.)*+"'
_BOUND = r'[^\s,;{}()|\[\]"]++'
_INTERVAL = rf"[\[(]{_BOUND},\s*+{_BOUND}[\])]"
_NAME = re.compile(f"{_PLAIN}|{_QUOTED}|{_INTERVAL}", re.S)
_TOKEN = re.compile(rf'(?:\s++|{_COMMENT})*+({_NAME.pattern}|(?:/\*|").*+|.|\Z)', re.S)
"""A name, a single mark, a comment or a quote that never ends, or "" at the end; blanks and comments go before it."""
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
            f"networks are written as BIF, and {name!r} is not a name of a BIF file. End it in .bif or .bif.gz."
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


class Table(NamedTuple):
    """(configurations x levels) probabilities, and their positions in the text for error messages.

    `places` gives the position of a configuration, `otherwise` that of all others.
    """

    parents: tuple[str, ...]
    rows: np.ndarray
    places: dict[int, int]
    otherwise: int


Groups = list[list[str]]
"""Names as they are written, grouped by commas or bars."""


class BifReader:
    """A recursive-descent parser: tokens, the number `at` of the next one, and the nodes and tables found so far.

    The last token is "", the end of the file. A comment or a quote that never ends is a token of its first mark.
    """

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        self.tokens: list[str] = _TOKEN.findall(text)
        self.levels: dict[str, tuple[str, ...]] = {}
        self.declared: dict[str, int] = {}
        self.tables: dict[str, Table] = {}
        self.cells = 0
        for mark in ("/*", '"'):
            if len(self.tokens) > 1 and self.tokens[-2].startswith(mark) and not _NAME.fullmatch(self.tokens[-2]):
                self.tokens[-2] = mark

    # -- tokens

    def line(self, at: int) -> int:
        start = next(islice(_TOKEN.finditer(self.text), at, None)).start(1)
        return 1 + max(self.text.count("\n", 0, start), self.text.count("\r", 0, start))

    def error(self, what: str, at: int | None = None) -> DataError:
        return DataError(f"{self.source}, line {self.line(self.at if at is None else at)}: {what}")

    def shown(self) -> str:
        token = self.tokens[self.at]
        if token == "/*":
            self.name()  # raises
        return repr(token[:40]) if token else "the end of the file"

    def take(self, mark: str) -> bool:
        """Return whether the mark comes next; if so, move past it."""
        found = self.tokens[self.at] == mark
        self.at += found
        return found

    def expect(self, mark: str, where: str) -> None:
        if not self.take(mark):
            raise self.error(f"{mark!r} is missing {where}; {self.shown()} stands there.")

    def name(self) -> str:
        """Take the next name as it is written; "" if there is none."""
        token = self.tokens[self.at]
        if token in ("/*", '"'):
            what = "a comment begins with /* and never ends" if token == "/*" else "a quote is opened and never closed"
            raise self.error(f"{what}.")
        found = token if _NAME.fullmatch(token) else ""
        self.at += bool(found)
        return found

    def names(self, opening: str, closing: str, where: str) -> Groups:
        """Take a list within two marks, split into groups at commas and bars.

        A pair in parentheses was taken for an interval.
        """
        token = self.tokens[self.at]
        if len(token) > 1 and token[0] == opening and token[-1] == closing:
            self.at += 1
            return [[part.strip()] for part in token[1:-1].split(",")]
        self.expect(opening, where)
        found: Groups = [[]]
        while (token := self.tokens[self.at]) != closing:
            if token in (",", "|"):
                self.at += 1
                found.append([])
            elif name := self.name():
                found[-1].append(name)
            else:
                raise self.error(f"{closing!r} is missing {where}; {self.shown()} stands there.")
        self.at += 1
        return [group for group in found if group]

    def skip_to(self, marks: Collection[str]) -> None:
        while self.tokens[self.at] not in marks:
            self.at += 1

    def skip_property(self) -> None:
        self.skip_to(STOPS)
        if not self.take(";") and self.tokens[self.at] != "}":
            raise self.error(f"a property must end in ';'; {self.shown()} stands there.")

    def skip_block(self, began: int) -> None:
        """Skip a block in braces and the blocks inside it; `began` is the token of its heading."""
        self.expect("{", "at the beginning of a block")
        depth = 1
        while depth:
            self.skip_to(BRACES)
            if self.tokens[self.at] not in ("{", "}"):
                raise self.error(f"the block of line {self.line(began)} is not closed: {self.shown()} stands there.")
            depth += 1 if self.take("{") else -1
            self.take("}")

    # -- blocks

    def read(self) -> Network:
        tables = []  # read when all nodes are known
        while self.tokens[self.at]:
            at, block = self.at, self.name()
            if block == "variable":
                self._read_variable(at)
            elif block == "probability":
                tables.append(self.at)
                self.names("(", ")", AFTER_PROBABILITY)
                self.skip_block(at)
            elif block == "network":
                while self.name():
                    pass
                self.skip_block(at)
            else:
                raise self.error("no block begins here: it would be 'network', 'variable' or 'probability'.", at)
        for self.at in tables:
            self._read_table()
        return self._make_network()

    def _read_variable(self, at: int) -> None:
        words = []
        while word := self.name():
            words.append(word)
        names = join_names([words], lambda _: True) if words else []
        if len(names) != 1:
            raise self.error(f"a variable has one name, not {len(names)}. Put a name with blanks in quotes.", at)
        (name,) = names
        where = f"in the block of node {cell(name)}"
        self.expect("{", where)
        levels: list[str] = []
        while not self.take("}"):
            kind = self.tokens[self.at]
            if kind not in ("property", "type") or (kind == "type" and levels):
                raise self.error(f"'type' (once), 'property' or '}}' is expected {where}, not {self.shown()}.")
            self.at += 1
            if kind == "type":
                levels = self._read_levels(where)
            else:
                self.skip_property()
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
        at = self.at
        if not self.take("discrete"):
            raise self.error(f"only 'type discrete' is known; it is something else {where}.")
        size = self.names("[", "]", where) if self.tokens[self.at].startswith("[") else []
        announced = "".join(word for group in size for word in group)  # kept as text: any number of digits
        groups = self.names("{", "}", where)
        levels = join_names(groups, lambda names: str(len(names)) == announced if announced else len(names) > 1)
        if announced and str(len(levels)) != announced:
            raise self.error(f"{cell(announced)} levels are announced and {len(levels)} given {where}.", at)
        self.take(";")
        return levels

    def _read_table(self) -> None:
        heading = self.at
        names = join_names(self.names("(", ")", AFTER_PROBABILITY), lambda names: all(x in self.levels for x in names))
        if not names:
            raise self.error("a node's name is missing after 'probability ('.", heading)
        name, *parents = names
        shape = configurations, levels = self._check_shape(name, parents, heading)
        places = [{level: place for place, level in enumerate(self.levels[parent])} for parent in parents]
        rows: dict[int, list[float]] = {}
        found: dict[int, int] = {}
        whole: dict[str, list[float]] = {}
        otherwise = heading
        self.expect("{", f"after the heading of node {cell(name)}")
        while not self.take("}"):
            at, kind = self.at, self.tokens[self.at]
            if kind.startswith("("):
                place = self._read_configuration(name, parents, places)
                if place in rows:
                    raise self._table_error(name, "is given twice", at, parents, place)
                rows[place], found[place] = self._read_values(name, levels, at, parents, place), at
                continue
            if kind not in ("property", "table", "default") or kind in whole:
                expected = "'(', 'table' or 'default' (once), 'property' or '}'"
                raise self.error(f"{expected} is expected in the table of node {cell(name)}, not {self.shown()}.")
            self.at += 1
            if kind == "property":
                self.skip_property()
            else:
                otherwise = otherwise if "table" in whole else at
                whole[kind] = self._read_values(name, levels * (configurations if kind == "table" else 1), at)
        default = whole.get("default")
        if "table" in whole:
            if rows or default:
                raise self._table_error(name, "is given as a whole and by its configurations too", otherwise)
            table = np.array(whole["table"]).reshape(shape[::-1]).T
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

    def _read_configuration(self, name: str, parents: Sequence[str], places: Sequence[dict[str, int]]) -> int:
        """Read the categories of the parents, and return the index of their configuration."""

        def fits(names: Sequence[str]) -> bool:
            return len(names) == len(places) and all(map(dict.__contains__, places, names))

        at = self.at
        names = join_names(self.names("(", ")", f"in the table of node {cell(name)}"), fits)
        if len(names) != len(places):
            raise self._table_error(name, f"has an entry for {len(names)} parents instead of {len(places)}", at)
        configuration = 0
        for level, parent, own in zip(names, parents, places, strict=True):
            if level not in own:
                what = f"names {cell(level)}, which is not a level of {cell(parent)} (it has {and_others(own)})"
                raise self._table_error(name, what, at)
            configuration = configuration * len(own) + own[level]
        return configuration

    def _read_values(self, name: str, count: int, at: int, parents: Sequence[str] = (), place: int = 0) -> list[float]:
        """Read numbers up to the next semicolon or bracket; the semicolon is consumed."""
        words = []
        while (token := self.tokens[self.at]) not in STOPS and token[0] != "(":
            self.at += 1
            if token != ",":
                words.append(token)
        if not self.take(";") and token != "}" and not token.startswith("("):
            raise self.error(f"numbers and then ';' are expected, not {self.shown()}.")
        try:
            found = list(map(float, words))
            odd = [word for word in words if "_" in word]  # float() accepts 1_000, BIF does not
        except ValueError:
            odd = [word for word in words if not _is_number(word)]
        if odd:
            raise self._table_error(name, f"holds {cell(odd[0])}, which is not a number", at, parents, place)
        if len(words) != count:
            raise self._table_error(name, f"needs {count:,} probabilities, not {len(words):,}", at, parents, place)
        return found

    def _table_error(
        self, name: str, what: str, at: int, parents: Sequence[str] = (), configuration: int = 0
    ) -> DataError:
        given = describe_configuration(parents, [self.levels[parent] for parent in parents], configuration)
        return self.error(f"the table of node {cell(name)}{given} {what}.", at)

    # -- the network

    def _make_network(self) -> Network:
        """Build the network after checking that it has no cycle; rounding in its tables is corrected."""
        if not self.levels:
            raise DataError(f"{self.source} declares no node: it is not a network, or it is cut short.")
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
            raise self.error(f"the edges form a cycle: {' -> '.join(shown)}.", at) from None
        number = {name: place for place, name in enumerate(parents)}
        graph = Graph(tuple(parents), tuple(tuple(number[name] for name in own) for own in parents.values()))
        tables = []
        for name, (own, rows, places, otherwise) in ((name, self.tables[name]) for name in self.levels):
            if complaint := find_bad_row(rows, ROUNDING):
                place, what = complaint
                raise self._table_error(name, what, places.get(place, otherwise), own, place)
            tables.append(normalise_rows(rows).reshape([len(self.levels[each]) for each in (*own, name)]))
        return Network(graph, list(self.levels.values()), tables)


def join_names(groups: Groups, fits: Callable[[list[str]], bool]) -> list[str]:
    """Return names that contain blanks if commas separate them and they fit, otherwise single words.

    >>> join_names([["Asia", "Minor"], ["Crete"]], lambda names: len(names) == 2)
    ['Asia Minor', 'Crete']
    """
    if all(len(group) == 1 or not any(name[0] in '"[(' for name in group) for group in groups):
        joined = [" ".join(map(_unquoted, group)) for group in groups]
        if fits(joined):
            return joined
    return [_unquoted(name) for group in groups for name in group]


def _unquoted(name: str) -> str:
    return _ESCAPE.sub(_unescape, name[1:-1]) if name.startswith('"') else name


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

    if re.fullmatch(_PLAIN, name) and name.isprintable() and name not in KEYWORDS:
        return name
    return '"' + "".join(map(escape, name)) + '"'
