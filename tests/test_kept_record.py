"""Fits in Python keep what a report needs: summary of the table, how unseen rows were told, where the model is from."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from softcount.fit import classes

RNG = np.random.default_rng(0)
KIND = RNG.integers(0, 2, 120)
X = pd.DataFrame(
    {
        "size": RNG.normal(3 * KIND, 1.0),
        "colour": np.array(["red", "blue", "grey"])[(KIND + (RNG.random(120) < 0.3)) % 3],
    }
)
X.loc[3, "size"] = np.nan
Y = np.array(["cat", "dog"])[KIND]

FITS: dict[str, Callable[[], Any]] = {
    "labels": lambda: sc.NaiveBayes().fit(X, Y),
    "a column": lambda: sc.NaiveBayes().fit(X.assign(kind=Y), "kind"),
    "weights": lambda: sc.NaiveBayes(weights="columns").fit(X, Y),
    "classifier": lambda: sc.Classifier().fit(X, Y),
    "mixture": lambda: sc.Mixture(2, n_init=2, random_state=3).fit(X),
    "Gaussian mixture": lambda: sc.GaussianMixture(2, n_init=2, random_state=3).fit(X[["size"]].dropna()),
    "network": lambda: sc.BayesNet([("colour", "size")], n_init=1).fit(X),
}


@pytest.mark.parametrize("kind", FITS)
def test_a_saved_fit_has_the_summary_of_its_table_and_its_origin(kind: str, tmp_path: Path) -> None:
    model = FITS[kind]()
    model.save(tmp_path / "m.sc")
    record = sc.load(tmp_path / "m.sc").fitted_.record
    assert record.table.rows == (119 if kind == "Gaussian mixture" else 120)
    size = record.table.column("size")
    assert size.missing == (0 if kind == "Gaussian mixture" else 1)
    np.testing.assert_allclose(size.quantiles, np.nanquantile(X["size"], np.linspace(0, 1, 21)))
    if kind != "Gaussian mixture":
        levels = model.fitted_.schema["colour"].levels
        assert {levels[at]: n for at, n in record.table.column("colour").levels} == dict(X["colour"].value_counts())
    assert record.provenance.version == sc.__version__
    assert record.provenance.command.startswith(type(model).__name__)
    assert record.provenance.seed == (3 if "mixture" in kind else 0)
    assert "no summary" not in sc.load(tmp_path / "m.sc").report().html


def test_rows_are_held_out_once_for_what_is_doubted_and_what_is_kept(monkeypatch: Any, tmp_path: Path) -> None:
    tried: list[Any] = []
    cross_validate = classes.cross_validate
    monkeypatch.setattr(classes, "cross_validate", lambda *given: tried.append(cross_validate(*given)) or tried[-1])
    model = FITS["labels"]()
    assert isinstance(model.notes_, list) and len(tried) == 1
    model.save(tmp_path / "m.sc")
    assert len(tried) == 1
    assert model.fitted_.record.evaluation == tried[0]


@pytest.mark.parametrize("kind", ["labels", "a column", "classifier"])
def test_known_classes_were_tried_on_rows_held_out(kind: str, tmp_path: Path) -> None:
    FITS[kind]().save(tmp_path / "m.sc")
    tried = sc.load(tmp_path / "m.sc").fitted_.record.evaluation
    assert tried.how == "5-fold cross-validation" and tried.n_rows == 120
    assert np.array(tried.confusion).sum() == 120
    right = np.trace(np.array(tried.confusion)) / 120
    assert tried.accuracy == pytest.approx(right)
    assert tried.accuracy > tried.baseline_accuracy
    assert "not in this model file" not in sc.load(tmp_path / "m.sc").report().html


def test_both_ways_to_give_labels_are_tried_alike() -> None:
    """Rows, and so folds, are the same; what is found of them must be."""
    one, other = (FITS[kind]() for kind in ("labels", "a column"))
    assert "5-fold" in one.report().html
    other.report()
    assert one.fitted_.record.evaluation == other.fitted_.record.evaluation


def test_rows_that_come_later_take_the_record_with_them(tmp_path: Path) -> None:
    model = FITS["labels"]()
    model.report()
    assert model.fitted_.record.table is not None
    model.partial_fit(X, Y)
    assert model.fitted_.record.table is None
    model.save(tmp_path / "m.sc")
    html = sc.load(tmp_path / "m.sc").report().html
    assert "No summary of the training table" in html and "model.report(X, y)" in html


def test_rows_are_not_pickled_and_a_fit_does_not_look_at_them() -> None:
    model = FITS["mixture"]()
    assert model.fitted_.record.table is None and model._training is not None
    again = pickle.loads(pickle.dumps(model))
    assert again._training is None and len(pickle.dumps(again)) == len(pickle.dumps(model))
