"""The page of a model of sequences answers as the library does: any step from any others, before it and after it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc
from asked_pages import COLUMNS, TOLERANCE, as_evidence, asked, distribution, variables_of
from explored_models import MODELS, random_rows
from softcount.fitted.answers import Answer


def all_paths(chain: Any, steps: int) -> np.ndarray:
    """(symbols x ... x symbols) the probability of every beginning of a sequence, by what `predict_proba` says next."""
    names = chain.next_symbols_
    found = np.ones(())
    for step in range(steps):
        befores = list(product(range(len(names)), repeat=step))
        texts = [[names[at] for at in before if names[at] != chain.end_ or not chain.ends] for before in befores]
        told = chain.predict_proba(texts)
        if chain.ends:
            told[[len(names) - 1 in before for before in befores]] = np.eye(len(names))[-1]
        found = found[..., None] * told.reshape(*found.shape, len(names))
    return found


@pytest.mark.parametrize("kind", ["chain", "ending_chain"])
def test_any_step_from_any_others_is_the_sum_over_all_sequences(kind: str, explored_pages: Any) -> None:
    chain, page = MODELS[kind]().model, explored_pages(kind)
    variables, rng = variables_of(page), np.random.default_rng(0)
    paths, size = all_paths(chain, len(variables)), len(chain.next_symbols_)
    assert [variable["levels"] for variable in variables] == [list(map(str, chain.next_symbols_))] * 8
    sets = [{at: rng.random(size) < 0.5 for at in rng.permutation(8)[: rng.integers(1, 5)]} for _ in range(1000)]
    for given in sets:
        for cells in given.values():
            cells[rng.integers(size)] = True
    evidences = [
        [{"cells": given[at].astype(int).tolist()} if at in given else None for at in range(8)] for given in sets
    ]
    found = asked(page, "e => softcount.engine.answer(e)", evidences)
    logs = asked(page, "e => softcount.engine.logEvidence(e)", evidences)
    for own, log, given in zip(found, logs, sets, strict=True):
        joint = paths
        for at, cells in given.items():
            joint = joint * cells.reshape([-1 if axis == at else 1 for axis in range(8)])
        whole = joint.sum()
        if whole == 0:
            assert not own["possible"]
            continue
        assert log == pytest.approx(np.log(whole), abs=TOLERANCE)
        for at in range(8):
            expected = joint.sum(axis=tuple(axis for axis in range(8) if axis != at)) / whole
            shown = list(own["shares"][at].values())
            assert np.abs(np.array(shown) - expected).max() < TOLERANCE


def named_cells(part: pd.DataFrame) -> dict[str, Any]:
    """The cells of all steps under the names that they have on the page."""
    rows = enumerate(part.to_dict("records"), 1)
    return {f"{name} {step}": cell for step, row in rows for name, cell in row.items()}


def test_hidden_states_and_what_they_show_are_those_of_the_library(explored_pages: Any) -> None:
    explored, page = MODELS["hidden_states"](), explored_pages("hidden_states")
    model, variables = explored.model, variables_of(page)
    steps = sum(variable["name"].startswith("state ") for variable in variables)
    rows = random_rows(explored.rows, 1000 * steps, seed=3)
    parts = [rows[at * steps : (at + 1) * steps].reset_index(drop=True) for at in range(1000)]
    evidences = [as_evidence(variables, named_cells(part)) for part in parts]
    found = asked(page, COLUMNS, evidences)
    whole = rows.astype({"heat": float, "calls": float}).assign(sequence=np.repeat(np.arange(1000), steps))
    expected = model.predict_proba(sc.read_sequences(whole, sequence="sequence"))
    names = {variable["name"]: place for place, variable in enumerate(variables)}
    states = np.array([[own[names[f"state {at + 1}"]] for at in range(steps)] for own in found])
    assert np.abs(states - np.array(expected)).max() < TOLERANCE
    shown, sharing = model.fitted_.shown, model.fitted_.chain.sharing
    for own, told, part in list(zip(found, expected, parts, strict=True))[:60]:
        for at in range(steps):
            for leaf in shown.model.leaves:
                if not pd.isna(part[leaf.key][at]):
                    continue
                place = names[f"{leaf.key} {at + 1}"]
                levels = leaf.levels_of(0)
                density = leaf.density(shown.estimates)
                shares = told[at] @ sharing
                answer = Answer(shares, density)
                wanted = shares @ density.params["probability"] if levels else distribution(answer, variables[place])
                assert np.abs(np.array(own[place]) - wanted).max() < TOLERANCE


def test_a_page_of_steps_has_its_words_and_offers_no_command_that_there_is_not(opened: Any) -> None:
    page = opened(MODELS["ending_chain"]().model.explore().html).ready()
    assert "The first 8 steps of a sequence" in page.page.inner_text("header")
    assert page.page.is_hidden("#elsewhere")
    page.page.click('.card:has(h3:text-is("step 2")) .bar >> nth=2')
    ended = page.run("() => softcount.engine.answer(softcount.state.evidence).shares[7][2]")
    assert ended == pytest.approx(1.0)
