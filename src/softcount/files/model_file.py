"""Convert a fitted model to a document and arrays, and back. Nothing that is read is trusted.

The document names only registered families and priors, never a class to import. Invalid content raises an error.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict

from softcount import priors
from softcount.core.counts import ROOT, Counts
from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.families import FAMILIES, Family, How, Setting
from softcount.families import Params as Own
from softcount.files.archive import naming, write
from softcount.files.codec import (
    SMALL,
    UNSOUND,
    Arrays,
    Document,
    column_from,
    counts_from,
    counts_parts,
    decode,
    encode,
    key_of,
    plain,
    require,
)
from softcount.files.history import calibration_from, history_document, history_from, record_document, record_from
from softcount.files.schema import array_name, check_reading, schema_document, schema_from
from softcount.files.validate import check_model, check_structure, estimate_again
from softcount.fitted.fitted import Fitted
from softcount.learn.record import Learned
from softcount.models.align import Older
from softcount.models.base import MODELS, ClassModel, Model
from softcount.models.nodes import Imagined, Node
from softcount.table.schema import Key, Schema

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
    scale: list[float]
    floor: Annotated[float, Meta(ge=0)]
    groups: Annotated[int, Meta(ge=1)] | None
    follows: bool
    """Whether its parameters are recomputed from counts and prior instead of being stored."""


class FiledModel(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The document of a model; parts that other modules read are not typed here."""

    schema: Any
    leaves: list[FiledNode]
    places: dict[str, list[list[int]]]
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
    calibration: Any = None
    dependent: list[tuple[Any, Any, float]] | None = None
    aode: Any = None
    ensemble: Any = None
    column_weights: Any = None
    linear: Any = None


def save_model(model: Learned, path: Any, settings: Document | None = None) -> None:
    """Write a fitted model; `settings` are those of the estimator."""
    arrays: Arrays = {}
    write(path, document_of(model, arrays) | {"estimator": settings or {}}, arrays)


def load_model(path: Any, document: Document, arrays: Arrays) -> tuple[Any, Document]:
    """Return the fitted model in the content of a file, and its estimator's settings."""
    with naming(path, "the model does not make sense", UNSOUND):
        filed = msgspec.convert(document, FiledModel)
        return model_of(filed, arrays), filed.estimator


# -- model -> document


def document_of(model: Learned, arrays: Arrays) -> Document:
    """Encode a fitted model as JSON; its arrays are added to `arrays`."""
    nodes = model.model.nodes.columns
    follow = _find_following(model)
    each: dict[str, list[Arrays]] = {
        "counts": [counts_parts(model.counts.arrays[x.key]) for x in nodes],
        "params": [{} if x.key in follow else _doubles(model.estimates[x.key]) for x in nodes],
        "hyper": [_doubles(model.imagined.hypers[x.key]) for x in nodes],
        "fixed": [_doubles(model.imagined.fixed.get(x.key, {})) for x in nodes],
    }
    if ROOT in model.estimates:
        root = {"shares": model.shares, **model.imagined.hypers[ROOT]}
        if ROOT in model.imagined.fixed:
            root["fixed"] = model.imagined.fixed[ROOT]["probability"][0]
        arrays |= {f"root/{name}": value for name, value in _doubles(root).items()}
        arrays |= {f"groups/{name}": value for name, value in counts_parts(model.counts.arrays[ROOT]).items()}
    class_prior = model.class_prior
    if class_prior is not None and not isinstance(class_prior, str):
        class_prior = np.asarray(class_prior, dtype=float).tolist()
    filed = FiledModel(
        schema=schema_document(model.schema, arrays),
        leaves=[_file_node(node, model.model, node.key in follow) for node in nodes],
        places={section: _put_alike(arrays, section, own) for section, own in each.items()},
        model=model.model.name,
        structure=encode(model.model.filed(), {}, "structure"),
        how=(model.imagined.how, model.imagined.hows.get(ROOT, model.imagined.how)),
        classes=None if model.classes is None else [plain(c) for c in model.classes],
        target=plain(model.target),
        prior=prior_document(model.prior),
        class_prior=class_prior,
        estimate=model.estimate,  # type: ignore[arg-type]
        missing=[(plain(key), float(n)) for key, n in model.missing.items()],
        rows=float(model.counts.rows),
        history=history_document(model),
        record=record_document(model.record),
        estimator={},
        **(_file_scorers(model, arrays) if isinstance(model, Fitted) else {}),
    )
    found: Document = msgspec.to_builtins(filed)
    return found


