"""The page of a network answers as the library does: levels, sets, ranges, numbers, reasons, the likeliest levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from asked_pages import COLUMNS, TOLERANCE, as_evidence, asked, distribution, variables_of
from explained import contributions
from explored_models import MODELS, random_rows

NETWORK = MODELS["network"]
BARE = ["town", "job", "smokes", "ill", "age", "visits"]


def given_of(row: Any) -> dict[str, Any]:
    return {name: cell for name, cell in row.items() if cell is not None and not pd.isna(cell)}


def test_a_thousand_random_rows_are_answered_as_the_library_does(explored_pages: Any) -> None:
    explored, page = NETWORK(), explored_pages("network")
    variables, rows = variables_of(page), random_rows(explored.rows[BARE], 1000)
    rows["ill"] = None
    evidences = [as_evidence(variables, row) for row in rows.to_dict("records")]
    place = [variable["name"] for variable in variables].index("ill")
    found = asked(page, f"e => Array.from(softcount.engine.answer(e).shares[{place}])", evidences)
    assert np.abs(np.array(found) - explored.model.predict_proba(rows)).max() < TOLERANCE
    whole = asked(page, COLUMNS, evidences[:40])
    for i in range(40):
        given = given_of(rows.iloc[i])
        for place, variable in enumerate(variables):
            if variable["name"] not in given:
                expected = distribution(explored.model.query(variable["name"], given), variable)
                assert np.abs(np.array(whole[i][place]) - expected).max() < TOLERANCE


def test_sets_and_ranges_are_answered_as_query_does(explored_pages: Any) -> None:
    explored, page = NETWORK(), explored_pages("network")
    variables, rng = variables_of(page), np.random.default_rng(4)
    cases: list[tuple[list[Any], dict[str, Any]]] = []
    for _ in range(150):
        evidence: list[Any] = [None] * len(variables)
        given: dict[str, Any] = {}
        for place in rng.permutation(len(variables))[: rng.integers(1, 4)]:
            variable = variables[place]
            if variable["kind"] == "number":
                edges = variable["edges"]
                low, high = sorted(int(x) for x in rng.choice(np.arange(1, len(edges)), 2, replace=False))
                evidence[place] = {"cells": [int(low <= c <= high) for c in range(len(edges) + 1)]}
                below = edges[low - 1] + (1 if variable["name"] == "visits" else 0)
                given[variable["name"]] = (below, edges[high])
            else:
                cells = rng.random(len(variable["levels"])) < 0.5
                cells[rng.integers(len(cells))] = True
                evidence[place] = {"cells": cells.astype(int).tolist()}
                given[variable["name"]] = [level for level, on in zip(variable["levels"], cells, strict=True) if on]
        cases.append((evidence, given))
    found = asked(page, COLUMNS, [evidence for evidence, _ in cases])
    logs = asked(page, "e => softcount.engine.logEvidence(e)", [evidence for evidence, _ in cases])
    for shares, log, (_, given) in zip(found, logs, cases, strict=True):
        free = [place for place, variable in enumerate(variables) if variable["name"] not in given]
        place = int(rng.choice(free))
        expected = distribution(explored.model.query(variables[place]["name"], given), variables[place])
        assert np.abs(np.array(shares[place]) - expected).max() < TOLERANCE
        assert log == pytest.approx(explored.model.fitted_.log_probability(given), abs=TOLERANCE)


def test_reasons_and_the_likeliest_levels_are_the_librarys(explored_pages: Any) -> None:
    explored, page = NETWORK(), explored_pages("network")
    variables, rows = variables_of(page), random_rows(explored.rows[BARE], 60, seed=7)
    rows["ill"] = None
    evidences = [as_evidence(variables, row) for row in rows.to_dict("records")]
    names = [variable["name"] for variable in variables]
    why = asked(page, f"e => softcount.engine.waterfall(e, null, {names.index('ill')})", evidences)
    likeliest = asked(page, "e => [...softcount.engine.likeliest(e)]", evidences)
    table = contributions(explored.model.explain(rows)).to_pylist()
    for found, levels, expected, row in zip(why, likeliest, table, rows.to_dict("records"), strict=True):
        assert found["total"] == pytest.approx(sum(expected.values()), abs=TOLERANCE)
        for step in found["steps"][1:]:
            assert step["odds"] == pytest.approx(expected[step["name"]], abs=TOLERANCE)
        best = explored.model.most_probable(given_of(row)).levels
        assert {names[at]: variables[at]["levels"][level] for at, level in levels} == {
            k: str(v) for k, v in best.items()
        }


def test_another_node_can_be_asked_about(opened: Any) -> None:
    explored = NETWORK()
    page = opened(explored.model.explore(explored.rows).html).ready()
    assert page.page.inner_text("#asked h3") == "ill"
    page.page.select_option("#about", label="job")
    assert page.page.inner_text("#asked h3") == "job"
    page.page.fill("#row", "5")
    page.page.click("#load")
    row = explored.rows.iloc[4].to_dict() | {"job": None, "ill": None}  # the class is not read
    shown = page.run("() => Array.from(softcount.engine.answer(softcount.state.evidence).shares[1])")
    expected = explored.model.query("job", {name: cell for name, cell in row.items() if cell is not None})
    assert shown == pytest.approx(list(expected.values()), abs=1e-9)
    python = page.run("() => document.getElementById('python').textContent")
    said = eval(python.replace('softcount.load("model.sc")', "model"), {"model": explored.model})
    assert list(said.values()) == pytest.approx(shown, abs=1e-9)


@pytest.mark.parametrize("name", ["alarm", "hailfinder", "insurance"])
def test_known_networks_are_answered_as_query_does(name: str, opened: Any, data: Any) -> None:
    from softcount.explore import make_explorer
    from softcount.files.bif import read_network
    from softcount.fitted.network import as_fitted

    fitted = as_fitted(read_network(data(f"bif/{name}.bif.gz")))
    page = opened(make_explorer(fitted, f"{name}.bif").html).ready()
    variables, rng = variables_of(page), np.random.default_rng(0)
    rows = pd.DataFrame(fitted.sample(20, None, rng))
    keep = rng.random(rows.shape) < 0.2
    evidences = [as_evidence(variables, row) for row in rows.where(keep, None).to_dict("records")]
    found = asked(page, COLUMNS, evidences)
    for i in range(20):
        given = {key: rows[key][i] for j, key in enumerate(rows) if keep[i, j]}
        free = [variable["name"] for variable in variables if variable["name"] not in given]
        for key, expected in fitted.query(free, given, each=True).items():
            place = [variable["name"] for variable in variables].index(key)
            assert np.abs(np.array(found[i][place]) - list(expected.values())).max() < TOLERANCE
