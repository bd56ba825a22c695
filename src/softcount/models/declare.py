"""From declared kinds and a typed table to nodes with families, for naive Bayes structures and networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from softcount.core import remedies
from softcount.core.counts import Counts
from softcount.errors import DataError
from softcount.families import FAMILIES, Categorical, Family, Linear, Setting
from softcount.families.base import family_title, given_family
from softcount.families.candidates import choices
from softcount.models.base import ClassModel
from softcount.models.network import Net, levels_of
from softcount.models.nodes import Node, best_evidence
from softcount.models.stacks import Kernels
from softcount.models.star import Star
from softcount.networks.network import Graph
from softcount.run.local import Rows
from softcount.sources import wording
from softcount.table import Chunk, Settled, Table
from softcount.table.discretise import MOST_INTERVALS, IntervalDensity, by_class, equal_count, interval_names
from softcount.table.schema import CountedPoints, Field, Key, Kind, Schema, points_for
from softcount.text import Reading

BY_KIND = {
    Kind.CATEGORICAL: "categorical",
    Kind.REAL: "normal",
    Kind.POSITIVE: "lognormal",
    Kind.AMOUNT: "spiked",
    Kind.COUNT: "poisson",
    Kind.TEXT: "text",
}
"""Default family of each kind of column."""
SYNONYMS = {kind.value: name for kind, name in BY_KIND.items()}
FROM_OTHER_SOFTWARE = {
    "int": "count", "integer": "count", "float": "real", "numeric": "real", "number": "real", "continuous": "real",
    "gaussian": "normal", "str": "categorical", "string": "categorical", "category": "categorical",
    "factor": "categorical", "nominal": "categorical", "bool": "categorical", "boolean": "categorical",
}  # fmt: skip
"""Names of types that users know from elsewhere, and the kind to suggest."""
AUTO = "auto"
"""Replaces a kind: the rows choose the density of the column."""
LEFT_OUT = ("ignore", "identifier", "constant")
BAG = "counts"
"""Key of the single block that a sparse matrix forms."""


class Declared(Struct, frozen=True):
    """The declared kinds: families by column or block, kinds that they force, and columns to leave out.

    Rows choose the densities of the columns in `auto`, or of all undeclared columns. `floors` holds the variance floors
    of the chosen ones, as shares of the columns' variances.
    """

    families: dict[Key, Family] = field(default_factory=dict)
    forced: dict[Key, Kind | Reading | str] = field(default_factory=dict)
    everything: Family | None = None
    auto: frozenset[Key] = frozenset()
    all_auto: bool = False
    floors: Mapping[Key, float] = field(default_factory=dict)

    @property
    def leaves_open(self) -> bool:
        """Whether rows choose the family of some column."""
        return self.all_auto or bool(self.auto) or any(choices(x) for x in self._declared_families)

    def undecided(self, schema: Schema) -> dict[Key, Sequence[Family]]:
        """Return the columns and blocks whose family the rows choose, with the families to choose from.

        An empty list means any family.
        """
        for key in self.auto:
            if key not in schema.by_key:
                raise DataError(f"kinds: the table has no column {key!r}.")
        found: dict[Key, Sequence[Family]] = {key: own for key, x in self.families.items() if (own := choices(x))}
        for spec in schema.used:
            if not spec.kind.numeric or spec.key in self.families or any(spec.key in block for block in self.blocks):
                continue
            if self.all_auto or spec.key in self.auto:
                found[spec.key] = ()
            elif self.everything is not None and choices(self.everything) and not self.everything.facts.block:
                found[spec.key] = choices(self.everything)
        return found

    @property
    def needs_levels(self) -> bool:
        """Whether the categories of a column must be settled before rows are counted."""
        return any([x.facts.needs_levels or x.facts.counts_points for x in self._declared_families])

    @property
    def _declared_families(self) -> list[Family]:
        return [*self.families.values(), *([] if self.everything is None else [self.everything])]

    def with_points(self, settled: Settled, chunks: Rows) -> Settled:
        """Add the points at which numbers are counted, for the families that count them so."""
        counted = [
            (place, spec)
            for place, spec in enumerate(settled.schema.stored("reals"))
            if (family := self.families.get(spec.key) or self.everything) is not None and family.facts.counts_points
        ]
        most, schema = points_for(max(len(settled.classes), 1), len(counted)), settled.schema
        for place, spec in counted:
            parts = ((chunk.reals[:, place], chunk.weights) for chunk in chunks.here)
            columns = (column if weights is None else column[weights > 0] for column, weights in parts)
            schema = schema.with_field(replace(spec, points=CountedPoints.of(columns, most)))
        return replace(settled, schema=schema) if counted else settled

    def model(
        self, schema: Schema, groups: int, cells: int, floor: float, bag: int | None = None, weight: float = 1.0
    ) -> ClassModel:
        """Return the model of these columns for a table of `cells` cells; `weight` is that of unlabelled rows."""
        return Star(schema, nodes_of(schema, self, groups, bag, floor), groups, Kernels(cells), weight)

    def settle(self, table: Table, classes: Sequence[Any] | None) -> Settled:
        """Return categories and classes of a table in their final order; given classes are already coded in it."""
        two_levels = []
        for spec in table.schema.used:
            family = self.families.get(spec.key) or self.everything
            if family is not None and family.facts.two_levels:
                two_levels.append(spec.key)
        return table.settle(two_levels, classes)

    @property
    def blocks(self) -> dict[tuple[Key, ...], Family]:
        return {key: family for key, family in self.families.items() if isinstance(key, tuple)}


def read_kinds(kinds: Any) -> Declared:
    """Parse the user's `kinds`: a mapping of column or tuple to family name or instance, or one family for all."""
    if kinds is None or (isinstance(kinds, str) and kinds == AUTO):
        return Declared(all_auto=kinds is not None)
    if isinstance(kinds, str) or given_family(kinds) is not None:
        return Declared(everything=family_of(kinds, "every column"))
    if not isinstance(kinds, Mapping):
        raise DataError(f"kinds is a mapping of columns to kinds, or one kind for all of them, not {kinds!r}.")
    declared = Declared(auto=frozenset(key for key, kind in kinds.items() if isinstance(kind, str) and kind == AUTO))
    for key in declared.auto:
        if isinstance(key, tuple):
            raise DataError(f"kinds: 'auto' chooses the density of one column, but {key!r} names {len(key)} of them.")
    for key, kind in kinds.items():
        if key in declared.auto:
            continue
        if isinstance(kind, str) and kind in LEFT_OUT:
            declared.forced[key] = "ignore"
            continue
        family = fit_to_key(family_of(kind, key), key)
        declared.families[key] = family
        for column in key if isinstance(key, tuple) else (key,):
            if column in declared.forced:
                raise DataError(f"kinds names column {column!r} twice. A column has one kind, alone or in one block.")
            declared.forced[column] = family.facts.reads
    return declared


