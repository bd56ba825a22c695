"""Normal naive Bayes, 1,000,000 rows of 50 numbers in 10 classes, beside scikit-learn's GaussianNB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Ratio, gemm, race, ratios, read

ROWS, COLUMNS, CLASSES = 1_000_000, 50, 10
PEER = "GaussianNB"


def made() -> tuple[np.ndarray, np.ndarray]:
    """Rows around the centre of their class."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    table = rng.normal(size=(ROWS, COLUMNS))
    table += 0.3 * rng.normal(size=(CLASSES, COLUMNS))[labels]
    return table, labels


def run(rounds: int) -> Iterator[Ratio]:
    from sklearn.naive_bayes import GaussianNB

    import softcount as sc

    table, labels = made()
    contestants = {
        "ours": lambda threads: sc.NaiveBayes(n_jobs=threads).fit(table, labels),
        PEER: lambda threads: GaussianNB().fit(table, labels),
        "a read": read(table),
    }
    yield from ratios(
        "normal NB 1,000,000 x 50, 10 classes: fit", race(contestants, rounds), PEER, (15, 25), ["a read"]
    )
    ours, peer = sc.NaiveBayes().fit(table, labels), GaussianNB().fit(table, labels)
    # Ours imagines a row and the peer adds to variances, so the answers differ in the sixth digit.
    np.testing.assert_allclose(ours.predict_proba(table[:1000]), peer.predict_proba(table[:1000]), atol=1e-3)
    contestants = {
        "ours": lambda threads: ours.set_params(n_jobs=threads).predict_proba(table),
        PEER: lambda threads: peer.predict_proba(table),
        "a read": read(table),
        "a GEMM": gemm(table, np.ascontiguousarray(peer.theta_.T)),
    }
    best = race(contestants, rounds)
    yield from ratios("the same: predict_proba", best, PEER, (16, 28), ["a read", "a GEMM"])
