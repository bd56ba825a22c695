"""How the groups of a fitted model are scored: by its densities, by learned weights, or by an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar, cast

import numpy as np
from msgspec import Struct

from softcount.core import remedies
from softcount.core.formulas import Apply, Formula, LookUp, formula, scale_terms, unless_missing
from softcount.core.ranges import Amount, Floats, Positive
from softcount.core.special import log_of, log_ratio
from softcount.errors import DataError
from softcount.families.base import IMPOSSIBLE, family_title
from softcount.families.text import BagsDensity
from softcount.fitted.calibration import Calibration
from softcount.models.bag_stack import Bag
from softcount.models.nodes import Node
from softcount.models.star import TILE, Ready, begin_scores, rows_of
from softcount.run.local import Runner
from softcount.table import Chunk, Table
from softcount.table.schema import Key

if TYPE_CHECKING:
    from softcount.classify.ensemble import Ensemble
    from softcount.fitted.fitted import Fitted

NOT_QUADRATIC = "to_quadratic needs standard naive Bayes: fit with weights=None, and without to_logistic."
NOT_LOGISTIC = "to_logistic needs standard naive Bayes: fit NaiveBayes without weights."
CALIBRATION_NOTES = ("calibrated on", "not calibrated", "the temperature stays 1:")
"""How notes about a calibration begin."""
UNCALIBRATED = "not calibrated: rows were added or removed after the fit. Fit all at once, or call calibrate(X, y)."


AnyScorer = TypeVar("AnyScorer", bound="type[Scorer]")
SCORERS: dict[str, type[Scorer]] = {}
"""Scorers by their kind in the model file."""


def register_scorer(scorer: AnyScorer) -> AnyScorer:
    """Register a scorer by its tag, for the model file."""
    SCORERS[str(scorer.__struct_config__.tag)] = scorer
    return scorer


class ScoreFormula(Struct, frozen=True):
    """The scores of the groups as a sum of terms, and the columns that they read.

    The columns `valued` have numbers as categories and are read as numbers.
    """

    columns: tuple[Key, ...]
    terms: tuple[Formula, ...]
    valued: tuple[Key, ...] = ()


def not_exported(key: Key, what: str, why: str) -> DataError:
    """Return the error about a column of which there is no formula."""
    first = key[0] if isinstance(key, tuple) else key
    return DataError(
        f"column {key!r} {what}, which {why}: the model cannot be exported. "
        f"Fit again with {remedies.estimate_mean()} or another kind, or without it: {remedies.kind(first, 'ignore')}"
    )


@register_scorer
class Scorer(Struct, frozen=True, eq=False, kw_only=True, tag_field="kind", tag="model"):
    """Scores a group by its log-share plus the log-density of the row; other scorers override this.

    Attributes
    ----------
    calibration : Calibration or None
        A correction of the probabilities.
    title : str
        The name of the model.
    estimator : str
        The class of the estimator that has such a scorer.
    is_naive : bool
        Whether columns are taken as independent given the class.
    has_density : bool
        Whether scores are log-shares plus log-densities.
    has_ranges : bool
        Whether a range of values can be scored.
    not_quadratic, not_logistic : str
        Why the log-odds are no quadratic form, or no start of a logistic regression; empty if they are.
    dropped : str
        The note on a model to which rows are added after the fit, if that drops the scorer.
    ensemble : Ensemble or None
        The models that are combined to predict the classes.
    """

    calibration: Calibration | None = None

    title: ClassVar[str] = "Naive Bayes"
    estimator: ClassVar[str] = "NaiveBayes"
    is_naive: ClassVar[bool] = True
    has_density: ClassVar[bool] = True
    has_ranges: ClassVar[bool] = True
    not_quadratic: ClassVar[str] = ""
    not_logistic: ClassVar[str] = ""
    dropped: ClassVar[str] = ""

    @property
    def is_calibrated(self) -> bool:
        return self.calibration is not None

    @property
    def ensemble(self) -> Ensemble | None:
        return None

    @property
    def together(self) -> list[str]:
        """Names of members that are not a sum over columns."""
        return []

    # -- groups

    def log_proba(self, model: Fitted, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x groups) log-probabilities."""

        def finish(joint: np.ndarray) -> np.ndarray:
            evidence: np.ndarray = model.model.kernels.normalise(joint.copy())
            if np.isfinite(evidence).all():
                joint -= evidence[:, None]
                joint[:] = joint if self.calibration is None else self.calibration.log_proba(joint)
            return evidence

        return model.score_each(table, threads, finish)

    def proba(self, model: Fitted, table: Table, threads: Runner) -> np.ndarray:
        """Return (rows x groups) probabilities."""

        def finish(joint: np.ndarray) -> np.ndarray:
            better = None if self.calibration is None else self.calibration.proba(joint)
            evidence: np.ndarray = model.model.kernels.normalise(joint)
            if better is not None:
                joint[:] = better
            return evidence

        return model.score_each(table, threads, finish, plain=self.has_density and not self.is_calibrated)

    def bias(self, model: Fitted) -> np.ndarray:
        """Return the score of every group before a column is observed."""
        return log_of(model.shares)

    def leaf_weights(self, model: Fitted) -> np.ndarray:
        """Return the factor of the log-density of every leaf."""
        return np.ones(len(model.model.leaves))

    def compile(self, model: Fitted) -> list[Any]:
        """Return parameters compiled for scoring; terms that are equal in all groups may be left out."""
        compiled: list[Any] = model.model.compile(model.estimates, contrast=True)
        return compiled

    def score(
        self, model: Fitted, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return (rows x groups) scores, up to a constant per row."""
        found: np.ndarray = model.model.score(ready, compiled, rows, out)
        return found

    def score_leaves(self, model: Fitted, ready: Ready, compiled: list[Any]) -> dict[Key, np.ndarray]:
        """Return what each leaf adds to the scores."""
        found: dict[Key, np.ndarray] = model.model.score_parts(compiled, ready)
        return found

    # -- explanations

    def score_columns(
        self, model: Fitted, chunk: Chunk, compiled: list[Any]
    ) -> tuple[dict[Key, np.ndarray], np.ndarray]:
        """Return the (rows x groups) contributions of each column to the scores, and what no column adds."""
        parts = self.score_leaves(model, model.model.prepare(chunk, base=False), compiled)
        return parts, np.tile(self.bias(model), (chunk.n_rows, 1))

    def score_words(self, model: Fitted, leaf: Node, bag: Any, pair: tuple[int, int]) -> np.ndarray:
        """Return the contributions of a document's words to the log-odds of a pair of groups, in nats."""
        inside = bag.indices > 0
        params = {name: part[list(pair)] for name, part in model.estimates[leaf.key].items()}
        density = cast("BagsDensity", leaf.family.density(params, leaf.setting))
        scores = density.score_words(bag.indices[inside] - 1, bag.data[inside])
        scores = np.where(np.abs(scores) > -IMPOSSIBLE, np.copysign(np.inf, scores), scores)
        return log_ratio(*(scores * self.leaf_weights(model)[model.model.leaves.index(leaf)]))

    def of_complete_rows(self) -> Scorer:
        """Return a scorer under which a missing cell does not change what the others add."""
        return self

    def linear_form(self, model: Fitted) -> tuple[np.ndarray, np.ndarray]:
        """Return (coef, intercept) such that softmax(x @ coef.T + intercept) equals the model's probabilities.

        A normal column is one feature, its value, and a 0/1 column is one feature. Any other categorical column has one
        feature per category. A multinomial block has one per count, and a text that is present one per word (for
        Bernoulli words, 1 if the word occurs).
        """
        intercept, coefs = self.bias(model), []
        for weight, leaf in zip(self.leaf_weights(model), model.model.leaves, strict=True):
            part = leaf.density(model.estimates).linear()
            if part is None:
                raise DataError(
                    f"column {leaf.key!r} ({family_title(leaf.family)}) is not linear in the classes' log-odds. "
                    "Use multinomial, Bernoulli, text or categorical columns, or Normal(tied='classes')."
                )
            coefs.append(part[0] * weight)
            intercept = intercept + part[1] * weight
        return np.concatenate(coefs, axis=1), intercept

    # -- formulas, files and estimators

    def formula(self, model: Fitted) -> ScoreFormula:
        """Return the scores as a formula; raise an error that names a column without one."""
        columns = tuple(key for leaf in model.model.leaves for key in leaf.columns)
        return ScoreFormula(columns, (formula(self.bias(model)), *self.leaf_terms(model)))

    def leaf_terms(self, model: Fitted) -> list[Formula]:
        terms = []
        for leaf, found in zip(model.model.leaves, self.leaf_formulas(model), strict=True):
            if found is None:
                raise not_exported(
                    leaf.key, f"is {family_title(leaf.family)}", "has no formula without special functions"
                )
            plain = leaf.family.facts.block or isinstance(found, LookUp)
            terms.append(found if plain else unless_missing(leaf.columns[0], found))
        return terms

    def leaf_formulas(self, model: Fitted) -> list[Formula | None]:
        return [
            leaf.density(model.estimates).formula(leaf.columns, [len(model.schema[key].levels) for key in leaf.columns])
            for leaf in model.model.leaves
        ]

    def iterations(self, model: Fitted) -> int:
        return model.n_iter

    def estimator_settings(self, model: Fitted) -> dict[str, Any]:
        return {"prior": model.prior, "estimate": model.estimate}

    def update_notes(self, notes: list[str]) -> list[str]:
        """Return the notes of a model whose rows changed after the fit: counts add, corrections and weights do not."""
        if self.is_calibrated:
            notes = [*(note for note in notes if not note.startswith(CALIBRATION_NOTES)), UNCALIBRATED]
        if self.dropped:
            notes = [*(note for note in notes if not self.is_outdated(note)), self.dropped]
        return notes

    def is_outdated(self, note: str) -> bool:
        """Return whether a note is about the scorer, and to be left out if the scorer is dropped."""
        return note == self.dropped


@register_scorer
class ColumnWeights(Scorer, frozen=True, eq=False, tag="column weights"):
    """The weight of every leaf's log-density, in the model's order, and a bias of every class for its log-share.

    If the scores of a stack are no products with its parameters, its log-densities are limited first: see `bounded`.
    """

    weights: Annotated[np.ndarray, Floats(("leaves",), least=0.0)]
    intercept: Annotated[np.ndarray, Floats(("classes",))]
    penalty: float

    has_density: ClassVar[bool] = False
    not_quadratic: ClassVar[str] = NOT_QUADRATIC
    not_logistic: ClassVar[str] = NOT_LOGISTIC
    dropped: ClassVar[str] = (
        "the columns' weights were dropped: rows were added or removed after the fit. Fit all at once to learn them."
    )

    def bias(self, model: Fitted) -> np.ndarray:
        return self.intercept

    def leaf_weights(self, model: Fitted) -> np.ndarray:
        return self.weights

    def compile(self, model: Fitted) -> list[Any]:
        """Return the bias, and for every stack its weighted parameters, or its parameters and the weights."""
        by_key = dict(zip((leaf.key for leaf in model.model.leaves), self.weights.tolist(), strict=True))
        found: list[Any] = [np.tile(self.intercept, (TILE, 1))]
        for stack, part in zip(model.model.stacks, super().compile(model)[1:], strict=True):
            own = np.array([by_key[node.key] for node in stack.nodes])
            weighed = stack.weighed(part, own)
            found.append((part, own) if weighed is None else (weighed, None))
        return found

    def score(
        self, model: Fitted, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None
    ) -> np.ndarray:
        joint = begin_scores(compiled[0], rows, out)
        for stack, data, (part, weights) in zip(model.model.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            if weights is None:
                stack.score(here, part, joint)
            else:
                own = stack.score_nodes(here, part, np.zeros((len(weights), *joint.shape)))
                joint += np.tensordot(weights, bounded(own, isinstance(stack, Bag)), 1)
        return joint

    def score_leaves(self, model: Fitted, ready: Ready, compiled: list[Any]) -> dict[Key, np.ndarray]:
        found: dict[Key, np.ndarray] = {}
        for stack, data, (part, weights) in zip(model.model.stacks, ready.data, compiled[1:], strict=True):
            own = stack.score_nodes(data, part, np.zeros((len(stack.nodes), ready.n_rows, model.n_groups)))
            if weights is not None:
                own = bounded(own, isinstance(stack, Bag)) * weights[:, None, None]
            found |= {node.key: own[place] for place, node in enumerate(stack.nodes)}
        return {leaf.key: found[leaf.key] for leaf in model.model.leaves}

    def leaf_terms(self, model: Fitted) -> list[Formula]:
        stacks = zip(model.model.stacks, self.compile(model)[1:], strict=True)
        limited = {node.key for stack, (_, own) in stacks if own is not None for node in stack.nodes}
        terms = []
        for leaf, term, weight in zip(
            model.model.leaves, super().leaf_terms(model), self.weights.tolist(), strict=True
        ):
            if leaf.key in limited:
                if leaf.family.facts.words:
                    why = "with a weight has words that are impossible in some class"
                    raise not_exported(leaf.key, f"is {family_title(leaf.family)}", why)
                term = (
                    LookUp(term.code, np.maximum(term.table, LOWEST))
                    if isinstance(term, LookUp)
                    else Apply("largest", (term, formula(LOWEST)))
                )
            terms += scale_terms([term], weight)
        return terms


LOWEST = -1e3
"""Lowest log-density of a cell, before it is multiplied by the weight of its column."""


def bounded(own: np.ndarray, words: bool) -> np.ndarray:
    """Limit a leaf's part of the scores to the lowest log-density; for words, relative to the best class.

    A document of two hundred words has a log-density below the limit in every class, which would hide the differences.
    """
    if words:
        best = own.max(axis=-1, keepdims=True)
        own = own - np.where(np.isfinite(best), best, 0.0)
    return np.asarray(np.maximum(own, LOWEST))


@register_scorer
class LinearWeights(Scorer, frozen=True, eq=False, tag="logistic regression"):
    """A logistic regression on the features of the families: (groups x features) weights of each leaf.

    The leaves are in the model's order, and every class has a bias. A missing cell and an unseen category add 0.
    """

    weights: Annotated[tuple[np.ndarray, ...], Floats(("classes", None))]
    intercept: Annotated[np.ndarray, Floats(("classes",))]
    penalty: Positive
    n_iter: Amount

    has_density: ClassVar[bool] = False
    has_ranges: ClassVar[bool] = False
    not_quadratic: ClassVar[str] = NOT_QUADRATIC
    dropped: ClassVar[str] = (
        "the weights of logistic regression were dropped: rows were added or removed. Call to_logistic again."
    )

    def bias(self, model: Fitted) -> np.ndarray:
        return self.intercept

    def compile(self, model: Fitted) -> list[Any]:
        """Return the bias, and for every stack the weights of its nodes."""
        by_key = dict(zip((leaf.key for leaf in model.model.leaves), self.weights, strict=True))
        stacks = ([by_key[node.key] for node in stack.nodes] for stack in model.model.stacks)
        return [np.tile(self.intercept, (TILE, 1)), *stacks]

    def score(
        self, model: Fitted, ready: Ready, compiled: list[Any], rows: slice, out: np.ndarray | None = None
    ) -> np.ndarray:
        joint = begin_scores(compiled[0], rows, out)
        for stack, data, weights in zip(model.model.stacks, ready.data, compiled[1:], strict=True):
            here = rows_of(data, rows)
            for place, own in enumerate(weights):
                stack.score_linear(here, place, own, joint)
        return joint

    def score_leaves(self, model: Fitted, ready: Ready, compiled: list[Any]) -> dict[Key, np.ndarray]:
        found: dict[Key, np.ndarray] = {}
        for stack, data, weights in zip(model.model.stacks, ready.data, compiled[1:], strict=True):
            for place, (node, own) in enumerate(zip(stack.nodes, weights, strict=True)):
                found[node.key] = np.zeros((ready.n_rows, model.n_groups))
                stack.score_linear(data, place, own, found[node.key])
        return {leaf.key: found[leaf.key] for leaf in model.model.leaves}

    def score_words(self, model: Fitted, leaf: Node, bag: Any, pair: tuple[int, int]) -> np.ndarray:
        inside = bag.indices > 0
        own = self.weights[[own.key for own in model.model.leaves].index(leaf.key)][list(pair)][:, bag.indices[inside]]
        return np.asarray((own[0] - own[1]) * leaf.family.features(bag, leaf.setting).data[inside])

    def linear_form(self, model: Fitted) -> tuple[np.ndarray, np.ndarray]:
        each = zip(model.model.leaves, self.weights, strict=True)
        parts = [leaf.density(model.estimates).linear_of(weights) for leaf, weights in each]
        return np.concatenate([coef for coef, _ in parts], axis=1), self.intercept + sum(start for _, start in parts)

    def leaf_formulas(self, model: Fitted) -> list[Formula | None]:
        found = []
        for leaf, weights in zip(model.model.leaves, self.weights, strict=True):
            sizes = [len(model.schema[key].levels) for key in leaf.columns]
            found.append(leaf.density(model.estimates).weighted_formula(weights, leaf.columns, sizes))
        return found

    def iterations(self, model: Fitted) -> int:
        return self.n_iter
