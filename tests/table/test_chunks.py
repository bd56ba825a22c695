"""Chunks: the same for any batching and any number of threads, and without copies where none are needed."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.table.reading import Read, cells, chunks_of, labels, read

from softcount.errors import DataError
from softcount.sources.arrow_files import rechunked
from softcount.sources.source import chunk_rows_for
from softcount.table import Chunk, open_table
from softcount.table.chunk import UNKNOWN

DRAWN = np.random.default_rng(11)


def same_chunks(one: list[Chunk], other: list[Chunk]) -> bool:
    """Equal bit for bit, level codes after settling excepted by the caller's choice of data."""
    return len(one) == len(other) and all(
        a.start == b.start
        and a.n_rows == b.n_rows
        and all(np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "reals") for name in STORES)
        for a, b in zip(one, other, strict=True)
    )


STORES = ("reals", "codes", "wide")


def mixed(rows: int) -> dict[str, Any]:
    holes = DRAWN.random(rows) < 0.1
    return {
        "x": np.where(holes, np.nan, DRAWN.normal(size=rows)),
        "grade": DRAWN.integers(0, 5, rows),
        "colour": DRAWN.choice(["red", "green", "blue"], rows),
        "town": DRAWN.choice([f"town {n}" for n in range(400)], rows),
    }


@pytest.mark.parametrize(("rows", "size"), [(1, 4096), (4097, 4096), (65_536, 4096), (65_537, 32_768)])
def test_chunk_sizes_follow_from_the_number_of_rows_alone(rows: int, size: int) -> None:
    assert chunk_rows_for(rows) == size
    chunks = chunks_of(open_table({"a": np.arange(rows) % 2, "b": np.arange(rows) * 0.5}))
    assert [chunk.n_rows for chunk in chunks[:-1]] == [size] * (len(chunks) - 1)
    assert [chunk.start for chunk in chunks] == list(range(0, rows, size))
    assert sum(chunk.n_rows for chunk in chunks) == rows


