"""How probable a table is under a model once its parameters are integrated out, and other ways to weigh models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import lgamma, log
from typing import Any

import numpy as np

from softcount.counts import ROOT, Counts
from softcount.models.base import ClassModel, Model
from softcount.models.nodes import Bundle, Imagined, Params
from softcount.numerics.late_scipy import entr
from softcount.run.base import Runner
from softcount.run.held_rows import rows_here
from softcount.run.rows import Rows, Step


def cheeseman_stutz(model: ClassModel, imagined: Imagined, params: Params, counts: Counts, known: int = 0) -> float:
    """Log marginal likelihood of the table, approximated at parameters just scored and their expected counts.

    The rows completed as expected have one in closed form; what completing them changed is taken back at the
    parameters: log P(D'|K) + log P(D|theta) - log P(D'|theta). With one class and no holes it is exact. Classes nobody
    named can be numbered in K! ways, and all but the first `known` are such: each way is an optimum of its own.
    """
    whole = complete_evidence(model, imagined, params, counts)
    return whole + counts.log_likelihood - model.nodes.completed(counts, params) + lgamma(model.groups - known + 1)


def complete_evidence(model: Model, imagined: Imagined, params: Params, counts: Counts) -> float:
    """Log marginal likelihood of complete rows with these counts by bundle, in counting units and without `base`.

    Nodes that share a parameter are taken at once; one with fixed parameters by a penalty for the rest.
    """
    return sum(_evidence(bundle, imagined, params, counts) for bundle in model.nodes.bundles)


def leaves_evidence(model: Model, imagined: Imagined, params: Params, counts: Counts) -> float:
    """The columns' part of it, whatever the number of groups."""
    leaves = [bundle for bundle in model.nodes.bundles if bundle.name != ROOT]
    return sum(_evidence(bundle, imagined, params, counts) for bundle in leaves)


def _evidence(bundle: Bundle, imagined: Imagined, params: Params, counts: Counts) -> float:
    family, stats = bundle.family, counts.arrays[bundle.name]
    held = [place for place, key in enumerate(bundle.keys) if key in imagined.fixed]
    if not held:
        return family.evidence(stats, family.proper(imagined.of(bundle)))
    total = 0.0
    for place in held:
        node, own = bundle.nodes[place], stats if bundle.alone else stats[:, place]
        fixed = imagined.fixed[node.key]
        left = family.free(node.setting, bundle.groups) - family.held_free(fixed, node.setting, bundle.groups)
        total += family.completed(own, params[node.key]) - 0.5 * left * log(max(counts.rows, 1.0))
    free = [place for place in range(len(bundle.nodes)) if place not in held]
    if free:
        rest = Bundle(tuple(bundle.nodes[place] for place in free), bundle.alone)
        hyper = Imagined(imagined.hypers, imagined.how).of(rest)
        total += family.evidence(stats[:, np.array(free)], family.proper(hyper))
    return total


def memberships_entropy(model: ClassModel, params: Params, ready: Rows | Sequence[Any], runner: Runner) -> float:
    """How undecided the rows are between the classes, in nats, summed by weight; 0 where each is in one for sure."""
    return float(rows_here(ready, runner).total(Step(f"{__name__}:undecided", (model, params))))


def undecided(state: tuple[ClassModel, Params]) -> Callable[[Any], float]:
    """How undecided the rows of a prepared part are."""
    model, params = state
    return partial(_undecided, model, model.compile(params))


def _undecided(model: ClassModel, compiled: Any, ready: Any) -> float:
    return sum(_tile_entropy(model, compiled, ready, rows) for rows in ready.tiles())


def _tile_entropy(model: ClassModel, compiled: Any, ready: Any, rows: slice) -> float:
    undecided = entr(model.memberships(ready, compiled, rows)).sum(axis=1)
    if ready.labels is not None:
        undecided[ready.labels[rows] >= 0] = 0.0
    return float(undecided.sum() if ready.weights is None else undecided @ ready.weights[rows])


def bic(log_likelihood: float, n_parameters: int, rows: float) -> float:
    """Twice the misfit plus what the parameters cost: smaller is better."""
    return n_parameters * log(max(rows, 1.0)) - 2 * log_likelihood


def description_length(criterion: float) -> float:
    """Bits to write down the parameters, then the rows by their help: half of a BIC, in bits; smaller is better.

    Of numbers, bits count from the unit that they are in, so that only differences mean something.
    """
    return criterion / (2 * log(2.0))
