"""What the page answers is what the library answers, for every kind of model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace
from scipy.stats import norm

from asked_pages import CLASSES, COLUMNS, TOLERANCE, as_evidence, asked, distribution, variables_of
from explained import contributions
from explored_models import MODELS, STARS, TEXTS, Explored, random_rows, tempered
from softcount.explore import make_explorer as page_of
from softcount.explore.classes import ensemble_document
from softcount.fitted.ensemble_scorers import EnsembleScorer
from softcount.run.local import Runner


def posteriors(explored: Explored, rows: pd.DataFrame) -> np.ndarray:
    """The probability of every class as `query` has it: a classifier's ensemble and calibration are not in it."""
    fitted, table = explored.model.fitted_, explored.model._read_rows(rows)
    joint = fitted.log_joint(table, Runner())
    shares = np.exp(joint - joint.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [*STARS, *TEXTS])
def test_a_thousand_random_rows_are_answered_as_the_library_does(kind: str, explored_pages: Any) -> None:
    explored = MODELS[kind]()
    page = explored_pages(kind)
    variables, rows = variables_of(page), random_rows(explored.rows, 1000)
    evidences = [as_evidence(variables, row) for row in rows.to_dict("records")]
    assert np.abs(np.array(asked(page, CLASSES, evidences)) - posteriors(explored, rows)).max() < TOLERANCE
    found = asked(page, COLUMNS, evidences[:40])
    target, rng = variables[0]["name"], np.random.default_rng(2)
    for i in range(40):
        given = {k: v for k, v in rows.iloc[i].items() if v is not None and not pd.isna(v)}
        free = [p for p, v in enumerate(variables) if v["name"] not in {*given, target, "text"}]
        if not free:
            continue
        place = int(rng.choice(free))
        expected = distribution(explored.model.query(variables[place]["name"], given), variables[place])
        assert np.abs(np.array(found[i][place]) - expected).max() < TOLERANCE


