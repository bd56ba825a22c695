"""From what the user says of columns, and what looking told, to nodes with families."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import FAMILIES, Family
from softcount.families.base import given_family
from softcount.models.base import ClassModel
from softcount.models.nodes import Node
from softcount.models.stacks import Kernels
from softcount.models.star import Star
from softcount.records import dataclass
from softcount.run.rows import Rows
from softcount.table import Settled, Table
from softcount.table.counted_points import CountedPoints, points_for
from softcount.table.schema import Key, Kind, Schema
from softcount.text import Reading

BY_KIND = {
    Kind.CATEGORICAL: "categorical",
    Kind.REAL: "normal",
    Kind.POSITIVE: "lognormal",
    Kind.AMOUNT: "spiked",
    Kind.COUNT: "poisson",
    Kind.TEXT: "text",
}
"""The family of a column of which nobody said anything."""
SYNONYMS = {kind.value: name for kind, name in BY_KIND.items()}
AUTO = "auto"
"""In place of a kind: the column's density is chosen by its rows."""
LEFT_OUT = ("ignore", "identifier", "constant")
BAG = "counts"
"""The key of the one block that a sparse matrix is."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the user said of columns: families by column or block, kinds forced by them, columns to leave out.

    The densities of columns in `auto`, or of all of which nothing else is said, are for their rows to choose; `floors`
    are then the least variances of those that were chosen, as shares of the columns'.
    """

    families: dict[Key, Family] = field(default_factory=dict)
    forced: dict[Key, Kind | Reading | str] = field(default_factory=dict)
    everything: Family | None = None
    auto: frozenset[Key] = frozenset()
    all_auto: bool = False
    floors: Mapping[Key, float] = field(default_factory=dict)

    @property
    def leaves_open(self) -> bool:
        """Whether rows are to choose some column's family."""
        return self.all_auto or bool(self.auto) or any(x.choices for x in self._named)

    def undecided(self, schema: Schema) -> dict[Key, Sequence[Family]]:
        """The columns of numbers, and the blocks, whose family rows are to choose, each with those it is one of; with
        none where any family may be tried."""
        for key in self.auto:
            if key not in schema.by_key:
                raise DataError(f"kinds names column {key!r}, which the table does not have.")
        found: dict[Key, Sequence[Family]] = {key: x.choices for key, x in self.families.items() if x.choices}
        for spec in schema.used:
            if not spec.kind.numeric or spec.key in self.families or any(spec.key in block for block in self.blocks):
                continue
            if self.all_auto or spec.key in self.auto:
                found[spec.key] = ()
            elif self.everything is not None and self.everything.choices and not self.everything.block:
                found[spec.key] = self.everything.choices
        return found

    @property
    def needs_levels(self) -> bool:
        """Whether a column's levels must be settled before rows are counted."""
        return any(family.needs_levels or family.counts_points for family in self._named)

    @property
    def _named(self) -> list[Family]:
        return [*self.families.values(), *([] if self.everything is None else [self.everything])]

    def with_points(self, settled: Settled, chunks: Rows) -> Settled:
        """The same with the points at which numbers are counted, where a family counts them so."""
        counted = [(place, spec) for place, spec in enumerate(settled.schema.stored("reals")) if self._counts(spec.key)]
        most, schema = points_for(max(len(settled.classes), 1), len(counted)), settled.schema
        for place, spec in counted:
            columns = (weighty(chunk.reals[:, place], chunk.weights) for chunk in chunks.here)
            schema = schema.with_field(replace(spec, points=CountedPoints.of(columns, most)))
        return replace(settled, schema=schema) if counted else settled

    def _counts(self, key: Key) -> bool:
        family = self.families.get(key) or self.everything
        return family is not None and family.counts_points

    def model(
        self, schema: Schema, groups: int, cells: int, floor: float, bag: int | None = None, weight: float = 1.0
    ) -> ClassModel:
        """The model of these columns for a table of so many cells; rows without a label have that weight."""
        return Star(schema, nodes_of(schema, self, groups, bag, floor), groups, Kernels(cells), weight)

    def settle(self, table: Table, classes: Sequence[Any] | None) -> Settled:
        """Levels and classes of a table that was read, in their final order; classes given are already coded so."""
        families = {spec.key: self.families.get(spec.key) or self.everything for spec in table.schema.used}
        return table.settle([key for key, family in families.items() if family and family.two_levels], classes)

    @property
    def blocks(self) -> dict[tuple[Key, ...], Family]:
        return {key: family for key, family in self.families.items() if isinstance(key, tuple)}


