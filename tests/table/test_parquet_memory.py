"""A Parquet file larger than memory is read a row group at a time: what was read is given up again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from softcount.sources.arrow_files import ParquetSource
from softcount.sources.source import Wanted

GROUPS, ROWS, COLUMNS = 24, 16_384, 6


def test_memory_does_not_grow_with_the_number_of_row_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({f"x{j}": rng.normal(size=GROUPS * ROWS) for j in range(COLUMNS)})
    path = tmp_path / "many.parquet"
    pq.write_table(table, path, row_group_size=ROWS, compression="none", use_dictionary=False)
    del table
    before = pa.total_allocated_bytes()
    most = rows = 0
    for piece in ParquetSource(str(path)).pieces({f"x{j}": Wanted(numeric=True) for j in range(COLUMNS)}):
        rows += len(piece.load()["x0"])
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == GROUPS * ROWS
    assert most < path.stat().st_size / 2
