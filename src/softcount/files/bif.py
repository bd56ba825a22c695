"""BIF, the format of the Bayesian network repositories: read from text, and written.

Read as it is found: with and without commas, bars and quotes, entries in any order, `table`, `default`, properties
and comments anywhere. In a `table` of a node with parents the node's own levels change slowest and the last parent
fastest, as the format says. How names are spelled is in `bif_words`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from softcount.errors import DataError
from softcount.files.bif_words import BifWords, Groups, names_of, spelled
from softcount.files.network_draft import Definition, NetworkDraft, numbers
from softcount.networks.network import Network
from softcount.sources.wording import and_others, cell


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
