"""Mixed tables drawn at random, with what is said of them: what push-down is held against `fit` on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

import softcount as sc

LOOKED_AT = 200
"""Rows that tests have looked at: classes, levels and contradictions come later."""
CLASSES = (["a", "it's", 'q"; --'], [3, 1, 2], [True, False], [0.0, 1.0, 5.0])
DECLARED: dict[str, list[Any]] = {
    "real": ["normal", sc.Normal(tied="classes"), sc.Normal(tied="columns"), sc.Normal(variance=2.0)],
    "far": [sc.Normal(tied="columns"), "normal"],
    "count": ["poisson", "geometric", "categorical", "normal"],
    "positive": ["lognormal", "exponential"],
    "amount": ["spiked", sc.Spiked("exponential"), "exponential", sc.Spiked("normal")],
    "word": ["categorical", "grouped"],
    "truth": ["bernoulli", "categorical"],
}


def drawn_table(seed: int, n: int = 1_200) -> pa.Table:
    """Columns of every kind that counts inside can be of, a weight and a class, some of them only in late rows."""
    rng = np.random.default_rng(seed)
    names = CLASSES[seed % len(CLASSES)]
    late = np.arange(n) >= 2 * LOOKED_AT
    group = np.where(late, rng.integers(0, len(names), n), rng.integers(0, 2, n))
    words = np.array(["red", "blue", "NA", " pale ", "ünï'côde", "late"])
    columns: dict[str, Any] = {
        "real": rng.normal(group, 1.0),
        "far": rng.normal(size=n) * 10.0 ** rng.integers(-3, 4) + 10.0 ** rng.integers(0, 9) * (1 + group),
        "count": rng.poisson(2 + 3 * group),
        "positive": np.exp(rng.normal(group, 0.7)),
        "amount": np.where(rng.random(n) < 0.4, 0.0, np.exp(rng.normal(group, 1.0)).round(2)),
        "word": words[np.where(late, rng.integers(0, 6, n), rng.integers(0, 5, n))],
        "truth": rng.random(n) < 0.2 + 0.2 * group,
        "few": rng.integers(0, 3, n) + group,
        "same": np.where(late & (rng.random(n) < 0.5), 2, 1) if seed % 3 else np.ones(n, int),
        "id": np.arange(n),
        "w": rng.integers(0, 4, n) * (1.0 if seed % 2 else rng.random(n)),
    }
    holes = {key: rng.random(n) < 0.1 for key in ("real", "amount", "word", "truth", "few", "count")}
    found = {key: pa.array(cells, mask=holes.get(key)) for key, cells in columns.items()}
    real = columns["real"].copy()
    real[rng.integers(0, n, 20)] = np.nan  # no number, which is not the same as nothing to a database
    found["real"] = pa.array(real, mask=holes["real"])
    return pa.table({**found, "y": pa.array([names[g] for g in group])})


def drawn_settings(seed: int) -> dict[str, Any]:
    """Settings of naive Bayes, and kinds for some of the columns."""
    rng = np.random.default_rng(1_000 + seed)
    kinds = {key: said[rng.integers(len(said))] for key, said in DECLARED.items() if rng.random() < 0.5}
    return {
        "kinds": kinds or None,
        "prior": [1.0, 0.5, "jeffreys"][rng.integers(3)],
        "estimate": ["mean", "ml", "predictive"][rng.integers(3)],
        "class_prior": [None, "uniform", 2.0][rng.integers(3)],
        "missing": [None, ("red",), ("0",)][rng.integers(3)],
    }
