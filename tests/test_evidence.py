"""The evidence of a table: with one class the chain of one-step-ahead predictions, with several close to the truth."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import product
from math import exp, lgamma, log
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import softcount as sc
from softcount.families.normal import LOOSE
from softcount.fitted.fitted import Fitted
from softcount.learn.record import cheeseman_stutz, complete_evidence, memberships_entropy
from softcount.run.local import Threads

WORDS = ["red", "blue", None, "red", "green", "blue", "red", "red"]
REALS = [1.5, 2.25, np.nan, 9.0, 2.5, 8.75, 1.0, 9.5]
OTHERS = [0.5, np.nan, 3.0, 4.0, -2.5, 1.75, 6.0, 2.5]
VISITS = [0.0, 3.0, np.nan, 1.0, 7.0, 2.0, 4.0, 0.0]


def fitted(frame: pd.DataFrame, kinds: Any, groups: int = 1, **how: Any) -> Fitted:
    return sc.Mixture(groups, kinds=kinds, random_state=0, n_init=3, **how).fit(frame).fitted_


def evidence(model: Fitted) -> float:
    return cheeseman_stutz(model.model, model.imagined, model.estimates, model.model.nodes.stacked(model.counts))


# -- plain loops: each value is predicted from those before it


def chain_of_levels(values: Sequence[Hashable], a: float) -> float:
    levels = sorted({value for value in values if value is not None}, key=str)
    seen = dict.fromkeys(levels, a)
    total = 0.0
    for value in values:
        if value is not None:
            total += log(seen[value] / sum(seen.values()))
            seen[value] += 1
    return total


def chain_of_counts(values: Sequence[float]) -> float:
    there = [value for value in values if not np.isnan(value)]
    shape, rows, total = float(np.mean(there)), 1.0, 0.0
    for value in there:
        total += stats.nbinom.logpmf(value, shape, rows / (rows + 1))
        shape, rows = shape + value, rows + 1
    return total


def chain_of_words(rows: Sequence[Sequence[float]], a: float) -> float:
    seen, total = np.full(len(rows[0]), a), 0.0
    for row in rows:
        counts = np.nan_to_num(np.asarray(row, dtype=float))
        total += stats.dirichlet_multinomial.logpmf(counts.astype(int), seen, int(counts.sum()))
        seen = seen + counts
    return total


class Cell:
    """What is known of one mean and of the variance it may share with others."""

    def __init__(self, mean: float) -> None:
        self.mean, self.kappa = mean, LOOSE


class Spread:
    def __init__(self) -> None:
        self.nu, self.squares = 0.0, 0.0


def chain_of_numbers(columns: np.ndarray, groups: Sequence[int], shared: Callable[[int, int], Hashable]) -> float:
    """Columns of numbers in known groups; `shared` names the variance of a group's column. One imagined row each."""
    cells: dict[tuple[int, int], Cell] = {}
    spreads: dict[Hashable, Spread] = {}
    for g, j in product(sorted(set(groups)), range(columns.shape[1])):
        cells[g, j] = Cell(float(np.nanmean(columns[:, j])))
        spread = spreads.setdefault(shared(g, j), Spread())
        spread.nu, spread.squares = spread.nu + 1.0, spread.squares + float(np.nanvar(columns[:, j]))
    total = 0.0
    for row, g in zip(columns, groups, strict=True):
        for j, x in enumerate(row):
            if np.isnan(x):
                continue
            cell, spread = cells[g, j], spreads[shared(g, j)]
            wide = spread.squares / spread.nu * (1 + 1 / cell.kappa)
            total += stats.t.logpdf(x, spread.nu, cell.mean, np.sqrt(wide))
            off = x - cell.mean
            spread.nu, spread.squares = spread.nu + 1, spread.squares + off * off * cell.kappa / (cell.kappa + 1)
            cell.mean, cell.kappa = cell.mean + off / (cell.kappa + 1), cell.kappa + 1
    return total


def chain_of_blocks(block: np.ndarray) -> float:
    d = block.shape[1]
    mean, kappa, nu, scatter = block.mean(axis=0), LOOSE, float(d), np.diag(block.var(axis=0))
    total = 0.0
    for x in block:
        freedom = nu - d + 1
        total += stats.multivariate_t.logpdf(x, mean, scatter * (kappa + 1) / (kappa * freedom), freedom)
        off = x - mean
        scatter = scatter + kappa / (kappa + 1) * np.outer(off, off)
        mean, kappa, nu = mean + off / (kappa + 1), kappa + 1, nu + 1
    return total


