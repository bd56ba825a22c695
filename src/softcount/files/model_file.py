"""A fitted model as a document and arrays, and back, trusting nothing that is read.

The document names only families and priors of the registry, never a class to import; what makes no sense is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from softcount import priors
from softcount.counts import ROOT, Counts
from softcount.errors import DataError, ModelFileError, SoftcountError
from softcount.families import FAMILIES, HOWS, Family, Setting
from softcount.files.archive import read, write
from softcount.files.calibration_part import calibration_document, calibration_from
from softcount.files.centres_part import holds_centres
from softcount.files.fit_history import story_document, story_from
from softcount.files.packed_counts import SMALL, counts_from, put_counts
from softcount.files.plain_values import key_of, plain
from softcount.files.text_part import put_words, reading_document, reading_from, words_from
from softcount.files.validate import check_model, check_structure, estimated
from softcount.fitted.fitted_model import Fitted
from softcount.models.align import Older
from softcount.models.nodes import Node
from softcount.models.plates import Kernels
from softcount.models.star import Imagined, Star, StarParams
from softcount.numerics.twofold import Twofold
from softcount.table.schema import Field, Key, Kind, Schema
from softcount.text.words import Words

PRIORS = ("Beta", "Dirichlet", "Expert", "Gamma", "NormalInverseChi2", "NormalInverseWishart", "NormalKnownVariance")
Document = dict[str, Any]
Arrays = dict[str, np.ndarray]


def save_model(model: Fitted, path: Any, settings: Document | None = None) -> None:
    """Write a fitted model; `settings` are the estimator's own arguments."""
    arrays: Arrays = {}
    write(path, document_of(model, arrays) | {"estimator": settings or {}}, arrays)


