"""Convert the statistics of one model to the schema of another, so that `+` can merge two fits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace

from softcount.core import remedies
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.errors import DataError
from softcount.families.learning import convert_stats
from softcount.models.base import ClassModel
from softcount.models.network import Net, levels_of
from softcount.models.nodes import Node
from softcount.models.star import rearrange_groups
from softcount.table import wording
from softcount.table.schema import NARROW_LEVELS, Field, Key, Kind, Schema
from softcount.table.text_columns import WORDLESS, counted_words
from softcount.text import Reading, Words
from softcount.text.count_words import all_transitions

Fitted = Any

SLACK = 1e-9
"""Counts that are negative by no more than this are rounding errors."""
WORDING = ("analyzer", "ngrams", "pattern", "lowercase", "stop_words")
"""Fields of a reading that define a word. The other fields select words by their frequency in a table."""


def align_counts(fitted: Fitted, model: ClassModel, names: Sequence[Any] | None) -> Counts:
    """Convert the counts of a fitted model to the classes, categories and anchors of another model.

    Columns that only the other model has count zero. Words that it does not have are dropped, as when it reads
    documents.
    """
    order = np.arange(fitted.model.groups)
    if names is not None and fitted.classes is not None:
        where = {name: i for i, name in enumerate(names)}
        order = np.array([where.get(name, -1) for name in fitted.classes])
    elif fitted.model.groups != model.groups:
        raise DataError(f"the model has {fitted.model.groups} groups, but {model.groups} are wanted.")
    arrays: dict[Hashable, Twofold] = {ROOT: rearrange_groups(fitted.counts.arrays[ROOT], order, model.groups)}
    own = {leaf.key: leaf for leaf in fitted.model.leaves}
    for leaf in model.leaves:
        if leaf.key in own:
            was, stats = own[leaf.key], fitted.counts.arrays[leaf.key]
            moved = convert_stats(leaf.family, stats, was.family, was.setting, leaf.setting)
        else:
            moved = Twofold.of(np.zeros((fitted.model.groups, leaf.family.width(leaf.setting))))
        arrays[leaf.key] = rearrange_groups(moved, order, model.groups)
    return Counts(arrays, fitted.counts.rows, fitted.counts.log_likelihood, fitted.counts.notes)


def sorted_levels(levels: set[Any] | Sequence[Any]) -> list[Any]:
    """Sort categories of any types: by type, then by value."""
    return sorted(set(levels), key=lambda x: (type(x).__name__ if not isinstance(x, (bool, int, float)) else "", x))


def unite_models(left: Fitted, right: Fitted, grow: Collection[Key] | None = None) -> tuple[ClassModel, list[Any]]:
    """Return a model with the classes and categories of both models, counted with the left one's anchors.

    If `grow` is given, only the text columns in it get new words.
    """
    if left.classes is None or right.classes is None:
        raise DataError(
            "only models of known classes can be merged: the groups of two mixtures are not the same groups."
        )
    refuse_unmergeable(left.model.leaves)
    mine, theirs = [{leaf.key for leaf in one.model.leaves} for one in (left, right)]
    if mine != theirs:
        odd = ", ".join(repr(key) for key in list(mine ^ theirs)[:5])
        raise DataError(f"the two models have different columns: {odd} is in one of them only.")
    classes = sorted_levels([*left.classes, *right.classes])
    if len({isinstance(name, str) for name in classes}) > 1:
        raise DataError(
            "the classes of one model are text and those of the other are not. Fit both with one or the other."
        )
    schema = unite_schemas(left.model.schema, right.model.schema, grow)
    leaves = [unite_leaf(leaf, schema, len(classes)) for leaf in left.model.leaves]
    return left.model.with_leaves(tuple(leaves), len(classes), schema), classes


def refuse_unmergeable(nodes: Sequence[Node]) -> None:
    for node in nodes:
        if not node.family.facts.mergeable:
            raise DataError(
                f"column {node.key!r} is {node.family.name}, whose counts depend on their fit and cannot be added "
                f"to those of another fit. Fit all the rows at once."
            )


def widen_model(model: ClassModel, counts: Counts, schema: Schema) -> tuple[ClassModel, Counts]:
    """Add room for the categories and words of a schema that contains the model's own."""
    if schema is model.schema:
        return model, counts
    leaves = tuple(unite_leaf(leaf, schema, model.groups) for leaf in model.leaves)
    wider = model.with_leaves(leaves, schema=schema)
    moved = {
        new.key: convert_stats(new.family, counts.arrays[new.key], old.family, old.setting, new.setting)
        for old, new in zip(model.leaves, wider.leaves, strict=True)
    }
    return wider, Counts({**counts.arrays, **moved}, counts.rows, counts.log_likelihood, counts.notes)


