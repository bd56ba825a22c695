"""k-means of rows that workers have, or that do not fit into memory, is that of one machine with all rows."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcount as sc
from softcount.errors import DataError
from softcount.learn.k_means import Centres, KMeansOptions, fit_rows
from softcount.run import workers as worker_parts
from softcount.run.workers import PartJob, RowPart, WorkersEngine, do_parts, forget_table
from softcount.table import open_table

COLUMNS, ROWS, PARTS = ("a", "b", "c"), 3_000, 4


class Workers(WorkersEngine):
    """Workers that are this process, with parts done last first."""

    name = "workers"

    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        asked = pickle.dumps(job)
        found = [pickle.loads(pickle.dumps(do_parts(asked, [(at, parts[at])]))) for at in reversed(range(len(parts)))]
        return [answer for ((_, answer),) in reversed(found)]

    def forget(self, table: str) -> None:
        forget_table(table)


def cells(rows: int, offset: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(rows)
    return rng.normal(size=(rows, 3)) + 5.0 * rng.integers(0, 4, rows)[:, None] * np.array([1, -1, 0.5]) + offset


def written(folder: Path, rows: np.ndarray) -> str:
    for part, own in enumerate(np.array_split(rows, PARTS)):
        pq.write_table(pa.table(dict(zip(COLUMNS, own.T, strict=True))), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


class MortalWorkers(Workers):
    """Workers that end after every pass, and share what they encode; the files are gone once they have been read."""

    shares_disk = True

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def run(self, job: PartJob, parts: Sequence[RowPart]) -> list[Any]:
        found = super().run(job, parts)
        worker_parts._tables.clear()
        for path in self.folder.glob("*.parquet"):
            path.unlink()
        return found


def elsewhere(path: str, wish: KMeansOptions, workers: Workers | None = None) -> Centres:
    table = open_table(path, kinds=dict.fromkeys(COLUMNS, "real"))
    with workers or Workers() as engine:
        rows = engine.encoded(table)
        try:
            return fit_rows(engine.settled(table, rows, table.settle()), [0, 1, 2], wish, engine, COLUMNS)
        finally:
            rows.close()


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("rows", [ROWS, 9 * ROWS])  # those of the sample, and more
def test_centres_and_costs_are_those_of_one_machine(tmp_path: Path, rows: int, offset: float) -> None:
    table = cells(rows, offset)
    alone = sc.KMeans(4, random_state=0).fit(table).found_
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    found = elsewhere(written(tmp_path, table), KMeansOptions(4, seed=seed))
    assert np.array_equal(found.frame.anchor, alone.frame.anchor)
    np.testing.assert_allclose(found.centres, alone.centres, rtol=1e-12)
    np.testing.assert_allclose(found.trace, alone.trace, rtol=1e-12)
    assert found.sizes is not None and alone.sizes is not None
    assert found.sizes.tolist() == alone.sizes.tolist()
    assert (found.agreed, found.converged, found.notes) == (alone.agreed, alone.converged, alone.notes)


def test_directions_are_those_of_one_machine(tmp_path: Path) -> None:
    table = cells(ROWS)
    table[5:9] = 0.0
    alone = sc.SphericalKMeans(3, random_state=0).fit(table).found_
    seed = int(np.random.RandomState(0).randint(2**31 - 1))
    found = elsewhere(written(tmp_path, table), KMeansOptions(3, seed=seed, unit=True))
    np.testing.assert_allclose(found.centres, alone.centres, rtol=1e-12)
    assert found.notes == alone.notes


def test_an_empty_cluster_gets_the_farthest_row_of_all_parts(tmp_path: Path) -> None:
    table = cells(ROWS)
    start = np.concatenate([table[:2], np.full((2, 3), 1e3)])
    alone = sc.KMeans(4, init=start).fit(table).found_
    found = elsewhere(written(tmp_path, table), KMeansOptions(4, init=start))
    assert any("empty clusters" in note for note in alone.notes)
    assert found.notes == alone.notes
    np.testing.assert_allclose(found.trace, alone.trace, rtol=1e-12)
    np.testing.assert_allclose(found.centres, alone.centres, rtol=1e-12)


def test_a_hole_is_one_line_with_its_column_and_row(tmp_path: Path) -> None:
    table = cells(ROWS)
    table[2_500, 1] = np.nan
    with pytest.raises(DataError, match=r"column 'b', row 2501 is missing"):
        elsewhere(written(tmp_path, table), KMeansOptions(4))


@pytest.mark.parametrize("kind", [sc.KMeans, sc.SphericalKMeans])
def test_a_file_that_does_not_fit_gives_the_same_bits(tmp_path: Path, kind: Any) -> None:
    path = written(tmp_path, cells(9 * ROWS, 1e4))
    held, spilled = kind(4, random_state=0).fit(path), kind(4, random_state=0, spill=tmp_path).fit(path)
    assert np.array_equal(spilled.cluster_centers_, held.cluster_centers_)
    assert np.array_equal(spilled.labels_, held.labels_) and spilled.trace_ == held.trace_
    assert np.array_equal(spilled.predict(path), held.labels_)
    assert not [name for name in tmp_path.iterdir() if name.suffix != ".parquet"]


def test_a_folder_that_cannot_take_rows_is_one_line(tmp_path: Path) -> None:
    path = written(tmp_path, cells(ROWS))
    with pytest.raises(DataError, match=r"cannot be kept in .*nowhere"):
        sc.KMeans(4, spill=tmp_path / "nowhere").fit(path)


@pytest.mark.parametrize("most", [0, 256])  # parts that are mapped, the others are read into files of the worker's own
def test_workers_that_end_lose_nothing_that_their_host_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    (tmp_path / "shared").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "shared"))
    monkeypatch.setattr(worker_parts, "MOST_MAPPED", most)
    path, wish = written(tmp_path, cells(ROWS)), KMeansOptions(4)
    lasting, mortal = elsewhere(path, wish), elsewhere(path, wish, MortalWorkers(tmp_path))
    np.testing.assert_array_equal(mortal.centres, lasting.centres)
    assert mortal.inertia == lasting.inertia
    assert list((tmp_path / "shared").iterdir()) == []
