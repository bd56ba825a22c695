"""The example of each family, and tables of its kind that Hypothesis makes.

A family without an example in `family_examples.py` fails `test_every_registered_family_has_an_example`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from contract import family_examples
from softcount.families import Family

Row = tuple[Any, ...]
Key = Any

TRIES = int(os.environ.get("SOFTCOUNT_TRIES", "0"))
"""Tables that Hypothesis makes for each law and family; set it to look harder, with new tables every time."""

LAWS = settings(
    max_examples=TRIES or 3,
    derandomize=not TRIES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # these tables are small; making them smaller takes minutes
    suppress_health_check=list(HealthCheck),
)


def laws(example: Any) -> Any:
    """A table more where nothing is hidden, so that a fit is one pass."""
    return settings(LAWS, max_examples=TRIES or 4) if example.family.facts.exact else LAWS


TYPES = {"levels": pa.string(), "documents": pa.string(), "sequences": pa.string(), "counts": pa.int64()}


@dataclass(frozen=True)
class Example:
    """A family's own example, and how Hypothesis makes more of its rows."""

    plain: family_examples.Example

    @property
    def family(self) -> Family:
        return self.plain.family

    @property
    def columns(self) -> tuple[str, ...]:
        return self.plain.columns

    @property
    def values(self) -> tuple[Row, ...]:
        return self.plain.values

    @property
    def types(self) -> tuple[pa.DataType, ...]:
        return tuple(TYPES.get(cells.what, pa.float64()) for cells in self.plain.cells)

    @property
    def title(self) -> str:
        """The family's name with the settings it differs by."""
        own = [
            (getattr(self.family, part.name), part.default) for part in signature(type(self.family)).parameters.values()
        ]
        return "-".join([self.family.name, *(str(value) for value, usual in own if value != usual)])

    @property
    def kinds(self) -> dict[Key, Family | str]:
        said = "categorical" if self.family.facts.needs_levels else self.family
        return {self.columns: said} if self.family.facts.block else dict.fromkeys(self.columns, said)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of `params_`: each column, or the block."""
        return (self.columns,) if self.family.facts.block else self.columns

    @property
    def needs_values(self) -> bool:
        """Whether the family refuses a table without any level or word."""
        return self.family.facts.needs_levels or self.plain.cells[0].what in ("documents", "sequences")

    @property
    def climbs(self) -> bool:
        """Whether classes need not be known."""
        return not self.family.facts.needs_classes

    @property
    def is_product(self) -> bool:
        """Whether its density can be written as features times natural parameters, in all digits or not."""
        return self.family.facts.has_products and self.family.facts.kind.numeric

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """An Arrow table of these rows; None is a missing cell."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.types, strict=True)]
        return pa.table(arrays, names=list(self.columns))

    def leaf_cells(self, rows: Sequence[Row], key: Key) -> list[Any]:
        """The cells of one leaf, as the oracle wants them: values, or tuples for a block."""
        return list(rows) if self.family.facts.block else [row[self.columns.index(key)] for row in rows]

    def units(self) -> Any:
        """Offsets and scales of the columns."""
        each = [st.tuples(st.sampled_from(x.offsets), st.sampled_from(x.scales)) for x in self.plain.cells]
        return each[0].map(lambda unit: [unit] * len(each)) if self.plain.one_unit else st.tuples(*each)

    def rows(self, units: Any, holes: bool = True) -> Any:
        """The cells of one row in these units."""
        made = [cell(cells, unit) for cells, unit in zip(self.plain.cells, units, strict=True)]
        if self.plain.rising:
            whole = st.tuples(*made).map(lambda row: tuple(sorted(row)))
            return st.one_of(whole, whole, whole, st.tuples(*map(st.one_of, made, [st.none()] * len(made)))
                             .filter(lambda row: None in row))  # fmt: skip
        return st.tuples(*(kept(one) if holes else one for one in made))


def kept(cell: Any) -> Any:
    """Mostly the cell, now and then nothing."""
    return st.one_of(cell, cell, cell, st.none())


def cell(cells: family_examples.Cells, unit: tuple[float, float]) -> Any:
    """A cell that is there; numbers lie within eight units of the offset, on a grid fine enough to be awkward."""
    offset, scale = unit
    steps = st.integers(-128, 128)
    return {
        "levels": st.sampled_from(cells.among or ("",)),
        "documents": st.lists(st.sampled_from(cells.among or ("",)), max_size=6).map(" ".join),
        "sequences": st.lists(st.sampled_from(cells.among or ("",)), max_size=6).map("".join),
        "counts": st.integers(0, cells.most),
        "reals": steps.map(lambda step: (offset + step / 16) * scale),
        "positives": steps.map(lambda step: float(np.exp(step / 64)) * scale),
        "waits": st.one_of(st.just(0.0), steps.map(lambda step: float(np.exp(step / 32)) * scale)),
    }[cells.what]


EXAMPLES = tuple(Example(plain) for plain in family_examples.EXAMPLES)

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
every_climb = pytest.mark.parametrize("example", [e for e in EXAMPLES if e.climbs], ids=lambda e: e.title)
"""The examples that EM can learn."""
SUMS = tuple(example for example in EXAMPLES if example.family.facts.mergeable)
every_sum = pytest.mark.parametrize("example", SUMS, ids=lambda example: example.title)
"""The examples whose counts add from one fit to another."""


@st.composite
def rows_of(draw: Any, example: Example, least: int = 6, most: int = 18, whole: bool = False) -> list[Row]:
    """Rows of an example's kind: nulls, huge offsets and tiny scales; now and then every row is the same.

    With `whole` a block has no holes: those of a family whose statistics are not exact.
    """
    cells = example.rows(draw(example.units()), holes=not whole or example.family.facts.exact)
    rows = draw(st.lists(cells, min_size=least, max_size=most))
    if draw(st.integers(0, 7)) == 0:
        rows = [rows[0]] * len(rows)
    if example.needs_values:
        rows[:2] = example.values[:2]
    return rows


@st.composite
def labelled(draw: Any, example: Example, whole: bool = False, gaps: bool = False, **sizes: int) -> Any:
    """Rows and a class for each; with `gaps` some classes are not known. The first rows have one class each."""
    rows = draw(rows_of(example, whole=whole, **sizes))
    drawn = draw(st.lists(st.sampled_from("uv"), min_size=len(rows), max_size=len(rows)))
    names: list[Any] = ["u", "v", *drawn[2:]]
    if gaps:
        hidden = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        names = [None if hide and i >= 2 else name for i, (hide, name) in enumerate(zip(hidden, names, strict=True))]
    return rows, names


def weights_for(rows: int) -> Any:
    """Row weights; the first two rows have some, so that both classes do."""
    some = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.25])
    return st.lists(some, min_size=rows, max_size=rows).map(lambda drawn: [1.0, 2.0, *drawn[2:]])
