"""An example of each family: a few rows of the columns that it models, and the range of other cells.

The laws of this folder run over all examples and over tables that Hypothesis makes like them.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from softcount.families import (
    Bernoulli,
    Binomial,
    Categorical,
    Cut,
    Exponential,
    Family,
    Gamma,
    Geometric,
    Grouped,
    Histogram,
    Joint,
    Kernel,
    LogNormal,
    Markov,
    Mixed,
    Multinomial,
    Multinormal,
    Normal,
    Poisson,
    Spiked,
    Student,
    Text,
)
from softcount.families.mixed import MixedBlock

Row = tuple[Any, ...]
Units = tuple[float, ...]
OFFSETS: Units = (0.0, 0.0, 1e8, -1e8)
SCALES: Units = (1.0, 1.0, 3e-7, 1e-100, 1e100)


class Cells(Struct, frozen=True):
    """The range of the cells of a column.

    "levels" are some of `among`, "documents" are made of the words `among` and "sequences" of the characters, "counts"
    are whole numbers up to `most`. "reals" lie around one of `offsets`, "positives" are above zero, "waits" 0 or more,
    all in units of one of `scales`.
    """

    what: Literal["levels", "documents", "sequences", "counts", "reals", "positives", "waits"]
    among: tuple[str, ...] = ()
    most: int = 30
    offsets: Units = OFFSETS
    scales: Units = SCALES


class Example(Struct, frozen=True):
    """A family, the columns of a table it models, rows of that table (None is missing), and the range of its cells.

    With `one_unit` all columns have the same offset and scale; with `rising` no cell of a row is below the one before.
    """

    family: Family
    columns: tuple[str, ...]
    values: tuple[Row, ...]
    cells: tuple[Cells, ...]
    one_unit: bool = False
    rising: bool = False


def example(
    family: Family, columns: str, values: list[Any], *cells: Cells, one_unit: bool = False, rising: bool = False
) -> Example:
    """An example of columns named in one text; the values of a single column are its cells, others are rows."""
    names = tuple(columns.split())
    rows = tuple((value,) if len(names) == 1 else tuple(value) for value in values)
    return Example(family, names, rows, cells * (len(names) // len(cells)), one_unit, rising)


AGES = [23.0, 31.5, None, 67.0, 35.0, 64.5, 29.0, 70.0, 33.0]
HEIGHTS = [1.5, 2.25, None, 9.0, 2.5, 8.75, 1.0, 9.5]
PAIRS: list[Any] = [
    (1.0, 10.0), (2.0, 14.5), (None, 11.0), (4.5, 20.0), (3.0, None), (0.5, 9.0), (7.0, 26.0), (6.0, 24.5), (2.5, 13.0),
]  # fmt: skip
WAITS = [79.0, 54.0, None, 74.0, 62.0, 85.0, 55.0, 88.0, 51.5]
NOTES = ["ant bee ant", "bee dog", None, "cat cat cat bee", "", "dog ant bee", "cat ant"]
LINES = ["aba", "bba", None, "cab", "", "aabb", "cc"]
HUMPS = [1.5, 2.25, None, 9.0, 2.5, 8.75, 1.0, 9.5, 1.75, 9.25]
RAIN = [0.0, 0.0, None, 4.25, 6.5, 11.0, 0.5, 0.0, 30.5, 0.0, 2.0, 9.0]
DELAYS = [0.5, -1.25, None, 41.0, 0.75, 1.5, -0.25, 3.0, 0.0, -38.0]

EXAMPLES = (
    example(
        Categorical(),
        "colour",
        ["red", "blue", None, "red", "green", "blue", "red"],
        Cells("levels", ("red", "green", "blue")),
    ),
    example(Bernoulli(), "smoker", ["no", "yes", None, "no", "no", "yes"], Cells("levels", ("no", "yes"))),
    example(
        Grouped(),
        "town",
        ["york", "bath", None, "york", "hull", "bath", "york", "deal"],
        Cells("levels", ("york", "bath", "hull", "deal")),
    ),
    *(
        example(family, "age", AGES, Cells("reals"))
        for family in (
            Histogram(),
            Histogram(4),
            Histogram((0, 30, 50, 60, 99)),
            Cut(),
            Cut("mdl"),
            Cut("width", 3),
            Cut("count", 3),
        )
    ),
    example(Normal(), "height", HEIGHTS, Cells("reals")),
    example(Normal(tied="classes"), "height", HEIGHTS, Cells("reals")),
    example(Normal(variance=2.5), "height", HEIGHTS, Cells("reals", offsets=(0.0, 1e8), scales=(1.0,))),
    example(Normal(tied="columns"), "left right", PAIRS, Cells("reals"), one_unit=True),
    example(Normal(tied="both"), "left right", PAIRS, Cells("reals"), one_unit=True),
    example(Gamma(), "wait", [2.0, 3.5, None, 31.0, 2.75, 0.5, 12.0], Cells("positives")),
    example(
        Joint(),
        "sex size",
        [("f", "s"), ("m", "l"), ("f", None), ("m", "m"), (None, "l"), ("f", "m"), (None, None)],
        Cells("levels", ("f", "m")),
        Cells("levels", ("l", "m", "s")),
    ),
    *(example(family, "waiting", WAITS, Cells("reals")) for family in (Kernel(), Kernel("scott", "epanechnikov"))),
    example(Multinormal(), "x y", PAIRS, Cells("reals")),
    example(Multinormal("tied"), "x y", PAIRS, Cells("reals")),
    example(Multinormal("diagonal"), "x y", PAIRS, Cells("reals")),
    example(Multinormal("spherical"), "x y", PAIRS, Cells("reals"), one_unit=True),
    example(LogNormal(), "income", [20.0, 35.5, None, 310.0, 27.0, 290.0], Cells("positives")),
    example(
        Multinomial(),
        "ant bee cat",
        [(1, 0, 2), (0, 3, 1), (None, 2, 2), (4, 0, 0), (0, 1, 5), (0, 0, 0)],
        Cells("counts", most=9),
    ),
    example(
        Binomial(),
        "hits shots",
        [(1, 3), (0, 2), (None, 4), (5, 6), (2, 2), (0, 0), (1, None)],
        Cells("counts", most=6),
        rising=True,
    ),
    *(
        example(family, "note", NOTES, Cells("documents", ("ant", "bee", "cat", "dog")))
        for family in (Text(), Text("bernoulli"))
    ),
    *(example(family, "line", LINES, Cells("sequences", ("a", "b", "c"))) for family in (Markov(), Markov(order=2))),
    example(Mixed("normal", 2), "pulse", HUMPS, Cells("reals")),
    example(MixedBlock("normal", 2), "length width", PAIRS, Cells("reals")),
    example(Spiked("lognormal"), "rain", RAIN, Cells("waits")),
    example(Spiked("normal", 2.0, 0.25), "shift", [2.0, -1.5, None, 2.0, 4.0, 7.25, 2.0, 0.5], Cells("reals")),
    *(example(family, "delay", DELAYS, Cells("reals")) for family in (Student(), Student(freedom=4.0))),
    example(Exponential(), "pause", [0.5, 3.25, None, 0.0, 7.5, 2.0, 40.0], Cells("waits")),
    example(Geometric(), "tries", [0, 3, None, 1, 7, 2, 4], Cells("counts")),
    example(Poisson(), "visits", [0, 3, None, 1, 7, 2, 4], Cells("counts")),
)
