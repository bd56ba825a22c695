"""How sums are added up in the steps of a query: which tables are joined together, and what each step hands on."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from softcount.export.formulas import Code, Formula, LookUp, code_key
from softcount.export.sql_formulas import SqlNames, look_ups
from softcount.records import dataclass

MOST_JOINS = 30
"""Tables joined in one step: SQLite takes 64."""
SCORE = "s"
"""What the sum over all columns is called; a group's number follows."""


@dataclass(frozen=True)
class JoinedTable:
    """All that is looked up by one code, side by side."""

    name: str
    look_ups: tuple[LookUp, ...]

    @property
    def code(self) -> Code:
        return self.look_ups[0].code

    @property
    def numbers(self) -> np.ndarray:
        """(codes x columns of all look-ups)."""
        return np.hstack([one.table for one in self.look_ups])

    def places(self) -> Iterator[tuple[LookUp, int]]:
        """Every look-up, and the column with which its own begin."""
        first = 0
        for one in self.look_ups:
            yield one, first
            first += one.table.shape[1]


def joined_tables(asked: Sequence[LookUp]) -> list[JoinedTable]:
    """The tables that these look-ups take, in the order in which they are first asked."""
    found: dict[Hashable, dict[int, LookUp]] = {}
    for one in asked:
        found.setdefault(code_key(one.code), {})[id(one)] = one
    return [JoinedTable(f"softcount_table{place}", tuple(own.values())) for place, own in enumerate(found.values())]


@dataclass(frozen=True)
class SumStep:
    """Terms by the sum that they belong to, the places of the tables they ask, and sums that earlier steps began."""

    sums: Mapping[str, Sequence[Formula]]
    tables: Sequence[int]
    begun: frozenset[str]


def batches(sums: Mapping[str, Sequence[Formula]], places: Mapping[int, int]) -> Iterator[SumStep]:
    """Terms of sums in parts, none of which asks more tables than a step can join."""
    items = [
        (sorted({places[id(one)] for one in look_ups(term) if id(one) in places}), own, term)
        for own, all_ in sums.items()
        for term in all_
    ]
    begun: set[str] = set()
    part: dict[str, list[Formula]] = {}
    tables: set[int] = set()
    for needed, own, term in sorted(items, key=lambda item: item[0][-1:]):
        if part and len(tables | set(needed)) > MOST_JOINS:
            yield SumStep(part, sorted(tables), frozenset(begun & set(part)))
            begun |= set(part)
            part, tables = {}, set()
        part.setdefault(own, []).append(term)
        tables |= set(needed)
    yield SumStep(part, sorted(tables), frozenset(begun & set(part)))


def asked_later(parts: Sequence[SumStep], names: SqlNames) -> list[list[str]]:
    """For every batch the columns that those after it need, sums by their name alone."""
    needed: set[str] = set()
    found: list[list[str]] = []
    for part in reversed(parts):
        found.append(sorted(needed))
        needed -= set(part.sums) - part.begun
        needed |= part.begun
        for terms in part.sums.values():
            for term in terms:
                needed |= names.asked(term)
    return found[::-1]
