"""Convert a fitted model to a document and arrays, and back. Nothing that is read is trusted.

The document names only registered families and priors, never a class to import. Invalid content raises an error.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from softcount import priors
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.ranges import NotNegative, Positive
from softcount.errors import ModelFileError
from softcount.families import FAMILIES, Family, How, Setting
from softcount.families import Params as Own
from softcount.files import codec
from softcount.files.archive import naming, write
from softcount.files.history import history_document, history_from, record_document, record_from
from softcount.files.schema import schema_document, schema_from
from softcount.files.validate import check_model, check_structure, estimate_again
from softcount.fitted.fitted import FITTED
from softcount.learn.record import Learned
from softcount.models.base import MODELS, Model
from softcount.models.nodes import Imagined, Node
from softcount.networks.network import Graph, Network
from softcount.priors import Older
from softcount.table.schema import Key, Schema

NodeArrays = dict[tuple[str, str], np.ndarray]
"""Arrays of one node by section and name."""
REGISTERED_BY = {"network": "softcount.fitted.network", "hidden-chain": "softcount.fitted.states"}
"""Modules that register a model and the class that answers for it; loaded with the first file of such a model."""
SECTIONS = ("counts", "params", "hyper", "fixed")
PRIORS = ("Beta", "Dirichlet", "Expert", "Gamma", "NormalInverseChi2", "NormalInverseWishart", "NormalKnownVariance")


class FiledNode(Struct, frozen=True, forbid_unknown_fields=True):
    """A node: its family by name with the family's parameters, and its setting.

    `groups` is None if the node has the groups of a class model.
    """

    key: Any
    columns: list[Any]
    family: str
    own: dict[str, Any]
    levels: Any
    anchor: list[float]
    scale: list[Positive]
    floor: NotNegative
    groups: Annotated[int, Meta(ge=1)] | None


class FiledModel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The document of a model; parts that other modules read are not typed here."""

    schema: Any
    leaves: list[FiledNode]
    stacks: list[list[int]]
    """The nodes whose arrays are stacked in the same entries, by place; the classes come before all leaves."""
    model: str
    structure: dict[str, Any]
    how: tuple[How, How]
    classes: list[Any] | None
    target: Any
    prior: Any
    class_prior: Any
    estimate: How
    missing: list[tuple[Any, float]]
    rows: float
    history: Any
    record: Any
    estimator: dict[str, Any]
    dependent: list[tuple[Any, Any, float]] | None = None
    scorer: dict[str, Any] | None = None


def save_model(model: Learned, path: Any, settings: codec.Document | None = None) -> None:
    """Write a fitted model; `settings` are those of the estimator."""
    arrays: codec.Arrays = {}
    write(path, document_of(model, arrays) | {"estimator": settings or {}}, arrays)


def load_model(path: Any, document: codec.Document, arrays: codec.Arrays) -> Any:
    """Return the fitted model in the content of a file."""
    with naming(path, "the model does not make sense", codec.UNSOUND):
        return model_of(msgspec.convert(document, FiledModel), arrays)


# -- model -> document


def document_of(model: Learned, arrays: codec.Arrays) -> codec.Document:
    """Encode a fitted model as JSON; its arrays are added to `arrays`."""
    follow = _find_following(model)
    class_prior = model.class_prior
    if class_prior is not None and not isinstance(class_prior, str):
        class_prior = np.asarray(class_prior, dtype=float).tolist()
    filed = FiledModel(
        schema=schema_document(model.schema, arrays),
        leaves=[_file_node(node, model.model) for node in model.model.nodes.columns],
        stacks=_stack_arrays(arrays, [_node_arrays(model, key, key in follow) for key in _keys_of(model.model)]),
        model=model.model.name,
        structure=codec.encode(model.model.filed(), {}, "structure"),
        how=(model.imagined.how, model.imagined.hows.get(ROOT, model.imagined.how)),
        classes=None if model.classes is None else [codec.plain(c) for c in model.classes],
        target=codec.plain(model.target),
        prior=value_document(model.prior),
        class_prior=class_prior,
        estimate=model.estimate,  # type: ignore[arg-type]
        missing=[(codec.plain(key), float(n)) for key, n in model.missing.items()],
        rows=float(model.counts.rows),
        history=history_document(model),
        record=record_document(model.record),
        estimator={},
        **_file_own(model, arrays),
    )
    found: codec.Document = msgspec.to_builtins(filed)
    return found


