"""Two overlapping normal components: seconds until the log-likelihood is as high, beside scikit-learn.

All start from the same parameters and climb to within a millionth of a nat of the top. scikit-learn gets the number of
iterations that this takes it, found once beforehand, and no tolerance, so that it loses no time on asking; a matrix of
one column gains nothing by a second thread of BLAS, so one time stands for both. Ours stop by themselves. Beside them:
L-BFGS after EM, and L-BFGS from the start (direct ascent).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.timing import THREADS, Result, Span, race, ratios, second_core, seconds

ROWS, MANY = 20_000, 2_000_000
PEER = "scikit-learn"
CLOSE = 1e-6
"""Nats below the top that count as being there."""
START = {"weights": [0.5, 0.5], 0: {"mean": [0.0, 2.0], "variance": [1.0, 1.0]}}


@cache
def made(rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    own = rng.random(rows) < 0.4
    return np.where(own, rng.normal(0.0, 1.0, rows), rng.normal(2.1, 1.3, rows))[:, None]


def ours(rows: int, **how: object) -> Callable[[int], object]:
    import softcount as sc

    settings = {"kinds": "normal", "estimate": "ml", "prior": 0.0, "init": START, "n_init": 1, "max_iter": 20_000}

    def run(threads: int) -> object:
        return sc.Mixture(2, n_jobs=threads, **{**settings, **how}).fit(made(rows))

    return run


def peer(iterations: int) -> Callable[[int], object]:
    from sklearn.mixture import GaussianMixture

    def run(threads: int) -> object:
        model = GaussianMixture(
            2, covariance_type="diag", tol=0.0, reg_covar=0.0, max_iter=iterations, weights_init=[0.5, 0.5],
            means_init=[[0.0], [2.0]], precisions_init=[[1.0], [1.0]],
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(made(ROWS))

    return run


def ascent(rows: int) -> Callable[[int], object]:
    """L-BFGS from the start, no EM before it."""
    from softcount.learn import em

    run = ours(rows, finish="lbfgs")

    def at_once(threads: int) -> object:
        near, em.NEAR = em.NEAR, np.inf
        try:
            return run(threads)
        finally:
            em.NEAR = near

    return at_once


def plain_maps() -> int:
    """How many maps plain EM takes to come as high as ours do, less a millionth of a nat."""
    top = ours(ROWS, tol=1e-15)(1).trace_[-1]  # type: ignore[attr-defined]
    trace = ours(ROWS, accelerate=False, tol=1e-12)(2).trace_  # type: ignore[attr-defined]
    return int(np.argmax(np.array(trace) >= top - CLOSE)) or len(trace) - 1


def run(rounds: int) -> Iterator[Result]:
    iterations = plain_maps()
    fitted: list[Any] = []
    took = seconds(lambda: fitted.append(peer(iterations)(1)))  # once, and long enough for that
    reached = fitted[0].score(made(ROWS)) * ROWS
    for climb in (ours(ROWS), ours(ROWS, finish="lbfgs")):
        assert climb(2).log_likelihood_ >= reached - CLOSE  # type: ignore[attr-defined]
    work = f"two overlapping normals, {ROWS:,} rows: to the top ({iterations:,} plain EM maps)"
    best = race({"ours": ours(ROWS)}, rounds)
    yield from ratios(work, best | {(PEER, count): took for count in THREADS}, PEER, (10, 10))
    others = {"EM, then L-BFGS": ours(ROWS, finish="lbfgs"), "L-BFGS from the start": ascent(ROWS)}
    best = race(others, 1)
    for name in others:
        yield Span(f"the same by {name}", ROWS, {count: best[name, count] for count in THREADS})
    large = race({"ours": ours(MANY)}, min(rounds, 2))
    yield second_core(f"{MANY:,} rows", large)
