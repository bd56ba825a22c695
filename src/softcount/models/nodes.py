"""Nodes: counts to parameters for any set of nodes, each with its own number of groups. No rows are used here.

A node is a column or a block of columns with its family; the class of a naive Bayes structure is one too. Similar nodes
are put side by side in bundles. Statistics and parameters stay bundled through estimate, prior and bound, and are
separated only for the user and the file.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from softcount.core.counts import ROOT, Counts, Twofold, stack
from softcount.errors import DataError
from softcount.families import Family, How, Hyper, Setting
from softcount.families import Params as Own
from softcount.families.density import Density
from softcount.families.learning import count_free
from softcount.priors import Dirichlet, Expert
from softcount.priors.distribution import Distribution
from softcount.table.schema import Key

Name = Hashable
"""Name of a bundle: the key of its first node."""
PLAIN = Setting()
"""The setting of numbers that are counted as they are."""


class Node(Struct, frozen=True):
    """A column, or a block of columns, with its family: independent of all others given its group."""

    key: Key
    columns: tuple[Key, ...]
    family: Family
    setting: Setting

    def density(self, params: Params) -> Density:
        """Return what these parameters of all nodes say about its values."""
        return self.family.density(params[self.key], self.setting)

    def levels_of(self, want: int | None = None) -> Sequence[object] | None:
        """Return the categories of one of its columns, or of all together; None for numbers and words."""
        if not self.family.facts.kind.coded:
            return None
        joint = want is not None and self.family.facts.block
        return self.setting.levels_of_column(want or 0) if joint else self.setting.levels

    def describe_hidden(self, missing: bool) -> str:
        """Return what one pass over labelled rows cannot count, or an empty string; `missing` if cells are missing."""
        facts = self.family.facts
        if facts.hidden:
            return f"column {self.key!r} is {self.family.name}, whose rows {facts.hidden}"
        return f"holes in the block {self.key}" if missing and not facts.exact else ""

    def with_groups(self, groups: int) -> Node:
        same = self.setting.groups == groups
        return self if same else replace(self, setting=replace(self.setting, groups=groups))


class Bundle(Struct, frozen=True, eq=False):
    """Nodes of one family and size. Arrays have an axis for them after that of the groups, unless a node is `alone`."""

    nodes: tuple[Node, ...]
    alone: bool
    keys: list[Key]
    name: Name
    family: Family
    groups: int
    width: int

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Bundle:
        family, setting = nodes[0].family, nodes[0].setting
        keys = [node.key for node in nodes]
        return cls(tuple(nodes), family.facts.alone, keys, keys[0], family, setting.groups, family.width(setting))

    def together(self, parts: list[Own], names: Iterable[str] | None = None) -> Own:
        names = list(parts[0] if names is None else names)
        if self.alone:
            return {name: parts[0][name] for name in names}
        return {name: np.stack([part[name] for part in parts], axis=1) for name in names}


class Params(Struct, frozen=True, eq=False):
    """Parameters of every node in counting units, similar nodes side by side; `params[key]` are those of one node."""

    bundles: Mapping[Name, Own]
    places: Mapping[Key, tuple[Name, int | None]]

    def __getitem__(self, key: Key) -> Own:
        name, place = self.places[key]
        own = self.bundles[name]
        return own if place is None else {part: value[:, place] for part, value in own.items()}

    def __iter__(self) -> Iterator[Key]:
        return iter(self.places)

    def __contains__(self, key: Key) -> bool:
        return key in self.places

    @property
    def shares(self) -> np.ndarray:
        return np.asarray(self[ROOT]["probability"][0])

    def replaced(self, bundles: Mapping[Name, Own]) -> Params:
        return replace(self, bundles={**self.bundles, **bundles})


class Imagined(Struct, frozen=True, eq=False, dict=True):
    """The prior parameters of every node, and how they are used.

    `hows` names the nodes that are estimated differently from the rest, such as classes. `fixed` holds parameters, in
    counting units, that stay fixed.
    """

    hypers: Mapping[Key, Hyper]
    how: How
    hows: Mapping[Key, How] = field(default_factory=dict)
    fixed: Mapping[Key, Own] = field(default_factory=dict)

    @cached_property
    def _stacked(self) -> dict[Any, Hyper]:
        return {}

    def how_of(self, bundle: Bundle) -> How:
        return self.hows.get(bundle.name, self.how)

    def of(self, bundle: Bundle) -> Hyper:
        """Return the prior parameters of a bundle; stacked once, because every EM step uses them."""
        if bundle.alone:
            return self.hypers[bundle.name]
        if bundle.name not in self._stacked:
            found = {}
            for name in self.hypers[bundle.name]:
                # The axis of the columns is second to last for vectors per category, last for numbers.
                parts = np.broadcast_arrays(*[self.hypers[key][name] for key in bundle.keys])
                found[name] = np.stack(parts, axis=-2 if parts[0].ndim else -1)
            self._stacked[bundle.name] = found
        return self._stacked[bundle.name]

    def using(self, how: How) -> Imagined:
        return replace(self, how=how)


class Nodes(Struct, frozen=True, eq=False, dict=True):
    """All nodes of a model, and their bundles; nodes in `apart` are bundled with no other."""

    nodes: tuple[Node, ...]
    apart: frozenset[Key] = frozenset()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    @cached_property
    def _by_key(self) -> dict[Key, Node]:
        return {node.key: node for node in self.nodes}

    def __getitem__(self, key: Key) -> Node:
        if key in self._by_key:
            return self._by_key[key]
        known = ", ".join(str(node.key) for node in self.nodes if node.key != ROOT)
        raise DataError(f"the model has no column {key!r}. It has: {known}.")

    @property
    def columns(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.key != ROOT)

    @cached_property
    def bundles(self) -> tuple[Bundle, ...]:
        alike: dict[Any, list[Node]] = {}
        for node in self.nodes:
            own = (
                node.family.facts.alone
                or not node.family.facts.side_by_side
                or node.key == ROOT
                or node.key in self.apart
            )
            alone = node.key if own else None
            size = node.family.width(node.setting), node.setting.groups
            alike.setdefault((node.family, size, alone), []).append(node)
        return tuple(map(Bundle.of, alike.values()))

    @cached_property
    def places(self) -> dict[Key, tuple[Name, int | None]]:
        """Bundle of each node, and its position there."""
        found: dict[Key, tuple[Name, int | None]] = {}
        for bundle in self.bundles:
            for place, key in enumerate(bundle.keys):
                found[key] = bundle.name, None if bundle.alone else place
        return {node.key: found[node.key] for node in self.nodes}

    # -- bundling and separating

    def stacked(self, counts: Counts) -> Counts:
        """Convert counts under the names of the nodes to counts under the names of the bundles."""
        arrays: dict[Hashable, Twofold] = {}
        for bundle in self.bundles:
            if bundle.name == ROOT:
                arrays[ROOT] = counts.arrays[ROOT].spread(0).spread(0)
            elif bundle.alone:
                arrays[bundle.name] = counts.arrays[bundle.name]
            else:
                arrays[bundle.name] = stack([counts.arrays[key] for key in bundle.keys], axis=1)
        return replace(counts, arrays=arrays)

    def unstacked(self, counts: Counts) -> Counts:
        """Convert counts to the names of the nodes, as they are saved, merged and shown."""
        arrays: dict[Hashable, Twofold] = {}
        for key, (name, place) in self.places.items():
            own = counts.arrays[name]
            arrays[key] = own[0, 0] if key == ROOT else own if place is None else own[:, place]
        return replace(counts, arrays=arrays)

    def params(self, named: Mapping[Key, Own]) -> Params:
        bundles = {x.name: x.together([named[key] for key in x.keys]) for x in self.bundles}
        return Params(bundles, self.places)

    # -- prior counts

    def hypers(
        self, counts: Counts, priors: Mapping[Key, Any], known: Mapping[Key, Hyper] | None = None
    ) -> dict[Key, Hyper]:
        """Return prior parameters of every node from the counts of the whole table.

        Similar nodes with one plain prior are computed together.
        """
        found: dict[Key, Hyper] = dict(known or {})
        for bundle in self.bundles:
            alike: dict[Any, list[Node]] = {}
            for node in bundle.nodes:
                if node.key in found:
                    continue
                prior = priors[node.key]
                plain = isinstance(prior, (int, float, str)) and prior != "auto" and node.setting.blank is None
                alike.setdefault((prior if plain and not bundle.alone else node.key), []).append(node)
            for nodes in alike.values():
                found |= _hypers_of(nodes, priors[nodes[0].key], counts.arrays)
        return {key: found[key] for key in self.places}

    # -- counts and parameters, by bundle

    def estimate(self, counts: Counts, imagined: Imagined) -> Params:
        bundles = {x.name: self._estimate_bundle(x, counts.arrays[x.name], imagined) for x in self.bundles}
        return Params(bundles, self.places)

    def _estimate_bundle(self, bundle: Bundle, stats: Twofold, imagined: Imagined) -> Own:
        """Estimate the parameters of a bundle. An error names the column that cannot be estimated."""
        hyper, how = imagined.of(bundle), imagined.how_of(bundle)
        try:
            if imagined.fixed.keys().isdisjoint(bundle.keys):
                return bundle.family.estimate(stats, hyper, how)
            return self._estimate_partly_fixed(bundle, stats, imagined)
        except DataError as error:
            for place, key in enumerate(bundle.keys if len(bundle.nodes) > 1 else ()):
                alone = Bundle.of(bundle.nodes[place : place + 1])
                own = Imagined({key: imagined.hypers[key]}, imagined.how, imagined.hows, imagined.fixed)
                self._estimate_bundle(alone, stats[:, place : place + 1], own)
            raise error if bundle.name == ROOT else DataError(f"column {bundle.name!r}, {error}") from None

    def _estimate_partly_fixed(self, bundle: Bundle, stats: Twofold, imagined: Imagined) -> Own:
        """Estimate nodes with fixed parameters: together if the same parameters are fixed in all nodes.

        Under `predictive` they are plugged in: with fixed parameters there is no closed form.
        """
        fixed, how = [imagined.fixed.get(key, {}) for key in bundle.keys], imagined.how_of(bundle)
        plugged: How = "mean" if how == "predictive" else how
        if all(part.keys() == fixed[0].keys() for part in fixed):
            together = bundle.together(fixed)
            return bundle.family.estimate(stats, imagined.of(bundle), plugged, together) | together
        parts = []
        for place, (node, held) in enumerate(zip(bundle.nodes, fixed, strict=True)):
            hyper, own = imagined.hypers[node.key], stats[:, place]
            parts.append(bundle.family.estimate(own, hyper, plugged if held else how, held) | held)
        return bundle.together(parts, set.intersection(*(set(part) for part in parts)))

    def held(self, params: Params, imagined: Imagined) -> Params:
        if not imagined.fixed:
            return params
        return self.params({key: params[key] | imagined.fixed.get(key, {}) for key in self.places})

    def log_prior(self, params: Params, imagined: Imagined) -> float:
        """Return the log-prior; for the class only if its shares are free."""
        return sum(
            float(np.sum(x.family.log_prior(params.bundles[x.name], imagined.of(x), imagined.how_of(x))))
            for x in self.bundles
            if not (x.name == ROOT and ROOT in imagined.fixed)
        )

    def completed(self, counts: Counts, params: Params) -> float:
        """Return the log-likelihood of complete rows with these counts, in counting units and without `base`.

        With expected counts this is the quantity that an M-step increases: the lower bound without the entropy of the
        memberships.
        """
        return sum(x.family.completed(counts.arrays[x.name], params.bundles[x.name]) for x in self.bundles)

    def slope(self, counts: Counts, params: Params, imagined: Imagined) -> Params:
        """Return the gradient of the objective at these expected counts (Fisher's identity)."""
        found = {
            x.name: x.family.slope(counts.arrays[x.name], params.bundles[x.name], imagined.of(x), imagined.how_of(x))
            for x in self.bundles
        }
        return Params(found, self.places)

    def log_units(self, counts: Counts, imagined: Imagined | None = None) -> float:
        """Return the part of the log-likelihood that depends only on the units of the columns.

        With prior parameters, that of columns whose unit is their deviation in the whole table.
        """
        total = 0.0
        for bundle in self.bundles:
            stats = counts.arrays[bundle.name]
            for place, node in enumerate(bundle.nodes):
                part = stats if bundle.alone else stats[:, place]
                total += bundle.family.log_unit(part, node.setting)
                deviations = PLAIN if imagined is None else PLAIN.in_deviations(imagined.hypers[node.key])
                if deviations is not PLAIN:  # added as logarithms: a scale of 1e308 over a small deviation overflows
                    total += bundle.family.log_unit(part, deviations)
        return total

    def n_parameters(self, imagined: Imagined | None = None) -> int:
        """Return the number of free parameters, without those that are fixed."""
        held: Mapping[Key, Own] = {} if imagined is None else imagined.fixed
        total = 0
        for bundle in self.bundles:
            alike: dict[frozenset[str], int] = {}
            for key in bundle.keys:
                names = frozenset(held.get(key, ()))
                alike[names] = alike.get(names, 0) + 1
            for names, columns in alike.items():
                setting, groups = bundle.nodes[0].setting, bundle.groups
                hyper = None if imagined is None else imagined.hypers[bundle.name]
                total += count_free(bundle.family, setting, groups, columns, hyper=hyper)
                total -= count_free(bundle.family, setting, groups, columns, names)
        return total


def _hypers_of(nodes: list[Node], prior: Any, stats: Mapping[Hashable, Twofold]) -> dict[Key, Hyper]:
    if len(nodes) == 1:
        own = stats[nodes[0].key]
        return {nodes[0].key: node_hyper(nodes[0], prior, own.spread(0) if nodes[0].key == ROOT else own)}
    keys, anchors, scales, floors, counted = zip(
        *[(x.key, x.setting.anchor, x.setting.scale, x.setting.floor, stats[x.key]) for x in nodes], strict=True
    )
    anchor, scale, floor = np.concatenate(anchors), np.concatenate(scales), np.array(floors)
    setting = replace(nodes[0].setting, keys=keys, anchor=anchor, scale=scale, floor=floor)
    hyper = nodes[0].family.hyper(prior, stack(counted, axis=1), setting)
    found = dict.fromkeys(keys, hyper)
    if not per_level(nodes[0].family):
        for place, key in enumerate(keys):
            found[key] = {name: value[place, ...] if value.ndim else value for name, value in hyper.items()}
    return found


def per_level(family: Family) -> bool:
    """Return whether there is a prior parameter for every category, and so the same ones for columns of one size."""
    return "shares" in family.facts.chart.values()


def node_hyper(node: Node, prior: Any, stats: Twofold) -> Hyper:
    """Return the prior parameters of one node; `"auto"` takes the concentration with the most evidence."""
    if isinstance(prior, str) and prior == "auto":
        prior = best_evidence(node, stats)
    counted = per_level(node.family) or isinstance(prior, Dirichlet | Expert)
    if isinstance(prior, Distribution) and prior.by_group and not counted:
        raise DataError(
            f"column {node.key!r} is {node.family.name}; only categorical columns take a prior of each class. "
            f"Give one {type(prior).__name__} for all classes."
        )
    if node.family.facts.alone:
        return node.family.hyper(prior, stats, node.setting)
    hyper = node.family.hyper(prior, stats.spread(1), node.setting)
    return hyper if per_level(node.family) else {name: np.reshape(value, ()) for name, value in hyper.items()}


def best_evidence(node: Node, stats: Twofold) -> float:
    """Return the prior count per category with the largest marginal likelihood of the statistics."""
    from scipy.optimize import minimize_scalar

    def loss(log_a: float) -> float:
        evidence = node.family.evidence(stats, node_hyper(node, float(np.exp(log_a)), stats))
        return -evidence if np.isfinite(evidence) else 1e300

    found = minimize_scalar(loss, bounds=(np.log(1e-4), np.log(1e4)), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(found.x))


def refuse_families(leaves: Iterable[Node], why: str, remedy: str | None = None) -> None:
    """Raise an error if a column has no density, because complement weights are not probabilities.

    With a `remedy`, which may be empty, also raise one if a column learns from known classes only.
    """
    for leaf in leaves:
        if not leaf.family.facts.has_density:
            raise DataError(
                f"column {leaf.key!r} is text by complement, which {why}: it only separates known classes. "
                "Use another model of text: 'multinomial' or 'bernoulli'."
            )
        if remedy is not None and leaf.family.facts.needs_classes:
            raise DataError(
                f"column {leaf.key!r} is {leaf.family.name}, which {why}: it learns from rows of known class alone. "
                f"Declare it another kind, such as histogram or normal{remedy}."
            )