def _file_own(model: Learned, arrays: codec.Arrays) -> codec.Document:
    """Encode the filed fields that not every kind of model has, such as the scorer, unless they have their defaults."""
    names, defaults = model.__struct_fields__, model.__struct_defaults__
    usual = dict(zip(names[-len(defaults) :], defaults, strict=True))
    own = [name for name in FiledModel.__struct_fields__ if name in usual and name not in Learned.__struct_fields__]
    found = {name: codec.encode(getattr(model, name), arrays, name) for name in own}
    return {name: part for name, part in found.items() if part != codec.encode(usual[name], {}, name)}


def _find_following(model: Learned) -> set[Key]:
    """Return the large leaves whose parameters equal those estimated from counts and prior; they are not stored."""
    large = {x.key for x in model.model.nodes.columns if model.counts.arrays[x.key].hi.size >= codec.SMALL}
    if not large:
        return set()
    again = estimate_again(model.model, model.counts, model.imagined, model.estimate)
    pairs = ((key, again[key], model.estimates[key]) for key in large)
    return {key for key, a, b in pairs if a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)}


def _keys_of(model: Model) -> list[Key]:
    """Return the keys of all nodes that have arrays: the classes, if it has some, and the columns."""
    return [*([ROOT] if ROOT in model.nodes.places else []), *(node.key for node in model.nodes.columns)]


def _node_arrays(model: Learned, key: Key, follows: bool) -> NodeArrays:
    """Return the arrays of a node by section and name; without parameters if these follow from counts and prior."""
    doubles = {
        "params": {} if follows else model.estimates[key],
        "hyper": model.imagined.hypers[key],
        "fixed": model.imagined.fixed.get(key, {}),
    }
    found = {("counts", name): array for name, array in codec.counts_parts(model.counts.arrays[key]).items()}
    for section, own in doubles.items():
        found |= {(section, name): np.asarray(array, dtype=np.float64, order="C") for name, array in own.items()}
    return found


def _stack_arrays(arrays: codec.Arrays, each: Sequence[NodeArrays]) -> list[list[int]]:
    """Stack the arrays of nodes with equal names, types and shapes; return the places of the nodes in each stack.

    Stacked, 10,000 columns need as few entries as ten.
    """
    alike: dict[Any, list[int]] = {}
    for place, own in enumerate(each):
        form = tuple((name, array.dtype.str, array.shape) for name, array in own.items())
        alike.setdefault(form, []).append(place)
    for stack, (form, places) in enumerate(alike.items()):
        for (section, name), *_ in form:
            arrays[f"{section}/{stack}/{name}"] = np.stack([each[place][section, name] for place in places])
    return list(alike.values())


def _file_node(node: Node, model: Model) -> FiledNode:
    setting, columns = node.setting, [codec.plain(column) for column in node.columns]
    return FiledNode(
        codec.plain(node.key), columns, **family_document(node.family),
        levels=codec.plain(node.family.filed_levels(setting)), anchor=setting.anchor.tolist(),
        scale=setting.scale.tolist(), floor=float(setting.floor), groups=None if model.one_class else setting.groups,
    )  # fmt: skip


def family_document(family: Family) -> codec.Document:
    """Encode a family as its name and its parameters."""
    return {"family": family.name, "own": codec.encode(family, {}, "family")}