def one_group(columns: np.ndarray) -> float:
    return chain_of_numbers(columns, [0] * len(columns), lambda g, j: (g, j))


# -- one class: exactly the chain


@pytest.mark.parametrize(
    ("values", "kind", "chain"),
    [
        (WORDS, "categorical", chain_of_levels(WORDS, 1 / 3)),
        (["no", "yes", None, "no"], "bernoulli", chain_of_levels(["no", "yes", None, "no"], 1 / 2)),
        (VISITS, "poisson", chain_of_counts(VISITS)),
        (REALS, "normal", one_group(np.array(REALS)[:, None])),
        (np.exp(OTHERS), "lognormal", one_group(np.array(OTHERS)[:, None]) - float(np.nansum(OTHERS))),
    ],
    ids=["categorical", "bernoulli", "poisson", "normal", "lognormal"],
)
def test_with_one_class_it_is_the_chain_of_predictions(values: Any, kind: str, chain: float) -> None:
    model = fitted(pd.DataFrame({"x": values}), {"x": kind})
    assert evidence(model) == pytest.approx(chain, rel=1e-10)


def test_a_mixed_table_with_holes_is_the_sum_of_its_columns() -> None:
    frame = pd.DataFrame({"word": WORDS, "size": REALS, "visits": VISITS})
    model = fitted(frame, {"word": "categorical", "size": "normal", "visits": "poisson"})
    apart = chain_of_levels(WORDS, 1 / 3) + one_group(np.array(REALS)[:, None]) + chain_of_counts(VISITS)
    assert evidence(model) == pytest.approx(apart, rel=1e-10)


def test_multinomial_and_binomial_blocks_are_chains_too() -> None:
    rows = [(1, 0, 2), (0, 3, 1), (2, 2, 0), (4, 0, 0), (0, 0, 0)]
    frame = pd.DataFrame(rows, columns=list("abc"))
    assert evidence(fitted(frame, {("a", "b", "c"): "multinomial"})) == pytest.approx(chain_of_words(rows, 1 / 3))
    hits = [(1, 3), (0, 2), (5, 6), (2, 2), (0, 0)]
    frame = pd.DataFrame(hits, columns=["hits", "shots"]).astype(float)
    split = [(shots - won, won) for won, shots in hits]
    assert evidence(fitted(frame, {("hits", "shots"): "binomial"})) == pytest.approx(chain_of_words(split, 1 / 2))


def test_a_correlated_block_is_a_chain_of_student_predictions() -> None:
    rng = np.random.default_rng(0)
    block = rng.normal(size=(12, 3)) @ np.array([[2.0, 1, 0], [0, 1, 0.5], [0, 0, 3]]) + [5, -3, 100]
    model = fitted(pd.DataFrame(block, columns=list("xyz")), {("x", "y", "z"): "multinormal"})
    assert evidence(model) == pytest.approx(chain_of_blocks(block), rel=1e-9)


def test_a_prior_in_the_users_own_words_is_the_one_integrated() -> None:
    seen = np.array([[1.0, 2.0], [2.5, 0.5], [3.0, 4.0], [-1.0, 2.0]])
    frame = pd.DataFrame(seen, columns=["x", "y"])
    alone = sc.priors.NormalInverseChi2(mean=1.0, kappa=2.0, nu=3.0, variance=4.0)
    together = sc.priors.NormalInverseWishart([0.0, 1.0], 2.0, 4.0, [[2.0, 0.5], [0.5, 3.0]])
    model = fitted(frame[["x"]], {"x": "normal"}, prior={"x": alone})
    assert evidence(model) == pytest.approx(alone.log_evidence(seen[:, 0]), rel=1e-11)
    model = fitted(frame, {("x", "y"): "multinormal"}, prior={("x", "y"): together})
    assert evidence(model) == pytest.approx(together.log_evidence(seen), rel=1e-11)
    known = sc.priors.NormalKnownVariance(mean=1.0, mean_variance=3.0, variance=2.0)
    model = fitted(frame[["x"]], {"x": "normal"}, prior={"x": known})
    assert evidence(model) == pytest.approx(known.log_evidence(seen[:, 0]), rel=1e-11)


