"""Row-wise answers of a network: explanations, sampling, anomalies and conditional probability tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from softcount.core.counts import ROOT
from softcount.core.lazy import xlogy
from softcount.core.special import log_ratio
from softcount.errors import DataError
from softcount.fitted.classes import Anomaly
from softcount.fitted.conditions import Levels, impossible
from softcount.fitted.explain import Explanation, runner_up
from softcount.models.block_stack import NumberPart
from softcount.models.network import NetRows, levels_of
from softcount.models.nodes import Node
from softcount.networks.queries import Evidence
from softcount.networks.sampling import Estimate, gibbs, weigh_samples
from softcount.table import Table
from softcount.table.cell_forms import write_cell
from softcount.table.schema import Key
from softcount.table.text_columns import Map

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet


def step_by_step(
    fitted: FittedNet, ready: NetRows, but: Key | None = None
) -> Iterator[tuple[Key, Evidence, np.ndarray]]:
    """Yield the evidence of the first node, the first two nodes and so on, parents before children.

    The node `but` is left out. Each item also holds the log-density of the numbers so far that depend on no discrete
    node.
    """
    net, number = fitted.net, fitted.net.discrete.number
    factors, shown = net.factors(fitted.compiled, ready), dict[int, np.ndarray]()
    codes, before = np.full_like(ready.codes, -1), set[Key]()
    for place in net.graph.order:
        key = net.each[place].key
        if key == but:
            continue
        before.add(key)
        if key in number:
            codes = codes.copy()
            codes[:, number[key]] = ready.codes[:, number[key]]
        else:
            leaf = fitted.number(key).leaf
            shown[leaf], own = factors[leaf], net.stacks[leaf]
            hidden = [place for place, node in enumerate(own.nodes) if node.key not in before]
            if hidden and isinstance(own, NumberPart):
                shown[leaf] = np.zeros_like(factors[leaf])
                own.score(own.hiding(ready.data[leaf], hidden), fitted.compiled[1][leaf], shown[leaf])
        found, alone = Evidence(codes), np.zeros(ready.n_rows)
        for leaf, logs in shown.items():
            scope = net.parents_of_leaves[leaf]
            found, alone = (found.with_factor(scope, logs), alone) if scope else (found, alone + logs[:, 0])
        yield key, found, alone


def explain_rows(
    fitted: FittedNet, table: Table, against: Any = None, run: Map = map, of: Key | None = None
) -> Explanation:
    """Explain the most probable category of a node by contributions of the prior shares and every other node.

    The node is the class by default. The contributions add up to the log-odds. Categories are given by their numbers.
    """
    of = fitted.target if of is None else of
    if fitted.is_number(of):
        raise DataError(f"{of!r} is a number, which has no levels to be explained.")
    others = [name for name in fitted.net.graph.names if name != of]
    pieces = [_explained(fitted, ready, of, against) for ready, _ in fitted.rows(table, run)]
    return Explanation.concatenate(pieces, [ROOT, *others])


def _explained(fitted: FittedNet, ready: NetRows, of: Key, against: Any) -> Explanation:
    node, before = fitted.net.discrete.place(of), Evidence(np.full_like(ready.codes, -1))
    shares: dict[Hashable, np.ndarray] = {ROOT: fitted.questions.posterior([node], before)}
    for key, evidence, _ in step_by_step(fitted, ready, but=of):
        shares[key] = fitted.questions.posterior([node], evidence)
    last = next(reversed(shares.values()))
    if (last.sum(axis=1) <= 0).any():
        raise impossible("network")
    chosen = last.argmax(axis=1)
    other = runner_up(last, chosen)
    if against is not None:
        other = np.full(len(chosen), level_number(fitted.net.nodes[of], against))
    rows, found, total = np.arange(len(chosen)), {}, np.zeros(len(chosen))
    for key, own in shares.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(own[rows, chosen]) - np.log(own[rows, other])
        found[key], total = log_ratio(odds, total), odds
    return Explanation(found, chosen, other, last[rows, chosen])


def level_number(node: Node, level: Any) -> int:
    return Levels(f"node {node.key!r}", list(levels_of(node) or ())).place(level)


def anomaly_scores(fitted: FittedNet, table: Table, runner: Any = None) -> np.ndarray:
    """Return how much less likely each row is than usual for the nodes that it shows, in nats."""
    return np.asarray(sum(surprises(fitted, table).values()))


def surprises(fitted: FittedNet, table: Table) -> dict[Key, np.ndarray]:
    """Return each node's contribution to how much less likely a row is than usual, in nats; 0 for a missing cell."""
    usual = usual_surprise(fitted)
    pieces = [_surprises(fitted, ready, usual) for ready, _ in fitted.rows(table)]
    return {key: np.concatenate([piece[key] for piece in pieces]) for key in (pieces[0] if pieces else ())}


