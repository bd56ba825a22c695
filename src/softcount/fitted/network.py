"""A fitted Bayesian network: queries, scores and evidence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from operator import call
from typing import Any, ClassVar, cast

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import Counts, Twofold
from softcount.errors import DataError
from softcount.families import FAMILIES, Categorical, Family, Setting
from softcount.families import Params as Own
from softcount.families.base import family_title
from softcount.fitted.answers import Expect
from softcount.fitted.fitted import FittedTable, register_fitted
from softcount.fitted.network_answers import (
    EXACT,
    NetGiven,
    NumberNode,
    anomaly_scores,
    explain_rows,
    level_number,
    require_possible,
)
from softcount.models.network import Net, NetRows, levels_of
from softcount.models.nodes import Imagined, Node
from softcount.models.stacks import Kernels
from softcount.networks.elimination import ROOM
from softcount.networks.network import Network
from softcount.networks.queries import Evidence, Questions
from softcount.run.local import Runner
from softcount.sources import wording
from softcount.table import Chunk, Table
from softcount.table.schema import NARROW_LEVELS, Field, Key, Kind, Schema
from softcount.table.text_columns import Map


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
        return {key: family_title(family) for key, family in self.column_families.items()} | cut

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
        node, parts = None if but is None else self.discrete(but), []
        for chunk in (map if runner is None else runner.map)(call, table.tasks()):
            ready = self.net.prepare(chunk)
            shown = self.evidence(ready)
            evidence = shown if node is None else shown.hiding(node)
            logs = self.questions.log_evidence(evidence) + self.net.split_factors(self.compiled, ready)[1]
            parts.append(logs + self.net.log_densities_within(chunk))
        return np.concatenate(parts) if parts else np.zeros(0)

    def proba(self, table: Table, runner: Runner | None = None, of: Key | None = None) -> np.ndarray:
        """Return (rows x levels) probabilities of a discrete node, by default the class, given the rest of the row."""
        node, parts = self.discrete(self.target if of is None else of), []
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
            shares = self.shares_of(number, self.evidence(*number.hidden_in(ready)))
            parts.append((shares * number.means(ready.data[number.leaf])).sum(axis=1))
        return np.concatenate(parts) if parts else np.zeros(0)

    def shares_of(self, number: NumberNode, evidence: Evidence) -> np.ndarray:
        """Return (rows x configurations) probabilities of the discrete nodes that the leaf of a number depends on."""
        return require_possible(self.configuration_shares(number.scope, evidence))

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

    def discrete(self, of: Key) -> int:
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

    # -- what is given

    given_form: ClassVar[str] = "nodes to values, such as {'Rain': 'yes'}"

    def read_given(self, given: Any) -> dict[Key, Any]:
        return {key: value for key, value in super().read_given(given).items() if value is not None}

    def condition(self, given: Any) -> NetGiven:
        return NetGiven.of(self, self.read_given(given))

    def several(self, of: Any) -> list[Key] | None:
        """Return the nodes of a joint query, or None if one node is asked for."""
        is_list = isinstance(of, (list, set)) or (isinstance(of, tuple) and of not in self.net.graph.number)
        return list(of) if is_list else None

    def asked(self, of: Any) -> list[Key]:
        found = self.several(of)
        names = super().asked(of) if found is None else found
        for name in names:
            self.net.graph.place(name)  # raises an error for an unknown node
        return names

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
    def unseen_leaves(self) -> list[Any]:
        """The prepared leaves of one row in which all numbers are missing."""
        return self.read_row({})[1].data if self.net.stacks else []

    def read_row(self, sure: Mapping[Key, Any]) -> tuple[Chunk, NetRows]:
        columns = {
            spec.key: [sure.get(spec.key) if not self.is_named_interval(spec.key, sure) else None]
            for spec in self.schema.used
        }
        table = self.table(columns)
        chunk = next(task() for task in table.tasks())
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
        return chunk, replace(ready, codes=found)

    def is_named_interval(self, key: Key, sure: Mapping[Key, Any]) -> bool:
        """Return whether a discretised number is given by the name of a bin."""
        return key in self.net.cuts and isinstance(sure.get(key), str)

    # -- interventions

    def intervene(self, set_to: Mapping[Key, Any]) -> FittedNet:
        """Return the network after an intervention, in which these nodes have no parents."""
        own = {node.key: self.estimates[node.key] for node in self.net.each}
        for key, level in set_to.items():
            node = self.net.with_levels[self.discrete(key)]
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

    @property
    def imputed_columns(self) -> list[Key]:
        places, leaves = self.schema.places, [self.net.nodes[key] for key in self.net.levels_above]
        numbers = [x for x in leaves if all(places[column].store == "reals" for column in x.columns)]
        discrete = [node.key for node in self.net.with_levels if node.columns or node.key in self.net.cuts]
        return [*discrete, *(column for node in numbers for column in node.columns)]

    def expected_cells(self, table: Table) -> Iterator[tuple[Chunk, Expect]]:
        number_of = {column: key for key in self.net.levels_above for column in self.net.nodes[key].columns}
        for task in table.tasks():
            chunk = task()
            evidence = self.evidence(self.net.prepare(chunk))

            def expect(
                column: Key, rows: np.ndarray, chunk: Chunk = chunk, evidence: Evidence = evidence
            ) -> tuple[np.ndarray, np.ndarray | None]:
                own = evidence.take(rows)
                if column in number_of:
                    number = self.number(number_of[column])
                    return number.fill(self.shares_of(number, own), chunk, rows, column), None
                shares = _possible(self.questions.posterior([self.discrete(column)], own), rows + chunk.start)
                if column in self.net.cuts:
                    return np.asarray(shares @ self.net.density_within(column).means), None
                return np.array(self.levels[column], dtype=object)[shares.argmax(axis=1)], None

            yield chunk, expect


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
