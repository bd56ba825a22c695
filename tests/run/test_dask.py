"""Dask: any number of workers the same bits, near to one machine, whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcount as sc
from cli.shell import softcount_command
from parted_rows import PARTS, ROWS, columns, differs, same_bits
from softcount.errors import DataError
from softcount.run import workers as worker_parts
from softcount.run.dask import DaskEngine
from softcount.sources.frames import frame_source
from softcount.sources.open_source import PartsSource, SourcePart
from softcount.table import open_table

distributed = pytest.importorskip("distributed")
SETTING: dict[str, Any] = {"n_init": 2, "max_iter": 6, "tol": 0, "random_state": 0}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("parts")
    for part in range(PARTS):
        pq.write_table(pa.table(columns(part)), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def mixture(files: Any, engine: Any = None, **more: Any) -> Any:
    return sc.Mixture(3, kinds={"kind": "ignore"}, engine=engine, **(SETTING | more)).fit(files)


def test_naive_bayes_of_files_is_that_of_one_machine(client: Any, files: str) -> None:
    alone, found = sc.NaiveBayes(n_jobs=1).fit(files, "kind"), sc.NaiveBayes(engine=client).fit(files, "kind")
    assert differs(alone, found) <= 1e-13
    assert found.levels_ == alone.levels_ and list(found.classes_) == list(alone.classes_)
    assert found.fitted_.missing == alone.fitted_.missing
    assert found.notes_ == alone.notes_


def test_twenty_iterations_of_a_mixture_are_those_of_one_machine(client: Any, files: str) -> None:
    alone, found = mixture(files, n_jobs=1, max_iter=20), mixture(files, client, max_iter=20)
    trace = np.array(alone.trace_)
    assert len(trace) == 21
    assert np.abs(np.array(found.trace_) / trace - 1).max() <= 1e-14
    assert differs(alone, found) <= 1e-12


def test_any_number_of_workers_gives_the_same_bits(client: Any, files: str) -> None:
    nb, mix = sc.NaiveBayes(engine=client).fit(files, "kind"), mixture(files, client, max_iter=5)
    for workers in (1, 4):
        how = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
        with distributed.LocalCluster(n_workers=workers, **how) as cluster, distributed.Client(cluster) as other:
            assert same_bits(sc.NaiveBayes(engine=other).fit(files, "kind"), nb)
            again = mixture(files, other, max_iter=5)
            assert again.trace_ == mix.trace_ and same_bits(again, mix)


def kmeans(data: Any, engine: Any = None) -> Any:
    return sc.KMeans(3, random_state=0, engine=engine).fit(data)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("numbers")
    for part in range(PARTS):
        pq.write_table(pa.table({key: columns(part)[key] for key in ("y", "visits")}), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def test_clusters_are_those_of_one_machine_for_any_number_of_workers(client: Any, numbers: str) -> None:
    alone, found = kmeans(numbers), kmeans(numbers, client)
    np.testing.assert_allclose(found.cluster_centers_, alone.cluster_centers_, rtol=1e-13)
    np.testing.assert_allclose(found.trace_, alone.trace_, rtol=1e-13)
    assert found.notes_ == alone.notes_ and list(found.feature_names_in_) == ["y", "visits"]
    assert np.array_equal(found.predict(numbers), alone.labels_)
    for workers in (1, 4):
        how = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}
        with distributed.LocalCluster(n_workers=workers, **how) as cluster, distributed.Client(cluster) as other:
            again = kmeans(numbers, other)
            assert again.trace_ == found.trace_ and np.array_equal(again.cluster_centers_, found.cluster_centers_)


def test_clusters_of_a_frame_of_dask_are_found_where_its_partitions_are(client: Any, numbers: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    found, files = kmeans(frames.read_parquet(numbers)), kmeans(numbers, client)
    np.testing.assert_allclose(found.cluster_centers_, files.cluster_centers_, rtol=1e-13)
    with pytest.raises(DataError, match="not brought here"):
        sc.KMeans(3, engine=client).fit_predict(numbers)
    with pytest.raises(DataError, match="every row weighs one"):
        sc.KMeans(3, engine=client).fit(numbers, sample_weight=np.ones(PARTS * ROWS))
    with pytest.raises(DataError, match="rows in memory are fitted where they are"):
        kmeans(np.zeros((9, 2)), client)


def test_a_frame_of_dask_is_fitted_where_its_partitions_are(client: Any, files: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    found = mixture(frames.read_parquet(files))
    assert np.abs(np.array(found.trace_) / np.array(mixture(files, client).trace_) - 1).max() <= 1e-14
    nb = sc.NaiveBayes().fit(frames.read_parquet(files), "kind")
    assert differs(sc.NaiveBayes(n_jobs=1).fit(files, "kind"), nb) <= 1e-13
    with pytest.raises(DataError, match="was persisted"):
        sc.NaiveBayes().fit(frames.read_parquet(files).persist(), "kind")


def test_full_covariances_and_gaps_in_labels_are_learned_too(client: Any, tmp_path: Path) -> None:
    for part in range(2):
        rng = np.random.default_rng(part)
        block = rng.normal(size=(ROWS, 3)) @ rng.normal(size=(3, 3)) + 4 * rng.integers(0, 2, ROWS)[:, None]
        labels = [None if row % 3 else ("low", "high")[int(block[row, 0] > 2)] for row in range(ROWS)]
        table = pa.table({**{f"v{j}": block[:, j] for j in range(3)}, "label": labels})
        pq.write_table(table, tmp_path / f"p{part}.parquet")
    path = str(tmp_path / "p*.parquet")
    kinds = {("v0", "v1", "v2"): "multinormal", "label": "ignore"}
    alone, found = (sc.Mixture(2, kinds=kinds, engine=engine, **SETTING).fit(path) for engine in (None, client))
    assert np.abs(np.array(found.trace_) / np.array(alone.trace_) - 1).max() <= 1e-14
    alone, found = (sc.NaiveBayes(engine=engine, max_iter=5).fit(path, "label") for engine in (None, client))
    assert differs(alone, found) <= 1e-12


def test_kinds_that_later_parts_contradict_are_decided_once(client: Any, tmp_path: Path) -> None:
    for part, cells in enumerate((["1", "2", "3"] * 50, ["4", "5", "six"] * 50)):
        pq.write_table(pa.table({"n": cells, "z": list(range(150))}), tmp_path / f"p{part}.parquet")
    path, setting = str(tmp_path / "p*.parquet"), {"n_init": 1, "max_iter": 3, "tol": 0, "random_state": 0}
    alone, found = (sc.Mixture(2, engine=engine, **setting).fit(path) for engine in (None, client))
    assert found.levels_ == alone.levels_
    assert found.trace_ == pytest.approx(alone.trace_, rel=1e-13)


def test_a_poisoned_part_is_one_line_that_names_it_and_the_row(client: Any, files: str, tmp_path: Path) -> None:
    bad = columns(0)
    bad["visits"] = [-3 if row == 16 else 2 for row in range(ROWS)]
    pq.write_table(pa.table(columns(1)), tmp_path / "a.parquet")
    pq.write_table(pa.table(bad), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: column 'visits' is a count, but row 17 holds -3\.0") as found:
        sc.NaiveBayes(kinds={"visits": "poisson"}, engine=client).fit(str(tmp_path / "*.parquet"), "kind")
    assert "\n" not in str(found.value)
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(DataError, match=r"b\.parquet"):
        sc.NaiveBayes(engine=client).fit(str(tmp_path / "*.parquet"), "kind")


def test_a_part_that_changed_before_it_is_read_again_is_refused(client: Any, tmp_path: Path) -> None:
    for part in range(2):
        pq.write_table(pa.table(columns(part)), tmp_path / f"p{part}.parquet")
    expect = worker_parts.reduce

    def lose_everything(*given: Any) -> Any:
        worker_parts._tables.clear()
        pq.write_table(pa.table(columns(3)), tmp_path / "p1.parquet")
        return expect(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_parts, "reduce", lose_everything)
        with pytest.raises(DataError, match=r"p1\.parquet was changed"):
            mixture(str(tmp_path / "p*.parquet"), client)


def test_what_needs_every_row_here_is_refused_in_one_line(client: Any, files: str) -> None:
    with pytest.raises(DataError, match="labels and weights are columns"):
        sc.NaiveBayes(engine=client).fit(files, ["a"] * PARTS * ROWS)
    with pytest.raises(DataError, match="rows in memory are fitted where they are"):
        sc.NaiveBayes(engine=client).fit(columns(0), "kind")
    with pytest.raises(DataError, match="needs all rows on one machine"):
        mixture(files, client, init=np.zeros(PARTS * ROWS, dtype=int))
    with pytest.raises(DataError, match="engine must be None, a client"):
        sc.NaiveBayes(engine="x").fit(files, "kind")


def test_an_engine_that_cannot_read_a_frame_is_refused_in_one_line(client: Any) -> None:
    class Session:
        __module__ = "pyspark.sql"

    class Frame(PartsSource):
        owner = Session()

    frame = Frame([SourcePart("rows", partial(frame_source, pa.table(columns(0))))])
    with pytest.raises(DataError, match="the frame is one of pyspark's, which engine=<Client") as found:
        sc.NaiveBayes(engine=client).fit(open_table(frame), "kind")
    assert "\n" not in str(found.value)


def test_workers_forget_what_they_are_not_asked_for_any_more(client: Any, files: str) -> None:
    for _ in range(3):
        sc.NaiveBayes(engine=client).fit(files, "kind")
    assert len(worker_parts._tables) <= worker_parts.MOST_TABLES


def test_a_killed_worker_changes_no_bit(client: Any, files: str) -> None:
    whole = mixture(files, client)
    how = {"processes": True, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **how) as cluster, distributed.Client(cluster) as other:
        pid = next(iter(other.run(os.getpid).values()))
        passes, engine_run = [0], DaskEngine._run_once

        def killing(self: Any, *given: Any) -> Any:
            passes[0] += 1
            if passes[0] == 6:
                threading.Timer(0.003, os.kill, (pid, signal.SIGKILL)).start()
            return engine_run(self, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DaskEngine, "_run_once", killing)
            found = mixture(files, other)
    assert passes[0] > 6
    assert found.trace_ == whole.trace_ and same_bits(found, whole)


def test_the_shell_refuses_what_an_engine_does_not_do(tmp_path: Path) -> None:
    for words, said in (
        (["--engine", "flink"], "--engine flink is not known; give dask or spark"),
        (["--engine", "dask", "--target", "kind", "--model", "aode"], "--model aode needs all rows on one machine"),
    ):
        found = softcount_command("fit", "x.csv", *words, cwd=tmp_path)
        assert found.returncode == 2
        assert said in found.stderr.decode()