def everywhere(columns: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same table as a frame, in odd batches, and in files."""
    frame = pd.DataFrame(columns)
    whole = pa.Table.from_pandas(frame, preserve_index=False)
    borders = [0, 1, 8, 5000, len(frame)]
    parts = [whole.slice(a, b - a) for a, b in pairwise(borders)]
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    frame.to_parquet(folder / "t.parquet", row_group_size=777)
    files = {name: folder / name for name in ("t.csv", "t.csv.gz", "t.parquet")}
    return {"frame": frame, "batches": pa.concat_tables(parts), "columns": columns, **files}


@pytest.mark.parametrize("rows", [9_000, 70_000])
def test_any_source_and_any_batching_give_the_same_chunks(tmp_path: Path, rows: int) -> None:
    found = {name: read(data) for name, data in everywhere(mixed(rows), tmp_path).items()}
    first = found["frame"]
    for name, other in found.items():
        assert other.settled.schema == first.settled.schema, name
        assert same_chunks(settled_chunks(other), settled_chunks(first)), name
        assert other.table.missing == first.table.missing, name
        assert other.table.n_rows == rows, name


def settled_chunks(found: Read) -> list[Chunk]:
    """Chunks with every level in its settled code."""
    schema = found.table.schema
    return [
        Chunk(
            chunk.start,
            chunk.n_rows,
            chunk.reals,
            *(
                np.column_stack(
                    [found.settled.remap[spec.key][getattr(chunk, store)[:, slot]] for slot, spec in enumerate(kept)]
                )
                if (kept := schema.stored(store))
                else getattr(chunk, store)
                for store in ("codes", "wide")
            ),
        )
        for chunk in found.chunks
    ]


def test_four_threads_give_the_chunks_of_one(tmp_path: Path) -> None:
    columns = mixed(30_000)
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    one, four = read(tmp_path / "t.csv", threads=1), read(tmp_path / "t.csv", threads=4)
    assert one.settled.schema == four.settled.schema
    assert same_chunks(settled_chunks(one), settled_chunks(four))


def test_every_cell_comes_back(tmp_path: Path) -> None:
    columns = mixed(5_000)
    for data in everywhere(columns, tmp_path).values():
        found = read(data)
        assert cells(found, "x") == [None if np.isnan(value) else value for value in columns["x"]]
        for key in ("grade", "colour", "town"):
            assert cells(found, key) == list(columns[key])
        assert found.table.schema["town"].wide


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 7))
def test_batches_are_cut_anew_without_losing_or_moving_a_row(sizes: list[int], rows: int) -> None:
    numbers = pa.array(range(sum(sizes)))
    borders = np.cumsum([0, *sizes])
    batches = [pa.record_batch({"n": numbers.slice(a, b - a)}) for a, b in pairwise(borders)]
    found = [table.column("n").to_pylist() for table in rechunked(batches, rows)]
    everything = list(range(sum(sizes)))
    assert found == [everything[at : at + rows] for at in range(0, len(everything), rows)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_of_floats_is_handed_over_without_a_copy(order: Any) -> None:
    array = np.array(DRAWN.normal(size=(10_000, 3)), order=order)
    for chunk in chunks_of(open_table(array)):
        assert np.shares_memory(chunk.reals, array)
        assert np.array_equal(chunk.reals, array[chunk.start : chunk.start + chunk.n_rows])


@pytest.mark.parametrize("kind", ["f4", "i2", "u8", ">f8", "f2"])
def test_other_numbers_are_converted_exactly(kind: str) -> None:
    array = (DRAWN.integers(0, 30_000, size=(5_000, 2)) / 4).astype(kind)
    found = read(array, kinds={0: "real", 1: "real"})
    assert cells(found, 0) == [float(value) for value in array[:, 0]]
    assert all(chunk.reals.dtype == np.float64 for chunk in found.chunks)


@pytest.mark.parametrize("checked", [True, False])
def test_missing_cells_of_an_array_are_counted_also_when_it_is_handed_over_unread(checked: bool) -> None:
    array = DRAWN.normal(size=(9_000, 3))
    array[::7, 1] = np.nan
    table = open_table(array) if checked else open_table(array).unchecked()
    chunks = chunks_of(table)
    assert np.shares_memory(chunks[0].reals, array)
    assert table.missing == {0: 0, 1: int(np.isnan(array[:, 1]).sum()), 2: 0}


def test_an_infinite_number_in_an_array_is_refused_by_column_and_row() -> None:
    array = DRAWN.normal(size=(9_000, 3))
    array[8_123, 2] = -np.inf
    with pytest.raises(DataError, match="column 2, row 8124"):
        read(array)
    array[8_123, 2] = 1e308
    array[8_124, 2] = 1e308  # finite, though the sum is not
    assert read(array).table.missing[2] == 0


def test_a_sparse_matrix_comes_as_bags() -> None:
    matrix = sparse.random(5_000, 7, density=0.3, format="coo", random_state=3)
    for data in (matrix, matrix.tocsc(), sparse.csr_array(matrix)):
        table = open_table(data)
        chunks = chunks_of(table)
        assert table.bag_width == 7
        assert table.schema.fields == ()
        bags = [chunk.bags[0] for chunk in chunks if chunk.bags]
        assert np.array_equal(np.vstack([bag.toarray() for bag in bags]), matrix.toarray())


def test_a_sparse_matrix_with_an_infinite_cell_is_refused() -> None:
    matrix = sparse.csr_matrix(([1.0, np.inf], ([0, 4], [1, 2])), shape=(6, 3))
    with pytest.raises(DataError, match="column 2, row 5"):
        read(matrix)


def test_labels_and_weights_travel_with_their_rows() -> None:
    rows = 9_000
    codes = DRAWN.integers(-1, 3, rows).astype(np.int32)
    weights = DRAWN.random(rows)
    found = read(DRAWN.normal(size=(rows, 2)), labels=codes, weights=weights)
    assert np.array_equal(np.concatenate([c.labels for c in found.chunks if c.labels is not None]), codes)
    assert np.array_equal(np.concatenate([c.weights for c in found.chunks if c.weights is not None]), weights)
    assert found.table.unknown_labels == int((codes == UNKNOWN).sum())


def test_labels_and_weights_of_another_length_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="2 labels for a table of 3 rows"):
        open_table(np.array([[1], [2], [3]]), labels=[0, 1])
    with pytest.raises(DataError, match="4 weights for a table of 3 rows"):
        open_table({"a": [1, 2, 1]}, weights=[1, 1, 1, 1])
    pd.DataFrame({"a": np.arange(70_000) * 0.5}).to_csv(tmp_path / "t.csv", index=False)
    for count in (69_999, 70_001):
        with pytest.raises(DataError, match=f"{count} labels"):
            read(tmp_path / "t.csv", labels=np.zeros(count, np.int32))


def test_a_target_column_gives_labels_and_is_no_feature(tmp_path: Path) -> None:
    columns = {"x": [1.5, 2.5, 3.5, 0.5], "y": ["yes", None, "no", "yes"], "w": [1.0, 2.0, 0.0, 0.5]}
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    for data in (columns, pd.DataFrame(columns), tmp_path / "t.csv"):
        found = read(data, target="y", weight="w")
        assert found.table.keys == ["x"]
        assert found.settled.classes == ["no", "yes"]
        assert labels(found) == ["yes", None, "no", "yes"]
        assert found.table.unknown_labels == 1
        assert found.chunks[0].weights is not None
        assert found.chunks[0].weights.tolist() == [1.0, 2.0, 0.0, 0.5]


def test_a_column_of_an_array_can_be_the_target() -> None:
    found = read(np.array([[0.5, 1], [1.5, 0], [2.5, np.nan], [3.5, 1]]), target=1)
    assert found.table.keys == [0]
    assert found.settled.classes == [0.0, 1.0]
    assert labels(found) == [1.0, 0.0, None, 1.0]


def test_whole_labels_of_a_file_are_whole_numbers(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.5, 2.5, 3.5] * 4, "y": [10, 9, 10] * 4}).to_csv(tmp_path / "t.csv", index=False)
    assert read(tmp_path / "t.csv", target="y").settled.classes == [9, 10]


def test_a_continuous_target_is_refused(tmp_path: Path) -> None:
    columns = {"x": [1, 2, 1, 2], "y": [1.5, 2.0, 3.0, 4.0]}
    with pytest.raises(DataError, match=r"column 'y' holds numbers \(row 1 holds 1\.5\)"):
        read(columns, target="y")


@pytest.mark.parametrize(
    ("weights", "said"), [([1, -2, 1], "row 2 is -2"), ([1, 1, None], "row 3 is nan"), ([0, 0, 0], "all")]
)
def test_a_bad_weight_column_is_refused(weights: list[Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read({"x": [1.5, 2.5, 3.5], "w": weights}, weight="w")


def test_counts_of_missing_cells_are_those_of_one_pass() -> None:
    table = open_table({"x": [1.5, None, 2.5] * 5, "c": ["a", "b", None] * 5})
    for _ in range(2):
        tasks = list(table.tasks())
        for task in tasks + tasks:
            task()
        assert table.missing == {"x": 5, "c": 5}


def test_a_table_is_opened_again_under_other_arguments() -> None:
    table = open_table({"a": [1, 2] * 6, "b": [0.5, 1.5] * 6})
    assert open_table(table) is table
    again = open_table(table, kinds={"a": "real"})
    assert again.schema["a"].kind == "real"
    assert table.schema["a"].kind == "categorical"


def test_a_chunk_keeps_its_borders_in_a_slice_and_refuses_rows_picked_out() -> None:
    (chunk,) = open_table({"x": [0.5, 1.5, 2.5, 3.5, 4.5]}).chunks()
    assert chunk.borders is None
    marked = Chunk(0, 5, chunk.reals, chunk.codes, chunk.wide, borders=np.array([0, 2, 4]))
    sequences = pickle.loads(pickle.dumps(marked))
    assert sequences.take(slice(1, 4)).borders.tolist() == [1]
    assert sequences.take(slice(2, None)).borders.tolist() == [0, 2]
    for rows in (np.array([0, 3]), slice(None, None, 2)):
        with pytest.raises(ValueError, match="rows of sequences stay together"):
            sequences.take(rows)