def unite_schemas(left: Schema, right: Schema, grow: Collection[Key] | None) -> Schema:
    known = {spec.key: spec for spec in right.fields}
    for spec in left.used:
        other = known.get(spec.key)
        if spec.kind is Kind.TEXT:
            if other is not None and (grow is None or spec.key in grow):
                left = left.with_field(unite_words(spec, other))
        elif not spec.kind.numeric and other is not None:
            levels = tuple(sorted_levels([*spec.levels, *other.levels]))
            left = left.with_field(replace(spec, levels=levels, wide=spec.wide or len(levels) > NARROW_LEVELS))
        elif spec.points is not None and other is not None and other.points is not None:
            left = left.with_field(replace(spec, points=spec.points.united(other.points)))
    return left


def unite_leaf(leaf: Node, schema: Schema, groups: int) -> Node:
    """Return the leaf with the categories, words or points of a united schema and this many groups."""
    family, setting = leaf.family, replace(leaf.setting, groups=groups, blank=None)
    fields, facts = [schema[column] for column in leaf.columns], leaf.family.facts
    if fields and (facts.kind.coded or facts.words or facts.counts_points):
        family, own = family.set_up(leaf.key, fields, groups, float(setting.floor))
        setting = replace(setting, levels=own.levels, step=own.step)
    return replace(leaf, family=family, setting=setting)


def refuse_overdrawn(model: ClassModel, before: Counts, after: Counts) -> None:
    remedy = "Give rows the model was fitted on."
    if (after[ROOT] < -SLACK).any():
        raise DataError(f"more rows of a class are to be forgotten than were learned. {remedy}")
    if after.rows <= SLACK:
        raise DataError("every row is to be forgotten, so nothing would be left to predict from. Keep some.")
    for leaf in model.leaves:
        if leaf.family.is_overdrawn(before.arrays[leaf.key], after.arrays[leaf.key], SLACK):
            raise DataError(f"column {leaf.key!r}: more is to be forgotten than was learned. {remedy}")


# -- vocabularies of text columns


def is_choosy(reading: Reading | None) -> bool:
    """Return whether a reading leaves words out by their frequency."""
    if reading is None:
        return False
    low, high = reading.min_df, reading.max_df
    any_word = low == 0 or (isinstance(low, int) and low <= 1)
    all_words = isinstance(high, float) and high >= 1.0
    return reading.min_count > 1 or reading.drop_top > 0 or not any_word or not all_words


def text_fields(schema: Schema) -> list[Field]:
    return [spec for spec in schema.used if spec.reading is not None and isinstance(spec.levels, Words)]


def unite_words(spec: Field, other: Field) -> Field:
    """Return a text column with the words of both models, which must define words in the same way."""
    assert spec.reading is not None
    if not isinstance(spec.levels, Words) or not isinstance(other.levels, Words) or other.reading is None:
        return spec
    for name in WORDING:
        mine, theirs = getattr(spec.reading, name), getattr(other.reading, name)
        if mine != theirs:
            raise DataError(
                f"column {spec.key!r} is read with {name}={mine!r} in one model and {name}={theirs!r} in the other. "
                "Give both the same with kinds."
            )
    words, new = spec.levels, other.levels.take(np.flatnonzero(spec.levels.columns(other.levels) < 0))
    if len(new):
        offsets = np.concatenate([words.offsets, new.offsets[1:] + words.offsets[-1]])
        both = Words(np.concatenate([words.data, new.data]), offsets)
        words = both.take(both.order())
    words = all_transitions(words, spec.reading.ngrams[0]) if spec.reading.analyzer == "steps" else words
    reason, _, counted = spec.why.rpartition("; ")
    known = counted == counted_words(len(spec.levels), spec.reading)
    why = f"{reason}; {counted_words(len(words), spec.reading)}" if known else spec.why
    return replace(spec, levels=words, why=why)


