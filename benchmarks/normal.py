"""Normal naive Bayes, 1,000,000 rows of 50 numbers in 10 classes, beside scikit-learn's GaussianNB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Bound, Ratio, gemm, race, ratios, read, second_core

ROWS, COLUMNS, CLASSES = 1_000_000, 50, 10
PEER = "GaussianNB"
PER_200_000 = {1: 25.0, 2: 15.0}
"""Milliseconds asked, by number of threads, on a machine where a read of the table takes QUICK_READ seconds."""
QUICK_READ = 0.0125


def made() -> tuple[np.ndarray, np.ndarray]:
    """Rows around the centre of their class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    table = rng.normal(size=(ROWS, COLUMNS))
    table += 0.3 * rng.normal(size=(CLASSES, COLUMNS))[labels]
    return table, labels


def run(rounds: int) -> Iterator[Ratio | Bound]:
    from sklearn.naive_bayes import GaussianNB

    import softcount as sc

    table, labels = made()
    contestants = {
        "ours": lambda threads: sc.NaiveBayes(n_jobs=threads).fit(table, labels),
        PEER: lambda threads: GaussianNB().fit(table, labels),
        "a read": read(table),
    }
    work, best = "normal NB 1,000,000 x 50, 10 classes: fit", race(contestants, rounds, alone=[PEER])
    yield from ratios(work, best, PEER, (15, 25), ["a read"])
    yield Bound(f"{work} beside a read of the table, one thread", best["ours", 1] / best["a read", 1], "times", 2.5)
    yield second_core(work, best)
    ours, peer = sc.NaiveBayes().fit(table, labels), GaussianNB().fit(table, labels)
    # Ours imagines a row and the peer adds to variances, so the answers differ in the sixth digit.
    np.testing.assert_allclose(ours.predict_proba(table[:1000]), peer.predict_proba(table[:1000]), atol=1e-3)
    contestants = {
        "ours": lambda threads: ours.set_params(n_jobs=threads).predict_proba(table),
        PEER: lambda threads: peer.predict_proba(table),
        "a read": read(table),
        "a GEMM": gemm(table, np.ascontiguousarray(peer.theta_.T)),
    }
    best = race(contestants, rounds, alone=[PEER])
    yield from ratios("the same: predict_proba", best, PEER, (16, 28), ["a read", "a GEMM"])
    slow = max(1.0, best["a read", 1] / QUICK_READ)
    for threads, most in PER_200_000.items():
        share = 1e3 * best["ours", threads] * 200_000 / ROWS
        told = f"{most:g} ms where a read takes 12.5, here {slow:.2f} times that"
        yield Bound(f"the same, 200,000 rows, threads: {threads}", share, "ms", round(most * slow, 1), told)
