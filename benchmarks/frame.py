"""A mixed pandas frame, 1,000,000 rows, to a fitted model, beside the usual scikit-learn pipeline.

Six columns of numbers and four of words, each with 5 % of its cells missing, and a column of words to predict. Ours
is `NaiveBayes().fit(frame, "target")`: numbers as normals, words as categories, missing cells as no evidence.

The pipeline fills the holes (the mean, the commonest word), turns words into numbers and fits GaussianNB. With an
OrdinalEncoder that is the least work scikit-learn can do; it treats the codes of words as measurements. With a
OneHotEncoder it is the better model of the two, and slower. The target is held against the cheaper one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.timing import Ratio, race, ratios

ROWS, NUMBERS, WORDS, LEVELS, CLASSES = 1_000_000, 6, 4, 8, 4
CHEAP, USUAL = "ordinal + GaussianNB", "one-hot + GaussianNB"


def made() -> Any:
    """The frame, as pandas itself would hold it."""
    import pandas as pd  # type: ignore[import-untyped]

    rng = np.random.default_rng(3)
    labels = rng.integers(0, CLASSES, ROWS)
    columns: dict[str, Any] = {}
    for j in range(NUMBERS):
        column = rng.normal(size=ROWS) + rng.normal(size=CLASSES)[labels]
        column[rng.random(ROWS) < 0.05] = np.nan
        columns[f"number {j}"] = column
    for j in range(WORDS):
        names = np.array([f"level {j}{k}" for k in range(LEVELS)] + [None], dtype=object)
        codes = (rng.integers(0, LEVELS, ROWS) * rng.integers(1, 3, ROWS) + labels) % LEVELS
        codes[rng.random(ROWS) < 0.05] = LEVELS
        columns[f"word {j}"] = pd.Series(names[codes]).astype("str")
    return pd.DataFrame(columns | {"target": pd.Series(np.array(["a", "b", "c", "d"], dtype=object)[labels])})


def pipeline(encoder: Any) -> Any:
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline

    numbers = [f"number {j}" for j in range(NUMBERS)]
    words = [f"word {j}" for j in range(WORDS)]
    coded = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
    return make_pipeline(ColumnTransformer([("n", SimpleImputer(), numbers), ("w", coded, words)]), GaussianNB())


def run(rounds: int) -> Iterator[Ratio]:
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    import softcount as sc

    frame = made()
    features, target = frame.drop(columns="target"), frame["target"]
    contestants = {
        "ours": lambda threads: sc.NaiveBayes(n_jobs=threads).fit(frame, "target"),
        CHEAP: lambda threads: pipeline(OrdinalEncoder()).fit(features, target),
    }
    best = race(contestants, rounds, alone=[CHEAP])
    yield from ratios("pandas frame 1,000,000 x (6 numbers, 4 words): fit", best, CHEAP, (5, 5))
    contestants = {
        "ours": contestants["ours"],
        USUAL: lambda threads: pipeline(OneHotEncoder(sparse_output=False)).fit(features, target),
    }
    yield from ratios("the same", race(contestants, min(rounds, 2), threads=(1,)), USUAL, None)
