"""What rows held out say of a model that Dask counts, and what they choose: the same as on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import softcount as sc
from parted_rows import PARTS, columns
from softcount.errors import DataError
from softcount.evaluate import folds
from softcount.evaluate.scores import cross_validate
from softcount.learn.record import Plan
from softcount.models.declare import read_kinds
from softcount.run.dask import DaskEngine
from softcount.run.local import Threads
from softcount.table import open_table

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The class follows from two columns together; some rows have none, and some weigh more."""
    folder = tmp_path_factory.mktemp("parts")
    for part in range(PARTS):
        cells = {key: pa.array(cells)[:600] for key, cells in columns(part).items()}
        rng = np.random.default_rng(part)
        like = (rng.normal(size=600) > 0) == (np.asarray(cells["visits"]) > 4)
        cells["told"] = pa.array(["same" if own else "other" for own in like], mask=rng.random(600) < 0.02)
        cells["weight"] = pa.array(rng.integers(1, 4, 600))
        pq.write_table(pa.table(cells), folder / f"part-{part}.parquet")
    return str(folder / "part-*.parquet")


def plan(target: str, **more: Any) -> Plan:
    return Plan(declared=read_kinds(None), prior=1.0, estimate="mean", target=target, **more)


@pytest.mark.parametrize("share", [None, 0.3])
def test_folds_counted_by_workers_are_those_of_one_machine(client: Any, files: str, share: float | None) -> None:
    with Threads(1) as threads, DaskEngine(client) as engine:
        for target, more in (("kind", {}), ("told", {"unlabelled_weight": 0.0})):
            here, there = (
                cross_validate(open_table(files, target=target), plan(target, **more), runner, share=share)
                for runner in (threads, engine)
            )
            assert here is not None and here == there, target


def test_rows_of_some_weight_are_in_one_fold(client: Any, files: str) -> None:
    with DaskEngine(client) as engine:
        found = cross_validate(open_table(files, target="kind", weight="weight"), plan("kind"), engine)
    assert found is not None and found.n_rows == 600 * PARTS and 0 < found.log_loss < found.baseline_log_loss


def test_where_folds_would_take_em_nothing_is_said(client: Any, files: str) -> None:
    with DaskEngine(client) as engine:
        assert cross_validate(open_table(files, target="told"), plan("told", unlabelled_weight=1.0), engine) is None


@pytest.mark.parametrize("most", [100_000, 700])
def test_the_rows_that_choose_are_those_of_one_machine(
    client: Any, files: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folds, "MOST_ROWS", most)
    fitted = sc.NaiveBayes(unlabelled_weight=0).fit(files, "told").fitted_
    with Threads(1) as threads, DaskEngine(client) as engine:
        here, there = (folds.draw_known_rows(fitted, fitted.table(files, target="told"), x) for x in (threads, engine))
    assert here.of == there.of < 600 * PARTS and len(here.numbers) == min(most, here.of)
    for name in ("numbers", "labels", "weights"):
        assert np.array_equal(getattr(here, name), getattr(there, name))
    assert np.array_equal(here.rows.numbers, there.rows.numbers, equal_nan=True)


def test_a_classifier_on_an_engine_is_that_of_one_machine(client: Any, files: str) -> None:
    frames = pytest.importorskip("dask.dataframe")
    kinds = {"weight": "ignore", "told": "ignore", "visits": "poisson"}
    here = sc.Classifier(kinds=kinds).fit(files, "kind")
    for there in (
        sc.Classifier(kinds=kinds, engine=client).fit(files, "kind"),
        sc.Classifier(kinds=kinds).fit(frames.read_parquet(files), "kind"),
    ):
        assert there.ensemble_ is not None and here.ensemble_ is not None
        assert there.ensemble_.names == here.ensemble_.names
        np.testing.assert_allclose(there.ensemble_.weights, here.ensemble_.weights, rtol=1e-9)
        np.testing.assert_allclose(there.predict_proba(files), here.predict_proba(files), rtol=1e-9)
        assert there.notes_[-1] == here.notes_[-1] and "standard naive Bayes has" in here.notes_[-1]
        assert there.fitted_.record.evaluation.log_loss == pytest.approx(here.fitted_.record.evaluation.log_loss)
    with pytest.raises(DataError, match="labels and weights are columns"):
        sc.Classifier(engine=client).fit(files, ["a"] * 600 * PARTS)
    with pytest.raises(DataError, match="Fetch them"):
        sc.AODE().fit(frames.read_parquet(files), "kind")


def test_the_shell_says_how_good_a_model_of_an_engine_is(client: Any, files: str, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from softcount.cli import main

    how = [
        "--target",
        "kind",
        "--kind",
        "told=ignore",
        "-o",
        str(tmp_path / "m.sc"),
        "--engine",
        f"dask={client.scheduler.address}",
    ]
    said = CliRunner().invoke(main, ["fit", files, *how])
    assert said.exit_code == 0, said.output
    here = CliRunner().invoke(main, ["fit", files, *how[:6]])
    figures = [line for line in here.output.splitlines() if "accuracy" in line or "log-loss" in line]
    assert figures and all(line in said.output for line in figures)
    assert sc.load(tmp_path / "m.sc").fitted_.record.evaluation.n_rows == 600 * PARTS
