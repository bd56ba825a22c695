"""What a file says of a network, gathered block by block and checked before any of it is believed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from softcount.errors import DataError
from softcount.networks.network import MOST_AXES, Graph, Network, first_bad_row, in_words, normalised
from softcount.sources.wording import and_others, cell

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
