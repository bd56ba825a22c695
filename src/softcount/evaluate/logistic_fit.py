"""Logistic regression on the features of naive Bayes: started at its weights or drawn to them.

Every family that is linear has features whose sums are its counts, so that the naive Bayes of any rows is a product of
their features with their classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from softcount.classify.conditional_fit import Conditional, folded
from softcount.classify.indicators import SparseFeatures
from softcount.classify.learning_features import Features
from softcount.counts import ROOT, Counts
from softcount.errors import DataError
from softcount.evaluate.folds import with_repeats
from softcount.fitted.explain import linear_form
from softcount.fitted.fitted_model import Fitted
from softcount.fitted.linear_weights import LinearWeights
from softcount.learn.labelled import estimated, imagine_classes, with_older
from softcount.learn.plan import Plan
from softcount.models.nodes import Node, Params
from softcount.numerics.late_scipy import sparse
from softcount.numerics.logspace import softmax_rows
from softcount.numerics.twofold import Twofold
from softcount.records import dataclass
from softcount.run.base import Runner
from softcount.table import Chunk, Table
from softcount.table.chunk import Split

FOLDS = 5
PENALTIES = (np.inf, 1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""Rows' worth by which a hybrid is drawn to naive Bayes, which it is at the first of them."""
SHARES = (1.0, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0)
"""Of naive Bayes' weights, to which a hybrid is drawn: fewer where columns repeat each other."""
WORSE = 2
"""Penalties that may do worse than the best so far before no further one is tried."""
ENOUGH = 10_000
"""Rows held out that the penalty is chosen by: further folds are not tested."""
IMPOSSIBLE = -30.0
"""Log-odds of what naive Bayes holds for impossible: logistic regression has no infinite weights."""
SMALLEST = 1e-15
"""A probability below this costs no more than this, as is the custom."""
MOST_STEPS, CLOSE = 2000, 1e-13
ROUGH = 1e-8
"""How close to their optimum weights are that only choose a penalty."""


@dataclass(frozen=True, slots=True, eq=False)
class Weighting:
    """(1 + parts x classes) weights of the parts that features are made of, the first row being the bias."""

    values: np.ndarray
    n_iter: int = 0

    def times(self, share: float) -> Weighting:
        """So many times these weights."""
        return Weighting(self.values * share)


@dataclass(frozen=True, eq=False)
class LinearRows:
    """Rows of known class by all features of a model's leaves, end to end.

    `bases` are (features x parts) what may vary of a leaf's natural parameters, None where each by itself.
    """

    bases: tuple[np.ndarray | None, ...]
    leaves: tuple[Node, ...]
    features: Any  # sparse
    labels: np.ndarray
    weights: np.ndarray
    folds: np.ndarray
    groups: int

    def take(self, rows: np.ndarray) -> LinearRows:
        """Some of them."""
        return replace(
            self, features=self.features[rows], labels=self.labels[rows], weights=self.weights[rows],
            folds=self.folds[rows],
        )  # fmt: skip

    def standardised(self) -> LinearRows:
        """The same with numbers as deviations from their mean: no unit matters."""
        ends = np.cumsum([0, *(leaf.family.width(leaf.setting) for leaf in self.leaves)])
        bases = [
            _standard(basis, self.features[:, a:b] @ basis, self.weights)
            if basis is not None and leaf.family.in_units
            else basis
            for leaf, basis, (a, b) in zip(self.leaves, self.bases, pairwise(ends), strict=True)
        ]
        return replace(self, bases=tuple(bases))

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
        """The rows by these parts."""
        return (self.features @ self.basis).tocsr()

    def scores(self, found: Weighting) -> np.ndarray:
        """(rows x classes) log-posteriors up to what all classes share."""
        return np.asarray(self.parts @ found.values[1:] + found.values[0])

    def row_losses(self, found: Weighting) -> np.ndarray:
        """What each row's class costs, in nats."""
        scores = self.scores(found)
        own = scores[np.arange(len(scores)), self.labels] - softmax_rows(scores)[1]
        return np.asarray(-np.maximum(own, np.log(SMALLEST)))

    def counts(self) -> Counts:
        """What a fit of naive Bayes counts of them."""
        heavy = sparse.csr_matrix(
            (self.weights, (self.labels, np.arange(len(self.labels)))), shape=(self.groups, len(self.labels))
        )
        totals = (heavy @ self.features).toarray()
        sizes = np.bincount(self.labels, self.weights, self.groups)
        ends = np.cumsum([0, *(leaf.family.width(leaf.setting) for leaf in self.leaves)])
        own = {
            leaf.key: Twofold.of(np.ascontiguousarray(totals[:, a:b]))
            for leaf, (a, b) in zip(self.leaves, pairwise(ends), strict=True)
        }
        return Counts({ROOT: Twofold.of(sizes), **own}, float(sizes.sum()))