def refuse_unknown_words(schema: Schema, other: Schema) -> None:
    """Raise an error at the first word of the other table that the model does not have."""
    for spec in text_fields(schema):
        theirs: Any = other.by_key[spec.key].levels if spec.key in other.by_key else ()
        if not isinstance(theirs, Words) or not isinstance(spec.levels, Words) or is_choosy(spec.reading):
            continue
        new = np.flatnonzero(spec.levels.columns(theirs) < 0)
        if len(new):
            raise DataError(
                f"column {spec.key!r}: the word {theirs[int(new[0])]!r} is to be forgotten, but was never learned. "
                "Give rows the model was fitted on."
            )


def keep_every_word(kinds: Mapping[Key, Any]) -> tuple[dict[Key, Any], list[str]]:
    """Return kinds that keep every word of the text columns, and notes about columns declared otherwise."""
    choosy = [key for key, kind in kinds.items() if isinstance(kind, Reading) and is_choosy(kind)]
    kept = {
        key: replace(kind.unlimited, max_words=kind.max_words) if isinstance(kind, Reading) else kind
        for key, kind in kinds.items()
    }
    return kept, [
        f"column {key!r}: learned in parts, so every word is kept: how often one occurs in all rows is not known yet."
        for key in choosy
    ]


def find_open_texts(schema: Schema) -> set[Key]:
    """Return the text columns that accept new words: those without limits on word frequencies."""
    return {spec.key for spec in text_fields(schema) if not is_choosy(spec.reading)}


def find_outdated_notes(notes: Sequence[str], leaves: Sequence[Node]) -> list[str]:
    """Return the notes about missing words that no longer hold, because the column has words now."""
    worded = [leaf.key for leaf in leaves if isinstance(leaf.setting.levels, Words) and len(leaf.setting.levels)]
    return [note for note in notes if note.startswith(tuple(f"{wording.column(key)} {WORDLESS}" for key in worded))]


def describe_word_choice(schema: Schema, other: Schema, merged: bool) -> list[str]:
    """Return notes about text columns whose words were chosen by their frequency in one of the tables."""
    choosy = [spec.key for part in (schema, other) for spec in text_fields(part) if is_choosy(spec.reading)]
    text = (
        "its words were chosen in each model separately, so a word that only one model kept is counted in that "
        "model only."
        if merged
        else "its words are those that the first fit chose; others are left out."
    )
    return [f"column {key!r}: {text}" for key in dict.fromkeys(choosy)]


# -- networks


def unite_nets(left: Net, right: Net) -> Net:
    """Return a network with the categories of both networks, which must have the same edges."""
    if set(left.graph.names) != set(right.graph.names) or set(left.graph.edges) != set(right.graph.edges):
        odd = set(left.graph.edges) ^ set(right.graph.edges) or set(left.graph.names) ^ set(right.graph.names)
        raise DataError(
            f"the two networks differ: {next(iter(odd))!r} is in one of them only. Give both the same edges."
        )
    schema = unite_schemas(left.schema, right.schema, None)
    refuse_unmergeable(left.each)
    nodes = []
    for node in left.each:
        other = right.nodes[node.key]
        if node.columns:
            nodes.append(unite_leaf(node, schema, node.setting.groups))
        elif node.key == left.target == right.target:
            levels = tuple(sorted_levels([*node.setting.levels, *other.setting.levels]))
            nodes.append(replace(node, setting=replace(node.setting, levels=levels)))
        else:
            if node.key in left.cuts:
                if not (node.key in right.cuts and np.array_equal(left.cuts[node.key], right.cuts[node.key])):
                    raise DataError(
                        f"{node.key!r} is cut at other numbers in one network. Fit both with the same "
                        f"{remedies.either('cut={...}', '--cut')}."
                    )
            elif left is not right and tuple(node.setting.levels) != tuple(other.setting.levels):
                raise DataError(f"{node.key!r} has other levels in one network than in the other.")
            nodes.append(node)
    return replace(left, schema=schema, each=tuple(nodes))