# -- several classes that are known: what they share is integrated once

PLACES: dict[Any, Callable[[int, int], Hashable]] = {
    None: lambda g, j: (g, j),
    "classes": lambda g, j: j,
    "columns": lambda g, j: g,
    "both": lambda g, j: 0,
}
PAIRS = np.array([[1.0, 10.0], [2.0, 14.5], [4.5, 20.0], [0.5, 9.0], [7.0, 26.0], [6.0, 24.5], [2.5, 13.0]])
SIDES = [0, 0, 1, 0, 1, 1, 0]


def known_groups(kinds: Any, block: np.ndarray, sides: Sequence[int]) -> float:
    """Evidence of the columns alone when the groups are known."""
    model = sc.NaiveBayes(kinds=kinds, prior="row").fit(pd.DataFrame(block, columns=["x", "y"]), sides).fitted_
    root = chain_of_levels(list(sides), 1 / 2)
    complete = complete_evidence(model.model, model.imagined, model.estimates, model.model.nodes.stacked(model.counts))
    return complete - root + model.model.nodes.log_units(model.model.nodes.stacked(model.counts))


@pytest.mark.parametrize("tied", [None, "classes", "columns", "both"])
def test_a_shared_variance_is_integrated_once(tied: Any) -> None:
    found = known_groups({"x": sc.families.Normal(tied=tied), "y": sc.families.Normal(tied=tied)}, PAIRS, SIDES)
    assert found == pytest.approx(chain_of_numbers(PAIRS, SIDES, PLACES[tied]), rel=1e-9)


@pytest.mark.parametrize(("covariance", "tied"), [("diagonal", None), ("spherical", "columns")])
def test_blocks_without_correlation_are_columns(covariance: Any, tied: Any) -> None:
    found = known_groups({("x", "y"): sc.families.Multinormal(covariance)}, PAIRS, SIDES)
    assert found == pytest.approx(chain_of_numbers(PAIRS, SIDES, PLACES[tied]), rel=1e-9)


# -- hidden classes: close to the sum over all ways to assign the rows


def every_assignment(rows: Sequence[Sequence[str]], groups: int) -> float:
    """Log marginal likelihood of a table of words: all assignments of rows to groups, each a chain of predictions."""
    columns = list(zip(*rows, strict=True))
    sizes = [len(set(column)) for column in columns]
    terms = []
    for groups_of in product(range(groups), repeat=len(rows)):
        total = lgamma(1.0) - lgamma(1.0 + len(rows))
        total += sum(lgamma(groups_of.count(g) + 1 / groups) - lgamma(1 / groups) for g in range(groups))
        for g, (column, m) in product(range(groups), zip(columns, sizes, strict=True)):
            own = [value for value, z in zip(column, groups_of, strict=True) if z == g]
            total += lgamma(1.0) - lgamma(1.0 + len(own))
            total += sum(lgamma(own.count(level) + 1 / m) - lgamma(1 / m) for level in set(column))
        terms.append(total)
    return float(np.logaddexp.reduce(terms))


def test_two_plain_classes_come_close_to_the_sum_over_all_assignments() -> None:
    """Without the two ways to number them it would be 0.69 nats too little."""
    rows = [("a", "b", "a", "b", "a", "b")] * 5 + [("b", "a", "b", "a", "b", "a")] * 5
    model = fitted(pd.DataFrame(rows, columns=list("uvwxyz")), dict.fromkeys("uvwxyz", "categorical"), 2)
    assert evidence(model) == pytest.approx(every_assignment(rows, 2), abs=0.05)


def hidden_pairs(repeats: int) -> tuple[float, float]:
    """Evidence of a joint table with two holes, as found and as the sum over what they may hide."""
    rows = [("f", "s"), ("m", "l"), ("f", "s"), ("m", "l"), ("f", "l"), ("m", "s")] * repeats
    frame = pd.DataFrame([*rows, ("f", None), (None, "l")], columns=["sex", "size"])
    terms = []
    for size, sex in product("ls", "fm"):
        seen, total = dict.fromkeys(product("fm", "ls"), 0.25), 0.0
        for pair in [*rows, ("f", size), (sex, "l")]:
            total += log(seen[pair] / sum(seen.values()))
            seen[pair] += 1
        terms.append(total)
    return evidence(fitted(frame, {("sex", "size"): "joint"})), float(np.logaddexp.reduce(terms))


