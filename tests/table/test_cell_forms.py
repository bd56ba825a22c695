"""Forms of cells: what is written is read back as it was, and dates are those of Python's calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.table.cell_forms import CellForm, CellHabits, NumberForm, TimeForm, detect_form, parse_cell
from table.reading import cells, read

NUMBERS = [
    NumberForm("$", "", ".", ",", digits=2),
    NumberForm("", "%", ".", "", digits=1),
    NumberForm("", " kg", ",", ".", digits=3),
    NumberForm("", "", ",", " ", digits=2),
    NumberForm("", " \u20ac", ",", "", parentheses=True, digits=2),
    NumberForm("CHF", "", ".", "'", digits=0),
]
TIMES = [
    TimeForm("%d/%m/%Y"),
    TimeForm("%m/%d/%Y", padded=False),
    TimeForm("%Y-%m-%dT%H:%M:%SZ", digits=3),
    TimeForm("%d-%b-%y"),
    TimeForm("%B %d, %Y %H:%M %p", padded=False),
]
CLOCKS = [TimeForm("%H:%M"), TimeForm("%H:%M:%S", padded=False), TimeForm("%D days %H:%M:%S", digits=2)]


@pytest.mark.parametrize("form", NUMBERS, ids=lambda form: form.write(-1234.5))
@given(value=st.integers(-(10**9), 10**9))
def test_a_number_is_read_as_it_was_written(form: NumberForm, value: int) -> None:
    number = value / 10**form.digits
    found, bad = form.read([form.write(number), None, "word"])
    assert found[0] == pytest.approx(number, rel=1e-15)
    assert bad.tolist() == [False, False, True]


@pytest.mark.parametrize("form", TIMES, ids=lambda form: form.pattern)
@given(value=st.integers(0, 2**31))
def test_a_date_is_read_as_it_was_written(form: TimeForm, value: int) -> None:
    seconds = value // form.finest * form.finest
    found, bad = form.read([form.write(seconds), None])
    assert found[0] == pytest.approx(seconds, abs=1e-6) and not bad.any()


@pytest.mark.parametrize("form", CLOCKS, ids=lambda form: form.pattern)
@given(value=st.integers(0, 10**6))
def test_a_duration_is_read_as_it_was_written(form: TimeForm, value: int) -> None:
    seconds = value // form.finest * form.finest
    assert form.read([form.write(seconds)])[0][0] == pytest.approx(seconds, abs=1e-9)


@given(day=st.integers(1, 31), month=st.integers(0, 14), year=st.integers(1700, 2400))
def test_dates_are_those_of_the_calendar(day: int, month: int, year: int) -> None:
    cell = f"{day:02d}/{month:02d}/{year}"
    found, bad = TimeForm("%d/%m/%Y").read([cell])
    try:
        expected = datetime.strptime(cell, "%d/%m/%Y").replace(tzinfo=UTC)
    except ValueError:
        assert bad[0]
    else:
        assert found[0] == (expected - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(seconds=1)


@pytest.mark.parametrize("form", [*NUMBERS, *TIMES[:3]], ids=str)
def test_a_form_is_found_in_what_it_wrote(form: CellForm) -> None:
    values = np.array([1.61e9, 1.2e9, 1.5e9 + 86_400 * 17, 9e8 + 0.25]) if isinstance(form, TimeForm) else None
    values = np.array([1234.125, -2.5, 17.0, 98765.25]) if values is None else values
    written = [form.write(float(value)) for value in values]
    found = detect_form("x", written, CellHabits(form.decimal if isinstance(form, NumberForm) else None))
    assert found is not None
    np.testing.assert_array_equal(found.read(written)[0], form.read(written)[0])


@pytest.mark.parametrize(
    "words",
    [["007", "012"], ["A12", "A13"], ["12 kg", "3 g"], ["1.2.3", "1.3.0"], ["555-1234", "555-9876"], ["3rd", "4th"],
     ["192.168.1.1", "10.0.0.1"], ["030 123 456", "030 124 456"], ["31/02/2020", "30/02/2021"], ["12:75", "10:20"]],
    ids=str,
)  # fmt: skip
def test_what_is_no_number_has_no_form(words: list[str]) -> None:
    assert detect_form("x", words, CellHabits()) is None


def test_a_person_may_write_a_value_in_the_form_or_plainly() -> None:
    assert [parse_cell(NUMBERS[0], text) for text in ("$1,200.50", "1,200.50", "1200.5")] == [1200.5] * 3
    assert parse_cell(TIMES[0], "02/01/1970") == parse_cell(TIMES[0], "1970-01-02") == 86_400
    assert np.isnan(parse_cell(TIMES[0], "tomorrow"))


def test_a_cell_in_no_form_late_in_the_table_is_refused_by_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "1,5;x\n2,25;y\n" * 35_000 + "1.5.5;x\n")
    with pytest.raises(DataError, match=r"'a' holds numbers, but row 70001 holds '1\.5\.5'.*missing="):
        read(path)


@pytest.mark.parametrize("threads", [1, 4])
def test_the_same_numbers_come_of_any_number_of_threads(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price,day\n" + "".join(f'"${n:,}.50",{n % 28 + 1}/{n % 12 + 1}/2020\n' for n in range(9_000)))
    found = read(path, threads)
    assert cells(found, "price") == [n + 0.5 for n in range(9_000)]
    assert found.table.schema["day"].why == "dates, day first"


def test_a_late_date_tells_in_which_order_all_are_written() -> None:
    early = [
        f"{day:02d}/{month:02d}/{year}" for year in range(2000, 2020) for day in range(1, 13) for month in range(1, 13)
    ]
    found = detect_form("x", [*early, "25/12/2020"], CellHabits())
    assert found is not None and found.description == "dates, day first"


def test_a_late_thousand_tells_what_parts_thousands() -> None:
    found = detect_form("x", [*map(str, range(1_000)), *(f"{n:,}" for n in range(1_000, 3_000))], CellHabits())
    assert found == NumberForm(thousands=",")
