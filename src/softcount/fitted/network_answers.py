"""Answers of a network: distributions given some values, draws, explanations, anomalies and probability tables."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core.counts import ROOT
from softcount.core.lazy import xlogy
from softcount.core.special import log_of, log_ratio
from softcount.errors import DataError
from softcount.families.density import Density
from softcount.fitted.answers import (
    Answer,
    Conditioned,
    IntervalAnswer,
    Test,
    as_written,
    draw_within,
    levels_as_written,
)
from softcount.fitted.classes import Anomaly
from softcount.fitted.conditions import (
    Condition,
    Levels,
    condition_of,
    evidence_within,
    impossible,
    is_number,
    number_of,
    number_reader,
    within,
)
from softcount.fitted.derived_columns import add_derived
from softcount.fitted.explain import Explanation, runner_up
from softcount.models.block_stack import NumberPart
from softcount.models.network import Net, NetRows, levels_of
from softcount.models.nodes import Node
from softcount.models.stacks import Stack
from softcount.networks.queries import Evidence
from softcount.networks.sampling import Estimate, gibbs, weigh_samples
from softcount.pictures.inline_html import boxed, small_table
from softcount.table import Chunk, Table
from softcount.table.cell_forms import write_cell
from softcount.table.schema import Key, Kind, labels
from softcount.table.text_columns import Map

if TYPE_CHECKING:
    from softcount.fitted.network import FittedNet

EXACT = (str, bool, int, float)
"""Types of cells that match a category only if they are equal to it."""
SURE = (str, bool, int, float, np.generic)
"""Types of values that are a single category or number."""


class GivenValues(Struct, frozen=True):
    """Values given to a query: certain ones, log-likelihoods by discrete node, and conditions on numbers or bins."""

    sure: dict[Key, Any] = {}
    likelihoods: dict[int, np.ndarray] = {}
    conditions: dict[Key, Condition] = {}

    @classmethod
    def of(cls, net: Net, known: Mapping[Key, Any]) -> GivenValues:
        found, soft = cls(), dict[Key, Any]()
        for key, value in known.items():
            net.graph.place(key)  # raises an error for an unknown node
            several = not isinstance(value, SURE) and (isinstance(value, (Mapping, np.ndarray)) or condition_of(value))
            (soft if several else found.sure)[key] = value
        for key, value in soft.items():
            condition = condition_of(value)
            if key in net.discrete.number:
                found.likelihoods[net.discrete.number[key]] = log_of(_likelihood(net, net.nodes[key], value))[None]
            elif condition is None:
                raise DataError(f"{key!r} is a number: give one, or a range of them (low, high), not {value!r}.")
            if condition is not None:
                found.conditions[key] = condition
        return found


def _likelihood(net: Net, node: Node, value: Any) -> np.ndarray:
    levels = list(levels_of(node) or ())
    weights = np.zeros(len(levels))
    if isinstance(value, Mapping):
        for level, weight in value.items():
            if not is_number(weight) or not 0 <= float(weight) < np.inf:
                raise DataError(f"the likelihood of a level of {node.key!r} is a number of 0 or more, not {weight!r}.")
            weights[level_number(node, level)] = float(weight)
    else:
        condition = condition_of(value)
        assert condition is not None  # single values were handled before
        allowed = condition.allows(Levels(f"node {node.key!r}", levels, net.cuts.get(node.key)))
        weights[allowed] = 1.0
        within = _share_within(net, node.key, condition) if node.key in net.cuts else weights
        weights = within if (within * allowed).any() else weights
    if not weights.any():
        raise DataError(f"what is given of {node.key!r} leaves none of its levels possible.")
    return weights


def _share_within(net: Net, key: Key, condition: Condition) -> np.ndarray:
    """Return the share of each bin that a condition allows; 0 if it names bins or single numbers."""
    density, half = net.density_within(key), 0.5 if net.schema[key].whole else 0.0
    try:
        pieces = condition.pieces(number_of)
    except DataError:  # the condition names bins
        return np.zeros(len(density.shares))
    found = np.zeros(len(density.shares))
    for piece in pieces:
        low = piece.low - half if piece.low_in else piece.low + half
        high = piece.high + half if piece.high_in else piece.high - half
        found += density.share_between(low, max(low, high))
    return found


# Numeric nodes in queries.


class NumberNode(Struct, frozen=True):
    """A numeric node: its leaf by index, and its position `want` in the stack of that leaf.

    `scope` holds the discrete nodes that the leaf depends on.
    """

    fitted: FittedNet
    node: Node
    leaf: int
    want: int
    stack: Stack
    compiled: Any
    scope: tuple[int, ...]

    @property
    def density(self) -> Density:
        return self.node.density(self.fitted.estimates)

    def means(self, data: Any) -> np.ndarray:
        """Return (rows x configurations) expected values given the other numbers of the leaf; one row if all agree."""
        own = self.stack
        if isinstance(own, NumberPart):
            return own.conditional_means(self.compiled, data[0], self.want)
        return np.asarray(self.density.moments()[0][None])

    def fill(self, shares: np.ndarray, chunk: Chunk, rows: np.ndarray, column: Key) -> np.ndarray:
        """Impute one of its columns in some rows, given the (rows x configurations) `shares`."""
        own = self.stack
        cells = chunk.reals[np.ix_(rows, np.array([place.slot for place in own.places]))]
        if isinstance(own, NumberPart):
            return np.asarray((shares * own.conditional_means(self.compiled, cells, self.want)).sum(axis=1))
        return self.density.fill(shares, cells, self.node.columns.index(column))

    def spread(self, ready: NetRows) -> Density:
        """Return its density in every configuration, given the other numbers of one row."""
        own = self.stack
        if isinstance(own, NumberPart):
            return own.conditional(self.compiled, ready.data[self.leaf][0][0], self.want)
        return self.density

    def hidden_in(self, ready: NetRows) -> tuple[NetRows, int | None]:
        """Hide this node in the rows; the second value is the leaf to leave out if all of it is hidden, or None."""
        own = self.stack
        if not isinstance(own, NumberPart):
            return ready, self.leaf
        leaves = list(ready.data)
        leaves[self.leaf] = own.hiding(leaves[self.leaf], [self.want])
        return replace(ready, data=leaves), None

    def refuse_range_beside(self, known: Collection[Key]) -> None:
        """Raise if only a range of this node is given and another number of its leaf is known or queried."""
        key = self.node.key
        others = [node.key for node in self.stack.nodes if node.key in known and node.key != key]
        if others:
            raise DataError(
                f"only a range of {key!r} is given, and {others[0]!r} follows from it or it from that: together they "
                f"have no exact answer. Give a number in place of the range, or cut {key!r} into levels."
            )


# A network given some values.

Probabilities = dict[Any, float]


class LikeliestLevels(Struct, frozen=True):
    """The jointly most probable categories of all nodes.

    Attributes
    ----------
    levels : dict
        Category of each node.
    log_probability : float
        Logarithm of their joint probability.
    """

    levels: dict[Key, Any]
    log_probability: float

    def _repr_html_(self) -> str:
        said = f"of all nodes together; probability {np.exp(self.log_probability):.4g}"
        return boxed("The likeliest levels", said, [small_table(("node", "level"), list(self.levels.items()))])


class NetGiven(Conditioned, Struct, frozen=True):
    """A network given some values: one row that holds them, and their evidence on the discrete nodes.

    `chunk` is the row as a table holds it, None if all values are categories. `alone` is the log-probability of ranges
    of numbers that depend on no discrete node.
    """

    fitted: FittedNet
    known: Mapping[Key, Any]
    values: GivenValues
    ready: NetRows
    evidence: Evidence
    chunk: Chunk | None
    alone: float

    @classmethod
    def of(cls, fitted: FittedNet, known: Mapping[Key, Any]) -> NetGiven:
        net, chunk, alone = fitted.net, None, 0.0
        values = GivenValues.of(net, known)
        codes = fitted.exact_codes(values.sure)
        if codes is None:
            chunk, ready = fitted.read_row(values.sure)
            found = fitted.evidence(ready)
        else:
            ready = NetRows(
                model=net, codes=codes, data=fitted.unseen_leaves, labels=None, weights=np.ones(1), base=np.zeros(1),
                start=0, n_rows=1,
            )  # fmt: skip
            found = Evidence(codes)
        for node, logs in values.likelihoods.items():
            found = found.with_factor((node,), logs)
        for key in filter(fitted.is_number, values.conditions):
            number, pieces = fitted.number(key), values.conditions[key].pieces(number_reader(fitted, key))
            number.refuse_range_beside(known)
            logs = log_of(evidence_within(key, number.spread(ready), pieces))
            if number.scope:
                found = found.with_factor(number.scope, logs[None])
            else:
                alone += float(logs[0])
        return cls(fitted, known, values, ready, found, chunk, alone)

    @property
    def log_probability(self) -> float:
        fitted = self.fitted
        found = self.alone + float(fitted.questions.log_evidence(self.evidence)[0])
        if self.chunk is None:
            return found
        beside = fitted.net.split_factors(fitted.compiled, self.ready)[1] + fitted.net.log_densities_within(self.chunk)
        return found + float(beside[0])

    # -- queries

    @property
    def ranges(self) -> list[NumberNode]:
        """The numbers of which a range is given."""
        return [self.fitted.number(name) for name in self.values.conditions if self.fitted.is_number(name)]

    @property
    def columns(self) -> list[Key]:
        joined = {node.key for number in self.ranges for node in number.stack.nodes}
        return [name for name in self.fitted.net.graph.names if name not in self.known and name not in joined]

    def answer(self, of: Any) -> Any:
        """Answer for a node, or for a list of discrete nodes jointly."""
        fitted, several = self.fitted, self.fitted.several(of)
        asked = [of] if several is None else several
        for number in self.ranges:
            number.refuse_range_beside(asked)
        if several is None:
            return self._one(of)
        if any(fitted.is_number(name) for name in asked):
            raise DataError("a joint distribution needs categorical nodes. Query numbers one by one: each=True.")
        shares = fitted.questions.posterior([fitted.discrete(name) for name in asked], self.evidence)
        [shares] = require_possible(shares)
        names = [fitted.levels[name] for name in asked]
        return {
            tuple(own[i] for own, i in zip(names, place, strict=True)): float(share)
            for place, share in np.ndenumerate(shares)
        }

    def answers(self, asked: Iterable[Key]) -> dict[Key, Any]:
        """Answer for each node; those of all discrete nodes are computed together."""
        fitted, asked = self.fitted, list(asked)
        for number in self.ranges:
            number.refuse_range_beside(asked)
        leveled = [name for name in dict.fromkeys(asked) if not fitted.is_number(name)]
        shares = fitted.questions.each(list(map(fitted.discrete, leveled)), self.evidence) if leveled else []
        known = dict(zip(leveled, shares, strict=True))
        return {name: self._leveled(name, known[name]) if name in known else self._one(name) for name in asked}

    def _one(self, of: Key) -> Probabilities | Answer | IntervalAnswer:
        fitted = self.fitted
        if fitted.is_number(of):
            number = fitted.number(of)
            shares = fitted.shares_of(number, self.evidence)[0]
            return Answer(shares, number.spread(self.ready), fitted.schema[of].written)
        return self._leveled(of, fitted.questions.posterior([fitted.discrete(of)], self.evidence))

    def _leveled(self, of: Key, shares: np.ndarray) -> Probabilities | IntervalAnswer:
        """Return category -> probability, or an answer for a discretised number."""
        fitted, [shares] = self.fitted, require_possible(shares)
        if of in fitted.net.cuts:
            return IntervalAnswer(shares, fitted.net.density_within(of), fitted.schema[of].written)
        return dict(zip(levels_as_written(fitted.schema, of, fitted.levels[of]), map(float, shares), strict=True))

    def most_probable(self) -> LikeliestLevels:
        codes, logs = self.fitted.questions.most_probable(self.evidence)
        if logs[0] == -np.inf:
            raise impossible("network")
        names, levels = self.fitted.net.discrete.names, self.fitted.levels
        found = {name: levels[name][code] for name, code in zip(names, codes[0], strict=True)}
        return LikeliestLevels(found, float(logs[0]))

    # -- samples

    def draw(self, n: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the columns of n new rows by name, including hidden nodes."""
        fitted, net, values = self.fitted, self.fitted.net, self.values
        if fitted.questions.log_evidence(self.evidence)[0] == -np.inf:
            raise impossible("network")
        for number in self.ranges:
            if isinstance(number.stack, NumberPart):
                key = number.node.key
                raise DataError(
                    f"rows are drawn with {key!r} at a number, or not held at all, but not in a range of it: it is "
                    f"joined to other numbers. Give a number in place of the range, or cut {key!r} into levels."
                )
        tests: dict[Key, dict[Key, Test]] = {
            key: {key: partial(within, condition.pieces(number_reader(fitted, key)))}
            for key, condition in values.conditions.items()
            if key in net.cuts or fitted.is_number(key)
        }
        several = self.evidence.take(np.zeros(n, dtype=np.intp))
        codes = fitted.questions.draw(several, rng) if self.known else self._draw_codes(n, rng)
        found: dict[Key, Any] = {}
        for new, node in enumerate(net.with_levels):
            key, levels = node.key, list(levels_of(node) or ())
            if key in net.cuts:
                found |= draw_within(partial(self._draw_in_intervals, key, rng), codes[:, new], tests.get(key, {}))
            else:
                found[key] = [levels[code] for code in codes[:, new]]
        for place, (own, scope) in enumerate(zip(net.stacks, net.parents_of_leaves, strict=True)):
            sizes = [net.sizes[node] for node in scope]
            groups = np.ravel_multi_index(tuple(codes[:, scope].T), sizes) if scope else np.zeros(n, dtype=np.int64)
            if isinstance(own, NumberPart):
                found |= own.drawn(fitted.compiled[1][place], groups, self.ready.data[place][0][0], rng)
                continue
            found |= draw_within(partial(self._draw_numbers, own.node, rng), groups, tests.get(own.node.key, {}))
        held = {key: value for key, value in values.sure.items() if not fitted.is_named_interval(key, values.sure)}
        found |= {key: [value] * n for key, value in held.items()}
        whole = {name: found[name] for name in net.graph.names} | add_derived(fitted.schema, {}, n)
        return {name: as_written(fitted.schema, key, whole[key]) for key, name in labels(whole).items()}

    def _draw_codes(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the discrete nodes in topological order, each from its table. `SampledLanes` takes 1.6 times as long."""
        net, codes = self.fitted.net, np.empty((n, len(self.fitted.net.sizes)), dtype=np.int64)
        for node, parents in ((node, net.discrete.parents[node]) for node in net.discrete.order):
            edges = np.cumsum(self.fitted.compiled[0][node], axis=-1)[tuple(codes[:, parents].T) if parents else None]
            codes[:, node] = (rng.random(n)[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        return codes

    def _draw_in_intervals(self, key: Key, rng: np.random.Generator, intervals: np.ndarray) -> dict[Key, np.ndarray]:
        fitted = self.fitted
        return {key: fitted.net.density_within(key).draw(intervals, rng, fitted.schema[key].whole)}

    def _draw_numbers(self, leaf: Node, rng: np.random.Generator, groups: np.ndarray) -> dict[Key, np.ndarray]:
        values = np.asarray(leaf.density(self.fitted.estimates).draw_columns(groups, rng)[0])
        whole = self.fitted.schema[leaf.key].kind is Kind.COUNT
        return {leaf.key: values.astype(np.int64) if whole else values}


def require_possible(shares: np.ndarray) -> np.ndarray:
    if (shares.reshape(len(shares), -1).sum(axis=1) <= 0).any():
        raise impossible("network")
    return shares


# Answers for the rows of a table.


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
    several = fitted.several(of)
    asked = [of] if several is None else several
    if any(fitted.is_number(name) for name in asked):
        raise DataError("sampling answers for categorical nodes only. Query a number without `samples`.")
    nodes = [fitted.net.discrete.place(name) for name in asked]
    evidence = _by_node(fitted, fitted.condition(given).evidence)
    found = METHODS[method](fitted.net.discrete, fitted.compiled[0], nodes, evidence, samples, seed)
    known = [fitted.levels[name] for name in asked]
    if several is None:
        return SampledAnswer(list(known[0]), found)
    levels = [tuple(own[i] for own, i in zip(known, at, strict=True)) for at in np.ndindex(*map(len, known))]
    return SampledAnswer(levels, found)


def _by_node(fitted: FittedNet, evidence: Evidence) -> dict[int, np.ndarray]:
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
