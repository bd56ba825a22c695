"""Plain numbers are found without looking at each cell: what is found must be what looking at each finds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softcount.table import MISSING, column_facts
from softcount.table.cell_values import MissingWords
from softcount.table.column_facts import Meant, facts_of

NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False).map(repr),
    st.sampled_from(
        ["0", "-0", "+7", ".5", "5.", "1e5", "1e999", "-999", "9999", "00042", " 3", "3 ", "1,5", "x", "-"]
    ),
    st.sampled_from(["1", "2", "3"]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.one_of(st.none(), NUMBERS), min_size=1, max_size=40),
    st.booleans(),
    st.booleans(),
    st.sampled_from([(), ("-999",)]),
)
def test_plain_numbers_have_the_facts_that_their_cells_have(
    cells: list[str | None], levels: bool, numbers: bool, more: tuple[str, ...]
) -> None:
    words = MissingWords.of((*MISSING, *more), trim=True)
    meant = Meant(levels, numbers)
    column = pa.array(cells, pa.string())
    quick = column_facts._plain_facts("x", column, words, meant)
    if quick is None:
        return
    slow = column_facts._cell_facts("x", column, words, meant)
    for name in type(quick).__match_args__:
        np.testing.assert_array_equal(getattr(quick, name), getattr(slow, name), err_msg=name)


@pytest.mark.parametrize("odd", ["007", " 3", "1,5", "x", "inf"])
def test_one_cell_that_is_no_plain_number_is_looked_at(odd: str) -> None:
    column = pa.array(["1.5", "2.5", odd])
    assert column_facts._plain_facts("x", column, MissingWords.of(MISSING, trim=True), Meant()) is None
    assert facts_of("x", pa.array(["1.5", "2.5"]), MissingWords.of(MISSING, trim=True), Meant()).known == 2