def test_holes_of_a_joint_table_tell_less_and_less_from_the_sum_over_what_they_may_hide() -> None:
    """Completing rows as expected is off by about one over the rows: 0.05 nats with 38 rows, 0.005 with 362."""
    off = [found - right for found, right in map(hidden_pairs, (6, 60))]
    assert -0.1 < off[0] < 0 and abs(off[1]) < abs(off[0]) / 5


# -- changes that must not matter, or only as they should


def test_metres_or_miles_only_move_it_by_the_unit() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": np.append(rng.normal(0, 1, 30), rng.normal(9, 1, 30)), "y": rng.normal(size=60)})
    near = evidence(fitted(frame, {"x": "normal", "y": "normal"}, 2))
    far = evidence(fitted(frame.assign(x=frame["x"] * 1e6 + 1e9), {"x": "normal", "y": "normal"}, 2))
    assert far == pytest.approx(near - 60 * log(1e6), abs=1e-5)


def test_weight_two_is_the_row_twice() -> None:
    frame = pd.DataFrame({"word": WORDS, "size": REALS})
    kinds = {"word": "categorical", "size": "normal"}
    twice = fitted(pd.concat([frame, frame.iloc[:3]]), kinds, 2)
    weights = [2, 2, 2, 1, 1, 1, 1, 1]
    heavy = sc.Mixture(2, kinds=kinds, random_state=0, n_init=3).fit(frame, sample_weight=weights).fitted_
    assert evidence(heavy) == pytest.approx(evidence(twice), rel=1e-9)


@pytest.mark.parametrize("estimate", ["ml", "mean"])
def test_a_class_on_one_value_has_no_infinite_evidence(estimate: str) -> None:
    frame = pd.DataFrame({"x": [0.0] * 20 + list(np.linspace(-5, 5, 20)), "y": [3.0] * 40})
    model = fitted(frame, {"x": "normal", "y": "normal"}, 2, estimate=estimate)
    assert np.isfinite(evidence(model))


@pytest.mark.parametrize("prior", [0.0, "row", "jeffreys", 3.0])
def test_every_prior_named_in_a_word_has_a_finite_evidence(prior: Any) -> None:
    frame = pd.DataFrame({"word": WORDS, "size": REALS, "visits": VISITS, "x": OTHERS})
    kinds = {"word": "categorical", "size": "normal", "visits": "poisson", "x": "student"}
    assert np.isfinite(evidence(fitted(frame, kinds, 2, prior=prior)))


def test_fixed_shares_are_not_integrated() -> None:
    frame = pd.DataFrame({"x": ["a", "b", "a", "a", "b", "b"]})
    free = fitted(frame, {"x": "categorical"}, 2)
    held = fitted(frame, {"x": "categorical"}, 2, fixed={"weights": [0.5, 0.5]})
    complete = complete_evidence(held.model, held.imagined, held.estimates, held.model.nodes.stacked(held.counts))
    assert complete == pytest.approx(
        complete_evidence(held.model, free.imagined, held.estimates, held.model.nodes.stacked(held.counts))
        - chain_of_shares(held.counts["(groups)"])
        + held.counts.rows * log(0.5)
    )


def chain_of_shares(sizes: np.ndarray) -> float:
    a = 1 / len(sizes)
    return float(sum(lgamma(n + a) - lgamma(a) for n in sizes) - lgamma(sizes.sum() + 1))


def test_entropy_of_memberships_is_that_of_plain_loops() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=40) + 2 * (np.arange(40) % 2)})
    weights = rng.uniform(0.5, 2, 40)
    mixture = sc.Mixture(2, kinds={"x": "normal"}, random_state=0).fit(frame, sample_weight=weights)
    members = mixture.predict_proba(frame)
    plain = sum(-w * p * log(p) for w, row in zip(weights, members, strict=True) for p in row if p > exp(-700))
    model = mixture.fitted_
    with Threads(1) as threads:
        ready = [model.model.prepare(chunk) for chunk in model.chunks(model.table(frame, weights=weights))]
        assert memberships_entropy(model.model, model.estimates, ready, threads) == pytest.approx(plain, rel=1e-10)