def _surprises(fitted: FittedNet, ready: NetRows, usual: dict[Key, float]) -> dict[Key, np.ndarray]:
    number, found, before = fitted.net.discrete.number, {}, np.zeros(ready.n_rows)
    for key, evidence, alone in step_by_step(fitted, ready):
        logs = fitted.questions.log_evidence(evidence) + alone
        own, before = log_ratio(before, logs), logs
        if key in number:
            seen = ready.codes[:, number[key]] >= 0
        else:
            at = fitted.number(key)
            own = own - at.stack.base(ready.data[at.leaf])
            seen = at.stack.there(ready.data[at.leaf], at.want)
        found[key] = np.where(seen, own - usual[key], 0.0)
    return found


def usual_surprise(fitted: FittedNet) -> dict[Key, float]:
    """Return the conditional entropy of each node given its parents, in nats."""
    net, found = fitted.net, {}
    nothing = Evidence(np.full((1, len(net.sizes)), -1))
    for node, family in zip(net.with_levels, net.discrete.families, strict=True):
        joint = fitted.questions.posterior(family, nothing)[0]
        parents = joint.sum(axis=-1, keepdims=True)
        share = joint / np.where(parents > 0, parents, 1.0)
        found[node.key] = float(-xlogy(joint, share).sum())
    for key, scope in net.levels_above.items():
        [shares] = fitted.configuration_shares(scope, nothing)
        node = net.nodes[key]
        found[key] = float(shares @ np.asarray(node.density(fitted.estimates).entropy()))
    return found


# Answers by sampling with standard errors, for networks in which exact answers cost too much.

METHODS = {"weighting": weigh_samples, "gibbs": gibbs}


class SampledAnswer(dict[Any, float]):
    """Probabilities by category, estimated from samples.

    Attributes
    ----------
    errors : dict
        Standard error of each probability.
    effective : float
        Effective number of independent samples.
    """

    def __init__(self, levels: list[Any], found: Estimate) -> None:
        super().__init__(zip(levels, map(float, found.probabilities.ravel()), strict=True))
        self.errors = dict(zip(levels, map(float, found.errors.ravel()), strict=True))
        self.effective = found.effective


def sampled_query(
    fitted: FittedNet, of: Any, given: Any, samples: int, method: str = "weighting", seed: int = 0
) -> SampledAnswer:
    """Estimate the answer of `FittedNet.query` for discrete nodes from samples."""
    if method not in METHODS:
        raise DataError(f"method={method!r} is not known. Use one of {', '.join(map(repr, METHODS))}.")
    several = isinstance(of, (list, set)) or (isinstance(of, tuple) and of not in fitted.net.graph.number)
    asked = list(of) if several else [of]
    if any(fitted.is_number(name) for name in asked):
        raise DataError("sampling answers for categorical nodes only. Query a number without `samples`.")
    nodes = [fitted.net.discrete.place(name) for name in asked]
    evidence = _by_node(fitted, fitted.given(given))
    found = METHODS[method](fitted.net.discrete, fitted.compiled[0], nodes, evidence, samples, seed)
    known = [fitted.levels[name] for name in asked]
    if not several:
        return SampledAnswer(list(known[0]), found)
    levels = [tuple(own[i] for own, i in zip(known, at, strict=True)) for at in np.ndindex(*map(len, known))]
    return SampledAnswer(levels, found)


def _by_node(fitted: FittedNet, evidence: Evidence) -> dict[int, np.ndarray]:
    """Return the likelihood of each category for every node with evidence."""
    found: dict[int, np.ndarray] = {}
    for node, size in enumerate(fitted.net.sizes):
        if evidence.codes[0, node] >= 0:
            found[node] = (np.arange(size) == evidence.codes[0, node]).astype(float)
    for scope, logs in evidence.factors.items():
        if len(scope) > 1:
            names = ", ".join(str(fitted.net.discrete.names[node]) for node in scope)
            raise DataError(f"a number that depends on {names} together is given, which sampling does not take.")
        found[scope[0]] = found.get(scope[0], 1.0) * np.exp(logs[0] - logs[0].max())
    return found