def _standard(basis: np.ndarray, parts: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The basis under which a number, the second part, has mean 0 and deviation 1 where it is there, the first."""
    there, values = parts.T
    mass = max(float(weights @ there), 1e-300)
    mean = float(weights @ values) / mass
    spread = np.sqrt(float(weights @ (values - mean * there) ** 2) / mass) or 1.0
    return np.asarray(basis @ np.array([[1.0, -mean / spread], [0.0, 1.0 / spread]]))


def logistic(
    fitted: Fitted, table: Table, plan: Plan, runner: Runner, penalty: float | None = None, hybrid: bool = False
) -> Fitted:
    """The model with classes told by logistic regression, or by a hybrid, learned from a table of known classes.

    Without a `penalty` that is 1 and, of a hybrid, what does best on folds.
    """
    linear_form(fitted)  # which names the column that is not linear
    rows = linear_rows(fitted, table, runner)
    if len(np.unique(rows.labels)) < 2:
        raise DataError("logistic regression needs labelled rows of at least two classes.")
    naive = naive_weights(rows, fitted.estimates)
    blend = Blend(0.0, 1.0 if penalty is None else float(penalty), "")
    if hybrid:
        blend = chosen_blend(rows, fitted, plan) if penalty is None else replace(blend, share=1.0)
        found = next(drawn_to(rows, naive.times(blend.share), (blend.penalty,), CLOSE))
    else:
        found = regressed(rows, naive, blend.penalty)
        said = f"classes are told by logistic regression with a penalty of {blend.penalty:g}"
        blend = replace(blend, line=f"{said}, {found.n_iter} iterations from naive Bayes.")
    notes = [note for note in (blend.line, _separable(rows, found)) if note]
    ends = np.cumsum([0, *(leaf.family.width(leaf.setting) for leaf in rows.leaves)])
    natural = rows.basis @ found.values[1:]
    weights = {
        leaf.key: np.ascontiguousarray(natural[a:b].T) for leaf, (a, b) in zip(rows.leaves, pairwise(ends), strict=True)
    }
    own = LinearWeights(weights, found.values[0], blend.share, blend.penalty, found.n_iter)
    return replace(fitted, linear=own, calibration=None, notes=[*fitted.notes, *notes])


def linear_rows(fitted: Fitted, table: Table, runner: Runner) -> LinearRows:
    """The rows of a table that have a class, copies of a row in one fold."""
    split = with_repeats(Split(FOLDS, 0), table, runner)
    leaves, model = fitted.model.leaves, fitted.model
    bases = tuple(leaf.family.linear_basis(leaf.setting) for leaf in leaves)

    def read(task: Any) -> LinearRows:
        parted = split.folded(task())
        chunk: Chunk = parted.chunk
        assert chunk.labels is not None
        each = [leaf.family.features(model.column(leaf, chunk), leaf.setting) for leaf in leaves]
        features = sparse.hstack([sparse.csr_matrix(part) for part in each], format="csr")
        weights = np.ones(chunk.n_rows) if chunk.weights is None else chunk.weights
        whole = LinearRows(bases, leaves, features, chunk.labels, weights, parted.folds, fitted.n_groups)
        return whole.take(np.flatnonzero((chunk.labels >= 0) & (weights > 0)))

    read_parts = list(runner.map(read, table.tasks()))
    if not read_parts:
        raise DataError("there are no rows to learn from.")
    labels, weights, folds = (
        np.concatenate([getattr(x, name) for x in read_parts]) for name in ("labels", "weights", "folds")
    )
    features = sparse.vstack([x.features for x in read_parts], format="csr")
    return LinearRows(bases, leaves, features, labels, weights, folds, fitted.n_groups).standardised()


def naive_weights(rows: LinearRows, params: Params) -> Weighting:
    """The weights of naive Bayes, those of all classes adding up to nothing."""
    each = []
    for leaf, basis in zip(rows.leaves, rows.bases, strict=True):
        natural = _contrast(leaf.family.natural(params[leaf.key])).T
        each.append(natural if basis is None else np.linalg.lstsq(basis, natural, rcond=None)[0])
    with np.errstate(divide="ignore"):
        shares = _contrast(np.log(params.shares)[:, None]).T
    return Weighting(np.vstack([shares, *each]))


def _contrast(natural: np.ndarray) -> np.ndarray:
    """Natural parameters less their mean over the classes, what is impossible being finite."""
    # Those of probability zero stand for themselves as -inf or as a number below which no other lies.
    possible = natural > -1e100
    best = np.where(possible, natural, -np.inf).max(axis=0)
    best = np.where(np.isfinite(best), best, 0.0)
    off = np.where(possible, natural - best, IMPOSSIBLE)
    return np.asarray(off - off.mean(axis=0))


def _problem(rows: LinearRows, towards: np.ndarray | None = None) -> tuple[Conditional, np.ndarray]:
    """What is minimised, and which parts differ from row to row: the others are part of the bias."""
    parts = rows.parts
    least, most = (np.asarray(found.todense()).ravel() for found in (parts.min(axis=0), parts.max(axis=0)))
    varying = np.flatnonzero(least < most)
    nothing = sparse.csr_matrix((parts.shape[0], 1))
    whole = SparseFeatures(sparse.hstack([nothing, parts[:, varying]], format="csr"))
    features = Features(whole, np.zeros((parts.shape[0], 0)))
    own = None if towards is None else _kept(towards, varying)[1:]
    return Conditional(features, rows.labels, rows.weights, rows.groups, own), varying


def _kept(values: np.ndarray, varying: np.ndarray) -> np.ndarray:
    """Weights as a problem has them: bias, nothing, and those of the parts that vary."""
    return folded(np.vstack([values[0], np.zeros(values.shape[1]), values[1 + varying]]))


def _back(found: np.ndarray, rows: LinearRows, naive: Weighting, varying: np.ndarray, n_iter: int) -> Weighting:
    """Weights of all parts; those that do not vary are as in naive Bayes, and the bias is less what they add."""
    each = np.hstack([-found / 2, found / 2]) if rows.groups == 2 else found - found.mean(axis=1, keepdims=True)
    values = naive.values.copy()
    values[1 + varying] = each[2:]
    still = np.ones(len(values) - 1, dtype=bool)
    still[varying] = False
    constant = np.asarray(rows.parts[:1].todense()).ravel() * still
    values[0] = each[0] - constant @ naive.values[1:]
    return Weighting(values, n_iter)


def _still(rows: LinearRows, naive: Weighting, varying: np.ndarray) -> np.ndarray:
    """Weights of naive Bayes with what does not vary added to the bias."""
    still = np.asarray(rows.parts[:1].todense()).ravel()
    still[varying] = 0.0
    values = naive.values.copy()
    values[0] += still @ naive.values[1:]
    return _kept(values, varying)


def _scale(rows: LinearRows) -> float:
    """Scikit-learn's penalty of two classes is of the difference of their weights, of more that of all of them."""
    return 2.0 if rows.groups == 2 else 1.0


def regressed(rows: LinearRows, naive: Weighting, penalty: float, cold: bool = False) -> Weighting:
    """Logistic regression whose penalty draws weights to nothing, as scikit-learn's with C = 1 / penalty.

    It starts at the weights of naive Bayes, all of them less by what does best on these rows; or `cold`, at nothing.
    """
    problem, varying = _problem(rows)
    start = None if cold else _still(rows, _tempered(rows, naive), varying)
    each = np.full(problem.features.width, penalty * _scale(rows))
    found, steps = problem.solved(each, start, MOST_STEPS, CLOSE, near=not cold)
    return _back(found, rows, naive, varying, steps)


def _tempered(rows: LinearRows, naive: Weighting) -> Weighting:
    """Naive Bayes less sure of itself, as columns that repeat each other ask for."""
    scores = rows.scores(naive)
    own = np.arange(len(scores)), rows.labels

    def loss(share: float) -> float:
        return float(rows.weights @ (softmax_rows(share * scores)[1] - share * scores[own]))

    return naive.times(minimize_scalar(loss, bounds=(0.01, 2.0), method="bounded", options={"xatol": 0.01}).x)


def drawn_to(rows: LinearRows, naive: Weighting, penalties: Sequence[float], close: float) -> Iterator[Weighting]:
    """A hybrid for each penalty, which draws weights to those of naive Bayes; the bias is free of it."""
    problem, varying = _problem(rows, naive.values)
    start = _still(rows, naive, varying)
    for penalty in penalties:
        if np.isinf(penalty):
            yield naive
            continue
        each = np.full(problem.features.width, penalty * _scale(rows))
        start, steps = problem.solved(each, start, MOST_STEPS, close, near=True)
        yield _back(start, rows, naive, varying, steps)


@dataclass(frozen=True, slots=True, eq=False)
class UnseenFold:
    """A fold: the rows that naive Bayes was learned from, its weights, and the rows it had not seen."""

    inside: LinearRows
    out: LinearRows
    naive: Weighting


@dataclass(frozen=True, slots=True)
class Blend:
    """A hybrid's settings: the share of naive Bayes' weights it is drawn to, and by how much; a line on it."""

    share: float
    penalty: float
    line: str


def chosen_blend(rows: LinearRows, fitted: Fitted, plan: Plan) -> Blend:
    """What is nearest to naive Bayes among all that does as well as the best on rows held out, but for chance.

    First the share of its weights, then by how much they are drawn to it. Chance is one standard error of the
    difference, row by row.
    """
    tested, held = [], 0.0
    for fold in range(FOLDS):
        own = rows.weights[rows.folds == fold].sum()
        if held < ENOUGH and 0 < own < rows.weights.sum():
            tested.append(_held(rows, fitted, plan, fold))
            held += own
    if not tested:
        return Blend(1.0, np.inf, "the hybrid is naive Bayes as it is: there are too few rows to hold some out.")
    weights = np.concatenate([fold.out.weights for fold in tested])
    shared = np.hstack([[fold.out.row_losses(fold.naive.times(share)) for share in SHARES] for fold in tested])
    share = SHARES[_nearest(shared, weights)]
    found = [_path_losses(fold, share) for fold in tested]
    depth = min(map(len, found))
    losses = np.hstack([each[:depth] for each in found])
    place = _nearest(losses, weights)
    own, plain = ((one @ weights) / weights.sum() for one in (losses[place], shared[0]))
    return Blend(share, PENALTIES[place], _blend_line(share, PENALTIES[place], own, plain))


def _nearest(losses: np.ndarray, weights: np.ndarray) -> int:
    """The first (ways x rows) way that is no more than a standard error worse than the best."""
    best = int((losses @ weights).argmin())
    worse = losses - losses[best]
    mean = worse @ weights / weights.sum()
    error = np.sqrt(((worse - mean[:, None]) ** 2) @ weights) / weights.sum()
    return int(np.argmax(mean <= error))


def _blend_line(share: float, penalty: float, own: float, plain: float) -> str:
    part = "" if share == 1 else f"{share:g} times the weights of "
    if np.isinf(penalty):
        return f"the hybrid is {part}naive Bayes: log-loss {own:.4g} on rows held out, naive Bayes {plain:.4g}."
    return (
        f"the hybrid is drawn to {part}naive Bayes by {penalty:g} rows' worth: log-loss {own:.4g} on rows held out, "
        f"naive Bayes {plain:.4g}."
    )


def _held(rows: LinearRows, fitted: Fitted, plan: Plan, fold: int) -> UnseenFold:
    inside, out = (rows.take(np.flatnonzero(own)) for own in (rows.folds != fold, rows.folds == fold))
    counts, model, names = inside.counts(), fitted.model, list(fitted.classes or [])
    counts, imagined = with_older(model, counts, imagine_classes(model, counts, plan), plan, names)
    return UnseenFold(inside, out, naive_weights(inside, estimated(model, counts, imagined)))


def _path_losses(held: UnseenFold, share: float) -> list[np.ndarray]:
    """The losses of a fold's rows under one penalty after the other, until they get worse."""
    losses: list[np.ndarray] = []
    totals: list[float] = []
    for found in drawn_to(held.inside, held.naive.times(share), PENALTIES, ROUGH):
        losses.append(held.out.row_losses(found))
        totals.append(float(held.out.weights @ losses[-1]))
        if len(totals) - 1 - int(np.argmin(totals)) >= WORSE:
            break
    return losses


def _separable(rows: LinearRows, found: Weighting) -> str:
    """A line where the weights tell all classes of these rows, so that only the penalty keeps them finite."""
    scores = rows.scores(found)
    own = scores[np.arange(len(scores)), rows.labels].copy()
    scores[np.arange(len(scores)), rows.labels] = -np.inf
    if not (own > scores.max(axis=1)).all():
        return ""
    return (
        f"the classes of all {len(own)} rows are told apart perfectly: only the penalty keeps the weights finite, and "
        "probabilities near 0 and 1 are no surer than it."
    )
