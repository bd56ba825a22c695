"""Tasks of a table run in other processes: chunks, levels, counts and classes are those of this one, bit for bit."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from tests.table.folders import write
from tests.table.reading import with_room

from process_runner import Processes
from softcount.sources.bytestream import TextFile
from softcount.sources.documents import LinesSource
from softcount.table import Chunk, Contradiction, Table, open_table
from softcount.table.encode import ChunkTask

ROWS = 9_000


def frame() -> pd.DataFrame:
    """Levels that first appear in later chunks, holes, labels that are not all known, weights."""
    draw = np.random.default_rng(5)
    rows = np.arange(ROWS)
    shades = (draw.integers(0, 9, ROWS) + rows // 2_000).astype(str)
    return pd.DataFrame(
        {
            "colour": np.where(rows % 7 == 0, None, np.char.add("c", shades)),
            "wide": [f"w{number}" for number in draw.integers(0, 300 + rows // 10)],
            "size": np.where(rows % 11 == 0, np.nan, draw.normal(size=ROWS) + 5),
            "whole": draw.integers(0, 4 + rows // 3_000),
            "kind": [None if row % 13 == 0 else f"k{(row // 2_500 + row) % 5}" for row in rows],
            "weight": draw.integers(1, 4, ROWS).astype(float),
        }
    )


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def csv_table(folder: Path) -> Table:
    frame().to_csv(folder / "t.csv", index=False)
    return open_table(folder / "t.csv", target="kind", weight="weight")


def parquet_table(folder: Path) -> Table:
    pq.write_table(pa.Table.from_pandas(frame()), folder / "t.parquet", row_group_size=2_500)
    return open_table(folder / "t.parquet", target="kind", weight="weight")


def array_table(order: Any = "C") -> Table:
    draw = np.random.default_rng(6)
    array = np.asarray(np.where(draw.random((ROWS, 4)) < 0.01, np.nan, draw.normal(size=(ROWS, 4))), order=order)
    return open_table(array, labels=draw.integers(-1, 3, ROWS), weights=draw.random(ROWS))


def whole_table() -> Table:
    rows = np.arange(ROWS)
    array = np.stack([rows % 3 + rows // 4_096, rows % 2, np.where(rows < 8_000, rows % 5, 900 - rows % 7)], axis=1)
    return open_table(array, kinds={0: "categorical", 1: "categorical", 2: "categorical"})


def notes(count: int = 5_000) -> list[str | None]:
    draw = np.random.default_rng(7)
    texts = (" ".join(f"word{n}" for n in draw.integers(0, 40 + row, 6)) for row in range(count))
    return [None if row % 17 == 0 else text for row, text in enumerate(texts)]


def text_table() -> Table:
    kinds = [None if row % 3 else "ab"[row % 2] for row in range(5_000)]
    said = {"note": notes(), "size": np.arange(5_000) / 7, "kind": kinds}
    return open_table(said, kinds={"note": "text"}, target="kind")


def folder_table(folder: Path) -> Table:
    files = {f"{'ab'[row % 2]}/{row:04}": (text or "").encode() for row, text in enumerate(notes(3_000))}
    return open_table(write(folder / "mail", files), target="class")


def lines_table(folder: Path) -> Table:
    (folder / "lines.txt").write_text("\n".join(text or "" for text in notes(5_000)))
    return open_table(LinesSource(TextFile(str(folder / "lines.txt"))))


TABLES: dict[str, Callable[[Path], Table]] = {
    "csv": csv_table,
    "parquet": parquet_table,
    "frame": lambda _: open_table(frame(), target="kind", weight="weight"),
    "array": lambda _: array_table(),
    "array by columns": lambda _: array_table("F"),
    "whole numbers": lambda _: whole_table(),
    "text": lambda _: text_table(),
    "folder": folder_table,
    "lines": lines_table,
    "counts": lambda _: open_table(sparse.random(ROWS, 20, 0.1, format="csr", rng=8)),
}


@pytest.fixture(scope="module")
def processes() -> Iterator[Processes]:
    with Processes(2) as runner:
        yield runner


def same(one: Chunk, other: Chunk) -> None:
    assert (one.start, one.n_rows) == (other.start, other.n_rows)
    for name in ("reals", "codes", "wide", "labels", "weights"):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None)
        if left is not None:
            assert left.dtype == right.dtype
            assert (left.strides[0] < left.strides[-1]) == (right.strides[0] < right.strides[-1]) or not left.size
            np.testing.assert_array_equal(left, right)
    assert len(one.bags) == len(other.bags)
    for left, right in zip(one.bags, other.bags, strict=True):
        assert left.shape == right.shape
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(left, part), getattr(right, part))


def read_both(make: Callable[[], Table], processes: Processes, **said: Any) -> tuple[Table, Table]:
    """The table read here and read in other processes, after every chunk was found the same."""
    here, there = make(), make()
    here.gather_words(labelled=True)
    there.gather_words(processes.map, labelled=True)
    ours, theirs = [task() for task in here.tasks()], list(there.chunks(processes.map))
    assert len(ours) == len(theirs) > 1
    for one, other in zip(ours, theirs, strict=True):
        same(one, other)
    return here, there


@pytest.mark.parametrize("name", TABLES)
def test_other_processes_give_the_same_chunks_levels_and_counts(
    name: str, tmp_path: Path, processes: Processes
) -> None:
    folders = iter([tmp_path / "here", tmp_path / "there"])
    here, there = read_both(lambda: TABLES[name](made(next(folders))), processes)
    ours, theirs = here.settle(), there.settle()
    assert ours.schema == theirs.schema
    assert ours.classes == theirs.classes
    np.testing.assert_array_equal(ours.label_remap, theirs.label_remap)
    assert ours.remap.keys() == theirs.remap.keys()
    for key, move in ours.remap.items():
        np.testing.assert_array_equal(move, theirs.remap[key])
    assert (here.missing, here.unseen, here.unknown_labels) == (there.missing, there.unseen, there.unknown_labels)
    assert here.notes == there.notes


def test_a_table_read_for_prediction_counts_what_it_does_not_know(tmp_path: Path, processes: Processes) -> None:
    learned = open_table(frame().head(3_000), kinds={"whole": "categorical"})
    list(learned.chunks())
    schema = learned.settle().schema
    here, there = read_both(lambda: open_table(frame(), schema=schema), processes)
    assert here.unseen == there.unseen
    assert here.unseen["colour"] > 0


def test_a_task_takes_its_own_rows_along_and_no_others(tmp_path: Path) -> None:
    big = np.random.default_rng(9).normal(size=(60_000, 8))
    for data in (big, pd.DataFrame(big, columns=list("abcdefgh")), sparse.csr_matrix(big)):
        sizes = [len(pickle.dumps(task)) for task in open_table(data).tasks()]
        assert max(sizes) < 1.6 * big.nbytes / len(sizes) + 20_000


def test_a_contradiction_found_elsewhere_names_the_same_row(tmp_path: Path, processes: Processes) -> None:
    late = pd.DataFrame({"it": [*([1, 2, 3] * 25_000), "x"], "x": 0.5 + np.arange(75_001) % 3})
    late.to_csv(tmp_path / "late.csv", index=False)
    told = []
    for read in (map, processes.map):
        with pytest.raises(Contradiction) as caught:
            list(open_table(tmp_path / "late.csv").chunks(read))
        told.append((caught.value.key, caught.value.row, caught.value.reason, caught.value.becomes, str(caught.value)))
    assert told[0] == told[1]


def test_levels_too_many_together_are_said_with_the_same_row(processes: Processes) -> None:
    """No process meets too many by itself: only all of them together do."""
    rows = np.arange(20_000)
    table = {"it": [f"w{number}" for number in rows % 250 + 250 * (rows // 5_000)], "x": rows / 7}
    told = []
    for read in (map, processes.map):
        with pytest.raises(Contradiction) as caught:
            list(with_room(open_table(table, levels={"it": [f"v{n}" for n in range(300)]}), 900).chunks(read))
        told.append((caught.value.row, caught.value.reason))
    assert told[0] == told[1]


def test_a_copied_task_called_twice_gives_the_same_chunk(tmp_path: Path) -> None:
    table = csv_table(tmp_path)
    for task in table.tasks():
        copy: ChunkTask = pickle.loads(pickle.dumps(task))
        same(copy(), copy())
        same(task(), table.absorb(copy.coded()).chunk)


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
