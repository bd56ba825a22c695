"""Files written to mislead, and for each how an expert would read it, or which option its refusal must name.

A new case is a file in `files/` and a line in `CASES`; the tests run over all of them, in Python and in the shell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """A file and what must come of it.

    `kinds` has the kind of every column, "left out" where it is none of the model's; `says` are words that the notes or
    the reasons of the schema must hold; `missing` are missing cells by column. Where the file must be refused,
    `refused` are words that the message must hold, the option that helps among them. `options` are said in the shell,
    and `how` is the same in Python.
    """

    file: str
    kinds: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    how: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join((self.file, *self.options))


CASES = (
    Case(
        "odd_word.csv",
        kinds={"age": "real", "price": "real", "city": "categorical"},
        says=("55 of 60 cells are numbers; the others are 'unknown' (5)", "--kind age=categorical"),
        missing={"age": 5, "price": 7, "city": 14},
    ),
    Case("odd_word.csv", kinds={"age": "real", "price": "real", "city": "categorical"}, missing={"age": 5},
         options=("--missing", "unknown"), how={"missing": "unknown"}),
    Case("censored.csv", refused=("54 of 60 cells are numbers", "'80+' (4), '<1' (2)", "--missing 80+ --missing '<1'")),
    Case("sentinels.csv", kinds={"depth": "real", "flow": "positive"},
         says=("-999 in 9 cells, far from the rest", "--missing -999", "9999 in 6 cells", "--missing 9999"),
         missing={"depth": 0, "flow": 0}),
    Case("censored.csv", kinds={"age": "real", "pressure": "real"}, missing={"age": 6},
         options=("--missing", "80+", "--missing", "<1"), how={"missing": ["80+", "<1"]}),
    Case("sentinels.csv", kinds={"depth": "real", "flow": "real"}, missing={"depth": 9, "flow": 6},
         options=("--missing", "-999", "--missing", "9999"), how={"missing": ["-999", "9999"]}),
    Case("signs.csv", kinds={"charge": "categorical", "volts": "real"}, missing={"charge": 0, "volts": 4}),
    Case("headerless.data", refused=("looks like data", "--no-header", "--names", "--header")),
    Case("headerless.data",
         kinds={"age": "real", "job": "categorical", "hours": "real", "left": "categorical"},
         options=("--names", "age,job,hours,left"), how={"names": ["age", "job", "hours", "left"]}),
    Case("headerless_words.tsv", refused=("looks like data", "--no-header")),
    Case("headerless_words.tsv", kinds={"c1": "categorical", "c2": "categorical"},
         options=("--no-header",), how={"header": False}),
    Case("year_names.csv", kinds={"country": "left out", "2019": "real", "2020": "real", "2021": "real"}),
    Case("blanks.txt", refused=("looks like data", "--no-header")),
    Case("blanks.txt", kinds={"c1": "real", "c2": "categorical", "c3": "real", "c4": "categorical"},
         says=("separated by blanks",), options=("--no-header",), how={"header": False}),
    Case("trailing_separators.csv", kinds={"mass": "real", "size": "real"}),
    Case("western.csv", kinds={"stadt": "categorical", "wert": "real"},
         says=("not UTF-8: read as cp1252", "--encoding NAME")),
    Case("western.csv", kinds={"stadt": "categorical", "wert": "real"},
         options=("--encoding", "cp1252"), how={"encoding": "cp1252"}),
    Case("unicode_text.txt", kinds={"na\u00efve": "categorical", "gr\u00f6\u00dfe": "real"}),
    Case("titled.csv", refused=("--skip-lines",)),
    Case("titled.csv", kinds={"station": "categorical", "ph": "real"},
         options=("--skip-lines", "3", "--comment", "#"), how={"skip_lines": 3, "comment": "#"}),
    Case("currency.csv", kinds={"region": "categorical", "sales": "real", "margin": "real", "balance": "real"},
         says=("numbers in $, thousands separated by ','", "numbers in %", "negative in parentheses")),
    Case("german.csv", kinds={"ort": "categorical", "betrag": "positive", "menge": "real", "st\u00fcck": "real"},
         says=("decimal commas, thousands separated by '.'", "numbers, decimal commas (")),
    Case("either_mark.csv", refused=("which may be", "--decimal")),
    Case("either_mark.csv", kinds={"a": "categorical", "b": "real"}, says=("decimal commas",),
         options=("--decimal", ","), how={"decimal": ","}),
    Case("either_mark.csv", kinds={"a": "categorical", "b": "real"}, says=("thousands separated by ','",),
         options=("--decimal", "."), how={"decimal": "."}),
    Case("units.csv", kinds={"mass": "real", "speed": "real", "dose": "categorical"},
         says=("numbers in kg", "numbers in km/h")),
    Case("day_first.csv", kinds={"sold": "real", "shipped": "real", "paid": "real"}, says=("dates, day first",)),
    Case("either_order.csv", refused=("the day or the month", "--dates day-first or --dates month-first")),
    Case("either_order.csv", kinds={"sold": "real", "n": "real"}, says=("dates, month first",),
         options=("--dates", "month-first"), how={"dates": "month-first"}),
    Case("mixed_orders.csv", refused=("mixes days first and months first", "--kind sold=ignore")),
    Case("clocks.csv", kinds={"at": "real", "took": "real", "stamp": "real"}, says=("dates and times",)),
    Case("excel.csv", kinds={"Item": "categorical", "Price": "real", "Share": "real"},
         says=("numbers in \u20ac",), missing={"Price": 4, "Share": 5}),
    Case("phones.csv",
         kinds={"phone": "left out", "zip": "left out", "part": "categorical", "left": "categorical"}),
    Case("zero_heavy.csv",
         kinds={"customer_id": "left out", "rain_mm": "amount", "temp": "real", "capital_gain": "amount",
                "visits": "count", "grade": "categorical"},
         says=("89 % of its values differ", "--kind customer_id=real", "of them 0 and the others above")),
)  # fmt: skip