def family_of(kind: Any, key: Key) -> Family:
    given = given_family(kind)
    if given is not None:
        return given
    name, colon, how = str(kind).partition(":")
    name = SYNONYMS.get(name, name)
    if name not in FAMILIES:
        known = sorted({*FAMILIES, *SYNONYMS, "ignore", AUTO} - {"joint", "linear"})
        elsewhere = FROM_OTHER_SOFTWARE.get(name.lower())
        hint = f"Did you mean {elsewhere!r}?" if elsewhere else remedies.similar(name, known)
        raise DataError(f"column {key!r}: {kind!r} is not a kind.{hint and ' '}{hint} Known: {', '.join(known)}.")
    return _with_settings(FAMILIES[name](), how) if colon else FAMILIES[name]()


def _with_settings(family: Any, how: str) -> Family:
    """Parse the settings after the name of a family and a colon, in any order: `markov:2,words`."""
    parts, examples, found = [part.strip() for part in how.split(",")], family.facts.suffix, {}
    if not examples:
        raise DataError(f"{family.name}:{how} is not a kind: {family.name} takes no suffix.")
    for part in parts:
        alike = [x for x in examples if examples[x].isdigit() is part.isdigit() and x not in found]
        if not part or not alike:
            written = [f"{family.name}:{example}" for example in (*examples.values(), ",".join(examples.values()))]
            raise DataError(f"{family.name}:{how} is not a kind. Write {', '.join(written[:-1])} or {written[-1]}.")
        found[alike[0]] = int(part) if part.isdigit() else part
    chosen: Family = replace(family, **found)
    return chosen


