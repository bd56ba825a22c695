"""Which plate every leaf goes on."""

from __future__ import annotations

import numpy as np

from softcount.families import Joint
from softcount.models.bags import Bag
from softcount.models.block import Block
from softcount.models.nodes import Node
from softcount.models.plates import Codes, Features, JointCodes, Kernels, Plate, Reals
from softcount.table.schema import Kind, Schema


def plates_of(leaves: tuple[Node, ...], schema: Schema, kernels: Kernels) -> tuple[Plate, ...]:
    """Every leaf on the plate whose kernel suits it."""
    plates: list[Plate] = []
    normal = [leaf for leaf in leaves if leaf.family.name in ("normal", "lognormal")]
    if normal:
        plates.append(_reals(tuple(normal), schema, kernels))
    narrow: list[Node] = []
    for leaf in leaves:
        if isinstance(leaf.family, Joint):
            where = tuple(schema.places[c] for c in leaf.columns)
            plates.append(JointCodes((leaf,), "", (), kernels, (("(joint)", leaf.key),), where))
        elif leaf.family.discrete and schema.places[leaf.key].store == "codes":
            narrow.append(leaf)
        elif leaf.family.discrete:
            plates.append(Codes((leaf,), "wide", (schema.places[leaf.key].slot,), kernels, (("(wide)", leaf.key),)))
        elif leaf.family.kind is Kind.TEXT or not leaf.columns:
            slot = schema.places[leaf.key].slot if leaf.columns else 0
            plates.append(Bag((leaf,), (leaf.key,), slot, kernels))
        elif leaf.family.name == "multinormal":
            plates.append(Block((leaf,), tuple(schema.places[c].slot for c in leaf.columns), (leaf.key,), kernels))
        elif leaf.family.name not in ("normal", "lognormal"):
            plates.append(Features((leaf,), tuple(schema.places[c].slot for c in leaf.columns), (leaf.key,)))
    if narrow:
        slots = tuple(schema.places[leaf.key].slot for leaf in narrow)
        plates.append(Codes(tuple(narrow), "codes", slots, kernels, ("(codes)",)))
    return tuple(plates)


def _reals(leaves: tuple[Node, ...], schema: Schema, kernels: Kernels) -> Reals:
    slots = tuple(schema.places[leaf.key].slot for leaf in leaves)
    anchors = np.array([float(leaf.setting.anchor[0]) for leaf in leaves])
    scales = np.array([float(leaf.setting.scale[0]) for leaf in leaves])
    return Reals(leaves, slots, anchors, scales, kernels)
