"""A Series y gives the target its name, and explanations say which class they compare with which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import softcount as sc
from explained import contributions

RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=90), "c": RNG.choice(["u", "v"], 90)})
Y = pd.Series(np.select([X.a > 0.5, X.a < -0.5], ["high", "low"], "mid"), name="level")
CLASSIFIERS = [sc.NaiveBayes, sc.Classifier, sc.AODE]


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_the_name_of_y_is_the_target(make: Any, tmp_path: Path) -> None:
    model = make().fit(X, Y)
    assert set(model.query("level", {"c": "u"})) == {"high", "low", "mid"}
    assert model.query("a", {"level": "high"}).mean > model.query("a", {"level": "low"}).mean
    drawn = model.sample(5, given={"level": "mid"}, random_state=0)
    assert list(drawn.columns) == ["a", "c", "level"] and set(drawn["level"]) == {"mid"}
    assert "level: 3 classes" in repr(model)
    model.save(tmp_path / "m.sc")
    assert sc.load(tmp_path / "m.sc").query("level") == model.query("level")
    for page, name in ((model.report(), "report.html"), (model.explore(X), "explore.html")):
        page.save(tmp_path / name)
        assert "level" in (tmp_path / name).read_text(encoding="utf-8")


def test_a_polars_series_gives_its_name_and_a_name_that_is_no_text_is_none() -> None:
    model = sc.NaiveBayes().fit(pl.from_pandas(X), pl.Series("level", Y.to_list()))
    assert "level" in model.sample(2, random_state=0).columns
    for y in (Y.rename(None), Y.rename(7), pl.Series(Y.to_list()), Y.to_numpy()):
        assert set(sc.NaiveBayes().fit(X, y).query("(class)")) == {"high", "low", "mid"}


@pytest.mark.parametrize("make", [*CLASSIFIERS, sc.BayesNet])
def test_a_column_with_the_name_of_y_is_refused_unless_it_is_ignored(make: Any) -> None:
    table = X[["c"]].assign(level=Y)
    with pytest.raises(sc.DataError, match="y is named 'level', and so is a column of X"):
        make().fit(table, Y)
    kinds = {"level": "ignore"}
    model = make("naive", kinds=kinds) if make is sc.BayesNet else make(kinds=kinds)
    assert set(model.fit(table, Y).query("level")) == {"high", "low", "mid"}


def test_the_known_classes_of_a_mixture_have_the_name_too() -> None:
    some = Y.where(np.arange(90) % 3 == 0)
    model = sc.Mixture(3, random_state=0).fit(X, some)
    assert set(model.query("level")) == {"high", "low", "mid"}


def test_parts_added_later_keep_the_name() -> None:
    model = sc.NaiveBayes().partial_fit(X[:45], Y[:45]).partial_fit(X[45:], Y[45:])
    assert model.query("level") == sc.NaiveBayes().fit(X, Y).query("level")
    assert set(model.merge(sc.NaiveBayes().fit(X, Y)).query("level")) == {"high", "low", "mid"}


@pytest.mark.parametrize("against", [None, "mid"])
@pytest.mark.parametrize("make", [*CLASSIFIERS, sc.BayesNet.tan])
def test_an_explanation_names_the_two_classes_that_it_compares(make: Any, against: str | None) -> None:
    model = make(X, Y) if make == sc.BayesNet.tan else make().fit(X, Y)
    told, logs = model.explain(X, against=against), np.log(model.predict_proba(X))
    assert list(told.columns[:3]) == ["(class)", "(against)", "(prior)"]
    names, order = model.classes_, np.argsort(-logs, axis=1)
    assert told["(class)"].tolist() == names[order[:, 0]].tolist() == model.predict(X).tolist()
    if against is None:
        assert told["(against)"].tolist() == names[order[:, 1]].tolist()
    else:
        assert set(told["(against)"]) == {against}
    place = {name: index for index, name in enumerate(names)}
    rows = np.arange(90)
    odds = logs[rows, told["(class)"].map(place)] - logs[rows, told["(against)"].map(place)]
    parts = contributions(told).to_pandas().sum(axis=1)
    np.testing.assert_allclose(parts, odds, atol=1e-9)
