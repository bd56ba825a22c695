"""How fitted models and answers show themselves: readable, small, and nothing in them that could run."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import make_pipeline

import softcount as sc
from explored_models import MODELS
from html_checks import HOSTILE, Elements

PLAIN = {"div", "b", "span", "table", "tr", "th", "td", "img"}
LARGEST = 15_000


def checked_html(html: str) -> Elements:
    found = Elements()
    found.feed(html)
    found.close()
    assert len(html.encode()) <= LARGEST
    assert found.tags <= PLAIN
    assert found.attributes <= {"style"} | ({"alt", "src"} if "img" in found.tags else set())
    assert html.count("<img") == html.count('src="data:image/svg+xml;base64,')
    return found


NUMBERS = np.random.default_rng(0).normal(size=(60, 2))
SHOWN: dict[str, Callable[[], Any]] = {kind: lambda made=made: made().model for kind, made in MODELS.items()} | {
    "histogram": lambda: sc.Histogram().fit(NUMBERS[:, 0]),
    "kernel density": lambda: sc.KernelDensity().fit(NUMBERS[:, 0]),
    "kernel density of two": lambda: sc.KernelDensity().fit(NUMBERS),
    "directions": lambda: sc.SphericalKMeans(2, random_state=0).fit(NUMBERS),
}
SAID = {"network": "7 nodes", "chain": "3 symbols (a, b, c), order 1", "hidden_states": "3 states (0, 1, 2) from 3"}


@pytest.mark.parametrize("kind", SHOWN)
def test_a_fitted_model_says_what_it_was_fitted_to(kind: str) -> None:
    model = SHOWN[kind]()
    of = "steps" if "chain" in kind or "states" in kind else "rows"
    assert f"# {SAID.get(kind, '')}" in repr(model)
    assert of in repr(model)
    assert ast.parse(repr(model), mode="eval")  # the rest is a comment
    assert of in checked_html(model._repr_html_()).text
    assert model._repr_mimebundle_()["text/plain"] == repr(model)


@pytest.mark.parametrize("kind", SHOWN)
def test_before_a_fit_it_is_shown_as_scikit_learn_does(kind: str) -> None:
    model = clone(SHOWN[kind]())
    assert repr(model) == BaseEstimator.__repr__(model)
    assert "#" not in repr(model)
    assert "sk-" in model._repr_html_()


def test_long_settings_are_still_broken_into_lines() -> None:
    model = sc.NaiveBayes(kinds={f"a column of numbers {i}": "normal" for i in range(12)}, prior=2.0)
    assert max(map(len, repr(model).splitlines())) <= 88
    assert repr(make_pipeline(model)).startswith("Pipeline(steps=")


def test_a_pipeline_shows_no_comment_in_the_middle() -> None:
    explored = MODELS["mixture"]()
    assert "#" not in repr(make_pipeline(explored.model))


def test_a_classifier_and_a_search_show_what_they_chose_from() -> None:
    X = MODELS["mixture"]().rows
    shown = checked_html(sc.Mixture("auto", random_state=0).fit(X)._repr_html_()).text
    assert "bic" in shown
    assert "log_loss" in checked_html(MODELS["classifier"]().model._repr_html_()).text


def test_a_notebook_shows_how_good_a_classifier_is_and_the_graph_of_a_network() -> None:
    model = MODELS["classifier"]().model
    tried = model.fitted_.record.evaluation
    assert f"accuracy {100 * tried.accuracy:.1f} %" in checked_html(model._repr_html_()).text
    assert 'alt="7 nodes, 7 edges"' in MODELS["network"]().model._repr_html_()


def test_answers_are_readable() -> None:
    answer = MODELS["naive_bayes"]().model.query("height", {"colour": "red"})
    assert f"mean {answer.mean:.4g}" in repr(answer)
    assert "array" not in repr(answer)
    assert f"{answer.quantile(0.5):.5g}" in checked_html(answer._repr_html_()).text
    likeliest = MODELS["network"]().model.most_probable()
    assert str(likeliest.levels["job"]) in checked_html(likeliest._repr_html_()).text


def test_results_are_readable() -> None:
    model = MODELS["naive_bayes"]().model
    y = ["no", "yes"] * 30
    X = {"u": NUMBERS[:, 0], "v": [*"abc"] * 20}
    evaluation = sc.NaiveBayes().fit(X, y).evaluate(X, y)
    assert f"accuracy {evaluation.accuracy:.4g}" in repr(evaluation)
    assert "calibration error" in checked_html(evaluation._repr_html_()).text
    compared = sc.compare(X, y, folds=2)
    assert compared.best.name in repr(compared) and compared.best.name in checked_html(compared._repr_html_()).text
    ranking = sc.rank_densities(NUMBERS[:, 0])
    assert ranking.best.name in repr(ranking) and ranking.best.name in checked_html(ranking._repr_html_()).text
    table = sc.read(X)
    assert repr(table) == "<Table of 60 rows: u (real), v (categorical)>"
    assert "categorical" in checked_html(table._repr_html_()).text
    steps = sc.read_sequences(["anna", "otto"])
    assert repr(steps) == "<Sequences: 2 sequences, 8 steps of 'character'>"
    pages = [model.explore(), model.report(), sc.model_changes(model, model), model.counts_, model.posterior_]
    pages += [sc.select_columns(sc.NaiveBayes(), X, y), sc.plot.InfluenceDisplay.from_estimator(model)]
    assert all(len(repr(page)) < 500 and " at 0x" not in repr(page) and "array" not in repr(page) for page in pages)
    assert pages[0]._repr_html_().startswith("<iframe")


def test_hostile_names_are_only_text() -> None:
    names = [name for name in HOSTILE if name.strip()]
    columns: dict[str, Any] = {name * 3: HOSTILE[:20] * 2 for name in names}
    frame = pd.DataFrame(columns | {"<b>": np.array(HOSTILE)})
    model = sc.NaiveBayes(kinds=dict.fromkeys(columns, "categorical")).fit(frame, "<b>")
    checked_html(model._repr_html_())
    checked_html(sc.MarkovChain().fit([names, names[::-1]])._repr_html_())
    checked_html(sc.KMeans(2, random_state=0).fit(pd.DataFrame(np.eye(40), columns=names))._repr_html_())
    assert "\n" not in repr(model).rsplit("  # ", 1)[1]
    assert "\x1b" not in repr(model).rsplit("  # ", 1)[1]