def fit_to_key(family: Family, key: Key) -> Family:
    """Return the family for a key: a column, or a tuple of columns."""
    if isinstance(key, tuple) and key and family.facts.as_block:
        block = FAMILIES[family.facts.as_block]
        own = set(block.__struct_fields__) & set(family.__struct_fields__)
        family = block(**{name: getattr(family, name) for name in own})  # seam: settings that both families have
    facts, name = family.facts, family.name
    if isinstance(key, tuple) and not key:
        raise DataError(f"kinds names a block of no columns as {name}. Give a tuple of names.")
    if facts.block and not isinstance(key, tuple):
        raise DataError(f"{name} is for a block of columns; give a tuple of names instead of {key!r}.")
    if isinstance(key, tuple) and not facts.block:
        raise DataError(f"{name} is for a single column, but {key!r} names {len(key)} of them.")
    if isinstance(key, tuple) and len(key) != (facts.n_columns or len(key)):
        raise DataError(f"{name} takes two columns, successes and trials, not {key!r}.")
    return family


def _default_family(spec: Field) -> Family:
    """Return the family of a column that is not declared; of text, with the settings by which it was read."""
    family = FAMILIES[BY_KIND[spec.kind]]
    return family() if spec.reading is None else family(**asdict(spec.reading))


def nodes_of(
    schema: Schema, declared: Declared, groups: int, bag: int | None = None, floor: float = 1e-12
) -> tuple[Node, ...]:
    """Return a node for every block and for every used column outside them, in the order of the table."""
    if bag:
        family = declared.everything or FAMILIES["multinomial"]()
        if not family.facts.takes_bag:
            raise DataError(
                f"a sparse table is one block of counts, which is multinomial, not {family.name}. "
                "Give the rows as a dense array or a frame."
            )
        return (Node(BAG, (), family, Setting((BAG,), groups, tuple(range(bag)), floor=floor)),)
    if declared.everything is not None and declared.everything.facts.block:
        key = tuple(spec.key for spec in schema.used)
        return (_block_node(key, fit_to_key(declared.everything, key), schema, groups, floor),)
    blocks = declared.blocks
    taken, nodes = set(chain(*blocks)), []
    for spec in schema.used:
        if spec.key not in taken:
            own = declared.families.get(spec.key) or declared.everything or _default_family(spec)
            least = max(floor, declared.floors.get(spec.key, 0.0))
            nodes.append(Node(spec.key, (spec.key,), *own.set_up(spec.key, [spec], groups, least)))
    nodes += [_block_node(key, family, schema, groups, floor) for key, family in blocks.items()]
    for shared in {node.family for node in nodes if node.family.facts.shared_by_columns}:
        # Columns that share a parameter are counted in one unit.
        places = [i for i, node in enumerate(nodes) if node.family == shared]
        scale = np.array([min(nodes[i].setting.scale[0] for i in places)])
        for i in places:
            nodes[i] = replace(nodes[i], setting=replace(nodes[i].setting, scale=scale))
    return tuple(nodes)


def _block_node(key: tuple[Key, ...], family: Family, schema: Schema, groups: int, floor: float) -> Node:
    for column in key:
        if column not in schema.by_key:
            raise DataError(
                f"the table has no column {column!r}, which the block {key!r} needs. Give all of its columns."
            )
    return Node(key, key, *family.set_up(key, [schema[column] for column in key], groups, floor))


def priors_of(prior: Any, leaves: Iterable[Node], default: Any) -> dict[Key, Any]:
    """Return the prior of each leaf: from a mapping by column, or one prior for all."""
    keys = [leaf.key for leaf in leaves]
    if not isinstance(prior, Mapping):
        return dict.fromkeys(keys, prior)
    unknown = [key for key in prior if key not in keys]
    if unknown:
        raise DataError(f"prior names {unknown[0]!r}, which is not a column of the model.")
    return {key: prior.get(key, default) for key in keys}


