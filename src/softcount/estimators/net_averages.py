"""Several networks of the same rows as one: each weighs what the evidence for it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.estimators.bayes_net import BayesNet
from softcount.networks.edge_strength import evidence_weights
from softcount.table.schema import Key


class AveragedNets:
    """Networks with weights that add to one; answers are averages of theirs.

    >>> rows = {"Rain": ["yes", "no", "no", "yes"], "Wet": ["yes", "no", "no", "yes"]}
    >>> joined, apart = BayesNet([("Rain", "Wet")]).fit(rows), BayesNet({"Rain": [], "Wet": []}).fit(rows)
    >>> both = AveragedNets([joined, apart])
    >>> [round(share, 4) for share in both.weights_], round(both.edge_probabilities_["Rain", "Wet"], 4)
    ([0.7692, 0.2308], 0.7692)
    """

    def __init__(self, nets: Sequence[BayesNet]) -> None:
        if not nets:
            raise DataError("there is nothing to average: give one network at least.")
        rows = {round(float(net.counts_.rows), 6) for net in nets}
        if len(rows) > 1:
            raise DataError("networks that were learned from different rows cannot be weighed against each other.")
        self.nets_ = list(nets)
        self.weights_ = [float(share) for share in evidence_weights([net.log_evidence_ for net in nets])]

    @property
    def edge_probabilities_(self) -> dict[tuple[Key, Key], float]:
        """The weight of the networks that have each edge."""
        found: dict[tuple[Key, Key], float] = {}
        for net, share in zip(self.nets_, self.weights_, strict=True):
            for edge in net.edges_:
                found[edge] = found.get(edge, 0.0) + share
        return found

    def query(self, of: Key, given: Any = None) -> dict[Any, float]:
        """Level -> probability."""
        answers = [net.query(of, given) for net in self.nets_]
        if not all(isinstance(answer, dict) for answer in answers):
            raise DataError(f"{of!r} is a number; averages are of nodes with levels.")
        levels = answers[0].keys()
        return {
            level: float(sum(w * answer[level] for w, answer in zip(self.weights_, answers, strict=True)))
            for level in levels
        }

    def predict_proba(self, X: Any, of: Key | None = None) -> np.ndarray:
        """(rows x levels) probability of every level of a node given the rest of the row."""
        parts = [w * net.predict_proba(X, of) for w, net in zip(self.weights_, self.nets_, strict=True)]
        return np.asarray(np.sum(parts, axis=0))

    def predict(self, X: Any, of: Key | None = None) -> np.ndarray:
        """The likeliest level of a node in every row."""
        first = self.nets_[0]
        node = first._of(of)
        levels = first.classes_ if node == first.fitted_.target else np.array(first.levels_[node], dtype=object)
        return np.asarray(levels[self.predict_proba(X, of).argmax(axis=1)])

    def score_samples(self, X: Any) -> np.ndarray:
        """The log-probability of what every row shows."""
        with np.errstate(divide="ignore"):
            logs = [np.log(w) + net.score_samples(X) for w, net in zip(self.weights_, self.nets_, strict=True)]
        return np.asarray(np.logaddexp.reduce(logs, axis=0))


def average(models: Sequence[Any], by: str = "evidence") -> AveragedNets:
    """Several networks of the same rows as one, weighed by the evidence for each."""
    if by != "evidence":
        raise DataError(f"by={by!r} is not known. Models are averaged by 'evidence'.")
    if not all(isinstance(model, BayesNet) for model in models):
        raise DataError("average takes fitted BayesNets of the same rows.")
    return AveragedNets(list(models))