def load_model(path: Any, content: tuple[Document, Arrays] | None = None) -> tuple[Fitted, Document]:
    """The fitted model in a file, and its estimator's arguments; `content` is the file's, where it was read already."""
    document, arrays = content or read(path)
    if holds_centres(document):
        raise ModelFileError(f"{path}: it holds the centres of k-means. Use softcount.load(path).predict in Python.")
    try:
        return model_of(document, arrays), dict(document["estimator"])
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (SoftcountError, KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise ModelFileError(f"{path}: the model does not make sense ({type(error).__name__}: {error}).") from None


# -- model -> document


def document_of(model: Fitted, arrays: Arrays) -> Document:
    for name, array in model.counts.arrays.items():
        put_counts(arrays, f"counts/{_name(name)}", array)
    for spec in model.schema.fields:
        if isinstance(spec.levels, Words):
            put_words(arrays, f"words/{_name(spec.key)}", spec.levels)
    follow = _following(model)
    for leaf in model.star.leaves:
        if leaf.key not in follow:
            _put(arrays, f"params/{_name(leaf.key)}", model.estimates.leaves[leaf.key])
        _put(arrays, f"hyper/{_name(leaf.key)}", model.imagined.leaves[leaf.key])
        _put(arrays, f"fixed/{_name(leaf.key)}", dict(model.imagined.fixed.get(leaf.key, {})))
    _put(arrays, "root", {"shares": model.shares, **model.imagined.root})
    if model.imagined.fixed_shares is not None:
        arrays["root/fixed"] = model.imagined.fixed_shares
    return {
        "schema": {"missing": list(model.schema.missing), "fields": [_field(spec) for spec in model.schema.fields]},
        "leaves": [_leaf(leaf) | {"follows": leaf.key in follow} for leaf in model.star.leaves],
        "groups": model.star.groups,
        "unknown_weight": float(model.star.unknown_weight),
        "cells": int(model.star.kernels.cells),
        "how": [model.imagined.how, model.imagined.root_how],
        "classes": None if model.classes is None else [plain(c) for c in model.classes],
        "target": plain(model.target),
        "prior": prior_document(model.prior),
        "class_prior": _class_prior(model.class_prior),
        "estimate": model.estimate,
        "missing": [[plain(key), float(n)] for key, n in model.missing.items()],
        "rows": float(model.counts.rows),
        "calibration": calibration_document(model.calibration, arrays),
        **story_document(model),
    }


def _following(model: Fitted) -> set[Key]:
    """Leaves whose many parameters are just what their counts and prior give, so that they need not be kept."""
    large = {x.key for x in model.star.leaves if model.counts.arrays[x.key].hi.size >= SMALL}
    if not large:
        return set()
    again = estimated(model.star, model.counts, model.imagined, model.estimate).leaves
    return {key for key in large if _equal(again[key], model.estimates.leaves[key])}


def _equal(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    return left.keys() == right.keys() and all(np.array_equal(left[name], right[name]) for name in left)


def _put(arrays: Arrays, prefix: str, values: dict[str, np.ndarray]) -> None:
    for name, value in values.items():
        arrays[f"{prefix}/{name}"] = np.asarray(value, dtype=np.float64, order="C")  # a single number stays one


def _name(key: Hashable) -> str:
    return repr(plain(key))


def _field(spec: Field) -> Document:
    return {
        "key": plain(spec.key), "kind": spec.kind.value, "why": spec.why, "levels": _levels(spec.levels),
        "anchor": float(spec.anchor), "scale": float(spec.scale), "used": bool(spec.used), "wide": bool(spec.wide),
        "declared": bool(spec.declared), "reading": None if spec.reading is None else reading_document(spec.reading),
    }  # fmt: skip


def _levels(levels: Any) -> list[Any] | None:
    """Levels as JSON; words are in arrays of their own."""
    return None if isinstance(levels, Words) else [plain(x) for x in levels]


def _leaf(leaf: Node) -> Document:
    setting = leaf.setting
    own = {f.name: plain(getattr(leaf.family, f.name)) for f in fields(leaf.family)}  # type: ignore[arg-type]
    return {
        "key": plain(leaf.key), "columns": [plain(c) for c in leaf.columns], "family": leaf.family.name, "own": own,
        "levels": _levels(setting.levels) if leaf.family.discrete or _of_text(leaf) else len(setting.levels),
        "anchor": [float(x) for x in setting.anchor], "scale": [float(x) for x in setting.scale],
        "floor": float(setting.floor),
    }  # fmt: skip


def _of_text(leaf: Node) -> bool:
    return isinstance(leaf.setting.levels, Words)


def prior_document(prior: Any) -> Any:
    """A prior as JSON: a number, a word, one of our objects by name, a mapping by column."""
    if prior is None or isinstance(prior, (bool, int, float, str)):
        return prior
    if isinstance(prior, np.generic):
        return prior.item()
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


def model_of(document: Document, arrays: Arrays) -> Fitted:
    fields_read = tuple(_read_field(x, arrays) for x in document["schema"]["fields"])
    schema = Schema(fields_read, _words(document["schema"]["missing"]))
    groups = _whole(document["groups"], 1, 10_000_000, "groups")
    widest = 8 * max((array.size for array in arrays.values()), default=0)  # packed counts have a bit for each cell
    leaves = tuple(_read_leaf(x, groups, schema, widest) for x in document["leaves"])
    check_structure(leaves, schema)
    _check_columns(leaves, schema)
    star = Star(
        schema,
        leaves,
        groups,
        Kernels(_whole(document["cells"], 0, 1 << 62, "cells")),
        float(document["unknown_weight"]),
    )
    follow = {leaf.key for leaf, x in zip(leaves, document["leaves"], strict=True) if x.get("follows")}
    estimates = _read_params(star, arrays, follow)
    imagined = _read_imagined(star, document, arrays)
    counts = _read_counts(star, document, arrays)
    estimate = _one_of(document["estimate"], HOWS)
    if follow:
        again = estimated(star, counts, imagined, estimate).leaves
        estimates = StarParams(estimates.shares, {**again, **estimates.leaves})
    classes = document["classes"]
    if classes is not None and len(classes) != groups:
        raise ModelFileError(f"there are {len(classes)} class names for {groups} classes.")
    model = Fitted(
        star=star, estimates=estimates, counts=counts, imagined=imagined, classes=classes,
        target=_target(document["target"]), prior=prior_from(document["prior"]), class_prior=document["class_prior"],
        estimate=estimate, missing={key_of(key): float(n) for key, n in document["missing"]},
        calibration=calibration_from(document.get("calibration"), arrays, groups, classes is not None),
        **story_from(document, groups),
    )  # fmt: skip
    check_model(model)
    return model


def _target(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int)):
        raise ModelFileError(f"the target is {value!r}, which is no column.")
    return value


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ModelFileError(f"the cells that count as missing are {value!r}, which are no words.")
    return tuple(value)


def _whole(value: Any, least: int, most: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ModelFileError(f"{what} is {value!r}, which is not a whole number between {least} and {most}.")
    return value


def _one_of(value: Any, known: Any) -> Any:
    if value not in known:
        raise ModelFileError(f"{value!r} is not one of {', '.join(map(str, known))}.")
    return value


def _read_field(x: Document, arrays: Arrays) -> Field:
    scale, anchor = float(x["scale"]), float(x["anchor"])
    if not (np.isfinite(anchor) and np.isfinite(scale) and scale > 0):
        raise ModelFileError(f"column {x['key']!r} has an impossible anchor or scale.")
    key, kind, used, reading, levels = key_of(x["key"]), Kind(x["kind"]), bool(x["used"]), x.get("reading"), x["levels"]
    if (kind is Kind.TEXT and used) != (levels is None) or (levels is None and reading is None):
        raise ModelFileError(f"column {key!r} ({kind}) has no levels, or words where it is no text.")
    known = words_from(arrays, f"words/{_name(key)}", key) if levels is None else tuple(key_of(v) for v in levels)
    return Field(
        key, kind, str(x["why"]), known, anchor, scale, used, bool(x["wide"]), bool(x["declared"]),
        None if reading is None else reading_from(reading, key),
    )  # fmt: skip


def _read_leaf(x: Document, groups: int, schema: Schema, widest: int) -> Node:
    if x["family"] not in FAMILIES:
        raise ModelFileError(f"family {x['family']!r} is not known to this version.")
    kind = FAMILIES[x["family"]]
    allowed = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if set(x["own"]) - allowed:
        raise ModelFileError(f"family {x['family']!r} has no setting {sorted(set(x['own']) - allowed)[0]!r}.")
    if kind.kind is Kind.TEXT:  # what reads documents is looked at before anything is made of it
        reading_from({name: value for name, value in x["own"].items() if name != "model"}, key_of(x["key"]))
    family: Family = kind(**{name: key_of(value) for name, value in x["own"].items()})
    key, columns = key_of(x["key"]), tuple(key_of(c) for c in x["columns"])
    levels = _read_levels(x["levels"], family, columns, schema, widest)
    anchor, scale = np.array(x["anchor"], dtype=float), np.array(x["scale"], dtype=float)
    if not (np.isfinite(anchor).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ModelFileError(f"column {key!r} has an impossible anchor or scale.")
    keys = columns or (key,)
    return Node(key, columns, family, Setting(keys, groups, levels, anchor, scale, float(x["floor"])))


def _read_levels(levels: Any, family: Family, columns: tuple[Key, ...], schema: Schema, widest: int) -> Any:
    if family.kind is Kind.TEXT:
        if levels is not None or len(columns) != 1 or not isinstance(schema[columns[0]].levels, Words):
            raise ModelFileError(f"{list(columns)!r} is {family.name}, but no one column of text.")
        return schema[columns[0]].levels
    if family.discrete:
        return tuple(key_of(v) for v in levels)
    return columns or tuple(range(_whole(levels, 0, widest, "width")))


def _check_columns(leaves: tuple[Node, ...], schema: Schema) -> None:
    for leaf in leaves:
        for column in leaf.columns:
            spec = schema[column]
            fits = spec.kind.numeric != leaf.family.discrete
            if Kind.TEXT in (spec.kind, leaf.family.kind):
                fits = spec.kind is leaf.family.kind
            if not spec.used or not fits:
                raise ModelFileError(f"column {column!r} ({spec.kind}) cannot be {leaf.family.name}.")
            if leaf.family.discrete and leaf.columns == (leaf.key,) and leaf.setting.levels != spec.levels:
                raise ModelFileError(f"column {column!r} has two different lists of levels.")
            if spec.kind is Kind.CATEGORICAL and not spec.wide and len(spec.levels) > 254:
                raise ModelFileError(f"column {column!r} has too many levels for its code.")


def _read_params(star: Star, arrays: Arrays, follow: set[Key]) -> StarParams:
    shares = _group(arrays, "root")["shares"]
    if shares.shape != (star.groups,) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise ModelFileError("the shares of the classes do not sum to one.")
    leaves = {}
    for leaf in (x for x in star.leaves if x.key not in follow):
        params = _group(arrays, f"params/{_name(leaf.key)}")
        wrong = _misshapen(leaf, params, star.groups) or leaf.family.check_params(params)
        if wrong:
            raise ModelFileError(f"column {leaf.key!r} makes no sense: {wrong}.")
        leaves[leaf.key] = params
    return StarParams(shares, leaves)


def _misshapen(leaf: Node, params: dict[str, np.ndarray], groups: int) -> str | None:
    for name, value in params.items():
        if value.shape[:1] != (groups,):
            return f"{name} is not given for each of {groups} groups"
        if not np.isfinite(value).all() and name != "freedom":
            return f"{name} is not finite"
    table = params.get("probability") if leaf.family.discrete or _of_text(leaf) else None
    if table is not None and table.shape[1:] != (len(leaf.setting.levels),):
        return f"it has {len(leaf.setting.levels)} levels but {table.shape[1:]} probabilities"
    return None


def _group(arrays: Arrays, prefix: str) -> dict[str, np.ndarray]:
    found = _parts(arrays, prefix)
    if not found:
        raise ModelFileError(f"the part {prefix!r} is not there.")
    return found


def _parts(arrays: Arrays, prefix: str) -> dict[str, np.ndarray]:
    return {name[len(prefix) + 1 :]: value for name, value in arrays.items() if name.startswith(prefix + "/")}


def _read_imagined(star: Star, document: Document, arrays: Arrays) -> Imagined:
    root = _group(arrays, "root")
    fixed = root.pop("fixed", None)
    root.pop("shares")
    hypers = {leaf.key: _group(arrays, f"hyper/{_name(leaf.key)}") for leaf in star.leaves}
    held = {leaf.key: _parts(arrays, f"fixed/{_name(leaf.key)}") for leaf in star.leaves}
    how, root_how = (_one_of(x, HOWS) for x in document["how"])
    return Imagined(root, hypers, how, root_how, fixed, {key: part for key, part in held.items() if part})


def _read_counts(star: Star, document: Document, arrays: Arrays) -> Counts:
    read_arrays: dict[Hashable, Twofold] = {}
    shapes = {leaf.key: (star.groups, leaf.family.width(leaf.setting)) for leaf in star.leaves}
    for name, shape in {ROOT: (star.groups,), **shapes}.items():
        read_arrays[name] = counts_from(_group(arrays, f"counts/{_name(name)}"), shape, name)
    for leaf in star.leaves:
        if read_arrays[leaf.key].shape != shapes[leaf.key]:
            raise ModelFileError(f"the counts of column {leaf.key!r} have the wrong shape.")
    likelihood = document["log_likelihood"]
    return Counts(read_arrays, float(document["rows"]), 0.0 if likelihood is None else float(likelihood))


def prior_from(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "columns" in value:
        return {key_of(key): prior_from(part) for key, part in value["columns"]}
    name = _one_of(value["prior"], PRIORS)
    make: Callable[..., Any] = getattr(priors, name)
    return make(**{k: _array_or_value(v) for k, v in value["values"].items()})


def _array_or_value(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(x, (int, float, list)) for x in value):
        return np.array(value, dtype=float)
    return key_of(value)