def auto_priors(priors: Mapping[Key, Any], leaves: Iterable[Node], counts: Counts) -> dict[Key, float]:
    """Choose the prior with the largest marginal likelihood for each leaf whose prior is "auto"."""
    found = {}
    for leaf in leaves:
        if isinstance(priors[leaf.key], str) and priors[leaf.key] == "auto":
            found[leaf.key] = best_evidence(leaf, counts.arrays[leaf.key])
    return found


# -- networks: columns, hidden nodes and discretised numbers as nodes

FLOOR = 1e-6
"""Variance floor of a number in a configuration of its parents, as a share of the column's variance."""
MOST_PARAMETERS = 1 << 22
"""Limit of the cells of all tables together: filling missing values in larger tables would take minutes."""
MOST_LEVELS = 1 << 16
"""Largest number of categories of a hidden node."""


class Coded(Struct, frozen=True):
    """A table as the structure search takes it: codes (-1 if missing), numbers of categories, and names of nodes."""

    names: tuple[Key, ...]
    codes: np.ndarray
    sizes: tuple[int, ...]
    weights: np.ndarray


Search = Callable[[Coded], tuple[Graph, list[str]]]
Shape = Callable[[Sequence[Key]], Graph]


class DeclaredNet(Struct, frozen=True):
    """A declared network: kinds, edges or how to find them, hidden nodes, numbers to discretise, and the class."""

    declared: Declared = field(default_factory=Declared)
    graph: Graph | None = None
    shape: Shape | None = None
    search: Search | None = None
    hidden: Mapping[Key, int | Sequence[object]] = field(default_factory=dict)
    cut: Mapping[Key, Any] = field(default_factory=dict)
    target: Key | None = None
    classes: Sequence[Any] | None = None
    declared_classes: Sequence[Any] = ()
    cells: int = 0
    intervals: int = MOST_INTERVALS

    def build(self, settled: Settled, chunks: Sequence[Chunk]) -> tuple[Net, list[str]]:
        schema = settled.schema
        notes: list[str] = []
        columns = {x.key: _with_blank(x, schema, chunks) for x in nodes_of(schema, self.declared, 1, None, FLOOR)}
        known = dict(columns)
        if self.target is not None:
            classes = settled.classes if self.classes is None else self.classes
            names = [name.item() if isinstance(name, np.generic) else name for name in classes]
            # After the others, whose positions are the labels of rows.
            names += [name for name in self.declared_classes if name not in names]
            known = {self.target: _level_node(self.target, tuple(names)), **columns}
        for key, levels in self.hidden.items():
            if key in columns or key == self.target:
                raise DataError(f"{key!r} is a column of the table, so it is not hidden. Leave one of the two out.")
            known[key] = _hidden_node(key, levels)
        graph = self.graph if self.shape is None else self.shape(tuple(known))
        wanted = self._numbers_to_cut(known, graph)
        cuts = self._cuts(columns, wanted, chunks, schema, notes)
        known |= {
            key: _level_node(key, interval_names(list(edges), schema[key].written)) for key, edges in cuts.items()
        }
        if graph is None:
            assert self.search is not None
            flat = Net(schema, Graph.of([], known), tuple(known.values()), Kernels(0), cuts, self.target)
            codes = np.concatenate([flat.codes(chunk) for chunk in chunks])
            graph, more = self.search(Coded(tuple(flat.discrete.names), codes, flat.sizes, _weights(chunks)))
            notes += more
        left = [key for key in columns if key not in graph.number]
        if left:
            notes.append(f"{wording.and_others(left)}: in no edge, so not in the network.")
        for key in self.hidden:
            if key not in graph.number or not (graph.parents[graph.number[key]] or graph.children[graph.number[key]]):
                raise DataError(f"hidden: {key!r} is in no edge, so nothing can be learned about it. Give its edges.")
        if self.target is not None and self.target not in graph.number:
            raise DataError(f"the class {self.target!r} is in no edge. Give it one, or fit without y.")
        nodes = tuple(_follow_numbers(known[name], graph, known, schema) for name in graph.names)
        _check_nodes(nodes)
        refuse_too_large(graph, [len(levels_of(node) or (0,)) for node in nodes])
        cuts = {key: edges for key, edges in cuts.items() if key in graph.number}
        within = {
            key: IntervalDensity.of(*_cells(schema, chunks, key)[:2], edges, schema[key].whole)
            for key, edges in cuts.items()
        }
        notes += [
            f"only numbers depend on {key!r}: declared normal, it would not be cut."
            for key in cuts
            if key not in self.cut
            and (below := graph.children[graph.number[key]])
            and all(levels_of(nodes[child]) is None for child in below)
        ]
        target = self.target if self.target in graph.number else None
        return Net(schema, graph, nodes, Kernels(self.cells), cuts, target, within), notes

    def _numbers_to_cut(self, known: Mapping[Key, Node], graph: Graph | None) -> set[Key]:
        """Return the numeric columns that the network needs as bins. Raises an error for names that are not columns."""
        for name in graph.names if graph is not None else ():
            if name not in known:
                raise DataError(
                    f"the table has no column {name!r}. It has: {wording.and_others(known)}. "
                    "A node that no column shows is named with its number of levels: "
                    f"{remedies.of_column('hidden', name, 2)}."
                )
        for key in self.cut:
            if key not in known:
                raise DataError(f"cut names {key!r}, which is not a column of the table.")
            if levels_of(known[key]) is not None:
                raise DataError(f"cut names {key!r}, which is categorical. Only numbers can be discretised.")
        numbers = {key for key, node in known.items() if levels_of(node) is None}
        return numbers if graph is None else _needed_as_levels(graph, known, numbers, set(self.cut))

    def _cuts(
        self, columns: Mapping[Key, Node], wanted: set[Key], chunks: Sequence[Chunk], schema: Schema, notes: list[str]
    ) -> dict[Key, np.ndarray]:
        """Return the cut points of each numeric column that is needed as bins."""
        found: dict[Key, np.ndarray] = {}
        parts = [chunk.labels for chunk in chunks if chunk.labels is not None]
        labels = None
        if wanted and self.target is not None and len(parts) == len(chunks):
            labels = np.concatenate(parts).astype(np.int64)
        for key in (key for key in columns if key in wanted):
            if schema.places[key].store != "reals":
                out = remedies.kind(key, "ignore")
                raise DataError(f"column {key!r} cannot be cut into levels. Leave it out: {out}.")
            cells, weights, rows = _cells(schema, chunks, key)
            given = self.cut.get(key)
            if given is not None and not (
                isinstance(given, (int, np.integer)) and not isinstance(given, bool) and bool(given > 0)
            ):
                try:
                    edges = np.asarray(given, dtype=np.float64)
                except (TypeError, ValueError):
                    edges = np.zeros(())
                if edges.ndim != 1 or not np.isfinite(edges).all() or not (np.diff(edges) > 0).all():
                    raise DataError(
                        f"cut: the cuts of {key!r} are rising numbers, or how many intervals there are, not {given!r}."
                    )
                found[key] = edges
                continue
            if given is None and labels is not None:
                own, seen = labels[rows], labels[rows] >= 0
                found[key] = by_class(cells[seen], own[seen], weights[seen], int(own.max(initial=0)) + 1)
                how = "where the classes change"
            else:
                found[key] = equal_count(cells, weights, self.intervals if given is None else int(given))
                how = "of about equal count"
            if len(found[key]):
                notes.append(f"column {key!r} is discretised into {len(found[key]) + 1} intervals {how}.")
            else:
                remedy = "" if given is not None else f" Cut it anyway: {remedies.of_column('cut', key, 5)}."
                notes.append(f"column {key!r} has one interval and no information: no cut was found {how}.{remedy}")
        return found