def _file_scorers(model: Fitted, arrays: Arrays) -> Document:
    """Encode the scorers of a classifier that are present."""
    found = {
        "calibration": model.calibration,
        "dependent": model.dependent,
        "aode": model.aode,
        "ensemble": model.ensemble if model.aode is None else None,
        "column_weights": model.weights,
        "linear": model.linear,
    }
    return {name: encode(own, arrays, name) for name, own in found.items() if own is not None}


def _find_following(model: Learned) -> set[Key]:
    """Return the large leaves whose parameters equal those estimated from counts and prior; they are not stored."""
    large = {x.key for x in model.model.nodes.columns if model.counts.arrays[x.key].hi.size >= SMALL}
    if not large:
        return set()
    again = estimate_again(model.model, model.counts, model.imagined, model.estimate)
    pairs = ((key, again[key], model.estimates[key]) for key in large)
    return {key for key, a, b in pairs if a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)}


def _doubles(values: Mapping[str, np.ndarray]) -> Arrays:
    return {name: np.asarray(value, dtype=np.float64, order="C") for name, value in values.items()}


def _file_node(node: Node, model: Model, follows: bool) -> FiledNode:
    setting, columns = node.setting, [plain(column) for column in node.columns]
    return FiledNode(
        plain(node.key), columns, **family_document(node.family), levels=plain(node.family.filed_levels(setting)),
        anchor=setting.anchor.tolist(), scale=setting.scale.tolist(), floor=float(setting.floor),
        groups=None if model.one_class else setting.groups, follows=follows,
    )  # fmt: skip


def family_document(family: Family) -> Document:
    """Encode a family as its name and its parameters."""
    return {"family": family.name, "own": encode(family, {}, "family")}


def prior_document(prior: Any) -> Any:
    """Encode a prior as JSON: a number, a word, one of the classes in PRIORS by name, or a mapping by column."""
    if prior is None or isinstance(prior, (bool, int, float, str, np.generic)):
        return plain(prior)
    if isinstance(prior, Older):
        return prior_document(prior.prior)
    if type(prior).__name__ in PRIORS:
        values = {name: tuple(x) if isinstance(x, list) else x for name, x in asdict(prior).items()}
        found = {name: x.tolist() if isinstance(x, np.ndarray) else plain(x) for name, x in values.items()}
        return {"prior": type(prior).__name__, "values": found}
    if isinstance(prior, dict):
        return {"columns": [[plain(key), prior_document(value)] for key, value in prior.items()]}
    raise DataError(f"prior {prior!r} cannot be kept in a model file.")


# -- document -> model


def model_of(filed: FiledModel, arrays: Arrays) -> Learned:
    """Return the fitted model that a document and its arrays describe, after checking it."""
    schema = schema_from(filed.schema, arrays)
    room = 8 * sum(array.size for array in arrays.values())  # packed counts have one bit per cell
    if filed.model == "network":
        import softcount.models.network
    if filed.model == "hidden-chain":
        import softcount.models.hidden_chain  # noqa: F401
    require(filed.model in MODELS, f"{filed.model!r} is not one of {', '.join(MODELS)}.")
    kind = MODELS[filed.model]
    structure: Any = decode(kind.filed_as, filed.structure, {}, "structure", "its structure")
    groups = structure.groups
    require(groups <= room, f"groups is {groups}, of which there is no room in the file.")
    leaves = _nodes_from(filed.leaves, groups, schema, room)
    check_structure(leaves, schema, hidden=filed.model != "star")
    model = kind.from_filed(structure, schema, leaves)
    follow = {leaf.key for leaf, own in zip(leaves, filed.leaves, strict=True) if own.follows}
    parts = FiledArrays(arrays, [array_name(leaf.key) for leaf in leaves], filed.places)
    imagined = _read_imagined(model, filed.how, parts)
    own = _read_params(model, parts, follow, groups)
    counts = _read_counts(model, filed, parts, groups)
    if follow:
        again = estimate_again(model, counts, imagined, filed.estimate)
        own |= {key: again[key] for key in follow}
    classes, known_classes = filed.classes, None
    if classes is not None:
        require(len(classes) == groups, f"there are {len(classes)} class names for {groups} classes.")
        known_classes = groups
    for leaf in leaves:  # the target of a network is a node
        levels = leaf.family.levels_of(leaf.setting) if leaf.key == filed.target and classes is None else None
        known_classes = known_classes if levels is None else len(levels)
    facts: Document = {
        "model": model, "estimates": model.nodes.params(own), "counts": counts, "imagined": imagined,
        "classes": classes, "target": None if filed.target is None else column_from(filed.target),
        "prior": prior_from(filed.prior), "class_prior": filed.class_prior, "estimate": filed.estimate,
        "missing": {column_from(key): n for key, n in filed.missing},
        **history_from(filed.history, groups),
        "record": record_from(filed.record, schema, known_classes),
    }  # fmt: skip
    found = Learned(**facts)
    if model.one_class:
        found = Fitted(**facts, **_scorers_from(filed, arrays, model))  # type: ignore[arg-type]
    check_model(found)
    return found


