"""One table in several files: folders as Spark writes them, columns in the names of folders, and what must be alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather
from tests.table.reading import cells, read

import softcount as sc
from softcount.errors import DataError
from softcount.table import Kind

DRAWN = np.random.default_rng(5)


def rows(count: int, shift: float = 0.0) -> pa.Table:
    return pa.table(
        {
            "x": DRAWN.normal(size=count) + shift,
            "town": DRAWN.choice(["Ulm", "Bonn"], count),
            "y": DRAWN.choice(["no", "yes"], count),
        }
    )


@pytest.mark.parametrize("ending", ["snappy.parquet", "csv", "feather"])
def test_a_folder_of_parts_is_their_rows_in_the_order_of_their_names(tmp_path: Path, ending: str) -> None:
    parts = [rows(30), rows(40, 2.0)]
    write = {"snappy.parquet": pq.write_table, "csv": csv.write_csv, "feather": feather.write_feather}[ending]
    for place, part in enumerate(parts):
        write(part, str(tmp_path / f"part-{place}.{ending}"))
    for name in ("_SUCCESS", ".part-0.crc"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}")
    found = read(tmp_path)
    whole = pa.concat_tables(parts)
    for key in ("x", "town", "y"):
        assert cells(found, key) == whole.column(key).to_pylist()


def test_a_model_of_a_folder_is_that_of_its_rows(tmp_path: Path) -> None:
    parts = [rows(30), rows(40, 2.0)]
    for place, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"part-{place}.parquet")
    whole = sc.NaiveBayes().fit(pa.concat_tables(parts), "y")
    for data in (str(tmp_path), tmp_path, sc.read([tmp_path / "part-0.parquet", tmp_path / "part-1.parquet"])):
        model = sc.NaiveBayes().fit(data, "y")
        np.testing.assert_allclose(model.params_["x"]["mean"], whole.params_["x"]["mean"], rtol=1e-13)
        np.testing.assert_array_equal(model.params_["town"]["probability"], whole.params_["town"]["probability"])


def test_what_names_of_folders_say_is_a_column(tmp_path: Path) -> None:
    for year, zone, count in ((2023, "a%20b", 12), (2024, "c", 9), ("__HIVE_DEFAULT_PARTITION__", "c", 5)):
        folder = tmp_path / f"year={year}" / f"zone={zone}"
        folder.mkdir(parents=True)
        pq.write_table(rows(count), folder / "part-0.parquet")
    found = read(tmp_path, kinds={"year": "categorical"})
    assert cells(found, "year") == [2023] * 12 + [2024] * 9 + [None] * 5
    assert cells(found, "zone") == ["a b"] * 12 + ["c"] * 14


def test_a_folder_of_documents_is_still_one(tmp_path: Path) -> None:
    for label in ("ham", "spam"):
        (tmp_path / label).mkdir()
        for place in range(3):
            (tmp_path / label / f"{place}.txt").write_text(f"words of {label} {place}")
    assert sc.read(tmp_path).schema.texts == ["text"]
    for label in ("ham", "spam"):  # a class of documents that happen to be tables
        (tmp_path / label / "0.txt").rename(tmp_path / label / "0.csv")
    assert sc.read(tmp_path).schema.texts == ["text"]


def test_files_that_differ_are_refused_by_name(tmp_path: Path) -> None:
    pq.write_table(rows(5), tmp_path / "part-0.parquet")
    other = rows(5)
    pq.write_table(other.set_column(0, "x", other.column("x").cast(pa.string())), tmp_path / "part-1.parquet")
    with pytest.raises(DataError, match=r"'x' of .*part-1.parquet holds text, where that of .*part-0.parquet holds nu"):
        sc.read(tmp_path)
    pq.write_table(other.drop_columns(["town"]), tmp_path / "part-1.parquet")
    with pytest.raises(DataError, match=r"part-1.parquet lacks 'town', compared with .*part-0"):
        sc.read(tmp_path)


def test_whole_numbers_and_nothing_may_stand_beside_decimals(tmp_path: Path) -> None:
    for place, cells_of in enumerate(([1, 2, 3], [0.5, 1.5, None], [None, None, None])):
        kinds = (pa.int32(), pa.float64(), pa.null())
        pq.write_table(pa.table({"x": pa.array(cells_of, kinds[place])}), tmp_path / f"{place}.parquet")
    found = read(tmp_path, kinds={"x": "real"})
    assert found.table.schema["x"].kind is Kind.REAL
    assert cells(found, "x") == [1, 2, 3, 0.5, 1.5, None, None, None, None]


def test_a_part_that_vanishes_between_two_passes_is_noticed(tmp_path: Path) -> None:
    for place in range(2):
        pq.write_table(rows(20), tmp_path / f"part-{place}.parquet")
    table = sc.read(tmp_path)
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(DataError, match=r"part-1.parquet was changed while it was being read"):
        sc.NaiveBayes().fit(table, "y")