# Anomalies: the rows that fit a network worst, with the contributions of the nodes.


def find_anomalies(fitted: FittedNet, table: Table, most: int) -> list[Anomaly]:
    """Return the rows that fit worst, worst first, with the contribution of each node."""
    found = surprises(fitted, table)
    if not found:
        return []
    parts = np.stack(list(found.values()), axis=1)
    score = parts.sum(axis=1)
    worst = np.argsort(-score, kind="stable")[:most]
    cells, keys, anomalies = cells_of_rows(fitted, table, worst), list(found), []
    for row in worst:
        reasons = {keys[place]: float(parts[row, place]) for place in np.argsort(-parts[row], kind="stable")}
        anomalies.append(Anomaly(int(row), float(score[row]), float("nan"), 0, 1.0, reasons, cells[row]))
    return anomalies


def cells_of_rows(fitted: FittedNet, table: Table, rows: np.ndarray) -> dict[int, dict[Key, Any]]:
    """Return the observed values of every node in some rows, which are counted from 0."""
    net, found = fitted.net, dict[int, dict[Key, Any]]()
    for task in table.tasks():
        chunk = task()
        own = rows[(rows >= chunk.start) & (rows < chunk.start + chunk.n_rows)]
        for row in (own - chunk.start).tolist():
            cells = found.setdefault(chunk.start + row, {})
            codes = net.codes(chunk.take(np.array([row])))[0]
            for code, node in zip(codes, net.with_levels, strict=True):
                if code >= 0:
                    cells[node.key] = list(levels_of(node) or ())[code]
            for key in (*net.cuts, *net.levels_above):
                where = net.schema.places.get(key)
                if where is not None and where.store == "reals" and not np.isnan(chunk.reals[row, where.slot]):
                    cells[key] = write_cell(net.schema[key].written, float(chunk.reals[row, where.slot]))
    return found


# The conditional probability table of a node: one row of probabilities per configuration of its parents.


class NodeTable(Struct, frozen=True, eq=False):
    """Conditional probability table of a node.

    `np.asarray` returns it with an axis for each parent, and the categories of the node last.

    Attributes
    ----------
    name : object
        The node.
    parents : dict
        Categories of each parent.
    levels : list
        Categories of the node.
    values : ndarray
        Probabilities.

    Examples
    --------
    >>> wet = NodeTable("Wet", {"Rain": ["no", "yes"]}, ["dry", "wet"], np.array([[0.9, 0.1], [0.2, 0.8]]))
    >>> print(wet)
    Rain    dry    wet
    no   0.9000 0.1000
    yes  0.2000 0.8000
    >>> wet["wet", "yes"], wet.given(Rain="no")
    (0.8, {'dry': 0.9, 'wet': 0.1})
    """

    name: Any
    parents: Mapping[Any, list[Any]]
    levels: list[Any]
    values: np.ndarray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def __getitem__(self, levels: Any) -> float:
        """Return the probability of a category; the categories of the parents follow it in order."""
        own, *others = levels if isinstance(levels, tuple) and levels not in self.levels else (levels,)
        axes = [*self.parents.items(), (self.name, self.levels)]
        pairs = zip(axes, [*others, own], strict=True)
        return float(self.values[tuple(Levels(f"node {name!r}", known).place(level) for (name, known), level in pairs)])

    def given(self, **parents: Any) -> dict[Any, float]:
        """Return category -> probability for one category of each parent."""
        at = [Levels(f"node {name!r}", known).place(parents[str(name)]) for name, known in self.parents.items()]
        return dict(zip(self.levels, map(float, self.values[tuple(at)]), strict=True))

    def rows(self) -> list[tuple[tuple[Any, ...], list[float]]]:
        """Return every configuration of the parents with its probabilities."""
        flat = self.values.reshape(-1, len(self.levels))
        return list(zip(product(*self.parents.values()), flat.tolist(), strict=True))

    def __str__(self) -> str:
        shown = [[*map(str, names), *(f"{share:.4f}" for share in shares)] for names, shares in self.rows()]
        head = [*map(str, self.parents), *map(str, self.levels)]
        widths = [max(len(line[column]) for line in [head, *shown]) for column in range(len(head))]
        words = len(self.parents)
        lines = [
            " ".join(
                cell.ljust(w) if j < words else cell.rjust(w)
                for j, (cell, w) in enumerate(zip(line, widths, strict=True))
            )
            for line in [head, *shown]
        ]
        return "\n".join(line.rstrip() for line in lines)
