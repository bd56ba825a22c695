"""The density of 100,000 points at 20,000 queries beside scikit-learn's and SciPy's, the error compared first.

A fit and an evaluation together, at one bandwidth for all. The peers take the better part of a minute: they answer
some of the queries, and their times are multiplied; what they need before the first answer is next to nothing. Then
the numbers of Adult in naive Bayes: kernels beside sums over every different value, beside normal columns, and cuts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.auto import NUMBERS, adult
from benchmarks.timing import Bound, Paired, Ratio, Result, seconds

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
    yield from naive_bayes(rounds)


def summed(columns: np.ndarray, classes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Kernel naive Bayes as Weka does it: for every row, class and column a sum over all different values."""
    found = np.zeros((len(asked), len(np.unique(classes))))
    for place, name in enumerate(np.unique(classes)):
        own = columns[classes == name]
        for column in range(columns.shape[1]):
            values, rows = np.unique(own[:, column], return_counts=True)
            h = max(np.ptp(values) / np.sqrt(len(own)), 1e-9)
            found[:, place] += np.log(np.exp(-0.5 * ((asked[:, column, None] - values) / h) ** 2) @ rows + 1e-300)
    return found


def naive_bayes(rounds: int) -> Iterator[Result]:
    """Kernels and cuts of Adult's six numbers."""
    import softcount as sc

    table = adult()
    if table is None:
        return
    columns = np.stack([table[name].to_numpy() for name in sorted(NUMBERS)], axis=1)
    classes = np.array(table["income"].to_pylist())
    kinds = {kind: dict.fromkeys(range(len(NUMBERS)), kind) for kind in ("normal", "kde", "cut")}
    with threadpool_limits(1):
        models = {kind: sc.NaiveBayes(own, n_jobs=1) for kind, own in kinds.items()}
        took = {kind: np.inf for kind in models}
        for _ in range(3 * rounds + 1):  # the first one compiles
            for kind, model in models.items():
                took[kind] = min(took[kind], seconds(lambda model=model: model.fit(columns, classes)))  # type: ignore[misc]
        asked = columns[:: len(columns) // 200]
        ours = best_of(lambda: models["kde"].predict_proba(columns), 3 * rounds)
        theirs = best_of(lambda: summed(columns, classes, asked), rounds) * len(columns) / len(asked)
    rows = f"{len(columns):,} x {len(NUMBERS)}"
    yield Ratio(f"kernel naive Bayes, {rows}: predicting", 1, ours, theirs, "sums over all values", 100.0)
    yield Paired(f"kernel naive Bayes, {rows}: fitting", took["kde"], took["normal"], "normal columns", 4.0)
    yield Bound(f"cuts where the classes change, {rows}: fitting", took["cut"], "s", 0.3)
