"""Peers of a joint model: scikit-learn's densities, imputers, boosting per column and detectors; missForest; a copula.

All take frames of numbers (float64, NaN where missing) and categories (text, None where missing).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.joint_tables import Table

BANDWIDTHS = np.geomspace(0.03, 1.0, 12)
MOST_COMPONENTS = 10
SMALLEST_VARIANCE = 1e-6
FOREST_ROUNDS = 5


# -- densities of numbers without missing cells


def scaling(table: Table) -> tuple[np.ndarray, np.ndarray, float]:
    """Means and deviations of the columns, and the variance of the rounding of the coarsest one in these units."""
    cells = table.frame.to_numpy()
    deviations = cells.std(axis=0)
    steps = np.array(list(table.steps.values())) / deviations
    return cells.mean(axis=0), deviations, max(SMALLEST_VARIANCE, float(np.median(steps) ** 2) / 12.0)


def gaussian_mixture(train: Table, test: Table) -> np.ndarray:
    """Log-densities of full covariances; the number of components by BIC."""
    from sklearn.mixture import GaussianMixture

    means, deviations, least = scaling(train)
    cells = (train.frame.to_numpy() - means) / deviations
    fits = [
        GaussianMixture(count, reg_covar=least, random_state=0).fit(cells) for count in range(1, MOST_COMPONENTS + 1)
    ]
    best = min(fits, key=lambda fit: fit.bic(cells))
    return best.score_samples((test.frame.to_numpy() - means) / deviations) - np.log(deviations).sum()


def kernel_density(train: Table, test: Table) -> np.ndarray:
    """Log-densities of normal kernels on standardised columns; the bandwidth by five-fold cross-validation."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.neighbors import KernelDensity

    means, deviations, least = scaling(train)
    cells = (train.frame.to_numpy() - means) / deviations
    widths = np.maximum(BANDWIDTHS, math.sqrt(least))
    best = GridSearchCV(KernelDensity(rtol=1e-4), {"bandwidth": np.unique(widths)}).fit(cells).best_estimator_
    return best.score_samples((test.frame.to_numpy() - means) / deviations) - np.log(deviations).sum()


# -- filling missing cells


class Coding:
    """Frames as arrays for scikit-learn: standardised numbers, then indicators of categories, NaN where missing."""

    def __init__(self, table: Table) -> None:
        self.table = table
        numbers = table.frame[table.numbers]
        self.means, self.deviations = numbers.mean(), numbers.std().replace(0.0, 1.0)
        self.levels = {name: sorted(table.frame[name].dropna().unique()) for name in table.categories}

    def encode(self, frame: Any) -> np.ndarray:
        parts = [((frame[self.table.numbers] - self.means) / self.deviations).to_numpy()]
        for name, levels in self.levels.items():
            cells = frame[name].to_numpy(dtype=object)
            shown = (cells[:, None] == np.array(levels, dtype=object)).astype(float)
            shown[frame[name].isna().to_numpy()] = np.nan
            parts.append(shown)
        return np.hstack(parts)

    def decode(self, cells: np.ndarray, frame: Any) -> Any:
        """The frame with its missing cells taken from `cells`."""
        filled, place = frame.copy(), len(self.table.numbers)
        values = cells[:, :place] * self.deviations.to_numpy() + self.means.to_numpy()
        for column, name in enumerate(self.table.numbers):
            filled[name] = np.where(frame[name].isna(), values[:, column], frame[name])
        for name, levels in self.levels.items():
            best = np.array(levels, dtype=object)[cells[:, place : place + len(levels)].argmax(axis=1)]
            filled[name] = np.where(frame[name].isna(), best, frame[name])
            place += len(levels)
        return filled


def fill_with(make: Callable[[], Any]) -> Callable[[Table], Any]:
    """An imputer of scikit-learn's as a function that fills the missing cells of a table."""

    def fill(table: Table) -> Any:
        coding = Coding(table)
        return coding.decode(make().fit_transform(coding.encode(table.frame)), table.frame)

    return fill


def neighbours() -> Any:
    from sklearn.impute import KNNImputer

    return KNNImputer()


def iterative_ridge() -> Any:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    return IterativeImputer(random_state=0)


def mean_and_mode(table: Table) -> Any:
    means = table.frame[table.numbers].mean().to_dict()
    modes = {name: table.frame[name].mode().iloc[0] for name in table.categories}
    return table.frame.fillna(means | modes)


