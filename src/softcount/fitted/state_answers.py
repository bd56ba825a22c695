"""What a fitted hidden chain says of steps: why a state, what is odd, what comes next, and new sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.fitted.answers import Answer
from softcount.fitted.fitted_states import FittedStates
from softcount.fitted.surprise import SurpriseMeter
from softcount.models.nodes import Node
from softcount.models.path_parts import PathRows
from softcount.numerics.late_scipy import entr, xlogy
from softcount.table import Chunk
from softcount.table.schema import Key, Kind

BEFORE, AFTER, STATE = "(before)", "(after)", "(state)"
"""What the steps before and those after say of a state, and what is odd about a state itself."""


def explained(fitted: FittedStates, part: PathRows, against: int | None) -> dict[Any, np.ndarray]:
    """What makes each step's likeliest state likelier than another: the steps before, each column, the steps after.

    They add up exactly to the log-odds of the two states given the whole sequence.
    """
    members = fitted.smoothed(part)
    foretold = fitted.foretold(part, fitted.filtered(part)[0])
    rows, state = np.arange(part.n_rows), members.argmax(axis=1)
    others = members.copy()
    others[rows, state] = -1.0
    other = others.argmax(axis=1) if against is None else np.full(part.n_rows, against)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(members[rows, state]) - np.log(members[rows, other])
        before = np.log(foretold[rows, state]) - np.log(foretold[rows, other])
    found: dict[Any, np.ndarray] = {"state": state, "against": other, BEFORE: before}
    shown, chain = np.array(fitted.chain.links.shown), fitted.chain
    for key, own in chain.star.score_parts(fitted.compiled.emissions, part.rows).items():
        found[key] = own[rows, shown[state]] - own[rows, shown[other]]
    seen = sum(value for key, value in found.items() if key not in ("state", "against"))
    with np.errstate(invalid="ignore"):
        found[AFTER] = odds - seen
    return found


def surprises(fitted: FittedStates, meter: SurpriseMeter, chunk: Chunk, part: PathRows) -> dict[Any, np.ndarray]:
    """How many nats less likely each step is, after those before it, than is usual: by column, and by its state.

    With r the states' probabilities up to the step and f those foretold, the step's surprise splits exactly into
    KL(r || f) and what each column adds in its states; from each, its entropy averaged over f is subtracted.
    """
    members, _ = fitted.filtered(part)
    foretold = fitted.foretold(part, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        rare = np.where(members > 0, xlogy(members, members) - xlogy(members, foretold), 0.0).sum(axis=1)
    found: dict[Any, np.ndarray] = {STATE: rare - entr(foretold).sum(axis=1)}
    shown, expected = members @ fitted.chain.sharing, foretold @ fitted.chain.sharing
    scores = fitted.chain.star.score_parts(fitted.compiled.emissions, part.rows)
    for leaf in fitted.chain.leaves:
        column = fitted.chain.star.column(leaf, chunk)
        found |= meter.reasons_of(leaf, column, scores[leaf.key], shown, expected)
    return found


# -- what comes next


def coming_states(fitted: FittedStates, part: PathRows, steps: int) -> np.ndarray:
    """(sequences x steps x states) probability of each state in the steps to come."""
    here = fitted.filtered(part)[0][part.borders[1:] - 1]
    found = np.empty((len(here), steps, fitted.n_states))
    for step in range(steps):
        here = here @ fitted.transitions
        found[:, step] = here
    return found


def coming_values(fitted: FittedStates, states: np.ndarray, level: float) -> dict[str, list[Any]]:
    """Columns of what is expected under (steps x states) probabilities: a number's mean and where it lies with
    probability `level`; the likeliest level of a discrete column, and its probability."""
    shares, found = states @ fitted.chain.sharing, dict[str, list[Any]]()
    for leaf in fitted.chain.leaves:
        for place, column in enumerate(leaf.columns):
            found |= _coming(fitted, leaf, place, str(column), shares, level)
    return found


def _coming(
    fitted: FittedStates, leaf: Node, place: int, name: str, shares: np.ndarray, level: float
) -> dict[str, list[Any]]:
    own = leaf.family.scorable(fitted.estimates[leaf.key], leaf.setting)
    levels = leaf.family.levels_of(leaf.setting, place)
    nothing = np.zeros(len(leaf.columns)) if levels is not None else np.full(len(leaf.columns), np.nan)
    family, params = leaf.family.conditional(own, leaf.setting, nothing, place)
    if levels is not None:
        odds = shares @ params["probability"]
        best = odds.argmax(axis=1)
        return {name: [levels[at] for at in best], f"{name} p": odds.max(axis=1).tolist()}
    answers = [Answer(row / row.sum(), family, params) for row in shares]
    tail = 0.5 * (1 - level)
    return {
        name: [answer.mean for answer in answers],
        f"{name} low": [answer.quantile(tail) for answer in answers],
        f"{name} high": [answer.quantile(1 - tail) for answer in answers],
    }


# -- new sequences


def drawn_path(fitted: FittedStates, length: int, rng: np.random.Generator, state: int | None = None) -> np.ndarray:
    """States of a new sequence, or of one that goes on from a state."""
    edges, path = np.cumsum(fitted.transitions, axis=1), np.empty(length, dtype=int)
    first = np.cumsum(fitted.first)
    for step, luck in enumerate(rng.random(length)):
        row = first if state is None else edges[state]
        state = min(int(np.searchsorted(row, luck * row[-1], side="right")), fitted.n_states - 1)
        path[step] = state
    return path


def drawn_cells(fitted: FittedStates, path: np.ndarray, rng: np.random.Generator) -> Mapping[Key, Any]:
    """What these states show: a value of every column at each step."""
    groups, found = np.array(fitted.chain.links.shown)[path], dict[Key, Any]()
    for leaf in fitted.chain.leaves:
        own = leaf.family.public(fitted.estimates[leaf.key], leaf.setting)
        values = leaf.family.draw_columns(own, leaf.setting, groups, rng, None)
        for column, part in zip(leaf.columns, values, strict=True):
            whole = fitted.schema[column].kind is Kind.COUNT
            found[column] = np.asarray(part, np.int64) if whole else part
    return {spec.key: found[spec.key] for spec in fitted.schema.used if spec.key in found}
