"""Spark: files read in the tasks and any frame, near to one machine, whatever happens to a worker.

`make scale` runs these; they need pyspark and Java 17 or newer.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from operator import attrgetter
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
from softcount.run.spark import FrameTable, SparkEngine, spark_source
from softcount.table import open_table

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed; make scale installs it")
SETTING: dict[str, Any] = {"n_init": 1, "max_iter": 20, "tol": 0, "random_state": 0, "kinds": {"kind": "ignore"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("parts")
    for part in range(PARTS):
        pq.write_table(pa.table(columns(part)), found / f"part-{part}.parquet")
    return found


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where workers have their temporary files, all of which are gone in the end."""
    found = tmp_path_factory.mktemp("on_disk")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(found))
        patch.setattr(tempfile, "tempdir", None)
        yield found
    assert not [path for path in found.iterdir() if "softcount" in path.name]


@pytest.fixture(scope="module")
def session(on_disk: Path) -> Iterator[Any]:
    """Two tasks at once, each tried four times."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    found = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    found.sparkContext.setLogLevel("OFF")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def frame(session: Any, folder: Path) -> Any:
    return session.read.parquet(str(folder)).repartition(3, "colour").where("visits < 12")


@pytest.fixture(scope="module")
def of_frame(frame: Any) -> Any:
    return sc.NaiveBayes().fit(frame, "kind")


def test_naive_bayes_of_files_is_that_of_one_machine(session: Any, folder: Path) -> None:
    alone, found = (
        sc.NaiveBayes(n_jobs=1).fit(str(folder), "kind"),
        sc.NaiveBayes(engine=session).fit(str(folder), "kind"),
    )
    assert differs(alone, found) <= 1e-13
    assert found.levels_ == alone.levels_ and list(found.classes_) == list(alone.classes_)
    assert found.fitted_.missing == alone.fitted_.missing


def test_naive_bayes_of_a_frame_with_holes_and_strings_is_that_of_one_machine(frame: Any, of_frame: Any) -> None:
    alone = sc.NaiveBayes(n_jobs=1).fit(frame.toArrow(), "kind")
    assert differs(alone, of_frame) <= 1e-13
    assert list(of_frame.classes_) == list(alone.classes_)


def test_spark_makes_the_rows_of_a_frame_once(session: Any, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows made"

    def noted(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            with path.open("a") as file:
                file.write(f"{batch.num_rows}\n")
            yield batch

    rows = session.read.parquet(str(folder))
    found = sc.Mixture(3, **SETTING).fit(rows.mapInArrow(noted, rows.schema))
    assert sum(map(int, path.read_text().split())) == 2 * PARTS * ROWS  # looked at here, then encoded
    alone = sc.Mixture(3, n_jobs=1, **SETTING).fit(rows.toArrow())
    np.testing.assert_allclose(found.trace_, alone.trace_, rtol=1e-14)


@pytest.mark.parametrize("lost", ["a worker", "rows on disk", "all there is"])
def test_what_is_lost_between_passes_changes_no_bit(
    session: Any, frame: Any, of_frame: Any, on_disk: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    asked, seen = FrameTable.asked, []

    def losing(self: FrameTable, job: Any) -> list[Any]:
        if lost == "a worker":
            _kill_a_worker(session)
        else:
            seen.extend(_removed(on_disk))
        if lost == "all there is":
            session.catalog.clearCache()
        return asked(self, job)

    monkeypatch.setattr(FrameTable, "asked", losing)
    assert same_bits(of_frame, sc.NaiveBayes().fit(frame, "kind"))
    assert lost == "a worker" or seen


def _removed(on_disk: Path) -> list[Path]:
    found = list(on_disk.glob("softcount-parts-*"))
    for path in found:
        shutil.rmtree(path)
    return found


def test_a_column_of_a_frame_that_turns_out_otherwise_is_read_again(session: Any) -> None:
    late = session.range(0, 70_000, 1, 2).selectExpr(
        "IF(id < 69000, 3.5D, id * 0.5D) AS n", "id % 5 AS x", "IF(id % 2 = 0, 'a', 'b') AS kind"
    )
    found, alone = sc.NaiveBayes().fit(late, "kind"), sc.NaiveBayes(n_jobs=1).fit(late.toArrow(), "kind")
    assert found.fitted_.schema["n"].kind == alone.fitted_.schema["n"].kind
    assert found.fitted_.schema["n"].anchor == alone.fitted_.schema["n"].anchor
    assert differs(alone, found) <= 1e-13


def test_a_frame_is_refused_another_engine(frame: Any) -> None:
    with pytest.raises(DataError, match="the frame is one of pyspark's, which engine=3 cannot read"):
        sc.NaiveBayes(engine=3).fit(frame, "kind")


def test_a_frame_whose_rows_wander_between_passes_is_refused(session: Any, folder: Path, on_disk: Path) -> None:
    def noise(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            cells = pa.array(np.random.default_rng().normal(size=batch.num_rows))
            yield pa.RecordBatch.from_arrays([cells, batch.column(1)], names=["x", "kind"])

    frame = session.read.parquet(str(folder)).select("x", "kind")
    wandering = open_table(spark_source(frame.mapInArrow(noise, frame.schema)))
    with SparkEngine(session) as engine:
        rows = engine.encoded(wandering)
        assert _removed(on_disk)
        with pytest.raises(DataError, match="Cache the frame"):
            list(rows.each(attrgetter("n_rows")))
        with pytest.raises(DataError, match="Cache the frame"):
            engine.encoded(wandering)


def test_twenty_iterations_of_a_mixture_are_those_of_one_machine(session: Any, folder: Path) -> None:
    alone = sc.Mixture(3, n_jobs=1, **SETTING).fit(str(folder))
    found = sc.Mixture(3, engine=session, **SETTING).fit(str(folder))
    np.testing.assert_allclose(found.trace_, alone.trace_, rtol=1e-14)


def test_clusters_of_a_frame_are_those_of_one_machine(session: Any, folder: Path) -> None:
    numbers = session.read.parquet(str(folder)).selectExpr("coalesce(x, 0) AS x", "visits").repartition(3, "visits")
    here = numbers.toArrow()
    alone, found = sc.KMeans(3, random_state=0).fit(here), sc.KMeans(3, random_state=0).fit(numbers)
    np.testing.assert_allclose(found.cluster_centers_, alone.cluster_centers_, rtol=1e-12)
    np.testing.assert_allclose(found.inertia_, alone.inertia_, rtol=1e-12)
    assert found.agreed_ == alone.agreed_


def test_a_killed_worker_changes_no_bit(session: Any, folder: Path) -> None:
    before = sc.NaiveBayes(engine=session).fit(str(folder), "kind")
    _kill_a_worker(session)
    assert same_bits(before, sc.NaiveBayes(engine=session).fit(str(folder), "kind"))


def _kill_a_worker(session: Any) -> None:
    def pids(batches: Iterator[Any]) -> Iterator[Any]:
        yield from (pa.RecordBatch.from_pydict({"pid": pa.array([os.getpid()], pa.int64())}) for _ in batches)

    (first, *_) = session.range(2).mapInArrow(pids, "pid long").collect()
    os.kill(int(first["pid"]), signal.SIGKILL)


def test_a_poisoned_part_is_one_line_that_names_it(session: Any, tmp_path: Path) -> None:
    for part in range(2):
        (tmp_path / f"part-{part}.csv").write_text("x,kind\n" + "".join(f"{row}.5,a\n" for row in range(50)))
    with (tmp_path / "part-1.csv").open("a") as file:
        file.write("1.5,b,too many cells\n")
    with pytest.raises(DataError, match=r"part-1\.csv") as refused:
        sc.NaiveBayes(engine=session).fit(str(tmp_path / "part-*.csv"), "kind")
    assert "\n" not in str(refused.value)


def test_what_spark_says_of_a_failure_is_one_line(session: Any, folder: Path) -> None:
    frame = session.read.parquet(str(folder)).selectExpr("x", "kind", "raise_error('no such thing') AS z")
    with pytest.raises(DataError, match="no such thing") as refused:
        sc.NaiveBayes().fit(frame, "kind")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 500


def test_the_shell_starts_a_session_of_its_own(folder: Path, tmp_path: Path) -> None:
    said = softcount_command(
        "fit", str(folder), "--target", "kind", "--engine", "spark", "--jobs", "2", "-o", str(tmp_path / "m.sc")
    )
    assert said.returncode == 0, said.stderr
    assert differs(sc.NaiveBayes().fit(str(folder), "kind"), sc.load(tmp_path / "m.sc")) <= 1e-13