def _scorers_from(filed: FiledModel, arrays: Arrays, model: ClassModel) -> Document:
    """Return the scorers of a classifier as keyword arguments of `Fitted`."""
    leaves, groups = model.leaves, model.groups
    found: Document = {"calibration": calibration_from(filed.calibration, arrays, groups, filed.classes is not None)}
    if filed.dependent is not None:
        found["dependent"] = tuple((column_from(a), column_from(b), x) for a, b, x in filed.dependent)
        known = all(key in model.schema.by_key for a, b, _ in found["dependent"] for key in (a, b))
        require(known, "columns that depend on each other are not in the table.")
    if filed.aode is filed.ensemble is filed.column_weights is filed.linear is None:
        return found
    from softcount.files import scorers  # loads the ensemble's classes

    found["weights"] = scorers.weights_from(filed.column_weights, arrays, len(leaves), groups)
    found["linear"] = scorers.linear_from(filed.linear, arrays, leaves, groups)
    if filed.aode is not None:
        found["aode"] = scorers.aode_from(filed.aode, arrays, model.schema, groups)
        found["ensemble"] = found["aode"].ensemble()
    elif filed.ensemble is not None:
        texts = model.schema.stored("bags")
        blocks = [leaf.setting for leaf in leaves if not leaf.columns]  # a sparse table has one
        words = [len(each.levels) for each in (texts or blocks)]
        found["ensemble"] = scorers.ensemble_from(filed.ensemble, arrays, model.schema, words, groups)
    return found


def _nodes_from(filed: list[FiledNode], groups: int, schema: Schema, room: int) -> tuple[Node, ...]:
    """Return all nodes; nodes without columns, whose width only the document states, may have `room` cells in total."""
    nodes: list[Node] = []
    for x in filed:
        key, columns = key_of(x.key), key_of(x.columns)
        family, specs = family_from({"family": x.family, "own": x.own}, key), [schema[column] for column in columns]
        parts = family.setting_parts(key_of(x.levels), specs, room)
        own = groups if x.groups is None else x.groups
        sound = own <= max(room, groups) and min(x.scale, default=1.0) > 0
        require(sound, f"column {key!r} has impossible groups, or an impossible anchor or scale.")
        anchor, scale = np.array(x.anchor), np.array(x.scale)
        written = specs[0].written if len(specs) == 1 else None
        keys = columns or (key,)
        setting = Setting(keys, own, anchor=anchor, scale=scale, floor=x.floor, written=written, **parts)
        nodes.append(Node(key, columns, family, setting))
        room -= 0 if columns else len(setting.levels)
    return tuple(nodes)


def family_from(x: Document, key: Key) -> Family:
    """Return a family from its name and its parameters."""
    require(x["family"] in FAMILIES, f"family {x['family']!r} is not known to this version.")
    found = decode(FAMILIES[x["family"]], x["own"], {}, "family", f"the family {x['family']} of column {key!r}")
    reading = getattr(found, "reading", None)
    if reading is not None:
        check_reading(reading, key)
    return found


def _read_params(model: Model, filed: FiledArrays, follow: set[Key], groups: int) -> dict[Key, Own]:
    """Return every node's parameters except those recomputed from counts."""
    found: dict[Key, Own] = {}
    if ROOT in model.nodes.places:
        shares = filed.root()["shares"]
        sound = shares.shape == (groups,) and (shares >= 0).all() and abs(shares.sum() - 1) <= 1e-9
        require(sound, "the shares of the classes do not sum to one.")
        found[ROOT] = {"probability": shares[None]}
    needed = [node.key not in follow for node in model.nodes.columns]
    for node, wanted, params in zip(model.nodes.columns, needed, filed.each("params", needed), strict=True):
        if not wanted:
            continue
        wrong = node.family.misshapen(params, node.setting, node.setting.groups) or node.family.check_params(params)
        require(not wrong, f"column {node.key!r} makes no sense: {wrong}.")
        found[node.key] = params
    return found