def test_clusters_answer_by_distances_and_are_the_nearest_of_whole_rows(explored_pages: Any) -> None:
    """Against clusters of one width written out, in as many columns as are given; of all columns, against predict."""
    explored, page = MODELS["k_means"](), explored_pages("k_means")
    centres, rows = explored.model.cluster_centers_, random_rows(explored.rows, 1000)
    width = explored.model.inertia_ / explored.rows.size
    variables = variables_of(page)
    evidences = [as_evidence(variables, row) for row in rows.to_dict("records")]
    found = asked(page, COLUMNS, evidences)
    cells = rows.to_numpy(dtype=float)
    odds = -0.5 * np.nansum((cells[:, None] - centres) ** 2, axis=2) / width
    shares = np.exp(odds - odds.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    assert np.abs(np.array([own[0] for own in found]) - shares).max() < TOLERANCE
    for place, variable in enumerate(variables[1:]):
        below = norm.cdf(np.array(variable["edges"]), centres[:, [place]], np.sqrt(width))
        expected = np.diff(shares @ np.hstack([np.zeros((3, 1)), below, np.ones((3, 1))]), axis=1)
        free = np.isnan(cells[:, place])
        assert np.abs(np.array([own[place + 1] for own in found])[free] - expected[free]).max() < TOLERANCE
    whole = [as_evidence(variables, row) for row in explored.rows.to_dict("records")]
    nearest = np.array(asked(page, CLASSES, whole)).argmax(axis=1)
    assert (nearest == explored.model.predict(explored.rows)).all()


@pytest.mark.parametrize("kind", ["naive_bayes", "predictive_bayes", "classifier"])
def test_sets_and_ranges_are_answered_by_adding_up(kind: str, explored_pages: Any) -> None:
    explored = MODELS[kind]()
    page = explored_pages(kind)
    variables = variables_of(page)
    target, blocked = variables[0], [("colour", "size")] if kind == "predictive_bayes" else []
    classes = list(explored.model.fitted_.names)
    alone = {
        (v["name"], k): distribution(explored.model.query(v["name"], {target["name"]: k}), v)
        for v in variables[1:]
        for k in classes
    }
    rng, evidences, expected = np.random.default_rng(3), [], []
    prior = np.array([explored.model.query(target["name"])[k] for k in classes])
    for _ in range(1000):
        few = rng.permutation(np.arange(1, len(variables)))[: rng.integers(1, 4)]
        names = {variables[place]["name"] for place in few}
        if any(names >= set(block) for block in blocked):
            continue  # together they are not a product
        evidence: list[Any] = [None] * len(variables)
        weights = prior.copy()
        for place in few:
            size = len(alone[variables[place]["name"], classes[0]])
            cells = rng.random(size) < 0.5
            if variables[place]["kind"] == "number":
                low, high = sorted(rng.integers(0, size, 2))
                cells = (np.arange(size) >= low) & (np.arange(size) <= high)
            cells[rng.integers(size)] = True
            evidence[place] = {"cells": cells.astype(int).tolist()}
            weights *= [alone[variables[place]["name"], k][cells].sum() for k in classes]
        if weights.sum() > 1e-12:
            evidences.append(evidence)
            expected.append(weights)
    logs = asked(page, "e => softcount.engine.logEvidence(e)", evidences)
    wanted, got = np.array(expected), np.array(asked(page, CLASSES, evidences))
    assert np.abs(got - wanted / wanted.sum(axis=1, keepdims=True)).max() < TOLERANCE
    assert np.abs(np.exp(np.array(logs)) / wanted.sum(axis=1) - 1).max() < TOLERANCE


REASONED = [*STARS, "spam", "all_ways"]


@pytest.mark.parametrize("kind", REASONED)
def test_the_waterfall_adds_up_and_is_that_of_explain(kind: str, explored_pages: Any) -> None:
    explored = MODELS[kind]()
    page = explored_pages(kind)
    variables, rows = variables_of(page), random_rows(explored.rows, 200, seed=5)
    evidences = [as_evidence(variables, row) for row in rows.to_dict("records")]
    found = asked(page, "e => softcount.engine.waterfall(e)", evidences)
    table = contributions(explored.model.explain(rows)).to_pylist()
    for why, expected in zip(found, table, strict=True):
        assert sum(step["odds"] for step in why["steps"]) == pytest.approx(why["total"], abs=1e-9)
        assert why["total"] == pytest.approx(sum(expected.values()), abs=TOLERANCE)
        for step in why["steps"][1:]:
            assert step["odds"] == pytest.approx(expected[step["name"]], abs=TOLERANCE)


def test_the_likeliest_row_beats_all_others(explored_pages: Any) -> None:
    """Against all rows of a small model, one by one."""
    page = explored_pages("mixture")
    code = """() => {
      const {engine} = softcount, {variables} = engine, none = variables.map(() => null);
      const one = (v, c) => ({cells: Array.from({length: v.size}, (_, i) => Number(i === c))});
      let best = -Infinity, row = null;
      const walk = (at, e) => {
        if (at === variables.length) {
          const log = engine.logEvidence(e);
          if (log > best) { best = log; row = e.map(x => x.cells.indexOf(1)); }
          return;
        }
        for (let c = 0; c < variables[at].size; c++) walk(at + 1, e.with(at, one(variables[at], c)));
      };
      walk(0, none);
      const found = engine.likeliest(none);
      return [row, variables.map((_, at) => found.get(at))];
    }"""
    walked, found = page.run(code)
    assert found == walked


@pytest.mark.parametrize(("way", "classes"), [("temperature", 3), ("isotonic", 3), ("isotonic", 2)])
def test_calibrated_probabilities_are_those_of_predict(way: str, classes: int, opened: Any) -> None:
    explored = tempered(way, classes)
    page, rows = opened(explored.model.explore().html).ready(), random_rows(explored.rows, 100)
    evidences = [as_evidence(variables_of(page), row) for row in rows.to_dict("records")]
    found = asked(page, "e => Array.from(softcount.engine.predicted(e))", evidences)
    assert np.abs(np.array(found) - explored.model.predict_proba(rows)).max() < TOLERANCE


def test_a_classifier_predicts_in_the_page_as_in_the_library(opened: Any) -> None:
    """By every way that a classifier may choose, each the only member of an ensemble and all together."""
    fitted = MODELS["all_ways"]().model.fitted_
    rows, ensemble = random_rows(MODELS["all_ways"]().rows, 200, seed=9), fitted.scorer.ensemble
    whole, table, evidences = page_of(fitted), fitted.table(rows), []
    for kept in [*range(len(ensemble.members)), slice(None)]:
        chosen = slice(kept, kept + 1) if isinstance(kept, int) else kept
        some = replace(
            ensemble, members=ensemble.members[chosen], weights=ensemble.weights[chosen], names=ensemble.names[chosen]
        )
        changed = replace(fitted, scorer=EnsembleScorer(some))
        page = opened(replace(whole, document=whole.document | {"ensemble": ensemble_document(changed)}).html).ready()
        evidences = evidences or [as_evidence(variables_of(page), row) for row in rows.to_dict("records")]
        found = asked(page, "e => Array.from(softcount.engine.predicted(e, 0))", evidences)
        assert np.abs(np.array(found) - changed.proba(table, Runner())).max() < TOLERANCE