def refuse_hidden(net: Net) -> None:
    """Raise an error if the network has hidden nodes: two fits do not agree on the meaning of their categories."""
    if net.hidden:
        name = net.discrete.names[net.hidden[0]]
        raise DataError(f"{name!r} is hidden: the levels that two fits give it are not the same. Use partial_fit.")


def refuse_below_zero(net: Net, counts: Counts) -> None:
    for node in net.each:
        stats = counts.arrays[node.key].value
        rows = stats[..., :1] if node.family.facts.signed else stats
        if (rows < -SLACK).any():
            raise DataError(
                f"node {node.key!r}: more is to be forgotten than was learned. Give rows the network was fitted on."
            )


def align_net_counts(counts: Counts, old: Net, new: Net) -> Counts:
    """Convert counts by node to the categories, anchors and axes of another network."""
    arrays: dict[Hashable, Twofold] = {}
    for node in new.each:
        stats, was, by_level = counts.arrays[node.key], old.nodes[node.key], levels_of(node) is not None
        stats = stats if by_level else convert_stats(node.family, stats, was.family, was.setting, node.setting)
        arrays[node.key] = stats.map(partial(rearrange, old=old, new=new, key=node.key, own=by_level))
    return replace(counts, arrays=arrays)


def convert_prior_tables(hypers: Mapping[Any, Any], old: Net, new: Net) -> dict[Any, Any]:
    """Convert prior counts given as tables, by an expert or a file, to the categories of another network."""
    tables = {node.key: hypers[node.key].get("alpha", np.zeros(0)) for node in new.each if levels_of(node) is not None}
    return {key: {"alpha": rearrange(alpha, old, new, key, True)} for key, alpha in tables.items() if alpha.ndim == 2}


def rearrange(array: np.ndarray, old: Net, new: Net, key: Key, own: bool, guess: bool = False) -> np.ndarray:
    """Move (configurations x rest) of a node to the parents, in their order, and the categories of another network.

    The rest is the axis of the node's own categories if `own`. Categories that `old` lacks get zeros. With `guess`,
    they get the mean of the others, and categories correspond if they are the same as text.
    """
    before, after = (
        [
            net.graph.names[parent]
            for parent in net.graph.parents[net.graph.number[key]]
            if net.graph.names[parent] in net.discrete.number
        ]
        for net in (old, new)
    )
    axes, rest = ([*after, key], ()) if own else (after, array.shape[1:])
    sizes = [len(levels_of(old.nodes[name]) or ()) for name in ([*before, key] if own else before)]
    laid = array.reshape((*sizes, *rest))
    turned = laid.transpose([*(before.index(name) for name in after), *range(len(before), laid.ndim)])
    spelt = str if guess else lambda level: level
    places = [_places(old.nodes[name], new.nodes[name], spelt) for name in axes]
    if any(size in own_places for size, own_places in zip(turned.shape, places, strict=False)):
        # One place after the last category of `old` for those that it lacks.
        room = [(0, 1) if axis < len(axes) else (0, 0) for axis in range(turned.ndim)]
        turned = np.pad(turned, room, mode="mean" if guess else "constant")
    # An axis in front, because the table of a number alone may have none.
    found: np.ndarray = turned[None][np.ix_([0], *places, *map(range, rest))]
    return found.reshape((new.nodes[key].setting.groups, *((-1,) if own else rest)))


def _places(old: Node, new: Node, spelt: Callable[[Any], Any]) -> list[int]:
    """Return the position in `old` of each category of `new`; the position after the last for one that it lacks."""
    known = {spelt(level): place for place, level in enumerate(levels_of(old) or ())}
    return [known.get(spelt(level), len(known)) for level in levels_of(new) or ()]