def _check_nodes(nodes: Sequence[Node]) -> None:
    if not nodes:
        raise DataError("no edges are given, so the network has no nodes. Give edges, or a word for how to find them.")
    for node in nodes:
        if levels_of(node) is not None and not levels_of(node):
            raise DataError(
                f"column {node.key!r} has no value in any row. Leave it out, or rename it and hide it: "
                f"{remedies.of_column('hidden', 'name', 2)}."
            )
    for node in nodes:
        if node.family.facts.counts_points:
            normal, cut = remedies.kind(node.key, "normal"), remedies.of_column("cut", node.key, 5)
            raise DataError(
                f"column {node.key!r} is {family_title(node.family)}, which nodes of a network cannot be. Declare it "
                f"normal ({normal}), or cut it into levels ({cut})."
            )


def _hidden_node(key: Key, levels: Any) -> Node:
    if isinstance(levels, (int, np.integer)) and not isinstance(levels, bool) and 0 < levels <= MOST_LEVELS:
        return _level_node(key, tuple(range(int(levels))))
    if isinstance(levels, (list, tuple)) and levels:
        return _level_node(key, tuple(levels))
    raise DataError(
        f"hidden: {key!r} has a number of levels (1 or more, at most {MOST_LEVELS:,}), their names, or 'auto', "
        f"not {levels!r}."
    )


