"""A mixture for the rows of every class, and Bayes' rule over them: classes that are several clusters each."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.core.special import log_sum_exp
from softcount.estimators.mixture import Mixture
from softcount.estimators.naive_bayes import NaiveBayes
from softcount.table import Table, open_table
from softcount.table.schema import Schema

MOST_CLUSTERS = 3
"""Clusters of a class that has rows enough."""
ROWS_A_CLUSTER = 20
MOST_ROWS = 5_000
"""Rows of a class that its clusters are learned from; of more, some are drawn."""


class MixturePerClass:
    """Each class a mixture of up to three clusters, in which columns are independent; all read under one schema."""

    def __init__(self, kinds: dict[Any, Any], seed: int) -> None:
        self.kinds, self.seed = kinds, seed

    def fit(self, X: Any, y: np.ndarray) -> MixturePerClass:
        """Learn from an Arrow table and the classes of its rows."""
        plain = NaiveBayes(self.kinds).fit(X, y)
        self.classes_, sizes = np.unique(y, return_counts=True)
        self.shares_ = np.log(sizes / sizes.sum())
        self.mixtures_ = [self._mixture(X, np.flatnonzero(y == name), plain.fitted_.schema) for name in self.classes_]
        return self

    def _mixture(self, X: Any, rows: np.ndarray, schema: Schema) -> Mixture:
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(self.seed).permutation(rows)[:MOST_ROWS])
        clusters = max(1, min(MOST_CLUSTERS, len(rows) // ROWS_A_CLUSTER))
        mixture = _UnderSchema(clusters, self.kinds, n_init=2, random_state=self.seed).under(schema)
        mixture.fit(X.take(rows))
        return mixture

    def joint(self, X: Any) -> np.ndarray:
        """(rows x classes) log-density of each row and class together."""
        found = np.column_stack([mixture.score_samples(X) for mixture in self.mixtures_])
        return np.asarray(found + self.shares_)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log-density of each row."""
        return np.asarray(log_sum_exp(self.joint(X), axis=1))

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) logarithms of the probability of every class."""
        joint = self.joint(X)
        return np.asarray(joint - np.asarray(log_sum_exp(joint, axis=1))[:, None])

    def predict_proba(self, X: Any) -> np.ndarray:
        """(rows x classes) probability of every class."""
        return np.asarray(np.exp(self.predict_log_proba(X)))


class _UnderSchema(Mixture):
    """A mixture that reads its rows as a whole table is read, so that the densities of several can be compared."""

    def under(self, schema: Schema) -> _UnderSchema:
        self._schema = schema
        return self

    def _table(self, data: Any, plan: Any, known: Any, weights: np.ndarray | None) -> Table:
        return open_table(data, schema=self._schema, missing=self._schema.missing, weights=weights)
