"""k-means, 300,000 rows of 32 float32 numbers, 64 centres: from one start to convergence, beside two peers.

Convergence is where no row changes its cluster. faiss does not stop by itself: it gets as many iterations as
scikit-learn took. Every answer must have the same cost within 1e-6, recomputed from labels in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import Bound, Result, gemm, race, ratios, second_core

ROWS, COLUMNS, CENTRES = 300_000, 32, 64
MOST = 300
"""Iterations after which every contestant stops, converged or not."""

OVERLAPPING, APART = 7.0, 3.0
"""Deviations of the blobs; their centres are uniform in a cube of side 20."""


def made(deviation: float | None) -> tuple[np.ndarray, np.ndarray]:
    """Blobs of one deviation, or a uniform cloud, and rows of it to start from."""
    rng = np.random.default_rng(0)
    centres, labels = rng.uniform(-10, 10, (CENTRES, COLUMNS)), rng.integers(0, CENTRES, ROWS)
    noise = rng.normal(size=(ROWS, COLUMNS))
    table = rng.uniform(size=noise.shape) if deviation is None else centres[labels] + deviation * noise
    table = table.astype(np.float32)
    return table, table[rng.choice(ROWS, CENTRES, replace=False)].copy()


def ours(table: np.ndarray, start: np.ndarray, threads: int) -> Any:
    import softcount as sc

    return sc.KMeans(CENTRES, init=start, tol=0, max_iter=MOST, n_jobs=threads).fit(table)


def theirs(table: np.ndarray, start: np.ndarray, threads: int) -> Any:
    import warnings

    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of not having converged within so many iterations
        return KMeans(CENTRES, init=start, n_init=1, tol=0, max_iter=MOST, algorithm="lloyd").fit(table)


def faiss_run(table: np.ndarray, start: np.ndarray, iterations: int, threads: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(threads)
    model = faiss.Kmeans(COLUMNS, CENTRES, niter=iterations, max_points_per_centroid=ROWS, verbose=False)
    model.train(table, init_centroids=start)
    return model.centroids


def cost(table: np.ndarray, centres: np.ndarray, labels: np.ndarray) -> float:
    """The sum of squared distances, in float64, from the labels."""
    return float(np.square(table.astype(np.float64) - centres.astype(np.float64)[labels]).sum())


def nearest(table: np.ndarray, centres: np.ndarray) -> np.ndarray:
    wide = centres.astype(np.float64)
    halves = (wide**2).sum(axis=1) / 2
    parts = [(halves - table[at : at + 16_384] @ wide.T).argmin(axis=1) for at in range(0, ROWS, 16_384)]
    return np.concatenate(parts)


def differences(table: np.ndarray, start: np.ndarray, iterations: int) -> Iterator[Bound]:
    """How far our cost is from each peer's, relative."""
    with threadpool_limits(2):
        mine, peer = ours(table, start, 2), theirs(table, start, 2)
        centres = faiss_run(table, start, iterations, 2)
    own = cost(table, mine.cluster_centers_, mine.labels_)
    for name, other in (
        ("scikit-learn", cost(table, peer.cluster_centers_, peer.labels_)),
        ("faiss", cost(table, centres, nearest(table, centres))),
    ):
        beside = f"ours {own:.6f} after {mine.n_iter_} updates, theirs {other:.6f}"
        yield Bound(f"k-means, cost beyond that of {name}", (own - other) / other, "relative", 1e-6, beside)


def run(rounds: int) -> Iterator[Result]:
    work = f"k-means {ROWS:,} x {COLUMNS} float32, K = {CENTRES}"
    clouds = ((OVERLAPPING, "overlapping blobs", True), (APART, "blobs apart", False), (None, "uniform", False))
    for deviation, name, is_target in clouds:
        table, start = made(deviation)
        iterations = int(theirs(table, start, 2).n_iter_)
        contestants = {
            "ours": partial(ours, table, start),
            "scikit-learn": partial(theirs, table, start),
            "faiss": partial(faiss_run, table, start, iterations),
            "a GEMM": gemm(table, np.ones((COLUMNS, CENTRES), np.float32)),
        }
        best = race(contestants, rounds if is_target else 1)
        told = f"{work}, {name}, {iterations} iterations"
        yield from ratios(told, best, "scikit-learn", (4, 4) if is_target else None, ["a GEMM"])
        yield from ratios(told, best, "faiss", (2.5, 2.5) if is_target else None)
        if is_target:
            yield second_core(work, best)
            yield from differences(table, start, iterations)
