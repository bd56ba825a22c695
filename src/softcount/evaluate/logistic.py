"""Logistic regression on the features of naive Bayes, started at its weights.

The sums of a linear family's features are its counts. Naive Bayes and logistic regression therefore have a weight for
the same things, and differ in how they learn it.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.classify.features import Features
from softcount.classify.logistic import Curvature, LogisticProblem, LogisticProblems, contrast_classes
from softcount.classify.recipes import temper
from softcount.core.lazy import sparse
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.fitted.fitted import Fitted
from softcount.fitted.scorers import LinearWeights
from softcount.models.nodes import Node, Params
from softcount.run.local import Runner
from softcount.table import Chunk, Table

IMPOSSIBLE = -30.0
"""Log-odds of what naive Bayes holds for impossible: logistic regression has no infinite weights."""
MOST_STEPS, CLOSE = 2000, 1e-13


class LinearRows(Struct, frozen=True, eq=False, dict=True):
    """Labelled rows by all features of a model's leaves, end to end.

    `bases` are (features x parts) the directions in which a leaf's natural parameters may vary; None if each varies by
    itself.
    """

    bases: tuple[np.ndarray | None, ...]
    leaves: tuple[Node, ...]
    features: Any  # sparse
    labels: np.ndarray
    weights: np.ndarray
    groups: int

    @cached_property
    def ends(self) -> np.ndarray:
        """Where the features of each leaf begin, and the last ones end."""
        return np.cumsum([0, *(leaf.family.width(leaf.setting) for leaf in self.leaves)])

    @cached_property
    def basis(self) -> Any:
        """The bases of all leaves, end to end."""
        own = [
            sparse.eye(leaf.family.width(leaf.setting)) if basis is None else basis
            for leaf, basis in zip(self.leaves, self.bases, strict=True)
        ]
        return sparse.block_diag(own, format="csr")

    @cached_property
    def parts(self) -> Any:
        return (self.features @ self.basis).tocsr()

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """(rows x classes) log-posteriors, up to what all classes share, by (1 + parts x classes) weights.

        The first row of the weights is the bias.
        """
        return np.asarray(self.parts @ weights[1:] + weights[0])


def fit_logistic(fitted: Fitted, table: Table, runner: Runner, penalty: float = 1.0) -> Fitted:
    """The model with the weights of a logistic regression that is learned from a labelled table."""
    fitted.scorer.linear_form(fitted)  # raises an error that names the column that is not linear
    rows = read_rows(fitted, table, runner)
    if len(np.unique(rows.labels)) < 2:
        raise DataError("logistic regression needs labelled rows of at least two classes.")
    found, n_iter = fit_weights(rows, naive_weights(rows, fitted.estimates), penalty)
    line = f"Classes are predicted by logistic regression with a penalty of {penalty:g}: {n_iter} iterations"
    notes = [note for note in (f"{line}, started at naive Bayes.", _separable(rows, found)) if note]
    natural = rows.basis @ found[1:]
    weights = tuple(np.ascontiguousarray(natural[a:b].T) for a, b in pairwise(rows.ends))
    own = LinearWeights(weights, found[0], penalty, n_iter)
    return replace(fitted, scorer=own).with_notes(*notes)


def read_rows(fitted: Fitted, table: Table, runner: Runner) -> LinearRows:
    """The labelled rows of a table, numbers as deviations from their mean, so that their unit does not matter."""
    leaves, model = fitted.model.leaves, fitted.model

    def read(task: Any) -> tuple[Any, np.ndarray, np.ndarray]:
        chunk: Chunk = task()
        assert chunk.labels is not None
        each = [leaf.family.features(model.column(leaf, chunk), leaf.setting) for leaf in leaves]
        features = sparse.hstack([sparse.csr_matrix(part) for part in each], format="csr")
        weights = chunk.row_weights
        kept = np.flatnonzero((chunk.labels >= 0) & (weights > 0))
        return features[kept], chunk.labels[kept], weights[kept]

    parts = list(runner.map(read, table.tasks()))
    if not parts:
        raise DataError("there are no rows to learn from.")
    features, labels, weights = zip(*parts, strict=True)
    whole, heavy = sparse.vstack(features, format="csr"), np.concatenate(weights)
    bases, start = [], 0
    for leaf in leaves:
        basis, width = leaf.density(fitted.estimates).linear_basis(), leaf.family.width(leaf.setting)
        if basis is not None and leaf.family.facts.in_units:
            # A number (the second part) gets mean 0 and deviation 1 in the rows that have it (the first).
            there, values = (whole[:, start : start + width] @ basis).T
            mass = max(float(heavy @ there), 1e-300)
            mean = float(heavy @ values) / mass
            spread = np.sqrt(float(heavy @ (values - mean * there) ** 2) / mass) or 1.0
            basis = np.asarray(basis @ np.array([[1.0, -mean / spread], [0.0, 1.0 / spread]]))
        bases.append(basis)
        start += width
    return LinearRows(tuple(bases), leaves, whole, np.concatenate(labels), heavy, fitted.n_groups)


def naive_weights(rows: LinearRows, params: Params) -> np.ndarray:
    """The weights of naive Bayes, those of all classes adding up to 0."""
    each = []
    for leaf, basis in zip(rows.leaves, rows.bases, strict=True):
        natural = _contrast(leaf.family.natural(params[leaf.key])).T
        each.append(natural if basis is None else np.linalg.lstsq(basis, natural, rcond=None)[0])
    shares = _contrast(log_of(params.shares)[:, None]).T
    return np.vstack([shares, *each])


def _contrast(natural: np.ndarray) -> np.ndarray:
    """Natural parameters less their mean over the classes; those of probability 0 become finite."""
    # Families write probability 0 as -inf or as a number below -1e100.
    possible = natural > -1e100
    best = np.where(possible, natural, -np.inf).max(axis=0)
    best = np.where(np.isfinite(best), best, 0.0)
    off = np.where(possible, natural - best, IMPOSSIBLE)
    return np.asarray(off - off.mean(axis=0))


def fit_weights(rows: LinearRows, naive: np.ndarray, penalty: float) -> tuple[np.ndarray, int]:
    """Return the weights and the iterations of a logistic regression with scikit-learn's penalty for C = 1 / penalty.

    It starts at the weights of naive Bayes, all multiplied by the factor that suits these rows best: columns that
    repeat each other make it less than 1. Parts that are equal in all rows keep the weight of naive Bayes, and the bias
    is less what they add.
    """
    parts = rows.parts
    least, most = (np.asarray(found.todense()).ravel() for found in (parts.min(axis=0), parts.max(axis=0)))
    varying = np.flatnonzero(least < most)
    constant = np.asarray(parts[:1].todense()).ravel()
    constant[varying] = 0.0
    nothing = sparse.csr_matrix((parts.shape[0], 1))
    wide = sparse.hstack([nothing, parts[:, varying]], format="csr")
    features = Features(wide, np.zeros((parts.shape[0], 0)))
    problem = LogisticProblem(features, rows.labels, rows.weights, rows.groups)
    values = naive * temper(rows.scores(naive), rows.labels, rows.weights)
    bias = values[0] + constant @ values[1:]
    start = contrast_classes(np.vstack([bias, np.zeros(rows.groups), values[1 + varying]]))
    # Scikit-learn penalises the difference of the weights of two classes, and all weights of more classes.
    scale = 2.0 if rows.groups == 2 else 1.0
    each = np.full(problem.features.width, penalty * scale)
    shape = Curvature.around(problem, start)
    (found,), (steps,) = LogisticProblems((problem,)).solve(each, [shape], start[None], MOST_STEPS, CLOSE)
    centred = np.hstack([-found / 2, found / 2]) if rows.groups == 2 else found - found.mean(axis=1, keepdims=True)
    values = naive.copy()
    values[1 + varying] = centred[2:]
    values[0] = centred[0] - constant @ naive[1:]
    return values, int(steps)


def _separable(rows: LinearRows, found: np.ndarray) -> str:
    """A warning if the weights classify all rows correctly, so that only the penalty keeps them finite."""
    scores = rows.scores(found)
    own = scores[np.arange(len(scores)), rows.labels].copy()
    scores[np.arange(len(scores)), rows.labels] = -np.inf
    if not (own > scores.max(axis=1)).all():
        return ""
    return (
        f"All {len(own)} rows are classified correctly: only the penalty keeps the weights finite, and probabilities "
        "near 0 and 1 depend on it."
    )
