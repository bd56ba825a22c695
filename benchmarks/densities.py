"""The density of 100,000 points at 20,000 queries beside scikit-learn's and SciPy's, the error compared first.

A fit and an evaluation together, at one bandwidth for all. The peers take the better part of a minute: they answer
some of the queries, and their times are multiplied; what they need before the first answer is next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Bound, Ratio, Result, seconds

POINTS, QUERIES, WIDTH = 100_000, 20_000, 0.1
ASKED = 400
"""Queries that the peers answer."""
ERROR = 1e-6


def ours(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    import softcount as sc

    return sc.KernelDensity(bandwidth=WIDTH).fit(points).score_samples(queries)


def scikit_learn(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    from sklearn.neighbors import KernelDensity

    return KernelDensity(bandwidth=WIDTH).fit(points[:, None]).score_samples(queries[:, None])


def scipy(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    from scipy.stats import gaussian_kde

    return np.log(gaussian_kde(points, WIDTH / points.std(ddof=1))(queries))


def best_of(run: Callable[[], object], rounds: int) -> float:
    return min(seconds(run) for _ in range(rounds))


def run(rounds: int) -> Iterator[Result]:
    rng = np.random.default_rng(0)
    points, queries = rng.normal(size=POINTS), rng.normal(size=QUERIES)
    some = queries[:: QUERIES // ASKED]
    with threadpool_limits(1):
        found = ours(points, queries)  # compiles, or loads what was compiled
        took = best_of(lambda: ours(points, queries), 20 * rounds)
        for name, peer, target in (("scikit-learn", scikit_learn, 12_000.0), ("scipy", scipy, 8_000.0)):
            theirs = best_of(lambda peer=peer: peer(points, some), rounds) * QUERIES / ASKED  # type: ignore[misc]
            work = f"density of {POINTS:,} points at {QUERIES:,} queries, fit and all"
            yield Ratio(work, 1, took, theirs, name, target)
        exact = np.exp(scipy(points, some))
    off = float(np.abs(np.exp(found[:: QUERIES // ASKED]) - exact).max() / exact.max())
    yield Bound("the largest error, in millionths of the peak", off / ERROR, "", 1.0, "SciPy's sums")