def _with_blank(node: Node, schema: Schema, chunks: Sequence[Chunk]) -> Node:
    """Return the node with the values that replace missing cells in the first pass, if its family needs them."""
    places = [schema.places[column] for column in node.columns]
    if node.family.facts.exact or any(place.store != "reals" for place in places):
        return node
    slots: Any = [place.slot for place in places] if node.family.facts.alone else places[0].slot
    columns = [chunk.reals[:, slots] for chunk in chunks]
    weights = [np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks]
    return replace(node, setting=replace(node.setting, blank=node.family.blank(columns, weights, node.setting)))


def _needed_as_levels(graph: Graph, known: Mapping[Key, Node], numbers: set[Key], named: set[Key]) -> set[Key]:
    """Return the numbers to discretise.

    The user names some (`named`). Parents of discrete nodes, and parents that cannot take part in a regression, follow.
    """
    found = numbers & named
    for place in reversed(graph.order):
        key = graph.names[place]
        below = {graph.names[child] for child in graph.children[place]}
        if key in numbers and below and (below - numbers or below & found or not known[key].family.facts.joins_numbers):
            found.add(key)
    return found


def _follow_numbers(node: Node, graph: Graph, known: Mapping[Key, Node], schema: Schema) -> Node:
    """Make the node a linear regression on its numeric parents, if it has any."""
    above = tuple(graph.names[parent] for parent in graph.parents[graph.number[node.key]])
    numbers = tuple(key for key in above if levels_of(known[key]) is None)
    if not numbers:
        return node
    if not node.family.facts.joins_numbers:
        raise DataError(
            f"{node.key!r} depends on the number {numbers[0]!r}, but is {family_title(node.family)}: only a normal "
            f"number can. Declare it normal ({remedies.kind(node.key, 'normal')}), or cut the other into levels "
            f"({remedies.of_column('cut', numbers[0], 5)})."
        )
    fields = [schema[key] for key in (node.key, *numbers)]
    return Node(node.key, (node.key,), *Linear(numbers).set_up(node.key, fields, 1, FLOOR))


def _level_node(key: Key, levels: tuple[object, ...]) -> Node:
    """Return a discrete node that is not a column of categories."""
    if len(set(levels)) < len(levels) or not levels:
        raise DataError(f"node {key!r} needs levels with different names, at least one.")
    return Node(key, (), Categorical(), Setting(keys=(key,), levels=levels))


def _cells(schema: Schema, chunks: Sequence[Chunk], key: Key) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    slot = schema.places[key].slot
    cells = np.concatenate([chunk.reals[:, slot] for chunk in chunks])
    weights = _weights(chunks)
    rows = np.flatnonzero(~np.isnan(cells) & (weights > 0))
    return cells[rows], weights[rows], rows


def _weights(chunks: Sequence[Chunk]) -> np.ndarray:
    return np.concatenate([np.ones(x.n_rows) if x.weights is None else x.weights for x in chunks])


def refuse_too_large(graph: Graph, sizes: Sequence[int]) -> None:
    """Raise an error before a table is made that does not fit into memory."""
    cells = [prod(max(sizes[node], 1) for node in family) for family in graph.families]
    if sum(cells) > MOST_PARAMETERS:
        most = max(range(len(cells)), key=cells.__getitem__)
        raise DataError(
            f"the table of {graph.names[most]!r} has {cells[most]:,} cells, one for every combination of its levels "
            f"and those of its {len(graph.parents[most])} parents ({sum(cells):,} in the whole network; at most "
            f"{MOST_PARAMETERS:,}). "
            "Give it fewer parents, or hide a node between them."
        )
