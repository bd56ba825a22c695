"""Categorical naive Bayes, 500,000 rows of 20 codes (int64, 8 levels) in 5 classes, beside CategoricalNB."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.timing import Bound, Ratio, race, ratios, read, second_core

ROWS, COLUMNS, LEVELS, CLASSES = 500_000, 20, 8, 5
PEER = "CategoricalNB"


def made() -> tuple[np.ndarray, np.ndarray]:
    """Codes whose frequencies differ between the classes."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, ROWS)
    table = np.empty((ROWS, COLUMNS), dtype=np.int64)
    for column in range(COLUMNS):
        shares = rng.dirichlet(np.full(LEVELS, 3.0), CLASSES).cumsum(axis=1)
        table[:, column] = (rng.random(ROWS)[:, None] > shares[labels, :-1]).sum(axis=1)
    return table, labels


def run(rounds: int) -> Iterator[Ratio | Bound]:
    from sklearn.naive_bayes import CategoricalNB

    import softcount as sc

    table, labels = made()
    contestants = {
        "ours": lambda threads: sc.NaiveBayes(kinds="categorical", n_jobs=threads).fit(table, labels),
        PEER: lambda threads: CategoricalNB().fit(table, labels),
        "a read": read(table),
    }
    best = race(contestants, rounds, alone=[PEER])
    work = "categorical NB 500,000 x 20, 8 levels, 5 classes: fit"
    yield from ratios(work, best, PEER, (30, 45), ["a read"])
    yield second_core(work, best)
    ours, peer = sc.NaiveBayes(kinds="categorical").fit(table, labels), CategoricalNB().fit(table, labels)
    np.testing.assert_allclose(ours.predict_proba(table[:1000]), peer.predict_proba(table[:1000]), atol=1e-10)
    contestants = {
        "ours": lambda threads: ours.set_params(n_jobs=threads).predict_proba(table),
        PEER: lambda threads: peer.predict_proba(table),
        "a read": read(table),
    }
    best = race(contestants, rounds, alone=[PEER])
    yield from ratios("the same: predict_proba", best, PEER, (7, 11), ["a read"])
    yield second_core("the same: predict_proba", best)
