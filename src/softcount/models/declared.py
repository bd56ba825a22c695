"""From what the user says of columns, and what looking told, to leaves with families."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softcount.errors import DataError
from softcount.families import FAMILIES, Family, Joint, Setting, Text
from softcount.families.joint import joint_of
from softcount.models.nodes import Node
from softcount.table import wording
from softcount.table.schema import Field, Key, Kind, Schema
from softcount.text import Reading

BY_KIND = {Kind.CATEGORICAL: "categorical", Kind.REAL: "normal", Kind.POSITIVE: "lognormal", Kind.COUNT: "poisson"}
SYNONYMS = {kind.value: name for kind, name in BY_KIND.items()}
LEFT_OUT = ("ignore", "identifier", "constant")
BAG = "counts"
"""The key of the one block that a sparse matrix is."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What the user said of columns: families by column or block, kinds forced by them, columns to leave out."""

    families: dict[Key, Family] = field(default_factory=dict)
    forced: dict[Key, Kind | Reading | str] = field(default_factory=dict)
    everything: Family | None = None

    @property
    def blocks(self) -> dict[tuple[Key, ...], Family]:
        return {key: family for key, family in self.families.items() if isinstance(key, tuple)}


def read_kinds(kinds: Any) -> Declared:
    """Read the user's `kinds`: a mapping of column or tuple to family name or instance, or one family for all."""
    if kinds is None:
        return Declared()
    if isinstance(kinds, (str, Family)):
        return Declared(everything=family_of(kinds, "every column"))
    if not isinstance(kinds, Mapping):
        raise DataError(f"kinds is a mapping of columns to kinds, or one kind for all of them, not {kinds!r}.")
    declared = Declared()
    for key, said in kinds.items():
        if isinstance(said, str) and said in LEFT_OUT:
            declared.forced[key] = "ignore"
            continue
        family = family_of(said, key)
        if isinstance(key, tuple) and family.name in ("categorical", "bernoulli"):
            family = Joint()
        if isinstance(key, tuple) != family.block or (isinstance(key, tuple) and not key):
            raise DataError(_block_mismatch(key, family))
        _refuse_trials(key, family)
        declared.families[key] = family
        for column in key if isinstance(key, tuple) else (key,):
            if column in declared.forced:
                raise DataError(f"kinds names column {column!r} twice. A column has one kind, alone or in one block.")
            declared.forced[column] = kind_of(family)
    return declared


def kind_of(family: Family) -> Kind | Reading:
    """What a family makes of its columns: their kind, or for text how documents are read."""
    return family.reading if isinstance(family, Text) else family.kind


def _refuse_trials(key: Any, family: Family) -> None:
    if family.name == "binomial" and len(key) != 2:
        raise DataError(f"binomial takes two columns, successes and trials, not {key!r}.")


def _block_mismatch(key: Key, family: Family) -> str:
    if isinstance(key, tuple) and not key:
        return f"kinds names a block of no columns as {family.name}. Give a tuple of names."
    if family.block:
        return f"{family.name} is for a block of columns; give a tuple of names instead of {key!r}."
    return f"{family.name} is for a single column, but {key!r} names {len(key)} of them."  # type: ignore[arg-type]


