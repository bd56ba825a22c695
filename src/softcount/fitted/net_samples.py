"""Answers of a network by sampling, where exact ones cost too much: each with its error."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.fitted.fitted_net import FittedNet
from softcount.networks.row_evidence import Evidence
from softcount.networks.sampling import Estimate, gibbs, weigh_samples

METHODS = {"weighting": weigh_samples, "gibbs": gibbs}


class SampledAnswer(dict[Any, float]):
    """Level -> probability, by sampling; `errors` are standard errors, `effective` is the samples that it is worth."""

    def __init__(self, levels: list[Any], found: Estimate) -> None:
        super().__init__(zip(levels, map(float, found.probabilities.ravel()), strict=True))
        self.errors = dict(zip(levels, map(float, found.errors.ravel()), strict=True))
        self.effective = found.effective


def sampled_query(
    fitted: FittedNet, of: Any, given: Any, samples: int, method: str = "weighting", seed: int = 0
) -> SampledAnswer:
    """As `query` answers of nodes with levels, from so many samples."""
    if method not in METHODS:
        raise DataError(f"method={method!r} is not known. Use one of {', '.join(map(repr, METHODS))}.")
    several = isinstance(of, (list, set)) or (isinstance(of, tuple) and of not in fitted.net.graph.number)
    asked = list(of) if several else [of]
    if any(fitted.is_number(name) for name in asked):
        raise DataError("sampling answers for nodes with levels. Ask for a number exactly.")
    nodes = [fitted.net.places.index(fitted.net.graph.place(name)) for name in asked]
    evidence = _by_node(fitted, fitted.given(given))
    found = METHODS[method](fitted.net.discrete, fitted.compiled[0], nodes, evidence, samples, seed)
    known = [fitted.levels[name] for name in asked]
    if not several:
        return SampledAnswer(list(known[0]), found)
    levels = [tuple(own[i] for own, i in zip(known, at, strict=True)) for at in np.ndindex(*map(len, known))]
    return SampledAnswer(levels, found)


def _by_node(fitted: FittedNet, evidence: Evidence) -> dict[int, np.ndarray]:
    """How likely each level of every node makes what is given."""
    found: dict[int, np.ndarray] = {}
    for node, size in enumerate(fitted.net.sizes):
        if evidence.codes[0, node] >= 0:
            found[node] = (np.arange(size) == evidence.codes[0, node]).astype(float)
    for node, likelihood in evidence.likelihoods.items():
        found[node] = found.get(node, 1.0) * likelihood[0]
    for scope, logs in evidence.factors.items():
        if len(scope) > 1:
            names = ", ".join(str(fitted.net.discrete.names[node]) for node in scope)
            raise DataError(f"a number that depends on {names} together is given, which sampling does not take.")
        found[scope[0]] = found.get(scope[0], 1.0) * np.exp(logs[0] - logs[0].max())
    return found
