"""Networks of levels and numbers written out in full: every configuration of all levels, and one normal in each.

Nothing here is shared with the code under test but the parameters, in the user's units, and the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from softcount.estimators.network import BayesNet

Edges = list[tuple[str, str]]
DISCRETE, NUMBERS = ["g", "h"], ["u", "v", "w", "z"]


@dataclass(frozen=True)
class PlainNet:
    """Parameters by node, levels of the discrete ones, and the parents of each in order."""

    params: dict[str, dict[str, np.ndarray]]
    levels: dict[str, list[Any]]
    parents: dict[str, list[str]]
    numbers: list[str]

    @classmethod
    def of(cls, net: Any) -> PlainNet:
        names = list(net.fitted_.net.graph.names)
        parents = {name: [p for p, c in net.edges_ if c == name] for name in names}
        order = [names[place] for place in net.fitted_.net.graph.order]
        return cls(net.params_, net.levels_, parents, [name for name in order if name not in net.levels_])

    @cached_property
    def configurations(self) -> list[dict[str, Any]]:
        return [dict(zip(self.levels, levels, strict=True)) for levels in product(*self.levels.values())]

    @cached_property
    def normals(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self.normal(config) for config in self.configurations]

    def group(self, node: str, config: dict[str, Any]) -> int:
        """The configuration of a node's own discrete parents, the last parent running fastest."""
        found = 0
        for parent in self.parents[node]:
            if parent in self.levels:
                found = found * len(self.levels[parent]) + self.levels[parent].index(config[parent])
        return found

    def log_prior(self, config: dict[str, Any]) -> float:
        total = 0.0
        for node, levels in self.levels.items():
            own = self.params[node]["probability"][self.group(node, config)]
            with np.errstate(divide="ignore"):
                total += float(np.log(own[levels.index(config[node])]))
        return total

    def normal(self, config: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all numbers, one number after another."""
        d = len(self.numbers)
        mean, covariance = np.zeros(d), np.zeros((d, d))
        for j, node in enumerate(self.numbers):
            own, g = self.params[node], self.group(node, config)
            above = [self.numbers.index(parent) for parent in self.parents[node] if parent in self.numbers]
            start = own["intercept"][g] if above else own["mean"][g]
            slopes = own["coefficients"][g] if above else np.zeros(0)
            mean[j] = start + slopes @ mean[above]
            covariance[j, :j] = covariance[:j, j] = slopes @ covariance[above][:, :j] if above else 0.0
            covariance[j, j] = own["variance"][g] + slopes @ covariance[np.ix_(above, above)] @ slopes
        return mean, covariance

    def joint(self, row: dict[str, Any]) -> np.ndarray:
        """For every configuration, the logarithm of its probability together with what the row shows."""
        seen = [j for j, node in enumerate(self.numbers) if shows(row, node)]
        cells = np.array([row[self.numbers[j]] for j in seen])
        found = []
        for config, (mean, covariance) in zip(self.configurations, self.normals, strict=True):
            fits = all(not shows(row, node) or row[node] == config[node] for node in self.levels)
            total = self.log_prior(config) if fits else -np.inf
            if seen and fits:
                total += multivariate_normal.logpdf(cells, mean[seen], covariance[np.ix_(seen, seen)])
            found.append(total)
        return np.array(found)

    def log_density(self, row: dict[str, Any]) -> float:
        return float(logsumexp(self.joint(row)))

    def posterior(self, of: str, row: dict[str, Any]) -> np.ndarray:
        """The probability of each level of a node."""
        joint = self.joint(row)
        shares = np.exp(joint - logsumexp(joint))
        own = [config[of] for config in self.configurations]
        return np.array([sum(s for s, x in zip(shares, own, strict=True) if x == level) for level in self.levels[of]])

    def mixture(self, of: str, row: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shares, means and variances of a number in every configuration, by Schur's complement."""
        joint = self.joint(row)
        want, means, variances = self.numbers.index(of), [], []
        seen = [j for j, node in enumerate(self.numbers) if shows(row, node) and node != of]
        cells = np.array([row[self.numbers[j]] for j in seen])
        for mean, covariance in self.normals:
            gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[seen, want])
            means.append(mean[want] + gain @ (cells - mean[seen]))
            variances.append(covariance[want, want] - gain @ covariance[seen, want])
        return np.exp(joint - logsumexp(joint)), np.array(means), np.array(variances)

    def mean(self, of: str, row: dict[str, Any]) -> float:
        shares, means, _ = self.mixture(of, row)
        return float(shares @ means)


def shows(row: dict[str, Any], node: str) -> bool:
    """Whether a row shows a node."""
    value = row.get(node)
    return value is not None and value == value


def rows_of_frame(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return frame.to_dict("records")


def random_edges(rng: np.random.Generator, discrete: list[str], numbers: list[str]) -> Edges:
    """Levels on levels, numbers on levels and numbers on numbers, from earlier to later; two numbers are joined."""
    numbers = [str(name) for name in rng.permutation(numbers)]
    found = [(numbers[0], numbers[1])]
    for later, name in enumerate([*discrete, *numbers]):
        for above in [*discrete, *numbers][:later]:
            if rng.random() < 0.45 and (above, name) not in found:
                found.append((above, name))
    return [found[i] for i in rng.permutation(len(found))]


def random_table(rng: np.random.Generator, edges: Edges, discrete: list[str], numbers: list[str], rows: int) -> Any:
    """Rows that follow the edges: levels by chance, numbers along lines that differ between configurations."""
    columns: dict[str, np.ndarray] = {}
    waiting = [*discrete, *numbers]
    while waiting:
        name = next(x for x in waiting if all(p in columns for p, c in edges if c == x))
        waiting.remove(name)
        above = [p for p, c in edges if c == name]
        if name in discrete:
            codes = sum((np.array([ord(x) - 97 for x in columns[p]]) for p in above), rng.integers(3, size=rows))
            columns[name] = np.array(list("ab"))[np.asarray(codes + (rng.random(rows) < 0.2)) % 2]
        else:
            value = rng.normal(rng.normal(), 0.5, rows)
            for parent in above:
                if parent in discrete:
                    value = value + np.where(columns[parent] == "a", rng.normal(), rng.normal())
                else:
                    value = value + rng.normal() * columns[parent]
            columns[name] = value
    return pd.DataFrame(columns)


def holed(rng: np.random.Generator, frame: pd.DataFrame, share: float) -> pd.DataFrame:
    """Cells lost at random; a few rows keep everything."""
    lost = rng.random(frame.shape) < share
    lost[:5] = False
    return frame.mask(lost)


def drawn(seed: int, rows: int = 80) -> tuple[np.random.Generator, Any, pd.DataFrame]:
    rng = np.random.default_rng([11, seed])
    edges = random_edges(rng, DISCRETE, NUMBERS)
    return rng, edges, random_table(rng, edges, DISCRETE, NUMBERS, rows)


@cache
def drawn_and_fitted(seed: int, rows: int = 80, holes: float = 0.0, **settings: Any) -> tuple[BayesNet, pd.DataFrame]:
    """A random network of levels and numbers, and new rows with holes."""
    rng, edges, table = drawn(seed, rows)
    net = BayesNet(edges, random_state=seed, **settings).fit(holed(rng, table, holes))
    names = net.nodes
    return net, holed(rng, table[names].iloc[:20], 0.35)
