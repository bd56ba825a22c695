"""Why a row is in its class: what every column adds to the log-odds, which add up exactly, and where it is linear."""

from __future__ import annotations

from operator import call
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.counts import ROOT
from softcount.errors import DataError
from softcount.fitted.answers import labels_in, name_apart
from softcount.records import dataclass
from softcount.table import Chunk, Table
from softcount.table.schema import Key
from softcount.table.text_columns import Map

if TYPE_CHECKING:
    from softcount.fitted.fitted_model import Fitted
    from softcount.fitted.linear_weights import LinearWeights

PRIOR = "(prior)"
LOWEST = np.finfo(float).min


@dataclass(frozen=True, slots=True)
class Explanation:
    """Log-odds of each row's class against another by column, and of the shares under `ROOT`; they add up exactly."""

    parts: dict[Key, np.ndarray]
    chosen: np.ndarray
    against: np.ndarray

    @property
    def total(self) -> np.ndarray:
        return np.asarray(np.sum(list(self.parts.values()), axis=0))

    def named(self, model: Fitted) -> dict[str, np.ndarray]:
        """The parts under the names of the columns, after that of the shares."""
        names, ours = labels_in(model), name_apart(model, PRIOR)
        return {ours if key is ROOT else names[key]: part for key, part in self.parts.items()}


def explained(model: Fitted, table: Table, against: Any = None, run: Map = map) -> Explanation:
    """Why each row is in its class: what every column adds in favour of it and against the runner-up.

    Chunks are read with `run` as the `map`.
    """
    compiled = model.compiled()
    pieces = [_explained_chunk(model, chunk, compiled, against) for chunk in run(call, table.tasks())]
    if not pieces:
        keys = [ROOT, *(x.key for x in model.model.leaves)]
        return Explanation({key: np.zeros(0) for key in keys}, np.zeros(0, int), np.zeros(0, int))
    parts = {name: np.concatenate([piece.parts[name] for piece in pieces]) for name in pieces[0].parts}
    chosen = np.concatenate([piece.chosen for piece in pieces])
    return Explanation(parts, chosen, np.concatenate([piece.against for piece in pieces]))


def _explained_chunk(model: Fitted, chunk: Chunk, compiled: Any, against: Any) -> Explanation:
    found, prior = model.parts_of(chunk, compiled)
    scores = {key: _against_best(part) for key, part in found.items()}
    joint = prior + sum(scores.values())
    model.refuse_impossible(chunk, joint)
    rows = np.arange(chunk.n_rows)
    chosen = joint.argmax(axis=1)
    other = _others(model, joint, chosen, against)
    parts: dict[Key, np.ndarray] = {ROOT: prior[rows, chosen] - prior[rows, other]}
    with np.errstate(invalid="ignore"):
        parts |= {key: score[rows, chosen] - score[rows, other] for key, score in scores.items()}
    return Explanation(
        {name: np.nan_to_num(part, nan=0.0, posinf=np.inf, neginf=-np.inf) for name, part in parts.items()},
        chosen,
        other,
    )


def _against_best(score: np.ndarray) -> np.ndarray:
    """The same relative to each row's best group: what all groups have in common would drown the rest of a sum."""
    best = score.max(axis=1, keepdims=True)
    return score - np.where(np.isfinite(best), best, 0.0)


def _others(model: Fitted, joint: np.ndarray, chosen: np.ndarray, against: Any) -> np.ndarray:
    if against is not None:
        return np.full(len(chosen), model.group_of(against))
    if joint.shape[1] == 1:
        return chosen
    # A class ruled out can still be the runner-up; the chosen one never is.
    rest = np.maximum(joint, LOWEST)
    rest[np.arange(len(rest)), chosen] = -np.inf
    return np.asarray(rest.argmax(axis=1))


def linear_form(model: Fitted) -> tuple[np.ndarray, np.ndarray]:
    """(coef, intercept) with softmax(x @ coef.T + intercept) equal to the model's probabilities.

    A normal column is one feature, its value; a 0/1 column one; any other categorical one per level; a multinomial
    block one per count, a text that is there one per word (for Bernoulli words, 1 where the word is there).
    """
    if model.linear is not None:
        return _linear_weights(model, model.linear)
    with np.errstate(divide="ignore"):
        intercept = np.log(model.shares) if model.weights is None else model.weights.bias
    coefs, public = [], model.params
    weights = np.ones(len(model.model.leaves)) if model.weights is None else model.weights.weights
    for weight, leaf in zip(weights, model.model.leaves, strict=True):
        part = leaf.family.linear(public[leaf.key], leaf.setting)
        if part is None:
            raise DataError(
                f"column {leaf.key!r} ({leaf.family.title}) is not linear in the classes' log-odds. "
                "Linear are multinomial, Bernoulli, text, categorical, and Normal(tied='classes')."
            )
        coefs.append(part[0] * weight)
        intercept = intercept + part[1] * weight
    return np.concatenate(coefs, axis=1), intercept


def _linear_weights(model: Fitted, own: LinearWeights) -> tuple[np.ndarray, np.ndarray]:
    """The same of weights that were learned."""
    parts = [leaf.family.linear_of(own.weights[leaf.key], leaf.setting) for leaf in model.model.leaves]
    return np.concatenate([coef for coef, _ in parts], axis=1), own.bias + sum(start for _, start in parts)
