"""Tables of mixed columns on which a joint model is measured: cells, column of classes, and how numbers are rounded.

A column of more than 20 different numbers is a number, and so is one of more than 10 that are not all whole; any other
column is text, None where missing. Identifiers are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from benchmarks.auto import NAMES as ADULT
from benchmarks.classifier_tables import ROOT
from benchmarks.small_tables import HEART

FEW_WHOLE, FEW_VALUES = 20, 10
"""Different numbers up to which a column is one of categories: whole numbers, and others."""
COVERTYPE_ROWS = 20_000
MOST_DECIMALS = 6


@dataclass(frozen=True, eq=False)
class Table:
    """A frame of numbers (float64) and categories (str), and the name of its column of classes, if it has one."""

    name: str
    frame: Any
    target: str | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @cached_property
    def numbers(self) -> list[str]:
        return [name for name in self.frame if self.frame[name].dtype.kind == "f"]

    @cached_property
    def categories(self) -> list[str]:
        return [name for name in self.frame if name not in self.numbers]

    @cached_property
    def steps(self) -> dict[str, float]:
        """Distance between neighbouring numbers that a column can hold as it was rounded: 1 for whole numbers."""
        return {name: rounding(self.frame[name].dropna().to_numpy()) for name in self.numbers}

    def rows(self, places: Any) -> Table:
        return Table(self.name, self.frame.iloc[places].reset_index(drop=True), self.target)

    def at_most(self, rows: int) -> Table:
        """So many rows, drawn with a fixed seed, or all."""
        if len(self) <= rows:
            return self
        return self.rows(np.sort(np.random.default_rng(0).choice(len(self), rows, replace=False)))

    def split(self, share: float, seed: int) -> tuple[Table, Table]:
        """A share of the rows to learn from, and the others."""
        order = np.random.default_rng(seed).permutation(len(self))
        count = round(share * len(self))
        return self.rows(order[:count]), self.rows(order[count:])

    def without_functions(self) -> Table:
        """The columns that can have a density: not the years of education of adult, or the logarithm of a wage."""
        source = SOURCES.get(self.name)
        return Table(self.name, self.frame.drop(columns=list(source.functions) if source else []), self.target)

    def only_numbers(self) -> Table:
        """The numbers without repeated rows: a held-out row that is also learned from would reward memory."""
        return Table(f"{self.name}-numbers", self.frame[self.numbers].drop_duplicates().reset_index(drop=True))


class Source(NamedTuple):
    """Files below the data folder, or the name of a table in scikit-learn, and what is taken of them."""

    paths: tuple[str, ...]
    target: str | None = None
    names: Sequence[str] | None = None
    """Names of the columns of a file without a header; () is c0, c1, ..."""
    drop: tuple[str, ...] = ("rownames",)
    missing: tuple[str, ...] = ("?", " ")
    numbers: tuple[str, ...] = ()
    """How the names of columns begin that hold numbers, though few different ones."""
    functions: tuple[str, ...] = ()
    """Columns that are a function of another one: a density of these would have no bound."""


TARGETS = "numeric_targets/"
SOURCES = {
    "adult": Source(
        ("uci_adult/adult.data.gz", "uci_adult/adult.test.gz"),
        "income",
        ADULT,
        numbers=("education_num",),
        functions=("education_num",),
    ),
    "telco": Source(("messy/telco.csv",), "Churn", drop=("customerID",)),
    "titanic": Source(
        ("titanic/titanic_seaborn.csv",),
        "survived",
        drop=("class", "who", "adult_male", "deck", "embark_town", "alive", "alone"),
    ),
    "credit": Source(("uci_credit_approval/crx.data",), "c15", ()),
    "heart": Source(("uci_heart/processed.cleveland.data",), "disease", (*HEART, "disease")),
    "mushroom": Source(("uci_mushroom/agaricus-lepiota.data",), "c0", ()),
    "vote": Source(("uci_vote/house-votes-84.data",), "c0", ()),
    "car": Source(("uci_car/car.data",), "c6", ()),
    "pima": Source(("r_datasets/Pima.tr.csv", "r_datasets/Pima.te.csv"), "type"),
    "abalone": Source((f"{TARGETS}abalone.csv",), "c0", ()),
    "wine-quality": Source((f"{TARGETS}winequality-white.csv",), "c11", ()),
    "diamonds": Source((f"{TARGETS}diamonds.csv",), "cut"),
    "wage": Source((f"{TARGETS}Wage.csv",), "health_ins", functions=("logwage",)),
    "cps": Source((f"{TARGETS}CPS1985.csv",), "union"),
    "houses": Source((f"{TARGETS}HousePrices.csv",), "prefer"),
    "hitters": Source((f"{TARGETS}Hitters.csv",), "League"),
    "mpg": Source((f"{TARGETS}mpg.csv",), "origin", drop=("name",)),
    "carseats": Source((f"{TARGETS}Carseats.csv",), "ShelveLoc"),
    "salaries": Source((f"{TARGETS}Salaries.csv",), "discipline"),
    "covertype": Source(("covtype/covtype.csv.gz",), "Cover_Type"),
    "air-quality": Source(
        ("messy/air_quality.csv",), drop=("Date", "Time", "Unnamed: 15", "Unnamed: 16"), missing=("-200", "-200.0")
    ),
    "gss": Source(("lca_poLCA/gss82.csv",), "ACCURACY"),
    "xclara": Source(("r_datasets/xclara.csv",)),
    "soybean": Source(("uci_soybean/soybean-large.data", "uci_soybean/soybean-large.test"), "c0", ()),
    "banknote": Source(("r_mclust/banknote.csv",), "Status"),
    "insulin": Source(("r_mclust/diabetes.csv",), "class"),
    "iris": Source(("load_iris",), "target"),
    "wine": Source(("load_wine",), "target"),
    "breast-cancer": Source(("load_breast_cancer",), "target"),
    "digits": Source(("load_digits",), "target", numbers=("pixel",)),
    "diabetes": Source(("load_diabetes",)),
}


def tables(names: Sequence[str], wanted: Sequence[str] = (), most: int | None = None) -> Iterator[Table]:
    """The tables of these names that are here, and of those the `wanted` ones if any are named."""
    for name in names:
        if not wanted or name in wanted:
            table = read(name)
            if table is None:
                print(f"{name} is not here: set SOFTCOUNT_DATA to the folder that holds {SOURCES[name].paths[0]}.")
            else:
                yield table if most is None else table.at_most(most)


@cache
def read(name: str) -> Table | None:
    """A table by its name, or None where its files are not here; `-numbers` after it leaves the categories out."""
    if name.endswith("-numbers"):
        whole = read(name.removesuffix("-numbers"))
        return None if whole is None else whole.only_numbers()
    import pandas as pd

    source = SOURCES[name]
    try:
        frame = read_frame(source)
    except FileNotFoundError:
        return None
    if name == "covertype":
        frame = one_column_per_group(frame, ("Wilderness_Area", "Soil_Type"))
    frame = frame.drop(columns=list(source.drop), errors="ignore")
    frame = frame.loc[:, frame.nunique() > 1]
    is_number = {name: name.startswith(source.numbers or ("\0",)) for name in frame}
    cells = {name: as_number_or_text(frame[name], is_number[name]) for name in frame}
    return Table(name, pd.DataFrame(cells), source.target)


def read_frame(source: Source) -> Any:
    import pandas as pd
    from sklearn import datasets

    if source.paths[0].startswith("load_"):
        return getattr(datasets, source.paths[0])(as_frame=True).frame
    how = {"na_values": list(source.missing), "skipinitialspace": True, "comment": "|", "encoding": "latin-1"}
    if source.names is not None:
        how |= {"header": None}
    if "covtype" in source.paths[0]:
        how |= {"nrows": COVERTYPE_ROWS}
    frame = pd.concat([pd.read_csv(ROOT / path, **how) for path in source.paths], ignore_index=True)
    frame = frame.dropna(how="all")
    if source.names is not None:
        frame.columns = list(source.names) or [f"c{place}" for place in range(frame.shape[1])]
    return frame.reset_index(drop=True)


def one_column_per_group(frame: Any, groups: Sequence[str]) -> Any:
    """Indicators of one thing as one column of its categories."""
    for group in groups:
        own = [name for name in frame if name.startswith(group)]
        frame = frame.drop(columns=own).assign(**{group: frame[own].idxmax(axis=1)})
    return frame


def as_number_or_text(column: Any, is_number: bool) -> Any:
    if column.dtype.kind in "iuf":
        is_whole = (column.dropna() % 1 == 0).all()
        if is_number or column.nunique() > (FEW_WHOLE if is_whole else FEW_VALUES):
            return column.astype("float64")
        column = column.astype("Int64") if is_whole else column
    text = column.astype("str").str.strip().str.rstrip(".")  # the classes of adult's second file end in a full stop
    return text.astype(object).where(column.notna(), None)


def rounding(values: np.ndarray) -> float:
    """The largest step of which all numbers are multiples, with at most six decimals."""
    for decimals in range(MOST_DECIMALS):
        scaled = values * 10.0**decimals
        if np.abs(scaled - np.round(scaled)).max() < 1e-6 * max(1.0, np.abs(scaled).max()):
            break
    else:
        return 10.0**-MOST_DECIMALS
    whole = np.round(scaled).astype(np.int64)
    return float(np.gcd.reduce(whole - whole[0]) / 10.0**decimals)