def miss_forest(table: Table) -> Any:
    """MissForest (2012): random forests fill one column after the other, until a round moves the cells more again."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    is_missing = table.frame.isna()
    codes = mean_and_mode(table)
    levels = {name: np.unique(codes[name].astype(str)) for name in table.categories}
    for name, known in levels.items():
        codes[name] = np.searchsorted(known, codes[name].astype(str)).astype(float)
    before = None
    for _ in range(FOREST_ROUNDS):
        last = codes.copy()
        for name in is_missing.sum().sort_values(kind="stable").index:
            gaps = is_missing[name].to_numpy()
            if not gaps.any():
                continue
            forest = RandomForestClassifier if name in levels else RandomForestRegressor
            model = forest(100, max_features="sqrt", random_state=0)
            others = codes.drop(columns=name).to_numpy()
            model.fit(others[~gaps], codes[name][~gaps])
            codes.loc[gaps, name] = model.predict(others[gaps])
        moved = movement(table, last, codes, is_missing)
        if before is not None and not any(now < then for now, then in zip(moved, before, strict=True)):
            codes = last
            break
        before = moved
    for name, known in levels.items():
        codes[name] = known[codes[name].to_numpy().astype(int)]
    return codes.where(is_missing, table.frame)


def movement(table: Table, last: Any, codes: Any, is_missing: Any) -> list[float]:
    """How far a round of missForest moved the numbers, as a share of their squares, and which share of categories."""
    moved = []
    if table.numbers:
        squares = (codes[table.numbers] ** 2).to_numpy().sum()
        moved.append(float(((codes - last)[table.numbers] ** 2).to_numpy().sum() / squares))
    if table.categories:
        changed = (codes[table.categories] != last[table.categories]).to_numpy().sum()
        moved.append(float(changed / max(1, is_missing[table.categories].to_numpy().sum())))
    return moved


# -- one column from the others


def as_categories(table: Table, levels: dict[str, list[str]]) -> Any:
    """The frame with categories as pandas has them, which boosting takes."""
    import pandas as pd

    coded = {name: pd.Categorical(table.frame[name], categories=own) for name, own in levels.items()}
    return table.frame.assign(**coded)


def boost(train: Table, test: Table, name: str) -> np.ndarray:
    """The predictions of a column of held-out rows by boosting on the others."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    levels = {key: sorted(train.frame[key].dropna().unique()) for key in train.categories}
    make = HistGradientBoostingRegressor if name in train.numbers else HistGradientBoostingClassifier
    known = train.frame[name].notna().to_numpy()
    model = make(categorical_features="from_dtype", random_state=0)
    model.fit(as_categories(train, levels).drop(columns=name)[known], train.frame[name][known])
    return model.predict(as_categories(test, levels).drop(columns=name))


# -- synthetic rows


class GaussianCopula:
    """The columns' own distributions, joined by the correlation of their normal scores.

    A category is an interval of a latent normal number; the categories are in the order of their frequency.
    """

    def fit(self, table: Table) -> GaussianCopula:
        import pandas as pd
        from scipy.special import ndtri

        self.table, scores = table, {}
        self.edges: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for name in table.frame:
            column = table.frame[name]
            if name in table.numbers:
                ranks = (column.rank() - 0.5) / column.count()
            else:
                shares = column.value_counts(normalize=True)
                ends = np.cumsum(shares.to_numpy())
                self.edges[name] = shares.index.to_numpy(dtype=object), ends
                ranks = column.map(dict(zip(shares.index, ends - shares.to_numpy() / 2.0, strict=True))).astype(float)
            scores[name] = ndtri(ranks)
        correlation = pd.DataFrame(scores).corr().fillna(0.0).to_numpy(copy=True)
        np.fill_diagonal(correlation, 1.0)
        values, vectors = np.linalg.eigh(correlation)
        root = vectors * np.sqrt(np.maximum(values, 1e-9))
        self.root = root / np.linalg.norm(root, axis=1, keepdims=True)
        return self

    def sample(self, count: int, seed: int) -> Any:
        import pandas as pd
        from scipy.special import ndtr

        rng = np.random.default_rng(seed)
        uniform = ndtr(rng.normal(size=(count, len(self.root))) @ self.root.T)
        drawn = {}
        for place, name in enumerate(self.table.frame):
            if name in self.edges:
                names, ends = self.edges[name]
                drawn[name] = names[np.minimum(np.searchsorted(ends, uniform[:, place]), len(names) - 1)]
            else:
                drawn[name] = np.quantile(self.table.frame[name].dropna(), uniform[:, place])
        return pd.DataFrame(drawn)


# -- anomalies


def detectors() -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Scores of the rows that a detector was fitted to; larger is more anomalous."""
    from sklearn.ensemble import IsolationForest
    from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

    yield "isolation forest", lambda cells: -IsolationForest(random_state=0).fit(cells).score_samples(cells)
    yield "LOF", lambda cells: -LocalOutlierFactor().fit(cells).negative_outlier_factor_
    yield "KNN", lambda cells: NearestNeighbors(n_neighbors=5).fit(cells).kneighbors()[0][:, -1]


def complete(table: Table) -> np.ndarray:
    """Standardised numbers and indicators, a missing number as the mean, a missing category as none."""
    return np.nan_to_num(Coding(table).encode(table.frame))
