"""How each column is to be read, and what happens when later rows contradict the first ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from softcount.table import wording
from softcount.table.anchors import NO_ANCHOR, Anchor
from softcount.table.schema import Field, Key, Kind
from softcount.table.vocabulary import MOST_LEVELS, OTHER


class Becomes(StrEnum):
    """What a column turns into when a row contradicts what was guessed of it."""

    WORDS = "categories spelt as text"
    NUMBERS = "numbers"
    LEVELS = "categories"
    WIDE = "many categories"
    CAPPED = "the first categories and one for the rest"


class Contradiction(Exception):
    """A row that does not fit what the first rows said of its column: start again with `table.widened(this)`."""

    def __init__(self, key: Key, row: int, reason: str, becomes: Becomes) -> None:
        super().__init__(f"{wording.column(key)}, row {row}: {reason}")
        self.key = key
        self.row = row
        self.reason = reason
        self.becomes = becomes


@dataclass(frozen=True, slots=True)
class Plan:
    """One column: its field, and what its cells are read as.

    `as_numbers`: levels are numbers, also where cells are text. `constant`: the one value seen so far. `plain` and
    `logged` are anchors of the numbers and of their logarithms. `capped`: the only levels kept apart.
    `number_like`: its cells were numbers when looked at, so that it can fall back to being real. `extra`: levels that
    exist besides those seen. `seen`: levels found when looking, in order.
    """

    field: Field
    as_numbers: bool = False
    number_like: bool = False
    constant: object = None
    plain: Anchor | None = None
    logged: Anchor = NO_ANCHOR
    capped: tuple[object, ...] | None = None
    extra: tuple[object, ...] = ()
    seen: tuple[object, ...] = ()

    @property
    def key(self) -> Any:
        return self.field.key

    def as_kind(self, kind: Kind, why: str, *, used: bool = True) -> Plan:
        """The same column read as another kind, with the anchor that kind needs."""
        anchor = self.logged if kind is Kind.POSITIVE else self.plain or NO_ANCHOR
        changed = replace(self.field, kind=kind, why=why, used=used, anchor=anchor.at, scale=anchor.scale)
        return replace(self, field=changed)

    def after(self, why: Contradiction) -> Plan:
        """How to read the column once a row has contradicted this plan."""
        said = f"{why.reason} (row {why.row})"
        if why.becomes is Becomes.WORDS:
            return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=False, number_like=False, seen=())
        if why.becomes is Becomes.NUMBERS:
            return replace(self.as_kind(Kind.REAL, said), as_numbers=False)
        if why.becomes is Becomes.WIDE:
            return replace(self, field=replace(self.field, wide=True))
        return self._varying(said)

    def _varying(self, said: str) -> Plan:
        if isinstance(self.constant, float):
            return self.as_kind(Kind.REAL, said)
        as_numbers = not isinstance(self.constant, str | bool)
        return replace(self.as_kind(Kind.CATEGORICAL, said), as_numbers=as_numbers, number_like=as_numbers)

    def cap(self, levels: list[object]) -> Plan:
        """The same column with only these levels kept apart."""
        kept = (*levels[:MOST_LEVELS], OTHER)
        return replace(self, capped=kept, field=replace(self.field, wide=True))
