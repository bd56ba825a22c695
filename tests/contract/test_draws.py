"""What a family draws follows the distribution it claims."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oracle
from contract.checking import public_density, worked
from contract.examples import Example, every_example
from softcount.text.count_words import transition_block

DRAWS = 40_000


@every_example
@pytest.mark.parametrize("how", ["mean", "predictive"])
def test_draws_follow_the_distribution(example: Example, how: str) -> None:
    """Sums of features of many draws lie within six standard errors of where the oracle's densities put them."""
    model = worked(example, how)
    rng = np.random.default_rng(20)
    for leaf in model.model.leaves:
        for g in range(2):
            if leaf.family.name == "markov":  # which steps a context has is in its setting
                every = leaf.density(model.estimates).draw_columns(np.full(DRAWS // 8, g), rng)
                drawn = transition_block(every[0], leaf.family.facts.reads, "line")
            else:
                drawn = leaf.density(model.estimates).draw(np.full(DRAWS, g), rng)
            group = {name: value[g] for name, value in model.params[leaf.key].items()}
            check_draws(leaf, drawn, group, g)


def check_draws(leaf: Any, drawn: np.ndarray, group: oracle.Group, g: int) -> None:
    if leaf.family.facts.kind.coded:
        check_shares(np.bincount(drawn, minlength=len(leaf.setting.levels) + 1)[1:], group["probability"])
    elif leaf.family.name == "multinomial":
        check_shares(drawn.sum(axis=0), group["probability"])
    elif leaf.family.name == "text":
        check_documents(leaf, drawn, group)
    elif leaf.family.name == "markov":
        check_transitions(leaf, drawn, group)
    elif leaf.family.name == "binomial":
        share = group["probability"]
        check_shares(np.bincount(drawn[:, 0].astype(int), minlength=2), [1 - share, share])
    elif leaf.family.name == "multinormal":
        check_block(drawn, group)
    elif leaf.family.facts.block:
        for want in range(drawn.shape[1]):
            check_column_of_block(leaf, drawn, group, want)
    else:
        params = {name: np.array([value]) for name, value in group.items()}
        check_steps(np.sort(drawn), lambda x: float(public_density(leaf, params).cdf(x)[0]))


def check_shares(counts: np.ndarray, shares: Any) -> None:
    shares = np.asarray(shares)
    assert counts.sum() == DRAWS
    assert np.all(np.abs(counts - DRAWS * shares) <= 6 * np.sqrt(DRAWS * shares * (1 - shares)) + 1e-9)


def check_documents(leaf: Any, drawn: Any, group: oracle.Group) -> None:
    """Words in their shares, as many as the group's documents usually have."""
    counts, shares = np.asarray(drawn.sum(axis=0)).ravel(), np.asarray(group["probability"])
    assert counts[0] == DRAWS and drawn.shape == (DRAWS, len(shares) + 1)
    if leaf.family.model == "bernoulli":
        assert drawn.max() == 1
        whole = float(DRAWS)
    else:
        whole = counts[1:].sum()
        assert abs(whole - DRAWS * group["length"]) <= 6 * np.sqrt(DRAWS * group["length"])
    assert np.all(np.abs(counts[1:] - whole * shares) <= 6 * np.sqrt(whole * shares * (1 - shares)) + 1e-9)


def check_transitions(leaf: Any, drawn: Any, group: oracle.Group) -> None:
    """After every context its steps in their shares, and as many in all as the group's sequences usually have."""
    places = leaf.setting.levels.columns(drawn.words)
    counts = np.bincount(places[drawn.ids], drawn.counts, minlength=len(leaf.setting.levels))
    whole = drawn.n_documents * group["length"]
    assert abs(counts.sum() - whole) <= 6 * np.sqrt(whole)
    for row, shares in zip(counts.reshape(group["probability"].shape), group["probability"], strict=True):
        assert np.all(np.abs(row - row.sum() * shares) <= 6 * np.sqrt(row.sum() * shares * (1 - shares)) + 1e-9)


def check_steps(drawn: np.ndarray, cdf: Any) -> None:
    """The share of draws at or below each of many points, against the family's own."""
    for x in drawn[:: DRAWS // 40]:
        below, right = np.searchsorted(drawn, x, side="right") / DRAWS, cdf(x)
        assert abs(below - right) <= 6 * np.sqrt(max(right * (1 - right), 1e-4) / DRAWS)


def check_column_of_block(leaf: Any, drawn: np.ndarray, group: oracle.Group, want: int) -> None:
    """One column of a block: of all draws, and of those near the first draw's other cells."""
    params = {name: np.array([value]) for name, value in group.items()}
    density = public_density(leaf, params)
    single = density.conditional(np.full(drawn.shape[1], np.nan), want)
    check_steps(np.sort(drawn[:, want]), lambda x: float(single.cdf(x)[0]))
    single = density.conditional(drawn[0], want)
    cells = np.where(np.arange(drawn.shape[1]) == want, np.nan, drawn[0])
    again = density.draw_columns(np.zeros(DRAWS, dtype=int), np.random.default_rng(2), cells)
    check_steps(np.sort(again[want]), lambda x: float(single.cdf(x)[0]))


def check_block(drawn: np.ndarray, group: oracle.Group) -> None:
    """Squared distances from the mean follow F (chi-squared over freedom), all directions alike."""
    from scipy.stats import chi2, f

    factor = np.linalg.cholesky(group["covariance"])
    moved = np.linalg.solve(factor, (drawn - group["mean"]).T)
    d, distance = len(moved), np.sort((moved**2).sum(axis=0) / group.get("spread", 1.0))
    law = f(d, group["freedom"]) if "freedom" in group else None
    check_steps(distance, lambda x: float(law.cdf(x / d)) if law else float(chi2.cdf(x, d)))
    signs = (moved > 0).sum(axis=1) / DRAWS
    both = ((moved[0] > 0) == (moved[1] > 0)).mean()
    assert np.all(np.abs([*signs, both] - np.array(0.5)) <= 6 * 0.5 / np.sqrt(DRAWS))
