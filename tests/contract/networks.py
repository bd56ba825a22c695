"""The networks of the contract: levels, numbers, cut numbers, a class, holes, hidden nodes, and a table for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest

import softcount as sc

STEPS = 5
"""EM steps where rows have holes: enough to tell a difference, few enough to stay near the start."""


@dataclass(frozen=True)
class Net:
    """Edges and settings; the share of cells that are lost; the column of the class."""

    edges: Any
    settings: dict[str, Any] = field(default_factory=dict)
    lost: float = 0.0
    target: str | None = None

    @property
    def complete(self) -> bool:
        return not self.lost and "hidden" not in self.settings

    def fit(self, table: pd.DataFrame, weights: Any = None, **own: Any) -> Any:
        return self.new(**own).fit(table, self.target, weights)

    def new(self, **own: Any) -> Any:
        usual = {"kinds": {"k": "poisson"}, "max_iter": STEPS, "tol": 0.0, "n_init": 2, "random_state": 0, "n_jobs": 1}
        return sc.BayesNet(self.edges, **{**usual, **self.settings, **own})

    def table(self, seed: int, rows: int = 80) -> pd.DataFrame:
        return drawn(seed, rows, self.lost)


LEVELS = [("a", "b"), ("a", "c"), ("b", "c")]
NUMBERS = [("a", "b"), ("b", "x"), ("a", "k"), ("b", "k")]
CUT = [("z", "a"), ("z", "b"), ("a", "x")]
TARGET = [("c", "a"), ("c", "b"), ("a", "b"), ("c", "x")]
HIDDEN = [("h", "a"), ("h", "b"), ("h", "x"), ("c", "h")]
EDGES_OF_Z = [-0.5, 0.25, 1.0]

NETWORKS = {
    "levels": Net(LEVELS),
    "numbers": Net(NUMBERS),
    "cut numbers": Net(CUT, {"cut": {"z": EDGES_OF_Z}}),
    "a class": Net(TARGET, target="c"),
    "a naive class": Net("naive", {"cut": {"x": EDGES_OF_Z, "z": EDGES_OF_Z}}, target="c"),
    "maximum likelihood": Net(LEVELS, {"estimate": "ml"}),
    "bdeu": Net(LEVELS, {"prior": "bdeu", "equivalent_sample_size": 5.0}),
    "holes": Net(LEVELS, lost=0.2),
    "numbers and holes": Net(NUMBERS, lost=0.2),
    "cut numbers and holes": Net(CUT, {"cut": {"z": EDGES_OF_Z}}, lost=0.2),
    "a class and holes": Net(TARGET, lost=0.2, target="c"),
    "hidden": Net(HIDDEN, {"hidden": {"h": 2}}),
    "hidden and holes": Net(HIDDEN, {"hidden": {"h": ["one", "two", "three"]}}, lost=0.2),
}
every_network = pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)
every_complete_network = pytest.mark.parametrize(
    "net",
    [net for net in NETWORKS.values() if net.complete],
    ids=[name for name, net in NETWORKS.items() if net.complete],
)


def drawn(seed: int, rows: int, lost: float = 0.0) -> pd.DataFrame:
    """Columns that depend on each other: a, b, c with levels, x and z numbers, k counts; every level occurs."""
    rng = np.random.default_rng(seed)
    c = np.resize(np.arange(3), rows)
    a = (c + (rng.random(rows) < 0.3)) % 2
    b = (a + c + (rng.random(rows) < 0.2)) % 3
    table = pd.DataFrame(
        {
            "a": np.array(["no", "yes"])[a],
            "b": np.array(["low", "mid", "top"])[b],
            "c": np.array(["u", "v", "w"])[c],
            "x": rng.normal(2.0 * a - b, 1.0).round(3),
            "k": rng.poisson(1.0 + 2 * a + b),
            "z": rng.normal(a.astype(float), 1.0).round(3),
        }
    )
    holes = pd.DataFrame(rng.random(table.shape) < lost, columns=table.columns)
    holes.iloc[:9] = False
    return table.astype({"k": float}).mask(holes)


# -- what two networks may have in common


def same_bits(one: Any, other: Any) -> None:
    """The same counts, parameters and height, bit for bit."""
    assert one.edges_ == other.edges_ and one.levels_ == other.levels_
    left, right = one.fitted_, other.fitted_
    for key in left.net.graph.names:
        assert np.array_equal(left.counts.arrays[key].hi, right.counts.arrays[key].hi), key
        assert np.array_equal(left.counts.arrays[key].lo, right.counts.arrays[key].lo), key
        for name, value in left.params[key].items():
            assert np.array_equal(value, right.params[key][name]), (key, name)
    assert left.trace == right.trace and left.log_likelihood == right.log_likelihood


def close(one: Any, other: Any, tolerance: float = 1e-11, but: str = "") -> None:
    """The same edges, levels and parameters, `but` for one of them, up to rounding."""
    assert set(one.edges_) == set(other.edges_) and one.levels_ == other.levels_
    for key, params in one.params_.items():
        for name, value in ((name, value) for name, value in params.items() if name != but):
            np.testing.assert_allclose(
                value, other.params_[key][name], rtol=tolerance, atol=tolerance, err_msg=str(key)
            )


def close_counts(one: Any, other: Any, times: float = 1.0) -> None:
    """The same counts of levels up to rounding; those of numbers are in units of the table that was met first."""
    for key in one.levels_:
        largest = np.abs(other.counts_[key]).max()
        np.testing.assert_allclose(times * one.counts_[key], other.counts_[key], rtol=1e-11, atol=1e-11 * largest)
