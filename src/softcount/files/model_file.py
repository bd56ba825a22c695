"""A fitted model as a document and arrays, and back; nothing read is trusted.

The document names only families and priors of the registry, never a class to import; what makes no sense is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import asdict

from softcount import priors
from softcount.core.counts import ROOT, Counts
from softcount.core.twofold import Twofold
from softcount.errors import DataError, ModelFileError
from softcount.families import FAMILIES, HOWS, Family
from softcount.families import Params as Own
from softcount.families.base import number, truth, whole
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
from softcount.fitted.fitted import DependentPairs, Fitted
from softcount.learn.record import Learned
from softcount.models.align import Older
from softcount.models.base import MODELS, ClassModel, Model
from softcount.models.nodes import Imagined, Node
from softcount.table.schema import Key, Schema

PRIORS = ("Beta", "Dirichlet", "Expert", "Gamma", "NormalInverseChi2", "NormalInverseWishart", "NormalKnownVariance")


def save_model(model: Learned, path: Any, settings: Document | None = None) -> None:
    """Write a fitted model; `settings` are those of the estimator."""
    arrays: Arrays = {}
    write(path, document_of(model, arrays) | {"estimator": settings or {}}, arrays)


def load_model(path: Any, document: Document, arrays: Arrays) -> tuple[Any, Document]:
    """The fitted model in the content of a file, and its estimator's settings."""
    with naming(path, "the model does not make sense", UNSOUND):
        return model_of(document, arrays), dict(document["estimator"])


# -- model -> document


def document_of(model: Learned, arrays: Arrays) -> Document:
    """A fitted model as JSON; its arrays go to `arrays`."""
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
    return {
        "schema": schema_document(model.schema, arrays),
        "leaves": [_node_document(leaf, model.model) | {"follows": leaf.key in follow} for leaf in nodes],
        "places": {section: _put_alike(arrays, section, own) for section, own in each.items()},
        "model": model.model.name,
        "groups": 1,
        **model.model.document(),
        "how": [model.imagined.how, model.imagined.hows.get(ROOT, model.imagined.how)],
        "classes": None if model.classes is None else [plain(c) for c in model.classes],
        "target": plain(model.target),
        "prior": prior_document(model.prior),
        "class_prior": _class_prior(model.class_prior),
        "estimate": model.estimate,
        "missing": [[plain(key), float(n)] for key, n in model.missing.items()],
        "rows": float(model.counts.rows),
        "history": history_document(model),
        "record": record_document(model.record),
        **(_scorer_documents(model, nodes, arrays) if isinstance(model, Fitted) else {}),
    }


def _scorer_documents(model: Fitted, leaves: Sequence[Node], arrays: Arrays) -> Document:
    """The parts that a classifier scores rows by, as far as it has them."""
    found = {
        "calibration": model.calibration,
        "dependent": model.dependent,
        "aode": model.aode,
        "ensemble": model.ensemble if model.aode is None else None,
        "column_weights": model.weights,
    }
    document = {name: encode(own, arrays, name) for name, own in found.items() if own is not None}
    if model.linear is not None:
        from softcount.files.scorers import linear_document  # loads the ensemble's classes

        document["linear"] = linear_document(model.linear, leaves, arrays)
    return document


def _find_following(model: Learned) -> set[Key]:
    """Leaves whose many parameters are those that their counts and prior give, so that they need not be kept."""
    large = {x.key for x in model.model.nodes.columns if model.counts.arrays[x.key].hi.size >= SMALL}
    if not large:
        return set()
    again = estimate_again(model.model, model.counts, model.imagined, model.estimate)
    return {key for key in large if _equal(again[key], model.estimates[key])}


def _equal(left: Own, right: Own) -> bool:
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def _doubles(values: Mapping[str, np.ndarray]) -> Arrays:
    return {name: np.asarray(value, dtype=np.float64, order="C") for name, value in values.items()}


def _node_document(node: Node, model: Model) -> Document:
    setting = {name: plain(value) for name, value in node.family.setting_document(node.setting).items()}
    # The groups of the nodes of a class model are the classes.
    groups = {} if isinstance(model, ClassModel) else {"groups": node.setting.groups}
    return {"key": plain(node.key), "columns": plain(node.columns), **family_document(node.family), **setting, **groups}


def family_document(family: Family) -> Document:
    """A family by its name, and its own settings."""
    return {"family": family.name, "own": encode(family, {}, "family")}


def prior_document(prior: Any) -> Any:
    """A prior as JSON: a number, a word, one of our objects by name, a mapping by column."""
    if prior is None or isinstance(prior, (bool, int, float, str, np.generic)):
        return plain(prior)
    if isinstance(prior, Older):
        return prior_document(prior.prior)
    if type(prior).__name__ in PRIORS:
        return {"prior": type(prior).__name__, "values": {k: _nested(v) for k, v in asdict(prior).items()}}
    if isinstance(prior, dict):
        return {"columns": [[plain(key), prior_document(value)] for key, value in prior.items()]}
    raise DataError(f"prior {prior!r} cannot be kept in a model file.")


