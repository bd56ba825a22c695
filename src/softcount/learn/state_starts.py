"""Where the climb of a hidden chain starts: what states show from distinct steps, transitions drawn around habits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.learn.sketch import Sketch
from softcount.learn.start import NEAREST_SHARE, drawn_memberships, pinned
from softcount.learn.user_params import given_params
from softcount.models.base import StateModel
from softcount.models.nodes import Imagined, Params
from softcount.records import dataclass

STAYING = (0.0, 0.8)
"""Of a start's transitions, those that stay: nothing is known of half of the starts' habits, half are slow to move."""
FEW_SYMBOLS = 64
"""Distinct steps up to which every other start shares them between states at random: of symbols none is nearest."""
FIRST_NAME, NEXT_NAME = "first", "transitions"


@dataclass(frozen=True, slots=True)
class StateStarts:
    """How many states, and where to start from: a word for how starts are drawn, or what makes the parameters."""

    states: int
    init: Any = "k-means++"
    n_init: int = 10
    seed: Any = None


def drawn_state_start(
    model: StateModel,
    imagined: Imagined,
    sketch: Sketch,
    ready: Sequence[Any],
    init: str,
    seed: np.random.SeedSequence,
    number: int,
) -> Params:
    """Parameters to climb from. Where states come in line, sequences are cut into as many stretches."""
    rng = np.random.default_rng(seed)
    line = model.links.in_line()
    if line is not None:
        parts = [model.counts_under(part, stretches(part, line, model.links.states, rng)) for part in ready]
        return model.nodes.estimate(model.gathered(reduce(add, parts)), imagined)
    rows = _by_emission(sketch, model)
    way = "random" if init == "k-means++" and number % 2 and len(rows.weights) <= FEW_SYMBOLS else init
    members = drawn_memberships(rows, model.groups, way, rng)
    shown = model.star.tally_members(model.star.prepare(rows.chunk, base=False), members)
    nexts = transitions(model.links.nexts, STAYING[number % len(STAYING)], rng) * sketch.mass / model.states
    counts = model.with_steps(shown, np.full(model.states, 1.0 / model.states), nexts)
    return model.nodes.estimate(model.gathered(counts), imagined)


def _by_emission(sketch: Sketch, model: StateModel) -> Sketch:
    """The distinct steps, those of known state labelled by what the state shows."""
    labels = sketch.chunk.labels
    if labels is None:
        return sketch
    shown = np.array(model.links.shown)[np.maximum(labels, 0)]
    return replace(sketch, chunk=replace(sketch.chunk, labels=np.where(labels < 0, -1, shown).astype(np.int32)))


def transitions(nexts: Sequence[Sequence[int]], staying: float, rng: np.random.Generator) -> np.ndarray:
    """(states x states) shares drawn around staying where one is; none where no step may go."""
    states = len(nexts)
    found = np.zeros((states, states))
    for state, levels in enumerate(nexts):
        found[state, list(levels)] = (1 - staying) * rng.dirichlet(np.full(len(levels), 4.0))
        found[state, state] += staying if state in levels else 0.0
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def stretches(part: Any, line: Sequence[int], states: int, rng: np.random.Generator) -> np.ndarray:
    """(rows x states) memberships of sequences cut into a stretch for each state in turn, cuts drawn around even."""
    members = np.full((part.n_rows, states), (1 - NEAREST_SHARE) / states)
    cuts = np.cumsum(rng.dirichlet(np.full(states, 8.0)))[:-1]
    for begin, end in zip(part.borders[:-1], part.borders[1:], strict=True):
        turn = np.searchsorted(cuts, (np.arange(end - begin) + 0.5) / (end - begin))
        members[np.arange(begin, end), np.array(line)[turn]] += NEAREST_SHARE
    return pinned(members, part.labels)


@dataclass(frozen=True, slots=True)
class GivenStart:
    """Parameters that the user wrote: `first`, `transitions`, and those of every column as in `params_`."""

    said: Mapping[Any, Any]

    def __call__(self, model: StateModel, imagined: Imagined) -> Params:
        columns = {key: own for key, own in self.said.items() if isinstance(own, Mapping)}
        names = [key for key in self.said if key not in columns]
        odd = [key for key in names if key not in (FIRST_NAME, NEXT_NAME)]
        if odd:
            raise DataError(f"init names {odd[0]!r}, which is neither a column nor 'first' nor 'transitions'.")
        shown = given_params(model.star, columns)
        first = checked_shares(self.said.get(FIRST_NAME), (model.states,), "init: 'first'")
        nexts = checked_shares(self.said.get(NEXT_NAME), (model.states, model.states), "init: 'transitions'")
        own = model.step_params(first, nexts)
        return model.nodes.params({**own, **{leaf.key: shown[leaf.key] for leaf in model.leaves}})


def checked_shares(said: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
    """Shares that sum to one along the last axis; equal ones where nothing is said."""
    if said is None:
        return np.full(shape, 1.0 / shape[-1])
    try:
        found = np.asarray(said, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{what} must be numbers, not {said!r}.") from None
    size = " x ".join(map(str, shape))
    if found.shape != shape or not np.isfinite(found).all() or (found < 0).any():
        raise DataError(f"{what} must be {size} probabilities of 0 or more, not an array of shape {found.shape}.")
    far = np.abs(found.sum(axis=-1) - 1.0)
    if far.max() > 1e-6:
        at = f" of state {int(far.argmax())}" if found.ndim > 1 else ""
        total = np.atleast_1d(found.sum(axis=-1))[int(far.argmax())]
        raise DataError(f"{what}{at} sum to {total:.6g}, not to one.")
    return np.asarray(found / found.sum(axis=-1, keepdims=True))
