"""Convert a fitted model with its history to a document and arrays, and back. Nothing that is read is trusted.

The document names only registered families and priors, never a class to import. Invalid content raises an error.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from softcount import priors
from softcount.core.counts import ROOT, Counts, Twofold
from softcount.core.ranges import Amount, NotNegative, Positive
from softcount.errors import ModelFileError
from softcount.evaluate.ranking import Evaluation
from softcount.families import FAMILIES, Family, How, Setting, stored
from softcount.families import Params as Own
from softcount.files import codec
from softcount.files.archive import naming, write
from softcount.files.codec import Arrays, Document, decode, encode, plain, require
from softcount.files.schema import decode_schema, encode_schema
from softcount.fitted.fitted import FITTED
from softcount.learn.record import FitRecord, Learned, Trial
from softcount.models.base import MODELS, Model
from softcount.models.nodes import Imagined, Node, Params
from softcount.networks.network import Graph, Network
from softcount.priors import Older
from softcount.table.column_summary import ColumnSummary
from softcount.table.schema import NARROW_LEVELS, Field, Key, Kind, Schema
from softcount.text.words import Words

NodeArrays = dict[tuple[str, str], np.ndarray]
"""Arrays of one node by section and name."""
REGISTERED_BY = {
    "network": "softcount.fitted.network", "hidden-chain": "softcount.fitted.states", "joint": "softcount.fitted.joint",
}  # fmt: skip
"""Modules that register a model and the class that answers for it; loaded with the first file of such a model."""
SECTIONS = ("counts", "params", "hyper", "fixed")
PRIORS = ("Beta", "Dirichlet", "Expert", "Gamma", "NormalInverseChi2", "NormalInverseWishart", "NormalKnownVariance")

MOST_CONFUSED = 200
"""Maximum number of classes for which the confusion table is kept."""
FIGURES = (
    "accuracy", "baseline_accuracy", "balanced_accuracy", "baseline_balanced_accuracy", "auc",
    "log_loss", "baseline_log_loss", "brier", "baseline_brier",
)  # fmt: skip
SHARES = FIGURES[:5]
LARGEST_LOSS = 2.0**53
RECORD = "the record of its fit"
SLACK = 1e-6
"""Tolerance for counts below zero, which rounding leaves after rows are removed."""


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
    trees: dict[str, Any] | None = None


class FitHistory(Struct, frozen=True):
    """The fields of `Learned` that describe the fit, under the same names."""

    notes: list[str]
    trace: list[float]
    half_steps: bool
    converged: bool
    interrupted: bool
    log_likelihood: float | None
    objective: str
    agreed: tuple[Amount, Amount] | None
    named: list[Any] | None
    selection: Annotated[list[Trial], Meta(min_length=1)] | None
    undecided: float | None


def save_model(model: Learned, path: Any, settings: Document | None = None) -> None:
    arrays: Arrays = {}
    write(path, encode_model(model, arrays) | {"estimator": settings or {}}, arrays)


def load_model(path: Any, document: Document, arrays: Arrays) -> Any:
    with naming(path, "the model does not make sense", codec.UNSOUND):
        return decode_model(msgspec.convert(document, FiledModel), arrays)


# -- model -> document


def encode_model(model: Learned, arrays: Arrays) -> Document:
    """Encode a fitted model as JSON; its arrays are added to `arrays`."""
    follow = _find_following(model)
    class_prior, record = model.class_prior, model.record
    if record.evaluation is not None and len(record.evaluation.confusion) > MOST_CONFUSED:
        record = replace(record, evaluation=replace(record.evaluation, confusion=()))
    if class_prior is not None and not isinstance(class_prior, str):
        class_prior = np.asarray(class_prior, dtype=float).tolist()
    filed = FiledModel(
        schema=encode_schema(model.schema, arrays),
        leaves=[_file_node(node, model.model) for node in model.model.nodes.columns],
        stacks=_stack_arrays(arrays, [_node_arrays(model, key, key in follow) for key in _keys_of(model.model)]),
        model=model.model.name,
        structure=encode(model.model.filed(), {}, "structure"),
        how=(model.imagined.how, model.imagined.hows.get(ROOT, model.imagined.how)),
        classes=None if model.classes is None else [plain(c) for c in model.classes],
        target=plain(model.target),
        prior=encode_value(model.prior),
        class_prior=class_prior,
        estimate=model.estimate,  # type: ignore[arg-type]
        missing=[(plain(key), float(n)) for key, n in model.missing.items()],
        rows=float(model.counts.rows),
        history=encode(FitHistory(*(getattr(model, x) for x in FitHistory.__struct_fields__)), {}, "history"),
        record=encode(record, {}, "record"),
        estimator={},
        **_file_own(model, arrays),
    )
    found: Document = msgspec.to_builtins(filed)
    return found


def _file_own(model: Learned, arrays: Arrays) -> Document:
    """Encode the filed fields that not every kind of model has, such as the scorer, unless they have their defaults."""
    names, defaults = model.__struct_fields__, model.__struct_defaults__
    usual = dict(zip(names[-len(defaults) :], defaults, strict=True))
    own = [name for name in FiledModel.__struct_fields__ if name in usual and name not in Learned.__struct_fields__]
    found = {name: encode(getattr(model, name), arrays, name) for name in own}
    return {name: part for name, part in found.items() if part != encode(usual[name], {}, name)}


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
    found = {("counts", name): array for name, array in codec.encode_counts(model.counts.arrays[key]).items()}
    for section, own in doubles.items():
        found |= {(section, name): np.asarray(array, dtype=np.float64, order="C") for name, array in own.items()}
    return found


def _stack_arrays(arrays: Arrays, each: Sequence[NodeArrays]) -> list[list[int]]:
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
    setting, columns = node.setting, [plain(column) for column in node.columns]
    return FiledNode(
        plain(node.key), columns, **encode_family(node.family),
        levels=plain(stored.stored_levels(node.family, setting)), anchor=setting.anchor.tolist(),
        scale=setting.scale.tolist(), floor=float(setting.floor), groups=None if model.one_class else setting.groups,
    )  # fmt: skip


def encode_family(family: Family) -> Document:
    return {"family": family.name, "own": encode(family, {}, "family")}


def encode_value(value: Any) -> Any:
    """Encode a prior or a setting of an estimator as JSON; families and priors are objects that name their class."""
    if isinstance(value, Mapping):
        return {"columns": [[encode_value(key), encode_value(part)] for key, part in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [encode_value(part) for part in value]}
    if isinstance(value, (list, range, set, frozenset)):
        return [encode_value(part) for part in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Family):
        return encode_family(value)
    if isinstance(value, Older):
        return encode_value(value.prior)
    if isinstance(value, Graph):
        return encode_value(value.edges)
    if isinstance(value, Network) or hasattr(value, "edges_"):
        return 1.0  # the prior of a network: its counts are among the prior counts of the model
    if type(value).__name__ in PRIORS:
        return {"prior": type(value).__name__, "values": encode(value, None, "")}
    return plain(value)


# -- document -> model


def decode_model(filed: FiledModel, arrays: Arrays) -> Learned:
    """Return the fitted model that a document and its arrays describe, after checking it."""
    schema = decode_schema(filed.schema, arrays)
    room = 8 * sum(array.size for array in arrays.values())  # packed counts have one bit per cell
    if filed.model in REGISTERED_BY:
        import_module(REGISTERED_BY[filed.model])
    require(filed.model in MODELS, f"{filed.model!r} is not one of {', '.join(MODELS)}.")
    kind = MODELS[filed.model]
    structure: Any = decode(kind.filed_as, filed.structure, {}, "structure", "its structure")
    groups = structure.groups
    require(groups <= room, f"groups is {groups}, of which there is no room in the file.")
    leaves = _decode_nodes(filed.leaves, groups, schema, room)
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
        require(len(classes) == groups, f"there are {len(classes)} class names for {groups} classes.")
        known_classes = groups
    for leaf in leaves:  # the target of a network is a node
        levels = leaf.levels_of() if leaf.key == filed.target and classes is None else None
        known_classes = known_classes if levels is None else len(levels)
    facts: Document = {
        "model": model, "estimates": model.nodes.params(own), "counts": counts, "imagined": imagined,
        "classes": classes, "target": None if filed.target is None else codec.check_column(filed.target),
        "prior": decode_value(filed.prior), "class_prior": filed.class_prior, "estimate": filed.estimate,
        "missing": {codec.check_column(key): n for key, n in filed.missing},
        **decode_history(filed.history, groups),
        "record": decode_record(filed.record, schema, known_classes),
    }  # fmt: skip
    found = FITTED.get(filed.model, Learned)(**facts, **_decode_scoring(filed, arrays, model))
    check_model(found)
    return found


def _decode_scoring(filed: FiledModel, arrays: Arrays, model: Any) -> Document:
    """Return how the groups are scored as keyword arguments of `Fitted`; other kinds of models refuse them."""
    found: Document = {}
    if filed.dependent is not None:
        found["dependent"] = tuple((codec.check_column(a), codec.check_column(b), x) for a, b, x in filed.dependent)
        known = all(key in model.schema.by_key for a, b, _ in found["dependent"] for key in (a, b))
        require(known, "columns that depend on each other are not in the table.")
    if filed.scorer is not None:
        from softcount.files.scorers import decode_scorer  # loads the ensemble's classes

        found["scorer"] = decode_scorer(filed.scorer, arrays, model, filed.classes is not None)
    if filed.trees is not None:
        from softcount.files.trees import decode_trees

        found["trees"] = decode_trees(filed.trees, arrays, model.schema)
    return found


def _decode_nodes(filed: list[FiledNode], groups: int, schema: Schema, room: int) -> tuple[Node, ...]:
    """Return all nodes; nodes without columns, whose width only the document states, may have `room` cells in total."""
    nodes: list[Node] = []
    for x in filed:
        key, columns = codec.key_of(x.key), codec.key_of(x.columns)
        family, specs = decode_family({"family": x.family, "own": x.own}, key), [schema[column] for column in columns]
        parts = stored.read_levels(family, codec.key_of(x.levels), specs, room)
        own = groups if x.groups is None else x.groups
        require(own <= max(room, groups), f"column {key!r} has impossible groups.")
        anchor, scale = np.array(x.anchor), np.array(x.scale)
        written = specs[0].written if len(specs) == 1 else None
        keys = columns or (key,)
        setting = Setting(keys, own, anchor=anchor, scale=scale, floor=x.floor, written=written, **parts)
        nodes.append(Node(key, columns, family, setting))
        room -= 0 if columns else len(setting.levels)
    return tuple(nodes)


def decode_family(x: Document, key: Key) -> Family:
    require(x["family"] in FAMILIES, f"family {x['family']!r} is not known to this version.")
    return decode(FAMILIES[x["family"]], x["own"], {}, "family", f"the family {x['family']} of column {key!r}")


def _unstack_arrays(stacks: list[list[int]], arrays: Arrays, keys: Sequence[Key]) -> dict[Key, dict[str, Arrays]]:
    """Return the arrays of every node by section and name."""
    wholes: dict[str, NodeArrays] = {}
    for name, array in arrays.items():
        section, _, rest = name.partition("/")
        if section in SECTIONS:
            stack, _, part = rest.partition("/")
            wholes.setdefault(stack, {})[section, part] = array
    found: dict[Key, dict[str, Arrays]] = {}
    for number, places in enumerate(stacks):
        whole = wholes.get(str(number), {})
        for (section, part), array in whole.items():
            fits = array.shape[:1] == (len(places),)
            require(fits, f"the {section} of {len(places)} columns are not those of each.")
            sound = section == "counts" or array.dtype == np.float64
            require(sound, f"its {part} does not make sense: it holds {array.dtype}, not float64.")
        for at, place in enumerate(places):
            known = 0 <= place < len(keys) and keys[place] not in found
            require(known, f"column number {place!r} is listed twice, or is missing.")
            own: dict[str, Arrays] = {section: {} for section in SECTIONS}
            for (section, part), array in whole.items():
                own[section][part] = array[at, ...]
            found[keys[place]] = own
    for key in keys:
        require(found.get(key, {}).get("hyper"), f"the prior parameters of column {key!r} are missing.")
    return {key: found[key] for key in keys}


def _check_params(node: Node, params: Own) -> Own:
    density = node.family.density(params, node.setting)
    wrong = density.find_shape_fault() or density.find_fault()
    what = "the shares of the classes make" if node.key == ROOT else f"column {node.key!r} makes"
    require(not wrong, f"{what} no sense: {wrong}.")
    return params


def _read_counts(model: Model, filed: FiledModel, parts: dict[Key, dict[str, Arrays]], groups: int) -> Counts:
    found: dict[Hashable, Twofold] = {}
    for key, own in parts.items():
        node = model.nodes[key]
        shape = (groups,) if key == ROOT else (node.setting.groups, node.family.width(node.setting))
        found[key] = codec.decode_counts(own["counts"], shape, "the classes" if key == ROOT else f"column {key!r}")
    return Counts(found, filed.rows, filed.history["log_likelihood"] or 0.0)


def decode_value(value: Any) -> Any:
    if isinstance(value, list):
        return [decode_value(part) for part in value]
    if not isinstance(value, dict):
        return value
    match sorted(value):
        case ["columns"]:
            return {decode_value(key): decode_value(part) for key, part in value["columns"]}
        case ["tuple"]:
            return tuple(decode_value(part) for part in value["tuple"])
        case ["family", "own"]:
            return decode_family(value, "every column")
        case ["prior", "values"]:
            require(value["prior"] in PRIORS, f"{value['prior']!r} is not one of {', '.join(PRIORS)}.")
            return getattr(priors, value["prior"])(**{x: codec.key_of(part) for x, part in value["values"].items()})
    raise ModelFileError(f"a setting has the parts {sorted(value)}.")


# -- the history of a fit, and its record for reports
# No answer depends on them, but reports show them, so all of it is checked.


def decode_history(document: Any, groups: int) -> Document:
    infinite = ("trace", "log_likelihood", "bic", "icl", "evidence", "cv")
    found = decode(FitHistory, document, {}, "history", "how it was learned", infinite)
    sound = all(x < np.inf for x in (*found.trace, found.log_likelihood or 0.0))
    require(sound, "how it was learned makes no sense: a step of the trace is no number.")
    if found.named is not None:
        sound = 0 < len(found.named) <= groups
        require(sound, f"the known classes are {found.named!r}, which cannot be {groups} groups.")
        check_names(found.named)
    return asdict(found)


def decode_record(document: Any, schema: Schema, classes: int | None) -> FitRecord:
    """Return the record after checking it against the schema and the number of known classes.

    `classes` is None if no classes are known.
    """
    if document is None:
        return FitRecord()
    _check_record(isinstance(document, dict) and "evaluation" in document, "it is not one")
    tried = document["evaluation"]
    record = decode(FitRecord, document | {"evaluation": None}, {}, "record", RECORD)
    if record.table is not None:
        rows, last = record.table.rows, len(schema.used) - 1
        _check_record(len(record.table.columns) == last + 1, "it summarises other columns than the schema has")
        for column, spec in zip(record.table.columns, schema.used, strict=True):
            _check_column(column, spec, rows)
        pairs = [max(a, b) <= last and n <= rows for a, b, n in record.table.together]
        _check_record(all(pairs), "columns that are missing together are not there")
        _check_record((record.table.copies or 0) <= rows, "there are more copies than rows")
        _check_record(record.table.unlabelled <= rows, "there are more rows without a class than rows")
    if tried is None:
        return record
    _check_record(classes is not None, "a model without known classes was tried on some")
    return replace(record, evaluation=_decode_evaluation(tried, classes or 0))


def _check_record(sound: object, wrong: str) -> None:
    require(sound, f"{RECORD} makes no sense: {wrong}.")


def _decode_evaluation(document: Any, groups: int) -> Evaluation:
    found = decode(Evaluation, document, {}, "record", RECORD, infinite=FIGURES)
    for name in FIGURES:
        value, most = getattr(found, name), 1.0 if name in SHARES else LARGEST_LOSS
        _check_record(np.isnan(value) or 0 <= value <= most, f"its {name} is {value:g}")
    for fold in found.folds:
        _check_record(fold.keys() == {"accuracy", "log_loss", "rows"}, "a fold has no value of a metric")
        _check_record(min(fold.values()) >= 0 and fold["accuracy"] <= 1, "the figures of a fold are none")
    for table in [*found.confusions, *([found.confusion] if found.confusion else [])]:
        sound = len(table) == groups and all(len(line) == groups for line in table)
        _check_record(sound, "its confusion table has another number of classes")
    _check_record(len(found.lift) in (0, groups), "its lift is of another number of classes")
    sound = all(line.of_class <= line.rows * (1 + 1e-9) for lines in found.lift for line in lines)
    _check_record(sound, "its lift holds more rows of a class than there are")
    return found


def _check_column(found: ColumnSummary, spec: Field, rows: int) -> None:
    name = f"{spec.key!r:.40}"
    _check_record(found.key == spec.key, f"it summarises {found.key!r:.40}, not {name}")
    _check_record(
        found.there + found.missing + found.unseen == rows, f"the cells of {name} are not as many as the rows"
    )
    _check_record(list(found.quantiles) == sorted(found.quantiles), f"the quantiles of {name} are out of order")
    for given, bins in ((found.edges, found.in_bins), (found.bars, found.in_bars)):
        edges = list(given)
        ordered = edges == sorted(set(edges)) and len(bins) in (0, len(edges) + 1)
        _check_record(ordered and sum(bins) <= rows, f"the bins of {name} are out of order")
    places = [at for at, _ in found.levels]
    known = all(0 <= at < len(spec.levels) for at in places) and len(set(places)) == len(places)
    sound = known and sum(n for _, n in found.levels) <= found.there
    _check_record(sound, f"the levels of {name} hold other rows than there are")


# -- checks of a whole model


def check_structure(leaves: tuple[Node, ...], schema: Schema, hidden: bool) -> None:
    """Raise for repeated columns, nodes without columns (unless `hidden`), and invalid anchors, scales or levels."""
    require(leaves, "it models no column.")
    refuse_repeated((spec.key for spec in schema.fields), "column")
    refuse_repeated((column for leaf in leaves for column in leaf.columns or (leaf.key,)), "column")
    for spec in schema.fields:
        if not isinstance(spec.levels, Words):  # words were checked to be unique
            refuse_repeated(spec.levels, f"column {spec.key!r}: level")
    for leaf in leaves:
        if leaf.columns or not hidden:
            stored.check_columns(leaf.family, leaf.key, leaf.columns, len(leaves) == 1)
            setting, units = leaf.setting, (stored.count_units(leaf.family, leaf.columns),)
            sound = setting.anchor.shape == setting.scale.shape == units
            require(sound, f"column {leaf.key!r} has an impossible anchor or scale.")
        for place, column in enumerate(leaf.columns):
            spec = schema[column]
            usable = spec.used and stored.can_model(leaf.family, spec.kind)
            require(usable, f"column {column!r} ({spec.kind}) cannot be {leaf.family.name}.")
            levels = leaf.levels_of(place)
            alike = levels is None or tuple(levels) == spec.levels
            require(alike, f"column {column!r} has two different lists of levels.")
            narrow = spec.kind is not Kind.CATEGORICAL or spec.wide or len(spec.levels) <= NARROW_LEVELS
            require(narrow, f"column {column!r} has too many levels for its code.")


def check_names(names: Iterable[Any]) -> None:
    """Raise for repeated classes, and for names that are not all text, all numbers or all Booleans."""
    kinds = {float if type(name) is int else type(name) for name in names}
    alike = len(kinds) <= 1 and kinds <= {str, float, bool}
    require(alike, f"its classes are {names!r:.80}, which are not all text, all numbers or all truths.")
    refuse_repeated(names, "class")


def refuse_repeated(names: Iterable[Hashable], what: str) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ModelFileError(f"{what} {name!r} is there {times} times.")


def check_model(model: Learned) -> None:
    """Raise for negative counts, and for parameters or priors whose shape does not follow from the counts."""
    if model.classes is not None:
        check_names(model.classes)
    rows = model.counts[ROOT] if ROOT in model.counts else np.zeros(1)
    require(model.counts.rows >= 0 and (rows >= -SLACK).all(), "its counts of rows are below zero.")
    for leaf in model.model.nodes.columns:
        counts = model.counts[leaf.key]
        rows = counts[..., :1] if leaf.family.facts.signed else counts
        require((rows >= -SLACK).all(), f"the counts of column {leaf.key!r} are below zero.")
    _check_fixed(model)
    again = estimate_again(model.model, model.counts, model.imagined, model.estimate)
    usual = model.model.nodes.hypers(model.counts, dict.fromkeys(model.imagined.hypers, 1.0))
    for leaf in model.model.nodes.columns:
        hyper = model.imagined.hypers[leaf.key]
        _check_alike(leaf.key, usual[leaf.key], hyper, leaf.setting.groups)
        wrong = stored.find_prior_fault(hyper)
        require(not wrong, f"the prior of column {leaf.key!r} makes no sense: {wrong}.")
        _check_alike(leaf.key, again[leaf.key], model.estimates[leaf.key])
        wrong = leaf.density(again).find_fault()
        require(not wrong, f"the prior of column {leaf.key!r} makes no sense: under it {wrong}.")


def estimate_again(model: Model, counts: Counts, imagined: Imagined, estimate: str) -> Params:
    """Estimate the parameters from the counts and the prior of a file."""
    how: How = "predictive" if estimate == "predictive" else imagined.how
    with np.errstate(all="ignore"):
        return model.nodes.estimate(model.nodes.stacked(counts), imagined.using(how))


def _check_fixed(model: Learned) -> None:
    """Raise for parameters that differ from their fixed values."""
    for key, held in model.imagined.fixed.items():
        for name, value in held.items():
            found, what = model.estimates[key].get(name), "classes" if key == ROOT else f"column {key!r}"
            same = found is not None and found.shape == value.shape and np.allclose(found, value, rtol=SLACK, atol=0.0)
            require(same, f"{what}: the {name} that was fixed is not the one it has.")


def _check_alike(key: Key, expected: Arrays, found: Arrays, groups: int | None = None) -> None:
    """Raise for parameters with unexpected names or shapes; prior parameters may differ between groups."""
    require(set(expected) == set(found), f"column {key!r} has {sorted(found)}, not {sorted(expected)}.")
    for name, value in expected.items():
        shapes = (value.shape, (groups, *value.shape) if value.ndim else value.shape)
        require(
            found[name].shape in shapes, f"column {key!r}: {name} has the shape {found[name].shape}, not {value.shape}."
        )
