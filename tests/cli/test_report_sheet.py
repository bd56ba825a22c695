"""CSV that any reader gives back as it was."""

from __future__ import annotations

import csv
import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from softcount.report.answers import write_csv

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=6)


@given(st.lists(st.tuples(WORDS, st.floats(allow_nan=False)), max_size=6), WORDS)
def test_what_was_written_is_read_back_the_same(rows, name):
    table = pa.table(
        [pa.array([word for word, _ in rows], pa.string()), pa.array([x for _, x in rows], pa.float64())],
        names=[name, "p,q"],
    )
    sink = io.BytesIO()
    write_csv(table, sink)
    header, *lines = csv.reader(io.StringIO(sink.getvalue().decode(), newline=""))
    assert header == [name, "p,q"]
    assert [(word, float(x)) for word, x in lines] == rows


def test_a_missing_cell_is_empty_and_a_formula_is_left_alone():
    sink = io.BytesIO()
    write_csv(pa.table({"a": ["=1+1", None], "b": [1.5, None]}), sink)
    assert sink.getvalue() == b"a,b\n=1+1,1.5\n,\n"


def test_a_table_of_many_blocks_is_written_whole():
    sink = io.BytesIO()
    write_csv(pa.table({"a": list(range(25_001))}), sink)
    assert sink.getvalue().decode().split() == ["a", *map(str, range(25_001))]
