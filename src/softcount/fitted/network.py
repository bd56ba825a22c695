"""A fitted Bayesian network: queries, scores and evidence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import call
from typing import Any, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import Counts, Twofold
from softcount.core.special import log_of
from softcount.errors import DataError
from softcount.families import FAMILIES, Categorical, Family, Setting
from softcount.families import Params as Own
from softcount.families.density import Density
from softcount.fitted.answers import (
    Answer,
    IntervalAnswer,
    absent_cells,
    as_written,
    drawn_within,
    join_fills,
    levels_as_written,
)
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
from softcount.fitted.fitted import FittedTable, register_fitted
from softcount.fitted.network_rows import anomaly_scores, explain_rows, level_number
from softcount.models.block_stack import NumberPart
from softcount.models.network import Net, NetRows, levels_of
from softcount.models.nodes import Imagined, Node
from softcount.models.stacks import Kernels, Stack
from softcount.networks.elimination import ROOM
from softcount.networks.network import Network
from softcount.networks.queries import Evidence, Questions
from softcount.pictures.inline_html import boxed, small_table
from softcount.run.local import Runner
from softcount.sources import wording
from softcount.table import Chunk, Table
from softcount.table.schema import NARROW_LEVELS, Field, Key, Kind, Schema, labels
from softcount.table.text_columns import Map

EXACT = (str, bool, int, float)
"""Types of cells that match a category only if they are equal to it."""
SURE = (str, bool, int, float, np.generic)


def mapping(given: Any) -> dict[Key, Any]:
    if given is not None and not isinstance(given, Mapping):
        got = type(given).__name__
        raise DataError(
            f"given is a mapping of nodes to values, such as {{'Rain': 'yes'}}, not an object of type {got}."
        )
    return {key: value for key, value in (given or {}).items() if value is not None}


def is_exact(value: Any) -> bool:
    """Return whether a given value is a single category or number."""
    return isinstance(value, SURE) or not (isinstance(value, (Mapping, np.ndarray)) or condition_of(value))


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
            (found.sure if is_exact(value) else soft)[key] = value
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

    def holes(self, chunk: Chunk) -> np.ndarray:
        """Mark (rows x its columns) missing cells that can be imputed; a missing text stays missing."""
        places = [self.fitted.schema.places[column] for column in self.node.columns]
        if any(place.store != "reals" for place in places):
            return np.zeros((chunk.n_rows, 0), dtype=bool)
        return np.asarray(np.isnan(chunk.reals[:, [place.slot for place in places]]))

    def fill(self, shares: np.ndarray, chunk: Chunk, rows: np.ndarray, column: int) -> np.ndarray:
        """Impute one of its columns in some rows, given the (rows x configurations) `shares`."""
        own = self.stack
        cells = chunk.reals[np.ix_(rows, np.array([place.slot for place in own.places]))]
        if isinstance(own, NumberPart):
            return np.asarray((shares * own.conditional_means(self.compiled, cells, self.want)).sum(axis=1))
        return self.density.fill(shares, cells, column)

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


# The fitted network that the estimators and the command line wrap.

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


@register_fitted("network")
class FittedNet(FittedTable, frozen=True, eq=False, dict=True):
    """A fitted network; `room` limits the number of cells in the junction trees of exact answers."""

    room: int = ROOM

    explain = explain_rows
    anomaly_scores = anomaly_scores

    @property
    def net(self) -> Net:
        return cast(Net, self.model)

    def suitable_estimator(self) -> tuple[str, dict[str, Any]]:
        hidden = {name: self.levels[name] for name in (self.net.discrete.names[place] for place in self.net.hidden)}
        cuts = {key: list(map(float, edges)) for key, edges in self.net.cuts.items()}
        own = {"edges": self.net.graph.edges, "hidden": hidden, "cut": cuts}
        return "BayesNet", {**own, "prior": self.prior, "estimate": self.estimate}

    # -- what was learned

    @property
    def params(self) -> dict[Key, Own]:
        return {x.key: x.family.public(self.estimates[x.key], x.setting) for x in self.net.each}

    @property
    def levels(self) -> dict[Key, list[object]]:
        found = {node.key: levels_of(node) for node in self.net.each}
        return {key: list(levels) for key, levels in found.items() if levels is not None}

    @property
    def families(self) -> dict[Key, Family]:
        return {x.key: x.family for x in self.net.each}

    @property
    def column_families(self) -> dict[Key, Family]:
        """The family of every column; numbers that are discretised or have parents are normal."""
        with_parents = [node.key for node in self.net.each if node.family.facts.number_parents]
        own = {node.key: node.family for node in self.net.each if node.columns}
        return own | dict.fromkeys([*self.net.cuts, *with_parents], FAMILIES["normal"]())

    @property
    def column_titles(self) -> dict[Key, str]:
        cut = {key: f"cut into {len(edges) + 1} intervals" for key, edges in self.net.cuts.items()}
        return {key: family.title for key, family in self.column_families.items()} | cut

    @property
    def names(self) -> list[Any]:
        """The categories of the class; empty without a class, or if it is a number."""
        return list(self.levels.get(self.target, ()))

    @property
    def shares(self) -> np.ndarray:
        """The probability of every category of the class."""
        if self.target is None:
            raise DataError("the network was learned without a class.")
        return np.array(list(self.query(self.target).values()))

    @cached_property
    def compiled(self) -> tuple[list[np.ndarray], list[Any]]:
        return self.net.compile(self.estimates)

    @cached_property
    def questions(self) -> Questions:
        """Exact inference on the discrete nodes; the trees built for a query are cached."""
        return Questions(self.net.discrete, self.net.sizes, self.compiled[0], self.room)

    # -- rows

    def rows(self, table: Table, run: Map = map) -> Iterator[tuple[NetRows, Evidence]]:
        """Yield the rows of a table by chunk, with their evidence on the discrete nodes; `run` replaces `map`."""
        for chunk in run(call, table.tasks()):
            ready = self.net.prepare(chunk)
            yield ready, self.evidence(ready)

    def evidence(self, ready: NetRows, but: int | None = None) -> Evidence:
        """Return the evidence of rows on the discrete nodes, including their numbers; leaf `but` is left out."""
        found = Evidence(ready.codes)
        factors = self.net.factors(self.compiled, ready)
        for place, (logs, scope) in enumerate(zip(factors, self.net.parents_of_leaves, strict=True)):
            if scope and place != but:
                found = found.with_factor(scope, logs)
        return found

    def score_rows(self, table: Table, runner: Runner | None = None, but: Key | None = None) -> np.ndarray:
        """Return each row's log-probability (density, if there are numbers), ignoring the discrete node `but`."""
        node, parts = None if but is None else self._discrete(but), []
        for chunk in (map if runner is None else runner.map)(call, table.tasks()):
            ready = self.net.prepare(chunk)
            shown = self.evidence(ready)
            evidence = shown if node is None else shown.hiding(node)
            logs = self.questions.log_evidence(evidence) + self.net.split_factors(self.compiled, ready)[1]
            parts.append(logs + self.net.log_densities_within(chunk))
        return np.concatenate(parts) if parts else np.zeros(0)

    def proba(self, table: Table, runner: Runner | None = None, of: Key | None = None) -> np.ndarray:
        """Return (rows x levels) probabilities of a discrete node, by default the class, given the rest of the row."""
        node, parts = self._discrete(self.target if of is None else of), []
        for ready, evidence in self.rows(table, map if runner is None else runner.map):
            found = self.questions.posterior([node], evidence.hiding(node))
            parts.append(_possible(found, ready.start + np.arange(len(found))))
        return np.concatenate(parts) if parts else np.zeros((0, self.net.sizes[node]))

    def means(self, table: Table, of: Key) -> np.ndarray:
        """Return the expected value of a number in each row, given the rest of the row."""
        if of in self.net.cuts:
            return np.asarray(self.proba(table, of=of) @ self.net.density_within(of).means)
        number, parts = self.number(of), []
        for ready, _ in self.rows(table):
            shares = self._shares(number, self.evidence(*number.hidden_in(ready)))
            parts.append((shares * number.means(ready.data[number.leaf])).sum(axis=1))
        return np.concatenate(parts) if parts else np.zeros(0)

    def _shares(self, number: NumberNode, evidence: Evidence) -> np.ndarray:
        """Return (rows x configurations) probabilities of the discrete nodes that the leaf of a number depends on."""
        return _require_possible(self.configuration_shares(number.scope, evidence))

    def configuration_shares(self, scope: Sequence[int], evidence: Evidence) -> np.ndarray:
        """Return (rows x configurations) probabilities of some discrete nodes; ones if there are none."""
        if not scope:
            return np.ones((evidence.rows, 1))
        return self.questions.posterior(scope, evidence).reshape(evidence.rows, -1)

    def count(self, table: Table) -> Counts:
        total: Counts | None = None
        for task in table.tasks():
            ready = self.net.prepare(task())
            part = self.net.nodes.unstacked(self.net.gathered(self.net.expect(self.compiled, ready)))
            total = part if total is None else total + part
        if total is None:
            raise DataError("the table has no rows.")
        return total

    # -- which node

    def _discrete(self, of: Key) -> int:
        if self.is_number(of):
            raise DataError(f"{of!r} is a number, which has no levels. Ask query or predict for its value.")
        return self.net.discrete.number[of]

    def number(self, of: Key) -> NumberNode:
        for leaf, own in enumerate(self.net.stacks):
            for want, node in enumerate(own.nodes):
                if node.key == of:
                    scope = self.net.parents_of_leaves[leaf]
                    return NumberNode(self, node, leaf, want, own, self.compiled[1][leaf], scope)
        raise DataError(f"{of!r} is not a number of this network.")

    def is_number(self, of: Key) -> bool:
        self.net.graph.place(of)  # raises an error for an unknown node
        return of not in self.net.discrete.number

    # -- queries

    def given(self, given: Any) -> Evidence:
        return self._shown(mapping(given))[1]

    def _shown(self, known: Mapping[Key, Any]) -> tuple[NetRows, Evidence, GivenValues]:
        """Return one row of the given values, and its evidence on the discrete nodes."""
        given = GivenValues.of(self.net, known)
        codes = self.exact_codes(given.sure)
        if codes is None:
            ready = self._read(given.sure)
            found = self.evidence(ready)
        else:
            ready = NetRows(
                model=self.net, codes=codes, data=self._unseen_leaves, labels=None, weights=np.ones(1),
                base=np.zeros(1), start=0, n_rows=1,
            )  # fmt: skip
            found = Evidence(codes)
        for node, logs in given.likelihoods.items():
            found = found.with_factor((node,), logs)
        for key in filter(self.is_number, given.conditions):
            number, pieces = self.number(key), given.conditions[key].pieces(number_reader(self, key))
            number.refuse_range_beside(known)
            logs = log_of(evidence_within(key, number.spread(ready), pieces))
            if number.scope:
                found = found.with_factor(number.scope, logs[None])
        return ready, found, given

    def exact_codes(self, sure: Mapping[Key, Any]) -> np.ndarray | None:
        """Return one row of codes if all given values are categories; None if they must be read as a table."""
        found = np.full((1, len(self.net.sizes)), -1)
        for key, value in sure.items():
            place = self._level_places.get((key, type(value), value)) if type(value) in EXACT else None
            if place is None:
                return None
            found[0, place[0]] = place[1]
        return found

    @cached_property
    def _level_places(self) -> dict[tuple[Key, type, Any], tuple[int, int]]:
        """(node, type, category) -> (index among the discrete nodes, index of the category).

        Discretised numbers are left out: their values lie anywhere in a bin.
        """
        return {
            (node.key, type(level), level): (new, code)
            for new, node in enumerate(self.net.with_levels)
            if node.key not in self.net.cuts
            for code, level in enumerate(levels_of(node) or ())
        }

    @cached_property
    def _unseen_leaves(self) -> list[Any]:
        """The prepared leaves of one row in which all numbers are missing."""
        return self._read({}).data if self.net.stacks else []

    def _read(self, sure: Mapping[Key, Any]) -> NetRows:
        """Read one row of certain values like a table."""
        columns = {
            spec.key: [sure.get(spec.key) if not self._is_named_interval(spec.key, sure) else None]
            for spec in self.schema.used
        }
        table = self.table(columns)
        chunk: Chunk = next(task() for task in table.tasks())
        given = {key: value for key, (value,) in columns.items() if value is not None}
        for key, value in given.items():
            if table.schema[key].kind.coded and table.unseen[key]:
                level_number(self.net.nodes[key], value)
            if key in table.outside:
                spec = table.schema[key]
                raise DataError(
                    f"node {key!r} is {spec.kind} ({spec.why}), so {wording.cell(value)} is not evidence about it."
                )
        ready = self.net.prepare(chunk)
        found = ready.codes.copy()
        for new, node in enumerate(self.net.with_levels):
            if node.key in sure and not node.columns and found[0, new] < 0:
                found[0, new] = level_number(node, sure[node.key])
        return replace(ready, codes=found)

    def _is_named_interval(self, key: Key, sure: Mapping[Key, Any]) -> bool:
        """Return whether a discretised number is given by the name of a bin."""
        return key in self.net.cuts and isinstance(sure.get(key), str)

    def query(self, of: Any = None, given: Any = None, each: bool = False) -> Any:
        """Return category -> probability, or an `Answer` for a number.

        Several nodes are answered jointly or, with `each`, one by one.
        """
        known = mapping(given)
        several = (
            of is None or isinstance(of, (list, set)) or (isinstance(of, tuple) and of not in self.net.graph.number)
        )
        asked = list(of or ()) if several else [of]
        for name in asked:
            self.net.graph.place(name)
            if name in known and not isinstance(known[name], Mapping):
                raise DataError(f"{name!r} is both `of` and given: leave it out of one.")
        ready, evidence, values = self._shown(known)
        ranges = [self.number(name) for name in values.conditions if self.is_number(name)]
        if of is None:  # all that has an exact answer under the given values
            joined = {node.key for number in ranges for node in number.stack.nodes}
            asked, each = [name for name in self.net.graph.names if name not in known and name not in joined], True
        for number in ranges:
            number.refuse_range_beside(asked)
        if not several:
            return self._one(of, ready, evidence)
        if each:
            return self._each(asked, ready, evidence)
        if any(self.is_number(name) for name in asked):
            raise DataError("a joint distribution needs categorical nodes. Query numbers one by one: each=True.")
        nodes = [self._discrete(name) for name in asked]
        [shares] = _require_possible(self.questions.posterior(nodes, evidence))
        names = [self.levels[name] for name in asked]
        return {
            tuple(own[i] for own, i in zip(names, place, strict=True)): float(share)
            for place, share in np.ndenumerate(shares)
        }

    def _each(self, asked: list[Key], ready: NetRows, evidence: Evidence) -> dict[Key, Any]:
        leveled = [name for name in dict.fromkeys(asked) if not self.is_number(name)]
        shares = self.questions.each([self._discrete(name) for name in leveled], evidence) if leveled else []
        known = dict(zip(leveled, shares, strict=True))
        return {x: self._leveled(x, known[x]) if x in known else self._one(x, ready, evidence) for x in asked}

    def _one(self, of: Key, ready: NetRows, evidence: Evidence) -> Probabilities | Answer | IntervalAnswer:
        if self.is_number(of):
            number = self.number(of)
            return Answer(self._shares(number, evidence)[0], number.spread(ready), self.schema[of].written)
        return self._leveled(of, self.questions.posterior([self._discrete(of)], evidence))

    def _leveled(self, of: Key, shares: np.ndarray) -> Probabilities | IntervalAnswer:
        """Return category -> probability, or an answer for a discretised number."""
        [shares] = _require_possible(shares)
        if of in self.net.cuts:
            return IntervalAnswer(shares, self.net.density_within(of), self.schema[of].written)
        return dict(zip(levels_as_written(self.schema, of, self.levels[of]), map(float, shares), strict=True))

    def log_probability(self, given: Any) -> float:
        return float(self.questions.log_evidence(self.given(given))[0])

    def most_probable(self, given: Any = None) -> LikeliestLevels:
        codes, logs = self.questions.most_probable(self.given(given))
        if logs[0] == -np.inf:
            raise impossible("network")
        names = self.net.discrete.names
        return LikeliestLevels(
            {name: self.levels[name][code] for name, code in zip(names, codes[0], strict=True)}, float(logs[0])
        )

    # -- sampling

    def sample(self, n: int, given: Any, rng: np.random.Generator) -> dict[str, Any]:
        """Draw the columns of n new rows by name, including hidden nodes; given values are kept."""
        known = mapping(given)
        ready, evidence, values = self._shown(known)
        if self.questions.log_evidence(evidence)[0] == -np.inf:
            raise impossible("network")
        tests = {
            key: {key: partial(within, condition.pieces(number_reader(self, key)))}
            for key, condition in values.conditions.items()
            if key in self.net.cuts or self.is_number(key)
        }
        for key in tests:
            if self.is_number(key) and isinstance(self.number(key).stack, NumberPart):
                raise DataError(
                    f"rows are drawn with {key!r} at a number, or not held at all, but not in a range of it: it is "
                    f"joined to other numbers. Give a number in place of the range, or cut {key!r} into levels."
                )
        several = evidence.take(np.zeros(n, dtype=np.intp))
        codes = self.questions.draw(several, rng) if known else self._drawn_codes(n, rng)
        found: dict[Key, Any] = {}
        for new, node in enumerate(self.net.with_levels):
            key, levels = node.key, list(levels_of(node) or ())
            if key in self.net.cuts:
                found |= drawn_within(partial(self._drawn_in_intervals, key, rng), codes[:, new], tests.get(key, {}))
            else:
                found[key] = [levels[code] for code in codes[:, new]]
        for place, (own, scope) in enumerate(zip(self.net.stacks, self.net.parents_of_leaves, strict=True)):
            sizes = [self.net.sizes[node] for node in scope]
            groups = np.ravel_multi_index(tuple(codes[:, scope].T), sizes) if scope else np.zeros(n, dtype=np.int64)
            if isinstance(own, NumberPart):
                found |= own.drawn(self.compiled[1][place], groups, ready.data[place][0][0], rng)
                continue
            draw = partial(self._drawn_numbers, own.node, rng)
            found |= drawn_within(draw, groups, tests.get(own.node.key, {}))
        held = {key: value for key, value in values.sure.items() if not self._is_named_interval(key, values.sure)}
        found |= {key: [value] * n for key, value in held.items()}
        constants = add_derived(self.schema, {}, n)
        whole = {name: found[name] for name in self.net.graph.names} | constants
        return {name: as_written(self.schema, key, whole[key]) for key, name in labels(whole).items()}

    def _drawn_codes(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw the discrete nodes in topological order, each from its table. `SampledLanes` takes 1.6 times as long."""
        codes = np.empty((n, len(self.net.sizes)), dtype=np.int64)
        for node, parents in ((node, self.net.discrete.parents[node]) for node in self.net.discrete.order):
            edges = np.cumsum(self.compiled[0][node], axis=-1)[tuple(codes[:, parents].T) if parents else None]
            codes[:, node] = (rng.random(n)[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
        return codes

    def _drawn_in_intervals(self, key: Key, rng: np.random.Generator, intervals: np.ndarray) -> dict[Key, np.ndarray]:
        return {key: self.net.density_within(key).draw(intervals, rng, self.schema[key].whole)}

    def _drawn_numbers(self, leaf: Node, rng: np.random.Generator, groups: np.ndarray) -> dict[Key, np.ndarray]:
        values = np.asarray(leaf.density(self.estimates).draw_columns(groups, rng)[0])
        return {leaf.key: values.astype(np.int64) if self.schema[leaf.key].kind is Kind.COUNT else values}

    # -- interventions

    def intervene(self, set_to: Mapping[Key, Any]) -> FittedNet:
        """Return the network after an intervention, in which these nodes have no parents."""
        own = {node.key: self.estimates[node.key] for node in self.net.each}
        for key, level in set_to.items():
            node = self.net.with_levels[self._discrete(key)]
            shares = np.zeros((1, len(levels_of(node) or ())))
            shares[0, level_number(node, level)] = 1.0
            own[key] = {"probability": shares, "unseen": np.zeros(1)}
        graph = self.net.graph
        parents = tuple(() if name in set_to else own for name, own in zip(graph.names, graph.parents, strict=True))
        net = replace(self.net, graph=replace(graph, parents=parents))
        nothing = {key: Twofold.of(np.zeros_like(own[key]["probability"])) for key in set_to}
        imagined = {key: {"alpha": own[key]["probability"]} for key in set_to}
        return replace(
            self, model=net, estimates=net.nodes.params(own), log_likelihood=None,
            counts=replace(self.counts, arrays={**self.counts.arrays, **nothing}),
            imagined=replace(self.imagined, hypers={**self.imagined.hypers, **imagined}),
        )  # fmt: skip

    # -- imputation

    def fills(self, table: Table) -> dict[Key, tuple[np.ndarray, np.ndarray]]:
        """Return for each column with missing values the rows (from 0) and the mean or the most probable category."""
        found: dict[Key, list[tuple[np.ndarray, np.ndarray]]] = {}
        for task in table.tasks():
            chunk = task()
            ready = self.net.prepare(chunk)
            evidence = self.evidence(ready)
            for new, node in enumerate(self.net.with_levels):
                if not (node.columns or node.key in self.net.cuts):
                    continue
                rows = np.flatnonzero((ready.codes[:, new] < 0) & absent_cells(self.schema, chunk, node.key))
                if len(rows):
                    shares = _possible(self.questions.posterior([new], evidence.take(rows)), rows + ready.start)
                    values = (
                        np.asarray(shares @ self.net.density_within(node.key).means)
                        if node.key in self.net.cuts
                        else np.asarray(np.array(list(levels_of(node) or ()), dtype=object)[shares.argmax(axis=1)])
                    )
                    found.setdefault(node.key, []).append((rows + ready.start, values))
            for key in self.net.levels_above:
                number = self.number(key)
                for place, column in enumerate(number.holes(chunk).T):
                    rows = np.flatnonzero(column)
                    if len(rows):
                        values = number.fill(self._shares(number, evidence.take(rows)), chunk, rows, place)
                        found.setdefault(number.node.columns[place], []).append((rows + ready.start, values))
        return join_fills(self.schema, table, found, {})


def re_estimate(
    fitted: FittedNet, net: Net, counts: Counts, priors: Mapping[Key, Any], known: Mapping[Key, Any]
) -> FittedNet:
    """Return the network with other counts and the parameters estimated from them and the prior counts."""
    imagined = Imagined(net.nodes.hypers(counts, priors, known), fitted.imagined.how)
    params = net.nodes.estimate(net.nodes.stacked(counts), imagined)
    return replace(
        fitted, model=net, counts=counts, imagined=imagined, estimates=params, log_likelihood=None,
    )  # fmt: skip


def _possible(shares: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the shares; raise if a row (counted from 0) has probability zero."""
    bad = shares.sum(axis=1) <= 0
    if bad.any():
        raise DataError(
            f"row {rows[bad][0] + 1} has probability zero under this network, so there is no answer. "
            f"Fit with a prior ({remedies.estimate_mean()}) so that nothing is impossible."
        )
    return shares


def _require_possible(shares: np.ndarray) -> np.ndarray:
    if (shares.reshape(len(shares), -1).sum(axis=1) <= 0).any():
        raise impossible("network")
    return shares


READ = "read from a network file"


def as_fitted(network: Network) -> FittedNet:
    """Return a network as if it had been fitted; its tables are prior counts of one row in every configuration."""
    fields, nodes = [], []
    for name, levels in zip(network.graph.names, network.levels, strict=True):
        wide = len(levels) > NARROW_LEVELS
        fields.append(Field(name, Kind.CATEGORICAL, READ, tuple(levels), wide=wide, declared=True))
        nodes.append(Node(name, (name,), Categorical(), Setting((name,), levels=tuple(levels))))
    net = Net(Schema(tuple(fields)), network.graph, tuple(nodes), Kernels(0))
    tables = {
        node.key: np.asarray(table).reshape(-1, len(levels))
        for node, table, levels in zip(nodes, network.tables, network.levels, strict=True)
    }
    own = {key: {"probability": table, "unseen": np.zeros(len(table))} for key, table in tables.items()}
    return FittedNet(
        model=net,  # type: ignore[arg-type]  # of no one class
        estimates=net.nodes.params(own),
        counts=Counts({key: Twofold.of(np.zeros_like(table)) for key, table in tables.items()}),
        imagined=Imagined({key: {"alpha": table} for key, table in tables.items()}, "mean"),
        notes=[f"{READ}: its tables are prior counts of one row in every configuration."],
        log_likelihood=0.0,
    )
