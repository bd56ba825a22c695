"""Latent classes, 50,000 rows of 20 codes (4 levels), 6 classes: one EM iteration, beside StepMix.

An iteration is the difference of a long and a short run from one start, divided by how many iterations longer it was,
so that reading, starting and finishing drop out. Neither side may stop early or leap.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.timing import Best, Ratio, gemm, race, ratios, read

ROWS, COLUMNS, LEVELS, CLASSES = 50_000, 20, 4, 6
PEER = "StepMix"
OURS_SHORT, OURS_LONG = 10, 110
PEER_SHORT, PEER_LONG = 2, 8


def made(missing: float) -> np.ndarray:
    """Answers of six kinds of people, some of them not given."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, CLASSES, ROWS)
    table = np.empty((ROWS, COLUMNS))
    for column in range(COLUMNS):
        shares = rng.dirichlet(np.ones(LEVELS), CLASSES).cumsum(axis=1)
        table[:, column] = (rng.random(ROWS)[:, None] > shares[labels, :-1]).sum(axis=1)
    table[rng.random(table.shape) < missing] = np.nan
    return table


def ours(table: np.ndarray, iterations: int) -> Callable[[int], object]:
    import softcount as sc

    def run(threads: int) -> object:
        model = sc.Mixture(
            CLASSES, kinds="categorical", n_init=1, max_iter=iterations, tol=0, accelerate=False, random_state=0,
            n_jobs=threads,
        ).fit(table)  # fmt: skip
        assert model.n_iter_ == iterations
        return model

    return run


def peer(table: np.ndarray, iterations: int) -> Callable[[int], object]:
    from stepmix.stepmix import StepMix

    measurement = "categorical_nan" if np.isnan(table).any() else "categorical"

    def run(threads: int) -> object:
        model = StepMix(
            CLASSES, measurement=measurement, n_init=1, max_iter=iterations, abs_tol=0.0, rel_tol=0.0,
            random_state=0, progress_bar=0,
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(table)

    return run


def per_iteration(best: Best) -> Best:
    """Seconds of one iteration, from the long and the short runs."""
    spans = {"ours": OURS_LONG - OURS_SHORT, PEER: PEER_LONG - PEER_SHORT}
    counts = {count for _, count in best}
    found = {(n, c): (best[f"{n} long", c] - best[f"{n} short", c]) / span for n, span in spans.items() for c in counts}
    return {key: took for key, took in best.items() if key[0].startswith("a ")} | found


def run(rounds: int) -> Iterator[Ratio]:
    work = "latent class EM 50,000 x 20, 4 levels, K = 6: an iteration"
    for missing, name, targets in ((0.0, work, (15, 22)), (0.1, "the same, 10 % missing", (45, 70))):
        table = made(missing)
        indicators = np.zeros((ROWS, COLUMNS * LEVELS))
        contestants = {
            "ours short": ours(table, OURS_SHORT),
            "ours long": ours(table, OURS_LONG),
            f"{PEER} short": peer(table, PEER_SHORT),
            f"{PEER} long": peer(table, PEER_LONG),
            "a read": read(np.nan_to_num(table).astype(np.uint8)),
            "a GEMM": gemm(indicators, np.ones((COLUMNS * LEVELS, CLASSES))),
        }
        best = per_iteration(race(contestants, rounds))
        yield from ratios(name, best, PEER, targets, ["a read", "a GEMM"])