def value_document(value: Any) -> Any:
    """Encode a prior or a setting of an estimator as JSON; families and priors are objects that name their class."""
    if isinstance(value, Mapping):
        return {"columns": [[value_document(key), value_document(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [value_document(part) for part in value]}
    if isinstance(value, (list, range, set, frozenset)):
        return [value_document(part) for part in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Family):
        return family_document(value)
    if isinstance(value, Older):
        return value_document(value.prior)
    if isinstance(value, Graph):
        return value_document(value.edges)
    if isinstance(value, Network) or hasattr(value, "edges_"):
        return 1.0  # the prior of a network: its counts are among the prior counts of the model
    if type(value).__name__ in PRIORS:
        values = {name: tuple(part) if isinstance(part, list) else part for name, part in asdict(value).items()}
        found = {name: x.tolist() if isinstance(x, np.ndarray) else codec.plain(x) for name, x in values.items()}
        return {"prior": type(value).__name__, "values": found}
    return codec.plain(value)


# -- document -> model


def model_of(filed: FiledModel, arrays: codec.Arrays) -> Learned:
    """Return the fitted model that a document and its arrays describe, after checking it."""
    schema = schema_from(filed.schema, arrays)
    room = 8 * sum(array.size for array in arrays.values())  # packed counts have one bit per cell
    if filed.model in REGISTERED_BY:
        import_module(REGISTERED_BY[filed.model])
    codec.require(filed.model in MODELS, f"{filed.model!r} is not one of {', '.join(MODELS)}.")
    kind = MODELS[filed.model]
    structure: Any = codec.decode(kind.filed_as, filed.structure, {}, "structure", "its structure")
    groups = structure.groups
    codec.require(groups <= room, f"groups is {groups}, of which there is no room in the file.")
    leaves = _nodes_from(filed.leaves, groups, schema, room)
    check_structure(leaves, schema, hidden=filed.model != "star")
    model = kind.from_filed(structure, schema, leaves)
    parts = _unstack_arrays(filed.stacks, arrays, _keys_of(model))
    hypers, fixed = ({key: own[section] for key, own in parts.items()} for section in ("hyper", "fixed"))
    imagined = Imagined(hypers, filed.how[0], {ROOT: filed.how[1]}, {key: own for key, own in fixed.items() if own})
    own = {key: _check_params(model.nodes[key], parts[key]["params"]) for key in parts if parts[key]["params"]}
    counts = _read_counts(model, filed, parts, groups)
    if len(own) < len(parts):  # parameters that follow from counts and prior are not stored
        again = estimate_again(model, counts, imagined, filed.estimate)
        own |= {key: again[key] for key in parts if key not in own}
    classes, known_classes = filed.classes, None
    if classes is not None:
        codec.require(len(classes) == groups, f"there are {len(classes)} class names for {groups} classes.")
        known_classes = groups
    for leaf in leaves:  # the target of a network is a node
        levels = leaf.family.levels_of(leaf.setting) if leaf.key == filed.target and classes is None else None
        known_classes = known_classes if levels is None else len(levels)
    facts: codec.Document = {
        "model": model, "estimates": model.nodes.params(own), "counts": counts, "imagined": imagined,
        "classes": classes, "target": None if filed.target is None else codec.column_from(filed.target),
        "prior": value_from(filed.prior), "class_prior": filed.class_prior, "estimate": filed.estimate,
        "missing": {codec.column_from(key): n for key, n in filed.missing},
        **history_from(filed.history, groups),
        "record": record_from(filed.record, schema, known_classes),
    }  # fmt: skip
    found = FITTED.get(filed.model, Learned)(**facts, **_scoring_from(filed, arrays, model))
    check_model(found)
    return found


def _scoring_from(filed: FiledModel, arrays: codec.Arrays, model: Any) -> codec.Document:
    """Return how the groups are scored as keyword arguments of `Fitted`; other kinds of models refuse them."""
    found: codec.Document = {}
    if filed.dependent is not None:
        found["dependent"] = tuple((codec.column_from(a), codec.column_from(b), x) for a, b, x in filed.dependent)
        known = all(key in model.schema.by_key for a, b, _ in found["dependent"] for key in (a, b))
        codec.require(known, "columns that depend on each other are not in the table.")
    if filed.scorer is not None:
        from softcount.files.scorers import scorer_from  # loads the ensemble's classes

        found["scorer"] = scorer_from(filed.scorer, arrays, model, filed.classes is not None)
    return found


def _nodes_from(filed: list[FiledNode], groups: int, schema: Schema, room: int) -> tuple[Node, ...]:
    """Return all nodes; nodes without columns, whose width only the document states, may have `room` cells in total."""
    nodes: list[Node] = []
    for x in filed:
        key, columns = codec.key_of(x.key), codec.key_of(x.columns)
        family, specs = family_from({"family": x.family, "own": x.own}, key), [schema[column] for column in columns]
        parts = family.setting_parts(codec.key_of(x.levels), specs, room)
        own = groups if x.groups is None else x.groups
        codec.require(own <= max(room, groups), f"column {key!r} has impossible groups.")
        anchor, scale = np.array(x.anchor), np.array(x.scale)
        written = specs[0].written if len(specs) == 1 else None
        keys = columns or (key,)
        setting = Setting(keys, own, anchor=anchor, scale=scale, floor=x.floor, written=written, **parts)
        nodes.append(Node(key, columns, family, setting))
        room -= 0 if columns else len(setting.levels)
    return tuple(nodes)


def family_from(x: codec.Document, key: Key) -> Family:
    """Return a family from its name and its parameters."""
    codec.require(x["family"] in FAMILIES, f"family {x['family']!r} is not known to this version.")
    return codec.decode(FAMILIES[x["family"]], x["own"], {}, "family", f"the family {x['family']} of column {key!r}")


def _unstack_arrays(
    stacks: list[list[int]], arrays: codec.Arrays, keys: Sequence[Key]
) -> dict[Key, dict[str, codec.Arrays]]:
    """Return the arrays of every node by section and name."""
    wholes: dict[str, NodeArrays] = {}
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        if section in SECTIONS:
            stack, _, part = rest.partition("/")
            wholes.setdefault(stack, {})[section, part] = array
    found: dict[Key, dict[str, codec.Arrays]] = {}
    for number, places in enumerate(stacks):
        whole = wholes.get(str(number), {})
        for (section, part), array in whole.items():
            fits = array.shape[:1] == (len(places),)
            codec.require(fits, f"the {section} of {len(places)} columns are not those of each.")
            sound = section == "counts" or array.dtype == np.float64
            codec.require(sound, f"its {part} does not make sense: it holds {array.dtype}, not float64.")
        for at, place in enumerate(places):
            known = 0 <= place < len(keys) and keys[place] not in found
            codec.require(known, f"column number {place!r} is there twice, or it is not.")
            own: dict[str, codec.Arrays] = {section: {} for section in SECTIONS}
            for (section, part), array in whole.items():
                own[section][part] = array[at, ...]
            found[keys[place]] = own
    for key in keys:
        codec.require(found.get(key, {}).get("hyper"), f"the hyper of column {key!r} is not there.")
    return {key: found[key] for key in keys}


def _check_params(node: Node, params: Own) -> Own:
    wrong = node.family.misshapen(params, node.setting, node.setting.groups) or node.family.check_params(params)
    what = "the shares of the classes make" if node.key == ROOT else f"column {node.key!r} makes"
    codec.require(not wrong, f"{what} no sense: {wrong}.")
    return params


def _read_counts(model: Model, filed: FiledModel, parts: dict[Key, dict[str, codec.Arrays]], groups: int) -> Counts:
    found: dict[Hashable, Twofold] = {}
    for key, own in parts.items():
        node = model.nodes[key]
        shape = (groups,) if key == ROOT else (node.setting.groups, node.family.width(node.setting))
        found[key] = codec.counts_from(own["counts"], shape, "the classes" if key == ROOT else f"column {key!r}")
    return Counts(found, filed.rows, filed.history["log_likelihood"] or 0.0)


def value_from(value: Any) -> Any:
    """Decode a prior or a setting from JSON."""
    if isinstance(value, list):
        return [value_from(part) for part in value]
    if not isinstance(value, dict):
        return value
    match sorted(value):
        case ["columns"]:
            return {value_from(key): value_from(part) for key, part in value["columns"]}
        case ["tuple"]:
            return tuple(value_from(part) for part in value["tuple"])
        case ["family", "own"]:
            return family_from(value, "every column")
        case ["prior", "values"]:
            codec.require(value["prior"] in PRIORS, f"{value['prior']!r} is not one of {', '.join(PRIORS)}.")
            values = {}
            for name, part in value["values"].items():
                numbers = isinstance(part, list) and part and all(isinstance(x, (int, float, list)) for x in part)
                values[name] = np.array(part, dtype=float) if numbers else codec.key_of(part)
            return getattr(priors, value["prior"])(**values)
    raise ModelFileError(f"a setting has the parts {sorted(value)}.")
