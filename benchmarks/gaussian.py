"""Gaussian mixtures, one EM iteration beside scikit-learn: full 200,000 x 16, K = 16; diagonal 500,000 x 20, K = 20.

An iteration is the difference of a long and a short run from one start, divided by how many iterations longer it was,
so that reading, starting and finishing drop out. Neither side may stop early or leap; both must come to the same
log-likelihood. "the products" are the two matrix products of an E-step alone, on features already in the cache.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Best, Bound, Ratio, in_blocks, race, ratios, second_core

PEER = "scikit-learn"
OURS_SHORT, OURS_LONG = 3, 13
PEER_SHORT, PEER_LONG = 1, 5
SAME_AFTER = 4
TILE = 192


def made(rows: int, columns: int, groups: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rows of overlapping groups, correlated, and where to start from: a row and the whole table's covariance each."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, groups, rows)
    turns = rng.normal(size=(groups, columns, columns)) / (2 * columns**0.5) + np.eye(columns)
    table = rng.normal(size=(rows, columns))
    for g in range(groups):
        own = np.flatnonzero(labels == g)
        table[own] = table[own] @ turns[g].T + 1.5 * rng.normal(size=columns)
    whole = np.cov(table.T)
    start = {"means": table[:groups].copy(), "covariances": np.tile(whole, (groups, 1, 1))}
    return table, start


def ours(table: np.ndarray, start: dict[str, np.ndarray], full: bool, iterations: int) -> Callable[[int], Any]:
    import softcount as sc

    groups, columns = start["means"].shape
    init: dict[Any, Any] = {"weights": np.full(groups, 1 / groups)}
    if full:
        init[tuple(range(columns))] = {"mean": start["means"], "covariance": start["covariances"]}
    else:
        for j in range(columns):
            init[j] = {"mean": start["means"][:, j], "variance": start["covariances"][:, j, j]}

    def run(threads: int) -> Any:
        model = sc.Mixture(
            groups, kinds="multinormal" if full else "normal", estimate="ml", init=init, n_init=1,
            max_iter=iterations, tol=0, accelerate=False, random_state=0, n_jobs=threads,
        ).fit(table)  # fmt: skip
        assert model.n_iter_ == iterations
        return model

    return run


def peer(table: np.ndarray, start: dict[str, np.ndarray], full: bool, iterations: int) -> Callable[[int], Any]:
    from sklearn.mixture import GaussianMixture

    groups = len(start["means"])
    variances = np.diagonal(start["covariances"], axis1=1, axis2=2)
    precisions = np.linalg.inv(start["covariances"]) if full else 1.0 / variances

    def run(threads: int) -> Any:
        model = GaussianMixture(
            groups, covariance_type="full" if full else "diag", tol=0, reg_covar=0, max_iter=iterations,
            init_params="random_from_data", weights_init=np.full(groups, 1 / groups), means_init=start["means"],
            precisions_init=precisions, random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(table)

    return run


def products(rows: int, features: int, groups: int) -> Callable[[int], None]:
    """The bare products of features with parameters and of memberships with features, tile by tile."""

    def work(start: int, stop: int) -> None:
        eta, tile = np.full((groups, features), 1e-3), np.full((features, TILE), 0.5)
        joint, counts = np.empty((groups, TILE)), np.empty((features, groups))
        for _ in range(start, stop, TILE):
            np.dot(eta, tile, out=joint)
            np.dot(tile, joint.T, out=counts)

    def run(threads: int) -> None:
        with threadpool_limits(1):
            in_blocks(work, rows, threads)

    return run


def per_iteration(best: Best) -> Best:
    """Seconds of one iteration, from the long and the short runs."""
    spans = {"ours": OURS_LONG - OURS_SHORT, PEER: PEER_LONG - PEER_SHORT}
    counts = {count for _, count in best}
    found = {(n, c): (best[f"{n} long", c] - best[f"{n} short", c]) / span for n, span in spans.items() for c in counts}
    return {key: took for key, took in best.items() if key[0].startswith(("a ", "the "))} | found


def same_answer(table: np.ndarray, start: dict[str, np.ndarray], full: bool) -> None:
    """Both sides after as many iterations have the same log-likelihood, to ten digits."""
    mine = ours(table, start, full, SAME_AFTER)(2).log_likelihood_
    theirs = peer(table, start, full, SAME_AFTER)(2).score(table) * len(table)
    assert abs(mine - theirs) <= 1e-10 * abs(theirs), f"log-likelihood {mine!r} here, {theirs!r} there"


def run(rounds: int) -> Iterator[Ratio | Bound]:
    yield from _full(rounds)
    yield from _diagonal(rounds)


def _race(
    table: np.ndarray, start: dict[str, np.ndarray], full: bool, limits: dict[str, Callable[[int], None]], rounds: int
) -> Best:
    same_answer(table, start, full)
    contestants: dict[str, Callable[[int], object]] = {
        "ours short": ours(table, start, full, OURS_SHORT),
        "ours long": ours(table, start, full, OURS_LONG),
        f"{PEER} short": peer(table, start, full, PEER_SHORT),
        f"{PEER} long": peer(table, start, full, PEER_LONG),
    }
    return per_iteration(race(contestants | limits, min(rounds, 2)))


def _full(rounds: int) -> Iterator[Ratio | Bound]:
    rows, columns, groups = 200_000, 16, 16
    table, start = made(rows, columns, groups)
    best = _race(
        table, start, True, {"the products": products(rows, 1 + columns + columns * (columns + 1) // 2, groups)}, rounds
    )
    work = "Gaussian mixture 200,000 x 16, full, K = 16: an iteration"
    yield from ratios(work, best, PEER, (12, 20), ["the products"])
    bare = best["the products", 1]
    yield Bound(f"{work} beside its bare products, one thread", best["ours", 1] / bare, "times", 1.15)
    yield second_core(work, best)


def _diagonal(rounds: int) -> Iterator[Ratio | Bound]:
    rows, columns, groups = 500_000, 20, 20
    table, start = made(rows, columns, groups)
    best = _race(table, start, False, {"the products": products(rows, 1 + 2 * columns, groups)}, rounds)
    work = "Gaussian mixture 500,000 x 20, diagonal, K = 20: an iteration"
    yield from ratios(work, best, PEER, (10, 10), ["the products"])
    yield second_core(work, best)