def _nested(value: Any) -> Any:
    return (
        value.tolist() if isinstance(value, np.ndarray) else plain(tuple(value) if isinstance(value, list) else value)
    )


def _class_prior(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else np.asarray(value, dtype=float).tolist()


# -- document -> model


def model_of(document: Document, arrays: Arrays) -> Learned:
    """The fitted model that a document and its arrays describe, if it makes sense."""
    schema = schema_from(document["schema"], arrays)
    room = 8 * sum(array.size for array in arrays.values())  # packed counts have a bit for each cell
    groups = whole(document["groups"], 1, room, "groups")
    leaves = _nodes_from(document["leaves"], groups, schema, room)
    check_structure(leaves, schema, hidden=document["model"] != "star")
    model = _structure_from(document, schema, leaves)
    follow = {
        leaf.key
        for leaf, x in zip(leaves, document["leaves"], strict=True)
        if truth(x["follows"], f"column {leaf.key!r}: follows")
    }
    filed = FiledArrays(arrays, [array_name(leaf.key) for leaf in leaves], document["places"])
    imagined = _read_imagined(model, document, filed)
    own = _read_params(model, filed, follow, groups)
    counts = _read_counts(model, document, filed)
    estimate = _one_of(document["estimate"], HOWS)
    if follow:
        again = estimate_again(model, counts, imagined, estimate)
        own |= {key: again[key] for key in follow}
    classes, target = document["classes"], document["target"]
    if classes is not None:
        require(len(classes) == groups, f"there are {len(classes)} class names for {groups} classes.")
    facts: Document = {
        "model": model, "estimates": model.nodes.params(own), "counts": counts, "imagined": imagined,
        "classes": classes, "target": None if target is None else column_from(target),
        "prior": prior_from(document["prior"]), "class_prior": document["class_prior"], "estimate": estimate,
        "missing": {column_from(key): number(n, "missing cells") for key, n in document["missing"]},
        **history_from(document["history"], groups),
        "record": record_from(document["record"], schema, _count_known_classes(document, leaves)),
    }  # fmt: skip
    if isinstance(model, ClassModel):
        found: Learned = Fitted(**facts, **_scorers_from(document, arrays, model))
    else:
        found = Learned(**facts)
    check_model(found)
    return found


def _scorers_from(document: Document, arrays: Arrays, model: ClassModel) -> Document:
    """The parts that a classifier scores rows by, as arguments of `Fitted`."""
    leaves, groups = model.leaves, model.groups
    calibration = calibration_from(document.get("calibration"), arrays, groups, document["classes"] is not None)
    found: Document = {"calibration": calibration, "dependent": _dependent_from(document, model.schema)}
    if not document.keys() & {"aode", "ensemble", "column_weights", "linear"}:
        return found
    from softcount.files import scorers  # loads the ensemble's classes

    found["weights"] = scorers.weights_from(document.get("column_weights"), arrays, len(leaves), groups)
    found["linear"] = scorers.linear_from(document.get("linear"), arrays, leaves, groups)
    if "aode" in document:
        found["aode"] = scorers.aode_from(document["aode"], arrays, model.schema, groups)
        found["ensemble"] = found["aode"].ensemble()
    elif "ensemble" in document:
        texts = model.schema.stored("bags")
        blocks = [leaf.setting for leaf in leaves if not leaf.columns]  # one, of a sparse table
        words = [len(each.levels) for each in (texts or blocks)]
        found["ensemble"] = scorers.ensemble_from(document["ensemble"], arrays, model.schema, words, groups)
    return found


def _dependent_from(document: Document, schema: Schema) -> DependentPairs | None:
    """The pairs of columns that depend on each other, None if they were not measured."""
    if document.get("dependent") is None:
        return None
    pairs = tuple((column_from(a), column_from(b), number(x, "a dependence")) for a, b, x in document["dependent"])
    known = all(key in schema.by_key for a, b, _ in pairs for key in (a, b))
    require(known, "columns that depend on each other are not in the table.")
    return pairs


def _count_known_classes(document: Document, leaves: tuple[Node, ...]) -> int | None:
    """The number of classes, if they are known: those of the target, which is a node of a network."""
    if document["classes"] is not None:
        return len(document["classes"])
    levels = [leaf.family.levels_of(leaf.setting) for leaf in leaves if leaf.key == document["target"]]
    return len(levels[0]) if levels and levels[0] is not None else None


def _one_of(value: Any, known: Any) -> Any:
    require(value in known, f"{value!r} is not one of {', '.join(map(str, known))}.")
    return value


def _nodes_from(documents: list[Document], groups: int, schema: Schema, room: int) -> tuple[Node, ...]:
    """All nodes; those without columns, whose width is only in the document, have this room together."""
    nodes: list[Node] = []
    for x in documents:
        key, columns = key_of(x["key"]), key_of(x["columns"])
        family = family_from(x, key)
        kept = {name: key_of(value) for name, value in x.items()}
        parts = family.setting_parts(kept, [schema[column] for column in columns], room)
        own = whole(x.get("groups", groups), 1, max(room, groups), "groups")
        setting = family.setting_type(columns or (key,), own, **parts)
        sound = np.isfinite(setting.anchor).all() and np.isfinite(setting.scale).all() and (setting.scale > 0).all()
        require(sound, f"column {key!r} has an impossible anchor or scale.")
        nodes.append(Node(key, columns, family, setting))
        room -= 0 if columns else len(setting.levels)
    return tuple(nodes)


def family_from(x: Document, key: Key) -> Family:
    """A family from its name and its own settings."""
    require(x["family"] in FAMILIES, f"family {x['family']!r} is not known to this version.")
    found = decode(FAMILIES[x["family"]], x["own"], {}, "family", f"the family {x['family']} of column {key!r}")
    reading = getattr(found, "reading", None)
    if reading is not None:
        check_reading(reading, key)
    return found


def _structure_from(document: Document, schema: Schema, nodes: tuple[Node, ...]) -> Model:
    name = document["model"]
    if name == "network":
        import softcount.models.network
    if name == "hidden-chain":
        import softcount.models.hidden_chain  # noqa: F401
    return MODELS[_one_of(name, MODELS)].from_document(document, schema, nodes)


def _read_params(model: Model, filed: FiledArrays, follow: set[Key], groups: int) -> dict[Key, Own]:
    """Every node's parameters except those that follow from their counts."""
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


def _read_imagined(model: Model, document: Document, filed: FiledArrays) -> Imagined:
    keys: list[Key] = [node.key for node in model.nodes.columns]
    hypers = dict(zip(keys, filed.each("hyper", [True] * len(keys)), strict=True))
    held = dict(zip(keys, filed.each("fixed"), strict=True))
    how, root_how = (_one_of(x, HOWS) for x in document["how"])
    if ROOT in model.nodes.places:
        root = filed.root()
        fixed = root.pop("fixed", None)
        root.pop("shares")
        hypers[ROOT], held[ROOT] = root, {} if fixed is None else {"probability": fixed[None]}
    return Imagined(hypers, how, {ROOT: root_how}, {key: part for key, part in held.items() if part})


def _read_counts(model: Model, document: Document, filed: FiledArrays) -> Counts:
    found: dict[Hashable, Twofold] = {}
    if ROOT in model.nodes.places:
        found[ROOT] = counts_from(filed.of("groups"), (document["groups"],), "the classes")
    for node, parts in zip(model.nodes.columns, filed.each("counts"), strict=True):
        shape = node.setting.groups, node.family.width(node.setting)
        found[node.key] = counts_from(parts, shape, f"column {node.key!r}")
    return Counts(found, number(document["rows"], "rows"), document["history"]["log_likelihood"] or 0.0)


def prior_from(value: Any) -> Any:
    """A prior from JSON."""
    if not isinstance(value, dict):
        return value
    if "columns" in value:
        return {key_of(key): prior_from(part) for key, part in value["columns"]}
    make: Callable[..., Any] = getattr(priors, _one_of(value["prior"], PRIORS))
    return make(**{k: _array_or_value(v) for k, v in value["values"].items()})


def _array_or_value(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(x, (int, float, list)) for x in value):
        return np.array(value, dtype=float)
    return key_of(value)


# -- arrays of many columns in few entries: those of one name, type and shape are stacked


def _put_alike(arrays: Arrays, section: str, each: Sequence[Arrays]) -> list[list[int]]:
    """Stack the arrays of columns that are alike; the places of the columns in each stack are returned."""
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
    """The arrays of a file by their prefix; `places` are the columns of every stack, by section."""

    def __init__(self, arrays: Arrays, names: Sequence[str], places: Any) -> None:
        self.names, self.places = names, places
        self._parts: dict[str, Arrays] = {}
        for name, array in arrays.items():
            prefix, _, part = name.rpartition("/")
            self._parts.setdefault(prefix, {})[part] = array

    def of(self, prefix: str) -> Arrays:
        return dict(self._parts.get(prefix, {}))

    def root(self) -> Arrays:
        """The shares of the classes, their prior parameters, and fixed shares."""
        return _check_doubles(self.of("root"))

    def each(self, section: str, needed: Sequence[bool] = ()) -> list[Arrays]:
        """The arrays of every column in this section; an empty mapping if it has none and they are not `needed`."""
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
