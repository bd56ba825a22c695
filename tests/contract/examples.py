"""One example for every family of the registry, and tables of its kind that Hypothesis makes.

A family without an entry here fails `test_every_registered_family_has_an_example`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from softcount.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Family,
    GammaFamily,
    Joint,
    LogNormal,
    Multinomial,
    Multinormal,
    Normal,
    Poisson,
    Student,
    Text,
)

Row = tuple[Any, ...]
Key = Any

TRIES = int(os.environ.get("SOFTCOUNT_TRIES", "0"))
"""Tables that Hypothesis makes for each law and family; set it to look harder, with new tables every time."""

LAWS = settings(
    max_examples=TRIES or 4,
    derandomize=not TRIES,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # these tables are small; making them smaller takes minutes
    suppress_health_check=list(HealthCheck),
)


TOLD_BY = ("tied", "variance", "covariance", "freedom", "model")
"""Settings that two examples of one family differ by."""


@dataclass(frozen=True)
class Example:
    """A family, the columns of a table it models, rows of that table, and how Hypothesis makes more of them.

    `cells` makes the cells of one row, given the units (an offset and a scale) of each column.
    """

    family: Family
    columns: tuple[str, ...]
    values: tuple[Row, ...]
    cells: Any
    types: tuple[pa.DataType, ...]
    units: tuple[Any, ...] = ()
    dotted: bool = False

    @property
    def title(self) -> str:
        """The family's name with the settings it differs by."""
        own = [str(getattr(self.family, name, None)) for name in TOLD_BY]
        return "-".join([self.family.name, *(word for word in own if word not in ("None", "full", "multinomial"))])

    @property
    def kinds(self) -> dict[Key, Family | str]:
        said = "categorical" if isinstance(self.family, Joint) else self.family
        return {self.columns: said} if self.family.block else dict.fromkeys(self.columns, said)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of `params_`: each column, or the block."""
        return (self.columns,) if self.family.block else self.columns

    @property
    def needs_values(self) -> bool:
        """Whether the family refuses a table without any level or word."""
        return isinstance(self.family, (Joint, Text))

    def table(self, rows: Sequence[Row]) -> pa.Table:
        """An Arrow table of these rows; None is a missing cell."""
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(self.columns)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, self.types, strict=True)]
        return pa.table(arrays, names=list(self.columns))

    def leaf_cells(self, rows: Sequence[Row], key: Key) -> list[Any]:
        """The cells of one leaf, as the oracle wants them: values, or tuples for a block."""
        return list(rows) if self.family.block else [row[self.columns.index(key)] for row in rows]


def kept(cell: Any) -> Any:
    """Mostly the cell, now and then nothing."""
    return st.one_of(cell, cell, cell, st.none())


def levels(*names: str) -> Any:
    return kept(st.sampled_from(names))


def near(offset: float, scale: float) -> Any:
    """A number within eight units of the offset, on a grid fine enough to be awkward."""
    return st.integers(-128, 128).map(lambda step: (offset + step / 16) * scale)


REAL_UNITS = st.tuples(st.sampled_from([0.0, 0.0, 1e8, -1e8]), st.sampled_from([1.0, 1.0, 3e-7, 1e-100, 1e100]))
PLAIN_UNITS = st.tuples(st.sampled_from([0.0, 1e8]), st.just(1.0))
FEW = kept(st.integers(0, 9))
MANY = kept(st.integers(0, 30))


def _reals(*units: tuple[float, float], holes: bool = True) -> Any:
    return st.tuples(*(kept(near(*unit)) if holes else near(*unit) for unit in units))


def _in_one_unit(unit: tuple[float, float], holes: bool = True) -> Any:
    return _reals(unit, unit, holes=holes)


def _positives(*units: tuple[float, float]) -> Any:
    return st.tuples(*(kept(near(0.0, 0.25).map(partial(_grown, unit[1]))) for unit in units))


def _grown(scale: float, x: float) -> float:
    return float(np.exp(x)) * scale


def _trials() -> Any:
    pair = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(lambda two: (min(two), max(two)))
    half = st.sampled_from([(None, 3), (2, None), (None, None)])
    return st.one_of(pair, pair, pair, half)


def _words() -> Any:
    return st.tuples(FEW, FEW, FEW)


def _documents() -> Any:
    """A document of a few words, now and then without any; or none at all."""
    words = st.sampled_from(["ant", "bee", "cat", "dog"])
    return st.tuples(kept(st.lists(words, max_size=6).map(" ".join)))


def _fixed(cells: Any) -> Any:
    return lambda *units: cells


TEXT, REAL, WHOLE = pa.string(), pa.float64(), pa.int64()
HEIGHTS: tuple[Row, ...] = ((1.5,), (2.25,), (None,), (9.0,), (2.5,), (8.75,), (1.0,), (9.5,))
DELAYS: tuple[Row, ...] = ((0.5,), (-1.25,), (None,), (41.0,), (0.75,), (1.5,), (-0.25,), (3.0,), (0.0,), (-38.0,))
PAIRS: tuple[Row, ...] = (
    (1.0, 10.0), (2.0, 14.5), (None, 11.0), (4.5, 20.0), (3.0, None), (0.5, 9.0), (7.0, 26.0), (6.0, 24.5), (2.5, 13.0),
)  # fmt: skip


def text(family: Family) -> Example:
    notes = ("ant bee ant", "bee dog", None, "cat cat cat bee", "", "dog ant bee", "cat ant")
    return Example(family, ("note",), tuple((note,) for note in notes), _fixed(_documents()), (TEXT,))


def normal(family: Family) -> Example:
    known = getattr(family, "variance", None) is not None
    return Example(family, ("height",), HEIGHTS, _reals, (REAL,), (PLAIN_UNITS if known else REAL_UNITS,), dotted=True)


def tied_normal(family: Family) -> Example:
    """Two columns in one unit, since they share a variance."""
    return Example(family, ("left", "right"), PAIRS, _in_one_unit, (REAL, REAL), (REAL_UNITS,))


def multinormal(family: Family) -> Example:
    units = (REAL_UNITS,) if getattr(family, "covariance", "") == "spherical" else (REAL_UNITS, REAL_UNITS)
    return Example(family, ("x", "y"), PAIRS, _reals if len(units) == 2 else _in_one_unit, (REAL, REAL), units)


EXAMPLES = (
    Example(
        Categorical(), ("colour",), (("red",), ("blue",), (None,), ("red",), ("green",), ("blue",), ("red",)),
        _fixed(st.tuples(levels("red", "green", "blue"))), (TEXT,),
    ),
    Example(
        Bernoulli(), ("smoker",), (("no",), ("yes",), (None,), ("no",), ("no",), ("yes",)),
        _fixed(st.tuples(levels("no", "yes"))), (TEXT,),
    ),
    Example(
        Joint(), ("sex", "size"),
        (("f", "s"), ("m", "l"), ("f", None), ("m", "m"), (None, "l"), ("f", "m"), (None, None)),
        _fixed(st.tuples(levels("f", "m"), levels("l", "m", "s"))), (TEXT, TEXT),
    ),
    Example(
        Poisson(), ("visits",), ((0,), (3,), (None,), (1,), (7,), (2,), (4,)),
        _fixed(st.tuples(MANY)), (WHOLE,), dotted=True,
    ),
    Example(
        Multinomial(), ("ant", "bee", "cat"), ((1, 0, 2), (0, 3, 1), (None, 2, 2), (4, 0, 0), (0, 1, 5), (0, 0, 0)),
        _fixed(_words()), (WHOLE, WHOLE, WHOLE), dotted=True,
    ),
    text(Text()),
    text(Text("bernoulli")),
    Example(
        Binomial(), ("hits", "shots"), ((1, 3), (0, 2), (None, 4), (5, 6), (2, 2), (0, 0), (1, None)),
        _fixed(_trials()), (WHOLE, WHOLE), dotted=True,
    ),
    normal(Normal()),
    normal(Normal(tied="classes")),
    normal(Normal(variance=2.5)),
    tied_normal(Normal(tied="columns")),
    tied_normal(Normal(tied="both")),
    Example(
        LogNormal(), ("income",), ((20.0,), (35.5,), (None,), (310.0,), (27.0,), (290.0,)),
        _positives, (REAL,), (REAL_UNITS,),
    ),
    Example(
        GammaFamily(), ("wait",), ((2.0,), (3.5,), (None,), (31.0,), (2.75,), (0.5,), (12.0,)),
        _positives, (REAL,), (REAL_UNITS,),
    ),
    Example(Student(), ("delay",), DELAYS, _reals, (REAL,), (REAL_UNITS,)),
    Example(Student(freedom=4.0), ("delay",), DELAYS, _reals, (REAL,), (REAL_UNITS,)),
    multinormal(Multinormal()),
    multinormal(Multinormal("tied")),
    multinormal(Multinormal("diagonal")),
    multinormal(Multinormal("spherical")),
)  # fmt: skip

every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
SUMS = tuple(example for example in EXAMPLES if example.family.mergeable)
every_sum = pytest.mark.parametrize("example", SUMS, ids=lambda example: example.title)
"""The examples whose counts add from one fit to another."""


@st.composite
def rows_of(draw: Any, example: Example, least: int = 6, most: int = 18, whole: bool = False) -> list[Row]:
    """Rows of an example's kind: nulls, huge offsets and tiny scales; now and then every row is the same.

    With `whole` a block has no holes: those of a family whose statistics are not exact.
    """
    units = [draw(unit) for unit in example.units]
    cells = example.cells(*units, holes=False) if whole and not example.family.exact else example.cells(*units)
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