def _read_imagined(model: Model, hows: tuple[How, How], filed: FiledArrays) -> Imagined:
    keys: list[Key] = [node.key for node in model.nodes.columns]
    hypers = dict(zip(keys, filed.each("hyper", [True] * len(keys)), strict=True))
    held = dict(zip(keys, filed.each("fixed"), strict=True))
    if ROOT in model.nodes.places:
        root = filed.root()
        fixed = root.pop("fixed", None)
        root.pop("shares")
        hypers[ROOT], held[ROOT] = root, {} if fixed is None else {"probability": fixed[None]}
    return Imagined(hypers, hows[0], {ROOT: hows[1]}, {key: part for key, part in held.items() if part})


def _read_counts(model: Model, document: FiledModel, filed: FiledArrays, groups: int) -> Counts:
    found: dict[Hashable, Twofold] = {}
    if ROOT in model.nodes.places:
        found[ROOT] = counts_from(filed.of("groups"), (groups,), "the classes")
    for node, parts in zip(model.nodes.columns, filed.each("counts"), strict=True):
        shape = node.setting.groups, node.family.width(node.setting)
        found[node.key] = counts_from(parts, shape, f"column {node.key!r}")
    return Counts(found, document.rows, document.history["log_likelihood"] or 0.0)


def prior_from(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "columns" in value:
        return {key_of(key): prior_from(part) for key, part in value["columns"]}
    require(value["prior"] in PRIORS, f"{value['prior']!r} is not one of {', '.join(PRIORS)}.")
    values = {}
    for name, part in value["values"].items():
        numbers = isinstance(part, list) and part and all(isinstance(x, (int, float, list)) for x in part)
        values[name] = np.array(part, dtype=float) if numbers else key_of(part)
    return getattr(priors, value["prior"])(**values)


# -- arrays of many columns in few entries: arrays of equal name, type and shape are stacked


def _put_alike(arrays: Arrays, section: str, each: Sequence[Arrays]) -> list[list[int]]:
    """Stack the arrays of columns with equal names, types and shapes; return the column indices of each stack."""
    alike: dict[Any, list[int]] = {}
    for place, own in enumerate(each):
        if own:
            form = tuple((name, array.dtype.str, array.shape) for name, array in own.items())
            alike.setdefault(form, []).append(place)
    for stack, (form, places) in enumerate(alike.items()):
        for name, *_ in form:
            arrays[f"{section}/{stack}/{name}"] = np.stack([each[place][name] for place in places])
    return list(alike.values())


class FiledArrays:
    """The arrays of a file by their prefix; `places` holds the column indices of every stack, by section."""

    def __init__(self, arrays: Arrays, names: Sequence[str], places: Any) -> None:
        self.names, self.places = names, places
        self._parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            prefix, _, part = name.rpartition("/")
            self._parts.setdefault(prefix, {})[part] = array

    def of(self, prefix: str) -> Arrays:
        return dict(self._parts.get(prefix, {}))

    def root(self) -> Arrays:
        """Return the class shares, their prior parameters, and fixed shares."""
        return _check_doubles(self.of("root"))

    def each(self, section: str, needed: Sequence[bool] = ()) -> list[Arrays]:
        """Return the arrays of every column in this section; empty if absent and not `needed`."""
        found: list[Arrays] = [{} for _ in self.names]
        for stack, places in enumerate(self.places[section]):
            arrays = self.of(f"{section}/{stack}")
            sound = arrays and all(array.shape[:1] == (len(places),) for array in arrays.values())
            require(sound, f"the {section} of {len(places)} columns are not those of each.")
            for at, place in enumerate(places):
                if type(place) is not int or not 0 <= place < len(found) or found[place]:
                    raise ModelFileError(f"the {section} of column number {place!r} are there twice, or it is not.")
                found[place] = {name: array[at, ...] for name, array in arrays.items()}
        if section != "counts":
            found = [_check_doubles(own) for own in found]
        for name, own, wanted in zip(self.names, found, needed, strict=False):
            require(own or not wanted, f"the {section} of column {name} is not there.")
        return found


def _check_doubles(own: Arrays) -> Arrays:
    for name, array in own.items():
        double = array.dtype == np.float64
        require(double, f"its {name} does not make sense: it holds {array.dtype}, not float64.")
    return own
