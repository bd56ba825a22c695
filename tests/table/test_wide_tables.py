"""Tables of many columns: chunks, the rows that are looked at and what is unpacked of a file are bounded in cells."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcount as sc
from softcount.sources import arrow_files
from softcount.sources.arrow_files import ParquetSource
from softcount.sources.source import CHUNK_CELLS, LOOK_CELLS, Wanted, chunk_rows_for, look_rows_for
from softcount.table import open_table
from softcount.table.column_summary import MOST_CELLS, summarise

DRAWN = np.random.default_rng(3)


@pytest.mark.parametrize("columns", [1, 64, 65, 500, 2_000, 40_000])
def test_a_chunk_has_so_many_cells_at_most(columns: int) -> None:
    for rows in (10, 70_000, 10**9):
        found = chunk_rows_for(rows, columns=columns)
        assert found == 64 or found * columns <= CHUNK_CELLS
        assert found == chunk_rows_for(rows) or 2 * found * columns > CHUNK_CELLS
    assert look_rows_for(columns) == 1_024 or look_rows_for(columns) * columns <= LOOK_CELLS


@pytest.fixture
def wide(tmp_path: Path) -> pa.Table:
    columns = {f"x{j}": np.round(DRAWN.normal(size=900), 3) for j in range(60)}
    levels = {f"c{j}": DRAWN.choice([f"level {n}" for n in range(5)], 900) for j in range(20)}
    holes = {"h": pa.array(DRAWN.normal(size=900), mask=DRAWN.random(900) < 0.2)}
    table = pa.table({**columns, **levels, **holes, "y": DRAWN.choice(["a", "b"], 900)})
    pq.write_table(table, tmp_path / "wide.parquet", row_group_size=400)
    return table


def test_a_row_group_unpacked_some_columns_at_a_time_has_the_same_rows(
    wide: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sc.NaiveBayes().fit(tmp_path / "wide.parquet", "y")
    monkeypatch.setattr(arrow_files, "GROUP_BYTES", 5_000)
    monkeypatch.setattr(arrow_files, "FEW_COLUMNS", 3)
    source = ParquetSource(str(tmp_path / "wide.parquet"))
    source.chunk_rows = 256
    wanted = {key: Wanted(numeric=False) for key in wide.column_names[::-1]}
    found = [piece.load() for piece in source.pieces(wanted)]
    assert [len(part["y"]) for part in found] == [256, 256, 256, 132]
    for key in wanted:
        assert pa.chunked_array([c for part in found for c in part[key].cast(wide.schema.field(key).type).chunks]) == (
            wide.column(key)
        )
    again = sc.NaiveBayes().fit(tmp_path / "wide.parquet", "y")
    for key, own in whole.params_.items():
        for name, values in own.items():
            np.testing.assert_array_equal(again.params_[key][name], values)


def test_what_is_kept_for_quantiles_is_bounded_in_cells() -> None:
    table = open_table(DRAWN.normal(size=(3_000, 2_500)))
    kept = max(1_000, MOST_CELLS // 2_500)
    summary = summarise(table.chunks(), table.schema)
    assert kept < 3_000
    assert all(kept / 4 < sum(column.in_bins) <= kept for column in summary.columns)
    assert all(column.there == 3_000 for column in summary.columns)