def weighty(column: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The cells of rows that weigh something."""
    return column if weights is None else column[weights > 0]


def read_kinds(kinds: Any) -> Declared:
    """Read the user's `kinds`: a mapping of column or tuple to family name or instance, or one family for all."""
    if kinds is None or (isinstance(kinds, str) and kinds == AUTO):
        return Declared(all_auto=kinds is not None)
    if isinstance(kinds, str) or given_family(kinds) is not None:
        return Declared(everything=family_of(kinds, "every column"))
    if not isinstance(kinds, Mapping):
        raise DataError(f"kinds is a mapping of columns to kinds, or one kind for all of them, not {kinds!r}.")
    declared = Declared(auto=_chosen_by_rows(kinds))
    for key, said in kinds.items():
        if key in declared.auto:
            continue
        if isinstance(said, str) and said in LEFT_OUT:
            declared.forced[key] = "ignore"
            continue
        family = family_of(said, key).for_key(key)
        declared.families[key] = family
        for column in key if isinstance(key, tuple) else (key,):
            if column in declared.forced:
                raise DataError(f"kinds names column {column!r} twice. A column has one kind, alone or in one block.")
            declared.forced[column] = family.reads
    return declared


def _chosen_by_rows(kinds: Mapping[Any, Any]) -> frozenset[Key]:
    """The columns whose density is for their rows to choose."""
    auto = frozenset(key for key, said in kinds.items() if isinstance(said, str) and said == AUTO)
    for key in auto:
        if isinstance(key, tuple):
            raise DataError(f"kinds: 'auto' chooses the density of one column, but {key!r} names {len(key)} of them.")
    return auto


def family_of(said: Any, key: Key) -> Family:
    """A family instance from its name or itself."""
    given = given_family(said)
    if given is not None:
        return given
    name, colon, how = str(said).partition(":")
    name = SYNONYMS.get(name, name)
    if name not in FAMILIES:
        close = difflib.get_close_matches(name, [*FAMILIES, *SYNONYMS, "ignore", AUTO], 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join(sorted({*FAMILIES, *SYNONYMS, "ignore", AUTO} - {"joint", "linear"}))
        raise DataError(f"column {key!r}: {said!r} is not a kind we know.{hint} Known: {known}.")
    return FAMILIES[name].spelt(how) if colon else FAMILIES[name]()


def nodes_of(
    schema: Schema, declared: Declared, groups: int, bag: int | None = None, floor: float = 1e-12
) -> tuple[Node, ...]:
    """A node for every block and for every used column outside them, in the order of the table."""
    if bag:
        family, setting = (declared.everything or FAMILIES["multinomial"]()).set_up_bag(BAG, bag, groups, floor)
        return (Node(BAG, (), family, setting),)
    if declared.everything is not None and declared.everything.block:
        key = tuple(spec.key for spec in schema.used)
        return (_block_node(key, declared.everything.for_key(key), schema, groups, floor),)
    blocks = declared.blocks
    taken = {column for block in blocks for column in block}
    nodes = []
    for spec in schema.used:
        if spec.key not in taken:
            own = declared.families.get(spec.key) or declared.everything or FAMILIES[BY_KIND[spec.kind]].of_field(spec)
            least = max(floor, declared.floors.get(spec.key, 0.0))
            nodes.append(Node(spec.key, (spec.key,), *own.set_up(spec.key, [spec], groups, least)))
    nodes += [_block_node(key, family, schema, groups, floor) for key, family in blocks.items()]
    return _in_one_unit(nodes)


def _block_node(key: tuple[Key, ...], family: Family, schema: Schema, groups: int, floor: float) -> Node:
    for column in key:
        if column not in schema.by_key:
            raise DataError(
                f"the table has no column {column!r}, which the block {key!r} needs. Give all of its columns."
            )
    return Node(key, key, *family.set_up(key, [schema[column] for column in key], groups, floor))


def _in_one_unit(nodes: list[Node]) -> tuple[Node, ...]:
    """Columns that share a parameter are counted in one unit."""
    for family in {node.family for node in nodes if node.family.shared_by_columns}:
        places = [i for i, node in enumerate(nodes) if node.family == family]
        for i, setting in zip(places, family.in_one_unit([nodes[i].setting for i in places]), strict=True):
            nodes[i] = replace(nodes[i], setting=setting)
    return tuple(nodes)


def priors_of(prior: Any, leaves: Iterable[Node], default: Any) -> dict[Key, Any]:
    """Each leaf's prior: from a mapping by column, or the same for all."""
    leaves = list(leaves)
    if not isinstance(prior, Mapping):
        return {leaf.key: prior for leaf in leaves}
    unknown = [key for key in prior if key not in {leaf.key for leaf in leaves}]
    if unknown:
        raise DataError(f"prior names {unknown[0]!r}, which is not a column of the model.")
    return {leaf.key: prior.get(leaf.key, default) for leaf in leaves}