def family_of(said: Any, key: Key) -> Family:
    """A family instance from its name or itself."""
    if isinstance(said, Family):
        return said
    name = SYNONYMS.get(str(said), str(said))
    if name not in FAMILIES:
        close = difflib.get_close_matches(name, [*FAMILIES, *SYNONYMS, "ignore"], 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        known = ", ".join(sorted({*FAMILIES, *SYNONYMS, "ignore"} - {"joint"}))
        raise DataError(f"column {key!r}: {said!r} is not a kind we know.{hint} Known: {known}.")
    return FAMILIES[name]()


def nodes_of(
    schema: Schema, declared: Declared, groups: int, bag: int | None = None, floor: float = 1e-12
) -> tuple[Node, ...]:
    """A leaf for every block and for every used column outside them, in the order of the table."""
    if bag:
        family = declared.everything or FAMILIES["multinomial"]()
        if family.name != "multinomial":
            raise DataError(
                f"a sparse table is one block of counts, which is multinomial, not {family.name}. "
                "Give the rows as a dense array or a frame."
            )
        return (Node(BAG, (), family, Setting((BAG,), groups, tuple(range(bag)), floor=floor)),)
    if declared.everything is not None and declared.everything.block:
        key = tuple(spec.key for spec in schema.used)
        return (block_leaf(key, declared.everything, schema, groups, floor),)
    blocks = declared.blocks
    taken = {column for block in blocks for column in block}
    leaves = [
        column_leaf(spec, declared.families.get(spec.key) or declared.everything, groups, floor)
        for spec in schema.used
        if spec.key not in taken
    ]
    leaves += [block_leaf(key, family, schema, groups, floor) for key, family in blocks.items()]
    return tied_units(leaves)


def column_leaf(spec: Field, family: Family | None, groups: int, floor: float) -> Node:
    if spec.kind is Kind.TEXT:
        family = family or Text.of(spec.reading or Reading())
        if not isinstance(family, Text):
            raise DataError(f"column {spec.key!r} is text, which {family.name} cannot model. Declare it text.")
        return Node(spec.key, (spec.key,), family, Setting((spec.key,), groups, spec.levels, floor=floor))
    family = family or FAMILIES[BY_KIND[spec.kind]]()
    if family.name == "bernoulli" and len(spec.levels) > 2:
        raise DataError(
            f"column {spec.key!r} is Bernoulli, but has {len(spec.levels)} values: "
            f"{', '.join(wording.cell(level) for level in list(spec.levels)[:5])}. "
            "Declare it categorical."
        )
    anchor, scale = np.array([spec.anchor]), np.array([spec.scale])
    levels = spec.levels if family.discrete else (spec.key,)
    return Node(spec.key, (spec.key,), family, Setting((spec.key,), groups, levels, anchor, scale, floor))


def block_leaf(key: tuple[Key, ...], family: Family, schema: Schema, groups: int, floor: float) -> Node:
    fields = [schema[column] for column in key]
    if isinstance(family, Joint):
        empty = [spec.key for spec in fields if not spec.levels]
        if empty:
            raise DataError(f"column {empty[0]!r} of the block {key!r} has no values. Leave it out of the block.")
        family, levels = joint_of([spec.levels for spec in fields], groups)
        return Node(key, key, family, Setting(key, groups, levels, floor=floor))
    _refuse_trials(key, family)
    anchor = np.array([spec.anchor for spec in fields])
    scale = np.array([spec.scale for spec in fields])
    if getattr(family, "covariance", None) == "spherical":  # one variance for all columns, so one unit
        scale = np.full(len(scale), scale.min())
    return Node(key, key, family, Setting(key, groups, tuple(key), anchor, scale, floor))


def tied_units(leaves: Iterable[Node]) -> tuple[Node, ...]:
    """Columns that share a variance are counted in one unit."""
    leaves = list(leaves)
    for i, leaf in enumerate(leaves):
        if getattr(leaf.family, "tied", None) in ("columns", "both"):
            peers = [x.setting.scale[0] for x in leaves if x.family == leaf.family]
            setting = leaf.setting
            same = Setting(
                setting.keys, setting.groups, setting.levels, setting.anchor, np.array([min(peers)]), setting.floor
            )
            leaves[i] = Node(leaf.key, leaf.columns, leaf.family, same)
    return tuple(leaves)


def priors_of(prior: Any, leaves: Iterable[Node], default: Any) -> dict[Key, Any]:
    """Each leaf's prior: from a mapping by column, or the same for all."""
    leaves = list(leaves)
    if not isinstance(prior, Mapping):
        return {leaf.key: prior for leaf in leaves}
    unknown = [key for key in prior if key not in {leaf.key for leaf in leaves}]
    if unknown:
        raise DataError(f"prior names {unknown[0]!r}, which is not a column of the model.")
    return {leaf.key: prior.get(leaf.key, default) for leaf in leaves}
