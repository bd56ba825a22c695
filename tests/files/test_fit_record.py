"""What is kept of a fit in a model file: it comes back as it was, senseless contents are refused, older files load."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import softcount as sc
from softcount.cli import main
from softcount.demo import table_path
from softcount.errors import ModelFileError
from softcount.files import read
from softcount.fitted.fitted import Fitted
from softcount.learn.record import FitRecord
from spoiling import Change, say, spoilt


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    saved = tmp_path_factory.mktemp("record") / "bikes.sc"
    done = CliRunner().invoke(main, ["fit", str(table_path()), "--target", "type", "-o", str(saved), "--seed", "3"])
    assert done.exit_code == 0, done.output
    return saved


def record_in(path: Path) -> FitRecord:
    fitted: Fitted = sc.load(path).fitted_
    return fitted.record


def test_the_evaluation_of_the_fit_is_in_the_file(made: Path) -> None:
    tried = record_in(made).evaluation
    assert tried.how == "5-fold cross-validation" and tried.n_rows == 510
    np.testing.assert_allclose(np.sum(tried.confusions, axis=0), tried.confusion)
    assert len(tried.folds) == len(tried.confusions) == 5
    right = np.trace(np.array(tried.confusion)) / np.sum(tried.confusion)
    assert abs(right - tried.accuracy) < 1e-12
    assert abs(sum(b.rows for b in tried.reliability) - 510) < 1e-9
    for lines, row in zip(tried.lift, tried.confusion, strict=True):
        assert abs(lines[-1].captured - 1) < 1e-9 and abs(sum(x.of_class for x in lines) - sum(row)) < 1e-9
        assert lines[0].lift > lines[-1].lift


def test_the_table_and_the_origin_of_the_fit_are_in_the_file(made: Path) -> None:
    found = record_in(made)
    assert found.table is not None and found.provenance is not None
    assert found.table.rows == 520 and found.table.unlabelled == 10
    assert found.provenance.sha256 == hashlib.sha256(table_path().read_bytes()).hexdigest()
    assert found.provenance.seed == 3 and found.provenance.version == sc.__version__
    assert found.provenance.command.startswith("softcount fit") and "--target type" in found.provenance.command


def test_a_record_survives_being_saved_again(made: Path, tmp_path: Path) -> None:
    model = sc.load(made)
    model.save(tmp_path / "again.sc")
    first, again = read(made)[0]["record"], read(tmp_path / "again.sc")[0]["record"]
    assert first == again


def test_a_file_without_a_record_loads(made: Path, tmp_path: Path) -> None:
    def without(document: dict[str, Any], arrays: Any) -> None:
        document["record"] = None

    model = sc.load(spoilt(made, tmp_path, without))
    assert model.fitted_.record == FitRecord()
    text = str(model.report())
    assert "not in this model file" in text and "no summary of the training table" in text


TABLE, TRIED, ORIGIN = ("record", "table"), ("record", "evaluation"), ("record", "provenance")
SENSELESS: dict[str, Change] = {
    "a record that is none": say([1], "record"),
    "an evaluation of another number of classes": say([[1.0]], *TRIED, "confusion"),
    "an accuracy above one": say(1.5, *TRIED, "accuracy"),
    "an accuracy that is text": say("all", *TRIED, "accuracy"),
    "rows below zero": say(-1, *TRIED, "n_rows"),
    "lift with more of the class than rows": say(1e6, *TRIED, "lift", 0, 0, "of_class"),
    "a fold that is none": say([{"accuracy": 0.5}], *TRIED, "folds"),
    "how that is no text": say(7, *TRIED, "how"),
    "cells that are not as many as rows": say(7, *TABLE, "columns", 0, "missing"),
    "another column": say("x", *TABLE, "columns", 0, "key"),
    "a column too few": say([], *TABLE, "columns"),
    "a level that is not there": say([[99, 1]], *TABLE, "columns", 0, "levels"),
    "a level twice": say([[0, 1], [0, 1]], *TABLE, "columns", 0, "levels"),
    "quantiles out of order": say([2.0, 1.0], *TABLE, "columns", 1, "quantiles"),
    "quantiles that are none": say(["1"], *TABLE, "columns", 1, "quantiles"),
    "edges out of order": say([2.0, 1.0], *TABLE, "columns", 1, "edges"),
    "a pair of no columns": say([[0, 99, 1]], *TABLE, "together"),
    "more copies than rows": say(10_000, *TABLE, "copies"),
    "a sum that is none": say("<script>", *ORIGIN, "sha256"),
    "a seed that is none": say("1", *ORIGIN, "seed"),
    "a command that is none": say(None, *ORIGIN, "command"),
    "a part too many": say("x", *ORIGIN, "run"),
    "a criterion that is none": say(3, "record", "criterion"),
}


@pytest.mark.parametrize("change", SENSELESS.values(), ids=list(SENSELESS))
def test_a_record_that_makes_no_sense_is_refused(made: Path, tmp_path: Path, change: Change) -> None:
    with pytest.raises(ModelFileError, match="makes no sense"):
        sc.load(spoilt(made, tmp_path, change))
